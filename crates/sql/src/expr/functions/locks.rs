//! GET_LOCK, RELEASE_LOCK, RELEASE_ALL_LOCKS, IS_FREE_LOCK, IS_USED_LOCK.
//!
//! All of them may have to ask another node, so that they wait as SLEEP does ([`super::sleep`]): a call without its value says
//! what is to be done, and the operator does it ([`crate::locks`]) and evaluates again. Each row does it once.

use super::{Call, Derived, Function, Typing};
use crate::expr::convert::Result;
use crate::expr::{Awaited, Context, pending};
use crate::locks::LockRequest;
use rauk_types::error::codes;
use rauk_types::{DataType, MysqlError, Value};

pub const FUNCTIONS: &[Function] = &[
    Function::new("GET_LOCK", 2, 2, truth, |c, x| {
        let seconds = if c.is_null(1) { 0 } else { c.int(1, x)? };
        // Beyond what MySQL's timers hold means as long as it takes, as a negative number does.
        let seconds = if seconds > i64::from(i32::MAX) { -1 } else { seconds };
        let name = name(c)?;
        lock(c, x, 2, LockRequest::Get { name, seconds })
    })
    .with_null()
    .waiting(),
    Function::new("RELEASE_LOCK", 1, 1, truth, |c, x| lock(c, x, 1, LockRequest::Release(name(c)?)))
        .with_null()
        .waiting(),
    Function::new("RELEASE_ALL_LOCKS", 0, 0, count, |c, x| lock(c, x, 0, LockRequest::ReleaseAll))
        .with_null()
        .waiting(),
    Function::new("IS_FREE_LOCK", 1, 1, truth, |c, x| lock(c, x, 1, LockRequest::IsFree(name(c)?)))
        .with_null()
        .waiting(),
    Function::new("IS_USED_LOCK", 1, 1, count, |c, x| lock(c, x, 1, LockRequest::Owner(name(c)?)))
        .with_null()
        .waiting(),
];

/// Characters of a name.
const LONGEST: usize = 64;

fn truth(_: Typing<'_>) -> Result<Derived> {
    Ok(Derived::new(DataType { length: 1, ..DataType::BIGINT }).nullable())
}

fn count(_: Typing<'_>) -> Result<Derived> {
    Ok(Derived::new(DataType { length: 10, unsigned: true, ..DataType::BIGINT }).nullable())
}

/// The first argument in lower case. Errors 3057, 4163.
fn name(c: &Call<'_, '_>) -> Result<String> {
    let wrong =
        |name: &str| MysqlError::new(codes::USER_LOCK_WRONG_NAME, format!("Incorrect user-level lock name '{name}'."));
    if c.is_null(0) {
        return Err(wrong("NULL"));
    }
    let text = c.text(0);
    if text.is_empty() {
        return Err(wrong(""));
    }
    if text.chars().nth(LONGEST).is_some() {
        let shown: String = text.chars().take(192).collect();
        let message = format!("User-level lock name '{shown}' should not exceed {LONGEST} characters.");
        return Err(MysqlError::new(codes::USER_LOCK_OVERLONG_NAME, message));
    }
    Ok(text.to_lowercase())
}

/// The value of the call, whose number is the argument at `number`.
fn lock(c: &Call<'_, '_>, context: &mut Context, number: usize, request: LockRequest) -> Result<Value> {
    if !context.subqueries.is_active() {
        return Err(MysqlError::new(
            codes::NOT_SUPPORTED_YET,
            "This version of MySQL doesn't yet support 'user-level locks here'",
        ));
    }
    let call = c.int(number, context)?;
    match context.subqueries.take_waited(call) {
        Some(value) => Ok(value),
        None => {
            context.subqueries.missing = Some(Awaited::Lock { call, request });
            Err(pending())
        }
    }
}
