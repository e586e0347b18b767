//! A change of one row by its key, made where the row is.
//!
//! Where another process leads the row's partition, how the new row follows from the old one may be sent along as a
//! program ([`crate::ops::change`]): a question and an answer less than to read the row, locked, and then to write it.

use super::Transaction;
use super::read::Visit;
use crate::database::TableHandle;
use crate::error::NodeError;
use crate::ops::operation::{Done, Op};
use crate::table::io::Written;
use rauk_types::{IndexId, RowView};

/// What came of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeOutcome<R> {
    /// The row was there, and is changed or deleted.
    Changed,
    /// Nothing is changed; the row, if there is one, was locked and visited.
    Read(R),
    /// Nothing was done: it is to be read and written.
    Unknown,
}

impl Transaction {
    /// Whether a change of the row with this key would be made by another process, and is a write of that row alone.
    pub fn changes_elsewhere(&self, table: &TableHandle, key: &[u8]) -> bool {
        let info = table.info();
        // Of a partitioned table the new row may belong to another leaf.
        if info.parts.is_some() {
            return false;
        }
        let Some(cluster) = self.node.cluster().filter(|_| info.own.is_none()) else { return false };
        let (_, partition) = self.place(info, key);
        let elsewhere = cluster.place(partition).is_some_and(|place| place.primary != cluster.me());
        elsewhere && !info.has_entries() && !info.is_related()
    }

    /// Locks the row with this encoded primary key exclusively and changes it by a program of the registered evaluator,
    /// or shows it to `visit` if that is not certain. For rows of which [`Transaction::changes_elsewhere`] says so.
    pub async fn change<R: Send>(
        &mut self,
        table: &TableHandle,
        key: &[u8],
        program: &[u8],
        deletes: bool,
        visit: impl FnOnce(Option<RowView<'_>>) -> R + Send,
    ) -> Result<ChangeOutcome<R>, NodeError> {
        let info = table.info();
        self.check_writable_table(info)?;
        let (key, partition) = self.place(info, key);
        self.ensure_txn();
        let view = self.newest_view(self.own_before(info, key.bytes));
        let mut op = Op::Change { key, ranges: self.locks_ranges(), program, change: None };
        let mut visit = Visit::New(visit);
        let ended = Box::pin(self.call_ending(info, partition, view, &mut op, &mut |seen| visit.show(seen))).await?;
        let done = match ended {
            Some(done) => done,
            None => self.call(info, partition, view, &mut op, &mut |seen| visit.show(seen)).await?,
        };
        match done {
            Done::Is(true) => {
                self.count_reads(info, Some(IndexId::PRIMARY), 1);
                self.count_write(info, if deletes { Written::Deleted } else { Written::Updated });
                Ok(ChangeOutcome::Changed)
            }
            Done::Seen => {
                self.count_reads(info, Some(IndexId::PRIMARY), 1);
                Ok(ChangeOutcome::Read(visit.result()))
            }
            Done::Unknown => Ok(ChangeOutcome::Unknown),
            done => unreachable!("{done:?} of a change"),
        }
    }
}
