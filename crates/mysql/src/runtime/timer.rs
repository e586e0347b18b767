//! Timers of a runtime: futures that end at a moment.
//!
//! A timer is registered when it is polled first, and is looked at without a clock afterwards: the thread with the seat marks what is due in each round. So a
//! timer that nearly never fires (the time that a connection may be idle) costs a statement one load.

use super::{SEAT, Shared, home};
use futures::task::AtomicWaker;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

#[derive(Default)]
pub(super) struct Timers(Mutex<Registered>);

#[derive(Default)]
struct Registered {
    by_deadline: BTreeMap<(Instant, u64), Arc<Mark>>,
    next_number: u64,
}

/// What a timer and its runtime share.
#[derive(Default)]
struct Mark {
    due: AtomicBool,
    waker: AtomicWaker,
}

/// Ends at a moment, or soon after it.
#[must_use = "futures do nothing unless polled"]
pub struct Sleep {
    deadline: Instant,
    entry: Option<Entry>,
}

struct Entry {
    shared: Arc<Shared>,
    key: (Instant, u64),
    mark: Arc<Mark>,
}

pub fn sleep_until(deadline: Instant) -> Sleep {
    Sleep { deadline, entry: None }
}

pub fn sleep(duration: Duration) -> Sleep {
    // So far away that it does not matter: a sum that has no room is not a moment.
    let now = Instant::now();
    sleep_until(now.checked_add(duration).unwrap_or(now + Duration::from_secs(u32::MAX.into())))
}

/// What the future gives; `None` when it has not ended by then.
pub async fn timeout_at<T>(deadline: Instant, future: impl Future<Output = T>) -> Option<T> {
    let (mut future, mut timer) = (pin!(future), pin!(sleep_until(deadline)));
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => timer.as_mut().poll(cx).map(|()| None),
    })
    .await
}

impl Timers {
    /// Marks the timers that are due and collects the wakers of who waits for them.
    pub fn expire(&self, now: Instant, wakers: &mut Vec<Waker>) {
        let mut registered = self.0.lock();
        while let Some(first) = registered.by_deadline.first_entry()
            && first.key().0 <= now
        {
            let mark = first.remove();
            mark.due.store(true, Release);
            wakers.extend(mark.waker.take());
        }
    }

    /// The earliest deadline.
    pub fn next(&self) -> Option<Instant> {
        self.0.lock().by_deadline.first_key_value().map(|(&(deadline, _), _)| deadline)
    }

    /// Whether it is the earliest now.
    fn add(&self, deadline: Instant, mark: Arc<Mark>) -> ((Instant, u64), bool) {
        let mut registered = self.0.lock();
        let key = (deadline, registered.next_number);
        registered.next_number += 1;
        registered.by_deadline.insert(key, mark);
        let earliest = registered.by_deadline.first_key_value().is_some_and(|(&first, _)| first == key);
        (key, earliest)
    }
}

impl Sleep {
    /// Ends at another moment, and begins again when it had ended.
    pub fn reset(self: Pin<&mut Self>, deadline: Instant) {
        let this = self.get_mut();
        this.entry = None;
        this.deadline = deadline;
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let entry = match &this.entry {
            Some(entry) => entry,
            None if this.deadline <= Instant::now() => return Poll::Ready(()),
            None => {
                let (shared, mark) = (home(), Arc::<Mark>::default());
                mark.waker.register(cx.waker());
                let (key, earliest) = shared.timers.add(this.deadline, mark.clone());
                // The thread with the seat looks at the timers before it sleeps; another one must make it do so.
                if earliest && SEAT.with_borrow(Option::is_none) {
                    shared.notify();
                }
                this.entry.insert(Entry { shared, key, mark })
            }
        };
        if !entry.mark.due.load(Acquire) {
            entry.mark.waker.register(cx.waker());
            if !entry.mark.due.load(Acquire) {
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if !self.mark.due.load(Relaxed) {
            let removed = self.shared.timers.0.lock().by_deadline.remove(&self.key);
            drop(removed);
        }
    }
}
