//! GET_LOCK and its family: who has a lock, who waits, what ends a wait, and when a lock is given back.

use super::{Server, Test, server};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const KILLED: &str = "ERROR 1317: Query execution was interrupted";

/// Runs a statement in another thread, and returns when its session waits.
fn waiting(server: &Server, mut test: Test, sql: &'static str) -> JoinHandle<(Test, String)> {
    let id = test.session.process.id;
    let before = server.engine.database.counters().lock_waits;
    let thread = std::thread::spawn(move || {
        let answer = test.run(sql);
        (test, answer)
    });
    let begun = Instant::now();
    while server.engine.database.counters().lock_waits == before {
        assert!(begun.elapsed() < Duration::from_secs(10), "{id} does not wait");
        std::thread::yield_now();
    }
    thread
}

#[test]
fn one_session_has_a_lock_and_the_others_see_whose_it_is() {
    let server = server();
    let (mut a, mut b) = (server.session(), server.session());
    let id = a.session.process.id.to_string();
    a.expect("SELECT IS_FREE_LOCK('x'), IS_USED_LOCK('x'), RELEASE_LOCK('x')", &["1|NULL|NULL"]);
    a.expect("SELECT GET_LOCK('x', 0)", &["1"]);
    a.expect("SELECT GET_LOCK('X', 10)", &["1"]);
    for test in [&mut a, &mut b] {
        test.expect("SELECT IS_FREE_LOCK('X'), IS_USED_LOCK('x')", &[&format!("0|{id}")]);
    }
    b.expect("SELECT GET_LOCK('x', 0)", &["0"]);
    b.expect("SELECT RELEASE_LOCK('x'), RELEASE_LOCK('y')", &["0|NULL"]);
    a.expect("SELECT RELEASE_LOCK('x')", &["1"]);
    b.expect("SELECT GET_LOCK('x', 0)", &["0"]);
    a.expect("SELECT RELEASE_LOCK('x')", &["1"]);
    a.expect("SELECT RELEASE_LOCK('x')", &["NULL"]);
    b.expect("SELECT GET_LOCK('x', 0)", &["1"]);
    a.expect("SELECT RELEASE_LOCK('x')", &["0"]);
}

#[test]
fn a_session_has_several_locks_and_releases_them_together() {
    let server = server();
    let (mut a, mut b) = (server.session(), server.session());
    a.expect("SELECT GET_LOCK('x', 0), GET_LOCK('y', 0), GET_LOCK('x', 0), GET_LOCK('z', 0)", &["1|1|1|1"]);
    b.expect("SELECT GET_LOCK('x', 0), GET_LOCK('y', 0), GET_LOCK('z', 0)", &["0|0|0"]);
    a.expect("SELECT RELEASE_LOCK('y')", &["1"]);
    b.expect("SELECT GET_LOCK('x', 0), GET_LOCK('y', 0), GET_LOCK('z', 0)", &["0|1|0"]);
    a.expect("SELECT RELEASE_ALL_LOCKS()", &["3"]);
    a.expect("SELECT RELEASE_ALL_LOCKS()", &["0"]);
    b.expect("SELECT GET_LOCK('x', 0), GET_LOCK('y', 0), GET_LOCK('z', 0)", &["1|1|1"]);
    b.expect("SELECT RELEASE_ALL_LOCKS()", &["4"]);
}

#[test]
fn a_lock_does_not_end_with_its_transaction_but_with_its_session() {
    let server = server();
    let (mut a, mut b) = (server.session(), server.session());
    a.ok("CREATE TABLE t (id INT PRIMARY KEY)");
    a.ok("BEGIN");
    a.ok("INSERT INTO t VALUES (1)");
    a.expect("SELECT GET_LOCK('x', 0)", &["1"]);
    a.ok("ROLLBACK");
    a.ok("COMMIT");
    a.ok("CREATE TABLE u (id INT)");
    b.expect("SELECT GET_LOCK('x', 0)", &["0"]);
    rauk_node::block_on(a.session.reset());
    b.expect("SELECT GET_LOCK('x', 0)", &["1"]);
    a.expect("SELECT GET_LOCK('x', 0)", &["0"]);
    drop(b);
    a.expect("SELECT GET_LOCK('x', 5)", &["1"]);
}

#[test]
fn who_waits_gets_the_lock_in_turn() {
    let server = server();
    let (mut a, b, c) = (server.session(), server.session(), server.session());
    a.expect("SELECT GET_LOCK('x', 0)", &["1"]);
    let b = waiting(&server, b, "SELECT GET_LOCK('x', -1)");
    let c = waiting(&server, c, "SELECT GET_LOCK('x', 100)");
    a.ok("DO RELEASE_LOCK('x')");
    let (mut b, answer) = b.join().unwrap();
    assert_eq!(answer, "1");
    assert!(!c.is_finished());
    b.expect("SELECT IS_USED_LOCK('x') = CONNECTION_ID()", &["1"]);
    drop(b);
    assert_eq!(c.join().unwrap().1, "1");
}

#[test]
fn a_wait_ends_in_time_and_when_it_is_killed() {
    let server = server();
    let (mut a, mut b) = (server.session(), server.session());
    a.expect("SELECT GET_LOCK('x', 0)", &["1"]);
    let begun = Instant::now();
    b.expect("SELECT GET_LOCK('x', 1)", &["0"]);
    let took = begun.elapsed();
    assert!(took >= Duration::from_secs(1) && took < Duration::from_secs(3), "{took:?}");
    b.ok("SET max_execution_time = 50");
    b.code("SELECT GET_LOCK('x', 100)", 3024);
    b.ok("SET max_execution_time = 0");
    let id = b.session.process.id;
    let b = waiting(&server, b, "SELECT GET_LOCK('x', 100)");
    a.ok(&format!("KILL QUERY {id}"));
    let (mut b, answer) = b.join().unwrap();
    assert_eq!(answer, KILLED);
    // Neither that wait nor the lock that it was for is left.
    b.expect("SELECT GET_LOCK('y', 0), GET_LOCK('x', 0)", &["1|0"]);
    a.ok("DO RELEASE_LOCK('x')");
    b.expect("SELECT GET_LOCK('x', 0)", &["1"]);
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_deadlock_is_an_error_and_releases_nothing() {
    let server = server();
    let (mut a, mut b) = (server.session(), server.session());
    a.expect("SELECT GET_LOCK('x', 0)", &["1"]);
    b.expect("SELECT GET_LOCK('y', 0)", &["1"]);
    let waits = waiting(&server, a, "SELECT GET_LOCK('y', 100)");
    b.error(
        "SELECT GET_LOCK('x', 100)",
        3058,
        "Deadlock found when trying to get user-level lock; try rolling back transaction/releasing locks and restarting \
         lock acquisition.",
    );
    b.expect("SELECT IS_USED_LOCK('y') = CONNECTION_ID()", &["1"]);
    b.expect("SELECT RELEASE_ALL_LOCKS()", &["1"]);
    let (mut a, answer) = waits.join().unwrap();
    assert_eq!(answer, "1");
    a.expect("SELECT RELEASE_ALL_LOCKS()", &["2"]);
}

#[test]
fn names_and_times_are_checked() {
    let server = server();
    let mut t = server.session();
    t.error("SELECT GET_LOCK(NULL, 0)", 3057, "Incorrect user-level lock name 'NULL'.");
    t.error("SELECT GET_LOCK('', 0)", 3057, "Incorrect user-level lock name ''.");
    t.error("SELECT IS_FREE_LOCK('')", 3057, "Incorrect user-level lock name ''.");
    t.error("SELECT RELEASE_LOCK(NULL)", 3057, "Incorrect user-level lock name 'NULL'.");
    t.error("SELECT IS_USED_LOCK(NULL)", 3057, "Incorrect user-level lock name 'NULL'.");
    t.expect("SELECT GET_LOCK(REPEAT('é', 64), 0)", &["1"]);
    t.expect("SELECT IS_FREE_LOCK(REPEAT('É', 64)), IS_FREE_LOCK(REPEAT('e', 64))", &["0|1"]);
    let name = "a".repeat(65);
    t.error(
        &format!("SELECT GET_LOCK('{name}', 0)"),
        4163,
        &format!("User-level lock name '{name}' should not exceed 64 characters."),
    );
    t.expect("SELECT GET_LOCK('a', NULL), GET_LOCK(17, '0'), IS_USED_LOCK('17') IS NOT NULL", &["1|1|1"]);
    t.code("SELECT GET_LOCK('a')", 1582);
    t.code("SELECT RELEASE_ALL_LOCKS(1)", 1582);
    t.code("SELECT BENCHMARK(2, GET_LOCK('a', 0))", 1235);
}

#[test]
fn locks_are_taken_wherever_an_expression_stands() {
    let server = server();
    let (mut a, mut b) = (server.session(), server.session());
    a.ok("CREATE TABLE t (id INT PRIMARY KEY, n VARCHAR(9))");
    a.ok("INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'x')");
    a.expect("SELECT id, GET_LOCK(n, 0) FROM t ORDER BY id", &["1|1", "2|1", "3|1"]);
    b.expect("SELECT id FROM t WHERE GET_LOCK(n, 0) = 0 ORDER BY id", &["1", "2", "3"]);
    a.expect("SELECT RELEASE_ALL_LOCKS()", &["3"]);
    a.ok("SET @x = GET_LOCK('x', 0) + 1");
    a.expect("SELECT @x", &["2"]);
    a.expect("UPDATE t SET n = 'z' WHERE id = 1 AND GET_LOCK('q', 0)", &["OK 1"]);
    a.expect("SELECT IF(IS_FREE_LOCK('w'), GET_LOCK('w', 0), 5) FROM DUAL WHERE IS_USED_LOCK('x')", &["1"]);
    b.expect("SELECT (SELECT COUNT(*) FROM t WHERE IS_FREE_LOCK('w')), GET_LOCK('w', 0)", &["0|0"]);
    let prepared = a.prepare("SELECT RELEASE_LOCK(?)");
    assert_eq!(a.prepared(prepared.id, &[rauk_types::Value::from("W")]), "1");
    b.expect("SELECT GET_LOCK('w', 0)", &["1"]);
    a.ok("SET rauk_query_memory_limit = 1048576");
    a.ok(
        "WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < 900) SELECT GET_LOCK(i, 0) FROM r",
    );
    a.code(
        "WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < 990)
         SELECT GET_LOCK(CONCAT(REPEAT('l', 60), i), 0), GET_LOCK(CONCAT(REPEAT('m', 60), i), 0),
                GET_LOCK(CONCAT(REPEAT('o', 60), i), 0) FROM r",
        1038,
    );
}
