//! Time for futures that need no particular runtime: one thread for the whole process, started with the first timer, asleep while there is none.
//!
//! Timers here are few and coarse: pauses before something is tried again, and one sweep a connection for requests that wait too long.

use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// When, and a number that tells timers of the same moment apart.
type Key = (Instant, u64);

#[derive(Default)]
struct Timers {
    waiting: BTreeMap<Key, Waker>,
    next: u64,
    running: bool,
}

#[derive(Default)]
struct Clock {
    timers: Mutex<Timers>,
    changed: Condvar,
}

fn clock() -> &'static Clock {
    static CLOCK: OnceLock<Clock> = OnceLock::new();
    CLOCK.get_or_init(Clock::default)
}

/// Wakes once, at or soon after `when`.
pub(crate) fn wake_at(when: Instant, waker: Waker) -> Key {
    let clock = clock();
    let mut timers = clock.timers.lock();
    timers.next += 1;
    let key = (when, timers.next);
    let is_first = timers.waiting.first_key_value().is_none_or(|(first, _)| key < *first);
    timers.waiting.insert(key, waker);
    if !timers.running {
        let thread = std::thread::Builder::new().name("rauk-client-timer".into()).spawn(|| run(self::clock()));
        // Without a thread nothing would ever time out: the timer is then due at once, and what waits for it asks again.
        match thread {
            Ok(_) => timers.running = true,
            Err(_) => timers.waiting.remove(&key).into_iter().for_each(Waker::wake),
        }
    } else if is_first {
        clock.changed.notify_one();
    }
    key
}

fn cancel(key: Key) {
    clock().timers.lock().waiting.remove(&key);
}

fn run(clock: &Clock) {
    let mut timers = clock.timers.lock();
    loop {
        let now = Instant::now();
        match timers.waiting.first_key_value().map(|(key, _)| *key) {
            None => clock.changed.wait(&mut timers),
            Some(key) if key.0 > now => {
                clock.changed.wait_until(&mut timers, key.0);
            }
            Some(key) => {
                if let Some(waker) = timers.waiting.remove(&key) {
                    parking_lot::MutexGuard::unlocked(&mut timers, || waker.wake());
                }
            }
        }
    }
}

/// Ready after a duration.
pub(crate) fn sleep(duration: Duration) -> Sleep {
    Sleep { until: Instant::now() + duration, set: None }
}

pub(crate) struct Sleep {
    until: Instant,
    set: Option<(Key, Waker)>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if Instant::now() >= self.until {
            return Poll::Ready(());
        }
        if self.set.as_ref().is_none_or(|(_, waker)| !waker.will_wake(cx.waker())) {
            if let Some((key, _)) = self.set.take() {
                cancel(key);
            }
            let key = wake_at(self.until, cx.waker().clone());
            self.set = Some((key, cx.waker().clone()));
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some((key, _)) = self.set.take() {
            cancel(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_end_in_their_order_and_not_before_their_time() {
        let start = Instant::now();
        crate::blocking::wait(async {
            let long = sleep(Duration::from_millis(40));
            let short = sleep(Duration::from_millis(10));
            match futures::future::select(long, short).await {
                futures::future::Either::Right(((), long)) => {
                    assert!(start.elapsed() >= Duration::from_millis(10));
                    long.await;
                    assert!(start.elapsed() >= Duration::from_millis(40));
                }
                futures::future::Either::Left(_) => panic!("the longer sleep ended first"),
            }
            drop(sleep(Duration::from_secs(3600)));
        });
    }
}
