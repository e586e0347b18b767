//! Numbers that are given out once in the whole cluster: AUTO_INCREMENT, hidden keys, timestamps.
//!
//! Processes take blocks and give out of them from memory; what a process had not given out when it died is lost, and never given again. Of a counter the
//! group holds one number: those below may have been given out. A counter is there once it has been used, belongs to a table of the catalog or to
//! one that a DDL job builds, and goes with it.

use super::Group;
use super::command::{Answer, Refused};
use rauk_types::TableId;

/// Added to a table's id for the counter of its hidden keys, as in the redo log.
const HIDDEN: u32 = 1 << 31;
/// Timestamps are raised by far less at a time: more is a mistake or malice, and would use them up.
const MOST_RAISED: u64 = 1 << 32;

impl Group {
    pub(super) fn reserve(&mut self, table: TableId, count: u64) -> Result<Answer, Answer> {
        self.check_counter(table)?;
        let first = self.counters.get(&table).copied().unwrap_or(1);
        let Some(next) = first.checked_add(count) else {
            let text = format!("{count} more numbers were asked for, and the counter is at {first}");
            return Err(Answer::Refused(Refused::OutOfRange(text)));
        };
        self.counters.insert(table, next);
        Ok(Answer::Numbers(first))
    }

    pub(super) fn observe(&mut self, table: TableId, value: u64) -> Result<Answer, Answer> {
        self.check_counter(table)?;
        let counter = self.counters.entry(table).or_insert(1);
        // The largest number cannot be exceeded; what is asked for next is then refused.
        *counter = (*counter).max(value.saturating_add(1));
        Ok(Answer::Done)
    }

    pub(super) fn timestamps(&mut self, bound: u64) -> Result<Answer, Answer> {
        if bound.saturating_sub(self.timestamp_bound) > MOST_RAISED {
            let text = format!("timestamps were to be raised from {} to {bound} at once", self.timestamp_bound);
            return Err(Answer::Refused(Refused::OutOfRange(text)));
        }
        self.timestamp_bound = self.timestamp_bound.max(bound);
        Ok(Answer::Done)
    }

    /// The first of two tables and one that is new go on where the later of the two is.
    pub(super) fn count_on_together(&mut self, tables: [TableId; 2], new: TableId) {
        let Some(next) = tables.iter().filter_map(|table| self.counters.get(table)).max().copied() else { return };
        self.counters.insert(tables[0], next);
        self.counters.insert(new, next);
    }

    /// Counters of tables that are there no more go.
    pub(super) fn drop_counters(&mut self) {
        let mut counters = std::mem::take(&mut self.counters);
        counters.retain(|counter, _| self.counts(*counter));
        self.counters = counters;
    }

    fn check_counter(&self, counter: TableId) -> Result<(), Answer> {
        if self.counts(counter) {
            return Ok(());
        }
        let text = format!("there is no table with id {}", counter.0 & !HIDDEN);
        Err(Answer::Refused(Refused::OutOfRange(text)))
    }

    fn counts(&self, counter: TableId) -> bool {
        let table = TableId(counter.0 & !HIDDEN);
        self.catalog.table(table).is_some() || self.catalog.jobs().any(|job| job.builds.contains(&table))
    }
}
