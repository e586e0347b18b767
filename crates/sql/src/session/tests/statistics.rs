//! Statistics of tables: what ANALYZE TABLE and the background find, where they are shown, and what plans make of them.

use super::{Test, server};
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
