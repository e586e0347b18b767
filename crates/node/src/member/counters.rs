//! AUTO_INCREMENT numbers and hidden keys in a cluster: blocks of numbers reserved from the manage group, given out from memory.
//!
//! The group keeps for each counter a bound below which numbers may have been given out. A process asks for a block above it, of 1, 2, 4 … up to 1 024 numbers more than it needs
//! at the moment, and gives its numbers out; so numbers are never given out twice, and on each process they grow. One request for a counter is under way at a time, the others
//! that need numbers wait for it. What a process still had when it ended is never given out. Numbers of different processes interleave by blocks, not by time, as in MySQL's clusters.
//!
//! An explicit value moves the counter above it: the group's, if it may not have given out so much yet, and the block in hand. A block that *another* process has in hand is not
//! touched: that process may come to the value and is refused it by the unique key, once. (`ALTER TABLE … AUTO_INCREMENT = n` is told to all.) Where explicit values keep coming in growing order (a load of rows that bring their numbers), blocks
//! are reserved behind them, so that the group is not asked for each row.

use super::Cluster;
use super::signal::Signal;
use crate::error::NodeError;
use crate::runtime::BoxFuture;
use crate::table::counter::exhausted;
use parking_lot::Mutex;
use rauk_manage::group::{Answer, GroupCommand, Refused};
use rauk_types::{Member, TableId};
use rustc_hash::FxHashMap;
use std::future::poll_fn;
use std::ops::Range;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

/// How long other processes are told to leave numbers out, and how long one answer may take.
const SETTLE: Duration = Duration::from_secs(1);
const ASK: Duration = Duration::from_millis(200);

/// How many numbers more than needed are reserved at most.
const MOST_AHEAD: u64 = 1024;

/// Proposes a command to the manage group, as [`super::Cluster::propose`].
pub type Propose<'a> = dyn Fn(GroupCommand) -> BoxFuture<Result<Answer, NodeError>> + Send + Sync + 'a;

/// The blocks that this process has in hand.
#[derive(Default)]
pub struct Blocks {
    blocks: Mutex<FxHashMap<TableId, Arc<Block>>>,
}

struct Block {
    id: TableId,
    hand: Mutex<Hand>,
}

struct Hand {
    numbers: Range<u64>,
    /// Numbers below are not given out any more: explicit values have been seen.
    floor: u64,
    /// How many numbers more than needed the next request asks for.
    ahead: u64,
    asking: bool,
    waiting: Vec<Waker>,
}

impl Hand {
    fn take(&mut self, count: u64) -> Option<u64> {
        let start = self.numbers.start.max(self.floor);
        let end = start.checked_add(count)?;
        if end > self.numbers.end {
            return None;
        }
        self.numbers.start = end;
        Some(start)
    }

    /// How many more to ask for, which doubles each time.
    fn grow(&mut self) -> u64 {
        let ahead = self.ahead;
        self.ahead = (ahead * 2).min(MOST_AHEAD);
        ahead
    }

    /// A block was reserved. What is left of the one before goes on in it, or is lost.
    fn put(&mut self, block: Range<u64>) {
        match self.numbers.end == block.start {
            true => self.numbers.end = block.end,
            false => self.numbers = block,
        }
    }
}

impl Block {
    fn new(id: TableId) -> Block {
        let hand = Hand { numbers: 0..0, floor: 0, ahead: 1, asking: false, waiting: Vec::new() };
        Block { id, hand: Mutex::new(hand) }
    }

    /// Waits until nobody asks, and is then the one that asks, unless `done` finds in the hand what is wanted.
    async fn turn<R>(&self, mut done: impl FnMut(&mut Hand) -> Option<R>) -> Result<R, Asking<'_>> {
        poll_fn(|cx| {
            let mut hand = self.hand.lock();
            if let Some(r) = done(&mut hand) {
                return Poll::Ready(Ok(r));
            }
            if hand.asking {
                hand.waiting.push(cx.waker().clone());
                return Poll::Pending;
            }
            hand.asking = true;
            Poll::Ready(Err(Asking(self)))
        })
        .await
    }
}

/// Who asks the group. When it ends, or is dropped, others may.
struct Asking<'a>(&'a Block);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let waiting = {
            let mut hand = self.0.hand.lock();
            hand.asking = false;
            std::mem::take(&mut hand.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl Asking<'_> {
    /// Reserves `count` numbers.
    async fn reserve(&self, count: u64, propose: &Propose<'_>) -> Result<(), NodeError> {
        match propose(GroupCommand::Reserve { table: self.0.id, count }).await? {
            Answer::Numbers(first) => {
                let end = first.checked_add(count).ok_or_else(exhausted)?;
                self.0.hand.lock().put(first..end);
                Ok(())
            }
            Answer::Refused(Refused::OutOfRange(_)) => Err(exhausted()),
            other => Err(unexpected(&other)),
        }
    }
}

fn unexpected(answer: &Answer) -> NodeError {
    NodeError::Fatal(format!("the manage group answered {answer:?} to a request for numbers"))
}

impl Blocks {
    fn block(&self, counter: TableId) -> Arc<Block> {
        self.blocks.lock().entry(counter).or_insert_with(|| Arc::new(Block::new(counter))).clone()
    }

    /// Gives out `count` consecutive numbers of a counter: the first of them.
    pub async fn reserve(&self, counter: TableId, count: u64, propose: &Propose<'_>) -> Result<u64, NodeError> {
        let block = self.block(counter);
        loop {
            let asking = match block.turn(|hand| hand.take(count)).await {
                Ok(first) => return Ok(first),
                Err(asking) => asking,
            };
            let ahead = block.hand.lock().grow();
            asking.reserve(count.checked_add(ahead - 1).ok_or_else(exhausted)?, propose).await?;
        }
    }

    /// The numbers given out from now on are above `value`. `given`: numbers below may have been given out, as far as this process knows of the group.
    pub async fn observe(
        &self,
        counter: TableId,
        value: u64,
        given: u64,
        propose: &Propose<'_>,
    ) -> Result<(), NodeError> {
        // The largest number cannot be exceeded; the next request then fails.
        let above = value.saturating_add(1);
        let block = self.block(counter);
        // Within what was given out to whomever, only the own block is concerned.
        let known =
            |hand: &mut Hand| (above <= given.max(hand.numbers.end)).then(|| hand.floor = hand.floor.max(above));
        let Err(asking) = block.turn(known).await else { return Ok(()) };
        match propose(GroupCommand::Observe { table: counter, value }).await? {
            Answer::Done | Answer::Void => {}
            Answer::Refused(Refused::OutOfRange(_)) => return Err(exhausted()),
            other => return Err(unexpected(&other)),
        }
        let ahead = {
            let mut hand = block.hand.lock();
            hand.floor = hand.floor.max(above);
            hand.grow()
        };
        // The second time and later: more are likely to come.
        if ahead > 1 && above < u64::MAX - ahead {
            asking.reserve(ahead, propose).await?;
        }
        Ok(())
    }

    /// What is in hand at or below `value` is not given out any more.
    pub fn skip(&self, counter: TableId, value: u64) {
        let block = self.block(counter);
        let mut hand = block.hand.lock();
        hand.floor = hand.floor.max(value.saturating_add(1));
    }

    /// The next number, as SHOW CREATE TABLE prints it: of the own block if nobody has reserved one behind it, else the group's.
    pub fn next(&self, counter: TableId, given: u64) -> u64 {
        let given = given.max(1);
        let block = self.blocks.lock().get(&counter).cloned();
        block.map_or(given, |block| {
            let hand = block.hand.lock();
            match hand.numbers.end >= given {
                true => hand.numbers.start.max(hand.floor).max(1),
                false => given.max(hand.floor),
            }
        })
    }

    /// Forgets the counters of tables that are not `known` any more.
    pub fn keep(&self, known: impl Fn(TableId) -> bool) {
        self.blocks.lock().retain(|counter, _| known(*counter));
    }
}

impl Cluster {
    /// Numbers of a counter given out from now on are above `value`: an explicit one was stored. The twin of [`Cluster::reserve`].
    pub async fn observe(&self, counter: TableId, value: u64) -> Result<(), NodeError> {
        let given = self.given(counter);
        self.catalog_state().blocks.observe(counter, value, given, &|command| self.propose_for_numbers(command)).await
    }

    /// As [`Cluster::observe`], and for the numbers that others have in hand too (`ALTER TABLE … AUTO_INCREMENT = n`). A process that does not answer for [`SETTLE`] may still give out what it has.
    pub async fn start_numbers(&self, counter: TableId, value: u64) -> Result<(), NodeError> {
        self.observe(counter, value).await?;
        let end = self.runtime.now() + SETTLE;
        let tell = |to: Member| async move {
            while self.is_up(to.process) && self.runtime.now() < end {
                if let Ok(Signal::Done) = self.request(to, Signal::Skip { counter, value }, ASK).await {
                    return;
                }
            }
        };
        futures::future::join_all(self.processes().into_iter().filter(|m| *m != self.me()).map(tell)).await;
        Ok(())
    }

    /// The next number of a counter, as far as is known here.
    pub fn next_number(&self, counter: TableId) -> u64 {
        self.catalog_state().blocks.next(counter, self.given(counter))
    }

    /// Numbers below may have been given out.
    fn given(&self, counter: TableId) -> u64 {
        self.group().counters.get(&counter).copied().unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::threads::block_on;
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicU64, Ordering};

    const T: TableId = TableId(7);

    /// The group's counter, and how often it was asked.
    #[derive(Default)]
    struct Fake {
        next: AtomicU64,
        asked: AtomicU64,
    }

    impl Fake {
        fn new() -> Fake {
            Fake { next: AtomicU64::new(1), asked: AtomicU64::new(0) }
        }

        fn propose(&self, command: GroupCommand) -> BoxFuture<Result<Answer, NodeError>> {
            self.asked.fetch_add(1, Ordering::SeqCst);
            let answer = match command {
                GroupCommand::Reserve { table: T, count } => {
                    let next = |n: u64| n.checked_add(count);
                    match self.next.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next) {
                        Ok(first) => Answer::Numbers(first),
                        Err(_) => Answer::Refused(Refused::OutOfRange("at its end".into())),
                    }
                }
                GroupCommand::Observe { table: T, value } => {
                    self.next.fetch_max(value.saturating_add(1), Ordering::SeqCst);
                    Answer::Done
                }
                other => panic!("{other:?}"),
            };
            // As over a network: not at once.
            Box::pin(async move {
                crate::commit::group::yield_once().await;
                Ok(answer)
            })
        }

        fn given(&self) -> u64 {
            self.next.load(Ordering::SeqCst)
        }

        fn take(&self, blocks: &Blocks, count: u64) -> Result<u64, NodeError> {
            block_on(blocks.reserve(T, count, &|c| self.propose(c)))
        }

        fn see(&self, blocks: &Blocks, value: u64) {
            block_on(blocks.observe(T, value, self.given(), &|c| self.propose(c))).unwrap();
        }
    }

    #[test]
    fn numbers_follow_each_other_and_the_group_is_asked_seldom() {
        let (group, blocks) = (Fake::new(), Blocks::default());
        for n in 1..=10_000 {
            assert_eq!(blocks.next(T, group.given()), n);
            assert_eq!(group.take(&blocks, 1), Ok(n));
        }
        let asked = group.asked.load(Ordering::SeqCst);
        assert!(asked < 25, "{asked}");
        assert_eq!(group.take(&blocks, 5_000), Ok(10_001));
        assert_eq!(group.take(&blocks, 1), Ok(15_001));
    }

    #[test]
    fn two_processes_and_many_tasks_never_get_the_same_number() {
        let group = Fake::new();
        let processes = [Blocks::default(), Blocks::default()];
        let taken = Mutex::new(BTreeSet::new());
        std::thread::scope(|scope| {
            for task in 0..6u64 {
                let (group, blocks, taken) = (&group, &processes[task as usize % 2], &taken);
                scope.spawn(move || {
                    let mut last = 0;
                    for i in 0..500 {
                        let count = 1 + (i + task) % 3;
                        let first = group.take(blocks, count).unwrap();
                        assert!(first > last, "numbers grow for whoever asks");
                        last = first;
                        let mut taken = taken.lock();
                        assert!((first..first + count).all(|n| taken.insert(n)));
                    }
                });
            }
        });
    }

    #[test]
    fn explicit_values_move_the_counter() {
        let (group, blocks) = (Fake::new(), Blocks::default());
        assert_eq!(group.take(&blocks, 1), Ok(1));
        group.see(&blocks, 100);
        assert_eq!(blocks.next(T, group.given()), 101);
        assert_eq!(group.take(&blocks, 1), Ok(101));
        // Lower ones do not, and nobody is asked.
        let asked = group.asked.load(Ordering::SeqCst);
        group.see(&blocks, 50);
        assert_eq!(group.asked.load(Ordering::SeqCst), asked);
        // Within the block in hand, or in another process's.
        while group.given() < 110 {
            group.take(&blocks, 1).unwrap();
        }
        let (next, given) = (blocks.next(T, group.given()), group.given());
        assert!(next + 1 < given);
        group.see(&blocks, next);
        assert_eq!(group.take(&blocks, 1), Ok(next + 1));
        let other = Blocks::default();
        group.see(&other, given - 1);
        assert_eq!(group.take(&other, 1), Ok(given));
        // A load that brings its numbers asks seldom.
        let asked = group.asked.load(Ordering::SeqCst);
        for value in 10_000..20_000 {
            group.see(&blocks, value);
        }
        let asked = group.asked.load(Ordering::SeqCst) - asked;
        assert!(asked < 60, "{asked}");
        assert_eq!(group.take(&blocks, 1), Ok(20_000));
        // The largest is the end.
        group.see(&blocks, u64::MAX);
        assert!(matches!(group.take(&blocks, 1), Err(NodeError::Refused(e)) if e.code == 1467));
    }

    #[test]
    fn an_ask_that_is_given_up_lets_others_ask() {
        let (group, blocks) = (Fake::new(), Blocks::default());
        {
            let propose = |c| group.propose(c);
            let mut given_up = Box::pin(blocks.reserve(T, 1, &propose));
            let mut cx = std::task::Context::from_waker(Waker::noop());
            assert!(given_up.as_mut().poll(&mut cx).is_pending());
        }
        // Its number is lost, no more.
        assert_eq!(group.take(&blocks, 1), Ok(2));
        blocks.keep(|_| false);
        assert!(blocks.blocks.lock().is_empty());
    }
}
