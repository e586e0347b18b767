//! Errors: one server fails and the other does not, or with another code.

use super::evidence::{Evidence, begins};
use super::{Kind, Test, places};
use crate::compare::{Category, Cell};
use crate::run::outcome::Outcome;
use crate::schema::{Foreign, Table};
use crate::tree::feature::Feature;
use crate::tree::visit::{Node, walk};
use crate::tree::{Expr, From, Statement};

pub const KINDS: &[Kind] = &[
    Kind {
        // MySQL 8 refuses zero dates in texts and where they are stored. To MariaDB every function of one is NULL under
        // NO_ZERO_DATE, with a warning that a strict change refuses; without that mode it says what Rauk says.
        name: "functions of zero dates",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/sql-mode.html#sqlmode_no_zero_date",
        test: Test::ZeroDates,
    },
    Kind {
        // Strict mode makes a warning of a function an error in UPDATE and DELETE too, and of a logarithm of zero.
        // MariaDB warns of what Rauk refuses.
        name: "a warning that is an error in a strict change",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/sql-mode.html#sql-mode-strict",
        test: Test::Warnings(|e, warned, code| {
            let is_logarithm = code == 3020 && e.any(|expr| begins(expr, &["LN(", "LOG("]));
            let is_warning = e.category == Category::Code(0, code) && STRICT_ERRORS.contains(&code);
            // A division by 0 to MariaDB.
            let is_logarithm =
                is_logarithm && matches!(e.category, Category::Code(one, _) if one == 0 || are_data_errors(one, code));
            !e.has(Feature::Ignore) && (is_warning && warned.contains(&code) || is_logarithm)
        }),
    },
    Kind {
        // Several rows or columns are wrong. MariaDB warns of Rauk's error too when it passes over errors. A text
        // that is no number is cut for a DOUBLE, and wrong for MariaDB.
        name: "which of several errors of data comes first",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/sql-mode.html#ignore-effect-on-execution",
        test: Test::Warnings(|e, warned, code| match e.category {
            Category::Code(one, _) if are_data_errors(one, code) => {
                let as_warned: &[u16] = match code {
                    // Shortened when it is passed over; a BIT is out of range.
                    1406 => &[1406, 1265, 1264],
                    3819 => &[3819, 4025],
                    // NULL in an UPDATE of several tables.
                    1048 => &[1048, 1265],
                    // A DECIMAL there, which is out of the column's range.
                    1690 => &[1690, 1264],
                    1265 if e.reference_message().starts_with("Incorrect double value") => &[1265, 1366],
                    3140 => &[3140, 4025],
                    _ => std::slice::from_ref(&code),
                };
                // UPDATE IGNORE does not warn of keys that collide, and of two constraints that a row breaks of one.
                let sets_key = |table: &Table| match e.change() {
                    Statement::Update { set, .. } => set.iter().any(|(place, _)| match place {
                        Expr::Column { name, .. } => table.is_unique_part(name),
                        _ => false,
                    }),
                    _ => false,
                };
                let collides = code == 1062 && e.schema.tables.iter().any(sets_key);
                let is_related = e.schema.tables.iter().any(|table| !table.foreign.is_empty());
                let breaks_two = one == 1062 && matches!(code, 1451 | 1452) && is_related;
                collides || breaks_two || warned.iter().any(|warned| as_warned.contains(warned))
            }
            _ => false,
        }),
    },
    Kind {
        // Whether a row whose expression fails is met, depends on the order in which conditions and tables are taken.
        // MariaDB also fails in what it computes from an aggregate before there is a row. A DELETE of several tables fails
        // where the plan comes to a parent before the child that goes too, or before the parent whose cascade deletes what
        // refers to both, or counts the child's row as the cascade's. A recursive table that no row is asked of may not be
        // computed.
        name: "an error of a row that a plan may not meet",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/where-optimization.html",
        test: Test::Answers(|e| match e.category {
            Category::Code(0, 1451) | Category::Code(1451, 0) => deletes_in_an_open_order(e),
            Category::Affected => deletes_in_an_open_order(e) && e.same_contents_by(Cell::clone),
            Category::Warnings => is_cut(e.statement) && RUNTIME_ERRORS.iter().any(|code| may_be_left_out(e, *code)),
            Category::Code(0, code) => may_be_left_out(e, code) || is_unread_recursion(e, code),
            Category::Code(code, 0) => may_be_left_out(e, code) || places::may_fail_before_rows(e.statement, code),
            Category::Code(one, other) => {
                // The other one is met after it, or is one of what is stored.
                let is_other = |code| RUNTIME_ERRORS.contains(&code) || DATA_ERRORS.contains(&code);
                let is_early = places::may_fail_before_rows(e.statement, one);
                let are_of_rows = RUNTIME_ERRORS.contains(&one) && RUNTIME_ERRORS.contains(&other);
                (may_be_left_out(e, one) || is_early) && is_other(other)
                    || may_be_left_out(e, other) && is_other(one)
                    || are_of_rows && [one, other].iter().all(|code| e.any(|expr| places::may_fail(expr, *code)))
            }
            _ => false,
        }),
    },
    Kind {
        // In MySQL no subquery of a change reads the table that is changed, however deep it stands; in MariaDB some
        // may. 1443 is the same through a view. Common tables that stand before a change are computed once; where they
        // are read, as MariaDB is asked, it may compute them again when rows are gone.
        name: "a subquery that reads the changed table",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/subquery-errors.html",
        test: Test::Answers(|e| match e.category {
            Category::Code(_, 1093 | 1443) => reads_target(e),
            Category::Affected | Category::Contents => e.names.has_common_in_place() && reads_target(e),
            _ => false,
        }),
    },
    Kind {
        // Where several places of a statement mix collations, which is bound first is not told; nor is it when MariaDB has
        // computed constants before it has bound the rest.
        name: "which of several mixes of collations",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/charset-collation-coercibility.html",
        test: Test::Answers(|e| match e.category {
            Category::Code(one, other) => {
                let is_mix = |code| matches!(code, 1253 | 1267 | 1270 | 1271);
                let is_constant = RUNTIME_ERRORS.contains(&one) && places::may_fail_before_rows(e.statement, one);
                is_mix(other) && (is_mix(one) || is_constant)
            }
            _ => false,
        }),
    },
    Kind {
        // MariaDB does not find a table of a WITH around a nested one, nor a column around a set operation in a set
        // operation; a view keeps a key of ROLLUP without the name of its table. What is named is there, and named with
        // its table: the generator names nothing else.
        name: "names that MariaDB does not find",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/with.html",
        test: Test::Answers(|e| match e.category {
            Category::Code(1146 | 1054, code) if code != 1146 && code != 1054 => {
                let message = e.reference_message();
                let name = message.split('\'').nth(1).unwrap_or_default();
                let (first, second) = name.rsplit_once('.').unwrap_or(("", name));
                e.names.is_common_table(second) || e.names.is_alias(first)
            }
            Category::Code(1052, code) if code != 1052 => e.has(Feature::View) && e.has(Feature::Rollup),
            _ => false,
        }),
    },
    Kind {
        // IGNORE leaves out rows that a CHECK or a view's CHECK OPTION refuses; MariaDB's INSERT of one row is refused.
        // A row that a foreign key refuses is not changed; MariaDB counts it in an UPDATE of several tables, and does not
        // count the rows before it in a DELETE. A row that ON DUPLICATE KEY UPDATE sets to what it is, is not written, and so
        // not checked in MySQL 8 (insert-on-duplicate.html counts 0 rows); MariaDB refuses it where it is none of the view's.
        name: "IGNORE and checks",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/sql-mode.html#ignore-effect-on-execution",
        test: Test::Answers(|e| match e.category {
            Category::Code(1369, 0) if e.has(Feature::OnDuplicate) && writes_nothing(&e.answers.rauk) => true,
            Category::Code(1369 | 4025, 0) => e.has(Feature::Ignore),
            Category::Affected => {
                let counted = |outcome: &Outcome| match outcome {
                    Outcome::Done { affected, .. } => *affected,
                    _ => 0,
                };
                let (one, other) = (counted(&e.answers.reference), counted(&e.answers.rauk));
                let is_meant = match e.change() {
                    Statement::Delete { targets, .. } => !targets.is_empty() && other > one,
                    _ => e.has(Feature::UpdateJoin) && other < one,
                };
                e.has(Feature::Ignore) && is_meant && e.names.has_foreign_keys() && e.same_contents_by(Cell::clone)
            }
            _ => false,
        }),
    },
    Kind {
        // A recursive table's columns are of the types of its first part. That of a literal is wider in MySQL, and
        // MariaDB has a width for what a BIT gives.
        name: "how wide a column of a recursive table is",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/with.html#common-table-expressions-recursive",
        test: Test::Answers(|e| {
            let named = e.reference_message().split('\'').nth(1).unwrap_or_default().to_string();
            matches!(e.category, Category::Code(1264 | 1406, _)) && e.names.is_recursive_column(&named)
        }),
    },
    Kind {
        // ROUND of a whole number is one of the same type, which it may leave; MariaDB makes it a DECIMAL.
        name: "ROUND that leaves its type",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/mathematical-functions.html#function_round",
        test: Test::Answers(|e| {
            let is_round = e.rauk_message().split('\'').nth(1).is_some_and(|expr| expr.starts_with("round("));
            match e.category {
                Category::Code(0, 1690) => is_round,
                // Another value is wrong too.
                Category::Code(one, 1690) => is_round && are_data_errors(one, 1690),
                _ => false,
            }
        }),
    },
];

/// Of what is stored, and of what is computed for it.
const DATA_ERRORS: &[u16] = &[
    1048, 1062, 1264, 1265, 1292, 1364, 1365, 1366, 1369, 1406, 1411, 1441, 1451, 1452, 1690, 1761, 1242, 3020, 3140,
    3819, 4025,
];

/// Errors in a strict change that are warnings elsewhere.
const STRICT_ERRORS: &[u16] = &[1264, 1265, 1292, 1365, 1366, 1411, 1441];

/// Out of range (1916 is MariaDB's own), division, wrong value, more than one row of a subquery.
const RUNTIME_ERRORS: &[u16] = &[1690, 1916, 1365, 1264, 1292, 1242, 1441];

/// Both are errors of data: which of them is found first is open.
pub fn are_data_errors(one: u16, other: u16) -> bool {
    DATA_ERRORS.contains(&one) && DATA_ERRORS.contains(&other)
}

/// Rows of two tables go, of which one refers to the other; or rows to which others refer by a key that takes them along
/// and by one that does not.
fn deletes_in_an_open_order(e: &Evidence<'_>) -> bool {
    let Statement::Delete { targets, from: from @ From::Join { .. }, .. } = e.statement else { return false };
    let mut deleted: Vec<String> = Vec::new();
    let mut note = |from: &From| {
        if let From::Table { name, alias, .. } = from
            && targets.contains(alias)
        {
            deleted.push(name.clone());
        }
    };
    for_each_table(from, &mut note);
    let takes_along = |foreign: &Foreign| matches!(foreign.on_delete, "CASCADE" | "SET NULL");
    e.schema.tables.iter().any(|table| {
        let keys: Vec<&Foreign> = table.foreign.iter().filter(|foreign| deleted.contains(&foreign.parent)).collect();
        let along = keys.iter().filter(|foreign| takes_along(foreign)).count();
        !keys.is_empty() && deleted.contains(&table.name) || along > 0 && along < keys.len()
    })
}

fn for_each_table(from: &From, visit: &mut dyn FnMut(&From)) {
    match from {
        From::Join { left, right, .. } => {
            for_each_table(left, visit);
            for_each_table(right, visit);
        }
        table => visit(table),
    }
}

/// Rows that the result leaves out may be computed, and warn.
fn is_cut(statement: &Statement) -> bool {
    let (Statement::Query(query) | Statement::View { query, .. }) = statement else { return false };
    query.limit.is_some_and(|(skipped, count)| skipped > 0 || count == 0)
}

/// A plan may leave out what fails in this way.
fn may_be_left_out(e: &Evidence<'_>, code: u16) -> bool {
    RUNTIME_ERRORS.contains(&code) && places::may_be_left_out(e.statement, code)
}

/// What a recursive table computes does not fit its column, and MariaDB has found that there is no row without it.
fn is_unread_recursion(e: &Evidence<'_>, code: u16) -> bool {
    let column = e.rauk_message().split('\'').nth(1).unwrap_or_default();
    let is_empty = matches!(&e.answers.reference, Outcome::Rows { rows, .. } if rows.is_empty());
    matches!(code, 1264 | 1406) && e.names.is_recursive_column(column) && is_empty
}

/// A table in a subquery, or in a view or derived table, is one that is changed.
fn reads_target(e: &Evidence<'_>) -> bool {
    let targets: Vec<String> = match e.change() {
        Statement::Update { from, .. } | Statement::Delete { from, .. } => named(from),
        Statement::Insert { table, .. } => vec![table.clone()],
        _ => Vec::new(),
    };
    let through = e.target().map(|table| table.name.clone());
    let targets: Vec<String> = targets.into_iter().chain(through).collect();
    let mut found = false;
    walk(e.statement, &mut |node| {
        let mut read = |from: &Option<From>| {
            found |= from.iter().flat_map(named).any(|name| targets.contains(&name));
        };
        if let Node::Select(select) = node {
            read(&select.from);
        }
    });
    found
}

/// The tables of a FROM.
fn named(from: &From) -> Vec<String> {
    match from {
        From::Table { name, .. } => vec![name.clone()],
        From::Derived { .. } => Vec::new(),
        From::Join { left, right, .. } => [named(left), named(right)].concat(),
    }
}

/// A change of no row.
fn writes_nothing(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Done { affected: 0, .. })
}
