//! Which group each partition is in, as the streams of this process have come to it.
//!
//! The control plane decides that a group splits, and each process carries it out when its stream of the parent has come
//! so far, under the lock of that stream ([`super::slot`]). Whoever has the lock of a group's stream therefore reads
//! here what counts; whoever has it not gets a hint, and looks again under the lock ([`super::Cluster::at_slot_of`]).
//! Loads only: every operation on a row asks here.

use rauk_types::{GroupId, Groups, Split};
use std::ops::Range;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

/// There are no more groups than partitions, so there is room for all that can come.
pub struct GroupTable {
    /// By partition.
    of: Box<[AtomicU16]>,
    /// By group: its partitions, and those that it had when it began.
    held: Box<[[AtomicU32; 2]]>,
    count: AtomicU16,
}

fn pack(range: &Range<u16>) -> u32 {
    u32::from(range.start) << 16 | u32::from(range.end)
}

fn unpack(packed: u32) -> Range<u16> {
    (packed >> 16) as u16..packed as u16
}

impl GroupTable {
    /// `first`: the groups that the cluster began with. `now`: those that there are.
    pub fn new(first: &Groups, now: &Groups, splits: impl IntoIterator<Item = Split>) -> GroupTable {
        let partitions: usize = now.all().map(|group| now.partitions_of(group).len()).sum();
        let all: Vec<Range<u16>> = first.all().map(|group| first.partitions_of(group)).collect();
        let table = GroupTable {
            of: (0..partitions as u16).map(|partition| AtomicU16::new(first.group_of(partition).0)).collect(),
            held: (0..partitions)
                .map(|group| all.get(group).map_or(0, pack))
                .map(|packed| [AtomicU32::new(packed), AtomicU32::new(packed)])
                .collect(),
            count: AtomicU16::new(all.len() as u16),
        };
        splits.into_iter().for_each(|split| table.split(split));
        assert!(table.all().eq(now.all()), "the splits make other groups than there are");
        table
    }

    /// Their numbers.
    pub fn all(&self) -> impl Iterator<Item = GroupId> + use<> {
        (0..self.count.load(Ordering::Acquire)).map(GroupId)
    }

    pub fn has(&self, group: GroupId) -> bool {
        group.0 < self.count.load(Ordering::Acquire)
    }

    /// # Panics
    /// If there is no such partition.
    #[inline]
    pub fn group_of(&self, partition: u16) -> GroupId {
        GroupId(self.of[usize::from(partition)].load(Ordering::Acquire))
    }

    /// The partitions of a group; none, if there is no such group.
    pub fn partitions_of(&self, group: GroupId) -> Range<u16> {
        self.held.get(usize::from(group.0)).map_or(0..0, |held| unpack(held[0].load(Ordering::Acquire)))
    }

    /// Those that it had when it began: what was said of the group before it split may be of any of them.
    pub fn reach_of(&self, group: GroupId) -> Range<u16> {
        self.held.get(usize::from(group.0)).map_or(0..0, |held| unpack(held[1].load(Ordering::Acquire)))
    }

    /// Under the lock of the parent's stream: the next group is its heir.
    ///
    /// # Panics
    /// If the parent cannot be split there: the control plane has looked.
    pub fn split(&self, Split { parent, at }: Split) {
        let (heir, held) = (self.count.load(Ordering::Acquire), self.partitions_of(parent));
        assert!(held.start < at && at < held.end, "group {} has partitions {held:?} and splits at {at}", parent.0);
        let given = at..held.end;
        self.held[usize::from(heir)].iter().for_each(|range| range.store(pack(&given), Ordering::Release));
        self.count.store(heir + 1, Ordering::Release);
        self.held[usize::from(parent.0)][0].store(pack(&(held.start..at)), Ordering::Release);
        self.of[usize::from(at)..usize::from(given.end)].iter().for_each(|of| of.store(heir, Ordering::Release));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rauk_types::Layout;

    #[test]
    fn it_says_what_the_control_plane_says() {
        let layout = Layout::new(8, 2).expect("a layout");
        let splits = [(0, 2), (1, 6), (3, 3), (0, 1)].map(|(parent, at)| Split { parent: GroupId(parent), at });
        let first = Groups::first(layout);
        for count in 0..=splits.len() {
            let now = Groups::new(layout, splits[..count].iter().copied()).expect("they fit");
            let table = GroupTable::new(&first, &now, splits[..count].iter().copied());
            assert!(table.all().eq(now.all()));
            assert!(now.all().all(|group| table.partitions_of(group) == now.partitions_of(group)));
            assert!(layout.partitions().all(|partition| table.group_of(partition) == now.group_of(partition)));
            assert_eq!((table.has(GroupId(2 + count as u16)), table.has(GroupId(3 + count as u16))), (true, false));
            assert_eq!(table.reach_of(GroupId(0)), 0..4, "as it began");
        }
    }
}
