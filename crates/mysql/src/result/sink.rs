//! Where statements write their results: packets in the connection's output buffer, sent when the caller flushes or the command ends.
//!
//! LOAD DATA LOCAL turns the stream around: the client is asked for a file, which it sends as packets; an empty one is the end. Then a sink needs the
//! connection's reading half too, which the statement's text must not lie in any more.
//!
//! Invariants: a command's answer always ends with exactly one final OK, EOF or ERR packet, whatever the session does; a result set of which
//! nothing was sent yet is taken back when its statement fails, so that the client sees the error only.
use super::cursor::CursorRows;
use super::{binary, column, encode, status, text};
use crate::connection::link::{Channel, ChannelError, Link};
use crate::constants::{capability, status as flag};
use crate::packet::reader::FrameError;
use crate::packet::write;
use crate::packet::writer::Mark;
use crate::runtime::timeout_at;
use rauk_types::error::codes;
use rauk_types::result::{Completion, FileFuture, FlushFuture, ResultColumn, ResultSink, ServerStatus, SessionChange};
use rauk_types::{DataType, MysqlError, ValueRef};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Text,
    Binary,
}

/// What the packets of one connection depend on.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    pub capabilities: u32,
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

/// What a sink has of its connection.
enum Wire<'a> {
    Sending(&'a mut Link),
    /// With how long a client may keep silent that is to send a file.
    Both(&'a mut Channel, Duration),
}

impl Wire<'_> {
    fn link(&mut self) -> &mut Link {
        match self {
            Wire::Sending(link) => link,
            Wire::Both(channel, _) => &mut channel.link,
        }
    }
}

/// The client's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum File {
    None,
    /// It has been asked for, and has not ended.
    Coming,
    Ended,
}

pub struct Sink<'a> {
    wire: Wire<'a>,
    file: File,
    context: Context,
    form: Form,
    /// Status before the statement, for the EOF behind the column definitions, and the character sets of its results.
    status: ServerStatus,
    state: State,
    types: Vec<DataType>,
    /// Values of the present result set are sent in another character set than utf8mb4.
    encodes: bool,
    /// Begin of the present result set, while nothing of it was sent.
    begin: Option<Mark>,
    cursor: Option<CursorRows>,
    cursor_full: bool,
    changes: Vec<SessionChange>,
}

impl<'a> Sink<'a> {
    pub fn new(link: &'a mut Link, context: Context, form: Form, status: ServerStatus) -> Self {
        Sink::over(Wire::Sending(link), context, form, status)
    }

    /// For a statement that may ask the client for a file.
    pub fn with_file(channel: &'a mut Channel, context: Context, status: ServerStatus, silence: Duration) -> Self {
        Sink::over(Wire::Both(channel, silence), context, Form::Text, status)
    }

    fn over(mut wire: Wire<'a>, context: Context, form: Form, status: ServerStatus) -> Self {
        let types = std::mem::take(&mut wire.link().types);
        Sink {
            wire,
            file: File::None,
            context,
            form,
            status,
            state: State::Between,
            types,
            encodes: false,
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
        self.wire.link().types = std::mem::take(&mut self.types);
        match error {
            Some(error) => {
                if let Some(mark) = self.begin.take() {
                    self.wire.link().writer.rewind(mark);
                }
                status::write_error(&mut self.wire.link().writer, &error, self.status.charsets.of_names());
                None
            }
            None => self.cursor.take(),
        }
    }
}

/// The first byte of the packet that asks for a file.
const LOCAL_INFILE: u8 = 0xFB;

fn network(code: u16, message: &str) -> MysqlError {
    MysqlError { state: *b"08S01", ..MysqlError::new(code, message) }
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
        let charsets = &self.status.charsets;
        self.encodes = self.types.iter().any(|ty| encode::is_encoded(ty) && !charsets.of_column(ty).is_utf8mb4());
        let writer = &mut self.wire.link().writer;
        self.begin = Some(writer.mark());
        writer.begin();
        write::lenenc(columns.len() as u64, writer.out());
        writer.end();
        for c in columns {
            writer.begin();
            column::write_column(c, &self.status.charsets, writer.out());
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
        let encoded;
        let references;
        let values = if self.encodes {
            encoded = encode::row(values, types, &self.status.charsets);
            references = encoded.iter().map(encode::Encoded::as_ref).collect::<Vec<ValueRef<'_>>>();
            &references[..]
        } else {
            values
        };
        if let Some(rows) = &mut self.cursor {
            let fits =
                !self.cursor_full && rows.push(self.context.cursor_limit, |out| binary::write_row(values, types, out));
            self.cursor_full = !fits;
            return;
        }
        let writer = &mut self.wire.link().writer;
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
        self.wire.link().writer.rewind(mark);
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
        let writer = &mut self.wire.link().writer;
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
        match &self.wire {
            Wire::Sending(link) => link.unsent(),
            Wire::Both(channel, _) => channel.link.unsent(),
        }
    }

    fn flush(&mut self) -> FlushFuture<'_> {
        Box::pin(async move {
            if self.cursor.is_some() {
                return Ok(());
            }
            self.begin = None;
            self.wire.link().send().await
        })
    }

    fn request_file(&mut self, name: &str) -> bool {
        let Wire::Both(channel, _) = &mut self.wire else { return false };
        if self.context.capabilities & capability::LOCAL_FILES == 0 {
            return false;
        }
        let writer = &mut channel.link.writer;
        writer.begin();
        writer.out().push(LOCAL_INFILE);
        writer.out().extend_from_slice(name.as_bytes());
        writer.end();
        self.file = File::Coming;
        true
    }

    fn read_file<'b>(&'b mut self, into: &'b mut Vec<u8>) -> FileFuture<'b> {
        Box::pin(async move {
            let Wire::Both(channel, silence) = &mut self.wire else { return Ok(false) };
            if self.file != File::Coming {
                return Ok(false);
            }
            if channel.link.unsent() > 0 {
                channel.link.send().await.inspect_err(|_| self.file = File::Ended)?;
            }
            let read = timeout_at(Instant::now() + *silence, channel.read()).await;
            match read {
                Some(Ok(packet)) => {
                    let piece = channel.reader.payload(&packet);
                    into.extend_from_slice(piece);
                    if piece.is_empty() {
                        self.file = File::Ended;
                    }
                    Ok(self.file == File::Coming)
                }
                // The rest of the file can be read.
                Some(Err(ChannelError::Frame(FrameError::TooLarge))) => {
                    let error = "Got a packet bigger than 'max_allowed_packet' bytes";
                    Err(MysqlError::new(codes::NET_PACKET_TOO_LARGE, error))
                }
                Some(Err(_)) => {
                    self.file = File::Ended;
                    channel.link.break_off();
                    Err(network(1158, "Got an error reading communication packets"))
                }
                None => {
                    self.file = File::Ended;
                    channel.link.break_off();
                    Err(network(1159, "Got timeout reading communication packets"))
                }
            }
        })
    }
}
