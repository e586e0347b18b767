//! LOCK TABLES: who waits for whom, which names may be used, what ends the locks; FLUSH TABLES WITH READ LOCK.

use super::{Server, Test, server};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

fn tables(t: &mut Test) {
    for statement in [
        "CREATE TABLE t (id INT PRIMARY KEY, n INT)",
        "INSERT INTO t VALUES (1, 1)",
        "CREATE TABLE u (id INT PRIMARY KEY)",
        "CREATE VIEW v AS SELECT id FROM t",
    ] {
        t.ok(statement);
    }
}

/// Runs a statement in another thread; gives the thread when the statement is on its way and has not ended for a while.
fn blocked(mut test: Test, sql: &'static str) -> JoinHandle<(Test, String)> {
    let process = test.session.process.clone();
    let thread = std::thread::spawn(move || {
        let answer = test.run(sql);
        (test, answer)
    });
    let begun = Instant::now();
    while !process.is_running() {
        assert!(!thread.is_finished() && begun.elapsed() < Duration::from_secs(10), "{sql} does not run");
        std::thread::yield_now();
    }
    // That it waits is only seen by its not ending: a few times as long as the statement takes.
    std::thread::sleep(Duration::from_millis(50));
    assert!(!thread.is_finished(), "{sql} does not wait");
    thread
}

fn ended(thread: JoinHandle<(Test, String)>, answer: &str) -> Test {
    let (test, got) = thread.join().expect("the session runs");
    assert_eq!(got, answer);
    test
}

fn sessions(server: &Server) -> (Test, Test) {
    let mut a = server.session();
    tables(&mut a);
    let b = server.session();
    (a, b)
}

#[test]
fn a_read_lock_keeps_writers_out() {
    let server = server();
    let (mut a, mut b) = sessions(&server);
    a.ok("LOCK TABLES t READ LOCAL");
    b.expect("SELECT n FROM t", &["1"]);
    a.expect("SELECT n FROM t", &["1"]);
    let text = "Table 't' was locked with a READ lock and can't be updated";
    a.error("UPDATE t SET n = 2", 1099, text);
    a.error("INSERT INTO t VALUES (2, 2)", 1099, text);
    a.error("DELETE FROM t", 1099, text);
    a.error("TRUNCATE TABLE t", 1099, text);
    // Two may have it.
    let mut c = server.session();
    c.ok("LOCK TABLES t READ");
    let writer = blocked(b, "UPDATE t SET n = 2");
    c.ok("UNLOCK TABLES");
    assert!(!writer.is_finished());
    a.expect("SELECT n FROM t", &["1"]);
    a.ok("UNLOCK TABLES");
    b = ended(writer, "OK 1");
    // A writer that is there first keeps the lock out until its end.
    b.ok("BEGIN");
    b.ok("UPDATE t SET n = 3");
    let lock = blocked(a, "LOCK TABLES t READ");
    b.ok("COMMIT");
    a = ended(lock, "OK 0");
    a.expect("SELECT n FROM t", &["3"]);
    b.ok("SET lock_wait_timeout = 1");
    b.error("INSERT INTO t VALUES (9, 9)", 1205, "Lock wait timeout exceeded; try restarting transaction");
}

#[test]
fn a_write_lock_keeps_all_others_out() {
    let server = server();
    let (mut a, b) = sessions(&server);
    a.ok("LOCK TABLES t WRITE");
    let reader = blocked(b, "SELECT n FROM t");
    a.ok("UPDATE t SET n = 5");
    a.ok("INSERT INTO t VALUES (2, 6)");
    a.expect("SELECT n FROM t ORDER BY id", &["5", "6"]);
    a.ok("UNLOCK TABLES");
    let mut b = ended(reader, "5\n6");
    // The end of the connection, and its reset, are ends of its locks.
    a.ok("LOCK TABLES t WRITE");
    let reader = blocked(b, "SELECT COUNT(*) FROM t");
    drop(a);
    b = ended(reader, "2");
    let mut a = server.session();
    a.ok("LOCK TABLES t WRITE");
    let reader = blocked(b, "SELECT COUNT(*) FROM t");
    rauk_node::block_on(a.session.reset());
    b = ended(reader, "2");
    // START TRANSACTION releases; COMMIT does not; another LOCK TABLES releases those before.
    a.ok("LOCK TABLES t WRITE");
    a.ok("COMMIT");
    let reader = blocked(b, "SELECT COUNT(*) FROM t");
    a.ok("START TRANSACTION");
    b = ended(reader, "2");
    a.ok("LOCK TABLES t WRITE");
    let reader = blocked(b, "SELECT COUNT(*) FROM t");
    a.ok("LOCK TABLES u WRITE");
    b = ended(reader, "2");
    b.ok("SET lock_wait_timeout = 1");
    b.code("SELECT * FROM u", 1205);
    b.code("DROP TABLE u", 1205);
    a.ok("UNLOCK TABLES");
    b.expect("SELECT * FROM u", &[]);
}

#[test]
fn only_locked_names_are_used() {
    let server = server();
    let (mut a, mut b) = sessions(&server);
    let not = |name: &str| format!("Table '{name}' was not locked with LOCK TABLES");
    let prepared = rauk_node::block_on(a.session.prepare("SELECT id FROM u")).unwrap();
    a.ok("LOCK TABLES t READ, t AS x READ, u WRITE");
    a.error("SELECT * FROM v", 1100, &not("v"));
    a.error("SELECT * FROM t AS y", 1100, &not("y"));
    a.expect("SELECT t.n, x.n FROM t, t AS x", &["1|1"]);
    a.error("SELECT * FROM t WHERE id IN (SELECT id FROM t)", 1100, &not("t"));
    a.expect("SELECT n FROM t WHERE id IN (SELECT id FROM t AS x)", &["1"]);
    a.expect("SELECT n FROM t WHERE EXISTS (SELECT 1 FROM t AS x WHERE x.id = t.id)", &["1"]);
    a.ok("INSERT INTO u SELECT id FROM t");
    a.expect("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_NAME = 'u'", &["1"]);
    a.ok("CREATE TEMPORARY TABLE own (a INT)");
    a.ok("INSERT INTO own VALUES (1)");
    a.expect("WITH c AS (SELECT a FROM own) SELECT * FROM c", &["1"]);
    a.error("CREATE TABLE other (a INT)", 1100, &not("other"));
    a.code("CREATE VIEW w AS SELECT 1", 1100);
    a.code("DROP DATABASE test", 1192);
    a.error("LOCK TABLES t READ, t WRITE", 1066, "Not unique table/alias: 't'");
    a.expect("SELECT * FROM v", &["1"]);
    a.code("LOCK TABLES missing READ", 1146);
    // A view locks what it reads.
    a.ok("LOCK TABLES v READ");
    a.expect("SELECT * FROM v", &["1"]);
    a.error("SELECT * FROM t", 1100, &not("t"));
    b.ok("SET lock_wait_timeout = 1");
    b.code("UPDATE t SET n = 2", 1205);
    // A statement that was prepared before asks for the lock, too.
    let mut sink = crate::session::collect::Collector::default();
    let run = rauk_node::block_on(a.session.execute(prepared.id, &[], &mut sink));
    assert_eq!(run.unwrap_err().code, 1100);
    a.ok("UNLOCK TABLES");
    rauk_node::block_on(a.session.execute(prepared.id, &[], &mut sink)).unwrap();
}

#[test]
fn ddl_of_who_has_the_lock() {
    let server = server();
    let (mut a, mut b) = sessions(&server);
    a.ok("LOCK TABLES t WRITE, u READ");
    a.ok("ALTER TABLE t ADD COLUMN c INT");
    a.ok("/*!40000 ALTER TABLE t DISABLE KEYS */");
    a.ok("INSERT INTO t VALUES (2, 2, 2)");
    a.ok("CREATE INDEX i ON t (c)");
    a.code("ALTER TABLE u ADD COLUMN c INT", 1099);
    b.ok("SET lock_wait_timeout = 1");
    b.code("SELECT * FROM t", 1205);
    a.ok("ALTER TABLE t RENAME TO s");
    a.expect("SELECT id FROM s ORDER BY id", &["1", "2"]);
    b.code("SELECT * FROM s", 1205);
    a.ok("TRUNCATE TABLE s");
    a.ok("DROP TABLE s");
    a.code("SELECT * FROM s", 1146);
    a.expect("SELECT * FROM u", &[]);
    b.code("INSERT INTO u VALUES (1)", 1205);
    a.ok("UNLOCK TABLES");
    b.ok("INSERT INTO u VALUES (1)");
}

#[test]
fn parents_and_children_are_locked_with_a_table() {
    let server = server();
    let mut a = server.session();
    for statement in [
        "CREATE TABLE p (id INT PRIMARY KEY)",
        "CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)",
        "INSERT INTO p VALUES (1), (2)",
        "INSERT INTO c VALUES (1, 1)",
    ] {
        a.ok(statement);
    }
    let mut b = server.session();
    b.ok("SET lock_wait_timeout = 1");
    a.ok("LOCK TABLES c WRITE");
    b.code("DELETE FROM p WHERE id = 2", 1205);
    b.expect("SELECT COUNT(*) FROM p", &["2"]);
    a.ok("INSERT INTO c VALUES (2, 2)");
    a.code("INSERT INTO c VALUES (3, 3)", 1452);
    a.ok("LOCK TABLES p WRITE");
    b.code("SELECT * FROM c", 1205);
    a.ok("DELETE FROM p WHERE id = 1");
    a.ok("UNLOCK TABLES");
    b.expect("SELECT id FROM c", &["2"]);
}

#[test]
fn all_tables_against_writers() {
    let server = server();
    let (mut a, mut b) = sessions(&server);
    b.ok("SET lock_wait_timeout = 1");
    a.ok("FLUSH TABLES WITH READ LOCK");
    b.code("INSERT INTO u VALUES (1)", 1205);
    b.code("ALTER TABLE u ADD COLUMN c INT", 1205);
    b.expect("SELECT n FROM t", &["1"]);
    a.expect("SELECT n FROM t JOIN v USING (id)", &["1"]);
    let text = "Can't execute the query because you have a conflicting read lock";
    a.error("INSERT INTO u VALUES (1)", 1223, text);
    a.error("DROP TABLE u", 1223, text);
    a.error("LOCK TABLES u WRITE", 1223, text);
    // As mydumper does: a snapshot under the lock, which then goes.
    a.ok("START TRANSACTION WITH CONSISTENT SNAPSHOT");
    b.code("INSERT INTO u VALUES (1)", 1205);
    a.ok("UNLOCK TABLES");
    b.ok("INSERT INTO u VALUES (1)");
    a.expect("SELECT * FROM u", &[]);
    // Its tables are its own from then on: DDL waits for its end.
    b.code("ALTER TABLE u ADD COLUMN c INT", 1205);
    a.ok("COMMIT");
    b.ok("ALTER TABLE u ADD COLUMN c INT");
    a.expect("SELECT id FROM u", &["1"]);
    a.ok("FLUSH TABLES t, u WITH READ LOCK");
    a.code("SELECT * FROM v", 1100);
    b.code("UPDATE t SET n = 7", 1205);
    a.code("FLUSH TABLES WITH READ LOCK", 1192);
    a.ok("UNLOCK TABLES");
    a.code("FLUSH TABLES t FOR EXPORT", 1235);
    a.code("FLUSH TABLES missing", 1146);
    a.ok("CREATE USER app");
    let mut app = server.connect("app", "10.1.2.3").unwrap();
    app.code("FLUSH TABLES WITH READ LOCK", 1227);
    app.code("LOCK TABLES test.t READ", 1044);
    a.ok("GRANT LOCK TABLES ON test.* TO app");
    app.code("LOCK TABLES test.t READ", 1142);
    a.ok("GRANT SELECT ON test.* TO app");
    app.ok("LOCK TABLES test.t READ");
}

/// Changes of a definition that have waited at the same time are all made, one after the other, each of what the one
/// before has left.
#[test]
fn changes_of_a_definition_that_wait_together_are_all_made() {
    let server = server();
    let (mut a, b) = sessions(&server);
    a.ok("BEGIN");
    a.expect("SELECT n FROM t", &["1"]);
    let waiting = [
        blocked(b, "ALTER TABLE t ADD COLUMN x INT"),
        blocked(server.session(), "CREATE INDEX i ON t (n)"),
        blocked(server.session(), "ALTER TABLE t ADD COLUMN y INT, AUTO_INCREMENT = 7"),
        blocked(server.session(), "ALTER TABLE t ADD INDEX j (n, key_), RENAME COLUMN id TO key_"),
    ];
    a.ok("COMMIT");
    for thread in waiting {
        let (_, answer) = thread.join().expect("the session runs");
        assert!(answer.starts_with("OK"), "{answer}");
    }
    a.expect("SELECT n, x, y FROM t", &["1|NULL|NULL"]);
    a.expect("SELECT key_ FROM t FORCE INDEX (i)", &["1"]);
    a.expect("SELECT key_ FROM t FORCE INDEX (j)", &["1"]);
}
