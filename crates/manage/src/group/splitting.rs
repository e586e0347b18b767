//! Replication groups that split while their rows are read and written (rules 56–62 of docs/cluster-protocols.md; the
//! model is `group_split`).
//!
//! 1. The leader of the control plane wishes it ([`GroupCommand::Divide`](super::GroupCommand::Divide)): the group is
//!    [`ReplicationGroup::dividing`].
//! 2. Its primary takes no new work, lets what is prepared be decided, and writes the last entry of its view. When that
//!    is stable it says so ([`GroupCommand::Split`](super::GroupCommand::Split)).
//! 3. That command makes two groups of the one. The *parent* keeps its number and its stream, the *heir* has the next
//!    free number, and its stream goes on where the parent's last entry stands. Both have the replicas that the group
//!    had, and both begin a new view, of the same number, led by the primary. No row is copied: each replica has them
//!    beside its partitions, and makes the heir's part of its log when it hears of the command.
//!
//! A primary that fails in between leaves the group as it was, still dividing: the next one begins again.
//!
//! *Going back to a cut* that is older than a split undoes it ([`Group::undo_splits`]): the cut has no entry of the
//! heir's stream, and the parent's reaches to before the split. Numbers of heirs are given out again then, with views and
//! versions above those that were used ([`Undone`]); directories have given up what they had of the old ones when they
//! have gone back.
//!
//! # Invariants
//! [`Group::groups`] always exists: a split that cannot be is refused. The group of the fully replicated tables never
//! splits.

use super::command::{Answer, Refused};
use super::{Group, ReplicationGroup};
use rauk_cluster::EntryId;
use rauk_types::{GroupId, Groups, Split, View};
use serde::{Deserialize, Serialize};

/// A group has become two. The heirs of a cluster are numbered in the order of these, behind the groups to begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupSplit {
    pub parent: GroupId,
    /// The heir's first partition.
    pub at: u16,
    /// The last entry of the parent's view: the heir's stream goes on behind it.
    pub end: EntryId,
}

/// The highest that groups had whose splits were undone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undone {
    pub view: View,
    pub version: u64,
}

impl GroupSplit {
    fn split(&self) -> Split {
        Split { parent: self.parent, at: self.at }
    }
}

impl Group {
    /// Which partitions each group has. `None`: the cluster is not made yet.
    pub fn groups(&self) -> Option<Groups> {
        let layout = self.config.as_ref()?.layout();
        Some(Groups::new(layout, self.splits.iter().map(GroupSplit::split)).expect("each was checked when it was made"))
    }

    /// The group that a split has made.
    pub fn heir(&self, number: usize) -> GroupId {
        let first = self.config.as_ref().map_or(0, |config| config.layout().first_groups().len());
        GroupId((first + number) as u16)
    }

    fn can_split(&self, group: GroupId, at: u16) -> bool {
        self.groups().is_some_and(|mut groups| groups.split(Split { parent: group, at }).is_some())
    }

    pub(super) fn divide(&mut self, group: GroupId, version: u64, at: u16) -> Result<Answer, Answer> {
        if !self.can_split(group, at) {
            let text = format!("replication group {} cannot be split at partition {at}", group.0);
            return Err(Answer::Refused(Refused::OutOfRange(text)));
        }
        let state = self.under(group, version)?;
        state.dividing = Some(at);
        state.changed()
    }

    pub(super) fn split(&mut self, group: GroupId, version: u64, at: u16, end: EntryId) -> Result<Answer, Answer> {
        let (can_split, undone) = (self.can_split(group, at), self.undone);
        let state = self.under(group, version)?;
        if !can_split || state.dividing != Some(at) || state.primary.is_none() || end.view != state.view {
            return Err(Answer::Void);
        }
        state.dividing = None;
        state.view.0 = state.view.max(undone.view).0 + 1;
        state.version = state.version.max(undone.version) + 1;
        let heir = ReplicationGroup { former: None, ..state.clone() };
        self.replication_groups.push(heir);
        self.splits.push(GroupSplit { parent: group, at, end });
        Ok(Answer::Done)
    }

    /// Takes back the splits that the last cut knows nothing of.
    pub(super) fn undo_splits(&mut self) {
        let first = self.config.as_ref().map_or(0, |config| config.layout().first_groups().len());
        let known = self.cut.entries.len().max(first);
        while self.replication_groups.len() > known
            && let (Some(split), Some(heir)) = (self.splits.pop(), self.replication_groups.pop())
        {
            self.undone.view = self.undone.view.max(heir.view);
            self.undone.version = self.undone.version.max(heir.version);
            let parent = &mut self.replication_groups[usize::from(split.parent.0)];
            // Sums over all groups only grow.
            parent.version += heir.version;
            parent.view = parent.view.max(heir.view);
        }
    }
}
