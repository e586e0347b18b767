//! Checkpoints and recovery.
//!
//! A checkpoint walks rows in id order and writes the newest committed versions; deletions are not in it, the redo log
//! that is kept from its start has them. Recovery puts rows back in any order, the latest time wins. A deletion of a
//! key that is not there is remembered until the end of recovery, because an older image of the row may still come. The
//! ordered indexes are built at the end, from sorted keys, which is several times faster than keeping them while rows come.

use super::fragment::Fragment;
use super::versions::flags;
use super::{Partition, Stop};
use crate::budget::Purpose;
use crate::row_store::{RowHeader, RowId};
use rauk_types::{RowView, TableId, Timestamp, key};

/// Time in which a missing key was deleted, by table and key: what recovery remembers.
pub(super) type Buried = hashbrown::HashMap<(TableId, Box<[u8]>), Timestamp, rustc_hash::FxBuildHasher>;

impl Partition {
    /// Visits the newest committed version (layout, commit time, bytes) of up to `rows` rows beginning at `from`; gives where to go on.
    pub fn checkpoint_slice(
        &self,
        table: TableId,
        from: RowId,
        rows: usize,
        visit: &mut dyn FnMut(u16, Timestamp, &[u8]),
    ) -> Option<RowId> {
        let fragment = self.fragments.get(&table)?;
        let mut next = from;
        for _ in 0..rows {
            let id = fragment.rows.next(next)?;
            let (header, bytes) = fragment.rows.get(id);
            if header.flags & (flags::UNCOMMITTED | flags::TOMBSTONE) == 0 {
                visit(header.layout, header.time, bytes);
            }
            next = RowId(id.0 + 1);
        }
        fragment.rows.next(next)
    }

    /// A row from a checkpoint or the log; older than what is here: ignored. [`Stop::StaleSchema`]: no such table.
    pub fn restore_put(&mut self, table: TableId, layout: u16, row: &[u8], time: Timestamp) -> Result<(), Stop> {
        let fragment = self.fragments.get_mut(&table).ok_or(Stop::StaleSchema)?;
        let mut key = std::mem::take(&mut self.scratch);
        key.clear();
        fragment.primary.encode_row(&RowView::new(&fragment.schema, layout, row), &mut key);
        let hash = key::hash(&key);
        let header = RowHeader { time, layout, flags: 0 };
        let result = match fragment.find(&key, hash) {
            Some(id) => {
                let old = fragment.rows.header(id);
                if old.time > time {
                    Ok(())
                } else {
                    fragment.live += u64::from(old.flags & flags::TOMBSTONE != 0);
                    fragment.rows.replace(id, header, row, Purpose::Relief)
                }
            }
            None if !self.buried.is_empty() && self.is_buried(table, &key, time) => Ok(()),
            None => {
                let fragment = self.fragments.get_mut(&table).expect("seen");
                fragment.rows.insert(header, row, Purpose::Relief).map(|id| {
                    fragment.link(hash, id);
                    fragment.live += 1;
                })
            }
        };
        self.scratch = key;
        Ok(result?)
    }

    fn is_buried(&self, table: TableId, key: &[u8], time: Timestamp) -> bool {
        self.buried.get(&(table, key.into())).is_some_and(|deleted| *deleted >= time)
    }

    /// The deletion of a row, from the log; older than what is here: ignored.
    pub fn restore_delete(&mut self, table: TableId, key: &[u8], time: Timestamp) {
        let Some(fragment) = self.fragments.get_mut(&table) else { return };
        match fragment.find(key, key::hash(key)) {
            Some(id) => {
                let mut header = fragment.rows.header(id);
                if header.time <= time {
                    fragment.live -= u64::from(header.flags & flags::TOMBSTONE == 0);
                    header.time = time;
                    header.flags |= flags::TOMBSTONE;
                    fragment.rows.set_header(id, header);
                }
            }
            None => {
                let deleted = self.buried.entry((table, key.into())).or_insert_with(|| {
                    self.buried_bytes += key.len();
                    time
                });
                *deleted = (*deleted).max(time);
                self.settle();
            }
        }
    }

    /// Drops the tombstones and fills all ordered indexes.
    pub fn finish_restore(&mut self) -> Result<(), Stop> {
        self.buried = Buried::default();
        self.buried_bytes = 0;
        let mut tables: Vec<TableId> = self.fragments.keys().copied().collect();
        tables.sort_unstable();
        for table in tables {
            let fragment = self.fragments.get_mut(&table).expect("just listed");
            fragment.drop_restored_tombstones(&mut self.scratch);
            fragment.fill_indexes();
        }
        self.settle();
        Ok(())
    }
}

impl Fragment {
    fn drop_restored_tombstones(&mut self, scratch: &mut Vec<u8>) {
        let mut next = RowId(0);
        while let Some(id) = self.rows.next(next) {
            next = RowId(id.0 + 1);
            let (header, bytes) = self.rows.get(id);
            if header.flags & flags::TOMBSTONE != 0 {
                scratch.clear();
                self.primary.encode_row(&self.view(header.layout, bytes), scratch);
                self.hash.remove(key::hash(scratch), id);
                self.rows.remove(id);
            }
        }
    }

    fn fill_indexes(&mut self) {
        for index in &mut self.indexes {
            // All keys in one buffer; what is sorted is their first eight bytes, and where they lie.
            let mut keys: Vec<u8> = Vec::new();
            let mut order: Vec<(u64, u64, u32, RowId)> = Vec::with_capacity(self.rows.len());
            let mut next = RowId(0);
            while let Some(id) = self.rows.next(next) {
                next = RowId(id.0 + 1);
                let (header, bytes) = self.rows.get(id);
                let start = keys.len();
                index.def.encode_row(&RowView::new(&self.schema, header.layout, bytes), &mut keys);
                let key = &keys[start..];
                let mut head = [0; 8];
                let n = key.len().min(8);
                head[..n].copy_from_slice(&key[..n]);
                order.push((u64::from_be_bytes(head), start as u64, key.len() as u32, id));
            }
            let key = |entry: &(u64, u64, u32, RowId)| &keys[entry.1 as usize..entry.1 as usize + entry.2 as usize];
            order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| key(a).cmp(key(b))).then(a.3.cmp(&b.3)));
            for entry in &order {
                index.tree.insert(key(entry), entry.3);
            }
        }
    }
}
