//! INTERVAL … RETAIN …: the partitions by RANGE of a time that are due at a moment.
//!
//! ```sql
//! PARTITION BY RANGE COLUMNS (day) INTERVAL 1 DAY RETAIN 30 DAY
//! ```
//!
//! [`apply`] makes partitions until they reach well beyond the moment, and drops those whose time is over; it is pure, so
//! whoever wants to know whether something is due compares what it makes with what is there. CREATE TABLE and PARTITION BY
//! make what is due at once, `ALTER TABLE … INTERVAL` and `… APPLY INTERVAL` also drop; [`crate::session::intervals`] does both
//! from time to time. Each is one change of the catalog, which moves no rows.
//!
//! Bounds are counted on from the last one that is there, by the calendar: a month has the days that it has. Where no
//! partition is written the first one ends with the present interval. Bounds of UNIX_TIMESTAMP are in the time zone of
//! whoever makes them; hours and minutes of it are counted in UTC, where each has the same length.
//!
//! Errors: 1221 (INTERVAL with another partitioning, or with MAXVALUE), 1441 (beyond the year 9999), 1499.

use super::partition_clause::{TOO_MANY, TOO_MANY_TEXT, subpartition_name};
use crate::parse::ast::{self, Arguments};
use crate::parse::{Mode, parse_expression};
use jiff::tz::TimeZone;
use rauk_types::datetime::{MICROS_PER_DAY, MICROS_PER_SECOND};
use rauk_types::error::codes;
use rauk_types::partitioning::{
    Leaf, MAX_PARTITIONS, PartitionBound, PartitionInterval, PartitionMethod, PartitionOn, PartitionOptions,
    PartitionValues, Partitioning, Span, SpanUnit, UserPartition,
};
use rauk_types::{Date, DateTime, MysqlError, TableSchema, TypeKind, Value};
use std::collections::HashSet;

/// Partitions reach at least so far beyond the present: rows that a clock ahead writes, and a server that restarts, find one.
const LEAST_AHEAD: Span = Span { count: 1, unit: SpanUnit::Hour };

/// When, and what the clocks on the wall show then.
#[derive(Clone, Debug)]
pub struct Moment {
    /// Microseconds since 1970 UTC.
    pub micros: i64,
    pub zone: TimeZone,
}

/// What bounds of partitions say of time.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Axis {
    /// RANGE COLUMNS of a DATE.
    Date,
    /// RANGE COLUMNS of a DATETIME.
    DateTime,
    /// TO_DAYS (…).
    Days,
    /// TO_SECONDS (…).
    Seconds,
    /// UNIX_TIMESTAMP (…).
    Unix,
    /// YEAR (…).
    Year,
}

impl Axis {
    /// `None`: rows are not divided by a time.
    fn of(partitioning: &Partitioning, schema: &TableSchema) -> Option<Axis> {
        if partitioning.by.method != PartitionMethod::Range {
            return None;
        }
        let text = match &partitioning.by.on {
            PartitionOn::Columns { columns, .. } => {
                let [column] = columns.as_slice() else { return None };
                return match schema.columns[*column].ty.kind {
                    TypeKind::Date => Some(Axis::Date),
                    TypeKind::DateTime => Some(Axis::DateTime),
                    _ => None,
                };
            }
            PartitionOn::Expression { text, .. } => text,
        };
        let expr = parse_expression(text, Mode::default()).expect("the catalog keeps texts of expressions");
        let ast::Expr::Call(call) = expr else { return None };
        match &call.arguments {
            Arguments::List { items, .. } if matches!(items.as_slice(), [ast::Expr::Column(_)]) => {}
            _ => return None,
        }
        match call.name.to_ascii_uppercase().as_str() {
            "TO_DAYS" => Some(Axis::Days),
            "TO_SECONDS" => Some(Axis::Seconds),
            "UNIX_TIMESTAMP" => Some(Axis::Unix),
            "YEAR" => Some(Axis::Year),
            _ => None,
        }
    }

    /// The shortest span that two bounds can be apart.
    fn finest(self) -> SpanUnit {
        match self {
            Axis::Date | Axis::Days => SpanUnit::Day,
            Axis::DateTime | Axis::Seconds | Axis::Unix => SpanUnit::Minute,
            Axis::Year => SpanUnit::Year,
        }
    }

    /// The time at which a bound is; `None`: it is no time, such as a negative number.
    fn time_of(self, bound: &Value, zone: &TimeZone) -> Option<DateTime> {
        let number = || bound.as_ref().as_integer().and_then(|number| i64::try_from(number).ok());
        let from_days = |days: i64| Some(Date::from_days(days)).filter(|date| !date.is_zero());
        match (self, bound) {
            (Axis::Date, Value::Date(date)) => Some(date.at_midnight()),
            (Axis::DateTime, Value::DateTime(time)) => Some(*time),
            (Axis::Date | Axis::DateTime, _) => None,
            (Axis::Days, _) => from_days(number()?).map(Date::at_midnight),
            (Axis::Seconds, _) => {
                let day = MICROS_PER_DAY / MICROS_PER_SECOND;
                let date = from_days(number()?.div_euclid(day))?;
                Some(DateTime::new(date, number()?.rem_euclid(day) * MICROS_PER_SECOND))
            }
            (Axis::Unix, _) => DateTime::from_unix_micros(number()?.checked_mul(MICROS_PER_SECOND)?, zone),
            (Axis::Year, _) => Some(Date::new(u16::try_from(number()?).ok()?, 1, 1)?.at_midnight()),
        }
    }

    fn bound_at(self, time: DateTime, zone: &TimeZone) -> Option<Value> {
        Some(match self {
            Axis::Date => Value::Date(time.date()),
            Axis::DateTime => Value::DateTime(time),
            Axis::Days => Value::Int(time.date().to_days()?),
            Axis::Seconds => Value::Int(time.to_micros()? / MICROS_PER_SECOND),
            Axis::Unix => Value::Int(time.to_unix_micros(zone)?.micros / MICROS_PER_SECOND),
            Axis::Year => Value::Int(i64::from(time.year())),
        })
    }
}

fn wrong_usage(with: &str) -> MysqlError {
    MysqlError::new(codes::WRONG_USAGE, format!("Incorrect usage of INTERVAL and {with}"))
}

/// Error 1441.
fn too_late() -> MysqlError {
    MysqlError::new(codes::DATETIME_FUNCTION_OVERFLOW, "Datetime function: datetime field overflow")
}

/// What is wrong before the columns are known: error 1221.
pub(super) fn check_clause(clause: &ast::PartitionClause) -> Result<(), MysqlError> {
    if clause.interval.is_none() {
        return Ok(());
    }
    if clause.by.method != PartitionMethod::Range {
        return Err(wrong_usage("another partitioning than by RANGE"));
    }
    let is_open = |definition: &ast::PartitionDefinition| match &definition.values {
        ast::PartitionValues::LessThan(bounds) => bounds.contains(&ast::PartitionBound::MaxValue),
        _ => false,
    };
    if clause.definitions.iter().any(is_open) { Err(wrong_usage("MAXVALUE")) } else { Ok(()) }
}

/// Error 1221: the table has no INTERVAL.
pub(super) fn none_to(verb: &str) -> MysqlError {
    let text = format!("Incorrect usage of {verb} INTERVAL and a table without INTERVAL");
    MysqlError::new(codes::WRONG_USAGE, text)
}

/// Makes the partitions that are due at a moment, and drops those whose time is over if `drops`. `each`: subpartitions of one,
/// 1 without.
pub(crate) fn apply(
    partitioning: &mut Partitioning,
    schema: &TableSchema,
    moment: &Moment,
    drops: bool,
    each: u64,
) -> Result<(), MysqlError> {
    let Some(interval) = partitioning.interval else { return Ok(()) };
    let axis = Axis::of(partitioning, schema).ok_or_else(|| {
        wrong_usage(
            "rows that no time divides: it takes RANGE COLUMNS (one DATE or DATETIME column), or RANGE of TO_DAYS, \
             TO_SECONDS, YEAR or UNIX_TIMESTAMP of a column",
        )
    })?;
    let too_fine = std::iter::once(interval.every).chain(interval.retain).find(|span| span.unit < axis.finest());
    if let Some(span) = too_fine {
        let finest = axis.finest().name();
        return Err(wrong_usage(&format!("{span}: these partitions are a {finest} long at least")));
    }
    let is_clock_time = axis == Axis::Unix && interval.every.unit < SpanUnit::Day;
    let zone = if is_clock_time { &TimeZone::UTC } else { &moment.zone };
    let now = DateTime::from_unix_micros(moment.micros, zone).ok_or_else(too_late)?;
    let mut making = Making { axis, zone, interval, each, partitioning };
    making.make(now)?;
    if drops && let Some(over) = interval.retain.and_then(|retain| retain.before(now)) {
        making.drop_until(over);
    }
    Ok(())
}

struct Making<'a> {
    axis: Axis,
    zone: &'a TimeZone,
    interval: PartitionInterval,
    each: u64,
    partitioning: &'a mut Partitioning,
}

impl Making<'_> {
    /// Where a partition ends.
    fn end_of(&self, partition: &UserPartition) -> Option<DateTime> {
        match &partition.values {
            PartitionValues::LessThan(bounds) => match bounds.as_slice() {
                [PartitionBound::Value(bound)] => self.axis.time_of(bound, self.zone),
                _ => None,
            },
            _ => None,
        }
    }

    fn make(&mut self, now: DateTime) -> Result<(), MysqlError> {
        let every = self.interval.every;
        let ahead = every.after(now).and_then(|next| every.after(next)).ok_or_else(too_late)?;
        let ahead = ahead.max(LEAST_AHEAD.after(now).ok_or_else(too_late)?);
        let mut known: HashSet<String> = HashSet::new();
        for partition in &self.partitioning.partitions {
            known.insert(partition.name.to_lowercase());
            known.extend(partition.leaves.iter().filter_map(|leaf| leaf.name.as_ref()).map(|name| name.to_lowercase()));
        }
        let mut from = match self.partitioning.partitions.last() {
            None => beginning(now, every.unit),
            Some(last) => self.end_of(last).ok_or_else(|| wrong_usage("a last partition whose bound is no time"))?,
        };
        // What would be dropped at once is not made: after a pause, the next partition takes the time of the pause too.
        if let Some(over) = self.interval.retain.and_then(|retain| retain.before(now)) {
            while let Some(next) = next_bound(from, every).filter(|next| *next <= over) {
                from = next;
            }
        }
        while from < ahead || self.partitioning.partitions.is_empty() {
            let to = next_bound(from, every).ok_or_else(too_late)?;
            let bound = self.axis.bound_at(to, self.zone).ok_or_else(too_late)?;
            let partition = self.partition(from, bound, &mut known);
            self.partitioning.partitions.push(partition);
            if self.partitioning.partitions.len() as u64 * self.each > MAX_PARTITIONS as u64 {
                return Err(MysqlError::new(TOO_MANY, TOO_MANY_TEXT));
            }
            from = to;
        }
        Ok(())
    }

    /// The partition from a time to a bound.
    fn partition(&self, from: DateTime, bound: Value, known: &mut HashSet<String>) -> UserPartition {
        let base = name_of(from, self.interval.every.unit);
        let subs = |name: &str| -> Vec<String> {
            let has = self.partitioning.sub.is_some();
            (0..self.each).filter(|_| has).map(|at| subpartition_name(name, at)).collect()
        };
        let is_free = |name: &String| {
            !known.contains(&name.to_lowercase()) && subs(name).iter().all(|sub| !known.contains(&sub.to_lowercase()))
        };
        // A clock that is set back has the same hour twice.
        let others = (2..).map(|number| format!("{base}_{number}"));
        let name = std::iter::once(base.clone()).chain(others).find(is_free).expect("there are more names than taken");
        let named = subs(&name);
        known.insert(name.to_lowercase());
        known.extend(named.iter().map(|sub| sub.to_lowercase()));
        let leaves = match named.is_empty() {
            true => vec![Leaf::new(None)],
            false => named.into_iter().map(|sub| Leaf::new(Some(sub))).collect(),
        };
        let values = PartitionValues::LessThan(vec![PartitionBound::Value(bound)]);
        UserPartition { name, values, options: PartitionOptions::default(), leaves }
    }

    /// Partitions are in the order of their ends, and reach beyond the present when they have been made: one stays. One
    /// whose end is before all times is over as well.
    fn drop_until(&mut self, over: DateTime) {
        let stays = |partition: &UserPartition| self.end_of(partition).is_some_and(|end| end > over);
        let gone = self.partitioning.partitions.iter().position(stays).expect("partitions reach beyond the present");
        self.partitioning.partitions.drain(..gone);
    }
}

/// When the present minute, hour, day, … began. Weeks begin on Mondays.
fn beginning(now: DateTime, unit: SpanUnit) -> DateTime {
    let of_day = |length: i64| DateTime::new(now.date(), now.micros_of_day() / length * length);
    let of_month = |month: u8| Date::from_parts(now.year(), month, 1).at_midnight();
    match unit {
        SpanUnit::Minute => of_day(60 * MICROS_PER_SECOND),
        SpanUnit::Hour => of_day(3600 * MICROS_PER_SECOND),
        SpanUnit::Day => now.date().at_midnight(),
        SpanUnit::Week => {
            let monday = now.date().weekday().and_then(|days| now.date().add_days(-i64::from(days)));
            monday.unwrap_or(now.date()).at_midnight()
        }
        SpanUnit::Month => of_month(now.month()),
        SpanUnit::Quarter => of_month((now.month() - 1) / 3 * 3 + 1),
        SpanUnit::Year => of_month(1),
    }
}

/// The bound behind one. Months are counted from a day that all of them have: from a bound on the 31st the next ones are on the 1st.
fn next_bound(from: DateTime, every: Span) -> Option<DateTime> {
    let counts_months = every.unit >= SpanUnit::Month;
    if !counts_months || from.day() <= 28 {
        return every.after(from);
    }
    let first = Date::from_parts(from.year(), from.month(), 1).add_months(1)?;
    every.after(DateTime::new(first, from.micros_of_day()))
}

/// What a partition is called by when it begins.
fn name_of(from: DateTime, unit: SpanUnit) -> String {
    let (year, month, day) = (from.year(), from.month(), from.day());
    match unit {
        SpanUnit::Minute => format!("p{year:04}{month:02}{day:02}{:02}{:02}", from.hour(), from.minute()),
        SpanUnit::Hour => format!("p{year:04}{month:02}{day:02}{:02}", from.hour()),
        SpanUnit::Day | SpanUnit::Week => format!("p{year:04}{month:02}{day:02}"),
        SpanUnit::Month | SpanUnit::Quarter => format!("p{year:04}{month:02}"),
        SpanUnit::Year => format!("p{year:04}"),
    }
}

#[cfg(test)]
#[path = "interval_tests.rs"]
mod tests;
