//! Rows that are written together: with unique keys, hidden keys, parents and children the outcome is that of row by
//! row.

use super::{Test, server};

fn numbers(count: u32) -> String {
    format!("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) SELECT")
}

fn many(t: &mut Test) {
    t.ok("SET cte_max_recursion_depth = 100000");
}

#[test]
fn unique_keys() {
    let server = server();
    let mut t = server.session();
    many(&mut t);
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(20), UNIQUE KEY a (a), UNIQUE KEY b (b, a))");
    t.ok(&format!("INSERT INTO t {} i, i * 2, CONCAT('b', i) FROM n", numbers(5000)));
    t.expect("SELECT COUNT(*), SUM(a), MAX(id) FROM t", &["5000|25005000|5000"]);
    // Each row is found by each of its keys.
    t.expect("SELECT COUNT(*) FROM t x JOIN t y ON y.a = x.id * 2 AND y.b = CONCAT('b', x.id)", &["5000"]);
    // One that is there already, in the middle of a statement: nothing is left of it.
    t.error(
        &format!("INSERT INTO t {} i + 10000, IF(i = 700, 14, i + 20000), NULL FROM n", numbers(2000)),
        1062,
        "Duplicate entry '14' for key 't.a'",
    );
    t.expect("SELECT COUNT(*), MAX(id) FROM t", &["5000|5000"]);
    t.expect("SELECT id FROM t WHERE a = 20001", &[]);
    // Two of the statement's own.
    t.error(
        &format!("INSERT INTO t {} i + 10000, 20000 + IF(i = 900, 899, i), NULL FROM n", numbers(1000)),
        1062,
        "Duplicate entry '20899' for key 't.a'",
    );
    t.expect("SELECT COUNT(*) FROM t", &["5000"]);
    // IGNORE leaves those out, REPLACE puts them in their place.
    t.ok(&format!("INSERT IGNORE INTO t {} i + 10000, i, CONCAT('c', i) FROM n", numbers(100)));
    t.expect("SELECT COUNT(*), SUM(id > 10000) FROM t", &["5050|50"]);
    t.ok(&format!("REPLACE INTO t {} i + 30000, i, CONCAT('d', i) FROM n", numbers(100)));
    t.expect("SELECT COUNT(*), SUM(id > 30000), SUM(id > 10000 AND id < 30000) FROM t", &["5050|100|0"]);
    t.expect("SELECT COUNT(*) FROM t x JOIN t y ON x.a = y.a AND x.b = y.b", &["5050"]);
    // NULLs are never equal.
    t.ok("CREATE TABLE u (id INT PRIMARY KEY, a INT UNIQUE)");
    t.ok(&format!("INSERT INTO u {} i, NULL FROM n", numbers(1000)));
    t.expect("SELECT COUNT(*) FROM u WHERE a IS NULL", &["1000"]);
    // A transaction that takes it back.
    t.ok("BEGIN");
    t.ok(&format!("INSERT INTO u {} i + 5000, i FROM n", numbers(1000)));
    t.expect("SELECT id FROM u WHERE a = 1000", &["6000"]);
    t.ok("ROLLBACK");
    t.expect("SELECT COUNT(*), MAX(a) FROM u", &["1000|NULL"]);
    t.ok(&format!("INSERT INTO u {} i + 5000, i FROM n", numbers(1000)));
    t.expect("SELECT COUNT(*), MAX(a) FROM u", &["2000|1000"]);
}

#[test]
fn tables_without_a_primary_key() {
    let server = server();
    let mut t = server.session();
    many(&mut t);
    t.ok("CREATE TABLE t (a INT, b VARCHAR(20), KEY (a))");
    t.ok(&format!("INSERT INTO t {} i % 10, CONCAT('b', i) FROM n", numbers(3000)));
    t.ok(&format!("INSERT INTO t {} i % 10, CONCAT('b', i) FROM n", numbers(3000)));
    t.expect("SELECT COUNT(*), COUNT(DISTINCT b) FROM t", &["6000|3000"]);
    t.expect("SELECT COUNT(*) FROM t WHERE a = 3", &["600"]);
    t.ok("CREATE TABLE u (a INT, b INT, UNIQUE KEY (a))");
    t.ok(&format!("INSERT INTO u {} NULLIF(i, 5), i FROM n", numbers(1000)));
    t.code(&format!("INSERT INTO u {} i + 999, i FROM n", numbers(1000)), 1062);
    t.expect("SELECT COUNT(*), COUNT(a) FROM u", &["1000|999"]);
}

#[test]
fn parents_and_children() {
    let server = server();
    let mut t = server.session();
    many(&mut t);
    t.ok("CREATE TABLE p (id INT PRIMARY KEY, code INT UNIQUE)");
    t.ok(&format!("INSERT INTO p {} i, i + 5000 FROM n", numbers(1000)));
    t.ok("CREATE TABLE c (id INT PRIMARY KEY, p INT, code INT, FOREIGN KEY (p) REFERENCES p (id), \
         FOREIGN KEY (code) REFERENCES p (code) ON DELETE CASCADE)");
    t.ok(&format!("INSERT INTO c {} i, IF(i % 7 = 0, NULL, i), i + 5000 FROM n", numbers(1000)));
    t.expect("SELECT COUNT(*), COUNT(p) FROM c", &["1000|858"]);
    t.code(&format!("INSERT INTO c {} i + 1000, i + 300, i + 5000 FROM n", numbers(1000)), 1452);
    t.code(&format!("INSERT INTO c {} i + 1000, i, i + 5300 FROM n", numbers(1000)), 1452);
    t.expect("SELECT COUNT(*) FROM c", &["1000"]);
    t.ok(&format!("INSERT IGNORE INTO c {} i + 1000, i + 300, i + 5000 FROM n", numbers(1000)));
    t.expect("SELECT COUNT(*), MAX(id), MAX(p) FROM c", &["1700|1700|1000"]);
    // Whoever is referred to stays while a statement's transaction is open.
    let mut other = server.session();
    t.ok("DELETE FROM c");
    t.ok("BEGIN");
    t.ok("INSERT INTO c VALUES (1, 1, 5002), (2, 3, 5004)");
    other.ok("SET innodb_lock_wait_timeout = 1");
    for id in 1..=4 {
        other.code(&format!("DELETE FROM p WHERE id = {id}"), 1205);
    }
    other.ok("DELETE FROM p WHERE id = 5");
    t.ok("COMMIT");
    // A row whose parent comes with the same statement.
    t.ok("CREATE TABLE s (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES s (id))");
    t.ok(&format!("INSERT INTO s {} i, NULLIF(i - 1, 0) FROM n", numbers(600)));
    t.expect("SELECT COUNT(*), SUM(up) FROM s", &["600|179700"]);
    t.code(&format!("INSERT INTO s {} i + 1000, i + 1001 FROM n", numbers(600)), 1452);
    t.expect("SELECT COUNT(*) FROM s", &["600"]);
}

#[test]
fn a_cascade_computes_what_reads_its_columns() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE p (id INT PRIMARY KEY, name VARCHAR(20) UNIQUE)");
    t.ok("INSERT INTO p VALUES (1, 'one'), (2, 'two')");
    t.ok(
        "CREATE TABLE c (id INT PRIMARY KEY, p INT, name VARCHAR(20), twice INT AS (p * 2), loud VARCHAR(20) AS (UPPER(name)), \
         KEY (twice), UNIQUE KEY (loud), KEY ((p + 100)), \
         FOREIGN KEY (p) REFERENCES p (id) ON UPDATE CASCADE ON DELETE SET NULL, \
         FOREIGN KEY (name) REFERENCES p (name) ON UPDATE CASCADE ON DELETE CASCADE)",
    );
    t.ok("INSERT INTO c (id, p, name) VALUES (10, 1, 'one'), (20, 2, 'two')");
    t.ok("UPDATE p SET id = 7, name = 'seven' WHERE id = 1");
    t.expect("SELECT id, p, twice, loud FROM c ORDER BY id", &["10|7|14|SEVEN", "20|2|4|TWO"]);
    // By their keys, too.
    t.expect("SELECT id FROM c WHERE twice = 14", &["10"]);
    t.expect("SELECT id FROM c WHERE twice = 2", &[]);
    t.expect("SELECT id FROM c WHERE loud = 'SEVEN'", &["10"]);
    t.expect("SELECT id FROM c WHERE p + 100 = 107", &["10"]);
    t.ok("DELETE c2 FROM c c2 WHERE id = 20");
    t.ok("ALTER TABLE c DROP FOREIGN KEY c_ibfk_2");
    t.ok("DELETE FROM p WHERE id = 7");
    t.expect("SELECT id, p, twice, loud FROM c", &["10|NULL|NULL|SEVEN"]);
    // A value that does not fit ends the change that led to it.
    t.ok("CREATE TABLE q (id INT PRIMARY KEY)");
    t.ok("CREATE TABLE d (id INT PRIMARY KEY, q INT, tiny TINYINT AS (q), FOREIGN KEY (q) REFERENCES q (id) ON UPDATE CASCADE)");
    t.ok("INSERT INTO q VALUES (1)");
    t.ok("INSERT INTO d (id, q) VALUES (1, 1)");
    t.code("UPDATE q SET id = 1000", 1264);
    t.expect("SELECT id FROM q", &["1"]);
    t.expect("SELECT q, tiny FROM d", &["1|1"]);
    t.ok("UPDATE q SET id = 100");
    t.expect("SELECT q, tiny FROM d", &["100|100"]);
    // STORED ones may not read what a cascade changes, as in MySQL.
    t.code(
        "CREATE TABLE e (id INT PRIMARY KEY, q INT, s INT AS (q) STORED, FOREIGN KEY (q) REFERENCES q (id) ON UPDATE CASCADE)",
        1215,
    );
}
