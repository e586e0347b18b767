//! Access paths: the same rows by every path, and which path EXPLAIN shows.

use super::{Test, server};

/// A small generator of numbers: the same run each time.
pub(super) struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }

    pub(super) fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.roll(of.len())]
    }
}

const COLUMNS: [&str; 5] = ["a", "b", "c", "s", "d"];

/// `t` with the indexes `k0`, `k1`… that the dice give; the columns of each.
pub(super) fn columns_and_keys(t: &mut Test, dice: &mut Dice, rows: usize) -> Vec<Vec<&'static str>> {
    t.ok("DROP TABLE IF EXISTS t");
    let mut keys = Vec::new();
    let mut columns = Vec::new();
    for number in 0..2 + dice.roll(3) {
        let mut parts: Vec<String> = Vec::new();
        let mut of_key = Vec::new();
        for _ in 0..1 + dice.roll(3) {
            let column = dice.pick(&COLUMNS);
            if !parts.iter().any(|part| part.starts_with(column)) {
                of_key.push(column);
                let prefix = if column == "s" && dice.roll(4) == 0 { "(1)" } else { "" };
                parts.push(format!("{column}{prefix}{}", if dice.roll(4) == 0 { " DESC" } else { "" }));
            }
        }
        columns.push(of_key);
        keys.push(format!("KEY k{number} ({})", parts.join(", ")));
    }
    t.ok(&format!(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT NOT NULL, c DECIMAL(6,2), s VARCHAR(10), d DATE, {})",
        keys.join(", ")
    ));
    let row = |dice: &mut Dice, id: usize| {
        let a = if dice.roll(6) == 0 { "NULL".to_string() } else { dice.roll(6).to_string() };
        let c = if dice.roll(8) == 0 { "NULL".to_string() } else { format!("{}.{}", dice.roll(4), dice.roll(2) * 5) };
        let s = dice.pick(&["NULL", "'a'", "'A'", "'b'", "'ba'", "'Bb'", "'c '", "'c'", "''"]);
        let d = dice.pick(&["NULL", "'2020-01-01'", "'2020-01-02'", "'2020-02-01'", "'2021-01-01'"]);
        format!("({id}, {a}, {}, {c}, {s}, {d})", dice.roll(8))
    };
    let values: Vec<String> = (0..rows).map(|id| row(dice, id)).collect();
    t.ok(&format!("INSERT INTO t VALUES {}", values.join(", ")));
    columns
}

fn value(dice: &mut Dice, column: &str) -> String {
    if dice.roll(20) == 0 {
        return "NULL".into();
    }
    match column {
        "s" => dice.pick(&["'a'", "'A'", "'B'", "'ba'", "'c'", "''", "'z'"]).into(),
        "d" => dice.pick(&["'2020-01-01'", "'2020-01-31'", "'2020-02-01'", "DATE'2021-01-01'"]).into(),
        "c" => dice.pick(&["0", "1.5", "2", "2.25", "-1", "3.5"]).into(),
        _ => match dice.roll(12) {
            0 => "2.5".into(),
            1 => "'3'".into(),
            2 => "-1".into(),
            3 => "99".into(),
            _ => dice.roll(8).to_string(),
        },
    }
}

fn comparison(dice: &mut Dice) -> String {
    let column = dice.pick(&COLUMNS);
    let mut of = || value(dice, column);
    let (one, two) = (of(), of());
    match dice.roll(14) {
        0 => format!("{column} IS NULL"),
        1 => format!("{column} IS NOT NULL"),
        2 => format!("{column} <=> {one}"),
        3 => format!("{column} BETWEEN {one} AND {two}"),
        4 => format!("{column} IN ({one}, {two})"),
        5 => {
            let other = dice.pick(&COLUMNS);
            let op = dice.pick(&["=", "<", "<=", ">", ">=", "<>"]);
            format!("({column}, {other}) {op} ({one}, {})", value(dice, other))
        }
        6 => {
            let other = dice.pick(&COLUMNS);
            format!("({column}, {other}) IN (({one}, {}), ({two}, {}))", value(dice, other), value(dice, other))
        }
        7 if column == "s" => format!("s LIKE {}", dice.pick(&["'a%'", "'b_'", "'%b'"])),
        _ => format!("{column} {} {one}", dice.pick(&["=", "=", "=", "<", "<=", ">", ">=", "<>"])),
    }
}

pub(super) fn predicate(dice: &mut Dice, height: usize) -> String {
    match dice.roll(if height == 0 { 1 } else { 5 }) {
        0 => comparison(dice),
        1 | 2 => format!("({} AND {})", predicate(dice, height - 1), predicate(dice, height - 1)),
        3 => format!("({} OR {})", predicate(dice, height - 1), predicate(dice, height - 1)),
        _ => format!("({} OR {} OR {})", comparison(dice), predicate(dice, height - 1), comparison(dice)),
    }
}

/// `USE INDEX ()`: without any index.
pub(super) fn without(sql: &str) -> String {
    sql.replacen("FROM t", "FROM t USE INDEX ()", 1)
}

pub(super) fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.split('\n').collect();
    lines.sort_unstable();
    lines
}

#[track_caller]
fn same_rows(t: &mut Test, sql: &str) {
    let (expected, got) = (t.run(&without(sql)), t.run(sql));
    assert_eq!(
        sorted(&got),
        sorted(&expected),
        "{sql}\n{}\n{}",
        t.run(&format!("EXPLAIN {sql}")),
        t.run("SHOW CREATE TABLE t")
    );
}

#[test]
fn random_conditions_find_the_same_rows_with_and_without_indexes() {
    let server = server();
    let mut t = server.session();
    let mut ranges = 0;
    for seed in 0..8 {
        let mut dice = Dice(seed);
        columns_and_keys(&mut t, &mut dice, 100);
        for _ in 0..25 {
            let condition = predicate(&mut dice, 3);
            // The hint leaves the choice of the index free, but not that there is one.
            for hint in ["", "FORCE INDEX (k0)", "FORCE INDEX (k1)"] {
                let sql = format!("SELECT * FROM t {hint} WHERE {condition}");
                let expected = t.run(&format!("SELECT * FROM t USE INDEX () WHERE {condition}"));
                let got = t.run(&sql);
                assert_eq!(sorted(&got), sorted(&expected), "{sql}\n{}", t.run("SHOW CREATE TABLE t"));
                ranges += usize::from(t.run(&format!("EXPLAIN {sql}")).contains("|range|"));
            }
            same_rows(&mut t, &format!("SELECT * FROM t WHERE {condition} FOR UPDATE"));
            let ordered = format!("SELECT id, a, b FROM t FORCE INDEX (k0) WHERE {condition} ORDER BY a, b, id");
            let expected = t.run(&format!("SELECT id, a, b FROM t USE INDEX () WHERE {condition} ORDER BY a, b, id"));
            assert_eq!(t.run(&ordered), expected, "{ordered}");
        }
    }
    assert!(ranges > 50, "{ranges} ranges");
}

/// Of EXPLAIN's first row: type, key, key_len, Extra.
#[track_caller]
pub(super) fn path(t: &mut Test, sql: &str) -> String {
    let text = t.run(&format!("EXPLAIN {sql}"));
    let cells: Vec<&str> = text.lines().next().unwrap_or_default().split('|').collect();
    assert_eq!(cells.len(), 12, "{sql}: {text}");
    [4, 6, 7, 11].map(|at| cells[at]).join(" ")
}

/// `t` with 2 000 rows: `a` and `b` of few values, `c` of as many as rows; an index on (a, b, c).
pub(super) fn large(t: &mut Test) {
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL, b INT, c INT NOT NULL, note VARCHAR(10), KEY abc (a, b, c))");
    for from in (0..2000).step_by(500) {
        let row = |id: usize| {
            let b = if id.is_multiple_of(50) { "NULL".to_string() } else { (id / 10 % 10).to_string() };
            format!("({id}, {}, {b}, {id}, 'n{}')", id % 10, id % 7)
        };
        t.ok(&format!("INSERT INTO t VALUES {}", (from..from + 500).map(row).collect::<Vec<_>>().join(", ")));
    }
    t.ok("ANALYZE TABLE t");
}

#[test]
fn rows_of_values_are_ranges() {
    let server = server();
    let mut t = server.session();
    large(&mut t);
    for (condition, expected) in [
        ("(a, b) = (1, 2)", "ref abc 9 NULL"),
        ("(a, b) IN ((1, 2), (3, 4))", "range abc 9 NULL"),
        ("(a, b) > (8, 5)", "range abc 9 NULL"),
        ("(a, b) >= (8, 5)", "range abc 9 NULL"),
        ("(a, b) < (1, 5)", "range abc 9 NULL"),
        ("(8, 5, 7) <= (a, b, c)", "range abc 13 NULL"),
        ("(a, b) > (3, 5) AND (a, b) <= (4, 1)", "range abc 9 NULL"),
        ("a = 1 AND b > 7 OR a > 8", "range abc 9 NULL"),
        ("a = 1 AND (b, c) > (7, 3)", "range abc 13 NULL"),
        ("a = 1 AND (b < 2 OR b = 5 AND c > 9)", "range abc 13 NULL"),
        // What keys do not say all of is checked.
        ("a = 1 AND b > 7 AND note = 'n1' OR a > 8", "range abc 9 Using where"),
        ("(a, note) > (8, 'n1')", "range abc 4 Using where"),
        ("a > 8 OR note = 'n1'", "ALL NULL NULL Using where"),
    ] {
        assert_eq!(
            path(&mut t, &format!("SELECT * FROM t FORCE INDEX (abc) WHERE {condition}")),
            expected,
            "{condition}"
        );
        same_rows(&mut t, &format!("SELECT * FROM t WHERE {condition}"));
    }
    // A page behind the last row seen: in the order of the index, without a sort.
    let page = "SELECT id FROM t WHERE (a, b, c) > (1, 2, 521) ORDER BY a, b, c LIMIT 3";
    assert_eq!(path(&mut t, page), "range abc 13 NULL");
    t.expect(page, &["621", "721", "821"]);
    let page = "SELECT id FROM t WHERE (a, b, c) < (1, 2, 521) ORDER BY a DESC, b DESC, c DESC LIMIT 3";
    assert_eq!(path(&mut t, page), "range abc 13 Backward index scan");
    t.expect(page, &["421", "321", "221"]);
    // As a change.
    t.expect("DELETE FROM t WHERE (a, b, c) > (9, 9, 1800)", &["OK 2"]);
    t.expect("UPDATE t SET note = 'x' WHERE (a, b) > (9, 8)", &["OK 18"]);
}

#[test]
fn the_values_of_a_row_may_be_parameters() {
    let server = server();
    let mut t = server.session();
    large(&mut t);
    t.ok("PREPARE page FROM 'SELECT id FROM t WHERE (a, b, c) > (?, ?, ?) ORDER BY a, b, c LIMIT 2'");
    t.ok("PREPARE whole FROM 'SELECT COUNT(*) FROM t WHERE a = ? AND b > ? OR a > ?'");
    for (a, b, c, page) in [("1", "2", "521", ["621", "721"]), ("9", "9", "'1799'", ["1899", "1999"])] {
        t.ok(&format!("SET @a = {a}, @b = {b}, @c = {c}"));
        t.expect("EXECUTE page USING @a, @b, @c", &page);
    }
    t.ok("SET @none = NULL, @half = 7.5, @a = 8");
    t.expect("EXECUTE page USING @a, @none, @none", &["9", "109"]);
    let expected = t.run("SELECT COUNT(*) FROM t WHERE a + 0 = 8 AND b + 0 > 7.5 OR a + 0 > 8");
    assert_eq!(t.run("EXECUTE whole USING @a, @half, @a"), expected);
    assert_eq!(t.run("SELECT COUNT(*) FROM t WHERE a = 8 AND b > 7.5 OR a > 8"), expected);
    t.expect("EXECUTE whole USING @none, @half, @none", &["0"]);
}

#[test]
fn the_columns_of_another_table_bound_a_row() {
    let server = server();
    let mut t = server.session();
    large(&mut t);
    t.ok("CREATE TABLE pages (id INT PRIMARY KEY, a INT, b INT)");
    t.ok("INSERT INTO pages VALUES (1, 9, 8), (2, 9, NULL), (3, NULL, 1), (4, 0, 0)");
    let sql = "SELECT p.id, COUNT(*) FROM pages p STRAIGHT_JOIN t FORCE INDEX (abc) WHERE (t.a, t.b) > (p.a, p.b) GROUP BY p.id ORDER BY 1";
    let text = t.run(&format!("EXPLAIN {sql}"));
    assert!(text.lines().nth(1).unwrap().contains("|range|abc|abc|"), "{text}");
    let expected = t.run(&sql.replace("FORCE INDEX (abc)", "USE INDEX ()"));
    assert_eq!(t.run(sql), expected);
}

#[test]
fn alternatives_are_shown() {
    let server = server();
    let mut t = server.session();
    large(&mut t);
    let text = t.run("EXPLAIN ANALYZE SELECT * FROM t WHERE a = 1 AND (b, c) > (7, 3) AND note = 'n1'");
    assert!(text.contains("a = 1, (a = 1 and b > 7 or a = 1 and b = 7 and c > 3)"), "{text}");
}

#[test]
fn a_condition_that_reads_no_column_is_checked_on_each_row() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT, KEY (a))");
    for _ in 0..5 {
        t.ok("INSERT INTO t (a) VALUES (1), (2), (3), (1), (2), (3), (1), (2), (3), (4)");
    }
    for path in ["", "FORCE INDEX (a)"] {
        t.expect(&format!("SELECT MIN(a), MAX(a) FROM t {path} WHERE RAND() < 0"), &["NULL|NULL"]);
        t.expect(&format!("SELECT MIN(a), MAX(a) FROM t {path} WHERE RAND() > (SELECT 5)"), &["NULL|NULL"]);
        t.expect(&format!("SELECT DISTINCT a FROM t {path} WHERE RAND() < 0"), &[]);
        t.ok("SET @n = 0");
        t.expect(&format!("SELECT COUNT(DISTINCT a) FROM t {path} WHERE (@n := @n + 1) > 0"), &["4"]);
        t.expect("SELECT @n", &["50"]);
    }
}

/// Each OR stands in every branch of the one around it: taken apart again and again they would take 128 times as long at each level.
#[test]
fn ors_in_ors_are_planned_at_once() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, KEY (a, b))");
    t.ok("INSERT INTO t VALUES (1, 1, 1), (2, 0, 5), (3, 7, 7)");
    let mut condition = "(a = 1 OR a = 2 OR a = 3)".to_string();
    for _ in 0..6 {
        condition = format!("(a = 0 OR ({}{condition}))", "(a = 1 OR b = 1) AND ".repeat(7));
    }
    t.expect(&format!("SELECT id FROM t WHERE {condition}"), &["1", "2"]);
    let row = |first: &str, part: &str| format!("({first}{})", format!(", {part}").repeat(3000));
    let (left, right) = (row("a + 1 + 1 + 1 + 1 + 1 + 1", "a"), row("9", "1"));
    t.expect(&format!("SELECT id FROM t WHERE {left} < {right}"), &["1", "2"]);
}

/// A text that is compared with an ENUM or SET becomes a number, for which there is a key; a range of texts is none of numbers.
#[test]
fn members_are_found_by_keys() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, e ENUM('c', 'b', 'a'), s SET('x', 'y'), y YEAR, b BIT(9), KEY e (e), KEY s (s), KEY y (y), KEY b (b))");
    for id in 0..200 {
        let (e, s) = (["c", "b", "a"][id % 3], ["", "x", "y", "x,y"][id % 4]);
        t.ok(&format!("INSERT INTO t VALUES ({id}, '{e}', '{s}', {}, {})", 1990 + id % 40, id));
    }
    t.ok("ANALYZE TABLE t");
    for (condition, key) in
        [("s = 'x'", "s"), ("y = 99", "y"), ("y = '2001'", "y"), ("y BETWEEN 1 AND 2", "y"), ("b = b'101'", "b")]
    {
        let text = t.run(&format!("EXPLAIN SELECT * FROM t WHERE {condition}"));
        assert!(text.contains(&format!("|{key}|")) && !text.contains("|ALL|"), "{condition}: {text}");
    }
    for condition in ["e > 'b'", "e LIKE 'b%'", "s < 'y'", "e + 1 = 2"] {
        let text = t.run(&format!("EXPLAIN SELECT * FROM t WHERE {condition}"));
        assert!(text.contains("|ALL|"), "{condition}: {text}");
    }
    let counted =
        |t: &mut Test, hint: &str, condition: &str| t.run(&format!("SELECT {hint} COUNT(*) FROM t WHERE {condition}"));
    for condition in [
        "e = 'A'",
        "e IN ('a', 'C', 'x')",
        "e = 2",
        "e IN (1, 'a')",
        "s IN ('x,y', 'y,x')",
        "NOT e <=> 'b'",
        "y IN (99, 2001)",
    ] {
        let without = counted(&mut t, "/*+ NO_INDEX(t) */", condition);
        assert_eq!(counted(&mut t, "", condition), without, "{condition}");
    }
}
