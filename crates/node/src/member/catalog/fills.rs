//! New ordered indexes are filled before they are switched on: beside everything else, on every process, while the table is locked alone.
//!
//! A DDL job gives the partitions a definition with the new indexes, which are empty and which nobody uses yet. Each process fills them over its own rows in slices, in the task of the
//! intents, so that following the group does not wait for it (rows of other tables go on, on this node and on those that replicate to it); then it tells the job's owner, also that it has
//! no memory for it. The owner switches when all have said so.
//!
//! What a process has not finished when the switch comes (it began later than the owner looked) is filled at once, before the switch is followed, and not refused any more.

use crate::commit::group::yield_once;
use crate::executor::Class;
use crate::node::Node;
use parking_lot::Mutex;
use rauk_kernel::budget::Purpose;
use rauk_kernel::{RowId, Stop};
use rauk_manage::{Catalog, JobId};
use rauk_types::{IndexId, ProcessId, TableId};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

/// Rows put into a new ordered index in one hold of a partition.
const SLICE: usize = 64;

/// Indexes of jobs that are to be filled here.
#[derive(Default)]
pub struct Fills {
    jobs: Mutex<BTreeMap<JobId, Work>>,
}

struct Work {
    owner: ProcessId,
    left: Vec<Item>,
    /// The memory limit that stopped it.
    full: Option<u64>,
}

/// An index in one partition, and where to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub partition: u16,
    pub table: TableId,
    pub index: IndexId,
    pub next: RowId,
}

/// What a process has to say about a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filled {
    pub job: JobId,
    pub owner: ProcessId,
    /// It could not, for this memory limit.
    pub full: Option<u64>,
}

impl Fills {
    /// Forgets jobs that have ended and notes new ones; gives what those had left to do.
    pub(super) fn follow(&self, catalog: &Catalog) -> Vec<Item> {
        let mut jobs = self.jobs.lock();
        let wanted: BTreeMap<JobId, ProcessId> = catalog
            .jobs()
            .filter(|j| !j.definitions.is_empty())
            .filter_map(|j| j.owner.map(|owner| (j.id, owner)))
            .collect();
        let mut left = Vec::new();
        jobs.retain(|job, work| {
            let stays = wanted.contains_key(job);
            if !stays {
                left.append(&mut work.left);
            }
            stays
        });
        for (job, owner) in wanted {
            jobs.entry(job).or_insert(Work { owner, left: Vec::new(), full: None });
        }
        left
    }

    pub(super) fn add(&self, job: JobId, item: Item) {
        let mut jobs = self.jobs.lock();
        jobs.get_mut(&job).expect("the job was noted before").left.push(item);
    }

    /// Whether there is something to do.
    pub(super) fn has_work(&self) -> bool {
        self.jobs.lock().values().any(|w| w.full.is_none() && !w.left.is_empty())
    }

    /// Jobs that are through here.
    pub(super) fn done(&self) -> Vec<Filled> {
        let jobs = self.jobs.lock();
        let done = jobs.iter().filter(|(_, w)| w.full.is_some() || w.left.is_empty());
        done.map(|(job, w)| Filled { job: *job, owner: w.owner, full: w.full }).collect()
    }

    /// Works until there is nothing left to do.
    pub(super) async fn run(&self, weak: Weak<Node>) {
        loop {
            let item = {
                let jobs = self.jobs.lock();
                let works = jobs.iter().filter(|(_, w)| w.full.is_none());
                works.filter_map(|(job, w)| w.left.last().map(|item| (*job, *item))).next()
            };
            let Some((job, item)) = item else { return };
            let Some(node) = weak.upgrade().filter(|n| !n.stopping.load(Ordering::Relaxed)) else { return };
            let built = slice(&node, item, Purpose::Write).await;
            drop(node);
            if let Some(work) = self.jobs.lock().get_mut(&job)
                && let Some(at) = work.left.iter().position(|i| *i == item)
            {
                match built {
                    Ok(Some(next)) => work.left[at].next = next,
                    // The definition is not there any more: the job has ended.
                    Ok(None) | Err(Stop::StaleSchema) => drop(work.left.remove(at)),
                    Err(Stop::MemoryFull { limit }) => work.full = Some(limit),
                    Err(_) => unreachable!("filling an index waits for nobody"),
                }
            }
            // Others of this task have their turn.
            yield_once().await;
        }
    }
}

async fn slice(node: &Arc<Node>, item: Item, purpose: Purpose) -> Result<Option<RowId>, Stop> {
    let Item { partition, table, index, next } = item;
    node.on_partition(partition, Class::Background, |p| p.build_index(table, index, next, SLICE, purpose)).await
}

/// Fills an index now, beyond the memory limit if need be: it is decided.
pub(super) async fn fill_now(node: &Arc<Node>, mut item: Item) {
    loop {
        match slice(node, item, Purpose::Relief).await {
            Ok(Some(next)) => item.next = next,
            Ok(None) => return,
            Err(stop) => {
                node.fatal(&format!("an index that the cluster has decided could not be built: {stop:?}"));
                return;
            }
        }
    }
}
