//! Timers for waits that nearly always end before their time: lock timeouts, epochs, DDL.
//!
//! One thread sleeps until the earliest deadline. Deadlines that are not near are rounded up to a grain of 2 ms, so that the timers of a thousand short waits wake it a few times and not a thousand. The heap may hold timers whose future is gone; they cost their place until they
//! are due, except that a heap of mostly dead timers is swept.

use parking_lot::{Condvar, Mutex};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    heap: BinaryHeap<Reverse<Entry>>,
    number: u64,
    closed: bool,
    /// Heap length at which dead timers are swept out.
    sweep_at: usize,
}

struct Entry {
    due: Instant,
    number: u64,
    slot: Weak<Mutex<Slot>>,
}

#[derive(Default)]
struct Slot {
    fired: bool,
    waker: Option<Waker>,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}

/// Shorter waits end when they should.
const NEAR: Duration = Duration::from_millis(20);
const GRAIN_MICROS: u64 = 2_000;

/// The timer thread. It ends when this is dropped.
pub struct Timer {
    shared: Arc<Shared>,
    began: Instant,
}

impl Timer {
    /// Starts the thread.
    pub fn start() -> std::io::Result<Timer> {
        let shared = Arc::new(Shared::default());
        let theirs = shared.clone();
        std::thread::Builder::new().name("rauk-timer".into()).spawn(move || run(&theirs))?;
        Ok(Timer { shared, began: Instant::now() })
    }

    pub fn sleep(&self, duration: Duration) -> Sleep {
        // Far deadlines (a lock wait timeout of years) stay representable.
        let due = self.rounded(Instant::now() + duration.min(Duration::from_secs(3600 * 24 * 365)), duration);
        let slot = Arc::new(Mutex::new(Slot::default()));
        let mut state = self.shared.state.lock();
        state.number += 1;
        let number = state.number;
        let earliest = state.heap.peek().is_none_or(|Reverse(e)| due < e.due);
        state.heap.push(Reverse(Entry { due, number, slot: Arc::downgrade(&slot) }));
        if state.heap.len() >= state.sweep_at.max(1024) {
            state.heap.retain(|Reverse(e)| e.slot.strong_count() > 0);
            state.sweep_at = state.heap.len() * 2;
        }
        drop(state);
        if earliest {
            self.shared.changed.notify_one();
        }
        Sleep { slot }
    }

    fn rounded(&self, due: Instant, duration: Duration) -> Instant {
        if duration < NEAR {
            return due;
        }
        let since = due.saturating_duration_since(self.began).as_micros() as u64;
        self.began + Duration::from_micros(since.next_multiple_of(GRAIN_MICROS))
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.shared.state.lock().closed = true;
        self.shared.changed.notify_one();
    }
}

fn run(shared: &Shared) {
    let mut state = shared.state.lock();
    loop {
        if state.closed {
            return;
        }
        let now = Instant::now();
        match state.heap.peek() {
            None => shared.changed.wait(&mut state),
            Some(Reverse(first)) if first.due > now => {
                let due = first.due;
                shared.changed.wait_until(&mut state, due);
            }
            Some(_) => {
                let Some(Reverse(entry)) = state.heap.pop() else { continue };
                let Some(slot) = entry.slot.upgrade() else { continue };
                // The waker is called without the heap's lock: it may set a timer itself.
                parking_lot::MutexGuard::unlocked(&mut state, || {
                    let waker = {
                        let mut slot = slot.lock();
                        slot.fired = true;
                        slot.waker.take()
                    };
                    if let Some(waker) = waker {
                        waker.wake();
                    }
                });
            }
        }
    }
}

/// Ends when its time has come.
pub struct Sleep {
    slot: Arc<Mutex<Slot>>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut slot = self.slot.lock();
        if slot.fired {
            return Poll::Ready(());
        }
        slot.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}
