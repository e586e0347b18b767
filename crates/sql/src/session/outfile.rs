//! SELECT … INTO OUTFILE and INTO DUMPFILE: the rows of a query into a new file of the server.
//!
//! Rows are written as LOAD DATA with the same options reads them: the escape character stands before itself, before the first bytes of what ends
//! fields and lines, before the enclosing character, and `\0` for a zero byte; `\N` is NULL. Without an escape character nothing is escaped, and NULL
//! is the word. Of some terminators MySQL itself cannot say what they mean (warning 1638): one that begins with a letter of an escape, or with what
//! numbers are made of. Without terminators and enclosing characters each value has the width of its column.
//!
//! A DUMPFILE has the bytes of one row, with nothing between or behind them.
//!
//! Rows are gathered and handed to the file's thread when the executor flushes its sink, piece by piece. An error removes the file.

use super::data::Source;
use super::files::{FileWriter, allowed_file};
use super::into::TOO_MANY_ROWS;
use super::run::Done;
use super::session::Session;
use crate::expr::context::WarningLevel;
use crate::logical::{LineFormat, file_charset, fixed_width};
use crate::parse::Statement;
use crate::parse::ast::{FileFormat, Into, Query};
use rauk_types::error::codes;
use rauk_types::format::append_text;
use rauk_types::result::{Completion, FlushFuture, ResultColumn, ResultSink};
use rauk_types::{Charset, DataType, MysqlError, TypeKind, ValueRef};

/// ER_AMBIGUOUS_FIELD_TERM.
const AMBIGUOUS_FIELD_TERM: u16 = 1475;
/// Letters that mean something behind an escape character.
const ESCAPE_LETTERS: &[u8] = b"ntrb0ZN";
/// What numbers are made of.
const NUMERIC: &[u8] = b".0123456789e+-";

/// How rows become bytes.
struct RowFormat {
    field_end: Vec<u8>,
    line_start: Vec<u8>,
    line_end: Vec<u8>,
    quote: Option<u8>,
    /// Only texts are enclosed.
    optionally: bool,
    escape: Option<u8>,
    /// `binary`: each column in its own.
    charset: Charset,
    /// The width of each column, where the line has no terminators.
    widths: Option<Vec<usize>>,
    types: Vec<DataType>,
    names: Vec<String>,
    /// The byte that stands between fields is a letter of an escape.
    ambiguous_separator: bool,
    /// It is one of a number.
    unsafe_separator: bool,
    ambiguous: bool,
}

/// A value that MySQL treats as text: dates too.
fn is_text(ty: &DataType) -> bool {
    !(ty.is_numeric() || matches!(ty.kind, TypeKind::Bit | TypeKind::Year | TypeKind::Null))
}

impl RowFormat {
    /// Errors: 1083.
    fn new(format: &FileFormat, charset: Charset, columns: &[ResultColumn]) -> Result<RowFormat, MysqlError> {
        let lines = LineFormat::new(format)?;
        let types: Vec<DataType> = columns.iter().map(|column| column.ty).collect();
        let separator = lines.quote.or(lines.field_end.first().copied());
        let is_of = |set: &[u8], byte: Option<u8>| byte.is_some_and(|byte| set.contains(&byte));
        let ambiguous_separator = is_of(ESCAPE_LETTERS, separator);
        let unsafe_separator = is_of(NUMERIC, separator);
        let optionally = (format.optionally && !lines.field_end.is_empty()) || lines.quote.is_none();
        let (texts, others) = (types.iter().any(is_text), types.iter().any(|ty| !is_text(ty)));
        let fixed = lines.is_fixed() && !types.iter().any(DataType::is_lob);
        Ok(RowFormat {
            line_end: if lines.lines_end { format.line_end.clone() } else { lines.field_end.clone() },
            line_start: lines.line_start,
            quote: lines.quote,
            optionally,
            escape: lines.escape,
            charset,
            widths: fixed.then(|| types.iter().map(fixed_width).collect()),
            names: columns.iter().map(|column| column.name.clone()).collect(),
            ambiguous_separator,
            unsafe_separator,
            ambiguous: (ambiguous_separator && lines.quote.is_none() && (texts || unsafe_separator))
                || (optionally && others && is_of(NUMERIC, lines.field_end.first().copied())),
            field_end: lines.field_end,
            types,
        })
    }

    /// Appends a row. `scratch` is empty before and after. Gives columns some of whose characters the file's character set lacks.
    fn append(&self, values: &[ValueRef<'_>], scratch: &mut Vec<u8>, out: &mut Vec<u8>) -> Vec<(usize, String)> {
        let mut lacking = Vec::new();
        out.extend_from_slice(&self.line_start);
        for (at, value) in values.iter().enumerate() {
            if at > 0 {
                out.extend_from_slice(&self.field_end);
            }
            let ty = &self.types[at];
            let width = self.widths.as_ref().map(|widths| widths[at]);
            if value.is_null() {
                match (width, self.escape) {
                    (Some(width), _) => out.resize(out.len() + width, b' '),
                    (None, Some(escape)) => out.extend_from_slice(&[escape, b'N']),
                    (None, None) => out.extend_from_slice(b"NULL"),
                }
                continue;
            }
            append_text(*value, ty, scratch);
            let set = if self.charset == Charset::BINARY { ty.collation.charset() } else { self.charset };
            if (ty.is_text() || ty.has_members())
                && let Some(lost) = encode(scratch, set)
            {
                lacking.push((at, lost));
            }
            let text = is_text(ty);
            let quote = self.quote.filter(|_| !self.optionally || text);
            out.extend(quote);
            if let Some(width) = width {
                scratch.truncate(width);
            }
            let begin = out.len();
            match self.escape {
                Some(escape) if text || self.unsafe_separator => self.escaped(scratch, set, escape, quote, out),
                _ => out.extend_from_slice(scratch),
            }
            if let Some(width) = width {
                out.resize(out.len().max(begin + width), b' ');
            }
            out.extend(quote);
            scratch.clear();
        }
        out.extend_from_slice(&self.line_end);
        lacking
    }

    /// Appends a value with its escapes.
    fn escaped(&self, bytes: &[u8], set: Charset, escape: u8, quote: Option<u8>, out: &mut Vec<u8>) {
        let field_end = self.field_end.first().copied();
        let separator = self.quote.or(field_end);
        let boundary = if quote.is_some() { separator } else { field_end };
        let line_end = self.line_end.first().copied();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            // The second byte of a character may look like an escape.
            let length = if set.max_bytes() == 1 { 1 } else { set.step(&bytes[at..]) };
            at += length;
            if length > 1 {
                out.extend_from_slice(&bytes[at - length..at]);
                continue;
            }
            let some = Some(byte);
            let wanted = byte == escape || some == boundary || some == line_end || byte == 0;
            // Doubled, it would be no escape.
            let doubles_end = quote.is_none() && self.ambiguous && some == field_end;
            if wanted && !doubles_end {
                out.push(if some == separator && self.ambiguous_separator { byte } else { escape });
                out.push(if byte == 0 { b'0' } else { byte });
            } else {
                out.push(byte);
            }
        }
    }
}

/// Turns UTF-8 into the file's character set; gives the first character that it has not.
fn encode(bytes: &mut Vec<u8>, set: Charset) -> Option<String> {
    if set.is_utf8mb4() || set.is_for_clients() && bytes.is_ascii() {
        return None;
    }
    let text = String::from_utf8_lossy(bytes).into_owned();
    bytes.clear();
    set.append(&text, bytes);
    let lost = text[set.lacks(&text)?..].chars().next()?;
    Some(lost.to_string().bytes().map(|b| format!("\\x{b:02X}")).collect())
}

/// Takes the rows of the query.
struct FileSink {
    writer: FileWriter,
    /// `None`: a DUMPFILE.
    format: Option<RowFormat>,
    types: Vec<DataType>,
    rows: u64,
    buffer: Vec<u8>,
    scratch: Vec<u8>,
    /// Something was handed to the thread.
    sent: bool,
    /// Column, row and bytes of characters that the file cannot have; so many are noted at most.
    lacking: Vec<(usize, u64, String)>,
}

/// Characters that are noted at most.
const MOST_LACKING: usize = 1024;

impl ResultSink for FileSink {
    fn columns(&mut self, columns: &[ResultColumn]) {
        self.types = columns.iter().map(|column| column.ty).collect();
    }

    fn row(&mut self, values: &[ValueRef<'_>]) {
        self.rows += 1;
        match &self.format {
            Some(format) => {
                let lacking = format.append(values, &mut self.scratch, &mut self.buffer);
                if self.lacking.len() < MOST_LACKING {
                    self.lacking.extend(lacking.into_iter().map(|(at, lost)| (at, self.rows, lost)));
                }
            }
            // Of more rows than one none is kept.
            None if self.rows == 1 => {
                for (value, ty) in values.iter().zip(&self.types) {
                    match value {
                        ValueRef::Null => self.buffer.push(0),
                        value => append_text(*value, ty, &mut self.buffer),
                    }
                }
            }
            None => {}
        }
    }

    fn withdraw(&mut self) -> bool {
        self.buffer.clear();
        self.rows = 0;
        self.lacking.clear();
        !self.sent
    }

    fn complete(&mut self, _: &Completion) {}

    fn buffered(&self) -> usize {
        self.buffer.len()
    }

    fn flush(&mut self) -> FlushFuture<'_> {
        Box::pin(async move {
            if self.buffer.is_empty() {
                return Ok(());
            }
            self.sent = true;
            let capacity = self.buffer.len();
            self.writer.write(std::mem::replace(&mut self.buffer, Vec::with_capacity(capacity))).await
        })
    }
}

impl Session {
    /// SELECT … INTO OUTFILE and DUMPFILE. Errors: 1, 1026, 1045, 1083, 1086, 1115, 1172, 1290.
    pub(super) async fn select_into_file(&mut self, query: &Query, into: &Into) -> Result<Done, MysqlError> {
        self.require_file()?;
        let query = Query { into: None, ..query.clone() };
        let statement = Statement::Query(Box::new(query));
        let types = self.parameter_types.clone();
        let (plan, _) = self.plan(&statement, types.clone())?;
        let (name, format) = match into {
            Into::DumpFile(name) => (name, None),
            Into::OutFile(file) => {
                let charset = file.charset.as_deref().map_or(Ok(Charset::BINARY), file_charset)?;
                (&file.path, Some(RowFormat::new(&file.format, charset, &plan.plan.columns)?))
            }
            Into::Variables(_) => unreachable!("these are no file"),
        };
        if format.as_ref().is_some_and(|format| format.ambiguous) {
            let message = "First character of the FIELDS TERMINATED string is ambiguous; please use non-optional and \
                           non-empty FIELDS ENCLOSED BY";
            self.push_warning(WarningLevel::Warning, AMBIGUOUS_FIELD_TERM, message.to_string());
        }
        let writer = FileWriter::create(&allowed_file(&self.engine, name)?)?;
        let mut sink = FileSink {
            writer,
            format,
            types: vec![],
            rows: 0,
            buffer: Vec::new(),
            scratch: Vec::new(),
            sent: false,
            lacking: vec![],
        };
        let source = Source { text: "", statement: Some(&statement), types: &types, known: None };
        self.run_uncached(source, &mut sink).await?;
        if sink.format.is_none() && sink.rows > 1 {
            return Err(MysqlError::new(TOO_MANY_ROWS, "Result consisted of more than one row"));
        }
        sink.flush().await?;
        if let Some(format) = &sink.format {
            for (column, row, lost) in std::mem::take(&mut sink.lacking) {
                let name = &format.names[column];
                let message = format!("Incorrect string value: '{lost}' for column '{name}' at row {row}");
                self.push_warning(WarningLevel::Warning, codes::TRUNCATED_WRONG_VALUE_FOR_FIELD, message);
            }
        }
        sink.writer.finish().await?;
        Ok(Completion { affected_rows: sink.rows, ..Completion::default() }.into())
    }
}
