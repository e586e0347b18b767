//! Statements end to end: parser, planner, executor and the real node, in memory.
mod support;

use rauk_types::Value;
use support::Session;

fn people() -> Session {
    let mut s = Session::new();
    s.create(
        "p",
        "id int, name varchar(20) null, age int null, city varchar(20) null",
        "primary id; index by_age age, name; index by_city city",
    );
    s.ok("INSERT INTO p VALUES (1,'Ann',30,'Oslo'),(2,'Bob',25,'Bergen'),(3,'Cid',NULL,'Oslo'),(4,'dan',30,NULL),(5,'Eve',41,'oslo')");
    s
}

#[test]
fn points_and_ranges() {
    let mut s = people();
    assert_eq!(s.rows("SELECT name FROM p WHERE id = 2"), "Bob");
    assert_eq!(s.rows("SELECT * FROM p WHERE id = 3"), "3|Cid|NULL|Oslo");
    assert_eq!(s.rows("SELECT name FROM p WHERE id = 99"), "");
    assert_eq!(s.rows("SELECT id FROM p WHERE id IN (5, 1, 3, 1, 99) ORDER BY id"), "1\n3\n5");
    assert_eq!(s.rows("SELECT id FROM p WHERE id > 2 AND id <= 4 ORDER BY id"), "3\n4");
    assert_eq!(s.rows("SELECT id FROM p WHERE id BETWEEN 2 AND 3 ORDER BY id DESC"), "3\n2");
    assert_eq!(s.rows("SELECT id FROM p WHERE age = 30 ORDER BY id"), "1\n4");
    assert_eq!(s.rows("SELECT id FROM p WHERE age IS NULL"), "3");
    assert_eq!(s.rows("SELECT id FROM p WHERE city = 'OSLO' ORDER BY id"), "1\n3\n5");
    assert_eq!(s.rows("SELECT id, name FROM p ORDER BY age, name"), "3|Cid\n2|Bob\n1|Ann\n4|dan\n5|Eve");
    assert_eq!(s.rows("SELECT id FROM p ORDER BY age DESC, id LIMIT 2"), "5\n1");
    assert_eq!(s.rows("SELECT id FROM p ORDER BY id LIMIT 1, 2"), "2\n3");
    assert_eq!(s.rows("SELECT id FROM p ORDER BY id LIMIT 2 OFFSET 3"), "4\n5");
    assert_eq!(s.rows("SELECT id FROM p LIMIT 0"), "");
    assert_eq!(s.rows("SELECT id FROM p WHERE name LIKE 'd%'"), "4");
    assert_eq!(s.rows("SELECT id + 1 AS next, UPPER(name) FROM p WHERE id = 4"), "5|DAN");
    assert_eq!(s.rows("SELECT 1 + 1, 'x'"), "2|x");
    assert_eq!(s.rows("SELECT 1 FROM dual WHERE 1 = 0"), "");
    assert_eq!(s.rows("SELECT DISTINCT city FROM p ORDER BY city"), "NULL\nBergen\nOslo");
    assert_eq!(s.rows("SELECT id FROM p WHERE id = 1 OR id = 3 ORDER BY 1 DESC"), "3\n1");
    assert_eq!(s.rows("SELECT id FROM p WHERE (age, name) IN ((30, 'ANN'), (25, 'bob')) ORDER BY id"), "1\n2");
}

#[test]
fn constants_are_placed_among_the_values_of_their_column() {
    let mut s = people();
    assert_eq!(s.rows("SELECT id FROM p WHERE id = 2.5"), "");
    assert_eq!(s.rows("SELECT id FROM p WHERE id < 2.5 ORDER BY id"), "1\n2");
    assert_eq!(s.rows("SELECT id FROM p WHERE id >= 3.5 ORDER BY id"), "4\n5");
    assert_eq!(s.rows("SELECT id FROM p WHERE id > -99999999999999999999999 AND id < 2"), "1");
    assert_eq!(s.rows("SELECT id FROM p WHERE id > 99999999999999999999999"), "");
    assert_eq!(s.rows("SELECT COUNT(*) FROM p WHERE id < 99999999999999999999999"), "5");
    assert_eq!(s.rows("SELECT id FROM p WHERE id = '3'"), "3");
    assert_eq!(s.rows("SELECT id FROM p WHERE id = 2e0"), "2");
    assert_eq!(s.rows("SELECT id FROM p WHERE id = NULL"), "");
    assert_eq!(s.rows("SELECT id FROM p WHERE age <=> NULL"), "3");
    assert_eq!(s.path("SELECT id FROM p WHERE id = '3'"), "const PRIMARY");
}

#[test]
fn access_paths() {
    let mut s = people();
    for i in 10..400 {
        s.ok(&format!("INSERT INTO p VALUES ({i}, 'n{i}', {}, 'c{}')", i % 60, i % 90));
    }
    assert_eq!(s.path("SELECT * FROM p WHERE id = 1"), "const PRIMARY");
    assert_eq!(s.path("SELECT * FROM p WHERE id IN (1,2,3)"), "range PRIMARY");
    assert_eq!(s.path("SELECT * FROM p WHERE id BETWEEN 1 AND 3"), "range PRIMARY");
    assert_eq!(s.path("SELECT * FROM p WHERE age = 3"), "ref by_age");
    assert_eq!(s.path("SELECT * FROM p WHERE age = 3 AND name > 'x'"), "range by_age");
    assert_eq!(s.path("SELECT * FROM p WHERE age IS NULL"), "ref by_age");
    assert_eq!(s.path("SELECT * FROM p WHERE city LIKE 'os%'"), "range by_city");
    assert_eq!(s.path("SELECT * FROM p WHERE city LIKE '%os'"), "ALL NULL");
    assert_eq!(s.path("SELECT * FROM p WHERE city = 5"), "ALL NULL");
    assert_eq!(s.path("SELECT * FROM p WHERE city COLLATE utf8mb4_bin = 'Oslo'"), "ALL NULL");
    assert_eq!(s.path("SELECT * FROM p ORDER BY age LIMIT 3"), "index by_age");
    assert_eq!(s.path("SELECT * FROM p ORDER BY age DESC, name DESC LIMIT 3"), "index by_age");
    assert_eq!(s.path("SELECT * FROM p ORDER BY age DESC, name LIMIT 3"), "ALL NULL");
    assert_eq!(s.path("SELECT MAX(age) FROM p"), "range by_age");
    assert_eq!(s.path("SELECT * FROM p IGNORE INDEX (by_age) WHERE age = 3"), "ALL NULL");
    assert_eq!(s.path("SELECT * FROM p USE INDEX (by_city) WHERE age = 3 AND city = 'x'"), "ref by_city");
    assert_eq!(s.path("SELECT * FROM p WHERE (age, name) IN ((1,'a'),(2,'b'))"), "range by_age");
    assert_eq!(s.path("SELECT * FROM p a JOIN p b ON a.id = b.id WHERE a.age = 3"), "ref by_age; eq_ref PRIMARY");
    let row = s.explain("SELECT * FROM p WHERE id = 1").remove(0);
    assert_eq!(row["partitions"].len(), 2);
    assert_eq!((row["key_len"].as_str(), row["ref"].as_str(), row["rows"].as_str()), ("4", "const", "1"));
    let row = s.explain("SELECT * FROM p WHERE city = 'Oslo'").remove(0);
    assert_eq!((row["partitions"].as_str(), row["key_len"].as_str()), ("p0,p1,p2,p3", "83"));
    assert_eq!(s.explain("SELECT * FROM p WHERE 1 = 2")[0]["Extra"], "Impossible WHERE");
    assert_eq!(s.explain("SELECT 1")[0]["Extra"], "No tables used");
    assert_eq!(s.error("SELECT * FROM p USE INDEX (nix)"), "1176 Key 'nix' doesn't exist in table 'p'");
    assert_eq!(s.rows("SELECT MAX(age), 1 FROM p"), "59|1");
    assert_eq!(s.rows("SELECT MIN(age) FROM p"), "0");
    assert_eq!(s.rows("SELECT MIN(age) FROM p WHERE id = 3"), "NULL");
}

#[test]
fn names_and_their_errors() {
    let mut s = people();
    s.create("q", "id int, x int null", "primary id");
    assert_eq!(s.error("SELECT nix FROM p"), "1054 Unknown column 'nix' in 'field list'");
    assert_eq!(s.error("SELECT p.nix FROM p"), "1054 Unknown column 'p.nix' in 'field list'");
    assert_eq!(s.error("SELECT id FROM p WHERE nix = 1"), "1054 Unknown column 'nix' in 'where clause'");
    assert_eq!(s.error("SELECT id FROM p ORDER BY nix"), "1054 Unknown column 'nix' in 'order clause'");
    assert_eq!(s.error("SELECT COUNT(*) FROM p GROUP BY nix"), "1054 Unknown column 'nix' in 'group statement'");
    assert_eq!(s.error("SELECT id FROM p HAVING age > 1"), "1054 Unknown column 'age' in 'having clause'");
    assert_eq!(s.error("SELECT 1 FROM p JOIN q ON p.nix = q.id"), "1054 Unknown column 'p.nix' in 'on clause'");
    assert_eq!(s.error("SELECT 1 FROM p JOIN q USING (age)"), "1054 Unknown column 'age' in 'from clause'");
    assert_eq!(s.error("SELECT id FROM p, q"), "1052 Column 'id' in field list is ambiguous");
    assert_eq!(s.error("SELECT 1 FROM p, q WHERE id = 1"), "1052 Column 'id' in where clause is ambiguous");
    assert_eq!(s.error("SELECT 1 FROM p, p"), "1066 Not unique table/alias: 'p'");
    assert_eq!(s.error("SELECT x.* FROM p"), "1051 Unknown table 'x'");
    assert_eq!(s.error("SELECT *"), "1096 No tables used");
    assert_eq!(s.error("SELECT id FROM p ORDER BY 5"), "1054 Unknown column '5' in 'order clause'");
    assert_eq!(s.error("SELECT id FROM p WHERE COUNT(*) > 1"), "1111 Invalid use of group function");
    assert_eq!(s.error("SELECT SUM(COUNT(*)) FROM p"), "1111 Invalid use of group function");
    assert_eq!(s.error("SELECT COUNT(*) AS c FROM p GROUP BY c"), "1056 Can't group on 'c'");
    assert_eq!(s.rows("SELECT a.id FROM p AS a WHERE a.id = 1"), "1");
    assert_eq!(s.rows("SELECT test.p.id FROM test.p WHERE P.ID = 1".replace("P.ID", "p.ID").as_str()), "1");
    let answer = s.ok("SELECT a.ID, a.name AS n, a.id + 1, COUNT(*) FROM p a WHERE id = 1 GROUP BY a.id");
    let names: Vec<&str> = answer.columns.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["ID", "n", "a.id + 1", "COUNT(*)"]);
    let first = &answer.columns[0];
    assert_eq!((first.org_name.as_str(), first.table.as_str(), first.org_table.as_str()), ("id", "a", "p"));
    assert!(first.primary_key && !first.nullable);
}

#[test]
fn joins() {
    let mut s = Session::new();
    s.create("a", "id int, x int null", "primary id");
    s.create("b", "id int, a_id int null, y varchar(10) null", "primary id; index by_a a_id");
    s.create("c", "k int null, z int null", "");
    s.ok("INSERT INTO a VALUES (1,10),(2,20),(3,NULL)");
    s.ok("INSERT INTO b VALUES (1,1,'p'),(2,1,'q'),(3,2,'r'),(4,NULL,'s')");
    s.ok("INSERT INTO c VALUES (10,100),(20,200),(20,201),(NULL,300)");
    assert_eq!(s.rows("SELECT a.id, b.y FROM a JOIN b ON b.a_id = a.id ORDER BY a.id, b.id"), "1|p\n1|q\n2|r");
    assert_eq!(
        s.rows("SELECT a.id, b.y FROM a LEFT JOIN b ON b.a_id = a.id ORDER BY a.id, b.id"),
        "1|p\n1|q\n2|r\n3|NULL"
    );
    assert_eq!(s.rows("SELECT a.id, b.y FROM a RIGHT JOIN b ON b.a_id = a.id ORDER BY b.id"), "1|p\n1|q\n2|r\nNULL|s");
    assert_eq!(s.rows("SELECT a.id FROM a LEFT JOIN b ON b.a_id = a.id WHERE b.id IS NULL"), "3");
    assert_eq!(s.rows("SELECT a.id, z FROM a, c WHERE a.x = c.k ORDER BY z"), "1|100\n2|200\n2|201");
    assert_eq!(s.rows("SELECT COUNT(*) FROM a, b, c"), "48");
    assert_eq!(s.rows("SELECT a.id, z FROM a JOIN c ON a.x < c.k ORDER BY 1, 2"), "1|200\n1|201");
    assert_eq!(
        s.rows("SELECT a.id, b.id, z FROM a LEFT JOIN (b JOIN c ON c.z = 100) ON b.a_id = a.id ORDER BY 1, 2"),
        "1|1|100\n1|2|100\n2|3|100\n3|NULL|NULL"
    );
    assert_eq!(
        s.rows("SELECT a.id, b.id, z FROM a LEFT JOIN b ON b.a_id = a.id LEFT JOIN c ON c.k = a.x AND b.id = 1 ORDER BY 1, 2, 3"),
        "1|1|100\n1|2|NULL\n2|3|NULL\n3|NULL|NULL"
    );
    assert_eq!(s.rows("SELECT * FROM a JOIN b USING (id) ORDER BY id"), "1|10|1|p\n2|20|1|q\n3|NULL|2|r");
    assert_eq!(s.rows("SELECT * FROM a NATURAL JOIN b ORDER BY id LIMIT 1"), "1|10|1|p");
    assert_eq!(s.rows("SELECT id, x, y FROM a NATURAL RIGHT JOIN b ORDER BY id"), "1|10|p\n2|20|q\n3|NULL|r\n4|NULL|s");
    assert_eq!(s.rows("SELECT STRAIGHT_JOIN COUNT(*) FROM b STRAIGHT_JOIN a ON a.id = b.a_id"), "3");
    assert_eq!(s.rows("SELECT a.id FROM a LEFT JOIN b ON FALSE WHERE b.id IS NULL ORDER BY 1"), "1\n2\n3");
    assert_eq!(s.rows("SELECT t1.id, t2.id FROM a t1 JOIN a t2 ON t1.id < t2.id ORDER BY 1, 2"), "1|2\n1|3\n2|3");
    // A join buffer that does not fit: read again for each outer row.
    s.memory_limit(100);
    assert_eq!(s.rows("SELECT COUNT(*) FROM a STRAIGHT_JOIN c ON a.x = c.k").lines().count(), 1);
}

#[test]
fn grouping() {
    let mut s = people();
    assert_eq!(
        s.rows("SELECT COUNT(*), COUNT(age), SUM(age), MIN(age), MAX(age), AVG(age) FROM p"),
        "5|4|126|25|41|31.5000"
    );
    assert_eq!(s.rows("SELECT COUNT(*), SUM(age), MIN(name) FROM p WHERE id > 100"), "0|NULL|NULL");
    assert_eq!(s.rows("SELECT city, COUNT(*) FROM p GROUP BY city"), "NULL|1\nBergen|1\nOslo|3");
    assert_eq!(s.rows("SELECT city AS c, COUNT(*) AS n FROM p GROUP BY c HAVING n > 1"), "Oslo|3");
    assert_eq!(
        s.rows("SELECT city, SUM(age) s FROM p GROUP BY 1 ORDER BY s DESC, city"),
        "Oslo|71\nNULL|30\nBergen|25"
    );
    assert_eq!(s.rows("SELECT COUNT(DISTINCT age), COUNT(DISTINCT city, age) FROM p"), "3|3");
    assert_eq!(s.rows("SELECT GROUP_CONCAT(name ORDER BY name DESC SEPARATOR '-') FROM p WHERE age = 30"), "dan-Ann");
    assert_eq!(s.rows("SELECT age > 26, COUNT(*) FROM p GROUP BY age > 26"), "NULL|1\n0|1\n1|3");
    assert_eq!(s.rows("SELECT id, name, COUNT(*) FROM p GROUP BY id ORDER BY id LIMIT 1"), "1|Ann|1");
    assert_eq!(s.rows("SELECT SUM(age) + 1, COUNT(*) * 2 FROM p"), "127|10");
    assert_eq!(s.rows("SELECT city FROM p GROUP BY city ORDER BY COUNT(*) DESC LIMIT 1"), "Oslo");
    assert_eq!(s.rows("SELECT SUM(1.5), AVG(2), SUM(1e0) FROM p"), "7.5|2.0000|5");
    assert_eq!(
        s.error("SELECT name, COUNT(*) FROM p GROUP BY city"),
        "1055 Expression #1 of SELECT list is not in GROUP BY clause and contains nonaggregated column 'test.p.name' which is not functionally dependent on columns in GROUP BY clause; this is incompatible with sql_mode=only_full_group_by"
    );
    assert_eq!(
        s.error("SELECT name, COUNT(*) FROM p"),
        "1140 In aggregated query without GROUP BY, expression #1 of SELECT list contains nonaggregated column 'test.p.name'; this is incompatible with sql_mode=only_full_group_by"
    );
    assert_eq!(s.rows("SELECT name, COUNT(*) FROM p WHERE name = 'ann'"), "Ann|1");
    assert!(
        s.error("SELECT DISTINCT city FROM p ORDER BY id")
            .starts_with("3065 Expression #1 of ORDER BY clause is not in SELECT list")
    );
    s.context.sql_mode.only_full_group_by = false;
    assert_eq!(s.rows("SELECT name, COUNT(*) FROM p WHERE id = 2"), "Bob|1");
    s.memory_limit(50);
    assert!(s.error("SELECT id FROM p GROUP BY id").starts_with("1038 Out of sort memory"));
}

#[test]
fn inserts() {
    let mut s = Session::new();
    s.create("t", "id int auto, a int null default=7, b varchar(5), u int null", "primary id; unique u u");
    let done = s.ok("INSERT INTO t (b) VALUES ('x'), ('y')").completion;
    assert_eq!((done.affected_rows, done.last_insert_id), (2, 1));
    assert_eq!(done.info, "Records: 2  Duplicates: 0  Warnings: 0");
    assert_eq!(s.context.new_last_insert_id, Some(1));
    assert_eq!(s.rows("SELECT * FROM t ORDER BY id"), "1|7|x|NULL\n2|7|y|NULL");
    s.ok("INSERT INTO t VALUES (10, NULL, 'z', 5)");
    assert_eq!(s.ok("INSERT INTO t SET b = 'w', a = DEFAULT").completion.last_insert_id, 11);
    assert_eq!(s.ok("INSERT INTO t VALUES (0, 1, 'v', 6), (NULL, 2, 'v', 7)").completion.last_insert_id, 12);
    assert_eq!(s.rows("SELECT id FROM t WHERE b = 'v' ORDER BY id"), "12\n13");
    assert_eq!(s.error("INSERT INTO t (b, u) VALUES ('q', 5)"), "1062 Duplicate entry '5' for key 't.u'");
    assert_eq!(s.error("INSERT INTO t (id, b) VALUES (1, 'q')"), "1062 Duplicate entry '1' for key 't.PRIMARY'");
    assert_eq!(s.error("INSERT INTO t (a) VALUES (1)"), "1364 Field 'b' doesn't have a default value");
    assert_eq!(s.error("INSERT INTO t (b) VALUES (NULL)"), "1048 Column 'b' cannot be null");
    assert_eq!(s.error("INSERT INTO t (b) VALUES ('toolong')"), "1406 Data too long for column 'b' at row 1");
    assert_eq!(s.error("INSERT INTO t (b, a) VALUES ('x')"), "1136 Column count doesn't match value count at row 1");
    assert_eq!(s.error("INSERT INTO t (b, b) VALUES ('x', 'y')"), "1110 Column 'b' specified twice");
    assert_eq!(s.error("INSERT INTO t (nix) VALUES (1)"), "1054 Unknown column 'nix' in 'field list'");
    // A failing row takes the whole statement with it.
    let before = s.rows("SELECT COUNT(*) FROM t");
    s.error("INSERT INTO t (b, u) VALUES ('k', 100), ('k', 100)");
    assert_eq!(s.rows("SELECT COUNT(*) FROM t"), before);
    assert_eq!(s.affected("INSERT IGNORE INTO t (b, u) VALUES ('k', 100), ('k', 100), ('toolong', 101)"), 2);
    assert_eq!(
        s.warnings(),
        ["1062 Duplicate entry '100' for key 't.u'", "1265 Data truncated for column 'b' at row 3"]
    );
    assert_eq!(s.rows("SELECT b FROM t WHERE u = 101"), "toolo");
    assert_eq!(s.rows("SELECT a FROM t WHERE b = 'z'"), "NULL");
    s.ok("INSERT INTO t (id, a, b) VALUES (200, 3, CONCAT('n', a))");
    assert_eq!(s.rows("SELECT b FROM t WHERE id = 200"), "n3");
}

#[test]
fn on_duplicate_key_and_replace() {
    let mut s = Session::new();
    s.create("t", "id int, n int null, u int null", "primary id; unique u u");
    assert_eq!(s.affected("INSERT INTO t VALUES (1, 1, 1) ON DUPLICATE KEY UPDATE n = n + 1"), 1);
    assert_eq!(s.affected("INSERT INTO t VALUES (1, 5, 1) ON DUPLICATE KEY UPDATE n = n + VALUES(n)"), 2);
    assert_eq!(s.affected("INSERT INTO t VALUES (1, 5, 1) ON DUPLICATE KEY UPDATE n = n"), 0);
    assert_eq!(s.rows("SELECT * FROM t"), "1|6|1");
    assert_eq!(s.affected("INSERT INTO t VALUES (2, 3, 2) AS new ON DUPLICATE KEY UPDATE n = new.n * 10"), 1);
    assert_eq!(s.affected("INSERT INTO t VALUES (2, 3, 2) AS new ON DUPLICATE KEY UPDATE n = new.n * 10"), 2);
    assert_eq!(s.affected("INSERT INTO t VALUES (2, 4, 2) AS new(a, b, c) ON DUPLICATE KEY UPDATE n = b + a"), 2);
    assert_eq!(s.rows("SELECT n FROM t WHERE id = 2"), "6");
    // The same key twice in one statement.
    assert_eq!(s.affected("INSERT INTO t (id, n) VALUES (9, 1), (9, 1), (9, 1) ON DUPLICATE KEY UPDATE n = n + 1"), 5);
    assert_eq!(s.rows("SELECT n FROM t WHERE id = 9"), "3");
    assert_eq!(
        s.error("INSERT INTO t VALUES (1, 0, 0) ON DUPLICATE KEY UPDATE u = 2"),
        "1062 Duplicate entry '2' for key 't.u'"
    );
    assert_eq!(s.affected("REPLACE INTO t VALUES (1, 7, 1)"), 2);
    assert_eq!(s.affected("REPLACE INTO t VALUES (3, 7, 3)"), 1);
    // Two rows in the way.
    assert_eq!(s.affected("REPLACE INTO t VALUES (1, 8, 2)"), 3);
    assert_eq!(s.rows("SELECT * FROM t ORDER BY id"), "1|8|2\n3|7|3\n9|3|NULL");
    assert_eq!(s.affected("REPLACE INTO t VALUES (5, 1, 50), (5, 2, 51), (6, 3, 51)"), 5);
    assert_eq!(s.rows("SELECT * FROM t WHERE id IN (5, 6)"), "6|3|51");
}

#[test]
fn insert_select() {
    let mut s = people();
    s.create("q", "id int auto, name varchar(20) null", "primary id");
    assert_eq!(s.affected("INSERT INTO q (name) SELECT name FROM p WHERE id < 4 ORDER BY id"), 3);
    assert_eq!(s.rows("SELECT * FROM q"), "1|Ann\n2|Bob\n3|Cid");
    assert_eq!(s.affected("INSERT INTO q (name) SELECT name FROM q"), 3);
    assert_eq!(s.rows("SELECT COUNT(*) FROM q"), "6");
    assert_eq!(
        s.affected("INSERT INTO q SELECT id, name FROM p WHERE id <= 2 ON DUPLICATE KEY UPDATE q.name = 'dup'"),
        4
    );
    assert_eq!(s.rows("SELECT COUNT(*) FROM q WHERE name = 'dup'"), "2");
}

#[test]
fn updates_and_deletes() {
    let mut s = people();
    let done = s.ok("UPDATE p SET age = 30 WHERE city = 'Oslo'").completion;
    assert_eq!((done.affected_rows, done.info.as_str()), (2, "Rows matched: 3  Changed: 2  Warnings: 0"));
    assert_eq!(s.affected("UPDATE p SET age = age + 1, name = CONCAT(name, age) WHERE id = 1"), 1);
    assert_eq!(s.rows("SELECT age, name FROM p WHERE id = 1"), "31|Ann31");
    // No row twice, although the scanned index moves.
    assert_eq!(s.affected("UPDATE p SET age = age + 1 WHERE age >= 0"), 5);
    assert_eq!(s.rows("SELECT age FROM p ORDER BY id"), "32\n26\n31\n31\n31");
    assert_eq!(s.affected("UPDATE p SET id = id + 100 ORDER BY id DESC"), 5);
    assert_eq!(s.rows("SELECT id FROM p ORDER BY id"), "101\n102\n103\n104\n105");
    assert_eq!(s.affected("UPDATE p SET age = 0 ORDER BY id LIMIT 2"), 2);
    assert_eq!(s.rows("SELECT id FROM p WHERE age = 0 ORDER BY id"), "101\n102");
    assert_eq!(s.error("UPDATE p SET id = 101 WHERE id = 102"), "1062 Duplicate entry '101' for key 'p.PRIMARY'");
    assert_eq!(s.error("UPDATE p SET id = NULL"), "1048 Column 'id' cannot be null");
    assert_eq!(s.error("UPDATE p SET nix = 1"), "1054 Unknown column 'nix' in 'field list'");
    // A failing row takes the whole statement with it.
    s.error("UPDATE p SET id = 500");
    assert_eq!(s.rows("SELECT id FROM p ORDER BY id"), "101\n102\n103\n104\n105");
    assert_eq!(s.affected("DELETE FROM p WHERE age = 0 ORDER BY name DESC LIMIT 1"), 1);
    assert_eq!(s.rows("SELECT id FROM p ORDER BY id"), "101\n103\n104\n105");
    assert_eq!(s.affected("DELETE FROM p WHERE id IN (103, 104)"), 2);
    assert_eq!(s.affected("DELETE FROM p"), 2);
    assert_eq!(s.rows("SELECT COUNT(*) FROM p"), "0");
}

#[test]
fn times_of_rows() {
    let mut s = Session::new();
    s.create(
        "t",
        "id int, made timestamp default=now, changed datetime(3) null on_update default=now, n int null",
        "primary id; index by_made made",
    );
    s.ok("INSERT INTO t (id) VALUES (1)");
    assert_eq!(s.rows("SELECT made, changed FROM t"), "2023-11-14 22:13:20|2023-11-14 22:13:20.123");
    s.context.time_zone = rauk_zone("Europe/Berlin");
    assert_eq!(s.rows("SELECT made FROM t WHERE made = '2023-11-14 23:13:20'"), "2023-11-14 23:13:20");
    s.context.now_micros += 1_000_000;
    s.ok("UPDATE t SET n = NULL");
    assert_eq!(s.rows("SELECT changed FROM t"), "2023-11-14 22:13:20.123");
    s.ok("UPDATE t SET n = 1");
    assert_eq!(s.rows("SELECT changed FROM t"), "2023-11-14 23:13:21.123");
    // The hour that comes twice when clocks are put back.
    s.context.time_zone = rauk_zone("UTC");
    s.ok("INSERT INTO t (id, made) VALUES (2, '2023-10-29 00:30:00'), (3, '2023-10-29 01:30:00'), (4, '2023-10-29 02:30:00')");
    s.context.time_zone = rauk_zone("Europe/Berlin");
    for query in [
        "SELECT id FROM t WHERE made = '2023-10-29 02:30:00' ORDER BY id",
        "SELECT id FROM t IGNORE INDEX (by_made) WHERE made = '2023-10-29 02:30:00' ORDER BY id",
    ] {
        assert_eq!(s.rows(query), "2\n3", "{query}");
    }
    assert_eq!(s.rows("SELECT id FROM t WHERE made > '2023-10-29 02:30:00' AND id > 1"), "4");
}

fn rauk_zone(name: &str) -> jiff::tz::TimeZone {
    if name == "UTC" { jiff::tz::TimeZone::UTC } else { jiff::tz::TimeZone::get(name).unwrap() }
}

#[test]
fn parameters() {
    let mut s = people();
    s.context.parameters = vec![Value::Int(2), Value::Int(1)];
    assert_eq!(s.rows("SELECT name FROM p WHERE id > ? ORDER BY id LIMIT ?"), "Cid");
    // The same plan with other values.
    let plan = s.plan("SELECT name FROM p WHERE id = ?").unwrap();
    for (id, name) in [(1, "Ann"), (5, "Eve"), (9, "")] {
        s.context.parameters = vec![Value::Int(id)];
        assert_eq!(s.run_plan(&plan).unwrap().text(), name);
    }
    s.context.parameters = vec![Value::Null];
    assert_eq!(s.run_plan(&plan).unwrap().text(), "");
}

#[test]
fn locking_reads() {
    let mut s = people();
    let mut other = s.other();
    s.begin();
    assert_eq!(s.rows("SELECT id FROM p WHERE age = 30 AND name = 'Ann' FOR UPDATE"), "1");
    other.begin();
    assert_eq!(
        other.error("SELECT id FROM p WHERE id = 1 FOR UPDATE NOWAIT"),
        "3572 Statement aborted because lock(s) could not be acquired immediately and NOWAIT is set."
    );
    assert_eq!(other.rows("SELECT id FROM p WHERE id IN (1, 2) FOR UPDATE SKIP LOCKED"), "2");
    // A row that was looked at and did not match is not locked.
    assert_eq!(other.rows("SELECT id FROM p WHERE id = 4 FOR SHARE NOWAIT"), "4");
    assert_eq!(other.rows("SELECT name FROM p WHERE id = 1"), "Ann");
    other.rollback();
    s.ok("UPDATE p SET name = 'X' WHERE id = 1");
    assert_eq!(s.rows("SELECT name FROM p WHERE id = 1"), "X");
    s.rollback();
    assert_eq!(s.rows("SELECT name FROM p WHERE id = 1"), "Ann");
}

#[test]
fn prefix_and_descending_indexes() {
    let mut s = Session::new();
    s.create(
        "t",
        "id int, s varchar(20) null general, d int null",
        "primary id; index by_prefix s(2), d; index by_d d desc, id",
    );
    for (i, text) in ["abc", "abd", "ABE", "ac", "a", "ß", "s", "b", "ab  "].iter().enumerate() {
        s.ok(&format!("INSERT INTO t VALUES ({i}, '{text}', {})", i % 3));
    }
    s.ok("INSERT INTO t VALUES (50, NULL, NULL)");
    assert_eq!(s.rows("SELECT id FROM t FORCE INDEX (by_prefix) WHERE s = 'ABC'"), "0");
    assert_eq!(s.rows("SELECT id FROM t FORCE INDEX (by_prefix) WHERE s = 'ab'"), "8");
    assert_eq!(s.rows("SELECT id FROM t FORCE INDEX (by_prefix) WHERE s > 'abc' ORDER BY id"), "1\n2\n3\n5\n6\n7");
    assert_eq!(s.rows("SELECT id FROM t FORCE INDEX (by_prefix) WHERE s < 'abd' ORDER BY id"), "0\n4\n8");
    assert_eq!(s.rows("SELECT id FROM t FORCE INDEX (by_prefix) WHERE s LIKE 'ab%' ORDER BY id"), "0\n1\n2\n8");
    assert_eq!(s.rows("SELECT id FROM t FORCE INDEX (by_prefix) WHERE s = 's' ORDER BY id"), "5\n6");
    assert_eq!(s.rows("SELECT id FROM t FORCE INDEX (by_d) WHERE d >= 1 ORDER BY d DESC, id"), "2\n5\n8\n1\n4\n7");
    assert_eq!(s.rows("SELECT id FROM t FORCE INDEX (by_d) ORDER BY d, id DESC LIMIT 3"), "50\n6\n3");
    assert_eq!(
        s.rows("SELECT id FROM t FORCE INDEX (by_d) WHERE d IN (0, 2) AND id < 4 ORDER BY d DESC, id"),
        "2\n0\n3"
    );
}

#[test]
fn what_is_not_there_yet_is_named() {
    let mut s = people();
    for (sql, name) in [
        ("SELECT GROUP_CONCAT(city) OVER () FROM p", "GROUP_CONCAT as window function"),
        ("SELECT COUNT(DISTINCT city) OVER () FROM p", "DISTINCT"),
    ] {
        let error = s.error(sql);
        assert!(
            error.starts_with("1235 This version of MySQL doesn't yet support") && error.contains(name),
            "{sql}: {error}"
        );
    }
    for sql in [
        "SELECT * FROM p PARTITION (p0)",
        "UPDATE p PARTITION (p0) SET age = 1",
        "DELETE FROM p PARTITION (p0)",
        "INSERT INTO p PARTITION (p0) VALUES (9, 'x', 1, 'y')",
    ] {
        assert_eq!(s.error(sql), "1747 PARTITION () clause on non partitioned table", "{sql}");
    }
    assert_eq!(s.rows("SELECT COUNT(*), SUM(age) FROM p"), "5|126");
}

/// Joins are trees; parentheses move tables to the right of one.
#[test]
fn joins_lean_to_both_sides() {
    let mut s = people();
    for from in [
        "p a JOIN p b ON b.id = a.id + 1 JOIN p c ON c.id = b.id + 1",
        "p a JOIN (p b JOIN p c ON c.id = b.id + 1) ON b.id = a.id + 1",
        "p a JOIN (p b, p c) ON b.id = a.id + 1 AND c.id = b.id + 1",
        "((p a JOIN p b ON b.id = a.id + 1) JOIN ((p c)) ON c.id = b.id + 1)",
        "p c RIGHT JOIN (p a JOIN p b ON b.id = a.id + 1) ON c.id = b.id + 1 JOIN p d ON d.id = c.id",
    ] {
        let rows = s.rows(&format!("SELECT a.id, b.id, c.id FROM {from} ORDER BY 1"));
        assert_eq!(rows, "1|2|3\n2|3|4\n3|4|5", "{from}");
    }
}

#[test]
fn found_rows() {
    let mut s = people();
    s.ok("SELECT SQL_CALC_FOUND_ROWS id FROM p ORDER BY id LIMIT 2");
    assert_eq!(s.context.found_rows, 5);
    s.ok("SELECT id FROM p ORDER BY id LIMIT 2");
    assert_eq!(s.context.found_rows, 2);
}

/// Remembers the hints that it was read with.
struct Computed {
    schema: std::sync::Arc<rauk_types::TableSchema>,
    hints: std::sync::Mutex<Vec<(Option<String>, Option<String>)>>,
}

impl rauk_sql::lookup::VirtualTable for Computed {
    fn schema(&self) -> &std::sync::Arc<rauk_types::TableSchema> {
        &self.schema
    }
    fn rows(
        &self,
        schema_hint: Option<&str>,
        table_hint: Option<&str>,
    ) -> Result<Vec<Vec<Value>>, rauk_types::MysqlError> {
        self.hints.lock().unwrap().push((schema_hint.map(String::from), table_hint.map(String::from)));
        let row = |s: &str, t: &str, n: i64| vec![Value::from(s), Value::from(t), Value::from(n)];
        Ok(vec![row("test", "p", 5), row("test", "q", 0), row("other", "p", 7)])
    }
}

#[test]
fn virtual_tables() {
    let mut s = people();
    let mut schema = support::schema(
        "tables",
        "TABLE_SCHEMA varchar(64) general, TABLE_NAME varchar(64) general, TABLE_ROWS int",
        "",
    );
    schema.columns.pop();
    schema.hidden_key = false;
    schema.indexes.clear();
    schema.distribution.clear();
    let table = std::sync::Arc::new(Computed { schema: std::sync::Arc::new(schema), hints: Default::default() });
    s.virtual_tables.insert("tables".to_string(), table.clone());
    let sql = "SELECT TABLE_NAME, TABLE_ROWS FROM tables WHERE TABLE_SCHEMA = 'test' AND TABLE_NAME = 'p'";
    assert_eq!(s.rows(sql), "p|5");
    assert_eq!(*table.hints.lock().unwrap(), [(Some("test".to_string()), Some("p".to_string()))]);
    assert_eq!(s.rows("SELECT COUNT(*), MAX(TABLE_ROWS) FROM tables"), "3|7");
    assert_eq!(s.rows("SELECT * FROM tables ORDER BY TABLE_ROWS DESC LIMIT 1"), "other|p|7");
    // Beside stored tables, inner and outer.
    assert_eq!(s.rows("SELECT name, TABLE_NAME FROM tables JOIN p ON id = TABLE_ROWS"), "Eve|p");
    assert_eq!(
        s.rows("SELECT COUNT(TABLE_NAME) FROM p LEFT JOIN tables ON TABLE_ROWS = p.id AND TABLE_SCHEMA = 'test'"),
        "1"
    );
    assert!(s.error("DELETE FROM tables").starts_with("1142 "));
    assert!(s.plan(sql).unwrap().is_read_only() && !s.plan("SELECT 1 FROM p FOR UPDATE").unwrap().is_read_only());
}

#[test]
fn large_results_sorts_and_groups() {
    let mut s = Session::new();
    s.create("n", "id int, v int null, t varchar(20) null", "primary id; index by_v v");
    for block in 0..10 {
        let rows: Vec<String> =
            (0..500).map(|i| block * 500 + i).map(|i| format!("({i}, {}, 't{}')", i * 7919 % 1000, i % 37)).collect();
        assert_eq!(s.affected(&format!("INSERT INTO n VALUES {}", rows.join(","))), 500);
    }
    assert_eq!(
        s.rows("SELECT COUNT(*), SUM(id), COUNT(DISTINCT v), MIN(v), MAX(v) FROM n"),
        "5000|12497500|1000|0|999"
    );
    assert_eq!(s.ok("SELECT id FROM n").rows.len(), 5000);
    let ids: Vec<i64> = s.ok("SELECT id FROM n ORDER BY id").rows.iter().map(|r| r[0].parse().unwrap()).collect();
    assert_eq!(ids, (0..5000).collect::<Vec<_>>());
    let sorted = s.ok("SELECT t, id FROM n ORDER BY t DESC, id LIMIT 3").text();
    assert_eq!(sorted, "t9|9\nt9|46\nt9|83");
    assert_eq!(s.ok("SELECT t, COUNT(*) FROM n GROUP BY t").rows.len(), 37);
    assert_eq!(s.rows("SELECT COUNT(*) FROM n a JOIN n b ON a.v = b.id"), "5000");
    assert_eq!(s.affected("UPDATE n SET v = v + 1000 WHERE v < 500"), 2500);
    assert_eq!(s.rows("SELECT COUNT(*) FROM n WHERE v >= 1000"), "2500");
    assert_eq!(s.affected("DELETE FROM n WHERE v >= 1000 ORDER BY id LIMIT 2000"), 2000);
    assert_eq!(s.rows("SELECT COUNT(*) FROM n"), "3000");
    s.memory_limit(100_000);
    assert!(s.error("SELECT id FROM n ORDER BY t, id").starts_with("1038 "));
    // The best rows alone need little.
    s.memory_limit(100_000);
    assert_eq!(s.ok("SELECT id FROM n ORDER BY t, id LIMIT 5").rows.len(), 5);
}
