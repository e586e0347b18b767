//! The simulated clock: it moves when nothing else can happen, and when a slow disk says so.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Time since the simulation began. Clones are the same clock.
#[derive(Clone, Debug, Default)]
pub struct SimClock(Arc<AtomicU64>);

impl SimClock {
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }

    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(by.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Moves forward to `time`; never back.
    pub fn advance_to(&self, time: Duration) {
        self.0.fetch_max(time.as_nanos() as u64, Ordering::Relaxed);
    }
}
