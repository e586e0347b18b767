//! The native service: requests of the native protocol, executed on this node's tables.
//!
//! One [`Service`] a node, one [`Session`] a connection (or a program that has the database in its own process). [`Session::call`] takes a request's payload
//! and gives the answer's payload; `server` puts it behind a transporter. Both ways run the same code, so that what holds over the network holds in the process.

use crate::Database;
use bytes::Bytes;
use rauk_wire::Kind;
use std::sync::Arc;
use std::time::Duration;

pub mod server;

/// A request, as its frame's header and payload say.
#[derive(Clone, Debug)]
pub struct Request {
    pub kind: Kind,
    /// Number of the request within its session; [`Kind::Cancel`] names it.
    pub number: u64,
    /// 0: none.
    pub transaction: u64,
    /// What the session has seen elsewhere.
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

pub struct Service {
    _database: Database,
}

impl Service {
    pub fn new(_database: Database, _limits: Limits) -> Arc<Service> {
        todo!()
    }

    pub fn session(self: &Arc<Self>) -> Arc<Session> {
        todo!()
    }
}

/// One client. Requests of different transactions run beside each other; those of one transaction in their order. Dropping it rolls everything back.
pub struct Session {
    _service: Arc<Service>,
}

impl Session {
    /// Executes a request; the answer's payload is appended to `frame`. Every error becomes a reply. Dropping the future before its end interrupts it; a commit
    /// that has begun takes place all the same.
    pub async fn call(self: &Arc<Self>, _request: Request, _frame: Vec<u8>) -> Reply {
        todo!()
    }

    /// The same without a wait, for what can be answered at once (plain reads and writes whose partitions are idle, and which need not wait for the disk); gives
    /// the buffer back when it must go through [`Session::call`]. Nothing has been done then.
    pub fn try_call(self: &Arc<Self>, _request: &Request, frame: Vec<u8>) -> Result<Reply, Vec<u8>> {
        Err(frame)
    }

    /// Rolls everything back; further calls fail.
    pub fn close(&self) {
        todo!()
    }
}
