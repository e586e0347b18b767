//! Privileges on columns: every column that a statement reads or writes is asked for.

use super::{Server, Test, server};

fn shop() -> (Server, Test, Test) {
    let server = server();
    let mut root = server.session();
    for statement in [
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (id INT PRIMARY KEY, a INT, b INT, secret INT)",
        "INSERT INTO shop.t VALUES (1, 10, 100, 7), (2, 20, 200, 8)",
        "CREATE TABLE shop.u (id INT PRIMARY KEY, a INT)",
        "INSERT INTO shop.u VALUES (1, 10)",
        "CREATE USER app",
        "GRANT SELECT ON shop.u TO app",
        "GRANT SELECT (id, a), INSERT (id, b), UPDATE (b) ON shop.t TO app",
    ] {
        root.ok(statement);
    }
    let app = server.connect("app", "10.1.2.3").unwrap();
    (server, root, app)
}

fn denied(command: &str, column: &str) -> String {
    format!("{command} command denied to user 'app'@'10.1.2.3' for column '{column}' in table 't'")
}

#[test]
fn columns_are_read() {
    let (_server, mut root, mut app) = shop();
    // In the cache by another who may.
    for statement in ["SELECT id, a FROM shop.t WHERE id = 1", "SELECT b FROM shop.t WHERE id = 1"] {
        root.run(statement);
        root.run(statement);
    }
    app.expect("SELECT id, a FROM shop.t WHERE id = 1", &["1|10"]);
    app.ok("USE shop");
    let secret = denied("SELECT", "secret");
    let b = denied("SELECT", "b");
    app.error("SELECT b FROM shop.t WHERE id = 1", 1143, &b);
    app.error("SELECT * FROM t", 1143, &b);
    app.error("SELECT t.* FROM t", 1143, &b);
    app.expect("SELECT COUNT(*) FROM t", &["2"]);
    app.expect("SELECT 1 FROM t WHERE id = 1", &["1"]);
    for statement in [
        "SELECT id FROM t WHERE secret = 7",
        "SELECT id FROM t ORDER BY secret",
        "SELECT id FROM t GROUP BY id, secret",
        "SELECT COUNT(*) FROM t HAVING MAX(secret) = 8",
        "SELECT MAX(secret) OVER () FROM t",
        "SELECT x.id FROM u JOIN t x ON x.secret = u.a",
        "SELECT id FROM u WHERE EXISTS (SELECT 1 FROM t WHERE t.id = u.id AND t.secret = 7)",
        "SELECT d.s FROM (SELECT secret s FROM t) d",
        "WITH d AS (SELECT secret FROM t) SELECT 1 FROM d",
        "SELECT id FROM t WHERE (SELECT t.secret) = 7",
        "INSERT INTO t (id, b) SELECT id + 5, secret FROM t",
        "UPDATE t SET b = secret",
    ] {
        app.error(statement, 1143, &secret);
    }
    app.error("SELECT * FROM u JOIN t USING (id)", 1143, &b);
    app.expect("SELECT id FROM u NATURAL JOIN (SELECT id, a FROM t) t", &["1"]);
    // Its common columns may both be read.
    app.expect("SELECT 1 FROM u NATURAL JOIN t", &["1"]);
}

#[test]
fn columns_are_written() {
    let (_server, mut root, mut app) = shop();
    app.ok("USE shop");
    app.ok("INSERT INTO t (id, b) VALUES (3, 300)");
    app.error("INSERT INTO t (id, a) VALUES (4, 1)", 1143, &denied("INSERT", "a"));
    app.error("INSERT INTO t VALUES (4, 1, 1, 1)", 1143, &denied("INSERT", "a"));
    app.error("INSERT INTO t SET id = 4, secret = 1", 1143, &denied("INSERT", "secret"));
    app.ok("UPDATE t SET b = 301 WHERE id = 3");
    app.error("UPDATE t SET a = 1 WHERE id = 3", 1143, &denied("UPDATE", "a"));
    app.error("UPDATE t SET b = 1 WHERE secret = 3", 1143, &denied("SELECT", "secret"));
    app.error("UPDATE t SET b = b + 1", 1143, &denied("SELECT", "b"));
    app.ok("UPDATE t SET b = a + 1 WHERE id = 1");
    app.ok("UPDATE t JOIN u USING (id) SET t.b = u.a + 1");
    app.error("UPDATE t JOIN u USING (id) SET t.b = 1, t.secret = 1", 1143, &denied("UPDATE", "secret"));
    app.ok("INSERT INTO t (id, b) VALUES (3, 1) ON DUPLICATE KEY UPDATE b = 302");
    app.error(
        "INSERT INTO t (id, b) VALUES (3, 1) ON DUPLICATE KEY UPDATE secret = 302",
        1143,
        &denied("UPDATE", "secret"),
    );
    app.code("REPLACE INTO t (id, b) VALUES (3, 1)", 1142);
    app.code("DELETE FROM t WHERE id = 1", 1142);
    app.code("UPDATE u SET a = 1", 1142);
    app.code("SELECT a FROM t FOR UPDATE", 1142);
    root.expect("SELECT id, a, b FROM shop.t", &["1|10|11", "2|20|200", "3|NULL|302"]);
    root.code("GRANT SELECT (nothing) ON shop.t TO app", 1054);
    root.code("GRANT SELECT (a) ON shop.* TO app", 1144);
    root.code("GRANT DELETE (a) ON shop.t TO app", 1064);
}

/// What may not be read may not be copied either to where it may.
#[test]
fn hidden_columns_are_not_copied() {
    let (server, mut root, _) = shop();
    root.ok("CREATE USER copier");
    root.ok("GRANT SELECT (id, b), INSERT, UPDATE ON shop.t TO copier");
    let mut copier = server.connect("copier", "10.1.2.3").unwrap();
    copier.ok("USE shop");
    let statements = [
        "UPDATE t SET b = secret",
        "UPDATE t SET b = (SELECT t.secret)",
        "INSERT INTO t (id) VALUES (1) ON DUPLICATE KEY UPDATE b = secret",
        "UPDATE t JOIN u USING (id) SET t.b = t.secret",
    ];
    for statement in statements {
        // By another, whose plan may be in the cache.
        root.ok("START TRANSACTION");
        root.ok("USE shop");
        root.ok(statement);
        root.ok("ROLLBACK");
        let error = copier.collect(statement).1.unwrap_err();
        assert!(matches!(error.code, 1142 | 1143), "{statement}: {error}");
    }
    copier.ok("UPDATE t SET b = b + 1");
    copier.ok("UPDATE t SET secret = 5");
    root.ok("REVOKE SELECT ON t FROM copier");
    copier.code("UPDATE t SET b = b + 1", 1143);
    copier.ok("UPDATE t SET secret = 5");
    root.expect("SELECT id, b, secret FROM t", &["1|101|5", "2|201|5"]);
}

#[test]
fn they_are_shown_and_revoked() {
    let (server, mut root, mut app) = shop();
    let lines = [
        "GRANT USAGE ON *.* TO `app`@`%`",
        "GRANT SELECT (`a`, `id`), INSERT (`b`, `id`), UPDATE (`b`) ON `shop`.`t` TO `app`@`%`",
        "GRANT SELECT ON `shop`.`u` TO `app`@`%`",
    ];
    app.expect("SHOW GRANTS", &lines);
    app.expect(
        "SELECT COLUMN_NAME, PRIVILEGE_TYPE FROM information_schema.COLUMN_PRIVILEGES",
        &["a|SELECT", "b|INSERT", "b|UPDATE", "id|SELECT", "id|INSERT"],
    );
    app.expect(
        "SELECT COLUMN_NAME, PRIVILEGES FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'shop' AND TABLE_NAME = 't'",
        &["id|select,insert", "a|select", "b|insert,update"],
    );
    root.expect(
        "SELECT Column_name, Column_priv FROM mysql.columns_priv",
        &["a|Select", "b|Insert,Update", "id|Select,Insert"],
    );
    app.expect("SELECT a FROM shop.t WHERE id = 1", &["10"]);
    root.error(
        "REVOKE SELECT (secret) ON shop.t FROM app",
        1147,
        "There is no such grant defined for user 'app' on host '%' on table 't'",
    );
    root.ok("REVOKE SELECT (a) ON shop.t FROM app");
    app.error("SELECT a FROM shop.t WHERE id = 1", 1143, &denied("SELECT", "a"));
    app.expect("SELECT id FROM shop.t WHERE id = 1", &["1"]);
    // Of the table: of all its columns.
    root.ok("REVOKE SELECT ON shop.t FROM app");
    app.code("SELECT id FROM shop.t WHERE id = 1", 1142);
    root.ok("REVOKE ALL ON shop.t FROM app");
    app.code("SELECT COUNT(*) FROM shop.t", 1142);
    app.expect("SHOW GRANTS", &[lines[0], lines[2]]);
    // By a role.
    root.ok("CREATE ROLE clerk");
    root.ok("GRANT SELECT (b) ON shop.t TO clerk");
    root.ok("GRANT clerk TO app");
    app.ok("SET ROLE clerk");
    app.expect("SELECT b FROM shop.t ORDER BY b", &["100", "200"]);
    app.code("SELECT a FROM shop.t", 1143);
    root.ok("GRANT ALL ON shop.t TO app WITH GRANT OPTION");
    app.ok("GRANT UPDATE (a) ON shop.t TO clerk");
    drop(server);
}

#[test]
fn views_hide_columns() {
    let (server, mut root, mut app) = shop();
    root.ok("CREATE VIEW shop.all_of_it AS SELECT * FROM shop.t");
    root.ok("GRANT SELECT (id, secret) ON shop.all_of_it TO app");
    app.expect("SELECT secret FROM shop.all_of_it WHERE id = 1", &["7"]);
    app.error(
        "SELECT a FROM shop.all_of_it",
        1143,
        "SELECT command denied to user 'app'@'10.1.2.3' for column 'a' in table 'all_of_it'",
    );
    // A view of the account's own reads what the account may.
    root.ok("GRANT CREATE VIEW ON test.* TO app");
    root.ok("CREATE USER other");
    root.ok("GRANT SELECT ON test.* TO other");
    app.code("CREATE VIEW test.v AS SELECT secret FROM shop.t", 1143);
    app.ok("CREATE VIEW test.v AS SELECT a FROM shop.t");
    let mut other = server.connect("other", "10.1.2.3").unwrap();
    other.expect("SELECT COUNT(*), MAX(a) FROM test.v", &["2|20"]);
    root.ok("REVOKE SELECT (a) ON shop.t FROM app");
    other.code("SELECT COUNT(*), MAX(a) FROM test.v", 1356);
    // Foreign keys take REFERENCES on the columns that they name.
    root.ok("GRANT CREATE ON test.* TO app");
    app.code("CREATE TABLE test.child (p INT, FOREIGN KEY (p) REFERENCES shop.t (id))", 1142);
    root.ok("GRANT REFERENCES (id) ON shop.t TO app");
    app.ok("CREATE TABLE test.child (p INT, FOREIGN KEY (p) REFERENCES shop.t (id))");
}
