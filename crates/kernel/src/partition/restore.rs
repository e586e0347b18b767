//! Checkpoints, recovery, and filling a partition with another replica's rows.
//!
//! A checkpoint walks rows in id order and writes the newest committed versions; deletions are not in it, the redo log
//! that is kept from its start has them. Recovery puts rows back, the latest time wins. A deletion of a
//! key that is not there is remembered until the end, because an older image of the row may still come. The
//! ordered indexes are built at the end, from sorted keys, which is several times faster than keeping them while rows come.
//!
//! Rows come in two ways, which differ where times are equal (as they may be in a cluster, where one key's versions of equal time have the order of its stream):
//!
//! * *in order*, [`Partition::restore_put`] and [`Partition::restore_delete`]: commits in the order of the log or stream, behind a checkpoint's rows. What comes takes the place of
//!   what is equally old. A checkpoint may have the last of several versions of one time; replaying the first of them goes back for a
//!   moment, and the log, which is on disk as far as the checkpoint has seen, comes to the last again.
//! * *out of order*, [`Partition::restore_copied`]: a slice of a copy, read anywhere between the commits that come in order beside it. Only what is newer takes
//!   a place, and a deletion counts as a version: the slice may have been read before it. Where a slice knows more than the stream has brought, the stream
//!   will bring it.
//!
//! *Sparse rows* keep large values of the version before ([`super::large`]), which in order is there, or the very version that comes, or a later one of equal time: these have what is
//! kept. Or the row is not there at all: the checkpoint was written after its deletion, which the log will come to, or the slice that has it has not come. Then the version *waits*, with the values
//! that it brings, for a slice with the rest, for a later version or a deletion. Versions that come meanwhile keep values of the one that waits. When all has come, nothing waits.
//!
//! Until [`Partition::finish_restore`] the partition is for restoring only.

use super::fragment::Fragment;
use super::large::{self, Apart, Coming};
use super::versions::flags;
use super::{Partition, Stop};
use crate::budget::Purpose;
use crate::ordered_index::OrderedIndex;
use crate::row_store::{RowHeader, RowId};
use rauk_types::row::sparse;
use rauk_types::{LargeValue, RowImage, RowView, TableId, Timestamp, key};

/// Time in which a missing key was deleted, by table and key: what recovery remembers.
pub(super) type Buried = hashbrown::HashMap<(TableId, Box<[u8]>), Timestamp, rustc_hash::FxBuildHasher>;

/// Versions that wait for the values that they keep, by table and key: of rows that are not here.
#[derive(Default)]
pub(super) struct Waiting {
    versions: hashbrown::HashMap<(TableId, Box<[u8]>), Incomplete, rustc_hash::FxBuildHasher>,
    heap: usize,
}

struct Incomplete {
    time: Timestamp,
    layout: u16,
    head: Vec<u8>,
    values: Vec<Coming>,
}

impl Incomplete {
    fn bytes(&self, key: &[u8]) -> usize {
        key.len() + self.head.capacity() + self.values.capacity() * size_of::<Coming>()
    }

    /// Fills in what is missing, from another version of the row; whether all is there.
    fn fill(&mut self, from: &[LargeValue]) -> bool {
        let mut whole = true;
        for value in &mut self.values {
            let Coming::Missing(mark) = value else { continue };
            match mark.find(from) {
                Some(found) => *value = Coming::Here(found.clone()),
                None => whole = false,
            }
        }
        whole
    }
}

impl Waiting {
    pub fn is_empty(&self) -> bool {
        self.versions.is_empty()
    }

    pub fn bytes(&self) -> usize {
        self.versions.allocation_size() + self.heap
    }

    fn take(&mut self, table: TableId, key: &[u8]) -> Option<Incomplete> {
        if self.versions.is_empty() {
            return None;
        }
        let version = self.versions.remove(&(table, key.into()))?;
        self.heap -= version.bytes(key);
        Some(version)
    }

    fn put(&mut self, table: TableId, key: &[u8], version: Incomplete) {
        self.heap += version.bytes(key);
        let before = self.versions.insert((table, key.into()), version);
        debug_assert!(before.is_none(), "a version waits twice");
    }
}

/// How a row comes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    InOrder,
    Copied,
}

impl Partition {
    /// Visits the newest committed version (layout, commit time, whole row) of up to `rows` rows beginning at `from`; gives where to go on.
    ///
    /// What is committed and under way is not all in its place. Where that matters, for nothing brings it later, the
    /// caller has waited until it is ([`Partition::has_ends_upto`]).
    pub fn checkpoint_slice(
        &self,
        table: TableId,
        from: RowId,
        rows: usize,
        visit: &mut dyn FnMut(u16, Timestamp, &[u8]),
    ) -> Option<RowId> {
        let fragment = self.fragments.get(&table)?;
        let mut next = from;
        let mut whole = Vec::new();
        for _ in 0..rows {
            let id = fragment.rows.next(next)?;
            let (header, bytes) = fragment.rows.get(id);
            if header.flags & (flags::UNCOMMITTED | flags::TOMBSTONE) == 0 {
                let layout = fragment.schema.layout_of(header.layout);
                visit(header.layout, header.time, bytes.whole(layout, &mut whole));
            }
            next = RowId(id.0 + 1);
        }
        fragment.rows.next(next)
    }

    /// A row from a checkpoint or the log, or of a commit that the stream brings while a copy is under way; older than what is here: ignored.
    /// [`Stop::StaleSchema`]: no such table, or a row of a definition that is not known here yet.
    pub fn restore_put(&mut self, table: TableId, layout: u16, row: &[u8], time: Timestamp) -> Result<(), Stop> {
        self.restore(table, layout, row, time, Way::InOrder)
    }

    /// A row from a slice of a copy; ignored unless it is newer than what is here. Errors as [`Partition::restore_put`].
    pub fn restore_copied(&mut self, table: TableId, layout: u16, row: &[u8], time: Timestamp) -> Result<(), Stop> {
        self.restore(table, layout, row, time, Way::Copied)
    }

    /// The same as [`Partition::restore_put`] for a sparse row. [`Stop::NoRow`]: it is none, or the version here is older and has not what it keeps.
    pub fn restore_sparse(&mut self, table: TableId, layout: u16, row: &[u8], time: Timestamp) -> Result<(), Stop> {
        let fragment = self.fragments.get_mut(&table).filter(|f| f.knows(layout)).ok_or(Stop::StaleSchema)?;
        let row = sparse::read_sparse(row).ok_or(Stop::NoRow)?;
        let result = match fragment.find(row.key, key::hash(row.key)) {
            Some(id) => {
                let (old, there) = fragment.rows.get(id);
                let values =
                    if old.time > time { None } else { Some(large::find_values(&self.budget, &row, there.beside)) };
                match values.map(|values| large::all_here(&values)) {
                    // Newer, or of equal time and later: its own record comes.
                    None => Ok(()),
                    Some(None) if old.time == time => Ok(()),
                    Some(None) => Err(Stop::NoRow),
                    Some(Some(beside)) => {
                        let image = RowImage { head: row.head, beside: &beside };
                        if fragment.is_row(layout, row.key, image) {
                            fragment.restore_over(id, RowHeader { time, layout, flags: 0 }, image)
                        } else {
                            Err(Stop::NoRow)
                        }
                    }
                }
            }
            None if self.is_buried(table, row.key, Timestamp(time.0.saturating_add(1))) => Ok(()),
            None => {
                let mut version = Incomplete { time, layout, head: row.head.to_vec(), values: Vec::new() };
                version.values = large::find_values(&self.budget, &row, &[]);
                if let Some(before) = self.waiting.take(table, row.key) {
                    let known: Vec<LargeValue> = before.values.iter().filter_map(Coming::here).cloned().collect();
                    version.fill(&known);
                }
                self.waiting.put(table, row.key, version);
                self.settle();
                Ok(())
            }
        };
        self.raise_finished(time);
        result
    }

    /// A version of a row has come that is not here. Where one waits: gives that in its place, with what this one had for it; unless this one is newer.
    fn complete(
        &mut self,
        table: TableId,
        key: &[u8],
        (time, way, there): (Timestamp, Way, &[LargeValue]),
    ) -> Result<Option<Incomplete>, Stop> {
        let Some(mut version) = self.waiting.take(table, key) else { return Ok(None) };
        if way == Way::InOrder || time > version.time {
            return Ok(None);
        }
        match version.fill(there) {
            true => Ok(Some(version)),
            false if time == version.time => Ok(None),
            false => Err(Stop::NoRow),
        }
    }

    /// Puts a whole row in where what is there, a deletion too, is older.
    fn restore(&mut self, table: TableId, layout: u16, row: &[u8], time: Timestamp, way: Way) -> Result<(), Stop> {
        // What is as old as this, or older, gives way to it.
        let above = if way == Way::InOrder { Timestamp(time.0.saturating_add(1)) } else { time };
        let fragment = self.fragments.get_mut(&table).filter(|f| f.knows(layout)).ok_or(Stop::StaleSchema)?;
        let mut key = std::mem::take(&mut self.scratch);
        key.clear();
        fragment.primary.encode_row(&RowView::new(&fragment.schema, layout, row), &mut key);
        let hash = key::hash(&key);
        let header = RowHeader { time, layout, flags: 0 };
        let result = match fragment.find(&key, hash) {
            Some(id) if fragment.rows.header(id).time >= above => Ok(()),
            Some(id) => {
                let apart =
                    large::take_apart(&self.budget, fragment.schema.layout_of(layout), row, &[], Purpose::Relief)?;
                fragment.restore_over(id, header, large::image(row, &apart))
            }
            None if !self.buried.is_empty() && self.is_buried(table, &key, above) => Ok(()),
            None => self.restore_new(table, (&key, hash), header, row, way),
        };
        self.scratch = key;
        self.raise_finished(time);
        result
    }

    fn restore_new(
        &mut self,
        table: TableId,
        (key, hash): (&[u8], u64),
        mut header: RowHeader,
        row: &[u8],
        way: Way,
    ) -> Result<(), Stop> {
        let layout = self.fragments[&table].schema.layout_of(header.layout);
        let apart = large::take_apart(&self.budget, layout, row, &[], Purpose::Relief)?;
        let mut image = large::image(row, &apart);
        let completed;
        if !self.waiting.is_empty()
            && let Some(version) = self.complete(table, key, (header.time, way, image.beside))?
        {
            header = RowHeader { time: version.time, layout: version.layout, flags: 0 };
            let beside = large::all_here(&version.values).expect("just filled in");
            completed = Apart { head: version.head, beside };
            image = completed.image();
        }
        let fragment = self.fragments.get_mut(&table).expect("seen by the caller");
        if !image.beside.is_empty() && !fragment.is_row(header.layout, key, image) {
            return Err(Stop::NoRow);
        }
        let id = fragment.rows.insert(header, image, Purpose::Relief)?;
        fragment.link(hash, id);
        fragment.count_in(id);
        Ok(())
    }

    /// Whether the key was deleted at `above` or later.
    fn is_buried(&self, table: TableId, key: &[u8], above: Timestamp) -> bool {
        self.buried.get(&(table, key.into())).is_some_and(|deleted| *deleted >= above)
    }

    /// The deletion of a row, from the log or the stream; older than what is here: ignored.
    pub fn restore_delete(&mut self, table: TableId, key: &[u8], time: Timestamp) {
        let Some(fragment) = self.fragments.get(&table) else { return };
        match fragment.find(key, key::hash(key)) {
            Some(id) => {
                let fragment = self.fragments.get_mut(&table).expect("just found");
                let mut header = fragment.rows.header(id);
                if header.time <= time {
                    fragment.count_out(id);
                    header.time = time;
                    header.flags |= flags::TOMBSTONE;
                    fragment.rows.set_header(id, header);
                }
            }
            None => {
                self.waiting.take(table, key);
                let deleted = self.buried.entry((table, key.into())).or_insert_with(|| {
                    self.buried_bytes += key.len();
                    time
                });
                *deleted = (*deleted).max(time);
                self.settle();
            }
        }
        self.raise_finished(time);
    }

    /// Drops the tombstones and fills all ordered indexes. [`Stop::NoRow`]: a version still waits for values that it keeps. Snapshots older than the newest commit cannot be read from here on: their versions have not come.
    pub fn finish_restore(&mut self) -> Result<(), Stop> {
        if !self.waiting.is_empty() {
            return Err(Stop::NoRow);
        }
        self.buried = Buried::default();
        self.buried_bytes = 0;
        let mut tables: Vec<TableId> = self.fragments.own().map(|(table, _)| table).collect();
        tables.sort_unstable();
        for table in tables {
            let fragment = self.fragments.get_mut(&table).expect("just listed");
            fragment.drop_restored_tombstones(&mut self.scratch);
            fragment.fill_indexes();
            fragment.raise_floors(self.finished);
        }
        self.fragments.raise_floors_of_empty(self.finished);
        self.settle();
        Ok(())
    }
}

impl Fragment {
    /// Puts a row over what is there.
    fn restore_over(&mut self, id: RowId, header: RowHeader, row: RowImage<'_>) -> Result<(), Stop> {
        self.count_out(id);
        self.rows.replace(id, header, row, Purpose::Relief).expect("relief is not refused");
        self.count_in(id);
        Ok(())
    }

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
        let (rows, schema) = (&self.rows, &self.schema);
        for index in &mut self.indexes {
            // A new index may have been built meanwhile over rows that were not the last ones.
            index.tree.clear();
            // All keys in one buffer; what is sorted is their first eight bytes, and where they lie.
            let mut sorted = Sorted { keys: Vec::new(), order: Vec::with_capacity(rows.len()) };
            let mut next = RowId(0);
            let mut room = Vec::new();
            while let Some(id) = rows.next(next) {
                next = RowId(id.0 + 1);
                let (header, bytes) = rows.get(id);
                let view = RowView::of(schema, header.layout, bytes);
                index.def.for_each(&view, &mut room, |key| sorted.push(key, id));
                // Words and elements are many more than rows: they go in sorted runs.
                if !index.def.is_single() && sorted.keys.len() >= RUN_BYTES {
                    sorted.insert(&mut index.tree);
                }
            }
            sorted.insert(&mut index.tree);
        }
    }
}

/// Bytes of keys after which a run of several keys a row is put into the tree.
const RUN_BYTES: usize = 32 << 20;

/// Entries that are to be sorted.
struct Sorted {
    keys: Vec<u8>,
    /// First eight bytes of the key, where it lies, its length, the row.
    order: Vec<(u64, u64, u32, RowId)>,
}

impl Sorted {
    #[inline]
    fn push(&mut self, key: &[u8], id: RowId) {
        let mut head = [0; 8];
        let n = key.len().min(8);
        head[..n].copy_from_slice(&key[..n]);
        self.order.push((u64::from_be_bytes(head), self.keys.len() as u64, key.len() as u32, id));
        self.keys.extend_from_slice(key);
    }

    /// Puts all into a tree, and is empty then.
    fn insert(&mut self, tree: &mut OrderedIndex) {
        let Sorted { keys, order } = self;
        let key = |entry: &(u64, u64, u32, RowId)| &keys[entry.1 as usize..entry.1 as usize + entry.2 as usize];
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| key(a).cmp(key(b))).then(a.3.cmp(&b.3)));
        for entry in order.iter() {
            tree.insert(key(entry), entry.3);
        }
        keys.clear();
        order.clear();
    }
}
