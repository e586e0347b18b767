//! What happens to joined rows: grouping, HAVING, projection, DISTINCT, sorting, LIMIT, and the way to the client or to an INSERT.
//!
//! The plain case (no grouping, DISTINCT or sorting) writes a row straight from where its columns lie. Everything that is kept counts
//! against the statement's [`Memory`].
//!
//! *A client that does not read* keeps the statement waiting, and with it the metadata locks of a read that is not part
//! of a longer transaction. When a DDL waits for one of them, the statement *reads ahead*: it goes on into the buffer,
//! as far as its memory limit allows, and gives the locks back when it has read all rows. Where its result does not fit,
//! it waits for the client, which has to take something every [`STALLED`]; else the statement ends with error 1317.

use super::answer::{Late, with_answers};
use super::group::Grouper;
use super::remote::Work;
use super::scan::{YIELD_ROWS, is_interrupted, yield_now};
use super::sort::{KeptRows, Sorter, put_values, values_of};
use crate::expr::value_key::append_key;
use crate::expr::{Columns, Context, Expr, ExprKind, NoColumns, run};
use crate::hash::KeySet;
use crate::memory::{LARGE, Memory, heap_bytes};
use crate::physical::model::{SelectPlan, SortKey};
use futures::FutureExt;
use futures::future::{Either, select};
use rauk_node::Transaction;
use rauk_types::error::codes;
use rauk_types::result::ResultSink;
use rauk_types::{MysqlError, Value, ValueRef};
use smallvec::SmallVec;
use std::pin::pin;
use std::time::Duration;

/// Results are flushed when so many bytes wait.
const FLUSH_BYTES: usize = 256 << 10;

/// A client that takes nothing for so long while its unread rows keep a DDL waiting loses its statement.
const STALLED: Duration = Duration::from_secs(5);

pub(crate) enum Target<'a> {
    /// To the client. `last`: the statement reads nothing after this query.
    Sink { sink: &'a mut dyn ResultSink, last: bool },
    /// For INSERT … SELECT.
    Rows(&'a mut KeptRows),
    /// One after another; `false`: no more are wanted.
    Each(Each<'a>),
    /// Rows that pass the test go on.
    Sieve(Sieve<'a>, Box<Target<'a>>),
}

pub(crate) type Each<'a> = &'a mut (dyn FnMut(Vec<Value>) -> Result<bool, MysqlError> + Send + 'a);
pub(crate) type Sieve<'a> = &'a mut (dyn FnMut(&[Value]) -> Result<bool, MysqlError> + Send + 'a);

impl Target<'_> {
    /// The same for the next query that gives rows to it.
    pub fn again(&mut self) -> Target<'_> {
        match self {
            Target::Sink { sink, last } => Target::Sink { sink: &mut **sink, last: *last },
            Target::Rows(rows) => Target::Rows(rows),
            Target::Each(each) => Target::Each(&mut **each),
            Target::Sieve(sieve, inner) => Target::Sieve(&mut **sieve, Box::new(inner.again())),
        }
    }

    /// The same for a query that is not the last of its statement.
    pub fn before_others(&mut self) -> Target<'_> {
        match self {
            Target::Sink { sink, .. } => Target::Sink { sink: &mut **sink, last: false },
            Target::Sieve(sieve, inner) => Target::Sieve(&mut **sieve, Box::new(inner.before_others())),
            other => other.again(),
        }
    }

    /// The client's sink, when it is where rows go in the end.
    fn sink(&mut self) -> Option<&mut dyn ResultSink> {
        match self {
            Target::Sink { sink, .. } => Some(&mut **sink),
            Target::Sieve(_, inner) => inner.sink(),
            Target::Rows(_) | Target::Each(_) => None,
        }
    }

    fn streams(&self) -> bool {
        match self {
            Target::Sink { .. } => true,
            Target::Sieve(_, inner) => inner.streams(),
            Target::Rows(_) | Target::Each(_) => false,
        }
    }

    /// Takes a row; `false`: no more are wanted. Whoever keeps it counts it.
    pub fn take(&mut self, values: Vec<Value>) -> Result<bool, MysqlError> {
        match self {
            Target::Sink { sink, .. } => {
                let values: SmallVec<[ValueRef<'_>; 16]> = values.iter().map(Value::as_ref).collect();
                sink.row(&values);
                Ok(true)
            }
            Target::Rows(rows) => {
                rows.push_values(&values)?;
                Ok(true)
            }
            Target::Each(each) => each(values),
            Target::Sieve(sieve, inner) => {
                if sieve(&values)? {
                    inner.take(values)
                } else {
                    Ok(true)
                }
            }
        }
    }

    /// Sends what has gathered, after making sure that it is durable.
    pub async fn flush_if_large(&mut self, txn: &mut Transaction, context: &mut Context) -> Result<(), MysqlError> {
        let ahead = context.budget.ahead;
        if let Some(sink) = self.sink()
            && sink.buffered() >= FLUSH_BYTES + ahead
        {
            txn.wait_observed().await?;
            let memory = &context.budget.memory;
            if send_or_read_ahead(sink, txn, memory, ahead > 0).await? {
                memory.give(ahead);
                context.budget.ahead = 0;
            } else {
                context.budget.ahead += FLUSH_BYTES;
            }
        }
        Ok(())
    }
}

pub(crate) struct Output<'a> {
    plan: &'a SelectPlan,
    target: Target<'a>,
    grouper: Option<Grouper<'a>>,
    distinct: Option<KeySet>,
    sorter: Option<Sorter>,
    /// A row's values for either, encoded.
    payload: Vec<u8>,
    memory: Option<Memory>,
    offset: u64,
    limit: u64,
    /// Rows that reached LIMIT, and rows that passed it.
    arrived: u64,
    delivered: u64,
    groups: u64,
    key: Vec<u8>,
    /// DISTINCT and ORDER BY have the same keys, so that one encoding serves both.
    distinct_is_order: bool,
    /// For each key of ORDER BY, the item whose value it is, where that is computed: it is evaluated once. `None`: there is none.
    keys_of_items: Option<Box<[Option<usize>]>>,
    done: bool,
    /// The target wants no more.
    refused: bool,
    /// What waits for subqueries; `None` where nothing does.
    late: Option<Box<LateExprs<'a>>>,
}

/// The items that are computed keys of ORDER BY too.
fn keys_of_items(plan: &SelectPlan) -> Option<Box<[Option<usize>]>> {
    let is_computed = |expr: &Expr| !matches!(expr.kind, ExprKind::Column { .. });
    if !plan.order.iter().any(|key| is_computed(&key.expr)) {
        return None;
    }
    let item_of = |key: &SortKey| plan.items.iter().position(|item| is_computed(item) && *item == key.expr);
    let items: Box<[Option<usize>]> = plan.order.iter().map(item_of).collect();
    items.iter().any(Option::is_some).then_some(items)
}

/// The expressions of a block that are evaluated before grouping, and for each row that it gives.
struct LateExprs<'a> {
    grouping: Late<'a>,
    output: Late<'a>,
}

impl<'a> Output<'a> {
    pub fn new(plan: &'a SelectPlan, target: Target<'a>, context: &mut Context) -> Result<Self, MysqlError> {
        let limit = plan.limit.as_ref().map(|l| row_count(l, context)).transpose()?.unwrap_or(u64::MAX);
        let offset = plan.offset.as_ref().map(|o| row_count(o, context)).transpose()?.unwrap_or(0);
        let keeps = plan.grouping.is_some()
            || plan.distinct
            || !plan.order.is_empty()
            || matches!(target, Target::Rows(_) | Target::Sieve(..));
        let memory = keeps.then(|| context.budget.memory.clone());
        let sorter = match &memory {
            Some(memory) if !plan.order.is_empty() => {
                let keep = if plan.calc_found_rows { u64::MAX } else { limit.saturating_add(offset) };
                Some(Sorter::new(usize::try_from(keep).unwrap_or(usize::MAX), memory.clone()))
            }
            _ => None,
        };
        let grouper = match (&plan.grouping, &memory) {
            (Some(grouping), Some(memory)) => {
                Some(Grouper::new(grouping, plan.first_row_only, memory.clone(), context))
            }
            _ => None,
        };
        let alone = plan.steps.is_empty() && matches!(target, Target::Sink { .. });
        let late = || Box::new(LateExprs { grouping: Late::of_grouping(plan), output: Late::of_output(plan, alone) });
        Ok(Output {
            late: plan.late.then(late),
            refused: false,
            done: limit == 0 && !plan.calc_found_rows,
            plan,
            target,
            grouper,
            distinct: plan.distinct.then(KeySet::default),
            sorter,
            payload: Vec::new(),
            memory,
            offset,
            limit,
            arrived: 0,
            delivered: 0,
            groups: 0,
            key: Vec::new(),
            keys_of_items: keys_of_items(plan),
            distinct_is_order: plan.order.len() == plan.items.len()
                && plan.order.iter().zip(&plan.items).all(|(key, item)| !key.descending && key.expr == *item),
        })
    }

    /// Where rows are grouped.
    pub fn grouper(&mut self) -> Option<&mut Grouper<'a>> {
        self.grouper.as_mut()
    }

    /// Adds the groups of rows on other nodes.
    pub fn take_groups(&mut self, work: &Work) -> Result<(), MysqlError> {
        self.grouper.as_mut().map_or(Ok(()), |grouper| work.add_groups(grouper))
    }

    /// Nothing more is wanted.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Rows go to the client as they come.
    pub fn streams(&self) -> bool {
        self.grouper.is_none() && self.sorter.is_none() && self.target.streams()
    }

    /// How many rows end the statement, when the first ones that come do.
    pub fn rows_wanted(&self) -> Option<u64> {
        let all = self.distinct.is_none() && self.plan.having.is_none();
        let streams = all && self.grouper.is_none() && self.sorter.is_none();
        (streams && self.limit < u64::MAX && !self.plan.calc_found_rows).then(|| self.limit.saturating_add(self.offset))
    }

    /// How many of the first rows in the plan's order are wanted, where the others have no effect.
    pub fn first_wanted(&self) -> Option<usize> {
        let plain = self.grouper.is_none() && self.distinct.is_none() && self.plan.having.is_none();
        let plain = plain && self.sorter.is_some() && !self.plan.calc_found_rows && self.limit < u64::MAX;
        plain.then(|| usize::try_from(self.limit.saturating_add(self.offset)).unwrap_or(usize::MAX))
    }

    /// How many joined rows may be enough, as far as that is known.
    pub fn demand(&self) -> Option<u64> {
        let first = self.grouper.is_none() && self.sorter.is_none();
        // Whoever takes them one by one may want one, or a second to know that there is one.
        self.rows_wanted().or_else(|| (first && matches!(self.target, Target::Each(_))).then_some(2))
    }

    pub fn memory(&mut self, context: &Context) -> Memory {
        self.memory.get_or_insert_with(|| context.budget.memory.clone()).clone()
    }

    pub fn found_rows(&self) -> u64 {
        if self.plan.calc_found_rows { self.arrived } else { self.delivered }
    }

    /// Groups, rows that HAVING and DISTINCT left, and rows that LIMIT left.
    pub fn counts(&self) -> (u64, u64, u64) {
        (self.groups, self.arrived, self.delivered)
    }

    /// Whether the target wants no more rows.
    pub fn was_refused(&self) -> bool {
        self.refused
    }

    /// Takes a joined row.
    pub fn push(&mut self, row: &dyn Columns, context: &mut Context) -> Result<(), MysqlError> {
        match &mut self.grouper {
            Some(grouper) => {
                if grouper.push(row, context)? {
                    self.done = true;
                }
                Ok(())
            }
            None => self.emit(row, context),
        }
    }

    /// Takes a joined row; what its expressions wait for is run before.
    pub async fn push_late(
        &mut self,
        row: &(dyn Columns + Sync),
        txn: &mut Transaction,
        context: &mut Context,
    ) -> Result<(), MysqlError> {
        if self.grouper.is_none() {
            return self.emit_late(row, txn, context).await;
        }
        if let Some(late) = &mut self.late {
            late.grouping.settle(row, txn, context).await?;
        }
        self.push(row, context)
    }

    async fn emit_late(
        &mut self,
        row: &(dyn Columns + Sync),
        txn: &mut Transaction,
        context: &mut Context,
    ) -> Result<(), MysqlError> {
        let Some(late) = &mut self.late else { return self.emit(row, context) };
        if let Some(having) = &self.plan.having
            && !with_answers(txn, context, |context| having.eval_bool(row, context)).await?
        {
            return Ok(());
        }
        late.output.settle(row, txn, context).await?;
        self.give(row, context)
    }

    /// Takes a joined row or a group.
    fn emit(&mut self, row: &dyn Columns, context: &mut Context) -> Result<(), MysqlError> {
        if let Some(having) = &self.plan.having
            && !having.eval_bool(row, context)?
        {
            return Ok(());
        }
        self.give(row, context)
    }

    /// Takes a row that HAVING lets pass.
    #[inline]
    fn give(&mut self, row: &dyn Columns, context: &mut Context) -> Result<(), MysqlError> {
        let plan = self.plan;
        // The row that is compared with others is the one that goes on: its items are evaluated once.
        let mut encoded = None;
        if let Some(distinct) = &mut self.distinct {
            let held = encode(plan, row, context, &[], &mut self.payload)?;
            self.key.clear();
            for (value, item) in values_of(&self.payload).zip(&plan.items) {
                append_key(value, &item.ty, false, &mut self.key);
            }
            if distinct.contains(self.key.as_slice()) {
                context.budget.memory.give(held);
                return Ok(());
            }
            encoded = Some(held);
            if let Some(memory) = &self.memory {
                memory.take(self.key.len() + 40)?;
            }
            distinct.insert(self.key.as_slice().into());
        }
        if let Some(sorter) = &mut self.sorter {
            self.arrived += 1;
            // Items that are keys are evaluated once, the others only of rows that are wanted.
            let mut early: SmallVec<[(usize, Value); 2]> = SmallVec::new();
            let mut early_bytes = 0;
            if let (None, Some(items)) = (encoded, &self.keys_of_items) {
                for &item in items.iter().flatten() {
                    if !early.iter().any(|(known, _)| *known == item) {
                        early.push((item, computed(&plan.items[item], row, context, &mut early_bytes)?));
                    }
                }
            }
            if self.distinct.is_none() || !self.distinct_is_order {
                self.key.clear();
                for (number, key) in plan.order.iter().enumerate() {
                    let bytes = &mut self.key;
                    match self.keys_of_items.as_ref().and_then(|items| items[number]) {
                        Some(item) => {
                            let early = early.iter().find(|(known, _)| *known == item);
                            let value = match early {
                                Some((_, value)) => value.as_ref(),
                                None => values_of(&self.payload).nth(item).expect("all items are encoded"),
                            };
                            append_key(value, &key.expr.ty, key.descending, bytes);
                        }
                        None => with_value(&key.expr, row, context, |value| {
                            append_key(value, &key.expr.ty, key.descending, bytes);
                        })?,
                    }
                }
            }
            let wanted = sorter.wants(&self.key);
            let held = match encoded {
                Some(held) => held,
                None if wanted => encode(plan, row, context, &early, &mut self.payload)?,
                None => 0,
            };
            if wanted {
                sorter.push(&self.key, &self.payload)?;
            }
            context.budget.memory.give(held + early_bytes);
            return Ok(());
        }
        self.arrived += 1;
        if self.arrived <= self.offset || self.delivered >= self.limit {
            context.budget.memory.give(encoded.unwrap_or(0));
            return Ok(());
        }
        self.delivered += 1;
        if self.delivered >= self.limit && !plan.calc_found_rows {
            self.done = true;
        }
        match &mut self.target {
            target if encoded.is_some() => {
                if let Target::Sink { sink, .. } = target {
                    let values: SmallVec<[ValueRef<'_>; 16]> = values_of(&self.payload).collect();
                    sink.row(&values);
                } else if let Target::Rows(rows) = target {
                    rows.push(&self.payload)?;
                } else if !target.take(values_of(&self.payload).map(ValueRef::to_owned).collect())? {
                    self.refused = true;
                    self.done = true;
                }
                context.budget.memory.give(encoded.unwrap_or(0));
            }
            Target::Sink { sink, .. } => write_row(plan, row, context, *sink)?,
            Target::Rows(rows) => {
                let held = encode(plan, row, context, &[], &mut self.payload)?;
                rows.push(&self.payload)?;
                context.budget.memory.give(held);
            }
            target => {
                let values = project(plan, row, context)?;
                if !target.take(values)? {
                    self.refused = true;
                    self.done = true;
                }
            }
        }
        Ok(())
    }

    /// Ends the result: groups and sorted rows are delivered now. All tables have been read.
    pub async fn finish(&mut self, txn: &mut Transaction, context: &mut Context) -> Result<(), MysqlError> {
        if matches!(self.target, Target::Sink { last: true, .. }) {
            txn.end_reading();
        }
        if let Some(grouper) = self.grouper.take() {
            self.done = self.limit == 0 && !self.plan.calc_found_rows;
            let runner = context.budget.runner_of_rows(grouper.len());
            let groups = run(runner, || grouper.finish(context))?;
            self.groups = groups.len() as u64;
            for index in 0..groups.len() {
                turn(index, txn, context).await?;
                if self.done {
                    break;
                }
                let row = groups.row(index);
                if self.late.is_some() {
                    self.emit_late(&row, txn, context).await?;
                } else {
                    self.emit(&row, context)?;
                }
                self.target.flush_if_large(txn, context).await?;
            }
        }
        if let Some(sorter) = self.sorter.take() {
            let runner = context.budget.runner_of_rows(sorter.len());
            let mut sorted = run(runner, || sorter.finish())?;
            sorted.limit(self.offset, self.limit);
            self.delivered = sorted.len() as u64;
            if let Target::Rows(rows) = &mut self.target {
                rows.append(sorted);
                return Ok(());
            }
            for index in 0.. {
                turn(index, txn, context).await?;
                let Some(row) = sorted.next() else { break };
                if let Target::Sink { sink, .. } = &mut self.target {
                    let values: SmallVec<[ValueRef<'_>; 16]> = values_of(row).collect();
                    sink.row(&values);
                } else if !self.target.take(values_of(row).map(ValueRef::to_owned).collect())? {
                    self.refused = true;
                    break;
                }
                self.target.flush_if_large(txn, context).await?;
            }
        }
        Ok(())
    }

    /// Sends what has gathered, after making sure that it is durable.
    pub async fn flush_if_large(&mut self, txn: &mut Transaction, context: &mut Context) -> Result<(), MysqlError> {
        self.target.flush_if_large(txn, context).await
    }
}

/// Sends all that has gathered (`true`), or takes memory for [`FLUSH_BYTES`] more, since a DDL waits and the client
/// does not read. Whoever is `ahead` already does not wait to learn that again. Errors: 1317, and those of the sink.
async fn send_or_read_ahead(
    sink: &mut dyn ResultSink,
    txn: &Transaction,
    memory: &Memory,
    ahead: bool,
) -> Result<bool, MysqlError> {
    if ahead {
        if let Some(sent) = sink.flush().now_or_never() {
            return sent.map(|()| true);
        }
    } else {
        match select(sink.flush(), pin!(txn.is_wanted_back())).await {
            Either::Left((sent, _)) => return sent.map(|()| true),
            Either::Right((wanted, _)) => wanted?,
        }
    }
    match memory.take(FLUSH_BYTES) {
        Ok(()) => return Ok(false),
        Err(error) if error.code == codes::OUT_OF_SORTMEMORY => {}
        Err(error) => return Err(error),
    }
    loop {
        let before = sink.buffered();
        match select(sink.flush(), pin!(txn.pause(STALLED))).await {
            Either::Left((sent, _)) => return sent.map(|()| true),
            Either::Right((paused, _)) => paused?,
        }
        if sink.buffered() < before {
            continue;
        }
        // Does the DDL still wait?
        match select(sink.flush(), pin!(txn.is_wanted_back())).await {
            Either::Left((sent, _)) => return sent.map(|()| true),
            Either::Right((wanted, _)) => wanted?,
        }
        if sink.buffered() == before {
            return Err(MysqlError::new(
                codes::QUERY_INTERRUPTED,
                format!(
                    "Query execution was interrupted: a change of the table's definition waits for this statement, \
                     whose client has read nothing for {} seconds",
                    STALLED.as_secs()
                ),
            ));
        }
    }
}

/// Gives way to others now and then while many rows are delivered; 1317.
async fn turn(row: usize, txn: &Transaction, context: &Context) -> Result<(), MysqlError> {
    if row % YIELD_ROWS == YIELD_ROWS - 1 {
        if is_interrupted(txn) {
            return Err(rauk_node::NodeError::Interrupted.into());
        }
        yield_now(context).await;
    }
    Ok(())
}

/// Calls `then` with the value of an expression; a column is not copied.
#[inline]
pub(crate) fn with_value(
    expr: &Expr,
    row: &dyn Columns,
    context: &mut Context,
    then: impl FnOnce(ValueRef<'_>),
) -> Result<(), MysqlError> {
    match placed(expr, row) {
        Some(value) => then(value),
        None => expr.eval_ref(row, context, then)?,
    }
    Ok(())
}

/// Writes the values of a row into `out`, instead of what was there. Gives the bytes that are to be given back when the
/// row is kept, and counts there.
/// `early`: items that have been evaluated, by number.
fn encode(
    plan: &SelectPlan,
    row: &dyn Columns,
    context: &mut Context,
    early: &[(usize, Value)],
    out: &mut Vec<u8>,
) -> Result<usize, MysqlError> {
    out.clear();
    let mut held = 0;
    for (number, item) in plan.items.iter().enumerate() {
        let before = out.len();
        match item.kind {
            _ if let Some((_, value)) = early.iter().find(|(known, _)| *known == number) => {
                put_values([value.as_ref()], out);
            }
            ExprKind::Column { table, column } if plan.stored => put_values([row.stored(table, column)], out),
            _ => with_value(item, row, context, |value| put_values([value], out))?,
        }
        if out.len() - before >= LARGE {
            context.budget.memory.take(out.len() - before)?;
            held += out.len() - before;
        }
    }
    Ok(held)
}

fn project(plan: &SelectPlan, row: &dyn Columns, context: &mut Context) -> Result<Vec<Value>, MysqlError> {
    let mut held = 0;
    let values = plan
        .items
        .iter()
        .map(|item| match item.kind {
            ExprKind::Column { table, column } if plan.stored => Ok(row.stored(table, column).to_owned()),
            _ => match placed(item, row) {
                Some(value) => Ok(value.to_owned()),
                None => computed(item, row, context, &mut held),
            },
        })
        .collect();
    // What is kept of them counts where it is kept.
    context.budget.memory.give(held);
    values
}

/// Gives a row to the client.
pub(super) fn write_row(
    plan: &SelectPlan,
    row: &dyn Columns,
    context: &mut Context,
    sink: &mut dyn ResultSink,
) -> Result<(), MysqlError> {
    let mut results: SmallVec<[Value; 4]> = SmallVec::new();
    let mut held = 0;
    for item in &plan.items {
        if !is_placed(item) {
            results.push(computed(item, row, context, &mut held)?);
        }
    }
    let mut next = results.iter();
    let values: SmallVec<[ValueRef<'_>; 16]> = plan
        .items
        .iter()
        .map(|item| match placed(item, row) {
            Some(value) => value,
            None => next.next().map_or(ValueRef::Null, Value::as_ref),
        })
        .collect();
    sink.row(&values);
    if held > 0 {
        context.budget.memory.give(held);
    }
    Ok(())
}

/// The value of an item that waits until its row is complete. A large one counts as long: `held` is to be given back.
fn computed(item: &Expr, row: &dyn Columns, context: &mut Context, held: &mut usize) -> Result<Value, MysqlError> {
    let value = item.eval(row, context)?;
    let bytes = heap_bytes(&value);
    if bytes >= LARGE {
        context.budget.memory.take(bytes)?;
        *held += bytes;
    }
    Ok(value)
}

/// The value of what has a place in the row: nothing is to be computed.
#[inline]
fn placed<'r>(expr: &Expr, row: &'r dyn Columns) -> Option<ValueRef<'r>> {
    match expr.kind {
        ExprKind::Column { table, column } => Some(row.column(table, column)),
        ExprKind::GroupValue(number) => Some(row.group_value(number)),
        _ => None,
    }
}

fn is_placed(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Column { .. } | ExprKind::GroupValue(_))
}

/// The value of LIMIT or OFFSET.
pub(crate) fn row_count(expr: &Expr, context: &mut Context) -> Result<u64, MysqlError> {
    let value = expr.eval(&NoColumns, context)?;
    let count = match &value {
        Value::Int(v) => u64::try_from(*v).ok(),
        Value::UInt(v) => Some(*v),
        // Clients that bind everything as text.
        Value::Str(text) => text.trim().parse().ok(),
        _ => None,
    };
    count.ok_or_else(|| MysqlError::new(codes::WRONG_ARGUMENTS, "Incorrect arguments to LIMIT"))
}
