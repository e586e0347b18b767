//! Rules of accounts: passwords, failed logins, encrypted connections, limits, notes, partial revokes.

use super::{NOW, Server, Test, server};
use crate::session::engine::{Client, LoginAttempt};
use rauk_types::{MysqlError, Value};
use std::net::IpAddr;
use std::sync::atomic::Ordering;

const DAY: i64 = 86_400_000_000;
const PEER: &str = "10.1.2.3";

fn peer() -> IpAddr {
    PEER.parse().expect("an address")
}

/// A client that does not know of expired passwords.
fn connect_old(server: &Server, user: &str) -> Result<Test, MysqlError> {
    let client = Client {
        user: user.to_string(),
        account_host: "%".to_string(),
        peer: peer(),
        handles_expired_passwords: false,
        ..Client::local(server.id())
    };
    Ok(Test { session: server.engine.connect(client)? })
}

fn attempt(proven: bool) -> LoginAttempt<'static> {
    LoginAttempt { user: "app", account_host: "%", peer: peer(), proven, cipher: None, certificate: None }
}

fn move_clock(server: &Server, days: i64) {
    server.clock.store(NOW + days * DAY, Ordering::Relaxed);
}

/// All that is said of an account is kept, printed as MySQL 8 does, and what is printed makes it again.
#[test]
fn show_create_user_says_everything() {
    let server = server();
    let mut t = server.session();
    let create = "CREATE USER `app`@`%` IDENTIFIED WITH 'mysql_native_password' AS '*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19' REQUIRE SUBJECT '/CN=it''s' ISSUER '/O=x' CIPHER 'c' WITH MAX_QUERIES_PER_HOUR 1 MAX_UPDATES_PER_HOUR 2 MAX_CONNECTIONS_PER_HOUR 3 MAX_USER_CONNECTIONS 4 PASSWORD EXPIRE INTERVAL 90 DAY ACCOUNT LOCK PASSWORD HISTORY 5 PASSWORD REUSE INTERVAL 30 DAY PASSWORD REQUIRE CURRENT FAILED_LOGIN_ATTEMPTS 3 PASSWORD_LOCK_TIME UNBOUNDED ATTRIBUTE '{\"a\": [1, 2], \"comment\": \"it''s\"}'";
    t.ok(create);
    t.expect("SHOW CREATE USER app", &[create]);
    t.expect(
        "SELECT ssl_type, x509_subject, max_questions, max_user_connections, password_expired, password_lifetime, Password_reuse_history, Password_reuse_time, Password_require_current, account_locked, password_last_changed, User_attributes FROM mysql.user WHERE User = 'app'",
        &[r#"SPECIFIED|/CN=it's|1|4|N|90|5|30|Y|Y|2024-02-29 12:34:56|{"metadata": {"a": [1, 2], "comment": "it's"}, "Password_locking": {"failed_login_attempts": 3, "password_lock_time_days": -1}}"#],
    );
    t.expect(
        "SELECT * FROM information_schema.USER_ATTRIBUTES ORDER BY USER",
        &[r#"app|%|{"a": [1, 2], "comment": "it's"}"#, "root|localhost|NULL"],
    );
    t.ok("ALTER USER app REQUIRE X509 WITH MAX_QUERIES_PER_HOUR 0 PASSWORD EXPIRE NEVER PASSWORD HISTORY DEFAULT PASSWORD REUSE INTERVAL DEFAULT PASSWORD REQUIRE CURRENT OPTIONAL ACCOUNT UNLOCK FAILED_LOGIN_ATTEMPTS 0 PASSWORD_LOCK_TIME 0 ATTRIBUTE '{\"a\": null}'");
    let shown = "CREATE USER `app`@`%` IDENTIFIED WITH 'mysql_native_password' AS '*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19' REQUIRE X509 WITH MAX_UPDATES_PER_HOUR 2 MAX_CONNECTIONS_PER_HOUR 3 MAX_USER_CONNECTIONS 4 PASSWORD EXPIRE NEVER ACCOUNT UNLOCK PASSWORD HISTORY DEFAULT PASSWORD REUSE INTERVAL DEFAULT PASSWORD REQUIRE CURRENT OPTIONAL ATTRIBUTE '{\"comment\": \"it''s\"}'";
    t.expect("SHOW CREATE USER app", &[shown]);
    t.ok("DROP USER app");
    t.ok(shown);
    t.expect("SHOW CREATE USER app", &[shown]);
    t.ok("ALTER USER app REQUIRE SSL PASSWORD EXPIRE");
    assert!(t.run("SHOW CREATE USER app").contains(" REQUIRE SSL WITH MAX_UPDATES_PER_HOUR 2 MAX_CONNECTIONS_PER_HOUR 3 MAX_USER_CONNECTIONS 4 PASSWORD EXPIRE ACCOUNT UNLOCK "));
    t.error("ALTER USER app ATTRIBUTE '[1]'", 3982, "The user attribute must be a valid JSON object");
    t.error("ALTER USER app PASSWORD EXPIRE INTERVAL 0 DAY", 1525, "Incorrect DAY value: '0'");
    t.code("ALTER USER app PASSWORD EXPIRE INTERVAL 65536 DAY", 1525);
    t.code("ALTER USER app FAILED_LOGIN_ATTEMPTS 32768", 1525);
    let twice = "Option 'SUBJECT' used twice in statement";
    t.error("ALTER USER app REQUIRE SUBJECT 'a' SUBJECT 'b'", 1225, twice);
    for bad in ["PASSWORD_LOCK_TIME -1", "REQUIRE", "WITH", "COMMENT 'a' ATTRIBUTE '{}'"] {
        t.code(&format!("ALTER USER app {bad}"), 1064);
    }
    t.code("ALTER USER app PASSWORD HISTORY 1001", 1235);
}

#[test]
fn an_expired_password_is_changed_first() {
    let server = server();
    let mut root = server.session();
    root.ok("CREATE USER app IDENTIFIED BY 'x' PASSWORD EXPIRE");
    root.ok("GRANT SELECT ON *.* TO app");
    let old = connect_old(&server, "app").err().expect("it is refused");
    assert_eq!(old.code, 1862);
    assert_eq!(
        old.message,
        "Your password has expired. To log in you must change it using a client that supports expired passwords."
    );
    let mut app = server.connect("app", PEER).unwrap();
    let message = "You must reset your password using ALTER USER statement before executing this statement.";
    for statement in
        ["SELECT 1", "SET @a = 1", "SHOW GRANTS", "COMMIT", "USE test", "ALTER USER app DISCARD OLD PASSWORD"]
    {
        if statement.starts_with("ALTER") {
            app.code(statement, 1227);
        } else {
            app.error(statement, 1820, message);
        }
    }
    app.ok("ALTER USER CURRENT_USER() IDENTIFIED BY 'y'");
    app.expect("SELECT 1", &["1"]);
    connect_old(&server, "app").unwrap();
    // By age, and by the variable where the account says nothing.
    root.ok("ALTER USER app PASSWORD EXPIRE INTERVAL 2 DAY");
    move_clock(&server, 2);
    server.connect("app", PEER).unwrap().code("SELECT 1", 1820);
    let mut app = server.connect("app", PEER).unwrap();
    app.ok("SET PASSWORD = 'z'");
    app.expect("SELECT 1", &["1"]);
    root.ok("ALTER USER app PASSWORD EXPIRE DEFAULT");
    root.ok("SET GLOBAL default_password_lifetime = 10");
    move_clock(&server, 11);
    server.connect("app", PEER).unwrap().expect("SELECT 1", &["1"]);
    move_clock(&server, 12);
    server.connect("app", PEER).unwrap().code("SELECT 1", 1820);
    root.ok("ALTER USER app PASSWORD EXPIRE NEVER");
    server.connect("app", PEER).unwrap().expect("SELECT 1", &["1"]);
    // A session whose own account expires has to change the password; one that is open goes on when another does that.
    let mut own = server.connect("app", PEER).unwrap();
    root.ok("ALTER USER app PASSWORD EXPIRE");
    own.expect("SELECT 1", &["1"]);
    root.ok("CREATE USER boss");
    root.ok("GRANT CREATE USER ON *.* TO boss");
    let mut boss = server.connect("boss", PEER).unwrap();
    boss.ok("ALTER USER boss PASSWORD EXPIRE");
    boss.code("SELECT 1", 1820);
    boss.code("ALTER USER boss ACCOUNT UNLOCK", 1820);
    boss.ok("ALTER USER boss IDENTIFIED BY 'new'");
    boss.expect("SELECT 1", &["1"]);
}

#[test]
fn passwords_are_not_used_again() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE USER app IDENTIFIED WITH mysql_native_password BY 'a' PASSWORD HISTORY 2");
    let message = "Cannot use these credentials for 'app@%' because they contradict the password history policy";
    t.error("ALTER USER app IDENTIFIED WITH mysql_native_password BY 'a'", 3638, message);
    t.ok("SET PASSWORD FOR app = 'b'");
    t.error("SET PASSWORD FOR app = 'a'", 3638, message);
    t.ok("ALTER USER app IDENTIFIED BY 'c'");
    t.code("ALTER USER app IDENTIFIED BY 'b'", 3638);
    t.ok("ALTER USER app IDENTIFIED BY 'a'");
    t.ok("ALTER USER app IDENTIFIED BY ''");
    t.ok("ALTER USER app IDENTIFIED BY ''");
    t.ok("ALTER USER app PASSWORD HISTORY 0 PASSWORD REUSE INTERVAL 3 DAY");
    t.ok("ALTER USER app IDENTIFIED BY 'd'");
    move_clock(&server, 2);
    t.ok("ALTER USER app IDENTIFIED BY 'e'");
    t.code("ALTER USER app IDENTIFIED BY 'd'", 3638);
    move_clock(&server, 3);
    t.ok("ALTER USER app IDENTIFIED BY 'd'");
    t.code("ALTER USER app IDENTIFIED BY 'e'", 3638);
    t.ok("CREATE USER other IDENTIFIED BY 'x'");
    t.ok("ALTER USER other IDENTIFIED BY 'x'");
    t.ok("SET GLOBAL password_history = 1");
    t.ok("ALTER USER other IDENTIFIED BY 'x'");
    t.code("ALTER USER other IDENTIFIED BY 'x'", 3638);
    t.ok("SET GLOBAL password_history = 0, GLOBAL password_reuse_interval = 5");
    t.code("ALTER USER other IDENTIFIED BY 'x'", 3638);
}

#[test]
fn the_present_password_is_asked_for() {
    let server = server();
    let mut root = server.session();
    root.ok("CREATE USER app IDENTIFIED BY 'a' PASSWORD REQUIRE CURRENT");
    root.error(
        "ALTER USER app IDENTIFIED BY 'b' REPLACE 'a'",
        3893,
        "Do not specify the current password while changing it for other users.",
    );
    let mut app = server.connect("app", PEER).unwrap();
    app.error(
        "ALTER USER USER() IDENTIFIED BY 'b'",
        3892,
        "Current password needs to be specified in the REPLACE clause in order to change it.",
    );
    app.code("SET PASSWORD = 'b'", 3892);
    app.code("SET PASSWORD = 'b' REPLACE 'x'", 3891);
    app.ok("SET PASSWORD = 'b' REPLACE 'a'");
    app.ok("ALTER USER CURRENT_USER() IDENTIFIED BY 'c' REPLACE 'b'");
    app.code("ALTER USER CURRENT_USER() ACCOUNT LOCK", 1227);
    root.ok("ALTER USER app PASSWORD REQUIRE CURRENT DEFAULT");
    app.ok("SET PASSWORD = 'd'");
    root.ok("SET GLOBAL password_require_current = ON");
    app.code("SET PASSWORD = 'e'", 3892);
    root.ok("ALTER USER app IDENTIFIED BY 'e'");
    root.ok("GRANT CREATE USER ON *.* TO app");
    app.ok("SET PASSWORD = 'f'");
}

#[test]
fn two_passwords() {
    let server = server();
    let mut root = server.session();
    root.ok("CREATE USER app IDENTIFIED BY 'a'");
    let hashes = || {
        let account = server.engine.account("app", peer()).unwrap();
        (account.hash, account.second)
    };
    let (first, none) = hashes();
    assert_eq!(none, "");
    root.ok("ALTER USER app IDENTIFIED BY 'b' RETAIN CURRENT PASSWORD");
    let (second, kept) = hashes();
    assert!(second != first && kept == first);
    root.ok("SET PASSWORD FOR app = 'c' RETAIN CURRENT PASSWORD");
    assert_eq!(hashes().1, second);
    root.ok("ALTER USER app IDENTIFIED BY 'd'");
    assert_eq!(hashes().1, second, "it is kept");
    root.ok("ALTER USER app DISCARD OLD PASSWORD");
    assert_eq!(hashes().1, "");
    root.code("ALTER USER app IDENTIFIED BY '' RETAIN CURRENT PASSWORD", 3895);
    root.code("ALTER USER app IDENTIFIED WITH mysql_native_password BY 'x' RETAIN CURRENT PASSWORD", 3894);
    root.ok("ALTER USER app IDENTIFIED BY 'e' RETAIN CURRENT PASSWORD");
    root.ok("ALTER USER app IDENTIFIED BY ''");
    assert_eq!(hashes(), (String::new(), String::new()));
    root.error(
        "ALTER USER app IDENTIFIED BY 'x' RETAIN CURRENT PASSWORD",
        3878,
        "Empty password can not be retained as second password for user 'app'@'%'.",
    );
    let mut app = server.connect("app", PEER).unwrap();
    app.ok("SET PASSWORD = 'x'");
    app.code("SET PASSWORD = 'y' RETAIN CURRENT PASSWORD", 1227);
    root.ok("GRANT APPLICATION_PASSWORD_ADMIN ON *.* TO app");
    app.ok("SET PASSWORD = 'y' RETAIN CURRENT PASSWORD");
    app.ok("ALTER USER CURRENT_USER() DISCARD OLD PASSWORD");
}

#[test]
fn passwords_that_the_server_makes() {
    let server = server();
    let mut root = server.session();
    let rows = root.run("CREATE USER app IDENTIFIED BY RANDOM PASSWORD, b IDENTIFIED BY 'x', c IDENTIFIED WITH mysql_native_password BY RANDOM PASSWORD");
    let rows: Vec<&str> = rows.lines().collect();
    let (first, second) = (rows[0].strip_prefix("app|%|").unwrap(), rows[1].strip_prefix("c|%|").unwrap());
    let made = |row: &str| row.strip_suffix("|1").unwrap().to_string();
    assert_eq!((made(first).len(), made(second).len(), rows.len()), (20, 20, 2));
    let native = server.engine.account("c", peer()).unwrap();
    assert!(crate::session::users::password::matches(&native.plugin, &native.hash, &made(second)));
    root.ok("SET generated_random_password_length = 5");
    let row = root.run("SET PASSWORD FOR c TO RANDOM");
    let native = server.engine.account("c", peer()).unwrap();
    assert_eq!(native.plugin, "mysql_native_password");
    let text = made(row.strip_prefix("c|%|").unwrap());
    assert!(text.len() == 5 && crate::session::users::password::matches(&native.plugin, &native.hash, &text));
    root.ok("ALTER USER app IDENTIFIED WITH mysql_native_password");
    let account = server.engine.account("app", peer()).unwrap();
    assert_eq!((account.plugin.as_str(), account.hash.as_str()), ("mysql_native_password", ""));
    server.connect("app", PEER).unwrap().code("SELECT 1", 1820);
}

#[test]
fn failed_logins_block_an_account() {
    let server = server();
    let mut root = server.session();
    root.ok("CREATE USER app IDENTIFIED BY 'x' FAILED_LOGIN_ATTEMPTS 2 PASSWORD_LOCK_TIME 3");
    let judge = |proven: bool| server.engine.judge_login(&attempt(proven)).map_err(|error| error.code);
    assert_eq!((judge(false), judge(true), judge(false)), (Ok(()), Ok(()), Ok(())));
    let error = server.engine.judge_login(&attempt(false)).unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (
            3955,
            "Access denied for user 'app'@'10.1.2.3'. Account is blocked for 3 day(s) (3 day(s) remaining) due to 2 consecutive failed logins."
        )
    );
    assert_eq!(judge(true), Err(3955));
    move_clock(&server, 3);
    assert_eq!(judge(true), Ok(()));
    let block = || assert_eq!((judge(false), judge(false), judge(true)), (Ok(()), Err(3955), Err(3955)));
    block();
    root.ok("ALTER USER app ACCOUNT UNLOCK");
    assert_eq!(judge(true), Ok(()));
    block();
    root.ok("ALTER USER app FAILED_LOGIN_ATTEMPTS 2");
    assert_eq!(judge(true), Ok(()));
    block();
    root.ok("FLUSH PRIVILEGES");
    assert_eq!(judge(true), Ok(()));
    root.ok("ALTER USER app ACCOUNT LOCK");
    assert_eq!(judge(true), Err(3118));
}

#[test]
fn connections_are_as_required() {
    let server = server();
    let mut root = server.session();
    root.ok("CREATE USER app IDENTIFIED BY 'x'");
    let judge = |cipher: Option<&str>, certificate: Option<(&str, &str)>| {
        let attempt = LoginAttempt { cipher, certificate, ..attempt(true) };
        server.engine.judge_login(&attempt).map_err(|error| error.code)
    };
    let (cipher, shown) = (Some("TLS_AES_256_GCM_SHA384"), Some(("/CN=me", "/CN=ca")));
    assert_eq!(judge(None, None), Ok(()));
    root.ok("ALTER USER app REQUIRE SSL");
    assert_eq!((judge(None, None), judge(cipher, None)), (Err(1045), Ok(())));
    root.ok("ALTER USER app REQUIRE X509");
    assert_eq!((judge(cipher, None), judge(cipher, shown)), (Err(1045), Ok(())));
    root.ok("ALTER USER app REQUIRE ISSUER '/CN=ca' AND SUBJECT '/CN=me'");
    assert_eq!((judge(cipher, None), judge(cipher, shown)), (Err(1045), Ok(())));
    assert_eq!(judge(cipher, Some(("/CN=you", "/CN=ca"))), Err(1045));
    assert_eq!(judge(cipher, Some(("/CN=me", "/CN=other"))), Err(1045));
    root.ok("ALTER USER app REQUIRE CIPHER 'TLS_AES_256_GCM_SHA384'");
    assert_eq!((judge(cipher, None), judge(Some("other"), None), judge(None, None)), (Ok(()), Err(1045), Err(1045)));
    root.ok("ALTER USER app REQUIRE NONE");
    assert_eq!(judge(None, None), Ok(()));
    assert!(!server.engine.requires_secure_transport());
    root.ok("SET GLOBAL require_secure_transport = ON");
    assert!(server.engine.requires_secure_transport());
}

#[test]
fn what_an_account_may_use_up() {
    let server = server();
    let mut root = server.session();
    root.ok("CREATE TABLE test.t (a INT PRIMARY KEY)");
    root.ok("CREATE USER app WITH MAX_QUERIES_PER_HOUR 4 MAX_USER_CONNECTIONS 1");
    root.ok("GRANT ALL ON test.* TO app");
    let mut app = server.connect("app", PEER).unwrap();
    let error = server.connect("app", PEER).err().unwrap();
    assert_eq!(
        (error.code, &error.state, error.message.as_str()),
        (1226, b"42000", "User 'app' has exceeded the 'max_user_connections' resource (current value: 1)")
    );
    for _ in 0..3 {
        app.ok("DO 1");
    }
    app.expect("SELECT 1", &["1"]);
    app.error("SELECT 1", 1226, "User 'app' has exceeded the 'max_queries_per_hour' resource (current value: 4)");
    app.code("DO 1", 1226);
    root.ok("FLUSH USER_RESOURCES");
    app.ok("DO 1");
    root.ok("ALTER USER app WITH MAX_QUERIES_PER_HOUR 0 MAX_UPDATES_PER_HOUR 3");
    app.ok("INSERT INTO test.t VALUES (1)");
    app.ok("UPDATE test.t SET a = a + 1");
    app.ok("CREATE TABLE test.u (a INT)");
    app.error(
        "DELETE FROM test.t",
        1226,
        "User 'app' has exceeded the 'max_updates_per_hour' resource (current value: 3)",
    );
    app.code("DROP TABLE test.u", 1226);
    app.expect("SELECT a FROM test.t", &["2"]);
    server.clock.store(NOW + DAY / 24, Ordering::Relaxed);
    app.ok("DELETE FROM test.t");
    drop(app);
    root.ok("ALTER USER app WITH MAX_USER_CONNECTIONS 0 MAX_CONNECTIONS_PER_HOUR 2");
    root.ok("FLUSH USER_RESOURCES");
    drop(server.connect("app", PEER).unwrap());
    drop(server.connect("app", PEER).unwrap());
    assert_eq!(server.connect("app", PEER).err().unwrap().code, 1226);
    root.ok("ALTER USER app WITH MAX_CONNECTIONS_PER_HOUR 0");
    root.ok("SET GLOBAL max_user_connections = 1");
    let _one = server.connect("app", PEER).unwrap();
    let error = server.connect("app", PEER).err().unwrap();
    assert_eq!(
        (error.code, error.message.as_str()),
        (1203, "User app already has more than 'max_user_connections' active connections")
    );
}

#[test]
fn global_privileges_are_revoked_on_databases() {
    let server = server();
    let mut root = server.session();
    for statement in [
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (a INT)",
        "CREATE TABLE test.t (a INT)",
        "CREATE USER app",
        "GRANT SELECT, INSERT ON *.* TO app WITH GRANT OPTION",
    ] {
        root.ok(statement);
    }
    root.code("REVOKE INSERT ON shop.* FROM app", 1141);
    root.ok("SET GLOBAL partial_revokes = ON");
    root.ok("REVOKE INSERT ON shop.* FROM app");
    let grants =
        ["GRANT SELECT, INSERT ON *.* TO `app`@`%` WITH GRANT OPTION", "REVOKE INSERT ON `shop`.* FROM `app`@`%`"];
    root.expect("SHOW GRANTS FOR app", &grants);
    root.expect(
        "SELECT User_attributes FROM mysql.user WHERE User = 'app'",
        &[r#"{"Restrictions": [{"Database": "shop", "Privileges": ["INSERT"]}]}"#],
    );
    let mut app = server.connect("app", PEER).unwrap();
    app.ok("INSERT INTO test.t VALUES (1)");
    app.error("INSERT INTO shop.t VALUES (1)", 1142, "INSERT command denied to user 'app'@'10.1.2.3' for table 't'");
    app.expect("SELECT * FROM shop.t", &[]);
    // Who is restricted cannot give more, globally or on the database.
    root.ok("CREATE USER other");
    app.code("GRANT INSERT ON shop.* TO other", 1044);
    app.ok("GRANT INSERT ON *.* TO other");
    server.connect("other", PEER).unwrap().code("INSERT INTO shop.t VALUES (1)", 1142);
    root.ok("GRANT INSERT ON *.* TO other");
    server.connect("other", PEER).unwrap().ok("INSERT INTO shop.t VALUES (1)");
    // A role without the restriction lifts it, one with it does not.
    root.ok("CREATE ROLE free, bound");
    root.ok("GRANT INSERT ON *.* TO free, bound");
    root.ok("REVOKE INSERT ON shop.* FROM bound");
    root.ok("GRANT free, bound TO app");
    app.ok("SET ROLE bound");
    app.code("INSERT INTO shop.t VALUES (1)", 1142);
    app.ok("SET ROLE free");
    app.ok("INSERT INTO shop.t VALUES (1)");
    app.ok("SET ROLE NONE");
    root.error(
        "SET GLOBAL partial_revokes = OFF",
        3896,
        "At least one partial revoke exists on a database. The system variable '@@partial_revokes' must be set to ON.",
    );
    root.ok("GRANT INSERT ON shop.* TO app");
    root.expect("SHOW GRANTS FOR app", &[grants[0], "GRANT `bound`@`%`,`free`@`%` TO `app`@`%`"]);
    app.ok("INSERT INTO shop.t VALUES (1)");
    root.ok("REVOKE INSERT ON *.* FROM bound");
    root.ok("SET GLOBAL partial_revokes = OFF");
}

/// Through the protocol's calls that are no statements.
#[test]
fn calls_with_an_expired_password() {
    let server = server();
    let mut root = server.session();
    root.ok("CREATE USER app IDENTIFIED BY 'x' PASSWORD EXPIRE");
    root.ok("GRANT ALL ON test.* TO app");
    root.ok("CREATE TABLE test.t (a INT)");
    let mut app = server.connect("app", PEER).unwrap();
    let code = |result: Result<(), MysqlError>| result.map_err(|error| error.code);
    assert_eq!(code(rauk_node::block_on(app.session.init_db("test"))), Err(1820));
    assert_eq!(code(app.session.columns_of("t", "").map(drop)), Err(1820));
    let prepared = rauk_node::block_on(app.session.prepare("SELECT ?")).unwrap();
    let mut sink = crate::session::collect::Collector::default();
    assert_eq!(code(rauk_node::block_on(app.session.execute(prepared.id, &[Value::Int(1)], &mut sink))), Err(1820));
    app.ok("SET PASSWORD = 'y'");
    assert_eq!(code(rauk_node::block_on(app.session.execute(prepared.id, &[Value::Int(1)], &mut sink))), Ok(()));
}
