//! Memory as its operator meets it: limits that are refused, and warnings before it is full.

use crate::common::{Rauk, number, rauk_command, run};
use crate::process::refusal;
use mysql::prelude::Queryable;
use mysql::{Conn, params};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

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

/// Rows until so many per cent of the limit are used; gives the next number.
fn fill_to(connection: &mut Conn, table: &str, mut from: u64, percent: u64) -> u64 {
    let used = "SELECT memory_used * 100 DIV memory_limit FROM rauk.nodes";
    while number(connection, used) < percent {
        fill(connection, table, from, 1000);
        from += 1000;
    }
    from
}

fn until_health(server: &Rauk, colour: &str) -> String {
    let began = Instant::now();
    loop {
        let page = server.http("/health");
        if page.contains(&format!("\"health\":\"{colour}\"")) {
            assert!(page.contains("200 OK") && page.contains("\"status\":\"ok\""), "it serves: {page}");
            return page;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "never {colour}: {page}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Each border is told once, wherever an operator looks, with the tables that fill memory; and so is its end.
#[test]
fn memory_pressure_is_told_before_memory_is_full() {
    let directory = data();
    let server = start(directory.path(), &["--memory-limit", "64MiB", "--durability", "relaxed"]);
    let mut connection = server.connect();
    for sql in [
        "CREATE DATABASE d",
        "CREATE TABLE d.still (id INT PRIMARY KEY, v VARCHAR(1000), KEY (v(20)))",
        "CREATE TABLE d.grows (id INT PRIMARY KEY, v VARCHAR(1000))",
        "CREATE TABLE d.empty (id INT PRIMARY KEY)",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    fill_to(&mut connection, "d.still", 0, 30);
    until_health(&server, "green");
    let next = fill_to(&mut connection, "d.grows", 0, 81);
    let page = until_health(&server, "yellow");
    for part in
        ["of this node's memory limit are used", "the largest tables are d.", "those that grew most in ", "d.grows +"]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("d.still +") && !page.contains("d.empty"), "{page}");
    let told = run(&mut connection, "SELECT status, reason FROM rauk.health");
    assert!(told.len() == 1 && told[0].starts_with("yellow | 8") && told[0].contains("d.still"), "{told:?}");
    assert_eq!(run(&mut connection, "SELECT memory_status FROM rauk.nodes"), ["yellow"]);
    let metrics = server.http("/metrics");
    assert!(metrics.contains("rauk_memory_pressure 1") && metrics.contains("rauk_health 1"), "{metrics}");
    let status = Command::new(env!("CARGO_BIN_EXE_rauk")).args(["status", "--port", &server.port.to_string()]).output();
    let status = String::from_utf8(status.expect("it runs").stdout).expect("text");
    assert!(status.starts_with("yellow: 8") && status.contains("%, yellow"), "{status}");
    let lines = |what: &str| server.said().lines().filter(|line| line.contains(what)).count();
    assert_eq!(lines("memory pressure is yellow"), 1, "{}", server.said());

    fill_to(&mut connection, "d.grows", next, 96);
    let page = until_health(&server, "red");
    assert!(page.contains("now: writes are refused from 98 %"), "{page}");
    assert_eq!(run(&mut connection, "SELECT memory_status FROM rauk.nodes"), ["red"]);
    assert_eq!(lines("memory pressure is red"), 1, "{}", server.said());

    connection.query_drop("TRUNCATE TABLE d.grows").expect("deletes work");
    until_health(&server, "green");
    let events =
        run(&mut connection, "SELECT level, what FROM rauk.events WHERE what LIKE 'memory pressure%' ORDER BY time");
    assert!(events[0].starts_with("warning | memory pressure is yellow: 8"), "{events:?}");
    assert!(events[1].starts_with("error | memory pressure is red: 9"), "{events:?}");
    // The rows of a truncated table go slice by slice, so a look in the middle may find yellow once more.
    let ends = match events.len() {
        3 => 1,
        4 => {
            assert!(events[2].starts_with("warning | memory pressure is yellow"), "{events:?}");
            2
        }
        _ => panic!("a border was told more than once: {events:?}"),
    };
    assert!(events[events.len() - 1].starts_with("info | memory pressure is green"), "{events:?}");
    assert_eq!((lines("memory pressure is yellow"), lines("memory pressure is red")), (ends, 1), "{}", server.said());
}
