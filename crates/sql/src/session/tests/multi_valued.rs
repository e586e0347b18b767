//! Keys on the elements of arrays: they answer what a table without them answers, conditions on arrays find them, and
//! their errors are MySQL's.

use super::access_paths::{path, sorted};
use super::{Test, server, server_on};
use rauk_log::MemoryDisk;

/// `t` with keys on elements, and `plain` with the same rows and none.
fn twins(t: &mut Test) {
    t.ok("CREATE TABLE plain (id INT PRIMARY KEY, a INT, j JSON)");
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT, j JSON, KEY zips ((CAST(j->'$.zip' AS UNSIGNED ARRAY))), \
          KEY tags (a, (CAST(j->'$.tags' AS CHAR(10) ARRAY))), KEY days ((CAST(j->'$.days' AS DATE ARRAY))), \
          KEY prices ((CAST(j->'$.prices' AS DECIMAL(6, 2) ARRAY)), id))");
    for table in ["plain", "t"] {
        t.ok(&format!(
            "INSERT INTO {table} WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 300) \
              SELECT i, i % 5, CASE WHEN i % 13 = 0 THEN NULL WHEN i % 17 = 0 THEN '{{\"zip\": []}}' \
              WHEN i % 19 = 0 THEN JSON_OBJECT('zip', i % 40) \
              ELSE JSON_OBJECT('zip', JSON_ARRAY(i % 40, i % 7 + 100, i % 40), \
              'tags', JSON_ARRAY(CONCAT('t', i % 30), IF(i % 2, 'odd', 'Even')), \
              'prices', JSON_ARRAY(i % 50 + 0.25, i % 3), \
              'days', JSON_ARRAY(CAST('2024-01-01' + INTERVAL i % 60 DAY AS DATE))) END FROM n"
        ));
    }
    t.ok("ANALYZE TABLE t");
}

/// The access and the key by which a table is read.
fn read_by(t: &mut Test, sql: &str) -> String {
    path(t, sql).split(' ').take(2).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn same(t: &mut Test, sql: &str) {
    let (got, expected) =
        (t.run(sql), t.run(&sql.replace("FROM t", "FROM plain t").replace("JOIN t ", "JOIN plain t ")));
    assert_eq!(sorted(&got), sorted(&expected), "{sql}");
}

const CONDITIONS: [(&str, &str); 36] = [
    ("5 MEMBER OF (j->'$.zip')", "ref zips"),
    ("5.0 MEMBER OF (j->'$.zip')", "ref zips"),
    ("103 MEMBER OF (j->'$.zip') AND 5 MEMBER OF (j->'$.zip')", "ref zips"),
    ("JSON_CONTAINS(j->'$.zip', '5')", "ref zips"),
    ("JSON_CONTAINS(j->'$.zip', '[5, 105]')", "ref zips"),
    ("JSON_CONTAINS(j->'$.zip', CAST('[5, \"x\"]' AS JSON))", "ref zips"),
    ("JSON_OVERLAPS(j->'$.zip', CAST('[5, 6, 101]' AS JSON))", "range zips"),
    ("JSON_OVERLAPS('[5, 6]', j->'$.zip') AND id > 40", "range zips"),
    ("JSON_OVERLAPS(j->'$.zip', '7')", "ref zips"),
    ("a = 2 AND 't7' MEMBER OF (j->'$.tags')", "ref tags"),
    ("a = 2 AND JSON_OVERLAPS(j->'$.tags', '[\"t7\", \"t8\", \"odd\"]')", "range tags"),
    ("JSON_CONTAINS(j->'$.days', JSON_ARRAY(DATE '2024-01-05'))", "ref days"),
    ("DATE '2024-01-05' MEMBER OF (j->'$.days')", "ref days"),
    ("4.25 MEMBER OF (j->'$.prices')", "ref prices"),
    ("1 MEMBER OF (j->'$.prices') AND id < 20", "range prices"),
    // What the keys cannot tell.
    ("5.5 MEMBER OF (j->'$.zip')", "ALL NULL"),
    ("-1 MEMBER OF (j->'$.zip')", "ALL NULL"),
    ("'5' MEMBER OF (j->'$.zip')", "ALL NULL"),
    ("TRUE MEMBER OF (j->'$.zip')", "ALL NULL"),
    ("NULL MEMBER OF (j->'$.zip')", "ALL NULL"),
    ("4.257 MEMBER OF (j->'$.prices')", "ALL NULL"),
    ("'a very long tag' MEMBER OF (j->'$.tags') AND a = 2", "ALL NULL"),
    ("JSON_CONTAINS(j->'$.zip', '[]')", "ALL NULL"),
    ("JSON_OVERLAPS(j->'$.zip', '[5, \"x\"]')", "ALL NULL"),
    ("NOT 5 MEMBER OF (j->'$.zip')", "ALL NULL"),
    // An OR: of one key, and of several.
    ("5 MEMBER OF (j->'$.zip') OR 7 MEMBER OF (j->'$.zip')", "range zips"),
    (
        "(5 MEMBER OF (j->'$.zip') OR 6 MEMBER OF (j->'$.zip')) AND (101 MEMBER OF (j->'$.zip') OR 102 MEMBER OF (j->'$.zip'))",
        "range zips",
    ),
    ("(a = 2 AND 't7' MEMBER OF (j->'$.tags')) OR (a = 3 AND 't8' MEMBER OF (j->'$.tags'))", "range tags"),
    ("a = 2 AND ('t7' MEMBER OF (j->'$.tags') OR JSON_CONTAINS(j->'$.tags', '[\"t17\", \"odd\"]'))", "range tags"),
    ("5 MEMBER OF (j->'$.zip') OR id = 3", "index_merge zips,PRIMARY"),
    ("id IN (3, 4) OR JSON_OVERLAPS(j->'$.zip', '[5, 6, 101]')", "index_merge PRIMARY,zips"),
    ("5 MEMBER OF (j->'$.zip') OR DATE '2024-01-05' MEMBER OF (j->'$.days')", "index_merge zips,days"),
    ("(1 MEMBER OF (j->'$.prices') AND id < 20) OR 7 MEMBER OF (j->'$.zip')", "index_merge prices,zips"),
    // Rows without elements have no entries.
    ("a = 2 OR 5 MEMBER OF (j->'$.zip')", "ALL NULL"),
    ("5 MEMBER OF (j->'$.zip') OR NOT 7 MEMBER OF (j->'$.zip')", "ALL NULL"),
    ("5 MEMBER OF (j->'$.zip') OR 5.5 MEMBER OF (j->'$.zip')", "ALL NULL"),
];

#[test]
fn conditions_on_arrays_find_their_keys() {
    let server = server();
    let mut t = server.session();
    twins(&mut t);
    let mut wrong = Vec::new();
    for (condition, expected) in CONDITIONS {
        let sql = format!("SELECT id FROM t WHERE {condition}");
        let got = read_by(&mut t, &sql);
        if !(got == expected || expected == "ALL NULL" && got.starts_with("ALL")) {
            wrong.push(format!("{condition}: {got}, not {expected}"));
        }
        same(&mut t, &sql);
        same(&mut t, &format!("SELECT id FROM t WHERE {condition} FOR UPDATE"));
        same(&mut t, &format!("SELECT COUNT(*), SUM(a) FROM t WHERE {condition}"));
        let few = "(SELECT 2 AS i UNION SELECT 3) p";
        same(&mut t, &format!("SELECT p.i, t.id FROM {few} JOIN t ON t.a = p.i AND {condition}"));
        same(&mut t, &format!("SELECT id FROM t WHERE {condition} ORDER BY id DESC LIMIT 3"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The value is a column of a table that was read before.
#[test]
fn rows_look_for_their_elements() {
    let server = server();
    let mut t = server.session();
    twins(&mut t);
    t.ok("CREATE TABLE p (id INT PRIMARY KEY, n INT, u BIGINT UNSIGNED, s VARCHAR(60) COLLATE utf8mb4_general_ci, d DOUBLE, x JSON, t DATE)");
    t.ok("INSERT INTO p VALUES (1, 5, 5, 't7', 5, '5', '2024-01-05'), (2, -1, 18446744073709551615, 'T7', 5.5, '\"5\"', NULL), \
          (3, 101, 101, 'a text that is longer than any element', 101, '[5]', '2024-01-06'), (4, NULL, NULL, NULL, NULL, NULL, NULL), \
          (5, 5, 7, 'odd', 7, '7', '2024-02-05'), (6, 2, 2, 'Even', 2, '2', '2020-01-01')");
    for (condition, expected) in [
        ("p.n MEMBER OF (t.j->'$.zip')", "ref zips"),
        ("p.u MEMBER OF (t.j->'$.zip')", "ref zips"),
        ("t.a = 2 AND p.s MEMBER OF (t.j->'$.tags')", "ref tags"),
        ("t.a = p.n AND p.s MEMBER OF (t.j->'$.tags')", "ref tags"),
        ("p.n MEMBER OF (t.j->'$.prices')", "ref prices"),
        ("p.n MEMBER OF (t.j->'$.prices') AND t.id < 100", "range prices"),
        // Values that may be none of the key's type, or become others.
        ("p.d MEMBER OF (t.j->'$.zip')", "ALL NULL"),
        ("p.x MEMBER OF (t.j->'$.zip')", "ALL NULL"),
        ("p.s MEMBER OF (t.j->'$.zip')", "ALL NULL"),
        ("p.n MEMBER OF (t.j->'$.tags') AND t.a = 2", "ALL NULL"),
        ("t.a MEMBER OF (t.j->'$.zip')", "ALL NULL"),
    ] {
        for select in [
            format!("SELECT p.id, t.id FROM p STRAIGHT_JOIN t ON {condition}"),
            format!("SELECT p.id, t.id FROM p LEFT JOIN t ON {condition}"),
            format!("SELECT p.id FROM p WHERE EXISTS (SELECT 1 FROM t WHERE {condition})"),
            format!("SELECT p.id, (SELECT COUNT(*) FROM t WHERE {condition}) FROM p"),
        ] {
            same(&mut t, &select);
        }
        let plan = t.run(&format!("EXPLAIN SELECT p.id, t.id FROM p STRAIGHT_JOIN t ON {condition}"));
        let of_t: Vec<&str> = plan.lines().nth(1).expect("a second table").split('|').collect();
        let got = format!("{} {}", of_t[4], of_t[6]);
        let is_it = got == expected || expected == "ALL NULL" && !got.ends_with("zips") && !got.ends_with("tags");
        assert!(is_it, "{condition}: {got}, not {expected}");
    }
    // What the transaction has changed is found, too.
    t.ok("BEGIN");
    t.ok("UPDATE t SET j = '{\"zip\": [101, 777]}' WHERE id IN (9, 10)");
    t.ok("UPDATE plain SET j = '{\"zip\": [101, 777]}' WHERE id IN (9, 10)");
    same(&mut t, "SELECT p.id, t.id FROM p STRAIGHT_JOIN t ON p.n MEMBER OF (t.j->'$.zip')");
    t.ok("ROLLBACK");
    same(&mut t, "SELECT p.id, t.id FROM p STRAIGHT_JOIN t ON p.n MEMBER OF (t.j->'$.zip')");
}

#[test]
fn changes_keep_the_entries() {
    let server = server();
    let mut t = server.session();
    twins(&mut t);
    for change in [
        "UPDATE t SET j = JSON_SET(j, '$.zip', JSON_ARRAY(id % 40 + 1, 5)) WHERE id % 3 = 0",
        "UPDATE t SET j = JSON_REMOVE(j, '$.zip') WHERE 7 MEMBER OF (j->'$.zip')",
        "DELETE FROM t WHERE JSON_OVERLAPS(j->'$.zip', '[5, 6, 101]') AND id % 2 = 0",
        "UPDATE t SET id = id + 1000 WHERE JSON_CONTAINS(j->'$.zip', '[103, 3]')",
        "REPLACE INTO t VALUES (1, 2, '{\"zip\": [5, 6]}'), (301, 2, NULL)",
        "INSERT INTO t VALUES (2, 3, '{\"zip\": 5}') ON DUPLICATE KEY UPDATE j = '{\"zip\": [5, 5, 8]}'",
    ] {
        let plain = change.replacen(" t ", " plain ", 1).replacen("FROM t", "FROM plain", 1);
        assert_eq!(t.run(change), t.run(&plain), "{change}");
        for (condition, _) in CONDITIONS {
            same(&mut t, &format!("SELECT id, j FROM t WHERE {condition}"));
        }
    }
    t.ok("BEGIN");
    t.ok("UPDATE t SET j = '{\"zip\": [777]}' WHERE id = 9");
    t.expect("SELECT id FROM t WHERE 777 MEMBER OF (j->'$.zip')", &["9"]);
    t.ok("ROLLBACK");
    t.expect("SELECT id FROM t WHERE 777 MEMBER OF (j->'$.zip')", &[]);
}

#[test]
fn unique_elements() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE u (id INT PRIMARY KEY, b INT, j JSON, UNIQUE KEY m ((CAST(j AS UNSIGNED ARRAY))), \
          UNIQUE KEY c (b, (CAST(j->'$[0]' AS SIGNED ARRAY))))");
    t.ok("INSERT INTO u VALUES (1, 1, '[1, 2, 2]'), (2, 1, '[3]'), (3, NULL, '[]'), (4, NULL, NULL), (5, NULL, '[]')");
    t.error("INSERT INTO u VALUES (6, 2, '[7, 2]')", 1062, "Duplicate entry '[7, 2]' for key 'u.m'");
    t.expect("SELECT id FROM u WHERE 7 MEMBER OF (j)", &[]);
    t.error("UPDATE u SET j = '[4, 1]' WHERE id = 2", 1062, "Duplicate entry '[4, 1]' for key 'u.m'");
    t.ok("UPDATE u SET j = '[3, 4]' WHERE id = 2");
    t.ok("UPDATE u SET id = 20 WHERE id = 2");
    t.code("INSERT INTO u VALUES (6, 2, '[3]')", 1062);
    t.code("INSERT INTO u VALUES (6, 2, '[4]')", 1062);
    t.expect("SELECT id FROM u WHERE 4 MEMBER OF (j)", &["20"]);
    t.ok("UPDATE u SET j = '[5]' WHERE id = 20");
    t.ok("INSERT INTO u VALUES (6, 2, '[3]')");
    t.expect("REPLACE INTO u VALUES (7, 3, '[1, 5, 9]')", &["OK 3"]);
    t.expect("SELECT id FROM u ORDER BY id", &["3", "4", "5", "6", "7"]);
    t.expect("INSERT INTO u VALUES (8, 4, '[9]') ON DUPLICATE KEY UPDATE b = 40", &["OK 2"]);
    t.expect("SELECT id, b FROM u WHERE 9 MEMBER OF (j)", &["7|40"]);
    t.ok("DELETE FROM u WHERE id = 7");
    t.ok("INSERT INTO u VALUES (7, 3, '[1, 5, 9]')");
    t.ok("ALTER TABLE u DROP KEY m, DROP KEY c");
    t.ok("INSERT INTO u VALUES (9, 3, '[1]')");
    // The build reads rows in no order: it names either of them.
    t.code("ALTER TABLE u ADD UNIQUE n ((CAST(j AS UNSIGNED ARRAY)))", 1062);
    t.ok("DELETE FROM u WHERE id = 9");
    t.ok("CREATE UNIQUE INDEX n ON u ((CAST(j AS UNSIGNED ARRAY)))");
    t.code("INSERT INTO u VALUES (9, 3, '[11, 1]')", 1062);
    t.expect(
        "SELECT NON_UNIQUE, COLUMN_NAME, EXPRESSION FROM information_schema.STATISTICS WHERE TABLE_NAME = 'u' AND INDEX_NAME = 'n'",
        &["0|NULL|cast(`j` as unsigned array)"],
    );
    t.expect("SELECT COUNT(*) FROM information_schema.TABLE_CONSTRAINTS WHERE TABLE_NAME = 'u'", &["2"]);
}

#[test]
fn errors_of_values() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE e (id INT PRIMARY KEY AUTO_INCREMENT, u JSON, s JSON, d JSON, n JSON, KEY ku ((CAST(u AS UNSIGNED ARRAY))), \
          KEY ks ((CAST(s AS CHAR(3) ARRAY))), KEY kd ((CAST(d AS DATE ARRAY))), KEY kn ((CAST(n AS DECIMAL(4, 1) ARRAY))))");
    for (column, value, code) in [
        ("u", "[1, null]", 3903),
        ("u", "[[1]]", 3908),
        ("u", "[1, {}]", 3908),
        ("u", "{\"a\": 1}", 3908),
        ("u", "[\"x\"]", 3903),
        ("u", "[-1]", 3904),
        ("u", "[18446744073709551616]", 3904),
        ("s", "[\"abcd\"]", 3907),
        ("s", "[{}]", 3908),
        ("d", "[\"2024-02-30\"]", 3903),
        ("d", "[5]", 3903),
        ("n", "[1000]", 3904),
        ("n", "[\"1x\"]", 3903),
    ] {
        t.code(&format!("INSERT INTO e ({column}) VALUES ('{value}')"), code);
    }
    t.error("INSERT INTO e (u) VALUES ('[null]')", 3903, "Invalid JSON value for CAST for functional index 'ku'.");
    let text = "Cannot store an array or an object in a scalar key part of the index 'kd'.";
    t.error("INSERT INTO e (d) VALUES ('[\"2024-01-01\", [\"2024-01-02\"]]')", 3908, text);
    t.error("INSERT INTO e (s) VALUES ('[\"abcd\"]')", 3907, "Data too long for functional index 'ks'.");
    for (column, value) in [
        ("u", "[1, \"2\", true, 3.4, 1]"),
        ("u", "null"),
        ("u", "[]"),
        ("u", "18446744073709551615"),
        ("s", "[\"abc\", 1, true, 1.5]"),
        ("d", "[\"2024-02-29\", \"2024-03-01 10:00:00\"]"),
        ("n", "[1, 1.26, \"999.9\"]"),
    ] {
        t.ok(&format!("INSERT INTO e ({column}) VALUES ('{value}')"));
    }
    t.expect("SELECT COUNT(*) FROM e", &["7"]);
    let numbers = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    t.ok(&format!("INSERT INTO e (u) VALUES ('[{}]')", numbers(1604)));
    t.error(
        &format!("INSERT INTO e (u) VALUES ('[{}]')", numbers(1607)),
        3905,
        "Exceeded max number of values per record for multi-valued index 'ku' by 3 value(s).",
    );
    t.ok("CREATE TABLE long_texts (id INT PRIMARY KEY, s JSON, KEY k ((CAST(s AS CHAR(700) ARRAY))))");
    t.code(
        "INSERT INTO long_texts WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 200) \
          SELECT 1, JSON_ARRAYAGG(CONCAT(i, REPEAT('x', 600))) FROM n",
        3906,
    );
    t.ok("ALTER TABLE e RENAME KEY ku TO renamed");
    t.error("INSERT INTO e (u) VALUES ('[null]')", 3903, "Invalid JSON value for CAST for functional index 'renamed'.");
    t.ok("CREATE TABLE later (id INT PRIMARY KEY, u JSON)");
    t.ok("INSERT INTO later VALUES (1, '[\"x\"]')");
    t.error(
        "ALTER TABLE later ADD KEY k ((CAST(u AS UNSIGNED ARRAY)))",
        3903,
        "Invalid JSON value for CAST for functional index 'k'.",
    );
    t.expect("SHOW INDEX FROM later WHERE Key_name = 'k'", &[]);
}

#[test]
fn definitions() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE d (id INT PRIMARY KEY, a INT, j JSON)");
    for (statement, code) in [
        ("CREATE INDEX k ON d ((CAST(j AS UNSIGNED ARRAY)), (CAST(j AS SIGNED ARRAY)))", 1235),
        ("CREATE INDEX k ON d ((CAST(j AS BINARY ARRAY)))", 1235),
        ("CREATE INDEX k ON d ((CAST(j AS JSON ARRAY)))", 1235),
        ("CREATE INDEX k ON d ((CAST(j AS DOUBLE ARRAY)))", 1235),
        ("CREATE INDEX k ON d ((CAST(j AS CHAR ARRAY)))", 1235),
        ("CREATE INDEX k ON d ((CAST(j AS CHAR(5) CHARACTER SET latin1 ARRAY)))", 1235),
        ("CREATE INDEX k ON d ((CAST(j AS CHAR(1000) ARRAY)))", 1071),
        ("CREATE INDEX k ON d ((CAST(j AS UNSIGNED ARRAY)) DESC)", 1221),
        ("CREATE INDEX k ON d ((JSON_LENGTH(CAST(j AS UNSIGNED ARRAY))))", 1235),
        ("CREATE TABLE x (j JSON, PRIMARY KEY ((CAST(j AS UNSIGNED ARRAY))))", 3756),
        ("CREATE TABLE x (j JSON, g JSON AS (CAST(j AS UNSIGNED ARRAY)))", 1235),
        ("SELECT CAST(j AS UNSIGNED ARRAY) FROM d", 1235),
        ("SELECT CAST('[1]' AS UNSIGNED ARRAY)", 1235),
    ] {
        t.code(statement, code);
    }
    t.ok("CREATE INDEX k ON d (a, (CAST(j->'$.x' AS CHAR(20) ARRAY)), id) COMMENT 'c'");
    t.ok("ALTER TABLE d ADD UNIQUE u ((CAST(j->'$.y' AS DATETIME(3) ARRAY))), ADD KEY v ((CAST(j->'$.z' AS DECIMAL(5,1) ARRAY))) INVISIBLE");
    let shown = t.run("SHOW CREATE TABLE d");
    for line in [
        "UNIQUE KEY `u` ((cast((`j`->'$.y') as datetime(3) array)))",
        "KEY `k` (`a`,(cast((`j`->'$.x') as char(20) array)),`id`) COMMENT 'c'",
        "KEY `v` ((cast((`j`->'$.z') as decimal(5,1) array))) /*!80000 INVISIBLE */",
    ] {
        assert!(shown.contains(line), "{line} is not in\n{shown}");
    }
    // What is shown makes the same table.
    let text = shown.split_once('|').expect("a name and a text").1.replace("CREATE TABLE `d`", "CREATE TABLE `again`");
    t.ok(&text);
    assert_eq!(t.run("SHOW CREATE TABLE again").replace("again", "d"), shown);
    t.ok("CREATE TABLE alike LIKE d");
    t.ok("INSERT INTO alike VALUES (1, 2, '{\"x\": [\"p\", \"q\"], \"y\": [\"2024-01-01 10:00:00\"]}')");
    t.expect("SELECT id FROM alike WHERE a = 2 AND 'q' MEMBER OF (j->'$.x')", &["1"]);
    t.code("ALTER TABLE alike DROP COLUMN j", 3755);
    t.ok("ALTER TABLE alike DROP KEY k, DROP KEY u, DROP KEY v, DROP COLUMN j");
    // It finds no rows by its first column alone.
    t.ok("CREATE TABLE parent (id INT PRIMARY KEY)");
    t.ok("CREATE TABLE child (id INT PRIMARY KEY, a INT, j JSON, KEY e (a, (CAST(j AS SIGNED ARRAY))), \
          FOREIGN KEY (a) REFERENCES parent (id))");
    assert!(t.run("SHOW CREATE TABLE child").contains("KEY `a` (`a`)"));
    t.ok("CREATE TEMPORARY TABLE own (id INT PRIMARY KEY, j JSON, UNIQUE KEY ((CAST(j AS SIGNED ARRAY))))");
    t.ok("INSERT INTO own VALUES (1, '[1, -2]')");
    t.code("INSERT INTO own VALUES (2, '[-2]')", 1062);
    t.expect("SELECT id FROM own WHERE -2 MEMBER OF (j)", &["1"]);
}

#[test]
fn a_restart_keeps_them() {
    let disk = MemoryDisk::new();
    {
        let server = server_on(disk.clone());
        let mut t = server.session();
        twins(&mut t);
        t.ok("CREATE UNIQUE INDEX one ON t ((CAST(j->'$.only' AS UNSIGNED ARRAY)))");
        t.ok("UPDATE t SET j = JSON_SET(j, '$.only', JSON_ARRAY(id, id + 1000)) WHERE id < 100 AND j IS NOT NULL");
    }
    let server = server_on(disk);
    let mut t = server.session();
    t.code("UPDATE t SET j = '{\"only\": [1005]}' WHERE id = 200", 1062);
    t.expect("SELECT id FROM t WHERE 1005 MEMBER OF (j->'$.only')", &["5"]);
    t.ok("UPDATE plain p JOIN t ON t.id = p.id SET p.j = t.j");
    for (condition, _) in CONDITIONS {
        same(&mut t, &format!("SELECT id FROM t WHERE {condition}"));
    }
}
