//! Many keys of one table at once, each for itself (autocommit): one hold a partition, no transaction record.
//!
//! Reads look at the newest committed versions, with the memory they will need prefetched ahead. Writes take place in the hold itself, without a lock, a pending
//! version or a transaction record, and are committed by one redo record a hold; what cannot be done so (somebody has the row locked or pending, a serializable range
//! is in the way, the table has unique indexes) is left to a transaction, and said.

use crate::{Database, NodeError, TableHandle};
use rauk_types::{RowView, Timestamp};

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

/// What a write makes of a row that was read (or was found missing).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Leave it as it is.
    Keep,
    /// Store the row that was encoded into the buffer, in the newest layout and with the same primary key.
    Put,
    Delete,
}

/// A row and the version of its layout.
pub type Found<'a> = Option<(u16, RowView<'a>)>;

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
    /// Reads rows by primary key: those that `done` does not mark, which are marked then. `visit` is called once for each key, partition by partition, while the partition is
    /// held: it copies what it needs. The answer may be given when [`Progress::time`] is durable. Errors come before the first visit.
    pub fn try_read_many(
        &self,
        _table: &TableHandle,
        _keys: &Keys,
        _done: &mut [bool],
        _visit: &mut (dyn FnMut(usize, Found<'_>) + Send),
    ) -> Result<Progress, NodeError> {
        todo!()
    }

    /// The same, waiting where it must. Gives the time that must be durable, of the keys that this call has read.
    pub async fn read_many(
        &self,
        _table: &TableHandle,
        _keys: &Keys,
        _done: &mut [bool],
        _visit: &mut (dyn FnMut(usize, Found<'_>) + Send),
    ) -> Result<Timestamp, NodeError> {
        todo!()
    }

    /// Writes rows by primary key, each an own transaction: those that `done` does not mark, which are marked then. `change` gets the newest committed row and, to put a row,
    /// encodes the new one into the (empty) buffer; it is called at most once for each key, while the partition is held. A key that is met twice is written twice, in
    /// the order of `keys`. Keys that need a transaction, and keys whose write failed, are added to `unwritten` (and are done). The time is that of the newest
    /// commit made or seen. Errors come before the first change, or when the node has lost its log.
    pub fn try_write_many(
        &self,
        _table: &TableHandle,
        _keys: &Keys,
        _done: &mut [bool],
        _unwritten: &mut Unwritten,
        _change: &mut (dyn FnMut(usize, Found<'_>, &mut Vec<u8>) -> Verb + Send),
    ) -> Result<Progress, NodeError> {
        todo!()
    }

    /// The same, waiting for partitions that are busy. Does not wait for the disk.
    pub async fn write_many(
        &self,
        _table: &TableHandle,
        _keys: &Keys,
        _done: &mut [bool],
        _unwritten: &mut Unwritten,
        _change: &mut (dyn FnMut(usize, Found<'_>, &mut Vec<u8>) -> Verb + Send),
    ) -> Result<Timestamp, NodeError> {
        todo!()
    }

    /// Waits until everything committed at or before `time` is on disk, where that is promised.
    pub async fn wait_durable(&self, time: Timestamp) -> Result<(), NodeError> {
        self.node.wait_durable(time).await
    }

    /// Whether that would not wait.
    pub fn is_durable(&self, time: Timestamp) -> bool {
        self.node.is_durable(time)
    }
}
