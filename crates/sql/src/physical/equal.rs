//! Columns that equalities make equal, and what follows from them.
//!
//! `a.x = b.x AND b.x = c.x` says `a.x = c.x` too, so that `c` may be joined behind `a`, by an index on `x`. Columns that are
//! equal form a class. Of a class with few columns the equalities that were not written are added to the conditions; then
//! each two tables have their own. Only some of them are checked: as each table is placed, those that connect columns
//! which are not connected yet. The others are true.
//!
//! Equalities that compare differently, as numbers and as texts, form classes of their own: equality is transitive only
//! where values are equal by their keys.

use super::condition;
use crate::expr::{Comparison, Expr, ExprKind};
use rauk_types::DataType;

/// Classes of more columns are left as they were written.
const MOST_COLUMNS: usize = 16;

/// A column as equalities compare it.
struct Node {
    table: usize,
    column: Expr,
    by: Comparison,
    key: DataType,
    /// The class: the first node of it.
    class: usize,
    /// Those that were checked to be equal have the same number.
    connected: usize,
}

/// The classes of the conditions of a pool.
#[derive(Default)]
pub(super) struct Classes {
    nodes: Vec<Node>,
    /// Of each condition: the nodes that it connects. Empty when nothing follows.
    pairs: Vec<Option<(usize, usize)>>,
}

impl Classes {
    /// Finds the classes, and adds what follows from the conditions to them.
    pub fn new(conditions: &mut Vec<Expr>) -> Classes {
        let mut classes = Classes::default();
        for condition in conditions.iter() {
            let pair = classes.pair(condition);
            classes.pairs.push(pair);
        }
        // Two columns say nothing more.
        let wide = |of: usize| classes.nodes.iter().filter(|node| node.class == of).count() > 2;
        if !(0..classes.nodes.len()).any(wide) {
            return Classes::default();
        }
        classes.add_implied(conditions);
        classes
    }

    /// The nodes of an equality between columns of two tables.
    fn pair(&mut self, condition: &Expr) -> Option<(usize, usize)> {
        let ExprKind::Compare { by, .. } = condition.kind else { return None };
        let (left, right, key) = condition::equality(condition)?;
        let (ExprKind::Column { table: a, .. }, ExprKind::Column { table: b, .. }) = (&left.kind, &right.kind) else {
            return None;
        };
        if a == b {
            return None;
        }
        let (left, right) = (self.node(*a, left, by, key), self.node(*b, right, by, key));
        let (to, from) = (self.nodes[left].class, self.nodes[right].class);
        self.nodes.iter_mut().filter(|node| node.class == from).for_each(|node| node.class = to);
        Some((left, right))
    }

    fn node(&mut self, table: usize, column: &Expr, by: Comparison, key: DataType) -> usize {
        let same = |node: &Node| node.column.kind == column.kind && node.by == by && node.key == key;
        self.nodes.iter().position(same).unwrap_or_else(|| {
            let at = self.nodes.len();
            self.nodes.push(Node { table, column: column.clone(), by, key, class: at, connected: at });
            at
        })
    }

    fn add_implied(&mut self, conditions: &mut Vec<Expr>) {
        for first in 0..self.nodes.len() {
            let class = self.nodes[first].class;
            let members = self.nodes.iter().filter(|node| node.class == class).count();
            if !(3..=MOST_COLUMNS).contains(&members) {
                continue;
            }
            // What a condition of this class looks like.
            let known = |pair: &Option<(usize, usize)>| pair.is_some_and(|(left, _)| self.nodes[left].class == class);
            let pattern = self.pairs.iter().position(known).expect("a class comes from an equality");
            let pattern = conditions[pattern].clone();
            for second in first + 1..self.nodes.len() {
                let (left, right) = (&self.nodes[first], &self.nodes[second]);
                let written = |pair: &(usize, usize)| *pair == (first, second) || *pair == (second, first);
                let is_new = !self.pairs.iter().flatten().any(written);
                if right.class != class || left.table == right.table || !is_new {
                    continue;
                }
                let ExprKind::Compare { op, by, .. } = pattern.kind else { unreachable!("it is an equality") };
                let nullable = left.column.nullable || right.column.nullable;
                let (left, right) = (Box::new(left.column.clone()), Box::new(right.column.clone()));
                let kind = ExprKind::Compare { op, by, left, right };
                conditions.push(Expr { kind, nullable, ..pattern.clone() });
                self.pairs.push(Some((first, second)));
            }
        }
    }

    /// The column of a table, as a node, that a condition makes equal to another table's.
    pub fn column_of(&self, condition: usize, table: usize) -> Option<usize> {
        let (left, right) = (*self.pairs.get(condition)?)?;
        [left, right].into_iter().find(|node| self.nodes[*node].table == table)
    }

    /// Notes that a condition is checked; `false`: it is true already.
    pub fn connect(&mut self, condition: usize) -> bool {
        let Some((left, right)) = self.pairs.get(condition).copied().flatten() else { return true };
        let (to, from) = (self.nodes[left].connected, self.nodes[right].connected);
        self.nodes.iter_mut().filter(|node| node.connected == from).for_each(|node| node.connected = to);
        to != from
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::CompareOp;

    fn column(table: usize, column: usize) -> Expr {
        Expr { kind: ExprKind::Column { table, column }, ty: DataType::BIGINT, nullable: false, coercibility: 2 }
    }

    fn equal(left: (usize, usize), right: (usize, usize)) -> Expr {
        let (left, right) = (Box::new(column(left.0, left.1)), Box::new(column(right.0, right.1)));
        let kind = ExprKind::Compare { op: CompareOp::Eq, by: Comparison::Integer, left, right };
        Expr { kind, ..column(0, 0) }
    }

    #[test]
    fn what_is_not_written_follows() {
        let mut conditions = vec![equal((0, 1), (1, 1)), equal((2, 5), (1, 1)), equal((0, 9), (1, 9))];
        let mut classes = Classes::new(&mut conditions);
        assert_eq!(conditions.len(), 4);
        assert_eq!(conditions[3], equal((0, 1), (2, 5)));
        // With the first and the last one checked, the second is true; the class of two columns stays.
        assert!(classes.connect(0) && classes.connect(3) && !classes.connect(1) && classes.connect(2));
        assert_eq!(classes.column_of(0, 0), classes.column_of(3, 0));
        assert_ne!(classes.column_of(0, 0), classes.column_of(2, 0));
        assert_eq!(classes.column_of(3, 1), None);
    }

    #[test]
    fn two_columns_of_a_table_are_both_checked() {
        let mut conditions = vec![equal((0, 1), (1, 1)), equal((1, 1), (0, 2))];
        let mut classes = Classes::new(&mut conditions);
        assert_eq!(conditions.len(), 2, "a condition on one table is not added");
        assert!(classes.connect(0) && classes.connect(1));
    }

    #[test]
    fn where_nothing_follows_nothing_is_kept() {
        let other = Expr { kind: ExprKind::IsNull { expr: Box::new(column(0, 1)), negated: true }, ..column(0, 0) };
        let mut conditions = vec![equal((0, 1), (1, 1)), other, equal((0, 2), (1, 3))];
        let mut classes = Classes::new(&mut conditions);
        assert_eq!((conditions.len(), classes.nodes.len()), (3, 0));
        assert!(classes.connect(0) && classes.connect(0));
        // A class of many columns keeps what was written.
        let mut chain: Vec<Expr> = (1..40).map(|at| equal((at - 1, 0), (at, 0))).collect();
        Classes::new(&mut chain);
        assert_eq!(chain.len(), 39);
    }
}
