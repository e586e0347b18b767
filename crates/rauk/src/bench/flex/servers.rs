//! The servers of a run: Rauk, Redis, memcached, each a process of this run on a free port of the loopback interface.
//!
//! Peers are set as they are fastest for this: no persistence when Rauk is `relaxed`; at `fsync` Redis logs and syncs each write before it answers. memcached
//! has no persistence. Memory is bounded, and nothing is thrown out to make room: a key that is gone would be an error of the run.

use crate::bench::process::{Process, free_port};
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A native port and the way in.
#[derive(Clone, Debug)]
pub struct NativePort {
    pub address: String,
    pub secret_file: PathBuf,
}

pub fn start_rauk(
    directory: &Path,
    durability: &str,
    longest_wait: Option<u64>,
) -> Result<(Process, NativePort), String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut command = Command::new(program);
    // What configures other servers of this machine must not configure this one.
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("RAUK_")) {
        command.env_remove(name);
    }
    command
        .arg("start")
        .arg("--data-dir")
        .arg(directory)
        .args(["--mysql-port", "0", "--http-port", "0", "--native-port", "0"])
        .args(["--durability", durability, "--log-level", "warn"]);
    if let Some(micros) = longest_wait {
        command.args(["--native-longest-wait", &micros.to_string()]);
    }
    let mut child =
        command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn().map_err(|e| format!("cannot start rauk: {e}"))?;
    let mut lines = BufReader::new(child.stdout.take().expect("standard output is piped")).lines();
    let process = Process::new("rauk", child);
    let address = loop {
        let Some(Ok(line)) = lines.next() else {
            return Err("rauk ended before it was ready; its own message is above".into());
        };
        if let Some(address) = native_of_ready_line(&line) {
            break address.to_string();
        }
    };
    // Whatever it prints later must not fill the pipe.
    std::thread::spawn(move || lines.for_each(drop));
    Ok((process, NativePort { address, secret_file: directory.join("native.secret") }))
}

/// `… native on 127.0.0.1:4407, …`
fn native_of_ready_line(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("rauk is ready: ")?;
    rest.split(", ").find_map(|part| part.strip_prefix("native on "))
}

pub fn start_redis(directory: &Path, fsync: bool) -> Result<(Process, u16), String> {
    std::fs::create_dir_all(directory).map_err(|e| format!("cannot make {}: {e}", directory.display()))?;
    let memory = (memory() / 10 * 4).to_string();
    let start = |port: u16| {
        let mut command = Command::new("redis-server");
        command
            .args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--daemonize", "no", "--save", ""])
            .args(["--maxmemory", &memory, "--maxmemory-policy", "noeviction", "--loglevel", "warning"])
            .args(["--appendonly", if fsync { "yes" } else { "no" }, "--appendfsync", "always"])
            .args(["--auto-aof-rewrite-percentage", "0"])
            .arg("--dir")
            .arg(directory);
        command
    };
    start_peer("redis-server", "redis-server", start)
}

pub fn start_memcached(keys: u64) -> Result<(Process, u16), String> {
    let memory = ((memory() / 10 * 4) >> 20).to_string();
    // As large as the keys need from the beginning, so that it does not grow while it is measured.
    let power = (64 - keys.leading_zeros()).clamp(16, 30);
    let start = |port: u16| {
        let mut command = Command::new("memcached");
        command
            .args(["-l", "127.0.0.1", "-p", &port.to_string(), "-U", "0", "-m", &memory, "-M"])
            // More commands of a connection at once than its default of 20: what pipelines want.
            .args(["-t", "2", "-R", "1000", "-c", "1024", "-I", "8m", "-u", "root"])
            .args(["-o", &format!("hashpower={power}")]);
        command
    };
    start_peer("memcached", "memcached", start)
}

/// Starts it on a free port and waits until it answers; on another when somebody else was quicker.
fn start_peer(name: &'static str, package: &str, command: impl Fn(u16) -> Command) -> Result<(Process, u16), String> {
    let mut last = String::new();
    for _ in 0..3 {
        let port = free_port()?;
        let child =
            command(port).stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null()).spawn().map_err(|e| {
                format!("cannot start {name} ({e}): install Debian's {package}, or leave it out of --against")
            })?;
        let mut process = Process::new(name, child);
        let deadline = Instant::now() + Duration::from_secs(20);
        while Instant::now() < deadline {
            if let Some(words) = process.ended() {
                last = words;
                break;
            }
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Ok((process, port));
            }
            std::thread::sleep(Duration::from_millis(20));
            last = format!("{name} does not answer on port {port}");
        }
    }
    Err(last)
}

/// Of the machine, in bytes.
fn memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse().ok());
    total.map_or(4 << 30, |kib: u64| kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_native_port_is_found_in_the_ready_line() {
        let line = "rauk is ready: mysql on 127.0.0.1:1, native on 127.0.0.1:4407, http on 127.0.0.1:2, data in /x";
        assert_eq!(native_of_ready_line(line), Some("127.0.0.1:4407"));
        assert_eq!(native_of_ready_line("rauk is ready: mysql on 127.0.0.1:1, data in /native on x"), None);
    }

    #[test]
    fn a_peer_that_is_not_installed_is_named_with_its_package() {
        let error = start_peer("memcached", "memcached", |_| Command::new("/nowhere/memcached")).err().unwrap();
        assert!(error.contains("install Debian's memcached") && error.contains("--against"), "{error}");
    }
}
