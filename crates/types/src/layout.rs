//! Which partitions a cluster has, and which replication group each of them is in.
//!
//! A *bucket* is a hash of a row's distribution key ([`BUCKETS`]). A *partition* is a contiguous range of buckets, and
//! a *group* a contiguous range of partitions: so a group is a contiguous range of buckets too. One partition more, the
//! last, holds the fully replicated tables; it is a group of its own.
//!
//! The partitions, and the groups to begin with ([`Layout`]), are settled when the cluster is made. Groups split
//! ([`Split`]): the *parent* keeps its number and its first partitions, the *heir* gets the next free number and the
//! others. [`Groups`] says what has come of that.

use crate::schema::BUCKETS;
use crate::{GroupId, PartitionId};
use std::ops::Range;

/// The bucket of all rows of fully replicated tables, behind the others.
pub const EVERYWHERE: u16 = BUCKETS;

/// The partitions over which rows are spread, and their groups to begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    spread: u16,
    groups: u16,
}

impl Layout {
    /// `spread`: partitions over which rows are spread; `groups`: groups of these. `None`: there is no such layout.
    pub fn new(spread: u16, groups: u16) -> Option<Layout> {
        let sound = groups >= 1 && groups <= spread && spread < u16::MAX;
        sound.then_some(Layout { spread, groups })
    }

    /// All partitions, the last of them that of the fully replicated tables.
    pub fn partitions(self) -> Range<u16> {
        0..self.spread + 1
    }

    /// The groups to begin with, the last of them that of the fully replicated tables.
    pub fn first_groups(self) -> Range<u16> {
        0..self.groups + 1
    }

    /// The group of the fully replicated tables. It never splits.
    pub fn group_everywhere(self) -> GroupId {
        GroupId(self.groups)
    }

    /// The partition of the fully replicated tables.
    pub fn everywhere(self) -> PartitionId {
        PartitionId(self.spread)
    }

    /// The partition of a bucket.
    #[inline]
    pub fn partition_of(self, bucket: u16) -> u16 {
        if bucket == EVERYWHERE { self.spread } else { share(bucket, BUCKETS, self.spread) }
    }

    /// The partitions of a group to begin with.
    fn first_partitions_of(self, group: u16) -> Range<u16> {
        if group == self.groups {
            return self.spread..self.spread + 1;
        }
        let first = |group: u16| (u32::from(group) * u32::from(self.spread)).div_ceil(u32::from(self.groups)) as u16;
        first(group)..first(group + 1)
    }
}

/// A group has become two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    pub parent: GroupId,
    /// The heir's first partition.
    pub at: u16,
}

/// The groups that there are: those to begin with, and the heirs of splits, in the order of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    /// By group: its partitions.
    partitions: Vec<Range<u16>>,
    /// By partition.
    of: Vec<GroupId>,
}

impl Groups {
    /// The groups to begin with.
    pub fn first(layout: Layout) -> Groups {
        let partitions: Vec<Range<u16>> = layout.first_groups().map(|g| layout.first_partitions_of(g)).collect();
        let of = (0..).zip(&partitions).flat_map(|(group, held)| held.clone().map(move |_| GroupId(group))).collect();
        Groups { partitions, of }
    }

    /// What splits have made of the groups to begin with. `None`: one of them splits a group that there was not, or
    /// leaves one of the two without a partition.
    pub fn new(layout: Layout, splits: impl IntoIterator<Item = Split>) -> Option<Groups> {
        let mut groups = Groups::first(layout);
        splits.into_iter().all(|split| groups.split(split).is_some()).then_some(groups)
    }

    /// Splits a group and gives the heir. `None`: that cannot be, and nothing has changed.
    pub fn split(&mut self, Split { parent, at }: Split) -> Option<GroupId> {
        let heir = GroupId(u16::try_from(self.partitions.len()).ok()?);
        let held = self.partitions.get_mut(usize::from(parent.0))?;
        if at <= held.start || at >= held.end {
            return None;
        }
        let given = at..held.end;
        held.end = at;
        self.of[usize::from(given.start)..usize::from(given.end)].fill(heir);
        self.partitions.push(given);
        Some(heir)
    }

    /// Their numbers.
    pub fn all(&self) -> impl Iterator<Item = GroupId> + use<> {
        (0..self.len() as u16).map(GroupId)
    }

    #[expect(clippy::len_without_is_empty, reason = "there are two at least")]
    pub fn len(&self) -> usize {
        self.partitions.len()
    }

    /// The group of a partition.
    ///
    /// # Panics
    /// If there is no such partition.
    #[inline]
    pub fn group_of(&self, partition: u16) -> GroupId {
        self.of[usize::from(partition)]
    }

    /// The partitions of a group; none, if there is no such group.
    pub fn partitions_of(&self, group: GroupId) -> Range<u16> {
        self.partitions.get(usize::from(group.0)).cloned().unwrap_or(0..0)
    }
}

/// Where `number` of `all` falls when these are dealt out to `shares` in contiguous ranges.
#[inline]
pub fn share(number: u16, all: u16, shares: u16) -> u16 {
    (u32::from(number) * u32::from(shares) / u32::from(all)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn there_is_no_layout_without_partitions_or_with_more_groups_than_these() {
        for (spread, groups) in [(0, 0), (0, 1), (4, 0), (4, 5), (u16::MAX, 1)] {
            assert_eq!(Layout::new(spread, groups), None, "{spread} {groups}");
        }
    }

    proptest! {
        #[test]
        fn groups_hold_contiguous_partitions_and_each_partition_once(
            spread in 1u16..200,
            groups in 1u16..200,
            splits in proptest::collection::vec((0u16..40, 0u16..200), 0..20),
        ) {
            let Some(layout) = Layout::new(spread, groups) else { return Ok(()) };
            let mut all = Groups::first(layout);
            let everywhere = layout.group_everywhere();
            for (parent, at) in splits {
                let (before, split) = (all.clone(), Split { parent: GroupId(parent), at });
                match all.split(split) {
                    Some(heir) => {
                        prop_assert_eq!(usize::from(heir.0), before.len());
                        let held = before.partitions_of(split.parent);
                        prop_assert_eq!(all.partitions_of(split.parent), held.start..at);
                        prop_assert_eq!(all.partitions_of(heir), at..held.end);
                    }
                    None => prop_assert_eq!(&all, &before),
                }
            }
            prop_assert_eq!(all.partitions_of(everywhere), spread..spread + 1);
            let mut held: Vec<Range<u16>> = all.all().map(|group| all.partitions_of(group)).collect();
            for (group, held) in all.all().zip(&held) {
                prop_assert!(held.end > held.start);
                prop_assert!(held.clone().all(|partition| all.group_of(partition) == group));
            }
            held.sort_by_key(|held| held.start);
            prop_assert!(held.windows(2).all(|pair| pair[0].end == pair[1].start));
            prop_assert_eq!((held[0].start, held[held.len() - 1].end), (0, layout.partitions().end));
            prop_assert!(all.len() <= usize::from(layout.partitions().end));
            let of = |bucket| layout.partition_of(bucket);
            prop_assert!((1..BUCKETS).all(|bucket| of(bucket) >= of(bucket - 1)));
            prop_assert_eq!((of(BUCKETS - 1), of(EVERYWHERE)), (spread - 1, spread));
        }
    }

    #[test]
    fn a_split_of_nothing_is_refused() {
        let layout = Layout::new(4, 2).expect("a layout");
        let split = |parent, at| Split { parent: GroupId(parent), at };
        for wrong in [split(0, 0), split(0, 2), split(1, 1), split(2, 4), split(3, 1)] {
            assert_eq!(Groups::new(layout, [wrong]), None, "{wrong:?}");
        }
        assert!(Groups::new(layout, [split(0, 1), split(1, 3)]).is_some());
        assert_eq!(Groups::new(layout, [split(0, 1), split(0, 1)]), None);
    }
}
