//! The servers of `rauk bench sql`.

use super::process::{Process, cpu_time, free_port};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
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
    process: Process,
}

impl Server {
    pub fn start(kind: Kind, root: &Path, durability: &str) -> Result<Server, String> {
        match kind {
            Kind::Rauk => start_rauk(&root.join("rauk"), durability),
            Kind::MariaDb => start_mariadb(&root.join("mariadb"), durability),
        }
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// User and system time of all its threads so far.
    pub fn cpu_seconds(&self) -> Result<f64, String> {
        cpu_time(self.pid()).map(|time| time.own)
    }

    pub fn connect(&self) -> Result<mysql::Conn, String> {
        connect(self.port)
    }

    pub fn stop(self) -> Result<(), String> {
        self.process.stop()
    }
}

/// As root, on the loopback interface.
pub fn connect(port: u16) -> Result<mysql::Conn, String> {
    mysql::Conn::new(way(port)).map_err(|e| e.to_string())
}

/// A connection that gives up waiting for an answer after this time; it is of no use from then on.
pub fn connect_with_patience(port: u16, patience: Duration) -> Result<mysql::Conn, String> {
    let way = way(port).tcp_connect_timeout(Some(patience)).read_timeout(Some(patience)).write_timeout(Some(patience));
    mysql::Conn::new(way).map_err(|e| e.to_string())
}

/// A statement that is a transaction of its own, sent again while it conflicts with others or with a cluster that moves its primaries.
pub fn again_on_conflict(connection: &mut mysql::Conn, statement: &str) -> Result<(), String> {
    use mysql::prelude::Queryable;
    for _ in 0..100 {
        match connection.query_drop(statement) {
            Err(error) if is_conflict(&error) => std::thread::sleep(Duration::from_millis(20)),
            other => return other.map_err(|e| e.to_string()),
        }
    }
    Err(format!("conflicts again and again: {}", statement.chars().take(80).collect::<String>()))
}

/// Deadlock, lock wait timeout, a row that changed since the snapshot.
pub fn is_conflict(error: &mysql::Error) -> bool {
    matches!(error, mysql::Error::MySqlError(e) if matches!(e.code, 1020 | 1205 | 1213))
}

fn way(port: u16) -> mysql::OptsBuilder {
    mysql::OptsBuilder::new()
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(port)
        .user(Some("root"))
        .prefer_socket(false)
        .tcp_nodelay(true)
}

fn start_rauk(directory: &Path, durability: &str) -> Result<Server, String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut child = Command::new(program)
        .arg("start")
        .arg("--data-dir")
        .arg(directory)
        .args(["--mysql-port", "0", "--http-port", "0", "--native-port", "0", "--durability", durability])
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
    Ok(Server { kind: Kind::Rauk, port, process: Process::new(Kind::Rauk.name(), child) })
}

fn missing(what: &str) -> String {
    format!("cannot start {what}: install Debian's mariadb-server")
}

/// `--tmpdir` of a server with this data directory, beside that. A MariaDB that starts removes what it finds of temporary
/// tables, those of others too where they share a directory.
pub fn temporary(directory: &Path) -> Result<String, String> {
    let temporary = directory.with_extension("tmp");
    std::fs::create_dir_all(&temporary).map_err(|e| format!("cannot make {}: {e}", temporary.display()))?;
    Ok(format!("--tmpdir={}", temporary.display()))
}

/// A data directory of MariaDB, whose root has no password.
pub fn install_mariadb(directory: &Path) -> Result<(), String> {
    let installed = Command::new("mariadb-install-db")
        .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"])
        .arg(format!("--datadir={}", directory.display()))
        .arg("--user=root")
        .arg(temporary(directory)?)
        .output()
        .map_err(|_| missing("mariadb-install-db"))?;
    if installed.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&[installed.stdout, installed.stderr].concat()).into_owned();
    // Its last lines ask to report a bug.
    let cause = said.lines().find(|line| line.contains("ERROR")).or(said.lines().next()).unwrap_or_default();
    Err(format!("mariadb-install-db failed ({}): {cause}", installed.status))
}

fn start_mariadb(directory: &Path, durability: &str) -> Result<Server, String> {
    install_mariadb(directory)?;
    let port = free_port()?;
    let flush = if durability == "fsync" { 1 } else { 2 };
    let child = Command::new("mariadbd")
        .args(["--no-defaults", "--user=root", "--bind-address=127.0.0.1", "--skip-log-bin", "--max-connections=1000"])
        .arg(format!("--datadir={}", directory.display()))
        .arg(format!("--socket={}/mariadb.sock", directory.display()))
        .arg(temporary(directory)?)
        .arg(format!("--port={port}"))
        .arg(format!("--innodb-flush-log-at-trx-commit={flush}"))
        .args(["--innodb-buffer-pool-size=2G", "--innodb-log-file-size=1G", "--local-infile=1"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .stdin(Stdio::null())
        .spawn()
        .map_err(|_| missing("mariadbd"))?;
    let server = Server { kind: Kind::MariaDb, port, process: Process::new(Kind::MariaDb.name(), child) };
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        match server.connect() {
            Ok(_) => return Ok(server),
            Err(error) if Instant::now() > deadline => return Err(format!("MariaDB does not answer: {error}")),
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}
