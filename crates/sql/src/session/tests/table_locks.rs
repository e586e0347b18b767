//! LOCK TABLES: who waits for whom, which names may be used, what ends the locks; FLUSH TABLES WITH READ LOCK; LOCK INSTANCE
//! FOR BACKUP.

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
    a.code("CREATE DATABASE other", 1192);
    a.code("ALTER DATABASE test CHARACTER SET latin1", 1192);
    a.code("CREATE TABLE t (a INT)", 1050);
    a.ok("CREATE TABLE IF NOT EXISTS t (a INT)");
    a.code("CREATE TABLE IF NOT EXISTS missing (a INT)", 1100);
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

/// Whoever waited for the locks before the first statement still waits after the last.
#[test]
fn ddl_keeps_the_locks() {
    let server = server();
    let (mut a, _) = sessions(&server);
    for statement in [
        "CREATE TABLE p (id INT PRIMARY KEY, n INT)",
        "CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id))",
        "CREATE TABLE d (id INT PRIMARY KEY, c INT, FOREIGN KEY (c) REFERENCES c (id))",
        "INSERT INTO p VALUES (1, 1)",
        "LOCK TABLES t WRITE, u READ, c WRITE",
    ] {
        a.ok(statement);
    }
    let waiting = [
        blocked(server.session(), "SELECT COUNT(*) FROM t"),
        blocked(server.session(), "INSERT INTO u VALUES (7)"),
        blocked(server.session(), "UPDATE p SET n = 2"),
        blocked(server.session(), "DROP TABLE t"),
        blocked(server.session(), "SELECT COUNT(*) FROM c"),
    ];
    for statement in [
        "ALTER TABLE t ADD COLUMN c INT",
        "ALTER TABLE t ADD UNIQUE (n)",
        "CREATE INDEX i ON t (c)",
        "ALTER TABLE t MODIFY n BIGINT NOT NULL",
        "TRUNCATE TABLE t",
        "INSERT INTO t VALUES (1, 2, 3), (2, 3, 4)",
        "ANALYZE TABLE t UPDATE HISTOGRAM ON c",
        "DROP INDEX i ON t",
        // Its parent and child are only kept from writers by the lock, and had alone for a while here.
        "ALTER TABLE c ADD COLUMN x INT",
        "ALTER TABLE c RENAME COLUMN id TO number",
        "INSERT INTO c VALUES (1, 1, 1)",
    ] {
        let answer = a.run(statement);
        assert!(!answer.starts_with("ERROR"), "{statement}: {answer}");
        let passed = waiting.iter().position(|thread| thread.is_finished());
        assert_eq!(passed, None, "{statement}");
    }
    a.code("ALTER TABLE t ADD UNIQUE (id, missing)", 1072);
    a.code("INSERT INTO c VALUES (2, 9, 1)", 1452);
    a.expect("SELECT COUNT(*) FROM t", &["2"]);
    std::thread::sleep(Duration::from_millis(50));
    assert!(waiting.iter().all(|thread| !thread.is_finished()));
    a.ok("UNLOCK TABLES");
    let answers: Vec<String> = waiting.into_iter().map(|thread| thread.join().expect("it runs").1).collect();
    assert!(answers.iter().all(|answer| !answer.starts_with("ERROR") || answer.contains("1146")), "{answers:?}");
    a.code("SELECT * FROM t", 1146);
    a.expect("SELECT COUNT(*) FROM u", &["1"]);
    // DDL that is refused, or killed while it waits, leaves the locks as they are.
    a.ok("LOCK TABLES u WRITE");
    a.code("ALTER TABLE u ADD PRIMARY KEY (id)", 1068);
    let reader = blocked(server.session(), "SELECT COUNT(*) FROM u");
    a.ok("DROP TABLE u");
    a.code("CREATE TABLE u (a INT)", 1100);
    let answer = reader.join().expect("it runs").1;
    assert!(answer.contains("1146"), "{answer}");
    a.ok("UNLOCK TABLES");
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
    a.error("CREATE TABLE w (a INT)", 1223, text);
    a.error("CREATE DATABASE other", 1223, text);
    a.error("CREATE USER who", 1223, text);
    a.ok("CREATE TEMPORARY TABLE own (a INT)");
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

/// Nothing that would change definitions or accounts passes FLUSH TABLES WITH READ LOCK of another session.
#[test]
fn no_definition_changes_under_a_read_lock_of_all_tables() {
    let server = server();
    let (mut a, mut b) = sessions(&server);
    let [c, d, e] = [(); 3].map(|()| server.session());
    a.ok("FLUSH TABLES WITH READ LOCK");
    b.ok("SET lock_wait_timeout = 1");
    let statements = [
        "CREATE TABLE w (a INT)",
        "CREATE TABLE w SELECT 1 AS a",
        "CREATE TABLE w LIKE t",
        "CREATE DATABASE other",
        "ALTER DATABASE test CHARACTER SET latin1",
        "DROP DATABASE test",
        "CREATE OR REPLACE VIEW v AS SELECT 1 AS a",
        "DROP VIEW v",
        "RENAME TABLE v TO z",
        "CREATE USER who",
        "CREATE ROLE r",
        "GRANT SELECT ON test.* TO root@localhost",
        "SET PASSWORD = 'x'",
        "ANALYZE TABLE t UPDATE HISTOGRAM ON n",
        "LOCK TABLES u WRITE",
    ];
    for statement in statements {
        b.code(statement, 1205);
    }
    b.ok("CREATE TEMPORARY TABLE own (a INT)");
    b.ok("ALTER TABLE own ADD COLUMN b INT");
    b.ok("SET GLOBAL max_connections = 100");
    b.ok("ANALYZE TABLE t");
    let waiting = [
        (blocked(c, "CREATE TABLE w (a INT)"), "OK 0"),
        (blocked(d, "CREATE DATABASE other"), "OK 1"),
        (blocked(e, "CREATE USER who"), "OK 0"),
    ];
    assert_eq!(a.run("SHOW TABLES"), "t\nu\nv");
    a.ok("UNLOCK TABLES");
    waiting.into_iter().for_each(|(thread, answer)| drop(ended(thread, answer)));
    a.expect("SELECT * FROM w", &[]);
    // A statement that is under way, and LOCK TABLES ... WRITE with the DDL under it, are waited for.
    b.ok("LOCK TABLES t WRITE");
    let lock = blocked(a, "FLUSH TABLES WITH READ LOCK");
    b.ok("ALTER TABLE t ADD COLUMN c INT");
    b.ok("CREATE USER another");
    assert!(!lock.is_finished());
    b.ok("UNLOCK TABLES");
    let mut a = ended(lock, "OK 0");
    // A transaction that is open is committed before its DDL waits: it would keep the lock from being taken.
    a.ok("UNLOCK TABLES");
    b.ok("BEGIN");
    b.ok("INSERT INTO u VALUES (5)");
    let lock = blocked(a, "FLUSH TABLES WITH READ LOCK");
    b.code("CREATE TABLE y (a INT)", 1205);
    let mut a = ended(lock, "OK 0");
    a.expect("SELECT * FROM u", &["5"]);
}

/// LOCK INSTANCE FOR BACKUP keeps definitions and accounts as they are, and nobody from rows.
#[test]
fn no_definition_changes_under_a_backup_lock() {
    let server = server();
    let (mut a, mut b) = sessions(&server);
    let [c, d] = [(); 2].map(|()| server.session());
    a.ok("LOCK INSTANCE FOR BACKUP");
    a.ok("LOCK INSTANCE FOR BACKUP");
    b.ok("SET lock_wait_timeout = 1");
    for statement in [
        "CREATE TABLE w (a INT)",
        "ALTER TABLE t ADD COLUMN c INT",
        "TRUNCATE TABLE t",
        "CREATE DATABASE other",
        "RENAME TABLE t TO z",
        "CREATE USER who",
        "GRANT SELECT ON test.* TO root@localhost",
        "ANALYZE TABLE t UPDATE HISTOGRAM ON n",
        "LOCK TABLES u WRITE",
    ] {
        b.code(statement, 1205);
        a.error(statement, 1223, "Can't execute the query because you have a conflicting read lock");
    }
    for session in [&mut a, &mut b] {
        session.ok("UPDATE t SET n = n + 1");
        session.ok("CREATE TEMPORARY TABLE own (a INT)");
        session.ok("ANALYZE TABLE t");
        session.ok("LOCK TABLES t READ");
        session.ok("UNLOCK TABLES");
    }
    a.expect("SELECT n FROM t", &["3"]);
    // Others may have it beside, and all tables' read lock.
    b.ok("LOCK INSTANCE FOR BACKUP");
    b.ok("FLUSH TABLES WITH READ LOCK");
    b.ok("UNLOCK TABLES");
    a.ok("UNLOCK INSTANCE");
    let c = blocked(c, "CREATE TABLE w (a INT)");
    b.ok("UNLOCK INSTANCE");
    b.ok("UNLOCK INSTANCE");
    let mut c = ended(c, "OK 0");
    // Whoever has it gives it back with the connection, and when that is reset.
    c.ok("LOCK INSTANCE FOR BACKUP");
    let waits = blocked(d, "DROP TABLE w");
    drop(c);
    let mut c = ended(waits, "OK 0");
    c.ok("LOCK INSTANCE FOR BACKUP");
    rauk_node::block_on(c.session.reset());
    a.ok("ALTER TABLE t ADD COLUMN c INT");
    // Definitions that may be changed under LOCK TABLES … WRITE are not locked, and a change under way is waited for.
    a.ok("LOCK TABLES t WRITE");
    a.code("LOCK INSTANCE FOR BACKUP", 1192);
    b.code("LOCK INSTANCE FOR BACKUP", 1205);
    a.ok("UNLOCK TABLES");
    a.ok("CREATE USER app");
    let mut app = server.connect("app", "127.0.0.1").expect("it connects");
    for statement in ["LOCK INSTANCE FOR BACKUP", "UNLOCK INSTANCE"] {
        let text = "Access denied; you need (at least one of) the BACKUP_ADMIN privilege(s) for this operation";
        app.error(statement, 1227, text);
    }
    a.ok("GRANT BACKUP_ADMIN ON *.* TO app");
    app.ok("LOCK INSTANCE FOR BACKUP");
    app.code("LOCK INSTANCE", 1064);
    app.expect("SHOW SESSION STATUS LIKE 'Com_%lock_instance'", &["Com_lock_instance|2", "Com_unlock_instance|1"]);
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
