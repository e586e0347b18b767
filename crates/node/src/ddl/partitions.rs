//! Partitions of a partitioned table that come, go or are emptied, without a row being copied.
//!
//! The caller gives the wanted definition: leaves that stay keep their tables' ids, new and emptied ones have none and get
//! new tables here. It is one change of the catalog, under the table's metadata lock; rows of leaves that are gone are dropped with their tables. So ADD
//! (RANGE, LIST), DROP and TRUNCATE PARTITION cost the same whatever rows there are, and a crash leaves the old or the new definition.
//!
//! Entries of rows that are gone stay in the table's global unique indexes, and are purged later ([`super::purge`]).
//!
//! What moves rows between partitions (REORGANIZE, COALESCE, ADD to HASH and KEY, PARTITION BY) rewrites the table ([`super::alter`]).

use super::Exclusive;
use super::alter::{next_version, redefined};
use super::build::fault_error;
use super::cluster::{self, Place};
use super::purge::noting_dead_entries;
use super::tables::tables_of_leaf;
use crate::database::{Database, TableHandle};
use crate::error::NodeError;
use crate::locks::metadata::DdlWait;
use crate::table::TableInfo;
use crate::table::parts::physical;
use rauk_log::fault;
use rauk_manage::Command;
use rauk_types::{TableId, TableSchema};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Database {
    /// Gives a partitioned table other leaves. `new`: the definition as it was, but for these.
    pub async fn change_partitions(
        &self,
        old: &TableHandle,
        new: TableSchema,
        wait: impl Into<DdlWait<'_>>,
    ) -> Result<(), NodeError> {
        let new = noting_dead_entries(old.schema(), new, true);
        self.change_leaves(old, new, wait.into()).await
    }

    pub(super) async fn change_leaves(
        &self,
        old: &TableHandle,
        new: TableSchema,
        wait: DdlWait<'_>,
    ) -> Result<(), NodeError> {
        let node = &self.node;
        if let Some(cluster) = node.cluster() {
            return cluster::change_partitions(Place { node, cluster }, old.info(), new, wait).await;
        }
        let held = Exclusive::lock_with(node, Some(old.info().clone()), Vec::new, wait).await?;
        let old = &held.tables[0];
        let new = {
            let mut catalog = node.catalog.lock();
            let mut next = catalog.catalog().next_table_id();
            let new = with_tables(old, new, || {
                next.0 += 1;
                TableId(next.0 - 1)
            });
            fault::point("node.ddl.before_switch").map_err(fault_error)?;
            let result = catalog.execute(&command(&new));
            drop(catalog);
            node.settled(result)?;
            // Done and durable: only a crash can still happen here.
            let _ = fault::point("node.ddl.after_switch");
            new
        };
        let info = redefined(old, new);
        let had: BTreeSet<TableId> = old.beneath().map(|leaf| leaf.schema.id).collect();
        let tables = physical(&info.schema);
        let (kept, made): (Vec<_>, Vec<_>) = tables.into_iter().partition(|table| had.contains(&table.id));
        made.iter().for_each(|table| node.create_in_partitions(table));
        kept.iter().for_each(|table| node.alter_in_partitions(table));
        node.tables.publish(info.clone());
        info.shared.set_version(info.schema.version);
        let stay: BTreeSet<TableId> = kept.iter().map(|table| table.id).collect();
        had.difference(&stay).for_each(|id| node.drop_in_partitions(*id));
        Ok(())
    }
}

/// The next version of a table, with tables for the leaves that have none.
pub(super) fn with_tables(old: &TableInfo, new: TableSchema, mut ids: impl FnMut() -> TableId) -> Arc<TableSchema> {
    let mut new = next_version(&old.schema, new);
    let each = tables_of_leaf(&new);
    if let Some(partitioning) = &mut new.partitioning {
        for leaf in Arc::make_mut(partitioning).leaves_mut().filter(|leaf| leaf.tables.is_empty()) {
            leaf.tables = (0..each).map(|_| ids()).collect();
        }
    }
    Arc::new(new)
}

pub(super) fn command(new: &Arc<TableSchema>) -> Command {
    Command::Switch { job: None, drop: vec![], create: vec![], replace: vec![new.clone()] }
}
