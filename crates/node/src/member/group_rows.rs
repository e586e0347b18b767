//! The partitions of a replication group, as the group's stream reaches them.
//!
//! An entry names buckets, not partitions: which partitions its writes are for, each replica finds by its own layout
//! ([`GroupRows::written`]). What the stream says is queued at each of them before the lock of the stream is given back
//! (rule 50): so nobody who is told of an entry meets rows that have not heard of it.

use super::rows::{RowQueue, RowStep};
use rauk_kernel::slice_partition;
use rauk_log::record::changes;
use rauk_types::{GroupId, Layout};
use smallvec::SmallVec;
use std::ops::Range;

/// Numbers of partitions, each once.
pub type Parts = SmallVec<[u16; 2]>;

/// Which changes of an entry are for one partition.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    pub layout: Layout,
    pub partition: u16,
}

impl Share {
    #[inline]
    pub fn has(&self, bucket: u16) -> bool {
        self.layout.partition_of(bucket) == self.partition
    }
}

/// See the module.
pub struct GroupRows<'a> {
    pub layout: Layout,
    pub group: GroupId,
    /// Of all partitions of the node, by number.
    pub queues: &'a [RowQueue],
    /// Says to whoever enters the partition that there is something in its queue.
    pub announce: &'a dyn Fn(u16),
}

impl GroupRows<'_> {
    pub fn partitions(&self) -> Range<u16> {
        self.layout.partitions_of(self.group)
    }

    /// The partition takes this in when somebody enters it next.
    ///
    /// # Panics
    /// If it is not of this group.
    pub fn push(&self, partition: u16, step: RowStep) {
        assert!(self.partitions().contains(&partition), "partition {partition} is not in group {}", self.group.0);
        self.queues[usize::from(partition)].push(step);
        (self.announce)(partition);
    }

    /// Whether the rows of one of the partitions are so far behind that no more is to be taken from a primary.
    pub fn are_behind(&self) -> bool {
        self.partitions().any(|partition| self.queues[usize::from(partition)].is_full())
    }

    /// The partitions that an entry's writes are for.
    pub fn written(&self, writes: &[u8]) -> Result<Parts, String> {
        written(self.layout, self.group, writes)
    }
}

/// The partitions that the writes of an entry of this group are for. The only one of a group that has no more, whatever
/// is written.
pub fn written(layout: Layout, group: GroupId, writes: &[u8]) -> Result<Parts, String> {
    let all = layout.partitions_of(group);
    if all.len() == 1 {
        return Ok(all.collect());
    }
    let mut parts = Parts::new();
    for change in changes(writes) {
        let bucket = change.map_err(|malformed| malformed.to_string())?.bucket();
        let bucket = bucket.ok_or("an entry's writes hold something that is not a row")?;
        let partition = layout.partition_of(bucket);
        if !all.contains(&partition) {
            return Err(format!("an entry of group {} writes in bucket {bucket}, which is another's", group.0));
        }
        if !parts.contains(&partition) {
            parts.push(partition);
        }
    }
    Ok(parts)
}

/// The partition of the rows of a slice that came with a copy of this group. A slice that does not say it is of the
/// only one.
pub fn copied(layout: Layout, group: GroupId, slice: &[u8]) -> Result<u16, String> {
    let all = layout.partitions_of(group);
    let partition = slice_partition(slice).map_or(all.start, |partition| partition.0);
    match all.contains(&partition) {
        true => Ok(partition),
        false => Err(format!("a copy has rows of partition {partition}, which is another group's")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rauk_log::record::CommitBuilder;
    use rauk_types::TableId;

    fn written(group: u16, buckets: &[u16]) -> Result<Vec<u16>, String> {
        let mut builder = CommitBuilder::default();
        buckets.iter().for_each(|bucket| builder.delete(*bucket, TableId(1), b"key"));
        let layout = Layout::new(6, 2).expect("a layout");
        super::written(layout, GroupId(group), builder.payload()).map(|parts| parts.to_vec())
    }

    #[test]
    fn an_entry_names_buckets_and_each_of_their_partitions_takes_its_share() {
        let third = rauk_types::schema::BUCKETS / 6;
        assert_eq!(written(0, &[]), Ok(vec![]));
        assert_eq!(written(0, &[third, 0, third + 1, 2 * third]), Ok(vec![1, 0, 2]));
        assert_eq!(written(1, &[3 * third]), Ok(vec![3]));
        // The group of the fully replicated tables has one partition.
        assert_eq!(written(2, &[0]), Ok(vec![6]));
        let share = Share { layout: Layout::new(6, 2).expect("a layout"), partition: 1 };
        assert!(share.has(third) && share.has(2 * third - 1) && !share.has(0) && !share.has(2 * third));
    }

    #[test]
    fn a_slice_is_of_one_partition_of_its_group() {
        let of = |group: u16, slice: &[u8]| copied(Layout::new(6, 2).expect("a layout"), GroupId(group), slice);
        assert_eq!((of(0, &[2, 1, 0]), of(1, &[2, 5, 0]), of(2, &[1])), (Ok(1), Ok(5), Ok(6)));
        assert!(of(0, &[2, 3, 0]).unwrap_err().contains("partition 3"));
    }

    #[test]
    fn an_entry_that_writes_in_buckets_of_another_group_is_refused() {
        let other = rauk_types::schema::BUCKETS / 2;
        assert!(written(0, &[0, other]).unwrap_err().contains("which is another's"));
        assert!(written(1, &[0]).is_err());
    }
}
