//! The redo log: preallocated segments, overwritten in turn.
use crate::disk::Disk;
use rauk_types::Timestamp;
use std::sync::Arc;

/// A position in the endless log, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    pub start: Lsn,
    /// Durable when `durable_lsn() >= end`.
    pub end: Lsn,
    pub time: Timestamp,
}

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("no room for the redo log: {0}")]
    DiskFull(String),
    #[error("record of {0} bytes is larger than a log segment can hold")]
    RecordTooLarge(usize),
    /// A write or sync failed; nothing more is accepted and the node must stop.
    #[error("redo log failed: {0}")]
    Failed(String),
    /// Damage in the middle: the log goes on behind it.
    #[error("redo log is damaged: {file} at byte {offset}: {what}")]
    Damaged { file: String, offset: u64, what: String },
}

pub struct RedoLog {
    _disk: Arc<dyn Disk>,
}

#[allow(unused_variables)]
impl RedoLog {
    /// Puts a commit record into the buffer. Its time is above that of every record before it, and `decided` is called with it while the
    /// log's lock is held, so that times and positions have one order and a snapshot drawn afterwards (`last_time`) sees it.
    /// On error nothing was appended. Does no I/O except taking a new segment when the present one is full.
    pub fn append_commit(&self, payload: &[u8], decided: impl FnOnce(Timestamp)) -> Result<Appended, LogError> {
        todo!()
    }
    /// A record without a commit time of its own (counters).
    pub fn append(&self, payload: &[u8]) -> Result<Appended, LogError> {
        todo!()
    }
    /// Time of the newest appended commit: a snapshot at this time sees all appended commits and no later one.
    pub fn last_time(&self) -> Timestamp {
        todo!()
    }
    /// Every commit at or before this time is on disk.
    pub fn durable_time(&self) -> Timestamp {
        todo!()
    }
    pub fn durable_lsn(&self) -> Lsn {
        todo!()
    }
    pub fn end_lsn(&self) -> Lsn {
        todo!()
    }
    /// Writes and syncs everything appended so far, outside of the log's lock. `false`: another thread is at it (it may or may not
    /// take what was appended last; look at `durable_lsn`). An error is final.
    pub fn flush(&self) -> Result<bool, LogError> {
        todo!()
    }
    /// Segments wholly before `lsn` may be overwritten.
    pub fn release_before(&self, lsn: Lsn) {
        todo!()
    }
}

/// Reads the log from a position to its end.
pub struct RedoReader {
    _disk: Arc<dyn Disk>,
}
