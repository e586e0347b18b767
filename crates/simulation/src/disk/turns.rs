//! Two threads that use the disk at the same time, in an order that the seed draws.
//!
//! Only the one whose turn it is runs; before each of its operations the other may be let go on, and is when it ends.
//! So a run with two threads is as repeatable as one with a single thread, and any order of their operations occurs.

use parking_lot::{Condvar, Mutex};
use std::cell::RefCell;
use std::sync::Arc;

type Work<'a> = Box<dyn FnOnce() + Send + 'a>;

#[derive(Default)]
struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    turn: usize,
    over: [bool; 2],
}

thread_local! {
    /// Which of two this thread is, while it is one of them.
    static OWN: RefCell<Option<(Arc<Turns>, usize)>> = const { RefCell::new(None) };
}

/// Does both, the first on this thread.
pub fn together<'a>(first: Work<'a>, second: Work<'a>) {
    let turns = Arc::new(Turns::default());
    std::thread::scope(|scope| {
        let other = turns.clone();
        scope.spawn(move || other.run(1, second));
        turns.run(0, first);
    });
}

/// To be called before each operation of the disk; `passes`: whether it is the other's turn now.
pub fn before_operation(passes: impl FnOnce() -> bool) {
    let Some((turns, own)) = OWN.with_borrow(Clone::clone) else { return };
    if !turns.state.lock().over[1 - own] && passes() {
        turns.give(own, false);
        turns.wait(own);
    }
}

impl Turns {
    fn run(self: &Arc<Turns>, own: usize, work: Work) {
        self.wait(own);
        OWN.set(Some((self.clone(), own)));
        let _end = End(self, own);
        work();
    }

    fn wait(&self, own: usize) {
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, |state| state.turn != own);
    }

    fn give(&self, own: usize, over: bool) {
        let mut state = self.state.lock();
        (state.turn, state.over[own]) = (1 - own, over);
        self.changed.notify_all();
    }
}

/// At its end, or when its work panics, the other goes on.
struct End<'a>(&'a Turns, usize);

impl Drop for End<'_> {
    fn drop(&mut self) {
        OWN.set(None);
        self.0.give(self.1, true);
    }
}
