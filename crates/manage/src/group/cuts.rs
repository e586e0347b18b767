//! Cuts over the whole cluster, and going back to one: durability `replicated` (rules 26–31).
//!
//! A *cut* is a commit time with a place in every group's stream: whatever commits at or before the time is decided
//! before that place. When the in-sync replicas of all groups have their streams on disk up to there the cut is
//! *complete*, and the control plane notes it ([`super::GroupCommand::Cut`]). The command names the sum of all groups'
//! versions, as they were before the time was drawn. Versions only grow, so an equal sum means that nothing has
//! changed: those who are in-sync now were so all the time, and hold the cut.
//!
//! A group has *no memory* when no process that had it in memory is up. The last of them may only be silent, and come
//! back (rule 35): it is *lost* when their nodes have registered others that have not kept it, and the leader waits for
//! that, or for [`super::ClusterConfig::memory_return`]. Then the whole cluster goes back to the last complete cut
//! ([`super::GroupCommand::Recover`]): every process with data or sessions is over, nobody is in-sync anywhere, and new
//! processes open what their disks have of the cut. The first that holds a group so is in-sync and leads it; the others
//! join it.
//!
//! # Invariants
//! Cuts grow in time. A recovery is carried out only while a group has no memory, and names its number, so the same one
//! is never done twice. A process that has opened under an older recovery is not registered.
//!
//! # What is left out
//! When to draw a cut and when to go back: the leader's. What a log holds: each node's.

use super::command::Answer;
use super::config::ClusterDurability;
use super::nodes::{Life, RoleKind};
use super::{Group, ReplicationGroup};
use rauk_cluster::EntryId;
use rauk_types::{GroupId, Member, NodeId, Timestamp, View};
use serde::{Deserialize, Serialize};

/// A complete cut. The first, at time zero, is the empty cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    pub time: Timestamp,
    /// By group: the cut's entry in its stream. Empty for the first.
    pub entries: Vec<EntryId>,
    /// By group: the nodes on whose disks the stream is up to there. Empty for the first: everybody has nothing.
    pub holders: Vec<Vec<NodeId>>,
}

impl Cut {
    pub fn entry(&self, group: GroupId) -> EntryId {
        self.entries.get(usize::from(group.0)).copied().unwrap_or_default()
    }

    /// Whether the node's disk had the group up to the cut when that was complete.
    pub fn is_holder(&self, group: GroupId, node: NodeId) -> bool {
        self.holders.get(usize::from(group.0)).is_none_or(|nodes| nodes.contains(&node))
    }
}

/// The cluster has gone back to a cut.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    /// 1, 2, 3 …; 0: never.
    pub number: u64,
    pub cut: Cut,
}

impl Group {
    pub fn is_replicated(&self) -> bool {
        self.config.as_ref().is_some_and(|config| config.durability == ClusterDurability::Replicated)
    }

    /// Of all groups.
    pub fn versions(&self) -> u64 {
        self.replication_groups.iter().fold(0, |sum, state| sum.wrapping_add(state.version))
    }

    /// Whether no process that is up has the group in memory, and what was acknowledged need not be on any disk.
    pub fn has_no_memory(&self, state: &ReplicationGroup) -> bool {
        let over = |member: &Member| !self.is_member(*member);
        self.is_replicated() && !state.in_sync.is_empty() && state.in_sync.iter().all(over)
    }

    /// Whether, of a group without memory, it is known that it is lost: newer processes of all its nodes have
    /// registered, and have not kept it.
    pub fn is_memory_lost(&self, state: &ReplicationGroup) -> bool {
        let has_begun_anew =
            |member: &Member| self.nodes.get(&member.node).is_none_or(|node| node.process > member.process);
        self.has_no_memory(state) && state.in_sync.iter().all(has_begun_anew)
    }

    /// Whether the group waits for a process that holds the cut that the cluster has gone back to.
    pub fn is_recovering(state: &ReplicationGroup) -> bool {
        state.in_sync.is_empty() && state.doubtful.is_empty() && state.view > View::default()
    }

    /// Whether another cut is to be drawn although nothing has been committed since the last: somebody is in-sync who does not hold that one. Where holders leave one after another and nothing is
    /// written, nobody would be left in the end who does.
    pub fn wants_holders(&self) -> bool {
        let lacks = |(number, state): (u16, &ReplicationGroup)| {
            state.in_sync.iter().any(|member| !self.cut.is_holder(GroupId(number), member.node))
        };
        self.is_replicated() && (0..).zip(&self.replication_groups).any(lacks)
    }

    /// A group that could not go back to the last cut without this node: it is a holder, and no other is up.
    pub(super) fn needs_holder(&self, node: NodeId) -> Option<GroupId> {
        let needs = |(number, holders): (u16, &Vec<NodeId>)| {
            let group = GroupId(number);
            // Who has registered since the cluster went back, and did not end this, has lost what it held.
            let waits = self.replication_group(group).is_some_and(Group::is_recovering);
            let other = || holders.iter().any(|other| *other != node && self.member(*other).is_some());
            (holders.contains(&node) && (waits || !other())).then_some(group)
        };
        (0..).zip(&self.cut.holders).find_map(needs)
    }

    pub(super) fn complete_cut(
        &mut self,
        time: Timestamp,
        versions: u64,
        entries: &[EntryId],
    ) -> Result<Answer, Answer> {
        let led = self.replication_groups.iter().all(|state| state.primary.is_some());
        let sound = entries.len() == self.replication_groups.len() && time > self.cut.time;
        if !self.is_replicated() || versions != self.versions() || !led || !sound {
            return Err(Answer::Void);
        }
        let nodes = |state: &ReplicationGroup| state.in_sync.iter().map(|member| member.node).collect();
        let holders = self.replication_groups.iter().map(nodes).collect();
        self.cut = Cut { time, entries: entries.to_vec(), holders };
        Ok(Answer::Done)
    }

    pub(super) fn recover(&mut self, number: u64) -> Result<Answer, Answer> {
        let gone = self.replication_groups.iter().any(|state| self.has_no_memory(state));
        if !gone || self.recovery.number.checked_add(1) != Some(number) {
            return Err(Answer::Void);
        }
        self.recovery = Recovery { number, cut: self.cut.clone() };
        let up: Vec<Member> = self.nodes.keys().filter_map(|node| self.member(*node)).collect();
        let mut over = Vec::new();
        for state in self.nodes.values_mut().filter(|state| state.life == Life::Up) {
            if state.has(RoleKind::Data) || state.has(RoleKind::Sql) {
                state.life = Life::Down;
                over.push(state.process);
            }
        }
        over.into_iter().for_each(|process| self.forget_process(process));
        for state in &mut self.replication_groups {
            // They may not have heard of this, and go on until their leases end.
            state.former = state.primary.take().or(state.former);
            let former = state.former;
            state.retain_in_sync(|_| false, |m| up.contains(m) && former != Some(*m));
            state.version += 1;
        }
        Ok(Answer::Done)
    }
}
