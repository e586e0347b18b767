//! Reads of an index without its rows: the same answers as from the rows, whatever others and the session itself change.

use super::access_paths::{Dice, sorted, without};
use super::{Test, server};

const COLUMNS: [&str; 7] = ["a", "b", "c", "d", "m", "x", "f"];
const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, a INT, b BIGINT UNSIGNED NOT NULL, c DECIMAL(30,2), d DATE, \
    m DATETIME(3), x VARBINARY(9), f DOUBLE, s VARCHAR(9), note TEXT, KEY ka (a, b), KEY kc (c DESC, a), \
    KEY kd (d, m DESC), KEY kx (x, d), KEY kf (f, b), KEY ks (s, a))";
const KEYS: [(&str, &[&str]); 7] = [
    ("ka", &["a", "b"]),
    ("kc", &["c", "a"]),
    ("kd", &["d", "m"]),
    ("kx", &["x", "d"]),
    ("kf", &["f", "b"]),
    // Of a text nothing can be shown.
    ("ks", &["a"]),
    ("PRIMARY", &["id"]),
];

fn value(dice: &mut Dice, column: &str) -> String {
    if column != "b" && column != "id" && dice.roll(7) == 0 {
        return "NULL".into();
    }
    match column {
        "id" => dice.roll(80).to_string(),
        "a" => dice.pick(&["-3", "0", "1", "2", "2147483647"]).into(),
        "b" => dice.pick(&["0", "1", "18446744073709551615", "7"]).into(),
        "c" => dice.pick(&["-1.50", "0", "99999999999999999999999.25", "2.5"]).into(),
        "d" => dice.pick(&["'2020-01-01'", "'1999-12-31'", "'2020-02-29'"]).into(),
        "m" => dice.pick(&["'2020-01-01 00:00:00.123'", "'1999-12-31 23:59:59'", "'2020-02-29'"]).into(),
        "x" => dice.pick(&["''", "'a'", "X'00'", "X'0000FF'", "'ab'"]).into(),
        "f" => dice.pick(&["0", "-0.0e0", "1.5", "-2.25e300"]).into(),
        _ => dice.pick(&["'a'", "'A'", "'b '", "''"]).into(),
    }
}

fn change(dice: &mut Dice) -> String {
    let id = dice.roll(80);
    match dice.roll(4) {
        0 => format!("DELETE FROM t WHERE id = {id}"),
        1 => {
            let column = dice.pick(&COLUMNS);
            format!("UPDATE t SET {column} = {} WHERE id = {id}", value(dice, column))
        }
        2 => format!("UPDATE t SET note = 'n{id}' WHERE id = {id}"),
        _ => {
            let columns = COLUMNS.iter().chain(&["s"]);
            let values: Vec<String> = columns.map(|column| value(dice, column)).collect();
            format!("REPLACE INTO t VALUES ({id}, {}, 'n')", values.join(", "))
        }
    }
}

/// A query that reads no columns but those of an index, and that index.
fn query(dice: &mut Dice) -> (String, &'static str) {
    let (key, columns) = KEYS[dice.roll(KEYS.len())];
    let column = dice.pick(columns);
    let first = if key == "ks" { "s" } else { columns[0] };
    let (low, high) = (value(dice, first), value(dice, first));
    let condition = match dice.roll(4) {
        0 => format!("{first} = {low}"),
        1 => format!("{first} IS NULL OR {first} >= {high}"),
        2 => format!("{first} BETWEEN {low} AND {high}"),
        _ => format!("{first} > {low}"),
    };
    let other = dice.pick(columns);
    let condition = match dice.roll(3) {
        0 if key != "ks" => format!("({condition}) AND {other} <= {}", value(dice, other)),
        _ => condition,
    };
    let shown = columns.join(", ");
    let sql = match (key, dice.roll(5)) {
        ("ks", _) | (_, 0) => format!("SELECT COUNT(*) FROM t WHERE {condition}"),
        (_, 1) => format!("SELECT {column}, COUNT(*) FROM t WHERE {condition} GROUP BY {column}"),
        (_, 2) => format!("SELECT SUM({column}), MIN({column}), MAX({other}) FROM t WHERE {condition}"),
        _ => format!("SELECT {shown} FROM t WHERE {condition}"),
    };
    (sql, key)
}

#[track_caller]
fn same(t: &mut Test, sql: &str, key: &str) {
    let (by_rows, by_keys) = (without(sql), sql.replacen("FROM t", &format!("FROM t FORCE INDEX ({key})"), 1));
    let (expected, got) = (t.run(&by_rows), t.run(&by_keys));
    assert_eq!(sorted(&got), sorted(&expected), "{by_keys}\n{}", t.run(&format!("EXPLAIN {by_keys}")));
}

#[test]
fn keys_say_what_rows_say_at_every_level() {
    let server = server();
    let (mut t, mut other) = (server.session(), server.session());
    let mut covered = 0;
    for seed in 0..6 {
        let mut dice = Dice(seed);
        t.ok("DROP TABLE IF EXISTS t");
        t.ok(TABLE);
        for _ in 0..60 {
            other.run(&change(&mut dice));
        }
        for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
            t.ok(&format!("SET TRANSACTION ISOLATION LEVEL {level}"));
            t.ok("BEGIN");
            for _ in 0..12 {
                let (sql, key) = query(&mut dice);
                let plan =
                    t.run(&format!("EXPLAIN {}", sql.replacen("FROM t", &format!("FROM t FORCE INDEX ({key})"), 1)));
                covered += usize::from(plan.contains("Using index"));
                same(&mut t, &sql, key);
                // What others change, and what the transaction changes itself.
                if level != "SERIALIZABLE" {
                    other.run(&change(&mut dice));
                    same(&mut t, &sql, key);
                }
                if dice.roll(3) == 0 {
                    t.run(&change(&mut dice));
                    same(&mut t, &sql, key);
                }
            }
            t.run(dice.pick(&["COMMIT", "ROLLBACK"]));
            let (sql, key) = query(&mut dice);
            same(&mut t, &sql, key);
        }
    }
    assert!(covered > 100, "only {covered} queries were covered");
}

#[test]
fn what_is_read_besides_the_index_reads_rows() {
    let server = server();
    let mut t = server.session();
    t.ok(TABLE);
    t.ok("INSERT INTO t VALUES (1, 5, 1, NULL, NULL, NULL, 'x', 0, 'A', 'n'), (2, 6, 2, NULL, NULL, NULL, 'y', 0, 'b', 'm')");
    let extra = |t: &mut Test, sql: &str| t.run(&format!("EXPLAIN {sql}")).split('|').next_back().unwrap().to_string();
    for sql in [
        "SELECT a FROM t WHERE a = 5",
        "SELECT COUNT(*) FROM t WHERE a = 5",
        "SELECT COUNT(*) FROM t WHERE s = 'a'",
        "SELECT a + b FROM t FORCE INDEX (ka) WHERE a > 4 ORDER BY a DESC",
        "SELECT b FROM t WHERE a = 5 HAVING b > 0",
    ] {
        assert!(extra(&mut t, sql).contains("Using index"), "{sql}");
    }
    for sql in [
        "SELECT a, id FROM t WHERE a = 5",
        "SELECT a FROM t WHERE a = 5 AND note = 'n'",
        "SELECT a FROM t FORCE INDEX (ka) WHERE a = 5 ORDER BY id",
        "SELECT b FROM t FORCE INDEX (ka) WHERE a > 1 GROUP BY c, b",
        "SELECT a FROM t WHERE a = 5 FOR UPDATE",
        "SELECT a FROM t WHERE a = 5 LOCK IN SHARE MODE",
        "SELECT s FROM t WHERE s = 'a'",
        "SELECT COUNT(*) FROM t WHERE a = 5 HAVING MAX(c) IS NULL",
    ] {
        assert!(!extra(&mut t, sql).contains("Using index"), "{sql}");
    }
    t.expect("SELECT s FROM t WHERE s = 'a'", &["A"]);
    t.expect("SELECT x, f FROM t FORCE INDEX (kx) WHERE x > ''", &["x|0", "y|0"]);
    assert!(extra(&mut t, "SELECT f FROM t FORCE INDEX (kf) WHERE f >= 0").contains("Using index"));
    t.expect("SELECT f FROM t FORCE INDEX (kf) WHERE f >= 0", &["0", "0"]);
    // In joins, and in subqueries that read columns around them.
    t.expect("SELECT y.a FROM t x JOIN t y ON y.a = x.a + 1", &["6"]);
    t.expect("SELECT x.note, EXISTS (SELECT 1 FROM t y WHERE y.a = x.a + 1) FROM t x", &["n|1", "m|0"]);
    let tree = t.run("EXPLAIN ANALYZE SELECT a FROM t WHERE a = 5");
    assert!(tree.contains("Covering index lookup on t using ka"), "{tree}");
    let json = t.run("EXPLAIN FORMAT=JSON SELECT a FROM t WHERE a = 5");
    assert!(json.contains("\"using_index\": true"), "{json}");
}

#[test]
fn rows_of_older_layouts_are_covered_too() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT, KEY (a))");
    t.ok("INSERT INTO t VALUES (1, 1), (2, NULL)");
    t.ok("ALTER TABLE t ADD COLUMN b INT NOT NULL DEFAULT 7, ADD COLUMN v VARCHAR(5) DEFAULT 'v'");
    t.ok("INSERT INTO t VALUES (3, 3, 8, 'w')");
    t.ok("CREATE INDEX kb ON t (b, a)");
    t.expect("SELECT b, a FROM t FORCE INDEX (kb) WHERE b > 0", &["7|NULL", "7|1", "8|3"]);
    t.ok("ALTER TABLE t DROP COLUMN v, ADD COLUMN w BIGINT FIRST");
    t.expect("SELECT b, a FROM t FORCE INDEX (kb) WHERE b > 0", &["7|NULL", "7|1", "8|3"]);
    t.expect("SELECT a FROM t FORCE INDEX (a) WHERE a > 0", &["1", "3"]);
}

#[test]
fn rows_of_which_little_is_read_are_those_of_the_snapshot() {
    let server = server();
    let (mut t, mut other) = (server.session(), server.session());
    // Each beside the same by rows: of all rows, of a join, of groups, and of a jump over leading values.
    let pairs = [
        ("SELECT COUNT(*) FROM t", "SELECT COUNT(IFNULL(note, '')) FROM t"),
        ("SELECT COUNT(*) FROM t x, t y", "SELECT COUNT(IFNULL(x.note, '')) * COUNT(DISTINCT x.id) FROM t x"),
        ("SELECT EXISTS (SELECT 1 FROM t)", "SELECT COUNT(IFNULL(note, '')) > 0 FROM t"),
        (
            "SELECT /*+ GROUP_INDEX(t ka) */ a, MIN(b), MAX(b) FROM t GROUP BY a",
            "SELECT /*+ NO_INDEX(t) */ a, MIN(b), MAX(b) FROM t GROUP BY a",
        ),
        ("SELECT /*+ GROUP_INDEX(t kc) */ DISTINCT c FROM t", "SELECT /*+ NO_INDEX(t) */ c FROM t GROUP BY c"),
        ("SELECT /*+ SKIP_SCAN(t ka) */ a, b FROM t WHERE b > 1", "SELECT /*+ NO_INDEX(t) */ a, b FROM t WHERE b > 1"),
    ];
    let mut own = 1000;
    let compare = |t: &mut Test| {
        for (by_keys, by_rows) in pairs {
            let (expected, got) = (t.run(by_rows), t.run(by_keys));
            assert_eq!(sorted(&got), sorted(&expected), "{by_keys}\n{}", t.run(&format!("EXPLAIN {by_keys}")));
        }
    };
    for seed in 0..4 {
        let mut dice = Dice(seed);
        t.ok("DROP TABLE IF EXISTS t");
        t.ok(TABLE);
        t.expect("SELECT COUNT(*) FROM t", &["0"]);
        for _ in 0..60 {
            other.run(&change(&mut dice));
        }
        t.ok("ANALYZE TABLE t");
        assert!(t.run(&format!("EXPLAIN {}", pairs[3].0)).contains("Using index for group-by"));
        assert!(t.run(&format!("EXPLAIN {}", pairs[5].0)).contains("Using index for skip scan"));
        for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
            t.ok(&format!("SET TRANSACTION ISOLATION LEVEL {level}"));
            t.ok("BEGIN");
            for _ in 0..6 {
                compare(&mut t);
                if level != "SERIALIZABLE" {
                    other.run(&change(&mut dice));
                    compare(&mut t);
                    // Of a transaction that is not committed nothing is seen.
                    other.ok("BEGIN");
                    other.run(&change(&mut dice));
                    other.run(&format!("DELETE FROM t WHERE id = {}", dice.roll(80)));
                    compare(&mut t);
                    other.run(dice.pick(&["COMMIT", "ROLLBACK"]));
                }
                // Own changes, of rows that the other one leaves alone.
                own += 1;
                t.ok(&format!("INSERT INTO t (id, a, b, note) VALUES ({own}, {}, 3, 'o')", own % 4));
                compare(&mut t);
                t.ok(&format!("DELETE FROM t WHERE id = {}", own - dice.roll(3)));
                compare(&mut t);
            }
            t.run(dice.pick(&["COMMIT", "ROLLBACK"]));
            compare(&mut t);
        }
    }
}
