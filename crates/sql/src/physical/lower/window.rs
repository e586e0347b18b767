//! Windows: a query of their own, whose rows the block above them reads.
//!
//! The calls of one partition and order are a stage. Stages run one after the other, each on the rows of the one before. Where the keys of one are
//! the first keys of another, it comes behind that one and needs no sort of its own.

use super::Lowering;
use super::places::{Outer, Places};
use crate::expr::{Distance, Expr, ExprKind, FrameBound};
use crate::logical::{WindowNode, WindowStage};
use crate::physical::model::{Key, QueryPlan, Stage, StageCall, WindowPlan};
use rauk_types::MysqlError;

impl Lowering<'_> {
    /// All columns of the node, in its order.
    pub(super) fn window(&mut self, node: WindowNode, outer: &Outer) -> Result<QueryPlan, MysqlError> {
        let WindowNode { input, stages } = node;
        let width = input.columns.len();
        let mut places = Places::new(outer);
        places.add_table(0, &input.columns);
        let input = self.query(input, outer)?;
        let mut lowered = Vec::with_capacity(stages.len());
        let mut next = width;
        for WindowStage { partition, order, calls } in stages {
            let mut keys = Vec::with_capacity(partition.len() + order.len());
            let partitions = partition.len();
            let partition = partition.into_iter().map(|expr| (expr, false));
            for (expr, descending) in partition.chain(order.into_iter().map(|key| (key.expr, key.descending))) {
                let expr = places.place(expr)?;
                let ExprKind::Column { column, .. } = expr.kind else {
                    return Err(MysqlError::new(1815, "Internal error: the key of a window is no column"));
                };
                keys.push(Key { column, ty: expr.ty, descending });
            }
            let mut placed = Vec::with_capacity(calls.len());
            for (_, mut call, mut frame) in calls {
                call.arguments = places.place_all(call.arguments)?;
                for bound in [&mut frame.start, &mut frame.end] {
                    if let FrameBound::Distance { by, .. } = bound {
                        let (amount, moved) = match by {
                            Distance::Number(number) => (number, None),
                            Distance::Interval { amount, moved, .. } => (amount, Some(moved)),
                        };
                        for expr in std::iter::once(amount).chain(moved) {
                            *expr = places.place(std::mem::replace(expr, Expr::null()))?;
                        }
                    }
                }
                placed.push(StageCall { call, frame, output: next });
                next += 1;
            }
            lowered.push(Stage { keys, partitions, calls: placed, sorts: true });
        }
        Ok(QueryPlan::Window(Box::new(WindowPlan { input, width, stages: in_order(lowered) })))
    }
}

/// Whether rows in the order of `whole` are in that of `part`.
fn begins(part: &[Key], whole: &[Key]) -> bool {
    let same = |(a, b): (&Key, &Key)| a.column == b.column && a.descending == b.descending;
    part.len() <= whole.len() && part.iter().zip(whole).all(same)
}

/// The stages, those that need no sort right behind the one that has sorted for them.
fn in_order(mut stages: Vec<Stage>) -> Vec<Stage> {
    let mut ordered: Vec<Stage> = Vec::with_capacity(stages.len());
    while let Some(first) = stages.first() {
        let extends = |stage: &Stage| begins(&first.keys, &stage.keys);
        let longest = (0..stages.len()).filter(|&at| extends(&stages[at])).max_by_key(|&at| stages[at].keys.len());
        let head = stages.remove(longest.expect("a stage extends itself"));
        let (mut behind, rest): (Vec<Stage>, Vec<Stage>) =
            stages.into_iter().partition(|stage| begins(&stage.keys, &head.keys));
        stages = rest;
        ordered.push(Stage { sorts: !head.keys.is_empty(), ..head });
        behind.iter_mut().for_each(|stage| stage.sorts = false);
        ordered.append(&mut behind);
    }
    ordered
}
