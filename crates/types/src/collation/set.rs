//! The orders of character sets that are not Unicode's: one weight a character (two of a few in latin1_german2_ci),
//! from tables by the set's codes.
//!
//! Texts are UTF-8 here as everywhere, so a table by characters is made of the set's codes and their weights when a
//! collation is first used. Codes of one byte weigh a byte. Where a set has codes of two bytes, theirs are the high
//! one, so that the order is that of MySQL's weight strings, byte by byte; the third byte of a code is a second weight. A
//! character that the set lacks, which only a
//! constant beside a column can be, weighs more than all others.

use super::first_char;
use crate::charset::Charset;
use std::sync::LazyLock;

/// How a collation weighs the codes of its set.
enum Weights {
    /// By the code itself.
    Code,
    /// By the code, with `a` as `A`.
    Folded,
    /// By the order of this number in `tables/single_byte.bin`.
    Single(usize),
    /// By a table of the set's codes, in their order.
    Table(&'static [u8]),
}

/// What a character weighs that the set lacks.
const LACKING: u16 = 0xFFFF;

static SINGLE: &[u8; 40 * 256] = include_bytes!("tables/single_byte.bin");
/// Behind the orders.
const GERMAN2_SECOND: usize = 39;
const GERMAN2: usize = 27;
static BIG5_WORDS: &[u8] = include_bytes!("tables/big5_chinese.bin");
static GB2312_WORDS: &[u8] = include_bytes!("tables/gb2312_chinese.bin");
static GBK_WORDS: &[u8] = include_bytes!("tables/gbk_chinese.bin");

pub(super) struct SetTable {
    ascii: [u16; 256],
    /// By character / 256: 0 or 1 + the number of its page.
    index: [u16; 256],
    pages: Vec<[u16; 256]>,
    /// Characters with a second weight, in their order.
    second: Vec<(u32, u16)>,
    /// Weights have two bytes, but those with a low one of zero and a high one up to this.
    double: Option<u8>,
}

impl SetTable {
    fn new(set: Charset, weights: Weights) -> Self {
        let double = set.max_bytes() > 1;
        let mut codes = set.codes();
        codes.sort_unstable_by_key(|(_, code)| *code);
        let words = if let Weights::Table(words) = weights { words } else { &[] };
        let mut words = words.chunks_exact(2).map(|word| u16::from_le_bytes([word[0], word[1]]));
        // Only gbk_chinese_ci has weights of two bytes that end with zero.
        let most = if matches!(weights, Weights::Table(_)) { 0x7F } else { 0xFF };
        let mut table = SetTable {
            ascii: [0; 256],
            index: [0; 256],
            pages: Vec::new(),
            second: Vec::new(),
            double: double.then_some(most),
        };
        for (character, code) in codes {
            let folded = if (0x61..=0x7A).contains(&code) { code - 0x20 } else { code };
            let number = u32::from(character);
            if code > 0xFFFF {
                table.second.push((number, (code << 8) as u16));
            }
            let code_weight = |code: u32| if code > 0xFFFF { (code >> 8) as u16 } else { code as u16 };
            let weight = match weights {
                Weights::Code => code_weight(code),
                Weights::Folded => code_weight(folded),
                Weights::Single(number) => SINGLE[256 * number + code as usize].into(),
                Weights::Table(_) => words.next().expect("a weight for each code"),
            };
            let weight = if double && weight <= 0xFF { weight << 8 } else { weight };
            if number < 0x80 {
                table.ascii[number as usize] = weight;
            }
            table.page(number)[(number & 0xFF) as usize] = weight;
            if matches!(weights, Weights::Single(GERMAN2)) {
                match SINGLE[256 * GERMAN2_SECOND + code as usize] {
                    0 => {}
                    second => table.second.push((number, second.into())),
                }
            }
        }
        table.second.sort_unstable();
        table
    }

    fn page(&mut self, number: u32) -> &mut [u16; 256] {
        let page = &mut self.index[(number >> 8) as usize];
        if *page == 0 {
            self.pages.push([LACKING; 256]);
            *page = self.pages.len() as u16;
        }
        &mut self.pages[usize::from(*page) - 1]
    }

    /// The weights of the ASCII characters by byte; 0 for bytes that are no ASCII, and for U+0000, which is not
    /// ignored.
    #[inline]
    pub fn ascii_weights(&self) -> &[u16; 256] {
        &self.ascii
    }

    pub fn space(&self) -> u16 {
        self.ascii[usize::from(b' ')]
    }

    fn weight(&self, number: u32) -> u16 {
        match self.index.get((number >> 8) as usize) {
            Some(page @ 1..) => self.pages[usize::from(*page) - 1][(number & 0xFF) as usize],
            _ => LACKING,
        }
    }

    /// The bytes of a weight as MySQL writes them.
    pub fn weight_bytes(&self, weight: u16) -> impl Iterator<Item = u8> {
        let [high, low] = weight.to_be_bytes();
        let (first, second) = match self.double {
            Some(most) if low == 0 && high <= most => (high, None),
            Some(_) => (high, Some(low)),
            None => (low, None),
        };
        std::iter::once(first).chain(second)
    }
}

impl super::Weigh for &'static SetTable {
    #[inline]
    fn first(&self, text: &[u8], emit: &mut impl FnMut(u16)) -> usize {
        let (number, length) = first_char(text);
        emit(self.weight(number));
        if !self.second.is_empty()
            && let Ok(at) = self.second.binary_search_by_key(&number, |(of, _)| *of)
        {
            emit(self.second[at].1);
        }
        length
    }
}

macro_rules! tables {
    ($($name:ident $set:ident $weights:expr;)*) => {
        $(pub(super) static $name: LazyLock<SetTable> = LazyLock::new(|| SetTable::new(Charset::$set, $weights));)*
    };
}

tables! {
    ARMSCII8_BIN ARMSCII8 Weights::Code;
    ASCII_BIN ASCII Weights::Code;
    BIG5_BIN BIG5 Weights::Code;
    CP1250_BIN CP1250 Weights::Code;
    CP1251_BIN CP1251 Weights::Code;
    CP1256_BIN CP1256 Weights::Code;
    CP1257_BIN CP1257 Weights::Code;
    CP850_BIN CP850 Weights::Code;
    CP852_BIN CP852 Weights::Code;
    CP866_BIN CP866 Weights::Code;
    CP932_BIN CP932 Weights::Code;
    DEC8_BIN DEC8 Weights::Code;
    EUCJPMS_BIN EUCJPMS Weights::Code;
    EUCKR_BIN EUCKR Weights::Code;
    GB2312_BIN GB2312 Weights::Code;
    GBK_BIN GBK Weights::Code;
    GEOSTD8_BIN GEOSTD8 Weights::Code;
    GREEK_BIN GREEK Weights::Code;
    HEBREW_BIN HEBREW Weights::Code;
    HP8_BIN HP8 Weights::Code;
    KEYBCS2_BIN KEYBCS2 Weights::Code;
    KOI8R_BIN KOI8R Weights::Code;
    KOI8U_BIN KOI8U Weights::Code;
    LATIN1_BIN LATIN1 Weights::Code;
    LATIN2_BIN LATIN2 Weights::Code;
    LATIN5_BIN LATIN5 Weights::Code;
    LATIN7_BIN LATIN7 Weights::Code;
    MACCE_BIN MACCE Weights::Code;
    MACROMAN_BIN MACROMAN Weights::Code;
    SJIS_BIN SJIS Weights::Code;
    UJIS_BIN UJIS Weights::Code;
    ARMSCII8_GENERAL_CI ARMSCII8 Weights::Single(0);
    ASCII_GENERAL_CI ASCII Weights::Single(1);
    CP1250_CROATIAN_CI CP1250 Weights::Single(2);
    CP1250_GENERAL_CI CP1250 Weights::Single(3);
    CP1250_POLISH_CI CP1250 Weights::Single(4);
    CP1251_BULGARIAN_CI CP1251 Weights::Single(5);
    CP1251_GENERAL_CI CP1251 Weights::Single(6);
    CP1251_GENERAL_CS CP1251 Weights::Single(7);
    CP1251_UKRAINIAN_CI CP1251 Weights::Single(8);
    CP1256_GENERAL_CI CP1256 Weights::Single(9);
    CP1257_GENERAL_CI CP1257 Weights::Single(10);
    CP1257_LITHUANIAN_CI CP1257 Weights::Single(11);
    CP850_GENERAL_CI CP850 Weights::Single(12);
    CP852_GENERAL_CI CP852 Weights::Single(13);
    CP866_GENERAL_CI CP866 Weights::Single(14);
    DEC8_SWEDISH_CI DEC8 Weights::Single(15);
    GEOSTD8_GENERAL_CI GEOSTD8 Weights::Single(16);
    GREEK_GENERAL_CI GREEK Weights::Single(17);
    HEBREW_GENERAL_CI HEBREW Weights::Single(18);
    HP8_ENGLISH_CI HP8 Weights::Single(19);
    KEYBCS2_GENERAL_CI KEYBCS2 Weights::Single(20);
    KOI8R_GENERAL_CI KOI8R Weights::Single(21);
    KOI8U_GENERAL_CI KOI8U Weights::Single(22);
    LATIN1_DANISH_CI LATIN1 Weights::Single(23);
    LATIN1_GENERAL_CI LATIN1 Weights::Single(24);
    LATIN1_GENERAL_CS LATIN1 Weights::Single(25);
    LATIN1_GERMAN1_CI LATIN1 Weights::Single(26);
    LATIN1_GERMAN2_CI LATIN1 Weights::Single(27);
    LATIN1_SPANISH_CI LATIN1 Weights::Single(28);
    LATIN1_SWEDISH_CI LATIN1 Weights::Single(29);
    LATIN2_CROATIAN_CI LATIN2 Weights::Single(30);
    LATIN2_GENERAL_CI LATIN2 Weights::Single(31);
    LATIN2_HUNGARIAN_CI LATIN2 Weights::Single(32);
    LATIN5_TURKISH_CI LATIN5 Weights::Single(33);
    LATIN7_ESTONIAN_CS LATIN7 Weights::Single(34);
    LATIN7_GENERAL_CI LATIN7 Weights::Single(35);
    LATIN7_GENERAL_CS LATIN7 Weights::Single(36);
    MACCE_GENERAL_CI MACCE Weights::Single(37);
    MACROMAN_GENERAL_CI MACROMAN Weights::Single(38);
    CP932_JAPANESE_CI CP932 Weights::Folded;
    EUCJPMS_JAPANESE_CI EUCJPMS Weights::Folded;
    EUCKR_KOREAN_CI EUCKR Weights::Folded;
    SJIS_JAPANESE_CI SJIS Weights::Folded;
    UJIS_JAPANESE_CI UJIS Weights::Folded;
    BIG5_CHINESE_CI BIG5 Weights::Table(BIG5_WORDS);
    GB2312_CHINESE_CI GB2312 Weights::Table(GB2312_WORDS);
    GBK_CHINESE_CI GBK Weights::Table(GBK_WORDS);
}
