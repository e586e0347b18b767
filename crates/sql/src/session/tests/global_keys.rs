//! UNIQUE … GLOBAL: keys that are unique among the rows of all partitions, whatever columns they have.

use super::{Server, Test, server, server_on};
use crate::session::dead_entries::Purged;
use rauk_log::MemoryDisk;
use rauk_node::block_on;

const TABLE: &str = "CREATE TABLE t (id INT, day INT NOT NULL, u VARCHAR(20), v INT, PRIMARY KEY (id, day), \
     UNIQUE KEY u (u) GLOBAL) PARTITION BY RANGE (day) (PARTITION p0 VALUES LESS THAN (10), \
     PARTITION p1 VALUES LESS THAN (20), PARTITION p2 VALUES LESS THAN (30))";

fn filled(server: &Server) -> Test {
    let mut t = server.session();
    t.ok(TABLE);
    t.ok("INSERT INTO t VALUES (1, 1, 'a', 1), (2, 11, 'b', 2), (3, 21, 'c', 3), (4, 2, NULL, 4), (5, 12, NULL, 5)");
    t
}

impl Server {
    /// How many entries were dead.
    fn purge(&self) -> u64 {
        block_on(self.engine.purge_dead_entries(&mut Purged::default()))
    }
}

/// All rows, by a scan of the partitions; and each that has a key by its key, one way or another.
fn check(t: &mut Test, table: &str, expected: &[&str]) {
    t.expect(&format!("SELECT id, day, u FROM {table} IGNORE INDEX (u) ORDER BY id"), expected);
    for row in expected {
        let [_, _, key] = row.split('|').collect::<Vec<_>>()[..] else { panic!("three values: {row}") };
        if key != "NULL" {
            t.expect(&format!("SELECT id, day, u FROM {table} WHERE u = '{key}'"), &[row]);
            t.expect(&format!("SELECT id, day, u FROM {table} WHERE u = '{key}' FOR UPDATE"), &[row]);
        }
    }
    t.expect(&format!("SELECT COUNT(*) FROM {table} WHERE u = 'nobody has this'"), &["0"]);
    t.expect(&format!("SELECT COUNT(*) FROM {table} WHERE u = 'nobody has this' FOR UPDATE"), &["0"]);
}

#[test]
fn a_key_is_there_once_in_all_partitions() {
    let server = server();
    let mut t = filled(&server);
    check(&mut t, "t", &["1|1|a", "2|11|b", "3|21|c", "4|2|NULL", "5|12|NULL"]);
    t.error("INSERT INTO t VALUES (6, 22, 'a', 0)", 1062, "Duplicate entry 'a' for key 't.u'");
    t.code("INSERT INTO t VALUES (6, 22, 'd', 0), (7, 3, 'd', 0)", 1062);
    t.code("UPDATE t SET u = 'b' WHERE id = 1", 1062);
    t.code("UPDATE t SET day = 25, u = 'b' WHERE id = 1", 1062);
    t.ok("INSERT IGNORE INTO t VALUES (6, 22, 'a', 0), (6, 22, 'd', 0), (7, 3, 'd', 0)");
    check(&mut t, "t", &["1|1|a", "2|11|b", "3|21|c", "4|2|NULL", "5|12|NULL", "6|22|d"]);
    t.ok("REPLACE INTO t VALUES (8, 13, 'd', 8), (9, 23, 'a', 9)");
    check(&mut t, "t", &["2|11|b", "3|21|c", "4|2|NULL", "5|12|NULL", "8|13|d", "9|23|a"]);
    // The row in the way is in another partition than the one that it would go to, and goes to a third.
    t.ok("INSERT INTO t VALUES (10, 4, 'd', 0) ON DUPLICATE KEY UPDATE day = 24, v = v + 1");
    check(&mut t, "t", &["2|11|b", "3|21|c", "4|2|NULL", "5|12|NULL", "8|24|d", "9|23|a"]);
    t.expect("SELECT v FROM t PARTITION (p2) WHERE u = 'd'", &["9"]);
    t.ok("UPDATE t SET u = CONCAT(u, u), day = 29 - day WHERE u IS NOT NULL");
    check(&mut t, "t", &["2|18|bb", "3|8|cc", "4|2|NULL", "5|12|NULL", "8|5|dd", "9|6|aa"]);
    t.ok("DELETE FROM t WHERE u = 'bb'");
    t.ok("INSERT INTO t VALUES (2, 29, 'bb', 0)");
    t.ok("UPDATE t SET id = 3 WHERE u = 'bb'");
    check(&mut t, "t", &["3|8|cc", "3|29|bb", "4|2|NULL", "5|12|NULL", "8|5|dd", "9|6|aa"]);
    assert_eq!(server.purge(), 0);
}

#[test]
fn statements_may_name_partitions() {
    let server = server();
    let mut t = filled(&server);
    t.expect("SELECT id FROM t PARTITION (p1) WHERE u = 'a'", &[]);
    t.expect("SELECT id FROM t PARTITION (p0) WHERE u = 'a'", &["1"]);
    t.ok("DELETE FROM t PARTITION (p1) WHERE u = 'a'");
    t.ok("UPDATE t PARTITION (p1, p2) SET v = 9 WHERE u = 'a'");
    t.expect("SELECT v FROM t WHERE u = 'a'", &["1"]);
    t.code("INSERT INTO t PARTITION (p1) VALUES (9, 11, 'a', 0)", 1062);
    t.ok("INSERT IGNORE INTO t PARTITION (p1) VALUES (9, 11, 'a', 0)");
    t.code("REPLACE INTO t PARTITION (p1) VALUES (9, 11, 'a', 0)", 1748);
    t.code("INSERT INTO t PARTITION (p1) VALUES (9, 11, 'a', 0) ON DUPLICATE KEY UPDATE v = 7", 1748);
    check(&mut t, "t", &["1|1|a", "2|11|b", "3|21|c", "4|2|NULL", "5|12|NULL"]);
}

#[test]
fn keys_of_partitions_that_are_gone_are_free() {
    let disk = MemoryDisk::new();
    {
        let server = server_on(disk.clone());
        let mut t = filled(&server);
        t.ok("INSERT INTO t VALUES (6, 3, 'd', 6), (7, 4, 'e', 7)");
        t.ok("ALTER TABLE t TRUNCATE PARTITION p0");
        check(&mut t, "t", &["2|11|b", "3|21|c", "5|12|NULL"]);
        t.expect("SELECT id FROM t WHERE u IN ('a', 'd')", &[]);
        // The same row comes back with another key, and another row has its key.
        t.ok("INSERT INTO t VALUES (1, 1, 'x', 1), (8, 28, 'a', 8)");
        t.ok("UPDATE t SET u = 'd' WHERE id = 3");
        t.code("INSERT INTO t VALUES (9, 9, 'a', 0)", 1062);
        check(&mut t, "t", &["1|1|x", "2|11|b", "3|21|d", "5|12|NULL", "8|28|a"]);
        t.ok("ALTER TABLE t DROP PARTITION p1");
        check(&mut t, "t", &["1|1|x", "3|21|d", "8|28|a"]);
    }
    let server = server_on(disk);
    let mut t = server.session();
    check(&mut t, "t", &["1|1|x", "3|21|d", "8|28|a"]);
    assert_eq!(server.purge(), 2, "those of 'e' and 'b'");
    assert_eq!(server.purge(), 0);
    t.ok("ALTER TABLE t ADD PARTITION (PARTITION p3 VALUES LESS THAN (40))");
    t.ok("INSERT INTO t VALUES (2, 31, 'b', 0), (7, 32, 'e', 0)");
    check(&mut t, "t", &["1|1|x", "2|31|b", "3|21|d", "7|32|e", "8|28|a"]);
    assert_eq!(server.purge(), 0);
}

#[test]
fn a_dead_entry_is_taken_by_one_writer() {
    let server = server();
    let mut t = filled(&server);
    let mut other = server.session();
    other.ok("SET innodb_lock_wait_timeout = 1");
    t.ok("ALTER TABLE t TRUNCATE PARTITION p0");
    t.ok("BEGIN");
    t.ok("INSERT INTO t VALUES (6, 22, 'a', 0)");
    other.code("INSERT INTO t VALUES (7, 12, 'a', 0)", 1205);
    t.ok("ROLLBACK");
    t.expect("SELECT id FROM t WHERE u = 'a'", &[]);
    other.ok("INSERT INTO t VALUES (7, 12, 'a', 0)");
    t.code("INSERT INTO t VALUES (6, 22, 'a', 0)", 1062);
    check(&mut t, "t", &["2|11|b", "3|21|c", "5|12|NULL", "7|12|a"]);
    // What a serializable transaction has not found is not there before its end.
    t.ok("ALTER TABLE t TRUNCATE PARTITION p1");
    t.ok("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE");
    t.ok("BEGIN");
    t.expect("SELECT id FROM t WHERE u = 'b'", &[]);
    t.expect("SELECT id FROM t WHERE u = 'z'", &[]);
    other.code("INSERT INTO t VALUES (2, 2, 'b', 0)", 1205);
    other.code("INSERT INTO t VALUES (2, 2, 'z', 0)", 1205);
    t.ok("COMMIT");
    other.ok("INSERT INTO t VALUES (2, 2, 'b', 0)");
    assert_eq!(server.purge(), 1, "that of 'a'");
}

#[test]
fn snapshots_are_of_one_time() {
    let server = server();
    let mut t = filled(&server);
    let mut other = server.session();
    t.ok("BEGIN");
    t.expect("SELECT id FROM t WHERE u = 'a'", &["1"]);
    other.ok("UPDATE t SET day = 25 WHERE u = 'a'");
    other.ok("UPDATE t SET u = 'changed' WHERE u = 'b'");
    t.expect("SELECT id, day FROM t WHERE u = 'a'", &["1|1"]);
    t.expect("SELECT id, day FROM t WHERE u = 'b'", &["2|11"]);
    t.expect("SELECT id FROM t WHERE u = 'changed'", &[]);
    t.code("SELECT id FROM t WHERE u = 'b' FOR UPDATE", 1020);
    t.ok("ROLLBACK");
    t.expect("SELECT id, day FROM t WHERE u = 'a'", &["1|25"]);
}

#[test]
fn rows_keep_their_keys_where_partitions_change() {
    let server = server();
    let mut t = filled(&server);
    let rows = ["1|1|a", "2|11|b", "3|21|c", "4|2|NULL", "5|12|NULL"];
    for sql in [
        "ALTER TABLE t REORGANIZE PARTITION p0, p1 INTO (PARTITION a VALUES LESS THAN (2), PARTITION b VALUES LESS THAN (20))",
        "ALTER TABLE t REBUILD PARTITION ALL",
        "ALTER TABLE t MODIFY v BIGINT",
        "ALTER TABLE t ADD KEY (v)",
        "ALTER TABLE t ADD w INT DEFAULT 5",
        "ALTER TABLE t PARTITION BY HASH (day) PARTITIONS 3",
        "ALTER TABLE t ADD PARTITION PARTITIONS 2",
        "ALTER TABLE t COALESCE PARTITION 3",
        "ALTER TABLE t PARTITION BY LIST (day) (PARTITION x VALUES IN (1, 2, 11), PARTITION y VALUES IN (12, 21, 22))",
        "ALTER TABLE t PARTITION BY KEY (id) PARTITIONS 4",
        "RENAME TABLE t TO s, s TO t",
        "ALTER TABLE t MODIFY u VARCHAR(30)",
    ] {
        t.ok(sql);
        check(&mut t, "t", &rows);
        t.code("INSERT INTO t (id, day, u) VALUES (6, 22, 'b')", 1062);
        t.ok("UPDATE t SET u = 'q' WHERE id = 3");
        t.ok("UPDATE t SET u = 'c' WHERE u = 'q'");
        assert_eq!(server.purge(), 0, "{sql}");
    }
    t.ok("ALTER TABLE t REMOVE PARTITIONING");
    check(&mut t, "t", &rows);
    t.code("INSERT INTO t (id, day, u) VALUES (6, 22, 'b')", 1062);
    t.ok("TRUNCATE TABLE t");
    t.ok("INSERT INTO t (id, day, u) VALUES (6, 22, 'b')");
    t.code("INSERT INTO t (id, day, u) VALUES (7, 22, 'b')", 1062);
    t.code("ALTER TABLE t PARTITION BY HASH (day) PARTITIONS 3", 1503);
    t.ok("ALTER TABLE t DROP KEY u, ADD UNIQUE u (u) GLOBAL PARTITION BY HASH (day) PARTITIONS 3");
    check(&mut t, "t", &["6|22|b"]);
    t.ok("INSERT INTO t (id, day, u) VALUES (7, 23, 'c')");
    t.code("ALTER TABLE t DROP KEY u, ADD UNIQUE (w) GLOBAL", 1062);
    t.ok("UPDATE t SET w = id");
    t.ok("CREATE UNIQUE INDEX w ON t (w) GLOBAL");
    t.code("INSERT INTO t (id, day, w) VALUES (8, 24, 6)", 1062);
    t.ok("TRUNCATE TABLE t");
    t.ok("INSERT INTO t (id, day, u, w) VALUES (8, 24, 'b', 6)");
    t.ok("ALTER TABLE t DROP KEY u");
    t.ok("INSERT INTO t (id, day, u, w) VALUES (9, 25, 'b', 7)");
    t.ok("DROP TABLE t");
}

#[test]
fn tables_without_a_primary_key_and_partitions_that_no_key_tells() {
    let server = server();
    let mut t = server.session();
    for table in [
        "CREATE TABLE t (id INT, day INT, u VARCHAR(20), UNIQUE (u) GLOBAL) PARTITION BY HASH (day) PARTITIONS 4",
        "CREATE TABLE t (id INT, day INT, u VARCHAR(20), UNIQUE (u) GLOBAL, UNIQUE (day, id)) \
         PARTITION BY RANGE (day) SUBPARTITION BY HASH (id) SUBPARTITIONS 2 \
         (PARTITION a VALUES LESS THAN (10), PARTITION b VALUES LESS THAN MAXVALUE)",
        "CREATE TABLE t (id INT, day INT, u VARCHAR(20) COLLATE utf8mb4_0900_ai_ci, UNIQUE (u(3)) GLOBAL) \
         PARTITION BY KEY (day, u) PARTITIONS 3",
    ] {
        t.ok(table);
        t.ok("INSERT INTO t VALUES (1, 1, 'a'), (2, 22, 'b'), (3, 13, NULL), (4, 4, NULL)");
        t.code("INSERT INTO t VALUES (5, 5, 'a')", 1062);
        t.ok("REPLACE INTO t VALUES (5, 15, 'a')");
        t.ok("UPDATE t SET day = day + 7 WHERE u = 'b'");
        t.ok("INSERT INTO t VALUES (6, 6, 'b') ON DUPLICATE KEY UPDATE u = 'd'");
        check(&mut t, "t", &["2|29|d", "3|13|NULL", "4|4|NULL", "5|15|a"]);
        t.ok("ALTER TABLE t PARTITION BY RANGE (day) (PARTITION p VALUES LESS THAN (20), PARTITION q VALUES LESS THAN (30))");
        check(&mut t, "t", &["2|29|d", "3|13|NULL", "4|4|NULL", "5|15|a"]);
        t.ok("ALTER TABLE t DROP PARTITION p");
        t.ok("INSERT INTO t VALUES (7, 27, 'a')");
        check(&mut t, "t", &["2|29|d", "7|27|a"]);
        t.ok("DROP TABLE t");
    }
}

/// A lookup by the key finds a row that goes to another partition while its lock is waited for.
#[test]
fn rows_without_a_primary_key_change_partitions() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT, day INT, u VARCHAR(20), UNIQUE (u) GLOBAL) PARTITION BY LIST (day) \
          (PARTITION p1 VALUES IN (1), PARTITION p2 VALUES IN (2), PARTITION p3 VALUES IN (3))");
    t.ok("INSERT INTO t VALUES (5, 2, 'a')");
    let mut other = server.session();
    other.ok("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
    t.ok("BEGIN");
    t.expect("SELECT id FROM t WHERE u = 'a' FOR UPDATE", &["5"]);
    let waits = std::thread::spawn(move || {
        other.ok("UPDATE t SET id = id + 1 WHERE u = 'a'");
        other
    });
    while server.session().run("SELECT COUNT(*) FROM performance_schema.data_lock_waits") == "0" {
        std::thread::yield_now();
    }
    t.ok("UPDATE t SET day = 1 WHERE u = 'a'");
    t.ok("COMMIT");
    waits.join().expect("it has not failed");
    check(&mut t, "t", &["6|1|a"]);
}

#[test]
fn what_stands_in_the_way_is_decided_row_by_row() {
    let server = server();
    let mut t = server.session();
    for global in ["", " GLOBAL"] {
        t.ok(&format!(
            "CREATE TABLE t (id INT, u INT, day INT, PRIMARY KEY (id, day), UNIQUE (u, day){global}) \
             PARTITION BY HASH (day) PARTITIONS 3"
        ));
        t.ok("INSERT INTO t VALUES (1, 9, 1)");
        t.ok("REPLACE INTO t VALUES (1, 5, 1), (2, 5, 1)");
        t.expect("SELECT * FROM t", &["2|5|1"]);
        t.ok("DROP TABLE t");
    }
}

#[test]
fn joins_and_prepared_statements_find_rows_by_the_key() {
    let server = server();
    let mut t = filled(&server);
    t.ok("CREATE TABLE k (n INT PRIMARY KEY, u VARCHAR(20))");
    t.ok("INSERT INTO k VALUES (1, 'c'), (2, 'x'), (3, 'a'), (4, NULL), (5, 'b')");
    t.expect("SELECT n, id FROM k LEFT JOIN t USING (u) ORDER BY n", &["1|3", "2|NULL", "3|1", "4|NULL", "5|2"]);
    t.expect(
        "SELECT STRAIGHT_JOIN n, id FROM k JOIN t FORCE INDEX (u) ON k.u = t.u ORDER BY n",
        &["1|3", "3|1", "5|2"],
    );
    t.ok("UPDATE k JOIN t USING (u) SET t.day = 5, t.v = k.n WHERE k.n > 1");
    check(&mut t, "t", &["1|5|a", "2|5|b", "3|21|c", "4|2|NULL", "5|12|NULL"]);
    t.ok("DELETE t FROM k JOIN t USING (u)");
    check(&mut t, "t", &["4|2|NULL", "5|12|NULL"]);
    assert_eq!(server.purge(), 0);
}

#[test]
fn definitions_say_which_keys_are_global() {
    let disk = MemoryDisk::new();
    let shown = |t: &mut Test, table: &str| {
        let (sink, result) = t.collect(&format!("SHOW CREATE TABLE {table}"));
        result.unwrap_or_else(|error| panic!("{table}: {error}"));
        sink.last().and_then(|result| result.text(0, 1)).expect("a text")
    };
    let text = {
        let server = server_on(disk.clone());
        let mut t = filled(&server);
        let text = shown(&mut t, "t");
        assert!(text.contains("UNIQUE KEY `u` (`u`) /*!990001 GLOBAL */"), "{text}");
        t.ok("RENAME TABLE t TO old");
        t.ok(&text);
        assert_eq!(shown(&mut t, "t"), text);
        t.ok("CREATE TABLE alike LIKE t");
        assert_eq!(shown(&mut t, "alike"), text.replace("`t`", "`alike`"));
        t.ok("INSERT INTO alike VALUES (1, 1, 'a', 1)");
        t.code("INSERT INTO alike VALUES (2, 21, 'a', 1)", 1062);
        text
    };
    let server = server_on(disk);
    let mut t = server.session();
    assert_eq!(shown(&mut t, "t"), text, "after a restart");
    t.code("INSERT INTO alike VALUES (2, 21, 'a', 1)", 1062);
    t.ok("ALTER TABLE old REMOVE PARTITIONING");
    assert!(!shown(&mut t, "old").contains("GLOBAL"));
}

#[test]
fn what_is_refused() {
    let server = server();
    let mut t = filled(&server);
    t.code("CREATE TABLE x (a INT, b INT, UNIQUE (a)) PARTITION BY HASH (b) PARTITIONS 2", 1503);
    t.code("CREATE TABLE x (a INT PRIMARY KEY, b INT, UNIQUE (a) GLOBAL) PARTITION BY HASH (b) PARTITIONS 2", 1503);
    t.code("CREATE TABLE x (a INT, UNIQUE (a) GLOBAL)", 1505);
    t.code("CREATE TABLE x (a INT PRIMARY KEY, u INT, UNIQUE (u) GLOBAL) PARTITION BY KEY (a)", 1505);
    t.code("CREATE TEMPORARY TABLE x (a INT, UNIQUE (a) GLOBAL)", 1505);
    t.code("CREATE TABLE x (a INT, b INT, KEY (a) GLOBAL) PARTITION BY HASH (b) PARTITIONS 2", 1064);
    t.code("CREATE TABLE x (a INT, b INT, PRIMARY KEY (a, b) GLOBAL) PARTITION BY HASH (b) PARTITIONS 2", 1064);
    t.ok("CREATE TABLE x (id INT, day INT NOT NULL, u VARCHAR(20), v INT, PRIMARY KEY (id, day), UNIQUE KEY u (u))");
    t.error(
        "ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE x",
        1235,
        "EXCHANGE PARTITION of a table with a GLOBAL unique key is not supported by Rauk",
    );
    t.code("ALTER TABLE x ADD UNIQUE (v) GLOBAL", 1505);
    t.code("ALTER TABLE t ADD UNIQUE (v) GLOBAL REMOVE PARTITIONING", 1505);
    check(&mut t, "t", &["1|1|a", "2|11|b", "3|21|c", "4|2|NULL", "5|12|NULL"]);
}
