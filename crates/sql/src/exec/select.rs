//! Nested loops: runs the steps of a SELECT and hands every joined row to its output.
//!
//! Steps before the last table copy the rows they loop over, a batch at a time; the last table's rows are tested and handed on while the partition
//! is held, so a lookup by key goes from the row's bytes into the result buffer. Results that only grow in memory (groups, sorts, counts) visit
//! the last table without copying anything; results that are sent take batches, so that they can be flushed in between.

use super::answer::with_answers;
use super::buffer::{Buffer, build};
use super::output::{Output, Target};
use super::row::{Joined, Part, owned};
use super::scan::{BATCH, Opened, YIELD_ROWS, get, give_way, is_interrupted, lock_of, open, passes, yield_now};
use super::window::WindowRows;
use crate::expr::{Context, Expr};
use crate::physical::model::{Access, Level, SelectPlan, Step, WindowPlan};
use rauk_kernel::Verdict;
use rauk_node::{ScanBatch, ScanCursor, ScanSpec, TableHandle, Transaction};
use rauk_types::{MysqlError, RowView};
use smallvec::{SmallVec, smallvec};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub(crate) struct Run<'a> {
    plan: &'a SelectPlan,
    txn: &'a mut Transaction,
    context: &'a mut Context,
    output: Output<'a>,
    /// One a step, for tables that are kept in memory.
    buffers: SmallVec<[Option<Arc<Buffer>>; 4]>,
    /// Outer join groups that found a match for the present outer row.
    matched: SmallVec<[bool; 4]>,
    /// Steps from here on read no table.
    tail: usize,
    rows: usize,
    limit_hint: Option<u64>,
    /// Queries may have to be run between rows, so every row is copied, and nothing is evaluated under the guard of a partition but `filters`.
    late: bool,
    /// The statement has other queries.
    others: bool,
}

/// What became of a query.
#[derive(Default)]
pub(crate) struct Ran {
    /// Rows before LIMIT where that was asked for, else those delivered.
    pub rows: u64,
    /// Whoever takes the rows wants no more.
    pub refused: bool,
}

/// Runs a SELECT into `target`.
pub(crate) async fn run_select<'a>(
    plan: &'a SelectPlan,
    txn: &'a mut Transaction,
    context: &'a mut Context,
    target: Target<'a>,
) -> Result<Ran, MysqlError> {
    let zone = context.time_zone.clone();
    let root = Joined::root(&zone);
    let output = Output::new(plan, target, context)?;
    let scans = plan.steps.iter().filter(|s| matches!(s, Step::Scan(_))).count();
    let others = context.subqueries.is_active();
    let late = others
        && (plan.late || plan.steps.iter().any(|s| matches!(s, Step::Scan(level) if !level.late_filters.is_empty())));
    let tail = match late {
        true => usize::MAX,
        false => plan.steps.iter().rposition(|s| matches!(s, Step::Scan(_))).map_or(0, |at| at + 1),
    };
    let limit_hint = match scans {
        1 if plan.first_row_only => Some(1),
        1 => output.rows_wanted(),
        _ => None,
    };
    // Many short runs take as long as one.
    let rows = if others { context.subqueries.rows } else { 0 };
    let mut run = Run {
        plan,
        txn,
        context,
        output,
        buffers: smallvec![None; plan.steps.len()],
        matched: smallvec![false; plan.outer_groups],
        tail,
        rows,
        limit_hint,
        late,
        others,
    };
    // Several reads of one statement see one state.
    if scans > 1 && plan.lock.is_none() {
        run.snapshot().await?;
    }
    let possible = match others {
        true => with_answers(run.txn, run.context, |context| passes(&plan.once, &root, context)).await?,
        false => passes(&plan.once, &root, run.context)?,
    };
    if possible && !run.output.is_done() {
        match plan.steps.first() {
            Some(Step::Scan(level)) => run.scan(0, level, &root).await?,
            _ => step(&mut run, 0, &root).await?,
        }
    }
    let Run { txn, context, mut output, rows, .. } = run;
    if others {
        context.subqueries.rows = rows;
    }
    output.finish(txn, context).await?;
    Ok(Ran { rows: output.found_rows(), refused: output.was_refused() })
}

/// Runs the steps from `at` on for one joined row.
fn step<'r, 'a: 'r>(
    run: &'r mut Run<'a>,
    at: usize,
    row: &'r Joined<'r>,
) -> Pin<Box<dyn Future<Output = Result<(), MysqlError>> + Send + 'r>> {
    Box::pin(async move {
        let plan = run.plan;
        match plan.steps.get(at) {
            None if run.late => run.output.push_late(row, run.txn, run.context).await,
            None => run.output.push(row, run.context),
            Some(Step::Leave { group, filters }) => {
                run.matched[*group] = true;
                if run.passes(filters, row).await? {
                    step(run, at + 1, row).await?;
                }
                Ok(())
            }
            Some(Step::Enter { group, leave, tables }) => {
                run.matched[*group] = false;
                step(run, at + 1, row).await?;
                if !run.matched[*group] && !run.output.is_done() {
                    let nulls = row.with(usize::MAX, Part::Nulls(tables));
                    let Step::Leave { filters, .. } = &plan.steps[*leave] else {
                        unreachable!("a group ends with its Leave")
                    };
                    if run.passes(filters, &nulls).await? {
                        step(run, leave + 1, &nulls).await?;
                    }
                }
                Ok(())
            }
            Some(Step::Scan(level)) => run.scan(at, level, row).await,
        }
    })
}

/// What follows the last table: needs no other row and never waits.
fn tail(
    plan: &SelectPlan,
    from: usize,
    row: &Joined<'_>,
    matched: &mut [bool],
    output: &mut Output<'_>,
    context: &mut Context,
) -> Result<(), MysqlError> {
    for step in &plan.steps[from..] {
        let Step::Leave { group, filters } = step else { unreachable!("only ends of groups follow the last table") };
        matched[*group] = true;
        if !passes(filters, row, context)? {
            return Ok(());
        }
    }
    output.push(row, context)
}

/// All reads of the statement from here on see one state.
pub(crate) async fn take_snapshot(txn: &mut Transaction) -> Result<(), MysqlError> {
    // Reads that lock what they read need none.
    if !txn.locks_plain_reads() {
        txn.take_snapshot().await?;
    }
    Ok(())
}

impl Run<'_> {
    /// Loops over one table.
    async fn scan(&mut self, at: usize, level: &Level, row: &Joined<'_>) -> Result<(), MysqlError> {
        let source = &self.plan.sources[level.table];
        if let Some(windows) = self.plan.windows().filter(|_| level.hash.is_none()) {
            return self.loop_windows(at, level, windows, row).await;
        }
        if level.buffered || matches!(level.access, Access::Virtual { .. } | Access::Rows) {
            let buffer = match &self.buffers[at] {
                Some(buffer) => buffer.clone(),
                None => {
                    let memory = self.output.memory(self.context);
                    let hint = self.limit_hint.filter(|_| level.filters.is_empty() && level.late_filters.is_empty());
                    let buffer = Arc::new(build(level, source, self.txn, self.context, memory, hint).await?);
                    self.buffers[at] = Some(buffer.clone());
                    buffer
                }
            };
            if !buffer.too_large {
                return self.loop_buffer(at, level, &buffer, row).await;
            }
        }
        let Some(table) = source.handle() else { unreachable!("virtual tables are buffered") };
        let hint = self.limit_hint;
        let lock = lock_of(level, self.context);
        let opened = match self.others {
            true => with_answers(self.txn, self.context, |context| open(level, source, row, context, hint)).await?,
            false => open(level, source, row, self.context, hint)?,
        };
        match opened {
            Opened::Nothing => Ok(()),
            Opened::Keys { unique, keys } => {
                if keys.len() > 1 && lock.is_none() {
                    self.snapshot().await?;
                }
                for key in &keys {
                    self.lookup(at, level, table, unique, key, row).await?;
                    if self.output.is_done() {
                        break;
                    }
                    self.turn(1).await?;
                }
                Ok(())
            }
            Opened::Scans(scans) => {
                if scans.len() > 1 && lock.is_none() {
                    self.snapshot().await?;
                }
                let visit = at + 1 == self.tail && !self.output.streams();
                for spec in scans {
                    if visit && !spec.ordered {
                        self.visit_all(at, level, table, spec, row).await?;
                    } else {
                        self.loop_batches(at, level, table, spec, row).await?;
                    }
                    if self.output.is_done() {
                        break;
                    }
                }
                Ok(())
            }
        }
    }

    #[allow(clippy::too_many_arguments)]
    async fn lookup(
        &mut self,
        at: usize,
        level: &Level,
        table: &TableHandle,
        unique: Option<usize>,
        key: &[u8],
        row: &Joined<'_>,
    ) -> Result<(), MysqlError> {
        let last = at + 1 == self.tail;
        let lock = lock_of(level, self.context);
        let Run { plan, txn, context, output, matched, .. } = &mut *self;
        if last {
            let visit = |view: Option<RowView<'_>>| -> Result<(), MysqlError> {
                let Some(view) = view else { return Ok(()) };
                let joined = row.with(level.table, Part::Stored(view));
                if passes(&level.filters, &joined, context)? {
                    tail(plan, at + 1, &joined, matched, output, context)?;
                }
                Ok(())
            };
            return get(txn, table, unique, key, lock, visit).await?;
        }
        let columns = table.schema().columns.len();
        let visit = |view: Option<RowView<'_>>| match view {
            None => Ok(None),
            Some(view) => {
                let joined = row.with(level.table, Part::Stored(view));
                Ok(passes(&level.filters, &joined, context)?.then(|| owned(&view, columns)))
            }
        };
        let found: Result<_, MysqlError> = get(txn, table, unique, key, lock, visit).await?;
        if let Some(values) = found? {
            let joined = row.with(level.table, Part::Values(&values));
            if self.passes(&level.late_filters, &joined).await? {
                step(self, at + 1, &joined).await?;
            }
        }
        Ok(())
    }

    /// Whether all conditions hold, those with subqueries included.
    async fn passes(&mut self, filters: &[Expr], row: &Joined<'_>) -> Result<bool, MysqlError> {
        match self.others && !filters.is_empty() {
            true => with_answers(self.txn, self.context, |context| passes(filters, row, context)).await,
            false => passes(filters, row, self.context),
        }
    }

    /// The last table of a result that stays in memory: no row is copied.
    async fn visit_all(
        &mut self,
        at: usize,
        level: &Level,
        table: &TableHandle,
        spec: ScanSpec,
        row: &Joined<'_>,
    ) -> Result<(), MysqlError> {
        let Run { plan, txn, context, output, matched, .. } = &mut *self;
        let mut failed = None;
        let mut visit = |view: &RowView<'_>| {
            let joined = row.with(level.table, Part::Stored(*view));
            let result = match passes(&level.filters, &joined, context) {
                Ok(true) => tail(plan, at + 1, &joined, matched, output, context).map(|()| true),
                other => other,
            };
            match result {
                Ok(true) if output.is_done() => Verdict::KeepAndStop,
                Ok(true) => Verdict::Keep,
                Ok(false) => Verdict::Skip,
                Err(error) => {
                    failed = Some(error);
                    Verdict::KeepAndStop
                }
            }
        };
        ScanCursor::new(table, spec).for_each(txn, &mut visit).await?;
        failed.map_or(Ok(()), Err)
    }

    async fn loop_batches(
        &mut self,
        at: usize,
        level: &Level,
        table: &TableHandle,
        spec: ScanSpec,
        row: &Joined<'_>,
    ) -> Result<(), MysqlError> {
        let mut rows = match spec.limit_hint {
            Some(hint) => (hint as usize).clamp(1, BATCH),
            None => BATCH,
        };
        let mut cursor = ScanCursor::new(table, spec);
        let mut batch = ScanBatch::default();
        loop {
            let mut failed = None;
            let context = &mut *self.context;
            let mut filter = |view: &RowView<'_>| {
                let joined = row.with(level.table, Part::Stored(*view));
                match passes(&level.filters, &joined, context) {
                    Ok(passes) => passes,
                    Err(error) => {
                        // A kept row ends the batch soon.
                        failed.get_or_insert(error);
                        true
                    }
                }
            };
            cursor.next_batch(self.txn, rows, &mut filter, &mut batch).await?;
            if let Some(error) = failed {
                return Err(error);
            }
            if batch.is_empty() {
                return Ok(());
            }
            for i in 0..batch.len() {
                let view = batch.row(table, i);
                let joined = row.with(level.table, Part::Stored(view));
                if at + 1 == self.tail {
                    let Run { plan, context, output, matched, .. } = &mut *self;
                    tail(plan, at + 1, &joined, matched, output, context)?;
                } else if self.passes(&level.late_filters, &joined).await? {
                    step(self, at + 1, &joined).await?;
                }
                if self.output.is_done() {
                    return Ok(());
                }
                give_way(self.txn, self.context).await?;
            }
            self.turn(batch.len()).await?;
            rows = BATCH;
        }
    }

    async fn loop_buffer(
        &mut self,
        at: usize,
        level: &Level,
        buffer: &Buffer,
        row: &Joined<'_>,
    ) -> Result<(), MysqlError> {
        let mut candidates = match self.others {
            true => with_answers(self.txn, self.context, |context| buffer.candidates(level, row, context)).await?,
            false => buffer.candidates(level, row, self.context)?,
        };
        while let Some(values) = candidates.next(buffer) {
            let joined = row.with(level.table, Part::Values(values));
            self.turn(1).await?;
            if !passes(&level.filters, &joined, self.context)? {
                continue;
            }
            if at + 1 == self.tail {
                let Run { plan, context, output, matched, .. } = &mut *self;
                tail(plan, at + 1, &joined, matched, output, context)?;
            } else if self.passes(&level.late_filters, &joined).await? {
                step(self, at + 1, &joined).await?;
            }
            if self.output.is_done() {
                break;
            }
        }
        Ok(())
    }

    /// The rows of window functions, each as it is computed.
    async fn loop_windows(
        &mut self,
        at: usize,
        level: &Level,
        windows: &WindowPlan,
        row: &Joined<'_>,
    ) -> Result<(), MysqlError> {
        let mut rows = WindowRows::open(windows, self.txn, self.context).await?;
        let mut values = Vec::new();
        while rows.next(&mut values, self.txn, self.context).await? {
            let joined = row.with(level.table, Part::Values(&values));
            self.turn(1).await?;
            if !self.passes(&level.filters, &joined).await? || !self.passes(&level.late_filters, &joined).await? {
                continue;
            }
            if at + 1 == self.tail {
                let Run { plan, context, output, matched, .. } = &mut *self;
                tail(plan, at + 1, &joined, matched, output, context)?;
            } else {
                step(self, at + 1, &joined).await?;
            }
            if self.output.is_done() {
                break;
            }
        }
        rows.close();
        Ok(())
    }

    async fn snapshot(&mut self) -> Result<(), MysqlError> {
        take_snapshot(self.txn).await
    }

    /// Counts work, flushes what has gathered, and lets others run now and then.
    async fn turn(&mut self, rows: usize) -> Result<(), MysqlError> {
        self.rows += rows + self.context.budget.take_work();
        self.output.flush_if_large(self.txn, self.context).await?;
        if self.rows >= YIELD_ROWS {
            self.rows = 0;
            if is_interrupted(self.txn) {
                return Err(rauk_node::NodeError::Interrupted.into());
            }
            yield_now(self.context).await;
        }
        Ok(())
    }
}
