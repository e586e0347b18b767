//! Rows of an UPDATE or DELETE that wait to be written together.
//!
//! In a cluster a row that another node leads costs a message by itself; so rows that are locked and computed wait here,
//! and go to their partitions together. They are locked, and the statement has passed them, so nothing that comes before
//! they are written reads them.
//!
//! *Rows that keep their keys*, and rows that are deleted and have no children, cannot fail ([`Transaction::change_many`]). *Rows whose keys
//! change*, or whose parents have to be there, are written all or none ([`Transaction::change_all`]): those that want a
//! key of each other are written by themselves, each in its turn, and where the rest cannot all be written each half is
//! tried, down to [`FEW`] rows, as long as enough of these tries succeed.
//!
//! What the client sees is as if each row had been written when it was computed: warnings of rows stand in the order of
//! the rows, and before an error of a row those before it are written, whose errors go first ([`Updates::end`]).
//!
//! Rows that are deleted and may have children go all or none, too. An update of what children refer to is written by
//! itself, behind those that wait.

use super::change::changed_number;
use super::insert::duplicate;
use super::returning::return_row;
use super::violation::unless_refused;
use crate::expr::{Context, Expr};
use crate::memory::heap_length;
use rauk_node::transaction::UpdateOutcome;
use rauk_node::{ChangedRow, TableHandle, Transaction};
use rauk_types::result::ResultSink;
use rauk_types::{KeyDef, MysqlError, Value};

/// Bytes of their values from which on no more wait.
const BYTES: usize = 128 << 10;
/// So few rows are written one by one where not all can be written together.
const FEW: usize = 8;

/// Rows that wait, all updated or all deleted.
struct Together {
    rows: Vec<ChangedRow>,
    /// What each counts for among the rows that are changed.
    weights: Vec<u64>,
    bytes: usize,
    most: usize,
    /// Keys of a row change, or its parents.
    moves: bool,
    /// Warnings of the statement up to the last row here.
    warnings: usize,
    /// Of the last rows whose keys change too few could be written together: no more of these wait.
    useless: bool,
}

impl Together {
    /// `None`: rows of this table are written one by one.
    fn of(table: &TableHandle, deletes: bool, txn: &Transaction) -> Option<Box<Together>> {
        let most = txn.changes_together(table, deletes);
        let new = || Together {
            rows: Vec::new(),
            weights: Vec::new(),
            bytes: 0,
            most,
            moves: false,
            warnings: 0,
            useless: false,
        };
        (most > 1).then(|| Box::new(new()))
    }

    fn push(&mut self, old: Vec<Value>, new: Option<Vec<Value>>, weight: u64) {
        let values = old.iter().chain(new.iter().flatten());
        self.bytes += values.map(|value| size_of::<Value>() + heap_length(value)).sum::<usize>();
        self.rows.push(ChangedRow { old: Some(old), new });
        self.weights.push(weight);
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= self.most || self.bytes >= BYTES
    }

    fn take(&mut self) -> (Vec<ChangedRow>, Vec<u64>) {
        self.bytes = 0;
        self.moves = false;
        (std::mem::take(&mut self.rows), std::mem::take(&mut self.weights))
    }
}

/// Writes the rows of an UPDATE to one table.
pub(super) struct Updates<'a> {
    table: &'a TableHandle,
    key_defs: &'a [KeyDef],
    ignore: bool,
    together: Option<Box<Together>>,
    /// How many rows have been changed.
    pub changed: u64,
    /// The highest AUTO_INCREMENT number that they got.
    pub highest: Option<u64>,
}

impl<'a> Updates<'a> {
    pub fn new(table: &'a TableHandle, key_defs: &'a [KeyDef], ignore: bool, txn: &Transaction) -> Updates<'a> {
        Updates { table, key_defs, ignore, together: Together::of(table, false, txn), changed: 0, highest: None }
    }

    /// Writes a changed row, or lets it wait for others. `weight`: what it counts for.
    pub async fn write(
        &mut self,
        old: Vec<Value>,
        new: Vec<Value>,
        weight: u64,
        txn: &mut Transaction,
        context: &mut Context,
    ) -> Result<(), MysqlError> {
        let (mut now, mut keeps) = (true, true);
        if let Some(together) = &self.together {
            keeps = txn.keeps_keys(self.table, &old, &new);
            now = !keeps && (together.useless || !txn.stands_apart(self.table, &old, &new));
            // Its warnings stand behind those that the rows before it may still bring.
            let warned = (!keeps || together.moves) && context.warnings.len() != together.warnings;
            if now || warned {
                Box::pin(self.write_waiting(txn, context)).await?;
            }
        }
        match &mut self.together {
            // Asked when no row waits: a later row must not pass one that does.
            Some(together) if !now && (keeps || !together.useless) => {
                together.moves |= !keeps;
                together.push(old, Some(new), weight);
                if together.is_full() {
                    Box::pin(self.write_waiting(txn, context)).await?;
                }
                Ok(())
            }
            _ => self.write_now(&old, &new, weight, txn, context).await,
        }
    }

    /// The last row has come, or the one that has failed: errors of those before it go first.
    pub async fn end(
        &mut self,
        so_far: Result<(), MysqlError>,
        txn: &mut Transaction,
        context: &mut Context,
    ) -> Result<(), MysqlError> {
        match &self.together {
            // Those that cannot fail would be undone with the statement.
            Some(together) if so_far.is_ok() || together.moves => {
                Box::pin(self.write_waiting(txn, context)).await.and(so_far)
            }
            _ => so_far,
        }
    }

    /// Writes the rows that wait.
    async fn write_waiting(&mut self, txn: &mut Transaction, context: &mut Context) -> Result<(), MysqlError> {
        let Some(together) = &mut self.together else { return Ok(()) };
        let moves = together.moves;
        let warnings = together.warnings.min(context.warnings.len());
        let (rows, weights) = together.take();
        if moves {
            let later = context.warnings.split_off(warnings);
            let written = Box::pin(self.write_pieces(rows, weights, txn, context)).await;
            let room = context.max_error_count.saturating_sub(context.warnings.len());
            context.warnings.extend(later.into_iter().take(room));
            written?;
        } else if rows.len() == 1 {
            // Written as any other, its write may go with the commit.
            self.write_each(rows, weights, txn, context).await?;
        } else if !rows.is_empty() {
            let mut done = vec![false; rows.len()];
            txn.change_many(self.table, &rows, &mut done).await?;
            for ((row, weight), _) in rows.iter().zip(weights).zip(done).filter(|(_, done)| *done) {
                self.count(row, weight);
            }
        }
        if let Some(together) = &mut self.together {
            together.warnings = context.warnings.len();
        }
        Ok(())
    }

    /// Writes rows whose keys change.
    async fn write_pieces(
        &mut self,
        rows: Vec<ChangedRow>,
        weights: Vec<u64>,
        txn: &mut Transaction,
        context: &mut Context,
    ) -> Result<(), MysqlError> {
        let (all, mut together) = (rows.len(), 0);
        let meets = Transaction::meet_each_other(self.table, &rows);
        let mut pieces: Vec<(Vec<ChangedRow>, Vec<u64>)> = Vec::new();
        let mut before = true;
        for ((row, weight), meets) in rows.into_iter().zip(weights).zip(meets) {
            match pieces.last_mut() {
                Some((rows, weights)) if !meets && !before => {
                    rows.push(row);
                    weights.push(weight);
                }
                _ => pieces.push((vec![row], vec![weight])),
            }
            before = meets;
        }
        pieces.reverse();
        let (mut succeeded, mut failed) = (0, 0);
        while let Some((mut rows, mut weights)) = pieces.pop() {
            // A single row in the way of a thousand makes eight tries fail before the first succeeds.
            let is_tried = rows.len() > 1 && failed <= 8 + 2 * succeeded;
            if is_tried && txn.change_all(self.table, &rows).await? {
                succeeded += 1;
                together += rows.len();
                rows.iter().zip(weights).for_each(|(row, weight)| self.count(row, weight));
                continue;
            }
            failed += usize::from(is_tried);
            if is_tried && rows.len() > FEW {
                let middle = rows.len() / 2;
                // The first half comes first.
                pieces.push((rows.split_off(middle), weights.split_off(middle)));
                pieces.push((rows, weights));
            } else {
                self.write_each(rows, weights, txn, context).await?;
            }
        }
        if let Some(waiting) = &mut self.together {
            waiting.useless = all > 1 && 2 * together < all;
        }
        Ok(())
    }

    async fn write_each(
        &mut self,
        rows: Vec<ChangedRow>,
        weights: Vec<u64>,
        txn: &mut Transaction,
        context: &mut Context,
    ) -> Result<(), MysqlError> {
        for (row, weight) in rows.into_iter().zip(weights) {
            let (Some(old), Some(new)) = (row.old, row.new) else { unreachable!("it is updated") };
            self.write_now(&old, &new, weight, txn, context).await?;
        }
        Ok(())
    }

    /// Writes a row. Nothing is changed if it is gone, or with IGNORE has the key of another one or is refused by a
    /// foreign key.
    async fn write_now(
        &mut self,
        old: &[Value],
        new: &[Value],
        weight: u64,
        txn: &mut Transaction,
        context: &mut Context,
    ) -> Result<(), MysqlError> {
        let written = txn.update(self.table, old, new).await;
        match unless_refused(written, self.ignore, context)? {
            Some(UpdateOutcome::Updated) => {
                self.changed += weight;
                self.highest = self.highest.max(changed_number(self.table.schema(), old, new));
            }
            Some(UpdateOutcome::Duplicate { index, .. }) => {
                let error = duplicate(self.table.schema(), self.key_defs, index, new, context);
                if !self.ignore {
                    return Err(error);
                }
                context.warn(error.code, error.message);
            }
            Some(UpdateOutcome::Missing) | None => {}
        }
        Ok(())
    }

    fn count(&mut self, row: &ChangedRow, weight: u64) {
        let (Some(old), Some(new)) = (&row.old, &row.new) else { unreachable!("it is updated") };
        self.changed += weight;
        self.highest = self.highest.max(changed_number(self.table.schema(), old, new));
    }
}

/// Writes the rows of a DELETE from one table, and returns them.
pub(super) struct Deletes<'a> {
    table: &'a TableHandle,
    ignore: bool,
    returning: &'a [Expr],
    together: Option<Box<Together>>,
    /// How many rows have been deleted.
    pub deleted: u64,
    /// How many were not there, or with IGNORE are refused by a foreign key.
    pub missing: u64,
}

impl<'a> Deletes<'a> {
    pub fn new(table: &'a TableHandle, ignore: bool, returning: &'a [Expr], txn: &Transaction) -> Deletes<'a> {
        Deletes { table, ignore, returning, together: Together::of(table, true, txn), deleted: 0, missing: 0 }
    }

    /// Deletes a row, or lets it wait for others.
    pub async fn write(
        &mut self,
        row: Vec<Value>,
        txn: &mut Transaction,
        context: &mut Context,
        sink: &mut dyn ResultSink,
    ) -> Result<(), MysqlError> {
        let Some(together) = &mut self.together else { return self.write_now(&row, txn, context, sink).await };
        together.push(row, None, 1);
        match together.is_full() {
            true => self.write_waiting(txn, context, sink).await,
            false => Ok(()),
        }
    }

    /// Deletes the rows that wait.
    pub async fn write_waiting(
        &mut self,
        txn: &mut Transaction,
        context: &mut Context,
        sink: &mut dyn ResultSink,
    ) -> Result<(), MysqlError> {
        let Some(together) = self.together.as_mut().filter(|together| !together.rows.is_empty()) else { return Ok(()) };
        let (rows, _) = together.take();
        // Boxed: a statement that changes one row does not carry its state.
        Box::pin(self.write_all(rows, txn, context, sink)).await
    }

    /// The last row has come, or what has failed: errors of rows before it go first.
    pub async fn end(
        &mut self,
        so_far: Result<(), MysqlError>,
        txn: &mut Transaction,
        context: &mut Context,
        sink: &mut dyn ResultSink,
    ) -> Result<(), MysqlError> {
        // Without children they cannot fail, and would be undone with the statement.
        match so_far.is_ok() || txn.is_parent(self.table) {
            true => self.write_waiting(txn, context, sink).await.and(so_far),
            false => so_far,
        }
    }

    async fn write_all(
        &mut self,
        rows: Vec<ChangedRow>,
        txn: &mut Transaction,
        context: &mut Context,
        sink: &mut dyn ResultSink,
    ) -> Result<(), MysqlError> {
        if txn.is_parent(self.table) {
            return self.write_halves(rows, txn, context, sink).await;
        }
        if let [ChangedRow { old: Some(only), .. }] = &rows[..] {
            // Written as any other, its write may go with the commit.
            return self.write_now(only, txn, context, sink).await;
        }
        let mut done = vec![false; rows.len()];
        txn.change_many(self.table, &rows, &mut done).await?;
        for (row, done) in rows.iter().zip(done) {
            match (done, &row.old) {
                (true, Some(row)) => self.gone(row, txn, context, sink).await?,
                _ => self.missing += 1,
            }
        }
        Ok(())
    }

    /// Deletes rows that may have children: all together, or each half so.
    async fn write_halves(
        &mut self,
        rows: Vec<ChangedRow>,
        txn: &mut Transaction,
        context: &mut Context,
        sink: &mut dyn ResultSink,
    ) -> Result<(), MysqlError> {
        let (all, mut together) = (rows.len(), 0);
        let (mut succeeded, mut failed) = (0, 0);
        let mut pieces = vec![rows];
        while let Some(mut rows) = pieces.pop() {
            let is_tried = rows.len() > 1 && failed <= 8 + 2 * succeeded;
            let done = is_tried && txn.change_all(self.table, &rows).await?;
            if is_tried && !done && rows.len() > FEW {
                failed += 1;
                let middle = rows.len() / 2;
                // The first half comes first.
                pieces.push(rows.split_off(middle));
                pieces.push(rows);
                continue;
            }
            (succeeded, failed) = (succeeded + usize::from(done), failed + usize::from(is_tried && !done));
            together += if done { rows.len() } else { 0 };
            for row in rows.iter().flat_map(|row| &row.old) {
                match done {
                    true => self.gone(row, txn, context, sink).await?,
                    false => self.write_now(row, txn, context, sink).await?,
                }
            }
        }
        if all > 1 && 2 * together < all {
            // Most have children: the next ones, too.
            self.together = None;
        }
        Ok(())
    }

    async fn write_now(
        &mut self,
        row: &[Value],
        txn: &mut Transaction,
        context: &mut Context,
        sink: &mut dyn ResultSink,
    ) -> Result<(), MysqlError> {
        let written = txn.delete(self.table, row).await;
        match unless_refused(written, self.ignore, context)? {
            Some(true) => self.gone(row, txn, context, sink).await,
            _ => {
                self.missing += 1;
                Ok(())
            }
        }
    }

    async fn gone(
        &mut self,
        row: &[Value],
        txn: &mut Transaction,
        context: &mut Context,
        sink: &mut dyn ResultSink,
    ) -> Result<(), MysqlError> {
        self.deleted += 1;
        match self.returning {
            [] => Ok(()),
            returning => return_row(returning, row, txn, context, sink).await,
        }
    }
}
