//! A process of the simulation: the node's [`rauk_node::Runtime`], with tasks, a clock and perhaps a disk of its own, on an [`Executor`] that it may share with others.
//!
//! Every life of a node gets a new one. The simulator spawns its clients beside the node's background tasks. The life is over when the node calls `fatal` or the disk stops: from then on
//! nothing of the process is polled any more, and [`SimRuntime::kill`] drops all its tasks where they stand.
use crate::clock::SimClock;
use crate::disk::SimDisk;
use crate::executor::{Drift, Executor, Process};
use rauk_node::runtime::{BoxFuture, Runtime};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

pub use crate::executor::Stopped;

/// Clones are the same process.
#[derive(Clone)]
pub struct SimRuntime {
    executor: Executor,
    process: Arc<Process>,
}

impl SimRuntime {
    /// A process that is alone, with an executor of its own.
    pub fn new(seed: u64, clock: SimClock, disk: SimDisk) -> SimRuntime {
        Executor::new(seed, clock).process(Some(disk), Drift::default())
    }

    pub(crate) fn of(executor: Executor, process: Arc<Process>) -> SimRuntime {
        SimRuntime { executor, process }
    }

    /// The node's side of it.
    pub fn handle(&self) -> Arc<dyn Runtime> {
        Arc::new(self.clone())
    }

    pub fn executor(&self) -> &Executor {
        &self.executor
    }

    /// Number of the process, counted by the executor.
    pub fn number(&self) -> u32 {
        self.process.number
    }

    /// Why the life is over, if it is.
    pub fn crashed(&self) -> Option<String> {
        self.process.crashed()
    }

    /// What `fatal` was called with.
    pub fn fatal_reason(&self) -> Option<String> {
        self.process.fatal.lock().clone()
    }

    /// A number that stands for the order in which everything ran.
    pub fn trace(&self) -> u64 {
        self.executor.trace()
    }

    /// Runs tasks and timers until `done` holds or this process crashes; it is asked between any two polls.
    pub fn run_until(&self, mut done: impl FnMut() -> bool) -> Stopped {
        loop {
            if let Some(why) = self.crashed() {
                return Stopped::Crashed(why);
            }
            if done() {
                return Stopped::Done;
            }
            if !self.executor.step() {
                return self.executor.stuck();
            }
        }
    }

    /// Ends the process: its tasks are dropped. Transactions in them roll back in memory, and reach no disk and no network.
    pub fn kill(&self) {
        if let Some(disk) = &self.process.disk {
            disk.stop();
            disk.set_stall(None);
        }
        self.executor.kill(&self.process);
    }

    /// Slow operations of its disk hold this process up, and nobody else.
    pub fn stall_by_disk(&self) {
        let runtime = self.clone();
        if let Some(disk) = &self.process.disk {
            disk.set_stall(Some(Arc::new(move |time| runtime.stall(time))));
        }
    }

    /// Its tasks are not polled until [`SimRuntime::resume`].
    pub fn pause(&self) {
        self.executor.pause(&self.process);
    }

    pub fn resume(&self) {
        self.executor.resume(&self.process);
    }

    /// It does nothing for so long: it waits for its disk. Gives until when (in simulated time).
    pub fn stall(&self, time: Duration) -> Duration {
        self.executor.stall(&self.process, time)
    }

    /// Neither ended nor paused.
    pub fn is_running(&self) -> bool {
        self.executor.is_running(&self.process)
    }

    /// Not ended, perhaps paused.
    pub fn is_alive(&self) -> bool {
        self.executor.is_alive(&self.process)
    }

    /// Simulated time as this process meets it (not by its own clock).
    pub fn simulated_now(&self) -> Duration {
        self.executor.time_of(&self.process)
    }

    /// Spawns a task of the simulator's.
    pub fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        Runtime::spawn(self, name, Box::pin(task));
    }
}

/// As many tasks work on a DDL statement at the same time.
const CORES: usize = 3;

struct Sleep {
    runtime: SimRuntime,
    /// By the process's clock.
    until: Duration,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.runtime.now() >= self.until {
            return Poll::Ready(());
        }
        let at = self.runtime.process.drift.simulated(self.until);
        self.runtime.executor.wake_at(at, context.waker().clone());
        Poll::Pending
    }
}

impl Runtime for SimRuntime {
    fn now(&self) -> Duration {
        self.executor.look();
        self.process.drift.local(self.simulated_now())
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<()> {
        let until = self.now() + duration;
        Box::pin(Sleep { runtime: self.clone(), until })
    }

    fn spawn(&self, name: &'static str, task: BoxFuture<()>) {
        self.executor.spawn(&self.process, name, task);
    }

    fn cores(&self) -> usize {
        CORES
    }

    fn run_all(&self, jobs: Vec<Box<dyn FnOnce() + Send>>) {
        self.executor.run_all(jobs);
    }

    fn random(&self) -> u64 {
        self.executor.random()
    }

    fn fatal(&self, reason: &str) {
        self.process.fatal.lock().get_or_insert_with(|| reason.to_string());
        if let Some(disk) = &self.process.disk {
            disk.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;

    fn runtime(seed: u64) -> SimRuntime {
        let clock = SimClock::default();
        SimRuntime::new(seed, clock.clone(), SimDisk::new(seed, clock))
    }

    /// Three sleepers note when they ran.
    fn history(seed: u64) -> (Vec<(u64, u64)>, u64) {
        let runtime = runtime(seed);
        let notes = Arc::new(Mutex::new(Vec::new()));
        for task in 0..3u64 {
            let (handle, notes) = (runtime.handle(), notes.clone());
            runtime.spawn("sleeper", async move {
                for round in 1..=4 {
                    handle.sleep(Duration::from_millis(10 * round)).await;
                    notes.lock().push((task, handle.now().as_millis() as u64));
                }
            });
        }
        assert_eq!(runtime.run_until(|| notes.lock().len() == 12), Stopped::Done);
        let notes = notes.lock().clone();
        (notes, runtime.trace())
    }

    #[test]
    fn order_is_random_by_seed_and_time_is_kept() {
        let (notes, trace) = history(1);
        assert!(notes.iter().zip([10, 30, 60, 100].iter().flat_map(|at| [at; 3])).all(|(note, at)| note.1 == *at));
        assert_eq!(history(1), (notes.clone(), trace));
        assert!((2..20).any(|seed| history(seed).0 != notes));
    }

    #[test]
    fn stuck_fatal_and_dropped() {
        let runtime = runtime(3);
        runtime.spawn("waits", std::future::pending());
        assert_eq!(runtime.run_until(|| false), Stopped::Stuck(vec!["waits"]));
        let handle = runtime.handle();
        runtime.spawn("dies", async move { handle.fatal("no reason") });
        assert_eq!(runtime.run_until(|| false), Stopped::Crashed("no reason".to_string()));
        assert_eq!(runtime.fatal_reason().as_deref(), Some("no reason"));
        runtime.kill();
        let order = Arc::new(Mutex::new(Vec::new()));
        let job = |n: usize| {
            let order = order.clone();
            Box::new(move || order.lock().push(n)) as Box<dyn FnOnce() + Send>
        };
        runtime.run_all((0..20).map(job).collect());
        let mut order = order.lock().clone();
        assert_ne!(order, (0..20).collect::<Vec<_>>());
        order.sort();
        assert_eq!(order, (0..20).collect::<Vec<_>>());
    }
}
