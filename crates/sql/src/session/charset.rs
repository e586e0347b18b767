//! Character sets and collations by name, as SHOW CHARACTER SET, SHOW COLLATION and `SET NAMES` know them.
//!
//! Rauk stores all text as utf8mb4. latin1, ascii and utf8mb3 are accepted wherever a character set may be named, and stand for utf8mb4 with the
//! nearest collation ([`Collation::from_name`]).

use rauk_types::error::codes;
use rauk_types::{Collation, MysqlError};

#[derive(Debug, PartialEq, Eq)]
pub struct CharacterSet {
    pub name: &'static str,
    pub description: &'static str,
    pub default_collation: &'static str,
    /// Bytes of the longest character.
    pub max_bytes: u32,
}

#[derive(Debug, PartialEq, Eq)]
pub struct CollationInfo {
    pub name: &'static str,
    pub charset: &'static str,
    pub id: u16,
    pub default: bool,
    pub sort_length: u32,
    pub pad_space: bool,
}

pub const CHARACTER_SETS: &[CharacterSet] = &[
    CharacterSet { name: "ascii", description: "US ASCII", default_collation: "ascii_general_ci", max_bytes: 1 },
    CharacterSet { name: "binary", description: "Binary pseudo charset", default_collation: "binary", max_bytes: 1 },
    CharacterSet {
        name: "latin1",
        description: "cp1252 West European",
        default_collation: "latin1_swedish_ci",
        max_bytes: 1,
    },
    CharacterSet {
        name: "utf8mb3",
        description: "UTF-8 Unicode",
        default_collation: "utf8mb3_general_ci",
        max_bytes: 3,
    },
    CharacterSet {
        name: "utf8mb4",
        description: "UTF-8 Unicode",
        default_collation: "utf8mb4_0900_ai_ci",
        max_bytes: 4,
    },
];

const fn info(
    name: &'static str,
    charset: &'static str,
    id: u16,
    default: bool,
    sort_length: u32,
    pad_space: bool,
) -> CollationInfo {
    CollationInfo { name, charset, id, default, sort_length, pad_space }
}

pub const COLLATIONS: &[CollationInfo] = &[
    info("ascii_bin", "ascii", 65, false, 1, true),
    info("ascii_general_ci", "ascii", 11, true, 1, true),
    info("binary", "binary", 63, true, 1, false),
    info("latin1_bin", "latin1", 47, false, 1, true),
    info("latin1_general_ci", "latin1", 48, false, 1, true),
    info("latin1_swedish_ci", "latin1", 8, true, 1, true),
    info("utf8mb3_bin", "utf8mb3", 83, false, 1, true),
    info("utf8mb3_general_ci", "utf8mb3", 33, true, 1, true),
    info("utf8mb3_unicode_ci", "utf8mb3", 192, false, 8, true),
    info("utf8mb4_0900_ai_ci", "utf8mb4", 255, true, 0, false),
    info("utf8mb4_bin", "utf8mb4", 46, false, 1, true),
    info("utf8mb4_general_ci", "utf8mb4", 45, false, 1, true),
    info("utf8mb4_unicode_ci", "utf8mb4", 224, false, 8, true),
];

/// By name; `utf8` is utf8mb3's old name, which clients mean as "Unicode". Error 1115.
pub fn charset(name: &str) -> Result<&'static CharacterSet, MysqlError> {
    let wanted = if name.eq_ignore_ascii_case("utf8") { "utf8mb3" } else { name };
    CHARACTER_SETS
        .iter()
        .find(|c| c.name.eq_ignore_ascii_case(wanted))
        .ok_or_else(|| MysqlError::new(codes::UNKNOWN_CHARACTER_SET, format!("Unknown character set: '{name}'")))
}

/// By name; `utf8_…` is `utf8mb3_…`. Error 1273.
pub fn collation(name: &str) -> Result<&'static CollationInfo, MysqlError> {
    let renamed;
    let wanted = match name.get(..5) {
        Some(prefix) if prefix.eq_ignore_ascii_case("utf8_") => {
            renamed = format!("utf8mb3_{}", &name[5..]);
            renamed.as_str()
        }
        _ => name,
    };
    let found = |name: &str| COLLATIONS.iter().find(|c| c.name.eq_ignore_ascii_case(name));
    // Another collation of MySQL's (`utf8mb4_unicode_520_ci`, `utf8mb4_swedish_ci`): the nearest that Rauk has stands for it.
    found(wanted)
        .or_else(|| found(Collation::from_name(wanted)?.name()))
        .ok_or_else(|| MysqlError::new(codes::UNKNOWN_COLLATION, format!("Unknown collation: '{name}'")))
}

pub fn by_id(id: u16) -> Option<&'static CollationInfo> {
    COLLATIONS.iter().find(|c| c.id == id)
}

/// The collation of text declared with this character set and collation, either of which may be left out. Errors: 1115, 1273, 1253.
pub fn resolve(
    charset_name: Option<&str>,
    collation_name: Option<&str>,
    inherited: Collation,
) -> Result<Collation, MysqlError> {
    let stored = |name: &str| {
        Collation::from_name(name)
            .ok_or_else(|| MysqlError::new(codes::UNKNOWN_COLLATION, format!("Unknown collation: '{name}'")))
    };
    match (charset_name, collation_name) {
        (None, None) => Ok(inherited),
        (Some(name), None) => stored(charset(name)?.default_collation),
        (None, Some(name)) => stored(collation(name)?.name),
        (Some(set), Some(name)) => {
            let (set, found) = (charset(set)?, collation(name)?);
            if found.charset != set.name {
                let message = format!("COLLATION '{}' is not valid for CHARACTER SET '{}'", found.name, set.name);
                return Err(MysqlError::new(1253, message));
            }
            stored(found.name)
        }
    }
}

/// The character set that a stored collation belongs to.
pub fn charset_of(collation: Collation) -> &'static str {
    match collation {
        Collation::Binary => "binary",
        _ => "utf8mb4",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_set_has_its_default_collation() {
        for set in CHARACTER_SETS {
            let default = collation(set.default_collation).unwrap();
            assert!(default.default && default.charset == set.name);
            assert_eq!(COLLATIONS.iter().filter(|c| c.charset == set.name && c.default).count(), 1);
        }
        assert_eq!(collation("utf8_general_ci").unwrap().id, 33);
        assert_eq!(charset("UTF8").unwrap().name, "utf8mb3");
        assert_eq!(charset("klingon").unwrap_err().message, "Unknown character set: 'klingon'");
    }
}
