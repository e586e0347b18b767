//! What the parts of a node share: partitions, log, catalog, tables, and the books on who waits, reads and commits.

use crate::commit::group::{GroupCommit, Target};
use crate::commit::inflight::Inflight;
use crate::database::{Config, Durability};
use crate::error::NodeError;
use crate::executor::{Class, Guarded};
use crate::locks::waits::Waits;
use crate::runtime::Runtime;
use crate::status::Registry;
use crate::table::cache::TableCache;
use crate::table::route;
use crate::transaction::snapshots::{Snapshot, Snapshots};
use parking_lot::Mutex;
use rauk_kernel::{Horizon, MemoryBudget, Partition};
use rauk_log::{DatabaseId, Disk, Manifest, RedoLog};
use rauk_manage::CatalogStore;
use rauk_types::{Timestamp, TxnId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

pub struct Node {
    pub config: Config,
    pub id: DatabaseId,
    pub disk: Arc<dyn Disk>,
    pub runtime: Arc<dyn Runtime>,
    pub log: Arc<RedoLog>,
    pub group: Arc<GroupCommit>,
    pub catalog: Mutex<CatalogStore>,
    /// Changes of the catalog since the node was opened.
    pub catalog_changes: AtomicU32,
    pub partitions: Box<[Guarded<Partition>]>,
    pub budget: Arc<MemoryBudget>,
    pub tables: TableCache,
    pub waits: Waits,
    pub snapshots: Snapshots,
    pub inflight: Inflight,
    pub registry: Registry,
    /// The manifest in force. Held while a checkpoint is written, so there is one at a time.
    pub manifest: Mutex<Manifest>,
    pub next_txn: AtomicU64,
    /// A lower bound of the oldest snapshot, not always fresh.
    oldest_snapshot: AtomicU64,
    pub stopping: AtomicBool,
    pub checkpoint: crate::checkpoint::State,
}

/// What a node is made of once recovery is through.
pub struct Parts {
    pub config: Config,
    pub id: DatabaseId,
    pub disk: Arc<dyn Disk>,
    pub runtime: Arc<dyn Runtime>,
    pub log: RedoLog,
    pub catalog: CatalogStore,
    pub partitions: Vec<Partition>,
    pub budget: Arc<MemoryBudget>,
    pub manifest: Manifest,
}

impl Node {
    pub fn new(parts: Parts) -> Arc<Node> {
        let log = Arc::new(parts.log);
        let guard = |partition: Partition| {
            let runtime = parts.runtime.clone();
            Guarded::new(partition, move || runtime.fatal("a partition is broken: work on it panicked"))
        };
        Arc::new(Node {
            group: GroupCommit::new(log.clone(), parts.runtime.clone(), parts.config.flush),
            partitions: parts.partitions.into_iter().map(guard).collect(),
            oldest_snapshot: AtomicU64::new(log.last_time().0),
            checkpoint: crate::checkpoint::State::new(log.end_lsn()),
            log,
            config: parts.config,
            id: parts.id,
            disk: parts.disk,
            runtime: parts.runtime,
            catalog: Mutex::new(parts.catalog),
            catalog_changes: AtomicU32::new(1),
            budget: parts.budget,
            tables: TableCache::default(),
            waits: Waits::default(),
            snapshots: Snapshots::default(),
            inflight: Inflight::default(),
            registry: Registry::default(),
            manifest: Mutex::new(parts.manifest),
            next_txn: AtomicU64::new(1),
            stopping: AtomicBool::new(false),
        })
    }

    pub fn partition_count(&self) -> u16 {
        self.partitions.len() as u16
    }

    #[inline]
    pub fn partition_of(&self, bucket: u16) -> u16 {
        route::partition_of(bucket, self.partition_count())
    }

    pub fn check_running(&self) -> Result<(), NodeError> {
        match self.stopping.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(NodeError::ShuttingDown),
        }
    }

    pub fn is_fsync(&self) -> bool {
        self.config.durability == Durability::Fsync
    }

    /// What may be thrown away, by the newest count.
    pub fn fresh_horizon(&self) -> Horizon {
        let oldest = self.snapshots.oldest(|| self.log.last_time());
        self.oldest_snapshot.fetch_max(oldest.0, Ordering::Relaxed);
        Horizon { oldest_snapshot: oldest, durable: self.durable_time() }
    }

    /// What may be thrown away, by a recent count: for calls that seldom throw anything away.
    #[inline]
    pub fn recent_horizon(&self) -> Horizon {
        Horizon {
            oldest_snapshot: Timestamp(self.oldest_snapshot.load(Ordering::Relaxed)),
            durable: self.durable_time(),
        }
    }

    /// Where nobody waits for the disk, nothing needs to be kept for those who would.
    fn durable_time(&self) -> Timestamp {
        if self.is_fsync() { self.log.durable_time() } else { Timestamp::MAX }
    }

    pub fn draw_snapshot(&self) -> Snapshot {
        self.snapshots.draw(|| self.log.last_time())
    }

    pub fn is_durable(&self, time: Timestamp) -> bool {
        !self.is_fsync() || time <= self.log.durable_time()
    }

    /// Waits until everything committed at or before `time` is on disk, where that is promised.
    pub async fn wait_durable(&self, time: Timestamp) -> Result<(), NodeError> {
        if self.is_durable(time) {
            return Ok(());
        }
        self.group.wait(Target::Time(time)).await
    }

    /// Runs `f` on a partition, now or later, without waiting for it; then wakes whom it granted locks.
    pub fn detach(self: &Arc<Self>, partition: u16, f: impl FnOnce(&mut Partition) + Send + 'static) {
        let guarded = &self.partitions[partition as usize];
        let job = move |p: &mut Partition| {
            f(p);
            p.take_granted()
        };
        match guarded.try_with(job) {
            Ok(granted) => self.waits.grant(&granted),
            Err(job) => {
                let node = self.clone();
                guarded.detach(Class::Resolve, move |p| {
                    let granted = job(p);
                    node.waits.grant(&granted);
                });
            }
        }
    }

    /// Runs `f` on a partition and wakes whom it granted locks.
    pub async fn on_partition<R: Send>(
        &self,
        partition: u16,
        class: Class,
        f: impl FnOnce(&mut Partition) -> R + Send,
    ) -> R {
        let (r, granted) = self.partitions[partition as usize]
            .with(class, |p| {
                let r = f(p);
                (r, p.take_granted())
            })
            .await;
        self.waits.grant(&granted);
        r
    }

    pub fn new_txn_id(&self) -> TxnId {
        TxnId(self.next_txn.fetch_add(1, Ordering::Relaxed))
    }

    /// A broken invariant or a lost disk: stops the process, and fails everything that comes after in a simulator.
    pub fn fatal(&self, reason: &str) {
        self.stopping.store(true, Ordering::Relaxed);
        self.runtime.fatal(reason);
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.group.close();
    }
}
