//! Reads of many keys. In a cluster those of partitions that are led here are read as on a node that is alone; the rest by one operation for each partition, all at the same time.

use super::groups::{Group, Groups};
use super::{Found, Keys, Progress, Sharing, class};
use crate::commit::group::yield_once;
use crate::database::{Database, TableHandle};
use crate::error::NodeError;
use crate::node::Node;
use crate::ops::operation::{Key, Op, Seen};
use crate::table::TableInfo;
use crate::transaction::{TxnOptions, explain};
use futures::future::try_join_all;
use rauk_kernel::{Access, ManyRead, Partition, ReadAt, Stop, Verdict};
use rauk_types::{RowView, Timestamp, View};

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
        let Some(sharing) = Sharing::try_take(node, table, false)? else {
            return Ok(Progress { time: Timestamp::ZERO, finished: false });
        };
        let mut progress = Progress { time: Timestamp::ZERO, finished: true };
        let groups = Groups::new(node, sharing.table, keys, done);
        for mut group in groups.iter() {
            let led = Led::look(node, group.partition);
            if led.is_none() {
                progress.finished &= group.len() == 0;
                continue;
            }
            while group.len() > 0 {
                let read = |p: &mut Partition| read_group(p, node, sharing.table, &groups, &group, keys, done, visit);
                let Ok(held) = node.partitions[usize::from(group.partition)].try_with(read) else {
                    progress.finished = false;
                    break;
                };
                let keys = progress.add(held.map_err(|stop| explain(stop, sharing.table))?);
                group = group.skip(keys);
                led.as_ref().map_or(Ok(()), |led| led.look_again(node, group.partition))?;
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
        let sharing = Sharing::take(node, table, false).await?;
        if node.cluster().is_some() {
            let read = Box::pin(self.read_many_in_cluster(sharing.table, keys, done, visit)).await?;
            return Ok(progress.time.max(read));
        }
        loop {
            progress.finished = true;
            let mut prepared = None;
            let groups = Groups::new(node, sharing.table, keys, done);
            for mut group in groups.iter() {
                while group.len() > 0 {
                    let (groups, members, visit, done) = (&groups, &group, &mut *visit, &mut *done);
                    let read =
                        |p: &mut Partition| read_group(p, node, sharing.table, groups, members, keys, done, visit);
                    let held = node.partitions[usize::from(group.partition)].with(class(group.len()), read).await;
                    let held = held.map_err(|stop| explain(stop, sharing.table))?;
                    prepared = prepared.or(held.read.prepared.map(|txn| (group.partition, txn)));
                    group = group.skip(progress.add(held));
                }
            }
            if progress.finished {
                return Ok(progress.time);
            }
            drop(groups);
            match prepared {
                Some((partition, txn)) => node.wait_decided(partition, txn).await,
                // A commit in the way is being decided on another thread.
                None => yield_once().await,
            }
        }
    }
}

impl Database {
    /// In a cluster: what is left, of all partitions at the same time, wherever they are led.
    async fn read_many_in_cluster(
        &self,
        table: &TableInfo,
        keys: &Keys,
        done: &mut [bool],
        visit: &mut (dyn FnMut(usize, Found<'_>) + Send),
    ) -> Result<Timestamp, NodeError> {
        let groups = Groups::new(&self.node, table, keys, done);
        let read = groups.iter().filter(|group| group.len() > 0).map(|group| {
            let numbers: Vec<usize> = (0..group.len()).map(|i| groups.number(&group, i)).collect();
            self.read_from_afar(table, group.partition, keys, numbers)
        });
        let mut time = Timestamp::ZERO;
        for (numbers, rows, observed) in try_join_all(read).await? {
            time = time.max(observed);
            for (number, row) in numbers.into_iter().zip(rows) {
                done[number] = true;
                visit(number, row.as_ref().map(|(layout, row)| (*layout, RowView::new(&table.schema, *layout, row))));
            }
        }
        Ok(time)
    }

    /// Keys of one partition; gives them back with copies of their rows.
    async fn read_from_afar(
        &self,
        table: &TableInfo,
        partition: u16,
        keys: &Keys,
        numbers: Vec<usize>,
    ) -> Result<(Vec<usize>, Vec<Option<(u16, Vec<u8>)>>, Timestamp), NodeError> {
        let mut txn = self.begin(TxnOptions { autocommit: true, read_only: true, ..TxnOptions::default() });
        let view = txn.read_view(table, true).await?;
        let mut rows = Vec::with_capacity(numbers.len());
        // Large rows come in several answers.
        while rows.len() < numbers.len() {
            let keys = numbers[rows.len()..].iter().map(|number| Key::of(keys.get(*number))).collect();
            let visit = &mut |seen: Seen<'_, '_>| {
                rows.push(seen.row().map(|row| (row.layout(), row.to_whole())));
                Verdict::Keep
            };
            txn.call(table, partition, view, &mut Op::ReadMany { keys, done: 0 }, visit).await?;
        }
        Ok((numbers, rows, txn.observed()))
    }
}

/// What allows reads of a partition here: on a node that is alone, nothing is needed; in a cluster, that it is led here.
enum Led {
    Alone,
    In(View),
}

impl Led {
    fn look(node: &Node, partition: u16) -> Option<Led> {
        match node.cluster() {
            None => Some(Led::Alone),
            Some(cluster) => cluster.may_serve(partition).map(Led::In),
        }
    }

    /// Before the answer (rule 15).
    fn look_again(&self, node: &Node, partition: u16) -> Result<(), NodeError> {
        match (self, node.cluster()) {
            (Led::In(view), Some(cluster)) if cluster.may_answer(partition, *view) => Ok(()),
            (Led::Alone, _) => Ok(()),
            (Led::In(_), _) => Err(NodeError::NoPrimary { partition }),
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
