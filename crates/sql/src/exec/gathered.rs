//! Rows of an INSERT or LOAD DATA that wait to be inserted together.
//!
//! A statement that brings many rows gathers those that are ready, and gives them to the node in one call, which takes
//! far less than a call for each. What the node leaves (a key that is there, a partition that is busy) is written row
//! by row, as all rows of other statements are, in the order of the rows.
//!
//! What the client sees is as if each row had been written when it was ready: warnings of rows stand in the order of
//! the rows, and before an error of a row those before it are written, whose errors go first. Where a row's outcome
//! decides about a later one, it is written by itself: a row that may give its AUTO_INCREMENT number back, unless the
//! numbers of those behind it can still be changed ([`super::over`]). With RETURNING nothing is gathered.
//!
//! *Rows that may be left out* (IGNORE, REPLACE) of a table with unique keys are written all or none: a row that has its
//! place may have a unique key that an earlier one would have taken, which has to be written by itself. Where they
//! cannot all be written, each half is tried, down to [`FEW`] rows, as long as enough of these tries succeed.
//!
//! In a cluster rows that may meet others (also those of ON DUPLICATE KEY UPDATE) are decided about together instead
//! ([`super::over`]).

use super::insert::{Insert, Number};
use super::over::{goes_over, may_go_over};
use crate::memory::heap_length;
use crate::physical::model::{Fill, InsertPlan, OnDuplicate};
use rauk_node::Transaction;
use rauk_types::{IndexSchema, MysqlError, Value};

/// Bytes of their values from which on no more are. Of a partitioned table the rows are divided among its partitions.
const BYTES: usize = 128 << 10;
const BYTES_OF_PARTITIONS: usize = 2 << 20;
/// So few rows are written one by one where not all can be written together.
const FEW: usize = 8;

#[derive(Default)]
pub(super) struct Gathered {
    rows: Vec<Vec<Value>>,
    numbers: Vec<Number>,
    /// Of ON DUPLICATE KEY UPDATE.
    beside: Vec<Beside>,
    bytes: usize,
    /// Warnings of the statement up to the last row here.
    warnings: usize,
    /// Of the last rows too few could be written together: no more are gathered.
    pub useless: bool,
    /// The last rows have met others.
    pub meets: bool,
}

/// What an update of the row in the way reads besides.
pub(super) struct Beside {
    /// The number of the row in the statement.
    pub number: u64,
    pub inputs: Vec<Value>,
}

/// Whether rows of the statement may be gathered. `rows`: how many it has, if that is known.
pub(super) fn may_gather(plan: &InsertPlan, rows: Option<u64>, txn: &Transaction) -> bool {
    let several = rows.is_none_or(|rows| rows > 1);
    let independent = plan.on_duplicate != OnDuplicate::Update || may_go_over(plan, txn);
    several && independent && plan.returning.is_empty() && txn.takes_many(&plan.table)
}

/// Whether a row may be left out, or take the place of others, without an end of the statement.
fn leaves_out(plan: &InsertPlan) -> bool {
    plan.ignore || plan.on_duplicate != OnDuplicate::Error
}

fn is_generated(number: Number) -> bool {
    matches!(number, Number::Generated(_))
}

/// Whether a row that is ready can get another AUTO_INCREMENT number: nothing has been computed from it.
fn may_renumber(plan: &InsertPlan) -> bool {
    let computes = plan.fill.iter().any(|fill| matches!(fill, Fill::Computed(_)));
    plan.rules.is_none() && plan.check.is_none() && !computes
}

/// Whether gathered rows are written all or none.
fn is_whole(plan: &InsertPlan) -> bool {
    leaves_out(plan) && plan.table.schema().indexes.iter().any(IndexSchema::is_guarded)
}

impl Insert<'_> {
    /// Takes a row that is ready, and writes what has gathered when that is enough.
    pub(super) async fn gather(
        &mut self,
        mut values: Vec<Value>,
        mut number: Number,
        inputs: Vec<Value>,
    ) -> Result<(), MysqlError> {
        let may_return = leaves_out(self.plan) && is_generated(number);
        let renumbers = may_return && may_renumber(self.plan) && goes_over(self.plan, self.txn);
        // The next row may get its number.
        let decides = may_return && !renumbers;
        let mixed = self.gathered.numbers.last().is_some_and(|last| is_generated(*last) != is_generated(number));
        // Its warnings stand behind those that the rows before it may still bring.
        if self.context.warnings.len() != self.gathered.warnings || decides || leaves_out(self.plan) && mixed {
            if renumbers {
                self.give_back(number);
            }
            self.write_gathered().await?;
            if renumbers {
                // Those before it may have given theirs back.
                number = self.take_number(&mut values)?;
            }
        }
        // Asked when no row waits: a later row must not pass one that does.
        if self.gathered.useless || decides {
            return self.write(values, number, inputs).await;
        }
        let gathered = &mut self.gathered;
        if self.plan.on_duplicate == OnDuplicate::Update {
            gathered.beside.push(Beside { number: self.number, inputs });
        }
        gathered.bytes += values.iter().map(|value| size_of::<Value>() + heap_length(value)).sum::<usize>();
        gathered.rows.push(values);
        gathered.numbers.push(number);
        let bytes = if self.plan.table.parts().is_some() { BYTES_OF_PARTITIONS } else { BYTES };
        match gathered.rows.len() >= self.txn.inserts_together(&self.plan.table) || gathered.bytes >= bytes {
            true => self.write_gathered().await,
            false => Ok(()),
        }
    }

    /// Whether rows that have gathered may give their AUTO_INCREMENT numbers back.
    pub(super) fn may_give_back(&self) -> bool {
        leaves_out(self.plan) && self.gathered.numbers.last().is_some_and(|number| is_generated(*number))
    }

    /// Writes the rows that have gathered.
    pub(super) async fn write_gathered(&mut self) -> Result<(), MysqlError> {
        let Gathered { rows, numbers, beside, warnings, useless, meets, .. } = std::mem::take(&mut self.gathered);
        (self.gathered.useless, self.gathered.meets) = (useless, meets);
        if !rows.is_empty() {
            let later = self.context.warnings.split_off(warnings);
            let written = match self.plan.on_duplicate == OnDuplicate::Update || goes_over(self.plan, self.txn) {
                // Boxed: other statements do not carry its state.
                true => Box::pin(self.write_over(rows, numbers, beside)).await,
                false => self.write_rows(rows, numbers).await,
            };
            let room = self.context.max_error_count.saturating_sub(self.context.warnings.len());
            self.context.warnings.extend(later.into_iter().take(room));
            written?;
        }
        self.gathered.warnings = self.context.warnings.len();
        Ok(())
    }

    async fn write_rows(&mut self, mut rows: Vec<Vec<Value>>, numbers: Vec<Number>) -> Result<(), MysqlError> {
        if is_whole(self.plan) {
            return self.write_halves(rows, numbers).await;
        }
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

    /// Writes all together, or each half so.
    async fn write_halves(&mut self, rows: Vec<Vec<Value>>, numbers: Vec<Number>) -> Result<(), MysqlError> {
        let (all, mut together) = (rows.len(), 0);
        let (mut succeeded, mut failed) = (0, 0);
        let mut pieces = vec![(rows, numbers)];
        while let Some((mut rows, mut numbers)) = pieces.pop() {
            // A single row in the way of a thousand makes eight tries fail before the first succeeds.
            let is_tried = rows.len() > 1 && failed <= 8 + 2 * succeeded;
            if is_tried && Box::pin(self.txn.insert_all(&self.plan.table, &mut rows)).await? {
                succeeded += 1;
                together += rows.len();
                for number in numbers {
                    self.inserted(number).await?;
                }
                continue;
            }
            failed += 1;
            if is_tried && rows.len() > FEW {
                let middle = rows.len() / 2;
                // The first half comes first.
                pieces.push((rows.split_off(middle), numbers.split_off(middle)));
                pieces.push((rows, numbers));
            } else {
                for (values, number) in rows.into_iter().zip(numbers) {
                    self.write(values, number, vec![]).await?;
                }
            }
        }
        self.gathered.useless = 2 * together < all;
        Ok(())
    }
}
