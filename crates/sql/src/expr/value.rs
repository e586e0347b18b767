//! A value on its way through the evaluator: borrowed from a row, a literal or a parameter, or just made.

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
