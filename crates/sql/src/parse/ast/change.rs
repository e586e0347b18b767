//! INSERT, REPLACE, UPDATE, DELETE.

use super::{ColumnName, Expr, Hints, OrderItem, Query, SelectItem, TableName, TableReference, With};

#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    pub hints: Hints,
    /// REPLACE.
    pub replace: bool,
    pub ignore: bool,
    pub table: TableName,
    /// PARTITION (…).
    pub partitions: Vec<String>,
    /// The list behind the table; `None` when none was written, `()` is an empty one.
    pub columns: Option<Vec<ColumnName>>,
    pub source: InsertSource,
    /// `AS row (columns)`.
    pub row_alias: Option<RowAlias>,
    /// ON DUPLICATE KEY UPDATE.
    pub on_duplicate: Vec<Assignment>,
    pub returning: Vec<SelectItem>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum InsertSource {
    /// VALUES: one list a row; an empty list is a row of defaults.
    Values(Vec<Vec<Expr>>),
    /// `SET column = value, …`.
    Set(Vec<Assignment>),
    Query(Box<Query>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowAlias {
    pub name: String,
    /// Empty: the columns keep their names.
    pub columns: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    pub column: ColumnName,
    pub value: Expr,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    pub hints: Hints,
    pub with: Option<With>,
    pub ignore: bool,
    pub tables: Vec<TableReference>,
    pub assignments: Vec<Assignment>,
    /// WHERE.
    pub filter: Option<Expr>,
    pub order_by: Vec<OrderItem>,
    pub limit: Option<Expr>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    pub hints: Hints,
    pub with: Option<With>,
    pub ignore: bool,
    /// `DELETE a, b FROM …` and `DELETE FROM a, b USING …`; empty for the form of one table.
    pub targets: Vec<TableName>,
    pub from: Vec<TableReference>,
    /// WHERE.
    pub filter: Option<Expr>,
    pub order_by: Vec<OrderItem>,
    pub limit: Option<Expr>,
    pub returning: Vec<SelectItem>,
}
