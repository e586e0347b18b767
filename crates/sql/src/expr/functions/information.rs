//! What a session knows of itself.

use super::{Call, Derived, Function, Typing, rules};
use crate::expr::Context;
use crate::expr::convert::Result;
use crate::expr::types::{self, text_type};
use crate::parse;
use rauk_types::{Collation, MysqlError, Value};
use sha2::Digest;

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
    Function::new("CURRENT_ROLE", 0, 0, |t| system_text(t, 1024), |_, x| Ok(Value::Str(x.current_role.clone())))
        .impure(),
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
    Function::new("CONNECTION_ID", 0, 0, rules::unsigned, |_, x| Ok(Value::UInt(x.connection_id))).impure(),
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
    Function::new("PS_CURRENT_THREAD_ID", 0, 0, rules::unsigned, |_, x| Ok(Value::UInt(x.connection_id))).impure(),
    Function::new(
        "STATEMENT_DIGEST_TEXT",
        1,
        1,
        |t| Ok(t.connection_text(LONG)),
        |c, x| digest_text(c, x).map(Value::Str),
    )
    .impure(),
    Function::new(
        "STATEMENT_DIGEST",
        1,
        1,
        |t| Ok(t.connection_text(64)),
        |c, x| {
            let text = digest_text(c, x)?;
            Ok(Value::Str(sha2::Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()))
        },
    )
    .impure(),
    Function::new("ROLES_GRAPHML", 0, 0, |t| system_text(t, LONG), |_, x| Ok(Value::Str(x.server.roles_graph())))
        .impure(),
    Function::new("ROW_COUNT", 0, 0, rules::integer, |_, x| Ok(Value::Int(x.row_count))).impure(),
    Function::new("FOUND_ROWS", 0, 0, rules::unsigned, |_, x| Ok(Value::UInt(x.found_rows))).impure(),
];

/// Characters of a result whose length is not known.
const LONG: u64 = 1 << 24;

/// ER_PARSE_ERROR_IN_DIGEST_FN.
const PARSE_ERROR_IN_DIGEST: u16 = 3676;

/// What is left of a statement without its literals. Error 3676 for a text that is none.
fn digest_text(c: &Call<'_, '_>, context: &mut Context) -> Result<String> {
    let text = c.text(0);
    let mode = context.sql_mode.parse_mode();
    let parsed = context.budget.beside(|| parse::parse_within(&text, mode, &context.budget.memory));
    if let Err(error) = parsed {
        let message = format!("Could not parse argument to digest function: \"{}\".", error.message);
        return Err(MysqlError::new(PARSE_ERROR_IN_DIGEST, message));
    }
    Ok(parse::digest_text(&text, mode))
}

/// Text of the server's own, in its collation.
fn system_text(_: Typing<'_>, length: u64) -> Result<Derived> {
    let ty = text_type(length, Collation::Utf8mb4GeneralCi);
    Ok(Derived { ty, nullable: false, coercibility: types::SYSTEM })
}
