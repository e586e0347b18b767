//! The plan cache, as sessions use it.

use super::server;
use crate::session::status::Counter;

fn hits(server: &super::Server) -> u64 {
    server.engine.processes.totals()[Counter::PlanCacheHits as usize]
}

#[test]
fn one_plan_serves_all_literals() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(20))");
    for id in 1..=20 {
        t.ok(&format!("INSERT INTO t VALUES ({id}, 'row {id}')"));
    }
    for id in 1..=20 {
        t.expect(&format!("SELECT s FROM t WHERE id = {id}"), &[&format!("row {id}")]);
    }
    assert!(hits(&server) >= 38, "{}", hits(&server));
    let mut other = server.session();
    let before = hits(&server);
    other.expect("SELECT s FROM t WHERE id = 3", &["row 3"]);
    assert_eq!(hits(&server), before + 1);
    // Another database, another table of that name.
    other.ok("CREATE DATABASE d2");
    other.ok("USE d2");
    other.code("SELECT s FROM t WHERE id = 3", 1146);
}

#[test]
fn a_changed_definition_makes_a_new_plan() {
    let server = server();
    let (mut a, mut b) = (server.session(), server.session());
    a.ok("CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(20))");
    a.ok("INSERT INTO t VALUES (1, 'x')");
    b.expect("SELECT * FROM t WHERE id = 1", &["1|x"]);
    a.ok("ALTER TABLE t ADD c INT DEFAULT 5 FIRST");
    b.expect("SELECT * FROM t WHERE id = 1", &["5|1|x"]);
    a.ok("DROP TABLE t");
    b.code("SELECT * FROM t WHERE id = 1", 1146);
    a.ok("CREATE TABLE t (z INT)");
    b.code("SELECT * FROM t WHERE id = 1", 1054);
}

#[test]
fn the_cache_is_bounded() {
    let server = server();
    let mut t = server.session();
    t.ok("SET GLOBAL rauk_plan_cache_size = 32");
    for n in 0..200 {
        t.expect(&format!("SELECT {n} AS c{n}"), &[&n.to_string()]);
    }
    assert!(server.engine.plans.len() <= 32);
    t.ok("SET GLOBAL rauk_plan_cache_size = 0");
    assert!(server.engine.plans.is_empty());
    t.expect("SELECT 1", &["1"]);
}

#[test]
fn a_row_by_its_whole_key_is_read_in_one_step() {
    let server = server();
    let mut t = server.session();
    t.ok("SET time_zone = '+02:00'");
    t.ok("CREATE TABLE t (a INT, b VARCHAR(10), v INT, at TIMESTAMP NULL, PRIMARY KEY (a, b), UNIQUE KEY (v))");
    t.ok("INSERT INTO t VALUES (1, 'x', 10, '2020-01-01 12:00:00'), (2, 'y', 20, NULL)");
    // The statement, whether it is one, and its rows.
    let cases: [(&str, bool, &[&str]); 17] = [
        ("SELECT v, at FROM t WHERE a = 1 AND b = 'x'", true, &["10|2020-01-01 12:00:00"]),
        ("SELECT v + 1, UPPER(b) FROM t WHERE b = 'X' AND a = '1'", true, &["11|X"]),
        ("SELECT v FROM t WHERE a = 1 AND b = 'x' AND v > 10", true, &[]),
        ("SELECT v FROM t WHERE a = 1 AND b = 'x' LIMIT 1", true, &["10"]),
        ("SELECT v FROM t WHERE a = 1 AND b = 'x' LIMIT 0", true, &[]),
        ("SELECT v FROM t WHERE a = 3 AND b = 'x'", true, &[]),
        ("SELECT v FROM t WHERE a = 1.5 AND b = 'x'", true, &[]),
        ("SELECT v FROM t WHERE a = 99999999999 AND b = 'x'", true, &[]),
        ("SELECT v FROM t WHERE a <=> NULL AND b = 'x'", true, &[]),
        ("SELECT v FROM t WHERE a = 1", false, &["10"]),
        ("SELECT v FROM t WHERE v = 10", false, &["10"]),
        ("SELECT v FROM t WHERE a IN (1, 2) AND b = 'x'", false, &["10"]),
        ("SELECT v FROM t WHERE a = 1 AND b = 'x' FOR UPDATE", false, &["10"]),
        ("SELECT COUNT(*) FROM t WHERE a = 1 AND b = 'x'", false, &["1"]),
        ("SELECT v FROM t WHERE a = 1 AND b = 'x' LIMIT 1 OFFSET 1", false, &[]),
        ("SELECT v FROM t WHERE a = (SELECT 1) AND b = 'x'", false, &["10"]),
        ("SELECT v FROM t WHERE a = 1 AND b = CONCAT('x', LEFT(UUID(), 0))", false, &["10"]),
    ];
    for (sql, point, rows) in cases {
        let tree = t.session.parse_one(sql).unwrap();
        let (plan, _) = t.session.plan(&tree, vec![]).unwrap();
        assert_eq!(plan.plan.is_point(), point, "{sql}");
        t.expect(sql, rows);
        t.expect("SELECT FOUND_ROWS()", &[&rows.len().to_string()]);
        t.ok("BEGIN");
        t.expect(sql, rows);
        t.expect(sql, rows);
        t.ok("COMMIT");
    }
}

#[test]
fn what_is_in_the_way_of_a_row_does_not_change_the_answer() {
    let server = server();
    let (mut a, mut b) = (server.session(), server.session());
    a.ok("CREATE TABLE t (id INT PRIMARY KEY, v INT)");
    a.ok("INSERT INTO t VALUES (1, 10), (2, 20)");
    a.ok("BEGIN");
    a.ok("UPDATE t SET v = 11 WHERE id = 1");
    a.ok("DELETE FROM t WHERE id = 2");
    a.expect("SELECT v FROM t WHERE id = 1", &["11"]);
    a.expect("SELECT v FROM t WHERE id = 2", &[]);
    b.expect("SELECT v FROM t WHERE id = 1", &["10"]);
    b.expect("SELECT v FROM t WHERE id = 2", &["20"]);
    b.ok("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE");
    b.expect("SELECT v FROM t WHERE id = 1", &["10"]);
    b.ok("SET innodb_lock_wait_timeout = 1");
    b.ok("BEGIN");
    b.code("SELECT v FROM t WHERE id = 1", 1205);
    b.ok("ROLLBACK");
    a.ok("COMMIT");
    b.expect("SELECT v FROM t WHERE id = 1", &["11"]);
    b.code("SELECT v / (SELECT 1 UNION SELECT 2) FROM t WHERE id = 1", 1242);
    b.code("SELECT CAST(POW(10, 400) AS SIGNED) FROM t WHERE id = 1", 1690);
    b.expect("SELECT v FROM t WHERE id = 1", &["11"]);
    // A definition that has changed since the plan was made.
    a.ok("ALTER TABLE t ADD w INT DEFAULT 7");
    b.expect("SELECT * FROM t WHERE id = 1", &["1|11|7"]);
}
