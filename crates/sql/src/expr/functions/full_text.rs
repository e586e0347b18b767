//! MATCH … AGAINST as a function. It is no name that a statement could call: the binder makes the call
//! ([`crate::expr::fulltext`]), with the number of its search before the columns.

use super::{Derived, Function};
use crate::expr::fulltext;
use rauk_types::{DataType, TypeKind, Value};

/// Depends on the statement's searches: on no other node.
pub static MATCH: Function = Function {
    walk: Some(fulltext::value),
    ..Function::new("MATCH", 2, u8::MAX, |_| Ok(Derived::new(DataType::new(TypeKind::Double))), |_, _| Ok(Value::Null))
        .with_null()
        .impure()
};
