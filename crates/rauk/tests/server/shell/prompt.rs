//! The prompt on a pseudo terminal: lines, commands, Tab, Ctrl-C, passwords, a server that restarts.

use super::command;
use super::terminal::Terminal;
use crate::common::{Rauk, rauk_command, run};
use crate::online_ddl::{Hold, held_server};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

const PROMPT: &str = "rauk> ";

struct Place {
    data: tempfile::TempDir,
    home: tempfile::TempDir,
}

fn place() -> (Place, Rauk) {
    let place =
        Place { data: tempfile::tempdir().expect("a directory"), home: tempfile::tempdir().expect("a directory") };
    let server = Rauk::start(place.data.path());
    (place, server)
}

fn shell(home: &Path, server: &Rauk, arguments: &[&str]) -> Terminal {
    let port = server.port.to_string();
    let mut command = command(&[&["-P", &port], arguments].concat());
    command.env("HOME", home).env_remove("PAGER").env_remove("VISUAL").env_remove("EDITOR");
    Terminal::start(command)
}

fn history(home: &Path) -> String {
    std::fs::read_to_string(home.join(".rauk_history")).unwrap_or_default()
}

#[test]
fn lines_commands_and_history() {
    let (place, server) = place();
    let mut shell = shell(place.home.path(), &server, &[]);
    shell.wait_for("help lists the commands");
    shell.wait_for(PROMPT);
    shell.line("SELECT 41 + 1 AS n; SELECT 'two' AS t;", "| two |");
    shell.wait_for(PROMPT);
    shell.keys("SELECT 'a\r");
    shell.wait_for("   '> ");
    shell.keys("b' AS x,\r");
    shell.wait_for("   -> ");
    shell.line("3 AS y\\G", "x: a\r\nb\r\ny: 3");
    shell.wait_for(PROMPT);
    assert!(shell.line("help", "Tab completes").contains("Run the statements of a file"));
    shell.wait_for(PROMPT);
    shell.line("help frobnicate", "there is no command 'frobnicate'");
    shell.line("\\y", "there is no command '\\y'");
    shell.line("CREATE DATABASE shop;", "OK, 1 row affected");
    shell.line("use shop", "OK, 0 rows");
    shell.line("CREATE USER eva IDENTIFIED BY 'hidden';", "OK, 0 rows");
    shell.line("SET PASSWORD FOR eva = 'hidden';", "OK, 0 rows");
    shell.line("SELECT nothing;", "ERROR 1054");
    shell.line("SELECT 1 \\c", PROMPT);
    shell.line("delimiter //", PROMPT);
    shell.line("SELECT DATABASE(), ';' //", "| shop");
    shell.line("delimiter ;", PROMPT);
    shell.line("\\W", "warnings are shown");
    shell.line("SELECT CAST('1x' AS SIGNED);", "Warning (Code 1292)");
    shell.line("format json", PROMPT);
    shell.line("SELECT NULL AS n;", "{\"n\": null}");
    shell.wait_for("1 row (");
    shell.line("format table", PROMPT);
    shell.line("pager tr a-z A-Z", "results go to");
    shell.line("SELECT 'loud' AS x;", "| LOUD |");
    shell.line("nopager", PROMPT);
    shell.line("\\! echo from the $((1 + 1))nd shell", "from the 2nd shell");
    shell.line("status", "database:      shop");
    shell.line("tee", "tee needs a file");
    // Lines that are typed while a statement runs are all there afterwards.
    shell.keys("DO SLEEP(0.3);\rSELECT 'ahead 1' AS a;\rSELECT 'ahead 2' AS b;\rSELECT 'ahead 3' AS c;\r");
    for row in ["| ahead 1 |", "| ahead 2 |", "| ahead 3 |"] {
        shell.wait_for(row);
    }
    shell.wait_for(PROMPT);
    let file = place.home.path().join("f.sql");
    std::fs::write(&file, "SELECT 'from a file';\nNONSENSE;\nSELECT 'not reached';\n").expect("written");
    shell.line(&format!("source {}", file.display()), "f.sql:2: ERROR 1064");
    shell.wait_for(PROMPT);
    shell.line("system echo no", "no");
    assert!(!shell.all().contains("| not reached"));
    shell.keys("\\q\r");
    assert_eq!(shell.ends().code(), Some(0));

    let kept = history(place.home.path());
    assert!(kept.contains("SELECT 41 + 1 AS n; SELECT 'two' AS t;"), "{kept}");
    assert!(kept.contains("SELECT 'a\\nb' AS x,\\n3 AS y\\\\G"), "lines of a statement are one entry: {kept}");
    assert!(!kept.contains("hidden"), "{kept}");
    let mode = std::fs::metadata(place.home.path().join(".rauk_history")).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    // The whole statement comes back with one key, and runs.
    let mut again = super::prompt::shell(place.home.path(), &server, &["shop"]);
    again.wait_for("database shop");
    again.wait_for(PROMPT);
    again.line("SELECT 'x\r' AS\r z;", "z");
    again.wait_for("1 row (");
    again.wait_for(PROMPT);
    again.keys("\x1b[A\r");
    again.wait_for("1 row (");
    again.keys("\x04");
    assert_eq!(again.ends().code(), Some(0));
}

#[test]
fn tab_completes_what_the_server_has() {
    let (place, server) = place();
    let mut connection = server.connect();
    for sql in [
        "CREATE DATABASE shop",
        "CREATE TABLE shop.customers (id INT PRIMARY KEY, loyalty_points INT, `odd name` INT)",
        "INSERT INTO shop.customers VALUES (7, 5501, 3)",
    ] {
        run(&mut connection, sql);
    }
    let mut shell = shell(place.home.path(), &server, &[]);
    shell.wait_for(PROMPT);
    shell.line("use sho\t", "OK, 0 rows");
    shell.wait_for(PROMPT);
    shell.line("SELE\t loyal\t FROM cust\t;", "|           5501 |");
    shell.wait_for(PROMPT);
    shell.line("SELECT c.loy\t + 1 AS n FROM customers c;", "ERROR 1054");
    shell.wait_for(PROMPT);
    shell.line("SELECT `odd\t FROM shop.cus\t;", "|        3 |");
    shell.wait_for(PROMPT);
    // A table of now.
    shell.line("CREATE TABLE orders_of_today (id INT);", "OK, 0 rows");
    shell.wait_for(PROMPT);
    shell.line("SELECT COUNT(*) AS orders FROM orders_of\t;", "|      0 |");
    shell.wait_for(PROMPT);
    // Another session's only when asked for.
    run(&mut connection, "CREATE TABLE shop.made_elsewhere (id INT)");
    shell.line("\\#", PROMPT);
    shell.line("SELECT COUNT(*) AS elsewhere FROM made_e\t;", "|         0 |");
    shell.wait_for(PROMPT);
    // The session has not noticed: its warnings are still there.
    shell.line("SELECT CAST('1x' AS SIGNED);", "1 row, 1 warning");
    shell.wait_for(PROMPT);
    shell.line("SHOW WARN\t;", "1292");
    shell.keys("\x04");
    assert_eq!(shell.ends().code(), Some(0));
}

fn wait_until_runs(connection: &mut mysql::Conn, statement: &str) {
    let sql = format!("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO = '{statement}'");
    let end = Instant::now() + Duration::from_secs(60);
    while run(connection, &sql) != ["1"] {
        assert!(Instant::now() < end, "it does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn ctrl_c_cancels_the_statement_or_the_line() {
    let (place, server) = place();
    let mut connection = server.connect();
    run(&mut connection, "CREATE DATABASE d");
    run(&mut connection, "CREATE TABLE d.t (id INT PRIMARY KEY)");
    run(&mut connection, "INSERT INTO d.t VALUES (1)");
    let mut shell = shell(place.home.path(), &server, &["d"]);
    shell.wait_for(PROMPT);
    // A statement that waits for a lock, long enough to show its time.
    run(&mut connection, "BEGIN");
    run(&mut connection, "DELETE FROM d.t");
    let mut other = server.connect();
    shell.line("SET innodb_lock_wait_timeout = 1000;", "OK");
    shell.wait_for(PROMPT);
    shell.keys("DELETE FROM t;\r");
    wait_until_runs(&mut other, "DELETE FROM t");
    shell.wait_for("1 s");
    shell.keys("\x03");
    shell.wait_for("ERROR 1317");
    shell.wait_for(PROMPT);
    run(&mut connection, "ROLLBACK");
    // The next one is not meant.
    shell.line("DELETE FROM t;", "OK, 1 row affected");
    shell.wait_for(PROMPT);
    // At the prompt it forgets what was typed, on this line and before.
    shell.keys("SELECT 'never\r");
    shell.wait_for("   '> ");
    shell.keys("nothing\x03");
    shell.wait_for(PROMPT);
    shell.line("SELECT 'after' AS x;", "| after |");
    shell.wait_for(PROMPT);
    // A program of the system has Ctrl-C for itself.
    shell.line("system echo started; exec sleep 1000", "\nstarted");
    shell.keys("\x03");
    shell.wait_for("signal: 2");
    shell.wait_for(PROMPT);
    // A file ends with it, though its statement does not fail.
    let file = place.home.path().join("f.sql");
    std::fs::write(&file, "DO SLEEP(1000);\nSELECT 'not reached';\n").expect("written");
    shell.keys(&format!("source {}\r", file.display()));
    wait_until_runs(&mut other, "DO SLEEP(1000)");
    shell.keys("\x03");
    shell.wait_for(PROMPT);
    shell.line("SELECT 'prompt' AS x;", "| prompt |");
    assert!(!shell.all().contains("not reached |"));
    shell.wait_for(PROMPT);
    // Rows that stream through a pager that has seen enough.
    run(
        &mut connection,
        "INSERT INTO d.t WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT i FROM n",
    );
    shell.line("pager head -n 3", "results go to");
    shell.wait_for(PROMPT);
    shell.line("SELECT a.id AS rows_without_end FROM t a, t b, t c, t d;", "| rows_without_end |");
    shell.wait_for(PROMPT);
    shell.line("nopager", PROMPT);
    shell.line("SELECT 'still here' AS x;", "| still here |");
    shell.keys("exit\r");
    assert_eq!(shell.ends().code(), Some(0));
}

#[test]
fn a_long_alter_shows_how_far_it_is() {
    let (data, home) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let hold = Hold(home.path().join("hold"));
    let server = held_server(data.path(), "node.ddl.copy", &hold);
    let mut shell = shell(home.path(), &server, &["d"]);
    shell.wait_for(PROMPT);
    shell.keys("ALTER TABLE t MODIFY b BIGINT NOT NULL;\r");
    shell.wait_for("s: copying rows 0 %");
    drop(hold);
    shell.wait_for("OK, 1000 rows affected");
    shell.wait_for(PROMPT);
    // What is no DDL shows its time alone.
    shell.keys("DO SLEEP(3);\r");
    let shown = shell.wait_for("OK");
    assert!(!shown.contains(" s: "), "{shown}");
    shell.keys("exit\r");
    assert_eq!(shell.ends().code(), Some(0));
}

#[test]
fn a_password_is_asked_for_and_not_shown() {
    let (place, server) = place();
    run(&mut server.connect(), "CREATE USER eva IDENTIFIED BY 'geheim ä'");
    run(&mut server.connect(), "GRANT ALL ON *.* TO eva");
    run(&mut server.connect(), "CREATE DATABASE shop");
    let mut right = shell(place.home.path(), &server, &["-u", "eva", "-p", "shop"]);
    right.wait_for("Password: ");
    right.keys("geheim äx\x7f\r");
    right.wait_for("database shop");
    right.wait_for(PROMPT);
    right.line("SELECT CURRENT_USER();", "| eva@%");
    assert!(!right.all().contains("geheim"), "{}", right.all());
    right.keys("\x04");
    assert_eq!(right.ends().code(), Some(0));
    let mut wrong = shell(place.home.path(), &server, &["-u", "eva", "--password"]);
    wrong.wait_for("Password: ");
    wrong.keys("guess\r");
    wrong.wait_for("ERROR 1045");
    assert_eq!(wrong.ends().code(), Some(1));
    let mut given_up = shell(place.home.path(), &server, &["-u", "eva", "-p"]);
    given_up.wait_for("Password: ");
    given_up.keys("gue\x03");
    given_up.wait_for("no password was typed");
    assert_eq!(given_up.ends().code(), Some(1));
}

fn restart(place: &Place, port: u16) -> Rauk {
    let mut command = rauk_command(place.data.path());
    command.args(["--mysql-port", &port.to_string()]);
    Rauk::start_with(command).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn a_lost_connection_comes_back_and_nothing_is_repeated() {
    let (place, server) = place();
    let port = server.port;
    let mut shell = shell(place.home.path(), &server, &[]);
    shell.wait_for(PROMPT);
    shell.line("CREATE DATABASE d;", "OK");
    shell.line("USE d;", "OK");
    shell.line("CREATE TABLE t (id INT PRIMARY KEY);", "OK");
    shell.wait_for(PROMPT);
    // Without a transaction: the statement runs on the new connection, in the same database.
    server.kill();
    let server = restart(&place, port);
    shell.keys("INSERT INTO t VALUES (1);\r");
    let said = shell.wait_for("OK, 1 row affected");
    assert!(
        said.contains("the connection was lost; connected again to 127.0.0.1") && said.contains("database d"),
        "{said}"
    );
    shell.wait_for(PROMPT);
    // With one: it is lost, and what belongs to it does not run by itself.
    shell.line("BEGIN;", "OK");
    shell.line("INSERT INTO t VALUES (2);", "OK");
    shell.wait_for(PROMPT);
    server.kill();
    let server = restart(&place, port);
    shell.line("INSERT INTO t VALUES (3);", "the open transaction was lost with the connection");
    shell.wait_for("the statement was not run");
    shell.wait_for(PROMPT);
    shell.line("SELECT COUNT(*) AS n, MAX(id) AS m FROM t;", "| 1 | 1 |");
    shell.wait_for(PROMPT);
    // While a statement runs: its outcome is unknown.
    let mut other = server.connect();
    shell.keys("INSERT INTO t SELECT 4 + SLEEP(1000);\r");
    wait_until_runs(&mut other, "INSERT INTO t SELECT 4 + SLEEP(1000)");
    server.kill();
    shell.wait_for("the connection was lost while the statement ran");
    shell.wait_for("unknown; it is not repeated");
    shell.wait_for(PROMPT);
    // No server at all, then one.
    shell.line("SELECT 'no server';", "the statement was not run");
    shell.wait_for("cannot connect to 127.0.0.1");
    shell.wait_for(PROMPT);
    let server = restart(&place, port);
    shell.line("SELECT COUNT(*) AS n, MAX(id) AS m FROM t;", "| 1 | 1 |");
    // A connection that an administrator ends.
    shell.wait_for(PROMPT);
    let mut admin = server.connect();
    let theirs = "SELECT ID FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID()";
    let id = run(&mut admin, theirs).remove(0);
    run(&mut admin, &format!("KILL {id}"));
    let end = Instant::now() + Duration::from_secs(30);
    while run(&mut admin, theirs) != ["(empty)"] {
        assert!(Instant::now() < end, "it is there");
        std::thread::sleep(Duration::from_millis(5));
    }
    let said = shell.line("SELECT DATABASE() AS here;", "connected again");
    if said.contains("while the statement ran") {
        // The session was off the list before its connection was closed.
        shell.wait_for(PROMPT);
        shell.keys("SELECT DATABASE() AS here;\r");
    }
    shell.wait_for("| d    |");
    shell.wait_for(PROMPT);
    // A database that is not there, before and afterwards.
    shell.line("connect nowhere", "ERROR 1049");
    shell.line("SELECT DATABASE() AS still;", "| d     |");
    shell.wait_for(PROMPT);
    run(&mut admin, "DROP DATABASE d");
    drop(admin);
    let port = server.port;
    server.kill();
    let _server = restart(&place, port);
    shell.line("SELECT DATABASE() AS gone;", "there is no current database");
    shell.wait_for("| NULL |");
    shell.keys("\\q\r");
    assert_eq!(shell.ends().code(), Some(0));
}

#[test]
fn the_next_host_takes_over() {
    let (place, first) = place();
    let other = tempfile::tempdir().expect("a directory");
    let second = Rauk::start(other.path());
    for server in [&first, &second] {
        run(&mut server.connect(), "CREATE DATABASE shop");
    }
    let hosts = format!("127.0.0.1:{},127.0.0.1:{}", first.port, second.port);
    let mut shell = shell(place.home.path(), &first, &["-h", &hosts, "shop"]);
    shell.wait_for(&format!("connected to 127.0.0.1:{}, database shop", first.port));
    shell.wait_for(PROMPT);
    first.kill();
    let said =
        shell.line("SELECT @@port AS p, DATABASE() AS d;", &format!("connected again to 127.0.0.1:{}", second.port));
    assert!(!said.contains("while the statement ran"), "{said}");
    shell.wait_for(&format!("| {} | shop |", second.port));
    shell.wait_for(PROMPT);
    // No server is left.
    second.kill();
    shell.line("SELECT 1;", "the connection is lost; the statement was not run");
    let said = shell.wait_for(PROMPT);
    assert_eq!(said.matches("cannot connect to 127.0.0.1").count(), 2, "{said}");
    shell.keys("\x04");
    assert_eq!(shell.ends().code(), Some(0));
}

#[test]
fn a_statement_is_edited_in_the_editor() {
    let (place, server) = place();
    let editor = place.home.path().join("editor");
    std::fs::write(&editor, "#!/bin/sh\nstat -c %a \"$1\" > \"$HOME/mode\"\nsed -i 's/wrong/right/; s/$/;/' \"$1\"\n")
        .expect("written");
    std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o700)).expect("set");
    let port = server.port.to_string();
    let mut command = command(&["-P", &port]);
    command.env("HOME", place.home.path()).env("EDITOR", &editor).env_remove("VISUAL");
    let mut shell = Terminal::start(command);
    shell.wait_for(PROMPT);
    shell.line("SELECT 'wrong' AS x\\e", "| right |");
    shell.wait_for(PROMPT);
    shell.line("SELECT 'wrong' AS y;", "| wrong |");
    shell.wait_for(PROMPT);
    shell.line("\\e", "| right |");
    shell.keys("\\q\r");
    assert_eq!(shell.ends().code(), Some(0));
    assert_eq!(std::fs::read_to_string(place.home.path().join("mode")).expect("written"), "600\n");
}
