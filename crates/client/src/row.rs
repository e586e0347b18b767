//! Rows by column name, and keys.

use crate::Error;
use rauk_types::{Value, ValueRef};

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

/// A type that a column's value can be read into.
pub trait FromColumn: Sized {
    /// `None`: it does not fit.
    fn from_value(value: ValueRef<'_>) -> Option<Self>;
}

/// The values of a key: one value, a tuple, or a slice of [`Value`].
pub trait IntoKey {
    fn into_key(self) -> Vec<Value>;
}
