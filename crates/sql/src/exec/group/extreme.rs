//! MIN and MAX: numbers compare as they are, everything else by its memcomparable key. A text and its key count against the statement's memory.

use crate::expr::value_key::append_key;
use crate::memory::{Memory, heap_bytes};
use rauk_types::{DataType, MysqlError, Value, ValueRef};

#[derive(Clone, Default)]
pub(super) struct Extreme {
    best: Option<Value>,
    /// Of `best`, where keys compare.
    key: Vec<u8>,
}

impl Extreme {
    pub fn is_known(&self) -> bool {
        self.best.is_some()
    }

    /// `less`: MIN.
    #[inline]
    pub fn push(&mut self, value: ValueRef<'_>, ty: &DataType, less: bool, memory: &Memory) -> Result<(), MysqlError> {
        let mut has_key = false;
        let better = match (self.best.as_ref().map(Value::as_ref), value) {
            (None, _) => true,
            (Some(ValueRef::Int(known)), ValueRef::Int(v)) => is_better(v, known, less),
            (Some(ValueRef::UInt(known)), ValueRef::UInt(v)) => is_better(v, known, less),
            (Some(ValueRef::Decimal(known)), ValueRef::Decimal(v)) => is_better(v, known, less),
            (Some(ValueRef::Double(known)), ValueRef::Double(v)) => is_better(v, known, less),
            (Some(ValueRef::Date(known)), ValueRef::Date(v)) => is_better(v, known, less),
            (Some(ValueRef::DateTime(known)), ValueRef::DateTime(v)) => is_better(v, known, less),
            (Some(ValueRef::Timestamp(known)), ValueRef::Timestamp(v)) => is_better(v, known, less),
            // A signed and an unsigned number.
            (Some(known @ (ValueRef::Int(_) | ValueRef::UInt(_))), v @ (ValueRef::Int(_) | ValueRef::UInt(_))) => {
                is_better(v.as_integer(), known.as_integer(), less)
            }
            (Some(known), v) => {
                has_key = true;
                if self.key.is_empty() {
                    append_key(known, ty, false, &mut self.key);
                }
                let mut other = Vec::new();
                append_key(v, ty, false, &mut other);
                let better = is_better(&other, &self.key, less);
                if better {
                    self.key = other;
                }
                better
            }
        };
        if better {
            if !has_key {
                // It is of the value before.
                self.key.clear();
            }
            if matches!(value, ValueRef::Str(_) | ValueRef::Bytes(_) | ValueRef::Json(_)) {
                let known = self.best.as_ref().map_or(0, heap_bytes);
                let length = crate::expr::Val::Ref(value).bytes();
                // The key comes with the second value, and is about as long.
                memory.take(length * 2)?;
                memory.give(known * 2);
            }
            self.best = Some(value.to_owned());
        }
        Ok(())
    }

    pub fn value(&self) -> ValueRef<'_> {
        self.best.as_ref().map_or(ValueRef::Null, Value::as_ref)
    }

    pub fn finish(self) -> Value {
        self.best.unwrap_or(Value::Null)
    }
}

fn is_better<T: PartialOrd>(value: T, known: T, less: bool) -> bool {
    if less { value < known } else { value > known }
}
