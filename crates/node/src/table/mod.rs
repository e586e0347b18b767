//! Tables as the node uses them: a schema with everything that is derived from it, and what all versions of a table share.

pub mod building;
pub mod cache;
pub mod counter;
pub mod entries;
pub mod io;
pub mod own;
pub mod parts;
pub mod relations;
pub mod route;

use crate::locks::metadata::MetadataLock;
use building::BuildingSlot;
use counter::{Counter, HiddenKeys};
use io::TableIo;
use own::OwnRows;
use parking_lot::Mutex;
use parts::Parts;
use rauk_kernel::partition::TableUsage;
use rauk_types::{
    Collation, Column, ColumnId, DataType, IndexId, IndexKeys, IndexKind, IndexPart, IndexSchema, KeyDef, RowLayout,
    TableId, TableSchema,
};
use relations::{Children, Reference};
use route::Route;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};

/// One version of a table's definition, with the key codecs that statements need.
pub struct TableInfo {
    pub schema: Arc<TableSchema>,
    pub primary: KeyDef,
    pub route: Route,
    /// Unique indexes (the primary key not among them), in their order.
    pub uniques: Vec<UniqueIndex>,
    /// [`TableSchema::has_row_rules`].
    pub has_row_rules: bool,
    /// Its foreign keys, in their order.
    pub references: Vec<Reference>,
    pub shared: Arc<TableShared>,
    /// Of a temporary table: where its rows are.
    pub own: Option<Arc<OwnRows>>,
    /// Of a partitioned table: where its rows are.
    pub parts: Option<Box<Parts>>,
}

/// A unique index and its index table.
pub struct UniqueIndex {
    pub id: IndexId,
    /// The shape of a key.
    pub key: KeyDef,
    /// Makes the keys of a base row.
    pub keys: IndexKeys,
    pub entries: Arc<TableInfo>,
}

impl UniqueIndex {
    /// `None`: the index has no index table.
    pub fn new(
        schema: &TableSchema,
        index: &IndexSchema,
        entries_of: &mut dyn FnMut(TableId) -> Arc<TableInfo>,
    ) -> Option<UniqueIndex> {
        let entries = entries_of(index.entry_table?);
        Some(UniqueIndex { id: index.id, key: schema.key_def(index), keys: IndexKeys::new(schema, index), entries })
    }
}

/// What all versions of a table share.
pub struct TableShared {
    pub id: TableId,
    pub lock: MetadataLock,
    /// Version of the newest definition; [`DROPPED`] when there is none any more.
    version: AtomicU32,
    pub auto_increment: Counter,
    pub hidden_keys: HiddenKeys,
    /// Foreign keys of other tables (and its own) that refer to it.
    pub children: Children,
    /// Of each partition as it was when last looked at.
    pub usage: Mutex<Vec<TableUsage>>,
    pub io: TableIo,
    /// Unique indexes that are being filled.
    pub building: BuildingSlot,
    /// Of a partitioned table: what all versions of its leaves, and of their index tables, share.
    leaves: Mutex<FxHashMap<TableId, Weak<TableShared>>>,
}

/// The version of a table that is gone.
const DROPPED: u32 = u32::MAX;

impl TableShared {
    /// Counters start below `auto_bound` and `hidden_bound`: numbers below may have been given out.
    pub fn new(schema: &TableSchema, auto_bound: u64, hidden_bound: u64) -> Arc<TableShared> {
        Arc::new(TableShared {
            id: schema.id,
            lock: MetadataLock::default(),
            version: AtomicU32::new(schema.version),
            auto_increment: Counter::new(schema.id, auto_bound.max(1)),
            hidden_keys: HiddenKeys::new(schema.id, hidden_bound.max(1)),
            children: Children::default(),
            usage: Mutex::default(),
            io: TableIo::default(),
            building: BuildingSlot::default(),
            leaves: Mutex::default(),
        })
    }

    /// Of a temporary table: its counters write no log.
    pub fn of_session(schema: &TableSchema) -> Arc<TableShared> {
        Arc::new(TableShared {
            id: schema.id,
            lock: MetadataLock::default(),
            version: AtomicU32::new(schema.version),
            auto_increment: Counter::unlogged(schema.id),
            hidden_keys: HiddenKeys::unlogged(schema.id),
            children: Children::default(),
            usage: Mutex::default(),
            io: TableIo::default(),
            building: BuildingSlot::default(),
            leaves: Mutex::default(),
        })
    }

    /// Of one of the table's leaves, or of an index table of it: the same for all versions.
    fn of_leaf(&self, schema: &TableSchema) -> Arc<TableShared> {
        let mut leaves = self.leaves.lock();
        if let Some(known) = leaves.get(&schema.id).and_then(Weak::upgrade) {
            return known;
        }
        leaves.retain(|_, shared| shared.strong_count() > 0);
        let new = TableShared::new(schema, 1, 1);
        leaves.insert(schema.id, Arc::downgrade(&new));
        new
    }

    /// Asked under the metadata lock, the answer stays true while it is held.
    pub fn is_current(&self, version: u32) -> bool {
        self.version.load(Ordering::Acquire) == version
    }

    /// Under the exclusive metadata lock.
    pub fn set_version(&self, version: u32) {
        self.version.store(version, Ordering::Release);
    }

    pub fn set_dropped(&self) {
        self.set_version(DROPPED);
    }
}

impl TableInfo {
    /// `entries_of` gives the info of a unique index's table.
    pub fn new(
        schema: Arc<TableSchema>,
        shared: Arc<TableShared>,
        entries_of: impl FnMut(TableId) -> Arc<TableInfo>,
    ) -> Arc<TableInfo> {
        TableInfo::with_rows(schema, shared, None, entries_of)
    }

    /// A temporary table, whose schema comes before those of its index tables.
    pub fn of_session(schemas: &[Arc<TableSchema>], rows: &Arc<OwnRows>) -> Arc<TableInfo> {
        let of = |schema: &Arc<TableSchema>| (schema.clone(), TableShared::of_session(schema));
        let (schema, shared) = of(&schemas[0]);
        TableInfo::with_rows(schema, shared, Some(rows.clone()), |id| {
            let entries = schemas.iter().find(|schema| schema.id == id).expect("an index has its table");
            let (schema, shared) = of(entries);
            TableInfo::with_rows(schema, shared, Some(rows.clone()), |_| {
                unreachable!("index tables have no unique index")
            })
        })
    }

    /// A table that nobody finds by name and that never has a row: only locks stand there.
    pub fn without_rows(id: TableId, name: &str, key: DataType) -> Arc<TableInfo> {
        let columns = vec![Column::new(ColumnId(0), "name", key, false)];
        let primary = IndexSchema {
            id: IndexId::PRIMARY,
            name: "PRIMARY".into(),
            kind: IndexKind::Primary,
            parts: vec![IndexPart { column: 0, prefix: None, descending: false }],
            hash_only: true,
            entry_table: None,
            comment: String::new(),
            invisible: false,
        };
        let schema = TableSchema {
            id,
            version: 1,
            database: String::new(),
            name: name.into(),
            layouts: vec![Arc::new(RowLayout::for_columns(0, &columns))],
            columns,
            indexes: vec![primary],
            distribution: vec![0],
            hidden_key: false,
            auto_increment: None,
            collation: Collation::Binary,
            comment: String::new(),
            explicit_partitioning: false,
            fully_replicated: false,
            checks: Vec::new(),
            entry_of: None,
            foreign_keys: Vec::new(),
            storage: Default::default(),
            partitioning: None,
            leaf_of: None,
        };
        let shared = TableShared::new(&schema, 1, 1);
        TableInfo::new(Arc::new(schema), shared, |_| unreachable!("it has no unique index"))
    }

    fn with_rows(
        schema: Arc<TableSchema>,
        shared: Arc<TableShared>,
        own: Option<Arc<OwnRows>>,
        mut entries_of: impl FnMut(TableId) -> Arc<TableInfo>,
    ) -> Arc<TableInfo> {
        // Each leaf of a partitioned table has index tables of its own.
        let parts = schema.partitioning.is_some().then(|| Box::new(Parts::new(&schema, &shared)));
        let of = |index| UniqueIndex::new(&schema, index, &mut entries_of);
        let uniques = schema.indexes.iter().filter_map(of).collect();
        let primary = schema.key_def(schema.primary());
        let route = Route::new(&schema);
        let references = Reference::all_of(&schema);
        let has_row_rules = schema.has_row_rules();
        Arc::new(TableInfo { schema, primary, route, uniques, references, has_row_rules, shared, own, parts })
    }

    /// Whether foreign keys go from it or lead to it: then a write of one row may concern others.
    #[inline]
    pub fn is_related(&self) -> bool {
        !self.references.is_empty() || self.shared.children.any()
    }

    /// Whether a write of a row is more than that: it has unique indexes, or some are being built.
    #[inline]
    pub fn has_entries(&self) -> bool {
        !self.uniques.is_empty() || self.shared.building.is_some()
    }

    pub fn unique(&self, id: IndexId) -> Option<&UniqueIndex> {
        self.uniques.iter().find(|u| u.id == id)
    }

    /// This table or one that belongs to it: an index table, a leaf.
    pub fn find(&self, id: TableId) -> Option<&TableInfo> {
        if self.schema.id == id {
            return Some(self);
        }
        match &self.parts {
            None => self.uniques.iter().map(|u| &*u.entries).find(|e| e.schema.id == id),
            Some(parts) => parts.find(id),
        }
    }

    /// The table and its index tables, as the catalog has them.
    pub fn family(&self) -> impl Iterator<Item = &Arc<TableSchema>> {
        std::iter::once(&self.schema).chain(self.uniques.iter().map(|u| &u.entries.schema))
    }

    /// Leaves of a partitioned table and their index tables: found by their ids alone.
    pub fn beneath(&self) -> impl Iterator<Item = &Arc<TableInfo>> {
        let leaves = self.parts.iter().flat_map(|parts| parts.leaves());
        leaves.flat_map(|leaf| std::iter::once(leaf).chain(leaf.uniques.iter().map(|unique| &unique.entries)))
    }
}
