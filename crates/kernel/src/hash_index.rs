//! The hash index on the primary key: row ids by key hash, in many sub-tables so that growing one never stalls.
use crate::budget::MemoryBudget;
use crate::row_store::RowId;
use std::sync::Arc;

pub struct HashIndex {
    _budget: Arc<MemoryBudget>,
}

impl HashIndex {
    pub fn new(budget: Arc<MemoryBudget>) -> Self {
        HashIndex { _budget: budget }
    }
    /// The row with this hash for which `is_it` holds.
    pub fn find(&self, _hash: u64, _is_it: impl FnMut(RowId) -> bool) -> Option<RowId> {
        todo!()
    }
    /// `hash_of` gives the hash of a row that is already in, for growing.
    pub fn insert(&mut self, _hash: u64, _id: RowId, _hash_of: impl Fn(RowId) -> u64) {
        todo!()
    }
    /// Panics when it is not in.
    pub fn remove(&mut self, _hash: u64, _id: RowId) {
        todo!()
    }
    pub fn bytes(&self) -> u64 {
        todo!()
    }
}
