//! A SELECT of one row by a whole key: from the key to the client's buffer in one step.
//!
//! Nearly always nothing stands in the way of such a read: the metadata lock is free, no snapshot has to be drawn, nobody is at the partition. Then it is
//! a call that does not wait, without the states that a statement which may wait carries along. Where something is in the way, nothing has
//! happened yet, and the block runs as any other ([`super::select`]).

use super::keys::{SingleKey, single_key};
use super::output::{row_count, write_row};
use super::row::{Joined, Part};
use super::scan::passes;
use crate::expr::Context;
use crate::physical::model::{Access, SelectPlan, Step};
use crate::physical::{Plan, PlanKind};
use rauk_node::Transaction;
use rauk_types::result::{Completion, ResultSink};
use rauk_types::{MysqlError, RowView};

/// Runs a plan that reads a row by its key ([`SelectPlan::point`]). `None`: it is another plan, or something is in the way.
pub(crate) fn read_point(
    plan: &Plan,
    txn: &mut Transaction,
    context: &mut Context,
    sink: &mut dyn ResultSink,
) -> Option<Result<Completion, MysqlError>> {
    let PlanKind::Select(select) = &plan.kind else { return None };
    if !select.point || plan.parts.is_some() || !plan.searches.is_empty() || context.measures.is_some() {
        return None;
    }
    for (table, _) in &plan.tables {
        if let Err(error) = txn.use_table_now(table)? {
            return Some(Err(error.into()));
        }
    }
    context.budget.ahead = 0;
    let (strict, ignores) = (context.strict_statement, context.ignores_errors);
    (context.strict_statement, context.ignores_errors) = (false, false);
    let result = read(plan, select, txn, context, sink).transpose();
    (context.strict_statement, context.ignores_errors) = (strict, ignores);
    Some(result?.map(|rows| {
        txn.end_reading();
        context.found_rows = rows;
        Completion { warnings: context.warning_count.min(u16::MAX.into()) as u16, ..Completion::default() }
    }))
}

/// Gives the number of rows; `None`: something is in the way.
fn read(
    plan: &Plan,
    select: &SelectPlan,
    txn: &mut Transaction,
    context: &mut Context,
    sink: &mut dyn ResultSink,
) -> Result<Option<u64>, MysqlError> {
    let [Step::Scan(level)] = select.steps.as_slice() else { unreachable!("a point has one table") };
    let Access::Primary(access) = &level.access else { unreachable!("a point is read by the primary key") };
    let Some(table) = select.sources[level.table].handle() else { unreachable!("a point is stored") };
    let wanted = select.limit.as_ref().map_or(Ok(1), |limit| row_count(limit, context))?;
    let zone = context.time_zone.clone();
    let root = Joined::root(&zone);
    let mut key = std::mem::take(&mut context.key);
    key.clear();
    let found = match wanted {
        0 => SingleKey::Nothing,
        _ => single_key(access, &root, context, &mut key)?,
    };
    match found {
        SingleKey::Unknown => return Ok(None),
        SingleKey::Nothing => {
            sink.columns(&plan.columns);
            return Ok(Some(0));
        }
        SingleKey::Key => {}
    }
    let visit = |view: Option<RowView<'_>>| {
        sink.columns(&plan.columns);
        let Some(view) = view else { return Ok(0) };
        let row = root.with(level.table, Part::Stored(view));
        if !passes(&level.filters, &row, context)? {
            return Ok(0);
        }
        write_row(select, &row, context, sink)?;
        Ok(1)
    };
    let rows = txn.get_now(table, &key, visit);
    context.key = key;
    match rows {
        None => Ok(None),
        Some(rows) => rows?.map(Some),
    }
}
