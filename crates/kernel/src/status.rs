//! A transaction's status word: what every pending version of it points to.
//!
//! The word is the single place where a transaction becomes committed: pending versions in any number of partitions
//! change their meaning with one store. Readers of a `Committing` one retry (the state lasts while a record is put
//! into the log's buffer); all other states answer at once.

use rauk_types::{Timestamp, TxnId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxnState {
    Active,
    /// Its commit time is being decided.
    Committing,
    Committed(Timestamp),
    Aborted,
}

#[derive(Debug, Default)]
pub struct TxnStatus(AtomicU64);

const ACTIVE: u64 = 0;
const COMMITTING: u64 = 1;
const ABORTED: u64 = 2;
const COMMITTED_TAG: u64 = 3;

impl TxnStatus {
    pub fn get(&self) -> TxnState {
        let word = self.0.load(Ordering::Acquire);
        match word & 3 {
            ACTIVE => TxnState::Active,
            COMMITTING => TxnState::Committing,
            ABORTED => TxnState::Aborted,
            _ => TxnState::Committed(Timestamp(word >> 2)),
        }
    }

    pub fn set(&self, state: TxnState) {
        let word = match state {
            TxnState::Active => ACTIVE,
            TxnState::Committing => COMMITTING,
            TxnState::Aborted => ABORTED,
            TxnState::Committed(t) => t.0 << 2 | COMMITTED_TAG,
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
