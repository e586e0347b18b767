//! The process list: who is connected and what runs, and the handle by which KILL reaches it.

use super::digests::{Accounts, Kinds};
use super::engine::{Client, Engine};
use super::profiles::Profiles;
use super::status::{Counters, Retired};
use super::tables_in_use::TablesInUse;
use futures::task::AtomicWaker;
use parking_lot::{Mutex, RwLock};
use rauk_node::member::processes::{KillOutcome, ProcessInfo, Processes};
use rauk_node::transaction::Interrupt;
use rauk_node::{Progress, RowWork, Stage};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

/// Text of the running statement that is kept at most.
const MAX_INFO: usize = 64 * 1024;
/// A buffer larger than this is given back when the statement ends.
const KEPT_INFO: usize = 4 * 1024;

/// Bytes of a connection's attributes that are kept.
const MAX_ATTRIBUTES: usize = 4 * 1024;

/// As many as there is room for.
fn kept_attributes(attributes: &[(String, String)]) -> Vec<(String, String)> {
    let mut room = MAX_ATTRIBUTES;
    let fits = |(name, value): &&(String, String)| {
        let bytes = name.len() + value.len();
        let fits = bytes <= room;
        room = room.saturating_sub(bytes);
        fits
    };
    attributes.iter().take_while(fits).cloned().collect()
}

/// How far a DDL is.
pub(crate) struct Job {
    pub work: &'static str,
    /// Of what.
    unit: &'static str,
    pub done: u64,
    pub all: u64,
    pub seconds_left: Option<u64>,
}

impl Job {
    /// A stage of a statement that began so many microseconds ago.
    fn new(stage: Stage, micros: i64) -> Job {
        let Stage { work, done, all } = stage;
        let (what, unit) = match work {
            RowWork::Copy => ("copying rows", ""),
            RowWork::CopyAgain => ("copying changed rows", ""),
            RowWork::FillIndex => ("filling an index", " partitions"),
            RowWork::EnterKeys => ("filling a unique key", " rows"),
            RowWork::Validate => ("validating foreign keys", " rows"),
        };
        // Rows may have come meanwhile.
        let all = all.max(done);
        // Of the other stages it is not known when they began.
        let is_timed = work == RowWork::Copy && done > 0 && micros >= 1_000_000;
        let left = || (micros as u128 * u128::from(all - done) / u128::from(done)).div_ceil(1_000_000);
        let seconds_left = is_timed.then(|| u64::try_from(left()).unwrap_or(u64::MAX));
        Job { work: what, unit, done, all, seconds_left }
    }

    pub fn per_cent(&self) -> u64 {
        (u128::from(self.done) * 100).checked_div(self.all.into()).unwrap_or(0) as u64
    }

    fn told(&self) -> String {
        let Job { work, unit, done, all, seconds_left } = self;
        if *all == 0 {
            return work.to_string();
        }
        let left = seconds_left.map(|left| format!(", {left} s left")).unwrap_or_default();
        format!("{work}: {done} of {all}{unit} ({} %){left}", self.per_cent())
    }
}

/// One connection as others see it.
pub struct Process {
    pub id: u32,
    pub user: String,
    pub host: String,
    pub tls_cipher: Option<String>,
    pub database: Mutex<Option<String>>,
    pub(crate) tables: Mutex<TablesInUse>,
    /// The running statement; empty when idle.
    info: Mutex<String>,
    /// Start of the statement, or of idling, in microseconds of the engine's clock.
    since_micros: AtomicI64,
    running: AtomicBool,
    pub interrupt: Arc<Interrupt>,
    /// Of a DDL that looks at many rows.
    pub progress: Progress,
    pub counters: Counters,
    pub(crate) kinds: Kinds,
    pub(crate) profiles: Mutex<Profiles>,
    /// What the client has said of itself.
    pub attributes: Vec<(String, String)>,
    killed: AtomicBool,
    waker: AtomicWaker,
}

impl Process {
    pub fn begin(&self, sql: &str, now_micros: i64) {
        let mut info = self.info.lock();
        info.clear();
        let mut end = sql.len().min(MAX_INFO);
        while !sql.is_char_boundary(end) {
            end -= 1;
        }
        info.push_str(&sql[..end]);
        self.since_micros.store(now_micros, Ordering::Relaxed);
        self.running.store(true, Ordering::Relaxed);
    }

    /// `since` stays the statement's start: an idle time counted from there is off by the statement's length only.
    pub fn end(&self) {
        self.running.store(false, Ordering::Relaxed);
        self.progress.end();
        let mut info = self.info.lock();
        info.clear();
        if info.capacity() > KEPT_INFO {
            info.shrink_to(0);
        }
    }

    pub fn info(&self) -> Option<String> {
        self.is_running().then(|| self.info.lock().clone())
    }

    pub fn is_running(&self) -> bool {
        self.running.load(Ordering::Relaxed)
    }

    pub fn since_micros(&self) -> i64 {
        self.since_micros.load(Ordering::Relaxed)
    }

    pub fn is_killed(&self) -> bool {
        self.killed.load(Ordering::Acquire)
    }

    /// What a running statement does, in a few words.
    fn state(&self, now_micros: i64) -> String {
        match self.progress.stage() {
            _ if !self.running.load(Ordering::Relaxed) => String::new(),
            Some(stage) => Job::new(stage, (now_micros - self.since_micros()).max(0)).told(),
            None => "executing".to_string(),
        }
    }

    /// How far its running DDL is, if that looks at many rows.
    pub(crate) fn job(&self, now_micros: i64) -> Option<Job> {
        let stage = self.progress.stage().filter(|_| self.is_running())?;
        Some(Job::new(stage, (now_micros - self.since_micros()).max(0)))
    }

    /// KILL CONNECTION: ends the running statement, and what waits in [`Killed`] resolves.
    pub fn kill_connection(&self) {
        self.killed.store(true, Ordering::Release);
        self.interrupt.kill();
        self.waker.wake();
    }
}

/// Resolves when the connection was killed. One waiter.
pub struct Killed(pub Arc<Process>);

impl Future for Killed {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0.waker.register(context.waker());
        if self.0.is_killed() { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// What other nodes see of the sessions of an engine.
pub struct Shown(pub Weak<Engine>);

impl Processes for Shown {
    fn list(&self, user: Option<&str>) -> Vec<ProcessInfo> {
        let Some(engine) = self.0.upgrade() else { return Vec::new() };
        engine.processes.list(user, engine.now_micros(), |id| engine.database.cluster_session_id(id))
    }

    fn kill(&self, id: u32, query_only: bool, user: Option<&str>) -> KillOutcome {
        let Some(engine) = self.0.upgrade() else { return KillOutcome::Unknown };
        engine.processes.kill(id, query_only, user)
    }
}

/// All connections.
#[derive(Default)]
pub struct ProcessList {
    processes: RwLock<BTreeMap<u32, Arc<Process>>>,
    pub retired: Retired,
    pub(crate) accounts: Accounts,
    pub connections: AtomicU64,
    pub max_used: AtomicU64,
}

impl ProcessList {
    /// `None`: `limit` connections are there already.
    pub fn add(&self, client: &Client, host: &str, now_micros: i64, limit: u64) -> Option<Arc<Process>> {
        let mut processes = self.processes.write();
        if processes.len() as u64 >= limit {
            return None;
        }
        let process = Arc::new(Process {
            id: client.connection_id,
            user: client.user.clone(),
            host: host.to_string(),
            tls_cipher: client.tls_cipher.clone(),
            database: Mutex::new(None),
            tables: Mutex::default(),
            info: Mutex::new(String::new()),
            since_micros: AtomicI64::new(now_micros),
            running: AtomicBool::new(false),
            interrupt: Arc::new(Interrupt::default()),
            progress: Progress::default(),
            counters: Counters::default(),
            kinds: Kinds::default(),
            profiles: Mutex::default(),
            attributes: kept_attributes(&client.attributes),
            killed: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        });
        processes.insert(process.id, process.clone());
        self.accounts.enter(&process.user, &process.host);
        self.connections.fetch_add(1, Ordering::Relaxed);
        self.max_used.fetch_max(processes.len() as u64, Ordering::Relaxed);
        Some(process)
    }

    pub fn remove(&self, id: u32) {
        let mut processes = self.processes.write();
        if let Some(process) = processes.remove(&id) {
            self.retired.add(&process.counters);
            self.accounts.leave(&process.user, &process.host, &process.kinds);
        }
    }

    pub fn find(&self, id: u32) -> Option<Arc<Process>> {
        self.processes.read().get(&id).cloned()
    }

    /// Those of `user`, or all, as others are told of them.
    pub fn list(&self, user: Option<&str>, now_micros: i64, id_of: impl Fn(u32) -> u64) -> Vec<ProcessInfo> {
        let all = self.all().into_iter().filter(|process| user.is_none_or(|user| process.user == user));
        let info = |process: Arc<Process>| ProcessInfo {
            id: id_of(process.id),
            user: process.user.clone(),
            host: process.host.clone(),
            database: process.database.lock().clone(),
            seconds: (now_micros - process.since_micros()).max(0) / 1_000_000,
            state: process.state(now_micros),
            info: process.info(),
        };
        all.map(info).collect()
    }

    /// KILL, by who is `user`, or by who may end all.
    pub fn kill(&self, id: u32, query_only: bool, user: Option<&str>) -> KillOutcome {
        let Some(target) = self.find(id) else { return KillOutcome::Unknown };
        if user.is_some_and(|user| target.user != user) {
            return KillOutcome::Denied;
        }
        match query_only {
            true => target.interrupt.kill(),
            false => target.kill_connection(),
        }
        KillOutcome::Done
    }

    /// In the order of their ids.
    pub fn all(&self) -> Vec<Arc<Process>> {
        self.processes.read().values().cloned().collect()
    }

    pub fn len(&self) -> usize {
        self.processes.read().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sums over all sessions, ended ones included.
    pub fn totals(&self) -> [u64; super::status::NAMES.len()] {
        let processes = self.processes.read();
        let mut totals = self.retired.totals();
        for process in processes.values() {
            process.counters.add_to(&mut totals);
        }
        totals
    }
}
