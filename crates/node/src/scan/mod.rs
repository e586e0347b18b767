//! Scans over all partitions that pruning leaves: unordered (partition after partition) or merged in index order.
//!
//! A scan goes through each partition in slices of at most [`SLICE`] entries a hold, and copies the rows that pass the filter into the
//! caller's [`ScanBatch`]. Three ways, chosen by what is asked for:
//!
//! * one partition, or no order wanted: slices straight into the batch, with locks where asked for ([`plain`]);
//! * order over several partitions, no locks: each partition is read ahead into a buffer, and the buffers are merged ([`merge`]);
//! * order over several partitions, with locks: the same merge over *keys* read without locks, and each key's rows are then locked and read
//!   where the merge has come to them. So nothing is locked that the caller did not ask for, which a read-ahead with locks would do
//!   (`ORDER BY … LIMIT 1 FOR UPDATE SKIP LOCKED` is how people make queues).
//!
//! In a cluster another node may lead a partition: its slices are sent, and what was sent beyond the row at which a batch is full is kept for the next
//! ([`plain`]). A scan may ask that node to drop rows ([`pushdown`]), which then keep no lock. A row that was sent and that the visitor skips keeps its lock.
//!
//! A scan that needs no other columns than those of its index (`covering`) gives rows that have only these, made of keys wherever a partition can tell
//! that its row has nothing to add. Other nodes send whole rows.
//!
//! Plain reads draw a snapshot, since a scan takes more than one hold. At SERIALIZABLE the range is locked in each partition before its first slice, and all rows
//! that are read stay locked, also those that the visitor drops: else another transaction could change one of them into one that it would have taken.

mod batch;
mod merge;
mod plain;
pub mod pushdown;

pub use batch::ScanBatch;

use crate::database::TableHandle;
use crate::error::NodeError;
use crate::table::TableInfo;
use crate::transaction::{Lock, Transaction};
use merge::Merge;
use plain::Walk;
use pushdown::Pushdown;
use rauk_kernel::{ScanRequest, Verdict};
use rauk_types::{Covering, IndexId, RowView};
use smallvec::SmallVec;
use std::ops::Bound;
use std::sync::Arc;

/// Entries visited in one hold of a partition: some 20 µs.
const SLICE: usize = 256;

#[derive(Clone, Debug)]
pub struct ScanSpec {
    /// `None`: every row, in no order.
    pub index: Option<IndexId>,
    /// Bounds on the encoded index key (prefixes are made into bounds with `key::prefix_successor`).
    pub low: Bound<Vec<u8>>,
    pub high: Bound<Vec<u8>>,
    pub reverse: bool,
    /// Rows must come in index order over all partitions.
    pub ordered: bool,
    /// The same, of a scan that locks nothing, as long as the table has at most [`SMALL_TABLE`] rows, and equal keys in the order of the primary key;
    /// without an index in the order of the primary key, if the table keeps that order.
    pub ordered_if_small: bool,
    pub lock: Lock,
    /// The encoded distribution key, when it is known: only its partition is scanned.
    pub distribution: Option<Vec<u8>>,
    /// Only this partition, for scans of all partitions in parallel.
    pub partition: Option<u16>,
    /// Of a partitioned table, the only leaves that have rows which the caller wants: one mark for each.
    pub leaves: Option<Arc<[bool]>>,
    /// How many rows the caller expects to take; sizes the first batches.
    pub limit_hint: Option<u64>,
    /// What nodes that lead other partitions are asked to do with the rows.
    pub pushdown: Option<Arc<dyn Pushdown>>,
    /// The only columns that are read of the rows, which may be made of the index's keys then; without an index none. A
    /// scan that locks reads the rows.
    pub covering: Option<Arc<Covering>>,
    /// By one whole key of the index: rows without an entry at these keys of other indexes may be left out. The caller checks what the keys mean: scans that
    /// lock, and other nodes, leave out nothing.
    pub also: Arc<[(IndexId, Vec<u8>)]>,
    /// Positions of columns that are not read of the rows: large values of theirs are not copied.
    pub unread: Arc<[usize]>,
}

impl Default for ScanSpec {
    /// All rows, in no order and without locks.
    fn default() -> ScanSpec {
        ScanSpec {
            index: None,
            low: Bound::Unbounded,
            high: Bound::Unbounded,
            reverse: false,
            ordered: false,
            ordered_if_small: false,
            lock: None,
            distribution: None,
            partition: None,
            leaves: None,
            limit_hint: None,
            pushdown: None,
            covering: None,
            also: Arc::default(),
            unread: Arc::default(),
        }
    }
}

/// A table of so many rows is read in the order of its primary key at no cost that matters.
pub const SMALL_TABLE: u64 = 1000;

/// Bytes at which a batch is given to its caller, whatever number of rows he asked for.
const LARGE: usize = 8 << 20;

/// When a batch is full: at least one row is in it then.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    pub rows: usize,
    pub bytes: usize,
}

impl Page {
    pub fn is_full(&self, batch: &ScanBatch) -> bool {
        batch.len() >= self.rows || !batch.is_empty() && batch.bytes() >= self.bytes
    }
}

/// A scan that goes on in batches.
pub struct ScanCursor {
    /// As the caller knows it.
    table: Arc<TableInfo>,
    /// Those that have rows: itself, or leaves of a partitioned table.
    tables: SmallVec<[Arc<TableInfo>; 1]>,
    spec: ScanSpec,
    state: State,
}

#[expect(clippy::large_enum_variant, reason = "most scans are walks, and a cursor is not moved about")]
enum State {
    New,
    Walk(Walk),
    Merge(Box<Merge>),
}

impl ScanCursor {
    pub fn new(table: &TableHandle, spec: ScanSpec) -> Self {
        let tables = table.tables_of(spec.leaves.as_deref()).cloned().collect();
        ScanCursor { table: table.info().clone(), tables, spec, state: State::New }
    }

    pub(crate) fn over(table: Arc<TableInfo>, spec: ScanSpec) -> Self {
        Self::new(&TableHandle::new(table), spec)
    }

    /// The lock that was asked for.
    pub fn lock(&self) -> Lock {
        self.spec.lock
    }

    /// Fills `batch` with the next rows for which `filter` holds, at most `rows`; an empty batch is the end. `filter` runs while
    /// a partition is held and sees each row once; a row that does not match keeps no lock taken by this scan, but at SERIALIZABLE.
    pub async fn next_batch(
        &mut self,
        txn: &mut Transaction,
        rows: usize,
        filter: &mut (dyn FnMut(&RowView<'_>) -> bool + Send),
        batch: &mut ScanBatch,
    ) -> Result<(), NodeError> {
        self.next_page(txn, Page { rows, bytes: LARGE }, filter, batch).await
    }

    /// The same; ends as well with the row that reaches `bytes`. A page that reaches neither is the last.
    pub async fn next_page(
        &mut self,
        txn: &mut Transaction,
        page: Page,
        filter: &mut (dyn FnMut(&RowView<'_>) -> bool + Send),
        batch: &mut ScanBatch,
    ) -> Result<(), NodeError> {
        batch.clear();
        self.begin(txn)?;
        match &mut self.state {
            State::New => unreachable!("begun above"),
            State::Walk(walk) => {
                walk.run(txn, &self.tables, page.rows, &mut |row, layout| {
                    if !filter(row) {
                        return Verdict::Skip;
                    }
                    batch.push_without(layout, row, &self.spec.unread);
                    if page.is_full(batch) { Verdict::KeepAndStop } else { Verdict::Keep }
                })
                .await
            }
            State::Merge(merge) => merge.fill(txn, &self.tables, page, filter, batch).await,
        }
    }

    /// Visits all rows without copying them, in no particular order over partitions but that of a small table: for aggregates. `visit` may stop the scan (`KeepAndStop`).
    pub async fn for_each(
        mut self,
        txn: &mut Transaction,
        visit: &mut (dyn FnMut(&RowView<'_>) -> Verdict + Send),
    ) -> Result<(), NodeError> {
        self.spec.ordered = false;
        self.begin(txn)?;
        match &mut self.state {
            State::Walk(walk) => walk.run(txn, &self.tables, usize::MAX, &mut |row, _| visit(row)).await,
            State::Merge(merge) => {
                let page = Page { rows: SMALL_TABLE as usize, bytes: LARGE };
                let mut batch = ScanBatch::default();
                let table = TableHandle::new(self.table.clone());
                loop {
                    batch.clear();
                    merge.fill(txn, &self.tables, page, &mut |_| true, &mut batch).await?;
                    if batch.is_empty() {
                        return Ok(());
                    }
                    for number in 0..batch.len() {
                        if visit(&batch.row(&table, number)) == Verdict::KeepAndStop {
                            return Ok(());
                        }
                    }
                }
            }
            State::New => unreachable!("begun above"),
        }
    }

    /// Visits the next rows without copying them, until the visitor stops (`KeepAndStop`; the next call goes on behind that row) or the scan is at its end: `false`. Only of scans
    /// that need no order over partitions. `rows`: how many rows the visitor takes before it stops, at most.
    pub async fn visit_next(
        &mut self,
        txn: &mut Transaction,
        rows: usize,
        visit: &mut (dyn FnMut(&RowView<'_>) -> Verdict + Send),
    ) -> Result<bool, NodeError> {
        assert!(!self.spec.ordered, "rows in an order are read in batches");
        self.begin(txn)?;
        match &mut self.state {
            State::Walk(walk) => {
                walk.run(txn, &self.tables, rows, &mut |row, _| visit(row)).await?;
                Ok(!walk.is_finished())
            }
            State::Merge(merge) => {
                let table = TableHandle::new(self.table.clone());
                let mut batch = ScanBatch::default();
                merge.fill(txn, &self.tables, Page { rows, bytes: LARGE }, &mut |_| true, &mut batch).await?;
                for number in 0..batch.len() {
                    // All of the page are taken over: the merge is behind them.
                    visit(&batch.row(&table, number));
                }
                Ok(!batch.is_empty())
            }
            State::New => unreachable!("begun above"),
        }
    }

    fn begin(&mut self, txn: &Transaction) -> Result<(), NodeError> {
        txn.check_running()?;
        if !matches!(self.state, State::New) {
            return Ok(());
        }
        let needs_key = self.spec.covering.as_ref().is_some_and(|covering| covering.needs_key());
        assert!(!needs_key || self.spec.index.is_some(), "rows are made of an index's keys");
        if !self.spec.also.is_empty() {
            assert!(
                self.spec.index.is_some() && !self.spec.reverse && self.spec.low == self.spec.high,
                "one key upward"
            );
        }
        let lock = txn.effective_lock(self.spec.lock);
        let partitions = match (&self.spec.distribution, self.spec.partition) {
            (Some(distribution), _) => {
                let partition = txn.node.partition_of(self.table.route.bucket_of_distribution(distribution));
                partition..partition + 1
            }
            (None, Some(partition)) => partition..partition + 1,
            (None, None) => txn.node.partitions_of(&self.table),
        };
        let small = self.spec.ordered_if_small && lock.is_none() && txn.node.are_small(self.tables.iter());
        let primary = || self.table.schema.indexes.first().filter(|index| !index.hash_only).map(|index| index.id);
        let index = self.spec.index.or_else(|| if small { primary() } else { None });
        let request = ScanRequest {
            table: self.table.schema.id,
            index,
            low: self.spec.low.clone(),
            high: self.spec.high.clone(),
            reverse: self.spec.reverse,
            lock,
            covering: self.spec.covering.take(),
            also: self.spec.also.clone(),
        };
        let secondary = index.is_some() && index != self.table.schema.indexes.first().map(|primary| primary.id);
        let by_primary = small && secondary && !self.spec.reverse && request.covering.is_none() && primary().is_some();
        let merged =
            by_primary || ((self.spec.ordered || small) && index.is_some() && partitions.len() * self.tables.len() > 1);
        // Sums have no order, and keep no lock on the rows that they are of; at SERIALIZABLE all that is read stays locked.
        let keeps = lock.is_some() && txn.locks_ranges();
        let fits = |pushdown: &Arc<dyn Pushdown>| match pushdown.only_drops() {
            true => !keeps,
            false => !merged && lock.is_none(),
        };
        let pushdown = self.spec.pushdown.clone().filter(fits);
        self.state = match merged {
            true => {
                let (hint, unread) = (self.spec.limit_hint, self.spec.unread.clone());
                State::Merge(Box::new(Merge::new(
                    request,
                    partitions,
                    self.tables.len(),
                    hint,
                    pushdown,
                    by_primary,
                    unread,
                )))
            }
            false => State::Walk(Walk::new(request, partitions, self.tables.len(), pushdown)),
        };
        Ok(())
    }
}
