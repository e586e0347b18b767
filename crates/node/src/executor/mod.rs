//! Whoever finds it idle runs it: one writer at a time without a thread of its own.
//!
//! A [`Guarded`] holds a value (a partition) that only one thread may touch at a time. [`Guarded::with`] brings a closure.
//! When nobody is at it, the caller takes the guard with one compare-and-swap, runs the closure and leaves: no allocation, no
//! thread switch. When somebody is, the closure goes into an inbox and the task parks; whoever holds the guard runs the inbox
//! before leaving, in the order of [`Class`]. No thread ever blocks, and since a closure cannot await, no guard is held over a wait.
//!
//! The state is one atomic word of two bits:
//!
//! | HELD | WORK | meaning |
//! |---|---|---|
//! | 0 | 0 | idle |
//! | 1 | 0 | held, nothing was brought since the holder looked |
//! | 1 | 1 | held, and there is work in the inbox: the release fails and the holder runs it |
//! | 0 | 1 | handed over: a turn was full, one of the waiting tasks was woken to go on |
//!
//! Who brings work puts it into the inbox first and then sets both bits; if HELD was clear, he has the guard himself. So no
//! work is ever left behind: either the holder's release fails, or the bringer holds. A turn ends after [`TURN`] units of work; the
//! holder then releases and wakes a task that waits in the inbox, whose poll takes the guard up. A task that is dropped while it
//! waits takes its job back and, if the guard was handed to it, goes on in its place.
//!
//! *What comes first.* Some of what happens to the value is decided elsewhere and waits in a queue of its owner's
//! ([`Guarded::announce`]). Whoever enters next brings it to the value before the own work ([`Guarded::set_first`]), so
//! that nobody ever sees the value without it.
//!
//! If a job panics, the value is in an unknown state: the guard stays held for ever and `on_panic` is called, which must stop the node.
//!
//! `unsafe` stands in two places. Entering the cell: the safe way, a mutex inside beside the state word, costs 9.7 ns a call instead of 4.5
//! (`benches/node.rs`: `guard`, `mutex_for_comparison`), on a path that is entered several times a statement. And letting a waiting job borrow: jobs
//! that own all they touch would copy keys and rows on every call, waiting or not.

mod inbox;
mod sync;
mod waiting;

pub use inbox::Class;

use inbox::{Inbox, Job, Owner};
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};
use std::task::Waker;
use sync::{AtomicU32, Cell, Mutex, Ordering};
use waiting::{Detached, Waiting};

const HELD: u32 = 1;
const WORK: u32 = 2;

/// Units of work ([`Class::weight`]) after which a holder hands over: 64 point jobs, or 4 slices.
pub const TURN: u32 = 64;

type Wakers = SmallVec<[Waker; 8]>;

/// A value that one thread at a time works on; see the module's text.
pub struct Guarded<T> {
    state: AtomicU32,
    cell: Cell<T>,
    inbox: Mutex<Inbox<T>>,
    /// Something was announced since `first` was run.
    announced: AtomicU32,
    first: OnceLock<First<T>>,
    on_panic: Box<dyn Fn() + Send + Sync>,
}

type First<T> = Box<dyn Fn(&mut T) + Send + Sync>;

// SAFETY: the cell is entered only by the thread that set HELD, and left before HELD is cleared with release order; the
// next to set it does so with acquire order. So `T` moves between threads but is never shared: `Send` suffices.
unsafe impl<T: Send> Sync for Guarded<T> {}
// SAFETY: all parts are `Send` when `T` is.
unsafe impl<T: Send> Send for Guarded<T> {}

impl<T: Send> Guarded<T> {
    /// `on_panic` is called when a job has panicked, and must stop the node.
    pub fn new(value: T, on_panic: impl Fn() + Send + Sync + 'static) -> Self {
        Guarded {
            state: AtomicU32::new(0),
            cell: Cell::new(value),
            inbox: Mutex::new(Inbox::default()),
            announced: AtomicU32::new(0),
            first: OnceLock::new(),
            on_panic: Box::new(on_panic),
        }
    }

    /// What whoever enters runs before the own work, if something was announced. It is set once.
    pub fn set_first(&self, first: impl Fn(&mut T) + Send + Sync + 'static) {
        assert!(self.first.set(Box::new(first)).is_ok(), "what comes first is set once");
    }

    /// Something waits for the value: whoever enters after this call brings it there first. Nobody is made to enter.
    #[inline]
    pub fn announce(&self) {
        self.announced.store(1, Ordering::Release);
    }

    /// Runs `f` on the value: now when it is idle, else as soon as it is its turn. `f` must be short (≤ 20 µs) and must not wait.
    #[inline]
    pub async fn with<R: Send, F: FnOnce(&mut T) -> R + Send>(&self, class: Class, f: F) -> R {
        match self.try_with(f) {
            Ok(r) => r,
            Err(f) => Waiting::new(self, class, f).await,
        }
    }

    /// Runs `f` when nobody is at the value and no work waits; else gives `f` back.
    #[inline]
    pub fn try_with<R, F: FnOnce(&mut T) -> R>(&self, f: F) -> Result<R, F> {
        if self.state.compare_exchange(0, HELD, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return Err(f);
        }
        let r = self.enter(f);
        if self.state.compare_exchange(HELD, 0, Ordering::Release, Ordering::Relaxed).is_err() {
            self.run_inbox();
        }
        Ok(r)
    }

    /// Runs `f` now or later, without anybody waiting for it. What the same thread brings afterwards with the same or a later class runs after it.
    pub fn detach(&self, class: Class, f: impl FnOnce(&mut T) + Send + 'static) {
        if let Err(f) = self.try_with(f) {
            self.bring(class, Arc::new(Detached::new(f)));
        }
    }

    /// Only for the thread that holds the guard.
    #[inline]
    fn enter<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        let on_unwind = OnUnwind(&*self.on_panic);
        if self.announced.load(Ordering::Acquire) != 0 {
            self.run_first();
        }
        // SAFETY: this thread set HELD and has not cleared it; nobody else enters.
        let r = unsafe { self.cell.with_mut(f) };
        std::mem::forget(on_unwind);
        r
    }

    /// Only for the thread that holds the guard, from [`Guarded::enter`].
    #[cold]
    fn run_first(&self) {
        // Before it looks: what is announced after the look is announced again.
        self.announced.swap(0, Ordering::AcqRel);
        if let Some(first) = self.first.get() {
            // SAFETY: as in `enter`, before it lends the value to the work.
            unsafe { self.cell.with_mut(|value| first(value)) };
        }
    }

    /// Puts a job into the inbox, and runs the inbox if nobody holds the guard.
    fn bring(&self, class: Class, job: Arc<dyn Job<T>>) {
        self.inbox.lock().push(class, job);
        if self.state.fetch_or(HELD | WORK, Ordering::AcqRel) & HELD == 0 {
            self.run_inbox();
        }
    }

    /// Takes the guard up if it was handed over and nobody has it.
    fn take_up(&self) {
        if self.state.compare_exchange(WORK, HELD | WORK, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            self.run_inbox();
        }
    }

    /// As a holder whose turn is over as soon as it has begun.
    #[cfg(all(test, loom))]
    fn hand_over_for_test(&self) {
        if self.state.compare_exchange(0, HELD, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return;
        }
        self.run_inbox_from(TURN);
    }

    /// Runs what is in the inbox and releases the guard, which this thread holds.
    #[cold]
    fn run_inbox(&self) {
        self.run_inbox_from(0);
    }

    fn run_inbox_from(&self, mut done: u32) {
        let mut wakers = Wakers::new();
        loop {
            if self.state.compare_exchange(HELD, 0, Ordering::Release, Ordering::Relaxed).is_ok() {
                break;
            }
            // Cleared before the look, so that what is brought after the look sets it again.
            self.state.fetch_and(!WORK, Ordering::AcqRel);
            if !self.run_some(&mut done, &mut wakers) {
                break;
            }
        }
        for waker in wakers {
            waker.wake();
        }
    }

    /// Runs jobs until there are none (`true`) or the turn is over and the guard handed over (`false`).
    fn run_some(&self, done: &mut u32, wakers: &mut Wakers) -> bool {
        loop {
            if *done >= TURN && self.hand_over(wakers) {
                return false;
            }
            let job = self.inbox.lock().pop();
            let Some((class, job)) = job else { return true };
            *done += class.weight();
            wakers.extend(self.enter(|value| job.run(value)));
        }
    }
}

impl<T: Send> Guarded<T> {
    /// Releases the guard and wakes a task that goes on; `false` when nobody waits and this thread still holds the guard.
    fn hand_over(&self, wakers: &mut Wakers) -> bool {
        if self.inbox.lock().successor().is_none() {
            return false;
        }
        self.state.swap(WORK, Ordering::AcqRel);
        // Looked for once more behind the release: a task that left its waker, or went away, since the first look has found the guard held.
        match self.inbox.lock().successor() {
            Some(Owner::Parked(waker)) => wakers.push(waker),
            Some(Owner::Coming) => {}
            Some(Owner::Nobody) => unreachable!("a successor is somebody"),
            None => {
                let (held, order) = (HELD | WORK, Ordering::Acquire);
                return self.state.compare_exchange(WORK, held, order, Ordering::Relaxed).is_err();
            }
        }
        true
    }
}

/// Calls when it is dropped, which happens only while a panic unwinds.
struct OnUnwind<'a>(&'a (dyn Fn() + Send + Sync));

impl Drop for OnUnwind<'_> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[cfg(test)]
mod tests;
