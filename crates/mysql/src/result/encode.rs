//! Rows in another character set than utf8mb4: texts become the bytes of character_set_results, before either protocol
//! writes them.
//!
//! Where the results are utf8mb4, and where no column is text, nothing here runs. Numbers and times are ASCII in each
//! set, as from MySQL.
use rauk_types::result::Charsets;
use rauk_types::{DataType, ValueRef, format};
use std::borrow::Cow;

/// Whether values of a type are sent as text of a character set.
pub fn is_encoded(ty: &DataType) -> bool {
    ty.is_text() || ty.has_members()
}

/// A value, or the bytes of a text.
pub enum Encoded<'a> {
    Value(ValueRef<'a>),
    Text(Cow<'a, [u8]>),
}

impl Encoded<'_> {
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Encoded::Value(value) => *value,
            Encoded::Text(bytes) => ValueRef::Bytes(bytes),
        }
    }
}

pub fn row<'a>(values: &[ValueRef<'a>], types: &[DataType], charsets: &Charsets) -> Vec<Encoded<'a>> {
    let encoded = |(value, ty): (&ValueRef<'a>, &DataType)| match value {
        ValueRef::Str(text) => Encoded::Text(charsets.of_column(ty).encode(text)),
        ValueRef::Null | ValueRef::Bytes(_) => Encoded::Value(*value),
        other if is_encoded(ty) => {
            let mut text = Vec::new();
            format::append_text(*other, ty, &mut text);
            let bytes = match std::str::from_utf8(&text) {
                Ok(text) => charsets.of_column(ty).encode(text).into_owned(),
                Err(_) => text,
            };
            Encoded::Text(Cow::Owned(bytes))
        }
        other => Encoded::Value(*other),
    };
    values.iter().zip(types).map(encoded).collect()
}
