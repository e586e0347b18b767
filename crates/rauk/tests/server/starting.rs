//! A server that recovers, as load balancers, clients and its operator meet it: it answers on its ports and says how far it is.

use crate::common::cluster::own_port;
use crate::common::{Rauk, connect_to, number, rauk_command};
use mysql::prelude::Queryable;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// A debug build on a machine that does other things as well.
const PATIENCE: Duration = Duration::from_secs(60);
const ROWS: u64 = 30_000;

/// Code and body of a page; `None`: nobody answers there.
fn page(port: u16, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.into()))
}

/// A directory with rows in its checkpoint.
fn filled(directory: &Path) {
    let server = Rauk::start(directory);
    let mut connection = server.connect();
    connection.query_drop("CREATE DATABASE d").expect("made");
    connection.query_drop("CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(1000))").expect("made");
    for first in (0..ROWS).step_by(1000) {
        let values: Vec<String> = (first..first + 1000).map(|id| format!("({id}, REPEAT('x', 900))")).collect();
        connection.query_drop(format!("INSERT INTO d.t VALUES {}", values.join(", "))).expect("there is room");
    }
    assert!(server.stop().success());
}

/// What a client of this machine says on standard error of a connection that it is refused.
fn refused(mut command: Command) -> String {
    let output = command.output().expect("the client runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "it was let in: {}{said}", String::from_utf8_lossy(&output.stdout));
    said
}

#[test]
fn a_server_that_recovers_says_how_far_it_is() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    filled(directory.path());
    let (mysql, http) = (own_port(), own_port());
    let mut command = rauk_command(directory.path());
    command.args(["--mysql-port", &mysql.to_string(), "--http-port", &http.to_string()]);
    // Each block of the checkpoint takes long.
    command.env("RAUK_FAULT", "checkpoint.read.block:pause=60@1+");
    let server = std::thread::spawn(move || Rauk::start_with(command).unwrap_or_else(|error| panic!("{error}")));

    // It gets further, and says so as data.
    let began = Instant::now();
    let mut percents: Vec<u64> = Vec::new();
    while percents.len() < 3 {
        assert!(began.elapsed() < PATIENCE, "it never gets further: {percents:?}");
        let Some((code, body)) = page(http, "/health") else { continue };
        assert_eq!(code, 503, "it serves already, after {percents:?}: {body}");
        let health: serde_json::Value = serde_json::from_str(&body).expect("JSON");
        if health["status"] != "recovering" {
            continue;
        }
        assert_eq!(health["step"], "checkpoint", "{body}");
        let percent = health["percent"].as_u64().expect("a number");
        assert!(percent < 100 && percents.last().is_none_or(|last| *last <= percent), "{percents:?}, then {body}");
        if percent > 0 && percents.last() != Some(&percent) {
            assert!(health["seconds_left"].as_u64().is_some_and(|left| left > 0), "{body}");
            assert!(health["rows"].as_u64().is_some_and(|rows| rows <= ROWS), "{body}");
            percents.push(percent);
        }
    }

    // Clients get the same in words, whichever they are.
    let told = "the server is starting and takes no connections yet: recovery of its data is at ";
    let Err(mysql::Error::MySqlError(error)) = connect_to(mysql) else { panic!("it was let in, or hears nothing") };
    assert_eq!(error.code, 1053);
    assert!(error.message.starts_with(told) && error.message.ends_with(" s left"), "{error}");
    let port = mysql.to_string();
    for subcommand in [&["sql", "-e", "SELECT 1"][..], &["status"]] {
        let mut client = Command::new(env!("CARGO_BIN_EXE_rauk"));
        client.args(subcommand).args(["--port", &port]);
        let said = refused(client);
        assert!(said.contains("1053") && said.contains(told), "{subcommand:?}: {said}");
    }
    let mut client = Command::new("mariadb");
    client.args(["--no-defaults", "-h127.0.0.1", "-P", &port, "-uroot", "-e", "SELECT 1"]);
    let said = refused(client);
    // Its newest version shows an error before TLS as 2002, with code and text in it.
    assert!(said.contains("1053") && said.contains(told), "{said}");
    let (code, body) = page(http, "/cluster").expect("it answers");
    assert!(code == 503 && body.contains("\"recovering\""), "{code} {body}");
    let (code, metrics) = page(http, "/metrics").expect("it answers");
    assert_eq!(code, 200);
    let value = |text: &str, name: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("{name} is missing: {text}")).parse().expect("a number")
    };
    assert_eq!(value(&metrics, "rauk_recovering"), 1);
    assert!(value(&metrics, "rauk_recovery_percent") >= percents[2] && value(&metrics, "rauk_recovery_rows") > 0);
    assert!(value(&metrics, "rauk_recovery_left_seconds") > 0);
    let refused = value(&metrics, "rauk_connections_refused_while_starting_total");
    assert!(refused >= 4, "{refused}");

    // Then it serves, on the same ports.
    let server = server.join().expect("it starts");
    assert_eq!((server.port, server.http_port), (mysql, http));
    assert_eq!(number(&mut server.connect(), "SELECT COUNT(*) FROM d.t"), ROWS);
    assert!(server.http("/health").contains("200 OK"));
    let metrics = server.http("/metrics");
    assert_eq!((value(&metrics, "rauk_recovering"), value(&metrics, "rauk_recovery_percent")), (0, 100));
    assert_eq!(value(&metrics, "rauk_connections_refused_while_starting_total"), refused);
}
