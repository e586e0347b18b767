//! Multi-valued indexes: the keys that a row has for the elements of a JSON array.
//!
//! `KEY ((CAST(doc->'$.zips' AS UNSIGNED ARRAY)))` is an ordered index with several entries a row: one for each
//! distinct element. A hidden column of the row has the array, whose elements SQL has converted to the type of the
//! index before the row is written; a value that is no array is an array of one. The other parts of the index are
//! columns as in any index, and are the same in all entries of a row.
//!
//! A row whose array is NULL or empty has no entry: no condition that the index answers holds for it.

use crate::index_keys::RowKeys;
use crate::json::Node;
use crate::key::KeyPart;
use crate::{DataType, IndexKind, IndexSchema, JsonRef, KeyDef, RowView, TableSchema, TypeKind, Value, ValueRef};
use serde::{Deserialize, Serialize};

/// Most distinct elements of a row.
pub const MAX_ELEMENTS: usize = 1604;
/// Most bytes of the keys of a row's elements, without the other parts.
pub const MAX_ELEMENT_BYTES: usize = 65_221;

/// The part of an index that has a key for each element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elements {
    /// Its number among the parts.
    pub part: u8,
    /// Of the elements.
    pub ty: DataType,
    /// Whether no two rows have an entry in common.
    pub unique: bool,
}

impl Elements {
    /// How an element is encoded.
    pub fn key_part(&self, column: usize) -> KeyPart {
        KeyPart { column, ty: self.ty, nullable: false, prefix: None, descending: false }
    }
}

/// How the keys of a multi-valued index are made.
#[derive(Clone, Debug, PartialEq)]
pub struct ElementKeys {
    /// The part of the elements has their type.
    def: KeyDef,
    part: usize,
}

impl ElementKeys {
    /// `None`: the index is not a multi-valued one.
    pub fn new(table: &TableSchema, index: &IndexSchema) -> Option<ElementKeys> {
        let IndexKind::Elements(elements) = index.kind else { return None };
        Some(ElementKeys { def: table.key_def(index), part: elements.part.into() })
    }

    pub fn columns(&self) -> impl Iterator<Item = usize> {
        self.def.parts.iter().map(|part| part.column)
    }

    /// The keys of a stored row.
    pub fn collect(&self, row: &RowView<'_>, keys: &mut RowKeys) {
        self.collect_of(|column| row.get(column), keys);
    }

    /// The keys of a row given as one value for each column of the table.
    pub fn collect_values(&self, row: &[Value], keys: &mut RowKeys) {
        self.collect_of(|column| row[column].as_ref(), keys);
    }

    /// Whether another part than the elements is NULL.
    pub fn has_null(&self, row: &RowView<'_>) -> bool {
        self.def.has_null(row)
    }

    pub fn has_null_values(&self, row: &[Value]) -> bool {
        self.def.parts.iter().any(|part| part.nullable && row[part.column].is_null())
    }

    fn collect_of<'r>(&self, get: impl Fn(usize) -> ValueRef<'r>, keys: &mut RowKeys) {
        keys.clear();
        let element = &self.def.parts[self.part];
        let ValueRef::Json(document) = get(element.column) else { return };
        // What cannot be read has no entries: whoever reads the column gets the error.
        let Ok(node) = document.read() else { return };
        let mut add = |node: Node<'_>| {
            let Some(value) = key_value(&node, &element.ty) else { return };
            keys.push(|out| {
                for (number, part) in self.def.parts.iter().enumerate() {
                    part.encode(if number == self.part { value } else { get(part.column) }, out);
                }
            });
        };
        match node {
            Node::Array(list) => (0..list.len()).filter_map(|at| list.value(at).ok()?.read().ok()).for_each(&mut add),
            scalar => add(scalar),
        }
        keys.sort();
    }
}

/// An element as the value that a key of its type is made of.
fn key_value<'n>(node: &Node<'n>, ty: &DataType) -> Option<ValueRef<'n>> {
    Some(match (ty.kind, node) {
        (TypeKind::BigInt, Node::Int(value)) if ty.unsigned => ValueRef::UInt(u64::try_from(*value).ok()?),
        (TypeKind::BigInt, Node::UInt(value)) if !ty.unsigned => ValueRef::Int(i64::try_from(*value).ok()?),
        (TypeKind::BigInt, Node::Int(value)) => ValueRef::Int(*value),
        (TypeKind::BigInt, Node::UInt(value)) => ValueRef::UInt(*value),
        (TypeKind::Decimal, Node::Decimal(value)) => ValueRef::Decimal(*value),
        (TypeKind::VarChar, Node::String(text)) => ValueRef::Str(text),
        (TypeKind::Date, Node::Date(date)) => ValueRef::Date(*date),
        (TypeKind::Time, Node::Time(time)) => ValueRef::Time(*time),
        (TypeKind::DateTime, Node::DateTime(time)) => ValueRef::DateTime(*time),
        _ => return None,
    })
}

/// The key of an element, as it is counted against the limits.
pub fn element_key(document: JsonRef<'_>, ty: &DataType, out: &mut Vec<u8>) {
    if let Some(value) = document.read().ok().and_then(|node| key_value(&node, ty)) {
        Elements { part: 0, ty: *ty, unique: false }.key_part(0).encode(value, out);
    }
}
