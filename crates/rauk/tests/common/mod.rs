//! A real `rauk` process for a test: temporary directory, free ports, ended by pid.
#![allow(dead_code)]

pub mod cluster;
pub mod mariadb;
pub mod markdown;
pub mod namespace;
#[path = "../../src/bench/cluster/relay.rs"]
pub mod relay;
pub mod sysbench;

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Value};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub struct Rauk {
    pub port: u16,
    pub http_port: u16,
    pub native_port: u16,
    /// The network namespace that it is in.
    namespace: Option<String>,
    child: Child,
    /// On standard error, so far.
    said: Arc<Mutex<String>>,
    /// Reads on, so that the pipe never fills.
    _stdout: std::thread::JoinHandle<()>,
    stderr: Option<std::thread::JoinHandle<()>>,
}

/// The command that a test starts; more flags and variables can be added.
pub fn rauk_command(data_dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rauk"));
    // Nothing of the caller's environment may configure the server under test.
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("RAUK_")) {
        command.env_remove(name);
    }
    command.arg("start").arg("--data-dir").arg(data_dir).args([
        "--mysql-port",
        "0",
        "--http-port",
        "0",
        "--native-port",
        "0",
    ]);
    command.args(["--memory-limit", "1GiB", "--log-level", "warn"]).stdin(Stdio::null());
    command
}

impl Rauk {
    pub fn start(data_dir: &Path) -> Rauk {
        Self::start_with(rauk_command(data_dir)).unwrap_or_else(|e| panic!("{e}"))
    }

    /// In a network namespace of the test's.
    pub fn start_within(namespace: &str, command: Command) -> Result<Rauk, String> {
        let mut rauk = Self::start_with(namespace::command(namespace, &command))?;
        rauk.namespace = Some(namespace.to_string());
        Ok(rauk)
    }

    /// Waits for the ready line; `Err` with what it said when the process ends before.
    pub fn start_with(mut command: Command) -> Result<Rauk, String> {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("rauk can be started");
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        let stderr = child.stderr.take().expect("piped");
        let said = Arc::new(Mutex::new(String::new()));
        let (words, mut reader) = (said.clone(), BufReader::new(stderr));
        let stderr = std::thread::spawn(move || {
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|n| n > 0) {
                let mut words = words.lock().expect("nobody panics with it");
                // Bounded, since a server may say much.
                if words.len() < 1 << 20 {
                    words.push_str(&line);
                }
                line.clear();
            }
        });
        match ready_ports(&mut out) {
            Some((port, native_port, http_port)) => {
                let rest = std::thread::spawn(move || {
                    let _ = std::io::copy(&mut out, &mut std::io::sink());
                });
                Ok(Rauk {
                    port,
                    http_port,
                    native_port,
                    namespace: None,
                    child,
                    said,
                    _stdout: rest,
                    stderr: Some(stderr),
                })
            }
            None => {
                let status = child.wait().expect("a child can be waited for");
                let _ = stderr.join();
                Err(format!("{status}: {}", said.lock().expect("nobody panics with it")))
            }
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn try_connect(&self) -> Result<Conn, mysql::Error> {
        match &self.namespace {
            Some(space) => namespace::within(space, || connect_to(self.port)),
            None => connect_to(self.port),
        }
    }

    pub fn connect(&self) -> Conn {
        self.try_connect().expect("root can connect from loopback")
    }

    /// kill -9.
    pub fn kill(mut self) {
        self.child.kill().expect("a child can be killed");
        self.child.wait().expect("a child can be waited for");
    }

    /// SIGTERM and wait.
    pub fn stop(mut self) -> ExitStatus {
        self.signal("TERM");
        self.wait(Duration::from_secs(30)).expect("rauk stops within 30 s of SIGTERM")
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().expect("kill runs").success());
    }

    pub fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                return Some(status);
            }
            if Instant::now() > deadline {
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// On standard error, so far.
    pub fn said(&self) -> String {
        self.said.lock().expect("nobody panics with it").clone()
    }

    /// What a process that ends by itself has said.
    pub fn last_words(mut self, limit: Duration) -> String {
        self.wait(limit).expect("it ends by itself");
        self.stderr.take().expect("taken only here").join().expect("read to its end");
        self.said.lock().expect("nobody panics with it").clone()
    }

    /// Body of an HTTP GET.
    pub fn http(&self, path: &str) -> String {
        use std::io::Write;
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", self.http_port)).expect("the HTTP port answers");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("written");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("read");
        text
    }
}

impl Drop for Rauk {
    fn drop(&mut self) {
        // Why the test fails may be in it.
        if std::thread::panicking()
            && let Ok(said) = self.said.lock()
        {
            let lines: Vec<&str> = said.lines().collect();
            println!("process {} has said:\n  {}", self.pid(), lines[lines.len().saturating_sub(40)..].join("\n  "));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// As root, from loopback.
pub fn connect_to(port: u16) -> Result<Conn, mysql::Error> {
    let options = OptsBuilder::new().ip_or_hostname(Some("127.0.0.1")).tcp_port(port);
    Conn::new(options.user(Some("root")).prefer_socket(false))
}

fn ready_ports(out: &mut BufReader<ChildStdout>) -> Option<(u16, u16, u16)> {
    let mut line = String::new();
    loop {
        line.clear();
        if out.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.starts_with("rauk is ready") {
            let port = |name: &str| -> Option<u16> {
                let address = line.split(&format!("{name} on ")).nth(1)?.split([',', ' ']).next()?;
                address.rsplit_once(':')?.1.parse().ok()
            };
            // A node without the role sql has neither of the first two.
            return Some((port("mysql").unwrap_or(0), port("native").unwrap_or(0), port("http")?));
        }
    }
}

/// The only value of a statement's only row.
pub fn number(connection: &mut Conn, sql: &str) -> u64 {
    let lines = run(connection, sql);
    lines[0].parse().unwrap_or_else(|_| panic!("{sql}: {lines:?}"))
}

/// Rows of one statement as text, columns joined by ` | `; `ok N` for a statement without rows, `error N` for an error.
pub fn run(connection: &mut Conn, sql: &str) -> Vec<String> {
    let result = connection.query_iter(sql).and_then(|mut result| {
        let columns = result.columns().as_ref().len();
        let affected = result.affected_rows();
        let mut lines = Vec::new();
        for row in result.by_ref() {
            let cells: Vec<String> = row?.unwrap_raw().into_iter().map(|v| text(&v.unwrap_or(Value::NULL))).collect();
            lines.push(cells.join(" | "));
        }
        Ok((columns, affected, lines))
    });
    match result {
        Ok((0, affected, _)) => vec![format!("ok {affected}")],
        Ok((_, _, lines)) if lines.is_empty() => vec!["(empty)".into()],
        Ok((_, _, lines)) => lines,
        Err(mysql::Error::MySqlError(e)) => vec![format!("error {}", e.code)],
        Err(other) => vec![format!("lost: {other}")],
    }
}

/// All that a client hears of a statement.
pub fn told(connection: &mut Conn, sql: &str) -> String {
    let lines = run(connection, sql);
    let info = connection.info_str().into_owned();
    let warnings = run(connection, "SHOW WARNINGS");
    format!("{lines:?} {info} {warnings:?}")
}

pub fn text(value: &Value) -> String {
    match value {
        Value::NULL => "NULL".into(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => other.as_sql(true).trim_matches('\'').into(),
    }
}

/// `rauk bench PART …` with a working directory, and without variables that configure a server.
pub fn bench_in(directory: &Path, part: &str, arguments: &[&str]) -> std::process::Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rauk"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("RAUK_")) {
        command.env_remove(name);
    }
    let output = command.current_dir(directory).args(["bench", part]).args(arguments).output();
    output.expect("rauk can be started")
}

/// No directory of a run is left in this one.
pub fn check_nothing_is_left(directory: &Path) {
    for entry in std::fs::read_dir(directory).expect("readable") {
        let name = entry.expect("readable").file_name().to_string_lossy().into_owned();
        assert!(!name.starts_with("rauk-bench"), "the run left {name} behind");
    }
}
