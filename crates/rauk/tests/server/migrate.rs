//! `rauk import mysql://…`, dumps and `--check`, from a MariaDB that the test starts.

use crate::common::mariadb::MariaDb;
use crate::common::{Rauk, connect_to, run};
use mysql::Conn;
use mysql::prelude::Queryable;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const SCHEMA: &[&str] = &[
    "SET NAMES utf8mb4, sql_mode = 'NO_ENGINE_SUBSTITUTION', time_zone = '+00:00'",
    "CREATE DATABASE shop CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
    "USE shop",
    "CREATE TABLE `order` (id INT AUTO_INCREMENT PRIMARY KEY, customer INT NOT NULL, placed DATETIME(6) DEFAULT NULL, \
     total DECIMAL(12,2) NOT NULL DEFAULT 0.00, KEY (customer), KEY (placed, total)) ENGINE=InnoDB COMMENT='orders of all'",
    "CREATE TABLE customer (id INT PRIMARY KEY, name VARCHAR(80) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci NOT NULL, \
     note TEXT CHARACTER SET latin1, UNIQUE KEY by_name (name))",
    "ALTER TABLE `order` ADD CONSTRAINT of_customer FOREIGN KEY (customer) REFERENCES customer (id) ON DELETE CASCADE",
    "CREATE TABLE kinds (a BIGINT UNSIGNED, f FLOAT, x DOUBLE, d DATE, t TIME(2), ts TIMESTAMP(3) NULL, y YEAR, \
     e ENUM('a','b') , s SET('x','y','z'), bits BIT(9), b VARBINARY(20), l LONGBLOB, c CHAR(5), tt MEDIUMTEXT, \
     g POINT, j JSON, n DECIMAL(40,20), made BIGINT AS (y + 1) VIRTUAL, kept BIGINT AS (y * 2) STORED)",
    "CREATE TABLE many (id BIGINT PRIMARY KEY, v VARCHAR(30))",
    "CREATE VIEW a_view AS SELECT name, total FROM z_view WHERE total > 1",
    "CREATE OR REPLACE VIEW z_view AS SELECT c.name, o.total FROM customer c JOIN `order` o ON o.customer = c.id",
    "INSERT INTO customer VALUES (1, 'Ada ''é'' \\\\ 𝄞', 'naïve'), (2, 'line\\nbreak\\0', NULL), (3, '', '')",
    "INSERT INTO `order` (customer, placed, total) VALUES (1, '2026-11-29 01:02:03.000004', 12.50), (1, NULL, 0), (3, '0000-00-00', -1)",
    "INSERT INTO kinds (a) VALUES (NULL)",
    "INSERT INTO kinds (a, f, x, d, t, ts, y, e, s, bits, b, l, c, tt, g, j, n) VALUES (18446744073709551615, 0.1234567, 1.0e-300, \
     '0000-00-00', '-838:59:59', '2026-11-29 01:02:03.456', 2026, 'b', 'x,z', b'100000001', x'00ff27', REPEAT('\\0', 70000), 'ab', \
     REPEAT('ä', 70000), ST_GeomFromText('POINT(1 2)'), '{\"a\": [1, null]}', '-12345678901234567890.01234567890123456789')",
    "INSERT INTO many SELECT seq * 3, CONCAT('row ', seq) FROM seq_1_to_150000",
    "ANALYZE TABLE many",
];

fn execute(client: &mut Conn, statements: &[&str]) {
    for sql in statements {
        client.query_drop(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

fn import(rauk: &Rauk, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rauk"));
    command.args(["import", "-P", &rauk.port.to_string()]).args(arguments).env_remove("MYSQL_PWD");
    command.stdin(Stdio::null()).output().expect("rauk runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The same rows, in the same order, as text.
fn compare(theirs: &mut Conn, ours: &mut Conn, tables: &[(&str, &str)]) {
    for (table, columns) in tables {
        let query = format!("SELECT {columns} FROM {table} ORDER BY 1");
        let (their_rows, our_rows) = (run(theirs, &query), run(ours, &query));
        assert_eq!(their_rows.len(), our_rows.len(), "{table}: {:?}", our_rows.first());
        for (theirs, ours) in their_rows.iter().zip(&our_rows) {
            assert_eq!(theirs, ours, "{table}");
        }
        assert!(!our_rows.is_empty() && !our_rows[0].starts_with("error"), "{table}: {:?}", our_rows[0]);
    }
}

const COMPARED: &[(&str, &str)] = &[
    ("shop.`order`", "id, customer, placed, total"),
    ("shop.customer", "id, name, HEX(note)"),
    (
        "shop.kinds",
        "a, f * 1e0, x, d, t, ts, y, e, s, bits + 0, HEX(b), MD5(l), c, MD5(CONVERT(tt USING utf8mb4)), ST_AsText(g), j, n, made, kept",
    ),
    ("shop.many", "id, v"),
    ("shop.a_view", "name, total"),
];

#[test]
fn databases_of_another_server_come_over() {
    let theirs = MariaDb::start();
    let mut source = connect_to(theirs.port).expect("root may");
    // The first view reads one that is made after it.
    execute(&mut source, &SCHEMA[..3]);
    execute(
        &mut source,
        &["CREATE TABLE early (name VARCHAR(80), total DECIMAL(12,2))", "CREATE VIEW z_view AS SELECT * FROM early"],
    );
    execute(&mut source, &SCHEMA[3..]);
    execute(
        &mut source,
        &[
            "DROP TABLE early",
            "CREATE DATABASE other",
            "CREATE TABLE other.u (id INT PRIMARY KEY, u UUID)",
            "CREATE TABLE other.fine (id INT PRIMARY KEY)",
            "INSERT INTO other.fine VALUES (7)",
            "USE shop",
            "CREATE TRIGGER counts BEFORE INSERT ON many FOR EACH ROW SET NEW.v = UPPER(NEW.v)",
            "CREATE PROCEDURE twice(IN n INT) BEGIN SELECT n * 2; SELECT n; END",
            "CREATE EVENT cleaning ON SCHEDULE EVERY 1 DAY DO DELETE FROM many WHERE id < 0",
            "CREATE USER 'seller'@'%' IDENTIFIED BY 'secret'",
            "GRANT SELECT, INSERT ON shop.* TO 'seller'@'%'",
        ],
    );
    let data = tempfile::tempdir().expect("a directory");
    let rauk = Rauk::start(data.path());
    let mut client = rauk.connect();
    client.query_drop("SET NAMES utf8mb4, time_zone = '+00:00'").expect("set");
    let whole = format!("mysql://root@127.0.0.1:{}", theirs.port);
    let shop = format!("{whole}/shop");

    // What is not taken is known before anything comes.
    let checked = import(&rauk, &["--check", &whole]);
    let said = text(&checked.stdout);
    assert_eq!(checked.status.code(), Some(1), "{said}{}", text(&checked.stderr));
    for part in [
        "trigger shop.counts",
        "procedure shop.twice",
        "event shop.cleaning",
        "table other.u",
        "checked: 6 tables, 2 views",
    ] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    assert!(!said.contains("shop.many") && !said.contains("view shop"), "{said}");
    assert_eq!(
        run(&mut client, "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME IN ('shop', 'other')"),
        ["0"]
    );

    let taken = import(&rauk, &[&whole, "--users", "--threads", "3"]);
    let (said, complained) = (text(&taken.stdout), text(&taken.stderr));
    assert!(said.contains("5 of 6 tables, 150 009 rows"), "{said}{complained}");
    assert_eq!(taken.status.code(), Some(1), "what is not taken is no success: {complained}");
    for part in
        ["table other.u", "trigger shop.counts", "procedure shop.twice", "event shop.cleaning", "things are not taken"]
    {
        assert!(complained.contains(part), "{part} is not in {complained}");
    }
    compare(&mut source, &mut client, COMPARED);
    assert_eq!(run(&mut client, "SELECT id FROM other.fine"), ["7"]);
    let keys =
        "SELECT CONSTRAINT_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = 'shop'";
    assert_eq!(run(&mut client, keys), ["of_customer"]);
    let options = mysql::OptsBuilder::new().ip_or_hostname(Some("127.0.0.1")).tcp_port(rauk.port).prefer_socket(false);
    let mut seller = Conn::new(options.user(Some("seller")).pass(Some("secret"))).expect("with the same password");
    assert_eq!(run(&mut seller, "SELECT COUNT(*) FROM shop.many"), ["150000"]);
    assert_eq!(run(&mut seller, "DELETE FROM shop.many"), ["error 1142"]);

    // Nothing is written over.
    let again = import(&rauk, &[&shop]);
    assert!(text(&again.stderr).contains("exist here already"), "{again:?}");
    let none = import(&rauk, &[&format!("{whole}/none")]);
    assert!(text(&none.stderr).contains("there is no database 'none'"), "{none:?}");

    // The same by a dump.
    execute(&mut client, &["DROP DATABASE shop", "DROP DATABASE other"]);
    dump_and_compare(&theirs, &mut source, &rauk, &mut client);
}

fn dump_and_compare(theirs: &MariaDb, source: &mut Conn, rauk: &Rauk, client: &mut Conn) {
    let files = tempfile::tempdir().expect("a directory");
    let dump = |name: &str, arguments: &[&str]| {
        let path = files.path().join(name);
        let mut command = Command::new("mariadb-dump");
        command.args(["--no-defaults", "-h", "127.0.0.1", "-P", &theirs.port.to_string(), "-u", "root", "--skip-ssl"]);
        let output = command.args(arguments).arg("-r").arg(&path).output().expect("mariadb-dump runs");
        assert!(output.status.success(), "{output:?}");
        path
    };
    let checked = |path: &Path| {
        let output = import(rauk, &["--check", &path.display().to_string()]);
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    let all = dump("all.sql", &["--routines", "--events", "--databases", "shop", "other"]);
    let (code, said) = checked(&all);
    assert_eq!(code, Some(1), "{said}");
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("all.sql:")).collect();
    assert!(
        lines.iter().any(|l| l.contains("`u`")) && said.contains("TRIGGER") && said.contains("PROCEDURE"),
        "{said}"
    );
    assert!(lines.len() <= 6, "each cause once: {said}");

    let shop = dump("shop.sql", &["--skip-triggers", "--databases", "shop"]);
    let (code, said) = checked(&shop);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(run(client, "SHOW DATABASES LIKE 'shop'"), ["(empty)"]);
    let output = import(rauk, &[&shop.display().to_string()]);
    assert!(output.status.success(), "{output:?}");
    compare(source, client, &COMPARED[..2]);
    compare(source, client, &COMPARED[3..]);

    // A statement that is not taken ends it, with its line.
    let wrong = files.path().join("wrong.sql");
    std::fs::write(
        &wrong,
        "CREATE DATABASE e;\n-- a comment\nUSE e;\nCREATE TABLE t (id INT);\n\nCREATE TABLE u (id UUID);\n",
    )
    .expect("written");
    let output = import(rauk, &[&wrong.display().to_string()]);
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("wrong.sql:6: ERROR 1235"), "{said}");
}
