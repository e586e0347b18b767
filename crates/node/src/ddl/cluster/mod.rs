//! DDL in a cluster: the same statements, with the manage group in the place of the catalog's journal.
//!
//! 1. *Intend.* The group notes that this process wants the tables alone; refused (and tried again) while another statement has one of them.
//! 2. *Wait* until every process that is up with the role data or sql has locked the tables and said so; a process that goes down drops out, since whatever ran there is over.
//! 3. *Look again*: under the lock the definitions are what they will be changed from, or the statement begins anew.
//! 4. *Change* the catalog with one command that names the intent. It is void if the group has ended the intent, which it does when it takes this process for dead; so a
//!    statement that was held up for too long changes nothing behind the back of others. Each process applies the change to its partitions and cache and gives its locks back.
//!
//! When a statement returns, every process that answers knows the change; one that does not within a second will.
//!
//! Steps 1 and 2 take at most the statement's `wait`, then error 1205. They are done in turns ([`Turns`]): an intent that waits for an old transaction somewhere is given up after a
//! window, so that new statements pass everywhere, and comes again after a pause. Statements that create need no intent: the group decides between two that want the same name. Ids of new tables
//! are taken from the catalog as it is known here; who loses a race takes new ones.
//!
//! An index that is filled while users go on has the tables alone twice: between the two its intent is open
//! ([`reopen`]).
//!
//! A statement of a session that has locked tables (LOCK TABLES) has an intent *under* the one of these locks: on the
//! tables of both, processes have nothing to wait for but what the locks let in. The locks' intent goes on when the
//! statement has ended, with the tables that took the places of its own.
//!
//! What must be filled by transactions (the index table of a new unique index, a table in a new form) is a job of the group: it names the new tables with their definitions, so that all
//! processes have them, under their ids only, before the first row comes. It is begun under the intent and ends with it. The switch is the command of step 4. A statement that goes away in between leaves its intent
//! behind in the group, and perhaps a job, which [`crate::member::catalog`] ends.

mod alter;
mod reopen;
mod tables;

pub(super) use alter::{alter_table, reorganize_leaves, rewrite_table};
pub(super) use tables::{
    change_catalog, change_partitions, create_table, drop_database, drop_tables, exchange_leaf, rename_tables,
    truncate_table,
};

use super::locking::TableLocks;
use super::{Reads, TableName, foreign};
use crate::error::NodeError;
use crate::locks::metadata::{DdlWait, Turns};
use crate::member::Cluster;
use crate::member::catalog::intents::Own;
use crate::member::network::PeerError;
use crate::member::nothing_seen;
use crate::member::signal::Signal;
use crate::node::Node;
use crate::table::TableInfo;
use futures::future::{Either, join_all, select};
use parking_lot::Mutex;
use rauk_log::fault;
use rauk_manage::group::{Answer, CatalogAnswer, GroupCommand, Intent, Open, Refused};
use rauk_manage::{Applied, CatalogError, Command};
use rauk_types::error::codes;
use rauk_types::{Member, MysqlError, TableId};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Between two attempts to get tables that another statement has.
const RETRY: Duration = Duration::from_millis(20);

/// How long a statement that is done waits for the other processes to know it, and for one answer.
const SETTLE: Duration = Duration::from_secs(1);
const ASK: Duration = Duration::from_millis(200);

/// Where a DDL statement of a cluster runs.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub node: &'a Arc<Node>,
    pub cluster: &'a Arc<Cluster>,
}

/// Why the catalog was not changed.
enum Unchanged {
    Refused(CatalogError),
    Failed(NodeError),
}

impl From<Unchanged> for NodeError {
    fn from(unchanged: Unchanged) -> NodeError {
        match unchanged {
            Unchanged::Refused(error) => error.into(),
            Unchanged::Failed(error) => error,
        }
    }
}

impl From<NodeError> for Unchanged {
    fn from(error: NodeError) -> Unchanged {
        Unchanged::Failed(error)
    }
}

fn refused(refused: &Refused) -> NodeError {
    NodeError::Refused(MysqlError::new(codes::UNKNOWN_ERROR, refused.to_string()))
}

fn unexpected(answer: &Answer) -> NodeError {
    NodeError::Fatal(format!("the manage group answered {answer:?} to a DDL statement"))
}

impl<'a> Place<'a> {
    /// Changes the catalog; when this returns the change is in partitions and cache here, and on all processes that answer.
    async fn change(self, command: Command, intent: Option<u64>) -> Result<Applied, Unchanged> {
        fault::point("node.ddl.cluster.change").map_err(super::build::fault_error)?;
        // Only its own process looks for what a job builds.
        let shown = !matches!(command, Command::StartBuild { .. });
        let applied = self.propose(command, intent).await?;
        if shown {
            self.settle().await;
        }
        Ok(applied)
    }

    async fn propose(self, command: Command, intent: Option<u64>) -> Result<Applied, Unchanged> {
        let answer = self.cluster.propose(GroupCommand::Catalog { command, intent }).await;
        match answer? {
            Answer::Catalog(CatalogAnswer::Applied(applied)) => Ok(applied),
            Answer::Catalog(CatalogAnswer::Refused(error)) => Err(Unchanged::Refused(error)),
            Answer::Refused(why) => Err(refused(&why).into()),
            // The group has ended the intent.
            Answer::Void => Err(NodeError::LockTimeout.into()),
            other => Err(unexpected(&other).into()),
        }
    }

    /// Waits until the other processes have followed the group as far as this one, so that whoever hears of the change finds it on every node; not for those that go down, nor for long.
    async fn settle(self) {
        let index = self.cluster.index();
        let start = self.node.runtime.now();
        let ask = |to: Member| async move {
            while self.node.runtime.now().saturating_sub(start) < SETTLE {
                match self.cluster.request(to, Signal::Reached { index }, ASK).await {
                    Ok(Signal::Done) | Err(PeerError::Gone(_)) => return,
                    Ok(_) | Err(PeerError::TimedOut(_) | PeerError::TooLong { .. }) => {}
                }
            }
        };
        let me = self.cluster.me();
        join_all(self.cluster.processes().into_iter().filter(|m| *m != me).map(ask)).await;
    }

    /// Makes a command with new table ids and carries it out; with other ids when somebody else was faster. Gives what `make` made beside it.
    async fn change_with_ids<T>(
        self,
        intent: Option<u64>,
        mut make: impl FnMut(&mut dyn FnMut() -> TableId) -> (Command, T),
    ) -> Result<(Applied, T), NodeError> {
        loop {
            self.node.check_running()?;
            let mut next = self.node.catalog.lock().catalog().next_table_id();
            let (command, made) = make(&mut || {
                next.0 += 1;
                TableId(next.0 - 1)
            });
            match self.change(command, intent).await {
                Err(Unchanged::Refused(CatalogError::TableIdUsed(_))) => {}
                other => return Ok((other?, made)),
            }
        }
    }

    /// The tables alone on all processes, after at most `wait`, then 1205. `StaleSchema`: one of them is not the newest definition any more.
    async fn lock(self, tables: Vec<Arc<TableInfo>>, what: String, wait: DdlWait<'_>) -> Result<Held<'a>, NodeError> {
        let under = wait.locks.and_then(TableLocks::intent);
        wait.unless_killed(self.lock_in_turns(tables, Reads::new(), under, what, wait.limit)).await
    }

    /// `main` and what `others` gives, which may be others when the locks are there: then again. `StaleSchema` is of `main`, which comes first.
    async fn lock_with(
        self,
        main: Option<Arc<TableInfo>>,
        others: impl Fn() -> Vec<Arc<TableInfo>>,
        what: String,
        wait: DdlWait<'_>,
    ) -> Result<Held<'a>, NodeError> {
        loop {
            let wanted = others();
            let all = main.iter().chain(&wanted).cloned().collect();
            match self.lock(all, what.clone(), wait).await {
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
        self,
        mut tables: Vec<Arc<TableInfo>>,
        reads: Reads,
        under: Option<u64>,
        what: String,
        wait: Duration,
    ) -> Result<Held<'a>, NodeError> {
        self.node.check_running()?;
        tables.sort_by_key(|t| t.schema.id);
        tables.dedup_by_key(|t| t.schema.id);
        if tables.is_empty() {
            return Ok(Held { place: self, tables, intent: Mutex::new(None), alone: AtomicBool::new(true) });
        }
        let runtime = &*self.node.runtime;
        let start = runtime.now();
        let left = || wait.saturating_sub(runtime.now().saturating_sub(start));
        let mut turns = Turns::CLUSTER;
        loop {
            let number = self.intend(&tables, &reads, under, what.clone(), &left).await?;
            let intent = Mutex::new(Some(number));
            let held = Held { place: self, tables: tables.clone(), intent, alone: AtomicBool::new(false) };
            let number = held.number().expect("just made");
            let processes = || self.cluster.processes().iter().map(|m| m.process).collect();
            let locked = self.cluster.catalog_state().intents.wait_locked(runtime, number, processes);
            match select(pin!(locked), runtime.sleep(turns.window().min(left()))).await {
                Either::Left((true, _)) => {
                    held.alone.store(true, Ordering::Relaxed);
                    fault::point("node.ddl.cluster.locked").map_err(super::build::fault_error)?;
                    return match held.tables.iter().all(|t| t.shared.is_current(t.schema.version)) {
                        true => Ok(held),
                        false => Err(NodeError::StaleSchema),
                    };
                }
                Either::Left((false, _)) => return Err(NodeError::LockTimeout),
                Either::Right(_) if left().is_zero() => return Err(NodeError::LockTimeout),
                // Somewhere an old transaction uses a table: the intent is given up, so that new statements pass.
                Either::Right(_) => drop(held),
            }
            runtime.sleep(turns.pause().min(left())).await;
            self.node.check_running()?;
        }
    }

    async fn intend(
        self,
        tables: &[Arc<TableInfo>],
        reads: &Reads,
        under: Option<u64>,
        what: String,
        left: &(impl Fn() -> Duration + Sync),
    ) -> Result<(u64, Arc<Own>), NodeError> {
        let intents = &self.cluster.catalog_state().intents;
        let all = tables.iter().map(|t| t.schema.id);
        let (reads, tables): (Vec<TableId>, Vec<TableId>) = all.partition(|id| reads.contains(id));
        let intent = Intent { owner: self.cluster.me().process, tables, reads, what, open: Open::No, under };
        loop {
            {
                let _starting = intents.starting();
                // An intent that comes late is ended by whoever finds that nobody has it.
                let intended = self.cluster.propose(GroupCommand::Intend { intent: intent.clone() }).await;
                match intended.map_err(nothing_seen)? {
                    Answer::Intent(number) => return Ok((number, Arc::new(intents.own(number)))),
                    Answer::Refused(Refused::Intended(_)) => {}
                    Answer::Refused(why) => return Err(refused(&why)),
                    // The group takes this process for dead.
                    Answer::Void => {}
                    other => return Err(unexpected(&other)),
                }
            }
            let left = left();
            if left.is_zero() {
                return Err(NodeError::LockTimeout);
            }
            self.node.runtime.sleep(RETRY.min(left)).await;
        }
    }

    /// The named tables, alone; looks again when one was changed while it was waited for.
    async fn lock_by_name(self, names: &[TableName], what: &str, wait: DdlWait<'_>) -> Result<Held<'a>, NodeError> {
        let end = self.node.runtime.now() + wait.limit;
        loop {
            let tables: Result<Vec<_>, _> = names.iter().map(|n| self.node.find_table(n)).collect();
            let left = end.saturating_sub(self.node.runtime.now());
            match self.lock(tables?, what.to_string(), DdlWait { limit: left, ..wait }).await {
                Err(NodeError::StaleSchema) if left.is_zero() => return Err(NodeError::LockTimeout),
                Err(NodeError::StaleSchema) => {}
                other => return other,
            }
        }
    }
}

/// Tables that a DDL statement has alone in the whole cluster. Dropped, the intent is ended if the group still has it.
struct Held<'a> {
    place: Place<'a>,
    tables: Vec<Arc<TableInfo>>,
    /// Another one when it has been opened or closed.
    intent: Mutex<Option<(u64, Arc<Own>)>>,
    /// All processes have said that they have locked the tables for the intent as it is. Not while users are let in, nor when they
    /// could not be waited for: an intent that is closed says nothing of who is still at the tables.
    alone: AtomicBool,
}

impl Held<'_> {
    fn number(&self) -> Option<u64> {
        self.intent.lock().as_ref().map(|(number, _)| *number)
    }

    /// While somebody has this, this process does not end the intent as it is now.
    fn own(&self) -> Option<Arc<Own>> {
        self.intent.lock().as_ref().map(|(_, own)| own.clone())
    }

    /// Whether the group still has the intent.
    fn is_alive(&self) -> bool {
        self.number().is_none_or(|number| self.place.cluster.group().intents.contains_key(&number))
    }

    /// Changes the catalog, which ends the intent. When it is refused the tables stay locked.
    async fn change(&self, command: Command) -> Result<Applied, Unchanged> {
        self.place.change(command, self.number()).await
    }
}

/// Tables that a session has locked in the whole cluster, until this is dropped.
pub(super) struct Kept {
    intent: Option<(u64, Arc<Own>)>,
}

impl Kept {
    pub(super) fn number(&self) -> Option<u64> {
        self.intent.as_ref().map(|(number, _)| *number)
    }
}

/// LOCK TABLES.
pub(super) async fn lock_tables(
    place: Place<'_>,
    tables: Vec<Arc<TableInfo>>,
    reads: Reads,
    wait: DdlWait<'_>,
) -> Result<Kept, NodeError> {
    let what = "LOCK TABLES".to_string();
    let held = wait.unless_killed(place.lock_in_turns(tables, reads, None, what, wait.limit)).await?;
    Ok(Kept { intent: held.intent.into_inner() })
}

/// For people: the statement and its tables.
fn describe(verb: &str, names: &[TableName]) -> String {
    let names: Vec<String> = names.iter().map(|(database, name)| format!("{database}.{name}")).collect();
    format!("{verb} {}", names.join(", "))
}
