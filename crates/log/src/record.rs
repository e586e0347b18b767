//! What a redo record says: changes of rows and bounds of counters. One commit is one record, whatever number of partitions it
//! touches, so it is never half there.
//!
//! A payload is a sequence of changes, each a tag byte and its fields as varints, the bytes of a row or key last with their length before them:
//!
//! ```text
//! 1 bucket table layout length row       put
//! 2 bucket table length key              delete
//! 3 table bound                          counter
//! 4 group length bytes                   stream
//! 5 bucket table layout length row       put of a sparse row (`rauk_types::row::sparse`)
//! ```
//! A node of a cluster logs what its replicas of groups tell it to: records of their streams, whose bytes mean
//! something to them only. A node that is alone has no such records.
//!
//! [`changes`] reads any bytes without panicking: what is not a payload ends in one error.
use crate::varint;
use rauk_types::{GroupId, TableId, Timestamp};

const PUT: u8 = 1;
const DELETE: u8 = 2;
const COUNTER: u8 = 3;
const STREAM: u8 = 4;
const SPARSE: u8 = 5;

/// Builds the payload of a record. Made once and cleared between commits, it does not allocate.
#[derive(Debug, Default)]
pub struct CommitBuilder {
    bytes: Vec<u8>,
}

impl CommitBuilder {
    /// The new image of a row.
    pub fn put(&mut self, bucket: u16, table: TableId, layout: u16, row: &[u8]) {
        self.image(PUT, bucket, table, layout, row);
    }

    /// The new image of a row without the large values that the version before has.
    pub fn put_sparse(&mut self, bucket: u16, table: TableId, layout: u16, row: &[u8]) {
        self.image(SPARSE, bucket, table, layout, row);
    }

    fn image(&mut self, tag: u8, bucket: u16, table: TableId, layout: u16, row: &[u8]) {
        self.bytes.push(tag);
        varint::put(&mut self.bytes, bucket.into());
        varint::put(&mut self.bytes, table.0.into());
        varint::put(&mut self.bytes, layout.into());
        self.slice(row);
    }

    /// The encoded primary key of a row that goes.
    pub fn delete(&mut self, bucket: u16, table: TableId, key: &[u8]) {
        self.bytes.push(DELETE);
        varint::put(&mut self.bytes, bucket.into());
        varint::put(&mut self.bytes, table.0.into());
        self.slice(key);
    }

    /// Numbers below `bound` of the table's counter may have been given out.
    pub fn counter(&mut self, table: TableId, bound: u64) {
        self.bytes.push(COUNTER);
        varint::put(&mut self.bytes, table.0.into());
        varint::put(&mut self.bytes, bound);
    }

    /// A record of a group's replica.
    pub fn stream(&mut self, group: GroupId, bytes: &[u8]) {
        self.bytes.push(STREAM);
        varint::put(&mut self.bytes, group.0.into());
        self.slice(bytes);
    }

    fn slice(&mut self, bytes: &[u8]) {
        varint::put(&mut self.bytes, bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    pub fn payload(&self) -> &[u8] {
        &self.bytes
    }
}

/// A decoded piece of a record, borrowed from the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    Put {
        bucket: u16,
        table: TableId,
        layout: u16,
        row: &'a [u8],
    },
    /// A sparse row.
    Sparse {
        bucket: u16,
        table: TableId,
        layout: u16,
        row: &'a [u8],
    },
    Delete {
        bucket: u16,
        table: TableId,
        key: &'a [u8],
    },
    /// Numbers below `bound` of this counter (AUTO_INCREMENT, hidden keys) may have been given out.
    Counter {
        table: TableId,
        bound: u64,
    },
    /// A record of a group's replica in a cluster.
    Stream {
        group: GroupId,
        bytes: &'a [u8],
    },
}

impl Change<'_> {
    /// The bucket of the row that it changes; `None`: it changes none.
    #[inline]
    pub fn bucket(&self) -> Option<u16> {
        match *self {
            Change::Put { bucket, .. } | Change::Sparse { bucket, .. } | Change::Delete { bucket, .. } => Some(bucket),
            Change::Counter { .. } | Change::Stream { .. } => None,
        }
    }
}

/// A record as replay meets it: its time, and its changes in order.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    pub time: Timestamp,
    pub payload: &'a [u8],
}

/// The bytes are not a payload: written by a program with an error, for the log's checksum has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed change at byte {offset} of a record")]
pub struct Malformed {
    pub offset: usize,
}

/// Reads the changes of a payload in order; ends after the first error.
pub fn changes(payload: &[u8]) -> Changes<'_> {
    Changes { length: payload.len(), rest: payload }
}

#[derive(Clone, Debug)]
pub struct Changes<'a> {
    length: usize,
    rest: &'a [u8],
}

impl<'a> Iterator for Changes<'a> {
    type Item = Result<Change<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let offset = self.length - self.rest.len();
        let change = take_change(&mut self.rest);
        if change.is_none() {
            self.rest = &[];
        }
        Some(change.ok_or(Malformed { offset }))
    }
}

fn take_change<'a>(rest: &mut &'a [u8]) -> Option<Change<'a>> {
    let (&tag, after) = rest.split_first()?;
    *rest = after;
    let small = |rest: &mut &'a [u8]| u16::try_from(varint::take(rest)?).ok();
    let table = |rest: &mut &'a [u8]| u32::try_from(varint::take(rest)?).ok().map(TableId);
    Some(match tag {
        PUT => Change::Put {
            bucket: small(rest)?,
            table: table(rest)?,
            layout: small(rest)?,
            row: varint::take_slice(rest)?,
        },
        SPARSE => Change::Sparse {
            bucket: small(rest)?,
            table: table(rest)?,
            layout: small(rest)?,
            row: varint::take_slice(rest)?,
        },
        DELETE => Change::Delete { bucket: small(rest)?, table: table(rest)?, key: varint::take_slice(rest)? },
        COUNTER => Change::Counter { table: table(rest)?, bound: varint::take(rest)? },
        STREAM => Change::Stream { group: GroupId(small(rest)?), bytes: varint::take_slice(rest)? },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Op {
        Put(u16, u32, u16, Vec<u8>),
        Sparse(u16, u32, u16, Vec<u8>),
        Delete(u16, u32, Vec<u8>),
        Counter(u32, u64),
        Stream(u16, Vec<u8>),
    }

    fn op() -> impl Strategy<Value = Op> {
        let bytes = proptest::collection::vec(any::<u8>(), 0..300);
        prop_oneof![
            (any::<u16>(), any::<u32>(), any::<u16>(), bytes.clone()).prop_map(|(b, t, l, r)| Op::Put(b, t, l, r)),
            (any::<u16>(), any::<u32>(), any::<u16>(), bytes.clone()).prop_map(|(b, t, l, r)| Op::Sparse(b, t, l, r)),
            (any::<u16>(), any::<u32>(), bytes.clone()).prop_map(|(b, t, k)| Op::Delete(b, t, k)),
            (any::<u16>(), bytes).prop_map(|(p, b)| Op::Stream(p, b)),
            (any::<u32>(), any::<u64>()).prop_map(|(t, b)| Op::Counter(t, b)),
        ]
    }

    proptest! {
        #[test]
        fn round_trip(ops in proptest::collection::vec(op(), 0..20)) {
            let mut builder = CommitBuilder::default();
            for op in &ops {
                match op {
                    Op::Put(b, t, l, r) => builder.put(*b, TableId(*t), *l, r),
                    Op::Sparse(b, t, l, r) => builder.put_sparse(*b, TableId(*t), *l, r),
                    Op::Delete(b, t, k) => builder.delete(*b, TableId(*t), k),
                    Op::Counter(t, b) => builder.counter(TableId(*t), *b),
                    Op::Stream(p, b) => builder.stream(GroupId(*p), b),
                }
            }
            let read: Vec<_> = changes(builder.payload()).map(Result::unwrap).collect();
            let expected: Vec<_> = ops.iter().map(|op| match op {
                Op::Put(b, t, l, r) => Change::Put { bucket: *b, table: TableId(*t), layout: *l, row: r },
                Op::Sparse(b, t, l, r) => Change::Sparse { bucket: *b, table: TableId(*t), layout: *l, row: r },
                Op::Delete(b, t, k) => Change::Delete { bucket: *b, table: TableId(*t), key: k },
                Op::Counter(t, b) => Change::Counter { table: TableId(*t), bound: *b },
                Op::Stream(p, b) => Change::Stream { group: GroupId(*p), bytes: b },
            }).collect();
            prop_assert_eq!(read, expected);
            // Cut anywhere: whole changes, then at most one error.
            for cut in 0..builder.payload().len() {
                let results: Vec<_> = changes(&builder.payload()[..cut]).collect();
                prop_assert!(results.iter().rev().skip(1).all(Result::is_ok));
            }
        }

        #[test]
        fn garbage_ends(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let results: Vec<_> = changes(&bytes).collect();
            prop_assert!(results.iter().rev().skip(1).all(Result::is_ok));
        }
    }

    /// What is on disks stays readable.
    #[test]
    fn the_bytes_are_frozen() {
        let mut builder = CommitBuilder::default();
        builder.put(300, TableId(5), 2, b"row");
        builder.delete(3839, TableId(200), b"key");
        builder.counter(TableId(5), 1 << 20);
        builder.stream(GroupId(8), b"entry");
        builder.put_sparse(300, TableId(5), 2, b"sparse");
        let expected: &[u8] =
            b"\x01\xac\x02\x05\x02\x03row\x02\xff\x1d\xc8\x01\x03key\x03\x05\x80\x80\x40\x04\x08\x05entry\x05\xac\x02\x05\x02\x06sparse";
        assert_eq!(builder.payload(), expected);
        assert_eq!(changes(expected).filter(Result::is_ok).count(), 5);
    }
}
