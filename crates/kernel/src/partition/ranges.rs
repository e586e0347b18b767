//! Range locks of SERIALIZABLE transactions: no row comes, goes or moves between two keys of an index.
//!
//! A range is shared: any number of transactions may lock the same one, and what conflicts with it is another's write.
//! Every insert, delete and change of an index key looks here first; tables without ranges cost one lookup in a map
//! that is empty on most nodes. Writes that were made before the range was locked need no look: their rows are locked
//! exclusively and their index entries are there, so that the scan that follows the range lock waits for them.
//!
//! Who waits for a range is woken when any transaction gives back ranges of that table, and tries again.

use hashbrown::HashMap;
use rauk_types::{IndexId, TableId, TxnId};
use rustc_hash::FxBuildHasher;
use std::ops::Bound;

#[derive(Debug, PartialEq)]
struct RangeLock {
    txn: TxnId,
    index: IndexId,
    low: Bound<Vec<u8>>,
    high: Bound<Vec<u8>>,
}

impl RangeLock {
    fn contains(&self, key: &[u8]) -> bool {
        let above = match &self.low {
            Bound::Included(low) => key >= low.as_slice(),
            Bound::Excluded(low) => key > low.as_slice(),
            Bound::Unbounded => true,
        };
        above
            && match &self.high {
                Bound::Included(high) => key <= high.as_slice(),
                Bound::Excluded(high) => key < high.as_slice(),
                Bound::Unbounded => true,
            }
    }

    fn bytes(&self) -> usize {
        let of = |b: &Bound<Vec<u8>>| match b {
            Bound::Included(k) | Bound::Excluded(k) => k.capacity(),
            Bound::Unbounded => 0,
        };
        size_of::<RangeLock>() + of(&self.low) + of(&self.high)
    }
}

#[derive(Default)]
struct TableRanges {
    locks: Vec<RangeLock>,
    waiters: Vec<TxnId>,
}

#[derive(Default)]
pub(super) struct RangeTable {
    tables: HashMap<TableId, TableRanges, FxBuildHasher>,
    bytes: usize,
}

impl RangeTable {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn is_used(&self, table: TableId) -> bool {
        !self.tables.is_empty() && self.tables.contains_key(&table)
    }

    /// Adds a range, unless the transaction has it already.
    pub fn lock(&mut self, txn: TxnId, table: TableId, index: IndexId, low: Bound<&[u8]>, high: Bound<&[u8]>) {
        let ranges = self.tables.entry(table).or_default();
        let lock = RangeLock { txn, index, low: low.map(<[u8]>::to_vec), high: high.map(<[u8]>::to_vec) };
        let all = |l: &RangeLock| l.low == Bound::Unbounded && l.high == Bound::Unbounded;
        if !ranges.locks.iter().any(|l| *l == lock || (l.txn == txn && l.index == index && all(l))) {
            self.bytes += lock.bytes();
            ranges.locks.push(lock);
        }
    }

    /// How many ranges of which indexes of a table a transaction has locked.
    pub fn count(&self, txn: TxnId, table: TableId) -> Vec<(IndexId, u64)> {
        let mut counts: Vec<(IndexId, u64)> = Vec::new();
        let own = self.tables.get(&table).into_iter().flat_map(|ranges| ranges.locks.iter().filter(|l| l.txn == txn));
        for lock in own {
            match counts.iter_mut().find(|(index, _)| *index == lock.index) {
                Some((_, count)) => *count += 1,
                None => counts.push((lock.index, 1)),
            }
        }
        counts
    }

    /// Adds to `blockers` the others whose ranges have this key.
    pub fn find(&self, txn: TxnId, table: TableId, index: IndexId, key: &[u8], blockers: &mut Vec<TxnId>) {
        let Some(ranges) = self.tables.get(&table) else { return };
        for lock in &ranges.locks {
            if lock.txn != txn && lock.index == index && lock.contains(key) && !blockers.contains(&lock.txn) {
                blockers.push(lock.txn);
            }
        }
    }

    pub fn wait(&mut self, txn: TxnId, table: TableId) {
        let ranges = self.tables.get_mut(&table).expect("a wait for a range that is there");
        if !ranges.waiters.contains(&txn) {
            self.bytes += size_of::<TxnId>();
            ranges.waiters.push(txn);
        }
    }

    pub fn cancel(&mut self, txn: TxnId, table: TableId) {
        if let Some(ranges) = self.tables.get_mut(&table) {
            let before = ranges.waiters.len();
            ranges.waiters.retain(|w| *w != txn);
            self.bytes -= (before - ranges.waiters.len()) * size_of::<TxnId>();
        }
    }

    /// Gives back a transaction's ranges of a table; those who wait there are told through `wake`.
    pub fn release(&mut self, txn: TxnId, table: TableId, wake: &mut Vec<TxnId>) {
        let Some(ranges) = self.tables.get_mut(&table) else { return };
        let bytes = &mut self.bytes;
        ranges.locks.retain(|l| {
            if l.txn == txn {
                *bytes -= l.bytes();
            }
            l.txn != txn
        });
        self.bytes -= ranges.waiters.len() * size_of::<TxnId>();
        wake.append(&mut ranges.waiters);
        if ranges.locks.is_empty() {
            self.tables.remove(&table);
        }
    }

    pub fn drop_table(&mut self, table: TableId, wake: &mut Vec<TxnId>) {
        if let Some(mut ranges) = self.tables.remove(&table) {
            self.bytes -= ranges.locks.iter().map(RangeLock::bytes).sum::<usize>();
            self.bytes -= ranges.waiters.len() * size_of::<TxnId>();
            wake.append(&mut ranges.waiters);
        }
    }

    pub fn validate(&self) {
        let of = |r: &TableRanges| {
            r.locks.iter().map(RangeLock::bytes).sum::<usize>() + r.waiters.len() * size_of::<TxnId>()
        };
        assert_eq!(self.bytes, self.tables.values().map(of).sum::<usize>(), "bytes of range locks");
        for (table, ranges) in &self.tables {
            assert!(!ranges.locks.is_empty(), "{table:?}: waiters for no range");
        }
    }
}
