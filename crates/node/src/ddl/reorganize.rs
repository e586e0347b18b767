//! REORGANIZE PARTITION: rows of some leaves of a partitioned table go into new leaves.
//!
//! Only the leaves that are concerned are read and written; the others keep their tables and are not looked at. A job ([`super::build`])
//! makes the new leaves under ids of their own and fills them while the table is held alone; one command puts them in the place of those
//! that they were filled from. Until then nothing has changed. A row that no new leaf takes fails the statement (error 1526), and so does one that
//! another leaf would take (1748).

use super::Exclusive;
use super::alter::{copy_rows, redefined};
use super::build::{Building, Patience};
use super::cluster::{self, Place};
use super::partitions::with_tables;
use super::tables::tables_of_leaf;
use crate::database::{Database, TableHandle};
use crate::error::NodeError;
use crate::locks::metadata::DdlWait;
use crate::node::Node;
use crate::table::TableInfo;
use crate::table::parts::physical;
use rauk_manage::JobStep;
use rauk_types::{TableId, TableSchema};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Database {
    /// Gives a partitioned table other leaves. `new`: the definition as it was, but that some leaves are gone and others have no tables yet. Rows of
    /// the first go into the second; gives how many.
    pub async fn reorganize_leaves(
        &self,
        old: &TableHandle,
        new: TableSchema,
        wait: impl Into<DdlWait<'_>>,
    ) -> Result<u64, NodeError> {
        let wait = wait.into();
        let node = &self.node;
        if let Some(cluster) = node.cluster() {
            return cluster::reorganize_leaves(Place { node, cluster }, old.info(), new, wait).await;
        }
        let held = Exclusive::lock_with(node, Some(old.info().clone()), Vec::new, wait).await?;
        let old = &held.tables[0];
        let what = format!("ALTER TABLE {}.{}", new.database, new.name);
        let mut building = Building::start(node, what, old.schema.id, ids_of_leaves(&new))?;
        let mut reserved = building.job.builds.clone().into_iter();
        let new = with_tables(old, new, || reserved.next().expect("one for each table was reserved"));
        let made = made(old, &new);
        made.iter().for_each(|table| building.make(table));
        building.step(JobStep::Filling)?;
        let info = redefined(old, new.clone());
        let ids: BTreeSet<TableId> = made.iter().map(|table| table.id).collect();
        let is_made = |table: &&Arc<TableInfo>| ids.contains(&table.schema.id);
        info.beneath().filter(is_made).for_each(|table| node.tables.publish_hidden(table.clone()));
        let rows = wait.unless_killed(move_rows(node, old, &info, &mut Patience::default())).await?;
        building.filled().await?;
        building.switch(Vec::new(), Vec::new(), vec![new.clone()])?;
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

/// Rows of the leaves that `new` has not go into those that it alone has.
pub(super) async fn move_rows(
    node: &Arc<Node>,
    old: &TableInfo,
    new: &Arc<TableInfo>,
    patience: &mut Patience,
) -> Result<u64, NodeError> {
    let (before, after) = (leaves_of(old), leaves_of(new));
    let ids = |leaves: &[Arc<TableInfo>]| -> BTreeSet<TableId> { leaves.iter().map(|leaf| leaf.schema.id).collect() };
    let (had, has) = (ids(before), ids(after));
    let marks: Vec<bool> = after.iter().map(|leaf| !had.contains(&leaf.schema.id)).collect();
    let into = TableHandle::new(new.clone()).with_leaves(marks.into());
    let mut rows = 0;
    for leaf in before.iter().filter(|leaf| !has.contains(&leaf.schema.id)) {
        rows += copy_rows(node, leaf, &into, &mut |row| Ok(row.to_vec()), patience).await?.rows;
    }
    Ok(rows)
}
