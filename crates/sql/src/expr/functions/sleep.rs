//! SLEEP(seconds).
//!
//! Evaluation never waits: a call that has not slept yet says for how long it has to, and the operator sleeps without a thread and evaluates
//! again, as it does for a subquery that has not been run. Each call of the statement has a number of its own, its last argument, by which its sleep is found
//! and used up; so it sleeps again for each row. KILL QUERY and max_execution_time end a sleep at once: in the list of a SELECT without FROM
//! it gives 1 then, elsewhere the statement ends.

use super::{Call, Function, rules};
use crate::expr::convert::Result;
use crate::expr::{Awaited, Context, pending};
use rauk_types::error::codes;
use rauk_types::{MysqlError, Value};

pub const FUNCTIONS: &[Function] = &[Function::new("SLEEP", 1, 1, rules::integer, sleep).with_null().waiting()];

/// Less is no sleep.
const SHORTEST: f64 = 0.000_01;

fn sleep(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let seconds = if c.is_null(0) { -1.0 } else { c.f64(0, context)? };
    if seconds < 0.0 {
        let wrong = MysqlError::new(codes::WRONG_ARGUMENTS, "Incorrect arguments to sleep.");
        if context.sql_mode.strict && !context.ignores_errors {
            return Err(wrong);
        }
        context.warn(wrong.code, wrong.message);
    }
    if seconds < SHORTEST {
        return Ok(Value::Int(0));
    }
    if !context.subqueries.is_active() {
        return Err(MysqlError::new(
            codes::NOT_SUPPORTED_YET,
            "This version of MySQL doesn't yet support 'SLEEP here'",
        ));
    }
    let call = c.int(1, context)?;
    match context.subqueries.take_waited(call) {
        Some(interrupted) => Ok(interrupted),
        None => {
            context.subqueries.missing = Some(Awaited::Sleep { call, seconds });
            Err(pending())
        }
    }
}
