//! Loose scans and skip scans: the same answers as without them, at every isolation level, and where they are used.

use super::access_paths::{Dice, columns_and_keys, large, path, predicate, sorted, without};
use super::{Test, server};

#[track_caller]
fn same(t: &mut Test, sql: &str) {
    let (expected, got) = (t.run(&without(&sql.replace(" FORCE INDEX (abc)", ""))), t.run(sql));
    assert_eq!(sorted(&got), sorted(&expected), "{sql}\n{}", t.run(&format!("EXPLAIN {sql}")));
}

#[test]
fn one_row_of_each_value_is_enough() {
    let server = server();
    let mut t = server.session();
    large(&mut t);
    t.ok("SET optimizer_switch = 'skip_scan=off'");
    assert!(path(&mut t, "SELECT DISTINCT a FROM t").contains("group-by"));
    assert!(path(&mut t, "SELECT MIN(a), MAX(a) FROM t").contains("group-by"));
    assert!(!path(&mut t, "SELECT DISTINCT a, b, c FROM t").contains("group-by"));
    for (sql, expected) in [
        ("SELECT DISTINCT a FROM t", Some(4)),
        ("SELECT a FROM t GROUP BY a", Some(4)),
        ("SELECT DISTINCT a, b FROM t", Some(9)),
        ("SELECT DISTINCT b, a + 1 FROM t", Some(9)),
        ("SELECT DISTINCT a FROM t ORDER BY a + 0 DESC LIMIT 3", Some(4)),
        ("SELECT a, MIN(b) FROM t GROUP BY a", Some(9)),
        ("SELECT a, MAX(b) FROM t GROUP BY a", Some(9)),
        ("SELECT a, MIN(b), MAX(b), MAX(a) FROM t GROUP BY a", Some(9)),
        ("SELECT a, MAX(b), MIN(b) FROM t WHERE a > 3 AND a <= 7 GROUP BY a ORDER BY a DESC", Some(9)),
        ("SELECT a, MIN(b), MAX(b) FROM t WHERE b > 3 GROUP BY a", Some(9)),
        ("SELECT a, MIN(b), MAX(b) FROM t WHERE b > 30 GROUP BY a", Some(9)),
        ("SELECT a, MIN(c), MAX(c) FROM t WHERE b = 3 GROUP BY a", Some(13)),
        ("SELECT a, MIN(c), MAX(c) FROM t WHERE b IS NULL AND c > 30 GROUP BY a", Some(13)),
        ("SELECT MIN(b), MAX(b) FROM t WHERE a = 3", Some(9)),
        ("SELECT MIN(b), MAX(b) FROM t WHERE a = 333", Some(9)),
        ("SELECT MIN(a), MAX(a) FROM t", Some(4)),
        ("SELECT COUNT(DISTINCT a), SUM(DISTINCT a), AVG(DISTINCT a), MIN(a) FROM t", Some(4)),
        ("SELECT COUNT(DISTINCT a, b) FROM t", Some(9)),
        ("SELECT a, COUNT(DISTINCT b) FROM t GROUP BY a", Some(9)),
        ("SELECT a, MIN(b) FROM t GROUP BY a WITH ROLLUP", Some(9)),
        ("SELECT a, MIN(b) FROM t GROUP BY a HAVING MAX(b) > 8", Some(9)),
        ("SELECT DISTINCT a FROM t WHERE a IN (1, 2, 77)", Some(4)),
        ("SELECT a, MIN(b), MAX(c) FROM t GROUP BY a", Some(13)),
        // All entries cost less than so many jumps.
        ("SELECT a, b, MIN(c) FROM t WHERE (a, b) > (8, 3) GROUP BY a, b", None),
        ("SELECT DISTINCT b FROM t WHERE a = 3", None),
        // A row stands for no other: it is counted, shown, or checked by more than keys.
        ("SELECT a, COUNT(*) FROM t GROUP BY a", None),
        ("SELECT a, SUM(b) FROM t GROUP BY a", None),
        ("SELECT a, GROUP_CONCAT(DISTINCT b) FROM t GROUP BY a", None),
        ("SELECT a, MIN(b) FROM t WHERE note = 'n1' GROUP BY a", None),
        ("SELECT DISTINCT a FROM t WHERE c > 30", None),
        ("SELECT DISTINCT note FROM t", None),
        ("SELECT DISTINCT a, RAND() * 0 FROM t", None),
        ("SELECT DISTINCT a FROM t FOR UPDATE", None),
    ] {
        // By cost few of them are read so, by a hint all that can be.
        let shown = path(&mut t, &sql.replacen("FROM t", "FROM t FORCE INDEX (abc)", 1));
        match expected {
            Some(length) => {
                let begin = format!("range abc {length} ");
                assert!(shown.starts_with(&begin) && shown.contains("Using index for group-by"), "{sql}: {shown}");
            }
            None => assert!(!shown.contains("group-by"), "{sql}: {shown}"),
        }
        same(&mut t, &sql.replacen("FROM t", "FROM t FORCE INDEX (abc)", 1));
        same(&mut t, sql);
    }
}

#[test]
fn equal_texts_may_stand_for_each_other_in_large_tables_only() {
    let server = server();
    let mut t = server.session();
    let rows = |from: usize, to: usize| {
        let row = |id: usize| format!("({id}, '{}', {})", ["x", "y", "Z"][id % 3], id % 4);
        (from..to).map(row).collect::<Vec<_>>().join(", ")
    };
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(5), v INT, KEY sv (s, v))");
    t.ok(&format!("INSERT INTO t VALUES {}", rows(0, 900)));
    t.ok("ANALYZE TABLE t");
    assert!(!path(&mut t, "SELECT DISTINCT s FROM t").contains("group-by"));
    t.ok(&format!("INSERT INTO t VALUES {}", rows(900, 3000)));
    t.ok("ANALYZE TABLE t");
    for sql in [
        "SELECT DISTINCT s FROM t",
        "SELECT s, MAX(v) FROM t GROUP BY s",
        "SELECT COUNT(DISTINCT s) FROM t",
        "SELECT COUNT(DISTINCT s, v) FROM t WHERE (s, v) > ('x', 2)",
    ] {
        assert!(path(&mut t, sql).contains("group-by"), "{sql}");
        same(&mut t, sql);
    }
    // Equal keys, other values.
    for sql in ["SELECT DISTINCT BINARY s FROM t", "SELECT LENGTH(s) FROM t GROUP BY LENGTH(s)"] {
        assert!(!path(&mut t, sql).contains("group-by"), "{sql}");
        same(&mut t, sql);
    }
}

/// `t`: 4 000 rows, `a` of three values, `b` of a thousand; an index on (a, b).
fn few(t: &mut Test) {
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT NOT NULL, note VARCHAR(9), KEY ab (a, b))");
    for from in (0..4000).step_by(500) {
        let a = |id: usize| ["NULL", "1", "2"][id % 3];
        let row = |id: usize| format!("({id}, {}, {}, 'n{}')", a(id), id % 1000, id % 2);
        t.ok(&format!("INSERT INTO t VALUES {}", (from..from + 500).map(row).collect::<Vec<_>>().join(", ")));
    }
    t.ok("ANALYZE TABLE t");
}

#[test]
fn a_condition_on_the_second_column_skips_through_the_first() {
    let server = server();
    let mut t = server.session();
    few(&mut t);
    let scan = |extra: &str| format!("range ab 9 {extra}");
    for (condition, expected) in [
        ("b = 77", scan("Using index for skip scan")),
        ("b = 7777", scan("Using index for skip scan")),
        ("b IN (5, 77, 999)", scan("Using index for skip scan")),
        ("b = 77 AND note = 'n1'", scan("Using where; Using index for skip scan")),
        ("b = 77 AND a > 1", scan("Using index for skip scan")),
        ("b = 77 AND a IS NULL", "ref ab 9 NULL".into()),
        ("b <> 77", "ALL NULL NULL Using where".into()),
        ("note = 'n1'", "ALL NULL NULL Using where".into()),
    ] {
        let sql = format!("SELECT * FROM t WHERE {condition}");
        assert_eq!(path(&mut t, &sql), expected, "{condition}");
        same(&mut t, &sql);
        same(&mut t, &format!("SELECT COUNT(*), MIN(id), SUM(b) FROM t WHERE {condition}"));
        same(&mut t, &format!("SELECT a, b, id FROM t WHERE {condition} ORDER BY a DESC, id LIMIT 4"));
    }
    // What locks rows does not jump.
    assert_eq!(path(&mut t, "SELECT * FROM t WHERE b = 77 FOR UPDATE"), "ALL NULL NULL Using where");
    assert_eq!(path(&mut t, "DELETE FROM t WHERE b = 77"), "ALL NULL NULL Using where");
    t.ok("PREPARE p FROM 'SELECT COUNT(*) FROM t WHERE b = ?'");
    t.ok("SET @b = 77, @none = NULL");
    t.expect("EXECUTE p USING @b", &["4"]);
    t.expect("EXECUTE p USING @none", &["0"]);
    t.ok("SET optimizer_switch = 'skip_scan=off'");
    assert_eq!(path(&mut t, "SELECT * FROM t WHERE b = 77"), "ALL NULL NULL Using where");
}

#[test]
fn jumps_see_one_snapshot_or_lock() {
    let server = server();
    let (mut t, mut other) = (server.session(), server.session());
    few(&mut t);
    let statements =
        ["SELECT DISTINCT a FROM t", "SELECT a, MIN(b), MAX(b) FROM t GROUP BY a", "SELECT id FROM t WHERE b = 77"];
    t.ok("START TRANSACTION WITH CONSISTENT SNAPSHOT");
    let before = statements.map(|sql| t.run(sql));
    other.ok("DELETE FROM t WHERE a = 1");
    other.ok("UPDATE t SET a = 5, b = 2000 WHERE a = 2");
    other.ok("INSERT INTO t VALUES (9000, 0, 77, 'n')");
    assert_eq!(statements.map(|sql| t.run(sql)), before);
    t.ok("COMMIT");
    t.expect(statements[0], &["NULL", "0", "5"]);
    t.expect(statements[1], &["NULL|0|999", "0|77|77", "5|2000|2000"]);
    // What the transaction has written itself.
    t.ok("BEGIN");
    t.ok("INSERT INTO t VALUES (9001, 7, 77, 'n')");
    t.ok("DELETE FROM t WHERE a = 0");
    t.expect(statements[0], &["NULL", "5", "7"]);
    t.ok("ROLLBACK");
    // At SERIALIZABLE nothing may come between the keys that were jumped over.
    t.ok("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE");
    t.ok("BEGIN");
    t.expect(statements[0], &["NULL", "0", "5"]);
    other.ok("SET lock_wait_timeout = 1, innodb_lock_wait_timeout = 1");
    other.code("INSERT INTO t VALUES (9002, 3, 1, 'n')", 1205);
    t.ok("COMMIT");
    other.ok("INSERT INTO t VALUES (9002, 3, 1, 'n')");
}

#[test]
fn random_groups_are_the_same_with_and_without_indexes() {
    let server = server();
    let mut t = server.session();
    let mut jumped = 0;
    for seed in 100..108 {
        let mut dice = Dice(seed);
        let leading = columns_and_keys(&mut t, &mut dice, 100);
        t.ok("ANALYZE TABLE t");
        for _ in 0..25 {
            let key = dice.roll(2);
            let columns = &leading[key];
            let first = columns[..1 + dice.roll(columns.len())].join(", ");
            let end = &columns[dice.roll(columns.len())];
            let condition = match dice.roll(3) {
                0 => "TRUE".to_string(),
                1 => predicate(&mut dice, 0),
                _ => format!("{} AND {}", predicate(&mut dice, 0), predicate(&mut dice, 0)),
            };
            let select = match dice.roll(5) {
                0 => format!("SELECT DISTINCT {first} FROM t WHERE {condition}"),
                1 => format!("SELECT {first}, MIN({end}), MAX({end}) FROM t WHERE {condition} GROUP BY {first}"),
                2 => format!("SELECT {first}, MAX({end}) FROM t WHERE {condition} GROUP BY {first}"),
                3 => format!("SELECT COUNT(DISTINCT {first}), MIN({end}), MAX({end}) FROM t WHERE {condition}"),
                _ => format!("SELECT id FROM t WHERE {condition}"),
            };
            let sql = select.replacen("FROM t", &format!("FROM t FORCE INDEX (k{key})"), 1);
            let (expected, got) = (t.run(&without(&select)), t.run(&sql));
            // Which of several equal texts is shown is open.
            let (expected, got) = (expected.to_lowercase().replace(' ', ""), got.to_lowercase().replace(' ', ""));
            assert_eq!(sorted(&got), sorted(&expected), "{sql}\n{}", t.run("SHOW CREATE TABLE t"));
            let shown = t.run(&format!("EXPLAIN {sql}"));
            jumped += usize::from(shown.contains("Using index for"));
        }
    }
    assert!(jumped > 20, "{jumped} jumped");
}
