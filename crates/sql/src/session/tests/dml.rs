//! Statements that read and write rows, and what surrounds them.

use super::server;
use rauk_types::Value;

#[test]
fn rows_go_in_and_come_out() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20) NOT NULL, n INT DEFAULT 7)");
    t.expect("INSERT INTO t (name) VALUES ('a'), ('b'), ('c')", &["OK 3"]);
    t.expect("SELECT LAST_INSERT_ID()", &["1"]);
    t.expect("SELECT * FROM t ORDER BY id", &["1|a|7", "2|b|7", "3|c|7"]);
    t.expect("UPDATE t SET n = n + 1 WHERE id >= 2", &["OK 2"]);
    t.expect("SELECT ROW_COUNT()", &["2"]);
    t.expect("SELECT ROW_COUNT()", &["-1"]);
    t.expect("DELETE FROM t WHERE id = 1", &["OK 1"]);
    t.expect("SELECT COUNT(*), SUM(n) FROM t", &["2|16"]);
    t.expect("INSERT INTO t VALUES (2, 'x', 1) ON DUPLICATE KEY UPDATE n = 100", &["OK 2"]);
    t.expect("REPLACE INTO t VALUES (3, 'r', 0)", &["OK 2"]);
    t.expect("SELECT * FROM t ORDER BY id", &["2|b|100", "3|r|0"]);
    t.error("INSERT INTO t VALUES (2, 'x', 1)", 1062, "Duplicate entry '2' for key 't.PRIMARY'");
    t.expect("SELECT SQL_CALC_FOUND_ROWS id FROM t ORDER BY id LIMIT 1", &["2"]);
    t.expect("SELECT FOUND_ROWS()", &["2"]);
}

#[test]
fn a_failed_statement_leaves_nothing() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY)");
    t.ok("INSERT INTO t VALUES (3)");
    t.code("INSERT INTO t VALUES (1), (2), (3), (4)", 1062);
    t.expect("SELECT * FROM t", &["3"]);
    t.ok("BEGIN");
    t.ok("INSERT INTO t VALUES (10)");
    t.code("INSERT INTO t VALUES (11), (3)", 1062);
    t.ok("COMMIT");
    t.expect("SELECT * FROM t ORDER BY id", &["3", "10"]);
}

#[test]
fn warnings_are_kept_until_the_next_statement() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(3))");
    t.ok("SET sql_mode = ''");
    t.ok("INSERT INTO t VALUES (1, 'abcdef')");
    t.expect("SELECT @@warning_count", &["1"]);
    t.ok("INSERT INTO t VALUES (2, 'abcdef')");
    t.expect("SHOW WARNINGS", &["Warning|1265|Data truncated for column 's' at row 1"]);
    t.expect("SHOW COUNT(*) WARNINGS", &["1"]);
    t.ok("SELECT 1");
    t.expect("SHOW WARNINGS", &[]);
    t.code("SELECT * FROM nowhere", 1146);
    t.expect("SHOW ERRORS", &["Error|1146|Table 'test.nowhere' doesn't exist"]);
    t.expect("SELECT @@error_count", &["1"]);
}

#[test]
fn several_statements_in_one_text() {
    let server = server();
    let mut t = server.session();
    t.expect("SELECT 1; SELECT ';' AS a; DO 2;", &["1", ";", "OK 0"]);
    t.expect("SELECT 1; SELECT * FROM nowhere; SELECT 2", &["1", "ERROR 1146: Table 'test.nowhere' doesn't exist"]);
    let (sink, _) = t.collect("SELECT 1; SELECT 2");
    assert!(sink.results[0].completion.status.more_results && !sink.results[1].completion.status.more_results);
    t.session.set_multi_statements(false);
    t.code("SELECT 1; SELECT 2", 1064);
    t.expect("SELECT 1;", &["1"]);
    t.code("", 1065);
    t.expect("/* nothing */", &["OK 0"]);
}

#[test]
fn prepared_statements_of_the_binary_protocol() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(20), d DATETIME)");
    let insert = t.prepare("INSERT INTO t VALUES (?, ?, NOW())");
    assert_eq!((insert.parameters.len(), insert.columns.len()), (2, 0));
    for id in 1..=3 {
        assert_eq!(t.prepared(insert.id, &[Value::Int(id), Value::from(format!("row {id}").as_str())]), "OK 1");
    }
    let select = t.prepare("SELECT s, id + ? FROM t WHERE id = ?");
    assert_eq!(select.columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["s", "id + ?"]);
    assert_eq!(t.prepared(select.id, &[Value::Int(10), Value::Int(2)]), "row 2|12");
    // Other types make another plan.
    assert_eq!(t.prepared(select.id, &[Value::Double(0.5), Value::from("3")]), "row 3|3.5");
    assert_eq!(t.prepared(select.id, &[Value::Null, Value::Int(1)]), "row 1|NULL");
    assert_eq!(t.prepared(select.id, &[Value::Int(1)]), "ERROR 1210: Incorrect arguments to mysqld_stmt_execute");
    let limit = t.prepare("SELECT id FROM t ORDER BY id LIMIT ?");
    assert_eq!(t.prepared(limit.id, &[Value::Int(2)]), "1\n2");
    t.session.close_statement(select.id);
    assert!(t.prepared(select.id, &[]).starts_with("ERROR 1243"));
    // Definitions change under a prepared statement.
    let all = t.prepare("SELECT * FROM t WHERE id = ?");
    assert_eq!(t.prepared(all.id, &[Value::Int(1)]).split('|').count(), 3);
    t.ok("ALTER TABLE t ADD COLUMN extra INT DEFAULT 5");
    assert!(t.prepared(all.id, &[Value::Int(1)]).ends_with("|5"));
    let set = t.prepare("SET @x = ?");
    t.prepared(set.id, &[Value::Int(9)]);
    t.expect("SELECT @x", &["9"]);
}

#[test]
fn prepared_statements_of_sql() {
    let server = server();
    let mut t = server.session();
    t.ok("PREPARE p FROM 'SELECT ? + ?'");
    t.ok("SET @a = 1, @b = 2");
    t.expect("EXECUTE p USING @a, @b", &["3"]);
    t.error("EXECUTE p USING @a", 1210, "Incorrect arguments to EXECUTE");
    t.error("EXECUTE q", 1243, "Unknown prepared statement handler (q) given to EXECUTE");
    t.ok("SET @sql = 'SELECT 5'");
    t.ok("PREPARE P FROM @sql");
    t.expect("EXECUTE p", &["5"]);
    t.ok("DEALLOCATE PREPARE p");
    t.error("DEALLOCATE PREPARE p", 1243, "Unknown prepared statement handler (p) given to DEALLOCATE PREPARE");
    t.error("PREPARE p FROM 'EXECUTE q'", 1295, "This command is not supported in the prepared statement protocol yet");
}

#[test]
fn select_limit_and_safe_updates() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, n INT, KEY (n))");
    t.ok("INSERT INTO t VALUES (1,1),(2,2),(3,3)");
    t.ok("SET sql_select_limit = 2");
    t.expect("SELECT id FROM t ORDER BY id", &["1", "2"]);
    t.expect("SELECT id FROM t ORDER BY id LIMIT 3", &["1", "2", "3"]);
    t.ok("SET sql_select_limit = DEFAULT");
    t.expect("SELECT id FROM t ORDER BY id", &["1", "2", "3"]);
    t.ok("SET sql_safe_updates = 1");
    t.code("UPDATE t SET n = 0", 1175);
    t.code("DELETE FROM t", 1175);
    t.expect("UPDATE t SET n = 0 WHERE id = 1", &["OK 1"]);
    t.expect("DELETE FROM t LIMIT 1", &["OK 1"]);
}

#[test]
fn a_select_can_be_limited_in_time() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT)");
    for _ in 0..3 {
        t.ok(&format!("INSERT INTO t (n) VALUES {}", vec!["(1)"; 200].join(",")));
    }
    t.ok("SET max_execution_time = 30");
    t.error(
        "SELECT COUNT(*) FROM t a, t b, t c WHERE a.n + b.n > c.n + a.id - b.id",
        3024,
        "Query execution was interrupted, maximum statement execution time exceeded",
    );
    t.expect("SELECT COUNT(*) FROM t", &["600"]);
}
