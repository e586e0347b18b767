//! The node's memory limit: every byte of rows, indexes, versions and locks is counted here.
//!
//! Bytes are counted as the allocator hands them out (pages, vectors by capacity), and both a table's own count and the
//! node's are kept. At 98 % of the limit ordinary writes are refused; the last 2 % serve deletes, rollback and recovery,
//! so that a full database can be emptied.

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
}

impl MemoryBudget {
    pub fn new(limit: u64) -> Self {
        MemoryBudget { limit: AtomicU64::new(limit), used: AtomicU64::new(0) }
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
        if self.used() + bytes > bound { Err(MemoryFull { limit }) } else { Ok(()) }
    }

    pub fn add(&self, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn subtract(&self, bytes: u64) {
        let before = self.used.fetch_sub(bytes, Ordering::Relaxed);
        assert!(before >= bytes, "memory accounting went below zero");
    }
}
