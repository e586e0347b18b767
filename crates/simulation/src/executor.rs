//! The executor: one thread, one clock, one seed, and the tasks of one process or of a whole cluster's.
//!
//! It always picks the next task at random. Every poll takes a few simulated microseconds, so timers and tasks meet in every order; when no task can go on, the clock jumps
//! to the next timer. Beside timers that wake tasks there are *events*, which run between polls: messages that arrive, faults that strike.
//!
//! A task belongs to a process ([`crate::runtime::SimRuntime`] is its side of it), which may be *killed* (its tasks are dropped where they stand), *paused* (they are not polled
//! until it is resumed; its clock goes on, as under SIGSTOP), or *stalled* for some time by a slow disk: whoever waits for the disk does nothing else. A process that
//! has called `fatal`, or whose disk stopped, is not polled any more. Tasks of a process may be *sluggish*: now and then one that could go on does not for some milliseconds, as a thread that the
//! system does not run, while the others do.
use crate::clock::SimClock;
use crate::disk::SimDisk;
use crate::runtime::SimRuntime;
use crate::trace::Trace;
use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{Rng, RngCore, SeedableRng};
use rauk_node::runtime::BoxFuture;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// Polls without the clock having jumped after which the tasks are held to run in circles.
const MAX_POLLS: u64 = 2_000_000;
/// Looks at the clock within one poll after which its task is held to wait without giving way: the clock does not move meanwhile.
const MAX_LOOKS: u64 = 1_000_000;

/// A sluggish task is left out for so long at most.
const SLUGGISH: Duration = Duration::from_millis(20);

/// Clones are the same.
#[derive(Clone)]
pub struct Executor {
    shared: Arc<Shared>,
}

struct Shared {
    clock: SimClock,
    state: Mutex<State>,
    /// Tasks that can go on; apart from the state because wakers run at any time.
    ready: Mutex<Vec<u64>>,
    /// Looks at the clock since the last poll began.
    looks: AtomicU64,
}

struct State {
    rng: SmallRng,
    tasks: BTreeMap<u64, Task>,
    next_task: u64,
    timers: BinaryHeap<Reverse<Timer>>,
    next_timer: u64,
    next_process: u32,
    trace: Trace,
    polls: u64,
    /// The part of the polls that come late.
    sluggish: f64,
}

struct Task {
    name: &'static str,
    process: Arc<Process>,
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

enum Action {
    Wake(Waker),
    Run(Box<dyn FnOnce() + Send>),
}

struct Timer {
    at: Duration,
    number: u64,
    action: Action,
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

/// How a process's clock goes: its time is `offset` + simulated time × (1 + `parts_per_million` / 10⁶).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drift {
    pub offset: Duration,
    pub parts_per_million: i64,
}

impl Drift {
    const MILLION: i128 = 1_000_000;

    pub fn local(self, time: Duration) -> Duration {
        let (time, offset) = (time.as_nanos() as i128, self.offset.as_nanos() as i128);
        nanos(offset + time + time * i128::from(self.parts_per_million) / Self::MILLION)
    }

    /// The earliest simulated time at which the process's clock shows `local` or more.
    pub fn simulated(self, local: Duration) -> Duration {
        let since = local.as_nanos() as i128 - self.offset.as_nanos() as i128;
        let rate = Self::MILLION + i128::from(self.parts_per_million);
        let mut time = nanos((since * Self::MILLION).div_euclid(rate));
        while self.local(time) < local {
            time += Duration::from_nanos(1);
        }
        time
    }
}

fn nanos(value: i128) -> Duration {
    Duration::from_nanos(value.max(0) as u64)
}

/// What the executor knows of a process.
pub(crate) struct Process {
    pub(crate) number: u32,
    pub(crate) disk: Option<SimDisk>,
    pub(crate) drift: Drift,
    dead: AtomicBool,
    paused: AtomicBool,
    /// Simulated time until which it waits for its disk, in nanoseconds.
    stalled_until: AtomicU64,
    pub(crate) fatal: Mutex<Option<String>>,
    /// Tasks that could go on if the process did.
    held: Mutex<Vec<u64>>,
}

impl Process {
    /// Why its life is over, if it is.
    pub(crate) fn crashed(&self) -> Option<String> {
        let fatal = self.fatal.lock().clone();
        fatal.or_else(|| self.disk.as_ref().is_some_and(SimDisk::is_stopped).then(|| "the disk stopped".to_string()))
    }

    fn is_over(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
            || self.disk.as_ref().is_some_and(SimDisk::is_stopped)
            || self.fatal.lock().is_some()
    }

    fn stalled_until(&self) -> Duration {
        Duration::from_nanos(self.stalled_until.load(Ordering::Relaxed))
    }
}

/// Why a run came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The condition holds.
    Done,
    /// The node called `fatal`, or the disk stopped.
    Crashed(String),
    /// No task can go on, no timer is set, and the condition does not hold: names of the tasks that wait.
    Stuck(Vec<&'static str>),
}

impl Executor {
    pub fn new(seed: u64, clock: SimClock) -> Executor {
        let state = State {
            rng: SmallRng::seed_from_u64(seed),
            tasks: BTreeMap::new(),
            next_task: 0,
            timers: BinaryHeap::new(),
            next_timer: 0,
            next_process: 0,
            trace: Trace::default(),
            polls: 0,
            sluggish: 0.0,
        };
        Executor {
            shared: Arc::new(Shared {
                clock,
                state: Mutex::new(state),
                ready: Mutex::default(),
                looks: AtomicU64::new(0),
            }),
        }
    }

    /// A new process. Without a disk it is one of the simulator's own.
    pub fn process(&self, disk: Option<SimDisk>, drift: Drift) -> SimRuntime {
        let number = {
            let mut state = self.shared.state.lock();
            state.next_process += 1;
            state.next_process
        };
        let process = Process {
            number,
            disk,
            drift,
            dead: AtomicBool::new(false),
            paused: AtomicBool::new(false),
            stalled_until: AtomicU64::new(0),
            fatal: Mutex::default(),
            held: Mutex::default(),
        };
        SimRuntime::of(self.clone(), Arc::new(process))
    }

    /// The part of the times that a task of a process with a disk could go on, and does not for a while.
    pub fn set_sluggish(&self, part: f64) {
        self.shared.state.lock().sluggish = part;
    }

    /// Simulated time.
    pub fn now(&self) -> Duration {
        self.shared.clock.now()
    }

    /// Counts that a process looks at the clock.
    pub(crate) fn look(&self) {
        let looks = self.shared.looks.fetch_add(1, Ordering::Relaxed);
        assert!(looks < MAX_LOOKS, "a task waits for time to pass without giving way");
    }

    /// A number that stands for the order in which everything ran.
    pub fn trace(&self) -> u64 {
        self.shared.state.lock().trace.value()
    }

    /// Adds something that happened to the trace.
    pub fn note(&self, value: u64) {
        self.shared.state.lock().trace.add(value);
    }

    pub(crate) fn random(&self) -> u64 {
        self.shared.state.lock().rng.next_u64()
    }

    /// Runs `event` at a simulated time, between two polls.
    pub fn at(&self, time: Duration, event: impl FnOnce() + Send + 'static) {
        self.timer(time, Action::Run(Box::new(event)));
    }

    pub fn after(&self, delay: Duration, event: impl FnOnce() + Send + 'static) {
        self.at(self.now() + delay, event);
    }

    pub(crate) fn wake_at(&self, time: Duration, waker: Waker) {
        self.timer(time, Action::Wake(waker));
    }

    fn timer(&self, at: Duration, action: Action) {
        let mut state = self.shared.state.lock();
        state.next_timer += 1;
        let timer = Timer { at, number: state.next_timer, action };
        state.timers.push(Reverse(timer));
    }

    /// Runs tasks and events until `done` holds; it is asked between any two polls.
    pub fn run_until(&self, mut done: impl FnMut() -> bool) -> Stopped {
        loop {
            if done() {
                return Stopped::Done;
            }
            if !self.step() {
                return self.stuck();
            }
        }
    }

    pub(crate) fn stuck(&self) -> Stopped {
        Stopped::Stuck(names(&self.shared.state.lock()))
    }

    /// Tasks that have not ended: the number of their process, and their name.
    pub fn tasks(&self) -> Vec<(u32, &'static str)> {
        self.shared.state.lock().tasks.values().map(|task| (task.process.number, task.name)).collect()
    }

    /// One poll, or a jump to the next timer; `false` when there is neither.
    pub(crate) fn step(&self) -> bool {
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
        match picked {
            Some(id) => self.poll(id),
            None => return self.jump(),
        }
        true
    }

    fn poll(&self, id: u64) {
        let (mut future, waker) = {
            let mut state = self.shared.state.lock();
            let Some(task) = state.tasks.get(&id) else { return };
            let process = &task.process;
            if process.is_over() {
                return;
            }
            if process.paused.load(Ordering::Relaxed) || process.stalled_until() > self.shared.clock.now() {
                process.held.lock().push(id);
                return;
            }
            let sluggish = if process.disk.is_some() { state.sluggish } else { 0.0 };
            if sluggish > 0.0 && state.rng.random_bool(sluggish) {
                let late = Duration::from_micros(state.rng.random_range(0..SLUGGISH.as_micros() as u64));
                drop(state);
                let shared = Arc::downgrade(&self.shared);
                // It counts as queued until then: nobody else can wake it.
                return self.after(late, move || {
                    if let Some(shared) = shared.upgrade() {
                        shared.ready.lock().push(id);
                    }
                });
            }
            state.polls += 1;
            assert!(state.polls < MAX_POLLS, "tasks run in circles: {:?}", names(&state));
            state.trace.add(id);
            let pause = state.rng.random_range(0..20);
            self.shared.clock.advance(Duration::from_micros(pause));
            let task = state.tasks.get_mut(&id).expect("it was there");
            task.waker.queued.store(false, Ordering::Relaxed);
            let Some(future) = task.future.take() else { return };
            (future, task.waker.clone())
        };
        let waker = Waker::from(waker);
        self.shared.looks.store(0, Ordering::Relaxed);
        let poll = future.as_mut().poll(&mut Context::from_waker(&waker));
        let mut state = self.shared.state.lock();
        match poll {
            Poll::Ready(()) => {
                let ended = state.tasks.remove(&id);
                drop(state);
                drop((ended, future));
            }
            Poll::Pending => match state.tasks.get_mut(&id) {
                Some(task) => task.future = Some(future),
                // Its process was killed meanwhile.
                None => {
                    drop(state);
                    drop(future);
                }
            },
        }
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
            match timer.map(|Reverse(timer)| timer.action) {
                Some(Action::Wake(waker)) => waker.wake(),
                Some(Action::Run(event)) => event(),
                None => return,
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

    pub(crate) fn spawn(&self, process: &Arc<Process>, name: &'static str, future: BoxFuture<()>) {
        if process.dead.load(Ordering::Relaxed) {
            return;
        }
        let mut state = self.shared.state.lock();
        let id = state.next_task;
        state.next_task += 1;
        let waker = Arc::new(TaskWaker { id, queued: AtomicBool::new(true), shared: Arc::downgrade(&self.shared) });
        state.tasks.insert(id, Task { name, process: process.clone(), future: Some(future), waker });
        self.shared.ready.lock().push(id);
    }

    pub(crate) fn run_all(&self, mut jobs: Vec<Box<dyn FnOnce() + Send>>) {
        while !jobs.is_empty() {
            let at = self.shared.state.lock().rng.random_range(0..jobs.len());
            jobs.swap_remove(at)();
        }
    }

    /// The process is no more: its tasks are dropped where they stand, and reach neither disk nor network.
    pub(crate) fn kill(&self, process: &Arc<Process>) {
        process.dead.store(true, Ordering::Relaxed);
        let mine = |task: &Task| Arc::ptr_eq(&task.process, process);
        let tasks: Vec<Task> = {
            let mut state = self.shared.state.lock();
            let ids: Vec<u64> = state.tasks.iter().filter(|(_, task)| mine(task)).map(|(id, _)| *id).collect();
            ids.iter().filter_map(|id| state.tasks.remove(id)).collect()
        };
        drop(tasks);
        process.held.lock().clear();
    }

    pub(crate) fn pause(&self, process: &Process) {
        process.paused.store(true, Ordering::Relaxed);
    }

    pub(crate) fn resume(&self, process: &Process) {
        process.paused.store(false, Ordering::Relaxed);
        self.release(process);
    }

    pub(crate) fn is_running(&self, process: &Process) -> bool {
        !process.is_over() && !process.paused.load(Ordering::Relaxed)
    }

    pub(crate) fn is_alive(&self, process: &Process) -> bool {
        !process.is_over()
    }

    /// The process does nothing for so long, from now or from where its present stall ends; gives until when.
    pub(crate) fn stall(&self, process: &Arc<Process>, time: Duration) -> Duration {
        let until = process.stalled_until().max(self.now()) + time;
        process.stalled_until.store(until.as_nanos() as u64, Ordering::Relaxed);
        let (executor, process) = (self.clone(), process.clone());
        self.at(until, move || {
            if process.stalled_until() <= executor.now() {
                executor.release(&process);
            }
        });
        until
    }

    fn release(&self, process: &Process) {
        let held = std::mem::take(&mut *process.held.lock());
        self.shared.ready.lock().extend(held);
    }

    /// Simulated time as the process meets it: within a poll that waited for the disk it is later than elsewhere.
    pub(crate) fn time_of(&self, process: &Process) -> Duration {
        self.now().max(process.stalled_until())
    }
}

fn names(state: &State) -> Vec<&'static str> {
    state.tasks.values().map(|task| task.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticker(runtime: &SimRuntime, ticks: Arc<Mutex<Vec<u64>>>) {
        let handle = runtime.handle();
        runtime.spawn("ticker", async move {
            loop {
                handle.sleep(Duration::from_millis(10)).await;
                ticks.lock().push(handle.now().as_millis() as u64);
            }
        });
    }

    fn run_for(executor: &Executor, time: Duration) {
        let end = executor.now() + time;
        executor.at(end, || {});
        assert_eq!(executor.run_until(|| executor.now() >= end), Stopped::Done);
    }

    #[test]
    fn paused_killed_and_stalled_processes() {
        let executor = Executor::new(7, SimClock::default());
        let ticks: Vec<Arc<Mutex<Vec<u64>>>> = (0..3).map(|_| Arc::default()).collect();
        let processes: Vec<SimRuntime> = ticks
            .iter()
            .map(|ticks| {
                let process = executor.process(None, Drift::default());
                ticker(&process, ticks.clone());
                process
            })
            .collect();
        run_for(&executor, Duration::from_millis(105));
        assert!(ticks.iter().all(|ticks| ticks.lock().len() >= 9));
        processes[0].pause();
        processes[1].kill();
        processes[2].stall(Duration::from_millis(50));
        let before: Vec<usize> = ticks.iter().map(|ticks| ticks.lock().len()).collect();
        run_for(&executor, Duration::from_millis(40));
        assert_eq!(ticks.iter().map(|ticks| ticks.lock().len()).collect::<Vec<_>>(), before);
        run_for(&executor, Duration::from_millis(60));
        processes[0].resume();
        run_for(&executor, Duration::from_millis(50));
        let after: Vec<usize> = ticks.iter().map(|ticks| ticks.lock().len()).collect();
        assert!(after[0] > before[0] + 3 && after[2] > before[2] + 5);
        assert_eq!(after[1], before[1]);
        // The pause is a gap in what its clock showed.
        let first = ticks[0].lock().clone();
        assert!(first[before[0]] - first[before[0] - 1] >= 100, "{first:?}");
        assert!(!processes[1].is_alive() && processes[0].is_running());
    }

    #[test]
    fn sluggish_tasks_come_late_and_come() {
        let clock = SimClock::default();
        let executor = Executor::new(5, clock.clone());
        let runtime = executor.process(Some(SimDisk::new(5, clock)), Drift::default());
        let ticks: Vec<Arc<Mutex<Vec<u64>>>> = (0..2).map(|_| Arc::default()).collect();
        ticks.iter().for_each(|ticks| ticker(&runtime, ticks.clone()));
        let longest = |ticks: &Mutex<Vec<u64>>| {
            let gaps = std::mem::take(&mut *ticks.lock()).windows(2).map(|pair| pair[1] - pair[0]).max();
            gaps.expect("it ticks")
        };
        run_for(&executor, Duration::from_secs(1));
        assert!(ticks.iter().all(|ticks| longest(ticks) <= 11));
        executor.set_sluggish(0.2);
        run_for(&executor, Duration::from_secs(1));
        assert!(ticks.iter().all(|ticks| ticks.lock().len() > 50 && longest(ticks) > 20));
        executor.set_sluggish(0.0);
        run_for(&executor, Duration::from_millis(100));
        ticks.iter().for_each(|ticks| ticks.lock().clear());
        run_for(&executor, Duration::from_secs(1));
        assert!(ticks.iter().all(|ticks| longest(ticks) <= 11));
    }

    #[test]
    fn clocks_drift_and_timers_follow_them() {
        for parts_per_million in [-50_000, -3, 0, 1, 50_000] {
            let drift = Drift { offset: Duration::from_secs(77), parts_per_million };
            let executor = Executor::new(1, SimClock::default());
            let runtime = executor.process(None, drift);
            let woken = Arc::new(Mutex::new(None));
            let (handle, result) = (runtime.handle(), woken.clone());
            runtime.spawn("sleeper", async move {
                let begin = handle.now();
                handle.sleep(Duration::from_secs(10)).await;
                *result.lock() = Some(handle.now() - begin);
            });
            assert_eq!(executor.run_until(|| woken.lock().is_some()), Stopped::Done);
            let slept = woken.lock().expect("it woke");
            assert!(slept >= Duration::from_secs(10) && slept < Duration::from_millis(10_001), "{slept:?}");
            let simulated = 10.0 / (1.0 + parts_per_million as f64 / 1e6);
            assert!((executor.now().as_secs_f64() - simulated).abs() < 0.001);
        }
    }

    #[test]
    fn a_dead_process_does_nothing_when_its_tasks_are_dropped() {
        struct Spawner(SimRuntime, Arc<Mutex<bool>>);
        impl Drop for Spawner {
            fn drop(&mut self) {
                let ran = self.1.clone();
                self.0.spawn("from the grave", async move { *ran.lock() = true });
            }
        }
        let executor = Executor::new(3, SimClock::default());
        let runtime = executor.process(None, Drift::default());
        let ran = Arc::new(Mutex::new(false));
        let spawner = Spawner(runtime.clone(), ran.clone());
        runtime.spawn("waits", async move {
            let _spawner = spawner;
            std::future::pending::<()>().await;
        });
        run_for(&executor, Duration::from_millis(1));
        runtime.kill();
        run_for(&executor, Duration::from_millis(1));
        assert!(!*ran.lock());
    }
}
