//! A wrong name is answered with the nearest right one, and with nothing that its user may not see.

use super::server;

#[test]
fn a_wrong_name_is_answered_with_the_nearest() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR(20), email VARCHAR(20))");
    t.ok("CREATE VIEW recent AS SELECT id, name FROM customers");
    for (sql, code, message) in [
        ("SELECT nmae FROM customers", 1054, "Unknown column 'nmae' in 'field list'; did you mean 'name'?"),
        ("SELECT c.emial FROM customers c", 1054, "Unknown column 'c.emial' in 'field list'; did you mean 'email'?"),
        (
            "SELECT id FROM customers WHERE nam = 1",
            1054,
            "Unknown column 'nam' in 'where clause'; did you mean 'name'?",
        ),
        (
            "SELECT id AS number FROM customers ORDER BY nubmer",
            1054,
            "Unknown column 'nubmer' in 'order clause'; did you mean 'number'?",
        ),
        (
            "SELECT 1 FROM customers c WHERE EXISTS (SELECT c.naem)",
            1054,
            "Unknown column 'c.naem' in 'field list'; did you mean 'name'?",
        ),
        (
            "INSERT INTO customers (id, nmae) VALUES (1, 'a')",
            1054,
            "Unknown column 'nmae' in 'field list'; did you mean 'name'?",
        ),
        ("UPDATE customers SET emial = 'a'", 1054, "Unknown column 'emial' in 'field list'; did you mean 'email'?"),
        ("SELECT * FROM custommers", 1146, "Table 'test.custommers' doesn't exist; did you mean 'customers'?"),
        ("SELECT * FROM Customers", 1146, "Table 'test.Customers' doesn't exist; did you mean 'customers'?"),
        ("DELETE FROM recnet", 1146, "Table 'test.recnet' doesn't exist; did you mean 'recent'?"),
        ("SELECT CONCTA('a', 'b')", 1305, "FUNCTION CONCTA does not exist; did you mean 'CONCAT'?"),
        ("SELECT @@sql_mdoe", 1193, "Unknown system variable 'sql_mdoe'; did you mean 'sql_mode'?"),
        ("SET GLOBAL wait_timout = 1", 1193, "Unknown system variable 'wait_timout'; did you mean 'wait_timeout'?"),
        // Nothing is near.
        ("SELECT altogether_else FROM customers", 1054, "Unknown column 'altogether_else' in 'field list'"),
        ("SELECT * FROM x", 1146, "Table 'test.x' doesn't exist"),
    ] {
        t.error(sql, code, message);
    }
}

#[test]
fn names_that_may_not_be_seen_are_not_told() {
    let server = server();
    let mut root = server.session();
    root.ok("CREATE TABLE secrets (id INT PRIMARY KEY, salary INT)");
    root.ok("CREATE TABLE open (id INT PRIMARY KEY, name INT)");
    root.ok("CREATE USER app");
    root.ok("GRANT SELECT (id) ON test.secrets TO app");
    root.ok("GRANT SELECT ON test.open TO app");
    let mut app = server.connect("app", "10.1.2.3").unwrap();
    app.error("SELECT salaries FROM test.secrets", 1054, "Unknown column 'salaries' in 'field list'");
    app.error("SELECT nmae FROM test.open", 1054, "Unknown column 'nmae' in 'field list'; did you mean 'name'?");
    app.code("SELECT * FROM test.secerts", 1142);
    // Whoever may read the whole database is told of its tables.
    root.ok("GRANT SELECT ON test.* TO app");
    app.error("SELECT * FROM test.secerts", 1146, "Table 'test.secerts' doesn't exist; did you mean 'secrets'?");
}
