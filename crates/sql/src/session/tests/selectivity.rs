//! What conditions leave of a table in a join, by its statistics, and what the order of the join makes of it.

use super::{Test, server};

const ROWS: usize = 2000;

/// `t`: a number of each row, four colours, days of two years, every fifth note NULL; `u`: as many rows that belong to them.
fn tables(t: &mut Test) {
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, n INT NOT NULL, colour VARCHAR(9) NOT NULL, day DATE NOT NULL, \
          cents DECIMAL(9,2), note VARCHAR(20))");
    t.ok("CREATE TABLE u (id INT PRIMARY KEY, t INT NOT NULL, size INT NOT NULL, KEY (t))");
    t.ok("CREATE TABLE one (x INT)");
    t.ok("INSERT INTO one VALUES (1)");
    let colours = ["red", "green", "blue", "grey"];
    for from in (0..ROWS).step_by(500) {
        let row = |row: usize| {
            let note = if row.is_multiple_of(5) { "NULL".to_string() } else { format!("'note {row}'") };
            let day = format!("'1995-01-01' + INTERVAL {} DAY", row * 730 / ROWS);
            format!("({row}, {row}, '{}', {day}, {row} / 100, {note})", colours[row % 4])
        };
        t.ok(&format!("INSERT INTO t VALUES {}", (from..from + 500).map(row).collect::<Vec<_>>().join(", ")));
        let row = |row: usize| format!("({row}, {row}, {})", row % 10);
        t.ok(&format!("INSERT INTO u VALUES {}", (from..from + 500).map(row).collect::<Vec<_>>().join(", ")));
    }
}

/// The part of `t` that a condition is thought to leave.
fn left(t: &mut Test, condition: &str) -> f64 {
    let text = t.run(&format!("EXPLAIN SELECT 1 FROM t STRAIGHT_JOIN one WHERE {condition}"));
    let first = text.lines().next().unwrap_or_default();
    let cells: Vec<&str> = first.split('|').collect();
    assert_eq!(cells.get(2), Some(&"t"), "{condition}: {text}");
    let (rows, filtered): (f64, f64) = (cells[9].parse().unwrap(), cells[10].parse().unwrap());
    rows * filtered / 100.0 / ROWS as f64
}

#[test]
fn each_condition_leaves_its_part() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    t.ok("ANALYZE TABLE t, u");
    for (condition, expected) in [
        ("colour = 'red'", 0.25),
        ("colour <=> 'red'", 0.25),
        ("colour <> 'red'", 0.75),
        ("NOT colour = 'red'", 0.75),
        ("colour IN ('red', 'blue')", 0.5),
        ("colour NOT IN ('red', 'blue')", 0.5),
        ("colour = 'red' OR colour = 'blue'", 0.44),
        ("(colour = 'red') IS NOT TRUE", 0.75),
        ("colour = 'red' AND note IS NOT NULL", 0.2),
        ("note IS NULL", 0.2),
        ("note IS NOT NULL", 0.8),
        ("note LIKE '%x%'", 0.1),
        ("note NOT LIKE '%x%'", 0.7),
        ("note <> 'note 7'", 0.8),
        ("n < 500", 0.25),
        ("500 > n", 0.25),
        ("n >= 500", 0.75),
        ("n BETWEEN 500 AND 999", 0.25),
        ("n NOT BETWEEN 500 AND 999", 0.75),
        ("n >= 500 AND n < 1000", 0.25),
        ("n > 500 AND n < 100", 0.0),
        ("n > 100000", 0.0),
        ("cents < 5.00", 0.25),
        ("day >= DATE '1996-01-01'", 0.5),
        ("day < '1996-01-01'", 0.5),
        ("day >= '1995-07-01' AND day < '1995-07-01' + INTERVAL 1 YEAR", 0.5),
        ("(n, colour) IN ((1, 'red'), (2, 'blue'))", 0.0),
        ("n = id", 0.0),
        ("n <> id", 1.0),
        ("LENGTH(note) = 7", 0.3),
    ] {
        let got = left(&mut t, condition);
        assert!((got - expected).abs() < 0.02, "{condition}: {got} for {expected}");
    }
}

#[test]
fn without_statistics_there_are_guesses() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, n INT, note VARCHAR(20))");
    t.ok("CREATE TABLE one (x INT)");
    let rows: Vec<String> = (0..ROWS / 4).map(|row| format!("({row}, {row}, 'x')")).collect();
    t.ok(&format!("INSERT INTO t VALUES {}", rows.join(", ")));
    for (condition, expected) in [
        ("n = 3", 0.1),
        ("n <> 3", 0.8),
        ("n IS NULL", 0.1),
        ("n > 3", 0.33),
        ("n BETWEEN 3 AND 7", 0.1),
        ("note LIKE 'x%'", 0.1),
        ("note NOT REGEXP 'x'", 0.8),
    ] {
        let got = left(&mut t, condition) * 4.0;
        assert!((got - expected).abs() < 0.02, "{condition}: {got} for {expected}");
    }
    // Deep and long conditions are guessed in bounded time.
    let deep = format!("{}n = 1{}", "NOT (".repeat(60), ")".repeat(60));
    assert!(left(&mut t, &deep) > 0.0);
    let long = vec!["n = 1"; 500].join(" OR ");
    assert!(left(&mut t, &long) > 0.0);
}

#[test]
fn the_table_with_the_more_selective_condition_is_read_first() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    t.ok("ANALYZE TABLE t, u");
    // Each table finds the other one by a key; u has a condition that leaves a tenth.
    for (condition, first) in [
        ("colour <> 'red'", "u"),
        ("note IS NOT NULL", "u"),
        ("note NOT LIKE 'a%'", "u"),
        ("colour NOT IN ('red', 'blue')", "u"),
        ("day >= '1995-03-01'", "u"),
        ("n BETWEEN 100 AND 110", "t"),
        ("day < '1995-01-08'", "t"),
        ("colour = 'red' AND n < 80", "t"),
        ("note = 'note 7'", "t"),
    ] {
        let from = ["t JOIN u ON u.t = t.id", "u JOIN t ON u.t = t.id"];
        let answers: Vec<String> = from
            .iter()
            .map(|from| {
                let sql = format!("SELECT COUNT(*), SUM(n) FROM {from} WHERE size = 3 AND {condition}");
                let plan = t.run(&format!("EXPLAIN {sql}"));
                assert_eq!(plan.split('|').nth(2), Some(first), "{condition}: {plan}");
                t.run(&sql)
            })
            .collect();
        assert_eq!(answers[0], answers[1], "{condition}");
    }
}

/// The tables of EXPLAIN in their order.
fn order(t: &mut Test, sql: &str) -> String {
    let text = t.run(&format!("EXPLAIN {sql}"));
    let table = |line: &str| line.split('|').nth(2).unwrap_or_default().to_string();
    text.lines().map(table).collect::<Vec<String>>().join(" ")
}

#[test]
fn equal_columns_join_tables_that_have_no_condition_together() {
    let server = server();
    let mut t = server.session();
    for table in ["a", "b", "c"] {
        t.ok(&format!("CREATE TABLE {table} (id INT PRIMARY KEY, x INT NOT NULL, KEY (x))"));
        for from in (0..ROWS).step_by(500) {
            let rows: Vec<String> = (from..from + 500).map(|row| format!("({row}, {})", row / 2)).collect();
            t.ok(&format!("INSERT INTO {table} VALUES {}", rows.join(", ")));
        }
    }
    t.ok("ANALYZE TABLE a, b, c");
    // a and c have no condition together, but the hint has them together at the beginning.
    let sql = "SELECT /*+ JOIN_ORDER(a, c, b) */ COUNT(*), SUM(a.id + b.id + c.id) FROM a JOIN b ON a.x = b.x \
               JOIN c ON b.x = c.x WHERE a.id < 10";
    let plan = t.run(&format!("EXPLAIN {sql}"));
    let refs: Vec<&str> = plan.lines().map(|line| line.split('|').nth(8).unwrap_or_default()).collect();
    assert_eq!(refs[1], "test.a.x", "{plan}");
    t.expect(sql, &["40|540"]);
    // Each equality is checked once, however many there are.
    let sql = "SELECT COUNT(*) FROM a JOIN b ON a.x = b.x JOIN c ON b.x = c.x AND a.x = c.x WHERE a.id < 10";
    t.expect(sql, &["40"]);
    let json = t.run(&format!("EXPLAIN FORMAT=JSON {sql}"));
    assert_eq!(json.matches("`x` = ").count(), 0, "{json}");
    // Without indexes, by hash; and where one table has two columns of the class.
    for table in ["a", "b", "c"] {
        t.ok(&format!("ALTER TABLE {table} DROP INDEX x"));
    }
    t.expect(sql, &["40"]);
    let sql = "SELECT COUNT(*) FROM a JOIN b ON a.x = b.x JOIN c ON c.x = b.x AND c.id = a.x";
    t.expect(sql, &["4"]);
    // Numbers and texts that are equal say nothing of others.
    t.ok("CREATE TABLE s (v VARCHAR(5) NOT NULL)");
    t.ok("INSERT INTO s VALUES ('1'), ('01'), ('1.0')");
    t.expect("SELECT COUNT(*) FROM s s1 JOIN a ON a.id = s1.v JOIN s s2 ON a.id = s2.v", &["9"]);
    t.expect("SELECT COUNT(*) FROM s s1 JOIN a ON a.id = s1.v JOIN s s2 ON a.id = s2.v AND s1.v = s2.v", &["3"]);
    t.ok("CREATE TABLE ci (v VARCHAR(5) COLLATE utf8mb4_general_ci NOT NULL)");
    t.ok("CREATE TABLE cs (v VARCHAR(5) COLLATE utf8mb4_bin NOT NULL)");
    t.ok("INSERT INTO ci VALUES ('a'), ('A')");
    t.ok("INSERT INTO cs VALUES ('a'), ('A')");
    let sql = "SELECT COUNT(*) FROM ci x JOIN ci y ON x.v = y.v JOIN cs z ON y.v = z.v JOIN cs w ON w.v = z.v";
    t.expect(sql, &["4"]);
}

#[test]
fn semi_joins_and_subqueries_wait_for_cheaper_conditions() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    t.ok("CREATE TABLE v (t INT NOT NULL, part INT NOT NULL, size INT NOT NULL, PRIMARY KEY (t, part))");
    for from in (0..ROWS).step_by(500) {
        let row =
            |row: usize| (0..4).map(|part| format!("({row}, {part}, {})", row % 7)).collect::<Vec<_>>().join(", ");
        t.ok(&format!("INSERT INTO v VALUES {}", (from..from + 500).map(row).collect::<Vec<_>>().join(", ")));
    }
    t.ok("ANALYZE TABLE t, u, v");
    let from = "FROM u STRAIGHT_JOIN t ON t.id = u.t";
    // A key read that leaves a quarter comes before a range of four rows.
    let exists = "EXISTS (SELECT 1 FROM v WHERE v.t = u.t AND v.size <> u.size)";
    let sql = format!("SELECT COUNT(*) {from} WHERE colour = 'red' AND {exists}");
    assert_eq!(order(&mut t, &sql), "u t v");
    t.expect(&sql, &["442"]);
    let sql = format!("SELECT COUNT(*) {from} WHERE colour = 'red' AND NOT {exists}");
    assert_eq!(order(&mut t, &sql), "u t v");
    t.expect(&sql, &["58"]);
    // A table that drops nothing comes after it.
    let sql = format!("SELECT COUNT(*) {from} WHERE {exists}");
    assert_eq!(order(&mut t, &sql), "u v t");
    // A subquery that is run for each row is run for the rows that are left: for others it has several rows.
    let scalar = "u.size > (SELECT size - 1 FROM v WHERE v.t = u.t AND (part = 0 OR v.t >= 20))";
    t.expect(&format!("SELECT COUNT(*) {from} WHERE {scalar} AND n < 20"), &["16"]);
    t.code(&format!("SELECT COUNT(*) {from} WHERE {scalar} AND n < 30"), 1242);
}
