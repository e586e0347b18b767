//! Whether a value may stand in a column as it is: for values that come from outside and are not converted first.
//!
//! Unlike SQL's conversions this changes nothing, except what loses nothing: an integer in another integer type or a DECIMAL, or in a DOUBLE that holds it exactly; a DECIMAL with fewer
//! digits behind the point; spaces at the end of a CHAR, which are not stored. Nothing is rounded, cut, padded or read from a text. Zero dates may stand in a column, 31 February may not.
//!
//! Texts are MySQL's and name the column; codes are 1048 NULL, 1264 out of range, 1265 digits would be lost, 1292 no such date or time, 1366 wrong type or
//! a character that the column's set lacks,
//! 1406 too long, 3140 no JSON, 1416 no geometry, 3643 one of another system. The row is always 1: every operation has one.
//!
//! What passes can be encoded into a row and a key without a panic.

use crate::datetime::{DateFlags, MICROS_PER_DAY, TIMESTAMP_MAX, TIMESTAMP_MIN};
use crate::error::codes;
use crate::geometry;
use crate::json::{self, Invalid};
use crate::schema::MAX_LOB_BYTES;
use crate::{Column, DataType, Date, Decimal, MysqlError, TypeKind, ValueRef, format};

/// The value in the variant that rows of this column are encoded from.
#[inline]
pub fn column_value<'a>(column: &Column, value: ValueRef<'a>) -> Result<ValueRef<'a>, MysqlError> {
    use TypeKind::*;
    let ty = &column.ty;
    match (ty.kind, value) {
        (_, ValueRef::Null) if column.nullable => Ok(value),
        (_, ValueRef::Null) => {
            Err(MysqlError::new(codes::BAD_NULL, format!("Column '{}' cannot be null", column.name)))
        }
        (BigInt, ValueRef::Int(_)) if !ty.unsigned => Ok(value),
        (TinyInt | SmallInt | MediumInt | Int | BigInt, ValueRef::Int(v)) => integer(column, v.into()),
        (TinyInt | SmallInt | MediumInt | Int | BigInt, ValueRef::UInt(v)) => integer(column, v.into()),
        (Enum | Set | Bit | Year, ValueRef::Int(v)) => plain_number(column, v.into()),
        (Enum | Set | Bit | Year, ValueRef::UInt(v)) => plain_number(column, v.into()),
        (Enum | Set, ValueRef::Str(text)) => members(column, text),
        (Char | VarChar | TinyText | Text | MediumText | LongText, ValueRef::Str(text))
            if ty.collation.charset().lacks(text).is_some() =>
        {
            Err(incorrect(column, codes::TRUNCATED_WRONG_VALUE_FOR_FIELD, "string", &shown(value)))
        }
        (VarChar, ValueRef::Str(text)) if text.len() <= ty.length as usize => Ok(value),
        (Char | VarChar, ValueRef::Str(text)) => characters(column, text),
        (TinyText | Text | MediumText | LongText, ValueRef::Str(text)) => {
            long(column, text.len().min(ty.collation.charset().length(text)), value)
                .and_then(|value| if text.len() > MAX_LOB_BYTES { Err(too_long(column)) } else { Ok(value) })
        }
        (Json, ValueRef::Str(text)) => json_text(column, text),
        (Binary, ValueRef::Bytes(bytes)) if bytes.len() < ty.length as usize => {
            // It would be padded with zeros, and read as another value.
            let shown = format!("{} of {} bytes", bytes.len(), ty.length);
            Err(incorrect(column, codes::TRUNCATED_WRONG_VALUE_FOR_FIELD, "binary", &shown))
        }
        (Binary | VarBinary, ValueRef::Bytes(bytes)) if bytes.len() <= ty.length as usize => Ok(value),
        (Binary | VarBinary, ValueRef::Bytes(_)) => Err(too_long(column)),
        (TinyBlob | Blob | MediumBlob | LongBlob, ValueRef::Bytes(bytes)) => long(column, bytes.len(), value),
        (Geometry, ValueRef::Bytes(bytes)) => {
            geometry::check_column(column, bytes)?;
            long(column, bytes.len(), value)
        }
        (Double | Float, ValueRef::Double(v)) => double(column, v),
        (Double | Float, ValueRef::Int(v)) if v.unsigned_abs() <= exact(ty) => double(column, v as f64),
        (Double | Float, ValueRef::UInt(v)) if v <= exact(ty) => double(column, v as f64),
        (TypeKind::Decimal, ValueRef::Decimal(v)) => decimal(column, v),
        (TypeKind::Decimal, ValueRef::Int(v)) => decimal(column, v.into()),
        (TypeKind::Decimal, ValueRef::UInt(v)) => decimal(column, v.into()),
        (TypeKind::Date, ValueRef::Date(v)) if possible(v) => Ok(value),
        (Time, ValueRef::Time(v)) if whole(ty, v.micros()) => Ok(value),
        (DateTime, ValueRef::DateTime(v)) if possible(v.date()) && time_of_day(ty, v.micros_of_day()) => Ok(value),
        (Timestamp, ValueRef::Timestamp(v))
            if v == 0 || (TIMESTAMP_MIN..=TIMESTAMP_MAX).contains(&v) && whole(ty, v) =>
        {
            Ok(value)
        }
        _ => Err(wrong(column, value)),
    }
}

/// The largest number up to which every integer is one of this type.
fn exact(ty: &DataType) -> u64 {
    if ty.kind == TypeKind::Float { 1 << 24 } else { 1 << 53 }
}

/// Whether it is a date, a zero date, or one with a zero month or day.
fn possible(date: Date) -> bool {
    date.packed() >> 23 == 0 && date.year() <= 9999 && date.month() <= 12 && date.check(DateFlags::default()).is_ok()
}

/// Whether the column's digits behind the second hold so many microseconds.
fn whole(ty: &DataType, micros: i64) -> bool {
    micros % 10i64.pow(6 - u32::from(ty.scale.min(6))) == 0
}

fn time_of_day(ty: &DataType, micros: i64) -> bool {
    micros < MICROS_PER_DAY && whole(ty, micros)
}

#[inline]
fn integer<'a>(column: &Column, number: i128) -> Result<ValueRef<'a>, MysqlError> {
    match column.ty.integer_range() {
        Some((low, high)) if (low..=high).contains(&number) => {
            Ok(if column.ty.unsigned { ValueRef::UInt(number as u64) } else { ValueRef::Int(number as i64) })
        }
        _ => Err(out_of_range(column)),
    }
}

/// A number of an ENUM (the error value's is no number that a program may store), SET, BIT or YEAR.
fn plain_number<'a>(column: &Column, number: i128) -> Result<ValueRef<'a>, MysqlError> {
    let (low, high) = column.ty.integer_range().expect("stored as an integer");
    let gap = match column.ty.kind {
        TypeKind::Enum => number == 0,
        TypeKind::Year => (1..=1900).contains(&number),
        _ => false,
    };
    match (low..=high).contains(&number) && !gap {
        true => Ok(ValueRef::UInt(number as u64)),
        false if column.ty.has_members() => Err(truncated(column)),
        false => Err(out_of_range(column)),
    }
}

/// The text of a member of an ENUM, or a list of members of a SET.
fn members<'a>(column: &Column, text: &str) -> Result<ValueRef<'a>, MysqlError> {
    let ty = &column.ty;
    let number = ty.members.and_then(|members| match ty.kind {
        TypeKind::Enum => members.position(text, ty.collation),
        _ => Some(members.bits(text, ty.collation)).filter(|(_, all)| *all).map(|(bits, _)| bits),
    });
    number.map(ValueRef::UInt).ok_or_else(|| truncated(column))
}

fn decimal<'a>(column: &Column, number: Decimal) -> Result<ValueRef<'a>, MysqlError> {
    let ty = &column.ty;
    let number = if number.scale() > ty.scale { number.normalized() } else { number };
    if number.integer_digits() > ty.precision.saturating_sub(ty.scale) || ty.unsigned && number.is_negative() {
        return Err(out_of_range(column));
    }
    if number.scale() > ty.scale {
        return Err(truncated(column));
    }
    number.rescale(ty.scale).map(ValueRef::Decimal).map_err(|_| out_of_range(column))
}

fn double<'a>(column: &Column, number: f64) -> Result<ValueRef<'a>, MysqlError> {
    let ty = &column.ty;
    let single = ty.kind == TypeKind::Float;
    if !number.is_finite() || ty.unsigned && number < 0.0 || single && !(number as f32).is_finite() {
        return Err(out_of_range(column));
    }
    if single && f64::from(number as f32) != number {
        return Err(truncated(column));
    }
    if ty.scale < 31 {
        // FLOAT(M,D), DOUBLE(M,D): D digits, at most M in all.
        let power = 10f64.powi(ty.scale.into());
        let rounded = number.floor() + ((number - number.floor()) * power).round_ties_even() / power;
        if rounded != number && !(single && rounded as f32 == number as f32) {
            return Err(truncated(column));
        }
        let largest = 10f64.powi(i32::from(ty.precision) - i32::from(ty.scale)) - 1.0 / power;
        if ty.precision > 0 && number.abs() > largest {
            return Err(out_of_range(column));
        }
    }
    // Negative zero is stored as zero.
    Ok(ValueRef::Double(if number == 0.0 { 0.0 } else { number }))
}

fn characters<'a>(column: &Column, text: &'a str) -> Result<ValueRef<'a>, MysqlError> {
    let text = if column.ty.kind == TypeKind::Char { text.trim_end_matches(' ') } else { text };
    let limit = column.ty.length as usize;
    if text.len() > limit && text.chars().nth(limit).is_some() {
        return Err(too_long(column));
    }
    Ok(ValueRef::Str(text))
}

fn long<'a>(column: &Column, bytes: usize, value: ValueRef<'a>) -> Result<ValueRef<'a>, MysqlError> {
    if bytes > (column.ty.length as usize).min(MAX_LOB_BYTES) { Err(too_long(column)) } else { Ok(value) }
}

fn json_text<'a>(column: &Column, text: &'a str) -> Result<ValueRef<'a>, MysqlError> {
    let value = long(column, text.len(), ValueRef::Str(text))?;
    let Err(Invalid { reason, position }) = json::parse(text, &mut |_| Ok(()))? else {
        return Ok(value);
    };
    let name = &column.name;
    Err(MysqlError::new(
        codes::INVALID_JSON_TEXT,
        format!("Invalid JSON text: \"{reason}\" at position {position} in value for column '{name}'."),
    ))
}

#[cold]
fn out_of_range(column: &Column) -> MysqlError {
    let message = format!("Out of range value for column '{}' at row 1", column.name);
    MysqlError::new(codes::WARN_DATA_OUT_OF_RANGE, message)
}

#[cold]
fn truncated(column: &Column) -> MysqlError {
    MysqlError::new(codes::WARN_DATA_TRUNCATED, format!("Data truncated for column '{}' at row 1", column.name))
}

#[cold]
fn too_long(column: &Column) -> MysqlError {
    MysqlError::new(codes::DATA_TOO_LONG, format!("Data too long for column '{}' at row 1", column.name))
}

fn incorrect(column: &Column, code: u16, kind: &str, shown: &str) -> MysqlError {
    MysqlError::new(code, format!("Incorrect {kind} value: '{shown}' for column '{}' at row 1", column.name))
}

/// A value of a type that the column does not take, or a time that is none.
#[cold]
fn wrong(column: &Column, value: ValueRef<'_>) -> MysqlError {
    let ty = &column.ty;
    let (code, kind) = match ty.kind {
        TypeKind::Date => (codes::TRUNCATED_WRONG_VALUE, "date"),
        TypeKind::Time => (codes::TRUNCATED_WRONG_VALUE, "time"),
        TypeKind::DateTime | TypeKind::Timestamp => (codes::TRUNCATED_WRONG_VALUE, "datetime"),
        TypeKind::Decimal => (codes::TRUNCATED_WRONG_VALUE_FOR_FIELD, "decimal"),
        TypeKind::Float | TypeKind::Double => (codes::TRUNCATED_WRONG_VALUE_FOR_FIELD, "double"),
        TypeKind::Geometry => return geometry::no_geometry(),
        TypeKind::Json => (codes::TRUNCATED_WRONG_VALUE_FOR_FIELD, "json"),
        _ if ty.holds_integer() => (codes::TRUNCATED_WRONG_VALUE_FOR_FIELD, "integer"),
        _ if ty.is_text() => (codes::TRUNCATED_WRONG_VALUE_FOR_FIELD, "string"),
        _ => (codes::TRUNCATED_WRONG_VALUE_FOR_FIELD, "binary"),
    };
    incorrect(column, code, kind, &shown(value))
}

/// At most 128 characters, as MySQL shows.
fn shown(value: ValueRef<'_>) -> String {
    let kind = match value {
        ValueRef::Time(_) => TypeKind::Time,
        ValueRef::DateTime(_) | ValueRef::Timestamp(_) => TypeKind::DateTime,
        // Others say it all themselves.
        _ => TypeKind::Null,
    };
    let mut text = Vec::new();
    match value {
        ValueRef::Timestamp(micros) if !(0..=TIMESTAMP_MAX).contains(&micros) => format::append_i64(micros, &mut text),
        ValueRef::Date(date) if date.year() > 9999 => {}
        ValueRef::DateTime(time) if time.year() > 9999 => {}
        _ => format::append_text(value, &DataType { scale: 6, ..DataType::new(kind) }, &mut text),
    }
    String::from_utf8_lossy(&text).chars().take(128).collect()
}

#[cfg(test)]
mod tests;
