//! The memory that statements may use beside the stored rows: for their text, their trees, values in evaluation, sorting, grouping, joins.
//!
//! A session has one [`Memory`], which is emptied when a statement begins and ends. What is kept is *taken* before it is allocated and *given*
//! back when it goes; what nobody gives back goes with the statement. There is no spilling to disk: a statement that needs more than
//! `rauk_query_memory_limit` fails with error 1038, which names the variable.
//!
//! All sessions of a server share a [`Pool`], so that many statements, each within its limit, do not use up the machine together
//! (`rauk_total_query_memory_limit`). A statement takes from the pool in steps of [`STEP`]. The first [`OWN`] bytes are its own: statements that
//! keep little never touch the pool, and go on when large ones have used it up.
//!
//! Only what grows with a statement's text or data is counted, by the sizes of the structures that hold it, not by asking the allocator.
//! Values below [`LARGE`] on their way through an expression are not counted: their number is bounded by the nodes of the tree, which are.

use rauk_types::error::codes;
use rauk_types::{MysqlError, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

pub(crate) const VARIABLE: &str = "rauk_query_memory_limit";
pub(crate) const TOTAL_VARIABLE: &str = "rauk_total_query_memory_limit";
/// A value in evaluation is counted from this size on.
pub(crate) const LARGE: usize = 64 << 10;
/// What a statement takes from the pool at a time.
const STEP: usize = 1 << 20;
/// What every statement has beside the pool.
const OWN: usize = 1 << 20;

/// What the statements of a server may use together.
#[derive(Debug)]
pub(crate) struct Pool {
    used: AtomicUsize,
    limit: AtomicUsize,
}

impl Default for Pool {
    fn default() -> Self {
        Pool { used: AtomicUsize::new(0), limit: AtomicUsize::new(usize::MAX) }
    }
}

impl Pool {
    pub fn set_limit(&self, bytes: u64) {
        self.limit.store(usize::try_from(bytes).unwrap_or(usize::MAX), Relaxed);
    }
}

#[derive(Debug, Default)]
struct Account {
    used: AtomicUsize,
    /// What of the pool it has.
    reserved: AtomicUsize,
    pool: Arc<Pool>,
}

impl Drop for Account {
    fn drop(&mut self) {
        self.pool.used.fetch_sub(*self.reserved.get_mut(), Relaxed);
    }
}

/// The memory of one statement; clones share it.
#[derive(Clone, Debug)]
pub struct Memory {
    account: Arc<Account>,
    limit: usize,
}

impl Default for Memory {
    /// Without a limit: for tools and tests.
    fn default() -> Self {
        Memory { account: Arc::default(), limit: usize::MAX }
    }
}

impl Memory {
    pub(crate) fn new(pool: Arc<Pool>, limit: usize) -> Self {
        let account = Account { used: AtomicUsize::new(0), reserved: AtomicUsize::new(0), pool };
        Memory { account: Arc::new(account), limit }
    }

    /// With a limit of its own, beside no other statements.
    pub fn limited(limit: usize) -> Self {
        Memory { limit, ..Memory::default() }
    }

    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// The statement is over: all of it is free again.
    pub(crate) fn release(&self) {
        if self.account.used.load(Relaxed) != 0 {
            self.account.used.store(0, Relaxed);
        }
        if self.account.reserved.load(Relaxed) != 0 {
            self.account.pool.used.fetch_sub(self.account.reserved.swap(0, Relaxed), Relaxed);
        }
    }

    /// Counts memory that is about to be allocated. Error 1038: it is more than there may be; nothing was counted.
    pub fn take(&self, bytes: usize) -> Result<(), MysqlError> {
        let used = self.account.used.fetch_add(bytes, Relaxed).saturating_add(bytes);
        if used > self.limit {
            self.account.used.fetch_sub(bytes, Relaxed);
            return Err(exhausted("the statement needs", VARIABLE, self.limit));
        }
        if used > OWN + self.account.reserved.load(Relaxed) {
            self.reserve(used).inspect_err(|_| self.give(bytes))?;
        }
        Ok(())
    }

    /// Whether so much could be taken by a statement that has nothing else. Error 1038.
    pub(crate) fn check(&self, bytes: usize) -> Result<(), MysqlError> {
        if bytes <= self.limit { Ok(()) } else { Err(exhausted("the session's variables need", VARIABLE, self.limit)) }
    }

    #[cold]
    fn reserve(&self, used: usize) -> Result<(), MysqlError> {
        let wanted = (used - OWN).next_multiple_of(STEP);
        let more = wanted.saturating_sub(self.account.reserved.fetch_max(wanted, Relaxed));
        let pool = &self.account.pool;
        let limit = pool.limit.load(Relaxed);
        if pool.used.fetch_add(more, Relaxed).saturating_add(more) <= limit {
            return Ok(());
        }
        pool.used.fetch_sub(more, Relaxed);
        self.account.reserved.fetch_sub(more, Relaxed);
        Err(exhausted("all statements together need", TOTAL_VARIABLE, limit))
    }

    pub fn give(&self, bytes: usize) {
        self.account.used.fetch_sub(bytes, Relaxed);
    }

    /// Bytes that are taken now.
    pub fn used(&self) -> usize {
        self.account.used.load(Relaxed)
    }
}

#[cold]
fn exhausted(what: &str, variable: &str, limit: usize) -> MysqlError {
    MysqlError::new(
        codes::OUT_OF_SORTMEMORY,
        format!(
            "Out of sort memory, consider increasing server sort buffer size: {what} more than {variable} ({limit} bytes)"
        ),
    )
}

/// Bytes behind a value.
pub(crate) fn heap_bytes(value: &Value) -> usize {
    match value {
        Value::Str(s) => s.capacity(),
        Value::Bytes(b) => b.capacity(),
        _ => 0,
    }
}

/// Bytes that values take in memory.
pub(crate) fn values_bytes(values: &[Value]) -> usize {
    std::mem::size_of_val(values) + values.iter().map(heap_bytes).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_has_its_limit_and_all_statements_have_theirs() {
        let pool = Arc::new(Pool::default());
        pool.set_limit(3 << 20);
        let (a, b) = (Memory::new(pool.clone(), 3 << 20), Memory::new(pool.clone(), 8 << 20));
        a.take(3 << 20).unwrap();
        let error = a.take(1).unwrap_err();
        assert!(error.code == 1038 && error.message.contains("rauk_query_memory_limit (3145728 bytes)"), "{error}");
        assert_eq!(a.used(), 3 << 20);
        b.take(2 << 20).unwrap();
        let error = b.take(1).unwrap_err();
        assert!(error.message.contains("rauk_total_query_memory_limit (3145728 bytes)"), "{error}");
        assert_eq!(b.used(), 2 << 20);
        // One that needs little has it.
        Memory::new(pool.clone(), 8 << 20).take(1 << 20).unwrap();
        a.release();
        b.take(1 << 20).unwrap();
        drop(b);
        a.take(2 << 20).unwrap();
        drop(a);
        assert_eq!(pool.used.load(Relaxed), 0);
    }
}
