//! Tables of a partition: made, changed, dropped, and how much they take.

use super::side::RowKey;
use super::versions::{Image, Version};
use super::{Partition, Stop, TableUsage};
use crate::budget::Purpose;
use crate::row_store::RowId;
use rauk_types::{IndexId, TableId, TableSchema};
use std::ops::Bound;
use std::sync::Arc;

/// Keys after which a slice of a build ends: rows of a full-text index, or with a long history, have many.
const MOST_KEYS: usize = 512;

impl Partition {
    // The caller has made sure that no transaction uses the table while it changes. In a cluster a replica may still have pending versions of a transaction
    // that has ended where it ran: those of a table that is dropped go with it, and what becomes of the transaction is the same for its other tables.

    pub fn create_table(&mut self, schema: Arc<TableSchema>) {
        self.fragments.create(schema);
    }

    /// A new definition of a table that is here: renamed, columns or indexes added or dropped. Added ordered indexes
    /// begin empty and must be filled with [`Partition::build_index`] before they are scanned. From here on every write
    /// keeps them, also before they are filled: transactions may use the table meanwhile, by a definition that does not
    /// have them.
    pub fn alter_table(&mut self, schema: Arc<TableSchema>) {
        self.finish_ends();
        self.fragments.alter(schema);
    }

    /// Drops a table with everything that belongs to it. Unknown tables are none of its business.
    pub fn drop_table(&mut self, table: TableId) {
        let Some(own) = self.fragments.remove(table) else { return };
        self.history_bytes -= own.map_or(0, |fragment| fragment.history_bytes);
        let sides: Vec<RowKey> = self.versions.iter().map(|(k, _)| k).filter(|k| k.table() == table).collect();
        for key in sides {
            let side = self.versions.remove(key).expect("just listed");
            let pending = side.pending.iter().flat_map(|p| p.stack.iter()).filter_map(|c| match c.image {
                Image::Stored(id) => Some(id),
                Image::Inline | Image::Deleted => None,
            });
            for image in side.history.iter().filter_map(Version::image).chain(pending) {
                self.versions.images.remove(image);
            }
        }
        for key in self.locks.rows_of(table) {
            self.locks.forget(key);
        }
        self.ranges.drop_table(table, &mut self.locks.granted);
        self.txns.forget_table(table);
        self.garbage.retain(|g| g.key.table() != table);
        self.settle();
    }

    /// Whether the table is here.
    pub fn has_table(&self, table: TableId) -> bool {
        self.fragments.contains(&table)
    }

    /// The definition that a table has here.
    pub fn schema(&self, table: TableId) -> Option<&Arc<TableSchema>> {
        self.fragments.schema(&table)
    }

    /// All tables that are here, by id.
    pub fn tables(&self) -> Vec<TableId> {
        let mut tables: Vec<TableId> = self.fragments.tables().collect();
        tables.sort_unstable();
        tables
    }

    /// A table that was built under its id alone comes into use: who reads it at a snapshot from before that would find
    /// nothing, and is told so ([`Stop::SnapshotTooOld`]).
    pub fn show_table(&mut self, table: TableId) {
        self.finish_ends();
        if let Some(fragment) = self.fragments.own_mut(&table) {
            fragment.raise_floors(fragment.newest);
        }
    }

    /// Fills an ordered index from up to `rows` rows beginning at `from`; gives where to go on, or `None` at the end.
    /// Ends earlier after so many keys that the partition would be held for long. For [`Purpose::Relief`] (the index
    /// was decided elsewhere) it does not fail for memory.
    ///
    /// Rows that are written meanwhile have their entries already, and get each once: an entry follows the images of
    /// its row, whoever comes first. Old and pending versions have entries too: a snapshot that is older than the index
    /// may still be open, and a transaction may be undone.
    pub fn build_index(
        &mut self,
        table: TableId,
        index: IndexId,
        from: RowId,
        rows: usize,
        purpose: Purpose,
    ) -> Result<Option<RowId>, Stop> {
        let fragment = self.fragments.get(&table).ok_or(Stop::StaleSchema)?;
        let position = fragment.index_position(index).ok_or(Stop::StaleSchema)?;
        let Some(fragment) = self.fragments.own_mut(&table) else { return Ok(None) };
        let mut next = from;
        let mut result: Result<(), Stop> = Ok(());
        let mut keys = 0;
        for _ in 0..rows {
            let Some(id) = fragment.rows.next(next).filter(|_| keys < MOST_KEYS) else { break };
            self.keys.clear();
            self.versions.any_image(fragment, RowKey::new(table, id), |layout, bytes| {
                self.keys.push_all(position, &fragment.indexes[position].def, &fragment.view(layout, bytes));
                false
            });
            let size: usize = self.keys.iter().map(|(_, key)| key.len() + size_of::<RowId>()).sum();
            if let Err(full) = self.budget.check(size as u64, purpose) {
                result = Err(full.into());
                break;
            }
            fragment.add_listed(id, &self.keys);
            keys += self.keys.len();
            next = RowId(id.0 + 1);
        }
        self.settle();
        result?;
        Ok(self.fragments[&table].rows.next(next))
    }

    /// Rows that are committed and not deleted, and bytes of rows, hash index, ordered indexes and old versions.
    pub fn table_usage(&self, table: TableId) -> Option<TableUsage> {
        let fragment = self.fragments.get(&table)?;
        Some(TableUsage {
            rows: fragment.live,
            row_bytes: fragment.rows.bytes() + fragment.rows.beside_bytes(),
            hash_bytes: fragment.hash.bytes(),
            ordered_bytes: fragment.ordered_bytes(),
            history_bytes: fragment.history_bytes,
        })
    }

    /// About how many index entries lie between two keys, or how many rows there are: for planning.
    pub fn estimate(
        &self,
        table: TableId,
        index: Option<IndexId>,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
    ) -> Option<u64> {
        let fragment = self.fragments.get(&table)?;
        match index {
            Some(id) => Some(fragment.indexes[fragment.index_position(id)?].tree.estimate(low, high)),
            None => Some(fragment.live),
        }
    }
}
