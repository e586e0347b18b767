//! Values that may be shown in more than one way.

use super::evidence::{Evidence, begins, is_null, number};
use super::functions::OF_ROWS;
use super::{Kind, Test};
use crate::compare::{self, Cell};
use crate::tree::feature::{Feature, Features};
use crate::tree::visit::{Node, walk};
use crate::tree::{Class, Expr, Statement};

pub const KINDS: &[Kind] = &[
    Kind {
        // Which of several texts that are equal by their collation a group, a DISTINCT, a UNION or MIN shows, is
        // open; so is what a function makes of its letters.
        name: "one of several equal texts",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/group-by-handling.html",
        test: Test::Value(|e, at, a, b| {
            let are_equal = || match (a, b) {
                (Some(one), Some(other)) => compare::fold(one) == compare::fold(other),
                _ => false,
            };
            let is_of_letters = || {
                (e.is_generated(at) || e.shows(at, &|expr| begins(expr, OF_LETTERS)))
                    && (e.schema.variants && e.shows_column(at, &|column| column.class() == Class::Text)
                        || e.shows(at, &|expr| begins(expr, &["SPACE("])))
            };
            merges_rows(e.statement) && (are_equal() || is_of_letters())
        }),
    },
    Kind {
        // In MySQL 8 the scale of ROUND and TRUNCATE is not larger than that of their argument, and it shows all digits
        // of a variance or deviation, MariaDB four behind those of its argument. A quotient, and an average, has
        // digits behind its scale until it is stored in a temporary table: whether it is, the plan decides. A product
        // of DECIMALs loses digits beyond nine words of nine; MariaDB's CUME_DIST has ten digits. A DOUBLE of fixed
        // digits has others in an expression. What is left of a division by such a number depends on its last digit.
        // A DOUBLE of fixed digits, and one that ROUND, FLOOR or CEILING has given digits, has seventeen in MariaDB's
        // temporary tables.
        // What is computed from NULL is a DOUBLE without digits behind the point, and shows all before it in a text; in
        // MariaDB's temporary tables it has an exponent.
        // MAX, LEAD and their like of a choice among FLOATs is a FLOAT in MySQL 8, which shows six digits, and a DOUBLE in
        // MariaDB.
        // With how many zeros a DECIMAL is shown that is text beside a BIT in a set operation, and how many the time has
        // that UNIX_TIMESTAMP is asked for where it is computed, neither manual tells.
        name: "digits behind the point",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/arithmetic-functions.html",
        test: Test::Value(|e, at, a, b| {
            // The rest of a division changes with the last digit.
            let is_rest = || {
                e.shows(at, &|expr| match expr {
                    Expr::Form { form, arguments, .. } if form.contains(" % ") => {
                        arguments.iter().any(|argument| e.names.has(argument, &divides))
                    }
                    _ => false,
                })
            };
            // A tenth is rounded up or not by the last digit.
            let is_rounded_quotient = || {
                e.shows(at, &|expr| match expr {
                    Expr::Form { form: "ROUND({0}, 1)" | "TRUNCATE({0}, 1)", arguments, .. } => {
                        e.names.has(&arguments[0], &divides)
                    }
                    _ => false,
                })
            };
            let is_rounded = || e.shows(at, &|expr| begins(expr, &["ROUND(", "TRUNCATE("]));
            // 1e17 for each larger one.
            let is_cut = || matches!((number(a), number(b)), (Some(a), Some(b)) if a.abs() >= 1e15 && b / a > 1.0);
            let is_whole = || e.shows(at, &|expr| begins(expr, &["FLOOR(", "CEILING("]));
            let is_float = || {
                e.shows(at, &|expr| begins(expr, OF_ROWS)) && e.shows_column(at, &|column| column.kind.sql == "FLOAT")
            };
            let is_beside_bits = || e.shows_column(at, &|column| column.kind.sql.starts_with("BIT"));
            let is_fixed = || e.shows_column(at, &|column| column.kind.sql == "DOUBLE(8,2)");
            let is_time = || e.shows(at, &|expr| begins(expr, &["UNIX_TIMESTAMP("]));
            without_zeros(a) == without_zeros(b) && (is_rounded() || is_beside_bits() || is_time())
                || is_cut() && (is_rounded() || is_whole() || is_fixed())
                || is_exponent(a, b) && e.shows(at, &is_null)
                || of_six_digits(a, b) && is_float()
                || a.is_some() && b.is_some() && is_rest()
                || near(a, b) && e.shows(at, &divides)
                || (near(a, b) || are_within(0.01, a, b)) && is_fixed()
                || are_within(0.05, a, b) && is_rounded()
                || are_within(0.1, a, b) && is_rounded_quotient()
        }),
    },
    Kind {
        // The year zero has four digits in MySQL. A YEAR and a TINYINT agree on a number here; they are a TINYINT in
        // MariaDB, that has no year. TO_DAYS of the zero date is NULL by MySQL's manual.
        name: "years and days",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/year.html",
        test: Test::Value(|e, at, a, b| {
            let of = |kind: &'static str| e.shows_column(at, &|column| column.kind.sql.starts_with(kind));
            // Also inside of a text.
            let are_zeros = || match (a, b) {
                (Some(a), Some(b)) => {
                    a != b && String::from_utf8_lossy(a) == String::from_utf8_lossy(b).replace("0000", "0")
                }
                _ => false,
            };
            let is_cut = matches!(a.as_deref(), Some(b"127" | b"255")) && (of("TINYINT") || of("BOOL"));
            let is_day = || b.is_none() && number(a) == Some(0.0) && e.shows(at, &|expr| begins(expr, &["TO_DAYS("]));
            (are_zeros() || is_cut) && of("YEAR") || is_day()
        }),
    },
    Kind {
        // The largest TIME has no fraction in MySQL. How many digits the time of a NULL has is told by neither manual, and
        // so with how many zeros other times are shown that stand in its column.
        name: "fractions of the largest TIME, and of NULL",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/time.html",
        test: Test::Value(|e, at, a, b| {
            let text = |cell: &Cell| String::from_utf8_lossy(cell.as_deref().unwrap_or_default()).into_owned();
            let (a, b) = (text(a), text(b));
            let (whole, fraction) = a.split_once('.').unwrap_or((&a, ""));
            let (other, digits) = b.split_once('.').unwrap_or((&b, ""));
            let is_largest = whole.ends_with("838:59:59") && digits.bytes().all(|digit| digit == b'0');
            let is_same = fraction.trim_end_matches('0') == digits.trim_end_matches('0');
            whole == other && whole.contains(':') && (is_largest || is_same && e.shows(at, &is_null))
        }),
    },
    Kind {
        // A BIT stays one in CASE, NULLIF, MIN and in temporary tables, and is shown as bytes; MariaDB shows its
        // number. Where GROUP_CONCAT sorts it is a number; in MariaDB it is bytes in an expression.
        name: "a BIT is bytes",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/bit-type.html",
        test: Test::Value(|e, at, a, b| {
            let (Some(a), Some(b)) = (a, b) else { return false };
            let is_bit = || e.shows_column(at, &|column| column.kind.sql.starts_with("BIT"));
            let is_list = || e.shows(at, &|expr| begins(expr, &["GROUP_CONCAT("]));
            bit_number(a) == bit_number(b) && is_bit() || bit_numbers(a) == *b && is_list() && is_bit()
        }),
    },
    Kind {
        // CAST AS UNSIGNED keeps a negative number's bits. A difference of an unsigned DECIMAL may be negative;
        // MariaDB makes it zero in a temporary table.
        name: "unsigned numbers",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/cast-functions.html#function_cast",
        test: Test::Value(|e, at, a, b| {
            let (Some(a), Some(b)) = (number(a), number(b)) else { return false };
            let of = |forms: &'static [&'static str]| e.shows(at, &move |expr: &Expr| begins(expr, forms));
            let is_unsigned = || e.shows_column(at, &|column| column.kind.sql == "DECIMAL(8,3) UNSIGNED");
            b >= 18_446_744_073_709_000_000.0 && of(&["CAST({0} AS UNSIGNED)"])
                || a == 0.0 && b < 0.0 && of(&["({0} - {1})"]) && is_unsigned()
        }),
    },
];

/// A quotient, an average, and a product of DECIMALs.
fn divides(expr: &Expr) -> bool {
    match expr {
        Expr::Form { form, class, .. } => {
            form.contains(" / ")
                || ["AVG(", "STD", "VAR_", "CUME_DIST(", "PERCENT_RANK("].iter().any(|s| form.starts_with(s))
                || form.contains(" * ") && *class == Class::Decimal
        }
        _ => false,
    }
}

/// The rows of a query with derived or common tables are the same but for digits that a quotient has behind its scale
/// where such a table is merged, and loses where it is a temporary table.
pub(super) fn same_but_for_quotients(e: &Evidence<'_>) -> bool {
    (e.has(Feature::Derived) || e.has(Feature::With)) && e.rows_go(&|at, a, b| near(a, b) && e.shows(at, &divides))
}

/// Functions whose results differ for texts that are equal by their collation.
const OF_LETTERS: &[&str] = &[
    "CRC32(",
    "MD5(",
    "SHA",
    "HEX(",
    "TO_BASE64(",
    "LENGTH(",
    "BIT_LENGTH(",
    "ORD(",
    "ASCII(",
    "CHAR_LENGTH(",
    "({0} LIKE",
    "({0} NOT LIKE",
    "({0} REGEXP",
    "RPAD(",
    "LPAD(",
    "RIGHT(",
];

/// Rows are merged: a group, a DISTINCT, a set operation, MIN or MAX.
pub fn merges_rows(statement: &Statement) -> bool {
    let features = Features::of(statement);
    let mut found = [Feature::Union, Feature::Intersect, Feature::Except, Feature::Recursive]
        .iter()
        .any(|feature| features.has(*feature));
    walk(statement, &mut |node| {
        found |= match node {
            Node::Select(select) => select.distinct || !select.group.is_empty(),
            Node::Expr(Expr::Form { form: "MIN({0})" | "MAX({0})", .. }) => true,
            _ => false,
        };
    });
    found
}

/// The same but for digits that few operations make of half a digit in the fourth place.
fn near(a: &Cell, b: &Cell) -> bool {
    match (number(a), number(b)) {
        (Some(a), Some(b)) => (a - b).abs() <= 6e-5 + 1e-3 * a.abs().max(b.abs()),
        _ => false,
    }
}

/// The same DOUBLE, with an exponent and without.
fn is_exponent(a: &Cell, b: &Cell) -> bool {
    let has_exponent = |cell: &Cell| cell.as_ref().is_some_and(|bytes| bytes.contains(&b'e'));
    has_exponent(a) && !has_exponent(b) && number(a).is_some() && number(a) == number(b)
}

/// The second one is the first one in the digits of a FLOAT.
fn of_six_digits(a: &Cell, b: &Cell) -> bool {
    matches!((number(a), number(b)), (Some(a), Some(b)) if format!("{a:.5e}").parse() == Ok(b))
}

/// Half a hundredth is rounded in either way, to an even digit where it is stored in a temporary table (0.01); half a tenth
/// where ROUND has given one digit, and it is stored so (0.05); or a whole tenth is, by a digit that is not shown (0.1).
fn are_within(step: f64, a: &Cell, b: &Cell) -> bool {
    matches!((number(a), number(b)), (Some(a), Some(b)) if (a - b).abs() <= step + 1e-9)
}

/// `7` for `7.00`, also inside of a text.
fn without_zeros(cell: &Cell) -> Option<String> {
    let text = String::from_utf8_lossy(cell.as_ref()?).into_owned();
    if number(cell) == Some(0.0) {
        return Some("0".into());
    }
    let mut shown = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find('.') {
        let digits = rest[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
        let (number, behind) = rest.split_at(at + 1 + digits);
        shown += number.trim_end_matches('0').trim_end_matches('.');
        rest = behind;
    }
    Some(shown + rest)
}

/// The digits of BIT(10)s that are shown as bytes, with a separator between.
fn bit_numbers(cell: &[u8]) -> Vec<u8> {
    let is_list = cell.len() % 3 == 2
        && cell.chunks(3).all(|part| part[0] <= 3 && matches!(part.get(2), None | Some(b',' | b'|')));
    if !is_list {
        return cell.to_vec();
    }
    let mut digits = Vec::new();
    for part in cell.chunks(3) {
        digits.extend((u32::from(part[0]) << 8 | u32::from(part[1])).to_string().into_bytes());
        digits.extend(part.get(2));
    }
    digits
}

/// The digits of a BIT(10) that is shown as bytes.
fn bit_number(cell: &[u8]) -> Vec<u8> {
    match cell {
        [high @ 0..=3, low] if !(high.is_ascii_digit() && low.is_ascii_digit()) => {
            (u32::from(*high) << 8 | u32::from(*low)).to_string().into_bytes()
        }
        _ => cell.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_may_be_rounded_away() {
        let cell = |text: &str| Some(text.as_bytes().to_vec());
        assert!(are_within(0.1, &cell("-0.9"), &cell("-1.0")));
        assert!(!are_within(0.1, &cell("-0.9"), &cell("-1.1")));
        assert!(!are_within(0.05, &cell("-0.9"), &cell("-1.0")));
        assert!(!are_within(0.1, &cell("-0.9"), &None));
    }

    #[test]
    fn a_double_may_have_an_exponent() {
        let cell = |text: &str| Some(text.as_bytes().to_vec());
        assert!(is_exponent(&cell("1.8446744073709552e19"), &cell("18446744073709551616")));
        assert!(!is_exponent(&cell("1.8446744073709552e19"), &cell("18446744073709561616")));
        assert!(!is_exponent(&cell("18446744073709551614"), &cell("18446744073709551616")));
        assert!(!is_exponent(&cell("e"), &cell("0")));
        assert!(!is_exponent(&cell("1e3"), &cell("1e3")));
        assert!(!is_exponent(&None, &None));
    }

    #[test]
    fn a_float_has_six_digits() {
        let cell = |text: &str| Some(text.as_bytes().to_vec());
        assert!(of_six_digits(&cell("111.49243927001953"), &cell("111.492")));
        assert!(of_six_digits(&cell("-0.00001234567"), &cell("-1.23457e-5")));
        assert!(!of_six_digits(&cell("111.49243927001953"), &cell("111.493")));
        assert!(!of_six_digits(&cell("111.49243927001953"), &cell("111.4924")));
        assert!(!of_six_digits(&cell("111.49243927001953"), &None));
    }
}
