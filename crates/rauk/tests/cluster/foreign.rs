//! Foreign keys over several real nodes: parents and children that different nodes lead, written from different nodes, and definitions that are made on one of
//! them while the others write.

use crate::common::cluster::{Node, all_in_one, insist, until_healthy};
use crate::common::run;
use mysql::Conn;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Runs a statement on a connection of its own beside the test; gives how to hear its answer.
fn beside(node: &Node, sql: &str) -> std::sync::mpsc::Receiver<Vec<String>> {
    let mut connection: Conn = node.connect();
    let (answer, answers) = channel();
    let sql = sql.to_string();
    std::thread::spawn(move || answer.send(run(&mut connection, &sql)));
    answers
}

#[test]
fn a_child_has_its_parent_wherever_both_are() {
    let root = tempfile::tempdir().unwrap();
    let nodes = all_in_one(root.path(), 3, "2");
    until_healthy(&nodes[0], 3);
    let mut at: Vec<Conn> = nodes.iter().map(Node::connect).collect();
    insist(&mut at[0], "CREATE DATABASE shop");
    insist(&mut at[0], "CREATE TABLE shop.p (id INT PRIMARY KEY, u INT UNIQUE)");
    insist(
        &mut at[1],
        "CREATE TABLE shop.c (id INT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES shop.p (id) ON UPDATE CASCADE)",
    );
    insist(
        &mut at[2],
        "CREATE TABLE shop.g (id INT PRIMARY KEY, u INT, FOREIGN KEY (u) REFERENCES shop.p (u) ON DELETE CASCADE)",
    );
    let rows: Vec<String> = (1..=60).map(|id| format!("({id}, {})", id * 10)).collect();
    insist(&mut at[1], &format!("INSERT INTO shop.p VALUES {}", rows.join(", ")));
    // Each node writes children whose parents all nodes lead.
    for (number, connection) in at.iter_mut().enumerate() {
        for part in 0..10 {
            let id = 1 + part * 3 + number;
            insist(connection, &format!("INSERT INTO shop.c VALUES ({id}, {id})"));
            insist(connection, &format!("INSERT INTO shop.g VALUES ({id}, {}), ({}, {})", id * 10, id + 100, id * 10));
            assert_eq!(
                run(connection, &format!("INSERT INTO shop.c VALUES ({}, {})", id + 200, id + 200)),
                ["error 1452"]
            );
            assert_eq!(run(connection, &format!("DELETE FROM shop.p WHERE id = {id}")), ["error 1451"]);
        }
    }
    assert_eq!(run(&mut at[2], "DELETE FROM shop.c WHERE id <= 15"), ["ok 15"]);
    assert_eq!(run(&mut at[0], "DELETE FROM shop.p WHERE id <= 15"), ["ok 15"]);
    assert_eq!(run(&mut at[1], "SELECT COUNT(*) FROM shop.g"), ["30"]);
    assert_eq!(run(&mut at[1], "UPDATE shop.p SET id = id + 1000 WHERE id <= 30"), ["ok 15"]);
    assert_eq!(run(&mut at[2], "SELECT COUNT(*) FROM shop.c WHERE pid > 1000"), ["15"]);

    // The delete is first, then the child is: whoever comes second waits.
    insist(&mut at[0], "BEGIN");
    insist(&mut at[0], "DELETE FROM shop.p WHERE id = 40");
    let child = beside(&nodes[1], "INSERT INTO shop.c VALUES (400, 40)");
    assert_eq!(child.recv_timeout(Duration::from_millis(300)), Err(RecvTimeoutError::Timeout));
    insist(&mut at[0], "COMMIT");
    assert_eq!(child.recv().unwrap(), ["error 1452"]);
    insist(&mut at[0], "BEGIN");
    insist(&mut at[0], "INSERT INTO shop.c VALUES (410, 41)");
    let parent = beside(&nodes[2], "DELETE FROM shop.p WHERE id = 41");
    assert_eq!(parent.recv_timeout(Duration::from_millis(300)), Err(RecvTimeoutError::Timeout));
    insist(&mut at[0], "COMMIT");
    assert_eq!(parent.recv().unwrap(), ["error 1451"]);

    // What one node defines all obey.
    assert_eq!(run(&mut at[2], "DROP TABLE shop.p"), ["error 3730"]);
    insist(&mut at[1], "CREATE TABLE shop.l (id INT PRIMARY KEY, pid INT)");
    insist(&mut at[2], "INSERT INTO shop.l VALUES (1, 42), (2, 4242)");
    let add = "ALTER TABLE shop.l ADD CONSTRAINT late FOREIGN KEY (pid) REFERENCES shop.p (id)";
    assert_eq!(run(&mut at[0], add), ["error 1452"]);
    insist(&mut at[1], "UPDATE shop.l SET pid = 43 WHERE id = 2");
    insist(&mut at[0], add);
    assert_eq!(run(&mut at[2], "DELETE FROM shop.p WHERE id = 42"), ["error 1451"]);
    assert_eq!(run(&mut at[1], "INSERT INTO shop.l VALUES (3, 9999)"), ["error 1452"]);
    insist(&mut at[2], "RENAME TABLE shop.p TO shop.parents");
    assert_eq!(run(&mut at[0], "INSERT INTO shop.l VALUES (3, 9999)"), ["error 1452"]);
    insist(&mut at[1], "ALTER TABLE shop.l DROP FOREIGN KEY late");
    assert_eq!(run(&mut at[2], "DELETE FROM shop.parents WHERE id = 42"), ["ok 1"]);
    insist(&mut at[0], "DROP TABLE shop.parents, shop.c, shop.g");
}
