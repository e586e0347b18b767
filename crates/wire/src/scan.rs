//! Scans: rows in pages, filtered and projected where they are.
//!
//! ```text
//! Scan      table u32, version u32, flags u8, lock u8, limit u64, page rows u32, page bytes u32, wanted,
//!           [index u16], [partition u16], low, high, [filter]
//! bound     0 none | 1 included, length varint, bytes | 2 excluded, length varint, bytes
//! ScanPage  scan u64, rows u32, then each row: kind u8 (0 row, 1 columns), layout or count u16, length u32, bytes
//! ```

use crate::WireError;
use crate::batch::{LockWish, Wanted};
use crate::filter::Filter;
use crate::read::{Reader, put_prefixed};
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

const INDEX: u8 = 1;
const REVERSE: u8 = 2;
const ORDERED: u8 = 4;
const PARTITION: u8 = 8;
const FILTER: u8 = 16;
const BEGIN: u8 = 32;

impl Scan {
    pub fn encode(&self, out: &mut Vec<u8>) {
        let flags = [
            (self.index.is_some(), INDEX),
            (self.reverse, REVERSE),
            (self.ordered, ORDERED),
            (self.partition.is_some(), PARTITION),
            (self.filter.is_some(), FILTER),
            (self.begin, BEGIN),
        ];
        out.extend_from_slice(&self.table.0.to_le_bytes());
        out.extend_from_slice(&self.version.to_le_bytes());
        out.push(flags.iter().filter(|(set, _)| *set).map(|(_, flag)| flag).sum());
        out.push(self.lock as u8);
        out.extend_from_slice(&self.limit.to_le_bytes());
        out.extend_from_slice(&self.page_rows.to_le_bytes());
        out.extend_from_slice(&self.page_bytes.to_le_bytes());
        self.wanted.encode(out);
        if let Some(index) = self.index {
            out.extend_from_slice(&index.0.to_le_bytes());
        }
        if let Some(partition) = self.partition {
            out.extend_from_slice(&partition.to_le_bytes());
        }
        put_bound(&self.low, out);
        put_bound(&self.high, out);
        if let Some(filter) = &self.filter {
            filter.encode(out);
        }
    }

    pub fn decode(payload: &[u8]) -> Result<Scan, WireError> {
        let mut reader = Reader::new(payload, "scan");
        let (table, version, flags) = (TableId(reader.u32()?), reader.u32()?, reader.u8()?);
        let lock = LockWish::from_number(reader.u8()?).ok_or_else(|| reader.malformed())?;
        let (limit, page_rows, page_bytes) = (reader.u64()?, reader.u32()?, reader.u32()?);
        let wanted = Wanted::decode(&mut reader)?;
        if flags >= BEGIN << 1 || wanted == Wanted::Nothing {
            return Err(reader.malformed());
        }
        let has = |flag| flags & flag != 0;
        let index = if has(INDEX) { Some(IndexId(reader.u16()?)) } else { None };
        let partition = if has(PARTITION) { Some(reader.u16()?) } else { None };
        let (low, high) = (bound(&mut reader)?, bound(&mut reader)?);
        let filter = if has(FILTER) { Some(Filter::decode(&mut reader)?) } else { None };
        reader.end()?;
        Ok(Scan {
            table,
            version,
            index,
            low,
            high,
            reverse: has(REVERSE),
            ordered: has(ORDERED),
            lock,
            partition,
            limit,
            page_rows,
            page_bytes,
            filter,
            wanted,
            begin: has(BEGIN),
        })
    }
}

fn put_bound(bound: &Bound<Vec<u8>>, out: &mut Vec<u8>) {
    match bound {
        Bound::Unbounded => out.push(0),
        Bound::Included(key) => {
            out.push(1);
            put_prefixed(key, out);
        }
        Bound::Excluded(key) => {
            out.push(2);
            put_prefixed(key, out);
        }
    }
}

fn bound(reader: &mut Reader<'_>) -> Result<Bound<Vec<u8>>, WireError> {
    let kind = reader.u8()?;
    if kind == 0 {
        return Ok(Bound::Unbounded);
    }
    let key = reader.prefixed()?;
    match kind {
        _ if key.len() > crate::MAX_KEY => Err(reader.malformed()),
        1 => Ok(Bound::Included(key.to_vec())),
        2 => Ok(Bound::Excluded(key.to_vec())),
        _ => Err(reader.malformed()),
    }
}

/// The payload of `ScanNext` and `ScanClose` (the scan's number), and of `Cancel` (the request's).
pub fn encode_number(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&number.to_le_bytes());
}

pub fn decode_number(payload: &[u8]) -> Result<u64, WireError> {
    let mut reader = Reader::new(payload, "number");
    let number = reader.u64()?;
    reader.end()?;
    Ok(number)
}

const ROW: u8 = 0;
const COLUMNS: u8 = 1;
/// Bytes before a page's rows, and before each of them.
const PAGE_HEAD: usize = 12;
const ROW_HEAD: usize = 7;

/// Writes a page at the end of a buffer.
pub struct PageBuilder {
    out: Vec<u8>,
    start: usize,
    rows: u32,
}

impl PageBuilder {
    pub fn new(mut out: Vec<u8>) -> PageBuilder {
        let start = out.len();
        out.resize(start + PAGE_HEAD, 0);
        PageBuilder { out, start, rows: 0 }
    }

    /// Copies the row's bytes: the only copy between the row store and the socket.
    #[inline]
    pub fn row(&mut self, layout: u16, bytes: &[u8]) {
        self.out.reserve(ROW_HEAD + bytes.len());
        self.out.extend_from_slice(&row_head(ROW, layout, bytes.len()));
        self.out.extend_from_slice(bytes);
        self.rows += 1;
    }

    pub fn columns<'v>(&mut self, values: impl ExactSizeIterator<Item = ValueRef<'v>>) {
        let count = u16::try_from(values.len()).expect("a table has fewer columns");
        let at = self.out.len();
        self.out.resize(at + ROW_HEAD, 0);
        values.for_each(|value| crate::value::put_shown(value, &mut self.out));
        let head = row_head(COLUMNS, count, self.out.len() - at - ROW_HEAD);
        self.out[at..at + ROW_HEAD].copy_from_slice(&head);
        self.rows += 1;
    }

    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Bytes so far. Whoever builds ends the page before they are more than [`crate::MAX_PAYLOAD`].
    pub fn bytes(&self) -> usize {
        self.out.len() - self.start
    }

    /// `scan` 0: this is the last page.
    pub fn finish(mut self, scan: u64) -> Vec<u8> {
        let head = &mut self.out[self.start..self.start + PAGE_HEAD];
        head[..8].copy_from_slice(&scan.to_le_bytes());
        head[8..].copy_from_slice(&self.rows.to_le_bytes());
        self.out
    }
}

#[inline]
fn row_head(kind: u8, number: u16, length: usize) -> [u8; ROW_HEAD] {
    let [a, b] = number.to_le_bytes();
    let [c, d, e, f] = u32::try_from(length).expect("a payload is bounded").to_le_bytes();
    [kind, a, b, c, d, e, f]
}

/// A row of a page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PageRow<'a> {
    /// As stored, with its layout version.
    Row { layout: u16, bytes: &'a [u8] },
    /// Encoded values, read with [`crate::Values`].
    Columns { count: u16, bytes: &'a [u8] },
}

pub struct PageReader<'a> {
    /// 0 when nothing follows.
    pub scan: u64,
    /// Rows of the page; those still to be read are fewer by those that were.
    pub rows: u32,
    left: u32,
    rest: Reader<'a>,
}

impl<'a> PageReader<'a> {
    pub fn parse(payload: &'a [u8]) -> Result<PageReader<'a>, WireError> {
        let mut rest = Reader::new(payload, "page");
        let (scan, rows) = (rest.u64()?, rest.u32()?);
        if rows as usize > rest.remaining() / ROW_HEAD {
            return Err(rest.malformed());
        }
        Ok(PageReader { scan, rows, left: rows, rest })
    }

    /// `None` after the last; an error when something follows it.
    #[inline]
    pub fn next_row(&mut self) -> Result<Option<PageRow<'a>>, WireError> {
        if self.left == 0 {
            return self.rest.end().map(|()| None);
        }
        self.left -= 1;
        let [kind, a, b, c, d, e, f] = self.rest.array()?;
        let number = u16::from_le_bytes([a, b]);
        let bytes = self.rest.bytes(u32::from_le_bytes([c, d, e, f]) as usize)?;
        match kind {
            ROW => Ok(Some(PageRow::Row { layout: number, bytes })),
            COLUMNS => Ok(Some(PageRow::Columns { count: number, bytes })),
            _ => Err(self.rest.malformed()),
        }
    }
}
