//! Internet addresses: text and bytes.

use super::{Derived, Function, rules};
use rauk_types::{DataType, Value};
use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

pub const FUNCTIONS: &[Function] = &[
    Function::new("INET_ATON", 1, 1, rules::unsigned_or_null, |c, _| {
        Ok(inet_aton(&c.text(0)).map_or(Value::Null, Value::UInt))
    }),
    Function::new(
        "INET_NTOA",
        1,
        1,
        |t| Ok(t.connection_text(15).nullable()),
        |c, x| {
            let number = c.int(0, x)?;
            Ok(u32::try_from(number).map_or(Value::Null, |number| Value::Str(Ipv4Addr::from(number).to_string())))
        },
    ),
    Function::new(
        "INET6_ATON",
        1,
        1,
        |_| Ok(Derived::new(DataType::varbinary(16)).nullable()),
        |c, _| Ok(inet6_aton(&c.text(0)).map_or(Value::Null, Value::Bytes)),
    ),
    Function::new(
        "INET6_NTOA",
        1,
        1,
        |t| Ok(t.connection_text(39).nullable()),
        |c, _| {
            // Only bytes are an address: text of 4 or 16 characters is not.
            let bytes = c.argument_type(0).is_bytes().then(|| c.bytes(0));
            Ok(bytes.and_then(|bytes| inet6_ntoa(&bytes)).map_or(Value::Null, Value::Str))
        },
    ),
    Function::new("IS_IPV4", 1, 1, rules::boolean, |c, _| Ok(Value::Int(ipv4(&c.text(0)).is_some().into()))),
    Function::new("IS_IPV6", 1, 1, rules::boolean, |c, _| Ok(Value::Int(c.text(0).parse::<Ipv6Addr>().is_ok().into()))),
    Function::new("IS_IPV4_COMPAT", 1, 1, rules::boolean, |c, _| {
        Ok(Value::Int((c.argument_type(0).is_bytes() && is_compat(&c.bytes(0))).into()))
    }),
    Function::new("IS_IPV4_MAPPED", 1, 1, rules::boolean, |c, _| {
        Ok(Value::Int((c.argument_type(0).is_bytes() && is_mapped(&c.bytes(0))).into()))
    }),
];

/// `a.b.c.d`; fewer parts leave out the middle ones.
fn inet_aton(text: &str) -> Option<u64> {
    // Zeros in front do not matter, however many there are: 1.0000 is 1.0. Nothing before a dot is zero.
    if text.is_empty() || text.ends_with('.') {
        return None;
    }
    let part = |digits: &str| {
        let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
        let digits = digits.trim_start_matches('0');
        match digits.len() {
            0 if is_number => Some(0),
            1..=3 if is_number => digits.parse().ok().filter(|value| *value < 256),
            _ => None,
        }
    };
    let parts: Vec<u64> = text.splitn(5, '.').map(part).collect::<Option<_>>()?;
    let (last, first) = parts.split_last()?;
    if first.len() > 3 {
        return None;
    }
    let high = first.iter().enumerate().fold(0, |n, (i, p)| n | p << (24 - 8 * i));
    Some(high | last)
}

/// Four numbers of up to three digits; zeros in front do not matter.
fn ipv4(text: &str) -> Option<[u8; 4]> {
    let mut parts = text.split('.').map(|part| {
        let digits = !part.is_empty() && part.len() <= 3 && part.bytes().all(|b| b.is_ascii_digit());
        part.parse::<u8>().ok().filter(|_| digits)
    });
    let mut octets = [0; 4];
    for octet in &mut octets {
        *octet = parts.next()??;
    }
    parts.next().is_none().then_some(octets)
}

/// 4 bytes of an IPv4 address, 16 of an IPv6 one.
fn inet6_aton(text: &str) -> Option<Vec<u8>> {
    match ipv4(text) {
        Some(octets) => Some(octets.to_vec()),
        None => text.parse::<Ipv6Addr>().ok().map(|address| address.octets().to_vec()),
    }
}

fn is_compat(bytes: &[u8]) -> bool {
    bytes.len() == 16 && bytes[..12] == [0; 12] && u32::from_be_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]) > 1
}

fn is_mapped(bytes: &[u8]) -> bool {
    bytes.len() == 16 && bytes[..10] == [0; 10] && bytes[10..12] == [0xFF; 2]
}

/// The longest run of zeros is left out; compatible and mapped addresses end as IPv4.
fn inet6_ntoa(bytes: &[u8]) -> Option<String> {
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
        return Some(Ipv4Addr::from(bytes).to_string());
    }
    let address = Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?);
    let words = address.segments();
    let mut gap = 0..0;
    let mut at = 0;
    while at < words.len() {
        let zeros = words[at..].iter().take_while(|word| **word == 0).count();
        if zeros > gap.len() {
            gap = at..at + zeros;
        }
        at += zeros.max(1);
    }
    let last = Ipv4Addr::new(bytes[12], bytes[13], bytes[14], bytes[15]);
    if gap == (0..6) {
        return Some(format!("::{last}"));
    }
    if gap == (0..5) && words[5] == 0xFFFF {
        return Some(format!("::ffff:{last}"));
    }
    let mut out = String::new();
    let mut at = 0;
    while at < words.len() {
        if at == gap.start && !gap.is_empty() {
            out.push_str("::");
            at = gap.end;
            continue;
        }
        if !out.is_empty() && !out.ends_with(':') {
            out.push(':');
        }
        write!(out, "{:x}", words[at]).expect("writing to memory");
        at += 1;
    }
    Some(out)
}
