//! Transactions that wait for row locks: who waits for whom, and how a wait ends.
//!
//! The queues stand in the partitions. Here stands, for the whole node, one entry for each *waiting* transaction, with those it waits for. It is
//! made while the partition is still held, so that a grant cannot pass it by. The mutex is taken only by transactions that wait and by those
//! that grant to a waiting one.
//!
//! Deadlocks are looked for when a wait begins: an edge that closes a cycle is always the last one, so the one who adds it finds
//! the cycle at once. The victim is the member of the cycle with the fewest writes, on a tie the one that came last. A queue is first in, first
//! out, so nobody gets in front of one who waits except by ending, and edges are never added to an entry later: when a wait becomes pointless
//! or is granted, the call is made again and, if it must wait again, brings a new entry.
//! In a cluster a cycle may go through several nodes: `ops::deadlock` finds those, among waits that have lasted ([`Waits::lasting`]).
//!
//! A wait ends by grant, deadlock, timeout or KILL. On the last three the transaction leaves the partition's queue itself.

use parking_lot::Mutex;
use rauk_types::{PartitionId, TableId, TxnId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::Waker;
use std::time::Duration;

#[derive(Default)]
pub struct Waits {
    table: Mutex<FxHashMap<TxnId, Wait>>,
    /// Length of the table, so that granting looks at it only when somebody waits.
    waiting: AtomicUsize,
    pub waits_begun: AtomicU64,
    /// How long those have taken that have ended, in nanoseconds.
    pub waited: AtomicU64,
    /// The longest of these.
    pub longest: AtomicU64,
    pub deadlocks: AtomicU64,
}

/// The lock that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub partition: PartitionId,
    /// It is of a row of this table.
    pub table: TableId,
    pub shared: bool,
}

struct Wait {
    wanted: Wanted,
    blockers: Vec<TxnId>,
    writes: u64,
    since: Duration,
    /// Order of arrival.
    number: u64,
    outcome: Option<Outcome>,
    waker: Option<Waker>,
}

/// How a wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Make the call again.
    Granted,
    /// Chosen as the victim of a deadlock.
    Deadlock,
}

/// A waiting transaction, for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitInfo {
    pub txn: TxnId,
    pub wanted: Wanted,
    pub since: Duration,
    pub blockers: Vec<TxnId>,
}

impl Waits {
    /// A wait begins, `now`. Called while the partition is held.
    pub fn enter(&self, txn: TxnId, wanted: Wanted, blockers: Vec<TxnId>, writes: u64, now: Duration) {
        let number = self.waits_begun.fetch_add(1, Ordering::Relaxed);
        let wait = Wait { wanted, blockers, writes, since: now, number, outcome: None, waker: None };
        let mut table = self.table.lock();
        table.insert(txn, wait);
        self.waiting.store(table.len(), Ordering::SeqCst);
    }

    /// Ends the entry, however the wait went.
    pub fn leave(&self, txn: TxnId, now: Duration) {
        let mut table = self.table.lock();
        let ended = table.remove(&txn);
        self.waiting.store(table.len(), Ordering::SeqCst);
        drop(table);
        if let Some(wait) = ended {
            let took = u64::try_from(now.saturating_sub(wait.since).as_nanos()).unwrap_or(u64::MAX);
            self.waited.fetch_add(took, Ordering::Relaxed);
            self.longest.fetch_max(took, Ordering::Relaxed);
        }
    }

    /// Locks were granted. Those that do not wait (any more) are passed over.
    pub fn grant(&self, granted: &[TxnId]) {
        if granted.is_empty() || self.waiting.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut table = self.table.lock();
        let mut wakers = Vec::new();
        for txn in granted {
            if let Some(wait) = table.get_mut(txn)
                && wait.outcome.is_none()
            {
                wait.outcome = Some(Outcome::Granted);
                wakers.extend(wait.waker.take());
            }
        }
        drop(table);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// How the wait has ended; else `waker` is kept for when it does.
    pub fn poll(&self, txn: TxnId, waker: &Waker) -> Option<Outcome> {
        let mut table = self.table.lock();
        let Some(wait) = table.get_mut(&txn) else { return Some(Outcome::Granted) };
        if wait.outcome.is_none() {
            wait.waker = Some(waker.clone());
        }
        wait.outcome
    }

    /// Looks for cycles through `txn`, and makes a victim of one member of each. Called once, when its wait has begun.
    pub fn detect(&self, txn: TxnId) {
        let mut wakers = Vec::new();
        let mut table = self.table.lock();
        while let Some(cycle) = find_cycle(&table, txn) {
            let victim = cycle
                .into_iter()
                .min_by_key(|t| {
                    let wait = &table[t];
                    (wait.writes, std::cmp::Reverse(wait.number))
                })
                .expect("a cycle has members");
            let wait = table.get_mut(&victim).expect("members wait");
            wait.outcome = Some(Outcome::Deadlock);
            wakers.extend(wait.waker.take());
            self.deadlocks.fetch_add(1, Ordering::Relaxed);
        }
        drop(table);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Waits that began at or before `before`, in the order of their transactions: who waits, for whom, and what it has written.
    pub fn lasting(&self, before: Duration) -> Vec<(TxnId, Vec<TxnId>, u64)> {
        if self.waiting.load(Ordering::SeqCst) == 0 {
            return Vec::new();
        }
        let table = self.table.lock();
        let lasting = table.iter().filter(|(_, w)| w.outcome.is_none() && w.since <= before);
        let mut list: Vec<_> = lasting.map(|(txn, w)| (*txn, w.blockers.clone(), w.writes)).collect();
        list.sort_by_key(|(txn, ..)| *txn);
        list
    }

    /// Ends a wait: its transaction is the victim of a deadlock over nodes. Nothing when it does not wait here (any more).
    pub fn end_as_victim(&self, txn: TxnId) {
        let mut table = self.table.lock();
        let Some(wait) = table.get_mut(&txn).filter(|w| w.outcome.is_none()) else { return };
        wait.outcome = Some(Outcome::Deadlock);
        let waker = wait.waker.take();
        self.deadlocks.fetch_add(1, Ordering::Relaxed);
        drop(table);
        waker.into_iter().for_each(Waker::wake);
    }

    /// All that wait in a partition look again: what they wait for there is gone.
    pub fn wake_partition(&self, partition: PartitionId) {
        if self.waiting.load(Ordering::SeqCst) == 0 {
            return;
        }
        let there: Vec<TxnId> =
            self.table.lock().iter().filter(|(_, w)| w.wanted.partition == partition).map(|(txn, _)| *txn).collect();
        self.grant(&there);
    }

    /// Those who wait, by transaction id.
    pub fn list(&self) -> Vec<WaitInfo> {
        let mut list: Vec<WaitInfo> = self
            .table
            .lock()
            .iter()
            .filter(|(_, w)| w.outcome.is_none())
            .map(|(t, w)| WaitInfo { txn: *t, wanted: w.wanted, since: w.since, blockers: w.blockers.clone() })
            .collect();
        list.sort_by_key(|w| w.txn);
        list
    }
}

/// A cycle of transactions that still wait, through `start`.
fn find_cycle(table: &FxHashMap<TxnId, Wait>, start: TxnId) -> Option<Vec<TxnId>> {
    let blockers = |txn: TxnId| table.get(&txn).filter(|w| w.outcome.is_none()).map(|w| w.blockers.as_slice());
    let mut path = vec![start];
    // For each member of the path, which of its blockers comes next.
    let mut next = vec![0];
    let mut seen = FxHashSet::default();
    blockers(start)?;
    while let Some(&txn) = path.last() {
        let depth = path.len() - 1;
        match blockers(txn).and_then(|b| b.get(next[depth])) {
            Some(&to) => {
                next[depth] += 1;
                if to == start {
                    return Some(path);
                }
                if blockers(to).is_some() && seen.insert(to) {
                    path.push(to);
                    next.push(0);
                }
            }
            None => {
                path.pop();
                next.pop();
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: Wanted = Wanted { partition: PartitionId(0), table: TableId(1), shared: false };

    fn enter(waits: &Waits, txn: u64, blockers: &[u64], writes: u64) {
        waits.enter(TxnId(txn), ROW, blockers.iter().map(|&b| TxnId(b)).collect(), writes, Duration::ZERO);
        waits.detect(TxnId(txn));
    }

    fn outcome(waits: &Waits, txn: u64) -> Option<Outcome> {
        waits.poll(TxnId(txn), Waker::noop())
    }

    #[test]
    fn the_one_with_fewest_writes_dies() {
        let waits = Waits::default();
        enter(&waits, 1, &[2], 5);
        enter(&waits, 2, &[3], 1);
        enter(&waits, 3, &[7, 1], 9);
        assert_eq!(outcome(&waits, 1), None);
        assert_eq!(outcome(&waits, 2), Some(Outcome::Deadlock));
        assert_eq!(outcome(&waits, 3), None);
        assert_eq!(waits.deadlocks.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn on_a_tie_the_last_to_come_dies() {
        let waits = Waits::default();
        enter(&waits, 1, &[2], 0);
        enter(&waits, 2, &[1], 0);
        assert_eq!(outcome(&waits, 1), None);
        assert_eq!(outcome(&waits, 2), Some(Outcome::Deadlock));
    }

    #[test]
    fn two_cycles_through_one_transaction_cost_one_victim_each_at_most() {
        let waits = Waits::default();
        enter(&waits, 1, &[3], 2);
        enter(&waits, 2, &[3], 2);
        enter(&waits, 3, &[1, 2], 9);
        assert_eq!(outcome(&waits, 1), Some(Outcome::Deadlock));
        assert_eq!(outcome(&waits, 2), Some(Outcome::Deadlock));
        assert_eq!(outcome(&waits, 3), None);
    }

    #[test]
    fn chains_are_no_cycles() {
        let waits = Waits::default();
        enter(&waits, 1, &[2, 3], 0);
        enter(&waits, 2, &[3], 0);
        enter(&waits, 4, &[1, 2, 3], 0);
        assert!((1..5).all(|t| t == 3 || outcome(&waits, t).is_none()));
        waits.grant(&[TxnId(2), TxnId(99)]);
        assert_eq!(outcome(&waits, 2), Some(Outcome::Granted));
        // The granted one is no longer waiting, so this closes nothing.
        enter(&waits, 3, &[2], 0);
        assert_eq!(outcome(&waits, 3), None);
        waits.leave(TxnId(2), Duration::from_micros(3));
        assert_eq!(waits.list().len(), 3);
        assert_eq!((waits.waited.into_inner(), waits.longest.into_inner()), (3000, 3000));
    }
}
