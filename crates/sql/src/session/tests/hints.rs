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
    let sql = "SELECT /*+ RESOURCE_GROUP(a) */ 1 FROM a LIMIT 1";
    assert!(warnings(&mut t, sql).starts_with("Warning|1235|"));
    let sql = "SELECT /*+ INDEX(a kx) INDEX(a ky) */ 1 FROM a LIMIT 1";
    assert!(warnings(&mut t, sql).starts_with("Warning|3126|"));
    let sql = "SELECT /*+ INDEX(@nowhere a kx) */ 1 FROM a LIMIT 1";
    assert_eq!(warnings(&mut t, sql), "Warning|3127|Query block name `nowhere` is not found for INDEX hint");
    // Each execution warns, from the cache too; and a hint elsewhere is a comment.
    t.ok("SELECT /*+ RESOURCE_GROUP(a) */ 1 FROM a LIMIT 1");
    let sql = "SELECT /*+ RESOURCE_GROUP(a) */ 1 FROM a LIMIT 1";
    assert!(warnings(&mut t, sql).starts_with("Warning|1235|"));
    assert_eq!(warnings(&mut t, "SELECT 1 /*+ RESOURCE_GROUP(a) */ FROM a LIMIT 1"), "");
    t.expect("SELECT /*+ */ 1", &["1"]);
    let prepared = t.prepare("SELECT /*+ NO_INDEX(a) SET_VAR(nothing = 1) */ COUNT(*) FROM a WHERE x = ?");
    assert_eq!(t.prepared(prepared.id, &[rauk_types::Value::Int(1)]), "10");
    assert!(t.run("SHOW WARNINGS").contains("3128"));
}

/// The column Extra of a table of EXPLAIN.
fn extra(t: &mut Test, table: &str, sql: &str) -> String {
    let text = t.run(&format!("EXPLAIN {sql}"));
    let line = text.lines().find(|line| line.split('|').nth(2) == Some(table));
    line.unwrap_or_else(|| panic!("{sql}: {text}")).split('|').nth(11).unwrap_or_default().to_string()
}

#[test]
fn buffers_and_hashes_are_allowed_and_forbidden() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    let sql = |hints: &str| format!("SELECT {hints} COUNT(*), SUM(b.id) FROM b STRAIGHT_JOIN c ON b.x = c.x");
    let hash = "Using join buffer (hash join)";
    let looped = "Using join buffer (Block Nested Loop)";
    for (switch, hints, buffer) in [
        ("", "", Some(hash)),
        ("", "/*+ NO_HASH_JOIN(c) */", Some(looped)),
        ("", "/*+ NO_HASH_JOIN() */", Some(looped)),
        ("", "/*+ NO_HASH_JOIN() HASH_JOIN(c) */", Some(hash)),
        ("", "/*+ NO_BNL(c) */", None),
        ("", "/*+ NO_BNL(b) */", Some(hash)),
        ("", "/*+ NO_BNL() */", None),
        ("", "/*+ SET_VAR(optimizer_switch = 'hash_join=off') */", Some(looped)),
        ("", "/*+ SET_VAR(optimizer_switch = 'block_nested_loop=off') */", None),
        ("hash_join=off", "", Some(looped)),
        ("hash_join=off", "/*+ HASH_JOIN(c) */", Some(hash)),
        ("block_nested_loop=off", "", None),
        ("block_nested_loop=off", "/*+ BNL(c) */", Some(hash)),
    ] {
        t.ok(&format!("SET optimizer_switch = 'default,{switch}'").replace(",'", "'"));
        let sql = sql(hints);
        let got = extra(&mut t, "c", &sql);
        match buffer {
            Some(buffer) => assert!(got.contains(buffer), "{switch} {sql}: {got}"),
            None => assert!(!got.contains("join buffer"), "{switch} {sql}: {got}"),
        }
        t.expect(&sql, &["3|6"]);
    }
    t.ok("SET optimizer_switch = 'default'");
    // Outer, semi and anti joins, and tables that are queries, are read in every way too.
    for hints in ["", "/*+ NO_BNL() */", "/*+ NO_HASH_JOIN() */", "/*+ HASH_JOIN() */"] {
        t.expect(&format!("SELECT {hints} COUNT(*), COUNT(c.id) FROM a LEFT JOIN c ON a.x = c.x"), &["300|30"]);
        t.expect(&format!("SELECT {hints} COUNT(*) FROM b WHERE x IN (SELECT x FROM c WHERE id > 1)"), &["2"]);
        t.expect(&format!("SELECT {hints} COUNT(*) FROM b WHERE NOT EXISTS (SELECT 1 FROM c WHERE c.x > b.x)"), &["1"]);
        t.expect(&format!("SELECT {hints} COUNT(*) FROM b JOIN (SELECT DISTINCT x FROM c) d ON d.x = b.x"), &["3"]);
    }
    let sql = "SELECT /*+ NO_BNL(z) */ 1 FROM b LIMIT 1";
    assert_eq!(warnings(&mut t, sql), "Warning|3128|Unresolved name `z`@`select#1` for NO_BNL hint");
    let sql = "SELECT /*+ BNL(b) NO_BNL(b) */ 1 FROM b LIMIT 1";
    assert_eq!(warnings(&mut t, sql), "Warning|3126|Hint NO_BNL(`b`) is ignored as conflicting/duplicated");
}

#[test]
fn a_table_is_probed_by_hash_or_by_its_index_as_sizes_say() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE large (id INT PRIMARY KEY, k INT NOT NULL, v INT NOT NULL, KEY (k))");
    t.ok("CREATE TABLE small (id INT PRIMARY KEY, k INT NOT NULL, KEY (k))");
    for from in (0..5000).step_by(500) {
        let rows: Vec<String> = (from..from + 500).map(|row| format!("({row}, {}, {row})", row % 200)).collect();
        t.ok(&format!("INSERT INTO large VALUES {}", rows.join(", ")));
    }
    let rows: Vec<String> = (0..400).map(|row| format!("({row}, {})", row % 200)).collect();
    t.ok(&format!("INSERT INTO small VALUES {}", rows.join(", ")));
    t.ok("ANALYZE TABLE large, small");
    let hash = |t: &mut Test, table: &str, sql: &str| extra(t, table, sql).contains("hash join");
    let from = "FROM large l STRAIGHT_JOIN small s ON s.k = l.k";
    // 5 000 lookups of two rows each cost more than to read 400 rows once; five lookups do not.
    let all = format!("SELECT COUNT(*), SUM(s.id + l.id) {from}");
    assert!(hash(&mut t, "s", &all));
    let few = format!("{all} WHERE l.id < 5");
    assert!(!hash(&mut t, "s", &few));
    t.expect(&few, &["10|1040"]);
    // A large table behind few rows is reached by its index; where all of its rows are asked for, it is read.
    let turned = "FROM small s STRAIGHT_JOIN large l ON s.k = l.k";
    assert!(!hash(&mut t, "l", &format!("SELECT SUM(l.v) {turned} WHERE s.id < 5")));
    assert!(hash(&mut t, "l", &format!("SELECT SUM(l.v) {turned}")));
    // Of its keys alone even so many cost less.
    assert!(!hash(&mut t, "l", &format!("SELECT SUM(l.k) {turned}")));
    // Hints and switches decide otherwise, outer joins and changes too; the answers are the same.
    let expected = t.run(&all);
    for hints in ["/*+ NO_HASH_JOIN(s) */", "/*+ NO_BNL(s) */", "/*+ SET_VAR(optimizer_switch='hash_join=off') */"] {
        let sql = all.replace("SELECT", &format!("SELECT {hints}"));
        assert!(!extra(&mut t, "s", &sql).contains("hash join"), "{sql}");
        t.expect(&sql, &[&expected]);
    }
    let sql = few.replace("SELECT", "SELECT /*+ HASH_JOIN(s) */");
    assert!(hash(&mut t, "s", &sql));
    t.expect(&sql, &["10|1040"]);
    let sql = "SELECT COUNT(*), COUNT(s.id) FROM large l LEFT JOIN small s ON s.k = l.k AND s.id >= 300";
    assert!(hash(&mut t, "s", sql));
    t.expect(sql, &["5000|2500"]);
    // Rows that are locked are found by the index.
    assert!(!hash(&mut t, "s", &format!("{all} FOR UPDATE")));
}

#[test]
fn merges_and_skip_scans_are_asked_for_or_forbidden() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT NOT NULL, c INT NOT NULL, KEY a (a), KEY b (b), KEY c (c), KEY cb (c, b))");
    for from in (0..3000).step_by(500) {
        let row = |id: usize| format!("({id}, {}, {}, {})", id % 40, id % 41, id % 3);
        t.ok(&format!("INSERT INTO t VALUES {}", (from..from + 500).map(row).collect::<Vec<_>>().join(", ")));
    }
    t.ok("ANALYZE TABLE t");
    let both = "FROM t WHERE a = 5 AND b = 7";
    let three = "FROM t WHERE a = 5 AND b = 7 AND c = 1";
    let either = "FROM t WHERE a = 5 OR b = 7";
    let skip = "FROM t WHERE b > 38";
    for (hint, from, expected) in [
        ("", both, "intersect("),
        ("NO_INDEX_MERGE(t)", both, "ref"),
        ("NO_INDEX_MERGE(t a)", both, "ref"),
        ("NO_INDEX_MERGE(t c)", both, "intersect("),
        ("INDEX_MERGE(t) SET_VAR(optimizer_switch='index_merge=off')", both, "intersect("),
        ("SET_VAR(optimizer_switch='index_merge=off')", both, "ref"),
        ("INDEX_MERGE(t)", "FROM t WHERE a = 5 AND b = 7 AND id = 5", "const"),
        ("INDEX_MERGE(t a, c)", three, "intersect(a,c)"),
        ("INDEX_MERGE(t a)", both, "ref"),
        ("NO_INDEX_MERGE(t)", either, "ALL"),
        ("NO_INDEX_MERGE(t b)", either, "ALL"),
        ("INDEX_MERGE(t a, b)", either, "union(a,b)"),
        ("INDEX_MERGE(t)", "FROM t WHERE a >= 0 OR b = 7", "sort_union(a,b)"),
        ("SKIP_SCAN(t)", skip, "skip scan"),
        ("SKIP_SCAN(t cb) SET_VAR(optimizer_switch='skip_scan=off')", skip, "skip scan"),
        ("NO_SKIP_SCAN(t)", skip, "ALL"),
        ("SKIP_SCAN(t b)", skip, "ALL"),
    ] {
        let sql = format!("SELECT /*+ {hint} */ id, a, c {from}");
        let plan = t.run(&format!("EXPLAIN {sql}"));
        assert!(plan.contains(expected), "{sql}: {plan}");
        let expected = t.run(&format!("SELECT id, a, c {from} ORDER BY id").replace("FROM t", "FROM t USE INDEX ()"));
        t.expect(&format!("{sql} ORDER BY id"), &[&expected]);
        // Where rows are locked, answers stay.
        t.expect(&format!("{sql} ORDER BY id FOR UPDATE"), &[&expected]);
    }
    let sql = "SELECT /*+ INDEX_MERGE(t nothing) */ 1 FROM t LIMIT 1";
    assert_eq!(warnings(&mut t, sql), "Warning|3128|Unresolved name `t`@`select#1` `nothing` for INDEX_MERGE hint");
    let sql = "SELECT /*+ SKIP_SCAN(z) */ 1 FROM t LIMIT 1";
    assert_eq!(warnings(&mut t, sql), "Warning|3128|Unresolved name `z`@`select#1` for SKIP_SCAN hint");
    let sql = "SELECT /*+ INDEX(t a) INDEX_MERGE(t) NO_SKIP_SCAN(t) */ 1 FROM t LIMIT 1";
    assert_eq!(warnings(&mut t, sql), "");
    let sql = "SELECT /*+ INDEX_MERGE(t a, b) NO_INDEX_MERGE(t) */ 1 FROM t LIMIT 1";
    assert!(warnings(&mut t, sql).starts_with("Warning|3126|"));
}

#[test]
fn hints_stand_behind_changes_too() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    let key = |t: &mut Test, sql: &str| t.run(&format!("EXPLAIN {sql}")).split('|').nth(6).unwrap_or("").to_string();
    assert_eq!(key(&mut t, "UPDATE /*+ INDEX(a ky) */ a SET id = id WHERE x = 1 AND y = 1"), "ky");
    assert_eq!(key(&mut t, "UPDATE /*+ NO_INDEX(a) */ a SET id = id WHERE x = 1 AND y = 1"), "NULL");
    assert_eq!(key(&mut t, "DELETE /*+ INDEX(a kx) */ FROM a WHERE x = 1 AND y = 1"), "kx");
    assert_eq!(key(&mut t, "DELETE /*+ NO_INDEX(a) */ FROM a WHERE x = 1 AND y = 1"), "NULL");
    let tables = |t: &mut Test, sql: &str| {
        let text = t.run(&format!("EXPLAIN {sql}"));
        let name = |line: &str| line.split('|').nth(2).unwrap_or_default().to_string();
        text.lines().map(name).filter(|name| name.len() == 1).collect::<Vec<_>>().join("")
    };
    let update = |hint: &str| format!("UPDATE /*+ {hint} */ a JOIN b ON b.id = a.x SET a.y = a.y WHERE b.x = 2");
    assert_eq!(tables(&mut t, &update("JOIN_ORDER(a, b)")), "ab");
    assert_eq!(tables(&mut t, &update("JOIN_PREFIX(b)")), "ba");
    let delete = |hint: &str| format!("DELETE /*+ {hint} */ a FROM b JOIN a ON b.id = a.x WHERE b.x = 99");
    assert_eq!(tables(&mut t, &delete("JOIN_SUFFIX(b)")), "ab");
    assert_eq!(tables(&mut t, &delete("JOIN_FIXED_ORDER()")), "ba");
    let insert =
        |hint: &str| format!("INSERT /*+ {hint} */ INTO c SELECT a.id + 10, b.x FROM a, b WHERE a.x = b.id LIMIT 0");
    assert!(tables(&mut t, &insert("JOIN_PREFIX(a)")).ends_with("ab"));
    assert!(tables(&mut t, &insert("JOIN_PREFIX(b)")).ends_with("ba"));
    // The plan that the cache keeps of the normal form has the hint too, and each run warns.
    t.ok("UPDATE /*+ SET_VAR(sort_buffer_size = 65536) */ a SET y = 7 WHERE id = 1");
    for value in [7, 8] {
        let sql = format!("UPDATE /*+ NO_INDEX(nothing) */ a SET y = {value} WHERE id = 1");
        let text = "Warning|3128|Unresolved name `nothing`@`select#1` for NO_INDEX hint";
        assert_eq!(warnings(&mut t, &sql), text);
        t.expect("SELECT y FROM a WHERE id = 1", &[&value.to_string()]);
    }
    for (sql, warning) in [
        ("DELETE /*+ NO_INDEX(nothing) */ FROM a WHERE id = -1", "Warning|3128|"),
        ("DELETE /*+ JOIN_ORDER(a, nothing) */ a FROM a JOIN b ON a.id = -b.id", "Warning|3128|"),
        ("INSERT /*+ NO_INDEX(nothing) */ INTO c VALUES (100, 1)", "Warning|3128|"),
        ("REPLACE /*+ NO_SUCH() */ INTO c VALUES (100, 1)", "Warning|1064|"),
        ("INSERT /*+ NO_INDEX(nothing) */ INTO c SELECT 101, 1", "Warning|3128|"),
        ("REPLACE /*+ MAX_EXECUTION_TIME(5) */ INTO c VALUES (100, 1)", "Warning|3125|"),
        ("UPDATE /*+ MAX_EXECUTION_TIME(5) */ c SET x = 1 WHERE id = 100", "Warning|3125|"),
        ("UPDATE /*+ INDEX(@q c PRIMARY) */ c SET x = 1 WHERE id = 100", "Warning|3127|"),
        ("INSERT /*+ QB_NAME(q) INDEX(@q c PRIMARY) */ INTO c VALUES (102, 1)", ""),
        ("INSERT INTO c /*+ NO_INDEX(nothing) */ VALUES (103, 1)", ""),
    ] {
        let got = warnings(&mut t, sql);
        assert!(got.starts_with(warning) && (got.is_empty() == warning.is_empty()), "{sql}: {got}");
    }
    t.ok("PREPARE p FROM 'UPDATE /*+ NO_INDEX(nothing) */ a SET y = ? WHERE id = 1'");
    t.ok("SET @y = 3");
    assert!(warnings(&mut t, "EXECUTE p USING @y").starts_with("Warning|3128|"));
}

#[test]
fn a_hint_speaks_of_an_inner_block_by_its_name() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    t.ok("CREATE VIEW w AS SELECT x FROM b");
    let inner =
        |outer: &str, inner: &str| format!("SELECT {outer} COUNT(*) FROM b WHERE x IN (SELECT {inner} id FROM c)");
    let is_subquery = |t: &mut Test, sql: &str| {
        t.expect(sql, &["3"]);
        assert_eq!(t.run("SHOW WARNINGS"), "", "{sql}");
        t.run(&format!("EXPLAIN {sql}")).contains("|SUBQUERY|")
    };
    for (outer, own, apart) in [
        ("", "", false),
        ("/*+ NO_SEMIJOIN(@s) */", "/*+ QB_NAME(s) */", true),
        ("/*+ NO_SEMIJOIN(@`select#2`) */", "", true),
        ("/*+ SUBQUERY(@s MATERIALIZATION) */", "/*+ QB_NAME(s) */", true),
        ("", "/*+ SUBQUERY(INTOEXISTS) */", true),
        ("", "/*+ SEMIJOIN() */", false),
        ("", "/*+ SEMIJOIN(FIRSTMATCH) */", false),
        ("", "/*+ NO_SEMIJOIN(FIRSTMATCH) */", false),
        ("", "/*+ NO_SEMIJOIN(FIRSTMATCH, MATERIALIZATION) */", true),
    ] {
        let sql = inner(outer, own);
        assert_eq!(is_subquery(&mut t, &sql), apart, "{sql}");
    }
    // The strategy of a semi join.
    let sql = inner("", "/*+ SEMIJOIN(MATERIALIZATION) */");
    assert!(extra(&mut t, "c", &sql).contains("hash join"));
    let sql = inner("/*+ SEMIJOIN(@s FIRSTMATCH) */", "/*+ QB_NAME(s) */");
    assert!(!extra(&mut t, "c", &sql).contains("hash join"));
    // Indexes and orders of an inner block, of `table@block` too.
    let plan_of = |t: &mut Test, hint: &str| {
        let sql =
            format!("SELECT {hint} * FROM (SELECT /*+ QB_NAME(d) */ DISTINCT a.y FROM a WHERE x = 1 AND y = 1) z");
        plan(t, &sql)
    };
    assert!(plan_of(&mut t, "/*+ INDEX(@d a ky) */").ends_with("a:ky"));
    assert!(plan_of(&mut t, "/*+ INDEX(a@d kx) */").ends_with("a:kx"));
    assert!(plan_of(&mut t, "/*+ NO_INDEX(a@d) */").ends_with("a:NULL"));
    // Common tables and views stay apart by name.
    let with = |hint: &str| format!("WITH n AS (SELECT x FROM b) SELECT {hint} n.x FROM n ORDER BY 1");
    assert_eq!(plan(&mut t, &with("")), "b:NULL");
    assert_eq!(plan(&mut t, &with("/*+ NO_MERGE(n) */")), "<derived2>:NULL b:NULL");
    assert_eq!(plan(&mut t, &with("/*+ MERGE(n) */")), "b:NULL");
    t.expect(&with("/*+ NO_MERGE(n) */"), &["1", "2", "3"]);
    assert_eq!(plan(&mut t, "SELECT /*+ NO_MERGE(w) */ x FROM w"), "<derived2>:NULL b:NULL");
    assert_eq!(plan(&mut t, "SELECT /*+ NO_MERGE(v) */ x FROM w AS v"), "<derived2>:NULL b:NULL");
    for (sql, warning) in [
        ("SELECT 1 FROM a WHERE x IN (SELECT /*+ SEMIJOIN(LOOSESCAN) */ id FROM c)", "Warning|1235|"),
        ("SELECT 1 FROM a WHERE x IN (SELECT /*+ SEMIJOIN(NOTHING) */ id FROM c)", "Warning|1064|"),
        ("SELECT 1 FROM a WHERE x IN (SELECT /*+ SUBQUERY() */ id FROM c)", "Warning|1064|"),
        ("SELECT 1 FROM a WHERE x IN (SELECT /*+ NO_SEMIJOIN() SUBQUERY(INTOEXISTS) */ id FROM c)", "Warning|3126|"),
        ("SELECT /*+ NO_MERGE(@s z) */ 1 FROM a WHERE x IN (SELECT /*+ QB_NAME(s) */ id FROM c)", "Warning|3128|"),
        ("SELECT /*+ NO_INDEX(@nowhere a) */ 1 FROM a", "Warning|3127|"),
        ("SELECT 1 FROM a WHERE x IN (SELECT /*+ NO_INDEX(@`select#1` a) */ id FROM c)", "Warning|3127|"),
    ] {
        let got = warnings(&mut t, sql);
        assert!(got.starts_with(warning), "{sql}: {got}");
    }
}

#[test]
fn indexes_serve_conditions_orders_and_groups_as_hints_say() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    t.ok("ALTER TABLE a ADD KEY kxy (x, y)");
    t.ok("ANALYZE TABLE a");
    let key = |t: &mut Test, sql: &str| plan(t, sql).split(':').next_back().unwrap().to_string();
    // Conditions.
    let sql = |hints: &str| format!("SELECT {hints} COUNT(*) FROM a WHERE x = 5 AND id >= 0");
    for (hints, expected) in [
        ("/*+ JOIN_INDEX(a kxy) */", "kxy"),
        ("/*+ JOIN_INDEX(a kx) */", "kx"),
        ("/*+ NO_JOIN_INDEX(a kx, PRIMARY) */", "kxy"),
        ("/*+ NO_JOIN_INDEX(a) */", "NULL"),
        // These are about other things.
        ("/*+ JOIN_INDEX(a kxy) NO_ORDER_INDEX(a) NO_GROUP_INDEX(a) */", "kxy"),
        ("/*+ NO_RANGE_OPTIMIZATION(a PRIMARY) JOIN_INDEX(a kx) */", "kx"),
    ] {
        assert_eq!(key(&mut t, &sql(hints)), expected, "{hints}");
        t.expect(&sql(hints), &["10"]);
    }
    // Orders: an index that gives one, or a sort.
    let sql = |hints: &str| format!("SELECT {hints} x, id FROM a ORDER BY x LIMIT 3");
    let sorts = |t: &mut Test, sql: &str| extra(t, "a", sql).contains("filesort");
    assert!(!sorts(&mut t, &sql("")));
    assert!(sorts(&mut t, &sql("/*+ NO_ORDER_INDEX(a) */")));
    assert!(sorts(&mut t, &sql("/*+ NO_ORDER_INDEX(a kx, kxy) */")));
    assert_eq!(key(&mut t, &sql("/*+ NO_ORDER_INDEX(a kx) */")), "kxy");
    assert_eq!(key(&mut t, &sql("/*+ ORDER_INDEX(a kxy) */")), "kxy");
    assert!(sorts(&mut t, &sql("/*+ ORDER_INDEX(a ky) */")));
    assert!(!sorts(&mut t, &sql("/*+ NO_JOIN_INDEX(a) */")));
    for hints in ["", "/*+ NO_ORDER_INDEX(a) */", "/*+ ORDER_INDEX(a kxy) */"] {
        t.expect(&sql(hints).replace("x, id", "x"), &["0", "0", "0"]);
    }
    let asked = "SELECT /*+ ORDER_INDEX(a kx) */ SUM(y) FROM (SELECT y FROM a ORDER BY x LIMIT 1000) d";
    t.expect(asked, &["4350"]);
    assert!(sorts(&mut t, "SELECT id FROM a IGNORE INDEX FOR ORDER BY (kx, kxy) ORDER BY x LIMIT 3"));
    assert_eq!(key(&mut t, "SELECT id FROM a USE INDEX FOR ORDER BY (kxy) ORDER BY x LIMIT 3"), "kxy");
    // Groups.
    let sql = |hints: &str| format!("SELECT {hints} x, MIN(y) FROM a GROUP BY x ORDER BY x LIMIT 2");
    let loose = |t: &mut Test, sql: &str| extra(t, "a", sql).contains("Using index for group-by");
    assert!(loose(&mut t, &sql("/*+ GROUP_INDEX(a kxy) */")));
    assert!(!loose(&mut t, &sql("/*+ GROUP_INDEX(a kx) */")));
    assert!(!loose(&mut t, &sql("/*+ NO_GROUP_INDEX(a) */")));
    assert!(!loose(&mut t, &sql("/*+ NO_RANGE_OPTIMIZATION(a) */")));
    assert!(!loose(&mut t, "SELECT DISTINCT x FROM a IGNORE INDEX FOR GROUP BY (kx, kxy)"));
    for hints in ["", "/*+ GROUP_INDEX(a kxy) */", "/*+ NO_GROUP_INDEX(a) */", "/*+ NO_RANGE_OPTIMIZATION(a) */"] {
        t.expect(&sql(hints), &["0|0", "1|1"]);
    }
    // Ranges and lists, but not single values.
    let range = |hints: &str| format!("SELECT {hints} COUNT(*) FROM a WHERE x BETWEEN 3 AND 4");
    assert_ne!(key(&mut t, &range("")), "NULL");
    assert_eq!(key(&mut t, &range("/*+ NO_RANGE_OPTIMIZATION(a) */")), "NULL");
    assert_eq!(key(&mut t, &range("/*+ NO_RANGE_OPTIMIZATION(a kx) */")), "kxy");
    t.expect(&range("/*+ NO_RANGE_OPTIMIZATION(a) */"), &["20"]);
    let list = "SELECT /*+ NO_RANGE_OPTIMIZATION(a PRIMARY) */ x FROM a WHERE id IN (31, 62)";
    assert_eq!(key(&mut t, list), "NULL");
    t.expect(list, &["1", "2"]);
    assert_eq!(key(&mut t, "SELECT /*+ NO_RANGE_OPTIMIZATION(a) */ x FROM a WHERE id = 31"), "PRIMARY");
    // Names are looked at, also of hints that do nothing else.
    for hint in ["MRR", "NO_MRR", "NO_ICP", "NO_RANGE_OPTIMIZATION", "ORDER_INDEX", "GROUP_INDEX", "NO_JOIN_INDEX"] {
        assert_eq!(warnings(&mut t, &format!("SELECT /*+ {hint}(a kx) */ 1 FROM a LIMIT 1")), "", "{hint}");
        let unknown = format!("Warning|3128|Unresolved name `a`@`select#1` `z` for {hint} hint");
        assert_eq!(warnings(&mut t, &format!("SELECT /*+ {hint}(a z) */ 1 FROM a LIMIT 1")), unknown);
        let unknown = format!("Warning|3128|Unresolved name `z`@`select#1` for {hint} hint");
        assert_eq!(warnings(&mut t, &format!("SELECT /*+ {hint}(z) */ 1 FROM a LIMIT 1")), unknown);
        let twice = format!("SELECT /*+ {hint}(a kx) {hint}(a ky) */ 1 FROM a LIMIT 1");
        assert!(warnings(&mut t, &twice).starts_with("Warning|3126|"), "{hint}");
    }
}

#[test]
fn conditions_move_into_derived_tables_as_hints_say() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    t.ok("CREATE VIEW v AS SELECT x, COUNT(*) n FROM a GROUP BY x");
    let reads = |t: &mut Test, sql: &str| plan(t, sql).contains("a:kx");
    for from in ["(SELECT x, COUNT(*) n FROM a GROUP BY x) d", "v d"] {
        let sql = |hints: &str| format!("SELECT {hints} n FROM {from} WHERE d.x = 5");
        assert!(reads(&mut t, &sql("")));
        assert!(!reads(&mut t, &sql("/*+ NO_DERIVED_CONDITION_PUSHDOWN(d) */")));
        assert!(!reads(&mut t, &sql("/*+ NO_DERIVED_CONDITION_PUSHDOWN() */")));
        let off = "SET_VAR(optimizer_switch = 'derived_condition_pushdown=off')";
        assert!(!reads(&mut t, &sql(&format!("/*+ {off} */"))));
        assert!(reads(&mut t, &sql(&format!("/*+ {off} DERIVED_CONDITION_PUSHDOWN(d) */"))));
        for hints in ["", "/*+ NO_DERIVED_CONDITION_PUSHDOWN(d) */"] {
            t.expect(&sql(hints), &["10"]);
        }
    }
    let sql = "SELECT /*+ NO_DERIVED_CONDITION_PUSHDOWN(z) */ 1 FROM v d LIMIT 1";
    let text = "Warning|3128|Unresolved name `z`@`select#1` for NO_DERIVED_CONDITION_PUSHDOWN hint";
    assert_eq!(warnings(&mut t, sql), text);
}
