//! Opening the directory of a cluster's node: what each of its groups and partitions had when the process before ended.
//!
//! As on a node that is alone there is one redo log and one checkpoint. The log has the records of all groups' replicas
//! ([`rauk_log::record::Change::Stream`]), which are read in order by one thread and worked off in parallel, a job a
//! group ([`replay`]): the replica's own part ([`Replay`]) says what the records mean, the transaction table decides
//! what they commit, and that goes into the rows of the group's partitions, a job each ([`rows`]). In the end what is
//! prepared and not decided stands beside the rows again, under its locks.
//!
//! A checkpoint has rows of whole groups only, and keeps the log from the beginning of copies that were under way. A
//! group whose copy did not come to its end is empty when it is opened, and gets a new one.
//!
//! A log that lacks entries of a group's stream has nothing of that group ([`MemberGroup::hole`]): it is empty when it
//! is opened, and whether that is allowed depends on what other nodes have.
//!
//! A log whose end is damaged is cut there. The superblocks say so until the cluster has been told (rule 37).
//!
//! The directory is made for one cluster, by the number of which all its files are marked; that of another cluster is refused. That of a node alone is made this cluster's before ([`super::adopt`]).

pub(super) mod back;
mod replay;
mod rows;
#[cfg(test)]
mod tests;

use super::fitting::Fitting;
use super::progress::RecoveryStep;
use super::{Shared, broken, load, warn_of_doubtful_end};
use crate::database::Config;
use crate::error::NodeError;
use crate::member::group_rows::Parts;
use crate::member::slot::Standing;
use crate::runtime::Runtime;
use back::Goal;
use parking_lot::Mutex;
use rauk_cluster::TxnTable;
use rauk_cluster::replica::{Contents, EntryId, Restored};
use rauk_kernel::{MemoryBudget, Partition};
use rauk_log::{DatabaseId, Manifest, RedoLog, RedoOptions, RedoReader, Superblocks, fault};
use rauk_manage::group::Recovery;
use rauk_types::{GroupId, Layout, NodeId, PartitionId, TableId, TableSchema, TxnId};
use replay::Replaying;
use replay::Undecided;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a directory had.
pub struct MemberParts {
    pub superblocks: Arc<Superblocks>,
    pub manifest: Manifest,
    pub log: RedoLog,
    pub budget: Arc<MemoryBudget>,
    /// By number.
    pub partitions: Vec<Partition>,
    /// By number.
    pub groups: Vec<MemberGroup>,
    /// Tables that the log or the checkpoint has rows of and the catalog has not: they were dropped, if the catalog is as new as the log. If one of
    /// them has a number that the catalog has not given out yet, rows are missing, and the directory must be opened again with a newer catalog.
    pub passed_over: BTreeSet<TableId>,
}

/// What the cluster has gone back to.
#[derive(Clone, Copy, Debug)]
pub struct Back<'a> {
    pub node: NodeId,
    pub recovery: &'a Recovery,
    /// For tests: what committed after the cut is kept all the same.
    pub keeps_later: bool,
}

/// One group, as its replica goes on.
pub struct MemberGroup {
    pub group: GroupId,
    pub table: TxnTable,
    /// `None`: the log says nothing of it.
    pub restored: Option<Restored>,
    /// The log lacks entries of the stream, so that nothing of the group is here: what was found.
    pub hole: Option<String>,
    /// Transactions that are not decided; their writes stand in partitions.
    pub pending: BTreeMap<TxnId, Standing>,
}

impl MemberGroup {
    /// The last entry of its stream.
    pub fn last(&self) -> EntryId {
        let last = |restored: &Restored| restored.kept.last().map(|e| e.id).or(restored.history.last().copied());
        self.restored.as_ref().and_then(last).unwrap_or_default()
    }

    /// Whether it is exactly as the cut has it that the cluster has gone back to.
    pub fn is_held(&self, recovery: &Recovery) -> bool {
        let entry = recovery.cut.entry(self.group);
        match &self.restored {
            None => entry == EntryId::default(),
            Some(restored) => {
                let last = restored.history.last().copied().unwrap_or_default();
                let ends = restored.kept.last().is_none_or(|e| e.id == entry);
                restored.contents == Contents::Whole && last == entry && ends
            }
        }
    }
}

/// Opens or makes the directory of a node of `cluster`, which has these partitions and groups; its superblocks have
/// been loaded just now. `tables`: those of a catalog that is as new as the log. Their indexes are filled when this
/// returns. `back`: the cluster's last recovery; a directory that has not carried it out goes back to its cut
/// ([`back`]). `progress` gets a line now and then while that takes long.
#[allow(clippy::too_many_arguments)] // the parts of a node
pub fn open_member(
    config: &Config,
    superblocks: Arc<Superblocks>,
    runtime: &dyn Runtime,
    cluster: DatabaseId,
    layout: Layout,
    tables: &[Arc<TableSchema>],
    back: Back<'_>,
    progress: &dyn Fn(&str),
) -> Result<MemberParts, NodeError> {
    let start = runtime.now();
    let recovery = back.recovery;
    let partitions = layout.partitions().end;
    let manifest = manifest(config, &superblocks, cluster, partitions, recovery.number)?;
    let goes_back = manifest.recovery != recovery.number;
    let goal = |group: GroupId| goes_back.then(|| Goal::of(&back, group));
    let budget = Arc::new(MemoryBudget::new(config.memory_limit));
    let shared = Arc::new(Shared {
        partitions: (0..partitions)
            .map(|number| Mutex::new(empty(config, number, partitions, &budget, tables)))
            .collect(),
        known: tables.iter().map(|t| t.id).collect(),
        rows: AtomicU64::new(0),
        failed: Mutex::new(None),
        fitting: Fitting::new(config, config.memory_limit, &budget),
        progress: config.recovery.clone(),
    });
    shared.begin(&manifest, &superblocks, runtime);
    load::checkpoint(superblocks.disk(), &manifest, runtime, &shared, progress)?;
    fault::point("node.recovery.after_checkpoint").map_err(|e| broken(&e.to_string()))?;
    let options = RedoOptions { segment_bytes: config.segment_bytes, ..RedoOptions::new(cluster) };
    let mut reader = RedoReader::open(&superblocks, options, manifest.redo_start, manifest.redo_durable)?;
    let replaying = Arc::new(Replaying::new(layout, runtime.now(), goal));
    replay::redo(&mut reader, runtime, &shared, &replaying, progress)?;
    if reader.doubtful_end().is_some() {
        warn_of_doubtful_end(&reader);
        // The log notes it on disk before it cuts, and until the cluster has been told.
        progress("if the entry was acknowledged, the other replicas have it: this node leads only when they are back");
    }
    let ended = replay::finish(runtime, &shared, &replaying, tables)?;
    shared.fitting.check_limit()?;
    shared.progress.enter(RecoveryStep::None);
    // Everything was read and fits: from here on the directory is changed.
    let log = reader.into_log(manifest.last_time)?;
    fault::point("node.recovery.after_redo").map_err(|e| broken(&e.to_string()))?;

    let rows = shared.rows.load(Ordering::Relaxed);
    if rows > 0 {
        let seconds = (runtime.now() - start).as_secs_f64();
        progress(&format!("recovered {rows} rows and records in {seconds:.2} s"));
    }
    let still_running = || broken("a recovery job is still running");
    let shared = Arc::into_inner(shared).ok_or_else(still_running)?;
    let replaying = Arc::into_inner(replaying).ok_or_else(still_running)?;
    let group = |(group, end): (GroupId, replay::Ended)| MemberGroup {
        group,
        table: end.table,
        restored: end.restored,
        hole: end.hole.map(|what| format!("group {}: {what}", group.0)),
        pending: standing(end.pending),
    };
    let mut parts = MemberParts {
        superblocks,
        manifest,
        log,
        budget,
        partitions: shared.partitions.into_iter().map(Mutex::into_inner).collect(),
        groups: layout.groups().map(GroupId).zip(ended).map(group).collect(),
        passed_over: replaying.rows.into_iter().flat_map(|rows| rows.into_inner().passed_over).collect(),
    };
    if goes_back {
        let ids: Vec<TableId> = tables.iter().map(|t| t.id).collect();
        let MemberParts { superblocks, manifest, log, partitions, groups, .. } = &mut parts;
        let own = |file, _| Some(usize::from(file));
        *manifest = back::persist(superblocks, log, manifest, recovery.number, groups, partitions, &ids, &own)?;
        let held = groups.iter().filter(|group| group.is_held(recovery)).count();
        let (number, time) = (recovery.number, recovery.cut.time.0);
        progress(&format!(
            "recovery {number}: back at the cut at time {time}, with {held} of {} replication groups",
            groups.len()
        ));
    }
    Ok(parts)
}

fn empty(
    config: &Config,
    number: u16,
    partitions: u16,
    budget: &Arc<MemoryBudget>,
    tables: &[Arc<TableSchema>],
) -> Partition {
    let mut partition = Partition::new(PartitionId(number), budget.clone());
    partition.set_history_limit(config.history_limit / u64::from(partitions));
    tables.iter().for_each(|t| partition.create_table(t.clone()));
    partition
}

/// The directory's manifest, made if there is none; refused if it is not of this cluster.
fn manifest(
    config: &Config,
    superblocks: &Superblocks,
    cluster: DatabaseId,
    partitions: u16,
    recovery: u64,
) -> Result<Manifest, NodeError> {
    let found = Manifest::load(superblocks)?;
    let database = superblocks.database().or(found.as_ref().map(|manifest| manifest.database));
    if let Some(other) = database.filter(|database| *database != cluster) {
        return Err(NodeError::Fatal(format!(
            "the data directory belongs to {other}, and the cluster is {cluster}: start the node with a directory of this cluster, or with an empty one, \
             which gets its rows from the other nodes",
        )));
    }
    let Some(manifest) = found else {
        // What it has never had it need not give up.
        let mut manifest = Manifest { recovery, ..Manifest::new(cluster, partitions, config.durability.name()) };
        manifest.store(superblocks)?;
        return Ok(manifest);
    };
    if manifest.partitions != partitions {
        return Err(NodeError::Fatal(format!(
            "the data directory has {} partitions, and the cluster {cluster} has {partitions}: it is damaged, or was made by another version; \
             an empty one gets its rows from the other nodes",
            manifest.partitions
        )));
    }
    Ok(manifest)
}

/// By transaction: where it stands.
fn standing(pending: Vec<Undecided>) -> BTreeMap<TxnId, Standing> {
    let mut standing: BTreeMap<TxnId, Standing> = BTreeMap::new();
    for Undecided { txn, parts, is_open, .. } in pending {
        let new = || Standing { txn: txn.clone(), parts: Parts::new(), is_open, ran_here: false };
        let known = standing.entry(txn.id).or_insert_with(new);
        for partition in parts {
            if !known.parts.contains(&partition) {
                known.parts.push(partition);
            }
        }
    }
    standing
}
