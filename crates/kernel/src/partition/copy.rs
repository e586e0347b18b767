//! Rows in slices, for a replica that is to have a copy.
//!
//! The primary reads a slice at a time, between other work; the cursor is a table and a row id, and survives whatever happens between two slices. A slice has the
//! newest committed versions, as a checkpoint has ([`super::restore`]): what is pending goes with the table of transactions, what is committed or
//! deleted after the copy began comes with the stream, and taking a slice in ([`Partition::restore_slice`]) never replaces what came that way.
//!
//! ```text
//! slice  = version (2): u8 | partition: u16 | row …                             (little-endian)
//! row    = table: u32 | layout: u16 | time: u64 | length: u32 | bytes …       (little-endian)
//! cursor = table: u32 | row id: u32                                           (big-endian)
//! ```
//! A slice names the partition that it was read from, since a copy may be of several. One of version 1 does not: it is
//! of a copy of one partition, and was written by an older program.
//!
//! Slices and cursors come from other nodes: whatever the bytes are, reading them ends in rows or in an error.

use super::{Partition, Stop};
use crate::row_store::RowId;
use rauk_types::{PartitionId, TableId, Timestamp};
use std::fmt;

const VERSION: u8 = 2;
const WITHOUT_PARTITION: u8 = 1;
const ROW_HEADER: usize = 18;

/// Where a copy goes on. The default is the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CopyCursor {
    table: u32,
    row: u32,
}

impl CopyCursor {
    pub fn encode(self) -> [u8; 8] {
        (u64::from(self.table) << 32 | u64::from(self.row)).to_be_bytes()
    }

    /// Of no bytes: the beginning. `None`: not a cursor.
    pub fn decode(bytes: &[u8]) -> Option<CopyCursor> {
        match bytes {
            [] => Some(CopyCursor::default()),
            _ => {
                let number = u64::from_be_bytes(bytes.try_into().ok()?);
                Some(CopyCursor { table: (number >> 32) as u32, row: number as u32 })
            }
        }
    }
}

/// A row of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceRow<'a> {
    pub table: TableId,
    pub layout: u16,
    pub time: Timestamp,
    pub row: &'a [u8],
}

/// What is wrong with a slice. Rows before it have been given out, or taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceError {
    /// Written by a newer program, or not a slice.
    Version(u8),
    /// At this byte no row begins that ends within the slice.
    Malformed { offset: usize },
    /// Bytes that are no row of their layout.
    NoRow { table: TableId },
    /// The table, or this layout of it, is not known here.
    StaleSchema { table: TableId, layout: u16 },
}

impl fmt::Display for SliceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SliceError::Version(version) => {
                write!(f, "a slice of rows in format {version}, and this program knows {VERSION}")
            }
            SliceError::Malformed { offset } => write!(f, "malformed slice of rows at byte {offset}"),
            SliceError::NoRow { table } => write!(f, "a slice has a malformed row of table {}", table.0),
            SliceError::StaleSchema { table, layout } => {
                write!(f, "a slice has a row of table {} in layout {layout}, which is not known here", table.0)
            }
        }
    }
}

impl std::error::Error for SliceError {}

/// The partition that a slice was read from; `None`: the slice does not say.
pub fn slice_partition(slice: &[u8]) -> Option<PartitionId> {
    match slice {
        [VERSION, low, high, ..] => Some(PartitionId(u16::from_le_bytes([*low, *high]))),
        _ => None,
    }
}

/// The rows of a slice; ends after the first error.
pub fn slice_rows(slice: &[u8]) -> SliceRows<'_> {
    let wrong = |wrong| SliceRows { offset: 0, rest: &[], wrong: Some(wrong) };
    match slice {
        [VERSION, _, _, rest @ ..] => SliceRows { offset: 3, rest, wrong: None },
        [WITHOUT_PARTITION, rest @ ..] => SliceRows { offset: 1, rest, wrong: None },
        [] | [VERSION, ..] => wrong(SliceError::Malformed { offset: 0 }),
        [version, ..] => wrong(SliceError::Version(*version)),
    }
}

#[derive(Clone, Debug)]
pub struct SliceRows<'a> {
    offset: usize,
    rest: &'a [u8],
    wrong: Option<SliceError>,
}

impl<'a> Iterator for SliceRows<'a> {
    type Item = Result<SliceRow<'a>, SliceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(wrong) = self.wrong.take() {
            return Some(Err(wrong));
        }
        if self.rest.is_empty() {
            return None;
        }
        let row = take_row(&mut self.rest);
        match row {
            Some(row) => self.offset += ROW_HEADER + row.row.len(),
            None => self.rest = &[],
        }
        Some(row.ok_or(SliceError::Malformed { offset: self.offset }))
    }
}

fn take_row<'a>(rest: &mut &'a [u8]) -> Option<SliceRow<'a>> {
    let (head, after) = rest.split_first_chunk::<ROW_HEADER>()?;
    let [a, b, c, d, l, m, time @ .., n0, n1, n2, n3] = *head;
    let length = u32::from_le_bytes([n0, n1, n2, n3]) as usize;
    let (row, after) = after.split_at_checked(length)?;
    *rest = after;
    Some(SliceRow {
        table: TableId(u32::from_le_bytes([a, b, c, d])),
        layout: u16::from_le_bytes([l, m]),
        time: Timestamp(u64::from_le_bytes(time)),
        row,
    })
}

fn put_row(out: &mut Vec<u8>, row: &SliceRow<'_>) {
    out.extend_from_slice(&row.table.0.to_le_bytes());
    out.extend_from_slice(&row.layout.to_le_bytes());
    out.extend_from_slice(&row.time.0.to_le_bytes());
    out.extend_from_slice(&(row.row.len() as u32).to_le_bytes());
    out.extend_from_slice(row.row);
}

impl Partition {
    /// Writes a slice of the newest committed versions into `out` (over what it held), beginning at `from`, by table and row id: it looks at up to `rows` rows, and
    /// ends with the row that reaches `bytes`. Gives where to go on; `None`: that was all. As with
    /// [`Partition::checkpoint_slice`], the caller has seen to ends from before the copy began.
    pub fn copy_slice(&self, from: CopyCursor, rows: usize, bytes: usize, out: &mut Vec<u8>) -> Option<CopyCursor> {
        out.clear();
        out.extend_from_slice(&self.copy_nothing());
        let mut at = from;
        let mut left = rows.max(1);
        // The first table that may have rows, from the cursor's on.
        while let Some(table) = self.fragments.own().map(|(t, _)| t).filter(|t| t.0 >= at.table).min() {
            if table.0 > at.table {
                at = CopyCursor { table: table.0, row: 0 };
            }
            while let Some(id) = self.fragments[&table].rows.next(RowId(at.row)) {
                if left == 0 || out.len() >= bytes.max(4) {
                    return Some(CopyCursor { row: id.0, ..at });
                }
                left -= 1;
                self.checkpoint_slice(table, id, 1, &mut |layout, time, row| {
                    put_row(out, &SliceRow { table, layout, time, row });
                });
                at.row = id.0 + 1;
            }
            at = CopyCursor { table: table.0.checked_add(1)?, row: 0 };
        }
        None
    }

    /// A slice of no rows: there is nothing to be read now.
    pub fn copy_nothing(&self) -> [u8; 3] {
        let [low, high] = self.id.0.to_le_bytes();
        [VERSION, low, high]
    }

    /// Takes a slice in, each row where nothing as new is; rows of tables for which `pass` says so are passed over. Gives how many rows the slice has. After an
    /// error some of the rows are in, which does no harm: taking the slice again comes to the same.
    pub fn restore_slice(&mut self, slice: &[u8], pass: &mut dyn FnMut(TableId) -> bool) -> Result<u64, SliceError> {
        let mut rows = 0;
        for row in slice_rows(slice) {
            let SliceRow { table, layout, time, row } = row?;
            rows += 1;
            if pass(table) {
                continue;
            }
            match self.check_row(table, layout, row).and_then(|()| self.restore_copied(table, layout, row, time)) {
                Ok(()) => {}
                Err(Stop::StaleSchema) => return Err(SliceError::StaleSchema { table, layout }),
                Err(Stop::NoRow) => return Err(SliceError::NoRow { table }),
                Err(stop) => unreachable!("restoring is not refused: {stop:?}"),
            }
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn slices_are_read_as_they_were_written(
            rows in proptest::collection::vec((any::<u32>(), any::<u16>(), any::<u64>(), proptest::collection::vec(any::<u8>(), 0..80)), 0..20)
        ) {
            let rows: Vec<SliceRow<'_>> = rows.iter()
                .map(|(t, l, s, r)| SliceRow { table: TableId(*t), layout: *l, time: Timestamp(*s), row: r })
                .collect();
            let mut old = vec![WITHOUT_PARTITION];
            let mut slice = vec![VERSION, 5, 1];
            rows.iter().for_each(|row| put_row(&mut slice, row));
            rows.iter().for_each(|row| put_row(&mut old, row));
            let read: Vec<_> = slice_rows(&slice).map(Result::unwrap).collect();
            prop_assert_eq!(&read, &rows);
            prop_assert_eq!(&slice_rows(&old).map(Result::unwrap).collect::<Vec<_>>(), &rows);
            prop_assert_eq!((slice_partition(&slice), slice_partition(&old)), (Some(PartitionId(261)), None));
            for cut in 0..slice.len() {
                let read: Vec<_> = slice_rows(&slice[..cut]).collect();
                let good = read.iter().take_while(|r| r.is_ok()).count();
                prop_assert!(good + 1 >= read.len() && good <= rows.len());
                prop_assert!(read[..good].iter().zip(&rows).all(|(a, b)| a.as_ref() == Ok(b)));
            }
        }

        #[test]
        fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let read: Vec<_> = slice_rows(&bytes).collect();
            prop_assert!(read.iter().rev().skip(1).all(Result::is_ok));
            let cursor = CopyCursor::decode(&bytes);
            prop_assert!(cursor.is_none() || bytes.is_empty() || cursor.unwrap().encode() == bytes[..]);
        }
    }
}
