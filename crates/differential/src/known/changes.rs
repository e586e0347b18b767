//! Tables after a change, and how many rows it says to have changed.

use super::evidence::Evidence;
use super::{Kind, Test, are_data_errors, of_values};
use crate::compare::{self, Category, Cell};
use crate::run::outcome::{Outcome, Row};
use crate::schema::{Column, Table};
use crate::tree::feature::Feature;
use crate::tree::{Expr, Source, Statement};

pub const KINDS: &[Kind] = &[
    Kind {
        // MySQL 8 looks for columns without a value and a default row by row: no row, no error; two rows, two warnings;
        // and what is wrong in a row before comes first.
        name: "columns without a value and a default, by row",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/data-type-defaults.html",
        test: Test::Answers(|e| {
            let Statement::Insert { columns, source, .. } = e.change() else { return false };
            let Some(table) = e.target() else { return false };
            let missing = table.base().into_iter().filter(|c| needs_value(c) && !columns.contains(&c.name)).count();
            let is_default = |row: &Vec<Expr>| {
                columns.iter().zip(row).any(|(name, value)| {
                    matches!(value, Expr::Literal { text, .. } if text == "DEFAULT")
                        && table.column(name).is_some_and(needs_value)
                })
            };
            match (e.category, source, &e.answers.reference, &e.answers.rauk) {
                (Category::Code(1364, code), Source::Rows(rows), ..) if are_data_errors(1364, code) => {
                    rows.iter().skip(1).any(is_default)
                }
                // The row is computed before it is looked at.
                (Category::Code(1364, code), Source::Query(_), ..) if code != 0 => {
                    missing > 0 && are_data_errors(1364, code)
                }
                (Category::Code(1364, 0), Source::Query(_), _, Outcome::Done { affected, .. }) => *affected == 0,
                (Category::Code(1364, 0), Source::Query(_), _, Outcome::Rows { rows, .. }) => rows.is_empty(),
                (Category::Warnings, Source::Rows(rows), one, other) => {
                    let by_row = warnings(one) + (rows.len() - 1) * missing;
                    missing > 0 && (by_row.saturating_sub(huge_numbers(e, rows))..=by_row).contains(&warnings(other))
                }
                _ => false,
            }
        }),
    },
    Kind {
        // A column that only ON DUPLICATE KEY UPDATE names is not given a value by the INSERT; MariaDB takes it for
        // one that is. A row that is set to what it was is not counted; MariaDB counts it where a column without a
        // value is NULL before and behind. REPLACE with the row that is there counts it once: so it depends on the order
        // of equal texts, which is open.
        name: "rows that collide",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/insert-on-duplicate.html",
        test: Test::Answers(|e| {
            let (Some(table), Statement::Insert { verb, columns, source, on_duplicate, .. }) = (e.target(), e.change())
            else {
                return false;
            };
            let is_replace = *verb == "REPLACE" && matches!(source, Source::Query(_)) && e.schema.variants;
            let is_missing = |name: &String| !columns.contains(name) && table.column(name).is_some_and(needs_value);
            match e.category {
                Category::Code(_, 1364 | 1423) => on_duplicate.iter().any(|(name, _)| is_missing(name)),
                Category::Affected => {
                    let counted = |outcome: &Outcome| match outcome {
                        Outcome::Done { affected, .. } => *affected,
                        _ => 0,
                    };
                    let is_less = counted(&e.answers.rauk) < counted(&e.answers.reference);
                    (!on_duplicate.is_empty() && is_less || is_replace) && e.same_contents_by(Cell::clone)
                }
                _ => false,
            }
        }),
    },
    Kind {
        // NULL into a TIMESTAMP that is NOT NULL is the current time in MariaDB; in MySQL 8 it is an error, with
        // IGNORE the zero.
        name: "NULL for a TIMESTAMP",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/timestamp-initialization.html",
        test: Test::Answers(|e| {
            let is_timestamp = |c: &Column| c.kind.sql.starts_with("TIMESTAMP") && !c.nullable;
            let columns = || e.schema.tables.iter().flat_map(|table| &table.columns);
            let is_zero = |cell: &Cell| cell.as_ref().is_some_and(|bytes| bytes.starts_with(b"0000-00-00"));
            match (e.category, &e.answers.rauk) {
                (Category::Code(_, 1048), Outcome::Error { message, .. }) => {
                    let named = message.split('\'').nth(1).unwrap_or_default();
                    columns().any(|column| column.name == named && is_timestamp(column))
                }
                (Category::Warnings, _) => {
                    let is_given = || e.has_null() && columns().any(is_timestamp);
                    e.has(Feature::Ignore)
                        && (is_given() || computed_warns(e, is_timestamp) || contents_go(e, is_timestamp, is_zero))
                }
                _ => e.has(Feature::Ignore) && tables_go(e, is_timestamp, is_zero),
            }
        }),
    },
    Kind {
        // MariaDB's JSON is a CHECK constraint, whose error IGNORE turns into a warning; MySQL's error 3140 stays
        // one. What IGNORE puts where a JSON is missing is valid JSON in MySQL, and an empty text in MariaDB, which
        // its CHECK refuses.
        name: "JSON that is not valid",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/json.html",
        test: Test::Answers(|e| {
            let has_json = |columns: Vec<&Column>| columns.iter().any(|column| column.kind.sql == "JSON");
            let all = || e.schema.tables.iter().flat_map(|table| &table.columns).collect();
            let is_default = |expr: &Expr| matches!(expr, Expr::Literal { text, .. } if text == "DEFAULT");
            let is_null = |column: &Column, cell: &Cell| column.kind.sql == "JSON" && cell.as_deref() == Some(b"null");
            let is_missing = |column: &Column| match e.change() {
                Statement::Insert { columns, source, .. } => {
                    needs_value(column)
                        && match (columns.iter().position(|name| *name == column.name), source) {
                            (None, _) => true,
                            (Some(at), Source::Rows(rows)) => {
                                rows.iter().any(|row| row.get(at).is_some_and(is_default))
                            }
                            (Some(_), Source::Query(_)) => false,
                        }
                }
                _ => false,
            };
            match e.category {
                // MariaDB warns of its CHECK.
                Category::Warnings => {
                    let columns = e.target().map(|table| table.columns.iter()).into_iter().flatten();
                    let mut json = columns.filter(|column| column.kind.sql == "JSON");
                    e.has(Feature::Ignore) && json.any(|column| is_missing(column) || !column.nullable && e.has_null())
                }
                Category::Code(4025, code) => (code == 3140 || are_data_errors(code, 4025)) && has_json(all()),
                Category::Code(code, 3140) => (code == 0 || are_data_errors(code, 3140)) && has_json(all()),
                Category::Affected | Category::Contents | Category::Rows => {
                    e.has(Feature::Ignore)
                        && e.answers.contents.iter().any(|(_, a, b)| !compare::same_rows(a, b))
                        && e.answers.contents.iter().all(|(table, a, b)| {
                            compare::same_rows(a, b)
                                || e.schema.table(table).is_some_and(|table| only_more(table, a, b, is_null))
                        })
                }
                _ => false,
            }
        }),
    },
    Kind {
        // MariaDB warns twice of a number that no integer has, where IGNORE stores the nearest one.
        name: "two warnings of one number",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/out-of-range-and-overflow.html",
        test: Test::Answers(|e| {
            let Statement::Insert { source: Source::Rows(rows), .. } = e.change() else { return false };
            let (one, other) = (warnings(&e.answers.reference), warnings(&e.answers.rauk));
            e.category == Category::Warnings && one > other && one - other <= huge_numbers(e, rows)
        }),
    },
    Kind {
        // A text with a number that is none of the SET's has no member; MariaDB takes the low bits of the number. So
        // rows may collide that do not there, and a CHECK or a foreign key may refuse rows there.
        name: "texts without a member of a SET",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/set.html",
        test: Test::Answers(|e| {
            let is_set = |column: &Column| column.kind.sql.starts_with("SET(");
            let is_empty = |cell: &Cell| cell.as_ref().is_some_and(|bytes| bytes.is_empty());
            let is_more = |(name, one, other): &(String, Outcome, Outcome)| {
                let is_related = |table: &Table| {
                    table.foreign.iter().any(|foreign| table.column(&foreign.column).is_some_and(is_set))
                };
                let is_checked =
                    |table: &Table| !table.checks.is_empty() && table.columns.iter().any(is_set) || is_related(table);
                let has_empty = |column: &Column, cell: &Cell| is_set(column) && is_empty(cell);
                compare::same_rows(one, other)
                    || e.schema
                        .table(name)
                        .is_some_and(|table| is_checked(table) && only_more(table, one, other, has_empty))
            };
            let is_checked = || {
                matches!(e.category, Category::Affected | Category::Contents | Category::Rows | Category::Warnings)
                    && e.answers.contents.iter().any(|(_, one, other)| !compare::same_rows(one, other))
                    && e.answers.contents.iter().all(is_more)
            };
            e.has(Feature::Ignore)
                && (tables_go(e, is_set, is_empty) || fewer_by_key(e, is_set, is_empty) || is_checked())
        }),
    },
];

/// How many numbers IGNORE stores that no integer has, and MariaDB warns of twice.
fn huge_numbers(e: &Evidence<'_>, rows: &[Vec<Expr>]) -> usize {
    let is_huge = |expr: &Expr| matches!(expr, Expr::Literal { text, .. } if text == "1e30" || text.len() == 20);
    match e.has(Feature::Ignore) {
        true => rows.iter().flatten().filter(|value| e.names.has(value, &is_huge)).count(),
        false => 0,
    }
}

/// Rauk warns more often, at most once for each value of such a column that is computed, and so may be NULL.
fn computed_warns(e: &Evidence<'_>, is_meant: impl Fn(&Column) -> bool) -> bool {
    let Statement::Insert { columns, source: Source::Rows(rows), .. } = e.change() else { return false };
    let Some(table) = e.target() else { return false };
    let is_computed = |(name, value): &(&String, &Expr)| {
        !matches!(value, Expr::Literal { .. }) && table.column(name).is_some_and(&is_meant)
    };
    let most = rows.iter().flat_map(|row| columns.iter().zip(row)).filter(is_computed).count();
    let (one, other) = (warnings(&e.answers.reference), warnings(&e.answers.rauk));
    other > one && other - one <= most
}

fn warnings(outcome: &Outcome) -> usize {
    match outcome {
        Outcome::Done { warnings, .. } | Outcome::Rows { warnings, .. } => usize::from(*warnings),
        _ => 0,
    }
}

/// A row that gives it no value is an error.
fn needs_value(column: &Column) -> bool {
    !column.nullable && column.default.is_none()
}

/// Each row that only Rauk has has such a value.
fn only_more(table: &Table, reference: &Outcome, rauk: &Outcome, is_meant: impl Fn(&Column, &Cell) -> bool) -> bool {
    let mut left: Vec<&Row> = reference.rows().unwrap_or_default().iter().collect();
    let has_it = |row: &Row| table.columns.iter().zip(row).any(|(column, cell)| is_meant(column, cell));
    rauk.rows().unwrap_or_default().iter().all(|row| match left.iter().position(|other| *other == row) {
        Some(at) => {
            left.swap_remove(at);
            true
        }
        None => has_it(row),
    })
}

/// Rauk has left out rows whose unique key has such a column; each of its rows goes with one of MariaDB's.
fn fewer_by_key(e: &Evidence<'_>, is_open: impl Fn(&Column) -> bool, may_be: impl Fn(&Cell) -> bool) -> bool {
    let goes = |table: &Table, row: &Row, other: &Row| {
        let mut cells = table.columns.iter().zip(row.iter().zip(other));
        cells.all(|(column, (one, rauk))| one == rauk || is_open(column) && may_be(rauk))
    };
    let is_key =
        |table: &Table| table.columns.iter().any(|column| is_open(column) && table.is_unique_part(&column.name));
    matches!(e.category, Category::Contents | Category::Rows | Category::Affected)
        && e.answers.contents.iter().any(|(_, one, other)| !compare::same_rows(one, other))
        && e.answers.contents.iter().all(|(name, one, other)| match (e.schema.table(name), one.rows(), other.rows()) {
            _ if compare::same_rows(one, other) => true,
            (Some(table), Some(one), Some(other)) => {
                let is_there = |rauk: &Row| one.iter().any(|row| goes(table, row, rauk));
                is_key(table) && other.len() < one.len() && other.iter().all(is_there)
            }
            _ => false,
        })
}

/// What is stored differs, in columns of a kind where Rauk stores such a value. How many rows are changed, and what is
/// given back of them, follows from it.
fn tables_go(e: &Evidence<'_>, is_open: impl Fn(&Column) -> bool, may_be: impl Fn(&Cell) -> bool) -> bool {
    matches!(e.category, Category::Contents | Category::Rows | Category::Affected) && contents_go(e, is_open, may_be)
}

/// What is stored differs, in columns of a kind where Rauk stores such a value, and in what is computed from them.
fn contents_go(e: &Evidence<'_>, is_open: impl Fn(&Column) -> bool, may_be: impl Fn(&Cell) -> bool) -> bool {
    let is_computed =
        |table: &Table, column: &Column| table.columns.iter().any(|other| is_open(other) && column.reads(&other.name));
    let is_target = |table: &Table| e.target().is_some_and(|target| target.name == table.name);
    let goes = |table: &Table, at: usize, one: &Cell, rauk: &Cell| {
        let Some(column) = table.columns.get(at) else { return false };
        is_open(column) && may_be(rauk)
            || is_computed(table, column)
            || e.category == Category::Contents && is_target(table) && of_values(e, at, one, rauk).is_some()
    };
    e.tables_go(&goes)
}
