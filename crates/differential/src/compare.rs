//! When two answers are the same.
//!
//! Rows are compared as multisets, and the columns that the ORDER BY names as sequences. Doubles are compared with a
//! tolerance (their last digits depend on the order of a sum); everything else byte by byte. The families of the
//! columns' types are compared, not the types: MySQL 8 and MariaDB differ in widths.

use crate::run::outcome::{Family, Outcome, Row};
use crate::tree::visit::{Node, walk};
use crate::tree::{Body, Expr, Query, Source, Statement};

/// What differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Category {
    /// Codes of the two, 0 for success.
    Code(u16, u16),
    Rows,
    Order,
    Types,
    Affected,
    Warnings,
    /// The tables after a change.
    Contents,
    /// Rauk closed the connection or gave no answer.
    Lost,
    /// A metamorphic check of this name.
    Metamorphic(&'static str),
}

impl std::fmt::Display for Category {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Category::Code(reference, rauk) => {
                let shown = |code: &u16| if *code == 0 { "success".to_string() } else { format!("error {code}") };
                write!(f, "{} on MariaDB, {} on Rauk", shown(reference), shown(rauk))
            }
            Category::Metamorphic(name) => write!(f, "Rauk against itself: {name}"),
            other => write!(f, "{}", format!("{other:?}").to_lowercase()),
        }
    }
}

/// Relative.
const TOLERANCE: f64 = 1e-9;

pub fn outcomes(statement: &Statement, reference: &Outcome, rauk: &Outcome) -> Option<Category> {
    if let Some(category) = codes(reference, rauk) {
        return Some(category);
    }
    match (reference, rauk) {
        (Outcome::Rows { columns: a, warnings: v, .. }, Outcome::Rows { columns: b, warnings: w, .. }) => {
            if !same_rows(reference, rauk) {
                return Some(Category::Rows);
            }
            if !same_order(statement, reference, rauk) {
                return Some(Category::Order);
            }
            let families =
                |columns: &[crate::run::outcome::Column]| columns.iter().map(|c| c.family).collect::<Vec<_>>();
            if families(a) != families(b) {
                return Some(Category::Types);
            }
            // A constant may be computed twice, with a warning each time.
            (has_fixed_warnings(statement) && (*v > 0) != (*w > 0)).then_some(Category::Warnings)
        }
        (Outcome::Done { affected: a, warnings: v }, Outcome::Done { affected: b, warnings: w }) => {
            if a != b {
                return Some(Category::Affected);
            }
            (has_fixed_warnings(statement) && v != w).then_some(Category::Warnings)
        }
        _ => None,
    }
}

/// Success, or which error.
pub fn codes(reference: &Outcome, rauk: &Outcome) -> Option<Category> {
    match (reference, rauk) {
        (_, Outcome::Lost(_)) => Some(Category::Lost),
        (Outcome::Lost(_), _) => None,
        _ => {
            let (a, b) = (reference.error_code().unwrap_or(0), rauk.error_code().unwrap_or(0));
            // A CHECK that does not hold.
            (a != b && (a, b) != (4025, 3819)).then_some(Category::Code(a, b))
        }
    }
}

/// The same rows, in any order.
pub fn same_rows(a: &Outcome, b: &Outcome) -> bool {
    same_rows_by(a, b, |_, cell| cell.clone())
}

/// The same rows when text that differs by case, accent or trailing spaces counts as the same.
pub fn same_folded_rows(a: &Outcome, b: &Outcome) -> bool {
    same_rows_by(a, b, |_, cell| cell.as_ref().map(|bytes| fold(bytes)))
}

/// `None` is NULL.
pub type Cell = Option<Vec<u8>>;

/// The same rows when each value is shown in this way; values are told by the number of their column.
pub fn same_rows_by(a: &Outcome, b: &Outcome, shown: impl Fn(usize, &Cell) -> Cell) -> bool {
    let (Outcome::Rows { columns, rows: a, .. }, Outcome::Rows { columns: others, rows: b, .. }) = (a, b) else {
        return true;
    };
    if a.len() != b.len() || columns.len() != others.len() {
        return false;
    }
    let is_double: Vec<bool> =
        columns.iter().zip(others).map(|(x, y)| x.family == Family::Double || y.family == Family::Double).collect();
    let sorted = |rows: &[Row]| {
        let shown = |row: &Row| row.iter().enumerate().map(|(at, cell)| shown(at, cell)).collect();
        let mut rows: Vec<Row> = rows.iter().map(shown).collect();
        rows.sort();
        rows
    };
    let same_cell = |i: usize, x: &Cell, y: &Cell| x == y || is_double[i] && close(number(x), number(y));
    let same_row = |x: &Row, y: &Row| (0..x.len()).all(|i| same_cell(i, &x[i], &y[i]));
    let (a, mut b) = (sorted(a), sorted(b));
    if a.iter().zip(&b).all(|(x, y)| same_row(x, y)) {
        return true;
    }
    // A last digit of a double may have torn pairs of rows apart.
    is_double.contains(&true)
        && a.iter().all(|x| match b.iter().position(|y| same_row(x, y)) {
            Some(at) => {
                b.swap_remove(at);
                true
            }
            None => false,
        })
}

fn number(cell: &Cell) -> Option<f64> {
    std::str::from_utf8(cell.as_ref()?).ok()?.parse().ok()
}

/// Two doubles that differ in their last digits at most.
pub fn close(a: Option<f64>, b: Option<f64>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() <= TOLERANCE * a.abs().max(b.abs()).max(1e-6),
        _ => false,
    }
}

/// Case, accents of the generator's words, control characters (a BIT as text has them), trailing spaces.
pub fn fold(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes).to_lowercase().replace('é', "e");
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    text.trim_end_matches(' ').as_bytes().to_vec()
}

/// The columns of the result by which the ORDER BY begins, if it orders at all.
fn ordered_columns(query: &Query) -> Vec<usize> {
    let names = query.names();
    let place = |expr: &Expr| match expr {
        Expr::Column { table, name, .. } if table.is_empty() => names.iter().position(|n| n == name),
        _ => None,
    };
    query.order.iter().map_while(|key| place(&key.expr)).collect()
}

fn same_order(statement: &Statement, a: &Outcome, b: &Outcome) -> bool {
    let Statement::Query(query) = statement else { return true };
    let (Some(a), Some(b)) = (a.rows(), b.rows()) else { return true };
    let keys = ordered_columns(query);
    let same = |x: &Cell, y: &Cell| {
        let folded = |cell: &Cell| cell.as_ref().map(|bytes| fold(bytes));
        folded(x) == folded(y) || close(number(x), number(y))
    };
    a.iter().zip(b).all(|(x, y)| keys.iter().all(|key| same(&x[*key], &y[*key])))
}

/// How many warnings there are does not depend on a plan: nothing is read from a table.
fn has_fixed_warnings(statement: &Statement) -> bool {
    // Hints that fit nothing are warned about; MariaDB takes them for a comment. It warns of a negative number that is
    // cast to UNSIGNED, MySQL does not; and of the largest one where it is a DECIMAL that becomes an integer, as the
    // negative of the least one is.
    let is_least = |expr: &Expr| matches!(expr, Expr::Literal { text, .. } if text == "-9223372036854775808");
    let mut is_open = false;
    walk(statement, &mut |node| {
        is_open |= match node {
            Node::Select(select) => !select.hints.is_empty(),
            Node::Expr(Expr::Form { form: "(- {0})", arguments, .. }) => is_least(&arguments[0]),
            Node::Expr(Expr::Form { form, .. }) => form.contains(" AS UNSIGNED"),
            Node::Expr(Expr::Literal { text, .. }) => text == "18446744073709551615",
            _ => false,
        }
    });
    if is_open {
        return false;
    }
    match statement {
        Statement::Query(query) => {
            matches!(&query.body, Body::Select(select) if select.from.is_none()) && !has_query(statement)
        }
        Statement::Insert { source: Source::Rows(_), on_duplicate, .. } => {
            on_duplicate.is_empty() && !has_query(statement)
        }
        _ => false,
    }
}

fn has_query(statement: &Statement) -> bool {
    let mut found = false;
    walk(statement, &mut |node| found |= matches!(node, Node::Expr(Expr::Subquery { .. })));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::outcome::Column;

    fn rows(family: Family, cells: &[&str]) -> Outcome {
        let columns = vec![Column { family, decimals: 0 }];
        Outcome::Rows { columns, rows: cells.iter().map(|c| vec![Some(c.as_bytes().to_vec())]).collect(), warnings: 0 }
    }

    #[test]
    fn rows_are_a_multiset() {
        let text = |cells| rows(Family::Text, cells);
        assert!(same_rows(&text(&["a", "b", "a"]), &text(&["b", "a", "a"])));
        assert!(!same_rows(&text(&["a", "b", "a"]), &text(&["b", "a", "b"])));
        assert!(!same_rows(&text(&["a"]), &text(&["a", "a"])));
        assert!(!same_rows(&text(&["a"]), &text(&["A"])));
        assert!(same_folded_rows(&text(&["a", "É "]), &text(&["e", "A"])));
    }

    #[test]
    fn doubles_have_a_tolerance_and_decimals_have_none() {
        let one = ["0.30000000000000004", "2"];
        let other = ["2", "0.3"];
        assert!(same_rows(&rows(Family::Double, &one), &rows(Family::Double, &other)));
        assert!(!same_rows(&rows(Family::Decimal, &one), &rows(Family::Decimal, &other)));
        assert!(!same_rows(&rows(Family::Double, &["0.3"]), &rows(Family::Double, &["0.31"])));
        let near = ["-20380111", "-20380107.25"];
        assert!(same_rows(&rows(Family::Double, &near), &rows(Family::Double, &["-20380107.250000001", "-20380111"])));
        assert!(same_rows(&rows(Family::Double, &["-0"]), &rows(Family::Double, &["0"])));
    }

    #[test]
    fn errors_differ_by_their_codes() {
        let error = |code| Outcome::Error { code, message: String::new() };
        assert_eq!(codes(&error(1054), &error(1054)), None);
        assert_eq!(codes(&error(1054), &error(1064)), Some(Category::Code(1054, 1064)));
        assert_eq!(codes(&rows(Family::Text, &[]), &error(1064)), Some(Category::Code(0, 1064)));
        assert_eq!(codes(&error(1054), &Outcome::Lost("gone".into())), Some(Category::Lost));
    }
}
