//! Keys and constraints in information_schema.

use super::catalog::{shown_expression, stored_tables};
use super::{Definition, Hints, INFORMATION_SCHEMA, Rows, s, u, yes};
use crate::session::lookup::Viewer;
use crate::statistics::TableStatistics;
use rauk_types::foreign::{ParentKey, parent_key};
use rauk_types::{IndexKind, IndexSchema, TableSchema, Value};

const I: &str = INFORMATION_SCHEMA;

pub(super) const TABLES: &[Definition] = &[
    Definition {
        database: I,
        name: "STATISTICS",
        columns: "TABLE_CATALOG s64?, TABLE_SCHEMA b64?, TABLE_NAME b64?, NON_UNIQUE n, INDEX_SCHEMA b64?, INDEX_NAME s64?, SEQ_IN_INDEX m, COLUMN_NAME s64?, COLLATION s1?, CARDINALITY i?, SUB_PART i?, PACKED s64?, NULLABLE s3, INDEX_TYPE s11, COMMENT s8, INDEX_COMMENT s2048, IS_VISIBLE s3, EXPRESSION x?",
        rows: statistics,
    },
    Definition {
        database: I,
        name: "COLUMN_STATISTICS",
        columns: "SCHEMA_NAME b64, TABLE_NAME b64, COLUMN_NAME s64, HISTOGRAM j",
        rows: column_statistics,
    },
    Definition {
        database: I,
        name: "KEY_COLUMN_USAGE",
        columns: "CONSTRAINT_CATALOG s64?, CONSTRAINT_SCHEMA b64?, CONSTRAINT_NAME s64?, TABLE_CATALOG s64?, TABLE_SCHEMA b64?, TABLE_NAME b64?, COLUMN_NAME s64?, ORDINAL_POSITION m, POSITION_IN_UNIQUE_CONSTRAINT m?, REFERENCED_TABLE_SCHEMA b64?, REFERENCED_TABLE_NAME b64?, REFERENCED_COLUMN_NAME s64?",
        rows: key_column_usage,
    },
    Definition {
        database: I,
        name: "TABLE_CONSTRAINTS",
        columns: "CONSTRAINT_CATALOG s64?, CONSTRAINT_SCHEMA b64?, CONSTRAINT_NAME s64?, TABLE_SCHEMA b64?, TABLE_NAME b64?, CONSTRAINT_TYPE s11, ENFORCED s3",
        rows: table_constraints,
    },
    Definition {
        database: I,
        name: "REFERENTIAL_CONSTRAINTS",
        columns: "CONSTRAINT_CATALOG s64, CONSTRAINT_SCHEMA b64, CONSTRAINT_NAME s64?, UNIQUE_CONSTRAINT_CATALOG s64, UNIQUE_CONSTRAINT_SCHEMA b64, UNIQUE_CONSTRAINT_NAME s64?, MATCH_OPTION s7, UPDATE_RULE s11, DELETE_RULE s11, TABLE_NAME b64, REFERENCED_TABLE_NAME b64",
        rows: referential_constraints,
    },
    Definition {
        database: I,
        name: "CHECK_CONSTRAINTS",
        columns: "CONSTRAINT_CATALOG s64?, CONSTRAINT_SCHEMA b64?, CONSTRAINT_NAME s64, CHECK_CLAUSE x",
        rows: check_constraints,
    },
];

/// The indexes that a user declared.
pub(crate) fn declared(table: &TableSchema) -> impl Iterator<Item = &IndexSchema> {
    table.indexes.iter().filter(|index| !(table.hidden_key && index.kind == IndexKind::Primary))
}

/// Distinct values of the first `parts` columns of an index, as far as it is known: rows for a unique index; for others by
/// the statistics, or a guess.
pub(crate) fn cardinality(rows: u64, index: &IndexSchema, parts: usize, known: Option<&TableStatistics>) -> u64 {
    if index.is_unique() && parts == index.parts.len() {
        return rows;
    }
    if let Some(distinct) = known.and_then(|known| known.distinct(index.id, parts, rows)) {
        return (distinct.round() as u64).min(rows);
    }
    // Nothing is known of the values: ten rows a value and column.
    let missing = index.parts.len() - parts + usize::from(!index.is_unique());
    let guess = rows / 10u64.saturating_pow(missing.min(6) as u32);
    guess.max(u64::from(rows > 0))
}

/// One row for each part of an index, in MySQL's columns of STATISTICS from NON_UNIQUE on, without INDEX_SCHEMA.
pub(crate) struct PartRow {
    pub non_unique: bool,
    pub key_name: String,
    pub sequence: u64,
    /// `None`: the part is an expression.
    pub column: Option<String>,
    pub expression: Option<String>,
    descending: bool,
    /// Its entries have the order of the column.
    ordered: bool,
    cardinality: u64,
    pub prefix: Option<u32>,
    pub nullable: bool,
    pub kind: &'static str,
    pub comment: String,
    pub visible: bool,
}

impl PartRow {
    pub fn cardinality(&self) -> Value {
        if self.ordered { Value::Int(self.cardinality as i64) } else { Value::Null }
    }

    /// `A`, `D`, or nothing.
    pub fn collation(&self) -> Option<&'static str> {
        self.ordered.then_some(if self.descending { "D" } else { "A" })
    }
}

pub(crate) fn parts(viewer: &Viewer, table: &TableSchema) -> Vec<PartRow> {
    let database = &viewer.engine.database;
    let temporary = viewer.temporary.get(&table.database, &table.name).filter(|own| own.schema().id == table.id);
    let rows = temporary.map_or_else(|| database.table_usage(table.id).rows, |own| database.estimate_rows(own));
    let known = viewer.engine.known_statistics(table.id);
    let mut out = Vec::new();
    for index in declared(table) {
        for (at, part) in index.parts.iter().enumerate() {
            let column = &table.columns[part.column];
            out.push(PartRow {
                non_unique: !index.forbids_duplicates(),
                key_name: index.name.clone(),
                sequence: at as u64 + 1,
                column: (!column.is_of_key()).then(|| column.name.clone()),
                expression: column.generated.as_ref().filter(|g| g.of_key).map(|g| g.expression.clone()),
                descending: part.descending,
                ordered: !index.is_full_text(),
                cardinality: cardinality(rows, index, at + 1, known.as_deref()),
                prefix: part.prefix,
                nullable: column.nullable,
                kind: match index.kind {
                    IndexKind::FullText(_) => "FULLTEXT",
                    _ if index.hash_only => "HASH",
                    _ => "BTREE",
                },
                comment: index.comment.clone(),
                visible: !index.invisible,
            });
        }
    }
    out
}

fn statistics(viewer: &Viewer, hints: &Hints<'_>) -> Rows {
    let mut rows = Vec::new();
    for table in stored_tables(viewer, hints) {
        for part in parts(viewer, &table) {
            rows.push(vec![
                s("def"),
                s(&table.database),
                s(&table.name),
                Value::Int(i64::from(part.non_unique)),
                s(&table.database),
                s(&part.key_name),
                u(part.sequence),
                part.column.as_deref().map_or(Value::Null, s),
                part.collation().map_or(Value::Null, s),
                part.cardinality(),
                part.prefix.map_or(Value::Null, |p| Value::Int(i64::from(p))),
                Value::Null,
                s(if part.nullable { "YES" } else { "" }),
                s(part.kind),
                s(""),
                s(part.comment),
                yes(part.visible),
                part.expression.map_or(Value::Null, s),
            ]);
        }
    }
    Ok(rows)
}

fn column_statistics(viewer: &Viewer, hints: &Hints<'_>) -> Rows {
    let mut rows = Vec::new();
    for table in stored_tables(viewer, hints) {
        let Some(known) = viewer.engine.known_statistics(table.id) else { continue };
        for column in table.visible_columns() {
            let Some(histogram) = known.histograms.iter().find(|histogram| histogram.is_of(column)) else { continue };
            // What has no collation is in latin1_swedish_ci, as MySQL says it.
            let number = match column.ty.is_text() || column.ty.is_bytes() {
                true => column.ty.collation.mysql_id(),
                false => 8,
            };
            rows.push(vec![s(&table.database), s(&table.name), s(&column.name), s(histogram.json(number))]);
        }
    }
    Ok(rows)
}

fn key_column_usage(viewer: &Viewer, hints: &Hints<'_>) -> Rows {
    let mut rows = Vec::new();
    for table in stored_tables(viewer, hints) {
        for index in declared(&table).filter(|i| i.forbids_duplicates()) {
            // Expressions are no columns.
            let parts = index.parts.iter().enumerate().filter(|(_, part)| !table.columns[part.column].is_of_key());
            for (at, part) in parts {
                rows.push(vec![
                    s("def"),
                    s(&table.database),
                    s(&index.name),
                    s("def"),
                    s(&table.database),
                    s(&table.name),
                    s(&table.columns[part.column].name),
                    u(at as u64 + 1),
                    Value::Null,
                    Value::Null,
                    Value::Null,
                    Value::Null,
                ]);
            }
        }
        for key in &table.foreign_keys {
            for (at, (column, parent)) in key.positions(&table).into_iter().zip(&key.parent_columns).enumerate() {
                rows.push(vec![
                    s("def"),
                    s(&table.database),
                    s(&key.name),
                    s("def"),
                    s(&table.database),
                    s(&table.name),
                    s(&table.columns[column].name),
                    u(at as u64 + 1),
                    u(at as u64 + 1),
                    s(&key.parent_database),
                    s(&key.parent_table),
                    s(parent),
                ]);
            }
        }
    }
    Ok(rows)
}

fn referential_constraints(viewer: &Viewer, hints: &Hints<'_>) -> Rows {
    let mut rows = Vec::new();
    for table in stored_tables(viewer, hints) {
        for key in &table.foreign_keys {
            let unique =
                viewer.engine.database.table(&key.parent_database, &key.parent_table).ok().and_then(|parent| {
                    let columns = key.parent_positions(parent.schema())?;
                    match parent_key(parent.schema(), &columns)? {
                        ParentKey::Whole(id) => parent.schema().index(id).map(|index| index.name.clone()),
                        ParentKey::First(_) => None,
                    }
                });
            rows.push(vec![
                s("def"),
                s(&table.database),
                s(&key.name),
                s("def"),
                s(&key.parent_database),
                unique.map_or(Value::Null, s),
                s("NONE"),
                s(key.on_update.text()),
                s(key.on_delete.text()),
                s(&table.name),
                s(&key.parent_table),
            ]);
        }
    }
    Ok(rows)
}

fn table_constraints(viewer: &Viewer, hints: &Hints<'_>) -> Rows {
    let mut rows = Vec::new();
    for table in stored_tables(viewer, hints) {
        for index in declared(&table).filter(|i| i.forbids_duplicates()) {
            let kind = if index.kind == IndexKind::Primary { "PRIMARY KEY" } else { "UNIQUE" };
            rows.push(vec![
                s("def"),
                s(&table.database),
                s(&index.name),
                s(&table.database),
                s(&table.name),
                s(kind),
                s("YES"),
            ]);
        }
        for key in &table.foreign_keys {
            rows.push(vec![
                s("def"),
                s(&table.database),
                s(&key.name),
                s(&table.database),
                s(&table.name),
                s("FOREIGN KEY"),
                s("YES"),
            ]);
        }
        for check in &table.checks {
            let enforced = if check.enforced { "YES" } else { "NO" };
            rows.push(vec![
                s("def"),
                s(&table.database),
                s(&check.name),
                s(&table.database),
                s(&table.name),
                s("CHECK"),
                s(enforced),
            ]);
        }
    }
    Ok(rows)
}

fn check_constraints(viewer: &Viewer, hints: &Hints<'_>) -> Rows {
    let mut rows = Vec::new();
    for table in stored_tables(viewer, &Hints { schema: hints.schema, table: None }) {
        for check in &table.checks {
            let clause = shown_expression(&check.expression);
            rows.push(vec![s("def"), s(&table.database), s(&check.name), s(clause)]);
        }
    }
    Ok(rows)
}
