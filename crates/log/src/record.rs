//! What a redo record says. One commit is one record, whatever number of partitions it touches, so it is never half there.
use rauk_types::{TableId, Timestamp};

/// Builds the payload of a commit record.
#[derive(Debug, Default)]
pub struct CommitBuilder {
    bytes: Vec<u8>,
}

#[allow(unused_variables)]
impl CommitBuilder {
    pub fn put(&mut self, bucket: u16, table: TableId, layout: u16, row: &[u8]) {
        todo!()
    }
    pub fn delete(&mut self, bucket: u16, table: TableId, key: &[u8]) {
        todo!()
    }
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
    pub fn clear(&mut self) {
        self.bytes.clear();
    }
    pub fn payload(&self) -> &[u8] {
        &self.bytes
    }
}

/// A decoded piece of a record, borrowed from the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    Put {
        bucket: u16,
        table: TableId,
        layout: u16,
        row: &'a [u8],
    },
    Delete {
        bucket: u16,
        table: TableId,
        key: &'a [u8],
    },
    /// Numbers below `bound` of this counter (AUTO_INCREMENT, hidden keys) may have been given out.
    Counter {
        table: TableId,
        bound: u64,
    },
}

/// A record as replay meets it: its time, and its changes in order.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    pub time: Timestamp,
    pub payload: &'a [u8],
}
