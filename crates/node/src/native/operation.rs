//! A batch's operations, read and checked before any of them is executed.
//!
//! Bytes that no client of ours sends fail the whole batch before anything has happened. What a program can get wrong (a value over its column's
//! limit, a key that is none) fails its operation only, and at its turn.

use super::failure::{self, malformed, refused};
use super::image;
use super::shape::Prepared;
use rauk_types::error::codes;
use rauk_types::{IndexId, KeyDef, TableSchema, ValueRef};
use rauk_wire::{Batch, Failure, Filter, OpKind, WireError};
use smallvec::SmallVec;

/// Most bytes of a key or a bound; the longest that an index can have, and some room.
pub const MAX_KEY: usize = rauk_types::schema::MAX_KEY_BYTES + 1024;

pub struct Op<'a> {
    pub kind: OpKind,
    /// Position in the batch's shapes; of no meaning for savepoints.
    pub shape: usize,
    pub key: &'a [u8],
    values: std::ops::Range<usize>,
    pub condition: Option<Box<Filter>>,
    /// It cannot be executed.
    pub refused: Option<Box<Failure>>,
}

/// All operations in their order.
pub struct Operations<'a> {
    pub list: Vec<Op<'a>>,
    values: Vec<ValueRef<'a>>,
}

impl<'a> Operations<'a> {
    /// The values of an operation, as their columns store them.
    pub fn values(&self, op: &Op<'_>) -> &[ValueRef<'a>] {
        &self.values[op.values.clone()]
    }
}

pub fn read<'a>(batch: &Batch<'a>, shapes: &[Prepared<'_>]) -> Result<Operations<'a>, Failure> {
    let mut all = Operations { list: Vec::with_capacity(batch.operations), values: Vec::new() };
    for operation in batch.operations() {
        let operation = operation.map_err(malformed)?;
        let first = all.values.len();
        operation.values.read(&mut all.values).map_err(malformed)?;
        let values = first..all.values.len();
        let mut op = Op {
            kind: operation.kind,
            shape: 0,
            key: operation.key,
            values: values.clone(),
            condition: operation.condition,
            refused: None,
        };
        if let Some(shape) = operation.shape {
            let found = shapes.get(usize::from(shape)).filter(|s| s.shape.kind == op.kind);
            let prepared = found.ok_or_else(|| malformed(WireError::Malformed("operation")))?;
            op.shape = usize::from(shape);
            if values.len() != prepared.shape.columns.len() {
                return Err(malformed(WireError::Malformed("operation")));
            }
            op.refused = check(prepared, &op, &mut all.values[values]).err().map(Box::new);
        }
        all.list.push(op);
    }
    Ok(all)
}

/// Checks what an operation brings, and turns its values into what their columns store.
fn check(prepared: &Prepared<'_>, op: &Op<'_>, values: &mut [ValueRef<'_>]) -> Result<(), Failure> {
    let schema = prepared.schema();
    if !matches!(op.kind, OpKind::Insert | OpKind::Write) {
        check_key(prepared, op.key)?;
    }
    let inserts = matches!(op.kind, OpKind::Insert | OpKind::Write);
    for (&column, value) in prepared.shape.columns.iter().zip(values) {
        let at = usize::from(column);
        if op.kind == OpKind::Increment {
            image::check_increment(&schema.columns[at], *value)?;
        } else {
            *value = image::stored(&schema.columns[at], *value, inserts && schema.auto_increment == Some(at))?;
        }
    }
    match &op.condition {
        Some(condition) => check_filter(schema, condition),
        None => Ok(()),
    }
}

pub fn check_filter(schema: &TableSchema, filter: &Filter) -> Result<(), Failure> {
    filter.check(schema).map_err(|text| refused(codes::WRONG_ARGUMENTS, text))
}

/// The definition of keys of the shape's index.
pub fn key_def<'p>(prepared: &'p Prepared<'_>) -> Option<&'p KeyDef> {
    match prepared.shape.index {
        IndexId::PRIMARY => Some(prepared.table.primary_key()),
        index => prepared.table.unique_key(index),
    }
}

/// A key has all parts of its index and nothing behind them: others are nobody's.
pub fn check_key(prepared: &Prepared<'_>, key: &[u8]) -> Result<(), Failure> {
    match key_def(prepared) {
        Some(def) if is_key_of(def, key) => Ok(()),
        Some(_) => {
            let schema = prepared.schema();
            let name = schema.index(prepared.shape.index).map_or("PRIMARY", |i| i.name.as_str());
            let text = format!("Incorrect value for key '{}.{name}': these bytes are not a whole key", schema.name);
            Err(refused(codes::WRONG_ARGUMENTS, text))
        }
        None => Err(failure::stale()),
    }
}

/// Whether these bytes are a whole key of this definition.
#[inline]
pub fn is_key_of(def: &KeyDef, key: &[u8]) -> bool {
    key.len() <= MAX_KEY && def.is_whole(key)
}

/// The number that a `RollbackTo` names.
pub fn savepoint_of(op: &Op<'_>) -> Option<u32> {
    op.key.try_into().ok().map(u32::from_le_bytes)
}

/// Distinct tables of a batch.
pub fn tables<'p>(shapes: &'p [Prepared<'_>]) -> SmallVec<[&'p crate::TableHandle; 4]> {
    let mut tables: SmallVec<[&crate::TableHandle; 4]> = SmallVec::new();
    for prepared in shapes {
        if !tables.iter().any(|t| t.schema().id == prepared.schema().id) {
            tables.push(&prepared.table);
        }
    }
    tables
}
