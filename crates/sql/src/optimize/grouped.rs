//! Correlated subqueries with an aggregate that become joins with a grouped table.
//!
//! ```text
//! (SELECT AVG(x) FROM u WHERE u.a = t.a AND …)   becomes   AVG
//! of … FROM t LEFT JOIN (SELECT a, AVG(x) FROM u WHERE … GROUP BY a) ON u.a = t.a
//! ```
//! Run for each row, such a subquery reads its table as often as there are different outer values; grouped, it reads it once. So it is done where no index
//! finds the rows of one value. A row without a group has NULL for its aggregates, and 0 for COUNT.
//!
//! The subquery is one block without GROUP BY and HAVING, over tables without locks. It reads columns of the block around it only in equalities with columns of
//! its own, and in the select list beside the aggregates. What GROUP BY calls equal must be what the equality calls equal, or a row would join two groups:
//! numbers that are exact, text in its own collation, dates. An aggregate takes a plain column, so that no group raises an error that no row asked for.
//!
//! It stays as it is in the select list of a grouped block and under LIMIT (few rows may ask for it), when the block around it reads one row by a unique key,
//! and when that block locks rows.

use super::merge::{MAX_TABLES, leaves};
use super::semi::locks;
use super::walk::{
    Substitution, empty, for_each_expr, for_each_inner_query, for_each_query, is_movable, may_move, substituted,
};
use crate::expr::{
    Aggregate, AggregateFunction, ColumnId, CompareOp, Comparison, Expr, ExprKind, SubqueryId, SubqueryTest,
};
use crate::logical::{AggregateNode, Derived, Join, JoinKind, Node, Query, ScanTable, Statement};
use rauk_types::{DataType, TypeKind, Value};
use rustc_hash::{FxHashMap, FxHashSet};

pub fn pass(statement: &mut Statement) {
    if statement.switches.subquery_to_derived() && !statement.subqueries.is_empty() {
        for_each_query(statement, &mut in_query);
    }
}

fn in_query(query: &mut Query, statement: &mut Statement) {
    for_each_inner_query(&mut query.node, &mut |inner| crate::stack::grow(|| in_query(inner, statement)));
    let mut block = Block::default();
    block.look(&query.node, &mut false);
    if block.wanted.is_empty() || block.locks {
        return;
    }
    let Some(joins) = joins_of(&mut query.node) else { return };
    let mut given = Vec::new();
    joins.columns(&mut given);
    if given.is_empty() || is_one_row(joins, &block.fixed) {
        return;
    }
    let mut values: FxHashMap<SubqueryId, Expr> = FxHashMap::default();
    let shared = |id: &SubqueryId| statement.subqueries[id.0 as usize].shared;
    let wanted: Vec<SubqueryId> = block.wanted.difference(&block.refused).copied().filter(|id| !shared(id)).collect();
    for id in wanted {
        let number = id.0 as usize;
        let inner = std::mem::replace(&mut statement.subqueries[number].query, empty());
        let outer = std::mem::take(&mut statement.subqueries[number].outer);
        let plan = Plan::of(&inner, &outer, &given).filter(|_| leaves(joins) < MAX_TABLES);
        let Some(plan) = plan else {
            statement.subqueries[number].query = inner;
            statement.subqueries[number].outer = outer;
            continue;
        };
        let (table, on, value) = plan.grouped(inner, number, statement);
        let left = std::mem::replace(joins, Node::OneRow);
        *joins = Node::Join(Box::new(Join { kind: JoinKind::Left, left, right: table, on, straight: false }));
        values.insert(id, value);
    }
    if !values.is_empty() {
        put(&mut query.node, &values);
    }
}

/// What is known of a block before its subqueries are looked at.
#[derive(Default)]
struct Block {
    /// Scalar subqueries that stand where their value can be a column.
    wanted: FxHashSet<SubqueryId>,
    /// Those that stand elsewhere too.
    refused: FxHashSet<SubqueryId>,
    /// Columns that WHERE fixes to a constant.
    fixed: Vec<ColumnId>,
    locks: bool,
    limited: bool,
}

impl Block {
    /// `grouped`: a grouping has been found on the way down.
    fn look(&mut self, node: &Node, grouped: &mut bool) {
        let input = match node {
            Node::Limit(limit) => {
                self.limited = true;
                &limit.input
            }
            Node::Sort { input, .. } | Node::Distinct { input, .. } | Node::Project { input, .. } => input,
            Node::Filter { input, conditions, having } => {
                if !having {
                    conditions.iter().for_each(|condition| self.note_fixed(condition));
                }
                input
            }
            Node::Aggregate(aggregate) => {
                *grouped = true;
                &aggregate.input
            }
            joins => {
                self.locks = locks(joins);
                self.refuse_below(joins);
                return;
            }
        };
        self.look(input, grouped);
        let allowed = match node {
            Node::Filter { having, .. } => !having,
            Node::Project { .. } => !*grouped && !self.limited,
            _ => false,
        };
        node.for_each_expr(&mut |expr| self.find(expr, allowed));
    }

    fn refuse_below(&mut self, node: &Node) {
        node.for_each_expr(&mut |expr| self.find(expr, false));
        if let Node::Join(join) = node {
            crate::stack::grow(|| {
                self.refuse_below(&join.left);
                self.refuse_below(&join.right);
            });
        }
    }

    fn find(&mut self, expr: &Expr, allowed: bool) {
        if let ExprKind::Subquery(subquery) = &expr.kind {
            let scalar = matches!(subquery.test, SubqueryTest::Scalar) && !subquery.outer.is_empty();
            let list = if allowed && scalar { &mut self.wanted } else { &mut self.refused };
            list.insert(subquery.id);
        }
        expr.for_each_child(&mut |child| self.find(child, allowed));
    }

    fn note_fixed(&mut self, condition: &Expr) {
        let ExprKind::Compare { op: CompareOp::Eq, left, right, .. } = &condition.kind else { return };
        for (column, value) in [(left, right), (right, left)] {
            if let ExprKind::Reference(id) = column.kind
                && value.is_constant()
                && !value.has_subquery()
            {
                self.fixed.push(id);
            }
        }
    }
}

/// The joins of a block.
fn joins_of(node: &mut Node) -> Option<&mut Node> {
    match node {
        Node::Limit(limit) => joins_of(&mut limit.input),
        Node::Aggregate(aggregate) => joins_of(&mut aggregate.input),
        Node::Sort { input, .. }
        | Node::Distinct { input, .. }
        | Node::Project { input, .. }
        | Node::Filter { input, .. } => joins_of(input),
        Node::Values { .. } | Node::SetOperation(_) | Node::OneRow => None,
        joins => Some(joins),
    }
}

/// Whether a unique key of the only table is fixed.
fn is_one_row(joins: &Node, fixed: &[ColumnId]) -> bool {
    let Node::Scan(scan) = joins else { return false };
    scan.schema()
        .indexes
        .iter()
        .any(|index| index.is_unique() && index.parts.iter().all(|part| fixed.contains(&scan.columns[part.column])))
}

/// A subquery that can be grouped: what it is grouped by, and what that is compared with.
struct Plan {
    /// Places of the equalities among the conditions below the aggregates.
    equalities: Vec<usize>,
}

impl Plan {
    /// `given`: the columns of the block around it.
    fn of(query: &Query, outer: &[ColumnId], given: &[ColumnId]) -> Option<Plan> {
        let Node::Project { input, items } = &query.node else { return None };
        let Node::Aggregate(aggregate) = &**input else { return None };
        let plain = aggregate.keys.is_empty() && aggregate.rollup.is_none();
        if !plain || !outer.iter().all(|id| given.contains(id)) || !aggregate.aggregates.iter().all(is_simple) {
            return None;
        }
        let known = |id: &ColumnId| outer.contains(id) || aggregate.aggregates.iter().any(|(own, _)| own == id);
        let mut fits = true;
        for (_, item) in items {
            fits = fits && is_movable(item);
            item.for_each_reference(&mut |id, _| fits = fits && known(&id));
        }
        let (conditions, joins) = conditions_of(&aggregate.input);
        let mut inner = Vec::new();
        joins.columns(&mut inner);
        let mut equalities = Vec::new();
        for (number, condition) in conditions.iter().enumerate() {
            if !reads(condition, outer) {
                fits = fits && may_move(condition);
            } else {
                let (key, _) = equality(condition, outer, &inner)?;
                if is_indexed(joins, key) {
                    return None;
                }
                equalities.push(number);
            }
        }
        (fits && !equalities.is_empty() && is_plain(joins, outer)).then_some(Plan { equalities })
    }

    /// The grouped table, the condition of its join, and the expression that stands for the subquery.
    fn grouped(self, query: Query, number: usize, statement: &mut Statement) -> (Node, Vec<Expr>, Expr) {
        let Node::Project { input, items } = query.node else { unreachable!("it is a plain block") };
        let Node::Aggregate(aggregate) = *input else { unreachable!("it has an aggregate") };
        let AggregateNode { mut input, aggregates, .. } = *aggregate;
        let mut taken = Vec::new();
        take_conditions(&mut input, &mut 0, &self.equalities, &mut taken);
        let mut inner = Vec::new();
        input.columns(&mut inner);
        let mut project = Vec::new();
        let mut keys = Vec::new();
        let mut on = Vec::new();
        let mut add = |expr: &Expr, id: ColumnId, project: &mut Vec<(ColumnId, Expr)>| {
            let mut column = statement.columns.get(id).clone();
            column.nullable = true;
            let new = statement.columns.add(column);
            project.push((new, expr.clone()));
            Expr::reference(new, expr.ty, true)
        };
        for condition in taken {
            let ExprKind::Compare { op, by, left, right } = condition.kind else { unreachable!("it is an equality") };
            let own = |side: &Expr| matches!(side.kind, ExprKind::Reference(id) if inner.contains(&id));
            let (key, other) = if own(&left) { (left, right) } else { (right, left) };
            let ExprKind::Reference(id) = key.kind else { unreachable!("a group has a column") };
            let column = Box::new(add(&key, id, &mut project));
            keys.push(*key);
            let kind = ExprKind::Compare { op, by, left: column, right: other };
            on.push(Expr { kind, ty: DataType::BIGINT, nullable: true, coercibility: 5 });
        }
        let mut by = Substitution::default();
        for (id, aggregate) in &aggregates {
            let own = Expr::reference(*id, aggregate.ty, true);
            let value = add(&own, *id, &mut project);
            by.insert(*id, without_rows(value, aggregate));
        }
        let value = items.into_iter().find(|(id, _)| *id == query.columns[0]);
        let value = substituted(value.expect("a scalar subquery has a column").1, &by);
        let columns = project.iter().map(|(id, _)| *id).collect();
        let node = Node::Aggregate(Box::new(AggregateNode { input, keys, aggregates, rollup: None }));
        let query = Query { node: Node::Project { input: Box::new(node), items: project }, columns };
        let alias = format!("<group{}>", number + 2);
        let derived = Derived { alias, query, view: None, lock: None, apart: None, pushdown: None };
        (Node::Derived(Box::new(derived)), on, value)
    }
}

/// The value of an aggregate where a row has no group.
fn without_rows(value: Expr, aggregate: &Aggregate) -> Expr {
    if aggregate.function != AggregateFunction::Count {
        return value;
    }
    let ty = value.ty;
    let zero = Expr { kind: ExprKind::Literal(Value::Int(0)), ty, nullable: false, coercibility: value.coercibility };
    let coercibility = value.coercibility;
    Expr { kind: ExprKind::Coalesce(vec![value, zero]), ty, nullable: false, coercibility }
}

fn is_simple((_, aggregate): &(ColumnId, Aggregate)) -> bool {
    use AggregateFunction::{Avg, Count, Max, Min, StddevPop, StddevSamp, Sum, VarPop, VarSamp};
    let function =
        matches!(aggregate.function, Count | Sum | Min | Max | Avg | VarPop | VarSamp | StddevPop | StddevSamp);
    let plain = |expr: &Expr| matches!(expr.kind, ExprKind::Reference(_) | ExprKind::Literal(_));
    function && aggregate.order_by.is_empty() && aggregate.arguments.iter().all(plain)
}

fn reads(expr: &Expr, columns: &[ColumnId]) -> bool {
    let mut found = false;
    expr.for_each_reference(&mut |id, _| found = found || columns.contains(&id));
    found
}

/// The conditions above the joins, from the top, and the joins.
fn conditions_of(node: &Node) -> (Vec<&Expr>, &Node) {
    let mut all = Vec::new();
    let mut node = node;
    while let Node::Filter { input, conditions, having: false } = node {
        all.extend(conditions);
        node = input;
    }
    (all, node)
}

/// Takes the conditions with these numbers out, in the order of [`conditions_of`].
fn take_conditions(node: &mut Node, next: &mut usize, numbers: &[usize], out: &mut Vec<Expr>) {
    let Node::Filter { input, conditions, having: false } = node else { return };
    for condition in std::mem::take(conditions) {
        match numbers.contains(next) {
            true => out.push(condition),
            false => conditions.push(condition),
        }
        *next += 1;
    }
    take_conditions(input, next, numbers, out);
    if conditions.is_empty() {
        *node = std::mem::replace(input, Node::OneRow);
    }
}

/// An equality of a column of the subquery with something of the block around it: both sides.
fn equality<'e>(condition: &'e Expr, outer: &[ColumnId], inner: &[ColumnId]) -> Option<(ColumnId, &'e Expr)> {
    let ExprKind::Compare { op: CompareOp::Eq, by, left, right } = &condition.kind else { return None };
    [(left, right), (right, left)].into_iter().find_map(|(key, other)| {
        let ExprKind::Reference(id) = key.kind else { return None };
        let mut only = is_movable(other);
        other.for_each_reference(&mut |id, _| only = only && outer.contains(&id));
        (inner.contains(&id) && only && groups_as(*by, &key.ty)).then_some((id, &**other))
    })
}

/// Whether values of a column that `by` calls equal are one group, and those of one group are equal.
fn groups_as(by: Comparison, ty: &DataType) -> bool {
    match by {
        Comparison::Integer => true,
        Comparison::Decimal => ty.kind != TypeKind::Float && ty.kind != TypeKind::Double && ty.is_numeric(),
        Comparison::Text(collation) => ty.is_text() && ty.collation == collation,
        Comparison::DateTime => matches!(ty.kind, TypeKind::Date | TypeKind::DateTime),
        Comparison::Json => ty.kind == TypeKind::Json,
        Comparison::Double | Comparison::Bytes | Comparison::Time => false,
    }
}

/// Whether an index of a table begins with the column.
fn is_indexed(node: &Node, column: ColumnId) -> bool {
    match node {
        Node::Scan(scan) => match &scan.table {
            ScanTable::Stored(_) => {
                let first = |index: &rauk_types::IndexSchema| index.parts.first().map(|part| scan.columns[part.column]);
                scan.schema().indexes.iter().any(|index| first(index) == Some(column))
            }
            ScanTable::Virtual(_) => false,
        },
        Node::Join(join) => crate::stack::grow(|| is_indexed(&join.left, column) || is_indexed(&join.right, column)),
        _ => false,
    }
}

/// Tables without locks, and no column of the block around in anything about them.
fn is_plain(node: &Node, outer: &[ColumnId]) -> bool {
    fn reads_below(node: &Node, outer: &[ColumnId]) -> bool {
        let mut found = false;
        node.for_each_expr(&mut |expr| found = found || reads(expr, outer));
        node.for_each_input(&mut |input| found = found || crate::stack::grow(|| reads_below(input, outer)));
        found
    }
    let kind = match node {
        Node::Scan(scan) => scan.lock.is_none(),
        Node::Derived(_) => true,
        Node::CommonTable(table) => !table.working,
        Node::Join(join) => {
            !join.straight && crate::stack::grow(|| is_plain(&join.left, outer) && is_plain(&join.right, outer))
        }
        _ => false,
    };
    kind && !reads_below(node, outer)
}

/// Puts the values of subqueries in their places.
fn put(node: &mut Node, values: &FxHashMap<SubqueryId, Expr>) {
    for_each_expr(node, &mut |expr| {
        let old = std::mem::replace(expr, Expr::null());
        *expr = old.map(&mut |expr| match &expr.kind {
            ExprKind::Subquery(subquery) => match values.get(&subquery.id) {
                Some(value) => value.clone(),
                None => expr,
            },
            _ => expr,
        });
    });
    match node {
        Node::Limit(limit) => put(&mut limit.input, values),
        Node::Aggregate(aggregate) => put(&mut aggregate.input, values),
        Node::Sort { input, .. }
        | Node::Distinct { input, .. }
        | Node::Project { input, .. }
        | Node::Filter { input, .. } => put(input, values),
        _ => {}
    }
}
