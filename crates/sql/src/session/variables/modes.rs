//! sql_mode: names to flags and back.

use crate::expr::context::SqlMode;

/// MySQL 8's modes in the order in which the variable lists them. The numbers are the bits that `SET sql_mode = 3` means.
const MODES: &[(&str, u32)] = &[
    ("REAL_AS_FLOAT", 0),
    ("PIPES_AS_CONCAT", 1),
    ("ANSI_QUOTES", 2),
    ("IGNORE_SPACE", 3),
    ("ONLY_FULL_GROUP_BY", 5),
    ("NO_UNSIGNED_SUBTRACTION", 6),
    ("NO_DIR_IN_CREATE", 7),
    ("ANSI", 18),
    ("NO_AUTO_VALUE_ON_ZERO", 19),
    ("NO_BACKSLASH_ESCAPES", 20),
    ("STRICT_TRANS_TABLES", 21),
    ("STRICT_ALL_TABLES", 22),
    ("NO_ZERO_IN_DATE", 23),
    ("NO_ZERO_DATE", 24),
    ("ALLOW_INVALID_DATES", 25),
    ("ERROR_FOR_DIVISION_BY_ZERO", 26),
    ("TRADITIONAL", 27),
    ("HIGH_NOT_PRECEDENCE", 29),
    ("NO_ENGINE_SUBSTITUTION", 30),
    ("PAD_CHAR_TO_FULL_LENGTH", 31),
    ("TIME_TRUNCATE_FRACTIONAL", 32),
];

/// Modes of MySQL 5 and MariaDB that dumps and old frameworks set, and that change nothing here. Those that name
/// another dialect (ORACLE, POSTGRESQL, …) are error 1231, as in MySQL 8: what they promise is not done.
const FORGOTTEN: &[&str] =
    &["NO_AUTO_CREATE_USER", "NO_FIELD_OPTIONS", "NO_KEY_OPTIONS", "NO_TABLE_OPTIONS", "NOT_USED"];
/// Their bits.
const FORGOTTEN_BITS: u64 = 1 << 4 | 1 << 13 | 1 << 14 | 1 << 15 | 1 << 28;

pub const DEFAULT: &str = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION";

/// The canonical text for a list of modes; `Err` is the word that is not one.
pub fn normalize(text: &str) -> Result<String, String> {
    let mut bits = 0u64;
    for word in text.split(',').map(str::trim).filter(|w| !w.is_empty()) {
        let upper = word.to_ascii_uppercase();
        match MODES.iter().find(|(name, _)| *name == upper) {
            Some((_, bit)) => bits |= 1 << bit,
            None if FORGOTTEN.contains(&upper.as_str()) => {}
            None => return Err(word.to_string()),
        }
    }
    Ok(text_of(expand(bits)))
}

/// The canonical text for modes given as a number.
pub fn from_number(number: u64) -> Result<String, String> {
    let known = MODES.iter().fold(0u64, |all, (_, bit)| all | 1 << bit) | FORGOTTEN_BITS;
    if number & !known != 0 {
        return Err(number.to_string());
    }
    Ok(text_of(expand(number)))
}

/// ANSI and TRADITIONAL bring others with them.
fn expand(mut bits: u64) -> u64 {
    if bits & 1 << 18 != 0 {
        bits |= 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 5;
    }
    if bits & 1 << 27 != 0 {
        bits |= 1 << 21 | 1 << 22 | 1 << 23 | 1 << 24 | 1 << 26 | 1 << 30;
    }
    bits
}

fn text_of(bits: u64) -> String {
    let words: Vec<&str> = MODES.iter().filter(|(_, bit)| bits & 1 << bit != 0).map(|(name, _)| *name).collect();
    words.join(",")
}

/// Flags of a canonical text.
pub fn flags(text: &str) -> SqlMode {
    let has = |mode: &str| text.split(',').any(|w| w == mode);
    SqlMode {
        strict: has("STRICT_TRANS_TABLES") || has("STRICT_ALL_TABLES"),
        ansi_quotes: has("ANSI_QUOTES"),
        pipes_as_concat: has("PIPES_AS_CONCAT"),
        no_backslash_escapes: has("NO_BACKSLASH_ESCAPES"),
        only_full_group_by: has("ONLY_FULL_GROUP_BY"),
        no_zero_date: has("NO_ZERO_DATE"),
        no_zero_in_date: has("NO_ZERO_IN_DATE"),
        error_for_division_by_zero: has("ERROR_FOR_DIVISION_BY_ZERO"),
        no_auto_value_on_zero: has("NO_AUTO_VALUE_ON_ZERO"),
        no_unsigned_subtraction: has("NO_UNSIGNED_SUBTRACTION"),
        high_not_precedence: has("HIGH_NOT_PRECEDENCE"),
        ignore_space: has("IGNORE_SPACE"),
        real_as_float: has("REAL_AS_FLOAT"),
        pad_char_to_full_length: has("PAD_CHAR_TO_FULL_LENGTH"),
        allow_invalid_dates: has("ALLOW_INVALID_DATES"),
        time_truncate_fractional: has("TIME_TRUNCATE_FRACTIONAL"),
        no_engine_substitution: has("NO_ENGINE_SUBSTITUTION"),
        ..SqlMode::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_put_in_order_and_expanded() {
        assert_eq!(normalize("no_zero_date,STRICT_TRANS_TABLES").unwrap(), "STRICT_TRANS_TABLES,NO_ZERO_DATE");
        assert_eq!(normalize("").unwrap(), "");
        assert_eq!(
            normalize("ANSI").unwrap(),
            "REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ONLY_FULL_GROUP_BY,ANSI"
        );
        assert_eq!(
            normalize("TRADITIONAL").unwrap(),
            "STRICT_TRANS_TABLES,STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,TRADITIONAL,NO_ENGINE_SUBSTITUTION"
        );
        assert_eq!(normalize("STRICT,x"), Err("STRICT".to_string()));
        assert_eq!(normalize("NO_AUTO_CREATE_USER").unwrap(), "");
        assert_eq!(from_number(4).unwrap(), "ANSI_QUOTES");
        assert!(from_number(1 << 60).is_err());
    }

    #[test]
    fn the_default_mode_is_the_default_flags() {
        assert_eq!(flags(DEFAULT), SqlMode::default());
        assert_eq!(normalize(DEFAULT).unwrap(), DEFAULT);
    }
}
