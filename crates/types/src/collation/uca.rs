//! Weights by the Unicode collation algorithm, as MySQL and MariaDB carry it out.
//!
//! A text has a list of weights on each of three levels: letters, accents, case. A collation compares by some of the levels, one after the
//! other. Characters that a table has no entry for have weights that are computed of their code points. A [`Tailoring`] replaces the weights of
//! a language's letters, and gives weights to characters that stand together (contractions; the longest counts).
//!
//! | version | weights that are computed | Hangul syllables | contractions of the standard table |
//! |---|---|---|---|
//! | 4.0.0, 5.2.0 | by the ranges of 4.0.0; 4.0.0 has one weight for all beyond the basic plane | in the table; computed | none |
//! | 9.0.0 | by its ranges | weigh as their letters | none (MySQL bug 111828) |
//! | 14.0.0 | by its ranges | computed | all |

use super::first_char;
use super::table::{
    FIRST_SEQUENCE, IMPLICIT, UCA_520, UCA_0900, UCA_0900_SECONDARY, UCA_0900_TERTIARY, UCA_1400, UCA_1400_SECONDARY,
    UCA_1400_TERTIARY, UNICODE_CI, UcaTable,
};
use super::tailoring::Tailoring;
use std::sync::OnceLock;

/// What every character beyond the basic plane weighs in UCA 4.0.0.
pub(super) const SUPPLEMENTARY: u16 = 0xFFFD;

/// Weights of the second and third level of a character whose weights are computed.
const OTHER_LEVELS: [u16; 2] = [0x20, 0x02];

/// The most weights that a character or a contraction has on a level.
pub(super) const MOST: usize = 20;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    V400,
    V520,
    V900,
    V1400,
}

/// How one collation weighs.
pub(super) struct Uca {
    pub version: Version,
    /// The levels that it compares by: 0 letters, 1 accents, 2 case.
    pub levels: &'static [usize],
    /// The section of `tables/tailorings.txt`.
    language: Option<&'static str>,
    found: OnceLock<&'static Tailoring>,
}

impl Uca {
    pub const fn new(version: Version, levels: &'static [usize], language: Option<&'static str>) -> Uca {
        Uca { version, levels, language, found: OnceLock::new() }
    }

    #[inline]
    pub fn tailoring(&self) -> Option<&'static Tailoring> {
        let language = self.language?;
        Some(self.found.get_or_init(|| Tailoring::of(language)))
    }

    pub fn weigher(&self, level: usize) -> Weigher {
        let table = self.table(level);
        let tailoring = self.tailoring();
        Weigher { version: self.version, level, table, tailoring }
    }

    fn table(&self, level: usize) -> &'static UcaTable {
        match (self.version, level) {
            (Version::V400, _) => &UNICODE_CI,
            (Version::V520, _) => &UCA_520,
            (Version::V900, 0) => &UCA_0900,
            (Version::V900, 1) => &UCA_0900_SECONDARY,
            (Version::V900, _) => &UCA_0900_TERTIARY,
            (Version::V1400, 0) => &UCA_1400,
            (Version::V1400, 1) => &UCA_1400_SECONDARY,
            (Version::V1400, _) => &UCA_1400_TERTIARY,
        }
    }

    /// Primary weights of ASCII characters by byte. 0: none, or to be looked at with what follows.
    #[inline]
    pub fn ascii_weights(&self) -> &'static [u16; 256] {
        match self.tailoring() {
            Some(tailoring) => tailoring.ascii_weights(),
            None => self.table(0).ascii_weights(),
        }
    }

    /// The weight of a space on a level.
    #[inline]
    pub fn space(&self, level: usize) -> u16 {
        if level == 0 { self.table(0).ascii_weights()[usize::from(b' ')] } else { OTHER_LEVELS[level - 1] }
    }
}

/// Gives the weights of one level.
#[derive(Clone, Copy)]
pub(super) struct Weigher {
    version: Version,
    level: usize,
    table: &'static UcaTable,
    tailoring: Option<&'static Tailoring>,
}

impl Weigher {
    /// Calls `emit` with the weights of the first character of `text`, which is not empty, or of the contraction there; its length in bytes.
    #[inline]
    pub fn first(&self, text: &[u8], emit: &mut impl FnMut(u16)) -> usize {
        let (code, length) = first_char(text);
        match self.tailoring {
            None => self.character(code, emit),
            Some(tailoring) => return self.tailored(tailoring, code, length, text, emit),
        }
        length
    }

    fn tailored(
        &self,
        tailoring: &'static Tailoring,
        code: u32,
        length: usize,
        text: &[u8],
        emit: &mut impl FnMut(u16),
    ) -> usize {
        let mut emit = |weight| emit(tailoring.finish(weight, self.level));
        if let Some((levels, length)) = tailoring.contraction(code, text) {
            levels[self.level].iter().copied().for_each(emit);
            return length;
        }
        match tailoring.single(code) {
            Some(levels) => levels[self.level].iter().copied().for_each(emit),
            None => self.character(code, &mut emit),
        }
        length
    }

    #[inline]
    fn character(&self, code: u32, emit: &mut impl FnMut(u16)) {
        /// Of UCA 9.0.0: leading consonant, vowel, trailing consonant in a regular order.
        const SYLLABLES: std::ops::RangeInclusive<u32> = 0xAC00..=0xD7A3;
        if self.version == Version::V900 && SYLLABLES.contains(&code) {
            let number = code - SYLLABLES.start();
            let jamo = [0x1100 + number / 588, 0x1161 + number % 588 / 28, 0x11A7 + number % 28];
            // The first trailing "consonant" is none.
            let count = if jamo[2] == 0x11A7 { 2 } else { 3 };
            jamo[..count].iter().for_each(|code| self.entry(*code, emit));
        } else if self.version == Version::V400 && code > 0xFFFF {
            emit(SUPPLEMENTARY);
        } else {
            self.entry(code, emit);
        }
    }

    #[inline]
    fn entry(&self, code: u32, emit: &mut impl FnMut(u16)) {
        match self.table.entry(code) {
            0 => {}
            IMPLICIT if self.level == 0 => implicit(self.version, code).into_iter().for_each(emit),
            IMPLICIT => emit(OTHER_LEVELS[self.level - 1]),
            entry @ ..FIRST_SEQUENCE => emit(entry),
            entry => self.table.sequence(entry - FIRST_SEQUENCE).iter().copied().for_each(emit),
        }
    }
}

/// Primary weights of a character that is in no table.
#[inline]
fn implicit(version: Version, code: u32) -> [u16; 2] {
    let han = match (version, code) {
        (Version::V400 | Version::V520, 0x3400..=0x4DB5) => 0xFB80,
        (Version::V400 | Version::V520, 0x4E00..=0x9FA5) => 0xFB40,
        (Version::V400 | Version::V520, _) => 0xFBC0,
        (_, 0x17000..=0x18AFF) => return [0xFB00, (code - 0x17000) as u16 | 0x8000],
        (Version::V1400, 0x18D00..=0x18D8F) => return [0xFB00, (code - 0x17000) as u16 | 0x8000],
        (Version::V1400, 0x18B00..=0x18CFF) => return [0xFB02, (code - 0x18B00) as u16 | 0x8000],
        (Version::V1400, 0x1B170..=0x1B2FF) => return [0xFB01, (code - 0x1B170) as u16 | 0x8000],
        (Version::V900, 0x3400..=0x4DB5 | 0x20000..=0x2A6D6 | 0x2A700..=0x2B734) => 0xFB80,
        (Version::V1400, 0x3400..=0x4DBF | 0x20000..=0x2A6DF | 0x2A700..=0x2B738) => 0xFB80,
        (_, 0x2B740..=0x2B81D | 0x2B820..=0x2CEA1) => 0xFB80,
        (Version::V1400, 0x2CEB0..=0x2EBE0 | 0x30000..=0x3134A) => 0xFB80,
        (Version::V900, 0x4E00..=0x9FD5 | 0xFA0E..=0xFA29) => 0xFB40,
        (Version::V1400, 0x4E00..=0x9FFF) => 0xFB40,
        (Version::V1400, 0xFA0E | 0xFA0F | 0xFA11 | 0xFA13 | 0xFA14 | 0xFA1F | 0xFA21 | 0xFA23 | 0xFA24) => 0xFB40,
        (Version::V1400, 0xFA27..=0xFA29) => 0xFB40,
        _ => 0xFBC0,
    };
    [han + (code >> 15) as u16, (code & 0x7FFF) as u16 | 0x8000]
}
