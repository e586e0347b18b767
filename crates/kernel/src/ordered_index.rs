//! The ordered index: a B+tree of (memcomparable key, row id), fan-out ≈ 128.
use crate::budget::MemoryBudget;
use crate::row_store::RowId;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

pub struct OrderedIndex {
    _budget: Arc<MemoryBudget>,
}

impl OrderedIndex {
    pub fn new(budget: Arc<MemoryBudget>) -> Self {
        OrderedIndex { _budget: budget }
    }
    /// Adds an entry; `false` when it was there. Equal keys are ordered by row id.
    pub fn insert(&mut self, _key: &[u8], _id: RowId) -> bool {
        todo!()
    }
    /// `false` when it was not there.
    pub fn remove(&mut self, _key: &[u8], _id: RowId) -> bool {
        todo!()
    }
    /// Visits entries between `low` and `high` upward, or downward when `reverse`, starting behind `after` (an entry that
    /// need no longer be there) where given.
    pub fn scan(
        &self,
        _low: Bound<&[u8]>,
        _high: Bound<&[u8]>,
        _reverse: bool,
        _after: Option<(&[u8], RowId)>,
        _visit: &mut dyn FnMut(&[u8], RowId) -> ControlFlow<()>,
    ) {
        todo!()
    }
    pub fn len(&self) -> usize {
        todo!()
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    pub fn bytes(&self) -> u64 {
        todo!()
    }
}
