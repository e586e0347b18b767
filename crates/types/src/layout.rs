//! Which partitions a cluster has, and which replication group each of them is in.
//!
//! A *bucket* is a hash of a row's distribution key ([`BUCKETS`]). A *partition* is a contiguous range of buckets, and
//! a *group* a contiguous range of partitions: so a group is a contiguous range of buckets too. One partition more, the
//! last, holds the fully replicated tables; it is a group of its own, the last.
//!
//! The layout is settled when the cluster is made.

use crate::schema::BUCKETS;
use crate::{GroupId, PartitionId};
use std::ops::Range;

/// The bucket of all rows of fully replicated tables, behind the others.
pub const EVERYWHERE: u16 = BUCKETS;

/// The partitions over which rows are spread, and their groups.
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

    /// All groups, the last of them that of the fully replicated tables.
    pub fn groups(self) -> Range<u16> {
        0..self.groups + 1
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

    /// The group of a partition.
    #[inline]
    pub fn group_of(self, partition: u16) -> GroupId {
        GroupId(if partition >= self.spread { self.groups } else { share(partition, self.spread, self.groups) })
    }

    /// The partitions of a group.
    pub fn partitions_of(self, group: GroupId) -> Range<u16> {
        if group.0 >= self.groups {
            return self.spread..self.spread + 1;
        }
        let first = |group: u16| (u32::from(group) * u32::from(self.spread)).div_ceil(u32::from(self.groups)) as u16;
        first(group.0)..first(group.0 + 1)
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
        fn groups_hold_contiguous_partitions_and_each_partition_once(spread in 1u16..200, groups in 1u16..200) {
            let Some(layout) = Layout::new(spread, groups) else { return Ok(()) };
            let mut next = 0;
            for group in layout.groups() {
                let held = layout.partitions_of(GroupId(group));
                prop_assert_eq!(held.start, next);
                prop_assert!(held.end > held.start);
                prop_assert!(held.clone().all(|partition| layout.group_of(partition) == GroupId(group)));
                next = held.end;
            }
            prop_assert_eq!(next, layout.partitions().end);
            let of = |bucket| layout.partition_of(bucket);
            prop_assert!((1..BUCKETS).all(|bucket| of(bucket) >= of(bucket - 1)));
            prop_assert_eq!((of(BUCKETS - 1), of(EVERYWHERE)), (spread - 1, spread));
        }
    }
}
