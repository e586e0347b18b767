//! ALTER TABLE over rows that several threads write again: what they say together is as if one had done it.

use super::*;
use std::collections::BTreeSet;

const ROWS: u64 = 2000;

/// With a table whose rows are worked on by a thread on each core.
fn filled() -> (Server, Test) {
    let server = server_of(MemoryDisk::new(), Config { parallel_ddl_rows: 0, ..config() }, None);
    let mut test = server.session();
    test.ok("SET cte_max_recursion_depth = 10000");
    test.ok("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20), n INT NULL)");
    test.ok(&format!(
        "INSERT INTO t WITH RECURSIVE s AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM s WHERE i < {ROWS}) \
         SELECT i, IF(i MOD 10 = 0, 'none', i), IF(i MOD 4 = 0, NULL, i) FROM s"
    ));
    (server, test)
}

#[test]
fn every_row_that_loses_something_is_warned_of() {
    let (_server, mut test) = filled();
    test.ok("SET sql_mode = ''");
    test.ok("SET max_error_count = 50");
    test.ok("ALTER TABLE t MODIFY v INT");
    let (warnings, _) = test.collect("SHOW WARNINGS");
    let rows = warnings.last().expect("rows").rows.len();
    assert_eq!(rows, 50, "no more than max_error_count are kept");
    test.expect("SHOW COUNT(*) WARNINGS", &[&(ROWS / 10).to_string()]);
    test.expect("SELECT COUNT(*), SUM(v), SUM(id), SUM(v = 0) FROM t", &["2000|1800000|2001000|200"]);
    // In strict mode the first of them ends the statement.
    test.ok("SET sql_mode = 'STRICT_TRANS_TABLES'");
    test.ok("ALTER TABLE t MODIFY v VARCHAR(20)");
    test.ok("UPDATE t SET v = 'none' WHERE id MOD 10 = 0");
    test.code("ALTER TABLE t MODIFY v INT", 1366);
    test.code("ALTER TABLE t MODIFY n INT NOT NULL", 1138);
    test.expect("SELECT COUNT(*), SUM(v = 'none'), SUM(n IS NULL) FROM t", &["2000|200|500"]);
}

#[test]
fn rows_without_a_number_get_different_ones_above_all_others() {
    let (_server, mut test) = filled();
    test.ok("ALTER TABLE t DROP PRIMARY KEY, MODIFY n INT NOT NULL AUTO_INCREMENT, ADD PRIMARY KEY (n)");
    test.expect("SELECT COUNT(DISTINCT n), SUM(n > 1999), SUM(n = id) FROM t", &["2000|500|1500"]);
    test.ok("INSERT INTO t (id, v) VALUES (9999, 'x')");
    test.expect("SELECT n > 2499 FROM t WHERE id = 9999", &["1"]);
}

#[test]
fn defaults_that_are_expressions_are_computed_for_each_row() {
    let (_server, mut test) = filled();
    test.ok("ALTER TABLE t ADD u CHAR(36) DEFAULT (UUID()), ADD r DOUBLE DEFAULT (RAND()), ADD g INT AS (id * 2)");
    test.expect("SELECT COUNT(DISTINCT u), COUNT(DISTINCT r) > 1990, SUM(g = id * 2) FROM t", &["2000|1|2000"]);
    // A check that one row breaks.
    test.code("ALTER TABLE t ADD CONSTRAINT below CHECK (id < 1999)", 3819);
    test.ok("ALTER TABLE t ADD CONSTRAINT below CHECK (id < 2001)");
}

#[test]
fn leaves_indexes_and_foreign_keys_are_made_by_several_threads() {
    let (_server, mut test) = filled();
    test.ok("ALTER TABLE t PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (700), PARTITION b VALUES LESS THAN MAXVALUE)");
    test.ok("ALTER TABLE t REORGANIZE PARTITION b INTO (PARTITION c VALUES LESS THAN (1500), PARTITION d VALUES LESS THAN MAXVALUE)");
    let parts = ["699", "800", "501"];
    for (part, rows) in ["a", "c", "d"].into_iter().zip(parts) {
        test.expect(&format!("SELECT COUNT(*) FROM t PARTITION ({part})"), &[rows]);
    }
    test.ok("ALTER TABLE t REMOVE PARTITIONING");
    test.ok("ALTER TABLE t ADD INDEX (n), ADD UNIQUE (v, id)");
    test.expect("SELECT COUNT(*) FROM t FORCE INDEX (n) WHERE n > 0", &["1500"]);
    test.code("ALTER TABLE t ADD UNIQUE (v)", 1062);
    test.ok("CREATE TABLE c (id INT PRIMARY KEY, p INT)");
    test.ok("INSERT INTO c SELECT id, id FROM t");
    test.ok("ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES t (id)");
    test.ok("ALTER TABLE c DROP FOREIGN KEY c_ibfk_1");
    test.ok("UPDATE c SET p = 5000 WHERE id = 1234");
    test.code("ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES t (id)", 1452);
    let names: BTreeSet<String> = test.run("SHOW TABLES").lines().map(str::to_string).collect();
    assert_eq!(names, BTreeSet::from(["c".to_string(), "t".to_string()]));
}

/// A statement that takes an hour is seen while it works, and ends at once when it is killed.
#[test]
fn a_statement_with_a_limit_is_shown_among_the_jobs_until_it_is_killed() {
    let (server, mut test) = filled();
    let statements = [
        ("ALTER TABLE t MODIFY n BIGINT", "2000"),
        ("ALTER TABLE t ADD INDEX (n)", "4"),
        ("ALTER TABLE t ADD UNIQUE u (v, id) USING HASH", "2000"),
    ];
    for (statement, total) in statements {
        let mut other = server.session();
        other.ok("SET sql_mode = '', rauk_ddl_rows_per_second = 1");
        let other_id = other.run("SELECT CONNECTION_ID()");
        let altering = std::thread::spawn(move || other.collect(statement).1);
        let shown = format!("SELECT user, statement, total, done <= total FROM rauk.jobs WHERE id = {other_id}");
        let expected = format!("root|{statement}|{total}|1");
        loop {
            let now = test.run(&shown);
            if !now.is_empty() {
                assert_eq!(now, expected);
                break;
            }
            assert!(!altering.is_finished(), "{statement}: it is not shown");
            std::thread::yield_now();
        }
        test.ok(&format!("KILL QUERY {other_id}"));
        let ended = altering.join().expect("the session ends");
        assert_eq!(ended.expect_err("it was killed").code, 1317, "{statement}");
        test.expect(&shown, &[]);
    }
    test.expect("SELECT COUNT(*) FROM t", &["2000"]);
    test.ok("ALTER TABLE t MODIFY n BIGINT");
}
