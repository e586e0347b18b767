//! The row executor.
//!
//! ```text
//! select     nested loops over tables
//! scan       what a level reads in this execution
//! keys       conditions to keys and ranges
//! row        rows as expressions see them
//! buffer     inner tables kept in memory: hash and block joins
//! output     grouping, HAVING, projection, DISTINCT, sorting, LIMIT
//! group      aggregates
//! sort       sort keys and the sorter
//! insert     INSERT, REPLACE
//! change     UPDATE, DELETE
//! ```
//! Filters run on rows in place, while the partition is held; a row is copied only when something has to wait beside it.

mod buffer;
mod change;
mod group;
mod insert;
mod keys;
mod output;
mod row;
mod scan;
mod select;
mod sort;

pub(crate) use keys::{Distribution, distribution};
pub(crate) use row::Joined;

use crate::expr::Context;
use crate::plan::{Plan, PlanKind};
use output::Target;
use rauk_node::Transaction;
use rauk_types::MysqlError;
use rauk_types::result::{Completion, ResultSink};

/// Runs a plan as one statement of `transaction` (the caller has called `begin_statement`, and ends or undoes the statement). Rows of a SELECT go to `sink`
/// with `columns` before them; `complete` is the caller's, with the completion given back. Large results are flushed on the way, after
/// `wait_observed`. Yields to other tasks of the thread at least every few thousand rows.
///
/// The caller has cleared the context's warnings. A SELECT sets `context.found_rows`, an INSERT that generated numbers `new_last_insert_id`.
pub async fn execute(
    plan: &Plan,
    transaction: &mut Transaction,
    context: &mut Context,
    sink: &mut dyn ResultSink,
) -> Result<Completion, MysqlError> {
    for (table, _) in &plan.tables {
        transaction.use_table(table).await?;
    }
    let strict = context.strict_statement;
    context.strict_statement = match &plan.kind {
        PlanKind::Select(_) | PlanKind::Query(_) => false,
        PlanKind::Insert(insert) => context.sql_mode.strict && !insert.ignore,
        PlanKind::Update(update) => context.sql_mode.strict && !update.ignore,
        PlanKind::Delete(_) => context.sql_mode.strict,
    };
    let result = match &plan.kind {
        PlanKind::Select(select) => {
            sink.columns(&plan.columns);
            match select::run_select(select, transaction, context, Target::Sink(sink)).await {
                Ok(rows) => {
                    context.found_rows = rows;
                    Ok(Completion {
                        warnings: context.warning_count.min(u16::MAX.into()) as u16,
                        ..Completion::default()
                    })
                }
                Err(error) => Err(error),
            }
        }
        PlanKind::Query(_) => unreachable!("no such query is planned yet"),
        PlanKind::Insert(insert) => insert::run_insert(insert, transaction, context).await,
        PlanKind::Update(update) => change::run_update(update, transaction, context).await,
        PlanKind::Delete(delete) => change::run_delete(delete, transaction, context).await,
    };
    context.strict_statement = strict;
    result
}
