//! Transactions between requests.
//!
//! A [`Slot`] keeps a transaction (with the scans that read through it) while no request works on it. Requests of one transaction queue at its slot and go in the order of their
//! arrival; each takes the transaction out, works on it, and puts it back. A request that is dropped halfway, or whose transaction ends, puts nothing back:
//! what was taken out is rolled back by being dropped, and whoever queues behind finds that the transaction has ended.

use super::scan::OpenScan;
use crate::NodeError;
use crate::transaction::{Interrupt, Transaction};
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

/// A transaction and what belongs to it.
pub struct Held {
    pub txn: Transaction,
    pub read_only: bool,
    /// Numbers of savepoints that can be gone back to, ascending.
    pub savepoints: Vec<u32>,
    /// Scans that read through this transaction itself.
    pub scans: BTreeMap<u64, OpenScan>,
    /// Scans that have readers of their own beside it; they end with it.
    pub readers: Vec<u64>,
}

impl Held {
    pub fn new(txn: Transaction, read_only: bool) -> Held {
        Held { txn, read_only, savepoints: Vec::new(), scans: BTreeMap::new(), readers: Vec::new() }
    }
}

pub struct Slot {
    /// The session's number of the transaction; 0 for a reader that one scan has to itself.
    pub transaction: u64,
    queue: Mutex<Queue>,
    held: Mutex<Option<Held>>,
}

#[derive(Default)]
struct Queue {
    /// Who is here, the one at work first.
    waiting: VecDeque<(u64, Option<Waker>)>,
    next: u64,
    /// When the last one left.
    idle_since: Duration,
}

impl Slot {
    pub fn new(transaction: u64, held: Held) -> Arc<Slot> {
        Arc::new(Slot { transaction, queue: Mutex::default(), held: Mutex::new(Some(held)) })
    }

    /// Gets into the queue: the order of these calls is the order of work.
    pub fn enter(self: &Arc<Self>) -> Turn {
        let mut queue = self.queue.lock();
        let number = queue.next;
        queue.next += 1;
        queue.waiting.push_back((number, None));
        Turn { slot: self.clone(), number }
    }

    pub fn put(&self, held: Held) {
        *self.held.lock() = Some(held);
    }

    pub fn take(&self) -> Option<Held> {
        self.held.lock().take()
    }

    /// Since when nobody is here; `None` while somebody is.
    pub fn idle_since(&self) -> Option<Duration> {
        let queue = self.queue.lock();
        queue.waiting.is_empty().then_some(queue.idle_since)
    }

    pub fn set_idle(&self, now: Duration) {
        self.queue.lock().idle_since = now;
    }
}

/// A place in a slot's queue.
pub struct Turn {
    slot: Arc<Slot>,
    number: u64,
}

impl Turn {
    /// Waits until all that came before have left.
    pub async fn come(&self, interrupt: &Interrupt) -> Result<(), NodeError> {
        poll_fn(|cx| {
            {
                let mut queue = self.slot.queue.lock();
                let first = queue.waiting.front().is_some_and(|(number, _)| *number == self.number);
                if first {
                    return Poll::Ready(Ok(()));
                }
                if let Some((_, waker)) = queue.waiting.iter_mut().find(|(number, _)| *number == self.number) {
                    *waker = Some(cx.waker().clone());
                }
            }
            match interrupt.poll(cx.waker()) {
                true => Poll::Ready(Err(NodeError::Interrupted)),
                false => Poll::Pending,
            }
        })
        .await
    }

    pub fn slot(&self) -> &Arc<Slot> {
        &self.slot
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let next = {
            let mut queue = self.slot.queue.lock();
            let was_first = queue.waiting.front().is_some_and(|(number, _)| *number == self.number);
            queue.waiting.retain(|(number, _)| *number != self.number);
            match queue.waiting.front_mut() {
                Some((_, waker)) if was_first => waker.take(),
                _ => None,
            }
        };
        if let Some(waker) = next {
            waker.wake();
        }
    }
}
