//! Reads of many keys.

use super::groups::{Group, Groups};
use super::{Found, Keys, Progress, Sharing, class};
use crate::commit::group::yield_once;
use crate::database::{Database, TableHandle};
use crate::error::NodeError;
use crate::node::Node;
use crate::table::TableInfo;
use crate::transaction::explain;
use rauk_kernel::{Access, ManyRead, Partition, ReadAt, Stop};
use rauk_types::Timestamp;

/// What a hold of a partition has come to.
struct Held {
    observed: Timestamp,
    read: ManyRead,
}

impl Database {
    /// Reads rows by primary key: those that `done` does not mark, which are marked then. `visit` is called once for each key, partition by partition, while the partition is
    /// held: it copies what it needs. The answer may be given when [`Progress::time`] is durable. Errors come before the first visit.
    pub fn try_read_many(
        &self,
        table: &TableHandle,
        keys: &Keys,
        done: &mut [bool],
        visit: &mut (dyn FnMut(usize, Found<'_>) + Send),
    ) -> Result<Progress, NodeError> {
        let node = &*self.node;
        let Some(sharing) = Sharing::try_take(node, table)? else {
            return Ok(Progress { time: Timestamp::ZERO, finished: false });
        };
        let mut progress = Progress { time: Timestamp::ZERO, finished: true };
        let groups = Groups::new(node, sharing.0, keys, done);
        for mut group in groups.iter() {
            while group.len() > 0 {
                let read = |p: &mut Partition| read_group(p, node, sharing.0, &groups, &group, keys, done, visit);
                let Ok(held) = node.partitions[usize::from(group.partition)].try_with(read) else {
                    progress.finished = false;
                    break;
                };
                let keys = progress.add(held.map_err(|stop| explain(stop, sharing.0))?);
                group = group.skip(keys);
            }
        }
        Ok(progress)
    }

    /// The same, waiting where it must. Gives the time that must be durable, of the keys that this call has read.
    pub async fn read_many(
        &self,
        table: &TableHandle,
        keys: &Keys,
        done: &mut [bool],
        visit: &mut (dyn FnMut(usize, Found<'_>) + Send),
    ) -> Result<Timestamp, NodeError> {
        let mut progress = self.try_read_many(table, keys, done, visit)?;
        if progress.finished {
            return Ok(progress.time);
        }
        let node = &*self.node;
        let sharing = Sharing::take(node, table).await?;
        loop {
            progress.finished = true;
            let groups = Groups::new(node, sharing.0, keys, done);
            for mut group in groups.iter() {
                while group.len() > 0 {
                    let (groups, members, visit, done) = (&groups, &group, &mut *visit, &mut *done);
                    let read = |p: &mut Partition| read_group(p, node, sharing.0, groups, members, keys, done, visit);
                    let held = node.partitions[usize::from(group.partition)].with(class(group.len()), read).await;
                    let keys = progress.add(held.map_err(|stop| explain(stop, sharing.0))?);
                    group = group.skip(keys);
                }
            }
            if progress.finished {
                return Ok(progress.time);
            }
            // A commit in the way is being decided on another thread.
            drop(groups);
            yield_once().await;
        }
    }
}

impl Progress {
    /// Gives how many keys the hold got through.
    fn add(&mut self, held: Held) -> usize {
        self.time = self.time.max(held.observed);
        self.finished &= held.read.left_out == 0;
        held.read.keys
    }
}

/// One hold.
#[allow(clippy::too_many_arguments)] // the parts of one call
fn read_group(
    partition: &mut Partition,
    node: &Node,
    table: &TableInfo,
    groups: &Groups,
    group: &Group,
    keys: &Keys,
    done: &mut [bool],
    visit: &mut (dyn FnMut(usize, Found<'_>) + Send),
) -> Result<Held, Stop> {
    let mut access = Access {
        txn: None,
        own_before: 0,
        statement: 0,
        at: ReadAt::Newest,
        conflict_after: None,
        horizon: node.recent_horizon(),
        observed: Timestamp::ZERO,
    };
    let probes = &groups.probes(group, keys)[..group.len()];
    let read = partition.read_many(table.schema.id, probes, &mut access, &mut |i, found| {
        let number = groups.number(group, i);
        done[number] = true;
        visit(number, found);
    })?;
    Ok(Held { observed: access.observed, read })
}
