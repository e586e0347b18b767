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

/// A partition of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PartitionId(pub u16);

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
