//! What a table is: columns, keys, how it is spread over partitions.
//!
//! A [`TableSchema`] is immutable and shared (`Arc`); every DDL makes a new one
//! with a higher `version`. Rows carry the version of the *layout* they were
//! written with ([`crate::row`]), so that ADD COLUMN and DROP COLUMN copy nothing.
//!
//! A unique secondary index has two parts: an *index table* of its own (an
//! ordinary table, `entry_table`, whose primary key is the index key and whose
//! other columns are the base row's primary key, partitioned by the index key;
//! it guards uniqueness and serves point lookups), and an ordered index local to
//! each partition of the base table, for ranges. NULLs are not in the index table.
//! Of a user's partitioned table ([`crate::partitioning`]) each leaf has such index tables, except for a *global* unique
//! index: one index table for the rows of all leaves, which belongs to the partitioned table.

use crate::elements::Elements;
use crate::foreign::ForeignKey;
use crate::fulltext::TextParser;
use crate::key::KeyDef;
use crate::partitioning::Partitioning;
use crate::row::RowLayout;
use crate::shared::{Memo, Shared};
use crate::{Collation, ColumnId, DataType, IndexId, TableId, Value};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Buckets of a bucket map (design: every table hashes into so many, whatever the number of partitions).
pub const BUCKETS: u16 = 3840;
/// Longest encoded index key in bytes.
pub const MAX_KEY_BYTES: usize = 3072;
/// Longest row in bytes, TEXT and BLOB columns not counted.
pub const MAX_ROW_BYTES: usize = 65_535;
/// Longest TEXT or BLOB value in bytes.
pub const MAX_LOB_BYTES: usize = 16 * 1024 * 1024;
pub const MAX_COLUMNS: usize = 1017;
pub const MAX_INDEXES: usize = 64;
pub const MAX_KEY_PARTS: usize = 16;
pub const MAX_IDENTIFIER_CHARS: usize = 64;

/// Name of the column that is the primary key of a table declared without one: BIGINT UNSIGNED,
/// filled from per-partition counters, never shown.
pub const HIDDEN_KEY_COLUMN: &str = "\u{1}row_id";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableSchema {
    pub id: TableId,
    /// Grows with every change of the definition.
    pub version: u32,
    pub database: String,
    pub name: String,
    /// In the order the user sees; behind them those of keys on expressions, and the hidden key, if any, last.
    pub columns: Shared<Vec<Column>>,
    /// Primary key first. A hidden key's index is there too.
    pub indexes: Shared<Vec<IndexSchema>>,
    /// Positions in `columns` of the distribution columns: the primary key or a part of it.
    pub distribution: Vec<usize>,
    /// Whether the primary key is [`HIDDEN_KEY_COLUMN`].
    pub hidden_key: bool,
    /// Position of the AUTO_INCREMENT column.
    pub auto_increment: Option<usize>,
    pub collation: Collation,
    pub comment: String,
    /// `PARTITION BY KEY(...)` was written out, so SHOW CREATE TABLE shows it.
    pub explicit_partitioning: bool,
    /// In a cluster every data node holds the whole table (for small tables that are mostly read). On a node that is alone it changes nothing.
    #[serde(default)]
    pub fully_replicated: bool,
    /// CHECK constraints, in the order of their names.
    #[serde(default)]
    pub checks: Vec<CheckConstraint>,
    /// Set on the index table of a unique index: the base table and its index.
    pub entry_of: Option<(TableId, IndexId)>,
    /// What its rows refer to, in the order of declaration.
    #[serde(default)]
    pub foreign_keys: Vec<ForeignKey>,
    #[serde(default)]
    pub storage: StorageClauses,
    /// Of a partitioned table: it has no rows of its own.
    #[serde(default)]
    pub partitioning: Option<Arc<Partitioning>>,
    /// Set on a table that is a leaf of a partitioned table: that table.
    #[serde(default)]
    pub leaf_of: Option<TableId>,
    /// Of a partitioned table: the definitions of its leaves and their index tables, which follow from this one (`node::table::parts`).
    #[serde(skip)]
    pub leaf_tables: Memo<Vec<Arc<TableSchema>>>,
    /// Every layout that rows of this table may still have, oldest first; the last one is written, and lists `columns` in
    /// their order ([`TableSchema::add_layout`]).
    pub layouts: Vec<Arc<RowLayout>>,
}

/// Clauses about how a server stores a table. They change nothing here; SHOW CREATE TABLE shows them again, so that a
/// dump of the definition says what its author wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageClauses {
    /// Options of the table by name, in the order in which they are shown.
    pub options: Vec<(String, String)>,
    /// STORAGE and COLUMN_FORMAT, as they are shown.
    pub columns: Vec<(ColumnId, String)>,
    /// USING BTREE and KEY_BLOCK_SIZE, as they are shown.
    pub indexes: Vec<(IndexId, String)>,
}

impl StorageClauses {
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn of_column(&self, id: ColumnId) -> &str {
        self.columns.iter().find(|(known, _)| *known == id).map_or("", |(_, text)| text)
    }

    pub fn of_index(&self, id: IndexId) -> &str {
        self.indexes.iter().find(|(known, _)| *known == id).map_or("", |(_, text)| text)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    pub id: ColumnId,
    pub name: String,
    pub ty: DataType,
    pub nullable: bool,
    pub default: ColumnDefault,
    /// ON UPDATE CURRENT_TIMESTAMP, with its fraction digits.
    pub on_update_now: bool,
    pub comment: String,
    /// What rows written before the column was added have in it.
    pub initial: Value,
    /// GENERATED ALWAYS AS: the value follows from other columns and is stored with them.
    #[serde(default)]
    pub generated: Option<Generated>,
    /// Left out of `*` and of INSERT without a list of columns.
    #[serde(default)]
    pub invisible: bool,
}

/// The value of a generated column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generated {
    /// Canonical text over columns of the row, as every expression of a table: names are bare and quoted, literals say their
    /// character set, so that it means the same whatever sql_mode and current database its reader has.
    pub expression: String,
    /// STORED; else VIRTUAL.
    pub stored: bool,
    /// The column holds a key's expression: it has no name that a statement could say, and goes with its key.
    #[serde(default)]
    pub of_key: bool,
}

/// CHECK: a row for which the expression is false is not written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckConstraint {
    /// Unique in its database.
    pub name: String,
    /// Canonical text over columns of the row.
    pub expression: String,
    pub enforced: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ColumnDefault {
    /// NOT NULL without DEFAULT: inserting without a value is error 1364.
    None,
    /// A constant, already converted to the column's type. An implicit or explicit NULL too.
    Value(Value),
    /// CURRENT_TIMESTAMP with the column's fraction digits.
    Now,
    /// Canonical text over columns of the row, computed for each.
    Expression(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IndexKind {
    Primary,
    Unique,
    Ordered,
    /// One entry for each word of a row ([`crate::fulltext`]).
    FullText(TextParser),
    /// One entry for each element of an array of a row ([`crate::elements`]).
    Elements(Elements),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexSchema {
    pub id: IndexId,
    /// `PRIMARY` for the primary key.
    pub name: String,
    pub kind: IndexKind,
    pub parts: Vec<IndexPart>,
    /// USING HASH: no ordered index is kept (primary and unique only).
    pub hash_only: bool,
    /// The index table of a unique index.
    pub entry_table: Option<TableId>,
    pub comment: String,
    /// Kept up to date, and not used to read unless `use_invisible_indexes` is on.
    #[serde(default)]
    pub invisible: bool,
    /// UNIQUE … GLOBAL, of a partitioned table: unique among the rows of all partitions, whatever columns it has.
    #[serde(default)]
    pub global: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexPart {
    /// Position in `TableSchema::columns`.
    pub column: usize,
    /// Characters (text) or bytes (binary) of a prefix index.
    pub prefix: Option<u32>,
    pub descending: bool,
}

impl Column {
    /// A column without default, comment or ON UPDATE.
    pub fn new(id: ColumnId, name: impl Into<String>, ty: DataType, nullable: bool) -> Self {
        Column {
            id,
            name: name.into(),
            ty,
            nullable,
            default: if nullable { ColumnDefault::Value(Value::Null) } else { ColumnDefault::None },
            on_update_now: false,
            comment: String::new(),
            initial: Value::Null,
            generated: None,
            invisible: false,
        }
    }

    /// Whether it holds the expression of a key.
    pub fn is_of_key(&self) -> bool {
        self.generated.as_ref().is_some_and(|generated| generated.of_key)
    }
}

impl IndexSchema {
    /// The primary key over whole columns at these positions.
    pub fn primary(columns: &[usize]) -> Self {
        let part = |&column| IndexPart { column, prefix: None, descending: false };
        IndexSchema {
            id: IndexId::PRIMARY,
            name: "PRIMARY".into(),
            kind: IndexKind::Primary,
            parts: columns.iter().map(part).collect(),
            hash_only: false,
            entry_table: None,
            comment: String::new(),
            invisible: false,
            global: false,
        }
    }

    /// Whether its keys are those of rows, in an order: one a row.
    pub fn is_ordered(&self) -> bool {
        !self.hash_only && !matches!(self.kind, IndexKind::FullText(_) | IndexKind::Elements(_))
    }

    /// Whether partitions keep entries for it.
    pub fn has_entries(&self) -> bool {
        !self.hash_only
    }

    pub fn is_full_text(&self) -> bool {
        matches!(self.kind, IndexKind::FullText(_))
    }

    /// The part that has a key for each element of an array.
    pub fn elements(&self) -> Option<Elements> {
        match self.kind {
            IndexKind::Elements(elements) => Some(elements),
            _ => None,
        }
    }

    /// Whether no two rows have equal keys, and each has one.
    pub fn is_unique(&self) -> bool {
        matches!(self.kind, IndexKind::Primary | IndexKind::Unique)
    }

    /// Whether it is declared unique: as primary key, UNIQUE, or UNIQUE over the elements of an array.
    pub fn forbids_duplicates(&self) -> bool {
        self.kind == IndexKind::Primary || self.is_guarded()
    }

    /// Whether an index table guards its keys.
    pub fn is_guarded(&self) -> bool {
        self.kind == IndexKind::Unique || self.elements().is_some_and(|elements| elements.unique)
    }

    /// Whether each leaf of a partitioned table has an index table for it.
    pub fn is_guarded_by_leaves(&self) -> bool {
        self.is_guarded() && !self.global
    }
}

impl TableSchema {
    /// A first version of a table, distributed by its primary key, with one layout. Checks nothing; what
    /// it does not ask for is as in `CREATE TABLE` without options.
    pub fn new(
        id: TableId,
        database: impl Into<String>,
        name: impl Into<String>,
        columns: Vec<Column>,
        indexes: Vec<IndexSchema>,
    ) -> Self {
        TableSchema {
            id,
            version: 1,
            database: database.into(),
            name: name.into(),
            distribution: indexes[0].parts.iter().map(|part| part.column).collect(),
            layouts: vec![Arc::new(RowLayout::for_columns(0, &columns))],
            columns: columns.into(),
            indexes: indexes.into(),
            hidden_key: false,
            auto_increment: None,
            collation: Collation::DEFAULT,
            comment: String::new(),
            explicit_partitioning: false,
            fully_replicated: false,
            checks: Vec::new(),
            entry_of: None,
            foreign_keys: Vec::new(),
            storage: Default::default(),
            partitioning: None,
            leaf_of: None,
            leaf_tables: Memo::default(),
        }
    }

    /// Whether SQL's expressions decide what is written or whether: a CHECK that is enforced, a generated column, a default that is
    /// computed for each row. Whoever writes rows evaluates them or refuses to write.
    pub fn has_row_rules(&self) -> bool {
        let computed = |c: &Column| c.generated.is_some() || matches!(c.default, ColumnDefault::Expression(_));
        self.checks.iter().any(|check| check.enforced) || self.columns.iter().any(computed)
    }

    /// Position of a column by its id.
    pub fn column_position(&self, id: ColumnId) -> Option<usize> {
        self.columns.iter().position(|column| column.id == id)
    }

    /// Adds the layout of the present columns as the newest, after columns were added, dropped, moved or changed; rows written before keep theirs.
    pub fn add_layout(&mut self) {
        let version = u16::try_from(self.layouts.len()).expect("at most 65 536 layouts");
        self.layouts.push(Arc::new(RowLayout::for_columns(version, &self.columns)));
    }

    pub fn primary(&self) -> &IndexSchema {
        &self.indexes[0]
    }

    pub fn index(&self, id: IndexId) -> Option<&IndexSchema> {
        self.indexes.iter().find(|i| i.id == id)
    }

    pub fn index_by_name(&self, name: &str) -> Option<&IndexSchema> {
        self.indexes.iter().find(|i| i.name.eq_ignore_ascii_case(name))
    }

    pub fn column(&self, name: &str) -> Option<(usize, &Column)> {
        self.columns.iter().enumerate().find(|(_, c)| c.name.eq_ignore_ascii_case(name))
    }

    /// Columns that a statement can name: all but those of keys on expressions and the hidden key.
    pub fn visible_columns(&self) -> &[Column] {
        let shown = &self.columns[..self.columns.len() - usize::from(self.hidden_key)];
        let of_keys = shown.iter().rev().take_while(|column| column.is_of_key()).count();
        &shown[..shown.len() - of_keys]
    }

    /// The layout that new rows get, and its version number as stored in row headers.
    pub fn layout(&self) -> &Arc<RowLayout> {
        self.layouts.last().expect("a table has a layout")
    }

    /// The layout a stored row was written with.
    pub fn layout_of(&self, version: u16) -> &Arc<RowLayout> {
        &self.layouts[version as usize]
    }

    /// How the keys of `index` are encoded. Cache the result: it allocates.
    pub fn key_def(&self, index: &IndexSchema) -> KeyDef {
        let mut def = KeyDef::new(self, &index.parts);
        if let Some(elements) = index.elements() {
            let part = usize::from(elements.part);
            def.parts[part] = elements.key_part(index.parts[part].column);
        }
        def
    }

    /// How the distribution columns are encoded; its bytes are hashed to a bucket. Each is encoded as in the primary key (prefix and
    /// direction included): so these bytes can be cut out of an encoded primary key, and rows with equal primary keys share a bucket.
    pub fn distribution_def(&self) -> KeyDef {
        let of_primary = |&column: &usize| {
            let part = self.primary().parts.iter().find(|p| p.column == column);
            part.copied().unwrap_or(IndexPart { column, prefix: None, descending: false })
        };
        let parts: Vec<IndexPart> = self.distribution.iter().map(of_primary).collect();
        KeyDef::new(self, &parts)
    }
}

#[cfg(test)]
pub(crate) mod tests;
