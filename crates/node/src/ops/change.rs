//! A change of one row, made where the row is.
//!
//! A statement that changes a row by its key has to read it first. If another process leads the partition, that is a
//! question and an answer before the change can be sent. So the statement may send along how the new row follows from
//! the old one, as a program ([`super::operation::Op::Change`]): the row is locked, read and changed in one hold.
//!
//! The statement's own evaluation stays the measure. Whatever is not certain (a condition that is not met, a value
//! that does not fit, a warning, an input that is long) is not done here: the row is locked and sent, and the statement
//! goes on with it as if it had only read it. So each rule of SQL is kept in one place, and a process that does not
//! know a program is no error.
//!
//! Programs are made and known by the evaluator that `sql` registers ([`crate::scan::pushdown`]). They are for tables of
//! which a write is a write of the row alone: no unique indexes, no foreign keys.

use crate::node::Node;
use crate::scan::pushdown::MAX_PROGRAM;
use crate::table::TableInfo;
use rauk_types::{RowView, Value, row};
use std::fmt;
use std::sync::Arc;

/// Longest row that a program makes, in bytes: it is made while the partition is held.
const MAX_ROW: usize = 64 << 10;

/// What becomes of a row. It does not wait, and takes time in proportion to the row.
pub trait RowChange: Send {
    fn change(&mut self, row: &RowView<'_>) -> NewRow;
}

/// What a program makes of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum NewRow {
    /// Whoever asks has to find out.
    Unsure,
    /// One converted value a column, at least one of them new.
    Values(Vec<Value>),
    Deleted,
}

/// A program for rows of a table.
pub struct Change {
    table: Arc<TableInfo>,
    program: Box<dyn RowChange>,
    key: Vec<u8>,
}

/// The same as it is stored.
#[derive(Debug, PartialEq)]
pub enum Changed {
    Unsure,
    Row(Vec<u8>),
    Gone,
}

impl Change {
    /// `None`: the program is not known here, or not for such a table.
    pub fn read(node: &Node, program: &[u8], table: &Arc<TableInfo>) -> Option<Change> {
        if program.len() > MAX_PROGRAM || table.has_entries() || table.is_related() {
            return None;
        }
        let program = node.evaluator.get()?.prepare_change(program, &table.schema)?;
        Some(Change { table: table.clone(), program, key: Vec::new() })
    }

    /// What becomes of the row with this key, which stays.
    pub fn of(&mut self, row: &RowView<'_>, key: &[u8]) -> Changed {
        let values = match self.program.change(row) {
            NewRow::Unsure => return Changed::Unsure,
            NewRow::Deleted => return Changed::Gone,
            NewRow::Values(values) => values,
        };
        self.key.clear();
        self.table.primary.encode_values(&values, &mut self.key);
        if self.key != key {
            return Changed::Unsure;
        }
        let mut bytes = Vec::with_capacity(128);
        row::encode_row(&self.table.schema, &values, &mut bytes);
        if bytes.len() > MAX_ROW { Changed::Unsure } else { Changed::Row(bytes) }
    }
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Change").field("table", &self.table.schema.name).finish_non_exhaustive()
    }
}
