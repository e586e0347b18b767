//! Output that nobody reads: tools end quietly, servers go on.

use crate::common::{Rauk, connect_to, rauk_command, run};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The writing end of a pipe whose reader has gone, as of `| head` when that has seen enough.
fn closed_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

/// How a tool ends, and what it says on standard error.
fn unread(arguments: &[&str]) -> (ExitStatus, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rauk"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("RAUK_")) {
        command.env_remove(name);
    }
    let command = command.args(arguments).stdin(Stdio::null()).stdout(closed_pipe()).stderr(Stdio::piped());
    let output = command.spawn().and_then(|child| child.wait_with_output()).expect("rauk can be started");
    (output.status, String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_tool_that_nobody_reads_ends_without_a_word() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let server = Rauk::start(data.path());
    let port = server.port.to_string();
    for tool in [&["status"][..], &["sql", "-e", "SELECT 1; SELECT 2"]] {
        let arguments = [tool, &["--port", &port]].concat();
        let (status, said) = unread(&arguments);
        assert_eq!((status.code(), said.as_str()), (Some(141), ""), "{arguments:?}");
    }
    for help in [&["--help"][..], &["bench", "cluster", "--help"], &["--version"]] {
        let (status, said) = unread(help);
        assert!(status.code() != Some(101) && said.is_empty(), "{help:?}: {status} {said}");
    }
    // What fails for another reason still says so.
    let (status, said) = unread(&["sql", "--port", &port, "-e", "SELECT nothing"]);
    assert!(status.code() == Some(1) && said.contains("ERROR 1054"), "{status} {said}");
    assert_eq!(run(&mut server.connect(), "SELECT 1"), ["1"]);
}

#[test]
fn a_benchmark_that_nobody_reads_leaves_nothing_behind() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut command = Command::new(env!("CARGO_BIN_EXE_rauk"));
    let small = "bench cluster --only scale --nodes 1 --warehouses 2 --threads 1 --partitions 4 --seconds 1 --rounds 1";
    command.current_dir(directory.path()).args(small.split(' ')).args(["--no-control", "--remote", "0"]);
    let command = command.stdin(Stdio::null()).stdout(closed_pipe()).stderr(Stdio::piped());
    let output = command.spawn().and_then(|child| child.wait_with_output()).expect("rauk can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(141), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    let left: Vec<_> = std::fs::read_dir(directory.path()).expect("readable").flatten().map(|e| e.path()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_server_goes_on_though_nobody_reads_what_it_says() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let mut command = rauk_command(data.path());
    // A line for each connection and more, all of which nobody reads.
    let command = command.args(["--log-level", "trace"]).stdout(closed_pipe()).stderr(closed_pipe());
    let mut server = command.spawn().expect("rauk can be started");
    let end = Instant::now() + Duration::from_secs(60);
    let port = loop {
        let ready = std::fs::read(data.path().join("ready.json")).ok();
        let ready = ready.and_then(|text| serde_json::from_slice::<serde_json::Value>(&text).ok());
        let address = ready.and_then(|ready| ready["mysql"].as_str()?.rsplit_once(':')?.1.parse::<u16>().ok());
        if let Some(port) = address {
            break port;
        }
        assert!(server.try_wait().expect("a child").is_none(), "it ended before it served");
        assert!(Instant::now() < end, "it does not serve");
        std::thread::sleep(Duration::from_millis(10));
    };
    for _ in 0..3 {
        let mut connection = connect_to(port).expect("it serves");
        assert_eq!(run(&mut connection, "SELECT 1"), ["1"]);
    }
    let pid = server.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs").success());
    assert_eq!(server.wait().expect("a child").code(), Some(0), "an end in order");
}
