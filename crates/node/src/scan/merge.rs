//! Several partitions in the order of one index.
//!
//! Each partition has a buffer of what comes next in it. The smallest head (the largest, in a reverse scan) is the next of all. Buffers begin
//! small (the caller may want few rows) and double up to [`SLICE`].
//!
//! Rows of a small table with equal keys come in the order of the primary key, which InnoDB's secondary indexes end
//! with: a buffer then takes all that its partition has, up to a bound, keys are lengthened by the row's primary key,
//! and buffers are sorted.
//!
//! With locks, buffers hold keys only. When the merge comes to a key, that key's rows in its partition are locked and read by a scan of just that key; what came or
//! went since the buffer was filled is then seen as it is.

use super::plain::{Place, Slice};
use super::pushdown::Pushdown;
use super::{Page, SLICE, SMALL_TABLE, ScanBatch};
use crate::error::NodeError;
use crate::table::TableInfo;
use crate::transaction::Transaction;
use rauk_kernel::{ScanEnd, ScanRequest, Verdict};
use rauk_types::RowView;
use std::cmp::Ordering;
use std::ops::{Bound, Range};
use std::sync::Arc;

/// A slice's first size where the caller gave no hint.
const FIRST_ROWS: usize = 32;
/// Rows of one partition that are sorted at a time: the count of a table's rows lags behind, so that it may not be
/// small any more.
const MOST_SORTED: usize = 4 * SMALL_TABLE as usize;

pub struct Merge {
    request: ScanRequest,
    sources: Vec<Source>,
    first_rows: usize,
    pushdown: Option<Arc<dyn Pushdown>>,
    /// As in the scan's specification.
    unread: Arc<[usize]>,
    /// Equal keys are ordered by the primary key.
    by_primary: bool,
    /// With locks: the key that is being read, where, and how far.
    current: Option<(usize, ScanRequest, Place)>,
}

/// What comes next in one partition of one table.
struct Source {
    /// Its number among the tables.
    table: usize,
    partition: u16,
    place: Place,
    finished: bool,
    range_locked: bool,
    /// How many rows the next filling takes.
    rows: usize,
    keys: Vec<u8>,
    bytes: Vec<u8>,
    /// (end of the key, end of the row, layout), in order.
    items: Vec<(usize, usize, u16)>,
    next: usize,
    /// With locks: the last key that was read; its other entries need no reading.
    done: Option<Vec<u8>>,
}

impl Source {
    fn skip_done(&mut self) {
        while self.done.is_some() && self.key() == self.done.as_deref() {
            self.next += 1;
        }
    }

    fn key(&self) -> Option<&[u8]> {
        let (end, _, _) = *self.items.get(self.next)?;
        let start = if self.next == 0 { 0 } else { self.items[self.next - 1].0 };
        Some(&self.keys[start..end])
    }

    /// Puts a buffer in the order of its keys.
    fn sort(&mut self) {
        let (mut key, mut row) = (0, 0);
        let mut parts: Vec<(Range<usize>, Range<usize>, u16)> = Vec::with_capacity(self.items.len());
        for &(key_end, row_end, layout) in &self.items {
            parts.push((key..key_end, row..row_end, layout));
            (key, row) = (key_end, row_end);
        }
        parts.sort_by(|(a, ..), (b, ..)| self.keys[a.clone()].cmp(&self.keys[b.clone()]));
        let (mut keys, mut bytes) = (Vec::with_capacity(self.keys.len()), Vec::with_capacity(self.bytes.len()));
        self.items.clear();
        for (key, row, layout) in parts {
            keys.extend_from_slice(&self.keys[key]);
            bytes.extend_from_slice(&self.bytes[row]);
            self.items.push((keys.len(), bytes.len(), layout));
        }
        (self.keys, self.bytes) = (keys, bytes);
    }

    fn row(&self) -> (u16, &[u8]) {
        let (_, end, layout) = self.items[self.next];
        let start = if self.next == 0 { 0 } else { self.items[self.next - 1].1 };
        (layout, &self.bytes[start..end])
    }

    fn needs_filling(&self) -> bool {
        self.next >= self.items.len() && !self.finished
    }
}

impl Merge {
    pub fn new(
        request: ScanRequest,
        partitions: Range<u16>,
        tables: usize,
        limit_hint: Option<u64>,
        pushdown: Option<Arc<dyn Pushdown>>,
        by_primary: bool,
        unread: Arc<[usize]>,
    ) -> Merge {
        assert!(
            !by_primary || (request.lock.is_none() && !request.reverse && request.covering.is_none()),
            "a plain scan upward"
        );
        // Rows are spread evenly: of the first `n`, each partition has about its share.
        let share = |limit: u64| (limit as usize).min(SLICE) / (partitions.len() * tables.max(1)) * 5 / 4 + 2;
        let first_rows = limit_hint.map_or(FIRST_ROWS, |limit| share(limit).clamp(1, SLICE));
        let source = |(table, partition)| Source {
            table,
            partition,
            place: Place::default(),
            finished: false,
            range_locked: false,
            rows: first_rows,
            keys: Vec::new(),
            bytes: Vec::new(),
            items: Vec::new(),
            next: 0,
            done: None,
        };
        Merge {
            request,
            sources: (0..tables).flat_map(|table| partitions.clone().map(move |p| (table, p))).map(source).collect(),
            first_rows,
            pushdown,
            by_primary,
            unread,
            current: None,
        }
    }

    pub async fn fill(
        &mut self,
        txn: &mut Transaction,
        tables: &[Arc<TableInfo>],
        page: Page,
        filter: &mut (dyn FnMut(&RowView<'_>) -> bool + Send),
        batch: &mut ScanBatch,
    ) -> Result<(), NodeError> {
        while !page.is_full(batch) {
            if self.current.is_some() {
                self.read_current(txn, tables, page, filter, batch).await?;
                continue;
            }
            for i in 0..self.sources.len() {
                while self.sources[i].needs_filling() {
                    self.fill_source(i, txn, &tables[self.sources[i].table], filter).await?;
                    self.sources[i].skip_done();
                }
            }
            let Some(next) = self.smallest() else { return Ok(()) };
            let source = &mut self.sources[next];
            if self.request.lock.is_none() {
                let (layout, row) = source.row();
                batch.push_whole(layout, row);
                source.next += 1;
            } else {
                let key = source.key().expect("it has a head").to_vec();
                source.done = Some(key.clone());
                source.skip_done();
                let (low, high) = (Bound::Included(key.clone()), Bound::Included(key));
                let table = tables[source.table].schema.id;
                let request = ScanRequest { table, low, high, ..self.request.clone() };
                self.current = Some((next, request, Place::default()));
            }
        }
        Ok(())
    }

    /// The source with the head that comes first.
    fn smallest(&self) -> Option<usize> {
        let heads = self.sources.iter().enumerate().filter_map(|(i, s)| Some((i, s.key()?)));
        let first = |a: &(usize, &[u8]), b: &(usize, &[u8])| match self.request.reverse {
            false => a.1.cmp(b.1),
            true => b.1.cmp(a.1),
        };
        heads.min_by(|a, b| first(a, b).then(Ordering::Equal)).map(|(i, _)| i)
    }

    async fn fill_source(
        &mut self,
        i: usize,
        txn: &mut Transaction,
        table: &TableInfo,
        filter: &mut (dyn FnMut(&RowView<'_>) -> bool + Send),
    ) -> Result<(), NodeError> {
        let source = &mut self.sources[i];
        if !source.range_locked {
            txn.lock_scanned_range(table, source.partition, &self.request).await?;
            source.range_locked = true;
        }
        source.keys.clear();
        source.bytes.clear();
        source.items.clear();
        source.next = 0;
        let keys_only = self.request.lock.is_some();
        let plain = ScanRequest { table: table.schema.id, lock: None, ..self.request.clone() };
        let Source { partition, place, keys, bytes, items, rows, finished, .. } = source;
        let (by_primary, unread) = (self.by_primary, &self.unread);
        let most = if by_primary { MOST_SORTED } else { *rows };
        while (items.is_empty() || (by_primary && items.len() < most)) && !*finished {
            let end = if keys_only {
                // Others' pending keys too: when their rows are locked, they may have become what is there.
                let visit = &mut |key: &[u8]| {
                    keys.extend_from_slice(key);
                    items.push((keys.len(), 0, 0));
                };
                txn.scan_keys(table, *partition, &plain, place, *rows, visit).await?
            } else {
                let visit = &mut |row: &rauk_kernel::ScanRow<'_>| {
                    if !filter(&row.row) {
                        return Verdict::Skip;
                    }
                    keys.extend_from_slice(row.key);
                    if by_primary {
                        table.primary.encode_row(&row.row, keys);
                    }
                    row.row.append_without(unread, bytes);
                    items.push((keys.len(), bytes.len(), row.layout));
                    if items.len() >= most { Verdict::KeepAndStop } else { Verdict::Keep }
                };
                let slice = Slice { entries: SLICE, rows: most.min(SLICE), pushdown: self.pushdown.as_ref() };
                txn.scan_slice(table, *partition, &plain, place, slice, visit).await?
            };
            *finished = end == ScanEnd::Finished;
        }
        if by_primary {
            source.sort();
            return Ok(());
        }
        *rows = (*rows * 2).min(SLICE).max(self.first_rows);
        Ok(())
    }

    /// Locks and reads the rows of the current key.
    async fn read_current(
        &mut self,
        txn: &mut Transaction,
        tables: &[Arc<TableInfo>],
        page: Page,
        filter: &mut (dyn FnMut(&RowView<'_>) -> bool + Send),
        batch: &mut ScanBatch,
    ) -> Result<(), NodeError> {
        let Some((i, request, place)) = &mut self.current else { return Ok(()) };
        let Source { table, partition, .. } = self.sources[*i];
        let table = &*tables[table];
        let mut stopped = false;
        let rows = page.rows.saturating_sub(batch.len()).max(1);
        let slice = Slice { entries: SLICE, rows, pushdown: self.pushdown.as_ref() };
        let end = txn
            .scan_slice(table, partition, request, place, slice, &mut |row| {
                if !filter(&row.row) {
                    return Verdict::Skip;
                }
                batch.push(row.layout, &row.row);
                stopped = page.is_full(batch);
                if stopped { Verdict::KeepAndStop } else { Verdict::Keep }
            })
            .await?;
        if end == ScanEnd::Finished {
            self.current = None;
        }
        Ok(())
    }
}
