//! Rows that name the large values which the version before has, too.
//!
//! The change of a row with large values is written into the log, and sent to replicas, as its head, its new values,
//! and the names of those that it keeps. Whoever takes it in has the version before, and gets the kept ones from there.
//!
//! ```text
//! sparse = key | head | count: u32 | value …
//! key, head = length: u32 | bytes
//! value  = 0 | length: u64 | bytes                   a new one
//!        | 1 | place: u32 | length: u64 | hash: u128 one that is kept       (all numbers little-endian)
//! ```
//! The primary key stands in front, because it may have to be read from a value that is kept. A kept value is named by
//! its place in the version before, and by length and hash of its bytes: where versions of equal time are replayed,
//! what is there may be another version, which has the value at another place, or has it not.
//!
//! Sparse rows come out of logs and from other nodes: whatever the bytes are, reading them ends in parts or in `None`.

use super::large::{LargeValue, RowImage};

const NEW: u8 = 0;
const KEPT: u8 = 1;

/// What tells a large value from others of its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Where it was in the version before.
    pub place: u32,
    pub length: u64,
    pub hash: u128,
}

impl Mark {
    fn names(&self, value: &LargeValue) -> bool {
        value.len() as u64 == self.length && value.hash() == self.hash
    }

    /// The value that is meant, among those of a version of the row.
    pub fn find<'v>(&self, values: &'v [LargeValue]) -> Option<&'v LargeValue> {
        let there = values.get(self.place as usize).filter(|value| self.names(value));
        there.or_else(|| values.iter().find(|value| self.names(value)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SparseValue<'a> {
    New(&'a [u8]),
    Kept(Mark),
}

/// A sparse row, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SparseRow<'a> {
    /// Encoded primary key.
    pub key: &'a [u8],
    pub head: &'a [u8],
    pub values: Vec<SparseValue<'a>>,
}

/// Whether a row has values of the version before, so that its sparse form is the shorter one.
pub fn keeps_any(row: RowImage<'_>, before: &[LargeValue]) -> bool {
    row.beside.iter().any(|value| before.iter().any(|old| old.is_same(value)))
}

/// Appends the sparse form of a row after a version with the values `before`.
pub fn append_sparse(key: &[u8], row: RowImage<'_>, before: &[LargeValue], out: &mut Vec<u8>) {
    for part in [key, row.head] {
        out.extend_from_slice(&(part.len() as u32).to_le_bytes());
        out.extend_from_slice(part);
    }
    out.extend_from_slice(&(row.beside.len() as u32).to_le_bytes());
    for value in row.beside {
        match before.iter().position(|old| old.is_same(value)) {
            Some(place) => {
                out.push(KEPT);
                out.extend_from_slice(&(place as u32).to_le_bytes());
                out.extend_from_slice(&(value.len() as u64).to_le_bytes());
                out.extend_from_slice(&value.hash().to_le_bytes());
            }
            None => {
                out.push(NEW);
                out.extend_from_slice(&(value.len() as u64).to_le_bytes());
                out.extend_from_slice(value.bytes());
            }
        }
    }
}

/// Reads a sparse row; `None`: it is none.
pub fn read_sparse(bytes: &[u8]) -> Option<SparseRow<'_>> {
    let mut rest = bytes;
    let key = take_part(&mut rest)?;
    let head = take_part(&mut rest)?;
    let count = u32::from_le_bytes(take(&mut rest)?) as usize;
    // As many as can be there.
    let mut values = Vec::with_capacity(count.min(rest.len() / 9));
    for _ in 0..count {
        let [kind] = take(&mut rest)?;
        values.push(match kind {
            NEW => {
                let length = usize::try_from(u64::from_le_bytes(take(&mut rest)?)).ok()?;
                let (value, after) = rest.split_at_checked(length)?;
                rest = after;
                SparseValue::New(value)
            }
            KEPT => SparseValue::Kept(Mark {
                place: u32::from_le_bytes(take(&mut rest)?),
                length: u64::from_le_bytes(take(&mut rest)?),
                hash: u128::from_le_bytes(take(&mut rest)?),
            }),
            _ => return None,
        });
    }
    rest.is_empty().then_some(SparseRow { key, head, values })
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*bytes)
}

fn take_part<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u32::from_le_bytes(take(rest)?) as usize;
    let (part, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(part)
}
