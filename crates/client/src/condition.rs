//! Conditions by column name: `column("age").at_least(18).and(column("name").starts_with("A"))`.

use rauk_types::Value;

/// Three-valued as in SQL: a comparison with NULL is unknown, and only what is true passes.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    _private: (),
}

/// A column to be compared.
pub struct ColumnName(#[allow(dead_code)] String);

pub fn column(name: &str) -> ColumnName {
    ColumnName(name.to_string())
}

impl ColumnName {
    pub fn equals(self, _value: impl Into<Value>) -> Condition {
        todo!()
    }

    pub fn differs(self, _value: impl Into<Value>) -> Condition {
        todo!()
    }

    pub fn less_than(self, _value: impl Into<Value>) -> Condition {
        todo!()
    }

    pub fn at_most(self, _value: impl Into<Value>) -> Condition {
        todo!()
    }

    pub fn greater_than(self, _value: impl Into<Value>) -> Condition {
        todo!()
    }

    pub fn at_least(self, _value: impl Into<Value>) -> Condition {
        todo!()
    }

    pub fn is_null(self) -> Condition {
        todo!()
    }

    pub fn starts_with(self, _prefix: &str) -> Condition {
        todo!()
    }
}

impl Condition {
    pub fn and(self, _other: Condition) -> Condition {
        todo!()
    }

    pub fn or(self, _other: Condition) -> Condition {
        todo!()
    }

    pub fn negated(self) -> Condition {
        todo!()
    }
}
