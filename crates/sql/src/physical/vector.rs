//! Which blocks take their rows in batches (`exec/vector`).
//!
//! A batch costs some microseconds before its first row: constants are evaluated, room is made. So only blocks that are expected to read many rows take
//! them so, unless optimizer_switch says that cost does not matter. The answers are the same.

use super::model::{Access, SelectPlan, Step, VectorPlan};
use crate::expr::{Expr, Switches};

/// Rows from which on batches are expected to pay.
const MANY_ROWS: u64 = 512;

/// Whether the rows of a block are grouped in batches, and which columns are read then.
pub(super) fn choose(plan: &SelectPlan, switches: Switches) -> Option<Box<VectorPlan>> {
    let [Step::Scan(level)] = plan.steps.as_slice() else { return None };
    let grouping = plan.grouping.as_ref().filter(|grouping| grouping.rollup.is_none())?;
    let scans = match &level.access {
        Access::Full { .. } => true,
        Access::Range(access) => !access.ordered,
        _ => false,
    };
    // What waits, locks or ends early decides about each row while it is read.
    let plain = plan.lock.is_none()
        && level.lock.is_none()
        && level.late_filters.is_empty()
        && level.hash.is_none()
        && !(plan.late || plan.first_row_only || level.changed || level.buffered || level.ends_match);
    let many = level.rows >= MANY_ROWS || !switches.batch_execution_cost_based();
    if !(scans && plain && many && switches.batch_execution()) || plan.sources[level.table].handle().is_none() {
        return None;
    }
    let of_aggregates = grouping
        .aggregates
        .iter()
        .flat_map(|aggregate| aggregate.arguments.iter().chain(aggregate.order_by.iter().map(|(expr, _)| expr)));
    let exprs: Vec<&Expr> = level.filters.iter().chain(&grouping.keys).chain(of_aggregates).collect();
    if exprs.iter().any(|expr| expr.has_effects()) {
        return None;
    }
    let mut columns: Vec<usize> = grouping.carried.iter().map(|&(_, column)| column).collect();
    exprs.iter().for_each(|expr| expr.for_each_column(&mut |_, column| columns.push(column)));
    columns.sort_unstable();
    columns.dedup();
    Some(Box::new(VectorPlan { columns }))
}
