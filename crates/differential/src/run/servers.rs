//! The two servers of a run: temporary directories, no fixed port, ended with the value that holds them.
//!
//! MariaDB gets the settings that MySQL 8 and Rauk have by default, listens on a socket in its own directory, and does
//! not sync: its data is worth nothing.

use super::Error;
use mysql::{Conn, Opts, OptsBuilder};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server that does not answer a statement for so long counts as lost.
const PATIENCE: Duration = Duration::from_secs(90);

/// A machine has a bounded number of asynchronous requests, which several servers at once use up.
const NO_AIO: &str = "--innodb-use-native-aio=0";

pub struct MariaDb {
    socket: PathBuf,
    child: Child,
    _directory: tempfile::TempDir,
}

fn missing(what: &'static str) -> impl Fn(std::io::Error) -> Error {
    move |cause| Error::Start {
        what,
        cause: format!("{cause}; install Debian's mariadb-server (scripts/setup.sh test)"),
    }
}

impl MariaDb {
    pub fn start() -> Result<MariaDb, Error> {
        let directory = tempfile::tempdir().map_err(Error::Directory)?;
        let data = directory.path().join("data");
        // A MariaDB that starts removes what it finds of temporary tables: of others too, were the directory shared.
        let temporary = directory.path().join("tmp");
        std::fs::create_dir(&temporary).map_err(Error::Directory)?;
        let temporary = format!("--tmpdir={}", temporary.display());
        let installed = Command::new("mariadb-install-db")
            .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", "--user=root"])
            .args([NO_AIO, &temporary])
            .arg(format!("--datadir={}", data.display()))
            .output()
            .map_err(missing("mariadb-install-db"))?;
        if !installed.status.success() {
            let said = [installed.stdout, installed.stderr].concat();
            let cause = format!("{}: {}", installed.status, String::from_utf8_lossy(&said));
            return Err(Error::Start { what: "mariadb-install-db", cause });
        }
        let socket = directory.path().join("m.sock");
        let child = Command::new("mariadbd")
            .args(["--no-defaults", "--user=root", "--skip-networking", "--skip-log-bin", NO_AIO])
            .args(["--innodb-flush-log-at-trx-commit=0", "--innodb-flush-method=nosync", "--innodb-buffer-pool-size=64M"])
            .args(["--character-set-server=utf8mb4", "--collation-server=utf8mb4_unicode_ci", "--explicit-defaults-for-timestamp=ON"])
            .arg("--sql-mode=ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION")
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--socket={}", socket.display()))
            .arg(&temporary)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .stdin(Stdio::null())
            .spawn()
            .map_err(missing("mariadbd"))?;
        let server = MariaDb { socket, child, _directory: directory };
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            match server.connect() {
                Ok(_) => return Ok(server),
                Err(error) if Instant::now() > deadline => {
                    return Err(Error::Start { what: "mariadbd", cause: error.to_string() });
                }
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    /// As root.
    pub fn connect(&self) -> Result<Conn, mysql::Error> {
        let options = OptsBuilder::new().socket(Some(self.socket.display().to_string())).user(Some("root"));
        Conn::new(options.read_timeout(Some(PATIENCE)).write_timeout(Some(PATIENCE)))
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub struct Rauk {
    program: PathBuf,
    port: u16,
    child: Child,
    _directory: tempfile::TempDir,
}

impl Rauk {
    pub fn start(program: &Path) -> Result<Rauk, Error> {
        let directory = tempfile::tempdir().map_err(Error::Directory)?;
        let mut command = Command::new(program);
        // Nothing of the caller's environment may configure the server.
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("RAUK_")) {
            command.env_remove(name);
        }
        command.arg("start").arg("--data-dir").arg(directory.path().join("data"));
        command.args(["--mysql-port", "0", "--http-port", "0", "--native-port", "0", "--durability", "relaxed"]);
        command.args(["--memory-limit", "1GiB", "--log-level", "warn"]);
        let failed = |cause: String| Error::Start { what: "rauk", cause: format!("{}: {cause}", program.display()) };
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| failed(format!("{e}; build it: cargo build -p rauk")))?;
        let mut lines = BufReader::new(child.stdout.take().expect("standard output is piped")).lines();
        let port = loop {
            match lines.next() {
                Some(Ok(line)) => {
                    if let Some(port) = port_of_ready_line(&line) {
                        break port;
                    }
                }
                _ => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(failed("it ended before it was ready; its own message is above".into()));
                }
            }
        };
        // The pipe must not fill.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(Rauk { program: program.to_path_buf(), port, child, _directory: directory })
    }

    /// Another process on an empty directory, in the place of one that has ended or hangs.
    pub fn restart(&mut self) -> Result<(), Error> {
        *self = Rauk::start(&self.program.clone())?;
        Ok(())
    }

    pub fn connect(&self) -> Result<Conn, mysql::Error> {
        let options = OptsBuilder::new().ip_or_hostname(Some("127.0.0.1")).tcp_port(self.port).user(Some("root"));
        let options = options.prefer_socket(false).tcp_nodelay(true);
        Conn::new(Opts::from(options.read_timeout(Some(PATIENCE)).write_timeout(Some(PATIENCE))))
    }
}

impl Drop for Rauk {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `rauk is ready: mysql on 127.0.0.1:3306, …`
fn port_of_ready_line(line: &str) -> Option<u16> {
    let rest = line.strip_prefix("rauk is ready")?;
    let address = rest.split("mysql on ").nth(1)?.split([',', ' ']).next()?;
    address.rsplit_once(':')?.1.parse().ok()
}
