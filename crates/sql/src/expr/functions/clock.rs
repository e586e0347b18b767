//! The present time, and what depends on the session's time zone.
//!
//! The present is the statement's start ([`Context::now_micros`]): every call in a statement gives the same. Only SYSDATE reads the server's clock at
//! each call, whatever `SET timestamp` says.

use super::{Call, Derived, Function, Typing};
use crate::expr::Context;
use crate::expr::convert::{self, Result};
use crate::expr::types::Class;
use rauk_types::datetime::MICROS_PER_SECOND;
use rauk_types::error::codes;
use rauk_types::{DataType, DateTime, Decimal, MysqlError, TypeKind, Value};

pub const FUNCTIONS: &[Function] = &[
    Function::new("NOW", 0, 1, |t| temporal(t, TypeKind::DateTime), now).of_statement(),
    Function::new("SYSDATE", 0, 1, |t| temporal(t, TypeKind::DateTime), sysdate).volatile(),
    Function::new(
        "CURDATE",
        0,
        0,
        |_| Ok(Derived::new(DataType::new(TypeKind::Date))),
        |_, x| Ok(Value::Date(convert::today(x))),
    )
    .of_statement(),
    Function::new(
        "CURTIME",
        0,
        1,
        |t| temporal(t, TypeKind::Time),
        |c, x| Ok(local(c, x).map_or(Value::Null, |v| Value::Time(v.time()))),
    )
    .of_statement(),
    Function::new(
        "UTC_TIMESTAMP",
        0,
        1,
        |t| temporal(t, TypeKind::DateTime),
        |c, x| Ok(utc(c, x).map_or(Value::Null, Value::DateTime)),
    )
    .of_statement(),
    Function::new(
        "UTC_DATE",
        0,
        0,
        |_| Ok(Derived::new(DataType::new(TypeKind::Date))),
        |c, x| Ok(utc(c, x).map_or(Value::Null, |v| Value::Date(v.date()))),
    )
    .of_statement(),
    Function::new(
        "UTC_TIME",
        0,
        1,
        |t| temporal(t, TypeKind::Time),
        |c, x| Ok(utc(c, x).map_or(Value::Null, |v| Value::Time(v.time()))),
    )
    .of_statement(),
    Function::new("UNIX_TIMESTAMP", 0, 1, unix_timestamp_type, unix_timestamp).of_statement(),
    Function::new("FROM_UNIXTIME", 1, 2, from_unixtime_type, from_unixtime).of_statement(),
    // It may read the zone from a file.
    Function::new("CONVERT_TZ", 3, 3, convert_tz_type, convert_tz).unbounded(),
];

/// A text parameter that is compared with a DATE, DATETIME or TIMESTAMP: read once, error 1525 when it is no date, as for a literal.
pub static DATE_CONSTANT: Function = Function::new(
    "DATE_CONSTANT",
    1,
    1,
    |_| Ok(Derived::new(DataType::new(TypeKind::Date))),
    |c, x| constant(c, x, "DATE"),
)
.of_statement();
pub static DATETIME_CONSTANT: Function = Function::new(
    "DATETIME_CONSTANT",
    1,
    1,
    |_| Ok(Derived::new(DataType::new(TypeKind::DateTime))),
    |c, x| constant(c, x, "DATETIME"),
)
.of_statement();
pub static TIMESTAMP_CONSTANT: Function = Function::new(
    "TIMESTAMP_CONSTANT",
    1,
    1,
    |_| Ok(Derived::new(DataType::new(TypeKind::Timestamp))),
    |c, x| constant(c, x, "TIMESTAMP"),
)
.of_statement();

fn constant(c: &Call<'_, '_>, context: &mut Context, kind: &str) -> Result<Value> {
    let bytes = c.bytes(0);
    let flags = context.sql_mode.date_flags(false);
    if c.value(0).as_bytes().is_some() && rauk_types::datetime::parse_date_time(&bytes, flags).is_err() {
        return Err(MysqlError::new(
            crate::expr::bind::WRONG_VALUE,
            format!("Incorrect {kind} value: '{}'", convert::shown(&bytes)),
        ));
    }
    // It is compared, where a text may be the zero date.
    Ok(convert::to_datetime(c.value(0), context)?.map_or(Value::Null, Value::DateTime))
}

/// A type with as many digits of the second as the literal argument says; error 1426 beyond six.
fn temporal(t: Typing<'_>, kind: TypeKind) -> Result<Derived> {
    let digits = if t.arguments.is_empty() { 0 } else { t.constant(0).unwrap_or(-1) };
    if !(0..=6).contains(&digits) {
        return Err(MysqlError::new(
            codes::TOO_BIG_PRECISION,
            format!("Too-big precision {digits} specified for '{}'. Maximum is 6.", t.name.to_ascii_lowercase()),
        ));
    }
    Ok(Derived::new(DataType { scale: digits as u8, ..DataType::new(kind) }))
}

fn local(c: &Call<'_, '_>, context: &Context) -> Option<DateTime> {
    DateTime::from_unix_micros(context.now_micros, &context.time_zone).map(|v| v.truncated(c.ty.scale))
}

fn utc(c: &Call<'_, '_>, context: &Context) -> Option<DateTime> {
    DateTime::from_unix_micros_utc(context.now_micros).map(|v| v.truncated(c.ty.scale))
}

fn now(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    Ok(local(c, context).map_or(Value::Null, Value::DateTime))
}

fn sysdate(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let micros = context.server.clock_micros().unwrap_or(context.now_micros);
    let local = DateTime::from_unix_micros(micros, &context.time_zone);
    Ok(local.map_or(Value::Null, |v| Value::DateTime(v.truncated(c.ty.scale))))
}

/// An integer, or a decimal when the argument has a fraction of a second.
fn unix_timestamp_type(t: Typing<'_>) -> Result<Derived> {
    let Some(argument) = t.arguments.first() else {
        return Ok(Derived::new(DataType { length: 11, ..DataType::BIGINT }));
    };
    let scale = match Class::of(&argument.ty) {
        Class::DateTime | Class::Time => argument.ty.scale,
        Class::Date => 0,
        Class::Text | Class::Bytes => match &argument.kind {
            crate::expr::ExprKind::Literal(Value::Str(text)) => {
                let flags = t.context.sql_mode.date_flags(false);
                rauk_types::datetime::parse_date_time(text.as_bytes(), flags).map_or(6, |p| p.fraction_digits)
            }
            _ => 6,
        },
        Class::Decimal => argument.ty.scale.min(6),
        _ => 0,
    };
    let ty =
        if scale == 0 { DataType { length: 11, ..DataType::BIGINT } } else { DataType::decimal(12 + scale, scale) };
    Ok(Derived::new(ty).nullable())
}

fn unix_timestamp(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    if !c.has(0) {
        return Ok(Value::Int(context.now_micros.div_euclid(MICROS_PER_SECOND)));
    }
    // The zero date is out of range here, which is 0.
    let Some(value) = convert::to_datetime(c.moment(0).as_ref(), context)? else { return Ok(Value::Null) };
    let micros = value.to_unix_micros(&context.time_zone).map(|u| u.micros).filter(in_range).unwrap_or(0);
    Ok(if c.ty.kind == TypeKind::Decimal {
        let exact = Decimal::new(micros.into(), 6);
        Value::Decimal(exact.truncated(c.ty.scale))
    } else {
        Value::Int(micros.div_euclid(MICROS_PER_SECOND))
    })
}

fn from_unixtime_type(t: Typing<'_>) -> Result<Derived> {
    if t.arguments.len() > 1 {
        return Ok(t.connection_text(t.length(1) * 10).nullable());
    }
    let scale = match Class::of(&t.arguments[0].ty) {
        Class::Decimal => t.arguments[0].ty.scale.min(6),
        Class::Integer | Class::Date => 0,
        Class::DateTime | Class::Time => t.arguments[0].ty.scale,
        _ => 6,
    };
    Ok(Derived::new(DataType { scale, ..DataType::new(TypeKind::DateTime) }).nullable())
}

/// The first second that FROM_UNIXTIME, UNIX_TIMESTAMP and CONVERT_TZ do not know, since MySQL 8.0.28: 3001-01-19
/// 00:00:00 UTC. A TIMESTAMP column ends before, in 2038.
const END: i64 = 32_536_771_200;

/// Whether a number of microseconds since 1970 is one that these functions know.
fn in_range(micros: &i64) -> bool {
    (0..END * MICROS_PER_SECOND).contains(micros)
}

fn from_unixtime(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let seconds = c.decimal(0, context)?;
    if seconds.is_negative() || seconds >= Decimal::from(END) {
        return Ok(Value::Null);
    }
    let micros = seconds.checked_mul(&Decimal::from(MICROS_PER_SECOND)).ok().and_then(|v| v.to_i64());
    let Some(value) = micros.and_then(|m| DateTime::from_unix_micros(m, &context.time_zone)) else {
        return Ok(Value::Null);
    };
    if c.has(1) {
        let names = super::date_format::locale_of(c, 2, context);
        return Ok(super::date_format::format(
            &c.text(1),
            value,
            value.time(),
            Some(names),
            context.max_allowed_packet,
        )
        .map_or(Value::Null, Value::Str));
    }
    Ok(value.rounded(c.ty.scale).map_or(Value::Null, Value::DateTime))
}

fn convert_tz_type(t: Typing<'_>) -> Result<Derived> {
    let scale = match Class::of(&t.arguments[0].ty) {
        Class::DateTime | Class::Time => t.arguments[0].ty.scale,
        Class::Date | Class::Integer => 0,
        Class::Text => match &t.arguments[0].kind {
            crate::expr::ExprKind::Literal(Value::Str(text)) => {
                let flags = t.context.sql_mode.date_flags(false);
                rauk_types::datetime::parse_date_time(text.as_bytes(), flags).map_or(0, |p| p.fraction_digits)
            }
            _ => 6,
        },
        _ => 6,
    };
    Ok(Derived::new(DataType { scale, ..DataType::new(TypeKind::DateTime) }).nullable())
}

/// `+05:30`, `SYSTEM` (UTC) or a name of the time zone database.
pub fn zone(name: &str) -> Option<jiff::tz::TimeZone> {
    if name.eq_ignore_ascii_case("SYSTEM") || name.eq_ignore_ascii_case("UTC") {
        return Some(jiff::tz::TimeZone::UTC);
    }
    let sign = match name.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return jiff::tz::TimeZone::get(name).ok(),
    };
    let (hours, minutes) = name[1..].split_once(':')?;
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    let seconds = sign * (hours * 3600 + minutes * 60);
    if minutes > 59 || !(-(13 * 3600 + 59 * 60)..=14 * 3600).contains(&seconds) {
        return None;
    }
    Some(jiff::tz::TimeZone::fixed(jiff::tz::Offset::from_seconds(seconds).ok()?))
}

/// NULL for unknown zones. A time before 1970-01-01 00:00:01 UTC or after 3000 stays as it is: the second 0 is no
/// TIMESTAMP.
fn convert_tz(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let Some(value) = c.datetime(0, context)? else { return Ok(Value::Null) };
    let (Some(from), Some(to)) = (zone(&c.text(1)), zone(&c.text(2))) else { return Ok(Value::Null) };
    Ok(match value.to_unix_micros(&from) {
        Some(unix) if in_range(&unix.micros) && unix.micros >= MICROS_PER_SECOND => {
            DateTime::from_unix_micros(unix.micros, &to).map_or(Value::Null, Value::DateTime)
        }
        Some(_) => Value::DateTime(value),
        None => Value::Null,
    })
}
