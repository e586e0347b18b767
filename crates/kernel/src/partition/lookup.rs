//! Lookups of many ranges of one index in one call: for joins that gather rows before a table that a secondary index
//! reaches.
//!
//! A lookup of a few rows waits for memory several times, one after the other: leaf of the tree, directory, row. Here
//! the entries of all ranges are found first, up to [`AHEAD`] at a time, the places of their rows are fetched ahead,
//! then the rows, and then they are visited. So the waits for different rows fall together. The caller gives the ranges
//! in any order; sorted ones find the leaves of the tree in the cache.
//!
//! What is seen is decided by the same function as for a scan (`Scanner::row`), and a call is a slice: it ends after so
//! many entries, and goes on at its position. What it shows may be locked, as by a scan.

use super::scan::Scanner;
use super::{Access, LockMode, Partition, ReadAt, ScanEnd, ScanPosition, ScanRow, Stop, Verdict, WaitPolicy};
use crate::row_store::RowId;
use rauk_types::{Covering, IndexId, TableId};
use smallvec::SmallVec;
use std::ops::{Bound, ControlFlow};

/// Entries whose rows are fetched ahead together.
const AHEAD: usize = 64;

/// A range of keys: low end included, high end excluded (`None`: no end).
#[derive(Clone, Copy, Debug, Default)]
pub struct Span<'a> {
    pub low: &'a [u8],
    pub high: Option<&'a [u8]>,
}

/// Which rows are looked up.
#[derive(Clone, Copy, Debug)]
pub struct Lookup<'a> {
    pub table: TableId,
    pub index: IndexId,
    pub spans: &'a [Span<'a>],
    /// As of a scan.
    pub covering: Option<&'a Covering>,
    /// As of a scan: of the newest rows, those of others that are pending are waited for.
    pub lock: Option<(LockMode, WaitPolicy)>,
}

/// How far a lookup has come: in which of its ranges, and where in that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LookupPosition {
    pub span: usize,
    pub within: ScanPosition,
}

/// An entry that has been found and not been visited.
struct Entry<'s> {
    span: usize,
    key: &'s [u8],
    id: RowId,
}

impl Partition {
    /// Visits the rows of up to `entries` entries of the ranges, from `position` on: with the number of the range,
    /// range by range, in the order of the index.
    pub fn look_up(
        &mut self,
        lookup: &Lookup<'_>,
        position: &mut LookupPosition,
        entries: usize,
        access: &mut Access<'_>,
        visit: &mut dyn FnMut(usize, &ScanRow<'_>) -> Verdict,
    ) -> Result<ScanEnd, Stop> {
        if lookup.lock.is_some() {
            self.about_to_compare(access);
        } else if let ReadAt::Snapshot(time) = access.at {
            self.about_to_look(access.at);
            let fragment = self.fragments.get(&lookup.table).ok_or(Stop::StaleSchema)?;
            if time < fragment.entry_floor_of(lookup.index) {
                return Err(Stop::SnapshotTooOld);
            }
        }
        let (mut scratch, mut image) = (std::mem::take(&mut self.scratch), std::mem::take(&mut self.image));
        let covering = lookup.covering.filter(|_| lookup.lock.is_none());
        let scanner = self.scanner(lookup.table, lookup.lock, covering, access, &mut scratch, &mut image);
        let result = scanner.and_then(|mut scanner| scanner.spans(lookup, position, entries, visit));
        (self.scratch, self.image) = (scratch, image);
        if lookup.lock.is_some() {
            self.settle();
        }
        result
    }
}

impl Scanner<'_, '_> {
    fn spans(
        &mut self,
        lookup: &Lookup<'_>,
        position: &mut LookupPosition,
        entries: usize,
        visit: &mut dyn FnMut(usize, &ScanRow<'_>) -> Verdict,
    ) -> Result<ScanEnd, Stop> {
        let fragment = self.fragment;
        let index = fragment.index_position(lookup.index).map(|at| &fragment.indexes[at]).ok_or(Stop::StaleSchema)?;
        let mut left = entries.max(1);
        let LookupPosition { mut span, within } = std::mem::take(position);
        // The last entry that was visited, in the present range.
        let mut after = match &within {
            ScanPosition::AfterEntry(key, id) => Some((key.as_slice(), *id)),
            ScanPosition::BeforeEntry(key, id) => id.0.checked_sub(1).map(|before| (key.as_slice(), RowId(before))),
            ScanPosition::Start | ScanPosition::AfterRow(_) => None,
        };
        let mut from = match &within {
            ScanPosition::BeforeEntry(key, _) => Some(key.as_slice()),
            _ => None,
        };
        let mut found: SmallVec<[Entry<'_>; AHEAD]> = SmallVec::new();
        loop {
            found.clear();
            let most = left.min(AHEAD);
            while let Some(of) = lookup.spans.get(span) {
                let low = from.take().unwrap_or(of.low);
                if of.high.is_none_or(|high| low < high) {
                    let high = of.high.map_or(Bound::Unbounded, Bound::Excluded);
                    index.tree.scan(Bound::Included(low), high, false, after, &mut |key, id| {
                        found.push(Entry { span, key, id });
                        if found.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                    });
                }
                if found.len() == most {
                    break;
                }
                (span, after) = (span + 1, None);
            }
            if self.covering.is_none() {
                found.iter().for_each(|entry| fragment.rows.prefetch_location(entry.id));
                found.iter().for_each(|entry| {
                    fragment.rows.prefetch_row(entry.id);
                });
            }
            for Entry { span, key, id } in &found {
                let mut visit = |row: &ScanRow<'_>| visit(*span, row);
                match self.row(*id, Some((index, key)), &mut visit) {
                    Ok(ControlFlow::Continue(())) => {}
                    Ok(ControlFlow::Break(())) => {
                        *position = LookupPosition { span: *span, within: ScanPosition::AfterEntry(key.to_vec(), *id) };
                        return Ok(ScanEnd::More);
                    }
                    Err(stop) => {
                        *position =
                            LookupPosition { span: *span, within: ScanPosition::BeforeEntry(key.to_vec(), *id) };
                        return Err(stop);
                    }
                }
            }
            left -= found.len();
            let Some(last) = found.last().filter(|_| span < lookup.spans.len()) else { return Ok(ScanEnd::Finished) };
            if left == 0 {
                let within = ScanPosition::AfterEntry(last.key.to_vec(), last.id);
                *position = LookupPosition { span, within };
                return Ok(ScanEnd::More);
            }
            after = Some((last.key, last.id));
        }
    }
}
