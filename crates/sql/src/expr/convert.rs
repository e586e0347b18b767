//! Values from one type to another inside expressions, with MySQL's warnings about what was lost.
//!
//! Conversions never fail on data: text that is no number is 0 with warning 1292, text that is no date is NULL with the same. In a strict
//! INSERT, UPDATE or DELETE these warnings are errors ([`Context::warn_or_fail`]).

use super::Context;
use super::json;
use super::types::is_hex;
use rauk_types::datetime::{self, DateFlags, MICROS_PER_SECOND, TemporalError};
use rauk_types::error::codes;
use rauk_types::format::{append_text, parse_double_prefix, parse_int_prefix, timestamp_utc};
use rauk_types::{Charset, DataType, Date, DateTime, Decimal, MysqlError, Time, ValueRef};
use std::borrow::Cow;

pub type Result<T> = std::result::Result<T, MysqlError>;

/// Text as warnings show it: at most 128 characters, what is no UTF-8 as `?`.
pub fn shown(bytes: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(bytes);
    match text.char_indices().nth(128) {
        Some((end, _)) => Cow::Owned(text[..end].to_string()),
        None => text,
    }
}

fn time_fraction(micros: u32) -> f64 {
    f64::from(micros) / MICROS_PER_SECOND as f64
}

/// The number that a date or time is: `20240131`, `-101500.5`.
fn temporal_number(value: ValueRef<'_>) -> Option<(i64, u32)> {
    Some(match value {
        ValueRef::Date(v) => (v.to_number().into(), 0),
        ValueRef::Time(v) => (v.to_number(), v.microsecond()),
        ValueRef::DateTime(v) => (v.to_number() as i64, v.microsecond()),
        ValueRef::Timestamp(v) => {
            let v = timestamp_utc(v);
            (v.to_number() as i64, v.microsecond())
        }
        _ => return None,
    })
}

pub fn to_f64(value: ValueRef<'_>, context: &mut Context) -> Result<f64> {
    Ok(match value {
        ValueRef::Int(v) => v as f64,
        ValueRef::UInt(v) => v as f64,
        ValueRef::Double(v) => v,
        ValueRef::Decimal(v) => v.to_f64(),
        ValueRef::Null => 0.0,
        ValueRef::Str(_) | ValueRef::Bytes(_) => {
            let text = value.as_bytes().unwrap_or_default();
            let parsed = parse_double_prefix(text);
            if parsed.trailing || parsed.overflow {
                context.truncated("DOUBLE", &shown(text))?;
            }
            parsed.value
        }
        ValueRef::Json(document) => match json::plain_as(document, "DOUBLE", context)? {
            Some(plain) => to_f64(plain.as_ref(), context)?,
            None => 0.0,
        },
        temporal => {
            let (number, micros) = temporal_number(temporal).unwrap_or_default();
            let negative = matches!(temporal, ValueRef::Time(t) if t.is_negative());
            number as f64 + if negative { -time_fraction(micros) } else { time_fraction(micros) }
        }
    })
}

pub fn to_decimal(value: ValueRef<'_>, context: &mut Context) -> Result<Decimal> {
    Ok(match value {
        ValueRef::Int(v) => Decimal::from(v),
        ValueRef::UInt(v) => Decimal::from(v),
        ValueRef::Double(v) => Decimal::from_f64(v).unwrap_or_else(|_| clipped_decimal(v.is_sign_negative())),
        ValueRef::Decimal(v) => v,
        ValueRef::Null => Decimal::ZERO,
        ValueRef::Str(_) | ValueRef::Bytes(_) => {
            let text = value.as_bytes().unwrap_or_default();
            let parsed = Decimal::parse_prefix(text);
            if parsed.consumed == 0 || !text[parsed.consumed..].iter().all(u8::is_ascii_whitespace) {
                context.truncated("DECIMAL", &shown(text))?;
            }
            parsed.value
        }
        ValueRef::Json(document) => match json::plain_as(document, "DECIMAL", context)? {
            Some(plain) => to_decimal(plain.as_ref(), context)?,
            None => Decimal::ZERO,
        },
        temporal => temporal_decimal(temporal).unwrap_or(Decimal::ZERO),
    })
}

/// The number that a date or time is, with its fraction: `20240131101112.5`. `None` of anything else.
pub fn temporal_decimal(value: ValueRef<'_>) -> Option<Decimal> {
    let (number, micros) = temporal_number(value)?;
    if micros == 0 {
        return Some(Decimal::from(number));
    }
    let sign = if matches!(value, ValueRef::Time(t) if t.is_negative()) { -1 } else { 1 };
    Some(Decimal::new(i128::from(number) * 1_000_000 + i128::from(micros) * sign, 6))
}

fn clipped_decimal(negative: bool) -> Decimal {
    let largest = Decimal::largest(65, 0);
    if negative { -largest } else { largest }
}

/// The integer: fractions are rounded (halves away from zero), of text the digits at its beginning count. Between i64::MIN and u64::MAX.
pub fn to_integer(value: ValueRef<'_>, context: &mut Context) -> Result<i128> {
    const RANGE: (i128, i128) = (i64::MIN as i128, u64::MAX as i128);
    Ok(match value {
        ValueRef::Int(v) => v.into(),
        ValueRef::UInt(v) => v.into(),
        ValueRef::Double(v) => {
            let rounded = v.round_ties_even();
            if rounded >= u64::MAX as f64 {
                RANGE.1
            } else if rounded <= i64::MIN as f64 {
                RANGE.0
            } else {
                rounded as i128
            }
        }
        ValueRef::Decimal(v) => {
            v.to_i128().unwrap_or(if v.is_negative() { RANGE.0 } else { RANGE.1 }).clamp(RANGE.0, RANGE.1)
        }
        ValueRef::Null => 0,
        ValueRef::Str(_) | ValueRef::Bytes(_) => {
            let text = value.as_bytes().unwrap_or_default();
            let parsed = parse_int_prefix(text);
            if parsed.trailing || parsed.overflow {
                context.truncated("INTEGER", &shown(text))?;
            }
            parsed.value
        }
        ValueRef::Json(document) => match json::plain_as(document, "INTEGER", context)? {
            Some(plain) => to_integer(plain.as_ref(), context)?,
            None => 0,
        },
        temporal => {
            // To whole seconds, which may bring minutes and hours with them.
            let whole = match temporal {
                ValueRef::Time(v) => {
                    let half = 500_000 * v.micros().signum();
                    ValueRef::Time(Time::clipped((v.micros() + half) / MICROS_PER_SECOND * MICROS_PER_SECOND))
                }
                ValueRef::DateTime(v) => ValueRef::DateTime(v.rounded(0).unwrap_or(v)),
                ValueRef::Timestamp(v) => {
                    ValueRef::Timestamp((v + 500_000).div_euclid(MICROS_PER_SECOND) * MICROS_PER_SECOND)
                }
                other => other,
            };
            temporal_number(whole).map_or(0, |(number, _)| number.into())
        }
    })
}

/// [`to_integer`] clipped to i64.
pub fn to_i64(value: ValueRef<'_>, context: &mut Context) -> Result<i64> {
    Ok(to_integer(value, context)?.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
}

/// The number that a hexadecimal or bit literal is: its last eight bytes.
pub fn hex_number(bytes: &[u8]) -> u64 {
    bytes[bytes.len().saturating_sub(8)..].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// A value where a number is asked for.
pub fn as_number<'v>(value: ValueRef<'v>, ty: &DataType) -> ValueRef<'v> {
    match value {
        ValueRef::Bytes(bytes) if is_hex(ty) => ValueRef::UInt(hex_number(bytes)),
        value => value,
    }
}

/// The bit pattern as bit operators see it: negative numbers in two's complement.
pub fn to_bits(value: ValueRef<'_>, context: &mut Context) -> Result<u64> {
    Ok(match value {
        ValueRef::Double(v) if v >= u64::MAX as f64 => u64::MAX,
        value => {
            let integer = to_integer(value, context)?;
            if integer < 0 { integer as i64 as u64 } else { integer as u64 }
        }
    })
}

pub fn is_true(value: ValueRef<'_>, context: &mut Context) -> Result<bool> {
    Ok(match value {
        ValueRef::Int(v) => v != 0,
        ValueRef::UInt(v) => v != 0,
        ValueRef::Double(v) => v != 0.0,
        ValueRef::Decimal(v) => !v.is_zero(),
        ValueRef::Date(v) => !v.is_zero(),
        ValueRef::Time(v) => v.micros() != 0,
        ValueRef::DateTime(v) => !v.is_zero(),
        ValueRef::Json(document) => !json::is_zero(document)?,
        other => to_f64(other, context)? != 0.0,
    })
}

/// The bytes of a value's text form, borrowed when it is text already.
pub fn text_bytes<'v>(value: ValueRef<'v>, ty: &DataType) -> Cow<'v, [u8]> {
    match value.as_bytes() {
        Some(bytes) => Cow::Borrowed(bytes),
        None => {
            let mut out = Vec::with_capacity(24);
            append_text(value, ty, &mut out);
            Cow::Owned(out)
        }
    }
}

/// The bytes of a value in the character set of its type: what it is where it is seen as bytes.
pub fn coded_bytes<'v>(value: ValueRef<'v>, ty: &DataType) -> Cow<'v, [u8]> {
    let set = ty.collation.charset();
    if set.is_utf8mb4() || !(ty.is_text() || ty.has_members()) || matches!(value, ValueRef::Bytes(_)) {
        return text_bytes(value, ty);
    }
    match text(value, ty) {
        Cow::Borrowed(text) => set.encode(text),
        Cow::Owned(text) => Cow::Owned(set.encode(&text).into_owned()),
    }
}

/// A text with `?` for each character that a set lacks.
pub fn without(text: Cow<'_, str>, set: Charset) -> Cow<'_, str> {
    match set.lacks(&text) {
        None => text,
        Some(_) => Cow::Owned(text.chars().map(|c| if set.has(c) { c } else { '?' }).collect()),
    }
}

/// The text form. Bytes that are no UTF-8 become `?`, one a byte, as MySQL converts binary to a character set.
pub fn text<'v>(value: ValueRef<'v>, ty: &DataType) -> Cow<'v, str> {
    if let ValueRef::Str(text) = value {
        return Cow::Borrowed(text);
    }
    match text_bytes(value, ty) {
        Cow::Borrowed(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => Cow::Owned(replaced(bytes)),
        },
        Cow::Owned(bytes) => Cow::Owned(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => replaced(error.as_bytes()),
        }),
    }
}

fn replaced(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|_| '?'));
    }
    out
}

/// `Incorrect datetime value: '2024-13-01'`.
pub fn incorrect(kind: &str, value: &str, context: &mut Context) -> Result<()> {
    context.warn_or_fail(codes::TRUNCATED_WRONG_VALUE, format!("Incorrect {kind} value: '{value}'"))
}

/// The moment in the session's time zone of a time with an offset of its own.
pub fn from_offset(value: DateTime, offset: i32, context: &Context) -> Option<DateTime> {
    let utc = value.to_unix_micros_utc()? - i64::from(offset) * MICROS_PER_SECOND;
    DateTime::from_unix_micros(utc, &context.time_zone)
}

/// The present date in the session's time zone.
pub fn today(context: &Context) -> Date {
    DateTime::from_unix_micros(context.now_micros, &context.time_zone).map_or(Date::ZERO, DateTime::date)
}

/// Reads text as a date and time. `Ok(None)`: it is none, and a warning was noted.
fn parse_datetime(bytes: &[u8], flags: DateFlags, context: &mut Context) -> Result<Option<DateTime>> {
    let kind = "datetime";
    match datetime::parse_date_time(bytes, flags) {
        Ok(parsed) => {
            if parsed.truncated {
                context.truncated(kind, &shown(bytes))?;
            }
            let value = parsed.to_precision(6, context.sql_mode.time_truncate_fractional);
            Ok(match (value, parsed.offset) {
                (Some(value), Some(offset)) => from_offset(value, offset, context),
                (value, _) => value,
            })
        }
        Err(_) => {
            incorrect(kind, &shown(bytes), context)?;
            Ok(None)
        }
    }
}

/// As a date and time; a DATE is midnight, a TIME is today. `None`: no date, with a warning.
pub fn to_datetime(value: ValueRef<'_>, context: &mut Context) -> Result<Option<DateTime>> {
    to_datetime_by(value, context.sql_mode.date_flags(false), context)
}

/// The same where a function or CAST reads it: under NO_ZERO_DATE a text is no zero date.
pub fn read_datetime(value: ValueRef<'_>, context: &mut Context) -> Result<Option<DateTime>> {
    let flags = DateFlags { no_zero_date: context.sql_mode.no_zero_date, ..context.sql_mode.date_flags(false) };
    to_datetime_by(value, flags, context)
}

fn to_datetime_by(value: ValueRef<'_>, flags: DateFlags, context: &mut Context) -> Result<Option<DateTime>> {
    Ok(match value {
        ValueRef::Null => None,
        ValueRef::DateTime(v) => Some(v),
        ValueRef::Date(v) => Some(v.at_midnight()),
        ValueRef::Timestamp(0) => Some(DateTime::ZERO),
        ValueRef::Timestamp(v) => DateTime::from_unix_micros(v, &context.time_zone),
        ValueRef::Time(v) => today(context).at_midnight().add_micros(v.micros()),
        ValueRef::Str(_) | ValueRef::Bytes(_) => parse_datetime(value.as_bytes().unwrap_or_default(), flags, context)?,
        ValueRef::Json(document) => match json::plain_as(document, "DATETIME", context)? {
            Some(plain) => to_datetime_by(plain.as_ref(), flags, context)?,
            None => None,
        },
        number => datetime_from_number(number, context)?,
    })
}

fn datetime_from_number(value: ValueRef<'_>, context: &mut Context) -> Result<Option<DateTime>> {
    let number = to_decimal(value, context)?;
    let whole = number.truncated(0).to_i64().unwrap_or(i64::MAX);
    let flags = context.sql_mode.date_flags(false);
    match datetime::date_time_from_number(whole, flags) {
        Ok((date, _)) => {
            let micros = fraction_micros(&number);
            Ok(if micros == 0 { Some(date) } else { date.add_micros(micros) })
        }
        Err(_) => {
            incorrect("datetime", &number.to_string(), context)?;
            Ok(None)
        }
    }
}

/// Microseconds behind the point of a number of seconds, rounded.
pub fn fraction_micros(number: &Decimal) -> i64 {
    let whole = number.truncated(0);
    let fraction = number.checked_sub(&whole).unwrap_or(Decimal::ZERO);
    fraction.checked_mul(&Decimal::from(1_000_000i64)).ok().and_then(|v| v.to_i64()).unwrap_or(0)
}

/// As a date, where a function reads it.
pub fn read_date(value: ValueRef<'_>, context: &mut Context) -> Result<Option<Date>> {
    Ok(match value {
        ValueRef::Date(v) => Some(v),
        other => read_datetime(other, context)?.map(DateTime::date),
    })
}

/// As a time of day or duration. `None`: no time, with a warning.
pub fn to_time(value: ValueRef<'_>, context: &mut Context) -> Result<Option<Time>> {
    Ok(match value {
        ValueRef::Null => None,
        ValueRef::Time(v) => Some(v),
        ValueRef::DateTime(v) => Some(v.time()),
        ValueRef::Date(_) => Some(Time::ZERO),
        ValueRef::Timestamp(_) => to_datetime(value, context)?.map(DateTime::time),
        ValueRef::Str(_) | ValueRef::Bytes(_) => {
            let bytes = value.as_bytes().unwrap_or_default();
            match datetime::parse_time(bytes) {
                Ok(parsed) => {
                    if parsed.truncated || parsed.out_of_range {
                        context.truncated("time", &shown(bytes))?;
                    }
                    Some(parsed.to_precision(6, context.sql_mode.time_truncate_fractional))
                }
                Err(_) => {
                    context.truncated("time", &shown(bytes))?;
                    None
                }
            }
        }
        ValueRef::Json(document) => match json::plain_as(document, "TIME", context)? {
            Some(plain) => to_time(plain.as_ref(), context)?,
            None => None,
        },
        number => {
            let number = to_decimal(number, context)?;
            let whole = number.truncated(0).to_i64().unwrap_or(i64::MAX);
            match datetime::time_from_number(whole) {
                Ok(time) => Some(Time::clipped(time.micros() + fraction_micros(&number))),
                Err(TemporalError::OutOfRange) => {
                    context.truncated("time", &number.to_string())?;
                    Some(if whole < 0 { Time::MIN } else { Time::MAX })
                }
                Err(_) => {
                    context.truncated("time", &number.to_string())?;
                    None
                }
            }
        }
    })
}
