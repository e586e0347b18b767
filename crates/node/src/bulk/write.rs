//! Writes of many keys, each an own transaction; those of one hold share a commit time and a redo record.
//!
//! In a hold: decide and check (`Partition::prepare_many`), append the record, install. Nobody sees the partition in between, so what is visible is in the log, as
//! with any commit, and a failure before the append has changed nothing. A checkpoint needs no notice of such commits either: see `commit::inflight`.

use super::groups::{Group, Groups};
use super::{Found, Keys, Progress, Sharing, Unwritten, Verb, class};
use crate::database::{Database, TableHandle};
use crate::error::NodeError;
use crate::node::Node;
use crate::table::TableInfo;
use crate::transaction::{append_record, explain, failed_append};
use rauk_kernel::{Access, Partition, Prepared, ReadAt, Refusal, Write};
use rauk_log::record::CommitBuilder;
use rauk_types::Timestamp;
use std::cell::RefCell;

thread_local! {
    /// What is being written, and its record: kept from call to call.
    static WRITES: RefCell<(Prepared, CommitBuilder)> = RefCell::default();
}

type Change<'a> = dyn FnMut(usize, Found<'_>, &mut Vec<u8>) -> Verb + Send + 'a;

impl Database {
    /// Writes rows by primary key, each an own transaction: those that `done` does not mark, which are marked then. `change` gets the newest committed row and, to put a row,
    /// encodes the new one into the (empty) buffer; it is called at most once for each key, while the partition is held. A key that is met twice is written twice, in
    /// the order of `keys`. Keys that need a transaction, and keys whose write failed, are added to `unwritten` (and are done). The time is that of the newest
    /// commit made or seen. Errors come before the first change, or when the node has lost its log.
    pub fn try_write_many(
        &self,
        table: &TableHandle,
        keys: &Keys,
        done: &mut [bool],
        unwritten: &mut Unwritten,
        change: &mut (dyn FnMut(usize, Found<'_>, &mut Vec<u8>) -> Verb + Send),
    ) -> Result<Progress, NodeError> {
        let node = &*self.node;
        let Some(sharing) = Sharing::try_take(node, table, true)? else {
            return Ok(Progress { time: Timestamp::ZERO, finished: false });
        };
        if stands_alone(node, sharing.table) {
            return try_groups(node, sharing.table, keys, done, unwritten, change);
        }
        leave_all(done, unwritten);
        Ok(Progress { time: Timestamp::ZERO, finished: true })
    }

    /// The same, waiting for partitions that are busy. Does not wait for the disk.
    pub async fn write_many(
        &self,
        table: &TableHandle,
        keys: &Keys,
        done: &mut [bool],
        unwritten: &mut Unwritten,
        change: &mut (dyn FnMut(usize, Found<'_>, &mut Vec<u8>) -> Verb + Send),
    ) -> Result<Timestamp, NodeError> {
        let progress = self.try_write_many(table, keys, done, unwritten, change)?;
        let mut time = progress.time;
        if progress.finished {
            return Ok(time);
        }
        let node = &*self.node;
        let sharing = Sharing::take(node, table, true).await?;
        if !stands_alone(node, sharing.table) {
            leave_all(done, unwritten);
            return Ok(time);
        }
        let groups = Groups::new(node, sharing.table, keys, done);
        for mut group in groups.iter() {
            while group.len() > 0 {
                let call = Call { node, table: sharing.table, groups: &groups, group: &group, keys };
                let (done, unwritten, change) = (&mut *done, &mut *unwritten, &mut *change);
                let write = |p: &mut Partition| call.write(p, done, unwritten, change);
                let held = node.partitions[usize::from(group.partition)].with(class(group.len()), write).await?;
                time = time.max(held.time);
                group = group.skip(held.keys);
            }
        }
        Ok(time)
    }
}

/// Whether a row is all that a write of it concerns. In a cluster what commits is replicated, which these writes do not do.
fn stands_alone(node: &Node, table: &TableInfo) -> bool {
    !table.has_entries() && !table.is_related() && node.cluster().is_none()
}

/// All that is not done needs transactions.
fn leave_all(done: &mut [bool], unwritten: &mut Unwritten) {
    for (i, done) in done.iter_mut().enumerate().filter(|(_, done)| !**done) {
        *done = true;
        unwritten.left.push(i);
    }
}

fn try_groups(
    node: &Node,
    table: &TableInfo,
    keys: &Keys,
    done: &mut [bool],
    unwritten: &mut Unwritten,
    change: &mut Change<'_>,
) -> Result<Progress, NodeError> {
    let mut progress = Progress { time: Timestamp::ZERO, finished: true };
    let groups = Groups::new(node, table, keys, done);
    for mut group in groups.iter() {
        while group.len() > 0 {
            let call = Call { node, table, groups: &groups, group: &group, keys };
            let write = |p: &mut Partition| call.write(p, done, unwritten, change);
            let Ok(held) = node.partitions[usize::from(group.partition)].try_with(write) else {
                progress.finished = false;
                break;
            };
            let held = held?;
            progress.time = progress.time.max(held.time);
            group = group.skip(held.keys);
        }
    }
    Ok(progress)
}

/// What a hold of a partition has come to.
struct Held {
    time: Timestamp,
    /// Keys that it got through.
    keys: usize,
}

struct Call<'a> {
    node: &'a Node,
    table: &'a TableInfo,
    groups: &'a Groups,
    group: &'a Group,
    keys: &'a Keys,
}

impl Call<'_> {
    /// One hold, one record.
    fn write(
        &self,
        partition: &mut Partition,
        done: &mut [bool],
        unwritten: &mut Unwritten,
        change: &mut Change<'_>,
    ) -> Result<Held, NodeError> {
        WRITES.with_borrow_mut(|(prepared, record)| {
            let id = self.table.schema.id;
            let mut access = Access {
                txn: None,
                own_before: 0,
                statement: 0,
                at: ReadAt::Newest,
                conflict_after: None,
                horizon: self.node.recent_horizon(),
                observed: Timestamp::ZERO,
            };
            let probes = &self.groups.probes(self.group, self.keys)[..self.group.len()];
            let number = |i: usize| self.groups.number(self.group, i);
            let keys = partition
                .prepare_many(id, probes, &mut access, prepared, &mut |i, found, row| change(number(i), found, row))
                .map_err(|stop| explain(stop, self.table))?;
            (0..keys).for_each(|i| done[number(i)] = true);
            for &(i, why) in &prepared.refused {
                match why {
                    Refusal::Left => unwritten.left.push(number(i)),
                    Refusal::Full { limit } => {
                        let error = explain(rauk_kernel::Stop::MemoryFull { limit }, self.table);
                        unwritten.failed.push((number(i), error));
                    }
                }
            }
            let mut held = Held { time: access.observed, keys };
            if prepared.is_empty() {
                return Ok(held);
            }
            record.clear();
            for (i, write) in prepared.writes(probes) {
                let bucket = self.groups.bucket(self.group, i);
                match write {
                    Write::Put { layout, row } => record.put(bucket, id, layout, row),
                    Write::Sparse { layout, row } => record.put_sparse(bucket, id, layout, row),
                    Write::Delete { key } => record.delete(bucket, id, key),
                }
            }
            match append_record(self.node, prepared.len() as u64, record, |_| {}) {
                Ok(appended) => {
                    partition.install_many(id, probes, prepared, appended.time, self.node.fresh_horizon());
                    held.time = appended.time;
                }
                Err(error) => {
                    let error = failed_append(self.node, error);
                    if self.node.check_running().is_err() {
                        prepared.forget();
                        return Err(error);
                    }
                    unwritten.failed.extend(prepared.writes(probes).map(|(i, _)| (number(i), error.clone())));
                    prepared.forget();
                }
            }
            Ok(held)
        })
    }
}
