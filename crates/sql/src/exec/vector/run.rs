//! The loop over batches: rows are gathered under the guard of their partition, and computed on outside of it.
//!
//! Between two batches the statement looks whether it was killed, and gives others their turn, as the push form does between slices. Batches begin with 16 rows
//! and double. Where expressions run row by row, batches stay small, so that a KILL is heard soon.

use super::batch::{Batch, FIRST_ROWS, MOST_ROWS, Selection, Vector};
use super::fold::{GroupCache, add_all, add_grouped};
use super::program::{Filter, Mark, Program, Tail};
use crate::exec::group::Grouper;
use crate::exec::remote::Work;
use crate::exec::select::Run;
use crate::expr::context::Warning;
use crate::expr::{Context, Expr};
use crate::memory::Memory;
use crate::physical::model::{Level, VectorPlan};
use crate::physical::row::Joined;
use rauk_kernel::Verdict;
use rauk_node::{ScanCursor, ScanSpec, TableHandle};
use rauk_types::MysqlError;
use std::sync::Arc;

/// Rows of a batch whose expressions run row by row.
const WALKED_ROWS: usize = 256;
/// Rows between two looks at KILL there.
const LOOK_ROWS: usize = 64;
/// After so many batches that were given up all go row by row.
const MOST_FAILURES: usize = 4;

/// Warnings of another node that stand before a row.
type Early = Vec<(usize, Vec<Warning>, u64)>;

/// What goes on from batch to batch.
struct Folding<'p> {
    program: Program<'p>,
    filters: &'p [Expr],
    selection: Selection,
    cache: GroupCache,
    groups: Vec<u32>,
    /// Batches that were given up.
    failures: usize,
}

/// Room that counts in a statement's memory until it is dropped.
struct Counted {
    memory: Memory,
    bytes: usize,
}

impl Counted {
    fn set(&mut self, bytes: usize) -> Result<(), MysqlError> {
        if bytes > self.bytes {
            self.memory.take(bytes - self.bytes)?;
            self.bytes = bytes;
        }
        Ok(())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.memory.give(self.bytes);
    }
}

impl Run<'_> {
    /// Whether this execution of the block may take its table's rows in batches.
    pub(in crate::exec) fn takes_batches(&self, at: usize) -> bool {
        at == 0 && self.plan.vector.is_some() && !self.txn.locks_plain_reads()
    }

    /// The rows of the block's only table, grouped batch by batch.
    pub(in crate::exec) async fn fold_batches(
        &mut self,
        at: usize,
        level: &Level,
        table: &TableHandle,
        mut spec: ScanSpec,
        row: &Joined<'_>,
    ) -> Result<(), MysqlError> {
        let plan = self.plan;
        let (Some(VectorPlan { columns }), Some(grouping)) = (plan.vector.as_deref(), &plan.grouping) else {
            unreachable!("the plan has chosen batches for its groups")
        };
        let work = self.work(at, level, table, &mut spec, row, true);
        let mut batch = Batch::new(table, level.table, columns);
        let program = Program::new(&batch, &level.filters, grouping, self.context);
        let most = if program.walks() { WALKED_ROWS } else { MOST_ROWS };
        let mut folding = Folding {
            program,
            filters: &level.filters,
            selection: Selection::default(),
            cache: GroupCache::new(),
            groups: Vec::new(),
            failures: 0,
        };
        let mut counted = Counted { memory: self.output.memory(self.context), bytes: 0 };
        let mut cursor = ScanCursor::new(table, spec);
        let mut rows = FIRST_ROWS;
        loop {
            batch.clear(rows);
            let mut early = Early::new();
            let (context, gathered) = (&mut *self.context, &mut batch);
            let mut visit = |view: &rauk_types::RowView<'_>| {
                if let Some(work) = &work {
                    note_early(work, gathered.len(), &mut early, context);
                }
                match gathered.push(view) || gathered.len() >= rows {
                    true => Verdict::KeepAndStop,
                    false => Verdict::Keep,
                }
            };
            let more = cursor.visit_next(self.txn, rows, &mut visit).await?;
            counted.set(batch.room() + folding.cache.room())?;
            let grouper = self.output.grouper().expect("the plan groups");
            folding.take(&batch, early, grouper, self.context)?;
            if !more {
                break;
            }
            self.turn(batch.len()).await?;
            rows = (rows * 2).min(most);
        }
        if let Some(work) = work {
            work.end(false, self.context);
            self.output.take_groups(&work)?;
        }
        Ok(())
    }
}

/// Keeps the warnings that another node has sent with rows before this one until the row's turn has come.
fn note_early(work: &Arc<Work>, row: usize, early: &mut Early, context: &mut Context) {
    let (length, count) = (context.warnings.len(), context.warning_count);
    work.before_row(context);
    if context.warning_count != count {
        early.push((row, context.warnings.split_off(length), context.warning_count - count));
        context.warning_count = count;
    }
}

impl Folding<'_> {
    /// Takes a batch into the groups.
    fn take(
        &mut self,
        batch: &Batch<'_>,
        early: Early,
        grouper: &mut Grouper<'_>,
        context: &mut Context,
    ) -> Result<(), MysqlError> {
        if batch.len() == 0 {
            return Ok(());
        }
        if early.is_empty() && self.failures < MOST_FAILURES {
            let mark = Mark::of(context);
            if self.fold(batch, &mark, grouper, context)? {
                return Ok(());
            }
            mark.go_back(context);
            self.failures += 1;
        }
        self.walk(batch, early, grouper, context)
    }

    /// By kernels. `false`: one of them has given up, and no group was touched.
    fn fold(
        &mut self,
        batch: &Batch<'_>,
        mark: &Mark,
        grouper: &mut Grouper<'_>,
        context: &mut Context,
    ) -> Result<bool, MysqlError> {
        let zone = context.time_zone.clone();
        self.selection.all(batch.len());
        for filter in &self.program.filters {
            match filter {
                Filter::Kernel(test) => test.keep(batch, true, &mut self.selection),
                Filter::Rows(filter) => {
                    let mut kept = 0;
                    for at in 0..self.selection.rows.len() {
                        if at % LOOK_ROWS == LOOK_ROWS - 1 {
                            context.budget.memory.look()?;
                        }
                        let row = self.selection.rows[at];
                        let Ok(passes) = filter.eval_bool(&batch.row(row as usize, &zone), context) else {
                            return Ok(false);
                        };
                        self.selection.rows[kept] = row;
                        kept += usize::from(passes);
                    }
                    self.selection.rows.truncate(kept);
                }
            }
            if mark.is_passed(context) {
                return Ok(false);
            }
            if self.selection.rows.is_empty() {
                return Ok(true);
            }
        }
        let Tail::Vectors { keys, folds } = &self.program.tail else {
            for (number, &row) in self.selection.rows.iter().enumerate() {
                if number % LOOK_ROWS == LOOK_ROWS - 1 {
                    context.budget.memory.look()?;
                }
                grouper.push(&batch.row(row as usize, &zone), context)?;
            }
            return Ok(true);
        };
        let Some(vectors) = self.program.vectors(batch, &self.selection) else { return Ok(false) };
        let aggregates = grouper.aggregates();
        if keys.is_empty() {
            let first = self.selection.rows[0] as usize;
            grouper.group_of(&batch.row(first, &zone), context)?;
            add_all(folds, aggregates, &vectors, self.selection.rows.len(), grouper)?;
            return Ok(true);
        }
        let keys: Vec<&Vector> = keys.iter().map(|&key| &*vectors[key]).collect();
        self.cache.find(&keys, (batch, &self.selection, &zone), grouper, context, &mut self.groups)?;
        add_grouped(folds, aggregates, &vectors, &self.groups, grouper)?;
        Ok(true)
    }

    /// Row by row, in the order of the push form.
    fn walk(
        &mut self,
        batch: &Batch<'_>,
        early: Early,
        grouper: &mut Grouper<'_>,
        context: &mut Context,
    ) -> Result<(), MysqlError> {
        let zone = context.time_zone.clone();
        let mut early = early.into_iter().peekable();
        for number in 0..batch.len() {
            if number % LOOK_ROWS == LOOK_ROWS - 1 {
                context.budget.memory.look()?;
            }
            if let Some((_, warnings, count)) = early.next_if(|(row, ..)| *row == number) {
                let more = count - warnings.len() as u64;
                warnings.into_iter().for_each(|one| context.push_warning(one.level, one.code, one.message));
                context.warning_count += more;
            }
            let row = batch.row(number, &zone);
            let mut passes = true;
            for filter in self.filters {
                passes = passes && filter.eval_bool(&row, context)?;
            }
            if passes {
                grouper.push(&row, context)?;
            }
        }
        Ok(())
    }
}
