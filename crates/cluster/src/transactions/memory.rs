//! What is remembered of transactions that are finished: bounded, oldest first out, and the same on all replicas, since it grows by stable entries in
//! the order of the stream.
//!
//! # Tombstones ([`Tombstones`])
//! A commit over several groups that all have confirmed, and that was forgotten. The last [`TOMBSTONES`] stay. They
//! answer a question that was under way when the transaction was forgotten: without a tombstone it would find nothing,
//! make a fence and hear "refused" about a commit. The oldest may go, because no process that acts on the answer is
//! left: whoever asked held a prepared record, has since confirmed the commit (else it would not have been forgotten)
//! and so knows the outcome; its coordinator knows it or is dead (rule 8). A late *prepare* needs no tombstone at all:
//! the locks that it needs went with the outcome (rule 5). What is left of a question that comes after the tombstone
//! has gone is a fence that nobody needs and that is swept ([`super::TxnTable::lingering`]). An abort leaves no
//! tombstone: a fence says the same as the forgotten record.
//!
//! # Commits of one group ([`Commits`])
//! Nobody forgets these by an entry: there are too many. The last [`COMMITS`] stay with their times, for the coordinator that lost its answer
//! because the primary changed. When one goes, its process' *floor* is raised to its number: a transaction that is not known and not above the floor
//! of its process may have committed. Its coordinator then hears [`super::Vote::Forgotten`] and tells the client "outcome unknown" (1180), never a guess.
//! Floors are kept for the newest [`FLOORS`] processes.

use rauk_types::{ProcessId, Timestamp, TxnId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, VecDeque};

/// At 16 bytes and hashing about 0.4 MB for each group; at 10 000 commits a second of that kind in one group, those of
/// 1.6 s.
pub(super) const TOMBSTONES: usize = 16_384;

/// About 1.3 MB for each group; at 30 000 commits a second in one group, those of the last second.
pub(super) const COMMITS: usize = 32_768;

pub(super) const FLOORS: usize = 1_024;

/// Bytes of an element in a queue and a hash table that is three quarters full.
const fn cost(queued: usize, hashed: usize) -> usize {
    queued + (hashed + 1) * 4 / 3
}

#[derive(Clone, Debug, Default)]
pub(super) struct Tombstones {
    order: VecDeque<TxnId>,
    known: FxHashSet<TxnId>,
}

impl Tombstones {
    pub fn add(&mut self, txn: TxnId) {
        if self.known.insert(txn) {
            self.order.push_back(txn);
        }
        if self.order.len() > TOMBSTONES {
            let oldest = self.order.pop_front().expect("just seen");
            self.known.remove(&oldest);
        }
    }

    pub fn contains(&self, txn: TxnId) -> bool {
        self.known.contains(&txn)
    }

    /// Oldest first.
    pub fn iter(&self) -> impl Iterator<Item = TxnId> {
        self.order.iter().copied()
    }

    pub fn bytes(&self) -> usize {
        self.order.len() * cost(8, 8)
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Commits {
    order: VecDeque<TxnId>,
    times: FxHashMap<TxnId, Timestamp>,
    /// By process: the highest number of a transaction that has gone from `order`.
    floors: BTreeMap<ProcessId, u64>,
    /// Of this process and all before it no floor is kept: any number may have gone.
    floorless: ProcessId,
}

impl Commits {
    pub fn add(&mut self, txn: TxnId, time: Timestamp) {
        let before = self.times.insert(txn, time);
        assert!(before.is_none(), "transaction {} commits twice", txn.0);
        self.order.push_back(txn);
        if self.order.len() > COMMITS {
            let oldest = self.order.pop_front().expect("just seen");
            self.times.remove(&oldest);
            self.raise(oldest.process(), number(oldest));
        }
    }

    pub fn time(&self, txn: TxnId) -> Option<Timestamp> {
        self.times.get(&txn).copied()
    }

    /// It is not among those known, and may have been.
    pub fn may_be_lost(&self, txn: TxnId) -> bool {
        let process = txn.process();
        let below = self.floors.get(&process).is_some_and(|floor| number(txn) <= *floor) || process <= self.floorless;
        below && !self.times.contains_key(&txn)
    }

    /// Raises a floor.
    pub fn raise(&mut self, process: ProcessId, number: u64) {
        if process <= self.floorless {
            return;
        }
        let floor = self.floors.entry(process).or_default();
        *floor = (*floor).max(number);
        if self.floors.len() > FLOORS {
            let (oldest, _) = self.floors.pop_first().expect("just seen");
            self.floorless = oldest;
        }
    }

    /// Oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (TxnId, Timestamp)> {
        self.order.iter().map(|txn| (*txn, self.times[txn]))
    }

    pub fn floors(&self) -> impl Iterator<Item = (ProcessId, u64)> {
        self.floors.iter().map(|(process, number)| (*process, *number))
    }

    pub fn floorless(&self) -> ProcessId {
        self.floorless
    }

    /// As read back. `None`: more than there may be, or doubled.
    pub fn restore(times: &[(TxnId, Timestamp)], floors: &[(ProcessId, u64)], floorless: ProcessId) -> Option<Commits> {
        let order: VecDeque<TxnId> = times.iter().map(|(txn, _)| *txn).collect();
        let commits = Commits {
            times: times.iter().copied().collect(),
            floors: floors.iter().copied().collect(),
            order,
            floorless,
        };
        let sound = commits.order.len() <= COMMITS
            && commits.times.len() == times.len()
            && commits.floors.len() == floors.len()
            && floors.len() <= FLOORS;
        sound.then_some(commits)
    }

    pub fn bytes(&self) -> usize {
        self.order.len() * cost(8, 16) + self.floors.len() * 24
    }
}

/// Of a transaction within its process.
pub(super) fn number(txn: TxnId) -> u64 {
    txn.0 & ((1 << TxnId::NUMBER_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tombstones_are_bounded() {
        let mut tombstones = Tombstones::default();
        for number in 0..TOMBSTONES as u64 + 10 {
            tombstones.add(TxnId::of_process(ProcessId(3), number));
            tombstones.add(TxnId::of_process(ProcessId(3), number));
        }
        assert_eq!(tombstones.iter().count(), TOMBSTONES);
        assert!(!tombstones.contains(TxnId::of_process(ProcessId(3), 9)));
        assert!(tombstones.contains(TxnId::of_process(ProcessId(3), 10)));
        assert!(tombstones.bytes() < 500_000);
    }

    #[test]
    fn a_commit_that_has_gone_may_be_lost_and_others_are_not() {
        let mut commits = Commits::default();
        let txn = |number| TxnId::of_process(ProcessId(3), number);
        commits.add(txn(70), Timestamp(1));
        for number in 0..COMMITS as u64 - 1 {
            commits.add(TxnId::of_process(ProcessId(4), number), Timestamp(2));
        }
        assert_eq!((commits.time(txn(70)), commits.may_be_lost(txn(70))), (Some(Timestamp(1)), false));
        assert!(!commits.may_be_lost(txn(1)));
        commits.add(txn(90), Timestamp(3));
        assert_eq!((commits.time(txn(70)), commits.may_be_lost(txn(70))), (None, true));
        assert!(commits.may_be_lost(txn(1)) && !commits.may_be_lost(txn(71)) && !commits.may_be_lost(txn(90)));
        assert!(!commits.may_be_lost(TxnId::of_process(ProcessId(5), 1)));
        assert!(commits.bytes() < 1_500_000);
    }

    #[test]
    fn floors_are_bounded_and_err_to_the_safe_side() {
        let mut commits = Commits::default();
        for process in 1..=FLOORS as u32 + 5 {
            commits.raise(ProcessId(process), 10);
        }
        assert_eq!((commits.floors().count(), commits.floorless()), (FLOORS, ProcessId(5)));
        assert!(commits.may_be_lost(TxnId::of_process(ProcessId(5), 1_000)));
        assert!(!commits.may_be_lost(TxnId::of_process(ProcessId(6), 11)));
        commits.raise(ProcessId(2), 10);
        assert_eq!(commits.floors().count(), FLOORS);
    }
}
