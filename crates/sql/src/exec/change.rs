//! UPDATE and DELETE of one table whose rows a locking scan finds.
//!
//! Rows are found by a locking scan, a batch at a time, and changed between batches: the scan sees the newest version of each row, checks the whole
//! condition on it, and does not meet what the statement itself has written, so no row is changed twice. With an ORDER BY that no index serves, all
//! matching rows are locked, read and sorted first. Few are kept as they are; of many only the primary keys, by which they are read
//! again: they are locked, so they are what they were.
//!
//! In a cluster many rows are written together ([`super::together`]).
//!
//! An UPDATE of the AUTO_INCREMENT column raises the counter when all rows are changed.

use super::answer::{run_uncorrelated, with_answers};
use super::assignments::Assignments;
use super::merge::Met;
use super::output::{row_count, with_value};
use super::remote::{Wants, Work, change};
use super::row::{Joined, Part, owned};
use super::scan::{BATCH, Lock, Opened, get, get_if, give_way, is_interrupted, open, passes, yield_now};
use super::sort::{Sorted, Sorter, put_values, values_of};
use super::together::{Deletes, Updates};
use crate::expr::value_key::append_key;
use crate::expr::{Context, Expr, run};
use crate::memory::values_bytes;
use crate::physical::model::{DeletePlan, Level, SortKey, Source, UpdatePlan};
use rauk_node::{ChangeOutcome, NodeError, ScanBatch, ScanCursor, ScanSpec, TableHandle, Transaction};
use rauk_types::result::{Completion, ResultColumn, ResultSink};
use rauk_types::{MysqlError, RowView, TableSchema, Value, ValueRef};
use std::sync::Arc;

pub(crate) async fn run_update(
    plan: &UpdatePlan,
    txn: &mut Transaction,
    context: &mut Context,
) -> Result<Completion, MysqlError> {
    let table = stored(&plan.sources);
    let schema = table.schema().clone();
    let zone = context.time_zone.clone();
    let mut matched = 0;
    let mut turns = Turns::default();
    let demand = Demand { order: &plan.order, limit: plan.limit.as_ref(), counts_refused: true };
    let mut found = Found::open(&plan.level, &plan.sources, &plan.once, demand, txn, context).await?;
    let mut updates = Updates::new(table, &plan.key_defs, plan.ignore, txn);
    if found.is_elsewhere(txn)
        && let Some(program) = change::of_update(plan, &schema, context)
        && Box::pin(found.change(&program, false, txn, context)).await?
    {
        (matched, updates.changed) = (1, 1);
    }
    let assignments = Assignments {
        set: &plan.set,
        schema: &schema,
        key_defs: &plan.key_defs,
        check: plan.check.as_ref(),
        rules: plan.rules.as_deref(),
        ignore: plan.ignore,
        zone: &zone,
    };
    let result: Result<(), MysqlError> = async {
        loop {
            let rows = found.next(txn, context).await?;
            if rows.is_empty() {
                return Ok(());
            }
            let read = rows.len();
            for old in rows {
                if context.budget.is_due() {
                    give_way(txn, context).await?;
                }
                if let Some(new) = assignments.of(&old, &[], &mut matched, txn, context).await? {
                    updates.write(old, new, 1, txn, context).await?;
                }
            }
            turns.after(read, context).await;
        }
    }
    .await;
    updates.end(result, txn, context).await?;
    if let Some(number) = updates.highest {
        plan.database.raise_auto_increment(table, number).await?;
    }
    context.matched_rows = matched;
    Ok(Completion {
        affected_rows: updates.changed,
        warnings: context.warning_count.min(u16::MAX.into()) as u16,
        info: format!("Rows matched: {matched}  Changed: {}  Warnings: {}", updates.changed, context.warning_count),
        ..Completion::default()
    })
}

/// Lets other tasks run after every [`BATCH`] rows that were changed: a change of a few rows does not give its turn away.
#[derive(Default)]
struct Turns {
    rows: usize,
}

impl Turns {
    async fn after(&mut self, rows: usize, context: &Context) {
        self.rows += rows;
        if self.rows >= BATCH {
            self.rows = 0;
            yield_now(context).await;
        }
    }
}

pub(crate) async fn run_delete(
    plan: &DeletePlan,
    columns: &[ResultColumn],
    txn: &mut Transaction,
    context: &mut Context,
    sink: &mut dyn ResultSink,
) -> Result<Completion, MysqlError> {
    let table = stored(&plan.sources);
    if !plan.returning.is_empty() {
        sink.columns(columns);
    }
    let mut turns = Turns::default();
    let demand = Demand { order: &plan.order, limit: plan.limit.as_ref(), counts_refused: !plan.ignore };
    let mut found = Found::open(&plan.level, &plan.sources, &plan.once, demand, txn, context).await?;
    let mut deletes = Deletes::new(table, plan.ignore, &plan.returning, txn);
    if found.is_elsewhere(txn)
        && let Some(program) = change::of_delete(plan, context)
        && Box::pin(found.change(&program, true, txn, context)).await?
    {
        deletes.deleted = 1;
    }
    let result: Result<(), MysqlError> = async {
        loop {
            let rows = found.next(txn, context).await?;
            let (read, is_end) = (rows.len(), rows.is_empty());
            for row in rows {
                deletes.write(row, txn, context, sink).await?;
            }
            // Warnings of rows that stay come before those of finding the next ones.
            if is_end || plan.ignore {
                deletes.write_waiting(txn, context, sink).await?;
            }
            let missing = std::mem::take(&mut deletes.missing);
            if is_end && missing == 0 {
                return Ok(());
            }
            // Others may be in the places of those that were not there.
            found.give_back(missing);
            turns.after(read, context).await;
        }
    }
    .await;
    deletes.end(result, txn, context, sink).await?;
    Ok(Completion {
        affected_rows: deletes.deleted,
        warnings: context.warning_count.min(u16::MAX.into()) as u16,
        ..Completion::default()
    })
}

/// The AUTO_INCREMENT number that an update gives to a row: the counter goes above it, as in MySQL 8.
pub(super) fn changed_number(schema: &TableSchema, old: &[Value], new: &[Value]) -> Option<u64> {
    let column = schema.auto_increment.filter(|&column| old[column] != new[column])?;
    new[column].as_ref().as_counted().and_then(|number| u64::try_from(number).ok())
}

/// The next rows of those that were sorted.
async fn again(
    sorted: &mut Sorted,
    most: usize,
    (table, lock): (&TableHandle, Lock),
    txn: &mut Transaction,
) -> Result<Vec<Vec<Value>>, MysqlError> {
    if is_interrupted(txn) {
        return Err(NodeError::Interrupted.into());
    }
    let columns = table.schema().columns.len();
    let mut rows = Vec::with_capacity(most);
    while rows.len() < most
        && let Some(payload) = sorted.next()
    {
        rows.extend(match payload.split_first() {
            Some((&WHOLE, values)) => Some(values_of(values).map(ValueRef::to_owned).collect()),
            Some((_, key)) => get(txn, table, None, key, lock, |view| view.map(|v| owned(&v, columns))).await?,
            None => unreachable!("it says what it is"),
        });
    }
    Ok(rows)
}

fn stored(sources: &[Source]) -> &TableHandle {
    sources[0].handle().unwrap_or_else(|| unreachable!("the planner refuses to change virtual tables"))
}

/// Whether a row is one of those to be changed. Answers of subqueries are there.
fn matches(level: &Level, row: &Joined<'_>, context: &mut Context) -> Result<bool, MysqlError> {
    Ok(passes(&level.filters, row, context)? && passes(&level.late_filters, row, context)?)
}

/// How many rows a statement takes, in which order.
struct Demand<'a> {
    order: &'a [SortKey],
    limit: Option<&'a Expr>,
    /// Of UPDATE the LIMIT is one of rows that are found, of DELETE one of rows that are deleted: there a row that IGNORE
    /// passes over does not count.
    counts_refused: bool,
}

/// The rows that a statement changes, as stored.
struct Found<'a> {
    level: &'a Level,
    table: &'a TableHandle,
    opened: Opened,
    /// Of an index merge: the rows that its scans have given.
    met: Option<Met>,
    /// Position in `opened`.
    at: usize,
    cursor: Option<(ScanCursor, Option<Arc<Work>>)>,
    /// Rows that may still be taken.
    left: u64,
    /// Already sorted: taken from here.
    sorted: Option<Sorted>,
    /// A row that was read already.
    read: Option<Vec<Value>>,
}

/// Bytes of rows that are kept as they are.
const KEPT_WHOLE: usize = 16 << 20;

// What follows in the payload of a row that waits for its turn: its values, or its primary key.
const WHOLE: u8 = 0;
const BY_KEY: u8 = 1;

impl<'a> Found<'a> {
    async fn open(
        level: &'a Level,
        sources: &'a [Source],
        once: &[Expr],
        Demand { order, limit, counts_refused }: Demand<'_>,
        txn: &mut Transaction,
        context: &mut Context,
    ) -> Result<Found<'a>, MysqlError> {
        let zone = context.time_zone.clone();
        let root = Joined::root(&zone);
        let left = limit.map(|l| row_count(l, context)).transpose()?.unwrap_or(u64::MAX);
        let opened = if left == 0 || !with_answers(txn, context, |context| passes(once, &root, context)).await? {
            Opened::Nothing
        } else {
            // Conditions are checked where nothing can wait.
            run_uncorrelated(level.filters.iter().chain(&level.late_filters), txn, context).await?;
            let hint = limit.filter(|_| order.is_empty()).map(|_| left);
            with_answers(txn, context, |context| open(level, &sources[0], &root, context, hint)).await?
        };
        let (opened, met) = match opened {
            Opened::Merge(merge) => {
                assert!(merge.met.is_some(), "rows that are changed are locked");
                (Opened::Scans(merge.scans.into_iter().map(|(_, scan)| scan).collect()), merge.met)
            }
            opened => (opened, None),
        };
        let table = stored(sources);
        let mut found = Found { level, table, opened, met, at: 0, cursor: None, left, sorted: None, read: None };
        if !order.is_empty() {
            let memory = context.budget.memory.clone();
            let kept = if counts_refused { usize::try_from(left).unwrap_or(usize::MAX) } else { usize::MAX };
            let mut sorter = Sorter::new(kept, memory);
            let primary = table.schema().key_def(&table.schema().indexes[0]);
            let (mut whole, mut payload) = (0, Vec::new());
            found.left = u64::MAX;
            loop {
                let rows = found.next(txn, context).await?;
                if rows.is_empty() {
                    break;
                }
                for values in rows {
                    let mut key = Vec::new();
                    {
                        let row = root.with(0, Part::Values(&values));
                        for sort in order {
                            with_answers(txn, context, |context| {
                                with_value(&sort.expr, &row, context, |value| {
                                    append_key(value, &sort.expr.ty, sort.descending, &mut key);
                                })
                            })
                            .await?;
                        }
                    }
                    whole += values_bytes(&values);
                    payload.clear();
                    if whole <= KEPT_WHOLE {
                        payload.push(WHOLE);
                        put_values(values.iter().map(Value::as_ref), &mut payload);
                    } else {
                        payload.push(BY_KEY);
                        primary.encode_values(&values, &mut payload);
                    }
                    sorter.push(&key, &payload)?;
                }
            }
            let runner = context.budget.runner_of_rows(sorter.len());
            found.sorted = Some(run(runner, || sorter.finish())?);
            found.left = left;
        }
        Ok(found)
    }

    /// Whether all that there can be is one row by its primary key, which another node changes.
    fn is_elsewhere(&self, txn: &Transaction) -> bool {
        match &self.opened {
            Opened::Keys { unique: None, keys } if keys.len() == 1 && self.at == 0 && self.sorted.is_none() => {
                self.left > 0 && txn.changes_elsewhere(self.table, &keys[0])
            }
            _ => false,
        }
    }

    /// Has that row changed where it is; `false`: it was read, or is still to be read. In a box: other statements' futures
    /// are not the larger for it.
    async fn change(
        &mut self,
        program: &[u8],
        deletes: bool,
        txn: &mut Transaction,
        context: &mut Context,
    ) -> Result<bool, MysqlError> {
        let Opened::Keys { keys, .. } = &self.opened else { unreachable!("it is one row by its key") };
        let columns = self.table.schema().columns.len();
        txn.end_with_write(true);
        let changed = txn.change(self.table, &keys[0], program, deletes, |view| view.map(|v| owned(&v, columns))).await;
        txn.end_with_write(false);
        match changed {
            Ok(ChangeOutcome::Changed) => {
                (self.at, self.left) = (1, 0);
                return Ok(true);
            }
            Ok(ChangeOutcome::Read(row)) => {
                self.at = 1;
                let zone = context.time_zone.clone();
                let root = Joined::root(&zone);
                if let Some(row) = row
                    && matches(self.level, &root.with(self.level.table, Part::Values(&row)), context)?
                {
                    self.read = Some(row);
                }
            }
            // Whether that is a conflict depends on what the row has been.
            Ok(ChangeOutcome::Unknown) | Err(NodeError::Changed { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(false)
    }

    /// Rows that it gave were not changed: others may be in their places.
    fn give_back(&mut self, rows: u64) {
        self.left = self.left.saturating_add(rows);
    }

    /// Some of the rows; none: there are no more.
    async fn next(&mut self, txn: &mut Transaction, context: &mut Context) -> Result<Vec<Vec<Value>>, MysqlError> {
        if let Some(sorted) = &mut self.sorted {
            let most = usize::try_from(self.left).unwrap_or(BATCH).min(BATCH);
            let rows = again(sorted, most, (self.table, self.level.lock), txn).await?;
            self.left -= rows.len() as u64;
            return Ok(rows);
        }
        if let Some(row) = self.read.take() {
            self.left -= 1;
            return Ok(vec![row]);
        }
        let zone = context.time_zone.clone();
        let root = Joined::root(&zone);
        let columns = self.table.schema().columns.len();
        let (level, table) = (self.level, self.table);
        let mut out = Vec::new();
        while out.is_empty() && self.left > 0 {
            if is_interrupted(txn) {
                return Err(NodeError::Interrupted.into());
            }
            match &mut self.opened {
                Opened::Nothing => break,
                Opened::Keys { unique, keys } => {
                    let Some(key) = keys.get(self.at) else { break };
                    self.at += 1;
                    let meets = |view: &RowView<'_>, context: &mut Context| {
                        matches(level, &root.with(level.table, Part::Stored(*view)), context)
                    };
                    let visit = |view: RowView<'_>, _: &mut Context| Ok(Some(owned(&view, columns)));
                    let row = get_if(txn, table, *unique, key, level.lock, context, meets, visit).await?;
                    out.extend(row);
                }
                Opened::Skip(_) | Opened::Merge(_) => {
                    unreachable!("merges are scans, and rows that are locked are not jumped over")
                }
                Opened::Scans(scans) => {
                    let (cursor, work) = match &mut self.cursor {
                        Some(cursor) => cursor,
                        None => {
                            let Some(spec) = scans.get(self.at) else { break };
                            self.at += 1;
                            let work =
                                Work::new((level.table, table), &level.filters, Wants::Rows, &root, txn, context);
                            let pushdown = work.clone().map(|work| work as _);
                            self.cursor.insert((ScanCursor::new(table, ScanSpec { pushdown, ..spec.clone() }), work))
                        }
                    };
                    let mut batch = ScanBatch::default();
                    let mut failed = None;
                    let mut filter = |view: &RowView<'_>| {
                        if let Some(work) = &work {
                            work.before_row(context);
                        }
                        let row = root.with(level.table, Part::Stored(*view));
                        let wanted = match (matches(level, &row, context), &mut self.met) {
                            (Ok(true), Some(met)) => met.is_new(view),
                            (other, _) => other,
                        };
                        match wanted {
                            Ok(wanted) => wanted,
                            Err(error) => {
                                failed.get_or_insert(error);
                                true
                            }
                        }
                    };
                    let rows = usize::try_from(self.left).unwrap_or(BATCH).min(BATCH);
                    cursor.next_batch(txn, rows, &mut filter, &mut batch).await?;
                    if let Some(error) = failed {
                        return Err(error);
                    }
                    if batch.is_empty() {
                        if let Some(work) = work {
                            work.end(false, context);
                        }
                        self.cursor = None;
                        continue;
                    }
                    out.extend((0..batch.len()).map(|i| owned(&batch.row(table, i), columns)));
                }
            }
        }
        self.left = self.left.saturating_sub(out.len() as u64);
        Ok(out)
    }
}
