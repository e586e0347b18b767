//! Keys: primary, unique, composite, of a prefix, hidden; by every collation; numbers that both sides draw from one counter.

use super::{names, refused, start};
use rauk_client::{Direction, ErrorKind, Value, blocking::wait};

const COLLATIONS: [&str; 4] = ["utf8mb4_0900_ai_ci", "utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb4_bin"];

/// Which key finds which row is the same question for both.
#[test]
fn text_is_found_as_sql_finds_it() {
    let mut both = start();
    let stored = ["A", "straße", "é", "日本", "ab ", "", "🦀", "naïve"];
    let asked =
        ["a", "A", "STRASSE", "strase", "straße", "E", "É", "日本", "ab", "AB  ", "ab ", " ", "", "🦀", "🦊", "NAIVE"];
    for (number, collation) in COLLATIONS.iter().enumerate() {
        for (ty, kind) in [("VARCHAR(20)", 'v'), ("CHAR(20)", 'c')] {
            let name = format!("t{kind}{number}");
            both.run(&format!("CREATE TABLE {name} (word {ty} COLLATE {collation} PRIMARY KEY, n INT, u {ty} COLLATE {collation} UNIQUE)"));
            wait(async {
                let table = both.table(&name).await;
                for (n, word) in stored.iter().enumerate() {
                    if n % 2 == 0 {
                        both.run(&format!("INSERT INTO {name} VALUES ('{word}', {n}, '{word}')"));
                    } else {
                        let values =
                            [("word", Value::from(*word)), ("n", Value::from(n as i64)), ("u", Value::from(*word))];
                        table.insert(&values).await.expect("inserted");
                    }
                }
                for word in asked {
                    // A key is a value as the column stores it: a CHAR has no spaces at its end.
                    let stored = if kind == 'c' { word.trim_end() } else { word };
                    let expected = both.run(&format!("SELECT n FROM {name} WHERE word = '{stored}'"));
                    let at = format!("{ty} {collation}: {word:?}");
                    let number = |row: Option<rauk_client::Row>| match row {
                        Some(row) => vec![row.get::<i32>("n").expect("n").to_string()],
                        None => vec!["(empty)".to_string()],
                    };
                    assert_eq!(number(table.get(word).await.expect("read")), expected, "primary key, {at}");
                    assert_eq!(number(table.get_by("u", word).await.expect("read")), expected, "unique key, {at}");
                    let found = table.scan_index("u").expect("there").prefix(word).collect().await.expect("scanned");
                    assert_eq!(number(found.into_iter().next()), expected, "scan, {at}");
                    // A duplicate for one is a duplicate for the other.
                    let there = expected != ["(empty)"];
                    let inserted = table.insert(&[("word", Value::from(word)), ("n", Value::from(99))]).await;
                    match there {
                        true => _ = refused(inserted, ErrorKind::Duplicate, 1062),
                        false => {
                            inserted.expect("inserted");
                            assert_eq!(
                                both.fails(&format!("INSERT INTO {name} (word, n) VALUES ('{word}', 99)")),
                                1062,
                                "{at}"
                            );
                            assert_eq!(both.run(&format!("DELETE FROM {name} WHERE word = '{word}'")), ["ok 1"]);
                        }
                    }
                }
                let order = both.run(&format!("SELECT n FROM {name} ORDER BY word"));
                let rows = table.scan_index("PRIMARY").expect("there").collect().await.expect("scanned");
                let found: Vec<String> = rows.iter().map(|row| row.get::<i32>("n").expect("n").to_string()).collect();
                assert_eq!(found, order, "{ty} {collation}");
            });
        }
    }
}

#[test]
fn numbers_come_from_one_counter() {
    let mut both = start();
    both.run("CREATE TABLE t (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, who CHAR(1))");
    wait(async {
        let table = both.table("t").await;
        let mut last = 0;
        for round in 0..20 {
            let number = if round % 2 == 0 {
                both.run("INSERT INTO t (who) VALUES ('s')");
                both.one("SELECT LAST_INSERT_ID()").parse().expect("a number")
            } else {
                table.insert(&[("who", Value::from("n"))]).await.expect("inserted").expect("a number")
            };
            assert!(number > last, "{number} after {last}");
            last = number;
        }
        table.insert(&[("id", Value::from(500)), ("who", Value::from("n"))]).await.expect("inserted");
        both.run("INSERT INTO t (who) VALUES ('s')");
        assert!(both.one("SELECT MAX(id) FROM t").parse::<u64>().expect("a number") > 500);
        both.run("INSERT INTO t VALUES (1000, 's')");
        for none in [Value::from(0), Value::Null] {
            let number = table.insert(&[("id", none), ("who", Value::from("n"))]).await.expect("inserted");
            assert!(number.is_some_and(|number| number > 1000), "{number:?}");
        }
        both.run("ALTER TABLE t AUTO_INCREMENT = 5000");
        let number = table.insert(&[("who", Value::from("n"))]).await.expect("inserted");
        assert!(number.is_some_and(|number| number >= 5000), "{number:?}");
    });
    assert_eq!(both.one("SELECT COUNT(*), COUNT(DISTINCT id) FROM t"), "26 | 26");
}

#[test]
fn a_duplicate_is_one_for_both() {
    let mut both = start();
    both.run("CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(10), UNIQUE KEY ab (a, b), UNIQUE KEY pre (b(2)))");
    both.run("INSERT INTO t VALUES (1, 1, 'one'), (2, NULL, 'two')");
    wait(async {
        let table = both.table("t").await;
        let row = |id: i32, a: Value, b: &str| [("id", Value::from(id)), ("a", a), ("b", Value::from(b))];
        let error = refused(table.insert(&row(3, Value::from(1), "ONE")).await, ErrorKind::Duplicate, 1062);
        assert!(error.message.contains("ab") || error.message.contains("pre"), "{error}");
        // The prefix of two characters is taken.
        let error = refused(table.insert(&row(3, Value::from(2), "only")).await, ErrorKind::Duplicate, 1062);
        assert!(error.message.contains("pre"), "{error}");
        table.insert(&row(3, Value::Null, "three")).await.expect("inserted");
        table.insert(&row(4, Value::from(4), "four")).await.expect("inserted");
        assert_eq!(both.fails("INSERT INTO t VALUES (5, 4, 'FOUR')"), 1062);
        assert_eq!(both.fails("INSERT INTO t VALUES (4, 5, 'xyz')"), 1062);
        assert_eq!(both.fails("UPDATE t SET a = 4, b = 'four' WHERE id = 1"), 1062);
        refused(table.update(4, &[("b", Value::from("on"))]).await, ErrorKind::Duplicate, 1062);
        let row = table.get_by("ab", (4, "four")).await.expect("read").expect("there");
        assert_eq!(row.get("id"), Ok(4));
        assert!(table.get_by("ab", (4, "five")).await.expect("read").is_none());
        assert_eq!(table.get_by("ab", 4).await.map(|_| ()).unwrap_err().kind, ErrorKind::WrongType);
        both.run("UPDATE t SET b = 'vier' WHERE id = 4");
        assert!(table.get_by("ab", (4, "four")).await.expect("read").is_none());
        table.delete(4).await.expect("deleted");
        both.run("INSERT INTO t VALUES (5, 4, 'vier')");
        assert_eq!(table.get_by("ab", (4, "vier")).await.expect("read").map(|row| row.get("id")), Some(Ok(5)));
        // An index of a prefix does not know more than that of a value: it does not find another row, it says so.
        assert_eq!(both.run("SELECT id FROM t WHERE b = 'viel'"), ["(empty)"]);
        refused(table.get_by("pre", "viel").await.map(|_| ()), ErrorKind::InvalidValue, 1089);
        assert_eq!(table.get_by("pre", "VI").await.expect("read").map(|row| row.get("id")), Some(Ok(5)));
        assert!(table.get_by("pre", "v").await.expect("read").is_none());
    });
    assert_eq!(
        both.run("SELECT id, a, b FROM t ORDER BY id"),
        ["1 | 1 | one", "2 | NULL | two", "3 | NULL | three", "5 | 4 | vier"]
    );
}

#[test]
fn composite_and_descending_keys() {
    let mut both = start();
    both.run(
        "CREATE TABLE t (a INT, b VARCHAR(10), c DATE, n INT, PRIMARY KEY (b, a), KEY nc (n DESC, c), KEY pre (b(2)))",
    );
    for i in 0..60 {
        both.run(&format!("INSERT INTO t VALUES ({}, 'b{}', '2024-01-{:02}', {})", i % 6, i / 6, 1 + i % 28, i % 7));
    }
    wait(async {
        let table = both.table("t").await;
        let row = table.get(("b3", 4)).await.expect("read").expect("there");
        assert_eq!((row.get::<i32>("a"), row.get::<String>("b")), (Ok(4), Ok("b3".into())));
        assert_eq!(table.get((4, "b3")).await.map(|_| ()).unwrap_err().kind, ErrorKind::WrongType);
        let shown = |rows: &[rauk_client::Row]| -> Vec<String> {
            let cell = |row: &rauk_client::Row, name| row.get::<i32>(name).expect("a number");
            rows.iter().map(|row| format!("{} | {}", row.get::<String>("b").expect("b"), cell(row, "a"))).collect()
        };
        let rows = table.scan_index("PRIMARY").expect("there").prefix("b7").collect().await.expect("scanned");
        assert_eq!(shown(&rows), both.run("SELECT b, a FROM t WHERE b = 'b7' ORDER BY b, a"));
        for (direction, order) in [(Direction::Forward, "n DESC, c"), (Direction::Backward, "n, c DESC")] {
            let rows = table.scan_index("nc").expect("there").direction(direction).collect().await.expect("scanned");
            let found: Vec<String> = rows
                .iter()
                .map(|row| {
                    format!("{} | {}", row.get::<i32>("n").expect("n"), row.get::<rauk_client::Date>("c").expect("c"))
                })
                .collect();
            assert_eq!(found, both.run(&format!("SELECT n, c FROM t ORDER BY {order}")));
        }
        let rows = table.scan_index("nc").expect("there").prefix(3).collect().await.expect("scanned");
        assert_eq!(rows.len().to_string(), both.one("SELECT COUNT(*) FROM t WHERE n = 3"));
        assert!(rows.iter().all(|row| row.get("n") == Ok(3)));
        // Bounds are about values, whatever the order of the index.
        let rows = table.scan_index("nc").expect("there").range(2..=5).collect().await.expect("scanned");
        assert_eq!(rows.len().to_string(), both.one("SELECT COUNT(*) FROM t WHERE n BETWEEN 2 AND 5"));
    });
}

#[test]
fn a_table_without_a_primary_key_is_scanned() {
    let mut both = start();
    both.run("CREATE TABLE t (a INT, b VARCHAR(10), KEY a (a), UNIQUE KEY b (b))");
    both.run("INSERT INTO t VALUES (1, 'x'), (1, 'y'), (2, NULL)");
    wait(async {
        let table = both.table("t").await;
        for _ in 0..2 {
            table.insert(&[("a", Value::from(3))]).await.expect("rows may be alike");
        }
        table.insert(&[("a", Value::from(4)), ("b", Value::from("z"))]).await.expect("inserted");
        let rows = table.scan().collect().await.expect("scanned");
        assert_eq!(rows.len(), 6);
        assert!(rows.iter().all(|row| names(row) == ["a", "b"]), "the hidden key is not shown");
        let rows = table.scan_index("a").expect("there").range(3..).collect().await.expect("scanned");
        assert_eq!(rows.len(), 3);
        assert_eq!(table.get_by("b", "y").await.expect("read").map(|row| row.get("a")), Some(Ok(1)));
        for error in [
            table.get(1).await.map(|_| ()).unwrap_err(),
            table.delete(1).await.map(|_| ()).unwrap_err(),
            table.update(1, &[("a", Value::from(1))]).await.map(|_| ()).unwrap_err(),
            table.get_by("PRIMARY", 1u64).await.map(|_| ()).unwrap_err(),
        ] {
            assert!(!error.is_temporary());
            assert!(error.message.contains("primary key") || error.message.contains("PRIMARY"), "{error}");
        }
        assert_eq!(
            table.insert(&[("\u{1}row_id", Value::from(1u64))]).await.unwrap_err().kind,
            ErrorKind::UnknownColumn
        );
    });
    assert_eq!(
        both.run("SELECT a, b FROM t ORDER BY a, b"),
        ["1 | x", "1 | y", "2 | NULL", "3 | NULL", "3 | NULL", "4 | z"]
    );
}

#[test]
fn partitioned_by_a_part_of_the_key() {
    let mut both = start();
    both.run("CREATE TABLE t (w INT, d INT, n INT, PRIMARY KEY (w, d), UNIQUE KEY n (n)) PARTITION BY KEY (d)");
    for w in 0..10 {
        both.run(&format!("INSERT INTO t VALUES ({w}, 0, {}), ({w}, 1, {})", w * 2, w * 2 + 1));
    }
    wait(async {
        let table = both.table("t").await;
        for w in 10..20 {
            let mut batch = both.client.batch();
            for d in 0..2 {
                batch.insert(&table, &[("w", Value::from(w)), ("d", Value::from(d)), ("n", Value::from(w * 2 + d))]);
            }
            assert_eq!(both.client.execute(batch).await.expect("executed").succeeded(), 2);
        }
        for w in 0..20 {
            for d in 0..2 {
                let row = table.get((w, d)).await.expect("read").expect("there");
                assert_eq!(row.get("n"), Ok(w * 2 + d));
                assert_eq!(both.one(&format!("SELECT n FROM t WHERE w = {w} AND d = {d}")), (w * 2 + d).to_string());
                assert_eq!(table.get_by("n", w * 2 + d).await.expect("read").map(|row| row.get("w")), Some(Ok(w)));
            }
        }
        assert_eq!(table.scan().collect().await.expect("scanned").len(), 40);
        let rows = table.scan_index("PRIMARY").expect("there").range(5..10).collect().await.expect("scanned");
        assert_eq!(rows.iter().map(|row| row.get("n").expect("n")).collect::<Vec<i32>>(), (10..20).collect::<Vec<_>>());
        assert_eq!(table.delete((3, 1)).await, Ok(true));
    });
    assert_eq!(both.one("SELECT COUNT(*), SUM(n) FROM t"), "39 | 773");
}
