//! Rows in size-class slabs, under row ids that stay.
use crate::budget::{MemoryBudget, MemoryFull, Purpose};
use rauk_types::Timestamp;
use std::sync::Arc;

/// A row of one table in one partition. Stable while the row (with its history) lives; reused after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowId(pub u32);

/// What stands before a row's bytes: 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowHeader {
    /// Commit time of the inline version; [`Timestamp::ZERO`] while the inline version is an uncommitted insert.
    pub time: Timestamp,
    /// Layout version of the inline bytes.
    pub layout: u16,
    /// Bits that belong to the partition (tombstone, has side-table entries, …).
    pub flags: u8,
}

/// The rows of one fragment.
pub struct RowStore {
    _budget: Arc<MemoryBudget>,
}

impl RowStore {
    pub fn new(budget: Arc<MemoryBudget>) -> Self {
        RowStore { _budget: budget }
    }
    pub fn insert(&mut self, _header: RowHeader, _bytes: &[u8], _purpose: Purpose) -> Result<RowId, MemoryFull> {
        todo!()
    }
    /// Panics when there is no such row.
    pub fn get(&self, _id: RowId) -> (RowHeader, &[u8]) {
        todo!()
    }
    pub fn set_header(&mut self, _id: RowId, _header: RowHeader) {
        todo!()
    }
    /// Gives the row new bytes; it keeps its id. On error nothing has changed.
    pub fn replace(
        &mut self,
        _id: RowId,
        _header: RowHeader,
        _bytes: &[u8],
        _purpose: Purpose,
    ) -> Result<(), MemoryFull> {
        todo!()
    }
    pub fn remove(&mut self, _id: RowId) {
        todo!()
    }
    /// The first row at or after `from`, in id order: how full scans and checkpoints walk, in slices.
    pub fn next(&self, _from: RowId) -> Option<RowId> {
        todo!()
    }
    /// Rows stored (tombstones and uncommitted inserts included).
    pub fn len(&self) -> usize {
        todo!()
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Bytes that this store holds from the budget.
    pub fn bytes(&self) -> u64 {
        todo!()
    }
}
