//! The end of transactions: commit, rollback to a statement, abort, waits given up. Of many rows slices ([`super::ends`]).
//!
//! Commit makes each pending image the inline one. The version before it becomes history when a snapshot older than the
//! commit may be in use, or when an index key changed and the commit is not yet durable: a scan of the old key's range must
//! learn of the commit that its answer depends on. Nothing here fails for memory.

use super::collect::Garbage;
use super::ends::End;
use super::fragment::Fragment;
use super::side::RowKey;
use super::transactions::TxnRecord;
use super::versions::{Image, Version, VersionTable, flags};
use super::{Horizon, Partition};
use crate::budget::Purpose;
use crate::row_store::RowHeader;
use rauk_types::{LargeValue, RowImage, Timestamp, TxnId};

/// An abort throws nothing away.
const NOTHING_GOES: Horizon = Horizon { oldest_snapshot: Timestamp::ZERO, durable: Timestamp::ZERO };

impl Partition {
    /// Makes the transaction's versions the newest committed ones, with time `time` (its status word says so already), and gives back its locks.
    pub fn commit(&mut self, txn: TxnId, time: Timestamp, horizon: Horizon) {
        // Even if it has only read here: who writes over what it read commits at its time or later.
        self.raise_finished(time);
        if self.has_ends() && !self.is_ending(txn) {
            // What was to be undone is no part of it.
            self.finish_end(txn);
        }
        if self.txns.get(txn).is_some_and(|record| record.is_large(self.txns.slice)) {
            return self.end(txn, End::Commit(time), horizon);
        }
        let Some(record) = self.txns.remove(txn) else { return };
        let mut writes = 0;
        for undo in record.undo.iter().filter(|u| u.first) {
            self.install(undo.key, time, horizon);
            writes += 1;
        }
        self.release(record);
        if writes > 0 {
            self.throw_away(horizon, 2 * writes + 2);
            self.enforce_history_limit(horizon);
        }
        self.settle();
    }

    pub(super) fn install(&mut self, rk: RowKey, time: Timestamp, horizon: Horizon) {
        let fragment = self.fragments.get_mut(&rk.table()).expect("a table in use");
        let versions = &mut self.versions;
        let header = fragment.rows.header(rk.row());
        fragment.newest = fragment.newest.max(time);
        if header.flags & flags::FRESH != 0 {
            fragment.rows.set_header(rk.row(), RowHeader { time, flags: 0, ..header });
            fragment.count_in(rk.row());
            return;
        }
        let top = versions.get(rk).and_then(|s| s.pending.as_ref()).expect("a changed row has pending images").top();
        let fresh = header.flags & flags::UNCOMMITTED != 0;
        assert!(fresh || header.time <= time, "{rk:?}: committed at {:?} and then at {time:?}", header.time);
        if fresh && top.image == Image::Deleted {
            fragment.vanish(versions, rk, &mut self.keys);
            self.locks.forget(rk);
            return;
        }
        let (pending, chained) = versions.with(rk, |s| (s.pending.take().expect("seen"), !s.history.is_empty()));
        self.keys.clear();
        let mut images = pending.stack.iter().filter_map(|c| match c.image {
            Image::Stored(image) => Some(image),
            Image::Inline | Image::Deleted => None,
        });
        let last = if let Image::Stored(_) = top.image { images.next_back() } else { None };
        for image in images {
            // What the statements in between wrote: their keys may be nobody's now.
            let (header, inline) = fragment.rows.get(rk.row());
            fragment.distinct_keys(versions.image(image), (header.layout, inline), &mut self.keys, &mut self.scratch);
            versions.images.remove(image);
        }
        match (top.image, last) {
            (Image::Inline, _) => {
                fragment.rows.set_header(rk.row(), RowHeader { time, flags: flags::SIDE, ..header });
                fragment.count_in(rk.row());
            }
            (Image::Deleted, _) if header.flags & flags::TOMBSTONE != 0 => {}
            (Image::Deleted, _) => {
                self.history_bytes += fragment.bury(versions, rk, time);
                self.garbage.push_back(Garbage { time, key: rk });
            }
            (Image::Stored(image), _) => {
                if fresh {
                    let (old, new) = (fragment.rows.get(rk.row()), versions.image(image));
                    fragment.distinct_keys((old.0.layout, old.1), new, &mut self.keys, &mut self.scratch);
                } else {
                    let before = self.keys.len();
                    let (old, bytes) = fragment.rows.get(rk.row());
                    let (old, new) = ((old.layout, bytes), versions.image(image));
                    fragment.distinct_keys(old, new, &mut self.keys, &mut self.scratch);
                    let moved = self.keys.len() > before;
                    let beside = versions.image(image).1.beside.to_vec();
                    let about = Old { moved, chained, next: &beside };
                    let kept = keep_old(fragment, versions, rk, about, time, horizon);
                    self.history_bytes = self.history_bytes + kept.now - kept.before;
                    fragment.history_bytes = fragment.history_bytes + kept.now - kept.before;
                    if kept.garbage {
                        self.garbage.push_back(Garbage { time, key: rk });
                    }
                }
                fragment.count_out(rk.row());
                let (layout, bytes) = versions.image(image);
                let header = RowHeader { time, layout, flags: flags::SIDE };
                fragment.rows.replace(rk.row(), header, bytes, Purpose::Relief).expect("relief is not refused");
                fragment.count_in(rk.row());
                versions.images.remove(image);
            }
        }
        fragment.drop_suspects(versions, rk, &mut self.keys, &mut self.scratch);
        fragment.tidy(versions, rk);
    }

    /// Undoes everything of statements numbered `statement` and above; locks taken stay. Of many rows it does a slice,
    /// and the transaction goes on here when [`Partition::go_on_with`] has done the rest.
    pub fn rollback_to(&mut self, txn: TxnId, statement: u32) {
        self.begin_undo(txn, End::Rollback(statement), NOTHING_GOES);
    }

    /// Takes off what was adopted with this number and above, with the locks of these rows: unlike where the
    /// transaction runs, nobody relies on them here, and others may have these rows there. Of many rows it does a slice.
    pub fn take_back(&mut self, txn: TxnId, number: u32) {
        self.begin_undo(txn, End::TakeBack(number), NOTHING_GOES);
    }

    /// Takes the newest pending image off a row.
    pub(super) fn undo(&mut self, txn: TxnId, rk: RowKey) {
        let fragment = self.fragments.get_mut(&rk.table()).expect("a table in use");
        let versions = &mut self.versions;
        let header = fragment.rows.header(rk.row());
        let top = versions.pending(rk, header).expect("a changed row has pending images").change;
        if top.image == Image::Inline {
            fragment.vanish(versions, rk, &mut self.keys);
            // Of a fresh row nothing is written down before somebody has asked for it.
            if self.locks.is_used(rk) {
                self.locks.forget(rk);
                self.txns.unlist(txn, rk);
            }
            return;
        }
        versions.with(rk, |side| {
            let pending = side.pending.as_mut().expect("seen");
            pending.stack.pop();
            if pending.stack.is_empty() {
                side.pending = None;
            }
        });
        if let Image::Stored(image) = top.image {
            self.keys.clear();
            let (header, inline) = fragment.rows.get(rk.row());
            fragment.distinct_keys(versions.image(image), (header.layout, inline), &mut self.keys, &mut self.scratch);
            versions.images.remove(image);
            fragment.drop_suspects(versions, rk, &mut self.keys, &mut self.scratch);
        }
        fragment.tidy(versions, rk);
    }

    /// Undoes everything and gives back all locks; of many rows a slice at a time ([`super::ends`]).
    pub fn abort(&mut self, txn: TxnId) {
        self.txns.take_all_back(txn);
        if self.txns.get(txn).is_some_and(|record| record.is_large(self.txns.slice)) {
            return self.end(txn, End::Abort, NOTHING_GOES);
        }
        self.forget_end(txn);
        while let Some(undo) = self.txns.pop_undo(txn, 0) {
            self.undo(txn, undo.key);
        }
        if let Some(record) = self.txns.remove(txn) {
            self.release(record);
        }
        self.settle();
    }

    pub(super) fn release(&mut self, record: Box<TxnRecord>) {
        let txn = record.txn.id;
        for key in &record.waits {
            self.locks.cancel(*key, txn);
        }
        for key in &record.locks {
            self.locks.restore(*key, txn, None);
        }
        for table in &record.range_waits {
            self.ranges.cancel(txn, *table);
        }
        for table in &record.ranges {
            self.ranges.release(txn, *table, &mut self.locks.granted);
        }
        self.txns.recycle(record);
    }

    /// Transactions that have locks, writes or waits here, by id.
    pub fn open_transactions(&self) -> Vec<TxnId> {
        let mut open: Vec<TxnId> = self.txns.iter().map(|record| record.txn.id).collect();
        open.sort_unstable();
        open
    }

    /// Whether the transaction has changed a row here.
    pub fn has_writes(&self, txn: TxnId) -> bool {
        self.txns.get(txn).is_some_and(|record| !record.undo.is_empty())
    }

    /// The same with a number below this one.
    pub fn has_writes_before(&self, txn: TxnId, number: u32) -> bool {
        let first = self.txns.get(txn).and_then(|record| record.undo.first());
        first.is_some_and(|undo| undo.statement < number)
    }

    pub fn has_transaction(&self, txn: TxnId) -> bool {
        self.txns.get(txn).is_some()
    }

    /// Takes the transaction out of every queue here (timeout, deadlock, KILL).
    pub fn cancel_wait(&mut self, txn: TxnId) {
        let (rows, tables) = self.txns.take_waits(txn);
        for key in rows {
            self.locks.cancel(key, txn);
        }
        for table in tables {
            self.ranges.cancel(txn, table);
        }
        self.txns.release_if_empty(txn);
        self.settle();
    }

    /// Transactions whose lock was granted, or whose wait has become pointless, since the last call: wake them. May name one
    /// twice, or one that no longer waits.
    pub fn take_granted(&mut self) -> Vec<TxnId> {
        let granted = std::mem::take(&mut self.locks.granted);
        if !granted.is_empty() {
            self.settle();
        }
        granted
    }
}

/// What became of the history bytes.
pub(super) struct Kept {
    pub before: u64,
    pub now: u64,
    pub garbage: bool,
}

/// What is known of a version that is to be replaced.
#[derive(Clone, Copy)]
pub(super) struct Old<'a> {
    /// The new image lacks one of its index keys.
    pub moved: bool,
    /// It has history before it.
    pub chained: bool,
    /// The large values of the new image: those cost the old one nothing.
    pub next: &'a [LargeValue],
}

/// Before the inline version is replaced by a new image: makes history of it where somebody may need it, or where there is history before it: that has no gaps, so
/// that what a reader finds in it is what was.
///
/// A version that was replaced at its own time is seen by no snapshot, and is kept only so that those who look for its keys learn of a commit
/// that is not durable. In a cluster, where commit times advance only as snapshots are drawn, that is what keeps the history of a busy row short.
pub(super) fn keep_old(
    fragment: &mut Fragment,
    versions: &mut VersionTable,
    rk: RowKey,
    old_is: Old<'_>,
    time: Timestamp,
    horizon: Horizon,
) -> Kept {
    let Old { moved, chained, next } = old_is;
    let (header, old) = fragment.rows.get(rk.row());
    let tombstone = header.flags & flags::TOMBSTONE != 0;
    let mut kept = Kept { before: 0, now: 0, garbage: false };
    // When the image came, and when it was superseded.
    let (valid_from, until) = if tombstone {
        kept.before = old.size() as u64;
        (versions.with(rk, |s| std::mem::take(&mut s.buried)), header.time)
    } else {
        (header.time, time)
    };
    let seen = valid_from < until && (chained || horizon.oldest_snapshot < until);
    if seen || ((moved || tombstone) && horizon.durable < until) {
        let stored = versions.store(header.layout, old, Purpose::Relief).expect("relief is not refused");
        // A deletion lies between the two, or nothing does.
        let version = Version::new(valid_from, stored, own_bytes(old, if tombstone { &[] } else { next }));
        versions.with(rk, |s| s.history.push(version));
        kept.now = version.bytes();
        kept.garbage = true;
    } else if valid_from < until {
        fragment.floor = fragment.floor.max(until);
        if moved || tombstone {
            fragment.entry_floor = fragment.entry_floor.max(until);
        }
    }
    if tombstone && header.time < time && (chained || kept.garbage || time > horizon.bound()) {
        versions.with(rk, |s| s.history.push(Version::deleted(header.time)));
        kept.garbage = true;
    }
    kept
}

/// Bytes that an image does not have in common with the one after it.
fn own_bytes(image: RowImage<'_>, next: &[LargeValue]) -> u64 {
    let own = image.beside.iter().filter(|value| !next.iter().any(|other| other.is_same(value)));
    (image.head.len() + own.map(LargeValue::len).sum::<usize>()) as u64
}

impl Fragment {
    /// Makes a tombstone of the committed row, which lies under it from then on; gives the bytes that have become history. The caller lists it as garbage.
    pub(super) fn bury(&mut self, versions: &mut VersionTable, rk: RowKey, time: Timestamp) -> u64 {
        self.count_out(rk.row());
        let (header, bytes) = self.rows.get(rk.row());
        let size = bytes.size() as u64;
        versions.with(rk, |s| s.buried = header.time);
        self.history_bytes += size;
        let flags = header.flags | flags::TOMBSTONE | flags::SIDE;
        self.rows.set_header(rk.row(), RowHeader { time, flags, ..header });
        size
    }
}
