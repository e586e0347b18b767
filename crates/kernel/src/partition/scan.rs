//! Scans in slices: by an index in key order, or all rows in row-id order; with or without locks.
//!
//! A scan finds its place again by key and row id, so it survives whatever happens between two slices. It visits an
//! index entry's row only when the version that it sees has the entry's key: a row with several versions has an entry for each key.
//!
//! A *covering* scan wants no other columns than those that the index's keys say. Of a row that has one version, of before the snapshot, the entry
//! says all: there is no other entry of it in the index, and the version is to be seen. Whether that is so, the marks of the row store tell without the row
//! ([`RowStore::settled`]), and the row is made of the key. A mark is of 64 rows: where one of them is too new, or not durable, or where the row has
//! more versions, the row is read as by any scan.
//!
//! [`RowStore::settled`]: crate::row_store::RowStore::settled
//!
//! Locking scans lock each row before they show it and give back locks on rows that the visitor does not want. With
//! `conflict_after`, the time of the transaction's snapshot, a row that changed since is shown once for each of its
//! versions that the scan meets: the newest one, and the one of the snapshot (both marked [`ScanRow::changed`]). If the
//! visitor wants either, the scan fails with [`Stop::Changed`]:
//!
//! | the visitor wants | outcome |
//! |---|---|
//! | the snapshot's version | the statement would have changed or locked a row that is another by now |
//! | the newest version only | the row came into the condition after the snapshot; a write to it would be refused as well |
//! | neither | no conflict, no lock: an UPDATE without an index does not fail for rows that it does not touch |
//!
//! So the answer does not depend on the access path: a row that was deleted, or moved within or out of the scanned
//! range, is met by the entry of the version that the snapshot needs. Where such entries may be gone (below a floor),
//! the scan fails with [`Stop::SnapshotTooOld`].

use super::fragment::{Fragment, Index};
use super::locks::{self, LockTable};
use super::read;
use super::side::RowKey;
use super::transactions::TxnTable;
use super::versions::{Sight, VersionTable};
use super::{
    Access, LockMode, Partition, ReadAt, ScanEnd, ScanPosition, ScanRequest, ScanRow, Stop, Verdict, WaitPolicy,
};
use crate::row_store::RowId;
use crate::status::TxnRef;
use rauk_types::{Covering, IndexId, TableId, Timestamp};
use std::ops::{Bound, ControlFlow};

/// One slice's view of the partition, its parts borrowed apart.
pub(super) struct Scanner<'s, 'a> {
    pub(super) fragment: &'s Fragment,
    versions: &'s VersionTable,
    locks: &'s mut LockTable,
    txns: &'s mut TxnTable,
    access: &'s mut Access<'a>,
    table: TableId,
    lock: Option<(LockMode, WaitPolicy)>,
    pub(super) covering: Option<&'s Covering>,
    scratch: &'s mut Vec<u8>,
    /// Room for a row that is made of a key.
    image: &'s mut Vec<u8>,
}

impl Partition {
    /// Visits up to `slice` index entries or rows from `position` on. With a lock, each row is locked first and its newest
    /// version visited, and after it the snapshot's version of a row that has changed since; on [`Stop::Wait`] the position is before the row that is waited for. `reverse` means nothing to scans
    /// without an index.
    pub fn scan(
        &mut self,
        request: &ScanRequest,
        position: &mut ScanPosition,
        slice: usize,
        access: &mut Access<'_>,
        visit: &mut dyn FnMut(&ScanRow<'_>) -> Verdict,
    ) -> Result<ScanEnd, Stop> {
        let compared = match (request.lock, access.at) {
            (Some(_), _) => access.conflict_after,
            (None, ReadAt::Snapshot(time)) => Some(time),
            (None, ReadAt::Newest) => None,
        };
        self.about_to_scan(request, compared)?;
        let (mut scratch, mut image) = (std::mem::take(&mut self.scratch), std::mem::take(&mut self.image));
        let covering = request.covering.as_deref().filter(|_| request.lock.is_none());
        let scanner = self.scanner(request.table, request.lock, covering, access, &mut scratch, &mut image);
        let result = scanner.and_then(|mut scanner| scanner.slice(request, position, slice, visit));
        (self.scratch, self.image) = (scratch, image);
        if request.lock.is_some() {
            self.settle();
        }
        result
    }

    /// One slice's view of a table.
    pub(super) fn scanner<'s, 'a>(
        &'s mut self,
        table: TableId,
        lock: Option<(LockMode, WaitPolicy)>,
        covering: Option<&'s Covering>,
        access: &'s mut Access<'a>,
        scratch: &'s mut Vec<u8>,
        image: &'s mut Vec<u8>,
    ) -> Result<Scanner<'s, 'a>, Stop> {
        let fragment = self.fragments.get(&table).ok_or(Stop::StaleSchema)?;
        let Partition { versions, locks, txns, .. } = self;
        Ok(Scanner { fragment, versions, locks, txns, access, table, lock, covering, scratch, image })
    }

    /// Visits the keys of up to `slice` index entries from `position` on, whatever versions they stand for, pending ones of others included: the keys at which a
    /// locking scan of the request may find rows. A key comes once for each of its entries.
    pub fn scan_keys(
        &mut self,
        request: &ScanRequest,
        position: &mut ScanPosition,
        slice: usize,
        access: &Access<'_>,
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<ScanEnd, Stop> {
        self.about_to_scan(request, access.conflict_after)?;
        let fragment = self.fragments.get(&request.table).ok_or(Stop::StaleSchema)?;
        let at = request.index.and_then(|id| fragment.index_position(id)).ok_or(Stop::StaleSchema)?;
        let start = std::mem::take(position);
        let after = match &start {
            ScanPosition::AfterEntry(key, id) => Some((key.as_slice(), *id)),
            _ => None,
        };
        let (low, high) = (as_slices(&request.low), as_slices(&request.high));
        if is_empty(low, high) {
            return Ok(ScanEnd::Finished);
        }
        let (mut end, mut left) = (ScanEnd::Finished, slice.max(1));
        fragment.indexes[at].tree.scan(low, high, request.reverse, after, &mut |key, id| {
            visit(key);
            left -= 1;
            if left > 0 {
                return ControlFlow::Continue(());
            }
            *position = ScanPosition::AfterEntry(key.to_vec(), id);
            end = ScanEnd::More;
            ControlFlow::Break(())
        });
        Ok(end)
    }

    /// What is compared with a snapshot stays as that saw it. Refuses when something that the snapshot needs may be
    /// gone.
    fn about_to_scan(&mut self, request: &ScanRequest, snapshot: Option<Timestamp>) -> Result<(), Stop> {
        let Some(time) = snapshot else { return Ok(()) };
        self.raise_max_read(time);
        let fragment = self.fragments.get(&request.table).ok_or(Stop::StaleSchema)?;
        let also = request.also.iter().map(|(id, _)| *id);
        let of_indexes = request.index.into_iter().chain(also).map(|id| fragment.entry_floor_of(id)).max();
        let floor = of_indexes.unwrap_or(fragment.removed_floor);
        if time < floor { Err(Stop::SnapshotTooOld) } else { Ok(()) }
    }

    /// SERIALIZABLE: locks a range of an index against inserts, deletes and key changes by others, until the transaction ends.
    /// Hash-only indexes have ranges too (of one key, or all).
    pub fn lock_range(
        &mut self,
        txn: &TxnRef,
        table: TableId,
        index: IndexId,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
    ) -> Result<(), Stop> {
        let fragment = self.fragments.get(&table).ok_or(Stop::StaleSchema)?;
        if !fragment.range_defs.iter().any(|(id, _)| *id == index) {
            return Err(Stop::StaleSchema);
        }
        self.ranges.lock(txn.id, table, index, low, high);
        self.txns.note_range(txn, table);
        self.settle();
        Ok(())
    }
}

impl Scanner<'_, '_> {
    fn slice(
        &mut self,
        request: &ScanRequest,
        position: &mut ScanPosition,
        slice: usize,
        visit: &mut dyn FnMut(&ScanRow<'_>) -> Verdict,
    ) -> Result<ScanEnd, Stop> {
        let fragment = self.fragment;
        let Some(id) = request.index else { return self.rows(position, slice, visit) };
        let index = fragment.index_position(id).map(|at| &fragment.indexes[at]).ok_or(Stop::StaleSchema)?;
        match request.also.is_empty() || request.lock.is_some() {
            true => self.entries(index, request, position, slice, visit),
            false => self.common(index, request, position, slice, visit),
        }
    }

    fn rows(
        &mut self,
        position: &mut ScanPosition,
        slice: usize,
        visit: &mut dyn FnMut(&ScanRow<'_>) -> Verdict,
    ) -> Result<ScanEnd, Stop> {
        let mut from = match position {
            ScanPosition::AfterRow(RowId(id)) => RowId(*id + 1),
            _ => RowId(0),
        };
        for _ in 0..slice {
            let Some(id) = self.fragment.rows.next(from) else { return Ok(ScanEnd::Finished) };
            let flow = self.row(id, None, visit)?;
            *position = ScanPosition::AfterRow(id);
            from = RowId(id.0 + 1);
            if flow.is_break() {
                return Ok(ScanEnd::More);
            }
        }
        Ok(ScanEnd::More)
    }

    fn entries(
        &mut self,
        index: &Index,
        request: &ScanRequest,
        position: &mut ScanPosition,
        slice: usize,
        visit: &mut dyn FnMut(&ScanRow<'_>) -> Verdict,
    ) -> Result<ScanEnd, Stop> {
        let (mut low, mut high) = (as_slices(&request.low), as_slices(&request.high));
        let start = std::mem::take(position);
        let after = match &start {
            ScanPosition::AfterEntry(key, id) => Some((key.as_slice(), *id)),
            ScanPosition::BeforeEntry(key, id) if request.reverse => {
                high = Bound::Included(key);
                Some((key.as_slice(), RowId(id.0 + 1)))
            }
            ScanPosition::BeforeEntry(key, id) => {
                low = Bound::Included(key);
                id.0.checked_sub(1).map(|before| (key.as_slice(), RowId(before)))
            }
            _ => None,
        };
        if is_empty(low, high) {
            return Ok(ScanEnd::Finished);
        }
        let mut result = Ok(ScanEnd::Finished);
        let mut left = slice.max(1);
        index.tree.scan(low, high, request.reverse, after, &mut |key, id| {
            match self.row(id, Some((index, key)), visit) {
                Ok(flow) => {
                    left -= 1;
                    if left > 0 && flow.is_continue() {
                        return ControlFlow::Continue(());
                    }
                    *position = ScanPosition::AfterEntry(key.to_vec(), id);
                    result = Ok(ScanEnd::More);
                }
                Err(stop) => {
                    *position = ScanPosition::BeforeEntry(key.to_vec(), id);
                    result = Err(stop);
                }
            }
            ControlFlow::Break(())
        });
        result
    }

    pub(super) fn row(
        &mut self,
        id: RowId,
        entry: Option<(&Index, &[u8])>,
        visit: &mut dyn FnMut(&ScanRow<'_>) -> Verdict,
    ) -> Result<ControlFlow<()>, Stop> {
        let rk = RowKey::new(self.table, id);
        let (fragment, versions) = (self.fragment, self.versions);
        let key = entry.map_or(&[][..], |(_, key)| key);
        let Some((mode, wait)) = self.lock else {
            if let Some(covering) = self.covering
                && let Some(newest) = fragment.rows.settled(id, self.upto())
                && covering.fill(key, self.image)
            {
                self.access.observed = self.access.observed.max(newest);
                let layout = covering.layout();
                let row = fragment.view(layout, &*self.image);
                return Ok(flow(visit(&ScanRow { key, layout, row, changed: false })));
            }
            let at = self.access.at;
            let sight = versions.see(fragment, rk, at, self.access)?;
            let Some(sight) = sight.filter(|s| self.has_key(s, entry)) else { return Ok(ControlFlow::Continue(())) };
            return Ok(flow(visit(&show(fragment, key, &sight, false))));
        };
        let txn = self.access.txn.expect("a locking scan belongs to a transaction");
        // What nobody is changing and is not to be seen needs no lock: deleted rows, entries of old versions.
        if !read::others_pending(fragment, versions, rk, self.access) {
            let sight = versions.see(fragment, rk, ReadAt::Newest, self.access)?;
            if !sight.is_some_and(|s| self.has_key(&s, entry)) {
                locks::drop_wait(self.locks, self.txns, txn.id, rk);
                return self.show_snapshots(rk, entry, visit);
            }
        }
        let locked = read::lock_and_see(fragment, versions, self.locks, self.txns, rk, mode.into(), wait, self.access);
        let (sight, taken) = match locked {
            Ok(Some(locked)) => locked,
            Ok(None) => return self.show_snapshots(rk, entry, visit),
            Err(Stop::WouldWait) if wait == WaitPolicy::SkipLocked => return Ok(ControlFlow::Continue(())),
            Err(stop) => return Err(stop),
        };
        if !self.has_key(&sight, entry) {
            locks::give_back(self.locks, self.txns, txn.id, rk, taken);
            return self.show_snapshots(rk, entry, visit);
        }
        let changed = read::changed_after(fragment, versions, rk, self.access);
        let verdict = visit(&show(fragment, key, &sight, changed));
        if changed || !verdict.keeps() {
            locks::give_back(self.locks, self.txns, txn.id, rk, taken);
        }
        match changed {
            false => Ok(flow(verdict)),
            true if verdict.keeps() => Err(Stop::Changed),
            true => match self.show_snapshots(rk, entry, visit)? {
                ControlFlow::Continue(()) => Ok(flow(verdict)),
                stopped => Ok(stopped),
            },
        }
    }

    /// What is not newer can be taken from entries: those who read it wait for nothing that they would not wait for by the rows.
    fn upto(&self) -> Timestamp {
        let durable = self.access.horizon.durable;
        match self.access.at {
            ReadAt::Newest => durable,
            ReadAt::Snapshot(time) => time.min(durable),
        }
    }

    /// Whether the version that is seen is the one, or one of those, that the entry stands for.
    fn has_key(&mut self, sight: &Sight<'_>, entry: Option<(&Index, &[u8])>) -> bool {
        let Some((index, key)) = entry else { return true };
        if sight.sole || index.id == IndexId::PRIMARY {
            return true;
        }
        index.def.has(&self.fragment.view(sight.layout, sight.bytes), key, self.scratch)
    }

    /// Of a row that changed after the transaction's snapshot: shows the version that the snapshot has at this entry.
    fn show_snapshots(
        &mut self,
        rk: RowKey,
        entry: Option<(&Index, &[u8])>,
        visit: &mut dyn FnMut(&ScanRow<'_>) -> Verdict,
    ) -> Result<ControlFlow<()>, Stop> {
        let (fragment, versions) = (self.fragment, self.versions);
        let changed = read::changed_after(fragment, versions, rk, self.access);
        let Some(after) = self.access.conflict_after.filter(|_| changed) else { return Ok(ControlFlow::Continue(())) };
        let sight = versions.see(fragment, rk, ReadAt::Snapshot(after), self.access)?;
        let Some(sight) = sight.filter(|s| self.has_key(s, entry)) else { return Ok(ControlFlow::Continue(())) };
        let key = entry.map_or(&[][..], |(_, key)| key);
        let verdict = visit(&show(fragment, key, &sight, true));
        if verdict.keeps() { Err(Stop::Changed) } else { Ok(flow(verdict)) }
    }
}

fn show<'a>(fragment: &'a Fragment, key: &'a [u8], sight: &Sight<'a>, changed: bool) -> ScanRow<'a> {
    ScanRow { key, layout: sight.layout, row: fragment.view(sight.layout, sight.bytes), changed }
}

fn flow(verdict: Verdict) -> ControlFlow<()> {
    match verdict {
        Verdict::Keep | Verdict::Skip => ControlFlow::Continue(()),
        Verdict::KeepAndStop | Verdict::SkipAndStop => ControlFlow::Break(()),
    }
}

fn as_slices(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

fn is_empty(low: Bound<&[u8]>, high: Bound<&[u8]>) -> bool {
    match (low, high) {
        (Bound::Included(l), Bound::Included(h)) => l > h,
        (Bound::Included(l) | Bound::Excluded(l), Bound::Included(h) | Bound::Excluded(h)) => l >= h,
        _ => false,
    }
}
