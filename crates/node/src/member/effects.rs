//! Writes of the stream, as rows of a partition: the payloads of entries are those of redo records. An entry may be for
//! several partitions of a group: each takes its share.

use super::group_rows::Share;
use rauk_kernel::{Partition, Stop, TxnRef, Write};
use rauk_log::record::{Change, changes};
use rauk_types::{TableId, Timestamp, TxnId};

/// Why writes were not adopted. Some of them may stand: the caller aborts the transaction.
pub enum NotAdopted {
    /// These have a row that is written.
    Held(Vec<TxnId>),
    /// They are not what the stream can hold: an error of ours.
    Refused(String),
}

impl From<String> for NotAdopted {
    fn from(what: String) -> NotAdopted {
        NotAdopted::Refused(what)
    }
}

/// What the stream's payloads do to a partition. Tables that are not there any more are passed over.
pub trait Rows {
    /// The writes stand beside the rows, with this number.
    fn adopt_writes(&mut self, txn: &TxnRef, number: u32, writes: &[u8], share: Share) -> Result<(), NotAdopted>;
    /// The writes are committed, in a partition that is being put together.
    fn restore_writes(&mut self, writes: &[u8], time: Timestamp, share: Share) -> Result<(), String>;
}

impl Rows for Partition {
    fn adopt_writes(&mut self, txn: &TxnRef, number: u32, writes: &[u8], share: Share) -> Result<(), NotAdopted> {
        for_each(writes, share, |table, write| {
            if !self.has_table(table) {
                return Ok(());
            }
            self.adopt(txn, number, table, write).map_err(|stop| match stop {
                Stop::Wait(holders) => NotAdopted::Held(holders),
                stop => NotAdopted::Refused(format!("an entry's writes are refused: {stop:?}")),
            })
        })
    }

    fn restore_writes(&mut self, writes: &[u8], time: Timestamp, share: Share) -> Result<(), String> {
        for_each(writes, share, |table, write| {
            if !self.has_table(table) {
                return Ok(());
            }
            match write {
                Write::Put { layout, row } => self
                    .restore_put(table, layout, row, time)
                    .map_err(|stop| format!("an entry's writes are refused: {stop:?}")),
                Write::Sparse { layout, row } => self
                    .restore_sparse(table, layout, row, time)
                    .map_err(|stop| format!("an entry's writes are refused: {stop:?}")),
                Write::Delete { key } => {
                    self.restore_delete(table, key, time);
                    Ok(())
                }
            }
        })
    }
}

fn for_each<E: From<String>>(
    writes: &[u8],
    share: Share,
    mut visit: impl FnMut(TableId, Write<'_>) -> Result<(), E>,
) -> Result<(), E> {
    for change in changes(writes) {
        let change = change.map_err(|e| e.to_string())?;
        if change.bucket().is_some_and(|bucket| !share.has(bucket)) {
            continue;
        }
        match change {
            Change::Put { table, layout, row, .. } => visit(table, Write::Put { layout, row })?,
            Change::Sparse { table, layout, row, .. } => visit(table, Write::Sparse { layout, row })?,
            Change::Delete { table, key, .. } => visit(table, Write::Delete { key })?,
            Change::Counter { .. } | Change::Stream { .. } => {
                return Err("an entry's writes hold something that is not a row".to_string().into());
            }
        }
    }
    Ok(())
}
