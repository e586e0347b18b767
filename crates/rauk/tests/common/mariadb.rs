//! A MariaDB of this test's own: temporary directory, free port, ended by pid.

use mysql::{Conn, OptsBuilder};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub struct MariaDb {
    pub port: u16,
    child: Child,
    _directory: tempfile::TempDir,
}

impl MariaDb {
    /// Panics with what to install when MariaDB is not there: a test that compares cannot pass without.
    pub fn start() -> MariaDb {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = directory.path().join("data");
        let missing = "this test compares with MariaDB: install Debian's mariadb-server (scripts/setup.sh test)";
        let installed = Command::new("mariadb-install-db")
            .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", "--user=root"])
            .arg(format!("--datadir={}", data.display()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .expect(missing);
        assert!(installed.success(), "mariadb-install-db failed");
        let port = {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
            listener.local_addr().expect("an address").port()
        };
        let child = Command::new("mariadbd")
            .args(["--no-defaults", "--user=root", "--bind-address=127.0.0.1", "--innodb-flush-log-at-trx-commit=0"])
            // What Rauk and MySQL 8 have by default.
            .args(["--character-set-server=utf8mb4", "--collation-server=utf8mb4_unicode_ci", "--explicit-defaults-for-timestamp=ON"])
            .arg("--sql-mode=ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION")
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--socket={}/m.sock", directory.path().display()))
            .arg(format!("--port={port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .stdin(Stdio::null())
            .spawn()
            .expect(missing);
        let server = MariaDb { port, child, _directory: directory };
        let deadline = Instant::now() + Duration::from_secs(60);
        while server.try_connect().is_err() {
            assert!(Instant::now() < deadline, "MariaDB does not answer");
            std::thread::sleep(Duration::from_millis(100));
        }
        server
    }

    fn try_connect(&self) -> Result<Conn, mysql::Error> {
        let options = OptsBuilder::new()
            .ip_or_hostname(Some("127.0.0.1"))
            .tcp_port(self.port)
            .user(Some("root"))
            .prefer_socket(false);
        Conn::new(options)
    }

    pub fn connect(&self) -> Conn {
        self.try_connect().expect("MariaDB answers")
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
