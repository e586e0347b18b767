//! Values into columns, as INSERT and UPDATE store them.
//!
//! What loses data is an error in a strict statement ([`Context::strict_statement`]) and a warning otherwise, and then the nearest value is stored: the
//! end of the range, the beginning of the text, the zero date. Digits behind the last that a DECIMAL or a date holds are rounded in silence (a
//! DECIMAL notes it). Messages are MySQL's, with column and row.
//!
//! NULL stays NULL: whether the column takes it is the caller's question.

mod plain;

use super::Context;
use super::context::WarningLevel;
use super::convert::{self, Result, shown};
use super::json;
use super::types::is_hex;
use plain::{bits, enumerated, set, year};
use rauk_types::charset::Decoded;
use rauk_types::datetime::{self, DateFlags, TemporalError};
use rauk_types::error::codes;
use rauk_types::format::{parse_double_prefix, timestamp_utc};
use rauk_types::schema::MAX_LOB_BYTES;
use rauk_types::{Charset, Column, DataType, Date, DateTime, Decimal, MysqlError, Time, TypeKind, Value, ValueRef};

pub(crate) use plain::{member_number, year_number};

/// Where a value goes, for the messages.
struct Target<'a> {
    column: &'a Column,
    row: u64,
    context: &'a mut Context,
}

impl Target<'_> {
    fn place(&self) -> String {
        format!("column '{}' at row {}", self.column.name, self.row)
    }

    /// An error when strict, else a warning, and the value that is stored instead.
    fn lossy(&mut self, code: u16, message: String, stored: Value) -> Result<Value> {
        self.context.warn_or_fail(code, message)?;
        Ok(stored)
    }

    fn out_of_range(&mut self, stored: Value) -> Result<Value> {
        let message = format!("Out of range value for {}", self.place());
        self.lossy(codes::WARN_DATA_OUT_OF_RANGE, message, stored)
    }

    fn truncated(&mut self, stored: Value) -> Result<Value> {
        let message = format!("Data truncated for {}", self.place());
        self.lossy(codes::WARN_DATA_TRUNCATED, message, stored)
    }

    /// `Incorrect integer value: 'abc' for column 'i' at row 1`
    fn incorrect(&mut self, kind: &str, value: &[u8], stored: Value) -> Result<Value> {
        let message = format!("Incorrect {kind} value: '{}' for {}", shown(value), self.place());
        self.lossy(codes::TRUNCATED_WRONG_VALUE_FOR_FIELD, message, stored)
    }

    /// A date or time that is none: error 1292 when strict, else a warning that says whether something was cut off or was out of range.
    fn incorrect_date(&mut self, kind: &str, value: &[u8], range: bool, stored: Value) -> Result<Value> {
        if self.context.strict_statement {
            return Err(MysqlError::new(
                codes::TRUNCATED_WRONG_VALUE,
                format!("Incorrect {kind} value: '{}' for {}", shown(value), self.place()),
            ));
        }
        if range { self.out_of_range(stored) } else { self.truncated(stored) }
    }

    fn note_truncated(&mut self) {
        let message = format!("Data truncated for {}", self.place());
        self.context.push_warning(WarningLevel::Note, codes::WARN_DATA_TRUNCATED, message);
    }

    fn flags(&self) -> DateFlags {
        // Without strictness, zero dates are stored with a warning.
        self.context.sql_mode.date_flags(true)
    }
}

/// Converts a value of type `from` for storing into a column of type `to`, as INSERT and UPDATE do: strict sql_mode makes errors 1264, 1265, 1292, 1366, 1406
/// (naming column and row), otherwise the value is clipped and a warning noted.
pub fn convert_for_column(
    value: Value,
    from: &DataType,
    column: &Column,
    row_number: u64,
    context: &mut Context,
) -> Result<Value> {
    let to = &column.ty;
    // What needs no conversion: most of what is stored.
    match (&value, to.kind) {
        (Value::Null, _) => return Ok(value),
        (Value::Int(v), _) if !to.unsigned => match to.kind {
            TypeKind::BigInt => return Ok(value),
            TypeKind::Int if i32::try_from(*v).is_ok() => return Ok(value),
            _ => {}
        },
        (Value::Str(text), TypeKind::VarChar)
            if text.len() <= to.length as usize && to.collation.charset().lacks(text).is_none() =>
        {
            return Ok(value);
        }
        (Value::Timestamp(_), TypeKind::Timestamp) => return Ok(value),
        _ => {}
    }
    if matches!(value, Value::Json(_)) && to.kind != TypeKind::Json {
        let (value, from) = json::store::plain_for(value, column)?;
        return convert_for_column(value, &from, column, row_number, context);
    }
    let mut target = Target { column, row: row_number, context };
    if from.has_members() && value.as_ref().as_integer().is_some() {
        if to == from {
            return Ok(value);
        }
        // The error value is one of every ENUM.
        if from.kind == TypeKind::Enum && to.kind == TypeKind::Enum && value.as_ref().as_integer() == Some(0) {
            return Ok(Value::UInt(0));
        }
        if !(to.is_numeric() || matches!(to.kind, TypeKind::Bit | TypeKind::Year)) {
            let text = Value::Str(convert::text(value.as_ref(), from).into_owned());
            let from = DataType::varchar(u32::MAX, from.collation);
            return convert_for_column(text, &from, column, row_number, context);
        }
    }
    match to.kind {
        TypeKind::Null => Ok(value),
        TypeKind::Enum => enumerated(value.as_ref(), from, to, &mut target),
        TypeKind::Set => set(value.as_ref(), from, to, &mut target),
        TypeKind::Bit => bits(value.as_ref(), to, &mut target),
        TypeKind::Year => year(value.as_ref(), from, &mut target),
        TypeKind::Decimal => decimal(number(&value, from), to, &mut target),
        TypeKind::Float | TypeKind::Double => double(number(&value, from), to, &mut target),
        TypeKind::Date => date(value.as_ref(), &mut target),
        TypeKind::Time => time(value.as_ref(), to, &mut target),
        TypeKind::DateTime => date_time(value.as_ref(), from, to, &mut target),
        TypeKind::Timestamp => timestamp(value.as_ref(), from, to, &mut target),
        TypeKind::Json => json::store::document(value, from, column, target.context),
        TypeKind::Geometry => geometry(value, from, column, row_number),
        _ if to.is_integer() => integer(number(&value, from), to, &mut target),
        _ if to.is_text() => text(value, from, to, &mut target),
        _ => bytes(value, from, to, &mut target),
    }
}

fn integer_value(number: i128, to: &DataType) -> Value {
    if to.unsigned { Value::UInt(number as u64) } else { Value::Int(number as i64) }
}

fn ranged_integer(number: i128, to: &DataType, target: &mut Target<'_>) -> Result<Value> {
    let (low, high) = to.integer_range().expect("an integer type");
    let clipped = number.clamp(low, high);
    let stored = integer_value(clipped, to);
    if clipped == number { Ok(stored) } else { target.out_of_range(stored) }
}

/// A value for a numeric column: a hexadecimal or bit literal is a number, one of more than eight bytes out of range.
fn number<'v>(value: &'v Value, from: &DataType) -> ValueRef<'v> {
    match value.as_ref() {
        ValueRef::Bytes(bytes) if is_hex(from) && bytes.len() > 8 => ValueRef::Double(f64::INFINITY),
        ValueRef::Bytes([]) => ValueRef::Bytes(&[]),
        value => convert::as_number(value, from),
    }
}

fn integer(value: ValueRef<'_>, to: &DataType, target: &mut Target<'_>) -> Result<Value> {
    match value {
        ValueRef::Int(v) => ranged_integer(v.into(), to, target),
        ValueRef::UInt(v) => ranged_integer(v.into(), to, target),
        // The DOUBLE beside the largest BIGINT is taken for it.
        ValueRef::Double(v) if v == -(i64::MIN as f64) && to.kind == TypeKind::BigInt && !to.unsigned => {
            Ok(Value::Int(i64::MAX))
        }
        ValueRef::Double(v) => {
            // Beyond what i128 holds the cast clips, which is out of range for every column.
            ranged_integer(v.round_ties_even() as i128, to, target)
        }
        // What is less than zero is out of range, also where it would be rounded to zero.
        ValueRef::Decimal(v) if to.unsigned && v.is_negative() => ranged_integer(-1, to, target),
        ValueRef::Decimal(v) => {
            let number = v.to_i128().unwrap_or(if v.is_negative() { i128::MIN } else { i128::MAX });
            ranged_integer(number, to, target)
        }
        ValueRef::Str(_) | ValueRef::Bytes(_) => {
            let text = value.as_bytes().unwrap_or_default();
            let parsed = Decimal::parse_prefix(text);
            if parsed.consumed == 0 {
                return target.incorrect("integer", text, integer_value(0, to));
            }
            let beyond = if parsed.value.is_negative() { i128::MIN } else { i128::MAX };
            let stored = parsed.value.to_i128().unwrap_or(beyond);
            let (low, high) = to.integer_range().expect("an integer type");
            // Out of range says enough.
            if !(low..=high).contains(&stored) {
                return ranged_integer(stored, to, target);
            }
            let stored = integer_value(stored, to);
            if text[parsed.consumed..].iter().all(u8::is_ascii_whitespace) {
                return Ok(stored);
            }
            target.truncated(stored)
        }
        temporal => {
            let number = convert::to_integer(temporal, target.context)?;
            ranged_integer(number, to, target)
        }
    }
}

fn decimal(value: ValueRef<'_>, to: &DataType, target: &mut Target<'_>) -> Result<Value> {
    let number = match value {
        ValueRef::Str(_) | ValueRef::Bytes(_) => {
            let text = value.as_bytes().unwrap_or_default();
            let parsed = Decimal::parse_prefix(text);
            if parsed.consumed == 0 {
                return target.incorrect("decimal", text, Value::Decimal(Decimal::new(0, to.scale)));
            }
            if !text[parsed.consumed..].iter().all(u8::is_ascii_whitespace) {
                // Before the range, as MySQL reports it.
                target.truncated(Value::Null)?;
                return fitted(parsed.value, to, target);
            }
            parsed.value
        }
        ValueRef::Double(v) => match Decimal::from_f64(v) {
            Ok(number) => number,
            Err(_) => {
                let largest = Decimal::largest(to.precision, to.scale);
                return target.out_of_range(Value::Decimal(if v < 0.0 { -largest } else { largest }));
            }
        },
        other => convert::to_decimal(other, target.context)?,
    };
    let stored = fitted(number, to, target)?;
    if to.unsigned && number.is_negative() {
        // Out of range says enough.
        return Ok(stored);
    }
    // Only exact numbers note what they lose; doubles are never exact.
    let rounded = number.rounded(to.scale);
    let exact = !matches!(value, ValueRef::Double(_));
    if exact && rounded != number && matches!(&stored, Value::Decimal(kept) if *kept == rounded) {
        target.note_truncated();
    }
    Ok(stored)
}

fn fitted(number: Decimal, to: &DataType, target: &mut Target<'_>) -> Result<Value> {
    // Also what would be rounded to zero.
    if to.unsigned && number.is_negative() {
        return target.out_of_range(Value::Decimal(Decimal::new(0, to.scale)));
    }
    match number.to_precision(to.precision, to.scale) {
        Ok(kept) => Ok(Value::Decimal(kept)),
        Err(_) => {
            let largest = Decimal::largest(to.precision, to.scale);
            target.out_of_range(Value::Decimal(if number.is_negative() { -largest } else { largest }))
        }
    }
}

fn double(value: ValueRef<'_>, to: &DataType, target: &mut Target<'_>) -> Result<Value> {
    let (number, lost, beyond) = match value {
        ValueRef::Str(_) | ValueRef::Bytes(_) => {
            let parsed = parse_double_prefix(value.as_bytes().unwrap_or_default());
            (parsed.value, parsed.trailing && !parsed.overflow, parsed.overflow)
        }
        other => (convert::to_f64(other, target.context)?, false, false),
    };
    // A number beyond DOUBLE is the largest there is.
    let mut ranged = number.is_finite() && !beyond;
    let mut stored = number.clamp(f64::MIN, f64::MAX);
    // Also what would be rounded to zero.
    if to.unsigned && stored < 0.0 {
        ranged = false;
        stored = 0.0;
    }
    // FLOAT(M,D), DOUBLE(M,D): rounded to D digits, at most M in all.
    if to.scale < 31 {
        let power = 10f64.powi(to.scale.into());
        let rounded = stored.floor() + ((stored - stored.floor()) * power).round_ties_even() / power;
        stored = if rounded.is_finite() { rounded } else { stored };
        if to.precision > 0 {
            let largest = 10f64.powi(i32::from(to.precision) - i32::from(to.scale)) - 1.0 / power;
            if stored.abs() > largest {
                ranged = false;
                stored = largest.copysign(stored);
            }
        }
    }
    if to.kind == TypeKind::Float {
        let single = stored as f32;
        ranged &= single.is_finite();
        stored = f64::from(if single.is_finite() { single } else { f32::MAX.copysign(single) });
    }
    // Negative zero prints as 0 once stored.
    let stored = Value::Double(if stored == 0.0 { 0.0 } else { stored });
    if lost {
        target.truncated(Value::Null)?;
    }
    if ranged { Ok(stored) } else { target.out_of_range(stored) }
}

/// A geometry of the kind and in the system that the column says; its bytes stay as they are. Errors: 1406, 1416, 3643.
fn geometry(value: Value, from: &DataType, column: &Column, row: u64) -> Result<Value> {
    let bytes = match value {
        Value::Bytes(bytes) => bytes,
        Value::Str(_) => convert::coded_bytes(value.as_ref(), from).into_owned(),
        _ => return Err(rauk_types::geometry::no_geometry()),
    };
    if bytes.len() > MAX_LOB_BYTES {
        let message = format!("Data too long for column '{}' at row {row}", column.name);
        return Err(MysqlError::new(codes::DATA_TOO_LONG, message));
    }
    rauk_types::geometry::check_column(column, &bytes)?;
    Ok(Value::Bytes(bytes))
}

// Text and bytes

fn text(value: Value, from: &DataType, to: &DataType, target: &mut Target<'_>) -> Result<Value> {
    let set = to.collation.charset();
    let content = match value {
        Value::Str(text) => text,
        Value::Bytes(bytes) if set.is_utf8mb4() => match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => return broken_text(&error.into_bytes(), set, target),
        },
        Value::Bytes(bytes) => match set.decode(&set.aligned(&bytes)) {
            Decoded { text, malformed: None } => text.into_owned(),
            _ => return broken_text(&bytes, set, target),
        },
        other => convert::text(other.as_ref(), from).into_owned(),
    };
    let content = match set.lacks(&content) {
        None => content,
        Some(at) => {
            // The bytes that are told are those of the text as it came.
            let rest = from.collation.charset().encode(&content[at..]);
            incorrect_text(&rest, target)?;
            convert::without(content.into(), set).into_owned()
        }
    };
    if to.is_lob() {
        let limit = (to.length as usize).min(MAX_LOB_BYTES);
        if content.len() <= limit
            || !set.is_utf8mb4() && set.length(&content) <= limit && content.len() <= MAX_LOB_BYTES
        {
            return Ok(Value::Str(content));
        }
        let mut taken = 0;
        let fits = |character: &char| {
            taken += set.length(character.encode_utf8(&mut [0; 4]));
            taken <= limit
        };
        let end = content.chars().take_while(fits).map(char::len_utf8).sum();
        return too_long(content, end, false, target);
    }
    let mut content = content;
    if to.kind == TypeKind::Char {
        // Padding is not stored.
        content.truncate(content.trim_end_matches(' ').len());
    }
    if content.len() <= to.length as usize {
        return Ok(Value::Str(content));
    }
    match content.char_indices().nth(to.length as usize) {
        None => Ok(Value::Str(content)),
        Some((end, _)) => too_long(content, end, true, target),
    }
}

/// Spaces may go, with a note; anything else is error 1406.
fn too_long(mut content: String, end: usize, characters: bool, target: &mut Target<'_>) -> Result<Value> {
    let only_spaces = characters && content[end..].bytes().all(|b| b == b' ');
    content.truncate(end);
    if only_spaces {
        target.note_truncated();
        return Ok(Value::Str(content));
    }
    length_error(Value::Str(content), target)
}

fn length_error(stored: Value, target: &mut Target<'_>) -> Result<Value> {
    if target.context.strict_statement {
        return Err(MysqlError::new(codes::DATA_TOO_LONG, format!("Data too long for {}", target.place())));
    }
    target.truncated(stored)
}

/// What is malformed in the set, and all behind it, is not stored.
fn broken_text(bytes: &[u8], set: Charset, target: &mut Target<'_>) -> Result<Value> {
    let valid = set.decode(bytes).malformed.unwrap_or(bytes.len());
    incorrect_text(&bytes[valid..], target)?;
    Ok(Value::Str(set.decode(&bytes[..valid]).text.into_owned()))
}

/// `Incorrect string value: '\xFF' for column 'c' at row 1`; `rest` begins with what is wrong.
fn incorrect_text(rest: &[u8], target: &mut Target<'_>) -> Result<()> {
    let mut shown: String = rest
        .iter()
        .take(6)
        .map(|b| if (0x20..0x7F).contains(b) { char::from(*b).to_string() } else { format!("\\x{b:02X}") })
        .collect();
    if rest.len() > 6 {
        shown.push_str("...");
    }
    let message = format!("Incorrect string value: '{shown}' for {}", target.place());
    target.context.warn_or_fail(codes::TRUNCATED_WRONG_VALUE_FOR_FIELD, message)
}

fn bytes(value: Value, from: &DataType, to: &DataType, target: &mut Target<'_>) -> Result<Value> {
    let mut content = match value {
        Value::Bytes(bytes) => bytes,
        Value::Str(text) if from.collation.charset().is_utf8mb4() || !from.is_text() => text.into_bytes(),
        other => convert::coded_bytes(other.as_ref(), from).into_owned(),
    };
    let limit = if to.is_lob() { (to.length as usize).min(MAX_LOB_BYTES) } else { to.length as usize };
    if content.len() > limit {
        content.truncate(limit);
        return length_error(Value::Bytes(content), target);
    }
    if to.kind == TypeKind::Binary {
        content.resize(limit, 0);
    }
    Ok(Value::Bytes(content))
}
// Dates and times

/// What a value is as a date and time: read strictly, nothing noted.
enum Read {
    Good {
        value: DateTime,
        round_up: bool,
    },
    /// Readable, but something was lost.
    Partly {
        value: DateTime,
    },
    /// `zero`: it is the zero date, which sql_mode forbids.
    Bad {
        zero: bool,
    },
}

fn read_date_time(value: ValueRef<'_>, target: &mut Target<'_>) -> Result<Read> {
    let flags = target.flags();
    let bad = |error: TemporalError| Read::Bad { zero: error == TemporalError::ZeroDate };
    let checked = |value: DateTime| match value.check(flags) {
        Ok(()) => Read::Good { value, round_up: false },
        Err(error) => bad(error),
    };
    Ok(match value {
        ValueRef::DateTime(v) => checked(v),
        ValueRef::Date(v) => checked(v.at_midnight()),
        ValueRef::Timestamp(v) => checked(timestamp_utc(v)),
        ValueRef::Time(_) => match convert::to_datetime(value, target.context)? {
            Some(value) => Read::Good { value, round_up: false },
            None => Read::Bad { zero: false },
        },
        ValueRef::Str(_) | ValueRef::Bytes(_) => {
            match datetime::parse_date_time(value.as_bytes().unwrap_or_default(), flags) {
                Err(error) => bad(error),
                Ok(parsed) => {
                    let local = match parsed.offset {
                        Some(offset) => match convert::from_offset(parsed.value, offset, target.context) {
                            Some(value) => value,
                            None => return Ok(Read::Bad { zero: false }),
                        },
                        None => parsed.value,
                    };
                    if parsed.truncated {
                        Read::Partly { value: local }
                    } else {
                        Read::Good { value: local, round_up: parsed.round_up }
                    }
                }
            }
        }
        number => {
            let number = convert::to_decimal(number, target.context)?;
            let whole = number.truncated(0).to_i64().unwrap_or(i64::MAX);
            match datetime::date_time_from_number(whole, flags) {
                Ok((date, _)) => match date.add_micros(convert::fraction_micros(&number)) {
                    Some(value) => Read::Good { value, round_up: false },
                    None if date.is_zero() => Read::Good { value: date, round_up: false },
                    None => Read::Bad { zero: false },
                },
                Err(error) => bad(error),
            }
        }
    })
}

fn printed(value: ValueRef<'_>, from: &DataType) -> Vec<u8> {
    convert::text_bytes(value, from).into_owned()
}

fn date(value: ValueRef<'_>, target: &mut Target<'_>) -> Result<Value> {
    let plain = DataType { scale: 0, ..DataType::new(TypeKind::DateTime) };
    match read_date_time(value, target)? {
        Read::Good { value: kept, .. } => {
            // A time of day is cut off, with a note.
            if kept.micros_of_day() != 0 && !matches!(value, ValueRef::Time(_)) {
                target.note_truncated();
            }
            Ok(Value::Date(kept.date()))
        }
        Read::Partly { value: kept } => {
            let shown = printed(value, &plain);
            target.incorrect_date("date", &shown, false, Value::Date(kept.date()))
        }
        Read::Bad { zero } => {
            let shown = match value {
                ValueRef::Date(d) => d.to_string().into_bytes(),
                other => printed(other, &plain),
            };
            target.incorrect_date("date", &shown, zero, Value::Date(Date::ZERO))
        }
    }
}

/// The value with the column's digits; `None` beyond the year 9999.
fn fraction(value: DateTime, round_up: bool, digits: u8, context: &Context) -> Option<DateTime> {
    if context.sql_mode.time_truncate_fractional {
        return Some(value.truncated(digits));
    }
    let value = if round_up { value.add_micros(1)? } else { value };
    value.rounded(digits)
}

fn date_time(value: ValueRef<'_>, from: &DataType, to: &DataType, target: &mut Target<'_>) -> Result<Value> {
    let shown = |v: ValueRef<'_>| printed(v, from);
    match read_date_time(value, target)? {
        Read::Good { value: kept, round_up } => match fraction(kept, round_up, to.scale, target.context) {
            Some(kept) => Ok(Value::DateTime(kept)),
            None => target.incorrect_date("datetime", &shown(value), true, Value::DateTime(DateTime::ZERO)),
        },
        Read::Partly { value: kept } => {
            let kept = fraction(kept, false, to.scale, target.context).unwrap_or(DateTime::ZERO);
            target.incorrect_date("datetime", &shown(value), false, Value::DateTime(kept))
        }
        Read::Bad { zero } => target.incorrect_date("datetime", &shown(value), zero, Value::DateTime(DateTime::ZERO)),
    }
}

fn timestamp(value: ValueRef<'_>, from: &DataType, to: &DataType, target: &mut Target<'_>) -> Result<Value> {
    let Value::DateTime(local) = date_time(value, from, to, target)? else { return Ok(Value::Timestamp(0)) };
    if local.is_zero() {
        return Ok(Value::Timestamp(0));
    }
    match local.to_unix_micros(&target.context.time_zone) {
        Some(unix) if unix.is_timestamp() && !unix.in_gap => Ok(Value::Timestamp(unix.micros)),
        Some(unix) if unix.is_timestamp() => {
            target.incorrect_date("datetime", &printed(value, from), false, Value::Timestamp(unix.micros))
        }
        _ => target.incorrect_date("datetime", &printed(value, from), true, Value::Timestamp(0)),
    }
}

fn time(value: ValueRef<'_>, to: &DataType, target: &mut Target<'_>) -> Result<Value> {
    let truncate = target.context.sql_mode.time_truncate_fractional;
    let fitted = |time: Time| if truncate { time.truncated(to.scale) } else { time.rounded(to.scale) };
    match value {
        ValueRef::Time(v) => Ok(Value::Time(fitted(v))),
        ValueRef::DateTime(v) => {
            if !v.date().is_zero() {
                target.note_truncated();
            }
            Ok(Value::Time(fitted(v.time())))
        }
        ValueRef::Date(_) => {
            target.note_truncated();
            Ok(Value::Time(Time::ZERO))
        }
        ValueRef::Timestamp(v) => Ok(Value::Time(fitted(timestamp_utc(v).time()))),
        ValueRef::Str(_) | ValueRef::Bytes(_) => {
            let text = value.as_bytes().unwrap_or_default();
            match datetime::parse_time(text) {
                Ok(parsed) => {
                    let stored = Value::Time(parsed.to_precision(to.scale, truncate));
                    if parsed.truncated || parsed.out_of_range {
                        return target.incorrect_date("time", text, parsed.out_of_range, stored);
                    }
                    if parsed.date.is_some_and(|d| !d.is_zero()) {
                        target.note_truncated();
                    }
                    Ok(stored)
                }
                Err(_) => target.incorrect_date("time", text, false, Value::Time(Time::ZERO)),
            }
        }
        number => {
            let number = convert::to_decimal(number, target.context)?;
            let whole = number.truncated(0).to_i64().unwrap_or(i64::MAX);
            match datetime::time_from_number(whole) {
                Ok(time) => Ok(Value::Time(fitted(Time::clipped(time.micros() + convert::fraction_micros(&number))))),
                Err(error) => {
                    let stored = match error {
                        TemporalError::OutOfRange if whole < 0 => Time::MIN,
                        TemporalError::OutOfRange => Time::MAX,
                        _ => Time::ZERO,
                    };
                    let range = error == TemporalError::OutOfRange;
                    target.incorrect_date("time", number.to_string().as_bytes(), range, Value::Time(stored))
                }
            }
        }
    }
}

/// What a column without a default gets where that is no error.
pub(crate) fn type_zero(ty: &DataType) -> Value {
    match ty.kind {
        TypeKind::Null => Value::Null,
        TypeKind::TinyInt | TypeKind::SmallInt | TypeKind::MediumInt | TypeKind::Int | TypeKind::BigInt => {
            if ty.unsigned { Value::UInt(0) } else { Value::Int(0) }
        }
        // The first member.
        TypeKind::Enum => Value::UInt(1),
        TypeKind::Set | TypeKind::Bit | TypeKind::Year => Value::UInt(0),
        TypeKind::Float | TypeKind::Double => Value::Double(0.0),
        TypeKind::Decimal => Value::Decimal(Decimal::new(0, ty.scale)),
        TypeKind::Date => Value::Date(Date::from_packed(0)),
        TypeKind::Time => Value::Time(Time::clipped(0)),
        TypeKind::DateTime => Value::DateTime(DateTime::ZERO),
        TypeKind::Timestamp => Value::Timestamp(0),
        TypeKind::Binary => Value::Bytes(vec![0; ty.length as usize]),
        TypeKind::Json => Value::Json(rauk_types::json::JsonRef::NULL.to_stored()),
        _ if ty.is_bytes() => Value::Bytes(Vec::new()),
        _ => Value::Str(String::new()),
    }
}
