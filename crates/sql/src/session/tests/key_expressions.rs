//! Keys on expressions: they answer what a table without them answers, statements that write the expression out find them, and DDL keeps them whole.

use super::access_paths::{path, sorted};
use super::{Test, server, server_on};
use rauk_log::MemoryDisk;

/// `t` with keys on expressions, and `plain` with the same rows and none.
fn twins(t: &mut Test) {
    t.ok("CREATE TABLE plain (id INT PRIMARY KEY, a INT, b INT, name VARCHAR(20), at DATETIME, v BIGINT AS (b * 2))");
    t.ok(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, name VARCHAR(20), at DATETIME, v BIGINT AS (b * 2), KEY sum ((a + b)), \
          KEY low ((LOWER(name)), a), UNIQUE KEY one ((a * 1000 + id)), KEY day ((DATE(at)) DESC), KEY (v))",
    );
    for table in ["plain", "t"] {
        t.ok(&format!(
            "INSERT INTO {table} (id, a, b, name, at) WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 300) \
              SELECT i, IF(i % 11 = 0, NULL, i % 7), i % 13, CONCAT(IF(i % 2, 'Name', 'nAME'), i % 50), \
              '2024-01-01' + INTERVAL i % 40 DAY FROM n"
        ));
    }
    t.ok("ANALYZE TABLE t");
}

/// The key by which a table is read.
fn key_of(t: &mut Test, sql: &str) -> String {
    path(t, sql).split(' ').nth(1).unwrap_or_default().to_string()
}

#[track_caller]
fn same(t: &mut Test, sql: &str) {
    let (got, expected) =
        (t.run(sql), t.run(&sql.replace("FROM t", "FROM plain t").replace("JOIN t ", "JOIN plain t ")));
    assert_eq!(sorted(&got), sorted(&expected), "{sql}");
}

#[test]
fn expressions_find_their_keys() {
    let server = server();
    let mut t = server.session();
    twins(&mut t);
    for (sql, key) in [
        ("SELECT id FROM t WHERE a + b = 5", Some("sum")),
        ("SELECT id, a + b FROM t WHERE (a + b) BETWEEN 4 AND 5 AND name LIKE '%1'", Some("sum")),
        ("SELECT id FROM t WHERE a + b IN (1, 3)", Some("sum")),
        ("SELECT id FROM t WHERE a + b IS NULL", Some("sum")),
        ("SELECT id FROM t WHERE a + b = 5.5", Some("sum")),
        ("SELECT id FROM t WHERE a + b = 1 OR a + b = 2", Some("sum")),
        ("SELECT id FROM t WHERE LOWER(name) = 'NAME3'", Some("low")),
        ("SELECT id FROM t WHERE LOWER(name) = 'name3' AND a = 3", Some("low")),
        ("SELECT id FROM t WHERE LOWER(name) LIKE 'name1%' AND a > 5", Some("low")),
        ("SELECT id FROM t WHERE a * 1000 + id = 3003", Some("one")),
        ("SELECT id FROM t WHERE DATE(at) = '2024-01-02'", Some("day")),
        ("SELECT id FROM t WHERE b * 2 = 6", Some("v")),
        ("SELECT id FROM t WHERE v = 6", Some("v")),
        ("SELECT MIN(a + b), MAX(a + b) FROM t", Some("sum")),
        ("SELECT a + b FROM t ORDER BY a + b LIMIT 5", Some("sum")),
        ("SELECT a + b, COUNT(*) FROM t WHERE a + b < 9 GROUP BY a + b HAVING a + b > 1", Some("sum")),
        // Other expressions, or more of them.
        ("SELECT id FROM t WHERE b + a = 5", None),
        ("SELECT id FROM t WHERE a + b + 1 = 5 AND a - b = 1", None),
        ("SELECT id FROM t WHERE LOWER(name) COLLATE utf8mb4_bin = 'name3'", None),
        ("SELECT id FROM t WHERE UPPER(name) = 'NAME3'", None),
        ("SELECT id FROM t WHERE a * 1001 + id = 3003", None),
    ] {
        assert_eq!(key_of(&mut t, sql), key.unwrap_or("NULL"), "{sql}\n{}", path(&mut t, sql));
        same(&mut t, sql);
    }
    // Joins, subqueries, other levels; what an outer join makes NULL is not what the key holds.
    for sql in [
        "SELECT p.id, t.id FROM plain p JOIN t ON t.a + t.b = p.id WHERE p.id < 9",
        "SELECT id FROM plain p WHERE EXISTS (SELECT 1 FROM t WHERE t.a + t.b = p.id AND t.id <> p.id)",
        "SELECT id FROM plain p WHERE p.id IN (SELECT a + b FROM t)",
        "SELECT id FROM t WHERE 17 < t.a + t.b",
        "SELECT * FROM (SELECT a + b AS s, id FROM t) x WHERE s = 4",
        "SELECT x.id, (SELECT COUNT(*) FROM t WHERE LOWER(t.name) = LOWER(x.name)) FROM plain x WHERE x.id < 5",
        "SELECT p.id, t.id FROM plain p LEFT JOIN t ON t.a + t.b = p.id AND p.id < 4 WHERE p.id < 30 AND COALESCE(t.a + t.b, 1) = 1",
        "SELECT id, SUM(a + b) OVER (ORDER BY id) FROM t WHERE a + b < 3",
        "SELECT a + b FROM t WHERE a + b = 3 UNION SELECT LOWER(name) FROM t WHERE LOWER(name) = 'name4'",
    ] {
        same(&mut t, sql);
    }
}

#[test]
fn nothing_is_offered_behind_an_outer_join() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE l (id INT PRIMARY KEY)");
    t.ok("CREATE TABLE r (id INT PRIMARY KEY, a INT, KEY k ((COALESCE(a, 7))))");
    t.ok("INSERT INTO l VALUES (1), (2), (3)");
    t.ok("INSERT INTO r VALUES (1, NULL), (2, 5)");
    let sql = "SELECT l.id, COALESCE(r.a, 7) FROM l LEFT JOIN r ON r.id = l.id WHERE COALESCE(r.a, 7) = 7 ORDER BY 1";
    t.expect(sql, &["1|7", "3|7"]);
    t.expect("SELECT l.id, r.id FROM l LEFT JOIN r ON COALESCE(r.a, 7) = 7 ORDER BY 1", &["1|1", "2|1", "3|1"]);
}

#[test]
fn statements_of_texts_and_prepared_ones_find_them() {
    let server = server();
    let mut t = server.session();
    twins(&mut t);
    let read = |t: &mut Test| {
        let text = t.run("SHOW SESSION STATUS LIKE 'Handler_read%'");
        text.lines().filter_map(|l| l.rsplit(" | ").next()?.parse::<u64>().ok()).sum::<u64>()
    };
    let before = read(&mut t);
    for id in 1..=5 {
        t.expect(&format!("SELECT id FROM t WHERE a * 1000 + id = {}", id * 1001), &[&id.to_string()]);
    }
    let statement = t.prepare("SELECT id FROM t WHERE a * 1000 + id = ?");
    assert_eq!(t.prepared(statement.id, &[rauk_types::Value::Int(2002)]).trim(), "2");
    assert!(read(&mut t) - before < 100, "they read what they give");
}

#[test]
fn changes_keep_keys_of_expressions() {
    let server = server();
    let mut t = server.session();
    twins(&mut t);
    for sql in [
        "UPDATE t SET a = a + 1 WHERE a + b = 5",
        "UPDATE t SET name = CONCAT('x', name) WHERE LOWER(name) LIKE 'name2%' ORDER BY a + b, id LIMIT 9",
        "DELETE FROM t WHERE a + b = 9",
        "DELETE FROM t WHERE LOWER(name) = 'name7'",
        "INSERT INTO t (id, a, b, name) VALUES (1, 5, 5, 'X') ON DUPLICATE KEY UPDATE b = 30",
        "REPLACE INTO t (id, a, b, name) VALUES (2, 1, 40, 'rep'), (900, 1, 41, 'rep')",
        "UPDATE t JOIN plain p ON p.id = t.id SET t.b = p.b + 100 WHERE t.a + t.b = 4 AND p.id < 200",
    ] {
        t.ok(sql);
        if !sql.contains(" JOIN ") {
            t.ok(&sql.replace(" t ", " plain ").replace("FROM t", "FROM plain"));
        } else {
            t.ok("UPDATE plain t JOIN plain p ON p.id = t.id SET t.b = p.b + 100 WHERE t.a + t.b = 4 AND p.id < 200");
        }
        same(&mut t, "SELECT id, a, b, name, v FROM t");
        for sum in 0..60 {
            same(&mut t, &format!("SELECT id FROM t WHERE a + b = {sum}"));
        }
        same(&mut t, "SELECT id, LOWER(name) FROM t WHERE LOWER(name) >= 'n'");
    }
    t.error("INSERT INTO t (id, a, b) VALUES (1003, 2, 0)", 1062, "Duplicate entry '3003' for key 't.one'");
}

#[test]
fn definitions() {
    let disk = MemoryDisk::new();
    let server = server_on(disk.clone());
    let mut t = server.session();
    t.ok("CREATE TABLE t (a INT, b VARCHAR(10), KEY ((a + 1)), KEY ((a + 2), b), UNIQUE INDEX u ((UPPER(b)) DESC))");
    let text = t.run("SHOW CREATE TABLE t");
    for line in [
        "UNIQUE KEY `u` ((upper(`b`)) DESC)",
        "KEY `functional_index` (((`a` + 1)))",
        "KEY `functional_index_2` (((`a` + 2)),`b`)",
    ] {
        assert!(text.contains(line), "{text}");
    }
    t.expect(
        "SELECT INDEX_NAME, SEQ_IN_INDEX, COLUMN_NAME, EXPRESSION FROM information_schema.STATISTICS WHERE TABLE_NAME = 't'",
        &["u|1|NULL|upper(`b`)", "functional_index|1|NULL|(`a` + 1)", "functional_index_2|1|NULL|(`a` + 2)", "functional_index_2|2|b|NULL"],
    );
    t.expect("SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_NAME = 't'", &["a", "b"]);
    t.ok("INSERT INTO t VALUES (1, 'x'), (2, 'y')");
    t.expect("SELECT * FROM t WHERE a + 1 = 2", &["1|x"]);
    t.error("INSERT INTO t VALUES (3, 'X')", 1062, "Duplicate entry 'X' for key 't.u'");
    t.ok("ALTER TABLE t ADD COLUMN c INT DEFAULT 7");
    t.ok("ALTER TABLE t ADD COLUMN d INT AFTER a, ADD KEY late ((c + d))");
    t.expect("SELECT * FROM t ORDER BY a", &["1|NULL|x|7", "2|NULL|y|7"]);
    t.ok("UPDATE t SET d = a");
    t.expect("SELECT a FROM t WHERE c + d = 9", &["2"]);
    t.ok("ALTER TABLE t MODIFY a BIGINT, MODIFY b VARCHAR(30)");
    t.ok("INSERT INTO t VALUES (5000000000, 1, 'a text of many letters', 1)");
    t.expect("SELECT a FROM t WHERE UPPER(b) = 'A TEXT OF MANY LETTERS'", &["5000000000"]);
    t.expect("SELECT a FROM t WHERE a + 1 = 5000000001", &["5000000000"]);
    t.error("ALTER TABLE t DROP COLUMN b", 3755, "Cannot drop column 'b' because it is used by a functional index. In order to drop the column, you must remove the functional index.");
    t.error(
        "ALTER TABLE t RENAME COLUMN a TO z",
        3837,
        "Column 'a' has a functional index dependency and cannot be dropped or renamed.",
    );
    t.ok("ALTER TABLE t DROP KEY u, DROP KEY functional_index_2, DROP COLUMN b");
    t.ok("ALTER TABLE t RENAME INDEX late TO later");
    t.ok("CREATE TABLE copy LIKE t");
    t.ok("INSERT INTO copy SELECT * FROM t");
    t.expect("SELECT a FROM copy WHERE c + d = 9", &["2"]);
    t.ok("CREATE INDEX half ON copy ((a DIV 2))");
    assert_eq!(key_of(&mut t, "SELECT a FROM copy WHERE a DIV 2 = 1"), "half");
    for (sql, code) in [
        ("CREATE TABLE e (a INT, PRIMARY KEY ((a + 1)))", 3756),
        ("CREATE TABLE e (a INT, KEY ((a)))", 3762),
        ("CREATE TABLE e (a TEXT, KEY ((LOWER(a))))", 1071),
        ("CREATE TABLE e (a TEXT, KEY ((REPEAT(a, 1000))))", 3757),
        ("CREATE TABLE e (a INT, KEY ((b + 1)))", 1054),
        ("CREATE TABLE e (a INT, KEY ((RAND() + a)))", 3758),
        ("CREATE TABLE e (a INT, KEY ((a + @x)))", 3758),
        ("CREATE TABLE e (a INT, KEY (((SELECT 1))))", 3758),
        ("CREATE TABLE e (a INT AUTO_INCREMENT PRIMARY KEY, KEY ((a + 1)))", 3754),
        ("CREATE TABLE e (a INT, KEY ((SUM(a))))", 1111),
        ("CREATE TABLE e (a VARCHAR(1000), KEY ((UPPER(a))))", 1071),
    ] {
        t.code(sql, code);
    }
    drop(t);
    drop(server);
    let server = server_on(disk);
    let mut t = server.session();
    t.expect("SELECT a FROM t WHERE c + d = 9", &["2"]);
    assert_eq!(key_of(&mut t, "SELECT a FROM t WHERE c + d = 9"), "later");
    t.ok("ALTER TABLE t DROP KEY later, ADD UNIQUE KEY again ((c + d))");
    t.error("INSERT INTO t VALUES (9, 2, 7)", 1062, "Duplicate entry '9' for key 't.again'");
}
