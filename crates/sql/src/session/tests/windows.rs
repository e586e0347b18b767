//! Window functions: random tables against a slow evaluation that shares nothing with the real one, plans, limits.

use super::{Test, server};

/// A row: its number, partition, order, value. `None` is NULL.
#[derive(Clone, Copy, Debug)]
struct Row {
    id: i64,
    p: Option<i64>,
    o: Option<i64>,
    x: Option<i64>,
}

/// Numbers that repeat from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    fn value(&mut self, most: u64) -> Option<i64> {
        (self.below(5) > 0).then(|| self.below(most) as i64)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    First,
    Before(i64),
    Current,
    Behind(i64),
    Last,
}

impl Bound {
    fn text(self, unit: &str) -> String {
        match self {
            Bound::First => "UNBOUNDED PRECEDING".into(),
            Bound::Before(n) if unit.is_empty() => format!("{n} PRECEDING"),
            Bound::Before(n) => format!("INTERVAL {n} {unit} PRECEDING"),
            Bound::Current => "CURRENT ROW".into(),
            Bound::Behind(n) if unit.is_empty() => format!("{n} FOLLOWING"),
            Bound::Behind(n) => format!("INTERVAL {n} {unit} FOLLOWING"),
            Bound::Last => "UNBOUNDED FOLLOWING".into(),
        }
    }
}

/// All frames that MySQL takes, of bounds with a few distances.
fn frames() -> Vec<(Bound, Bound)> {
    use Bound::{Before, Behind, Current, First, Last};
    let mut list = Vec::new();
    for start in [First, Before(3), Before(1), Before(0), Current, Behind(1), Behind(2)] {
        for end in [Before(2), Before(1), Current, Behind(0), Behind(1), Behind(4), Last] {
            let legal = !matches!((start, end), (Current | Behind(_), Before(_)) | (Behind(_), Current));
            if legal {
                list.push((start, end));
            }
        }
    }
    list
}

/// Whether `candidate` is in the frame of `row`, by the definition of SQL. Both are positions among the sorted rows of the partition.
fn in_frame(rows: &[Row], row: usize, candidate: usize, range: bool, descending: bool, frame: (Bound, Bound)) -> bool {
    if !range {
        let distance = candidate as i64 - row as i64;
        let not_before = match frame.0 {
            Bound::First => true,
            Bound::Before(n) => distance >= -n,
            Bound::Current => distance >= 0,
            Bound::Behind(n) => distance >= n,
            Bound::Last => false,
        };
        let not_behind = match frame.1 {
            Bound::First => false,
            Bound::Before(n) => distance <= -n,
            Bound::Current => distance <= 0,
            Bound::Behind(n) => distance <= n,
            Bound::Last => true,
        };
        return not_before && not_behind;
    }
    // The order as a number that grows; NULL lies at one end, infinitely far, and no distance from it but none.
    let place = |row: usize| match (rows[row].o, descending) {
        (Some(o), false) => o,
        (Some(o), true) => -o,
        (None, false) => i64::MIN / 2,
        (None, true) => i64::MAX / 2,
    };
    let shift = |n: i64| if rows[row].o.is_none() { 0 } else { n };
    let (own, other) = (place(row), place(candidate));
    let not_before = match frame.0 {
        Bound::First => true,
        Bound::Before(n) => other >= own - shift(n),
        Bound::Current => other >= own,
        Bound::Behind(n) => other >= own + shift(n),
        Bound::Last => false,
    };
    let not_behind = match frame.1 {
        Bound::First => false,
        Bound::Before(n) => other <= own - shift(n),
        Bound::Current => other <= own,
        Bound::Behind(n) => other <= own + shift(n),
        Bound::Last => true,
    };
    not_before && not_behind
}

fn shown(value: Option<i64>) -> String {
    value.map_or("NULL".into(), |value| value.to_string())
}

/// The functions over frames, each with its value for the rows of a frame.
type OverFrame = (&'static str, fn(&[Row]) -> String);

fn over_frames() -> Vec<OverFrame> {
    fn values(rows: &[Row]) -> Vec<i64> {
        rows.iter().filter_map(|row| row.x).collect()
    }
    fn average(rows: &[Row]) -> String {
        let values = values(rows);
        if values.is_empty() {
            return "NULL".into();
        }
        let (sum, count) = (values.iter().sum::<i64>(), values.len() as i64);
        // Four digits, halves away from zero.
        let scaled = (sum.abs() * 10_000 * 2 + count) / (count * 2);
        let sign = if sum < 0 && scaled > 0 { "-" } else { "" };
        format!("{sign}{}.{:04}", scaled / 10_000, scaled % 10_000)
    }
    fn document(rows: &[Row]) -> String {
        let items: Vec<String> = rows.iter().map(|row| shown(row.x).replace("NULL", "null")).collect();
        if items.is_empty() { "NULL".into() } else { format!("[{}]", items.join(", ")) }
    }
    fn deviation(rows: &[Row]) -> String {
        let values: Vec<f64> = values(rows).into_iter().map(|value| value as f64).collect();
        if values.is_empty() {
            return "NULL".into();
        }
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>();
        format!("{:.6}", (squares / values.len() as f64).sqrt())
    }
    vec![
        ("COUNT(*)", |rows| rows.len().to_string()),
        ("COUNT(x)", |rows| values(rows).len().to_string()),
        ("SUM(x)", |rows| shown(values(rows).into_iter().reduce(|a, b| a + b))),
        ("SUM(CAST(x AS DOUBLE))", |rows| shown(values(rows).into_iter().reduce(|a, b| a + b))),
        ("AVG(x)", average),
        ("MIN(x)", |rows| shown(values(rows).into_iter().min())),
        ("MAX(x)", |rows| shown(values(rows).into_iter().max())),
        ("MIN(CONCAT('v', 100 + x))", |rows| {
            values(rows).into_iter().map(|x| format!("v{}", 100 + x)).min().unwrap_or("NULL".into())
        }),
        ("BIT_AND(x)", |rows| values(rows).into_iter().fold(u64::MAX, |a, b| a & b as u64).to_string()),
        ("BIT_OR(x)", |rows| values(rows).into_iter().fold(0, |a, b| a | b as u64).to_string()),
        ("BIT_XOR(x)", |rows| values(rows).into_iter().fold(0, |a, b| a ^ b as u64).to_string()),
        ("FORMAT(STDDEV_POP(x), 6)", deviation),
        ("JSON_ARRAYAGG(x)", document),
        ("FIRST_VALUE(x)", |rows| shown(rows.first().and_then(|row| row.x))),
        ("LAST_VALUE(x)", |rows| shown(rows.last().and_then(|row| row.x))),
        ("NTH_VALUE(x, 2)", |rows| shown(rows.get(1).and_then(|row| row.x))),
    ]
}

/// The call with its window: the parts of it that are no call stay around it.
fn over(function: &str, window: &str) -> String {
    match function.strip_prefix("FORMAT(") {
        Some(inner) => {
            let (call, rest) = inner.split_once("), ").expect("a number of digits follows");
            format!("FORMAT({call}) OVER {window}, {rest}")
        }
        None => format!("{function} OVER {window}"),
    }
}

fn random_table(t: &mut Test, name: &str, rows: u64, dice: &mut Dice) -> Vec<Row> {
    t.ok(&format!("CREATE TABLE {name} (id INT PRIMARY KEY, p INT, o INT, x INT, d DATE, m DECIMAL(10,2), f DOUBLE)"));
    let mut list = Vec::new();
    for id in 0..rows as i64 {
        let row = Row { id, p: dice.value(3), o: dice.value(8), x: dice.value(40) };
        let day = row.o.map_or("NULL".into(), |o| format!("'2024-02-2{o}' + INTERVAL 4 DAY"));
        let [p, o, x] = [row.p, row.o, row.x].map(shown);
        t.ok(&format!("INSERT INTO {name} VALUES ({id}, {p}, {o}, {x}, {day}, {o}, {o})"));
        list.push(row);
    }
    list
}

/// The value of a function for a row of a sorted partition.
type OfPartition = Box<dyn Fn(&[Row], usize) -> String>;

/// The partitions, each in the order of `o` and then of the number. NULL comes first, or last when the order descends.
fn partitions(rows: &[Row], descending: bool) -> Vec<Vec<Row>> {
    let mut sorted = rows.to_vec();
    sorted.sort_by(|a, b| {
        let order = a.o.cmp(&b.o);
        a.p.cmp(&b.p).then(if descending { order.reverse() } else { order }).then(a.id.cmp(&b.id))
    });
    sorted.chunk_by(|a, b| a.p == b.p).map(<[Row]>::to_vec).collect()
}

#[track_caller]
fn check(t: &mut Test, sql: &str, mut expected: Vec<(i64, String)>) {
    expected.sort();
    let lines: Vec<String> = expected.into_iter().map(|(id, value)| format!("{id}|{value}")).collect();
    let got = t.run(sql);
    let got: Vec<&str> = got.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(got, lines, "{sql}");
}

/// Every function over every frame of ROWS and RANGE; keys are integers, decimals, doubles and dates.
#[test]
fn functions_over_frames_agree_with_the_definition() {
    let server = server();
    let mut t = server.session();
    for seed in 0..3 {
        let mut dice = Dice(seed);
        let table = format!("t{seed}");
        let rows = random_table(&mut t, &table, 6 + seed * 9, &mut dice);
        for (number, (function, value)) in over_frames().into_iter().enumerate() {
            for (at, frame) in frames().into_iter().enumerate() {
                // Each function meets each frame; which order and unit it has is drawn.
                let (range, descending) = (dice.below(2) == 0, dice.below(2) == 0);
                if (at + number) % 3 != seed as usize % 3 {
                    continue;
                }
                let direction = if descending { " DESC" } else { "" };
                let (key, unit) = match (range, dice.below(4)) {
                    (false, _) | (true, 0) => ("o", ""),
                    (true, 1) => ("m", ""),
                    (true, 2) => ("f", ""),
                    (true, _) => ("d", "DAY"),
                };
                // Rows that tie are told apart where the result depends on it.
                let ties = if range { "" } else { ", id" };
                let kind = if range { "RANGE" } else { "ROWS" };
                let (start, end) = (frame.0.text(unit), frame.1.text(unit));
                let window =
                    format!("(PARTITION BY p ORDER BY {key}{direction}{ties} {kind} BETWEEN {start} AND {end})");
                let first_or_last = ["FIRST", "LAST", "NTH", "JSON"].iter().any(|name| function.starts_with(name));
                if range && first_or_last {
                    continue;
                }
                let mut expected = Vec::new();
                for partition in partitions(&rows, descending) {
                    for at in 0..partition.len() {
                        let inside: Vec<Row> = (0..partition.len())
                            .filter(|other| in_frame(&partition, at, *other, range, descending, frame))
                            .map(|other| partition[other])
                            .collect();
                        expected.push((partition[at].id, value(&inside)));
                    }
                }
                let call = over(function, &window);
                check(&mut t, &format!("SELECT id, {call} FROM {table} ORDER BY id"), expected);
            }
        }
    }
}

#[test]
fn functions_over_partitions_agree_with_the_definition() {
    let server = server();
    let mut t = server.session();
    for seed in 10..14 {
        let mut dice = Dice(seed);
        let table = format!("t{seed}");
        let rows = random_table(&mut t, &table, dice.below(30), &mut dice);
        for descending in [false, true] {
            let direction = if descending { " DESC" } else { "" };
            let peers = format!("(PARTITION BY p ORDER BY o{direction})");
            let total = format!("(PARTITION BY p ORDER BY o{direction}, id)");
            let mut functions: Vec<(String, OfPartition)> = vec![
                (format!("ROW_NUMBER() OVER {total}"), Box::new(|_, at| (at + 1).to_string())),
                (
                    format!("RANK() OVER {peers}"),
                    Box::new(|rows, at| (rows.iter().position(|row| row.o == rows[at].o).unwrap() + 1).to_string()),
                ),
                (
                    format!("DENSE_RANK() OVER {peers}"),
                    Box::new(|rows, at| rows[..=at].chunk_by(|a, b| a.o == b.o).count().to_string()),
                ),
                (
                    format!("FORMAT(PERCENT_RANK() OVER {peers}, 9)"),
                    Box::new(|rows, at| {
                        let before = rows.iter().position(|row| row.o == rows[at].o).unwrap();
                        format!("{:.9}", before as f64 / (rows.len().max(2) - 1) as f64)
                    }),
                ),
                (
                    format!("FORMAT(CUME_DIST() OVER {peers}, 9)"),
                    Box::new(|rows, at| {
                        let last = rows.iter().rposition(|row| row.o == rows[at].o).unwrap();
                        format!("{:.9}", (last + 1) as f64 / rows.len() as f64)
                    }),
                ),
            ];
            for buckets in [1, 2, 3, 7, 100] {
                functions.push((
                    format!("NTILE({buckets}) OVER {total}"),
                    Box::new(move |rows, at| {
                        // Rows go into the buckets one after the other, the first ones taking one more.
                        let (each, more) = (rows.len() / buckets, rows.len() % buckets);
                        let mut of = Vec::new();
                        for bucket in 0..buckets {
                            of.extend(std::iter::repeat_n(bucket + 1, each + usize::from(bucket < more)));
                        }
                        of[at].to_string()
                    }),
                ));
            }
            for offset in [0, 1, 2, 50] {
                let other = move |rows: &[Row], at: usize, back: bool| {
                    let at = if back { at.checked_sub(offset) } else { Some(at + offset) };
                    at.and_then(|at| rows.get(at).copied())
                };
                functions.push((
                    format!("LAG(x, {offset}) OVER {total}"),
                    Box::new(move |rows, at| shown(other(rows, at, true).and_then(|row| row.x))),
                ));
                functions.push((
                    format!("LEAD(x, {offset}, -id) OVER {total}"),
                    Box::new(move |rows, at| match other(rows, at, false) {
                        Some(row) => shown(row.x),
                        None => (-rows[at].id).to_string(),
                    }),
                ));
            }
            for (call, value) in &functions {
                let mut expected = Vec::new();
                for partition in partitions(&rows, descending) {
                    expected.extend((0..partition.len()).map(|at| (partition[at].id, value(&partition, at))));
                }
                check(&mut t, &format!("SELECT id, {call} FROM {table} ORDER BY id"), expected);
            }
            // All at once: several stages, some of which need no sort.
            let list: Vec<&str> = functions.iter().map(|(call, _)| call.as_str()).collect();
            let mut expected = Vec::new();
            for partition in partitions(&rows, descending) {
                for at in 0..partition.len() {
                    let values: Vec<String> = functions.iter().map(|(_, value)| value(&partition, at)).collect();
                    expected.push((partition[at].id, values.join("|")));
                }
            }
            check(
                &mut t,
                &format!(
                    "SELECT id, {}, COUNT(*) OVER (ORDER BY id) * 0 AS z FROM {table} ORDER BY id",
                    list.join(", ")
                ),
                expected.into_iter().map(|(id, value)| (id, format!("{value}|0"))).collect(),
            );
        }
    }
}

/// A frame that moves costs the rows that come and go, not the rows that it has.
#[test]
fn large_frames_take_linear_time() {
    let server = server();
    let mut t = server.session();
    t.ok("SET cte_max_recursion_depth = 100000");
    let rows = 20_000;
    let numbers = format!("WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < {rows})");
    let half = rows / 2;
    for (function, last) in [
        ("SUM(i)", (half..=rows).sum::<i64>().to_string()),
        ("COUNT(i)", (half + 1).to_string()),
        ("MIN(i)", half.to_string()),
        ("MAX(rows_left)", half.to_string()),
        ("BIT_XOR(i)", (half..=rows).fold(0, |a, b| a ^ b).to_string()),
        ("AVG(i + 0.5)", "15000.50000".to_string()),
        ("FIRST_VALUE(i)", half.to_string()),
        ("SUM(i) OVER () + 0 * COUNT(i)", (rows * (rows + 1) / 2).to_string()),
    ] {
        let sql = format!(
            "{numbers} SELECT v FROM (SELECT i, {function} OVER (ORDER BY i ROWS BETWEEN {half} PRECEDING AND CURRENT ROW) AS v \
             FROM (SELECT i, {rows} - i AS rows_left FROM n) q) w WHERE i = {rows}"
        );
        t.expect(&sql, &[&last]);
    }
}

#[test]
fn windows_end_when_their_statement_has_to() {
    let server = server();
    let mut t = server.session();
    t.ok("SET cte_max_recursion_depth = 1000000");
    let numbers = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 30000)";
    // Sums of doubles are computed again for each frame.
    let slow = format!(
        "{numbers} SELECT MAX(s) FROM (SELECT STD(i) OVER (ORDER BY i ROWS BETWEEN 25000 PRECEDING AND CURRENT ROW) AS s FROM n) q"
    );
    t.ok("SET max_execution_time = 1500");
    t.code(&slow, 3024);
    t.ok("SET max_execution_time = 0");
    let interrupt = t.session.interrupter();
    let killer = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(1500));
        interrupt();
    });
    t.code(&slow, 1317);
    killer.join().unwrap();
    t.expect("SELECT ROW_NUMBER() OVER ()", &["1"]);
}

#[test]
fn windows_count_what_they_keep() {
    let server = server();
    let mut t = server.session();
    t.ok("SET cte_max_recursion_depth = 1000000");
    let numbers = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 20000)";
    // Memory for the numbers alone is too little for what waits to be sorted beside them.
    let enough = (4..40).map(|step| step * 250_000).find(|limit| {
        t.ok(&format!("SET rauk_query_memory_limit = {limit}"));
        t.run(&format!("{numbers} SELECT MAX(i) FROM n")) == "20000"
    });
    assert!(enough.is_some(), "the numbers take more than ten megabytes");
    for call in
        ["ROW_NUMBER() OVER (ORDER BY i DESC)", "LAG(i) OVER (ORDER BY i)", "MIN(i) OVER (ORDER BY i ROWS 5 PRECEDING)"]
    {
        t.code(&format!("{numbers} SELECT MAX(v) FROM (SELECT {call} AS v FROM n) q"), 1038);
    }
    t.ok("SET rauk_query_memory_limit = 50000000");
    // Several stages give back what they kept; many partitions too.
    t.expect(
        &format!(
            "{numbers} SELECT MAX(a + b + c) FROM (SELECT LAG(i, 1, 0) OVER (ORDER BY i) AS a, \
             SUM(i) OVER (PARTITION BY i % 5000 ORDER BY i) AS b, RANK() OVER (ORDER BY i DESC) AS c FROM n) q"
        ),
        &["70000"],
    );
    t.expect(
        &format!("{numbers} SELECT MAX(CHAR_LENGTH(j)) FROM (SELECT JSON_ARRAYAGG(i) OVER (ORDER BY i ROWS 9 PRECEDING) AS j FROM n) q"),
        &["70"],
    );
}

#[test]
fn windows_read_what_their_partitions_need() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, p INT, q VARCHAR(9), x INT, KEY (p))");
    t.ok("INSERT INTO t VALUES (1, 1, 'a', 5), (2, 1, 'b', 6), (3, 2, 'A', 7), (4, NULL, 'c', 8)");
    let tree = |t: &mut Test, sql: &str| t.run(&format!("EXPLAIN FORMAT=TREE {sql}"));
    let below_windows = |tree: &str| {
        let window = tree.lines().position(|line| line.trim_start().starts_with("Window")).expect("there is a window");
        tree.lines().skip(window).any(|line| line.trim_start().starts_with("Filter"))
    };
    for (windows, condition, moves) in [
        ("RANK() OVER (PARTITION BY p ORDER BY x)", "p = 1", true),
        ("RANK() OVER (PARTITION BY p ORDER BY x)", "p IS NULL", true),
        ("RANK() OVER (PARTITION BY p ORDER BY x)", "x = 5", false),
        ("RANK() OVER (PARTITION BY p ORDER BY x)", "n = 1", false),
        ("RANK() OVER (PARTITION BY p ORDER BY x)", "p = n", false),
        ("RANK() OVER (ORDER BY p)", "p = 1", false),
        ("RANK() OVER (PARTITION BY p ORDER BY x) + COUNT(*) OVER ()", "p = 1", false),
        ("RANK() OVER (PARTITION BY p ORDER BY x) + COUNT(*) OVER (PARTITION BY p, q)", "p = 1", true),
        ("RANK() OVER (PARTITION BY p ORDER BY x) + COUNT(*) OVER (PARTITION BY p, q)", "p = 1 AND q = 'a'", true),
        ("COUNT(*) OVER (PARTITION BY q)", "q = 'a'", true),
        // Values that are one partition are not one for the condition.
        ("COUNT(*) OVER (PARTITION BY q)", "q = 'a' COLLATE utf8mb4_bin", false),
        ("COUNT(*) OVER (PARTITION BY q)", "HEX(q) = '61'", false),
    ] {
        let inner = format!("SELECT id, p, q, x, {windows} AS n FROM t");
        let sql = format!("SELECT id, n FROM ({inner}) d WHERE {condition} ORDER BY id");
        let text = tree(&mut t, &sql);
        assert_eq!(below_windows(&text), moves, "{sql}\n{text}");
        t.ok("DROP TABLE IF EXISTS kept");
        t.ok("CREATE TABLE kept (id INT, p INT, q VARCHAR(9), x INT, n INT)");
        t.ok(&format!("INSERT INTO kept {inner}"));
        let kept = t.run(&format!("SELECT id, n FROM kept WHERE {condition} ORDER BY id"));
        assert_eq!(t.run(&sql), kept, "{sql}");
    }
}

#[test]
fn a_stage_sorts_only_where_no_other_has() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)");
    t.ok("INSERT INTO t VALUES (1, 2, 1), (2, 1, 2), (3, 2, 3), (4, 1, 4)");
    let extra = |t: &mut Test, sql: &str| {
        let text = t.run(&format!("EXPLAIN {sql}"));
        text.lines().next().unwrap().rsplit('|').next().unwrap().to_string()
    };
    for (sql, expected) in [
        ("SELECT ROW_NUMBER() OVER () FROM t", "Using temporary"),
        ("SELECT COUNT(*) OVER (PARTITION BY a) FROM t", "Using temporary; Using filesort"),
        ("SELECT RANK() OVER (ORDER BY a) FROM t WHERE b > 1", "Using where; Using temporary; Using filesort"),
        ("SELECT ROW_NUMBER() OVER () FROM t ORDER BY b", "Using temporary; Using filesort"),
        ("SELECT a, SUM(COUNT(*)) OVER () FROM t GROUP BY a", "Using temporary"),
    ] {
        assert_eq!(extra(&mut t, sql), expected, "{sql}");
    }
    // The same windows in any order give the same values.
    let calls = [
        "RANK() OVER (ORDER BY a)",
        "RANK() OVER (ORDER BY a, b)",
        "COUNT(*) OVER (PARTITION BY a)",
        "RANK() OVER (ORDER BY b)",
    ];
    let rows = [["3", "3", "2", "1"], ["1", "1", "2", "2"], ["3", "4", "2", "3"], ["1", "2", "2", "4"]];
    for first in 0..calls.len() {
        let order: Vec<usize> = (0..calls.len()).map(|at| (at + first) % calls.len()).collect();
        let list: Vec<&str> = order.iter().map(|&at| calls[at]).collect();
        let expected: Vec<String> =
            rows.iter().map(|row| order.iter().map(|&at| row[at]).collect::<Vec<_>>().join("|")).collect();
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        t.expect(&format!("SELECT {} FROM t ORDER BY id", list.join(", ")), &expected);
    }
}

/// A block that locks rows below its windows changes something, though its own rows come from memory.
#[test]
fn rows_below_windows_are_locked() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT)");
    t.ok("INSERT INTO t VALUES (1, 1), (2, 2)");
    let mut other = server.session();
    other.ok("SET innodb_lock_wait_timeout = 1");
    for sql in [
        "SELECT id, RANK() OVER (ORDER BY a) FROM t FOR UPDATE",
        "SELECT * FROM (SELECT * FROM t WHERE id > 0 LIMIT 9 FOR UPDATE) d",
    ] {
        t.ok("BEGIN");
        t.ok(sql);
        other.code("UPDATE t SET a = 9 WHERE id = 1", 1205);
        t.ok("ROLLBACK");
        t.ok("SET TRANSACTION READ ONLY");
        t.ok("BEGIN");
        t.ok("ROLLBACK");
    }
}

#[test]
fn parameters_count_rows() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT)");
    t.ok("INSERT INTO t VALUES (1, 10), (2, 20), (3, 30), (4, 40)");
    use rauk_types::Value;
    let id =
        t.prepare("SELECT id, SUM(a) OVER (ORDER BY id ROWS ? PRECEDING), LAG(a, ?, ?) OVER (ORDER BY id) FROM t").id;
    for (values, expected) in [
        ([Value::Int(1), Value::Int(1), Value::Int(7)], "1|10|7\n2|30|10\n3|50|20\n4|70|30"),
        ([Value::Int(0), Value::Int(2), Value::Int(-1)], "1|10|-1\n2|20|-1\n3|30|10\n4|40|20"),
        ([Value::from("2"), Value::from("3"), Value::Null], "1|10|NULL\n2|30|NULL\n3|60|NULL\n4|90|10"),
        (
            [Value::Int(-1), Value::Int(1), Value::Int(1)],
            "ERROR 3586: Window '<unnamed window>': frame start or end is negative, NULL or of non-integral type",
        ),
        ([Value::Int(1), Value::Int(-1), Value::Int(1)], "ERROR 1210: Incorrect arguments to lag"),
        ([Value::Int(1), Value::Null, Value::Int(1)], "ERROR 1210: Incorrect arguments to lag"),
    ] {
        assert_eq!(t.prepared(id, &values), expected, "{values:?}");
    }
}

/// Errors call items and columns as the statement does, though the block below the windows has columns of its own.
#[test]
fn errors_name_what_the_statement_names() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, p INT, x INT)");
    let not_grouped = |item: usize, column: &str| {
        format!(
            "Expression #{item} of SELECT list is not in GROUP BY clause and contains nonaggregated column '{column}' which is not functionally \
             dependent on columns in GROUP BY clause; this is incompatible with sql_mode=only_full_group_by"
        )
    };
    for (sql, item) in [
        ("SELECT p, SUM(x) OVER () FROM t GROUP BY p", 2),
        ("SELECT p, 1, RANK() OVER (ORDER BY x) FROM t GROUP BY p", 3),
        ("SELECT RANK() OVER (PARTITION BY x ORDER BY p), p FROM t GROUP BY p", 1),
        ("SELECT p, RANK() OVER w FROM t GROUP BY p WINDOW w AS (ORDER BY p, x)", 2),
        ("SELECT RANK() OVER (ORDER BY p), x FROM t GROUP BY p", 2),
    ] {
        t.error(sql, 1055, &not_grouped(item, "test.t.x"));
    }
    t.error(
        "SELECT DISTINCT p, RANK() OVER (ORDER BY p) FROM t ORDER BY x",
        3065,
        "Expression #1 of ORDER BY clause is not in SELECT list, references column 'test.t.x' which is not in SELECT list; this is \
         incompatible with DISTINCT",
    );
    t.error("SELECT p, RANK() OVER (ORDER BY x) FROM t HAVING x > 1", 1054, "Unknown column 'x' in 'having clause'");
    t.error(
        "SELECT x + 1, RANK() OVER (ORDER BY p) FROM t HAVING x > 1",
        1054,
        "Unknown column 'x' in 'having clause'",
    );
    t.ok("SELECT p, x, RANK() OVER (ORDER BY x) FROM t HAVING x > 1");
    for (sql, code, message) in [
        (
            "SELECT id FROM t WHERE RANK() OVER () = 1",
            3593,
            "You cannot use the window function 'rank' in this context.'",
        ),
        ("SELECT SUM(x) OVER w FROM t", 3579, "Window name 'w' is not defined."),
        (
            "SELECT SUM(x) OVER w FROM t WINDOW w AS (v), v AS (w)",
            3580,
            "There is a circularity in the window dependency graph.",
        ),
        (
            "SELECT SUM(x) OVER (w PARTITION BY p) FROM t WINDOW w AS ()",
            3581,
            "A window which depends on another cannot define partitioning.",
        ),
        (
            "SELECT SUM(x) OVER (w) FROM t WINDOW w AS (ROWS 1 PRECEDING)",
            3582,
            "Window 'w' has a frame definition, so cannot be referenced by another window.",
        ),
        (
            "SELECT SUM(x) OVER (w ORDER BY x) FROM t WINDOW w AS (ORDER BY p)",
            3583,
            "Window '<unnamed window>' cannot inherit 'w' since both contain an ORDER BY clause.",
        ),
        (
            "SELECT SUM(x) OVER (ROWS UNBOUNDED FOLLOWING) FROM t",
            3584,
            "Window '<unnamed window>': frame start cannot be UNBOUNDED FOLLOWING.",
        ),
        (
            "SELECT SUM(x) OVER (w ROWS BETWEEN 1 PRECEDING AND UNBOUNDED PRECEDING) FROM t WINDOW w AS (ORDER BY x)",
            3585,
            "Window '<unnamed window>': frame end cannot be UNBOUNDED PRECEDING.",
        ),
        (
            "SELECT SUM(x) OVER w FROM t WINDOW w AS (ORDER BY p, x RANGE 1 PRECEDING)",
            3587,
            "Window 'w' with RANGE N PRECEDING/FOLLOWING frame requires exactly one ORDER BY expression, of numeric or temporal type",
        ),
        ("SELECT SUM(x) OVER w FROM t WINDOW w AS (), W AS ()", 3591, "Window 'w' is defined twice."),
        (
            "SELECT SUM(x) OVER (ORDER BY 1) FROM t",
            3592,
            "Window '<unnamed window>': ORDER BY or PARTITION BY uses legacy position indication which is not supported, use expression.",
        ),
        (
            "SELECT SUM(x) OVER () AS s FROM t HAVING s > 1",
            3594,
            "You cannot use the alias 's' of an expression containing a window function in this context.'",
        ),
        (
            "SELECT SUM(x) OVER w FROM t WINDOW w AS (ORDER BY RANK() OVER ())",
            3595,
            "You cannot nest a window function in the specification of window 'w'.",
        ),
        (
            "SELECT SUM(x) OVER (ROWS INTERVAL 1 DAY PRECEDING) FROM t",
            3596,
            "Window '<unnamed window>': INTERVAL can only be used with RANGE frames.",
        ),
        ("SELECT p AS k, RANK() OVER (ORDER BY k) FROM t", 1054, "Unknown column 'k' in 'window order by'"),
        ("SELECT RANK() OVER (PARTITION BY t.q) FROM t", 1054, "Unknown column 't.q' in 'window partition by'"),
        ("SELECT NTH_VALUE(x, 0) OVER () FROM t", 1210, "Incorrect arguments to nth_value"),
    ] {
        t.error(sql, code, message);
    }
    let id = t.prepare("SELECT SUM(x) OVER w FROM t WINDOW w AS (ORDER BY x ROWS ? PRECEDING)").id;
    assert_eq!(
        t.prepared(id, &[rauk_types::Value::Int(-1)]),
        "ERROR 3586: Window 'w': frame start or end is negative, NULL or of non-integral type"
    );
    t.ok("SELECT SUM(x) OVER () FROM t");
    let many = |windows: usize| {
        let list: Vec<String> = (0..windows).map(|n| format!("RANK() OVER (ORDER BY x + {n})")).collect();
        format!("SELECT {} FROM t", list.join(", "))
    };
    t.ok(&many(127));
    t.error(&many(128), 4086, "Too many windows in SELECT: 128. Maximum allowed is 127");
}

/// Rows that an index gives in the order of the first window are not sorted.
#[test]
fn an_index_serves_the_order_of_a_window() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, s VARCHAR(9), KEY (a, b))");
    for id in 0..60 {
        t.ok(&format!("INSERT INTO t VALUES ({id}, NULLIF({id} % 7, 3), {id} % 5, 'x')"));
    }
    t.ok("CREATE TABLE u (id INT PRIMARY KEY, a INT, b INT, s VARCHAR(9))");
    t.ok("INSERT INTO u SELECT * FROM t");
    for window in [
        "ORDER BY a, b, id",
        "PARTITION BY a ORDER BY b, id",
        "PARTITION BY a",
        "ORDER BY a",
        "ORDER BY id",
        "ORDER BY a DESC, b DESC, id",
    ] {
        for calls in [
            format!("COUNT(*) OVER ({window}), MIN(b) OVER ({window})"),
            format!("RANK() OVER ({window}), COUNT(*) OVER (PARTITION BY a), SUM(b) OVER (ORDER BY b, a)"),
        ] {
            let sql = |table: &str| {
                format!("SELECT id, a, b, {calls} FROM {table} FORCE INDEX FOR JOIN (PRIMARY) WHERE id > 2 ORDER BY id")
                    .replace("FORCE INDEX FOR JOIN (PRIMARY) ", "")
            };
            assert_eq!(t.run(&sql("t")), t.run(&sql("u")), "{calls}");
            let covered = |table: &str| format!("SELECT a, b, {calls} FROM {table} WHERE a >= 1 ORDER BY a, b, id");
            assert_eq!(t.run(&covered("t")), t.run(&covered("u")), "{calls}");
        }
    }
    // Few columns, all in the index.
    let plan = t.run("EXPLAIN SELECT a, ROW_NUMBER() OVER (ORDER BY a, b) FROM t FORCE INDEX (a) WHERE a > 1");
    assert!(plan.contains("|a|") && !plan.contains("filesort"), "{plan}");
}

#[test]
fn views_have_windows() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, p INT, x INT)");
    t.ok("INSERT INTO t VALUES (1, 1, 10), (2, 1, 20), (3, 2, 30)");
    t.ok("CREATE VIEW v AS SELECT id, p, SUM(x) OVER w AS s, RANK() OVER (w ORDER BY x DESC ROWS 1 PRECEDING) AS r FROM t WINDOW w AS (PARTITION BY p)");
    t.expect("SELECT * FROM v ORDER BY id", &["1|1|30|2", "2|1|30|1", "3|2|30|1"]);
    t.expect("SELECT id FROM v WHERE p = 1 AND r = 1", &["2"]);
    t.expect("SELECT v.id, u.r FROM v JOIN v u ON u.p = v.p AND u.r = 2 ORDER BY 1", &["1|2", "2|2"]);
    assert!(t.run("INSERT INTO v (id) VALUES (9)").starts_with("ERROR "));
    assert!(t.run("UPDATE v SET p = 9").starts_with("ERROR "));
    assert!(t.run("DELETE FROM v").starts_with("ERROR "));
    t.expect("SELECT COUNT(*) FROM t", &["3"]);
}

#[test]
fn a_tree_shows_its_windows() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, p INT, x INT)");
    let tree = t.run(
        "EXPLAIN FORMAT=TREE SELECT p, 1 + RANK() OVER (ORDER BY SUM(x) DESC) AS r, SUM(p) OVER w AS s \
         FROM t GROUP BY p HAVING p > 1 WINDOW w AS (PARTITION BY p ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
    );
    assert_eq!(
        tree.trim_end().lines().collect::<Vec<_>>(),
        [
            "Project p#9 as p#3, (1 + #4) as r#5, #6 as s#7",
            "  Window Rank() as #4 order by #10 desc; then Sum(p#9) rows from 2 preceding to current row as #6 partition by p#9",
            "    Project p#1 as p#9, #8 as #10",
            "      Having (p#1 > 1)",
            "        Aggregate Sum(x#2) as #8 by p#1",
            "          Scan t: id#0, p#1, x#2",
        ]
    );
}
