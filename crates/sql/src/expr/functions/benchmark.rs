//! BENCHMARK(count, expression): evaluates the expression that often, and gives 0.
//!
//! It is the one function that evaluates its arguments itself. Each time counts as work, so KILL and max_execution_time end it between two of them,
//! and a long one runs beside the thread's other tasks.

use super::{Derived, Function, Typing};
use crate::expr::budget::run;
use crate::expr::convert::{self, Result};
use crate::expr::eval::Env;
use crate::expr::{Context, Expr, Val};
use rauk_types::error::codes;
use rauk_types::{DataType, MysqlError, Value, ValueRef};

pub const FUNCTIONS: &[Function] = &[Function {
    walk: Some(benchmark),
    ..Function::new("BENCHMARK", 2, 2, benchmark_type, |_, _| Ok(Value::Int(0))).with_null().volatile()
}];

/// What one evaluation counts as beside its own work, in bytes: the smallest takes below a microsecond.
const WORK: usize = 1024;

/// ER_WRONG_VALUE_FOR_TYPE.
const WRONG_VALUE: u16 = 1411;

fn benchmark_type(t: Typing<'_>) -> Result<Derived> {
    // Each round would begin with all that the rounds before it have slept.
    if t.arguments.iter().any(Expr::has_sleep) {
        let message = "This version of MySQL doesn't yet support 'SLEEP in BENCHMARK'";
        return Err(MysqlError::new(codes::NOT_SUPPORTED_YET, message));
    }
    Ok(Derived::new(DataType { length: 1, ..DataType::BIGINT }).nullable())
}

fn benchmark<'a>(arguments: &'a [Expr], env: &Env<'a>, context: &mut Context) -> Result<Val<'a>> {
    let [count, repeated] = arguments else { unreachable!("it has two arguments") };
    let value = count.value(env, context)?;
    let count = match convert::as_number(value.as_ref(), &count.ty) {
        ValueRef::Null => return Ok(Val::NULL),
        ValueRef::UInt(count) => count,
        number => match convert::to_i64(number, context)? {
            negative @ ..0 => {
                context.warn(WRONG_VALUE, format!("Incorrect count value: '{negative}' for function benchmark"));
                return Ok(Val::NULL);
            }
            count => count as u64,
        },
    };
    let work = usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(WORK);
    run(context.budget.runner(work), || {
        for _ in 0..count {
            repeated.value(env, context)?;
            context.budget.work(WORK)?;
        }
        Ok(Val::Own(Value::Int(0)))
    })
}
