//! Character sets and collations by name, as SHOW CHARACTER SET, SHOW COLLATION and `SET NAMES` know them.
//!
//! Rauk stores all text as utf8mb4. latin1, ascii and utf8mb3 are accepted wherever a character set may be named, and stand for utf8mb4: utf8mb3 with the
//! collation of the same name, the others with the nearest ([`Collation::from_name`]).

use rauk_types::error::codes;
use rauk_types::{Collation, MysqlError};
use std::sync::LazyLock;

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

/// Collations of other character sets, which stand for one of utf8mb4: names, sets, numbers, whether they are their set's default.
const OTHERS: [(&str, &str, u16, bool); 5] = [
    ("ascii_bin", "ascii", 65, false),
    ("ascii_general_ci", "ascii", 11, true),
    ("latin1_bin", "latin1", 47, false),
    ("latin1_general_ci", "latin1", 48, false),
    ("latin1_swedish_ci", "latin1", 8, true),
];

/// The collation of utf8mb3 that is named as one of utf8mb4 is, if there is one. Its number.
fn utf8mb3_id(collation: Collation) -> Option<u16> {
    Some(match collation.mysql_id() {
        45 => 33,
        46 => 83,
        id @ 224..=247 => id - 32,
        1070 => 1107,
        id @ (1248 | 1270) => id - 32,
        id @ 2304.. => id - 256,
        _ => return None,
    })
}

/// By name.
pub fn collations() -> &'static [CollationInfo] {
    static ALL: LazyLock<Vec<CollationInfo>> = LazyLock::new(|| {
        let own = Collation::all().map(|collation| CollationInfo {
            name: collation.name(),
            charset: charset_of(collation),
            id: collation.mysql_id(),
            default: collation.is_default(),
            sort_length: collation.sort_length().into(),
            pad_space: collation.pad_space(),
        });
        let others = OTHERS.into_iter().map(|(name, charset, id, default)| CollationInfo {
            name,
            charset,
            id,
            default,
            sort_length: 1,
            pad_space: true,
        });
        let utf8mb3 = Collation::all().filter_map(|collation| {
            let id = utf8mb3_id(collation)?;
            // Once in the life of the process.
            let name = collation.name().replace("utf8mb4", "utf8mb3").leak();
            let sort_length = collation.sort_length().into();
            let pad_space = collation.pad_space();
            Some(CollationInfo { name, charset: "utf8mb3", id, default: id == 33, sort_length, pad_space })
        });
        let mut all: Vec<CollationInfo> = own.chain(others).chain(utf8mb3).collect();
        all.sort_by_key(|collation| collation.name);
        all
    });
    &ALL
}

/// By name; `utf8` is utf8mb3's old name, which clients mean as "Unicode". Error 1115.
pub fn charset(name: &str) -> Result<&'static CharacterSet, MysqlError> {
    let wanted = if name.eq_ignore_ascii_case("utf8") { "utf8mb3" } else { name };
    CHARACTER_SETS
        .iter()
        .find(|c| c.name.eq_ignore_ascii_case(wanted))
        .ok_or_else(|| MysqlError::new(codes::UNKNOWN_CHARACTER_SET, format!("Unknown character set: '{name}'")))
}

/// By name; `utf8_…` is `utf8mb3_…`, and MariaDB's `uca1400_…` is `utf8mb4_uca1400_…`. Error 1273.
pub fn collation(name: &str) -> Result<&'static CollationInfo, MysqlError> {
    let renamed;
    let wanted = match name.get(..5) {
        Some(prefix) if prefix.eq_ignore_ascii_case("utf8_") => {
            renamed = format!("utf8mb3_{}", &name[5..]);
            renamed.as_str()
        }
        _ => name,
    };
    let wanted = match wanted.get(..8) {
        Some(prefix) if prefix.eq_ignore_ascii_case("uca1400_") => &format!("utf8mb4_{wanted}"),
        _ => wanted,
    };
    collations()
        .iter()
        .find(|c| c.name.eq_ignore_ascii_case(wanted))
        .ok_or_else(|| MysqlError::new(codes::UNKNOWN_COLLATION, format!("Unknown collation: '{name}'")))
}

pub fn by_id(id: u16) -> Option<&'static CollationInfo> {
    collations().iter().find(|c| c.id == id)
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
            let set = charset(set)?;
            // MariaDB's names without a character set are of each.
            let found = match name.get(..8) {
                Some(prefix) if prefix.eq_ignore_ascii_case("uca1400_") => collation(&format!("{}_{name}", set.name))?,
                _ => collation(name)?,
            };
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
            assert_eq!(collations().iter().filter(|c| c.charset == set.name && c.default).count(), 1);
        }
        assert_eq!(collation("utf8_general_ci").unwrap().id, 33);
        assert_eq!(charset("UTF8").unwrap().name, "utf8mb3");
        assert_eq!(charset("klingon").unwrap_err().message, "Unknown character set: 'klingon'");
    }
}
