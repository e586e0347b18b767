//! The hash index on the primary key: row ids by key hash, in many sub-tables so that growing one never stalls.
//!
//! Sub-tables are `hashbrown` tables of 4-byte row ids. The low bits of the hash choose the sub-table (the bucket of a row
//! comes from the high ones, so the rows of a partition still spread); there are few at first and the index splits to 256 when it holds
//! enough, so that small tables stay small. Keys are not kept: the caller compares with the row.

use crate::budget::MemoryBudget;
use crate::row_store::RowId;
use hashbrown::HashTable;
use std::sync::Arc;

const SUB_TABLES: usize = 256;
/// Entries at which the single table becomes 256.
const SPLIT_AT: usize = 4096;

pub struct HashIndex {
    budget: Arc<MemoryBudget>,
    /// One, or [`SUB_TABLES`].
    tables: Box<[HashTable<u32>]>,
    len: usize,
    bytes: u64,
}

impl HashIndex {
    pub fn new(budget: Arc<MemoryBudget>) -> Self {
        HashIndex { budget, tables: Box::new([HashTable::new()]), len: 0, bytes: 0 }
    }

    #[inline]
    fn sub_table(&self, hash: u64) -> usize {
        hash as usize & (self.tables.len() - 1)
    }

    /// The row with this hash for which `is_it` holds.
    #[inline]
    pub fn find(&self, hash: u64, mut is_it: impl FnMut(RowId) -> bool) -> Option<RowId> {
        self.tables[self.sub_table(hash)].find(spread(hash), |&id| is_it(RowId(id))).map(|&id| RowId(id))
    }

    /// Fetches what [`HashIndex::find`] will look at. The tables keep their place to themselves, so nothing: independent searches, one after the other, overlap too.
    #[inline]
    pub fn prefetch(&self, _hash: u64) {}

    /// `hash_of` gives the hash of a row that is already in, for growing.
    pub fn insert(&mut self, hash: u64, id: RowId, hash_of: impl Fn(RowId) -> u64) {
        if self.tables.len() == 1 && self.len == SPLIT_AT {
            self.split(&hash_of);
        }
        let number = self.sub_table(hash);
        let table = &mut self.tables[number];
        let before = table.allocation_size();
        table.insert_unique(spread(hash), id.0, |&other| spread(hash_of(RowId(other))));
        let after = table.allocation_size();
        self.len += 1;
        if after != before {
            self.budget.add((after - before) as u64);
            self.bytes += (after - before) as u64;
        }
    }

    /// Panics when it is not in.
    pub fn remove(&mut self, hash: u64, id: RowId) {
        let number = self.sub_table(hash);
        let entry = self.tables[number].find_entry(spread(hash), |&other| other == id.0);
        entry.expect("a removed row is in the hash index").remove();
        self.len -= 1;
        if self.len == 0 {
            self.budget.subtract(self.bytes);
            self.bytes = 0;
            self.tables = Box::new([HashTable::new()]);
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn split(&mut self, hash_of: &impl Fn(RowId) -> u64) {
        let old = std::mem::replace(&mut self.tables, (0..SUB_TABLES).map(|_| HashTable::new()).collect());
        for &id in &old[0] {
            let hash = hash_of(RowId(id));
            let number = self.sub_table(hash);
            self.tables[number].insert_unique(spread(hash), id, |&other| spread(hash_of(RowId(other))));
        }
        let now: usize = self.tables.iter().map(HashTable::allocation_size).sum();
        let now = (now + SUB_TABLES * size_of::<HashTable<u32>>()) as u64;
        self.budget.add(now);
        self.budget.subtract(self.bytes);
        self.bytes = now;
    }
}

impl Drop for HashIndex {
    fn drop(&mut self) {
        self.budget.subtract(self.bytes);
    }
}

/// The low bits are the same in one sub-table and the high ones in one partition: hashbrown uses both ends.
#[inline]
fn spread(hash: u64) -> u64 {
    hash.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(26)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(id: u32) -> u64 {
        rauk_types::key::hash(&id.to_be_bytes())
    }

    #[test]
    fn finds_what_is_in_and_nothing_else() {
        let budget = Arc::new(MemoryBudget::new(1 << 40));
        let mut index = HashIndex::new(budget.clone());
        for id in 0..50_000u32 {
            index.insert(hash(id), RowId(id), |r| hash(r.0));
        }
        for id in 0..60_000u32 {
            assert_eq!(index.find(hash(id), |r| r.0 == id).is_some(), id < 50_000);
        }
        assert_eq!(index.bytes(), budget.used());
        assert!(budget.used() < 50_000 * 11, "{}", budget.used());
        for id in (0..50_000u32).rev() {
            index.remove(hash(id), RowId(id));
            if id % 999 == 0 {
                assert!(index.find(hash(id), |r| r.0 == id).is_none());
                assert!(id == 0 || index.find(hash(id - 1), |r| r.0 == id - 1).is_some());
            }
        }
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn equal_hashes_are_told_apart_by_the_row() {
        let mut index = HashIndex::new(Arc::new(MemoryBudget::new(1 << 40)));
        for id in 0..100 {
            index.insert(42, RowId(id), |_| 42);
        }
        assert_eq!(index.find(42, |r| r.0 == 77), Some(RowId(77)));
        index.remove(42, RowId(77));
        assert_eq!(index.find(42, |r| r.0 == 77), None);
        assert_eq!(index.len(), 99);
    }
}
