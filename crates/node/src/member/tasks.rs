//! Many small tasks: questions of other nodes that have to wait, commits that go on without their client.
//!
//! A task is polled once where it is begun, since most end at once. One that waits goes on where it is woken, if that is inside of [`Tasks::here`]: the thread that has received the message, or flushed the log, that it
//! waited for does the rest too, when it has done its own. A change of threads costs more than most tasks do. What is woken elsewhere (under a guard, by a session, by a timer) goes on on a thread of the set.
//!
//! What a task sends in one turn, and what all tasks of one [`Tasks::here`] send, leaves together ([`Network::together`]): a transaction that prepares in four partitions of one node sends one packet.

use super::network::Network;
use crate::runtime::Runtime;
use async_task::{Runnable, Task};
use parking_lot::Mutex;
use std::cell::Cell;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::sync::{Arc, Weak};
use std::task::{Poll, Waker};

/// Tasks that are polled at the end of one [`Tasks::here`], and by the thread in one turn: what is left over waits for the thread.
const AT_ONCE: usize = 64;

thread_local! {
    /// The set whose tasks this thread sees to when it leaves [`Tasks::here`], by its address; 0: none.
    static HERE: Cell<usize> = const { Cell::new(0) };
}

pub struct Tasks {
    own: Weak<Tasks>,
    network: Arc<dyn Network>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Runnable>,
    /// Those that have waited and may wait still. Dropping one ends it.
    waiting: Vec<Task<()>>,
    /// Length at which those that have ended are swept out.
    sweep_at: usize,
    /// The thread, while it has nothing to do.
    waker: Option<Waker>,
    closed: bool,
}

impl Tasks {
    /// With a thread of the runtime.
    pub fn start(runtime: &dyn Runtime, network: Arc<dyn Network>) -> Arc<Tasks> {
        let tasks = Arc::new_cyclic(|own| Tasks { own: own.clone(), network, state: Mutex::default() });
        let own = tasks.clone();
        runtime.spawn("member", Box::pin(async move { own.run().await }));
        tasks
    }

    /// Begins a task here.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let (runnable, task) = self.make(task);
        self.together(|| runnable.run());
        if !task.is_finished() {
            self.keep(task);
        }
    }

    /// Leaves a task to the thread: for those that may not run on the caller's stack.
    pub fn spawn_later(&self, task: impl Future<Output = ()> + Send + 'static) {
        let (runnable, task) = self.make(task);
        self.keep(task);
        self.schedule(runnable);
    }

    /// Runs `f`, and then the tasks that it has woken.
    pub fn here<R>(&self, f: impl FnOnce() -> R) -> R {
        self.together(|| self.with_woken(f))
    }

    fn with_woken<R>(&self, f: impl FnOnce() -> R) -> R {
        let address = std::ptr::from_ref(self).addr();
        let before = HERE.replace(address);
        let _leave = Leave(before);
        let r = f();
        if before != address && !self.run_ready() {
            self.wake_thread();
        }
        r
    }

    /// Ends the thread; tasks are dropped.
    pub fn close(&self) {
        let (waker, dropped, waiting) = {
            let mut state = self.state.lock();
            state.closed = true;
            (state.waker.take(), std::mem::take(&mut state.ready), std::mem::take(&mut state.waiting))
        };
        drop(dropped);
        drop(waiting);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn together<R>(&self, f: impl FnOnce() -> R) -> R {
        let (mut f, mut r) = (Some(f), None);
        self.network.together(&mut || r = f.take().map(|f| f()));
        r.expect("the network does what is to be done")
    }

    fn make(&self, task: impl Future<Output = ()> + Send + 'static) -> (Runnable, Task<()>) {
        let own = self.own.clone();
        let schedule = move |runnable: Runnable| {
            // Without its set it is dropped.
            if let Some(tasks) = own.upgrade() {
                tasks.schedule(runnable);
            }
        };
        async_task::spawn(task, schedule)
    }

    fn keep(&self, task: Task<()>) {
        let mut state = self.state.lock();
        if state.closed {
            drop(state);
            drop(task);
            return;
        }
        if state.waiting.len() >= state.sweep_at.max(64) {
            state.waiting.retain(|task| !task.is_finished());
            state.sweep_at = state.waiting.len() * 2;
        }
        state.waiting.push(task);
    }

    fn schedule(&self, runnable: Runnable) {
        let mut state = self.state.lock();
        if state.closed {
            drop(state);
            drop(runnable);
            return;
        }
        state.ready.push_back(runnable);
        if HERE.get() != std::ptr::from_ref(self).addr() {
            let waker = state.waker.take();
            drop(state);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    fn wake_thread(&self) {
        let waker = self.state.lock().waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// `false`: some are left over.
    fn run_ready(&self) -> bool {
        for _ in 0..AT_ONCE {
            // The lock is not held while it runs, which may bring more.
            let next = self.state.lock().ready.pop_front();
            let Some(runnable) = next else { return true };
            runnable.run();
        }
        self.state.lock().ready.is_empty()
    }

    async fn run(self: Arc<Self>) {
        // Tasks hold on to the node that holds them: whoever drops the thread drops them.
        let _end = Closes(self.clone());
        poll_fn(move |cx| {
            if !self.together(|| self.run_ready()) {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let mut state = self.state.lock();
            if state.closed {
                return Poll::Ready(());
            }
            state.waker = Some(cx.waker().clone());
            if !state.ready.is_empty() {
                cx.waker().wake_by_ref();
            }
            Poll::Pending
        })
        .await;
    }
}

struct Closes(Arc<Tasks>);

impl Drop for Closes {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Also on a panic.
struct Leave(usize);

impl Drop for Leave {
    fn drop(&mut self) {
        HERE.set(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::threads::Threads;
    use futures::channel::oneshot;
    use rauk_types::NodeId;
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread::{self, ThreadId};
    use std::time::Duration;

    struct Nobody;

    impl Network for Nobody {
        fn send(&self, _: NodeId, _: Vec<u8>) {}

        fn set_peers(&self, _: &BTreeMap<NodeId, String>) {}
    }

    /// Resolves with the thread on which a task went on.
    fn waits_for(tasks: &Tasks, what: oneshot::Receiver<()>) -> std::sync::mpsc::Receiver<ThreadId> {
        let (sender, receiver) = std::sync::mpsc::channel();
        tasks.spawn(async move {
            let _ = what.await;
            let _ = sender.send(thread::current().id());
        });
        receiver
    }

    #[test]
    fn a_task_goes_on_where_it_was_woken_or_on_the_thread() {
        let runtime = Threads::with_fatal(|reason| panic!("{reason}")).unwrap();
        let tasks = Tasks::start(&*runtime, Arc::new(Nobody));
        let (send, what) = oneshot::channel();
        let went_on = waits_for(&tasks, what);
        tasks.here(|| {
            // One inside of another is the same.
            tasks.here(|| send.send(()).unwrap());
            assert!(went_on.try_recv().is_err(), "not before the outer one is done");
        });
        assert_eq!(went_on.try_recv(), Ok(thread::current().id()));
        let (send, what) = oneshot::channel();
        let went_on = waits_for(&tasks, what);
        send.send(()).unwrap();
        let other = went_on.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_ne!(other, thread::current().id());
        tasks.close();
    }

    #[test]
    fn what_wakes_itself_again_and_again_is_left_to_the_thread() {
        let runtime = Threads::with_fatal(|reason| panic!("{reason}")).unwrap();
        let tasks = Tasks::start(&*runtime, Arc::new(Nobody));
        let (send, what) = oneshot::channel::<()>();
        let (turns, here) = (Arc::new(AtomicUsize::new(0)), thread::current().id());
        let (done, wait) = std::sync::mpsc::channel();
        let counted = turns.clone();
        tasks.spawn(async move {
            let _ = what.await;
            for _ in 0..10 * AT_ONCE {
                crate::commit::group::yield_once().await;
                counted.fetch_add(usize::from(thread::current().id() == here), Ordering::SeqCst);
            }
            let _ = done.send(());
        });
        tasks.here(|| send.send(()).unwrap());
        wait.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(turns.load(Ordering::SeqCst) <= AT_ONCE);
        tasks.close();
    }

    #[test]
    fn closing_drops_what_waits_and_what_comes_later() {
        let runtime = Threads::with_fatal(|reason| panic!("{reason}")).unwrap();
        let tasks = Tasks::start(&*runtime, Arc::new(Nobody));
        let held = Arc::new(());
        let mut wakers = Vec::new();
        for _ in 0..200 {
            let (send, what) = oneshot::channel::<()>();
            let held = held.clone();
            tasks.spawn(async move {
                let _held = held;
                let _ = what.await;
            });
            wakers.push(send);
        }
        assert_eq!(Arc::strong_count(&held), 201);
        tasks.close();
        assert_eq!(Arc::strong_count(&held), 1);
        let late = held.clone();
        tasks.spawn_later(async move { drop(late) });
        assert_eq!(Arc::strong_count(&held), 1);
        // The wakers are still about, and harmless.
        for send in wakers {
            let _ = send.send(());
        }
    }
}
