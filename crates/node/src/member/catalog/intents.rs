//! Cluster-wide metadata locks: the tables of an intent are locked on every process, and its owner hears of it.
//!
//! An intent comes with the group's state. Where nobody uses its tables they are locked at once; else one task of the process, begun when it is needed and ended when there is
//! no intent and no job any more, waits for the users of the tables of all intents, one table after the other in the order of their ids (as local statements do, so that there
//! is one order everywhere). Statements that come after the lock was asked for queue behind it. The owner's process is told when all tables are locked and then every
//! [`TELL`], since messages get lost, until the intent is gone from the group: then the locks go too. A table that is not known here (any more) needs no lock.
//!
//! An intent *under* another one (DDL of a session that has locked tables) finds what that one has locked, and raises
//! its locks ([`Way`]). A table that takes the place of a locked one is locked by [`super::tables`] before anybody can
//! find it, and its lock comes here with the state of the group that shows it.
//!
//! Of an intent that is open to all nothing is locked: users go on, and its owner closes it when it wants the tables
//! alone again.
//!
//! The owner's side waits in [`Intents::wait_locked`] until every process that is up has said so. Intents that this process owns and that no statement here stands for are ended
//! by [`super::upkeep`]. New indexes of jobs, which the same task fills ([`super::fills`]), are told of and waited for in the same way.

use super::fills::{Filled, Fills};
use super::upkeep::{self, Surroundings};
use crate::ddl::changes::EVERYTHING;
use crate::locks::metadata::{Mode, Way};
use crate::member::Cluster;
use crate::member::signal::Signal;
use crate::node::Node;
use crate::runtime::{BoxFuture, Runtime};
use crate::table::TableInfo;
use parking_lot::Mutex;
use rauk_manage::JobId;
use rauk_manage::group::{Group, Intent, Open};
use rauk_types::{Member, ProcessId, TableId};
use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// How often an owner is told.
const TELL: Duration = Duration::from_millis(100);
/// One attempt to lock a table; then the lock is asked for anew, so that nothing hangs on one wait.
const ATTEMPT: Duration = Duration::from_secs(60);
/// How long whoever waits for the processes sleeps at most: one may have gone, which nobody tells.
const LOOK: Duration = Duration::from_millis(50);

/// The intents of the group on this process, and those of its own statements.
#[derive(Default)]
pub struct Intents {
    state: Mutex<State>,
    pub(super) fills: Fills,
}

#[derive(Default)]
pub(super) struct State {
    intents: BTreeMap<u64, Here>,
    /// Whether there are jobs in the catalog, which may need to be cleared up.
    jobs: bool,
    /// Whether the task runs, and how to wake it.
    running: bool,
    waker: Option<Waker>,
    /// Counts what the task must look at.
    news: u64,
    /// Of own statements: who has locked, and who has filled the new indexes or has no memory for them.
    own: BTreeMap<u64, BTreeSet<ProcessId>>,
    /// Own statements whose intent, or job, is on its way into the group.
    starting: usize,
    own_jobs: BTreeMap<JobId, BTreeMap<ProcessId, Option<u64>>>,
    /// Own statements that wait for processes.
    waiting: Vec<Waker>,
}

/// An intent as it stands here.
struct Here {
    owner: ProcessId,
    /// As the group has them.
    ids: Vec<TableId>,
    tables: Vec<(Arc<TableInfo>, Way)>,
    /// `None`: not all tables are locked yet.
    held: Option<Held>,
    /// Tables that took the places of others.
    followed: Held,
}

impl Here {
    /// Follows a change of the intent's tables; gives those that it has no more.
    fn follow(&mut self, ids: Vec<TableId>, taken: &mut Held) -> Held {
        let is_gone = |(table, _): &mut (Arc<TableInfo>, Way)| !ids.contains(&table.schema.id);
        self.tables.retain_mut(|table| !is_gone(table));
        let held = self.held.iter_mut().chain([&mut self.followed]);
        let gone = Held(held.flat_map(|held| held.0.extract_if(.., |table| is_gone(table))).collect());
        let new = ids.iter().filter(|id| !self.ids.contains(id));
        let new: Vec<_> = new.filter_map(|id| taken.take(*id)).collect();
        self.tables.extend(new.iter().cloned());
        self.followed.0.extend(new);
        self.ids = ids;
        gone
    }
}

/// Tables that are locked.
#[derive(Default)]
pub(super) struct Held(Vec<(Arc<TableInfo>, Way)>);

impl Held {
    /// Locks a table that nobody knows yet.
    pub fn lock_unknown(&mut self, table: &Arc<TableInfo>) {
        let way = Way::Lock(Mode::Alone);
        if table.shared.lock.try_take(way) {
            self.0.push((table.clone(), way));
        }
    }

    fn take(&mut self, id: TableId) -> Option<(Arc<TableInfo>, Way)> {
        let at = self.0.iter().position(|(table, _)| table.schema.id == id)?;
        Some(self.0.swap_remove(at))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.iter().for_each(|(table, way)| table.shared.lock.give(*way));
    }
}

/// The tables that an intent locks, and how.
fn modes(intent: &Intent) -> BTreeMap<TableId, Mode> {
    let mode = match intent.open {
        Open::No => Some(Mode::Alone),
        Open::ToReaders => Some(Mode::NoWrites),
        Open::ToAll => None,
    };
    let alone = intent.tables.iter().filter_map(|id| Some((*id, mode?)));
    intent.reads.iter().map(|id| (*id, Mode::NoWrites)).chain(alone).collect()
}

fn lockable(node: &Node, id: TableId) -> Option<Arc<TableInfo>> {
    if id == EVERYTHING { Some(node.everything.clone()) } else { node.tables.by_id(id) }
}

/// Tables that intents of the group have for themselves.
pub(super) fn locked_alone(group: &Group) -> BTreeSet<TableId> {
    group.intents.values().filter(|i| i.open == Open::No).flat_map(|i| i.tables.iter().copied()).collect()
}

impl State {
    /// Whether a statement of this process stands for the intent.
    pub fn is_own(&self, number: u64) -> bool {
        self.starting > 0 || self.own.contains_key(&number)
    }

    pub fn is_own_job(&self, job: JobId) -> bool {
        self.starting > 0 || self.own_jobs.contains_key(&job)
    }
}

impl Intents {
    /// Brings the locks to what the group says; its tables are in the cache already. `taken`: tables that were locked
    /// before they came there.
    pub(super) fn follow(self: &Arc<Self>, node: &Arc<Node>, group: &Group, mut taken: Held) {
        let mut ended = Vec::new();
        let mut gone_tables = Vec::new();
        let mut locked = Vec::new();
        let begin = {
            let mut state = self.state.lock();
            let gone: Vec<u64> = state.intents.keys().filter(|n| !group.intents.contains_key(n)).copied().collect();
            ended.extend(gone.iter().map(|n| state.intents.remove(n)));
            for (&number, intent) in &group.intents {
                let ids: Vec<TableId> = intent.tables.iter().chain(&intent.reads).copied().collect();
                if let Some(here) = state.intents.get_mut(&number) {
                    if here.ids != ids {
                        gone_tables.push(here.follow(ids, &mut taken));
                    }
                    continue;
                }
                let own = intent.under.and_then(|locks| group.intents.get(&locks)).map(modes).unwrap_or_default();
                let wanted = modes(intent).into_iter();
                let wanted =
                    wanted.filter_map(|(id, mode)| Some((lockable(node, id)?, Way::to(mode, own.get(&id).copied()))));
                let tables: Vec<(Arc<TableInfo>, Way)> = wanted.collect();
                let held = lock_now(&tables, &mut taken);
                if held.is_some() {
                    locked.push((number, intent.owner));
                }
                let here = Here { owner: intent.owner, ids, tables, held, followed: Held::default() };
                state.intents.insert(number, here);
            }
            state.jobs = group.catalog.jobs().next().is_some();
            state.news += 1;
            let begin = !state.running && (state.jobs || !state.intents.is_empty());
            state.running |= begin;
            if let Some(waker) = state.waker.take() {
                waker.wake();
            }
            begin
        };
        // Their locks go here, without the state held.
        drop((ended, gone_tables, taken));
        if let Some(cluster) = node.cluster() {
            locked.into_iter().for_each(|(number, owner)| self.tell(cluster, number, owner));
            self.tell_filled(cluster);
        }
        self.wake_waiting();
        if begin {
            let (own, weak, runtime) = (self.clone(), Arc::downgrade(node), node.runtime.clone());
            node.runtime.spawn("intents", Box::pin(async move { own.run(&weak, &runtime).await }));
        }
    }

    fn tell(&self, cluster: &Cluster, intent: u64, owner: ProcessId) {
        let me = cluster.me();
        if owner == me.process {
            self.on_locked(intent, owner);
        } else if let Some(node) = cluster.node_of(owner) {
            cluster.tell(Member { node, process: owner }, Signal::Locked { intent, process: me.process });
        }
    }

    /// Tells owners which jobs are through here.
    fn tell_filled(&self, cluster: &Cluster) {
        let me = cluster.me();
        for Filled { job, owner, full } in self.fills.done() {
            if owner == me.process {
                self.on_filled(job, owner, full);
            } else if let Some(node) = cluster.node_of(owner) {
                cluster.tell(Member { node, process: owner }, Signal::Filled { job, process: me.process, full });
            }
        }
    }

    /// A process has filled the indexes of a job, or could not.
    pub(super) fn on_filled(&self, job: JobId, process: ProcessId, full: Option<u64>) {
        let said = self.state.lock().own_jobs.get_mut(&job).map(|said| said.insert(process, full));
        if said == Some(None) {
            self.wake_waiting();
        }
    }

    /// A process has locked the tables of an intent.
    pub(super) fn on_locked(&self, intent: u64, process: ProcessId) {
        let news = self.state.lock().own.get_mut(&intent).is_some_and(|locked| locked.insert(process));
        if news {
            self.wake_waiting();
        }
    }

    /// Whether all of an intent's tables are locked here.
    pub fn is_locked(&self, intent: u64) -> bool {
        self.state.lock().intents.get(&intent).is_some_and(|h| h.held.is_some())
    }

    #[cfg(test)]
    pub(super) fn runs(&self) -> bool {
        self.state.lock().running
    }

    #[cfg(test)]
    pub(super) fn with_state<R>(&self, look: impl FnOnce(&State) -> R) -> R {
        look(&self.state.lock())
    }

    fn wake_waiting(&self) {
        let waiting = std::mem::take(&mut self.state.lock().waiting);
        waiting.into_iter().for_each(Waker::wake);
    }

    fn wake_task(&self) {
        let waker = {
            let mut state = self.state.lock();
            state.news += 1;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    // The owner's side

    /// To be held while the proposal of an intent or a job is under way and until it is registered: what turns up meanwhile is not taken for something left behind.
    pub fn starting(self: &Arc<Self>) -> Starting {
        self.state.lock().starting += 1;
        Starting(self.clone())
    }

    /// A statement of this process stands for the intent until the guard is dropped.
    pub fn own(self: &Arc<Self>, number: u64) -> Own {
        self.state.lock().own.insert(number, BTreeSet::new());
        Own { intents: self.clone(), what: Owned::Intent(number) }
    }

    /// The same for a job.
    pub fn own_job(self: &Arc<Self>, job: JobId) -> Own {
        self.state.lock().own_jobs.insert(job, BTreeMap::new());
        Own { intents: self.clone(), what: Owned::Job(job) }
    }

    /// Resolves when all of `processes()`, asked again and again, have locked the intent's tables. An intent that is gone from the group is never locked: `false`.
    pub async fn wait_locked(
        &self,
        runtime: &dyn Runtime,
        intent: u64,
        processes: impl FnMut() -> Vec<ProcessId>,
    ) -> bool {
        let locked = |state: &State, processes: &[ProcessId]| {
            if !state.intents.contains_key(&intent) {
                return Some(false);
            }
            let locked = &state.own[&intent];
            processes.iter().all(|p| locked.contains(p)).then_some(true)
        };
        self.wait(runtime, processes, locked).await
    }

    /// Resolves when all of `processes()` have filled the job's new indexes; an error: one of them has no memory for it, and has this limit.
    pub async fn wait_filled(
        &self,
        runtime: &dyn Runtime,
        job: JobId,
        processes: impl FnMut() -> Vec<ProcessId>,
    ) -> Result<(), u64> {
        let filled = |state: &State, processes: &[ProcessId]| {
            let said = &state.own_jobs[&job];
            if let Some(limit) = said.values().find_map(|full| *full) {
                return Some(Err(limit));
            }
            processes.iter().all(|p| said.contains_key(p)).then_some(Ok(()))
        };
        self.wait(runtime, processes, filled).await
    }

    async fn wait<R>(
        &self,
        runtime: &dyn Runtime,
        mut processes: impl FnMut() -> Vec<ProcessId>,
        done: impl Fn(&State, &[ProcessId]) -> Option<R>,
    ) -> R {
        loop {
            let mut sleep = runtime.sleep(LOOK);
            let waited = poll_fn(|cx| {
                let processes = processes();
                {
                    let mut state = self.state.lock();
                    if let Some(r) = done(&state, &processes) {
                        return Poll::Ready(Some(r));
                    }
                    state.waiting.push(cx.waker().clone());
                }
                sleep.as_mut().poll(cx).map(|()| None)
            })
            .await;
            if let Some(r) = waited {
                return r;
            }
        }
    }

    // The task

    /// Locks the tables of intents, tells their owners, and clears up, until there is nothing to do.
    async fn run(self: Arc<Self>, weak: &Weak<Node>, runtime: &Arc<dyn Runtime>) {
        let mut locking: BTreeMap<u64, BoxFuture<Held>> = BTreeMap::new();
        let mut chore: Option<BoxFuture<()>> = None;
        let mut filling: Option<BoxFuture<()>> = None;
        let mut tick = runtime.sleep(TELL);
        loop {
            let Some(node) = weak.upgrade().filter(|n| !n.stopping.load(Ordering::Relaxed)) else { break };
            let surroundings = node.cluster().map(|c| Surroundings::of(c));
            let seen;
            let next = {
                let mut state = self.state.lock();
                seen = state.news;
                if state.intents.is_empty() && !state.jobs && chore.is_none() {
                    state.running = false;
                    return;
                }
                // A lock that is no longer wanted is not waited for.
                locking.retain(|n, _| state.intents.contains_key(n));
                for (&number, here) in state.intents.iter().filter(|(_, h)| h.held.is_none()) {
                    let lock = || -> BoxFuture<Held> { Box::pin(lock(runtime.clone(), here.tables.clone())) };
                    locking.entry(number).or_insert_with(lock);
                }
                surroundings.filter(|_| chore.is_none()).and_then(|s| s.next(&state))
            };
            if let (Some(command), Some(cluster)) = (next, node.cluster()) {
                chore = Some(upkeep::propose(cluster, command));
            }
            if filling.is_none() && self.fills.has_work() {
                let (own, weak) = (self.clone(), weak.clone());
                filling = Some(Box::pin(Fills::run(own, weak)));
            }
            drop(node);
            let mut work = Work { locking: &mut locking, chore: &mut chore, filling: &mut filling, tick: &mut tick };
            let ticked = poll_fn(|cx| self.poll_work(cx, &mut work, seen, weak)).await;
            if ticked {
                tick = runtime.sleep(TELL);
                self.tell_all(weak);
            }
        }
        self.state.lock().running = false;
    }

    /// Ready when there is something new (`false`) or it is time to tell (`true`).
    fn poll_work(&self, cx: &mut Context<'_>, work: &mut Work<'_>, seen: u64, weak: &Weak<Node>) -> Poll<bool> {
        {
            let mut state = self.state.lock();
            if state.news > seen {
                return Poll::Ready(false);
            }
            state.waker = Some(cx.waker().clone());
        }
        let mut done = Vec::new();
        for (&number, lock) in work.locking.iter_mut() {
            if let Poll::Ready(held) = lock.as_mut().poll(cx) {
                done.push((number, held));
            }
        }
        for (number, held) in done {
            work.locking.remove(&number);
            let owner = {
                let mut state = self.state.lock();
                // If the intent has ended in the meantime the locks go with the return.
                state.intents.get_mut(&number).map(|here| {
                    here.held = Some(held);
                    here.owner
                })
            };
            if let (Some(owner), Some(node)) = (owner, weak.upgrade())
                && let Some(cluster) = node.cluster()
            {
                self.tell(cluster, number, owner);
            }
        }
        if is_ready(work.chore, cx) {
            // The next one comes with the next tick or news, so that nothing turns in circles while the group cannot be reached.
            *work.chore = None;
        }
        if is_ready(work.filling, cx) {
            *work.filling = None;
            if let Some(node) = weak.upgrade()
                && let Some(cluster) = node.cluster()
            {
                self.tell_filled(cluster);
            }
        }
        work.tick.as_mut().poll(cx).map(|()| true)
    }

    fn tell_all(&self, weak: &Weak<Node>) {
        let Some(node) = weak.upgrade() else { return };
        let Some(cluster) = node.cluster() else { return };
        let held: Vec<_> = {
            let state = self.state.lock();
            state.intents.iter().filter(|(_, h)| h.held.is_some()).map(|(n, h)| (*n, h.owner)).collect()
        };
        held.into_iter().for_each(|(number, owner)| self.tell(cluster, number, owner));
        self.tell_filled(cluster);
    }
}

/// What the task is at.
struct Work<'a> {
    locking: &'a mut BTreeMap<u64, BoxFuture<Held>>,
    /// A proposal that ends what was left behind.
    chore: &'a mut Option<BoxFuture<()>>,
    filling: &'a mut Option<BoxFuture<()>>,
    tick: &'a mut BoxFuture<()>,
}

fn is_ready(future: &mut Option<BoxFuture<()>>, cx: &mut Context<'_>) -> bool {
    future.as_mut().is_some_and(|f| f.as_mut().poll(cx).is_ready())
}

/// Locks all tables, in their order, if nobody uses any of them.
fn lock_now(tables: &[(Arc<TableInfo>, Way)], taken: &mut Held) -> Option<Held> {
    let mut held = Held::default();
    for (table, way) in tables {
        let was_taken = if *way == Way::Lock(Mode::Alone) { taken.take(table.schema.id) } else { None };
        if let Some(locked) = was_taken {
            held.0.push(locked);
            continue;
        }
        if !table.shared.lock.try_take(*way) {
            return None;
        }
        held.0.push((table.clone(), *way));
    }
    Some(held)
}

async fn lock(runtime: Arc<dyn Runtime>, tables: Vec<(Arc<TableInfo>, Way)>) -> Held {
    let mut held = Held::default();
    for (table, way) in tables {
        while table.shared.lock.take(way, &*runtime, ATTEMPT).await.is_err() {}
        held.0.push((table, way));
    }
    held
}

/// See [`Intents::starting`].
pub struct Starting(Arc<Intents>);

impl Drop for Starting {
    fn drop(&mut self) {
        self.0.state.lock().starting -= 1;
        self.0.wake_task();
    }
}

enum Owned {
    Intent(u64),
    Job(JobId),
}

/// See [`Intents::own`].
pub struct Own {
    intents: Arc<Intents>,
    what: Owned,
}

impl Drop for Own {
    fn drop(&mut self) {
        {
            let mut state = self.intents.state.lock();
            match self.what {
                Owned::Intent(number) => drop(state.own.remove(&number)),
                Owned::Job(job) => drop(state.own_jobs.remove(&job)),
            }
        }
        // If it is still in the group it is ended now.
        self.intents.wake_task();
    }
}
