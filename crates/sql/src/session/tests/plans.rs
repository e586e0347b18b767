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
