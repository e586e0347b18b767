//! The work of a DDL statement on many rows, on all cores.
//!
//! The work is cut into parts: a table in a partition. Workers, each on a thread of its own and as many as there are
//! cores, take one part after another ([`Parts`]) until none is left, one has failed, or the statement is told to stop.
//! The statement waits meanwhile, and tells how far they are. Its threads have a lower priority than those that serve
//! clients ([`Runtime::spawn_behind`](crate::runtime::Runtime::spawn_behind)).
//!
//! *What workers do is undone when all of them have ended.* A statement may go away at any moment (KILL, a client that is
//! gone). Then its workers end after the batch that they work on. The undo of the statement waits for that
//! ([`Workers::ended`]), or the workers hold what must not go before ([`Keeps`]).
//!
//! Small tables are not worth a thread ([`is_worth_it`]). While a table is used, copies leave half of the cores to its
//! users ([`Worker::leave_cores`]).

use crate::error::NodeError;
use crate::locks::metadata::DdlWait;
use crate::member::events::Event;
use crate::node::Node;
use crate::table::TableInfo;
use futures::future::{Either, select};
use parking_lot::Mutex;
use std::any::Any;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// How often a statement tells how far its workers are.
const TELL: Duration = Duration::from_millis(100);

/// How many workers a statement has for so many parts.
fn threads(node: &Node, wait: DdlWait<'_>, parts: usize) -> usize {
    node.runtime.cores().min(wait.threads).min(parts)
}

/// Whether a statement gives work on so many rows, in so many parts, to workers.
pub(super) fn is_worth_it(node: &Node, wait: DdlWait<'_>, rows: u64, parts: usize) -> bool {
    rows >= node.config.parallel_ddl_rows && threads(node, wait, parts) > 1
}

/// What is left to do, for workers that take one part after another.
pub(super) struct Parts<P>(Mutex<VecDeque<P>>);

impl<P> Parts<P> {
    pub fn new(parts: impl IntoIterator<Item = P>) -> Arc<Parts<P>> {
        Arc::new(Parts(Mutex::new(parts.into_iter().collect())))
    }

    /// `None`: nothing is left, or the worker is to end.
    pub fn next(&self, worker: &Worker) -> Option<P> {
        if worker.is_to_end() { None } else { self.0.lock().pop_front() }
    }
}

/// What must not go before all workers have ended.
pub(super) type Keeps = Option<Arc<dyn Any + Send + Sync>>;

/// The workers of one statement.
#[derive(Clone, Default)]
pub(super) struct Workers(Arc<State>);

#[derive(Default)]
struct State {
    /// Workers that have not ended.
    at_work: AtomicUsize,
    to_end: AtomicBool,
    /// What they have done and the statement has not told.
    done: AtomicU64,
    /// The first failure.
    failed: Mutex<Option<NodeError>>,
    /// A worker has ended.
    changed: Event,
    /// When users were last seen at the table, in microseconds of the node's clock.
    used: AtomicU64,
}

/// Users that were seen within this time are taken to come again.
const USED: Duration = Duration::from_millis(20);

/// What a worker knows of its statement.
pub(super) struct Worker {
    state: Arc<State>,
    number: usize,
}

impl Worker {
    /// Another one has failed, or the statement has ended.
    pub fn is_to_end(&self) -> bool {
        self.state.to_end.load(Ordering::Relaxed)
    }

    /// See [`DdlWait::has_done`].
    pub fn has_done(&self, more: u64) {
        self.state.done.fetch_add(more, Ordering::Relaxed);
    }

    /// While a table is used, half of the cores are left to its users: they wait for partitions that workers hold, whatever the
    /// priority of these is.
    pub async fn leave_cores(&self, node: &Node, table: &TableInfo) {
        let stays = self.number < (node.runtime.cores() / 2).max(1);
        loop {
            let now = node.runtime.now().as_micros() as u64;
            if table.shared.lock.has_users() {
                self.state.used.store(now, Ordering::Relaxed);
            }
            let used = self.state.used.load(Ordering::Relaxed);
            let quiet = used == 0 || now.saturating_sub(used) >= USED.as_micros() as u64;
            if stays || quiet || self.is_to_end() || node.check_running().is_err() {
                return;
            }
            node.runtime.sleep(USED / 4).await;
        }
    }
}

/// Until it is dropped a worker is at work.
struct AtWork {
    state: Arc<State>,
    keeps: Keeps,
    /// What has come of its work.
    result: Option<Result<(), NodeError>>,
}

impl Drop for AtWork {
    fn drop(&mut self) {
        // Without a result it has panicked, and nobody knows what it has not done.
        let ended_early = || Err(NodeError::Fatal("a worker of a DDL statement has ended early".into()));
        if let Err(error) = self.result.take().unwrap_or_else(ended_early) {
            self.state.failed.lock().get_or_insert(error);
            self.state.to_end.store(true, Ordering::Relaxed);
        }
        self.keeps = None;
        self.state.at_work.fetch_sub(1, Ordering::SeqCst);
        self.state.changed.fire();
    }
}

impl Workers {
    /// Runs a worker on each core, as far as so many parts and the statement want them, and waits until all have ended;
    /// gives the first error. Dropped before, it tells them to end.
    pub async fn run<F>(
        &self,
        node: &Arc<Node>,
        wait: DdlWait<'_>,
        parts: usize,
        keeps: Keeps,
        work: impl Fn(Worker) -> F,
    ) -> Result<(), NodeError>
    where
        F: Future<Output = Result<(), NodeError>> + Send + 'static,
    {
        let state = &self.0;
        assert_eq!(state.at_work.load(Ordering::SeqCst), 0, "a statement has one set of workers at a time");
        for number in 0..threads(node, wait, parts) {
            state.at_work.fetch_add(1, Ordering::SeqCst);
            let at_work = AtWork { state: state.clone(), keeps: keeps.clone(), result: None };
            let work = work(Worker { state: state.clone(), number });
            let task = async move {
                // Dropped behind what the worker has.
                let mut at_work = at_work;
                at_work.result = Some(work.await);
            };
            node.runtime.spawn_behind("ddl", Box::pin(task));
        }
        let stops = StopsThem(state);
        loop {
            let number = state.changed.number();
            wait.has_done(state.done.swap(0, Ordering::Relaxed));
            if state.at_work.load(Ordering::SeqCst) == 0 {
                break;
            }
            let changed = pin!(state.changed.after(number));
            match select(changed, node.runtime.sleep(TELL)).await {
                Either::Left(_) | Either::Right(_) => {}
            }
        }
        std::mem::forget(stops);
        match state.failed.lock().take() {
            Some(error) => Err(error),
            // They end without an error and before their work is done where the node stops.
            None => node.check_running(),
        }
    }

    pub fn are_at_work(&self) -> bool {
        self.0.at_work.load(Ordering::SeqCst) > 0
    }

    /// Resolves when none is at work.
    pub async fn ended(&self) {
        loop {
            let number = self.0.changed.number();
            if !self.are_at_work() {
                return;
            }
            self.0.changed.after(number).await;
        }
    }
}

struct StopsThem<'a>(&'a State);

impl Drop for StopsThem<'_> {
    fn drop(&mut self) {
        self.0.to_end.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker() -> (Workers, Worker) {
        let workers = Workers::default();
        let worker = Worker { state: workers.0.clone(), number: 0 };
        (workers, worker)
    }

    #[test]
    fn parts_are_given_out_once_and_not_to_those_who_are_to_end() {
        let (workers, worker) = worker();
        let parts = Parts::new([1, 2, 3]);
        assert_eq!((parts.next(&worker), parts.next(&worker)), (Some(1), Some(2)));
        drop(StopsThem(&workers.0));
        assert_eq!(parts.next(&worker), None);
    }

    #[test]
    fn a_worker_without_a_result_is_a_failure_and_ends_the_others() {
        let (workers, worker) = worker();
        workers.0.at_work.store(2, Ordering::SeqCst);
        let keeps: Keeps = Some(Arc::new(()));
        let kept = Arc::downgrade(keeps.as_ref().unwrap());
        let at_work = |result| AtWork { state: workers.0.clone(), keeps: keeps.clone(), result };
        drop(at_work(Some(Ok(()))));
        assert!(workers.are_at_work() && !worker.is_to_end() && workers.0.failed.lock().is_none());
        let second = at_work(None);
        drop(second);
        assert!(!workers.are_at_work() && worker.is_to_end());
        assert!(matches!(&*workers.0.failed.lock(), Some(NodeError::Fatal(_))));
        drop(keeps);
        assert!(kept.upgrade().is_none(), "a worker that has ended keeps nothing");
    }
}
