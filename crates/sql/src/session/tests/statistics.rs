//! Statistics of tables: what ANALYZE TABLE and the background find, where they are shown, and what plans make of them.

use super::{Test, server, server_on};
use rauk_log::MemoryDisk;
use std::time::Duration;

fn filled(t: &mut Test, table: &str, rows: usize) {
    t.ok(&format!(
        "CREATE TABLE {table} (id INT PRIMARY KEY, few INT, many INT, KEY f (few), KEY m (many), KEY fm (few, many))"
    ));
    for from in (0..rows).step_by(500) {
        let part: Vec<String> =
            (from..(from + 500).min(rows)).map(|row| format!("({row}, {}, {})", row % 4, row / 2)).collect();
        t.ok(&format!("INSERT INTO {table} VALUES {}", part.join(", ")));
    }
}

fn cardinality(t: &mut Test, table: &str) -> String {
    let sql = format!(
        "SELECT INDEX_NAME, SEQ_IN_INDEX, CARDINALITY FROM information_schema.STATISTICS \
         WHERE TABLE_NAME = '{table}' ORDER BY 1, 2"
    );
    t.run(&sql).replace('\n', " ")
}

#[test]
fn analyze_table_counts_values() {
    let server = server();
    let mut t = server.session();
    filled(&mut t, "t", 600);
    t.expect("ANALYZE TABLE t", &["test.t|analyze|status|OK"]);
    assert_eq!(cardinality(&mut t, "t"), "f|1|4 fm|1|4 fm|2|600 m|1|300 PRIMARY|1|600");
    let shown = t.run("SHOW INDEX FROM t WHERE Key_name = 'm'");
    assert!(shown.contains("|300|"), "{shown}");
    // NULLs are one value, and so are texts that are equal.
    t.ok("CREATE TABLE n (id INT PRIMARY KEY, a VARCHAR(10), KEY (a))");
    t.ok("INSERT INTO n VALUES (1, 'a'), (2, 'A'), (3, NULL), (4, NULL), (5, 'b')");
    t.ok("ANALYZE TABLE n");
    assert_eq!(cardinality(&mut t, "n"), "a|1|3 PRIMARY|1|5");
    t.ok("CREATE TABLE e (id INT PRIMARY KEY, a INT, KEY (a))");
    t.ok("ANALYZE TABLE e");
    assert_eq!(cardinality(&mut t, "e"), "a|1|0 PRIMARY|1|0");
    // One that is not there.
    t.expect(
        "ANALYZE TABLE t, missing",
        &[
            "test.t|analyze|status|OK",
            "test.missing|analyze|Error|Table 'test.missing' doesn't exist",
            "test.missing|analyze|status|Operation failed",
        ],
    );
    // Another table of that name is another table.
    t.ok("DROP TABLE t");
    filled(&mut t, "t", 10);
    assert_ne!(cardinality(&mut t, "t"), "f|1|4 fm|1|4 fm|2|10 m|1|5 PRIMARY|1|10");
}

#[test]
fn plans_follow_statistics() {
    let server = server();
    let mut t = server.session();
    filled(&mut t, "t", 900);
    t.ok("ANALYZE TABLE t");
    let key = |t: &mut Test, filter: &str| {
        let text = t.run(&format!("EXPLAIN SELECT * FROM t WHERE {filter}"));
        let cells: Vec<&str> = text.split('|').collect();
        (cells[6].to_string(), cells[9].to_string())
    };
    assert_eq!(key(&mut t, "few = 1 AND many = 9"), ("fm".to_string(), "1".to_string()));
    assert_eq!(key(&mut t, "many = 9"), ("m".to_string(), "2".to_string()));
    assert_eq!(key(&mut t, "many IN (9, 10, 11)"), ("m".to_string(), "6".to_string()));
    assert_eq!(key(&mut t, "few IN (1, 2)").0, "NULL");
    // A cached plan is made again when there are new statistics.
    t.ok("CREATE TABLE u (id INT PRIMARY KEY, a INT, KEY (a))");
    let rows: Vec<String> = (0..800).map(|row| format!("({row}, 7)")).collect();
    t.ok(&format!("INSERT INTO u VALUES {}", rows.join(", ")));
    let sql = "SELECT COUNT(*) FROM u WHERE a = 7 AND id >= 0";
    t.expect(sql, &["800"]);
    t.ok("ANALYZE TABLE u");
    assert_eq!(server.engine.plans.len(), 0);
    t.expect(sql, &["800"]);
    let text = t.run(&format!("EXPLAIN {sql}"));
    assert!(text.contains("|ALL|") || text.contains("|range|PRIMARY"), "{text}");
}

#[test]
fn large_tables_are_sampled_in_the_background() {
    let server = server();
    let mut t = server.session();
    filled(&mut t, "t", 4000);
    // What asks for them is planning.
    t.ok("EXPLAIN SELECT * FROM t WHERE few = 1");
    let mut shown = String::new();
    for _ in 0..1000 {
        shown = cardinality(&mut t, "t");
        if shown.starts_with("f|1|4 ") {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(shown, "f|1|4 fm|1|4 fm|2|4000 m|1|2000 PRIMARY|1|4000");
    // Definitions do not wait for it.
    t.ok("ALTER TABLE t ADD COLUMN more INT");
    t.ok("DROP TABLE t");
}

/// The histogram of a column, without its time.
fn histogram(t: &mut Test, column: &str) -> String {
    let sql = format!("SELECT HISTOGRAM FROM information_schema.COLUMN_STATISTICS WHERE COLUMN_NAME = '{column}'");
    let text = t.run(&sql);
    match (text.find("\"last-updated\""), text.find("\"sampling-rate\"")) {
        (Some(from), Some(to)) => format!("{}{}", &text[..from], &text[to..]),
        _ => text,
    }
}

#[test]
fn histograms_are_made_and_dropped_by_request() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE h (id INT PRIMARY KEY, n INT, d DECIMAL(5,2), s VARCHAR(9), day DATE, at DATETIME, j JSON, u INT, \
          UNIQUE KEY (u))");
    t.ok("INSERT INTO h VALUES (1, 1, 1.5, 'a', '2020-01-01', '2020-01-01 10:00:00', '{}', 1), \
          (2, 1, 2.5, 'b', '2020-01-02', NULL, '{}', 2), (3, 2, NULL, 'a', NULL, NULL, '{}', 3), \
          (4, NULL, 1.5, 'a', '2020-01-01', NULL, '{}', 4)");
    t.expect(
        "ANALYZE TABLE h UPDATE HISTOGRAM ON s, n, no, id, j, u, d, day, at WITH 10 BUCKETS",
        &[
            "test.h|histogram|status|Histogram statistics created for column 'at'.",
            "test.h|histogram|status|Histogram statistics created for column 'd'.",
            "test.h|histogram|status|Histogram statistics created for column 'day'.",
            "test.h|histogram|Error|The column 'id' is covered by a single-part unique index.",
            "test.h|histogram|Error|The column 'j' has an unsupported data type.",
            "test.h|histogram|status|Histogram statistics created for column 'n'.",
            "test.h|histogram|Error|The column 'no' does not exist.",
            "test.h|histogram|status|Histogram statistics created for column 's'.",
            "test.h|histogram|Error|The column 'u' is covered by a single-part unique index.",
        ],
    );
    let rest = "\"sampling-rate\": 1.0, \"histogram-type\": \"singleton\", \"number-of-buckets-specified\": 10}";
    for (column, buckets, kind, nulls, collation) in [
        ("n", "[1, 0.5], [2, 0.75]", "int", "0.25", 8),
        ("d", "[1.50, 0.5], [2.50, 0.75]", "decimal", "0.25", 8),
        ("s", "[\"base64:type254:YQ==\", 0.75], [\"base64:type254:Yg==\", 1.0]", "string", "0.0", 255),
        ("day", "[\"2020-01-01\", 0.5], [\"2020-01-02\", 0.75]", "date", "0.25", 8),
        ("at", "[\"2020-01-01 10:00:00.000000\", 0.25]", "datetime", "0.75", 8),
    ] {
        let expected = format!(
            "{{\"buckets\": [{buckets}], \"data-type\": \"{kind}\", \"null-values\": {nulls}, \
             \"collation-id\": {collation}, {rest}"
        );
        assert_eq!(histogram(&mut t, column), expected);
    }
    // Other statistics leave them; a new one takes the place of the old.
    t.ok("ANALYZE TABLE h");
    assert!(histogram(&mut t, "n").contains("[1, 0.5]"));
    t.ok("UPDATE h SET n = 7");
    assert!(histogram(&mut t, "n").contains("[1, 0.5]"));
    t.ok("ANALYZE TABLE h UPDATE HISTOGRAM ON n");
    assert!(histogram(&mut t, "n").contains("\"buckets\": [[7, 1.0]]"));
    assert!(histogram(&mut t, "n").contains("\"number-of-buckets-specified\": 100}"));
    // Names change, histograms stay; they go with the column, its type and the table.
    t.ok("RENAME TABLE h TO k");
    t.ok("ALTER TABLE k RENAME COLUMN n TO m");
    t.expect("SELECT TABLE_NAME FROM information_schema.COLUMN_STATISTICS WHERE COLUMN_NAME = 'm'", &["k"]);
    t.ok("ALTER TABLE k MODIFY s VARCHAR(30)");
    t.ok("ALTER TABLE k DROP COLUMN day");
    t.expect("SELECT COLUMN_NAME FROM information_schema.COLUMN_STATISTICS ORDER BY 1", &["at", "d", "m"]);
    t.expect(
        "ANALYZE TABLE k DROP HISTOGRAM ON m, s, no",
        &[
            "test.k|histogram|status|Histogram statistics removed for column 'm'.",
            "test.k|histogram|Error|No histogram statistics found for column 'no'.",
            "test.k|histogram|Error|No histogram statistics found for column 's'.",
        ],
    );
    t.expect("SELECT COLUMN_NAME FROM information_schema.COLUMN_STATISTICS ORDER BY 1", &["at", "d"]);
    t.ok("DROP TABLE k");
    t.expect("SELECT COUNT(*) FROM information_schema.COLUMN_STATISTICS", &["0"]);
    // What is wrong with the statement.
    t.ok("CREATE TABLE e (a INT)");
    t.ok("CREATE VIEW v AS SELECT a FROM e");
    t.expect(
        "ANALYZE TABLE e UPDATE HISTOGRAM ON a WITH 1024 BUCKETS",
        &["test.e|histogram|status|Histogram statistics created for column 'a'."],
    );
    assert!(histogram(&mut t, "a").starts_with("{\"buckets\": [], \"data-type\": \"int\""));
    let text = "Number of buckets value is out of range in 'ANALYZE TABLE'";
    t.error("ANALYZE TABLE e UPDATE HISTOGRAM ON a WITH 0 BUCKETS", 1690, text);
    t.error("ANALYZE TABLE e UPDATE HISTOGRAM ON a WITH 1025 BUCKETS", 1690, text);
    t.error("ANALYZE TABLE e UPDATE HISTOGRAM ON a, A", 1060, "Duplicate column name 'A'");
    t.code("ANALYZE TABLE e UPDATE HISTOGRAM", 1064);
    t.code("ANALYZE TABLE e UPDATE HISTOGRAM ON a WITH BUCKETS", 1064);
    t.code("ANALYZE TABLE e UPDATE HISTOGRAM ON a USING DATA '{}'", 1235);
    t.expect(
        "ANALYZE TABLE v UPDATE HISTOGRAM ON a",
        &["test.v|histogram|Error|Cannot create histogram statistics for a view."],
    );
    t.expect(
        "ANALYZE TABLE e, v UPDATE HISTOGRAM ON a",
        &["|histogram|Error|Only one table can be specified while modifying histogram statistics."],
    );
    t.expect(
        "ANALYZE TABLE missing DROP HISTOGRAM ON a",
        &[
            "test.missing|histogram|Error|Table 'test.missing' doesn't exist",
            "test.missing|histogram|status|Operation failed",
        ],
    );
}

#[test]
fn histograms_are_there_after_a_start() {
    let disk = MemoryDisk::new();
    let text = {
        let server = server_on(disk.clone());
        let mut t = server.session();
        t.ok("CREATE TABLE h (id INT PRIMARY KEY, n INT, s VARCHAR(9), d DOUBLE, u INT UNIQUE)");
        t.ok("INSERT INTO h VALUES (1, 1, 'a', 0.1, 1), (2, 1, 'b', 1e300, 2), (3, 7, NULL, -0.3, 3)");
        t.ok("ANALYZE TABLE h UPDATE HISTOGRAM ON n, s, d WITH 2 BUCKETS");
        t.ok("ANALYZE TABLE h UPDATE HISTOGRAM ON s WITH 1 BUCKETS");
        // The new table, and one whose rows were copied, go on with those of columns that stay as they are.
        t.ok("TRUNCATE TABLE h");
        t.ok("ALTER TABLE h MODIFY n BIGINT");
        t.expect("SELECT COLUMN_NAME FROM information_schema.COLUMN_STATISTICS ORDER BY 1", &["d", "s"]);
        t.ok("ANALYZE TABLE h UPDATE HISTOGRAM ON n");
        t.ok("ANALYZE TABLE h DROP HISTOGRAM ON n");
        t.run("SELECT HISTOGRAM FROM information_schema.COLUMN_STATISTICS ORDER BY COLUMN_NAME")
    };
    assert!(text.contains("equi-height") && text.contains("[[-0.3, 0.1, ") && text.contains("YQ=="), "{text}");
    let server = server_on(disk);
    let mut t = server.session();
    let got = t.run("SELECT HISTOGRAM FROM information_schema.COLUMN_STATISTICS ORDER BY COLUMN_NAME");
    assert_eq!(got, text);
    // They can be dropped, and only once.
    let dropped = "test.h|histogram|status|Histogram statistics removed for column 's'.";
    t.expect("ANALYZE TABLE h DROP HISTOGRAM ON s", &[dropped]);
    let missing = "test.h|histogram|Error|No histogram statistics found for column 's'.";
    t.expect("ANALYZE TABLE h DROP HISTOGRAM ON s", &[missing]);
}

#[test]
fn a_plan_after_a_start_follows_histograms_without_a_sample() {
    let disk = MemoryDisk::new();
    let join = "EXPLAIN SELECT COUNT(*) FROM o JOIN l ON l.o = o.id WHERE size = 3 AND state = 'open'";
    let first = |t: &mut Test| t.run(join).split('|').nth(2).unwrap_or_default().to_string();
    {
        let server = server_on(disk.clone());
        let mut t = server.session();
        t.ok("CREATE TABLE o (id INT PRIMARY KEY, state VARCHAR(9) NOT NULL)");
        t.ok("CREATE TABLE l (id INT PRIMARY KEY, o INT NOT NULL, size INT NOT NULL, KEY (o))");
        // Fewer rows than are sampled by themselves.
        let state = |row: usize| if row.is_multiple_of(5) { "done" } else { "open" };
        let rows: Vec<String> = (0..900).map(|row| format!("({row}, '{}')", state(row))).collect();
        t.ok(&format!("INSERT INTO o VALUES {}", rows.join(", ")));
        let rows: Vec<String> = (0..900).map(|row| format!("({row}, {row}, {})", row % 10)).collect();
        t.ok(&format!("INSERT INTO l VALUES {}", rows.join(", ")));
        t.ok("ANALYZE TABLE l UPDATE HISTOGRAM ON size");
        t.ok("ANALYZE TABLE o UPDATE HISTOGRAM ON state");
        assert_eq!(first(&mut t), "l");
    }
    let server = server_on(disk);
    let mut t = server.session();
    assert_eq!(first(&mut t), "l");
    let known = |name: &str| {
        let table = server.engine.database.table("test", name).expect("it exists").schema().id;
        server.engine.known_statistics(table).expect("it has a histogram")
    };
    assert!(known("o").columns.is_empty(), "it was not sampled");
    assert_eq!((known("o").histograms.len(), known("l").histograms.len()), (1, 1));
}

#[test]
fn histograms_say_what_a_condition_leaves() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE o (id INT PRIMARY KEY, state VARCHAR(9) NOT NULL, price INT NOT NULL)");
    t.ok("CREATE TABLE l (id INT PRIMARY KEY, o INT NOT NULL, size INT NOT NULL, KEY (o))");
    for from in (0..6000).step_by(500) {
        // One of a hundred is open; nine of ten cost less than 100, the others up to a million.
        let state = |row: usize| if row.is_multiple_of(100) { "open" } else { "done" };
        let price = |row: usize| if row % 10 == 9 { row * 150 } else { row % 100 };
        let rows: Vec<String> =
            (from..from + 500).map(|row| format!("({row}, '{}', {})", state(row), price(row))).collect();
        t.ok(&format!("INSERT INTO o VALUES {}", rows.join(", ")));
        let rows: Vec<String> = (from..from + 500).map(|row| format!("({row}, {row}, {})", row % 10)).collect();
        t.ok(&format!("INSERT INTO l VALUES {}", rows.join(", ")));
    }
    t.ok("ANALYZE TABLE o, l");
    let join = |condition: &str| {
        format!("SELECT COUNT(*), SUM(price) FROM o JOIN l ON l.o = o.id WHERE size = 3 AND {condition}")
    };
    let first = |t: &mut Test, condition: &str| {
        let text = t.run(&format!("EXPLAIN {}", join(condition)));
        text.split('|').nth(2).unwrap_or_default().to_string()
    };
    // Two states are thought to be equally frequent, until a histogram says otherwise.
    assert_eq!(first(&mut t, "state = 'open'"), "l");
    t.ok("ANALYZE TABLE o UPDATE HISTOGRAM ON state, price WITH 64 BUCKETS");
    assert_eq!(first(&mut t, "state = 'open'"), "o");
    assert_eq!(first(&mut t, "state IN ('open', 'none')"), "o");
    assert_eq!(first(&mut t, "state <> 'done'"), "o");
    assert_eq!(first(&mut t, "state < 'e'"), "l");
    assert_eq!(first(&mut t, "state > 'e'"), "o");
    assert_eq!(first(&mut t, "state = 'done'"), "l");
    assert_eq!(first(&mut t, "price > 890000"), "o");
    assert_eq!(first(&mut t, "price > 50"), "l");
    assert_eq!(first(&mut t, "price BETWEEN 101 AND 9000"), "o");
    // Texts whose literals matter are planned one by one.
    server.engine.plans.clear();
    for (condition, answer) in
        [("state = 'open'", "0|NULL"), ("state = 'done'", "600|28800"), ("state = 'open'", "0|NULL")]
    {
        t.expect(&join(condition), &[answer]);
    }
    assert_eq!(server.engine.plans.len(), 1, "the normal form, whose texts are planned by themselves");
    // Dropped, it counts no more.
    t.ok("ANALYZE TABLE o DROP HISTOGRAM ON state");
    assert_eq!(first(&mut t, "state = 'open'"), "l");
}

#[test]
fn plans_that_run_often_ask_for_new_statistics() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, few INT, KEY f (few))");
    t.ok("INSERT INTO t VALUES (1, 1)");
    let prepared = t.prepare("SELECT COUNT(*) FROM t WHERE few = ? AND id < ?").id;
    let sql = "SELECT COUNT(*) FROM t WHERE few = 99 AND id < 3";
    t.expect(sql, &["0"]);
    for from in (2..3002).step_by(500) {
        let rows: Vec<String> = (from..from + 500).map(|row| format!("({row}, {})", row % 3)).collect();
        t.ok(&format!("INSERT INTO t VALUES {}", rows.join(", ")));
    }
    // Nothing is planned any more, but the plan is run.
    let mut shown = String::new();
    for _ in 0..2000 {
        t.expect(sql, &["0"]);
        t.prepared(prepared, &[rauk_types::Value::Int(99), rauk_types::Value::Int(3)]);
        shown = cardinality(&mut t, "t");
        if shown.starts_with("f|1|3 ") {
            break;
        }
    }
    assert!(shown.starts_with("f|1|3 "), "{shown}");
    // Plans of prepared statements end with the others.
    assert_eq!(t.prepared(prepared, &[rauk_types::Value::Int(1), rauk_types::Value::Int(9000)]), "1001");
}
