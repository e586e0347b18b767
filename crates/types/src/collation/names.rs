//! What collations are called, their numbers, and how they are stored.
//!
//! A schema holds a collation as its name. The first five have names of their own there, and numbers of their own where a schema travels in a binary
//! form: those that they had as the variants of an enum. The number of each other one is MySQL's, from [`OTHERS`] on.

use super::{Collation, definitions};
use crate::charset::Charset;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// The collations that were there first, with their stored names, in the order of their stored numbers.
const FIRST: [(Collation, &str); 5] = [
    (Collation::Binary, "Binary"),
    (Collation::Utf8mb4Bin, "Utf8mb4Bin"),
    (Collation::Utf8mb40900AiCi, "Utf8mb40900AiCi"),
    (Collation::Utf8mb4GeneralCi, "Utf8mb4GeneralCi"),
    (Collation::Utf8mb4UnicodeCi, "Utf8mb4UnicodeCi"),
];

/// The stored number of MySQL's collation number 0.
const OTHERS: u32 = 16;

impl Collation {
    /// All collations, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = Collation> {
        definitions::all().map(|definition| Collation(definition.id))
    }

    /// MySQL's name: `utf8mb4_0900_ai_ci`.
    pub const fn name(self) -> &'static str {
        self.definition().name
    }

    /// MySQL's number, as in the protocol.
    pub const fn mysql_id(self) -> u16 {
        self.0
    }

    /// By MySQL's number, as clients send it in the handshake.
    pub const fn from_mysql_id(id: u16) -> Option<Collation> {
        if definitions::by_id(id).is_some() { Some(Collation(id)) } else { None }
    }

    /// By its very name.
    pub fn named(name: &str) -> Option<Collation> {
        definitions::all().find(|definition| definition.name == name).map(|definition| Collation(definition.id))
    }

    /// By name, in any case; `utf8_…` is `utf8mb3_…`, and MariaDB's uca1400 names are those of utf8mb4 where they lack the character set. `None`:
    /// unknown (1273).
    pub fn from_name(name: &str) -> Option<Collation> {
        let name = name.to_ascii_lowercase();
        if name.starts_with("uca1400_") {
            return Collation::named(&format!("utf8mb4_{name}"));
        }
        match name.strip_prefix("utf8_") {
            Some(rest) => Collation::named(&format!("utf8mb3_{rest}")),
            None => Collation::named(&name),
        }
    }

    /// The default collation of a character set.
    pub const fn of_charset(charset: Charset) -> Collation {
        Collation(charset.default_collation())
    }

    /// The collation of a character set that orders by code.
    pub fn binary_of(charset: Charset) -> Collation {
        let name = format!("{}_bin", charset.name());
        Collation::named(&name).unwrap_or(Collation::Binary)
    }

    /// The name of its character set.
    pub const fn charset_name(self) -> &'static str {
        self.charset().name()
    }

    /// Whether it is the default of its character set.
    pub const fn is_default(self) -> bool {
        self.charset().default_collation() == self.0
    }

    /// `PAD SPACE` or `NO PAD`, as information_schema.COLLATIONS shows it.
    pub const fn pad_attribute(self) -> &'static str {
        if self.pad_space() { "PAD SPACE" } else { "NO PAD" }
    }

    /// SORTLEN of SHOW COLLATION in MySQL 8.
    pub const fn sort_length(self) -> u8 {
        self.definition().sort_length
    }

    fn stored_name(self) -> &'static str {
        FIRST.iter().find(|(collation, _)| *collation == self).map_or(self.name(), |(_, name)| name)
    }

    fn from_stored_name(name: &str) -> Option<Collation> {
        FIRST
            .iter()
            .find(|(_, stored)| *stored == name)
            .map(|(collation, _)| *collation)
            .or_else(|| Collation::named(name))
    }

    fn stored_number(self) -> u32 {
        match FIRST.iter().position(|(collation, _)| *collation == self) {
            Some(number) => number as u32,
            None => OTHERS + u32::from(self.0),
        }
    }

    fn from_stored_number(number: u32) -> Option<Collation> {
        match FIRST.get(number as usize) {
            Some((collation, _)) => Some(*collation),
            None => Collation::from_mysql_id(u16::try_from(number.checked_sub(OTHERS)?).ok()?),
        }
    }
}

impl fmt::Debug for Collation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.stored_name())
    }
}

impl Serialize for Collation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => serializer.serialize_str(self.stored_name()),
            false => serializer.serialize_u32(self.stored_number()),
        }
    }
}

impl<'de> Deserialize<'de> for Collation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = Collation;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a collation")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Collation, E> {
                Collation::from_stored_name(name).ok_or_else(|| E::custom(format!("unknown collation {name:?}")))
            }
        }
        if deserializer.is_human_readable() {
            return deserializer.deserialize_str(Name);
        }
        let number = u32::deserialize(deserializer)?;
        Collation::from_stored_number(number).ok_or_else(|| de::Error::custom(format!("unknown collation {number}")))
    }
}
