//! Many keys of one table at once, each for itself (autocommit): one hold a partition, no transaction record.
//!
//! Reads look at the newest committed versions, with the memory they will need prefetched ahead. Writes take place in the hold itself, without a lock, a pending
//! version or a transaction record, and are committed by one redo record a hold; what cannot be done so (somebody has the row locked or pending, a serializable range
//! is in the way, the table has unique indexes or foreign keys, the node is a member of a cluster) is left to a transaction, and said.
//!
//! | file | what |
//! |---|---|
//! | `groups` | keys by partition, in groups of one hold each |
//! | `read`, `write` | the calls |
//!
//! Each call comes in two kinds. The one that does not wait does what it can at once, which is nearly always everything; the one that waits begins with that, and
//! then goes from partition to partition as each becomes free. `done` says which keys have been seen to, so that one can go on where the other stopped.
//! The table's metadata lock is shared for the time of a call.

pub(crate) mod groups;
mod read;
mod write;

use crate::database::TableHandle;
use crate::error::NodeError;
use crate::node::Node;
use crate::table::TableInfo;
use crate::transaction::TxnOptions;
use crate::{Database, executor::Class};
use rauk_types::Timestamp;

pub use rauk_kernel::{Found, Verb};

/// Encoded primary keys, one after the other in one buffer.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl Keys {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len() as u32);
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn get(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] as usize };
        &self.bytes[start..self.ends[i] as usize]
    }
}

/// How far a call that does not wait has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The newest commit time that was seen or made: it must be durable before an answer shows anything of it.
    pub time: Timestamp,
    /// Nothing is left to do; else a partition is busy, or a commit under way must be waited for.
    pub finished: bool,
}

/// Keys that `write_many` has not written although it was asked to.
#[derive(Debug, Default)]
pub struct Unwritten {
    /// Not looked at: each needs a transaction of its own.
    pub left: Vec<usize>,
    /// `change` was called and wanted a write which failed: no memory (1114), no room for the log. The row is as it was.
    pub failed: Vec<(usize, NodeError)>,
}

impl Database {
    /// Waits until everything committed at or before `time` is on disk, where that is promised.
    pub async fn wait_durable(&self, time: Timestamp) -> Result<(), NodeError> {
        self.node.wait_durable(time).await
    }

    /// Whether that would not wait.
    pub fn is_durable(&self, time: Timestamp) -> bool {
        self.node.is_durable(time)
    }
}

/// The table's metadata lock, shared for the time of a call.
struct Sharing<'a> {
    table: &'a TableInfo,
    /// It is counted among the writers.
    writes: bool,
}

impl<'a> Sharing<'a> {
    /// `None`: a DDL is at the table, or waits for it, or it is locked.
    fn try_take(node: &Node, table: &'a TableHandle, writes: bool) -> Result<Option<Sharing<'a>>, NodeError> {
        node.check_running()?;
        let info = &**table.info();
        if !info.shared.lock.try_share() {
            return Ok(None);
        }
        let mut sharing = Sharing { table: info, writes: false };
        if writes && !info.shared.lock.try_write() {
            return Ok(None);
        }
        sharing.writes = writes;
        sharing.checked().map(Some)
    }

    async fn take(node: &Node, table: &'a TableHandle, writes: bool) -> Result<Sharing<'a>, NodeError> {
        node.check_running()?;
        let info = &**table.info();
        let wait = TxnOptions::default().lock_wait_timeout;
        info.shared.lock.share(&*node.runtime, wait, None).await?;
        let mut sharing = Sharing { table: info, writes: false };
        if writes {
            info.shared.lock.write(&*node.runtime, wait, None).await?;
            sharing.writes = true;
        }
        sharing.checked()
    }

    fn checked(self) -> Result<Sharing<'a>, NodeError> {
        match self.table.shared.is_current(self.table.schema.version) {
            true => Ok(self),
            false => Err(NodeError::StaleSchema),
        }
    }
}

impl Drop for Sharing<'_> {
    fn drop(&mut self) {
        if self.writes {
            self.table.shared.lock.end_write();
        }
        self.table.shared.lock.unshare();
    }
}

/// In what order a hold for so many keys is taken, and what it counts for.
fn class(keys: usize) -> Class {
    if keys > 8 { Class::Scan } else { Class::Point }
}
