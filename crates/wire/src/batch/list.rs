//! A batch whose shapes are not all known yet: operations are collected by themselves, and head and shapes put in front of them when it is sent.
//!
//! What a sender keeps this way can be sent again with other options or, when a table's definition has changed and its keys and values have not, with other shapes.

use super::request::{FIRST_SHAPE, ROLLBACK_TO, SAVEPOINT, put_head, put_key};
use super::{BatchOptions, Shape};
use crate::MAX_OPERATIONS;
use crate::filter::Filter;
use crate::read::put_varint;
use rauk_types::ValueRef;

/// Operations of one batch or, one behind the other, of several. That they go with their shapes is for the caller to see to.
#[derive(Clone, Debug, Default)]
pub struct OperationList {
    bytes: Vec<u8>,
    operations: usize,
}

impl OperationList {
    /// `Read`, `Delete`.
    #[inline]
    pub fn key(&mut self, shape: u16, key: &[u8], condition: Option<&Filter>) {
        put_key(shape, key, &mut self.bytes);
        if let Some(filter) = condition {
            filter.encode(&mut self.bytes);
        }
        self.operations += 1;
    }

    /// `Insert`, `Write`: one value for each of the shape's columns.
    pub fn values<'v>(&mut self, shape: u16, values: impl IntoIterator<Item = ValueRef<'v>>) {
        put_varint(FIRST_SHAPE + u32::from(shape), &mut self.bytes);
        values.into_iter().for_each(|value| crate::value::put(value, &mut self.bytes));
        self.operations += 1;
    }

    /// `Update`, `Increment`.
    pub fn key_and_values<'v>(
        &mut self,
        shape: u16,
        key: &[u8],
        values: impl IntoIterator<Item = ValueRef<'v>>,
        condition: Option<&Filter>,
    ) {
        put_key(shape, key, &mut self.bytes);
        values.into_iter().for_each(|value| crate::value::put(value, &mut self.bytes));
        if let Some(filter) = condition {
            filter.encode(&mut self.bytes);
        }
        self.operations += 1;
    }

    pub fn savepoint(&mut self) {
        put_varint(SAVEPOINT, &mut self.bytes);
        self.operations += 1;
    }

    pub fn rollback_to(&mut self, savepoint: u32) {
        put_varint(ROLLBACK_TO, &mut self.bytes);
        self.bytes.extend_from_slice(&savepoint.to_le_bytes());
        self.operations += 1;
    }

    /// All operations as they will be sent, those of earlier parts first.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Operations of the present part.
    #[inline]
    pub fn len(&self) -> usize {
        self.operations
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What follows is counted anew, as another batch; so many of the last operations belong to it already.
    pub fn begin_part(&mut self, operations: usize) {
        self.operations = operations;
    }
}

/// Appends a batch's payload whose operations are these.
pub fn assemble(out: Vec<u8>, options: &BatchOptions, shapes: &[Shape], count: usize, operations: &[u8]) -> Vec<u8> {
    assemble_some(out, options, shapes, count, std::iter::once(operations))
}

/// The same with operations that are not next to each other: `count` in all of these pieces.
pub fn assemble_some<'o>(
    mut out: Vec<u8>,
    options: &BatchOptions,
    shapes: &[Shape],
    count: usize,
    pieces: impl Iterator<Item = &'o [u8]>,
) -> Vec<u8> {
    assert!(count <= MAX_OPERATIONS, "more operations than a batch has");
    put_head(options, count as u16, shapes, &mut out);
    pieces.for_each(|operations| out.extend_from_slice(operations));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BatchBuilder, LockWish, OpKind, Wanted};
    use rauk_types::{IndexId, TableId};

    fn shape(kind: OpKind, columns: &[u16], conditional: bool) -> Shape {
        Shape {
            table: TableId(7),
            version: 3,
            kind,
            index: IndexId::PRIMARY,
            lock: LockWish::None,
            conditional,
            columns: columns.to_vec(),
            wanted: Wanted::Nothing,
        }
    }

    #[test]
    fn the_same_bytes_as_the_builder_makes() {
        let shapes = [
            shape(OpKind::Read, &[], false),
            shape(OpKind::Insert, &[0, 1], false),
            shape(OpKind::Update, &[1], true),
            shape(OpKind::Delete, &[], true),
        ];
        let condition = Filter::IsNull { column: 1 };
        let options = BatchOptions { begin: true, commit: true, lock_wait_ms: 7, ..BatchOptions::default() };
        let mut builder = BatchBuilder::new(vec![1; 5], &options, &shapes);
        let mut list = OperationList::default();
        builder.key(0, b"key", None);
        list.key(0, b"key", None);
        builder.key(0, &[7; 300], None);
        list.key(0, &[7; 300], None);
        builder.values(1, [ValueRef::Int(1), ValueRef::Null]);
        list.values(1, [ValueRef::Int(1), ValueRef::Null]);
        builder.savepoint();
        list.savepoint();
        builder.key_and_values(2, b"k", [ValueRef::Str("x")], Some(&condition));
        list.key_and_values(2, b"k", [ValueRef::Str("x")], Some(&condition));
        builder.key(3, b"", Some(&condition));
        list.key(3, b"", Some(&condition));
        builder.rollback_to(1);
        list.rollback_to(1);
        assert_eq!(assemble(vec![1; 5], &options, &shapes, list.len(), list.bytes()), builder.finish());
    }
}
