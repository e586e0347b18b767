//! Files of rows on a real process: LOAD DATA from clients and from the server, SELECT … INTO OUTFILE, `rauk sql --local-infile`, mariadb-import.

use crate::common::{Rauk, rauk_command, run};
use mysql::LocalInfileHandler;
use mysql::prelude::Queryable;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::mpsc;
use std::time::Duration;

/// A server that may use the files of this directory.
fn start(data: &Path, files: &Path) -> Rauk {
    let mut command = rauk_command(data);
    command.arg("--secure-file-priv").arg(files);
    Rauk::start_with(command).unwrap_or_else(|error| panic!("{error}"))
}

fn shell(rauk: &Rauk, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rauk"));
    command.args(["sql", "--port", &rauk.port.to_string()]).args(arguments);
    command.output().expect("the shell runs")
}

#[test]
fn rows_go_out_and_come_in() {
    let (data, files) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let rauk = start(data.path(), files.path());
    let mut client = rauk.connect();
    for sql in [
        "SET GLOBAL local_infile = ON",
        "CREATE DATABASE d",
        "USE d",
        "CREATE TABLE a (id INT PRIMARY KEY, s VARCHAR(40), n DECIMAL(10,2))",
        "CREATE TABLE b LIKE a",
        "INSERT INTO a WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 900) \
         SELECT x.i * 1000 + y.i, CONCAT('row \\t', x.i, '\"', y.i), x.i / 4 FROM n x, n y WHERE x.i <= 50",
    ] {
        client.query_drop(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    let out = files.path().join("rows.csv").display().to_string();
    let options = "FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"'";
    assert_eq!(run(&mut client, &format!("SELECT * FROM a INTO OUTFILE '{out}' {options}")), ["ok 45000"]);
    assert_eq!(run(&mut client, &format!("LOAD DATA INFILE '{out}' INTO TABLE b {options}")), ["ok 45000"]);
    let sums = run(&mut client, "CHECKSUM TABLE a, b");
    assert_eq!(sums[0].replace("d.a", ""), sums[1].replace("d.b", ""));
    client.query_drop("DELETE FROM b").expect("they go");

    // The shell sends files only when it was told so.
    let load = format!("LOAD DATA LOCAL INFILE '{out}' INTO TABLE d.b {options}");
    let refused = shell(&rauk, &["-e", &load]);
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--local-infile"), "{refused:?}");
    let sent = shell(&rauk, &["--local-infile", "-e", &load]);
    assert!(
        String::from_utf8_lossy(&sent.stdout).contains("Records: 45000  Deleted: 0  Skipped: 0  Warnings: 0"),
        "{sent:?}"
    );
    assert_eq!(run(&mut client, "SELECT COUNT(*), SUM(n) FROM b"), run(&mut client, "SELECT COUNT(*), SUM(n) FROM a"));

    // MariaDB's own program names the table after the file.
    client.query_drop("RENAME TABLE b TO `rows`").expect("renamed");
    client.query_drop("DELETE FROM `rows`").expect("they go");
    let port = rauk.port.to_string();
    let imported = Command::new("mariadb-import")
        .args(["--no-defaults", "-h", "127.0.0.1", "-P", &port, "-u", "root", "--skip-ssl", "--local"])
        .args(["--fields-terminated-by=,", "--fields-optionally-enclosed-by=\"", "d", &out])
        .output();
    let imported = imported.expect("mariadb-import is installed");
    assert!(String::from_utf8_lossy(&imported.stdout).contains("Records: 45000"), "{imported:?}");
    let sums = run(&mut client, "CHECKSUM TABLE a, `rows`");
    assert_eq!(sums[0].replace("d.a", ""), sums[1].replace("d.rows", ""));
    assert_eq!(
        run(&mut client, &format!("SELECT 1 INTO OUTFILE '{}'", data.path().join("x").display())),
        ["error 1290"]
    );
}

#[test]
fn a_load_that_is_killed_leaves_nothing() {
    let (data, files) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let rauk = start(data.path(), files.path());
    let mut client = rauk.connect();
    client.query_drop("SET GLOBAL local_infile = ON").expect("root may");
    client.query_drop("CREATE DATABASE d").expect("created");
    client.query_drop("CREATE TABLE d.t (id INT PRIMARY KEY)").expect("created");
    let mut loader = rauk.connect();
    let id = loader.connection_id();
    let (begun, begins) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    loader.set_local_infile_handler(Some(LocalInfileHandler::new(move |_, out| {
        for row in 0..20_000 {
            writeln!(out, "{row}")?;
        }
        out.flush()?;
        begun.send(()).expect("somebody waits");
        goes_on.recv().expect("somebody says when");
        writeln!(out, "30000")
    })));
    let loading = std::thread::spawn(move || {
        let result = loader.query_drop("LOAD DATA LOCAL INFILE 'x' INTO TABLE d.t");
        let after: Option<u64> = loader.query_first("SELECT COUNT(*) FROM d.t").expect("the connection goes on");
        (result, after)
    });
    begins.recv_timeout(Duration::from_secs(30)).expect("it has begun");
    client.query_drop(format!("KILL QUERY {id}")).expect("it is there");
    std::thread::sleep(Duration::from_millis(100));
    // Its locks are gone although the client still has something to send.
    client.query_drop("INSERT INTO d.t VALUES (5)").expect("nothing is in the way");
    go_on.send(()).expect("it waits");
    let (result, after) = loading.join().expect("it ends");
    let Err(mysql::Error::MySqlError(error)) = result else { panic!("{result:?}") };
    assert_eq!((error.code, after), (1317, Some(1)));
}

#[test]
fn a_directory_that_is_not_there_is_refused() {
    let data = tempfile::tempdir().expect("a directory");
    let mut command = rauk_command(data.path());
    command.args(["--secure-file-priv", "/not/there"]);
    let Err(error) = Rauk::start_with(command) else { panic!("it started") };
    assert!(error.contains("secure-file-priv") && error.contains("/not/there"), "{error}");
}
