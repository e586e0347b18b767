//! Changes of rows by their keys from every node of a cluster say and do what they say and do on one node, whoever leads
//! the rows; one that another node leads costs one question.

mod common;

use common::cluster::{Node, all_in_one, insist, until_healthy};
use common::{Rauk, run};
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

/// All that a client hears of a statement.
fn told(connection: &mut Conn, sql: &str) -> String {
    let lines = run(connection, sql);
    let info = connection.info_str().into_owned();
    let warnings = run(connection, "SHOW WARNINGS");
    format!("{lines:?} {info} {warnings:?}")
}

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
        let sql = "SELECT value FROM rauk.jobs WHERE name = 'remote_operations'";
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
