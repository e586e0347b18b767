//! Which bucket, and which partition, a row lives in.
//!
//! The bucket is the hash of the *distribution key*: the encoded primary key, or the encoded parts of it that are distribution
//! columns, in their order. Everything that names a row has its primary key, so the distribution key is always cut out of that.

use rauk_types::key::{self, KeyDef, KeyPart};
use rauk_types::layout::{EVERYWHERE, share};
use rauk_types::schema::BUCKETS;
use rauk_types::{RowView, TableSchema};
use smallvec::SmallVec;

/// The partition of a bucket on a node that is alone: rows of fully replicated tables are with the first.
#[inline]
pub fn partition_of(bucket: u16, partitions: u16) -> u16 {
    if bucket == EVERYWHERE { 0 } else { share(bucket, BUCKETS, partitions) }
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
    /// All rows are together, on every node.
    Everywhere,
    /// The whole primary key.
    Whole,
    /// These parts of it, in the distribution's order; and all parts, to take a key apart.
    Some { wanted: SmallVec<[usize; 4]>, all: Vec<KeyPart> },
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
            _ if schema.fully_replicated => Parts::Everywhere,
            true => Parts::Whole,
            false => Parts::Some { wanted, all: primary.parts },
        };
        Route { parts, distribution }
    }

    /// The bucket of an encoded primary key whose hash is known.
    #[inline]
    pub fn bucket_of_key(&self, key: &[u8], hash: u64) -> u16 {
        match &self.parts {
            Parts::Whole => key::bucket(hash),
            Parts::Everywhere => EVERYWHERE,
            Parts::Some { wanted, all } => key::bucket(hash_of_parts(key, wanted, all)),
        }
    }

    /// The bucket of an encoded distribution key.
    pub fn bucket_of_distribution(&self, distribution: &[u8]) -> u16 {
        match self.parts {
            Parts::Everywhere => EVERYWHERE,
            _ => key::bucket(key::hash(distribution)),
        }
    }

    pub fn is_everywhere(&self) -> bool {
        matches!(self.parts, Parts::Everywhere)
    }

    /// The bucket of a row. `scratch` is overwritten.
    pub fn bucket_of_row(&self, row: &RowView<'_>, scratch: &mut Vec<u8>) -> u16 {
        if let Parts::Everywhere = self.parts {
            return EVERYWHERE;
        }
        scratch.clear();
        self.distribution.encode_row(row, scratch);
        key::bucket(key::hash(scratch))
    }
}

fn hash_of_parts(key: &[u8], wanted: &[usize], all: &[KeyPart]) -> u64 {
    let mut bounds: SmallVec<[(usize, usize); 8]> = SmallVec::new();
    let mut at = 0;
    for part in all {
        let end = at + part.length_in(&key[at..]);
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
