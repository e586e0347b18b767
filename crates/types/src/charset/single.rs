//! Sets whose codes are one byte: ASCII, and a table of the bytes from 80 on.
//!
//! Some sets have the same character twice; its code is the lower one, as in MySQL.

use std::sync::LazyLock;

/// For each set, by name, the characters of the bytes 80 to FF, 16 bits each; 0 where a byte has none.
static TABLE: &[u8; 22 * 256] = include_bytes!("tables/single_byte.bin");

pub(super) struct Single {
    characters: [Option<char>; 128],
    /// The characters with their bytes, in their order.
    codes: Vec<(char, u8)>,
}

impl Single {
    fn new(number: usize) -> Self {
        let word = |at: usize| u16::from_le_bytes([TABLE[256 * number + 2 * at], TABLE[256 * number + 2 * at + 1]]);
        let characters = std::array::from_fn(|at| char::from_u32(word(at).into()).filter(|c| *c != '\0'));
        let mut codes: Vec<(char, u8)> = characters
            .iter()
            .zip(0x80..=0xFF)
            .filter_map(|(character, byte)| character.filter(|c| !c.is_ascii()).map(|c| (c, byte)))
            .collect();
        codes.sort_unstable();
        codes.dedup_by_key(|(character, _)| *character);
        Single { characters, codes }
    }

    #[inline]
    pub fn character(&self, byte: u8) -> Option<char> {
        if byte.is_ascii() { Some(byte.into()) } else { self.characters[usize::from(byte - 0x80)] }
    }

    /// The byte of a character that is no ASCII.
    #[inline]
    pub fn code(&self, character: char) -> Option<u8> {
        // What is most of western text, in latin1 and its kin.
        if let 0xA0..=0xFF = character as u32
            && self.characters[character as usize - 0x80] == Some(character)
        {
            return Some(character as u8);
        }
        self.codes.binary_search_by_key(&character, |(c, _)| *c).ok().map(|at| self.codes[at].1)
    }
}

macro_rules! tables {
    ($($number:literal $name:ident)*) => {
        $(pub(super) static $name: LazyLock<Single> = LazyLock::new(|| Single::new($number));)*
    };
}

tables! {
    0 ARMSCII8 1 CP1250 2 CP1251 3 CP1256 4 CP1257 5 CP850 6 CP852 7 CP866 8 DEC8 9 GEOSTD8 10 GREEK 11 HEBREW 12 HP8
    13 KEYBCS2 14 KOI8R 15 KOI8U 16 LATIN1 17 LATIN2 18 LATIN5 19 LATIN7 20 MACCE 21 MACROMAN
}
