//! Changes of rows from every node of a cluster say and do what they say and do on one node, whoever leads the rows. One
//! row by its key that another node leads costs one question, and so do many rows of one partition.

use crate::common::cluster::{Node, all_in_one, insist, numbered, until_healthy};
use crate::common::{Rauk, number, run, told};
use mysql::Conn;
use mysql::prelude::Queryable;

const TABLE: &str = "CREATE TABLE shop.c (id INT PRIMARY KEY, n INT NOT NULL, u TINYINT UNSIGNED, t VARCHAR(5), \
                     d DECIMAL(6,2), at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, \
                     e ENUM('a', 'b'), x VARCHAR(9000), KEY (n))";

/// What is done to each row; `{id}` is its key.
const STATEMENTS: &[&str] = &[
    "INSERT INTO shop.c (id, n, u, t) VALUES ({id}, {id}, 100, 'abc')",
    "INSERT INTO shop.c (id, n, u, t) VALUES ({id}, 5, 5, 'abc')",
    "INSERT IGNORE INTO shop.c (id, n) VALUES ({id}, 5)",
    "INSERT INTO shop.c (id, n) VALUES ({id}, 5) ON DUPLICATE KEY UPDATE n = n + 10",
    "INSERT INTO shop.c (id, n) VALUES ({id} + 100, 5) ON DUPLICATE KEY UPDATE n = n + 10",
    "REPLACE INTO shop.c (id, n, u, t) VALUES ({id} + 100, 6, 7, 'rep')",
    "INSERT INTO shop.c (id, n) VALUES ({id} + 200, 5) RETURNING id, n",
    "SET timestamp = 1700000100",
    "UPDATE shop.c SET n = n + 1 WHERE id = {id}",
    "SELECT * FROM shop.c WHERE id = {id}",
    "UPDATE shop.c SET n = n WHERE id = {id}",
    "UPDATE shop.c SET n = n + 1 WHERE id = {id} AND n > 100000",
    "UPDATE shop.c SET n = n + 1 WHERE id = {id} + 1000",
    "UPDATE shop.c SET n = n + 1 WHERE id = {id} AND t = 'ABC' AND u BETWEEN 50 AND 150",
    "UPDATE shop.c SET t = CONCAT(t, 'x'), n = CHAR_LENGTH(t), u = u - 1 WHERE id = {id}",
    "UPDATE shop.c SET u = u + 200 WHERE id = {id}",
    "UPDATE IGNORE shop.c SET u = u + 200 WHERE id = {id}",
    "UPDATE shop.c SET u = u - 256 WHERE id = {id}",
    "UPDATE shop.c SET t = 'too long' WHERE id = {id}",
    "SET sql_mode = ''",
    "UPDATE shop.c SET t = 'too long' WHERE id = {id}",
    "UPDATE shop.c SET n = NULL, u = 300 WHERE id = {id}",
    "SET sql_mode = DEFAULT",
    "UPDATE shop.c SET d = n / 3 WHERE id = {id}",
    "UPDATE shop.c SET d = 10 / 3 WHERE id = {id}",
    "UPDATE shop.c SET n = NULL WHERE id = {id}",
    "UPDATE shop.c SET e = 'b' WHERE id = {id}",
    "UPDATE shop.c SET e = 'z' WHERE id = {id}",
    "UPDATE shop.c SET n = n + (SELECT 7) WHERE id = {id}",
    "UPDATE shop.c SET n = 1 / 0 WHERE id = {id}",
    "UPDATE shop.c SET n = n + 1 WHERE id = {id} AND 1 / (n - n) IS NULL",
    "UPDATE shop.c SET at = '2024-05-06 07:08:09' WHERE id = {id}",
    "UPDATE shop.c SET x = REPEAT('x', 8500), u = 3 WHERE id = {id}",
    "UPDATE shop.c SET u = u + 1 WHERE id = {id}",
    "UPDATE shop.c SET x = NULL, u = 4 WHERE id = {id}",
    "UPDATE shop.c SET id = id + 500 WHERE id = {id}",
    "UPDATE shop.c SET id = id - 500 WHERE id = {id} + 500",
    "UPDATE shop.c SET n = n + 1 WHERE id = {id} ORDER BY n LIMIT 1",
    "UPDATE shop.c SET n = n + 1 WHERE id = {id} LIMIT 0",
    "SET @by = 3",
    "UPDATE shop.c SET n = n + @by WHERE id = {id}",
    "PREPARE p FROM 'UPDATE shop.c SET n = n * ?, t = ? WHERE id = ?'",
    "SET @t = 'p', @id = {id}",
    "EXECUTE p USING @by, @t, @id",
    "EXECUTE p USING @by, @t, @id",
    "PREPARE p FROM 'DELETE FROM shop.c WHERE id = ? AND n < ?'",
    "EXECUTE p USING @id, @by",
    "SET timestamp = 1700000200",
    "BEGIN",
    "UPDATE shop.c SET n = n + 1 WHERE id = {id}",
    "UPDATE shop.c SET n = n + 1 WHERE id = {id}",
    "SELECT * FROM shop.c WHERE id = {id}",
    "SAVEPOINT s",
    "DELETE FROM shop.c WHERE id = {id} AND n > 0",
    "UPDATE shop.c SET n = n + 1 WHERE id = {id}",
    "ROLLBACK TO s",
    "UPDATE shop.c SET u = 'none' WHERE id = {id}",
    "UPDATE shop.c SET u = 9 WHERE id = {id}",
    "COMMIT",
    "BEGIN",
    "DELETE FROM shop.c WHERE id = {id}",
    "INSERT INTO shop.c (id, n) VALUES ({id}, 77)",
    "UPDATE shop.c SET n = n + 1 WHERE id = {id}",
    "ROLLBACK",
    "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    "UPDATE shop.c SET n = n + 1 WHERE id = {id}",
    "UPDATE shop.c SET n = n + 1 WHERE id = {id} + 1000",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "BEGIN",
    "SELECT n FROM shop.c WHERE id = {id}",
    "UPDATE shop.c SET n = n + 1 WHERE id = {id} AND t IS NULL",
    "UPDATE shop.c SET n = n + 1 WHERE id = {id} AND t IS NOT NULL",
    "COMMIT",
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "DELETE FROM shop.c WHERE id = {id} AND n < 0",
    "DELETE FROM shop.c WHERE id = {id} + 100 AND t LIKE 'r%'",
    "DELETE FROM shop.c WHERE id = {id} + 100",
    "DELETE FROM shop.c WHERE id = {id} + 200 RETURNING id, n",
    "SELECT id, n, u, t, d, at, e, x FROM shop.c WHERE id = {id}",
];

fn shop(connection: &mut Conn) {
    insist(connection, "CREATE DATABASE shop");
    insist(connection, TABLE);
}

fn prepared(connection: &mut Conn) {
    for statement in ["SET time_zone = '+00:00'", "SET timestamp = 1700000000"] {
        insist(connection, statement);
    }
}

#[test]
fn changes_by_key_are_what_they_are_on_one_node() {
    let (root, alone) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let alone = Rauk::start(alone.path());
    let nodes = all_in_one(root.path(), 3, "2");
    until_healthy(&nodes[0], 3);
    let mut expected = alone.connect();
    shop(&mut expected);
    shop(&mut nodes[0].connect());
    let mut connections: Vec<Conn> = nodes.iter().map(Node::connect).collect();
    connections.iter_mut().chain([&mut expected]).for_each(prepared);
    for id in 1..=12 {
        for (number, connection) in connections.iter_mut().enumerate() {
            // Each node does all of it to rows of its own.
            let id = id + 20 * number;
            for statement in STATEMENTS {
                let sql = statement.replace("{id}", &id.to_string());
                let (found, wanted) = (told(connection, &sql), told(&mut expected, &sql));
                assert_eq!(found, wanted, "node {}: {sql}", number + 1);
            }
            insist(connection, "SET timestamp = 1700000000");
            insist(&mut expected, "SET timestamp = 1700000000");
        }
    }
    let rows = "SELECT id, n, u, t, d, at, e, x FROM shop.c ORDER BY id";
    let wanted = run(&mut expected, rows);
    for connection in &mut connections {
        assert_eq!(run(connection, rows), wanted);
    }
}

#[test]
fn a_change_of_a_row_of_another_node_is_one_question() {
    let root = tempfile::tempdir().unwrap();
    let nodes = all_in_one(root.path(), 3, "2");
    until_healthy(&nodes[0], 3);
    let mut connection = nodes[0].connect();
    shop(&mut connection);
    let asked = |connection: &mut Conn| -> u64 {
        let sql = "SELECT value FROM rauk.counters WHERE name = 'remote_operations'";
        connection.query_first(sql).unwrap().expect("it is counted")
    };
    let forms = [
        "INSERT INTO shop.c (id, n) VALUES ({id}, 1)",
        "UPDATE shop.c SET n = n + 1 WHERE id = {id}",
        "UPDATE shop.c SET t = 'two', at = NOW() WHERE id = {id} AND n = 2",
        "DELETE FROM shop.c WHERE id = {id}",
    ];
    let mut counts = Vec::new();
    for form in forms {
        let mut of_form = 0;
        for id in 0..60 {
            let before = asked(&mut connection);
            assert_eq!(run(&mut connection, &form.replace("{id}", &id.to_string())), ["ok 1"]);
            let questions = asked(&mut connection) - before;
            assert!(questions <= 1, "{questions} questions: {form}");
            of_form += questions;
        }
        counts.push(of_form);
    }
    // Some two thirds of the rows are led elsewhere, and each is asked for once.
    assert!(counts.iter().all(|count| *count == counts[0] && (20..60).contains(count)), "{counts:?}");
}

/// Statements that change many rows, and the table with their keys.
const MANY: &[&str] = &[
    "CREATE TABLE shop.m (id INT PRIMARY KEY, n INT NOT NULL, code VARCHAR(20) UNIQUE, u TINYINT UNSIGNED, pad VARCHAR(300), \
     twice INT AS (n * 2) STORED, KEY (n), CHECK (n < 100000))",
    "CREATE TABLE shop.s (id INT PRIMARY KEY, n INT NOT NULL, code VARCHAR(20))",
    "INSERT INTO shop.m (id, n, code, u) SELECT i, i % 7, CONCAT('c', i), i % 200 FROM shop.numbers",
    "INSERT INTO shop.s SELECT i, i, CONCAT('c', i % 500) FROM shop.numbers",
    "UPDATE shop.m SET n = n + 1",
    "UPDATE shop.m SET n = n + 1, pad = REPEAT('p', id % 300) WHERE id % 3 = 0",
    "UPDATE shop.m SET n = n WHERE id < 300",
    "UPDATE shop.m SET n = n + 10 WHERE n = 3",
    "UPDATE shop.m SET n = n + 10 ORDER BY n DESC, id LIMIT 250",
    // The whole statement is undone: a value, a CHECK, a key.
    "UPDATE shop.m SET u = u + 60 WHERE id <= 580 ORDER BY id",
    "UPDATE shop.m SET n = id * 200 WHERE id > 10 ORDER BY id",
    "UPDATE shop.m SET code = IF(id = 590, 'c3', CONCAT(code, '!')) WHERE id > 10 ORDER BY id",
    "UPDATE IGNORE shop.m SET u = u + 60 ORDER BY id",
    "UPDATE IGNORE shop.m SET n = id * 200 ORDER BY id",
    "UPDATE IGNORE shop.m SET code = CONCAT('c', id DIV 2), n = n + 1 ORDER BY id",
    "UPDATE shop.m SET code = CONCAT('d', id)",
    "UPDATE shop.m SET id = id + 1000 WHERE id % 2 = 0",
    "UPDATE shop.m SET id = id - 1000 WHERE id > 1000 ORDER BY id",
    "INSERT IGNORE INTO shop.m (id, n, code, u) SELECT id + 400, n, CONCAT('d', id + 300), 1 FROM shop.s",
    "REPLACE INTO shop.m (id, n, code) SELECT id + 900, n, CONCAT('d', id + 700) FROM shop.s",
    "INSERT IGNORE INTO shop.m (id, n, code) SELECT id + 3000, n, code FROM shop.s",
    "SELECT COUNT(*), SUM(n), SUM(twice), COUNT(DISTINCT code), MIN(code), MAX(code), SUM(u), SUM(LENGTH(pad)) FROM shop.m",
    "BEGIN",
    "UPDATE shop.m SET n = n + 1 WHERE id < 500",
    "SAVEPOINT one",
    "DELETE FROM shop.m WHERE id < 400",
    "UPDATE shop.m SET n = n + 1 WHERE id < 600",
    "SELECT COUNT(*), SUM(n) FROM shop.m",
    "ROLLBACK TO one",
    "SELECT COUNT(*), SUM(n) FROM shop.m",
    "INSERT INTO shop.m (id, n, code) VALUES (9000, 1, 'd3')",
    "DELETE FROM shop.m WHERE id < 5",
    "INSERT INTO shop.m (id, n, code) VALUES (9000, 1, 'd3')",
    "COMMIT",
    "DELETE FROM shop.m WHERE n > 20 ORDER BY n, id LIMIT 100",
    "DELETE FROM shop.m WHERE id BETWEEN 100 AND 180 ORDER BY id RETURNING id, n, code",
    "DELETE FROM shop.m WHERE id % 2 = 1",
    "SELECT id, n, code, u, pad, twice FROM shop.m ORDER BY id",
    "SELECT code FROM shop.m WHERE code > 'd' ORDER BY code",
    "SELECT id FROM shop.m FORCE INDEX (n) WHERE n > 2 ORDER BY n, id",
    "DELETE FROM shop.m",
    "SELECT COUNT(*) FROM shop.m",
    "INSERT INTO shop.m (id, n, code) SELECT id, n, CONCAT('e', id) FROM shop.s",
    "DROP TABLE shop.m, shop.s",
];

#[test]
fn changes_of_many_rows_are_what_they_are_on_one_node() {
    let (root, alone) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let alone = Rauk::start(alone.path());
    let nodes = all_in_one(root.path(), 3, "2");
    until_healthy(&nodes[0], 3);
    let mut expected = alone.connect();
    numbered(&mut expected);
    numbered(&mut nodes[0].connect());
    for (number, node) in nodes.iter().enumerate().take(2) {
        let mut connection = node.connect();
        for statement in MANY {
            let (found, wanted) = (told(&mut connection, statement), told(&mut expected, statement));
            assert_eq!(found, wanted, "node {}: {statement}", number + 1);
        }
    }
}

#[test]
fn changes_of_many_rows_go_to_their_partitions_together() {
    let root = tempfile::tempdir().unwrap();
    let nodes = all_in_one(root.path(), 3, "1");
    until_healthy(&nodes[0], 3);
    let connection = &mut nodes[0].connect();
    numbered(connection);
    insist(connection, "CREATE TABLE shop.m (id INT PRIMARY KEY, n INT NOT NULL, code VARCHAR(20) UNIQUE, KEY (n))");
    let asked = "SELECT value FROM rauk.counters WHERE name = 'remote_operations'";
    // Two thirds of 600 rows are led elsewhere: 400 questions, or 800 with the unique key, if each goes by itself.
    for statement in [
        "INSERT IGNORE INTO shop.m SELECT i, i, CONCAT('c', i) FROM shop.numbers",
        "REPLACE INTO shop.m SELECT i + 1000, i, CONCAT('d', i) FROM shop.numbers",
        "UPDATE shop.m SET n = n + 1 WHERE id < 1000",
        "DELETE FROM shop.m WHERE id > 1000",
        "DELETE FROM shop.m",
    ] {
        let before = number(connection, asked);
        insist(connection, statement);
        let asked = number(connection, asked) - before;
        assert!((1..150).contains(&asked), "{asked} questions for {statement}");
    }
}
