//! A fragment: one table's rows in one partition, with the hash index on its primary key and its ordered indexes.
//!
//! The functions here keep the indexes in step with images (see [`super::versions`]): an entry is added with the first
//! image that has the key, and goes with the last. An image that goes names its keys as *suspects* before (most often
//! there are none, because the image that takes its place has equal index columns); after it has gone, a suspect that
//! no remaining image has is removed.

use super::digest::Digest;
use super::side::RowKey;
use super::versions::{VersionTable, flags};
use crate::budget::MemoryBudget;
use crate::hash_index::HashIndex;
use crate::ordered_index::OrderedIndex;
use crate::row_store::{RowId, RowStore};
use rauk_types::{IndexId, IndexKeys, IndexSchema, KeyDef, RowImage, RowView, TableSchema, Timestamp, key};
use std::sync::Arc;

pub(super) struct Index {
    pub id: IndexId,
    pub def: Arc<IndexKeys>,
    pub tree: OrderedIndex,
    /// Entries of versions that were valid before this time may never have been made: they had gone before the index
    /// came.
    floor: Timestamp,
}

pub(super) struct Fragment {
    pub schema: Arc<TableSchema>,
    pub primary: KeyDef,
    pub rows: RowStore,
    pub hash: HashIndex,
    /// One for each index that has entries.
    pub indexes: Vec<Index>,
    /// The key definitions of all indexes, hash-only ones too: for range locks.
    pub range_defs: Arc<[(IndexId, Arc<IndexKeys>)]>,
    /// Rows committed and not deleted.
    pub live: u64,
    /// Of these rows.
    pub digest: Digest,
    /// Bytes of old versions, rows under tombstones included.
    pub history_bytes: u64,
    /// Versions that were valid before this time may be gone.
    pub floor: Timestamp,
    /// Deleted rows that existed before this time may be gone.
    pub removed_floor: Timestamp,
    /// Index entries of versions that were valid before this time may be gone.
    pub entry_floor: Timestamp,
    /// The newest commit that wrote to it.
    pub newest: Timestamp,
}

/// Keys of several indexes, in one buffer that is used again.
#[derive(Default)]
pub(super) struct KeyList {
    bytes: Vec<u8>,
    ends: Vec<(usize, usize)>,
}

impl KeyList {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn push(&mut self, index: usize, def: &KeyDef, view: &RowView<'_>) {
        def.encode_row(view, &mut self.bytes);
        self.ends.push((index, self.bytes.len()));
    }

    /// All keys of a row in an index.
    pub fn push_all(&mut self, index: usize, keys: &IndexKeys, view: &RowView<'_>) {
        match keys {
            IndexKeys::Row(def) => self.push(index, def, view),
            several => several.for_each(view, &mut Vec::new(), |key| self.push_key(index, key)),
        }
    }

    fn push_key(&mut self, index: usize, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push((index, self.bytes.len()));
    }

    /// Takes back the last one.
    pub fn pop(&mut self) {
        self.ends.pop();
        self.bytes.truncate(self.ends.last().map_or(0, |e| e.1));
    }

    pub fn last(&self) -> &[u8] {
        self.get(self.ends.len() - 1).1
    }

    pub fn get(&self, i: usize) -> (usize, &[u8]) {
        let start = if i == 0 { 0 } else { self.ends[i - 1].1 };
        (self.ends[i].0, &self.bytes[start..self.ends[i].1])
    }

    /// (position of the index, key)
    pub fn iter(&self) -> impl Iterator<Item = (usize, &[u8])> {
        (0..self.ends.len()).map(|i| self.get(i))
    }
}

impl Fragment {
    pub fn new(schema: Arc<TableSchema>, budget: &Arc<MemoryBudget>) -> Self {
        let mut fragment = Fragment {
            primary: schema.key_def(schema.primary()),
            rows: RowStore::new(budget.clone()),
            hash: HashIndex::new(budget.clone()),
            indexes: Vec::new(),
            range_defs: Arc::default(),
            live: 0,
            digest: Digest::default(),
            history_bytes: 0,
            floor: Timestamp::ZERO,
            removed_floor: Timestamp::ZERO,
            entry_floor: Timestamp::ZERO,
            newest: Timestamp::ZERO,
            schema: schema.clone(),
        };
        fragment.set_schema(schema, budget);
        fragment
    }

    /// Takes over a new definition: indexes that it keeps stay as they are, new ones are empty.
    pub fn set_schema(&mut self, schema: Arc<TableSchema>, budget: &Arc<MemoryBudget>) {
        self.primary = schema.key_def(schema.primary());
        self.range_defs = schema.indexes.iter().map(|i| (i.id, Arc::new(IndexKeys::new(&schema, i)))).collect();
        let mut old = std::mem::take(&mut self.indexes);
        for (index, (_, def)) in schema.indexes.iter().zip(&*self.range_defs).filter(|(i, _)| i.has_entries()) {
            let (tree, floor) = match old.iter().position(|o| o.id == index.id) {
                Some(i) => {
                    let old = old.swap_remove(i);
                    (old.tree, old.floor)
                }
                None => (OrderedIndex::new(budget.clone()), self.floor),
            };
            self.indexes.push(Index { id: index.id, def: def.clone(), tree, floor });
        }
        self.schema = schema;
    }

    /// One of its own for a table of the same shape. This one has no rows.
    pub fn of_table(&self, schema: Arc<TableSchema>, budget: &Arc<MemoryBudget>) -> Fragment {
        assert!(self.rows.is_empty() && self.history_bytes == 0, "a fragment with rows is one table's");
        let empty = |index: &Index| Index {
            id: index.id,
            def: index.def.clone(),
            tree: OrderedIndex::new(budget.clone()),
            floor: index.floor,
        };
        Fragment {
            schema,
            primary: self.primary.clone(),
            rows: RowStore::new(budget.clone()),
            hash: HashIndex::new(budget.clone()),
            indexes: self.indexes.iter().map(empty).collect(),
            range_defs: self.range_defs.clone(),
            live: 0,
            digest: Digest::default(),
            history_bytes: 0,
            floor: self.floor,
            removed_floor: self.removed_floor,
            entry_floor: self.entry_floor,
            newest: Timestamp::ZERO,
        }
    }

    /// Whether rows and keys of a table with this definition are encoded as those here, in the same indexes.
    pub fn has_shape_of(&self, schema: &TableSchema) -> bool {
        let alike = |(own, other): (&IndexSchema, &IndexSchema)| {
            own.id == other.id
                && own.kind == other.kind
                && own.parts == other.parts
                && own.has_entries() == other.has_entries()
        };
        self.schema.columns == schema.columns
            && self.schema.layouts == schema.layouts
            && self.schema.indexes.len() == schema.indexes.len()
            && self.schema.indexes.iter().zip(&schema.indexes).all(alike)
    }

    /// Whether some snapshots cannot be read here.
    pub fn has_floors(&self) -> bool {
        self.floors().any(|floor| floor != Timestamp::ZERO)
    }

    /// Whether the same snapshots can be read here as there, where indexes are the same.
    pub fn has_floors_of(&self, other: &Fragment) -> bool {
        self.floors().eq(other.floors())
    }

    fn floors(&self) -> impl Iterator<Item = Timestamp> {
        let of_table = [self.floor, self.removed_floor, self.entry_floor];
        of_table.into_iter().chain(self.indexes.iter().map(|index| index.floor))
    }

    #[inline]
    pub fn view<'a>(&'a self, layout: u16, row: impl Into<RowImage<'a>>) -> RowView<'a> {
        RowView::of(&self.schema, layout, row.into())
    }

    /// Whether rows of this layout can be read.
    pub fn knows(&self, layout: u16) -> bool {
        usize::from(layout) < self.schema.layouts.len()
    }

    /// Whether what another node sent is the row with this key.
    pub fn is_row(&self, layout: u16, key: &[u8], row: RowImage<'_>) -> bool {
        self.schema.layout_of(layout).holds_image(row) && self.primary.matches(&self.view(layout, row), key)
    }

    pub fn find(&self, key: &[u8], hash: u64) -> Option<RowId> {
        self.hash.find(hash, |id| {
            let (header, bytes) = self.rows.get(id);
            self.primary.matches(&self.view(header.layout, bytes), key)
        })
    }

    /// Puts a row that is in the store into the hash index.
    pub fn link(&mut self, hash: u64, id: RowId) {
        let (rows, schema, primary) = (&self.rows, &self.schema, &self.primary);
        self.hash.insert(hash, id, |ids, hashes| {
            let mut encoded = Vec::new();
            ids.iter().for_each(|id| rows.prefetch_location(*id));
            for id in ids {
                rows.prefetch_row(*id);
            }
            for (id, hash) in ids.iter().zip(hashes) {
                encoded.clear();
                let (header, bytes) = rows.get(*id);
                primary.encode_row(&RowView::of(schema, header.layout, bytes), &mut encoded);
                *hash = key::hash(&encoded);
            }
        });
    }

    pub fn index_position(&self, id: IndexId) -> Option<usize> {
        self.indexes.iter().position(|i| i.id == id)
    }

    /// A snapshot before this time may miss entries of an index.
    pub fn entry_floor_of(&self, index: IndexId) -> Timestamp {
        let own = self.index_position(index).map_or(Timestamp::ZERO, |at| self.indexes[at].floor);
        self.entry_floor.max(own)
    }

    pub fn add_flags(&mut self, id: RowId, set: u8) {
        let (mut header, _) = self.rows.get(id);
        if header.flags & set != set {
            header.flags |= set;
            self.rows.set_header(id, header);
        }
    }

    /// Adds the keys of an image to all ordered indexes.
    pub fn add_entries(&mut self, id: RowId, layout: u16, row: RowImage<'_>, scratch: &mut Vec<u8>) {
        let view = RowView::of(&self.schema, layout, row);
        for index in &mut self.indexes {
            let tree = &mut index.tree;
            index.def.for_each(&view, scratch, |key| {
                tree.insert(key, id);
            });
        }
    }

    /// Adds to the list the keys of `image` that `other`, an image of the same row, does not have.
    pub fn distinct_keys(
        &self,
        image: (u16, RowImage<'_>),
        other: (u16, RowImage<'_>),
        list: &mut KeyList,
        scratch: &mut Vec<u8>,
    ) {
        let (image, other) = (self.view(image.0, image.1), self.view(other.0, other.1));
        for (position, index) in self.indexes.iter().enumerate() {
            if index.id == IndexId::PRIMARY || index.def.same_columns(&image, &other) {
                continue;
            }
            match &*index.def {
                IndexKeys::Row(def) => {
                    list.push(position, def, &image);
                    scratch.clear();
                    def.encode_row(&other, scratch);
                    if list.last() == scratch.as_slice() {
                        list.pop();
                    }
                }
                several => several.for_each_beyond(&image, &other, |key| list.push_key(position, key)),
            }
        }
    }

    /// Adds the listed entries to the trees.
    pub fn add_listed(&mut self, id: RowId, list: &KeyList) {
        for (position, entry) in list.iter() {
            self.indexes[position].tree.insert(entry, id);
        }
    }

    /// Removes the listed entries that no image of the row has any more; gives how many. One that an index that is
    /// being filled does not have yet counts as well: a snapshot that needs it will not find it.
    pub fn drop_suspects(
        &mut self,
        versions: &VersionTable,
        key: RowKey,
        list: &mut KeyList,
        scratch: &mut Vec<u8>,
    ) -> usize {
        let mut removed = 0;
        for (position, entry) in list.iter() {
            let index = &self.indexes[position];
            let needed =
                versions.any_image(self, key, |layout, bytes| index.def.has(&self.view(layout, bytes), entry, scratch));
            if !needed {
                self.indexes[position].tree.remove(entry, key.row());
                removed += 1;
            }
        }
        list.clear();
        removed
    }

    /// Removes a row with all its images, entries and flags. Its locks are the caller's matter.
    pub fn vanish(&mut self, versions: &mut VersionTable, key: RowKey, list: &mut KeyList) {
        list.clear();
        versions.any_image(self, key, |layout, bytes| {
            let view = self.view(layout, bytes);
            for (position, index) in self.indexes.iter().enumerate() {
                list.push_all(position, &index.def, &view);
            }
            false
        });
        for (position, entry) in list.iter() {
            self.indexes[position].tree.remove(entry, key.row());
        }
        list.clear();
        let (header, bytes) = self.rows.get(key.row());
        list.push(0, &self.primary, &self.view(header.layout, bytes));
        self.hash.remove(key::hash(list.last()), key.row());
        list.clear();
        let size = bytes.size() as u64;
        if header.flags & flags::SIDE != 0
            && let Some(side) = versions.remove(key)
        {
            if side.buried != Timestamp::ZERO {
                self.history_bytes -= size;
            }
            for version in &side.history {
                if let Some(image) = version.image() {
                    self.history_bytes -= version.bytes();
                    versions.images.remove(image);
                }
            }
            for change in side.pending.iter().flat_map(|p| p.stack.iter()) {
                if let super::versions::Image::Stored(image) = change.image {
                    versions.images.remove(image);
                }
            }
        }
        self.rows.remove(key.row());
    }

    /// Removes the row's side entry when nothing is in it.
    pub fn tidy(&mut self, versions: &mut VersionTable, key: RowKey) {
        if versions.get(key).is_some_and(|s| s.is_empty()) {
            versions.remove(key);
            let (mut header, _) = self.rows.get(key.row());
            header.flags &= !flags::SIDE;
            self.rows.set_header(key.row(), header);
        }
    }

    pub fn ordered_bytes(&self) -> u64 {
        self.indexes.iter().map(|i| i.tree.bytes()).sum()
    }
}
