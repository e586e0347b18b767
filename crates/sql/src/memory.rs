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
//!
//! Whatever takes long also takes memory, or can call [`Memory::look`] now and then. So the account knows when its
//! statement has to end ([`Watch`]): KILL (1317) and max_execution_time (3024) reach the parser and the binder through
//! it. [`Memory::take`] looks once for each [`STEP`] bytes that a statement grows by, so that small statements never do.

use futures::future::{Either, select};
use rauk_node::Runtime;
use rauk_node::transaction::Interrupt;
use rauk_types::error::codes;
use rauk_types::{MysqlError, Value};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::task::Poll;
use std::time::Duration;

pub(crate) const VARIABLE: &str = "rauk_query_memory_limit";
pub(crate) const TOTAL_VARIABLE: &str = "rauk_total_query_memory_limit";
/// A value in evaluation is counted from this size on.
pub(crate) const LARGE: usize = 64 << 10;
/// What a statement takes from the pool at a time.
const STEP: usize = 1 << 20;
/// What every statement has beside the pool.
const OWN: usize = 1 << 20;

/// Parts that take some milliseconds to be freed, each an allocation or a few.
const MANY_PARTS: usize = 32 << 10;

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

    pub fn used(&self) -> u64 {
        self.used.load(Relaxed) as u64
    }
}

/// When a session's statement has to end before it is done.
pub(crate) struct Watch {
    interrupt: Arc<Interrupt>,
    runtime: Option<Arc<dyn Runtime>>,
    /// When max_execution_time is over, in microseconds of the runtime's clock; [`NEVER`] without such a time.
    deadline: AtomicU64,
}

const NEVER: u64 = u64::MAX;

impl Default for Watch {
    /// Nothing ends it: for tools and tests.
    fn default() -> Self {
        Watch { interrupt: Arc::default(), runtime: None, deadline: AtomicU64::new(NEVER) }
    }
}

impl Watch {
    pub fn new(interrupt: Arc<Interrupt>, runtime: Arc<dyn Runtime>) -> Self {
        Watch { interrupt, runtime: Some(runtime), deadline: AtomicU64::new(NEVER) }
    }

    /// Errors: 1317, 3024.
    fn look(&self) -> Result<(), MysqlError> {
        if self.interrupt.is_killed() {
            return Err(interrupted());
        }
        match (self.deadline.load(Relaxed), &self.runtime) {
            (NEVER, _) | (_, None) => Ok(()),
            (deadline, Some(runtime)) if micros(runtime.now()) < deadline => Ok(()),
            _ => Err(out_of_time()),
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(NEVER)
}

#[derive(Default)]
struct Account {
    used: AtomicUsize,
    /// What of the pool it has.
    reserved: AtomicUsize,
    pool: Arc<Pool>,
    watch: Watch,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Account").field("used", &self.used).field("reserved", &self.reserved).finish_non_exhaustive()
    }
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
    pub(crate) fn new(pool: Arc<Pool>, limit: usize, watch: Watch) -> Self {
        let account = Account { used: AtomicUsize::new(0), reserved: AtomicUsize::new(0), pool, watch };
        Memory { account: Arc::new(account), limit }
    }

    /// With a limit of its own, beside no other statements.
    pub fn limited(limit: usize) -> Self {
        Memory { limit, ..Memory::default() }
    }

    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// When the running statement is out of time, by the runtime's clock.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        match self.account.watch.deadline.load(Relaxed) {
            NEVER => None,
            deadline => Some(Duration::from_micros(deadline)),
        }
    }

    pub(crate) fn set_deadline(&self, deadline: Option<Duration>) {
        self.account.watch.deadline.store(deadline.map_or(NEVER, micros), Relaxed);
    }

    /// Whether the statement may go on; it reads the clock where there is a deadline. Errors: 1317, 3024.
    pub(crate) fn look(&self) -> Result<(), MysqlError> {
        self.account.watch.look()
    }

    /// Sleeps until the statement has to end, or for that long; `true` when it has to end.
    pub(crate) async fn sleep(&self, duration: Duration) -> bool {
        let watch = &self.account.watch;
        let Some(runtime) = &watch.runtime else { return false };
        let left = self.deadline().map(|end| end.saturating_sub(runtime.now()));
        let cut = left.is_some_and(|left| left < duration);
        let timer = runtime.sleep(duration.min(left.unwrap_or(duration)));
        let killed = std::future::poll_fn(|context| match watch.interrupt.poll(context.waker()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        });
        // What was killed before does not sleep.
        matches!(select(killed, timer).await, Either::Left(_)) || cut
    }

    /// Does `work` with `items`, which end early when the statement has to end: then the result is its error instead.
    pub(crate) fn while_it_may<I: Iterator, R>(
        &self,
        items: I,
        work: impl FnOnce(Watched<'_, I>) -> R,
    ) -> Result<R, MysqlError> {
        let stopped = Cell::new(None);
        let result = work(Watched { items, memory: self, since_look: 0, stopped: &stopped });
        stopped.take().map_or(Ok(result), Err)
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

    /// What was counted since `used` bytes were is given up.
    pub(crate) fn back_to(&self, used: usize) {
        self.account.used.store(used, Relaxed);
    }

    /// Counts memory that is about to be allocated. Errors: 1038, it is more than there may be; now and then 1317 and
    /// 3024. Nothing was counted then.
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
        self.look()?;
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

    /// As [`Memory::give`], for an account that lives longer than a statement: the pool gets back what is not used.
    pub(crate) fn give_back(&self, bytes: usize) {
        let used = self.account.used.fetch_sub(bytes, Relaxed) - bytes;
        let needed = used.saturating_sub(OWN).next_multiple_of(STEP);
        let reserved = self.account.reserved.fetch_min(needed, Relaxed);
        self.account.pool.used.fetch_sub(reserved.saturating_sub(needed), Relaxed);
    }

    /// Frees what a statement leaves. Of many parts another thread does it, so that the answer to a KILL does not wait for it; until it is done
    /// they count in the pool.
    pub(crate) fn free_aside<T: Send + 'static>(&self, parts: usize, value: T) {
        if parts < MANY_PARTS {
            return;
        }
        let held = Held { pool: self.account.pool.clone(), bytes: self.account.reserved.swap(0, Relaxed) };
        let free = move || {
            drop(value);
            drop(held);
        };
        // Where there is no thread to be had, everything goes here.
        drop(std::thread::Builder::new().name("freeing".into()).spawn(free));
    }

    /// Bytes that are taken now.
    pub fn used(&self) -> usize {
        self.account.used.load(Relaxed)
    }
}

/// A part of the pool that goes back when it is dropped.
struct Held {
    pool: Arc<Pool>,
    bytes: usize,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.pool.used.fetch_sub(self.bytes, Relaxed);
    }
}

/// Items of [`Memory::while_it_may`] between two looks: they take below a millisecond.
const LOOK_ITEMS: usize = 16 << 10;

/// Items that are gone through while the statement may go on.
pub(crate) struct Watched<'a, I> {
    items: I,
    memory: &'a Memory,
    since_look: usize,
    stopped: &'a Cell<Option<MysqlError>>,
}

impl<I: Iterator> Iterator for Watched<'_, I> {
    type Item = I::Item;

    #[inline]
    fn next(&mut self) -> Option<I::Item> {
        self.since_look += 1;
        if self.since_look >= LOOK_ITEMS {
            self.since_look = 0;
            if let Err(error) = self.memory.look() {
                self.stopped.set(Some(error));
                return None;
            }
        }
        self.items.next()
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
        Value::Bytes(b) | Value::Json(b) => b.capacity(),
        _ => 0,
    }
}

/// Bytes of a text, of bytes or of a document.
pub(crate) fn heap_length(value: &Value) -> usize {
    match value {
        Value::Json(document) => document.len(),
        value => value.as_ref().as_bytes().map_or(0, <[u8]>::len),
    }
}

/// Bytes that values take in memory.
pub(crate) fn values_bytes(values: &[Value]) -> usize {
    std::mem::size_of_val(values) + values.iter().map(heap_bytes).sum::<usize>()
}

/// ER_QUERY_TIMEOUT.
const QUERY_TIMEOUT: u16 = 3024;

/// Error 1317.
pub(crate) fn interrupted() -> MysqlError {
    MysqlError::new(codes::QUERY_INTERRUPTED, "Query execution was interrupted")
}

/// Error 3024.
pub(crate) fn out_of_time() -> MysqlError {
    MysqlError::new(QUERY_TIMEOUT, "Query execution was interrupted, maximum statement execution time exceeded")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is freed aside counts until it is gone, and not longer.
    #[test]
    fn what_is_freed_aside_goes_back_to_the_pool() {
        let pool = Arc::new(Pool::default());
        let statement = Memory::new(pool.clone(), usize::MAX, Watch::default());
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        struct Waits(std::sync::mpsc::Receiver<()>);
        impl Drop for Waits {
            fn drop(&mut self) {
                let _ = self.0.recv();
            }
        }
        statement.take(10 << 20).unwrap();
        let counted = pool.used.load(Relaxed);
        assert!(counted >= 9 << 20);
        statement.free_aside(MANY_PARTS, Waits(receiver));
        statement.release();
        assert_eq!(pool.used.load(Relaxed), counted, "it is not gone yet");
        drop(sender);
        while pool.used.load(Relaxed) > 0 {
            std::thread::yield_now();
        }
        statement.take(10 << 20).unwrap();
        statement.release();
        assert_eq!(pool.used.load(Relaxed), 0);
    }

    #[test]
    fn a_statement_has_its_limit_and_all_statements_have_theirs() {
        let pool = Arc::new(Pool::default());
        pool.set_limit(3 << 20);
        let memory = |limit| Memory::new(pool.clone(), limit, Watch::default());
        let (a, b) = (memory(3 << 20), memory(8 << 20));
        a.take(3 << 20).unwrap();
        let error = a.take(1).unwrap_err();
        assert!(error.code == 1038 && error.message.contains("rauk_query_memory_limit (3145728 bytes)"), "{error}");
        assert_eq!(a.used(), 3 << 20);
        b.take(2 << 20).unwrap();
        let error = b.take(1).unwrap_err();
        assert!(error.message.contains("rauk_total_query_memory_limit (3145728 bytes)"), "{error}");
        assert_eq!(b.used(), 2 << 20);
        // One that needs little has it.
        memory(8 << 20).take(1 << 20).unwrap();
        a.release();
        b.take(1 << 20).unwrap();
        drop(b);
        a.take(2 << 20).unwrap();
        drop(a);
        assert_eq!(pool.used.load(Relaxed), 0);
    }

    #[test]
    fn what_grows_hears_of_kill_and_of_the_deadline() {
        let interrupt = Arc::new(Interrupt::default());
        let runtime = rauk_node::Threads::start().unwrap();
        let watch = Watch::new(interrupt.clone(), runtime.clone());
        let memory = Memory::new(Arc::default(), 1 << 30, watch);
        memory.take(OWN).unwrap();
        interrupt.kill();
        let error = memory.take(1).unwrap_err();
        assert_eq!((error.code, memory.used()), (1317, OWN));
        interrupt.clear();
        memory.take(1).unwrap();
        // What is reserved already is taken without a look.
        interrupt.kill();
        memory.take(STEP / 2).unwrap();
        assert_eq!(memory.take(STEP).unwrap_err().code, 1317);
        interrupt.clear();
        memory.set_deadline(Some(runtime.now()));
        assert_eq!(memory.take(STEP).unwrap_err().code, 3024);
        memory.set_deadline(None);
        memory.take(STEP).unwrap();
        // What takes no memory looks by itself.
        assert_eq!(memory.while_it_may(0..100_000, |items| items.count()).unwrap(), 100_000);
        interrupt.kill();
        assert_eq!(memory.while_it_may(0u64.., |items| items.count()).map_err(|e| e.code), Err(1317));
    }
}
