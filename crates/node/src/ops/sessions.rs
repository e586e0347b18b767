//! Transactions of other nodes on partitions that are led here.
//!
//! A session begins with a transaction's first call that may leave something behind, and has what the node must know of it: its status word, the partitions it has touched, and the last
//! call with its answer. Calls of a transaction come one after the other and are numbered. One that comes twice gets the kept answer, or waits for it while it is being
//! made; one that comes late, after its successor, is not done; a successor ends the wait of one that still runs, since nobody waits for that any more.
//!
//! A session ends when its coordinator says so ([`Sessions::end`]), when the coordinator's process is down ([`Sessions::on_group`]), and when the coordinator, asked after it has been
//! silent for [`IDLE`], does not know the transaction. Its locks and writes go then, except in partitions where it is *prepared*: there the commit protocol decides
//! ([`Sessions::prepare`], [`Sessions::release`], [`Sessions::finished`]). In a partition whose view has changed they go as well ([`Sessions::on_view`]). Sessions that have ended are
//! remembered for [`REMEMBERED`]: a first call that the network has doubled and delayed does not begin them again. Of a
//! process whose sessions were forgotten it is known how new they were: a call that would commit at once
//! ([`crate::member::commit`]) is taken of newer transactions only ([`Sessions::may_have_ended`]).

use super::touches::Touches;
use super::wire::OpAnswer;
use crate::executor::Class;
use crate::node::Node;
use crate::transaction::Interrupt;
use parking_lot::Mutex;
use rauk_kernel::TxnRef;
use rauk_manage::group::Group;
use rauk_types::{Member, PartitionId, ProcessId, TxnId, View};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

/// After so long without a call the coordinator is asked whether the transaction still runs. The word that it is over goes one way and may be lost: its locks stand for so long then, and
/// a question for all idle transactions of a process costs next to nothing.
pub const IDLE: Duration = Duration::from_secs(1);
/// How long ended sessions are remembered, and how many at most.
const REMEMBERED: Duration = Duration::from_secs(60);
pub const MOST_REMEMBERED: usize = 200_000;

#[derive(Default)]
pub struct Sessions(Mutex<Table>);

#[derive(Default)]
struct Table {
    open: BTreeMap<TxnId, Arc<Session>>,
    ended: BTreeSet<TxnId>,
    /// When they ended, in order.
    ends: VecDeque<(Duration, TxnId)>,
    /// By process: the newest transaction that has ended and is not remembered.
    forgotten: FxHashMap<ProcessId, TxnId>,
}

/// A transaction of another node.
pub struct Session {
    pub txn: TxnRef,
    pub coordinator: Member,
    pub touches: Touches,
    /// Ends the wait of the call that runs.
    pub interrupt: Interrupt,
    calls: Mutex<Calls>,
}

#[derive(Default)]
struct Calls {
    running: bool,
    /// Number of the last call that has begun, and its answer.
    last: u32,
    /// Of the calls so far, the highest.
    statement: u32,
    answer: Option<OpAnswer>,
    used: Duration,
    waiting: Vec<Waker>,
}

/// What is to be done with a call.
#[derive(Debug, PartialEq)]
pub enum Turn {
    /// It is to be made, and ended with [`Session::done`].
    Go,
    Kept(Box<OpAnswer>),
    Late,
}

impl Session {
    /// Waits until the call may be made: calls of a transaction are made one at a time.
    /// Without `dedupe` every call is made, as often as it comes: for the simulator, which sees what goes wrong then.
    pub async fn turn(&self, sequence: u32, dedupe: bool) -> Turn {
        poll_fn(|cx| {
            let mut calls = self.calls.lock();
            if sequence < calls.last && dedupe {
                return Poll::Ready(Turn::Late);
            }
            if calls.running {
                if sequence > calls.last {
                    // Nobody waits for that one any more.
                    self.interrupt.kill();
                }
                calls.waiting.push(cx.waker().clone());
                return Poll::Pending;
            }
            if sequence == calls.last && dedupe {
                return Poll::Ready(calls.answer.clone().map_or(Turn::Late, |answer| Turn::Kept(Box::new(answer))));
            }
            *calls = Calls { running: true, last: sequence, answer: None, ..std::mem::take(&mut *calls) };
            self.interrupt.clear();
            Poll::Ready(Turn::Go)
        })
        .await
    }

    /// Whether a call may be of this statement of its transaction: their numbers do not go down, which what is undone by them rests on.
    pub fn is_next_statement(&self, statement: u32) -> bool {
        let mut calls = self.calls.lock();
        let is_next = statement >= calls.statement;
        calls.statement = calls.statement.max(statement);
        is_next
    }

    pub fn done(&self, answer: Option<OpAnswer>, now: Duration) {
        let mut calls = self.calls.lock();
        calls.running = false;
        calls.answer = answer;
        calls.used = now;
        let waiting = std::mem::take(&mut calls.waiting);
        drop(calls);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// KILL at the coordinator: ends this call if it still runs.
    pub fn kill(&self, sequence: u32) {
        let calls = self.calls.lock();
        if calls.running && calls.last == sequence {
            self.interrupt.kill();
        }
    }
}

impl Sessions {
    /// The transaction's session, begun if `begin`; `None`: it has ended, or has none.
    pub fn enter(&self, txn: TxnId, coordinator: Member, begin: bool, now: Duration) -> Option<Arc<Session>> {
        let mut table = self.0.lock();
        if let Some(session) = table.open.get(&txn) {
            return Some(session.clone());
        }
        if !begin || table.ended.contains(&txn) {
            return None;
        }
        let session = Arc::new(Session {
            txn: TxnRef::new(txn),
            coordinator,
            touches: Touches::default(),
            interrupt: Interrupt::default(),
            calls: Mutex::new(Calls { used: now, ..Calls::default() }),
        });
        table.open.insert(txn, session.clone());
        Some(session)
    }

    pub fn get(&self, txn: TxnId) -> Option<Arc<Session>> {
        self.0.lock().open.get(&txn).cloned()
    }

    fn all(&self) -> Vec<Arc<Session>> {
        self.0.lock().open.values().cloned().collect()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.lock().open.len()
    }

    /// The transaction is over, as far as it is not prepared: its locks and writes here go, and it does not begin again.
    pub fn end(&self, node: &Arc<Node>, txn: TxnId) {
        let Some(session) = self.remember(txn, node.runtime.now()) else { return };
        session.interrupt.kill();
        for partition in session.touches.end() {
            node.detach(partition, move |p| p.abort(txn));
        }
    }

    /// Notes that the transaction has ended; gives its session, which leaves the table unless it is prepared somewhere.
    pub fn remember(&self, txn: TxnId, now: Duration) -> Option<Arc<Session>> {
        let mut table = self.0.lock();
        if table.ended.insert(txn) {
            table.ends.push_back((now, txn));
        }
        while table.ends.len() > MOST_REMEMBERED
            || table.ends.front().is_some_and(|(since, _)| *since + REMEMBERED < now)
        {
            let Some((_, old)) = table.ends.pop_front() else { break };
            table.ended.remove(&old);
            let newest = table.forgotten.entry(old.process()).or_insert(old);
            *newest = old.max(*newest);
        }
        let session = table.open.get(&txn)?.clone();
        if !session.touches.list().iter().any(|t| t.prepared) {
            table.open.remove(&txn);
        }
        Some(session)
    }

    /// Whether the transaction has no session and may have had one that has ended, or has one that has ended: a call
    /// that is made once and for all may have been made then.
    pub fn may_have_ended(&self, txn: TxnId) -> bool {
        let table = self.0.lock();
        let is_old = || table.forgotten.get(&txn.process()).is_some_and(|newest| txn <= *newest);
        table.ended.contains(&txn) || !table.open.contains_key(&txn) && is_old()
    }

    /// The cluster's state has changed: transactions of processes that are down are over, and send nothing any more.
    pub fn on_group(&self, node: &Arc<Node>, group: &Group) {
        self.0.lock().forgotten.retain(|process, _| group.is_up(*process) || process.0 >= group.next_process);
        for session in self.all() {
            if !group.is_up(session.coordinator.process) {
                self.end(node, session.txn.id);
            }
        }
    }

    /// The partition is in this view from now on, led here or elsewhere: what unprepared transactions, of this node too, had there in an older one goes. Called when
    /// [`crate::member::Cluster::may_serve`] has ceased to give the old view.
    pub fn on_view(&self, node: &Arc<Node>, partition: PartitionId, view: View) {
        let PartitionId(partition) = partition;
        let mut lost: Vec<TxnId> = self
            .all()
            .into_iter()
            .filter(|session| session.touches.lose(partition, view))
            .map(|session| session.txn.id)
            .collect();
        self.drop_ended();
        lost.extend(node.registry.records().into_iter().filter(|r| r.1.touches.lose(partition, view)).map(|r| r.0));
        if lost.is_empty() {
            return;
        }
        node.detach(partition, move |p| lost.iter().for_each(|txn| p.abort(*txn)));
        // Whoever waits there looks again, and finds that it is led elsewhere or that its place in the queue is gone.
        node.waits.wake_partition(PartitionId(partition));
    }

    /// What was waited for in sessions that are over may have gone with a view.
    fn drop_ended(&self) {
        let mut table = self.0.lock();
        let Table { open, ended, .. } = &mut *table;
        open.retain(|txn, session| !ended.contains(txn) || !session.touches.list().is_empty());
    }

    /// For the commit protocol, which decides about the transaction in these partitions from now on. `None`: in one of
    /// them it has no locks in this view, or it is over: refuse.
    pub fn prepare(&self, txn: TxnId, partitions: &[u16], view: View) -> Option<TxnRef> {
        let table = self.0.lock();
        let session = table.open.get(&txn)?;
        session.touches.prepare(partitions, view).then(|| session.txn.clone())
    }

    /// For the commit protocol, where the transaction has only locks: whether they were noted in this view until now. The caller takes them away. The session goes on where else it has something.
    pub fn release(&self, node: &Arc<Node>, txn: TxnId, partition: PartitionId, view: View) -> bool {
        let Some(session) = self.get(txn) else { return false };
        let held = session.touches.list().iter().any(|t| t.partition == partition.0 && t.view == view && !t.prepared);
        if held {
            self.finished(node, txn, [partition.0]);
        }
        held
    }

    /// Nothing of the transaction is left in these partitions: it is decided there, or has given back the locks that
    /// were all it had.
    pub fn finished(&self, node: &Arc<Node>, txn: TxnId, partitions: impl IntoIterator<Item = u16>) {
        let Some(session) = self.get(txn) else { return };
        if session.touches.finish(partitions) {
            // What else it may have locked here is nobody's.
            self.end(node, txn);
        }
    }

    /// Sessions of which nothing was heard for long, by coordinator.
    pub fn idle(&self, now: Duration) -> BTreeMap<Member, Vec<TxnId>> {
        let mut idle: BTreeMap<Member, Vec<TxnId>> = BTreeMap::new();
        for session in self.all() {
            let calls = session.calls.lock();
            let touches = session.touches.list();
            // What is prepared everywhere it was is waited for by the commit protocol.
            let open = touches.is_empty() || touches.iter().any(|t| !t.prepared);
            if open && !calls.running && calls.used + IDLE < now {
                idle.entry(session.coordinator).or_default().push(session.txn.id);
            }
        }
        idle
    }

    /// The coordinator says that these still run.
    pub fn used(&self, txns: &[TxnId], now: Duration) {
        for txn in txns {
            if let Some(session) = self.get(*txn) {
                session.calls.lock().used = now;
            }
        }
    }

    /// Undoes the transaction's writes with this number and above in all partitions here.
    pub async fn undo(&self, node: &Node, session: &Session, number: u32) {
        let id = session.txn.id;
        for touch in session.touches.list().into_iter().filter(|t| !t.prepared) {
            node.on_partition(touch.partition, Class::Resolve, |p| p.rollback_to(id, number)).await;
        }
    }
}
