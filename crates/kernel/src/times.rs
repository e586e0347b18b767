//! The times below which nothing commits any more: a partition raises them, and whoever picks commit times reads them.
//!
//! Two numbers, which only grow: `max_read`, the highest snapshot that has been read, and `finished`, the highest
//! commit time that has been installed. Each partition raises them while somebody holds it; whoever decides a commit
//! time reads them without holding any.
//!
//! *A reader and a commit that do not wait for each other.* A reader raises `max_read` to its snapshot before it looks
//! at a row. A commit sets its status word to *committing*, and only then reads `max_read`
//! ([`TimeBounds::least_time`]). Both are read-modify-write operations on one word (or a load that sees what such an
//! operation has left), so one comes first: if the reader's, the commit's time is above its snapshot; if the commit's,
//! the reader sees *committing*, or what came of it, and tries again. A reader never passes by a commit at or below its
//! snapshot.

use rauk_types::Timestamp;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub struct TimeBounds {
    max_read: AtomicU64,
    finished: AtomicU64,
}

impl TimeBounds {
    /// The highest snapshot that has been read.
    pub fn max_read(&self) -> Timestamp {
        Timestamp(self.max_read.load(Ordering::Acquire))
    }

    /// What commits from now on is above `time`: before a read at that snapshot looks, wherever it looks.
    #[inline]
    pub fn raise_max_read(&self, time: Timestamp) {
        if self.max_read.load(Ordering::Acquire) < time.0 {
            self.max_read.fetch_max(time.0, Ordering::AcqRel);
        }
    }

    /// The highest commit time installed.
    pub fn finished(&self) -> Timestamp {
        Timestamp(self.finished.load(Ordering::Acquire))
    }

    #[inline]
    pub fn raise_finished(&self, time: Timestamp) {
        if self.finished.load(Ordering::Acquire) < time.0 {
            self.finished.fetch_max(time.0, Ordering::AcqRel);
        }
    }

    /// The least time at which a transaction may commit whose status word says *committing*, in a session that has seen
    /// `seen`: above all snapshots that were read, and not below what has been committed.
    pub fn least_time(&self, seen: Timestamp) -> Timestamp {
        // Reads the word in its place among the readers' writes.
        let read = self.max_read.fetch_or(0, Ordering::AcqRel);
        Timestamp(read + 1).max(self.finished()).max(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_above_what_was_read_and_not_below_what_has_committed() {
        let times = TimeBounds::default();
        assert_eq!(times.least_time(Timestamp(0)), Timestamp(1));
        times.raise_max_read(Timestamp(6));
        times.raise_max_read(Timestamp(4));
        assert_eq!((times.max_read(), times.least_time(Timestamp(0))), (Timestamp(6), Timestamp(7)));
        times.raise_finished(Timestamp(9));
        times.raise_finished(Timestamp(8));
        assert_eq!((times.finished(), times.least_time(Timestamp(2))), (Timestamp(9), Timestamp(9)));
        assert_eq!(times.least_time(Timestamp(20)), Timestamp(20));
    }

    /// Of a reader that raises and then looks, and a commit that says so and then decides, one always meets the other.
    #[test]
    fn a_reader_and_a_commit_never_miss_each_other() {
        const ROUNDS: usize = 20_000;
        // Both begin a round within a few nanoseconds: a lock would let one go ahead.
        let arrived = AtomicU64::new(0);
        let begin = |round: usize| {
            let mut spins = 0u32;
            arrived.fetch_add(1, Ordering::AcqRel);
            while arrived.load(Ordering::Acquire) < 2 * (round as u64 + 1) {
                // Where one core is all there is, the other thread must get it.
                spins += 1;
                if spins.is_multiple_of(1024) { std::thread::yield_now() } else { std::hint::spin_loop() }
            }
        };
        let times: Vec<TimeBounds> = (0..ROUNDS).map(|_| TimeBounds::default()).collect();
        let committing: Vec<AtomicU64> = (0..ROUNDS).map(|_| AtomicU64::new(0)).collect();
        let (chosen, saw) = std::thread::scope(|scope| {
            let commit = scope.spawn(|| {
                let decide = |round: usize| {
                    begin(round);
                    committing[round].store(1, Ordering::Release);
                    times[round].least_time(Timestamp(0))
                };
                (0..ROUNDS).map(decide).collect::<Vec<_>>()
            });
            let look = |round: usize| {
                begin(round);
                times[round].raise_max_read(Timestamp(10));
                committing[round].load(Ordering::Acquire) == 1
            };
            let saw: Vec<bool> = (0..ROUNDS).map(look).collect();
            (commit.join().expect("it decides"), saw)
        });
        for (round, (time, saw)) in chosen.into_iter().zip(saw).enumerate() {
            assert!(saw || time > Timestamp(10), "round {round}: passed by at {time:?}");
        }
    }
}
