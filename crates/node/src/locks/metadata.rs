//! Metadata locks: statements share a table's definition, DDL has it alone, and LOCK TABLES keeps others out for as
//! long as its session wants.
//!
//! One word a table: the number of transactions that use it, a bit that DDL sets, and one that it leaves while it
//! builds. A user adds one and, if the bit is set, takes it back and waits: so statements that come after the bit is
//! set queue behind the DDL. DDL sets the bit and waits until the number is zero. Waiting goes through a list of
//! wakers; all that wait are woken whenever something changes, which is rare.
//!
//! *An old user must not hold up new ones.* A DDL may wait long: for a transaction that stays open, for a client that
//! does not read its result. So it waits in turns ([`Turns`]): for a *window* new statements queue behind it, and if
//! the old users have not gone by then it takes the bit back, and new statements pass for a *pause* that is several
//! times as long. Windows double up to a longest one. So a statement is delayed by a window at most, users that each
//! end within the longest window cannot starve a DDL, and one that meets longer ones without end fails with 1205 after
//! `lock_wait_timeout`.
//!
//! *What builds keeps out other DDL, not users.* A DDL that fills an index has the table alone twice, each time for a
//! moment: before, when transactions begin to keep the index, and after, for the switch. In between it *reserves* the
//! table ([`MetadataLock::reserve`]): users come and go, and other DDL waits without a turn of its own, so that it
//! holds up nobody.
//!
//! *Three modes.* A lock is taken [`Mode::Alone`] by DDL and LOCK TABLES … WRITE. [`Mode::NoWrites`] is that of LOCK
//! TABLES … READ and FLUSH TABLES WITH READ LOCK: whoever has it is a user like any other, for which DDL waits, and keeps
//! out *writers*. Users that write say so in a second word (the number of writers, and above it that of holders of this
//! mode), so users that only read pay nothing. Holders of this mode do not keep each other out. A session that has
//! locked a table uses it without a share of its own (`TxnOptions::locked`). A DDL of that session has the tables that
//! are locked alone already, and *raises* the other mode for its time ([`Way`]): the session's locks stay.

use crate::ddl::locking::TableLocks;
use crate::ddl::pace::Pace;
use crate::ddl::{Progress, RowWork};
use crate::error::NodeError;
use crate::runtime::Runtime;
use crate::table::TableInfo;
use crate::transaction::Interrupt;
use futures::future::{Either, select};
use parking_lot::Mutex;
use rauk_manage::JobLimits;
use rauk_types::TableId;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Poll, Waker};
use std::time::Duration;

const DDL: u64 = 1 << 63;
/// A DDL builds: others wait until it is done.
const RESERVED: u64 = 1 << 62;

/// How a DDL waits for the users of its tables.
#[derive(Clone, Copy, Debug)]
pub struct Turns {
    window: Duration,
    longest: Duration,
}

/// How long a DDL waits for its tables (then 1205), and what ends it before that: KILL (1317).
#[derive(Clone, Copy)]
pub struct DdlWait<'a> {
    pub limit: Duration,
    pub interrupt: Option<&'a Interrupt>,
    /// Whether it is refused what would leave rows or definitions without their parents.
    pub foreign_key_checks: bool,
    pub meanwhile: Meanwhile,
    /// Where the statement tells how far it is.
    pub progress: Option<&'a Progress>,
    /// What the session of the statement has locked (LOCK TABLES): the statement works on these tables under their locks.
    pub locks: Option<&'a TableLocks>,
    /// The most threads that work on its rows, if there are as many cores.
    pub threads: usize,
    /// How many rows a second are worked on, on each node; 0: as many as can be.
    pub rows_per_second: u64,
}

/// Who may use a table while a DDL builds something that can be built so: what the statement's LOCK says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Meanwhile {
    #[default]
    All,
    Readers,
    Nobody,
}

impl From<Duration> for DdlWait<'_> {
    fn from(limit: Duration) -> Self {
        DdlWait {
            limit,
            interrupt: None,
            foreign_key_checks: true,
            meanwhile: Meanwhile::All,
            progress: None,
            locks: None,
            threads: usize::MAX,
            rows_per_second: 0,
        }
    }
}

impl DdlWait<'_> {
    /// Tables that the session has locked are open to nobody while the statement builds something.
    pub fn under_locks(self) -> Self {
        match self.locks {
            Some(_) => DdlWait { meanwhile: Meanwhile::Nobody, ..self },
            None => self,
        }
    }

    /// The statement begins this; `all`: how much of it there is, about.
    pub(crate) fn begins(self, work: RowWork, all: u64) {
        if let Some(progress) = self.progress {
            progress.begin(work, all);
        }
    }

    /// How fast what it begins now goes.
    pub(crate) fn pace(self) -> Arc<Pace> {
        Pace::new(self.rows_per_second)
    }

    /// For the other processes that work for it.
    pub(crate) fn limits(self) -> JobLimits {
        JobLimits { threads: self.threads.try_into().unwrap_or(u32::MAX), rows_per_second: self.rows_per_second }
    }

    /// It has done so much more of it.
    pub(crate) fn has_done(self, more: u64) {
        if let Some(progress) = self.progress {
            progress.add(more);
        }
    }

    /// A table takes the place of another one.
    pub(crate) fn replaces(self, old: TableId, new: &Arc<TableInfo>) {
        if let Some(locks) = self.locks {
            locks.replace(old, new);
        }
    }

    /// Tables are gone.
    pub(crate) fn forgets(self, gone: impl Iterator<Item = TableId>) {
        if let Some(locks) = self.locks {
            locks.forget(gone);
        }
    }

    /// Does `work` unless the statement is killed; then what was done of it is dropped. For waits, and for what a DDL
    /// builds before it changes anything: the change itself must not be given up in the middle.
    pub async fn unless_killed<T>(self, work: impl Future<Output = Result<T, NodeError>>) -> Result<T, NodeError> {
        match self.interrupt {
            Some(interrupt) => interrupt.unless_killed(work).await,
            None => work.await,
        }
    }
}

/// A pause is so many times as long as the window before it.
const PAUSE: u32 = 4;
/// Between looks, during a pause, whether nobody uses the tables.
pub const LOOK: Duration = Duration::from_millis(10);

impl Turns {
    /// On one node a lock takes no time where nobody has it.
    pub const LOCAL: Turns = Turns { window: Duration::from_millis(50), longest: Duration::from_millis(500) };
    /// All processes are to be heard of, also those whose leases are about to end.
    pub const CLUSTER: Turns = Turns { window: Duration::from_millis(1000), longest: Duration::from_millis(2000) };

    /// For how long new statements queue behind the DDL now.
    pub fn window(&self) -> Duration {
        self.window
    }

    /// The window is over; gives for how long new statements pass.
    pub fn pause(&mut self) -> Duration {
        let pause = self.window * PAUSE;
        self.window = (self.window * 2).min(self.longest);
        pause
    }
}

/// One holder of [`Mode::NoWrites`] in the word of writers.
const NO_WRITES: u64 = 1 << 32;

/// What whoever locks a table keeps out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Whoever writes.
    NoWrites,
    /// All others.
    Alone,
}

/// Tables that a session has locked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockedTables(pub Vec<(TableId, Mode)>);

impl LockedTables {
    pub fn mode_of(&self, table: TableId) -> Option<Mode> {
        self.0.iter().find(|(id, _)| *id == table).map(|(_, mode)| *mode)
    }
}

/// How a statement comes to have a table, by what its session has of it already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Lock(Mode),
    /// The session has it in [`Mode::NoWrites`] and keeps that; the statement has it alone for its time.
    Raise,
    /// The session has it alone.
    Nothing,
}

impl Way {
    /// To what `mode` allows, where the session has `own`.
    pub fn to(mode: Mode, own: Option<Mode>) -> Way {
        match own {
            None => Way::Lock(mode),
            Some(own) if own >= mode => Way::Nothing,
            Some(_) => Way::Raise,
        }
    }
}

#[derive(Default)]
pub struct MetadataLock {
    word: AtomicU64,
    /// Writers among the users, and in the upper half holders of [`Mode::NoWrites`].
    writers: AtomicU64,
    waiting: Mutex<Vec<Waker>>,
}

impl MetadataLock {
    /// Adds a user when no DDL holds or awaits the table.
    #[inline]
    pub fn try_share(&self) -> bool {
        if self.word.fetch_add(1, Ordering::Acquire) & DDL == 0 {
            return true;
        }
        self.unshare();
        false
    }

    /// Whether anybody but DDL uses the table now.
    pub fn has_users(&self) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        word & DDL == 0 && word & !RESERVED > 0
    }

    /// Whether a DDL holds the table, or awaits it in a window of its own ([`Turns`]).
    pub fn is_awaited(&self) -> bool {
        self.word.load(Ordering::Relaxed) & DDL != 0
    }

    /// Adds a user on behalf of one that is there already: a DDL that waits for that one waits for both.
    pub fn share_more(&self) {
        self.word.fetch_add(1, Ordering::Acquire);
    }

    /// Adds a user; waits for DDL at most `timeout`, then 1205, or until it is killed.
    pub async fn share(
        &self,
        runtime: &dyn Runtime,
        timeout: Duration,
        interrupt: Option<&Interrupt>,
    ) -> Result<(), NodeError> {
        if self.try_share() {
            return Ok(());
        }
        // An attempt in vain wakes those who wait, and so would wake this one again and again. Boxed: most never wait.
        Box::pin(self.wait(runtime, timeout, interrupt, || !self.is_awaited() && self.try_share())).await
    }

    #[inline]
    pub fn unshare(&self) {
        let before = self.word.fetch_sub(1, Ordering::Release);
        if before & DDL != 0 {
            self.wake();
        }
    }

    /// A user becomes a writer, if nobody keeps writers out.
    pub fn try_write(&self) -> bool {
        let one_more = |writers| (writers < NO_WRITES).then_some(writers + 1);
        self.writers.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).is_ok()
    }

    /// The same; waits at most `timeout`, then 1205, or until it is killed.
    pub async fn write(
        &self,
        runtime: &dyn Runtime,
        timeout: Duration,
        interrupt: Option<&Interrupt>,
    ) -> Result<(), NodeError> {
        if self.try_write() {
            return Ok(());
        }
        Box::pin(self.wait(runtime, timeout, interrupt, || self.try_write())).await
    }

    pub fn end_write(&self) {
        if self.writers.fetch_sub(1, Ordering::AcqRel) >= NO_WRITES {
            self.wake();
        }
    }

    /// Locks in a mode: waits for all that the mode keeps out, at most `timeout`, then 1205.
    pub async fn lock(&self, mode: Mode, runtime: &dyn Runtime, timeout: Duration) -> Result<(), NodeError> {
        if mode == Mode::Alone {
            return self.exclude(runtime, timeout).await;
        }
        let start = runtime.now();
        self.share(runtime, timeout, None).await?;
        self.writers.fetch_add(NO_WRITES, Ordering::AcqRel);
        let given_up = EndOnDrop(self);
        let left = timeout.saturating_sub(runtime.now().saturating_sub(start));
        self.wait(runtime, left, None, || self.writers.load(Ordering::Acquire).is_multiple_of(NO_WRITES)).await?;
        std::mem::forget(given_up);
        Ok(())
    }

    /// Locks in a mode if there is nothing to wait for.
    pub fn try_lock(&self, mode: Mode) -> bool {
        if mode == Mode::Alone {
            return self.try_exclude();
        }
        if !self.try_share() {
            return false;
        }
        if self.writers.fetch_add(NO_WRITES, Ordering::AcqRel).is_multiple_of(NO_WRITES) {
            return true;
        }
        self.unlock(mode);
        false
    }

    pub fn unlock(&self, mode: Mode) {
        if mode == Mode::Alone {
            return self.end_exclusion();
        }
        self.writers.fetch_sub(NO_WRITES, Ordering::AcqRel);
        self.unshare();
        self.wake();
    }

    /// Has the table in a way: at most `timeout`, then 1205.
    pub async fn take(&self, way: Way, runtime: &dyn Runtime, timeout: Duration) -> Result<(), NodeError> {
        match way {
            Way::Lock(mode) => self.lock(mode, runtime, timeout).await,
            Way::Raise => self.raise(runtime, timeout).await,
            Way::Nothing => Ok(()),
        }
    }

    /// The same if there is nothing to wait for.
    pub fn try_take(&self, way: Way) -> bool {
        match way {
            Way::Lock(mode) => self.try_lock(mode),
            Way::Raise => self.word.compare_exchange(1, DDL | 1, Ordering::AcqRel, Ordering::Relaxed).is_ok(),
            Way::Nothing => true,
        }
    }

    pub fn give(&self, way: Way) {
        match way {
            Way::Lock(mode) => self.unlock(mode),
            Way::Raise => self.end_exclusion(),
            Way::Nothing => {}
        }
    }

    /// Whoever has it in [`Mode::NoWrites`], as the only one in the end, has it alone until [`Self::end_exclusion`].
    async fn raise(&self, runtime: &dyn Runtime, timeout: Duration) -> Result<(), NodeError> {
        let start = runtime.now();
        let free = |word| (word & (DDL | RESERVED) == 0).then_some(word | DDL);
        // The share is waited for too: in a cluster it may come after the wish to raise it.
        let is_held = || self.writers.load(Ordering::Acquire) >= NO_WRITES;
        let take = || is_held() && self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, free).is_ok();
        self.wait(runtime, timeout, None, take).await?;
        let given_up = ClearOnDrop(self);
        let left = timeout.saturating_sub(runtime.now().saturating_sub(start));
        self.wait(runtime, left, None, || self.word.load(Ordering::Acquire) == DDL | 1).await?;
        std::mem::forget(given_up);
        Ok(())
    }

    /// Has the table alone: waits for other DDL and for all users, at most `timeout`, then 1205. New users wait
    /// meanwhile: see [`Turns`].
    pub async fn exclude(&self, runtime: &dyn Runtime, timeout: Duration) -> Result<(), NodeError> {
        let start = runtime.now();
        let free = |word| (word & (DDL | RESERVED) == 0).then_some(word | DDL);
        let take = || self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, free).is_ok();
        self.wait(runtime, timeout, None, take).await?;
        // From here on the bit is ours: it goes again if the wait for the users fails or is given up.
        let given_up = ClearOnDrop(self);
        let left = timeout.saturating_sub(runtime.now().saturating_sub(start));
        self.wait(runtime, left, None, || self.word.load(Ordering::Acquire) == DDL).await?;
        std::mem::forget(given_up);
        Ok(())
    }

    /// Has the table alone if nobody uses it, awaits it or has it.
    pub fn try_exclude(&self) -> bool {
        self.word.compare_exchange(0, DDL, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Whoever has the table alone lets users in, or those that only read, and keeps other DDL out until
    /// [`Self::end_reservation`].
    pub fn reserve(&self, readers_only: bool) {
        if readers_only {
            self.writers.fetch_add(NO_WRITES, Ordering::AcqRel);
        }
        self.word.fetch_xor(DDL | RESERVED, Ordering::AcqRel);
        self.wake();
    }

    /// A table that was reserved for readers is there for writers too.
    pub fn let_writers_in(&self) {
        self.writers.fetch_sub(NO_WRITES, Ordering::AcqRel);
        self.wake();
    }

    /// Whoever has reserved the table has it alone again, as [`Self::exclude`]; if not, it is still reserved.
    pub async fn exclude_reserved(&self, runtime: &dyn Runtime, timeout: Duration) -> Result<(), NodeError> {
        self.word.fetch_or(DDL, Ordering::AcqRel);
        let given_up = ClearOnDrop(self);
        self.wait(runtime, timeout, None, || self.word.load(Ordering::Acquire) == DDL | RESERVED).await?;
        std::mem::forget(given_up);
        Ok(())
    }

    /// The same if nobody uses it.
    pub fn try_exclude_reserved(&self) -> bool {
        self.word.compare_exchange(RESERVED, DDL | RESERVED, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    pub fn end_reservation(&self) {
        self.word.fetch_and(!RESERVED, Ordering::Release);
        self.wake();
    }

    pub fn end_exclusion(&self) {
        self.word.fetch_and(!DDL, Ordering::Release);
        self.wake();
    }

    fn wake(&self) {
        let waiting = std::mem::take(&mut *self.waiting.lock());
        waiting.into_iter().for_each(Waker::wake);
    }

    async fn wait(
        &self,
        runtime: &dyn Runtime,
        timeout: Duration,
        interrupt: Option<&Interrupt>,
        mut ready: impl FnMut() -> bool,
    ) -> Result<(), NodeError> {
        if ready() {
            return Ok(());
        }
        let waited = pin!(poll_fn(|cx| {
            // Listed before the look, so that a change after the look wakes.
            self.waiting.lock().push(cx.waker().clone());
            if ready() {
                return Poll::Ready(Ok(()));
            }
            match interrupt {
                Some(interrupt) if interrupt.poll(cx.waker()) => Poll::Ready(Err(NodeError::Interrupted)),
                _ => Poll::Pending,
            }
        }));
        let begun = runtime.now();
        let result = match select(waited, runtime.sleep(timeout)).await {
            Either::Left((result, _)) => result,
            Either::Right(_) => Err(NodeError::LockTimeout),
        };
        if let Some(interrupt) = interrupt {
            interrupt.note_wait(runtime.now().saturating_sub(begun));
        }
        result
    }
}

/// See [`Mode::NoWrites`].
struct EndOnDrop<'a>(&'a MetadataLock);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.unlock(Mode::NoWrites);
    }
}

struct ClearOnDrop<'a>(&'a MetadataLock);

impl Drop for ClearOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end_exclusion();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::threads::{Threads, block_on};
    use std::time::Instant;

    const LONG: Duration = Duration::from_secs(10);

    #[test]
    fn windows_grow_to_the_longest_and_pauses_with_them() {
        let mut turns = Turns::LOCAL;
        let windows: Vec<_> = (0..6).map(|_| (turns.window().as_millis(), turns.pause().as_millis())).collect();
        assert_eq!(windows, [(50, 200), (100, 400), (200, 800), (400, 1600), (500, 2000), (500, 2000)]);
    }

    #[test]
    fn ddl_waits_for_users_and_new_users_wait_for_ddl() {
        let runtime = Threads::start().unwrap();
        let lock = Arc::new(MetadataLock::default());
        assert!(lock.try_share());
        let ddl = {
            let (lock, runtime) = (lock.clone(), runtime.clone());
            std::thread::spawn(move || {
                block_on(lock.exclude(&*runtime, LONG)).unwrap();
                std::thread::sleep(Duration::from_millis(20));
                lock.end_exclusion();
            })
        };
        while lock.word.load(Ordering::Relaxed) & DDL == 0 {
            std::thread::yield_now();
        }
        // DDL waits already: a new user queues behind it.
        assert!(!lock.try_share());
        lock.unshare();
        block_on(lock.share(&*runtime, LONG, None)).unwrap();
        assert!(ddl.join().is_ok());
        lock.unshare();
        assert_eq!(lock.word.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_reserved_table_has_users_and_no_other_ddl() {
        let runtime = Threads::start().unwrap();
        let lock = MetadataLock::default();
        let short = Duration::from_millis(5);
        assert!(lock.try_exclude());
        lock.reserve(true);
        assert!(lock.try_share() && !lock.try_write());
        lock.let_writers_in();
        assert!(lock.try_write() && !lock.is_awaited());
        assert!(!lock.try_exclude());
        assert_eq!(block_on(lock.exclude(&*runtime, short)), Err(NodeError::LockTimeout));
        // The other DDL has not held up users, and this one does while it waits, and no longer.
        assert!(lock.try_share());
        assert_eq!(block_on(lock.exclude_reserved(&*runtime, short)), Err(NodeError::LockTimeout));
        assert!(lock.try_share() && !lock.try_exclude_reserved());
        lock.end_write();
        (0..3).for_each(|_| lock.unshare());
        block_on(lock.exclude_reserved(&*runtime, LONG)).unwrap();
        assert!(!lock.try_share() && !lock.try_exclude());
        lock.end_exclusion();
        assert!(lock.try_exclude_reserved());
        lock.end_exclusion();
        lock.end_reservation();
        assert!(lock.try_exclude());
        lock.end_exclusion();
        assert_eq!((lock.word.load(Ordering::Relaxed), lock.writers.load(Ordering::Relaxed)), (0, 0));
    }

    #[test]
    fn ddl_that_gives_up_lets_users_in() {
        let runtime = Threads::start().unwrap();
        let lock = MetadataLock::default();
        assert!(lock.try_share());
        let start = Instant::now();
        assert_eq!(block_on(lock.exclude(&*runtime, Duration::from_millis(30))), Err(NodeError::LockTimeout));
        assert!(start.elapsed() >= Duration::from_millis(30));
        assert!(lock.try_share());
        lock.unshare();
        lock.unshare();
        block_on(lock.exclude(&*runtime, LONG)).unwrap();
        assert_eq!(block_on(lock.exclude(&*runtime, Duration::from_millis(5))), Err(NodeError::LockTimeout));
        assert_eq!(block_on(lock.share(&*runtime, Duration::from_millis(5), None)), Err(NodeError::LockTimeout));
        let killed = Interrupt::default();
        killed.kill();
        assert_eq!(block_on(lock.share(&*runtime, LONG, Some(&killed))), Err(NodeError::Interrupted));
        lock.end_exclusion();
        assert!(lock.try_share());
        assert!(!lock.try_exclude());
        lock.unshare();
        assert!(lock.try_exclude() && !lock.try_exclude() && !lock.try_share());
    }

    #[test]
    fn writers_are_kept_out_and_readers_are_not() {
        let runtime = Threads::start().unwrap();
        let lock = Arc::new(MetadataLock::default());
        assert!(lock.try_lock(Mode::NoWrites) && lock.try_lock(Mode::NoWrites));
        // A reader comes in, and is no writer before both are gone; DDL waits for all three.
        assert!(lock.try_share() && !lock.try_write() && !lock.try_lock(Mode::Alone));
        lock.unlock(Mode::NoWrites);
        assert!(!lock.try_write());
        let short = Duration::from_millis(5);
        assert_eq!(block_on(lock.write(&*runtime, short, None)), Err(NodeError::LockTimeout));
        let writer = {
            let (lock, runtime) = (lock.clone(), runtime.clone());
            std::thread::spawn(move || block_on(lock.write(&*runtime, LONG, None)))
        };
        lock.unlock(Mode::NoWrites);
        assert_eq!(writer.join().unwrap(), Ok(()));
        // Now the writer keeps the mode out, and what is given up keeps nobody out.
        assert!(!lock.try_lock(Mode::NoWrites));
        assert_eq!(block_on(lock.lock(Mode::NoWrites, &*runtime, short)), Err(NodeError::LockTimeout));
        assert!(lock.try_write());
        lock.end_write();
        lock.end_write();
        block_on(lock.lock(Mode::NoWrites, &*runtime, LONG)).unwrap();
        lock.unlock(Mode::NoWrites);
        lock.unshare();
        assert!(lock.try_lock(Mode::Alone) && !lock.try_lock(Mode::NoWrites));
        lock.unlock(Mode::Alone);
        assert_eq!((lock.word.load(Ordering::Relaxed), lock.writers.load(Ordering::Relaxed)), (0, 0));
    }

    #[test]
    fn whoever_keeps_writers_out_raises_that_and_has_it_afterwards() {
        let runtime = Threads::start().unwrap();
        let lock = MetadataLock::default();
        let short = Duration::from_millis(5);
        assert_eq!(Way::to(Mode::Alone, None), Way::Lock(Mode::Alone));
        assert_eq!(Way::to(Mode::Alone, Some(Mode::NoWrites)), Way::Raise);
        assert_eq!(Way::to(Mode::Alone, Some(Mode::Alone)), Way::Nothing);
        assert!(lock.try_lock(Mode::NoWrites));
        // Another holder, or a reader, is waited for; in vain it changes nothing.
        assert!(lock.try_share() && !lock.try_take(Way::Raise));
        assert_eq!(block_on(lock.take(Way::Raise, &*runtime, short)), Err(NodeError::LockTimeout));
        assert!(!lock.is_awaited());
        lock.unshare();
        block_on(lock.take(Way::Raise, &*runtime, LONG)).unwrap();
        assert!(!lock.try_share() && !lock.try_take(Way::Raise) && !lock.try_lock(Mode::Alone));
        lock.give(Way::Raise);
        assert!(lock.try_share() && !lock.try_write());
        lock.unshare();
        assert!(lock.try_take(Way::Raise));
        lock.give(Way::Raise);
        lock.unlock(Mode::NoWrites);
        // Nothing is raised that nobody has.
        assert_eq!(block_on(lock.take(Way::Raise, &*runtime, short)), Err(NodeError::LockTimeout));
        assert_eq!((lock.word.load(Ordering::Relaxed), lock.writers.load(Ordering::Relaxed)), (0, 0));
    }

    #[test]
    fn a_ddl_that_is_killed_while_it_waits_lets_users_in() {
        let runtime = Threads::start().unwrap();
        let lock = Arc::new(MetadataLock::default());
        assert!(lock.try_share());
        let killed = Arc::new(Interrupt::default());
        let ddl = {
            let (lock, runtime, killed) = (lock.clone(), runtime.clone(), killed.clone());
            std::thread::spawn(move || {
                let wait = DdlWait { interrupt: Some(&killed), ..DdlWait::from(LONG) };
                block_on(wait.unless_killed(lock.exclude(&*runtime, LONG)))
            })
        };
        while !lock.is_awaited() {
            std::thread::yield_now();
        }
        killed.kill();
        assert_eq!(ddl.join().unwrap(), Err(NodeError::Interrupted));
        assert!(!lock.is_awaited() && lock.try_share());
    }
}
