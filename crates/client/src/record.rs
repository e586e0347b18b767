//! Rows as structs: what `#[derive(Record)]` implements.
//!
//! | attribute | on | meaning |
//! |---|---|---|
//! | `database = "…", table = "…"` | the struct | where its rows are |
//! | `key` | a field | part of the primary key, in the order of the fields |
//! | `unique`, `index` | a field | an index on it, for tables that are made from the struct |
//! | `column = "…"` | a field | its column, when it is named otherwise |
//! | `length = N` | a String or `Vec<u8>` field | VARCHAR(N) or VARBINARY(N), for tables that are made from the struct; without it TEXT or BLOB (keys: 255) |
//! | `auto_increment` | an integer key | the node gives numbers |
//! | `precision`, `scale` | a Decimal field | DECIMAL(precision, scale) |
//! | `fraction = N` | a Time or DateTime field | digits of a second's fraction |

use rauk_types::{DataType, ValueRef};

/// A column as the struct says it.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldInfo {
    pub column: &'static str,
    /// The type that a table made from the struct gets.
    pub ty: DataType,
    pub nullable: bool,
    pub key: bool,
    pub unique: bool,
    pub index: bool,
    pub auto_increment: bool,
}

/// A struct whose values are rows.
pub trait Record: Sized + Send + Sync + 'static {
    const DATABASE: &'static str;
    const TABLE: &'static str;
    fn fields() -> &'static [FieldInfo];
    /// The values of all fields in their order.
    fn values<'a>(&'a self, into: &mut Vec<ValueRef<'a>>);
    /// From one value for each field; `None` when one does not fit.
    fn from_values<'a>(value: &mut dyn FnMut(usize) -> ValueRef<'a>) -> Result<Self, usize>;
    /// Whether a column of this type can hold, and be read into, the field.
    fn accepts(field: usize, ty: &DataType, nullable: bool) -> bool;
}
