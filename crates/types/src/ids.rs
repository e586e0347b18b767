//! Identifiers. All are plain numbers, never reused within a data directory.

use serde::{Deserialize, Serialize};

/// A table, an index table of a unique index included. A truncated table gets a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TableId(pub u32);

/// An index within its table. The primary key is always [`IndexId::PRIMARY`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct IndexId(pub u16);

impl IndexId {
    pub const PRIMARY: IndexId = IndexId(0);
}

/// A column within its table; survives renames and the dropping of other columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ColumnId(pub u16);

/// A partition: a set of buckets, and the unit of execution (one guard).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PartitionId(pub u16);

/// A replication group: partitions with the same replicas, and the unit of replication (one stream).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GroupId(pub u16);

/// A transaction of one node and incarnation. Zero is nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TxnId(pub u64);

impl TxnId {
    pub const NONE: TxnId = TxnId(0);
}

/// A commit or snapshot time: a number that only grows, never a wall clock.
/// Zero is before every commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Timestamp(pub u64);

impl Timestamp {
    pub const ZERO: Timestamp = Timestamp(0);
    pub const MAX: Timestamp = Timestamp(u64::MAX);
}

/// A node of the cluster: its number stays the same over restarts. Zero is nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeId(pub u16);

/// One process start of a node, its *incarnation*: unique in the cluster and growing. Zero is nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProcessId(pub u32);

/// Number of a view of a replication group: who leads it. Only grows; a view belongs to one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct View(pub u64);

/// Place of an entry in a group's stream: 1, 2, 3 … over all views. Zero is before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position(pub u64);

/// A node with the process that it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Member {
    pub node: NodeId,
    pub process: ProcessId,
}

impl TxnId {
    /// Bits of the number within a process.
    pub const NUMBER_BITS: u32 = 40;

    /// The `number`th transaction of a process; on a node that is alone the process is zero.
    pub fn of_process(process: ProcessId, number: u64) -> TxnId {
        assert!(process.0 < 1 << (64 - Self::NUMBER_BITS), "process numbers are used up");
        assert!(number < 1 << Self::NUMBER_BITS, "the transaction numbers of this process are used up");
        TxnId(u64::from(process.0) << Self::NUMBER_BITS | number)
    }

    /// The process that runs, or ran, the transaction.
    pub fn process(self) -> ProcessId {
        ProcessId((self.0 >> Self::NUMBER_BITS) as u32)
    }
}
