//! System variables and SET.

use super::{server, server_on, server_with};
use rauk_log::MemoryDisk;

#[test]
fn reading_and_setting() {
    let server = server();
    let mut t = server.session();
    t.expect("SELECT @@version, @@autocommit, @@lower_case_table_names", &["8.0.36-rauk-0.1.0|1|0"]);
    t.ok("SET autocommit = OFF");
    t.expect("SELECT @@session.autocommit, @@global.autocommit", &["0|1"]);
    t.expect("SHOW VARIABLES LIKE 'autocommit'", &["autocommit|OFF"]);
    t.expect("SHOW GLOBAL VARIABLES WHERE Variable_name = 'autocommit'", &["autocommit|ON"]);
    t.ok("SET sql_mode = 'ANSI_QUOTES', innodb_lock_wait_timeout = 5");
    t.expect("SELECT @@sql_mode, @@innodb_lock_wait_timeout", &["ANSI_QUOTES|5"]);
    t.ok("SET sql_mode = DEFAULT");
    t.ok("SET SESSION sql_mode = CONCAT(@@sql_mode, ',PIPES_AS_CONCAT')");
    t.expect("SELECT 'a' || 'b'", &["ab"]);
    t.ok("SET @@session.time_zone = '+02:00'");
    t.expect("SELECT NOW()", &["2024-02-29 14:34:56"]);
    t.ok("SET timestamp = 86400.5");
    t.expect("SELECT NOW(1), @@timestamp", &["1970-01-02 02:00:00.5|86400.5"]);
}

#[test]
fn mistakes() {
    let server = server();
    let mut t = server.session();
    t.error("SET nonsense = 1", 1193, "Unknown system variable 'nonsense'");
    t.error("SELECT @@nonsense", 1193, "Unknown system variable 'nonsense'");
    t.error("SET version = 'x'", 1238, "Variable 'version' is a read only variable");
    t.error(
        "SET max_connections = 5",
        1229,
        "Variable 'max_connections' is a GLOBAL variable and should be set with SET GLOBAL",
    );
    t.error(
        "SET GLOBAL timestamp = 5",
        1228,
        "Variable 'timestamp' is a SESSION variable and can't be used with SET GLOBAL",
    );
    t.error("SELECT @@session.max_connections", 1238, "Variable 'max_connections' is a GLOBAL variable");
    t.error("SELECT @@global.timestamp", 1238, "Variable 'timestamp' is a SESSION variable");
    t.error("SET autocommit = 7", 1231, "Variable 'autocommit' can't be set to the value of '7'");
    t.error("SET sql_mode = 'STRICT'", 1231, "Variable 'sql_mode' can't be set to the value of 'STRICT'");
    t.error("SET wait_timeout = 'x'", 1232, "Incorrect argument type to variable 'wait_timeout'");
    t.error("SET time_zone = 'Mars'", 1298, "Unknown or incorrect time zone: 'Mars'");
    t.error("SET NAMES klingon", 1115, "Unknown character set: 'klingon'");
    t.error("SET collation_connection = 'x_ci'", 1273, "Unknown collation: 'x_ci'");
    t.ok("SET innodb_lock_wait_timeout = 0");
    t.expect("SHOW WARNINGS", &["Warning|1292|Truncated incorrect innodb_lock_wait_timeout value: '0'"]);
    // Nothing is assigned when one of several is wrong.
    t.code("SET @a = 1, nonsense = 2", 1193);
    t.expect("SELECT @a", &["NULL"]);
}

#[test]
fn reset_persist() {
    let server = server();
    let mut t = server.session();
    t.ok("SET PERSIST max_connections = 300, PERSIST wait_timeout = 100, PERSIST sort_buffer_size = 65536");
    t.error("RESET PERSIST nonsense", 3615, "Variable nonsense does not exist in persisted config file");
    t.ok("RESET PERSIST IF EXISTS nonsense");
    t.expect("SHOW WARNINGS", &["Warning|3615|Variable nonsense does not exist in persisted config file"]);
    t.ok("RESET PERSIST Max_Connections");
    let kept = "SELECT variable_name FROM performance_schema.persisted_variables ORDER BY 1";
    t.expect(kept, &["sort_buffer_size", "wait_timeout"]);
    t.expect("SELECT @@global.max_connections", &["300"]);
    t.ok("RESET PERSIST");
    t.expect(kept, &[]);
    t.expect("SELECT @@global.wait_timeout", &["100"]);
    t.code("RESET PERSIST IF EXISTS", 1064);
}

#[test]
fn where_a_dump_ends() {
    let server = server();
    let mut t = server.session();
    t.ok("SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5'");
    t.expect("SHOW WARNINGS", &["Warning|1618|<GTID_PURGED> option ignored"]);
    t.expect("SELECT @@gtid_purged", &[""]);
    t.ok("SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ ''");
    t.error("SET GLOBAL gtid_purged = 'x'", 1772, "Malformed GTID set specification 'x'.");
    t.code("SET PERSIST gtid_purged = ''", 1238);
}

#[test]
fn names_and_collations() {
    let server = server();
    let mut t = server.session();
    t.ok("SET NAMES utf8mb4 COLLATE utf8mb4_bin");
    t.expect("SELECT @@character_set_client, @@collation_connection", &["utf8mb4|utf8mb4_bin"]);
    t.expect("SELECT 'a' = 'A'", &["0"]);
    t.ok("SET NAMES utf8mb4");
    t.expect("SELECT @@collation_connection, 'a' = 'A'", &["utf8mb4_0900_ai_ci|1"]);
    t.ok("SET character_set_results = NULL");
    t.expect("SELECT @@character_set_results", &["NULL"]);
    t.error(
        "SET NAMES utf8mb4 COLLATE latin1_bin",
        1253,
        "COLLATION 'latin1_bin' is not valid for CHARACTER SET 'utf8mb4'",
    );
}

#[test]
fn user_variables() {
    let server = server();
    let mut t = server.session();
    t.ok("SET @a = 1, @B := 'x'");
    t.expect("SELECT @A, @b, @c", &["1|x|NULL"]);
    t.ok("SET @old = @@sql_mode, sql_mode = ''");
    t.ok("SET sql_mode = @old");
    t.expect("SELECT @@sql_mode = @old", &["1"]);
    t.ok("CREATE TABLE t (id INT PRIMARY KEY)");
    t.ok("INSERT INTO t VALUES (4), (9)");
    t.ok("SET @max = (SELECT MAX(id) FROM t), @none = (SELECT id FROM t WHERE id = 5)");
    t.expect("SELECT @max, @none", &["9|NULL"]);
    let (sink, _) = t.collect("SELECT @max, @none");
    let kinds: Vec<_> = sink.last().unwrap().columns.iter().map(|c| c.ty.kind).collect();
    assert_eq!(kinds, [rauk_types::TypeKind::BigInt, rauk_types::TypeKind::VarChar]);
    t.expect("SELECT id FROM t WHERE id = @max", &["9"]);
    t.ok("SET @max = 'x'");
    t.expect("SELECT @max, CONCAT(@max, 'y')", &["x|xy"]);
    t.error("SET @x = (SELECT id FROM t)", 1242, "Subquery returns more than 1 row");
}

#[test]
fn global_and_persisted() {
    let disk = MemoryDisk::new();
    {
        let server = server_on(disk.clone());
        let mut t = server.session();
        t.ok("SET GLOBAL wait_timeout = 100");
        t.expect("SELECT @@wait_timeout", &["28800"]);
        let mut u = server.session();
        u.expect("SELECT @@wait_timeout", &["100"]);
        t.ok("SET PERSIST max_connections = 77");
        t.ok("SET PERSIST sql_mode = 'ANSI'");
        t.ok("SET GLOBAL rauk_memory_limit = 33554432");
        assert_eq!(server.engine.database.memory_limit(), 33_554_432);
        t.expect("SELECT @@rauk_memory_limit", &["33554432"]);
        rauk_node::block_on(server.engine.database.shutdown()).unwrap();
    }
    let server = server_on(disk);
    let mut t = server.session();
    t.expect("SELECT @@max_connections, @@global.wait_timeout", &["77|28800"]);
    t.expect("SELECT @@sql_mode", &["REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ONLY_FULL_GROUP_BY,ANSI"]);
}

#[test]
fn sizes_take_units() {
    let server = server();
    let mut t = server.session();
    for (text, bytes) in
        [("'20MiB'", 20 << 20), ("32M", 32 << 20), ("'0.05 GiB'", 53_687_091), ("40000000", 40_000_000)]
    {
        t.ok(&format!("SET GLOBAL rauk_memory_limit = {text}"));
        assert_eq!(server.engine.database.memory_limit(), bytes, "{text}");
    }
    t.ok("SET GLOBAL rauk_memory_limit = DEFAULT");
    t.expect("SELECT @@rauk_memory_limit", &["67108864"]);
    let variables = ["rauk_query_memory_limit", "rauk_temporary_tables_memory"];
    for variable in variables {
        t.ok(&format!("SET {variable} = '2MiB'"));
        t.expect(&format!("SELECT @@{variable} + 1"), &["2097153"]);
    }
    t.ok("SET GLOBAL rauk_total_query_memory_limit = '1GiB'");
    t.error(
        "SET GLOBAL rauk_memory_limit = '4 parsec'",
        1231,
        "Variable 'rauk_memory_limit' can't be set to the value of '4 parsec'; wanted: a size such as '512MiB' or '4GiB'",
    );
    t.error("SET GLOBAL rauk_memory_limit = 1.5", 1232, "Incorrect argument type to variable 'rauk_memory_limit'");
}

/// A limit that could not be kept is refused, also one that comes back at a start; one below what is stored is told.
#[test]
fn memory_limits_are_judged() {
    let disk = MemoryDisk::new();
    let available = 1 << 30;
    {
        let server = server_with(disk.clone(), available);
        let mut t = server.session();
        t.error(
            "SET GLOBAL rauk_memory_limit = '2GiB'",
            1231,
            "Variable 'rauk_memory_limit' can't be set to the value of '2147483648': this machine, or its control group, has 1GiB of memory",
        );
        t.ok("CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT)");
        t.ok("INSERT INTO t VALUES (1, REPEAT('a', 10000000)), (2, REPEAT('b', 10000000))");
        t.ok("SET GLOBAL rauk_memory_limit = '16MiB'");
        let told = t.run("SHOW WARNINGS");
        assert!(told.contains("of rows and indexes are stored here, and the memory limit is 16MiB now"), "{told}");
        t.ok("SET PERSIST rauk_memory_limit = '1000MiB'");
        rauk_node::block_on(server.engine.database.shutdown()).unwrap();
    }
    let server = server_with(disk, available / 2);
    assert_eq!(server.engine.database.memory_limit(), 64 << 20, "more than there is now");
}

#[test]
fn reset_forgets() {
    let server = server();
    let mut t = server.session();
    t.ok("SET @a = 1, sql_mode = ''");
    t.ok("CREATE TABLE t (id INT PRIMARY KEY)");
    t.ok("BEGIN");
    t.ok("INSERT INTO t VALUES (1)");
    let prepared = t.prepare("SELECT 1");
    rauk_node::block_on(t.session.reset());
    t.expect("SELECT @a, @@sql_mode = @@global.sql_mode", &["NULL|1"]);
    t.expect("SELECT COUNT(*) FROM t", &["0"]);
    assert!(t.prepared(prepared.id, &[]).starts_with("ERROR 1243"));
}

/// An old name and its new one are one variable: whichever is set, both show it, everywhere.
#[test]
fn old_names_share_their_values() {
    let server = server();
    let mut t = server.session();
    for (set, value) in [
        ("SET SESSION tx_isolation = 'SERIALIZABLE'", "SERIALIZABLE"),
        ("SET SESSION transaction_isolation = 'READ-COMMITTED'", "READ-COMMITTED"),
        ("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", "REPEATABLE-READ"),
    ] {
        t.ok(set);
        t.expect("SELECT @@tx_isolation, @@transaction_isolation", &[&format!("{value}|{value}")]);
        t.expect("SHOW VARIABLES LIKE '%x\\_isolation'", &[&format!("tx_isolation|{value}")]);
        t.expect("SHOW VARIABLES LIKE 'transaction\\_isolation'", &[&format!("transaction_isolation|{value}")]);
    }
    t.ok("SET GLOBAL tx_isolation = 'SERIALIZABLE'");
    t.expect("SELECT @@global.transaction_isolation, @@global.tx_isolation", &["SERIALIZABLE|SERIALIZABLE"]);
    t.expect("SHOW GLOBAL VARIABLES LIKE 'tx\\_isolation'", &["tx_isolation|SERIALIZABLE"]);
    let mut u = server.session();
    u.expect("SELECT @@tx_isolation, @@transaction_isolation", &["SERIALIZABLE|SERIALIZABLE"]);
    t.ok("SET PERSIST tx_isolation = 'READ-COMMITTED'");
    t.ok("SET PERSIST transaction_isolation = 'REPEATABLE-READ'");
    t.expect("SELECT @@global.tx_isolation", &["REPEATABLE-READ"]);
    t.ok("SET SESSION tx_read_only = 1");
    t.expect("SELECT @@tx_read_only, @@transaction_read_only", &["1|1"]);
}

#[test]
fn optimizer_switch_is_merged() {
    let server = server();
    let mut t = server.session();
    let on = |t: &mut super::Test, scope: &str, flag: &str| {
        let shown = t.run(&format!("SELECT @@{scope}optimizer_switch"));
        shown.split(',').find_map(|item| item.strip_prefix(&format!("{flag}="))).expect("it is listed") == "on"
    };
    let usual = t.run("SELECT @@optimizer_switch");
    assert!(usual.starts_with("index_merge=on,") && usual.ends_with(",batch_execution_cost_based=on"), "{usual}");
    assert_eq!(usual.split(',').count(), 28);
    t.expect("SHOW VARIABLES LIKE 'optimizer_switch'", &[&format!("optimizer_switch|{usual}")]);
    t.ok("SET optimizer_switch = 'semijoin=off'");
    t.ok("SET @@session.optimizer_switch = 'FirstMatch=OFF,mrr=on'");
    t.expect(
        "SELECT @@optimizer_switch",
        &[&usual
            .replace("semijoin=on", "semijoin=off")
            .replace("firstmatch=on", "firstmatch=off")
            .replace("mrr=off", "mrr=on")],
    );
    t.ok("SET optimizer_switch = 'firstmatch=default'");
    assert!(on(&mut t, "", "firstmatch") && !on(&mut t, "", "semijoin"));
    t.ok("SET optimizer_switch = ''");
    assert!(!on(&mut t, "", "semijoin"));
    // Nothing of a list with a mistake is taken.
    for (text, shown) in [
        ("x=off", "x=off"),
        ("mrr=off,semijoin", "semijoin"),
        ("mrr=off,semijoin=1,loosescan=on", "semijoin=1,loosescan=on"),
        ("mrr=off,mrr=on", "mrr=on"),
        ("mrr=off, semijoin=on", " semijoin=on"),
    ] {
        let message = format!("Variable 'optimizer_switch' can't be set to the value of '{shown}'");
        t.error(&format!("SET optimizer_switch = '{text}'"), 1231, &message);
        assert!(on(&mut t, "", "mrr") && !on(&mut t, "", "semijoin"));
    }
    t.code("SET optimizer_switch = NULL", 1231);
    t.code("SET optimizer_switch = -1", 1231);
    t.code("SET optimizer_switch = 1e0", 1232);
    t.error(
        "SET optimizer_switch = 'hypergraph_optimizer=on'",
        3999,
        "The hypergraph optimizer does not yet support 'use in non-debug builds'",
    );
    t.ok("SET optimizer_switch = 2049");
    assert!(on(&mut t, "", "index_merge") && on(&mut t, "", "semijoin") && !on(&mut t, "", "firstmatch"));
    // A session's default is the global value, and that of the global one what the server began with.
    t.ok("SET GLOBAL optimizer_switch = 'loosescan=on'");
    assert!(on(&mut t, "global.", "loosescan") && on(&mut t, "global.", "firstmatch"));
    assert!(!on(&mut t, "", "loosescan"));
    t.ok("SET optimizer_switch = 'default,firstmatch=off'");
    assert!(on(&mut t, "", "loosescan") && !on(&mut t, "", "firstmatch"));
    let mut other = server.session();
    assert!(on(&mut other, "", "loosescan"));
    t.ok("SET GLOBAL optimizer_switch = 'default'");
    t.expect("SELECT @@global.optimizer_switch", &[&usual]);
    t.ok("SET optimizer_switch = DEFAULT");
    t.expect("SELECT @@optimizer_switch", &[&usual]);
}

#[test]
fn read_only_stops_changes() {
    let server = server();
    let mut root = server.session();
    root.ok("CREATE DATABASE d");
    root.ok("CREATE TABLE d.t (a INT PRIMARY KEY)");
    root.ok("CREATE USER u IDENTIFIED BY ''");
    root.ok("GRANT ALL ON d.* TO u");
    let mut user = server.connect("u", "127.0.0.1").unwrap();
    user.ok("BEGIN");
    user.ok("INSERT INTO d.t VALUES (1)");
    root.ok("SET GLOBAL read_only = ON");
    let refused = "The MySQL server is running with the --read-only option so it cannot execute this statement";
    user.error("INSERT INTO d.t VALUES (2)", 1290, refused);
    // What was written before goes with it.
    user.error("COMMIT", 1290, refused);
    user.expect("SELECT COUNT(*) FROM d.t", &["0"]);
    for statement in [
        "INSERT INTO d.t VALUES (2)",
        "UPDATE d.t SET a = 1",
        "DELETE FROM d.t",
        "CREATE TABLE d.v (a INT)",
        "DROP TABLE d.t",
        "TRUNCATE d.t",
        "CREATE VIEW d.v AS SELECT 1",
        "SET PASSWORD = 'x'",
    ] {
        user.error(statement, 1290, refused);
    }
    user.ok("BEGIN");
    user.ok("SELECT * FROM d.t FOR UPDATE");
    user.ok("COMMIT");
    root.ok("INSERT INTO d.t VALUES (3)");
    root.ok("SET GLOBAL super_read_only = ON");
    root.expect("SELECT @@read_only, @@super_read_only", &["1|1"]);
    let refused = "The MySQL server is running with the --super-read-only option so it cannot execute this statement";
    root.error("INSERT INTO d.t VALUES (4)", 1290, refused);
    root.error("CREATE USER v", 1290, refused);
    root.ok("SET GLOBAL read_only = OFF");
    root.expect("SELECT @@read_only, @@super_read_only", &["0|0"]);
    user.ok("INSERT INTO d.t VALUES (5)");
    root.ok("BEGIN");
    root.ok("INSERT INTO d.t VALUES (6)");
    root.code("SET GLOBAL read_only = ON", 1192);
    root.ok("ROLLBACK");
    user.expect("SELECT a FROM d.t", &["3", "5"]);
}

#[test]
fn values_that_nothing_follows_are_refused() {
    let server = server();
    let mut t = server.session();
    t.error("SET GLOBAL general_log = ON", 1235, "This version of MySQL doesn't yet support 'general_log = ON'");
    for statement in [
        "SET GLOBAL slow_query_log = 1",
        "SET GLOBAL init_connect = 'SET autocommit = 0'",
        "SET GLOBAL offline_mode = ON",
        "SET default_table_encryption = ON",
        "SET explicit_defaults_for_timestamp = OFF",
    ] {
        t.code(statement, 1235);
    }
    t.ok("SET GLOBAL general_log = OFF");
}
