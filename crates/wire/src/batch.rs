//! Batches: many operations in one request.
//!
//! Operations that are alike share a *shape* (table, what is done, which columns), which stands once at the front of the batch; an
//! operation is then hardly more than its key. The answer has an entry for each operation, in any order: an entry names its operation, so that the
//! node can go through partitions one after the other and write rows straight from where they are stored into the answer.
//!
//! Keys are encoded by the sender ([`rauk_types::KeyDef`]) and checked by the receiver; rows are answered as they are stored, with their layout, and read
//! by the definition that the client has. Values to be written travel as values, since only the node may say that they are right.
//!
//! Outside of a transaction (`transaction` 0 in the header) each operation stands for itself. In a transaction they take place in their order.

use crate::WireError;
use crate::filter::Filter;
use rauk_types::{IndexId, TableId, ValueRef};

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

/// Writes a batch's payload at the end of a buffer (a frame made by [`crate::frame::begin`], or an empty one).
pub struct BatchBuilder {
    _private: (),
}

impl BatchBuilder {
    /// All shapes stand at the front.
    pub fn new(_out: Vec<u8>, _options: &BatchOptions, _shapes: &[Shape]) -> BatchBuilder {
        todo!()
    }

    /// `Read`, `Delete`. Gives the operation's number within the batch, as all of these do.
    pub fn key(&mut self, _shape: u16, _key: &[u8], _condition: Option<&Filter>) -> u16 {
        todo!()
    }

    /// `Insert`, `Write`: one value for each of the shape's columns.
    pub fn values<'v>(&mut self, _shape: u16, _values: impl IntoIterator<Item = ValueRef<'v>>) -> u16 {
        todo!()
    }

    /// `Update`, `Increment`.
    pub fn key_and_values<'v>(
        &mut self,
        _shape: u16,
        _key: &[u8],
        _values: impl IntoIterator<Item = ValueRef<'v>>,
        _condition: Option<&Filter>,
    ) -> u16 {
        todo!()
    }

    pub fn savepoint(&mut self) -> u16 {
        todo!()
    }

    pub fn rollback_to(&mut self, _savepoint: u32) -> u16 {
        todo!()
    }

    pub fn len(&self) -> usize {
        todo!()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes so far.
    pub fn bytes(&self) -> usize {
        todo!()
    }

    pub fn finish(self) -> Vec<u8> {
        todo!()
    }
}

/// A batch as it arrived: options and shapes read, operations still to be.
pub struct Batch<'a> {
    pub options: BatchOptions,
    pub shapes: Vec<Shape>,
    pub operations: usize,
    _rest: &'a [u8],
}

/// One operation; `values` yields one value for each of the shape's columns.
pub struct Operation<'a> {
    /// `None` for `Savepoint` and `RollbackTo`.
    pub shape: Option<u16>,
    pub kind: OpKind,
    pub key: &'a [u8],
    pub values: smallvals::Values<'a>,
    pub condition: Option<Filter>,
}

/// The values of one operation.
pub mod smallvals {
    use crate::WireError;
    use rauk_types::ValueRef;

    /// Still encoded; [`Values::read`] appends them to a list.
    #[derive(Clone, Copy, Debug)]
    pub struct Values<'a> {
        pub(crate) count: usize,
        pub(crate) bytes: &'a [u8],
    }

    impl<'a> Values<'a> {
        pub fn len(&self) -> usize {
            self.count
        }

        pub fn is_empty(&self) -> bool {
            self.count == 0
        }

        pub fn read(&self, _into: &mut Vec<ValueRef<'a>>) -> Result<(), WireError> {
            let _ = self.bytes;
            todo!()
        }
    }
}

impl<'a> Batch<'a> {
    pub fn parse(_payload: &'a [u8]) -> Result<Batch<'a>, WireError> {
        todo!()
    }

    /// The operations in their order; ends with the first error, also when something follows the last.
    pub fn operations(&self) -> impl Iterator<Item = Result<Operation<'a>, WireError>> + '_ {
        std::iter::empty()
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
    /// Done, and these are the wanted columns (encoded values, read with [`crate::value::get`]).
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

/// Writes an answer's payload at the end of a buffer.
pub struct AnswerBuilder {
    _private: (),
}

impl AnswerBuilder {
    pub fn new(_out: Vec<u8>) -> AnswerBuilder {
        todo!()
    }

    pub fn done(&mut self, _operation: u16, _generated: Option<u64>) {
        todo!()
    }

    /// Copies the row's bytes: the only copy between the row store and the socket.
    #[inline]
    pub fn row(&mut self, _operation: u16, _layout: u16, _bytes: &[u8]) {
        todo!()
    }

    pub fn columns<'v>(&mut self, _operation: u16, _values: impl ExactSizeIterator<Item = ValueRef<'v>>) {
        todo!()
    }

    pub fn missing(&mut self, _operation: u16) {
        todo!()
    }

    pub fn duplicate(&mut self, _operation: u16, _index: IndexId) {
        todo!()
    }

    pub fn condition_false(&mut self, _operation: u16) {
        todo!()
    }

    pub fn savepoint(&mut self, _operation: u16, _number: u32) {
        todo!()
    }

    pub fn not_executed(&mut self, _operation: u16) {
        todo!()
    }

    pub fn failed(&mut self, _operation: u16, _failure: &crate::Failure) {
        todo!()
    }

    /// Bytes so far.
    pub fn bytes(&self) -> usize {
        todo!()
    }

    /// Takes back everything from the `bytes()` of then on: when a statement is undone its answers are, too.
    pub fn truncate(&mut self, _bytes: usize) {
        todo!()
    }

    /// `committed`: the batch asked for a commit and it took place. `ended`: there is no transaction any more.
    pub fn finish(self, _committed: bool, _ended: bool) -> Vec<u8> {
        todo!()
    }
}

/// An answer's head; entries are read with [`AnswerReader`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    pub committed: bool,
    pub ended: bool,
    pub entries: u16,
}

/// Gives the entries in the order in which they were written: (operation, outcome).
pub struct AnswerReader<'a> {
    pub answer: Answer,
    _rest: &'a [u8],
}

impl<'a> AnswerReader<'a> {
    pub fn parse(_payload: &'a [u8]) -> Result<AnswerReader<'a>, WireError> {
        todo!()
    }

    /// `None` after the last.
    #[inline]
    pub fn next_entry(&mut self) -> Result<Option<(u16, Outcome<'a>)>, WireError> {
        todo!()
    }
}
