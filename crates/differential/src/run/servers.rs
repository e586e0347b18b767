//! The two servers of a run: temporary directories, no fixed port, ended with the value that holds them.
//!
//! MariaDB gets the settings that MySQL 8 and Rauk have by default, listens on a socket in its own directory, and does
//! not sync: its data is worth nothing.

use super::Error;
use mysql::{Conn, Opts, OptsBuilder};
use nix::sys::signal::{self, SigSet, Signal};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A server that does not answer a statement for so long counts as lost.
const PATIENCE: Duration = Duration::from_secs(90);

/// A machine has a bounded number of asynchronous requests, which several servers at once use up.
const NO_AIO: &str = "--innodb-use-native-aio=0";

/// Directories and the processes in them. A process is in the list as long as nobody has waited for it, so that its
/// number cannot be another's. Directories are made and processes started under the lock: none is forgotten.
static RUNNING: Mutex<Vec<(Option<u32>, PathBuf)>> = Mutex::new(Vec::new());

/// From now on SIGINT and SIGTERM end what this process has started, remove its directories, and end the process. To be
/// called before other threads start: they inherit that the signals wait.
pub fn end_with_this_process() -> Result<(), Error> {
    let signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM]);
    signals.thread_block().map_err(|e| Error::Signals(e.to_string()))?;
    std::thread::spawn(move || {
        if signals.wait().is_err() {
            return;
        }
        // Held until the end: nothing is started or waited for any more.
        let running = RUNNING.lock();
        for (pid, directory) in running.iter().flat_map(|running| running.iter()) {
            if let Some(pid) = pid {
                let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
            }
            // A program that is going may still write.
            let is_gone = || std::fs::remove_dir_all(directory).is_ok() || !directory.exists();
            (0..50).any(|_| {
                is_gone() || {
                    std::thread::sleep(Duration::from_millis(20));
                    false
                }
            });
        }
        std::process::exit(130);
    });
    Ok(())
}

/// A server that is killed, and its directory removed, when this is dropped.
struct Process {
    child: Child,
    directory: tempfile::TempDir,
}

impl Process {
    fn directory() -> Result<tempfile::TempDir, Error> {
        let mut running = RUNNING.lock().expect("nobody panics with it");
        let directory = tempfile::tempdir().map_err(Error::Directory)?;
        running.push((None, directory.path().to_path_buf()));
        Ok(directory)
    }

    fn spawn(command: &mut Command, directory: tempfile::TempDir) -> std::io::Result<Process> {
        let mut running = RUNNING.lock().expect("nobody panics with it");
        let child = command.spawn()?;
        running.push((Some(child.id()), directory.path().to_path_buf()));
        Ok(Process { child, directory })
    }

    /// Another process in the place of this one, which is killed.
    fn respawn(&mut self, command: &mut Command) -> std::io::Result<()> {
        let mut running = RUNNING.lock().expect("nobody panics with it");
        let own = running.iter_mut().find(|(_, directory)| directory == self.directory.path());
        let (pid, _) = own.expect("it is in the list until it is dropped");
        self.child.kill()?;
        self.child.wait()?;
        *pid = None;
        self.child = command.spawn()?;
        *pid = Some(self.child.id());
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let mut running = RUNNING.lock().expect("nobody panics with it");
        running.retain(|(_, directory)| directory != self.directory.path());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub struct MariaDb {
    socket: PathBuf,
    _process: Process,
}

fn missing(what: &'static str) -> impl Fn(std::io::Error) -> Error {
    move |cause| Error::Start {
        what,
        cause: format!("{cause}; install Debian's mariadb-server (scripts/setup.sh test)"),
    }
}

impl MariaDb {
    pub fn start() -> Result<MariaDb, Error> {
        let directory = Process::directory()?;
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
        let mut command = Command::new("mariadbd");
        command
            .args(["--no-defaults", "--user=root", "--skip-networking", "--skip-log-bin", NO_AIO])
            .args(["--innodb-flush-log-at-trx-commit=0", "--innodb-flush-method=nosync", "--innodb-buffer-pool-size=64M"])
            .args(["--character-set-server=utf8mb4", "--collation-server=utf8mb4_unicode_ci", "--explicit-defaults-for-timestamp=ON"])
            .arg("--sql-mode=ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION")
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--socket={}", socket.display()))
            .arg(&temporary)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .stdin(Stdio::null());
        let process = Process::spawn(&mut command, directory).map_err(missing("mariadbd"))?;
        let server = MariaDb { socket, _process: process };
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

pub struct Rauk {
    program: PathBuf,
    options: &'static [&'static str],
    port: u16,
    process: Process,
}

/// Its data is worth nothing after a crash.
const FAST: &[&str] = &["--durability", "relaxed", "--log-level", "warn"];

/// What it has acknowledged outlives it. Logs and checkpoints are small, so that recovery meets several of each; that it
/// undoes what a crash has cut off is no warning here.
const DURABLE: &[&str] =
    &["--durability", "fsync", "--redo-segment", "1MiB", "--checkpoint-redo", "1MiB", "--log-level", "error"];

impl Rauk {
    pub fn start(program: &Path) -> Result<Rauk, Error> {
        Self::start_with(program, FAST)
    }

    /// For tests that kill it ([`Rauk::crash`]).
    pub fn start_durable(program: &Path) -> Result<Rauk, Error> {
        Self::start_with(program, DURABLE)
    }

    fn start_with(program: &Path, options: &'static [&'static str]) -> Result<Rauk, Error> {
        let directory = Process::directory()?;
        let mut command = command(program, directory.path(), options);
        let process = Process::spawn(&mut command, directory);
        let mut process = process.map_err(|e| failed(program, format!("{e}; build it: cargo build -p rauk")))?;
        let port = wait_until_ready(program, &mut process.child)?;
        Ok(Rauk { program: program.to_path_buf(), options, port, process })
    }

    /// Another process on an empty directory, in the place of one that has ended or hangs.
    pub fn restart(&mut self) -> Result<(), Error> {
        *self = Rauk::start_with(&self.program.clone(), self.options)?;
        Ok(())
    }

    /// Kills the process, if it is still there, and starts another on the same directory.
    pub fn crash(&mut self) -> Result<(), Error> {
        let mut command = command(&self.program, self.process.directory.path(), self.options);
        self.process.respawn(&mut command).map_err(|e| failed(&self.program, e.to_string()))?;
        self.port = wait_until_ready(&self.program, &mut self.process.child)?;
        Ok(())
    }

    /// Kills the process after this time, from another thread. [`Rauk::crash`] is to follow when that thread has ended:
    /// until then nobody waits for the process, so that its number is no other's.
    pub fn kill_after(&self, delay: Duration) -> std::thread::JoinHandle<()> {
        let pid = Pid::from_raw(self.process.child.id().try_into().expect("a process number"));
        std::thread::spawn(move || {
            std::thread::sleep(delay);
            // It may have ended by itself.
            let _ = signal::kill(pid, Signal::SIGKILL);
        })
    }

    pub fn connect(&self) -> Result<Conn, mysql::Error> {
        let options = OptsBuilder::new().ip_or_hostname(Some("127.0.0.1")).tcp_port(self.port).user(Some("root"));
        let options = options.prefer_socket(false).tcp_nodelay(true);
        Conn::new(Opts::from(options.read_timeout(Some(PATIENCE)).write_timeout(Some(PATIENCE))))
    }
}

fn failed(program: &Path, cause: String) -> Error {
    Error::Start { what: "rauk", cause: format!("{}: {cause}", program.display()) }
}

fn command(program: &Path, directory: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(program);
    // Nothing of the caller's environment may configure the server.
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("RAUK_")) {
        command.env_remove(name);
    }
    command.arg("start").arg("--data-dir").arg(directory.join("data"));
    command.args(["--mysql-port", "0", "--http-port", "0", "--native-port", "0"]).args(options);
    command.args(["--memory-limit", "1GiB"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// Gives the port of MySQL's protocol.
fn wait_until_ready(program: &Path, child: &mut Child) -> Result<u16, Error> {
    let mut lines = BufReader::new(child.stdout.take().expect("standard output is piped")).lines();
    let port = loop {
        match lines.next() {
            Some(Ok(line)) => {
                if let Some(port) = port_of_ready_line(&line) {
                    break port;
                }
            }
            _ => {
                return Err(failed(program, "it ended before it was ready; its own message is above".into()));
            }
        }
    };
    // The pipe must not fill.
    std::thread::spawn(move || lines.for_each(drop));
    Ok(port)
}

/// `rauk is ready: mysql on 127.0.0.1:3306, …`
fn port_of_ready_line(line: &str) -> Option<u16> {
    let rest = line.strip_prefix("rauk is ready")?;
    let address = rest.split("mysql on ").nth(1)?.split([',', ' ']).next()?;
    address.rsplit_once(':')?.1.parse().ok()
}
