//! Memcomparable keys: comparing the bytes compares the values.
//!
//! A key is the concatenation of its parts. A nullable part starts with one
//! byte (0 NULL, 1 value), so NULL sorts first; parts that cannot be NULL have
//! no such byte. Integers are big-endian with the sign bit flipped (in the width of
//! the column's type), doubles the IEEE total order, decimals a sign-and-digits
//! form of fixed width for the column's (precision, scale), dates and times
//! big-endian biased. Text is its collation's weight string
//! ([`Collation::sort_key`]) and bytes are themselves, both escaped (0x00 becomes
//! 0x00 0xFF) and ended by 0x00 0x00, so that a prefix sorts first. A descending part has all its
//! bytes inverted. Keys are equal exactly when the values are equal under the
//! collation; the value cannot be read back from a text key.
//!
//! [`hash`] is frozen: it decides which bucket a row lives in.

use crate::schema::IndexPart;
use crate::{DataType, RowView, TableSchema, Value, ValueRef};

/// One column of a key.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyPart {
    /// Position in the table's columns.
    pub column: usize,
    pub ty: DataType,
    pub nullable: bool,
    pub prefix: Option<u32>,
    pub descending: bool,
}

/// How the keys of one index are made.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyDef {
    pub parts: Vec<KeyPart>,
}

/// The stable 64-bit hash of an encoded key (XXH3, seed 0).
#[inline]
pub fn hash(key: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(key)
}

/// The bucket of a row with this distribution hash.
#[inline]
pub fn bucket(hash: u64) -> u16 {
    // Multiply-shift instead of modulo; uses the high bits, the hash index uses the low ones.
    ((hash >> 32) * crate::schema::BUCKETS as u64 >> 32) as u16
}

impl KeyDef {
    pub fn new(table: &TableSchema, parts: &[IndexPart]) -> Self {
        KeyDef {
            parts: parts
                .iter()
                .map(|p| {
                    let column = &table.columns[p.column];
                    KeyPart {
                        column: p.column,
                        ty: column.ty,
                        nullable: column.nullable,
                        prefix: p.prefix,
                        descending: p.descending,
                    }
                })
                .collect(),
        }
    }

    /// Appends the key of a stored row to `out`.
    pub fn encode_row(&self, row: &RowView<'_>, out: &mut Vec<u8>) {
        for part in &self.parts {
            part.encode(row.get(part.column), out);
        }
    }

    /// Appends the key of a row given as one value for each column of the table.
    pub fn encode_values(&self, row: &[Value], out: &mut Vec<u8>) {
        for part in &self.parts {
            part.encode(row[part.column].as_ref(), out);
        }
    }

    /// Appends a key, or a prefix of one when `values` are fewer than the parts. The values
    /// must have been converted to the column types.
    pub fn encode_prefix(&self, values: &[ValueRef<'_>], out: &mut Vec<u8>) {
        for (part, value) in self.parts.iter().zip(values) {
            part.encode(*value, out);
        }
    }

    /// Whether any part of the row's key is NULL (such rows are not in unique index tables).
    pub fn has_null(&self, row: &RowView<'_>) -> bool {
        self.parts.iter().any(|p| p.nullable && row.is_null(p.column))
    }

    /// Whether the stored row has exactly this key; the fast path of hash lookups.
    pub fn matches(&self, row: &RowView<'_>, key: &[u8]) -> bool {
        let _ = (row, key);
        todo!("integer fast path, else encode and compare")
    }
}

impl KeyPart {
    /// Appends one part. `value` has the column's type, or is NULL.
    pub fn encode(&self, value: ValueRef<'_>, out: &mut Vec<u8>) {
        let _ = (value, out);
        todo!()
    }
}

/// Turns a key prefix into the smallest key that is above every key with that prefix, in place;
/// `false` when there is none (all bytes 0xFF), that is, the range is unbounded.
pub fn prefix_successor(key: &mut Vec<u8>) -> bool {
    while let Some(last) = key.pop() {
        if last != 0xFF {
            key.push(last + 1);
            return true;
        }
    }
    false
}
