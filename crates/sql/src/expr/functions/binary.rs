//! Digits and digests: hexadecimal, other bases, Base64, bytes of characters, MD5, SHA, CRC.

use super::{Call, Derived, Function, Typing, rules};
use crate::expr::Context;
use crate::expr::convert::{self, Result};
use crate::expr::types::{Class, text_type};
use md5::Digest as _;
use rauk_types::{Collation, TypeKind, Value, ValueRef};

pub const FUNCTIONS: &[Function] = &[
    Function::new("HEX", 1, 1, hex_type, hex).of_bytes(),
    Function::new("UNHEX", 1, 1, unhex_type, |c, _| Ok(unhex(&c.bytes(0)).map_or(Value::Null, Value::Bytes))),
    Function::new("BIN", 1, 1, digits_type, |c, _| Ok(converted(&digits(c), 10, 2))),
    Function::new("OCT", 1, 1, digits_type, |c, _| Ok(converted(&digits(c), 10, 8))),
    Function::new("CONV", 3, 3, digits_type, conv),
    Function::new("ASCII", 1, 1, rules::integer, |c, _| {
        Ok(Value::Int(c.bytes(0).first().map_or(0, |b| i64::from(*b))))
    })
    .of_bytes(),
    Function::new("ORD", 1, 1, rules::integer, |c, _| Ok(Value::Int(ord(c)))),
    Function::new("CHAR", 1, u8::MAX, char_type, char_of).with_null(),
    Function::new("TO_BASE64", 1, 1, base64_type, |c, x| {
        let bytes = c.bytes(0);
        let digits = bytes.len().div_ceil(3) * 4;
        Ok(if c.fits(digits + digits / 76, x) { Value::Str(to_base64(&bytes)) } else { Value::Null })
    })
    .of_bytes(),
    Function::new("FROM_BASE64", 1, 1, from_base64_type, |c, x| {
        Ok(from_base64(&c.bytes(0), x)?.map_or(Value::Null, Value::Bytes))
    }),
    Function::new("MD5", 1, 1, |t| Ok(t.connection_text(32)), |c, _| Ok(hex_text(&md5::Md5::digest(&*c.bytes(0)))))
        .of_bytes(),
    Function::new("SHA1", 1, 1, |t| Ok(t.connection_text(40)), |c, _| Ok(hex_text(&sha1::Sha1::digest(&*c.bytes(0)))))
        .of_bytes(),
    Function::new("SHA2", 2, 2, |t| Ok(t.connection_text(128).nullable()), sha2_of).of_bytes(),
    Function::new("CRC32", 1, 1, rules::unsigned, |c, _| Ok(Value::UInt(crc32(&c.bytes(0)).into()))).of_bytes(),
    Function::new("BIT_COUNT", 1, 1, rules::integer, |c, x| {
        Ok(Value::Int(convert::to_bits(c.number(0), x)?.count_ones().into()))
    }),
];

/// Bytes that are printed between two looks at KILL.
const HEX_PIECE: usize = 64 << 10;

fn upper_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut out = Vec::with_capacity(bytes.len() * 2);
    for byte in bytes {
        out.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
    String::from_utf8(out).expect("digits are ASCII")
}

fn hex_text(bytes: &[u8]) -> Value {
    Value::Str(upper_hex(bytes).to_ascii_lowercase())
}

fn hex_type(t: Typing<'_>) -> Result<Derived> {
    let length = if t.arguments[0].ty.is_text() { t.length(0) * 8 } else { t.length(0) * 2 };
    Ok(t.connection_text(length.max(16)))
}

/// Of a number its digits, of anything else its bytes.
fn hex(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let value = c.value(0);
    if !c.fits(c.values[0].bytes() * 2, context) {
        return Ok(Value::Null);
    }
    Ok(Value::Str(
        if Class::of(c.argument_type(0)).is_number() && !matches!(value, ValueRef::Str(_) | ValueRef::Bytes(_)) {
            format!("{:X}", hex_bits(value, context)?)
        } else {
            let bytes = c.bytes(0);
            let mut out = String::with_capacity(bytes.len() * 2);
            let pieces = bytes.chunks(HEX_PIECE);
            for piece in pieces {
                context.budget.work(piece.len())?;
                out.push_str(&upper_hex(piece));
            }
            out
        },
    ))
}

/// The 64 bits of a number. A number with a fraction goes through a DOUBLE, and is all ones beyond 64 bits.
fn hex_bits(value: ValueRef<'_>, context: &mut Context) -> Result<u64> {
    const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
    if !matches!(value, ValueRef::Decimal(_) | ValueRef::Double(_)) {
        return convert::to_bits(value, context);
    }
    Ok(match convert::to_f64(value, context)? {
        number if number <= -TWO_TO_63 || number >= 2.0 * TWO_TO_63 => u64::MAX,
        number if number > 0.0 => (number + 0.5) as u64,
        number => (number - 0.5) as i64 as u64,
    })
}

fn unhex_type(t: Typing<'_>) -> Result<Derived> {
    Ok(Derived::new(text_type(t.length(0).div_ceil(2), Collation::Binary)).nullable())
}

fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |b: &u8| char::from(*b).to_digit(16).map(|d| d as u8);
    let (first, pairs) = text.split_at(text.len() % 2);
    let mut out = Vec::with_capacity(text.len() / 2 + 1);
    for single in first {
        out.push(digit(single)?);
    }
    for pair in pairs.chunks(2) {
        out.push(digit(&pair[0])? << 4 | digit(&pair[1])?);
    }
    Some(out)
}

fn digits_type(t: Typing<'_>) -> Result<Derived> {
    Ok(t.connection_text(65).nullable())
}

fn conv(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    Ok(converted(&digits(c), c.int(1, context)?, c.int(2, context)?))
}

/// The digits that are converted: of a BIT its number's, not its bytes.
fn digits<'c>(c: &'c Call<'_, '_>) -> std::borrow::Cow<'c, str> {
    match (c.argument_type(0).kind, c.value(0)) {
        (TypeKind::Bit, ValueRef::UInt(bits)) => bits.to_string().into(),
        _ => c.text(0),
    }
}

/// The number at the beginning of a text from one base to another; a negative base means signed. NULL for bases that are none.
fn converted(text: &str, from: i64, to: i64) -> Value {
    if !(2..=36).contains(&from.unsigned_abs()) || !(2..=36).contains(&to.unsigned_abs()) {
        return Value::Null;
    }
    let text = text.trim_start();
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let base = from.unsigned_abs() as u32;
    let mut value: u64 = 0;
    let mut overflow = false;
    for digit in digits.chars().map_while(|d| d.to_digit(base)) {
        match value.checked_mul(base.into()).and_then(|v| v.checked_add(digit.into())) {
            Some(next) => value = next,
            None => overflow = true,
        }
    }
    let value = match (overflow, negative) {
        (true, _) if from > 0 => u64::MAX,
        (true, true) => i64::MIN as u64,
        (true, false) => i64::MAX as u64,
        (false, true) => value.wrapping_neg(),
        (false, false) => value,
    };
    Value::Str(if to < 0 {
        let signed = value as i64;
        format!("{}{}", if signed < 0 { "-" } else { "" }, in_base(signed.unsigned_abs(), to.unsigned_abs()))
    } else {
        in_base(value, to.unsigned_abs())
    })
}

fn in_base(mut value: u64, base: u64) -> String {
    let mut out = Vec::new();
    loop {
        let digit = char::from_digit((value % base) as u32, base as u32).unwrap_or('0');
        out.push(digit.to_ascii_uppercase());
        value /= base;
        if value == 0 {
            return out.into_iter().rev().collect();
        }
    }
}

/// The first character's bytes as a number.
fn ord(c: &Call<'_, '_>) -> i64 {
    let (bytes, ty) = (c.bytes(0), c.argument_type(0));
    let first = match String::from_utf8_lossy(&bytes).chars().next() {
        Some(first) if ty.is_text() => ty.collation.charset().encode(first.encode_utf8(&mut [0; 4])).into_owned(),
        _ => {
            let length = match bytes.first() {
                _ if ty.is_bytes() => 1,
                Some(0xC0..0xE0) => 2,
                Some(0xE0..0xF0) => 3,
                Some(0xF0..) => 4,
                _ => 1,
            };
            bytes.iter().take(length).copied().collect()
        }
    };
    first.iter().fold(0, |n, b| n << 8 | i64::from(*b))
}

fn char_type(t: Typing<'_>) -> Result<Derived> {
    Ok(Derived::new(text_type(t.arguments.len() as u64 * 4, Collation::Binary)))
}

/// CHAR(n, …): the bytes of each number, without zero bytes in front; NULLs are passed over.
fn char_of(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let mut out = Vec::new();
    for i in (0..c.len()).filter(|i| !c.is_null(*i)) {
        let bytes = (convert::to_bits(c.number(i), context)? as u32).to_be_bytes();
        let zeros = bytes.iter().take(3).take_while(|b| **b == 0).count();
        out.extend_from_slice(&bytes[zeros..]);
    }
    Ok(Value::Bytes(out))
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Characters of a line of Base64.
const LINE: usize = 76;

fn base64_type(t: Typing<'_>) -> Result<Derived> {
    let length = t.length(0) * 4;
    Ok(t.connection_text(length.div_ceil(3) * 4 + length / 57 + 4))
}

fn to_base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 4 / 3 + 8);
    for (i, group) in bytes.chunks(3).enumerate() {
        if i > 0 && (i * 4).is_multiple_of(LINE) {
            out.push('\n');
        }
        let bits = group.iter().fold(0u32, |n, b| n << 8 | u32::from(*b)) << (8 * (3 - group.len()));
        for place in 0..4 {
            if place > group.len() {
                out.push('=');
            } else {
                out.push(char::from(ALPHABET[(bits >> (18 - 6 * place) & 63) as usize]));
            }
        }
    }
    out
}

fn from_base64_type(t: Typing<'_>) -> Result<Derived> {
    Ok(Derived::new(text_type(t.length(0) * 3 / 4 + 1, Collation::Binary)).nullable())
}

fn from_base64(text: &[u8], context: &mut Context) -> Result<Option<Vec<u8>>> {
    let memory = &context.budget.memory;
    let characters = text.iter().copied().filter(|b| !b.is_ascii_whitespace());
    let text: Vec<u8> = memory.while_it_may(characters, |characters| characters.collect())?;
    if !text.len().is_multiple_of(4) {
        return Ok(None);
    }
    memory.while_it_may(text.chunks(4), |groups| decode_base64(groups, text.len()))
}

/// The bytes of groups of four, which are `length` characters together.
fn decode_base64<'a>(groups: impl Iterator<Item = &'a [u8]>, length: usize) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(length / 4 * 3);
    for (i, group) in groups.enumerate() {
        let padding = group.iter().rev().take_while(|b| **b == b'=').count();
        if padding > 2 || padding > 0 && (i + 1) * 4 != length {
            return None;
        }
        let mut bits = 0u32;
        for byte in group {
            let digit = if *byte == b'=' { 0 } else { base64_digit(*byte)? };
            bits = bits << 6 | u32::from(digit);
        }
        out.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
    }
    Some(out)
}

fn base64_digit(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

fn sha2_of(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let bytes = c.bytes(0);
    Ok(match c.int(1, context)? {
        0 | 256 => hex_text(&sha2::Sha256::digest(&*bytes)),
        224 => hex_text(&sha2::Sha224::digest(&*bytes)),
        384 => hex_text(&sha2::Sha384::digest(&*bytes)),
        512 => hex_text(&sha2::Sha512::digest(&*bytes)),
        _ => {
            context.warn(1583, "Incorrect parameters in the call to native function 'sha2'".into());
            Value::Null
        }
    })
}

const fn crc_table() -> [u32; 256] {
    let mut table = [0u32; 256];
    let mut i = 0;
    while i < 256 {
        let mut value = i as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { value >> 1 ^ 0xEDB8_8320 } else { value >> 1 };
            bit += 1;
        }
        table[i] = value;
        i += 1;
    }
    table
}

pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    static TABLE: [u32; 256] = crc_table();
    !bytes.iter().fold(u32::MAX, |crc, b| crc >> 8 ^ TABLE[usize::from(crc as u8 ^ b)])
}
