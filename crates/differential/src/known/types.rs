//! Types of the columns of a result.

use super::evidence::{Evidence, begins, is_null};
use super::{Kind, Test};
use crate::run::outcome::Family;
use crate::tree::Expr;
use crate::tree::feature::Feature;

pub const KINDS: &[Kind] = &[
    Kind {
        // The type of an expression over a literal NULL is not told by either manual.
        name: "types of what is computed from NULL",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/null-values.html",
        test: Test::Type(|e, at, _, _| e.shows(at, &is_null)),
    },
    Kind {
        // JSON and BIT are types in MySQL; MariaDB's JSON is a LONGTEXT, and what it joins BIT with is bytes or its
        // digits.
        name: "types of JSON and BIT",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/json.html",
        test: Test::Type(|e, at, _, rauk| {
            let of = |kind: &'static str| e.shows_column(at, &|column| column.kind.sql.starts_with(kind));
            rauk == Family::Other && of("JSON") || of("BIT")
        }),
    },
    Kind {
        // MySQL 8 keeps a mix of signed and unsigned numbers, ROUND and minus of a whole number and TIME_TO_SEC an integer
        // where MariaDB makes it a DECIMAL. Numbers of rows are unsigned in MySQL 8. How long an integer is decides whether
        // FLOOR and its kin of a DECIMAL are integers; MariaDB counts digits of literals, more of UNIX_TIMESTAMP, and
        // those of any BIGINT for ABS of an INT, and for a sum, in a temporary table.
        name: "integers that are DECIMAL",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/mathematical-functions.html",
        test: Test::Type(|e, at, reference, rauk| {
            let of = |forms: &'static [&'static str]| e.shows(at, &move |expr: &Expr| begins(expr, forms));
            let is_unsigned = || {
                let unsigned = |sql: &str| sql.ends_with("UNSIGNED") || sql == "YEAR";
                e.shows_column(at, &|column| unsigned(column.kind.sql)) || of(UNSIGNED)
            };
            match (reference, rauk) {
                (Family::Decimal, Family::Integer) => {
                    let is_sum = || is_temporary(e) && of(&["({0} + {1})", "({0} - {1})", "({0} * {1})"]);
                    let is_longer = || of(&["CEILING(", "FLOOR("]) && (of(&["UNIX_TIMESTAMP(", "ABS("]) || is_sum());
                    is_unsigned() || of(&["ROUND(", "(- {0})", "TIME_TO_SEC("]) || has_long(e, at) || is_longer()
                }
                (Family::Integer, Family::Decimal) => {
                    of(&["ROW_NUMBER(", "RANK(", "DENSE_RANK(", "NTILE("]) || of(&["CEILING(", "FLOOR(", "ROUND("])
                }
                _ => false,
            }
        }),
    },
];

/// Whole numbers that are unsigned on one of the two servers.
pub(super) const UNSIGNED: &[&str] = &[
    "CAST({0} AS UNSIGNED)",
    "({0} & {1})",
    "({0} | {1})",
    "({0} ^ {1})",
    "({0} << 2)",
    "({0} >> 1)",
    "(~ {0})",
    "BIT_AND(",
    "BIT_OR(",
    "BIT_XOR(",
    "CRC32(",
    "HOUR(",
    "MINUTE(",
    "SECOND(",
    "INET_ATON(",
    "ROW_NUMBER(",
    "RANK(",
    "DENSE_RANK(",
    "NTILE(",
];

/// There is a table that may be a temporary one.
fn is_temporary(e: &Evidence<'_>) -> bool {
    [Feature::Derived, Feature::With, Feature::View].iter().any(|feature| e.has(*feature))
}

fn has_long(e: &Evidence<'_>, at: usize) -> bool {
    e.shows(at, &|expr| matches!(expr, Expr::Literal { text, .. } if text == "18446744073709551615"))
}
