//! What evaluation may use: memory, the size of a value, and processor time between two looks at KILL.
//!
//! Evaluation never waits, and a single row can take long: a tree of thousands of calls over megabytes of text. So whatever reads or writes much
//! says how much ([`Budget::work`]). Each [`LOOK`] bytes it is looked whether the statement was killed or is over its time. A call that
//! goes through much, or follows [`LONG`] bytes in one go, runs while another thread takes over the tasks of this one ([`Beside`]), so that
//! nobody waits for it. The executor takes the work into account when it decides to give way to others ([`Budget::take_work`]).

use crate::memory::{LARGE, Memory};
use rauk_types::MysqlError;

/// Bytes of work between two looks: a millisecond at most.
const LOOK: usize = 1 << 20;
/// Bytes of work in one go after which other tasks of the thread move to another one: some milliseconds.
const LONG: usize = 4 << 20;
/// A call that goes through so many bytes takes long by itself.
const LONG_CALL: usize = 1 << 20;

/// Rows that take some ten milliseconds to sort.
const MANY_ROWS: usize = 16 << 10;

/// Runs what takes long, while another thread takes over the tasks of this one.
pub type Beside = fn(&mut dyn FnMut());

/// Lets the thread's other tasks run, and its sockets be looked at, before the task of this context is polled again.
pub type GiveWay = fn(&mut std::task::Context<'_>);

/// The limits of the running statement.
pub struct Budget {
    /// It also knows when the statement has to end ([`Memory::look`]).
    pub memory: Memory,
    beside: Beside,
    pub(crate) give_way: GiveWay,
    /// Bytes of the result that were read ahead of a client that does not read.
    pub(crate) ahead: usize,
    /// Bytes since the last look, and since other tasks had their turn.
    since_look: usize,
    since_turn: usize,
}

impl Default for Budget {
    /// Without limits: for folding constants, and for tests.
    fn default() -> Self {
        Budget {
            memory: Memory::default(),
            beside: |work| work(),
            give_way: |context| context.waker().wake_by_ref(),
            ahead: 0,
            since_look: 0,
            since_turn: 0,
        }
    }
}

impl Budget {
    pub fn new(memory: Memory, threads: (Beside, GiveWay)) -> Self {
        let (beside, give_way) = threads;
        Budget { memory, beside, give_way, ..Budget::default() }
    }

    /// Counts `bytes` that are read or written. Errors: 1317, 3024.
    #[inline]
    pub fn work(&mut self, bytes: usize) -> Result<(), MysqlError> {
        self.since_look += bytes;
        if self.since_look >= LOOK { self.look() } else { Ok(()) }
    }

    #[cold]
    fn look(&mut self) -> Result<(), MysqlError> {
        self.since_turn = self.since_turn.saturating_add(self.since_look);
        self.since_look = 0;
        self.memory.look()
    }

    /// Whether others should have their turn.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.since_turn >= LONG
    }

    /// The bytes of work since others had their turn, as a number of rows that take as long.
    pub fn take_work(&mut self) -> usize {
        let bytes = std::mem::take(&mut self.since_turn) + std::mem::take(&mut self.since_look);
        bytes / 4096
    }

    /// How to run a call that reads `bytes`: as it is, or beside the thread's other tasks.
    #[inline]
    pub(crate) fn runner(&self, bytes: usize) -> Beside {
        if bytes >= LONG_CALL || bytes >= LARGE && self.since_turn >= LONG { self.beside } else { |work| work() }
    }

    /// How to sort so many rows.
    pub(crate) fn runner_of_rows(&self, rows: usize) -> Beside {
        if rows >= MANY_ROWS { self.beside } else { |work| work() }
    }

    /// Runs what takes long, whatever came before it, beside the thread's other tasks.
    pub(crate) fn beside<R>(&self, work: impl FnOnce() -> R) -> R {
        run(self.beside, work)
    }

    /// A statement begins.
    pub(crate) fn begin(&mut self, limit: usize) {
        self.memory.release();
        self.memory.set_limit(limit);
        self.memory.set_deadline(None);
        self.since_look = 0;
        self.since_turn = 0;
    }
}

/// `work` by a runner.
pub(crate) fn run<R>(runner: Beside, work: impl FnOnce() -> R) -> R {
    let (mut work, mut result) = (Some(work), None);
    runner(&mut || result = work.take().map(|work| work()));
    result.expect("the runner has run it")
}
