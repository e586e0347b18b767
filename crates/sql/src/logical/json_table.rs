//! JSON_TABLE in the logical tree: its document is an expression, everything else is known when it is bound.

use crate::expr::json::path::Path;
use crate::expr::{ColumnId, Expr};
use rauk_types::{Column, Value};
use std::sync::Arc;

/// A table whose rows a function computes.
pub(crate) struct TableFunction {
    /// Reads no column of a table beside it but as an outer one: in FROM, what reads such columns is a [`super::Lateral`].
    pub document: Expr,
    pub table: Arc<JsonTable>,
    /// One for each column of [`JsonTable::columns`].
    pub columns: Vec<ColumnId>,
}

/// What JSON_TABLE makes of a document.
pub(crate) struct JsonTable {
    pub rows: JsonRows,
    /// All columns, those of nested paths behind those before them.
    pub columns: Vec<Column>,
}

/// The matches of a path, and what each gives to a row.
pub(crate) struct JsonRows {
    pub path: Path,
    pub cells: Vec<JsonCell>,
    /// NESTED PATHs: each gives rows of its own, in which the columns of the others are NULL.
    pub nested: Vec<JsonRows>,
}

/// A column, by its place in [`JsonTable::columns`].
pub(crate) enum JsonCell {
    /// The number of the match.
    Ordinality {
        at: usize,
    },
    Value {
        at: usize,
        path: Path,
        on_empty: OnMissing,
        on_error: OnMissing,
    },
    Exists {
        at: usize,
        path: Path,
    },
}

pub(crate) enum OnMissing {
    Null,
    Error,
    /// A document.
    Default(Value),
}

impl JsonRows {
    /// Calls `visit` on all its columns.
    pub fn for_each_cell<'a>(&'a self, visit: &mut dyn FnMut(&'a JsonCell)) {
        self.cells.iter().for_each(&mut *visit);
        self.nested.iter().for_each(|rows| rows.for_each_cell(visit));
    }
}
