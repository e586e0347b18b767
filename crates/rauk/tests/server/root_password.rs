//! root's password as it is given at the start.

use crate::common::{Rauk, rauk_command, run};
use crate::process::refusal;
use mysql::{Conn, OptsBuilder};
use std::path::Path;
use std::process::Command;

fn login(server: &Rauk, password: &str) -> Result<Conn, mysql::Error> {
    let options = OptsBuilder::new().ip_or_hostname(Some("127.0.0.1")).tcp_port(server.port).prefer_socket(false);
    Conn::new(options.user(Some("root")).pass(Some(password)))
}

fn start(mut command: Command, change: impl FnOnce(&mut Command)) -> Rauk {
    command.args(["--log-level", "info"]);
    change(&mut command);
    Rauk::start_with(command).unwrap_or_else(|error| panic!("{error}"))
}

fn file(directory: &Path, name: &str, text: &str) -> String {
    let path = directory.join(name);
    std::fs::write(&path, text).expect("written");
    path.display().to_string()
}

#[test]
fn the_first_password_counts_and_a_lost_one_is_reset() {
    let (data, files) = (tempfile::tempdir().expect("made"), tempfile::tempdir().expect("made"));
    let server = start(rauk_command(data.path()), |command| {
        // What Kubernetes sets for a service that is called rauk harms nobody.
        command.env("RAUK_PORT", "tcp://10.0.0.1:3306").env("RAUK_SERVICE_HOST", "10.0.0.1");
        command.env("RAUK_ROOT_PASSWORD", "first word");
    });
    assert!(login(&server, "").is_err(), "there is no moment without a password");
    assert_eq!(run(&mut login(&server, "first word").expect("it is root's"), "SELECT 1"), ["1"]);
    assert!(!server.said().contains("first word"), "{}", server.said());
    assert!(server.stop().success());

    let second = file(files.path(), "second", "second word\n");
    let server = start(rauk_command(data.path()), |command| {
        command.args(["--root-password-file", &second]);
    });
    assert_eq!(server.said().matches("--root-password-file has no effect").count(), 1, "{}", server.said());
    assert!(login(&server, "second word").is_err());
    let mut root = login(&server, "first word").expect("it is the same");
    assert_eq!(run(&mut root, "ALTER USER root@localhost IDENTIFIED BY 'forgotten'"), ["ok 0"]);
    server.kill();

    let server = start(rauk_command(data.path()), |command| {
        command.args(["--reset-root-password", &second]);
    });
    assert!(
        server.said().contains("root@localhost has a new password, given by --reset-root-password"),
        "{}",
        server.said()
    );
    assert!(login(&server, "forgotten").is_err());
    assert_eq!(run(&mut login(&server, "second word").expect("it is the new one"), "SELECT 1"), ["1"]);
    assert!(server.stop().success());
}

#[test]
fn files_without_a_password_are_refused_in_one_line() {
    let (data, files) = (tempfile::tempdir().expect("made"), tempfile::tempdir().expect("made"));
    for (name, text) in [("empty", ""), ("line", "\n"), ("two", "a\nb\n")] {
        let mut command = rauk_command(data.path());
        command.args(["--root-password-file", &file(files.path(), name, text)]);
        let line = refusal(command);
        assert!(line.contains(&format!("{name} must have one line, the password")), "{line}");
    }
    let mut command = rauk_command(data.path());
    command.args(["--reset-root-password", "/not/there"]);
    let line = refusal(command);
    assert!(line.contains("--reset-root-password: cannot read /not/there"), "{line}");
}
