//! Clauses about storage are kept and shown, ALGORITHM and LOCK are kept or refused, a database gets another collation.

use super::{Test, server, server_on};
use rauk_log::MemoryDisk;

fn shown(t: &mut Test, table: &str) -> String {
    let (sink, result) = t.collect(&format!("SHOW CREATE TABLE {table}"));
    result.unwrap();
    sink.last().unwrap().text(0, 1).unwrap()
}

const TEXT: &str = "CREATE TABLE `t` (
  `a` int NOT NULL,
  `b` varchar(20) /*!50606 STORAGE DISK */ /*!50606 COLUMN_FORMAT FIXED */ DEFAULT NULL COMMENT 'cb',
  `c` int DEFAULT NULL,
  PRIMARY KEY (`a`) USING BTREE,
  UNIQUE KEY `u` (`c`) USING HASH KEY_BLOCK_SIZE=8 /*!80000 INVISIBLE */,
  KEY `k` (`b`) USING BTREE KEY_BLOCK_SIZE=4 COMMENT 'ck'
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci MIN_ROWS=5 MAX_ROWS=100 AVG_ROW_LENGTH=10 \
PACK_KEYS=0 STATS_PERSISTENT=1 STATS_AUTO_RECALC=0 STATS_SAMPLE_PAGES=20 CHECKSUM=1 DELAY_KEY_WRITE=1 \
ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8 COMPRESSION='zlib' COMMENT='ct'";

#[test]
fn they_are_shown_as_they_were_written() {
    let disk = MemoryDisk::new();
    {
        let server = server_on(disk.clone());
        let mut t = server.session();
        t.ok(TEXT);
        assert_eq!(shown(&mut t, "t"), TEXT);
        t.ok("DROP TABLE t");
        t.ok(TEXT);
    }
    let server = server_on(disk);
    let mut t = server.session();
    assert_eq!(shown(&mut t, "t"), TEXT);
    t.expect(
        "SELECT row_format, create_options FROM information_schema.tables WHERE table_name = 't'",
        &["Compressed|min_rows=5 max_rows=100 avg_row_length=10 pack_keys=0 stats_persistent=1 stats_auto_recalc=0 \
           stats_sample_pages=20 checksum=1 delay_key_write=1 row_format=COMPRESSED KEY_BLOCK_SIZE=8 \
           COMPRESSION=\"zlib\""],
    );
    t.ok("CREATE TABLE same LIKE t");
    assert_eq!(shown(&mut t, "same"), TEXT.replace("`t`", "`same`"));
    // A key that is built again keeps them under its new number, and so do columns that move.
    t.ok("INSERT INTO t VALUES (1, '7', 2)");
    t.ok("ALTER TABLE t MODIFY b VARCHAR(30) FIRST, ROW_FORMAT = DEFAULT, KEY_BLOCK_SIZE = 0, MAX_ROWS = 200");
    let text = shown(&mut t, "t");
    assert!(text.contains("MIN_ROWS=5 MAX_ROWS=200 AVG_ROW_LENGTH=10"), "{text}");
    assert!(!text.contains("ROW_FORMAT") && text.contains("CHECKSUM=1 DELAY_KEY_WRITE=1 COMPRESSION='zlib'"), "{text}");
    // MODIFY gives the column a whole new definition: what it does not name goes.
    assert!(text.contains("  `b` varchar(30) DEFAULT NULL,\n  `a`"), "{text}");
    assert!(text.contains("KEY `k` (`b`) USING BTREE KEY_BLOCK_SIZE=4 COMMENT 'ck'"), "{text}");
    t.ok("ALTER TABLE t MODIFY b BIGINT");
    assert!(shown(&mut t, "t").contains("KEY `k` (`b`) USING BTREE KEY_BLOCK_SIZE=4"));
    t.ok("SET show_create_table_verbosity = ON");
    assert!(shown(&mut t, "t").contains(" ROW_FORMAT=DYNAMIC"));
}

#[test]
fn wrong_ones_are_refused() {
    let server = server();
    let mut t = server.session();
    t.code("CREATE TABLE t (a INT) ROW_FORMAT = wide", 1064);
    t.code("CREATE TABLE t (a INT) MAX_ROWS = many", 1064);
    t.code("CREATE TABLE t (a INT) PACK_KEYS = 2", 1064);
    t.code("CREATE TABLE t (a INT COLUMN_FORMAT wide)", 1064);
    t.code("CREATE TABLE t (a INT STORAGE tape)", 1064);
    t.code("FLUSH NONSENSE", 1064);
    t.ok("FLUSH BINARY LOGS, STATUS, RELAY LOGS FOR CHANNEL 'c'");
    t.code("START TRANSACTION READ WRITE, READ ONLY", 1064);
    t.error(
        "CREATE TABLE t (a INT) ENGINE_ATTRIBUTE = '{}'",
        3981,
        "Storage engine 'InnoDB' does not support ENGINE_ATTRIBUTE.",
    );
    t.ok("CREATE TABLE t (a INT, KEY k (a) USING HASH) DATA DIRECTORY = '/x'");
    t.expect(
        "SHOW WARNINGS",
        &[
            "Warning|1618|<DATA DIRECTORY> option ignored",
            "Note|3502|This storage engine does not support the HASH index algorithm, storage engine default was used \
             instead.",
        ],
    );
    assert!(shown(&mut t, "t").contains("KEY `k` (`a`)\n"));
}

#[test]
fn algorithm_and_lock_are_kept_or_refused() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (a INT PRIMARY KEY, b INT, c INT, KEY (c))");
    t.ok("INSERT INTO t VALUES (1, 1, 1)");
    t.error("ALTER TABLE t ADD d INT, ALGORITHM = slow", 1800, "Unknown ALGORITHM 'slow'");
    t.error("CREATE INDEX i ON t (b) LOCK = some", 1801, "Unknown LOCK type 'some'");
    // The definition alone.
    t.ok("ALTER TABLE t ADD d INT, ALGORITHM = INSTANT");
    t.ok("ALTER TABLE t RENAME COLUMN d TO e, ALGORITHM = INPLACE, LOCK = NONE");
    t.ok("ALTER TABLE t DROP COLUMN e, LOCK = SHARED, ALGORITHM = DEFAULT");
    t.ok("DROP INDEX c ON t ALGORITHM = INPLACE LOCK = NONE");
    let instant = "ALGORITHM=INSTANT is not supported for this operation. Try ALGORITHM=COPY/INPLACE.";
    t.error("ALTER TABLE t ADD KEY (b), ALGORITHM = INSTANT", 1845, instant);
    t.error(
        "ALTER TABLE t ADD e INT, ADD KEY (e), ALGORITHM = INPLACE, LOCK = NONE",
        1845,
        "LOCK=NONE is not supported for this operation. Try LOCK=EXCLUSIVE.",
    );
    t.error(
        "ALTER TABLE t MODIFY b BIGINT UNSIGNED, ALGORITHM = INPLACE",
        1845,
        "ALGORITHM=INPLACE is not supported for this operation. Try ALGORITHM=COPY.",
    );
    t.error(
        "ALTER TABLE t MODIFY b BIGINT UNSIGNED, ALGORITHM = COPY, LOCK = NONE",
        1846,
        "LOCK=NONE is not supported. Reason: COPY algorithm requires a lock. Try LOCK=SHARED.",
    );
    t.code("ALTER TABLE t ADD d INT, ALGORITHM = INSTANT, LOCK = NONE", 1221);
    t.error(
        "ALTER TABLE t ADD e INT, ADD FOREIGN KEY (e) REFERENCES t (a), LOCK = SHARED",
        1845,
        "LOCK=SHARED is not supported for this operation. Try LOCK=EXCLUSIVE.",
    );
    t.code("ALTER TABLE t ADD FOREIGN KEY (b) REFERENCES t (a), ALGORITHM = INSTANT", 1845);
    // Nothing has changed by what was refused.
    t.expect("SHOW COLUMNS FROM t", &["a|int|NO|PRI|NULL|", "b|int|YES||NULL|", "c|int|YES||NULL|"]);
    t.ok("ALTER TABLE t MODIFY b BIGINT UNSIGNED, ALGORITHM = COPY, LOCK = EXCLUSIVE");
    t.ok("CREATE INDEX i ON t (b) ALGORITHM = INPLACE LOCK = EXCLUSIVE");
    // What is filled while others go on.
    t.ok("CREATE INDEX j ON t (b, c) ALGORITHM = INPLACE LOCK = NONE");
    t.ok("ALTER TABLE t ADD KEY k (d, b), RENAME COLUMN c TO d, LOCK = SHARED");
    t.ok("CREATE UNIQUE INDEX u ON t (b, a) ALGORITHM = INPLACE LOCK = NONE");
    t.ok("CREATE TABLE p (a BIGINT UNSIGNED PRIMARY KEY)");
    t.code("ALTER TABLE t ADD FOREIGN KEY (b) REFERENCES p (a), LOCK = NONE", 1452);
    t.ok("INSERT INTO p VALUES (1)");
    t.ok("ALTER TABLE t ADD FOREIGN KEY (b) REFERENCES p (a), ALGORITHM = INPLACE, LOCK = NONE");
    t.ok("ALTER TABLE t ADD l TEXT");
    t.ok("ALTER TABLE t ADD FULLTEXT (l), ALGORITHM = INPLACE, LOCK = NONE");
}

#[test]
fn a_database_gets_another_collation() {
    let disk = MemoryDisk::new();
    {
        let server = server_on(disk.clone());
        let mut t = server.session();
        t.ok("CREATE DATABASE d COLLATE utf8mb4_bin");
        t.ok("CREATE TABLE d.before_it (a VARCHAR(10))");
        t.ok("USE d");
        t.ok("ALTER DATABASE d CHARACTER SET latin1");
        t.expect("SELECT @@character_set_database, @@collation_database", &["latin1|latin1_swedish_ci"]);
        t.ok("CREATE TABLE after_it (a VARCHAR(10))");
        t.ok("ALTER DATABASE COLLATE latin1_bin");
        t.code("ALTER DATABASE d READ ONLY = 1", 1235);
        t.code("ALTER DATABASE d ENCRYPTION = 'Y'", 1235);
        t.code("CREATE DATABASE e ENCRYPTION = 'Y'", 1235);
        t.ok("ALTER DATABASE d READ ONLY = DEFAULT ENCRYPTION = 'N'");
        t.code("ALTER DATABASE nowhere COLLATE utf8mb4_bin", 1049);
        t.code("ALTER DATABASE d CHARACTER SET latin1 COLLATE utf8mb4_bin", 1253);
    }
    let server = server_on(disk);
    let mut t = server.session();
    t.expect(
        "SELECT table_name, table_collation FROM information_schema.tables WHERE table_schema = 'd' ORDER BY 1",
        &["after_it|latin1_swedish_ci", "before_it|utf8mb4_bin"],
    );
    t.expect("SELECT default_collation_name FROM information_schema.schemata WHERE schema_name = 'd'", &["latin1_bin"]);
}
