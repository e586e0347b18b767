//! GROUP BY and aggregates.
//!
//! Groups are found by the memcomparable key of the grouped values and come out in key order, whatever order the rows had. A group keeps the
//! columns that later expressions read from its first row. Without GROUP BY there is exactly one group, even of no rows.
//!
//! SUM and AVG of exact numbers, dates and times are exact (integers in 128 bits, then DECIMAL), of everything else DOUBLE, as the plan's types say.

use super::output::with_value;
use super::row::GroupRow;
use super::sort::append_key;
use crate::expr::{self, Aggregate, AggregateFunction, Columns, Context};
use crate::memory::{Memory, heap_bytes, values_bytes};
use crate::parse::statement::Scope;
use crate::plan::model::Grouping;
use hashbrown::HashTable;
use rauk_types::error::codes;
use rauk_types::format::{append_text, parse_double_prefix};
use rauk_types::{DataType, Decimal, MysqlError, TypeKind, Value, ValueRef};
use rustc_hash::{FxBuildHasher, FxHashSet};
use std::hash::BuildHasher;

pub(crate) struct Grouper<'a> {
    grouping: &'a Grouping,
    /// A lone MIN or MAX in index order: the first value is the answer.
    first_row_only: bool,
    groups: Vec<Group>,
    /// Their numbers, by their keys.
    by_key: HashTable<u32>,
    memory: Memory,
    key: Vec<u8>,
    concat_limit: usize,
}

struct Group {
    key: Box<[u8]>,
    states: Vec<State>,
    /// The carried columns of the first row.
    values: Vec<Value>,
}

impl Group {
    /// What it takes, its place in the tables included.
    fn bytes(&self) -> usize {
        // Tables have up to twice as many places as entries.
        size_of::<Group>() * 2 + self.key.len() + size_of_val(&*self.states) + values_bytes(&self.values) + 16
    }
}

impl<'a> Grouper<'a> {
    pub fn new(grouping: &'a Grouping, first_row_only: bool, memory: Memory, context: &Context) -> Self {
        let concat_limit = match context.variables.get(Scope::Default, "group_concat_max_len") {
            Ok(Value::Int(v)) => v.max(4) as usize,
            Ok(Value::UInt(v)) => v as usize,
            _ => 1024,
        };
        let concat_limit = concat_limit.min(context.max_allowed_packet);
        Grouper {
            grouping,
            first_row_only,
            groups: Vec::new(),
            by_key: HashTable::new(),
            memory,
            key: Vec::new(),
            concat_limit,
        }
    }

    /// Takes a row; `true`: no more are needed.
    pub fn push(&mut self, row: &dyn Columns, context: &mut Context) -> Result<bool, MysqlError> {
        let grouping = self.grouping;
        let number = if grouping.keys.is_empty() {
            if self.groups.is_empty() {
                let group = self.new_group(Some(row))?;
                self.groups.push(group);
            }
            0
        } else {
            self.key.clear();
            for key in &grouping.keys {
                with_value(key, row, context, |value| append_key(value, &key.ty, false, &mut self.key))?;
            }
            let hash = |key: &[u8]| FxBuildHasher.hash_one(key);
            let groups = &self.groups;
            match self.by_key.find(hash(&self.key), |&number| *groups[number as usize].key == *self.key) {
                Some(&number) => number as usize,
                None => {
                    let group = self.new_group(Some(row))?;
                    self.memory.take(group.bytes())?;
                    let number = self.groups.len();
                    let place = hash(&group.key);
                    self.groups.push(group);
                    let groups = &self.groups;
                    self.by_key.insert_unique(place, number as u32, |&number| hash(&groups[number as usize].key));
                    number
                }
            }
        };
        let group = &mut self.groups[number];
        for (state, aggregate) in group.states.iter_mut().zip(&grouping.aggregates) {
            state.push(aggregate, row, context, &self.memory)?;
        }
        Ok(self.first_row_only && matches!(&group.states[0].inner, Inner::Extreme { best: Some(_), .. }))
    }

    fn new_group(&self, row: Option<&dyn Columns>) -> Result<Group, MysqlError> {
        let states = self.grouping.aggregates.iter().map(State::new).collect();
        let values = match row {
            Some(row) => self.grouping.carried.iter().map(|&(t, c)| row.column(t, c).to_owned()).collect(),
            None => Vec::new(),
        };
        Ok(Group { key: self.key.as_slice().into(), states, values })
    }

    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// All groups, in key order.
    pub fn finish(mut self, context: &mut Context) -> Result<Groups<'a>, MysqlError> {
        if self.groups.is_empty() && self.grouping.keys.is_empty() {
            let group = self.new_group(None)?;
            self.groups.push(group);
        }
        self.groups.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        let mut rows = Vec::with_capacity(self.groups.len());
        for group in self.groups {
            let mut aggregates = Vec::with_capacity(group.states.len());
            for (state, aggregate) in group.states.into_iter().zip(&self.grouping.aggregates) {
                aggregates.push(state.finish(aggregate, self.concat_limit, &self.memory, context)?);
            }
            rows.push((aggregates, group.values));
        }
        Ok(Groups { carried: &self.grouping.carried, rows })
    }
}

pub(crate) struct Groups<'a> {
    carried: &'a [(usize, usize)],
    rows: Vec<(Vec<Value>, Vec<Value>)>,
}

impl Groups<'_> {
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn row(&self, index: usize) -> GroupRow<'_> {
        let (aggregates, values) = &self.rows[index];
        GroupRow { aggregates, carried: self.carried, values }
    }
}

/// One aggregate of one group.
struct State {
    inner: Inner,
    /// Of DISTINCT: keys that were seen.
    seen: Option<FxHashSet<Box<[u8]>>>,
}

/// A piece of GROUP_CONCAT.
struct Piece {
    key: Box<[u8]>,
    text: Box<[u8]>,
}

enum Inner {
    Count(u64),
    /// Exact integers; spills into `Exact` when it leaves 128 bits.
    Integer {
        sum: i128,
        count: u64,
    },
    Exact {
        sum: Decimal,
        count: u64,
    },
    Double {
        sum: f64,
        count: u64,
    },
    Extreme {
        best: Option<Value>,
        key: Vec<u8>,
    },
    /// Pieces with the key of the call's own ORDER BY, in the order they came.
    Concat {
        pieces: Vec<Piece>,
    },
}

impl Inner {
    /// Bytes that it holds and that change from row to row: the text of MIN or MAX.
    fn bytes(&self) -> usize {
        match self {
            Inner::Extreme { best, key } => best.as_ref().map_or(0, heap_bytes) + key.capacity(),
            _ => 0,
        }
    }
}

impl State {
    fn new(aggregate: &Aggregate) -> Self {
        let inner = match aggregate.function {
            AggregateFunction::Count => Inner::Count(0),
            AggregateFunction::Sum | AggregateFunction::Avg => {
                let argument = aggregate.arguments.first().map(|a| a.ty);
                if aggregate.ty.kind != TypeKind::Decimal {
                    Inner::Double { sum: 0.0, count: 0 }
                } else if argument.is_some_and(|t| t.is_integer()) {
                    Inner::Integer { sum: 0, count: 0 }
                } else {
                    Inner::Exact { sum: Decimal::ZERO, count: 0 }
                }
            }
            AggregateFunction::Min | AggregateFunction::Max => Inner::Extreme { best: None, key: Vec::new() },
            AggregateFunction::GroupConcat => Inner::Concat { pieces: Vec::new() },
        };
        State { inner, seen: aggregate.distinct.then(FxHashSet::default) }
    }

    fn push(
        &mut self,
        aggregate: &Aggregate,
        row: &dyn Columns,
        context: &mut Context,
        memory: &Memory,
    ) -> Result<(), MysqlError> {
        if let Some(seen) = &mut self.seen {
            let mut key = Vec::new();
            for argument in &aggregate.arguments {
                let mut null = false;
                let added = matches!(self.inner, Inner::Double { .. });
                with_value(argument, row, context, |value| {
                    null = value.is_null();
                    // What is added as a number is distinct as a number: '1', '1.0' and '01' are one.
                    if added && !null {
                        append_key(ValueRef::Double(number(value)), &DataType::DOUBLE, false, &mut key);
                    } else {
                        append_key(value, &argument.ty, false, &mut key);
                    }
                })?;
                if null {
                    return Ok(());
                }
            }
            if seen.contains(key.as_slice()) {
                return Ok(());
            }
            memory.take(key.len() + 40)?;
            seen.insert(key.into_boxed_slice());
        }
        let inner = &mut self.inner;
        match inner {
            Inner::Count(count) => {
                for argument in &aggregate.arguments {
                    let mut null = false;
                    with_value(argument, row, context, |value| null = value.is_null())?;
                    if null {
                        return Ok(());
                    }
                }
                *count += 1;
                Ok(())
            }
            Inner::Concat { pieces } => {
                let mut piece = Vec::new();
                for argument in &aggregate.arguments {
                    let mut null = false;
                    with_value(argument, row, context, |value| {
                        null = value.is_null();
                        append_text(value, &argument.ty, &mut piece);
                    })?;
                    if null {
                        return Ok(());
                    }
                }
                let mut key = Vec::new();
                for (expr, descending) in &aggregate.order_by {
                    with_value(expr, row, context, |value| append_key(value, &expr.ty, *descending, &mut key))?;
                }
                memory.take(piece.len() + key.len() + 32)?;
                pieces.push(Piece { key: key.into_boxed_slice(), text: piece.into_boxed_slice() });
                Ok(())
            }
            _ => {
                let Some(argument) = aggregate.arguments.first() else { return Ok(()) };
                let before = inner.bytes();
                let mut result = Ok(());
                with_value(argument, row, context, |value| {
                    result = push_value(inner, value, &argument.ty, aggregate.function);
                })?;
                result?;
                match inner.bytes() {
                    after if after > before => memory.take(after - before),
                    after => {
                        memory.give(before - after);
                        Ok(())
                    }
                }
            }
        }
    }

    fn finish(
        self,
        aggregate: &Aggregate,
        concat_limit: usize,
        memory: &Memory,
        context: &mut Context,
    ) -> Result<Value, MysqlError> {
        let average = aggregate.function == AggregateFunction::Avg;
        let exact = |sum: Decimal, count: u64| -> Result<Value, MysqlError> {
            if count == 0 {
                return Ok(Value::Null);
            }
            let value = if average {
                // With guard digits, as every division inside an expression; they go when the value leaves it.
                sum.checked_div_guarded(&Decimal::from(count), 4)
            } else {
                sum.rescale(aggregate.ty.scale)
            };
            value.map(Value::Decimal).map_err(|_| out_of_range(aggregate.function))
        };
        match self.inner {
            Inner::Count(count) => {
                Ok(if aggregate.ty.unsigned { Value::UInt(count) } else { Value::Int(count as i64) })
            }
            Inner::Integer { sum, count } => exact(Decimal::new(sum, 0), count),
            Inner::Exact { sum, count } => exact(sum, count),
            Inner::Double { count: 0, .. } => Ok(Value::Null),
            Inner::Double { sum, count } => Ok(Value::Double(if average { sum / count as f64 } else { sum })),
            Inner::Extreme { best, .. } => Ok(best.unwrap_or(Value::Null)),
            Inner::Concat { pieces } if pieces.is_empty() => Ok(Value::Null),
            Inner::Concat { mut pieces } => {
                if !aggregate.order_by.is_empty() {
                    pieces.sort_by(|a, b| a.key.cmp(&b.key));
                }
                let separator = aggregate.separator.as_deref().unwrap_or(",").as_bytes();
                let mut text = Vec::new();
                // The separators are not counted yet. One byte beyond the limit shows that it was reached.
                let whole = pieces.iter().map(|piece| piece.text.len() + separator.len()).sum::<usize>();
                memory.take(whole.min(concat_limit))?;
                let append = |part: &[u8], text: &mut Vec<u8>| {
                    text.extend_from_slice(&part[..part.len().min(concat_limit + 1 - text.len())]);
                };
                for (number, piece) in pieces.iter().enumerate() {
                    if number > 0 {
                        append(separator, &mut text);
                    }
                    append(&piece.text, &mut text);
                    if text.len() > concat_limit {
                        let mut end = concat_limit;
                        while !aggregate.ty.is_bytes() && end > 0 && text[end] & 0xC0 == 0x80 {
                            end -= 1;
                        }
                        text.truncate(end);
                        context.warn(1260, format!("Row {} was cut by GROUP_CONCAT()", number + 1));
                        break;
                    }
                }
                Ok(if aggregate.ty.is_bytes() {
                    Value::Bytes(text)
                } else {
                    Value::Str(String::from_utf8_lossy(&text).into_owned())
                })
            }
        }
    }
}

fn push_value(
    inner: &mut Inner,
    value: ValueRef<'_>,
    ty: &DataType,
    function: AggregateFunction,
) -> Result<(), MysqlError> {
    if value.is_null() {
        return Ok(());
    }
    match inner {
        Inner::Integer { sum, count } => match value.as_integer() {
            Some(v) => {
                // 2^63 rows of 2^64 fit.
                *sum += v;
                *count += 1;
            }
            None => {
                let (known, rows) = (Decimal::new(*sum, 0), *count);
                *inner = Inner::Exact { sum: known, count: rows };
                return push_value(inner, value, ty, function);
            }
        },
        Inner::Exact { sum, count } => {
            let term = match value {
                ValueRef::Decimal(v) => v,
                ValueRef::Int(v) => Decimal::from(v),
                ValueRef::UInt(v) => Decimal::from(v),
                other => match expr::temporal_decimal(other) {
                    Some(number) => number,
                    None => Decimal::from_f64(number(other)).unwrap_or(Decimal::ZERO),
                },
            };
            *sum = sum.checked_add(&term).map_err(|_| out_of_range(function))?;
            *count += 1;
        }
        Inner::Double { sum, count } => {
            *sum += number(value);
            *count += 1;
        }
        Inner::Extreme { best, key } => {
            let less = function == AggregateFunction::Min;
            let better = match (best.as_ref().map(Value::as_ref), value) {
                (None, _) => true,
                (Some(ValueRef::Int(known)), ValueRef::Int(v)) => {
                    if less {
                        v < known
                    } else {
                        v > known
                    }
                }
                (Some(ValueRef::UInt(known)), ValueRef::UInt(v)) => {
                    if less {
                        v < known
                    } else {
                        v > known
                    }
                }
                (Some(ValueRef::Decimal(known)), ValueRef::Decimal(v)) => {
                    if less {
                        v < known
                    } else {
                        v > known
                    }
                }
                (Some(known), v) => {
                    if key.is_empty() {
                        append_key(known, ty, false, key);
                    }
                    let mut other = Vec::new();
                    append_key(v, ty, false, &mut other);
                    let better = if less { other < *key } else { other > *key };
                    if better {
                        *key = other;
                    }
                    better
                }
            };
            if better {
                *best = Some(value.to_owned());
            }
        }
        Inner::Count(_) | Inner::Concat { .. } => unreachable!("counted and concatenated before"),
    }
    Ok(())
}

/// A value as SUM and AVG take it where they work with doubles.
fn number(value: ValueRef<'_>) -> f64 {
    match value {
        ValueRef::Null => 0.0,
        ValueRef::Int(v) => v as f64,
        ValueRef::UInt(v) => v as f64,
        ValueRef::Double(v) => v,
        ValueRef::Decimal(v) => v.to_f64(),
        ValueRef::Str(v) => parse_double_prefix(v.as_bytes()).value,
        ValueRef::Bytes(v) => parse_double_prefix(v).value,
        temporal => expr::temporal_decimal(temporal).map_or(0.0, |v| v.to_f64()),
    }
}

fn out_of_range(function: AggregateFunction) -> MysqlError {
    let name = if function == AggregateFunction::Avg { "avg" } else { "sum" };
    MysqlError::new(codes::DATA_OUT_OF_RANGE, format!("DECIMAL value is out of range in '{name}'"))
}
