//! A round of a receiver: the frames and tasks that it handles before it looks at its poll set again.
//!
//! While a round is on, frames that its thread sends (not forced) are queued and their links remembered; at its end each link sends all of them with one system call. That needs
//! no timer, and waits for nobody: the round handles only what had arrived already. The thread's round is found through a thread-local, so that it holds for links of other
//! transporters too (a frame passed on from one to another).
//!
//! Other threads do the same for what they do in one turn, with [`together`].
//!
//! Futures given to [`crate::Link::spawn`] are polled at once; those that are pending wait here until the receiver, which is in the middle of handling a frame, can take them.

use super::tasks::{Future, TaskWaker};
use super::{Command, ReceiveSet};
use crate::Link;
use std::cell::RefCell;
use std::sync::{Arc, Weak};

#[derive(Default)]
struct Round {
    set: Option<Arc<ReceiveSet>>,
    /// Calls of [`together`] that this thread is in.
    turns: u32,
    corked: Vec<Arc<Link>>,
    spawned: Vec<Spawned>,
    /// Waker of a task that needed none: most are done at once.
    spare: Option<Arc<TaskWaker>>,
}

/// A task that was polled once and is pending.
pub(crate) struct Spawned {
    pub link: Arc<Link>,
    pub future: Future,
    pub waker: Arc<TaskWaker>,
}

thread_local! {
    static ROUND: RefCell<Round> = RefCell::default();
}

/// From here on this thread's frames are corked.
pub(crate) fn begin(set: &Arc<ReceiveSet>) {
    ROUND.with_borrow_mut(|round| round.set = Some(set.clone()));
}

/// Everything corked leaves.
pub(crate) fn end() {
    let corked = ROUND.with_borrow_mut(|round| {
        round.set = None;
        std::mem::take(&mut round.corked)
    });
    uncork(corked);
}

fn uncork(mut corked: Vec<Arc<Link>>) {
    for link in &corked {
        link.uncork();
    }
    // The list's memory is for the next round.
    ROUND.with_borrow_mut(|round| {
        if round.corked.is_empty() {
            corked.clear();
            round.corked = corked;
        }
    });
}

/// Frames that `work` sends (not forced) leave when it ends, those of a link with one system call. It must not block; within a round, or another call, they leave with the rest of that.
pub fn together<R>(work: impl FnOnce() -> R) -> R {
    ROUND.with_borrow_mut(|round| round.turns += 1);
    let _leave = LeaveTurn;
    work()
}

/// Also on a panic: else its frames would wait for ever.
struct LeaveTurn;

impl Drop for LeaveTurn {
    fn drop(&mut self) {
        let corked = ROUND.with_borrow_mut(|round| {
            round.turns -= 1;
            (round.turns == 0 && round.set.is_none()).then(|| std::mem::take(&mut round.corked))
        });
        if let Some(corked) = corked {
            uncork(corked);
        }
    }
}

/// Whether the calling thread is in a round or a turn; the link is remembered then.
pub(crate) fn cork(link: &Weak<Link>) -> bool {
    ROUND.with_borrow_mut(|round| {
        if round.set.is_none() && round.turns == 0 {
            return false;
        }
        let Some(link) = link.upgrade() else { return false };
        round.corked.push(link);
        true
    })
}

/// See [`Link::spawn`].
pub(crate) fn spawn(link: &Arc<Link>, mut future: Future) {
    let place = link.place();
    let home = &link.shared.sets[place.set];
    if !ROUND.with_borrow(|round| round.set.as_ref().is_some_and(|set| Arc::ptr_eq(set, home))) {
        home.command(Command::Spawn(link.clone(), future));
        return;
    }
    let spare = ROUND.with_borrow_mut(|round| round.spare.take()).filter(|spare| spare.is_unused(home));
    let waker = spare.unwrap_or_else(|| TaskWaker::new(home.clone()));
    let pending = super::tasks::poll(link, &mut future, &waker);
    ROUND.with_borrow_mut(|round| {
        if pending {
            round.spawned.push(Spawned { link: link.clone(), future, waker });
        } else {
            round.spare = Some(waker);
        }
    });
}

/// Tasks that were spawned since the last call and are pending.
pub(crate) fn take_spawned() -> Vec<Spawned> {
    ROUND.with_borrow_mut(|round| std::mem::take(&mut round.spawned))
}
