//! CREATE, ALTER, DROP, and SHOW CREATE TABLE, which must make the same table again.

use super::{Test, server, server_on};
use rauk_log::MemoryDisk;

fn shown(t: &mut Test, table: &str) -> String {
    let (sink, result) = t.collect(&format!("SHOW CREATE TABLE {table}"));
    result.unwrap();
    sink.last().unwrap().text(0, 1).unwrap()
}

#[test]
fn show_create_table_makes_the_same_table() {
    let server = server();
    let mut t = server.session();
    let text = "CREATE TABLE `every` (
  `id` bigint unsigned NOT NULL AUTO_INCREMENT COMMENT 'the ''key''',
  `flag` tinyint(1) NOT NULL DEFAULT '0',
  `small` smallint DEFAULT NULL,
  `price` decimal(10,2) unsigned NOT NULL DEFAULT '1.50',
  `ratio` float DEFAULT NULL,
  `wide` double(10,3) DEFAULT NULL,
  `name` varchar(20) NOT NULL DEFAULT '',
  `code` char(3) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT 'abc',
  `body` text,
  `doc` json DEFAULT NULL,
  `raw` varbinary(16) DEFAULT NULL,
  `pic` blob,
  `day` date DEFAULT '2024-02-29',
  `at` datetime(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3),
  `seen` timestamp NULL DEFAULT NULL,
  `span` time(6) DEFAULT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `name` (`name`,`code` DESC),
  KEY `body` (`body`(10)) COMMENT 'a prefix',
  KEY `day` (`day`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci COMMENT='all of it'";
    t.ok(text);
    assert_eq!(shown(&mut t, "`every`"), text);
    t.ok("DROP TABLE `every`");
    t.ok(
        "CREATE TABLE p (w INT, d INT, n INT, PRIMARY KEY (w, d) USING HASH) COLLATE utf8mb4_bin PARTITION BY KEY (w)",
    );
    let text = shown(&mut t, "p");
    assert_eq!(
        text,
        "CREATE TABLE `p` (
  `w` int NOT NULL,
  `d` int NOT NULL,
  `n` int DEFAULT NULL,
  PRIMARY KEY (`w`,`d`) USING HASH
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
/*!50100 PARTITION BY KEY (`w`) */"
    );
    t.ok("DROP TABLE p");
    t.ok(&text);
    assert_eq!(shown(&mut t, "p"), text);
}

#[test]
fn types_and_their_synonyms() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (a INTEGER, b BOOL, c NUMERIC(5), d DEC(4,1), e REAL, f NCHAR(3), g SERIAL, h INT(11), i TEXT(100), j DOUBLE PRECISION, k NATIONAL VARCHAR(9), l CHAR BINARY, m VARCHAR(5) CHARACTER SET binary, n FLOAT(30))");
    let lines: Vec<String> = shown(&mut t, "t").lines().map(|l| l.trim().trim_end_matches(',').to_string()).collect();
    assert_eq!(
        &lines[1..15],
        [
            "`a` int DEFAULT NULL",
            "`b` tinyint(1) DEFAULT NULL",
            "`c` decimal(5,0) DEFAULT NULL",
            "`d` decimal(4,1) DEFAULT NULL",
            "`e` double DEFAULT NULL",
            "`f` char(3) CHARACTER SET utf8mb3 DEFAULT NULL",
            "`g` bigint unsigned NOT NULL AUTO_INCREMENT",
            "`h` int DEFAULT NULL",
            "`i` text",
            "`j` double DEFAULT NULL",
            "`k` varchar(9) CHARACTER SET utf8mb3 DEFAULT NULL",
            "`l` char(1) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL",
            "`m` varbinary(5) DEFAULT NULL",
            "`n` double DEFAULT NULL",
        ]
    );
    assert_eq!(lines[15], "UNIQUE KEY `g` (`g`)");
}

#[test]
fn what_is_refused_and_how() {
    let server = server();
    let mut t = server.session();
    for (sql, code) in [
        ("CREATE TABLE t (a VARCHAR(20000))", 1074),
        ("CREATE TABLE t (a CHAR(256))", 1074),
        ("CREATE TABLE t (a DECIMAL(66,2))", 1426),
        ("CREATE TABLE t (a DECIMAL(40,31))", 1425),
        ("CREATE TABLE t (a DECIMAL(5,6))", 1427),
        ("CREATE TABLE t (a DATETIME(7))", 1426),
        ("CREATE TABLE t (a INT, a INT)", 1060),
        ("CREATE TABLE t (a INT, KEY k (a), KEY K (a))", 1061),
        ("CREATE TABLE t (a INT DEFAULT 'x')", 1067),
        ("CREATE TABLE t (a INT NOT NULL DEFAULT NULL)", 1067),
        ("CREATE TABLE t (a DATE DEFAULT '2024-13-01')", 1067),
        ("CREATE TABLE t (a VARCHAR(2) DEFAULT 'abc')", 1067),
        ("CREATE TABLE t (a TEXT DEFAULT 'x')", 1101),
        ("CREATE TABLE t (a INT PRIMARY KEY, PRIMARY KEY (a))", 1068),
        ("CREATE TABLE t (a INT, KEY (b))", 1072),
        ("CREATE TABLE t (a INT AUTO_INCREMENT)", 1075),
        ("CREATE TABLE t (a VARCHAR(5) AUTO_INCREMENT PRIMARY KEY)", 1063),
        ("CREATE TABLE t (a TEXT, KEY (a))", 1170),
        ("CREATE TABLE t (a INT, KEY (a(2)))", 1089),
        ("CREATE TABLE t (a VARCHAR(5), KEY (a(6)))", 1089),
        ("CREATE TABLE t (a VARCHAR(1000), KEY (a))", 1071),
        ("CREATE TABLE t (a INT NULL PRIMARY KEY)", 1171),
        ("CREATE TABLE t (a INT, KEY `PRIMARY` (a))", 1280),
        ("CREATE TABLE t (a INT, b INT, PRIMARY KEY (a)) PARTITION BY KEY (b)", 1503),
        ("CREATE TABLE t (a INT, b INT, PRIMARY KEY (a)) PARTITION BY KEY (c)", 1488),
        ("CREATE TABLE t (a INT) PARTITION BY HASH (b)", 1054),
        ("CREATE TABLE t (a INT) ENGINE=Nonsense", 1286),
        ("CREATE TABLE t (a VARCHAR(10) COLLATE klingon_ci)", 1273),
        ("CREATE TABLE t (a ENUM('x', 'X '))", 1291),
        ("CREATE TABLE t (a SET('x,y'))", 1367),
        ("CREATE TABLE t (a ENUM('x') DEFAULT 1)", 1067),
        ("CREATE TABLE t (a ENUM('x') AUTO_INCREMENT PRIMARY KEY)", 1063),
        ("CREATE TABLE t (a YEAR(2))", 1818),
        ("CREATE TABLE t (a BIT(0))", 3013),
        ("CREATE TABLE t (a BIT(65))", 1439),
        ("CREATE TABLE t (a POINT NOT NULL, SPATIAL KEY (a))", 1235),
        ("CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES u (a) MATCH FULL)", 1235),
        ("CREATE TEMPORARY TABLE t (a INT, FOREIGN KEY (a) REFERENCES u (a))", 1215),
        ("CREATE TEMPORARY TABLE t (a INT PRIMARY KEY) PARTITION BY KEY (a)", 1562),
        ("CREATE TEMPORARY TABLE nowhere.t (a INT)", 1049),
        ("CREATE TABLE nowhere.t (a INT)", 1049),
        ("CREATE TABLE information_schema.t (a INT)", 1044),
        ("DROP TABLE nothing", 1051),
        ("CREATE DATABASE test", 1007),
        ("DROP DATABASE nothing", 1008),
        ("USE nothing", 1049),
        ("ALTER TABLE nothing ADD a INT", 1146),
        ("TRUNCATE nothing", 1146),
    ] {
        t.code(sql, code);
    }
    t.code(&format!("CREATE TABLE {} (a INT)", "x".repeat(65)), 1059);
    t.error("CREATE TABLE t (a INT DEFAULT 'x')", 1067, "Invalid default value for 'a'");
    t.error("DROP TABLE x, y", 1051, "Unknown table 'test.x,test.y'");
    t.expect("SHOW TABLES", &[]);
}

#[test]
fn if_exists_leaves_notes() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (a INT)");
    t.ok("CREATE TABLE IF NOT EXISTS t (a INT)");
    t.expect("SHOW WARNINGS", &["Note|1050|Table 't' already exists"]);
    t.ok("DROP TABLE IF EXISTS t, u");
    t.expect("SHOW WARNINGS", &["Note|1051|Unknown table 'test.u'"]);
    t.expect("SHOW TABLES", &[]);
    t.ok("CREATE DATABASE IF NOT EXISTS test");
    t.expect("SHOW WARNINGS", &["Note|1007|Can't create database 'test'; database exists"]);
    t.ok("CREATE TABLE m (a INT) ENGINE=MyISAM");
    t.expect("SHOW WARNINGS", &["Warning|1266|Using storage engine InnoDB for table 'm'"]);
}

#[test]
fn alter_adds_drops_and_renames_without_touching_rows() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT)");
    t.ok("INSERT INTO t VALUES (1, 10), (2, 20)");
    t.ok("ALTER TABLE t ADD COLUMN b VARCHAR(5) NOT NULL DEFAULT 'x' AFTER id, ADD KEY (a), ADD c INT NOT NULL");
    t.expect("SELECT * FROM t ORDER BY id", &["1|x|10|0", "2|x|20|0"]);
    t.ok("ALTER TABLE t DROP COLUMN b, RENAME COLUMN a TO z, ALTER c SET DEFAULT 4, RENAME INDEX a TO zz");
    t.ok("INSERT INTO t (id) VALUES (3)");
    t.expect("SELECT * FROM t ORDER BY id", &["1|10|0", "2|20|0", "3|NULL|4"]);
    t.expect("SELECT id FROM t WHERE z = 20", &["2"]);
    assert!(shown(&mut t, "t").contains("KEY `zz` (`z`)"));
    t.ok("ALTER TABLE t ADD UNIQUE KEY u (z)");
    t.code("INSERT INTO t VALUES (9, 10, 1)", 1062);
    t.ok("ALTER TABLE t DROP INDEX u, DROP KEY zz, COMMENT='c'");
    t.ok("INSERT INTO t VALUES (9, 10, 1)");
    t.error("ALTER TABLE t ADD UNIQUE KEY u (z)", 1062, "Duplicate entry '10' for key 't.u'");
    t.error("ALTER TABLE t DROP COLUMN nope", 1091, "Can't DROP 'nope'; check that column/key exists");
    t.error("ALTER TABLE t DROP KEY nope", 1091, "Can't DROP 'nope'; check that column/key exists");
    t.code("ALTER TABLE t MODIFY nope INT", 1054);
    t.ok("ALTER TABLE t RENAME TO s");
    t.expect("SELECT COUNT(*) FROM s", &["4"]);
    t.ok("RENAME TABLE s TO t, t TO u");
    t.expect("SHOW TABLES", &["u"]);
    t.ok("CREATE INDEX i ON u (c)");
    t.ok("DROP INDEX i ON u");
    t.ok("TRUNCATE TABLE u");
    t.expect("SELECT COUNT(*) FROM u", &["0"]);
}

#[test]
fn alter_rewrites_what_it_must() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(10), b INT)");
    t.ok("INSERT INTO t VALUES (1, '10', 5), (2, '20', NULL)");
    t.expect("ALTER TABLE t MODIFY a INT", &["OK 2"]);
    t.expect("SELECT a + 1 FROM t ORDER BY id", &["11", "21"]);
    t.error("ALTER TABLE t MODIFY b INT NOT NULL", 1138, "Invalid use of NULL value");
    t.expect("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (a, id)", &["OK 0"]);
    t.expect("SELECT id FROM t WHERE a = 20 AND id = 2", &["2"]);
    t.expect("ALTER TABLE t DROP PRIMARY KEY", &["OK 2"]);
    t.ok("INSERT INTO t VALUES (2, 20, 9)");
    t.ok("ALTER TABLE t ADD n INT NOT NULL AUTO_INCREMENT PRIMARY KEY FIRST");
    t.expect("SELECT COUNT(DISTINCT n), MAX(n) FROM t", &["3|3"]);
    t.ok("INSERT INTO t (id, a) VALUES (7, 7)");
    t.expect("SELECT n FROM t WHERE id = 7", &["4"]);
    t.error(
        "ALTER TABLE t MODIFY a TINYINT, MODIFY id TINYINT UNSIGNED, ADD UNIQUE (a)",
        1062,
        "Duplicate entry '20' for key 't.a'",
    );
    t.ok("ALTER TABLE t MODIFY a VARCHAR(3)");
    t.ok("INSERT INTO t (id, a) VALUES (300, 'zzz')");
    t.code("ALTER TABLE t MODIFY a INT", 1366);
    t.code("ALTER TABLE t MODIFY id TINYINT", 1264);
    t.expect("SELECT a FROM t WHERE id = 300", &["zzz"]);
}

#[test]
fn a_default_in_parentheses_is_an_expression() {
    let server = server();
    let mut t = server.session();
    t.code("CREATE TABLE t (a TEXT DEFAULT 'x')", 1101);
    t.ok("CREATE TABLE t (a TEXT DEFAULT ('x'), b INT DEFAULT (1 + 2), c INT DEFAULT -3, at DATETIME DEFAULT (NOW()))");
    t.code("ALTER TABLE t ALTER a SET DEFAULT 'y'", 1101);
    t.ok("ALTER TABLE t ALTER a SET DEFAULT ('y')");
    t.ok("INSERT INTO t () VALUES ()");
    t.expect("SELECT a, b, c, at IS NULL FROM t", &["y|3|-3|0"]);
    t.code("CREATE TABLE u (a INT, b INT DEFAULT a)", 1067);
    t.code("CREATE TABLE u (a DATETIME(3) DEFAULT NOW())", 1067);
}

#[test]
fn create_like_and_as_select() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a VARCHAR(10) DEFAULT 'q', KEY (a))");
    t.ok("INSERT INTO t (a) VALUES ('x'), ('y')");
    t.ok("CREATE TABLE l LIKE t");
    assert_eq!(shown(&mut t, "l"), shown(&mut t, "t").replace("`t`", "`l`").replace(" AUTO_INCREMENT=3", ""));
    t.expect("SELECT COUNT(*) FROM l", &["0"]);
    t.expect("CREATE TABLE s AS SELECT id, a, id * 2 AS twice FROM t", &["OK 2"]);
    t.expect("SELECT * FROM s ORDER BY id", &["1|x|2", "2|y|4"]);
    t.code("CREATE TABLE d (id INT PRIMARY KEY) AS SELECT 1 AS id FROM t", 1062);
    t.expect("SHOW TABLES", &["l", "s", "t"]);
    // The rows of a query that have a key in common: one stays, and with REPLACE it is the last one.
    t.expect("CREATE TABLE i (n INT PRIMARY KEY) IGNORE SELECT LENGTH(a) AS n, id FROM t", &["OK 1"]);
    t.expect("SELECT n FROM i", &["1"]);
    t.ok("CREATE TABLE r (n INT PRIMARY KEY) REPLACE AS SELECT LENGTH(a) AS n, id FROM t");
    t.expect("SELECT n FROM r", &["1"]);
    t.code("CREATE TABLE d (n INT PRIMARY KEY) IGNORE", 1064);
    t.code("CREATE TABLE d (n INT PRIMARY KEY) REPLACE", 1064);
    t.expect("SHOW TABLES", &["i", "l", "r", "s", "t"]);
    t.ok("CREATE TABLE a (x INT) AUTO_INCREMENT=100");
    t.ok("CREATE TABLE b (x INT AUTO_INCREMENT PRIMARY KEY) AUTO_INCREMENT=100");
    t.ok("INSERT INTO b VALUES ()");
    t.expect("SELECT x FROM b", &["100"]);
    t.ok("ALTER TABLE b AUTO_INCREMENT = 500");
    t.ok("INSERT INTO b VALUES ()");
    t.expect("SELECT MAX(x) FROM b", &["500"]);
}

#[test]
fn definitions_outlive_the_server() {
    let disk = MemoryDisk::new();
    let text = {
        let server = server_on(disk.clone());
        let mut t = server.session();
        t.ok("CREATE DATABASE other COLLATE utf8mb4_bin");
        t.ok("CREATE TABLE other.t (id INT PRIMARY KEY, s VARCHAR(9), UNIQUE (s))");
        t.ok("INSERT INTO other.t VALUES (1, 'a')");
        t.ok("ALTER TABLE other.t ADD n INT DEFAULT 3");
        let text = shown(&mut t, "other.t");
        rauk_node::block_on(server.engine.database.shutdown()).unwrap();
        text
    };
    let server = server_on(disk);
    let mut t = server.session();
    assert_eq!(shown(&mut t, "other.t"), text);
    t.expect("SELECT * FROM other.t", &["1|a|3"]);
    t.expect("SELECT COUNT(*) FROM other.t WHERE s = 'A'", &["0"]);
    t.expect("DROP DATABASE other", &["OK 1"]);
    t.code("SELECT * FROM other.t", 1049);
}

#[test]
fn fully_replicated_is_kept_shown_and_not_changed() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(20), UNIQUE KEY (name)) FULLY_REPLICATED=1 COMMENT='small'");
    t.ok("INSERT INTO item VALUES (1, 'a'), (2, 'b')");
    t.code("INSERT INTO item VALUES (3, 'a')", 1062);
    assert!(shown(&mut t, "item").contains("FULLY_REPLICATED=1 COMMENT='small'"));
    t.ok("CREATE TABLE copy LIKE item");
    assert!(shown(&mut t, "copy").contains("FULLY_REPLICATED=1"));
    t.ok("ALTER TABLE item ADD COLUMN n INT, FULLY_REPLICATED=1");
    t.code("ALTER TABLE item FULLY_REPLICATED=0", 1235);
    t.code("CREATE TABLE wrong (id INT PRIMARY KEY) FULLY_REPLICATED=2", 1064);
    t.expect("SELECT id, name, n FROM item ORDER BY id", &["1|a|NULL", "2|b|NULL"]);
}

/// Parts are named as before the statement, and once; the codes are MariaDB 10.11's.
#[test]
fn operations_of_one_alter_table() {
    let server = server();
    let mut t = server.session();
    for (sql, code) in [
        ("ALTER TABLE a ADD q INT, DROP q", 1091),
        ("ALTER TABLE a DROP q, ADD q INT", 1091),
        ("ALTER TABLE a ADD q INT, MODIFY q BIGINT", 1054),
        ("ALTER TABLE a ADD q INT, RENAME COLUMN q TO r", 1054),
        ("ALTER TABLE a DROP x, MODIFY x BIGINT", 1054),
        ("ALTER TABLE a MODIFY x BIGINT, DROP x", 1054),
        ("ALTER TABLE a CHANGE x z INT, DROP z", 1091),
        ("ALTER TABLE a RENAME COLUMN x TO z, DROP z", 1091),
        ("ALTER TABLE a RENAME COLUMN x TO z, DROP x", 1054),
        ("ALTER TABLE a RENAME COLUMN x TO z, RENAME COLUMN z TO w", 1054),
        ("ALTER TABLE a RENAME COLUMN x TO z, RENAME COLUMN x TO w", 1054),
        ("ALTER TABLE a RENAME COLUMN x TO z, MODIFY z BIGINT", 1054),
        ("ALTER TABLE a RENAME COLUMN x TO z, ALTER x SET DEFAULT 1", 1054),
        ("ALTER TABLE a RENAME COLUMN x TO z, ADD u INT AFTER x", 1054),
        ("ALTER TABLE a RENAME COLUMN x TO z, ADD KEY kz (x)", 1072),
        ("ALTER TABLE a RENAME COLUMN x TO y", 1060),
        ("ALTER TABLE a ADD KEY kk (x), DROP KEY kk", 1091),
        ("ALTER TABLE a RENAME KEY kx TO kl, DROP KEY kl", 1091),
        ("ALTER TABLE a RENAME KEY kx TO kl, RENAME KEY kl TO km", 1176),
        ("ALTER TABLE a ADD PRIMARY KEY (x), DROP PRIMARY KEY", 1091),
        ("ALTER TABLE a DROP x, DROP y", 1090),
        ("ALTER TABLE a CONVERT TO CHARACTER SET utf8mb4 COLLATE latin1_bin", 1253),
        ("ALTER TABLE a CHARACTER SET utf8mb4 COLLATE latin1_bin", 1253),
    ] {
        t.ok("DROP TABLE IF EXISTS a");
        t.ok("CREATE TABLE a (x INT, y INT, KEY kx (x))");
        t.code(sql, code);
        t.expect("SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_NAME = 'a'", &["x", "y"]);
    }
    t.ok("INSERT INTO a VALUES (1, 2)");
    t.ok("ALTER TABLE a RENAME COLUMN x TO y, RENAME COLUMN y TO x");
    t.expect("SELECT x, y FROM a", &["2|1"]);
    t.ok("ALTER TABLE a CHANGE x y BIGINT, CHANGE y x BIGINT, ADD u INT AFTER y");
    t.expect("SELECT * FROM a", &["1|2|NULL"]);
    t.expect("SELECT COLUMN_NAME FROM information_schema.STATISTICS WHERE TABLE_NAME = 'a'", &["x"]);
    t.code("ALTER TABLE a DROP KEY kx, ADD KEY kx (x, y), DROP x", 1072);
    t.ok("ALTER TABLE a DROP KEY kx, ADD KEY kx (y, u), DROP x, ADD z INT FIRST");
    t.expect("SELECT * FROM a", &["NULL|2|NULL"]);
}

#[test]
fn like_indexes_are_warned_of() {
    let server = server();
    let mut t = server.session();
    for (sql, warnings) in [
        ("CREATE TABLE a (x INT, y INT, KEY i1 (x), KEY i2 (x))", 1),
        ("ALTER TABLE a ADD KEY i3 (x)", 1),
        ("ALTER TABLE a ADD UNIQUE i4 (x)", 0),
        ("CREATE UNIQUE INDEX i5 ON a (x)", 1),
        ("ALTER TABLE a ADD KEY i6 (x, y), ADD KEY i7 (x DESC)", 0),
        ("ALTER TABLE a ADD UNIQUE u1 (y), ADD UNIQUE u2 (y)", 1),
        ("ALTER TABLE a ADD z INT", 0),
        ("CREATE TABLE b (x INT PRIMARY KEY, UNIQUE b (x), KEY c (x))", 0),
    ] {
        t.ok(sql);
        t.expect("SHOW COUNT(*) WARNINGS", &[&warnings.to_string()]);
    }
}

#[test]
fn names_and_numbers_of_columns_have_limits() {
    let server = server();
    let mut t = server.session();
    t.ok(&format!("SELECT 1 AS `{}`", "é".repeat(256)));
    t.code(&format!("SELECT 1 AS `{}`", "é".repeat(257)), 1059);
    // The text of an expression without an alias is cut.
    t.ok(&format!("SELECT {}1", "1 + ".repeat(100)));
    t.ok(&format!("SELECT {}1", "1,".repeat(4095)));
    t.code(&format!("SELECT {}1", "1,".repeat(4096)), 1117);
    t.ok("SET NAMES latin1");
    t.ok("SELECT 'a' COLLATE latin1_swedish_ci");
    t.ok("SET NAMES utf8mb4");
    t.code("SELECT 'a' COLLATE latin1_swedish_ci", 1253);
}

/// What is said of partitions is checked and shown again.
#[test]
fn declared_partitions_are_shown() {
    let server = server();
    let mut t = server.session();
    let tail = |t: &mut Test, table: &str| {
        let shown = t.run(&format!("SHOW CREATE TABLE {table}"));
        shown.split_once("/*!50100 ").map_or(String::new(), |(_, tail)| tail.to_string())
    };
    t.ok("CREATE TABLE a (id INT PRIMARY KEY) PARTITION BY KEY (id) PARTITIONS 4");
    assert_eq!(tail(&mut t, "a"), "PARTITION BY KEY (`id`)\nPARTITIONS 4 */");
    t.ok("CREATE TABLE b (id INT PRIMARY KEY) PARTITION BY LINEAR KEY ALGORITHM = 2 (id) (PARTITION x ENGINE = InnoDB, PARTITION `y z`)");
    assert_eq!(
        tail(&mut t, "b"),
        "PARTITION BY LINEAR KEY ALGORITHM = 2 (`id`)\n(PARTITION `x` ENGINE = InnoDB,\n PARTITION `y z` ENGINE = InnoDB) */"
    );
    t.ok("CREATE TABLE c (id INT PRIMARY KEY) ROW_FORMAT=DYNAMIC PARTITION BY KEY (id)");
    assert_eq!(tail(&mut t, "c"), "PARTITION BY KEY (`id`) */");
    // What is shown makes the same table, and so do LIKE and what changes something else.
    let shown = t.run("SHOW CREATE TABLE b");
    t.ok(&shown.split_once('|').expect("a name and a text").1.replace("TABLE `b`", "TABLE `d`"));
    t.ok("CREATE TABLE e LIKE d");
    t.ok("ALTER TABLE e ADD COLUMN n INT, ROW_FORMAT=COMPACT");
    t.ok("ALTER TABLE e MODIFY id BIGINT");
    let expected = tail(&mut t, "b");
    for table in ["d", "e"] {
        assert_eq!(tail(&mut t, table), expected);
    }
    t.expect(
        "SELECT TABLE_NAME, PARTITION_METHOD FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA = 'test' ORDER BY 1",
        &[
            "a|KEY",
            "a|KEY",
            "a|KEY",
            "a|KEY",
            "b|LINEAR KEY",
            "b|LINEAR KEY",
            "c|KEY",
            "d|LINEAR KEY",
            "d|LINEAR KEY",
            "e|LINEAR KEY",
            "e|LINEAR KEY",
        ],
    );
    t.expect(
        "SELECT CREATE_OPTIONS FROM information_schema.TABLES WHERE TABLE_NAME IN ('a', 'e') ORDER BY TABLE_NAME",
        &["partitioned", "row_format=COMPACT partitioned"],
    );
    for (clause, code) in [
        ("(id) PARTITIONS 0", 1504),
        ("(id) PARTITIONS 8193", 1499),
        ("(id) PARTITIONS 3 (PARTITION x, PARTITION y)", 1064),
        ("(id) (PARTITION x, PARTITION X)", 1517),
        ("ALGORITHM = 3 (id)", 1064),
    ] {
        t.code(&format!("CREATE TABLE f (id INT PRIMARY KEY) PARTITION BY KEY {clause}"), code);
    }
    t.ok("CREATE TABLE f (id INT PRIMARY KEY) PARTITION BY KEY (id) PARTITIONS 8192");
}

/// What other statements say of tables that are, or were to be, partitioned.
#[test]
fn around_partitions() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE h (a INT, b INT) PARTITION BY HASH (a) PARTITIONS 2");
    t.code("ALTER TABLE h DROP COLUMN a", 3855);
    t.code("ALTER TABLE h RENAME COLUMN a TO z", 3855);
    t.code("ALTER TABLE h MODIFY a DATE", 1659);
    t.code("ALTER TABLE h ADD UNIQUE (b)", 1503);
    t.code("ALTER TABLE h ADD FOREIGN KEY (b) REFERENCES p (id)", 1506);
    t.code("CREATE TEMPORARY TABLE h2 LIKE h", 1562);
    t.code("CREATE TABLE child (a INT, FOREIGN KEY (a) REFERENCES h (a))", 1506);
    t.code("ALTER TABLE h DROP PARTITION p0", 1512);
    t.code("ALTER TABLE h PARTITION BY RANGE (a)", 1492);
    t.ok("CREATE TABLE plain (id INT PRIMARY KEY, b INT)");
    t.code("ALTER TABLE plain REMOVE PARTITIONING", 1505);
    t.code("ALTER TABLE plain DROP PARTITION p0", 1505);
    t.code("ALTER TABLE plain PARTITION BY HASH (zz)", 1054);
    t.ok("CREATE TABLE child (a INT, FOREIGN KEY (a) REFERENCES plain (id))");
    t.code("ALTER TABLE child PARTITION BY HASH (a)", 1506);
    // Rows that are spread otherwise are written again.
    t.ok("CREATE TABLE spread (a INT, b INT, PRIMARY KEY (a, b))");
    t.ok("INSERT INTO spread VALUES (1, 1), (1, 2), (2, 1)");
    t.ok("ALTER TABLE spread PARTITION BY KEY (b)");
    assert!(t.run("SHOW CREATE TABLE spread").ends_with("/*!50100 PARTITION BY KEY (`b`) */"));
    t.expect("SELECT * FROM spread ORDER BY a, b", &["1|1", "1|2", "2|1"]);
    t.ok("ALTER TABLE spread REMOVE PARTITIONING");
    assert!(!t.run("SHOW CREATE TABLE spread").contains("PARTITION"));
    t.expect("SELECT b FROM spread WHERE a = 1 AND b = 2", &["2"]);
    t.ok("CREATE TEMPORARY TABLE own (id INT)");
    t.code("ALTER TABLE own PARTITION BY HASH (id)", 1562);
    t.ok("SET foreign_key_checks = 0");
    t.ok("CREATE TABLE early (a INT, FOREIGN KEY (a) REFERENCES late (id))");
    t.code("CREATE TABLE late (id INT PRIMARY KEY) PARTITION BY HASH (id)", 1506);
    t.expect(
        "SELECT PARTITION_NAME, PARTITION_METHOD, PARTITION_EXPRESSION, PARTITION_DESCRIPTION, NODEGROUP FROM information_schema.PARTITIONS WHERE TABLE_NAME = 'h'",
        &["p0|HASH|`a`|NULL|default", "p1|HASH|`a`|NULL|default"],
    );
    t.expect("SELECT CREATE_OPTIONS FROM information_schema.TABLES WHERE TABLE_NAME = 'h'", &["partitioned"]);
}

#[test]
fn comments_of_databases() {
    let server = server();
    let mut t = server.session();
    let comment =
        |t: &mut Test| t.run("SELECT SCHEMA_COMMENT FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'd'");
    let long = "ä".repeat(1025);
    let text = "Comment for database 'd' is too long (max = 1024)";
    t.error(&format!("CREATE DATABASE d COMMENT '{long}'"), 4160, text);
    t.ok("SET sql_mode = ''");
    t.ok(&format!("CREATE DATABASE d COMMENT '{long}'"));
    t.expect("SHOW WARNINGS", &[&format!("Warning|4160|{text}")]);
    assert_eq!(comment(&mut t), "ä".repeat(1024));
    t.ok("USE d");
    t.ok("ALTER DATABASE COMMENT = 'it''s'");
    assert_eq!(comment(&mut t), "it's");
    t.ok("ALTER DATABASE d COLLATE utf8mb4_bin");
    let shown = t.run("SHOW CREATE DATABASE d");
    assert!(shown.ends_with("/*!80016 DEFAULT ENCRYPTION='N' */ COMMENT 'it''s'"), "{shown}");
    t.ok("DROP DATABASE d");
    t.ok(shown.split_once('|').expect("a name and a text").1);
    assert_eq!(comment(&mut t), "it's");
}
