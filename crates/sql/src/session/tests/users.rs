//! Accounts and privileges.

use super::{server, server_on};
use crate::session::collect::Collector;
use rauk_log::MemoryDisk;

#[test]
fn accounts() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE USER app IDENTIFIED BY 'secret', 'old'@'10.0.%' IDENTIFIED WITH mysql_native_password BY 'password'");
    let account = server.engine.account("app", "192.168.1.1".parse().unwrap()).unwrap();
    assert_eq!((account.host.as_str(), account.plugin.as_str()), ("%", "caching_sha2_password"));
    assert!(account.hash.starts_with("$A$005$") && account.hash.len() == 70);
    let account = server.engine.account("old", "10.0.0.1".parse().unwrap()).unwrap();
    assert_eq!(account.hash, "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19");
    assert!(server.engine.account("old", "10.1.0.1".parse().unwrap()).is_none());
    assert!(server.engine.account("root", "10.0.0.1".parse().unwrap()).is_none());
    assert_eq!(server.engine.account("root", "127.0.0.1".parse().unwrap()).unwrap().hash, "");
    t.error("CREATE USER app", 1396, "Operation CREATE USER failed for 'app'@'%'");
    t.ok("CREATE USER IF NOT EXISTS app");
    t.expect("SHOW WARNINGS", &["Note|3163|Authorization ID 'app'@'%' already exists."]);
    t.ok("ALTER USER app IDENTIFIED WITH mysql_native_password BY 'password'");
    t.expect(
        "SHOW CREATE USER app",
        &["CREATE USER `app`@`%` IDENTIFIED WITH 'mysql_native_password' AS '*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19' REQUIRE NONE PASSWORD EXPIRE DEFAULT ACCOUNT UNLOCK PASSWORD HISTORY DEFAULT PASSWORD REUSE INTERVAL DEFAULT PASSWORD REQUIRE CURRENT DEFAULT"],
    );
    t.ok("SET PASSWORD FOR app = ''");
    assert_eq!(server.engine.account("app", "127.0.0.1".parse().unwrap()).unwrap().hash, "");
    t.ok("DROP USER app");
    t.error("DROP USER app", 1396, "Operation DROP USER failed for 'app'@'%'");
    t.ok("DROP USER IF EXISTS app");
    t.code("CREATE USER u IDENTIFIED WITH nonsense BY 'x'", 1524);
    t.code("GRANT SELECT ON *.* TO nobody", 1410);
}

#[test]
fn privileges_are_checked() {
    let server = server();
    let mut root = server.session();
    root.ok("CREATE DATABASE shop");
    root.ok("CREATE TABLE shop.t (id INT PRIMARY KEY, n INT)");
    root.ok("CREATE TABLE test.hidden (id INT PRIMARY KEY)");
    root.ok("CREATE USER app");
    let mut app = server.connect("app", "10.1.2.3").unwrap();
    app.expect("SHOW GRANTS", &["GRANT USAGE ON *.* TO `app`@`%`"]);
    app.expect("SHOW DATABASES", &["information_schema", "performance_schema"]);
    app.error("USE shop", 1044, "Access denied for user 'app'@'%' to database 'shop'");
    app.error("SELECT * FROM shop.t", 1142, "SELECT command denied to user 'app'@'10.1.2.3' for table 't'");
    app.code("CREATE DATABASE x", 1044);
    app.code("CREATE USER x", 1227);
    app.error(
        "SET GLOBAL wait_timeout = 1",
        1227,
        "Access denied; you need (at least one of) the SUPER or SYSTEM_VARIABLES_ADMIN privilege(s) for this operation",
    );
    root.ok("GRANT SELECT, INSERT ON shop.* TO app");
    app.ok("USE shop");
    app.ok("INSERT INTO t VALUES (1, 1)");
    app.expect("SELECT * FROM t", &["1|1"]);
    app.error("UPDATE t SET n = 2", 1142, "UPDATE command denied to user 'app'@'10.1.2.3' for table 't'");
    app.error("DROP TABLE t", 1142, "DROP command denied to user 'app'@'10.1.2.3' for table 't'");
    app.code("SELECT * FROM mysql.user", 1142);
    app.code("SELECT * FROM rauk.memory", 1142);
    app.expect("SHOW DATABASES", &["information_schema", "performance_schema", "shop"]);
    app.expect(
        "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.tables WHERE TABLE_TYPE = 'BASE TABLE'",
        &["shop|t"],
    );
    app.expect("SHOW GRANTS", &["GRANT USAGE ON *.* TO `app`@`%`", "GRANT SELECT, INSERT ON `shop`.* TO `app`@`%`"]);
    root.error("REVOKE SELECT ON test.* FROM app", 1141, "There is no such grant defined for user 'app' on host '%'");
    root.ok("REVOKE SELECT ON shop.* FROM app");
    // The plan is in the cache, and yet the privilege is gone.
    app.code("SELECT * FROM t", 1142);
    app.code("GRANT INSERT ON shop.* TO app", 1044);
    root.ok("GRANT UPDATE, SELECT ON shop.t TO app");
    app.ok("UPDATE t SET n = 2 WHERE id = 1");
    root.ok("GRANT ALL ON shop.* TO app WITH GRANT OPTION");
    app.ok("DROP TABLE t");
    app.ok("GRANT INSERT ON shop.* TO app");
    root.ok("REVOKE ALL PRIVILEGES, GRANT OPTION FROM app");
    app.expect("SHOW GRANTS", &["GRANT USAGE ON *.* TO `app`@`%`"]);
    assert!(server.connect("stranger", "10.1.2.3").is_err());
    // Others' statements cannot be seen or ended.
    let id = root.session.process.id;
    app.error(&format!("KILL {id}"), 1095, &format!("You are not owner of thread {id}"));
    assert_eq!(app.run("SHOW PROCESSLIST").lines().count(), 1);
    assert_eq!(root.run("SHOW PROCESSLIST").lines().count(), 2);
}

#[test]
fn accounts_outlive_the_server() {
    let disk = MemoryDisk::new();
    {
        let server = server_on(disk.clone());
        let mut t = server.session();
        t.ok("CREATE USER app@localhost IDENTIFIED BY 'x'");
        t.ok("GRANT SELECT ON test.* TO app@localhost");
        t.ok("DROP USER root@localhost");
        rauk_node::block_on(server.engine.database.shutdown()).unwrap();
    }
    let server = server_on(disk);
    assert!(server.engine.account("root", "127.0.0.1".parse().unwrap()).is_none());
    let mut app = server.connect("app", "127.0.0.1").unwrap();
    app.ok("USE test");
}

#[test]
fn too_many_connections() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE USER app");
    t.ok("SET GLOBAL max_connections = 2");
    let _second = server.connect("app", "10.0.0.1").unwrap();
    let Err(error) = server.connect("app", "10.0.0.1") else { panic!("a third connection") };
    assert_eq!((error.code, error.message.as_str()), (1040, "Too many connections"));
    // One place is kept for who may end the others.
    let root = server.session();
    drop(root);
    drop(t);
    let mut sink = Collector::default();
    let mut third = server.connect("app", "10.0.0.1").unwrap();
    rauk_node::block_on(third.session.query("SELECT 1", &mut sink)).unwrap();
}
