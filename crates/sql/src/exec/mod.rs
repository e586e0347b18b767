//! The row executor.
//!
//! ```text
//! point      a row by its key
//! select     nested loops over tables
//! now        those of them that need no waiting
//! batch      batched key joins
//! scan       what a level reads in this execution
//! merge      index merge
//! skip       loose scans and skip scans
//! query      UNION and its like, derived and common tables
//! answer     subqueries of expressions
//! lateral    tables that are run for each row before them
//! json_table the rows of JSON_TABLE
//! buffer     inner tables kept in memory: hash and block joins
//! kept       their bytes, and a hash index over them
//! vector     batches of columns: filters and groups of one table's rows
//! output     grouping, HAVING, projection, DISTINCT, sorting, LIMIT
//! group      aggregates
//! window     window functions
//! sort       the sorter
//! sample     a sample of a table's rows
//! insert     INSERT, REPLACE
//! gathered   their rows, many together
//! over       those that meet other rows: ON DUPLICATE KEY UPDATE
//! load       LOAD DATA: the lines of a file as rows
//! rules      generated columns and CHECK constraints of rows that are written
//! check      WITH CHECK OPTION of views
//! change     UPDATE, DELETE of rows that a locking scan finds
//! targets    UPDATE, DELETE of rows that a block gives: several tables
//! assignments what an UPDATE makes of a row
//! together   changed rows, many together
//! returning  RETURNING
//! ```
//! Filters run on rows in place, while the partition is held; a row is copied only when something has to wait beside it.

mod answer;
mod assignments;
mod batch;
mod buffer;
mod change;
mod check;
mod gathered;
mod group;
mod insert;
mod json_table;
mod kept;
mod lateral;
mod load;
mod merge;
mod now;
mod output;
mod over;
mod point;
mod query;
mod remote;
mod returning;
pub(crate) mod rules;
mod sample;
mod scan;
mod search;
mod select;
mod skip;
mod sort;
mod targets;
mod together;
mod vector;
mod violation;
mod window;

pub use remote::SqlEvaluator;

use crate::physical::{keys, prune, row};

pub(crate) use point::read_point;
pub(crate) use returning::Held;
pub(crate) use sample::{Limits, Sampled, Values, sample};

use crate::expr::{Context, is_pending};
use crate::physical::model::InsertSource;
use crate::physical::{Plan, PlanKind};
use output::Target;
use rauk_node::Transaction;
use rauk_types::result::{Completion, ResultSink};
use rauk_types::{MysqlError, Value};

/// ER_INTERNAL_ERROR.
const INTERNAL_ERROR: u16 = 1815;

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
    // What the last statement read ahead of its client was counted until its end.
    context.budget.ahead = 0;
    for (table, written) in &plan.tables {
        if *written {
            transaction.use_table_to_write(table).await?;
            continue;
        }
        match transaction.use_table_now(table) {
            Some(result) => result?,
            None => transaction.use_table(table).await?,
        }
    }
    if !plan.searches.is_empty() {
        // Boxed, since few statements have one.
        Box::pin(search::begin(plan, transaction, context)).await?;
        let result = Box::pin(execute_parts(plan, transaction, context, sink)).await;
        context.searches.end();
        return result;
    }
    execute_parts(plan, transaction, context, sink).await
}

async fn execute_parts(
    plan: &Plan,
    transaction: &mut Transaction,
    context: &mut Context,
    sink: &mut dyn ResultSink,
) -> Result<Completion, MysqlError> {
    if let Some(parts) = &plan.parts {
        let own = context.parameters.len();
        assert!(own <= parts.parameters, "{own} parameters are more than the {} of the plan", parts.parameters);
        context.parameters.resize(parts.parameters + parts.outer_columns, Value::Null);
        answer::begin(parts, context);
        let result = execute_kind(plan, transaction, context, sink).await.map_err(|error| match is_pending(&error) {
            // What is evaluated where nothing can wait has no subqueries, or the plan says that it is late.
            true => MysqlError::new(INTERNAL_ERROR, "Internal error: nobody ran a subquery"),
            false => error,
        });
        context.subqueries.end();
        context.parameters.truncate(own);
        return result;
    }
    execute_kind(plan, transaction, context, sink).await
}

async fn execute_kind(
    plan: &Plan,
    transaction: &mut Transaction,
    context: &mut Context,
    sink: &mut dyn ResultSink,
) -> Result<Completion, MysqlError> {
    let several = plan.parts.is_some() || matches!(plan.kind, PlanKind::Query(_));
    if reads_to_change(plan) {
        transaction.read_to_change();
    }
    // All of its queries see one state. A change draws its snapshot itself, perhaps several times.
    if several && !plan.tables.is_empty() && !matches!(plan.kind, PlanKind::Change(_)) {
        select::take_snapshot(transaction).await?;
    }
    let ignore = match &plan.kind {
        PlanKind::Select(_) | PlanKind::Query(_) => None,
        PlanKind::Insert(insert) => Some(insert.ignore),
        PlanKind::Update(update) => Some(update.ignore),
        PlanKind::Delete(delete) => Some(delete.ignore),
        PlanKind::Change(change) => Some(change.ignore),
    };
    let strict = context.strict_statement;
    context.strict_statement = ignore == Some(false) && context.sql_mode.strict;
    context.ignores_errors = ignore == Some(true);
    let result = match &plan.kind {
        PlanKind::Select(select) => {
            sink.columns(&plan.columns);
            let target = Target::Sink { sink, last: !several };
            let ran = select::run_select(select, transaction, context, target).await;
            ran.map(|ran| read(ran, context))
        }
        PlanKind::Query(query) => {
            sink.columns(&plan.columns);
            // The last part of a UNION reads the last rows of the statement, when nothing else has to be read for it.
            let target = Target::Sink { sink, last: plan.parts.is_none() };
            let ran = query::run_query(query, transaction, context, target).await;
            ran.map(|ran| read(ran, context))
        }
        PlanKind::Insert(insert) => insert::run_insert(insert, &plan.columns, transaction, context, sink).await,
        PlanKind::Update(update) => change::run_update(update, transaction, context).await,
        PlanKind::Delete(delete) => change::run_delete(delete, &plan.columns, transaction, context, sink).await,
        PlanKind::Change(change) => {
            let parts = plan.parts.as_ref();
            // Boxed, as queries are: the future of a statement by key has no room for it.
            Box::pin(targets::run_change(change, parts, &plan.columns, transaction, context, sink)).await
        }
    };
    context.strict_statement = strict;
    context.ignores_errors = false;
    result
}

/// Whether it writes by what it reads elsewhere than in the rows that it changes.
fn reads_to_change(plan: &Plan) -> bool {
    match &plan.kind {
        PlanKind::Select(_) | PlanKind::Query(_) => false,
        PlanKind::Change(_) => true,
        PlanKind::Insert(insert) => plan.parts.is_some() || matches!(insert.source, InsertSource::Query(..)),
        PlanKind::Update(_) | PlanKind::Delete(_) => plan.parts.is_some(),
    }
}

/// The end of a statement that gives rows.
fn read(ran: select::Ran, context: &mut Context) -> Completion {
    context.found_rows = ran.rows;
    Completion { warnings: context.warning_count.min(u16::MAX.into()) as u16, ..Completion::default() }
}
