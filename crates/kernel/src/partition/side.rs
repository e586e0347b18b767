//! The map under all side tables: values by row, for the few rows in use.
//!
//! A node holds many millions of rows, and at any moment some thousands of them are locked, pending or have history.
//! What those need stands here and not in the row's header. The map is cut into shards so that growing one while a
//! large transaction writes moves a sixty-fourth of the entries and not all of them, and a shard that has become
//! nearly empty gives its memory back.
//!
//! Its bytes are known exactly (the shards' allocations); what values hold on the heap is counted by their owner.

use crate::row_store::RowId;
use hashbrown::HashMap;
use rauk_types::TableId;
use rustc_hash::FxBuildHasher;

/// A row of one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct RowKey(u64);

impl RowKey {
    pub fn new(table: TableId, row: RowId) -> Self {
        RowKey(u64::from(table.0) << 32 | u64::from(row.0))
    }

    pub fn table(self) -> TableId {
        TableId((self.0 >> 32) as u32)
    }

    pub fn row(self) -> RowId {
        RowId(self.0 as u32)
    }
}

const SHARDS: usize = 64;
/// Shards below this capacity are left as they are when they empty.
const KEEP_CAPACITY: usize = 28;

pub(super) struct SideMap<V> {
    shards: Vec<HashMap<RowKey, V, FxBuildHasher>>,
    bytes: usize,
}

impl<V> SideMap<V> {
    pub fn new() -> Self {
        SideMap { shards: (0..SHARDS).map(|_| HashMap::with_hasher(FxBuildHasher)).collect(), bytes: 0 }
    }

    fn shard(key: RowKey) -> usize {
        (key.0 ^ key.0 >> 32) as usize % SHARDS
    }

    pub fn get(&self, key: RowKey) -> Option<&V> {
        self.shards[Self::shard(key)].get(&key)
    }

    pub fn get_mut(&mut self, key: RowKey) -> Option<&mut V> {
        self.shards[Self::shard(key)].get_mut(&key)
    }

    pub fn contains(&self, key: RowKey) -> bool {
        self.shards[Self::shard(key)].contains_key(&key)
    }

    pub fn get_or_insert_with(&mut self, key: RowKey, make: impl FnOnce() -> V) -> &mut V {
        let shard = &mut self.shards[Self::shard(key)];
        if shard.len() == shard.capacity() {
            let before = shard.allocation_size();
            shard.reserve(1);
            self.bytes = self.bytes + shard.allocation_size() - before;
        }
        shard.entry(key).or_insert_with(make)
    }

    pub fn remove(&mut self, key: RowKey) -> Option<V> {
        let shard = &mut self.shards[Self::shard(key)];
        let value = shard.remove(&key)?;
        if shard.capacity() > KEEP_CAPACITY && shard.len() * 8 < shard.capacity() {
            let before = shard.allocation_size();
            shard.shrink_to(shard.len() * 2);
            self.bytes = self.bytes + shard.allocation_size() - before;
        }
        Some(value)
    }

    /// All entries, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = (RowKey, &V)> {
        self.shards.iter().flatten().map(|(k, v)| (*k, v))
    }

    pub fn len(&self) -> usize {
        self.shards.iter().map(|s| s.len()).sum()
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_follow_the_shards_up_and_down() {
        let mut map = SideMap::new();
        let key = |i| RowKey::new(TableId(7), RowId(i));
        for i in 0..100_000 {
            *map.get_or_insert_with(key(i), || 0u64) += u64::from(i);
        }
        let total = |map: &SideMap<u64>| map.shards.iter().map(|s| s.allocation_size()).sum::<usize>();
        assert_eq!(map.bytes(), total(&map));
        let high = map.bytes();
        assert_eq!(map.len(), 100_000);
        for i in 0..100_000 {
            assert_eq!(map.remove(key(i)), Some(u64::from(i)));
        }
        assert_eq!(map.bytes(), total(&map));
        assert!(map.bytes() * 12 < high, "{} of {high} bytes stay", map.bytes());
        assert_eq!((key(5).table(), key(5).row()), (TableId(7), RowId(5)));
    }
}
