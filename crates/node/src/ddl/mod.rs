//! Changing definitions.
//!
//! Every DDL takes the metadata lock of its tables alone: running transactions end first; new ones queue behind it for short times only
//! ([`crate::locks::metadata::Turns`]). Then, in one command to the
//! catalog's journal, the change becomes durable and takes place; only after that do partitions and the table cache follow, without a wait in
//! between, so that neither a crash nor a client that goes away leaves half of it.
//!
//! What takes longer (filling an index, rewriting a table) is a *job* ([`build`]); where it can be so, readers and
//! writers go on ([`online`]). It reserves table ids in the catalog, fills tables that nobody knows yet through
//! ordinary commits, and one command at the end puts them in place. Until that command nothing has changed; a crash
//! leaves rows of tables that the catalog does not know, which recovery passes over, and a job that it takes away.
//!
//! In a cluster the statements are the same, but the catalog is the manage group's and tables are locked on all nodes: [`cluster`].

pub(crate) mod alter;
mod build;
pub mod changes;
mod cluster;
mod copying;
mod entering;
mod exchange;
mod foreign;
mod histograms;
pub mod locking;
mod online;
pub(crate) mod pace;
mod partitions;
mod progress;
mod purge;
mod reorganize;
mod tables;
pub(crate) mod validating;
mod views;
mod workers;

pub(crate) use build::duplicate_entry;
pub use copying::{Convert, Further, Look, OwnConvert, is_online as is_copied_online};
pub(crate) use copying::{Copying, look_at_rows, tables_with_rows};
pub use online::is_online;
pub use progress::{Progress, RowWork, Stage};
pub use purge::Purged;
pub use tables::TableName;

use crate::error::NodeError;
use crate::locks::metadata::{DdlWait, LOOK, LockedTables, Mode, Turns, Way};
use crate::node::Node;
use crate::table::parts::physical;
use crate::table::{TableInfo, TableShared};
use rauk_manage::{Applied, Command, StoreError};
use rauk_types::{TableId, TableSchema};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

impl Node {
    /// Carries a command out on a node that is alone; the node stops if nobody can say whether it was.
    pub fn change_catalog(&self, command: &Command) -> Result<Applied, NodeError> {
        let result = self.catalog.lock().execute(command);
        self.settled(result)
    }

    fn settled(&self, result: Result<Applied, StoreError>) -> Result<Applied, NodeError> {
        if let Err(StoreError::Log(error)) = &result
            && !matches!(error, rauk_log::LogError::DiskFull(_) | rauk_log::LogError::RecordTooLarge { .. })
        {
            self.fatal(&error.to_string());
        }
        self.catalog_changes.fetch_add(u32::from(result.is_ok()), std::sync::atomic::Ordering::Release);
        Ok(result?)
    }

    /// Brings a table into all partitions. What is brought to a partition afterwards finds it.
    fn create_in_partitions(self: &Arc<Self>, schema: &Arc<TableSchema>) {
        let physical = physical(schema);
        for partition in 0..self.partition_count() {
            for schema in physical.iter().cloned() {
                self.detach(partition, move |p| p.create_table(schema));
            }
        }
    }

    fn alter_in_partitions(self: &Arc<Self>, schema: &Arc<TableSchema>) {
        let physical = physical(schema);
        for partition in 0..self.partition_count() {
            for schema in physical.iter().cloned() {
                self.detach(partition, move |p| p.alter_table(schema));
            }
        }
    }

    /// Tables that were filled under their ids alone come into use.
    fn show_in_partitions(self: &Arc<Self>, table: TableId) {
        for partition in 0..self.partition_count() {
            self.detach(partition, move |p| p.show_table(table));
        }
    }

    fn drop_in_partitions(self: &Arc<Self>, table: rauk_types::TableId) {
        for partition in 0..self.partition_count() {
            self.detach(partition, move |p| p.drop_table(table));
        }
    }

    /// The info of a new table with its index tables, which are in `entries`.
    fn info_of_new(&self, schema: Arc<TableSchema>, entries: &[Arc<TableSchema>]) -> Arc<TableInfo> {
        let shared = TableShared::new(&schema, 1, 1);
        TableInfo::new(schema, shared, |id| {
            if let Some(entry) = entries.iter().find(|e| e.id == id) {
                let shared = TableShared::new(entry, 1, 1);
                return TableInfo::new(entry.clone(), shared, |_| unreachable!("index tables have no unique index"));
            }
            self.tables.by_id(id).expect("an index table that is kept is known")
        })
    }

    /// Takes a table and its index tables out of everything.
    fn forget_table(self: &Arc<Self>, table: &TableInfo) {
        table.shared.set_dropped();
        for schema in table.family() {
            self.tables.retract(schema.id);
            self.drop_in_partitions(schema.id);
        }
        table.beneath().for_each(|leaf| self.drop_in_partitions(leaf.schema.id));
    }
}

/// Tables that a DDL has alone, or has reserved ([`online`]); given back when dropped.
struct Exclusive {
    tables: Vec<Arc<TableInfo>>,
    ways: Ways,
    /// Users are let in while something is built, and other DDL is not.
    reserved: bool,
    /// Of the first table, only those that read.
    readers_only: bool,
    /// Not while users are let in.
    alone: bool,
}

/// Tables that are locked in [`Mode::NoWrites`]; all others are in [`Mode::Alone`].
type Reads = BTreeSet<TableId>;

/// How a statement has its tables.
#[derive(Clone, Default)]
struct Ways {
    /// Of the tables, those that LOCK TABLES only keeps writers out of.
    reads: Reads,
    /// What the session has locked before.
    own: Arc<LockedTables>,
}

impl Ways {
    fn of(&self, table: &TableInfo) -> Way {
        let id = table.schema.id;
        let mode = if self.reads.contains(&id) { Mode::NoWrites } else { Mode::Alone };
        Way::to(mode, self.own.mode_of(id))
    }
}

impl Exclusive {
    /// Locks all of them in the order of their ids, in turns with new users ([`Turns`]), and makes sure that these are
    /// still the newest definitions: `StaleSchema` else.
    async fn lock(node: &Node, tables: Vec<Arc<TableInfo>>, wait: DdlWait<'_>) -> Result<Exclusive, NodeError> {
        let own = wait.locks.map(|locks| locks.tables()).unwrap_or_default();
        let ways = Ways { reads: Reads::new(), own };
        wait.unless_killed(Exclusive::lock_in_turns(node, tables, ways, wait.limit)).await
    }

    /// `main` and what `others` gives, which may be others when the locks are there: then again. `StaleSchema` is of `main`, which comes first.
    async fn lock_with(
        node: &Node,
        main: Option<Arc<TableInfo>>,
        others: impl Fn() -> Vec<Arc<TableInfo>>,
        wait: DdlWait<'_>,
    ) -> Result<Exclusive, NodeError> {
        loop {
            let wanted = others();
            let all = main.iter().chain(&wanted).cloned().collect();
            match Exclusive::lock(node, all, wait).await {
                Err(NodeError::StaleSchema) if main.iter().all(|t| t.shared.is_current(t.schema.version)) => {}
                Ok(held) if !foreign::same(&wanted, &others()) => drop(held),
                Ok(mut held) => {
                    held.tables.sort_by_key(|t| main.as_ref().is_none_or(|main| main.schema.id != t.schema.id));
                    return Ok(held);
                }
                other => return other,
            }
        }
    }

    async fn lock_in_turns(
        node: &Node,
        mut tables: Vec<Arc<TableInfo>>,
        ways: Ways,
        wait: Duration,
    ) -> Result<Exclusive, NodeError> {
        node.check_running()?;
        tables.sort_by_key(|t| t.schema.id);
        tables.dedup_by_key(|t| t.schema.id);
        let runtime = &*node.runtime;
        let end = runtime.now() + wait;
        let left = || end.saturating_sub(runtime.now());
        let mut turns = Turns::LOCAL;
        loop {
            match Exclusive::lock_within(node, &tables, &ways, turns.window().min(left())).await {
                Err(NodeError::LockTimeout) if !left().is_zero() => {}
                Err(error) => return Err(error),
                Ok(held) => return held.check(),
            }
            let pause = runtime.now() + turns.pause();
            while runtime.now() < pause && !left().is_zero() {
                runtime.sleep(LOOK.min(left())).await;
                node.check_running()?;
                if let Some(held) = Exclusive::lock_now(&tables, &ways) {
                    return held.check();
                }
            }
        }
    }

    fn empty(ways: &Ways) -> Exclusive {
        Exclusive { tables: Vec::new(), ways: ways.clone(), reserved: false, readers_only: false, alone: true }
    }

    async fn lock_within(
        node: &Node,
        tables: &[Arc<TableInfo>],
        ways: &Ways,
        window: Duration,
    ) -> Result<Exclusive, NodeError> {
        let end = node.runtime.now() + window;
        let mut held = Exclusive::empty(ways);
        for table in tables {
            let left = end.saturating_sub(node.runtime.now());
            table.shared.lock.take(ways.of(table), &*node.runtime, left).await?;
            held.tables.push(table.clone());
        }
        Ok(held)
    }

    /// If nobody uses any of them.
    fn lock_now(tables: &[Arc<TableInfo>], ways: &Ways) -> Option<Exclusive> {
        let mut held = Exclusive::empty(ways);
        for table in tables {
            if !table.shared.lock.try_take(ways.of(table)) {
                return None;
            }
            held.tables.push(table.clone());
        }
        Some(held)
    }

    fn check(self) -> Result<Exclusive, NodeError> {
        match self.tables.iter().all(|t| t.shared.is_current(t.schema.version)) {
            true => Ok(self),
            false => Err(NodeError::StaleSchema),
        }
    }
}

impl Drop for Exclusive {
    fn drop(&mut self) {
        if self.alone {
            self.tables.iter().for_each(|t| t.shared.lock.give(self.ways.of(t)));
        }
        self.let_writers_in();
        if self.reserved {
            self.tables.iter().for_each(|t| t.shared.lock.end_reservation());
        }
    }
}
