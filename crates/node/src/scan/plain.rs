//! Partition after partition, slice after slice.

use super::SLICE;
use crate::error::NodeError;
use crate::executor::Class;
use crate::table::TableInfo;
use crate::transaction::Transaction;
use rauk_kernel::{ScanEnd, ScanPosition, ScanRequest, ScanRow, Verdict};
use rauk_types::{IndexId, RowView};
use std::ops::{Bound, Range};

/// A scan that visits one partition at a time.
pub struct Walk {
    request: ScanRequest,
    partitions: Range<u16>,
    position: ScanPosition,
    range_locked: bool,
}

impl Walk {
    pub fn new(request: ScanRequest, partitions: Range<u16>) -> Walk {
        Walk { request, partitions, position: ScanPosition::Start, range_locked: false }
    }

    /// Visits rows until the visitor stops or nothing is left; goes on there when called again.
    pub async fn run(
        &mut self,
        txn: &mut Transaction,
        table: &TableInfo,
        visit: &mut (dyn FnMut(&RowView<'_>, u16) -> Verdict + Send),
    ) -> Result<(), NodeError> {
        while !self.partitions.is_empty() {
            let partition = self.partitions.start;
            if !self.range_locked {
                txn.lock_scanned_range(table, partition, &self.request).await?;
                self.range_locked = true;
            }
            let mut stopped = false;
            let end = txn
                .scan_slice(table, partition, &self.request, &mut self.position, SLICE, &mut |row| {
                    let verdict = visit(&row.row, row.layout);
                    stopped |= verdict == Verdict::KeepAndStop;
                    verdict
                })
                .await?;
            if end == ScanEnd::Finished {
                self.partitions.start += 1;
                self.position = ScanPosition::Start;
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
    /// One slice of a scan in one partition, with locks if the request has them.
    pub(super) async fn scan_slice(
        &mut self,
        table: &TableInfo,
        partition: u16,
        request: &ScanRequest,
        position: &mut ScanPosition,
        slice: usize,
        visit: &mut (dyn FnMut(&ScanRow<'_>) -> Verdict + Send),
    ) -> Result<ScanEnd, NodeError> {
        self.check_killed()?;
        let view = match request.lock {
            None => self.read_view(false),
            Some(_) => {
                self.ensure_txn();
                self.touch(partition);
                self.newest_view(self.statement)
            }
        };
        self.call(table, partition, Class::Scan, view, |p, access| p.scan(request, position, slice, access, visit))
            .await
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
        self.touch(partition);
        let view = self.newest_view(self.statement);
        self.call(table, partition, Class::Scan, view, |p, access| {
            let txn = access.txn.expect("known");
            let (index, low, high) = match request.index {
                Some(index) => (index, as_slice(&request.low), as_slice(&request.high)),
                None => (IndexId::PRIMARY, Bound::Unbounded, Bound::Unbounded),
            };
            p.lock_range(txn, request.table, index, low, high)
        })
        .await
    }
}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}
