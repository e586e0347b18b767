//! Keys by partition, in groups that one hold takes.

use super::Keys;
use crate::node::Node;
use crate::table::TableInfo;
use rauk_kernel::{MANY, Probe};
use rauk_types::key;
use std::cell::Cell;
use std::ops::Range;

/// The keys of a call that are still to be seen to, sorted by partition; those of one partition in the order of the call.
pub struct Groups(Vectors);

/// They go from call to call through their thread, so that nothing is allocated once they have grown.
#[derive(Default)]
struct Vectors {
    /// By key, as in the call.
    places: Vec<Place>,
    /// Numbers of keys, by partition.
    order: Vec<u32>,
    /// By partition: where its keys end in `order`.
    ends: Vec<u32>,
}

/// Where a key belongs.
#[derive(Clone, Copy, Default)]
struct Place {
    hash: u64,
    bucket: u16,
    partition: u16,
}

/// Keys of one partition for one hold: a piece of `order`.
#[derive(Clone, Debug)]
pub struct Group {
    pub partition: u16,
    members: Range<usize>,
}

impl Group {
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Without its first keys.
    pub fn skip(&self, keys: usize) -> Group {
        Group { partition: self.partition, members: self.members.start + keys..self.members.end }
    }
}

thread_local! {
    static SPARE: Cell<Vectors> = Cell::default();
}

impl Groups {
    pub fn new(node: &Node, table: &TableInfo, keys: &Keys, done: &[bool]) -> Groups {
        assert_eq!(keys.len(), done.len(), "one mark for each key");
        let mut groups = SPARE.take();
        let partitions = usize::from(node.partition_count());
        groups.places.clear();
        groups.ends.clear();
        groups.ends.resize(partitions, 0);
        for (i, done) in done.iter().enumerate() {
            let key = keys.get(i);
            let hash = key::hash(key);
            let bucket = table.route.bucket_of_key(key, hash);
            let partition = node.partition_of(bucket);
            groups.places.push(Place { hash, bucket, partition });
            groups.ends[usize::from(partition)] += u32::from(!done);
        }
        let mut start = 0;
        for end in &mut groups.ends {
            start += std::mem::replace(end, start);
        }
        groups.order.clear();
        groups.order.resize(start as usize, 0);
        for (i, place) in groups.places.iter().enumerate().filter(|(i, _)| !done[*i]) {
            // What was the start becomes the end.
            let next = &mut groups.ends[usize::from(place.partition)];
            groups.order[*next as usize] = i as u32;
            *next += 1;
        }
        Groups(groups)
    }

    /// The groups, partition by partition.
    pub fn iter(&self) -> impl Iterator<Item = Group> {
        self.0.ends.iter().enumerate().flat_map(|(partition, &end)| {
            let start = if partition == 0 { 0 } else { self.0.ends[partition - 1] };
            let (start, end) = (start as usize, end as usize);
            let partition = partition as u16;
            (start..end).step_by(MANY).map(move |s| Group { partition, members: s..(s + MANY).min(end) })
        })
    }

    /// The number that the group's `i`-th key has in the call.
    pub fn number(&self, group: &Group, i: usize) -> usize {
        self.0.order[group.members.start + i] as usize
    }

    /// The bucket of the group's `i`-th key.
    pub fn bucket(&self, group: &Group, i: usize) -> u16 {
        self.0.places[self.number(group, i)].bucket
    }

    /// What the partition is asked for: as many as the group has, then empty ones.
    pub fn probes<'k>(&self, group: &Group, keys: &'k Keys) -> [Probe<'k>; MANY] {
        let mut probes = [Probe::default(); MANY];
        for (probe, &number) in probes.iter_mut().zip(&self.0.order[group.members.clone()]) {
            let number = number as usize;
            *probe = Probe { key: keys.get(number), hash: self.0.places[number].hash };
        }
        probes
    }
}

/// The most that is worth keeping for the next call.
const KEPT: usize = 64 << 10;

impl Drop for Groups {
    fn drop(&mut self) {
        let vectors = std::mem::take(&mut self.0);
        if vectors.places.capacity() <= KEPT {
            // A second one of this thread is lost, nothing else; so is one of a thread that is ending.
            let _ = SPARE.try_with(|spare| spare.set(vectors));
        }
    }
}
