//! What is dumped: databases, tables and views, as the statements that the server shows for them.
//!
//! Each table and view is read once without rows before its definition is: from then on the transaction uses it, and
//! DDL on it waits for the end of the dump. A view that cannot be read (1356: a table or column of it is gone) could
//! not be defined either, and is told apart here.

use crate::import::columns::nearest;
use crate::import::literal::quoted;
use crate::import::server::{code, told};
use mysql::prelude::Queryable;
use mysql::{Conn, Row, Value};

/// Databases that every server has.
const OWN: &[&str] = &["information_schema", "mysql", "performance_schema", "sys", "rauk"];

pub struct Wanted {
    /// `None`: all.
    pub database: Option<String>,
    /// Empty: all.
    pub tables: Vec<String>,
}

#[derive(Debug)]
pub struct Shown {
    pub database: String,
    pub name: String,
    /// The statement that makes it.
    pub create: String,
}

#[derive(Debug)]
pub struct Table {
    pub shown: Shown,
    /// Columns of the primary key, where reading in its order takes no sorting.
    pub order: Vec<String>,
}

#[derive(Debug)]
pub struct View {
    pub shown: Shown,
    /// Of the connection that has defined it.
    pub collation: String,
    /// Why it cannot be read.
    pub broken: Option<String>,
}

#[derive(Debug, Default)]
pub struct Schema {
    /// `database` is empty.
    pub databases: Vec<Shown>,
    pub tables: Vec<Table>,
    pub views: Vec<View>,
}

pub fn read(connection: &mut Conn, wanted: &Wanted) -> Result<Schema, String> {
    let mut schema = Schema::default();
    for name in databases(connection, wanted.database.as_deref())? {
        let create = shown(connection, &format!("SHOW CREATE DATABASE IF NOT EXISTS {}", quoted(&name)), &[1])?;
        let create = create.into_iter().next().expect("one column was asked for");
        connection.query_drop(format!("USE {}", quoted(&name))).map_err(|e| told(&e))?;
        for (table, is_view) in tables(connection, &name, &wanted.tables)? {
            match is_view {
                true => schema.views.push(view(connection, &name, &table)?),
                false => schema.tables.push(self::table(connection, &name, &table)?),
            }
        }
        schema.databases.push(Shown { database: String::new(), name, create });
    }
    Ok(schema)
}

fn databases(connection: &mut Conn, only: Option<&str>) -> Result<Vec<String>, String> {
    let names: Vec<String> =
        connection.query("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA ORDER BY 1").map_err(|e| told(&e))?;
    let is_own = |name: &str| OWN.iter().any(|own| own.eq_ignore_ascii_case(name));
    match only {
        None => Ok(names.into_iter().filter(|name| !is_own(name)).collect()),
        Some(only) if is_own(only) => Err(format!("'{only}' is the server's own database, which every server makes")),
        Some(only) if names.iter().any(|name| name == only) => Ok(vec![only.into()]),
        Some(only) => {
            let others: Vec<&str> = names.iter().map(String::as_str).filter(|name| !is_own(name)).collect();
            Err(match nearest(only, &others) {
                Some(near) => format!("there is no database '{only}'; did you mean '{near}'?"),
                None => format!("there is no database '{only}' (or this account may not see it)"),
            })
        }
    }
}

/// By name, and whether it is a view.
fn tables(connection: &mut Conn, database: &str, wanted: &[String]) -> Result<Vec<(String, bool)>, String> {
    let found: Vec<(String, String)> = connection
        .exec(
            "SELECT TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? ORDER BY 1",
            (database,),
        )
        .map_err(|e| told(&e))?;
    let found: Vec<(String, bool)> = found.into_iter().map(|(name, kind)| (name, kind == "VIEW")).collect();
    if wanted.is_empty() {
        return Ok(found);
    }
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    for name in wanted {
        if !names.contains(&name.as_str()) {
            let text = format!("there is no table {database}.{name}");
            return Err(match nearest(name, &names) {
                Some(near) => format!("{text}; did you mean '{near}'?"),
                None => text,
            });
        }
    }
    Ok(found.into_iter().filter(|(name, _)| wanted.contains(name)).collect())
}

fn table(connection: &mut Conn, database: &str, name: &str) -> Result<Table, String> {
    use_once(connection, name).map_err(|e| format!("table {database}.{name}: {}", told(&e)))?;
    let create = shown(connection, &format!("SHOW CREATE TABLE {}", quoted(name)), &[1])?;
    let create = create.into_iter().next().expect("one column was asked for");
    // A hash index has no order.
    let key: Vec<(String, String)> = connection
        .exec(
            "SELECT COLUMN_NAME, INDEX_TYPE FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = ? \
             AND TABLE_NAME = ? AND INDEX_NAME = 'PRIMARY' ORDER BY SEQ_IN_INDEX",
            (database, name),
        )
        .map_err(|e| told(&e))?;
    let order = match key.iter().all(|(_, kind)| kind == "BTREE") {
        true => key.into_iter().map(|(column, _)| column).collect(),
        false => Vec::new(),
    };
    Ok(Table { shown: Shown { database: database.into(), name: name.into(), create }, order })
}

fn view(connection: &mut Conn, database: &str, name: &str) -> Result<View, String> {
    let broken = match use_once(connection, name) {
        Ok(()) => None,
        Err(error) if matches!(code(&error), Some(1356 | 1462)) => Some(told(&error)),
        // It can be defined by who may, whoever may read it.
        Err(error) if matches!(code(&error), Some(1142 | 1143 | 1449)) => None,
        Err(error) => return Err(format!("view {database}.{name}: {}", told(&error))),
    };
    let texts = shown(connection, &format!("SHOW CREATE VIEW {}", quoted(name)), &[1, 3])?;
    let [create, collation] = <[String; 2]>::try_from(texts).expect("two columns were asked for");
    Ok(View { shown: Shown { database: database.into(), name: name.into(), create }, collation, broken })
}

fn use_once(connection: &mut Conn, name: &str) -> Result<(), mysql::Error> {
    connection.query_drop(format!("SELECT 1 FROM {} LIMIT 0", quoted(name)))
}

/// Columns of the only row of SHOW CREATE.
fn shown(connection: &mut Conn, statement: &str, columns: &[usize]) -> Result<Vec<String>, String> {
    let row: Option<Row> = connection.query_first(statement).map_err(|e| format!("{statement}: {}", told(&e)))?;
    let values = row.map(Row::unwrap_raw).unwrap_or_default();
    let text = |at: &usize| match values.get(*at) {
        Some(Some(Value::Bytes(text))) => String::from_utf8(text.clone()).ok(),
        _ => None,
    };
    let texts: Vec<String> = columns.iter().filter_map(text).collect();
    match texts.len() == columns.len() {
        true => Ok(texts),
        false => Err(format!("{statement}: the server does not show the definition to this account")),
    }
}
