//! Where a join looks up a table by key for many rows at once.
//!
//! Rows are gathered before the table, and before the outer, semi and anti joins that begin with it, since these remember
//! for one row whether it has found a match. The table is one that is read by one whole key of its primary key or of a
//! unique index, or by one range of an index, in no order, where few rows are expected for each row before; some table
//! before it may give more than one row. Of a semi or anti join the first match is enough, so that fewer are few.
//!
//! Gathering makes the steps before the table go on while rows wait behind them. So it is done only where nothing of that
//! can be seen: no table of the block is locked (locks keep their order, and LIMIT leaves rows unlocked that it does not
//! want), no expression has effects or changes from call to call, and none waits for a subquery. It is not done within an
//! outer, semi or anti join that has begun before: whether that has found a match must be known before its next row.

use super::model::{Access, KeyBatch, Level, SelectPlan, Step};
use crate::expr::{Expr, ExprKind};

/// `by_switch`: what optimizer_switch says of tables of which no hint speaks.
pub(super) fn key_batches(plan: &SelectPlan, by_switch: bool) -> Vec<KeyBatch> {
    let mut batches = Vec::new();
    if plan.late || plan.first_row_only || plan.windows().is_some() {
        return batches;
    }
    let mut several = false;
    for (at, step) in plan.steps.iter().enumerate() {
        let Step::Scan(level) = step else { continue };
        if level.lock.is_some() || !level.late_filters.is_empty() {
            return vec![];
        }
        let by_key = is_by_key(level);
        let hint = plan.sources[level.table].join_hints.batch;
        let opens = |step: &Step| matches!(step, Step::Enter { .. } | Step::Test { .. });
        let first = plan.steps[..at].iter().rposition(|step| !opens(step)).map_or(0, |last| last + 1);
        let tested = plan.steps[first..at].iter().any(|step| matches!(step, Step::Test { .. }));
        let few = level.rows <= if tested { FEW_TESTED } else { FEW };
        let fits = by_key || is_by_range(plan, level) && (few || hint == Some(true));
        if fits && hint.unwrap_or(by_switch) && !level.buffered && several && !is_inside(plan, first) {
            batches.push(KeyBatch { at: first, level: at });
        }
        several |= !by_key;
    }
    if !batches.is_empty() && any_expr(plan, &has_effects) {
        batches.clear();
    }
    batches
}

/// Whether at most one row is read by one whole key.
fn is_by_key(level: &Level) -> bool {
    match &level.access {
        Access::Primary(access) | Access::Unique(access) => {
            access.condition.tuples.is_none() && access.condition.points() == 1
        }
        _ => false,
    }
}

/// Rows of one lookup: more are found as fast by a scan of their own.
const FEW: u64 = 512;
/// The same where one of them may be enough.
const FEW_TESTED: u64 = 8;

/// Whether rows are read by one range of an index, and may be in any partition. The rows of each lookup are put in the
/// order of the index, which one of elements does not give.
fn is_by_range(plan: &SelectPlan, level: &Level) -> bool {
    let Access::Range(access) = &level.access else { return false };
    if plan.sources[level.table].schema().indexes[access.index].elements().is_some() {
        return false;
    }
    let condition = &access.condition;
    let one = condition.tuples.is_none() && condition.points() == 1 && condition.any.is_empty();
    let anywhere = access.distribution.is_none() && !access.ordered && !access.reverse;
    one && !condition.is_empty() && anywhere
}

/// Whether a step belongs to an outer, semi or anti join that begins before it.
fn is_inside(plan: &SelectPlan, at: usize) -> bool {
    plan.steps[..at].iter().any(|step| match step {
        Step::Enter { leave, .. } => at <= *leave,
        Step::Test { end, .. } => at <= *end,
        _ => false,
    })
}

fn has_effects(expr: &Expr) -> bool {
    let mut found = match &expr.kind {
        ExprKind::Function { function, .. } => function.volatile,
        ExprKind::AssignVariable { .. } => true,
        _ => false,
    };
    expr.for_each_child(&mut |child| found = found || has_effects(child));
    found
}

/// Whether one of a block's expressions has what `test` looks for.
fn any_expr(plan: &SelectPlan, test: &dyn Fn(&Expr) -> bool) -> bool {
    let any = |list: &[Expr]| list.iter().any(test);
    let step = |step: &Step| match step {
        Step::Scan(level) => {
            let mut found = any(&level.filters);
            level.access.for_each_expr(&mut |expr| found = found || test(expr));
            let hash = level.hash.iter().any(|hash| any(&hash.inner) || any(&hash.outer));
            found || hash
        }
        Step::Leave { filters, .. } => any(filters),
        Step::Enter { .. } | Step::Test { .. } | Step::Match { .. } => false,
    };
    let aggregate = |a: &crate::expr::Aggregate| any(&a.arguments) || a.order_by.iter().any(|(expr, _)| test(expr));
    plan.steps.iter().any(step)
        || plan.grouping.as_ref().is_some_and(|g| any(&g.keys) || g.aggregates.iter().any(aggregate))
        || plan.having.iter().any(test)
        || any(&plan.items)
        || plan.order.iter().any(|key| test(&key.expr))
}
