//! What a registering process says of its data directory, and members whose log ended in damage (rule 37).
//!
//! A log that ends in a damaged frame is cut there. The frame may have been torn before it was synced, and then nothing is missing; or it was damaged later, and held
//! commits that were acknowledged. Nobody can tell which from that log alone. So such a member is not in-sync any more when it registers: it is *doubtful*.
//!
//! # Who leads then
//! Any in-sync member, as ever: it has everything. When all members that were in-sync have registered as doubtful, the
//! one whose log reaches furthest: the same entry is missing in all of them only if it was damaged in all. Ends are
//! compared by view and position, as entries are ([`EntryId`]): a log that has the opening of a later view has
//! everything that was acknowledged before that view. Until one of these can lead, the group waits for those that have
//! not registered, unless the operator accepts the loss ([`super::GroupCommand::AcceptLoss`]). Whoever leads, the
//! others are joiners and get what they lack from its stream.
//!
//! # Older copies of a directory
//! A directory remembers the nonces of its starts ([`DirectoryState::starts`]), each on disk before it is proposed; the
//! control plane remembers the newest that was registered. A directory that does not know that one is an older copy, or
//! has lost its files: it is refused. A copy that was made since that start knows it. It is found out when its process
//! is to lead: an in-sync replica names a stable entry that it lacks. That process ends, and the next one registers as
//! doubtful, as if the end of its log had been cut.
//!
//! # Invariants
//! Nobody is in-sync and doubtful. With durability `replicated` nobody is doubtful: a new process keeps no place, and what a log holds of a cut is read from the log.

use super::command::{Answer, Refused};
use super::{Group, ReplicationGroup};
use rauk_cluster::EntryId;
use rauk_types::{GroupId, Member, NodeId, ProcessId};
use serde::{Deserialize, Serialize};

/// What a registering process says of its data directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryState {
    /// Nonces of starts that the directory has on disk, the one of this start among them. `None`: the directory was not read for this registration.
    pub starts: Option<Vec<u64>>,
    /// The end of its log was damaged, and was cut; or the process before ended since its log lacked what was stable (rule 38).
    pub cut: bool,
    /// By group: the last entry that the log has of its stream.
    pub ends: Vec<EntryId>,
}

impl DirectoryState {
    fn end(&self, group: GroupId) -> EntryId {
        self.ends.get(usize::from(group.0)).copied().unwrap_or_default()
    }

    /// The last entry of a group whose log may lack the end.
    pub(super) fn cut_end(&self, group: GroupId) -> End {
        End { cut: self.cut, last: self.end(group) }
    }
}

/// How the log of a registering process ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct End {
    pub cut: bool,
    pub last: EntryId,
}

/// A member that was in-sync and has registered with a log whose damaged end was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Doubtful {
    pub member: Member,
    /// The last entry that its log has.
    pub last: EntryId,
}

impl ReplicationGroup {
    pub fn is_doubtful(&self, node: NodeId) -> bool {
        self.doubtful.iter().any(|d| d.member.node == node)
    }

    /// Whether the member has everything that was acknowledged, as far as can be known: it is in-sync, or all that were have registered as doubtful and its log reaches furthest.
    pub fn may_lead(&self, member: Member) -> bool {
        let furthest = |own: &Doubtful| self.doubtful.iter().all(|other| other.last <= own.last);
        let own = self.doubtful.iter().find(|d| d.member == member);
        self.in_sync.contains(&member) || self.in_sync.is_empty() && own.is_some_and(furthest)
    }

    /// A new process of a doubtful member stands in for its predecessor, if it has everything that that had.
    pub(super) fn on_doubtful_registered(&mut self, member: Member, before: ProcessId, whole: bool, end: End) -> bool {
        let Some(own) = self.doubtful.iter_mut().find(|d| d.member.node == member.node) else { return false };
        if whole && own.member.process == before {
            *own = Doubtful { member, last: end.last };
        }
        true
    }
}

impl Group {
    /// A directory is the one that registered last, or one that knows of that start.
    pub(super) fn check_directory(&self, node: NodeId, directory: &DirectoryState) -> Result<(), Answer> {
        let known = self.nodes.get(&node).and_then(|state| state.recorded);
        match (known, &directory.starts) {
            (Some(newest), Some(starts)) if !starts.contains(&newest) => {
                Err(Answer::Refused(Refused::OlderDirectory(node.0)))
            }
            _ => Ok(()),
        }
    }

    /// The operator goes on with the logs that are there: where nobody leads, no in-sync member is up and a doubtful one is, the doubtful one whose log reaches furthest is taken for in-sync.
    pub(super) fn accept_loss(&mut self) -> Result<Answer, Answer> {
        let mut accepted = false;
        for number in 0..self.replication_groups.len() {
            let Some(Doubtful { member, .. }) = self.acceptable(&self.replication_groups[number]) else { continue };
            let state = &mut self.replication_groups[number];
            state.in_sync = vec![member];
            state.doubtful.clear();
            state.version += 1;
            accepted = true;
        }
        if accepted { Ok(Answer::Done) } else { Err(Answer::Refused(Refused::NothingDoubtful)) }
    }

    /// The doubtful member that could lead if the operator accepts what is missing.
    fn acceptable(&self, state: &ReplicationGroup) -> Option<Doubtful> {
        let waits = state.primary.is_none() && !state.in_sync.iter().any(|m| self.is_member(*m));
        let up = state.doubtful.iter().filter(|d| waits && self.is_member(d.member));
        up.max_by_key(|d| (d.last, std::cmp::Reverse(d.member))).copied()
    }

    /// Why a group with doubtful members has no primary, and what helps.
    pub(super) fn explain_doubt(&self, number: u16, state: &ReplicationGroup) -> Option<String> {
        if state.doubtful.is_empty() {
            return None;
        }
        let able = |m: &Member| state.may_lead(*m);
        let members = state.in_sync.iter().copied().chain(state.doubtful.iter().map(|d| d.member));
        let able: Vec<Member> = members.filter(able).collect();
        if able.iter().any(|m| self.is_member(*m)) {
            return Some(format!("replication group {number} is about to get a new primary"));
        }
        let names = |members: &mut dyn Iterator<Item = Member>| {
            members.map(|m| format!("node {}", m.node.0)).collect::<Vec<_>>().join(" or ")
        };
        let (awaited, doubtful) = (
            names(&mut able.into_iter()),
            names(&mut state.doubtful.iter().map(|d| d.member)).replace(" or ", " and "),
        );
        let reach = if state.in_sync.is_empty() { "whose log reaches furthest" } else { "which has everything" };
        let mut text = format!(
            "replication group {number} waits for {awaited}, {reach}: the log of {doubtful} ended in a damaged \
             entry that was cut, or the directory was an older copy, so that acknowledged commits may be missing \
             there; start {awaited}"
        );
        if let Some(best) = self.acceptable(state) {
            text.push_str(&format!(
                ", or, if it is lost for good, ALTER CLUSTER ACCEPT LOSS goes on with what node {} has",
                best.member.node.0
            ));
        }
        Some(text)
    }
}
