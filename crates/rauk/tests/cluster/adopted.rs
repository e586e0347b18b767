//! A node that was alone becomes the first of a cluster: by a start with other flags, with all that it had, however
//! often that is cut off; others join, and it may go.

use crate::common::cluster::{Node, PATIENCE, insist_on, member_command, until, until_healthy};
use crate::common::{Rauk, run};
use mysql::Conn;
use mysql::prelude::Queryable;
use std::time::Instant;

const SCHEMA: &[&str] = &[
    "CREATE DATABASE shop COMMENT 'all of it'",
    "USE shop",
    "CREATE TABLE customer (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40) COLLATE utf8mb4_0900_as_cs, kind ENUM('a', 'b') DEFAULT 'b', UNIQUE (name))",
    "CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, customer INT NOT NULL, said JSON, total DECIMAL(10, 2) CHECK (total >= 0), twice DECIMAL(10, 2) AS (total * 2) STORED, KEY (total), FOREIGN KEY (customer) REFERENCES customer (id) ON DELETE CASCADE)",
    "CREATE TABLE log (line TEXT, FULLTEXT (line))",
    "CREATE TABLE session (user INT, number INT, content LONGBLOB, PRIMARY KEY (user, number)) PARTITION BY KEY (user)",
    "CREATE VIEW large AS SELECT c.name, o.total FROM customer c JOIN orders o ON o.customer = c.id WHERE o.total > 500",
    "CREATE USER clerk IDENTIFIED BY 'secret'",
    "GRANT SELECT, INSERT ON shop.* TO clerk",
    "SET PERSIST max_connections = 77",
];

fn fill(connection: &mut Conn) {
    for sql in SCHEMA {
        connection.query_drop(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
    }
    for id in 1..=200 {
        connection.query_drop(format!("INSERT INTO customer (name) VALUES ('customer {id}')")).unwrap();
        let said = format!("{{\"number\": {id}, \"words\": [\"a\", \"b\"]}}");
        let order = format!("INSERT INTO orders (customer, said, total) VALUES ({id}, '{said}', {id} * 5)");
        connection.query_drop(order).unwrap();
        connection.query_drop(format!("INSERT INTO log VALUES ('line {id} of {}')", id % 7)).unwrap();
    }
    connection.query_drop("INSERT INTO session VALUES (1, 1, REPEAT('x', 100000)), (2, 1, 'y')").unwrap();
    connection.query_drop("DELETE FROM customer WHERE id IN (3, 200)").unwrap();
    connection.query_drop("ALTER TABLE log ADD COLUMN at DATE DEFAULT '2026-11-28'").unwrap();
    connection.query_drop("UPDATE log SET at = '2026-11-29' WHERE line LIKE '%of 3'").unwrap();
}

/// What a client can ask for.
fn everything(connection: &mut Conn) -> Vec<String> {
    let questions = [
        "CHECKSUM TABLE shop.customer, shop.orders, shop.log, shop.session",
        "SELECT COUNT(*), SUM(total), SUM(twice), SUM(said->'$.number') FROM shop.orders",
        "SELECT COUNT(*) FROM shop.log WHERE MATCH (line) AGAINST ('line') AND at = '2026-11-29'",
        "SELECT LENGTH(content), number FROM shop.session ORDER BY user",
        "SELECT COUNT(*), MIN(name) FROM shop.large",
        "SELECT id FROM shop.customer WHERE name = 'customer 17'",
        "SHOW CREATE VIEW shop.large",
        "SHOW CREATE TABLE shop.log",
        "SHOW CREATE TABLE shop.session",
        "SHOW GRANTS FOR clerk",
        "SHOW CREATE DATABASE shop",
        "SELECT @@max_connections",
        "SELECT COUNT(*) FROM information_schema.referential_constraints WHERE constraint_schema = 'shop'",
    ];
    let mut answers: Vec<String> = questions.iter().flat_map(|sql| run(connection, sql)).collect();
    for sql in [
        "INSERT INTO shop.customer (name) VALUES ('customer 9')",
        "INSERT INTO shop.orders (customer, total) VALUES (3, 1)",
        "INSERT INTO shop.orders (customer, total) VALUES (4, -1)",
    ] {
        answers.push(match connection.query_drop(sql) {
            Err(mysql::Error::MySqlError(error)) => error.code.to_string(),
            other => format!("{other:?}"),
        });
    }
    answers
}

/// All of it is there. A node of a busy machine may lose its lease meanwhile, and start again.
fn check(node: &Node, expected: &[String]) {
    let began = Instant::now();
    loop {
        let found = everything(&mut node.connect());
        if found == expected {
            return;
        }
        if began.elapsed() > PATIENCE {
            assert_eq!(found, expected);
        }
    }
}

/// An order gets a number that none had, and goes with its customer.
fn goes_on(node: &Node, above: u64) -> u64 {
    insist_on(node, &["INSERT INTO shop.orders (customer, total) VALUES (9, 9)"]);
    let mut id = 0;
    until("the order is read", || {
        let found = node.connect().query_first("SELECT MAX(id) FROM shop.orders").ok().flatten();
        id = found.unwrap_or(0);
        id > 0
    });
    assert!(id > above, "{id} after {above}");
    insist_on(node, &["DELETE FROM shop.orders WHERE total = 9"]);
    id
}

#[test]
fn a_node_alone_becomes_the_first_of_a_cluster() {
    let root = tempfile::tempdir().unwrap();
    let (first, secret) = (root.path().join("n1"), root.path().join("secret"));
    let secret = secret.to_str().unwrap();
    let alone = Rauk::start(&first);
    fill(&mut alone.connect());
    let expected = everything(&mut alone.connect());
    alone.kill();
    let founding = ["--replicas", "2", "--cluster-secret-file", secret];
    for point in ["checkpoint.before_publish", "member.open.adopted", "member.open.registered"] {
        let mut command = member_command(&first, &founding);
        command.env("RAUK_FAULT", format!("{point}:abort"));
        assert!(Rauk::start_with(command).is_err(), "{point} is passed");
    }
    let mut nodes = vec![Node::start(&first, &founding)];
    check(&nodes[0], &expected);
    let last = goes_on(&nodes[0], 200);
    let founder = nodes[0].address();
    for number in 2..=3 {
        let dir = root.path().join(format!("n{number}"));
        nodes.push(Node::start(&dir, &["--join", &founder, "--cluster-secret-file", secret]));
    }
    until_healthy(&nodes[1], 3);
    check(&nodes[2], &expected);
    let last = goes_on(&nodes[2], last);
    // What the founder had is elsewhere too.
    nodes[0].kill();
    let last = goes_on(&nodes[1], last);
    check(&nodes[1], &expected);
    nodes[0].restart();
    until_healthy(&nodes[1], 3);
    goes_on(&nodes[0], last);
    check(&nodes[0], &expected);
    nodes.iter_mut().for_each(Node::stop);
}
