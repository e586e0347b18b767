//! The simulated runtime: an executor of one thread that always picks the next task at random, and a clock that it moves itself.
//!
//! A life of the node gets a [`SimRuntime`] of its own. The node sees it as its [`rauk_node::Runtime`]; the simulator spawns its clients beside the node's background tasks and calls [`SimRuntime::run_until`].
//! Every poll takes a few simulated microseconds, so timers and tasks meet in every order; when no task can go on, the clock jumps to the next timer.
//!
//! The life is over when the node calls `fatal` or the disk stops: from then on nothing is polled any more, and dropping the runtime drops all tasks where they stand.
use crate::clock::SimClock;
use crate::disk::SimDisk;
use crate::trace::Trace;
use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{Rng, RngCore, SeedableRng};
use rauk_node::runtime::{BoxFuture, Runtime};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// Polls without the clock having jumped after which the tasks are held to run in circles.
const MAX_POLLS: u64 = 2_000_000;

/// One life's runtime. Clones are the same.
#[derive(Clone)]
pub struct SimRuntime {
    shared: Arc<Shared>,
}

struct Shared {
    clock: SimClock,
    disk: SimDisk,
    state: Mutex<State>,
    /// Tasks that can go on; apart from the state because wakers run at any time.
    ready: Mutex<Vec<u64>>,
}

struct State {
    rng: SmallRng,
    tasks: BTreeMap<u64, Task>,
    next_task: u64,
    timers: BinaryHeap<Reverse<Timer>>,
    next_timer: u64,
    fatal: Option<String>,
    trace: Trace,
    polls: u64,
}

struct Task {
    name: &'static str,
    /// Not there while it is being polled.
    future: Option<BoxFuture<()>>,
    waker: Arc<TaskWaker>,
}

struct TaskWaker {
    id: u64,
    queued: AtomicBool,
    shared: Weak<Shared>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        if let Some(shared) = self.shared.upgrade()
            && !self.queued.swap(true, Ordering::Relaxed)
        {
            shared.ready.lock().push(self.id);
        }
    }
}

struct Timer {
    at: Duration,
    number: u64,
    waker: Waker,
}

impl PartialEq for Timer {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl Eq for Timer {}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timer {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// Why `run_until` came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The condition holds.
    Done,
    /// The node called `fatal`, or the disk stopped.
    Crashed(String),
    /// No task can go on, no timer is set, and the condition does not hold: names of the tasks that wait.
    Stuck(Vec<&'static str>),
}

impl SimRuntime {
    pub fn new(seed: u64, clock: SimClock, disk: SimDisk) -> SimRuntime {
        let state = State {
            rng: SmallRng::seed_from_u64(seed),
            tasks: BTreeMap::new(),
            next_task: 0,
            timers: BinaryHeap::new(),
            next_timer: 0,
            fatal: None,
            trace: Trace::default(),
            polls: 0,
        };
        SimRuntime { shared: Arc::new(Shared { clock, disk, state: Mutex::new(state), ready: Mutex::default() }) }
    }

    /// The node's side of it.
    pub fn handle(&self) -> Arc<dyn Runtime> {
        Arc::new(self.clone())
    }

    /// Why the life is over, if it is.
    pub fn crashed(&self) -> Option<String> {
        let fatal = self.shared.state.lock().fatal.clone();
        fatal.or_else(|| self.shared.disk.is_stopped().then(|| "the disk stopped".to_string()))
    }

    /// What `fatal` was called with.
    pub fn fatal_reason(&self) -> Option<String> {
        self.shared.state.lock().fatal.clone()
    }

    /// A number that stands for the order in which everything ran.
    pub fn trace(&self) -> u64 {
        self.shared.state.lock().trace.value()
    }

    /// Runs tasks and timers until `done` holds; it is asked between any two polls.
    pub fn run_until(&self, mut done: impl FnMut() -> bool) -> Stopped {
        loop {
            if let Some(why) = self.crashed() {
                return Stopped::Crashed(why);
            }
            if done() {
                return Stopped::Done;
            }
            if !self.step() {
                let state = self.shared.state.lock();
                return Stopped::Stuck(state.tasks.values().map(|task| task.name).collect());
            }
        }
    }

    /// Drops all tasks: the end of a life. Transactions in them roll back in memory, and reach no disk.
    pub fn drop_tasks(&self) {
        let (tasks, timers) = {
            let mut state = self.shared.state.lock();
            (std::mem::take(&mut state.tasks), std::mem::take(&mut state.timers))
        };
        drop(timers);
        drop(tasks);
        self.shared.ready.lock().clear();
    }

    /// One poll, or a jump to the next timer; `false` when there is neither.
    fn step(&self) -> bool {
        self.fire_timers();
        let picked = {
            let mut state = self.shared.state.lock();
            let mut ready = self.shared.ready.lock();
            if ready.is_empty() {
                None
            } else {
                let at = state.rng.random_range(0..ready.len());
                Some(ready.swap_remove(at))
            }
        };
        let Some(id) = picked else { return self.jump() };
        let (mut future, waker) = {
            let mut state = self.shared.state.lock();
            state.polls += 1;
            assert!(state.polls < MAX_POLLS, "tasks run in circles: {:?}", names(&state));
            state.trace.add(id);
            let pause = state.rng.random_range(0..20);
            self.shared.clock.advance(Duration::from_micros(pause));
            let Some(task) = state.tasks.get_mut(&id) else { return true };
            task.waker.queued.store(false, Ordering::Relaxed);
            let Some(future) = task.future.take() else { return true };
            (future, task.waker.clone())
        };
        let waker = Waker::from(waker);
        let poll = future.as_mut().poll(&mut Context::from_waker(&waker));
        let mut state = self.shared.state.lock();
        match poll {
            Poll::Ready(()) => {
                state.tasks.remove(&id);
                drop(state);
                drop(future);
            }
            Poll::Pending => {
                if let Some(task) = state.tasks.get_mut(&id) {
                    task.future = Some(future);
                }
            }
        }
        true
    }

    fn fire_timers(&self) {
        let now = self.shared.clock.now();
        loop {
            let timer = {
                let mut state = self.shared.state.lock();
                if state.timers.peek().is_none_or(|Reverse(timer)| timer.at > now) {
                    return;
                }
                state.timers.pop()
            };
            if let Some(Reverse(timer)) = timer {
                timer.waker.wake();
            }
        }
    }

    fn jump(&self) -> bool {
        let mut state = self.shared.state.lock();
        state.polls = 0;
        let Some(Reverse(timer)) = state.timers.peek() else { return false };
        self.shared.clock.advance_to(timer.at);
        true
    }

    /// Spawns a task of the simulator's.
    pub fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        Runtime::spawn(self, name, Box::pin(task));
    }
}

fn names(state: &State) -> Vec<&'static str> {
    state.tasks.values().map(|task| task.name).collect()
}

struct Sleep {
    shared: Arc<Shared>,
    until: Duration,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.shared.clock.now() >= self.until {
            return Poll::Ready(());
        }
        let mut state = self.shared.state.lock();
        state.next_timer += 1;
        let timer = Timer { at: self.until, number: state.next_timer, waker: context.waker().clone() };
        state.timers.push(Reverse(timer));
        Poll::Pending
    }
}

impl Runtime for SimRuntime {
    fn now(&self) -> Duration {
        self.shared.clock.now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<()> {
        let until = self.shared.clock.now() + duration;
        Box::pin(Sleep { shared: self.shared.clone(), until })
    }

    fn spawn(&self, name: &'static str, task: BoxFuture<()>) {
        let mut state = self.shared.state.lock();
        let id = state.next_task;
        state.next_task += 1;
        let waker = Arc::new(TaskWaker { id, queued: AtomicBool::new(true), shared: Arc::downgrade(&self.shared) });
        state.tasks.insert(id, Task { name, future: Some(task), waker });
        self.shared.ready.lock().push(id);
    }

    fn run_all(&self, mut jobs: Vec<Box<dyn FnOnce() + Send>>) {
        while !jobs.is_empty() {
            let at = self.shared.state.lock().rng.random_range(0..jobs.len());
            jobs.swap_remove(at)();
        }
    }

    fn random(&self) -> u64 {
        self.shared.state.lock().rng.next_u64()
    }

    fn fatal(&self, reason: &str) {
        self.shared.state.lock().fatal.get_or_insert_with(|| reason.to_string());
        self.shared.disk.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        runtime.drop_tasks();
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
