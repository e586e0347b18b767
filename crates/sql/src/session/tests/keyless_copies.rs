//! Users go on while rows of a table without a primary key are written again: such rows keep their hidden keys.

use super::{Server, Test, server_on};
use rauk_log::{MemoryDisk, fault};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A temporary table goes on counting, too.
#[test]
fn keys_of_a_temporary_table_are_not_given_out_again() {
    let server = server_on(MemoryDisk::new());
    let mut t = server.session();
    t.ok("CREATE TEMPORARY TABLE x (a INT)");
    t.ok("INSERT INTO x VALUES (1), (2)");
    for column in ["b", "c"] {
        t.ok(&format!("ALTER TABLE x ADD {column} INT"));
        t.ok("INSERT INTO x (a) VALUES (3)");
    }
    t.expect("SELECT a FROM x ORDER BY a", &["1", "2", "3", "3"]);
}

/// Rows go from one partition to another between the copies of both, and some are gone at the end.
#[test]
fn rows_change_partitions_while_they_are_copied() {
    let server = server_on(MemoryDisk::new());
    let mut t = server.session();
    t.ok("SET cte_max_recursion_depth = 10000");
    t.ok("CREATE TABLE t (v INT, w INT) PARTITION BY RANGE (v) \
          (PARTITION a VALUES LESS THAN (1000), PARTITION b VALUES LESS THAN MAXVALUE)");
    t.ok("INSERT INTO t WITH RECURSIVE s AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM s WHERE i < 2000) SELECT i, i FROM s");
    t.ok("CREATE TABLE m LIKE t");
    t.ok("INSERT INTO m SELECT * FROM t");
    for sql in [
        "ALTER TABLE t MODIFY w BIGINT",
        "ALTER TABLE t REORGANIZE PARTITION a, b INTO \
                 (PARTITION c VALUES LESS THAN (500), PARTITION d VALUES LESS THAN MAXVALUE)",
    ] {
        let turns = Rc::new(Cell::new(0));
        let local = {
            let (other, turns) = (RefCell::new(server.session()), turns.clone());
            fault::Local::new(move |name| {
                if name == "node.ddl.copy" {
                    turns.set(turns.get() + 1);
                    let (from, away) = (turns.get() * 10, (turns.get() - 1) * 10);
                    for table in ["t", "m"] {
                        let mut other = other.borrow_mut();
                        other.ok(&format!("UPDATE {table} SET v = 1500 - v WHERE w BETWEEN {from} AND {from} + 9"));
                        other.ok(&format!(
                            "UPDATE {table} SET v = 1500 - v WHERE 1999 - w BETWEEN {from} AND {from} + 9"
                        ));
                        other.ok(&format!("DELETE FROM {table} WHERE w BETWEEN {away} AND {away} + 4"));
                    }
                }
                Ok(())
            })
        };
        t.ok(sql);
        drop(local);
        assert!(turns.get() >= 4, "{sql}: {turns:?}");
        check(&mut t);
    }
}

/// Both tables, `t` and what it should be, are changed in the same way; there are rows that are equal.
fn change(t: &mut Test, turn: u32) {
    for table in ["t", "m"] {
        t.ok(&format!("UPDATE {table} SET w = w + 1000 WHERE v % 7 = {turn}"));
        t.ok(&format!("DELETE FROM {table} WHERE v % 50 = {turn}"));
        t.ok(&format!("UPDATE {table} SET v = 1200 - v WHERE v % 61 = {turn}"));
        t.ok(&format!("INSERT INTO {table} SELECT v, w FROM {table} WHERE v % 40 = {turn}"));
        t.ok("BEGIN");
        t.ok(&format!("DELETE FROM {table} WHERE v % 3 = 0"));
        t.ok("ROLLBACK");
    }
}

fn check(t: &mut Test) {
    let mut rows =
        |table: &str| t.run(&format!("SELECT v, w + 0, COUNT(*) FROM {table} GROUP BY v, w ORDER BY v, w + 0"));
    let (is, should) = (rows("t"), rows("m"));
    assert!(is == should && is.lines().count() > 500, "{is}\nshould be\n{should}");
}

/// Runs an ALTER while another session writes, at each point where rows are copied.
fn alter(server: &Server, t: &mut Test, sql: &str) {
    let turns = Rc::new(Cell::new(0));
    let local = {
        let (other, turns) = (RefCell::new(server.session()), turns.clone());
        fault::Local::new(move |name| {
            if ["node.ddl.copy", "node.ddl.copy_again"].contains(&name) && turns.get() < 6 {
                turns.set(turns.get() + 1);
                change(&mut other.borrow_mut(), turns.get());
            }
            Ok(())
        })
    };
    t.ok(sql);
    drop(local);
    assert!(turns.get() >= 3, "{sql}: {turns:?}");
    check(t);
}

#[test]
fn users_go_on() {
    let disk = MemoryDisk::new();
    {
        let server = server_on(disk.clone());
        let mut t = server.session();
        t.ok("SET cte_max_recursion_depth = 10000");
        t.ok("CREATE TABLE t (v INT, w INT, KEY (v))");
        t.ok("INSERT INTO t WITH RECURSIVE s AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM s WHERE i < 1200) \
             SELECT i, i % 10 FROM s");
        t.ok("CREATE TABLE m LIKE t");
        t.ok("INSERT INTO m SELECT * FROM t");
        for sql in [
            "ALTER TABLE t MODIFY w VARCHAR(20), LOCK = NONE",
            "ALTER TABLE t MODIFY w BIGINT, LOCK = NONE",
            "ALTER TABLE t LOCK = NONE PARTITION BY RANGE (v) (PARTITION a VALUES LESS THAN (300), \
             PARTITION b VALUES LESS THAN (900), PARTITION c VALUES LESS THAN MAXVALUE)",
            "ALTER TABLE t REORGANIZE PARTITION a, b INTO (PARTITION d VALUES LESS THAN (500), \
             PARTITION e VALUES LESS THAN (900))",
            "ALTER TABLE t PARTITION BY HASH (v) PARTITIONS 3",
            "ALTER TABLE t REMOVE PARTITIONING",
        ] {
            alter(&server, &mut t, sql);
        }
    }
    // Keys that come now are no other rows'.
    let server = server_on(disk);
    let mut t = server.session();
    check(&mut t);
    for turn in 0..6 {
        change(&mut t, turn);
    }
    check(&mut t);
}
