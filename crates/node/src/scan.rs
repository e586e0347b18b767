//! Scans over all partitions that pruning leaves: unordered (partition after partition) or merged in index order.
use crate::database::TableHandle;
use crate::error::NodeError;
use crate::transaction::{Lock, Transaction};
use rauk_kernel::Verdict;
use rauk_types::{IndexId, RowView};
use std::ops::Bound;

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
    pub lock: Lock,
    /// The encoded distribution key, when it is known: only its partition is scanned.
    pub distribution: Option<Vec<u8>>,
    /// How many rows the caller expects to take; sizes the first batches.
    pub limit_hint: Option<u64>,
}

/// Rows that a scan copied out: read them with [`ScanBatch::row`].
#[derive(Debug, Default)]
pub struct ScanBatch {
    bytes: Vec<u8>,
    rows: Vec<(u32, u32, u16)>,
}

#[allow(unused_variables)]
impl ScanBatch {
    pub fn len(&self) -> usize {
        self.rows.len()
    }
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
    pub fn row<'a>(&'a self, table: &'a TableHandle, i: usize) -> RowView<'a> {
        let (start, end, layout) = self.rows[i];
        RowView::new(table.schema(), layout, &self.bytes[start as usize..end as usize])
    }
}

/// A scan that goes on in batches.
pub struct ScanCursor {}

#[allow(unused_variables)]
impl ScanCursor {
    pub fn new(table: &TableHandle, spec: ScanSpec) -> Self {
        todo!()
    }

    /// Fills `batch` with the next rows for which `filter` holds, at most `rows`; an empty batch is the end. `filter` runs while
    /// a partition is held and sees each row once; a row that does not match keeps no lock taken by this scan.
    pub async fn next_batch(
        &mut self,
        txn: &mut Transaction,
        rows: usize,
        filter: &mut (dyn FnMut(&RowView<'_>) -> bool + Send),
        batch: &mut ScanBatch,
    ) -> Result<(), NodeError> {
        todo!()
    }

    /// Visits all rows without copying them, in no particular order over partitions: for aggregates. `visit` may stop the scan (`KeepAndStop`).
    pub async fn for_each(
        self,
        txn: &mut Transaction,
        visit: &mut (dyn FnMut(&RowView<'_>) -> Verdict + Send),
    ) -> Result<(), NodeError> {
        todo!()
    }
}
