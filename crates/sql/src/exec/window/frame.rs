//! Frames: which rows of its partition a row's frame has.
//!
//! Both ends of a frame only move forward while the rows go by, so that a cursor for each finds them in one pass, whatever the distance is.
//!
//! RANGE with a distance looks at the only key of the order. A bound is where keys pass the current row's key plus or minus the distance; the sum may
//! lie beyond what the type of the key can hold, and nothing then lies beyond the bound. NULL has no distance from anything: the bounds of a row whose
//! key is NULL are the ends of its peers, and no other row has NULLs in its frame but by an unbounded end.

use super::{At, Partition};
use crate::expr::{Comparison, Context, Distance, Expr, FrameBound, NoColumns, WindowFrame};
use crate::physical::model::Key;
use rauk_types::{DateTime, Decimal, MysqlError, Value, ValueRef};
use std::cmp::Ordering;
use std::ops::Range;

/// A frame in one execution.
pub(super) struct Frame<'p> {
    start: End<'p>,
    end: End<'p>,
    /// The key of the order, of RANGE with a distance.
    key: Option<Key>,
    /// Rows whose key is not NULL.
    valued: Range<usize>,
    /// Where the search for the ends goes on.
    low: usize,
    high: usize,
}

enum End<'p> {
    Unbounded,
    /// RANGE: all peers.
    Peers,
    /// ROWS: so many rows behind the current one.
    Rows(i64),
    Value(Step<'p>),
}

struct Step<'p> {
    distance: Difference<'p>,
    preceding: bool,
}

enum Difference<'p> {
    Integer(i128),
    Decimal(Decimal),
    Double(f64),
    Interval { moved: &'p Expr, by: Comparison },
}

/// A key that a bound is compared with.
enum Edge {
    /// Beyond all keys: before them or behind them.
    Before,
    Behind,
    Integer(i128),
    Decimal(Decimal),
    Double(f64),
    Moment(Value, Comparison),
}

fn illegal(frame: &WindowFrame) -> MysqlError {
    let window = &frame.window;
    MysqlError::new(3586, format!("Window '{window}': frame start or end is negative, NULL or of non-integral type"))
}

impl<'p> Frame<'p> {
    /// `order`: the keys of the window's ORDER BY. Error 3586.
    pub fn new(frame: &'p WindowFrame, order: &[Key], context: &mut Context) -> Result<Self, MysqlError> {
        let start = end(&frame.start, frame, order, context)?;
        let end = end(&frame.end, frame, order, context)?;
        let by_value = matches!(start, End::Value(_)) || matches!(end, End::Value(_));
        let key = by_value.then(|| order[0].clone());
        Ok(Frame { start, end, key, valued: 0..0, low: 0, high: 0 })
    }

    /// The column whose values it compares.
    pub fn key_column(&self) -> Option<usize> {
        self.key.as_ref().map(|key| key.column)
    }

    /// A partition begins, whose columns are there.
    pub fn begin(&mut self, partition: &Partition) {
        if let Some(key) = &self.key {
            let keys = &partition.columns[key.column];
            let nulls = if key.descending {
                keys.iter().rev().take_while(|key| key.is_null()).count()
            } else {
                keys.iter().take_while(|key| key.is_null()).count()
            };
            self.valued = if key.descending { 0..keys.len() - nulls } else { nulls..keys.len() };
        }
        (self.low, self.high) = (self.valued.start, self.valued.start);
    }

    /// The rows of the frame of the row `at`.
    pub fn rows(
        &mut self,
        partition: &Partition,
        at: usize,
        context: &mut Context,
    ) -> Result<Range<usize>, MysqlError> {
        let clamped = |row: i64| usize::try_from(row).unwrap_or(0).min(partition.rows);
        let start = match &self.start {
            End::Unbounded => 0,
            End::Peers => partition.peers.start,
            End::Rows(by) => clamped((at as i64).saturating_add(*by)),
            End::Value(_) if !self.valued.contains(&at) => partition.peers.start,
            End::Value(step) => {
                let key = self.key.as_ref().expect("a bound by value has a key");
                let edge = step.edge(key, partition, at, context)?;
                while self.low < self.valued.end {
                    context.budget.work(16)?;
                    if !edge.is_behind(&partition.columns[key.column][self.low], key.descending, false, context)? {
                        break;
                    }
                    self.low += 1;
                }
                self.low
            }
        };
        let end = match &self.end {
            End::Unbounded => partition.rows,
            End::Peers => partition.peers.end,
            End::Rows(by) => clamped((at as i64).saturating_add(*by).saturating_add(1)),
            End::Value(_) if !self.valued.contains(&at) => partition.peers.end,
            End::Value(step) => {
                let key = self.key.as_ref().expect("a bound by value has a key");
                let edge = step.edge(key, partition, at, context)?;
                while self.high < self.valued.end {
                    context.budget.work(16)?;
                    if !edge.is_behind(&partition.columns[key.column][self.high], key.descending, true, context)? {
                        break;
                    }
                    self.high += 1;
                }
                self.high
            }
        };
        Ok(start..end.max(start))
    }
}

fn end<'p>(
    bound: &'p FrameBound,
    frame: &WindowFrame,
    order: &[Key],
    context: &mut Context,
) -> Result<End<'p>, MysqlError> {
    let range = frame.range;
    let (by, preceding) = match bound {
        FrameBound::Unbounded => return Ok(End::Unbounded),
        FrameBound::CurrentRow => return Ok(if range { End::Peers } else { End::Rows(0) }),
        FrameBound::Distance { by, preceding } => (by, *preceding),
    };
    let distance = match by {
        Distance::Number(number) if !range => {
            let rows = row_count(number.eval(&NoColumns, context)?).ok_or_else(|| illegal(frame))?;
            return Ok(End::Rows(if preceding { -rows } else { rows }));
        }
        Distance::Number(number) => {
            let value = number.eval(&NoColumns, context)?;
            difference(value, &order[0]).ok_or_else(|| illegal(frame))?
        }
        Distance::Interval { amount, moved, by } => {
            let negative = match amount.eval(&NoColumns, context)? {
                Value::Null => true,
                Value::Str(text) => text.trim_start().starts_with('-'),
                Value::Int(number) => number < 0,
                Value::Decimal(number) => number.is_negative(),
                Value::Double(number) => number < 0.0,
                _ => false,
            };
            if negative {
                return Err(illegal(frame));
            }
            Difference::Interval { moved, by: *by }
        }
    };
    Ok(End::Value(Step { distance, preceding }))
}

/// A number of rows; `None`: it is none. Numbers of parameters are brought to integers.
pub(super) fn row_count(value: Value) -> Option<i64> {
    match value {
        Value::Int(rows) if rows >= 0 => Some(rows),
        Value::UInt(rows) => Some(i64::try_from(rows).unwrap_or(i64::MAX)),
        Value::Decimal(rows) => rows.rounded(0).to_i64().filter(|rows| *rows >= 0),
        Value::Double(rows) if rows >= 0.0 => Some(rows.round() as i64),
        // Clients that bind everything as text.
        Value::Str(text) => text.trim().parse().ok().filter(|rows| *rows >= 0),
        _ => None,
    }
}

/// What is added to keys of this type; `None`: it is negative or no number.
fn difference<'p>(value: Value, key: &Key) -> Option<Difference<'p>> {
    let value = match value {
        Value::Str(text) => match text.trim().parse::<i64>() {
            Ok(number) => Value::Int(number),
            Err(_) => Value::Double(text.trim().parse().ok()?),
        },
        value => value,
    };
    let exact = key.ty.kind != rauk_types::TypeKind::Double && key.ty.kind != rauk_types::TypeKind::Float;
    match value {
        Value::Int(number) if number < 0 => None,
        Value::Int(_) | Value::UInt(_) if exact && key.ty.holds_integer() => {
            Some(Difference::Integer(value.as_ref().as_integer()?))
        }
        Value::Int(number) if exact => Some(Difference::Decimal(Decimal::from(number))),
        Value::UInt(number) if exact => Some(Difference::Decimal(Decimal::from(number))),
        Value::Decimal(number) if number.is_negative() => None,
        Value::Decimal(number) if exact => Some(Difference::Decimal(number)),
        value => {
            let number = double(value.as_ref())?;
            (number >= 0.0).then_some(Difference::Double(number))
        }
    }
}

fn double(value: ValueRef<'_>) -> Option<f64> {
    Some(match value {
        ValueRef::Int(number) => number as f64,
        ValueRef::UInt(number) => number as f64,
        ValueRef::Decimal(number) => number.to_f64(),
        ValueRef::Double(number) => number,
        _ => return None,
    })
}

fn decimal(value: ValueRef<'_>) -> Option<Decimal> {
    Some(match value {
        ValueRef::Int(number) => Decimal::from(number),
        ValueRef::UInt(number) => Decimal::from(number),
        ValueRef::Decimal(number) => number,
        _ => return None,
    })
}

impl Step<'_> {
    /// The key of the row `at`, moved.
    fn edge(&self, key: &Key, partition: &Partition, at: usize, context: &mut Context) -> Result<Edge, MysqlError> {
        let less = self.preceding != key.descending;
        let beyond = if less { Edge::Before } else { Edge::Behind };
        let own = partition.columns[key.column][at].as_ref();
        Ok(match &self.distance {
            Difference::Integer(distance) => match own.as_integer() {
                Some(own) => Edge::Integer(if less { own - distance } else { own + distance }),
                None => beyond,
            },
            Difference::Decimal(distance) => {
                let sum = decimal(own).and_then(|own| {
                    let sum = if less { own.checked_sub(distance) } else { own.checked_add(distance) };
                    sum.ok()
                });
                sum.map_or(beyond, Edge::Decimal)
            }
            Difference::Double(distance) => {
                double(own).map_or(beyond, |own| Edge::Double(if less { own - distance } else { own + distance }))
            }
            Difference::Interval { moved, by } => {
                // That a date lies beyond the calendar is nothing to warn of here.
                let (warnings, count) = (context.warnings.len(), context.warning_count);
                let value = moved.eval(&At { partition, row: at }, context)?;
                context.warnings.truncate(warnings);
                context.warning_count = count;
                match value {
                    // The zero date has no distance from anything.
                    Value::Null if is_zero(own) => Edge::Moment(own.to_owned(), *by),
                    Value::Null => beyond,
                    value => Edge::Moment(value, *by),
                }
            }
        })
    }
}

fn is_zero(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Date(date) => date.packed() == 0,
        ValueRef::DateTime(moment) => moment == DateTime::ZERO,
        _ => false,
    }
}

impl Edge {
    /// Whether the edge lies behind a row with this key, in the order of the rows. `closed`: at the row's own peers too.
    fn is_behind(
        &self,
        key: &Value,
        descending: bool,
        closed: bool,
        context: &mut Context,
    ) -> Result<bool, MysqlError> {
        let key = key.as_ref();
        let order = match self {
            Edge::Before => Ordering::Greater,
            Edge::Behind => Ordering::Less,
            Edge::Integer(edge) => key.as_integer().map_or(Ordering::Equal, |key| key.cmp(edge)),
            Edge::Decimal(edge) => decimal(key).map_or(Ordering::Equal, |key| key.cmp(edge)),
            Edge::Double(edge) => double(key).and_then(|key| key.partial_cmp(edge)).unwrap_or(Ordering::Equal),
            Edge::Moment(edge, by) => by.compare(key, edge.as_ref(), context)?,
        };
        let order = if descending { order.reverse() } else { order };
        Ok(order == Ordering::Less || closed && order == Ordering::Equal)
    }
}
