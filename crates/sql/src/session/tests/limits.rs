//! What one session can take of the server: memory, the size of values, depth, time.

use super::{Test, server};
use std::time::{Duration, Instant};

/// Nothing here takes long; what it guards against takes minutes.
const SOON: Duration = Duration::from_secs(60);

fn nested(open: &str, inner: &str, close: &str, levels: usize) -> String {
    format!("{}{inner}{}", open.repeat(levels), close.repeat(levels))
}

/// A few nested calls would make terabytes of a character: each result is at most max_allowed_packet long.
#[test]
fn no_function_makes_a_value_larger_than_a_packet() {
    let server = server();
    server.session().ok("SET GLOBAL max_allowed_packet = 1048576");
    let mut t = server.session();
    t.expect(&format!("SELECT {}", nested("HEX(", "'a'", ")", 46)), &["NULL"]);
    t.expect(
        "SHOW WARNINGS",
        &["Warning|1301|Result of hex() was larger than max_allowed_packet (1048576) - truncated"],
    );
    t.expect(&format!("SELECT LENGTH({})", nested("HEX(", "'a'", ")", 20)), &["1048576"]);
    let columns = format!("SELECT LENGTH({}) FROM (SELECT 1) x", nested("HEX(", "@a", ")", 40));
    t.expect(&columns, &["NULL"]);
    t.ok("SET @a = 'xyz'");
    t.expect(&format!("SELECT {}", nested("TO_BASE64(", "@a", ")", 100)), &["NULL"]);
    t.expect(&format!("SELECT LENGTH({}) < 1048577", nested("QUOTE(", "@a", ")", 60)), &["1"]);
    t.expect("SELECT CAST('a' AS BINARY(60000000))", &["NULL"]);
    t.expect(
        "SHOW WARNINGS",
        &["Warning|1301|Result of cast_as_binary() was larger than max_allowed_packet (1048576) - truncated"],
    );
    for sql in [
        "SELECT REPLACE(REPEAT('a', 1000000), 'a', REPEAT('b', 1000000))",
        "SELECT EXPORT_SET(5, REPEAT('a', 20000), REPEAT('b', 20000))",
        "SELECT CONCAT_WS(REPEAT(',', 400000), 'a', 'b', 'c', 'd')",
        "SELECT INSERT(REPEAT('a', 600000), 1, 1, REPEAT('a', 600000))",
        "SELECT DATE_FORMAT('2024-09-25', REPEAT('%M', 300000))",
        "SELECT MAKE_SET(7, REPEAT('a', 400000), REPEAT('a', 400000), REPEAT('a', 400000))",
    ] {
        t.expect(sql, &["NULL"]);
        assert!(t.run("SHOW WARNINGS").contains("|1301|"), "{sql}");
    }
}

#[test]
fn a_statement_has_a_memory_limit_and_the_next_one_has_it_whole() {
    let server = server();
    let mut t = server.session();
    t.expect("SELECT @@global.rauk_query_memory_limit, @@rauk_total_query_memory_limit", &["268435456|536870912"]);
    t.ok("SET rauk_query_memory_limit = 20000000");
    let refused = |t: &mut Test, sql: &str| {
        let shown = t.run(sql);
        assert!(
            shown.starts_with("ERROR 1038") && shown.contains("rauk_query_memory_limit (20000000 bytes)"),
            "{sql:.60}: {shown}"
        );
    };
    // Its text and tree.
    let ands = |n: usize| format!("SELECT {}", vec!["1"; n].join(" AND "));
    refused(&mut t, &ands(200_000));
    t.expect(&ands(2_000), &["1"]);
    let long = |n: usize| format!("SELECT 1 IN ({})", vec!["7"; n].join(","));
    refused(&mut t, &long(200_000));
    t.expect(&long(2_000), &["0"]);
    // Values beside each other, in a row and in a call.
    let values: Vec<String> = (0..40).map(|i| format!("REPEAT('{}', 1000000)", i % 10)).collect();
    refused(&mut t, &format!("SELECT {}", values.join(", ")));
    refused(&mut t, &format!("SELECT LENGTH(CONCAT({}))", values.join(", ")));
    t.expect(&format!("SELECT LENGTH(CONCAT({}))", values[..15].join(", ")), &["15000000"]);
    // What is sorted and grouped.
    t.ok("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT, s VARCHAR(10000))");
    let rows: Vec<String> = (0..1000).map(|i| format!("({i}, REPEAT('{}', 10000))", i % 10)).collect();
    for _ in 0..3 {
        t.ok(&format!("INSERT INTO t (v, s) VALUES {}", rows.join(",")));
    }
    refused(&mut t, "SELECT * FROM t ORDER BY v");
    refused(&mut t, "SELECT id, MAX(s), GROUP_CONCAT(s) FROM t GROUP BY id");
    refused(&mut t, "SELECT id, MIN(s) FROM t GROUP BY id");
    t.expect("SELECT MIN(LEFT(s, 2)), LENGTH(MAX(s)) FROM t", &["00|10000"]);
    refused(&mut t, "SELECT JSON_ARRAYAGG(s) FROM t");
    refused(&mut t, "SELECT JSON_OBJECTAGG(id, s) FROM t");
    refused(&mut t, "SELECT v, GROUP_CONCAT(LEFT(s, 2500)), COUNT(*) FROM t GROUP BY s, v, id WITH ROLLUP");
    refused(&mut t, "SELECT GROUP_CONCAT(v SEPARATOR 'x'), GROUP_CONCAT(s) FROM t");
    t.expect("SELECT COUNT(*) FROM t", &["3000"]);
    // Of rows that can be read again only the keys are kept.
    t.expect("UPDATE t SET v = -v, s = CONCAT('z', LEFT(s, 9999)) ORDER BY v DESC, id", &["OK 3000"]);
    t.expect("SELECT COUNT(*), SUM(v) FROM t WHERE s LIKE 'z%'", &["3000|-1498500"]);
    t.expect("DELETE FROM t ORDER BY v, id LIMIT 2500", &["OK 2500"]);
    t.expect("SELECT COUNT(*), MIN(v), MAX(v) FROM t", &["500|-166|0"]);
    // Variables stay, and are bounded as well.
    t.ok("SET @a = REPEAT('a', 9000000), @b = REPEAT('b', 9000000)");
    t.code("SET @c = REPEAT('c', 9000000)", 1038);
    t.ok("SET @b = NULL");
    t.ok("SET @c = REPEAT('c', 9000000)");
    // All statements together.
    let mut u = server.session();
    t.ok("SET GLOBAL rauk_total_query_memory_limit = 4194304");
    let shown = u.run(&ands(100_000));
    assert!(
        shown.starts_with("ERROR 1038") && shown.contains("rauk_total_query_memory_limit (4194304 bytes)"),
        "{shown}"
    );
    u.expect(&ands(1_000), &["1"]);
}

/// Trees and plans of prepared statements count as long as these exist, and their number counts for all sessions.
#[test]
fn prepared_statements_count_until_they_are_closed() {
    let server = server();
    let mut t = server.session();
    t.ok("SET rauk_query_memory_limit = 8000000");
    t.ok(&format!("SET @long = 'SELECT {}'", vec!["1"; 1_000].join(" AND ")));
    let mut made = 0;
    let error = loop {
        match t.run(&format!("PREPARE s{made} FROM @long")) {
            ok if ok == "OK 0" => made += 1,
            error => break error,
        }
        assert!(made < 100, "a hundred of them take more than 8 MB");
    };
    assert!(error.starts_with("ERROR 1038") && error.contains("rauk_query_memory_limit (8000000 bytes)"), "{error}");
    assert!(made > 2, "{made}");
    t.expect("EXECUTE s0", &["1"]);
    t.ok("DEALLOCATE PREPARE s1");
    t.ok("PREPARE s1 FROM @long");
    // One of the same name takes the place of the first.
    t.ok("PREPARE s1 FROM @long");
    drop(t);
    let (mut t, mut u) = (server.session(), server.session());
    t.ok("SET GLOBAL max_prepared_stmt_count = 2");
    t.ok("PREPARE a FROM 'SELECT 1'");
    let prepared = t.prepare("SELECT ?");
    u.code("PREPARE a FROM 'SELECT 1'", 1461);
    t.session.close_statement(prepared.id);
    u.ok("PREPARE a FROM 'SELECT 1'");
    u.code("PREPARE b FROM 'SELECT 1'", 1461);
    drop(t);
    u.ok("PREPARE b FROM 'SELECT 1'");
}

#[test]
fn the_largest_and_least_texts_of_groups_count() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, s VARCHAR(10000))");
    let rows = vec!["(REPEAT('x', 10000))"; 1000].join(",");
    t.ok(&format!("INSERT INTO t (s) VALUES {rows}"));
    t.ok("SET rauk_query_memory_limit = 5000000");
    for sql in ["SELECT id, MAX(s) FROM t GROUP BY id", "SELECT id, MIN(CONCAT(s, 'y')) FROM t GROUP BY id"] {
        let shown = t.run(sql);
        assert!(shown.starts_with("ERROR 1038"), "{sql}: {shown:.80}");
    }
    // One group has one text, however many rows come.
    t.expect("SELECT LENGTH(MAX(s)), LENGTH(MIN(CONCAT(s, id))) FROM t", &["10000|10001"]);
}

#[test]
fn many_groups_fit() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, s VARCHAR(100))");
    t.ok(&format!("INSERT INTO t (s) VALUES {}", vec!["('x')"; 100].join(",")));
    t.ok("SET rauk_query_memory_limit = 5000000");
    // 10 000 groups with keys of some 50 bytes.
    let rows = t.run("SELECT CONCAT('a group of the text ', a.id, ' ', b.id) k, COUNT(*) FROM t a, t b GROUP BY k");
    assert_eq!(rows.lines().count(), 10_000, "{rows:.100}");
}

/// Runs on a stack as small as a worker's.
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(2 << 20).spawn(work).unwrap().join().unwrap();
}

#[test]
fn thousands_of_levels() {
    on_a_small_stack(|| {
        let server = server();
        let mut t = server.session();
        t.ok("CREATE TABLE t (id INT PRIMARY KEY, v INT, KEY (v))");
        t.ok("INSERT INTO t VALUES (1, 10), (2, 20)");
        for levels in [1_100] {
            for (open, inner, close, expected) in [
                ("(", "id", ")", "2"),
                ("NOT ", "id", "", "1"),
                ("- ", "id", "", "2"),
                ("ABS(", "id", ")", "2"),
                ("CASE WHEN id THEN ", "id", " END", "2"),
                ("(1 + ", "id", ")", ""),
                ("1 + ", "id", "", ""),
                ("id <=> ", "id", "", ""),
            ] {
                let expression = nested(open, inner, close, levels);
                let expected = match expected {
                    "" if open == "id <=> " => "0".to_string(),
                    "" => (levels + 2).to_string(),
                    expected => expected.to_string(),
                };
                t.expect(&format!("SELECT {expression} FROM t WHERE id = 2"), &[&expected]);
                t.expect(
                    &format!("SELECT {expression} x FROM t WHERE id = 2 GROUP BY x HAVING x IS NOT NULL ORDER BY x"),
                    &[&expected],
                );
                t.expect(&format!("SELECT COUNT(*) FROM t WHERE ({expression}) = {expected} AND v = 20"), &["1"]);
                t.expect(
                    &format!("UPDATE t SET v = 20 + 0 * ({expression}) WHERE id = 2 AND ({expression}) = {expected}"),
                    &["OK 0"],
                );
                let prepared = t.prepare(&format!("SELECT {expression} FROM t WHERE id = ?"));
                assert_eq!(t.prepared(prepared.id, &[rauk_types::Value::Int(2)]), expected);
                assert_eq!(t.prepared(prepared.id, &[rauk_types::Value::Int(2)]), expected);
                t.ok(&format!("EXPLAIN SELECT {expression} FROM t WHERE {expression}"));
                let constant = nested(open, "2", close, levels).replace("id", "2");
                t.ok(&format!("DO {constant}"));
                t.ok(&format!("SET @x = {constant}"));
                t.ok(&format!("CREATE TABLE u (a INT DEFAULT ({constant}))"));
                t.ok("DROP TABLE u");
                t.ok(&format!("INSERT INTO t VALUES (3, {constant}) ON DUPLICATE KEY UPDATE v = {expression}"));
                t.ok("DELETE FROM t WHERE id = 3");
            }
        }
        for (open, close, code) in [("(", ")", 1436), ("1 + ", "", 1436), ("(SELECT ", ")", 1473)] {
            t.code(&format!("SELECT {}", nested(open, "1", close, 100_000)), code);
        }
        t.code(&format!("SELECT * FROM {}t{}", "(".repeat(100_000), ")".repeat(100_000)), 1436);
        t.expect("SELECT 1", &["1"]);
    });
}

/// What stands for several others in a bound statement is not copied at each level, or the copies count.
#[test]
fn nesting_does_not_double_what_is_bound() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, v INT)");
    t.ok("INSERT INTO t VALUES (1, 1), (2, 2)");
    t.ok("SET rauk_query_memory_limit = 20000000");
    let began = Instant::now();
    for expression in [
        nested("NULLIF(", "id", ", 7)", 200),
        nested("((", "id", ", v) < (3, 3)) + id - 1", 200),
        nested("((1, (", "id", ", 2)) <= (1, (2, v))) + id - 1", 200),
    ] {
        t.expect(&format!("SELECT {expression} IS NOT NULL FROM t WHERE id = 2"), &["1"]);
    }
    // Each name is a copy of what it stands for.
    let sum = vec!["id"; 1_000].join(" + ");
    let names = |n: usize| format!("SELECT {sum} x FROM t HAVING {}", vec!["x"; n].join(" AND "));
    assert_eq!(t.run(&names(3)).lines().count(), 2);
    t.code(&names(2_000), 1038);
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());

    // What both forms of an order say.
    for row in ["id, v", "id + 0 + 0 + 0 + 0 + 0 + 0 + 0 + 0, v"] {
        for (op, other, expected) in [
            ("<", "2, 1", "1,0"),
            ("<", "2, 3", "1,1"),
            ("<=", "2, 2", "1,1"),
            (">", "1, 1", "0,1"),
            (">=", "1, 1", "1,1"),
            (">", "1, NULL", "NULL,1"),
            ("<", "NULL, 5", "NULL,NULL"),
        ] {
            let sql = format!("SELECT GROUP_CONCAT(IFNULL(({row}) {op} ({other}), 'NULL') ORDER BY id) FROM t");
            t.expect(&sql, &[expected]);
        }
    }
    for value in ["id", "id + 0 + 0 + 0 + 0 + 0 + 0 + 0 + 0"] {
        t.expect(&format!("SELECT NULLIF({value}, 2) FROM t ORDER BY id"), &["1", "NULL"]);
        t.expect(&format!("SELECT NULLIF({value}, NULL), NULLIF({value}, '2') FROM t ORDER BY id"), &["1|1", "2|NULL"]);
    }
}

/// Megabytes are sought in megabytes; trying every place would take minutes.
#[test]
fn searches_take_linear_time() {
    let server = server();
    let mut t = server.session();
    let began = Instant::now();
    t.expect("SELECT REPEAT('a', 600000) LIKE CONCAT('%', REPEAT('a', 300000), 'b')", &["0"]);
    t.expect("SELECT REPEAT('a', 600000) LIKE CONCAT('%', REPEAT('A', 300000), '%')", &["1"]);
    t.expect("SELECT CONCAT(REPEAT('a', 600000), 'b') LIKE CONCAT('%', REPEAT('A', 300000), 'B')", &["1"]);
    t.expect("SELECT BINARY REPEAT('a', 600000) LIKE CONCAT('%', REPEAT('a', 300000), 'b%')", &["0"]);
    t.expect("SELECT LOCATE(CONCAT(REPEAT('a', 300000), 'B'), CONCAT(REPEAT('a', 600000), 'b'))", &["300001"]);
    t.expect("SELECT INSTR(REPEAT('a', 600000), CONCAT(REPEAT('a', 300000), 'b'))", &["0"]);
    t.expect("SELECT LOCATE(BINARY CONCAT(REPEAT('a', 300000), 'b'), REPEAT('a', 600000))", &["0"]);
    t.expect("SELECT LENGTH(REPLACE(REPEAT('a', 600000), CONCAT(REPEAT('a', 300000), 'b'), ''))", &["600000"]);
    t.expect("SELECT LENGTH(SUBSTRING_INDEX(REPEAT('a', 600000), CONCAT(REPEAT('a', 300000), 'b'), -1))", &["600000"]);
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    // What they find.
    t.expect(
        "SELECT LOCATE('É', 'aeé', 3), LOCATE('ss', 'aßSS'), LOCATE('', 'abc', 3), LOCATE('x', 'abc')",
        &["3|3|3|0"],
    );
    t.expect(
        "SELECT SUBSTRING_INDEX('a.b.c', '.', -2), SUBSTRING_INDEX('aaaa', 'aa', -1), SUBSTRING_INDEX('a', '.', -9)",
        &["b.c||a"],
    );
    t.code("SELECT REPEAT('a', 3000000) REGEXP '(a?){300}(a{0,30}){30}b'", 3699);
    t.expect("SELECT REPEAT('a', 3000000) REGEXP 'a+b'", &["0"]);
}

#[test]
fn a_long_evaluation_ends_when_it_is_killed_or_out_of_time() {
    let server = server();
    let mut t = server.session();
    let long = format!("SELECT LENGTH({})", nested("REVERSE(", "REPEAT('a', 3000000)", ")", 3_000));
    let interrupt = t.session.interrupter();
    let began = Instant::now();
    let killer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        interrupt();
    });
    t.code(&long, 1317);
    killer.join().unwrap();
    t.ok("SET max_execution_time = 300");
    t.code(&long, 3024);
    // A pattern with `_` may take long as well.
    t.code("SELECT REPEAT('a', 3000000) LIKE CONCAT('%', REPEAT('aa_', 500000), 'b%')", 3024);
    // Small arguments, a large result that nothing goes through.
    t.ok("SET max_execution_time = 1");
    for large in ["REPEAT('a', 60000000)", "SPACE(60000000)", "LPAD('a', 60000000, 'b')", "RPAD('a', 60000000, 'b')"] {
        t.code(&format!("SELECT {large} IS NULL"), 3024);
    }
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    t.expect("SELECT 1", &["1"]);
}

/// KILL and max_execution_time reach a statement that is split off, parsed or bound. Of 20 000 operands none takes
/// long to evaluate, and evaluation does not look so soon.
#[test]
fn a_long_text_ends_when_it_is_killed_or_out_of_time() {
    let server = server();
    let mut t = server.session();
    let ands = vec!["1"; 20_000].join(" AND ");
    t.expect(&format!("SELECT {ands}"), &["1"]);
    t.ok("SET max_execution_time = 1");
    t.code(&format!("SELECT {ands}"), 3024);
    t.code(&format!("SELECT 1 WHERE 1 IN ({ands})"), 3024);
    t.expect("SELECT SLEEP(1000)", &["1"]);
    // Only SELECT has such a limit.
    t.ok(&format!("DO {ands}"));
    t.ok("SET max_execution_time = 0");
    for sql in [format!("DO {ands}"), format!("SELECT {ands}"), format!("SET @a = ({ands})")] {
        let interrupt = t.session.interrupter();
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    interrupt();
                    std::thread::yield_now();
                }
            });
            t.code(&sql, 1317);
            over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }
    t.expect("SELECT 1", &["1"]);
}

#[test]
fn the_lock_wait_timeout_counts_inside_a_transaction() {
    let server = server();
    let (mut a, mut b) = (server.session(), server.session());
    a.ok("CREATE TABLE t (id INT PRIMARY KEY, v INT)");
    a.ok("INSERT INTO t VALUES (1, 1)");
    a.ok("BEGIN");
    a.ok("UPDATE t SET v = 2 WHERE id = 1");
    b.ok("BEGIN");
    b.expect("SELECT v FROM t", &["1"]);
    b.ok("SET SESSION innodb_lock_wait_timeout = 1");
    let began = Instant::now();
    b.code("UPDATE t SET v = 3 WHERE id = 1", 1205);
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}
