//! Text to statements: where each ends, and on which line it begins.
//!
//! A script may be larger than memory, so its text comes in chunks ([`Splitter::push`]) and leaves as pieces
//! ([`Splitter::take`]): statements, and commands of the shell ([`super::commands`]). Between two pieces only the
//! statement that is not whole yet is kept, and one longer than the limit is an error. [`Statements`] does this over a
//! reader.
//!
//! The splitter looks at a byte only when it has all the bytes that the decision needs, or the text has ended. So the
//! pieces are the same wherever chunks end. Everything that it knows is ASCII; other bytes are part of whatever they
//! stand in.
//!
//! Rules, those of MySQL's client unless said otherwise:
//!
//! - A statement ends with the delimiter (`;` until `DELIMITER` says otherwise), `\g`, `\G`, or the end of the text.
//! - In `'…'` and `"…"` a backslash takes the next byte with it; in `` `…` `` it does not. The `sql_mode`s that change
//!   this (NO_BACKSLASH_ESCAPES) are the server's and are not known here.
//! - `-- `, `#` and `/* */` are comments. Those between statements are left out, those inside go to the server. The text
//!   of `/*! */` and `/*M! */` is SQL: it begins a statement, has strings and comments in it, and no delimiter.
//! - Commands are words at the beginning of a statement, or a backslash and a letter. Inside a statement only `\g`, `\G`,
//!   `\c`, `\e` and `\p` are commands; `\N` is SQL's NULL. Others are an error there.
//! - A zero byte outside of quotes and comments is an error: the text is no SQL script.
//! - The comment with which MariaDB's dumps begin (`/*M!999999\- … */`) is remembered: what follows may run no commands
//!   that reach beyond the server ([`Splitter::sandboxed`]).

use super::commands::{self, Argument, Command, LONGEST_WORD, Name};
use std::fmt;
use std::io::{ErrorKind, Read};

/// Most bytes that a reader is asked for at once.
const CHUNK: usize = 64 * 1024;
/// A command and its argument are looked at as a whole.
const LONGEST_COMMAND: usize = 64 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Statement(Statement),
    Command(Typed),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Without the delimiter, and without white space around it.
    pub text: Vec<u8>,
    /// Where it begins; the first line is 1.
    pub line: u64,
    pub ending: Ending,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Delimiter,
    /// `\G`
    Vertical,
    /// The text ended without a delimiter.
    Text,
}

/// A command of the shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typed {
    pub name: Name,
    pub argument: String,
    pub line: u64,
    /// The statement in front of it that has not ended, for `\e` and `\p`.
    pub before: Vec<u8>,
}

#[derive(Debug)]
pub struct SplitError {
    pub line: u64,
    pub why: Why,
}

#[derive(Debug)]
pub enum Why {
    TooLong { limit: usize },
    LongCommand { limit: usize },
    Open { what: &'static str },
    Zero,
    Utf16,
    UnknownCommand { letter: u8 },
    NotInside { letter: u8 },
    Delimiter,
    Read(std::io::Error),
}

impl fmt::Display for SplitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            Why::TooLong { limit } => write!(
                f,
                "the statement that begins here is longer than max_allowed_packet ({limit} bytes); is a delimiter or a closing quote missing?"
            ),
            Why::LongCommand { limit } => write!(f, "the command that begins here is longer than {limit} bytes"),
            Why::Open { what } => {
                write!(f, "the text ends inside the {what} that begins here; the statement was not run")
            }
            Why::Zero => write!(f, "a zero byte outside of quotes; is this a text of SQL statements?"),
            Why::Utf16 => write!(f, "the text is UTF-16; convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)"),
            Why::UnknownCommand { letter } => {
                write!(f, "there is no command '\\{}'; \\h lists the commands", letter.escape_ascii())
            }
            Why::NotInside { letter } => {
                write!(f, "'\\{}' cannot stand inside a statement; end or clear (\\c) it before", letter.escape_ascii())
            }
            Why::Delimiter => write!(f, "DELIMITER needs a text without backslashes and quotes behind it"),
            Why::Read(error) => write!(f, "cannot read: {error}"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Outside of quotes and comments.
    Plain,
    Quote(u8),
    LineComment,
    BlockComment,
}

/// What a decision comes to.
enum Step {
    /// More bytes are needed.
    Wait,
    /// The position has moved.
    On,
    Piece(Piece),
}

/// The argument of a command.
struct Reach {
    /// Its bytes.
    argument: usize,
    /// Those and the delimiter's.
    taken: usize,
    delimited: bool,
}

pub struct Splitter {
    buffer: Vec<u8>,
    /// Where the current statement begins; all before it has left.
    start: usize,
    at: usize,
    mode: Mode,
    /// Whether the current statement has a first byte.
    begun: bool,
    /// Inside `/*! … */`.
    executable: bool,
    delimiter: Vec<u8>,
    /// The line of `at`.
    line: u64,
    begun_line: u64,
    /// Where the quote or comment begins that is open.
    open_line: u64,
    limit: usize,
    /// Nothing of the text has been looked at.
    fresh: bool,
    ended: bool,
    sandboxed: bool,
}

impl Splitter {
    /// Statements may be as long as `limit`.
    pub fn new(limit: usize) -> Splitter {
        Splitter {
            buffer: Vec::new(),
            start: 0,
            at: 0,
            mode: Mode::Plain,
            begun: false,
            executable: false,
            delimiter: b";".to_vec(),
            line: 1,
            begun_line: 1,
            open_line: 1,
            limit,
            fresh: true,
            ended: false,
            sandboxed: false,
        }
    }

    pub fn push(&mut self, text: &[u8]) {
        self.buffer.drain(..self.start);
        self.at -= self.start;
        self.start = 0;
        self.buffer.extend_from_slice(text);
    }

    /// No text comes any more.
    pub fn end(&mut self) {
        self.ended = true;
    }

    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Forgets the statement that is not whole, and all text behind it.
    pub fn clear(&mut self) {
        self.line += self.buffer[self.at..].iter().filter(|b| **b == b'\n').count() as u64;
        self.at = self.buffer.len();
        self.begin_again();
    }

    pub fn delimiter(&self) -> &[u8] {
        &self.delimiter
    }

    pub fn sandboxed(&self) -> bool {
        self.sandboxed
    }

    /// Whether a statement, quote or comment is open, and what a prompt says of it.
    pub fn open(&self) -> Option<&'static str> {
        match self.mode {
            Mode::Quote(b'\'') => Some("'"),
            Mode::Quote(b'"') => Some("\""),
            Mode::Quote(_) => Some("`"),
            Mode::BlockComment => Some("/*"),
            Mode::Plain | Mode::LineComment if self.executable => Some("/*"),
            Mode::Plain | Mode::LineComment => self.begun.then_some("-"),
        }
    }

    /// The next piece, if the text has it whole.
    pub fn take(&mut self) -> Result<Option<Piece>, SplitError> {
        if self.fresh && !self.begin_text()? {
            return Ok(None);
        }
        loop {
            let step = match self.mode {
                Mode::Plain => match self.begun {
                    false => self.between()?,
                    true => self.plain()?,
                },
                Mode::Quote(quote) => self.quote(quote),
                Mode::LineComment => self.line_comment(),
                Mode::BlockComment => self.block_comment(),
            };
            if self.begun && self.at - self.start > self.limit {
                return Err(self.too_long());
            }
            match step {
                Step::On => {}
                Step::Piece(piece) => return Ok(Some(piece)),
                Step::Wait if !self.ended => {
                    // A line that a command may fill is held too.
                    let held = self.buffer.len() - self.start;
                    return if held > self.longest_command() && !self.begun && self.mode == Mode::Plain {
                        Err(self.long_command())
                    } else {
                        Ok(None)
                    };
                }
                Step::Wait => return self.rest(),
            }
        }
    }

    fn too_long(&self) -> SplitError {
        SplitError { line: self.begun_line, why: Why::TooLong { limit: self.limit } }
    }

    fn longest_command(&self) -> usize {
        self.limit.min(LONGEST_COMMAND)
    }

    fn long_command(&self) -> SplitError {
        SplitError { line: self.line, why: Why::LongCommand { limit: self.longest_command() } }
    }

    /// What is left when the text has ended.
    fn rest(&mut self) -> Result<Option<Piece>, SplitError> {
        let open = |what| Err(SplitError { line: self.open_line, why: Why::Open { what } });
        match self.mode {
            Mode::Quote(b'`') => return open("quoted name"),
            Mode::Quote(_) => return open("quoted text"),
            Mode::BlockComment => return open("comment"),
            Mode::Plain | Mode::LineComment if self.executable => return open("comment"),
            Mode::Plain | Mode::LineComment => {}
        }
        if !self.begun {
            return Ok(None);
        }
        Ok(Some(self.statement(Ending::Text, 0)))
    }

    /// A mark of the encoding may stand in front of the text. Whether this is known.
    fn begin_text(&mut self) -> Result<bool, SplitError> {
        const MARK: &[u8] = b"\xEF\xBB\xBF";
        match self.buffer.as_slice() {
            [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => return Err(SplitError { line: 1, why: Why::Utf16 }),
            text if text.starts_with(MARK) => {
                self.at = MARK.len();
                self.start = self.at;
            }
            text if !self.ended
                && text.len() < MARK.len()
                && matches!(text.first(), None | Some(0xEF | 0xFE | 0xFF)) =>
            {
                return Ok(false);
            }
            _ => {}
        }
        self.fresh = false;
        Ok(true)
    }

    fn begin_again(&mut self) {
        self.start = self.at;
        self.mode = Mode::Plain;
        self.begun = false;
        self.executable = false;
    }

    /// The byte at a distance, `None` behind what has come.
    fn peek(&self, distance: usize) -> Option<u8> {
        self.buffer.get(self.at + distance).copied()
    }

    fn advance(&mut self, bytes: usize) {
        let passed = &self.buffer[self.at..self.at + bytes];
        self.line += passed.iter().filter(|b| **b == b'\n').count() as u64;
        self.at += bytes;
        if !self.begun {
            self.start = self.at;
        }
    }

    /// Whether `text` stands here; `None`: more bytes are needed to know.
    fn looks_at(&self, text: &[u8]) -> Option<bool> {
        let here = &self.buffer[self.at..];
        let n = here.len().min(text.len());
        match here[..n] == text[..n] {
            false => Some(false),
            true if n == text.len() => Some(true),
            true => self.ended.then_some(false),
        }
    }

    fn open_mode(&mut self, mode: Mode, bytes: usize) -> Step {
        self.open_line = self.line;
        self.mode = mode;
        self.advance(bytes);
        Step::On
    }

    /// A comment that begins here, and its mode; `Some(None)`: there is none; `None`: more bytes are needed.
    fn comment(&self) -> Option<Option<(Mode, usize)>> {
        match self.peek(0) {
            Some(b'#') => Some(Some((Mode::LineComment, 1))),
            Some(b'-') => match self.looks_at(b"--")? {
                false => Some(None),
                true => match self.peek(2) {
                    None if self.ended => Some(Some((Mode::LineComment, 2))),
                    None => None,
                    Some(byte) => Some((byte <= b' ').then_some((Mode::LineComment, 2))),
                },
            },
            Some(b'/') => Some(self.looks_at(b"/*")?.then_some((Mode::BlockComment, 2))),
            _ => Some(None),
        }
    }

    /// Whether the comment that begins here is SQL; how long its beginning is.
    fn executable(&self) -> Option<Option<usize>> {
        if self.looks_at(b"/*!")? {
            return Some(Some(3));
        }
        Some(self.looks_at(b"/*M!")?.then_some(4))
    }

    fn is_sandbox(&self) -> Option<bool> {
        Some(self.looks_at(b"/*!999999\\-")? || self.looks_at(b"/*M!999999\\-")?)
    }

    /// In front of a statement.
    fn between(&mut self) -> Result<Step, SplitError> {
        let Some(byte) = self.peek(0) else { return Ok(Step::Wait) };
        if byte.is_ascii_whitespace() {
            self.advance(1);
            return Ok(Step::On);
        }
        if byte == b'\\' {
            return self.letter();
        }
        match self.looks_at(&self.delimiter) {
            None => return Ok(Step::Wait),
            Some(true) => {
                // Nothing between two delimiters is no statement.
                self.advance(self.delimiter.len());
                return Ok(Step::On);
            }
            Some(false) => {}
        }
        match self.comment() {
            None => return Ok(Step::Wait),
            Some(Some((Mode::BlockComment, bytes))) => match (self.is_sandbox(), self.executable()) {
                (None, _) | (_, None) => return Ok(Step::Wait),
                (Some(true), _) => {
                    self.sandboxed = true;
                    return Ok(self.open_mode(Mode::BlockComment, bytes));
                }
                (_, Some(None)) => return Ok(self.open_mode(Mode::BlockComment, bytes)),
                (_, Some(Some(_))) => {}
            },
            Some(Some((mode, bytes))) => return Ok(self.open_mode(mode, bytes)),
            Some(None) => {}
        }
        match self.word() {
            Ok(Some(command)) => self.word_command(command),
            Ok(None) => {
                self.begun = true;
                self.begun_line = self.line;
                self.plain()
            }
            Err(()) => Ok(Step::Wait),
        }
    }

    /// The command whose word begins here. `Err`: more bytes are needed.
    fn word(&self) -> Result<Option<&'static Command>, ()> {
        let here = &self.buffer[self.at..];
        let seen = &here[..here.len().min(LONGEST_WORD + 1)];
        let length = match seen.iter().position(|b| !b.is_ascii_alphabetic() && *b != b'?') {
            Some(length) => length,
            None if seen.len() > LONGEST_WORD => return Ok(None),
            None if self.ended => seen.len(),
            None => return Err(()),
        };
        let Some(command) = commands::by_word(&seen[..length]) else { return Ok(None) };
        let behind = &here[length..];
        let separate = match behind.first() {
            None => true,
            Some(byte) => byte.is_ascii_whitespace() || behind.starts_with(&self.delimiter),
        };
        let begins = || behind.len() < self.delimiter.len() && self.delimiter.starts_with(behind);
        if !separate {
            return if !self.ended && begins() { Err(()) } else { Ok(None) };
        }
        if command.name == Name::Use {
            // With a delimiter it is a statement like others, however its name is quoted.
            let Some(reach) = self.reach(length, true) else { return Err(()) };
            let fits = length + reach.taken <= self.longest_command();
            if fits && (reach.delimited || behind[..reach.argument].trim_ascii().is_empty()) {
                return Ok(None);
            }
        }
        Ok(Some(command))
    }

    /// How far the argument of a command reaches, from a distance to the end of the line or, where that counts, to the
    /// delimiter; `None`: more bytes are needed.
    fn reach(&self, distance: usize, to_delimiter: bool) -> Option<Reach> {
        let rest = &self.buffer[self.at + distance..];
        let newline = rest.iter().position(|b| *b == b'\n');
        let line = &rest[..newline.unwrap_or(rest.len())];
        if to_delimiter && let Some(argument) = find(line, &self.delimiter) {
            return Some(Reach { argument, taken: argument + self.delimiter.len(), delimited: true });
        }
        let whole = newline.is_some() || self.ended;
        whole.then_some(Reach { argument: line.len(), taken: line.len(), delimited: false })
    }

    fn word_command(&mut self, command: &'static Command) -> Result<Step, SplitError> {
        let word = command
            .words
            .iter()
            .find(|w| self.buffer[self.at..].get(..w.len()).is_some_and(|t| t.eq_ignore_ascii_case(w.as_bytes())))
            .map_or(0, |w| w.len());
        // What takes no argument still takes its delimiter along.
        let reach = if command.argument == Argument::None { Argument::Word } else { command.argument };
        self.command(command, word, reach, Vec::new())
    }

    /// A backslash in front of a statement.
    fn letter(&mut self) -> Result<Step, SplitError> {
        let letter = match self.peek(1) {
            Some(letter) => letter,
            None if self.ended => b' ',
            None => return Ok(Step::Wait),
        };
        let line = self.line;
        match commands::by_letter(letter) {
            None => Err(SplitError { line, why: Why::UnknownCommand { letter } }),
            // Nothing is there to be run or forgotten.
            Some(command) if matches!(command.name, Name::Go | Name::Ego | Name::Clear) => {
                self.advance(2);
                Ok(Step::On)
            }
            Some(command) => self.command(command, 2, command.argument, Vec::new()),
        }
    }

    /// Takes a command whose word or letter has `length` bytes.
    fn command(
        &mut self,
        command: &'static Command,
        length: usize,
        reach: Argument,
        before: Vec<u8>,
    ) -> Result<Step, SplitError> {
        let line = self.line;
        if reach == Argument::None {
            self.advance(length);
            let typed = Typed { name: command.name, argument: String::new(), line, before };
            return Ok(Step::Piece(Piece::Command(typed)));
        }
        let Some(reach) = self.reach(length, reach == Argument::Word) else { return Ok(Step::Wait) };
        let taken = reach.taken;
        if length + taken > self.longest_command() {
            return Err(self.long_command());
        }
        let argument = self.buffer[self.at + length..][..reach.argument].trim_ascii();
        if command.name == Name::Delimiter {
            let delimiter: Vec<u8> = argument.iter().copied().take_while(|b| !b.is_ascii_whitespace()).collect();
            let bad = delimiter.is_empty() || delimiter.iter().any(|b| b"\\'\"`".contains(b));
            self.advance(length + taken);
            if bad {
                return Err(SplitError { line, why: Why::Delimiter });
            }
            self.delimiter = delimiter;
            return Ok(Step::On);
        }
        let argument = argument.strip_suffix(self.delimiter.as_slice()).unwrap_or(argument);
        let argument = String::from_utf8_lossy(argument.trim_ascii()).into_owned();
        self.advance(length + taken);
        Ok(Step::Piece(Piece::Command(Typed { name: command.name, argument, line, before })))
    }

    /// In a statement, outside of quotes and plain comments.
    fn plain(&mut self) -> Result<Step, SplitError> {
        while let Some(byte) = self.peek(0) {
            match byte {
                b'\\' if !self.executable => return self.backslash(),
                _ if !self.executable && byte == self.delimiter[0] => match self.looks_at(&self.delimiter) {
                    None => return Ok(Step::Wait),
                    Some(true) => return Ok(Step::Piece(self.statement(Ending::Delimiter, self.delimiter.len()))),
                    Some(false) => {}
                },
                _ => {}
            }
            match byte {
                b'\'' | b'"' | b'`' => return Ok(self.open_mode(Mode::Quote(byte), 1)),
                b'#' | b'-' | b'/' => match (self.comment(), self.executable()) {
                    (None, _) => return Ok(Step::Wait),
                    (Some(None), _) => self.advance(1),
                    (Some(Some((Mode::BlockComment, _))), None) => return Ok(Step::Wait),
                    (Some(Some((Mode::BlockComment, _))), Some(Some(bytes))) if !self.executable => {
                        self.executable = true;
                        self.open_line = self.line;
                        self.advance(bytes);
                    }
                    (Some(Some((mode, bytes))), _) => return Ok(self.open_mode(mode, bytes)),
                },
                b'*' if self.executable => match self.looks_at(b"*/") {
                    None => return Ok(Step::Wait),
                    Some(end) => {
                        self.executable = !end;
                        self.advance(1 + usize::from(end));
                    }
                },
                0 => return Err(SplitError { line: self.line, why: Why::Zero }),
                b'\n' => self.advance(1),
                _ => self.at += 1,
            }
            if self.at - self.start > self.limit {
                return Err(self.too_long());
            }
        }
        Ok(Step::Wait)
    }

    /// A backslash in a statement.
    fn backslash(&mut self) -> Result<Step, SplitError> {
        let letter = match self.peek(1) {
            Some(letter) => letter,
            None if self.ended => b' ',
            None => return Ok(Step::Wait),
        };
        if letter == b'N' {
            self.advance(2);
            return Ok(Step::On);
        }
        let Some(command) = commands::by_letter(letter) else {
            return Err(SplitError { line: self.line, why: Why::UnknownCommand { letter } });
        };
        match command.name {
            Name::Go => Ok(Step::Piece(self.statement(Ending::Delimiter, 2))),
            Name::Ego => Ok(Step::Piece(self.statement(Ending::Vertical, 2))),
            Name::Clear => {
                self.advance(2);
                self.begin_again();
                Ok(Step::On)
            }
            Name::Edit => {
                let before = self.buffer[self.start..self.at].to_vec();
                self.begin_again();
                self.command(command, 2, Argument::None, before)
            }
            Name::Print => {
                let before = self.buffer[self.start..self.at].to_vec();
                // The statement goes on without it.
                self.buffer[self.at..self.at + 2].fill(b' ');
                self.command(command, 2, Argument::None, before)
            }
            _ => Err(SplitError { line: self.line, why: Why::NotInside { letter } }),
        }
    }

    /// Takes the current statement, and the `ending` bytes with which it ends.
    fn statement(&mut self, ending: Ending, bytes: usize) -> Piece {
        let text = self.buffer[self.start..self.at].trim_ascii_end().to_vec();
        let line = self.begun_line;
        self.advance(bytes);
        self.begin_again();
        Piece::Statement(Statement { text, line, ending })
    }

    fn quote(&mut self, quote: u8) -> Step {
        while let Some(byte) = self.peek(0) {
            if byte == quote {
                self.mode = Mode::Plain;
                self.at += 1;
                return Step::On;
            }
            match byte {
                b'\\' if quote != b'`' => match self.peek(1) {
                    Some(_) => self.advance(2),
                    None => return Step::Wait,
                },
                b'\n' => self.advance(1),
                _ => self.at += 1,
            }
            if self.at - self.start > self.limit {
                return Step::On;
            }
        }
        Step::Wait
    }

    fn line_comment(&mut self) -> Step {
        let here = &self.buffer[self.at..];
        match here.iter().position(|b| *b == b'\n') {
            // The line's end is white space like any other.
            Some(end) => {
                self.mode = Mode::Plain;
                self.advance(end);
                Step::On
            }
            None => {
                self.advance(here.len());
                Step::Wait
            }
        }
    }

    fn block_comment(&mut self) -> Step {
        let here = &self.buffer[self.at..];
        match find(here, b"*/") {
            Some(end) => {
                self.mode = Mode::Plain;
                self.advance(end + 2);
                Step::On
            }
            None => {
                // A star at the end may be the first half.
                self.advance(here.len() - usize::from(here.ends_with(b"*")));
                Step::Wait
            }
        }
    }
}

fn find(text: &[u8], sought: &[u8]) -> Option<usize> {
    text.windows(sought.len()).position(|window| window == sought)
}

/// The pieces of a text that is read as it is needed.
pub struct Statements<R> {
    reader: R,
    pub splitter: Splitter,
    chunk: Vec<u8>,
}

impl<R: Read> Statements<R> {
    pub fn new(reader: R, limit: usize) -> Statements<R> {
        Statements { reader, splitter: Splitter::new(limit), chunk: vec![0; CHUNK] }
    }

    /// `None`: the text has ended. Behind an error there is no more to come.
    pub fn take(&mut self) -> Result<Option<Piece>, SplitError> {
        loop {
            if let Some(piece) = self.splitter.take()? {
                return Ok(Some(piece));
            }
            if self.splitter.has_ended() {
                return Ok(None);
            }
            match self.reader.read(&mut self.chunk) {
                Ok(0) => self.splitter.end(),
                Ok(n) => self.splitter.push(&self.chunk[..n]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(SplitError { line: self.splitter.line, why: Why::Read(error) }),
            }
        }
    }
}

#[cfg(test)]
mod tests;
