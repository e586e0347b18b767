//! Servers that a benchmark starts and ends itself: by their pids, in a temporary directory, on free ports.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Rauk,
    MariaDb,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Rauk => "Rauk",
            Kind::MariaDb => "MariaDB",
        }
    }
}

pub struct Server {
    pub kind: Kind,
    pub port: u16,
    child: Child,
}

/// Removed when dropped.
pub struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("cannot remove {}: {error}", self.0.display());
        }
    }
}

/// In the working directory, not in /tmp: that may be memory, and durable commits are measured.
pub fn temporary_directory() -> Result<TemporaryDirectory, String> {
    let path = std::env::current_dir().map_err(|e| e.to_string())?.join(format!("rauk-bench-{}", std::process::id()));
    std::fs::create_dir(&path).map_err(|e| format!("cannot make {}: {e}", path.display()))?;
    Ok(TemporaryDirectory(path))
}

impl Server {
    pub fn start(kind: Kind, root: &Path, durability: &str) -> Result<Server, String> {
        match kind {
            Kind::Rauk => start_rauk(&root.join("rauk"), durability),
            Kind::MariaDb => start_mariadb(&root.join("mariadb"), durability),
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// User and system time of all its threads so far.
    pub fn cpu_seconds(&self) -> Result<f64, String> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid()))
            .map_err(|e| format!("server is gone: {e}"))?;
        // The command's name may hold anything, in parentheses; fields 14 and 15 are counted from behind it.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
        let ticks: f64 = fields.get(11..13).map_or(0.0, |f| f.iter().filter_map(|t| t.parse::<f64>().ok()).sum());
        Ok(ticks / 100.0)
    }

    pub fn connect(&self) -> Result<mysql::Conn, String> {
        let options = mysql::OptsBuilder::new()
            .ip_or_hostname(Some("127.0.0.1"))
            .tcp_port(self.port)
            .user(Some("root"))
            .prefer_socket(false)
            .tcp_nodelay(true);
        mysql::Conn::new(options).map_err(|e| e.to_string())
    }

    pub fn stop(mut self) -> Result<(), String> {
        // SIGTERM: a clean stop.
        let pid = self.pid().to_string();
        Command::new("kill").args(["-TERM", &pid]).status().map_err(|e| e.to_string())?;
        let deadline = Instant::now() + Duration::from_secs(30);
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().map_err(|e| e.to_string())? {
                return if status.success() {
                    Ok(())
                } else {
                    Err(format!("{} ended with {status}", self.kind.name()))
                };
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(format!("{} did not stop within 30 s", self.kind.name()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After `stop` the process is gone and both calls do nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start_rauk(directory: &Path, durability: &str) -> Result<Server, String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut child = Command::new(program)
        .arg("start")
        .arg("--data-dir")
        .arg(directory)
        .args(["--mysql-port", "0", "--http-port", "0", "--durability", durability])
        .args(["--log-level", "warn"])
        .stdout(Stdio::piped())
        .stdin(Stdio::null())
        .spawn()
        .map_err(|e| format!("cannot start rauk: {e}"))?;
    let mut lines = BufReader::new(child.stdout.take().expect("standard output is piped")).lines();
    let port = loop {
        let Some(Ok(line)) = lines.next() else {
            let _ = child.kill();
            return Err("rauk ended before it was ready; its own message is above".into());
        };
        if let Some(port) = crate::start::port_of_ready_line(&line) {
            break port;
        }
    };
    // Whatever it prints later must not fill the pipe.
    std::thread::spawn(move || lines.for_each(drop));
    Ok(Server { kind: Kind::Rauk, port, child })
}

fn start_mariadb(directory: &Path, durability: &str) -> Result<Server, String> {
    let missing = |what: &str| format!("cannot start {what}: install Debian's mariadb-server");
    let installed = Command::new("mariadb-install-db")
        .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"])
        .arg(format!("--datadir={}", directory.display()))
        .arg("--user=root")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|_| missing("mariadb-install-db"))?;
    if !installed.success() {
        return Err("mariadb-install-db failed".into());
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
    let port = listener.local_addr().map_err(|e| e.to_string())?.port();
    drop(listener);
    let flush = if durability == "fsync" { 1 } else { 2 };
    let child = Command::new("mariadbd")
        .args(["--no-defaults", "--user=root", "--bind-address=127.0.0.1", "--skip-log-bin", "--max-connections=1000"])
        .arg(format!("--datadir={}", directory.display()))
        .arg(format!("--socket={}/mariadb.sock", directory.display()))
        .arg(format!("--port={port}"))
        .arg(format!("--innodb-flush-log-at-trx-commit={flush}"))
        .args(["--innodb-buffer-pool-size=2G", "--innodb-log-file-size=1G"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .stdin(Stdio::null())
        .spawn()
        .map_err(|_| missing("mariadbd"))?;
    let server = Server { kind: Kind::MariaDb, port, child };
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        match server.connect() {
            Ok(_) => return Ok(server),
            Err(error) if Instant::now() > deadline => return Err(format!("MariaDB does not answer: {error}")),
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}
