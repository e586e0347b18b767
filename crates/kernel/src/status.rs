//! A transaction's status word: what every pending version of it points to.
//!
//! The word is the single place where a transaction becomes committed: pending versions in any number of partitions
//! change their meaning with one store. Readers of a `Committing` one retry (the state lasts while a record is put
//! into the log's buffer). `Prepared` is a state of clusters: the transaction may commit at its least time or later, or abort, and that takes a round
//! trip; readers whose snapshot is below the least time need not care, all others wait for the decision ([`crate::Stop::Prepared`]). The other
//! states answer at once.
//!
//! The word's lowest three bits are the state, the others a time, which is therefore below 2^61: it counts snapshots, at a billion a second for 70 years.

use rauk_types::{Timestamp, TxnId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxnState {
    Active,
    /// Its commit time is being decided.
    Committing,
    /// It commits at this time or later, or aborts: that is decided elsewhere.
    Prepared(Timestamp),
    Committed(Timestamp),
    Aborted,
}

#[derive(Debug, Default)]
pub struct TxnStatus(AtomicU64);

const ACTIVE: u64 = 0;
const COMMITTING: u64 = 1;
const ABORTED: u64 = 2;
const COMMITTED_TAG: u64 = 3;
const PREPARED_TAG: u64 = 4;
const TAG_BITS: u32 = 3;

fn tagged(time: Timestamp, tag: u64) -> u64 {
    assert!(time.0 >> (64 - TAG_BITS) == 0, "time {} does not fit into a status word", time.0);
    time.0 << TAG_BITS | tag
}

impl TxnStatus {
    pub fn get(&self) -> TxnState {
        let word = self.0.load(Ordering::Acquire);
        match word & ((1 << TAG_BITS) - 1) {
            ACTIVE => TxnState::Active,
            COMMITTING => TxnState::Committing,
            ABORTED => TxnState::Aborted,
            PREPARED_TAG => TxnState::Prepared(Timestamp(word >> TAG_BITS)),
            _ => TxnState::Committed(Timestamp(word >> TAG_BITS)),
        }
    }

    pub fn set(&self, state: TxnState) {
        let word = match state {
            TxnState::Active => ACTIVE,
            TxnState::Committing => COMMITTING,
            TxnState::Aborted => ABORTED,
            TxnState::Prepared(least) => tagged(least, PREPARED_TAG),
            TxnState::Committed(time) => tagged(time, COMMITTED_TAG),
        };
        self.0.store(word, Ordering::Release);
    }
}

/// A transaction as partitions know it.
#[derive(Clone, Debug)]
pub struct TxnRef {
    pub id: TxnId,
    pub status: Arc<TxnStatus>,
}

impl TxnRef {
    pub fn new(id: TxnId) -> Self {
        TxnRef { id, status: Arc::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_comes_back_as_it_was_set() {
        let status = TxnStatus::default();
        assert_eq!(status.get(), TxnState::Active);
        let times = [0, 1, 7, 8, 1 << 40, (1 << 60) - 1, (1 << 61) - 1].map(Timestamp);
        let timed = times.iter().flat_map(|t| [TxnState::Prepared(*t), TxnState::Committed(*t)]);
        for state in timed.chain([TxnState::Committing, TxnState::Aborted, TxnState::Active]) {
            status.set(state);
            assert_eq!(status.get(), state);
        }
    }
}
