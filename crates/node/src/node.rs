//! What the parts of a node share: partitions, log, catalog, tables, and the books on who waits, reads and commits.

use crate::commit::group::{GroupCommit, Target};
use crate::commit::inflight::Inflight;
use crate::database::{Config, Durability};
use crate::ddl::changes::everything;
use crate::ends::Ends;
use crate::error::NodeError;
use crate::executor::{Class, Guarded};
use crate::locks::waits::Waits;
use crate::member::event_log::EventLog;
use crate::member::processes::Processes;
use crate::member::{self, Cluster};
use crate::names::Names;
use crate::ops::deadlock;
use crate::ops::sessions::Sessions;
use crate::pressure::Pressure;
use crate::runtime::Runtime;
use crate::scan::pushdown::Evaluator;
use crate::status::Registry;
use crate::table::TableInfo;
use crate::table::cache::TableCache;
use crate::table::counter::hidden_counter;
use crate::table::route;
use crate::transaction::snapshots::{Snapshot, Snapshots};
use parking_lot::Mutex;
use rauk_kernel::{Horizon, MemoryBudget, Partition};
use rauk_log::{DatabaseId, Disk, Manifest, RedoLog, Superblocks};
use rauk_manage::CatalogStore;
use rauk_types::{ProcessId, Timestamp, TxnId};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Bytes of a row on a node that is alone: a log record, or a block of a checkpoint, takes it.
const LONGEST_ROW: usize = rauk_log::redo::MAX_RECORD_BYTES - (64 << 10);

pub struct Node {
    pub config: Config,
    pub id: DatabaseId,
    pub disk: Arc<dyn Disk>,
    pub superblocks: Arc<Superblocks>,
    pub runtime: Arc<dyn Runtime>,
    pub log: Arc<RedoLog>,
    pub group: Arc<GroupCommit>,
    pub catalog: Mutex<CatalogStore>,
    /// Changes of the catalog since the node was opened.
    pub catalog_changes: AtomicU32,
    pub partitions: Box<[Guarded<Partition>]>,
    pub budget: Arc<MemoryBudget>,
    pub tables: TableCache,
    /// Stands for all definitions: [`crate::ddl::changes`].
    pub everything: Arc<TableInfo>,
    pub waits: Waits,
    /// Locks on names.
    pub names: Names,
    /// Ends of large transactions.
    pub ends: Ends,
    pub snapshots: Snapshots,
    pub inflight: Inflight,
    pub registry: Registry,
    /// The manifest in force. Held while a checkpoint is written, so there is one at a time.
    pub manifest: Mutex<Manifest>,
    pub next_txn: AtomicU64,
    /// Of temporary tables made so far, index tables included.
    pub temporary_tables: AtomicU32,
    /// A lower bound of the oldest snapshot, not always fresh.
    oldest_snapshot: AtomicU64,
    pub stopping: AtomicBool,
    pub checkpoint: crate::checkpoint::State,
    /// In a cluster: transactions of other nodes on partitions led here.
    pub sessions: Sessions,
    /// In a cluster: the search for deadlocks over nodes.
    pub search: deadlock::Search,
    /// How full memory is.
    pub pressure: Pressure,
    /// What has happened, for the operator.
    pub event_log: EventLog,
    /// When it was opened.
    pub opened: std::time::Duration,
    /// Reads the programs of other nodes' scans.
    pub evaluator: OnceLock<Arc<dyn Evaluator>>,
    /// The sessions of this process.
    pub processes: OnceLock<Arc<dyn Processes>>,
    /// Set once when the node is a member of a cluster.
    cluster: OnceLock<Arc<Cluster>>,
}

/// What a node is made of once recovery is through.
pub struct Parts {
    pub config: Config,
    pub id: DatabaseId,
    pub superblocks: Arc<Superblocks>,
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
        let guard = |mut partition: Partition| {
            partition.set_end_slice(parts.config.end_slice);
            let runtime = parts.runtime.clone();
            Guarded::new(partition, move || runtime.fatal("a partition is broken: work on it panicked"))
        };
        Arc::new(Node {
            opened: parts.runtime.now(),
            group: GroupCommit::new(log.clone(), parts.runtime.clone(), parts.config.flush),
            partitions: parts.partitions.into_iter().map(guard).collect(),
            oldest_snapshot: AtomicU64::new(log.last_time().0),
            checkpoint: crate::checkpoint::State::new(log.end_lsn()),
            log,
            config: parts.config,
            id: parts.id,
            disk: parts.superblocks.disk().clone(),
            superblocks: parts.superblocks,
            runtime: parts.runtime,
            catalog: Mutex::new(parts.catalog),
            catalog_changes: AtomicU32::new(1),
            budget: parts.budget,
            tables: TableCache::default(),
            everything: everything(),
            waits: Waits::default(),
            names: Names::default(),
            ends: Ends::default(),
            snapshots: Snapshots::default(),
            inflight: Inflight::default(),
            registry: Registry::default(),
            manifest: Mutex::new(parts.manifest),
            next_txn: AtomicU64::new(1),
            temporary_tables: AtomicU32::new(0),
            stopping: AtomicBool::new(false),
            pressure: Pressure::default(),
            event_log: EventLog::default(),
            sessions: Sessions::default(),
            search: deadlock::Search::default(),
            evaluator: OnceLock::new(),
            processes: OnceLock::new(),
            cluster: OnceLock::new(),
        })
    }

    /// What this node is in its cluster; `None`: it is alone.
    #[inline]
    pub fn cluster(&self) -> Option<&Arc<Cluster>> {
        self.cluster.get()
    }

    pub fn join_cluster(&self, cluster: Arc<Cluster>) {
        assert!(self.cluster.set(cluster).is_ok(), "a node is a member once");
    }

    /// Waits until a transaction that is prepared in a partition has been decided.
    pub async fn wait_decided(&self, partition: u16, txn: TxnId) {
        let cluster = self.cluster().expect("only nodes of a cluster have prepared transactions");
        cluster.wait_decided(partition, txn).await;
    }

    pub fn partition_count(&self) -> u16 {
        self.partitions.len() as u16
    }

    /// The partitions that tables are spread over: in a cluster all but the last, which is for tables that every node holds.
    #[inline]
    pub fn spread(&self) -> u16 {
        self.partition_count() - u16::from(self.cluster().is_some())
    }

    #[inline]
    pub fn partition_of(&self, bucket: u16) -> u16 {
        match self.cluster() {
            None => route::partition_of(bucket, self.partition_count()),
            Some(cluster) => cluster.layout().partition_of(bucket),
        }
    }

    /// The partitions that rows of a table may be in.
    pub fn partitions_of(&self, table: &TableInfo) -> std::ops::Range<u16> {
        let everywhere = table.route.is_everywhere();
        match self.cluster() {
            _ if table.own.is_some() => 0..1,
            None if everywhere => 0..1,
            None => 0..self.partition_count(),
            Some(_) if everywhere => self.partition_count() - 1..self.partition_count(),
            Some(_) => 0..self.spread(),
        }
    }

    pub fn check_running(&self) -> Result<(), NodeError> {
        match self.stopping.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(NodeError::ShuttingDown),
        }
    }

    /// Whether anybody may wait for the log to be on disk; in a cluster its streams see to what that means.
    pub fn is_fsync(&self) -> bool {
        self.config.durability != Durability::Relaxed
    }

    /// What may be thrown away, by the newest count.
    pub fn fresh_horizon(&self) -> Horizon {
        if let Some(cluster) = self.cluster() {
            return cluster.horizon();
        }
        let oldest = self.snapshots.oldest(|| self.log.last_time());
        self.oldest_snapshot.fetch_max(oldest.0, Ordering::Relaxed);
        Horizon { oldest_snapshot: oldest, durable: self.durable_time() }
    }

    /// What may be thrown away, by a recent count: for calls that seldom throw anything away.
    #[inline]
    pub fn recent_horizon(&self) -> Horizon {
        if let Some(cluster) = self.cluster() {
            return cluster.horizon();
        }
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

    /// In a cluster what is visible is stable.
    pub fn is_durable(&self, time: Timestamp) -> bool {
        !self.is_fsync() || time <= self.log.durable_time() || self.cluster().is_some()
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
        let leaving = self.clone();
        let job = move |p: &mut Partition| {
            f(p);
            leaving.leave(partition, p)
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
                (r, self.leave(partition, p))
            })
            .await;
        self.waits.grant(&granted);
        r
    }

    pub fn new_txn_id(&self) -> TxnId {
        let process = self.cluster().map_or(ProcessId::default(), |cluster| cluster.me().process);
        TxnId::of_process(process, self.next_txn.fetch_add(1, Ordering::Relaxed))
    }

    /// A key for a row of a table without a primary key. Only in a cluster it waits.
    pub async fn hidden_key(&self, table: &TableInfo) -> Result<u64, NodeError> {
        match self.cluster() {
            _ if table.own.is_some() => table.shared.hidden_keys.take(&self.log),
            None => table.shared.hidden_keys.take(&self.log),
            Some(cluster) => cluster.reserve(hidden_counter(table.shared.id), 1).await,
        }
    }

    /// Bytes of changes that one log entry takes: of a commit on a node that is alone, of a commit in one partition in a cluster, where a message must carry it.
    pub fn commit_limit(&self) -> usize {
        let fits = if self.cluster().is_some() { member::LONGEST_ENTRY } else { rauk_log::redo::MAX_RECORD_BYTES };
        fits.min(self.config.commit_limit)
    }

    /// Refuses changes that do not fit into one log entry.
    pub fn check_commit_size(&self, bytes: usize) -> Result<(), NodeError> {
        let limit = self.commit_limit();
        match bytes > limit {
            true => Err(NodeError::TooLarge { bytes: bytes as u64, limit: limit as u64 }),
            false => Ok(()),
        }
    }

    /// Refuses a row that nothing could carry whole: so it is read by other nodes, copied to replicas and written into checkpoints.
    pub fn check_row_size(&self, bytes: usize) -> Result<(), NodeError> {
        let limit = if self.cluster().is_some() { member::LONGEST_ENTRY } else { LONGEST_ROW };
        match bytes > limit {
            true => Err(NodeError::TooLarge { bytes: bytes as u64, limit: limit as u64 }),
            false => Ok(()),
        }
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
