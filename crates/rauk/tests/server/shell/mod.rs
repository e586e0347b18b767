//! `rauk sql` against a real server: scripts, the prompt on a pseudo terminal, connections.

mod connections;
mod prompt;
mod scripts;
mod terminal;

use crate::common::Rauk;
use std::io::Write;
use std::process::{Command, Stdio};

/// The shell without the environment's settings.
fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rauk"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("RAUK_") || name.starts_with("MYSQL_")) {
        command.env_remove(name);
    }
    command.arg("sql").args(arguments);
    command
}

/// What a shell said, and its exit code.
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

fn finished(mut command: Command, input: &[u8]) -> Said {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the shell starts");
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_vec();
    // A shell that ends before has not read everything.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("no panic");
    Said {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).expect("UTF-8"),
        err: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

fn piped(server: &Rauk, arguments: &[&str], input: &[u8]) -> Said {
    let port = server.port.to_string();
    finished(command(&[&["-P", &port], arguments].concat()), input)
}

/// A run that must go well; what it says.
fn good(server: &Rauk, arguments: &[&str], input: &str) -> String {
    let said = piped(server, arguments, input.as_bytes());
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{arguments:?} {input}: {}", said.out);
    said.out
}

/// A run that must fail with code 1; what it says on standard error.
fn bad(server: &Rauk, arguments: &[&str], input: &[u8]) -> String {
    let said = piped(server, arguments, input);
    assert_eq!(said.code, Some(1), "{arguments:?}: {} {}", said.out, said.err);
    said.err
}
