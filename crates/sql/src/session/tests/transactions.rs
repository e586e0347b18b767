//! Transactions, savepoints, isolation, as seen through sessions.

use super::server;

#[test]
fn commit_and_rollback() {
    let server = server();
    let (mut a, mut b) = (server.session(), server.session());
    a.ok("CREATE TABLE t (id INT PRIMARY KEY, n INT)");
    a.ok("START TRANSACTION");
    a.ok("INSERT INTO t VALUES (1, 1)");
    assert!(a.session.status().in_transaction);
    b.expect("SELECT COUNT(*) FROM t", &["0"]);
    a.ok("COMMIT");
    assert!(!a.session.status().in_transaction);
    b.expect("SELECT COUNT(*) FROM t", &["1"]);
    a.ok("BEGIN");
    a.ok("DELETE FROM t");
    a.ok("ROLLBACK");
    b.expect("SELECT COUNT(*) FROM t", &["1"]);
    // BEGIN commits what is open.
    a.ok("BEGIN");
    a.ok("UPDATE t SET n = 2");
    a.ok("BEGIN");
    b.expect("SELECT n FROM t", &["2"]);
}

#[test]
fn autocommit_off() {
    let server = server();
    let (mut a, mut b) = (server.session(), server.session());
    a.ok("CREATE TABLE t (id INT PRIMARY KEY)");
    a.ok("SET autocommit = 0");
    a.ok("SELECT 1");
    assert!(!a.session.status().in_transaction);
    a.ok("INSERT INTO t VALUES (1)");
    assert!(a.session.status().in_transaction && !a.session.status().autocommit);
    b.expect("SELECT * FROM t", &[]);
    a.ok("SET autocommit = 1");
    b.expect("SELECT * FROM t", &["1"]);
    // DDL commits.
    a.ok("SET autocommit = 0");
    a.ok("INSERT INTO t VALUES (2)");
    a.ok("CREATE TABLE u (id INT PRIMARY KEY)");
    b.expect("SELECT * FROM t ORDER BY id", &["1", "2"]);
}

#[test]
fn savepoints() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY)");
    t.ok("BEGIN");
    t.ok("INSERT INTO t VALUES (1)");
    t.ok("SAVEPOINT a");
    t.ok("INSERT INTO t VALUES (2)");
    t.ok("SAVEPOINT b");
    t.ok("INSERT INTO t VALUES (3)");
    t.ok("ROLLBACK TO SAVEPOINT A");
    t.error("ROLLBACK TO b", 1305, "SAVEPOINT b does not exist");
    t.ok("INSERT INTO t VALUES (4)");
    t.ok("RELEASE SAVEPOINT a");
    t.error("RELEASE SAVEPOINT a", 1305, "SAVEPOINT a does not exist");
    t.ok("COMMIT");
    t.expect("SELECT * FROM t ORDER BY id", &["1", "4"]);
    t.error("ROLLBACK TO a", 1305, "SAVEPOINT a does not exist");
}

#[test]
fn read_only_transactions() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY)");
    t.ok("START TRANSACTION READ ONLY");
    t.error("INSERT INTO t VALUES (1)", 1792, "Cannot execute statement in a READ ONLY transaction.");
    assert!(t.session.status().in_transaction && t.session.status().in_transaction_readonly);
    t.ok("COMMIT");
    t.ok("SET SESSION TRANSACTION READ ONLY");
    t.code("INSERT INTO t VALUES (1)", 1792);
    t.ok("SET SESSION TRANSACTION READ WRITE");
    t.ok("INSERT INTO t VALUES (1)");
    t.ok("SET TRANSACTION READ ONLY");
    t.code("INSERT INTO t VALUES (2)", 1792);
    t.ok("INSERT INTO t VALUES (2)");
    t.ok("BEGIN");
    t.code("SET TRANSACTION READ ONLY", 1568);
}

#[test]
fn chained_transactions_and_snapshots() {
    let server = server();
    let (mut a, mut b) = (server.session(), server.session());
    a.ok("CREATE TABLE t (id INT PRIMARY KEY)");
    a.ok("START TRANSACTION WITH CONSISTENT SNAPSHOT");
    b.ok("INSERT INTO t VALUES (1)");
    a.expect("SELECT * FROM t", &[]);
    a.ok("COMMIT AND CHAIN");
    assert!(a.session.status().in_transaction);
    a.expect("SELECT * FROM t", &["1"]);
    b.ok("INSERT INTO t VALUES (2)");
    a.expect("SELECT * FROM t ORDER BY id", &["1"]);
    a.ok("ROLLBACK");
    a.ok("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
    a.expect("SELECT @@transaction_isolation, @@tx_isolation", &["READ-COMMITTED|READ-COMMITTED"]);
    a.ok("BEGIN");
    a.expect("SELECT COUNT(*) FROM t", &["2"]);
    b.ok("INSERT INTO t VALUES (3)");
    a.expect("SELECT COUNT(*) FROM t", &["3"]);
}

#[test]
fn a_deadlock_ends_one_transaction() {
    let server = server();
    let (mut a, mut b) = (server.session(), server.session());
    a.ok("CREATE TABLE t (id INT PRIMARY KEY, n INT)");
    a.ok("INSERT INTO t VALUES (1, 0), (2, 0)");
    a.ok("BEGIN");
    b.ok("BEGIN");
    a.ok("UPDATE t SET n = 1 WHERE id = 1");
    b.ok("UPDATE t SET n = 2 WHERE id = 2");
    let second = std::thread::spawn(move || {
        let first = b.run("UPDATE t SET n = 2 WHERE id = 1");
        (first, b)
    });
    let answer = a.run("UPDATE t SET n = 1 WHERE id = 2");
    // The one that was not chosen goes on when the other's locks are gone.
    let victim_is_a = answer.starts_with("ERROR");
    if victim_is_a {
        assert_eq!(answer, "ERROR 1213: Deadlock found when trying to get lock; try restarting transaction");
        assert!(!a.session.status().in_transaction);
    }
    let (other, mut b) = second.join().unwrap();
    if victim_is_a {
        assert_eq!(other, "OK 1");
        b.ok("COMMIT");
        a.expect("SELECT id, n FROM t ORDER BY id", &["1|2", "2|2"]);
    } else {
        assert!(other.starts_with("ERROR 1213"), "{other}");
        assert!(!b.session.status().in_transaction);
        a.ok("COMMIT");
        a.expect("SELECT id, n FROM t ORDER BY id", &["1|1", "2|1"]);
    }
}

#[test]
fn a_lock_wait_times_out_and_keeps_the_transaction() {
    let server = server();
    let (mut a, mut b) = (server.session(), server.session());
    a.ok("CREATE TABLE t (id INT PRIMARY KEY, n INT)");
    a.ok("INSERT INTO t VALUES (1, 0), (2, 0)");
    a.ok("BEGIN");
    a.ok("UPDATE t SET n = 1 WHERE id = 1");
    b.ok("SET innodb_lock_wait_timeout = 1");
    b.ok("BEGIN");
    b.ok("UPDATE t SET n = 5 WHERE id = 2");
    b.error("UPDATE t SET n = 2 WHERE id = 1", 1205, "Lock wait timeout exceeded; try restarting transaction");
    assert!(b.session.status().in_transaction);
    b.ok("COMMIT");
    a.ok("ROLLBACK");
    a.expect("SELECT id, n FROM t ORDER BY id", &["1|0", "2|5"]);
}

/// Whether a transaction that `before` begins sees what others commit meanwhile.
fn sees_others(before: &[&str]) -> bool {
    let server = server();
    let (mut a, mut b) = (server.session(), server.session());
    a.ok("CREATE TABLE t (id INT PRIMARY KEY, n INT)");
    a.ok("INSERT INTO t VALUES (1, 0)");
    before.iter().for_each(|sql| a.ok(sql));
    a.expect("SELECT n FROM t", &["0"]);
    b.ok("UPDATE t SET n = 1");
    a.run("SELECT n FROM t") == "1"
}

#[test]
fn the_next_transaction_is_as_the_last_set_said() {
    const ONCE: &str = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED";
    let session = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ";
    // As MariaDB 10.11 has it.
    for (before, seen) in [
        (&[ONCE, "BEGIN"] as &[&str], true),
        (&[ONCE, session, "BEGIN"], false),
        (&[ONCE, "SET tx_isolation = 'REPEATABLE-READ'", "BEGIN"], false),
        (&[ONCE, "SET @@session.transaction_isolation = 'REPEATABLE-READ'", "BEGIN"], false),
        (&[ONCE, "SET @@tx_isolation = 'REPEATABLE-READ'", "BEGIN"], false),
        (&["SET @@tx_isolation = 'READ-COMMITTED'", "BEGIN"], true),
        (&["SET @@transaction_isolation = 'READ-COMMITTED'", "BEGIN", "COMMIT", "BEGIN"], false),
        (&[ONCE, "SET GLOBAL TRANSACTION ISOLATION LEVEL REPEATABLE READ", "BEGIN"], true),
        (&[ONCE, "SET SESSION TRANSACTION READ WRITE", "BEGIN"], true),
        (&[ONCE, "BEGIN", "COMMIT", "BEGIN"], false),
        (&[ONCE, "SELECT 1", "BEGIN"], true),
        (&[ONCE, "SELECT * FROM t", "BEGIN"], false),
        (&[ONCE, "COMMIT", "BEGIN"], false),
        (&[ONCE, "ROLLBACK", "BEGIN"], false),
        (&[ONCE, "CREATE TABLE u (id INT PRIMARY KEY)", "BEGIN"], false),
        (&[ONCE, "BEGIN", "COMMIT AND CHAIN"], true),
    ] {
        assert_eq!(sees_others(before), seen, "{before:?}");
    }
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY)");
    t.ok("SET TRANSACTION READ ONLY");
    t.ok("SET SESSION TRANSACTION READ WRITE");
    t.ok("INSERT INTO t VALUES (1)");
    t.ok("SET TRANSACTION READ ONLY");
    t.ok("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
    t.code("INSERT INTO t VALUES (2)", 1792);
    t.ok("BEGIN");
    t.code("SET @@tx_isolation = 'SERIALIZABLE'", 1568);
}

#[test]
fn completion_type() {
    for (variable, end, open) in [
        (0, "COMMIT", false),
        (0, "COMMIT AND CHAIN", true),
        (0, "ROLLBACK AND NO CHAIN", false),
        (1, "COMMIT", true),
        (1, "ROLLBACK", true),
        (1, "COMMIT NO RELEASE", true),
        (1, "COMMIT AND NO CHAIN", false),
        (1, "ROLLBACK WORK AND NO CHAIN", false),
        (1, "COMMIT AND NO CHAIN NO RELEASE", false),
        (2, "COMMIT NO RELEASE", false),
        (2, "ROLLBACK AND NO CHAIN NO RELEASE", false),
        (2, "COMMIT AND CHAIN NO RELEASE", true),
    ] {
        let server = server();
        let mut t = server.session();
        t.ok(&format!("SET completion_type = {variable}"));
        t.ok("BEGIN");
        t.ok(end);
        assert_eq!(t.session.status().in_transaction, open, "{variable} {end}");
        t.ok("SELECT 1");
    }
    for end in ["COMMIT", "ROLLBACK", "COMMIT AND CHAIN", "ROLLBACK AND NO CHAIN"] {
        let server = server();
        let mut t = server.session();
        t.ok("SET completion_type = 2");
        t.ok("BEGIN");
        t.ok(end);
        t.code("SELECT 1", 1317);
    }
    let server = server();
    server.session().code("COMMIT AND CHAIN RELEASE", 1064);
}
