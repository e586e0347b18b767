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
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// One version of a table's definition, with the key codecs that statements need.
pub struct TableInfo {
    pub schema: Arc<TableSchema>,
    pub primary: Arc<KeyDef>,
    pub route: Arc<Route>,
    /// Unique indexes (the primary key not among them), in their order. Of a partitioned table the global ones; its leaves
    /// have all.
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
    pub key: Arc<KeyDef>,
    /// Makes the keys of a base row.
    pub keys: Arc<IndexKeys>,
    pub entries: Arc<TableInfo>,
    /// Its rows may be in any leaf of the partitioned table.
    pub global: bool,
}

impl UniqueIndex {
    /// `None`: the index has no index table.
    pub fn new(
        schema: &TableSchema,
        index: &IndexSchema,
        entries_of: &mut dyn FnMut(TableId) -> Arc<TableInfo>,
    ) -> Option<UniqueIndex> {
        let entries = entries_of(index.entry_table?);
        let (key, keys) = (schema.key_def(index).into(), IndexKeys::new(schema, index).into());
        Some(UniqueIndex { id: index.id, key, keys, entries, global: index.global })
    }

    /// The same index of another table of the same columns and indexes.
    fn of_alike(
        &self,
        schema: &TableSchema,
        entries_of: &mut dyn FnMut(TableId) -> Arc<TableInfo>,
    ) -> Option<UniqueIndex> {
        let entries = entries_of(schema.index(self.id)?.entry_table?);
        Some(UniqueIndex { id: self.id, key: self.key.clone(), keys: self.keys.clone(), entries, global: self.global })
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
    /// Of each partition as it was when last looked at, up to the last one that had anything.
    pub usage: Mutex<Vec<TableUsage>>,
    /// Made when it is first used. A leaf of a partitioned table has that of the partitioned table, by whose name it is asked for.
    io: OnceLock<Arc<TableIo>>,
    /// Unique indexes that are being filled.
    pub building: BuildingSlot,
    /// See [`cache::TableCache::published`]; 0: not yet.
    published: AtomicU64,
    /// Of a partitioned table: what all versions of its leaves, and of their index tables, share.
    leaves: Mutex<FxHashMap<TableId, Weak<TableShared>>>,
}

/// The version of a table that is gone.
const DROPPED: u32 = u32::MAX;

impl TableShared {
    /// Counters start below `auto_bound` and `hidden_bound`: numbers below may have been given out.
    pub fn new(schema: &TableSchema, auto_bound: u64, hidden_bound: u64) -> Arc<TableShared> {
        Arc::new(TableShared::with_counters(schema, auto_bound, hidden_bound))
    }

    fn with_counters(schema: &TableSchema, auto_bound: u64, hidden_bound: u64) -> TableShared {
        TableShared {
            id: schema.id,
            lock: MetadataLock::default(),
            version: AtomicU32::new(schema.version),
            auto_increment: Counter::new(schema.id, auto_bound.max(1)),
            hidden_keys: HiddenKeys::new(schema.id, hidden_bound.max(1)),
            children: Children::default(),
            usage: Mutex::default(),
            io: OnceLock::new(),
            building: BuildingSlot::default(),
            published: AtomicU64::new(0),
            leaves: Mutex::default(),
        }
    }

    /// Of a temporary table: its counters write no log.
    pub fn of_session(schema: &TableSchema) -> Arc<TableShared> {
        Arc::new(TableShared {
            auto_increment: Counter::unlogged(schema.id),
            hidden_keys: HiddenKeys::unlogged(schema.id),
            ..TableShared::with_counters(schema, 1, 1)
        })
    }

    /// Of the table's leaves and their index tables, by their definitions in this version: the same for all versions.
    fn of_leaves(&self, tables: &[Arc<TableSchema>]) -> Vec<Arc<TableShared>> {
        let mut leaves = self.leaves.lock();
        leaves.retain(|_, shared| shared.strong_count() > 0);
        let of = |schema: &Arc<TableSchema>| {
            let known = leaves.get(&schema.id).and_then(Weak::upgrade);
            let shared = known.unwrap_or_else(|| {
                let io = if schema.leaf_of.is_some() { self.io().clone().into() } else { OnceLock::new() };
                let new = Arc::new(TableShared { io, ..TableShared::with_counters(schema, 1, 1) });
                leaves.insert(schema.id, Arc::downgrade(&new));
                new
            });
            shared.set_version(schema.version);
            shared
        };
        tables.iter().map(of).collect()
    }

    /// How often its rows were read and written.
    #[inline]
    pub fn io(&self) -> &Arc<TableIo> {
        self.io.get_or_init(Arc::default)
    }

    /// Whether it became another table (CREATE, TRUNCATE, a copying ALTER, lost partitions) after a snapshot.
    /// `published`: [`cache::TableCache::published`] when that was drawn. What it would see is no state that ever was.
    #[inline]
    pub fn is_newer_than(&self, published: u64) -> bool {
        self.published.load(Ordering::Acquire) > published
    }

    fn is_published(&self) -> bool {
        self.published.load(Ordering::Acquire) != 0
    }

    fn set_published(&self, number: u64) {
        self.published.store(number, Ordering::Release);
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
            global: false,
        };
        let schema = TableSchema {
            id,
            version: 1,
            database: String::new(),
            name: name.into(),
            layouts: vec![Arc::new(RowLayout::for_columns(0, &columns))],
            columns: columns.into(),
            indexes: vec![primary].into(),
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
            leaf_tables: Default::default(),
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
        let of = |index| UniqueIndex::new(&schema, index, &mut entries_of);
        let uniques: Vec<UniqueIndex> = schema.indexes.iter().filter_map(of).collect();
        let parts = schema.partitioning.is_some().then(|| Box::new(Parts::new(&schema, &shared, &uniques)));
        assert!(parts.is_none() || uniques.iter().all(|unique| unique.global), "each leaf has index tables of its own");
        let primary = schema.key_def(schema.primary()).into();
        let route = Route::new(&schema).into();
        let references = Reference::all_of(&schema);
        let has_row_rules = schema.has_row_rules();
        Arc::new(TableInfo { schema, primary, route, uniques, references, has_row_rules, shared, own, parts })
    }

    /// A table of the same columns and indexes as this one, without foreign keys: another leaf of the same partitioned table, or an index table of it.
    fn alike(
        &self,
        schema: Arc<TableSchema>,
        shared: Arc<TableShared>,
        entries_of: &mut dyn FnMut(TableId) -> Arc<TableInfo>,
    ) -> Arc<TableInfo> {
        assert!(self.parts.is_none() && self.own.is_none() && schema.foreign_keys.is_empty(), "a leaf");
        Arc::new(TableInfo {
            primary: self.primary.clone(),
            route: self.route.clone(),
            uniques: self.uniques.iter().filter_map(|unique| unique.of_alike(&schema, entries_of)).collect(),
            has_row_rules: self.has_row_rules,
            references: Vec::new(),
            shared,
            own: None,
            parts: None,
            schema,
        })
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
        let of_index = self.uniques.iter().map(|u| &*u.entries).find(|e| e.schema.id == id);
        of_index.or_else(|| self.parts.as_ref()?.find(id))
    }

    /// The table and its index tables, as the catalog has them.
    pub fn family(&self) -> impl Iterator<Item = &Arc<TableSchema>> {
        std::iter::once(&self.schema).chain(self.uniques.iter().map(|u| &u.entries.schema))
    }

    /// Leaves of a partitioned table and their own index tables: found by their ids alone.
    pub fn beneath(&self) -> impl Iterator<Item = &Arc<TableInfo>> {
        let leaves = self.parts.iter().flat_map(|parts| parts.leaves());
        leaves.flat_map(|leaf| {
            let own = leaf.uniques.iter().filter(|unique| !unique.global);
            std::iter::once(leaf).chain(own.map(|unique| &unique.entries))
        })
    }
}
