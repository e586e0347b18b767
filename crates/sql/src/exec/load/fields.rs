//! A file of LOAD DATA: from bytes to fields, by MySQL's rules.
//!
//! The reader has a part of the file in memory. [`LineReader::next`] reads one line from it, or says that it needs more: then nothing is consumed, and the
//! line is read again when more of the file is there. Whoever feeds it at least doubles what an unfinished line has, so that a long line is not read
//! many times. What is behind the fields that are wanted is passed piece by piece, and takes no memory.
//!
//! A field that has no escapes is a range of the file's bytes; any other is copied. The rules, in the words of the manual and where it is silent as
//! MySQL's own reader has them:
//!
//! - A terminator inside of enclosing characters is text. The closing character must be followed by a terminator, or it is text; doubled, it is one of itself.
//! - A field that begins with the enclosing character and is never closed begins with it as text.
//! - `\N` alone is NULL, enclosed too; so is the bare word NULL where there is an enclosing character.
//! - Where the escape character is also the enclosing one, it escapes itself only.
//! - Without field terminator and enclosing character, fields have the widths of their columns (a *fixed* line).
//! - Where lines end as fields do, or have no end, a line is as many fields as are wanted.
//! - The rest of a line that the end of the file cuts off is passed without a warning.
//!
//! In a UTF-8 file a byte that begins no character is error 1300.

use crate::logical::LineFormat;
use rauk_types::{Charset, MysqlError};
use std::ops::Range;

/// ER_INVALID_CHARACTER_STRING.
const INVALID_CHARACTER_STRING: u16 = 1300;

/// What stops reading.
enum Stop {
    /// The end of what is there, which is not the end of the file.
    More,
    Broken(MysqlError),
}

type Read<T> = Result<T, Stop>;

/// A field of the line in work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    bytes: Range<usize>,
    /// Its bytes were copied, without their escapes.
    copied: bool,
    pub enclosed: bool,
    /// `\N` was met in it.
    null: bool,
}

/// What [`LineReader::next`] has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Its fields can be asked for.
    Line,
    /// The file goes on, and what is there ends too early.
    More,
    End,
}

/// What a line consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// So many fields.
    Fields(usize),
    /// So many bytes.
    Fixed(usize),
}

pub(super) struct LineReader<'f> {
    format: &'f LineFormat,
    /// The file's character set, where it has characters of several bytes.
    set: Option<Charset>,
    shape: Shape,
    /// Bytes that may mean something, and those of longer characters.
    special: Box<[bool; 256]>,
    data: Vec<u8>,
    /// The next byte to be read.
    at: usize,
    /// Where the line that was read last begins.
    line_from: usize,
    /// The file has ended with `data`.
    complete: bool,
    /// Lines that are passed first.
    skip: u64,
    /// Fields of the present line, and the bytes of those that were copied.
    fields: Vec<Field>,
    copies: Vec<u8>,
    /// The field read last was the last of its line.
    line_ended: bool,
    /// The end of the file was met.
    ended: bool,
    /// The next thing to find is the beginning of a line (LINES STARTING BY).
    before_start: bool,
    /// What is left of the line before must be passed first.
    behind_line: bool,
    /// Something was passed behind its fields.
    cut: bool,
}

impl<'f> LineReader<'f> {
    pub fn new(format: &'f LineFormat, set: Charset, shape: Shape, skip: u64) -> Self {
        let longer = set != Charset::BINARY && set.max_bytes() > 1;
        // MySQL passes none where lines end as fields do.
        let skip = if format.lines_end && format.line_end.is_empty() { 0 } else { skip };
        let mut special = Box::new([false; 256]);
        for byte in [format.escape, format.quote, format.field_end.first().copied(), format.line_end.first().copied()] {
            byte.into_iter().for_each(|byte| special[usize::from(byte)] = true);
        }
        if longer {
            special[0x80..].fill(true);
        }
        LineReader {
            format,
            set: longer.then_some(set),
            shape,
            special,
            data: Vec::new(),
            at: 0,
            line_from: 0,
            complete: false,
            skip,
            fields: Vec::new(),
            copies: Vec::new(),
            line_ended: false,
            ended: false,
            before_start: !format.line_start.is_empty(),
            behind_line: false,
            cut: false,
        }
    }

    /// Bytes that are there and not read.
    pub fn unread(&self) -> usize {
        self.data.len() - self.at
    }

    /// Bytes of the line that was read last.
    pub fn line_bytes(&self) -> usize {
        self.at - self.line_from
    }

    /// What the reader holds.
    pub fn memory(&self) -> usize {
        self.data.capacity() + self.copies.capacity() + self.fields.capacity() * size_of::<Field>()
    }

    /// Where more of the file is put. What was read is gone, the present line too.
    pub fn room(&mut self) -> &mut Vec<u8> {
        self.data.drain(..self.at);
        self.at = 0;
        &mut self.data
    }

    /// There is no more than what is there.
    pub fn complete(&mut self) {
        self.complete = true;
    }

    /// Whether something was passed behind the fields of the line before; of one that the file's end cuts off it is not known.
    pub fn take_cut(&mut self) -> bool {
        std::mem::take(&mut self.cut) && !self.ended
    }

    /// Passes what is left of the present line. `true`: the file goes on, and what is there ends too early.
    pub fn finish_line(&mut self) -> bool {
        if !self.behind_line {
            return false;
        }
        match self.pass_line() {
            Ok(()) => self.behind_line = false,
            Err(_) => return true,
        }
        false
    }

    /// Reads the next line. Errors: 1300.
    pub fn next(&mut self) -> Result<Next, MysqlError> {
        loop {
            if self.finish_line() {
                return Ok(Next::More);
            }
            if self.ended {
                return Ok(Next::End);
            }
            self.cut = false;
            // Lines without an end are passed as they are read.
            if self.skip > 0 && !self.format.line_end.is_empty() {
                self.skip -= 1;
                self.behind_line = true;
                continue;
            }
            let (at, before_start) = (self.at, self.before_start);
            self.line_from = at;
            self.fields.clear();
            self.copies.clear();
            let found = match self.shape {
                Shape::Fields(wanted) => self.line_of_fields(wanted),
                Shape::Fixed(bytes) => self.fixed_line(bytes),
            };
            match found {
                Ok(false) => return Ok(Next::End),
                Ok(true) => self.behind_line = true,
                Err(Stop::More) => {
                    (self.at, self.before_start) = (at, before_start);
                    (self.line_ended, self.ended) = (false, false);
                    return Ok(Next::More);
                }
                Err(Stop::Broken(error)) => return Err(error),
            }
            if self.skip == 0 {
                return Ok(Next::Line);
            }
            self.skip -= 1;
        }
    }

    pub fn fields(&self) -> usize {
        self.fields.len()
    }

    pub fn field(&self, at: usize) -> &Field {
        &self.fields[at]
    }

    pub fn bytes(&self, field: &Field) -> &[u8] {
        let from = if field.copied { &self.copies } else { &self.data };
        &from[field.bytes.clone()]
    }

    pub fn is_null(&self, field: &Field) -> bool {
        let word = !field.enclosed && self.format.quote.is_some() && self.bytes(field) == b"NULL";
        word || field.null && field.bytes.len() == 1
    }

    /// `false`: there is no line any more.
    fn line_of_fields(&mut self, wanted: usize) -> Read<bool> {
        while self.fields.len() < wanted {
            match self.read_field()? {
                Some(field) => self.fields.push(field),
                None => break,
            }
        }
        Ok(!self.fields.is_empty())
    }

    fn get(&mut self) -> Read<Option<u8>> {
        match self.data.get(self.at) {
            Some(byte) => {
                self.at += 1;
                Ok(Some(*byte))
            }
            None if self.complete => Ok(None),
            None => Err(Stop::More),
        }
    }

    /// Whether what follows the first byte of `text` is the rest of it, which is passed then.
    fn goes_on(&mut self, text: &[u8]) -> Read<bool> {
        let rest = &text[1..];
        let there = &self.data[self.at..];
        if there.len() < rest.len() && !self.complete && rest.starts_with(there) {
            return Err(Stop::More);
        }
        let found = there.starts_with(rest);
        self.at += if found { rest.len() } else { 0 };
        Ok(found)
    }

    /// Whether `byte`, which was read last, begins the end of a line; the end is passed then.
    fn ends_line(&mut self, byte: u8) -> Read<bool> {
        let format = self.format;
        if format.line_end.first() != Some(&byte) { Ok(false) } else { self.goes_on(&format.line_end) }
    }

    fn ends_field(&mut self, byte: u8) -> Read<bool> {
        let format = self.format;
        if format.field_end.first() != Some(&byte) { Ok(false) } else { self.goes_on(&format.field_end) }
    }

    /// Passes everything up to the text that lines begin with, and that; `false`: it does not come.
    fn find_start(&mut self) -> Read<bool> {
        let format = self.format;
        loop {
            let Some(byte) = self.get()? else {
                (self.line_ended, self.ended) = (true, true);
                return Ok(false);
            };
            if byte == format.line_start[0] && self.goes_on(&format.line_start)? {
                return Ok(true);
            }
        }
    }

    /// The next field of the line; `None`: there is none.
    fn read_field(&mut self) -> Read<Option<Field>> {
        if self.line_ended {
            return Ok(None);
        }
        if self.before_start {
            self.before_start = false;
            if !self.find_start()? {
                return Ok(None);
            }
        }
        let format = self.format;
        let Some(first) = self.get()? else {
            (self.line_ended, self.ended) = (true, true);
            return Ok(None);
        };
        // A quote that opens is part of the field until it is closed.
        let begin = self.at - 1;
        let quote = format.quote.filter(|quote| *quote == first);
        if quote.is_none() {
            self.at -= 1;
        }
        let mut copy: Option<usize> = None;
        let mut null = false;
        let (end, closed) = loop {
            self.pass_plain(copy.is_some());
            let Some(mut byte) = self.get()? else {
                (self.line_ended, self.ended) = (true, true);
                break (self.at, false);
            };
            let here = self.at - 1;
            let mut escaped = false;
            if Some(byte) == format.escape {
                match self.get()? {
                    // At the end of the file it stays.
                    None => {
                        if copy.is_some() {
                            self.copies.push(byte);
                        }
                        (self.line_ended, self.ended) = (true, true);
                        break (self.at, false);
                    }
                    Some(next) if format.escape != format.quote || next == byte => {
                        if copy.is_none() {
                            copy = Some(self.copies.len());
                            self.copies.extend_from_slice(&self.data[begin..here]);
                        }
                        if self.set.is_none() || next < 0x80 {
                            null |= next == b'N';
                            self.copies.push(unescaped(next));
                            continue;
                        }
                        // A longer character stands for itself.
                        byte = next;
                        escaped = true;
                    }
                    Some(_) => self.at -= 1,
                }
            }
            if !escaped {
                if quote.is_none() && self.ends_line(byte)? {
                    self.line_ended = true;
                    break (here, false);
                }
                if quote == Some(byte) {
                    let next = self.get()?;
                    if next == Some(byte) {
                        if copy.is_none() {
                            copy = Some(self.copies.len());
                            self.copies.extend_from_slice(&self.data[begin..here]);
                        }
                        self.copies.push(byte);
                        continue;
                    }
                    let Some(next) = next else {
                        self.line_ended = true;
                        break (here, true);
                    };
                    if self.ends_line(next)? {
                        self.line_ended = true;
                        break (here, true);
                    }
                    if self.ends_field(next)? {
                        break (here, true);
                    }
                    // It closes nothing.
                    self.at -= 1;
                } else if quote.is_none() && self.ends_field(byte)? {
                    break (here, false);
                }
            }
            if let Some(set) = self.set.filter(|_| byte >= 0x80) {
                let from = self.at - 1;
                let length = set.length_by(byte);
                if length == 0 {
                    return Err(Stop::Broken(self.broken_character(begin, here, copy)));
                }
                let there = self.data.len() - from;
                if there < length && !self.complete {
                    return Err(Stop::More);
                }
                if there < length {
                    // The file ends in a character, which is left out.
                    self.at = self.data.len();
                    (self.line_ended, self.ended) = (true, true);
                    break (here, false);
                }
                let character = &self.data[from..from + length];
                // Of one that is broken, the first byte is taken as it is.
                let taken = if set.decode(character).malformed.is_none() { length } else { 1 };
                if copy.is_some() {
                    self.copies.extend_from_slice(&self.data[from..from + taken]);
                }
                self.at = from + taken;
            } else if copy.is_some() {
                self.copies.push(byte);
            }
        };
        let bytes = match copy {
            None => begin..end,
            Some(from) => from..self.copies.len(),
        };
        let bytes = if closed { bytes.start + 1..bytes.end } else { bytes };
        Ok(Some(Field { bytes, copied: copy.is_some(), enclosed: closed, null }))
    }

    /// Passes bytes that mean nothing but themselves.
    #[inline]
    fn pass_plain(&mut self, copies: bool) {
        let rest = &self.data[self.at..];
        let length = rest.iter().position(|byte| self.special[usize::from(*byte)]).unwrap_or(rest.len());
        if copies {
            self.copies.extend_from_slice(&rest[..length]);
        }
        self.at += length;
    }

    /// Error 1300 with what the field has before the byte.
    fn broken_character(&self, begin: usize, here: usize, copy: Option<usize>) -> MysqlError {
        let field = match copy {
            Some(from) => &self.copies[from..],
            None => &self.data[begin..here],
        };
        let set = self.set.unwrap_or(Charset::UTF8MB4);
        let message = format!("Invalid {} character string: '{}'", set.name(), set.decode(field).text);
        MysqlError::new(INVALID_CHARACTER_STRING, message)
    }

    /// A line of so many bytes, or fewer where it ends early.
    fn fixed_line(&mut self, wanted: usize) -> Read<bool> {
        if self.before_start {
            self.before_start = false;
            if !self.find_start()? {
                return Ok(false);
            }
        }
        let format = self.format;
        while self.copies.len() < wanted.max(1) {
            let Some(byte) = self.get()? else {
                (self.line_ended, self.ended) = (true, true);
                break;
            };
            if Some(byte) == format.escape {
                match self.get()? {
                    None => {
                        self.copies.push(byte);
                        (self.line_ended, self.ended) = (true, true);
                        break;
                    }
                    Some(next) => self.copies.push(unescaped(next)),
                }
                continue;
            }
            if self.ends_line(byte)? {
                self.line_ended = true;
                break;
            }
            self.copies.push(byte);
        }
        Ok(!(self.ended && self.copies.is_empty()))
    }

    /// The bytes of a fixed line.
    pub fn fixed(&self) -> &[u8] {
        &self.copies
    }

    /// Passes what is left of a line, with its end.
    fn pass_line(&mut self) -> Read<()> {
        if !(self.line_ended || self.ended || self.format.line_end.is_empty()) {
            loop {
                let at = self.at;
                match self.pass_one() {
                    Ok(true) => break,
                    Ok(false) => self.cut = true,
                    Err(stop) => {
                        // What was passed before is gone.
                        self.at = at;
                        return Err(stop);
                    }
                }
            }
        }
        self.line_ended = false;
        self.before_start = !self.format.line_start.is_empty();
        Ok(())
    }

    /// Passes a byte, or an escaped one; `true`: the line or the file has ended.
    fn pass_one(&mut self) -> Read<bool> {
        let Some(byte) = self.get()? else {
            self.ended = true;
            return Ok(true);
        };
        if Some(byte) == self.format.escape {
            if self.get()?.is_none() {
                self.ended = true;
            }
            return Ok(self.ended);
        }
        self.ends_line(byte)
    }
}

fn unescaped(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 0x08,
        b'0' => 0,
        b'Z' => 0x1A,
        other => other,
    }
}

#[cfg(test)]
#[path = "fields_tests.rs"]
mod tests;
