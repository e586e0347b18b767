//! JSON text to a tree.
//!
//! The parser is ours, not `serde_json`'s, for four reasons: MySQL tells integers, unsigned integers and doubles apart as RapidJSON does,
//! and refuses a double that overflows; depth has a limit and an error of its own (3157); a text that is no JSON is described in RapidJSON's words
//! with its byte; and memory is counted while the tree grows. A string without escapes is borrowed from the text.

use super::{Json, MAX_DEPTH, Members, Take, too_deep};
use crate::MysqlError;
use std::borrow::Cow;

/// What is wrong with a text that is no document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// In RapidJSON's words, as MySQL prints them.
    pub reason: &'static str,
    /// In bytes.
    pub position: usize,
}

/// Parses a document. The outer error is 3157 or one of `take`; the inner one says what is wrong with the text.
pub fn parse<'a>(text: &'a str, take: &mut Take<'_>) -> Result<Result<Json<'a>, Invalid>, MysqlError> {
    let mut parser = Parser { text, bytes: text.as_bytes(), at: 0, take };
    match parser.document() {
        Ok(json) => Ok(Ok(json)),
        Err(Stop::Invalid(invalid)) => Ok(Err(invalid)),
        Err(Stop::Error(error)) => Err(error),
    }
}

enum Stop {
    Invalid(Invalid),
    Error(MysqlError),
}

impl From<MysqlError> for Stop {
    fn from(error: MysqlError) -> Stop {
        Stop::Error(error)
    }
}

type Parsed<T> = Result<T, Stop>;

struct Parser<'a, 't, 'f> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    take: &'t mut Take<'f>,
}

/// Values of which the taker is told in one go.
const STEP: usize = 64;

impl<'a> Parser<'a, '_, '_> {
    fn fail<T>(&self, reason: &'static str) -> Parsed<T> {
        self.fail_at(reason, self.at)
    }

    #[cold]
    fn fail_at<T>(&self, reason: &'static str, position: usize) -> Parsed<T> {
        Err(Stop::Invalid(Invalid { reason, position }))
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[inline]
    fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    #[inline]
    fn accept(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn document(&mut self) -> Parsed<Json<'a>> {
        self.blanks();
        if self.at == self.bytes.len() {
            return self.fail("The document is empty.");
        }
        let json = self.value(1)?;
        self.blanks();
        if self.at < self.bytes.len() {
            return self.fail("The document root must not be followed by other values.");
        }
        Ok(json)
    }

    /// `depth`: of this value.
    fn value(&mut self, depth: usize) -> Parsed<Json<'a>> {
        if depth > MAX_DEPTH {
            return Err(too_deep().into());
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(Json::String),
            Some(b't') => self.literal("true", Json::Bool(true)),
            Some(b'f') => self.literal("false", Json::Bool(false)),
            Some(b'n') => self.literal("null", Json::Null),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.fail("Invalid value."),
        }
    }

    fn literal(&mut self, word: &str, json: Json<'a>) -> Parsed<Json<'a>> {
        for byte in word.bytes() {
            if !self.accept(byte) {
                return self.fail("Invalid value.");
            }
        }
        Ok(json)
    }

    fn object(&mut self, depth: usize) -> Parsed<Json<'a>> {
        self.at += 1;
        let mut members = Vec::new();
        self.blanks();
        if self.accept(b'}') {
            return Ok(Json::Object(Members::new(members)));
        }
        loop {
            if self.peek() != Some(b'"') {
                return self.fail("Missing a name for object member.");
            }
            let name = self.string()?;
            self.blanks();
            if !self.accept(b':') {
                return self.fail("Missing a colon after a name of object member.");
            }
            self.blanks();
            if members.len() % STEP == 0 {
                (self.take)(STEP * size_of::<(Cow<'_, str>, Json<'_>)>())?;
            }
            members.push((name, self.value(depth + 1)?));
            self.blanks();
            if self.accept(b'}') {
                return Ok(Json::Object(Members::new(members)));
            }
            if !self.accept(b',') {
                return self.fail("Missing a comma or } after an object member.");
            }
            self.blanks();
        }
    }

    fn array(&mut self, depth: usize) -> Parsed<Json<'a>> {
        self.at += 1;
        let mut items = Vec::new();
        self.blanks();
        if self.accept(b']') {
            return Ok(Json::Array(items));
        }
        loop {
            if items.len() % STEP == 0 {
                (self.take)(STEP * size_of::<Json<'_>>())?;
            }
            items.push(self.value(depth + 1)?);
            self.blanks();
            if self.accept(b']') {
                return Ok(Json::Array(items));
            }
            if !self.accept(b',') {
                return self.fail("Missing a comma or ] after an array element.");
            }
            self.blanks();
        }
    }

    fn string(&mut self) -> Parsed<Cow<'a, str>> {
        self.at += 1;
        let start = self.at;
        loop {
            match self.peek() {
                Some(b'"') => {
                    let text = &self.text[start..self.at];
                    self.at += 1;
                    return Ok(Cow::Borrowed(text));
                }
                Some(b'\\') => return self.escaped(start).map(Cow::Owned),
                Some(0) | None => return self.fail("Missing a closing quotation mark in string."),
                Some(0x01..=0x1F) => return self.fail("Invalid encoding in string."),
                Some(_) => self.at += 1,
            }
        }
    }

    /// The string from `start` on, of which the first escape is here.
    fn escaped(&mut self, start: usize) -> Parsed<String> {
        let mut text = String::from(&self.text[start..self.at]);
        let mut plain = self.at;
        loop {
            match self.peek() {
                Some(b'"') => {
                    text.push_str(&self.text[plain..self.at]);
                    self.at += 1;
                    (self.take)(text.capacity())?;
                    return Ok(text);
                }
                Some(b'\\') => {
                    text.push_str(&self.text[plain..self.at]);
                    let character = self.escape()?;
                    text.push(character);
                    plain = self.at;
                }
                Some(0) | None => return self.fail("Missing a closing quotation mark in string."),
                Some(0x01..=0x1F) => return self.fail("Invalid encoding in string."),
                Some(_) => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Parsed<char> {
        let start = self.at;
        self.at += 1;
        let character = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => byte.into(),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{C}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.unicode(start);
            }
            _ => return self.fail_at("Invalid escape character in string.", start),
        };
        self.at += 1;
        Ok(character)
    }

    fn unicode(&mut self, start: usize) -> Parsed<char> {
        let first = self.hex(start)?;
        let lonely = "The surrogate pair in string is invalid.";
        if !(0xD800..0xE000).contains(&first) {
            return char::from_u32(first).map_or_else(|| self.fail_at(lonely, start), Ok);
        }
        if first >= 0xDC00 || !self.accept(b'\\') || !self.accept(b'u') {
            return self.fail_at(lonely, start);
        }
        let second = self.hex(start)?;
        if !(0xDC00..0xE000).contains(&second) {
            return self.fail_at(lonely, start);
        }
        let code = 0x10000 + ((first - 0xD800) << 10 | (second - 0xDC00));
        char::from_u32(code).map_or_else(|| self.fail_at(lonely, start), Ok)
    }

    fn hex(&mut self, start: usize) -> Parsed<u32> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else {
                return self.fail_at("Incorrect hex digit after \\u escape in string.", start);
            };
            code = code << 4 | digit;
            self.at += 1;
        }
        Ok(code)
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        self.at - start
    }

    /// RapidJSON takes what fits into 32 bits, and what is negative, for signed.
    fn number(&mut self) -> Parsed<Json<'a>> {
        let start = self.at;
        let negative = self.accept(b'-');
        if !self.accept(b'0') && self.digits() == 0 {
            return self.fail("Invalid value.");
        }
        let mut whole = true;
        if self.accept(b'.') {
            whole = false;
            if self.digits() == 0 {
                return self.fail("Missing fraction part in number.");
            }
        }
        if let Some(b'e' | b'E') = self.peek() {
            whole = false;
            self.at += 1;
            if !self.accept(b'+') {
                self.accept(b'-');
            }
            if self.digits() == 0 {
                return self.fail("Missing exponent in number.");
            }
        }
        let text = &self.text[start..self.at];
        if whole {
            if negative && let Ok(number) = text.parse::<i64>() {
                return Ok(Json::Int(number));
            }
            if !negative && let Ok(number) = text.parse::<u64>() {
                let small = u32::try_from(number).ok();
                return Ok(small.map_or(Json::UInt(number), |small| Json::Int(small.into())));
            }
        }
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Json::Double(number)),
            _ => self.fail_at("Number too big to be stored in double.", start),
        }
    }
}
