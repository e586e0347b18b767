//! The same statements on MariaDB and on Rauk, from the golden files in `conformance/` (sqllogictest's format).
//!
//! Every file runs on both servers and must give the answers that stand in it on both: the golden answer is checked against the reference each time. Where
//! Rauk differs on purpose, or MariaDB 10.11 differs from MySQL 8 (which is what Rauk follows), the record stands twice, under `onlyif rauk` and
//! `onlyif mariadb`, with a comment that says why. Sessions use `utf8mb4_unicode_ci`, since MariaDB 10.11 has no `utf8mb4_0900_ai_ci`.
//!
//! `RAUK_CONFORMANCE=file.slt` runs one file, `RAUK_CONFORMANCE=a.slt,b.slt` several.
//!
//! Rauk runs each file twice: with plans as it chooses them for few rows, and on a server where every block that can takes its rows in batches
//! (`exec/vector` of the crate `sql`). Files that show plans run once.
//!
//! `$DIR` in a statement is a directory in which the server may use files. To LOAD DATA LOCAL the client gives the *name* of the file as its content.

use crate::common::{Rauk, rauk_command, text};
use mysql::prelude::Queryable;
use mysql::{Conn, LocalInfileHandler, Value};
use rauk_differential::run::servers::MariaDb;
use sqllogictest::{DB, DBOutput, DefaultColumnType, Runner};
use std::io::Write;
use std::path::{Path, PathBuf};

struct Client {
    connection: Conn,
    engine: &'static str,
    /// What `$DIR` stands for.
    directory: String,
}

/// Shown as `ERROR 1062 (23000): …`, so that `statement error 1062` matches.
#[derive(Debug)]
struct SqlError(String);

impl std::fmt::Display for SqlError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SqlError {}

impl From<mysql::Error> for SqlError {
    fn from(error: mysql::Error) -> Self {
        match error {
            mysql::Error::MySqlError(e) => SqlError(format!("ERROR {} ({}): {}", e.code, e.state, e.message)),
            other => SqlError(other.to_string()),
        }
    }
}

impl DB for Client {
    type Error = SqlError;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, SqlError> {
        let sql = sql.replace("$DIR", &self.directory);
        let mut result = self.connection.query_iter(sql)?;
        let types = vec![DefaultColumnType::Any; result.columns().as_ref().len()];
        if types.is_empty() {
            return Ok(DBOutput::StatementComplete(result.affected_rows()));
        }
        let mut rows = Vec::new();
        for row in result.by_ref() {
            let cell = |v: Option<Value>| match text(&v.unwrap_or(Value::NULL)) {
                text if text.is_empty() => "(empty)".to_string(),
                text => text,
            };
            rows.push(row?.unwrap_raw().into_iter().map(cell).collect());
        }
        Ok(DBOutput::Rows { types, rows })
    }

    fn engine_name(&self) -> &str {
        self.engine
    }
}

/// Runs a file in a database of its own.
fn run_file(
    connect: &dyn Fn() -> Conn,
    engine: &'static str,
    file: &Path,
    database: &str,
    files: &Path,
) -> Result<usize, String> {
    let directory = files.join(format!("{engine}-{database}"));
    std::fs::create_dir(&directory).map_err(|error| error.to_string())?;
    let directory = directory.display().to_string();
    let mut admin = connect();
    admin
        .query_drop(format!("CREATE DATABASE {database} CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci"))
        .map_err(|e| e.to_string())?;
    let open = || {
        let mut connection = connect();
        let prepared = connection
            .query_drop("SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci")
            .and_then(|()| connection.query_drop("SET time_zone = '+00:00'"))
            .and_then(|()| connection.query_drop(format!("USE {database}")));
        connection.set_local_infile_handler(Some(LocalInfileHandler::new(|name, file| file.write_all(name))));
        let directory = directory.clone();
        async move {
            prepared?;
            Ok(Client { connection, engine, directory })
        }
    };
    let records = sqllogictest::parse_file::<DefaultColumnType>(file).map_err(|e| e.to_string())?;
    let mut runner = Runner::new(open);
    runner.add_label(engine);
    let mut failures = Vec::new();
    let mut count = 0;
    for record in records {
        let counts = matches!(record, sqllogictest::Record::Statement { .. } | sqllogictest::Record::Query { .. });
        if let Err(error) = runner.run(record) {
            failures.push(error.display(false).to_string());
        }
        count += usize::from(counts);
    }
    if failures.is_empty() {
        Ok(count)
    } else {
        Err(format!("{} of {count} records differ on {engine}:\n{}", failures.len(), failures.join("\n\n")))
    }
}

/// Batches wherever there can be batches.
const BATCHES: &str = "batch_execution_cost_based=off";
/// Files whose answers are plans or the switches that choose them.
const SHOWS_PLANS: [&str; 1] = ["optimizer_switch.slt"];

#[test]
fn golden_files_hold_on_both_servers() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance");
    let only = std::env::var("RAUK_CONFORMANCE").ok();
    let mut files: Vec<PathBuf> = std::fs::read_dir(directory)
        .expect("golden files are there")
        .map(|e| e.expect("readable").path())
        .filter(|f| f.extension().is_some_and(|e| e == "slt"))
        .filter(|f| only.as_deref().is_none_or(|only| only.split(',').any(|name| f.ends_with(name))))
        .collect();
    files.sort();
    let data = tempfile::tempdir().expect("a temporary directory");
    let place = tempfile::tempdir().expect("a temporary directory");
    let mut command = rauk_command(data.path());
    command.arg("--secure-file-priv").arg(place.path());
    let rauk = Rauk::start_with(command).unwrap_or_else(|error| panic!("{error}"));
    let batches_data = tempfile::tempdir().expect("a temporary directory");
    let mut command = rauk_command(batches_data.path());
    command.arg("--secure-file-priv").arg(place.path());
    let batches = Rauk::start_with(command).unwrap_or_else(|error| panic!("{error}"));
    for server in [&rauk, &batches] {
        server.connect().query_drop("SET GLOBAL local_infile = ON").expect("root may");
    }
    batches.connect().query_drop(format!("SET GLOBAL optimizer_switch = '{BATCHES}'")).expect("root may");
    let mariadb = MariaDb::start().unwrap_or_else(|error| panic!("{error}"));
    let mut failures = Vec::new();
    let mut statements = 0;
    for (i, file) in files.iter().enumerate() {
        let database = format!("golden{i}");
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        match run_file(&|| mariadb.connect().expect("MariaDB answers"), "mariadb", file, &database, place.path()) {
            Ok(count) => statements += count,
            Err(error) => failures.push(format!("{name}: {error}")),
        }
        if let Err(error) = run_file(&|| rauk.connect(), "rauk", file, &database, place.path()) {
            failures.push(format!("{name}: {error}"));
        }
        if SHOWS_PLANS.contains(&name.as_str()) {
            continue;
        }
        let database = format!("batches{i}");
        if let Err(error) = run_file(&|| batches.connect(), "rauk", file, &database, place.path()) {
            failures.push(format!("{name}, in batches: {error}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    let missing = only.iter().flat_map(|only| only.split(',')).find(|name| !files.iter().any(|f| f.ends_with(name)));
    assert_eq!(missing, None, "RAUK_CONFORMANCE names a file that is not there");
    assert!(only.is_some() || statements >= 600, "only {statements} statements are compared");
    println!("{statements} statements gave the same answers on MariaDB and Rauk");
}
