//! Memcomparable keys: comparing the bytes compares the values.
//!
//! A key is the concatenation of its parts. A nullable part starts with one
//! byte (0 NULL, 1 value), so NULL sorts first; parts that cannot be NULL have
//! no such byte. No part is a prefix of another, so parts need no separator.
//!
//! | type | bytes of a part |
//! |---|---|
//! | integers | big-endian in the column's width, the sign bit flipped when signed |
//! | FLOAT, DOUBLE | 4 or 8 bytes, IEEE total order; -0 is 0 |
//! | DECIMAL | the unscaled integer at the column's scale, big-endian, sign bit flipped: 4, 8, 16 or 28 bytes for up to 9, 18, 38, 65 digits |
//! | ENUM, YEAR | 2 bytes, big-endian |
//! | SET, BIT | 8 bytes, big-endian |
//! | DATE | 3 bytes |
//! | TIME, DATETIME, TIMESTAMP | 8 bytes, biased |
//! | text, NO PAD | 16-bit weights, none of which is 0, of each level, with 0x0000 between levels and at the end |
//! | text, PAD SPACE | the sort key ([`Collation::sort_key`]), which ends itself |
//! | bytes, text by bytes | themselves, 0x00 becomes 0x00 0xFF, ended by 0x00 0x00 |
//!
//! A descending part has all its bytes inverted. Keys are equal exactly when the values are equal under the
//! collation; the value cannot be read back from a text key. A prefix index has the first characters (text) or bytes.
//!
//! [`hash`] is frozen: it decides which bucket a row lives in.

use crate::schema::IndexPart;
use crate::{Collation, DataType, Decimal, RowView, TableSchema, TypeKind, Value, ValueRef};

/// One column of a key.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyPart {
    /// Position in the table's columns.
    pub column: usize,
    pub ty: DataType,
    pub nullable: bool,
    pub prefix: Option<u32>,
    pub descending: bool,
}

/// How the keys of one index are made.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyDef {
    pub parts: Vec<KeyPart>,
}

/// The stable 64-bit hash of an encoded key (XXH3, seed 0).
#[inline]
pub fn hash(key: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(key)
}

/// The bucket of a row with this distribution hash.
#[inline]
pub fn bucket(hash: u64) -> u16 {
    // Multiply-shift instead of modulo; uses the high bits, the hash index uses the low ones.
    (((hash >> 32) * crate::schema::BUCKETS as u64) >> 32) as u16
}

impl KeyDef {
    pub fn new(table: &TableSchema, parts: &[IndexPart]) -> Self {
        KeyDef {
            parts: parts
                .iter()
                .map(|p| {
                    let column = &table.columns[p.column];
                    KeyPart {
                        column: p.column,
                        ty: column.ty,
                        nullable: column.nullable,
                        prefix: p.prefix,
                        descending: p.descending,
                    }
                })
                .collect(),
        }
    }

    /// Appends the key of a stored row to `out`.
    pub fn encode_row(&self, row: &RowView<'_>, out: &mut Vec<u8>) {
        for part in &self.parts {
            part.encode(row.get(part.column), out);
        }
    }

    /// Appends the key of a row given as one value for each column of the table.
    pub fn encode_values(&self, row: &[Value], out: &mut Vec<u8>) {
        for part in &self.parts {
            part.encode(row[part.column].as_ref(), out);
        }
    }

    /// Appends a key, or a prefix of one when `values` are fewer than the parts. The values
    /// must have been converted to the column types.
    pub fn encode_prefix(&self, values: &[ValueRef<'_>], out: &mut Vec<u8>) {
        for (part, value) in self.parts.iter().zip(values) {
            part.encode(*value, out);
        }
    }

    /// Whether bytes from outside are shaped as a key of this index: every part, and nothing behind. (A key that passes may still be one that no
    /// value has; it is found nowhere then.)
    #[inline]
    pub fn is_whole(&self, key: &[u8]) -> bool {
        let mut rest = key;
        for part in &self.parts {
            match part.checked_length_in(rest) {
                Some(length) => rest = &rest[length..],
                None => return false,
            }
        }
        rest.is_empty()
    }

    /// Whether bytes from outside are shaped as the first parts of a key, each of them whole: none of them, some, or all.
    pub fn is_prefix_of_parts(&self, key: &[u8]) -> bool {
        let mut rest = key;
        for part in &self.parts {
            if rest.is_empty() {
                return true;
            }
            match part.checked_length_in(rest) {
                Some(length) => rest = &rest[length..],
                None => return false,
            }
        }
        rest.is_empty()
    }

    /// Whether any part of the row's key is NULL (such rows are not in unique index tables).
    pub fn has_null(&self, row: &RowView<'_>) -> bool {
        self.parts.iter().any(|p| p.nullable && row.is_null(p.column))
    }

    /// Whether the stored row has exactly this key; the fast path of hash lookups. Allocates nothing.
    #[inline]
    pub fn matches(&self, row: &RowView<'_>, key: &[u8]) -> bool {
        let mut rest = key;
        for part in &self.parts {
            match part.strip(row.get(part.column), rest) {
                Some(after) => rest = after,
                None => return false,
            }
        }
        rest.is_empty()
    }
}

/// A part of up to eight bytes: the number whose last `width` bytes, big-endian, they are.
#[derive(Clone, Copy)]
struct Word {
    bits: u64,
    width: usize,
}

impl Word {
    #[inline]
    fn unsigned(bits: u64, width: usize) -> Self {
        Word { bits, width }
    }

    /// A signed number: the sign bit of its width flipped.
    #[inline]
    fn signed(value: i64, width: usize) -> Self {
        let shift = 64 - 8 * width as u32;
        Word { bits: ((value as u64) << shift ^ 1 << 63) >> shift, width }
    }
}

/// A DECIMAL of more than 18 digits as big-endian bytes, the last `width` of 32.
struct WideDecimal {
    bytes: [u8; 32],
    width: usize,
}

impl WideDecimal {
    fn new(value: Decimal, precision: u8) -> Self {
        let width = if precision <= 38 { 16 } else { 28 };
        let mut bytes = value.unscaled().to_be_bytes();
        bytes[32 - width] ^= 0x80;
        WideDecimal { bytes, width }
    }

    fn as_slice(&self) -> &[u8] {
        &self.bytes[32 - self.width..]
    }
}

#[cold]
fn mismatch(value: ValueRef<'_>, ty: &DataType) -> ! {
    panic!("{value:?} was not converted to the type of its key part, {ty:?}")
}

/// The number of the bits in ascending order.
#[inline]
fn ordered_f64(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 0 { bits ^ 1 << 63 } else { !bits }
}

#[inline]
fn ordered_f32(value: f32) -> u32 {
    let bits = (value + 0.0).to_bits();
    if bits >> 31 == 0 { bits ^ 1 << 31 } else { !bits }
}

/// At the scale of its column.
fn rescaled(value: Decimal, ty: &DataType) -> Decimal {
    if value.scale() == ty.scale {
        return value;
    }
    value.rescale(ty.scale).expect("a value converted to its column's type fits")
}

/// The first `chars` characters.
fn text_prefix(text: &str, chars: u32) -> &str {
    match text.char_indices().nth(chars as usize) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

impl KeyPart {
    /// The part of a value that takes up to eight bytes; `None` for text, bytes and long decimals.
    #[inline]
    fn word(&self, value: ValueRef<'_>) -> Option<Word> {
        use TypeKind::*;
        let width = match self.ty.kind {
            TinyInt => 1,
            SmallInt => 2,
            MediumInt => 3,
            Int => 4,
            BigInt => 8,
            // The same width whatever the number of members: members are added without a new index.
            Enum | Year => 2,
            Set | Bit => 8,
            _ => 0,
        };
        Some(match value {
            // Either variant will do where the number fits, so the bits are what counts.
            ValueRef::Int(v) if width > 0 => self.integer(v as u64, v.into(), width),
            ValueRef::UInt(v) if width > 0 => self.integer(v, v.into(), width),
            ValueRef::Double(v) if self.ty.kind == Double => Word::unsigned(ordered_f64(v), 8),
            ValueRef::Double(v) if self.ty.kind == Float => Word::unsigned(ordered_f32(v as f32).into(), 4),
            ValueRef::Decimal(v) if self.ty.kind == Decimal && self.ty.precision <= 18 => {
                let unscaled = rescaled(v, &self.ty).unscaled_i128().and_then(|v| i64::try_from(v).ok());
                Word::signed(unscaled.expect("18 digits fit"), if self.ty.precision <= 9 { 4 } else { 8 })
            }
            ValueRef::Date(v) if self.ty.kind == Date => Word::unsigned(v.packed().into(), 3),
            ValueRef::Time(v) if self.ty.kind == Time => Word::signed(v.micros(), 8),
            ValueRef::DateTime(v) if self.ty.kind == DateTime => Word::unsigned(v.packed(), 8),
            ValueRef::Timestamp(v) if self.ty.kind == Timestamp => Word::signed(v, 8),
            _ => return None,
        })
    }

    #[inline]
    fn integer(&self, bits: u64, value: i128, width: usize) -> Word {
        debug_assert!(
            // Members may have been added since.
            self.ty.is_plain_number()
                || self.ty.integer_range().is_some_and(|(low, high)| (low..=high).contains(&value)),
            "{value} is out of the range of {:?}",
            self.ty
        );
        if self.ty.unsigned || self.ty.is_plain_number() {
            Word::unsigned(bits, width)
        } else {
            Word::signed(bits as i64, width)
        }
    }

    /// The part of a DECIMAL of more than 18 digits.
    fn wide_decimal(&self, value: ValueRef<'_>) -> Option<WideDecimal> {
        match value {
            ValueRef::Decimal(v) if self.ty.kind == TypeKind::Decimal => {
                Some(WideDecimal::new(rescaled(v, &self.ty), self.ty.precision))
            }
            _ => None,
        }
    }

    /// What of a text or of bytes stands in the key, and how it is ordered.
    fn content<'a>(&self, value: ValueRef<'a>) -> (&'a [u8], Collation) {
        match value {
            ValueRef::Str(text) if self.ty.is_text() => {
                let text = self.prefix.map_or(text, |chars| text_prefix(text, chars));
                (text.as_bytes(), self.ty.collation)
            }
            ValueRef::Bytes(bytes) if self.ty.is_bytes() => {
                let length = self.prefix.map_or(bytes.len(), |prefix| bytes.len().min(prefix as usize));
                (&bytes[..length], Collation::Binary)
            }
            _ => mismatch(value, &self.ty),
        }
    }

    /// Appends one part. `value` has the column's type, or is NULL.
    pub fn encode(&self, value: ValueRef<'_>, out: &mut Vec<u8>) {
        let start = out.len();
        if self.nullable {
            out.push(u8::from(!value.is_null()));
        }
        if value.is_null() {
            assert!(self.nullable, "NULL in a key part that is NOT NULL");
        } else if let Some(word) = self.word(value) {
            out.extend_from_slice(&word.bits.to_be_bytes()[8 - word.width..]);
        } else if let Some(wide) = self.wide_decimal(value) {
            out.extend_from_slice(wide.as_slice());
        } else {
            let (content, collation) = self.content(value);
            if collation.is_bytes() {
                escape(content, |bytes| out.extend_from_slice(bytes));
            } else {
                collation.sort_key(content, out);
            }
            out.extend_from_slice(end_mark(collation));
        }
        if self.descending {
            out[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
    }

    /// Bytes that this part takes at the beginning of `key`: parts end themselves, so a key can be taken apart without its values.
    /// Panics when `key` does not begin with such a part.
    pub fn length_in(&self, key: &[u8]) -> usize {
        self.checked_length_in(key).expect("a key begins with its part")
    }

    /// The same for bytes that nobody vouches for: `None` when they do not begin with such a part.
    #[inline]
    pub fn checked_length_in(&self, key: &[u8]) -> Option<usize> {
        use TypeKind::*;
        let mask = if self.descending { 0xFF } else { 0 };
        let mut rest = key;
        if self.nullable {
            let (first, behind) = key.split_first()?;
            match *first ^ mask {
                0 => return Some(1),
                1 => rest = behind,
                _ => return None,
            }
        }
        let byte = |i: usize| rest.get(i).map(|byte| byte ^ mask);
        let length = match self.ty.kind {
            TinyInt => 1,
            SmallInt => 2,
            MediumInt | Date => 3,
            Int | Float => 4,
            BigInt | Double | Time | DateTime | Timestamp | Set | Bit => 8,
            Enum | Year => 2,
            Decimal => match self.ty.precision {
                ..=9 => 4,
                10..=18 => 8,
                19..=38 => 16,
                _ => 28,
            },
            _ if self.ty.is_text() && !self.ty.collation.is_bytes() => {
                self.ty.collation.sort_key_length(byte)? + end_mark(self.ty.collation).len()
            }
            _ => escaped_length(byte)? + 2,
        };
        (length <= rest.len()).then_some(length + usize::from(self.nullable))
    }

    /// Appends what the keys of all texts that begin with `text` have in common: the lower end of the range for LIKE 'text%' in this part.
    /// With [`prefix_successor`] of it, the range holds them all, and some others where `text` ends with spaces or exceeds a prefix index.
    /// (For a descending part the same bytes, inverted; the range is still from them to their successor.)
    pub fn encode_like_prefix(&self, text: &str, out: &mut Vec<u8>) {
        let start = out.len();
        if self.nullable {
            out.push(1);
        }
        let text = self.prefix.map_or(text, |chars| text_prefix(text, chars));
        if self.ty.collation.is_bytes() {
            escape(text.as_bytes(), |bytes| out.extend_from_slice(bytes));
        } else {
            self.ty.collation.sort_key_prefix(text.as_bytes(), out);
        }
        if self.descending {
            out[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
    }

    /// `key` without the part that `value` encodes to; `None` when it begins with something else.
    #[inline]
    fn strip<'k>(&self, value: ValueRef<'_>, key: &'k [u8]) -> Option<&'k [u8]> {
        let mut matcher = Matcher { key, mask: if self.descending { 0xFF } else { 0 }, failed: false };
        if self.nullable {
            matcher.take(&[u8::from(!value.is_null())]);
        }
        if value.is_null() {
            return matcher.rest();
        }
        if let Some(word) = self.word(value) {
            matcher.take_word(word);
            return matcher.rest();
        }
        if let Some(wide) = self.wide_decimal(value) {
            matcher.take(wide.as_slice());
            return matcher.rest();
        }
        let (content, collation) = self.content(value);
        if collation.is_bytes() {
            escape(content, |bytes| matcher.take(bytes));
        } else {
            collation.emit_key(content, |bytes| matcher.take(bytes));
        }
        matcher.take(end_mark(collation));
        matcher.rest()
    }
}

/// What follows the content of a text or of bytes. PAD SPACE sort keys end themselves.
fn end_mark(collation: Collation) -> &'static [u8] {
    if collation.pad_space() { &[] } else { &[0, 0] }
}

/// Calls `emit` with `bytes`, 0xFF after every 0x00.
fn escape(bytes: &[u8], mut emit: impl FnMut(&[u8])) {
    let mut pieces = bytes.split(|byte| *byte == 0);
    // There is always a first piece.
    emit(pieces.next().unwrap_or_default());
    for piece in pieces {
        emit(&[0, 0xFF]);
        emit(piece);
    }
}

/// Bytes before the two zero bytes that end escaped bytes; `None` when there is no such end.
fn escaped_length(byte: impl Fn(usize) -> Option<u8>) -> Option<usize> {
    let mut at = 0;
    loop {
        at += match byte(at)? {
            0 => match byte(at + 1)? {
                0 => return Some(at),
                0xFF => 2,
                _ => return None,
            },
            _ => 1,
        };
    }
}

/// Compares pieces with the beginning of a key.
struct Matcher<'k> {
    key: &'k [u8],
    /// 0xFF when the key's part is descending.
    mask: u8,
    failed: bool,
}

impl<'k> Matcher<'k> {
    #[inline]
    fn take(&mut self, bytes: &[u8]) {
        match self.key.split_at_checked(bytes.len()) {
            Some((head, rest)) if !self.failed => {
                let same = if self.mask == 0 { head == bytes } else { head.iter().zip(bytes).all(|(a, b)| *a == !*b) };
                self.failed = !same;
                self.key = rest;
            }
            _ => self.failed = true,
        }
    }

    #[inline]
    fn take_word(&mut self, word: Word) {
        let Some((head, rest)) = self.key.split_at_checked(word.width) else {
            self.failed = true;
            return;
        };
        let found = match head.first_chunk::<8>() {
            Some(all) => u64::from_be_bytes(*all),
            None => head.iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte)),
        };
        let found = if self.mask == 0 { found } else { !found & (u64::MAX >> (64 - 8 * word.width as u32)) };
        self.failed |= found != word.bits;
        self.key = rest;
    }

    fn rest(self) -> Option<&'k [u8]> {
        (!self.failed).then_some(self.key)
    }
}

/// Turns a key prefix into the smallest key that is above every key with that prefix, in place;
/// `false` when there is none (all bytes 0xFF), that is, the range is unbounded.
pub fn prefix_successor(key: &mut Vec<u8>) -> bool {
    while let Some(last) = key.pop() {
        if last != 0xFF {
            key.push(last + 1);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests;
