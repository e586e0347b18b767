//! Statements that change many rows in a cluster where each row may meet others: ON DUPLICATE KEY UPDATE and REPLACE of
//! rows that are there, unique keys that change, several tables, foreign keys. What they say and do is what it is on one
//! node, and rows go to their partitions together.

use crate::common::cluster::{Node, all_in_one, insist, numbered, until_healthy};
use crate::common::{Rauk, number, run, told};
use mysql::Conn;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Rows that meet others.
const OVER: &[&str] = &[
    "CREATE TABLE shop.a (id INT PRIMARY KEY, n INT NOT NULL, t VARCHAR(20), KEY (n))",
    "INSERT INTO shop.a SELECT i, i % 9, CONCAT('t', i) FROM shop.numbers WHERE i % 3 > 0",
    // Some are there, some are not.
    "INSERT INTO shop.a SELECT i, i, 'new' FROM shop.numbers ORDER BY i ON DUPLICATE KEY UPDATE n = a.n + 1000",
    "INSERT INTO shop.a SELECT i, i, 'new' FROM shop.numbers ORDER BY i ON DUPLICATE KEY UPDATE n = a.n",
    "INSERT INTO shop.a SELECT i, i, 'newer' FROM shop.numbers ORDER BY i ON DUPLICATE KEY UPDATE t = VALUES(t), n = a.n + VALUES(n) + i",
    // A row of the statement meets one that came before it.
    "INSERT INTO shop.a SELECT 1000 + i DIV 4, i, 'met' FROM shop.numbers ORDER BY i ON DUPLICATE KEY UPDATE n = a.n + 1, t = VALUES(t)",
    "INSERT INTO shop.a SELECT 1000 + i DIV 4, i, 'met' FROM shop.numbers ORDER BY i ON DUPLICATE KEY UPDATE n = a.n + VALUES(n)",
    "INSERT INTO shop.a VALUES (1, 5, 'x'), (2, 6, 'y'), (1, 7, 'z'), (5000, 1, 'one'), (5000, 2, 'two') ON DUPLICATE KEY UPDATE n = VALUES(n), t = CONCAT(t, '+')",
    "INSERT INTO shop.a VALUES (1, @a := 5, 'x'), (2, @a := 6, 'y') ON DUPLICATE KEY UPDATE n = @a",
    "INSERT INTO shop.a SELECT i, 1, 'rand' FROM shop.numbers WHERE i < 50 ORDER BY i ON DUPLICATE KEY UPDATE n = RAND(3) * 100",
    "INSERT INTO shop.a SELECT i, 1, 'last' FROM shop.numbers WHERE i < 50 ORDER BY i ON DUPLICATE KEY UPDATE n = LAST_INSERT_ID(a.n + i)",
    "SELECT LAST_INSERT_ID()",
    // The whole statement is undone.
    "INSERT INTO shop.a SELECT i + 5500, 1, 'no' FROM shop.numbers ORDER BY i ON DUPLICATE KEY UPDATE n = a.n + 1",
    "INSERT INTO shop.a SELECT i + 5500, 1, 'no' FROM shop.numbers ORDER BY i ON DUPLICATE KEY UPDATE n = IF(i = 590, NULL, 7)",
    "INSERT INTO shop.a SELECT i + 5500, 1, 'no' FROM shop.numbers ORDER BY i ON DUPLICATE KEY UPDATE t = IF(i = 590, REPEAT('x', 30), 7)",
    "INSERT IGNORE INTO shop.a SELECT i + 5500, 1, 'no' FROM shop.numbers ORDER BY i ON DUPLICATE KEY UPDATE t = IF(i > 590, REPEAT('x', 30), 7)",
    "INSERT INTO shop.a SELECT i + 5500, 1, 'no' FROM shop.numbers WHERE i < 40 ORDER BY i ON DUPLICATE KEY UPDATE id = a.id - 1",
    "INSERT INTO shop.a SELECT i + 5501, 1, 'no' FROM shop.numbers WHERE i < 40 ORDER BY i ON DUPLICATE KEY UPDATE id = a.id + 10000",
    "INSERT INTO shop.a SELECT i, i, 'sub' FROM shop.numbers WHERE i < 90 ORDER BY i ON DUPLICATE KEY UPDATE n = (SELECT MAX(i) FROM shop.numbers)",
    "SELECT COUNT(*), SUM(id), SUM(n), MIN(t), MAX(t), SUM(CRC32(CONCAT_WS(',', id, n, t))) FROM shop.a",
    "REPLACE INTO shop.a SELECT i, i, 'rep' FROM shop.numbers ORDER BY i",
    "REPLACE INTO shop.a SELECT i, i, 'rep' FROM shop.numbers ORDER BY i",
    "REPLACE INTO shop.a SELECT i + 300, i DIV 2, 'rep2' FROM shop.numbers ORDER BY i",
    "REPLACE INTO shop.a SELECT i DIV 2, i, CONCAT('r', i) FROM shop.numbers ORDER BY i",
    "SELECT COUNT(*), SUM(id), SUM(n), MIN(t), MAX(t), SUM(CRC32(CONCAT_WS(',', id, n, t))) FROM shop.a",
    // One unique key, and a hidden one.
    "CREATE TABLE shop.h (u INT UNIQUE, v INT, at TIMESTAMP NOT NULL DEFAULT '2024-01-01 00:00:00' ON UPDATE CURRENT_TIMESTAMP)",
    "INSERT INTO shop.h (u, v) SELECT i, 0 FROM shop.numbers WHERE i % 2 = 0",
    "INSERT INTO shop.h (u, v) SELECT i, i FROM shop.numbers ORDER BY i ON DUPLICATE KEY UPDATE v = h.v + 1",
    "INSERT INTO shop.h (u, v) SELECT IF(i % 10, i + 300, NULL), i FROM shop.numbers ORDER BY i ON DUPLICATE KEY UPDATE v = h.v + 10",
    "REPLACE INTO shop.h (u, v) SELECT i + 200, -i FROM shop.numbers ORDER BY i",
    "REPLACE INTO shop.h (u, v) SELECT i DIV 3, -i FROM shop.numbers ORDER BY i",
    "SELECT u, v, at > '2024-02-02' FROM shop.h ORDER BY u, v",
    // Several unique keys: a row may meet more than one.
    "CREATE TABLE shop.k (id INT PRIMARY KEY, u INT UNIQUE, w VARCHAR(10) UNIQUE, v INT, g INT AS (v + 1) STORED, CHECK (v < 100000))",
    "INSERT INTO shop.k (id, u, w, v) SELECT i, i + 1000, CONCAT('w', i), 0 FROM shop.numbers",
    "INSERT INTO shop.k (id, u, w, v) SELECT i + 300, i + 1500, CONCAT('w', i + 200), 1 FROM shop.numbers ORDER BY i ON DUPLICATE KEY UPDATE v = k.v + 1",
    "SELECT COUNT(*), SUM(id), SUM(u), SUM(v), SUM(g), SUM(CRC32(CONCAT_WS(',', id, u, w, v))) FROM shop.k",
    "REPLACE INTO shop.k (id, u, w, v) SELECT i + 300, i + 1250, CONCAT('w', i + 280), 2 FROM shop.numbers ORDER BY i",
    "SELECT COUNT(*), SUM(id), SUM(u), SUM(v), SUM(g), SUM(CRC32(CONCAT_WS(',', id, u, w, v))) FROM shop.k",
    // They change places.
    "REPLACE INTO shop.k (id, u, w, v) SELECT i, 1000 + IF(i % 2, i + 1, i - 1), CONCAT('w', i), 3 FROM shop.numbers WHERE i < 301 ORDER BY i",
    "REPLACE INTO shop.k (id, u, w, v) SELECT i, 1000 + IF(i % 2, i + 1, i - 1), CONCAT('w', i), 3 FROM shop.numbers WHERE i < 301 ORDER BY i",
    "INSERT INTO shop.k (id, u, w, v) SELECT i, i, i, 50000 FROM shop.numbers ORDER BY i ON DUPLICATE KEY UPDATE v = k.v + IF(i = 200, 100000, 50000)",
    "INSERT IGNORE INTO shop.k (id, u, w, v) SELECT i, i, i, 50000 FROM shop.numbers ORDER BY i ON DUPLICATE KEY UPDATE v = k.v + IF(i = 200, 100000, 50000)",
    "INSERT INTO shop.k (id, u, w, v) SELECT i, i, i, 1 FROM shop.numbers WHERE i < 30 ORDER BY i ON DUPLICATE KEY UPDATE u = 77",
    "INSERT INTO shop.k (id, u, w, v) SELECT i, i, i, 1 FROM shop.numbers WHERE i < 30 ORDER BY i ON DUPLICATE KEY UPDATE u = k.u + 100000",
    "SELECT COUNT(*), SUM(id), SUM(u), SUM(v), SUM(g), SUM(CRC32(CONCAT_WS(',', id, u, w, v))) FROM shop.k",
    "SELECT COUNT(*) FROM shop.k AS x JOIN shop.k AS y FORCE INDEX (u) ON y.u = x.u AND y.id = x.id",
    "SELECT COUNT(*) FROM shop.k AS x JOIN shop.k AS y FORCE INDEX (w) ON y.w = x.w AND y.id = x.id",
    // Numbers that rows bring, and numbers that they get.
    "CREATE TABLE shop.n (id INT AUTO_INCREMENT PRIMARY KEY, u INT UNIQUE, v INT)",
    "INSERT INTO shop.n (u, v) SELECT i, 0 FROM shop.numbers WHERE i <= 100 ORDER BY i",
    "INSERT INTO shop.n (u, v) VALUES (50, 1), (2000, 1), (51, 1), (2001, 1) ON DUPLICATE KEY UPDATE v = v + 1",
    "SELECT LAST_INSERT_ID()",
    "INSERT INTO shop.n SELECT i + 90, i + 90, 5 FROM shop.numbers ORDER BY i ON DUPLICATE KEY UPDATE v = n.v + 7",
    "REPLACE INTO shop.n SELECT i + 190, i + 190, 6 FROM shop.numbers ORDER BY i",
    "INSERT IGNORE INTO shop.n SELECT i + 490, i + 490, 6 FROM shop.numbers ORDER BY i",
    "INSERT IGNORE INTO shop.n SELECT IF(i % 3, NULL, i + 1000), i + 990, 6 FROM shop.numbers ORDER BY i",
    "INSERT INTO shop.n (u) VALUES (9999)",
    "SELECT id, u, v FROM shop.n ORDER BY id",
    // A number that is not used goes to the next row.
    "CREATE TABLE shop.g (id INT AUTO_INCREMENT PRIMARY KEY, u INT UNIQUE, v INT)",
    "INSERT IGNORE INTO shop.g (u, v) SELECT i, 1 FROM shop.numbers WHERE i % 3 > 0 ORDER BY i",
    "INSERT IGNORE INTO shop.g (u, v) SELECT i, 2 FROM shop.numbers ORDER BY i",
    "SELECT LAST_INSERT_ID()",
    "INSERT IGNORE INTO shop.g (u, v) SELECT i, 2 FROM shop.numbers ORDER BY i",
    "SELECT LAST_INSERT_ID()",
    "INSERT INTO shop.g (u, v) SELECT i + 500, 3 FROM shop.numbers WHERE i < 400 ORDER BY i ON DUPLICATE KEY UPDATE v = g.v + VALUES(id) - g.id",
    "SELECT LAST_INSERT_ID()",
    "INSERT INTO shop.g (u, v) SELECT 1000 + i DIV 4, 3 FROM shop.numbers ORDER BY i ON DUPLICATE KEY UPDATE v = g.v + 1, id = LAST_INSERT_ID(g.id)",
    "SELECT LAST_INSERT_ID()",
    "REPLACE INTO shop.g (u, v) SELECT i * 2, 4 FROM shop.numbers ORDER BY i",
    "INSERT IGNORE INTO shop.g SELECT IF(i % 50, NULL, 5000 + i), i * 3, 5 FROM shop.numbers ORDER BY i",
    "INSERT IGNORE INTO shop.g (u, v) SELECT IF(i % 70, i * 5, 9 * i), IF(i % 90, 6, 'text') FROM shop.numbers ORDER BY i",
    "INSERT INTO shop.g (u, v) VALUES (7, 1), (100001, 1), (8, 1), (100002, 1), (100001, 1), (100003, 1) ON DUPLICATE KEY UPDATE v = 100",
    "SET insert_id = 20000",
    "INSERT IGNORE INTO shop.g (u, v) VALUES (7, 1), (200001, 1), (8, 1), (200002, 1)",
    "INSERT IGNORE INTO shop.g (u, v) VALUES (7, 1), (300001, 1), (8, 1), (300002, 1)",
    "SET auto_increment_increment = 10, auto_increment_offset = 3",
    "INSERT IGNORE INTO shop.g (u, v) SELECT i + 300000, 7 FROM shop.numbers WHERE i < 60 ORDER BY i",
    "INSERT INTO shop.g (u, v) SELECT i + 300030, 7 FROM shop.numbers WHERE i < 60 ORDER BY i ON DUPLICATE KEY UPDATE v = g.v + 1",
    "SET auto_increment_increment = DEFAULT, auto_increment_offset = DEFAULT",
    "SELECT id, u, v FROM shop.g ORDER BY id",
    "CREATE TABLE shop.t (id TINYINT AUTO_INCREMENT PRIMARY KEY, u INT UNIQUE)",
    "INSERT IGNORE INTO shop.t (u) SELECT i % 120 FROM shop.numbers ORDER BY i",
    "INSERT IGNORE INTO shop.t (u) SELECT i % 300 FROM shop.numbers ORDER BY i",
    "SELECT COUNT(*), SUM(id), MAX(id) FROM shop.t",
    "BEGIN",
    "INSERT INTO shop.a SELECT i, i, 'undone' FROM shop.numbers ORDER BY i ON DUPLICATE KEY UPDATE n = a.n + 1000",
    "SAVEPOINT s",
    "REPLACE INTO shop.k (id, u, w, v) SELECT i, i, i, i FROM shop.numbers ORDER BY i",
    "INSERT INTO shop.k (id, u, w, v) SELECT i, i, i, i FROM shop.numbers ORDER BY i ON DUPLICATE KEY UPDATE v = k.v + 1",
    "SELECT SUM(v) FROM shop.k",
    "ROLLBACK TO s",
    "INSERT INTO shop.a SELECT i, i, 'undone' FROM shop.numbers ORDER BY i ON DUPLICATE KEY UPDATE n = a.n + 1000",
    "SELECT COUNT(*), SUM(n) FROM shop.a",
    "ROLLBACK",
    "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    "BEGIN",
    "INSERT INTO shop.a SELECT i + 900, i, 'serial' FROM shop.numbers ORDER BY i ON DUPLICATE KEY UPDATE n = a.n + 1",
    "COMMIT",
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "SELECT COUNT(*), SUM(id), SUM(n), MIN(t), MAX(t) FROM shop.a",
    "DROP TABLE shop.a, shop.h, shop.k, shop.n, shop.g, shop.t",
];

/// Keys that change, and several tables.
const MOVED: &[&str] = &[
    "CREATE TABLE shop.m (id INT PRIMARY KEY, u INT UNIQUE, w VARCHAR(12) UNIQUE, v INT, j INT AUTO_INCREMENT, KEY (j))",
    "INSERT INTO shop.m SELECT i, i, CONCAT('w', i), 0, i FROM shop.numbers",
    // In an order in which each row finds its key free, and in one in which the first does not.
    "UPDATE shop.m SET u = u + 1 ORDER BY u DESC",
    "UPDATE shop.m SET u = u + 1 ORDER BY u",
    "UPDATE IGNORE shop.m SET u = u + 1 ORDER BY u",
    "UPDATE IGNORE shop.m SET u = u + 3, v = v + 1 ORDER BY id",
    "SELECT id, u, w, v FROM shop.m ORDER BY id",
    "UPDATE shop.m SET u = id, w = CONCAT('x', id) ORDER BY id",
    "UPDATE shop.m SET u = -id ORDER BY id",
    "UPDATE shop.m SET u = NULL WHERE id > 550",
    "UPDATE shop.m SET u = 601 - id ORDER BY id",
    "UPDATE shop.m SET u = id ORDER BY id",
    "UPDATE shop.m SET u = -id ORDER BY id",
    "UPDATE shop.m SET u = id ORDER BY id DESC",
    "UPDATE shop.m SET id = id + 1 ORDER BY id DESC",
    "UPDATE shop.m SET id = id - 1, u = u + 1000 ORDER BY id",
    "UPDATE shop.m SET id = id + 5 ORDER BY id",
    "UPDATE IGNORE shop.m SET id = id + 5 ORDER BY id",
    "UPDATE IGNORE shop.m SET id = id DIV 2, w = CONCAT('y', id) ORDER BY id",
    "UPDATE shop.m SET w = IF(id % 2, w, CONCAT('z', id)), v = v + 1 ORDER BY id",
    "UPDATE shop.m SET w = IF(id = 500, 'x7', CONCAT('q', id)) ORDER BY id",
    "UPDATE IGNORE shop.m SET w = IF(id % 100, CONCAT('q', id), REPEAT('long', 9)) ORDER BY id",
    "UPDATE shop.m SET w = IF(id = 490, REPEAT('long', 9), IF(id = 480, 'q7', CONCAT('r', id))) ORDER BY id",
    "UPDATE shop.m SET j = j + 5000 ORDER BY id",
    "INSERT INTO shop.m (id, u) VALUES (90000, 90000)",
    "SELECT id, u, w, v, j FROM shop.m ORDER BY id",
    "SELECT COUNT(*) FROM shop.m AS x JOIN shop.m AS y FORCE INDEX (u) ON y.u = x.u AND y.id = x.id",
    "SELECT COUNT(*) FROM shop.m AS x JOIN shop.m AS y FORCE INDEX (w) ON y.w = x.w AND y.id = x.id",
    "BEGIN",
    "UPDATE shop.m SET u = u + 5000, id = id + 20000 ORDER BY id",
    "UPDATE shop.m SET u = u + 5000, id = id - 20000 ORDER BY id",
    "SELECT COUNT(*), SUM(id), SUM(u) FROM shop.m",
    "ROLLBACK",
    "SELECT COUNT(*), SUM(id), SUM(u) FROM shop.m",
    // Several tables.
    "CREATE TABLE shop.p (id INT PRIMARY KEY, n INT NOT NULL, code VARCHAR(20) UNIQUE, at DATETIME DEFAULT '2024-01-01' ON UPDATE CURRENT_TIMESTAMP)",
    "CREATE TABLE shop.q (id INT PRIMARY KEY, pid INT, n TINYINT NOT NULL, KEY (pid))",
    "INSERT INTO shop.p (id, n, code) SELECT i, i, CONCAT('c', i) FROM shop.numbers",
    "INSERT INTO shop.q SELECT i, i DIV 2, i % 100 FROM shop.numbers",
    "UPDATE shop.p JOIN shop.q ON q.pid = p.id AND q.id % 2 = 0 SET p.n = p.n + q.n, q.n = q.n + 1",
    "UPDATE shop.p JOIN shop.q ON q.id = p.id SET p.n = p.n + q.n",
    "UPDATE shop.p JOIN shop.q ON q.id = p.id SET q.n = q.n",
    "UPDATE shop.p JOIN shop.q ON q.id = p.id SET q.n = 500",
    "UPDATE IGNORE shop.p JOIN shop.q ON q.id = p.id SET q.n = 500 WHERE q.id < 20",
    "UPDATE shop.p JOIN shop.q ON q.id = p.id SET p.code = CONCAT('d', p.id), q.pid = q.pid + 1",
    "UPDATE shop.p JOIN shop.q ON q.id = p.id SET p.code = IF(p.id > 300, 'd7', CONCAT('e', p.id))",
    "UPDATE shop.p AS x JOIN shop.p AS y ON y.id = x.id + 1 SET x.n = x.n + 1, y.code = CONCAT('f', y.id)",
    "UPDATE shop.p SET n = n + (SELECT COUNT(*) FROM shop.q WHERE q.pid = p.id)",
    "SELECT id, n, code, at > '2024-02-02' FROM shop.p ORDER BY id",
    "SELECT * FROM shop.q ORDER BY id",
    "BEGIN",
    "DELETE p, q FROM shop.p JOIN shop.q ON q.pid = p.id WHERE p.id % 3 = 0",
    "UPDATE shop.p JOIN shop.q ON q.pid = p.id SET p.n = 0, q.n = 0",
    "SELECT COUNT(*), SUM(n) FROM shop.p",
    "ROLLBACK",
    "DELETE x, y FROM shop.p AS x JOIN shop.p AS y ON y.id = x.id + 100 WHERE x.id < 150",
    "DELETE FROM shop.q WHERE NOT EXISTS (SELECT 1 FROM shop.p WHERE p.id = q.pid)",
    "SELECT COUNT(*), SUM(n), SUM(id) FROM shop.p",
    "SELECT COUNT(*), SUM(n), SUM(id) FROM shop.q",
    "SELECT code FROM shop.p WHERE code > 'd' ORDER BY code",
    "DROP TABLE shop.m, shop.p, shop.q",
];

/// Foreign keys.
const RELATED: &[&str] = &[
    "CREATE TABLE shop.p (id INT PRIMARY KEY, n INT NOT NULL, code INT UNIQUE, KEY (n))",
    "CREATE TABLE shop.c (id INT PRIMARY KEY, pid INT, code INT, v INT UNIQUE, FOREIGN KEY (pid) REFERENCES shop.p (id), \
     FOREIGN KEY (code) REFERENCES shop.p (code) ON UPDATE CASCADE ON DELETE SET NULL)",
    "INSERT INTO shop.p SELECT i, i, i FROM shop.numbers",
    "INSERT INTO shop.c SELECT i, i % 100 + 1, 601 - i, i FROM shop.numbers",
    "UPDATE shop.c SET v = v + 1000",
    "UPDATE shop.c SET pid = pid + 100 ORDER BY id",
    "UPDATE shop.c SET pid = IF(id = 500, 7000, pid + 1) ORDER BY id",
    "UPDATE IGNORE shop.c SET pid = IF(id % 100, pid + 1, 7000) ORDER BY id",
    "UPDATE shop.c SET id = id + 1000, v = v - 1000 ORDER BY id",
    "UPDATE shop.c SET v = IF(id = 1400, 7, v + 1000) ORDER BY id",
    "UPDATE shop.p SET n = n + 1",
    "UPDATE shop.p SET code = code + 5000 WHERE id > 500",
    "SELECT * FROM shop.c ORDER BY id",
    "UPDATE shop.p SET id = id + 1 WHERE id = 150",
    "UPDATE shop.p SET n = n + 1 WHERE id < 300",
    "INSERT INTO shop.c SELECT i + 1000, 1, 1, i + 9000 FROM shop.numbers ORDER BY i ON DUPLICATE KEY UPDATE v = c.v + 1000",
    "INSERT INTO shop.c SELECT i + 1000, IF(i = 400, 9999, 1), 1, i + 9000 FROM shop.numbers ORDER BY i ON DUPLICATE KEY UPDATE pid = c.pid + 1",
    "INSERT INTO shop.c SELECT i + 1300, IF(i = 400, 9999, 1), 1, i + 9000 FROM shop.numbers ORDER BY i ON DUPLICATE KEY UPDATE code = NULL",
    "INSERT INTO shop.p SELECT i + 300, i, i + 20000 FROM shop.numbers ORDER BY i ON DUPLICATE KEY UPDATE n = p.n + 10",
    "REPLACE INTO shop.c SELECT i + 1000, i, NULL, i + 9000 FROM shop.numbers ORDER BY i",
    "REPLACE INTO shop.c SELECT i + 1000, IF(i = 400, 9999, 1), NULL, i + 9000 FROM shop.numbers ORDER BY i",
    "REPLACE INTO shop.p SELECT i + 2000, i, i + 40000 FROM shop.numbers ORDER BY i",
    "REPLACE INTO shop.p SELECT i, i, i FROM shop.numbers ORDER BY i",
    "DELETE c FROM shop.c JOIN shop.p ON p.id = c.pid WHERE p.id < 200",
    "DELETE FROM shop.c WHERE id % 2 = 0",
    "DELETE FROM shop.p WHERE id > 500 ORDER BY id",
    "DELETE IGNORE FROM shop.p WHERE id > 500 ORDER BY id",
    "SELECT COUNT(*), SUM(id), SUM(pid), SUM(code), SUM(v) FROM shop.c",
    "SELECT COUNT(*), SUM(id), SUM(n), SUM(code) FROM shop.p",
    "DELETE FROM shop.c WHERE id > 1",
    "DELETE IGNORE FROM shop.p WHERE id < 300 ORDER BY id",
    "DELETE FROM shop.c",
    "DELETE FROM shop.p WHERE id % 5 = 0 ORDER BY id RETURNING id",
    "INSERT INTO shop.c SELECT i, NULL, i, i FROM shop.numbers WHERE i IN (SELECT code FROM shop.p)",
    "DELETE FROM shop.p",
    "SELECT COUNT(*), SUM(code IS NULL) FROM shop.c",
    // A table that refers to itself.
    "CREATE TABLE shop.s (id INT PRIMARY KEY, up INT, v INT, FOREIGN KEY (up) REFERENCES shop.s (id) ON DELETE CASCADE ON UPDATE SET NULL)",
    "INSERT INTO shop.s SELECT i, IF(i = 1, NULL, i DIV 2), 0 FROM shop.numbers WHERE i < 200 ORDER BY i",
    "UPDATE shop.s SET v = v + 1",
    "UPDATE shop.s SET up = 1, v = v + 1 WHERE id > 100 ORDER BY id",
    "UPDATE shop.s SET up = id, v = v + 1 WHERE id > 150 ORDER BY id",
    "UPDATE shop.s SET id = id + 1000, v = v + 1 WHERE id < 20 ORDER BY id",
    "INSERT INTO shop.s SELECT i, 150, 1 FROM shop.numbers WHERE i BETWEEN 100 AND 250 ORDER BY i ON DUPLICATE KEY UPDATE v = s.v + 1",
    "SELECT * FROM shop.s ORDER BY id",
    "DELETE FROM shop.s WHERE id > 60 ORDER BY id",
    "SELECT * FROM shop.s ORDER BY id",
    "DROP TABLE shop.s, shop.c, shop.p",
];

fn is_as_on_one_node(statements: &[&str]) {
    let (root, alone) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let alone = Rauk::start(alone.path());
    let nodes = all_in_one(root.path(), 3, "2");
    until_healthy(&nodes[0], 3);
    let mut expected = alone.connect();
    numbered(&mut expected);
    numbered(&mut nodes[0].connect());
    let mut connection = nodes[1].connect();
    insist(&mut expected, "USE shop");
    insist(&mut connection, "USE shop");
    for statement in statements {
        let (found, wanted) = (told(&mut connection, statement), told(&mut expected, statement));
        assert_eq!(found, wanted, "{statement}");
    }
}

#[test]
fn rows_that_meet_others_become_what_they_become_on_one_node() {
    is_as_on_one_node(OVER);
}

#[test]
fn rows_whose_keys_change_and_rows_of_several_tables_become_what_they_become_on_one_node() {
    is_as_on_one_node(MOVED);
}

#[test]
fn rows_of_related_tables_become_what_they_become_on_one_node() {
    is_as_on_one_node(RELATED);
}

#[test]
fn rows_that_meet_others_go_to_their_partitions_together() {
    let root = tempfile::tempdir().unwrap();
    let nodes = all_in_one(root.path(), 3, "1");
    until_healthy(&nodes[0], 3);
    let connection = &mut nodes[0].connect();
    numbered(connection);
    insist(connection, "USE shop");
    for table in [
        "a (id INT PRIMARY KEY, n INT NOT NULL, code VARCHAR(20) UNIQUE)",
        "b (id INT PRIMARY KEY, n INT NOT NULL)",
        "c (id INT PRIMARY KEY, bid INT, FOREIGN KEY (bid) REFERENCES b (id))",
        "e (id INT PRIMARY KEY, n INT NOT NULL)",
        "f (id INT AUTO_INCREMENT PRIMARY KEY, u INT UNIQUE, n INT)",
    ] {
        insist(connection, &format!("CREATE TABLE shop.{}", table.replace("REFERENCES b", "REFERENCES shop.b")));
    }
    insist(connection, "INSERT INTO shop.a SELECT i, i, CONCAT('c', i) FROM shop.numbers");
    insist(connection, "INSERT INTO shop.b SELECT i, i FROM shop.numbers");
    insist(connection, "INSERT INTO shop.c SELECT i, i FROM shop.numbers");
    insist(connection, "INSERT INTO shop.e SELECT i, i FROM shop.numbers");
    let asked = "SELECT value FROM rauk.counters WHERE name = 'remote_operations'";
    // Two thirds of 600 rows are led elsewhere: each was a question or several.
    for statement in [
        "INSERT INTO shop.e SELECT i, i FROM shop.numbers ON DUPLICATE KEY UPDATE n = e.n + 1",
        "INSERT INTO shop.a SELECT i, i, CONCAT('c', i) FROM shop.numbers ON DUPLICATE KEY UPDATE n = a.n + 1",
        "INSERT INTO shop.a SELECT i + 1000, i, CONCAT('c', i) FROM shop.numbers ON DUPLICATE KEY UPDATE n = a.n + 1",
        "INSERT IGNORE INTO shop.f (u, n) SELECT i, 0 FROM shop.numbers",
        "INSERT IGNORE INTO shop.f (u, n) SELECT i + 300, 0 FROM shop.numbers",
        "INSERT INTO shop.f (u, n) SELECT i + 600, 0 FROM shop.numbers ON DUPLICATE KEY UPDATE n = f.n + 1",
        "REPLACE INTO shop.f (u, n) SELECT i, 1 FROM shop.numbers",
        "REPLACE INTO shop.e SELECT i, i + 1 FROM shop.numbers",
        "REPLACE INTO shop.a SELECT i, i + 1, CONCAT('c', i) FROM shop.numbers",
        "REPLACE INTO shop.a SELECT i + 1000, i + 1, CONCAT('c', i) FROM shop.numbers",
        "UPDATE shop.a SET code = CONCAT('d', id)",
        "UPDATE shop.a SET id = id + 5000",
        "UPDATE shop.b JOIN shop.e ON e.id = b.id SET b.n = b.n + e.n, e.n = 0",
        "UPDATE shop.b SET n = n + 1",
        "UPDATE shop.c SET bid = IF(bid > 300, bid - 1, bid + 1)",
        "INSERT INTO shop.c SELECT i, i FROM shop.numbers ON DUPLICATE KEY UPDATE bid = bid",
        "REPLACE INTO shop.c SELECT i, i FROM shop.numbers",
        "DELETE e FROM shop.e JOIN shop.b ON b.id = e.id",
        "DELETE FROM shop.c",
        "DELETE FROM shop.b WHERE id > 300",
    ] {
        let before = number(connection, asked);
        insist(connection, statement);
        let asked = number(connection, asked) - before;
        println!("{asked} questions for {statement}");
        assert!((1..150).contains(&asked), "{asked} questions for {statement}");
    }
}

/// Runs a statement on a connection of its own beside the test; gives how to hear its answer.
fn beside(node: &Node, statements: &[&str], sql: &str) -> Receiver<Vec<String>> {
    let mut connection: Conn = node.connect();
    statements.iter().for_each(|statement| insist(&mut connection, statement));
    let (answer, answers) = channel();
    let sql = sql.to_string();
    std::thread::spawn(move || answer.send(run(&mut connection, &sql)));
    answers
}

#[test]
fn rows_that_wait_for_each_other_wait_for_locks_as_single_ones_do() {
    let root = tempfile::tempdir().unwrap();
    let nodes = all_in_one(root.path(), 3, "1");
    until_healthy(&nodes[0], 3);
    let connection = &mut nodes[0].connect();
    numbered(connection);
    insist(connection, "CREATE TABLE shop.a (id INT PRIMARY KEY, n INT NOT NULL, u INT UNIQUE)");
    insist(connection, "INSERT INTO shop.a SELECT i, 0, i FROM shop.numbers");
    let over = "INSERT INTO shop.a SELECT i, 0, -i FROM shop.numbers ON DUPLICATE KEY UPDATE n = a.n + 1";
    let pause = Duration::from_millis(300);
    // The newest row is what counts once its lock is there.
    for (isolation, statement, expected) in [
        ("READ COMMITTED", over, "ok 1200"),
        ("READ COMMITTED", "UPDATE shop.a JOIN shop.numbers ON i = id SET n = n + 1", "ok 600"),
        ("REPEATABLE READ", "UPDATE shop.a JOIN shop.numbers ON i = id SET n = n + 1", "ok 600"),
        ("REPEATABLE READ", "UPDATE shop.a SET n = n + 1, u = u + 1000 ORDER BY id", "ok 600"),
        ("READ COMMITTED", "REPLACE INTO shop.a SELECT i, 1, i + 7000 FROM shop.numbers", "ok 1200"),
    ] {
        insist(connection, "UPDATE shop.a SET n = 0");
        insist(connection, "BEGIN");
        insist(connection, "UPDATE shop.a SET n = 10 WHERE id IN (100, 300, 500)");
        let level = format!("SET SESSION TRANSACTION ISOLATION LEVEL {isolation}");
        let answer = beside(&nodes[1], &[&level], statement);
        assert_eq!(answer.recv_timeout(pause), Err(RecvTimeoutError::Timeout), "{statement}");
        insist(connection, "COMMIT");
        assert_eq!(answer.recv().unwrap(), [expected], "{isolation}: {statement}");
        let sum = if statement.starts_with("REPLACE") { "600" } else { "630" };
        assert_eq!(run(connection, "SELECT SUM(n) FROM shop.a"), [sum], "{isolation}: {statement}");
    }
    // A row that is newer than the transaction's snapshot.
    let mut other = nodes[2].connect();
    for statement in [
        over,
        "UPDATE shop.a JOIN shop.numbers ON i = id SET n = n + 1",
        "UPDATE shop.a SET u = u + 1000",
        "REPLACE INTO shop.a SELECT i, 1, i FROM shop.numbers",
    ] {
        insist(&mut other, "BEGIN");
        assert_eq!(run(&mut other, "SELECT COUNT(*) FROM shop.a"), ["600"]);
        insist(connection, "UPDATE shop.a SET n = n + 1 WHERE id = 444");
        assert_eq!(run(&mut other, statement), ["error 1020"], "{statement}");
        insist(&mut other, "ROLLBACK");
    }
    // One of two that take each other's rows gives up, the other one goes on.
    insist(connection, "BEGIN");
    insist(connection, "UPDATE shop.a SET n = 1 WHERE id = 1");
    insist(&mut other, "BEGIN");
    insist(&mut other, "UPDATE shop.a SET n = 2 WHERE id = 600");
    let (answer, answers) = channel();
    let own = "INSERT INTO shop.a SELECT i, 0, -i FROM shop.numbers WHERE i > 1 ON DUPLICATE KEY UPDATE n = a.n + 1";
    let waiting = std::thread::spawn(move || answer.send(run(&mut other, over)));
    std::thread::sleep(pause);
    let mut both = vec![run(connection, own)];
    insist(connection, "ROLLBACK");
    both.extend(answers.recv());
    waiting.join().unwrap().unwrap();
    let failed = both.iter().filter(|answer| answer.concat() == "error 1213").count();
    assert_eq!(failed, 1, "{both:?}");
    // A child that is not committed yet: whoever deletes its parent waits for it.
    insist(connection, "CREATE TABLE shop.p (id INT PRIMARY KEY)");
    insist(connection, "CREATE TABLE shop.c (id INT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES shop.p (id))");
    for (end, expected, left) in [("COMMIT", "error 1451", "200"), ("ROLLBACK", "ok 100", "100")] {
        insist(connection, "DELETE FROM shop.c");
        insist(connection, "REPLACE INTO shop.p SELECT i FROM shop.numbers WHERE i <= 200");
        insist(connection, "BEGIN");
        insist(connection, "INSERT INTO shop.c VALUES (1, 150)");
        let answer = beside(&nodes[1], &[], "DELETE FROM shop.p WHERE id > 100");
        assert_eq!(answer.recv_timeout(pause), Err(RecvTimeoutError::Timeout), "{end}");
        insist(connection, end);
        assert_eq!(answer.recv().unwrap(), [expected]);
        assert_eq!(run(connection, "SELECT COUNT(*) FROM shop.p"), [left]);
    }
    // Nobody waits longer than is allowed.
    insist(connection, "BEGIN");
    insist(connection, "UPDATE shop.a SET n = 10 WHERE id = 77");
    let answer = beside(&nodes[1], &["SET innodb_lock_wait_timeout = 1"], over);
    assert_eq!(answer.recv().unwrap(), ["error 1205"]);
    insist(connection, "ROLLBACK");
}
