//! Partition after partition, slice after slice.
//!
//! Most lookups by a secondary index find a few rows in each partition. So a slice that locks nothing is taken at once
//! where the partition is idle and this node is alone ([`Transaction::slice_now`]): a plain call, no future. What is in
//! the way there is left to a call that may wait, at the same place.

use super::SLICE;
use super::pushdown::Pushdown;
use crate::error::NodeError;
use crate::ops::drive::Within;
use crate::ops::operation::{Done, Op, Scan, Seen};
use crate::ops::wire::Reader;
use crate::table::TableInfo;
use crate::transaction::call::explain;
use crate::transaction::{Transaction, View as Sees, not_shown};
use rauk_kernel::{Partition, ScanEnd, ScanPosition, ScanRequest, ScanRow, Stop, Verdict};
use rauk_types::{IndexId, RowView};
use std::borrow::Cow;
use std::ops::{Bound, Range};
use std::sync::Arc;

/// A scan that visits one partition at a time.
pub struct Walk {
    request: ScanRequest,
    /// What is left of the present table.
    partitions: Range<u16>,
    /// Of each table.
    all: Range<u16>,
    /// Tables that are left, the present one first.
    tables: Range<usize>,
    place: Place,
    range_locked: bool,
    pushdown: Option<Arc<dyn Pushdown>>,
}

/// Where a scan is in a partition.
#[derive(Default)]
pub struct Place {
    position: ScanPosition,
    /// In what it began: where alone the position means something.
    within: Option<Within>,
    /// Rows that another node has sent and that have not been visited.
    ahead: Reader,
    /// Behind those nothing is left.
    finished: bool,
    /// The node that leads the partition does not read programs.
    refused: bool,
}

/// How much is visited in one call.
#[derive(Clone, Copy)]
pub struct Slice<'a> {
    /// Entries, in one hold.
    pub entries: usize,
    /// The most rows that the visitor will want before it stops the scan: another node sends no more at a time.
    pub rows: usize,
    /// What another node is asked to do with them.
    pub pushdown: Option<&'a Arc<dyn Pushdown>>,
}

/// Rows that another node sends at a time, at most; the first slices of a locking scan are smaller.
const FAR_ROWS: usize = 4096;
const FAR_LOCKED_ROWS: usize = 256;

/// By which index rows are found, for the counts. All rows in the order of the primary key are found by none.
fn found_by(request: &ScanRequest) -> Option<IndexId> {
    let all = matches!((&request.low, &request.high), (Bound::Unbounded, Bound::Unbounded));
    request.index.filter(|index| !(all && *index == IndexId::PRIMARY))
}

impl Walk {
    /// Of so many tables.
    pub fn new(
        request: ScanRequest,
        partitions: Range<u16>,
        tables: usize,
        pushdown: Option<Arc<dyn Pushdown>>,
    ) -> Walk {
        let (all, tables) = (partitions.clone(), 0..tables);
        Walk { request, partitions, all, tables, place: Place::default(), range_locked: false, pushdown }
    }

    /// Whether nothing is left.
    pub fn is_finished(&self) -> bool {
        self.tables.is_empty()
    }

    /// Visits rows until the visitor stops or nothing is left; goes on there when called again. `wanted`: how many rows the visitor keeps at most.
    pub async fn run(
        &mut self,
        txn: &mut Transaction,
        tables: &[Arc<TableInfo>],
        wanted: usize,
        visit: &mut (dyn FnMut(&RowView<'_>, u16) -> Verdict + Send),
    ) -> Result<(), NodeError> {
        let locks = self.request.lock.is_some();
        let (mut kept, mut skipped) = (0, 0);
        while !self.tables.is_empty() {
            let table = &*tables[self.tables.start];
            if self.partitions.is_empty() {
                self.tables.start += 1;
                self.partitions = self.all.clone();
                continue;
            }
            self.request.table = table.schema.id;
            let partition = self.partitions.start;
            if !self.range_locked {
                txn.lock_scanned_range(table, partition, &self.request).await?;
                self.range_locked = true;
            }
            let mut stopped = false;
            // Locked ahead is only what may be wanted, and as much as was skipped: so a scan that skips much is not slow for it.
            let rows = match locks {
                true => (wanted.saturating_sub(kept).max(1).saturating_add(skipped)).min(FAR_LOCKED_ROWS),
                false => FAR_ROWS,
            };
            let slice = Slice { entries: SLICE, rows, pushdown: self.pushdown.as_ref() };
            let mut show = |row: &ScanRow<'_>| {
                let verdict = visit(&row.row, row.layout);
                stopped |= matches!(verdict, Verdict::KeepAndStop | Verdict::SkipAndStop);
                match verdict.keeps() {
                    false => skipped += 1,
                    true => kept += 1,
                }
                verdict
            };
            let end = match txn.slice_now(table, partition, &self.request, &mut self.place.position, &mut show) {
                Some((end, weight)) => {
                    txn.worked(weight).await;
                    end?
                }
                None => txn.scan_slice(table, partition, &self.request, &mut self.place, slice, &mut show).await?,
            };
            if end == ScanEnd::Finished {
                self.partitions.start += 1;
                if self.partitions.is_empty() {
                    self.tables.start += 1;
                    self.partitions = self.all.clone();
                }
                self.place = Place::default();
                self.range_locked = false;
            }
            if stopped {
                return Ok(());
            }
        }
        Ok(())
    }
}

impl Transaction {
    /// A slice that locks nothing, of a partition that is idle, on a node that is alone: with its weight. `None`: the
    /// rest of it takes a call that may wait.
    fn slice_now(
        &mut self,
        table: &TableInfo,
        partition: u16,
        request: &ScanRequest,
        position: &mut ScanPosition,
        visit: &mut (impl FnMut(&ScanRow<'_>) -> Verdict + Send),
    ) -> Option<(Result<ScanEnd, NodeError>, u32)> {
        let elsewhere = table.own.is_some() || self.node.cluster().is_some();
        if elsewhere || request.lock.is_some() || self.needs_snapshot(false) {
            return None;
        }
        if let Err(error) = self.check_killed() {
            return Some((Err(error), 0));
        }
        let view = match self.plain_view(table) {
            Ok(view) => view,
            Err(error) => return Some((Err(error), 0)),
        };
        let mut access = self.access(view);
        let mut rows = 0;
        let visit = &mut |row: &ScanRow<'_>| {
            rows += 1;
            visit(row)
        };
        let held = &self.node.partitions[usize::from(partition)];
        let scan =
            |p: &mut Partition| (!self.is_undone_in(p)).then(|| p.scan(request, position, SLICE, &mut access, visit));
        let result = held.try_with(scan).ok()??;
        let observed = access.observed;
        self.observed = self.observed.max(observed);
        self.count_reads(table, found_by(request), rows.into());
        // As much as a point read for each few rows.
        let weight = 1 + rows / 16;
        match result {
            Ok(end) => Some((Ok(end), weight)),
            Err(Stop::Committing | Stop::Prepared(_)) => None,
            Err(stop) => Some((Err(explain(stop, table)), weight)),
        }
    }

    /// One slice of a scan in one partition, with locks if the request has them.
    pub(super) async fn scan_slice(
        &mut self,
        table: &TableInfo,
        partition: u16,
        request: &ScanRequest,
        place: &mut Place,
        slice: Slice<'_>,
        visit: &mut (dyn FnMut(&ScanRow<'_>) -> Verdict + Send),
    ) -> Result<ScanEnd, NodeError> {
        self.check_killed()?;
        let view = match request.lock {
            None => self.read_view(table, false).await?,
            Some(_) => {
                self.ensure_txn();
                self.touch(table, partition);
                self.newest_view(self.statement)
            }
        };
        // At SERIALIZABLE what was read is locked, also what the visitor drops: a row that others could change into one that it wants.
        let keeps = request.lock.is_some() && self.locks_ranges();
        let mut rows = 0;
        let show = &mut |seen: Seen<'_, '_>| match seen {
            Seen::Scanned(row) => {
                rows += 1;
                match visit(row) {
                    Verdict::Skip if keeps => Verdict::Keep,
                    Verdict::SkipAndStop if keeps => Verdict::KeepAndStop,
                    verdict => verdict,
                }
            }
            _ => unreachable!("a scan shows what it has scanned"),
        };
        let result = self.scan_within(table, partition, view, request, place, slice, show).await;
        self.count_reads(table, found_by(request), rows);
        result
    }

    /// The keys that a locking scan may find rows at.
    pub(super) async fn scan_keys(
        &mut self,
        table: &TableInfo,
        partition: u16,
        request: &ScanRequest,
        place: &mut Place,
        rows: usize,
        visit: &mut (dyn FnMut(&[u8]) + Send),
    ) -> Result<ScanEnd, NodeError> {
        self.check_killed()?;
        let view = self.newest_view(self.statement);
        let position = std::mem::take(&mut place.position);
        let (slice, most) = (as_u32(rows), as_u32(rows));
        let mut op = Op::ScanKeys(Scan {
            request: Cow::Borrowed(request),
            position,
            slice,
            most,
            ahead: Reader::default(),
            finished: false,
            program: &[],
            pushdown: None,
        });
        let show = &mut |seen: Seen<'_, '_>| {
            if let Seen::Key(key) = seen {
                visit(key);
            }
            Verdict::Keep
        };
        let result = self.call_within(table, partition, view, &mut place.within, &mut op, show).await;
        if let Op::ScanKeys(scan) = op {
            place.position = scan.position;
        }
        result.map(scan_end)
    }

    #[allow(clippy::too_many_arguments)] // the parts of one call
    async fn scan_within(
        &mut self,
        table: &TableInfo,
        partition: u16,
        view: Sees,
        request: &ScanRequest,
        place: &mut Place,
        slice: Slice<'_>,
        visit: &mut (impl FnMut(Seen<'_, '_>) -> Verdict + Send),
    ) -> Result<ScanEnd, NodeError> {
        let mut scan = Scan {
            request: Cow::Borrowed(request),
            position: std::mem::take(&mut place.position),
            slice: as_u32(slice.entries),
            most: as_u32(slice.rows),
            ahead: std::mem::take(&mut place.ahead),
            finished: place.finished,
            program: &[],
            pushdown: slice.pushdown.filter(|pushdown| !place.refused && !pushdown.is_full()),
        };
        let (result, scan) = if scan.ahead.is_empty() {
            let mut op = Op::Scan(scan);
            let result = self.call_within(table, partition, view, &mut place.within, &mut op, visit).await;
            let Op::Scan(scan) = op else { unreachable!("it is a scan") };
            (result.map(scan_end), scan)
        } else {
            (scan.show_ahead(table, visit).map_err(|shown| not_shown(shown, table)), scan)
        };
        place.refused = slice.pushdown.is_some() && scan.pushdown.is_none();
        let Scan { position, ahead, finished, .. } = scan;
        *place = Place { position, ahead, finished, ..std::mem::take(place) };
        // What has been sent to the end may still be shown.
        result.map(|end| if place.ahead.is_empty() { end } else { ScanEnd::More })
    }

    /// SERIALIZABLE: keeps others from changing what lies in the request's range.
    pub(super) async fn lock_scanned_range(
        &mut self,
        table: &TableInfo,
        partition: u16,
        request: &ScanRequest,
    ) -> Result<(), NodeError> {
        if request.lock.is_none() || !self.locks_ranges() {
            return Ok(());
        }
        self.ensure_txn();
        self.touch(table, partition);
        let view = self.newest_view(self.statement);
        let (index, low, high) = match request.index {
            Some(index) => (index, as_slice(&request.low), as_slice(&request.high)),
            None => (IndexId::PRIMARY, Bound::Unbounded, Bound::Unbounded),
        };
        let mut op = Op::LockRange { index, low, high };
        self.call(table, partition, view, &mut op, &mut |_| Verdict::Keep).await.map(|_| ())
    }
}

fn scan_end(done: Done) -> ScanEnd {
    match done {
        Done::Scanned(end) => end,
        other => unreachable!("a scan ends with {other:?}"),
    }
}

fn as_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}
