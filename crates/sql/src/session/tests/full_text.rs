//! Full-text search: what is found, how relevant it is, and that it is transactional. Answers of InnoDB, but where own changes
//! are seen: InnoDB finds committed rows only.

use super::{Server, Test, server};
use rauk_types::Value;

fn texts() -> (Server, Test) {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(200), FULLTEXT (a))");
    t.ok("INSERT INTO t VALUES (1, 'apple pie'), (2, 'apple apple juice'), (3, 'Banana pie don''t'), (4, 'cherry the pie'), \
          (5, 'café full-text ab xyz'), (6, 'apple the banana'), (7, 'one two three four five')");
    (server, t)
}

/// The ids that a search finds, in their order.
fn found(t: &mut Test, against: &str) -> String {
    t.run(&format!("SELECT id FROM t WHERE MATCH (a) AGAINST ({against})")).replace('\n', " ")
}

#[test]
fn natural_language_finds_words_in_order_of_relevance() {
    let (_server, mut t) = texts();
    t.expect(
        "SELECT id, MATCH (a) AGAINST ('apple') FROM t WHERE MATCH (a) AGAINST ('apple')",
        &["2|0.27081382274627686", "1|0.13540691137313843", "6|0.13540691137313843"],
    );
    assert_eq!(found(&mut t, "'apple pie'"), "1 2 3 4 6");
    assert_eq!(found(&mut t, "'CAFE'"), "5");
    assert_eq!(found(&mut t, "'don'"), "3");
    assert_eq!(found(&mut t, "'the ab'"), "");
    assert_eq!(found(&mut t, "'\"apple juice\"'"), "2");
    assert_eq!(found(&mut t, "NULL"), "");
    assert_eq!(found(&mut t, "CONCAT('ju', 'ice')"), "2");
    t.expect("SELECT SUM(MATCH (a) AGAINST ('pie')), COUNT(*) FROM t", &["0.4062207341194153|7"]);
    t.expect("SELECT COUNT(*) FROM t WHERE MATCH (a) AGAINST ('pie')", &["3"]);
    t.expect("SELECT id FROM t WHERE NOT MATCH (a) AGAINST ('pie') ORDER BY id", &["2", "5", "6", "7"]);
    t.expect("SELECT id FROM t WHERE MATCH (a) AGAINST ('pie') OR id = 2 ORDER BY id", &["1", "2", "3", "4"]);
    t.expect(
        "SELECT id, MATCH (a) AGAINST ('pie') m FROM t HAVING m > 0 ORDER BY m DESC, id DESC LIMIT 1",
        &["4|0.13540691137313843"],
    );
    t.expect("SELECT id FROM t WHERE MATCH (a) AGAINST ('pie') > 0 ORDER BY id", &["1", "3", "4"]);
    t.expect("SELECT COUNT(*) FROM t WHERE MATCH (a) AGAINST ('pie') >= 0", &["7"]);
    t.expect("SELECT COUNT(*) FROM t WHERE MATCH (a) AGAINST ('pie') > -1", &["7"]);
}

#[test]
fn boolean_mode_has_operators() {
    let (_server, mut t) = texts();
    for (text, expected) in [
        ("+apple +pie", "1|0.27081382274627686"),
        ("+apple pie", "1|0.27081382274627686 2|0.27081382274627686 6|0.13540691137313843"),
        ("+apple -pie", "2|0.27081382274627686 6|0.13540691137313843"),
        ("-pie", ""),
        ("pie ~apple", "3|0.13540691137313843 4|0.13540691137313843 1|-0.7291861772537231"),
        ("+pie ~apple", "1|0.13540691137313843 3|0.13540691137313843 4|0.13540691137313843"),
        (
            "+(>apple <banana) pie",
            "1|1.2708139419555664 2|1.2708138227462769 6|0.43141695857048035 3|-0.5685830116271973",
        ),
        ("pie ~(apple banana)", "4|0.13540691137313843 3|-0.5685830116271973 1|-0.7291861772537231"),
        ("banana (+apple -pie)", "6|0.43141695857048035 3|0.2960100471973419 2|0.27081382274627686"),
        ("ban*", "3|0.2960100471973419 6|0.2960100471973419"),
        ("+ap* -ban*", "2|0.27081382274627686 1|0.13540691137313843"),
        ("th*", "7|0.7141907215118408"),
        ("+the +pie", ""),
        ("full-text", ""),
        ("+apple:juice", "2|0.9850045442581177"),
        ("\"full text\"", "5|1.4283814430236816"),
        ("\"cherry the pie\"", "4|0.8495976328849792"),
        ("\"cherry pie\"", ""),
        ("\"text xyz\"", ""),
        ("\"two four\" @2", ""),
        ("\"four two\" @3", "7|1.4283814430236816"),
    ] {
        let sql = format!(
            "SELECT id, MATCH (a) AGAINST ('{text}' IN BOOLEAN MODE) FROM t WHERE MATCH (a) AGAINST ('{text}' IN BOOLEAN MODE)"
        );
        assert_eq!(t.run(&sql).replace('\n', " "), expected, "{text}");
    }
    t.error(
        "SELECT id FROM t WHERE MATCH (a) AGAINST ('+>apple' IN BOOLEAN MODE)",
        1064,
        "syntax error, unexpected '>'",
    );
}

#[test]
fn query_expansion_adds_the_words_of_what_was_found() {
    let (_server, mut t) = texts();
    t.expect(
        "SELECT id, MATCH (a) AGAINST ('juice' WITH QUERY EXPANSION) FROM t \
         WHERE MATCH (a) AGAINST ('juice' IN NATURAL LANGUAGE MODE WITH QUERY EXPANSION)",
        &["2|0.9850045442581177", "1|0.13540691137313843", "6|0.13540691137313843"],
    );
}

#[test]
fn a_statement_sees_its_own_transaction_and_its_snapshot() {
    let (server, mut t) = texts();
    let mut other = server.session();
    t.ok("BEGIN");
    t.ok("INSERT INTO t VALUES (8, 'apple tree')");
    t.ok("UPDATE t SET a = 'plum juice' WHERE id = 1");
    t.ok("DELETE FROM t WHERE id = 6");
    assert_eq!(found(&mut t, "'apple'"), "2 8");
    assert_eq!(found(&mut t, "'plum'"), "1");
    assert_eq!(found(&mut other, "'apple'"), "2 1 6");
    t.ok("SAVEPOINT s");
    t.ok("UPDATE t SET a = 'apple' WHERE id = 3");
    assert_eq!(found(&mut t, "'apple'"), "2 3 8");
    t.ok("ROLLBACK TO s");
    assert_eq!(found(&mut t, "'apple'"), "2 8");
    other.ok("BEGIN");
    assert_eq!(found(&mut other, "'apple'"), "2 1 6");
    t.ok("COMMIT");
    assert_eq!(found(&mut other, "'apple'"), "2 1 6");
    other.ok("COMMIT");
    assert_eq!(found(&mut other, "'apple'"), "2 8");
    t.ok("BEGIN");
    t.ok("DELETE FROM t");
    assert_eq!(found(&mut t, "'apple'"), "");
    t.ok("ROLLBACK");
    assert_eq!(found(&mut t, "'apple'"), "2 8");
}

#[test]
fn rows_that_are_found_are_locked_and_changed() {
    let (server, mut t) = texts();
    t.ok("UPDATE t SET a = CONCAT(a, ' updated') WHERE MATCH (a) AGAINST ('juice pie app*' IN BOOLEAN MODE)");
    assert_eq!(found(&mut t, "'updated'"), "1 2 3 4 6");
    t.ok("BEGIN");
    t.expect("SELECT id FROM t WHERE MATCH (a) AGAINST ('banana apple') FOR UPDATE", &["6", "3", "2", "1"]);
    let mut other = server.session();
    other.expect("SELECT id FROM t ORDER BY id FOR UPDATE SKIP LOCKED", &["4", "5", "7"]);
    t.ok("COMMIT");
    t.ok("DELETE FROM t WHERE MATCH (a) AGAINST ('updated') AND id > 2");
    assert_eq!(found(&mut t, "'updated'"), "1 2");
}

#[test]
fn a_word_that_is_there_several_times_gives_its_row_once() {
    let (_server, mut t) = texts();
    t.ok("INSERT INTO t VALUES (20, 'applet apples application apple')");
    assert_eq!(found(&mut t, "'app* juice' IN BOOLEAN MODE"), "2 1 6 20");
}

#[test]
fn an_index_is_added_and_dropped() {
    let (_server, mut t) = texts();
    t.ok("ALTER TABLE t ADD COLUMN b TEXT, ADD FULLTEXT KEY ab (a, b) COMMENT 'both'");
    t.ok("UPDATE t SET b = 'juice of apples' WHERE id = 7");
    let sql = "SELECT id FROM t WHERE MATCH (b, a) AGAINST ('juice')";
    t.expect(sql, &["2", "7"]);
    t.code("SELECT id FROM t WHERE MATCH (b) AGAINST ('juice')", 1191);
    t.ok("CREATE FULLTEXT INDEX n ON t (b) WITH PARSER ngram");
    t.expect("SELECT id FROM t WHERE MATCH (b) AGAINST ('pl' IN BOOLEAN MODE)", &["7"]);
    t.expect("SELECT id FROM t WHERE MATCH (b) AGAINST ('uic' IN BOOLEAN MODE)", &[] as &[&str]);
    let shown = t.run("SHOW CREATE TABLE t");
    assert!(shown.contains("FULLTEXT KEY `ab` (`a`,`b`) COMMENT 'both'"), "{shown}");
    assert!(shown.contains("FULLTEXT KEY `n` (`b`) /*!50100 WITH PARSER `ngram` */"), "{shown}");
    t.expect(
        "SELECT index_name, seq_in_index, column_name, collation, cardinality, index_type, non_unique \
         FROM information_schema.statistics WHERE table_name = 't' AND index_name = 'ab'",
        &["ab|1|a|NULL|NULL|FULLTEXT|1", "ab|2|b|NULL|NULL|FULLTEXT|1"],
    );
    t.ok("TRUNCATE TABLE t");
    t.expect(sql, &[] as &[&str]);
    t.ok("INSERT INTO t VALUES (1, 'juice', NULL)");
    t.expect(sql, &["1"]);
    t.ok("ALTER TABLE t MODIFY a VARCHAR(300) COLLATE utf8mb4_bin, DROP KEY ab");
    t.expect("SELECT COUNT(*) FROM t WHERE MATCH (a) AGAINST ('Juice')", &["0"]);
    t.expect("SELECT COUNT(*) FROM t WHERE MATCH (a) AGAINST ('juice')", &["1"]);
    t.code(sql, 1191);
    t.code("ALTER TABLE t MODIFY a INT", 1283);
    t.ok("DROP INDEX a ON t");
    t.code("SELECT MATCH (a) AGAINST ('juice') FROM t", 1191);
    t.expect("SELECT COUNT(*) FROM information_schema.INNODB_FT_DEFAULT_STOPWORD WHERE value = 'the'", &["2"]);
}

#[test]
fn what_is_wrong_is_refused() {
    let (_server, mut t) = texts();
    for column in ["INT", "BLOB", "JSON", "ENUM('a')", "DATE"] {
        t.code(&format!("CREATE TABLE x (id INT PRIMARY KEY, c {column}, FULLTEXT (c))"), 1283);
    }
    t.code("CREATE TABLE x (a TEXT, b TEXT COLLATE utf8mb4_bin, FULLTEXT (a, b))", 1283);
    t.code("CREATE TABLE x (a TEXT, FULLTEXT (b))", 1072);
    t.code("CREATE TABLE x (a TEXT, FULLTEXT ((LOWER(a))))", 3758);
    t.code("CREATE TABLE x (a TEXT, FULLTEXT (a) WITH PARSER mecab)", 1128);
    t.code("CREATE TABLE x (a VARCHAR(9), KEY (a) WITH PARSER ngram)", 1064);
    t.code("SELECT MATCH (id) AGAINST ('x') FROM t", 1191);
    t.code("SELECT MATCH (nope) AGAINST ('x') FROM t", 1054);
    t.code("SELECT MATCH (a) AGAINST (a) FROM t", 1210);
    t.code("SELECT MATCH (a) AGAINST (RAND()) FROM t", 1210);
    t.code("SELECT MATCH (t.a, u.a) AGAINST ('x') FROM t, t u", 1210);
    t.code("SET innodb_ft_enable_stopword = OFF", 1235);
    t.code("CREATE TABLE x (a TEXT, b DOUBLE AS (MATCH (a) AGAINST ('x')), FULLTEXT (a))", 1210);
}

#[test]
fn joins_subqueries_and_prepared_statements_search() {
    let (_server, mut t) = texts();
    t.ok("CREATE TABLE u (id INT PRIMARY KEY, t_id INT)");
    t.ok("INSERT INTO u VALUES (10, 1), (11, 2), (12, 7), (13, 4)");
    t.expect(
        "SELECT u.id, t.id FROM u JOIN t ON t.id = u.t_id WHERE MATCH (t.a) AGAINST ('pie juice') ORDER BY u.id",
        &["10|1", "11|2", "13|4"],
    );
    t.expect(
        "SELECT id FROM u WHERE t_id IN (SELECT id FROM t WHERE MATCH (a) AGAINST ('pie')) ORDER BY id",
        &["10", "13"],
    );
    t.expect(
        "SELECT u.id, (SELECT MATCH (t.a) AGAINST ('juice') > 0 FROM t WHERE t.id = u.t_id) FROM u ORDER BY u.id",
        &["10|0", "11|1", "12|0", "13|0"],
    );
    t.expect(
        "SELECT u.id, MATCH (t.a) AGAINST ('juice') FROM u LEFT JOIN t ON t.id = u.t_id + 5 WHERE u.id = 12",
        &["12|0"],
    );
    t.expect(
        "SELECT id FROM t WHERE MATCH (a) AGAINST ('juice') UNION ALL SELECT id FROM t WHERE MATCH (a) AGAINST ('cherry')",
        &["2", "4"],
    );
    t.ok("SET @q = 'banana'");
    assert_eq!(found(&mut t, "@q"), "3 6");
    let prepared = t.prepare("SELECT id FROM t WHERE MATCH (a) AGAINST (? IN BOOLEAN MODE) ORDER BY id");
    assert_eq!(t.prepared(prepared.id, &[Value::from("+apple +pie")]), "1");
    assert_eq!(t.prepared(prepared.id, &[Value::from("xyz")]), "5");
    t.expect(
        "EXPLAIN SELECT id FROM t WHERE MATCH (a) AGAINST ('pie')",
        &["1|SIMPLE|t|p0,p1,p2,p3|fulltext|a|a|0|NULL|1|100|Using where; Using filesort"],
    );
    t.ok("CREATE VIEW v AS SELECT id FROM t WHERE MATCH (a) AGAINST ('juice')");
    t.expect("SELECT * FROM v", &["2"]);
}

#[test]
fn many_rows_are_found_as_a_scan_finds_them() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, a TEXT, FULLTEXT (a))");
    let words = ["red", "green", "blue", "yellow", "black", "white", "orange"];
    for start in (0..4000).step_by(500) {
        let row = |id: usize| {
            let text: Vec<&str> = (0..1 + id % 4).map(|n| words[(id * 31 + n * n * 3 + n * (id / 13)) % 7]).collect();
            format!("({id}, '{}')", text.join(" "))
        };
        let rows: Vec<String> = (start..start + 500).map(row).collect();
        t.ok(&format!("INSERT INTO t VALUES {}", rows.join(", ")));
    }
    for text in ["red", "red blue", "+red +blue", "+red -blue", "re* bl*", "+(red green) +black", "\"red green\" white"]
    {
        let condition = format!("MATCH (a) AGAINST ('{text}' IN BOOLEAN MODE)");
        let sums = |t: &mut Test, condition: &str| {
            t.run(&format!("SELECT COUNT(*), SUM(id), COUNT(DISTINCT id) FROM t WHERE {condition}"))
        };
        let by_index = sums(&mut t, &condition);
        assert!(t.run(&format!("EXPLAIN SELECT id FROM t WHERE {condition}")).contains("fulltext"), "{text}");
        assert_eq!(by_index, sums(&mut t, &format!("{condition} <> 0")), "{text}");
        assert!(!by_index.starts_with("0|"), "{text}");
    }
}
