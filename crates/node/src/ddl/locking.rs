//! LOCK TABLES: tables that a session keeps others out of, on all nodes, for as long as it wants.
//!
//! What DDL does for the time of a statement, a session does here until it lets go: it takes the metadata locks of all
//! its tables, in the same turns, so that two that want the same tables do not wait for each other. On one node these
//! are the locks of the table cache. In a cluster it is an intent of the group ([`super::cluster`]), which every process
//! follows with its own locks, also one that begins later, and which ends with its owner's process.
//!
//! The session's transactions use the tables without locks of their own: they are told which these are
//! (`TxnOptions::locked`). A DDL of the session itself would wait for its locks: it has to give them back before.

use super::{Exclusive, Reads, cluster};
use crate::database::{Database, TableHandle};
use crate::error::NodeError;
use crate::locks::metadata::{DdlWait, LockedTables, Mode};
use crate::node::Node;
use crate::table::TableInfo;
use std::sync::Arc;

/// Locks of a session; dropped, they are given back.
pub struct TableLocks {
    /// For [`crate::transaction::TxnOptions`].
    pub tables: Arc<LockedTables>,
    _held: Held,
}

enum Held {
    Here(#[expect(dead_code, reason = "it is held until it is dropped")] Exclusive),
    Everywhere(#[expect(dead_code, reason = "it is held until it is dropped")] cluster::Kept),
}

impl Node {
    /// With the tables that foreign keys lead to and from: whoever writes to a table reads its parents and children, and
    /// cascades write to children. Without them a session would wait for others while it has locks.
    fn with_relatives(&self, wanted: &[(TableHandle, Mode)]) -> Vec<(Arc<TableInfo>, Mode)> {
        let mut all: Vec<(Arc<TableInfo>, Mode)> = Vec::new();
        let mut open: Vec<_> = wanted.iter().map(|(table, mode)| (table.info().clone(), *mode)).collect();
        while let Some((table, mode)) = open.pop() {
            match all.iter_mut().find(|(known, _)| known.schema.id == table.schema.id) {
                Some((_, known)) if *known >= mode => continue,
                Some((_, known)) => *known = mode,
                None => all.push((table.clone(), mode)),
            }
            if mode != Mode::Alone {
                continue;
            }
            for key in &table.schema.foreign_keys {
                let parent = self.tables.by_name(&key.parent_database, &key.parent_table);
                open.extend(parent.map(|parent| (parent, Mode::NoWrites)));
            }
            for child in table.shared.children.list().iter() {
                let Some(info) = self.tables.by_id(child.table) else { continue };
                let cascades = info.schema.foreign_keys.iter().any(|key| {
                    let changes = key.on_delete.changes_children() || key.on_update.changes_children();
                    key.name == child.name && changes
                });
                open.push((info, if cascades { Mode::Alone } else { Mode::NoWrites }));
            }
        }
        all
    }
}

impl Database {
    /// Locks tables, which are named once each. Waits for those who use them, as DDL does: 1205, 1317. `StaleSchema`: one
    /// of them is not the newest definition any more.
    pub async fn lock_tables(
        &self,
        wanted: &[(TableHandle, Mode)],
        wait: DdlWait<'_>,
    ) -> Result<TableLocks, NodeError> {
        let wanted = self.node.with_relatives(wanted);
        let tables: Vec<Arc<TableInfo>> = wanted.iter().map(|(table, _)| table.clone()).collect();
        let modes: Vec<_> = wanted.iter().map(|(table, mode)| (table.schema.id, *mode)).collect();
        let reads: Reads = modes.iter().filter(|(_, mode)| *mode == Mode::NoWrites).map(|(id, _)| *id).collect();
        let held = match self.node.cluster() {
            Some(cluster) => {
                let place = cluster::Place { node: &self.node, cluster };
                Held::Everywhere(cluster::lock_tables(place, tables, reads, wait).await?)
            }
            None => {
                let locked = Exclusive::lock_in_turns(&self.node, tables, reads, wait.limit);
                Held::Here(wait.unless_killed(locked).await?)
            }
        };
        Ok(TableLocks { tables: Arc::new(LockedTables(modes)), _held: held })
    }
}
