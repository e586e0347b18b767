//! Windows: a query of their own, whose rows the block above them reads.
//!
//! The calls of one partition and order are a stage. Stages run one after the other, each on the rows of the one before. Where the keys of one are
//! the first keys of another, it comes behind that one and needs no sort of its own. The first stage needs none where the block below can
//! read its rows by an index that has their order.

use super::Lowering;
use super::places::{Outer, Places};
use crate::expr::{ColumnId, Distance, Expr, ExprKind, FrameBound};
use crate::logical::{Node, Query, SortKey, WindowNode, WindowStage};
pub(super) use crate::physical::grouping::Selected;
use crate::physical::model::{Key, QueryPlan, Stage, StageCall, WindowPlan};
use rauk_types::MysqlError;

impl Lowering<'_> {
    /// All columns of the node, in its order.
    pub(super) fn window(&mut self, node: WindowNode, outer: &Outer) -> Result<QueryPlan, MysqlError> {
        let WindowNode { input, stages } = node;
        let width = input.columns.len();
        let mut places = Places::new(outer);
        places.add_table(0, &input.columns);
        let stages = in_order(stages, width);
        let first = stages.first().map(|first| first.stage.sort_keys()).unwrap_or_default();
        let node = match first.is_empty() {
            true => input.node,
            false => Node::Sort { input: Box::new(input.node), keys: first },
        };
        let mut input = self.query(Query { node, columns: input.columns }, outer)?;
        let mut by_index = false;
        if let QueryPlan::Select(block) = &mut input {
            // What no index gives is sorted here.
            by_index = block.order.is_empty();
            block.order.clear();
        }
        let mut lowered = Vec::with_capacity(stages.len());
        for (number, Ordered { stage, first_output, sorts }) in stages.into_iter().enumerate() {
            let WindowStage { partition, order, calls } = stage;
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
            for (output, (_, mut call, mut frame)) in (first_output..).zip(calls) {
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
                placed.push(StageCall { call, frame, output });
            }
            lowered.push(Stage { keys, partitions, calls: placed, sorts: sorts && !(number == 0 && by_index) });
        }
        Ok(QueryPlan::Window(Box::new(WindowPlan { input, width, stages: lowered })))
    }
}

/// A stage in the order in which stages run.
struct Ordered {
    stage: WindowStage,
    /// The column of its first call.
    first_output: usize,
    sorts: bool,
}

/// Whether rows in the order of `whole` are in that of `part`.
fn begins(part: &[SortKey], whole: &[SortKey]) -> bool {
    let same = |(a, b): (&SortKey, &SortKey)| a.expr.kind == b.expr.kind && a.descending == b.descending;
    part.len() <= whole.len() && part.iter().zip(whole).all(same)
}

/// The stages, those that need no sort right behind the one that sorts for them.
fn in_order(stages: Vec<WindowStage>, width: usize) -> Vec<Ordered> {
    let mut left = Vec::with_capacity(stages.len());
    let mut next = width;
    for stage in stages {
        let (keys, first_output) = (stage.sort_keys(), next);
        next += stage.calls.len();
        left.push((keys, Ordered { stage, first_output, sorts: false }));
    }
    let mut ordered = Vec::with_capacity(left.len());
    while let Some((first, _)) = left.first() {
        let extending = (0..left.len()).filter(|&at| begins(first, &left[at].0));
        let longest = extending.max_by_key(|&at| left[at].0.len()).expect("a stage extends itself");
        let (keys, mut head) = left.remove(longest);
        head.sorts = !keys.is_empty();
        ordered.push(head);
        let (behind, rest): (Vec<_>, Vec<_>) = left.into_iter().partition(|(other, _)| begins(other, &keys));
        ordered.extend(behind.into_iter().map(|(_, stage)| stage));
        left = rest;
    }
    ordered
}

/// What each column below the windows is in the select list, whose expressions are among `items`.
pub(super) fn selected(windows: &WindowNode, items: &[(ColumnId, Expr)], given: &[ColumnId]) -> Vec<Selected> {
    let list: Vec<&Expr> =
        given.iter().filter_map(|id| items.iter().find(|(item, _)| item == id).map(|(_, expr)| expr)).collect();
    let reads = |item: &Expr, column: ColumnId| {
        let mut found = false;
        item.for_each_reference(&mut |id, _| found |= id == column || windows.reads(id, column));
        found
    };
    let of = |column: &ColumnId| Selected {
        item: list.iter().position(|item| reads(item, *column)).map_or(list.len(), |at| at + 1),
        whole: list.iter().any(|item| item.kind == ExprKind::Reference(*column)),
    };
    windows.input.columns.iter().map(of).collect()
}
