//! A value on its way through the evaluator: borrowed from a row, a literal or a parameter, or just made.

use crate::memory::{LARGE, heap_bytes};
use rauk_types::{Collation, DataType, TypeKind, Value, ValueRef};

/// Borrowed where possible; numbers and dates are copies either way.
#[derive(Clone, Debug)]
pub enum Val<'a> {
    Ref(ValueRef<'a>),
    Own(Value),
}

impl<'a> Val<'a> {
    pub const NULL: Val<'static> = Val::Ref(ValueRef::Null);

    #[inline]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Val::Ref(value) => *value,
            Val::Own(value) => value.as_ref(),
        }
    }

    #[inline]
    pub fn is_null(&self) -> bool {
        matches!(self, Val::Ref(ValueRef::Null) | Val::Own(Value::Null))
    }

    /// Bytes of a text, of bytes or of a document.
    #[inline]
    pub fn bytes(&self) -> usize {
        match self.as_ref() {
            ValueRef::Json(document) => document.stored_len(),
            value => value.as_bytes().map_or(0, <[u8]>::len),
        }
    }

    /// Bytes that it holds, when they are worth counting.
    #[inline]
    pub fn held(&self) -> usize {
        match self {
            Val::Own(value) => Some(heap_bytes(value)).filter(|bytes| *bytes >= LARGE).unwrap_or(0),
            Val::Ref(_) => 0,
        }
    }

    pub fn into_value(self) -> Value {
        match self {
            Val::Ref(value) => value.to_owned(),
            Val::Own(value) => value,
        }
    }

    /// SQL's booleans are integers.
    #[inline]
    pub fn truth(truth: Option<bool>) -> Val<'static> {
        match truth {
            Some(truth) => Val::Ref(ValueRef::Int(truth.into())),
            None => Val::NULL,
        }
    }
}

impl From<Value> for Val<'_> {
    fn from(value: Value) -> Self {
        Val::Own(value)
    }
}

/// The type that a value from a client is bound with. Lengths are left at their largest, so that plans do not depend on them.
pub(crate) fn type_of(value: &Value, collation: Collation) -> DataType {
    match value {
        Value::Null => DataType::new(TypeKind::Null),
        Value::Int(_) => DataType::BIGINT,
        Value::UInt(_) => DataType::BIGINT_UNSIGNED,
        Value::Double(_) => DataType::DOUBLE,
        Value::Decimal(d) => DataType::decimal(65, d.scale()),
        Value::Date(_) => DataType::new(TypeKind::Date),
        Value::Time(_) => DataType { scale: 6, ..DataType::new(TypeKind::Time) },
        Value::DateTime(_) => DataType { scale: 6, ..DataType::new(TypeKind::DateTime) },
        Value::Timestamp(_) => DataType { scale: 6, ..DataType::new(TypeKind::Timestamp) },
        Value::Str(_) => DataType { collation, ..DataType::new(TypeKind::LongText) },
        Value::Bytes(_) => DataType::new(TypeKind::LongBlob),
        Value::Json(_) => DataType::new(TypeKind::Json),
    }
}
