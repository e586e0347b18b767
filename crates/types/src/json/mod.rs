//! JSON documents as values: one binary form, read in parts where it lies.
//!
//! ```text
//! stored form   VERSION type value                     (first byte below 9: no JSON text begins so)
//!             | JSON text                              (rows written before there was a binary form; the native API)
//! object        count size key-entry* value-entry* key* value*
//! array         count size value-entry* value*
//! key-entry     offset, length u16                     in the order of lengths, then bytes
//! value-entry   type u8, offset or the value itself    (literals and integers that fit)
//! string        length varint, UTF-8
//! opaque        MySQL's column type u8, length varint, bytes: DECIMAL, DATE, TIME, DATETIME, BIT, binary strings
//! ```
//! `count`, `size`, `offset` are u16 in a small array or object, u32 in a large one (of 64 KiB and more); offsets count from the beginning
//! of `count`. It is the form of MySQL behind the first byte, so JSON_STORAGE_SIZE tells the same. The layout is frozen by golden bytes.
//!
//! An array or object does not say where it lies, so its bytes are a document of their own: [`JsonRef`] is a type and the bytes of
//! one value, borrowed from the row. Looking up a member is a binary search among the keys; only offsets on the way are read.
//! [`Json`] is a tree for changing documents; parts of it that nobody looks into stay [`JsonRef`]s, which are copied whole.
//!
//! - [`parse`](parse()): text to tree. [`Json::encode`]: tree to bytes. [`JsonRef::append_text`]: MySQL's normal form.
//! - [`JsonRef::compare`] and [`JsonRef::append_key`]: MySQL's order of JSON values, one by one and as bytes that sort so.
//! - Depth is at most [`MAX_DEPTH`]. Bytes that are no document give [`Corrupt`], never a panic, and no walk takes longer than
//!   the bytes are many: values within an array or object follow each other without overlap.
//!
//! Paths and functions are not here: they are SQL's (`sql/expr/json`).

mod encode;
mod order;
mod parse;
mod print;
mod read;
mod tree;

#[cfg(test)]
mod tests;

pub use parse::{Invalid, parse};
pub use print::{Form, append_double, append_quoted};
pub use read::{List, Node};
pub use tree::{Json, Members};

use crate::MysqlError;
use std::borrow::Cow;

/// How deep arrays and objects may stand in each other; scalars are at depth 1.
pub const MAX_DEPTH: usize = 100;

/// The longest name of a member in bytes.
pub const MAX_NAME: usize = u16::MAX as usize;

/// First byte of the binary form.
pub const VERSION: u8 = 1;

const SMALL_OBJECT: u8 = 0x00;
const LARGE_OBJECT: u8 = 0x01;
const SMALL_ARRAY: u8 = 0x02;
const LARGE_ARRAY: u8 = 0x03;
const LITERAL: u8 = 0x04;
const INT16: u8 = 0x05;
const UINT16: u8 = 0x06;
const INT32: u8 = 0x07;
const UINT32: u8 = 0x08;
const INT64: u8 = 0x09;
const UINT64: u8 = 0x0A;
const DOUBLE: u8 = 0x0B;
const STRING: u8 = 0x0C;
const OPAQUE: u8 = 0x0F;
/// Not of the binary form: the bytes are JSON text.
const TEXT: u8 = 0xFF;

const LITERAL_NULL: u8 = 0;
const LITERAL_TRUE: u8 = 1;
const LITERAL_FALSE: u8 = 2;

/// Column types of MySQL's protocol, as opaque values have them.
pub mod field {
    pub const DATE: u8 = 10;
    pub const TIME: u8 = 11;
    pub const DATETIME: u8 = 12;
    pub const VARCHAR: u8 = 15;
    pub const BIT: u8 = 16;
    pub const DECIMAL: u8 = 246;
    pub const TINY_BLOB: u8 = 249;
    pub const MEDIUM_BLOB: u8 = 250;
    pub const LONG_BLOB: u8 = 251;
    pub const BLOB: u8 = 252;
    pub const VAR_STRING: u8 = 253;
    pub const STRING: u8 = 254;
    pub const GEOMETRY: u8 = 255;
}

/// Bytes that are no document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt;

impl From<Corrupt> for MysqlError {
    fn from(_: Corrupt) -> MysqlError {
        MysqlError::new(3142, "The JSON binary value contains invalid data.")
    }
}

/// Counts bytes that are about to be used or gone through, and ends the work with an error.
pub type Take<'t> = dyn FnMut(usize) -> Result<(), MysqlError> + 't;

/// One JSON value, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonRef<'a> {
    tag: u8,
    bytes: &'a [u8],
}

impl<'a> JsonRef<'a> {
    pub const NULL: JsonRef<'static> = JsonRef { tag: LITERAL, bytes: &[LITERAL_NULL] };
    pub const TRUE: JsonRef<'static> = JsonRef { tag: LITERAL, bytes: &[LITERAL_TRUE] };
    pub const FALSE: JsonRef<'static> = JsonRef { tag: LITERAL, bytes: &[LITERAL_FALSE] };

    /// The value of a stored form, which is not looked into.
    #[inline]
    pub fn stored(bytes: &'a [u8]) -> JsonRef<'a> {
        match bytes {
            [VERSION, tag, value @ ..] if *tag != TEXT => JsonRef { tag: *tag, bytes: value },
            _ => JsonRef { tag: TEXT, bytes },
        }
    }

    /// JSON text as a value, not looked into.
    pub fn of_text(text: &'a str) -> JsonRef<'a> {
        JsonRef { tag: TEXT, bytes: text.as_bytes() }
    }

    /// Bytes of its stored form.
    #[inline]
    pub fn stored_len(self) -> usize {
        self.bytes.len() + if self.tag == TEXT { 0 } else { 2 }
    }

    /// Appends its stored form.
    #[inline]
    pub fn append_stored(self, out: &mut Vec<u8>) {
        if self.tag != TEXT {
            out.extend_from_slice(&[VERSION, self.tag]);
        }
        out.extend_from_slice(self.bytes);
    }

    /// Its stored form.
    pub fn to_stored(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.stored_len());
        self.append_stored(&mut out);
        out
    }

    /// Where it lies: no two values of a document lie at one place.
    pub fn address(self) -> *const u8 {
        self.bytes.as_ptr()
    }

    /// The text that it is, if it is still text.
    pub fn text(self) -> Option<&'a str> {
        if self.tag == TEXT { std::str::from_utf8(self.bytes).ok() } else { None }
    }

    /// Whether it is still text, and must be [normalised](JsonRef::normal) before it is read.
    #[inline]
    pub fn is_text(self) -> bool {
        self.tag == TEXT
    }

    /// It itself, or what its text says. An empty text is `null`. Errors: 3140, 3157, those of `take`.
    #[inline]
    pub fn normal(self, take: &mut Take<'_>) -> Result<Normal<'a>, MysqlError> {
        if self.tag != TEXT {
            return Ok(Normal { own: Cow::Borrowed(self.bytes), tag: self.tag });
        }
        self.parsed(take)
    }

    #[cold]
    fn parsed(self, take: &mut Take<'_>) -> Result<Normal<'a>, MysqlError> {
        let invalid = |_| MysqlError::new(crate::error::codes::INVALID_JSON_TEXT, "Invalid JSON text.");
        let text = std::str::from_utf8(self.bytes).map_err(invalid)?;
        if text.is_empty() {
            return Ok(Normal { own: Cow::Borrowed(JsonRef::NULL.bytes), tag: LITERAL });
        }
        let tree = parse(text, take)?.map_err(|invalid| {
            let Invalid { reason, position } = invalid;
            let message = format!("Invalid JSON text: \"{reason}\" at position {position}.");
            MysqlError::new(crate::error::codes::INVALID_JSON_TEXT, message)
        })?;
        Ok(Normal::of_stored(tree.encode(take)?))
    }
}

/// A value in the binary form, borrowed or made of text.
#[derive(Debug)]
pub struct Normal<'a> {
    own: Cow<'a, [u8]>,
    tag: u8,
}

impl Normal<'_> {
    /// Of a stored form in binary, as [`Json::encode`] gives it.
    pub fn of_stored(mut stored: Vec<u8>) -> Normal<'static> {
        let tag = stored.get(1).copied().unwrap_or(TEXT);
        stored.drain(..stored.len().min(2));
        Normal { own: Cow::Owned(stored), tag }
    }

    #[inline]
    pub fn get(&self) -> JsonRef<'_> {
        JsonRef { tag: self.tag, bytes: &self.own }
    }
}

/// Error 3157.
#[cold]
pub fn too_deep() -> MysqlError {
    MysqlError::new(3157, "The JSON document exceeds the maximum depth.")
}
