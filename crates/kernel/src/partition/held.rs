//! Lists of the locks that transactions hold and wait for, for people.
//!
//! Nothing keeps such a list: locks stand beside their rows, and each transaction has a list of what to give back at its
//! end. That list is read here, a slice at a time, so that a transaction with a million locks holds a partition up for
//! no longer than any scan does. Between two slices locks come and go: a list is what its slices were, not one moment.

use super::Partition;
use super::locks::Mode;
use super::names::NAMES;
use super::side::RowKey;
use super::transactions::TxnRecord;
use crate::row_store::RowId;
use rauk_types::{IndexId, TableId, TxnId, Value};

/// A lock of one transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldLock {
    /// That of the row in whose place the lock stands: a base table or the index table of a unique index.
    pub table: TableId,
    pub what: HeldOn,
    /// The transaction waits for it.
    pub waits: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum HeldOn {
    /// Of a row, with its primary key.
    Row { row: RowId, mode: HeldMode, key: Vec<Value> },
    /// Of so many ranges of an index (SERIALIZABLE).
    Ranges { index: IndexId, count: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldMode {
    KeyShare,
    Shared,
    Exclusive,
}

impl From<Mode> for HeldMode {
    fn from(mode: Mode) -> HeldMode {
        match mode {
            Mode::KeyShare => HeldMode::KeyShare,
            Mode::Shared => HeldMode::Shared,
            Mode::Exclusive | Mode::Gone => HeldMode::Exclusive,
        }
    }
}

/// Where one entry of a transaction's lists stands.
enum Entry {
    Lock(RowKey),
    /// A changed row: a fresh one has no other entry.
    Changed(RowKey),
    Wait(RowKey),
    Ranges(TableId),
}

/// The entry with a number, over all lists of a record.
fn entry(record: &TxnRecord, mut number: usize) -> Option<Entry> {
    let mut of = |length: usize| match number < length {
        true => Some(number),
        false => {
            number -= length;
            None
        }
    };
    if let Some(at) = of(record.locks.len()) {
        return Some(Entry::Lock(record.locks[at]));
    }
    if let Some(at) = of(record.undo.len()) {
        return Some(Entry::Changed(record.undo[at].key));
    }
    if let Some(at) = of(record.waits.len()) {
        return Some(Entry::Wait(record.waits[at]));
    }
    of(record.ranges.len()).map(|at| Entry::Ranges(record.ranges[at]))
}

impl Partition {
    /// The transactions that hold or want locks here, by id.
    pub fn lockers(&self) -> Vec<TxnId> {
        let mut all: Vec<TxnId> = self.txns.iter().map(|record| record.txn.id).collect();
        all.sort_unstable();
        all
    }

    /// Appends locks of a transaction: those that stand at `most` places of its lists from the one numbered `from` on.
    /// Gives the number of the next place, while there are more. A lock may stand at two places.
    pub fn list_locks(&self, txn: TxnId, from: usize, most: usize, out: &mut Vec<HeldLock>) -> Option<usize> {
        let record = self.txns.get(txn)?;
        for number in from..from + most {
            match entry(record, number)? {
                Entry::Lock(key) => {
                    let mode = self.locks.held(key, txn).filter(|_| self.locks.is_claimed(key, txn));
                    out.extend(mode.and_then(|mode| self.held_row(key, mode, false)));
                }
                Entry::Changed(key) => {
                    let is_fresh = !self.locks.is_used(key) && self.is_fresh_of(key, txn);
                    out.extend(if is_fresh { self.held_row(key, Mode::Gone, false) } else { None });
                }
                Entry::Wait(key) => {
                    out.extend(self.locks.wanted(key, txn).and_then(|mode| self.held_row(key, mode, true)));
                }
                Entry::Ranges(table) => {
                    for (index, count) in self.ranges.count(txn, table) {
                        out.push(HeldLock { table, what: HeldOn::Ranges { index, count }, waits: false });
                    }
                }
            }
        }
        Some(from + most)
    }

    fn is_fresh_of(&self, key: RowKey, txn: TxnId) -> bool {
        let Some(fragment) = self.fragments.get(&key.table()) else { return false };
        let owner =
            fragment.rows.contains(key.row()).then(|| self.versions.seats.owner(fragment.rows.header(key.row())));
        owner.flatten().is_some_and(|(owner, _)| owner.id == txn)
    }

    /// `None` for a name, which is no row.
    fn held_row(&self, key: RowKey, mode: Mode, waits: bool) -> Option<HeldLock> {
        if key.table() == NAMES {
            return None;
        }
        let fragment = self.fragments.get(&key.table())?;
        if !fragment.rows.contains(key.row()) {
            return None;
        }
        let (header, bytes) = fragment.rows.get(key.row());
        let view = fragment.view(header.layout, bytes);
        let parts = &fragment.schema.primary().parts;
        let values = parts.iter().map(|part| view.get(part.column).to_owned()).collect();
        let what = HeldOn::Row { row: key.row(), mode: mode.into(), key: values };
        Some(HeldLock { table: key.table(), what, waits })
    }
}
