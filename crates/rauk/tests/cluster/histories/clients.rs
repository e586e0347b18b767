//! Clients of a cluster that fails under them, and what becomes of their statements.
//!
//! A client has one connection, to any node; when that breaks or does not answer in time, the next is to the next node, as drivers with several hosts do. Whatever a statement is refused with, its transaction is over:
//! only a COMMIT that had no answer, or 1180, may have happened or not.

use mysql::prelude::{FromRow, Queryable};
use mysql::{Conn, OptsBuilder};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A client gives an answer up after this.
const PATIENCE: Duration = Duration::from_secs(4);
/// Of a COMMIT that failed without saying whether it did.
const ERROR_DURING_COMMIT: u16 = 1180;

/// What a transaction may be refused with while nodes fail: conflicts, waits, no primary, a node that stops.
const EXPECTED: &[u16] = &[1020, 1053, 1205, 1213, 1297];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    RepeatableRead,
    Serializable,
}

impl Level {
    /// Half of the clients each.
    pub fn of(number: usize) -> Level {
        if number.is_multiple_of(2) { Level::Serializable } else { Level::RepeatableRead }
    }

    fn name(self) -> &'static str {
        match self {
            Level::RepeatableRead => "REPEATABLE READ",
            Level::Serializable => "SERIALIZABLE",
        }
    }
}

/// The transaction is over.
#[derive(Debug)]
pub enum Over {
    /// It has left no trace.
    Undone,
    /// Nobody knows.
    Unknown,
}

pub struct Client {
    ports: Vec<u16>,
    at: usize,
    connection: Option<Conn>,
    level: Level,
    /// How often what happened.
    pub counts: BTreeMap<String, u64>,
}

impl Client {
    pub fn new(ports: &[u16], number: usize) -> Client {
        let level = Level::of(number);
        Client { ports: ports.to_vec(), at: number % ports.len(), connection: None, level, counts: BTreeMap::new() }
    }

    pub fn level(&self) -> Level {
        self.level
    }

    pub fn count(&mut self, what: &str) {
        *self.counts.entry(what.to_string()).or_default() += 1;
    }

    /// Connected before anything begins; `false` when it was told to stop before that.
    pub fn connect(&mut self, stop: &AtomicBool) -> bool {
        while self.connection.is_none() {
            if stop.load(Ordering::Relaxed) {
                return false;
            }
            let options = OptsBuilder::new()
                .ip_or_hostname(Some("127.0.0.1"))
                .tcp_port(self.ports[self.at])
                .user(Some("root"))
                .prefer_socket(false)
                .tcp_connect_timeout(Some(PATIENCE))
                .read_timeout(Some(PATIENCE))
                .write_timeout(Some(PATIENCE));
            let level = format!("SET SESSION TRANSACTION ISOLATION LEVEL {}", self.level.name());
            let connected = Conn::new(options).and_then(|mut conn| conn.query_drop(level).map(|()| conn));
            match connected {
                Ok(connection) => self.connection = Some(connection),
                Err(_) => {
                    self.at = (self.at + 1) % self.ports.len();
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        }
        true
    }

    /// A statement of a transaction that has not been asked to commit.
    pub fn rows<T: FromRow>(&mut self, sql: &str) -> Result<Vec<T>, Over> {
        let connection = self.connection.as_mut().expect("it is connected");
        connection.query(sql).map_err(|error| {
            self.failed(&error);
            Over::Undone
        })
    }

    pub fn run(&mut self, sql: &str) -> Result<(), Over> {
        self.rows::<mysql::Row>(sql).map(drop)
    }

    pub fn commit(&mut self) -> Result<(), Over> {
        let connection = self.connection.as_mut().expect("it is connected");
        connection.query_drop("COMMIT").map_err(|error| {
            self.failed(&error);
            match error {
                mysql::Error::MySqlError(error) if error.code != ERROR_DURING_COMMIT => Over::Undone,
                _ => Over::Unknown,
            }
        })
    }

    fn failed(&mut self, error: &mysql::Error) {
        match error {
            mysql::Error::MySqlError(error) => {
                let known = EXPECTED.contains(&error.code) || error.code == ERROR_DURING_COMMIT;
                assert!(known, "no failure of a node may give this: {error}");
                self.count(&error.code.to_string());
                // Over already, or undone now; a connection that cannot do that is of no use.
                if self.connection.as_mut().is_some_and(|c| c.query_drop("ROLLBACK").is_err()) {
                    self.connection = None;
                }
            }
            _ => {
                self.count("lost");
                self.connection = None;
                self.at = (self.at + 1) % self.ports.len();
            }
        }
    }
}

/// Counts of several clients as one line.
pub fn told(counts: impl IntoIterator<Item = BTreeMap<String, u64>>) -> String {
    let mut sum: BTreeMap<String, u64> = BTreeMap::new();
    counts.into_iter().flatten().for_each(|(what, count)| *sum.entry(what).or_default() += count);
    let each: Vec<String> = sum.into_iter().map(|(what, count)| format!("{count} × {what}")).collect();
    each.join(", ")
}
