//! Functions in other words: what MySQL 8's manual says of them, in words that mean it to MariaDB too.

use super::evidence::{begins, is_null};
use super::layers;
use super::names::Names;
use super::words::{Step, each, is_aggregate, reworded, wrap};
use crate::generate::forms::{BITS, CHOICES};
use crate::schema::Column;
use crate::tree::{Body, Class, Expr, Query, Source, Statement};

type Change = fn(&mut Statement, &Names<'_>) -> bool;

pub(super) const WORDS: &[Change] =
    &[functions, least_dates, least_whole_dates, bits_in_texts, numbers_of_groups, counts_of_lists];

/// For zero dates that are the least of a group.
pub(super) const LEAST_DATES: &[Change] = &[least_dates, least_whole_dates];

pub(super) fn functions(statement: &mut Statement, names: &Names) -> bool {
    // Before NULLIF is in other words.
    extremes_of_null(statement)
        | reworded(
            statement,
            &[
                (
                    "REPLACE({0}, 'a', {1})",
                    "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL ELSE REPLACE({0}, 'a', {1}) END",
                ),
                ("FIELD({0}, {1}, {2})", "CASE WHEN {0} IS NULL THEN 0 ELSE FIELD({0}, {1}, {2}) END"),
                ("INTERVAL({0}, 1, 5, 10)", "CASE WHEN {0} IS NULL THEN -1 ELSE INTERVAL({0}, 1, 5, 10) END"),
                (
                    "MAKE_SET({0}, {1}, {2})",
                    "CASE WHEN {0} IS NULL THEN NULL \
                 ELSE CONCAT_WS(',', IF({0} & 1, {1}, NULL), IF({0} & 2, {2}, NULL)) END",
                ),
                ("CRC32({0})", "CASE WHEN {0} IS NULL THEN NULL ELSE CRC32({0}) END"),
                // Two digits to its type.
                ("HOUR({0})", "(HOUR({0}) + 0)"),
                // Counted in signed numbers.
                ("SEC_TO_TIME({0})", "SEC_TO_TIME(CAST({0} AS DECIMAL(30,0)))"),
                // A BIT or a year zero makes no valid JSON there, nor does an array that is cut at group_concat_max_len.
                ("JSON_LENGTH(JSON_ARRAYAGG({0}))", "NULLIF(COUNT(CASE WHEN {0} IS NULL THEN 1 ELSE 1 END), 0)"),
                // Taken for shorter than it is.
                ("YEARWEEK({0})", "(YEARWEEK({0}) + 0)"),
                ("TIMESTAMP({0}, {1})", "TIMESTAMP({0}, TIME({1}))"),
                ("ELT({0}, {1}, {2})", "CASE {0} WHEN 1 THEN {1} WHEN 2 THEN {2} END"),
                ("ASCII({0})", "(ASCII({0}) + 0)"),
                // An unsigned number that a subquery gives is signed there.
                ("SIGN({0})", "SIGN(({0}) + 0)"),
                // Of a LONGTEXT it has no length.
                ("UNHEX(HEX({0}))", "CAST({0} AS BINARY)"),
                ("BIT_COUNT({0})", "(BIT_COUNT({0}) + 0)"),
                ("TIME_TO_SEC({0})", "CAST(TRUNCATE(TIME_TO_SEC({0}), 0) AS SIGNED)"),
                ("NULLIF({0}, {1})", "CASE WHEN {0} = {1} THEN NULL ELSE {0} END"),
            ],
        )
        | extremes_of_texts(statement)
        | unsigned_bits(statement)
        | wide_integers(statement)
        | largest_times(statement)
        | all_bits(statement)
        | bits_of_frames(statement)
        | parts_of_null(statement)
        | counted_doubles(statement)
        | amounts(statement)
        | whole_times(statement)
        | numbers_of_bits(statement, names)
}

/// The number of a BIT that a choice gives, where GROUP_CONCAT sorts it.
fn numbers_of_bits(statement: &mut Statement, names: &Names) -> bool {
    let is_bit = |column: &Column| column.kind.sql.starts_with("BIT");
    each(statement, &mut |expr| match expr {
        Expr::Form { form, arguments, .. } if form.starts_with("GROUP_CONCAT(") => match &mut arguments[0] {
            value @ Expr::Form { class: Class::Integer, .. } if names.reads(value, &is_bit) => {
                wrap(value, "({0} + 0)");
                Step::Changed
            }
            _ => Step::Same,
        },
        _ => Step::Same,
    })
}

/// A time becomes a whole number by rounding; MariaDB cuts its fraction there, and rounds it for a time without one.
fn whole_times(statement: &mut Statement) -> bool {
    each(statement, &mut |expr| match expr {
        Expr::Form { form: form @ "CAST({0} AS SIGNED)", arguments, .. } if arguments[0].class() == Class::DateTime => {
            *form = "CAST(CAST({0} AS DATETIME) AS SIGNED)";
            Step::Changed
        }
        _ => Step::Same,
    })
}

/// How much is added to a date: of the least of signed and unsigned numbers MariaDB takes bits there.
fn amounts(statement: &mut Statement) -> bool {
    each(statement, &mut |expr| match expr {
        Expr::Form { form, arguments, .. } => {
            let at = match *form {
                form if form.contains(" INTERVAL {1} ") => 1,
                form if form.starts_with("TIMESTAMPADD(") => 0,
                _ => return Step::Same,
            };
            if !begins(&arguments[at], &["LEAST(", "GREATEST("]) {
                return Step::Same;
            }
            wrap(&mut arguments[at], "({0} + 0)");
            Step::Changed
        }
        _ => Step::Same,
    })
}

/// What stands behind a NULL is not read.
fn parts_of_null(statement: &mut Statement) -> bool {
    each(statement, &mut |expr| match expr {
        Expr::Form { form, arguments, .. } if form.starts_with("SUBSTRING(") => {
            let first = arguments.iter().position(is_null).unwrap_or(arguments.len());
            let mut read = arguments.iter_mut().skip(first).filter(|argument| !is_null(argument)).peekable();
            if read.peek().is_none() {
                return Step::Same;
            }
            read.for_each(|argument| *argument = Expr::literal("NULL", argument.class()));
            Step::Changed
        }
        _ => Step::Same,
    })
}

/// A DOUBLE of fixed digits is rounded in a temporary table, but in an expression it has all of them.
fn counted_doubles(statement: &mut Statement) -> bool {
    each(statement, &mut |expr| match expr {
        Expr::Form { form: form @ "COUNT(DISTINCT {0})", arguments, .. } if arguments[0].class() == Class::Double => {
            *form = "COUNT(DISTINCT {0} + 0e0)";
            Step::Changed
        }
        _ => Step::Same,
    })
}

/// The least or largest of dates where a function reads it, NULL in the place of the zero date.
fn least_dates(statement: &mut Statement, _: &Names) -> bool {
    least_dates_but(statement, &[])
}

/// The same but for functions that give a part of a date: that of the zero date is 0.
fn least_whole_dates(statement: &mut Statement, _: &Names) -> bool {
    least_dates_but(statement, &["YEAR(", "QUARTER(", "MONTH(", "DAYOFMONTH("])
}

fn least_dates_but(statement: &mut Statement, but: &[&str]) -> bool {
    const READ: &str = "CASE WHEN {0} = 0 THEN NULL ELSE {0} END";
    let is_extreme = |expr: &Expr| {
        matches!(expr, Expr::Form { form: "MIN({0})" | "MAX({0})", class: Class::Date | Class::DateTime, .. })
    };
    each(statement, &mut |expr| {
        let Expr::Form { form, arguments, .. } = expr else { return Step::Same };
        let is_left = but.iter().any(|begin| form.starts_with(begin));
        if *form == READ || is_left || !arguments.iter().any(is_extreme) {
            return Step::Same;
        }
        for argument in arguments.iter_mut().filter(|argument| is_extreme(argument)) {
            wrap(argument, READ);
        }
        Step::Changed
    })
}

/// How many texts a list has that GROUP_CONCAT makes. Where a choice in a subquery asks for it for one row of the block
/// around and not for the one before, MariaDB has a DISTINCT count of the rows before.
fn counts_of_lists(statement: &mut Statement, _: &Names) -> bool {
    reworded(
        statement,
        &[
            (
                "COUNT(DISTINCT {0})",
                "COALESCE(LENGTH(GROUP_CONCAT(DISTINCT {0})) \
                 - LENGTH(REPLACE(GROUP_CONCAT(DISTINCT {0}), ',', '')) + 1, 0)",
            ),
            (
                "COUNT(DISTINCT {0}, {1})",
                "COALESCE(LENGTH(GROUP_CONCAT(DISTINCT {0}, '-', {1})) \
                 - LENGTH(REPLACE(GROUP_CONCAT(DISTINCT {0}, '-', {1}), ',', '')) + 1, 0)",
            ),
        ],
    )
}

/// The bytes of a BIT in a text, where NULLIF, GREATEST, MAX or a choice gives it. MariaDB has its digits there, and its
/// bytes of the column alone.
fn bits_in_texts(statement: &mut Statement, names: &Names) -> bool {
    let is_bit = |expr: &Expr| names.column(expr).is_some_and(|column| column.kind.sql.starts_with("BIT"));
    each(statement, &mut |expr| {
        if !begins(expr, OF_BYTES) {
            return Step::Same;
        }
        let Expr::Form { arguments, .. } = expr else { return Step::Same };
        let mut changed = Step::Same;
        for argument in arguments.iter_mut().filter(|argument| is_choice_of(argument, &is_bit)) {
            as_bytes(argument, &is_bit);
            changed = Step::Changed;
        }
        changed
    })
}

/// A choice among BITs, and NULL beside them.
fn is_choice_of(expr: &Expr, is_bit: &dyn Fn(&Expr) -> bool) -> bool {
    let is_value = |value: &Expr| is_bit(value) || is_choice_of(value, is_bit);
    match expr {
        Expr::Form { form: "MIN({0})" | "MAX({0})" | "NULLIF({0}, {1})", arguments, .. } => is_bit(&arguments[0]),
        Expr::Form { form: "GREATEST({0}, {1})", arguments, .. } => arguments.iter().all(is_bit),
        Expr::Form { arguments, .. } => {
            let values = chosen(expr, arguments.iter());
            values.iter().any(|value| is_value(value)) && values.iter().all(|value| is_null(value) || is_value(value))
        }
        _ => false,
    }
}

/// What a choice gives, without its conditions; nothing if it is none.
fn chosen<T>(expr: &Expr, arguments: impl Iterator<Item = T>) -> Vec<T> {
    let Expr::Form { form, .. } = expr else { return Vec::new() };
    let conditions = CHOICES.iter().find(|(choice, _)| choice == form).map_or(&[][..], |(_, conditions)| conditions);
    arguments.zip(conditions).filter(|(_, is_condition)| !**is_condition).map(|(value, _)| value).collect()
}

/// A BIT, or a choice among them, as the text of its bytes.
fn as_bytes(expr: &mut Expr, is_bit: &dyn Fn(&Expr) -> bool) {
    if is_bit(expr) {
        wrap(expr, "CONCAT({0})");
        return;
    }
    let kind = expr.clone();
    let Expr::Form { form, arguments, .. } = expr else { return };
    match *form {
        "MIN({0})" => *form = "MIN(CONCAT({0}))",
        "MAX({0})" => *form = "MAX(CONCAT({0}))",
        "NULLIF({0}, {1})" => *form = "IF({0} = {1}, NULL, CONCAT({0}))",
        "GREATEST({0}, {1})" => {
            *form =
                "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN {0} > {1} THEN CONCAT({0}) ELSE CONCAT({1}) END"
        }
        _ => chosen(&kind, arguments.iter_mut()).into_iter().for_each(|value| as_bytes(value, is_bit)),
    }
}

/// What reads a BIT as a text.
const OF_BYTES: &[&str] = &[
    "CONCAT",
    "CAST({0} AS CHAR",
    "POSITION(",
    "LOCATE(",
    "INSTR(",
    "LENGTH(",
    "CHAR_LENGTH(",
    "BIT_LENGTH(",
    "LEFT(",
    "RIGHT(",
];

/// Functions of several rows that give the value of one of them.
pub(super) const OF_ROWS: &[&str] = &["MIN(", "MAX(", "FIRST_VALUE(", "LAST_VALUE(", "NTH_VALUE(", "LEAD(", "LAG("];

/// The least, or the first, of nothing but NULL has no type; it is a text to MariaDB. The least of integers and NULL is a
/// DOUBLE with as many digits as what it meets.
fn extremes_of_null(statement: &mut Statement) -> bool {
    each(statement, &mut |expr| match expr {
        Expr::Window { function, .. } if begins(function, OF_ROWS) && is_of_nothing(function) => {
            *expr = Expr::literal("NULL", function.class());
            Step::Changed
        }
        Expr::Form { form: "MIN({0})" | "MAX({0})", arguments, class } if arguments.iter().all(is_nothing) => {
            *expr = Expr::literal("NULL", *class);
            Step::Changed
        }
        Expr::Form { form: "GREATEST({0}, {1})" | "LEAST({0}, {1}, {2})", arguments, class: Class::Integer }
            if arguments.iter().any(is_nothing) =>
        {
            *expr = Expr::literal("NULL", Class::Integer);
            wrap(expr, "CAST({0} AS SIGNED)")
        }
        _ => Step::Same,
    })
}

/// All that the function reads is NULL.
fn is_of_nothing(function: &Expr) -> bool {
    matches!(function, Expr::Form { arguments, .. } if !arguments.is_empty() && arguments.iter().all(is_nothing))
}

/// NULL, and what a choice makes of nothing else.
fn is_nothing(expr: &Expr) -> bool {
    match expr {
        Expr::Form { form: "NULLIF({0}, {1})", arguments, .. } => is_nothing(&arguments[0]),
        Expr::Form { form: "COALESCE({0}, {1})" | "IFNULL({0}, {1})", arguments, .. } => {
            arguments.iter().all(is_nothing)
        }
        other => is_null(other),
    }
}

/// The largest TIME has no fraction.
fn largest_times(statement: &mut Statement) -> bool {
    const CLIPPED: &str = "CASE WHEN TIME_TO_SEC({0}) >= 3020399 THEN TIME'838:59:59' \
                           WHEN TIME_TO_SEC({0}) <= -3020399 THEN TIME'-838:59:59' ELSE {0} END";
    each(statement, &mut |expr| match expr {
        Expr::Form { form, class: Class::Time, .. }
            if ["TIMEDIFF(", "ADDTIME(", "SUBTIME("].iter().any(|begin| form.starts_with(begin)) =>
        {
            wrap(expr, CLIPPED)
        }
        _ => Step::Same,
    })
}

/// BIT_OR of a frame as the bits of its rows, or as the largest of each bit: MariaDB takes no value out of it when the
/// frame loses a row.
fn bits_of_frames(statement: &mut Statement) -> bool {
    each(statement, &mut |expr| {
        let Expr::Window { function, frame, .. } = &*expr else { return Step::Same };
        let Expr::Form { form: "BIT_OR({0})", arguments, .. } = &**function else { return Step::Same };
        if frame.is_empty() || frame.contains("UNBOUNDED PRECEDING") {
            return Step::Same;
        }
        let argument = &arguments[0];
        let integer = |number: u64| Expr::literal(number.to_string(), Class::Integer);
        // A function of the same window, over all of its frame or beside it.
        let of_window = |of: Expr, frame: &str| {
            let mut window = expr.clone();
            if let Expr::Window { function, frame: own, .. } = &mut window {
                (**function, *own) = (of, frame.into());
            }
            window
        };
        let bits: Vec<Expr> = match rows_of_frame(frame) {
            Some(rows) => {
                let of_row = |row: i64| {
                    let beside = |form| {
                        let of = Expr::form(form, Class::Integer, vec![argument.clone(), integer(row.unsigned_abs())]);
                        of_window(of, "")
                    };
                    let value = match row.signum() {
                        0 => argument.clone(),
                        1 => beside("LEAD({0}, {1})"),
                        _ => beside("LAG({0}, {1})"),
                    };
                    Expr::form("COALESCE({0}, 0)", Class::Integer, vec![value])
                };
                rows.map(of_row).collect()
            }
            None => {
                let bit = |at: u64| {
                    let one = Expr::form("(({0} >> {1}) & 1)", Class::Integer, vec![argument.clone(), integer(at)]);
                    let most = of_window(Expr::form("MAX({0})", Class::Integer, vec![one]), frame);
                    Expr::form("(COALESCE({0}, 0) << {1})", Class::Integer, vec![most, integer(at)])
                };
                (0..64).map(bit).collect()
            }
        };
        let join = |left: Expr, right: Expr| Expr::form("({0} | {1})", Class::Integer, vec![left, right]);
        *expr = bits.into_iter().fold(integer(0), join);
        Step::Changed
    })
}

/// The rows of a frame, by their distance from the row whose it is; `None` where they are not counted.
fn rows_of_frame(frame: &str) -> Option<std::ops::RangeInclusive<i64>> {
    let bound = |text: &str| match text.split_once(' ')? {
        ("CURRENT", _) => Some(0),
        (number, "PRECEDING") => number.parse::<i64>().ok().map(|rows| -rows),
        (number, _) => number.parse().ok(),
    };
    let (first, last) = frame.strip_prefix("ROWS BETWEEN ")?.split_once(" AND ")?;
    Some(bound(first)?..=bound(last)?)
}

/// MariaDB thinks these shorter than they are: the quotient of DIV as short as its left side, sign left out; 9 that is
/// rounded to 10 as short as 9.
fn wide_integers(statement: &mut Statement) -> bool {
    const WIDE: &[&str] = &["({0} DIV {1})", "ABS({0})", "ROUND({0}, -1)"];
    each(statement, &mut |expr| match expr {
        Expr::Form { form, class: Class::Integer, .. } if WIDE.contains(form) => wrap(expr, "({0} + 0)"),
        _ => Step::Same,
    })
}

/// The least or largest of what a bit operator gives, or of a constant of several digits: as a DECIMAL, which an unsigned
/// number makes of it in a set operation, it has one digit, and 11 is 9; and a number that only an unsigned BIGINT has is
/// negative.
fn is_extreme_of_bits(expr: &Expr) -> bool {
    const OPERATORS: &[&str] = &["({0} & ", "({0} | ", "({0} ^ ", "({0} << ", "({0} >> ", "(~ "];
    match expr {
        Expr::Form { form: "MIN({0})" | "MAX({0})", arguments, .. } => {
            let has_digits = |text: &str| text.len() > 1 && text.bytes().all(|digit| digit.is_ascii_digit());
            let is_long = matches!(&arguments[0], Expr::Literal { text, .. } if has_digits(text));
            is_long || begins(&arguments[0], OPERATORS)
        }
        _ => false,
    }
}

/// What BIT_AND and its like read as an unsigned number of 64 bits, as bit operators do: of a DECIMAL or DOUBLE beyond the
/// largest signed number MariaDB has that number there.
fn all_bits(statement: &mut Statement) -> bool {
    each(statement, &mut |expr| match expr {
        Expr::Form { form, arguments, .. } if BITS.contains(form) && arguments[0].class().is_number() => {
            wrap(&mut arguments[0], "({0} | 0)");
            Step::Changed
        }
        _ => Step::Same,
    })
}

/// What BIT_AND and its like, and bit operators, give is not negative; a constant is no shorter where it is an extreme.
fn unsigned_bits(statement: &mut Statement) -> bool {
    let mut is_windows = false;
    each(statement, &mut |expr| match expr {
        // The function of a window is no expression of its own.
        Expr::Window { .. } => {
            is_windows = true;
            Step::Same
        }
        Expr::Form { form, .. }
            if (BITS.contains(form) || is_extreme_of_bits(expr)) && !std::mem::take(&mut is_windows) =>
        {
            wrap(expr, "({0} + 0)")
        }
        _ => {
            is_windows = false;
            Step::Same
        }
    })
}

fn extremes_of_texts(statement: &mut Statement) -> bool {
    each(statement, &mut |expr| match expr {
        Expr::Form { form: "GREATEST({0}, {1})" | "LEAST({0}, {1}, {2})", class: Class::Text, .. } => {
            wrap(expr, "CONCAT({0})")
        }
        _ => Step::Same,
    })
}

/// What a group gives is put into a BIT, a YEAR or a column of members as the number that it is: from a derived table.
/// MariaDB keeps what is computed beside its aggregates as text, whose bytes it takes for the bits.
pub(super) fn numbers_of_groups(statement: &mut Statement, names: &Names) -> bool {
    let Some(table) = names.target() else { return false };
    let change = match statement {
        Statement::ThroughView { change, .. } => &mut **change,
        other => other,
    };
    let Statement::Insert { columns, source: Source::Query(query), .. } = change else { return false };
    const NUMBERED: &[&str] = &["BIT", "YEAR", "ENUM", "SET"];
    let is_numbered = |sql: &str| NUMBERED.iter().any(|kind| sql.starts_with(kind));
    if !columns.iter().any(|name| table.column(name).is_some_and(|column| is_numbered(column.kind.sql)))
        || !is_grouped(query)
    {
        return false;
    }
    *query = layers::around(query, &mut 0);
    true
}

/// A block of the query has groups.
fn is_grouped(query: &Query) -> bool {
    match &query.body {
        Body::Select(select) => !select.group.is_empty() || select.items.iter().any(|item| has_aggregate(&item.expr)),
        Body::Set { left, right, .. } => is_grouped(left) || is_grouped(right),
        Body::Values(_) | Body::Table(_) => false,
    }
}

fn has_aggregate(expr: &Expr) -> bool {
    match expr {
        Expr::Form { form, arguments, .. } => is_aggregate(form) || arguments.iter().any(has_aggregate),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_of_several_digits_is_cut_where_it_is_an_extreme() {
        let least = |text: &str, class| Expr::form("MIN({0})", class, vec![Expr::literal(text, class)]);
        assert!(is_extreme_of_bits(&least("11", Class::Integer)));
        assert!(is_extreme_of_bits(&least("18446744073709551615", Class::Integer)));
        assert!(!is_extreme_of_bits(&least("9", Class::Integer)));
        assert!(!is_extreme_of_bits(&least("1.5", Class::Decimal)));
        assert!(!is_extreme_of_bits(&Expr::literal("11", Class::Integer)));
    }

    #[test]
    fn a_choice_among_bits_is_their_bytes() {
        let bit = || Expr::column("r1", "a", Class::Integer);
        let null = || Expr::literal("NULL", Class::Integer);
        let is_bit = |expr: &Expr| *expr == bit();
        let shown = |form, arguments| {
            let mut choice = Expr::form(form, Class::Integer, arguments);
            is_choice_of(&choice, &is_bit).then(|| {
                as_bytes(&mut choice, &is_bit);
                choice.to_string()
            })
        };
        let one = Expr::literal("1", Class::Integer);
        let inner = Expr::form("IFNULL({0}, {1})", Class::Integer, vec![bit(), null()]);
        let says = |text: &str| Some(text.to_string());
        assert_eq!(shown("COALESCE({0}, {1})", vec![null(), bit()]), says("COALESCE(NULL, CONCAT(r1.a))"));
        assert_eq!(
            shown("IF({0}, {1}, {2})", vec![bit(), inner, bit()]),
            says("IF(r1.a, IFNULL(CONCAT(r1.a), NULL), CONCAT(r1.a))")
        );
        assert_eq!(shown("MAX({0})", vec![bit()]), says("MAX(CONCAT(r1.a))"));
        // The number of a BIT beside another number.
        assert_eq!(shown("COALESCE({0}, {1})", vec![bit(), one.clone()]), None);
        assert_eq!(shown("COALESCE({0}, {1})", vec![null(), null()]), None);
        assert_eq!(shown("IF({0}, {1}, {2})", vec![bit(), one.clone(), one]), None);
        assert_eq!(shown("({0} + {1})", vec![bit(), bit()]), None);
    }

    #[test]
    fn rows_of_a_frame_are_counted() {
        let rows = |frame| rows_of_frame(frame).map(|rows| (*rows.start(), *rows.end()));
        assert_eq!(rows("ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING"), Some((-2, -1)));
        assert_eq!(rows("ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"), Some((-1, 0)));
        assert_eq!(rows("ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING"), Some((1, 3)));
        assert_eq!(rows("ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"), None);
        assert_eq!(rows("RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"), None);
        assert_eq!(rows("ROWS UNBOUNDED PRECEDING"), None);
    }
}
