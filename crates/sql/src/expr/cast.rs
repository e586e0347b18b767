//! CAST: a value to a named type. Also what makes the branches of CASE or COALESCE one type.

use super::convert::{self, Result, read_datetime, to_decimal, to_f64, to_integer, to_time};
use super::functions::{overflowed, spatial};
use super::{Context, Val, arithmetic, column, json};
use rauk_types::error::codes;
use rauk_types::format::append_text;
use rauk_types::{Charset, Collation, DataType, Decimal, GeometryKind, TypeKind, Value, ValueRef};
use std::borrow::Cow;

/// No length was given: CAST(x AS CHAR).
pub const NO_LENGTH: u32 = u32::MAX;

/// The value as `to`; it is not NULL. Text that has to be cut gets warning 1292, numbers out of range are clipped with 1264 or 1292.
pub fn cast<'a>(value: Val<'a>, from: &DataType, to: &DataType, context: &mut Context) -> Result<Val<'a>> {
    if from.has_members() && value.as_ref().as_integer().is_some() && !to.is_numeric() && !to.is_plain_number() {
        let text = convert::text(value.as_ref(), from).into_owned();
        let from = DataType::varchar(NO_LENGTH, from.collation);
        return cast(Val::Own(Value::Str(text)), &from, to, context);
    }
    if let ValueRef::Json(document) = value.as_ref()
        && !to.is_text()
        && !to.is_bytes()
    {
        let kind = match to.kind {
            TypeKind::Decimal => "DECIMAL",
            TypeKind::Double | TypeKind::Float => "DOUBLE",
            TypeKind::Date => "DATE",
            TypeKind::Time => "TIME",
            TypeKind::DateTime | TypeKind::Timestamp => "DATETIME",
            _ => "INTEGER",
        };
        let missing = if to.is_temporal() { Val::NULL } else { Val::Own(Value::Int(0)) };
        let plain = json::plain_as(document, kind, context)?.map_or(missing, Val::Own);
        if plain.is_null() {
            return Ok(plain);
        }
        return cast(plain, &DataType::varchar(NO_LENGTH, Collation::Utf8mb4Bin), to, context);
    }
    let reference = value.as_ref();
    Ok(match to.kind {
        TypeKind::Decimal => Value::Decimal(decimal(reference, to, context)?).into(),
        TypeKind::Double => Value::Double(to_f64(reference, context)?).into(),
        TypeKind::Float => float(to_f64(reference, context)?)?.into(),
        TypeKind::Date => match read_datetime(reference, context)? {
            Some(v) => Value::Date(v.date()).into(),
            None => Val::NULL,
        },
        TypeKind::DateTime | TypeKind::Timestamp => match read_datetime(reference, context)? {
            Some(v) => datetime_digits(v, to.scale, context).map_or(Val::NULL, |v| Value::DateTime(v).into()),
            None => Val::NULL,
        },
        TypeKind::Time => match to_time(reference, context)? {
            Some(v) if context.sql_mode.time_truncate_fractional => Value::Time(v.truncated(to.scale)).into(),
            Some(v) => Value::Time(v.rounded(to.scale)).into(),
            None => Val::NULL,
        },
        TypeKind::Json if matches!(reference, ValueRef::Json(document) if !document.is_text()) => value,
        TypeKind::Json => json(reference, from, context)?.into(),
        TypeKind::Geometry => {
            let kind = to.geometry_kind().unwrap_or(GeometryKind::Geometry);
            spatial::cast::to_kind(&convert::coded_bytes(reference, from), kind)?.into()
        }
        TypeKind::Bit | TypeKind::Year => integer(reference, &DataType::BIGINT_UNSIGNED, context)?.into(),
        TypeKind::Enum | TypeKind::Set => column::member_number(&convert::text(reference, from), to).into(),
        _ if to.is_integer() => integer(reference, to, context)?.into(),
        _ if to.is_text() => characters(value, from, to, context)?,
        _ if to.is_bytes() => bytes(value, from, to, context)?,
        _ => value,
    })
}

/// The value with so many digits of the second; `None` beyond the year 9999.
pub fn datetime_digits(value: rauk_types::DateTime, digits: u8, context: &Context) -> Option<rauk_types::DateTime> {
    if context.sql_mode.time_truncate_fractional { Some(value.truncated(digits)) } else { value.rounded(digits) }
}

fn decimal(value: ValueRef<'_>, to: &DataType, context: &mut Context) -> Result<Decimal> {
    let number = to_decimal(value, context)?;
    match number.to_precision(to.precision, to.scale) {
        Ok(number) => Ok(number),
        Err(_) => {
            context
                .warn_or_fail(codes::WARN_DATA_OUT_OF_RANGE, "Out of range value for column 'CAST' at row 1".into())?;
            let largest = Decimal::largest(to.precision, to.scale);
            Ok(if number.is_negative() { -largest } else { largest })
        }
    }
}

/// Error 1690 beyond FLOAT, as MySQL 8 has it.
fn float(value: f64) -> Result<Value> {
    let single = value as f32;
    if single.is_finite() {
        return Ok(Value::Double(f64::from(single)));
    }
    let mut shown = Vec::new();
    append_text(ValueRef::Double(value), &DataType::DOUBLE, &mut shown);
    Err(arithmetic::out_of_range("DOUBLE", &format!("cast({} as float)", String::from_utf8_lossy(&shown))))
}

fn integer(value: ValueRef<'_>, to: &DataType, context: &mut Context) -> Result<Value> {
    // Binary data is a number of up to eight bytes only as a literal, which binding has turned into a number.
    let number = match value {
        ValueRef::Double(v) if to.unsigned && v >= u64::MAX as f64 => u64::MAX.into(),
        ValueRef::Decimal(v) if v.to_i128().is_none_or(|n| n > i128::from(u64::MAX) || n < i128::from(i64::MIN)) => {
            context.truncated("DECIMAL", &v.to_string())?;
            if v.is_negative() && to.unsigned {
                0
            } else if v.is_negative() {
                i64::MIN.into()
            } else if to.unsigned {
                u64::MAX.into()
            } else {
                i64::MAX.into()
            }
        }
        // A DECIMAL is cut at the range's end; a negative one is 0.
        ValueRef::Decimal(v) if to.unsigned && v.to_i128().is_some_and(|n| n < 0) => {
            context.truncated("DECIMAL", &v.to_string())?;
            0
        }
        other => to_integer(other, context)?,
    };
    if to.unsigned {
        if number < 0 && !matches!(value, ValueRef::Int(_) | ValueRef::Double(_)) {
            context.warn(
                codes::UNKNOWN_ERROR,
                "Cast to unsigned converted negative integer to it's positive complement".into(),
            );
        }
        return Ok(Value::UInt(number as u64));
    }
    let exact = matches!(value, ValueRef::UInt(_)) || value.as_bytes().is_some();
    if number > i128::from(i64::MAX) {
        if value.as_bytes().is_some() {
            context.warn(
                codes::UNKNOWN_ERROR,
                "Cast to signed converted positive out-of-range integer to it's negative complement".into(),
            );
        }
        return Ok(Value::Int(if exact { number as i64 } else { i64::MAX }));
    }
    Ok(Value::Int(number as i64))
}

fn cut_warning(kind: &str, length: u32, bytes: &[u8], context: &mut Context) -> Result<()> {
    context.truncated(&format!("{kind}({length})"), &convert::shown(bytes))
}

fn characters<'a>(value: Val<'a>, from: &DataType, to: &DataType, context: &mut Context) -> Result<Val<'a>> {
    let limit = if to.kind == TypeKind::VarChar { to.length } else { NO_LENGTH };
    let set = to.collation.charset();
    // Borrowed text that fits goes through as it is.
    if let Val::Ref(ValueRef::Str(text)) = value
        && (text.len() <= limit as usize || limit == NO_LENGTH)
        && set.lacks(text).is_none()
    {
        return Ok(value);
    }
    let reference = value.as_ref();
    let text = match reference {
        ValueRef::Bytes(bytes) => {
            let bytes = set.aligned(bytes);
            let decoded = set.decode(&bytes);
            if let Some(at) = decoded.malformed {
                context.warn(INVALID_CHARACTER_STRING, invalid_text(&bytes[at..], set));
                return Ok(Val::NULL);
            }
            Cow::Owned(decoded.text.into_owned())
        }
        _ => convert::without(convert::text(reference, from), set),
    };
    if limit != NO_LENGTH
        && let Some((end, _)) = text.char_indices().nth(limit as usize)
    {
        cut_warning("CHAR", limit, text.as_bytes(), context)?;
        return Ok(Value::Str(text[..end].to_string()).into());
    }
    Ok(Value::Str(text.into_owned()).into())
}

/// ER_INVALID_CHARACTER_STRING.
pub const INVALID_CHARACTER_STRING: u16 = 1300;

/// `Invalid utf8mb4 character string: 'FFFE'`.
pub fn invalid_text(rest: &[u8], set: Charset) -> String {
    let shown: String = rest.iter().take(6).map(|b| format!("{b:02X}")).collect();
    format!("Invalid {} character string: '{shown}'", set.name())
}

fn bytes<'a>(value: Val<'a>, from: &DataType, to: &DataType, context: &mut Context) -> Result<Val<'a>> {
    let data = convert::coded_bytes(value.as_ref(), from);
    let limit = to.length as usize;
    if to.length == NO_LENGTH {
        return Ok(Value::Bytes(data.into_owned()).into());
    }
    if data.len() > limit {
        cut_warning("BINARY", to.length, &data, context)?;
        return Ok(Value::Bytes(data[..limit].to_vec()).into());
    }
    let mut data = data.into_owned();
    // CAST(x AS BINARY(n)) pads with zero bytes.
    if to.kind == TypeKind::Binary {
        if limit > context.max_allowed_packet {
            overflowed("cast_as_binary", context);
            return Ok(Val::NULL);
        }
        data.resize(limit, 0);
    }
    Ok(Value::Bytes(data).into())
}

/// CAST AS JSON: a text has to be JSON (3141), binary strings are opaque values; anything else is a scalar.
fn json(value: ValueRef<'_>, from: &DataType, context: &mut Context) -> Result<Value> {
    match value {
        ValueRef::Json(document) => Ok(Value::Json(json::normal(document, context)?.get().to_stored())),
        ValueRef::Str(text) => {
            json::counted(&mut context.budget, |take| json::parsed(text, 1, "cast_as_json", take)?.encode(take))
                .map(Value::Json)
        }
        value => json::encoded(&json::part(value, from), context),
    }
}

/// Text under a collation, or bytes.
pub fn string_value(bytes: Vec<u8>, collation: Collation) -> Value {
    if collation == Collation::Binary {
        return Value::Bytes(bytes);
    }
    match String::from_utf8(bytes) {
        Ok(text) => Value::Str(text),
        Err(error) => Value::Bytes(error.into_bytes()),
    }
}
