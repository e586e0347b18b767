//! A value on its way through the evaluator: borrowed from a row, a literal or a parameter, or just made.

use crate::memory::{LARGE, heap_bytes};
use rauk_types::{Value, ValueRef};

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

    /// Bytes of a text.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.as_ref().as_bytes().map_or(0, <[u8]>::len)
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
