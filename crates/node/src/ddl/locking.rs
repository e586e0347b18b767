//! LOCK TABLES: tables that a session keeps others out of, on all nodes, for as long as it wants.
//!
//! What DDL does for the time of a statement, a session does here until it lets go: it takes the metadata locks of all
//! its tables, in the same turns, so that two that want the same tables do not wait for each other. On one node these
//! are the locks of the table cache. In a cluster it is an intent of the group ([`super::cluster`]), which every process
//! follows with its own locks, also one that begins later, and which ends with its owner's process.
//!
//! The session's transactions use the tables without locks of their own: they are told which these are
//! (`TxnOptions::locked`). So does a DDL of the session (`DdlWait::locks`): it has a table that is locked alone already,
//! raises the lock of one that is only locked against writers, and locks all others for its time. The session's locks
//! stay. A table that it replaces by another one (TRUNCATE, rows that are written again) is locked from before anybody
//! can find it: on one node here ([`TableLocks::replace`]), in a cluster by every process that hears of the change.

use super::changes::Changing;
use super::{Exclusive, Reads, Ways, cluster};
use crate::database::{Database, TableHandle};
use crate::error::NodeError;
use crate::locks::metadata::{DdlWait, LockedTables, Mode, Way};
use crate::node::Node;
use crate::table::TableInfo;
use parking_lot::Mutex;
use rauk_types::TableId;
use std::fmt;
use std::sync::Arc;

/// Locks of a session; dropped, they are given back.
pub struct TableLocks {
    state: Mutex<State>,
    /// Of whoever has locked a table alone.
    changing: Option<Changing>,
    /// What goes with them.
    _beside: Option<Box<TableLocks>>,
}

struct State {
    tables: Arc<LockedTables>,
    held: Held,
}

enum Held {
    Here(Exclusive),
    Everywhere(cluster::Kept),
}

impl fmt::Debug for TableLocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TableLocks").field(&self.tables()).finish()
    }
}

impl TableLocks {
    pub(super) fn beside(self, other: TableLocks) -> TableLocks {
        TableLocks { _beside: Some(Box::new(other)), ..self }
    }

    /// Whether the session may change definitions while it has them ([`Database::changing`]).
    pub fn may_change(&self) -> bool {
        self.changing.is_some()
    }

    /// For [`crate::transaction::TxnOptions`]. A DDL of the session changes them.
    pub fn tables(&self) -> Arc<LockedTables> {
        self.state.lock().tables.clone()
    }

    /// The intent of the locks, in a cluster.
    pub(super) fn intent(&self) -> Option<u64> {
        match &self.state.lock().held {
            Held::Here(_) => None,
            Held::Everywhere(kept) => kept.number(),
        }
    }

    /// A table takes the place of one that is locked, and is not shown yet. In a cluster it is locked already.
    pub(crate) fn replace(&self, old: TableId, new: &Arc<TableInfo>) {
        let mut state = self.state.lock();
        let Some(mode) = state.tables.mode_of(old) else { return };
        let mut tables = state.tables.0.clone();
        tables.push((new.schema.id, mode));
        state.tables = Arc::new(LockedTables(tables));
        if let Held::Here(held) = &mut state.held {
            // The statement has the old one alone, so the session has locked it for itself.
            let is_locked = new.shared.lock.try_take(Way::Lock(mode));
            assert!(is_locked, "nobody knows the new table");
            held.tables.push(new.clone());
        }
    }

    /// Tables are gone, and nobody finds them any more.
    pub(crate) fn forget(&self, gone: impl Iterator<Item = TableId>) {
        let gone: Vec<TableId> = gone.collect();
        let mut state = self.state.lock();
        let is_gone = |id: &TableId| gone.contains(id);
        let tables = state.tables.0.iter().filter(|(id, _)| !is_gone(id)).copied().collect();
        state.tables = Arc::new(LockedTables(tables));
        if let Held::Here(Exclusive { tables, ways, .. }) = &mut state.held {
            // Those who wait for one of them hear that it is gone.
            tables.extract_if(.., |t| is_gone(&t.schema.id)).for_each(|t| t.shared.lock.give(ways.of(&t)));
        }
    }
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
        // Before the tables: who keeps definitions from changing waits for the tables afterwards, too.
        let alone = wanted.iter().any(|(_, mode)| *mode == Mode::Alone);
        let changing = if alone { Some(self.changing(wait).await?) } else { None };
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
                let ways = Ways { reads, own: Arc::default() };
                let locked = Exclusive::lock_in_turns(&self.node, tables, ways, wait.limit);
                Held::Here(wait.unless_killed(locked).await?)
            }
        };
        let state = Mutex::new(State { tables: Arc::new(LockedTables(modes)), held });
        Ok(TableLocks { state, changing, _beside: None })
    }
}
