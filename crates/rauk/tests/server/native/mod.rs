//! SQL and the native API on the same rows, against a real process: what one writes the other reads, keys and duplicates are the same for both, locks and isolation hold between
//! them, and a definition that SQL changes while native clients work is followed, or told.
//!
//! Where SQL has an answer of its own (does this key find that row?), the tests ask both and compare.

mod changes;
mod keys;
mod locks;
mod partitions;
mod types;

use crate::common::Rauk;
use mysql::Conn;
use rauk_client::blocking;
use rauk_client::{Client, Error, ErrorKind, Options, Row, Table};

/// A server, and one connection of each kind.
struct Both {
    sql: Conn,
    client: Client,
    address: String,
    directory: tempfile::TempDir,
    server: Rauk,
}

fn start() -> Both {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Rauk::start(directory.path());
    let address = format!("127.0.0.1:{}", server.native_port);
    let client = connect(&address, &directory);
    let mut both = Both { sql: server.connect(), client, address, directory, server };
    both.run("CREATE DATABASE d");
    both.run("USE d");
    both
}

fn connect(address: &str, directory: &tempfile::TempDir) -> Client {
    let options = Options::secret_file(directory.path().join("native.secret"));
    blocking::connect(address, options).expect("the native port answers")
}

impl Both {
    /// A statement that must succeed; rows as text.
    #[track_caller]
    fn run(&mut self, sql: &str) -> Vec<String> {
        let lines = crate::common::run(&mut self.sql, sql);
        assert!(!lines.iter().any(|line| line.starts_with("error ") || line.starts_with("lost")), "{sql}: {lines:?}");
        lines
    }

    /// The number of the error that a statement must fail with.
    #[track_caller]
    fn fails(&mut self, sql: &str) -> u16 {
        let lines = crate::common::run(&mut self.sql, sql);
        let code = lines.first().and_then(|line| line.strip_prefix("error ")).and_then(|code| code.parse().ok());
        code.unwrap_or_else(|| panic!("{sql} did not fail: {lines:?}"))
    }

    #[track_caller]
    fn one(&mut self, sql: &str) -> String {
        let mut lines = self.run(sql);
        assert_eq!(lines.len(), 1, "{sql}: {lines:?}");
        lines.remove(0)
    }

    async fn table(&self, name: &str) -> Table {
        self.client.table("d", name).await.expect("the table opens")
    }

    fn another_sql(&self) -> Conn {
        let mut sql = self.server.connect();
        assert_eq!(crate::common::run(&mut sql, "USE d"), ["ok 0"]);
        sql
    }

    fn another_client(&self) -> Client {
        connect(&self.address, &self.directory)
    }
}

/// The error that must have come.
#[track_caller]
fn refused<T>(result: Result<T, Error>, kind: ErrorKind, code: u16) -> Error {
    match result {
        Ok(_) => panic!("not refused; expected {kind:?}"),
        Err(error) => {
            assert_eq!((error.kind, error.code), (kind, code), "{error}");
            error
        }
    }
}

fn names(row: &Row) -> Vec<String> {
    row.columns().map(|(name, _)| name.to_string()).collect()
}
