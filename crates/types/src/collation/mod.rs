//! Collations: how text compares, and the weight strings that stand in keys.
//!
//! | collation | a character weighs | end of the text |
//! |---|---|---|
//! | `binary` | (bytes, not characters) | NO PAD |
//! | `utf8mb4_bin` | its code point | PAD SPACE |
//! | `utf8mb4_0900_ai_ci` | its primary weights in UCA 9.0.0, none to eighteen | NO PAD |
//! | `utf8mb4_general_ci` | one weight: upper case without accent, ß = s; all beyond the basic plane weigh the same | PAD SPACE |
//! | `utf8mb4_unicode_ci` | its primary weights in UCA 4.0.0, ß = ss; all beyond the basic plane weigh the same | PAD SPACE |
//!
//! As in MySQL, no collation has contractions (its utf8mb4_0900_ai_ci leaves those of the DUCET out: MySQL bug 111828), so a text's weights are the weights of
//! its characters in turn. Punctuation is not ignored; control characters are.
//!
//! The tables in `tables/` are frozen, since keys on disk hold their weights. `tools/collation_tables.py` made them: 0900 from
//! `allkeys-9.0.0.txt`, the other two from what MariaDB 10.11, which shares them with MySQL, answers for every character of the basic plane.

mod names;
mod sort_key;
mod table;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use table::{FIRST_SEQUENCE, GENERAL_CI, IMPLICIT, UCA_0900, UNICODE_CI, UcaTable};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Collation {
    /// Bytes (BINARY, BLOB), no padding.
    Binary,
    /// Code points, PAD SPACE.
    Utf8mb4Bin,
    /// UCA 9.0.0, accent- and case-insensitive, NO PAD. The default.
    #[default]
    Utf8mb40900AiCi,
    /// One weight a character, ß = s, PAD SPACE.
    Utf8mb4GeneralCi,
    /// UCA 4.0.0, PAD SPACE, ß = ss.
    Utf8mb4UnicodeCi,
}

/// What every character beyond the basic plane weighs in the two older collations.
const SUPPLEMENTARY: u16 = 0xFFFD;

/// The first character of `text` and its length; a broken one counts as U+FFFD. `text` is not empty.
#[inline]
fn first_char(text: &[u8]) -> (u32, usize) {
    let byte = |i: usize| match text.get(i) {
        Some(byte) if byte & 0xC0 == 0x80 => Some(u32::from(byte & 0x3F)),
        _ => None,
    };
    let lead = u32::from(text[0]);
    let decoded = match lead {
        0..0x80 => return (lead, 1),
        0xC2..0xE0 => byte(1).map(|b| ((lead & 0x1F) << 6 | b, 2)),
        0xE0..0xF0 => byte(1).zip(byte(2)).map(|(b, c)| ((lead & 0x0F) << 12 | b << 6 | c, 3)),
        0xF0..0xF5 => byte(1)
            .zip(byte(2))
            .zip(byte(3))
            .map(|((b, c), d)| (((lead & 0x07) << 18 | b << 12 | c << 6 | d).min(0x10FFFF), 4)),
        _ => None,
    };
    decoded.unwrap_or((0xFFFD, 1))
}

/// Weights of one character that are not in a table.
#[inline]
fn implicit_0900(code: u32) -> [u16; 2] {
    let base = match code {
        0x17000..=0x18AFF => return [0xFB00, (code - 0x17000) as u16 | 0x8000],
        0x3400..=0x4DB5 | 0x20000..=0x2A6D6 | 0x2A700..=0x2B734 | 0x2B740..=0x2B81D | 0x2B820..=0x2CEA1 => 0xFB80,
        0x4E00..=0x9FD5 | 0xFA0E..=0xFA29 => 0xFB40,
        _ => 0xFBC0,
    };
    [base + (code >> 15) as u16, (code & 0x7FFF) as u16 | 0x8000]
}

#[inline]
fn implicit_400(code: u32) -> [u16; 2] {
    let base = match code {
        0x3400..=0x4DB5 => 0xFB80,
        0x4E00..=0x9FA5 => 0xFB40,
        _ => 0xFBC0,
    };
    [base + (code >> 15) as u16, (code & 0x7FFF) as u16 | 0x8000]
}

#[inline]
fn uca_weights(table: &UcaTable, code: u32, implicit: fn(u32) -> [u16; 2], emit: &mut impl FnMut(u16)) {
    match table.entry(code) {
        0 => {}
        IMPLICIT => implicit(code).into_iter().for_each(emit),
        entry @ ..FIRST_SEQUENCE => emit(entry),
        entry => table.sequence(entry - FIRST_SEQUENCE).iter().copied().for_each(emit),
    }
}

fn weights_0900(code: u32, emit: &mut impl FnMut(u16)) {
    /// Hangul syllables are leading consonant, vowel, trailing consonant in a regular order.
    const SYLLABLES: std::ops::RangeInclusive<u32> = 0xAC00..=0xD7A3;
    if SYLLABLES.contains(&code) {
        let number = code - SYLLABLES.start();
        let jamo = [0x1100 + number / 588, 0x1161 + number % 588 / 28, 0x11A7 + number % 28];
        // The first trailing "consonant" is none.
        let count = if jamo[2] == 0x11A7 { 2 } else { 3 };
        for code in &jamo[..count] {
            uca_weights(&UCA_0900, *code, implicit_0900, emit);
        }
        return;
    }
    uca_weights(&UCA_0900, code, implicit_0900, emit);
}

impl Collation {
    pub const DEFAULT: Collation = Collation::Utf8mb40900AiCi;

    /// Whether texts compare as if the shorter one had spaces at its end.
    pub const fn pad_space(self) -> bool {
        matches!(self, Collation::Utf8mb4Bin | Collation::Utf8mb4GeneralCi | Collation::Utf8mb4UnicodeCi)
    }

    /// Whether texts are equal only when their bytes are (but for spaces at the end, with PAD SPACE).
    pub const fn is_binary(self) -> bool {
        matches!(self, Collation::Binary | Collation::Utf8mb4Bin)
    }

    /// Weights of the ASCII characters by byte, for collations with 16-bit weights; 0 for what has none or is no ASCII.
    #[inline]
    fn ascii_weights(self) -> &'static [u16; 256] {
        match self {
            Collation::Utf8mb4GeneralCi => GENERAL_CI.ascii_weights(),
            Collation::Utf8mb4UnicodeCi => UNICODE_CI.ascii_weights(),
            _ => UCA_0900.ascii_weights(),
        }
    }

    /// Weight of a space, for collations with 16-bit weights.
    fn space(self) -> u16 {
        match self {
            Collation::Utf8mb4GeneralCi => 0x20,
            _ => 0x0209,
        }
    }

    /// Calls `emit` with every weight of a character, for collations with 16-bit weights.
    #[inline]
    fn char_weights(self, code: u32, emit: &mut impl FnMut(u16)) {
        match self {
            Collation::Utf8mb40900AiCi => weights_0900(code, emit),
            Collation::Utf8mb4GeneralCi => {
                emit(if code > 0xFFFF { SUPPLEMENTARY } else { GENERAL_CI.weight(code as u16) });
            }
            Collation::Utf8mb4UnicodeCi if code > 0xFFFF => emit(SUPPLEMENTARY),
            Collation::Utf8mb4UnicodeCi => uca_weights(&UNICODE_CI, code, implicit_400, emit),
            Collation::Binary | Collation::Utf8mb4Bin => unreachable!("binary collations compare bytes"),
        }
    }

    /// Compares valid UTF-8 (any bytes for [`Collation::Binary`]).
    pub fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Collation::Binary => a.cmp(b),
            Collation::Utf8mb4Bin => compare_padded(a, b),
            _ => {
                // What is the same byte for byte weighs the same; go on at the beginning of the first character that differs.
                let mut same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
                if same == a.len() && same == b.len() {
                    return Ordering::Equal;
                }
                while same > 0 && [a, b].iter().any(|t| t.get(same).is_some_and(|byte| byte & 0xC0 == 0x80)) {
                    same -= 1;
                }
                let (a, b) = (&a[same..], &b[same..]);
                // As long as both have ASCII that is not ignored, one character is one weight.
                let ascii = self.ascii_weights();
                let weight = |byte: u8| ascii[usize::from(byte)];
                let mut equal = 0;
                for (x, y) in a.iter().zip(b) {
                    let (x, y) = (weight(*x), weight(*y));
                    if x == 0 || y == 0 {
                        break;
                    }
                    if x != y {
                        return x.cmp(&y);
                    }
                    equal += 1;
                }
                self.compare_weights(&a[equal..], &b[equal..])
            }
        }
    }

    fn compare_weights(self, a: &[u8], b: &[u8]) -> Ordering {
        let (mut a, mut b) = (Weights::new(self, a), Weights::new(self, b));
        let space = self.space();
        loop {
            match (a.next(), b.next()) {
                (None, None) => return Ordering::Equal,
                (Some(x), Some(y)) if x == y => {}
                (Some(x), Some(y)) => return x.cmp(&y),
                (Some(x), None) if self.pad_space() => return first_not(space, x, &mut a),
                (None, Some(y)) if self.pad_space() => return first_not(space, y, &mut b).reverse(),
                (Some(_), None) => return Ordering::Greater,
                (None, Some(_)) => return Ordering::Less,
            }
        }
    }

    /// Whether two texts are equal under the collation.
    pub fn equal(self, a: &[u8], b: &[u8]) -> bool {
        a == b || (self != Collation::Binary && self.compare(a, b) == Ordering::Equal)
    }

    /// Whether two characters weigh the same: how LIKE compares, character by character and without padding.
    pub fn chars_equal(self, a: char, b: char) -> bool {
        if a == b {
            return true;
        }
        if self.is_binary() {
            return false;
        }
        let (mut x, mut y) = ([0u8; 4], [0u8; 4]);
        let (x, y) = (a.encode_utf8(&mut x), b.encode_utf8(&mut y));
        Weights::new(self, x.as_bytes()).eq(Weights::new(self, y.as_bytes()))
    }

    /// The 16-bit weights of a text, character after character; empty for binary collations, which have none. For WEIGHT_STRING and searches.
    pub fn weights(self, text: &[u8]) -> impl Iterator<Item = u16> {
        Weights::new(self, if self.is_binary() { &[] } else { text })
    }
}

/// `text` without spaces at its end.
pub(crate) fn trim_spaces(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|b| *b != b' ').map_or(0, |last| last + 1);
    &text[..end]
}

/// How `first` and the weights after it compare with spaces without end.
fn first_not(space: u16, first: u16, rest: &mut Weights<'_>) -> Ordering {
    std::iter::once(first).chain(rest).find(|weight| *weight != space).map_or(Ordering::Equal, |w| w.cmp(&space))
}

/// UTF-8 as if the shorter text had spaces at its end.
fn compare_padded(a: &[u8], b: &[u8]) -> Ordering {
    let common = a.len().min(b.len());
    a[..common].cmp(&b[..common]).then_with(|| {
        let longer = |rest: &[u8]| rest.iter().find(|b| **b != b' ').map_or(Ordering::Equal, |b| b.cmp(&b' '));
        longer(&a[common..]).then(longer(&b[common..]).reverse())
    })
}

/// The weights of a text, one after the other.
struct Weights<'a> {
    collation: Collation,
    text: &'a [u8],
    /// Weights of the present character, from `next` to `count`. The longest expansion of the tables has 18.
    pending: [u16; 20],
    next: u8,
    count: u8,
}

impl<'a> Weights<'a> {
    fn new(collation: Collation, text: &'a [u8]) -> Self {
        Weights { collation, text, pending: [0; 20], next: 0, count: 0 }
    }
}

impl Iterator for Weights<'_> {
    type Item = u16;

    #[inline]
    fn next(&mut self) -> Option<u16> {
        while self.next == self.count {
            if self.text.is_empty() {
                return None;
            }
            let (code, length) = first_char(self.text);
            self.text = &self.text[length..];
            let mut count = 0;
            let pending = &mut self.pending;
            self.collation.char_weights(code, &mut |weight| {
                pending[count] = weight;
                count += 1;
            });
            (self.next, self.count) = (0, count as u8);
        }
        self.next += 1;
        Some(self.pending[usize::from(self.next) - 1])
    }
}
