//! Row locks: who holds a row and who waits for it.
//!
//! Only rows in use have an entry. There are four modes inside although callers ask for three: a row that is inserted
//! or deleted is held as [`Mode::Gone`], which differs from Exclusive in that it also keeps out KeyShare, so that a
//! foreign-key check waits for a delete of its parent but not for an update of it.
//!
//! | | KeyShare | Shared | Exclusive | Gone |
//! |---|---|---|---|---|
//! | KeyShare | yes | yes | yes | |
//! | Shared | yes | yes | | |
//! | Exclusive | yes | | | |
//!
//! Queues are first in, first out: a request that conflicts with a holder or with an earlier waiter waits behind it, so
//! nobody starves. A holder that wants more goes before all who hold nothing (they wait for it anyway).
//!
//! When a lock is given back, waiters that can be granted become holders at once, marked *fresh* until they call again
//! and claim it; a fresh hold that is never claimed is given back by [`LockTable::cancel`]. Waiters whose set of
//! blockers grew (somebody got more than it had) are woken too, so that the caller's wait-for graph learns of it.

use super::side::{RowKey, SideMap};
use super::{LockMode, Stop, WaitPolicy, transactions::TxnTable};
use crate::status::{TxnRef, TxnState};
use rauk_types::TxnId;
use smallvec::SmallVec;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mode {
    KeyShare,
    Shared,
    Exclusive,
    /// Exclusive, and the row comes or goes, or what others refer to in it changes.
    Gone,
}

impl Mode {
    pub fn conflicts(self, other: Mode) -> bool {
        match (self.min(other), self.max(other)) {
            (Mode::KeyShare, high) => high == Mode::Gone,
            (Mode::Shared, high) => high >= Mode::Exclusive,
            _ => true,
        }
    }
}

impl From<LockMode> for Mode {
    fn from(mode: LockMode) -> Self {
        match mode {
            LockMode::KeyShare => Mode::KeyShare,
            LockMode::Shared => Mode::Shared,
            LockMode::Exclusive => Mode::Exclusive,
            LockMode::KeyChange => Mode::Gone,
        }
    }
}

#[derive(Debug)]
struct Holder {
    txn: TxnId,
    mode: Mode,
    /// Granted from the queue and not claimed yet: what it held before.
    fresh: Option<Option<Mode>>,
}

#[derive(Debug)]
struct Waiter {
    txn: TxnId,
    mode: Mode,
}

#[derive(Debug, Default)]
struct RowLock {
    holders: SmallVec<[Holder; 1]>,
    queue: Vec<Waiter>,
}

impl RowLock {
    fn heap_bytes(&self) -> usize {
        let holders = if self.holders.spilled() { self.holders.capacity() * size_of::<Holder>() } else { 0 };
        holders + self.queue.capacity() * size_of::<Waiter>()
    }

    fn held(&self, txn: TxnId) -> Option<Mode> {
        self.holders.iter().find(|h| h.txn == txn).map(|h| h.mode)
    }

    /// Others that hold what conflicts, then the conflicting ones among the first `ahead` of the queue.
    fn blockers(&self, txn: TxnId, mode: Mode, ahead: usize) -> impl Iterator<Item = TxnId> {
        let holders = self.holders.iter().filter(move |h| h.txn != txn && h.mode.conflicts(mode)).map(|h| h.txn);
        let waiters = self.queue[..ahead].iter().filter(move |w| w.txn != txn && w.mode.conflicts(mode)).map(|w| w.txn);
        holders.chain(waiters)
    }

    /// Wakes the waiters behind `from` that `txn` did not block with `before` but blocks with `now`.
    fn wake_newly_blocked(&self, from: usize, txn: TxnId, before: Option<Mode>, now: Mode, granted: &mut Vec<TxnId>) {
        for waiter in &self.queue[from..] {
            let blocked_before = before.is_some_and(|b| b.conflicts(waiter.mode));
            if waiter.txn != txn && !blocked_before && now.conflicts(waiter.mode) {
                granted.push(waiter.txn);
            }
        }
    }

    /// Makes holders of all waiters that nobody blocks any more.
    fn grant(&mut self, granted: &mut Vec<TxnId>) {
        let mut i = 0;
        while i < self.queue.len() {
            let (txn, mode) = (self.queue[i].txn, self.queue[i].mode);
            let ahead = if self.held(txn).is_some() { 0 } else { i };
            if self.blockers(txn, mode, ahead).next().is_some() {
                i += 1;
                continue;
            }
            self.queue.remove(i);
            match self.holders.iter_mut().find(|h| h.txn == txn) {
                Some(holder) => {
                    // A fresh hold that grows keeps what was held before the first of the waits.
                    holder.fresh = Some(holder.fresh.unwrap_or(Some(holder.mode)));
                    holder.mode = mode;
                }
                None => self.holders.push(Holder { txn, mode, fresh: Some(None) }),
            }
            granted.push(txn);
        }
    }
}

/// A lock that a call has: what the transaction held before the call (and before a wait for it).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub before: Option<Mode>,
    pub now: Mode,
}

pub(super) struct LockTable {
    rows: SideMap<RowLock>,
    heap: usize,
    /// Transactions to wake.
    pub granted: Vec<TxnId>,
}

impl LockTable {
    pub fn new() -> Self {
        LockTable { rows: SideMap::new(), heap: 0, granted: Vec::new() }
    }

    pub fn bytes(&self) -> usize {
        self.rows.bytes() + self.heap + self.granted.capacity() * size_of::<TxnId>()
    }

    /// Whether anybody holds the row or waits for it.
    pub fn is_used(&self, key: RowKey) -> bool {
        self.rows.contains(key)
    }

    /// What `txn` holds, fresh holds included.
    pub fn held(&self, key: RowKey, txn: TxnId) -> Option<Mode> {
        self.rows.get(key)?.held(txn)
    }

    /// Whether `txn` holds the row and knows that.
    pub fn is_claimed(&self, key: RowKey, txn: TxnId) -> bool {
        let holder = self.rows.get(key).and_then(|row| row.holders.iter().find(|h| h.txn == txn));
        holder.is_some_and(|holder| holder.fresh.is_none_or(|before| before.is_some()))
    }

    /// What `txn` waits for.
    pub fn wanted(&self, key: RowKey, txn: TxnId) -> Option<Mode> {
        self.rows.get(key)?.queue.iter().find(|w| w.txn == txn).map(|w| w.mode)
    }

    /// Whether `txn` holds the row or waits for it.
    pub fn is_involved(&self, key: RowKey, txn: TxnId) -> bool {
        let row = self.rows.get(key);
        row.is_some_and(|row| row.held(txn).is_some() || row.queue.iter().any(|w| w.txn == txn))
    }

    /// The others that hold the row, in whatever mode.
    pub fn holders_beside(&self, key: RowKey, txn: TxnId) -> Vec<TxnId> {
        let holders = self.rows.get(key).into_iter().flat_map(|row| row.holders.iter());
        holders.map(|h| h.txn).filter(|h| *h != txn).collect()
    }

    /// Writes down that a fresh row is its owner's; whether that was not done before.
    fn hold_fresh(&mut self, key: RowKey, owner: TxnId) -> bool {
        let row = self.rows.get_or_insert_with(key, RowLock::default);
        let new = row.holders.is_empty();
        if new {
            row.holders.push(Holder { txn: owner, mode: Mode::Gone, fresh: None });
        }
        assert!(row.held(owner) == Some(Mode::Gone), "{key:?}: a fresh row that its owner does not hold");
        new
    }

    /// The lock, or those who are in the way. With `wait` the transaction stands in the queue then.
    pub fn request(&mut self, key: RowKey, txn: TxnId, mode: Mode, wait: bool) -> Result<Taken, Vec<TxnId>> {
        let row = self.rows.get_or_insert_with(key, RowLock::default);
        let heap = row.heap_bytes();
        let mine = row.holders.iter().position(|h| h.txn == txn);
        let before = mine.map(|i| row.holders[i].mode);
        let target = before.map_or(mode, |b| b.max(mode));
        if let Some(i) = mine
            && row.holders[i].mode == target
        {
            let before = row.holders[i].fresh.take().unwrap_or(Some(target));
            return Ok(Taken { before, now: target });
        }
        let queued = row.queue.iter().position(|w| w.txn == txn);
        let ahead = match (queued, mine) {
            (Some(i), _) => i,
            // Behind the holders that wait for more already, before everybody else.
            (None, Some(_)) => {
                let behind = row.queue.iter().position(|w| row.held(w.txn).is_none());
                behind.unwrap_or(row.queue.len())
            }
            (None, None) => row.queue.len(),
        };
        // A holder waits for holders only: who waits already waits for it too, or is not in its way.
        let looked_at = if mine.is_some() { 0 } else { ahead };
        if row.blockers(txn, target, looked_at).next().is_none() {
            if let Some(i) = queued {
                row.queue.remove(i);
            }
            let taken = match mine {
                Some(i) => {
                    row.holders[i].mode = target;
                    Taken { before: row.holders[i].fresh.take().unwrap_or(before), now: target }
                }
                None => {
                    row.holders.push(Holder { txn, mode: target, fresh: None });
                    Taken { before: None, now: target }
                }
            };
            row.wake_newly_blocked(0, txn, before, target, &mut self.granted);
            self.heap = self.heap + row.heap_bytes() - heap;
            return Ok(taken);
        }
        let mut blockers: Vec<TxnId> = row.blockers(txn, target, ahead).collect();
        blockers.sort_unstable();
        blockers.dedup();
        if wait {
            match queued {
                Some(i) => {
                    let asked = row.queue[i].mode;
                    row.queue[i].mode = asked.max(target);
                    row.wake_newly_blocked(i + 1, txn, Some(asked), target, &mut self.granted);
                }
                None => {
                    row.queue.insert(ahead, Waiter { txn, mode: target });
                    row.wake_newly_blocked(ahead + 1, txn, before, target, &mut self.granted);
                }
            }
        }
        self.heap = self.heap + row.heap_bytes() - heap;
        Err(blockers)
    }

    /// Sets what the transaction holds back to `before` (`None`: nothing). Tolerates that it holds nothing.
    pub fn restore(&mut self, key: RowKey, txn: TxnId, before: Option<Mode>) {
        let Some(row) = self.rows.get_mut(key) else { return };
        let Some(i) = row.holders.iter().position(|h| h.txn == txn) else { return };
        let heap = row.heap_bytes();
        match before {
            Some(mode) => {
                row.holders[i].mode = mode;
                row.holders[i].fresh = None;
            }
            None => drop(row.holders.remove(i)),
        }
        if !row.queue.is_empty() {
            row.grant(&mut self.granted);
        }
        let empty = row.holders.is_empty();
        assert!(!empty || row.queue.is_empty(), "waiters of a row that nobody holds");
        self.heap = self.heap + row.heap_bytes() - heap;
        if empty {
            self.remove(key);
        }
    }

    /// Takes the transaction out of the queue, or gives back what was granted and not claimed.
    pub fn cancel(&mut self, key: RowKey, txn: TxnId) {
        let Some(row) = self.rows.get_mut(key) else { return };
        if let Some(i) = row.queue.iter().position(|w| w.txn == txn) {
            let heap = row.heap_bytes();
            row.queue.remove(i);
            row.grant(&mut self.granted);
            self.heap = self.heap + row.heap_bytes() - heap;
        }
        let fresh = row.holders.iter().find(|h| h.txn == txn).and_then(|h| h.fresh);
        if let Some(before) = fresh {
            self.restore(key, txn, before);
        }
    }

    /// The row is gone: drops the entry and wakes all who wait.
    pub fn forget(&mut self, key: RowKey) {
        if let Some(row) = self.rows.get(key) {
            self.granted.extend(row.queue.iter().map(|w| w.txn));
            self.remove(key);
        }
    }

    /// All rows of a table, for dropping it.
    pub fn rows_of(&self, table: rauk_types::TableId) -> Vec<RowKey> {
        self.rows.iter().map(|(k, _)| k).filter(|k| k.table() == table).collect()
    }

    fn remove(&mut self, key: RowKey) {
        let row = self.rows.remove(key).expect("a lock entry to remove");
        self.heap -= row.heap_bytes();
    }

    /// Panics when holders conflict, or when a waiter could be granted.
    pub fn validate(&self, txns: &TxnTable) {
        let mut heap = 0;
        for (key, row) in self.rows.iter() {
            heap += row.heap_bytes();
            assert!(!row.holders.is_empty(), "{key:?}: a lock entry without holders");
            for (i, a) in row.holders.iter().enumerate() {
                for b in &row.holders[i + 1..] {
                    assert!(a.txn != b.txn && !a.mode.conflicts(b.mode), "{key:?}: {a:?} beside {b:?}");
                }
                let record = txns.get(a.txn).unwrap_or_else(|| panic!("{key:?}: {a:?} has no transaction"));
                let listed = if a.fresh.is_some_and(|b| b.is_none()) { &record.waits } else { &record.locks };
                assert!(listed.contains(&key), "{key:?}: {a:?} is not in its transaction's list");
            }
            for (i, w) in row.queue.iter().enumerate() {
                let ahead = if row.held(w.txn).is_some() { 0 } else { i };
                assert!(row.blockers(w.txn, w.mode, ahead).next().is_some(), "{key:?}: {w:?} waits for nobody");
                let record = txns.get(w.txn).unwrap_or_else(|| panic!("{key:?}: {w:?} has no transaction"));
                assert!(record.waits.contains(&key), "{key:?}: {w:?} is not in its transaction's list");
            }
        }
        assert_eq!(heap, self.heap, "bytes of lock queues");
    }
}

/// Takes a lock for a call, or says why not. A transaction that must wait is in the row's queue then. `fresh`: the owner of
/// the row when it is fresh, who holds it; that is written down now.
pub(super) fn take(
    locks: &mut LockTable,
    txns: &mut TxnTable,
    txn: &TxnRef,
    key: RowKey,
    mode: Mode,
    wait: WaitPolicy,
    fresh: Option<&TxnRef>,
) -> Result<Taken, Stop> {
    if let Some(owner) = fresh
        && locks.hold_fresh(key, owner.id)
    {
        txns.claim(owner, key, true);
    }
    match locks.request(key, txn.id, mode, wait == WaitPolicy::Wait) {
        Ok(taken) => {
            if taken.before != Some(taken.now) {
                txns.claim(txn, key, taken.before.is_none());
            }
            Ok(taken)
        }
        Err(blockers) if wait == WaitPolicy::Wait => {
            txns.push_wait(txn, key);
            Err(Stop::Wait(blockers))
        }
        // Whose end is under way, or who has committed, is about to give its locks back: no reason to fail.
        Err(blockers) if blockers.iter().all(|b| txns.get(*b).is_some_and(|r| r.is_ending || is_deciding(&r.txn))) => {
            Err(Stop::Committing)
        }
        Err(_) => Err(Stop::WouldWait),
    }
}

fn is_deciding(txn: &TxnRef) -> bool {
    matches!(txn.status.get(), TxnState::Committing | TxnState::Committed(_))
}

/// Undoes [`take`].
pub(super) fn give_back(locks: &mut LockTable, txns: &mut TxnTable, txn: TxnId, key: RowKey, taken: Taken) {
    if taken.before == Some(taken.now) {
        return;
    }
    locks.restore(key, txn, taken.before);
    if taken.before.is_none() {
        txns.unlist(txn, key);
    }
}

/// Forgets a wait for (or an unclaimed grant of) this row, where a call found that it needs no lock.
pub(super) fn drop_wait(locks: &mut LockTable, txns: &mut TxnTable, txn: TxnId, key: RowKey) {
    if txns.take_wait(txn, key) {
        locks.cancel(key, txn);
        txns.release_if_empty(txn);
    }
}
