//! Where statements write their results: packets in the connection's output buffer, sent when the caller flushes or the command ends.
//!
//! Invariants: a command's answer always ends with exactly one final OK, EOF or ERR packet, whatever the session does; a result set of which
//! nothing was sent yet is taken back when its statement fails, so that the client sees the error only.
use super::cursor::CursorRows;
use super::{binary, column, status, text};
use crate::connection::link::Link;
use crate::constants::{capability, status as flag};
use crate::packet::write;
use crate::packet::writer::Mark;
use rauk_types::error::codes;
use rauk_types::result::{Completion, FlushFuture, ResultColumn, ResultSink, ServerStatus, SessionChange};
use rauk_types::{DataType, MysqlError, ValueRef};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Text,
    Binary,
}

/// What the packets of one connection depend on.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    pub capabilities: u32,
    /// The collation number that text columns carry.
    pub collation: u16,
    /// Longest rows of an open cursor in bytes.
    pub cursor_limit: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing, or whole results with more to come.
    Between,
    InRows,
    /// The last result is complete.
    Done,
}

pub struct Sink<'a> {
    link: &'a mut Link,
    context: Context,
    form: Form,
    /// Status before the statement, for the EOF behind the column definitions.
    status: ServerStatus,
    state: State,
    types: Vec<DataType>,
    /// Begin of the present result set, while nothing of it was sent.
    begin: Option<Mark>,
    cursor: Option<CursorRows>,
    cursor_full: bool,
    changes: Vec<SessionChange>,
}

impl<'a> Sink<'a> {
    pub fn new(link: &'a mut Link, context: Context, form: Form, status: ServerStatus) -> Self {
        let types = std::mem::take(&mut link.types);
        Sink {
            link,
            context,
            form,
            status,
            state: State::Between,
            types,
            begin: None,
            cursor: None,
            cursor_full: false,
            changes: Vec::new(),
        }
    }

    /// Keeps the rows for COM_STMT_FETCH instead of sending them.
    pub fn keep_rows(&mut self) {
        self.cursor = Some(CursorRows::default());
    }

    /// Ends the command with the outcome of its statement. Gives the rows of a cursor that is open now.
    pub fn finish(mut self, outcome: Result<(), MysqlError>) -> Option<CursorRows> {
        let error = match outcome {
            Err(error) => Some(error),
            Ok(()) if self.cursor_full => Some(cursor_full(self.context.cursor_limit)),
            Ok(()) if self.state == State::Done => None,
            Ok(()) => Some(MysqlError::new(codes::UNKNOWN_ERROR, "The statement ended without a result")),
        };
        self.link.types = std::mem::take(&mut self.types);
        match error {
            Some(error) => {
                if let Some(mark) = self.begin.take() {
                    self.link.writer.rewind(mark);
                }
                status::write_error(&mut self.link.writer, &error);
                None
            }
            None => self.cursor.take(),
        }
    }
}

fn cursor_full(limit: usize) -> MysqlError {
    MysqlError::new(
        codes::RECORD_FILE_FULL,
        format!(
            "The table '(cursor)' is full: an open cursor keeps at most {limit} bytes of rows; read the result without a cursor"
        ),
    )
}

impl ResultSink for Sink<'_> {
    fn columns(&mut self, columns: &[ResultColumn]) {
        self.types.clear();
        self.types.extend(columns.iter().map(|c| c.ty));
        let writer = &mut self.link.writer;
        self.begin = Some(writer.mark());
        writer.begin();
        write::lenenc(columns.len() as u64, writer.out());
        writer.end();
        for c in columns {
            writer.begin();
            column::write_column(c, self.context.collation, writer.out());
            writer.end();
        }
        if self.context.capabilities & capability::DEPRECATE_EOF == 0 && self.cursor.is_none() {
            status::write_eof(writer, 0, status::flags(&self.status));
        }
        self.state = State::InRows;
    }

    fn row(&mut self, values: &[ValueRef<'_>]) {
        assert_eq!(values.len(), self.types.len(), "a row has as many values as columns");
        let types = &self.types;
        if let Some(rows) = &mut self.cursor {
            let fits =
                !self.cursor_full && rows.push(self.context.cursor_limit, |out| binary::write_row(values, types, out));
            self.cursor_full = !fits;
            return;
        }
        let writer = &mut self.link.writer;
        writer.begin();
        match self.form {
            Form::Text => text::write_row(values, types, writer.out()),
            Form::Binary => binary::write_row(values, types, writer.out()),
        }
        writer.end();
    }

    fn withdraw(&mut self) -> bool {
        if self.state != State::InRows {
            return true;
        }
        let Some(mark) = self.begin.take() else { return false };
        self.link.writer.rewind(mark);
        self.cursor = self.cursor.take().map(|_| CursorRows::default());
        self.cursor_full = false;
        self.state = State::Between;
        true
    }

    fn changed(&mut self, change: SessionChange) {
        if self.context.capabilities & capability::SESSION_TRACK != 0 {
            self.changes.push(change);
        }
    }

    fn complete(&mut self, completion: &Completion) {
        let writer = &mut self.link.writer;
        if self.state == State::InRows {
            let cursor = if self.cursor.is_some() { flag::CURSOR_EXISTS } else { 0 };
            if !self.cursor_full {
                status::write_end(writer, self.context.capabilities, completion, cursor, &self.changes);
                self.begin = None;
            }
        } else {
            self.cursor = None;
            status::write_ok(writer, self.context.capabilities, completion, &self.changes);
        }
        self.changes.clear();
        self.status = completion.status;
        self.state = if completion.status.more_results { State::Between } else { State::Done };
    }

    fn buffered(&self) -> usize {
        self.link.unsent()
    }

    fn flush(&mut self) -> FlushFuture<'_> {
        Box::pin(async move {
            if self.cursor.is_some() {
                return Ok(());
            }
            self.begin = None;
            self.link.send().await
        })
    }
}
