//! The open database: tables, DDL, counters, usage, life and end.

use crate::checkpoint;
use crate::commit::group::FlushPolicy;
use crate::error::NodeError;
use crate::executor::Class;
use crate::member::Cluster;
use crate::member::chunks::{CHUNK_BYTES, STANDING_CHUNK_BYTES, UNSTABLE_BYTES};
use crate::member::comparing::COMPARE_EVERY;
use crate::node::Node;
use crate::recovery;
use crate::recovery::progress::RecoveryProgress;
use crate::runtime::Runtime;
use crate::scan::pushdown::Evaluator;
use crate::scrub::SCRUB_REST;
use crate::status::{Counters, LockWaitInfo, TransactionInfo};
use crate::table::TableInfo;
use crate::table::io::IoCounts;
use crate::table::parts::Parts;
use crate::transaction::{Transaction, TxnOptions};
use rauk_kernel::END_SLICE;
use rauk_log::Disk;
use rauk_manage::{Command, SettingChange};
use rauk_types::{IndexId, TableId, TableSchema};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A node that ends in order waits so long for a cut that covers what it has acknowledged.
const LAST_CUT: Duration = Duration::from_secs(2);

/// [`Config::parallel_ddl_rows`]: some 10 ms of work; less is done before threads have started.
const PARALLEL_DDL_ROWS: u64 = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Acknowledged means on disk.
    Fsync,
    /// Flushed every epoch (50 ms); a crash loses at most that, never half a transaction.
    Relaxed,
    /// Of a member of a cluster: acknowledged means in the memory of all in-sync replicas; when that is lost the cluster goes back to a cut, 0.1 s or so and at most about a second of commits, never half a transaction.
    Replicated,
}

impl Durability {
    pub fn name(self) -> &'static str {
        match self {
            Durability::Fsync => "fsync",
            Durability::Relaxed => "relaxed",
            Durability::Replicated => "replicated",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Config {
    /// Of a new database; an old one keeps what it was made with.
    pub partitions: u16,
    pub durability: Durability,
    pub memory_limit: u64,
    /// The most that the process can have, limit or not: recovery goes no further, and the limit is not set above it.
    pub memory_available: u64,
    /// Bytes of old versions, over all partitions; beyond, the oldest snapshots fail.
    pub history_limit: u64,
    pub segment_bytes: u64,
    /// A checkpoint begins when the redo log has grown by this much since the last.
    pub checkpoint_redo_bytes: u64,
    /// Who makes the log durable.
    pub flush: FlushPolicy,
    /// Bytes of one commit in one log entry, if fewer than fit: for tests.
    pub commit_limit: usize,
    /// In a cluster: what a transaction has written goes to the replicas whenever it is so many bytes in a partition.
    pub chunk_bytes: u64,
    /// Of such chunks so many bytes stand in one group; beyond, transactions make no more.
    pub standing_chunk_bytes: usize,
    /// A transaction with chunks goes on when at most so many bytes of the group's stream are not stable.
    pub unstable_bytes: u64,
    /// Rows of a large transaction that are installed or undone in one hold.
    pub end_slice: usize,
    /// In a cluster: how often the rows of replicas are compared, if something was written.
    pub compare_every: Duration,
    /// The walk over all stored rows rests so long before it begins again.
    pub scrub_rest: Duration,
    /// DDL statements work on so many rows, and more, with several threads.
    pub parallel_ddl_rows: u64,
    /// Tells how far the recovery is that opens the database.
    pub recovery: Arc<RecoveryProgress>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            partitions: 8,
            durability: Durability::Fsync,
            memory_limit: 4 << 30,
            memory_available: u64::MAX,
            history_limit: 1 << 30,
            segment_bytes: 64 << 20,
            checkpoint_redo_bytes: 256 << 20,
            flush: FlushPolicy::Adaptive,
            commit_limit: usize::MAX,
            chunk_bytes: CHUNK_BYTES,
            standing_chunk_bytes: STANDING_CHUNK_BYTES,
            unstable_bytes: UNSTABLE_BYTES,
            end_slice: END_SLICE,
            compare_every: COMPARE_EVERY,
            scrub_rest: SCRUB_REST,
            parallel_ddl_rows: PARALLEL_DDL_ROWS,
            recovery: Arc::default(),
        }
    }
}

/// One node's database. Cheap to clone.
#[derive(Clone)]
pub struct Database {
    pub(crate) node: Arc<Node>,
}

/// A table as open statements hold it; plans keep it. Its schema is fixed: after a DDL the handle is stale and
/// [`Transaction::use_table`] says so.
#[derive(Clone)]
pub struct TableHandle {
    info: Arc<TableInfo>,
    /// Of a partitioned table, the only leaves that are looked in; `None`: all.
    leaves: Option<Arc<[bool]>>,
}

impl TableHandle {
    pub(crate) fn new(info: Arc<TableInfo>) -> TableHandle {
        TableHandle { info, leaves: None }
    }

    /// The same partitioned table, of which only some leaves are looked in: one mark for each.
    pub fn with_leaves(&self, leaves: Arc<[bool]>) -> TableHandle {
        assert_eq!(leaves.len(), self.parts().map_or(0, Parts::count), "one mark for each leaf");
        TableHandle { info: self.info.clone(), leaves: Some(leaves) }
    }

    /// The leaves that are looked in, if not all are.
    pub fn leaves(&self) -> Option<&Arc<[bool]>> {
        self.leaves.as_ref()
    }

    /// Of a partitioned table: where its rows are.
    pub fn parts(&self) -> Option<&Parts> {
        self.info.parts.as_deref()
    }

    pub(crate) fn has_leaf(&self, number: usize) -> bool {
        self.leaves.as_ref().is_none_or(|leaves| leaves[number])
    }

    /// The tables that are looked in.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<TableInfo>> {
        self.tables_of(None)
    }

    /// The same of some leaves, one mark for each.
    pub(crate) fn tables_of(&self, wanted: Option<&[bool]>) -> impl Iterator<Item = &Arc<TableInfo>> {
        let (whole, leaves) = match &self.info.parts {
            None => (Some(&self.info), &[][..]),
            Some(parts) => (None, parts.leaves()),
        };
        let is_wanted = move |number: usize| self.has_leaf(number) && wanted.is_none_or(|wanted| wanted[number]);
        let leaves = leaves.iter().enumerate().filter(move |(number, _)| is_wanted(*number)).map(|(_, leaf)| leaf);
        whole.into_iter().chain(leaves)
    }

    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.info.schema
    }

    /// Whether foreign keys refer to it.
    pub fn is_referenced(&self) -> bool {
        self.info.shared.children.any()
    }

    pub(crate) fn info(&self) -> &Arc<TableInfo> {
        &self.info
    }

    /// Encodes primary keys of this table, made once.
    pub fn primary_key(&self) -> &rauk_types::KeyDef {
        &self.info.primary
    }

    /// Encodes keys of a unique index of this table, made once.
    pub fn unique_key(&self, index: IndexId) -> Option<&rauk_types::KeyDef> {
        // Of a partitioned table each leaf has them, all the same.
        let info = self.parts().map_or(&self.info, |parts| &parts.leaves()[0]);
        info.unique(index).map(|u| &*u.key)
    }

    /// Whether a DDL has changed or dropped the table since.
    pub fn is_stale(&self) -> bool {
        !self.info.shared.is_current(self.info.schema.version)
    }
}

impl std::fmt::Debug for TableHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let TableSchema { database, name, version, .. } = &*self.info.schema;
        write!(f, "TableHandle({database}.{name} version {version})")
    }
}

impl Database {
    /// Opens or creates the database: loads the catalog and the newest checkpoint, replays the redo log. `progress` gets a line now and then while that
    /// takes long.
    pub fn open(
        config: Config,
        disk: Arc<dyn Disk>,
        runtime: Arc<dyn Runtime>,
        progress: &dyn Fn(&str),
    ) -> Result<Database, NodeError> {
        let node = recovery::open(config, disk, runtime, progress)?;
        checkpoint::background::start(&node);
        Ok(Database { node })
    }

    /// Sets what evaluates expressions for the scans of other nodes; once. Without it they get all rows.
    pub fn set_evaluator(&self, evaluator: Arc<dyn Evaluator>) {
        // A second engine of the process brings the same.
        let _ = self.node.evaluator.set(evaluator);
    }

    pub fn begin(&self, options: TxnOptions) -> Transaction {
        Transaction::new(self.node.clone(), options)
    }

    /// The newest definition.
    pub fn table(&self, database: &str, name: &str) -> Result<TableHandle, NodeError> {
        let found = self.node.tables.by_name(database, name);
        found
            .map(TableHandle::new)
            .ok_or_else(|| NodeError::NoSuchTable { database: database.into(), table: name.into() })
    }

    /// How often rows of a table were read and written on this node.
    pub fn table_io(&self, id: TableId) -> IoCounts {
        self.node.tables.by_id(id).map(|info| info.shared.io().counts()).unwrap_or_default()
    }

    /// The counts of a table begin at 0 again.
    pub fn clear_table_io(&self, id: TableId) {
        if let Some(info) = self.node.tables.by_id(id) {
            info.shared.io().clear();
        }
    }

    pub fn table_by_id(&self, id: TableId) -> Option<TableHandle> {
        self.node.tables.by_id(id).map(TableHandle::new)
    }

    /// Names of all databases, sorted.
    pub fn databases(&self) -> Vec<String> {
        self.node.catalog.lock().catalog().databases().map(|d| d.name.clone()).collect()
    }

    /// Base tables of a database (index tables left out), sorted by name.
    pub fn tables(&self, database: &str) -> Result<Vec<Arc<TableSchema>>, NodeError> {
        let catalog = self.node.catalog.lock();
        let catalog = catalog.catalog();
        if catalog.database(database).is_none() {
            return Err(rauk_manage::CatalogError::UnknownDatabase(database.into()).into());
        }
        Ok(catalog.tables_of(database).cloned().collect())
    }

    pub fn database_collation(&self, name: &str) -> Option<rauk_types::Collation> {
        self.node.catalog.lock().catalog().database(name).map(|d| d.collation)
    }

    /// `None`: it is not there.
    pub fn database_comment(&self, name: &str) -> Option<String> {
        self.node.catalog.lock().catalog().database(name).map(|d| d.comment.clone())
    }

    /// The time of the newest commit.
    pub(crate) fn newest_commit(&self) -> rauk_types::Timestamp {
        self.node.log.last_time()
    }

    // Counters

    /// Reserves `count` consecutive AUTO_INCREMENT numbers and gives the first (1 in a new table). Only in a cluster it waits.
    pub async fn take_auto_increment(&self, table: &TableHandle, count: u64) -> Result<u64, NodeError> {
        match self.cluster_of(table) {
            None => table.info.shared.auto_increment.take(count, &self.node.log),
            Some(cluster) => cluster.reserve(self.known(table.info.schema.id)?.shared.id, count).await,
        }
    }

    /// An explicit value was stored: the counter goes above it. Only in a cluster it waits.
    pub async fn raise_auto_increment(&self, table: &TableHandle, value: u64) -> Result<(), NodeError> {
        match self.cluster_of(table) {
            None => table.info.shared.auto_increment.observe(value, &self.node.log),
            Some(cluster) => cluster.observe(self.known(table.info.schema.id)?.shared.id, value).await,
        }
    }

    /// The numbers given out from now on, by whichever node, are above `value`. Only in a cluster it waits.
    pub async fn start_auto_increment(&self, table: &TableHandle, value: u64) -> Result<(), NodeError> {
        match self.cluster_of(table) {
            None => table.info.shared.auto_increment.observe(value, &self.node.log),
            Some(cluster) => cluster.start_numbers(self.known(table.info.schema.id)?.shared.id, value).await,
        }
    }

    /// The cluster that gives a table its numbers; `None`: it gives them itself.
    fn cluster_of(&self, table: &TableHandle) -> Option<&Arc<Cluster>> {
        self.node.cluster().filter(|_| !table.is_temporary())
    }

    /// [`Database::take_auto_increment`] of a stored table, on a node that is alone.
    pub fn next_auto_increment(&self, table: TableId, count: u64) -> Result<u64, NodeError> {
        assert!(self.node.cluster().is_none(), "the cluster has the counters");
        self.known(table)?.shared.auto_increment.take(count, &self.node.log)
    }

    /// [`Database::raise_auto_increment`] of a stored table, on a node that is alone.
    pub fn observe_auto_increment(&self, table: TableId, value: u64) -> Result<(), NodeError> {
        assert!(self.node.cluster().is_none(), "the cluster has the counters");
        self.known(table)?.shared.auto_increment.observe(value, &self.node.log)
    }

    /// The next number that would be given, as SHOW CREATE TABLE prints it. In a cluster it may be less: numbers are given to nodes in blocks.
    pub fn peek_auto_increment_of(&self, table: &TableHandle) -> u64 {
        match table.is_temporary() {
            true => table.info.shared.auto_increment.peek(),
            false => self.peek_auto_increment(table.info.schema.id),
        }
    }

    /// [`Database::peek_auto_increment_of`] a stored table.
    pub fn peek_auto_increment(&self, table: TableId) -> u64 {
        if let Some(cluster) = self.node.cluster() {
            return cluster.next_number(table);
        }
        self.node.tables.by_id(table).map_or(1, |t| t.shared.auto_increment.peek())
    }

    fn known(&self, table: TableId) -> Result<Arc<TableInfo>, NodeError> {
        self.node.tables.by_id(table).ok_or(NodeError::StaleSchema)
    }

    // The key-value part of the catalog: users, grants and persisted variables are stored here by SQL, each change durable when it returns.

    pub fn setting(&self, key: &str) -> Option<String> {
        self.node.catalog.lock().catalog().setting(key).map(str::to_owned)
    }

    pub fn settings_with_prefix(&self, prefix: &str) -> Vec<(String, String)> {
        let catalog = self.node.catalog.lock();
        catalog.catalog().settings_with_prefix(prefix).map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
    }

    /// Whatever they are now. `None` removes. All or none.
    pub async fn set_settings(&self, changes: &[(String, Option<String>)]) -> Result<(), NodeError> {
        self.change_by(Command::Settings { changes: changes.to_vec() }).await
    }

    /// All, or none with [`NodeError::SettingsChanged`] if one of them is not (any more) what it was changed from; then those who look again find what it is, here too.
    pub async fn change_settings(&self, changes: Vec<SettingChange>) -> Result<(), NodeError> {
        self.change_by(Command::ChangeSettings { changes }).await
    }

    /// Settings of a new database; nothing, once the first of them is set, by whatever node of a cluster. When it returns, what counts is there.
    pub async fn set_first_settings(&self, settings: &[(String, String)]) -> Result<(), NodeError> {
        self.change_by(Command::FirstSettings { settings: settings.to_vec() }).await
    }

    /// Moves whenever the catalog changes, settings included, by whatever node of a cluster.
    pub fn catalog_version(&self) -> u32 {
        self.node.catalog_changes.load(Ordering::Acquire)
    }

    // For the operator

    /// Approximate number of rows of a table, and of entries in each of its indexes, for planning. Never waits.
    pub fn estimate_rows(&self, table: &TableHandle) -> u64 {
        match table.is_temporary() {
            true => self.node.rows_of(&table.info),
            // The newest definition, which counts on.
            false => self.table_usage(table.info.schema.id).rows,
        }
    }

    pub fn memory_used(&self) -> u64 {
        self.node.budget.used()
    }

    pub fn memory_limit(&self) -> u64 {
        self.node.budget.limit()
    }

    /// The most that the process can have: above it no limit would be kept.
    pub fn memory_available(&self) -> u64 {
        self.node.config.memory_available
    }

    pub fn set_memory_limit(&self, bytes: u64) {
        self.node.budget.set_limit(bytes);
    }

    /// Bytes of old versions that may be kept for snapshots; beyond, the oldest snapshots fail.
    pub fn set_history_limit(&self, bytes: u64) {
        let share = bytes / u64::from(self.node.partition_count());
        for partition in 0..self.node.partition_count() {
            self.node.detach(partition, move |p| p.set_history_limit(share));
        }
    }

    /// The partitions that tables are spread over.
    pub fn partition_count(&self) -> u16 {
        self.node.spread()
    }

    pub fn durability(&self) -> Durability {
        self.node.config.durability
    }

    /// Transactions that hold locks or have written, by id.
    pub fn transactions(&self) -> Vec<TransactionInfo> {
        self.node.transaction_infos()
    }

    /// Who waits for whose row locks.
    pub fn locks(&self) -> Vec<LockWaitInfo> {
        self.node.lock_wait_infos()
    }

    /// Counts since the database was opened.
    pub fn counters(&self) -> Counters {
        self.node.counters()
    }

    pub async fn checkpoint(&self) -> Result<(), NodeError> {
        self.node.check_running()?;
        checkpoint::run(&self.node, false).await
    }

    /// Ends background work, flushes, writes a checkpoint and closes. A member leaves its cluster first: others go on at once. Transactions that are open fail from now on.
    pub async fn shutdown(&self) -> Result<(), NodeError> {
        if self.node.stopping.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        let mut result = Ok(());
        match self.node.cluster() {
            // A checkpoint would need a cut of those that go on; the log has everything.
            Some(cluster) if cluster.group().is_replicated() => {
                if !cluster.expelled()
                    && let Err(error) = cluster.wait_cut(LAST_CUT).await
                {
                    tracing::warn!(%error, "what was acknowledged last is in the other replicas' memory only");
                }
                cluster.leave().await;
            }
            cluster => {
                if let Some(cluster) = cluster {
                    cluster.leave().await;
                }
                result = checkpoint::run(&self.node, true).await;
            }
        }
        // Even if there was no room for a checkpoint, the log has everything.
        let flushed = self.node.group.flush_all().await;
        let noted = self.fence().await;
        if let Some(cluster) = self.node.cluster() {
            cluster.close();
        }
        self.node.group.close();
        // What is durable now must be there at the next start.
        let claimed = self.node.log.claim_all().map_err(NodeError::from);
        result.and(flushed).and(noted).and(claimed)
    }

    /// The end of a process of a cluster that lives and is over (its lease has ended, or it has said that it goes): with durability `replicated` all that it has in memory goes to its disk, which says so when this
    /// returns. The process that follows it keeps that memory (rule 34). Nothing is served, sent or answered from here on.
    pub async fn fence(&self) -> Result<(), NodeError> {
        let Some(cluster) = self.node.cluster().filter(|cluster| cluster.group().is_replicated()) else {
            return Ok(());
        };
        // Nothing is acknowledged to other processes any more: what was is in the log when whoever is under a guard or
        // a stream's lock has left it.
        cluster.close();
        for partition in 0..self.node.partition_count() {
            self.node.on_partition(partition, Class::Background, |_| ()).await;
            drop(cluster.slot_of(partition).state.lock());
        }
        self.node.group.flush_all().await?;
        checkpoint::note_fenced(&self.node, cluster.me().process).await
    }
}
