//! The tables of a schema file, as a server of this version understands them.
//!
//! The file's definitions are given to a scratch server, and its `information_schema` says what came of them; so
//! there is no second parser of types here, and a definition that Rauk refuses is refused with Rauk's own words and
//! the file's line. Statements that neither make nor change tables (rows, views, triggers, users) are not run: they
//! do not change what rows take, and a dump may have a lot of them.

use super::values::{Column, KeyPart, Kind, Role};
use crate::import::literal::quoted;
use crate::import::migrate::check::words;
use crate::import::migrate::dump::{self, Statement};
use crate::import::server::{self, code, told};
use mysql::Conn;
use mysql::prelude::Queryable;
use std::collections::BTreeMap;
use std::path::Path;

/// No database is chosen.
const NO_DATABASE: u16 = 1046;

pub struct Table {
    pub database: String,
    pub name: String,
    pub columns: Vec<Column>,
    /// Leaves, if it is partitioned; 1 otherwise.
    pub leaves: u64,
    /// Unique indexes that are tables of their own.
    pub index_tables: usize,
    /// The most rows that its unique keys have values for, and the key.
    pub most: Option<(u64, String)>,
}

impl Table {
    pub fn shown(&self) -> String {
        format!("{}.{}", self.database, self.name)
    }

    pub fn quoted(&self) -> String {
        format!("{}.{}", quoted(&self.database), quoted(&self.name))
    }
}

/// Makes the tables of the file.
pub fn make(target: &mut Conn, path: &Path) -> Result<(), String> {
    let shown = path.display().to_string();
    let limit = server::packet(target)?;
    let found = dump::each(path, limit, |line, statement| {
        let at = |cause: &str| {
            format!(
                "{shown}:{line}: {cause}; correct it (rauk import --check {shown} lists everything that Rauk does not take)"
            )
        };
        let text = match statement {
            Statement::Use(name) => return use_database(target, name),
            Statement::Text(text) => text,
            Statement::Refused(_) => return Ok(()),
        };
        let words = words(text);
        if !matters(&words) {
            return Ok(());
        }
        let ran = match target.query_drop(text) {
            // A dump of one database does not name it; the file may.
            Err(error) if code(&error) == Some(NO_DATABASE) => {
                let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
                use_database(target, &stem.unwrap_or_else(|| "schema".into()))?;
                target.query_drop(text)
            }
            ran => ran,
        };
        match ran {
            // A variable of another server's does not change tables.
            Err(error) if words.first().is_some_and(|word| word == "SET") && code(&error).is_some() => Ok(()),
            ran => ran.map_err(|error| at(&told(&error))),
        }
    });
    found?;
    target.query_drop("SET foreign_key_checks = 0").map_err(|e| told(&e))
}

fn use_database(target: &mut Conn, name: &str) -> Result<(), String> {
    let name = quoted(name);
    let made = target.query_drop(format!("CREATE DATABASE IF NOT EXISTS {name}"));
    made.and_then(|()| target.query_drop(format!("USE {name}"))).map_err(|e| told(&e))
}

/// Whether a statement with these first words may make or change tables. What is not known is run: it is an error if
/// the server does not know it either.
fn matters(words: &[String]) -> bool {
    let word = |at: usize| words.get(at).map_or("", |word| word.trim_end_matches(';'));
    match word(0) {
        "INSERT" | "REPLACE" | "LOAD" | "UPDATE" | "DELETE" | "LOCK" | "UNLOCK" | "GRANT" | "REVOKE" | "ANALYZE"
        | "OPTIMIZE" | "START" | "BEGIN" | "COMMIT" | "SELECT" | "CALL" | "FLUSH" => false,
        "CREATE" | "ALTER" | "DROP" => !matches!(
            word(1).split('=').next().unwrap_or(""),
            "VIEW"
                | "OR"
                | "ALGORITHM"
                | "DEFINER"
                | "SQL"
                | "TRIGGER"
                | "PROCEDURE"
                | "FUNCTION"
                | "EVENT"
                | "USER"
                | "ROLE"
                | "SERVER"
                | "AGGREGATE"
        ),
        _ => true,
    }
}

/// All tables that there are.
pub fn tables(target: &mut Conn) -> Result<Vec<Table>, String> {
    let mut read = || -> Result<Vec<Table>, mysql::Error> {
        let names: Vec<(String, String)> = target.query(
            "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' AND \
             TABLE_SCHEMA NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema', 'rauk') ORDER BY 1, 2",
        )?;
        let mut tables = Vec::new();
        for (database, name) in names {
            tables.push(table(target, database, name)?);
        }
        Ok(tables)
    };
    read().map_err(|error| told(&error))
}

fn table(target: &mut Conn, database: String, name: String) -> Result<Table, mysql::Error> {
    let of = (&database, &name);
    type Described = (String, String, String, Option<u64>, String, Option<String>, Option<u64>);
    let described: Vec<Described> = target.exec(
        "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, CHARACTER_MAXIMUM_LENGTH, EXTRA, COLUMN_DEFAULT, SRS_ID FROM \
         information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION",
        of,
    )?;
    let is_now = |default: &Option<String>| default.as_ref().is_some_and(|text| text.starts_with("CURRENT_TIMESTAMP"));
    let mut columns: Vec<Column> = described
        .into_iter()
        // The server computes those.
        .filter(|(_, _, _, _, extra, ..)| !extra.contains("VIRTUAL") && !extra.contains("STORED"))
        .map(|(name, data_type, column_type, length, extra, default, srid)| {
            let kind = Kind::of(&data_type, &column_type, length, srid);
            let role = match extra.contains("auto_increment") || is_now(&default) {
                true => Role::Ascending,
                false => Role::Any,
            };
            Column { name, type_shown: column_type, kind, role }
        })
        .collect();
    type Part = (String, Option<String>, Option<u64>);
    let parts: Vec<Part> = target.exec(
        "SELECT INDEX_NAME, COLUMN_NAME, SUB_PART FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = ? AND \
         TABLE_NAME = ? AND NON_UNIQUE = 0 ORDER BY INDEX_NAME = 'PRIMARY' DESC, INDEX_NAME, SEQ_IN_INDEX",
        of,
    )?;
    let mut keys: BTreeMap<(bool, String), Vec<KeyPart>> = BTreeMap::new();
    for (index, column, prefix) in parts {
        keys.entry((index != "PRIMARY", index)).or_default().push((column, prefix));
    }
    let leaves: Option<u64> = target.exec_first(
        "SELECT COUNT(*) FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND \
         PARTITION_NAME IS NOT NULL",
        of,
    )?;
    let primary: Vec<Option<String>> =
        keys.get(&(false, "PRIMARY".into())).into_iter().flatten().map(|(column, _)| column.clone()).collect();
    // A unique index that has all columns of the primary key is kept with the rows: equal keys are in one partition.
    let apart =
        |key: &[KeyPart]| primary.is_empty() || !primary.iter().all(|own| key.iter().any(|(column, _)| column == own));
    let index_tables = keys.iter().filter(|((secondary, _), key)| *secondary && apart(key)).count();
    let mut most = None;
    for ((_, index), key) in &keys {
        if let Some(limit) = super::values::make_unique(&mut columns, key)
            && most.as_ref().is_none_or(|(least, _)| limit < *least)
        {
            most = Some((limit, index.clone()));
        }
    }
    Ok(Table { database, name, columns, leaves: leaves.unwrap_or(0).max(1), index_tables, most })
}

/// Constraints that sample rows need not satisfy: they cost no memory.
pub fn drop_checks(target: &mut Conn, table: &Table) -> Result<(), String> {
    let names: Vec<String> = target
        .exec(
            "SELECT CONSTRAINT_NAME FROM information_schema.TABLE_CONSTRAINTS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? \
             AND CONSTRAINT_TYPE = 'CHECK'",
            (&table.database, &table.name),
        )
        .map_err(|e| told(&e))?;
    for name in names {
        let sql = format!("ALTER TABLE {} ALTER CHECK {} NOT ENFORCED", table.quoted(), quoted(&name));
        target.query_drop(sql).map_err(|e| format!("{}: {}", table.shown(), told(&e)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_make_tables() {
        let does = |text: &str| matters(&words(text));
        for text in
            ["CREATE TABLE t (a INT)", "create unique index x on t (a)", "ALTER TABLE t ADD b INT", "USE d", "oops"]
        {
            assert!(does(text), "{text}");
        }
        for text in [
            "INSERT INTO t VALUES (1)",
            "/*!50001 CREATE VIEW v AS SELECT 1 */",
            "CREATE DEFINER=`a`@`b` TRIGGER x",
            "CREATE OR REPLACE VIEW v AS SELECT 1",
            "UNLOCK TABLES;",
            "grant all on *.* to x",
        ] {
            assert!(!does(text), "{text}");
        }
    }
}
