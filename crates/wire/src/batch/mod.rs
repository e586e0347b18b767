//! Batches: many operations in one request.
//!
//! Operations that are alike share a *shape* (table, what is done, which columns), which stands once at the front of the batch; an
//! operation is then hardly more than its key. The answer has an entry for each operation, in any order: an entry names its operation, so that the
//! node can go through partitions one after the other and write rows straight from where they are stored into the answer.
//!
//! Keys are encoded by the sender ([`rauk_types::KeyDef`]) and checked by the receiver; rows are answered as they are stored, with their layout, and read
//! by the definition that the client has. Values to be written travel as values, since only the node may say that they are right.
//!
//! ```text
//! Batch        flags u8, isolation u8, operations u16, lock wait u32, count of shapes varint, shapes, operations
//! shape        table u32, version u32, kind u8, index u16, lock u8, conditional u8, columns, wanted
//! columns      count varint, positions varint each
//! wanted       0 nothing | 1 row | 2 columns
//! operation    0 (savepoint) | 1, number u32 (roll back to) | shape + 2 varint, then as the shape says: [key] [values] [condition]
//! key          length varint, bytes
//! BatchAnswer  flags u8, entries u16, then each entry: operation u16, tag u8, and by the tag
//!                0 done | 1 row: layout u16, length u32, bytes | 2 columns: count u16, length u32, values | 3 missing | 4 duplicate: index u16
//!                | 5 condition false | 6 savepoint: number u32 | 7 not executed | 8 failed: failure | 9 done: generated number u64
//! ```
//! A read is two bytes and its key. Rows have heads of fixed width, since the node writes and the client reads millions of them a second.
//!
//! Outside of a transaction (`transaction` 0 in the header) each operation stands for itself. In a transaction they take place in their order.

use crate::WireError;
use crate::filter::column_number;
use crate::read::{Reader, put_varint};
use rauk_types::schema::MAX_COLUMNS;
use rauk_types::{IndexId, TableId};

mod answer;
mod list;
mod request;

pub use answer::{AnswerBuilder, AnswerReader};
pub use list::{OperationList, assemble, assemble_some};
pub use request::{Batch, BatchBuilder, Operation, Operations};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum OpKind {
    Read = 0,
    /// Columns that are not given get their defaults; AUTO_INCREMENT as in SQL. Duplicate: [`Outcome::Duplicate`].
    Insert = 1,
    /// Sets the given columns of the row with this key.
    Update = 2,
    /// Upsert: inserts, or sets the given columns of the row with the same primary key.
    Write = 3,
    Delete = 4,
    /// Adds the values to the given columns (integers, DECIMAL, DOUBLE; out of range is error 1264/1690).
    Increment = 5,
    /// Has neither shape, key nor values.
    Savepoint = 6,
    /// Undoes what was done since the savepoint whose number (of its `Savepoint` outcome) is the key, u32 little-endian.
    RollbackTo = 7,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum LockWish {
    #[default]
    None = 0,
    Shared = 1,
    Exclusive = 2,
    SharedNoWait = 3,
    ExclusiveNoWait = 4,
    SharedSkipLocked = 5,
    ExclusiveSkipLocked = 6,
}

/// What of a row is answered: for reads the row found, for writes the row as it is afterwards (deletes: as it was).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    #[default]
    Nothing,
    /// The whole row as it is stored.
    Row,
    /// These columns, as values in this order.
    Columns(Vec<u16>),
}

/// What operations have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    pub table: TableId,
    /// Version of the definition that keys and columns were made for.
    pub version: u32,
    pub kind: OpKind,
    /// Index of the key: the primary key or a unique one. Of no meaning for `Insert` and `Write`, whose key is in their values.
    pub index: IndexId,
    pub lock: LockWish,
    /// Each operation has a condition on the row as it is ([`Outcome::ConditionFalse`]); `Update`, `Delete`, `Increment`.
    pub conditional: bool,
    /// Columns that values are given for, in their order.
    pub columns: Vec<u16>,
    pub wanted: Wanted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Isolation {
    ReadCommitted = 0,
    RepeatableRead = 1,
    Serializable = 2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchOptions {
    /// The transaction of the header begins with this batch.
    pub begin: bool,
    /// It is committed at the end, if nothing has failed.
    pub commit: bool,
    /// The first operation that fails, a missing row, a duplicate and a false condition included, ends the batch: what it has done is undone, the rest is
    /// [`Outcome::NotExecuted`], nothing is committed. Without it, each operation has its own outcome.
    pub stop_at_failure: bool,
    /// Of a transaction that begins.
    pub isolation: Isolation,
    pub read_only: bool,
    /// 0: the node's default.
    pub lock_wait_ms: u32,
}

impl Default for BatchOptions {
    fn default() -> Self {
        BatchOptions {
            begin: false,
            commit: false,
            stop_at_failure: false,
            isolation: Isolation::RepeatableRead,
            read_only: false,
            lock_wait_ms: 0,
        }
    }
}

/// What became of an operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome<'a> {
    /// Done, and no row was wanted. For `Insert` into a table with AUTO_INCREMENT, the number that was given.
    Done {
        generated: Option<u64>,
    },
    /// Done, and this is the row: as stored, with its layout version.
    Row {
        layout: u16,
        bytes: &'a [u8],
    },
    /// Done, and these are the wanted columns (encoded values, read with [`crate::Values`]).
    Columns {
        count: u16,
        bytes: &'a [u8],
    },
    /// There is no row with this key (or it is locked, with SKIP LOCKED).
    Missing,
    /// A row with the same key is there.
    Duplicate {
        index: IndexId,
    },
    ConditionFalse,
    Savepoint(u32),
    /// An earlier operation ended the batch.
    NotExecuted,
    Failed(crate::Failure),
}

/// An answer's head; entries are read with [`AnswerReader`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    pub committed: bool,
    pub ended: bool,
    pub entries: u16,
}

impl OpKind {
    /// Of a shape: savepoints have none.
    fn of_shape(number: u8) -> Option<OpKind> {
        Some(match number {
            0 => OpKind::Read,
            1 => OpKind::Insert,
            2 => OpKind::Update,
            3 => OpKind::Write,
            4 => OpKind::Delete,
            5 => OpKind::Increment,
            _ => return None,
        })
    }

    /// Whether its operations begin with a key.
    #[inline]
    pub fn has_key(self) -> bool {
        matches!(self, OpKind::Read | OpKind::Update | OpKind::Delete | OpKind::Increment)
    }

    /// Whether its operations have values.
    #[inline]
    pub fn has_values(self) -> bool {
        matches!(self, OpKind::Insert | OpKind::Update | OpKind::Write | OpKind::Increment)
    }

    /// Whether its operations may have a condition.
    pub fn may_be_conditional(self) -> bool {
        matches!(self, OpKind::Update | OpKind::Delete | OpKind::Increment)
    }
}

impl LockWish {
    pub(crate) fn from_number(number: u8) -> Option<LockWish> {
        Some(match number {
            0 => LockWish::None,
            1 => LockWish::Shared,
            2 => LockWish::Exclusive,
            3 => LockWish::SharedNoWait,
            4 => LockWish::ExclusiveNoWait,
            5 => LockWish::SharedSkipLocked,
            6 => LockWish::ExclusiveSkipLocked,
            _ => return None,
        })
    }
}

impl Wanted {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Wanted::Nothing => out.push(0),
            Wanted::Row => out.push(1),
            Wanted::Columns(columns) => {
                out.push(2);
                put_columns(columns, out);
            }
        }
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Wanted, WireError> {
        Ok(match reader.u8()? {
            0 => Wanted::Nothing,
            1 => Wanted::Row,
            2 => Wanted::Columns(columns(reader)?),
            _ => return Err(reader.malformed()),
        })
    }
}

impl Shape {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.table.0.to_le_bytes());
        out.extend_from_slice(&self.version.to_le_bytes());
        out.push(self.kind as u8);
        out.extend_from_slice(&self.index.0.to_le_bytes());
        out.extend_from_slice(&[self.lock as u8, self.conditional.into()]);
        put_columns(&self.columns, out);
        self.wanted.encode(out);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Shape, WireError> {
        let (table, version) = (TableId(reader.u32()?), reader.u32()?);
        let kind = OpKind::of_shape(reader.u8()?).ok_or_else(|| reader.malformed())?;
        let index = IndexId(reader.u16()?);
        let lock = LockWish::from_number(reader.u8()?).ok_or_else(|| reader.malformed())?;
        let conditional = reader.flag()?;
        let columns = columns(reader)?;
        let wanted = Wanted::decode(reader)?;
        if conditional && !kind.may_be_conditional() || !columns.is_empty() && !kind.has_values() {
            return Err(reader.malformed());
        }
        Ok(Shape { table, version, kind, index, lock, conditional, columns, wanted })
    }
}

fn put_columns(columns: &[u16], out: &mut Vec<u8>) {
    assert!(columns.len() <= MAX_COLUMNS, "a table has no {} columns", columns.len());
    put_varint(columns.len() as u32, out);
    columns.iter().for_each(|column| put_varint((*column).into(), out));
}

fn columns(reader: &mut Reader<'_>) -> Result<Vec<u16>, WireError> {
    let count = reader.varint()? as usize;
    if count > MAX_COLUMNS || count > reader.remaining() {
        return Err(reader.malformed());
    }
    (0..count).map(|_| column_number(reader)).collect()
}
