//! What a predicate looks at: the statement, both answers, and what its names stand for.

use super::names::{Names, items};
use crate::compare::{self, Category, Cell};
use crate::run::Answers;
use crate::run::outcome::{Family, Outcome, Row};
use crate::schema::{Column, Schema, Table};
use crate::tree::feature::{Feature, Features};
use crate::tree::visit::{Node, walk};
use crate::tree::{Body, Expr, Item, Query, Source, Statement};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

pub struct Evidence<'a> {
    pub statement: &'a Statement,
    pub features: Features,
    pub category: Category,
    pub answers: &'a Answers,
    pub schema: &'a Schema,
    pub names: &'a Names<'a>,
}

impl<'a> Evidence<'a> {
    pub fn new(
        statement: &'a Statement,
        category: Category,
        answers: &'a Answers,
        schema: &'a Schema,
        names: &'a Names<'a>,
    ) -> Evidence<'a> {
        Evidence { statement, features: Features::of(statement), category, answers, schema, names }
    }

    pub fn has(&self, feature: Feature) -> bool {
        self.features.has(feature)
    }

    pub fn is_change(&self) -> bool {
        !matches!(self.statement, Statement::Query(_) | Statement::View { .. })
    }

    /// The change itself, if it goes through a view.
    pub fn change(&self) -> &Statement {
        match self.statement {
            Statement::ThroughView { change, .. } => change,
            other => other,
        }
    }

    /// An expression of this kind stands somewhere.
    pub fn any(&self, of: impl Fn(&Expr) -> bool) -> bool {
        let mut found = false;
        walk(self.statement, &mut |node| {
            if let Node::Expr(expr) = node {
                found |= of(expr);
            }
        });
        found
    }

    /// What gives a column of the result, or of the changed table, one expression for each part of a set operation.
    pub fn shown(&self, at: usize) -> Vec<Expr> {
        if self.category == Category::Contents {
            return self.stored(at);
        }
        // What is given back of a column is what is put into it.
        let of = |returning: &[Item]| match returning.get(at).map(|item| &item.expr) {
            Some(expr @ Expr::Column { name, .. }) => [vec![expr.clone()], self.stored_in(name)].concat(),
            other => other.cloned().into_iter().collect(),
        };
        match self.change() {
            Statement::Query(query) | Statement::View { query, .. } => items(query, at),
            Statement::Insert { returning, .. } | Statement::Delete { returning, .. } => of(returning),
            _ => Vec::new(),
        }
    }

    /// What a change puts into a column of its table, and into those that it is computed from.
    fn stored(&self, at: usize) -> Vec<Expr> {
        let Some(table) = self.target() else { return Vec::new() };
        let Some(column) = table.columns.get(at) else { return Vec::new() };
        let read = table.columns.iter().filter(|other| column.reads(&other.name));
        [column].into_iter().chain(read).flat_map(|column| self.stored_in(&column.name)).collect()
    }

    /// What is stored in this column is computed from others of its table.
    pub fn is_generated(&self, at: usize) -> bool {
        let column = self.target().and_then(|table| table.columns.get(at));
        self.category == Category::Contents && column.is_some_and(|column| column.generated.is_some())
    }

    fn stored_in(&self, name: &str) -> Vec<Expr> {
        match self.change() {
            Statement::Insert { columns, source, .. } => {
                let Some(place) = columns.iter().position(|column| column == name) else { return Vec::new() };
                match source {
                    Source::Query(query) => items(query, place),
                    Source::Rows(rows) => rows.iter().filter_map(|row| row.get(place).cloned()).collect(),
                }
            }
            Statement::Update { set, .. } => {
                let is_named = |place: &Expr| matches!(place, Expr::Column { name: own, .. } if own == name);
                set.iter().filter(|(place, _)| is_named(place)).map(|(_, value)| value.clone()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// An expression of this kind is in what a column of the result is computed from.
    pub fn shows(&self, at: usize, of: &dyn Fn(&Expr) -> bool) -> bool {
        self.shown(at).iter().any(|expr| self.names.has(expr, of))
    }

    /// A column of the tables of this kind is in what a column of the result is computed from.
    pub fn shows_column(&self, at: usize, of: &dyn Fn(&Column) -> bool) -> bool {
        self.shown(at).iter().any(|expr| self.names.reads(expr, of))
    }

    /// The tables after the change are the same when their values are shown in another way.
    pub fn same_contents_by(&self, shown: impl Fn(&Cell) -> Cell) -> bool {
        let same = |a: &Outcome, b: &Outcome| compare::same_rows_by(a, b, |_, cell| shown(cell));
        self.answers.contents.iter().all(|(_, a, b)| same(a, b))
    }

    pub fn rauk(&self) -> &[Row] {
        self.answers.rauk.rows().unwrap_or_default()
    }

    pub fn reference(&self) -> &[Row] {
        self.answers.reference.rows().unwrap_or_default()
    }

    /// What MariaDB said to it, if that was an error.
    pub fn reference_message(&self) -> &str {
        message(&self.answers.reference)
    }

    pub fn rauk_message(&self) -> &str {
        message(&self.answers.rauk)
    }

    /// The columns that differ in the family of their type: number, MariaDB's, Rauk's.
    pub fn differing(&self) -> Vec<(usize, Family, Family)> {
        let families = |outcome: &Outcome| match outcome {
            Outcome::Rows { columns, .. } => columns.iter().map(|c| c.family).collect::<Vec<_>>(),
            _ => Vec::new(),
        };
        let pairs = families(&self.answers.reference).into_iter().zip(families(&self.answers.rauk));
        pairs.enumerate().filter(|(_, (a, b))| a != b).map(|(at, (a, b))| (at, a, b)).collect()
    }

    /// A literal, or what is nothing else.
    pub fn has_null(&self) -> bool {
        self.any(is_null)
    }

    /// The table that an INSERT, REPLACE, UPDATE or DELETE of one table names.
    pub fn target(&self) -> Option<&'a Table> {
        self.names.target()
    }
}

fn message(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Error { message, .. } => message,
        _ => "",
    }
}

pub fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal { text, .. } if text == "NULL")
}

/// The expression is a form that begins so.
pub fn begins(expr: &Expr, with: &[&str]) -> bool {
    matches!(expr, Expr::Form { form, .. } if with.iter().any(|start| form.starts_with(start)))
}

/// Different rows that are compared each with each at most.
const PAIRED: usize = 8000;

impl Evidence<'_> {
    /// Every row of MariaDB's has a row of Rauk's whose values are the same, or go with each other.
    pub fn rows_go(&self, go: &dyn Fn(usize, &Cell, &Cell) -> bool) -> bool {
        let Outcome::Rows { columns, .. } = &self.answers.rauk else { return false };
        let is_double = |at: usize| columns.get(at).is_some_and(|column| column.family == Family::Double);
        let go = |at: usize, a: &Cell, b: &Cell| is_double(at) && compare::close(number(a), number(b)) || go(at, a, b);
        let (a, b) = (self.reference(), self.rauk());
        self.category == Category::Rows && (rows_go(a, b, &go) || self.is_distinct() && merged_rows_go(a, b, &go))
    }

    /// Rows of the result, or of one of its parts, that are the same are one.
    fn is_distinct(&self) -> bool {
        fn merges(query: &Query) -> bool {
            query.limit.is_none()
                && match &query.body {
                    Body::Select(select) => select.distinct,
                    Body::Set { operator, left, right } => !operator.ends_with("ALL") || merges(left) || merges(right),
                    _ => false,
                }
        }
        let (Statement::Query(query) | Statement::View { query, .. }) = self.statement else { return false };
        merges(query)
    }

    /// The same of the tables after a change, by the number of the column.
    pub fn stored_go(&self, go: &dyn Fn(usize, &Cell, &Cell) -> bool) -> bool {
        self.category == Category::Contents
            && self.answers.contents.iter().all(|(_, a, b)| match (a.rows(), b.rows()) {
                (Some(a), Some(b)) => rows_go(a, b, go),
                _ => false,
            })
    }

    /// The tables after a change are not the same, but their values go with each other: by the table and the number of
    /// the column. Where they make rows the same, there may be one of several.
    pub fn tables_go(&self, go: &dyn Fn(&Table, usize, &Cell, &Cell) -> bool) -> bool {
        let mut contents = self.answers.contents.iter().filter(|(_, a, b)| !compare::same_rows(a, b)).peekable();
        contents.peek().is_some()
            && contents.all(|(name, a, b)| match (self.schema.table(name), a.rows(), b.rows()) {
                (Some(table), Some(a), Some(b)) => {
                    let go = |at: usize, x: &Cell, y: &Cell| go(table, at, x, y);
                    rows_go(a, b, &go) || merged_rows_go(a, b, &go)
                }
                _ => false,
            })
    }
}

/// What is asked of two values of a column, once: rows are compared each with each, and have few different values.
struct Asked<'a> {
    go: &'a dyn Fn(usize, &Cell, &Cell) -> bool,
    answers: RefCell<HashMap<(usize, &'a Cell, &'a Cell), bool>>,
}

impl<'a> Asked<'a> {
    fn new(go: &'a dyn Fn(usize, &Cell, &Cell) -> bool) -> Asked<'a> {
        Asked { go, answers: RefCell::default() }
    }

    /// The values of the two rows are the same, or go with each other.
    fn same(&self, a: &'a Row, b: &'a Row) -> bool {
        let goes = |at, x, y| *self.answers.borrow_mut().entry((at, x, y)).or_insert_with(|| (self.go)(at, x, y));
        a.len() == b.len() && a.iter().zip(b).enumerate().all(|(at, (x, y))| x == y || goes(at, x, y))
    }
}

/// Each row of either side has one on the other side: what differs in its last digits is merged by one of them.
fn merged_rows_go(reference: &[Row], rauk: &[Row], go: &dyn Fn(usize, &Cell, &Cell) -> bool) -> bool {
    let asked = Asked::new(go);
    let (reference, rauk) = (counted(reference), counted(rauk));
    reference.len().max(rauk.len()) <= PAIRED
        && reference.keys().all(|a| rauk.keys().any(|b| asked.same(a, b)))
        && rauk.keys().all(|b| reference.keys().any(|a| asked.same(a, b)))
}

fn rows_go(reference: &[Row], rauk: &[Row], go: &dyn Fn(usize, &Cell, &Cell) -> bool) -> bool {
    if reference.len() != rauk.len() {
        return false;
    }
    let (mut others, mut left) = (counted(reference), counted(rauk));
    // Rows that are the same find each other first, so that none takes the partner of another one.
    for (row, count) in &mut others {
        if let Some(same) = left.get_mut(row) {
            let both = *count.min(same);
            *count -= both;
            *same -= both;
        }
    }
    others.retain(|_, count| *count > 0);
    left.retain(|_, count| *count > 0);
    let asked = Asked::new(go);
    others.len().max(left.len()) <= PAIRED
        && others.into_iter().all(|(row, mut count)| {
            // Of several that it goes with, the nearest.
            let mut going: Vec<(&Row, &mut usize)> = left
                .iter_mut()
                .filter(|(other, count)| **count > 0 && asked.same(row, other))
                .map(|(r, c)| (*r, c))
                .collect();
            going.sort_by(|(a, _), (b, _)| distance(row, a).total_cmp(&distance(row, b)));
            for (_, others) in going {
                let both = count.min(*others);
                count -= both;
                *others -= both;
            }
            count == 0
        })
}

/// Rows that are the same are one, with their number.
fn counted(rows: &[Row]) -> BTreeMap<&Row, usize> {
    let mut counts = BTreeMap::new();
    for row in rows {
        *counts.entry(row).or_default() += 1;
    }
    counts
}

/// How far the numbers of two rows are from each other.
fn distance(row: &Row, other: &Row) -> f64 {
    let cells = row.iter().zip(other).filter_map(|(a, b)| Some((number(a)? - number(b)?).abs()));
    cells.filter(|distance| distance.is_finite()).sum()
}

pub fn number(cell: &Cell) -> Option<f64> {
    std::str::from_utf8(cell.as_ref()?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_find_those_that_they_go_with() {
        let rows = |cells: &[&str]| cells.iter().map(|cell| vec![Some(cell.as_bytes().to_vec())]).collect::<Vec<Row>>();
        let near =
            |_: usize, a: &Cell, b: &Cell| matches!((number(a), number(b)), (Some(a), Some(b)) if (a - b).abs() <= 1.0);
        let go = |a: &[&str], b: &[&str]| rows_go(&rows(a), &rows(b), &near);
        assert!(go(&["2", "2", "2", "9"], &["9", "2", "3", "2"]));
        assert!(!go(&["1", "1", "9"], &["1", "9", "9"]));
        assert!(!go(&["1"], &["1", "1"]));
        // As many as there may be in a product of tables.
        assert!(go(&["1"; 20_000], &["2"; 20_000]));
        assert!(!go(&["1"; 20_000], &["3"; 20_000]));
        assert!(merged_rows_go(&rows(&["1", "2", "2"]), &rows(&["2", "3"]), &near));
        assert!(!merged_rows_go(&rows(&["1", "2"]), &rows(&["2", "4"]), &near));
    }
}
