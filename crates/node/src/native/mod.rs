//! The native service: requests of the native protocol, executed on this node's tables.
//!
//! One [`Service`] a node, one [`Session`] a connection (or a program that has the database in its own process). [`Session::call`] takes a request's payload
//! and gives the answer's payload; [`server`] puts it behind a transporter. Both ways run the same code, so that what holds over the network holds in the process.
//!
//! | file | what |
//! |---|---|
//! | [`session`] | one client: requests at work, open transactions, deadlines, cancelling, the end |
//! | `slot` | a transaction between its requests, and the queue in front of it |
//! | `batch`, `lone` | batches in a transaction; outside of transactions |
//! | `fast` | batches that are answered at once |
//! | `shape`, `operation` | what arrives, checked before anything is executed |
//! | `execute`, `image` | one operation in a transaction; rows as writes make them |
//! | `answer`, `failure` | outcomes; errors as they travel |
//! | `scan` | scans |
//! | [`rights`] | what an account may do |
//! | `definition`, `create` | tables by name; creating and dropping |
//! | [`server`] | behind a transporter |
//!
//! Invariants: no answer leaves before all that it tells of is durable (where that is promised), errors included. Nothing that arrives is believed: bytes that no client
//! of ours sends fail the request (error 1835) before it has done anything, and end the connection. What a request was made for, it is done for: a definition that
//! has changed since fails it (1412).

mod answer;
mod batch;
mod create;
mod definition;
mod execute;
mod failure;
mod fast;
mod image;
mod lone;
mod operation;
pub mod rights;
mod scan;
pub mod server;
pub mod session;
mod shape;
mod slot;

pub use rights::{Allowed, Rights};
pub use session::Session;

use crate::Database;
use bytes::Bytes;
use parking_lot::Mutex;
use rauk_wire::Kind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// A request, as its frame's header and payload say.
#[derive(Clone, Debug)]
pub struct Request {
    pub kind: Kind,
    /// Number of the request within its session; [`Kind::Cancel`] names it.
    pub number: u64,
    /// 0: none.
    pub transaction: u64,
    /// The newest commit time that the session has seen, here or at other nodes.
    pub timestamp: u64,
    pub deadline: Option<Duration>,
    pub payload: Bytes,
}

/// What to answer.
#[derive(Debug)]
pub struct Reply {
    pub kind: Kind,
    /// The newest commit time that this answer shows.
    pub timestamp: u64,
    /// The request's buffer with the payload appended.
    pub frame: Vec<u8>,
    /// The request was no request at all (malformed): whoever sent it is not to be listened to any more.
    pub fatal: bool,
}

/// Limits of what sessions may use.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Open transactions and open scans of one session.
    pub transactions: usize,
    pub scans: usize,
    /// A transaction that is idle for so long is rolled back.
    pub idle: Duration,
    pub lock_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { transactions: 4096, scans: 256, idle: Duration::from_secs(600), lock_wait: Duration::from_secs(50) }
    }
}

/// Microseconds since 1970 UTC.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// What has been asked for since the start.
#[derive(Default)]
pub struct Counts {
    pub batches: AtomicU64,
    /// Those of `batches` that were answered at once.
    pub batches_at_once: AtomicU64,
    pub operations: AtomicU64,
    pub scans: AtomicU64,
    pub scan_pages: AtomicU64,
    pub definitions: AtomicU64,
    pub failures: AtomicU64,
}

pub struct Service {
    database: Database,
    limits: Limits,
    clock: Clock,
    incarnation: u64,
    sessions: Mutex<Vec<Weak<Session>>>,
    /// Somebody looks for what has been idle for too long.
    watched: AtomicBool,
    counts: Counts,
}

fn wall_clock() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

impl Service {
    pub fn new(database: Database, limits: Limits) -> Arc<Service> {
        Self::with_clock(database, limits, Arc::new(wall_clock))
    }

    /// With a clock of its own, for CURRENT_TIMESTAMP.
    pub fn with_clock(database: Database, limits: Limits, clock: Clock) -> Arc<Service> {
        // Later starts have higher numbers, unless the clock was set back; then another at least.
        let incarnation = (clock() as u64).wrapping_add(database.node.runtime.random() & 0xFFFF).max(1);
        Arc::new(Service {
            database,
            limits,
            clock,
            incarnation,
            sessions: Mutex::default(),
            watched: AtomicBool::new(false),
            counts: Counts::default(),
        })
    }

    /// A session that may do everything.
    pub fn session(self: &Arc<Self>) -> Arc<Session> {
        self.session_of(None)
    }

    /// A session that may do what an account may.
    pub fn session_of(self: &Arc<Self>, rights: Option<Arc<dyn Rights>>) -> Arc<Session> {
        let session = Session::new(self.clone(), rights);
        let mut sessions = self.sessions.lock();
        // Those that are gone are cleared away now and then.
        if sessions.len() == sessions.capacity() {
            sessions.retain(|s| s.strong_count() > 0);
        }
        sessions.push(Arc::downgrade(&session));
        session
    }

    pub fn database(&self) -> &Database {
        &self.database
    }

    /// The cluster's id.
    pub fn cluster(&self) -> [u8; 16] {
        self.database.node.id.0
    }

    /// A number of this start of the node.
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// Grows with every change of a definition while the node runs.
    pub fn schema_version(&self) -> u32 {
        self.database.node.catalog_changes.load(Ordering::Relaxed)
    }

    /// Of where partitions are led; 0 on a node that is no member of a cluster.
    pub fn placement_version(&self) -> u32 {
        self.database.node.cluster().map_or(0, |cluster| cluster.placement_version())
    }

    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Transactions and scans that are open now, and sessions.
    pub fn open(&self) -> (usize, usize, usize) {
        let sessions = self.live();
        let sum = |f: fn((usize, usize)) -> usize| sessions.iter().map(|s| f(s.open())).sum();
        (sum(|o| o.0), sum(|o| o.1), sessions.iter().filter(|s| !s.is_closed()).count())
    }

    fn live(&self) -> Vec<Arc<Session>> {
        self.sessions.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Sees to it that what is idle for too long is found. Looks while something is open, and ends when nothing is.
    fn watch(self: &Arc<Self>) {
        if self.watched.load(Ordering::Relaxed) || self.watched.swap(true, Ordering::SeqCst) {
            return;
        }
        let runtime = self.database.node.runtime.clone();
        let pause = (self.limits.idle / 4).clamp(Duration::from_millis(10), Duration::from_secs(1));
        let weak = Arc::downgrade(self);
        let task = {
            let runtime = runtime.clone();
            async move {
                loop {
                    runtime.sleep(pause).await;
                    let Some(service) = weak.upgrade() else { return };
                    if !service.sweep() {
                        return;
                    }
                }
            }
        };
        runtime.spawn("native", Box::pin(task));
    }

    /// `false`: nothing is open, and nobody looks any more.
    fn sweep(&self) -> bool {
        let sessions = self.live();
        let now = self.database.node.runtime.now();
        sessions.iter().for_each(|s| s.sweep(now, self.limits.idle));
        let is_busy = || sessions.iter().any(|s| s.open() != (0, 0));
        if is_busy() {
            return true;
        }
        self.watched.store(false, Ordering::SeqCst);
        // Somebody may have opened something between the look and the store, and trusted that somebody looks.
        is_busy() && !self.watched.swap(true, Ordering::SeqCst)
    }
}
