//! Commits that are in the redo log but not yet in all their partitions.
//!
//! A checkpoint must begin its redo at or before the oldest of them: a partition may be walked before it has got them. A commit in one
//! partition needs no entry, since it appends and installs in one hold of that partition, which the checkpoint needs as well, and later.

use parking_lot::Mutex;
use rauk_log::Lsn;

#[derive(Default)]
pub struct Inflight {
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    next: u64,
    /// (number, a position not behind the record's start).
    list: Vec<(u64, Lsn)>,
}

impl Inflight {
    /// Before a record is appended; `end_lsn` reads the log's end.
    pub fn enter(&self, end_lsn: impl FnOnce() -> Lsn) -> u64 {
        let lower = end_lsn();
        let mut entries = self.entries.lock();
        entries.next += 1;
        let number = entries.next;
        entries.list.push((number, lower));
        number
    }

    /// After the commit is in all its partitions, or was not appended.
    pub fn leave(&self, number: u64) {
        let mut entries = self.entries.lock();
        let at = entries.list.iter().position(|(n, _)| *n == number).expect("it was entered");
        entries.list.swap_remove(at);
    }

    /// Where redo must begin for a checkpoint that begins now: everything before is in the partitions, or will be by the
    /// time they are next free.
    pub fn redo_start(&self, end_lsn: impl FnOnce() -> Lsn) -> Lsn {
        // Read before the list: who is not listed yet appends behind it.
        let end = end_lsn();
        let entries = self.entries.lock();
        entries.list.iter().map(|(_, lsn)| *lsn).min().map_or(end, |oldest| oldest.min(end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redo_starts_at_the_oldest_that_is_not_installed() {
        let inflight = Inflight::default();
        assert_eq!(inflight.redo_start(|| Lsn(50)), Lsn(50));
        let a = inflight.enter(|| Lsn(10));
        let b = inflight.enter(|| Lsn(20));
        assert_eq!(inflight.redo_start(|| Lsn(50)), Lsn(10));
        inflight.leave(a);
        assert_eq!(inflight.redo_start(|| Lsn(50)), Lsn(20));
        inflight.leave(b);
        assert_eq!(inflight.redo_start(|| Lsn(60)), Lsn(60));
    }
}
