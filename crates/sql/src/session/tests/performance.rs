//! performance_schema and sys: what is counted, for whom it is shown, and what TRUNCATE sets back.

use super::server;
use crate::session::system;
use rauk_types::Value;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const BY_DIGEST: &str = "performance_schema.events_statements_summary_by_digest";

#[test]
fn statements_count_for_their_digest() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT)");
    t.ok("INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)");
    for id in 1..=3 {
        t.run(&format!("SELECT a FROM t WHERE id = {id}"));
    }
    t.run("select /* the same */ a from t where id = 7");
    let prepared = t.prepare("SELECT a FROM t WHERE id = ?");
    t.prepared(prepared.id, &[Value::Int(1)]);
    t.run("SELECT a FROM t WHERE a > 15 ORDER BY a LIMIT 1");
    t.code("INSERT INTO t VALUES (1, 1)", 1062);
    t.ok("UPDATE t SET a = a + 1 WHERE id < 3");
    let sums = format!(
        "SELECT COUNT_STAR, SUM_ERRORS, SUM_ROWS_AFFECTED, SUM_ROWS_SENT, SUM_ROWS_EXAMINED, SUM_SELECT_SCAN, SUM_NO_INDEX_USED, SUM_SORT_ROWS FROM {BY_DIGEST} WHERE SCHEMA_NAME = 'test' AND DIGEST_TEXT = "
    );
    t.expect(&format!("{sums}'SELECT `a` FROM `t` WHERE `id` = ?'"), &["5|0|0|4|5|0|0|0"]);
    t.expect(&format!("{sums}'SELECT `a` FROM `t` WHERE `a` > ? ORDER BY `a` LIMIT ?'"), &["1|0|0|1|3|1|1|1"]);
    t.expect(&format!("{sums}'INSERT INTO `t` VALUES (...) /* , ... */'"), &["1|0|3|0|0|0|0|0"]);
    t.expect(&format!("{sums}'INSERT INTO `t` VALUES (...)'"), &["1|1|0|0|0|0|0|0"]);
    t.expect(&format!("{sums}'CREATE TABLE `t` ( `id` INTEGER PRIMARY KEY , `a` INTEGER )' OR DIGEST_TEXT LIKE 'CREATE TABLE `t`%'"), &["1|0|0|0|0|0|0|0"]);
    t.expect(
        &format!("SELECT QUERY_SAMPLE_TEXT IS NULL, DIGEST = STATEMENT_DIGEST('SELECT a FROM t WHERE id = 5') FROM {BY_DIGEST} WHERE DIGEST_TEXT = 'SELECT `a` FROM `t` WHERE `id` = ?'"),
        &["1|1"],
    );
    // The clock stands still in tests; times of statements follow it.
    let update = "DIGEST_TEXT LIKE 'UPDATE%'";
    t.expect(&format!("SELECT COUNT_STAR, SUM_ROWS_AFFECTED, SUM_TIMER_WAIT, FIRST_SEEN, LAST_SEEN FROM {BY_DIGEST} WHERE {update}"), &["1|2|0|2024-02-29 12:34:56.789000|2024-02-29 12:34:56.789000"]);
    t.expect("SELECT SUM(COUNT_STAR) > 8, SUM(SUM_ERRORS) FROM performance_schema.events_statements_summary_global_by_event_name", &["1|1"]);
    t.expect(
        "SELECT COUNT_STAR, SUM_ROWS_AFFECTED FROM performance_schema.events_statements_summary_by_user_by_event_name WHERE USER = 'root' AND EVENT_NAME = 'statement/sql/update'",
        &["1|2"],
    );
    t.ok(&format!("TRUNCATE TABLE {BY_DIGEST}"));
    t.run("SELECT a FROM t WHERE id = 1");
    t.prepared(prepared.id, &[Value::Int(1)]);
    t.expect(&format!("{sums}'SELECT `a` FROM `t` WHERE `id` = ?'"), &["2|0|0|2|2|0|0|0"]);
    t.ok("TRUNCATE performance_schema.events_statements_summary_global_by_event_name");
    t.expect(
        "SELECT COUNT_STAR FROM performance_schema.events_statements_summary_global_by_event_name WHERE EVENT_NAME = 'statement/sql/update'",
        &["0"],
    );
    t.code("TRUNCATE performance_schema.threads", 1044);
    t.code("TRUNCATE performance_schema.nothing", 1146);
    t.code("DELETE FROM performance_schema.setup_consumers", 1142);
}

#[test]
fn waits_for_locks_count_for_their_statement() {
    let server = server();
    let (mut a, mut b) = (server.session(), server.session());
    a.ok("CREATE TABLE t (id INT PRIMARY KEY, n INT)");
    a.ok("INSERT INTO t VALUES (1, 1)");
    b.ok("UPDATE t SET n = 2 WHERE id = 1");
    let time = format!("SELECT SUM_LOCK_TIME FROM {BY_DIGEST} WHERE DIGEST_TEXT LIKE 'UPDATE%'");
    a.expect(&time, &["0"]);
    a.ok("BEGIN");
    a.ok("DELETE FROM t WHERE id = 1");
    b.ok("SET innodb_lock_wait_timeout = 1");
    b.code("UPDATE t SET n = 3 WHERE id = 1", 1205);
    // A second, in picoseconds; the clock of waits goes on while that of times stands still.
    a.expect(&time.replace("SELECT SUM_LOCK_TIME", "SELECT SUM_LOCK_TIME DIV 1000000000000"), &["1"]);
    a.ok("ROLLBACK");
}

#[test]
fn rows_count_for_their_tables_and_indexes() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, KEY by_a (a), KEY by_b (b), KEY by_ab (a, b))");
    t.ok("INSERT INTO t VALUES (1, 10, 5), (2, 20, 5), (3, 30, 5)");
    t.run("SELECT * FROM t WHERE id = 1");
    t.run("SELECT id FROM t FORCE INDEX (by_a) WHERE a = 20");
    t.run("SELECT SUM(b) FROM t IGNORE INDEX (by_b, by_ab)");
    t.ok("UPDATE t SET b = 6 WHERE id = 1");
    t.ok("DELETE FROM t WHERE id = 3");
    t.expect(
        "SELECT COUNT_INSERT, COUNT_UPDATE, COUNT_DELETE, COUNT_FETCH > 5, COUNT_STAR = COUNT_READ + COUNT_WRITE FROM performance_schema.table_io_waits_summary_by_table WHERE OBJECT_NAME = 't'",
        &["3|1|1|1|1"],
    );
    t.expect(
        "SELECT INDEX_NAME, COUNT_FETCH > 0 FROM performance_schema.table_io_waits_summary_by_index_usage WHERE OBJECT_NAME = 't' ORDER BY INDEX_NAME",
        &["NULL|1", "by_a|1", "by_ab|0", "by_b|0", "PRIMARY|1"],
    );
    t.expect(
        "SELECT index_name FROM sys.schema_unused_indexes WHERE object_schema = 'test' ORDER BY 1",
        &["by_ab", "by_b"],
    );
    t.expect(
        "SELECT redundant_index_name, dominant_index_name, sql_drop_index FROM sys.schema_redundant_indexes WHERE table_schema = 'test'",
        &["by_a|by_ab|ALTER TABLE `test`.`t` DROP INDEX `by_a`"],
    );
    t.expect("SELECT object_name, rows_full_scanned FROM sys.schema_tables_with_full_table_scans WHERE object_schema = 'test'", &["t|3"]);
    t.ok("TRUNCATE performance_schema.table_io_waits_summary_by_table");
    t.expect(
        "SELECT rows_fetched, rows_inserted FROM sys.schema_table_statistics WHERE table_schema = 'test'",
        &["0|0"],
    );
}

#[test]
fn rows_of_user_partitions_count_for_their_table() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE p (id INT PRIMARY KEY, a INT, UNIQUE by_a (a, id)) PARTITION BY HASH (id) PARTITIONS 4");
    t.ok("INSERT INTO p VALUES (1, 10), (2, 20), (3, 30)");
    t.run("SELECT * FROM p WHERE id = 1");
    t.run("SELECT SUM(a) FROM p IGNORE INDEX (by_a)");
    t.ok("DELETE FROM p WHERE id = 3");
    let counts = "SELECT COUNT_INSERT, COUNT_DELETE, COUNT_FETCH > 3 FROM performance_schema.table_io_waits_summary_by_table WHERE OBJECT_NAME = 'p'";
    t.expect(counts, &["3|1|1"]);
    t.ok("ALTER TABLE p ALTER COLUMN a SET DEFAULT 7");
    t.ok("INSERT INTO p (id) VALUES (5)");
    t.expect(counts, &["4|1|1"]);
    t.ok("TRUNCATE performance_schema.table_io_waits_summary_by_table");
    t.expect(counts, &["0|0|0"]);
}

#[test]
fn waits_for_row_locks_are_shown() {
    let server = server();
    let (mut a, mut b, mut c) = (server.session(), server.session(), server.session());
    a.ok("CREATE TABLE t (id INT PRIMARY KEY, n INT)");
    a.ok("INSERT INTO t VALUES (1, 1)");
    a.ok("BEGIN");
    a.ok("UPDATE t SET n = 2 WHERE id = 1");
    let (own, other) = (a.session.process.id, b.session.process.id);
    let before = server.engine.database.counters().lock_waits;
    let waiting = std::thread::spawn(move || {
        let answer = b.run("UPDATE t SET n = 3 WHERE id = 1");
        (b, answer)
    });
    let begun = Instant::now();
    while server.engine.database.counters().lock_waits == before {
        assert!(begun.elapsed() < Duration::from_secs(10), "it does not wait");
        std::thread::yield_now();
    }
    c.expect(
        "SELECT OBJECT_SCHEMA, OBJECT_NAME, INDEX_NAME, LOCK_TYPE, LOCK_MODE, LOCK_STATUS, LOCK_DATA, THREAD_ID FROM performance_schema.data_locks ORDER BY LOCK_STATUS",
        &[
            &format!("test|t|PRIMARY|RECORD|X,REC_NOT_GAP|GRANTED|1|{own}"),
            &format!("test|t|PRIMARY|RECORD|X,REC_NOT_GAP|WAITING|1|{other}"),
        ],
    );
    c.expect(
        "SELECT locked_table, waiting_pid, waiting_query, blocking_pid, sql_kill_blocking_query FROM sys.innodb_lock_waits",
        &[&format!("`test`.`t`|{other}|UPDATE t SET n = 3 WHERE id = 1|{own}|KILL QUERY {own}")],
    );
    c.expect(
        "SELECT trx_state, trx_mysql_thread_id, trx_isolation_level, trx_requested_lock_id IS NULL FROM information_schema.INNODB_TRX ORDER BY trx_state",
        &[&format!("LOCK WAIT|{other}|REPEATABLE READ|0"), &format!("RUNNING|{own}|REPEATABLE READ|1")],
    );
    let status = c.run("SHOW ENGINE INNODB STATUS");
    assert!(status.contains("LOCK WAIT") && status.contains("UPDATE t SET n = 3"), "{status}");
    a.ok("COMMIT");
    let (_b, answer) = waiting.join().expect("the other session ends");
    assert_eq!(answer, "OK 1");
    c.expect("SELECT COUNT(*) FROM performance_schema.data_lock_waits", &["0"]);
    c.expect(
        "SELECT COUNT_STAR, SUM_TIMER_WAIT > 0, MAX_TIMER_WAIT <= SUM_TIMER_WAIT FROM performance_schema.events_waits_summary_global_by_event_name WHERE EVENT_NAME LIKE 'wait/lock/row/%'",
        &["1|1|1"],
    );
    c.expect("SELECT total FROM sys.waits_global_by_latency", &["1"]);
}

/// Locks that nobody waits for are shown, too, and the two tables can be joined by the ids of locks.
#[test]
fn all_row_locks_are_shown() {
    let server = server();
    let (mut a, mut b, mut c) = (server.session(), server.session(), server.session());
    for statement in [
        "CREATE TABLE p (code VARCHAR(10), n INT, PRIMARY KEY (n, code))",
        "CREATE TABLE t (id INT PRIMARY KEY, u INT UNIQUE, d DATE, KEY (d))",
        "CREATE TABLE c (id BINARY(2) PRIMARY KEY, t INT, FOREIGN KEY (t) REFERENCES t (id))",
        "CREATE TABLE h (a INT)",
        "INSERT INTO p VALUES ('it''s', 1), ('b', 2)",
        "INSERT INTO t VALUES (1, 10, '2026-01-02'), (2, 20, NULL)",
    ] {
        a.ok(statement);
    }
    let list = "SELECT OBJECT_NAME, INDEX_NAME, LOCK_MODE, LOCK_STATUS, LOCK_DATA, THREAD_ID FROM performance_schema.data_locks ORDER BY 1, 2, 5, 3";
    c.expect(list, &[]);
    a.ok("BEGIN");
    a.run("SELECT * FROM p FOR SHARE");
    a.ok("INSERT INTO c VALUES ('xy', 1)");
    a.ok("INSERT INTO t VALUES (3, 30, NULL)");
    a.ok("INSERT INTO h VALUES (5)");
    a.ok("DELETE FROM t WHERE id = 2");
    let own = a.session.process.id;
    let expected = [
        "c|PRIMARY|X,REC_NOT_GAP|GRANTED|0x7879",
        "h|GEN_CLUST_INDEX|X,REC_NOT_GAP|GRANTED|1",
        "p|PRIMARY|S,REC_NOT_GAP|GRANTED|1, 'it''s'",
        "p|PRIMARY|S,REC_NOT_GAP|GRANTED|2, 'b'",
        "t|PRIMARY|KEY_SHARE|GRANTED|1",
        "t|PRIMARY|X,REC_NOT_GAP|GRANTED|2",
        "t|PRIMARY|X,REC_NOT_GAP|GRANTED|3",
        "t|u|X,REC_NOT_GAP|GRANTED|NULL",
        "t|u|X,REC_NOT_GAP|GRANTED|NULL",
    ];
    let expected: Vec<String> = expected.iter().map(|row| format!("{row}|{own}")).collect();
    assert_eq!(c.run(list), expected.join("\n"));
    // A fresh row whose lock somebody asks for is listed once.
    b.ok("SET innodb_lock_wait_timeout = 1");
    b.code("SELECT * FROM t WHERE id = 3 FOR UPDATE", 1205);
    assert_eq!(c.run(list), expected.join("\n"));
    a.ok("ROLLBACK");
    c.expect(list, &[]);
    // Ranges of SERIALIZABLE.
    a.ok("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE");
    a.ok("BEGIN");
    a.run("SELECT id FROM t FORCE INDEX (d) WHERE d > '2026-01-01'");
    let rows = c.run(list);
    assert!(rows.contains("t|d|S,GAP|GRANTED|NULL") && rows.contains("t|PRIMARY|S,REC_NOT_GAP|GRANTED|1"), "{rows}");
    a.ok("COMMIT");
    c.expect(list, &[]);
    // Many are listed in slices, and no more than 50 000.
    a.ok("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    a.ok("SET cte_max_recursion_depth = 100000");
    let numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000) SELECT i FROM n";
    a.ok("BEGIN");
    a.ok(&format!("INSERT INTO h {numbers} LIMIT 3000"));
    c.expect("SELECT COUNT(*), COUNT(DISTINCT LOCK_DATA) FROM performance_schema.data_locks", &["3000|3000"]);
    a.ok("ROLLBACK");
    a.ok("BEGIN");
    a.ok(&format!("INSERT INTO h {numbers}"));
    c.expect("SELECT COUNT(*) FROM performance_schema.data_locks", &["50000"]);
    a.ok("ROLLBACK");
}

#[test]
fn who_holds_up_a_ddl_is_shown() {
    let server = server();
    let (mut a, mut b, mut c) = (server.session(), server.session(), server.session());
    a.ok("CREATE TABLE t (id INT PRIMARY KEY, n INT)");
    a.ok("CREATE TABLE u (id INT PRIMARY KEY)");
    let locks = "SELECT OBJECT_NAME, LOCK_TYPE, LOCK_STATUS, OWNER_THREAD_ID FROM performance_schema.metadata_locks ORDER BY OBJECT_NAME, LOCK_TYPE";
    c.expect(locks, &[]);
    a.ok("BEGIN");
    a.run("SELECT * FROM t WHERE id = 1");
    a.ok("INSERT INTO u VALUES (1)");
    let (own, other) = (a.session.process.id, b.session.process.id);
    let held = [format!("t|SHARED_READ|GRANTED|{own}"), format!("u|SHARED_WRITE|GRANTED|{own}")];
    c.expect(locks, &[&held[0], &held[1]]);
    let waiting = std::thread::spawn(move || {
        let answer = b.run("ALTER TABLE t ADD COLUMN m INT");
        (b, answer)
    });
    let begun = Instant::now();
    let waits = "SELECT object_name, waiting_pid, waiting_query, blocking_pid, blocking_lock_type FROM sys.schema_table_lock_waits";
    let expected = format!("t|{other}|ALTER TABLE t ADD COLUMN m INT|{own}|SHARED_READ");
    while c.run(waits) != expected {
        assert!(begun.elapsed() < Duration::from_secs(10), "{}", c.run(locks));
        std::thread::yield_now();
    }
    a.ok("COMMIT");
    let (mut b, answer) = waiting.join().expect("the other session ends");
    assert_eq!(answer, "OK 0");
    c.expect(locks, &[]);
    b.ok("LOCK TABLES t WRITE");
    c.expect(locks, &[&format!("t|SHARED_NO_READ_WRITE|GRANTED|{other}")]);
    b.ok("UNLOCK TABLES");
    c.expect(locks, &[]);
}

#[test]
fn sessions_and_accounts_are_listed() {
    let server = server();
    let mut t = server.session();
    let id = t.session.process.id;
    t.expect(
        "SELECT PROCESSLIST_ID, PROCESSLIST_USER, PROCESSLIST_DB, PROCESSLIST_COMMAND FROM performance_schema.threads",
        &[&format!("{id}|root|test|Query")],
    );
    t.expect(
        "SELECT USER, HOST, CURRENT_CONNECTIONS, TOTAL_CONNECTIONS FROM performance_schema.accounts",
        &["root|localhost|1|1"],
    );
    drop(server.session());
    t.expect("SELECT USER, CURRENT_CONNECTIONS, TOTAL_CONNECTIONS FROM performance_schema.users", &["root|1|2"]);
    t.expect("SELECT HOST, TOTAL_CONNECTIONS FROM performance_schema.hosts", &["localhost|2"]);
    t.expect(
        "SELECT conn_id, user, command, current_statement LIKE 'SELECT%' FROM sys.session",
        &[&format!("{id}|root@localhost|Query|1")],
    );
    t.expect(
        "SELECT user, current_connections, total_connections, unique_hosts FROM sys.user_summary",
        &["root|1|2|1"],
    );
    t.ok("SET GLOBAL max_connections = 77");
    t.expect("SELECT VARIABLE_SOURCE, MIN_VALUE FROM performance_schema.variables_info WHERE VARIABLE_NAME = 'max_connections'", &["DYNAMIC|1"]);
    t.ok("SET PERSIST max_connections = 78");
    t.expect("SELECT * FROM performance_schema.persisted_variables", &["max_connections|78"]);
    t.expect(
        "SELECT VARIABLE_SOURCE FROM performance_schema.variables_info WHERE VARIABLE_NAME = 'max_connections'",
        &["PERSISTED"],
    );
}

#[test]
fn what_others_run_is_shown_to_those_who_may_see_it() {
    let server = server();
    let mut root = server.session();
    root.ok("CREATE USER plain@localhost IDENTIFIED BY 'secret word'");
    let mut plain = server.connect("plain", "127.0.0.1").expect("it connects");
    plain.code(&format!("SELECT * FROM {BY_DIGEST}"), 1142);
    plain.code("SELECT * FROM performance_schema.threads", 1142);
    plain.code("SELECT * FROM sys.statement_analysis", 1142);
    plain.code("SELECT * FROM sys.version", 1142);
    plain.code("SHOW ENGINE INNODB STATUS", 1227);
    assert!(!plain.run("SELECT * FROM performance_schema.global_variables").starts_with("ERROR"));
    assert!(!plain.run("SELECT * FROM performance_schema.session_account_connect_attrs").starts_with("ERROR"));
    root.ok("GRANT SELECT ON performance_schema.* TO plain@localhost");
    assert!(!plain.run("SELECT * FROM performance_schema.threads").starts_with("ERROR"));
    plain.code(&format!("TRUNCATE {BY_DIGEST}"), 1142);
    // No text that may have a password in it is kept.
    server.clock.fetch_add(1000, Ordering::Relaxed);
    root.expect(&format!("SELECT QUERY_SAMPLE_TEXT FROM {BY_DIGEST} WHERE DIGEST_TEXT LIKE 'CREATE USER%'"), &["NULL"]);
}

#[test]
fn every_view_of_sys_can_be_read() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT)");
    t.ok("INSERT INTO t (a) VALUES (1), (2)");
    for name in system::sys_views().keys() {
        let answer = t.run(&format!("SELECT * FROM sys.`{name}`"));
        assert!(!answer.starts_with("ERROR"), "{name}: {answer}");
        assert!(!t.run(&format!("SHOW COLUMNS FROM sys.`{name}`")).is_empty(), "{name}");
    }
    t.expect("SELECT sys_version, mysql_version = VERSION() FROM sys.version", &["2.1.2|1"]);
    t.expect(
        "SELECT table_name, column_name, is_signed, max_value, auto_increment FROM sys.schema_auto_increment_columns",
        &["t|id|1|2147483647|3"],
    );
    t.expect(
        "SELECT object_type, count FROM sys.schema_object_overview WHERE db = 'test' ORDER BY 1",
        &["BASE TABLE|1", "INDEX (BTREE)|1"],
    );
    t.expect(
        "SELECT variable, value FROM sys.sys_config WHERE variable = 'statement_truncate_len'",
        &["statement_truncate_len|64"],
    );
    t.expect(
        "SELECT sys.format_bytes(2048), sys.format_time(1000000), sys.quote_identifier('a`b'), sys.version_major()",
        &["2.00 KiB|1.00 us|`a``b`|8"],
    );
    t.expect(
        "SELECT sys.format_statement(CONCAT('a\n', REPEAT('b', 70), 'c'))",
        &[&format!("a {} ... {}c", "b".repeat(28), "b".repeat(29))],
    );
    t.code("SELECT sys.nothing(1)", 1305);
    t.code("SELECT * FROM sys.nothing", 1146);
    t.code("DROP VIEW sys.version", 1044);
    t.expect(
        "SHOW CREATE VIEW sys.version",
        &["version|CREATE ALGORITHM=UNDEFINED DEFINER=`mysql.sys`@`localhost` SQL SECURITY INVOKER VIEW `sys`.`version` AS SELECT '2.1.2' AS sys_version, VERSION() AS mysql_version|utf8mb4|utf8mb4_0900_ai_ci"],
    );
    t.code("SHOW CREATE VIEW sys.nothing", 1146);
    assert!(t.run("SHOW FULL TABLES FROM sys LIKE 'version'").ends_with("version|VIEW"));
    t.expect("SELECT TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'sys' AND TABLE_NAME = 'x$statement_analysis'", &["VIEW"]);
    assert!(
        t.run("SELECT Variable_value FROM sys.metrics WHERE Variable_name = 'memory_current_allocated'")
            .parse::<f64>()
            .is_ok()
    );
}
