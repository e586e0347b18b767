//! Batches: many operations in one round trip.
//!
//! Operations are encoded as they are added, into one buffer: keys by the table's definition, values after a check against their columns. What operations have in
//! common (table, what is done, which columns) is a *shape*; there are few, and the one that was used last is tried first. So an operation allocates nothing of its own.
//!
//! Mistakes are noticed when an operation is added, and told when the batch is executed, so that adding needs no error handling; the first one counts. A batch is bound to the
//! definitions that its tables had when it was built. When one of them turns out to have changed, the batch is *renewed* without being built again, as long as its keys, columns and
//! conditions mean the same in the new definition; else it fails with [`crate::ErrorKind::SchemaChanged`] and the program builds it again.

mod renew;
mod result;

pub(crate) use result::{Answer, Answers};
pub use result::{BatchResult, Done};

use crate::channel::places::division::{Located, Spot};
use crate::channel::places::map::NOWHERE;
use crate::condition::Condition;
use crate::convert::IntoKey;
use crate::definition::{Opened, Values};
use crate::{Error, ErrorKind, Record, Records, Table};
use rauk_types::error::codes;
use rauk_types::{IndexId, Value, ValueRef};
use rauk_wire::batch::OperationList;
use rauk_wire::{BatchOptions, Filter, LockWish, MAX_OPERATIONS, MAX_PAYLOAD, OpKind, Shape, Wanted};
use smallvec::SmallVec;
use std::sync::Arc;

/// Bytes of operations that one request takes: a payload but for its head and shapes.
const MAX_BYTES: usize = MAX_PAYLOAD - (1 << 20);

/// An operation's number in its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OpId(pub u32);

/// Operations to be sent together. Mistakes (a column that does not exist, a value that does not fit) are noticed when it is executed, and name the operation.
#[derive(Clone, Default)]
pub struct Batch {
    shapes: SmallVec<[Shape; 1]>,
    /// What is known of each shape.
    known: SmallVec<[Known; 1]>,
    /// The shape that was used last.
    last: usize,
    operations: OperationList,
    /// The shape of each operation.
    shape_of: SmallVec<[u16; 8]>,
    /// Where requests end that are full; the last one is not among them.
    full: SmallVec<[Part; 1]>,
    /// The operations before the present request.
    before: Part,
    mistake: Option<Box<Mistake>>,
    writes: bool,
    /// There is more in it than plain reads by primary key.
    mixed: bool,
    /// Where each operation is, for clients that send it to the node that leads it; else empty.
    spots: SmallVec<[Spot; 1]>,
    key: Vec<u8>,
}

/// The table of a shape, as it was when the shape was made.
#[derive(Clone)]
pub(crate) struct Known {
    pub table: Table,
    pub opened: Arc<Opened>,
    generation: u32,
}

/// The first operations of a batch: how many, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Part {
    operations: usize,
    bytes: usize,
}

#[derive(Clone)]
struct Mistake {
    error: Error,
    table: Table,
    generation: u32,
}

/// How columns are named that values are given for.
#[derive(Clone, Copy)]
enum Columns<'a> {
    None,
    Named(&'a [(&'a str, Value)]),
    One(&'a str),
    At(&'a [u16]),
}

#[derive(Clone, Copy)]
enum Answered<'a> {
    Nothing,
    Row,
    Columns(&'a [&'a str]),
}

/// Which index an operation's key is of.
#[derive(Clone, Copy)]
enum By<'a> {
    /// None: the key is in the values.
    Values,
    Primary,
    Index(&'a str),
}

/// What is to be done, before it is known whether the table has it all.
#[derive(Clone, Copy)]
struct Wish<'a> {
    kind: OpKind,
    by: By<'a>,
    lock: LockWish,
    conditional: bool,
    columns: Columns<'a>,
    answered: Answered<'a>,
}

impl<'a> Wish<'a> {
    fn new(kind: OpKind, by: By<'a>) -> Wish<'a> {
        let (lock, answered) = (LockWish::None, Answered::Nothing);
        Wish { kind, by, lock, conditional: false, columns: Columns::None, answered }
    }

    /// Position of the index in the definition.
    #[inline]
    fn index(&self, opened: &Opened) -> Result<usize, Error> {
        match self.by {
            By::Values => Ok(0),
            By::Primary => opened.primary(),
            By::Index(name) => opened.unique(name),
        }
    }

    /// Whether a shape of the same table and kind is what is wished for.
    #[inline]
    fn is(&self, index: IndexId, shape: &Shape, opened: &Opened) -> bool {
        let name = |column: u16| opened.schema.columns[usize::from(column)].name.as_str();
        let columns = match self.columns {
            Columns::None => shape.columns.is_empty(),
            Columns::At(columns) => shape.columns == columns,
            Columns::One(column) => matches!(shape.columns[..], [only] if name(only) == column),
            Columns::Named(values) => {
                values.len() == shape.columns.len() && values.iter().zip(&shape.columns).all(|(v, c)| v.0 == name(*c))
            }
        };
        let answered = match (self.answered, &shape.wanted) {
            (Answered::Nothing, Wanted::Nothing) | (Answered::Row, Wanted::Row) => true,
            (Answered::Columns(names), Wanted::Columns(columns)) => {
                names.len() == columns.len() && names.iter().zip(columns).all(|(n, c)| *n == name(*c))
            }
            _ => false,
        };
        columns && answered && shape.index == index && shape.lock == self.lock && shape.conditional == self.conditional
    }

    fn make(&self, index: usize, opened: &Opened) -> Result<Shape, Error> {
        let position = |name: &str| opened.column(name).map(|position| position as u16);
        let columns = match self.columns {
            Columns::None => Vec::new(),
            Columns::At(columns) => columns.to_vec(),
            Columns::One(column) => vec![position(column)?],
            Columns::Named(values) => values.iter().map(|(name, _)| position(name)).collect::<Result<_, _>>()?,
        };
        for (i, column) in columns.iter().enumerate() {
            if columns[..i].contains(column) {
                let name = &opened.schema.columns[usize::from(*column)].name;
                let message = format!("Column '{name}' specified twice");
                return Err(Error::new(ErrorKind::InvalidValue, codes::FIELD_SPECIFIED_TWICE, message));
            }
        }
        Ok(Shape {
            table: opened.schema.id,
            version: opened.schema.version,
            kind: self.kind,
            index: opened.index_schema(index).id,
            lock: self.lock,
            conditional: self.conditional,
            columns,
            wanted: match self.answered {
                Answered::Nothing => Wanted::Nothing,
                Answered::Row => Wanted::Row,
                Answered::Columns(names) => {
                    Wanted::Columns(names.iter().map(|name| position(name)).collect::<Result<_, _>>()?)
                }
            },
        })
    }
}

/// No key: of operations whose key is in their values.
struct NoKey;

impl IntoKey for NoKey {
    fn values<'a>(&'a self, _into: &mut Values<'a>) {}
}

impl Batch {
    /// The row with this primary key.
    pub fn get(&mut self, table: &Table, key: impl IntoKey) -> OpId {
        let wish = Wish { answered: Answered::Row, ..Wish::new(OpKind::Read, By::Primary) };
        self.add(table, wish, &key, &[], None)
    }

    /// Some columns of the row with this primary key.
    pub fn get_columns(&mut self, table: &Table, key: impl IntoKey, columns: &[&str]) -> OpId {
        let wish = Wish { answered: Answered::Columns(columns), ..Wish::new(OpKind::Read, By::Primary) };
        self.add(table, wish, &key, &[], None)
    }

    /// The row, locked until the transaction ends.
    pub fn get_for_update(&mut self, table: &Table, key: impl IntoKey) -> OpId {
        let wish = Wish::new(OpKind::Read, By::Primary);
        self.add(table, Wish { answered: Answered::Row, lock: LockWish::Exclusive, ..wish }, &key, &[], None)
    }

    /// The row, locked against changes until the transaction ends.
    pub fn get_for_share(&mut self, table: &Table, key: impl IntoKey) -> OpId {
        let wish = Wish::new(OpKind::Read, By::Primary);
        self.add(table, Wish { answered: Answered::Row, lock: LockWish::Shared, ..wish }, &key, &[], None)
    }

    /// The row with this key of a unique index.
    pub fn get_by(&mut self, table: &Table, index: &str, key: impl IntoKey) -> OpId {
        let wish = Wish { answered: Answered::Row, ..Wish::new(OpKind::Read, By::Index(index)) };
        self.add(table, wish, &key, &[], None)
    }

    /// Columns that are not given get their defaults.
    pub fn insert(&mut self, table: &Table, values: &[(&str, Value)]) -> OpId {
        self.add_named(table, Wish::new(OpKind::Insert, By::Values), &NoKey, values, None)
    }

    /// Inserts, or sets these columns of the row with the same primary key.
    pub fn write(&mut self, table: &Table, values: &[(&str, Value)]) -> OpId {
        self.add_named(table, Wish::new(OpKind::Write, By::Values), &NoKey, values, None)
    }

    /// Sets columns of the row with this primary key.
    pub fn update(&mut self, table: &Table, key: impl IntoKey, values: &[(&str, Value)]) -> OpId {
        self.add_named(table, Wish::new(OpKind::Update, By::Primary), &key, values, None)
    }

    /// The same if the row, as it is, fulfils a condition.
    pub fn update_if(
        &mut self,
        table: &Table,
        key: impl IntoKey,
        values: &[(&str, Value)],
        condition: Condition,
    ) -> OpId {
        self.add_named(table, Wish::new(OpKind::Update, By::Primary), &key, values, Some(&condition))
    }

    /// Adds to a number; the outcome is the row as it is afterwards.
    pub fn increment(&mut self, table: &Table, key: impl IntoKey, column: &str, by: impl Into<Value>) -> OpId {
        let wish = Wish::new(OpKind::Increment, By::Primary);
        let wish = Wish { columns: Columns::One(column), answered: Answered::Row, ..wish };
        self.add(table, wish, &key, &[by.into().as_ref()], None)
    }

    pub fn delete(&mut self, table: &Table, key: impl IntoKey) -> OpId {
        self.add(table, Wish::new(OpKind::Delete, By::Primary), &key, &[], None)
    }

    /// Deletes the row if it, as it is, fulfils a condition.
    pub fn delete_if(&mut self, table: &Table, key: impl IntoKey, condition: Condition) -> OpId {
        self.add(table, Wish::new(OpKind::Delete, By::Primary), &key, &[], Some(&condition))
    }

    pub fn insert_record<R: Record>(&mut self, records: &Records<R>, record: &R) -> OpId {
        self.add_record(records, OpKind::Insert, record)
    }

    pub fn write_record<R: Record>(&mut self, records: &Records<R>, record: &R) -> OpId {
        self.add_record(records, OpKind::Write, record)
    }

    /// Sets all columns of the record but the key.
    pub fn update_record<R: Record>(&mut self, records: &Records<R>, record: &R) -> OpId {
        self.add_record(records, OpKind::Update, record)
    }

    pub fn len(&self) -> usize {
        self.shape_of.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the operations as they will be sent.
    pub fn bytes(&self) -> usize {
        self.operations.bytes().len()
    }

    fn add_record<R: Record>(&mut self, records: &Records<R>, kind: OpKind, record: &R) -> OpId {
        let table = records.table();
        let mapping = match records.mapping() {
            Ok(mapping) => mapping,
            Err(error) => return self.wrong(table, kind, error),
        };
        let mut values = Vec::with_capacity(mapping.columns.len());
        record.values(&mut values);
        if kind != OpKind::Update {
            let wish = Wish { columns: Columns::At(&mapping.columns), ..Wish::new(kind, By::Values) };
            return self.add(table, wish, &NoKey, &values, None);
        }
        let key: Values<'_> = mapping.key.iter().map(|field| values[*field]).collect();
        let others: SmallVec<[ValueRef<'_>; 16]> = mapping.others.iter().map(|field| values[*field]).collect();
        let wish = Wish { columns: Columns::At(&mapping.other_columns), ..Wish::new(kind, By::Primary) };
        self.add(table, wish, &Borrowed(key), &others, None)
    }

    fn add_named(
        &mut self,
        table: &Table,
        wish: Wish<'_>,
        key: &impl IntoKey,
        values: &[(&str, Value)],
        condition: Option<&Condition>,
    ) -> OpId {
        let refs: SmallVec<[ValueRef<'_>; 8]> = values.iter().map(|(_, value)| value.as_ref()).collect();
        self.add(table, Wish { columns: Columns::Named(values), ..wish }, key, &refs, condition)
    }

    #[inline]
    fn add(
        &mut self,
        table: &Table,
        wish: Wish<'_>,
        key: &impl IntoKey,
        values: &[ValueRef<'_>],
        condition: Option<&Condition>,
    ) -> OpId {
        let wish = Wish { conditional: condition.is_some(), ..wish };
        match self.try_add(table, wish, key, values, condition) {
            Ok(()) => OpId(self.shape_of.len() as u32 - 1),
            Err(error) => self.wrong(table, wish.kind, error),
        }
    }

    #[inline]
    fn try_add(
        &mut self,
        table: &Table,
        wish: Wish<'_>,
        key: &impl IntoKey,
        values: &[ValueRef<'_>],
        condition: Option<&Condition>,
    ) -> Result<(), Error> {
        let (number, index) = self.shape(table, wish)?;
        if self.operations.len() == MAX_OPERATIONS {
            self.close_part();
        }
        let opened = &self.known[number].opened;
        let number = number as u16;
        let mut bucket = NOWHERE;
        self.key.clear();
        if !matches!(wish.by, By::Values) {
            opened.encode_key(index, key, &mut self.key)?;
            if matches!(wish.by, By::Primary) {
                bucket = opened.bucket(&self.key);
            }
        }
        let before = self.operations.bytes().len();
        if values.is_empty() && condition.is_none() && !wish.kind.has_values() {
            self.operations.key(number, &self.key, None);
        } else {
            let columns = &self.shapes[usize::from(number)].columns;
            let mut fitting: SmallVec<[ValueRef<'_>; 8]> = SmallVec::new();
            for (column, value) in columns.iter().zip(values) {
                fitting.push(match wish.kind {
                    // A number to be added need not be one that the column holds: 1 less in an unsigned column.
                    OpKind::Increment if opened.adds(usize::from(*column), *value) => *value,
                    // It asks for a number.
                    OpKind::Insert | OpKind::Write if value.is_null() && opened.is_numbered(usize::from(*column)) => {
                        *value
                    }
                    _ => opened.fit(usize::from(*column), *value)?,
                });
            }
            let filter: Option<Filter> = condition.map(|condition| condition.resolve(&opened.schema)).transpose()?;
            match wish.kind.has_key() {
                true if opened.is_counted(columns) => bucket = NOWHERE,
                true => {}
                false => bucket = opened.bucket_of_values(columns, &fitting, &mut self.key),
            }
            match (wish.kind.has_key(), wish.kind.has_values()) {
                (true, true) => self.operations.key_and_values(number, &self.key, fitting, filter.as_ref()),
                (true, false) => self.operations.key(number, &self.key, filter.as_ref()),
                (false, _) => self.operations.values(number, fitting),
            }
        }
        let after = self.operations.bytes().len();
        if after - self.before.bytes > MAX_BYTES {
            if after - before > MAX_BYTES {
                let message =
                    format!("Got a packet bigger than '{MAX_BYTES}' bytes: one operation of {} bytes", after - before);
                return Err(Error::new(ErrorKind::InvalidValue, codes::NET_PACKET_TOO_LARGE, message));
            }
            // It belongs to the next request.
            let operations = self.shape_of.len();
            self.full.push(Part { operations, bytes: before });
            self.before = Part { operations, bytes: before };
            self.operations.begin_part(1);
        }
        if opened.is_placed() {
            self.spots.push(Spot { end: (after - self.before.bytes) as u32, bucket });
        }
        self.shape_of.push(number);
        self.writes |= wish.kind != OpKind::Read;
        self.mixed |= wish.kind != OpKind::Read || wish.lock != LockWish::None || !matches!(wish.by, By::Primary);
        Ok(())
    }

    /// What follows goes into another request.
    fn close_part(&mut self) {
        self.before = Part { operations: self.shape_of.len(), bytes: self.operations.bytes().len() };
        self.full.push(self.before);
        self.operations.begin_part(0);
    }

    /// The wish's shape, made if there is none, and the position of its index.
    #[inline]
    fn shape(&mut self, table: &Table, wish: Wish<'_>) -> Result<(usize, usize), Error> {
        let generation = table.generation();
        let mut opened = None;
        let last = self.last;
        let all = (last..self.known.len()).chain(0..last.min(self.known.len()));
        for number in all {
            let known = &self.known[number];
            if !known.table.is(table) || known.generation != generation {
                continue;
            }
            opened = Some(&known.opened);
            let shape = &self.shapes[number];
            if shape.kind != wish.kind {
                continue;
            }
            let index = wish.index(&known.opened)?;
            if wish.is(known.opened.index_schema(index).id, shape, &known.opened) {
                self.last = number;
                return Ok((number, index));
            }
        }
        let opened = opened.cloned();
        self.new_shape(table, wish, generation, opened)
    }

    #[cold]
    fn new_shape(
        &mut self,
        table: &Table,
        wish: Wish<'_>,
        generation: u32,
        opened: Option<Arc<Opened>>,
    ) -> Result<(usize, usize), Error> {
        let opened = opened.unwrap_or_else(|| table.current());
        let index = wish.index(&opened)?;
        if self.shapes.len() == usize::from(u16::MAX) {
            let message = "a batch has at most 65 535 kinds of operations";
            return Err(Error::new(ErrorKind::Refused, codes::UNKNOWN_ERROR, message));
        }
        let shape = wish.make(index, &opened)?;
        self.shapes.push(shape);
        self.known.push(Known { table: table.clone(), opened, generation });
        self.last = self.shapes.len() - 1;
        Ok((self.last, index))
    }

    /// Keeps the first mistake.
    #[cold]
    pub(crate) fn wrong(&mut self, table: &Table, kind: OpKind, error: Error) -> OpId {
        let number = self.shape_of.len() as u32;
        self.shape_of.push(u16::MAX);
        if self.mistake.is_none() {
            let place = format!("{}, operation {number} ({})", table.name(), name_of(kind));
            let generation = table.generation();
            self.mistake = Some(Box::new(Mistake { error: error.at(&place), table: table.clone(), generation }));
        }
        OpId(number)
    }

    pub(crate) fn savepoint(&mut self) {
        self.operations.savepoint();
        self.shape_of.push(u16::MAX);
    }

    pub(crate) fn rollback_to(&mut self, savepoint: u32) {
        self.operations.rollback_to(savepoint);
        self.shape_of.push(u16::MAX);
    }

    /// Whether any of it changes anything.
    pub(crate) fn writes(&self) -> bool {
        self.writes
    }

    /// How many requests it takes.
    pub(crate) fn parts(&self) -> usize {
        self.full.len() + 1
    }

    /// Appends the payload of one of its requests.
    pub(crate) fn build(&self, part: usize, options: &BatchOptions, out: Vec<u8>) -> Vec<u8> {
        let start = if part == 0 { Part::default() } else { self.full[part - 1] };
        let end = self
            .full
            .get(part)
            .copied()
            .unwrap_or(Part { operations: self.shape_of.len(), bytes: self.operations.bytes().len() });
        let operations = &self.operations.bytes()[start.bytes..end.bytes];
        rauk_wire::batch::assemble(out, options, &self.shapes, end.operations - start.operations, operations)
    }

    /// Where the operations of one of its requests are.
    pub(crate) fn located(&self, part: usize) -> Located<'_> {
        let (first, end) = self.range(part);
        // Savepoints, which are nowhere, are in no batch that is dealt out.
        let operations = self.spots.get(first..end).filter(|_| self.spots.len() == self.len()).unwrap_or(&[]);
        Located { operations, divisible: !self.mixed, writes: self.writes }
    }

    /// Appends the payload of one share of a request: of the operations that `shares` says are this one's.
    pub(crate) fn build_share(
        &self,
        part: usize,
        options: &BatchOptions,
        (shares, share): (&[u8], u8),
        out: Vec<u8>,
    ) -> Vec<u8> {
        let (first, end) = self.range(part);
        let start = if part == 0 { 0 } else { self.full[part - 1].bytes };
        let bytes = &self.operations.bytes()[start..];
        let spots = &self.spots[first..end];
        let mine = |at: &usize| shares[*at] == share;
        let piece = |at: usize| {
            let begin = if at == 0 { 0 } else { spots[at - 1].end };
            &bytes[begin as usize..spots[at].end as usize]
        };
        let count = shares.iter().filter(|owner| **owner == share).count();
        let pieces = (0..spots.len()).filter(mine).map(piece);
        rauk_wire::batch::assemble_some(out, options, &self.shapes, count, pieces)
    }

    /// Number of the first operation of a request, and of the first behind it.
    pub(crate) fn range(&self, part: usize) -> (usize, usize) {
        let start = if part == 0 { 0 } else { self.full[part - 1].operations };
        (start, self.full.get(part).map_or(self.shape_of.len(), |part| part.operations))
    }
}

/// Values that stand for a key.
struct Borrowed<'v>(Values<'v>);

impl IntoKey for Borrowed<'_> {
    fn values<'a>(&'a self, into: &mut Values<'a>) {
        into.extend_from_slice(&self.0);
    }
}

fn name_of(kind: OpKind) -> &'static str {
    match kind {
        OpKind::Read => "get",
        OpKind::Insert => "insert",
        OpKind::Update => "update",
        OpKind::Write => "write",
        OpKind::Delete => "delete",
        OpKind::Increment => "increment",
        OpKind::Savepoint => "savepoint",
        OpKind::RollbackTo => "rollback to savepoint",
    }
}

#[cfg(all(test, feature = "embedded"))]
mod tests;
