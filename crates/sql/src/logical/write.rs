//! Statements that change rows.
//!
//! An UPDATE or DELETE of one table whose condition needs no other rows is [`Update`] or [`Delete`]: a scan that locks, and what happens to its rows.
//! Every other one is a [`Change`]: a query gives the rows to be changed, and they are locked and changed when it has ended.

use super::{FileRows, Query, Scan, SortKey};
use crate::expr::{ColumnId, Expr};
use rauk_node::TableHandle;
use std::sync::Arc;

pub(crate) enum Write {
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    Change(Box<Change>),
}

/// UPDATE or DELETE of the rows that a query gives: of several tables, or of rows that correlated subqueries choose.
pub(crate) struct Change {
    /// UPDATE; else DELETE.
    pub update: bool,
    pub ignore: bool,
    /// Gives all columns of each changed table, and then the other columns that assignments read.
    pub rows: Query,
    pub targets: Vec<ChangeTarget>,
    /// RETURNING, of the only target.
    pub returning: Vec<Expr>,
}

/// A table that a [`Change`] changes, under one of its aliases.
pub(crate) struct ChangeTarget {
    pub table: TableHandle,
    pub alias: String,
    /// Columns of `rows`, one a column of the schema.
    pub columns: Vec<ColumnId>,
    /// Columns of `rows`: the others that its assignments read.
    pub inputs: Vec<ColumnId>,
    pub set: Vec<SetColumn>,
    pub check: Option<RowCheck>,
    pub rules: Option<Arc<RowRules>>,
}

/// WITH CHECK OPTION: what a row must be that is written through a view.
#[derive(Clone)]
pub(crate) struct RowCheck {
    /// Database and name of the view.
    pub view: String,
    pub conditions: Vec<Expr>,
}

/// What a table's definition asks of each row that is written: bound to the row as table 0.
#[derive(Default)]
pub(crate) struct RowRules {
    /// Positions and values of generated columns, in the order in which they are computed.
    pub generated: Vec<(usize, Expr)>,
    /// Names and conditions of the CHECK constraints that are enforced.
    pub checks: Vec<(String, Expr)>,
}

/// What an INSERT writes into a column that its list leaves out.
pub(crate) enum Fill {
    Value(Expr),
    /// A default that reads the row, bound to it as table 0. It is computed when all given values are there.
    Computed(Expr),
    /// NOT NULL without a default (1364, or the type's zero outside of strict mode).
    Missing,
    AutoIncrement,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnDuplicate {
    Error,
    /// IGNORE: a warning instead.
    Skip,
    Update,
    Replace,
}

/// `column = expression`.
pub(crate) struct SetColumn {
    /// Its position in the schema.
    pub column: usize,
    /// `None`: DEFAULT of a column without one (1364).
    pub value: Option<Expr>,
}

pub(crate) enum InsertSource {
    /// One expression a listed column; `None` is DEFAULT.
    Rows(Vec<Vec<Option<Expr>>>),
    Query(Query),
    File(FileRows),
}

pub(crate) struct Insert {
    pub table: TableHandle,
    /// One a column of the schema: of the row in the way, and in VALUES of the row as far as it is filled.
    pub existing: Vec<ColumnId>,
    /// Of the row that was to be inserted, for ON DUPLICATE KEY UPDATE.
    pub inserted: Vec<ColumnId>,
    /// Positions of the columns that the source gives, in its order.
    pub columns: Vec<usize>,
    pub source: InsertSource,
    /// Positions of the generated columns whose values VALUES gives and nobody takes: one a value, row by row.
    pub ignored: Vec<usize>,
    /// One a column of the schema.
    pub fill: Vec<Fill>,
    pub on_duplicate: OnDuplicate,
    pub ignore: bool,
    /// ON DUPLICATE KEY UPDATE.
    pub update: Vec<SetColumn>,
    /// Whether VALUES expressions read columns: the row is then filled with defaults before they are evaluated.
    pub reads_row: bool,
    /// What ON DUPLICATE KEY UPDATE reads of the tables of SELECT: columns of the query behind those that are inserted.
    pub inputs: Vec<ColumnId>,
    /// RETURNING: reads `existing`.
    pub returning: Vec<Expr>,
    /// Reads `existing`.
    pub check: Option<RowCheck>,
    pub rules: Option<Arc<RowRules>>,
}

/// The rows of one table that a statement changes.
pub(crate) struct Target {
    pub scan: Scan,
    /// WHERE.
    pub conditions: Vec<Expr>,
    pub order: Vec<SortKey>,
    pub limit: Option<Expr>,
    pub ignore: bool,
}

pub(crate) struct Update {
    pub target: Target,
    pub set: Vec<SetColumn>,
    pub check: Option<RowCheck>,
    pub rules: Option<Arc<RowRules>>,
}

pub(crate) struct Delete {
    pub target: Target,
    /// RETURNING.
    pub returning: Vec<Expr>,
}

impl Write {
    /// Calls `visit` on every expression of the statement itself.
    pub fn for_each_expr<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        let target = |target: &'a Target, visit: &mut dyn FnMut(&'a Expr)| {
            target.conditions.iter().for_each(&mut *visit);
            target.order.iter().for_each(|key| visit(&key.expr));
            target.limit.iter().for_each(&mut *visit);
        };
        match self {
            Write::Insert(insert) => {
                match &insert.source {
                    InsertSource::Rows(rows) => rows.iter().flatten().flatten().for_each(&mut *visit),
                    InsertSource::File(file) => {
                        file.set.iter().filter_map(|set| set.value.as_ref()).for_each(&mut *visit);
                    }
                    InsertSource::Query(_) => {}
                }
                for fill in &insert.fill {
                    if let Fill::Value(expr) = fill {
                        visit(expr);
                    }
                }
                insert.update.iter().filter_map(|set| set.value.as_ref()).for_each(&mut *visit);
                insert.returning.iter().for_each(&mut *visit);
                insert.check.iter().flat_map(|check| &check.conditions).for_each(visit);
            }
            Write::Update(update) => {
                target(&update.target, visit);
                update.set.iter().filter_map(|set| set.value.as_ref()).for_each(&mut *visit);
                update.check.iter().flat_map(|check| &check.conditions).for_each(visit);
            }
            Write::Delete(delete) => {
                target(&delete.target, visit);
                delete.returning.iter().for_each(visit);
            }
            Write::Change(change) => {
                let set = change.targets.iter().flat_map(|target| &target.set);
                set.filter_map(|set| set.value.as_ref()).for_each(&mut *visit);
                let checks = change.targets.iter().filter_map(|target| target.check.as_ref());
                checks.flat_map(|check| &check.conditions).for_each(&mut *visit);
                change.returning.iter().for_each(visit);
            }
        }
    }

    /// The columns in reach of those expressions.
    pub fn columns(&self) -> Vec<ColumnId> {
        match self {
            Write::Insert(insert) => {
                insert.existing.iter().chain(&insert.inserted).chain(&insert.inputs).copied().collect()
            }
            Write::Update(update) => update.target.scan.columns.clone(),
            Write::Delete(delete) => delete.target.scan.columns.clone(),
            Write::Change(change) => change.rows.columns.clone(),
        }
    }

    /// The query that gives the rows of an INSERT, or those that are changed.
    pub fn query(&self) -> Option<&Query> {
        match self {
            Write::Insert(insert) => match &insert.source {
                InsertSource::Query(query) => Some(query),
                InsertSource::Rows(_) | InsertSource::File(_) => None,
            },
            Write::Change(change) => Some(&change.rows),
            Write::Update(_) | Write::Delete(_) => None,
        }
    }

    pub fn query_mut(&mut self) -> Option<&mut Query> {
        match self {
            Write::Insert(insert) => match &mut insert.source {
                InsertSource::Query(query) => Some(query),
                InsertSource::Rows(_) | InsertSource::File(_) => None,
            },
            Write::Change(change) => Some(&mut change.rows),
            Write::Update(_) | Write::Delete(_) => None,
        }
    }
}
