//! One partition: a fragment of every table, the locks on its rows, and the versions that readers need.
//!
//! The newest committed version of a row stands inline in the row store; a pending one beside it in a side table, with the
//! transaction's status word; older ones in a side table only while a snapshot needs them. See design notes in ARCHITECTURE.md.

use crate::budget::MemoryBudget;
use crate::row_store::RowId;
use crate::status::TxnRef;
use rauk_types::{IndexId, PartitionId, RowView, TableId, TableSchema, Timestamp, TxnId};
use std::ops::Bound;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockMode {
    /// Foreign-key checks: conflicts with Exclusive only when the key changes or the row goes.
    KeyShare,
    Shared,
    Exclusive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitPolicy {
    Wait,
    /// Fail with [`Stop::WouldWait`].
    NoWait,
    /// Point reads answer as if the row were missing; scans leave the row out.
    SkipLocked,
}

/// What a read sees of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadAt {
    /// The newest committed version.
    Newest,
    /// The newest version committed at or before this time.
    Snapshot(Timestamp),
}

/// Times that decide what may be thrown away.
#[derive(Clone, Copy, Debug)]
pub struct Horizon {
    /// No snapshot older than this is or will be in use.
    pub oldest_snapshot: Timestamp,
    /// Everything committed at or before this is on disk.
    pub durable: Timestamp,
}

/// Who calls, what it may see, and what it learned.
pub struct Access<'a> {
    /// The transaction; `None` for a plain read outside of one.
    pub txn: Option<&'a TxnRef>,
    /// Own writes with a statement number below this are visible; others are not (so that an UPDATE
    /// does not meet the rows that it made itself).
    pub own_before: u32,
    /// The number of the statement that writes.
    pub statement: u32,
    pub at: ReadAt,
    /// Locking reads and writes fail with [`Stop::Changed`] on rows committed after this time.
    pub conflict_after: Option<Timestamp>,
    pub horizon: Horizon,
    /// Out: raised to the newest commit time that the answer depends on, absences and failures included.
    pub observed: Timestamp,
}

/// Why a call did not finish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A row in the way belongs to a transaction whose commit time is being decided: call again at once.
    Committing,
    /// Queued behind these transactions: call again when granted, or call [`Partition::cancel_wait`].
    Wait(Vec<TxnId>),
    /// NOWAIT met a lock.
    WouldWait,
    /// A row with this key exists (and this call has locked nothing).
    Duplicate,
    /// The row changed after the transaction's snapshot (error 1020).
    Changed,
    /// The versions that the snapshot needs were given up (history cap).
    SnapshotTooOld,
    MemoryFull {
        limit: u64,
    },
    /// No such table here, or a definition that is no longer served.
    StaleSchema,
}

/// A change that a commit record must carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write<'a> {
    /// The row's new image, insert or update.
    Put { layout: u16, row: &'a [u8] },
    /// The encoded primary key of a row that goes.
    Delete { key: &'a [u8] },
}

#[derive(Clone, Debug)]
pub struct ScanRequest {
    pub table: TableId,
    /// `None`: all rows in row-id order.
    pub index: Option<IndexId>,
    pub low: Bound<Vec<u8>>,
    pub high: Bound<Vec<u8>>,
    pub reverse: bool,
    pub lock: Option<(LockMode, WaitPolicy)>,
}

/// Where a scan goes on in its next slice. Survives changes of the index in between.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ScanPosition {
    #[default]
    Start,
    AfterEntry(Vec<u8>, RowId),
    AfterRow(RowId),
}

/// A row that a scan found.
pub struct ScanRow<'a> {
    /// The index key; empty in scans without an index.
    pub key: &'a [u8],
    pub layout: u16,
    pub row: RowView<'a>,
}

/// What the visitor wants done with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Keep it (and its lock); go on.
    Keep,
    /// It does not match: give back a lock that this scan took on it; go on.
    Skip,
    /// Keep it and stop here; the position is behind it.
    KeepAndStop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanEnd {
    /// Nothing is left.
    Finished,
    /// The slice's budget is used up or the visitor stopped; call again with the same position.
    More,
}

pub struct Partition {
    id: PartitionId,
    _budget: Arc<MemoryBudget>,
}

#[allow(unused_variables)]
impl Partition {
    pub fn new(id: PartitionId, budget: Arc<MemoryBudget>) -> Self {
        Partition { id, _budget: budget }
    }

    pub fn id(&self) -> PartitionId {
        self.id
    }

    // Tables. The caller has made sure that no transaction uses the table while it changes.

    pub fn create_table(&mut self, schema: Arc<TableSchema>) {
        todo!()
    }

    /// A new definition of a table that is here: renamed, columns or indexes added or dropped.
    /// Added ordered indexes begin empty and must be filled with [`Partition::build_index`] before they are scanned.
    pub fn alter_table(&mut self, schema: Arc<TableSchema>) {
        todo!()
    }

    pub fn drop_table(&mut self, table: TableId) {
        todo!()
    }

    /// Fills an ordered index from up to `rows` rows beginning at `from`; gives where to go on, or `None` at the end.
    pub fn build_index(
        &mut self,
        table: TableId,
        index: IndexId,
        from: RowId,
        rows: usize,
    ) -> Result<Option<RowId>, Stop> {
        todo!()
    }

    // Point access. `key` is the encoded primary key and `hash` its `key::hash`.

    /// A consistent read without a lock. `visit` runs under the caller's hold of the partition and must be short.
    pub fn read<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        hash: u64,
        access: &mut Access<'_>,
        visit: impl FnOnce(Option<RowView<'_>>) -> R,
    ) -> Result<R, Stop> {
        todo!()
    }

    /// Locks the row (a missing row is not locked) and reads its newest version.
    pub fn read_locked<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        hash: u64,
        mode: LockMode,
        wait: WaitPolicy,
        access: &mut Access<'_>,
        visit: impl FnOnce(Option<RowView<'_>>) -> R,
    ) -> Result<R, Stop> {
        todo!()
    }

    /// Locks and inserts. `row` is in the table's newest layout.
    pub fn insert(
        &mut self,
        table: TableId,
        key: &[u8],
        hash: u64,
        row: &[u8],
        access: &mut Access<'_>,
    ) -> Result<(), Stop> {
        todo!()
    }

    /// Locks and gives the row new content with the same primary key; `false` when there is no such row.
    pub fn update(
        &mut self,
        table: TableId,
        key: &[u8],
        hash: u64,
        row: &[u8],
        access: &mut Access<'_>,
    ) -> Result<bool, Stop> {
        todo!()
    }

    /// Locks and deletes; `false` when there is no such row. Works when memory is full.
    pub fn delete(&mut self, table: TableId, key: &[u8], hash: u64, access: &mut Access<'_>) -> Result<bool, Stop> {
        todo!()
    }

    // Scans

    /// Visits up to `slice` index entries or rows from `position` on. With a lock, each row is locked first and its newest
    /// version visited; on [`Stop::Wait`] the position is before the row that is waited for.
    pub fn scan(
        &mut self,
        request: &ScanRequest,
        position: &mut ScanPosition,
        slice: usize,
        access: &mut Access<'_>,
        visit: &mut dyn FnMut(&ScanRow<'_>) -> Verdict,
    ) -> Result<ScanEnd, Stop> {
        todo!()
    }

    /// SERIALIZABLE: locks a range of an index against inserts, deletes and key changes by others, until the transaction ends.
    pub fn lock_range(
        &mut self,
        txn: &TxnRef,
        table: TableId,
        index: IndexId,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
    ) -> Result<(), Stop> {
        todo!()
    }

    // The end of transactions

    /// Calls `visit` for every row that the transaction changed here, once each with its final state (rows inserted and deleted again are left out),
    /// in the order of first change.
    pub fn collect_writes(&self, txn: TxnId, visit: &mut dyn FnMut(TableId, Write<'_>)) {
        todo!()
    }

    /// Makes the transaction's versions the newest committed ones, with time `time` (its status word says so already), and gives back its locks.
    pub fn commit(&mut self, txn: TxnId, time: Timestamp, horizon: Horizon) {
        todo!()
    }

    /// Undoes everything of statements numbered `statement` and above; locks taken stay.
    pub fn rollback_to(&mut self, txn: TxnId, statement: u32) {
        todo!()
    }

    /// Undoes everything and gives back all locks.
    pub fn abort(&mut self, txn: TxnId) {
        todo!()
    }

    /// Takes the transaction out of every queue here (timeout, deadlock, KILL).
    pub fn cancel_wait(&mut self, txn: TxnId) {
        todo!()
    }

    /// Transactions whose lock was granted, or whose wait has become pointless, since the last call: wake them.
    pub fn take_granted(&mut self) -> Vec<TxnId> {
        todo!()
    }

    // Background

    /// Throws away up to `limit` versions, tombstones and index entries that no snapshot needs; gives how many.
    pub fn collect(&mut self, horizon: Horizon, limit: usize) -> usize {
        todo!()
    }

    /// Visits the newest committed version of up to `rows` rows beginning at `from`; gives where to go on.
    pub fn checkpoint_slice(
        &self,
        table: TableId,
        from: RowId,
        rows: usize,
        visit: &mut dyn FnMut(u16, Timestamp, &[u8]),
    ) -> Option<RowId> {
        todo!()
    }

    // Recovery, before any transaction

    /// A row from a checkpoint or the log; older than what is here: ignored.
    pub fn restore_put(&mut self, table: TableId, layout: u16, row: &[u8], time: Timestamp) -> Result<(), Stop> {
        todo!()
    }

    pub fn restore_delete(&mut self, table: TableId, key: &[u8], time: Timestamp) {
        todo!()
    }

    /// Drops the tombstones and fills all ordered indexes.
    pub fn finish_restore(&mut self) -> Result<(), Stop> {
        todo!()
    }

    // For the operator

    /// Rows that are committed and not deleted, and bytes of rows, hash index and ordered indexes.
    pub fn table_usage(&self, table: TableId) -> Option<TableUsage> {
        todo!()
    }

    /// Checks that indexes equal rows, counts equal contents, and side tables are consistent; panics with what is wrong.
    pub fn validate(&self) {
        todo!()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableUsage {
    pub rows: u64,
    pub row_bytes: u64,
    pub hash_bytes: u64,
    pub ordered_bytes: u64,
    pub history_bytes: u64,
}
