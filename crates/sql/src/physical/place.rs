//! Where a value lies among the values of a column's type.
//!
//! A value is one of them, lies between two, or covers several (a local time that occurs twice). Keys and ranges of an
//! access path are made of places, and the partition that a row's distribution key names. Where a place is not known,
//! nothing is bounded by it, and filters decide.

use super::model::DistributionKey;
use crate::expr::{Columns, Context};
use jiff::tz::TimeZone;
use rauk_types::datetime::{DateFlags, parse_date_time, parse_time};
use rauk_types::format::parse_double_prefix;
use rauk_types::{DataType, Decimal, MysqlError, Time, TypeKind, Value};

/// Where a value lies among the values of a column's type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Place {
    Null,
    /// It is one of them.
    Exact(Value),
    /// It is none of them; `below` is the largest one below it.
    Gap {
        below: Option<Value>,
    },
    /// Those that equal it lie between these.
    Fuzzy {
        low: Value,
        high: Value,
    },
    Unknown,
}

pub(crate) fn place(value: Value, column: &DataType, zone: &TimeZone) -> Place {
    if value.is_null() {
        return Place::Null;
    }
    match column.kind {
        _ if column.holds_integer() => place_integer(&value, column),
        TypeKind::Decimal => place_decimal(&value, column),
        TypeKind::Double => {
            let double = match value {
                Value::Int(v) => v as f64,
                Value::UInt(v) => v as f64,
                Value::Decimal(v) => v.to_f64(),
                Value::Double(v) => v,
                _ => return Place::Unknown,
            };
            Place::Exact(Value::Double(double))
        }
        TypeKind::Date | TypeKind::DateTime | TypeKind::Timestamp => place_date_time(&value, column, zone),
        TypeKind::Time => {
            let time = match value {
                Value::Time(v) => v,
                Value::Str(text) => match parse_time(text.as_bytes()) {
                    Ok(p) if !p.truncated && !p.round_up && !p.out_of_range && p.date.is_none() => p.value,
                    _ => return Place::Unknown,
                },
                _ => return Place::Unknown,
            };
            let cut = time.truncated(column.scale);
            if cut == time {
                Place::Exact(Value::Time(time))
            } else if time.is_negative() {
                // It was cut towards zero.
                let below = Time::from_micros(cut.micros() - 10_i64.pow(6 - u32::from(column.scale.min(6))));
                Place::Gap { below: below.map(Value::Time) }
            } else {
                Place::Gap { below: Some(Value::Time(cut)) }
            }
        }
        _ if column.is_text() && column.kind != TypeKind::Json => match value {
            Value::Str(_) => Place::Exact(value),
            _ => Place::Unknown,
        },
        _ if column.is_bytes() => match value {
            Value::Str(text) => Place::Exact(Value::Bytes(text.into_bytes())),
            Value::Bytes(_) => Place::Exact(value),
            _ => Place::Unknown,
        },
        _ => Place::Unknown,
    }
}

fn place_integer(value: &Value, column: &DataType) -> Place {
    let Some((min, max)) = column.integer_range() else { return Place::Unknown };
    let unsigned = column.unsigned || column.is_plain_number();
    let wrap = |v: i128| if unsigned { Value::UInt(v as u64) } else { Value::Int(v as i64) };
    // The value is an integer, or just above one.
    let at = |v: i128, exact: bool| {
        if v < min {
            Place::Gap { below: None }
        } else if v > max {
            Place::Gap { below: Some(wrap(max)) }
        } else if exact {
            Place::Exact(wrap(v))
        } else {
            Place::Gap { below: Some(wrap(v)) }
        }
    };
    let double = match value {
        Value::Int(v) => return at((*v).into(), true),
        Value::UInt(v) => return at((*v).into(), true),
        Value::Decimal(v) => {
            let floor = v.floor();
            return match floor.unscaled_i128() {
                Some(floor_value) => at(floor_value, floor == *v),
                None => at(if v.is_negative() { i128::MIN } else { i128::MAX }, false),
            };
        }
        Value::Double(v) => *v,
        Value::Str(text) => parse_double_prefix(text.as_bytes()).value,
        Value::Bytes(bytes) => parse_double_prefix(bytes).value,
        _ => return Place::Unknown,
    };
    if double.abs() < 9_007_199_254_740_992.0 {
        return at(double.floor() as i128, double.floor() == double);
    }
    // Several integers are this double.
    let middle = double as i128;
    let (low, high) = (middle.saturating_sub(2048), middle.saturating_add(2048));
    if high < min || low > max {
        return at(middle, false);
    }
    Place::Fuzzy { low: wrap(low.clamp(min, max)), high: wrap(high.clamp(min, max)) }
}

fn place_decimal(value: &Value, column: &DataType) -> Place {
    let decimal = match value {
        Value::Int(v) => Decimal::from(*v),
        Value::UInt(v) => Decimal::from(*v),
        Value::Decimal(v) => *v,
        _ => return Place::Unknown,
    };
    let (precision, scale) = (column.precision, column.scale);
    let largest = Decimal::largest(precision, scale);
    let smallest = if column.unsigned { Decimal::ZERO } else { largest.neg() };
    if decimal > largest {
        return Place::Gap { below: Some(Value::Decimal(largest)) };
    }
    if decimal < smallest {
        return Place::Gap { below: None };
    }
    let Ok(cut) = decimal.truncated(scale).rescale(scale) else { return Place::Unknown };
    if cut == decimal {
        Place::Exact(Value::Decimal(cut))
    } else if decimal.is_negative() {
        let below = cut.checked_sub(&Decimal::new(1, scale)).ok().filter(|b| *b >= smallest);
        Place::Gap { below: below.map(Value::Decimal) }
    } else {
        Place::Gap { below: Some(Value::Decimal(cut)) }
    }
}

fn place_date_time(value: &Value, column: &DataType, zone: &TimeZone) -> Place {
    let date_time = match value {
        Value::Date(v) => v.at_midnight(),
        Value::DateTime(v) => *v,
        Value::Timestamp(v) if column.kind == TypeKind::Timestamp => return Place::Exact(Value::Timestamp(*v)),
        Value::Str(text) => match parse_date_time(text.as_bytes(), DateFlags::default()) {
            Ok(p) if !p.truncated && !p.round_up && p.offset.is_none() => p.value,
            _ => return Place::Unknown,
        },
        _ => return Place::Unknown,
    };
    match column.kind {
        TypeKind::Date => {
            let date = Value::Date(date_time.date());
            if date_time.micros_of_day() == 0 { Place::Exact(date) } else { Place::Gap { below: Some(date) } }
        }
        TypeKind::DateTime => {
            let cut = date_time.truncated(column.scale);
            if cut == date_time {
                Place::Exact(Value::DateTime(cut))
            } else {
                Place::Gap { below: Some(Value::DateTime(cut)) }
            }
        }
        _ => {
            if date_time.is_zero() {
                return Place::Fuzzy { low: Value::Timestamp(0), high: Value::Timestamp(0) };
            }
            let Some(first) = date_time.to_unix_micros(zone) else { return Place::Unknown };
            let mut high = first.micros;
            if zone.to_fixed_offset().is_err() && !first.in_gap {
                // Where clocks are put back, the same local time comes again, at most a day later.
                let mut later = first.micros + 86_400_000_000;
                while later > first.micros {
                    if rauk_types::DateTime::from_unix_micros(later, zone) == Some(date_time) {
                        high = later;
                        break;
                    }
                    later -= 900_000_000;
                }
            }
            if high <= 0 {
                // Before all that the type holds, but the zero date is earlier.
                return Place::Gap { below: Some(Value::Timestamp(0)) };
            }
            if high == first.micros && !first.in_gap && date_time.truncated(column.scale) == date_time {
                return Place::Exact(Value::Timestamp(high));
            }
            Place::Fuzzy { low: Value::Timestamp(first.micros.max(0)), high: Value::Timestamp(high) }
        }
    }
}

/// What the distribution columns are fixed to.
pub(crate) enum Distribution {
    Unknown,
    Key(Vec<u8>),
    /// No row can match.
    Nothing,
}

/// The key of the distribution columns, from which a row's partition follows.
pub(crate) fn distribution(
    key: Option<&DistributionKey>,
    row: &dyn Columns,
    zone: &TimeZone,
    context: &mut Context,
) -> Result<Distribution, MysqlError> {
    let Some(key) = key else { return Ok(Distribution::Unknown) };
    let mut out = Vec::new();
    for (part, expr) in key.key_def.parts.iter().zip(&key.values) {
        match place(expr.eval(row, context)?, &part.ty, zone) {
            Place::Exact(value) => part.encode(value.as_ref(), &mut out),
            Place::Null | Place::Gap { .. } => return Ok(Distribution::Nothing),
            Place::Fuzzy { .. } | Place::Unknown => return Ok(Distribution::Unknown),
        }
    }
    Ok(Distribution::Key(out))
}
