//! REORGANIZE PARTITION: rows of some leaves of a partitioned table go into new leaves.
//!
//! Only the leaves that are concerned are read and written; the others keep their tables and are not looked at. A job ([`super::build`])
//! makes the new leaves under ids of their own and fills them while the table is used ([`super::copying`]); one command puts them in the
//! place of those that they were filled from. Until then nothing has changed. A row that no new leaf takes fails the statement (error 1526), and so does one that
//! another leaf would take (1748).

use super::Exclusive;
use super::alter::{copies_online, redefined};
use super::build::{Building, Patience};
use super::cluster::{self, Place};
use super::copying::{Copying, OwnConvert};
use super::online::Work;
use super::partitions::with_tables;
use super::purge::noting_dead_entries;
use super::tables::tables_of_leaf;
use crate::database::{Database, TableHandle};
use crate::error::NodeError;
use crate::locks::metadata::DdlWait;
use crate::table::TableInfo;
use crate::table::parts::physical;
use rauk_manage::JobStep;
use rauk_types::{MysqlError, TableId, TableSchema, Value};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

impl Database {
    /// Gives a partitioned table other leaves. `new`: the definition as it was, but that some leaves are gone and others have no tables yet. Rows of
    /// the first go into the second; gives how many.
    pub async fn reorganize_leaves(
        &self,
        old: &TableHandle,
        new: TableSchema,
        wait: impl Into<DdlWait<'_>>,
    ) -> Result<u64, NodeError> {
        let wait = wait.into().under_locks();
        let new = noting_dead_entries(old.schema(), new, false);
        let node = &self.node;
        if let Some(cluster) = node.cluster() {
            return cluster::reorganize_leaves(Place { node, cluster }, old.info(), new, wait).await;
        }
        let held = Exclusive::lock_with(node, Some(old.info().clone()), Vec::new, wait).await?;
        let old = &held.tables[0].clone();
        let is_online = copies_online(&old.schema, &new, wait);
        let what = format!("ALTER TABLE {}.{}", new.database, new.name);
        let ids = ids_of_leaves(&new) + usize::from(is_online);
        let mut building = Building::start(node, what, old.schema.id, ids)?;
        let mut reserved = building.job.builds.clone().into_iter();
        let mut ids = || reserved.next().expect("one for each table was reserved");
        let new = with_tables(old, new, &mut ids);
        let made = made(old, &new);
        made.iter().for_each(|table| building.make(table));
        let info = redefined(old, new.clone());
        let (leave, into) = moving(old, &without_global(old, &new));
        let kept = is_online.then(|| building.keep_copied(old, &leave, ids()));
        building.step(JobStep::Filling)?;
        let ids: BTreeSet<TableId> = made.iter().map(|table| table.id).collect();
        let is_made = |table: &&Arc<TableInfo>| ids.contains(&table.schema.id);
        info.beneath().filter(is_made).for_each(|table| node.tables.publish_hidden(table.clone()));
        let mut work = Work::new(building, held);
        let mut patience = Patience::with_users(if is_online { wait.limit } else { Duration::ZERO });
        let mut same = same;
        let copying = Copying::new(node, old, into, kept, &mut same, &mut patience)
            .with_further(Some(&further_same))
            .of_leaves(leave)
            .telling(wait);
        let rows = work.copy(copying, wait).await?.rows;
        work.building().filled().await?;
        work.building().switch(Vec::new(), Vec::new(), vec![new.clone()])?;
        made.iter().for_each(|table| node.show_in_partitions(table.id));
        node.alter_in_partitions(&new);
        node.tables.publish(info.clone());
        info.shared.set_version(info.schema.version);
        let stay: BTreeSet<TableId> = info.beneath().map(|table| table.schema.id).collect();
        let gone = old.beneath().map(|table| table.schema.id).filter(|id| !stay.contains(id));
        gone.for_each(|id| node.drop_in_partitions(id));
        Ok(rows)
    }
}

/// How many ids the leaves take that have none.
fn ids_of_leaves(new: &TableSchema) -> usize {
    let leaves = new.partitioning.iter().flat_map(|partitioning| partitioning.leaves());
    leaves.filter(|leaf| leaf.tables.is_empty()).count() * tables_of_leaf(new)
}

/// The tables of the leaves that a table has not had.
pub(super) fn made(old: &TableInfo, new: &Arc<TableSchema>) -> Vec<Arc<TableSchema>> {
    let had: BTreeSet<TableId> = old.beneath().map(|table| table.schema.id).collect();
    physical(new).into_iter().filter(|table| !had.contains(&table.id)).collect()
}

fn leaves_of(table: &TableInfo) -> &[Arc<TableInfo>] {
    table.parts.as_deref().expect("a partitioned table").leaves()
}

/// The table without its global unique indexes: a row has its entry there whatever leaf it is in, so what copies rows from
/// leaf to leaf leaves these alone.
pub(super) fn without_global(old: &TableInfo, new: &Arc<TableSchema>) -> Arc<TableInfo> {
    let mut schema = (**new).clone();
    let global = schema.indexes.iter_mut().filter(|index| index.global);
    global.for_each(|index| index.entry_table = None);
    redefined(old, Arc::new(schema))
}

/// Leaves whose rows go elsewhere, and the table with those alone that they go to.
pub(super) fn moving(old: &TableInfo, new: &Arc<TableInfo>) -> (Vec<Arc<TableInfo>>, TableHandle) {
    let (before, after) = (leaves_of(old), leaves_of(new));
    let ids = |leaves: &[Arc<TableInfo>]| -> BTreeSet<TableId> { leaves.iter().map(|leaf| leaf.schema.id).collect() };
    let (had, has) = (ids(before), ids(after));
    let marks: Vec<bool> = after.iter().map(|leaf| !had.contains(&leaf.schema.id)).collect();
    let leave = before.iter().filter(|leaf| !has.contains(&leaf.schema.id)).cloned().collect();
    (leave, TableHandle::new(new.clone()).with_leaves(marks.into()))
}

pub(super) fn further_same() -> OwnConvert {
    Box::new(same)
}

/// Rows stay as they are.
pub(super) fn same(row: &[Value]) -> Result<Vec<Value>, MysqlError> {
    Ok(row.to_vec())
}
