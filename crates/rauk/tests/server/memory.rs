//! Memory as its operator meets it: limits that are refused.

use crate::common::{Rauk, rauk_command, run};
use crate::process::refusal;
use mysql::prelude::Queryable;
use mysql::{Conn, params};
use std::path::Path;

fn data() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn start(directory: &Path, arguments: &[&str]) -> Rauk {
    let mut command = rauk_command(directory);
    command.args(arguments);
    Rauk::start_with(command).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(directory: &Path, arguments: &[&str]) -> String {
    let mut command = rauk_command(directory);
    command.args(arguments);
    refusal(command)
}

/// Rows of about a thousand bytes.
fn fill(connection: &mut Conn, table: &str, from: u64, rows: u64) {
    for first in (from..from + rows).step_by(1000) {
        let values: Vec<String> = (first..first + 1000).map(|id| format!("({id}, REPEAT('x', 900))")).collect();
        connection.query_drop(format!("INSERT INTO {table} VALUES {}", values.join(", "))).expect("there is room");
    }
}

#[test]
fn a_limit_that_cannot_be_kept_is_refused() {
    let directory = data();
    let line = refused(directory.path(), &["--memory-limit", "1000TiB"]);
    assert!(line.contains("memory-limit: 1000TiB is more than the ") && line.contains("; give at most "), "{line}");
    assert!(std::fs::read_dir(directory.path()).expect("readable").next().is_none(), "nothing was made");

    let server = start(directory.path(), &["--memory-limit", "64MiB"]);
    let mut connection = server.connect();
    connection.query_drop("CREATE DATABASE d").expect("made");
    connection.query_drop("CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(1000))").expect("made");
    fill(&mut connection, "d.t", 0, 30_000);
    let error = connection.query_drop("SET GLOBAL rauk_memory_limit = '1000TiB'").expect_err("refused").to_string();
    assert!(error.contains("1231") && error.contains("of memory"), "{error}");
    connection.query_drop("SET GLOBAL rauk_memory_limit = '48MiB'").expect("a unit is taken");
    assert_eq!(run(&mut connection, "SELECT @@rauk_memory_limit"), ["50331648"]);
    assert!(server.stop().success());

    for _ in 0..2 {
        let line = refused(directory.path(), &["--memory-limit", "16MiB"]);
        assert!(line.contains("of rows and indexes, and the memory limit is 16MiB; give --memory-limit "), "{line}");
    }
    // What the error names is enough.
    let line = refused(directory.path(), &["--memory-limit", "16MiB"]);
    let enough =
        line.split("give --memory-limit ").nth(1).and_then(|rest| rest.split(' ').next()).expect("it is named");
    let server = start(directory.path(), &["--memory-limit", enough]);
    let mut connection = server.connect();
    let rows: Option<u64> =
        connection.exec_first("SELECT COUNT(*) FROM d.t WHERE id < :n", params! { "n" => 30_000 }).expect("read");
    assert_eq!(rows, Some(30_000));
    fill(&mut connection, "d.t", 30_000, 1000);
}
