//! AUTO_INCREMENT numbers and hidden keys: given out from memory, never twice.
//!
//! A counter has a *bound*: every number below it may have been given out. The bound is in the redo log before a number below it is used; since the
//! log keeps its order, whoever finds a row with the number on disk finds the bound there as well, without a sync of its own. The bound runs ahead of
//! the numbers by 1, 2, 4 … up to 1 024, so that few records are written and little is lost in a crash. A clean shutdown stores the exact number.
//!
//! In a cluster numbers come from the manage group instead, in blocks: [`crate::member::counters`].

use crate::error::NodeError;
use parking_lot::Mutex;
use rauk_log::RedoLog;
use rauk_log::record::CommitBuilder;
use rauk_types::{MysqlError, TableId};
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// How far a bound runs ahead at most.
const MOST_AHEAD: u64 = 1024;
/// Added to a table's id for the counter of its hidden keys.
const HIDDEN: u32 = 1 << 31;
/// MySQL's ER_AUTOINC_READ_FAILED.
const AUTOINC_READ_FAILED: u16 = 1467;

/// The counter that a table's hidden keys have in the log.
pub fn hidden_counter(table: TableId) -> TableId {
    TableId(table.0 | HIDDEN)
}

/// The table that a counter belongs to, be it of hidden keys or not.
pub fn table_of_counter(counter: TableId) -> TableId {
    TableId(counter.0 & !HIDDEN)
}

pub struct Counter {
    id: TableId,
    next: AtomicU64,
    bound: AtomicU64,
    /// How far the next growth runs ahead.
    ahead: Mutex<u64>,
}

impl Counter {
    pub fn new(id: TableId, next: u64) -> Counter {
        Counter { id, next: AtomicU64::new(next), bound: AtomicU64::new(next), ahead: Mutex::new(1) }
    }

    /// The counter of a temporary table, which nobody needs after a crash: its bound is never passed, so no record is written.
    pub fn unlogged(id: TableId) -> Counter {
        Counter { bound: AtomicU64::new(u64::MAX), ..Counter::new(id, 1) }
    }

    /// Gives out `count` consecutive numbers: the first of them.
    pub fn take(&self, count: u64, log: &RedoLog) -> Result<u64, NodeError> {
        let mut first = self.next.load(Ordering::Relaxed);
        loop {
            let end = first.checked_add(count).ok_or_else(exhausted)?;
            if end > self.bound.load(Ordering::Acquire) {
                self.grow(end, log)?;
                first = self.next.load(Ordering::Relaxed);
                continue;
            }
            match self.next.compare_exchange_weak(first, end, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Ok(first),
                Err(now) => first = now,
            }
        }
    }

    /// The next number will be above `value`.
    pub fn observe(&self, value: u64, log: &RedoLog) -> Result<(), NodeError> {
        // The largest number cannot be exceeded; the next `take` then fails.
        let above = value.saturating_add(1);
        if above <= self.next.load(Ordering::Relaxed) {
            return Ok(());
        }
        if above > self.bound.load(Ordering::Acquire) {
            self.grow(above, log)?;
        }
        self.next.fetch_max(above, Ordering::Relaxed);
        Ok(())
    }

    /// The next number.
    pub fn peek(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    pub fn bound(&self) -> u64 {
        self.bound.load(Ordering::Acquire)
    }

    fn grow(&self, end: u64, log: &RedoLog) -> Result<(), NodeError> {
        let mut ahead = self.ahead.lock();
        if end <= self.bound.load(Ordering::Acquire) {
            return Ok(());
        }
        let bound = end.saturating_add(*ahead - 1);
        let mut record = CommitBuilder::default();
        record.counter(self.id, bound);
        log.append(record.payload())?;
        self.bound.store(bound, Ordering::Release);
        *ahead = (*ahead * 2).min(MOST_AHEAD);
        Ok(())
    }
}

/// MySQL's error when there are no more numbers.
pub(crate) fn exhausted() -> NodeError {
    NodeError::Refused(MysqlError::new(AUTOINC_READ_FAILED, "Failed to read auto-increment value from storage engine"))
}

const SHARDS: usize = 16;
/// Hidden keys that a shard takes at a time.
const BLOCK: u64 = 256;

/// Keys for tables without a primary key: threads take from ranges of their own.
pub struct HiddenKeys {
    counter: Counter,
    /// Made with the first key: most tables have a primary key.
    shards: OnceLock<Box<[Shard; SHARDS]>>,
}

#[repr(align(64))]
#[derive(Default)]
struct Shard(Mutex<std::ops::Range<u64>>);

impl HiddenKeys {
    pub fn new(table: TableId, next: u64) -> HiddenKeys {
        HiddenKeys { counter: Counter::new(hidden_counter(table), next), shards: Default::default() }
    }

    /// As [`Counter::unlogged`].
    pub fn unlogged(table: TableId) -> HiddenKeys {
        HiddenKeys { counter: Counter::unlogged(hidden_counter(table)), shards: Default::default() }
    }

    pub fn take(&self, log: &RedoLog) -> Result<u64, NodeError> {
        let mut range = self.shards.get_or_init(Box::default)[shard()].0.lock();
        if range.is_empty() {
            let first = self.counter.take(BLOCK, log)?;
            *range = first..first + BLOCK;
        }
        Ok(range.next().expect("it was filled"))
    }

    pub fn bound(&self) -> u64 {
        self.counter.bound()
    }

    /// The next keys will be above all that another table's rows have. Nobody takes keys of that one meanwhile.
    pub fn pass(&self, other: &HiddenKeys, log: &RedoLog) -> Result<(), NodeError> {
        // Threads hold ranges below it.
        self.counter.observe(other.counter.peek() - 1, log)
    }
}

/// Threads are numbered as they come.
fn shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    MINE.with(|mine| {
        if mine.get() == usize::MAX {
            mine.set(NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS);
        }
        mine.get()
    })
}
