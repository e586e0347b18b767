//! Optimizer hints: each has its effect, and what cannot be followed is a warning.

use super::{Test, server};

fn tables(t: &mut Test) {
    t.ok("CREATE TABLE a (id INT PRIMARY KEY, x INT, y INT, KEY kx (x), KEY ky (y))");
    t.ok("CREATE TABLE b (id INT PRIMARY KEY, x INT)");
    t.ok("CREATE TABLE c (id INT PRIMARY KEY, x INT)");
    for table in ["b", "c"] {
        t.ok(&format!("INSERT INTO {table} VALUES (1, 1), (2, 2), (3, 3)"));
    }
    let rows: Vec<String> = (0..300).map(|row| format!("({row}, {}, {})", row % 30, row % 30)).collect();
    t.ok(&format!("INSERT INTO a VALUES {}", rows.join(", ")));
}

/// table:key of each row of EXPLAIN.
fn plan(t: &mut Test, sql: &str) -> String {
    let text = t.run(&format!("EXPLAIN {sql}"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').collect();
        assert_eq!(cells.len(), 12, "{sql}: {text}");
        format!("{}:{}", cells[2], cells[6])
    };
    text.lines().map(row).collect::<Vec<String>>().join(" ")
}

fn warnings(t: &mut Test, sql: &str) -> String {
    t.ok(sql);
    t.run("SHOW WARNINGS")
}

#[test]
fn the_order_of_tables_is_followed() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    let order = |t: &mut Test, hints: &str| {
        let sql = format!("SELECT /*+ {hints} */ COUNT(*) FROM a JOIN b ON b.id = a.x JOIN c ON c.id = b.x");
        t.expect(&sql, &["30"]);
        plan(t, &sql).split(' ').map(|cell| cell.split(':').next().unwrap().to_string()).collect::<Vec<_>>().join("")
    };
    assert_eq!(order(&mut t, "JOIN_FIXED_ORDER()"), "abc");
    assert_eq!(order(&mut t, "JOIN_ORDER(c, b, a)"), "cba");
    assert_eq!(order(&mut t, "JOIN_ORDER(a, c)").replace('b', ""), "ac");
    assert!(order(&mut t, "JOIN_PREFIX(c)").starts_with('c'));
    assert!(order(&mut t, "JOIN_PREFIX(a, c)").starts_with("ac"));
    assert!(order(&mut t, "JOIN_SUFFIX(b)").ends_with('b'));
    assert!(order(&mut t, "JOIN_SUFFIX(c, a)").ends_with("ca"));
    assert_eq!(order(&mut t, "QB_NAME(q) JOIN_ORDER(@q b, c, a)"), "bca");
    // Orders that contradict each other are given up.
    assert_eq!(order(&mut t, "JOIN_ORDER(a, b) JOIN_ORDER(b, a)").len(), 3);
    let sql = "SELECT /*+ JOIN_ORDER(a, nothing) */ 1 FROM a JOIN b USING (id) LIMIT 1";
    assert_eq!(warnings(&mut t, sql), "Warning|3128|Unresolved name `nothing`@`select#1` for JOIN_ORDER hint");
}

#[test]
fn indexes_are_chosen() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    assert_eq!(plan(&mut t, "SELECT /*+ INDEX(a ky) */ 1 FROM a WHERE x = 1 AND y = 1"), "a:ky");
    assert_eq!(plan(&mut t, "SELECT /*+ INDEX(a kx) */ 1 FROM a WHERE x = 1 AND y = 1"), "a:kx");
    assert_eq!(plan(&mut t, "SELECT /*+ NO_INDEX(a kx, ky) */ 1 FROM a WHERE x = 1 AND y = 1"), "a:NULL");
    assert_eq!(plan(&mut t, "SELECT /*+ NO_JOIN_INDEX(a) */ 1 FROM a WHERE x = 1"), "a:NULL");
    assert_eq!(plan(&mut t, "SELECT /*+ JOIN_INDEX(z ky) */ 1 FROM a AS z WHERE x = 1 AND y = 1"), "z:ky");
    // The cached plan of the same text without the hint is another one.
    t.expect("SELECT COUNT(*) FROM a WHERE x = 1 AND y = 1", &["10"]);
    t.expect("SELECT /*+ NO_INDEX(a) */ COUNT(*) FROM a WHERE x = 1 AND y = 1", &["10"]);
    let sql = "SELECT /*+ INDEX(a no) */ 1 FROM a LIMIT 1";
    assert_eq!(warnings(&mut t, sql), "Warning|3128|Unresolved name `a`@`select#1` `no` for INDEX hint");
    let sql = "SELECT /*+ INDEX(nothing kx) */ 1 FROM a LIMIT 1";
    assert_eq!(warnings(&mut t, sql), "Warning|3128|Unresolved name `nothing`@`select#1` for INDEX hint");
}

#[test]
fn derived_tables_and_subqueries_stay_apart() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    assert_eq!(plan(&mut t, "SELECT /*+ MERGE(d) */ d.x FROM (SELECT x FROM b) d"), "b:NULL");
    assert_eq!(plan(&mut t, "SELECT /*+ NO_MERGE(d) */ d.x FROM (SELECT x FROM b) d"), "<derived2>:NULL b:NULL");
    assert_eq!(plan(&mut t, "SELECT /*+ NO_MERGE() */ d.x FROM (SELECT x FROM b) d"), "<derived2>:NULL b:NULL");
    let sql = "SELECT /*+ NO_MERGE(e) */ d.x FROM (SELECT x FROM b) d";
    assert_eq!(warnings(&mut t, sql), "Warning|3128|Unresolved name `e`@`select#1` for NO_MERGE hint");
    let joined = "SELECT COUNT(*) FROM b WHERE x IN (SELECT id FROM c)";
    let apart = "SELECT COUNT(*) FROM b WHERE x IN (SELECT /*+ NO_SEMIJOIN() */ id FROM c)";
    assert!(t.run(&format!("EXPLAIN {apart}")).contains("|SUBQUERY|"));
    assert!(!t.run(&format!("EXPLAIN {joined}")).contains("|SUBQUERY|"));
    // Of the whole statement, from an inner block too; in a session that switched it off, on.
    let off = "SELECT /*+ SET_VAR(optimizer_switch = 'semijoin=off') */ COUNT(*) FROM b WHERE x IN (SELECT id FROM c)";
    let inner =
        "SELECT COUNT(*) FROM b WHERE x IN (SELECT /*+ SET_VAR(optimizer_switch = 'semijoin=off') */ id FROM c)";
    for sql in [off, inner] {
        assert!(t.run(&format!("EXPLAIN {sql}")).contains("|SUBQUERY|"), "{sql}");
    }
    let on = "SELECT /*+ SET_VAR(optimizer_switch = 'semijoin=on') */ COUNT(*) FROM b WHERE x IN (SELECT id FROM c)";
    t.ok("SET optimizer_switch = 'semijoin=off'");
    assert!(!t.run(&format!("EXPLAIN {on}")).contains("|SUBQUERY|"));
    assert!(t.run(&format!("EXPLAIN {joined}")).contains("|SUBQUERY|"));
    for sql in [joined, apart, off, inner, on] {
        t.expect(sql, &["3"]);
    }
}

#[test]
fn a_statement_has_its_limits_and_variables() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    let slow = "COUNT(*) FROM a a1, a a2, a a3, a a4 WHERE a1.y + a2.y + a3.y + a4.y = -1";
    t.code(&format!("SELECT /*+ MAX_EXECUTION_TIME(50) */ {slow}"), 3024);
    t.ok("SET max_execution_time = 60000");
    t.code(&format!("SELECT /*+ MAX_EXECUTION_TIME(50) */ {slow}"), 3024);
    t.expect("SELECT @@max_execution_time", &["60000"]);
    t.code(&format!("SELECT /*+ SET_VAR(max_execution_time = 50) */ {slow}"), 3024);
    let rounds = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20) ";
    t.code(&format!("{rounds} SELECT /*+ SET_VAR(cte_max_recursion_depth = 5) */ COUNT(*) FROM n"), 3636);
    t.expect(&format!("{rounds} SELECT COUNT(*) FROM n"), &["20"]);
    t.expect("SELECT /*+ SET_VAR(sort_buffer_size = 65536) */ @@sort_buffer_size", &["65536"]);
    assert_ne!(t.run("SELECT @@sort_buffer_size"), "65536");
    let sql = "SELECT /*+ SET_VAR(sql_mode = '') */ 1";
    assert_eq!(warnings(&mut t, sql), "Warning|3637|Variable 'sql_mode' cannot be set using SET_VAR hint.");
    let sql = "SELECT /*+ SET_VAR(optimizer_switch = 'semijoin=off') */ @@optimizer_switch LIKE '%semijoin=off%'";
    t.expect(sql, &["1"]);
    t.expect("SELECT @@optimizer_switch LIKE '%semijoin=off%'", &["0"]);
    let sql = "SELECT /*+ SET_VAR(optimizer_switch = 'semijoin=of') */ 1";
    let text = "Warning|1231|Variable 'optimizer_switch' can't be set to the value of 'semijoin=of'";
    assert_eq!(warnings(&mut t, sql), text);
    let sql = "SELECT /*+ SET_VAR(nothing = 1) */ 1";
    assert_eq!(warnings(&mut t, sql), "Warning|3128|Unresolved name 'nothing' for SET_VAR hint");
    let sql = "SELECT (SELECT /*+ MAX_EXECUTION_TIME(5) */ 1)";
    assert!(warnings(&mut t, sql).starts_with("Warning|3125|"));
}

#[test]
fn what_is_wrong_is_a_warning() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    let sql = "SELECT /*+ NO_SUCH_HINT(a) */ 1";
    assert!(warnings(&mut t, sql).starts_with("Warning|1064|Optimizer hint syntax error near"));
    let sql = "SELECT /*+ MERGE( */ 1";
    assert!(warnings(&mut t, sql).starts_with("Warning|1064|Optimizer hint syntax error near"));
    let sql = "SELECT /*+ BKA(a) */ 1 FROM a LIMIT 1";
    assert!(warnings(&mut t, sql).starts_with("Warning|1235|"));
    let sql = "SELECT /*+ INDEX(a kx) INDEX(a ky) */ 1 FROM a LIMIT 1";
    assert!(warnings(&mut t, sql).starts_with("Warning|3126|"));
    let sql = "SELECT /*+ INDEX(@nowhere a kx) */ 1 FROM a LIMIT 1";
    assert_eq!(warnings(&mut t, sql), "Warning|3127|Query block name `nowhere` is not found for INDEX hint");
    // Each execution warns, from the cache too; and a hint elsewhere is a comment.
    t.ok("SELECT /*+ BKA(a) */ 1 FROM a LIMIT 1");
    assert!(warnings(&mut t, "SELECT /*+ BKA(a) */ 1 FROM a LIMIT 1").starts_with("Warning|1235|"));
    assert_eq!(warnings(&mut t, "SELECT 1 /*+ BKA(a) */ FROM a LIMIT 1"), "");
    t.expect("SELECT /*+ */ 1", &["1"]);
    let prepared = t.prepare("SELECT /*+ NO_INDEX(a) SET_VAR(nothing = 1) */ COUNT(*) FROM a WHERE x = ?");
    assert_eq!(t.prepared(prepared.id, &[rauk_types::Value::Int(1)]), "10");
    assert!(t.run("SHOW WARNINGS").contains("3128"));
}
