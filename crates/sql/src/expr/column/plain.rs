//! Values into ENUM, SET, BIT and YEAR columns.
//!
//! Text that names no member may still be the number of one. What is neither is the error value of an ENUM, and nothing in a SET, with
//! 1265. BIT takes bytes as a number from its right end, and all ones for what is too large (1406 when strict). YEAR takes one and two digits as
//! years from 1970 to 2069.

use super::Target;
use crate::expr::convert::{self, Result};
use rauk_types::error::codes;
use rauk_types::format::parse_int_prefix;
use rauk_types::{DataType, Decimal, MysqlError, TypeKind, Value, ValueRef};

/// The number of the value of an ENUM or SET that equals a text; -1, which no row holds, when there is none.
pub(crate) fn member_number(text: &str, ty: &DataType) -> Value {
    const NO_MEMBER: Value = Value::Int(-1);
    let Some(members) = ty.members else { return NO_MEMBER };
    let number = match ty.kind {
        TypeKind::Set => members.exact_bits(text, ty.collation),
        // The error value's text.
        _ if ty.collation.equal(text.as_bytes(), b"") => Some(0),
        _ => members.position(text, ty.collation),
    };
    number.map_or(NO_MEMBER, Value::UInt)
}

/// The year that a constant beside a YEAR stands for: the one as which it would be stored. `None`: it would not be, and is
/// compared as what it says.
pub(crate) fn year_number(value: ValueRef<'_>) -> Option<i64> {
    let number = match value {
        ValueRef::Str(_) | ValueRef::Bytes(_) => {
            let text = value.as_bytes().unwrap_or_default();
            let parsed = Decimal::parse_prefix(text);
            let is_number = parsed.consumed > 0 && text[parsed.consumed..].iter().all(u8::is_ascii_whitespace);
            match parsed.value.rounded(0).to_i128().filter(|_| is_number)? {
                // Zero in up to three digits is the year 2000.
                0 if text.len() != 4 => 2000,
                number => number,
            }
        }
        // A fraction is cut from a DOUBLE, and a DECIMAL is rounded.
        ValueRef::Double(number) => Some(number as i128).filter(|_| (0.0..=2155.0).contains(&number))?,
        // No number below zero is a year, even if it is rounded to zero; a text is rounded first.
        ValueRef::Decimal(number) => number.rounded(0).to_i128().filter(|_| !number.is_negative())?,
        value => value.as_integer()?,
    };
    match number {
        1..=69 => Some(2000 + number as i64),
        70..=99 => Some(1900 + number as i64),
        0 | 1901..=2155 => Some(number as i64),
        _ => None,
    }
}

/// The text that a value is stored as, where it is no number. Bytes are read in the column's character set.
fn stored_text(value: ValueRef<'_>, from: &DataType, to: &DataType) -> String {
    let set = to.collation.charset();
    match value {
        ValueRef::Bytes(bytes) if !set.is_utf8mb4() => set.decode(&set.aligned(bytes)).text.into_owned(),
        _ => convert::text(value, from).into_owned(),
    }
}

/// A number that is cut, as a column of members takes it.
fn whole(value: ValueRef<'_>) -> Option<i128> {
    match value {
        ValueRef::Int(v) => Some(v.into()),
        ValueRef::UInt(v) => Some(v.into()),
        ValueRef::Double(v) => Some(v as i128),
        ValueRef::Decimal(v) => Some(v.truncated(0).to_i128().unwrap_or(-1)),
        _ => None,
    }
}

/// Bytes of a literal that is a number.
fn literal_number<'v>(value: ValueRef<'v>, from: &DataType) -> ValueRef<'v> {
    convert::as_number(value, from)
}

pub(super) fn enumerated(
    value: ValueRef<'_>,
    from: &DataType,
    to: &DataType,
    target: &mut Target<'_>,
) -> Result<Value> {
    const ERROR: Value = Value::UInt(0);
    let Some(members) = to.members else { return target.truncated(ERROR) };
    let most = members.len() as i128;
    if let Some(number) = whole(value) {
        return match number {
            1.. if number <= most => Ok(Value::UInt(number as u64)),
            _ => target.truncated(ERROR),
        };
    }
    let text = stored_text(value, from, to);
    let text = text.trim_end_matches(' ');
    if let Some(number) = members.position(text, to.collation) {
        return Ok(Value::UInt(number));
    }
    let parsed = parse_int_prefix(text.as_bytes());
    // Of a text of six characters and more nobody asks whether it is a number.
    let number = parsed.consumed == text.len() && parsed.consumed > 0 && text.len() < 6;
    match parsed.value {
        1.. if number && parsed.value <= most => Ok(Value::UInt(parsed.value as u64)),
        _ => target.truncated(ERROR),
    }
}

pub(super) fn set(value: ValueRef<'_>, from: &DataType, to: &DataType, target: &mut Target<'_>) -> Result<Value> {
    let Some(members) = to.members else { return target.truncated(Value::UInt(0)) };
    let all = members.all();
    if let Some(number) = whole(value) {
        let bits = number as u64 & all;
        return if i128::from(bits) == number { Ok(Value::UInt(bits)) } else { target.truncated(Value::UInt(bits)) };
    }
    let given = stored_text(value, from, to);
    let text = given.trim_end_matches(' ');
    let (mut bits, mut found) = (0, true);
    if !text.is_empty() {
        for item in text.split(',') {
            // Spaces count, whatever the collation says of them.
            match members.position(item, to.collation).filter(|_| !item.ends_with(' ')) {
                Some(position) => bits |= 1 << (position - 1),
                None => found = false,
            }
        }
    }
    // Of the text with its spaces, which are no number either.
    if bits == 0 && !given.is_empty() && given.len() < 22 {
        let parsed = parse_int_prefix(given.as_bytes());
        let number = !text.is_empty() && parsed.consumed == given.len() && !parsed.overflow;
        return match u64::try_from(parsed.value) {
            Ok(bits) if number && bits <= all => Ok(Value::UInt(bits)),
            _ => target.truncated(Value::UInt(0)),
        };
    }
    if found { Ok(Value::UInt(bits)) } else { target.truncated(Value::UInt(bits)) }
}

pub(super) fn bits(value: ValueRef<'_>, to: &DataType, target: &mut Target<'_>) -> Result<Value> {
    let all = u64::MAX >> (64 - to.length.clamp(1, 64));
    let rounded = |number: Decimal| number.rounded(0).to_i128().unwrap_or(i128::MAX);
    let number = match value {
        ValueRef::Str(_) | ValueRef::Bytes(_) => {
            let bytes = value.as_bytes().unwrap_or_default();
            let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
            match bytes.len() - start {
                0..=8 => Some(bytes[start..].iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte))),
                _ => None,
            }
        }
        ValueRef::Decimal(number) if number.is_negative() && !number.rounded(0).is_zero() => {
            return target.out_of_range(Value::UInt(0));
        }
        ValueRef::Decimal(number) => match u64::try_from(rounded(number)) {
            Ok(number) => Some(number),
            Err(_) => return target.out_of_range(Value::UInt(all)),
        },
        ValueRef::Double(number) => Some(if number < 0.0 { number as i64 as u64 } else { number as u64 }),
        ValueRef::Int(number) => Some(number as u64),
        ValueRef::UInt(number) => Some(number),
        temporal => {
            let number = convert::to_decimal(temporal, target.context)?;
            u64::try_from(rounded(number)).ok().or(Some(rounded(number) as i64 as u64))
        }
    };
    match number {
        Some(number) if number <= all => Ok(Value::UInt(number)),
        _ if target.context.strict_statement => {
            Err(MysqlError::new(codes::DATA_TOO_LONG, format!("Data too long for {}", target.place())))
        }
        _ => target.out_of_range(Value::UInt(all)),
    }
}

pub(super) fn year(value: ValueRef<'_>, from: &DataType, target: &mut Target<'_>) -> Result<Value> {
    const NONE: Value = Value::UInt(0);
    let ranged = |number: i128, target: &mut Target<'_>| match number {
        0 | 1901..=2155 => Ok(Value::UInt(number as u64)),
        1..=69 => Ok(Value::UInt(2000 + number as u64)),
        70..=99 => Ok(Value::UInt(1900 + number as u64)),
        _ => target.out_of_range(NONE),
    };
    match literal_number(value, from) {
        ValueRef::Int(number) => ranged(number.into(), target),
        ValueRef::UInt(number) => ranged(number.into(), target),
        ValueRef::Double(number) if !(0.0..=2155.0).contains(&number) => target.out_of_range(NONE),
        ValueRef::Double(number) => ranged(number as i128, target),
        ValueRef::Decimal(number) => ranged(number.rounded(0).to_i128().unwrap_or(-1), target),
        ValueRef::Date(date) => ranged(date.year().into(), target),
        ValueRef::DateTime(time) => ranged(time.date().year().into(), target),
        ValueRef::Timestamp(_) => {
            let local = convert::to_datetime(value, target.context)?;
            ranged(local.map_or(0, |time| time.date().year().into()), target)
        }
        ValueRef::Time(_) | ValueRef::Null => {
            let year = convert::today(target.context).year();
            ranged(year.into(), target)
        }
        // JSON has become a plain value before.
        ValueRef::Str(_) | ValueRef::Bytes(_) | ValueRef::Json(_) => {
            let text = value.as_bytes().unwrap_or_default();
            let parsed = Decimal::parse_prefix(text);
            if parsed.consumed == 0 {
                return target.incorrect("integer", text, NONE);
            }
            let stored = match parsed.value.rounded(0).to_i128().unwrap_or(-1) {
                // Zero in up to three digits is the year 2000.
                0 if text.len() != 4 => Value::UInt(2000),
                number => match ranged(number, target)? {
                    // It was out of range, which says enough.
                    Value::UInt(0) if number != 0 => return Ok(NONE),
                    year => year,
                },
            };
            if text[parsed.consumed..].iter().all(u8::is_ascii_whitespace) {
                return Ok(stored);
            }
            target.truncated(stored)
        }
    }
}
