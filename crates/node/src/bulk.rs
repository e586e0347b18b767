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

impl Database {
    /// Reads rows by primary key. `visit` is called once for each key, in the order of partitions, while the partition is held: it copies what it needs. Gives the newest
    /// commit time seen, which must be durable before the answer is given (`wait_durable`).
    /// `None`: a partition is busy, or a commit under way must be waited for; keys that `visit` was called for stay read, so the caller passes in `done` what was.
    pub fn try_read_many(
        &self,
        _table: &TableHandle,
        _keys: &Keys,
        _done: &mut [bool],
        _visit: &mut (dyn FnMut(usize, Found<'_>) + Send),
    ) -> Result<Option<Timestamp>, NodeError> {
        todo!()
    }

    /// The same, waiting where it must.
    pub async fn read_many(
        &self,
        _table: &TableHandle,
        _keys: &Keys,
        _done: &mut [bool],
        _visit: &mut (dyn FnMut(usize, Found<'_>) + Send),
    ) -> Result<Timestamp, NodeError> {
        todo!()
    }

    /// Writes rows by primary key, each an own transaction. `change` gets the newest committed row and encodes the new one into the (empty) buffer. It is called once for each key, while
    /// the partition is held; keys in `left` afterwards were not looked at and need a transaction each. Gives the commit time that must be durable before
    /// the answer.
    pub async fn write_many(
        &self,
        _table: &TableHandle,
        _keys: &Keys,
        _left: &mut Vec<usize>,
        _change: &mut (dyn FnMut(usize, Found<'_>, &mut Vec<u8>) -> Verb + Send),
    ) -> Result<Timestamp, NodeError> {
        todo!()
    }

    /// Waits until everything committed at or before `time` is on disk, where that is promised.
    pub async fn wait_durable(&self, time: Timestamp) -> Result<(), NodeError> {
        self.node.wait_durable(time).await
    }

    /// Whether that would not wait.
    pub fn is_durable(&self, _time: Timestamp) -> bool {
        todo!()
    }
}
