//! The node's memory limit: every byte of rows, indexes, versions and locks is counted here.
//!
//! Bytes are counted as the allocator hands them out (pages, vectors by capacity), and both a table's own count and the
//! node's are kept; a budget may be a part of another one, so that its bytes count in both. At 98 % of the limit ordinary writes are refused; the last 2 % serve deletes, rollback and recovery,
//! so that a full database can be emptied.

use rauk_types::row::large::Account;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the bytes are wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Write,
    /// Deletes, rollback, recovery: may use the reserve and, for what must not fail, go beyond the limit.
    Relief,
}

/// The limit would be passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryFull {
    pub limit: u64,
}

#[derive(Debug)]
pub struct MemoryBudget {
    limit: AtomicU64,
    used: AtomicU64,
    /// What is counted here is counted there, too.
    whole: Option<Arc<MemoryBudget>>,
}

impl MemoryBudget {
    pub fn new(limit: u64) -> Self {
        MemoryBudget { limit: AtomicU64::new(limit), used: AtomicU64::new(0), whole: None }
    }

    /// A part of another budget, with a limit of its own.
    pub fn part_of(whole: Arc<MemoryBudget>, limit: u64) -> Self {
        MemoryBudget { whole: Some(whole), ..MemoryBudget::new(limit) }
    }

    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    pub fn set_limit(&self, limit: u64) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether `bytes` more would be within what `purpose` may use. Nothing is counted yet.
    pub fn check(&self, bytes: u64, purpose: Purpose) -> Result<(), MemoryFull> {
        let limit = self.limit();
        let bound = match purpose {
            Purpose::Write => limit - limit / 50,
            Purpose::Relief => return Ok(()),
        };
        match &self.whole {
            _ if self.used() + bytes > bound => Err(MemoryFull { limit }),
            Some(whole) => whole.check(bytes, purpose),
            None => Ok(()),
        }
    }

    pub fn add(&self, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        if let Some(whole) = &self.whole {
            whole.add(bytes);
        }
    }

    pub fn subtract(&self, bytes: u64) {
        let before = self.used.fetch_sub(bytes, Ordering::Relaxed);
        assert!(before >= bytes, "memory accounting went below zero");
        if let Some(whole) = &self.whole {
            whole.subtract(bytes);
        }
    }
}

/// Large values give back what was counted for them.
impl Account for MemoryBudget {
    fn give_back(&self, bytes: u64) {
        self.subtract(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_counts_in_the_whole_and_obeys_both_limits() {
        let whole = Arc::new(MemoryBudget::new(1000));
        let part = MemoryBudget::part_of(whole.clone(), 500);
        part.add(400);
        assert_eq!((part.used(), whole.used()), (400, 400));
        assert_eq!(part.check(200, Purpose::Write), Err(MemoryFull { limit: 500 }));
        assert_eq!(part.check(50, Purpose::Write), Ok(()));
        whole.add(560);
        assert_eq!(part.check(50, Purpose::Write), Err(MemoryFull { limit: 1000 }));
        assert_eq!(part.check(50, Purpose::Relief), Ok(()));
        part.subtract(400);
        assert_eq!((part.used(), whole.used()), (0, 560));
    }
}
