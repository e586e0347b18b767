//! What an OR of ANDs says beside itself.
//!
//! `(a = b AND c = 1) OR (a = b AND c = 2)` holds only where `a = b` does: a conjunct of all branches becomes a condition of its
//! own, which can join tables by an index or by hash, and leaves the branches. And of
//! `(t.x = 1 AND u.y = 2) OR (t.x = 3 AND u.y = 4)` follows `t.x = 1 OR t.x = 3`, which reads one table and is checked, or found
//! in an index, before the other one is read; the OR itself stays.
//!
//! An implied condition is evaluated beside the OR that it follows from. So it is made of plain comparisons of columns with
//! constants only, whose evaluation cannot warn twice, and of branches that are few. Long ORs stay as they are.

use super::condition::tables_of;
use crate::expr::{Comparison, Expr, ExprKind};
use rauk_types::DataType;

/// Most branches of an OR, and conjuncts of a branch, that are looked at.
const MOST: usize = 32;

/// Adds what the ORs among conjuncts say. The order of the conditions stays.
pub(crate) fn factor(conditions: Vec<Expr>) -> Vec<Expr> {
    if !conditions.iter().any(|c| matches!(c.kind, ExprKind::Or(..))) {
        return conditions;
    }
    let mut out = Vec::with_capacity(conditions.len() + 2);
    for condition in conditions {
        match branches(&condition) {
            Some(branches) => split(condition, branches, &mut out),
            None => out.push(condition),
        }
    }
    out
}

/// The conjuncts of each branch; `None`: the condition is no OR of ANDs, or a long one.
fn branches(condition: &Expr) -> Option<Vec<Vec<Expr>>> {
    let mut found = Vec::new();
    if !matches!(condition.kind, ExprKind::Or(..)) || !leaves(condition, true, &mut found) {
        return None;
    }
    let mut branches = Vec::with_capacity(found.len());
    let mut wide = false;
    for branch in found {
        let mut conjuncts = Vec::new();
        if !leaves(branch, false, &mut conjuncts) {
            return None;
        }
        wide |= conjuncts.len() > 1;
        branches.push(conjuncts.into_iter().cloned().collect());
    }
    wide.then_some(branches)
}

/// Collects what an OR or an AND joins, from the left; `false`: there is too much of it.
fn leaves<'e>(expr: &'e Expr, of_or: bool, out: &mut Vec<&'e Expr>) -> bool {
    let mut pending = vec![expr];
    while let Some(expr) = pending.pop() {
        match (&expr.kind, of_or) {
            (ExprKind::Or(left, right), true) | (ExprKind::And(left, right), false) => {
                pending.push(right);
                pending.push(left);
            }
            _ => out.push(expr),
        }
        if out.len() + pending.len() > MOST {
            return false;
        }
    }
    true
}

fn split(condition: Expr, mut branches: Vec<Vec<Expr>>, out: &mut Vec<Expr>) {
    let (first, others) = branches.split_first().expect("an OR has branches");
    let common: Vec<Expr> = first
        .iter()
        .filter(|conjunct| is_repeatable(conjunct) && others.iter().all(|branch| branch.contains(conjunct)))
        .cloned()
        .collect();
    let rest = match common.is_empty() {
        true => Some(condition),
        false => {
            for branch in &mut branches {
                branch.retain(|conjunct| !common.contains(conjunct));
            }
            // A branch without a conjunct of its own is what all have in common.
            match branches.iter().all(|branch| !branch.is_empty()) {
                true => Some(any_of(&branches)),
                false => None,
            }
        }
    };
    out.extend(common);
    let Some(rest) = rest else { return };
    let tables = tables_of(&rest);
    if tables.len() > 1 {
        out.extend(tables.into_iter().filter_map(|table| implied(&branches, table)));
    }
    out.push(rest);
}

/// What the branches say of one table.
fn implied(branches: &[Vec<Expr>], table: usize) -> Option<Expr> {
    let of_table = |conjunct: &&Expr| is_plain(conjunct) && tables_of(conjunct) == [table];
    let parts: Vec<Vec<Expr>> =
        branches.iter().map(|branch| branch.iter().filter(of_table).cloned().collect()).collect();
    parts.iter().all(|part| !part.is_empty()).then(|| any_of(&parts))
}

fn any_of(branches: &[Vec<Expr>]) -> Expr {
    let joined = |kind: fn(Box<Expr>, Box<Expr>) -> ExprKind| {
        move |left: Expr, right: Expr| {
            let nullable = left.nullable || right.nullable;
            Expr { kind: kind(Box::new(left), Box::new(right)), ty: DataType::BIGINT, nullable, coercibility: 5 }
        }
    };
    let branch = |conjuncts: &Vec<Expr>| {
        conjuncts.iter().cloned().reduce(joined(ExprKind::And)).expect("a branch has a conjunct")
    };
    branches.iter().map(branch).reduce(joined(ExprKind::Or)).expect("an OR has branches")
}

/// Gives the same value however often it is evaluated, and asks no query.
fn is_repeatable(expr: &Expr) -> bool {
    fn is_steady(expr: &Expr) -> bool {
        let mut steady = match &expr.kind {
            ExprKind::Function { function, .. } => !function.volatile,
            ExprKind::AssignVariable { .. } | ExprKind::UserVariable(_) => false,
            _ => true,
        };
        expr.for_each_child(&mut |child| steady = steady && is_steady(child));
        steady
    }
    !expr.has_subquery() && is_steady(expr)
}

/// A comparison of a column with constants that converts nothing.
fn is_plain(expr: &Expr) -> bool {
    let column = |expr: &Expr| matches!(expr.kind, ExprKind::Column { .. });
    let constant = |expr: &Expr| matches!(expr.kind, ExprKind::Literal(_) | ExprKind::Parameter(_));
    let quiet = |by: Comparison| {
        matches!(by, Comparison::Integer | Comparison::Decimal | Comparison::Text(_) | Comparison::Bytes)
    };
    match &expr.kind {
        ExprKind::Compare { by, left, right, .. } => {
            quiet(*by) && (column(left) && constant(right) || constant(left) && column(right))
        }
        ExprKind::InList { expr, list, .. } => {
            column(expr) && list.iter().all(|(item, by)| constant(item) && quiet(*by))
        }
        ExprKind::Between { expr, low, low_by, high, high_by, .. } => {
            column(expr) && constant(low) && constant(high) && quiet(*low_by) && quiet(*high_by)
        }
        ExprKind::IsNull { expr, .. } => column(expr),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::CompareOp;
    use rauk_types::Value;

    fn column(table: usize, column: usize) -> Expr {
        Expr { kind: ExprKind::Column { table, column }, ty: DataType::BIGINT, nullable: false, coercibility: 2 }
    }

    fn equal(left: Expr, right: Expr) -> Expr {
        let kind = ExprKind::Compare {
            op: CompareOp::Eq,
            by: Comparison::Integer,
            left: Box::new(left),
            right: Box::new(right),
        };
        Expr { kind, ty: DataType::BIGINT, nullable: false, coercibility: 5 }
    }

    fn number(value: i64) -> Expr {
        Expr { kind: ExprKind::Literal(Value::Int(value)), ty: DataType::BIGINT, nullable: false, coercibility: 4 }
    }

    /// `table.0 = value`.
    fn is(table: usize, value: i64) -> Expr {
        equal(column(table, 0), number(value))
    }

    #[test]
    fn what_all_branches_have_is_a_condition_of_its_own() {
        let join = || equal(column(0, 1), column(1, 1));
        let condition = any_of(&[vec![join(), is(0, 1), is(1, 2)], vec![is(0, 3), join(), is(1, 4)]]);
        let rest = any_of(&[vec![is(0, 1), is(1, 2)], vec![is(0, 3), is(1, 4)]]);
        let of = |table, a, b| any_of(&[vec![is(table, a)], vec![is(table, b)]]);
        assert_eq!(factor(vec![is(2, 9), condition]), [is(2, 9), join(), of(0, 1, 3), of(1, 2, 4), rest]);
        // (a AND b) OR a is a.
        assert_eq!(factor(vec![any_of(&[vec![join(), is(0, 1)], vec![join()]])]), [join()]);
    }

    #[test]
    fn nothing_follows_from_branches_that_do_not_speak_of_a_table() {
        let condition = any_of(&[vec![is(0, 1), is(1, 2)], vec![is(0, 3)]]);
        let of_first = any_of(&[vec![is(0, 1)], vec![is(0, 3)]]);
        assert_eq!(factor(vec![condition.clone()]), [of_first, condition]);
        // One table, no AND, or too many branches: as they are.
        let one = any_of(&[vec![is(0, 1), is(0, 2)], vec![is(0, 3)]]);
        let plain = any_of(&[vec![is(0, 1)], vec![is(1, 3)]]);
        let long = any_of(&(0..100).map(|n| vec![is(0, n), is(1, n)]).collect::<Vec<_>>());
        for condition in [one, plain, long] {
            assert_eq!(factor(vec![condition.clone()]), [condition]);
        }
    }
}
