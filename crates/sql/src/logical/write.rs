//! Statements that change rows of one table.

use super::{Query, Scan, SortKey};
use crate::expr::{ColumnId, Expr};
use rauk_node::TableHandle;

pub(crate) enum Write {
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
}

/// What an INSERT writes into a column that its list leaves out.
pub(crate) enum Fill {
    Value(Expr),
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
    /// One a column of the schema.
    pub fill: Vec<Fill>,
    pub on_duplicate: OnDuplicate,
    pub ignore: bool,
    /// ON DUPLICATE KEY UPDATE.
    pub update: Vec<SetColumn>,
    /// Whether VALUES expressions read columns: the row is then filled with defaults before they are evaluated.
    pub reads_row: bool,
}

/// The rows of one table that a statement changes.
pub(crate) struct Target {
    pub scan: Scan,
    /// WHERE.
    pub conditions: Vec<Expr>,
    pub order: Vec<SortKey>,
    pub limit: Option<Expr>,
}

pub(crate) struct Update {
    pub target: Target,
    pub set: Vec<SetColumn>,
}

pub(crate) struct Delete {
    pub target: Target,
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
                if let InsertSource::Rows(rows) = &insert.source {
                    rows.iter().flatten().flatten().for_each(&mut *visit);
                }
                for fill in &insert.fill {
                    if let Fill::Value(expr) = fill {
                        visit(expr);
                    }
                }
                insert.update.iter().filter_map(|set| set.value.as_ref()).for_each(visit);
            }
            Write::Update(update) => {
                target(&update.target, visit);
                update.set.iter().filter_map(|set| set.value.as_ref()).for_each(visit);
            }
            Write::Delete(delete) => target(&delete.target, visit),
        }
    }

    /// The columns in reach of those expressions.
    pub fn columns(&self) -> Vec<ColumnId> {
        match self {
            Write::Insert(insert) => insert.existing.iter().chain(&insert.inserted).copied().collect(),
            Write::Update(update) => update.target.scan.columns.clone(),
            Write::Delete(delete) => delete.target.scan.columns.clone(),
        }
    }
}
