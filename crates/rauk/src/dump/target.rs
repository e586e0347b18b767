//! The servers that a dump can be for, and what they call differently or lack.
//!
//! What MariaDB 10.11 lacks was tried on one: functions of docs/functions.md, grammar of queries, options of tables.
//! What MySQL 8.0 lacks is what Rauk has of MariaDB, by the manual. Collations of MySQL's 0900 family have MariaDB's
//! uca1400 family for their nearest, of the same language, with `nopad`: trailing spaces count in both, so two values
//! that are different stay so. Letters that came to Unicode between its versions 9 and 14 may sort otherwise.

use rauk_sql::parse::print::{Construct, Foreign, Met};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Rauk,
    MariaDb,
    Mysql8,
}

/// Functions that Rauk has and MariaDB 10.11 has not. Not listed are those of the server's own views.
const NOT_IN_MARIADB: &[&str] = &[
    "ANY_VALUE",
    "BIN_TO_UUID",
    "FORMAT_BYTES",
    "FORMAT_PICO_TIME",
    "GEOMCOLLECTION",
    "GROUPING",
    "GTID_SUBSET",
    "GTID_SUBTRACT",
    "ICU_VERSION",
    "IS_UUID",
    "JSON_SCHEMA_VALID",
    "JSON_SCHEMA_VALIDATION_REPORT",
    "JSON_STORAGE_FREE",
    "JSON_STORAGE_SIZE",
    "MBRCOVEREDBY",
    "MBRCOVERS",
    "PS_CURRENT_THREAD_ID",
    "PS_THREAD_ID",
    "REGEXP_LIKE",
    "ROLES_GRAPHML",
    "SOURCE_POS_WAIT",
    "STATEMENT_DIGEST",
    "STATEMENT_DIGEST_TEXT",
    "ST_COLLECT",
    "ST_FRECHETDISTANCE",
    "ST_GEOHASH",
    "ST_GEOMCOLLFROMTXT",
    "ST_HAUSDORFFDISTANCE",
    "ST_ISVALID",
    "ST_LATFROMGEOHASH",
    "ST_LATITUDE",
    "ST_LINEINTERPOLATEPOINT",
    "ST_LINEINTERPOLATEPOINTS",
    "ST_LONGFROMGEOHASH",
    "ST_LONGITUDE",
    "ST_MAKEENVELOPE",
    "ST_NUMINTERIORRING",
    "ST_POINTATDISTANCE",
    "ST_POINTFROMGEOHASH",
    "ST_SIMPLIFY",
    "ST_SWAPXY",
    "ST_TRANSFORM",
    "ST_VALIDATE",
    "UUID_TO_BIN",
    "VALIDATE_PASSWORD_STRENGTH",
    "WAIT_FOR_EXECUTED_GTID_SET",
];

/// Functions that Rauk has of MariaDB.
const NOT_IN_MYSQL: &[&str] = &["JSON_COMPACT", "JSON_DETAILED", "JSON_EXISTS", "JSON_LOOSE", "JSON_QUERY"];

/// Languages of MySQL's 0900 family with the name in MariaDB's; without one the nearest of the same letters.
const LANGUAGES: &[(&str, &str)] = &[
    ("bg", ""),
    // The first of several is the one that MySQL is given.
    ("hr", "croatian"),
    ("bs", "croatian"),
    ("cs", "czech"),
    ("da", "danish"),
    ("de_pb", "german2"),
    ("eo", "esperanto"),
    ("es", "spanish"),
    ("es_trad", "spanish2"),
    ("et", "estonian"),
    ("gl", "spanish"),
    ("hu", "hungarian"),
    ("is", "icelandic"),
    ("la", "roman"),
    ("lt", "lithuanian"),
    ("lv", "latvian"),
    ("nb", "danish"),
    ("nn", "danish"),
    ("pl", "polish"),
    ("ro", "romanian"),
    ("ru", ""),
    ("sk", "slovak"),
    ("sl", "slovenian"),
    ("sr_latn", "croatian"),
    ("sv", "swedish"),
    ("tr", "turkish"),
    ("vi", "vietnamese"),
];

impl Target {
    pub fn by_name(name: &str) -> Target {
        match name {
            "mariadb" => Target::MariaDb,
            "mysql8" => Target::Mysql8,
            _ => Target::Rauk,
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Target::Rauk => "Rauk",
            Target::MariaDb => "MariaDB 10.11",
            Target::Mysql8 => "MySQL 8.0",
        }
    }

    /// Its max_allowed_packet, if nobody has changed it.
    pub fn packet(self) -> usize {
        match self {
            Target::MariaDb => 16 << 20,
            Target::Rauk | Target::Mysql8 => 64 << 20,
        }
    }

    pub fn rules(self) -> Foreign<'static> {
        Foreign {
            collation: match self {
                Target::Rauk => &|_| None,
                Target::MariaDb => &mariadb_collation,
                Target::Mysql8 => &mysql_collation,
            },
            json_functions: self == Target::MariaDb,
            bare_texts: self == Target::MariaDb,
        }
    }

    pub fn collation(self, name: &str) -> String {
        (self.rules().collation)(name).unwrap_or_else(|| name.to_string())
    }

    /// What of a query or an expression the target has not.
    pub fn lacks(self, met: &Met) -> Option<String> {
        let (functions, constructs): (&[&str], &[Construct]) = match self {
            Target::Rauk => return None,
            Target::MariaDb => (
                NOT_IN_MARIADB,
                &[
                    Construct::MemberOf,
                    Construct::JsonValueClauses,
                    Construct::CastToJson,
                    Construct::CastToYear,
                    Construct::CastToGeometry,
                    Construct::CastToArray,
                    Construct::RowOfOne,
                    Construct::Lateral,
                    Construct::DerivedColumns,
                    Construct::ValuesRows,
                    Construct::WholeTable,
                    Construct::LockOptions,
                    Construct::IgnoreNulls,
                    Construct::RespectNulls,
                    Construct::FromLast,
                    Construct::LagDefault,
                    Construct::RangeInterval,
                ],
            ),
            Target::Mysql8 => (NOT_IN_MYSQL, &[Construct::IgnoreNulls, Construct::FromLast]),
        };
        let function = met.functions.iter().find(|name| functions.contains(&name.as_str()));
        let construct = met.constructs.iter().find(|one| constructs.contains(one));
        function.map(|name| format!("function {name}")).or(construct.map(|one| one.text().to_string()))
    }
}

/// `utf8mb4_…_0900_…`
fn mariadb_collation(name: &str) -> Option<String> {
    let rest = name.to_ascii_lowercase();
    let rest = rest.strip_prefix("utf8mb4_")?;
    if rest == "0900_bin" {
        return Some("utf8mb4_nopad_bin".into());
    }
    let (language, kind) = match rest.strip_prefix("0900_") {
        Some(kind) => ("", kind),
        None => rest.split_once("_0900_")?,
    };
    let language = LANGUAGES.iter().find(|(here, _)| *here == language).map_or("", |(_, there)| there);
    let separator = if language.is_empty() { "" } else { "_" };
    Some(format!("utf8mb4_uca1400_{language}{separator}nopad_{kind}"))
}

/// `…uca1400…` and `…nopad…`
fn mysql_collation(name: &str) -> Option<String> {
    let lower = name.to_ascii_lowercase();
    // Without its character set it is one of utf8mb4.
    let (set, rest) = match lower.starts_with("uca1400_") {
        true => ("utf8mb4", lower.as_str()),
        false => lower.split_once('_')?,
    };
    if let Some(rest) = rest.strip_prefix("uca1400_") {
        let (head, kind) = rest.split_at_checked(rest.len().checked_sub("ai_ci".len())?)?;
        let language = head.trim_end_matches('_').trim_end_matches("nopad").trim_end_matches('_');
        let language = LANGUAGES.iter().find(|(_, there)| !language.is_empty() && *there == language);
        return Some(match (set, language, kind) {
            ("utf8mb4", Some((here, _)), "ai_ci") => format!("utf8mb4_{here}_0900_ai_ci"),
            ("utf8mb4", Some((here, _)), _) => format!("utf8mb4_{here}_0900_as_cs"),
            ("utf8mb4", None, "ai_ci" | "as_ci") => format!("utf8mb4_0900_{kind}"),
            ("utf8mb4", None, _) => "utf8mb4_0900_as_cs".into(),
            (set, _, _) => format!("{set}_unicode_520_ci"),
        });
    }
    if !rest.contains("nopad_") {
        return None;
    }
    Some(match (set, rest) {
        ("utf8mb4", "nopad_bin") => "utf8mb4_0900_bin".into(),
        ("utf8mb4", _) => "utf8mb4_0900_ai_ci".into(),
        (set, rest) => format!("{set}_{}", rest.replace("nopad_", "")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collations_have_their_nearest() {
        let there = |name| Target::MariaDb.collation(name);
        assert_eq!(there("utf8mb4_0900_ai_ci"), "utf8mb4_uca1400_nopad_ai_ci");
        assert_eq!(there("utf8mb4_0900_as_cs"), "utf8mb4_uca1400_nopad_as_cs");
        assert_eq!(there("utf8mb4_0900_bin"), "utf8mb4_nopad_bin");
        assert_eq!(there("utf8mb4_es_trad_0900_as_cs"), "utf8mb4_uca1400_spanish2_nopad_as_cs");
        assert_eq!(there("utf8mb4_ru_0900_ai_ci"), "utf8mb4_uca1400_nopad_ai_ci");
        assert_eq!(there("utf8mb4_general_ci"), "utf8mb4_general_ci");
        assert_eq!(there("latin1_swedish_ci"), "latin1_swedish_ci");
        let there = |name| Target::Mysql8.collation(name);
        assert_eq!(there("utf8mb4_uca1400_ai_ci"), "utf8mb4_0900_ai_ci");
        assert_eq!(there("uca1400_nopad_as_ci"), "utf8mb4_0900_as_ci");
        assert_eq!(there("utf8mb4_uca1400_danish_nopad_as_ci"), "utf8mb4_da_0900_as_cs");
        assert_eq!(there("utf8mb4_uca1400_persian_ai_ci"), "utf8mb4_0900_ai_ci");
        assert_eq!(there("utf8mb3_uca1400_ai_ci"), "utf8mb3_unicode_520_ci");
        assert_eq!(there("utf8mb4_nopad_bin"), "utf8mb4_0900_bin");
        assert_eq!(there("utf8mb3_unicode_nopad_ci"), "utf8mb3_unicode_ci");
        assert_eq!(there("utf8mb4_0900_ai_ci"), "utf8mb4_0900_ai_ci");
        assert_eq!(there("binary"), "binary");
    }
}
