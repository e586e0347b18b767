//! Definitions and rows of the simulation's tables.
use rauk_node::TableHandle;
use rauk_types::schema::{Column, ColumnDefault, IndexKind, IndexPart, IndexSchema};
use rauk_types::{Collation, ColumnId, DataType, IndexId, RowLayout, RowView, TableId, TableSchema, Value, ValueRef};
use std::sync::Arc;

pub const DATABASE: &str = "sim";

/// A column of the next free id.
pub fn add_column(columns: &mut Vec<Column>, name: &str, ty: DataType, nullable: bool) {
    let id = columns.iter().map(|c| c.id.0 + 1).max().unwrap_or(0);
    columns.push(Column {
        id: ColumnId(id),
        name: name.to_string(),
        ty,
        nullable,
        default: ColumnDefault::None,
        on_update_now: false,
        comment: String::new(),
        initial: Value::Null,
        generated: None,
        invisible: false,
    });
}

pub fn columns(definitions: &[(&str, DataType, bool)]) -> Vec<Column> {
    let mut columns = Vec::new();
    definitions.iter().for_each(|(name, ty, nullable)| add_column(&mut columns, name, *ty, *nullable));
    columns
}

pub fn index(id: u16, name: &str, kind: IndexKind, parts: &[usize]) -> IndexSchema {
    let part = |&column| IndexPart { column, prefix: None, descending: false };
    IndexSchema {
        id: IndexId(id),
        name: name.to_string(),
        kind,
        parts: parts.iter().map(part).collect(),
        hash_only: false,
        entry_table: None,
        comment: String::new(),
        invisible: false,
        global: false,
    }
}

/// A table as CREATE TABLE hands it to the node; column 0 is the primary key.
pub fn table(name: &str, columns: Vec<Column>, mut secondary: Vec<IndexSchema>) -> TableSchema {
    let mut indexes = vec![index(0, "PRIMARY", IndexKind::Primary, &[0])];
    indexes.append(&mut secondary);
    TableSchema {
        id: TableId(0),
        version: 1,
        database: DATABASE.to_string(),
        name: name.to_string(),
        layouts: vec![Arc::new(RowLayout::for_columns(0, &columns))],
        columns: columns.into(),
        indexes: indexes.into(),
        distribution: vec![0],
        hidden_key: false,
        auto_increment: None,
        collation: Collation::Utf8mb4Bin,
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
    }
}

/// All values of a row.
pub fn values(table: &TableHandle, row: &RowView<'_>) -> Vec<Value> {
    (0..table.schema().columns.len()).map(|i| row.get(i).to_owned()).collect()
}

/// An integer column's value, which is not NULL.
pub fn integer(value: &Value) -> i64 {
    match value {
        Value::Int(v) => *v,
        Value::UInt(v) => *v as i64,
        other => panic!("an integer column has {other:?}"),
    }
}

/// The encoded primary key of a table whose key is one BIGINT.
pub fn key(table: &TableHandle, id: i64) -> Vec<u8> {
    let mut key = Vec::new();
    table.schema().key_def(table.schema().primary()).encode_prefix(&[ValueRef::Int(id)], &mut key);
    key
}
