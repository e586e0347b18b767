//! A single SQL value, owned ([`Value`]) or borrowed from a row ([`ValueRef`]).
//!
//! The declared type of a column or expression travels beside the value, in a
//! [`DataType`](crate::DataType): the collation of a string, the scale of a
//! DECIMAL, whether a DOUBLE was declared FLOAT. A TIMESTAMP is stored as UTC
//! and converted to the session's time zone when SQL reads it; inside SQL
//! expressions it is a [`Value::DateTime`].

use crate::{Date, DateTime, Decimal, Time};
use serde::{Deserialize, Serialize};

/// An owned SQL value. At most 32 bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Value {
    #[default]
    Null,
    Int(i64),
    UInt(u64),
    Double(f64),
    Decimal(Decimal),
    Date(Date),
    Time(Time),
    DateTime(DateTime),
    /// TIMESTAMP as stored: microseconds since 1970-01-01 UTC; `0` is the zero timestamp.
    Timestamp(i64),
    Str(String),
    Bytes(Vec<u8>),
}

/// A SQL value that borrows its bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueRef<'a> {
    Null,
    Int(i64),
    UInt(u64),
    Double(f64),
    Decimal(&'a Decimal),
    Date(Date),
    Time(Time),
    DateTime(DateTime),
    Timestamp(i64),
    Str(&'a str),
    Bytes(&'a [u8]),
}

impl Value {
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Value::Null => ValueRef::Null,
            Value::Int(v) => ValueRef::Int(*v),
            Value::UInt(v) => ValueRef::UInt(*v),
            Value::Double(v) => ValueRef::Double(*v),
            Value::Decimal(v) => ValueRef::Decimal(v),
            Value::Date(v) => ValueRef::Date(*v),
            Value::Time(v) => ValueRef::Time(*v),
            Value::DateTime(v) => ValueRef::DateTime(*v),
            Value::Timestamp(v) => ValueRef::Timestamp(*v),
            Value::Str(v) => ValueRef::Str(v),
            Value::Bytes(v) => ValueRef::Bytes(v),
        }
    }
}
