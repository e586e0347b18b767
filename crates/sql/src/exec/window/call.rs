//! One window function over the rows of a partition.
//!
//! What depends on the partition and the order alone is computed from positions: of the row, of its peers, of the partition's end. LAG and its kin read
//! another row of the partition.

use super::aggregate::Moving;
use super::frame::{Frame, row_count};
use super::{At, Partition};
use crate::expr::{Context, NoColumns, WindowFunction};
use crate::memory::Memory;
use crate::physical::model::{Key, StageCall};
use rauk_types::error::codes;
use rauk_types::{MysqlError, Value};

pub(super) struct Call<'p> {
    of: &'p StageCall,
    /// Of functions that look at frames.
    frame: Option<Frame<'p>>,
    /// Of NTILE, LAG, LEAD and NTH_VALUE.
    count: u64,
    aggregate: Option<Moving>,
}

impl<'p> Call<'p> {
    /// Evaluates what is the same for all rows. Errors: 1210, 3586.
    pub fn new(of: &'p StageCall, order: &[Key], context: &mut Context) -> Result<Self, MysqlError> {
        let call = &of.call;
        let count = match call.count_argument() {
            None => 0,
            Some(at) => count(call.arguments[at].eval(&NoColumns, context)?, call.function)?,
        };
        // A bad bound is an error even where the function has no frame.
        let frame = Frame::new(&of.frame, order, context)?;
        let frame = call.function.uses_frame().then_some(frame);
        let aggregate = match call.function {
            WindowFunction::Aggregate(function) => Some(Moving::new(function, call, context)?),
            _ => None,
        };
        Ok(Call { of, frame, count, aggregate })
    }

    /// Calls `visit` on the columns that it reads of the rows of a partition.
    pub fn reads(&self, of: &StageCall, order: &[Key], visit: &mut dyn FnMut(usize)) {
        let count = of.call.count_argument();
        for (_, argument) in of.call.arguments.iter().enumerate().filter(|(at, _)| Some(*at) != count) {
            argument.for_each_column(&mut |_, column| visit(column));
        }
        if self.frame.as_ref().is_some_and(|frame| frame.key_column().is_some()) {
            visit(order[0].column);
        }
    }

    /// Another partition begins.
    pub fn begin(&mut self, memory: &Memory) {
        if let Some(aggregate) = &mut self.aggregate {
            aggregate.clear(memory);
        }
    }

    /// The partition's columns are there.
    pub fn look(&mut self, partition: &Partition) {
        if let Some(frame) = &mut self.frame {
            frame.begin(partition);
        }
    }

    /// The value for the row `at`.
    pub fn value(
        &mut self,
        partition: &Partition,
        at: usize,
        memory: &Memory,
        context: &mut Context,
    ) -> Result<Value, MysqlError> {
        let arguments = &self.of.call.arguments;
        let rows = partition.rows;
        let peers = &partition.peers;
        let of_row =
            |number: usize, row: usize, context: &mut Context| arguments[number].eval(&At { partition, row }, context);
        let frame = match &mut self.frame {
            Some(frame) => frame.rows(partition, at, context)?,
            None => 0..0,
        };
        let count = usize::try_from(self.count).unwrap_or(usize::MAX);
        Ok(match self.of.call.function {
            WindowFunction::RowNumber => Value::UInt(at as u64 + 1),
            WindowFunction::Rank => Value::UInt(peers.start as u64 + 1),
            WindowFunction::DenseRank => Value::UInt(partition.groups_before as u64 + 1),
            WindowFunction::PercentRank if rows == 1 => Value::Double(0.0),
            WindowFunction::PercentRank => Value::Double(peers.start as f64 / (rows - 1) as f64),
            WindowFunction::CumeDist => Value::Double(peers.end as f64 / rows as f64),
            WindowFunction::Ntile => {
                // The first buckets have one row more when the rows do not divide.
                let (each, more) = (rows / count, rows % count);
                let large = more * (each + 1);
                let bucket = if at < large { at / (each + 1) } else { more + (at - large) / each };
                Value::UInt(bucket as u64 + 1)
            }
            function @ (WindowFunction::Lag | WindowFunction::Lead) => {
                let other = match function {
                    WindowFunction::Lag => at.checked_sub(count),
                    _ => at.checked_add(count).filter(|row| *row < rows),
                };
                match other {
                    Some(row) => of_row(0, row, context)?,
                    None if arguments.len() > 2 => of_row(2, at, context)?,
                    None => Value::Null,
                }
            }
            _ if frame.is_empty() && self.aggregate.is_none() => Value::Null,
            WindowFunction::FirstValue => of_row(0, frame.start, context)?,
            WindowFunction::LastValue => of_row(0, frame.end - 1, context)?,
            WindowFunction::NthValue => match frame.start.checked_add(count - 1).filter(|row| *row < frame.end) {
                Some(row) => of_row(0, row, context)?,
                None => Value::Null,
            },
            WindowFunction::Aggregate(_) => {
                let aggregate = self.aggregate.as_mut().expect("an aggregate has its state");
                aggregate.value(frame, partition, memory, context)?
            }
        })
    }
}

/// The number of NTILE, LAG, LEAD or NTH_VALUE. Error 1210.
fn count(value: Value, function: WindowFunction) -> Result<u64, MysqlError> {
    let (name, least) = match function {
        WindowFunction::Ntile => ("ntile", 1),
        WindowFunction::NthValue => ("nth_value", 1),
        WindowFunction::Lag => ("lag", 0),
        _ => ("lead", 0),
    };
    match row_count(value) {
        Some(count) if count >= least => Ok(count as u64),
        _ => Err(MysqlError::new(codes::WRONG_ARGUMENTS, format!("Incorrect arguments to {name}"))),
    }
}
