//! `profiling`, and the variables whose values are looked at when they are set.

use super::server;
use rauk_types::MysqlError;

#[test]
fn statements_are_profiled_while_the_variable_is_on() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (a INT PRIMARY KEY)");
    t.expect("SHOW PROFILES", &[]);
    t.ok("SET profiling = 1");
    t.ok("INSERT INTO t VALUES (1), (2)");
    t.expect("SELECT COUNT(*) FROM t", &["2"]);
    t.code("SELECT * FROM nowhere", 1146);
    t.ok("CREATE USER u IDENTIFIED BY 'secret'");
    let (sink, result) = t.collect("SHOW PROFILES");
    result.unwrap();
    let rows = sink.last().unwrap();
    let text = |row: usize| rows.text(row, 2);
    assert_eq!(text(0).as_deref(), Some("INSERT INTO t VALUES (1), (2)"));
    assert_eq!(text(1).as_deref(), Some("SELECT COUNT(*) FROM t"));
    assert_eq!(text(2).as_deref(), Some("SELECT * FROM nowhere"));
    assert_eq!(text(3), None, "a password is not shown");
    // Neither SHOW PROFILES nor SHOW PROFILE is one.
    t.expect("SELECT COUNT(DISTINCT query_id), MAX(query_id) FROM information_schema.profiling", &["4|4"]);
    let stages = "SELECT state FROM information_schema.profiling WHERE query_id = 2 ORDER BY seq";
    let stages = t.run(stages);
    assert!(stages.starts_with("starting\n") && stages.ends_with("\nexecuting\nquery end"), "{stages}");
    t.expect("SELECT SUM(duration) >= 0 FROM information_schema.profiling WHERE query_id = 1", &["1"]);
    let names = t.names("SHOW PROFILE CPU, BLOCK IO, SOURCE FOR QUERY 2");
    assert_eq!(names[..5], ["Status", "Duration", "CPU_user", "CPU_system", "Block_ops_in"]);
    assert_eq!(names.len(), 9);
    t.expect("SHOW PROFILE FOR QUERY 99", &[]);
    let (sink, result) = t.collect("SHOW PROFILE FOR QUERY 1 LIMIT 1 OFFSET 1");
    result.unwrap();
    assert_eq!(sink.last().unwrap().text(0, 0).as_deref(), Some("executing"));
    t.code("SHOW PROFILE NONSENSE", 1064);
    // The oldest make room.
    t.ok("SET profiling_history_size = 2");
    t.ok("DO 1");
    t.expect("SELECT MIN(query_id) + 1 = MAX(query_id) FROM information_schema.profiling", &["1"]);
    t.ok("SET profiling = 0");
    t.ok("DO 2");
    t.expect("SELECT COUNT(DISTINCT query_id) FROM information_schema.profiling", &["2"]);
    // Another session sees none of it.
    server.session().expect("SELECT COUNT(*) FROM information_schema.profiling", &["0"]);
}

#[test]
fn values_that_nothing_follows_are_refused() {
    let server = server();
    let mut t = server.session();
    t.error("SET default_storage_engine = 'Wonder'", 1286, "Unknown storage engine 'Wonder'");
    t.ok("SET default_storage_engine = 'MyISAM'");
    t.code("SET gtid_next = '3E11FA47-71CA-11E1-9E33-C80AA9429562:23'", 1781);
    t.ok("SET gtid_next = 'AUTOMATIC'");
    t.code("SET lc_messages = 'nowhere'", 1649);
    t.code("SET sql_warnings = ON", 1235);
    for dialect in ["ORACLE", "POSTGRESQL", "MSSQL", "DB2", "MAXDB", "MYSQL40", "MYSQL323"] {
        t.code(&format!("SET sql_mode = '{dialect}'"), 1231);
    }
    t.code("SET sql_mode = 512", 1231);
    t.ok("SET sql_mode = 'NO_AUTO_CREATE_USER,NO_FIELD_OPTIONS'");
    t.expect("SELECT @@sql_mode", &[""]);
    t.code("SET end_markers_in_json = ON", 1235);
    t.code("SET show_old_temporals = ON", 1235);
    t.code("SET proxy_user = 'x'", 1238);
    t.code("SET max_digest_length = 5", 1238);
}

#[test]
fn a_hash_is_shown_and_read_in_hex() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE USER u IDENTIFIED WITH mysql_native_password BY 'secret'");
    t.ok("SET print_identified_with_as_hex = ON");
    let (sink, result) = t.collect("SHOW CREATE USER u");
    result.unwrap();
    let text = sink.last().unwrap().text(0, 0).unwrap();
    assert!(text.contains("IDENTIFIED WITH 'mysql_native_password' AS 0x2A"), "{text}");
    t.ok(&text.replace("`u`", "`same`"));
    t.expect("SELECT COUNT(DISTINCT authentication_string) FROM mysql.user WHERE user IN ('u', 'same')", &["1"]);
    t.code("CREATE USER odd IDENTIFIED WITH mysql_native_password AS 0x2A1", 1064);
}

#[test]
fn timeouts_are_the_sessions() -> Result<(), MysqlError> {
    let server = server();
    let mut t = server.session();
    t.ok("SET net_read_timeout = 7, net_write_timeout = 8, wait_timeout = 9");
    let seconds = |t: &super::Test| {
        let (idle, read, write) = t.session.timeouts();
        (idle.as_secs(), read.as_secs(), write.as_secs())
    };
    assert_eq!(seconds(&t), (9, 7, 8));
    t.ok("SET GLOBAL interactive_timeout = 11, GLOBAL connect_timeout = 12");
    assert_eq!(t.session.engine.connect_timeout().as_secs(), 12);
    let mut client = super::Client::local(77);
    assert_eq!(seconds(&super::Test { session: t.session.engine.connect(client.clone())? }), (28800, 30, 60));
    (client.connection_id, client.interactive) = (78, true);
    assert_eq!(seconds(&super::Test { session: t.session.engine.connect(client)? }).0, 11);
    Ok(())
}
