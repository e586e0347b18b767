//! What collations and character sets are called, and which stand for which.
//!
//! Rauk stores all text as utf8mb4. Other character sets and collations that dumps and frameworks ask for are accepted and become the
//! nearest of the five.

use super::Collation;

const UTF8_NAMES: [&str; 3] = ["utf8mb4", "utf8mb3", "utf8"];

impl Collation {
    /// All collations, in the order of their numbers.
    pub const ALL: [Collation; 5] = [
        Collation::Utf8mb4GeneralCi,
        Collation::Utf8mb4Bin,
        Collation::Binary,
        Collation::Utf8mb4UnicodeCi,
        Collation::Utf8mb40900AiCi,
    ];

    /// MySQL's name: `utf8mb4_0900_ai_ci`.
    pub const fn name(self) -> &'static str {
        match self {
            Collation::Binary => "binary",
            Collation::Utf8mb4Bin => "utf8mb4_bin",
            Collation::Utf8mb40900AiCi => "utf8mb4_0900_ai_ci",
            Collation::Utf8mb4GeneralCi => "utf8mb4_general_ci",
            Collation::Utf8mb4UnicodeCi => "utf8mb4_unicode_ci",
        }
    }

    /// MySQL's number, as in the protocol: 63, 46, 255, 45, 224.
    pub const fn mysql_id(self) -> u16 {
        match self {
            Collation::Binary => 63,
            Collation::Utf8mb4Bin => 46,
            Collation::Utf8mb40900AiCi => 255,
            Collation::Utf8mb4GeneralCi => 45,
            Collation::Utf8mb4UnicodeCi => 224,
        }
    }

    /// By MySQL's number, as clients send it in the handshake. Numbers of other utf8, latin1 and ascii collations
    /// become the nearest; `None`: one of another character set.
    pub const fn from_mysql_id(id: u16) -> Option<Collation> {
        Some(match id {
            63 => Collation::Binary,
            46 | 47 | 49 | 65 | 83 => Collation::Utf8mb4Bin,
            5 | 8 | 11 | 15 | 31 | 33 | 45 | 48 | 76 | 94 | 223 => Collation::Utf8mb4GeneralCi,
            192..=215 | 224..=247 => Collation::Utf8mb4UnicodeCi,
            // Up to 304 the case-sensitive ones of each language, then 0900_as_ci, then they alternate; 308 is Chinese, 309 is 0900_bin.
            255..=277 | 305 => Collation::Utf8mb40900AiCi,
            278..=304 | 308 | 309 => Collation::Utf8mb4Bin,
            306 | 307 | 310..=323 if id.is_multiple_of(2) => Collation::Utf8mb40900AiCi,
            306 | 307 | 310..=323 => Collation::Utf8mb4Bin,
            _ => return None,
        })
    }

    /// By name, in any case; latin1 and ascii names, and other utf8mb3/utf8mb4 names, map to the nearest that Rauk has. `None`: unknown (1273).
    pub fn from_name(name: &str) -> Option<Collation> {
        let name = name.to_ascii_lowercase();
        if let Some(collation) = Collation::ALL.into_iter().find(|c| c.name() == name) {
            return Some(collation);
        }
        let (charset, rest) = name.split_once('_')?;
        let general = Some(Collation::Utf8mb4GeneralCi);
        let binary = Some(Collation::Utf8mb4Bin);
        match charset {
            "latin1" => match rest {
                "bin" | "general_cs" => binary,
                "swedish_ci" | "general_ci" | "german1_ci" | "german2_ci" | "danish_ci" | "spanish_ci" => general,
                _ => None,
            },
            "ascii" => match rest {
                "bin" => binary,
                "general_ci" => general,
                _ => None,
            },
            _ if UTF8_NAMES.contains(&charset) => match rest {
                "bin" | "nopad_bin" => binary,
                "general_ci" | "general_nopad_ci" | "general_mysql500_ci" | "tolower_ci" => general,
                _ if rest.ends_with("0900_bin") || rest.ends_with("_cs") => binary,
                _ if rest.contains("0900_") && rest.ends_with("_ci") => Some(Collation::Utf8mb40900AiCi),
                _ if rest.ends_with("_ci") && is_language(rest) => Some(Collation::Utf8mb4UnicodeCi),
                _ => None,
            },
            _ => None,
        }
    }

    /// The default collation of a character set, in any case; those of the sets that Rauk stores as utf8mb4. `None`: unknown (1115).
    pub fn from_charset(name: &str) -> Option<Collation> {
        Some(match name.to_ascii_lowercase().as_str() {
            "utf8mb4" => Collation::Utf8mb40900AiCi,
            "utf8" | "utf8mb3" | "latin1" | "ascii" => Collation::Utf8mb4GeneralCi,
            "binary" => Collation::Binary,
            _ => return None,
        })
    }

    /// `utf8mb4`, or `binary`.
    pub const fn charset_name(self) -> &'static str {
        if matches!(self, Collation::Binary) { "binary" } else { "utf8mb4" }
    }

    /// Whether it is the default of its character set.
    pub const fn is_default(self) -> bool {
        matches!(self, Collation::Binary | Collation::Utf8mb40900AiCi)
    }

    /// `PAD SPACE` or `NO PAD`, as information_schema.COLLATIONS shows it.
    pub const fn pad_attribute(self) -> &'static str {
        if self.pad_space() { "PAD SPACE" } else { "NO PAD" }
    }

    /// SORTLEN of SHOW COLLATION in MySQL 8.
    pub const fn sort_length(self) -> u8 {
        match self {
            Collation::Utf8mb40900AiCi => 0,
            Collation::Utf8mb4UnicodeCi => 8,
            _ => 1,
        }
    }
}

/// The UCA collations of MySQL's utf8mb3 and utf8mb4 before 0900.
fn is_language(rest: &str) -> bool {
    const NAMES: [&str; 25] = [
        "unicode",
        "unicode_520",
        "icelandic",
        "latvian",
        "romanian",
        "slovenian",
        "polish",
        "estonian",
        "spanish",
        "swedish",
        "turkish",
        "czech",
        "danish",
        "lithuanian",
        "slovak",
        "spanish2",
        "roman",
        "persian",
        "esperanto",
        "hungarian",
        "sinhala",
        "german2",
        "croatian",
        "vietnamese",
        "thai_520_w2",
    ];
    rest.strip_suffix("_ci").is_some_and(|name| NAMES.contains(&name) || name == "uca1400_ai")
}
