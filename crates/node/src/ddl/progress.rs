//! How far a DDL is that looks at many rows, for whoever asks what a session does.
//!
//! The statement writes the numbers and anybody reads them; they are of moments close to each other. How much there is to
//! do is an estimate, since rows come and go meanwhile. Left out: indexes that the processes of a cluster fill, each over
//! its own rows.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// What a DDL does with rows, or with what else is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RowWork {
    /// Rows into another form, or other leaves.
    Copy = 1,
    /// Rows again that were written meanwhile.
    CopyAgain,
    /// An ordered index; partitions are counted.
    FillIndex,
    /// Keys of rows into a unique index.
    EnterKeys,
    /// Rows whose parents are looked for.
    Validate,
}

const WORKS: [RowWork; 5] =
    [RowWork::Copy, RowWork::CopyAgain, RowWork::FillIndex, RowWork::EnterKeys, RowWork::Validate];

#[derive(Debug, Default)]
pub struct Progress {
    /// 0: nothing.
    work: AtomicU8,
    done: AtomicU64,
    all: AtomicU64,
}

/// What a DDL is at: so much of about so much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    pub work: RowWork,
    pub done: u64,
    pub all: u64,
}

impl Progress {
    pub fn begin(&self, work: RowWork, all: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.all.store(all, Ordering::Relaxed);
        self.work.store(work as u8, Ordering::Relaxed);
    }

    pub fn add(&self, done: u64) {
        self.done.fetch_add(done, Ordering::Relaxed);
    }

    /// Nothing is done any more.
    pub fn end(&self) {
        self.work.store(0, Ordering::Relaxed);
    }

    pub fn stage(&self) -> Option<Stage> {
        let work = self.work.load(Ordering::Relaxed);
        let work = WORKS.into_iter().find(|known| *known as u8 == work)?;
        Some(Stage { work, done: self.done.load(Ordering::Relaxed), all: self.all.load(Ordering::Relaxed) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_is_told_until_it_ends() {
        let progress = Progress::default();
        assert_eq!(progress.stage(), None);
        for work in WORKS {
            progress.begin(work, 10);
            progress.add(3);
            progress.add(1);
            assert_eq!(progress.stage(), Some(Stage { work, done: 4, all: 10 }));
        }
        progress.end();
        assert_eq!(progress.stage(), None);
    }
}
