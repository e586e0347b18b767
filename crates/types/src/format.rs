//! Values as MySQL prints them, and numbers as MySQL reads them from text.

use crate::{DataType, ValueRef};

/// Appends the text form of a value of type `ty`, as the text protocol, CAST AS CHAR and CONCAT have it
/// (`1.50` for DECIMAL(5,2), `1e20` for a large DOUBLE, `2024-01-01 00:00:00.000` for DATETIME(3)). NULL appends nothing.
pub fn append_text(value: ValueRef<'_>, ty: &DataType, out: &mut Vec<u8>) {
    let _ = (value, ty, out);
    todo!()
}
