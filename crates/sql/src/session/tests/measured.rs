//! EXPLAIN FORMAT=JSON and EXPLAIN ANALYZE.

use super::{Test, server};

fn tables(t: &mut Test) {
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(10), KEY (a))");
    t.ok("CREATE TABLE u (id INT PRIMARY KEY, a INT NOT NULL, KEY (a))");
    t.ok("INSERT INTO t VALUES (1, 1, 'x'), (2, 2, 'y'), (3, NULL, 'z'), (4, 2, 'x')");
    t.ok("INSERT INTO u VALUES (1, 1), (2, 2), (3, 3)");
}

/// The operators of EXPLAIN ANALYZE, with what was counted and without what was estimated and measured.
#[track_caller]
fn check(t: &mut Test, sql: &str, expected: &[&str]) {
    let text = t.run(&format!("EXPLAIN ANALYZE {sql}"));
    let line = |line: &str| {
        let (operator, numbers) = line.split_once("  (").unwrap_or((line, ""));
        let actual = numbers.split_once("actual time=").map(|(_, actual)| actual);
        match actual.and_then(|actual| actual.split_once(' ')) {
            Some((_, counts)) => format!("{operator} [{}", counts.replace(')', "]")),
            None if numbers.contains("never executed") => format!("{operator} [never]"),
            None => operator.to_string(),
        }
    };
    let got: Vec<String> = text.trim_end().lines().map(line).collect();
    assert_eq!(got, expected, "{sql}\n{text}");
}

#[test]
fn joins_and_what_follows_them_are_counted() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    check(
        &mut t,
        "SELECT t.b, COUNT(*) FROM t STRAIGHT_JOIN u ON u.id = t.a WHERE t.id > 1 GROUP BY t.b HAVING COUNT(*) > 0 ORDER BY 1 LIMIT 1",
        &[
            "-> Limit: 1 row(s) [rows=1 loops=1]",
            "    -> Sort: t.b, limit input to 1 row(s) [rows=1 loops=1]",
            "        -> Filter: (count(0) > 0) [rows=2 loops=1]",
            "            -> Aggregate: count(0) by t.b [rows=2 loops=1]",
            "                -> Nested loop inner join [rows=2 loops=1]",
            "                    -> Index range scan on t using PRIMARY over (id > 1) [rows=3 loops=1]",
            "                    -> Single-row index lookup on u using PRIMARY (id = t.a) [rows=0.67 loops=3]",
        ],
    );
    check(
        &mut t,
        "SELECT * FROM t LEFT JOIN u ON u.a + 1 = t.a + 1 AND u.a + u.id < 3",
        &[
            "-> Nested loop left join [rows=4 loops=1]",
            "    -> Table scan on t [rows=4 loops=1]",
            "    -> Filter: (((u.a + 1) = (t.a + 1)) and ((u.a + u.id) < 3)) [rows=0.25 loops=4]",
            "        -> Probe hash table: ((u.a + 1) = (t.a + 1)) (1 rows in memory) [rows=0.25 loops=4]",
            "            -> Table scan on u",
        ],
    );
    // A query that reads nothing, and one that stops early.
    check(&mut t, "SELECT 1", &["-> Rows fetched before execution"]);
    check(
        &mut t,
        "SELECT * FROM t JOIN u WHERE t.id = 77",
        &[
            "-> Block nested loop inner join [rows=0 loops=1]",
            "    -> Single-row index lookup on t using PRIMARY (id = 77) [rows=0 loops=1]",
            "    -> Read from join buffer [never]",
            "        -> Table scan on u",
        ],
    );
}

#[test]
fn queries_in_queries_are_counted() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    check(
        &mut t,
        "SELECT * FROM (SELECT DISTINCT a FROM t) d JOIN u ON u.id = d.a",
        &[
            "-> Hash inner join [rows=2 loops=1]",
            "    -> Table scan on u [rows=3 loops=1]",
            "    -> Filter: (u.id = d.a) [rows=0.67 loops=3]",
            "        -> Probe hash table: (d.a = u.id) (3 rows in memory) [rows=0.67 loops=3]",
            "            -> Table scan on d",
            "                -> Materialize (select #2)",
            "                    -> Remove duplicates [rows=3 loops=1]",
            "                        -> Table scan on t [rows=4 loops=1]",
        ],
    );
    check(
        &mut t,
        "SELECT id FROM t UNION SELECT (SELECT MAX(id) FROM u WHERE u.a <= t.a) FROM t",
        &[
            "-> Union with deduplication [rows=5 loops=1]",
            "    -> Table scan on t [rows=4 loops=1]",
            "    -> Table scan on t [rows=4 loops=1]",
            "        -> Select #3 (subquery in the select list; dependent)",
            "            -> Aggregate: max(u.id) [rows=1 loops=3]",
            "                -> Index range scan on u using a over (a <= test.t.a) [rows=1 loops=3]",
        ],
    );
    check(
        &mut t,
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION SELECT i + 1 FROM n WHERE i < 3) SELECT * FROM n",
        &[
            "-> Table scan on n [rows=3 loops=1]",
            "    -> Materialize (select #2)",
            "        -> Repeat until no row is added",
            "            -> Rows fetched before execution",
            "            -> Filter: (n.i < 3) [rows=0.67 loops=3]",
            "                -> Scan new records on n [rows=1 loops=3]",
        ],
    );
    // Its rows were not sent, and nothing is measured behind it.
    t.expect("SELECT id FROM t WHERE id = 1", &["1"]);
    assert!(t.session.context.measures.is_none());
}

#[test]
fn changes_of_several_tables_are_counted_and_done() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    check(
        &mut t,
        "UPDATE t STRAIGHT_JOIN u ON u.id = t.a SET t.b = 'q', u.a = u.a + 10 WHERE t.id > 1",
        &[
            // Two rows of t, and the one of u that both of them join.
            "-> Update t (buffered), u (buffered) [rows=3 loops=1]",
            "    -> Nested loop inner join [rows=2 loops=1]",
            "        -> Index range scan on t using PRIMARY over (id > 1) [rows=3 loops=1]",
            "        -> Single-row index lookup on u using PRIMARY (id = t.a) [rows=0.67 loops=3]",
        ],
    );
    t.expect("SELECT id, b FROM t ORDER BY id", &["1|x", "2|q", "3|z", "4|q"]);
    t.expect("SELECT id, a FROM u ORDER BY id", &["1|1", "2|12", "3|3"]);
    // What it changes is part of the transaction around it.
    t.ok("BEGIN");
    check(
        &mut t,
        "DELETE t FROM t STRAIGHT_JOIN u ON u.id = t.a WHERE u.a = 12",
        &[
            "-> Delete from t (buffered) [rows=2 loops=1]",
            "    -> Nested loop inner join [rows=2 loops=1]",
            "        -> Table scan on t [rows=4 loops=1]",
            "        -> Filter: (u.a = 12) [rows=0.50 loops=4]",
            "            -> Single-row index lookup on u using PRIMARY (id = t.a) [rows=0.75 loops=4]",
        ],
    );
    t.expect("SELECT id FROM t ORDER BY id", &["1", "3"]);
    t.ok("ROLLBACK");
    t.expect("SELECT id FROM t ORDER BY id", &["1", "2", "3", "4"]);
    // An error undoes the statement, and leaves no counters behind.
    t.code("EXPLAIN ANALYZE UPDATE t JOIN u ON u.id = t.id SET t.id = 4, u.a = 0", 1062);
    t.expect("SELECT SUM(a) FROM u", &["16"]);
    assert!(t.session.context.measures.is_none());
    // As any change it needs a server that takes changes.
    t.ok("SET GLOBAL super_read_only = ON");
    t.code("EXPLAIN ANALYZE DELETE t FROM t JOIN u ON u.id = t.a", 1290);
    t.ok("SET GLOBAL super_read_only = OFF");
    t.ok("SET GLOBAL read_only = OFF");
    t.expect("SELECT COUNT(*) FROM t", &["4"]);
}

#[test]
fn analyze_is_for_queries() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    t.error(
        "EXPLAIN ANALYZE FORMAT=JSON SELECT 1",
        1235,
        "This version of MySQL doesn't yet support 'EXPLAIN ANALYZE with JSON format'",
    );
    t.code("EXPLAIN ANALYZE DELETE FROM t", 1235);
    t.code("EXPLAIN ANALYZE UPDATE t SET a = 1", 1235);
    t.code("EXPLAIN ANALYZE INSERT INTO u SELECT 9, 9", 1235);
    t.expect("SELECT COUNT(*) FROM t", &["4"]);
    t.error("EXPLAIN FORMAT=XML SELECT 1", 1791, "Unknown EXPLAIN format name: 'XML'");
    t.code("EXPLAIN ANALYZE SELECT (SELECT id FROM t)", 1242);
    assert!(t.session.context.measures.is_none());
    // It locks what it reads.
    let mut other = server.session();
    t.ok("BEGIN");
    t.ok("EXPLAIN ANALYZE SELECT * FROM t WHERE id = 1 FOR UPDATE");
    other.code("SELECT * FROM t WHERE id = 1 FOR UPDATE NOWAIT", 3572);
    t.ok("ROLLBACK");
}

#[test]
fn json_has_the_keys_of_mysql() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    let text = t.run(
        "EXPLAIN FORMAT=JSON SELECT t.b, COUNT(*) FROM t STRAIGHT_JOIN u ON u.id = t.a WHERE t.id > 1 AND t.b <> 'q' \
         GROUP BY t.b ORDER BY 2",
    );
    let json: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let grouping = &json["query_block"]["ordering_operation"]["grouping_operation"];
    assert_eq!(json["query_block"]["select_id"], 1);
    assert_eq!(json["query_block"]["ordering_operation"]["using_filesort"], true);
    assert_eq!(grouping["using_temporary_table"], true);
    let first = &grouping["nested_loop"][0]["table"];
    assert_eq!(first["table_name"], "t");
    assert_eq!(first["access_type"], "range");
    assert_eq!(first["possible_keys"][0], "PRIMARY");
    assert_eq!(first["key"], "PRIMARY");
    assert_eq!(first["used_key_parts"][0], "id");
    assert_eq!(first["key_length"], "4");
    assert_eq!(first["attached_condition"], "(`test`.`t`.`b` <> 'q')");
    assert_eq!(first["used_columns"].to_string(), r#"["id","a","b"]"#);
    let second = &grouping["nested_loop"][1]["table"];
    assert_eq!(second["access_type"], "eq_ref");
    assert_eq!(second["ref"][0], "test.t.a");
    for (object, key) in [(first, "prefix_cost"), (second, "read_cost"), (&json["query_block"], "query_cost")] {
        let cost = object["cost_info"][key].as_str().expect("a cost is a text");
        assert!(cost.parse::<f64>().expect("of a number") > 0.0, "{key} {cost}");
    }
    let text = t.run(
        "EXPLAIN FORMAT=JSON SELECT * FROM (SELECT DISTINCT a FROM t) d WHERE a = (SELECT MAX(a) FROM u) UNION SELECT 1",
    );
    let json: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let union = &json["query_block"]["union_result"];
    assert_eq!(union["table_name"], "<union1,4>");
    let table = &union["query_specifications"][0]["query_block"]["table"];
    assert_eq!(table["table_name"], "<derived2>");
    assert_eq!(table["materialized_from_subquery"]["query_block"]["select_id"], 2);
    assert_eq!(union["query_specifications"][1]["query_block"]["message"], "No tables used");
    for (sql, key) in [("UPDATE t SET a = 1 WHERE id = 1", "update"), ("DELETE FROM t WHERE id = 1", "delete")] {
        let text = t.run(&format!("EXPLAIN FORMAT=JSON {sql}"));
        let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(json["query_block"]["table"][key], true, "{text}");
    }
    let text = t.run("EXPLAIN FORMAT=JSON INSERT INTO u SELECT * FROM u WHERE id = 9");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["query_block"]["table"]["insert"], true);
    assert_eq!(json["query_block"]["insert_from"]["table"]["access_type"], "const");
}
