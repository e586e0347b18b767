//! Conditions on a row, evaluated where the rows are: three-valued as SQL's, a row passes when the whole is true.
//!
//! Columns are positions in the table's definition of the version that the request names. Text is compared by the column's collation.

use crate::WireError;
use crate::read::Reader;
use rauk_types::{RowView, TableSchema, Value};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareOp {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// Column against a constant of a comparable type (`check` says whether it is).
    Compare {
        column: u16,
        op: CompareOp,
        value: Value,
    },
    IsNull {
        column: u16,
    },
    /// Text or bytes that begin so, byte by byte (not by collation).
    StartsWith {
        column: u16,
        prefix: Vec<u8>,
    },
    And(Vec<Filter>),
    Or(Vec<Filter>),
    Not(Box<Filter>),
}

/// Deepest nesting and most nodes of a filter.
pub const MAX_DEPTH: usize = 16;
pub const MAX_NODES: usize = 1024;

impl Filter {
    pub fn encode(&self, _out: &mut Vec<u8>) {
        todo!()
    }

    /// Bounded by [`MAX_DEPTH`] and [`MAX_NODES`].
    pub fn decode(_reader: &mut Reader<'_>) -> Result<Filter, WireError> {
        todo!()
    }

    /// Whether columns exist and constants compare with them; the text names what does not.
    pub fn check(&self, _table: &TableSchema) -> Result<(), String> {
        todo!()
    }

    /// `None` is SQL's unknown. The filter was checked against the row's table.
    pub fn eval(&self, _row: &RowView<'_>) -> Option<bool> {
        todo!()
    }

    #[inline]
    pub fn passes(&self, row: &RowView<'_>) -> bool {
        self.eval(row) == Some(true)
    }
}
