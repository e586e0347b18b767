//! Rows of a temporary table: a partition that only its session knows.
//!
//! A temporary table has a partition core of its own ([`rauk_kernel::Partition`]) with its rows and the entries of its
//! unique indexes. [`crate::transaction::Transaction`] takes the same calls for it as for any table; where the call
//! meets a partition it goes here instead, whatever partition the key's bucket names, and on a node of a cluster as
//! well. So nothing of it is in the redo log, in a checkpoint, in a stream to replicas or in the catalog.
//!
//! A session runs one transaction at a time, so nobody waits for a lock here, and there is one version that counts:
//! reads see the newest one and draw no snapshot, no history is kept, and all commits have the same time, which is
//! durable for whoever asks. The lock around the partition is never contended; it is there because a session moves
//! between threads.

use super::TableInfo;
use crate::error::NodeError;
use parking_lot::Mutex;
use rauk_kernel::partition::TableUsage;
use rauk_kernel::{Horizon, MemoryBudget, Partition, Stop};
use rauk_types::{PartitionId, TableSchema, Timestamp, TxnId};
use std::sync::Arc;

/// No snapshot needs a version, and everything is durable.
pub const HORIZON: Horizon = Horizon { oldest_snapshot: Timestamp::MAX, durable: Timestamp::MAX };
/// The time of all commits.
const COMMITTED: Timestamp = Timestamp(1);

pub struct OwnRows {
    partition: Mutex<Partition>,
    budget: Arc<MemoryBudget>,
}

impl OwnRows {
    /// Empty, for a table and its index tables.
    pub fn new(schemas: &[Arc<TableSchema>], budget: Arc<MemoryBudget>) -> Arc<OwnRows> {
        let mut partition = Partition::new(PartitionId(0), budget.clone());
        // Nobody else waits here, and nobody comes by to do a rest.
        partition.set_end_slice(usize::MAX);
        schemas.iter().for_each(|schema| partition.create_table(schema.clone()));
        Arc::new(OwnRows { partition: Mutex::new(partition), budget })
    }

    pub fn budget(&self) -> &Arc<MemoryBudget> {
        &self.budget
    }

    pub fn with<R>(&self, work: impl FnOnce(&mut Partition) -> R) -> R {
        work(&mut self.partition.lock())
    }

    /// Of a transaction that has not been here it does nothing.
    pub fn commit(&self, txn: TxnId) {
        self.with(|p| p.commit(txn, COMMITTED, HORIZON));
    }

    pub fn abort(&self, txn: TxnId) {
        self.with(|p| p.abort(txn));
    }

    pub fn rollback_to(&self, txn: TxnId, number: u32) {
        self.with(|p| p.rollback_to(txn, number));
    }

    pub fn usage(&self, table: &TableInfo) -> TableUsage {
        self.with(|p| p.table_usage(table.schema.id)).unwrap_or_default()
    }

    /// The error of a refused call; memory has limits here that other tables have not.
    pub fn explain(&self, stop: Stop, table: &TableInfo) -> NodeError {
        match stop {
            Stop::MemoryFull { limit } if limit == self.budget.limit() => {
                NodeError::TemporaryFull { table: crate::transaction::name_of(table), limit }
            }
            stop => crate::transaction::explain(stop, table),
        }
    }
}
