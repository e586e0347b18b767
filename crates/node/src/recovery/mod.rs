//! Opening: the catalog, the checkpoint, and the redo log behind it.
//!
//! Partitions are independent of each other, so both the files of a checkpoint and the changes of the log are worked off in parallel, one job a
//! partition, in rounds of bounded size; between rounds the caller hears how far it is. Rows and deletions carry their commit times, so the
//! order in which a partition gets them does not matter, nor how often. Changes of tables that the catalog does not have any more are passed over.
//!
//! What is damaged, missing or older than the superblocks say ([`rauk_log::superblock`]) is refused with file, place and the way out; nothing is guessed. Everything is read before anything is
//! written, so a refused start changes nothing. Only a torn end of the redo log, beyond what the superblocks claim, is cut, with a warning.

pub mod adopt;
pub mod fitting;
mod load;
pub mod member;
pub mod progress;
mod replay;
pub mod writes;

use crate::database::Config;
use crate::error::NodeError;
use crate::node::{Node, Parts};
use crate::runtime::Runtime;
use crate::table::counter::hidden_counter;
use crate::table::parts::physical;
use crate::table::{TableInfo, TableShared};
use fitting::Fitting;
use parking_lot::Mutex;
use progress::{RecoveryProgress, RecoveryStep};
use rauk_kernel::{MemoryBudget, Partition};
use rauk_log::{DatabaseId, Disk, Manifest, RedoLog, RedoOptions, RedoReader, Superblocks, fault};
use rauk_manage::{CatalogStore, Command};
use rauk_types::schema::BUCKETS;
use rauk_types::{PartitionId, TableId, TableSchema};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// What the jobs of a recovery work on.
struct Shared {
    partitions: Vec<Mutex<Partition>>,
    known: FxHashSet<TableId>,
    rows: AtomicU64,
    failed: Mutex<Option<NodeError>>,
    fitting: Fitting,
    progress: Arc<RecoveryProgress>,
}

impl Shared {
    /// From here on its progress is counted.
    fn begin(&self, manifest: &Manifest, superblocks: &Superblocks, runtime: &dyn Runtime) {
        let checkpoint = match manifest.checkpoint {
            0 => 0,
            _ => manifest.files.iter().map(|file| file.bytes).sum(),
        };
        let redo = superblocks.claims().redo.0.saturating_sub(manifest.redo_start.0);
        self.progress.begin(runtime.now(), checkpoint, redo, self.partitions.len() as u64);
    }

    fn fail(&self, error: NodeError) {
        self.failed.lock().get_or_insert(error);
    }

    fn check(&self) -> Result<(), NodeError> {
        self.failed.lock().clone().map_or(Ok(()), Err)
    }
}

/// Runs `work` for every partition, in parallel, and fails with the first error of any.
fn for_each_partition(
    runtime: &dyn Runtime,
    shared: &Arc<Shared>,
    work: impl Fn(&Shared, usize) -> Result<(), NodeError> + Send + Sync + 'static,
) -> Result<(), NodeError> {
    for_each(shared.partitions.len(), runtime, shared, work)
}

/// Runs `work` for every number below `count`, in parallel, and fails with the first error of any.
fn for_each(
    count: usize,
    runtime: &dyn Runtime,
    shared: &Arc<Shared>,
    work: impl Fn(&Shared, usize) -> Result<(), NodeError> + Send + Sync + 'static,
) -> Result<(), NodeError> {
    let work = Arc::new(work);
    let job = |number: usize| {
        let (work, shared) = (work.clone(), shared.clone());
        let job = move || {
            if let Err(error) = work(&shared, number) {
                shared.fail(error);
            }
        };
        Box::new(job) as Box<dyn FnOnce() + Send>
    };
    runtime.run_all((0..count).map(job).collect());
    shared.check()
}

pub fn open(
    config: Config,
    disk: Arc<dyn Disk>,
    runtime: Arc<dyn Runtime>,
    progress: &dyn Fn(&str),
) -> Result<Arc<Node>, NodeError> {
    let start = runtime.now();
    let alone = read_alone(&config, &disk, &*runtime, Streams::Refused, progress)?;
    let Alone { superblocks, manifest, catalog, log, counters, budget, partitions, rows } = alone;
    if rows > 0 {
        let seconds = (runtime.now() - start).as_secs_f64();
        progress(&format!("recovered {rows} rows and changes in {seconds:.2} s"));
    }
    let id = manifest.database;
    let node = Node::new(Parts { config, id, superblocks, runtime, log, catalog, partitions, budget, manifest });
    publish_tables(&node, &counters);
    Ok(node)
}

/// What the directory of a node alone has; unfinished DDL statements are undone.
struct Alone {
    superblocks: Arc<Superblocks>,
    manifest: Manifest,
    catalog: CatalogStore,
    log: RedoLog,
    counters: FxHashMap<TableId, u64>,
    budget: Arc<MemoryBudget>,
    /// By number.
    partitions: Vec<Partition>,
    /// Rows and changes that were read.
    rows: u64,
}

/// What becomes of records of a cluster's streams in the log of a node alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Streams {
    /// The directory is another node's.
    Refused,
    /// They are left of an attempt to make it that of a cluster ([`adopt`]).
    PassedOver,
}

fn read_alone(
    config: &Config,
    disk: &Arc<dyn Disk>,
    runtime: &dyn Runtime,
    streams: Streams,
    progress: &dyn Fn(&str),
) -> Result<Alone, NodeError> {
    let superblocks = Arc::new(Superblocks::load(disk)?);
    let manifest = match Manifest::load(&superblocks)? {
        Some(manifest) => manifest,
        None => create(config, &superblocks, runtime)?,
    };
    if !superblocks.claims().segments.is_empty() && !CatalogStore::is_claimed(&superblocks) {
        let what = "the directory was made by a cluster's node, and its member.json is missing: put that back from a copy, or join with an empty directory";
        return Err(NodeError::Fatal(what.into()));
    }
    let mut catalog = CatalogStore::read(&superblocks, manifest.database)?;
    let budget = Arc::new(MemoryBudget::new(config.memory_limit));
    let fitting = Fitting::new(config, fitting::in_force(config, catalog.catalog()), &budget);
    let physical: Vec<_> = catalog.catalog().tables().flat_map(physical).collect();
    let mut partitions = Vec::new();
    for number in 0..manifest.partitions {
        let mut partition = Partition::new(PartitionId(number), budget.clone());
        partition.set_history_limit(config.history_limit / u64::from(manifest.partitions));
        physical.iter().for_each(|table| partition.create_table(table.clone()));
        partitions.push(Mutex::new(partition));
    }
    let shared = Arc::new(Shared {
        partitions,
        known: physical.iter().map(|table| table.id).collect(),
        rows: AtomicU64::new(0),
        failed: Mutex::new(None),
        fitting,
        progress: config.recovery.clone(),
    });
    shared.begin(&manifest, &superblocks, runtime);
    let mut counters: FxHashMap<TableId, u64> = manifest.counters.iter().copied().collect();

    load::checkpoint(disk, &manifest, runtime, &shared, progress)?;
    fault::point("node.recovery.after_checkpoint").map_err(|e| broken(&e.to_string()))?;
    let options = RedoOptions { segment_bytes: config.segment_bytes, ..RedoOptions::new(manifest.database) };
    let mut reader = RedoReader::open(&superblocks, options, manifest.redo_start, manifest.redo_durable)?;
    replay::redo(&mut reader, runtime, &shared, streams, &mut counters, progress)?;
    warn_of_doubtful_end(&reader);
    // In memory only, and the last that the rows need: with it the directory either fits or is left as it is.
    shared.progress.enter(RecoveryStep::Indexes);
    for_each_partition(runtime, &shared, |shared, partition| {
        shared.partitions[partition].lock().finish_restore().map_err(|stop| broken(&format!("{stop:?}")))?;
        shared.progress.partition_filled();
        Ok(())
    })?;
    shared.fitting.check_limit()?;
    shared.progress.enter(RecoveryStep::None);
    // Everything was read and is as it should be: from here on the directory is changed.
    catalog.settle()?;
    let log = reader.into_log(manifest.last_time)?;
    // There is no other copy to ask.
    superblocks.clear_doubt()?;
    undo_jobs(&mut catalog)?;
    fault::point("node.recovery.after_redo").map_err(|e| broken(&e.to_string()))?;
    let shared = Arc::into_inner(shared).ok_or_else(|| broken("a recovery job is still running"))?;
    Ok(Alone {
        superblocks,
        manifest,
        catalog,
        log,
        counters,
        budget,
        partitions: shared.partitions.into_iter().map(Mutex::into_inner).collect(),
        rows: shared.rows.into_inner(),
    })
}

fn broken(what: &str) -> NodeError {
    NodeError::Fatal(format!("recovery failed: {what}"))
}

/// The log ends without an end mark, beyond what the superblocks claim: whatever follows is cut.
fn warn_of_doubtful_end(reader: &RedoReader) {
    if let Some(end) = reader.doubtful_end() {
        let (file, offset, last_commit) = (&end.path, end.offset, reader.last_time().0);
        tracing::warn!(file, offset, last_commit, "redo log cut at its damaged or torn end: {end}");
    }
}

/// A new database, or one that a crash kept from getting further than its superblocks. The manifest comes next: everything else is made for its id.
fn create(config: &Config, superblocks: &Superblocks, runtime: &dyn Runtime) -> Result<Manifest, NodeError> {
    let id = superblocks.database().unwrap_or_else(|| {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&runtime.random().to_le_bytes());
        id[8..].copy_from_slice(&runtime.random().to_le_bytes());
        DatabaseId(id)
    });
    let mut manifest = Manifest::new(id, config.partitions.clamp(1, BUCKETS), config.durability.name());
    manifest.store(superblocks)?;
    Ok(manifest)
}

/// DDL jobs that a crash cut off: what they built is in no table of the catalog, so taking the job away undoes them.
fn undo_jobs(catalog: &mut CatalogStore) -> Result<(), NodeError> {
    let jobs: Vec<_> = catalog.catalog().jobs().cloned().collect();
    for job in jobs {
        tracing::warn!(what = job.what, "undoing a DDL statement that a crash cut off");
        catalog.execute(&Command::AbortJob { job: job.id })?;
    }
    Ok(())
}

fn publish_tables(node: &Arc<Node>, counters: &FxHashMap<TableId, u64>) {
    let schemas: Vec<_> = node.catalog.lock().catalog().tables().cloned().collect();
    let bound = |id: TableId| counters.get(&id).copied().unwrap_or(1);
    let shared_of = |schema: &TableSchema| TableShared::new(schema, bound(schema.id), bound(hidden_counter(schema.id)));
    let (entries, bases): (Vec<_>, Vec<_>) = schemas.into_iter().partition(|t| t.entry_of.is_some());
    for schema in entries {
        let shared = shared_of(&schema);
        node.tables.publish(TableInfo::new(schema, shared, |_| unreachable!("index tables have no unique index")));
    }
    for schema in bases {
        let shared = shared_of(&schema);
        let entries_of = |id| node.tables.by_id(id).expect("the catalog has a table's index tables");
        node.tables.publish(TableInfo::new(schema, shared, entries_of));
    }
}
