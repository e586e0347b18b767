//! Clients of a real process go on while ALTER TABLE builds: the build is held at a fault point until the test lets it
//! go, and every statement is answered before.

use crate::common::{Rauk, connect_to, rauk_command, run};
use mysql::prelude::Queryable;
use std::path::{Path, PathBuf};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

/// What an ALTER has come to.
type Altered = Result<(), mysql::Error>;

const ROWS: i64 = 1_000;

/// A server whose builds wait at a point while the file is there.
pub fn held_server(data: &Path, point: &str, hold: &Hold) -> Rauk {
    std::fs::write(&hold.0, "").expect("written");
    let mut command = rauk_command(data);
    command.env("RAUK_FAULT", format!("{point}:hold={}", hold.0.display()));
    let server = Rauk::start_with(command).unwrap_or_else(|e| panic!("{e}"));
    let mut session = server.connect();
    session.query_drop("CREATE DATABASE d").unwrap();
    session
        .query_drop("CREATE TABLE d.t (a INT PRIMARY KEY, b INT NOT NULL, c VARCHAR(20) NOT NULL, KEY (c))")
        .unwrap();
    let rows: Vec<String> = (0..ROWS).map(|a| format!("({a}, {}, 'c{}')", a * 10, a % 7)).collect();
    session.query_drop(format!("INSERT INTO d.t VALUES {}", rows.join(","))).unwrap();
    server
}

/// Builds wait while this file is there. It goes when this value is dropped, so that a test that panics does not wait
/// for the build that it holds.
pub struct Hold(pub PathBuf);

impl Drop for Hold {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0) {
            eprintln!("{}: {error}", self.0.display());
        }
    }
}

/// Until `altered`, an ALTER, has reserved the table: other DDL waits for it then. Gives it back.
fn until_building<'s>(server: &Rauk, altered: ScopedJoinHandle<'s, Altered>) -> ScopedJoinHandle<'s, Altered> {
    let mut session = server.connect();
    session.query_drop("SET lock_wait_timeout = 1").unwrap();
    let mut number = 0;
    loop {
        if altered.is_finished() {
            panic!("the ALTER has ended before it was held: {:?}", altered.join());
        }
        number += 1;
        match session.query_drop(format!("ALTER TABLE d.t COMMENT = '{number}'")) {
            Ok(()) => std::thread::sleep(Duration::from_millis(10)),
            Err(mysql::Error::MySqlError(error)) if error.code == 1205 => return altered,
            Err(error) => panic!("{error}"),
        }
    }
}

/// What three clients do; each has rows of its own. All of it is answered.
fn hammer(port: u16) {
    std::thread::scope(|scope| {
        for client in 0..3 {
            scope.spawn(move || {
                let mut session = connect_to(port).expect("connected");
                session.query_drop("USE d").unwrap();
                for round in 0..40 {
                    let own = client + 3 * round;
                    let new = 10_000 + own;
                    session.query_drop(format!("UPDATE t SET b = b + 1, c = 'new' WHERE a = {own}")).unwrap();
                    session.query_drop(format!("INSERT INTO t VALUES ({new}, {}, 'in')", new * 10)).unwrap();
                    session.query_drop("BEGIN").unwrap();
                    session.query_drop(format!("DELETE FROM t WHERE a = {}", 500 + own)).unwrap();
                    session
                        .query_drop(format!("REPLACE INTO t VALUES ({}, {}, 'back')", 200 + own, own * 10 + 3))
                        .unwrap();
                    session.query_drop(if round % 4 == 0 { "ROLLBACK" } else { "COMMIT" }).unwrap();
                    let found: Option<i64> = session.query_first(format!("SELECT b FROM t WHERE a = {own}")).unwrap();
                    assert_eq!(found, Some(own * 10 + 1));
                }
                let rows: Option<i64> = session.query_first("SELECT COUNT(*) FROM t").unwrap();
                assert!(rows.unwrap() >= ROWS);
            });
        }
    });
}

/// Every index has the rows of the table.
fn check(session: &mut mysql::Conn, indexes: &[&str]) {
    let sums = |session: &mut mysql::Conn, hint: &str| -> Option<(i64, i64, i64)> {
        session.query_first(format!("SELECT COUNT(*), CAST(SUM(a) AS SIGNED), CAST(SUM(b) AS SIGNED) FROM d.t {hint} WHERE b >= 0 AND c >= ''")).unwrap()
    };
    let rows = sums(session, &format!("IGNORE INDEX ({})", indexes.join(", ")));
    for index in indexes {
        assert_eq!(sums(session, &format!("FORCE INDEX ({index})")), rows, "{index}");
    }
    assert_eq!(run(session, "CHECK TABLE d.t"), ["d.t | check | status | OK"]);
}

/// Before each partition, and before each batch of rows.
const INDEX: &str = "node.ddl.index";
const VALIDATE: &str = "node.ddl.validate";

const ALTER: &str = "ALTER TABLE d.t ADD UNIQUE u (b), ADD KEY k (c, b), ALGORITHM = INPLACE, LOCK = NONE";

#[test]
fn clients_go_on_while_indexes_are_built() {
    let (data, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let hold = Hold(other.path().join("hold"));
    let server = held_server(data.path(), INDEX, &hold);
    let mut session = server.connect();
    std::thread::scope(|scope| {
        let altered = scope.spawn(|| server.connect().query_drop(ALTER));
        let hold = hold;
        let altered = until_building(&server, altered);
        hammer(server.port);
        assert!(!altered.is_finished(), "it was held");
        drop(hold);
        altered.join().unwrap().unwrap();
    });
    check(&mut session, &["u", "k", "c"]);
    hammer_taken(&mut session);
    let shown = run(&mut session, "SHOW CREATE TABLE d.t").join("");
    assert!(shown.contains("UNIQUE KEY `u` (`b`)") && shown.contains("KEY `k` (`c`,`b`)"), "{shown}");
    server.kill();
    let server = Rauk::start(data.path());
    check(&mut server.connect(), &["u", "k", "c"]);
}

/// The index refuses what it did not have to keep before.
fn hammer_taken(session: &mut mysql::Conn) {
    match session.query_drop("INSERT INTO d.t VALUES (70000, 9990, 'x')") {
        Err(mysql::Error::MySqlError(error)) => assert_eq!(error.code, 1062),
        other => panic!("{other:?}"),
    }
}

const COPY: &str = "node.ddl.copy";

/// Rows are copied into another form, into partitions, and out of them.
#[test]
fn clients_go_on_while_rows_are_copied() {
    let by_range =
        "PARTITION BY RANGE (a) (PARTITION p0 VALUES LESS THAN (400), PARTITION p1 VALUES LESS THAN MAXVALUE)";
    let reorganize =
        "REORGANIZE PARTITION p0 INTO (PARTITION q0 VALUES LESS THAN (100), PARTITION q1 VALUES LESS THAN (400))";
    let of_column = "MODIFY b DECIMAL(20,2) NOT NULL, ADD KEY k (c, b)";
    for (before, change, shown) in [
        ("", &format!("{of_column}, LOCK = NONE")[..], "`b` decimal(20,2) NOT NULL"),
        ("", "CONVERT TO CHARACTER SET latin1, LOCK = NONE", "CHARSET=latin1"),
        ("", by_range, "PARTITION BY RANGE"),
        (by_range, reorganize, "PARTITION `q1`"),
        (by_range, "ADD KEY k (c, b), LOCK = NONE", "KEY `k` (`c`,`b`)"),
        (by_range, "REMOVE PARTITIONING", "KEY `c` (`c`)"),
    ] {
        let (data, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let hold = Hold(other.path().join("hold"));
        // Partitions of before are made while nothing holds them up.
        let server = held_server(data.path(), COPY, &hold);
        let mut session = server.connect();
        if !before.is_empty() {
            drop(hold);
            session.query_drop(format!("ALTER TABLE d.t {before}")).unwrap();
        }
        let hold = Hold(other.path().join("hold"));
        std::fs::write(&hold.0, "").unwrap();
        let sum =
            "SELECT COUNT(*), CAST(SUM(a) AS SIGNED), CAST(SUM(b) AS SIGNED), SUM(c = 'new'), SUM(c = 'back') FROM d.t";
        let rows = std::thread::scope(|scope| {
            let altered = scope.spawn(|| server.connect().query_drop(format!("ALTER TABLE d.t {change}")));
            let hold = hold;
            let altered = until_building(&server, altered);
            hammer(server.port);
            let rows = run(&mut server.connect(), sum);
            let state = "SELECT STATE FROM information_schema.PROCESSLIST WHERE INFO LIKE 'ALTER TABLE d.t %'";
            let state = run(&mut server.connect(), state);
            // Of REORGANIZE PARTITION only those that leave their partition.
            let all = if change == reorganize { 400 } else { ROWS };
            assert!(state[0].starts_with(&format!("copying rows: 0 of {all} (0 %)")), "{state:?}");
            assert!(!altered.is_finished(), "it was held");
            drop(hold);
            altered.join().unwrap().unwrap();
            rows
        });
        assert!(rows[0].starts_with("1030 | ") && rows[0].ends_with(" | 120 | 90"), "{rows:?}");
        assert_eq!(run(&mut session, sum), rows, "{change}");
        check(&mut session, &["c"]);
        let definition = run(&mut session, "SHOW CREATE TABLE d.t").join("");
        assert!(definition.contains(shown), "{definition}");
        server.kill();
        let server = Rauk::start(data.path());
        let mut session = server.connect();
        assert_eq!(run(&mut session, sum), rows, "{change}");
        check(&mut session, &["c"]);
    }
}

#[test]
fn a_process_that_dies_while_it_builds_leaves_rows_and_no_index() {
    let (data, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let hold = Hold(other.path().join("hold"));
    let server = held_server(data.path(), INDEX, &hold);
    let port = server.port;
    let rows: Option<(i64, i64)> = std::thread::scope(|scope| {
        let altered = scope.spawn(move || connect_to(port).expect("connected").query_drop(ALTER));
        let _hold = hold;
        let altered = until_building(&server, altered);
        hammer(port);
        let rows = server.connect().query_first("SELECT COUNT(*), CAST(SUM(b) AS SIGNED) FROM d.t").unwrap();
        server.kill();
        assert!(altered.join().unwrap().is_err());
        rows
    });
    let server = Rauk::start(data.path());
    let mut session = server.connect();
    let found: Option<(i64, i64)> = session.query_first("SELECT COUNT(*), CAST(SUM(b) AS SIGNED) FROM d.t").unwrap();
    assert_eq!(found, rows);
    let shown = run(&mut session, "SHOW CREATE TABLE d.t").join("");
    assert!(!shown.contains("`u`") && !shown.contains("`k`"), "{shown}");
    session.query_drop(ALTER).unwrap();
    check(&mut session, &["u", "k", "c"]);
}

/// Rows of `t` refer to those of `p` by what `c` says.
#[test]
fn clients_go_on_while_a_foreign_key_is_validated() {
    let (data, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let hold = Hold(other.path().join("hold"));
    let server = held_server(data.path(), VALIDATE, &hold);
    let mut session = server.connect();
    session.query_drop("CREATE TABLE d.p (c VARCHAR(20) NOT NULL, n INT, UNIQUE KEY (c))").unwrap();
    let add = "ALTER TABLE d.t ADD CONSTRAINT f FOREIGN KEY (c) REFERENCES d.p (c) ON DELETE CASCADE, LOCK = NONE";
    let validated = |session: &mut mysql::Conn| match session.query_drop(add) {
        Ok(()) => None,
        Err(mysql::Error::MySqlError(error)) => Some(error.code),
        Err(error) => panic!("{error}"),
    };
    session
        .query_drop("INSERT INTO d.p VALUES ('c0', 0), ('c1', 0), ('c2', 0), ('c3', 0), ('c4', 0), ('c5', 0)")
        .unwrap();
    std::thread::scope(|scope| {
        let altered = scope.spawn(|| server.connect().query_drop(add));
        let hold = hold;
        let altered = until_building(&server, altered);
        // What clients write has no parent for a while; no row goes because its parent does.
        hammer(server.port);
        session.query_drop("DELETE FROM d.p WHERE c = 'c5'").unwrap();
        assert_eq!(run(&mut session, "SELECT COUNT(*) > 0 FROM d.t WHERE c = 'c5'"), ["1"]);
        session.query_drop("INSERT INTO d.p VALUES ('c5', 1), ('c6', 1), ('new', 1), ('in', 1), ('back', 1)").unwrap();
        assert!(!altered.is_finished(), "it was held");
        drop(hold);
        altered.join().unwrap().unwrap();
    });
    let shown = run(&mut session, "SHOW CREATE TABLE d.t").join("");
    assert!(shown.contains("CONSTRAINT `f` FOREIGN KEY (`c`) REFERENCES `p` (`c`) ON DELETE CASCADE"), "{shown}");
    check(&mut session, &["c"]);
    session.query_drop("DELETE FROM d.p WHERE c = 'c5'").unwrap();
    assert_eq!(run(&mut session, "SELECT COUNT(*) FROM d.t WHERE c = 'c5'"), ["0"]);
    // A row without a parent, and no key is left of the attempt.
    session.query_drop("ALTER TABLE d.t DROP FOREIGN KEY f").unwrap();
    session.query_drop("INSERT INTO d.t VALUES (90000, 7, 'nobody')").unwrap();
    assert_eq!(validated(&mut session), Some(1452));
    session.query_drop("DELETE FROM d.t WHERE a = 90000").unwrap();
    server.kill();
    let server = Rauk::start(data.path());
    let mut session = server.connect();
    assert!(!run(&mut session, "SHOW CREATE TABLE d.t").join("").contains("FOREIGN KEY"));
    assert_eq!(validated(&mut session), None);
    check(&mut session, &["c"]);
}
