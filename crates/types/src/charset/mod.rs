//! Character sets: which characters each has, and their codes in bytes.
//!
//! Rauk keeps and evaluates all text in UTF-8. The character set of a text is a property of its type, which the
//! collation names ([`Collation::charset`](crate::Collation::charset)); it decides which characters may be stored, and
//! the bytes wherever a text is seen as bytes: on the wire, in files, in LENGTH and HEX, beside binary strings. This
//! module converts there, in both directions.
//!
//! | coding | sets | where its table comes from |
//! |---|---|---|
//! | UTF-8 | utf8mb4, utf8mb3 (no character beyond the basic plane) | – |
//! | bytes | binary | – |
//! | one byte | ascii, latin1, cp125x, … | `tables/single_byte.bin`, made by `tools/charset_tables.py` of what MariaDB 10.11 converts |
//! | one or two bytes | gbk, sjis, cp932, euckr | `encoding_rs`, and what MySQL's sets lack or have otherwise ([`double`]) |
//! | one or two bytes | big5, gb2312 | `tables/big5.bin`, `tables/gb2312.bin`, made in the same way as that of one byte |
//! | one to three bytes | ujis, eucjpms | `tables/ujis.bin`, `tables/eucjpms.bin`, made in the same way ([`euc`]) |
//! | fixed units | ucs2, utf16, utf16le, utf32 | – |
//!
//! latin1 is MySQL's: cp1252 whose five undefined bytes are the control characters of the same numbers. A character
//! that a set lacks becomes `?`, and so does each byte of what is no code of the set; the caller is told, and decides
//! whether that is an error.
//!
//! Two differences from MySQL. Of two codes that mean the same character (cp932 has 398 such) a text has the one that
//! MySQL converts to, since it is kept as its characters. In sjis `\` is 5C and the full-width one 815F, in both
//! directions; MySQL reads both as `\` and writes both as 815F. In ujis the full-width one is A1C0 in the same way.
//!
//! Not there: swe7, whose codes below 80 are not ASCII; tis620, whose order moves letters; gb18030, which MariaDB does
//! not have, so that nothing says whether its codes and its order by pinyin are MySQL's.

mod definitions;
mod double;
mod euc;
mod single;

#[cfg(test)]
mod tests;

use definitions::{Coding, Definition};
use std::borrow::Cow;
use std::fmt;

/// A character set.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Charset(u8);

/// Bytes read as text.
pub struct Decoded<'a> {
    pub text: Cow<'a, str>,
    /// Where the first bytes are that are no code of the set; codes that have no character are `?` and not told.
    pub malformed: Option<usize>,
}

/// What stands for a character that a set lacks.
const UNKNOWN: char = '?';

impl Charset {
    /// All of them, by name.
    pub fn all() -> impl Iterator<Item = Charset> {
        (0..definitions::ALL.len()).map(|at| Charset(at as u8))
    }

    /// By name in any case; `utf8` is utf8mb3's old name.
    pub fn named(name: &str) -> Option<Charset> {
        let wanted = if name.eq_ignore_ascii_case("utf8") { "utf8mb3" } else { name };
        Charset::all().find(|set| set.name().eq_ignore_ascii_case(wanted))
    }

    #[inline]
    const fn definition(self) -> &'static Definition {
        &definitions::ALL[self.0 as usize]
    }

    pub const fn name(self) -> &'static str {
        self.definition().name
    }

    pub const fn description(self) -> &'static str {
        self.definition().description
    }

    /// The number of its default collation.
    pub(crate) const fn default_collation(self) -> u16 {
        self.definition().default_collation
    }

    /// Bytes of the longest character.
    pub const fn max_bytes(self) -> u32 {
        self.definition().max_bytes
    }

    /// Bytes of the shortest character.
    pub const fn min_bytes(self) -> u32 {
        match self.definition().coding {
            Coding::Ucs2 | Coding::Utf16 { .. } => 2,
            Coding::Utf32 => 4,
            _ => 1,
        }
    }

    /// Whether texts are kept in its own bytes: nothing is converted.
    #[inline]
    pub const fn is_utf8mb4(self) -> bool {
        self.0 == Charset::UTF8MB4.0
    }

    /// Whether every character of the basic plane is in it.
    pub const fn is_unicode(self) -> bool {
        !matches!(
            self.definition().coding,
            Coding::Bytes | Coding::Ascii | Coding::Single(_) | Coding::Double(_) | Coding::Euc(_)
        )
    }

    /// Whether it has the characters beyond the basic plane.
    pub const fn has_supplementary(self) -> bool {
        matches!(self.definition().coding, Coding::Utf8 | Coding::Utf16 { .. } | Coding::Utf32)
    }

    /// Whether statements may be written in it: ASCII is ASCII.
    pub const fn is_for_clients(self) -> bool {
        self.min_bytes() == 1
    }

    /// Bytes with as many zeros before them as a set needs whose characters have several bytes each.
    pub fn aligned(self, bytes: &[u8]) -> Cow<'_, [u8]> {
        match bytes.len().next_multiple_of(self.min_bytes() as usize) - bytes.len() {
            0 => Cow::Borrowed(bytes),
            missing => Cow::Owned([&vec![0; missing], bytes].concat()),
        }
    }

    /// Reads bytes as text. Binary ones are UTF-8.
    pub fn decode(self, bytes: &[u8]) -> Decoded<'_> {
        let coding = &self.definition().coding;
        if self.min_bytes() == 1 && bytes.is_ascii() {
            let text = std::str::from_utf8(bytes).expect("ASCII is UTF-8");
            return Decoded { text: Cow::Borrowed(text), malformed: None };
        }
        match coding {
            Coding::Utf8 | Coding::Bytes | Coding::Utf8Basic => match std::str::from_utf8(bytes) {
                Ok(text) if !matches!(coding, Coding::Utf8Basic) || self.lacks(text).is_none() => {
                    Decoded { text: Cow::Borrowed(text), malformed: None }
                }
                _ => self.decode_each(bytes),
            },
            _ => self.decode_each(bytes),
        }
    }

    fn decode_each(self, bytes: &[u8]) -> Decoded<'_> {
        let mut text = String::with_capacity(bytes.len());
        let mut malformed = None;
        let mut at = 0;
        while at < bytes.len() {
            match self.first(&bytes[at..]) {
                Some((character, length)) => {
                    text.push(character.unwrap_or(UNKNOWN));
                    at += length;
                }
                None => {
                    malformed = malformed.or(Some(at));
                    text.push(UNKNOWN);
                    at += (self.min_bytes() as usize).min(bytes.len() - at);
                }
            }
        }
        Decoded { text: Cow::Owned(text), malformed }
    }

    /// The length of what is well formed at the beginning of `bytes`, and of how many characters that is.
    pub fn well_formed(self, bytes: &[u8]) -> (usize, usize) {
        let (mut at, mut count) = (0, 0);
        while at < bytes.len() {
            let Some((_, length)) = self.first(&bytes[at..]) else { break };
            (at, count) = (at + length, count + 1);
        }
        (at, count)
    }

    /// Bytes of a character that begins with this byte; 0: none does.
    pub fn length_by(self, first: u8) -> usize {
        match &self.definition().coding {
            Coding::Utf8 | Coding::Utf8Basic => match first {
                0..0x80 => 1,
                0xC2..0xE0 => 2,
                0xE0..0xF0 => 3,
                0xF0..0xF8 => 4,
                _ => 0,
            },
            Coding::Double(table) => table.length_by(first),
            Coding::Euc(table) => table.length_by(first),
            _ => self.min_bytes() as usize,
        }
    }

    /// Bytes of the first character of `bytes`, which are not none; 1 where they begin with none.
    pub fn step(self, bytes: &[u8]) -> usize {
        if bytes[0].is_ascii() && self.min_bytes() == 1 { 1 } else { self.first(bytes).map_or(1, |(_, length)| length) }
    }

    /// The first character of bytes, which are not none, and the length of its code: no character: the code means none.
    /// `None`: they begin with no code.
    fn first(self, bytes: &[u8]) -> Option<(Option<char>, usize)> {
        let unit = |at: usize| Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
        match &self.definition().coding {
            Coding::Utf8 | Coding::Bytes | Coding::Utf8Basic => {
                let most = if matches!(self.definition().coding, Coding::Utf8Basic) { 3 } else { 4 };
                let (text, length) = (1..=most.min(bytes.len()))
                    .find_map(|length| std::str::from_utf8(&bytes[..length]).ok().map(|text| (text, length)))?;
                Some((text.chars().next(), length))
            }
            Coding::Ascii => bytes[0].is_ascii().then_some((Some(bytes[0].into()), 1)),
            Coding::Single(table) => Some((table.character(bytes[0]), 1)),
            Coding::Double(table) => table.first(bytes),
            Coding::Euc(table) => table.first(bytes),
            Coding::Ucs2 => unit(0).map(|unit| (char::from_u32(unit.into()), 2)),
            Coding::Utf16 { little } => {
                let unit = |at| unit(at).map(|unit| if *little { unit.swap_bytes() } else { unit });
                let first = unit(0)?;
                match char::from_u32(first.into()) {
                    Some(character) => Some((Some(character), 2)),
                    None => {
                        let character = char::decode_utf16([first, unit(2)?]).next()?.ok()?;
                        Some((Some(character), 4))
                    }
                }
            }
            Coding::Utf32 => {
                let number = u32::from_be_bytes(bytes.get(..4)?.try_into().ok()?);
                char::from_u32(number).map(|character| (Some(character), 4))
            }
        }
    }

    /// The bytes of a text; characters that the set lacks are `?`.
    #[inline]
    pub fn encode(self, text: &str) -> Cow<'_, [u8]> {
        if self.keeps(text) {
            return Cow::Borrowed(text.as_bytes());
        }
        let mut out = Vec::with_capacity(text.len());
        self.append(text, &mut out);
        Cow::Owned(out)
    }

    /// Whether the text's bytes in the set are those of its UTF-8, at a glance.
    #[inline]
    fn keeps(self, text: &str) -> bool {
        match self.definition().coding {
            Coding::Utf8 | Coding::Bytes => true,
            Coding::Ucs2 | Coding::Utf16 { .. } | Coding::Utf32 => text.is_empty(),
            _ => text.is_ascii(),
        }
    }

    /// Appends the bytes of a text, `?` for each character that the set lacks. Whether it had all.
    pub fn append(self, text: &str, out: &mut Vec<u8>) -> bool {
        if self.keeps(text) {
            out.extend_from_slice(text.as_bytes());
            return true;
        }
        let mut all = true;
        for character in text.chars() {
            if !self.put(character, out) {
                all = false;
                self.put(UNKNOWN, out);
            }
        }
        all
    }

    /// Appends the code of a character. Whether the set has it.
    fn put(self, character: char, out: &mut Vec<u8>) -> bool {
        match &self.definition().coding {
            Coding::Utf8 | Coding::Bytes | Coding::Utf8Basic => {
                if !self.has(character) {
                    return false;
                }
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            Coding::Ascii | Coding::Single(_) | Coding::Double(_) | Coding::Euc(_) => match self.code(character) {
                Some(code) => out.extend_from_slice(&code.to_be_bytes()[4 - code_length(code)..]),
                None => return false,
            },
            Coding::Ucs2 if !self.has(character) => return false,
            Coding::Ucs2 => out.extend_from_slice(&(character as u16).to_be_bytes()),
            Coding::Utf16 { little } => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    out.extend_from_slice(&if *little { unit.to_le_bytes() } else { unit.to_be_bytes() });
                }
            }
            Coding::Utf32 => out.extend_from_slice(&u32::from(character).to_be_bytes()),
        }
        true
    }

    /// The code of a character in a set whose codes are of one to three bytes; those of one byte are below 0x100.
    pub(crate) fn code(self, character: char) -> Option<u32> {
        if character.is_ascii() {
            return Some(character.into());
        }
        match &self.definition().coding {
            Coding::Single(table) => table.code(character).map(u32::from),
            Coding::Double(table) => table.code(character).map(u32::from),
            Coding::Euc(table) => table.code(character),
            _ => None,
        }
    }

    /// The characters of a set whose codes are of one to three bytes, with their codes.
    pub(crate) fn codes(self) -> Vec<(char, u32)> {
        let all = (0..=0xFFFF).filter_map(char::from_u32);
        all.filter_map(|character| self.code(character).map(|code| (character, code))).collect()
    }

    /// Whether the set has a character.
    pub fn has(self, character: char) -> bool {
        match &self.definition().coding {
            Coding::Utf8 | Coding::Bytes | Coding::Utf16 { .. } | Coding::Utf32 => true,
            Coding::Utf8Basic | Coding::Ucs2 => character <= '\u{FFFF}',
            Coding::Ascii | Coding::Single(_) | Coding::Double(_) | Coding::Euc(_) => self.code(character).is_some(),
        }
    }

    /// Where the first character of a text is that the set lacks.
    #[inline]
    pub fn lacks(self, text: &str) -> Option<usize> {
        match self.definition().coding {
            Coding::Utf8 | Coding::Bytes | Coding::Utf16 { .. } | Coding::Utf32 => None,
            _ if text.is_ascii() => None,
            _ => text.char_indices().find(|(_, character)| !self.has(*character)).map(|(at, _)| at),
        }
    }

    /// How many bytes a text has in the set.
    #[inline]
    pub fn length(self, text: &str) -> usize {
        match self.definition().coding {
            _ if self.keeps(text) => text.len(),
            Coding::Ucs2 => 2 * text.chars().count(),
            Coding::Utf16 { .. } => text.chars().map(|character| 2 * character.len_utf16()).sum(),
            Coding::Utf32 => 4 * text.chars().count(),
            Coding::Ascii | Coding::Single(_) => text.chars().count(),
            _ => {
                let bytes = |character| match self.code(character) {
                    Some(code) => code_length(code),
                    // UTF-8, or `?`.
                    None if self.is_unicode() && self.has(character) => character.len_utf8(),
                    None => 1,
                };
                text.chars().map(bytes).sum()
            }
        }
    }
}

/// Bytes of a code.
fn code_length(code: u32) -> usize {
    match code {
        0..=0xFF => 1,
        0x100..=0xFFFF => 2,
        _ => 3,
    }
}

impl fmt::Debug for Charset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
