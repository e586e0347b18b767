//! The send thread: goes on for senders that have sent enough, and sends what has waited long enough.
//!
//! A frame that may wait does not wake anybody: a futex call for each would cost what the wait saves. Links that let frames wait are *listed*; while there are any the thread
//! wakes about once in the longest wait, looks at their deadlines (each is one atomic), and sleeps exactly until the next one. A deadline that begins after a look ends
//! after the next look, so none is missed. Receivers that spin keep deadlines too, and then the thread finds nothing to do. After a while without any frame waiting it
//! takes the links off its list and sleeps without a time-out; the first frame that waits after that wakes it.

use crate::Link;
use crate::shared::Shared;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

/// Looks without anything waiting, before it sleeps without a time-out.
const QUIET: u32 = 50;
/// The kernel wakes a sleeping thread up to so much later than asked (its timer slack).
const SLACK: Duration = Duration::from_micros(50);
const SHORTEST_LOOK: Duration = Duration::from_micros(50);

#[derive(Default)]
pub(crate) struct SendThread {
    state: Mutex<State>,
    wake: Condvar,
    /// It will look at deadlines by itself.
    watching: AtomicBool,
    /// No listed link has a deadline before this (nanoseconds).
    earliest: AtomicU64,
    listed: Mutex<Vec<Arc<Link>>>,
}

#[derive(Default)]
struct State {
    /// Links whose sender has handed over.
    handed: VecDeque<Arc<Link>>,
    ending: bool,
    ended: bool,
}

impl SendThread {
    pub fn new() -> SendThread {
        SendThread { earliest: AtomicU64::new(u64::MAX), ..SendThread::default() }
    }

    /// A sender has sent enough; it stays active in this thread.
    pub fn take_over(&self, link: Arc<Link>) {
        let mut state = self.state.lock();
        if state.ended {
            drop(state);
            return link.stop_sending();
        }
        state.handed.push_back(link);
        self.wake.notify_one();
    }

    /// A frame waits on `link`; its deadline is set.
    pub fn watch(&self, link: &Link, deadline: u64) {
        if !link.listed.load(SeqCst) {
            self.list(link);
        }
        self.earliest.fetch_min(deadline, SeqCst);
        if !self.watching.load(SeqCst) && !self.watching.swap(true, SeqCst) {
            let _state = self.state.lock();
            self.wake.notify_one();
        }
    }

    fn list(&self, link: &Link) {
        if !link.listed.swap(true, SeqCst)
            && let Some(link) = link.me.upgrade()
        {
            self.listed.lock().push(link);
        }
    }

    /// Sends on every link whose deadline is not after `until`. Nearly free when there is none.
    pub fn send_due(&self, until: Duration) {
        if u128::from(self.earliest.load(SeqCst)) > until.as_nanos() {
            return;
        }
        let Some(mut listed) = self.listed.try_lock() else { return };
        self.earliest.store(u64::MAX, SeqCst);
        let mut due = Vec::new();
        listed.retain(|link| {
            let deadline = link.deadline.load(SeqCst);
            if u128::from(deadline) <= until.as_nanos() {
                due.push(link.clone());
            } else if deadline != u64::MAX {
                self.earliest.fetch_min(deadline, SeqCst);
            }
            !link.is_closed()
        });
        drop(listed);
        for link in due {
            link.send_if_due(until);
        }
    }

    pub fn end(&self) {
        self.state.lock().ending = true;
        self.wake.notify_one();
    }

    pub fn run(&self, shared: &Shared) {
        let mut quiet = 0;
        loop {
            loop {
                let mut state = self.state.lock();
                let Some(link) = state.handed.pop_front() else { break };
                drop(state);
                link.go_on_sending();
            }
            self.send_due(shared.now() + SLACK);
            let earliest = self.earliest.load(SeqCst);
            quiet = if earliest == u64::MAX { quiet + 1 } else { 0 };
            if quiet >= QUIET {
                self.unlist();
            }
            let mut state = self.state.lock();
            if !state.handed.is_empty() {
                continue;
            }
            if state.ending {
                state.ended = true;
                self.listed.lock().clear();
                return;
            }
            if quiet >= QUIET {
                self.watching.store(false, SeqCst);
                if self.earliest.load(SeqCst) == u64::MAX {
                    self.wake.wait(&mut state);
                }
                self.watching.store(true, SeqCst);
                quiet = 0;
            } else {
                let look = shared.longest_wait().max(SHORTEST_LOOK);
                let until_due = Duration::from_nanos(earliest).saturating_sub(shared.now() + SLACK);
                self.wake.wait_for(&mut state, until_due.clamp(Duration::from_micros(1), look));
            }
        }
    }

    /// Takes all links off the list, but those with a frame that has begun to wait meanwhile.
    fn unlist(&self) {
        let listed = std::mem::take(&mut *self.listed.lock());
        for link in listed {
            link.listed.store(false, SeqCst);
            if link.deadline.load(SeqCst) != u64::MAX {
                self.list(&link);
                self.earliest.fetch_min(link.deadline.load(SeqCst), SeqCst);
            }
        }
    }
}
