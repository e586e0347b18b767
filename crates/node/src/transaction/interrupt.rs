//! KILL QUERY: a flag that statements look at, and the waker of the one that waits; and for how long a session has
//! waited for locks on this node.

use crate::error::NodeError;
use futures::future::{Either, select};
use parking_lot::Mutex;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Poll, Waker};
use std::time::Duration;

/// KILL QUERY for one session: a flag, and the waiting task to wake.
#[derive(Debug, Default)]
pub struct Interrupt {
    killed: AtomicBool,
    waiting: Mutex<Option<Waker>>,
    /// Nanoseconds of all waits for locks that have ended.
    waited: AtomicU64,
}

impl Interrupt {
    /// Interrupts the running statement of the session, also while it waits.
    pub fn kill(&self) {
        self.killed.store(true, Ordering::SeqCst);
        let waiting = self.waiting.lock().take();
        if let Some(waker) = waiting {
            waker.wake();
        }
    }

    /// A wait for a lock has ended.
    pub(crate) fn note_wait(&self, waited: Duration) {
        self.waited.fetch_add(u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// How long all waits for locks have taken that have ended.
    pub fn waited(&self) -> Duration {
        Duration::from_nanos(self.waited.load(Ordering::Relaxed))
    }

    /// Called at the beginning of a statement.
    pub fn clear(&self) {
        self.killed.store(false, Ordering::SeqCst);
    }

    pub fn is_killed(&self) -> bool {
        self.killed.load(Ordering::Relaxed)
    }

    /// Does `work`, which is dropped when the statement is killed: 1317.
    pub async fn unless_killed<T>(&self, work: impl Future<Output = Result<T, NodeError>>) -> Result<T, NodeError> {
        let killed = poll_fn(|cx| if self.poll(cx.waker()) { Poll::Ready(()) } else { Poll::Pending });
        match select(killed, pin!(work)).await {
            Either::Left(_) => Err(NodeError::Interrupted),
            Either::Right((result, _)) => result,
        }
    }

    /// Whether it was killed; if not, `waker` is woken when it is.
    pub fn poll(&self, waker: &Waker) -> bool {
        *self.waiting.lock() = Some(waker.clone());
        self.killed.load(Ordering::SeqCst)
    }
}
