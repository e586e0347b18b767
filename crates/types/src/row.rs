//! The bytes of a row.
//!
//! ```text
//! [null bitmap: 1 bit a nullable column, rounded up to bytes]
//! [fixed part: every fixed-width column at its offset, little-endian, unaligned]
//! [end offsets of the variable columns: u16 each when the row has under 64 KiB, else u32; a flag bit in the
//!  first byte of the bitmap area says which]
//! [the variable columns' bytes]
//! ```
//! Fixed: integers (1, 2, 3, 4, 8 bytes), FLOAT 4, DOUBLE 8, DATE 4 (3 if it fits), TIME/DATETIME/TIMESTAMP 8,
//! DECIMAL with precision ≤ 18 in 8 bytes, ≤ 38 in 16. Variable: CHAR (without trailing pad spaces), VARCHAR,
//! TEXT, BINARY, VARBINARY, BLOB, JSON, wider DECIMAL. A NULL takes no variable bytes, and its fixed bytes are zero.
//!
//! The layout version is not in these bytes: the row's header has it. A [`RowView`] reads columns by their
//! position in the *newest* schema; a column that the row's layout lacks reads as the column's `initial` value.

use crate::{ColumnId, DataType, TableSchema, Value, ValueRef};
use serde::{Deserialize, Serialize};

/// Where each column lies in rows of one layout version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowLayout {
    /// Index in `TableSchema::layouts`; stored in row headers.
    pub version: u16,
    /// The columns of this layout in storage order.
    pub columns: Vec<(ColumnId, DataType, bool)>,
}

impl RowLayout {
    /// The layout of a table's present columns, as version `version`.
    pub fn for_columns(version: u16, columns: &[crate::Column]) -> Self {
        RowLayout { version, columns: columns.iter().map(|c| (c.id, c.ty, c.nullable)).collect() }
    }
}

/// Encodes one value for each column of `table`, in order, into the table's newest layout. Appends to `out`.
/// Values must have been converted to the column types before (NOT NULL checked, lengths checked).
pub fn encode_row(table: &TableSchema, values: &[Value], out: &mut Vec<u8>) {
    let _ = (table, values, out);
    todo!()
}

/// A stored row and how to read it.
#[derive(Clone, Copy)]
pub struct RowView<'a> {
    table: &'a TableSchema,
    layout: &'a RowLayout,
    bytes: &'a [u8],
}

impl<'a> RowView<'a> {
    /// `layout_version` is the one in the row's header.
    pub fn new(table: &'a TableSchema, layout_version: u16, bytes: &'a [u8]) -> Self {
        RowView { table, layout: table.layout_of(layout_version), bytes }
    }

    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The value of the column at `position` of the newest schema.
    pub fn get(&self, position: usize) -> ValueRef<'a> {
        let _ = (position, self.table, self.layout);
        todo!()
    }

    pub fn is_null(&self, position: usize) -> bool {
        matches!(self.get(position), ValueRef::Null)
    }
}
