//! Which groups there are, and which of them came of which: what a log says of a group may be from before it was split.

use rauk_cluster::EntryId;
use rauk_manage::group::{Group, GroupSplit};
use rauk_types::{GroupId, Groups, Layout, Split};
use std::ops::Range;

/// See the module.
#[derive(Clone, Debug)]
pub struct Lineage {
    pub layout: Layout,
    pub splits: Vec<GroupSplit>,
}

impl Lineage {
    /// `None`: the cluster is not made yet.
    pub fn of(group: &Group) -> Option<Lineage> {
        Some(Lineage { layout: group.config.as_ref()?.layout(), splits: group.splits.clone() })
    }

    pub fn splits(&self) -> impl Iterator<Item = Split> + '_ {
        self.splits.iter().map(|split| Split { parent: split.parent, at: split.at })
    }

    pub fn first(&self) -> Groups {
        Groups::first(self.layout)
    }

    pub fn groups(&self) -> Groups {
        Groups::new(self.layout, self.splits()).expect("the control plane has looked")
    }

    /// The partitions that a group had when it began.
    pub fn reach(&self, group: GroupId) -> Range<u16> {
        let mut groups = self.first();
        let mut splits = self.splits();
        while groups.partitions_of(group).is_empty() {
            match splits.next() {
                Some(split) => groups.split(split),
                None => break,
            };
        }
        groups.partitions_of(group)
    }

    /// Where a group was split, in order: the heir's first partition, the last entry of the parent's view.
    pub fn splits_of(&self, group: GroupId) -> Vec<(u16, EntryId)> {
        self.splits.iter().filter(|split| split.parent == group).map(|split| (split.at, split.end)).collect()
    }

    /// By split: its heir.
    pub fn heirs(&self) -> impl Iterator<Item = (GroupId, &GroupSplit)> {
        let first = self.layout.first_groups().len() as u16;
        (first..).map(GroupId).zip(&self.splits)
    }
}
