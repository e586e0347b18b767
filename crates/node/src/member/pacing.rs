//! How old the last complete cut is, and commits that wait for the next (rule 36): durability `replicated`.
//!
//! A commit that no complete cut covers is in memory only. The *age* here is how long ago the first of those was seen that this process knows of. From [`SLOW`] on commits take a little longer, the more the older it is; from
//! [`LIMIT`] on they wait until a cut is complete, and are refused after a while. So a loss of all memory takes no more than what was acknowledged within [`LIMIT`] after the commits of the last cut, however long cuts fail.
//!
//! A commit that was under way when cuts fell behind is in memory, and keeps its answer back until a cut covers it: it
//! may have waited for a replica, or for the manage group, longer than that limit.
//!
//! Each tick notes the newest commit that wants a cut, and when: a sample. A complete cut takes the samples away that it covers. The oldest that is left tells the age, to the length of a tick. Commits look at one atomic.

use super::{Cluster, TICK};
use crate::error::NodeError;
use parking_lot::Mutex;
use rauk_types::Timestamp;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// From this age on commits slow down: ten times the pace of cuts.
const SLOW: Duration = Duration::from_millis(500);
/// From this age on they wait.
const LIMIT: Duration = Duration::from_secs(1);
/// The longest delay of a commit that does not wait.
const DELAY: Duration = Duration::from_millis(50);
/// More samples than ticks within the limit.
const SAMPLES: usize = 256;

#[derive(Default)]
pub struct Pacing {
    /// Commits without a cut: the newest at a tick, and when that was. Both grow.
    samples: Mutex<VecDeque<(Timestamp, Duration)>>,
    /// When the oldest of them was noted, in nanoseconds; 0: there is none.
    since: AtomicU64,
}

impl Pacing {
    /// `wanted`: the newest commit that is known here. `cut`: of the last complete cut.
    fn note(&self, now: Duration, wanted: Timestamp, cut: Timestamp) {
        let mut samples = self.samples.lock();
        while samples.front().is_some_and(|(time, _)| *time <= cut) {
            samples.pop_front();
        }
        let newest = samples.back().map_or(cut, |(time, _)| *time);
        if wanted > newest {
            match samples.len() < SAMPLES {
                true => samples.push_back((wanted, now)),
                // It counts as older than it is.
                false => samples.back_mut().expect("it is full").0 = wanted,
            }
        }
        let since = samples.front().map_or(0, |(_, at)| (at.as_nanos() as u64).max(1));
        self.since.store(since, Ordering::Relaxed);
    }

    /// How long ago the oldest commit was noted that no complete cut covers; zero: there is none.
    pub fn age(&self, now: Duration) -> Duration {
        match self.since.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            since => now.saturating_sub(Duration::from_nanos(since)),
        }
    }
}

impl Cluster {
    /// At every tick, and when a cut is complete.
    pub(super) fn note_cut_age(&self) {
        if self.replicated {
            let cut = self.group.read().cut.time;
            self.pacing.note(self.runtime.now(), self.cuts.wanted(), cut);
        }
    }

    /// How long ago the oldest commit was acknowledged here that no complete cut covers.
    pub fn cut_age(&self) -> Duration {
        self.pacing.age(self.runtime.now())
    }

    /// The same, if it is so long ago that commits wait.
    pub fn late_cut(&self) -> Option<Duration> {
        Some(self.cut_age()).filter(|age| *age >= LIMIT)
    }

    /// Before a commit: not at all while cuts keep up. Waits for `patience` at most; then nothing has happened, and the commit is refused.
    pub async fn await_pace(&self, patience: Duration) -> Result<(), NodeError> {
        if !self.replicated || self.cut_age() < SLOW || !self.hooks.safeguards.pacing {
            return Ok(());
        }
        let began = self.runtime.now();
        let behind = self.cut_age().saturating_sub(SLOW).as_secs_f64() / (LIMIT - SLOW).as_secs_f64();
        self.runtime.sleep(DELAY.mul_f64(behind.min(1.0))).await;
        while self.cut_age() >= LIMIT {
            let now = self.runtime.now();
            if self.is_closed() || self.expelled() {
                return Err(NodeError::ShuttingDown);
            }
            if now >= began + patience {
                return Err(NodeError::Unavailable(format!(
                    "the last cut over the whole cluster is {:.1} s old, and commits wait for the next: a partition has no primary, or a replica's disk is slow (rauk.health)",
                    self.cut_age().as_secs_f64()
                )));
            }
            let number = self.changed.number();
            self.timeout(TICK, self.changed.after(number)).await;
        }
        Ok(())
    }

    /// After a commit, before its answer: not at all while cuts keep up. Waits for `patience` at most: then nobody
    /// knows whether it lasts.
    pub async fn await_cover(&self, time: Timestamp, patience: Duration) -> Result<(), NodeError> {
        if !self.replicated || !self.hooks.safeguards.pacing {
            return Ok(());
        }
        // It counts here also where others alone have it in memory.
        self.cuts.want(time);
        let end = self.runtime.now() + patience;
        while self.cut_age() >= LIMIT && self.group.read().cut.time < time {
            if self.is_closed() || self.expelled() || self.runtime.now() >= end {
                return Err(NodeError::UnknownOutcome(
                    "it is in the memory of all its replicas, and no cut over the whole cluster is completed that covers it (rauk.health)".into(),
                ));
            }
            let number = self.changed.number();
            self.timeout(TICK, self.changed.after(number)).await;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn the_age_is_that_of_the_oldest_commit_without_a_cut() {
        let pacing = Pacing::default();
        let note = |at, wanted, cut| pacing.note(ms(at), Timestamp(wanted), Timestamp(cut));
        note(10, 5, 5);
        assert_eq!(pacing.age(ms(900)), ms(0), "all is covered");
        note(20, 7, 5);
        note(30, 9, 5);
        note(40, 9, 5);
        assert_eq!(pacing.age(ms(120)), ms(100));
        note(130, 9, 8);
        assert_eq!(pacing.age(ms(130)), ms(100), "what was noted at 30 is left");
        note(140, 9, 9);
        assert_eq!(pacing.age(ms(140)), ms(0));
    }

    #[test]
    fn samples_are_bounded_and_nothing_gets_younger() {
        let pacing = Pacing::default();
        for tick in 0..10_000 {
            pacing.note(ms(10 * tick + 10), Timestamp(tick + 1), Timestamp(0));
        }
        assert_eq!(pacing.samples.lock().len(), SAMPLES);
        assert_eq!(pacing.age(ms(100_010)), ms(100_000));
        pacing.note(ms(100_020), Timestamp(10_000), Timestamp(9_999));
        assert!(pacing.age(ms(100_020)) > ms(90_000));
    }
}
