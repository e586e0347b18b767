//! The end of a transaction that has changed many rows here, and the undoing of many of its changes, in slices.
//!
//! Commit makes images inline, abort takes them off, both give locks back: some hundred nanoseconds a row. Whoever ends
//! a transaction of many rows does one slice of that; the rest is *under way* ([`Partition::has_ends`]) until somebody
//! has called [`Partition::go_on`] often enough. The same goes for a statement or savepoint that is undone, and for
//! what a replica takes off its rows because the primary has undone it. So nobody waits for more than a slice.
//!
//! An end that is under way is decided. Who reads goes by the status word of the transaction, as between a commit and its
//! installation; who wants a lock that has not been given back yet waits for it, or is told to call again at once if it
//! would not wait ([`Stop::Committing`](super::Stop::Committing)).
//!
//! | who needs the rows as they come to be | does |
//! |---|---|
//! | the transaction itself, before it reads, writes or commits | slices, in holds of its own: [`Partition::go_on_with`] |
//! | checkpoints and copies: ends from before they began | slices, in holds of their own: [`Partition::has_ends_upto`] |
//! | writes that the stream brings, to a row that is in the way | that row, out of its turn ([`Partition::adopt`]) |
//! | writes of the same transaction that the stream brings; definitions of tables | all of it, at once |
//!
//! The undo list is worked off from its end, the list of locks then: what is left in them is what is left to do, but
//! for rows whose turn came early.

use super::side::RowKey;
use super::versions::{Change, Image};
use super::{Horizon, Partition};
use rauk_types::{Timestamp, TxnId};

/// Rows that are installed or undone, and locks that are given back, in one hold.
pub const END_SLICE: usize = 128;

/// What is under way for a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Commit(Timestamp),
    Abort,
    /// What statements with this number and above have written is undone; locks stay.
    Rollback(u32),
    /// What was adopted with this number and above is taken off, with the locks of these rows.
    TakeBack(u32),
}

impl End {
    /// Whether the transaction ends.
    fn is_decided(self) -> bool {
        matches!(self, End::Commit(_) | End::Abort)
    }

    /// The lowest number of a change that it is about.
    fn from(self) -> u32 {
        match self {
            End::Commit(_) | End::Abort => 0,
            End::Rollback(number) | End::TakeBack(number) => number,
        }
    }
}

/// An end that is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnderWay {
    /// How many have begun before it.
    number: u64,
    txn: TxnId,
    end: End,
    /// Of the last slice, for those who know no newer one.
    horizon: Horizon,
    /// Some rows were settled before their turn: of these nothing is pending any more.
    is_early: bool,
}

impl Partition {
    /// How many rows are a slice, if not [`END_SLICE`].
    pub fn set_end_slice(&mut self, rows: usize) {
        assert!(rows > 0, "slices of nothing");
        self.txns.slice = rows;
    }

    /// Whether something is under way: somebody has to call [`Partition::go_on`].
    #[inline]
    pub fn has_ends(&self) -> bool {
        !self.ends.is_empty()
    }

    /// What is under way now is what [`Partition::has_ends_upto`] is asked with this number.
    pub fn newest_end(&self) -> u64 {
        self.ends_begun
    }

    /// Whether some of that is still under way. They are worked on in their order, so later ones do not keep it up.
    pub fn has_ends_upto(&self, newest: u64) -> bool {
        self.ends.front().is_some_and(|oldest| oldest.number < newest)
    }

    /// Does a slice of the oldest that is under way.
    pub fn go_on(&mut self, horizon: Horizon) {
        if let Some(mut oldest) = self.ends.pop_front() {
            oldest.horizon = horizon;
            if !self.end_some(oldest, self.txns.slice) {
                self.ends.push_front(oldest);
            }
            self.settle();
        }
    }

    /// Does a slice of what is under way for this transaction; whether nothing is left of it, and the transaction may go
    /// on here.
    pub fn go_on_with(&mut self, txn: TxnId) -> bool {
        let Some(at) = self.position_of(txn) else { return true };
        let is_complete = self.end_some(self.ends[at], self.txns.slice);
        if is_complete {
            self.ends.remove(at);
        }
        self.settle();
        is_complete
    }

    /// Completes all that is under way.
    pub fn finish_ends(&mut self) {
        while let Some(next) = self.ends.pop_front() {
            self.end_some(next, usize::MAX);
            self.settle();
        }
    }

    /// Completes what is under way for this transaction.
    pub(super) fn finish_end(&mut self, txn: TxnId) {
        if let Some(at) = self.position_of(txn) {
            let found = self.ends.remove(at).expect("just found");
            self.end_some(found, usize::MAX);
            self.settle();
        }
    }

    fn position_of(&self, txn: TxnId) -> Option<usize> {
        self.ends.iter().position(|under_way| under_way.txn == txn)
    }

    fn under_way(&self, txn: TxnId) -> Option<End> {
        self.position_of(txn).map(|at| self.ends[at].end)
    }

    /// Whether something is under way for this transaction: it does not go on here before [`Partition::go_on_with`]
    /// has done it.
    #[inline]
    pub fn is_under_way(&self, txn: TxnId) -> bool {
        self.has_ends() && self.position_of(txn).is_some()
    }

    /// Whether the transaction's end here is under way: it is decided, and cannot be ended again.
    pub(super) fn is_ending(&self, txn: TxnId) -> bool {
        self.under_way(txn).is_some_and(End::is_decided)
    }

    /// The first slice of the end of a large transaction. One whose end is under way has been decided.
    pub(super) fn end(&mut self, txn: TxnId, end: End, horizon: Horizon) {
        if self.is_ending(txn) {
            return;
        }
        self.forget_end(txn);
        self.txns.begin_end(txn);
        self.begin(txn, end, horizon);
    }

    /// The first slice of undoing what the transaction has changed with some number and above.
    pub(super) fn begin_undo(&mut self, txn: TxnId, end: End, horizon: Horizon) {
        match self.under_way(txn) {
            Some(before) if before.is_decided() => return,
            // More of the same is to be undone.
            Some(before) if before.from() > end.from() => self.forget_end(txn),
            Some(_) => return,
            None => {}
        }
        self.txns.begin_undo(txn, end.from());
        self.begin(txn, end, horizon);
    }

    fn begin(&mut self, txn: TxnId, end: End, horizon: Horizon) {
        let under_way = UnderWay { number: self.ends_begun, txn, end, horizon, is_early: false };
        if !self.end_some(under_way, self.txns.slice) {
            self.ends.push_back(under_way);
            self.ends_begun += 1;
        }
        self.settle();
    }

    /// What was under way is part of what comes now.
    pub(super) fn forget_end(&mut self, txn: TxnId) {
        if let Some(at) = self.position_of(txn) {
            self.ends.remove(at);
        }
    }

    /// Does so much of it; whether nothing is left.
    fn end_some(&mut self, UnderWay { txn, end, horizon, is_early, .. }: UnderWay, most: usize) -> bool {
        let mut left = most;
        let mut writes = 0;
        while left > 0
            && let Some(undo) = self.txns.pop_undo(txn, end.from())
        {
            left -= 1;
            if is_early && self.to_undo(txn, end, undo.key).is_none() {
                continue;
            }
            match end {
                End::Commit(time) if undo.first => {
                    self.install(undo.key, time, horizon);
                    writes += 1;
                }
                End::Commit(_) => {}
                End::Abort | End::Rollback(_) => self.undo(txn, undo.key),
                End::TakeBack(_) => {
                    self.undo(txn, undo.key);
                    if undo.first && self.locks.held(undo.key, txn).is_some() {
                        self.locks.restore(undo.key, txn, None);
                        self.txns.unlist(txn, undo.key);
                    }
                }
            }
        }
        if writes > 0 {
            self.throw_away(horizon, 2 * writes + 2);
            self.enforce_history_limit(horizon);
        }
        if !end.is_decided() {
            let has_more = self.txns.get(txn).and_then(|record| record.undo.last());
            let is_complete = has_more.is_none_or(|undo| undo.statement < end.from());
            if is_complete {
                self.txns.release_if_empty(txn);
            }
            return is_complete;
        }
        while left > 0
            && let Some(key) = self.txns.pop_lock(txn)
        {
            left -= 1;
            self.locks.restore(key, txn, None);
        }
        if left == 0 && self.txns.get(txn).is_some_and(|record| !record.undo.is_empty() || !record.locks.is_empty()) {
            return false;
        }
        if let Some(record) = self.txns.remove(txn) {
            self.release(record);
        }
        true
    }

    /// The newest pending image of a row that is there, if this end is about it.
    fn to_undo(&self, txn: TxnId, end: End, rk: RowKey) -> Option<Change> {
        let rows = &self.fragments.get(&rk.table())?.rows;
        let top = rows.contains(rk.row()).then(|| self.versions.own_top(rk, rows.header(rk.row()), txn)).flatten();
        top.filter(|top| top.statement >= end.from())
    }

    /// Does to one row, before its turn, what is under way for this transaction; whether the row is free of it then.
    pub(super) fn settle_row(&mut self, rk: RowKey, txn: TxnId) -> bool {
        let Some(at) = self.position_of(txn) else { return false };
        self.ends[at].is_early = true;
        let UnderWay { end, horizon, .. } = self.ends[at];
        while let Some(top) = self.to_undo(txn, end, rk) {
            match end {
                End::Commit(time) => self.install(rk, time, horizon),
                _ => self.undo(txn, rk),
            }
            if top.image == Image::Inline {
                break;
            }
        }
        let keeps = matches!(end, End::Rollback(_)) || self.to_undo(txn, End::Abort, rk).is_some();
        if !keeps {
            self.locks.restore(rk, txn, None);
        }
        self.settle();
        !keeps
    }
}
