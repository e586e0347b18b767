//! What the node tells its operator: running transactions, waits, and counts.

use crate::locks::waits::{WaitInfo, Wanted};
use crate::node::Node;
use crate::ops::touches::Touches;
use crate::ops::wire::Rows;
use crate::table::TableInfo;
use crate::transaction::{Isolation, TxnOptions};
use parking_lot::Mutex;
use rauk_kernel::partition::TableUsage;
use rauk_types::{TableId, TxnId};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const SHARDS: usize = 16;

fn sum_of(sum: Option<TableUsage>, more: TableUsage) -> Option<TableUsage> {
    let sum = sum.unwrap_or_default();
    Some(TableUsage {
        rows: sum.rows + more.rows,
        row_bytes: sum.row_bytes + more.row_bytes,
        hash_bytes: sum.hash_bytes + more.hash_bytes,
        ordered_bytes: sum.ordered_bytes + more.ordered_bytes,
        history_bytes: sum.history_bytes + more.history_bytes,
    })
}

/// Transactions that hold locks or have written, and counts of what has happened.
#[derive(Default)]
pub struct Registry {
    shards: [Mutex<FxHashMap<TxnId, Arc<TxnRecord>>>; SHARDS],
    pub commits: AtomicU64,
    pub rollbacks: AtomicU64,
    pub lock_timeouts: AtomicU64,
    pub checkpoints: AtomicU64,
    pub checkpoint_failures: AtomicU64,
    pub commit_bytes: AtomicU64,
    pub remote_scan_rows: AtomicU64,
    pub remote_scan_bytes: AtomicU64,
    pub remote_scan_answers: AtomicU64,
    pub remote_operations: AtomicU64,
    pub scrubbed_rows: AtomicU64,
    pub scrub_rounds: AtomicU64,
    pub damaged_tables: AtomicU64,
    pub digest_mismatches: AtomicU64,
    pub stopped_replicas: AtomicU64,
}

/// With what a transaction was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Began {
    /// Number of its session; 0: none.
    pub session: u64,
    pub isolation: Isolation,
    pub read_only: bool,
    pub foreign_key_checks: bool,
}

/// A running transaction as the operator's tables see it.
#[derive(Debug)]
pub struct TxnRecord {
    pub started: Duration,
    pub rows_changed: AtomicU64,
    /// What it was begun with.
    pub began: Began,
    /// In a cluster: the partitions led here that it has touched.
    pub touches: Touches,
}

impl Registry {
    fn shard(&self, id: TxnId) -> &Mutex<FxHashMap<TxnId, Arc<TxnRecord>>> {
        &self.shards[id.0 as usize % SHARDS]
    }

    pub fn enter(&self, id: TxnId, started: Duration, options: &TxnOptions) -> Arc<TxnRecord> {
        let TxnOptions { session, isolation, read_only, foreign_key_checks, .. } = *options;
        let began = Began { session, isolation, read_only, foreign_key_checks };
        let (rows_changed, touches) = (AtomicU64::new(0), Touches::default());
        let record = Arc::new(TxnRecord { started, rows_changed, began, touches });
        self.shard(id).lock().insert(id, record.clone());
        record
    }

    pub fn leave(&self, id: TxnId) {
        self.shard(id).lock().remove(&id);
    }

    /// An answer to a scan or a lookup has come from another node.
    pub fn note_remote_scan(&self, rows: &Rows) {
        self.remote_scan_rows.fetch_add(rows.count() as u64, Ordering::Relaxed);
        self.remote_scan_bytes.fetch_add(rows.size() as u64, Ordering::Relaxed);
        self.remote_scan_answers.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the transaction runs on this node.
    pub fn runs(&self, id: TxnId) -> bool {
        self.shard(id).lock().contains_key(&id)
    }

    /// The transactions that run on this node, by id.
    pub fn records(&self) -> Vec<(TxnId, Arc<TxnRecord>)> {
        let mut all = Vec::new();
        for shard in &self.shards {
            all.extend(shard.lock().iter().map(|(id, record)| (*id, record.clone())));
        }
        all.sort_by_key(|(id, _)| *id);
        all
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionState {
    Running,
    /// For a row lock.
    Waiting,
}

/// A transaction that holds locks or has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionInfo {
    pub id: TxnId,
    pub state: TransactionState,
    /// Since its first lock or write.
    pub age: Duration,
    pub rows_changed: u64,
    pub began: Began,
    /// Those whose locks it waits for.
    pub waiting_for: Vec<TxnId>,
    /// How long it has waited for them.
    pub waited: Duration,
}

/// A wait for a row lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockWaitInfo {
    pub waiting: TxnId,
    pub blocking: TxnId,
    pub wanted: Wanted,
}

/// Counts since the node was opened, and sizes as they are now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub commits: u64,
    pub rollbacks: u64,
    pub flushes: u64,
    pub deadlocks: u64,
    pub lock_waits: u64,
    /// Of those that have ended: all together and the longest, in nanoseconds.
    pub lock_waited: u64,
    pub longest_lock_wait: u64,
    pub lock_timeouts: u64,
    pub checkpoints: u64,
    pub checkpoint_failures: u64,
    /// Payload bytes of commit records.
    pub commit_bytes: u64,
    /// Rows that other nodes have sent to scans of this one, and their bytes.
    pub remote_scan_rows: u64,
    pub remote_scan_bytes: u64,
    pub remote_scan_answers: u64,
    /// Operations of transactions that other nodes were asked for.
    pub remote_operations: u64,
    /// Stored rows that were compared with what was written; and how often all were.
    pub scrubbed_rows: u64,
    pub scrub_rounds: u64,
    /// How often a table was found to have damaged rows here.
    pub damaged_tables: u64,
    /// Comparisons with other replicas, led here, in which one had other rows.
    pub digest_mismatches: u64,
    /// Replicas of this node that could not go on, and were replaced by copies where others had everything.
    pub stopped_replicas: u64,
    /// Position of the redo log's end.
    pub redo_end: u64,
    /// Bytes of redo segments in use.
    pub redo_live_bytes: u64,
    pub memory_used: u64,
    pub memory_limit: u64,
    pub snapshots: u64,
    pub transactions: u64,
}

impl Node {
    pub fn transaction_infos(&self) -> Vec<TransactionInfo> {
        let waits: FxHashMap<TxnId, WaitInfo> = self.waits.list().into_iter().map(|w| (w.txn, w)).collect();
        let now = self.runtime.now();
        let mut all: Vec<TransactionInfo> = Vec::new();
        for shard in &self.registry.shards {
            all.extend(shard.lock().iter().map(|(id, record)| {
                let wait = waits.get(id);
                TransactionInfo {
                    id: *id,
                    state: if wait.is_some() { TransactionState::Waiting } else { TransactionState::Running },
                    age: now.saturating_sub(record.started),
                    rows_changed: record.rows_changed.load(Ordering::Relaxed),
                    began: record.began,
                    waiting_for: wait.map(|w| w.blockers.clone()).unwrap_or_default(),
                    waited: wait.map_or(Duration::ZERO, |w| now.saturating_sub(w.since)),
                }
            }));
        }
        all.sort_by_key(|t| t.id);
        all
    }

    /// Rows and bytes of a table in all partitions that are here; those that are busy count as they did when last looked at.
    pub fn usage(&self, table: &TableInfo) -> TableUsage {
        self.usage_in(table, |_| true)
    }

    /// The same in some of the partitions.
    pub fn usage_in(&self, table: &TableInfo, of: impl Fn(usize) -> bool) -> TableUsage {
        let ids: SmallVec<[TableId; 1]> = match &table.parts {
            None => smallvec![table.schema.id],
            Some(parts) => parts.leaves().iter().map(|leaf| leaf.schema.id).collect(),
        };
        let mut cached = table.shared.usage.lock();
        let mut sum = TableUsage::default();
        for (number, partition) in self.partitions.iter().enumerate().filter(|(number, _)| of(*number)) {
            let now = partition.try_with(|p| ids.iter().filter_map(|id| p.table_usage(*id)).fold(None, sum_of));
            let last = cached.get(number).copied().unwrap_or_default();
            let usage = now.ok().flatten().unwrap_or(last);
            if usage != last {
                let known = cached.len().max(number + 1);
                cached.resize(known, TableUsage::default());
                cached[number] = usage;
            }
            sum = sum_of(Some(sum), usage).unwrap_or_default();
        }
        sum
    }

    pub fn lock_wait_infos(&self) -> Vec<LockWaitInfo> {
        let one = |w: WaitInfo| {
            let (waiting, wanted) = (w.txn, w.wanted);
            w.blockers.into_iter().map(move |blocking| LockWaitInfo { waiting, blocking, wanted })
        };
        self.waits.list().into_iter().flat_map(one).collect()
    }

    pub fn counters(&self) -> Counters {
        let read = |a: &AtomicU64| a.load(Ordering::Relaxed);
        Counters {
            commits: read(&self.registry.commits),
            rollbacks: read(&self.registry.rollbacks),
            flushes: read(&self.group.flushes),
            deadlocks: read(&self.waits.deadlocks),
            lock_waits: read(&self.waits.waits_begun),
            lock_waited: read(&self.waits.waited),
            longest_lock_wait: read(&self.waits.longest),
            lock_timeouts: read(&self.registry.lock_timeouts),
            checkpoints: read(&self.registry.checkpoints),
            checkpoint_failures: read(&self.registry.checkpoint_failures),
            commit_bytes: read(&self.registry.commit_bytes),
            remote_scan_rows: read(&self.registry.remote_scan_rows),
            remote_scan_bytes: read(&self.registry.remote_scan_bytes),
            remote_scan_answers: read(&self.registry.remote_scan_answers),
            remote_operations: read(&self.registry.remote_operations),
            scrubbed_rows: read(&self.registry.scrubbed_rows),
            scrub_rounds: read(&self.registry.scrub_rounds),
            damaged_tables: read(&self.registry.damaged_tables),
            digest_mismatches: read(&self.registry.digest_mismatches),
            stopped_replicas: read(&self.registry.stopped_replicas),
            redo_end: self.log.end_lsn().0,
            redo_live_bytes: self.log.live_bytes(),
            memory_used: self.budget.used(),
            memory_limit: self.budget.limit(),
            snapshots: self.snapshots.count() as u64,
            transactions: self.registry.shards.iter().map(|s| s.lock().len() as u64).sum(),
        }
    }
}
