//! One aggregate of one group: takes rows, gives a value.
//!
//! DISTINCT keeps the keys of the arguments that were seen; a row with a NULL among them counts for no aggregate with DISTINCT.

use super::concat::Concat;
use super::extreme::Extreme;
use super::json::Json;
use super::number::{Bits, Sum, Variance, number};
use crate::exec::output::with_value;
use crate::expr::value_key::append_key;
use crate::expr::{self, Aggregate, AggregateFunction, Collected, Columns, Context};
use crate::hash::KeySet;
use crate::memory::Memory;
use rauk_types::{DataType, MysqlError, Value, ValueRef};
use rauk_wire::WireError;
use rauk_wire::read::Reader;
use rauk_wire::value;

#[derive(Clone)]
pub(in crate::exec) struct State {
    inner: Inner,
    /// Of DISTINCT: keys that were seen.
    seen: Option<Box<KeySet>>,
}

/// Most are small, since there is one a group; what is large lies behind a box.
#[derive(Clone)]
enum Inner {
    Count(u64),
    Sum(Sum),
    Variance(Variance),
    Bits(Bits),
    Extreme(Extreme),
    Concat(Box<Concat>),
    Json(Box<Json>),
    Geometries(Box<Collected>),
}

impl State {
    pub fn new(aggregate: &Aggregate) -> State {
        let function = aggregate.function;
        let inner = match function {
            AggregateFunction::Count => Inner::Count(0),
            AggregateFunction::Sum | AggregateFunction::Avg => {
                Inner::Sum(Sum::new(aggregate.arguments.first().map(|a| &a.ty), &aggregate.ty))
            }
            AggregateFunction::Min | AggregateFunction::Max => Inner::Extreme(Extreme::default()),
            AggregateFunction::GroupConcat => Inner::Concat(Box::default()),
            AggregateFunction::JsonArrayAgg | AggregateFunction::JsonObjectAgg => {
                Inner::Json(Box::new(Json::new(function)))
            }
            AggregateFunction::Collect => Inner::Geometries(Box::default()),
            AggregateFunction::BitAnd | AggregateFunction::BitOr | AggregateFunction::BitXor => {
                Inner::Bits(Bits::new(function, &aggregate.ty))
            }
            AggregateFunction::VarPop
            | AggregateFunction::VarSamp
            | AggregateFunction::StddevPop
            | AggregateFunction::StddevSamp => Inner::Variance(Variance::default()),
        };
        State { inner, seen: aggregate.distinct.then(Box::default) }
    }

    /// The state; an empty one takes its place.
    pub fn take(&mut self) -> State {
        std::mem::replace(self, State { inner: Inner::Count(0), seen: None })
    }

    /// MIN or MAX has a value.
    pub fn is_found(&self) -> bool {
        matches!(&self.inner, Inner::Extreme(extreme) if extreme.is_known())
    }

    pub fn push(
        &mut self,
        aggregate: &Aggregate,
        row: &dyn Columns,
        context: &mut Context,
        memory: &Memory,
    ) -> Result<(), MysqlError> {
        if self.seen.is_some() && !self.is_new(aggregate, row, context, memory)? {
            return Ok(());
        }
        let function = aggregate.function;
        match &mut self.inner {
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
            Inner::Concat(concat) => concat.push(aggregate, row, context, memory),
            Inner::Json(json) => json.push(aggregate, row, context, memory),
            Inner::Geometries(geometries) => {
                let Some(argument) = aggregate.arguments.first() else { return Ok(()) };
                let value = argument.eval(row, context)?;
                if value.is_null() {
                    return Ok(());
                }
                let bytes = expr::bytes_of(value.as_ref(), &argument.ty);
                memory.take(bytes.len() + 48)?;
                geometries.push(&bytes)
            }
            Inner::Bits(bits) => push_bits(bits, aggregate, row, context),
            Inner::Sum(sum) => {
                let Some(argument) = aggregate.arguments.first() else { return Ok(()) };
                let mut result = Ok(());
                with_value(argument, row, context, |value| {
                    if !value.is_null() {
                        result = sum.push(value, function);
                    }
                })?;
                result
            }
            Inner::Variance(variance) => {
                let Some(argument) = aggregate.arguments.first() else { return Ok(()) };
                with_value(argument, row, context, |value| {
                    if !value.is_null() {
                        variance.push(value);
                    }
                })
            }
            Inner::Extreme(extreme) => {
                let Some(argument) = aggregate.arguments.first() else { return Ok(()) };
                let mut result = Ok(());
                with_value(argument, row, context, |value| {
                    if !value.is_null() {
                        result = extreme.push(value, &argument.ty, function == AggregateFunction::Min, memory);
                    }
                })?;
                result
            }
        }
    }

    /// COUNT: so many rows more.
    #[inline]
    pub fn add_count(&mut self, rows: u64) {
        let Inner::Count(count) = &mut self.inner else { unreachable!("a count counts") };
        *count += rows;
    }

    /// SUM, AVG: the sum of `rows` values of this scale.
    #[inline]
    pub fn add_exact(
        &mut self,
        sum: i128,
        scale: u8,
        rows: u64,
        function: AggregateFunction,
    ) -> Result<(), MysqlError> {
        let Inner::Sum(state) = &mut self.inner else { unreachable!("a sum adds") };
        state.add(sum, scale, rows, function)
    }

    /// SUM, AVG: doubles in their order.
    #[inline]
    pub fn add_doubles(&mut self, values: impl Iterator<Item = f64>) {
        let Inner::Sum(state) = &mut self.inner else { unreachable!("a sum adds") };
        state.add_doubles(values);
    }

    /// MIN, MAX: a value that is not NULL.
    #[inline]
    pub fn offer(&mut self, value: ValueRef<'_>, aggregate: &Aggregate, memory: &Memory) -> Result<(), MysqlError> {
        let Inner::Extreme(extreme) = &mut self.inner else { unreachable!("MIN and MAX compare") };
        let ty = aggregate.arguments.first().map_or(&DataType::BIGINT, |argument| &argument.ty);
        extreme.push(value, ty, aggregate.function == AggregateFunction::Min, memory)
    }

    /// Whether DISTINCT sees the row's arguments for the first time, none of them NULL.
    fn is_new(
        &mut self,
        aggregate: &Aggregate,
        row: &dyn Columns,
        context: &mut Context,
        memory: &Memory,
    ) -> Result<bool, MysqlError> {
        let Some(seen) = &mut self.seen else { return Ok(true) };
        let added = matches!(self.inner, Inner::Sum(Sum::Double { .. }));
        let mut key = Vec::new();
        for argument in &aggregate.arguments {
            let mut null = false;
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
                return Ok(false);
            }
        }
        if seen.contains(key.as_slice()) {
            return Ok(false);
        }
        memory.take(key.len() + 40)?;
        seen.insert(key.into_boxed_slice());
        Ok(true)
    }

    /// Writes the state of rows on another node, of an aggregate that travels: a count, a sum and its count, or the least or greatest value.
    pub fn put(&self, out: &mut Vec<u8>) {
        match &self.inner {
            Inner::Count(count) => value::put(ValueRef::UInt(*count), out),
            Inner::Sum(sum) => {
                let (sum, count) = sum.exact().expect("sums of doubles do not travel");
                value::put(ValueRef::Decimal(sum), out);
                value::put(ValueRef::UInt(count), out);
            }
            Inner::Extreme(extreme) => value::put(extreme.value(), out),
            _ => unreachable!("other aggregates do not travel"),
        }
    }

    /// Adds what [`State::put`] has written. The inner error: these are no bytes of such a state.
    pub fn absorb(
        &mut self,
        aggregate: &Aggregate,
        reader: &mut Reader<'_>,
        memory: &Memory,
    ) -> Result<Result<(), WireError>, MysqlError> {
        let function = aggregate.function;
        let known = match (&mut self.inner, value::get(reader)) {
            (_, Err(error)) => return Ok(Err(error)),
            (Inner::Count(count), Ok(ValueRef::UInt(more))) => {
                *count = count.saturating_add(more);
                true
            }
            (Inner::Sum(sum), Ok(ValueRef::Decimal(more))) => match value::get(reader) {
                Ok(ValueRef::UInt(rows)) => {
                    sum.absorb(more, rows, function)?;
                    true
                }
                _ => false,
            },
            (Inner::Extreme(_), Ok(ValueRef::Null)) => true,
            (Inner::Extreme(extreme), Ok(value)) => match aggregate.arguments.first() {
                Some(argument) => {
                    extreme.push(value, &argument.ty, function == AggregateFunction::Min, memory)?;
                    true
                }
                None => false,
            },
            _ => false,
        };
        Ok(if known { Ok(()) } else { Err(reader.malformed()) })
    }

    pub fn finish(
        self,
        aggregate: &Aggregate,
        concat_limit: usize,
        memory: &Memory,
        context: &mut Context,
    ) -> Result<Value, MysqlError> {
        let function = aggregate.function;
        Ok(match self.inner {
            Inner::Count(count) if aggregate.ty.unsigned => Value::UInt(count),
            Inner::Count(count) => Value::Int(count as i64),
            Inner::Sum(sum) => sum.finish(aggregate)?,
            Inner::Extreme(extreme) => extreme.finish(),
            Inner::Concat(concat) => concat.finish(aggregate, concat_limit, memory, context)?,
            Inner::Json(json) => json.finish(context)?,
            Inner::Geometries(geometries) => geometries.finish(context)?,
            Inner::Bits(bits) => bits.finish(&aggregate.ty, function),
            Inner::Variance(variance) => variance.finish(
                matches!(function, AggregateFunction::VarSamp | AggregateFunction::StddevSamp),
                matches!(function, AggregateFunction::StddevPop | AggregateFunction::StddevSamp),
            ),
        })
    }
}

fn push_bits(
    bits: &mut Bits,
    aggregate: &Aggregate,
    row: &dyn Columns,
    context: &mut Context,
) -> Result<(), MysqlError> {
    let Some(argument) = aggregate.arguments.first() else { return Ok(()) };
    let function = aggregate.function;
    let mut result = Ok(());
    // What is no integer yet: converting it may warn.
    let mut other = None;
    with_value(argument, row, context, |value| match (value, &mut *bits) {
        (ValueRef::Null, _) => {}
        (value, Bits::Bytes(_)) => result = bits.push_bytes(value.as_bytes().unwrap_or_default(), function),
        (ValueRef::Int(value), _) => bits.push_integer(value as u64, function),
        (ValueRef::UInt(value), _) => bits.push_integer(value, function),
        (value, _) => other = Some(value.to_owned()),
    })?;
    if let Some(value) = other {
        bits.push_integer(expr::to_bits(value.as_ref(), context)?, function);
    }
    result
}
