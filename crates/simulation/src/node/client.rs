//! What all workloads share: a session with a random generator of its own, and how it takes errors.
use crate::node::tables::DATABASE;
use crate::runtime::SimRuntime;
use futures::future::select;
use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{Rng, RngCore, SeedableRng};
use rauk_node::runtime::Runtime;
use rauk_node::{
    Database, Interrupt, Isolation, NodeError, ScanBatch, ScanCursor, ScanSpec, TableHandle, Transaction, TxnOptions,
};
use rauk_types::{ErrorClass, IndexId, Value};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// How often each thing happened, for the traces and for tests that want to know that it did.
#[derive(Clone, Debug, Default)]
pub struct Counts(Arc<Mutex<BTreeMap<&'static str, u64>>>);

impl Counts {
    pub fn add(&self, what: &'static str) {
        *self.0.lock().entry(what).or_default() += 1;
    }

    pub fn all(&self) -> BTreeMap<&'static str, u64> {
        self.0.lock().clone()
    }
}

pub struct Client {
    pub db: Database,
    pub runtime: SimRuntime,
    pub rng: SmallRng,
    pub counts: Counts,
}

impl Client {
    /// Gives way to other tasks, or sleeps a moment.
    pub async fn pause(&mut self) {
        match self.rng.random_range(0..10) {
            0..=3 => {}
            4..=8 => yield_now().await,
            _ => {
                let pause = Duration::from_micros(self.rng.random_range(0..3000));
                self.runtime.sleep(pause).await;
            }
        }
    }

    /// Runs one transaction of a session. A few are killed (KILL QUERY) at some moment by way of `interrupt`, and a few are dropped where they stand, as when their connection is lost.
    pub async fn session(&mut self, interrupt: Arc<Interrupt>, transaction: impl Future<Output = ()>) {
        let after = Duration::from_micros(self.rng.random_range(0..20_000));
        match self.rng.random_range(0..30) {
            0 => {
                let sleep = self.runtime.sleep(after);
                self.runtime.spawn("killer", async move {
                    sleep.await;
                    interrupt.kill();
                });
                transaction.await;
            }
            1 => {
                self.counts.add("connection lost");
                select(Box::pin(transaction), self.runtime.sleep(after)).await;
            }
            _ => transaction.await,
        }
    }

    /// Another session on the same database.
    pub fn another(&mut self) -> Client {
        Client {
            db: self.db.clone(),
            runtime: self.runtime.clone(),
            rng: SmallRng::seed_from_u64(self.rng.next_u64()),
            counts: self.counts.clone(),
        }
    }

    /// Sleeps some milliseconds.
    pub async fn rest(&mut self) {
        let pause = Duration::from_micros(self.rng.random_range(100..20_000));
        self.runtime.sleep(pause).await;
    }

    pub fn options(&mut self) -> TxnOptions {
        let isolation = match self.rng.random_range(0..3) {
            0 => Isolation::ReadCommitted,
            1 => Isolation::RepeatableRead,
            _ => Isolation::Serializable,
        };
        let lock_wait_timeout = Duration::from_millis(self.rng.random_range(20..2000));
        TxnOptions { isolation, lock_wait_timeout, ..TxnOptions::default() }
    }

    pub fn table(&self, name: &str) -> Result<TableHandle, NodeError> {
        self.db.table(DATABASE, name)
    }

    /// An error reaches the client: what it may have learned from must be durable. Counts it.
    pub async fn answer_error(&self, txn: &mut Transaction, error: &NodeError) {
        self.note(error);
        let _ = txn.wait_observed().await;
        self.told().await;
    }

    /// An answer is on its way to the client, who has it in a poll of its own: whoever waits for its disk meanwhile may die before.
    pub async fn told(&self) {
        yield_now().await;
    }

    /// Whether a commit that ended with this error has certainly not happened.
    pub fn is_undone(&self, error: &NodeError) -> bool {
        let known = matches!(error.class(), ErrorClass::Temporary | ErrorClass::Permanent);
        known && self.runtime.crashed().is_none()
    }

    /// Counts an error; one that no workload may meet while the node is well is a failure of the simulation.
    pub fn note(&self, error: &NodeError) {
        self.counts.add(match error {
            NodeError::Deadlock => "deadlock",
            NodeError::LockTimeout => "lock timeout",
            NodeError::NoWait => "no wait",
            NodeError::Changed { .. } => "changed",
            NodeError::SnapshotTooOld { .. } => "snapshot too old",
            NodeError::MemoryFull { .. } => "memory full",
            NodeError::DiskFull(_) => "disk full",
            NodeError::Interrupted => "interrupted",
            NodeError::StaleSchema => "stale schema",
            NodeError::NewerThanSnapshot => "newer than snapshot",
            NodeError::NoSuchTable { .. } => "no such table",
            NodeError::ShuttingDown => "shutting down",
            NodeError::UnknownOutcome(_) => "unknown outcome",
            NodeError::Unavailable(_) => "unavailable",
            NodeError::Moved { .. } => "moved",
            NodeError::NoPrimary { .. } => "no primary",
            NodeError::ReadOnly { .. } => "read only",
            other => {
                assert!(self.runtime.crashed().is_some(), "a statement failed with: {other}");
                "fatal"
            }
        });
    }
}

/// Lets other tasks go first.
pub async fn yield_now() {
    let mut yielded = false;
    std::future::poll_fn(move |context| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// A scan of everything: rows, or an index.
pub fn everything(index: Option<IndexId>) -> ScanSpec {
    ScanSpec { index, ordered: index.is_some(), ..ScanSpec::default() }
}

/// All rows that a scan gives, in batches of `batch` rows.
pub async fn collect(
    txn: &mut Transaction,
    table: &TableHandle,
    spec: ScanSpec,
    batch_rows: usize,
) -> Result<Vec<Vec<Value>>, NodeError> {
    let mut rows = Vec::new();
    let mut cursor = ScanCursor::new(table, spec);
    let mut batch = ScanBatch::default();
    loop {
        cursor.next_batch(txn, batch_rows, &mut |_| true, &mut batch).await?;
        if batch.is_empty() {
            return Ok(rows);
        }
        rows.extend((0..batch.len()).map(|i| super::tables::values(table, &batch.row(table, i))));
    }
}
