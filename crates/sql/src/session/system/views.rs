//! Views in information_schema, and a view as SHOW COLUMNS takes a table.
//!
//! The catalog keeps text. Types, nullability and defaults of a view's columns follow from its tables as they are now, so a view is bound for whoever asks for
//! them. One whose tables are gone has no columns to show: COLUMNS leaves it out, SHOW COLUMNS says 1356.

use super::{Definition, Hints, INFORMATION_SCHEMA, Rows, s, yes};
use crate::bind::view::{self, Described};
use crate::expr::type_zero;
use crate::expr::{self, BindContext};
use crate::memory::Memory;
use crate::session::lookup::{SessionLookup, Viewer};
use crate::session::users::Privileges;
use crate::session::variables::definition::type_by_name;
use rauk_types::{
    Collation, Column, ColumnDefault, ColumnId, DataType, MysqlError, TableId, TableSchema, TypeKind, Value, ViewCheck,
    ViewSchema, ViewSecurity,
};
use std::sync::Arc;

const I: &str = INFORMATION_SCHEMA;

pub(super) const TABLES: &[Definition] = &[
    Definition {
        database: I,
        name: "VIEWS",
        columns: "TABLE_CATALOG s64?, TABLE_SCHEMA b64?, TABLE_NAME b64?, VIEW_DEFINITION x?, CHECK_OPTION s8?, IS_UPDATABLE s3?, DEFINER s288?, SECURITY_TYPE s7?, CHARACTER_SET_CLIENT s64, COLLATION_CONNECTION s64",
        rows: views,
    },
    Definition {
        database: I,
        name: "VIEW_TABLE_USAGE",
        columns: "VIEW_CATALOG s64?, VIEW_SCHEMA b64?, VIEW_NAME b64?, TABLE_CATALOG s64?, TABLE_SCHEMA b64?, TABLE_NAME b64?",
        rows: view_table_usage,
    },
];

/// Views that the session may know of.
pub(crate) fn visible(viewer: &Viewer, hints: &Hints<'_>) -> Vec<Arc<ViewSchema>> {
    let databases = match hints.schema {
        Some(name) => vec![name.to_string()],
        None => viewer.engine.database.databases(),
    };
    let stored = databases.iter().flat_map(|database| viewer.engine.database.views(database));
    let of_sys = hints.schema.is_none_or(|name| name == super::SYS);
    let of_sys = super::sys_views().values().filter(|_| of_sys && viewer.account.sees_database(super::SYS)).cloned();
    let wanted = |view: &ViewSchema| hints.table.is_none_or(|name| view.name == name);
    let seen = |view: &ViewSchema| view.database == super::SYS || viewer.account.sees_table(&view.database, &view.name);
    stored.chain(of_sys).filter(|view| wanted(view) && seen(view)).collect()
}

fn described(viewer: &Viewer, view: &ViewSchema) -> Result<Described, MysqlError> {
    let context = BindContext {
        parameters: Vec::new(),
        collation: Collation::DEFAULT,
        sql_mode: Default::default(),
        variable_type: Some(type_by_name),
        user_variables: Default::default(),
        memory: Memory::default(),
        arrays: false,
        waits: Default::default(),
        switches: Default::default(),
        usual_switches: Default::default(),
    };
    view::describe(view, &SessionLookup::of_viewer(viewer), &context)
}

/// A view with its columns, as if it were a table without keys. Errors: 1356, 1449, 1462.
pub(crate) fn schema_of(viewer: &Viewer, view: &ViewSchema) -> Result<Arc<TableSchema>, MysqlError> {
    let columns = described(viewer, view)?.columns.into_iter().enumerate().map(|(at, column)| {
        let ty = shown_type(column.ty);
        let default = match column.default {
            Some(default @ (ColumnDefault::Value(_) | ColumnDefault::Now)) => default,
            _ if column.nullable => ColumnDefault::None,
            _ => ColumnDefault::Value(type_zero(&ty)),
        };
        Column {
            id: ColumnId(at as u16),
            name: column.name,
            ty,
            nullable: column.nullable,
            default,
            on_update_now: false,
            comment: String::new(),
            initial: Value::Null,
            generated: None,
            invisible: false,
        }
    });
    Ok(Arc::new(TableSchema {
        id: TableId(0),
        version: 0,
        database: view.database.clone(),
        name: view.name.clone(),
        columns: columns.collect(),
        indexes: Default::default(),
        distribution: Vec::new(),
        hidden_key: false,
        auto_increment: None,
        collation: view.collation,
        comment: String::from("VIEW"),
        explicit_partitioning: false,
        fully_replicated: false,
        checks: Vec::new(),
        entry_of: None,
        foreign_keys: Vec::new(),
        storage: Default::default(),
        partitioning: None,
        leaf_of: None,
        leaf_tables: Default::default(),
        layouts: Vec::new(),
    }))
}

/// The type of a column that an expression gives: NULL alone is binary(0), as in MySQL.
fn shown_type(ty: DataType) -> DataType {
    match ty.kind {
        TypeKind::Null => DataType { length: 0, ..DataType::new(TypeKind::Binary) },
        _ => expr::plain_type(ty),
    }
}

/// Rows of TABLES.
pub(super) fn tables(viewer: &Viewer, hints: &Hints<'_>) -> Vec<Vec<Value>> {
    let row = |view: Arc<ViewSchema>| {
        let mut row = vec![s("def"), s(&view.database), s(&view.name), s("VIEW")];
        row.resize(20, Value::Null);
        row.push(s("VIEW"));
        row
    };
    visible(viewer, hints).into_iter().map(row).collect()
}

fn views(viewer: &Viewer, hints: &Hints<'_>) -> Rows {
    let row = |view: Arc<ViewSchema>| {
        let updatable = described(viewer, &view).is_ok_and(|described| described.is_updatable);
        let shows = viewer.account.on_table(&view.database, &view.name).contains(Privileges::SHOW_VIEW);
        vec![
            s("def"),
            s(&view.database),
            s(&view.name),
            // Without the privilege the text is empty, as in MySQL.
            s(if shows { &view.query } else { "" }),
            s(match view.check {
                ViewCheck::None => "NONE",
                ViewCheck::Local => "LOCAL",
                ViewCheck::Cascaded => "CASCADED",
            }),
            yes(updatable),
            s(format!("{}@{}", view.definer.0, view.definer.1)),
            s(match view.security {
                ViewSecurity::Definer => "DEFINER",
                ViewSecurity::Invoker => "INVOKER",
            }),
            s(&view.charset),
            s(view.collation.name()),
        ]
    };
    Ok(visible(viewer, hints).into_iter().map(row).collect())
}

/// TABLE_SCHEMA and TABLE_NAME are those of the tables that views use, so what WHERE says of them says nothing of the views.
fn view_table_usage(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let mut rows = Vec::new();
    for view in visible(viewer, &Hints::default()) {
        let Ok(described) = described(viewer, &view) else { continue };
        for (database, name) in described.tables {
            if viewer.account.sees_table(&database, &name) {
                rows.push(vec![s("def"), s(&view.database), s(&view.name), s("def"), s(database), s(name)]);
            }
        }
    }
    Ok(rows)
}
