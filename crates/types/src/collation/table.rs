//! The frozen weight tables, in the form that `tools/collation_tables.py` describes. `tools/uca_tables.py` made the later ones.

/// Entry of a character whose weights are computed from its code point.
pub const IMPLICIT: u16 = 0xFFFF;
/// Entries from here on stand for several weights.
pub const FIRST_SEQUENCE: u16 = 0xE000;

const fn words<const N: usize>(bytes: &[u8]) -> [u16; N] {
    assert!(bytes.len() == 2 * N, "a table of another size");
    let mut words = [0; N];
    let mut i = 0;
    while i < N {
        words[i] = bytes[2 * i] as u16 | (bytes[2 * i + 1] as u16) << 8;
        i += 1;
    }
    words
}

macro_rules! table {
    ($name:ident, $file:literal) => {
        static $name: [u16; include_bytes!($file).len() / 2] = words(include_bytes!($file));
    };
}

table!(UCA_0900_WORDS, "tables/uca_0900.bin");
table!(UNICODE_CI_WORDS, "tables/unicode_ci.bin");
table!(GENERAL_CI_WORDS, "tables/general_ci.bin");
table!(UCA_520_WORDS, "tables/uca_520.bin");
table!(UCA_0900_SECONDARY_WORDS, "tables/uca_0900_secondary.bin");
table!(UCA_0900_TERTIARY_WORDS, "tables/uca_0900_tertiary.bin");
table!(UCA_1400_WORDS, "tables/uca_1400.bin");
table!(UCA_1400_SECONDARY_WORDS, "tables/uca_1400_secondary.bin");
table!(UCA_1400_TERTIARY_WORDS, "tables/uca_1400_tertiary.bin");

pub static UCA_0900: UcaTable = UcaTable::new(&UCA_0900_WORDS);
pub static UNICODE_CI: UcaTable = UcaTable::new(&UNICODE_CI_WORDS);
pub static UCA_520: UcaTable = UcaTable::new(&UCA_520_WORDS);
pub static UCA_0900_SECONDARY: UcaTable = UcaTable::new(&UCA_0900_SECONDARY_WORDS);
pub static UCA_0900_TERTIARY: UcaTable = UcaTable::new(&UCA_0900_TERTIARY_WORDS);
pub static UCA_1400: UcaTable = UcaTable::new(&UCA_1400_WORDS);
pub static UCA_1400_SECONDARY: UcaTable = UcaTable::new(&UCA_1400_SECONDARY_WORDS);
pub static UCA_1400_TERTIARY: UcaTable = UcaTable::new(&UCA_1400_TERTIARY_WORDS);
pub static GENERAL_CI: GeneralTable = GeneralTable::new(&GENERAL_CI_WORDS);

/// Blocks of 256 code points up to U+10FFFF.
const BLOCKS: usize = 0x1100;
const INDEX: usize = 2;

/// Characters and their weights of one version of the Unicode collation algorithm.
pub struct UcaTable {
    words: &'static [u16],
    ascii: [u16; 256],
    /// Where the offsets of the sequences begin, and their weights.
    offsets: usize,
    weights: usize,
}

impl UcaTable {
    const fn new(words: &'static [u16]) -> Self {
        let offsets = INDEX + BLOCKS + words[0] as usize * 256;
        let mut ascii = [0; 256];
        let page = INDEX + BLOCKS + (words[INDEX] as usize - 1) * 256;
        let mut i = 0;
        while i < 128 {
            ascii[i] = words[page + i];
            assert!(ascii[i] < FIRST_SEQUENCE, "an ASCII character has one weight or none");
            i += 1;
        }
        UcaTable { words, ascii, offsets, weights: offsets + words[1] as usize + 1 }
    }

    /// The weights of the ASCII characters by byte; 0 for those that are ignored, and for bytes that are no ASCII.
    #[inline]
    pub fn ascii_weights(&self) -> &[u16; 256] {
        &self.ascii
    }

    /// 0: ignored; below [`FIRST_SEQUENCE`]: the weight; [`IMPLICIT`]; else a sequence.
    #[inline]
    pub fn entry(&self, code: u32) -> u16 {
        if code < 0x80 {
            return self.ascii[code as usize];
        }
        match self.words[INDEX + (code >> 8) as usize] {
            0 => IMPLICIT,
            page => self.words[INDEX + BLOCKS + (usize::from(page) - 1) * 256 + (code & 0xFF) as usize],
        }
    }

    #[inline]
    pub fn sequence(&self, number: u16) -> &'static [u16] {
        let at = self.offsets + usize::from(number);
        let (start, end) = (self.words[at], self.words[at + 1]);
        &self.words[self.weights + usize::from(start)..self.weights + usize::from(end)]
    }
}

/// One weight for every character of the basic plane.
pub struct GeneralTable {
    words: &'static [u16],
    ascii: [u16; 256],
}

impl GeneralTable {
    const fn new(words: &'static [u16]) -> Self {
        let mut ascii = [0; 256];
        let mut code = 0;
        while code < 128 {
            ascii[code as usize] = weight(words, code);
            code += 1;
        }
        GeneralTable { words, ascii }
    }

    /// The weights of the ASCII characters by byte; 0 for bytes that are no ASCII, and for U+0000, which weighs 0 and is not ignored.
    #[inline]
    pub fn ascii_weights(&self) -> &[u16; 256] {
        &self.ascii
    }

    #[inline]
    pub fn weight(&self, code: u16) -> u16 {
        weight(self.words, code)
    }
}

#[inline]
const fn weight(words: &[u16], code: u16) -> u16 {
    match words[(code >> 8) as usize] {
        0 => code,
        page => words[256 * page as usize + (code & 0xFF) as usize],
    }
}
