//! Hosts, TLS, environment variables, accounts.

use super::{bad, command, finished, good};
use crate::common::{Rauk, rauk_command, run};
use std::net::TcpListener;

#[test]
fn the_first_host_that_answers_is_taken() {
    let data = tempfile::tempdir().expect("a directory");
    let server = Rauk::start(data.path());
    let free = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
    let hosts = format!("127.0.0.1:{free},localhost:{},[::1]:{free}", server.port);
    let said = finished(command(&["-h", &hosts, "-e", "SELECT 1 AS one"]), b"");
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    // An answer is an answer: no other host is asked whether it would take a wrong account.
    let hosts = format!("127.0.0.1:{},127.0.0.1:{free}", server.port);
    let said = finished(command(&["-h", &hosts, "-u", "nobody", "-e", "SELECT 1"]), b"");
    assert!(said.code == Some(1) && said.err.starts_with("rauk: ERROR 1045"), "{}", said.err);
    let hosts = format!("127.0.0.1:{free},no-such-host.invalid");
    let said = finished(command(&["-h", &hosts, "-e", "SELECT 1"]), b"");
    assert!(said.code == Some(1) && said.err.lines().count() == 2 && said.err.contains("no-such-host.invalid"));
    let said = finished(command(&["-h", "a:b:,"]), b"");
    assert!(said.code == Some(1) && said.err.contains("--host"), "{}", said.err);
}

#[test]
fn variables_of_the_environment_stand_behind_flags() {
    let data = tempfile::tempdir().expect("a directory");
    let server = Rauk::start(data.path());
    let mut connection = server.connect();
    run(&mut connection, "CREATE USER eva IDENTIFIED BY 'right'");
    let with = |variables: &[(&str, &str)], arguments: &[&str]| {
        let mut shell =
            command(&[arguments, &["--format", "tsv", "--no-header", "-e", "SELECT CURRENT_USER()"]].concat());
        shell.envs(variables.iter().copied());
        let said = finished(shell, b"");
        if said.code == Some(0) { said.out } else { said.err }
    };
    let port = server.port.to_string();
    assert_eq!(with(&[("MYSQL_TCP_PORT", &port), ("MYSQL_HOST", "localhost")], &[]), "root@localhost\n");
    assert_eq!(
        with(&[("RAUK_MYSQL_PORT", &port), ("RAUK_HOST", "0.0.0.0"), ("MYSQL_TCP_PORT", "1")], &[]),
        "root@localhost\n"
    );
    let eva = ["-P", &port, "-u", "eva"];
    assert_eq!(with(&[("MYSQL_PWD", "right")], &eva), "eva@%\n");
    assert!(with(&[("MYSQL_PWD", "wrong")], &eva).contains("ERROR 1045"));
    assert_eq!(with(&[("MYSQL_PWD", "wrong")], &[&eva[..], &["-pright"]].concat()), "eva@%\n");
    assert_eq!(with(&[], &[&eva[..], &["--password=right"]].concat()), "eva@%\n");
    assert!(with(&[("MYSQL_TCP_PORT", "many")], &[]).contains("MYSQL_TCP_PORT: 'many' is no port number"));
    assert!(with(&[("MYSQL_UNIX_PORT", "/not/there.sock")], &[]).contains("/not/there.sock"));
}

#[test]
fn a_unix_socket() {
    let data = tempfile::tempdir().expect("a directory");
    let path = data.path().join("s.sock");
    let mut started = rauk_command(&data.path().join("data"));
    started.arg("--socket").arg(&path);
    let server = Rauk::start_with(started).unwrap_or_else(|e| panic!("{e}"));
    let socket = path.display().to_string();
    let said = finished(command(&["-S", &socket, "-e", "status"]), b"");
    assert!(
        said.code == Some(0) && said.out.contains(&format!("server:        {socket}\ntls:           none")),
        "{}",
        said.out
    );
    let mut shell = command(&["-e", "status"]);
    shell.env("MYSQL_UNIX_PORT", &socket).env("MYSQL_TCP_PORT", "1");
    assert!(finished(shell, b"").out.contains(&socket));
    let error = bad(&server, &["-S", &socket, "--ssl-mode", "REQUIRED", "-e", "SELECT 1"], b"");
    assert!(error.contains("a Unix socket has no TLS"), "{error}");
}

#[test]
fn tls_by_every_mode() {
    let data = tempfile::tempdir().expect("a directory");
    let server = Rauk::start(data.path());
    let certificate = data.path().join("server-cert.pem").display().to_string();
    let cipher = "SHOW SESSION STATUS LIKE 'Ssl_cipher'";
    let encrypted = |arguments: &[&str]| {
        let out = good(&server, &[arguments, &["--format", "tsv", "--no-header", "-e", cipher]].concat(), "");
        out.trim_end().len() > "Ssl_cipher".len()
    };
    assert!(encrypted(&[]));
    assert!(!encrypted(&["--ssl-mode", "DISABLED"]));
    assert!(encrypted(&["--ssl-mode", "required"]));
    assert!(encrypted(&["--ssl-mode", "VERIFY_CA", "--ssl-ca", &certificate]));
    assert!(encrypted(&["--ssl-ca", &certificate, "-h", "127.0.0.1"]));
    assert!(encrypted(&["--ssl-mode", "VERIFY_IDENTITY", "--ssl-ca", &certificate, "-h", "localhost"]));
    assert!(good(&server, &["-e", "status"], "").contains("tls:           TLSv1.3"));

    // A certificate of another server proves nothing.
    let other = tempfile::tempdir().expect("a directory");
    let second = Rauk::start(other.path());
    let foreign = other.path().join("server-cert.pem").display().to_string();
    for mode in ["VERIFY_CA", "VERIFY_IDENTITY"] {
        let error = bad(&server, &["--ssl-mode", mode, "--ssl-ca", &foreign, "-e", "SELECT 1"], b"");
        assert!(error.contains("certificate") && error.lines().count() == 1, "{error}");
    }
    drop(second);
    assert!(bad(&server, &["--ssl-mode", "VERIFY_CA", "-e", "SELECT 1"], b"").contains("need --ssl-ca"));
    assert!(bad(&server, &["--ssl-ca", "/not/there.pem", "-e", "SELECT 1"], b"").contains("/not/there.pem"));

    // An account that requires it; long answers and statements go through whole.
    let mut connection = server.connect();
    run(&mut connection, "CREATE USER safe IDENTIFIED BY 'p' REQUIRE SSL");
    assert!(
        bad(&server, &["-u", "safe", "-pp", "--ssl-mode", "DISABLED", "-e", "SELECT 1"], b"").contains("ERROR 1045")
    );
    assert!(good(&server, &["-u", "safe", "-pp", "-e", "SELECT 1 AS one"], "").contains("| one |"));
    let long = format!("SELECT LENGTH('{}') AS n, REPEAT('y', 5000000) AS y", "x".repeat(5_000_000));
    let out = good(&server, &["--format", "tsv", "--no-header"], &long);
    assert!(out.starts_with("5000000\tyyy") && out.len() == 5_000_009, "{}", out.len());
    // No directory of a relay is left.
    let ours = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with("rauk-tls-");
    let dead = |entry: &std::fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name.split('-').nth(2).unwrap_or("").to_string();
        !std::path::Path::new(&format!("/proc/{pid}")).exists()
    };
    let left = std::fs::read_dir(std::env::temp_dir())
        .expect("readable")
        .flatten()
        .filter(dead)
        .filter_map(|e| ours(e).then_some(()));
    assert_eq!(left.count(), 0);
}
