//! The hash index on the primary key: row ids by key hash.
//!
//! A search reads one cache line: a [`Bucket`] is 64 bytes, twelve row ids with a byte of each one's hash. An entry whose bucket is full stands in one of the next,
//! and every bucket on the way counts it as having passed, so that a search goes on only behind buckets that were passed. Keys are not kept: the
//! caller compares with the row.
//!
//! The index consists of many sub-tables, so that growing one never stalls. The low bits of the hash choose the sub-table (the bucket of a row
//! comes from the high ones, so the rows of a partition still spread); there is one at first and the index splits to 256 when it holds
//! enough, so that small tables stay small. A sub-table grows by half, which reads all its rows for their hashes: these are asked for in
//! groups, so that the caller can fetch the rows' memory ahead.
//!
//! Measured against `hashbrown`'s tables, which read two lines and cannot be told to fetch them ahead (`benches/partition.rs`, `key_reads_of_64`).

use crate::budget::MemoryBudget;
use crate::prefetch::prefetch;
use crate::row_store::RowId;
use std::sync::Arc;

const SUB_TABLES: usize = 256;
/// Entries at which the single table becomes 256.
const SPLIT_AT: usize = 4096;

const SLOTS: usize = 12;
/// So many row ids at most are asked for their hashes at once.
pub const GROUP: usize = 64;

/// A cache line.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
struct Bucket {
    /// A byte of each entry's hash, never zero; zero: the slot is free.
    tags: [u8; SLOTS],
    /// Entries that stand behind this bucket and belong here or before.
    passed: u32,
    ids: [u32; SLOTS],
}

const EMPTY: Bucket = Bucket { tags: [0; SLOTS], passed: 0, ids: [0; SLOTS] };

impl Bucket {
    /// The slots with this tag, in order.
    #[inline]
    fn matching(&self, tag: u8) -> Matching {
        const LOW: u128 = u128::from_ne_bytes([0x7F; 16]);
        const ALL: u128 = (1 << (8 * SLOTS)) - 1;
        let mut bytes = [0; 16];
        bytes[..SLOTS].copy_from_slice(&self.tags);
        let different = u128::from_le_bytes(bytes) ^ u128::from_ne_bytes([tag; 16]);
        // The high bit of each byte that is zero.
        Matching(!(((different & LOW) + LOW) | different | LOW) & ALL)
    }

    #[inline]
    fn free_slot(&self) -> Option<usize> {
        self.matching(0).next()
    }
}

struct Matching(u128);

impl Iterator for Matching {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let slot = self.0.trailing_zeros() as usize / 8;
        self.0 &= self.0 - 1;
        Some(slot)
    }
}

/// Where a hash belongs in a table of buckets, and its tag.
#[derive(Clone, Copy)]
struct Spread(u64);

impl Spread {
    /// The low bits are the same in one sub-table and the high ones in one partition: a product mixes them.
    #[inline]
    fn new(hash: u64) -> Spread {
        Spread(hash.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    #[inline]
    fn home(self, buckets: usize) -> usize {
        (((self.0 >> 32) * buckets as u64) >> 32) as usize
    }

    #[inline]
    fn tag(self) -> u8 {
        ((self.0 >> 24) as u8).max(1)
    }
}

#[derive(Default)]
struct SubTable {
    buckets: Box<[Bucket]>,
    len: usize,
}

impl SubTable {
    /// The buckets in the order in which a search visits them, from the home of a hash on.
    #[inline]
    fn walk(&self, spread: Spread) -> impl Iterator<Item = usize> {
        let home = spread.home(self.buckets.len());
        (home..self.buckets.len()).chain(0..home)
    }

    #[inline]
    fn find(&self, hash: u64, mut is_it: impl FnMut(RowId) -> bool) -> Option<RowId> {
        let spread = Spread::new(hash);
        for at in self.walk(spread) {
            let bucket = &self.buckets[at];
            for slot in bucket.matching(spread.tag()) {
                let id = RowId(bucket.ids[slot]);
                if is_it(id) {
                    return Some(id);
                }
            }
            if bucket.passed == 0 {
                return None;
            }
        }
        None
    }

    /// There is a free slot.
    fn place(&mut self, hash: u64, id: RowId) {
        let spread = Spread::new(hash);
        let mut at = spread.home(self.buckets.len());
        loop {
            let bucket = &mut self.buckets[at];
            if let Some(slot) = bucket.free_slot() {
                bucket.tags[slot] = spread.tag();
                bucket.ids[slot] = id.0;
                self.len += 1;
                return;
            }
            bucket.passed += 1;
            at = if at + 1 == self.buckets.len() { 0 } else { at + 1 };
        }
    }

    /// `false` when it is not in.
    fn remove(&mut self, hash: u64, id: RowId) -> bool {
        let spread = Spread::new(hash);
        let found = self.walk(spread).enumerate().find_map(|(steps, at)| {
            let bucket = &self.buckets[at];
            let slot = bucket.matching(spread.tag()).find(|&slot| bucket.ids[slot] == id.0);
            match slot {
                Some(slot) => Some(Some((steps, at, slot))),
                None if bucket.passed == 0 => Some(None),
                None => None,
            }
        });
        let Some(Some((steps, at, slot))) = found else { return false };
        self.buckets[at].tags[slot] = 0;
        self.len -= 1;
        let home = spread.home(self.buckets.len());
        for step in 0..steps {
            self.buckets[(home + step) % self.buckets.len()].passed -= 1;
        }
        true
    }

    /// Four fifths: most entries stand in their own bucket then.
    fn is_full(&self) -> bool {
        (self.len + 1) * 5 > self.buckets.len() * SLOTS * 4
    }

    fn grow(&mut self, hashes_of: &impl Fn(&[RowId], &mut [u64])) {
        let buckets = self.buckets.len() + (self.buckets.len() / 2).max(1);
        let old = std::mem::replace(&mut self.buckets, vec![EMPTY; buckets].into_boxed_slice());
        self.len = 0;
        for_each_hash(&old, hashes_of, |hash, id| self.place(hash, id));
    }

    fn bytes(&self) -> usize {
        self.buckets.len() * size_of::<Bucket>()
    }
}

/// All entries with their hashes, which are asked for in groups.
fn for_each_hash(buckets: &[Bucket], hashes_of: &impl Fn(&[RowId], &mut [u64]), mut visit: impl FnMut(u64, RowId)) {
    let mut ids = [RowId(0); GROUP];
    let mut hashes = [0; GROUP];
    let mut count = 0;
    let mut flush = |ids: &[RowId]| {
        hashes_of(ids, &mut hashes[..ids.len()]);
        ids.iter().zip(&hashes).for_each(|(id, hash)| visit(*hash, *id));
    };
    for bucket in buckets {
        if count + SLOTS > GROUP {
            flush(&ids[..count]);
            count = 0;
        }
        for slot in (0..SLOTS).filter(|&slot| bucket.tags[slot] != 0) {
            ids[count] = RowId(bucket.ids[slot]);
            count += 1;
        }
    }
    flush(&ids[..count]);
}

pub struct HashIndex {
    budget: Arc<MemoryBudget>,
    /// One, or [`SUB_TABLES`].
    tables: Box<[SubTable]>,
    len: usize,
    bytes: u64,
}

impl HashIndex {
    pub fn new(budget: Arc<MemoryBudget>) -> Self {
        HashIndex { budget, tables: Box::new([SubTable::default()]), len: 0, bytes: 0 }
    }

    #[inline]
    fn sub_table(&self, hash: u64) -> usize {
        hash as usize & (self.tables.len() - 1)
    }

    /// The row with this hash for which `is_it` holds.
    #[inline]
    pub fn find(&self, hash: u64, is_it: impl FnMut(RowId) -> bool) -> Option<RowId> {
        self.tables[self.sub_table(hash)].find(hash, is_it)
    }

    /// Fetches what [`HashIndex::find`] will look at.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        let buckets = &self.tables[self.sub_table(hash)].buckets;
        prefetch(buckets, Spread::new(hash).home(buckets.len()));
    }

    /// `hashes_of` gives the hashes of up to [`GROUP`] rows that are already in, for growing.
    pub fn insert(&mut self, hash: u64, id: RowId, hashes_of: impl Fn(&[RowId], &mut [u64])) {
        if self.tables.len() == 1 && self.len == SPLIT_AT {
            self.split(&hashes_of);
        }
        let number = self.sub_table(hash);
        let table = &mut self.tables[number];
        if table.is_full() {
            let before = table.bytes();
            table.grow(&hashes_of);
            let more = (table.bytes() - before) as u64;
            self.budget.add(more);
            self.bytes += more;
        }
        table.place(hash, id);
        self.len += 1;
    }

    /// Panics when it is not in.
    pub fn remove(&mut self, hash: u64, id: RowId) {
        let number = self.sub_table(hash);
        assert!(self.tables[number].remove(hash, id), "a removed row is in the hash index");
        self.len -= 1;
        if self.len == 0 {
            self.budget.subtract(self.bytes);
            self.bytes = 0;
            self.tables = Box::new([SubTable::default()]);
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

    fn split(&mut self, hashes_of: &impl Fn(&[RowId], &mut [u64])) {
        let old = std::mem::replace(&mut self.tables, (0..SUB_TABLES).map(|_| SubTable::default()).collect());
        for_each_hash(&old[0].buckets, hashes_of, |hash, id| {
            let number = self.sub_table(hash);
            let table = &mut self.tables[number];
            if table.is_full() {
                table.grow(hashes_of);
            }
            table.place(hash, id);
        });
        let now: usize = self.tables.iter().map(SubTable::bytes).sum();
        let now = (now + SUB_TABLES * size_of::<SubTable>()) as u64;
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn hash(id: u32) -> u64 {
        rauk_types::key::hash(&id.to_be_bytes())
    }

    fn each(hash_of: impl Fn(u32) -> u64) -> impl Fn(&[RowId], &mut [u64]) {
        move |ids, hashes| {
            assert!(ids.len() == hashes.len() && ids.len() <= GROUP);
            ids.iter().zip(hashes).for_each(|(id, hash)| *hash = hash_of(id.0));
        }
    }

    #[test]
    fn a_bucket_is_a_cache_line() {
        assert_eq!((size_of::<Bucket>(), align_of::<Bucket>()), (64, 64));
    }

    #[test]
    fn finds_what_is_in_and_nothing_else() {
        let budget = Arc::new(MemoryBudget::new(1 << 40));
        let mut index = HashIndex::new(budget.clone());
        for id in 0..50_000u32 {
            index.insert(hash(id), RowId(id), each(hash));
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

    /// Whatever the number of rows, an entry takes few bytes, and most entries stand where they are looked for first.
    #[test]
    fn entries_are_small_and_near() {
        let mut index = HashIndex::new(Arc::new(MemoryBudget::new(1 << 40)));
        for id in 0..300_000u32 {
            index.insert(hash(id), RowId(id), each(hash));
            let entries = u64::from(id) + 1;
            assert!(id < 20_000 || id % 1000 != 0 || index.bytes() < entries * 11, "{} at {id}", index.bytes());
        }
        let near = |id: u32| {
            let table = &index.tables[index.sub_table(hash(id))];
            let bucket = &table.buckets[Spread::new(hash(id)).home(table.buckets.len())];
            bucket.ids.contains(&id)
        };
        let near = (0..300_000).filter(|id| near(*id)).count();
        assert!(near > 285_000, "{near} of 300 000");
    }

    #[test]
    fn equal_hashes_are_told_apart_by_the_row() {
        let mut index = HashIndex::new(Arc::new(MemoryBudget::new(1 << 40)));
        for id in 0..100 {
            index.insert(42, RowId(id), each(|_| 42));
        }
        assert_eq!(index.find(42, |r| r.0 == 77), Some(RowId(77)));
        index.remove(42, RowId(77));
        assert_eq!(index.find(42, |r| r.0 == 77), None);
        assert_eq!(index.len(), 99);
        assert!((0..100).all(|id| index.find(42, |r| r.0 == id).is_some() == (id != 77)));
    }

    proptest! {
        /// Against a map, with hashes that meet in few buckets, the last one among them.
        #[test]
        fn as_a_map(steps in proptest::collection::vec((0..400u32, any::<bool>()), 1..1500), few in 1..40u64) {
            let hash_of = |id: u32| (u64::from(id) % few).wrapping_mul(u64::MAX / few) | 1;
            let mut index = HashIndex::new(Arc::new(MemoryBudget::new(1 << 40)));
            let mut map = BTreeMap::new();
            for (id, insert) in steps {
                match (insert, map.contains_key(&id)) {
                    (true, false) => {
                        index.insert(hash_of(id), RowId(id), each(hash_of));
                        map.insert(id, ());
                    }
                    (false, true) => {
                        index.remove(hash_of(id), RowId(id));
                        map.remove(&id);
                    }
                    _ => {}
                }
                prop_assert_eq!(index.len(), map.len());
            }
            for id in 0..400 {
                prop_assert_eq!(index.find(hash_of(id), |r| r.0 == id).is_some(), map.contains_key(&id));
            }
            let passed: u32 = index.tables.iter().flat_map(|t| &t.buckets).map(|b| b.passed).sum();
            let ids: Vec<u32> = map.into_keys().collect();
            ids.iter().for_each(|id| index.remove(hash_of(*id), RowId(*id)));
            prop_assert!(passed == 0 || !ids.is_empty());
            prop_assert!(index.is_empty() && index.bytes() == 0);
        }
    }
}
