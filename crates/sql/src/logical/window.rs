//! The node of window functions.
//!
//! It keeps all columns of its input and adds one for each call. Its input is a query of its own, a projection: everything that the calls and the
//! expressions above them read is an item of it, so that partitions, orders and arguments are columns here, and grouping and HAVING lie below.

use super::{Query, SortKey};
use crate::expr::{ColumnId, Expr, ExprKind, WindowCall, WindowFrame};

pub(crate) struct WindowNode {
    pub input: Query,
    /// One for each distinct pair of PARTITION BY and ORDER BY.
    pub stages: Vec<WindowStage>,
}

pub(crate) struct WindowStage {
    /// Columns of the input.
    pub partition: Vec<Expr>,
    /// Columns of the input.
    pub order: Vec<SortKey>,
    pub calls: Vec<(ColumnId, WindowCall, WindowFrame)>,
}

impl WindowNode {
    /// The columns that this node makes.
    pub fn own_columns(&self) -> impl Iterator<Item = ColumnId> {
        self.stages.iter().flat_map(|stage| stage.calls.iter().map(|(id, ..)| *id))
    }

    /// Calls `visit` on the expressions of this node itself.
    pub fn for_each_expr<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        for stage in &self.stages {
            stage.partition.iter().for_each(&mut *visit);
            stage.order.iter().for_each(|key| visit(&key.expr));
            for (_, call, frame) in &stage.calls {
                call.arguments.iter().for_each(&mut *visit);
                frame.start.for_each_expr(visit);
                frame.end.for_each_expr(visit);
            }
        }
    }

    /// Calls `visit` on the expressions of this node itself, to change them.
    pub fn for_each_expr_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        for stage in &mut self.stages {
            stage.partition.iter_mut().for_each(&mut *visit);
            stage.order.iter_mut().for_each(|key| visit(&mut key.expr));
            for (_, call, frame) in &mut stage.calls {
                call.arguments.iter_mut().for_each(&mut *visit);
                frame.start.for_each_expr_mut(visit);
                frame.end.for_each_expr_mut(visit);
            }
        }
    }

    /// Whether all rows that differ in the column are in different partitions, for all calls: what is decided by such columns alone may be
    /// decided before.
    pub fn is_partitioned_by(&self, id: ColumnId) -> bool {
        self.stages.iter().all(|stage| stage.partition.iter().any(|key| key.kind == ExprKind::Reference(id)))
    }

    /// Whether the value of a call depends on a column.
    pub fn reads(&self, call: ColumnId, column: ColumnId) -> bool {
        let of_stage = |stage: &WindowStage| {
            let Some((_, call, _)) = stage.calls.iter().find(|(id, ..)| *id == call) else { return false };
            let keys = stage.partition.iter().chain(stage.order.iter().map(|key| &key.expr));
            let mut found = false;
            for expr in keys.chain(&call.arguments) {
                expr.for_each_reference(&mut |id, _| found |= id == column);
            }
            found
        };
        self.stages.iter().any(of_stage)
    }
}

impl WindowStage {
    /// The order in which it takes rows.
    pub fn sort_keys(&self) -> Vec<SortKey> {
        let partition = self.partition.iter().map(|expr| SortKey { expr: expr.clone(), descending: false });
        partition.chain(self.order.iter().cloned()).collect()
    }
}
