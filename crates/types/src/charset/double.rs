//! Sets whose codes are one or two bytes: gbk, sjis, cp932, euckr, big5, gb2312.
//!
//! `encoding_rs` knows the encodings of the web, which are the first four of these sets in their newest forms. A table
//! of each is made of it at the first use, without the codes that MySQL's set lacks, and with its other meanings of a
//! few. Big5 of the web is another set (it has Hong Kong's characters, and other meanings), and GB 2312 is none there:
//! their tables are files, made of what MariaDB 10.11 says. A test compares each code with that
//! (`codes_are_those_of_mariadb`).

use encoding_rs::{EUC_KR, Encoding, GBK as GB18030, SHIFT_JIS};
use std::ops::RangeInclusive;
use std::sync::LazyLock;

/// The first code of two bytes.
const FIRST: u16 = 0x8000;

pub(super) struct Double {
    /// By code of two bytes, from [`FIRST`] on; 0: none.
    characters: Box<[u16]>,
    /// By character; 0: none.
    codes: Box<[u16]>,
    /// Whether a byte is the first of two.
    leads: fn(u8) -> bool,
    trails: fn(u8) -> bool,
    /// Half-width katakana: bytes that are characters of their own from U+FF61 on.
    katakana: bool,
}

/// What differs from the encoding of the web.
struct Differences {
    /// Codes that the set lacks.
    lacks: &'static [RangeInclusive<u16>],
    /// Codes with another meaning.
    other: &'static [(u16, char)],
    /// Codes that have a second one, which a text gets.
    second: &'static [RangeInclusive<u16>],
}

const NONE: Differences = Differences { lacks: &[], other: &[], second: &[] };

/// What GB 18030 added.
const GBK_DIFFERENCES: Differences = Differences {
    lacks: &[
        0xA140..=0xA1A0,
        0xA240..=0xA2A0,
        0xA2AB..=0xA2B0,
        0xA2E3..=0xA2E4,
        0xA2EF..=0xA2F0,
        0xA2FD..=0xA2FE,
        0xA340..=0xA3A0,
        0xA440..=0xA4A0,
        0xA4F4..=0xA4FE,
        0xA540..=0xA5A0,
        0xA5F7..=0xA5FE,
        0xA640..=0xA6A0,
        0xA6B9..=0xA6C0,
        0xA6D9..=0xA6DF,
        0xA6EC..=0xA6ED,
        0xA6F3..=0xA6F3,
        0xA6F6..=0xA6FE,
        0xA740..=0xA7A0,
        0xA7C2..=0xA7D0,
        0xA7F2..=0xA7FE,
        0xA896..=0xA8A0,
        0xA8BC..=0xA8BC,
        0xA8BF..=0xA8BF,
        0xA8C1..=0xA8C4,
        0xA8EA..=0xA8FE,
        0xA958..=0xA958,
        0xA95B..=0xA95B,
        0xA95D..=0xA95F,
        0xA989..=0xA995,
        0xA997..=0xA9A3,
        0xA9F0..=0xA9FE,
        0xAAA1..=0xAAFE,
        0xABA1..=0xABFE,
        0xACA1..=0xACFE,
        0xADA1..=0xADFE,
        0xAEA1..=0xAEFE,
        0xAFA1..=0xAFFE,
        0xD7FA..=0xD7FE,
        0xF8A1..=0xF8FE,
        0xF9A1..=0xF9FE,
        0xFAA1..=0xFAFE,
        0xFBA1..=0xFBFE,
        0xFCA1..=0xFCFE,
        0xFDA1..=0xFDFE,
        0xFE50..=0xFEFE,
    ],
    ..NONE
};

/// Windows' additions, and its meanings of characters of JIS X 0208.
const SJIS_DIFFERENCES: Differences = Differences {
    lacks: &[0x8740..=0x879C, 0xED40..=0xEEFC, 0xF040..=0xFC4B],
    other: &[
        (0x8160, '\u{301C}'),
        (0x8161, '\u{2016}'),
        (0x817C, '\u{2212}'),
        (0x8191, '\u{A2}'),
        (0x8192, '\u{A3}'),
        (0x81CA, '\u{AC}'),
    ],
    ..NONE
};

/// IBM's extensions that NEC selected.
const CP932_DIFFERENCES: Differences = Differences { second: &[0xED40..=0xEEFC], ..NONE };

impl Double {
    /// Of a file with the characters of all codes of two bytes in their order, 16 bits each.
    fn of_file(file: &[u8], leads: fn(u8) -> bool, trails: fn(u8) -> bool) -> Self {
        let mut characters = vec![0u16; 0x10000 - usize::from(FIRST)].into_boxed_slice();
        let mut codes = vec![0u16; 0x10000].into_boxed_slice();
        let mut words = file.chunks_exact(2).map(|word| u16::from_le_bytes([word[0], word[1]]));
        let is_code = |code: &u16| leads((code >> 8) as u8) && trails(*code as u8);
        for code in (FIRST..=0xFFFF).filter(is_code) {
            let character = words.next().expect("the file has all codes");
            characters[usize::from(code - FIRST)] = character;
            let present = &mut codes[usize::from(character)];
            // Big5 has seven codes for which there is no other character; MySQL writes the last of them.
            if character != 0 && (*present == 0 || character == 0xFFFD) {
                *present = code;
            }
        }
        assert!(words.next().is_none(), "the file has these codes only");
        Double { characters, codes, leads, trails, katakana: false }
    }

    fn new(
        encoding: &'static Encoding,
        differences: &Differences,
        leads: fn(u8) -> bool,
        trails: fn(u8) -> bool,
    ) -> Self {
        let katakana = encoding == SHIFT_JIS;
        let mut characters = vec![0u16; 0x10000 - usize::from(FIRST)].into_boxed_slice();
        let mut codes = vec![0u16; 0x10000].into_boxed_slice();
        for code in FIRST..=0xFFFF {
            let bytes = code.to_be_bytes();
            if !leads(bytes[0]) || !trails(bytes[1]) || differences.lacks.iter().any(|range| range.contains(&code)) {
                continue;
            }
            let other = differences.other.iter().find(|(of, _)| *of == code).map(|(_, character)| *character);
            let decoded = || {
                let text = encoding.decode_without_bom_handling_and_without_replacement(&bytes)?;
                let mut characters = text.chars();
                characters.next().filter(|_| characters.next().is_none())
            };
            // Each set is a part of the basic plane.
            if let Some(character) = other.or_else(decoded).and_then(|c| u16::try_from(u32::from(c)).ok()) {
                characters[usize::from(code - FIRST)] = character;
                let present = &mut codes[usize::from(character)];
                if *present == 0 || differences.second.iter().any(|range| range.contains(present)) {
                    *present = code;
                }
            }
        }
        Double { characters, codes, leads, trails, katakana }
    }

    /// As [`Charset::first`](super::Charset).
    pub fn first(&self, bytes: &[u8]) -> Option<(Option<char>, usize)> {
        let first = bytes[0];
        if first.is_ascii() {
            return Some((Some(first.into()), 1));
        }
        if self.katakana && KATAKANA.contains(&first) {
            return Some((char::from_u32(HALF_WIDTH + u32::from(first - KATAKANA.start())), 1));
        }
        let second = *bytes.get(1)?;
        if !(self.leads)(first) || !(self.trails)(second) {
            return None;
        }
        let character = self.characters[usize::from(u16::from_be_bytes([first, second]) - FIRST)];
        Some((char::from_u32(character.into()).filter(|c| *c != '\0'), 2))
    }

    /// Bytes of a code that begins with this byte; 0: none does.
    pub fn length_by(&self, first: u8) -> usize {
        match first {
            _ if first.is_ascii() || self.katakana && KATAKANA.contains(&first) => 1,
            _ if (self.leads)(first) => 2,
            _ => 0,
        }
    }

    /// The code of a character that is no ASCII.
    pub fn code(&self, character: char) -> Option<u16> {
        let number = u16::try_from(u32::from(character)).ok()?;
        let katakana = u32::from(number).wrapping_sub(HALF_WIDTH);
        if self.katakana && katakana < KATAKANA.count() as u32 {
            return Some(u16::from(*KATAKANA.start()) + katakana as u16);
        }
        Some(self.codes[usize::from(number)]).filter(|code| *code != 0)
    }
}

const KATAKANA: RangeInclusive<u8> = 0xA1..=0xDF;
const HALF_WIDTH: u32 = 0xFF61;

fn in_sjis(byte: u8) -> bool {
    matches!(byte, 0x81..=0x9F | 0xE0..=0xFC)
}

fn behind_in_sjis(byte: u8) -> bool {
    matches!(byte, 0x40..=0x7E | 0x80..=0xFC)
}

fn in_east_asia(byte: u8) -> bool {
    matches!(byte, 0x81..=0xFE)
}

pub(super) static GBK: LazyLock<Double> = LazyLock::new(|| {
    Double::new(GB18030, &GBK_DIFFERENCES, in_east_asia, |byte| matches!(byte, 0x40..=0x7E | 0x80..=0xFE))
});
pub(super) static SJIS: LazyLock<Double> =
    LazyLock::new(|| Double::new(SHIFT_JIS, &SJIS_DIFFERENCES, in_sjis, behind_in_sjis));
pub(super) static CP932: LazyLock<Double> =
    LazyLock::new(|| Double::new(SHIFT_JIS, &CP932_DIFFERENCES, in_sjis, behind_in_sjis));
pub(super) static EUCKR: LazyLock<Double> = LazyLock::new(|| {
    Double::new(EUC_KR, &NONE, in_east_asia, |byte| matches!(byte, 0x41..=0x5A | 0x61..=0x7A | 0x81..=0xFE))
});
pub(super) static BIG5: LazyLock<Double> = LazyLock::new(|| {
    let file = include_bytes!("tables/big5.bin");
    Double::of_file(file, |byte| matches!(byte, 0xA1..=0xF9), |byte| matches!(byte, 0x40..=0x7E | 0xA1..=0xFE))
});
pub(super) static GB2312: LazyLock<Double> = LazyLock::new(|| {
    let file = include_bytes!("tables/gb2312.bin");
    Double::of_file(file, |byte| matches!(byte, 0xA1..=0xF7), |byte| matches!(byte, 0xA1..=0xFE))
});
