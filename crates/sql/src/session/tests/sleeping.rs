//! SLEEP wherever an expression stands, how often it sleeps, and what ends it; KILL.

use super::{Server, server};
use std::time::{Duration, Instant};

#[test]
fn sleep_stands_wherever_an_expression_does() {
    let server = server();
    let mut t = server.session();
    t.expect("SELECT SLEEP(0.01)", &["0"]);
    t.ok("DO SLEEP(0), SLEEP(0.001)");
    assert_eq!(t.names("SELECT sleep( 0 )"), ["sleep( 0 )"]);
    assert_eq!(t.names("SELECT SLEEP(0) AS s LIMIT 1"), ["s"]);
    t.expect("SELECT SLEEP(0.001), 1, 'a'", &["0|1|a"]);
    t.expect("SELECT SLEEP(0.001) LIMIT 0", &[]);
    t.expect("SELECT SLEEP(0.001) AS s HAVING s", &[]);
    t.expect("SELECT 1 WHERE SLEEP(0.001) = 0", &["1"]);
    t.expect("SELECT IF(SLEEP(0.001) + SLEEP(0.002), 'x', 'y')", &["y"]);
    t.expect("SELECT (SELECT SLEEP(0.001)) + 1", &["1"]);
    t.expect("SELECT SLEEP(0.001) UNION ALL SELECT 2", &["0", "2"]);
    t.expect("SELECT COUNT(*), SUM(SLEEP(0.001)) FROM (SELECT 1 UNION SELECT 2) x", &["2|0"]);
    t.ok("SELECT SLEEP(0.001) INTO @x");
    t.expect("SELECT @x", &["0"]);
    t.ok("SET @y = SLEEP(0.001) + 5");
    t.expect("SELECT @y", &["5"]);
    t.code("SELECT SLEEP()", 1582);
    t.code("SELECT SLEEP(1, 2)", 1582);
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, n INT)");
    t.ok("INSERT INTO t VALUES (1, SLEEP(0.001)), (2, SLEEP(0.001) + 1), (3, 2)");
    t.expect("SELECT id, SLEEP(0.001) + n FROM t ORDER BY id", &["1|0", "2|1", "3|2"]);
    t.expect("SELECT id FROM t WHERE id = 2 AND SLEEP(0.001) = 0", &["2"]);
    t.expect("SELECT id FROM t ORDER BY SLEEP(0.0001), id DESC", &["3", "2", "1"]);
    t.expect(
        "SELECT a.id FROM t a LEFT JOIN t b ON b.id = a.id + 1 AND SLEEP(0.0001) = 0 ORDER BY 1",
        &["1", "2", "3"],
    );
    t.expect("SELECT n % 2, MAX(SLEEP(0.001)) FROM t GROUP BY n % 2 ORDER BY 1", &["0|0", "1|0"]);
    t.expect("SELECT id, SUM(SLEEP(0.0001)) OVER (ORDER BY id) FROM t", &["1|0", "2|0", "3|0"]);
    t.expect("SELECT DISTINCT SLEEP(0.0001) FROM t", &["0"]);
    t.expect("UPDATE t SET n = n + 10 WHERE SLEEP(0.001) = 0 AND id < 3", &["OK 2"]);
    t.expect("UPDATE t SET n = n + SLEEP(0.001) + 1 WHERE id = 3", &["OK 1"]);
    t.expect("DELETE FROM t WHERE id = 1 AND SLEEP(0.001) = 0", &["OK 1"]);
    t.expect("SELECT * FROM t", &["2|11", "3|3"]);
    t.ok("CREATE VIEW v AS SELECT id, SLEEP(0.001) AS s FROM t");
    t.expect("SELECT * FROM v", &["2|0", "3|0"]);
    let prepared = t.prepare("SELECT SLEEP(?), ?");
    assert_eq!(t.prepared(prepared.id, &[rauk_types::Value::Int(0), rauk_types::Value::Int(7)]), "0|7");
}

#[test]
fn sleep_refuses_null_and_negative_numbers() {
    let server = server();
    let mut t = server.session();
    t.error("SELECT SLEEP(NULL)", 1210, "Incorrect arguments to sleep.");
    t.error("SELECT SLEEP(-1)", 1210, "Incorrect arguments to sleep.");
    t.ok("SET sql_mode = ''");
    t.expect("SELECT SLEEP(NULL), SLEEP(-1)", &["0|0"]);
    t.expect("SHOW COUNT(*) WARNINGS", &["2"]);
}

/// It sleeps once for each row that reaches it, and no more.
#[test]
fn sleep_sleeps_for_each_row() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, n INT)");
    t.ok("INSERT INTO t VALUES (1, 1), (2, 1), (3, 2), (4, 2), (5, 3)");
    for (sql, times) in [
        ("SELECT id, SLEEP(0.04) FROM t", 5),
        ("SELECT id, SLEEP(0.04), SLEEP(0.04) FROM t", 10),
        ("SELECT id FROM t WHERE SLEEP(0.04) = 0", 5),
        ("SELECT id FROM t WHERE n = 2 AND SLEEP(0.04) = 0", 2),
        ("SELECT id FROM t WHERE n = 2 OR SLEEP(0.04)", 3),
        ("SELECT id, SLEEP(0.04) FROM t LIMIT 2", 2),
        ("SELECT n, SUM(SLEEP(0.04)) FROM t GROUP BY n", 5),
        ("SELECT n, SLEEP(0.04) FROM t GROUP BY n", 3),
        ("SELECT id, (SELECT SLEEP(0.04) FROM t u WHERE u.id = t.n) FROM t", 3),
        ("UPDATE t SET n = n WHERE SLEEP(0.04) = 0", 5),
        ("SELECT a.id FROM t a JOIN t b ON b.id = a.n AND SLEEP(0.04) = 0", 5),
        ("SELECT RAND() < 2, SLEEP(0.04), (SELECT MAX(id) FROM t) FROM t", 5),
    ] {
        let began = Instant::now();
        t.ok(sql);
        let least = Duration::from_millis(40) * times;
        let took = began.elapsed();
        assert!(took >= least && took < least * 2 + Duration::from_millis(150), "{sql}: {took:?}");
    }
}

/// Interrupts what another session runs, and gives the answer it has then.
fn interrupted(server: &Server, sql: &'static str) -> String {
    let mut other = server.session();
    let id = other.session.process.id;
    let sleeper = std::thread::spawn(move || other.run(sql));
    while !server.engine.processes.find(id).unwrap().is_running() {
        std::thread::yield_now();
    }
    std::thread::sleep(Duration::from_millis(20));
    server.session().ok(&format!("KILL QUERY {id}"));
    sleeper.join().unwrap()
}

#[test]
fn a_sleep_ends_when_it_is_killed() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY)");
    t.ok("INSERT INTO t VALUES (1), (2)");
    const KILLED: &str = "ERROR 1317: Query execution was interrupted";
    let began = Instant::now();
    assert_eq!(interrupted(&server, "SELECT SLEEP(100)"), "1");
    assert_eq!(interrupted(&server, "SELECT SLEEP(100) AS a, 7"), "1|7");
    assert_eq!(interrupted(&server, "SELECT 1 FROM DUAL WHERE SLEEP(100)"), KILLED);
    assert_eq!(interrupted(&server, "SELECT SLEEP(100) FROM t"), KILLED);
    assert_eq!(interrupted(&server, "SELECT id FROM t WHERE SLEEP(100)"), KILLED);
    assert_eq!(interrupted(&server, "SELECT (SELECT SLEEP(100))"), KILLED);
    assert_eq!(interrupted(&server, "INSERT INTO t VALUES (SLEEP(100) + 9)"), KILLED);
    assert_eq!(interrupted(&server, "UPDATE t SET id = id + 10 WHERE SLEEP(100) = 0"), KILLED);
    assert!(began.elapsed() < Duration::from_secs(10));
    t.expect("SELECT id FROM t", &["1", "2"]);
    t.ok("SET max_execution_time = 20");
    t.expect("SELECT SLEEP(100)", &["1"]);
    t.code("SELECT SLEEP(100) FROM t", 3024);
    t.code("SELECT 1 FROM DUAL WHERE SLEEP(100)", 3024);
    t.expect("SELECT /*+ MAX_EXECUTION_TIME(10) */ SLEEP(100)", &["1"]);
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn killing() {
    let server = server();
    let mut t = server.session();
    t.error("KILL 4711", 1094, "Unknown thread id: 4711");
    let mut third = server.session();
    t.ok(&format!("KILL {}", third.session.process.id));
    assert_eq!(third.run("SELECT 1"), "ERROR 1317: Query execution was interrupted");
    t.code("KILL CONNECTION_ID()", 1317);
}

#[test]
fn a_benchmark_ends_when_it_is_killed_or_out_of_time() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY)");
    t.ok("INSERT INTO t VALUES (1), (2)");
    t.expect("SELECT id, BENCHMARK(1000, id + (SELECT MAX(id) FROM t)) FROM t", &["1|0", "2|0"]);
    t.code("SELECT BENCHMARK(2, SLEEP(1))", 1235);
    t.ok("SET @n = 0");
    t.ok("DO BENCHMARK(5, @n := @n + 1)");
    t.expect("SELECT @n", &["5"]);
    let began = Instant::now();
    let killed = "ERROR 1317: Query execution was interrupted";
    assert_eq!(interrupted(&server, "SELECT BENCHMARK(1000000000000, 1 + 1)"), killed);
    assert_eq!(interrupted(&server, "DO BENCHMARK(18446744073709551615, SHA2('a', 256))"), killed);
    t.ok("SET max_execution_time = 20");
    t.code("SELECT BENCHMARK(1000000000000, NULL)", 3024);
    t.code("SELECT id FROM t WHERE BENCHMARK(1000000000000, MD5(id))", 3024);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}
