//! A single SQL value, owned ([`Value`]) or borrowed from a row ([`ValueRef`]).
//!
//! The declared type of a column or expression travels beside the value, in a
//! [`DataType`](crate::DataType): the collation of a string, the scale of a
//! DECIMAL, whether a DOUBLE was declared FLOAT. A TIMESTAMP is stored as UTC
//! and converted to the session's time zone when SQL reads it; inside SQL
//! expressions it is a [`Value::DateTime`].
//!
//! A JSON value is in its stored form ([`crate::json`]), which is binary, or text where it comes from text.
//!
//! Both are at most 32 bytes. A [`ValueRef`] is `Copy` and needs no allocation: a
//! [`Decimal`] of any width is 28 bytes and travels by value in both.
//!
//! `==` compares variants, as Rust code that moves values about expects: `Int(1)` is not `UInt(1)`, `Str` compares
//! bytes. Numbers within DECIMAL are equal whatever their scale (`1.0 == 1.00`). SQL's `=` is the expression layer's.

use crate::json::JsonRef;
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
    /// JSON in its stored form.
    Json(Vec<u8>),
}

/// A SQL value that borrows its bytes. At most 32 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum ValueRef<'a> {
    #[default]
    Null,
    Int(i64),
    UInt(u64),
    Double(f64),
    Decimal(Decimal),
    Date(Date),
    Time(Time),
    DateTime(DateTime),
    Timestamp(i64),
    Str(&'a str),
    Bytes(&'a [u8]),
    Json(JsonRef<'a>),
}

impl Value {
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    #[inline]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Value::Null => ValueRef::Null,
            Value::Int(v) => ValueRef::Int(*v),
            Value::UInt(v) => ValueRef::UInt(*v),
            Value::Double(v) => ValueRef::Double(*v),
            Value::Decimal(v) => ValueRef::Decimal(*v),
            Value::Date(v) => ValueRef::Date(*v),
            Value::Time(v) => ValueRef::Time(*v),
            Value::DateTime(v) => ValueRef::DateTime(*v),
            Value::Timestamp(v) => ValueRef::Timestamp(*v),
            Value::Str(v) => ValueRef::Str(v),
            Value::Bytes(v) => ValueRef::Bytes(v),
            Value::Json(v) => ValueRef::Json(JsonRef::stored(v)),
        }
    }
}

impl<'a> ValueRef<'a> {
    #[inline]
    pub fn is_null(&self) -> bool {
        matches!(self, ValueRef::Null)
    }

    /// The same value, owning its bytes. Allocates for strings and bytes only.
    pub fn to_owned(self) -> Value {
        match self {
            ValueRef::Null => Value::Null,
            ValueRef::Int(v) => Value::Int(v),
            ValueRef::UInt(v) => Value::UInt(v),
            ValueRef::Double(v) => Value::Double(v),
            ValueRef::Decimal(v) => Value::Decimal(v),
            ValueRef::Date(v) => Value::Date(v),
            ValueRef::Time(v) => Value::Time(v),
            ValueRef::DateTime(v) => Value::DateTime(v),
            ValueRef::Timestamp(v) => Value::Timestamp(v),
            ValueRef::Str(v) => Value::Str(String::from(v)),
            ValueRef::Bytes(v) => Value::Bytes(v.to_vec()),
            ValueRef::Json(v) => Value::Json(v.to_stored()),
        }
    }

    /// The bytes of a string or of binary data; `None` for everything else, also for JSON.
    #[inline]
    pub fn as_bytes(&self) -> Option<&'a [u8]> {
        match *self {
            ValueRef::Str(v) => Some(v.as_bytes()),
            ValueRef::Bytes(v) => Some(v),
            _ => None,
        }
    }

    /// The text of a string; `None` for everything else.
    #[inline]
    pub fn as_str(&self) -> Option<&'a str> {
        match *self {
            ValueRef::Str(v) => Some(v),
            _ => None,
        }
    }

    /// An integer of either sign; `None` for everything else.
    #[inline]
    pub fn as_integer(&self) -> Option<i128> {
        match *self {
            ValueRef::Int(v) => Some(v.into()),
            ValueRef::UInt(v) => Some(v.into()),
            _ => None,
        }
    }

    /// The number of an AUTO_INCREMENT column: of FLOAT and DOUBLE the nearest integer.
    #[inline]
    pub fn as_counted(&self) -> Option<i128> {
        match *self {
            ValueRef::Double(v) => Some(v.round_ties_even() as i128),
            value => value.as_integer(),
        }
    }
}

impl<'a> From<&'a Value> for ValueRef<'a> {
    fn from(value: &'a Value) -> Self {
        value.as_ref()
    }
}

impl From<ValueRef<'_>> for Value {
    fn from(value: ValueRef<'_>) -> Self {
        value.to_owned()
    }
}

macro_rules! conversions {
    ($($from:ty => $variant:ident;)*) => {
        $(
            impl From<$from> for Value {
                fn from(value: $from) -> Self {
                    Value::$variant(value.into())
                }
            }
        )*
    };
}

conversions! {
    i64 => Int;
    i32 => Int;
    i16 => Int;
    i8 => Int;
    bool => Int;
    u64 => UInt;
    u32 => UInt;
    u16 => UInt;
    u8 => UInt;
    f64 => Double;
    f32 => Double;
    Decimal => Decimal;
    Date => Date;
    Time => Time;
    DateTime => DateTime;
    String => Str;
    &str => Str;
    &String => Str;
    Vec<u8> => Bytes;
    &[u8] => Bytes;
}

impl From<&Value> for Value {
    fn from(value: &Value) -> Self {
        value.clone()
    }
}

/// `None` is NULL.
impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, T::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_small() {
        assert!(size_of::<Value>() <= 32);
        assert!(size_of::<ValueRef<'_>>() <= 32);
        assert_eq!(size_of::<Decimal>(), 28);
    }

    #[test]
    fn owned_and_borrowed_are_the_same_value() {
        for value in [
            Value::Null,
            Value::from(-1i64),
            Value::from(7u8),
            Value::from(true),
            Value::from(None::<i32>),
            Value::from(Some("text")),
            Value::from(&b"bytes"[..]),
            Value::from(u64::MAX),
            Value::from(0.5),
            Value::from("text"),
            Value::from(vec![0u8, 255]),
            Value::Timestamp(17),
            Value::Json(vec![crate::json::VERSION, 4, 1]),
            Value::Json(b"[1]".to_vec()),
        ] {
            assert_eq!(value.as_ref().to_owned(), value);
        }
    }
}
