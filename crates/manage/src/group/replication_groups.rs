//! Replication groups: who leads, who is in-sync, who is to be.
//!
//! Every change makes the version grow, and who asks for a change names the version that it knows: a request made under an older one is void (rule
//! 18). What counts as a change is everything that an [`Assignment`] tells, the joiners included, so that two assignments of one version are equal.
//!
//! # Views and who may lead
//! [`GroupCommand::Lead`](super::GroupCommand::Lead) begins a view, and only where nobody leads. A group loses its
//! primary when that is down (its lease has ended), when it has stopped by itself (`Withdraw`), when its node registers a
//! new process, or by `Relieve`. In the first two cases it serves no more; in the others it may not have heard of it yet, and stands in
//! [`ReplicationGroup::former`] until the next `Lead`: the control-plane leader waits for the end of its lease, or
//! until it has heard (rule 18).
//!
//! # Who is struck, and when (rule 25)
//! To be struck says: others may have acknowledged something without this one. So it is said only where one of them lived when it was: a primary says it of a follower
//! ([`GroupCommand::Strike`](super::GroupCommand::Strike)), a new primary takes nobody along who is down, and when leases end ([`GroupCommand::Expire`](super::GroupCommand::Expire)) those that have
//! ended leave the sets in which somebody is up. Members that end *together* all stay: nothing can have been acknowledged since, so each that comes back with its log has everything, and
//! the group does not wait for the one whose disk is lost.
//!
//! Who is struck while it is up may not have heard of it, and reads what it has as long as its lease holds (rule 33).
//! It goes into [`ReplicationGroup::leaving`], and an [`Assignment`] names it among the in-sync still, so that nothing
//! is acknowledged without it; until the leader knows that it has heard, or that no lease is left that it holds without
//! knowing.
//!
//! # Invariants
//! Once a group has been led its in-sync set is never empty, unless all its members are doubtful ([`super::doubt`]).
//! Every member had everything when it ended. The primary is in-sync, up, and first; where there is none, any may be
//! down: the group waits for the first of them. Everybody in-sync is placed here, and nobody is in-sync and leaves.

use super::command::{Answer, Refused};
use super::doubt::End;
use super::{Doubtful, Group, Life};
use rauk_cluster::Assignment;
use rauk_types::{GroupId, Member, NodeId, ProcessId, View};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicationGroup {
    /// Grows with every change; a request names the version that it was made under (rule 18).
    pub version: u64,
    pub view: View,
    pub primary: Option<Member>,
    /// The primary among them, first.
    pub in_sync: Vec<Member>,
    /// Nodes that are to hold it; the first is the preferred primary. More than are wanted while one is moved: those to be given up come last.
    pub placed: Vec<NodeId>,
    /// Nobody leads, and this one, which did, may believe that it still does, until its lease has ended.
    pub former: Option<Member>,
    /// Struck while they were up: they may not have heard of it, and answer reads as if they were in-sync (rule 33). So whoever leads counts them for acknowledgements, until
    /// [`GroupCommand::LetGo`](super::GroupCommand::LetGo).
    #[serde(default)]
    pub leaving: Vec<Leaving>,
    /// Were in-sync until they registered with a log whose damaged end was cut (rule 37). A new view ends it.
    #[serde(default)]
    pub doubtful: Vec<Doubtful>,
}

/// A member that was struck while it was up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Leaving {
    pub member: Member,
    /// Of the group when it was struck: whoever joins and is struck again leaves anew.
    pub version: u64,
}

impl ReplicationGroup {
    fn is_in_sync(&self, node: NodeId) -> bool {
        self.in_sync.iter().any(|m| m.node == node)
    }

    /// Those that go on being up need to hear of it before anything is acknowledged without them.
    pub(super) fn retain_in_sync(&mut self, keep: impl Fn(&Member) -> bool, is_up: impl Fn(&Member) -> bool) {
        let version = self.version;
        let struck = self.in_sync.extract_if(.., |m| !keep(m)).filter(|m| is_up(m));
        self.leaving.extend(struck.map(|member| Leaving { member, version }));
    }

    /// Whether it was struck, and may not have heard of it.
    pub fn is_leaving(&self, member: Member) -> bool {
        self.leaving.iter().any(|l| l.member == member)
    }

    fn has_to_do_with(&self, node: NodeId) -> bool {
        let is = |member: &Member| member.node == node;
        self.placed.contains(&node)
            || self.in_sync.iter().any(is)
            || self.former.as_ref().is_some_and(is)
            || self.is_left_by(node)
            || self.is_doubtful(node)
    }

    fn changed(&mut self) -> Result<Answer, Answer> {
        self.version += 1;
        Ok(Answer::Done)
    }

    fn is_left_by(&self, node: NodeId) -> bool {
        self.leaving.iter().any(|l| l.member.node == node)
    }

    /// A node that is down gives its place up; where it is in-sync, another that is up goes on without it.
    pub(super) fn leave(&mut self, node: NodeId) {
        if self.placed.contains(&node) {
            self.placed.retain(|n| *n != node);
            self.in_sync.retain(|m| m.node != node);
            self.leaving.retain(|l| l.member.node != node);
            self.doubtful.retain(|d| d.member.node != node);
            self.version += 1;
        }
    }

    /// A new process of the node stands in for its predecessor `before`, if it has everything that that had. One that is whole after another was not has only
    /// what that one had: nothing of what is lost comes back by a second restart.
    pub(super) fn on_registered(&mut self, member: Member, before: ProcessId, whole: bool, end: End) {
        let mut touched = self.placed.contains(&member.node) || self.is_left_by(member.node);
        self.leaving.retain(|l| l.member.node != member.node);
        if let Some(primary) = self.primary.filter(|p| p.node == member.node) {
            self.former = Some(primary);
            self.primary = None;
            touched = true;
        }
        if let Some(place) = self.in_sync.iter().position(|m| m.node == member.node) {
            touched = true;
            let keeps = whole && self.in_sync[place].process == before;
            if keeps && end.cut {
                self.in_sync.remove(place);
                self.doubtful.push(Doubtful { member, last: end.last });
            } else if keeps {
                self.in_sync[place] = member;
            } else if self.in_sync.len() > 1 {
                self.in_sync.remove(place);
            }
        }
        touched |= self.on_doubtful_registered(member, before, whole, end);
        self.version += u64::from(touched);
    }

    /// A process registers while nobody is in-sync, since the cluster has gone back to a cut.
    pub(super) fn on_recovered(&mut self, member: Member, holds: bool) {
        let placed = self.placed.contains(&member.node);
        if holds {
            self.in_sync.push(member);
            if !placed {
                self.placed.push(member.node);
            }
        }
        self.version += u64::from(holds || placed);
    }

    /// It leads nothing any more; in-sync it stays, until somebody goes on without it.
    pub(super) fn on_down(&mut self, member: Member) {
        let mut touched = self.placed.contains(&member.node) || self.is_leaving(member);
        self.leaving.retain(|l| l.member != member);
        if self.primary == Some(member) {
            self.primary = None;
            touched = true;
        }
        if self.former == Some(member) {
            self.former = None;
            touched = true;
        }
        self.version += u64::from(touched);
    }

    /// Goes on without those that have ended, if there is somebody to go on.
    fn on_expired(&mut self, ended: &[Member], is_up: impl Fn(&Member) -> bool) -> bool {
        let before = self.in_sync.len();
        if self.in_sync.iter().any(&is_up) {
            self.in_sync.retain(|m| is_up(m) || !ended.contains(m));
        }
        let struck = self.in_sync.len() < before;
        self.version += u64::from(struck);
        struck
    }
}

impl Group {
    /// Whether nobody will ever ask for what a node may have of a group: it has no place there, those who have one all
    /// have everything and are up, and the last cut does not rest on it.
    pub fn is_orphaned(&self, group: GroupId, node: NodeId) -> bool {
        let Some(state) = self.replication_groups.get(usize::from(group.0)) else { return false };
        let is_whole = |node: &NodeId| state.in_sync.iter().any(|m| m.node == *node && self.is_member(*m));
        let is_led = state.primary.is_some() && !state.placed.is_empty() && state.placed.iter().all(is_whole);
        is_led && !state.has_to_do_with(node) && !(self.is_replicated() && self.cut.is_holder(group, node))
    }

    /// What the replica blocks of a process need to know about a group. Version zero and nobody, for one that there is
    /// not.
    pub fn assignment(&self, group: GroupId) -> Assignment {
        let nothing = ReplicationGroup::default();
        let state = self.replication_group(group).unwrap_or(&nothing);
        let placed = state.placed.iter().filter_map(|node| self.member(*node));
        Assignment {
            group,
            version: state.version,
            view: state.view,
            primary: state.primary,
            in_sync: state.in_sync.iter().copied().chain(state.leaving.iter().map(|l| l.member)).collect(),
            joining: placed.filter(|m| !state.in_sync.contains(m) && !state.is_leaving(*m)).collect(),
        }
    }

    pub fn replication_group(&self, group: GroupId) -> Option<&ReplicationGroup> {
        self.replication_groups.get(usize::from(group.0))
    }

    /// The group, if the request was made under its version.
    fn under(&mut self, group: GroupId, version: u64) -> Result<&mut ReplicationGroup, Answer> {
        let state = self.replication_groups.get_mut(usize::from(group.0)).ok_or_else(|| {
            Answer::Refused(Refused::OutOfRange(format!("there is no replication group {}", group.0)))
        })?;
        if state.version == version { Ok(state) } else { Err(Answer::Void) }
    }

    /// The leases of all these have ended.
    pub(super) fn expire(&mut self, term: u64, ended: &[Member]) -> Result<Answer, Answer> {
        if term != self.term {
            return Err(Answer::Void);
        }
        // All of them first: none goes on without another that ends with it.
        let mut changed = false;
        for member in ended {
            changed |= self.down(*member).is_ok();
        }
        let Group { nodes, replication_groups, .. } = self;
        let is_up = |m: &Member| nodes.get(&m.node).is_some_and(|n| n.process == m.process && n.life == Life::Up);
        for group in replication_groups {
            changed |= group.on_expired(ended, is_up);
        }
        if changed { Ok(Answer::Done) } else { Err(Answer::Void) }
    }

    pub(super) fn strike(&mut self, group: GroupId, version: u64, member: Member) -> Result<Answer, Answer> {
        let up = self.is_member(member);
        let state = self.under(group, version)?;
        let follows = state.primary.is_some_and(|p| p != member) && state.in_sync.contains(&member);
        if !follows {
            return Err(Answer::Void);
        }
        state.retain_in_sync(|m| *m != member, |_| up);
        state.changed()
    }

    /// It serves no more and answers no reads since before it said that it has stopped: nobody waits until it hears of this.
    pub(super) fn withdraw(&mut self, group: GroupId, version: u64, member: Member) -> Result<Answer, Answer> {
        let up: BTreeSet<Member> = self.nodes.keys().filter_map(|node| self.member(*node)).collect();
        let state = self.under(group, version)?;
        let others = state.in_sync.iter().any(|m| *m != member && up.contains(m));
        if state.primary != Some(member) || !others {
            return Err(Answer::Void);
        }
        state.in_sync.retain(|m| *m != member);
        state.primary = None;
        state.changed()
    }

    pub(super) fn let_go(&mut self, group: GroupId, version: u64, members: &[Leaving]) -> Result<Answer, Answer> {
        let state = self.under(group, version)?;
        let before = state.leaving.len();
        state.leaving.retain(|l| !members.contains(l));
        if state.leaving.len() == before {
            return Err(Answer::Void);
        }
        state.changed()
    }

    pub(super) fn join(&mut self, group: GroupId, version: u64, member: Member) -> Result<Answer, Answer> {
        let up = self.is_member(member);
        let state = self.under(group, version)?;
        let lacks =
            state.placed.contains(&member.node) && !state.is_in_sync(member.node) && !state.is_left_by(member.node);
        // Only a primary can say that a joiner has everything.
        if !up || !lacks || state.primary.is_none() {
            return Err(Answer::Void);
        }
        state.in_sync.push(member);
        state.doubtful.retain(|d| d.member.node != member.node);
        state.changed()
    }

    pub(super) fn lead(&mut self, group: GroupId, version: u64, member: Member) -> Result<Answer, Answer> {
        let up: BTreeSet<Member> = self.nodes.keys().filter_map(|node| self.member(*node)).collect();
        let state = self.under(group, version)?;
        if !up.contains(&member) || state.primary.is_some() {
            return Err(Answer::Void);
        }
        // Where nobody has ever led there is nothing yet, and an empty replica has all of it.
        let begins = state.view == View::default() && state.in_sync.is_empty() && state.placed.contains(&member.node);
        if !begins && !state.may_lead(member) {
            return Err(Answer::Void);
        }
        state.in_sync.retain(|m| *m != member && up.contains(m));
        state.in_sync.insert(0, member);
        state.doubtful.clear();
        state.primary = Some(member);
        state.former = None;
        state.view.0 += 1;
        state.changed()
    }

    pub(super) fn relieve(&mut self, group: GroupId, version: u64) -> Result<Answer, Answer> {
        let state = self.under(group, version)?;
        state.former = Some(state.primary.take().ok_or(Answer::Void)?);
        state.changed()
    }

    pub(super) fn place(&mut self, group: GroupId, version: u64, nodes: &[NodeId]) -> Result<Answer, Answer> {
        if let Some(unknown) = nodes.iter().find(|n| !self.nodes.contains_key(n)) {
            return Err(Answer::Refused(Refused::NoSuchNode(unknown.0)));
        }
        let named: BTreeSet<NodeId> = nodes.iter().copied().collect();
        if named.is_empty() || named.len() < nodes.len() {
            let text = "a replication group is placed on at least one node, and on each once".to_owned();
            return Err(Answer::Refused(Refused::OutOfRange(text)));
        }
        let up: BTreeSet<Member> = self.nodes.keys().filter_map(|node| self.member(*node)).collect();
        let state = self.under(group, version)?;
        if state.placed == nodes {
            return Ok(Answer::Done);
        }
        let needed = |node: NodeId| Err(Answer::Refused(Refused::Needed { node: node.0, group: group.0 }));
        let doubtful = state.doubtful.iter().map(|d| &d.member);
        let dropped = state.in_sync.iter().chain(doubtful).find(|m| !named.contains(&m.node));
        // Without a primary nobody knows which of them comes back.
        if let Some(member) = dropped.filter(|m| state.primary.is_none_or(|primary| primary == **m)) {
            return needed(member.node);
        }
        state.retain_in_sync(|m| named.contains(&m.node), |m| up.contains(m));
        state.doubtful.retain(|d| named.contains(&d.member.node));
        state.placed = nodes.to_vec();
        state.changed()
    }

    /// Whether a member has come back without what it had, or another node has come in its place.
    pub(super) fn is_gone(&self, member: &Member) -> bool {
        self.nodes.get(&member.node).is_none_or(|n| n.process > member.process || n.life == Life::Absent)
    }
}
