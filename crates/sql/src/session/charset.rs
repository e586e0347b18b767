//! Character sets and collations by the names that statements say, with MySQL's errors.
//!
//! The sets and collations themselves are `rauk_types::charset` and `rauk_types::collation`. A name that either does
//! not have is unknown (1115, 1273): nothing stands for another.

use rauk_types::error::codes;
use rauk_types::{Charset, Collation, MysqlError};

/// By name; `utf8` is utf8mb3's old name. Error 1115.
pub fn charset(name: &str) -> Result<Charset, MysqlError> {
    let unknown = || MysqlError::new(codes::UNKNOWN_CHARACTER_SET, format!("Unknown character set: '{name}'"));
    Charset::named(name).ok_or_else(unknown)
}

/// By name; `utf8_…` is `utf8mb3_…`, and MariaDB's `uca1400_…` is `utf8mb4_uca1400_…`. Error 1273.
pub fn collation(name: &str) -> Result<Collation, MysqlError> {
    let unknown = || MysqlError::new(codes::UNKNOWN_COLLATION, format!("Unknown collation: '{name}'"));
    Collation::from_name(name).ok_or_else(unknown)
}

/// All collations, by name.
pub fn collations() -> Vec<Collation> {
    let mut all: Vec<Collation> = Collation::all().collect();
    all.sort_unstable_by_key(|collation| collation.name());
    all
}

/// The collation of text declared with this character set and collation, either of which may be left out. Errors: 1115,
/// 1273, 1253.
pub fn resolve(
    charset_name: Option<&str>,
    collation_name: Option<&str>,
    inherited: Collation,
) -> Result<Collation, MysqlError> {
    match (charset_name, collation_name) {
        (None, None) => Ok(inherited),
        (Some(name), None) => Ok(Collation::of_charset(charset(name)?)),
        (None, Some(name)) => collation(name),
        (Some(set), Some(name)) => {
            let set = charset(set)?;
            // MariaDB's names without a character set are of each.
            let found = match name.get(..8) {
                Some(prefix) if prefix.eq_ignore_ascii_case("uca1400_") => {
                    collation(&format!("{}_{name}", set.name()))?
                }
                _ => collation(name)?,
            };
            if found.charset() != set { Err(not_of(found.name(), set)) } else { Ok(found) }
        }
    }
}

/// The collation that compares the characters of a set by their codes.
pub fn binary_of(set: Charset) -> Result<Collation, MysqlError> {
    if set == Charset::BINARY { Ok(Collation::Binary) } else { collation(&format!("{}_bin", set.name())) }
}

/// Error 1253.
pub fn not_of(collation: &str, set: Charset) -> MysqlError {
    let message = format!("COLLATION '{collation}' is not valid for CHARACTER SET '{}'", set.name());
    MysqlError::new(codes::COLLATION_CHARSET_MISMATCH, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_set_has_its_default_collation() {
        for set in Charset::all() {
            let default = resolve(Some(set.name()), None, Collation::DEFAULT).unwrap();
            assert!(default.is_default() && default.charset() == set);
            assert_eq!(collations().iter().filter(|c| c.charset() == set && c.is_default()).count(), 1);
        }
        assert_eq!(collation("utf8_general_ci").unwrap().mysql_id(), 33);
        assert_eq!(charset("UTF8").unwrap().name(), "utf8mb3");
        assert_eq!(charset("klingon").unwrap_err().message, "Unknown character set: 'klingon'");
        assert_eq!(collation("latin2_czech_cs").unwrap_err().code, 1273);
        assert_eq!(resolve(Some("latin1"), Some("utf8mb4_bin"), Collation::DEFAULT).unwrap_err().code, 1253);
        assert_eq!(resolve(Some("utf8mb3"), Some("uca1400_as_ci"), Collation::DEFAULT).unwrap().mysql_id(), 2050);
    }
}
