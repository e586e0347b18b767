//! Rows of an INSERT or LOAD DATA that wait to be inserted together.
//!
//! A statement that brings many rows gathers those that are ready, and gives them to the node in one call, which takes
//! far less than a call for each. What the node leaves (a key that is there, a partition that is busy) is written row
//! by row, as all rows of other statements are, in the order of the rows.
//!
//! What the client sees is as if each row had been written when it was ready: warnings of rows stand in the order of
//! the rows, and before an error of a row those before it are written, whose errors go first. Where a row's outcome
//! decides about a later one (an AUTO_INCREMENT number that is given back, ON DUPLICATE KEY UPDATE, RETURNING), nothing
//! is gathered.

use super::insert::{Insert, Number};
use crate::memory::heap_length;
use crate::physical::model::{InsertPlan, OnDuplicate};
use rauk_node::Transaction;
use rauk_types::{IndexKind, MysqlError, Value};

/// Bytes of their values from which on no more are.
const BYTES: usize = 128 << 10;

#[derive(Default)]
pub(super) struct Gathered {
    rows: Vec<Vec<Value>>,
    numbers: Vec<Number>,
    bytes: usize,
    /// Warnings of the statement up to the last row here.
    warnings: usize,
    /// Of the last rows none could be written together: no more are gathered.
    useless: bool,
}

/// Whether rows of the statement may be gathered. `rows`: how many it has, if that is known.
pub(super) fn may_gather(plan: &InsertPlan, rows: Option<u64>, txn: &Transaction) -> bool {
    let several = rows.is_none_or(|rows| rows > 1);
    let numbered = plan.table.schema().auto_increment.is_some();
    // A row that has its place may have a unique key that an earlier one without would have taken first.
    let has_unique = || plan.table.schema().indexes.iter().any(|index| index.kind == IndexKind::Unique);
    let independent = match plan.on_duplicate {
        OnDuplicate::Error => !plan.ignore || !numbered && !has_unique(),
        OnDuplicate::Skip | OnDuplicate::Replace => !numbered && !has_unique(),
        OnDuplicate::Update => false,
    };
    several && independent && plan.returning.is_empty() && txn.takes_many(&plan.table)
}

impl Insert<'_> {
    /// Takes a row that is ready, and writes what has gathered when that is enough.
    pub(super) async fn gather(&mut self, values: Vec<Value>, number: Number) -> Result<(), MysqlError> {
        if self.context.warnings.len() != self.gathered.warnings {
            // Its warnings stand behind those that the rows before it may still bring.
            self.write_gathered().await?;
        }
        // Asked when no row waits: a later row must not pass one that does.
        if self.gathered.useless {
            return self.write(values, number, vec![]).await;
        }
        let gathered = &mut self.gathered;
        gathered.bytes += values.iter().map(|value| size_of::<Value>() + heap_length(value)).sum::<usize>();
        gathered.rows.push(values);
        gathered.numbers.push(number);
        match gathered.rows.len() >= self.txn.rows_together() || gathered.bytes >= BYTES {
            true => self.write_gathered().await,
            false => Ok(()),
        }
    }

    /// Writes the rows that have gathered.
    pub(super) async fn write_gathered(&mut self) -> Result<(), MysqlError> {
        let Gathered { rows, numbers, warnings, useless, .. } = std::mem::take(&mut self.gathered);
        self.gathered.useless = useless;
        if !rows.is_empty() {
            let later = self.context.warnings.split_off(warnings);
            let written = self.write_rows(rows, numbers).await;
            let room = self.context.max_error_count.saturating_sub(self.context.warnings.len());
            self.context.warnings.extend(later.into_iter().take(room));
            written?;
        }
        self.gathered.warnings = self.context.warnings.len();
        Ok(())
    }

    async fn write_rows(&mut self, mut rows: Vec<Vec<Value>>, numbers: Vec<Number>) -> Result<(), MysqlError> {
        let mut done = vec![false; rows.len()];
        // Boxed: other statements do not carry its state.
        Box::pin(self.txn.insert_many(&self.plan.table, &mut rows, &mut done)).await?;
        // Rows of a table whose parents are elsewhere are gathered for these.
        self.gathered.useless = !done.contains(&true) && !self.txn.has_parents(&self.plan.table);
        for ((values, number), done) in rows.into_iter().zip(numbers).zip(done) {
            match done {
                true => self.inserted(number).await?,
                false => self.write(values, number, vec![]).await?,
            }
        }
        Ok(())
    }
}
