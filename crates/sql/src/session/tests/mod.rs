//! Statements through a session, against what MySQL answers.

mod access_paths;
mod account_rules;
mod batched_joins;
mod batched_ranges;
mod batches;
mod changes;
mod clients;
mod column_privileges;
mod cost;
mod covering;
mod definitions;
mod dml;
mod explain;
mod full_text;
mod functions;
mod gathered_rows;
mod global_keys;
mod handlers;
mod hints;
mod intervals;
mod join_order;
mod key_expressions;
mod keyless_copies;
mod limits;
mod loads;
mod locks;
mod measured;
mod merge_paths;
mod multi_valued;
mod nearest;
mod outfiles;
mod own_row;
mod parallel_ddl;
mod performance;
mod plans;
mod profiles;
mod queries;
mod roles;
mod selectivity;
mod shows;
mod skip_paths;
mod sleeping;
mod spatial;
mod statistics;
mod storage_clauses;
mod table_locks;
mod temporary;
mod tracking;
mod transactions;
mod trees;
mod users;
mod variables;
mod views;
mod windows;

use super::collect::Collector;
use super::engine::{Client, Engine, EngineOptions};
use super::session::Session;
use super::users::RootPassword;
use rauk_log::MemoryDisk;
use rauk_node::{Config, Database, Threads, block_on};
use rauk_types::result::ResultSink;
use rauk_types::{MysqlError, Value};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

/// A server in memory.
pub(super) struct Server {
    pub engine: Arc<Engine>,
    /// In microseconds; stands still at [`NOW`] unless a test moves it.
    pub clock: Arc<AtomicI64>,
    next_id: AtomicU32,
}

/// 2024-02-29 12:34:56.789 UTC.
pub(super) const NOW: i64 = 1_709_210_096_789_000;

pub(super) fn server() -> Server {
    server_on(MemoryDisk::new())
}

/// A server on a disk that outlives it.
pub(super) fn server_on(disk: Arc<MemoryDisk>) -> Server {
    server_with(disk, u64::MAX)
}

/// The same on a machine with so much memory.
pub(super) fn server_with(disk: Arc<MemoryDisk>, memory_available: u64) -> Server {
    server_as(disk, memory_available, None)
}

/// The same, started with something to be done with root's password.
pub(super) fn server_as(disk: Arc<MemoryDisk>, memory_available: u64, root_password: Option<RootPassword>) -> Server {
    server_of(disk, Config { memory_available, ..config() }, root_password)
}

fn config() -> Config {
    Config {
        partitions: 4,
        memory_limit: 64 << 20,
        history_limit: 16 << 20,
        segment_bytes: 4 << 20,
        checkpoint_redo_bytes: 64 << 20,
        ..Config::default()
    }
}

fn server_of(disk: Arc<MemoryDisk>, config: Config, root_password: Option<RootPassword>) -> Server {
    let runtime = Threads::start().expect("threads start");
    let database = Database::open(config, disk, runtime.clone(), &|_| {}).expect("the database opens");
    database.set_evaluator(Arc::new(crate::exec::SqlEvaluator::default()));
    let clock = Arc::new(AtomicI64::new(NOW));
    let now = clock.clone();
    let clock_of = Arc::new(move || now.load(Ordering::Relaxed));
    let options = EngineOptions { clock: clock_of, root_password, ..EngineOptions::default() };
    let engine = Engine::new(database, runtime, options).expect("the engine starts");
    Server { engine, clock, next_id: AtomicU32::new(1) }
}

impl Server {
    pub fn id(&self) -> u32 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// root from the same machine, in a database of its own.
    pub fn session(&self) -> Test {
        let session = self.engine.connect(Client::local(self.id())).expect("root connects");
        let mut test = Test { session };
        test.ok("CREATE DATABASE IF NOT EXISTS test");
        test.ok("USE test");
        test.ok("SET time_zone = '+00:00'");
        test
    }

    pub fn connect(&self, user: &str, peer: &str) -> Result<Test, MysqlError> {
        let peer: IpAddr = peer.parse().expect("an address");
        let account = self.engine.account(user, peer);
        let client = Client {
            user: user.to_string(),
            account_host: account.map(|a| a.host).unwrap_or_default(),
            peer,
            ..Client::local(self.id())
        };
        Ok(Test { session: self.engine.connect(client)? })
    }
}

/// A session that answers in text.
pub(super) struct Test {
    pub session: Session,
}

impl Test {
    pub fn collect(&mut self, sql: &str) -> (Collector, Result<(), MysqlError>) {
        let mut sink = Collector::default();
        let result = block_on(self.session.query(sql, &mut sink));
        (sink, result)
    }

    /// Rows as `a|b` lines; `OK n` for a statement without rows; `ERROR code: text`.
    pub fn run(&mut self, sql: &str) -> String {
        let (sink, result) = self.collect(sql);
        render(&sink, result)
    }

    /// The result's lines.
    #[track_caller]
    pub fn expect(&mut self, sql: &str, expected: &[&str]) {
        let got = self.run(sql);
        assert_eq!(got, expected.join("\n"), "{sql}");
    }

    #[track_caller]
    pub fn ok(&mut self, sql: &str) {
        let (_, result) = self.collect(sql);
        if let Err(error) = result {
            panic!("{sql}: {error}");
        }
    }

    #[track_caller]
    pub fn error(&mut self, sql: &str, code: u16, message: &str) {
        let (_, result) = self.collect(sql);
        let Err(error) = result else { panic!("{sql} succeeded") };
        assert_eq!((error.code, error.message.as_str()), (code, message), "{sql}");
    }

    #[track_caller]
    pub fn code(&mut self, sql: &str, code: u16) {
        let (_, result) = self.collect(sql);
        let Err(error) = result else { panic!("{sql} succeeded") };
        assert_eq!(error.code, code, "{sql}: {error}");
    }

    /// Names of the columns.
    #[track_caller]
    pub fn names(&mut self, sql: &str) -> Vec<String> {
        let (sink, result) = self.collect(sql);
        result.unwrap_or_else(|error| panic!("{sql}: {error}"));
        sink.last().map(|r| r.columns.iter().map(|c| c.name.clone()).collect()).unwrap_or_default()
    }

    pub fn prepared(&mut self, id: u32, parameters: &[Value]) -> String {
        let mut sink = Collector::default();
        let result = block_on(self.session.execute(id, parameters, &mut sink));
        render(&sink, result)
    }

    pub fn prepare(&mut self, sql: &str) -> super::Prepared {
        block_on(self.session.prepare(sql)).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }
}

fn render(sink: &Collector, result: Result<(), MysqlError>) -> String {
    let mut lines = Vec::new();
    for result in &sink.results {
        if result.columns.is_empty() {
            lines.push(format!("OK {}", result.completion.affected_rows));
        }
        lines.extend(result.texts().iter().map(|row| row.join("|")));
    }
    if let Err(error) = result {
        lines.push(format!("ERROR {}: {}", error.code, error.message));
    }
    lines.join("\n")
}

/// Sessions move between threads, and their futures do.
#[test]
fn a_session_can_be_sent() {
    fn sendable<T: Send>(_: &T) {}
    let server = server();
    let mut test = server.session();
    sendable(&test.session);
    let mut sink = Collector::default();
    let sink: &mut dyn ResultSink = &mut sink;
    let query = test.session.query("DO 1", sink);
    sendable(&query);
    // A connection's task holds these while it is idle.
    assert!(size_of_val(&query) < 1024);
    drop(query);
    sendable(&test.session.execute(1, &[], sink));
    sendable(&test.session.prepare("DO 1"));
    sendable(&test.session.reset());
}
