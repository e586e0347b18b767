//! The index table of a unique index.
//!
//! A row of it is (encoded index key, encoded primary key of the base row), both as bytes: the key is its primary key, so that a second
//! row with an equal key is refused by the same rule as in any table, and the base row's key is read back without any decoding. It is spread over the
//! partitions by the index key, so one partition sees all that could collide.

use super::TableInfo;
use crate::ops::operation::Key;
use rauk_types::schema::IndexPart;
use rauk_types::schema::{Column, ColumnDefault, IndexSchema};
use rauk_types::{
    Collation, ColumnId, DataType, IndexId, IndexKind, RowLayout, RowView, Shared, TableId, TableSchema, Value,
    ValueRef, key, row,
};
use std::sync::{Arc, LazyLock};

/// What all index tables have in common.
struct Shape {
    columns: Shared<Vec<Column>>,
    indexes: Shared<Vec<IndexSchema>>,
    layout: Arc<RowLayout>,
}

static SHAPE: LazyLock<Shape> = LazyLock::new(shape);

fn shape() -> Shape {
    let column = |id: u16, name: &str| Column {
        id: ColumnId(id),
        name: name.to_string(),
        // Two bytes a byte when escaped, beyond the longest key.
        ty: DataType::varbinary(65_535),
        nullable: false,
        default: ColumnDefault::None,
        on_update_now: false,
        comment: String::new(),
        initial: Value::Null,
        generated: None,
        invisible: false,
    };
    let columns = vec![column(0, "key"), column(1, "row")];
    let primary = IndexSchema {
        id: IndexId::PRIMARY,
        name: "PRIMARY".to_string(),
        kind: IndexKind::Primary,
        parts: vec![IndexPart { column: 0, prefix: None, descending: false }],
        hash_only: true,
        entry_table: None,
        comment: String::new(),
        invisible: false,
        global: false,
    };
    let layout = Arc::new(RowLayout::for_columns(0, &columns));
    Shape { columns: columns.into(), indexes: vec![primary].into(), layout }
}

/// The schema of the index table of `index`.
pub fn schema(base: &TableSchema, index: &IndexSchema, id: TableId) -> TableSchema {
    TableSchema {
        id,
        version: 1,
        database: base.database.clone(),
        name: format!("{}\u{1}{}", base.name, index.name),
        layouts: vec![SHAPE.layout.clone()],
        columns: SHAPE.columns.clone(),
        indexes: SHAPE.indexes.clone(),
        distribution: vec![0],
        hidden_key: false,
        auto_increment: None,
        collation: Collation::Binary,
        comment: String::new(),
        explicit_partitioning: false,
        fully_replicated: base.fully_replicated,
        checks: Vec::new(),
        entry_of: Some((base.id, index.id)),
        foreign_keys: Vec::new(),
        storage: Default::default(),
        partitioning: None,
        leaf_of: None,
        leaf_tables: Default::default(),
    }
}

/// An entry, ready to be stored or looked for.
#[derive(Debug, Default)]
pub struct Entry {
    /// Encoded primary key in the index table.
    pub key: Vec<u8>,
    pub hash: u64,
    pub bucket: u16,
}

impl Entry {
    pub fn key(&self) -> Key<'_> {
        Key { bytes: &self.key, hash: self.hash }
    }
}

/// The place of an index key in its index table.
pub fn locate(entries: &TableInfo, index_key: &[u8]) -> Entry {
    let mut key = Vec::with_capacity(index_key.len() + 8);
    entries.primary.encode_prefix(&[ValueRef::Bytes(index_key)], &mut key);
    let hash = key::hash(&key);
    let bucket = entries.route.bucket_of_key(&key, hash);
    Entry { key, hash, bucket }
}

/// The stored row of an entry.
pub fn encode(entries: &TableInfo, index_key: &[u8], base_key: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(index_key.len() + base_key.len() + 8);
    let values = [Value::Bytes(index_key.to_vec()), Value::Bytes(base_key.to_vec())];
    row::encode_row(&entries.schema, &values, &mut bytes);
    bytes
}

/// The base row's encoded primary key.
pub fn base_key(entry: &RowView<'_>) -> Vec<u8> {
    match entry.get(1) {
        ValueRef::Bytes(bytes) => bytes.to_vec(),
        other => unreachable!("index tables hold bytes, not {other:?}"),
    }
}
