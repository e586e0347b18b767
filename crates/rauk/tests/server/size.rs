//! `rauk size`: predictions against what a server reports of a real load, and bad input.

use crate::common::{Rauk, number, rauk_command};
use mysql::Conn;
use mysql::prelude::Queryable;
use std::process::{Command, Output};

/// A table of few columns, one with two indexes and texts, one with a unique index, which is a table of its own, and
/// large rows.
const SCHEMA: &str = "\
CREATE DATABASE shop;
USE shop;
CREATE TABLE narrow (id BIGINT PRIMARY KEY, n INT NOT NULL);
CREATE TABLE users (
  id INT AUTO_INCREMENT PRIMARY KEY,
  name VARCHAR(80) NOT NULL,
  city VARCHAR(40) NOT NULL,
  score INT NOT NULL,
  twice INT AS (score + 1) STORED,
  level ENUM('new','known','old') NOT NULL,
  CHECK (score < 1000),
  KEY (score), KEY (city, score)
);
CREATE TABLE orders (
  code CHAR(20) NOT NULL,
  user INT NOT NULL,
  placed DATETIME NOT NULL,
  price DECIMAL(12,2) NOT NULL,
  note TEXT,
  PRIMARY KEY (user, placed),
  UNIQUE KEY (code),
  FOREIGN KEY (user) REFERENCES users (id)
);
INSERT INTO narrow VALUES (1, 1);
CREATE TABLE unused (id INT PRIMARY KEY);
";

const ROWS: u64 = 200_000;

fn size(directory: &std::path::Path, schema: &str, arguments: &[&str]) -> Output {
    let file = directory.join("shop.sql");
    std::fs::write(&file, schema).expect("writable");
    let mut command = Command::new(env!("CARGO_BIN_EXE_rauk"));
    command.arg("size").arg(file).args(arguments).output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

fn refused(schema: &str, arguments: &[&str]) -> String {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let output = size(directory.path(), schema, arguments);
    let failed = text(&output.stderr);
    assert!(!output.status.success() && failed.lines().count() == 1, "{failed}{}", text(&output.stdout));
    failed
}

/// `1.5 MiB` in bytes.
fn bytes(number: &str, unit: &str) -> f64 {
    let factor = match unit {
        "bytes" => 1.0,
        "KiB" => 1024.0,
        "MiB" => 1_048_576.0,
        _ => 1_073_741_824.0,
    };
    number.parse::<f64>().expect("a number") * factor
}

/// The column "memory" of a table's line.
fn predicted(said: &str, table: &str) -> f64 {
    let line = said.lines().find(|line| line.starts_with(table)).unwrap_or_else(|| panic!("{table}: {said}"));
    let cells: Vec<&str> = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    let (number, unit) = cells[4].split_once(' ').expect("a size");
    bytes(number, unit)
}

/// Rows as an application writes them: by a recipe that is not the one of the samples.
fn load(connection: &mut Conn, table: &str, value: impl Fn(u64) -> String) {
    for first in (0..ROWS).step_by(1000) {
        let values: Vec<String> = (first..first + 1000).map(&value).collect();
        connection.query_drop(format!("INSERT INTO {table} VALUES {}", values.join(", "))).expect("there is room");
    }
}

fn mixed(n: u64) -> u64 {
    let mut x = n.wrapping_add(0x1234_5678_9ABC);
    for _ in 0..3 {
        x ^= x >> 31;
        x = x.wrapping_mul(0x2545_F491_4F6C_DD1D);
    }
    x >> 16
}

fn memory(connection: &mut Conn) -> f64 {
    std::thread::sleep(std::time::Duration::from_millis(500));
    number(connection, "SELECT memory_used FROM rauk.nodes") as f64
}

/// Three kinds of tables with several times the rows of the sample: each within 5 % of what the server reports.
#[test]
fn a_prediction_is_within_five_percent_of_a_load() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let output = size(
        directory.path(),
        SCHEMA,
        &[
            "--rows",
            "narrow=200k",
            "--rows",
            "shop.users=2e5",
            "--rows",
            "orders=200_000",
            "--width",
            "users.name=14",
            "--width",
            "users.city=6..16",
            "--width",
            "orders.note=100..200",
            "--sample",
            "50000",
            "--partitions",
            "8",
            "--replicas",
            "2",
            "--node-memory",
            "64MiB",
        ],
    );
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    for part in [
        "in all nodes together, with 2 replicas",
        "Nodes with --memory-limit 64MiB: ",
        "shop.users.city, varchar(40): 11 bytes (6 to 16)",
        "shop.unused",
        "measured with 50 000 rows a table",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }

    let data = tempfile::tempdir().expect("a temporary directory");
    let mut command = rauk_command(data.path());
    command.args(["--durability", "relaxed", "--partitions", "8"]);
    let server = Rauk::start_with(command).unwrap_or_else(|error| panic!("{error}"));
    let mut connection = server.connect();
    for statement in SCHEMA.split(";\n").filter(|s| !s.trim().is_empty() && !s.starts_with("INSERT")) {
        connection.query_drop(statement).expect(statement);
    }
    let begun = memory(&mut connection);
    let mut before = begun;
    let mut check = |connection: &mut Conn, table: &str| {
        let now = memory(connection);
        let (real, told) = (now - before, predicted(&said, table));
        println!("{table}: {told:.0} predicted, {real:.0} used: {:+.1} %", (told / real - 1.0) * 100.0);
        assert!((told / real - 1.0).abs() < 0.05, "{table}: {told} predicted, {real} used; {said}");
        before = now;
    };
    load(&mut connection, "narrow", |id| format!("({id}, {})", mixed(id) % 1_000_000));
    check(&mut connection, "shop.narrow");
    let letters = |n: u64, length: u64| {
        "abcdefghijklmnopqrstuvwxyz".repeat(9)[(n % 26) as usize..][..length as usize].to_string()
    };
    load(&mut connection, "users (name, city, score, level)", |id| {
        let n = mixed(id);
        // First and last names: 8 to 20 letters; one of 500 cities.
        let (name, city) = (letters(n, 8 + n / 7 % 13), n / 91 % 500);
        format!("('{name}', '{}{city:03}', {}, {})", letters(city, 3 + city % 11), n / 1001 % 1000, n % 3 + 1)
    });
    check(&mut connection, "shop.users");
    load(&mut connection, "orders", |id| {
        let n = mixed(id);
        // As time goes on, by some of the users.
        let (user, day, hour, minute, second) =
            (n / 13 % 30_000 + 1, id / 86_400 + 1, id / 3600 % 24, id / 60 % 60, id % 60);
        let note = letters(n, 100 + n % 101);
        let placed = format!("2026-01-{day:02} {hour:02}:{minute:02}:{second:02}");
        format!("('{n:020}', {user}, '{placed}', {}.50, '{note}')", n % 100_000)
    });
    check(&mut connection, "shop.orders");
    let (real, told) = (memory(&mut connection) - begun, predicted(&said, "together"));
    assert!((told / real - 1.0).abs() < 0.05, "{told} predicted, {real} used; {said}");
}

/// One line, with cause and way out.
#[test]
fn what_cannot_be_predicted_is_refused() {
    for (schema, arguments, parts) in [
        (SCHEMA, vec![], ["no table has a number of rows", "--rows t=1e7"]),
        (SCHEMA, vec!["--rows", "narrow"], ["'narrow' names no table and number", "t=10M"]),
        (SCHEMA, vec!["--rows", "narrow=many"], ["'many' is no number of rows", "t=10_000_000"]),
        (SCHEMA, vec!["--rows", "t=5"], ["makes no table t; it makes ", "shop.narrow, shop.orders"]),
        (SCHEMA, vec!["--rows", "narrow=5", "--rows", "shop.narrow=6"], ["two numbers of rows", "give one"]),
        (SCHEMA, vec!["--rows", "narrow=5", "--width", "users.name"], ["'users.name' is none", "t.c=40"]),
        (SCHEMA, vec!["--rows", "narrow=5", "--width", "users.nam=5"], ["has no column nam", "correct the name"]),
        (SCHEMA, vec!["--rows", "narrow=5", "--width", "users.name=99"], ["users.name is varchar(80)", "at most 80"]),
        (SCHEMA, vec!["--rows", "narrow=5", "--node-memory", "lots"], ["'lots' is no memory limit", "16GiB"]),
        (
            "-- a\nCREATE TABLE t (a INT);\n\nCREATE TABEL u (a INT);\n",
            vec!["--rows", "t=5"],
            ["shop.sql:4: ERROR 1064", "correct it"],
        ),
        ("CREATE TABLE t (a INT, b MULTIPOINT);", vec!["--rows", "t=5"], ["b is multipoint", "leave the column out"]),
        (
            "CREATE TABLE t (a TINYINT PRIMARY KEY);",
            vec!["--rows", "t=1M"],
            ["its unique key PRIMARY has values for about 127", "widen the key"],
        ),
        (
            "CREATE TABLE t (a INT, b INT AS (a % 2), UNIQUE KEY (b));",
            vec!["--rows", "t=1M"],
            ["takes no sample rows: ERROR 1062", "drop the unique key"],
        ),
    ] {
        let line = refused(schema, &arguments);
        for part in parts {
            assert!(line.contains(part), "{part}: {line}");
        }
    }
}

/// A file without a database, with every type that there are samples of.
#[test]
fn every_type_has_sample_rows() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let schema = "CREATE TABLE t (a TINYINT UNSIGNED, b SMALLINT, c MEDIUMINT UNSIGNED, d BIGINT UNSIGNED, e BIT(7), f DECIMAL(30,4), \
                  g DECIMAL(4,4), h FLOAT, i DOUBLE, j DATE, k DATETIME(6), l TIMESTAMP DEFAULT CURRENT_TIMESTAMP, m TIME, n YEAR, \
                  o CHAR(36), p VARCHAR(200) CHARACTER SET utf16, q TINYTEXT, r LONGTEXT, s BINARY(16), u VARBINARY(30), v BLOB, \
                  w JSON, x ENUM('a','b,c','it''s'), y SET('a','b','c'), z POINT, za LINESTRING, zb POLYGON, zc BOOL, \
                  zd GEOMETRY SRID 4326, KEY (k), KEY (o), UNIQUE KEY (s), UNIQUE KEY (x, b), UNIQUE KEY (r(10))) ;
                  CREATE TABLE p (a DATE, b INT, PRIMARY KEY (a, b)) PARTITION BY HASH (b) PARTITIONS 3;";
    let output = size(directory.path(), schema, &["--rows", "t=1500", "--rows", "shop.p=3000", "--sample", "1000"]);
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    assert!(predicted(&said, "shop.t") > 5e5 && predicted(&said, "shop.p") > 1e5, "{said}");
}
