//! A server of this program for the time of a check (`rauk import --check`) or a measurement (`rauk size`): in a temporary
//! directory, on a free port of the loopback interface, removed at the end, also when the run is interrupted.
//!
//! What it says of a statement is what a server of this version says; the server that is imported into is not touched.

use crate::bench::process::{self, Process, TemporaryDirectory};
use crate::import::server::Place;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

pub struct Scratch {
    pub place: Place,
    // In this order: the process ends before its directory goes.
    _process: Process,
    _directory: TemporaryDirectory,
}

impl Scratch {
    pub fn start() -> Result<Scratch, String> {
        Scratch::start_with(&[])
    }

    /// With more flags of `rauk start`.
    pub fn start_with(flags: &[&str]) -> Result<Scratch, String> {
        let directory = process::temporary_directory_in(&std::env::temp_dir(), "rauk-check")?;
        process::end_with_this_process();
        let program = std::env::current_exe().map_err(|e| format!("cannot find this program: {e}"))?;
        let mut command = Command::new(program);
        // What is set for the server of this machine is not for this one.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("RAUK_")) {
            command.env_remove(name);
        }
        command
            .arg("start")
            .arg("--data-dir")
            .arg(directory.path().join("data"))
            .args(["--mysql-port", "0", "--http-port", "0", "--native-port", "0", "--durability", "relaxed"])
            .args(["--log-level", "error"])
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|e| format!("cannot start a server for the check: {e}"))?;
        let (stdout, stderr) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
        let process = Process::new("the server of the check", child);
        let mut lines = BufReader::new(stdout).lines();
        let port = loop {
            match lines.next() {
                Some(Ok(line)) => {
                    if let Some(port) = crate::start::port_of_ready_line(&line) {
                        break port;
                    }
                }
                _ => {
                    let mut said = String::new();
                    // It has ended, so this ends; what it said is one line.
                    let _ = stderr.take(1 << 16).read_to_string(&mut said);
                    return Err(format!("the server of the check did not start: {}", said.trim()));
                }
            }
        };
        // Neither pipe may fill.
        std::thread::spawn(move || lines.for_each(drop));
        std::thread::spawn(move || std::io::copy(&mut { stderr }, &mut std::io::sink()));
        let place = Place(crate::client::Options::root_at("127.0.0.1", port));
        Ok(Scratch { place, _process: process, _directory: directory })
    }
}
