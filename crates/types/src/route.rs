//! Which bucket a row lives in.
//!
//! The bucket is the hash of the *distribution key*: the encoded primary key, or the encoded parts of it that are
//! distribution columns, in their order. Everything that names a row has its primary key, so the distribution key is
//! always cut out of that.
//!
//! Nodes find partitions by it, and clients the node that leads a partition: both run this code. A client with an old
//! definition of the table may find another bucket than the nodes; that costs it speed and nothing else, since every
//! node answers for every key. The partition of a bucket is the layout's to say ([`crate::Layout`]).

use crate::key::{self, KeyDef, KeyPart};
use crate::layout::EVERYWHERE;
use crate::{RowView, TableSchema};
use smallvec::SmallVec;

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
    /// Of a table of the catalog: its distribution columns are part of the primary key.
    pub fn new(schema: &TableSchema) -> Route {
        Route::checked(schema).expect("distribution columns are part of the primary key")
    }

    /// Of a definition from elsewhere. `None`: it distributes rows by columns that its primary key does not have.
    pub fn checked(schema: &TableSchema) -> Option<Route> {
        let primary = schema.key_def(schema.primary());
        let position = |column: &usize| primary.parts.iter().position(|p| p.column == *column);
        let wanted: SmallVec<[usize; 4]> = schema.distribution.iter().map(position).collect::<Option<_>>()?;
        let distribution = schema.distribution_def();
        let whole = wanted.len() == primary.parts.len() && wanted.iter().enumerate().all(|(i, &w)| i == w);
        let parts = match whole {
            _ if schema.fully_replicated => Parts::Everywhere,
            true => Parts::Whole,
            false => Parts::Some { wanted, all: primary.parts },
        };
        Some(Route { parts, distribution })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Collation, Column, ColumnId, DataType, IndexSchema, TableId, Value, row};

    /// (`a` BIGINT, `b` VARCHAR(10), `c` BIGINT), all of it the key.
    fn table(distribution: &[usize]) -> TableSchema {
        let columns = vec![
            Column::new(ColumnId(0), "a", DataType::BIGINT, false),
            Column::new(ColumnId(1), "b", DataType::varchar(10, Collation::Utf8mb4Bin), false),
            Column::new(ColumnId(2), "c", DataType::BIGINT, false),
        ];
        let schema = TableSchema::new(TableId(1), "d", "t", columns, vec![IndexSchema::primary(&[0, 1, 2])]);
        TableSchema { distribution: distribution.to_vec(), ..schema }
    }

    /// By its key, and by the row.
    fn buckets(schema: &TableSchema, values: &[Value]) -> (u16, u16) {
        let route = Route::new(schema);
        let (mut key, mut bytes) = (Vec::new(), Vec::new());
        schema.key_def(schema.primary()).encode_values(values, &mut key);
        row::encode_row(schema, values, &mut bytes);
        let view = RowView::new(schema, 0, &bytes);
        (route.bucket_of_key(&key, key::hash(&key)), route.bucket_of_row(&view, &mut Vec::new()))
    }

    #[test]
    fn a_key_and_its_row_are_in_the_same_bucket() {
        for distribution in [&[0, 1, 2][..], &[0], &[1], &[2, 0], &[1, 2]] {
            let schema = table(distribution);
            for number in 0..50i64 {
                let values = [Value::Int(number), Value::from(format!("name {number}")), Value::Int(number * 7)];
                let (by_key, by_row) = buckets(&schema, &values);
                assert_eq!(by_key, by_row, "{distribution:?} {values:?}");
            }
        }
    }

    #[test]
    fn only_the_distribution_columns_count() {
        let bucket = |a: i64, b: &str, c: i64| {
            buckets(&table(&[1]), &[Value::Int(a), Value::from(b.to_string()), Value::Int(c)]).0
        };
        assert_eq!(bucket(1, "x", 2), bucket(3, "x", 4));
        assert_ne!(bucket(1, "x", 2), bucket(1, "y", 2));
    }

    #[test]
    fn fully_replicated_rows_are_everywhere() {
        let schema = TableSchema { fully_replicated: true, ..table(&[0]) };
        assert!(Route::new(&schema).is_everywhere());
        assert_eq!(buckets(&schema, &[Value::Int(1), Value::from("x".to_string()), Value::Int(1)]).0, EVERYWHERE);
    }

    #[test]
    fn a_definition_that_is_distributed_by_other_columns_has_no_route() {
        let schema = TableSchema { indexes: vec![IndexSchema::primary(&[0])].into(), ..table(&[1]) };
        assert!(Route::checked(&schema).is_none());
    }
}
