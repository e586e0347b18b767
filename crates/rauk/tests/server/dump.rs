//! `rauk dump` on a real server: what it writes loads into another Rauk and into a MariaDB and is the same there; one
//! moment is dumped; whatever goes wrong leaves nothing that looks whole.

use crate::common::mariadb::MariaDb;
use crate::common::{Rauk, connect_to, run, text};
use mysql::prelude::Queryable;
use mysql::{Conn, Value};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn tool(port: u16, name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rauk"));
    command.args([name, "-P", &port.to_string()]).args(arguments).env_remove("MYSQL_PWD").stdin(Stdio::null());
    command
}

fn dump(port: u16, arguments: &[&str]) -> Output {
    tool(port, "dump", arguments).output().expect("rauk runs")
}

/// Standard output and standard error of a dump that succeeds.
fn dumped(port: u16, arguments: &[&str]) -> (String, String) {
    let output = dump(port, arguments);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (String::from_utf8(output.stdout).expect("a dump is UTF-8"), said)
}

/// The one line of a dump that fails.
fn refused(port: u16, arguments: &[&str]) -> String {
    let output = dump(port, arguments);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("rauk: ")).collect();
    assert_eq!(lines.len(), 1, "{said}");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("Dump completed"), "{output:?}");
    lines[0].into()
}

fn import(port: u16, arguments: &[&str]) {
    let output = tool(port, "import", arguments).output().expect("rauk runs");
    assert!(output.status.success(), "{output:?}");
}

fn execute(client: &mut Conn, statements: &[&str]) {
    for sql in statements {
        client.query_drop(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

fn session(client: &mut Conn) {
    execute(client, &["SET NAMES utf8mb4, time_zone = '+00:00', sql_mode = 'NO_AUTO_VALUE_ON_ZERO'"]);
}

/// Waits for a state.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "{what} does not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// What both servers have.
const COMMON: &[&str] = &[
    "CREATE DATABASE `odd ``db`` ü` CHARACTER SET latin1 COLLATE latin1_german1_ci",
    "USE `odd ``db`` ü`",
    "CREATE TABLE kinds (id BIGINT UNSIGNED PRIMARY KEY, ti TINYINT, tb TINYINT(1) DEFAULT 1, si SMALLINT UNSIGNED, \
     mi MEDIUMINT, i INT(8) UNSIGNED ZEROFILL DEFAULT 7, de DECIMAL(65,30), dn DECIMAL(12,2) NOT NULL DEFAULT -1.50, \
     f FLOAT, fd FLOAT(7,3), d DOUBLE, dd DOUBLE(10,2), b1 BIT(1) DEFAULT b'1', b64 BIT(64), da DATE, t TIME, \
     t6 TIME(6), dt DATETIME, dt6 DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6), \
     ts TIMESTAMP NULL, ts6 TIMESTAMP(6) NOT NULL DEFAULT '2026-01-02 03:04:05.000006', y YEAR, c CHAR(5) DEFAULT 'it''s', \
     vc VARCHAR(100) COLLATE utf8mb4_bin, l1 VARCHAR(20) CHARACTER SET latin1, bi BINARY(4), vb VARBINARY(20) DEFAULT 0x00FF, \
     tt TINYTEXT, tx TEXT DEFAULT ('a \\\\ b'), mt MEDIUMTEXT, lt LONGTEXT, tbl TINYBLOB, bl BLOB, mb MEDIUMBLOB, lb LONGBLOB, \
     e ENUM('a','','it''s, `b`') CHARACTER SET utf8mb4, s SET('x','y z','ü') CHARACTER SET utf8mb4, j JSON, \
     g GEOMETRY, p POINT COMMENT 'a \\'quoted\\' \\\\ one\\nof two lines', gc GEOMETRYCOLLECTION, \
     made BIGINT GENERATED ALWAYS AS (ti + 1) VIRTUAL, kept VARCHAR(40) CHARACTER SET utf8mb4 \
     GENERATED ALWAYS AS (CONCAT(vc, '; ''x'' -- no comment')) STORED) CHARSET=utf8mb4 COMMENT='all `kinds`; \"of\" \\\\ them'",
    "INSERT INTO kinds (id) VALUES (0)",
    "INSERT INTO kinds (id, vc, tx, lt, bl, e, s, j, c, l1) VALUES (1, '', '', '', '', '', '', '\"\"', '', ''), \
     (2, 'NULL', '\\\\N', 'null', 'NULL', 'a', 'x', 'null', 'NULL', 'NULL')",
    "INSERT INTO kinds (id, ti, tb, si, mi, i, de, dn, f, fd, d, dd, b1, b64, da, t, t6, dt, dt6, ts, ts6, y, c, vc, l1, bi, vb, \
     tt, tx, mt, lt, tbl, bl, mb, lb, e, s, j, g, p, gc) VALUES (18446744073709551615, -128, 0, 65535, -8388608, 42, \
     -12345678901234567890123456789012345.012345678901234567890123456789, 0.01, 3.4028234663852886e38, 1234.567, \
     -1.7976931348623157e308, 12345678.12, b'0', x'FFFFFFFFFFFFFFFF', '9999-12-31', '-838:59:59', '838:59:58.999999', \
     '1000-01-01 00:00:00', '2026-11-29 01:02:03.000004', '2038-01-19 03:14:07', '1970-01-01 00:00:01.000001', 2155, 'äöü', \
     '日本 😀 ''\"`\\\\ \\r\\n\\0\\Z %_', 'naïve €', x'00FF0000', x'27005C0A0D1A22', 'tt', REPEAT('tx\\n', 5000), \
     REPEAT('ä', 70000), REPEAT('long;\\n', 100000), x'FF', x'00', REPEAT(x'27', 70000), REPEAT(x'0102', 700000), \
     'it''s, `b`', 'x,ü', '{\"a\": [1, \"it''s\", null, 1.5, \"\\\\u00e4\"], \"b\": {}}', ST_GeomFromText('LINESTRING(0 0,1 1)'), \
     ST_GeomFromText('POINT(1.5 -2)'), ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,1 2))')), \
     (3, 1, 1, 0, 0, 0, 0.1, 1, 0.1, 0.001, 0.1, 0.1, 1, x'01', '0000-00-00', '00:00:00', '0:0:0.1', '0000-00-00 00:00:00', \
     NULL, NULL, '2026-01-01', 1901, 'a', 'a ', 'a', 'a', 'a', '', '', '', '', '', '', '', '', 'a', '', '1', NULL, NULL, NULL)",
    "CREATE TABLE numbers (id INT AUTO_INCREMENT PRIMARY KEY, v INT) AUTO_INCREMENT=1000",
    "INSERT INTO numbers VALUES (0, 1), (-5, 2), (7, 3)",
    "CREATE TABLE without_key (a INT, b VARCHAR(3)) CHARSET=utf8mb4",
    "INSERT INTO without_key VALUES (1, 'x'), (1, 'x'), (NULL, NULL), (NULL, NULL)",
    "CREATE TABLE members (id INT PRIMARY KEY, e ENUM('a','b')) CHARSET=ascii",
    "INSERT INTO members VALUES (1, 'a'), (2, 'no member'), (3, 'b'), (4, NULL)",
    "CREATE TABLE a_child (id INT PRIMARY KEY, parent INT, KEY (parent))",
    "CREATE TABLE z_parent (id INT PRIMARY KEY, favourite INT, KEY (favourite))",
    "ALTER TABLE a_child ADD CONSTRAINT `of ``z``` FOREIGN KEY (parent) REFERENCES z_parent (id) ON DELETE CASCADE ON UPDATE SET NULL",
    "ALTER TABLE z_parent ADD CONSTRAINT of_a FOREIGN KEY (favourite) REFERENCES a_child (id)",
    "SET foreign_key_checks = 0",
    "INSERT INTO a_child VALUES (1, 10), (2, 20), (3, NULL)",
    "INSERT INTO z_parent VALUES (10, 2), (20, 1)",
    "SET foreign_key_checks = 1",
    "CREATE TABLE checked (a INT CHECK (a > 0), b VARCHAR(20), CONSTRAINT `it's; one` CHECK (b <> 'collate utf8mb4_0900_ai_ci')) CHARSET=utf8mb4",
    "INSERT INTO checked VALUES (1, 'x'), (NULL, NULL)",
    "CREATE TABLE `select ``*`` 'from' \"ü\"; -- x` (`a``b` INT, `c d` INT COMMENT '/* no */', `größe` VARCHAR(9), \
     UNIQUE KEY `k ``1` (`a``b`, `größe`(3) DESC)) CHARSET=utf8mb4",
    "INSERT INTO `select ``*`` 'from' \"ü\"; -- x` VALUES (1, 2, 'x')",
    "CREATE TABLE by_range (a INT, b VARCHAR(10), PRIMARY KEY (a, b)) CHARSET=latin1 PARTITION BY RANGE COLUMNS (a, b) \
     (PARTITION p0 VALUES LESS THAN (10, 'm') COMMENT 'it''s', PARTITION `p 1` VALUES LESS THAN (MAXVALUE, MAXVALUE))",
    "INSERT INTO by_range VALUES (1, 'a'), (10, 'z'), (99, '')",
    "CREATE TABLE by_list (a INT, b INT, PRIMARY KEY (a)) PARTITION BY LIST (a) SUBPARTITION BY HASH (a + 1) SUBPARTITIONS 2 \
     (PARTITION p0 VALUES IN (1, 3), PARTITION p1 VALUES IN (2, 4))",
    "INSERT INTO by_list VALUES (1, 1), (4, 4)",
    "CREATE TABLE by_key (a INT PRIMARY KEY) PARTITION BY KEY (a) PARTITIONS 3",
    "INSERT INTO by_key VALUES (1), (2), (3)",
    "CREATE TABLE many (id INT PRIMARY KEY, v VARCHAR(200)) CHARSET=utf8mb4",
    "INSERT INTO many WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 900) \
     SELECT x.i * 1000 + y.i, REPEAT(CONCAT('row ', y.i, ' '), 20) FROM n x, n y WHERE x.i <= 20",
    "CREATE VIEW a_view AS SELECT id, `a``b` FROM z_view JOIN `select ``*`` 'from' \"ü\"; -- x` WHERE id >= 0",
    "CREATE OR REPLACE VIEW z_view AS SELECT id, v FROM numbers WITH CASCADED CHECK OPTION",
    "CREATE SQL SECURITY INVOKER VIEW texts (t, `u v`) AS SELECT 'it''s ü; \\\\', JSON_EXTRACT(j, '$.a[0]') FROM kinds WHERE id = 18446744073709551615",
];

/// What MariaDB has otherwise, or not at all.
const OWN: &[&str] = &[
    "CREATE DATABASE own COLLATE utf8mb4_0900_as_cs",
    "USE own",
    "CREATE TABLE spread (a INT, b INT, PRIMARY KEY (a, b) USING HASH) PARTITION BY KEY (a)",
    "INSERT INTO spread VALUES (1, 1), (1, 2)",
    "CREATE TABLE copied (a INT) FULLY_REPLICATED=1 COMMENT='FULLY_REPLICATED=1'",
    "CREATE TABLE hidden (a INT, b INT NOT NULL DEFAULT '5' INVISIBLE, c INT NOT NULL INVISIBLE, KEY unseen (a) INVISIBLE)",
    "INSERT INTO hidden (a, b, c) VALUES (1, 2, 3)",
    "CREATE TABLE keyed (id INT PRIMARY KEY, name VARCHAR(20), j JSON, UNIQUE KEY by_lower ((LOWER(name))), \
     KEY elements ((CAST(j->'$.n' AS UNSIGNED ARRAY))), FULLTEXT KEY words (name) WITH PARSER ngram, FULLTEXT KEY plain (name))",
    "INSERT INTO keyed VALUES (1, 'Ada', '{\"n\": [1, 2]}')",
    "CREATE TABLE expressions (id INT NOT NULL, made INT GENERATED ALWAYS AS (id + 1) STORED NOT NULL PRIMARY KEY, \
     u VARCHAR(36) DEFAULT (BIN_TO_UUID(UUID_TO_BIN(UUID()))), w VARCHAR(40) DEFAULT (CONCAT('a', '->')), \
     shape GEOMETRY SRID 4326, r INT GENERATED ALWAYS AS (REGEXP_LIKE(w, 'a')) VIRTUAL, \
     CONSTRAINT kept CHECK (id > 0), CONSTRAINT looked CHECK (REGEXP_LIKE(w, 'a')), CONSTRAINT lazy CHECK (id > 100) NOT ENFORCED)",
    "INSERT INTO expressions (id, shape) VALUES (1, ST_GeomFromText('POINT(40 10)', 4326)), (2, NULL)",
    "CREATE TABLE by_default (a INT PRIMARY KEY) PARTITION BY LIST (a) (PARTITION p0 VALUES IN (1), PARTITION p1 DEFAULT)",
    "INSERT INTO by_default VALUES (1), (5)",
    "CREATE TABLE by_time (day DATE NOT NULL, code INT, UNIQUE KEY code (code) GLOBAL) PARTITION BY RANGE COLUMNS (day) INTERVAL 1 YEAR RETAIN 9 YEAR",
    "INSERT INTO by_time VALUES ('2026-11-30', 1), ('1999-01-01', 2)",
    "CREATE TABLE spaces (v VARCHAR(10) PRIMARY KEY COMMENT 'collate utf8mb4_0900_ai_ci')",
    "INSERT INTO spaces VALUES ('a'), ('a '), ('ä'), ('A')",
    "CREATE VIEW path AS SELECT id, j->>'$.n[0]' AS n, name COLLATE utf8mb4_is_0900_ai_ci AS i FROM keyed",
    "CREATE VIEW liked AS SELECT id FROM keyed WHERE REGEXP_LIKE(name, 'a')",
    "CREATE VIEW above AS SELECT id FROM liked",
    "CREATE TABLE going (a INT)",
    "CREATE VIEW broken AS SELECT a FROM going",
    "DROP TABLE going",
];

fn columns(client: &mut Conn, database: &str, table: &str) -> Vec<(String, String)> {
    client
        .exec(
            "SELECT COLUMN_NAME, DATA_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION",
            (database, table),
        )
        .expect("columns")
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// All values in a form that servers do not show differently; with the columns of the first server.
fn rows(client: &mut Conn, database: &str, table: &str, columns: &[(String, String)]) -> Vec<String> {
    let shown = columns.iter().map(|(name, kind)| match kind.as_str() {
        "float" | "double" => format!("{} * 1e0", quoted(name)),
        "bit" => format!("{} + 0", quoted(name)),
        // In their own form: the two servers write the axes of SRID 4326 in another order.
        "geometry" | "point" | "geomcollection" => format!("HEX({})", quoted(name)),
        kind if kind.ends_with("blob") || kind.ends_with("binary") => format!("HEX({})", quoted(name)),
        _ => quoted(name),
    });
    let shown: Vec<String> = shown.collect();
    let query = format!("SELECT {} FROM {}.{}", shown.join(", "), quoted(database), quoted(table));
    let mut rows = run(client, &query);
    assert!(!rows[0].starts_with("error") && !rows[0].starts_with("lost"), "{query}: {rows:?}");
    rows.sort();
    rows
}

fn tables(client: &mut Conn) -> Vec<(String, String)> {
    client
        .query(
            "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA NOT IN \
             ('information_schema', 'mysql', 'performance_schema', 'sys', 'rauk') ORDER BY 1, 2",
        )
        .expect("tables")
}

fn shown(client: &mut Conn, database: &str, table: &str) -> String {
    execute(client, &[&format!("USE {}", quoted(database))]);
    let row: mysql::Row =
        client.query_first(format!("SHOW CREATE TABLE {}", quoted(table))).expect("shown").expect("one row");
    row.unwrap_raw().into_iter().map(|value| text(&value.unwrap_or(Value::NULL))).collect::<Vec<_>>().join(" | ")
}

/// [`COMMON`] and [`OWN`]. The first view reads one that is made after it.
fn fill(client: &mut Conn) {
    execute(client, &COMMON[..2]);
    execute(client, &["CREATE TABLE early (id INT, v INT)", "CREATE VIEW z_view AS SELECT * FROM early"]);
    execute(client, &COMMON[2..]);
    execute(client, &["DROP TABLE early"]);
    execute(client, OWN);
}

#[test]
fn a_dump_loads_as_what_it_was() {
    let (data, other, files) = (tempfile::tempdir(), tempfile::tempdir(), tempfile::tempdir());
    let (data, other, files) = (data.expect("a directory"), other.expect("a directory"), files.expect("a directory"));
    let (rauk, second) = (Rauk::start(data.path()), Rauk::start(other.path()));
    let (mut client, mut there) = (rauk.connect(), second.connect());
    session(&mut client);
    session(&mut there);
    fill(&mut client);
    for name in ["shop", "staff"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/clients/dumps/{name}.sql"));
        execute(&mut client, &[&format!("CREATE DATABASE {name}")]);
        import(rauk.port, &["-D", name, &file.display().to_string()]);
    }
    // Only what cannot be read is told.
    let path = files.path().join("all.sql");
    let output = dump(rauk.port, &["--all-databases", "-o", &path.display().to_string()]);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("view own.broken: it is left out, since it cannot be read: ERROR 1356"), "{said}");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains(" tables, ") && said.contains("all.sql"), "{said}");
    assert!(!files.path().join("all.sql.part").exists());

    let first = std::fs::read_to_string(&path).expect("a dump is UTF-8");
    assert!(first.ends_with("\n-- Dump completed\n"));
    let longest = first.split(";\n").filter(|text| text.contains("INSERT INTO `many`")).map(str::len);
    let longest: Vec<usize> = longest.collect();
    assert!(longest.len() > 2 && longest.iter().all(|length| *length <= 1 << 20), "{longest:?}");

    import(second.port, &[&path.display().to_string()]);
    execute(&mut client, &["DROP VIEW own.broken"]);
    let found = tables(&mut client);
    assert_eq!(found, tables(&mut there));
    assert!(found.len() > 35, "{found:?}");
    for (database, table) in &found {
        assert_eq!(shown(&mut client, database, table), shown(&mut there, database, table));
        let columns = columns(&mut client, database, table);
        assert_eq!(
            rows(&mut client, database, table, &columns),
            rows(&mut there, database, table, &columns),
            "{database}.{table}"
        );
    }
    // The number that comes next, too.
    for connection in [&mut client, &mut there] {
        execute(connection, &["INSERT INTO `odd ``db`` ü`.numbers (v) VALUES (9)"]);
        assert_eq!(run(connection, "SELECT id FROM `odd ``db`` ü`.numbers WHERE v = 9"), ["1000"]);
    }
    execute(&mut client, &["DELETE FROM `odd ``db`` ü`.numbers WHERE v = 9"]);
    execute(&mut there, &["DELETE FROM `odd ``db`` ü`.numbers WHERE v = 9"]);
    // Nothing is different in what a dump of the copy says, but for the order of rows without a key.
    let whole = |port| {
        let text = dumped(port, &["--all-databases"]).0;
        let mut lines: Vec<String> = text.lines().map(|line| line.trim_end_matches([',', ';']).to_string()).collect();
        lines.sort();
        lines
    };
    assert_eq!(first_difference(&whole(rauk.port), &whole(second.port)), None);
}

#[test]
fn parts_of_a_database() {
    let data = tempfile::tempdir().expect("a directory");
    let rauk = Rauk::start(data.path());
    let mut client = rauk.connect();
    execute(
        &mut client,
        &[
            "CREATE DATABASE d",
            "USE d",
            "CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(9))",
            "CREATE TABLE b (id INT PRIMARY KEY)",
            "CREATE VIEW v AS SELECT id FROM a",
            "INSERT INTO a VALUES (1, 'one'), (2, 'two'), (3, 'three')",
            "INSERT INTO b VALUES (1)",
        ],
    );
    let (text, said) = dumped(rauk.port, &["d", "a", "--where", "id > 1 OR v = 'x'"]);
    assert!(text.contains("(2,'two'),\n(3,'three');") && !text.contains("'one'") && said.is_empty(), "{text}{said}");
    assert!(!text.contains("`b`") && !text.contains("VIEW"), "{text}");
    let (text, _) = dumped(rauk.port, &["d", "--no-data"]);
    assert!(text.contains("CREATE TABLE `b`") && text.contains("VIEW `v`") && !text.contains("INSERT"), "{text}");
    let (text, _) = dumped(rauk.port, &["d", "--no-schema"]);
    assert!(text.contains("INSERT INTO `b`") && text.contains("USE `d`") && !text.contains("CREATE"), "{text}");
    let (text, _) = dumped(rauk.port, &["d", "v"]);
    assert!(text.contains("VIEW `v`") && !text.contains("TABLE `a`"), "{text}");
}

#[test]
fn a_dump_loads_into_mariadb() {
    let (data, files) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let rauk = Rauk::start(data.path());
    let mariadb = MariaDb::start_with(&["--max-allowed-packet=64M"]);
    let (mut client, mut there) = (rauk.connect(), connect_to(mariadb.port).expect("root may"));
    session(&mut client);
    session(&mut there);
    fill(&mut client);
    execute(&mut client, &["CREATE TABLE large (b LONGBLOB)", "INSERT INTO large VALUES (REPEAT(x'00', 9000000))"]);
    collations(&mut client);
    let path = files.path().join("all.sql");
    let output = dump(rauk.port, &["--all-databases", "--for", "mariadb", "-o", &path.display().to_string()]);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    for part in [
        " more): collation utf8mb4_0900_as_cs becomes utf8mb4_uca1400_nopad_as_cs",
        "collation utf8mb4_0900_bin becomes utf8mb4_nopad_bin",
        "table own.spread: PARTITION BY KEY, which says how rows are spread over nodes, is left out",
        "table own.by_time: INTERVAL 1 YEAR RETAIN 9 YEAR is left out: no partitions are made and dropped by time there",
        "table own.by_time: the GLOBAL unique key `code` becomes a key that is not unique",
        "table own.copied: the option FULLY_REPLICATED of tables is left out",
        "the INVISIBLE column `c` becomes visible",
        "the key `by_lower` is left out, and nothing keeps its values unique: MariaDB 10.11 has no keys on expressions",
        "the key `elements` is left out",
        "WITH PARSER ngram become ones of words",
        "the generated column `made` becomes one with its values: it is of the primary key",
        "the generated column `r` becomes one with its values: MariaDB 10.11 has no function REGEXP_LIKE",
        "the default of column `u` is left out: MariaDB 10.11 has no function BIN_TO_UUID",
        "SRID 4326 of column `shape` is left out",
        "CHECK `looked` is left out: MariaDB 10.11 has no function REGEXP_LIKE",
        "CHECK `lazy` is left out: it is NOT ENFORCED",
        "view own.liked: it is left out: MariaDB 10.11 has no function REGEXP_LIKE",
        "view own.above: it is left out, since it reads own.liked, which is left out",
        "view own.broken: it is left out, since it cannot be read",
        "table own.large: a statement of 17.2 MiB; load the dump with a max_allowed_packet of more than that",
    ] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    let text = std::fs::read_to_string(&path).expect("a dump is UTF-8");
    for line in said.lines().filter(|line| !line.contains("max_allowed_packet")) {
        assert!(text.contains(&format!("-- Changed: {line}\n")), "{line}");
    }
    assert!(text.contains("COMMENT 'collate utf8mb4_0900_ai_ci'"), "texts stay");
    assert!(text.contains("KEY `unseen` (`a`) IGNORED") && text.contains("DEFAULT '5' INVISIBLE"));

    let mut loader = Command::new("mariadb");
    loader.args(["--no-defaults", "-h", "127.0.0.1", "-P", &mariadb.port.to_string(), "-u", "root", "--skip-ssl"]);
    // Behind it the session is what it was before.
    let session = "SELECT @@sql_mode = @@global.sql_mode, @@foreign_key_checks, @@time_zone, @@character_set_client;\n";
    let with_session = files.path().join("session.sql");
    std::fs::write(&with_session, format!("SET NAMES latin1;\n{text}{session}")).expect("written");
    loader.args(["--max-allowed-packet=64M", "-N"]).stdin(std::fs::File::open(&with_session).expect("readable"));
    let loaded = loader.output().expect("mariadb runs");
    assert!(loaded.status.success(), "{loaded:?}");
    assert_eq!(String::from_utf8_lossy(&loaded.stdout), "1\t1\tSYSTEM\tlatin1\n");

    let left_out = ["above", "broken", "liked"];
    let found: Vec<(String, String)> =
        tables(&mut client).into_iter().filter(|(_, name)| !left_out.contains(&name.as_str())).collect();
    assert_eq!(found, tables(&mut there));
    for (database, table) in &found {
        let columns = columns(&mut client, database, table);
        let (ours, theirs) =
            (rows(&mut client, database, table, &columns), rows(&mut there, database, table, &columns));
        assert_eq!(first_difference(&ours, &theirs), None, "{database}.{table}");
    }
    assert_eq!(
        run(&mut there, "SELECT COUNT(*) FROM own.spaces WHERE v = 'a'"),
        ["1"],
        "spaces, accents and case count"
    );
    execute(&mut there, &["INSERT INTO `odd ``db`` ü`.numbers (v) VALUES (9)"]);
    assert_eq!(run(&mut there, "SELECT id FROM `odd ``db`` ü`.numbers WHERE v = 9"), ["1000"]);
    // The same is refused where nothing may change, and nothing is written.
    let strict = files.path().join("strict.sql").display().to_string();
    let refusal = refused(rauk.port, &["own", "--for", "mariadb", "--strict", "-o", &strict]);
    assert!(refusal.contains("MariaDB 10.11 does not take everything as it is"), "{refusal}");
    assert!(!Path::new(&strict).exists() && !files.path().join("strict.sql.part").exists());
    let (text, said) = dumped(rauk.port, &["odd `db` ü", "by_range", "--for", "mariadb", "--strict"]);
    assert!(said.is_empty() && text.contains("PARTITION BY RANGE COLUMNS"), "{said}{text}");
}

fn first_difference(ours: &[String], theirs: &[String]) -> Option<(usize, String, String)> {
    let short = |text: Option<&String>| text.map_or("(end)".into(), |text| text.chars().take(2000).collect::<String>());
    let at = (0..ours.len().max(theirs.len())).find(|at| ours.get(*at) != theirs.get(*at))?;
    Some((at, short(ours.get(at)), short(theirs.get(at))))
}

/// A column of every collation that there is.
fn collations(client: &mut Conn) {
    let names: Vec<(String, String)> = client
        .query("SELECT CHARACTER_SET_NAME, COLLATION_NAME FROM information_schema.COLLATIONS ORDER BY 2")
        .expect("collations");
    assert!(names.len() > 500);
    execute(client, &["CREATE DATABASE collations"]);
    for (at, part) in names.chunks(100).enumerate() {
        let columns: Vec<String> = part
            .iter()
            .filter(|(charset, _)| charset != "binary")
            .map(|(charset, name)| format!("`{name}` VARCHAR(3) CHARACTER SET {charset} COLLATE {name}"))
            .collect();
        execute(client, &[&format!("CREATE TABLE collations.t{at} ({})", columns.join(", "))]);
    }
}

#[test]
fn definitions_for_mysql() {
    let data = tempfile::tempdir().expect("a directory");
    let rauk = Rauk::start(data.path());
    let mut client = rauk.connect();
    session(&mut client);
    execute(&mut client, OWN);
    execute(
        &mut client,
        &[
            "CREATE TABLE others (a VARCHAR(9) COLLATE utf8mb4_uca1400_danish_nopad_ai_ci, b VARCHAR(9) COLLATE utf8mb4_nopad_bin, \
             c VARCHAR(99) DEFAULT (JSON_COMPACT(JSON_ARRAY(UUID()))), KEY unseen (a) INVISIBLE)",
            "CREATE VIEW compact AS SELECT JSON_COMPACT(c) AS c FROM others",
        ],
    );
    let (text, said) = dumped(rauk.port, &["own", "--for", "mysql8"]);
    let lines: Vec<&str> = said.lines().collect();
    for part in [
        "view own.broken: it is left out",
        "table own.by_default: PARTITION BY is left out: MySQL 8.0 has no DEFAULT partition",
        "table own.copied: the option FULLY_REPLICATED of tables is left out",
        "table own.others: collation utf8mb4_uca1400_danish_nopad_ai_ci becomes utf8mb4_da_0900_ai_ci",
        "table own.others: collation utf8mb4_nopad_bin becomes utf8mb4_0900_bin",
        "the default of column `c` is left out: MySQL 8.0 has no function JSON_COMPACT",
        "view own.compact: it is left out: MySQL 8.0 has no function JSON_COMPACT",
        "table own.by_time: INTERVAL 1 YEAR RETAIN 9 YEAR is left out",
        "table own.by_time: the GLOBAL unique key `code` becomes a key that is not unique",
        "table own.spread: PARTITION BY KEY",
    ] {
        assert!(lines.iter().any(|line| line.contains(part)), "{part} is not in {said}");
    }
    assert_eq!(lines.len(), 10, "{said}");
    for part in [
        "UNIQUE KEY `by_lower` ((lower(`name`)))",
        "/*!80016 NOT ENFORCED */",
        "/*!80003 SRID 4326 */",
        "/*!80023 INVISIBLE */",
        "/*!80000 INVISIBLE */",
        "COLLATE=utf8mb4_0900_as_cs",
        "`j`->>'$.n[0]'",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    // Another Rauk reads MySQL's dialect.
    let (other, files) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let second = Rauk::start(other.path());
    let path = files.path().join("own.sql");
    std::fs::write(&path, &text).expect("written");
    import(second.port, &[&path.display().to_string()]);
    let (_, said) = dumped(second.port, &["own", "--for", "mysql8", "--strict"]);
    assert_eq!(said, "", "nothing is left that MySQL does not take");
}

#[test]
fn what_is_wrong_is_said() {
    let (data, files) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let rauk = Rauk::start(data.path());
    let mut client = rauk.connect();
    execute(&mut client, &["CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY)"]);
    execute(&mut client, &["INSERT INTO shop.orders VALUES (1)"]);
    let refusal = |arguments: &[&str]| refused(rauk.port, arguments);
    assert!(refusal(&["shpo"]).contains("there is no database 'shpo'; did you mean 'shop'?"));
    assert!(refusal(&["zzz"]).contains("there is no database 'zzz'"));
    assert!(refusal(&["shop", "ordres"]).contains("there is no table shop.ordres; did you mean 'orders'?"));
    assert!(refusal(&["information_schema"]).contains("the server's own database"));
    let wrong = refusal(&["shop", "--where", "nope = 1"]);
    assert!(wrong.contains("table shop.orders: ERROR 1054"), "{wrong}");
    let path = files.path().join("d.sql");
    std::fs::write(&path, "mine").expect("written");
    let shown = path.display().to_string();
    assert!(refusal(&["shop", "-o", &shown]).contains("exists; remove it or name another file"));
    assert_eq!(std::fs::read(&path).expect("read"), b"mine");
    let nowhere = files.path().join("no/d.sql").display().to_string();
    assert!(refusal(&["shop", "-o", &nowhere]).contains("cannot write"));
    let new = files.path().join("new.sql");
    assert!(refusal(&["shop", "--where", "nope = 1", "-o", &new.display().to_string()]).contains("1054"));
    assert_eq!(std::fs::read_dir(files.path()).expect("readable").count(), 1, "no part is left");
    // Of clap.
    let both = dump(rauk.port, &["shop", "--all-databases"]);
    assert!(both.status.code() == Some(2) && dump(rauk.port, &[]).status.code() == Some(2), "{both:?}");
    // A disk that is full, as standard output and as a file.
    execute(&mut client, &["CREATE TABLE shop.more (id INT PRIMARY KEY, v VARCHAR(2000))"]);
    execute(
        &mut client,
        &["INSERT INTO shop.more WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 900) \
           SELECT i, REPEAT('x', 2000) FROM n"],
    );
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("there is one");
    let output = tool(rauk.port, "dump", &["shop"]).stdout(full).output().expect("rauk runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("rauk: cannot write: No space left"), "{said}");
    let limited = format!(
        "trap '' XFSZ; ulimit -f 64; exec {} dump -P {} shop -o {}",
        env!("CARGO_BIN_EXE_rauk"),
        rauk.port,
        new.display()
    );
    let output = Command::new("bash").args(["-c", &limited]).output().expect("bash runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("cannot write") && said.contains("new.sql"), "{said}");
    assert_eq!(std::fs::read_dir(files.path()).expect("readable").count(), 1, "no part is left");
    // A reader that goes away.
    let mut child = tool(rauk.port, "dump", &["shop"]).stdout(Stdio::piped()).spawn().expect("rauk runs");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(141));
    // Another server.
    let mariadb = MariaDb::start();
    assert!(refused(mariadb.port, &["mysql"]).contains("not a Rauk; mariadb-dump and mysqldump"));
}

/// A table `d.big` that no buffer between a server and a reader holds, and `d.small`, which is dumped behind it.
fn large(client: &mut Conn) {
    execute(
        client,
        &[
            "CREATE DATABASE d",
            "USE d",
            "CREATE TABLE big (id INT PRIMARY KEY, v VARCHAR(4000))",
            "INSERT INTO big WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 900) \
             SELECT x.i * 1000 + y.i, REPEAT('long ', 800) FROM n x, n y WHERE x.i <= 25",
            "CREATE TABLE small (id INT PRIMARY KEY, v INT)",
            "INSERT INTO small VALUES (1, 1), (2, 2)",
        ],
    );
}

fn begun(port: u16, arguments: &[&str]) -> Child {
    let mut command = tool(port, "dump", arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("rauk runs")
}

#[test]
fn one_moment_is_dumped_in_bounded_memory() {
    let data = tempfile::tempdir().expect("a directory");
    let rauk = Rauk::start(data.path());
    let mut client = rauk.connect();
    large(&mut client);
    let mut child = begun(rauk.port, &["d"]);
    let mut out = child.stdout.take().expect("piped");
    let mut text = vec![0; 4096];
    out.read_exact(&mut text).expect("a beginning");
    // Its rows have begun to come, so the moment is over.
    execute(
        &mut client,
        &["UPDATE small SET v = 100", "INSERT INTO small VALUES (3, 3)", "DELETE FROM big WHERE id > 2000"],
    );
    execute(&mut client, &["SET lock_wait_timeout = 1"]);
    assert_eq!(run(&mut client, "ALTER TABLE small ADD COLUMN w INT"), ["error 1205"], "definitions stay as well");
    let mut more = vec![0; 70 << 20];
    out.read_exact(&mut more).expect("most of it");
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).expect("it runs");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its peak").trim().to_string();
    let peak: u64 = peak.split(' ').next().and_then(|number| number.parse().ok()).expect("a number of KiB");
    text.extend(more);
    out.read_to_end(&mut text).expect("the rest");
    assert!(child.wait().expect("it ends").success());
    let text = String::from_utf8(text).expect("a dump is UTF-8");
    assert!(
        text.ends_with("-- Dump completed\n") && text.contains("INSERT INTO `small` (`id`,`v`) VALUES\n(1,1),\n(2,2);")
    );
    assert_eq!(text.matches(",'long long ").count(), 25 * 900);
    assert!(peak < 64 << 10, "{peak} KiB for a dump of {} bytes", text.len());
    // The dump has ended, and with it what it held.
    until("the change of the table", || run(&mut client, "ALTER TABLE small ADD COLUMN w INT") == ["ok 0"]);
}

#[test]
fn a_server_that_goes_away_leaves_no_dump() {
    let (data, files) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let rauk = Rauk::start(data.path());
    large(&mut rauk.connect());
    let path = files.path().join("d.sql");
    let mut child = begun(rauk.port, &["d"]);
    let mut out = child.stdout.take().expect("piped");
    let mut text = vec![0; 4096];
    out.read_exact(&mut text).expect("a beginning");
    // Nobody holds up a dump into a file, and a hundred megabytes take a while.
    let into_file = begun(rauk.port, &["d", "-o", &path.display().to_string()]);
    let part = files.path().join("d.sql.part");
    until("the beginning of the file", || part.metadata().is_ok_and(|part| part.len() > 0));
    rauk.kill();
    out.read_to_end(&mut text).expect("what there is");
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(text.contains("INSERT INTO `big`") && !text.contains("Dump completed"));
    for child in [child, into_file] {
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.starts_with("rauk: ") && said.lines().count() == 1, "{said}");
    }
    assert_eq!(std::fs::read_dir(files.path()).expect("readable").count(), 0, "nothing is left");
}
