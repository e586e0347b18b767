//! Waiting for something to change: a number that only grows, and who waits for the next.
//!
//! Who stops waiting leaves nothing behind: waits with a time limit come by the hundred where nothing ever fires.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Poll, Waker};

#[derive(Default)]
pub struct Event {
    number: AtomicU64,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    next: u64,
    /// In the order in which they came.
    wakers: BTreeMap<u64, Waker>,
}

impl Event {
    /// To be read before the look that decides to wait.
    pub fn number(&self) -> u64 {
        self.number.load(Ordering::SeqCst)
    }

    pub fn fire(&self) {
        self.number.fetch_add(1, Ordering::SeqCst);
        let waiting = std::mem::take(&mut self.waiting.lock().wakers);
        waiting.into_values().for_each(Waker::wake);
    }

    /// Resolves when the event has fired since `number` was read.
    pub async fn after(&self, number: u64) {
        let mut place = Place { event: self, key: None };
        poll_fn(|cx| {
            if self.number() > number {
                return Poll::Ready(());
            }
            {
                let mut waiting = self.waiting.lock();
                let key = *place.key.get_or_insert_with(|| {
                    waiting.next += 1;
                    waiting.next
                });
                waiting.wakers.insert(key, cx.waker().clone());
            }
            // Fired in between: nobody would wake this one.
            if self.number() > number { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

struct Place<'a> {
    event: &'a Event,
    key: Option<u64>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.event.waiting.lock().wakers.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::Context;

    #[test]
    fn who_stops_waiting_leaves_nothing_behind() {
        let event = Event::default();
        let cx = &mut Context::from_waker(Waker::noop());
        for _ in 0..100 {
            let mut wait = pin!(event.after(event.number()));
            for _ in 0..3 {
                assert!(wait.as_mut().poll(cx).is_pending());
            }
            assert_eq!(event.waiting.lock().wakers.len(), 1);
        }
        assert_eq!(event.waiting.lock().wakers.len(), 0);
    }

    #[test]
    fn what_has_fired_since_the_number_was_read_is_not_waited_for() {
        let event = Event::default();
        let cx = &mut Context::from_waker(Waker::noop());
        let number = event.number();
        let mut early = pin!(event.after(number));
        assert!(early.as_mut().poll(cx).is_pending());
        event.fire();
        assert!(early.as_mut().poll(cx).is_ready());
        assert!(pin!(event.after(number)).poll(cx).is_ready());
        assert!(pin!(event.after(event.number())).poll(cx).is_pending());
    }
}
