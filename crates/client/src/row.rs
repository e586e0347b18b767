//! Rows by column name, and keys.

use crate::Error;
pub use crate::convert::{FromColumn, IntoKey};
use rauk_types::ValueRef;

/// A row that was read; shares the answer's bytes.
#[derive(Clone)]
pub struct Row {
    _private: (),
}

impl Row {
    pub fn value(&self, _column: &str) -> Result<ValueRef<'_>, Error> {
        todo!()
    }

    /// Converted to a Rust type: integers, floats, bool, String, Vec<u8>, Decimal, Date, Time, DateTime, Option of these.
    pub fn get<T: FromColumn>(&self, _column: &str) -> Result<T, Error> {
        todo!()
    }

    /// Columns in the order of the definition (or of the projection).
    pub fn columns(&self) -> impl Iterator<Item = (&str, ValueRef<'_>)> {
        std::iter::empty()
    }
}
