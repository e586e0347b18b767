//! Sets whose codes are up to three bytes: ujis, eucjpms (EUC-JP).
//!
//! | code | characters |
//! |---|---|
//! | below 80 | ASCII |
//! | A1A1 to F4FE | JIS X 0208; in eucjpms the additions of NEC and IBM, too |
//! | 8EA1 to 8EDF | half-width katakana |
//! | 8FA1A1 to 8FF4FE | JIS X 0212; in eucjpms IBM's additions, too |
//! | F5A1 to FEFE, 8FF5A1 to 8FFEFE | private characters, from U+E000 and from U+E3AC on |
//!
//! The two tables are what MariaDB 10.11 says (`tools/charset_tables.py`); `encoding_rs` has the EUC-JP of the web, which
//! writes no code of three bytes and has other meanings of a few.

use std::sync::LazyLock;

/// The first and the last byte of what stands in the tables, and the last of all.
const FIRST: u8 = 0xA1;
const LAST_ROW: u8 = 0xF4;
const LAST: u8 = 0xFE;
/// Characters of a row.
const ROW: usize = (LAST - FIRST) as usize + 1;
const TABLE: usize = ROW * ((LAST_ROW - FIRST) as usize + 1);

/// What stands before a half-width katakana, and before the codes of three bytes.
const KATAKANA: u8 = 0x8E;
const THIRD: u8 = 0x8F;
const LAST_KATAKANA: u8 = 0xDF;
const HALF_WIDTH: u32 = 0xFF61;

/// The private characters of each of the two tables.
const PRIVATE: u32 = 0xE000;
const PRIVATES: u32 = (ROW * (LAST - LAST_ROW) as usize) as u32;

pub(super) struct Euc {
    /// Of the codes of two bytes, and behind them of those of three; 0: none.
    characters: Box<[u16]>,
    /// By character; 0: none.
    codes: Box<[u32]>,
}

fn is_part(byte: u8) -> bool {
    (FIRST..=LAST).contains(&byte)
}

fn place(row: u8, column: u8) -> usize {
    ROW * usize::from(row - FIRST) + usize::from(column - FIRST)
}

impl Euc {
    fn of_file(file: &[u8]) -> Euc {
        let words = file.chunks_exact(2).map(|word| u16::from_le_bytes([word[0], word[1]]));
        let characters: Box<[u16]> = words.collect();
        assert_eq!(characters.len(), 2 * TABLE, "the file has these codes only");
        let mut codes = vec![0u32; 0x10000].into_boxed_slice();
        let rows = (FIRST..=LAST_ROW).flat_map(|row| (FIRST..=LAST).map(move |column| (row, column)));
        let of_two = rows.clone().map(|(row, column)| [0, row, column]);
        let of_three = rows.map(|(row, column)| [THIRD, row, column]);
        for (character, [lead, row, column]) in characters.iter().zip(of_two.chain(of_three)) {
            let present = &mut codes[usize::from(*character)];
            // Of two codes of one character the first counts.
            if *character != 0 && *present == 0 {
                *present = u32::from_be_bytes([0, lead, row, column]);
            }
        }
        Euc { characters, codes }
    }

    /// As [`Charset::first`](super::Charset).
    pub fn first(&self, bytes: &[u8]) -> Option<(Option<char>, usize)> {
        let character = |row: u8, column: u8, three: bool| {
            let at = place(row, column);
            let number = match row {
                ..=LAST_ROW => self.characters[at + if three { TABLE } else { 0 }].into(),
                _ => PRIVATE + (at - TABLE) as u32 + if three { PRIVATES } else { 0 },
            };
            char::from_u32(number).filter(|c| *c != '\0')
        };
        match *bytes {
            [first, ..] if first.is_ascii() => Some((Some(first.into()), 1)),
            [KATAKANA, second @ FIRST..=LAST_KATAKANA, ..] => {
                Some((char::from_u32(HALF_WIDTH + u32::from(second - FIRST)), 2))
            }
            [THIRD, row, column, ..] if is_part(row) && is_part(column) => Some((character(row, column, true), 3)),
            [row, column, ..] if is_part(row) && is_part(column) => Some((character(row, column, false), 2)),
            _ => None,
        }
    }

    /// Bytes of a code that begins with this byte; 0: none does.
    pub fn length_by(&self, first: u8) -> usize {
        match first {
            _ if first.is_ascii() => 1,
            KATAKANA | FIRST..=LAST => 2,
            THIRD => 3,
            _ => 0,
        }
    }

    /// The code of a character that is no ASCII.
    pub fn code(&self, character: char) -> Option<u32> {
        let number = u32::from(character);
        if (HALF_WIDTH..=HALF_WIDTH + u32::from(LAST_KATAKANA - FIRST)).contains(&number) {
            return Some((u32::from(KATAKANA) << 8) + u32::from(FIRST) + (number - HALF_WIDTH));
        }
        if let Some(at) = number.checked_sub(PRIVATE).filter(|at| *at < 2 * PRIVATES) {
            let (lead, at) = if at < PRIVATES { (0, at) } else { (u32::from(THIRD), at - PRIVATES) };
            let (row, column) = (at / ROW as u32, at % ROW as u32);
            return Some((lead << 16) + ((u32::from(LAST_ROW) + 1 + row) << 8) + u32::from(FIRST) + column);
        }
        self.codes.get(number as usize).copied().filter(|code| *code != 0)
    }
}

pub(super) static EUCJPMS: LazyLock<Euc> = LazyLock::new(|| Euc::of_file(include_bytes!("tables/eucjpms.bin")));
pub(super) static UJIS: LazyLock<Euc> = LazyLock::new(|| Euc::of_file(include_bytes!("tables/ujis.bin")));
