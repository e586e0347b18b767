//! Nested loops: runs the steps of a SELECT and hands every joined row to its output.
//!
//! Steps before the last table copy the rows they loop over, a batch at a time; the last table's rows are tested and handed on while the partition
//! is held, so a lookup by key goes from the row's bytes into the result buffer. Results that only grow in memory (groups, sorts, counts) visit
//! the last table without copying anything; results that are sent take batches, so that they can be flushed in between.
//!
//! The tables of a semi or anti join give no rows: the first match ends their loops. Where they are one table, its rows are tested while the partition
//! is held, and nothing is allocated for an outer row but the key.

use super::answer::{known_to_fail, may_look_ahead, run_uncorrelated, with_answers};
use super::batch::{Batch, drain, run_batch};
use super::buffer::{Buffer, Candidates, build};
use super::lateral::Remembered;
use super::now::Frame;
use super::output::{Output, Target};
use super::query::Running;
use super::remote::{Wants, Work};
use super::row::{Joined, Part};
use super::scan::{BATCH, Opened, YIELD_ROWS, get_if, give_way, is_interrupted, lock_of, open, passes, yield_now};
use super::vector::Top;
use super::window::WindowRows;
use crate::expr::{Context, Expr};
use crate::measure::Meter;
use crate::physical::model::{Access, Level, SelectPlan, Step, WindowPlan};
use rauk_kernel::Verdict;
use rauk_node::{ScanBatch, ScanCursor, ScanSpec, TableHandle, Transaction};
use rauk_types::{MysqlError, RowView};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

pub(super) struct Run<'a> {
    pub(super) plan: &'a SelectPlan,
    pub(super) txn: &'a mut Transaction,
    pub(super) context: &'a mut Context,
    pub(super) output: Output<'a>,
    /// One a step, for tables that are kept in memory.
    pub(super) buffers: SmallVec<[Option<Arc<Buffer>>; 4]>,
    /// Room for the key of a join.
    pub(super) key: Vec<u8>,
    /// Steps from here on need no waiting.
    ready: usize,
    /// Where those steps stand.
    pub(super) paused: Vec<Frame>,
    /// The batch for which they paused.
    pub(super) full: Option<usize>,
    /// Rows that they have looked at since the last turn.
    pub(super) looked: usize,
    /// Tables that are looked up by key for many rows at once.
    pub(super) batches: Vec<Batch<'a>>,
    /// The row that goes on needs a table that others look up in batches.
    pub(super) alone: bool,
    /// The rows of lateral tables, by step.
    laterals: FxHashMap<usize, Remembered>,
    pub(super) groups: Groups,
    /// Steps from here on read no table.
    tail: usize,
    rows: usize,
    limit_hint: Option<u64>,
    /// Queries may have to be run between rows, so every row is copied, and nothing is evaluated under the guard of a partition but `filters`.
    late: bool,
    /// The statement has other queries.
    others: bool,
    /// Of EXPLAIN ANALYZE.
    meter: Option<Box<Meter>>,
}

/// The groups of tables of outer, semi and anti joins.
pub(super) struct Groups {
    /// Those that found a match for the present outer row.
    pub matched: SmallVec<[bool; 4]>,
    /// A semi or anti join has its match: its loops end.
    pub leaving: bool,
}

/// A copy of a stored row; most are short.
type RowBytes = SmallVec<[u8; 128]>;

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
    let meter = context.measures.as_ref().map(|measures| Box::new(measures.meter(plan.steps.len())));
    // What is measured goes from step to step, each with its own time.
    let tail = match late || meter.is_some() {
        true => usize::MAX,
        false => plan.steps.iter().rposition(|s| matches!(s, Step::Scan(_))).map_or(0, |at| at + 1),
    };
    let limit_hint = match scans - tested_tables(plan) {
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
        key: Vec::new(),
        ready: tail,
        paused: Vec::new(),
        full: None,
        looked: 0,
        batches: Vec::new(),
        alone: false,
        laterals: FxHashMap::default(),
        groups: Groups { matched: smallvec![false; plan.outer_groups], leaving: false },
        tail,
        rows,
        limit_hint,
        late,
        others,
        meter,
    };
    if !plan.batches.is_empty() && run.may_batch() {
        run.batches = Batch::all(plan, run.output.demand(), run.context);
        run.find_ready();
    }
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
            Some(Step::Scan(level)) => {
                if let Some(meter) = &mut run.meter {
                    meter.enter(0);
                    meter.open(0);
                }
                // Boxed: what waits for it has no room for it.
                Box::pin(run.all(level, &root)).await?;
            }
            None if !run.late && run.meter.is_none() => run.output.push(&root, run.context)?,
            // Boxed, as all that is rare here: a read by key has no room for it.
            _ => Box::pin(run.advance(0, &root)).await?,
        }
    }
    let Run { txn, context, mut output, rows, meter, .. } = run;
    if others {
        context.subqueries.rows = rows;
    }
    if let Some(mut meter) = meter {
        let joined = meter.joined();
        output.finish(txn, context).await?;
        let (groups, arrived, delivered) = output.counts();
        let measured = meter.end(joined, groups, arrived, delivered);
        context.measures.as_mut().expect("they made the meter").add(plan, measured);
    } else {
        output.finish(txn, context).await?;
    }
    Ok(Ran { rows: output.found_rows(), refused: output.was_refused() })
}

/// How many tables only decide which rows of others stay.
fn tested_tables(plan: &SelectPlan) -> usize {
    let mut end = 0;
    let mut tables = 0;
    for (at, step) in plan.steps.iter().enumerate() {
        match step {
            Step::Test { end: of, .. } => end = end.max(*of),
            Step::Scan(_) if at < end => tables += 1,
            _ => {}
        }
    }
    tables
}

/// Runs the steps from `at` on for one joined row; the first of them reads a table, or begins an outer join.
/// Loops are polled one inside of the other, up to 61: each asks for stack.
fn step<'r, 'a: 'r>(run: &'r mut Run<'a>, at: usize, row: &'r Joined<'r>) -> Running<'r, ()> {
    Running::new(async move {
        let plan = run.plan;
        match &plan.steps[at] {
            Step::Enter { group, leave, tables } => {
                run.groups.matched[*group] = false;
                run.advance(at + 1, row).await?;
                run.back(at);
                if !run.groups.matched[*group] && !run.is_done() {
                    let nulls = row.with(usize::MAX, Part::Nulls(tables));
                    let Step::Leave { filters, .. } = &plan.steps[*leave] else {
                        unreachable!("a group ends with its Leave")
                    };
                    if run.passes(filters, &nulls).await? {
                        run.advance(leave + 1, &nulls).await?;
                    }
                }
                Ok(())
            }
            Step::Scan(level) => run.scan(at, level, row).await,
            Step::Leave { .. } | Step::Test { .. } | Step::Match { .. } => {
                unreachable!("other steps are taken by advance")
            }
        }
    })
}

/// What follows a table behind which no other is read: needs no other row and never waits.
fn tail(
    plan: &SelectPlan,
    from: usize,
    row: &Joined<'_>,
    groups: &mut Groups,
    output: &mut Output<'_>,
    context: &mut Context,
) -> Result<(), MysqlError> {
    for step in &plan.steps[from..] {
        match step {
            Step::Leave { group, filters } => {
                groups.matched[*group] = true;
                if !passes(filters, row, context)? {
                    return Ok(());
                }
            }
            Step::Match { group } => {
                groups.matched[*group] = true;
                groups.leaving = true;
                return Ok(());
            }
            _ => unreachable!("only ends of groups follow the last table"),
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

impl<'a> Run<'a> {
    /// Runs all steps, of which the first reads a table.
    async fn all(&mut self, level: &Level, root: &Joined<'_>) -> Result<(), MysqlError> {
        let result = self.scan(0, level, root).await;
        match self.batches.is_empty() {
            true => result,
            false => drain(self, 0, result).await,
        }
    }

    /// Whether rows may be gathered before a table is looked up for them.
    fn may_batch(&self) -> bool {
        let changes = self.context.locks_changed_tables && self.plan.changes_tables();
        let locks = changes || self.txn.locks_plain_reads();
        !self.late && self.meter.is_none() && !locks
    }

    /// Finds out which steps need no waiting.
    fn find_ready(&mut self) {
        // Neither a table that is read for each row nor one whose memory was too small is in memory.
        let in_memory = |at: usize| self.buffers[at].as_ref().is_some_and(|buffer| !buffer.too_large);
        let waits = |at: usize| match &self.plan.steps[at] {
            Step::Scan(_) => !in_memory(at) && !self.is_batched(at),
            _ => false,
        };
        if self.ready <= self.plan.steps.len() {
            self.ready = (0..self.ready).rev().find(|at| waits(*at)).map_or(0, |at| at + 1);
        }
    }

    /// Whether the steps from `at` on need no waiting for the row that goes on.
    fn is_ready(&self, at: usize) -> bool {
        at >= self.ready && !self.alone
    }

    /// Runs the steps from `at` on for one joined row.
    pub(super) async fn advance(&mut self, mut at: usize, row: &Joined<'_>) -> Result<(), MysqlError> {
        if self.is_ready(at) {
            return self.run_now(at, row).await;
        }
        let plan = self.plan;
        loop {
            self.reached(at);
            if let Some(batch) = self.gathering(at) {
                if self.batches[batch].is_full() {
                    run_batch(self, batch).await?;
                    if self.is_done() {
                        return Ok(());
                    }
                }
                return self.gather(batch, row);
            }
            match plan.steps.get(at) {
                None if self.late => return self.output.push_late(row, self.txn, self.context).await,
                None => return self.output.push(row, self.context),
                Some(Step::Leave { group, filters }) => {
                    self.groups.matched[*group] = true;
                    if !self.passes(filters, row).await? {
                        return Ok(());
                    }
                    at += 1;
                }
                Some(Step::Match { group }) => {
                    self.groups.matched[*group] = true;
                    self.groups.leaving = true;
                    return Ok(());
                }
                Some(Step::Test { group, anti, end }) => {
                    self.groups.matched[*group] = false;
                    self.reached(at + 1);
                    match &plan.steps[at + 1] {
                        Step::Scan(level) if level.ends_match => {
                            self.probe(at + 1, level, row).await?;
                            if let Some(meter) = &mut self.meter
                                && self.groups.matched[*group]
                            {
                                meter.matched(at + 1);
                            }
                        }
                        Step::Test { .. } => unreachable!("a semi join begins with a table"),
                        _ => step(self, at + 1, row).await?,
                    }
                    self.back(at);
                    self.groups.leaving = false;
                    if self.groups.matched[*group] == *anti {
                        return Ok(());
                    }
                    at = end + 1;
                }
                // Behind the last table nothing waits, so that its loop is no future of its own.
                Some(Step::Scan(level)) if at + 1 == self.tail && !self.output.streams() => {
                    return self.probe(at, level, row).await;
                }
                Some(Step::Enter { .. } | Step::Scan(_)) => return step(self, at, row).await,
            }
        }
    }

    /// Whether the loops that run are to end.
    pub(super) fn is_done(&self) -> bool {
        self.groups.leaving || self.output.is_done()
    }

    /// The rows of a table that is kept in memory; `None`: they are read from where they are.
    async fn buffer(&mut self, at: usize, level: &Level, row: &Joined<'_>) -> Result<Option<Arc<Buffer>>, MysqlError> {
        let source = &self.plan.sources[level.table];
        if let Some(lateral) = source.lateral() {
            let remembered = self.laterals.entry(at).or_insert_with(|| Remembered::new(self.context));
            return Box::pin(remembered.rows(lateral, row, self.txn, self.context)).await.map(Some);
        }
        if self.linked(at).is_some() {
            return Ok(self.buffers[at].clone());
        }
        if !level.buffered && !matches!(level.access, Access::Virtual { .. } | Access::Rows) {
            return Ok(None);
        }
        let buffer = match &self.buffers[at] {
            Some(buffer) => buffer.clone(),
            None => {
                let memory = self.output.memory(self.context);
                let all = level.filters.is_empty() && level.late_filters.is_empty() && self.plan.steps.len() == 1;
                let hint = self.limit_hint.filter(|_| all);
                // In a box, since it is large, is done once, and would be a part of every step.
                let buffer = Arc::new(Box::pin(build(level, source, self.txn, self.context, memory, hint)).await?);
                if let Some(meter) = &mut self.meter {
                    meter.kept(at, buffer.len());
                }
                self.buffers[at] = Some(buffer.clone());
                self.find_ready();
                buffer
            }
        };
        Ok((!buffer.too_large).then_some(buffer))
    }

    /// What to read of a stored table.
    async fn open(&mut self, at: usize, level: &Level, row: &Joined<'_>) -> Result<Opened, MysqlError> {
        let source = &self.plan.sources[level.table];
        let hint = self.limit_hint.filter(|_| at == 0);
        let opened = match self.others {
            true => with_answers(self.txn, self.context, |context| open(level, source, row, context, hint)).await?,
            false => open(level, source, row, self.context, hint)?,
        };
        let several = match &opened {
            Opened::Nothing => false,
            Opened::Keys { keys, .. } => keys.len() > 1,
            Opened::Scans(scans) => scans.len() > 1,
            Opened::Skip(_) | Opened::Merge(_) => true,
        };
        if several && lock_of(level, self.context).is_none() {
            self.snapshot().await?;
        }
        Ok(opened)
    }

    /// Loops over one table.
    async fn scan(&mut self, at: usize, level: &Level, row: &Joined<'_>) -> Result<(), MysqlError> {
        if let Some(windows) = self.plan.windows().filter(|_| level.hash.is_none()) {
            return Box::pin(self.loop_windows(at, level, windows, row)).await;
        }
        if level.ends_match {
            return self.probe(at, level, row).await;
        }
        if let Some(found) = self.looked_up(at) {
            return self.go_on(at, level, found, row).await;
        }
        if let Some(buffer) = self.buffer(at, level, row).await? {
            return match self.is_ready(at) {
                true => self.run_now(at, row).await,
                false => self.loop_buffer(at, level, &buffer, row).await,
            };
        }
        let plan = self.plan;
        let Some(table) = plan.sources[level.table].handle() else { unreachable!("virtual tables are buffered") };
        match self.open(at, level, row).await? {
            Opened::Nothing => {}
            Opened::Keys { unique, keys } => {
                for key in &keys {
                    self.lookup(at, level, table, unique, key, row).await?;
                    if self.is_done() {
                        break;
                    }
                    self.turn(1).await?;
                }
            }
            Opened::Scans(scans) => self.scans(at, level, table, scans, row).await?,
            Opened::Skip(skip) => Box::pin(self.skip(at, level, table, &skip, row)).await?,
            Opened::Merge(mut merge) => Box::pin(self.merge(at, level, table, &mut merge, row)).await?,
        }
        Ok(())
    }

    pub(super) async fn scans(
        &mut self,
        at: usize,
        level: &Level,
        table: &TableHandle,
        scans: SmallVec<[ScanSpec; 1]>,
        row: &Joined<'_>,
    ) -> Result<(), MysqlError> {
        let visit = at + 1 == self.tail && !self.output.streams();
        for spec in scans {
            if visit && !spec.ordered {
                self.visit_all(at, level, table, spec, row).await?;
            } else {
                self.loop_batches(at, level, table, spec, row).await?;
            }
            if self.is_done() {
                break;
            }
        }
        Ok(())
    }

    /// Loops over a table behind which no other is read: the last one of a result that stays in memory, or of a semi or
    /// anti join, which looks for a match.
    async fn probe(&mut self, at: usize, level: &Level, row: &Joined<'_>) -> Result<(), MysqlError> {
        self.turn(1).await?;
        let plan = self.plan;
        if let Some(found) = self.looked_up(at) {
            return self.go_on(at, level, found, row).await;
        }
        if let Some(buffer) = self.buffer(at, level, row).await? {
            if self.is_ready(at) {
                return self.run_now(at, row).await;
            }
            if let Some(others) = &level.keys_only {
                let key = &mut self.key;
                let mut has_key = |context: &mut Context| {
                    Ok(passes(others, row, context)? && buffer.has_key(level, row, context, key)?)
                };
                let found = match self.others {
                    true => with_answers(self.txn, self.context, has_key).await?,
                    false => has_key(self.context)?,
                };
                if found {
                    let Run { output, context, groups, .. } = &mut *self;
                    tail(plan, at + 1, row, groups, output, context)?;
                }
                return Ok(());
            }
            let mut candidates = self.candidates(at, level, &buffer, row).await?;
            let mut seen = 0;
            while let Some((_, part)) = candidates.next(&buffer) {
                let joined = row.with(level.table, part);
                if passes(&level.filters, &joined, self.context)? {
                    let Run { output, context, groups, .. } = &mut *self;
                    tail(plan, at + 1, &joined, groups, output, context)?;
                    if self.is_done() {
                        break;
                    }
                }
                seen += 1;
                if seen % 64 == 0 {
                    self.turn(64).await?;
                }
            }
            return Ok(());
        }
        let Some(table) = plan.sources[level.table].handle() else { unreachable!("virtual tables are buffered") };
        match self.open(at, level, row).await? {
            Opened::Nothing => {}
            Opened::Keys { unique, keys } => {
                for key in &keys {
                    self.visit_key(at, level, table, unique, key, row).await?;
                    if self.is_done() {
                        break;
                    }
                    self.turn(1).await?;
                }
            }
            Opened::Skip(skip) => Box::pin(self.skip(at, level, table, &skip, row)).await?,
            Opened::Merge(mut merge) => Box::pin(self.merge(at, level, table, &mut merge, row)).await?,
            Opened::Scans(scans) => {
                for spec in scans {
                    self.visit_all(at, level, table, spec, row).await?;
                    if self.is_done() {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// A row for which the row of this table has been looked up, and is a part of it.
    async fn go_on(&mut self, at: usize, level: &Level, found: bool, row: &Joined<'_>) -> Result<(), MysqlError> {
        if !found || !passes(&level.filters, row, self.context)? {
            return Ok(());
        }
        // Boxed: steps behind it wait, and come here again.
        Box::pin(self.advance(at + 1, row)).await
    }

    /// A row by its key, of a table behind which no other is read.
    async fn visit_key(
        &mut self,
        at: usize,
        level: &Level,
        table: &TableHandle,
        unique: Option<usize>,
        key: &[u8],
        row: &Joined<'_>,
    ) -> Result<(), MysqlError> {
        let lock = lock_of(level, self.context);
        let Run { plan, txn, context, output, groups, .. } = &mut *self;
        let meets = |view: &RowView<'_>, context: &mut Context| {
            passes(&level.filters, &row.with(level.table, Part::Stored(*view)), context)
        };
        let visit = |view: RowView<'_>, context: &mut Context| {
            tail(plan, at + 1, &row.with(level.table, Part::Stored(view)), groups, output, context)
        };
        get_if(txn, table, unique, key, lock, context, meets, visit).await
    }

    async fn lookup(
        &mut self,
        at: usize,
        level: &Level,
        table: &TableHandle,
        unique: Option<usize>,
        key: &[u8],
        row: &Joined<'_>,
    ) -> Result<(), MysqlError> {
        if at + 1 == self.tail {
            return self.visit_key(at, level, table, unique, key, row).await;
        }
        let examined = std::sync::atomic::AtomicU64::new(0);
        let lock = lock_of(level, self.context);
        let Run { txn, context, .. } = &mut *self;
        let meets = |view: &RowView<'_>, context: &mut Context| {
            examined.store(1, Relaxed);
            passes(&level.filters, &row.with(level.table, Part::Stored(*view)), context)
        };
        let visit = |view: RowView<'_>, _: &mut Context| {
            Ok(Some((view.layout(), RowBytes::from_slice(view.whole(&mut Vec::new())))))
        };
        let found = get_if(txn, table, unique, key, lock, context, meets, visit).await?;
        self.examined(at, examined.into_inner());
        if let Some((layout, bytes)) = found {
            let joined = row.with(level.table, Part::Stored(RowView::new(table.schema(), layout, &bytes)));
            if self.passes(&level.late_filters, &joined).await? {
                self.advance(at + 1, &joined).await?;
                self.back(at);
            }
        }
        Ok(())
    }

    /// Whether all conditions hold, those with subqueries included.
    pub(super) async fn passes(&mut self, filters: &[Expr], row: &Joined<'_>) -> Result<bool, MysqlError> {
        match self.others && !filters.is_empty() {
            true => with_answers(self.txn, self.context, |context| passes(filters, row, context)).await,
            false => passes(filters, row, self.context),
        }
    }

    /// What the nodes that lead partitions of a table are to do with its rows. `sums`: the rows are shown to nobody but the output.
    pub(super) fn work(
        &self,
        at: usize,
        level: &Level,
        table: &TableHandle,
        spec: &mut ScanSpec,
        row: &Joined<'_>,
        sums: bool,
    ) -> Option<Arc<Work>> {
        let alone = at == 0 && self.plan.steps.len() == 1 && level.late_filters.is_empty() && spec.lock.is_none();
        let sums = sums && alone && !self.late && !self.others && self.meter.is_none() && !self.plan.first_row_only;
        let wants = match (&self.plan.grouping, self.output.first_wanted()) {
            (Some(grouping), _) if sums => Wants::Groups(grouping),
            // What is read at SERIALIZABLE is locked.
            (None, Some(count)) if sums && !self.txn.locks_plain_reads() => Wants::First(&self.plan.order, count),
            _ => Wants::Rows,
        };
        let work = Work::new((level.table, table), &level.filters, wants, row, self.txn, self.context)?;
        spec.pushdown = Some(work.clone());
        Some(work)
    }

    /// A table behind which no other is read, of a result that stays in memory, or in a semi join: no row is copied.
    async fn visit_all(
        &mut self,
        at: usize,
        level: &Level,
        table: &TableHandle,
        mut spec: ScanSpec,
        row: &Joined<'_>,
    ) -> Result<(), MysqlError> {
        if self.takes_batches(at) {
            // Boxed: others have no room for it.
            return Box::pin(self.fold_batches(at, level, table, spec, row)).await;
        }
        let work = self.work(at, level, table, &mut spec, row, true);
        let alone = at == 0 && self.plan.steps.len() == 1;
        let plain = alone && !self.late && spec.lock.is_none() && !self.txn.locks_plain_reads();
        let wanted = if plain { self.output.first_wanted() } else { None };
        let mut top = wanted.and_then(|wanted| Top::new(self.plan, level, table.schema(), wanted));
        let Run { plan, txn, context, output, groups, .. } = &mut *self;
        let mut failed = None;
        let mut visit = |view: &RowView<'_>| {
            if let Some(work) = &work {
                work.before_row(context);
            }
            let joined = row.with(level.table, Part::Stored(*view));
            let result = match passes(&level.filters, &joined, context) {
                Ok(true) if top.as_mut().is_some_and(|top| top.is_beyond(view)) => Ok(false),
                Ok(true) => tail(plan, at + 1, &joined, groups, output, context).map(|()| true),
                other => other,
            };
            match result {
                Ok(true) if groups.leaving || output.is_done() => Verdict::KeepAndStop,
                Ok(true) => Verdict::Keep,
                Ok(false) => Verdict::Skip,
                Err(error) => {
                    failed = Some(error);
                    Verdict::KeepAndStop
                }
            }
        };
        ScanCursor::new(table, spec).for_each(txn, &mut visit).await?;
        if let Some(error) = failed {
            return Err(error);
        }
        if let Some(work) = work {
            work.end(self.is_done(), self.context);
            self.output.take_groups(&work)?;
        }
        Ok(())
    }

    async fn loop_batches(
        &mut self,
        at: usize,
        level: &Level,
        table: &TableHandle,
        mut spec: ScanSpec,
        row: &Joined<'_>,
    ) -> Result<(), MysqlError> {
        let mut rows = match spec.limit_hint {
            Some(hint) => (hint as usize).clamp(1, BATCH),
            None => BATCH,
        };
        // A row that a subquery drops gives its lock back, as far as the answer is there while the row is scanned.
        let late = &level.late_filters;
        let unlocks = level.lock.is_some() && self.others && !late.is_empty() && may_look_ahead(late);
        if unlocks {
            run_uncorrelated(late, self.txn, self.context).await?;
        }
        let work = self.work(at, level, table, &mut spec, row, false);
        let mut cursor = ScanCursor::new(table, spec);
        let mut batch = ScanBatch::default();
        loop {
            let mut failed = None;
            let mut examined = 0;
            let context = &mut *self.context;
            let mut filter = |view: &RowView<'_>| {
                if let Some(work) = &work {
                    work.before_row(context);
                }
                examined += 1;
                let joined = row.with(level.table, Part::Stored(*view));
                match passes(&level.filters, &joined, context) {
                    Ok(true) => !(unlocks && known_to_fail(late, &joined, context)),
                    Ok(false) => false,
                    Err(error) => {
                        // A kept row ends the batch soon.
                        failed.get_or_insert(error);
                        true
                    }
                }
            };
            cursor.next_batch(self.txn, rows, &mut filter, &mut batch).await?;
            self.examined(at, examined);
            if let Some(error) = failed {
                return Err(error);
            }
            if batch.is_empty() {
                if let Some(work) = work {
                    work.end(false, self.context);
                }
                return Ok(());
            }
            for i in 0..batch.len() {
                let view = batch.row(table, i);
                let joined = row.with(level.table, Part::Stored(view));
                if at + 1 == self.tail {
                    let Run { plan, context, output, groups, .. } = &mut *self;
                    tail(plan, at + 1, &joined, groups, output, context)?;
                } else if self.passes(&level.late_filters, &joined).await? {
                    self.advance(at + 1, &joined).await?;
                    self.back(at);
                }
                if self.is_done() {
                    if let Some(work) = work {
                        work.end(true, self.context);
                    }
                    return Ok(());
                }
                give_way(self.txn, self.context).await?;
            }
            self.turn(batch.len()).await?;
            rows = BATCH;
        }
    }

    /// The rows of a table in memory that may join `row`.
    async fn candidates(
        &mut self,
        at: usize,
        level: &Level,
        buffer: &Buffer,
        row: &Joined<'_>,
    ) -> Result<Candidates, MysqlError> {
        if let Some(first) = self.linked(at) {
            return Ok(Candidates::Linked(first));
        }
        let Run { txn, context, key, others, .. } = &mut *self;
        match others {
            true => with_answers(txn, context, |context| buffer.candidates(level, row, context, key)).await,
            false => buffer.candidates(level, row, context, key),
        }
    }

    async fn loop_buffer(
        &mut self,
        at: usize,
        level: &Level,
        buffer: &Buffer,
        row: &Joined<'_>,
    ) -> Result<(), MysqlError> {
        let mut candidates = self.candidates(at, level, buffer, row).await?;
        while let Some((_, part)) = candidates.next(buffer) {
            let joined = row.with(level.table, part);
            self.turn(1).await?;
            self.examined(at, 1);
            if !passes(&level.filters, &joined, self.context)? {
                continue;
            }
            if at + 1 == self.tail {
                let Run { plan, context, output, groups, .. } = &mut *self;
                tail(plan, at + 1, &joined, groups, output, context)?;
            } else if self.passes(&level.late_filters, &joined).await? {
                self.advance(at + 1, &joined).await?;
                self.back(at);
            }
            if self.is_done() {
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
            self.examined(at, 1);
            if !self.passes(&level.filters, &joined).await? || !self.passes(&level.late_filters, &joined).await? {
                continue;
            }
            if at + 1 == self.tail {
                let Run { plan, context, output, groups, .. } = &mut *self;
                tail(plan, at + 1, &joined, groups, output, context)?;
            } else {
                self.advance(at + 1, &joined).await?;
                self.back(at);
            }
            if self.is_done() {
                break;
            }
        }
        rows.close();
        Ok(())
    }

    /// Step `at` begins for a row that another has handed on; only EXPLAIN ANALYZE counts.
    #[inline]
    fn reached(&mut self, at: usize) {
        if let Some(meter) = &mut self.meter {
            let before = meter.enter(at);
            meter.passed(before);
            meter.open(at);
        }
    }

    /// Step `at` goes on.
    #[inline]
    pub(super) fn back(&mut self, at: usize) {
        if let Some(meter) = &mut self.meter {
            meter.enter(at);
        }
    }

    /// Counts rows that step `at` looked at, when that is measured.
    #[inline]
    pub(super) fn examined(&mut self, at: usize, rows: u64) {
        if let Some(meter) = &mut self.meter {
            meter.examined(at, rows);
        }
    }

    async fn snapshot(&mut self) -> Result<(), MysqlError> {
        take_snapshot(self.txn).await
    }

    /// Counts work, flushes what has gathered, and lets others run now and then.
    pub(super) async fn turn(&mut self, rows: usize) -> Result<(), MysqlError> {
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
