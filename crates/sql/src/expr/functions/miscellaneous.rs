//! GREATEST and LEAST, UUIDs, addresses, JSON_VALID and what else has no better place.

use super::{Call, Derived, Function, Typing, rules};
use crate::expr::Context;
use crate::expr::bind_converted;
use crate::expr::compare::compare_values;
use crate::expr::convert::Result;
use crate::expr::types::{self, Class, unify};
use rauk_types::{DataType, MysqlError, Value};
use std::cmp::Ordering;

pub const FUNCTIONS: &[Function] = &[
    Function::new("GREATEST", 2, u8::MAX, extreme_type, |c, _| Ok(extreme(c, Ordering::Greater))),
    Function::new("LEAST", 2, u8::MAX, extreme_type, |c, _| Ok(extreme(c, Ordering::Less))),
    Function::new("UUID", 0, 0, |t| Ok(t.connection_text(36)), uuid).volatile(),
    Function::new("UUID_TO_BIN", 1, 2, |_| Ok(Derived::new(DataType::varbinary(16)).nullable()), uuid_to_bin),
    Function::new("BIN_TO_UUID", 1, 2, |t| Ok(t.connection_text(36).nullable()), bin_to_uuid),
    Function::new("IS_UUID", 1, 1, rules::boolean, |c, _| Ok(Value::Int(uuid_bytes(&c.text(0)).is_some().into()))),
    Function::new("INET_ATON", 1, 1, rules::unsigned_or_null, |c, _| {
        Ok(inet_aton(&c.text(0)).map_or(Value::Null, Value::UInt))
    }),
    Function::new("INET_NTOA", 1, 1, |t| Ok(t.connection_text(15).nullable()), inet_ntoa),
    Function::new("IS_IPV4", 1, 1, rules::boolean, |c, _| {
        Ok(Value::Int(c.text(0).parse::<std::net::Ipv4Addr>().is_ok().into()))
    }),
    Function::new("IS_IPV6", 1, 1, rules::boolean, |c, _| {
        Ok(Value::Int(c.text(0).parse::<std::net::Ipv6Addr>().is_ok().into()))
    }),
    Function::new("JSON_VALID", 1, 1, rules::boolean, |c, _| {
        let text = Class::of(c.argument_type(0)).is_string();
        Ok(Value::Int((text && serde_json::from_str::<serde::de::IgnoredAny>(&c.text(0)).is_ok()).into()))
    }),
    Function::new("INTERVAL", 2, u8::MAX, rules::integer, interval).with_null(),
    Function::new(ANY_VALUE, 1, 1, any_value_type, |c, _| Ok(c.value(0).to_owned())).with_null(),
    Function::new("NAME_CONST", 2, 2, name_const_type, |c, _| Ok(c.value(1).to_owned())).with_null(),
];

/// The function whose argument ONLY_FULL_GROUP_BY does not judge.
pub(crate) const ANY_VALUE: &str = "ANY_VALUE";

fn any_value_type(t: Typing<'_>) -> Result<Derived> {
    let argument = &t.arguments[0];
    Ok(Derived { ty: types::plain(argument.ty), nullable: argument.nullable, coercibility: argument.coercibility })
}

/// One type for all of them; numbers beside texts make it a comparison of texts, as MySQL 8 does.
fn extreme_type(t: Typing<'_>) -> Result<Derived> {
    let (ty, coercibility) = unify(t.arguments.iter(), &t.name.to_ascii_lowercase(), t.context.collation)?;
    for argument in t.arguments.iter_mut() {
        let own = std::mem::replace(argument, crate::expr::Expr::null());
        *argument = bind_converted(own, &ty);
    }
    let coercibility = if Class::of(&ty).is_string() { coercibility } else { types::NUMERIC };
    Ok(Derived { ty, nullable: false, coercibility })
}

fn extreme(c: &Call<'_, '_>, wanted: Ordering) -> Value {
    let mut best = c.value(0);
    for i in 1..c.len() {
        if compare_values(c.value(i), best, c.ty) == wanted {
            best = c.value(i);
        }
    }
    best.to_owned()
}

/// INTERVAL(n, a, b, …): how many of the others, which ascend, are not above the first; -1 for NULL.
fn interval(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    if c.is_null(0) {
        return Ok(Value::Int(-1));
    }
    let number = c.f64(0, context)?;
    let mut count = 0;
    for i in 1..c.len() {
        if !c.is_null(i) && c.f64(i, context)? > number {
            break;
        }
        count = i;
    }
    Ok(Value::Int(count as i64))
}

/// The next number of a splitmix sequence: enough for identifiers that only have to differ.
fn next_random(context: &mut Context) -> u64 {
    context.random_state = context.random_state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = context.random_state;
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

/// 100-nanosecond steps between 1582-10-15 and 1970-01-01.
const UUID_EPOCH: u64 = 0x01B2_1DD2_1381_4000;

/// Version 1, as MySQL's: time, clock sequence, node. The low digits of the time and the node come from the session's generator.
fn uuid(_: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let random = next_random(context);
    let time =
        (context.now_micros.max(0) as u64).wrapping_mul(10).wrapping_add(UUID_EPOCH).wrapping_add(random & 0xFFFF);
    let node = next_random(context) & 0xFFFF_FFFF_FFFF | 0x0100_0000_0000;
    let (low, middle, high) = (time as u32, (time >> 32) as u16, (time >> 48 & 0x0FFF) as u16 | 0x1000);
    let clock = (random >> 16 & 0x3FFF) as u16 | 0x8000;
    Ok(Value::Str(format!("{low:08x}-{middle:04x}-{high:04x}-{clock:04x}-{node:012x}")))
}

fn uuid_bytes(text: &str) -> Option<[u8; 16]> {
    let text = text.trim_start_matches('{').trim_end_matches('}');
    let dashes: Vec<usize> = text.bytes().enumerate().filter(|(_, b)| *b == b'-').map(|(i, _)| i).collect();
    if !(dashes.is_empty() || dashes == [8, 13, 18, 23]) {
        return None;
    }
    let digits: Vec<u8> = text
        .bytes()
        .filter(|b| *b != b'-')
        .map(|b| char::from(b).to_digit(16).map(|d| d as u8))
        .collect::<Option<_>>()?;
    if digits.len() != 32 {
        return None;
    }
    let mut out = [0; 16];
    out.iter_mut().zip(digits.chunks(2)).for_each(|(o, d)| *o = d[0] << 4 | d[1]);
    Some(out)
}

fn wrong_uuid(value: &str, function: &str) -> MysqlError {
    MysqlError::new(1411, format!("Incorrect string value: '{value}' for function {function}"))
}

fn swapped(c: &Call<'_, '_>, context: &mut Context) -> Result<bool> {
    Ok(c.has(1) && c.int(1, context)? != 0)
}

fn uuid_to_bin(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let text = c.text(0);
    let Some(b) = uuid_bytes(&text) else { return Err(wrong_uuid(&text, "uuid_to_bin")) };
    Ok(Value::Bytes(if swapped(c, context)? { [&b[6..8], &b[4..6], &b[0..4], &b[8..]].concat() } else { b.to_vec() }))
}

fn bin_to_uuid(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let bytes = c.bytes(0);
    if bytes.len() != 16 {
        return Err(wrong_uuid(&String::from_utf8_lossy(&bytes), "bin_to_uuid"));
    }
    let b = if swapped(c, context)? {
        [&bytes[4..8], &bytes[2..4], &bytes[0..2], &bytes[8..]].concat()
    } else {
        bytes.to_vec()
    };
    let hex: String = b.iter().map(|b| format!("{b:02x}")).collect();
    Ok(Value::Str(format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])))
}

/// `a.b.c.d`; fewer parts leave out the middle ones.
fn inet_aton(text: &str) -> Option<u64> {
    if text.len() > "255.255.255.255".len() {
        return None;
    }
    let parts: Vec<u64> = text
        .split('.')
        .map(|p| if p.len() <= 3 && !p.is_empty() { p.parse().ok().filter(|v| *v < 256) } else { None })
        .collect::<Option<_>>()?;
    let (last, first) = parts.split_last()?;
    if first.len() > 3 {
        return None;
    }
    let high = first.iter().enumerate().fold(0, |n, (i, p)| n | p << (24 - 8 * i));
    Some(high | last)
}

fn inet_ntoa(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let number = c.int(0, context)?;
    Ok(match u32::try_from(number) {
        Ok(number) => Value::Str(std::net::Ipv4Addr::from(number).to_string()),
        Err(_) => Value::Null,
    })
}

fn name_const_type(t: Typing<'_>) -> Result<Derived> {
    let value = &t.arguments[1];
    Ok(Derived { ty: value.ty, nullable: value.nullable, coercibility: value.coercibility })
}
