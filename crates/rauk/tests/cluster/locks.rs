//! Locks over several real nodes: FLUSH TABLES WITH READ LOCK keeps writers of all nodes out until it is given back or
//! its node dies; parents of many child rows are locked by few messages.

use crate::common::cluster::{Node, PATIENCE, all_in_one, insist, until, until_healthy};
use crate::common::{number, run};
use mysql::Conn;
use std::thread::JoinHandle;
use std::time::Instant;

/// What a statement is answered, again as long as its node has no lease or a primary is on its way: a busy machine
/// starves both.
fn answer(connection: &mut Conn, sql: &str) -> Vec<String> {
    let began = Instant::now();
    loop {
        let lines = run(connection, sql);
        let again = matches!(lines[0].as_str(), "error 1180" | "error 1213");
        if !again || began.elapsed() > PATIENCE {
            return lines;
        }
    }
}

/// A statement that runs in a thread of its own.
struct Running {
    id: u64,
    thread: JoinHandle<Vec<String>>,
}

impl Running {
    fn start(node: &Node, sql: &'static str) -> Running {
        let mut connection = node.connect();
        let id = number(&mut connection, "SELECT CONNECTION_ID()");
        Running { id, thread: std::thread::spawn(move || run(&mut connection, sql)) }
    }

    /// Waits until the statement is seen to wait for a table's lock.
    fn until_it_waits(&self, node: &Node) {
        let mut connection = node.connect();
        let waits =
            format!("SELECT COUNT(*) FROM information_schema.processlist WHERE id = {} AND info IS NOT NULL", self.id);
        until("the statement runs", || {
            assert!(!self.thread.is_finished(), "the statement has ended");
            number(&mut connection, &waits) == 1
        });
        // It is not stopped by anything but the lock: as long as that, several statements of other sessions pass.
        for _ in 0..20 {
            assert_eq!(number(&mut connection, &waits), 1, "it waits on");
        }
        assert!(!self.thread.is_finished(), "the statement has ended");
    }

    fn ended(self) -> Vec<String> {
        let began = Instant::now();
        while !self.thread.is_finished() {
            assert!(began.elapsed() < PATIENCE, "the statement does not end");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        self.thread.join().expect("it runs")
    }
}

#[test]
fn a_read_lock_of_all_tables_holds_on_all_nodes() {
    let root = tempfile::tempdir().unwrap();
    let mut nodes = all_in_one(root.path(), 3, "2");
    until_healthy(&nodes[0], 3);
    let mut sessions: Vec<Conn> = nodes.iter().map(Node::connect).collect();
    insist(&mut sessions[0], "CREATE DATABASE shop");
    insist(&mut sessions[0], "CREATE TABLE shop.t (id INT PRIMARY KEY, n INT)");
    insist(&mut sessions[0], "INSERT INTO shop.t VALUES (1, 0), (2, 0), (3, 0)");
    for session in &mut sessions {
        insist(session, "SET lock_wait_timeout = 1");
    }

    // A transaction that has written on another node keeps the lock from being taken, until it has ended.
    insist(&mut sessions[2], "BEGIN");
    insist(&mut sessions[2], "UPDATE shop.t SET n = n + 1 WHERE id = 3");
    assert_eq!(answer(&mut sessions[0], "FLUSH TABLES WITH READ LOCK"), ["error 1205"]);
    insist(&mut sessions[2], "COMMIT");

    insist(&mut sessions[0], "FLUSH TABLES WITH READ LOCK");
    for session in &mut sessions {
        assert_eq!(number(session, "SELECT SUM(n) FROM shop.t"), 1, "readers pass on every node");
    }
    assert_eq!(answer(&mut sessions[0], "UPDATE shop.t SET n = 9"), ["error 1223"]);
    for session in &mut sessions[1..] {
        assert_eq!(answer(session, "UPDATE shop.t SET n = n + 10 WHERE id = 1"), ["error 1205"]);
        assert_eq!(answer(session, "INSERT INTO shop.t VALUES (4, 4)"), ["error 1205"]);
        assert_eq!(answer(session, "ALTER TABLE shop.t ADD c INT"), ["error 1205"]);
        assert_eq!(answer(session, "DROP TABLE shop.t"), ["error 1205"]);
        assert_eq!(answer(session, "CREATE TABLE shop.u (id INT)"), ["error 1205"]);
        assert_eq!(answer(session, "CREATE DATABASE other"), ["error 1205"]);
        assert_eq!(answer(session, "CREATE USER who"), ["error 1205"]);
    }
    assert_eq!(answer(&mut sessions[0], "CREATE TABLE shop.u (id INT)"), ["error 1223"]);
    assert_eq!(number(&mut sessions[1], "SELECT SUM(n) FROM shop.t"), 1, "nothing was written");

    // Writers that wait go on when the lock is given back.
    let writers: Vec<Running> =
        nodes[1..].iter().map(|node| Running::start(node, "UPDATE shop.t SET n = n + 100 WHERE id = 2")).collect();
    for (writer, node) in writers.iter().zip(&nodes[1..]) {
        writer.until_it_waits(node);
    }
    let create = Running::start(&nodes[1], "CREATE TABLE shop.u (id INT)");
    create.until_it_waits(&nodes[1]);
    assert_eq!(number(&mut sessions[0], "SELECT SUM(n) FROM shop.t"), 1);
    insist(&mut sessions[0], "UNLOCK TABLES");
    for writer in writers {
        assert_eq!(writer.ended(), ["ok 1"]);
    }
    assert_eq!(create.ended(), ["ok 0"]);
    assert_eq!(number(&mut sessions[0], "SELECT SUM(n) FROM shop.t"), 201);

    // Also when the session that has it is ended, or its node dies.
    insist(&mut sessions[1], "FLUSH TABLES WITH READ LOCK");
    let writer = Running::start(&nodes[2], "UPDATE shop.t SET n = n + 1000 WHERE id = 2");
    writer.until_it_waits(&nodes[2]);
    let holder = number(&mut sessions[1], "SELECT CONNECTION_ID()");
    insist(&mut sessions[2], &format!("KILL {holder}"));
    assert_eq!(writer.ended(), ["ok 1"]);

    insist(&mut sessions[0], "FLUSH TABLES WITH READ LOCK");
    let writer = Running::start(&nodes[2], "UPDATE shop.t SET n = n + 10000 WHERE id = 2");
    writer.until_it_waits(&nodes[2]);
    nodes[0].kill();
    // Its primaries go to others: the statement itself may be told to begin again.
    let answer = writer.ended();
    assert!(matches!(answer[0].as_str(), "ok 1" | "error 1213"), "{answer:?}");
    let mut session = nodes[2].connect();
    until("the others write", || run(&mut session, "UPDATE shop.t SET n = 7 WHERE id = 2") == ["ok 1"]);
}

#[test]
fn parents_of_many_rows_are_locked_together() {
    let root = tempfile::tempdir().unwrap();
    let nodes = all_in_one(root.path(), 3, "1");
    until_healthy(&nodes[0], 3);
    let mut sessions: Vec<Conn> = nodes.iter().map(Node::connect).collect();
    let [first, second, _] = &mut sessions[..] else { panic!("three sessions") };
    insist(first, "CREATE DATABASE shop");
    insist(first, "CREATE TABLE shop.p (id INT PRIMARY KEY, code VARCHAR(10) NOT NULL UNIQUE)");
    insist(first, "CREATE TABLE shop.bare (id INT PRIMARY KEY, p INT NOT NULL, code VARCHAR(10) NOT NULL)");
    insist(
        first,
        "CREATE TABLE shop.c (id INT PRIMARY KEY, p INT NOT NULL, code VARCHAR(10) NOT NULL, \
         CONSTRAINT by_id FOREIGN KEY (p) REFERENCES shop.p (id), \
         CONSTRAINT by_code FOREIGN KEY (code) REFERENCES shop.p (code))",
    );
    insist(first, "SET cte_max_recursion_depth = 1000");
    let numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600) SELECT i";
    insist(first, &format!("INSERT INTO shop.p (id, code) {numbers}, CONCAT('c', i) FROM n"));
    let asked = "SELECT value FROM rauk.counters WHERE name = 'remote_operations'";
    let cost = |first: &mut Conn, sql: &str| {
        let before = number(first, asked);
        insist(first, sql);
        number(first, asked) - before
    };
    let bare = cost(first, &format!("INSERT INTO shop.bare {numbers}, i, CONCAT('c', i) FROM n"));
    let checked = cost(first, &format!("INSERT INTO shop.c {numbers}, i, CONCAT('c', i) FROM n"));
    // Two thirds of 600 rows go elsewhere, some messages for all of them. Each row's two parents would be 800 more.
    assert!(
        (1..60).contains(&bare) && checked < bare + 60,
        "{bare} operations without foreign keys, {checked} with them"
    );

    // The locks are there, on whatever node their rows are.
    insist(first, "BEGIN");
    insist(first, "INSERT INTO shop.c VALUES (1001, 1, 'c2'), (1002, 3, 'c4'), (1003, 5, 'c6')");
    insist(second, "SET innodb_lock_wait_timeout = 1");
    for id in 1..=6 {
        assert_eq!(run(second, &format!("DELETE FROM shop.p WHERE id = {id}")), ["error 1205"]);
    }
    insist(first, "ROLLBACK");
    // And what is missing is refused, with nothing half done.
    assert_eq!(
        run(first, "INSERT INTO shop.c VALUES (1001, 1, 'c2'), (1002, 9999, 'c4'), (1003, 5, 'c6')"),
        ["error 1452"]
    );
    assert_eq!(run(first, "INSERT INTO shop.c VALUES (1001, 1, 'c2'), (1002, 3, 'none')"), ["error 1452"]);
    assert_eq!(number(second, "SELECT COUNT(*) FROM shop.c WHERE id > 1000"), 0);
    assert_eq!(run(first, "INSERT IGNORE INTO shop.c VALUES (1001, 1, 'c2'), (1002, 9999, 'c4')"), ["ok 1"]);
    assert_eq!(run(second, "DELETE FROM shop.p WHERE id = 2"), ["error 1451"]);
}
