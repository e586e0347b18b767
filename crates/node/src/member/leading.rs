//! Heartbeats and the lease of this process; and the manage leader's work, on the process that leads.

use super::Cluster;
use super::events::Event;
use super::placement;
use super::signal::Signal;
use crate::node::Node;
use parking_lot::Mutex;
use rauk_manage::group::{Group, GroupCommand, Life, ReplicationGroup};
use rauk_manage::leader::{HEARTBEAT, Heard, LEASE, Leader, Lease};
use rauk_types::{GroupId, Member, NodeId, PartitionId, Timestamp};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often the leader looks at leases and placement.
const LEAD: Duration = Duration::from_millis(25);

#[derive(Default)]
pub struct Leading {
    lease: Mutex<Lease>,
    /// When the lease ends for what this process has heard of the group, in nanoseconds of its clock: looked at before every answer.
    lease_end: AtomicU64,
    /// The term in which this process leads the manage group, and its work.
    leader: Mutex<Option<(u64, Leader)>>,
    /// The oldest snapshot of each process, as its last heartbeat said, and when it came.
    oldest: Mutex<FxHashMap<Member, (Timestamp, Duration)>>,
    /// The manage leader has something to say before its next regular look.
    hurry: Event,
}

impl Leading {
    /// Whether this process's lease holds.
    #[inline]
    pub fn holds(&self, now: Duration) -> bool {
        (now.as_nanos() as u64) < self.lease_end.load(Ordering::Acquire)
    }

    /// A grant has come or was refused, or more is heard of the group.
    pub(super) fn change_lease(&self, heard: impl FnOnce() -> u64, change: impl FnOnce(&mut Lease)) {
        let mut lease = self.lease.lock();
        change(&mut lease);
        self.lease_end.store(lease.end(heard()).as_nanos() as u64, Ordering::Release);
    }
}

impl Cluster {
    /// Who leads the manage group, as far as is known here.
    pub(super) fn manage_leader(&self) -> Option<Member> {
        let node = self.consensus.leader()?;
        self.group.read().member(node)
    }

    /// The control plane's voters.
    pub(super) fn voters(&self) -> BTreeSet<NodeId> {
        self.consensus.voters()
    }

    /// Index of the last command whose assignments this process has taken in.
    pub(super) fn heard(&self) -> u64 {
        self.group.read().index
    }

    /// Asks for the lease, again and again.
    pub(super) async fn run_heartbeats(node: Weak<Node>) {
        loop {
            let Some(strong) = node.upgrade() else { return };
            let Some(cluster) = strong.cluster().cloned() else { return };
            if cluster.is_closed() {
                return;
            }
            cluster.beat();
            let runtime = strong.runtime.clone();
            drop(cluster);
            drop(strong);
            runtime.sleep(HEARTBEAT).await;
        }
    }

    /// Asks once, and says how far it has heard.
    fn beat(self: &Arc<Self>) {
        let Some(leader) = self.manage_leader() else { return };
        let beating = self.clone();
        // In a task of its own: a lost answer must not delay the next.
        self.beats.spawn_later(async move {
            let sent = beating.runtime.now();
            let oldest = beating.times.oldest_here();
            let signal = Signal::Heartbeat { index: beating.heard(), oldest, wanted: beating.cuts.wanted() };
            let answer = beating.request(leader, signal, LEASE).await;
            let Ok(Signal::Grant { granted, index, oldest, counter }) = answer else { return };
            if granted {
                beating.leading.change_lease(|| beating.heard(), |lease| lease.on_grant(sent, index));
                beating.times.on_oldest(oldest);
                beating.times.on_counter(counter);
            } else {
                beating.leading.change_lease(|| beating.heard(), Lease::on_refused);
            }
        });
    }

    /// A process asks for its lease.
    pub(super) async fn on_heartbeat(&self, from: Member, known: u64, oldest: Timestamp, wanted: Timestamp) -> Signal {
        let refused = Signal::NotHere;
        let arrived = self.runtime.now();
        let Some(term) = self.consensus.leading() else { return refused };
        // Rule 17: a majority has followed this leader after the request came.
        let Some(index) = self.consensus.confirm().await else { return refused };
        if self.consensus.leading() != Some(term) {
            return refused;
        }
        let group = self.group();
        if group.index < index {
            return refused;
        }
        let mut leader = self.leading.leader.lock();
        let leader = match &mut *leader {
            Some((of, leader)) if *of == term => leader,
            _ => return refused,
        };
        leader.on_confirmed(arrived);
        // What nobody can have seen is not listened to.
        if wanted.0 <= group.timestamp_bound {
            self.cuts.on_wanted(wanted);
        }
        let granted = match leader.on_heartbeat(arrived, from, &group) {
            Heard::Granted => true,
            Heard::Refused => false,
            Heard::NotNow => return refused,
        };
        if leader.on_known(from, known, &group) {
            self.leading.hurry.fire();
        }
        let counter = leader.drawn();
        let mut all = self.leading.oldest.lock();
        if granted {
            all.insert(from, (oldest, arrived));
        }
        all.retain(|member, _| group.is_up(member.process));
        // A process that is up and has not told its oldest snapshot to this leader yet may have any.
        let mut up = group.nodes.iter().filter(|(_, n)| n.life == Life::Up);
        let everybody = up.all(|(id, n)| all.contains_key(&Member { node: *id, process: n.process }));
        let oldest = match everybody {
            true => all.values().map(|(t, _)| *t).min().unwrap_or(Timestamp::ZERO),
            false => Timestamp::ZERO,
        };
        Signal::Grant { granted, index, oldest, counter }
    }

    /// A process asks for a snapshot time.
    pub(super) async fn on_draw_time(&self) -> Signal {
        let Some(term) = self.consensus.leading() else { return Signal::NotHere };
        let asked = self.runtime.now();
        if let Some(time) = self.draw_time(term, None) {
            return Signal::Time { time: Some(time) };
        }
        // Nobody has asked for a lease lately.
        if self.consensus.confirm().await.is_none() || self.consensus.leading() != Some(term) {
            return Signal::NotHere;
        }
        Signal::Time { time: self.draw_time(term, Some(asked)) }
    }

    /// `followed`: a majority has followed this leader since then.
    fn draw_time(&self, term: u64, followed: Option<Duration>) -> Option<Timestamp> {
        let group = self.group();
        let mut leader = self.leading.leader.lock();
        let (_, leader) = leader.as_mut().filter(|(of, _)| *of == term)?;
        if let Some(asked) = followed {
            leader.on_confirmed(asked);
        }
        // After that it may be relieved at any moment: what is given out was drawn after the request came.
        leader.draw_timestamp(self.runtime.now(), &group)
    }

    /// The manage leader's regular work.
    pub(super) async fn run_leading(node: Weak<Node>) {
        loop {
            let Some(strong) = node.upgrade() else { return };
            let Some(cluster) = strong.cluster().cloned() else { return };
            if cluster.is_closed() {
                return;
            }
            let number = cluster.leading.hurry.number();
            let (commands, leads) = cluster.lead();
            for command in commands {
                note(&cluster, &command);
                cluster.suggest(command);
            }
            drop(strong);
            let pause = if leads { LEAD } else { HEARTBEAT };
            cluster.timeout(pause, cluster.leading.hurry.after(number)).await;
        }
    }

    fn lead(&self) -> (Vec<GroupCommand>, bool) {
        let term = self.consensus.leading();
        let group = self.group();
        let now = self.runtime.now();
        let mut leader = self.leading.leader.lock();
        let Some(term) = term else {
            *leader = None;
            return (Vec::new(), false);
        };
        if leader.as_ref().is_none_or(|(of, _)| *of != term) {
            *leader = Some((term, Leader::new(now, term, self.me.process, &group)));
            self.leading.oldest.lock().clear();
            tracing::info!(node = self.me.node.0, term, "leads the manage group");
        }
        let (_, leader) = leader.as_mut().expect("just made");
        (leader.on_tick(now, &group), true)
    }

    /// A new state of the group: taken in at once where it ends something, in order where it begins something.
    pub(super) fn on_group(self: &Arc<Self>, group: &Arc<Group>) {
        let old = {
            let mut known = self.group.write();
            if group.index <= known.index {
                return;
            }
            // Before anybody can see the new state, the old views have ended.
            for (slot, state) in self.slots.iter().zip(&group.replication_groups) {
                slot.name((state.primary == Some(self.me)).then_some(state.view));
                slot.set_in_sync(state.in_sync.contains(&self.me).then_some(state.version));
            }
            self.placement.store(placement::version(group), Ordering::Release);
            std::mem::replace(&mut *known, group.clone())
        };
        self.leading.change_lease(|| self.heard(), |_| ());
        if !group.is_up(self.me.process) && !self.expelled.swap(true, Ordering::AcqRel) {
            tracing::warn!(
                node = self.me.node.0,
                process = self.me.process.0,
                "taken for gone by the manage group; starting anew"
            );
            self.slots.iter().for_each(super::slot::Slot::stop_serving);
        }
        if let Some(node) = self.node.upgrade() {
            // The first state that it sees is not what happened.
            if old.index > 0 {
                node.event_log.on_group(&old, group);
            }
            for (number, state) in (0..).zip(&group.replication_groups) {
                let before = old.replication_group(GroupId(number));
                if before.is_none_or(|before| before.view != state.view || before.primary != state.primary) {
                    for partition in self.layout.partitions_of(GroupId(number)).map(PartitionId) {
                        node.names.on_view(partition, state.view, self.runtime.now());
                        node.sessions.on_view(&node, partition, state.view);
                    }
                }
            }
        }
        if old.nodes != group.nodes {
            let addresses = group.nodes.iter().map(|(id, n)| (*id, n.address.clone())).collect();
            self.network.set_peers(&addresses);
            self.questions.drop_gone(|process| group.is_up(process));
            // At once, whatever is still to be followed: others wait for their locks.
            if let Some(node) = self.node.upgrade() {
                node.sessions.on_group(&node, group);
            }
        }
        for (number, state) in (0..).zip(&group.replication_groups) {
            let id = GroupId(number);
            let joined = old.nodes != group.nodes;
            if joined || old.replication_group(id).is_none_or(|before| before != state) {
                let mut assignment = group.assignment(id);
                if !self.hooks.safeguards.leaving {
                    assignment.in_sync.retain(|m| !state.is_leaving(*m));
                }
                self.poke_later(id, super::slot::Happening::Assigned(assignment));
                // Who has ended by itself is in-sync until somebody goes on without it, and only one that lives can say that (rule 25).
                let ended = state.in_sync.iter().find(|m| !group.is_member(**m));
                if let Some(member) = ended.filter(|_| state.primary == Some(self.me)) {
                    self.suggest(GroupCommand::Strike { group: id, version: state.version, member: *member });
                }
            }
        }
        if old.cut.time < group.cut.time {
            self.note_cut_age();
        }
        self.following.lock().push_back(group.clone());
        self.changed.fire();
        // A group that changes hands is led by nobody until the former primary is known to have heard of it, and one
        // that loses a follower acknowledges nothing until that has.
        let is_over = |p: &ReplicationGroup| p.former == Some(self.me) || p.is_leaving(self.me);
        let knew = |number: usize| old.replication_groups.get(number).is_some_and(is_over);
        if group.replication_groups.iter().enumerate().any(|(at, p)| is_over(p) && !knew(at)) {
            self.beat();
        }
        if self.consensus.leading().is_some()
            && group.replication_groups.iter().any(|p| p.primary.is_none() || !p.leaving.is_empty())
        {
            self.leading.hurry.fire();
        }
    }
}

/// One line of the cluster's log for what the leader decides.
fn note(cluster: &Cluster, command: &GroupCommand) {
    match command {
        GroupCommand::Expire { members, .. } => {
            for member in members {
                tracing::warn!(
                    node = member.node.0,
                    process = member.process.0,
                    by = cluster.me.node.0,
                    "node is taken for gone: its lease has ended"
                )
            }
        }
        GroupCommand::Recover { number } => {
            tracing::warn!(
                number,
                by = cluster.me.node.0,
                "the cluster goes back to its last cut: the memory of a group is gone"
            )
        }
        GroupCommand::Lead { group, member, .. } => {
            tracing::info!(group = group.0, node = member.node.0, "is to lead the group")
        }
        GroupCommand::Place { group, nodes, .. } => {
            tracing::info!(group = group.0, ?nodes, "places the group")
        }
        _ => {}
    }
}
