//! Collations: how text compares, and the weight strings that stand in keys.
//!
//! | family | a character weighs | end of the text |
//! |---|---|---|
//! | `binary`, `utf8mb4_0900_bin` | (bytes, not characters) | NO PAD |
//! | `utf8mb4_bin` | its code point | PAD SPACE |
//! | `utf8mb4_general_ci` | one weight: upper case without accent, ß = s; all beyond the basic plane weigh the same | PAD SPACE |
//! | `utf8mb4_unicode_ci` and its languages | its primary weights in UCA 4.0.0, ß = ss; all beyond the basic plane weigh the same | PAD SPACE |
//! | `utf8mb4_unicode_520_ci` | its primary weights in UCA 5.2.0 | PAD SPACE |
//! | `utf8mb4_0900_…` and its languages | its weights in UCA 9.0.0, on one, two (`as_ci`) or three (`as_cs`) levels | NO PAD |
//! | `utf8mb4_uca1400_…` (MariaDB) | its weights in UCA 14.0.0, on one to three levels | PAD SPACE, or NO PAD |
//! | those of `utf8mb3`, `ucs2`, `utf16`, `utf32` | as those of utf8mb4 that are named so | as there |
//! | those of `latin1`, `cp1251`, `gbk` … | what a table says of its code ([`set`]) | PAD SPACE |
//!
//! A collation is MySQL's number; [`definitions`] says what each number means, [`uca`] how the Unicode collation algorithm is carried out,
//! [`tailoring`] what languages change. Punctuation is not ignored; control characters are.
//!
//! The tables in `tables/` are frozen, since keys on disk hold their weights. `tools/collation_tables.py` and `tools/uca_tables.py` made them: 0900 of
//! `allkeys-9.0.0.txt` and the rules of CLDR 30, the others of what MariaDB 10.11 answers for every character, which shares them with MySQL.
//! A test that is run by hand compares every character with that server again (`weights_are_those_of_mariadb`). Texts are UTF-8 whatever the character set.

mod definitions;
mod names;
mod set;
mod sort_key;
mod table;
mod tailoring;
mod uca;

#[cfg(test)]
mod tests;

use crate::charset::Charset;
use definitions::{Definition, Order};
use set::SetTable;
use std::cmp::Ordering;
use table::GeneralTable;
use tailoring::Tailoring;
use uca::{MOST, SUPPLEMENTARY, Uca};

/// A collation by MySQL's number. Each value is one that [`definitions`] has.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Collation(u16);

#[expect(non_upper_case_globals, reason = "named as the variants of an enum are, in schemas too")]
impl Collation {
    /// Bytes (BINARY, BLOB), no padding.
    pub const Binary: Collation = Collation(63);
    /// Code points, PAD SPACE.
    pub const Utf8mb4Bin: Collation = Collation(46);
    /// UCA 9.0.0, accent- and case-insensitive, NO PAD. The default.
    pub const Utf8mb40900AiCi: Collation = Collation(255);
    /// One weight a character, ß = s, PAD SPACE.
    pub const Utf8mb4GeneralCi: Collation = Collation(45);
    /// UCA 4.0.0, PAD SPACE, ß = ss.
    pub const Utf8mb4UnicodeCi: Collation = Collation(224);
}

impl Default for Collation {
    fn default() -> Self {
        Collation::DEFAULT
    }
}

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

impl Collation {
    pub const DEFAULT: Collation = Collation::Utf8mb40900AiCi;

    #[inline]
    const fn definition(self) -> &'static Definition {
        match definitions::by_id(self.0) {
            Some(definition) => definition,
            None => panic!("a collation has a definition"),
        }
    }

    /// Whether texts compare as if the shorter one had spaces at its end.
    #[inline]
    pub const fn pad_space(self) -> bool {
        self.definition().pad
    }

    /// Whether texts are equal only when their bytes are (but for spaces at the end, with PAD SPACE).
    #[inline]
    pub const fn is_binary(self) -> bool {
        matches!(self.definition().order, Order::Bytes | Order::CodePoints | Order::Set { binary: true, .. })
    }

    /// Whether keys hold the bytes themselves: NO PAD, by bytes.
    #[inline]
    pub const fn is_bytes(self) -> bool {
        matches!(self.definition().order, Order::Bytes)
    }

    /// Whether texts that differ in case only are different.
    pub fn is_case_sensitive(self) -> bool {
        match &self.definition().order {
            Order::Bytes | Order::CodePoints => true,
            Order::General(_) => false,
            Order::Set { .. } => self.is_binary() || self.name().ends_with("_cs"),
            // The last level is that of case, where there are three of them or its number is 2.
            Order::Uca(uca) => uca.levels[uca.levels.len() - 1] == 2,
        }
    }

    /// Compares valid UTF-8 (any bytes for [`Collation::Binary`]).
    pub fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        let definition = self.definition();
        match &definition.order {
            Order::Bytes => a.cmp(b),
            Order::CodePoints => compare_padded(a, b),
            Order::General(table) => {
                let Some((a, b)) = different(a, b) else { return Ordering::Equal };
                match compare_ascii(table.ascii_weights(), a, b) {
                    Ok(order) => order,
                    Err(equal) => {
                        let weights = |text| Weights::new(*table, text);
                        compare_weights(weights(&a[equal..]), weights(&b[equal..]), GENERAL_SPACE, definition.pad)
                    }
                }
            }
            Order::Set { table, .. } => {
                let Some((a, b)) = different(a, b) else { return Ordering::Equal };
                let table: &'static SetTable = table;
                match compare_ascii(table.ascii_weights(), a, b) {
                    Ok(order) => order,
                    Err(equal) => {
                        let weights = |text| Weights::new(table, text);
                        compare_weights(weights(&a[equal..]), weights(&b[equal..]), table.space(), definition.pad)
                    }
                }
            }
            Order::Uca(uca) => {
                let whole = (a, b);
                let Some((a, b)) = different(a, b) else { return Ordering::Equal };
                if let Some(tailoring) = uca.tailoring() {
                    let texts = with_open(tailoring, whole, a, b);
                    return compare_levels(uca, texts, definition.pad, |level| uca.tailored(tailoring, level));
                }
                compare_levels(uca, (a, b), definition.pad, |level| uca.plain(level))
            }
        }
    }

    /// Whether two texts are equal under the collation.
    pub fn equal(self, a: &[u8], b: &[u8]) -> bool {
        a == b || (!self.is_bytes() && self.compare(a, b) == Ordering::Equal)
    }

    /// Whether two characters weigh the same: how LIKE compares, character by character and without padding.
    pub fn chars_equal(self, a: char, b: char) -> bool {
        if a == b {
            return true;
        }
        let (mut x, mut y) = ([0u8; 4], [0u8; 4]);
        let (x, y) = (a.encode_utf8(&mut x), b.encode_utf8(&mut y));
        let (x, y) = (x.as_bytes(), y.as_bytes());
        match &self.definition().order {
            Order::Bytes | Order::CodePoints => false,
            Order::General(table) => Weights::new(*table, x).eq(Weights::new(*table, y)),
            Order::Set { table, .. } => {
                let table: &'static SetTable = table;
                Weights::new(table, x).eq(Weights::new(table, y))
            }
            Order::Uca(uca) => uca.levels.iter().all(|&level| match uca.tailoring() {
                Some(tailoring) => {
                    let weigher = uca.tailored(tailoring, level);
                    Weights::new(weigher, x).eq(Weights::new(weigher, y))
                }
                None => Weights::new(uca.plain(level), x).eq(Weights::new(uca.plain(level), y)),
            }),
        }
    }

    /// The one weight of an ASCII character, where the collation has one level and the character one weight.
    #[inline]
    pub fn ascii_weight(self, c: char) -> Option<u16> {
        let ascii = match &self.definition().order {
            Order::General(table) => table.ascii_weights(),
            Order::Set { table, binary: false } => table.ascii_weights(),
            Order::Uca(uca) if uca.levels.len() == 1 => uca.ascii_weights(),
            _ => return None,
        };
        ascii.get(c as usize).copied().filter(|weight| *weight != 0)
    }

    /// The 16-bit weights of a text, character after character, level after level with a zero between two; empty for binary collations, which have
    /// none. For WEIGHT_STRING and searches.
    pub fn weights(self, text: &[u8]) -> impl Iterator<Item = u16> {
        let order = &self.definition().order;
        let levels: &[usize] = match order {
            Order::Uca(uca) => uca.levels,
            Order::General(_) | Order::Set { .. } => &[0],
            Order::Bytes | Order::CodePoints => &[],
        };
        levels.iter().enumerate().flat_map(move |(at, level)| {
            let mut weights: Vec<u16> = Vec::new();
            if at > 0 {
                weights.push(0);
            }
            match order {
                Order::General(table) => weights.extend(Weights::new(*table, text)),
                Order::Set { table, .. } => weights.extend(Weights::new(&***table, text)),
                Order::Uca(uca) => match uca.tailoring() {
                    Some(tailoring) => weights.extend(Weights::new(uca.tailored(tailoring, *level), text)),
                    None => weights.extend(Weights::new(uca.plain(*level), text)),
                },
                Order::Bytes | Order::CodePoints => {}
            }
            weights
        })
    }
}

impl Collation {
    /// The character set of its texts.
    #[inline]
    pub const fn charset(self) -> Charset {
        self.definition().charset
    }

    /// The weight string where it is one of bytes and not of 16-bit weights: of sets that are not Unicode's.
    pub fn weight_bytes(self, text: &[u8]) -> Option<Vec<u8>> {
        let Order::Set { table, .. } = &self.definition().order else { return None };
        let table: &'static SetTable = table;
        Some(Weights::new(table, text).flat_map(|weight| table.weight_bytes(weight)).collect())
    }
}

/// What a space weighs in general_ci.
const GENERAL_SPACE: u16 = 0x20;

/// Two texts from the first character on that differs, since what is the same byte for byte weighs the same; `None`: they are the same.
#[inline]
fn different<'a>(a: &'a [u8], b: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let mut same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    if same == a.len() && same == b.len() {
        return None;
    }
    while same > 0 && [a, b].iter().any(|t| t.get(same).is_some_and(|byte| byte & 0xC0 == 0x80)) {
        same -= 1;
    }
    Some((&a[same..], &b[same..]))
}

/// The ends `a` and `b` of two whole texts with the characters before them that may be part of a contraction with what follows.
#[cold]
fn with_open<'a>(
    tailoring: &Tailoring,
    (whole_a, whole_b): (&'a [u8], &'a [u8]),
    a: &[u8],
    b: &[u8],
) -> (&'a [u8], &'a [u8]) {
    // The same in both.
    let mut same = whole_a.len() - a.len();
    debug_assert_eq!(same, whole_b.len() - b.len());
    while let Some(last) = whole_a[..same].iter().rposition(|byte| byte & 0xC0 != 0x80) {
        if !tailoring.is_open(first_char(&whole_a[last..]).0) {
            break;
        }
        same = last;
    }
    (&whole_a[same..], &whole_b[same..])
}

/// Compares as long as both texts have ASCII of one weight; else how many characters are equal.
#[inline]
fn compare_ascii(ascii: &[u16; 256], a: &[u8], b: &[u8]) -> Result<Ordering, usize> {
    let weight = |byte: u8| ascii[usize::from(byte)];
    let mut equal = 0;
    for (x, y) in a.iter().zip(b) {
        let (x, y) = (weight(*x), weight(*y));
        if x == 0 || y == 0 {
            break;
        }
        if x != y {
            return Ok(x.cmp(&y));
        }
        equal += 1;
    }
    Err(equal)
}

#[inline]
fn compare_levels<W: Weigh>(
    uca: &'static Uca,
    (a, b): (&[u8], &[u8]),
    pad: bool,
    weigh: impl Fn(usize) -> W,
) -> Ordering {
    let mut same = match compare_ascii(uca.ascii_weights(), a, b) {
        Ok(order) => return order,
        Err(equal) => equal,
    };
    if uca.levels.len() == 1 && same == a.len() && same == b.len() {
        return Ordering::Equal;
    }
    for &level in uca.levels {
        let weigher = weigh(level);
        let weights = |text| Weights::new(weigher, text);
        let order = compare_weights(weights(&a[same..]), weights(&b[same..]), uca.space(level), pad);
        if order != Ordering::Equal {
            return order;
        }
        // What weighs the same on one level need not on the next.
        same = 0;
    }
    Ordering::Equal
}

fn compare_weights<W: Weigh>(mut a: Weights<'_, W>, mut b: Weights<'_, W>, space: u16, pad: bool) -> Ordering {
    loop {
        match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (Some(x), Some(y)) if x == y => {}
            (Some(x), Some(y)) => return x.cmp(&y),
            (Some(x), None) if pad => return first_not(space, x, &mut a),
            (None, Some(y)) if pad => return first_not(space, y, &mut b).reverse(),
            (Some(_), None) => return Ordering::Greater,
            (None, Some(_)) => return Ordering::Less,
        }
    }
}

/// `text` without spaces at its end.
pub(crate) fn trim_spaces(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|b| *b != b' ').map_or(0, |last| last + 1);
    &text[..end]
}

/// How `first` and the weights after it compare with spaces without end.
fn first_not<W: Weigh>(space: u16, first: u16, rest: &mut Weights<'_, W>) -> Ordering {
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

/// Gives the weights of characters on one level. A trait, so that the loops over weights are compiled for each way of weighing.
trait Weigh: Copy {
    /// Calls `emit` with the weights of the first character of `text`, which is not empty, or of the contraction there; its length in bytes.
    fn first(&self, text: &[u8], emit: &mut impl FnMut(u16)) -> usize;
}

impl Weigh for &'static GeneralTable {
    #[inline]
    fn first(&self, text: &[u8], emit: &mut impl FnMut(u16)) -> usize {
        let (code, length) = first_char(text);
        emit(if code > 0xFFFF { SUPPLEMENTARY } else { self.weight(code as u16) });
        length
    }
}

/// The weights of a text on one level, one after the other.
struct Weights<'a, W> {
    weigh: W,
    text: &'a [u8],
    /// Weights of the present character, from `next` to `count`.
    pending: [u16; MOST],
    next: u8,
    count: u8,
}

impl<'a, W: Weigh> Weights<'a, W> {
    #[inline]
    fn new(weigh: W, text: &'a [u8]) -> Self {
        Weights { weigh, text, pending: [0; MOST], next: 0, count: 0 }
    }
}

impl<W: Weigh> Iterator for Weights<'_, W> {
    type Item = u16;

    #[inline]
    fn next(&mut self) -> Option<u16> {
        while self.next == self.count {
            if self.text.is_empty() {
                return None;
            }
            let mut count = 0;
            let pending = &mut self.pending;
            let length = self.weigh.first(self.text, &mut |weight| {
                pending[count] = weight;
                count += 1;
            });
            self.text = &self.text[length..];
            (self.next, self.count) = (0, count as u8);
        }
        self.next += 1;
        Some(self.pending[usize::from(self.next) - 1])
    }
}
