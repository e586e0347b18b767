//! Accounts of SQL at the native port of a real server: who is let in, what they may do, and what a change of an account does to a connection that is open.

use crate::common::{Rauk, run};
use mysql::Conn;
use rauk_client::blocking::{self, wait};
use rauk_client::{Client, Error, ErrorKind, Options, Record, Records};

#[derive(Record, Clone, Debug, PartialEq)]
#[rauk(database = "shop", table = "t")]
struct Row {
    #[rauk(key)]
    id: i32,
    v: i32,
}

#[derive(Record, Clone, Debug, PartialEq)]
#[rauk(database = "shop", table = "made")]
struct Made {
    #[rauk(key)]
    id: i32,
}

struct Shop {
    server: Rauk,
    sql: Conn,
    directory: tempfile::TempDir,
}

impl Shop {
    fn start(statements: &[&str]) -> Shop {
        let directory = tempfile::tempdir().expect("a directory");
        let server = Rauk::start(directory.path());
        let sql = server.connect();
        let mut shop = Shop { server, sql, directory };
        shop.sql("CREATE DATABASE shop");
        shop.sql("CREATE TABLE shop.t (id INT PRIMARY KEY, v INT NOT NULL)");
        shop.sql("CREATE TABLE shop.secrets (id INT PRIMARY KEY)");
        shop.sql("INSERT INTO shop.t VALUES (1, 10), (2, 20)");
        statements.iter().for_each(|statement| shop.sql(statement));
        shop
    }

    fn sql(&mut self, statement: &str) {
        let lines = run(&mut self.sql, statement);
        assert!(lines[0].starts_with("ok"), "{statement}: {lines:?}");
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.server.native_port)
    }

    fn login(&self, user: &str, password: &str) -> Result<Client, Error> {
        blocking::connect(&self.address(), Options::account(user, password))
    }

    fn owner(&self) -> Client {
        let secret = Options::secret_file(self.directory.path().join("native.secret"));
        blocking::connect(&self.address(), secret).expect("whoever knows the secret is let in")
    }
}

#[track_caller]
fn refused<T>(result: Result<T, Error>, code: u16, text: &str) {
    match result {
        Ok(_) => panic!("{code} was expected"),
        Err(error) => {
            assert_eq!(error.code, code, "{error}");
            assert!(error.message.contains(text), "{error}");
        }
    }
}

fn rows(client: &Client) -> Records<Row> {
    wait(client.open::<Row>()).expect("opened")
}

#[test]
fn an_account_does_what_it_may() {
    let shop = Shop::start(&[
        "CREATE USER app@localhost IDENTIFIED BY 'a long password'",
        "GRANT SELECT, INSERT ON shop.t TO app@localhost",
    ]);
    let address = format!("rauk://app:a%20long%20password@127.0.0.1:{}/?name=app", shop.server.native_port);
    let client = blocking::connect(&address, Options::default()).expect("the password is right");
    let t = rows(&client);
    let of = |command: &str| format!("{command} command denied to user 'app'@'localhost' for table 't'");
    assert_eq!(wait(t.get(1)), Ok(Some(Row { id: 1, v: 10 })));
    wait(t.insert(&Row { id: 3, v: 30 })).expect("it may insert");
    assert_eq!(wait(t.scan().collect()).expect("it may read").len(), 3);
    refused(wait(t.update(&Row { id: 1, v: 11 })), 1142, &of("UPDATE"));
    refused(wait(t.write(&Row { id: 1, v: 11 })), 1142, &of("UPDATE"));
    refused(wait(t.increment(1, "v", 1)), 1142, &of("UPDATE"));
    refused(wait(t.delete(1)), 1142, &of("DELETE"));
    // In a transaction the batch is refused, and the transaction goes on.
    let mut transaction = client.begin();
    wait(transaction.insert(&t, &Row { id: 4, v: 40 })).expect("it may insert");
    refused(wait(transaction.delete(&t, 1)), 1142, &of("DELETE"));
    refused(wait(transaction.get_for_update(&t, 1)), 1142, &of("SELECT with locking clause"));
    assert_eq!(wait(transaction.get(&t, 4)), Ok(Some(Row { id: 4, v: 40 })));
    wait(transaction.commit()).expect("committed");
    // Tables that it may not see, whether they exist or not, and definitions.
    refused(wait(client.table("shop", "secrets")), 1142, "for table 'secrets'");
    refused(wait(client.table("shop", "nothing")), 1142, "for table 'nothing'");
    refused(wait(client.drop_table("shop", "t")), 1142, &of("DROP"));
    refused(wait(client.open_or_create::<Made>()), 1142, "for table 'made'");
    // Whoever knows the secret may do everything.
    let owner = shop.owner();
    assert_eq!(wait(rows(&owner).get(4)), Ok(Some(Row { id: 4, v: 40 })));
    wait(rows(&owner).delete(4)).expect("everything is allowed");
    wait(owner.open_or_create::<Made>()).expect("made");
}

#[test]
fn changes_of_an_account_hold_for_open_connections() {
    let mut shop = Shop::start(&[
        "CREATE USER app IDENTIFIED BY 'one'",
        "CREATE ROLE editor",
        "GRANT SELECT ON shop.* TO app",
        "GRANT UPDATE, CREATE ON shop.* TO editor",
    ]);
    let client = shop.login("app", "one").expect("let in");
    let t = rows(&client);
    let update = |v: i32| wait(t.update(&Row { id: 1, v }));
    refused(update(11), 1142, "UPDATE command denied");
    shop.sql("GRANT UPDATE ON shop.t TO app");
    assert_eq!(update(11), Ok(true));
    shop.sql("REVOKE UPDATE ON shop.t FROM app");
    refused(update(12), 1142, "UPDATE command denied");
    shop.sql("REVOKE SELECT ON shop.* FROM app");
    refused(wait(t.get(1)), 1142, "SELECT command denied");
    refused(wait(t.scan().collect()), 1142, "SELECT command denied");
    shop.sql("GRANT SELECT ON shop.* TO app");
    assert_eq!(wait(t.get(1)), Ok(Some(Row { id: 1, v: 11 })));

    // Roles count that are active from the login on.
    shop.sql("GRANT editor TO app");
    shop.sql("SET DEFAULT ROLE editor TO app");
    let second = shop.login("app", "one").expect("let in");
    assert_eq!(wait(rows(&second).update(&Row { id: 1, v: 13 })), Ok(true));
    wait(second.open_or_create::<Made>()).expect("the role may create");
    shop.sql("REVOKE editor FROM app");
    refused(wait(rows(&second).update(&Row { id: 1, v: 14 })), 1142, "UPDATE command denied");

    // As at the MySQL port: a lock and a drop are for logins, a new password too.
    shop.sql("ALTER USER app IDENTIFIED BY 'two' RETAIN CURRENT PASSWORD");
    assert!(shop.login("app", "one").is_ok() && shop.login("app", "two").is_ok());
    shop.sql("ALTER USER app DISCARD OLD PASSWORD");
    refused(shop.login("app", "one"), 1045, "Access denied for user 'app'@'localhost' (using password: YES)");
    shop.sql("ALTER USER app ACCOUNT LOCK");
    refused(shop.login("app", "two"), 3118, "Account is locked");
    assert_eq!(wait(t.get(1)), Ok(Some(Row { id: 1, v: 13 })));
    shop.sql("DROP USER app");
    refused(shop.login("app", "two"), 1045, "Access denied");
    assert_eq!(wait(t.get(1)), Ok(Some(Row { id: 1, v: 13 })));
}

#[test]
fn logins_keep_the_rules_of_accounts() {
    let mut shop = Shop::start(&[
        "CREATE USER old IDENTIFIED WITH mysql_native_password BY 'in the old way'",
        "CREATE USER bare",
        "CREATE USER far@'10.9.8.7' IDENTIFIED BY 'password'",
        "CREATE USER blocked IDENTIFIED BY 'password' FAILED_LOGIN_ATTEMPTS 2 PASSWORD_LOCK_TIME 1",
        "CREATE USER tls IDENTIFIED BY 'password' REQUIRE SSL",
        "CREATE USER expired IDENTIFIED BY 'password' PASSWORD EXPIRE",
        "CREATE USER limited IDENTIFIED BY 'password' WITH MAX_QUERIES_PER_HOUR 3",
        "CREATE USER lonely IDENTIFIED BY 'password' WITH MAX_USER_CONNECTIONS 1",
        "GRANT SELECT ON shop.* TO old, limited",
    ]);
    let old = shop.login("old", "in the old way").expect("let in");
    assert_eq!(wait(rows(&old).get(2)), Ok(Some(Row { id: 2, v: 20 })));
    let denied = |user: &str, password: &str| {
        let text = format!("Access denied for user '{user}'@'localhost' (using password: YES)");
        refused(shop.login(user, password), 1045, &text);
    };
    denied("old", "in the new way");
    denied("nobody", "password");
    denied("far", "password");
    denied("tls", "password");
    // Nothing can be proved.
    denied("bare", "password");
    denied("root", "password");
    assert_eq!(shop.login("old", "").err().expect("refused").kind, ErrorKind::Connection);
    refused(shop.login("expired", "password"), 1862, "expired");
    denied("blocked", "wrong");
    refused(shop.login("blocked", "wrong"), 3955, "blocked");
    refused(shop.login("blocked", "password"), 3955, "blocked");

    // The definition is the first request.
    let limited = shop.login("limited", "password").expect("let in");
    let t = rows(&limited);
    assert!(wait(t.get(1)).is_ok() && wait(t.get(1)).is_ok());
    refused(wait(t.get(1)), 1226, "max_queries_per_hour");
    let lonely = shop.login("lonely", "password").expect("let in");
    let error = shop.login("lonely", "password").err().expect("one connection is allowed");
    assert_eq!((error.code, error.is_temporary()), (1226, true), "{error}");
    drop(lonely);

    // Guessing becomes slow, and whoever comes again is let in.
    let guess = || shop.login("old", "a guess").err().expect("a guess is wrong");
    let slow = (0..50).map(|_| guess()).find(|error| error.code != 1045).expect("guesses become slow");
    assert_eq!((slow.code, slow.is_temporary()), (1129, true), "{slow}");
    let again = |_: &i32| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        shop.login("old", "in the old way").is_ok()
    };
    assert!((0..1000).find(again).is_some(), "the right password is never looked at");
    shop.sql("SET GLOBAL require_secure_transport = ON");
    refused(shop.login("old", "in the old way"), 3159, "require_secure_transport");

    let said = shop.server.said();
    assert!(!said.contains("in the old way") && !said.contains("a guess"), "{said}");
}
