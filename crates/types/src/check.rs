//! Whether a value may stand in a column as it is: for values that come from outside and are not converted first.
//!
//! Unlike SQL's conversions this changes nothing, except what loses nothing: an integer in a wider integer type or DECIMAL, a DECIMAL with fewer digits
//! behind the point. Texts name the column and the limit; codes are MySQL's (1264 out of range, 1406 too long, 1048 NULL, 1366 wrong type, 1292 wrong time).

use crate::{Column, MysqlError, ValueRef};

/// The value in the variant that rows of this column are encoded from.
pub fn column_value<'a>(_column: &Column, _value: ValueRef<'a>) -> Result<ValueRef<'a>, MysqlError> {
    todo!()
}
