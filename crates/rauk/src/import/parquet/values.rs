//! Values of Parquet as values of JSON, which the encoder of JSON lines makes literals of.
//!
//! Numbers are written with all their digits, decimals as decimals, floats so that they read back as they were; what
//! JSON has no number for (NaN, infinities) is a text, which the server refuses for a number. Dates and times are texts
//! in SQL's form. Years beyond four digits, and digits behind a microsecond, are written as they are: the server's
//! rules decide.

use super::fields::{Kind, Unit};
use parquet::record::{Field, Row};
use std::fmt::Write;

const DAY: i64 = 86_400;

/// One value of a column.
pub enum Cell<'a> {
    Bool(bool),
    /// Of 32 and 64 bits.
    Integer(i64),
    /// Nanoseconds of the day, and days since 1970.
    Legacy(i64, i64),
    Float(f32),
    Double(f64),
    Bytes(&'a [u8]),
}

/// How bytes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bytes {
    Hex,
    Text,
}

/// Appends a value; `Err`: why it is none for its column.
pub fn push(out: &mut String, cell: &Cell<'_>, kind: Kind, bytes: Bytes) -> Result<(), String> {
    match (cell, kind) {
        (Cell::Bool(value), _) => write(out, format_args!("{value}")),
        (Cell::Float(value), _) if value.is_finite() => write(out, format_args!("{value:?}")),
        (Cell::Double(value), _) if value.is_finite() => write(out, format_args!("{value:?}")),
        (Cell::Float(value), _) => write(out, format_args!("\"{value}\"")),
        (Cell::Double(value), _) => write(out, format_args!("\"{value}\"")),
        (Cell::Integer(value), Kind::Unsigned { bits: 64 }) => write(out, format_args!("{}", value.cast_unsigned())),
        (Cell::Integer(value), Kind::Unsigned { .. }) => write(out, format_args!("{}", *value as u32)),
        (Cell::Integer(value), Kind::Decimal { scale, .. }) => push_decimal(out, &value.to_be_bytes(), scale),
        (Cell::Integer(value), Kind::Date) => {
            out.push('"');
            push_date(out, *value);
            out.push('"');
        }
        (Cell::Integer(value), Kind::Time { unit }) => {
            out.push('"');
            push_time(out, *value, unit);
            out.push('"');
        }
        (Cell::Integer(value), Kind::Timestamp { unit, .. }) => {
            let day = unit.each_second() * DAY;
            push_moment(out, value.div_euclid(day), value.rem_euclid(day), unit);
        }
        (Cell::Legacy(nanoseconds, days), _) => push_moment(out, *days, *nanoseconds, Unit::Nano),
        (Cell::Integer(value), _) => write(out, format_args!("{value}")),
        (Cell::Bytes(value), Kind::Decimal { scale, .. }) => push_decimal(out, value, scale),
        (Cell::Bytes(value), Kind::Half) => {
            let value = half(value)?;
            match value.is_finite() {
                true => write(out, format_args!("{value:?}")),
                false => write(out, format_args!("\"{value}\"")),
            }
        }
        (Cell::Bytes(value), Kind::Uuid) if bytes != Bytes::Hex => push_uuid(out, value),
        (Cell::Bytes(value), _) => push_bytes(out, value, bytes)?,
    }
    Ok(())
}

fn write(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a String takes all");
}

fn push_bytes(out: &mut String, value: &[u8], bytes: Bytes) -> Result<(), String> {
    if bytes == Bytes::Hex {
        out.push('"');
        super::super::literal::push_hex(out, value);
        out.push('"');
        return Ok(());
    }
    let text = std::str::from_utf8(value)
        .map_err(|e| format!("byte 0x{:02X} is not UTF-8; a column of bytes takes it", value[e.valid_up_to()]))?;
    push_text(out, text);
    Ok(())
}

/// A string of JSON.
pub fn push_text(out: &mut String, text: &str) {
    out.push_str(&serde_json::to_string(text).expect("a text is a value of JSON"));
}

/// Of two's complement, the highest byte first.
fn push_decimal(out: &mut String, bytes: &[u8], scale: usize) {
    let negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
    let mut digits = magnitude(bytes, negative);
    while digits.len() <= scale {
        digits.insert(0, b'0');
    }
    if negative {
        out.push('-');
    }
    let point = digits.len() - scale;
    for (at, digit) in digits.iter().enumerate() {
        if at == point && scale > 0 {
            out.push('.');
        }
        out.push(*digit as char);
    }
}

/// Decimal digits, by repeated division: numbers are some dozen bytes long.
fn magnitude(bytes: &[u8], negative: bool) -> Vec<u8> {
    let mut rest: Vec<u8> = bytes.to_vec();
    if negative {
        let mut carry = true;
        for byte in rest.iter_mut().rev() {
            let (sum, over) = (!*byte).overflowing_add(u8::from(carry));
            *byte = sum;
            carry = over;
        }
        // The least number of all, whose complement it is itself, needs its highest bit.
    }
    let mut digits = Vec::new();
    let mut begin = 0;
    while begin < rest.len() {
        let mut remainder = 0u32;
        for byte in &mut rest[begin..] {
            let value = remainder << 8 | u32::from(*byte);
            *byte = (value / 10) as u8;
            remainder = value % 10;
        }
        digits.push(b'0' + remainder as u8);
        while begin < rest.len() && rest[begin] == 0 {
            begin += 1;
        }
    }
    if digits.is_empty() {
        digits.push(b'0');
    }
    digits.reverse();
    digits
}

/// Days since 1970-01-01, in the proleptic Gregorian calendar.
fn push_date(out: &mut String, days: i64) {
    // Years that begin in March, so that the leap day is the last one; 719468 days are from then to 1970.
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    write(out, format_args!("{year:04}-{month:02}-{day:02}"));
}

fn push_time(out: &mut String, value: i64, unit: Unit) {
    let (seconds, part) = (value.div_euclid(unit.each_second()), value.rem_euclid(unit.each_second()));
    write(out, format_args!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60));
    if part != 0 {
        write(out, format_args!(".{part:0width$}", width = unit.digits()));
    }
}

fn push_moment(out: &mut String, days: i64, of_day: i64, unit: Unit) {
    out.push('"');
    push_date(out, days);
    out.push(' ');
    push_time(out, of_day, unit);
    out.push('"');
}

fn push_uuid(out: &mut String, bytes: &[u8]) {
    out.push('"');
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        write(out, format_args!("{byte:02x}"));
    }
    out.push('"');
}

/// A float of 16 bits, the lowest byte first.
fn half(bytes: &[u8]) -> Result<f32, String> {
    let Ok(bytes) = <[u8; 2]>::try_from(bytes) else { return Err("a float of 16 bits has two bytes".into()) };
    let bits = u16::from_le_bytes(bytes);
    let (exponent, mantissa) = (i32::from(bits >> 10 & 31), f32::from(bits & 1023));
    let value = match exponent {
        0 => mantissa * 2f32.powi(-24),
        31 if mantissa == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        exponent => (1024.0 + mantissa) * 2f32.powi(exponent - 25),
    };
    Ok(if bits >> 15 == 1 { -value } else { value })
}

/// A list, a struct or a map as a document.
pub fn push_nested(out: &mut String, field: &Field) {
    match field {
        Field::Null => out.push_str("null"),
        Field::Bool(value) => write(out, format_args!("{value}")),
        Field::Byte(value) => write(out, format_args!("{value}")),
        Field::Short(value) => write(out, format_args!("{value}")),
        Field::Int(value) => write(out, format_args!("{value}")),
        Field::Long(value) => write(out, format_args!("{value}")),
        Field::UByte(value) => write(out, format_args!("{value}")),
        Field::UShort(value) => write(out, format_args!("{value}")),
        Field::UInt(value) => write(out, format_args!("{value}")),
        Field::ULong(value) => write(out, format_args!("{value}")),
        Field::Float16(value) => push_float(out, f64::from(f32::from(*value))),
        Field::Float(value) if value.is_finite() => write(out, format_args!("{value:?}")),
        Field::Float(value) => push_float(out, f64::from(*value)),
        Field::Double(value) => push_float(out, *value),
        Field::Decimal(value) => push_decimal(out, value.data(), usize::try_from(value.scale()).unwrap_or(0)),
        Field::Str(value) => push_text(out, value),
        Field::Bytes(value) => {
            out.push('"');
            super::super::literal::push_hex(out, value.data());
            out.push('"');
        }
        Field::Date(days) => {
            out.push('"');
            push_date(out, i64::from(*days));
            out.push('"');
        }
        Field::TimeMillis(value) => {
            out.push('"');
            push_time(out, i64::from(*value), Unit::Milli);
            out.push('"');
        }
        Field::TimeMicros(value) => {
            out.push('"');
            push_time(out, *value, Unit::Micro);
            out.push('"');
        }
        Field::TimestampMillis(value) => {
            let day = Unit::Milli.each_second() * DAY;
            push_moment(out, value.div_euclid(day), value.rem_euclid(day), Unit::Milli);
        }
        Field::TimestampMicros(value) => {
            let day = Unit::Micro.each_second() * DAY;
            push_moment(out, value.div_euclid(day), value.rem_euclid(day), Unit::Micro);
        }
        Field::Group(row) => push_struct(out, row),
        Field::ListInternal(list) => {
            out.push('[');
            for (at, element) in list.elements().iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                push_nested(out, element);
            }
            out.push(']');
        }
        Field::MapInternal(map) => {
            out.push('{');
            for (at, (key, value)) in map.entries().iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                push_key(out, key);
                out.push(':');
                push_nested(out, value);
            }
            out.push('}');
        }
    }
}

fn push_float(out: &mut String, value: f64) {
    match value.is_finite() {
        true => write(out, format_args!("{value:?}")),
        false => write(out, format_args!("\"{value}\"")),
    }
}

/// Keys of objects are texts.
fn push_key(out: &mut String, key: &Field) {
    let mut text = String::new();
    push_nested(&mut text, key);
    match text.starts_with('"') {
        true => out.push_str(&text),
        false => push_text(out, &text),
    }
}

fn push_struct(out: &mut String, row: &Row) {
    out.push('{');
    for (at, (name, value)) in row.get_column_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        push_text(out, name);
        out.push(':');
        push_nested(out, value);
    }
    out.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(cell: Cell<'_>, kind: Kind) -> String {
        let mut out = String::new();
        push(&mut out, &cell, kind, Bytes::Text).expect("a value");
        out
    }

    #[test]
    fn decimals_keep_all_digits() {
        let decimal = |bytes: &[u8], scale| text(Cell::Bytes(bytes), Kind::Decimal { precision: 76, scale });
        assert_eq!(decimal(&[0x04, 0xD2], 2), "12.34");
        assert_eq!(decimal(&[0xFB, 0x2E], 2), "-12.34");
        assert_eq!(decimal(&[0], 3), "0.000");
        assert_eq!(decimal(&[0xFF], 3), "-0.001");
        assert_eq!(decimal(&[0x80], 0), "-128");
        assert_eq!(decimal(&[], 0), "0");
        assert_eq!(decimal(&i128::MIN.to_be_bytes(), 0), i128::MIN.to_string());
        assert_eq!(decimal(&i128::MAX.to_be_bytes(), 0), i128::MAX.to_string());
        assert_eq!(text(Cell::Integer(-5), Kind::Decimal { precision: 9, scale: 1 }), "-0.5");
        for number in [-1_000_000_007i128, 10, 99, 100, 1 << 70, -(1 << 90) + 3] {
            assert_eq!(decimal(&number.to_be_bytes(), 0), number.to_string());
        }
    }

    #[test]
    fn dates_and_times() {
        let date = |days| text(Cell::Integer(days), Kind::Date);
        assert_eq!((date(0), date(-1)), ("\"1970-01-01\"".into(), "\"1969-12-31\"".into()));
        assert_eq!((date(11_016), date(20_786)), ("\"2000-02-29\"".into(), "\"2026-11-29\"".into()));
        assert_eq!(date(2_932_896), "\"9999-12-31\"");
        assert_eq!(date(-719_528), "\"0000-01-01\"");
        let time = |value, unit| text(Cell::Integer(value), Kind::Time { unit });
        assert_eq!(time(86_399_999, Unit::Milli), "\"23:59:59.999\"");
        assert_eq!(time(1_000, Unit::Micro), "\"00:00:00.001000\"");
        assert_eq!(time(3_600_000_000_000, Unit::Nano), "\"01:00:00\"");
        let moment = |value, unit| text(Cell::Integer(value), Kind::Timestamp { unit, utc: true });
        assert_eq!(moment(-1, Unit::Micro), "\"1969-12-31 23:59:59.999999\"");
        assert_eq!(moment(1_500, Unit::Milli), "\"1970-01-01 00:00:01.500\"");
        assert_eq!(text(Cell::Legacy(1_000, 1), Kind::Legacy), "\"1970-01-02 00:00:00.000001000\"");
    }

    #[test]
    fn numbers_and_texts() {
        assert_eq!(text(Cell::Integer(-1), Kind::Unsigned { bits: 64 }), u64::MAX.to_string());
        assert_eq!(text(Cell::Integer(-1), Kind::Unsigned { bits: 32 }), u32::MAX.to_string());
        assert_eq!(text(Cell::Float(0.1), Kind::Number), "0.1");
        assert_eq!(text(Cell::Double(1e300), Kind::Number), "1e300");
        assert_eq!(text(Cell::Double(f64::NAN), Kind::Number), "\"NaN\"");
        assert_eq!(text(Cell::Bytes(&[0x00, 0x3C]), Kind::Half), "1.0");
        assert_eq!(text(Cell::Bytes(&[0x01, 0x80]), Kind::Half), "-5.9604645e-8");
        assert_eq!(text(Cell::Bytes("a\"\n".as_bytes()), Kind::Text), "\"a\\\"\\n\"");
        let uuid: Vec<u8> = (0..16).collect();
        assert_eq!(text(Cell::Bytes(&uuid), Kind::Uuid), "\"00010203-0405-0607-0809-0a0b0c0d0e0f\"");
        let push_as = |value: &[u8], bytes| {
            let mut out = String::new();
            push(&mut out, &Cell::Bytes(value), Kind::Bytes, bytes).map(|()| out)
        };
        assert_eq!(push_as(b"\x00\xFF", Bytes::Hex), Ok("\"00FF\"".into()));
        assert!(push_as(b"\xFF", Bytes::Text).expect_err("not UTF-8").contains("0xFF"));
    }
}
