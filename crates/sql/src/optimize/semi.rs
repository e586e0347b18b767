//! Subqueries of conditions that become semi and anti joins.
//!
//! ```text
//! WHERE, or ON of an inner join           becomes        with the condition of the join
//! EXISTS (SELECT …)                       semi join      WHERE of the subquery
//! NOT EXISTS (SELECT …)                   anti join      WHERE of the subquery
//! x IN (SELECT y …), x op ANY (…)         semi join      … and x = y, x op y
//! NOT (x op ALL (SELECT y …))             semi join      … and NOT (x op y)
//! x NOT IN (SELECT y …), x op ALL (…)     anti join      … and x = y, (x op y) IS NOT TRUE
//! ```
//! A condition that is NULL drops a row as one that is false does, so IN needs no more than a match. NOT IN also drops rows when the comparison is NULL:
//! where a side can be NULL the condition of the anti join is `(x <> y) IS NOT TRUE`, which no index and no hash table finds. An uncorrelated subquery
//! then stays, since its rows are brought into a set once.
//!
//! A subquery becomes a join when it is one plain block: Project over Filter and joins. DISTINCT, ORDER BY, a LIMIT of EXISTS that is not 0, and of
//! EXISTS the select list say nothing about whether a row is there. It stays as it is
//!
//! * when it groups, limits, combines queries, locks, or reads no table; or when the block around it locks rows;
//! * when something in it may not be moved (RAND, variables), or a derived table in it reads columns of the blocks around it;
//! * when it is uncorrelated and nothing but a scan would find its rows: EXISTS, and comparisons without a common key. It is run once then.
//!
//! Inner subqueries are turned first, so that chains of them collapse. A condition of a semi join that reads the left side alone goes there.

use super::merge::{MAX_TABLES, leaves};
use super::walk::{empty, for_each_inner_query, for_each_query, is_movable, may_move};
use crate::expr::key_class;
use crate::expr::{ColumnId, CompareOp, Comparison, Expr, ExprKind, Subquery, SubqueryTest};
use crate::logical::{Join, JoinKind, Node, Query, Statement};
use rauk_types::{DataType, Value};

pub fn pass(statement: &mut Statement) {
    if statement.switches.semi_join() && !statement.subqueries.is_empty() {
        for_each_query(statement, &mut in_query);
    }
}

fn in_query(query: &mut Query, statement: &mut Statement) {
    for_each_inner_query(&mut query.node, &mut |inner| crate::stack::grow(|| in_query(inner, statement)));
    in_block(&mut query.node, statement);
}

/// Looks at WHERE and FROM of a block.
fn in_block(node: &mut Node, statement: &mut Statement) {
    match node {
        Node::Limit(limit) => in_block(&mut limit.input, statement),
        Node::Aggregate(aggregate) => in_block(&mut aggregate.input, statement),
        Node::Sort { input, .. }
        | Node::Distinct { input, .. }
        | Node::Project { input, .. }
        | Node::Filter { input, having: true, .. } => in_block(input, statement),
        Node::Filter { input, conditions, having: false } => {
            in_block(input, statement);
            // The joins stand below all conditions.
            take_in(conditions, lowest(input), statement);
            if conditions.is_empty() {
                *node = std::mem::replace(input, Node::OneRow);
            }
        }
        node => in_joins(node, statement),
    }
}

fn lowest(node: &mut Node) -> &mut Node {
    match node {
        Node::Filter { input, having: false, .. } => lowest(input),
        node => node,
    }
}

fn in_joins(node: &mut Node, statement: &mut Statement) {
    let Node::Join(join) = node else { return };
    crate::stack::grow(|| {
        in_joins(&mut join.left, statement);
        in_joins(&mut join.right, statement);
    });
    if join.kind == JoinKind::Inner {
        let mut on = std::mem::take(&mut join.on);
        take_in(&mut on, node, statement);
        let mut node = node;
        while let Node::Join(join) = node {
            if join.kind == JoinKind::Inner {
                join.on = on;
                return;
            }
            node = &mut join.left;
        }
        unreachable!("the joined tables stand below what tests them");
    }
}

/// Puts semi and anti joins above `joins` for the conditions that can be such.
fn take_in(conditions: &mut Vec<Expr>, joins: &mut Node, statement: &mut Statement) {
    if !conditions.iter().any(Expr::has_subquery) {
        return;
    }
    let mut given = Vec::new();
    joins.columns(&mut given);
    if given.is_empty() || locks(joins) {
        return;
    }
    let mut of_left = Vec::new();
    conditions.retain(|condition| {
        let Some(test) = Test::of(condition) else { return true };
        let number = test.subquery.id.0 as usize;
        if statement.subqueries[number].apart || statement.subqueries[number].shared {
            return true;
        }
        // Its own subqueries first.
        let mut query = std::mem::replace(&mut statement.subqueries[number].query, empty());
        crate::stack::grow(|| in_query(&mut query, statement));
        let outer = &statement.subqueries[number].outer;
        if leaves(joins) + leaves(&query.node) > MAX_TABLES || !test.fits(&query, outer) {
            statement.subqueries[number].query = query;
            return true;
        }
        statement.subqueries[number].outer.clear();
        let (right, mut on) = test.joined(query, statement);
        if !test.anti {
            of_left.extend(on.extract_if(.., |condition| reads_only(condition, &given)));
        }
        let left = std::mem::replace(joins, Node::OneRow);
        let kind = if test.anti { JoinKind::Anti } else { JoinKind::Semi };
        *joins = Node::Join(Box::new(Join { kind, left, right, on, straight: false }));
        false
    });
    conditions.extend(of_left);
}

/// Whether a condition of a semi join can be decided before it.
fn reads_only(condition: &Expr, columns: &[ColumnId]) -> bool {
    let mut reads = 0;
    let mut only = true;
    condition.for_each_reference(&mut |id, _| {
        reads += 1;
        only = only && columns.contains(&id);
    });
    reads > 0 && only && is_movable(condition)
}

/// Whether a table of a block is locked.
pub fn locks(node: &Node) -> bool {
    match node {
        Node::Scan(scan) => scan.lock.is_some(),
        Node::Join(join) => crate::stack::grow(|| locks(&join.left) || locks(&join.right)),
        _ => false,
    }
}

/// A condition that a semi or anti join can take over.
struct Test<'a> {
    subquery: &'a Subquery,
    anti: bool,
}

impl<'a> Test<'a> {
    fn of(condition: &'a Expr) -> Option<Test<'a>> {
        let mut negated = false;
        let mut at = condition;
        loop {
            at = match &at.kind {
                ExprKind::Not(inner) => {
                    negated = !negated;
                    inner
                }
                // NULL drops the row too, but NOT makes more of NULL than of false.
                ExprKind::IsTruth { expr, truth: true, negated: false } if !negated => expr,
                ExprKind::Subquery(subquery) => {
                    let all = match &subquery.test {
                        SubqueryTest::Exists => false,
                        SubqueryTest::Quantified { op: CompareOp::NullSafeEq, .. } => return None,
                        SubqueryTest::Quantified { all, .. } => *all,
                        SubqueryTest::Scalar | SubqueryTest::Row { .. } => return None,
                    };
                    return Some(Test { subquery, anti: all != negated });
                }
                _ => return None,
            };
        }
    }

    /// Whether the query can stand in FROM of the block.
    fn fits(&self, query: &Query, outer: &[ColumnId]) -> bool {
        let Some((items, block)) = plain(&query.node, matches!(self.subquery.test, SubqueryTest::Exists)) else {
            return false;
        };
        if outer.iter().any(|id| is_read_inside(block, *id)) {
            return false;
        }
        let correlated = !outer.is_empty();
        let SubqueryTest::Quantified { left, op, by, .. } = &self.subquery.test else { return correlated };
        let items: Vec<&Expr> = query.columns.iter().filter_map(|id| item_of(items, *id)).collect();
        if items.len() != left.len() || !left.iter().chain(items.iter().copied()).all(is_movable) {
            return false;
        }
        let membership = matches!(op, CompareOp::Eq | CompareOp::Ne);
        let keyed = || {
            let classes = by.iter().zip(left).zip(&items).map(|((by, l), r)| key_class(*by, &l.ty, &r.ty));
            classes.into_iter().all(|class| class.is_some())
        };
        let nullable = || left.iter().chain(items.iter().copied()).any(|side| side.nullable);
        correlated || membership && keyed() && !(self.anti && nullable())
    }

    /// The right side of the join, and the condition.
    fn joined(&self, query: Query, statement: &Statement) -> (Node, Vec<Expr>) {
        let Query { mut node, columns } = query;
        while let Node::Limit(_) | Node::Sort { .. } | Node::Distinct { .. } = node {
            node = match node {
                Node::Limit(limit) => limit.input,
                Node::Sort { input, .. } | Node::Distinct { input, .. } => *input,
                other => other,
            };
        }
        let Node::Project { input, items } = node else { unreachable!("it is a plain block") };
        let mut node = *input;
        let mut on = Vec::new();
        while let Node::Filter { input, conditions, .. } = node {
            on.splice(0..0, conditions);
            node = *input;
        }
        if let SubqueryTest::Quantified { left, op, by, .. } = &self.subquery.test {
            let item = |id: &ColumnId| {
                item_of(&items, *id).cloned().unwrap_or_else(|| {
                    let column = statement.columns.get(*id);
                    Expr::reference(*id, column.ty, column.nullable)
                })
            };
            let sides = left.iter().cloned().zip(columns.iter().map(item));
            let parts = by.iter().zip(sides).map(|(by, (left, right))| (*by, left, right)).collect();
            self.compare(*op, parts, &mut on);
        }
        (node, on)
    }

    /// The condition of a match: that the comparison is true; of ALL that it is false; of an anti join also that it is NULL.
    fn compare(&self, op: CompareOp, parts: Vec<(Comparison, Expr, Expr)>, on: &mut Vec<Expr>) {
        // ANY is there by a row for which the comparison holds; ALL fails by one for which it does not.
        let holds = !matches!(self.subquery.test, SubqueryTest::Quantified { all: true, .. });
        let sure = parts.iter().all(|(_, left, right)| !left.nullable && !right.nullable);
        // An anti join drops the row when the comparison is NULL as well.
        let strict = !self.anti || sure;
        let op = if holds { op } else { opposite(op) };
        let compared = parts.into_iter().map(|(by, left, right)| {
            let nullable = op != CompareOp::NullSafeEq && (left.nullable || right.nullable);
            let (left, right) = (Box::new(left), Box::new(right));
            boolean(ExprKind::Compare { op, by, left, right }, nullable)
        });
        if strict {
            on.extend(compared);
            return;
        }
        let whole = compared.reduce(|left, right| {
            let nullable = left.nullable || right.nullable;
            boolean(ExprKind::And(Box::new(left), Box::new(right)), nullable)
        });
        let whole = Box::new(whole.expect("a row has a column"));
        on.push(boolean(ExprKind::IsTruth { expr: whole, truth: false, negated: true }, false));
    }
}

fn boolean(kind: ExprKind, nullable: bool) -> Expr {
    Expr { kind, ty: DataType::BIGINT, nullable, coercibility: 5 }
}

/// The comparison that is true where `op` is false.
fn opposite(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Eq => CompareOp::Ne,
        CompareOp::Ne => CompareOp::Eq,
        CompareOp::Lt => CompareOp::Ge,
        CompareOp::Ge => CompareOp::Lt,
        CompareOp::Gt => CompareOp::Le,
        CompareOp::Le => CompareOp::Gt,
        CompareOp::NullSafeEq => unreachable!("<=> has no quantifier"),
    }
}

fn item_of(items: &[(ColumnId, Expr)], id: ColumnId) -> Option<&Expr> {
    items.iter().find(|(item, _)| *item == id).map(|(_, expr)| expr)
}

/// The select list of a plain block and what is below it. `exists`: nothing but whether there are rows counts.
fn plain(node: &Node, exists: bool) -> Option<(&[(ColumnId, Expr)], &Node)> {
    fn joins(node: &Node) -> bool {
        match node {
            Node::Scan(scan) => scan.lock.is_none(),
            Node::Derived(_) => true,
            Node::CommonTable(table) => !table.working,
            Node::Join(join) => {
                !join.straight
                    && join.on.iter().all(may_move)
                    && crate::stack::grow(|| joins(&join.left) && joins(&join.right))
            }
            _ => false,
        }
    }
    let mut node = node;
    loop {
        node = match node {
            Node::Limit(limit) if exists && limit.offset.is_none() && limit.count.as_ref().is_some_and(is_positive) => {
                &limit.input
            }
            Node::Sort { input, .. } | Node::Distinct { input, .. } => input,
            Node::Project { input, items } => {
                let block = &**input;
                let mut below = block;
                while let Node::Filter { input, conditions, having: false } = below {
                    if !conditions.iter().all(may_move) {
                        return None;
                    }
                    below = input;
                }
                // Effects of the select list come for each row that is read.
                let quiet = items.iter().all(|(_, item)| may_move(item));
                return (quiet && joins(below)).then_some((items, block));
            }
            _ => return None,
        };
    }
}

fn is_positive(count: &Expr) -> bool {
    match &count.kind {
        ExprKind::Literal(Value::Int(count)) => *count > 0,
        ExprKind::Literal(Value::UInt(count)) => *count > 0,
        _ => false,
    }
}

/// Whether a query in FROM reads a column of the blocks around: it would then read one of the tables beside it.
fn is_read_inside(node: &Node, id: ColumnId) -> bool {
    fn reads(node: &Node, id: ColumnId) -> bool {
        let mut found = false;
        node.for_each_expr(&mut |expr| expr.for_each_reference(&mut |column, _| found = found || column == id));
        node.for_each_input(&mut |input| found = found || crate::stack::grow(|| reads(input, id)));
        found
    }
    match node {
        Node::Derived(derived) => reads(&derived.query.node, id),
        node => {
            let mut found = false;
            node.for_each_input(&mut |input| found = found || crate::stack::grow(|| is_read_inside(input, id)));
            found
        }
    }
}
