//! Parts of dates and times, and arithmetic with them.

use super::{Call, Derived, Function, Typing, rules};
use crate::expr::Context;
use crate::expr::convert::Result;
use crate::expr::interval;
use crate::expr::types::{Class, text_type};
use crate::parse::ast::Unit;
use rauk_types::datetime::{MICROS_PER_DAY, MICROS_PER_SECOND, WeekMode};
use rauk_types::error::codes;
use rauk_types::{DataType, Date, DateTime, Decimal, MysqlError, Time, TypeKind, Value, ValueRef};

pub const FUNCTIONS: &[Function] = &[
    Function::new("DATE", 1, 1, date_type, |c, x| Ok(c.date(0, x)?.map_or(Value::Null, Value::Date))).of_statement(),
    Function::new("TIME", 1, 1, time_type, |c, x| Ok(c.time(0, x)?.map_or(Value::Null, Value::Time))).of_statement(),
    Function::new("TIMESTAMP", 1, 2, timestamp_type, timestamp).of_statement(),
    Function::new("YEAR", 1, 1, rules::integer_or_null, |c, x| date_part(c, x, |d| Some(d.year().into())))
        .of_statement(),
    Function::new("QUARTER", 1, 1, rules::integer_or_null, |c, x| date_part(c, x, |d| Some(d.quarter().into())))
        .of_statement(),
    Function::new("MONTH", 1, 1, rules::integer_or_null, |c, x| date_part(c, x, |d| Some(d.month().into())))
        .of_statement(),
    Function::new("DAYOFMONTH", 1, 1, rules::integer_or_null, |c, x| date_part(c, x, |d| Some(d.day().into())))
        .of_statement(),
    Function::new("DAYOFWEEK", 1, 1, rules::integer_or_null, |c, x| {
        date_part(c, x, |d| d.day_of_week().map(i64::from))
    })
    .of_statement(),
    Function::new("WEEKDAY", 1, 1, rules::integer_or_null, |c, x| date_part(c, x, |d| d.weekday().map(i64::from)))
        .of_statement(),
    Function::new("DAYOFYEAR", 1, 1, rules::integer_or_null, |c, x| {
        date_part(c, x, |d| d.day_of_year().map(i64::from))
    })
    .of_statement(),
    Function::new("WEEK", 1, 2, rules::integer_or_null, week).of_statement(),
    Function::new("WEEKOFYEAR", 1, 1, rules::integer_or_null, |c, x| {
        date_part(c, x, |d| d.week(WeekMode::ISO).map(|w| w.1.into()))
    })
    .of_statement(),
    Function::new("YEARWEEK", 1, 2, rules::integer_or_null, year_week).of_statement(),
    Function::new("LAST_DAY", 1, 1, date_type, |c, x| {
        Ok(c.date(0, x)?.and_then(Date::last_day).map_or(Value::Null, Value::Date))
    })
    .of_statement(),
    Function::new("TO_DAYS", 1, 1, rules::integer_or_null, |c, x| date_part(c, x, Date::to_days)).of_statement(),
    Function::new("TO_SECONDS", 1, 1, rules::integer_or_null, |c, x| {
        let value = c.datetime(0, x)?.and_then(DateTime::to_micros);
        Ok(value.map_or(Value::Null, |v| Value::Int(v / MICROS_PER_SECOND)))
    })
    .of_statement(),
    Function::new("FROM_DAYS", 1, 1, date_type, |c, x| Ok(Value::Date(Date::from_days(c.int(0, x)?)))),
    Function::new("HOUR", 1, 1, rules::integer_or_null, |c, x| time_part(c, x, |t| t.hours().into())).of_statement(),
    Function::new("MINUTE", 1, 1, rules::integer_or_null, |c, x| time_part(c, x, |t| t.minutes().into()))
        .of_statement(),
    Function::new("SECOND", 1, 1, rules::integer_or_null, |c, x| time_part(c, x, |t| t.seconds().into()))
        .of_statement(),
    Function::new("MICROSECOND", 1, 1, rules::integer_or_null, |c, x| time_part(c, x, |t| t.microsecond().into()))
        .of_statement(),
    Function::new("EXTRACT", 2, 2, rules::integer_or_null, extract).of_statement(),
    Function::new("TIME_TO_SEC", 1, 1, rules::integer_or_null, |c, x| {
        Ok(c.time(0, x)?.map_or(Value::Null, |t| Value::Int(t.micros() / MICROS_PER_SECOND)))
    })
    .of_statement(),
    Function::new("SEC_TO_TIME", 1, 1, sec_to_time_type, sec_to_time),
    Function::new("MAKEDATE", 2, 2, date_type, make_date),
    Function::new("MAKETIME", 3, 3, make_time_type, make_time),
    Function::new("DATEDIFF", 2, 2, rules::integer_or_null, date_diff).of_statement(),
    Function::new("TIMEDIFF", 2, 2, time_diff_type, time_diff).of_statement(),
    Function::new("TIMESTAMPDIFF", 3, 3, rules::integer_or_null, timestamp_diff).of_statement(),
    Function::new("ADDTIME", 2, 2, add_time_type, |c, x| add_time(c, x, 1)).of_statement(),
    Function::new("SUBTIME", 2, 2, add_time_type, |c, x| add_time(c, x, -1)).of_statement(),
    Function::new("PERIOD_ADD", 2, 2, rules::integer, |c, x| {
        let months = from_period(c.int(0, x)?, "period_add")?.saturating_add(c.int(1, x)?);
        Ok(Value::Int(if months <= 0 { 0 } else { to_period(months) }))
    }),
    Function::new("PERIOD_DIFF", 2, 2, rules::integer, |c, x| {
        let (first, second) = (c.int(0, x)?, c.int(1, x)?);
        Ok(Value::Int(from_period(first, "period_diff")? - from_period(second, "period_diff")?))
    }),
];

fn date_type(_: Typing<'_>) -> Result<Derived> {
    Ok(Derived::new(DataType::new(TypeKind::Date)).nullable())
}

/// Digits of the second that an argument may have.
pub fn fraction_digits(t: &Typing<'_>, argument: usize) -> u8 {
    let expr = &t.arguments[argument];
    match Class::of(&expr.ty) {
        Class::Time | Class::DateTime => expr.ty.scale,
        Class::Decimal => expr.ty.scale.min(6),
        Class::Date | Class::Integer | Class::Null => 0,
        Class::Text => match &expr.kind {
            crate::expr::ExprKind::Literal(Value::Str(text)) => text
                .rsplit_once('.')
                .map_or(0, |(_, fraction)| fraction.bytes().take_while(u8::is_ascii_digit).count().min(6) as u8),
            _ => 6,
        },
        _ => 6,
    }
}

fn time_type(t: Typing<'_>) -> Result<Derived> {
    let scale = fraction_digits(&t, 0);
    Ok(Derived::new(DataType { scale, ..DataType::new(TypeKind::Time) }).nullable())
}

fn timestamp_type(t: Typing<'_>) -> Result<Derived> {
    let scale = (0..t.arguments.len()).map(|i| fraction_digits(&t, i)).max().unwrap_or(0);
    Ok(Derived::new(DataType { scale, ..DataType::new(TypeKind::DateTime) }).nullable())
}

fn timestamp(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let Some(date) = c.datetime(0, context)? else { return Ok(Value::Null) };
    if !c.has(1) {
        return Ok(Value::DateTime(date));
    }
    let Some(time) = c.time(1, context)? else { return Ok(Value::Null) };
    Ok(date.add_micros(time.micros()).map_or(Value::Null, Value::DateTime))
}

fn date_part(c: &Call<'_, '_>, context: &mut Context, part: fn(Date) -> Option<i64>) -> Result<Value> {
    Ok(c.date(0, context)?.and_then(part).map_or(Value::Null, Value::Int))
}

fn time_part(c: &Call<'_, '_>, context: &mut Context, part: fn(Time) -> i64) -> Result<Value> {
    Ok(c.time(0, context)?.map_or(Value::Null, |t| Value::Int(part(t))))
}

fn week_mode(c: &Call<'_, '_>, context: &mut Context) -> Result<WeekMode> {
    let mode = if c.has(1) { c.int(1, context)? } else { 0 };
    Ok(WeekMode::new(mode as u32))
}

fn week(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let mode = week_mode(c, context)?;
    Ok(c.date(0, context)?.and_then(|d| d.week(mode)).map_or(Value::Null, |w| Value::Int(w.1.into())))
}

fn year_week(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let mode = week_mode(c, context)?.with_week_year();
    let week = c.date(0, context)?.and_then(|d| d.week(mode));
    Ok(week.map_or(Value::Null, |(year, week)| Value::Int(i64::from(year) * 100 + i64::from(week))))
}

fn extract(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let Some(unit) = Unit::from_name(&c.text(0)) else { return Ok(Value::Null) };
    let time_unit = matches!(
        unit,
        Unit::Hour
            | Unit::Minute
            | Unit::Second
            | Unit::Microsecond
            | Unit::HourMinute
            | Unit::HourSecond
            | Unit::HourMicrosecond
            | Unit::MinuteSecond
            | Unit::MinuteMicrosecond
            | Unit::SecondMicrosecond
    );
    let is_time = Class::of(c.argument_type(1)) == Class::Time;
    // Days with a time of day: a text or number may be either.
    if matches!(unit, Unit::DayHour | Unit::DayMinute | Unit::DaySecond | Unit::DayMicrosecond) {
        return Ok(match moment(c, 1, context)? {
            Some(Moment::Time(time)) => Value::Int(interval::extract(unit, DateTime::ZERO, time, true)),
            Some(Moment::Date(value)) => Value::Int(interval::extract(unit, value, value.time(), false)),
            None => Value::Null,
        });
    }
    if time_unit || is_time {
        let time = c.time(1, context)?;
        return Ok(time.map_or(Value::Null, |t| Value::Int(interval::extract(unit, DateTime::ZERO, t, is_time))));
    }
    let value = c.datetime(1, context)?;
    Ok(value.map_or(Value::Null, |v| Value::Int(interval::extract(unit, v, v.time(), false))))
}

fn sec_to_time_type(t: Typing<'_>) -> Result<Derived> {
    let scale = match Class::of(&t.arguments[0].ty) {
        Class::Text | Class::Double => 6,
        _ => fraction_digits(&t, 0),
    };
    Ok(Derived::new(DataType { scale, ..DataType::new(TypeKind::Time) }))
}

fn sec_to_time(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let seconds = c.decimal(0, context)?;
    let micros = seconds.checked_mul(&Decimal::from(MICROS_PER_SECOND)).ok().and_then(|v| v.to_i64());
    let clipped = match micros {
        Some(micros) => Time::clipped(micros),
        None if seconds.is_negative() => Time::MIN,
        None => Time::MAX,
    };
    if micros != Some(clipped.micros()) {
        context.truncated("time", &seconds.to_string())?;
    }
    Ok(Value::Time(clipped.rounded(c.ty.scale)))
}

fn make_date(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let (year, day) = (c.int(0, context)?, c.int(1, context)?);
    let year = match year {
        0..=69 => year + 2000,
        70..=99 => year + 1900,
        year => year,
    };
    if !(0..=9999).contains(&year) || day <= 0 {
        return Ok(Value::Null);
    }
    let first = Date::from_parts(year as u16, 1, 1);
    Ok(first.add_days(day - 1).map_or(Value::Null, Value::Date))
}

fn make_time_type(t: Typing<'_>) -> Result<Derived> {
    let scale = fraction_digits(&t, 2);
    Ok(Derived::new(DataType { scale, ..DataType::new(TypeKind::Time) }).nullable())
}

fn make_time(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let (hour, minute) = (c.int(0, context)?, c.int(1, context)?);
    let second = c.decimal(2, context)?;
    if !(0..60).contains(&minute) || second.is_negative() || second >= Decimal::from(60) {
        return Ok(Value::Null);
    }
    let micros = second.checked_mul(&Decimal::from(MICROS_PER_SECOND)).ok().and_then(|v| v.to_i64()).unwrap_or(0);
    let hours = hour.clamp(-10_000, 10_000);
    let magnitude = (hours.abs() * 3600 + minute * 60) * MICROS_PER_SECOND + micros;
    let total = if hour < 0 { -magnitude } else { magnitude };
    let clipped = Time::clipped(total);
    if clipped.micros() != total {
        context.truncated("time", &format!("{hour}:{minute:02}:{:02}", micros / MICROS_PER_SECOND))?;
    }
    Ok(Value::Time(clipped))
}

fn date_diff(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let (a, b) = (c.date(0, context)?, c.date(1, context)?);
    Ok(match (a.and_then(Date::to_days), b.and_then(Date::to_days)) {
        (Some(a), Some(b)) => Value::Int(a - b),
        _ => Value::Null,
    })
}

fn time_diff_type(t: Typing<'_>) -> Result<Derived> {
    let scale = fraction_digits(&t, 0).max(fraction_digits(&t, 1));
    Ok(Derived::new(DataType { scale, ..DataType::new(TypeKind::Time) }).nullable())
}

/// Both are times, or both are dates with times; of a mixture there is no difference.
fn time_diff(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let (a, b) = (moment(c, 0, context)?, moment(c, 1, context)?);
    let micros = match (a, b) {
        (Some(Moment::Time(a)), Some(Moment::Time(b))) => a.micros() - b.micros(),
        (Some(Moment::Date(a)), Some(Moment::Date(b))) => a.to_micros_of_any() - b.to_micros_of_any(),
        _ => return Ok(Value::Null),
    };
    let clipped = Time::clipped(micros);
    if clipped.micros() != micros {
        let mut text = Vec::new();
        clipped.append_text(0, &mut text);
        context.truncated("time", &String::from_utf8_lossy(&text))?;
    }
    Ok(Value::Time(clipped))
}

enum Moment {
    Time(Time),
    Date(DateTime),
}

/// Text is a time when it reads as one, else a date with a time.
fn moment(c: &Call<'_, '_>, argument: usize, context: &mut Context) -> Result<Option<Moment>> {
    Ok(match c.value(argument) {
        ValueRef::Time(v) => Some(Moment::Time(v)),
        ValueRef::DateTime(v) => Some(Moment::Date(v)),
        ValueRef::Date(v) => Some(Moment::Date(v.at_midnight())),
        value if value.as_bytes().is_some() => {
            let bytes = value.as_bytes().unwrap_or_default();
            match rauk_types::datetime::parse_time(bytes) {
                Ok(parsed) if parsed.date.is_none() => c.time(argument, context)?.map(Moment::Time),
                _ => c.datetime(argument, context)?.map(Moment::Date),
            }
        }
        _ => c.time(argument, context)?.map(Moment::Time),
    })
}

fn timestamp_diff(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let Some(unit) = Unit::from_name(&c.text(0)) else { return Ok(Value::Null) };
    let (Some(from), Some(to)) = (c.datetime(1, context)?, c.datetime(2, context)?) else { return Ok(Value::Null) };
    let (Some(a), Some(b)) = (from.to_micros(), to.to_micros()) else { return Ok(Value::Null) };
    let micros = b - a;
    Ok(Value::Int(match unit {
        Unit::Year => to.months_since(from) / 12,
        Unit::Quarter => to.months_since(from) / 3,
        Unit::Month => to.months_since(from),
        Unit::Week => micros / (7 * MICROS_PER_DAY),
        Unit::Day => micros / MICROS_PER_DAY,
        Unit::Hour => micros / (3600 * MICROS_PER_SECOND),
        Unit::Minute => micros / (60 * MICROS_PER_SECOND),
        Unit::Second => micros / MICROS_PER_SECOND,
        _ => micros,
    }))
}

fn add_time_type(t: Typing<'_>) -> Result<Derived> {
    let scale = fraction_digits(&t, 0).max(fraction_digits(&t, 1));
    let derived = match Class::of(&t.arguments[0].ty) {
        Class::DateTime | Class::Date => Derived::new(DataType { scale, ..DataType::new(TypeKind::DateTime) }),
        Class::Time => Derived::new(DataType { scale, ..DataType::new(TypeKind::Time) }),
        _ => Derived::new(text_type(26, t.connection_text(0).ty.collation)),
    };
    Ok(derived.nullable())
}

fn add_time(c: &Call<'_, '_>, context: &mut Context, sign: i64) -> Result<Value> {
    let Some(Moment::Time(time)) = moment(c, 1, context)? else { return Ok(Value::Null) };
    let Some(start) = moment(c, 0, context)? else { return Ok(Value::Null) };
    let micros = time.micros() * sign;
    let digits = |micros: i64| if micros % MICROS_PER_SECOND != 0 { 6 } else { 0 };
    let mut out = Vec::new();
    match start {
        Moment::Time(start) => {
            let total = start.micros() + micros;
            let sum = Time::clipped(total);
            if sum.micros() != total {
                sum.append_text(0, &mut out);
                context.truncated("time", &String::from_utf8_lossy(&out))?;
                out.clear();
            }
            if !c.ty.is_text() {
                return Ok(if c.ty.kind == TypeKind::Time { Value::Time(sum) } else { Value::Null });
            }
            sum.append_text(digits(sum.micros()), &mut out);
        }
        Moment::Date(start) => {
            let Some(sum) = start.add_micros(micros) else {
                // The zero date has no day to count from.
                if start.is_zero() {
                    return Ok(Value::Null);
                }
                context.warn_or_fail(
                    codes::DATETIME_FUNCTION_OVERFLOW,
                    "Datetime function: datetime field overflow".into(),
                )?;
                return Ok(Value::Null);
            };
            if !c.ty.is_text() {
                return Ok(Value::DateTime(sum));
            }
            sum.append_text(digits(sum.micros_of_day()), &mut out);
        }
    }
    Ok(Value::Str(String::from_utf8_lossy(&out).into_owned()))
}

/// YYMM or YYYYMM as months since the year 0. Error 1210, as in MySQL 8, when it has no such month.
fn from_period(period: i64, function: &str) -> Result<i64> {
    let (year, month) = (period / 100, period % 100);
    if period <= 0 || !(1..=12).contains(&month) {
        return Err(MysqlError::new(codes::WRONG_ARGUMENTS, format!("Incorrect arguments to {function}")));
    }
    let year = match year {
        0..=69 => year + 2000,
        70..=99 => year + 1900,
        year => year,
    };
    Ok(year.saturating_mul(12).saturating_add(month - 1))
}

fn to_period(months: i64) -> i64 {
    let year = match months / 12 {
        year @ 0..=69 => year + 2000,
        year @ 70..=99 => year + 1900,
        year => year,
    };
    year.saturating_mul(100).saturating_add(months % 12 + 1)
}
