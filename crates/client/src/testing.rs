//! What unit tests need: a table of a database in this process, and definitions without one.

use crate::definition::Opened;
use crate::{Client, Rauk, Table};
use rauk_types::{
    Column, ColumnId, DataType, IndexId, IndexKind, IndexPart, IndexSchema, TableId, TableSchema, TypeKind,
};
use rauk_wire::definition::Definition;
use std::sync::Arc;

pub(crate) struct Place {
    pub client: Client,
    _rauk: Rauk,
    _directory: tempfile::TempDir,
}

pub(crate) fn place() -> Place {
    let directory = tempfile::tempdir().expect("a directory");
    let config = rauk_node::Config { partitions: 2, segment_bytes: 1 << 20, ..Default::default() };
    let rauk = Rauk::open_with(directory.path(), config).expect("a database");
    Place { client: rauk.client(), _rauk: rauk, _directory: directory }
}

impl Place {
    /// A table that only this client knows of.
    pub fn table(&self, opened: Opened) -> Table {
        Table::new(self.client.clone(), Arc::new(opened))
    }
}

/// `id` BIGINT UNSIGNED (key), `name` VARCHAR(10), `a` INT NULL, `b` INT NULL, with the index `ab` on (a, b) and the index `down` on (a DESC, b DESC), `mixed` on (a, b DESC).
pub(crate) fn schema() -> TableSchema {
    let int = DataType::new(TypeKind::Int);
    let columns = vec![
        Column::new(ColumnId(0), "id", DataType::BIGINT_UNSIGNED, false),
        Column::new(ColumnId(1), "name", DataType::varchar(10, rauk_types::Collation::Utf8mb4Bin), true),
        Column::new(ColumnId(2), "a", int, true),
        Column::new(ColumnId(3), "b", int, true),
    ];
    let index = |id: u16, name: &str, down: [bool; 2]| IndexSchema {
        id: IndexId(id),
        name: name.into(),
        kind: IndexKind::Ordered,
        parts: [2, 3]
            .iter()
            .zip(down)
            .map(|(column, descending)| IndexPart { column: *column, prefix: None, descending })
            .collect(),
        hash_only: false,
        entry_table: None,
        comment: String::new(),
        invisible: false,
        global: false,
    };
    let indexes = vec![
        IndexSchema::primary(&[0]),
        index(1, "ab", [false, false]),
        index(2, "down", [true, true]),
        index(3, "mixed", [false, true]),
    ];
    TableSchema::new(TableId(9), "test", "t", columns, indexes)
}

pub(crate) fn opened(schema: TableSchema) -> Opened {
    Opened::new(Definition { schema, partitions: 2 }, 0).expect("a definition")
}
