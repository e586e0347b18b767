//! The directory of a node alone becomes that of the first node of a cluster (rule 81).
//!
//! 1. [`survey`] reads it as ever, and tells what the control plane is to begin with: definitions, accounts, settings,
//!    counters, the time of the newest commit. The cluster gets the id of the database, so that the files stay valid.
//! 2. The cluster is made. It says of itself that it has gone back to a cut which this node's disk holds
//!    ([`rauk_manage::group::adopted`]).
//! 3. [`convert`] carries that out when the directory is opened as the node's: the rows are read once more, and written
//!    as a checkpoint of the cluster's partitions, with an anchor for each group in the log. Buckets lie in the same
//!    partitions as before; only the rows of fully replicated tables move, into the last one.
//! 4. The catalog's journal goes when the directory has its place in the cluster.
//!
//! A crash before the manifest of step 3 leaves the directory as it was, and what is in the log beside it is passed over; one behind it
//! leaves that of the cluster's node. The checkpoint stands beside the old one until then, so the disk needs room for both.

use super::member::back::persist;
use super::member::{Back, MemberGroup};
use super::{Alone, Streams, read_alone};
use crate::database::Config;
use crate::error::NodeError;
use crate::runtime::Runtime;
use crate::table::parts::physical;
use rauk_cluster::TxnTable;
use rauk_cluster::replica::{Contents, Restored};
use rauk_kernel::Partition;
use rauk_log::{DatabaseId, Disk, Manifest, Superblocks, fault};
use rauk_manage::CatalogStore;
use rauk_manage::group::Adopted;
use rauk_types::{GroupId, Layout, PartitionId, TableId, TableSchema};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What the directory of a node alone brings into the cluster that is made of it.
#[derive(Clone, Debug)]
pub struct Surveyed {
    pub id: DatabaseId,
    /// Over which its rows are spread; the cluster has as many.
    pub partitions: u16,
    pub adopted: Adopted,
}

/// Reads the directory of a node alone. `None`: it is no such directory.
pub fn survey(
    config: &Config,
    disk: &Arc<dyn Disk>,
    runtime: &dyn Runtime,
    progress: &dyn Fn(&str),
) -> Result<Option<Surveyed>, NodeError> {
    if Alone::partitions_of(disk)?.is_none() {
        return Ok(None);
    }
    let alone = read_alone(config, disk, runtime, Streams::PassedOver, progress)?;
    let counters: BTreeMap<TableId, u64> = alone.counters.iter().map(|(table, bound)| (*table, *bound)).collect();
    let adopted = Adopted { catalog: alone.catalog.catalog().clone(), counters, time: alone.log.last_time() };
    let surveyed = Surveyed { id: alone.manifest.database, partitions: alone.manifest.partitions, adopted };
    alone.end()?;
    Ok(Some(surveyed))
}

/// Makes the directory of a node alone that of the node which has founded a cluster of this layout. `tables`: the
/// cluster's. Does nothing with one that is a member's already, or empty.
pub fn convert(
    config: &Config,
    disk: &Arc<dyn Disk>,
    runtime: &dyn Runtime,
    layout: Layout,
    tables: &[Arc<TableSchema>],
    back: &Back<'_>,
    progress: &dyn Fn(&str),
) -> Result<(), NodeError> {
    let Some(partitions) = Alone::partitions_of(disk)? else { return Ok(()) };
    if layout.everywhere() != PartitionId(partitions) {
        return Err(NodeError::Fatal(format!(
            "the data directory has {partitions} partitions, and the cluster that was made of it has {}: it belongs to another cluster",
            layout.everywhere().0
        )));
    }
    let recovery = back.recovery;
    let mut alone = read_alone(config, disk, runtime, Streams::PassedOver, progress)?;
    let known: BTreeSet<TableId> = alone.catalog.catalog().tables().flat_map(physical).map(|table| table.id).collect();
    let taken: BTreeSet<TableId> = tables.iter().map(|table| table.id).collect();
    let holds = layout.groups().all(|group| recovery.cut.is_holder(GroupId(group), back.node));
    if known != taken || alone.log.last_time() != recovery.cut.time || !holds {
        return Err(NodeError::Fatal(
            "the data directory of a node alone is not as it was when a cluster was made of it: put it back from a copy of that time, or start this node with an empty directory".into(),
        ));
    }
    let group = |number: u16| {
        let entry = recovery.cut.entry(GroupId(number));
        MemberGroup {
            group: GroupId(number),
            table: TxnTable::at_cut(entry.position, recovery.cut.time, entry.view),
            restored: Some(Restored {
                contents: Contents::Whole,
                stable: entry.position,
                history: vec![entry],
                kept: Vec::new(),
            }),
            hole: None,
            pending: BTreeMap::new(),
        }
    };
    let groups: Vec<MemberGroup> = layout.groups().map(group).collect();
    let everywhere: BTreeSet<TableId> = tables.iter().filter(|table| table.fully_replicated).map(|t| t.id).collect();
    let source = |file: u16, table: TableId| match (everywhere.contains(&table), file == layout.everywhere().0) {
        // Of a node alone they are all in its first partition.
        (true, last) => last.then_some(0),
        (false, last) => (!last).then_some(usize::from(file)),
    };
    let old = Manifest {
        partitions: layout.partitions().end,
        counters: Vec::new(),
        durability: config.durability.name().into(),
        ..alone.manifest.clone()
    };
    let ids: Vec<TableId> = known.into_iter().collect();
    let rows: &mut [Partition] = &mut alone.partitions;
    persist(&alone.superblocks, &alone.log, &old, recovery.number, &groups, rows, &ids, &source)?;
    progress(&format!("the data directory, with {} rows and changes, is that of the cluster's node now", alone.rows));
    alone.end()
}

/// The directory has its place in a cluster: its own catalog goes.
pub fn give_up_catalog(superblocks: &Superblocks) -> Result<(), NodeError> {
    if CatalogStore::is_claimed(superblocks) {
        fault::point("member.open.adopted").map_err(|e| NodeError::Fatal(e.to_string()))?;
    }
    Ok(CatalogStore::give_up(superblocks)?)
}

impl Alone {
    /// The partitions of the directory, if it is that of a node alone.
    fn partitions_of(disk: &Arc<dyn Disk>) -> Result<Option<u16>, NodeError> {
        let superblocks = Superblocks::load(disk)?;
        let has_catalog = disk.exists(rauk_manage::store::PATH).map_err(|e| NodeError::Fatal(e.to_string()))?;
        // A directory of before there were superblocks has files alone.
        let is_alone = CatalogStore::is_claimed(&superblocks) || superblocks.database().is_none() && has_catalog;
        let manifest = if is_alone { Manifest::load(&superblocks)? } else { None };
        Ok(manifest.filter(|manifest| manifest.recovery == 0).map(|manifest| manifest.partitions))
    }

    /// The log ends in order: what is durable must be there at the next start.
    fn end(self) -> Result<(), NodeError> {
        self.log.flush()?;
        Ok(self.log.claim_all()?)
    }
}
