//! Values as MySQL prints them, and numbers as MySQL reads them from text.
//!
//! Doubles print in the shortest form that reads back as the same number: plain digits while the decimal point lies within 15 places of the
//! first digit, else `1.5e20`; negative zero is `-0`. FLOAT columns print six significant digits. Both as MySQL's `my_gcvt`.
//!
//! Reading takes what looks like a number at the beginning of a text and says how much that was; whether the rest
//! is worth a warning is the caller's decision. Nothing here allocates, apart from the growth of output buffers.

use crate::{DataType, DateTime, TypeKind, ValueRef};
use std::fmt::{self, Write as _};
use std::io::Write as _;

/// A short ASCII text on the stack: a number in any of MySQL's forms.
pub struct Digits {
    bytes: [u8; 48],
    length: usize,
}

impl fmt::Write for Digits {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

impl Default for Digits {
    fn default() -> Self {
        Digits::new()
    }
}

impl Digits {
    pub fn new() -> Self {
        Digits { bytes: [0; 48], length: 0 }
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).expect("ASCII")
    }

    fn push(&mut self, text: &[u8]) {
        self.bytes[self.length..self.length + text.len()].copy_from_slice(text);
        self.length += text.len();
    }

    fn push_zeros(&mut self, count: usize) {
        self.bytes[self.length..self.length + count].fill(b'0');
        self.length += count;
    }

    /// The shortest form of a double: `0.1`, `1e20`, `-0`. Infinities and NaN, which no column holds, print as Rust has them.
    pub fn push_shortest(&mut self, value: f64) {
        // Whole numbers are common, and their digits are those of an integer.
        if value.abs() < 1e15 && value.trunc() == value && (value != 0.0 || value.is_sign_positive()) {
            write!(self, "{}", value as i64).expect("at most 16 bytes");
            return;
        }
        let mut scientific = Digits::new();
        write!(scientific, "{value:e}").expect("at most 25 bytes");
        self.push_scientific(scientific.as_bytes());
    }

    /// Six significant digits: how FLOAT columns print.
    pub fn push_float(&mut self, value: f64) {
        let mut scientific = Digits::new();
        write!(scientific, "{value:.5e}").expect("at most 14 bytes");
        self.push_scientific(scientific.as_bytes());
    }

    /// Rewrites `[-]d[.ddd]e[-]dd` in MySQL's form.
    fn push_scientific(&mut self, text: &[u8]) {
        // The largest and smallest exponent that prints without `e`.
        const PLAIN: std::ops::RangeInclusive<i32> = -15..=14;
        let Some(e) = text.iter().position(|b| *b == b'e') else { return self.push(text) };
        let (mantissa, exponent) = (&text[..e], &text[e + 1..]);
        let exponent: i32 = std::str::from_utf8(exponent).expect("ASCII").parse().expect("an exponent");
        let (sign, mantissa) = match mantissa.split_first() {
            Some((b'-', rest)) => (true, rest),
            _ => (false, mantissa),
        };
        // First digit and the others, without zeros at the end.
        let mut digits = [0u8; 24];
        let mut count = 0;
        for digit in mantissa.iter().filter(|b| **b != b'.') {
            digits[count] = *digit;
            count += 1;
        }
        while count > 1 && digits[count - 1] == b'0' {
            count -= 1;
        }
        let digits = &digits[..count];
        if sign {
            self.push(b"-");
        }
        if !PLAIN.contains(&exponent) {
            self.push(&digits[..1]);
            if count > 1 {
                self.push(b".");
                self.push(&digits[1..]);
            }
            self.push(b"e");
            write!(self, "{exponent}").expect("room for an exponent");
        } else if exponent < 0 {
            self.push(b"0.");
            self.push_zeros((-exponent - 1) as usize);
            self.push(digits);
        } else {
            let whole = exponent as usize + 1;
            self.push(&digits[..whole.min(count)]);
            self.push_zeros(whole.saturating_sub(count));
            if count > whole {
                self.push(b".");
                self.push(&digits[whole..]);
            }
        }
    }
}

const PAIRS: &[u8; 200] = b"0001020304050607080910111213141516171819\
2021222324252627282930313233343536373839\
4041424344454647484950515253545556575859\
6061626364656667686970717273747576777879\
8081828384858687888990919293949596979899";

/// Appends an unsigned integer.
pub fn append_u64(mut value: u64, out: &mut Vec<u8>) {
    let mut buffer = [0u8; 20];
    let mut at = buffer.len();
    while value >= 100 {
        let pair = (value % 100) as usize * 2;
        value /= 100;
        at -= 2;
        buffer[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    if value >= 10 {
        at -= 2;
        buffer[at..at + 2].copy_from_slice(&PAIRS[value as usize * 2..value as usize * 2 + 2]);
    } else {
        at -= 1;
        buffer[at] = b'0' + value as u8;
    }
    out.extend_from_slice(&buffer[at..]);
}

/// Appends a signed integer.
pub fn append_i64(value: i64, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    append_u64(value.unsigned_abs(), out);
}

/// Appends a DOUBLE in its shortest form.
pub fn append_f64(value: f64, out: &mut Vec<u8>) {
    let mut digits = Digits::new();
    digits.push_shortest(value);
    out.extend_from_slice(digits.as_bytes());
}

/// Appends the text form of a value of type `ty`, as the text protocol, CAST AS CHAR and CONCAT have it
/// (`1.50` for DECIMAL(5,2), `1e20` for a large DOUBLE, `2024-01-01 00:00:00.000` for DATETIME(3)). NULL appends nothing. A
/// TIMESTAMP is printed in UTC: SQL turns it into a DATETIME of the session's time zone before.
pub fn append_text(value: ValueRef<'_>, ty: &DataType, out: &mut Vec<u8>) {
    if ty.has_own_text() {
        return append_own_text(value, ty, out);
    }
    append_plain(value, ty, out);
}

/// Of BIT, YEAR, ENUM, SET and ZEROFILL, whose values are numbers. Anything else beside such a type is text already.
fn append_own_text(value: ValueRef<'_>, ty: &DataType, out: &mut Vec<u8>) {
    let start = out.len();
    match (ty.kind, value, ty.members) {
        (TypeKind::Enum, ValueRef::UInt(number), Some(members)) => {
            out.extend_from_slice(members.text(number).as_bytes());
        }
        (TypeKind::Set, ValueRef::UInt(bits), Some(members)) => members.append_set(bits, out),
        (TypeKind::Bit, ValueRef::UInt(bits), _) => {
            let bytes = (ty.length.div_ceil(8) as usize).clamp(1, 8);
            out.extend_from_slice(&bits.to_be_bytes()[8 - bytes..]);
        }
        (TypeKind::Year, ValueRef::UInt(year), _) => write!(out, "{year:04}").expect("writing to memory"),
        _ => {
            append_plain(value, &DataType { zerofill: false, ..*ty }, out);
            let missing = (display_width(ty) as usize).saturating_sub(out.len() - start);
            if ty.zerofill && !value.is_null() {
                out.splice(start..start, std::iter::repeat_n(b'0', missing));
            }
        }
    }
}

/// Characters to which ZEROFILL pads a number: the width that was declared, or that of the type.
pub fn display_width(ty: &DataType) -> u32 {
    let width = |own: u32| if ty.length > 0 { ty.length } else { own };
    match ty.kind {
        TypeKind::TinyInt => width(3),
        TypeKind::SmallInt => width(5),
        TypeKind::MediumInt => width(8),
        TypeKind::Int => width(10),
        TypeKind::BigInt => width(20),
        TypeKind::Decimal => u32::from(ty.precision) + u32::from(ty.scale > 0),
        TypeKind::Float if ty.scale < 31 => ty.precision.into(),
        TypeKind::Float => 12,
        TypeKind::Double if ty.scale < 31 => ty.precision.into(),
        TypeKind::Double => 22,
        _ => 0,
    }
}

fn append_plain(value: ValueRef<'_>, ty: &DataType, out: &mut Vec<u8>) {
    let fsp = if ty.is_temporal() { ty.scale } else { 6 };
    match value {
        ValueRef::Null => {}
        ValueRef::Int(v) => append_i64(v, out),
        ValueRef::UInt(v) => append_u64(v, out),
        ValueRef::Double(v) => append_double(v, ty, out),
        ValueRef::Decimal(v) if ty.kind == TypeKind::Decimal => v.rescale(ty.scale).unwrap_or(v).append_text(out),
        ValueRef::Decimal(v) => v.append_text(out),
        ValueRef::Date(v) => v.append_text(out),
        ValueRef::Time(v) => v.append_text(fsp, out),
        ValueRef::DateTime(v) => v.append_text(fsp, out),
        ValueRef::Timestamp(v) => timestamp_utc(v).append_text(fsp, out),
        ValueRef::Str(v) => out.extend_from_slice(v.as_bytes()),
        ValueRef::Bytes(v) => out.extend_from_slice(v),
        ValueRef::Json(v) => v.append_shown(out),
    }
}

/// The date and time in UTC of a stored TIMESTAMP; 0 is the zero date.
pub fn timestamp_utc(micros: i64) -> DateTime {
    match micros {
        0 => DateTime::ZERO,
        _ => DateTime::from_unix_micros_utc(micros).unwrap_or(DateTime::ZERO),
    }
}

fn append_double(value: f64, ty: &DataType, out: &mut Vec<u8>) {
    /// The scale of a FLOAT or DOUBLE declared without one.
    const NOT_FIXED: u8 = 31;
    let is_float = ty.kind == TypeKind::Float;
    if (is_float || ty.kind == TypeKind::Double) && ty.scale < NOT_FIXED {
        write!(out, "{value:.*}", usize::from(ty.scale)).expect("writing to memory");
        return;
    }
    let mut digits = Digits::new();
    if is_float {
        digits.push_float(value);
    } else {
        digits.push_shortest(value);
    }
    out.extend_from_slice(digits.as_bytes());
}

/// A number read from the beginning of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParsedNumber<T> {
    /// Zero when there is no number.
    pub value: T,
    /// Bytes that belong to the number, spaces before it included; 0: there is none.
    pub consumed: usize,
    /// Something other than spaces follows, or there is no number: MySQL warns (1292, 1366).
    pub trailing: bool,
    /// The number was too large and `value` is the nearest that fits.
    pub overflow: bool,
}

/// White space that MySQL skips around numbers.
fn is_space(byte: &u8) -> bool {
    *byte == b' ' || (9..=13).contains(byte)
}

fn skip_sign(text: &[u8]) -> (bool, usize) {
    let at = text.iter().take_while(|b| is_space(b)).count();
    match text.get(at) {
        Some(b'-') => (true, at + 1),
        Some(b'+') => (false, at + 1),
        _ => (false, at),
    }
}

/// Reads `[spaces][sign]digits` (no point, no exponent), as CAST('12abc' AS SIGNED) does. The value lies between
/// `i64::MIN` and `u64::MAX`; beyond, it is clipped there and `overflow` set.
pub fn parse_int_prefix(text: &[u8]) -> ParsedNumber<i128> {
    let (negative, start) = skip_sign(text);
    let limit: u64 = if negative { i64::MIN.unsigned_abs() } else { u64::MAX };
    let mut value = 0u64;
    let mut overflow = false;
    let mut at = start;
    while let Some(digit) = text.get(at).filter(|b| b.is_ascii_digit()) {
        match value.checked_mul(10).and_then(|v| v.checked_add(u64::from(digit - b'0'))).filter(|v| *v <= limit) {
            Some(larger) => value = larger,
            None => overflow = true,
        }
        if overflow {
            value = limit;
        }
        at += 1;
    }
    if at == start {
        return ParsedNumber { value: 0, consumed: 0, trailing: true, overflow: false };
    }
    let value = if negative { -i128::from(value) } else { i128::from(value) };
    ParsedNumber { value, consumed: at, trailing: !text[at..].iter().all(is_space), overflow }
}

/// Reads `[spaces][sign]digits[.digits][e[sign]digits]`, as every use of a string as a number does. Too large numbers become
/// ±`f64::MAX` with `overflow` set; too small ones are zero.
pub fn parse_double_prefix(text: &[u8]) -> ParsedNumber<f64> {
    let (negative, start) = skip_sign(text);
    let digits = |from: usize| text[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let whole = digits(start);
    let mut at = start + whole;
    let mut fraction = 0;
    if text.get(at) == Some(&b'.') {
        fraction = digits(at + 1);
        if whole + fraction > 0 {
            at += 1 + fraction;
        }
    }
    if whole + fraction == 0 {
        return ParsedNumber { value: 0.0, consumed: 0, trailing: true, overflow: false };
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        let exponent = if at + 1 + sign <= text.len() { digits(at + 1 + sign) } else { 0 };
        if exponent > 0 {
            at += 1 + sign + exponent;
        }
    }
    let trailing = !text[at..].iter().all(is_space);
    let magnitude: f64 = std::str::from_utf8(&text[start..at])
        .expect("digits, point and exponent")
        .parse()
        .expect("Rust reads all that was accepted");
    let overflow = magnitude.is_infinite();
    let magnitude = magnitude.min(f64::MAX);
    ParsedNumber { value: if negative { -magnitude } else { magnitude }, consumed: at, trailing, overflow }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Collation, Date};

    fn double(value: f64) -> String {
        let mut out = Vec::new();
        append_f64(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn text(value: ValueRef<'_>, ty: DataType) -> String {
        let mut out = Vec::new();
        append_text(value, &ty, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn doubles_print_as_mysql_does() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (0.1, "0.1"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (100.0, "100"),
            (1e14, "100000000000000"),
            (1e15, "1e15"),
            (123456789012345.0, "123456789012345"),
            (1234567890123456.0, "1.234567890123456e15"),
            (1e20, "1e20"),
            (1.5e300, "1.5e300"),
            (f64::MAX, "1.7976931348623157e308"),
            (5e-324, "5e-324"),
            (1e-15, "0.000000000000001"),
            (1e-16, "1e-16"),
            (0.3333333333333333, "0.3333333333333333"),
            (12345.678, "12345.678"),
        ] {
            assert_eq!(double(value), expected);
        }
    }

    /// Doubles of all sizes as MariaDB 10.11 shows them in DOUBLE and FLOAT columns; but for -0, which only MySQL prints as such (`-`: left out).
    #[test]
    fn doubles_and_floats_print_as_mariadb_does() {
        for line in include_str!("format/mariadb_10_11_doubles.tsv").lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let value = f64::from_bits(u64::from_str_radix(fields[0], 16).unwrap());
            assert_eq!(double(value), fields[1]);
            if fields[2] != "-" {
                assert_eq!(text(ValueRef::Double((value as f32).into()), DataType::new(TypeKind::Float)), fields[2]);
            }
        }
    }

    #[test]
    fn floats_print_six_digits() {
        let float = DataType::new(TypeKind::Float);
        for (value, expected) in [
            (1.0f32 / 3.0, "0.333333"),
            (16777216.0, "16777200"),
            (0.1, "0.1"),
            (3.4028235e38, "3.40282e38"),
            (1e10, "10000000000"),
            (1e-10, "0.0000000001"),
        ] {
            assert_eq!(text(ValueRef::Double(value.into()), float), expected);
        }
        assert_eq!(text(ValueRef::Double(1.005), DataType { scale: 2, ..DataType::DOUBLE }), "1.00");
    }

    #[test]
    fn other_types_print_by_their_type() {
        assert_eq!(text(ValueRef::Int(i64::MIN), DataType::BIGINT), "-9223372036854775808");
        assert_eq!(text(ValueRef::UInt(u64::MAX), DataType::BIGINT_UNSIGNED), "18446744073709551615");
        assert_eq!(text(ValueRef::UInt(7), DataType::BIGINT_UNSIGNED), "7");
        assert_eq!(text(ValueRef::Decimal("1.5".parse().unwrap()), DataType::decimal(5, 2)), "1.50");
        assert_eq!(text(ValueRef::Decimal("0.666666666".parse().unwrap()), DataType::decimal(5, 4)), "0.6667");
        let date = Date::new(2024, 1, 1).unwrap();
        assert_eq!(text(ValueRef::Date(date), DataType::new(TypeKind::Date)), "2024-01-01");
        let seconds = DataType { scale: 3, ..DataType::new(TypeKind::DateTime) };
        assert_eq!(text(ValueRef::DateTime(date.at_midnight()), seconds), "2024-01-01 00:00:00.000");
        assert_eq!(text(ValueRef::Timestamp(0), DataType::new(TypeKind::Timestamp)), "0000-00-00 00:00:00");
        assert_eq!(text(ValueRef::Timestamp(1_000_000), DataType::new(TypeKind::Timestamp)), "1970-01-01 00:00:01");
        assert_eq!(text(ValueRef::Str("ä"), DataType::varchar(1, Collation::DEFAULT)), "ä");
        assert_eq!(text(ValueRef::Null, DataType::BIGINT), "");
    }

    #[test]
    fn integers_are_read_from_text() {
        let parsed = |text: &str| {
            let p = parse_int_prefix(text.as_bytes());
            (p.value, p.trailing, p.overflow)
        };
        assert_eq!(parsed("12"), (12, false, false));
        assert_eq!(parsed("  -12  "), (-12, false, false));
        assert_eq!(parsed("12abc"), (12, true, false));
        assert_eq!(parsed("1.9"), (1, true, false));
        assert_eq!(parsed("abc"), (0, true, false));
        assert_eq!(parsed(""), (0, true, false));
        assert_eq!(parsed("18446744073709551615"), (u64::MAX.into(), false, false));
        assert_eq!(parsed("18446744073709551616"), (u64::MAX.into(), false, true));
        assert_eq!(parsed("-9223372036854775808"), (i64::MIN.into(), false, false));
        assert_eq!(parsed("-99999999999999999999"), (i64::MIN.into(), false, true));
    }

    #[test]
    fn doubles_are_read_from_text() {
        let parsed = |text: &str| {
            let p = parse_double_prefix(text.as_bytes());
            (p.value, p.consumed, p.trailing, p.overflow)
        };
        assert_eq!(parsed("1.5e3"), (1500.0, 5, false, false));
        assert_eq!(parsed(" -.5x"), (-0.5, 4, true, false));
        assert_eq!(parsed("5."), (5.0, 2, false, false));
        assert_eq!(parsed("1e"), (1.0, 1, true, false));
        assert_eq!(parsed("1e+"), (1.0, 1, true, false));
        assert_eq!(parsed("."), (0.0, 0, true, false));
        assert_eq!(parsed("inf"), (0.0, 0, true, false));
        assert_eq!(parsed("1e999"), (f64::MAX, 5, false, true));
        assert_eq!(parsed("-1e999"), (f64::MIN, 6, false, true));
        assert_eq!(parsed("1e-999"), (0.0, 6, false, false));
    }
}
