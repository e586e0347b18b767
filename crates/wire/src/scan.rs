//! Scans: rows in pages, filtered and projected where they are.

use crate::WireError;
use crate::batch::{LockWish, Wanted};
use crate::filter::Filter;
use rauk_types::{IndexId, TableId, ValueRef};
use std::ops::Bound;

#[derive(Clone, Debug, PartialEq)]
pub struct Scan {
    pub table: TableId,
    pub version: u32,
    /// `None`: every row, in no order.
    pub index: Option<IndexId>,
    /// On the encoded index key, or a prefix of whole parts made into a bound by the sender.
    pub low: Bound<Vec<u8>>,
    pub high: Bound<Vec<u8>>,
    pub reverse: bool,
    /// In index order over all partitions.
    pub ordered: bool,
    pub lock: LockWish,
    /// Only this partition: a full scan in parallel has one scan for each.
    pub partition: Option<u16>,
    /// Most rows in all; `u64::MAX`: no limit.
    pub limit: u64,
    /// A page ends when it has so many rows or bytes.
    pub page_rows: u32,
    pub page_bytes: u32,
    pub filter: Option<Filter>,
    /// `Row` or `Columns`.
    pub wanted: Wanted,
    /// Begins the transaction of the header, read only, at REPEATABLE READ: for parallel scans outside of a transaction, which must see one state.
    pub begin: bool,
}

impl Scan {
    pub fn encode(&self, _out: &mut Vec<u8>) {
        todo!()
    }

    pub fn decode(_payload: &[u8]) -> Result<Scan, WireError> {
        todo!()
    }
}

/// The payload of `ScanNext` and `ScanClose`: the scan's number.
pub fn encode_number(_number: u64, _out: &mut Vec<u8>) {
    todo!()
}

pub fn decode_number(_payload: &[u8]) -> Result<u64, WireError> {
    todo!()
}

/// Writes a page at the end of a buffer.
pub struct PageBuilder {
    _private: (),
}

impl PageBuilder {
    pub fn new(_out: Vec<u8>) -> PageBuilder {
        todo!()
    }

    pub fn row(&mut self, _layout: u16, _bytes: &[u8]) {
        todo!()
    }

    pub fn columns<'v>(&mut self, _values: impl ExactSizeIterator<Item = ValueRef<'v>>) {
        todo!()
    }

    pub fn rows(&self) -> u32 {
        todo!()
    }

    pub fn bytes(&self) -> usize {
        todo!()
    }

    /// `scan` 0: this is the last page.
    pub fn finish(self, _scan: u64) -> Vec<u8> {
        todo!()
    }
}

/// A row of a page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PageRow<'a> {
    Row { layout: u16, bytes: &'a [u8] },
    Columns { count: u16, bytes: &'a [u8] },
}

pub struct PageReader<'a> {
    /// 0 when nothing follows.
    pub scan: u64,
    pub rows: u32,
    _rest: &'a [u8],
}

impl<'a> PageReader<'a> {
    pub fn parse(_payload: &'a [u8]) -> Result<PageReader<'a>, WireError> {
        todo!()
    }

    pub fn next_row(&mut self) -> Result<Option<PageRow<'a>>, WireError> {
        todo!()
    }
}
