//! The row executor.
use crate::expr::Context;
use crate::plan::Plan;
use rauk_node::Transaction;
use rauk_types::MysqlError;
use rauk_types::result::{Completion, ResultSink};

/// Runs a plan as one statement of `transaction` (the caller has called `begin_statement`, and ends or undoes the statement). Rows of a SELECT go to `sink`
/// with `columns` before them; `complete` is the caller's, with the completion given back. Large results are flushed on the way, after
/// `wait_observed`. Yields to other tasks of the thread at least every few thousand rows.
#[allow(unused_variables)]
pub async fn execute(
    plan: &Plan,
    transaction: &mut Transaction,
    context: &mut Context,
    sink: &mut dyn ResultSink,
) -> Result<Completion, MysqlError> {
    todo!()
}
