//! Transactions: statements, savepoints, locks, commit.
//!
//! Isolation, snapshots and 1020 follow design: READ COMMITTED draws a snapshot for each statement, REPEATABLE READ at the first
//! consistent read, SERIALIZABLE locks what it reads (rows and index ranges).
use crate::database::TableHandle;
use crate::error::NodeError;
use rauk_kernel::{LockMode, WaitPolicy};
use rauk_types::{IndexId, RowView, TableSchema, Value};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// How a read locks. At SERIALIZABLE (not autocommit) a plain read is turned into a shared lock.
pub type Lock = Option<(LockMode, WaitPolicy)>;

#[derive(Clone, Debug)]
pub struct TxnOptions {
    pub isolation: Isolation,
    pub read_only: bool,
    /// One statement is the whole transaction: plain reads of one partition need no snapshot.
    pub autocommit: bool,
    pub lock_wait_timeout: Duration,
    /// `innodb_snapshot_isolation`: writes to rows that changed after the snapshot fail with 1020.
    pub snapshot_isolation: bool,
    /// Set by KILL; waits are woken by [`Interrupt::kill`].
    pub interrupt: Arc<Interrupt>,
}

/// KILL QUERY for one session: a flag, and the waiting task to wake.
#[derive(Debug, Default)]
pub struct Interrupt {
    killed: AtomicBool,
}

#[allow(unused_variables)]
impl Interrupt {
    /// Interrupts the running statement of the session, also while it waits.
    pub fn kill(&self) {
        todo!()
    }
    /// Called at the beginning of a statement.
    pub fn clear(&self) {
        todo!()
    }
    pub fn is_killed(&self) -> bool {
        self.killed.load(std::sync::atomic::Ordering::Relaxed)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Savepoint(pub u32);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InsertOutcome {
    Inserted,
    /// A row with the same key is there, locked exclusively for this transaction; nothing was inserted.
    Duplicate {
        index: IndexId,
        /// Encoded primary key of the row in the way.
        existing: Vec<u8>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpdateOutcome {
    Updated,
    /// There is no such row any more.
    Missing,
    Duplicate {
        index: IndexId,
        existing: Vec<u8>,
    },
}

/// A running transaction. Dropping it rolls back.
pub struct Transaction {}

#[allow(unused_variables)]
impl Transaction {
    /// Begins a statement: own writes before it are visible to it, at READ COMMITTED a new snapshot will be drawn.
    pub fn begin_statement(&mut self) {
        todo!()
    }

    /// Undoes what the present statement wrote (its locks stay) after an error that does not end the transaction.
    pub fn rollback_statement(&mut self) {
        todo!()
    }

    /// Takes the table's metadata lock until the transaction ends. `StaleSchema`: look it up and bind again.
    pub async fn use_table(&mut self, table: &TableHandle) -> Result<(), NodeError> {
        todo!()
    }

    /// Reads one row by encoded primary key. `visit` runs while the partition is held: it copies what it needs.
    pub async fn get<R: Send>(
        &mut self,
        table: &TableHandle,
        key: &[u8],
        lock: Lock,
        visit: impl FnOnce(Option<RowView<'_>>) -> R + Send,
    ) -> Result<R, NodeError> {
        todo!()
    }

    /// Reads one row by the full encoded key of a unique index: the index table first, then the row.
    pub async fn get_unique<R: Send>(
        &mut self,
        table: &TableHandle,
        index: IndexId,
        key: &[u8],
        lock: Lock,
        visit: impl FnOnce(Option<RowView<'_>>) -> R + Send,
    ) -> Result<R, NodeError> {
        todo!()
    }

    /// Inserts a row: one converted value a column (the hidden key's may be NULL and is filled).
    pub async fn insert(&mut self, table: &TableHandle, row: &[Value]) -> Result<InsertOutcome, NodeError> {
        todo!()
    }

    /// Changes a row that was read with an exclusive lock: `old` as read, `new` as wanted; the primary key may change.
    pub async fn update(
        &mut self,
        table: &TableHandle,
        old: &[Value],
        new: &[Value],
    ) -> Result<UpdateOutcome, NodeError> {
        todo!()
    }

    /// Deletes a row that was read with an exclusive lock; `false` when it is gone.
    pub async fn delete(&mut self, table: &TableHandle, row: &[Value]) -> Result<bool, NodeError> {
        todo!()
    }

    pub fn savepoint(&mut self) -> Savepoint {
        todo!()
    }

    pub fn rollback_to(&mut self, savepoint: Savepoint) {
        todo!()
    }

    /// START TRANSACTION WITH CONSISTENT SNAPSHOT.
    pub fn take_snapshot(&mut self) {
        todo!()
    }

    /// Waits until everything that this transaction has read is durable: before any answer, errors included.
    pub async fn wait_observed(&mut self) -> Result<(), NodeError> {
        todo!()
    }

    /// Whether it wrote anything.
    pub fn has_writes(&self) -> bool {
        todo!()
    }

    /// Commits; at `fsync` returns when the commit, and all that it read, is on disk.
    pub async fn commit(self) -> Result<(), NodeError> {
        todo!()
    }

    pub fn rollback(self) {
        todo!()
    }
}

/// Whether a `TableSchema` is the one behind a handle: a helper for plan caches.
pub fn same_definition(a: &TableSchema, b: &TableSchema) -> bool {
    a.id == b.id && a.version == b.version
}
