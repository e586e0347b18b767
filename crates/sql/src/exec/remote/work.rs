//! The side of the statement: what it sends along with a scan, and what comes back.

use super::best::MAX_BEST;
use super::partial::read_groups;
use super::program::{self, EncodedAggregate, EncodedThen, Parts, Warned, travels};
use crate::exec::group::Grouper;
use crate::expr::codec::{Inputs, encode};
use crate::expr::context::Warning;
use crate::expr::{Aggregate, AggregateFunction, Columns, Context, Expr};
use crate::memory::Memory;
use crate::physical::model::{Grouping, SortKey};
use parking_lot::Mutex;
use rauk_node::{NodeError, Pushdown, TableHandle, Transaction};
use rauk_types::{MysqlError, TypeKind};
use rauk_wire::expression::Type;
use rauk_wire::read::Reader;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// All that becomes of a row that passes the conditions of its scan.
pub(crate) enum Wants<'a> {
    /// Whatever else the statement does with it.
    Rows,
    Groups(&'a Grouping),
    /// So many of the first in this order.
    First(&'a [SortKey], usize),
}

/// When so many bytes of groups have come, the rows of what is left come themselves.
const MOST_GROUP_BYTES: usize = 32 << 20;

/// What a scan asks of the nodes that lead other partitions.
#[derive(Debug)]
pub(crate) struct Work {
    pub(super) program: Vec<u8>,
    /// What came with the last answers and is not taken over yet.
    pub(super) arrived: Mutex<Arrived>,
    /// Whether there are warnings among it.
    pub(super) warned: AtomicBool,
    pub(super) aggregates: bool,
    pub(super) max_warnings: usize,
    /// Of the statement: for the groups that have arrived.
    pub(super) memory: Memory,
}

#[derive(Debug, Default)]
pub(super) struct Arrived {
    /// With the number of rows of that answer that are shown before it.
    warnings: VecDeque<(u32, Warning)>,
    /// Warnings of which there is no text.
    counted: u64,
    /// Encoded groups, one item an answer.
    groups: Vec<Vec<u8>>,
    /// Of all groups of the scan, those that were taken over included.
    group_bytes: usize,
    /// There was no memory for groups: the statement fails.
    failed: Option<MysqlError>,
}

impl Work {
    /// For a scan of `table` with these conditions, of a statement that has read the rows `others` of the tables before it. `None`: no other node is asked, or there is nothing to ask for.
    pub fn new(
        (number, table): (usize, &TableHandle),
        filters: &[Expr],
        wants: Wants<'_>,
        others: &dyn Columns,
        txn: &Transaction,
        context: &Context,
    ) -> Option<Arc<Work>> {
        if !txn.reads_elsewhere(table) {
            return None;
        }
        let inputs = Inputs { table: number, parameters: &context.parameters, others: Some(others) };
        let (mut conditions, mut complete) = (Vec::new(), true);
        for filter in filters {
            match encode(filter, &inputs) {
                Some(condition) => conditions.push(condition),
                None => {
                    complete = false;
                    if filter.has_effects() {
                        break;
                    }
                }
            }
        }
        let then = match wants {
            Wants::Groups(grouping) if complete => aggregation(grouping, &inputs),
            Wants::First(order, count) if complete && (1..=MAX_BEST).contains(&count) => first(order, count, &inputs),
            _ => None,
        };
        if conditions.is_empty() && then.is_none() {
            return None;
        }
        let then = then.unwrap_or(EncodedThen::Send);
        let aggregates = matches!(then, EncodedThen::Sum(..));
        let program = program::encode(&Parts { conditions, complete, then }, context)?;
        let max_warnings = context.max_error_count;
        Some(Arc::new(Work {
            program,
            arrived: Mutex::default(),
            warned: AtomicBool::new(false),
            aggregates,
            max_warnings,
            memory: context.budget.memory.clone(),
        }))
    }

    /// A row is about to be evaluated: warnings of rows that lie before it.
    #[inline]
    pub fn before_row(&self, context: &mut Context) {
        if self.warned.load(Ordering::Relaxed) {
            self.warn(context);
        }
    }

    #[cold]
    fn warn(&self, context: &mut Context) {
        let mut arrived = self.arrived.lock();
        while let Some((0, _)) = arrived.warnings.front()
            && let Some((_, warning)) = arrived.warnings.pop_front()
        {
            context.push_warning(warning.level, warning.code, warning.message);
        }
        arrived.warnings.iter_mut().for_each(|(before, _)| *before = before.saturating_sub(1));
        if arrived.warnings.is_empty() {
            self.warned.store(false, Ordering::Relaxed);
        }
    }

    /// The scan is over; `stopped`: not at its end, so that rows behind the last one do not count.
    pub fn end(&self, stopped: bool, context: &mut Context) {
        let mut arrived = self.arrived.lock();
        self.warned.store(false, Ordering::Relaxed);
        for (_, warning) in arrived.warnings.drain(..).filter(|_| !stopped) {
            context.push_warning(warning.level, warning.code, warning.message);
        }
        context.warning_count += std::mem::take(&mut arrived.counted);
    }

    /// Adds the groups that have come to those of the statement.
    pub fn add_groups(&self, grouper: &mut Grouper<'_>) -> Result<(), MysqlError> {
        let groups = {
            let mut arrived = self.arrived.lock();
            arrived.failed.take().map_or(Ok(()), Err)?;
            std::mem::take(&mut arrived.groups)
        };
        for bytes in groups {
            let mut failed = None;
            let mut reader = Reader::new(&bytes, "groups");
            let read = read_groups(&mut reader, grouper.carries(), |key, carried, states| {
                match grouper.absorb(key, carried, states) {
                    Ok(result) => result,
                    Err(error) => {
                        failed.get_or_insert(error);
                        Err(states.malformed())
                    }
                }
            });
            if let Some(error) = failed {
                return Err(error);
            }
            read.map_err(|_| misunderstood())?;
            self.memory.give(bytes.len());
        }
        Ok(())
    }
}

impl Pushdown for Work {
    fn program(&self) -> &[u8] {
        &self.program
    }

    fn take(&self, result: &[u8]) -> bool {
        let mut reader = Reader::new(result, "result");
        let Ok(Warned { count, list }) = Warned::decode(&mut reader) else { return false };
        let groups = match reader.bytes(reader.remaining()) {
            Ok(groups) if groups.is_empty() != self.aggregates => groups,
            _ => return false,
        };
        if count == 0 && groups.is_empty() {
            return true;
        }
        let mut arrived = self.arrived.lock();
        arrived.counted += count - list.len() as u64;
        // Those of the answer before are behind its last row, and before the first of this one.
        arrived.warnings.iter_mut().for_each(|(before, _)| *before = 0);
        for (before, warning) in list {
            if arrived.warnings.len() < self.max_warnings {
                arrived.warnings.push_back((before, warning));
            } else {
                arrived.counted += 1;
            }
        }
        if !arrived.warnings.is_empty() {
            self.warned.store(true, Ordering::Relaxed);
        }
        if !groups.is_empty() {
            arrived.group_bytes += groups.len();
            match self.memory.take(groups.len()) {
                Ok(()) => arrived.groups.push(groups.to_vec()),
                Err(error) => arrived.failed = Some(error),
            }
        }
        true
    }

    fn only_drops(&self) -> bool {
        !self.aggregates
    }

    fn is_full(&self) -> bool {
        let arrived = self.arrived.lock();
        self.aggregates && (arrived.group_bytes > MOST_GROUP_BYTES || arrived.failed.is_some())
    }
}

/// Another node has sent groups that are none.
fn misunderstood() -> MysqlError {
    let text = "nodes of the cluster do not understand each other: are their versions the same?";
    NodeError::Fatal(text.to_string()).into()
}

fn first(order: &[SortKey], count: usize, inputs: &Inputs<'_>) -> Option<EncodedThen> {
    let keys = order.iter().map(|key| encode(&key.expr, inputs)).collect::<Option<_>>()?;
    Some(EncodedThen::First(count, keys, order.iter().map(|key| key.descending).collect()))
}

fn aggregation(grouping: &Grouping, inputs: &Inputs<'_>) -> Option<EncodedThen> {
    // What a group keeps of its computed keys is computed here, from a row.
    if grouping.rollup.is_some() || grouping.kept.contains(&true) {
        return None;
    }
    let keys = grouping.keys.iter().map(|key| encode(key, inputs)).collect::<Option<_>>()?;
    let own = |&(table, column): &(usize, usize)| (table == inputs.table).then(|| u16::try_from(column).ok()).flatten();
    let carried = grouping.carried.iter().map(own).collect::<Option<_>>()?;
    let aggregates = grouping.aggregates.iter().map(|one| aggregate(one, inputs)).collect::<Option<_>>()?;
    Some(EncodedThen::Sum(keys, carried, aggregates))
}

fn aggregate(aggregate: &Aggregate, inputs: &Inputs<'_>) -> Option<EncodedAggregate> {
    let function = aggregate.function;
    let sums = matches!(function, AggregateFunction::Sum | AggregateFunction::Avg);
    let exact = aggregate.ty.kind == TypeKind::Decimal;
    if aggregate.distinct || !travels(function) || sums && !exact {
        return None;
    }
    let arguments = aggregate.arguments.iter().map(|part| encode(part, inputs)).collect::<Option<_>>()?;
    let ty = Type { ty: aggregate.ty, nullable: true, coercibility: 0 };
    Some(EncodedAggregate { function, ty, arguments })
}
