//! Virtual tables: information_schema, performance_schema, mysql and rauk.
//!
//! A table is a line in a list: its columns in a small notation, and a function that gives its rows. Rows are made when they are read, from the catalog
//! and from live state, through the eyes of the reading session: what its account may not know of is left out.
//!
//! The notation: `NAME type`, with `?` behind the type when it may be NULL. Types: `b64` text compared by code points (names of databases and
//! tables), `s64` text without case, `c64` CHAR, `y`, `z` and `x` TEXT, MEDIUMTEXT and LONGTEXT, `j` JSON, `u` and `i` BIGINT unsigned and signed, `m` and `n`
//! INT, `w` TINYINT, `d` DECIMAL(9,6), `f` FLOAT, `g` DOUBLE, `t` DATETIME, `p` TIMESTAMP, `q` TIMESTAMP(6). Names, order and types are MySQL 8's, but that
//! an ENUM or SET there is text here, and a column that MySQL types as `binary(0)`, since it is always NULL, is text too.

mod catalog;
mod cluster;
mod extensions;
mod innodb;
mod keys;
mod keywords;
mod locks;
mod performance;
mod privileges;
mod rauk;
mod roles;
mod server;
mod spatial;
mod sys;
mod views;

use super::errors;
use super::lookup::Viewer;
use super::users::AccountRecord;
use crate::lookup::VirtualTable;
use rauk_node::runtime::BoxFuture;
use rauk_types::{
    Collation, Column, ColumnDefault, ColumnId, DataType, MysqlError, TableId, TableSchema, TypeKind, Value,
};
use std::sync::{Arc, OnceLock};

pub(crate) use catalog::{
    column_extra, column_key, column_privileges, current_timestamp, default_text, visible_databases,
};
pub(crate) use innodb::session_of;
pub(crate) use keys::{PartRow, declared, parts};
pub(crate) use performance::truncate;
pub(crate) use server::{all_process_rows, status_list};
pub(crate) use sys::{SYS, view as sys_view, views as sys_views};
pub(crate) use views::{schema_of as schema_of_view, visible as visible_views};

pub(crate) const INFORMATION_SCHEMA: &str = "information_schema";
pub(crate) const PERFORMANCE_SCHEMA: &str = "performance_schema";
pub(crate) const DATABASES: &[&str] = &[INFORMATION_SCHEMA, "mysql", PERFORMANCE_SCHEMA, "rauk", SYS];

pub(crate) type Rows = Result<Vec<Vec<Value>>, MysqlError>;
pub(crate) type RowsOf = fn(&Viewer, &Hints<'_>) -> Rows;

/// Constants that WHERE compares TABLE_SCHEMA and TABLE_NAME with: rows that differ need not be made.
#[derive(Clone, Copy, Default)]
pub(crate) struct Hints<'a> {
    pub schema: Option<&'a str>,
    pub table: Option<&'a str>,
}

/// A virtual table: database, name, columns, rows.
pub(crate) struct Definition {
    pub database: &'static str,
    pub name: &'static str,
    pub columns: &'static str,
    pub rows: RowsOf,
}

struct Registered {
    definition: &'static Definition,
    schema: Arc<TableSchema>,
}

fn registry() -> &'static Vec<Registered> {
    static REGISTRY: OnceLock<Vec<Registered>> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        [
            catalog::TABLES,
            extensions::TABLES,
            innodb::TABLES,
            keys::TABLES,
            keywords::TABLES,
            locks::TABLES,
            privileges::TABLES,
            roles::TABLES,
            server::TABLES,
            rauk::TABLES,
            cluster::TABLES,
            views::TABLES,
            spatial::TABLES,
            sys::TABLES,
        ]
        .into_iter()
        .chain(performance::TABLES)
        .flat_map(|list| list.iter())
        .map(|definition| Registered { definition, schema: Arc::new(schema_of(definition)) })
        .collect()
    })
}

fn schema_of(definition: &Definition) -> TableSchema {
    let columns = definition.columns.split(',').enumerate().map(|(at, column)| {
        let (name, ty) = column.trim().rsplit_once(' ').expect("a column has a name and a type");
        let (ty, nullable) = match ty.strip_suffix('?') {
            Some(ty) => (ty, true),
            None => (ty, false),
        };
        Column {
            id: ColumnId(at as u16),
            name: name.to_string(),
            ty: type_of(ty),
            nullable,
            default: ColumnDefault::Value(Value::Null),
            on_update_now: false,
            comment: String::new(),
            initial: Value::Null,
            generated: None,
            invisible: false,
        }
    });
    TableSchema {
        id: TableId(0),
        version: 0,
        database: definition.database.to_string(),
        name: definition.name.to_string(),
        columns: columns.collect(),
        indexes: Default::default(),
        distribution: Vec::new(),
        hidden_key: false,
        auto_increment: None,
        collation: Collation::Utf8mb4GeneralCi,
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
        layouts: Vec::new(),
    }
}

fn type_of(notation: &str) -> DataType {
    let length = || notation[1..].parse().expect("text has a length");
    let text = |kind| DataType { collation: Collation::Utf8mb4GeneralCi, ..DataType::new(kind) };
    match notation.as_bytes()[0] {
        b'b' => DataType::varchar(length(), Collation::Utf8mb4Bin),
        b's' => DataType::varchar(length(), Collation::Utf8mb4GeneralCi),
        b'c' => DataType { length: length(), ..text(TypeKind::Char) },
        b'y' => text(TypeKind::Text),
        b'z' => text(TypeKind::MediumText),
        b'x' => text(TypeKind::LongText),
        b'j' => DataType::new(TypeKind::Json),
        b'n' => DataType::new(TypeKind::Int),
        b'm' => DataType { unsigned: true, ..DataType::new(TypeKind::Int) },
        b'w' => DataType::new(TypeKind::TinyInt),
        b'd' => DataType::decimal(9, 6),
        b'f' => DataType::new(TypeKind::Float),
        b'g' => DataType::DOUBLE,
        b'p' => DataType::new(TypeKind::Timestamp),
        b'q' => DataType { scale: 6, ..DataType::new(TypeKind::Timestamp) },
        b'u' => DataType::BIGINT_UNSIGNED,
        b'i' => DataType::BIGINT,
        b't' => DataType::new(TypeKind::DateTime),
        other => unreachable!("no type is written {}", other as char),
    }
}

#[derive(Clone)]
struct SystemTable {
    registered: &'static Registered,
    viewer: Viewer,
}

impl SystemTable {
    /// Whether it tells who is connected, which in a cluster is asked of all nodes.
    fn lists_sessions(&self) -> bool {
        self.registered.definition.name.eq_ignore_ascii_case("PROCESSLIST")
    }

    /// Whether it tells how many rows stored tables have, which in a cluster other nodes know.
    fn counts_rows(&self) -> bool {
        let Definition { database, name, .. } = self.registered.definition;
        *database == INFORMATION_SCHEMA && ["TABLES", "PARTITIONS", "STATISTICS"].contains(name)
    }
}

impl VirtualTable for SystemTable {
    fn schema(&self) -> &Arc<TableSchema> {
        &self.registered.schema
    }

    fn rows(&self, schema_hint: Option<&str>, table_hint: Option<&str>) -> Rows {
        (self.registered.definition.rows)(&self.viewer, &Hints { schema: schema_hint, table: table_hint })
    }

    fn gather(&self, schema_hint: Option<&str>, table_hint: Option<&str>) -> BoxFuture<Rows> {
        match cluster::told(self.registered.definition) {
            Some((wanted, rows)) => {
                let viewer = self.viewer.clone();
                Box::pin(async move {
                    let told = viewer.engine.database.reports(wanted).await;
                    rows(&viewer, &told)
                })
            }
            None if locks::is_listed(self.registered.definition) => {
                let (definition, viewer) = (self.registered.definition, self.viewer.clone());
                Box::pin(async move { locks::gather(definition, &viewer).await })
            }
            None if self.lists_sessions() => {
                let viewer = self.viewer.clone();
                Box::pin(async move { Ok(server::all_process_rows(&viewer).await.0) })
            }
            None if self.counts_rows() => {
                let (own, hints) = (self.clone(), [schema_hint, table_hint].map(|hint| hint.map(str::to_string)));
                Box::pin(async move {
                    own.viewer.engine.database.gather_usage().await;
                    own.rows(hints[0].as_deref(), hints[1].as_deref())
                })
            }
            None => {
                let rows = self.rows(schema_hint, table_hint);
                Box::pin(async move { rows })
            }
        }
    }
}

/// The database's name as it is kept: those of the two schemas have no case.
pub(crate) fn canonical_database(name: &str) -> String {
    for known in [INFORMATION_SCHEMA, PERFORMANCE_SCHEMA] {
        if name.eq_ignore_ascii_case(known) {
            return known.to_string();
        }
    }
    name.to_string()
}

pub(crate) fn is_system(database: &str) -> bool {
    DATABASES.contains(&canonical_database(database).as_str())
}

/// Nothing in a system database can be changed: 1044.
pub(crate) fn refuse_change(database: &str, account: &AccountRecord) -> Result<(), MysqlError> {
    if is_system(database) {
        return Err(errors::database_denied(&account.user, &account.host, database));
    }
    Ok(())
}

fn find(database: &str, name: &str) -> Result<&'static Registered, MysqlError> {
    // Names in the two schemas have no case.
    let folded = database == INFORMATION_SCHEMA || database == PERFORMANCE_SCHEMA;
    let same = |known: &str| if folded { known.eq_ignore_ascii_case(name) } else { known == name };
    let found = registry().iter().find(|r| r.definition.database == database && same(r.definition.name));
    found.ok_or_else(|| match database {
        INFORMATION_SCHEMA => MysqlError::new(
            rauk_types::error::codes::UNKNOWN_TABLE,
            format!("Unknown table '{}' in information_schema", name.to_uppercase()),
        ),
        _ => errors::no_such_table(database, name),
    })
}

/// A virtual table as the planner takes it. Errors 1109, 1146, 1142.
pub(crate) fn table(database: &str, name: &str, viewer: Viewer) -> Result<Arc<dyn VirtualTable>, MysqlError> {
    let registered = find(database, name)?;
    if !may_read(&viewer.account, registered.definition) {
        return Err(errors::table_denied("SELECT", &viewer.account.user, &viewer.account.host, name));
    }
    Ok(Arc::new(SystemTable { registered, viewer }))
}

/// Tables of performance_schema that everybody may read, as in MySQL.
const FOR_ALL: &[&str] = &[
    "global_status",
    "global_variables",
    "persisted_variables",
    "processlist",
    "session_account_connect_attrs",
    "session_status",
    "session_variables",
    "variables_info",
];

/// information_schema filters row by row; `mysql` and most of performance_schema need SELECT there, `rauk` PROCESS or SELECT there.
fn may_read(account: &AccountRecord, definition: &Definition) -> bool {
    use super::users::Privileges;
    let database = definition.database;
    match database {
        PERFORMANCE_SCHEMA => {
            FOR_ALL.contains(&definition.name)
                || account.on_database(database).contains(Privileges::SELECT)
                || account.on_table(database, definition.name).contains(Privileges::SELECT)
        }
        "mysql" | SYS => account.on_database(database).contains(Privileges::SELECT),
        "rauk" => {
            account.on_database(database).contains(Privileges::SELECT) || account.global.contains(Privileges::PROCESS)
        }
        _ => true,
    }
}

/// Error 1142: views of `sys` need SELECT there, beside what they read.
pub(crate) fn may_read_sys(account: &AccountRecord, host: &str, name: &str) -> Result<(), MysqlError> {
    use super::users::Privileges;
    let select = Privileges::SELECT;
    match account.on_database(SYS).contains(select) || account.on_table(SYS, name).contains(select) {
        true => Ok(()),
        false => Err(errors::table_denied("SELECT", &account.user, host, name)),
    }
}

/// The definition of a virtual table. Errors 1109, 1146.
pub(crate) fn schema(database: &str, name: &str) -> Result<Arc<TableSchema>, MysqlError> {
    Ok(find(database, name)?.schema.clone())
}

/// All virtual tables of a database, by name.
pub(crate) fn schemas(database: &str) -> Vec<Arc<TableSchema>> {
    let mut tables: Vec<Arc<TableSchema>> =
        registry().iter().filter(|r| r.definition.database == database).map(|r| r.schema.clone()).collect();
    tables.sort_by(|a, b| a.name.cmp(&b.name));
    tables
}

// Values in rows

pub(crate) fn s(text: impl Into<String>) -> Value {
    Value::Str(text.into())
}

pub(crate) fn u(number: impl Into<u64>) -> Value {
    Value::UInt(number.into())
}

pub(crate) fn yes(condition: bool) -> Value {
    Value::from(if condition { "YES" } else { "NO" })
}

/// No rows: tables of what Rauk does not have.
pub(crate) fn none(_: &Viewer, _: &Hints<'_>) -> Rows {
    Ok(Vec::new())
}

/// A time in UTC microseconds as the server's clock shows it.
pub(crate) fn datetime(micros: i64) -> Value {
    let Ok(timestamp) = jiff::Timestamp::from_microsecond(micros) else { return Value::Null };
    civil(timestamp.to_zoned(jiff::tz::TimeZone::system()).datetime())
}

/// A civil time as a value.
pub(crate) fn civil(time: jiff::civil::DateTime) -> Value {
    let date = rauk_types::Date::from_parts(time.year() as u16, time.month() as u8, time.day() as u8);
    let seconds = i64::from(time.hour()) * 3600 + i64::from(time.minute()) * 60 + i64::from(time.second());
    let micros = seconds * 1_000_000 + i64::from(time.subsec_nanosecond()) / 1000;
    Value::DateTime(rauk_types::DateTime::new(date, micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_well_formed_and_named_once() {
        let mut names: Vec<(&str, String)> =
            registry().iter().map(|r| (r.definition.database, r.definition.name.to_lowercase())).collect();
        names.sort();
        for pair in names.windows(2) {
            assert_ne!(pair[0], pair[1]);
        }
        for registered in registry() {
            assert!(DATABASES.contains(&registered.definition.database));
            for (at, column) in registered.schema.columns.iter().enumerate() {
                assert_eq!(registered.schema.column(&column.name).map(|(found, _)| found), Some(at), "{}", column.name);
            }
        }
        assert_eq!(
            find(INFORMATION_SCHEMA, "nothing").map(|_| ()).unwrap_err().message,
            "Unknown table 'NOTHING' in information_schema"
        );
        assert!(find(INFORMATION_SCHEMA, "Tables").is_ok());
    }
}
