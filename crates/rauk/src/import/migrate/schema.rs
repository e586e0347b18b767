//! What a server has, as the statements that it shows for it.

use super::super::columns::Column;
use super::super::literal::{Kind, quoted};
use super::super::server::told;
use mysql::prelude::Queryable;
use mysql::{Conn, Row, Value};

#[derive(Clone, Debug)]
pub struct Item {
    /// `table`, `view`, …
    pub kind: &'static str,
    pub name: String,
    /// The statement that makes it, or why the server does not show it.
    pub create: Result<String, String>,
}

impl Item {
    pub fn label(&self, database: Option<&str>) -> String {
        match database {
            Some(database) => format!("{} {database}.{}", self.kind, self.name),
            None => format!("{} {}", self.kind, self.name),
        }
    }
}

/// Something in a database.
#[derive(Clone, Debug)]
pub struct Table {
    pub database: String,
    pub item: Item,
    /// Columns that take values. Empty for what has no rows.
    pub columns: Vec<Column>,
    /// Columns whose texts are shorter than their values.
    pub floats: Vec<String>,
    /// The only column of the primary key, if it is an integer.
    pub range_key: Option<String>,
    /// As the server estimates.
    pub rows: u64,
}

#[derive(Clone, Debug)]
pub struct Account {
    pub item: Item,
    pub grants: Result<Vec<String>, String>,
}

#[derive(Clone, Debug, Default)]
pub struct Schema {
    pub databases: Vec<Item>,
    pub tables: Vec<Table>,
    pub views: Vec<Table>,
    /// Sequences, triggers, routines, events.
    pub others: Vec<Table>,
    pub accounts: Vec<Account>,
}

const OWN: &[&str] = &["information_schema", "mysql", "performance_schema", "sys", "rauk"];
const OWN_ACCOUNTS: &[&str] = &["mysql.sys", "mysql.session", "mysql.infoschema", "mariadb.sys", "PUBLIC", ""];

/// Of one database, or of all but the server's own.
pub fn read(connection: &mut Conn, only: Option<&str>) -> Result<Schema, String> {
    let names: Vec<String> =
        connection.query("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA ORDER BY 1").map_err(|e| told(&e))?;
    let names: Vec<String> = match only {
        Some(only) if !names.iter().any(|name| name == only) => {
            return Err(format!("there is no database '{only}' (or this account may not see it)"));
        }
        Some(only) => vec![only.into()],
        None => names.into_iter().filter(|name| !OWN.contains(&name.to_lowercase().as_str())).collect(),
    };
    let mut schema = Schema::default();
    for database in names {
        let create = shown(connection, &format!("SHOW CREATE DATABASE IF NOT EXISTS {}", quoted(&database)), 1);
        schema.databases.push(Item { kind: "database", name: database.clone(), create });
        connection.query_drop(format!("USE {}", quoted(&database))).map_err(|e| told(&e))?;
        read_tables(connection, &database, &mut schema)?;
        read_others(connection, &database, &mut schema)?;
    }
    schema.accounts = read_accounts(connection);
    Ok(schema)
}

/// A column of the only row of SHOW CREATE.
fn shown(connection: &mut Conn, statement: &str, column: usize) -> Result<String, String> {
    let row: Option<Row> = connection.query_first(statement).map_err(|e| told(&e))?;
    match row.and_then(|row| row.unwrap_raw().into_iter().nth(column).flatten()) {
        Some(Value::Bytes(text)) => String::from_utf8(text).map_err(|_| "its definition is not UTF-8".into()),
        _ => Err("the other server does not show its definition to this account".into()),
    }
}

fn read_tables(connection: &mut Conn, database: &str, schema: &mut Schema) -> Result<(), String> {
    let found: Vec<(String, String, Option<u64>)> = connection
        .exec(
            "SELECT TABLE_NAME, TABLE_TYPE, TABLE_ROWS FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? ORDER BY 1",
            (database,),
        )
        .map_err(|e| told(&e))?;
    for (name, kind, rows) in found {
        let statement = format!("SHOW CREATE TABLE {}", quoted(&name));
        let kind = match kind.as_str() {
            "VIEW" => "view",
            "SEQUENCE" => "sequence",
            _ => "table",
        };
        let create = shown(connection, &statement, 1);
        let mut table = Table {
            database: database.into(),
            item: Item { kind, name: name.clone(), create },
            columns: Vec::new(),
            floats: Vec::new(),
            range_key: None,
            rows: rows.unwrap_or(0),
        };
        match kind {
            "view" => schema.views.push(table),
            "sequence" => schema.others.push(table),
            _ => {
                read_columns(connection, &mut table)?;
                schema.tables.push(table);
            }
        }
    }
    Ok(())
}

fn read_columns(connection: &mut Conn, table: &mut Table) -> Result<(), String> {
    let found: Vec<(String, String, String, String)> = connection
        .exec(
            "SELECT COLUMN_NAME, DATA_TYPE, EXTRA, COLUMN_KEY FROM information_schema.COLUMNS \
             WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION",
            (&table.database, &table.item.name),
        )
        .map_err(|e| told(&e))?;
    let key: Vec<&(String, String, String, String)> = found.iter().filter(|(.., key)| key == "PRI").collect();
    if let [(name, data_type, ..)] = key.as_slice()
        && matches!(data_type.to_lowercase().as_str(), "tinyint" | "smallint" | "mediumint" | "int" | "bigint")
    {
        table.range_key = Some(name.clone());
    }
    for (name, data_type, extra, _) in &found {
        let extra = extra.to_uppercase();
        if ["VIRTUAL GENERATED", "STORED GENERATED", "PERSISTENT"].iter().any(|word| extra.contains(word)) {
            continue;
        }
        if data_type.eq_ignore_ascii_case("float") {
            table.floats.push(name.clone());
        }
        table.columns.push(Column { name: name.clone(), kind: Kind::of(data_type), generated: false });
    }
    Ok(())
}

fn read_others(connection: &mut Conn, database: &str, schema: &mut Schema) -> Result<(), String> {
    // The kind, the query for names, and the column of SHOW CREATE that has the statement.
    let lists = [
        (
            "trigger",
            "SELECT TRIGGER_NAME, 'TRIGGER' FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = ? ORDER BY 1",
            2,
        ),
        (
            "routine",
            "SELECT ROUTINE_NAME, ROUTINE_TYPE FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = ? ORDER BY 1",
            2,
        ),
        ("event", "SELECT EVENT_NAME, 'EVENT' FROM information_schema.EVENTS WHERE EVENT_SCHEMA = ? ORDER BY 1", 3),
    ];
    for (kind, query, column) in lists {
        let found: Vec<(String, String)> = connection.exec(query, (database,)).map_err(|e| told(&e))?;
        for (name, word) in found {
            let create = shown(connection, &format!("SHOW CREATE {word} {}", quoted(&name)), column);
            let kind = match word.as_str() {
                "PROCEDURE" => "procedure",
                "FUNCTION" => "function",
                _ => kind,
            };
            schema.others.push(Table {
                database: database.into(),
                item: Item { kind, name, create },
                columns: Vec::new(),
                floats: Vec::new(),
                range_key: None,
                rows: 0,
            });
        }
    }
    Ok(())
}

/// Empty where the account may not read them; whoever wants users is told that there are none.
fn read_accounts(connection: &mut Conn) -> Vec<Account> {
    let users = |connection: &mut Conn, query: &str| connection.query::<(String, String), _>(query);
    let found = users(connection, "SELECT user, host FROM mysql.user WHERE is_role = 'N' ORDER BY 1, 2")
        .or_else(|_| users(connection, "SELECT user, host FROM mysql.user ORDER BY 1, 2"));
    let found = found.unwrap_or_default().into_iter().filter(|(user, _)| !OWN_ACCOUNTS.contains(&user.as_str()));
    let mut accounts = Vec::new();
    for (user, host) in found.collect::<Vec<_>>() {
        let name = format!("{}@{}", quoted(&user), quoted(&host));
        let create = shown(connection, &format!("SHOW CREATE USER {name}"), 0);
        let grants = connection.query(format!("SHOW GRANTS FOR {name}")).map_err(|e| told(&e));
        accounts.push(Account { item: Item { kind: "user", name, create }, grants });
    }
    accounts
}
