//! A file to records: where each begins and ends, and on which line.
//!
//! One thread reads the file and cuts it into batches of whole records, which others take apart. So this looks only for
//! the ends of records, and says for each its place, its line and its bytes. A record of CSV ends with a line outside of
//! quotes, one of TSV with a line end that no backslash takes, one of JSON lines with each line.
//!
//! What a record may take is bounded: one that is longer than the limit, or a quote that is not closed within it or before
//! the file ends, is a *fault* of its first line alone, and reading goes on behind that line.
//!
//! Ranges of the file that an earlier import has committed are passed over. They begin and end between records, so
//! whoever reads from one record to the next arrives exactly at their beginnings.
//!
//! Left out: lines that end with a carriage return alone, UTF-16, and compressed files.

use super::fields::Format;
use std::collections::VecDeque;
use std::io::{Error, ErrorKind, Read, Seek, SeekFrom};

/// Bytes that are asked for at once.
const CHUNK: usize = 256 * 1024;
/// A batch ends when it has so many bytes or records.
pub const BATCH_BYTES: usize = 512 * 1024;
pub const BATCH_RECORDS: usize = 4096;

/// A part of the file between two records, and the line behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub begin: u64,
    pub end: u64,
    /// The number of the line that begins at `begin`.
    pub line: u64,
    /// The number of the line that begins at `end`.
    pub next_line: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    TooLong,
    OpenQuote,
    /// A value that cannot be one of the table's column of this number. Files of text have none.
    Value {
        column: usize,
        reason: Box<str>,
    },
}

/// A record of a batch: a part of its bytes, without the end of the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub begin: usize,
    pub end: usize,
    pub line: u64,
    pub fault: Option<Fault>,
    /// The file ends in this record, without an end of the line.
    pub cut: bool,
}

/// Whole records that are behind each other in the file.
#[derive(Debug)]
pub struct Batch {
    pub span: Span,
    pub bytes: Vec<u8>,
    pub records: Vec<Record>,
}

impl Batch {
    pub fn text(&self, record: &Record) -> &[u8] {
        &self.bytes[record.begin..record.end]
    }
}

pub struct Records<R> {
    source: R,
    format: Format,
    /// Most bytes of a record.
    limit: usize,
    buffer: Vec<u8>,
    /// Where the next record begins in the buffer.
    start: usize,
    /// Where that is in the file.
    offset: u64,
    line: u64,
    ended: bool,
    /// Committed before, in order.
    done: VecDeque<Span>,
}

/// What was found of a record that begins with some bytes.
#[derive(Debug, PartialEq, Eq)]
enum Scan {
    /// Its length, and that with the end of its line.
    Whole { length: usize, with_end: usize },
    /// It does not end in these bytes; whether a quote is open.
    Open { quote: bool },
}

impl<R: Read + Seek> Records<R> {
    pub fn new(source: R, format: Format, limit: usize, mut done: Vec<Span>) -> Result<Self, String> {
        done.sort_by_key(|span| span.begin);
        let mut records = Records {
            source,
            format,
            limit,
            buffer: Vec::new(),
            start: 0,
            offset: 0,
            line: 1,
            ended: false,
            done: done.into(),
        };
        records.fill().map_err(|e| format!("cannot read: {e}"))?;
        match records.buffer.as_slice() {
            [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => {
                return Err("the file is UTF-16; convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)".into());
            }
            [0x1F, 0x8B, ..] => return Err("the file is compressed; unpack it first (gunzip)".into()),
            [0xEF, 0xBB, 0xBF, ..] => records.pass(3),
            _ => {}
        }
        Ok(records)
    }

    /// The next record alone, for a header.
    pub fn next_record(&mut self) -> std::io::Result<Option<(Vec<u8>, Record)>> {
        let mut batch = self.begin_batch();
        let found = self.append(&mut batch)?;
        Ok(if found { batch.records.pop().map(|record| (batch.bytes, record)) } else { None })
    }

    /// The next records; `None` at the end of the file.
    pub fn next_batch(&mut self) -> std::io::Result<Option<Batch>> {
        while let Some(span) = self.done.front().copied() {
            if span.begin > self.offset {
                break;
            }
            if span.begin < self.offset {
                return Err(Error::new(ErrorKind::InvalidData, "what was imported before does not begin at a record"));
            }
            self.done.pop_front();
            self.jump(span)?;
        }
        let mut batch = self.begin_batch();
        while batch.bytes.len() < BATCH_BYTES && batch.records.len() < BATCH_RECORDS {
            if self.done.front().is_some_and(|span| span.begin <= self.offset) || !self.append(&mut batch)? {
                break;
            }
        }
        batch.span.end = self.offset;
        batch.span.next_line = self.line;
        Ok((!batch.records.is_empty()).then_some(batch))
    }

    fn begin_batch(&self) -> Batch {
        let span = Span { begin: self.offset, end: self.offset, line: self.line, next_line: self.line };
        Batch { span, bytes: Vec::new(), records: Vec::new() }
    }

    fn jump(&mut self, span: Span) -> std::io::Result<()> {
        self.source.seek(SeekFrom::Start(span.end))?;
        self.buffer.clear();
        self.start = 0;
        self.offset = span.end;
        self.line = span.next_line;
        self.ended = false;
        Ok(())
    }

    /// Appends the next record to the batch; whether there was one.
    fn append(&mut self, batch: &mut Batch) -> std::io::Result<bool> {
        loop {
            let here = &self.buffer[self.start..];
            let scan = scan(here, self.format);
            let (length, with_end, fault, cut) = match scan {
                Scan::Whole { length, with_end } if length <= self.limit => (length, with_end, None, false),
                Scan::Whole { .. } => self.first_line(Fault::TooLong),
                Scan::Open { quote } if here.len() > self.limit => {
                    self.first_line(if quote { Fault::OpenQuote } else { Fault::TooLong })
                }
                Scan::Open { .. } if !self.ended => {
                    self.fill()?;
                    continue;
                }
                Scan::Open { .. } if here.is_empty() => return Ok(false),
                Scan::Open { quote: true } => self.first_line(Fault::OpenQuote),
                Scan::Open { quote: false } => (here.len(), here.len(), None, true),
            };
            let is_faulty = fault.is_some();
            let begin = batch.bytes.len();
            batch.bytes.extend_from_slice(&self.buffer[self.start..self.start + length]);
            let end = batch.bytes.len();
            batch.records.push(Record { begin, end, line: self.line, fault, cut });
            let passed_end = self.buffer[..self.start + with_end].ends_with(b"\n");
            self.pass(with_end);
            if is_faulty && !passed_end {
                self.skip_line()?;
            }
            return Ok(true);
        }
    }

    /// The physical line here, as a record that has a fault. What of it is in the buffer is enough, since the buffer has
    /// more than the limit or the rest of the file.
    fn first_line(&self, fault: Fault) -> (usize, usize, Option<Fault>, bool) {
        let here = &self.buffer[self.start..];
        match here.iter().position(|b| *b == b'\n') {
            Some(at) => (without_return(&here[..at]), at + 1, Some(fault), false),
            None => (here.len(), here.len(), Some(fault), self.ended),
        }
    }

    /// Passes over the rest of a line that is longer than the buffer.
    fn skip_line(&mut self) -> std::io::Result<()> {
        loop {
            if let Some(at) = self.buffer[self.start..].iter().position(|b| *b == b'\n') {
                self.pass(at + 1);
                return Ok(());
            }
            self.pass(self.buffer.len() - self.start);
            if self.ended {
                return Ok(());
            }
            self.fill()?;
        }
    }

    fn pass(&mut self, bytes: usize) {
        let passed = &self.buffer[self.start..self.start + bytes];
        self.line += passed.iter().filter(|b| **b == b'\n').count() as u64;
        self.start += bytes;
        self.offset += bytes as u64;
    }

    /// Reads more: at least as much again as is there, so that a long record is looked at few times.
    fn fill(&mut self) -> std::io::Result<()> {
        self.buffer.drain(..self.start);
        self.start = 0;
        let held = self.buffer.len();
        let wanted = held.max(CHUNK);
        self.buffer.resize(held + wanted, 0);
        let mut filled = held;
        while filled < self.buffer.len() {
            match self.source.read(&mut self.buffer[filled..]) {
                Ok(0) => {
                    self.ended = true;
                    break;
                }
                Ok(n) => filled += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.buffer.truncate(filled);
                    return Err(error);
                }
            }
        }
        self.buffer.truncate(filled);
        Ok(())
    }
}

fn without_return(line: &[u8]) -> usize {
    line.strip_suffix(b"\r").unwrap_or(line).len()
}

fn scan(bytes: &[u8], format: Format) -> Scan {
    let whole = |at: usize| Scan::Whole { length: without_return(&bytes[..at]), with_end: at + 1 };
    match format {
        Format::Jsonl => bytes.iter().position(|b| *b == b'\n').map_or(Scan::Open { quote: false }, whole),
        Format::Tsv => {
            let mut at = 0;
            while at < bytes.len() {
                match bytes[at] {
                    b'\\' => at += 2,
                    b'\n' => return whole(at),
                    _ => at += 1,
                }
            }
            Scan::Open { quote: false }
        }
        Format::Csv { delimiter } => {
            let mut begins = true;
            let mut at = 0;
            while at < bytes.len() {
                let byte = bytes[at];
                at += 1;
                if byte == b'"' && begins {
                    // Behind the closing quote comes another one, which is part of the text, or the field's end.
                    loop {
                        match bytes[at..].iter().position(|b| *b == b'"') {
                            None => return Scan::Open { quote: true },
                            Some(distance) => at += distance + 1,
                        }
                        match bytes.get(at) {
                            Some(b'"') => at += 1,
                            _ => break,
                        }
                    }
                }
                if byte == b'\n' {
                    return whole(at - 1);
                }
                begins = byte == delimiter;
            }
            Scan::Open { quote: false }
        }
    }
}

#[cfg(test)]
#[path = "records_tests.rs"]
mod tests;
