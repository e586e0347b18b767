//! Roles: which statements give them, and what sessions may do with them.

use super::{Server, server, server_on};
use rauk_log::MemoryDisk;

fn shop() -> Server {
    let server = server();
    let mut root = server.session();
    for statement in [
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (id INT PRIMARY KEY, n INT)",
        "INSERT INTO shop.t VALUES (1, 10)",
        "CREATE ROLE reader, writer, boss",
        "GRANT SELECT ON shop.* TO reader",
        "GRANT INSERT, UPDATE ON shop.t TO writer",
        "GRANT reader, writer TO boss",
        "CREATE USER app",
    ] {
        root.ok(statement);
    }
    server
}

#[test]
fn active_roles_give_their_privileges() {
    let server = shop();
    let mut root = server.session();
    root.ok("GRANT boss, reader TO app");
    let mut app = server.connect("app", "10.1.2.3").unwrap();
    app.expect("SELECT CURRENT_ROLE()", &["NONE"]);
    app.code("SELECT * FROM shop.t", 1142);
    app.code("USE shop", 1044);
    app.ok("SET ROLE reader");
    app.expect("SELECT CURRENT_ROLE()", &["`reader`@`%`"]);
    app.expect("SELECT * FROM shop.t", &["1|10"]);
    app.code("INSERT INTO shop.t VALUES (2, 20)", 1142);
    // What a role leads to is active with it.
    app.ok("SET ROLE boss");
    app.ok("INSERT INTO shop.t VALUES (2, 20)");
    app.expect("SELECT COUNT(*) FROM shop.t", &["2"]);
    app.ok("SET ROLE ALL EXCEPT boss");
    app.expect("SELECT CURRENT_ROLE()", &["`reader`@`%`"]);
    app.code("UPDATE shop.t SET n = 1", 1142);
    app.ok("SET ROLE ALL");
    app.expect("SELECT CURRENT_ROLE()", &["`boss`@`%`,`reader`@`%`"]);
    app.ok("SET ROLE NONE");
    app.code("SELECT * FROM shop.t", 1142);
    // Granted to a role of the account's, but not to the account.
    app.error("SET ROLE writer", 3530, "`writer`@`%` is not granted to `app`@`%`");
    app.error("SET ROLE nobody", 3530, "`nobody`@`%` is not granted to `app`@`%`");
    app.expect("SELECT CURRENT_ROLE()", &["NONE"]);
}

#[test]
fn changes_reach_open_sessions() {
    let server = shop();
    let mut root = server.session();
    root.ok("GRANT boss TO app");
    let mut app = server.connect("app", "10.1.2.3").unwrap();
    app.ok("SET ROLE boss");
    app.expect("SELECT n FROM shop.t", &["10"]);
    root.ok("REVOKE SELECT ON shop.* FROM reader");
    app.code("SELECT n FROM shop.t", 1142);
    root.ok("GRANT SELECT ON shop.* TO reader");
    app.expect("SELECT n FROM shop.t", &["10"]);
    root.ok("REVOKE reader FROM boss");
    app.code("SELECT n FROM shop.t", 1142);
    root.ok("GRANT reader TO boss");
    app.expect("SELECT n FROM shop.t", &["10"]);
    root.ok("DROP ROLE boss");
    app.code("SELECT n FROM shop.t", 1142);
    app.expect("SELECT CURRENT_ROLE()", &["NONE"]);
    // A role of the same name is another one.
    root.ok("CREATE ROLE boss");
    root.ok("GRANT SELECT ON shop.* TO boss");
    app.code("SET ROLE boss", 3530);
    app.code("SELECT n FROM shop.t", 1142);
}

#[test]
fn default_roles() {
    let server = shop();
    let mut root = server.session();
    root.error("SET DEFAULT ROLE reader TO app", 3530, "`reader`@`%` is not granted to `app`@`%`");
    root.ok("GRANT reader, writer TO app");
    root.ok("SET DEFAULT ROLE reader TO app");
    let mut app = server.connect("app", "10.1.2.3").unwrap();
    app.expect("SELECT CURRENT_ROLE()", &["`reader`@`%`"]);
    app.ok("USE shop");
    app.ok("SET ROLE writer");
    app.ok("SET ROLE DEFAULT");
    app.expect("SELECT CURRENT_ROLE()", &["`reader`@`%`"]);
    app.ok("SET DEFAULT ROLE ALL TO CURRENT_USER");
    app.expect("SELECT CURRENT_ROLE()", &["`reader`@`%`"]);
    app.code("SET DEFAULT ROLE NONE TO root@localhost", 1227);
    rauk_node::block_on(app.session.reset());
    app.expect("SELECT CURRENT_ROLE()", &["`reader`@`%`,`writer`@`%`"]);
    root.ok("ALTER USER app DEFAULT ROLE NONE");
    let mut app = server.connect("app", "10.1.2.3").unwrap();
    app.expect("SELECT CURRENT_ROLE()", &["NONE"]);
    root.ok("SET GLOBAL activate_all_roles_on_login = ON");
    let mut app = server.connect("app", "10.1.2.3").unwrap();
    app.expect("SELECT CURRENT_ROLE()", &["`reader`@`%`,`writer`@`%`"]);
    app.ok("SET ROLE DEFAULT");
    app.expect("SELECT CURRENT_ROLE()", &["NONE"]);
    root.ok("SET GLOBAL activate_all_roles_on_login = OFF");
    root.ok("CREATE USER other DEFAULT ROLE writer, reader");
    root.expect(
        "SHOW GRANTS FOR other",
        &["GRANT USAGE ON *.* TO `other`@`%`", "GRANT `reader`@`%`,`writer`@`%` TO `other`@`%`"],
    );
    let mut other = server.connect("other", "10.1.2.3").unwrap();
    other.expect("SELECT CURRENT_ROLE()", &["`reader`@`%`,`writer`@`%`"]);
    root.code("CREATE USER third DEFAULT ROLE nobody", 3523);
    assert!(server.connect("third", "10.1.2.3").is_err());
    root.ok("REVOKE writer FROM other");
    root.expect("SELECT * FROM mysql.default_roles", &["%|other|%|reader"]);
}

#[test]
fn mandatory_roles() {
    let server = shop();
    let mut root = server.session();
    let mut app = server.connect("app", "10.1.2.3").unwrap();
    app.code("SET ROLE reader", 3530);
    root.error(
        "SET GLOBAL mandatory_roles = 'reader,,'",
        1231,
        "Variable 'mandatory_roles' can't be set to the value of 'reader,,'",
    );
    root.ok("SET GLOBAL mandatory_roles = '`reader`@`%`, nobody'");
    app.ok("SET ROLE ALL");
    app.expect("SELECT CURRENT_ROLE()", &["`reader`@`%`"]);
    app.expect("SELECT n FROM shop.t", &["10"]);
    app.expect(
        "SHOW GRANTS FOR CURRENT_USER()",
        &[
            "GRANT USAGE ON *.* TO `app`@`%`",
            "GRANT SELECT ON `shop`.* TO `app`@`%`",
            "GRANT `reader`@`%` TO `app`@`%`",
        ],
    );
    let kept = "The role `reader`@`%` is a mandatory role and can't be revoked or dropped. The restriction can be lifted by excluding the role identifier from the global variable mandatory_roles.";
    root.error("DROP ROLE reader", 3628, kept);
    root.error("REVOKE reader FROM boss", 3628, kept);
    root.ok("SET GLOBAL mandatory_roles = ''");
    app.code("SELECT n FROM shop.t", 1142);
    root.ok("DROP ROLE reader");
    root.ok("GRANT SYSTEM_VARIABLES_ADMIN ON *.* TO app");
    app.code("SET GLOBAL mandatory_roles = 'writer'", 1227);
    root.ok("GRANT ROLE_ADMIN ON *.* TO app");
    app.ok("SET GLOBAL mandatory_roles = 'writer'");
}

#[test]
fn rights_to_roles() {
    let server = shop();
    let mut root = server.session();
    root.ok("CREATE USER other");
    let mut app = server.connect("app", "10.1.2.3").unwrap();
    let needed =
        "Access denied; you need (at least one of) the WITH ADMIN, ROLE_ADMIN, SUPER privilege(s) for this operation";
    app.error("GRANT reader TO app", 1227, needed);
    app.error("REVOKE reader FROM boss", 1227, needed);
    app.code("CREATE ROLE mine", 1227);
    app.code("DROP ROLE reader", 1227);
    root.ok("GRANT reader TO app WITH ADMIN OPTION");
    app.ok("GRANT reader TO other");
    app.error("GRANT reader, writer TO other", 1227, needed);
    app.ok("REVOKE reader FROM other");
    root.expect(
        "SHOW GRANTS FOR app",
        &["GRANT USAGE ON *.* TO `app`@`%`", "GRANT `reader`@`%` TO `app`@`%` WITH ADMIN OPTION"],
    );
    root.ok("GRANT CREATE ROLE, DROP ROLE ON *.* TO app");
    app.ok("CREATE ROLE mine");
    app.code("DROP ROLE other", 1227);
    app.ok("DROP ROLE mine");
    // A role cannot log in, until it is made a user.
    assert!(server.engine.account("reader", "127.0.0.1".parse().unwrap()).unwrap().locked);
    root.ok("ALTER USER reader ACCOUNT UNLOCK");
    assert!(!server.engine.account("reader", "127.0.0.1".parse().unwrap()).unwrap().locked);
    app.code("DROP ROLE reader", 1227);
}

#[test]
fn mistakes() {
    let server = shop();
    let mut root = server.session();
    root.error("CREATE ROLE reader, fresh", 1396, "Operation CREATE ROLE failed for 'reader'@'%'");
    root.error("DROP ROLE fresh", 1396, "Operation DROP ROLE failed for 'fresh'@'%'");
    root.ok("CREATE ROLE IF NOT EXISTS reader");
    root.expect("SHOW WARNINGS", &["Note|3163|Authorization ID 'reader'@'%' already exists."]);
    root.ok("DROP ROLE IF EXISTS fresh");
    root.expect("SHOW WARNINGS", &["Note|3162|Authorization ID 'fresh'@'%' does not exist."]);
    root.error("GRANT nobody TO app", 3523, "Unknown authorization ID `nobody`@`%`");
    root.error("GRANT reader TO app, nobody", 3523, "Unknown authorization ID `nobody`@`%`");
    root.expect("SHOW GRANTS FOR app", &["GRANT USAGE ON *.* TO `app`@`%`"]);
    root.error("REVOKE reader FROM app", 3530, "`reader`@`%` is not granted to `app`@`%`");
    root.error("REVOKE reader FROM nobody", 3523, "Unknown authorization ID `nobody`@`%`");
    root.ok("REVOKE IF EXISTS reader FROM app");
    root.expect("SHOW WARNINGS", &["Warning|3530|`reader`@`%` is not granted to `app`@`%`"]);
    root.ok("REVOKE reader FROM nobody IGNORE UNKNOWN USER");
    root.expect("SHOW WARNINGS", &["Warning|3162|Authorization ID 'nobody'@'%' does not exist."]);
    let circle = "The GRANT would create a loop";
    for (role, to) in [("reader", "reader"), ("boss", "reader"), ("boss", "boss")] {
        let text =
            format!("User account `{role}`@`%` is directly or indirectly granted to the role `{to}`@`%`. {circle}");
        root.error(&format!("GRANT {role} TO {to}"), 4027, &text);
    }
    root.error("SHOW GRANTS FOR app USING boss", 3530, "`boss`@`%` is not granted to `app`@`%`");
    root.ok("GRANT boss TO app");
    root.expect(
        "SHOW GRANTS FOR app USING boss",
        &[
            "GRANT USAGE ON *.* TO `app`@`%`",
            "GRANT SELECT ON `shop`.* TO `app`@`%`",
            "GRANT INSERT, UPDATE ON `shop`.`t` TO `app`@`%`",
            "GRANT `boss`@`%` TO `app`@`%`",
        ],
    );
    root.code("GRANT PROXY ON app TO boss", 1235);
}

#[test]
fn rename_user() {
    let server = shop();
    let mut root = server.session();
    root.ok("GRANT boss TO app");
    root.ok("GRANT SELECT ON shop.t TO app");
    root.error("RENAME USER app TO reader", 1396, "Operation RENAME USER failed for 'app'@'%'");
    root.error("RENAME USER nobody TO x, app TO y", 1396, "Operation RENAME USER failed for 'nobody'@'%'");
    root.error("RENAME USER boss TO chief", 3532, "Renaming of a role identifier is forbidden");
    root.ok("RENAME USER app TO 'shop app'@localhost");
    root.expect(
        "SHOW GRANTS FOR 'shop app'@localhost",
        &[
            "GRANT USAGE ON *.* TO `shop app`@`localhost`",
            "GRANT SELECT ON `shop`.`t` TO `shop app`@`localhost`",
            "GRANT `boss`@`%` TO `shop app`@`localhost`",
        ],
    );
    assert!(server.connect("app", "10.1.2.3").is_err());
    let mut app = server.connect("shop app", "127.0.0.1").unwrap();
    app.expect("SELECT n FROM shop.t", &["10"]);
    app.code("RENAME USER boss TO x", 1227);
    root.ok("RENAME USER 'shop app'@localhost TO a, a TO b");
    root.ok("DROP USER b");
}

#[test]
fn views_are_read_with_the_default_roles_of_the_definer() {
    let server = shop();
    let mut root = server.session();
    root.ok("GRANT reader TO app");
    root.ok("GRANT CREATE VIEW ON test.* TO app");
    root.ok("CREATE USER other");
    root.ok("GRANT SELECT ON test.* TO other");
    let mut app = server.connect("app", "10.1.2.3").unwrap();
    app.code("CREATE VIEW test.v AS SELECT n FROM shop.t", 1142);
    app.ok("SET ROLE reader");
    app.ok("CREATE VIEW test.v AS SELECT n FROM shop.t");
    let mut other = server.connect("other", "10.1.2.3").unwrap();
    other.code("SELECT * FROM test.v", 1356);
    root.ok("SET DEFAULT ROLE reader TO app");
    other.expect("SELECT * FROM test.v", &["10"]);
    root.ok("SET DEFAULT ROLE NONE TO app");
    other.code("SELECT * FROM test.v", 1356);
    root.ok("SET GLOBAL activate_all_roles_on_login = ON");
    other.expect("SELECT * FROM test.v", &["10"]);
    root.ok("SET GLOBAL activate_all_roles_on_login = OFF");
    other.code("SELECT * FROM test.v", 1356);
}

#[test]
fn tables_of_roles() {
    let server = shop();
    let mut root = server.session();
    root.ok("GRANT boss TO app WITH ADMIN OPTION");
    root.ok("SET DEFAULT ROLE boss TO app");
    root.ok("GRANT SELECT (n) ON shop.t TO writer WITH GRANT OPTION");
    let mut app = server.connect("app", "10.1.2.3").unwrap();
    let all = ["app|%|app|%|boss|%|YES|YES|NO", "app|%|boss|%|reader|%|NO|NO|NO", "app|%|boss|%|writer|%|NO|NO|NO"];
    app.expect("SELECT * FROM information_schema.APPLICABLE_ROLES", &all);
    app.expect("SELECT * FROM information_schema.ADMINISTRABLE_ROLE_AUTHORIZATIONS", &all[..1]);
    app.expect(
        "SELECT * FROM information_schema.ENABLED_ROLES",
        &["boss|%|YES|NO", "reader|%|NO|NO", "writer|%|NO|NO"],
    );
    app.expect(
        "SELECT * FROM information_schema.ROLE_TABLE_GRANTS",
        &["||writer|%|def|shop|t|Insert,Update,Grant|YES"],
    );
    app.expect("SELECT * FROM information_schema.ROLE_COLUMN_GRANTS", &["||writer|%|def|shop|t|n|Select|YES"]);
    app.ok("SET ROLE NONE");
    app.expect("SELECT * FROM information_schema.ENABLED_ROLES", &[]);
    app.code("SELECT * FROM mysql.role_edges", 1142);
    root.expect(
        "SELECT * FROM mysql.role_edges ORDER BY 2, 4",
        &["%|boss|%|app|Y", "%|reader|%|boss|N", "%|writer|%|boss|N"],
    );
    root.expect("SELECT * FROM mysql.default_roles", &["%|app|%|boss"]);
}

#[test]
fn roles_outlive_the_server() {
    let disk = MemoryDisk::new();
    {
        let server = server_on(disk.clone());
        let mut root = server.session();
        root.ok("CREATE ROLE reader");
        root.ok("GRANT SELECT ON test.* TO reader");
        root.ok("CREATE USER app DEFAULT ROLE reader");
        rauk_node::block_on(server.engine.database.shutdown()).unwrap();
    }
    let server = server_on(disk);
    let mut app = server.connect("app", "127.0.0.1").unwrap();
    app.expect("SELECT CURRENT_ROLE()", &["`reader`@`%`"]);
    app.ok("USE test");
}

/// A GRANT that comes between makes DROP ROLE begin again: nobody keeps a role that is gone.
#[test]
fn a_role_that_is_dropped_while_it_is_granted_is_gone_for_all() {
    let server = shop();
    let mut root = server.session();
    for round in 0..40 {
        root.ok("CREATE ROLE passing");
        std::thread::scope(|scope| {
            let mut granting = server.session();
            let grants = scope.spawn(move || {
                for _ in 0..100 {
                    if let Err(error) = granting.collect("GRANT passing TO app").1 {
                        assert_eq!(error.code, 3523);
                        break;
                    }
                }
            });
            if round % 2 == 1 {
                std::thread::yield_now();
            }
            root.ok("DROP ROLE passing");
            grants.join().unwrap();
        });
        root.expect("SHOW GRANTS FOR app", &["GRANT USAGE ON *.* TO `app`@`%`"]);
    }
}
