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

#[test]
fn generated_columns_and_computed_defaults_are_shown_as_mysql_shows_them() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE g (id INT PRIMARY KEY, a INT DEFAULT (id + 1), b INT AS (a * 2) NOT NULL COMMENT 'twice', \
          c VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin GENERATED ALWAYS AS (CONCAT('x', g.b)) STORED, \
          u CHAR(36) DEFAULT UUID(), d DATE AS (DATE_ADD('2024-01-01', INTERVAL a DAY)) PERSISTENT, KEY (b))");
    assert_eq!(
        lines(&mut t, "g"),
        [
            "`id` int NOT NULL",
            "`a` int DEFAULT ((`id` + 1))",
            "`b` int GENERATED ALWAYS AS ((`a` * 2)) VIRTUAL NOT NULL COMMENT 'twice'",
            "`c` varchar(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin GENERATED ALWAYS AS (concat(_utf8mb4'x',`b`)) STORED",
            "`u` char(36) DEFAULT (uuid())",
            "`d` date GENERATED ALWAYS AS ((_utf8mb4'2024-01-01' + interval `a` day)) STORED",
            "PRIMARY KEY (`id`)",
            "KEY `b` (`b`)",
        ]
    );
    let text = shown(&mut t, "g");
    t.ok("DROP TABLE g");
    t.ok(&text);
    assert_eq!(shown(&mut t, "g"), text, "what is shown makes the same table");
    t.ok("INSERT INTO g (id) VALUES (1)");
    t.expect("SELECT id, a, b, c, d, CHAR_LENGTH(u) FROM g", &["1|2|4|x4|2024-01-03|36"]);
}

#[test]
fn generated_columns_outlive_a_restart() {
    let disk = MemoryDisk::new();
    {
        let server = server_on(disk.clone());
        let mut t = server.session();
        t.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT DEFAULT (id * 2), g INT AS (a + 1), UNIQUE KEY (g))");
        t.ok("INSERT INTO t (id) VALUES (1), (2)");
    }
    let server = server_on(disk);
    let mut t = server.session();
    t.expect("SELECT * FROM t WHERE g = 5", &["2|4|5"]);
    t.ok("INSERT INTO t (id) VALUES (3)");
    t.code("INSERT INTO t (id, a) VALUES (4, 6)", 1062);
    t.ok("UPDATE t SET a = 100 WHERE id = 3");
    t.expect("SELECT * FROM t ORDER BY id", &["1|2|3", "2|4|5", "3|100|101"]);
}

/// MySQL's optimizer may use a generated column's index; the values of all rows are those of the newest definition.
#[test]
fn a_changed_definition_computes_all_rows() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT, g INT AS (a + 1), h INT AS (g * 10) STORED)");
    t.ok("INSERT INTO t (id, a) VALUES (1, 1), (2, 2)");
    t.ok("ALTER TABLE t MODIFY g INT AS (a + 2)");
    t.expect("SELECT g, h FROM t ORDER BY id", &["3|30", "4|40"]);
    t.code("ALTER TABLE t MODIFY h INT AS (1000000000 * g) STORED", 1264);
    t.expect("SELECT g, h FROM t ORDER BY id", &["3|30", "4|40"]);
    t.ok("ALTER TABLE t MODIFY a BIGINT, ADD COLUMN s VARCHAR(9) AS (CONCAT(h, '!'))");
    t.expect("SELECT a, g, h, s FROM t ORDER BY id", &["1|3|30|30!", "2|4|40|40!"]);
}

#[test]
fn what_is_invisible_is_shown_as_mysql_shows_it() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT NOT NULL AUTO_INCREMENT INVISIBLE, a INT INVISIBLE DEFAULT 5 COMMENT 'c', b INT, \
          g INT AS (a + 1) INVISIBLE, PRIMARY KEY (id), KEY k (b) COMMENT 'k' INVISIBLE, UNIQUE KEY u (a) VISIBLE)");
    assert_eq!(
        lines(&mut t, "t"),
        [
            "`id` int NOT NULL AUTO_INCREMENT /*!80023 INVISIBLE */",
            "`a` int DEFAULT '5' /*!80023 INVISIBLE */ COMMENT 'c'",
            "`b` int DEFAULT NULL",
            "`g` int GENERATED ALWAYS AS ((`a` + 1)) VIRTUAL /*!80023 INVISIBLE */",
            "PRIMARY KEY (`id`)",
            "UNIQUE KEY `u` (`a`)",
            "KEY `k` (`b`) COMMENT 'k' /*!80000 INVISIBLE */",
        ]
    );
    let text = shown(&mut t, "t");
    t.ok("DROP TABLE t");
    t.ok(&text);
    assert_eq!(shown(&mut t, "t"), text, "what is shown makes the same table");
    t.expect(
        "SELECT EXTRA FROM information_schema.COLUMNS WHERE TABLE_NAME = 't' ORDER BY ORDINAL_POSITION",
        &["auto_increment INVISIBLE", "INVISIBLE", "", "VIRTUAL GENERATED INVISIBLE"],
    );
}

/// EXPLAIN names no invisible index, and the switch brings it back.
#[test]
fn the_planner_uses_visible_indexes() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT, KEY k (a))");
    t.ok("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)");
    let key = |t: &mut Test| t.run("EXPLAIN SELECT id FROM t WHERE a = 2").split('|').nth(6).unwrap().to_string();
    assert_eq!(key(&mut t), "k");
    t.ok("ALTER TABLE t ALTER INDEX k INVISIBLE");
    assert_eq!(key(&mut t), "NULL");
    t.ok("SET optimizer_switch = 'use_invisible_indexes=on'");
    assert_eq!(key(&mut t), "k");
    t.ok("SET optimizer_switch = 'use_invisible_indexes=off'");
    t.ok("ALTER TABLE t ALTER INDEX k VISIBLE");
    assert_eq!(key(&mut t), "k");
}
