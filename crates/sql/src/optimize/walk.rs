//! Queries, nodes and expressions of a statement, to change them.

use crate::expr::{ColumnId, Expr, ExprKind, settle_comparisons};
use crate::logical::{Body, Node, Query, Statement};
use rauk_types::TypeKind;
use rustc_hash::FxHashMap;

/// Calls `change` on every query that stands by itself: the main one, subqueries and the parts of common tables. While it is changed, an
/// empty query stands in its place.
pub fn for_each_query(statement: &mut Statement, change: &mut dyn FnMut(&mut Query, &mut Statement)) {
    let mut at = |find: &dyn Fn(&mut Statement) -> Option<&mut Query>, statement: &mut Statement| {
        let Some(place) = find(statement) else { return };
        let mut query = std::mem::replace(place, empty());
        change(&mut query, statement);
        *find(statement).expect("the query was there") = query;
    };
    at(&main_query, statement);
    for number in 0..statement.subqueries.len() {
        at(&|statement| Some(&mut statement.subqueries[number].query), statement);
    }
    for number in 0..statement.tables.len() {
        at(&|statement| Some(&mut statement.tables[number].seed), statement);
        at(&|statement| statement.tables[number].recursive.as_mut().map(|part| &mut part.query), statement);
    }
}

pub fn empty() -> Query {
    Query { node: Node::OneRow, columns: vec![] }
}

fn main_query(statement: &mut Statement) -> Option<&mut Query> {
    match &mut statement.body {
        Body::Query(query) => Some(query),
        Body::Write(write) => write.query_mut(),
    }
}

/// Calls `visit` on the nodes right below.
pub fn for_each_input(node: &mut Node, visit: &mut dyn FnMut(&mut Node)) {
    match node {
        Node::OneRow
        | Node::Scan(_)
        | Node::Values { .. }
        | Node::CommonTable(_)
        | Node::Lateral(_)
        | Node::TableFunction(_) => {}
        Node::Filter { input, .. }
        | Node::Project { input, .. }
        | Node::Distinct { input, .. }
        | Node::Sort { input, .. } => visit(input),
        Node::Join(join) => {
            visit(&mut join.left);
            visit(&mut join.right);
        }
        Node::Derived(derived) => visit(&mut derived.query.node),
        Node::Aggregate(aggregate) => visit(&mut aggregate.input),
        Node::Window(window) => visit(&mut window.input.node),
        Node::Limit(limit) => visit(&mut limit.input),
        Node::SetOperation(operation) => {
            visit(&mut operation.left.node);
            visit(&mut operation.right.node);
        }
    }
}

/// Calls `visit` on the queries right below: derived tables, the input of windows, and the sides of set operations.
pub fn for_each_inner_query(node: &mut Node, visit: &mut dyn FnMut(&mut Query)) {
    match node {
        Node::Derived(derived) => visit(&mut derived.query),
        Node::Window(window) => visit(&mut window.input),
        Node::SetOperation(operation) => {
            visit(&mut operation.left);
            visit(&mut operation.right);
        }
        node => for_each_input(node, &mut |input| crate::stack::grow(|| for_each_inner_query(input, visit))),
    }
}

/// Calls `visit` on the expressions of this node itself.
pub fn for_each_expr(node: &mut Node, visit: &mut dyn FnMut(&mut Expr)) {
    match node {
        Node::OneRow
        | Node::Scan(_)
        | Node::CommonTable(_)
        | Node::Derived(_)
        | Node::Distinct { .. }
        | Node::SetOperation(_) => {}
        Node::Values { rows, .. } => rows.iter_mut().flatten().for_each(visit),
        Node::Lateral(lateral) => lateral.outer.iter_mut().for_each(visit),
        Node::TableFunction(function) => visit(&mut function.document),
        Node::Filter { conditions, .. } => conditions.iter_mut().for_each(visit),
        Node::Project { items, .. } => items.iter_mut().for_each(|(_, expr)| visit(expr)),
        Node::Join(join) => join.on.iter_mut().for_each(visit),
        Node::Aggregate(aggregate) => {
            aggregate.keys.iter_mut().for_each(&mut *visit);
            for (_, aggregate) in &mut aggregate.aggregates {
                aggregate.arguments.iter_mut().for_each(&mut *visit);
                aggregate.order_by.iter_mut().for_each(|(expr, _)| visit(expr));
            }
        }
        Node::Window(window) => window.for_each_expr_mut(visit),
        Node::Sort { keys, .. } => keys.iter_mut().for_each(|key| visit(&mut key.expr)),
        Node::Limit(limit) => limit.count.iter_mut().chain(&mut limit.offset).for_each(visit),
    }
}

/// Expressions that stand for columns.
pub type Substitution = FxHashMap<ColumnId, Expr>;

/// The expression with what stands for its columns in their places. A comparison of DECIMALs settles a quotient that has come there.
pub fn substituted(expr: Expr, by: &Substitution) -> Expr {
    let mut decimals = false;
    let new = expr.map(&mut |expr| {
        let ExprKind::Reference(id) = expr.kind else { return expr };
        match by.get(&id) {
            Some(new) => {
                let plain = matches!(new.kind, ExprKind::Reference(_) | ExprKind::Literal(_));
                decimals |= !plain && new.ty.kind == TypeKind::Decimal;
                Expr { nullable: expr.nullable || new.nullable, ..new.clone() }
            }
            None => expr,
        }
    });
    if decimals { settle_comparisons(new, &[]) } else { new }
}

fn substitute_in_place(expr: &mut Expr, by: &Substitution) {
    let old = std::mem::replace(expr, Expr::null());
    *expr = substituted(old, by);
}

/// What a plain column stands for; any other column for itself.
fn renamed(id: ColumnId, by: &Substitution) -> ColumnId {
    match by.get(&id) {
        None => id,
        Some(Expr { kind: ExprKind::Reference(new), .. }) => *new,
        Some(_) => unreachable!("a column that is named outside of expressions stands for a column"),
    }
}

/// Puts what stands for columns of a block in their places: in the block, and in the subqueries and common tables that read them.
pub fn substitute(query: &mut Query, statement: &mut Statement, by: &Substitution) {
    for id in &mut query.columns {
        *id = renamed(*id, by);
    }
    substitute_in_block(&mut query.node, by, false);
    for subquery in &mut statement.subqueries {
        if !subquery.outer.iter().any(|id| by.contains_key(id)) {
            continue;
        }
        for id in &mut subquery.outer {
            *id = renamed(*id, by);
        }
        substitute_in_block(&mut subquery.query.node, by, true);
    }
    for table in &mut statement.tables {
        if !table.outer.iter().any(|id| by.contains_key(id)) {
            continue;
        }
        for id in &mut table.outer {
            *id = renamed(*id, by);
        }
        substitute_in_block(&mut table.seed.node, by, true);
        if let Some(recursive) = &mut table.recursive {
            substitute_in_block(&mut recursive.query.node, by, true);
        }
    }
}

/// `deep`: in the queries that it reads too, which only see outer columns.
fn substitute_in_block(node: &mut Node, by: &Substitution, deep: bool) {
    for_each_expr(node, &mut |expr| substitute_in_place(expr, by));
    match node {
        Node::Distinct { columns, .. } => columns.iter_mut().for_each(|id| *id = renamed(*id, by)),
        Node::Lateral(lateral) => lateral.columns.iter_mut().for_each(|id| *id = renamed(*id, by)),
        Node::Derived(_) | Node::SetOperation(_) | Node::Window(_) if !deep => return,
        _ => {}
    }
    for_each_input(node, &mut |input| crate::stack::grow(|| substitute_in_block(input, by, deep)));
}

/// Whether an expression may be evaluated elsewhere, or more or less often: its value depends on its row alone, and nothing else on it.
pub fn is_movable(expr: &Expr) -> bool {
    let own = match &expr.kind {
        ExprKind::AssignVariable { .. } | ExprKind::UserVariable(_) | ExprKind::Subquery(_) | ExprKind::Deep(_) => {
            false
        }
        ExprKind::Function { function, .. } => !function.volatile,
        _ => true,
    };
    let mut movable = own;
    expr.for_each_child(&mut |child| movable = movable && is_movable(child));
    movable
}

/// Whether an expression that cannot be moved does no more than to read: by a subquery, and without SLEEP.
pub fn only_reads(expr: &Expr) -> bool {
    expr.has_subquery() && !expr.has_sleep()
}

/// Whether a condition may be checked elsewhere. Its subqueries go with it to where their rows are.
pub fn may_move(condition: &Expr) -> bool {
    let mut movable = is_movable(condition) || matches!(condition.kind, ExprKind::Subquery(_));
    if !movable && condition.waiting_call().is_none() && condition.has_subquery() {
        movable = true;
        condition.for_each_child(&mut |child| movable = movable && may_move(child));
    }
    movable
}

/// Nodes of an expression.
pub fn size(expr: &Expr) -> usize {
    let mut total = 1;
    expr.for_each_child(&mut |child| total += size(child));
    total
}
