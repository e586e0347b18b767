//! A MariaDB for a test, ended with the value that holds it.

use super::connect_to;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server by itself, in a temporary directory, on a free port.
pub struct MariaDb {
    pub port: u16,
    child: Child,
    _directory: tempfile::TempDir,
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl MariaDb {
    pub fn start() -> MariaDb {
        MariaDb::start_with(&[])
    }

    /// With more options of mariadbd's.
    pub fn start_with(options: &[&str]) -> MariaDb {
        let directory = tempfile::tempdir().expect("a directory");
        let data = format!("--datadir={}", directory.path().join("data").display());
        // A MariaDB that starts removes what it finds of temporary tables: of others too, were the directory shared.
        let temporary = directory.path().join("tmp");
        std::fs::create_dir(&temporary).expect("a directory for temporary tables");
        let temporary = format!("--tmpdir={}", temporary.display());
        let installed = Command::new("mariadb-install-db")
            .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", "--user=root"])
            .args([&data, &temporary])
            .output()
            .expect("mariadb-server is installed");
        let said = [installed.stdout, installed.stderr].concat();
        assert!(installed.status.success(), "mariadb-install-db: {}", String::from_utf8_lossy(&said));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        let child = Command::new("mariadbd")
            .args(["--no-defaults", "--user=root", "--bind-address=127.0.0.1", "--skip-log-bin"])
            .args([&data, &temporary])
            .arg(format!("--socket={}", directory.path().join("s").display()))
            .arg(format!("--port={port}"))
            .args(options)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .stdin(Stdio::null())
            .spawn()
            .expect("mariadbd runs");
        let server = MariaDb { port, child, _directory: directory };
        let deadline = Instant::now() + Duration::from_secs(60);
        while connect_to(port).is_err() {
            assert!(Instant::now() < deadline, "MariaDB does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }
}
