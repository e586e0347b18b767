//! A task that waits for its job to be run, and jobs nobody waits for.

use super::Guarded;
use super::inbox::{Class, Job, Owner};
use super::sync::{Mutex, yield_now};
use std::future::Future;
use std::mem::replace;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// A job and its way back to the owner.
struct Ticket<F, R> {
    slot: Mutex<Slot<F, R>>,
}

enum Slot<F, R> {
    Waiting(F, Option<Waker>),
    Running(Option<Waker>),
    Done(R),
    /// Taken by the owner, given up, or lost in a panic.
    Empty,
}

impl<T, R: Send, F: FnOnce(&mut T) -> R + Send> Job<T> for Ticket<F, R> {
    fn run(&self, target: &mut T) -> Option<Waker> {
        let f = {
            let mut slot = self.slot.lock();
            match replace(&mut *slot, Slot::Empty) {
                Slot::Waiting(f, waker) => {
                    *slot = Slot::Running(waker);
                    f
                }
                other => {
                    *slot = other;
                    return None;
                }
            }
        };
        let lost = LostOnUnwind(self);
        let r = f(target);
        std::mem::forget(lost);
        match replace(&mut *self.slot.lock(), Slot::Done(r)) {
            Slot::Running(waker) => waker,
            _ => unreachable!("only the one who runs a job ends it"),
        }
    }

    fn owner(&self) -> Owner {
        match &*self.slot.lock() {
            Slot::Waiting(_, Some(waker)) => Owner::Parked(waker.clone()),
            Slot::Waiting(_, None) => Owner::Coming,
            _ => Owner::Nobody,
        }
    }
}

/// When a job panics, its owner must not wait for its end.
struct LostOnUnwind<'a, F, R>(&'a Ticket<F, R>);

impl<F, R> Drop for LostOnUnwind<'_, F, R> {
    fn drop(&mut self) {
        *self.0.slot.lock() = Slot::Empty;
    }
}

/// The future of [`Guarded::with`] when the value was not idle.
pub struct Waiting<'a, T: Send, F, R> {
    target: &'a Guarded<T>,
    ticket: Arc<Ticket<F, R>>,
}

impl<'a, T: Send, R: Send, F: FnOnce(&mut T) -> R + Send> Waiting<'a, T, F, R> {
    pub fn new(target: &'a Guarded<T>, class: Class, f: F) -> Self {
        let ticket = Arc::new(Ticket { slot: Mutex::new(Slot::Waiting(f, None)) });
        // In being before the job is in the inbox, so that from then on its drop takes the job back.
        let waiting = Waiting { target, ticket };
        let job: Arc<dyn Job<T> + '_> = waiting.ticket.clone();
        // SAFETY: the inbox wants jobs without borrows, this one may borrow what outlives `waiting`. Borrowed data is
        // touched only by `f` and by drops of `f` and `R`. `f` is taken out of the ticket either by the thread that runs it,
        // and then `Waiting::drop` waits for its end, or by `Waiting::drop`; `R` is taken out by `poll` or `Waiting::drop`. So
        // behind the end of `waiting` the ticket is `Empty`, and neither running nor dropping it touches anything borrowed. The
        // future must not be leaked with `mem::forget` while it waits; the node only ever awaits it within its own futures.
        let job: Arc<dyn Job<T> + 'static> = unsafe { std::mem::transmute(job) };
        target.bring(class, job);
        waiting
    }
}

impl<T: Send, R: Send, F: FnOnce(&mut T) -> R + Send> Future for Waiting<'_, T, F, R> {
    type Output = R;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<R> {
        for look in 0..2 {
            let mut slot = self.ticket.slot.lock();
            match &mut *slot {
                Slot::Waiting(_, waker) | Slot::Running(waker) => *waker = Some(cx.waker().clone()),
                Slot::Done(_) => {
                    let Slot::Done(r) = replace(&mut *slot, Slot::Empty) else { unreachable!("seen above") };
                    return Poll::Ready(r);
                }
                // The job panicked: the node is being stopped.
                Slot::Empty => return Poll::Pending,
            }
            drop(slot);
            if look == 0 {
                self.target.take_up();
            }
        }
        Poll::Pending
    }
}

impl<T: Send, F, R> Drop for Waiting<'_, T, F, R> {
    fn drop(&mut self) {
        loop {
            let mut slot = self.ticket.slot.lock();
            if matches!(&*slot, Slot::Running(_)) {
                // At most one job's time, some microseconds.
                drop(slot);
                yield_now();
                continue;
            }
            let taken = replace(&mut *slot, Slot::Empty);
            drop(slot);
            drop(taken);
            break;
        }
        // If the guard was handed to this task, it must not stay behind.
        self.target.take_up();
    }
}

/// A job that nobody waits for.
pub struct Detached<F>(Mutex<Option<F>>);

impl<F> Detached<F> {
    pub fn new(f: F) -> Self {
        Detached(Mutex::new(Some(f)))
    }
}

impl<T, F: FnOnce(&mut T) + Send> Job<T> for Detached<F> {
    fn run(&self, target: &mut T) -> Option<Waker> {
        let f = self.0.lock().take();
        if let Some(f) = f {
            f(target);
        }
        None
    }

    fn owner(&self) -> Owner {
        Owner::Nobody
    }
}
