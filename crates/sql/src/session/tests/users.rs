//! Accounts and privileges.

use super::{Server, Test, server, server_as, server_on};
use crate::session::collect::Collector;
use crate::session::users::{AccountRecord, Privileges, RootPassword, password};
use rauk_log::MemoryDisk;
use rauk_node::{SettingChange, block_on};
use rauk_types::MysqlError;
use std::sync::Arc;

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

/// The first password is for a server without accounts; a reset is for one that has lost it.
#[test]
fn roots_password_is_given_at_the_start() {
    let disk = MemoryDisk::new();
    let start = |text: &str, reset: bool| {
        let given_by = "RAUK_ROOT_PASSWORD".to_string();
        server_as(disk.clone(), u64::MAX, Some(RootPassword { text: text.into(), given_by, reset }))
    };
    let is = |server: &Server, text: &str| {
        let root = server.engine.users.find("root", "localhost").expect("there is a root");
        password::matches(&root.plugin, &root.hash, text)
    };
    let stop = |server: Server| block_on(server.engine.database.shutdown()).unwrap();
    let server = start("first", false);
    assert!(is(&server, "first") && !is(&server, ""));
    server.session().ok("GRANT ALL ON *.* TO root@localhost WITH GRANT OPTION");
    stop(server);
    let server = start("second", false);
    assert!(is(&server, "first"), "it has accounts already");
    server.session().ok("ALTER USER root@localhost IDENTIFIED WITH mysql_native_password BY 'third' ACCOUNT LOCK");
    stop(server);
    let server = start("fourth", true);
    assert!(is(&server, "fourth") && !server.engine.users.find("root", "localhost").unwrap().locked);
    let mut t = server.session();
    t.ok("CREATE USER other");
    t.ok("DROP USER root@localhost");
    stop(server);
    let server = start("fifth", true);
    assert!(is(&server, "fifth"), "it was made again");
    let mut t = server.session();
    t.ok("GRANT SELECT ON *.* TO other");
    t.ok("DROP USER root@localhost");
    stop(server);
    let server = start("sixth", false);
    assert!(server.engine.users.find("root", "localhost").is_none(), "a dropped root stays dropped");
}

#[test]
fn dynamic_privileges() {
    let server = server();
    let mut root = server.session();
    root.ok("CREATE USER app");
    root.ok("GRANT FIREWALL_USER, FLUSH_STATUS, XA_RECOVER_ADMIN ON *.* TO app");
    root.expect(
        "SHOW GRANTS FOR app",
        &["GRANT USAGE ON *.* TO `app`@`%`", "GRANT FIREWALL_USER,FLUSH_STATUS,XA_RECOVER_ADMIN ON *.* TO `app`@`%`"],
    );
    let mut app = server.connect("app", "10.1.2.3").unwrap();
    app.ok("FLUSH STATUS");
    app.code("FLUSH TABLES", 1227);
    let level = "Illegal privilege level specified for FLUSH_STATUS";
    root.error("GRANT FLUSH_STATUS ON test.* TO app", 3619, level);
    root.error("REVOKE FLUSH_STATUS ON test.t FROM app", 3619, level);
    root.code("GRANT NONSENSE_ADMIN ON *.* TO app", 1064);
    root.ok("REVOKE FLUSH_STATUS ON *.* FROM app");
    app.code("FLUSH STATUS", 1227);
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

/// Who may only read may not keep others from writing: FOR UPDATE takes one of UPDATE, DELETE and LOCK TABLES besides
/// SELECT, on each table that it locks.
#[test]
fn row_locks_take_a_privilege_to_change() {
    let server = server();
    let mut root = server.session();
    for statement in [
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (id INT PRIMARY KEY)",
        "CREATE TABLE shop.u (id INT PRIMARY KEY)",
        "INSERT INTO shop.t VALUES (1)",
        "INSERT INTO shop.u VALUES (1)",
        "CREATE USER app",
        "GRANT SELECT ON shop.* TO app",
    ] {
        root.ok(statement);
    }
    let locking = "SELECT id FROM shop.t WHERE id = 1 FOR UPDATE";
    let both = "SELECT t.id FROM shop.t JOIN shop.u USING (id) FOR UPDATE";
    let one = "SELECT t.id FROM shop.t JOIN shop.u USING (id) FOR UPDATE OF t";
    // In the cache by another who may.
    root.expect(locking, &["1"]);
    let mut app = server.connect("app", "10.1.2.3").unwrap();
    let denied =
        |table: &str| format!("SELECT with locking clause command denied to user 'app'@'10.1.2.3' for table '{table}'");
    app.error(locking, 1142, &denied("t"));
    app.error(
        "INSERT INTO shop.t SELECT 5 FROM shop.u FOR UPDATE",
        1142,
        "INSERT command denied to user 'app'@'10.1.2.3' for table 't'",
    );
    for shared in ["FOR SHARE", "LOCK IN SHARE MODE", ""] {
        app.expect(&format!("SELECT id FROM shop.t WHERE id = 1 {shared}"), &["1"]);
    }
    for privilege in ["UPDATE", "DELETE", "LOCK TABLES"] {
        let on = if privilege == "LOCK TABLES" { "shop.*" } else { "shop.t" };
        root.ok(&format!("GRANT {privilege} ON {on} TO app"));
        app.expect(locking, &["1"]);
        app.expect(one, &["1"]);
        match privilege {
            "LOCK TABLES" => app.expect(both, &["1"]),
            _ => app.error(both, 1142, &denied("u")),
        }
        root.ok(&format!("REVOKE {privilege} ON {on} FROM app"));
        app.error(locking, 1142, &denied("t"));
    }
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

fn account(server: &Server, user: &str) -> Option<Arc<AccountRecord>> {
    server.engine.users.find(user, "%")
}

/// A GRANT of SELECT on everything to `app`, and what another session does after each time that its record was taken. Gives how often that was.
fn grant_while(test: &mut Test, mut meanwhile: impl FnMut(u32)) -> (u32, Result<(), MysqlError>) {
    let mut taken = 0;
    let granting = test.session.change_accounts(|session, draft| {
        let account = draft.account(&session.engine.users, "app", "%");
        meanwhile(taken);
        taken += 1;
        let record = account.as_mut().ok_or_else(|| MysqlError::new(1410, "unknown"))?;
        record.global = record.global.with(Privileges::SELECT);
        draft.note(3162, "told".to_string());
        Ok(())
    });
    let result = block_on(granting);
    (taken, result)
}

#[test]
fn a_record_that_was_taken_before_a_drop_is_not_given_back() {
    let server = server();
    let (mut one, mut other) = (server.session(), server.session());
    one.ok("CREATE USER app IDENTIFIED BY 'old'");
    let (taken, result) = grant_while(&mut one, |time| {
        if time == 0 {
            other.ok("DROP USER app");
        }
    });
    assert_eq!((taken, result.map_err(|error| error.code)), (2, Err(1410)));
    assert_eq!(account(&server, "app"), None);
    // Nor in place of another user of that name.
    one.ok("CREATE USER app IDENTIFIED BY 'old'");
    let (taken, result) = grant_while(&mut one, |time| {
        if time == 0 {
            other.ok("DROP USER app");
            other.ok("CREATE USER app IDENTIFIED WITH mysql_native_password BY 'password'");
        }
    });
    assert_eq!((taken, result), (2, Ok(())));
    let app = account(&server, "app").unwrap();
    assert_eq!(app.hash, "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19");
    assert_eq!(app.global, Privileges::SELECT);
}

#[test]
fn what_others_have_changed_of_an_account_stays() {
    let server = server();
    let (mut one, mut other) = (server.session(), server.session());
    one.ok("CREATE USER app IDENTIFIED BY 'old'");
    one.ok("GRANT DELETE, UPDATE ON *.* TO app");
    let steps = [
        "ALTER USER app IDENTIFIED WITH mysql_native_password BY 'old'",
        "SET PASSWORD FOR app = 'password'",
        "REVOKE DELETE ON *.* FROM app",
        "GRANT INSERT ON shop.* TO app",
    ];
    let (taken, result) = grant_while(&mut one, |time| {
        if let Some(step) = steps.get(time as usize) {
            other.ok(step);
        }
    });
    assert_eq!((taken, result), (5, Ok(())));
    let app = account(&server, "app").unwrap();
    assert_eq!(app.hash, "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19");
    assert_eq!(app.global, Privileges::UPDATE.with(Privileges::SELECT));
    assert_eq!(app.databases["shop"], Privileges::INSERT);
    one.expect("SHOW WARNINGS", &["Note|3162|told"]);
}

#[test]
fn who_may_no_more_does_not_on_the_next_try() {
    let server = server();
    let mut root = server.session();
    root.ok("CREATE USER boss, app");
    root.ok("GRANT CREATE USER ON *.* TO boss");
    let mut boss = server.connect("boss", "10.0.0.1").unwrap();
    boss.ok("ALTER USER app IDENTIFIED BY 'x'");
    let mut times = 0;
    let changing = boss.session.change_accounts(|session, draft| {
        session.require_any(Privileges::CREATE_USER, "CREATE USER")?;
        let account = draft.account(&session.engine.users, "app", "%");
        times += 1;
        if times == 1 {
            root.ok("REVOKE CREATE USER ON *.* FROM boss");
            root.ok("ALTER USER app IDENTIFIED WITH mysql_native_password BY 'password'");
        }
        *account = None;
        Ok(())
    });
    assert_eq!(block_on(changing).map_err(|error| error.code), Err(1227));
    assert!(account(&server, "app").is_some());
}

#[test]
fn who_never_gets_through_gets_a_temporary_error() {
    let server = server();
    let (mut one, mut other) = (server.session(), server.session());
    one.ok("CREATE USER app");
    let (taken, result) = grant_while(&mut one, |time| other.ok(&format!("GRANT INSERT ON d{time}.* TO app")));
    let error = result.unwrap_err();
    assert_eq!((taken, error.code), (100, 1297));
    assert_eq!(error.message, "Got temporary error: it was changed by somebody else meanwhile; try again");
    let app = account(&server, "app").unwrap();
    assert_eq!((app.global, app.databases.len()), (Privileges::NONE, 100));
}

#[test]
fn what_a_statement_says_is_not_there_is_not_there() {
    let server = server();
    let (mut one, mut other) = (server.session(), server.session());
    let mut times = 0;
    let making = one.session.change_accounts(|session, draft| {
        let account = draft.account(&session.engine.users, "app", "%");
        times += 1;
        if times == 1 {
            other.ok("CREATE USER app IDENTIFIED WITH mysql_native_password BY 'password'");
        }
        match account {
            Some(_) => draft.note(3163, "it is".to_string()),
            None => draft.note(3162, "it is not".to_string()),
        }
        Ok(())
    });
    block_on(making).unwrap();
    one.expect("SHOW WARNINGS", &["Note|3163|it is"]);
    assert!(!account(&server, "app").unwrap().hash.is_empty());
}

/// In many rounds the record is taken before the drop and would be given back after it.
#[test]
fn users_that_are_dropped_while_others_change_them_are_gone() {
    let server = server();
    let mut root = server.session();
    let statements = [
        ("GRANT SELECT ON *.* TO app", "REVOKE SELECT ON *.* FROM app", [1410, 1141]),
        ("ALTER USER app IDENTIFIED WITH mysql_native_password BY 'a'", "SET PASSWORD FOR app = 'b'", [1396, 1133]),
    ];
    for round in 0..80 {
        root.ok("CREATE USER app");
        let (first, second, expected) = statements[round % 2];
        let mut changer = server.session();
        let (begun, changes) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let changing = scope.spawn(move || {
                for (statement, code) in [first, second].into_iter().zip(expected).cycle().take(10_000) {
                    match changer.collect(statement).1 {
                        Ok(()) => drop(begun.send(())),
                        Err(error) => return (error.code == code).then_some(()).ok_or(error),
                    }
                }
                panic!("the user is not gone");
            });
            changes.iter().take(2 + round / 4).for_each(drop);
            root.ok("DROP USER app");
            changing.join().unwrap().unwrap();
        });
        assert_eq!(account(&server, "app"), None, "round {round}");
    }
}

#[test]
fn rights_granted_by_many_sessions_at_once_all_stay() {
    const SESSIONS: usize = 8;
    const EACH: usize = 12;
    let server = server();
    let mut root = server.session();
    root.ok("CREATE USER app");
    std::thread::scope(|scope| {
        for number in 0..SESSIONS {
            let mut test = server.session();
            scope.spawn(move || {
                for i in 0..EACH {
                    test.ok(&format!("GRANT SELECT, INSERT ON d{number}x{i}.* TO app"));
                    test.ok(&format!("REVOKE INSERT ON d{number}x{i}.* FROM app"));
                }
            });
        }
    });
    let app = account(&server, "app").unwrap();
    assert_eq!(app.databases.len(), SESSIONS * EACH);
    assert!(app.databases.values().all(|privileges| *privileges == Privileges::SELECT));
}

#[test]
fn a_user_is_made_by_one_of_many() {
    let server = server();
    for round in 0..40 {
        let together = std::sync::Barrier::new(4);
        let made = std::thread::scope(|scope| {
            let create = |_| {
                let mut test = server.session();
                let together = &together;
                scope.spawn(move || {
                    together.wait();
                    match test.collect(&format!("CREATE USER u{round}")).1 {
                        Ok(()) => 1,
                        Err(error) => {
                            assert_eq!(error.code, 1396);
                            0
                        }
                    }
                })
            };
            let threads: Vec<_> = (0..4).map(create).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum::<i32>()
        });
        assert_eq!(made, 1);
    }
}

#[test]
fn names_twice_in_a_statement() {
    let server = server();
    let mut t = server.session();
    t.error("CREATE USER app, app", 1396, "Operation CREATE USER failed for 'app'@'%'");
    assert_eq!(account(&server, "app"), None);
    t.ok("CREATE USER IF NOT EXISTS app, app");
    t.expect("SHOW WARNINGS", &["Note|3163|Authorization ID 'app'@'%' already exists."]);
    t.ok("GRANT SELECT ON *.* TO app, app");
    t.error("DROP USER app, app", 1396, "Operation DROP USER failed for 'app'@'%'");
    assert_eq!(account(&server, "app").unwrap().global, Privileges::SELECT);
    t.ok("DROP USER IF EXISTS app, app");
    assert_eq!(account(&server, "app"), None);
}

#[test]
fn an_account_that_cannot_be_read_is_made_anew_and_not_lost_otherwise() {
    let server = server();
    let mut t = server.session();
    let broken = [("user:app@%".to_string(), Some("{".to_string()))];
    block_on(server.engine.database.set_settings(&broken)).unwrap();
    t.ok("ALTER USER IF EXISTS app IDENTIFIED BY 'x'");
    t.code("DROP USER app", 1396);
    t.code("GRANT SELECT ON *.* TO app", 1410);
    assert_eq!(server.engine.database.setting("user:app@%").as_deref(), Some("{"));
    t.ok("CREATE USER app");
    assert!(account(&server, "app").is_some());
    let wrong = SettingChange { key: "user:app@%".into(), from: Some("{".into()), to: None };
    assert!(block_on(server.engine.users.change(vec![wrong])).is_err());
    assert!(account(&server, "app").is_some());
}
