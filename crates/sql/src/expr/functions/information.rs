//! What a session knows of itself.

use super::{Derived, Function, Typing, rules};
use crate::expr::convert::Result;
use crate::expr::types::{self, text_type};
use rauk_types::{Collation, Value};

pub const FUNCTIONS: &[Function] = &[
    Function::new(
        "DATABASE",
        0,
        0,
        |t| system_text(t, 64).map(Derived::nullable),
        |_, x| Ok(x.current_database.clone().map_or(Value::Null, Value::Str)),
    )
    .impure(),
    Function::new("USER", 0, 0, |t| system_text(t, 288), |_, x| Ok(Value::Str(x.user.clone()))).impure(),
    Function::new("CURRENT_USER", 0, 0, |t| system_text(t, 288), |_, x| Ok(Value::Str(x.current_user.clone())))
        .impure(),
    Function::new(
        "VERSION",
        0,
        0,
        |t| system_text(t, 60),
        |_, x| {
            let variables = x.variables.clone();
            variables.get(crate::parse::statement::Scope::Default, "version")
        },
    )
    .impure(),
    Function::new("CONNECTION_ID", 0, 0, rules::unsigned, |_, x| Ok(Value::UInt(x.connection_id.into()))).impure(),
    Function::new("LAST_INSERT_ID", 0, 1, rules::unsigned, |c, x| {
        if !c.has(0) {
            return Ok(Value::UInt(x.last_insert_id));
        }
        let id = if c.is_null(0) { 0 } else { c.int(0, x)? as u64 };
        x.new_last_insert_id = Some(id);
        Ok(if c.is_null(0) { Value::Null } else { Value::UInt(id) })
    })
    .with_null()
    .impure(),
    // There are no roles.
    Function::new("CURRENT_ROLE", 0, 0, |t| system_text(t, 64), |_, _| Ok(Value::from("NONE"))).impure(),
    Function::new("PS_CURRENT_THREAD_ID", 0, 0, rules::unsigned, |_, x| Ok(Value::UInt(x.connection_id.into())))
        .impure(),
    Function::new("ROW_COUNT", 0, 0, rules::integer, |_, x| Ok(Value::Int(x.row_count))).impure(),
    Function::new("FOUND_ROWS", 0, 0, rules::unsigned, |_, x| Ok(Value::UInt(x.found_rows))).impure(),
];

/// Text of the server's own, in its collation.
fn system_text(_: Typing<'_>, length: u64) -> Result<Derived> {
    let ty = text_type(length, Collation::Utf8mb4GeneralCi);
    Ok(Derived { ty, nullable: false, coercibility: types::SYSTEM })
}
