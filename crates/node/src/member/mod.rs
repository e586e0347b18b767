//! A node as a member of a cluster: what connects the pure blocks (streams, transactions, leases) with partitions, log, network and manage group.
//!
//! | file | what |
//! |---|---|
//! | [`slot`] | a stream's blocks, under a lock of their own |
//! | [`group_rows`], [`rows`], `effects` | what a stream says, brought to the rows of the partitions of its group, each under its guard |
//! | [`commit`], `alone` | the commit of a transaction, over several groups and in one; take-over of what others left |
//! | `answering` | what other nodes ask |
//! | `leading` | heartbeats, the lease; the manage leader's work |
//! | `replica_reads` | snapshot reads on this node's own replica |
//! | [`comparing`] | digests of rows, compared between replicas |
//! | `cutting`, `pacing` | cuts over the whole cluster, where memory is what counts; commits that wait for them |
//! | `times` | snapshot times, the oldest snapshot |
//! | `flushing` | the redo log's durability, told to slots |
//! | [`catalog`] | tables as the group has decided; tables locked for DDL of any node |
//! | `opening` | a process takes its place |
//! | [`network`], [`signal`], `peers` | messages, questions and answers |
//! | [`hooks`] | what the simulator watches and can switch off |
//! | [`report`], [`event_log`] | what a node tells of itself; what has happened |
//! | `room` | memory that runs out on one node of several |
//! | `orphaned` | memory of groups that are others' now |
//! | `statistics` | how many rows tables have, over all nodes |
//! | `placement` | who leads what, for clients |
//! | [`dump`] | rows as a replica has them, for checkers |
//! | `tasks`, `events` | small tools: many tasks on a thread, waiting for a change |
//!
//! *Who may answer.* A process answers as primary of a partition only in the view that its group's slot serves, and
//! only while its lease holds; both are looked at after the work and before the answer ([`Cluster::may_serve`]).
//!
//! *The end of a process.* When the group has taken a process for gone (its lease had ended), that process is over, even if it still runs: it hears of it, stops serving, and must be started anew
//! ([`Cluster::expelled`]), in the same operating system process or in another.

mod alone;
mod answering;
pub mod catalog;
pub mod chunks;
pub mod commit;
pub mod comparing;
pub mod counters;
mod cutting;
pub mod dump;
mod effects;
pub mod event_log;
pub mod events;
mod flushing;
pub mod group_rows;
pub mod hooks;
mod leading;
pub mod network;
mod opening;
mod orphaned;
pub mod overview;
mod pacing;
mod peers;
mod placement;
pub mod processes;
mod replica_reads;
pub mod report;
pub(crate) mod room;
pub mod rows;
pub mod signal;
pub mod slot;
mod statistics;
mod tasks;
mod times;
pub mod written;

pub use opening::{Identity, MemberOptions};

use crate::error::NodeError;
use crate::node::Node;
use crate::ops::wire::{Failure, OpAnswer};
use crate::runtime::{BoxFuture, Runtime};
use catalog::CatalogState;
use cutting::Cuts;
use event_log::Level;
use events::Event;
use flushing::Flushing;
use group_rows::GroupRows;
use hooks::Hooks;
use leading::Leading;
use network::{Network, PeerError};
use pacing::Pacing;
use parking_lot::{Mutex, RwLock};
use peers::Questions;
use rauk_cluster::replica::Contents;
use rauk_kernel::{Horizon, Partition};
use rauk_log::Lsn;
use rauk_manage::consensus::{Consensus, ProposeError};
use rauk_manage::group::{Answer, Group, GroupCommand, Life, Origin, RoleKind};
use rauk_types::{GroupId, Layout, Member, NodeId, ProcessId, Timestamp, TxnId, View};
use rows::RowQueue;
use rustc_hash::FxHashSet;
use signal::{Envelope, Exchange, Signal};
use slot::{Action, Context, Happening, Slot};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tasks::Tasks;
use times::Times;

/// How often slots are told that time has passed.
const TICK: Duration = Duration::from_millis(10);
/// A proposal to the manage group is given up after this.
const PROPOSE: Duration = Duration::from_secs(5);

/// A process that ends does not wait longer for the group to hear of it.
const LEAVE: Duration = Duration::from_secs(2);

/// A process is asked again whether it has followed the group.
const FOLLOW: Duration = Duration::from_millis(500);

/// Bytes of changes in one entry of a stream. An entry travels in one message: room is left for what goes with it (an entry with participants; a slice of a copy that was nearly full before its last row came).
pub const LONGEST_ENTRY: usize = LONGEST_MESSAGE - (1 << 20);
/// Bytes of one message between nodes.
const LONGEST_MESSAGE: usize = rauk_wire::MAX_PAYLOAD;

/// Where a group is led.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub primary: Member,
    pub view: View,
}

/// What this process is in the cluster. [`crate::node::Node::cluster`] has it; a node that is alone has none.
pub struct Cluster {
    me: Member,
    id: [u8; 16],
    own: Weak<Cluster>,
    node: Weak<Node>,
    runtime: Arc<dyn Runtime>,
    network: Arc<dyn Network>,
    consensus: Arc<dyn Consensus>,
    pub hooks: Hooks,
    layout: Layout,
    /// By group.
    slots: Box<[Slot]>,
    /// What the streams have said to the rows, by partition.
    rows: Box<[RowQueue]>,
    /// As applied here.
    group: RwLock<Arc<Group>>,
    /// Index of the group state that tables and partitions have followed.
    followed: AtomicU64,
    /// Of it: the index of its last change of the catalog.
    followed_catalog: AtomicU64,
    /// See [`Cluster::placement_version`].
    placement: AtomicU32,
    catalog: Arc<CatalogState>,
    /// States of the group that tables and partitions have not followed yet.
    following: Mutex<VecDeque<Arc<Group>>>,
    /// The group's state, or what has been followed, has changed.
    changed: Event,
    questions: Questions,
    leading: Leading,
    pub times: Times,
    flushing: Flushing,
    pub cuts: Cuts,
    pacing: Pacing,
    statistics: statistics::Statistics,
    comparing: comparing::Comparing,
    rooms: room::Rooms,
    pub tasks: Arc<Tasks>,
    /// Leases and snapshot times, on a thread of their own: however much `tasks` has to do, a process that lives is not taken for gone.
    beats: Arc<Tasks>,
    /// Transactions that are being decided by this process, as coordinator or by take-over.
    closing: Mutex<FxHashSet<TxnId>>,
    /// Transactions that the participants named may forget; sent together.
    forgets: Mutex<BTreeMap<GroupId, Vec<TxnId>>>,
    /// Number of the next proposal.
    proposals: AtomicU64,
    outgoing: Mutex<Vec<(GroupId, Action)>>,
    /// Something was left in `outgoing` by a thread that does not look there itself.
    courier: Event,
    expelled: AtomicBool,
    /// It ends because its log lacks what its node has acknowledged.
    is_lacking: AtomicBool,
    closed: AtomicBool,
    /// What is acknowledged is in the memory of all in-sync replicas; the disk follows.
    replicated: bool,
}

impl Cluster {
    pub fn me(&self) -> Member {
        self.me
    }

    /// What a test watches and switches off.
    pub fn hooks(&self) -> &Hooks {
        &self.hooks
    }

    /// What this process has done for the catalog: its intents, and the numbers in hand.
    pub fn catalog_state(&self) -> &Arc<CatalogState> {
        &self.catalog
    }

    /// The manage group's state as applied here.
    pub fn group(&self) -> Arc<Group> {
        self.group.read().clone()
    }

    /// Index of the last state that this process has followed, tables and partitions included.
    pub fn index(&self) -> u64 {
        self.followed.load(Ordering::Acquire)
    }

    /// Resolves when [`Cluster::index`] is `index` or more (`false`: not within `timeout`).
    pub async fn wait_index(&self, index: u64, timeout: Duration) -> bool {
        if self.index() >= index {
            return true;
        }
        let end = self.runtime.now() + timeout;
        loop {
            let number = self.changed.number();
            if self.index() >= index {
                return true;
            }
            let left = end.saturating_sub(self.runtime.now());
            if left.is_zero() || self.is_closed() {
                return false;
            }
            self.timeout(left, self.changed.after(number)).await;
        }
    }

    /// Resolves when the group's state has changed since `number` (of [`Cluster::news`]) was read, or the time is over.
    pub async fn wait_news(&self, number: u64, timeout: Duration) {
        self.timeout(timeout, self.changed.after(number)).await;
    }

    pub fn news(&self) -> u64 {
        self.changed.number()
    }

    /// `None`: the time was over first.
    pub async fn timeout<T>(&self, timeout: Duration, future: impl Future<Output = T> + Send) -> Option<T> {
        let sleep = self.runtime.sleep(timeout);
        futures::pin_mut!(future);
        match futures::future::select(future, sleep).await {
            futures::future::Either::Left((value, _)) => Some(value),
            futures::future::Either::Right(_) => None,
        }
    }

    /// Which partitions there are, and their groups.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    #[inline]
    pub fn group_of(&self, partition: u16) -> GroupId {
        self.layout.group_of(partition)
    }

    /// Who leads a partition, as far as is known here. `None`: nobody at the moment.
    pub fn place(&self, partition: u16) -> Option<Place> {
        self.place_of(self.group_of(partition))
    }

    /// The same of a group.
    pub fn place_of(&self, group: GroupId) -> Option<Place> {
        let known = self.group.read();
        let state = known.replication_group(group)?;
        Some(Place { primary: state.primary?, view: state.view })
    }

    /// The view in which this process leads the partition, if it does and may answer now: asked before the work (under the partition's guard), and again after the work and before the answer (rule 15).
    #[inline]
    pub fn may_serve(&self, partition: u16) -> Option<View> {
        self.may_lead(self.group_of(partition))
    }

    /// The same of a group.
    #[inline]
    pub fn may_lead(&self, group: GroupId) -> Option<View> {
        let slot = self.slot(group);
        let view = slot.serving()?;
        if self.hooks.safeguards.lease && !self.leading.holds(self.runtime.now()) {
            return None;
        }
        // Last: between the looks this thread may have stood still while the view ended and the lease went on. What is named still has been all the time.
        slot.is_named(view).then_some(view)
    }

    /// The same before an answer is given, which the observer hears of.
    #[inline]
    pub fn may_answer(&self, partition: u16, view: View) -> bool {
        self.may_answer_for(self.group_of(partition), view)
    }

    /// The same for a group.
    #[inline]
    pub fn may_answer_for(&self, group: GroupId, view: View) -> bool {
        let may = self.may_lead(group).is_some_and(|now| now == view || !self.hooks.safeguards.view);
        if may && let Some(observer) = &self.hooks.observer {
            observer.answered(group, view);
        }
        may
    }

    /// Whether a process is up as far as the group says here.
    pub fn is_up(&self, process: ProcessId) -> bool {
        self.group.read().is_up(process)
    }

    /// The node that a process ran, or runs, on.
    pub fn node_of(&self, process: ProcessId) -> Option<NodeId> {
        let group = self.group.read();
        group.nodes.iter().find(|(_, state)| state.process == process).map(|(id, _)| *id)
    }

    /// Processes with data or sql role that are up, this one among them.
    pub fn processes(&self) -> Vec<Member> {
        let group = self.group.read();
        let works = |roles: &std::collections::BTreeSet<RoleKind>| {
            roles.contains(&RoleKind::Data) || roles.contains(&RoleKind::Sql)
        };
        let up = group.nodes.iter().filter(|(_, n)| n.life == Life::Up && works(&n.roles));
        up.map(|(id, n)| Member { node: *id, process: n.process }).collect()
    }

    /// Asks a process and waits for its answer. A lost question or answer ends in [`PeerError::TimedOut`]; a process that is known to be gone, in [`PeerError::Gone`], at once.
    pub fn request(&self, to: Member, signal: Signal, timeout: Duration) -> BoxFuture<Result<Signal, PeerError>> {
        let cluster = self.own.upgrade();
        Box::pin(async move {
            let Some(cluster) = cluster else { return Err(PeerError::Gone(to.node.0)) };
            if !cluster.is_up(to.process) {
                return Err(PeerError::Gone(to.node.0));
            }
            let (number, answer) = cluster.questions.open(to);
            let _close = CloseQuestion(&cluster.questions, number);
            cluster.post(to, Exchange::Request(number), signal);
            match cluster.timeout(timeout, answer).await {
                Some(Ok(answer)) => answer,
                Some(Err(_)) | None => Err(PeerError::TimedOut(to.node.0)),
            }
        })
    }

    /// Tells a process something; it may be lost, late, doubled, reordered.
    pub fn tell(&self, to: Member, signal: Signal) {
        self.post(to, Exchange::OneWay, signal);
    }

    fn post(&self, to: Member, exchange: Exchange, signal: Signal) {
        // What a process says after its end its disk need not have (`Database::fence`).
        if self.is_closed() {
            return;
        }
        let catalog = self.group.read().catalog_index;
        let mut envelope = Envelope { cluster: self.id, from: self.me, to, catalog, exchange, signal };
        if to == self.me {
            // Not on this stack: an answer may bring the next question.
            if let Some(node) = self.node.upgrade() {
                let tasks = if envelope.signal.is_beat() { &self.beats } else { &self.tasks };
                tasks.spawn_later(async move { answering::receive(&node, envelope) });
            }
            return;
        }
        let mut message = envelope.encode();
        if message.len() > LONGEST_MESSAGE {
            let (bytes, limit) = (message.len() as u64, LONGEST_MESSAGE as u64);
            match exchange {
                Exchange::Request(number) => return self.questions.refuse(number, PeerError::TooLong { bytes, limit }),
                Exchange::Answer(_) => {
                    envelope.signal = Signal::OpDone(Box::new(OpAnswer::failed(Failure::TooLarge { bytes, limit })));
                    message = envelope.encode();
                }
                // What replicas say to each other is bounded where it is made.
                Exchange::OneWay => tracing::error!(node = to.node.0, bytes, limit, "a message is too long to be sent"),
            }
        }
        match envelope.signal.is_beat() {
            true => self.network.send_urgent(to.node, message),
            false => self.network.send(to.node, message),
        }
    }

    /// Resolves when something was decided in the partition here since the call began (the caller looks again).
    pub async fn wait_decided(&self, partition: u16, txn: TxnId) {
        let _ = txn;
        let decided = &self.slot_of(partition).decided;
        let number = decided.number();
        // A decision between the caller's look and this call is met by the time limit.
        self.timeout(Duration::from_millis(5), decided.after(number)).await;
    }

    /// Numbers of a counter (AUTO_INCREMENT, hidden keys), out of a block that this process has reserved: the first of `count`.
    pub fn reserve(&self, counter: rauk_types::TableId, count: u64) -> BoxFuture<Result<u64, NodeError>> {
        let cluster = self.own.upgrade();
        Box::pin(async move {
            let cluster = cluster.ok_or(NodeError::ShuttingDown)?;
            let propose = |command| cluster.propose_for_numbers(command);
            cluster.catalog.blocks.reserve(counter, count, &propose).await
        })
    }

    /// Proposes a command to the manage group; resolves when it has been applied here, tables and partitions included. What must be done once is done once, whatever is lost on the way.
    /// [`NodeError::Unavailable`]: nothing has happened and nothing will; [`NodeError::UnknownOutcome`]: it has, or will, or not.
    pub fn propose(&self, command: GroupCommand) -> BoxFuture<Result<Answer, NodeError>> {
        let number = self.proposals.fetch_add(1, Ordering::Relaxed);
        let catalog = matches!(command, GroupCommand::Catalog { .. });
        let command = command.once(Origin { process: self.me.process, number });
        let cluster = self.own.upgrade();
        Box::pin(async move {
            let cluster = cluster.ok_or(NodeError::ShuttingDown)?;
            let answer = cluster.consensus.propose(command, PROPOSE).await;
            let answer = answer.map_err(not_answered)?;
            let group = cluster.consensus.group();
            if answer == Answer::Void && !group.is_up(cluster.me.process) {
                return Err(NodeError::Unavailable("the manage group has taken this process for gone".into()));
            }
            let index = group.index;
            if !cluster.wait_index(index, PROPOSE).await {
                let why = "it was done, but this node does not follow the manage group".into();
                return Err(NodeError::UnknownOutcome(why));
            }
            if catalog {
                cluster.wait_everywhere(index).await;
            }
            Ok(answer)
        })
    }

    /// The same for commands by which only numbers are lost if they are carried out too late: whoever needs them has changed nothing yet.
    pub fn propose_for_numbers(&self, command: GroupCommand) -> BoxFuture<Result<Answer, NodeError>> {
        let proposed = self.propose(command);
        Box::pin(async move { proposed.await.map_err(nothing_seen) })
    }

    /// Waits until every process that is up has followed the group to `index`: whoever made a table here finds it there. A process that does not answer is waited for until it is taken for gone, or for [`PROPOSE`].
    async fn wait_everywhere(&self, index: u64) {
        let end = self.runtime.now() + PROPOSE;
        let others = self.processes().into_iter().filter(|process| *process != self.me);
        let follow = |process: Member| async move {
            while self.is_up(process.process) && self.runtime.now() < end && !self.is_closed() {
                if let Ok(Signal::Done) = self.request(process, Signal::Follow { index }, FOLLOW).await {
                    return;
                }
            }
        };
        futures::future::join_all(others.map(follow)).await;
    }

    /// A snapshot time drawn from the timestamp service after the call. Registered as in use on this process until it is released with [`Cluster::release_snapshot`].
    pub fn draw_snapshot(&self) -> BoxFuture<Result<Timestamp, NodeError>> {
        let cluster = self.own.upgrade();
        Box::pin(async move {
            let cluster = cluster.ok_or(NodeError::ShuttingDown)?;
            cluster.times.snapshot(&cluster).await
        })
    }

    pub fn release_snapshot(&self, time: Timestamp) {
        self.times.release(time);
    }

    /// Whether this process's lease holds.
    pub fn has_lease(&self) -> bool {
        self.leading.holds(self.runtime.now())
    }

    /// This process has been taken for gone and must be started anew.
    pub fn expelled(&self) -> bool {
        self.expelled.load(Ordering::Acquire)
    }

    /// Whether this process's part in the cluster has ended.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Tells the group that this process goes, so that others take its partitions over at once and wait for no lease. It serves nothing from here on; its replicas go on until [`Cluster::close`].
    pub async fn leave(&self) {
        // Before it is said: nobody waits for this lease then.
        self.end_service();
        self.expelled.store(true, Ordering::Release);
        let command = GroupCommand::Down { member: self.me };
        if let Err(error) = self.consensus.propose(command, LEAVE).await {
            tracing::warn!(%error, "the manage group was not told that this process ends; the others notice when its lease is over");
        }
    }

    /// No lease holds any more, whatever is still granted.
    fn end_service(&self) {
        self.leading.change_lease(|| 0, rauk_manage::leader::Lease::on_refused);
        self.slots.iter().for_each(Slot::stop_serving);
    }

    /// Whether a time can have been given out in the cluster. One that is ahead of what this process has heard of the group is waited for, a moment only: a peer whose numbers are broken
    /// must not put the times of commits out of everybody's sight.
    pub async fn knows_time(&self, time: Timestamp) -> bool {
        let is_known = || time.0 <= self.group.read().timestamp_bound;
        let end = self.runtime.now() + FOLLOW;
        loop {
            let number = self.changed.number();
            if is_known() {
                return true;
            }
            let left = end.saturating_sub(self.runtime.now());
            if left.is_zero() || self.is_closed() {
                return false;
            }
            self.timeout(left, self.changed.after(number)).await;
        }
    }

    /// The end: nothing is served or answered any more.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.end_service();
        self.tasks.close();
        self.beats.close();
        // Transactions here need not look for a primary until their patience ends.
        if let Some(node) = self.node.upgrade() {
            node.stopping.store(true, Ordering::SeqCst);
        }
        self.courier.fire();
        self.changed.fire();
        self.flushing.close();
    }

    // Slots

    pub fn slot(&self, group: GroupId) -> &Slot {
        &self.slots[usize::from(group.0)]
    }

    /// That of the partition's group.
    pub fn slot_of(&self, partition: u16) -> &Slot {
        self.slot(self.group_of(partition))
    }

    /// No snapshot in the cluster is older; nobody waits for the disk to see what is stable.
    pub fn horizon(&self) -> Horizon {
        Horizon { oldest_snapshot: self.times.oldest_in_cluster(), durable: Timestamp::MAX }
    }

    /// Brings something to a slot.
    fn poke(&self, group: GroupId, happening: Happening) {
        self.slot(group).queue.lock().push_back(happening);
        self.work_off(group);
    }

    /// Works a slot's queue off.
    fn work_off(&self, group: GroupId) {
        let Some(node) = self.node.upgrade() else { return };
        self.at_slot(&node, group, |_, _, _| ());
    }

    /// The same, and another thread works: for the control plane's, which must not stand behind what a slot has to do
    /// (take a large transaction back, say).
    fn poke_later(&self, group: GroupId, happening: Happening) {
        self.slot(group).queue.lock().push_back(happening);
        let cluster = self.own.clone();
        self.tasks.spawn_later(async move {
            if let Some(cluster) = cluster.upgrade() {
                cluster.work_off(group);
            }
        });
    }

    /// Works a slot's queue off and runs `f` with its state, under its lock. What is to be done then is left in
    /// `outgoing`: `true` if there is something.
    fn enter_slot<R>(
        &self,
        node: &Node,
        group: GroupId,
        f: impl FnOnce(&Slot, &mut slot::State, &mut Context<'_>) -> R,
    ) -> (R, bool) {
        let mut actions = Vec::new();
        let announce = |partition: u16| {
            if self.hooks.safeguards.adopted {
                node.partitions[usize::from(partition)].announce();
            }
        };
        let mut cx = Context {
            now: self.runtime.now(),
            rows: &GroupRows { layout: self.layout, group, queues: &self.rows, announce: &announce },
            log: &node.log,
            actions: &mut actions,
            safeguards: self.hooks.safeguards,
            replicated: self.replicated,
            budget: &node.budget,
            rooms: &self.rooms,
            compare_every: node.config.compare_every,
            longest_state: LONGEST_ENTRY,
        };
        let r = self.slot(group).enter(&mut cx, f);
        let has_actions = !actions.is_empty();
        if has_actions {
            self.outgoing.lock().extend(actions.into_iter().map(|a| (group, a)));
        }
        (r, has_actions)
    }

    /// Runs `f` with a slot's state, behind what has happened to it, and does what follows. Not under a guard.
    pub fn at_slot<R>(
        &self,
        node: &Node,
        group: GroupId,
        f: impl FnOnce(&Slot, &mut slot::State, &mut Context<'_>) -> R,
    ) -> R {
        let (r, has_actions) = self.enter_slot(node, group, f);
        if has_actions {
            self.send_outgoing();
        }
        r
    }

    /// Under the guard, before any other work: brings what the stream has said to the rows.
    pub(super) fn take_in(&self, node: &Node, partition: u16, p: &mut Partition) {
        let rows = &self.rows[usize::from(partition)];
        let mut leaves = false;
        loop {
            let carried = rows.carry_out(p, self.horizon());
            if carried.is_nothing() {
                break;
            }
            let (_, has_actions) = self.enter_slot(node, self.group_of(partition), |slot, s, cx| {
                carried.slices.into_iter().for_each(|slice| slot.on_slice(s, cx, partition, slice));
                for (entry, digests) in carried.digests {
                    slot.on_digests(s, cx, partition, entry, digests);
                }
                if let Some(view) = carried.serves {
                    slot.begin_service(s, cx, partition, view);
                }
                if let Some(what) = carried.failed {
                    slot.stop(s, cx, &what);
                }
            });
            leaves |= has_actions;
        }
        if leaves {
            // This thread may be one that does not look there.
            self.courier.fire();
        }
    }

    /// The partition's rows have something to take in: whoever enters does so.
    fn enter_rows(&self, partition: u16) {
        let Some(node) = self.node.upgrade() else { return };
        // A test may have nobody else see to it.
        node.partitions[usize::from(partition)].announce();
        node.detach(partition, |_| ());
    }

    /// Does what has left the locks of slots.
    fn send_outgoing(&self) {
        loop {
            let actions = std::mem::take(&mut *self.outgoing.lock());
            if actions.is_empty() {
                return;
            }
            let mut left = actions.into_iter();
            while let Some(next) = left.next() {
                if let Some(observer) = &self.hooks.observer
                    && observer.leaves_actions()
                {
                    let mut outgoing = self.outgoing.lock();
                    let later = std::mem::take(&mut *outgoing);
                    outgoing.extend(std::iter::once(next).chain(left).chain(later));
                    self.courier.fire();
                    return;
                }
                let (group, action) = next;
                self.act(group, action);
            }
        }
    }

    fn act(&self, group: GroupId, action: Action) {
        match action {
            Action::Send { to, message } => self.tell(to, Signal::Replica { group, message }),
            Action::Rows { partition } => self.enter_rows(partition),
            Action::Digests { partition, entry, digests } => self.tell_digests(partition, entry, digests),
            Action::Flush(lsn) => self.flushing.want(lsn),
            Action::FlushSoon(lsn) => self.flushing.want_soon(lsn),
            Action::Committed(time) => self.cuts.want(time),
            Action::Join { version, member } => self.suggest(GroupCommand::Join { group, version, member }),
            Action::Strike { version, member } => {
                tracing::warn!(
                    group = group.0,
                    node = member.node.0,
                    "asks to remove a replica from the in-sync set: it does not follow, or its rows are damaged"
                );
                self.suggest(GroupCommand::Strike { group, version, member });
            }
            Action::Stopped => {
                if let Some(node) = self.node.upgrade() {
                    node.registry.stopped_replicas.fetch_add(1, Ordering::Relaxed);
                }
            }
            Action::TellStopped { to, view, copy } => self.tell_stopped(group, to, view, copy),
            Action::Draw { view } => self.draw_for_view(group, view),
            Action::Fatal(reason) => {
                self.close();
                if let Some(node) = self.node.upgrade() {
                    node.fatal(&reason);
                }
            }
            Action::Lacking(what) => self.end_lacking(what),
            Action::Note(level, what) => {
                let (node, number) = (self.me.node.0, group.0);
                match level {
                    Level::Info => tracing::info!(node, group = number, "{what}"),
                    Level::Warning => tracing::warn!(node, group = number, "{what}"),
                    Level::Error => tracing::error!(node, group = number, "{what}"),
                }
                if let Some(node) = self.node.upgrade() {
                    node.event_log.note(self.me.node, level, format!("group {number}: {what}"));
                }
            }
        }
    }

    /// This process was to lead, and an in-sync replica has what it lacks (rule 38). It ends, once its directory says so: the next process registers as doubtful (rule 37), leads after the others, and gets from them what it lacks.
    fn end_lacking(&self, what: String) {
        let Some(node) = self.node.upgrade() else { return };
        if self.is_lacking.swap(true, Ordering::AcqRel) {
            return;
        }
        tracing::error!(node = self.me.node.0, "{what}");
        node.event_log.note(self.me.node, Level::Error, what.clone());
        if self.replicated {
            // Where memory counts, no process leads with what its directory has: without the note of a fenced process the next one keeps no place.
            self.close();
            return node
                .fatal(&format!("{what}; start this node again: it gets what it lacks from the other replicas"));
        }
        self.tasks.spawn_later(async move {
            let Some(cluster) = node.cluster() else { return };
            match node.superblocks.note_doubt(what) {
                Ok(()) => cluster.leave().await,
                Err(error) => {
                    cluster.close();
                    node.fatal(&error.to_string());
                }
            }
        });
    }

    /// Proposes without waiting: whoever wants it says so again if it does not come.
    fn suggest(&self, command: GroupCommand) {
        let proposal = self.consensus.propose(command, Duration::from_secs(1));
        self.tasks.spawn_later(async move {
            let _ = proposal.await;
        });
    }

    /// A new primary's first time (rule 13).
    fn draw_for_view(&self, group: GroupId, view: View) {
        let Some(node) = self.node.upgrade() else { return };
        self.tasks.spawn_later(async move {
            let cluster = node.cluster().expect("it is a member");
            loop {
                if cluster.is_closed() || cluster.place_of(group).is_none_or(|p| p.view != view) {
                    return;
                }
                if let Ok(time) = cluster.times.draw(cluster).await {
                    cluster.poke(group, Happening::Drawn { view, time });
                    return;
                }
                cluster.runtime.sleep(TICK).await;
            }
        });
    }

    /// The redo log is on disk up to here.
    fn on_durable(&self, lsn: Lsn) {
        for slot in &self.slots {
            if slot.undurable.load(Ordering::SeqCst) <= lsn.0 {
                self.poke(slot.group, Happening::Durable(lsn));
            }
        }
    }

    /// Writes an anchor for each group: what its stream and transactions are, taken under its lock. Gives the
    /// position where a restart that has the rows of a checkpoint which begins now must begin to
    /// read: before the first of the anchors, and not behind the `Reset` of a copy that is under way (its slices are in no checkpoint).
    pub fn write_anchors(&self) -> BoxFuture<Result<Lsn, NodeError>> {
        let node = self.node.upgrade();
        Box::pin(async move {
            let node = node.ok_or(NodeError::ShuttingDown)?;
            let cluster = node.cluster().expect("it is a member");
            let mut start = node.log.end_lsn();
            for slot in &cluster.slots {
                let copied_from = cluster.at_slot(&node, slot.group, |slot, state, cx| slot.write_anchor(state, cx))?;
                start = copied_from.map_or(start, |at| start.min(at));
            }
            Ok(start)
        })
    }

    /// Gives back what transactions have in a partition here that are in no entry of its stream.
    pub fn abort_open(&self, node: &Arc<Node>, partition: u16, txns: Vec<TxnId>) {
        let weak = Arc::downgrade(node);
        node.detach(partition, move |p| {
            if let Some(node) = weak.upgrade()
                && let Some(cluster) = node.cluster()
            {
                cluster.rows[usize::from(partition)].abort_open(p, &txns);
            }
        });
    }

    /// The same in all these partitions.
    pub(super) fn abort_parts(&self, node: &Arc<Node>, parts: &[signal::Part], txn: TxnId) {
        parts.iter().for_each(|part| self.abort_open(node, part.partition.0, vec![txn]));
    }

    pub fn is_closing(&self, txn: TxnId) -> bool {
        self.closing.lock().contains(&txn)
    }

    /// Whether a process is up, or may be without this process knowing it yet.
    pub fn may_return(&self, process: ProcessId) -> bool {
        let group = self.group.read();
        group.is_up(process) || process.0 >= group.next_process
    }

    /// Whether all rows of a partition are here: no copy of it is under way or was cut off.
    pub fn is_whole(&self, partition: u16) -> bool {
        self.slot_of(partition).state.lock().replica.contents() == Contents::Whole
    }
}

/// What it means that a proposal has no answer.
fn not_answered(error: ProposeError) -> NodeError {
    match error {
        ProposeError::Unavailable(_) => NodeError::Unavailable(error.to_string()),
        ProposeError::TooLarge { bytes, limit } => NodeError::TooLarge { bytes, limit },
        ProposeError::Unknown(_) | ProposeError::Closed => NodeError::UnknownOutcome(error.to_string()),
    }
}

/// Of a command whose effect nobody sees: that it may come late is as if nothing had happened.
pub(crate) fn nothing_seen(error: NodeError) -> NodeError {
    match error {
        NodeError::UnknownOutcome(why) => NodeError::Unavailable(why),
        other => other,
    }
}

struct CloseQuestion<'a>(&'a Questions, u64);

impl Drop for CloseQuestion<'_> {
    fn drop(&mut self) {
        self.0.close(self.1);
    }
}
