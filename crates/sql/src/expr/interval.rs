//! `date ± INTERVAL amount unit`, and the units that EXTRACT, TIMESTAMPADD and TIMESTAMPDIFF share with it.
//!
//! An amount is months, or microseconds, never both. Composite units take text with any separators, `'1:30'` MINUTE_SECOND; missing
//! parts are missing on the left. Days and months that lead beyond the years 0 to 9999 give NULL with warning 1441.

use super::convert::{self, Result, to_decimal, to_integer};
use super::types::{Class, text_type};
use super::{Context, Expr};
use crate::parse::ast::Unit;
use rauk_types::datetime::{self, MICROS_PER_DAY, MICROS_PER_SECOND};
use rauk_types::error::codes;
use rauk_types::{Collation, DataType, DateTime, Time, TypeKind, Value, ValueRef};

impl Unit {
    /// Amounts are text of several parts.
    pub fn is_composite(self) -> bool {
        self.parts().is_some()
    }

    /// Months, years or days only: a DATE stays a DATE.
    pub fn is_date_only(self) -> bool {
        matches!(self, Unit::Day | Unit::Week | Unit::Month | Unit::Quarter | Unit::Year | Unit::YearMonth)
    }

    pub fn has_microseconds(self) -> bool {
        use Unit::*;
        matches!(self, Microsecond | SecondMicrosecond | MinuteMicrosecond | HourMicrosecond | DayMicrosecond)
    }

    fn is_months(self) -> bool {
        matches!(self, Unit::Month | Unit::Quarter | Unit::Year | Unit::YearMonth)
    }

    /// Of a composite unit: its parts from the left, as microseconds (or months) each.
    fn parts(self) -> Option<&'static [i64]> {
        const S: i64 = MICROS_PER_SECOND;
        const M: i64 = 60 * S;
        const H: i64 = 60 * M;
        const D: i64 = 24 * H;
        use Unit::*;
        Some(match self {
            SecondMicrosecond => &[S, 1],
            MinuteMicrosecond => &[M, S, 1],
            MinuteSecond => &[M, S],
            HourMicrosecond => &[H, M, S, 1],
            HourSecond => &[H, M, S],
            HourMinute => &[H, M],
            DayMicrosecond => &[D, H, M, S, 1],
            DaySecond => &[D, H, M, S],
            DayMinute => &[D, H, M],
            DayHour => &[D, H],
            YearMonth => &[12, 1],
            _ => return None,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    Months(i64),
    Micros(i64),
    /// Beyond what any date could bear.
    TooLarge,
}

impl Amount {
    pub fn read(value: ValueRef<'_>, ty: &DataType, unit: Unit, context: &mut Context) -> Result<Amount> {
        if let Some(parts) = unit.parts() {
            let text = convert::text(value, ty).into_owned();
            return Ok(composite(&text, parts, unit));
        }
        if unit == Unit::Second {
            let number = to_decimal(value, context)?;
            let micros =
                number.checked_mul(&rauk_types::Decimal::from(MICROS_PER_SECOND)).ok().and_then(|v| v.to_i64());
            return Ok(micros.map_or(Amount::TooLarge, Amount::Micros));
        }
        let number = i64::try_from(to_integer(value, context)?).ok();
        let scaled = |factor: i64| number.and_then(|n| n.checked_mul(factor));
        Ok(match unit {
            Unit::Month => scaled(1).map(Amount::Months),
            Unit::Quarter => scaled(3).map(Amount::Months),
            Unit::Year => scaled(12).map(Amount::Months),
            Unit::Microsecond => scaled(1).map(Amount::Micros),
            Unit::Minute => scaled(60 * MICROS_PER_SECOND).map(Amount::Micros),
            Unit::Hour => scaled(3600 * MICROS_PER_SECOND).map(Amount::Micros),
            Unit::Day => scaled(MICROS_PER_DAY).map(Amount::Micros),
            _ => scaled(7 * MICROS_PER_DAY).map(Amount::Micros),
        }
        .unwrap_or(Amount::TooLarge))
    }

    fn negated(self) -> Amount {
        match self {
            Amount::Months(n) => n.checked_neg().map_or(Amount::TooLarge, Amount::Months),
            Amount::Micros(n) => n.checked_neg().map_or(Amount::TooLarge, Amount::Micros),
            Amount::TooLarge => Amount::TooLarge,
        }
    }
}

/// Numbers separated by anything; the last part of a microsecond unit is a fraction (`'1.5'` SECOND_MICROSECOND is 1.500000).
fn composite(text: &str, parts: &[i64], unit: Unit) -> Amount {
    let text = text.trim_start();
    let negative = text.starts_with('-');
    let mut numbers: Vec<(i64, usize)> = Vec::new();
    for group in text.split(|c: char| !c.is_ascii_digit()).filter(|g| !g.is_empty()) {
        if numbers.len() == parts.len() {
            break;
        }
        match group.parse() {
            Ok(number) => numbers.push((number, group.len())),
            Err(_) => return Amount::TooLarge,
        }
    }
    if unit.has_microseconds()
        && numbers.len() == parts.len()
        && let Some((number, digits)) = numbers.last_mut()
        && *digits < 6
    {
        *number *= 10i64.pow((6 - *digits) as u32);
    }
    let skipped = parts.len() - numbers.len();
    let total = numbers
        .iter()
        .zip(&parts[skipped..])
        .try_fold(0i64, |sum, ((number, _), factor)| sum.checked_add(number.checked_mul(*factor)?));
    let amount = match total {
        None => Amount::TooLarge,
        Some(total) if unit.is_months() => Amount::Months(total),
        Some(total) => Amount::Micros(total),
    };
    if negative { amount.negated() } else { amount }
}

fn overflow(context: &mut Context) -> Result<Value> {
    context.warn_or_fail(codes::DATETIME_FUNCTION_OVERFLOW, "Datetime function: datetime field overflow".into())?;
    Ok(Value::Null)
}

fn shifted(date: DateTime, amount: Amount) -> Option<DateTime> {
    match amount {
        Amount::Months(months) => date.add_months(months),
        Amount::Micros(micros) => date.add_micros(micros),
        Amount::TooLarge => None,
    }
}

/// The type of `date ± INTERVAL … unit`.
pub fn result_type(date: &Expr, amount: &Expr, unit: Unit, connection: Collation) -> DataType {
    let fraction = match unit {
        _ if unit.has_microseconds() => 6,
        // As many digits as the amount has; a text, and a DOUBLE without a number of digits, may have all.
        Unit::Second => match Class::of(&amount.ty) {
            Class::Null | Class::Integer => 0,
            Class::Text | Class::Bytes => 6,
            Class::Decimal | Class::Double | Class::Date | Class::Time | Class::DateTime => amount.ty.scale.min(6),
        },
        _ => 0,
    };
    let scale = date.ty.scale.min(6).max(fraction);
    match Class::of(&date.ty) {
        Class::Date if unit.is_date_only() => DataType::new(TypeKind::Date),
        Class::Date => DataType { scale: fraction, ..DataType::new(TypeKind::DateTime) },
        Class::DateTime => DataType { scale, ..DataType::new(TypeKind::DateTime) },
        Class::Time if !unit.is_months() => DataType { scale, ..DataType::new(TypeKind::Time) },
        Class::Time => DataType { scale, ..DataType::new(TypeKind::DateTime) },
        _ => text_type(26, connection),
    }
}

/// Both are not NULL. Text gives text: a date if it was one and the unit allows, else date and time.
pub fn add(
    date: ValueRef<'_>,
    amount: Amount,
    subtract: bool,
    unit: Unit,
    ty: &DataType,
    context: &mut Context,
) -> Result<Value> {
    let amount = if subtract { amount.negated() } else { amount };
    if let ValueRef::Time(time) = date
        && ty.kind == TypeKind::Time
    {
        let Amount::Micros(micros) = amount else { return overflow(context) };
        return match time.micros().checked_add(micros).and_then(Time::from_micros) {
            Some(time) => Ok(Value::Time(time)),
            None => overflow(context),
        };
    }
    if ty.kind == TypeKind::Date
        && let ValueRef::Date(date) = date
    {
        return match shifted(date.at_midnight(), amount) {
            Some(moved) => Ok(Value::Date(moved.date())),
            None if date.is_zero() => Ok(Value::Null),
            None => overflow(context),
        };
    }
    // Text may be a date alone, and stays one then.
    let date_only = match date.as_bytes() {
        Some(bytes) => {
            let flags = context.sql_mode.date_flags(false);
            datetime::parse_date_time(bytes, flags).is_ok_and(|p| p.date_only) && unit.is_date_only()
        }
        None => false,
    };
    let Some(start) = convert::read_datetime(date, context)? else { return Ok(Value::Null) };
    let Some(moved) = shifted(start, amount) else {
        // The zero date has no day to count from.
        return if start.is_zero() { Ok(Value::Null) } else { overflow(context) };
    };
    if !ty.is_text() {
        return Ok(Value::DateTime(moved));
    }
    let mut out = Vec::with_capacity(26);
    if date_only {
        moved.date().append_text(&mut out);
    } else {
        moved.append_text(if moved.microsecond() != 0 { 6 } else { 0 }, &mut out);
    }
    Ok(Value::Str(String::from_utf8(out).expect("ASCII")))
}

/// EXTRACT(unit FROM value): the parts from the largest to the smallest as one number.
pub fn extract(unit: Unit, date: DateTime, time: Time, is_time: bool) -> i64 {
    use Unit::*;
    let days = if is_time { 0 } else { i64::from(date.day()) };
    // Of a TIME, hours count on beyond a day; EXTRACT(DAY_…) of it has the days.
    let hours = i64::from(time.hours());
    let (day, hour) = if is_time { (hours / 24, hours % 24) } else { (days, hours) };
    let (minute, second, micro) = (i64::from(time.minutes()), i64::from(time.seconds()), i64::from(time.microsecond()));
    let second_micro = second * 1_000_000 + micro;
    let value = match unit {
        Year => i64::from(date.year()),
        Quarter => i64::from(date.date().quarter()),
        Month => i64::from(date.month()),
        YearMonth => i64::from(date.year()) * 100 + i64::from(date.month()),
        Week => date.date().week(datetime::WeekMode::new(0)).map_or(0, |w| w.1.into()),
        Day => day,
        Hour => hours,
        Minute => minute,
        Second => second,
        Microsecond => micro,
        DayHour => day * 100 + hour,
        DayMinute => day * 10_000 + hour * 100 + minute,
        DaySecond => day * 1_000_000 + hour * 10_000 + minute * 100 + second,
        DayMicrosecond => (day * 1_000_000 + hour * 10_000 + minute * 100) * 1_000_000 + second_micro,
        HourMinute => hours * 100 + minute,
        HourSecond => hours * 10_000 + minute * 100 + second,
        HourMicrosecond => (hours * 10_000 + minute * 100) * 1_000_000 + second_micro,
        MinuteSecond => minute * 100 + second,
        MinuteMicrosecond => minute * 100_000_000 + second_micro,
        SecondMicrosecond => second_micro,
    };
    if time.is_negative() { -value } else { value }
}
