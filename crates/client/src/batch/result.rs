//! What became of a batch.
//!
//! The answer's entries are walked through once, and where each operation's is gets noted; rows stay where they are in the answer's bytes, which they share, and
//! are decoded when they are asked for.

use super::{Batch, Known, OpId};
use crate::row::{Columns, RowRef};
use crate::{Error, ErrorKind, Record, Records, Row};
use bytes::Bytes;
use rauk_types::IndexId;
use rauk_types::error::codes;
use rauk_wire::{AnswerReader, Failure, Outcome, Shape, Wanted};
use smallvec::SmallVec;
use std::sync::Arc;

/// What became of an operation.
#[derive(Debug)]
pub enum Done {
    /// A write took place; the AUTO_INCREMENT number, if one was made.
    Done(Option<u64>),
    Row(Row),
    /// There is no such row.
    Missing,
    Duplicate {
        index: String,
    },
    ConditionFalse,
    /// An earlier operation of the batch had failed.
    NotExecuted,
}

/// Where an operation's outcome is.
#[derive(Clone, Copy, Debug)]
enum Entry {
    Done(Option<u64>),
    Row {
        layout: u16,
        start: u32,
        length: u32,
    },
    Columns {
        count: u16,
        start: u32,
        length: u32,
    },
    Missing,
    Duplicate(IndexId),
    ConditionFalse,
    Savepoint(u32),
    NotExecuted,
    /// Place in the list of failures.
    Failed(u32),
}

/// The answer to a request of a batch, or to a share of one.
pub(crate) struct Answer {
    /// The first operation of the request.
    pub first: usize,
    /// Which operations of the request these are, where they are not all of it.
    pub numbers: Option<Box<[u16]>>,
    pub payload: Bytes,
}

/// In the order of the requests.
pub(crate) type Answers = SmallVec<[Answer; 1]>;

impl Answer {
    pub fn whole(first: usize, payload: Bytes) -> Answer {
        Answer { first, numbers: None, payload }
    }

    /// The number in the batch of an operation of this answer.
    fn number(&self, operation: u16) -> Option<usize> {
        match &self.numbers {
            None => Some(self.first + usize::from(operation)),
            Some(numbers) => numbers.get(usize::from(operation)).map(|number| self.first + usize::from(*number)),
        }
    }
}

/// Outcomes by operation.
#[must_use = "operations may have failed: see `outcome` and `all_succeeded`"]
pub struct BatchResult {
    answers: Answers,
    /// By operation: the number of its answer. Empty where answers are of whole requests.
    answer_of: Vec<u32>,
    entries: SmallVec<[Entry; 1]>,
    failures: Vec<Failure>,
    known: SmallVec<[Known; 1]>,
    shapes: SmallVec<[Shape; 1]>,
    shape_of: SmallVec<[u16; 8]>,
    succeeded: usize,
}

impl BatchResult {
    /// Of the answers to the batch's requests.
    pub(crate) fn new(batch: Batch, answers: Answers) -> Result<BatchResult, Error> {
        let count = batch.len();
        let is_divided = answers.iter().any(|answer| answer.numbers.is_some());
        let mut result = BatchResult {
            answers,
            answer_of: if is_divided { vec![0; count] } else { Vec::new() },
            entries: smallvec::smallvec![Entry::NotExecuted; count],
            failures: Vec::new(),
            known: batch.known,
            shapes: batch.shapes,
            shape_of: batch.shape_of,
            succeeded: 0,
        };
        let BatchResult { answers, answer_of, entries, failures, succeeded, .. } = &mut result;
        let mut answered = 0;
        for (at, answer) in answers.iter().enumerate() {
            let mut reader = AnswerReader::parse(&answer.payload)?;
            let start = answer.payload.as_ptr() as usize;
            let place = |bytes: &[u8]| ((bytes.as_ptr() as usize - start) as u32, bytes.len() as u32);
            while let Some((operation, outcome)) = reader.next_entry()? {
                let number = answer.number(operation);
                let Some((number, entry)) = number.and_then(|number| Some((number, entries.get_mut(number)?))) else {
                    return Err(Error::protocol("an outcome of an operation that was not asked for"));
                };
                if let Some(answer_of) = answer_of.get_mut(number) {
                    *answer_of = at as u32;
                }
                answered += 1;
                *entry = match outcome {
                    Outcome::Row { layout, bytes } => {
                        *succeeded += 1;
                        let (start, length) = place(bytes);
                        Entry::Row { layout, start, length }
                    }
                    Outcome::Done { generated } => {
                        *succeeded += 1;
                        Entry::Done(generated)
                    }
                    Outcome::Columns { count, bytes } => {
                        *succeeded += 1;
                        let (start, length) = place(bytes);
                        Entry::Columns { count, start, length }
                    }
                    Outcome::Missing => Entry::Missing,
                    Outcome::Duplicate { index } => Entry::Duplicate(index),
                    Outcome::ConditionFalse => Entry::ConditionFalse,
                    Outcome::Savepoint(number) => {
                        *succeeded += 1;
                        Entry::Savepoint(number)
                    }
                    Outcome::NotExecuted => Entry::NotExecuted,
                    Outcome::Failed(failure) => {
                        failures.push(failure);
                        Entry::Failed(failures.len() as u32 - 1)
                    }
                };
            }
        }
        if answered != count {
            return Err(Error::protocol(format_args!("{answered} outcomes of {count} operations")));
        }
        Ok(result)
    }

    /// Of a `get…`: `None` when there is no such row.
    pub fn row(&self, op: OpId) -> Result<Option<Row>, Error> {
        let (known, shape) = self.shape(op)?;
        match *self.entry(op)? {
            Entry::Row { layout, start, length } => {
                let bytes = self.payload(op).slice(start as usize..(start + length) as usize);
                Row::stored(known.opened.clone(), layout, bytes).map(Some)
            }
            Entry::Columns { count, start, length } => {
                let bytes = self.payload(op).slice(start as usize..(start + length) as usize);
                let wanted = wanted(shape, count)?;
                Row::projected(known.opened.clone(), Columns::Shared(Arc::from(wanted)), bytes).map(Some)
            }
            _ => self.no_row(op),
        }
    }

    /// The same, without sharing the answer: the row lives as long as this.
    #[inline]
    pub fn view(&self, op: OpId) -> Result<Option<RowRef<'_>>, Error> {
        let (known, shape) = self.shape(op)?;
        match *self.entry(op)? {
            Entry::Row { layout, start, length } => {
                let bytes = &self.payload(op)[start as usize..(start + length) as usize];
                RowRef::stored(&known.opened, layout, bytes).map(Some)
            }
            Entry::Columns { count, start, length } => {
                let bytes = &self.payload(op)[start as usize..(start + length) as usize];
                RowRef::projected(&known.opened, wanted(shape, count)?, bytes).map(Some)
            }
            _ => self.no_row(op),
        }
    }

    pub fn record<R: Record>(&self, records: &Records<R>, op: OpId) -> Result<Option<R>, Error> {
        self.view(op)?.map(|row| records.decode(&self.shape(op)?.0.opened, &row)).transpose()
    }

    /// Whatever became of it.
    pub fn outcome(&self, op: OpId) -> Result<Done, Error> {
        Ok(match self.entry(op)? {
            Entry::Row { .. } | Entry::Columns { .. } => match self.row(op)? {
                Some(row) => Done::Row(row),
                None => Done::Missing,
            },
            Entry::Done(generated) => Done::Done(*generated),
            Entry::Savepoint(_) => Done::Done(None),
            Entry::Missing => Done::Missing,
            Entry::Duplicate(index) => Done::Duplicate { index: self.index_name(op, *index) },
            Entry::ConditionFalse => Done::ConditionFalse,
            Entry::NotExecuted => Done::NotExecuted,
            Entry::Failed(number) => return Err(self.failure(op, *number)),
        })
    }

    /// How many operations there were, and how many of them found or changed a row; cheap.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn succeeded(&self) -> usize {
        self.succeeded
    }

    /// An error that says what became of the first operation that has not found or changed a row.
    pub fn all_succeeded(&self) -> Result<(), Error> {
        let failed = |entry: &Entry| {
            matches!(entry, Entry::Missing | Entry::Duplicate(_) | Entry::ConditionFalse | Entry::Failed(_))
        };
        if self.succeeded == self.len() {
            return Ok(());
        }
        match self.entries.iter().position(failed) {
            Some(number) => Err(self.error_of(OpId(number as u32))),
            None => Err(Error::protocol("operations that were not executed, and none that failed")),
        }
    }

    /// The failure of an operation that has not found or changed a row.
    pub(crate) fn error_of(&self, op: OpId) -> Error {
        let place = || match self.shape(op) {
            Ok((known, _)) => format!("{}, operation {}", known.opened.name, op.0),
            Err(_) => format!("operation {}", op.0),
        };
        match self.entry(op) {
            Err(error) => error,
            Ok(Entry::Failed(number)) => self.failure(op, *number),
            Ok(Entry::Duplicate(index)) => {
                let table = self.shape(op).map_or("?", |(known, _)| known.opened.schema.name.as_str());
                let message = format!("Duplicate entry for key '{table}.{}'", self.index_name(op, *index));
                Error::new(ErrorKind::Duplicate, codes::DUP_ENTRY, message).at(&place())
            }
            Ok(Entry::Missing) => {
                Error::new(ErrorKind::NotFound, codes::KEY_NOT_FOUND, "Can't find record").at(&place())
            }
            Ok(Entry::ConditionFalse) => {
                Error::new(ErrorKind::ConditionFalse, 0, "the condition was not true").at(&place())
            }
            Ok(Entry::NotExecuted) => {
                Error::new(ErrorKind::Refused, 0, "it was not executed, since an earlier one failed").at(&place())
            }
            Ok(_) => Error::protocol("an outcome that does not go with the operation").at(&place()),
        }
    }

    /// A failure that is temporary, if that is what became of the only operation.
    pub(crate) fn only_is_temporary(&self) -> Option<Error> {
        match self.entries[..] {
            [Entry::Failed(number)] => {
                Some(Error::from(self.failures[number as usize].clone())).filter(Error::is_temporary)
            }
            _ => None,
        }
    }

    pub(crate) fn savepoint(&self, op: OpId) -> Result<u32, Error> {
        match self.entry(op)? {
            Entry::Savepoint(number) => Ok(*number),
            Entry::Failed(number) => Err(self.failure(op, *number)),
            _ => Err(Error::protocol("a savepoint without a number")),
        }
    }

    #[inline]
    fn entry(&self, op: OpId) -> Result<&Entry, Error> {
        self.entries.get(op.0 as usize).ok_or_else(|| no_such_operation(op))
    }

    #[inline]
    fn shape(&self, op: OpId) -> Result<(&Known, &Shape), Error> {
        let number = usize::from(*self.shape_of.get(op.0 as usize).ok_or_else(|| no_such_operation(op))?);
        self.known.get(number).zip(self.shapes.get(number)).ok_or_else(|| no_such_operation(op))
    }

    #[inline]
    fn payload(&self, op: OpId) -> &Bytes {
        let number = match self.answers.len() {
            1 => 0,
            _ if self.answer_of.is_empty() => self.answers.partition_point(|answer| answer.first <= op.0 as usize) - 1,
            _ => self.answer_of[op.0 as usize] as usize,
        };
        &self.answers[number].payload
    }

    #[cold]
    fn no_row<T>(&self, op: OpId) -> Result<Option<T>, Error> {
        match self.entry(op)? {
            Entry::Missing | Entry::Done(_) => Ok(None),
            _ => Err(self.error_of(op)),
        }
    }

    fn failure(&self, op: OpId, number: u32) -> Error {
        let error = Error::from(self.failures[number as usize].clone());
        match self.shape(op) {
            Ok((known, _)) if self.len() > 1 => error.at(&format!("{}, operation {}", known.opened.name, op.0)),
            Ok((known, _)) => error.at(&known.opened.name),
            Err(_) => error,
        }
    }

    fn index_name(&self, op: OpId, index: IndexId) -> String {
        match self.shape(op) {
            Ok((known, _)) => {
                let name = known.opened.schema.index(index).map(|index| index.name.as_str());
                name.unwrap_or("?").to_owned()
            }
            Err(_) => "?".to_owned(),
        }
    }
}

fn wanted(shape: &Shape, count: u16) -> Result<&[u16], Error> {
    match &shape.wanted {
        Wanted::Columns(columns) if columns.len() == usize::from(count) => Ok(columns),
        _ => Err(Error::protocol("columns that were not asked for")),
    }
}

fn no_such_operation(op: OpId) -> Error {
    Error::new(ErrorKind::Refused, 0, format!("the batch has no operation {} that gives this", op.0))
}

impl std::fmt::Debug for BatchResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchResult").field("succeeded", &self.succeeded).field("entries", &self.entries).finish()
    }
}
