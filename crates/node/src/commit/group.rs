//! Group commit: many commits, one sync.
//!
//! Who waits for the disk leaves a target (a position or a time) and a waker. Somebody flushes: with [`FlushPolicy::Committer`] a committer
//! that finds the log idle does it himself, on his own thread; with [`FlushPolicy::Thread`] a thread of its own does. Either way one flush takes
//! everything that was appended until it began, and when it ends those it covered are woken, and, if others wait, the next flush is seen to.
//!
//! One committer alone is served best by flushing himself: no thread switch, twice. With many, that would take a thread from statements
//! that could run during the sync, and the log thread is better. [`FlushPolicy::Adaptive`] looks at how many waited at the end of the last flushes, and tries the log thread now and then.
//!
//! A committer first gives way once, so that other tasks of his thread can append and share the sync.

use crate::error::NodeError;
use crate::runtime::Runtime;
use parking_lot::Mutex;
use rauk_log::redo::LogError;
use rauk_log::{Lsn, RedoLog};
use rauk_types::Timestamp;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Poll, Waker};

/// Who flushes the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlushPolicy {
    /// A committer while few commit, the log thread while many do.
    #[default]
    Adaptive,
    Committer,
    Thread,
}

/// What a waiting task wants on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Position(Lsn),
    Time(Timestamp),
}

pub struct GroupCommit {
    log: Arc<RedoLog>,
    runtime: Arc<dyn Runtime>,
    policy: FlushPolicy,
    flushing: AtomicBool,
    waiting: Mutex<Waiting>,
    /// Sixteenths: how many waited at the end of a flush, on average.
    crowd: AtomicU32,
    failed: OnceLock<String>,
    pub flushes: AtomicU64,
}

#[derive(Default)]
struct Waiting {
    list: Vec<(u64, Target, Waker)>,
    next: u64,
    /// The log thread, while it has nothing to do.
    idle_thread: Option<Waker>,
    thread_started: bool,
    /// Whether the log thread is to flush.
    wanted: bool,
    closed: bool,
}

/// From this crowd on (sixteenths) the log thread flushes.
const CROWDED: u32 = 24;

/// Of so many flushes in [`FlushPolicy::Adaptive`], the first [`TRIAL`] go to the log thread whatever the crowd: a committer that flushes on the only
/// thread keeps the others from coming, and would never learn of them.
const TRIAL_EVERY: u64 = 256;
const TRIAL: u64 = 8;

/// Bytes that are worth a flush although nobody waits for them.
const MUCH: u64 = 4 << 20;

impl GroupCommit {
    pub fn new(log: Arc<RedoLog>, runtime: Arc<dyn Runtime>, policy: FlushPolicy) -> Arc<GroupCommit> {
        Arc::new(GroupCommit {
            log,
            runtime,
            policy,
            flushing: AtomicBool::new(false),
            waiting: Mutex::default(),
            crowd: AtomicU32::new(0),
            failed: OnceLock::new(),
            flushes: AtomicU64::new(0),
        })
    }

    fn reached(&self, target: Target) -> bool {
        match target {
            Target::Position(lsn) => self.log.durable_lsn() >= lsn,
            Target::Time(time) => self.log.durable_time() >= time,
        }
    }

    /// Waits until the target is on disk; flushes itself if that is its part.
    pub async fn wait(self: &Arc<Self>, target: Target) -> Result<(), NodeError> {
        if self.reached(target) {
            return Ok(());
        }
        yield_once().await;
        self.wait_here(target, false).await
    }

    /// Makes everything appended so far durable, on this thread if no flush is under way: for checkpoints, epochs and the end.
    pub async fn flush_all(self: &Arc<Self>) -> Result<(), NodeError> {
        let end = self.log.end_lsn();
        self.wait_here(Target::Position(end), true).await
    }

    /// Has the log thread flush what was appended, if that is much. Nobody waits for it: what commits without waiting for
    /// long (a copy of a table) leaves less to be flushed at its end.
    pub fn flush_if_much(self: &Arc<Self>) {
        let unflushed = self.log.end_lsn().0.saturating_sub(self.log.durable_lsn().0);
        if unflushed >= MUCH && !self.flushing.load(Ordering::Relaxed) {
            self.wake_thread();
        }
    }

    async fn wait_here(self: &Arc<Self>, target: Target, here: bool) -> Result<(), NodeError> {
        let mut entry = Entry { group: self, number: None };
        poll_fn(move |cx| {
            loop {
                entry.leave();
                if self.reached(target) {
                    return Poll::Ready(Ok(()));
                }
                if let Some(reason) = self.failed.get() {
                    return Poll::Ready(Err(NodeError::UnknownOutcome(reason.clone())));
                }
                // Listed before looking who flushes: a flush that ends after this sees the entry, and then sees to it.
                entry.list(target, cx.waker());
                if !here && self.use_thread() {
                    self.wake_thread();
                    return Poll::Pending;
                }
                if self.flushing.swap(true, Ordering::SeqCst) {
                    return Poll::Pending;
                }
                entry.leave();
                if let Err(error) = self.flush_and_release() {
                    return Poll::Ready(Err(error));
                }
            }
        })
        .await
    }

    fn use_thread(&self) -> bool {
        match self.policy {
            FlushPolicy::Committer => false,
            FlushPolicy::Thread => true,
            FlushPolicy::Adaptive => {
                let trial = self.flushes.load(Ordering::Relaxed) % TRIAL_EVERY < TRIAL;
                trial || self.crowd.load(Ordering::Relaxed) >= CROWDED
            }
        }
    }

    /// Flushes, gives the right to flush back, and wakes whom it concerns. Called with `flushing` set by this caller.
    fn flush_and_release(self: &Arc<Self>) -> Result<(), NodeError> {
        let result = self.log.flush();
        self.flushes.fetch_add(1, Ordering::Relaxed);
        self.flushing.store(false, Ordering::SeqCst);
        if let Err(error) = result {
            let error = self.fail(error);
            let all = std::mem::take(&mut self.waiting.lock().list);
            all.into_iter().for_each(|(_, _, waker)| waker.wake());
            return Err(error);
        }
        let mut wake = Vec::new();
        let left = {
            let mut waiting = self.waiting.lock();
            let mut i = 0;
            while i < waiting.list.len() {
                if self.reached(waiting.list[i].1) {
                    wake.push(waiting.list.swap_remove(i).2);
                } else {
                    i += 1;
                }
            }
            waiting.list.len()
        };
        let crowd = self.crowd.load(Ordering::Relaxed);
        let now = ((wake.len() + left) as u32).min(64) * 16;
        self.crowd.store(crowd - crowd / 8 + now / 8, Ordering::Relaxed);
        if left > 0 {
            // The next flush: by the log thread, or by one of those who wait.
            if self.use_thread() {
                self.wake_thread();
            } else {
                wake.extend(self.waiting.lock().list.pop().map(|(_, _, waker)| waker));
            }
        }
        wake.into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// A failed sync is final: what is on disk is unknown.
    fn fail(&self, error: LogError) -> NodeError {
        let reason = self.failed.get_or_init(|| format!("the redo log cannot be made durable: {error}")).clone();
        self.runtime.fatal(&reason);
        NodeError::UnknownOutcome(reason)
    }

    fn wake_thread(self: &Arc<Self>) {
        let mut waiting = self.waiting.lock();
        waiting.wanted = true;
        if let Some(waker) = waiting.idle_thread.take() {
            drop(waiting);
            waker.wake();
        } else if !waiting.thread_started && !waiting.closed {
            waiting.thread_started = true;
            drop(waiting);
            let group = self.clone();
            self.runtime.spawn("log", Box::pin(async move { group.run_thread().await }));
        }
    }

    async fn run_thread(self: Arc<Self>) {
        loop {
            let go_on = poll_fn(|cx| {
                let mut waiting = self.waiting.lock();
                if waiting.closed {
                    return Poll::Ready(false);
                }
                if std::mem::take(&mut waiting.wanted) {
                    return Poll::Ready(true);
                }
                waiting.idle_thread = Some(cx.waker().clone());
                Poll::Pending
            })
            .await;
            if !go_on {
                return;
            }
            // Whoever flushes already looks at the list when he is through.
            if !self.flushing.swap(true, Ordering::SeqCst) && self.flush_and_release().is_err() {
                return;
            }
        }
    }

    /// Ends the log thread.
    pub fn close(&self) {
        let thread = {
            let mut waiting = self.waiting.lock();
            waiting.closed = true;
            waiting.idle_thread.take()
        };
        if let Some(waker) = thread {
            waker.wake();
        }
    }
}

/// A place in the list of those who wait, given back when the wait is dropped.
struct Entry<'a> {
    group: &'a Arc<GroupCommit>,
    number: Option<u64>,
}

impl Entry<'_> {
    fn list(&mut self, target: Target, waker: &Waker) {
        let mut waiting = self.group.waiting.lock();
        waiting.next += 1;
        self.number = Some(waiting.next);
        let number = waiting.next;
        waiting.list.push((number, target, waker.clone()));
    }

    /// `true` when it was still listed.
    fn leave(&mut self) -> bool {
        let Some(number) = self.number.take() else { return true };
        let mut waiting = self.group.waiting.lock();
        let at = waiting.list.iter().position(|(n, _, _)| *n == number);
        at.map(|at| waiting.list.swap_remove(at)).is_some()
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        // Whoever was woken to flush next and goes away instead passes that on.
        if !self.leave() {
            let next = self.group.waiting.lock().list.pop();
            if let Some((_, _, waker)) = next {
                waker.wake();
            }
        }
    }
}

/// Lets other tasks of this thread run once.
pub async fn yield_once() {
    let mut yielded = false;
    poll_fn(|cx| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
