//! The request's side of a batch: written by programs, read by nodes.
//!
//! An operation on a key is read without an allocation; only a condition, where the shape says that there is one, takes some. What is read was not yet checked against the table:
//! positions of columns may not exist there, keys may not be keys, values may not fit.

use super::{BatchOptions, Isolation, OpKind, Shape};
use crate::filter::Filter;
use crate::read::{Reader, put_varint};
use crate::{MAX_KEY, MAX_OPERATIONS, Values, WireError};
use rauk_types::ValueRef;

const BEGIN: u8 = 1;
const COMMIT: u8 = 2;
const STOP_AT_FAILURE: u8 = 4;
const READ_ONLY: u8 = 8;

pub(super) const SAVEPOINT: u32 = 0;
pub(super) const ROLLBACK_TO: u32 = 1;
pub(super) const FIRST_SHAPE: u32 = 2;

/// The fewest bytes that a shape takes.
const SHAPE_BYTES: usize = 15;

/// Writes a batch's payload at the end of a buffer (a frame made by [`crate::frame::begin`], or an empty one).
///
/// Panics when what is added does not go with its shape, or is more than [`MAX_OPERATIONS`]. Keys longer than [`MAX_KEY`] are for the caller to refuse: a node
/// takes them for garbage.
pub struct BatchBuilder {
    out: Vec<u8>,
    start: usize,
    forms: Vec<Form>,
    operations: usize,
}

/// What of a shape says how its operations look.
#[derive(Clone, Copy)]
struct Form {
    kind: OpKind,
    conditional: bool,
    columns: u16,
}

/// Everything before the operations.
pub(super) fn put_head(options: &BatchOptions, operations: u16, shapes: &[Shape], out: &mut Vec<u8>) {
    let flags = [
        (options.begin, BEGIN),
        (options.commit, COMMIT),
        (options.stop_at_failure, STOP_AT_FAILURE),
        (options.read_only, READ_ONLY),
    ];
    out.push(flags.iter().filter(|(set, _)| *set).map(|(_, flag)| flag).sum());
    out.push(options.isolation as u8);
    out.extend_from_slice(&operations.to_le_bytes());
    out.extend_from_slice(&options.lock_wait_ms.to_le_bytes());
    put_varint(u16::try_from(shapes.len()).expect("at most 65 535 shapes").into(), out);
    shapes.iter().for_each(|shape| shape.encode(out));
}

impl BatchBuilder {
    /// All shapes stand at the front.
    pub fn new(mut out: Vec<u8>, options: &BatchOptions, shapes: &[Shape]) -> BatchBuilder {
        let start = out.len();
        put_head(options, 0, shapes, &mut out);
        let form = |shape: &Shape| {
            assert!(!shape.conditional || shape.kind.may_be_conditional(), "{:?} with a condition", shape.kind);
            assert!(shape.columns.is_empty() || shape.kind.has_values(), "{:?} with values", shape.kind);
            Form { kind: shape.kind, conditional: shape.conditional, columns: shape.columns.len() as u16 }
        };
        BatchBuilder { out, start, forms: shapes.iter().map(form).collect(), operations: 0 }
    }

    /// `Read`, `Delete`. Gives the operation's number within the batch, as all of these do.
    #[inline]
    pub fn key(&mut self, shape: u16, key: &[u8], condition: Option<&Filter>) -> u16 {
        let form = self.forms[usize::from(shape)];
        assert!(form.kind.has_key() && !form.kind.has_values(), "{:?} has more than a key", form.kind);
        put_key(shape, key, &mut self.out);
        self.put_condition(form, condition);
        self.count()
    }

    /// `Insert`, `Write`: one value for each of the shape's columns.
    pub fn values<'v>(&mut self, shape: u16, values: impl IntoIterator<Item = ValueRef<'v>>) -> u16 {
        let form = self.forms[usize::from(shape)];
        assert!(form.kind.has_values() && !form.kind.has_key(), "{:?} has not only values", form.kind);
        put_varint(FIRST_SHAPE + u32::from(shape), &mut self.out);
        self.put_values(form, values);
        self.count()
    }

    /// `Update`, `Increment`.
    pub fn key_and_values<'v>(
        &mut self,
        shape: u16,
        key: &[u8],
        values: impl IntoIterator<Item = ValueRef<'v>>,
        condition: Option<&Filter>,
    ) -> u16 {
        let form = self.forms[usize::from(shape)];
        assert!(form.kind.has_key() && form.kind.has_values(), "{:?} has not key and values", form.kind);
        put_key(shape, key, &mut self.out);
        self.put_values(form, values);
        self.put_condition(form, condition);
        self.count()
    }

    pub fn savepoint(&mut self) -> u16 {
        put_varint(SAVEPOINT, &mut self.out);
        self.count()
    }

    pub fn rollback_to(&mut self, savepoint: u32) -> u16 {
        put_varint(ROLLBACK_TO, &mut self.out);
        self.out.extend_from_slice(&savepoint.to_le_bytes());
        self.count()
    }

    fn put_values<'v>(&mut self, form: Form, values: impl IntoIterator<Item = ValueRef<'v>>) {
        let mut count = 0;
        for value in values {
            crate::value::put(value, &mut self.out);
            count += 1;
        }
        assert_eq!(count, usize::from(form.columns), "one value for each column of the shape");
    }

    #[inline]
    fn put_condition(&mut self, form: Form, condition: Option<&Filter>) {
        assert_eq!(form.conditional, condition.is_some(), "a condition where the shape has one");
        if let Some(filter) = condition {
            filter.encode(&mut self.out);
        }
    }

    #[inline]
    fn count(&mut self) -> u16 {
        assert!(self.operations < MAX_OPERATIONS, "more operations than a batch has");
        self.operations += 1;
        (self.operations - 1) as u16
    }

    pub fn len(&self) -> usize {
        self.operations
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes so far. Whoever builds stops before they are more than [`crate::MAX_PAYLOAD`].
    pub fn bytes(&self) -> usize {
        self.out.len() - self.start
    }

    pub fn finish(mut self) -> Vec<u8> {
        self.out[self.start + 2..self.start + 4].copy_from_slice(&(self.operations as u16).to_le_bytes());
        self.out
    }
}

/// Shape and key of an operation.
#[inline]
pub(super) fn put_key(shape: u16, key: &[u8], out: &mut Vec<u8>) {
    let number = FIRST_SHAPE + u32::from(shape);
    if number < 0x80 && key.len() < 0x80 {
        out.reserve(2 + key.len());
        out.extend_from_slice(&[number as u8, key.len() as u8]);
    } else {
        put_varint(number, out);
        put_varint(u32::try_from(key.len()).expect("a payload is bounded"), out);
    }
    out.extend_from_slice(key);
}

/// A batch as it arrived: options and shapes read, operations still to be.
#[derive(Clone, Debug)]
pub struct Batch<'a> {
    pub options: BatchOptions,
    pub shapes: Vec<Shape>,
    pub operations: usize,
    rest: Reader<'a>,
}

/// One operation; `values` yields one value for each of the shape's columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation<'a> {
    /// `None` for `Savepoint` and `RollbackTo`.
    pub shape: Option<u16>,
    pub kind: OpKind,
    pub key: &'a [u8],
    pub values: Values<'a>,
    /// Behind a pointer, so that operations without one are small.
    pub condition: Option<Box<Filter>>,
}

impl<'a> Batch<'a> {
    pub fn parse(payload: &'a [u8]) -> Result<Batch<'a>, WireError> {
        let mut rest = Reader::new(payload, "batch");
        let (flags, isolation, operations) = (rest.u8()?, rest.u8()?, usize::from(rest.u16()?));
        let isolation = match isolation {
            0 => Isolation::ReadCommitted,
            1 => Isolation::RepeatableRead,
            2 => Isolation::Serializable,
            _ => return Err(rest.malformed()),
        };
        let options = BatchOptions {
            begin: flags & BEGIN != 0,
            commit: flags & COMMIT != 0,
            stop_at_failure: flags & STOP_AT_FAILURE != 0,
            isolation,
            read_only: flags & READ_ONLY != 0,
            lock_wait_ms: rest.u32()?,
        };
        let shapes = rest.varint()? as usize;
        if flags >= READ_ONLY << 1 || shapes > usize::from(u16::MAX) || shapes > rest.remaining() / SHAPE_BYTES {
            return Err(rest.malformed());
        }
        let shapes: Vec<Shape> = (0..shapes).map(|_| Shape::decode(&mut rest)).collect::<Result<_, _>>()?;
        // Each operation takes a byte at least.
        if operations > rest.remaining() {
            return Err(rest.malformed());
        }
        Ok(Batch { options, shapes, operations, rest })
    }

    /// The operations in their order; ends with the first error, also when something follows the last.
    #[inline]
    pub fn operations(&self) -> Operations<'_, 'a> {
        Operations { shapes: &self.shapes, rest: self.rest, left: self.operations, ended: false }
    }
}

/// See [`Batch::operations`].
pub struct Operations<'b, 'a> {
    shapes: &'b [Shape],
    rest: Reader<'a>,
    left: usize,
    ended: bool,
}

impl<'a> Operations<'_, 'a> {
    /// Operations that are only a key are read here, in the caller's loop; all others behind a call.
    #[inline(always)]
    fn operation(&mut self) -> Result<Operation<'a>, WireError> {
        let number = self.rest.varint()?;
        let shape = number.wrapping_sub(FIRST_SHAPE);
        let Some(form) = self.shapes.get(shape as usize) else {
            return self.without_shape(number);
        };
        let (shape, kind) = (Some(shape as u16), form.kind);
        if kind.has_values() || form.conditional {
            return self.more_than_a_key(shape, form);
        }
        Ok(Operation { shape, kind, key: self.key()?, values: Values::new(0, &[]), condition: None })
    }

    #[inline(always)]
    fn key(&mut self) -> Result<&'a [u8], WireError> {
        let key = self.rest.prefixed()?;
        if key.len() > MAX_KEY { Err(self.rest.malformed()) } else { Ok(key) }
    }

    #[inline(never)]
    fn more_than_a_key(&mut self, shape: Option<u16>, form: &Shape) -> Result<Operation<'a>, WireError> {
        let kind = form.kind;
        let key = if kind.has_key() { self.key()? } else { &[] };
        let values = Values::take(&mut self.rest, form.columns.len())?;
        let condition = if form.conditional { Some(Box::new(Filter::decode(&mut self.rest)?)) } else { None };
        Ok(Operation { shape, kind, key, values, condition })
    }

    #[cold]
    fn without_shape(&mut self, number: u32) -> Result<Operation<'a>, WireError> {
        let (kind, key) = match number {
            SAVEPOINT => (OpKind::Savepoint, &[][..]),
            ROLLBACK_TO => (OpKind::RollbackTo, self.rest.bytes(4)?),
            _ => return Err(self.rest.malformed()),
        };
        Ok(Operation { shape: None, kind, key, values: Values::new(0, &[]), condition: None })
    }
}

impl<'a> Iterator for Operations<'_, 'a> {
    type Item = Result<Operation<'a>, WireError>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            if std::mem::replace(&mut self.ended, true) {
                return None;
            }
            return self.rest.end().err().map(Err);
        }
        self.left -= 1;
        match self.operation() {
            Ok(operation) => Some(Ok(operation)),
            Err(error) => {
                (self.left, self.ended) = (0, true);
                Some(Err(error))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CompareOp, LockWish, Wanted};
    use rauk_types::{IndexId, TableId, Value};

    fn shape(kind: OpKind, columns: &[u16]) -> Shape {
        Shape {
            table: TableId(7),
            version: 3,
            kind,
            index: IndexId::PRIMARY,
            lock: LockWish::None,
            conditional: false,
            columns: columns.to_vec(),
            wanted: Wanted::Row,
        }
    }

    #[test]
    fn a_read_is_two_bytes_and_its_key() {
        let mut builder = BatchBuilder::new(Vec::new(), &BatchOptions::default(), &[shape(OpKind::Read, &[])]);
        let before = builder.bytes();
        assert_eq!(builder.key(0, b"12345678", None), 0);
        assert_eq!(builder.bytes() - before, 10);
        assert_eq!(builder.key(0, &[7; 200], None), 1);
        let payload = builder.finish();
        let batch = Batch::parse(&payload).unwrap();
        let keys: Vec<&[u8]> = batch.operations().map(|operation| operation.unwrap().key).collect();
        assert_eq!(keys, [&b"12345678"[..], &[7; 200]]);
    }

    #[test]
    fn appends_behind_what_is_there() {
        let mut builder = BatchBuilder::new(vec![9; 88], &BatchOptions::default(), &[shape(OpKind::Delete, &[])]);
        builder.key(0, b"k", None);
        let frame = builder.finish();
        assert_eq!(frame[..88], [9; 88]);
        assert_eq!(Batch::parse(&frame[88..]).unwrap().operations, 1);
    }

    #[test]
    fn all_kinds_in_their_order() {
        let condition = Filter::Compare { column: 1, op: CompareOp::Less, value: Value::Int(5) };
        let conditional = Shape { conditional: true, ..shape(OpKind::Update, &[2, 0]) };
        let shapes = [shape(OpKind::Read, &[]), shape(OpKind::Insert, &[0, 1]), conditional];
        let mut builder = BatchBuilder::new(Vec::new(), &BatchOptions::default(), &shapes);
        builder.values(1, [ValueRef::Int(1), ValueRef::Str("a")]);
        assert_eq!(builder.savepoint(), 1);
        builder.key_and_values(2, b"key", [ValueRef::Null, ValueRef::Double(0.5)], Some(&condition));
        builder.rollback_to(77);
        assert_eq!(builder.key(0, b"", None), 4);
        let payload = builder.finish();
        let batch = Batch::parse(&payload).unwrap();
        assert_eq!((batch.shapes.as_slice(), batch.operations), (&shapes[..], 5));
        let operations: Vec<Operation<'_>> = batch.operations().map(Result::unwrap).collect();
        let kinds: Vec<OpKind> = operations.iter().map(|operation| operation.kind).collect();
        assert_eq!(kinds, [OpKind::Insert, OpKind::Savepoint, OpKind::Update, OpKind::RollbackTo, OpKind::Read]);
        assert_eq!(operations[2].condition.as_deref(), Some(&condition));
        assert_eq!(operations[3].key, 77u32.to_le_bytes());
        let mut values = Vec::new();
        operations[2].values.read(&mut values).unwrap();
        assert_eq!(values, [ValueRef::Null, ValueRef::Double(0.5)]);
    }

    #[test]
    fn counts_that_lie_allocate_nothing() {
        let payload = [0, 1, 1, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0x03, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert!(Batch::parse(&payload).is_err(), "65 535 shapes in 20 bytes");
        let mut builder = BatchBuilder::new(Vec::new(), &BatchOptions::default(), &[shape(OpKind::Read, &[])]);
        builder.key(0, b"k", None);
        let mut payload = builder.finish();
        payload[2..4].copy_from_slice(&u16::MAX.to_le_bytes());
        assert!(Batch::parse(&payload).is_err(), "65 535 operations in three bytes");
    }

    #[test]
    fn what_follows_the_last_operation_is_an_error() {
        let mut builder = BatchBuilder::new(Vec::new(), &BatchOptions::default(), &[shape(OpKind::Read, &[])]);
        builder.key(0, b"k", None);
        let mut payload = builder.finish();
        payload.push(0);
        let batch = Batch::parse(&payload).unwrap();
        let outcomes: Vec<bool> = batch.operations().map(|operation| operation.is_ok()).collect();
        assert_eq!(outcomes, [true, false]);
    }

    #[test]
    fn keys_and_shapes_out_of_bounds() {
        let mut builder = BatchBuilder::new(Vec::new(), &BatchOptions::default(), &[shape(OpKind::Read, &[])]);
        builder.key(0, &vec![1; MAX_KEY + 1], None);
        let payload = builder.finish();
        assert!(Batch::parse(&payload).unwrap().operations().next().unwrap().is_err(), "too long a key");
        let mut builder = BatchBuilder::new(Vec::new(), &BatchOptions::default(), &[shape(OpKind::Read, &[])]);
        builder.key(0, b"k", None);
        let mut payload = builder.finish();
        let at = payload.len() - 3;
        payload[at] = 3;
        assert!(Batch::parse(&payload).unwrap().operations().next().unwrap().is_err(), "no such shape");
    }

    #[test]
    #[should_panic(expected = "one value for each column")]
    fn values_that_do_not_go_with_the_shape() {
        let mut builder = BatchBuilder::new(Vec::new(), &BatchOptions::default(), &[shape(OpKind::Insert, &[0, 1])]);
        builder.values(0, [ValueRef::Null]);
    }
}
