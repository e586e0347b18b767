//! How far recovery is, as numbers: for a health page, for metrics, for whoever waits for this node.
//!
//! Recovery has three steps: it reads the checkpoint, replays the redo log behind it, and fills the ordered indexes. The
//! first two are measured in bytes, since their files say how many there are; the third in partitions, which together count
//! as much as all bytes. So the whole is one number of units of work, and the rate so far gives the time that is left. It
//! is an estimate: filling took between a third and 1.4 times as long as reading (rows of 70 bytes, one ordered index and
//! three), a byte of the log costs more than one of the checkpoint, and the end of the log is known only as far as the
//! superblocks claim it.
//!
//! Jobs on several threads add to the numbers while they work; whoever looks takes no lock. A directory that is read
//! twice (that of a standalone node which becomes a cluster's, or one that the cluster has gone back with) is counted
//! from its beginning again.
//! What comes before and behind recovery, waiting for other nodes say, is not counted: the lines of `progress` tell it.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

/// What recovery does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryStep {
    /// It has not begun, or has ended.
    None,
    Checkpoint,
    RedoLog,
    Indexes,
}

impl RecoveryStep {
    const ALL: [RecoveryStep; 4] =
        [RecoveryStep::None, RecoveryStep::Checkpoint, RecoveryStep::RedoLog, RecoveryStep::Indexes];

    pub fn name(self) -> &'static str {
        match self {
            RecoveryStep::None => "none",
            RecoveryStep::Checkpoint => "checkpoint",
            RecoveryStep::RedoLog => "redo log",
            RecoveryStep::Indexes => "indexes",
        }
    }
}

/// Shared between a recovery and those who want to know how far it is.
#[derive(Debug, Default)]
pub struct RecoveryProgress {
    step: AtomicU8,
    /// Milliseconds of the node's clock.
    began: AtomicU64,
    checkpoint_bytes: AtomicU64,
    redo_bytes: AtomicU64,
    partitions: AtomicU64,
    checkpoint_done: AtomicU64,
    redo_done: AtomicU64,
    partitions_done: AtomicU64,
    rows: AtomicU64,
}

/// How far a recovery is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecoveryState {
    pub step: RecoveryStep,
    /// Of the whole, 0 to 99 while it lasts.
    pub percent: u8,
    /// Rows and changes so far.
    pub rows: u64,
    pub elapsed: Duration,
    /// An estimate; `None` at the very beginning.
    pub left: Option<Duration>,
}

impl RecoveryProgress {
    /// Begins with files of so many bytes, as far as is known.
    pub(super) fn begin(&self, now: Duration, checkpoint_bytes: u64, redo_bytes: u64, partitions: u64) {
        self.began.store(now.as_millis() as u64, Ordering::Relaxed);
        self.checkpoint_bytes.store(checkpoint_bytes, Ordering::Relaxed);
        self.redo_bytes.store(redo_bytes, Ordering::Relaxed);
        self.partitions.store(partitions, Ordering::Relaxed);
        for done in [&self.checkpoint_done, &self.redo_done, &self.partitions_done, &self.rows] {
            done.store(0, Ordering::Relaxed);
        }
        self.enter(RecoveryStep::Checkpoint);
    }

    pub(super) fn enter(&self, step: RecoveryStep) {
        self.step.store(step as u8, Ordering::Release);
    }

    pub(super) fn checkpoint_read(&self, bytes: u64, rows: u64) {
        self.checkpoint_done.fetch_add(bytes, Ordering::Relaxed);
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }

    pub(super) fn redo_replayed(&self, bytes: u64, rows: u64) {
        self.redo_done.store(bytes, Ordering::Relaxed);
        self.rows.fetch_max(rows, Ordering::Relaxed);
    }

    pub(super) fn partition_filled(&self) {
        self.partitions_done.fetch_add(1, Ordering::Relaxed);
    }

    /// `None`: no recovery is under way. `now`: of the node's clock.
    pub fn look(&self, now: Duration) -> Option<RecoveryState> {
        let step = RecoveryStep::ALL[usize::from(self.step.load(Ordering::Acquire))];
        if step == RecoveryStep::None {
            return None;
        }
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let (checkpoint_done, redo_done) = (read(&self.checkpoint_done), read(&self.redo_done));
        // The log may be longer than was claimed.
        let redo = read(&self.redo_bytes).max(redo_done);
        let checkpoint = read(&self.checkpoint_bytes).max(checkpoint_done);
        let bytes = checkpoint + redo;
        let partitions = read(&self.partitions).max(1);
        let filled = bytes * read(&self.partitions_done).min(partitions) / partitions;
        let (done, all) = (checkpoint_done + redo_done + filled, (2 * bytes).max(1));
        let elapsed = now.saturating_sub(Duration::from_millis(read(&self.began)));
        let left = (done > 0).then(|| elapsed.mul_f64((all - done.min(all)) as f64 / done as f64));
        let percent = (u128::from(done) * 100 / u128::from(all)).min(99) as u8;
        Some(RecoveryState { step, percent, rows: read(&self.rows), elapsed, left })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_whole_is_one_number_and_the_rate_gives_the_time_that_is_left() {
        let progress = RecoveryProgress::default();
        assert_eq!(progress.look(SECOND), None, "it has not begun");
        progress.begin(10 * SECOND, 600, 200, 4);
        let state = progress.look(12 * SECOND).expect("it has begun");
        assert_eq!((state.step, state.percent, state.left), (RecoveryStep::Checkpoint, 0, None));
        // 1600 units of work in all: 800 bytes, and the indexes.
        progress.checkpoint_read(150, 7);
        progress.checkpoint_read(250, 8);
        let state = progress.look(14 * SECOND).expect("it goes on");
        assert_eq!((state.percent, state.rows, state.elapsed), (25, 15, 4 * SECOND));
        assert_eq!(state.left, Some(12 * SECOND));
        progress.checkpoint_read(200, 5);
        progress.enter(RecoveryStep::RedoLog);
        progress.redo_replayed(200, 33);
        progress.enter(RecoveryStep::Indexes);
        (0..2).for_each(|_| progress.partition_filled());
        let state = progress.look(18 * SECOND).expect("it goes on");
        assert_eq!((state.step, state.percent, state.rows), (RecoveryStep::Indexes, 75, 33));
        (0..2).for_each(|_| progress.partition_filled());
        let state = progress.look(18 * SECOND).expect("it goes on");
        assert_eq!((state.percent, state.left), (99, Some(Duration::ZERO)), "never whole while it lasts");
        progress.enter(RecoveryStep::None);
        assert_eq!(progress.look(19 * SECOND), None);
    }

    #[test]
    fn a_log_that_is_longer_than_was_claimed_goes_beyond_no_bound() {
        let progress = RecoveryProgress::default();
        progress.begin(SECOND, 0, 10, 1);
        progress.enter(RecoveryStep::RedoLog);
        progress.redo_replayed(1_000, 1);
        let state = progress.look(3 * SECOND).expect("it goes on");
        assert_eq!((state.percent, state.left), (50, Some(2 * SECOND)));
        // The directory is read once more.
        progress.begin(5 * SECOND, 100, 0, 1);
        let state = progress.look(5 * SECOND).expect("it goes on");
        assert_eq!((state.percent, state.rows), (0, 0));
    }
}
