//! Questions to other processes, and their answers.
//!
//! A question has a number; its answer has the same. The network may lose either: the question ends in `TimedOut` then, and whoever asked knows what
//! that means for him. A process that the manage group knows to be gone answers nothing any more: questions to it end at once.

use super::network::PeerError;
use super::signal::Signal;
use futures::channel::oneshot;
use parking_lot::Mutex;
use rauk_types::{Member, ProcessId};
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Default)]
pub struct Questions {
    next: AtomicU64,
    open: Mutex<FxHashMap<u64, Open>>,
}

struct Open {
    to: Member,
    answer: oneshot::Sender<Result<Signal, PeerError>>,
}

impl Questions {
    /// A number, and what resolves with the answer.
    pub fn open(&self, to: Member) -> (u64, oneshot::Receiver<Result<Signal, PeerError>>) {
        let (answer, receiver) = oneshot::channel();
        let number = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        self.open.lock().insert(number, Open { to, answer });
        (number, receiver)
    }

    /// An answer came; one that nobody waits for (any more) is dropped, one from another process than was asked too.
    pub fn answer(&self, number: u64, from: Member, signal: Signal) {
        let mut open = self.open.lock();
        if open.get(&number).is_some_and(|o| o.to == from)
            && let Some(question) = open.remove(&number)
        {
            drop(open);
            let _ = question.answer.send(Ok(signal));
        }
    }

    /// It cannot be asked.
    pub fn refuse(&self, number: u64, why: PeerError) {
        let question = self.open.lock().remove(&number);
        if let Some(question) = question {
            let _ = question.answer.send(Err(why));
        }
    }

    /// Nobody waits for it any more.
    pub fn close(&self, number: u64) {
        self.open.lock().remove(&number);
    }

    /// Ends the questions to processes that are gone.
    pub fn drop_gone(&self, is_up: impl Fn(ProcessId) -> bool) {
        let gone: Vec<Open> = {
            let mut open = self.open.lock();
            let numbers: Vec<u64> = open.iter().filter(|(_, o)| !is_up(o.to.process)).map(|(n, _)| *n).collect();
            numbers.into_iter().filter_map(|n| open.remove(&n)).collect()
        };
        for question in gone {
            let _ = question.answer.send(Err(PeerError::Gone(question.to.node.0)));
        }
    }
}
