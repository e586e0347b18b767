//! A batch's answer as it grows: outcomes, rows as they were wanted, never more than a frame holds.

use super::failure;
use rauk_types::row::encode_refs;
use rauk_types::{IndexId, RowView, TableSchema, ValueRef};
use rauk_wire::{AnswerBuilder, Failure, MAX_PAYLOAD, Wanted};

/// Bytes kept for the outcome of each operation, so that every one can be answered when rows have filled the frame.
const OUTCOME: usize = 400;
/// Longest text of a failure that is one of many.
const MAX_TEXT: usize = 320;

/// What became of an operation that has not been written into the answer.
#[derive(Debug)]
pub enum Effect {
    /// It stands in the answer.
    Answered,
    Done(Option<u64>),
    /// The row as stored: layout and bytes.
    Row(u16, Vec<u8>),
    Missing,
    Duplicate(IndexId),
    ConditionFalse,
    Savepoint(u32),
    Failed(Box<Failure>),
}

impl Effect {
    /// Whether it ends a batch that stops at failures.
    pub fn is_failure(&self) -> bool {
        matches!(self, Effect::Missing | Effect::Duplicate(_) | Effect::ConditionFalse | Effect::Failed(_))
    }

    pub fn failed(failure: Failure) -> Effect {
        Effect::Failed(Box::new(failure))
    }
}

pub struct Answer {
    builder: AnswerBuilder,
    /// Bytes at which no more rows are taken.
    limit: usize,
}

impl Answer {
    pub fn new(frame: Vec<u8>, operations: usize) -> Answer {
        Answer { builder: AnswerBuilder::new(frame), limit: MAX_PAYLOAD - 1024 - OUTCOME * operations }
    }

    /// Where it stands, for [`Answer::undo`].
    pub fn mark(&self) -> usize {
        self.builder.bytes()
    }

    pub fn undo(&mut self, mark: usize) {
        self.builder.truncate(mark);
    }

    /// Answers with a row as stored, or with what is wanted of it. `row` is read by the definition that the client has.
    #[inline]
    pub fn row(&mut self, operation: u16, wanted: &Wanted, layout: u16, row: &RowView<'_>) {
        if *wanted == Wanted::Row
            && let Some((layout, bytes)) = row.shown()
        {
            return match self.has_room(bytes.len()) {
                true => self.builder.row(operation, layout, &bytes),
                false => self.builder.failed(operation, &failure::too_large()),
            };
        }
        match wanted {
            Wanted::Row if self.has_room(row.size()) => {
                self.builder.row(operation, layout, row.whole(&mut Vec::new()));
            }
            Wanted::Columns(columns) if self.has_room(size_of_columns(row, columns)) => {
                self.builder.columns(operation, columns.iter().map(|&column| row.get(usize::from(column))));
            }
            Wanted::Nothing => self.builder.done(operation, None),
            _ => self.builder.failed(operation, &failure::too_large()),
        }
    }

    /// Whether a row of so many bytes can still be taken.
    #[inline]
    fn has_room(&self, bytes: usize) -> bool {
        self.builder.bytes() + bytes + 16 <= self.limit
    }

    /// Writes an outcome.
    pub fn put(&mut self, operation: u16, wanted: &Wanted, schema: &TableSchema, effect: Effect) {
        match effect {
            Effect::Answered => {}
            Effect::Done(generated) => self.builder.done(operation, generated),
            Effect::Row(layout, bytes) => {
                let view = RowView::new(schema, layout, &bytes);
                self.row(operation, wanted, layout, &view);
            }
            Effect::Missing => self.builder.missing(operation),
            Effect::Duplicate(index) => self.builder.duplicate(operation, index),
            Effect::ConditionFalse => self.builder.condition_false(operation),
            Effect::Savepoint(number) => self.builder.savepoint(operation, number),
            Effect::Failed(failure) => self.failed(operation, *failure),
        }
    }

    pub fn missing(&mut self, operation: u16) {
        self.builder.missing(operation);
    }

    pub fn failed(&mut self, operation: u16, mut failure: Failure) {
        if failure.message.len() > MAX_TEXT {
            let end = (0..=MAX_TEXT).rev().find(|&end| failure.message.is_char_boundary(end)).unwrap_or(0);
            failure.message.truncate(end);
        }
        self.builder.failed(operation, &failure);
    }

    /// Without a table: savepoints.
    pub fn savepoint(&mut self, operation: u16, effect: Effect) {
        match effect {
            Effect::Savepoint(number) => self.builder.savepoint(operation, number),
            Effect::Failed(failure) => self.failed(operation, *failure),
            _ => self.builder.done(operation, None),
        }
    }

    pub fn not_executed(&mut self, operation: u16) {
        self.builder.not_executed(operation);
    }

    /// Gives the buffer back, with something in it that is no answer.
    pub fn give_up(self) -> Vec<u8> {
        self.builder.finish(false, false)
    }

    pub fn finish(self, committed: bool, ended: bool) -> Vec<u8> {
        self.builder.finish(committed, ended)
    }
}

/// A bound on the bytes that these columns take in an answer.
pub fn size_of_columns(row: &RowView<'_>, columns: &[u16]) -> usize {
    let size = |&column: &u16| match row.get(usize::from(column)) {
        ValueRef::Str(text) => text.len() + 8,
        ValueRef::Bytes(bytes) => bytes.len() + 8,
        // Text is longer than what is stored: of control characters six times, of small numbers three.
        ValueRef::Json(json) => 8 * json.stored_len() + 40,
        _ => 40,
    };
    columns.iter().map(size).sum()
}

/// What a write answers: the row as it stands now, when something of it is wanted.
pub fn written(wanted: &Wanted, schema: &TableSchema, row: &[ValueRef<'_>], generated: Option<u64>) -> Effect {
    if *wanted == Wanted::Nothing {
        return Effect::Done(generated);
    }
    let mut bytes = Vec::with_capacity(128);
    encode_refs(schema, row, &mut bytes);
    Effect::Row(schema.layout().version, bytes)
}
