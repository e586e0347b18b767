//! Every type of a column, written by one side and read by the other.

use super::{names, refused, start};
use mysql::prelude::Queryable;
use rauk_client::{Date, DateTime, Decimal, ErrorKind, Record, Time, Value, blocking::wait};

/// A column's type, a value of it as SQL writes it, the same as the native API has it, and how SQL shows it.
type Case = (&'static str, &'static str, Value, &'static str);

fn decimal(text: &str) -> Value {
    Value::Decimal(text.parse::<Decimal>().expect("a decimal"))
}

fn at(year: u16, month: u8, day: u8, hour: u8, minute: u8, second: u8, micros: u32) -> DateTime {
    DateTime::from_parts(year, month, day, hour, minute, second, micros).expect("a moment")
}

fn time(micros: i64) -> Value {
    Value::Time(Time::from_micros(micros).expect("a time"))
}

fn bytes(bytes: &[u8]) -> Value {
    Value::Bytes(bytes.to_vec())
}

fn cases() -> Vec<Case> {
    let wide = "99999999999999999999999999999999999.999999999999999999999999999999";
    let low = "-99999999999999999999999999999999999.999999999999999999999999999999";
    vec![
        ("TINYINT", "-128", Value::Int(-128), "-128"),
        ("TINYINT", "127", Value::Int(127), "127"),
        ("TINYINT UNSIGNED", "255", Value::UInt(255), "255"),
        ("BOOL", "TRUE", Value::Int(1), "1"),
        ("SMALLINT", "-32768", Value::Int(-32768), "-32768"),
        ("SMALLINT UNSIGNED", "65535", Value::UInt(65535), "65535"),
        ("MEDIUMINT", "-8388608", Value::Int(-8388608), "-8388608"),
        ("MEDIUMINT UNSIGNED", "16777215", Value::UInt(16777215), "16777215"),
        ("INT", "-2147483648", Value::Int(i32::MIN.into()), "-2147483648"),
        ("INT UNSIGNED", "4294967295", Value::UInt(u32::MAX.into()), "4294967295"),
        ("BIGINT", "-9223372036854775808", Value::Int(i64::MIN), "-9223372036854775808"),
        ("BIGINT UNSIGNED", "18446744073709551615", Value::UInt(u64::MAX), "18446744073709551615"),
        ("DECIMAL(5,2)", "-999.99", decimal("-999.99"), "-999.99"),
        ("DECIMAL(18,0)", "999999999999999999", decimal("999999999999999999"), "999999999999999999"),
        ("DECIMAL(38,10)", "-1.5", decimal("-1.5"), "-1.5000000000"),
        ("DECIMAL(65,30)", wide, decimal(wide), wide),
        ("DECIMAL(65,30)", low, decimal(low), low),
        ("DECIMAL(65,30)", "1e-30", decimal("0.000000000000000000000000000001"), "0.000000000000000000000000000001"),
        ("FLOAT", "-0.25", Value::Double(-0.25), "-0.25"),
        ("FLOAT", "0.1", Value::Double(f64::from(0.1f32)), "0.1"),
        ("DOUBLE", "1e-300", Value::Double(1e-300), "1e-300"),
        ("DOUBLE", "0.1", Value::Double(0.1), "0.1"),
        ("CHAR(10)", "'abc   '", Value::from("abc"), "abc"),
        ("CHAR(2)", "'🦀ü'", Value::from("🦀ü"), "🦀ü"),
        ("VARCHAR(10)", "'abc   '", Value::from("abc   "), "abc   "),
        ("VARCHAR(10) COLLATE utf8mb4_bin", "'Ä\\n\\0'", Value::from("Ä\n\0"), "Ä\n\0"),
        ("TINYTEXT", "''", Value::from(""), ""),
        ("TEXT", "'日本語'", Value::from("日本語"), "日本語"),
        ("MEDIUMTEXT", "'m'", Value::from("m"), "m"),
        ("LONGTEXT", "'l'", Value::from("l"), "l"),
        ("VARBINARY(4)", "x'41420D0A'", bytes(b"AB\r\n"), "AB\r\n"),
        ("BINARY(4)", "'ab'", bytes(b"ab\0\0"), "ab\0\0"),
        ("TINYBLOB", "''", bytes(b""), ""),
        ("BLOB", "'blob'", bytes(b"blob"), "blob"),
        ("LONGBLOB", "x'00'", bytes(b"\0"), "\0"),
        ("DATE", "'2024-02-29'", Value::Date(Date::from_parts(2024, 2, 29)), "2024-02-29"),
        ("DATE", "'9999-12-31'", Value::Date(Date::MAX), "9999-12-31"),
        ("DATE", "'0000-00-00'", Value::Date(Date::ZERO), "0000-00-00"),
        ("TIME", "'-838:59:59'", Value::Time(Time::MIN), "-838:59:59"),
        ("TIME", "'838:59:59'", Value::Time(Time::MAX), "838:59:59"),
        ("TIME(6)", "'-12:34:56.789012'", time(-45_296_789_012), "-12:34:56.789012"),
        ("TIME(3)", "'-00:00:00.001'", time(-1_000), "-00:00:00.001"),
        ("DATETIME", "'9999-12-31 23:59:59'", Value::DateTime(at(9999, 12, 31, 23, 59, 59, 0)), "9999-12-31 23:59:59"),
        (
            "DATETIME(6)",
            "'2024-02-29 23:59:59.999999'",
            Value::DateTime(at(2024, 2, 29, 23, 59, 59, 999_999)),
            "2024-02-29 23:59:59.999999",
        ),
        ("DATETIME", "'0000-00-00 00:00:00'", Value::DateTime(DateTime::ZERO), "0000-00-00 00:00:00"),
        // The session is two hours ahead of UTC.
        ("TIMESTAMP NULL", "'2024-01-01 02:00:00'", Value::Timestamp(1_704_067_200_000_000), "2024-01-01 02:00:00"),
        (
            "TIMESTAMP(6) NULL",
            "'1970-01-01 02:00:01.000001'",
            Value::Timestamp(1_000_001),
            "1970-01-01 02:00:01.000001",
        ),
        (
            "TIMESTAMP(3) NULL",
            "'2038-01-19 05:14:07.999'",
            Value::Timestamp(2_147_483_647_999_000),
            "2038-01-19 05:14:07.999",
        ),
        ("TIMESTAMP NULL", "'0000-00-00 00:00:00'", Value::Timestamp(0), "0000-00-00 00:00:00"),
        ("ENUM('b', 'ä')", "'Ä'", Value::UInt(2), "ä"),
        ("SET('b', 'a', 'c')", "'c,b'", Value::UInt(5), "b,c"),
        ("SET('b', 'a', 'c')", "''", Value::UInt(0), ""),
        ("YEAR", "2155", Value::UInt(2155), "2155"),
        ("YEAR", "0", Value::UInt(0), "0000"),
        ("BIT(6)", "b'100001'", Value::UInt(33), "!"),
        ("BIT(64)", "x'4142434445464748'", Value::UInt(0x4142_4344_4546_4748), "ABCDEFGH"),
        ("INT(4) ZEROFILL", "7", Value::UInt(7), "0007"),
        ("DECIMAL(5,1) ZEROFILL", "7", decimal("7.0"), "0007.0"),
        ("JSON", "'[1, {\"a\": null}]'", Value::from("[1, {\"a\": null}]"), "[1, {\"a\": null}]"),
    ]
}

/// A TIMESTAMP is given as a moment in UTC.
fn given(value: &Value) -> Value {
    match value {
        Value::Timestamp(0) => Value::DateTime(DateTime::ZERO),
        Value::Timestamp(micros) => Value::DateTime(DateTime::from_unix_micros_utc(*micros).expect("a moment")),
        other => other.clone(),
    }
}

#[test]
fn each_reads_what_the_other_wrote() {
    let mut both = start();
    both.run("SET sql_mode = ''");
    both.run("SET time_zone = '+02:00'");
    let cases = cases();
    let columns: Vec<String> = (0..cases.len()).map(|i| format!("c{i}")).collect();
    let definitions: Vec<String> =
        columns.iter().zip(&cases).map(|(name, case)| format!("{name} {}", case.0)).collect();
    both.run(&format!("CREATE TABLE t (id INT PRIMARY KEY, {})", definitions.join(", ")));
    let literals: Vec<&str> = cases.iter().map(|case| case.1).collect();
    both.run(&format!("INSERT INTO t VALUES (1, {})", literals.join(", ")));
    wait(async {
        let table = both.table("t").await;
        let row = table.get(1).await.expect("read").expect("what SQL inserted is there");
        let mut values = vec![("id", Value::from(2))];
        for (name, (ty, literal, value, _)) in columns.iter().zip(&cases) {
            assert_eq!(row.value(name).map(|v| v.to_owned()).as_ref(), Ok(value), "{ty} {literal} read natively");
            values.push((name, given(value)));
        }
        table.insert(&values).await.expect("inserted");
        // The same again, by a change of a row of NULLs.
        table.insert(&[("id", Value::from(3))]).await.expect("inserted");
        assert_eq!(table.update(3, &values[1..]).await, Ok(true));
        table.insert(&[("id", Value::from(4))]).await.expect("inserted");
        both.run("INSERT INTO t (id) VALUES (5)");
        for id in [2, 3] {
            let row = table.get(id).await.expect("read").expect("there");
            for (name, (ty, literal, value, _)) in columns.iter().zip(&cases) {
                assert_eq!(
                    row.value(name).map(|v| v.to_owned()).as_ref(),
                    Ok(value),
                    "{ty} {literal} written natively"
                );
                let text = &cases[name[1..].parse::<usize>().expect("a number")].3;
                // For SQL, too, it is what SQL wrote.
                assert_eq!(
                    both.one(&format!("SELECT {name} FROM t WHERE id = {id}")),
                    *text,
                    "{ty} {literal} read by SQL"
                );
                let same =
                    format!("SELECT COUNT(*) FROM t a JOIN t b ON a.{name} = b.{name} WHERE a.id = 1 AND b.id = {id}");
                assert_eq!(both.one(&same), "1", "{ty} {literal} compared by SQL");
            }
        }
        for id in [4, 5] {
            let row = table.get(id).await.expect("read").expect("there");
            assert!(row.columns().skip(1).all(|(_, value)| value.is_null()));
            let nulls = both.one(&format!("SELECT {} FROM t WHERE id = {id}", columns.join(", ")));
            assert!(nulls.split(" | ").all(|cell| cell == "NULL"), "{nulls}");
        }
        // What SQL changes afterwards, in rows of either.
        for (name, (ty, literal, value, text)) in columns.iter().zip(&cases) {
            both.run(&format!("UPDATE t SET {name} = NULL WHERE id IN (1, 2)"));
            both.run(&format!("UPDATE t SET {name} = {literal} WHERE id = 4"));
            assert_eq!(both.one(&format!("SELECT {name} FROM t WHERE id = 4")), *text);
            let row = table.get(4).await.expect("read").expect("there");
            assert_eq!(row.value(name).map(|v| v.to_owned()).as_ref(), Ok(value), "{ty} {literal} changed by SQL");
        }
        for id in [1, 2] {
            let row = table.get(id).await.expect("read").expect("there");
            assert!(row.columns().skip(1).all(|(_, value)| value.is_null()));
        }
    });
}

#[test]
fn a_partitioned_table_is_not_opened() {
    let mut both = start();
    both.run("CREATE TABLE t (id INT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 4");
    both.run("CREATE TABLE u (id INT PRIMARY KEY)");
    wait(async {
        let error = both.client.table("d", "t").await.err().expect("it is partitioned");
        assert_eq!(error.code, 1235, "{error}");
        let table = both.table("u").await;
        assert!(table.get(1).await.expect("read").is_none());
    });
    both.run("ALTER TABLE t REMOVE PARTITIONING");
    wait(async { assert!(both.table("t").await.get(1).await.expect("read").is_none()) });
}

#[test]
fn what_sql_refuses_is_refused() {
    let mut both = start();
    both.run("CREATE TABLE t (id INT PRIMARY KEY, j JSON, d DECIMAL(5,2), c CHAR(3), b BINARY(3), s TINYTEXT, z DATE, ts TIMESTAMP NULL, y TINYINT UNSIGNED)");
    wait(async {
        let table = both.table("t").await;
        let moment = |year| Value::DateTime(at(year, 1, 1, 0, 0, 0, 0));
        for (column, value, kind, code) in [
            ("j", Value::from("{not json"), ErrorKind::Refused, 3140),
            ("d", decimal("1000"), ErrorKind::InvalidValue, 1264),
            ("c", Value::from("four"), ErrorKind::InvalidValue, 1406),
            ("b", bytes(b"four"), ErrorKind::InvalidValue, 1406),
            ("s", Value::from("x".repeat(256)), ErrorKind::InvalidValue, 1406),
            ("ts", moment(1969), ErrorKind::InvalidValue, 1292),
            ("ts", moment(2039), ErrorKind::InvalidValue, 1292),
            ("y", Value::from(-1), ErrorKind::InvalidValue, 1264),
            ("y", Value::from(256), ErrorKind::InvalidValue, 1264),
        ] {
            let error = refused(table.insert(&[("id", Value::from(1)), (column, value)]).await, kind, code);
            assert!(error.message.contains(column), "{error}");
        }
        assert!(table.get(1).await.expect("read").is_none());
    });
    assert_eq!(both.run("SELECT * FROM t"), ["(empty)"]);
}

/// Members are written by text or by number, and read as numbers; an ENUM without a value has its first member.
#[test]
fn members_by_text_and_by_number() {
    let mut both = start();
    both.run("CREATE TABLE t (state ENUM('open', 'paid') PRIMARY KEY, flags SET('gift', 'new'), level ENUM('low', 'high') NOT NULL)");
    wait(async {
        let table = both.table("t").await;
        table.insert(&[("state", Value::from("PAID")), ("flags", Value::from("new,gift"))]).await.expect("inserted");
        table.insert(&[("state", Value::from(1)), ("level", Value::from("high"))]).await.expect("inserted");
        let row = table.get("paid").await.expect("read").expect("there");
        assert_eq!((row.get::<u16>("state"), row.get::<u64>("flags"), row.get::<u16>("level")), (Ok(2), Ok(3), Ok(1)));
        assert!(table.get(1).await.expect("read").is_some());
        for (column, value) in [("state", Value::from("lost")), ("state", Value::from(3)), ("flags", Value::from("x"))]
        {
            let values = [("state", Value::from("open")), (column, value)];
            refused(table.insert(&values[usize::from(column == "state")..]).await, ErrorKind::InvalidValue, 1265);
        }
    });
    assert_eq!(both.run("SELECT * FROM t ORDER BY state"), ["open | NULL | high", "paid | gift,new | low"]);
}

#[test]
fn a_mebibyte_both_ways() {
    let mut both = start();
    both.run("CREATE TABLE t (id INT PRIMARY KEY, data LONGBLOB, text MEDIUMTEXT)");
    let data: Vec<u8> = (0..1u32 << 20).map(|i| (i * 7 + (i >> 8)) as u8).collect();
    let text = "ä".repeat(1 << 19);
    both.sql.exec_drop("INSERT INTO t VALUES (1, ?, ?)", (&data, &text)).expect("inserted");
    wait(async {
        let table = both.table("t").await;
        let row = table.get(1).await.expect("read").expect("there");
        assert!(row.get::<Vec<u8>>("data") == Ok(data.clone()) && row.get::<String>("text") == Ok(text.clone()));
        let values = [("id", Value::from(2)), ("data", Value::from(data.clone())), ("text", Value::from(&text))];
        table.insert(&values).await.expect("inserted");
    });
    let (sent, words): (Vec<u8>, String) =
        both.sql.exec_first("SELECT data, text FROM t WHERE id = ?", (2,)).expect("read").expect("there");
    assert!(sent == data && words == text);
    assert_eq!(both.one("SELECT COUNT(DISTINCT MD5(data)), COUNT(DISTINCT text) FROM t"), "1 | 1");
}

#[test]
fn defaults_are_the_tables() {
    let mut both = start();
    both.run("SET time_zone = '+00:00'");
    both.run(
        "CREATE TABLE t (id INT PRIMARY KEY, n INT NOT NULL DEFAULT 7, s VARCHAR(10) DEFAULT 'seven', d DECIMAL(5,2) DEFAULT 1.5, e DATE DEFAULT '2020-02-02', \
         made TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP(6), changed DATETIME(6) NULL ON UPDATE CURRENT_TIMESTAMP(6), x INT, must INT NOT NULL)",
    );
    wait(async {
        let table = both.table("t").await;
        let error = refused(table.insert(&[("id", Value::from(1))]).await, ErrorKind::InvalidValue, 1364);
        assert!(error.message.contains("must"), "{error}");
        table.insert(&[("id", Value::from(1)), ("must", Value::from(1))]).await.expect("inserted");
    });
    both.run("INSERT INTO t (id, must) VALUES (2, 1)");
    let shown = |id| {
        format!("SELECT n, s, d, e, x, ABS(TIMESTAMPDIFF(SECOND, made, NOW())) < 60, changed FROM t WHERE id = {id}")
    };
    let (native, sql) = (both.one(&shown(1)), both.one(&shown(2)));
    assert_eq!(native, "7 | seven | 1.50 | 2020-02-02 | NULL | 1 | NULL");
    assert_eq!(native, sql);
    wait(async {
        let table = both.table("t").await;
        assert_eq!(table.update(1, &[("n", Value::from(8))]).await, Ok(true));
        table.write(&[("id", Value::from(2)), ("n", Value::from(8))]).await.expect("written");
        table.increment(2, "n", 1).await.expect("changed");
    });
    let touched = "SELECT COUNT(*) FROM t WHERE ABS(TIMESTAMPDIFF(SECOND, changed, NOW())) < 60";
    assert_eq!(both.one(touched), "2");
}

#[derive(Record, Clone, Debug, PartialEq)]
#[rauk(database = "d", table = "people")]
struct Person {
    #[rauk(key, auto_increment)]
    id: u32,
    #[rauk(length = 30, unique)]
    name: String,
    #[rauk(index)]
    born: Option<Date>,
    #[rauk(precision = 10, scale = 2)]
    wage: Decimal,
    active: bool,
    picture: Option<Vec<u8>>,
}

#[test]
fn a_table_made_from_a_struct_is_a_table_of_sql() {
    let mut both = start();
    wait(async {
        let people = both.client.open_or_create::<Person>().await.expect("made");
        let person = Person {
            id: 0,
            name: "Ada".into(),
            born: Some(Date::from_parts(1815, 12, 10)),
            wage: "10.5".parse().expect("a decimal"),
            active: true,
            picture: None,
        };
        assert_eq!(people.insert(&person).await, Ok(Some(1)));
    });
    let lines = both.run("SHOW COLUMNS FROM people");
    assert_eq!(
        lines,
        [
            "id | int unsigned | NO | PRI | NULL | auto_increment",
            "name | varchar(30) | NO | UNI | NULL | ",
            "born | date | YES | MUL | NULL | ",
            "wage | decimal(10,2) | NO |  | NULL | ",
            "active | tinyint(1) | NO |  | NULL | ",
            "picture | mediumblob | YES |  | NULL | ",
        ]
    );
    both.run("INSERT INTO people (name, wage, active) VALUES ('Bob', 1, FALSE)");
    assert_eq!(
        both.run("SELECT id, name, born, wage, active, picture FROM people ORDER BY id"),
        ["1 | Ada | 1815-12-10 | 10.50 | 1 | NULL", "2 | Bob | NULL | 1.00 | 0 | NULL",]
    );
    wait(async {
        let people = both.client.open::<Person>().await.expect("opened");
        let bob = people.get_by("name", "BOB").await.expect("read").expect("there");
        assert_eq!((bob.id, bob.born, bob.active), (2, None, false));
        let row = people.table().get(2u32).await.expect("read").expect("there");
        assert_eq!(names(&row), ["id", "name", "born", "wage", "active", "picture"]);
    });
}
