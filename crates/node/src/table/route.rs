//! Which bucket, and which partition, a row lives in.
//!
//! The bucket is the hash of the *distribution key*: the encoded primary key, or the encoded parts of it that are distribution
//! columns, in their order. Everything that names a row has its primary key, so the distribution key is always cut out of that.

use rauk_types::key::{self, KeyDef, KeyPart};
use rauk_types::schema::BUCKETS;
use rauk_types::{Date, DateTime, RowView, TableSchema, Time, TypeKind, Value};
use smallvec::SmallVec;

/// Partitions hold contiguous ranges of buckets.
#[inline]
pub fn partition_of(bucket: u16, partitions: u16) -> u16 {
    (bucket as u32 * partitions as u32 / BUCKETS as u32) as u16
}

/// How one table's keys are routed.
#[derive(Debug)]
pub struct Route {
    parts: Parts,
    /// Encodes a row's distribution key.
    distribution: KeyDef,
}

#[derive(Debug)]
enum Parts {
    /// The whole primary key.
    Whole,
    /// These parts of it, in the distribution's order, and how long each of the key's parts is.
    Some { wanted: SmallVec<[usize; 4]>, lengths: SmallVec<[PartLength; 4]> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartLength {
    Fixed(usize),
    /// Escaped bytes up to the two zero bytes that end them; inverted in a descending part.
    Escaped {
        inverted: bool,
    },
}

impl Route {
    pub fn new(schema: &TableSchema) -> Route {
        let primary = schema.key_def(schema.primary());
        let position = |column: &usize| {
            let found = primary.parts.iter().position(|p| p.column == *column);
            found.expect("distribution columns are part of the primary key")
        };
        let wanted: SmallVec<[usize; 4]> = schema.distribution.iter().map(position).collect();
        let distribution = schema.distribution_def();
        let whole = wanted.len() == primary.parts.len() && wanted.iter().enumerate().all(|(i, &w)| i == w);
        let parts = match whole {
            true => Parts::Whole,
            false => Parts::Some { wanted, lengths: primary.parts.iter().map(part_length).collect() },
        };
        Route { parts, distribution }
    }

    /// The bucket of an encoded primary key whose hash is known.
    #[inline]
    pub fn bucket_of_key(&self, key: &[u8], hash: u64) -> u16 {
        match &self.parts {
            Parts::Whole => key::bucket(hash),
            Parts::Some { wanted, lengths } => key::bucket(hash_of_parts(key, wanted, lengths)),
        }
    }

    /// The bucket of a row. `scratch` is overwritten.
    pub fn bucket_of_row(&self, row: &RowView<'_>, scratch: &mut Vec<u8>) -> u16 {
        scratch.clear();
        self.distribution.encode_row(row, scratch);
        key::bucket(key::hash(scratch))
    }
}

fn hash_of_parts(key: &[u8], wanted: &[usize], lengths: &[PartLength]) -> u64 {
    let mut bounds: SmallVec<[(usize, usize); 8]> = SmallVec::new();
    let mut at = 0;
    for length in lengths {
        let end = at + part_bytes(&key[at..], *length);
        bounds.push((at, end));
        at = end;
    }
    if let [only] = wanted {
        let (start, end) = bounds[*only];
        return key::hash(&key[start..end]);
    }
    let mut bytes: SmallVec<[u8; 64]> = SmallVec::new();
    for &part in wanted {
        let (start, end) = bounds[part];
        bytes.extend_from_slice(&key[start..end]);
    }
    key::hash(&bytes)
}

fn part_bytes(rest: &[u8], length: PartLength) -> usize {
    match length {
        PartLength::Fixed(n) => n,
        PartLength::Escaped { inverted } => {
            let zero = if inverted { 0xFF } else { 0 };
            let mut i = 0;
            loop {
                if rest[i] != zero {
                    i += 1;
                } else if rest[i + 1] == zero {
                    return i + 2;
                } else {
                    // An escaped zero byte.
                    i += 2;
                }
            }
        }
    }
}

/// Parts of a primary key are never NULL, so they have no NULL byte.
fn part_length(part: &KeyPart) -> PartLength {
    if part.ty.is_text() || part.ty.is_bytes() {
        return PartLength::Escaped { inverted: part.descending };
    }
    // All values of such a type have keys of one length: take one.
    let sample = match part.ty.kind {
        TypeKind::Float | TypeKind::Double => Value::Double(0.0),
        TypeKind::Decimal => Value::Decimal(Default::default()),
        TypeKind::Date => Value::Date(Date::ZERO),
        TypeKind::Time => Value::Time(Time::ZERO),
        TypeKind::DateTime => Value::DateTime(DateTime::ZERO),
        TypeKind::Timestamp => Value::Timestamp(0),
        _ if part.ty.unsigned => Value::UInt(0),
        _ => Value::Int(0),
    };
    let mut bytes = Vec::new();
    part.encode(sample.as_ref(), &mut bytes);
    PartLength::Fixed(bytes.len())
}
