//! Joins that look up a table for many rows at once: what is found, in what order, how far they read, and how they end.

use super::{Test, server};
use std::time::Duration;

/// Numbers of rows around the sizes of batches: 16, 16 + 32, … and 1024.
const BORDERS: [usize; 14] = [0, 1, 15, 16, 17, 32, 33, 47, 48, 49, 1023, 1024, 1025, 3100];

/// Rows (n, k, v): `k` is 7n mod 5000, and NULL for each 10th.
fn outer(t: &mut Test, table: &str, count: usize) {
    t.ok(&format!("CREATE TABLE {table} (n INT PRIMARY KEY, k INT, v BIGINT)"));
    insert(
        t,
        table,
        (0..count).map(|n| match n % 10 {
            9 => format!("({n}, NULL, {n})"),
            _ => format!("({n}, {}, {n})", n * 7 % 5000),
        }),
    );
}

/// Rows (id, u, w): even numbers to `count`, with a unique `u` = id + 1 and w = 3 id.
fn inner(t: &mut Test, table: &str, count: usize) {
    t.ok(&format!("CREATE TABLE {table} (id INT PRIMARY KEY, u INT NOT NULL, w INT, UNIQUE KEY (u))"));
    insert(t, table, (0..count).step_by(2).map(|id| format!("({id}, {}, {})", id + 1, id * 3)));
}

fn insert(t: &mut Test, table: &str, rows: impl Iterator<Item = String>) {
    let rows: Vec<String> = rows.collect();
    for some in rows.chunks(1000) {
        t.ok(&format!("INSERT INTO {table} VALUES {}", some.join(",")));
    }
}

/// The key of an outer row, and the `w` of the inner row that it finds.
fn key(n: usize) -> Option<usize> {
    (n % 10 != 9).then_some(n * 7 % 5000)
}

fn found(n: usize) -> Option<usize> {
    key(n).filter(|k| k % 2 == 0).map(|k| k * 3)
}

#[test]
fn rows_come_in_the_order_of_the_outer_table() {
    let server = server();
    let mut t = server.session();
    t.ok("SET optimizer_switch = 'hash_join=off'");
    inner(&mut t, "b", 5000);
    outer(&mut t, "a", 3200);
    let plan = t.run("EXPLAIN SELECT a.n, b.w FROM a JOIN b ON b.id = a.k WHERE a.n < 100 ORDER BY a.n");
    assert!(plan.contains("eq_ref") && !plan.contains("filesort"), "{plan}");
    for count in BORDERS {
        let expected: Vec<String> = (0..count).filter_map(|n| found(n).map(|w| format!("{n}|{w}"))).collect();
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        let on = format!("WHERE a.n < {count} ORDER BY a.n");
        t.expect(&format!("SELECT a.n, b.w FROM a JOIN b ON b.id = a.k {on}"), &expected);
        t.expect(&format!("SELECT a.n, b.w FROM a JOIN b ON b.u = a.k + 1 {on}"), &expected);
        t.expect(&format!("SELECT a.n, c.w FROM a JOIN b ON b.id = a.k JOIN b c ON c.u = b.u {on}"), &expected);
        let left: Vec<String> =
            (0..count).map(|n| format!("{n}|{}", found(n).map_or("NULL".to_string(), |w| w.to_string()))).collect();
        let left: Vec<&str> = left.iter().map(String::as_str).collect();
        t.expect(&format!("SELECT a.n, b.w FROM a LEFT JOIN b ON b.id = a.k {on}"), &left);
        t.expect(
            &format!("SELECT a.n, c.w FROM a LEFT JOIN b ON b.u = a.k + 1 LEFT JOIN b c ON c.id = b.id {on}"),
            &left,
        );
        let rows = (0..count).filter(|n| found(*n).is_some()).count();
        let sum: usize = (0..count).filter_map(found).sum();
        let sum = if rows == 0 { "NULL".to_string() } else { sum.to_string() };
        let counted = format!("{rows}|{sum}");
        t.expect(&format!("SELECT COUNT(*), SUM(b.w) FROM a JOIN b ON b.id = a.k WHERE a.n < {count}"), &[&counted]);
    }
}

#[test]
fn a_limit_ends_a_join_within_a_batch() {
    let server = server();
    let mut t = server.session();
    t.ok("SET optimizer_switch = 'hash_join=off'");
    inner(&mut t, "b", 5000);
    outer(&mut t, "a", 3200);
    let joined: Vec<String> = (0..3200).filter_map(|n| found(n).map(|w| format!("{n}|{w}"))).collect();
    for (limit, offset) in [(0, 0), (1, 0), (1, 7), (15, 0), (16, 0), (17, 0), (100, 3), (700, 0), (2000, 0)] {
        let expected: Vec<&str> = joined.iter().skip(offset).take(limit).map(String::as_str).collect();
        let sql = format!("SELECT a.n, b.w FROM a JOIN b ON b.id = a.k ORDER BY a.n LIMIT {limit} OFFSET {offset}");
        t.expect(&sql, &expected);
    }
}

/// An addition that is out of range for v = 20 and no row before it.
const FAILS: &str = "9223372036854775788";

#[test]
fn an_error_comes_with_its_row() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE a (n INT PRIMARY KEY, k INT, v BIGINT)");
    t.ok("CREATE TABLE b (id INT PRIMARY KEY, next INT, v BIGINT)");
    insert(&mut t, "a", (1..=60).map(|n| format!("({n}, {n}, {n})")));
    insert(&mut t, "b", (1..=2000).map(|n| format!("({n}, {n}, {n})")));
    let queries = [
        // In the select list, the key, conditions on the tables, and one of an outer join.
        format!("SELECT a.n, a.v + {FAILS} > 0 FROM a JOIN b ON b.id = a.k"),
        format!("SELECT a.n, 1 FROM a JOIN b ON b.id = a.v + {FAILS} - {FAILS}"),
        format!("SELECT a.n, 1 FROM a JOIN b ON b.id = a.k AND b.v + {FAILS} > 0"),
        format!("SELECT a.n, 1 FROM a JOIN b ON b.id = a.k JOIN b c ON c.id = b.next + 0 AND b.v + {FAILS} > 0"),
        format!("SELECT a.n, 1 FROM a JOIN b ON b.id = a.k JOIN b c ON c.id = b.v + {FAILS} - {FAILS}"),
        format!("SELECT a.n, 1 FROM a LEFT JOIN b ON b.id = a.k AND b.v + {FAILS} > 0"),
        format!("SELECT a.n, 1 FROM a LEFT JOIN b ON b.id = a.k WHERE b.v + {FAILS} > 0 OR b.v IS NULL"),
    ];
    for sql in queries {
        let sql = format!("{sql} ORDER BY a.n");
        assert!(t.run(&format!("EXPLAIN {sql}")).contains("eq_ref"), "{sql}");
        let rows = |count: usize| (1..=count).map(|n| format!("{n}|1")).collect::<Vec<_>>();
        for limit in [1, 15, 16, 17, 19] {
            let expected = rows(limit);
            t.expect(&format!("{sql} LIMIT {limit}"), &expected.iter().map(String::as_str).collect::<Vec<_>>());
        }
        for limit in ["LIMIT 20", "LIMIT 21", "LIMIT 1 OFFSET 19", ""] {
            t.code(&format!("{sql} {limit}"), 1690);
        }
        // The first match is enough.
        t.expect(&format!("SELECT 1 WHERE EXISTS ({})", sql.replace(" ORDER BY a.n", "")), &["1"]);
    }
}

#[test]
fn joins_of_all_shapes_agree_with_hash_joins() {
    let server = server();
    let mut t = server.session();
    inner(&mut t, "b", 800);
    inner(&mut t, "c", 500);
    outer(&mut t, "a", 700);
    t.ok("CREATE TABLE d (x INT, y INT)");
    insert(&mut t, "d", (0..40).map(|n| format!("({n}, {})", n * 2)));
    let shapes = [
        "a JOIN b ON b.id = a.k JOIN c ON c.id = b.id",
        "a JOIN b ON b.id = a.k LEFT JOIN c ON c.u = b.u AND c.w % 4 = 2",
        "a LEFT JOIN b ON b.id = a.k JOIN c ON c.id = a.n",
        "a LEFT JOIN (b JOIN c ON c.id = b.id) ON b.id = a.k",
        "a LEFT JOIN (b LEFT JOIN c ON c.u = b.u) ON b.id = a.k AND c.w IS NOT NULL",
        "a LEFT JOIN b ON b.id = a.k LEFT JOIN c ON c.id = b.id WHERE b.id IS NULL OR c.id IS NULL",
        "a JOIN d ON d.x = a.n % 50 JOIN b ON b.id = d.y LEFT JOIN c ON c.id = a.n",
        "d JOIN a ON a.v % 40 = d.x LEFT JOIN b ON b.u = d.y + 1 JOIN c ON c.id = b.id + d.y",
        "(SELECT k, COUNT(*) n FROM a GROUP BY k) g JOIN b ON b.id = g.k LEFT JOIN c ON c.id = g.n",
        "a JOIN b ON b.id = a.k WHERE a.n IN (SELECT c.id FROM c WHERE c.w > 30)",
        "a JOIN b ON b.id = a.k WHERE EXISTS (SELECT 1 FROM c WHERE c.id = b.w)",
        "a JOIN b ON b.id = a.k WHERE NOT EXISTS (SELECT 1 FROM c WHERE c.u = b.u)",
        "a WHERE NOT EXISTS (SELECT 1 FROM b JOIN c ON c.id = b.id WHERE b.id = a.k)",
        "a WHERE EXISTS (SELECT 1 FROM b LEFT JOIN c ON c.id = b.w WHERE b.id = a.k AND c.id IS NULL)",
    ];
    for shape in shapes {
        // The hint takes the keys away from the tables that are looked up.
        let without = |table: &str, text: &str| {
            let mut out = text.to_string();
            for (begin, end) in [(" ", " ON "), ("(", " "), (" ", " LEFT"), (" ", " WHERE"), (" ", " JOIN")] {
                let hint = format!("{begin}{table} IGNORE INDEX (PRIMARY, u){end}");
                out = out.replace(&format!("{begin}{table}{end}"), &hint);
            }
            out
        };
        let hinted = without("c", &without("b", shape));
        assert_ne!(shape, hinted);
        for items in ["COUNT(*), SUM(a.n), MIN(b.w), SUM(c.w)", "a.n, b.id, c.id"] {
            let names =
                |text: &str, table: &str| text.contains(&format!(" {table} ")) || text.contains(&format!("({table} "));
            let outside = shape.split(" WHERE").next().unwrap_or_default();
            let mut items = items.to_string();
            for (table, columns) in [("a", ["a.n"; 2]), ("b", ["b.w", "b.id"]), ("c", ["c.w", "c.id"])] {
                if !names(&format!(" {outside} "), table) || table == "a" && outside.starts_with("(SELECT") {
                    columns.iter().for_each(|column| items = items.replace(column, "0"));
                }
            }
            let mut lines = |shape: &str, hash: bool| {
                t.ok(&format!("SET optimizer_switch = 'hash_join={}'", if hash { "on" } else { "off" }));
                let got = t.run(&format!("SELECT {items} FROM {shape}"));
                assert!(!got.contains("ERROR"), "{shape}: {got}");
                let mut lines: Vec<String> = got.lines().map(str::to_string).collect();
                lines.sort();
                lines
            };
            let batched = lines(shape, false);
            assert!(!batched.is_empty(), "{shape} tests nothing");
            assert_eq!(batched, lines(&hinted, true), "{shape}");
            assert_eq!(batched, lines(shape, true), "{shape}");
        }
    }
}

#[test]
fn a_join_sees_its_transaction() {
    let server = server();
    let (mut t, mut other) = (server.session(), server.session());
    inner(&mut t, "b", 200);
    outer(&mut t, "a", 100);
    let sql = "SELECT COUNT(*), SUM(b.w) FROM a JOIN b ON b.id = a.k";
    let before = t.run(sql);
    t.ok("BEGIN");
    t.expect(sql, &[&before]);
    other.ok("UPDATE b SET w = 1000000");
    other.ok("DELETE FROM b WHERE id = 14");
    t.expect(sql, &[&before]);
    t.ok("UPDATE a SET k = 2 WHERE n = 9");
    t.ok("INSERT INTO b VALUES (7, 1007, 5)");
    let own: usize = (0..100).filter_map(key).filter(|k| k % 2 == 0 && *k < 200).map(|k| k * 3).sum::<usize>() + 5 + 6;
    let count = (0..100).filter_map(key).filter(|k| k % 2 == 0 && *k < 200).count() + 2;
    t.expect(sql, &[&format!("{count}|{own}")]);
    t.ok("ROLLBACK");
    assert_ne!(t.run(sql), before);
    // Locking reads take row after row.
    t.ok("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE");
    t.ok("BEGIN");
    let locked = t.run(sql);
    t.ok("COMMIT");
    t.expect(sql, &[&locked]);
    t.expect(&format!("{sql} FOR UPDATE"), &[&locked]);
}

#[test]
fn large_rows_are_looked_up_as_far_as_memory_goes() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE b (id INT PRIMARY KEY, t MEDIUMTEXT)");
    for id in 0..12 {
        t.ok(&format!("INSERT INTO b VALUES ({id}, REPEAT('x', {}))", 150_000 + id));
    }
    outer(&mut t, "a", 900);
    t.ok("SET rauk_query_memory_limit = 3000000");
    let lengths: usize = (0..900).map(|n| 150_000 + n % 12).sum();
    t.expect("SELECT COUNT(*), SUM(LENGTH(b.t)) FROM a JOIN b ON b.id = a.n % 12", &[&format!("900|{lengths}")]);
    // Rows that are gathered are large too.
    let sql = "SELECT COUNT(*), SUM(LENGTH(b.t)) FROM b STRAIGHT_JOIN a ON a.n = b.id";
    t.expect(sql, &["12|1800066"]);
}

#[test]
fn a_key_that_is_not_one_value_is_looked_for() {
    let server = server();
    let mut t = server.session();
    t.ok("SET time_zone = 'Europe/Berlin'");
    t.ok("CREATE TABLE b (ts TIMESTAMP PRIMARY KEY, w INT)");
    t.ok("CREATE TABLE c (id INT PRIMARY KEY, w INT)");
    t.ok("CREATE TABLE a (n INT PRIMARY KEY, d DATETIME)");
    insert(&mut t, "a", (0..40).map(|n| format!("({n}, '2023-06-01 12:00:{n:02}')")));
    insert(&mut t, "b", (0..40).step_by(3).map(|n| format!("('2023-06-01 12:00:{n:02}', {n})")));
    insert(&mut t, "c", (0..40).map(|n| format!("({n}, {n})")));
    let expected: Vec<String> = (0..40).step_by(3).map(|n| format!("{n}|{n}|{n}")).collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    t.expect("SELECT a.n, b.w, c.w FROM a JOIN b ON b.ts = a.d JOIN c ON c.id = b.w ORDER BY a.n", &expected);
    t.expect("SELECT COUNT(*), COUNT(b.w) FROM a LEFT JOIN b ON b.ts = a.d", &["40|14"]);
}

/// Kills `sql` while it runs.
fn is_killed(t: &mut Test, sql: &str) {
    let interrupt = t.session.interrupter();
    let killer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        interrupt();
    });
    t.code(sql, 1317);
    killer.join().unwrap();
    t.expect("SELECT 1", &["1"]);
}

#[test]
fn a_kill_ends_joins_in_memory_and_by_batches() {
    let server = server();
    let mut t = server.session();
    inner(&mut t, "b", 5000);
    outer(&mut t, "a", 3000);
    t.ok("CREATE TABLE same (n INT)");
    insert(&mut t, "same", (0..3000).map(|_| "(1)".to_string()));
    is_killed(&mut t, "SELECT COUNT(*) FROM a x JOIN a y ON y.v >= 0 JOIN a z ON z.v > y.v JOIN b ON b.id = x.n + y.n");
    // All rows have one hash.
    is_killed(&mut t, "SELECT COUNT(*) FROM same x JOIN same y ON x.n = y.n JOIN same z ON z.n = y.n");
    is_killed(&mut t, "SELECT COUNT(*) FROM a LEFT JOIN same x ON x.n = a.n % 2 LEFT JOIN same y ON x.n = y.n");
}

#[test]
fn loops_that_pause_go_on_where_they_were() {
    let server = server();
    let mut t = server.session();
    inner(&mut t, "b", 600);
    // 300 rows of each of 4 keys: chains are longer than what is looked at in one go.
    t.ok("CREATE TABLE x (k INT, n INT)");
    insert(&mut t, "x", (0..1200).map(|n| format!("({}, {n})", n % 4)));
    t.ok("CREATE TABLE y (k INT, n INT)");
    insert(&mut t, "y", (0..7).map(|n| format!("({n}, {n})")));
    let sum: usize = (0..1200).sum();
    t.expect("SELECT COUNT(*), SUM(x.n) FROM y JOIN x ON x.k = y.k", &[&format!("1200|{sum}")]);
    t.expect("SELECT COUNT(*), COUNT(x.n) FROM y LEFT JOIN x ON x.k = y.k AND x.n % 2 = 0", &["605|600"]);
    t.expect(
        "SELECT COUNT(*), COUNT(z.n) FROM y LEFT JOIN x ON x.k = y.k LEFT JOIN x z ON z.n = x.n AND z.n < 500",
        &["1203|500"],
    );
    t.expect("SELECT COUNT(*) FROM y WHERE EXISTS (SELECT 1 FROM x WHERE x.k = y.k AND x.n > 1100)", &["4"]);
    t.expect("SELECT COUNT(*) FROM y WHERE NOT EXISTS (SELECT 1 FROM x WHERE x.k = y.k AND x.n + y.n > 1198)", &["5"]);
    // Batches behind such loops, and loops behind batches.
    t.expect("SELECT COUNT(*), COUNT(b.id) FROM y LEFT JOIN x ON x.k = y.k LEFT JOIN b ON b.id = x.n", &["1203|300"]);
    t.expect("SELECT COUNT(*) FROM y JOIN x ON x.k = y.k JOIN b ON b.id = x.n JOIN x z ON z.n = b.id", &["300"]);
    t.expect("SELECT COUNT(*) FROM x JOIN b ON b.id = x.n JOIN y ON y.k = x.k JOIN x z ON z.k = y.k", &["90000"]);
    let (sink, result) = t.collect("SELECT x.n, z.n FROM y JOIN x ON x.k = y.k JOIN x z ON z.k = x.k LIMIT 1000");
    result.unwrap();
    assert_eq!(sink.results.last().map_or(0, |r| r.texts().len()), 1000);
}
