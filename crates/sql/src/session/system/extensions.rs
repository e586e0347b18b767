//! Tables of information_schema that say what engines add to others, and those of what Rauk has one fixed answer to.
//!
//! ENGINE_ATTRIBUTE and SECONDARY_ENGINE_ATTRIBUTE are refused in definitions, so the tables of extensions show NULL
//! for everything there is.

use super::catalog::{stored_tables, visible_databases};
use super::{Definition, Hints, INFORMATION_SCHEMA, Rows, none, s, views};
use crate::session::lookup::Viewer;
use rauk_types::Value;

const I: &str = INFORMATION_SCHEMA;

pub(super) const TABLES: &[Definition] = &[
    Definition {
        database: I,
        name: "SCHEMATA_EXTENSIONS",
        columns: "CATALOG_NAME b64?, SCHEMA_NAME b64?, OPTIONS s256?",
        rows: of_schemata,
    },
    Definition {
        database: I,
        name: "TABLES_EXTENSIONS",
        columns: "TABLE_CATALOG b64?, TABLE_SCHEMA b64?, TABLE_NAME b64, ENGINE_ATTRIBUTE j?, SECONDARY_ENGINE_ATTRIBUTE j?",
        rows: of_tables,
    },
    Definition {
        database: I,
        name: "COLUMNS_EXTENSIONS",
        columns: "TABLE_CATALOG b64, TABLE_SCHEMA b64, TABLE_NAME b64, COLUMN_NAME s64?, ENGINE_ATTRIBUTE j?, SECONDARY_ENGINE_ATTRIBUTE j?",
        rows: of_columns,
    },
    Definition {
        database: I,
        name: "TABLE_CONSTRAINTS_EXTENSIONS",
        columns: "CONSTRAINT_CATALOG b64?, CONSTRAINT_SCHEMA b64?, CONSTRAINT_NAME s64, TABLE_NAME b64, ENGINE_ATTRIBUTE j?, SECONDARY_ENGINE_ATTRIBUTE j?",
        rows: of_constraints,
    },
    Definition {
        database: I,
        name: "TABLESPACES_EXTENSIONS",
        columns: "TABLESPACE_NAME b268, ENGINE_ATTRIBUTE j?",
        rows: none,
    },
    Definition {
        database: I,
        name: "VIEW_ROUTINE_USAGE",
        columns: "TABLE_CATALOG b64?, TABLE_SCHEMA b64?, TABLE_NAME b64?, SPECIFIC_CATALOG b64?, SPECIFIC_SCHEMA b64?, SPECIFIC_NAME s64",
        rows: none,
    },
    Definition {
        database: I,
        name: "ROLE_ROUTINE_GRANTS",
        columns: "GRANTOR s97?, GRANTOR_HOST s256?, GRANTEE c32, GRANTEE_HOST c255, SPECIFIC_CATALOG s3, SPECIFIC_SCHEMA c64, SPECIFIC_NAME c64, ROUTINE_CATALOG s3, ROUTINE_SCHEMA c64, ROUTINE_NAME c64, PRIVILEGE_TYPE s27, IS_GRANTABLE s3",
        rows: none,
    },
    Definition {
        database: I,
        name: "RESOURCE_GROUPS",
        columns: "RESOURCE_GROUP_NAME s64, RESOURCE_GROUP_TYPE s6, RESOURCE_GROUP_ENABLED w, VCPU_IDS x?, THREAD_PRIORITY n",
        rows: resource_groups,
    },
    Definition {
        database: I,
        name: "OPTIMIZER_TRACE",
        columns: "QUERY s65535, TRACE s65535, MISSING_BYTES_BEYOND_MAX_MEM_SIZE n, INSUFFICIENT_PRIVILEGES w",
        rows: none,
    },
];

fn of_schemata(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    Ok(visible_databases(viewer).into_iter().map(|name| vec![s("def"), s(name), s("")]).collect())
}

fn of_tables(viewer: &Viewer, hints: &Hints<'_>) -> Rows {
    let tables = stored_tables(viewer, hints).into_iter().map(|table| (table.database.clone(), table.name.clone()));
    let views = views::visible(viewer, hints).into_iter().map(|view| view.full_name());
    let row = |(database, name): (String, String)| vec![s("def"), s(database), s(name), Value::Null, Value::Null];
    Ok(tables.chain(views).map(row).collect())
}

fn of_columns(viewer: &Viewer, hints: &Hints<'_>) -> Rows {
    let views = views::visible(viewer, hints).into_iter().filter_map(|view| views::schema_of(viewer, &view).ok());
    let mut rows = Vec::new();
    for table in stored_tables(viewer, hints).into_iter().chain(views) {
        let row = |name: &str| vec![s("def"), s(&table.database), s(&table.name), s(name), Value::Null, Value::Null];
        rows.extend(table.visible_columns().iter().map(|column| row(&column.name)));
    }
    Ok(rows)
}

/// MySQL lists the keys that are unique here, and neither foreign keys nor CHECKs.
fn of_constraints(viewer: &Viewer, hints: &Hints<'_>) -> Rows {
    let mut rows = Vec::new();
    for table in stored_tables(viewer, hints) {
        let unique = super::keys::declared(&table).filter(|index| index.is_unique());
        rows.extend(
            unique.map(|index| {
                vec![s("def"), s(&table.database), s(&index.name), s(&table.name), Value::Null, Value::Null]
            }),
        );
    }
    Ok(rows)
}

/// The two that every server has: work runs on all processors at the priority of the process.
fn resource_groups(_: &Viewer, _: &Hints<'_>) -> Rows {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let list = if processors > 1 { format!("0-{}", processors - 1) } else { "0".to_string() };
    let row = |name: &str, kind: &str| vec![s(name), s(kind), Value::Int(1), s(&list), Value::Int(0)];
    Ok(vec![row("USR_default", "USER"), row("SYS_default", "SYSTEM")])
}
