//! CHECK constraints, computed defaults and generated columns: how they are shown, kept and carried out.

use super::{Test, server, server_on};
use rauk_log::MemoryDisk;

fn shown(t: &mut Test, table: &str) -> String {
    let (sink, result) = t.collect(&format!("SHOW CREATE TABLE {table}"));
    result.unwrap();
    sink.last().unwrap().text(0, 1).unwrap()
}

/// SHOW CREATE TABLE without its first and last line.
fn lines(t: &mut Test, table: &str) -> Vec<String> {
    let text = shown(t, table);
    let lines: Vec<&str> = text.lines().collect();
    lines[1..lines.len() - 1].iter().map(|line| line.trim().trim_end_matches(',').to_string()).collect()
}

#[test]
fn checks_are_shown_as_mysql_shows_them() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t1 (CHECK (c1 <> c2), c1 INT CHECK (c1 > 10), c2 INT CONSTRAINT c2_positive CHECK (c2 > 0), \
          c3 INT CHECK (t1.c3 < 100), CONSTRAINT c1_nonzero CHECK (c1 <> 0) NOT ENFORCED, CHECK (c1 > c3 AND 'a' < \"b\"))");
    assert_eq!(
        lines(&mut t, "t1"),
        [
            "`c1` int DEFAULT NULL",
            "`c2` int DEFAULT NULL",
            "`c3` int DEFAULT NULL",
            "CONSTRAINT `c1_nonzero` CHECK ((`c1` <> 0)) /*!80016 NOT ENFORCED */",
            "CONSTRAINT `c2_positive` CHECK ((`c2` > 0))",
            "CONSTRAINT `t1_chk_1` CHECK ((`c1` <> `c2`))",
            "CONSTRAINT `t1_chk_2` CHECK ((`c1` > 10))",
            "CONSTRAINT `t1_chk_3` CHECK ((`c3` < 100))",
            "CONSTRAINT `t1_chk_4` CHECK (((`c1` > `c3`) and (_utf8mb4'a' < _utf8mb4'b')))",
        ]
    );
    let text = shown(&mut t, "t1");
    t.ok("DROP TABLE t1");
    t.ok(&text);
    assert_eq!(shown(&mut t, "t1"), text, "what is shown makes the same table");
}

#[test]
fn checks_outlive_a_restart() {
    let disk = MemoryDisk::new();
    {
        let server = server_on(disk.clone());
        let mut t = server.session();
        t.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT, CHECK (a > 0))");
        t.ok("INSERT INTO t VALUES (1, 1)");
    }
    let server = server_on(disk);
    let mut t = server.session();
    t.code("INSERT INTO t VALUES (2, 0)", 3819);
    t.code("UPDATE t SET a = 0", 3819);
    t.expect("SELECT * FROM t", &["1|1"]);
}

/// A CHECK that is added later is in the way of plans that were made before.
#[test]
fn checks_change_between_executions() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT)");
    for id in 1..4 {
        t.ok(&format!("INSERT INTO t VALUES ({id}, -1)"));
    }
    t.code("ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0)", 3819);
    t.ok("ALTER TABLE t ADD CONSTRAINT c CHECK (a < 5)");
    t.code("INSERT INTO t VALUES (4, 7)", 3819);
    t.ok("ALTER TABLE t ALTER CHECK c NOT ENFORCED");
    t.ok("INSERT INTO t VALUES (4, 7)");
    t.code("ALTER TABLE t ALTER CHECK c ENFORCED", 3819);
    t.ok("ALTER TABLE t DROP CHECK c");
    t.code("ALTER TABLE t DROP CHECK c", 3821);
}

#[test]
fn a_check_is_read_back_in_every_mode() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (`a b` VARCHAR(20), CHECK (CHAR_LENGTH(`a b`) < 9 || FALSE), CHECK (`a b` <> 'x\\\\y''z'))");
    t.ok("SET sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES,HIGH_NOT_PRECEDENCE,STRICT_TRANS_TABLES'");
    t.code("INSERT INTO t VALUES ('x\\y''z')", 3819);
    t.ok("INSERT INTO t VALUES ('0')");
}
