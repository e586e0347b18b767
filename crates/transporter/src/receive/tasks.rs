//! Tasks: what a handler could not finish at once, polled by the link's receiver.
//!
//! A task's waker puts it into the ready list of its receive set, once until it is polled, and wakes the receiver if that sleeps. A task that panics closes its link; the
//! receiver lives on.

use super::ReceiveSet;
use crate::{CloseReason, Link};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::task::{Context, Wake, Waker};

pub(crate) type Future = Pin<Box<dyn std::future::Future<Output = ()> + Send>>;

/// A pending task. It stays with the receiver that polled it first.
pub(crate) struct Task {
    pub link: Arc<Link>,
    pub future: Future,
    pub waker: Arc<TaskWaker>,
    /// Number of its link's socket, and its place in that one's list.
    pub token: usize,
    pub position: usize,
}

pub(crate) struct TaskWaker {
    set: Arc<ReceiveSet>,
    key: AtomicUsize,
    queued: AtomicBool,
}

impl TaskWaker {
    pub fn new(set: Arc<ReceiveSet>) -> Arc<TaskWaker> {
        Arc::new(TaskWaker { set, key: AtomicUsize::new(usize::MAX), queued: AtomicBool::new(false) })
    }

    /// Its key among the receiver's tasks; `usize::MAX` before it has one.
    pub fn key(&self) -> usize {
        self.key.load(Acquire)
    }

    pub fn set_key(&self, key: usize) {
        self.key.store(key, Release);
    }

    /// Nobody else has it, and it was never woken: it is as good as new.
    pub fn is_unused(self: &Arc<Self>, set: &Arc<ReceiveSet>) -> bool {
        Arc::strong_count(self) == 1 && !self.queued.load(Acquire) && Arc::ptr_eq(&self.set, set)
    }

    /// Wakes from now on count again.
    pub fn is_taken(&self) {
        self.queued.store(false, Release);
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        if !self.queued.swap(true, AcqRel) {
            let set = self.set.clone();
            set.ready(self);
        }
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, AcqRel) {
            self.set.ready(self.clone());
        }
    }
}

/// Polls a task; answers whether it is pending. A link that is closed has no pending tasks.
pub(crate) fn poll(link: &Arc<Link>, future: &mut Future, waker: &Arc<TaskWaker>) -> bool {
    let waker = Waker::from(waker.clone());
    let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending()));
    match polled {
        Ok(pending) => pending && !link.is_closed(),
        Err(panic) => {
            on_panic(link, "a task", panic.as_ref());
            false
        }
    }
}

/// Logs a panic of the handler's code and closes the link that it was about.
pub(crate) fn on_panic(link: &Link, what: &str, panic: &(dyn std::any::Any + Send)) {
    let message = panic
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    tracing::error!(connection = link.connection(), peer = %link.peer(), "{what} of a link panicked: {message}");
    link.close(CloseReason::Protocol(format!("{what} of the link panicked")));
}
