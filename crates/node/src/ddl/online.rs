//! Indexes that are built, and foreign keys that are validated, while readers and writers go on.
//!
//! The DDL has its tables alone twice, each time for as long as a few commands to the catalog take. Under the first
//! lock the partitions get a definition that has the new indexes beside the old ones ([`building_definition`]): from
//! there on every write keeps their entries, whatever definition its statement knows, and no plan uses them. Then the
//! tables are *reserved* ([`Exclusive::let_users_in`]): users come and go, other DDL waits. The rows that were there
//! are entered slice by slice. Under the second lock ([`Exclusive::have_alone_again`]) one command to the catalog shows
//! the new definition.
//!
//! *Nothing is entered twice and nothing is missed*, since a partition is held for a write as for a slice: an entry is
//! there for every image of a row, whether the write came first or the slice. Rows that go take their entries along,
//! filled in or not.
//!
//! *Unique indexes* are kept by the transactions of writers, and filled by others beside them: [`super::entering`].
//!
//! *Foreign keys* are validated when the new indexes are filled ([`super::validating`]). The parents are held alone and
//! reserved with the table, so their writers too see to it.
//!
//! *Old snapshots* may use the new index: the versions that they see have entries like all others. Those that a
//! partition had thrown away before the index came, or while it was filled, nobody may need; whoever reads at a time
//! before them is told so, as with rows ([`rauk_kernel::Stop::SnapshotTooOld`]). A table that was filled under its id
//! alone (an index table, a table in a new form) has its rows of the time when they were filled in, and refuses older
//! snapshots altogether.
//!
//! *What is undone* (an error, KILL, a client that goes away) is the definition of the partitions: they forget the
//! index. Nothing of it is in the log or in checkpoints, and after a crash the catalog does not have it.

use super::Exclusive;
use super::build::Building;
use super::copying::{Copied, Copying};
use super::workers::Workers;
use crate::error::NodeError;
use crate::locks::metadata::{DdlWait, LOOK, Meanwhile, Turns};
use crate::node::Node;
use crate::table::TableInfo;
use crate::table::relations::ParentIndex;
use rauk_types::foreign::child_index;
use rauk_types::{Column, ForeignKey, TableSchema};
use std::time::Duration;

/// The definition that partitions have while new indexes are filled, and new foreign keys (`added`) validated, with users
/// in: the old one, and behind what it has the new indexes and foreign keys. `None`: the change is made with the table
/// held alone, since it has none, or what they index is not in the rows as they are written now.
pub(super) fn building_definition(
    old: &TableSchema,
    new: &TableSchema,
    added: &[ForeignKey],
    meanwhile: Meanwhile,
) -> Option<TableSchema> {
    if meanwhile == Meanwhile::Nobody {
        return None;
    }
    let mut building = old.clone();
    let mut any = false;
    let kept_at = |column: &Column| {
        let before = old.columns.iter().position(|c| c.id == column.id)?;
        let same = &old.columns[before];
        (same.ty == column.ty && same.generated == column.generated).then_some(before)
    };
    for index in new.indexes.iter().filter(|i| i.has_entries() || i.is_guarded()) {
        match building.indexes.iter_mut().find(|i| i.id == index.id) {
            Some(kept) if kept.is_guarded() != index.is_guarded() => return None,
            Some(kept) if kept.has_entries() || !index.has_entries() => continue,
            Some(kept) => kept.hash_only = false,
            None => {
                let mut index = index.clone();
                for part in &mut index.parts {
                    part.column = kept_at(&new.columns[part.column])?;
                }
                building.indexes.push(index);
            }
        }
        any = true;
    }
    for key in added {
        for at in key.positions(new) {
            kept_at(&new.columns[at])?;
        }
        building.foreign_keys.push(key.clone());
        // A key to the table itself looks for parents in what is there now.
        if key.is_parent(new) && ParentIndex::of(key, &building, old).is_none()
            || key.is_parent(new) != key.is_parent(old)
            || child_index(&building, &key.positions(&building)).is_none()
        {
            return None;
        }
        any = true;
    }
    any.then_some(building)
}

/// A job with the tables of its statement. Dropped while users are let in, it is undone when they have gone, which
/// nobody waits for: what they write meanwhile goes to tables that are still there. So it is when its workers have ended.
pub(super) struct Work {
    job: Option<(Building, Exclusive)>,
    pub workers: Workers,
}

impl Work {
    pub fn new(building: Building, held: Exclusive) -> Work {
        Work { job: Some((building, held)), workers: Workers::default() }
    }

    pub fn building(&mut self) -> &mut Building {
        &mut self.job.as_mut().expect("it is there until it is dropped").0
    }

    pub fn held(&mut self) -> &mut Exclusive {
        &mut self.job.as_mut().expect("it is there until it is dropped").1
    }
}

impl Work {
    /// Copies a table that is held alone. Where writers see to it, they are let in meanwhile, and it is held alone again
    /// at the end.
    pub async fn copy(&mut self, copying: Copying<'_, '_>, wait: DdlWait<'_>) -> Result<Copied, NodeError> {
        let node = self.building().node().clone();
        let mut copying = copying.by(self.workers.clone(), None);
        if !self.building().is_kept() {
            wait.unless_killed(copying.pass()).await?;
            return Ok(copying.copied);
        }
        self.held().let_users_in(wait.meanwhile);
        wait.unless_killed(copying.pass()).await?;
        let mut returns = 0;
        loop {
            wait.unless_killed(copying.rounds()).await?;
            // So that little is to be written while nobody gets in.
            node.group.flush_all().await?;
            wait.unless_killed(self.held().have_alone_again(&node, wait.limit)).await?;
            if !wait.unless_killed(copying.is_far_behind(returns)).await? {
                break;
            }
            returns += 1;
            self.held().let_users_in_again();
        }
        wait.unless_killed(copying.last()).await?;
        Ok(copying.copied)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let Some((building, held)) = self.job.take() else { return };
        if !self.workers.are_at_work() {
            return end(building, held);
        }
        let (workers, runtime) = (self.workers.clone(), building.node().runtime.clone());
        let ended = async move {
            workers.ended().await;
            end(building, held);
        };
        runtime.spawn("end of a DDL statement", Box::pin(ended));
    }
}

/// Undoes a job that has not ended well, when its tables are held alone.
fn end(building: Building, mut held: Exclusive) {
    if held.alone || !building.is_kept() {
        return undo(building, held);
    }
    building.give_up();
    held.let_writers_in();
    if held.try_alone_again() {
        return undo(building, held);
    }
    let node = building.node().clone();
    let runtime = node.runtime.clone();
    let undone = async move {
        while held.have_alone_again(&node, UNDO).await.is_err() && node.check_running().is_ok() {}
        undo(building, held);
    };
    runtime.spawn("undo of a DDL statement", Box::pin(undone));
}

/// In this order.
fn undo(building: Building, held: Exclusive) {
    drop(building);
    drop(held);
}

/// For how long the users of a table are waited for before the node is asked whether it still runs.
const UNDO: Duration = Duration::from_secs(5);

/// Whether readers and writers go on while a change of a definition fills indexes and validates foreign keys; `false`:
/// it has the table alone if it does. `checks`: its new foreign keys are validated.
pub fn is_online(old: &TableSchema, new: &TableSchema, checks: bool) -> bool {
    let added: Vec<ForeignKey> =
        new.foreign_keys.iter().filter(|key| checks && !old.foreign_keys.contains(key)).cloned().collect();
    building_definition(old, new, &added, Meanwhile::All).is_some()
}

impl Exclusive {
    /// Users are let in, and other DDL is kept out.
    pub(super) fn let_users_in(&mut self, meanwhile: Meanwhile) {
        self.readers_only = meanwhile == Meanwhile::Readers;
        let is_main = |at: usize| at == 0;
        self.tables.iter().enumerate().for_each(|(at, t)| t.shared.lock.reserve(self.readers_only && is_main(at)));
        (self.reserved, self.alone) = (true, false);
    }

    /// Of tables that were reserved before.
    fn let_users_in_again(&mut self) {
        self.tables.iter().for_each(|t| t.shared.lock.end_exclusion());
        self.alone = false;
    }

    /// Of a table that only readers were let in to.
    pub(super) fn let_writers_in(&mut self) {
        if std::mem::take(&mut self.readers_only) {
            self.tables[0].shared.lock.let_writers_in();
        }
    }

    /// Waits in turns for the users that were let in: at most `wait`, then 1205, and the tables are still reserved.
    pub(super) async fn have_alone_again(&mut self, node: &Node, wait: Duration) -> Result<(), NodeError> {
        let runtime = &*node.runtime;
        let end = runtime.now() + wait;
        let left = || end.saturating_sub(runtime.now());
        let mut turns = Turns::LOCAL;
        // Who has read and now wants to write would wait for this statement, and it for him.
        self.let_writers_in();
        while !self.alone {
            match self.within(node, turns.window().min(left())).await {
                Err(NodeError::LockTimeout) if !left().is_zero() => {}
                other => return other,
            }
            let pause = runtime.now() + turns.pause();
            while !self.alone && runtime.now() < pause && !left().is_zero() {
                runtime.sleep(LOOK.min(left())).await;
                node.check_running()?;
                self.try_alone_again();
            }
        }
        Ok(())
    }

    /// The same if nobody uses any of them.
    fn try_alone_again(&mut self) -> bool {
        let mut taken = Taken::default();
        self.alone = self.tables.iter().all(|t| t.shared.lock.try_exclude_reserved() && taken.push(t));
        taken.keep_if(self.alone);
        self.alone
    }

    async fn within(&mut self, node: &Node, window: Duration) -> Result<(), NodeError> {
        let end = node.runtime.now() + window;
        let mut taken = Taken::default();
        for table in &self.tables {
            let left = end.saturating_sub(node.runtime.now());
            table.shared.lock.exclude_reserved(&*node.runtime, left).await?;
            taken.push(table);
        }
        taken.keep_if(true);
        self.alone = true;
        Ok(())
    }
}

/// Reserved tables that are held alone again, unless this is dropped.
#[derive(Default)]
struct Taken<'a>(Vec<&'a TableInfo>);

impl<'a> Taken<'a> {
    fn push(&mut self, table: &'a TableInfo) -> bool {
        self.0.push(table);
        true
    }

    fn keep_if(mut self, keep: bool) {
        if keep {
            self.0.clear();
        }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|t| t.shared.lock.end_exclusion());
    }
}
