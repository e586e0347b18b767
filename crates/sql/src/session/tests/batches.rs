//! Groups in batches: the answers, errors and warnings of the rows one by one, on random tables of all types.

use super::access_paths::Dice;
use super::{Server, Test, server};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, a INT, b BIGINT, u BIGINT UNSIGNED NOT NULL, y TINYINT, \
    d DECIMAL(9,2), e DECIMAL(18,4), w DECIMAL(38,10), x DECIMAL(65,20), f DOUBLE, g FLOAT, day DATE, at DATETIME(3), \
    ti TIME(2), ts TIMESTAMP(3) NULL, s VARCHAR(20) COLLATE utf8mb4_0900_ai_ci, r VARCHAR(20) COLLATE utf8mb4_bin, \
    c CHAR(5), v VARBINARY(16), l TEXT, j JSON, n ENUM('x','y','z'), m SET('p','q'), bi BIT(9), ye YEAR, KEY ka (a), KEY kd (day))";
const COLUMNS: [&str; 24] = [
    "a", "b", "u", "y", "d", "e", "w", "x", "f", "g", "day", "at", "ti", "ts", "s", "r", "c", "v", "l", "j", "n", "m",
    "bi", "ye",
];
const NUMBERS: [&str; 10] = ["a", "b", "u", "y", "d", "e", "w", "x", "f", "g"];

fn value(dice: &mut Dice, column: &str) -> String {
    if !matches!(column, "u" | "id") && dice.roll(6) == 0 {
        return "NULL".into();
    }
    let of: &[&str] = match column {
        "a" => &["-3", "0", "1", "2", "7", "2147483647", "-2147483648"],
        "b" => &["0", "1", "-1", "5", "9223372036854775807", "-9223372036854775808", "4611686018427387904"],
        "u" => &["0", "1", "2", "18446744073709551615", "9223372036854775808"],
        "y" => &["-128", "127", "0", "3"],
        "d" => &["-1.50", "0", "2.5", "9999999.99", "-9999999.99", "0.01"],
        "e" => &["99999999999999.9999", "-99999999999999.9999", "0.0001", "1", "12.5"],
        "w" => &["9999999999999999999999999999.9999999999", "-1", "0.0000000001", "3.25"],
        "x" => &["999999999999999999999999999999999999999999999.99999999999999999999", "-2.5", "0"],
        "f" => &["0", "-0.0e0", "1.5", "-2.25e300", "1e308", "0.1"],
        "g" => &["0", "1.25", "-3.5e10"],
        "day" => &["'2020-01-01'", "'1999-12-31'", "'2020-02-29'", "'2024-05-05'"],
        "at" => &["'2020-01-01 00:00:00.123'", "'1999-12-31 23:59:59'", "'2020-02-29'"],
        "ti" => &["'00:00:00'", "'-12:30:00.5'", "'800:59:59'"],
        "ts" => &["'2020-01-01 00:00:00.125'", "'2020-10-25 01:30:00'", "'1999-12-31 23:59:59'"],
        "s" | "r" | "l" => {
            &["'a'", "'A'", "'b '", "''", "'ä'", "'longer than a word'", "'LONGER than a word'", "'12'", "'1x'"]
        }
        "c" => &["'a'", "'A'", "''", "'abc'", "'7'"],
        "v" => &["''", "'a'", "X'00'", "X'0000FF'", "'longer than 7'"],
        "j" => &["'{\"a\": 1}'", "'[1, 2]'", "'3'"],
        "n" => &["'x'", "'y'", "'z'"],
        "m" => &["'p'", "'q'", "'p,q'", "''"],
        "bi" => &["0", "1", "511"],
        "ye" => &["2000", "1999", "0"],
        _ => unreachable!("no column {column}"),
    };
    dice.pick(of).into()
}

fn number(dice: &mut Dice, depth: usize) -> String {
    match dice.roll(if depth == 0 { 2 } else { 6 }) {
        0 | 1 => dice.pick(&NUMBERS).into(),
        2 => dice.pick(&["1", "2.5", "0", "-7", "1.5e0", "100.125"]).into(),
        3 => format!("(-{})", number(dice, depth - 1)),
        _ => {
            let op = dice.pick(&["+", "-", "*", "*", "+", "/"]);
            format!("({} {op} {})", number(dice, depth - 1), number(dice, depth - 1))
        }
    }
}

fn condition(dice: &mut Dice, depth: usize) -> String {
    match dice.roll(if depth == 0 { 8 } else { 12 }) {
        0 => {
            let column = dice.pick(&COLUMNS);
            format!("{column} IS {}NULL", dice.pick(&["", "NOT "]))
        }
        1 => {
            let (a, b) = (dice.pick(&NUMBERS), dice.pick(&["1.005", "0", "2.5", "-1e0", "9223372036854775808", "'2'"]));
            format!("{a} {} {b}", dice.pick(&["<", "<=", "=", "<>", ">", ">="]))
        }
        2 => {
            let column = dice.pick(&COLUMNS);
            let (low, high) = (value(dice, column), value(dice, column));
            format!("{column} {}BETWEEN {low} AND {high}", dice.pick(&["", "NOT "]))
        }
        3 => {
            let column = dice.pick(&COLUMNS);
            let items: Vec<String> = (0..1 + dice.roll(5)).map(|_| value(dice, column)).collect();
            format!("{column} {}IN ({})", dice.pick(&["", "NOT "]), items.join(", "))
        }
        4 => {
            let (a, b) = (dice.pick(&COLUMNS), dice.pick(&COLUMNS));
            format!("{a} {} {b}", dice.pick(&["<", "=", ">="]))
        }
        5 => format!("{} > {}", number(dice, 1), number(dice, 1)),
        6 => format!("{} LIKE '{}'", dice.pick(&["s", "r", "c", "l"]), dice.pick(&["a%", "%o%", "_"])),
        7 => {
            let column = dice.pick(&COLUMNS);
            format!("{} {} {column}", value(dice, column), dice.pick(&["<", "=", "<>", "<=>"]))
        }
        8 => format!("NOT ({})", condition(dice, depth - 1)),
        9 => format!("({} OR {})", condition(dice, depth - 1), condition(dice, depth - 1)),
        10 => format!("({} AND {})", condition(dice, depth - 1), condition(dice, depth - 1)),
        _ => format!("({}) IS NOT TRUE", condition(dice, depth - 1)),
    }
}

fn aggregate(dice: &mut Dice) -> String {
    match dice.roll(10) {
        0 => "COUNT(*)".into(),
        1 => format!("COUNT({})", dice.pick(&COLUMNS)),
        2 | 3 => format!("{}({})", dice.pick(&["SUM", "AVG"]), dice.pick(&NUMBERS)),
        4 | 5 => format!("{}({})", dice.pick(&["SUM", "AVG", "MIN", "COUNT"]), number(dice, 2)),
        6 | 7 => format!("{}({})", dice.pick(&["MIN", "MAX"]), dice.pick(&COLUMNS)),
        8 => format!("{}({})", dice.pick(&["SUM", "AVG", "BIT_XOR", "STDDEV"]), dice.pick(&COLUMNS)),
        _ => format!("COUNT(DISTINCT {})", dice.pick(&COLUMNS)),
    }
}

fn query(dice: &mut Dice) -> String {
    let aggregates: Vec<String> = (0..1 + dice.roll(3)).map(|_| aggregate(dice)).collect();
    let keys: Vec<String> = match dice.roll(3) {
        0 => vec![],
        _ => (0..1 + dice.roll(2))
            .map(|_| match dice.roll(5) {
                0 => number(dice, 1),
                1 => "YEAR(day)".into(),
                _ => dice.pick(&COLUMNS).into(),
            })
            .collect(),
    };
    let conditions: Vec<String> = (0..dice.roll(3)).map(|_| condition(dice, 2)).collect();
    let list: Vec<&str> = keys.iter().chain(&aggregates).map(String::as_str).collect();
    let conditions = if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) };
    let groups = if keys.is_empty() { String::new() } else { format!(" GROUP BY {}", keys.join(", ")) };
    format!("SELECT {} FROM t{conditions}{groups}", list.join(", "))
}

fn random_rows(t: &mut Test, dice: &mut Dice, ids: std::ops::Range<usize>) {
    for id in ids {
        let values: Vec<String> = COLUMNS.iter().map(|column| value(dice, column)).collect();
        t.ok(&format!("INSERT INTO t (id, {}) VALUES ({id}, {})", COLUMNS.join(", "), values.join(", ")));
    }
}

/// What a statement gives in one of the forms, with its warnings.
fn answer(t: &mut Test, batches: bool, sql: &str) -> String {
    let on = if batches { "batch_execution=on,batch_execution_cost_based=off" } else { "batch_execution=off" };
    t.ok(&format!("SET optimizer_switch = '{on}'"));
    let rows = t.run(sql);
    let warnings = t.run("SHOW WARNINGS");
    let count = t.run("SELECT @@warning_count");
    format!("{rows}\n{warnings}\n{count}")
}

fn takes_batches(t: &mut Test, sql: &str) -> bool {
    t.ok("SET optimizer_switch = 'batch_execution=on,batch_execution_cost_based=off'");
    t.run(&format!("EXPLAIN {sql}")).contains("Using batches")
}

fn compare(t: &mut Test, sql: &str) -> String {
    let (rows, batches) = (answer(t, false, sql), answer(t, true, sql));
    assert_eq!(batches, rows, "{sql}");
    rows
}

fn prepare(server: &Server) -> Test {
    let mut t = server.session();
    t.ok("SET sql_mode = 'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO'");
    t.ok(TABLE);
    t
}

#[test]
fn random_queries_are_the_same_in_both_forms() {
    let server = server();
    let mut t = prepare(&server);
    let (mut batches, mut failed, mut warned) = (0, 0, 0);
    for seed in 1..=3 {
        let mut dice = Dice(seed * 77);
        t.ok("DELETE FROM t");
        random_rows(&mut t, &mut dice, 0..[40, 150, 400][seed as usize - 1]);
        for round in 0..250 {
            let sql = query(&mut dice);
            t.ok(&format!("SET time_zone = '{}'", if round % 2 == 0 { "+00:00" } else { "Europe/Berlin" }));
            let answer = compare(&mut t, &sql);
            batches += usize::from(takes_batches(&mut t, &sql));
            failed += usize::from(answer.contains("ERROR"));
            warned += usize::from(answer.contains("Warning|"));
        }
    }
    assert!(batches > 600 && failed > 20 && warned > 20, "{batches} in batches, {failed} failed, {warned} warned");
}

/// Rows of before ADD COLUMN and DROP COLUMN lie beside others.
#[test]
fn rows_of_older_layouts_are_read() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE o (id INT PRIMARY KEY, a INT, gone VARCHAR(9), d DECIMAL(9,2))");
    for id in 0..100 {
        t.ok(&format!("INSERT INTO o VALUES ({id}, {}, 'x{id}', {id}.25)", id % 7));
    }
    t.ok("ALTER TABLE o ADD COLUMN n INT NOT NULL DEFAULT 5, ADD COLUMN w VARCHAR(9) DEFAULT 'old', ADD COLUMN q DECIMAL(20,3)");
    for id in 100..150 {
        t.ok(&format!("INSERT INTO o VALUES ({id}, {}, 'y', 1.5, {id}, 'new', 2.125)", id % 7));
    }
    t.ok("ALTER TABLE o DROP COLUMN gone, ADD COLUMN day DATE DEFAULT '2024-01-02'");
    t.ok("UPDATE o SET q = 1.5 WHERE id < 10");
    t.ok("SET optimizer_switch = 'batch_execution_cost_based=off'");
    t.expect(
        "SELECT COUNT(*), SUM(n), MIN(w), MAX(day), SUM(q), COUNT(q) FROM o",
        &["150|6725|new|2024-01-02|121.250|60"],
    );
    for sql in [
        "SELECT a, COUNT(*), SUM(d), SUM(n), SUM(q) FROM o GROUP BY a",
        "SELECT w, n, COUNT(*) FROM o WHERE day = '2024-01-02' GROUP BY w, n",
        "SELECT COUNT(*), SUM(a * n + d) FROM o WHERE n > 4 AND w IN ('old', 'x')",
    ] {
        compare(&mut t, sql);
        assert!(takes_batches(&mut t, sql), "{sql}");
    }
}

/// The error and the warnings are those of the first row that has them, by the conditions before it.
#[test]
fn errors_and_warnings_stand_where_rows_one_by_one_have_them() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE e (id INT PRIMARY KEY, b BIGINT, u INT UNSIGNED, s VARCHAR(9))");
    for id in 0..300 {
        let b = if id == 250 { "9223372036854775807" } else { "1" };
        t.ok(&format!("INSERT INTO e VALUES ({id}, {b}, {}, '{}')", id % 5, if id % 90 == 7 { "x" } else { "1" }));
    }
    let all = "SELECT SUM(b + 1) FROM e";
    let failed = compare(&mut t, all);
    assert!(failed.contains("ERROR 1690") && failed.contains("BIGINT value is out of range in"), "{failed}");
    // The row is dropped before.
    assert!(compare(&mut t, "SELECT SUM(b + 1) FROM e WHERE b < 5").starts_with("598"));
    assert!(compare(&mut t, "SELECT SUM(u - 1) FROM e WHERE u > 0").starts_with("360"));
    assert!(compare(&mut t, "SELECT SUM(u - 1) FROM e").contains("ERROR 1690: BIGINT UNSIGNED"));
    t.ok("SET sql_mode = 'NO_UNSIGNED_SUBTRACTION'");
    assert!(compare(&mut t, "SELECT SUM(u - 1) FROM e").starts_with("300"));
    t.ok("SET sql_mode = ''");
    // One warning a row, in the order of the rows; the second condition is not asked for rows that the first drops.
    let warned = compare(&mut t, "SELECT COUNT(*) FROM e WHERE id <> 97 AND s + 0 = 0");
    assert_eq!(warned.matches("Truncated incorrect DOUBLE value: 'x'").count(), 3, "{warned}");
    t.ok("SET max_error_count = 2");
    assert!(compare(&mut t, "SELECT SUM(s) FROM e WHERE s + 0 < 2").ends_with("\n4"));
    t.ok("SET max_error_count = 64");
    // A warning, and an error behind it, at other rows of one batch.
    compare(&mut t, "SELECT SUM(b + 1), COUNT(*) FROM e WHERE s + 0 < 2");
    compare(&mut t, "SELECT COUNT(*) FROM e WHERE s + 0 < 2 AND b + 1 > 0");
    // What has effects is done for each row in its turn.
    let sql = "SELECT SUM(@n := @n + 1) FROM e WHERE id < 10";
    t.ok("SET @n = 0");
    assert!(!takes_batches(&mut t, sql));
    assert!(takes_batches(&mut t, all));
}

/// A scan in batches sees one state, waits for commits that are being decided, and reads old versions, as any scan does.
#[test]
fn sums_stay_while_others_move_amounts() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE m (id INT PRIMARY KEY, amount BIGINT, kind INT, note VARCHAR(40))");
    for id in 0..600 {
        t.ok(&format!("INSERT INTO m VALUES ({id}, 100, {}, 'n')", id % 3));
    }
    t.ok("SET optimizer_switch = 'batch_execution_cost_based=off'");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for mover in 0..2 {
            let mut other = server.session();
            let stop = &stop;
            scope.spawn(move || {
                let mut dice = Dice(mover + 5);
                while !stop.load(Relaxed) {
                    let (from, to) = (dice.roll(600), dice.roll(600));
                    other.run("BEGIN");
                    let first = other.run(&format!("UPDATE m SET amount = amount - 7 WHERE id = {from}"));
                    let note = "x".repeat(dice.roll(40));
                    let second =
                        other.run(&format!("UPDATE m SET amount = amount + 7, note = '{note}' WHERE id = {to}"));
                    let failed = first.starts_with("ERROR") || second.starts_with("ERROR");
                    other.run(if failed || dice.roll(4) == 0 { "ROLLBACK" } else { "COMMIT" });
                }
            });
        }
        struct SetAtEnd<'a>(&'a AtomicBool);
        impl Drop for SetAtEnd<'_> {
            fn drop(&mut self) {
                self.0.store(true, Relaxed);
            }
        }
        let _end = SetAtEnd(&stop);
        for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
            t.ok(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"));
            for _ in 0..25 {
                let got = t.run("SELECT SUM(amount), COUNT(*), COUNT(note) FROM m");
                assert!(
                    got == "60000|600|600" || level == "SERIALIZABLE" && got.starts_with("ERROR"),
                    "{level}: {got}"
                );
            }
            t.ok("BEGIN");
            let first = t.run("SELECT kind, SUM(amount), MIN(amount) FROM m GROUP BY kind");
            for _ in 0..5 {
                let again = t.run("SELECT kind, SUM(amount), MIN(amount) FROM m GROUP BY kind");
                assert!(level == "READ COMMITTED" || first.starts_with("ERROR") || again == first, "{level}: {again}");
            }
            t.ok("ROLLBACK");
        }
        // Its own changes are a part of what a transaction sees.
        t.ok("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
        t.ok("BEGIN");
        t.ok("INSERT INTO m VALUES (1000, 5, 9, NULL)");
        t.expect("SELECT SUM(amount), COUNT(*), COUNT(note) FROM m WHERE kind = 9", &["5|1|0"]);
        t.ok("ROLLBACK");
    });
}

#[test]
fn room_counts_in_the_statements_memory_and_a_kill_is_heard() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE big (id INT PRIMARY KEY, w VARCHAR(4000), s VARCHAR(20))");
    let row = "y".repeat(4000);
    for chunk in 0..20 {
        let rows: Vec<String> = (0..100).map(|n| format!("({}, '{row}', 's{n}')", chunk * 100 + n)).collect();
        t.ok(&format!("INSERT INTO big VALUES {}", rows.join(",")));
    }
    t.ok("SET optimizer_switch = 'batch_execution_cost_based=off'");
    let sql = "SELECT COUNT(*), MAX(w) = MIN(w) FROM big WHERE w <> 'z'";
    t.expect(sql, &["2000|1"]);
    t.ok("SET SESSION rauk_query_memory_limit = 1048576");
    t.code(sql, 1038);
    t.ok("SET SESSION rauk_query_memory_limit = DEFAULT");
    // A few seconds, if nobody ends it.
    let slow = "SELECT COUNT(*) FROM big WHERE SHA2(REPEAT(w, 200), 512) <> ''";
    t.ok("SET max_execution_time = 50");
    let began = std::time::Instant::now();
    t.code(slow, 3024);
    assert!(began.elapsed() < std::time::Duration::from_secs(5), "{:?}", began.elapsed());
}

/// Plans take batches where many rows are expected, and say so; keys, joins and what locks do not.
#[test]
fn plans_choose_batches_for_many_rows() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE p (id INT PRIMARY KEY, a INT, b INT, KEY ka (a))");
    for chunk in 0..6 {
        let rows: Vec<String> = (0..200).map(|n| format!("({0}, {0} % 600, {1})", chunk * 200 + n, n % 3)).collect();
        t.ok(&format!("INSERT INTO p VALUES {}", rows.join(",")));
    }
    t.ok("ANALYZE TABLE p");
    let chosen = |t: &mut Test, sql: &str| t.run(&format!("EXPLAIN {sql}")).contains("Using batches");
    for sql in [
        "SELECT SUM(b) FROM p",
        "SELECT b, COUNT(*) FROM p WHERE a > 3 GROUP BY b",
        "SELECT COUNT(*) FROM p WHERE b = 1",
    ] {
        assert!(chosen(&mut t, sql), "{sql}");
    }
    for sql in [
        "SELECT SUM(b) FROM p WHERE id BETWEEN 10 AND 60",
        "SELECT SUM(b) FROM p WHERE a = 5",
        "SELECT MAX(a) FROM p",
        "SELECT SUM(b) FROM p FOR UPDATE",
        "SELECT SUM(x.b) FROM p x JOIN p y ON x.id = y.a",
        "SELECT b, COUNT(*) FROM p GROUP BY b WITH ROLLUP",
        "SELECT SUM(RAND()) FROM p",
        "SELECT * FROM p WHERE b = 1",
    ] {
        assert!(!chosen(&mut t, sql), "{sql}");
    }
    t.ok("SET optimizer_switch = 'batch_execution=off'");
    assert!(!chosen(&mut t, "SELECT SUM(b) FROM p"));
    t.ok("SET optimizer_switch = 'batch_execution=on,batch_execution_cost_based=off'");
    assert!(chosen(&mut t, "SELECT SUM(b) FROM p WHERE id BETWEEN 10 AND 60"));
}
