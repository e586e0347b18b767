//! New ordered indexes are filled before they are switched on: beside everything else, on every process, while the table is locked alone.
//!
//! A DDL job gives the partitions a definition with the new indexes, which are empty and which nobody uses yet. Each process fills them over its own rows in slices, in the task of the
//! intents, so that following the group does not wait for it (rows of other tables go on, on this node and on those that replicate to it); then it tells the job's owner, also that it has
//! no memory for it. The owner switches when all have said so.
//!
//! What a process has not finished when the switch comes (it began later than the owner looked) is filled at once, before the switch is followed, and not refused any more.

use super::intents::Intents;
use crate::commit::group::yield_once;
use crate::ddl::pace::Pace;
use crate::executor::Class;
use crate::node::Node;
use futures::channel::oneshot;
use futures::future::join_all;
use parking_lot::Mutex;
use rauk_kernel::budget::Purpose;
use rauk_kernel::{RowId, Stop};
use rauk_manage::{Catalog, JobId, JobLimits};
use rauk_types::{IndexId, ProcessId, TableId};
use std::collections::{BTreeMap, BTreeSet};
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
    limits: JobLimits,
    pace: Arc<Pace>,
    left: Vec<Left>,
    /// The memory limit that stopped it.
    full: Option<u64>,
}

struct Left {
    item: Item,
    /// Somebody works on it.
    taken: bool,
}

impl Work {
    fn can_go_on(&self) -> bool {
        self.full.is_none() && self.left.iter().any(|left| !left.taken)
    }
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
        let wanted: BTreeMap<JobId, (ProcessId, JobLimits)> = catalog
            .jobs()
            .filter(|j| !j.definitions.is_empty())
            .filter_map(|j| j.owner.map(|owner| (j.id, (owner, j.limits))))
            .collect();
        let mut left = Vec::new();
        jobs.retain(|job, work| {
            let stays = wanted.contains_key(job);
            if !stays {
                left.extend(work.left.drain(..).map(|left| left.item));
            }
            stays
        });
        for (job, (owner, limits)) in wanted {
            let pace = || Pace::new(limits.rows_per_second);
            jobs.entry(job).or_insert_with(|| Work { owner, limits, pace: pace(), left: Vec::new(), full: None });
        }
        left
    }

    pub(super) fn add(&self, job: JobId, item: Item) {
        let mut jobs = self.jobs.lock();
        jobs.get_mut(&job).expect("the job was noted before").left.push(Left { item, taken: false });
    }

    /// Whether there is something to do.
    pub(super) fn has_work(&self) -> bool {
        self.jobs.lock().values().any(Work::can_go_on)
    }

    /// Jobs that are through here.
    pub(super) fn done(&self) -> Vec<Filled> {
        let jobs = self.jobs.lock();
        let done = jobs.iter().filter(|(_, w)| w.full.is_some() || w.left.is_empty());
        done.map(|(job, w)| Filled { job: *job, owner: w.owner, full: w.full }).collect()
    }

    /// Works until there is nothing left to do.
    pub(super) async fn run(intents: Arc<Intents>, weak: Weak<Node>) {
        let threads = weak.upgrade().map_or(0, |node| intents.fills.threads(&node));
        let begin = |_| {
            let (end, ended) = oneshot::channel::<()>();
            let (intents, of_task) = (intents.clone(), weak.clone());
            let task = async move {
                let _end = end;
                intents.fills.work(of_task).await;
            };
            if let Some(node) = weak.upgrade() {
                node.runtime.spawn_behind("fill", Box::pin(task));
            }
            ended
        };
        let others: Vec<oneshot::Receiver<()>> = (1..threads).map(begin).collect();
        intents.fills.work(weak).await;
        join_all(others).await;
    }

    /// How many threads are worth what there is to do.
    fn threads(&self, node: &Arc<Node>) -> usize {
        let (left, most): (Vec<TableId>, u32) = {
            let jobs = self.jobs.lock();
            let left = jobs.values().flat_map(|work| &work.left).map(|left| left.item.table).collect();
            (left, jobs.values().map(|work| work.limits.threads).min().unwrap_or(u32::MAX))
        };
        let is_large = |table: &TableId| {
            let table = node.tables.by_id(*table);
            table.is_some_and(|table| node.rows_of(&table) >= node.config.parallel_ddl_rows)
        };
        let tables: BTreeSet<TableId> = left.iter().copied().collect();
        if !tables.iter().any(is_large) {
            return 1;
        }
        node.runtime.cores().min(left.len()).min(most as usize)
    }

    async fn work(&self, weak: Weak<Node>) {
        loop {
            let Some((job, item, pace)) = self.take() else { return };
            let Some(node) = weak.upgrade().filter(|n| !n.stopping.load(Ordering::Relaxed)) else { return };
            let built = slice(&node, item, Purpose::Write).await;
            let is_over = || !self.jobs.lock().contains_key(&job);
            pace.rest(&node, SLICE as u64, &is_over).await;
            drop(node);
            if let Some(work) = self.jobs.lock().get_mut(&job)
                && let Some(at) = work.left.iter().position(|left| left.item == item)
            {
                match built {
                    Ok(Some(next)) => work.left[at] = Left { item: Item { next, ..item }, taken: false },
                    // The definition is not there any more: the job has ended.
                    Ok(None) | Err(Stop::StaleSchema) => drop(work.left.swap_remove(at)),
                    Err(Stop::MemoryFull { limit }) => work.full = Some(limit),
                    Err(_) => unreachable!("filling an index waits for nobody"),
                }
            }
            // Others of this task have their turn.
            yield_once().await;
        }
    }

    fn take(&self) -> Option<(JobId, Item, Arc<Pace>)> {
        let mut jobs = self.jobs.lock();
        let (job, work) = jobs.iter_mut().find(|(_, work)| work.can_go_on())?;
        let left = work.left.iter_mut().rev().find(|left| !left.taken)?;
        left.taken = true;
        Some((*job, left.item, work.pace.clone()))
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
