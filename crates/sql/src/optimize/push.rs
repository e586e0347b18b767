//! Conditions on a derived table, moved into it.
//!
//! A condition of WHERE, or of an inner join, that reads columns of one derived table only can be decided before its rows are kept:
//!
//! * through a projection: what stands for the columns takes their places;
//! * through a set operation: into both sides;
//! * through grouping: only when all its columns are keys; through DISTINCT: always. Values that are equal there and differ for the condition (by
//!   their collation) are one row only as long as the condition comes later, so text must be compared as it was grouped;
//! * through windows: only when all its columns are keys of the partitions of all of them, compared as they are there;
//! * not through LIMIT, which counts rows.
//!
//! The rows of the right side of an outer join are null rows for WHERE: only its ON may move there.

use super::walk::{Substitution, for_each_inner_query, for_each_query, is_movable, only_reads, size, substituted};
use crate::expr::{ColumnId, Comparison, Expr, ExprKind};
use crate::logical::{Derived, JoinKind, Node, Query, Statement};
use rauk_types::{Collation, DataType};

/// Nodes of a condition that is moved.
const LARGE: usize = 256;

pub fn pass(statement: &mut Statement) {
    let by_switch = statement.switches.condition_pushdown();
    for_each_query(statement, &mut |query, _| in_query(query, by_switch));
}

/// Outer queries first: what moves into a derived table may move on from there.
fn in_query(query: &mut Query, by_switch: bool) {
    let keep = is_grouped(&query.node);
    in_block(&mut query.node, Way { keep, by_switch });
    for_each_inner_query(&mut query.node, &mut |inner| crate::stack::grow(|| in_query(inner, by_switch)));
}

/// How conditions of a block move.
#[derive(Clone, Copy)]
struct Way {
    /// They stay as well.
    keep: bool,
    /// What optimizer_switch says, where no hint does.
    by_switch: bool,
}

/// Whether a block is grouped: its conditions say which columns have one value a group, and stay as well.
fn is_grouped(node: &Node) -> bool {
    match node {
        Node::Aggregate(_) => true,
        Node::Limit(limit) => is_grouped(&limit.input),
        Node::Sort { input, .. }
        | Node::Distinct { input, .. }
        | Node::Project { input, .. }
        | Node::Filter { input, having: true, .. } => is_grouped(input),
        _ => false,
    }
}

fn in_block(node: &mut Node, way: Way) {
    match node {
        Node::Filter { input, conditions, having: false } => {
            conditions.retain(|condition| !offer(input, condition, way) || way.keep);
            let empty = conditions.is_empty();
            in_block(input, way);
            if empty {
                *node = std::mem::replace(input, Node::OneRow);
            }
        }
        Node::Join(join) => crate::stack::grow(|| {
            let join = &mut **join;
            match join.kind {
                JoinKind::Inner => {
                    let (left, right) = (&mut join.left, &mut join.right);
                    join.on
                        .retain(|condition| !(offer(left, condition, way) || offer(right, condition, way)) || way.keep);
                }
                JoinKind::Left | JoinKind::Semi | JoinKind::Anti => {
                    join.on.retain(|condition| !offer(&mut join.right, condition, way) || way.keep)
                }
            }
            in_block(&mut join.left, way);
            in_block(&mut join.right, way);
        }),
        Node::Derived(_) | Node::SetOperation(_) | Node::Window(_) => {}
        node => super::walk::for_each_input(node, &mut |input| in_block(input, way)),
    }
}

/// Moves the condition into the derived table that it reads; `false`: it must stay.
fn offer(node: &mut Node, condition: &Expr, way: Way) -> bool {
    match node {
        Node::Filter { input, having: false, .. } => offer(input, condition, way),
        Node::Join(join) => crate::stack::grow(|| {
            offer(&mut join.left, condition, way)
                || join.kind == JoinKind::Inner && offer(&mut join.right, condition, way)
        }),
        Node::Derived(derived) => derived.pushdown.unwrap_or(way.by_switch) && into_derived(derived, condition),
        _ => false,
    }
}

fn into_derived(derived: &mut Derived, condition: &Expr) -> bool {
    let mut columns = 0;
    let mut own = true;
    condition.for_each_reference(&mut |id, _| {
        columns += 1;
        own = own && derived.query.columns.contains(&id);
    });
    let moves = columns > 0 && own && is_movable(condition) && takes(&derived.query.node, condition);
    if moves {
        put(&mut derived.query.node, condition.clone());
    }
    moves
}

fn columns_of(condition: &Expr) -> Vec<ColumnId> {
    let mut columns = Vec::new();
    condition.for_each_reference(&mut |id, _| columns.push(id));
    columns
}

fn by_items(items: &[(ColumnId, Expr)]) -> Substitution {
    items.iter().cloned().collect()
}

/// The columns of one side of a set operation in the places of those of the operation.
fn by_side(columns: &[ColumnId], side: &Query, condition: &Expr) -> Substitution {
    let mut by = Substitution::default();
    condition.for_each_reference(&mut |id, reference| {
        if let Some(at) = columns.iter().position(|column| *column == id) {
            by.insert(id, Expr { kind: ExprKind::Reference(side.columns[at]), ..reference.clone() });
        }
    });
    by
}

/// Whether rows that are equal in these values are alike for the condition.
fn respects_equality(condition: &Expr) -> bool {
    fn exact(ty: &DataType) -> bool {
        !ty.is_text() || ty.collation == Collation::Binary
    }
    let mut texts = false;
    condition.for_each_reference(&mut |_, column| texts |= !exact(&column.ty));
    if !texts {
        return true;
    }
    match &condition.kind {
        ExprKind::Compare { by: Comparison::Text(collation), left, right, .. } => {
            let plain = |expr: &Expr| match expr.kind {
                ExprKind::Reference(_) => expr.ty.collation == *collation,
                _ => expr.is_constant(),
            };
            plain(left) && plain(right)
        }
        ExprKind::IsNull { expr, .. } => matches!(expr.kind, ExprKind::Reference(_)),
        _ => false,
    }
}

/// Whether a query takes a condition on its columns in.
fn takes(node: &Node, condition: &Expr) -> bool {
    crate::stack::grow(|| match node {
        Node::Sort { input, .. } => takes(input, condition),
        Node::Distinct { input, .. } => respects_equality(condition) && takes(input, condition),
        Node::Window(window) => {
            let read = columns_of(condition);
            let partitioned = read.iter().all(|id| window.is_partitioned_by(*id));
            partitioned && respects_equality(condition) && takes(&window.input.node, condition)
        }
        Node::SetOperation(operation) => {
            let side = |side: &Query| {
                takes(&side.node, &substituted(condition.clone(), &by_side(&operation.columns, side, condition)))
            };
            respects_equality(condition) && side(&operation.left) && side(&operation.right)
        }
        Node::Project { input, items } => {
            let read = columns_of(condition);
            let movable = items.iter().filter(|(id, _)| read.contains(id)).all(|(_, expr)| is_movable(expr));
            // Effects of other items come for as many rows as before.
            let quiet = items.iter().all(|(_, expr)| is_movable(expr) || only_reads(expr));
            if !movable || !quiet {
                return false;
            }
            let inner = substituted(condition.clone(), &by_items(items));
            size(&inner) <= LARGE && below_project(input, &inner)
        }
        _ => false,
    })
}

fn below_project(node: &Node, condition: &Expr) -> bool {
    match node {
        Node::Filter { input, having: true, .. } => below_project(input, condition),
        Node::Aggregate(aggregate) => {
            let is_key = |id: &ColumnId| aggregate.keys.iter().any(|key| key.kind == ExprKind::Reference(*id));
            let read = columns_of(condition);
            aggregate.rollup.is_none() && !read.is_empty() && read.iter().all(is_key) && respects_equality(condition)
        }
        Node::Filter { having: false, .. }
        | Node::OneRow
        | Node::Scan(_)
        | Node::Join(_)
        | Node::Derived(_)
        | Node::CommonTable(_) => true,
        node => takes(node, condition),
    }
}

/// Puts a condition where [`takes`] has found that it may stand.
fn put(node: &mut Node, condition: Expr) {
    crate::stack::grow(|| match node {
        Node::Sort { input, .. } | Node::Distinct { input, .. } => put(input, condition),
        Node::Window(window) => put(&mut window.input.node, condition),
        Node::SetOperation(operation) => {
            let left = substituted(condition.clone(), &by_side(&operation.columns, &operation.left, &condition));
            let right = by_side(&operation.columns, &operation.right, &condition);
            put(&mut operation.right.node, substituted(condition, &right));
            put(&mut operation.left.node, left);
        }
        Node::Project { input, items } => put_below_project(input, substituted(condition, &by_items(items))),
        _ => unreachable!("no other node takes a condition in"),
    });
}

fn put_below_project(node: &mut Node, condition: Expr) {
    match node {
        Node::Filter { input, having: true, .. } => put_below_project(input, condition),
        Node::Aggregate(aggregate) => put_below_project(&mut aggregate.input, condition),
        Node::Filter { conditions, having: false, .. } => conditions.push(condition),
        Node::Sort { .. } | Node::Distinct { .. } | Node::SetOperation(_) | Node::Window(_) | Node::Project { .. } => {
            put(node, condition)
        }
        node => {
            let input = Box::new(std::mem::replace(node, Node::OneRow));
            *node = Node::Filter { input, conditions: vec![condition], having: false };
        }
    }
}
