//! Work that waits for a guard, by class.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

/// In what order waiting work is taken. Work that frees others comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Ends of transactions, undo, unlocking.
    Resolve,
    /// Collecting the writes of a commit.
    Prepare,
    /// Point reads and writes.
    Point,
    /// A slice of a scan.
    Scan,
    /// A slice of a checkpoint, of collection, of an index build.
    Background,
}

const CLASSES: [Class; Class::COUNT] = [Class::Resolve, Class::Prepare, Class::Point, Class::Scan, Class::Background];

impl Class {
    const COUNT: usize = 5;

    /// What a job of this class counts for in a turn: slices last up to 20 µs, point work about one.
    pub fn weight(self) -> u32 {
        match self {
            Class::Resolve | Class::Prepare | Class::Point => 1,
            Class::Scan | Class::Background => 16,
        }
    }
}

/// Who is behind a waiting job.
pub enum Owner {
    /// Nobody waits for it (or it was given up): whoever holds the guard runs it.
    Nobody,
    /// Its task has not been polled yet and will look at the guard when it is.
    Coming,
    Parked(Waker),
}

pub trait Job<T>: Send + Sync {
    /// Does the work (or nothing, when it was given up), and gives back whom to wake.
    fn run(&self, target: &mut T) -> Option<Waker>;
    fn owner(&self) -> Owner;
}

/// (order of arrival, the job)
type Queue<T> = VecDeque<(u64, Arc<dyn Job<T>>)>;

pub struct Inbox<T> {
    /// By class.
    queues: [Queue<T>; Class::COUNT],
    brought: u64,
    taken: u64,
}

impl<T> Default for Inbox<T> {
    fn default() -> Self {
        Inbox { queues: std::array::from_fn(|_| VecDeque::new()), brought: 0, taken: 0 }
    }
}

impl<T> Inbox<T> {
    pub fn push(&mut self, class: Class, job: Arc<dyn Job<T>>) {
        self.brought += 1;
        self.queues[class as usize].push_back((self.brought, job));
    }

    /// The next job: the first of the first class that has one; every twentieth time the one that has waited longest, so that background
    /// work goes on whatever comes. Either way nothing gets in front of what came before it with the same or an earlier class: who undoes something
    /// without waiting for it, and then reads, reads it undone.
    pub fn pop(&mut self) -> Option<(Class, Arc<dyn Job<T>>)> {
        self.taken += 1;
        let mut waiting = (0..Class::COUNT).filter(|&class| !self.queues[class].is_empty());
        let class = match self.taken.is_multiple_of(20) {
            true => waiting.min_by_key(|&class| self.queues[class][0].0),
            false => waiting.next(),
        }?;
        let (_, job) = self.queues[class].pop_front()?;
        Some((CLASSES[class], job))
    }

    /// Somebody who will run what is in here, in the order of the classes. `None`: nobody waits for any of it.
    pub fn successor(&self) -> Option<Owner> {
        self.queues.iter().flatten().map(|(_, job)| job.owner()).find(|o| !matches!(o, Owner::Nobody))
    }
}
