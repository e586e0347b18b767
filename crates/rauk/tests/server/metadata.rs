//! information_schema and SHOW as tools see them: columns as MySQL 8 has them, rows as MariaDB shows them.
//!
//! `metadata/columns.txt` has the columns of MySQL's tables: names, order, types and which may be NULL, as MySQL 8's
//! manual and DESCRIBE have them. `metadata/schema.sql` makes a schema with everything that both servers have; its rows
//! in the tables of information_schema and in the results of SHOW are compared by their keys, on the columns that both
//! servers have. `metadata/differences.txt` lists every difference with its reason; a line of it that is not needed is
//! an error too.

use crate::common::{Rauk, text};
use mysql::Conn;
use mysql::prelude::Queryable;
use rauk_differential::run::servers::MariaDb;
use std::collections::{BTreeMap, BTreeSet};

const DATABASE: &str = "metadata_rows";

/// Tables of which rows are compared: their keys, and which rows.
const COMPARED: &[(&str, &[&str], &str)] = &[
    ("SCHEMATA", &["SCHEMA_NAME"], "SCHEMA_NAME = 'metadata_rows'"),
    ("TABLES", &["TABLE_NAME"], "TABLE_SCHEMA = 'metadata_rows'"),
    ("COLUMNS", &["TABLE_NAME", "COLUMN_NAME"], "TABLE_SCHEMA = 'metadata_rows'"),
    ("STATISTICS", &["TABLE_NAME", "INDEX_NAME", "SEQ_IN_INDEX"], "TABLE_SCHEMA = 'metadata_rows'"),
    ("TABLE_CONSTRAINTS", &["TABLE_NAME", "CONSTRAINT_NAME"], "TABLE_SCHEMA = 'metadata_rows'"),
    ("KEY_COLUMN_USAGE", &["TABLE_NAME", "CONSTRAINT_NAME", "COLUMN_NAME"], "TABLE_SCHEMA = 'metadata_rows'"),
    ("REFERENTIAL_CONSTRAINTS", &["CONSTRAINT_NAME"], "CONSTRAINT_SCHEMA = 'metadata_rows'"),
    ("CHECK_CONSTRAINTS", &["CONSTRAINT_NAME"], "CONSTRAINT_SCHEMA = 'metadata_rows'"),
    ("VIEWS", &["TABLE_NAME"], "TABLE_SCHEMA = 'metadata_rows'"),
    ("PARTITIONS", &["TABLE_NAME"], "TABLE_SCHEMA = 'metadata_rows'"),
    ("USER_PRIVILEGES", &["GRANTEE", "PRIVILEGE_TYPE"], "GRANTEE LIKE '%er''@%' AND GRANTEE NOT LIKE '%mariadb%'"),
    ("SCHEMA_PRIVILEGES", &["GRANTEE", "PRIVILEGE_TYPE"], "TABLE_SCHEMA = 'metadata_rows'"),
    ("TABLE_PRIVILEGES", &["GRANTEE", "TABLE_NAME", "PRIVILEGE_TYPE"], "TABLE_SCHEMA = 'metadata_rows'"),
    ("COLUMN_PRIVILEGES", &["GRANTEE", "COLUMN_NAME", "PRIVILEGE_TYPE"], "TABLE_SCHEMA = 'metadata_rows'"),
    ("TRIGGERS", &["TRIGGER_NAME"], "TRIGGER_SCHEMA = 'metadata_rows'"),
    ("ROUTINES", &["SPECIFIC_NAME"], "ROUTINE_SCHEMA = 'metadata_rows'"),
    ("EVENTS", &["EVENT_NAME"], "EVENT_SCHEMA = 'metadata_rows'"),
];

/// Statements whose results are compared: a name for `differences.txt`, and the key.
const SHOWN: &[(&str, &str, &[&str])] = &[
    ("SHOW TABLES", "SHOW FULL TABLES FROM metadata_rows", &["Tables_in_metadata_rows"]),
    ("SHOW TABLE STATUS", "SHOW TABLE STATUS FROM metadata_rows", &["Name"]),
    ("SHOW COLUMNS", "SHOW FULL COLUMNS FROM metadata_rows.kinds", &["Field"]),
    ("SHOW COLUMNS", "SHOW FULL COLUMNS FROM metadata_rows.computed", &["Field"]),
    ("SHOW COLUMNS", "SHOW FULL COLUMNS FROM metadata_rows.a_view", &["Field"]),
    ("SHOW INDEX", "SHOW INDEX FROM metadata_rows.kinds", &["Key_name", "Seq_in_index"]),
    ("SHOW INDEX", "SHOW INDEX FROM metadata_rows.children", &["Key_name", "Seq_in_index"]),
    ("SHOW TRIGGERS", "SHOW TRIGGERS FROM metadata_rows", &["Trigger"]),
    ("SHOW EVENTS", "SHOW EVENTS FROM metadata_rows", &["Name"]),
    ("SHOW PROCEDURE STATUS", "SHOW PROCEDURE STATUS WHERE Db = 'metadata_rows'", &["Name"]),
    ("SHOW FUNCTION STATUS", "SHOW FUNCTION STATUS WHERE Db = 'metadata_rows'", &["Name"]),
];

type Rows = BTreeMap<String, BTreeMap<String, String>>;

/// Rows by their keys, each column by its name in upper case.
fn rows(connection: &mut Conn, sql: &str, keys: &[&str]) -> Rows {
    let result = connection.query_iter(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let names: Vec<String> = result.columns().as_ref().iter().map(|c| c.name_str().to_uppercase()).collect();
    let mut all = Rows::new();
    for row in result {
        let values = row.expect("a row").unwrap().into_iter().map(|value| text(&value));
        let row: BTreeMap<String, String> = names.iter().cloned().zip(values).collect();
        let key: Vec<&str> = keys.iter().map(|key| row[&key.to_uppercase()].as_str()).collect();
        let key = key.join(" ");
        assert!(all.insert(key.clone(), row).is_none(), "{sql}: two rows are {key}");
    }
    all
}

/// A line of `differences.txt`: `place | Rauk's value | MariaDB's value | reason`. `*` stands for any value.
struct Difference {
    place: String,
    rauk: String,
    mariadb: String,
}

fn differences() -> Vec<Difference> {
    let lines =
        include_str!("../metadata/differences.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let parse = |line: &str| {
        let parts: Vec<&str> = line.split(" | ").collect();
        let [place, rauk, mariadb, reason] = parts[..] else { panic!("a line has four parts: {line}") };
        assert!(!reason.trim().is_empty(), "a difference has a reason: {line}");
        Difference { place: place.into(), rauk: rauk.into(), mariadb: mariadb.into() }
    };
    lines.map(parse).collect()
}

/// `%` at an end of a pattern stands for anything there.
fn matches(pattern: &str, value: &str) -> bool {
    match (pattern.strip_prefix('%'), pattern.strip_suffix('%')) {
        _ if pattern == "*" => true,
        (Some(end), None) => value.ends_with(end),
        (None, Some(start)) => value.starts_with(start),
        _ => pattern == value,
    }
}

struct Comparison {
    known: Vec<Difference>,
    used: BTreeSet<usize>,
    failures: Vec<String>,
    cells: usize,
}

impl Comparison {
    fn cell(&mut self, place: &str, key: &str, rauk: &str, mariadb: &str) {
        self.cells += 1;
        if rauk == mariadb {
            return;
        }
        let is =
            |known: &Difference| known.place == place && matches(&known.rauk, rauk) && matches(&known.mariadb, mariadb);
        match self.known.iter().position(is) {
            Some(at) => _ = self.used.insert(at),
            None => self.failures.push(format!("{place} | {rauk} | {mariadb} |   (of {key})")),
        }
    }

    fn rows(&mut self, name: &str, rauk: &Rows, mariadb: &Rows) {
        let keys: BTreeSet<&String> = rauk.keys().chain(mariadb.keys()).collect();
        for key in keys {
            match (rauk.get(key), mariadb.get(key)) {
                (Some(ours), Some(theirs)) => {
                    for (column, value) in ours {
                        if let Some(other) = theirs.get(column) {
                            self.cell(&format!("{name}.{column}"), key, value, other);
                        }
                    }
                }
                (ours, theirs) => {
                    let shown = |row: Option<&BTreeMap<String, String>>| if row.is_some() { key.as_str() } else { "-" };
                    self.cell(&format!("{name} row"), key, shown(ours), shown(theirs));
                }
            }
        }
    }
}

fn make(connection: &mut Conn) {
    let sets = [
        "SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci".to_string(),
        "SET time_zone = '+00:00', sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'".to_string(),
        format!("CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci"),
        format!("USE {DATABASE}"),
    ];
    let statements = include_str!("../metadata/schema.sql").split(";\n").map(str::to_string);
    for statement in sets.into_iter().chain(statements).filter(|statement| !statement.trim().is_empty()) {
        connection.query_drop(&statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

#[test]
fn rows_are_those_of_mariadb() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let rauk = Rauk::start(data.path());
    let mariadb = MariaDb::start().unwrap_or_else(|error| panic!("{error}"));
    let (mut ours, mut theirs) = (rauk.connect(), mariadb.connect().expect("MariaDB answers"));
    make(&mut ours);
    make(&mut theirs);
    let mut all = Comparison { known: differences(), used: BTreeSet::new(), failures: Vec::new(), cells: 0 };
    for (table, keys, condition) in COMPARED {
        let sql = format!("SELECT * FROM information_schema.{table} WHERE {condition}");
        all.rows(table, &rows(&mut ours, &sql, keys), &rows(&mut theirs, &sql, keys));
    }
    for (name, sql, keys) in SHOWN {
        all.rows(name, &rows(&mut ours, sql, keys), &rows(&mut theirs, sql, keys));
    }
    for (at, known) in all.known.iter().enumerate().filter(|(at, _)| !all.used.contains(at)) {
        all.failures.push(format!(
            "line {at} of differences.txt is not needed: {} | {} | {}",
            known.place, known.rauk, known.mariadb
        ));
    }
    all.failures.sort();
    all.failures.dedup();
    assert!(all.failures.is_empty(), "{} differences:\n{}", all.failures.len(), all.failures.join("\n"));
    assert!(all.cells > 2000, "only {} cells are compared", all.cells);
}

/// A column of `columns.txt`.
#[derive(Debug, PartialEq, Eq)]
struct Column {
    name: String,
    ty: String,
    nullable: bool,
}

/// What stands in Rauk for a type of MySQL: text for ENUM, SET and for the BINARY(0) of columns that are always NULL.
fn expected(ty: &str) -> String {
    match ty {
        "enum" | "set" | "binary" => "varchar".to_string(),
        other => other.to_string(),
    }
}

#[test]
fn columns_are_those_of_mysql() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let rauk = Rauk::start(data.path());
    let mut connection = rauk.connect();
    let mut tables: BTreeMap<(String, String), Vec<Column>> = BTreeMap::new();
    let sql = "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, DATA_TYPE, CHARACTER_MAXIMUM_LENGTH, COLUMN_TYPE LIKE '%unsigned', IS_NULLABLE
        FROM information_schema.COLUMNS ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION";
    type Row = (String, String, String, String, Option<u64>, bool, String);
    for (database, table, name, ty, length, unsigned, nullable) in connection.query::<Row, _>(sql).expect("rows") {
        let length = length.filter(|_| matches!(ty.as_str(), "varchar" | "char"));
        let ty = match (length, unsigned) {
            (Some(length), _) => format!("{ty}({length})"),
            (None, true) => format!("{ty} unsigned"),
            (None, false) => ty,
        };
        let column = Column { name, ty, nullable: nullable == "YES" };
        tables.entry((database, table.to_uppercase())).or_default().push(column);
    }
    let mut failures = Vec::new();
    let mut database = String::new();
    let mut seen = 0;
    let lines =
        include_str!("../metadata/columns.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in lines {
        if let Some(name) = line.strip_prefix("database ") {
            database = name.to_string();
            continue;
        }
        let (table, columns) = line.split_once(": ").expect("a table and its columns");
        seen += 1;
        let Some(found) = tables.get(&(database.clone(), table.to_uppercase())) else {
            failures.push(format!("{database}.{table} is missing"));
            continue;
        };
        let names: Vec<&str> = columns.split(", ").map(|column| column.split(' ').next().expect("a name")).collect();
        let found_names: Vec<&str> = found.iter().map(|column| column.name.as_str()).collect();
        if names != found_names {
            failures.push(format!("{database}.{table} has {found_names:?}"));
            continue;
        }
        for (column, found) in columns.split(", ").zip(found) {
            let (_, ty) = column.split_once(' ').expect("a type");
            let (ty, nullable) = match ty.strip_suffix('?') {
                Some(ty) => (ty, true),
                None => (ty, false),
            };
            // A `~` says that Rauk has no value where MySQL has one always.
            let (ty, unknown) = match ty.strip_suffix('~') {
                Some(ty) => (ty, true),
                None => (ty, false),
            };
            let expected = expected(ty);
            let same = if expected == "varchar" { found.ty.starts_with("varchar") } else { expected == found.ty };
            if !same || found.nullable != (nullable || unknown) {
                failures.push(format!(
                    "{database}.{table}.{column}: is {} {}",
                    found.ty,
                    if found.nullable { "NULL" } else { "NOT NULL" }
                ));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(seen > 50);
}
