//! What a worker's tasks run on: one thread at a time, one poll set, timers.
//!
//! A [`Runtime`] has a *seat*: the run queue and the poll set. The thread that has the seat goes in rounds: it polls the tasks that were runnable when
//! the round began, then it looks at timers and sockets, and sleeps in the poll set when nothing is runnable. A task that wakes itself runs in the next
//! round, after sockets were looked at: so tasks give way to others.
//!
//! A task that computes for long calls [`beside`]: its thread hands the seat to a spare thread of the runtime, computes, ends its poll without a seat and
//! becomes a spare itself. Connections are many and threads few: the runtimes of libraries with work stealing cost a point select a quarter more CPU
//! than one thread with its own queue, and their single-threaded ones cannot hand a seat over.
//!
//! Sleeping and waking: a thread that will sleep sets `sleeping`, then looks at `has_work` once more; whoever brings work from outside sets `has_work`, then looks
//! at `sleeping`. Both in sequential consistency, so one of them sees the other, and nobody pays for waking a thread that is awake.
//!
//! Bounds: a runtime has at most [`MAX_THREADS`] threads; beyond that, what computes keeps its seat. Tasks, sockets and timers are as many as connections,
//! which the server bounds.

mod socket;
mod timer;

pub use socket::{Direction, Done, Registered};
pub use timer::{Sleep, sleep, sleep_until, timeout_at};

use async_task::{Runnable, Task};
use mio::{Events, Poll, Registry, Token};
use parking_lot::{Condvar, Mutex};
use slab::Slab;
use socket::Sockets;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};
use timer::Timers;

/// Threads of one runtime, those that compute beside included.
const MAX_THREADS: usize = 512;
/// Threads without a seat that are kept for the next task that computes.
const SPARES: usize = 2;
/// How long a spare thread waits for a seat before it ends.
const SPARE_TIME: Duration = Duration::from_secs(10);
/// Events that one look at the poll set may bring; the rest come with the next.
const EVENTS: usize = 1024;
/// Operations on sockets in one poll of a task; then others have their turn, also when a client sends one statement behind the other.
const TURN: u32 = 64;
/// The token of `Shared::waker`; sockets have others.
const WAKE: Token = Token(usize::MAX);

/// Tasks and the threads that run them. Dropping it without [`Runtime::end`] ends it too, without waiting.
pub struct Runtime {
    shared: Arc<Shared>,
}

/// What the threads of a runtime, its tasks, sockets and timers share.
pub(crate) struct Shared {
    name: String,
    registry: Registry,
    waker: mio::Waker,
    /// Tasks that were woken by other threads.
    inbox: Mutex<Vec<Runnable>>,
    /// The inbox has tasks, a timer is earlier than before, or the runtime ends.
    has_work: AtomicBool,
    /// The thread with the seat sleeps, or is about to.
    sleeping: AtomicBool,
    ending: AtomicBool,
    /// All that have not ended; one that is dropped is cancelled.
    tasks: Mutex<Slab<Option<Task<()>>>>,
    sockets: Sockets,
    timers: Timers,
    threads: Mutex<Threads>,
    threads_changed: Condvar,
}

#[derive(Default)]
struct Threads {
    /// Handed over, not taken yet.
    seat: Option<Box<Seat>>,
    /// Threads that wait for a seat, or will when they have started.
    spare: usize,
    all: usize,
}

/// What belongs to the one thread that runs tasks.
struct Seat {
    shared: Arc<Shared>,
    queue: VecDeque<Runnable>,
    poll: Poll,
    events: Events,
    /// Of tasks whose sockets or timers are ready, kept for its memory.
    wakers: Vec<Waker>,
}

thread_local! {
    /// The seat of this thread. Never borrowed while anything but this module runs.
    static SEAT: RefCell<Option<Box<Seat>>> = const { RefCell::new(None) };
    /// Operations on sockets that are left to the running task.
    static LEFT: Cell<u32> = const { Cell::new(TURN) };
    /// The runtime whose tasks this thread runs, with a seat or without.
    static HOME: RefCell<Option<Arc<Shared>>> = const { RefCell::new(None) };
}

impl Runtime {
    /// A runtime with one thread. `name`: of its threads.
    pub fn start(name: String) -> io::Result<Runtime> {
        let poll = Poll::new()?;
        let shared = Arc::new(Shared {
            name,
            registry: poll.registry().try_clone()?,
            waker: mio::Waker::new(poll.registry(), WAKE)?,
            inbox: Mutex::default(),
            has_work: AtomicBool::new(false),
            sleeping: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            tasks: Mutex::default(),
            sockets: Sockets::default(),
            timers: Timers::default(),
            threads: Mutex::default(),
            threads_changed: Condvar::new(),
        });
        let seat = Box::new(Seat {
            shared: shared.clone(),
            queue: VecDeque::new(),
            poll,
            events: Events::with_capacity(EVENTS),
            wakers: Vec::new(),
        });
        match shared.hand_over(seat) {
            Ok(()) => Ok(Runtime { shared }),
            Err(_) => Err(io::Error::other("cannot start a thread")),
        }
    }

    /// Runs a future to its end, or to the end of the runtime.
    pub fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        let place = Place { number: self.shared.tasks.lock().insert(None), shared: self.shared.clone() };
        let (number, shared) = (place.number, self.shared.clone());
        // In a box: a future that awaits a captured one holds it twice.
        let future = Box::pin(future);
        let future = async move {
            let _place = place;
            future.await;
        };
        let (runnable, task) = async_task::spawn(future, move |runnable| shared.queue(runnable));
        self.shared.tasks.lock()[number] = Some(task);
        runnable.schedule();
    }

    /// Begins what [`Runtime::end`] waits for.
    pub fn begin_end(&self) {
        self.shared.begin_end();
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Drops all tasks and ends the threads. Waits for those that compute, at most for `limit`.
    pub fn end(&self, limit: Duration) {
        self.begin_end();
        let deadline = Instant::now() + limit;
        let mut threads = self.shared.threads.lock();
        while threads.all > 0 {
            if self.shared.threads_changed.wait_until(&mut threads, deadline).timed_out() {
                break;
            }
        }
    }
}

/// A place among the tasks, until the task ends.
struct Place {
    number: usize,
    shared: Arc<Shared>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let ended = self.shared.tasks.lock().remove(self.number);
        ended.into_iter().for_each(Task::detach);
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.shared.begin_end();
    }
}

/// Runs what takes long on this thread, while another one goes on with the tasks of its runtime. Elsewhere it just runs.
pub fn beside(work: &mut dyn FnMut()) {
    let Some(seat) = SEAT.take() else { return work() };
    let shared = seat.shared.clone();
    match shared.hand_over(seat) {
        Ok(()) => {
            work();
            // Short work is done before a spare thread has woken up.
            let seat = shared.threads.lock().seat.take();
            SEAT.set(seat);
        }
        Err(seat) => {
            SEAT.set(Some(seat));
            work();
        }
    }
}

/// The runtime whose task runs on this thread.
///
/// # Panics
///
/// When this is no thread of a runtime.
fn home() -> Arc<Shared> {
    HOME.with_borrow(Clone::clone).expect("sockets and timers are used by tasks of a runtime")
}

impl Shared {
    /// Gives the seat to a spare thread, or to a new one. Gives it back when there can be no more threads.
    fn hand_over(self: &Arc<Self>, seat: Box<Seat>) -> Result<(), Box<Seat>> {
        let mut threads = self.threads.lock();
        if threads.spare > 0 {
            threads.seat = Some(seat);
            self.threads_changed.notify_all();
            return Ok(());
        }
        if threads.all >= MAX_THREADS {
            return Err(seat);
        }
        let shared = self.clone();
        let started = std::thread::Builder::new().name(self.name.clone()).spawn(move || serve(&shared));
        match started {
            Ok(_) => {
                threads.all += 1;
                threads.spare += 1;
                threads.seat = Some(seat);
                Ok(())
            }
            Err(error) => {
                tracing::warn!(%error, "cannot start a thread");
                Err(seat)
            }
        }
    }

    /// Waits for a seat, as one that is counted as spare. `None`: this thread ends; it is no longer counted.
    fn take_seat(&self) -> Option<Box<Seat>> {
        let deadline = Instant::now() + SPARE_TIME;
        let mut threads = self.threads.lock();
        loop {
            if let Some(seat) = threads.seat.take() {
                threads.spare -= 1;
                return Some(seat);
            }
            let too_many = threads.spare > SPARES;
            if too_many
                || self.ending.load(Relaxed)
                || self.threads_changed.wait_until(&mut threads, deadline).timed_out() && threads.seat.is_none()
            {
                threads.spare -= 1;
                threads.all -= 1;
                self.threads_changed.notify_all();
                return None;
            }
        }
    }

    /// Queues a task that was woken.
    fn queue(self: &Arc<Self>, task: Runnable) {
        let mut task = Some(task);
        let _ = SEAT.try_with(|seat| {
            if let Some(seat) = seat.borrow_mut().as_mut().filter(|seat| Arc::ptr_eq(&seat.shared, self)) {
                seat.queue.extend(task.take());
            }
        });
        if let Some(task) = task {
            self.inbox.lock().push(task);
            self.notify();
        }
    }

    /// Has the thread with the seat look at what others have brought.
    fn notify(&self) {
        self.has_work.store(true, SeqCst);
        if self.sleeping.swap(false, SeqCst)
            && let Err(error) = self.waker.wake()
        {
            tracing::error!(%error, "cannot wake a worker");
        }
    }

    fn begin_end(&self) {
        self.ending.store(true, SeqCst);
        // A spare thread looks at `ending` under this lock.
        drop(self.threads.lock());
        self.threads_changed.notify_all();
        self.notify();
    }
}

/// The life of a thread.
fn serve(shared: &Arc<Shared>) {
    HOME.set(Some(shared.clone()));
    while let Some(seat) = shared.take_seat() {
        SEAT.set(Some(seat));
        while round(shared) {}
        shared.threads.lock().spare += 1;
    }
    HOME.set(None);
}

/// Runs what is runnable, then looks at timers and sockets. False: this thread has no seat any more.
fn round(shared: &Arc<Shared>) -> bool {
    let runnable = SEAT.with_borrow_mut(|seat| {
        let Some(seat) = seat else { return 0 };
        if shared.has_work.load(Relaxed) {
            shared.has_work.store(false, SeqCst);
            seat.queue.extend(shared.inbox.lock().drain(..));
        }
        seat.queue.len()
    });
    for _ in 0..runnable {
        let task = SEAT.with_borrow_mut(|seat| seat.as_mut().and_then(|seat| seat.queue.pop_front()));
        let Some(task) = task else { break };
        run(task);
    }
    if shared.ending.load(Relaxed) {
        return cancel_all(shared);
    }
    let Some(mut seat) = SEAT.take() else { return false };
    seat.look();
    let mut wakers = std::mem::take(&mut seat.wakers);
    SEAT.set(Some(seat));
    wakers.drain(..).for_each(Waker::wake);
    SEAT.with_borrow_mut(|seat| {
        if let Some(seat) = seat {
            seat.wakers = wakers;
        }
    });
    true
}

/// Polls a task once. A panic ends the task and nothing else.
fn run(task: Runnable) {
    LEFT.set(TURN);
    if catch_unwind(AssertUnwindSafe(|| task.run())).is_err() {
        tracing::error!("a connection has ended by a panic");
    }
}

/// Whether the task may use a socket; else it is polled again after others.
fn has_turn(cx: &Context<'_>) -> bool {
    match LEFT.get() {
        0 => {
            cx.waker().wake_by_ref();
            false
        }
        left => {
            LEFT.set(left - 1);
            true
        }
    }
}

/// The last round: drops all tasks but those that compute, which are dropped when their poll ends.
fn cancel_all(shared: &Shared) -> bool {
    if SEAT.with_borrow(Option::is_none) {
        return false;
    }
    let tasks: Vec<Task<()>> = shared.tasks.lock().iter_mut().filter_map(|(_, task)| task.take()).collect();
    // Those that wait are queued by this, and their polls drop them.
    drop(tasks);
    loop {
        let queued = SEAT.with_borrow_mut(|seat| {
            let seat = seat.as_mut()?;
            seat.queue.extend(shared.inbox.lock().drain(..));
            seat.queue.pop_front()
        });
        let Some(task) = queued else { break };
        run(task);
    }
    drop(SEAT.take());
    false
}

impl Seat {
    /// Collects the wakers of timers that are due and of sockets that are ready; sleeps for that when nothing is runnable.
    fn look(&mut self) {
        let now = Instant::now();
        self.shared.timers.expire(now, &mut self.wakers);
        let mut timeout = Some(Duration::ZERO);
        if self.queue.is_empty() && self.wakers.is_empty() {
            self.shared.sleeping.store(true, SeqCst);
            if !self.shared.has_work.load(SeqCst) {
                timeout = self.shared.timers.next().map(|next| next.saturating_duration_since(now));
            }
        }
        let outcome = self.poll.poll(&mut self.events, timeout);
        self.shared.sleeping.store(false, Relaxed);
        match outcome {
            Ok(()) => self.shared.sockets.note(&self.events, &mut self.wakers),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => panic!("a worker's poll set failed: {error}"),
        }
    }
}

#[cfg(test)]
mod tests;
