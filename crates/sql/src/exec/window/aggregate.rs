//! Aggregates over frames that move.
//!
//! An aggregate knows which rows it has taken. When the frame moves on, rows that come are added. Rows that go are taken away where that gives exactly
//! what a new start would: from counts, from sums of exact numbers, from counted bits. MIN and MAX keep a queue: the rows that can still be the
//! extreme of a later frame, the present one first. So a frame costs no more than the rows that come and go.
//!
//! A double that was added to a double cannot be taken away without a trace. So sums and averages of DOUBLE add a frame's values in their order, as
//! MySQL does, as long as no row goes, and for frames of up to [`SHORT`] rows; a longer frame that loses rows has an exact sum, which is rounded once
//! ([`super::exact`]). With `windowing_use_high_precision = OFF` doubles are taken away all the same, as in MySQL.
//!
//! Variances, documents and bits of binary strings are computed again when rows go. Equal frames share one value.

use super::exact::ExactSum;
use super::{At, Partition};
use crate::exec::group::{State, Sum, number};
use crate::exec::output::with_value;
use crate::expr::value_key::append_key;
use crate::expr::{self, Aggregate, AggregateFunction, Context, WindowCall};
use crate::memory::Memory;
use crate::parse::statement::Scope;
use rauk_types::{MysqlError, Value};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::ops::Range;

/// Rows of a frame whose doubles are added again when rows go.
const SHORT: usize = 64;

pub(super) struct Moving {
    aggregate: Aggregate,
    state: Inner,
    /// The rows that it has taken.
    rows: Range<usize>,
    /// The value of these rows, once it was asked for.
    value: Option<Value>,
    /// What the state takes.
    bytes: usize,
    concat_limit: usize,
    exact: bool,
}

enum Inner {
    Count(u64),
    Sum(Sum),
    /// Doubles that were added in their order.
    Doubles {
        sum: f64,
        count: u64,
    },
    /// Doubles of a long frame that has lost rows.
    Exact {
        sum: Box<ExactSum>,
        count: u64,
    },
    Bits(Box<Bits>),
    Extreme(VecDeque<Candidate>),
    /// What no row can be taken away from.
    Other(State),
}

/// How many values have each bit.
struct Bits {
    values: u64,
    set: [u64; 64],
}

/// A row that may be the extreme of a later frame.
struct Candidate {
    row: usize,
    key: SmallVec<[u8; 24]>,
}

impl Moving {
    pub fn new(function: AggregateFunction, call: &WindowCall, context: &mut Context) -> Result<Self, MysqlError> {
        let aggregate = Aggregate {
            function,
            distinct: false,
            arguments: call.arguments.clone(),
            ty: call.ty,
            separator: None,
            order_by: vec![],
        };
        let precise = context.variables.get(Scope::Default, "windowing_use_high_precision")?;
        let exact = !matches!(precise, Value::Int(0) | Value::UInt(0));
        let state = Inner::new(&aggregate, exact);
        Ok(Moving {
            aggregate,
            state,
            rows: 0..0,
            value: None,
            bytes: 0,
            concat_limit: context.max_allowed_packet,
            exact,
        })
    }

    /// Forgets all rows.
    pub fn clear(&mut self, memory: &Memory) {
        memory.give(std::mem::take(&mut self.bytes));
        self.restart(0);
    }

    fn restart(&mut self, at: usize) {
        self.state = Inner::new(&self.aggregate, self.exact);
        self.rows = at..at;
        self.value = None;
    }

    /// The value of the rows of a frame.
    pub fn value(
        &mut self,
        frame: Range<usize>,
        partition: &Partition,
        memory: &Memory,
        context: &mut Context,
    ) -> Result<Value, MysqlError> {
        if let Some(value) = self.value.as_ref().filter(|_| frame == self.rows) {
            return Ok(value.clone());
        }
        self.value = None;
        let stays = frame.start >= self.rows.start && frame.start < self.rows.end && frame.end >= self.rows.end;
        let removes = frame.start > self.rows.start;
        let anew = match self.state {
            Inner::Other(_) | Inner::Doubles { .. } => removes,
            Inner::Exact { .. } => frame.len() <= SHORT,
            _ => false,
        };
        if !stays || anew {
            memory.give(std::mem::take(&mut self.bytes));
            self.restart(frame.start);
            if stays && frame.len() > SHORT && matches!(self.state, Inner::Doubles { .. }) {
                self.state = Inner::Exact { sum: Box::default(), count: 0 };
            }
        }
        for row in self.rows.start..frame.start {
            context.budget.work(64)?;
            self.remove(row, partition, context)?;
        }
        let before = memory.used();
        for row in self.rows.end..frame.end {
            context.budget.work(64)?;
            self.add(row, partition, memory, context)?;
        }
        self.bytes += memory.used().saturating_sub(before);
        self.rows = frame;
        let before = memory.used();
        let value = self.finish(partition, memory, context)?;
        // Whoever keeps the value counts it.
        memory.give(memory.used().saturating_sub(before));
        self.value = Some(value.clone());
        Ok(value)
    }

    fn add(
        &mut self,
        row: usize,
        partition: &Partition,
        memory: &Memory,
        context: &mut Context,
    ) -> Result<(), MysqlError> {
        let at = At { partition, row };
        let function = self.aggregate.function;
        let arguments = &self.aggregate.arguments;
        let mut result = Ok(());
        match &mut self.state {
            Inner::Other(state) => return state.push(&self.aggregate, &at, context, memory),
            Inner::Count(count) => {
                let mut counts = true;
                for argument in arguments {
                    with_value(argument, &at, context, |value| counts &= !value.is_null())?;
                }
                *count += u64::from(counts);
            }
            Inner::Sum(sum) => with_value(&arguments[0], &at, context, |value| {
                if !value.is_null() {
                    result = sum.push(value, function);
                }
            })?,
            Inner::Doubles { sum, count } => with_value(&arguments[0], &at, context, |value| {
                if !value.is_null() {
                    *sum += number(value);
                    *count += 1;
                }
            })?,
            Inner::Exact { sum, count } => with_value(&arguments[0], &at, context, |value| {
                if !value.is_null() {
                    sum.add(number(value));
                    *count += 1;
                }
            })?,
            Inner::Bits(bits) => {
                if let Some(value) = integer_bits(&arguments[0], &at, context)? {
                    bits.count(value, 1);
                }
            }
            Inner::Extreme(queue) => {
                let mut key = Vec::new();
                let argument = &arguments[0];
                with_value(argument, &at, context, |value| {
                    if !value.is_null() {
                        append_key(value, &argument.ty, function == AggregateFunction::Max, &mut key);
                    }
                })?;
                if key.is_empty() {
                    return Ok(());
                }
                // A later row that is better is the extreme for as long as this one is in the frame. The first of equal ones is it.
                while queue.back().is_some_and(|last| last.key.as_slice() > key.as_slice()) {
                    queue.pop_back();
                }
                queue.push_back(Candidate { row, key: SmallVec::from_slice(&key) });
            }
        }
        result
    }

    fn remove(&mut self, row: usize, partition: &Partition, context: &mut Context) -> Result<(), MysqlError> {
        let at = At { partition, row };
        let function = self.aggregate.function;
        let arguments = &self.aggregate.arguments;
        let mut result = Ok(());
        // Warnings were raised when the row came.
        let (warnings, warning_count) = (context.warnings.len(), context.warning_count);
        match &mut self.state {
            Inner::Other(_) | Inner::Doubles { .. } => unreachable!("no row is taken away from it"),
            Inner::Exact { sum, count } => with_value(&arguments[0], &at, context, |value| {
                if !value.is_null() {
                    sum.remove(number(value));
                    *count -= 1;
                }
            })?,
            Inner::Count(count) => {
                let mut counts = true;
                for argument in arguments {
                    with_value(argument, &at, context, |value| counts &= !value.is_null())?;
                }
                *count -= u64::from(counts);
            }
            Inner::Sum(sum) => with_value(&arguments[0], &at, context, |value| {
                if !value.is_null() {
                    result = sum.remove(value, function);
                }
            })?,
            Inner::Bits(bits) => {
                let value = integer_bits(&arguments[0], &at, context)?;
                if let Some(value) = value {
                    bits.count(value, -1);
                }
            }
            Inner::Extreme(queue) => {
                if queue.front().is_some_and(|first| first.row == row) {
                    queue.pop_front();
                }
            }
        }
        context.warnings.truncate(warnings);
        context.warning_count = warning_count;
        result
    }

    fn finish(&self, partition: &Partition, memory: &Memory, context: &mut Context) -> Result<Value, MysqlError> {
        let aggregate = &self.aggregate;
        Ok(match &self.state {
            Inner::Count(count) => Value::Int(*count as i64),
            Inner::Sum(sum) => sum.clone().finish(aggregate)?,
            Inner::Doubles { sum, count } => doubles(*sum, *count).finish(aggregate)?,
            Inner::Exact { sum, count } => doubles(sum.value(), *count).finish(aggregate)?,
            Inner::Bits(bits) => Value::UInt(bits.value(aggregate.function)),
            Inner::Extreme(queue) => match queue.front() {
                Some(first) => aggregate.arguments[0].eval(&At { partition, row: first.row }, context)?,
                None => Value::Null,
            },
            Inner::Other(state) => {
                context.budget.work(self.bytes)?;
                state.clone().finish(aggregate, self.concat_limit, memory, context)?
            }
        })
    }
}

impl Inner {
    /// `exact`: no double is taken away from a sum.
    fn new(aggregate: &Aggregate, exact: bool) -> Inner {
        use AggregateFunction::{Avg, BitAnd, BitOr, BitXor, Count, Max, Min, Sum as Total};
        match aggregate.function {
            Count => Inner::Count(0),
            Min | Max => Inner::Extreme(VecDeque::new()),
            Total | Avg => {
                let sum = Sum::new(aggregate.arguments.first().map(|argument| &argument.ty), &aggregate.ty);
                if exact && matches!(sum, Sum::Double { .. }) {
                    Inner::Doubles { sum: 0.0, count: 0 }
                } else {
                    Inner::Sum(sum)
                }
            }
            BitAnd | BitOr | BitXor if !aggregate.ty.is_bytes() => {
                Inner::Bits(Box::new(Bits { values: 0, set: [0; 64] }))
            }
            _ => Inner::Other(State::new(aggregate)),
        }
    }
}

fn doubles(sum: f64, count: u64) -> Sum {
    Sum::Double { sum, count }
}

fn integer_bits(argument: &expr::Expr, at: &At<'_>, context: &mut Context) -> Result<Option<u64>, MysqlError> {
    match argument.eval(at, context)? {
        Value::Null => Ok(None),
        Value::Int(value) => Ok(Some(value as u64)),
        Value::UInt(value) => Ok(Some(value)),
        other => expr::to_bits(other.as_ref(), context).map(Some),
    }
}

impl Bits {
    fn count(&mut self, value: u64, by: i64) {
        self.values = self.values.wrapping_add_signed(by);
        let mut rest = value;
        while rest != 0 {
            let bit = rest.trailing_zeros() as usize;
            self.set[bit] = self.set[bit].wrapping_add_signed(by);
            rest &= rest - 1;
        }
    }

    fn value(&self, function: AggregateFunction) -> u64 {
        let has = |set: u64| match function {
            AggregateFunction::BitAnd => set == self.values,
            AggregateFunction::BitOr => set > 0,
            _ => set % 2 == 1,
        };
        (0..64).fold(0, |bits, bit| bits | u64::from(has(self.set[bit])) << bit)
    }
}
