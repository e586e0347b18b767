//! Derived tables that become part of the block around them.
//!
//! A derived table whose query is Project over Filter and joins gives its joins to FROM of the block, its conditions to the place where it stood, and its
//! expressions to whoever reads its columns. It stays a table of its own when that would change an answer or cost more:
//!
//! * a hint says so, or its view (`TEMPTABLE`), or derived_merge is off and nothing says MERGE;
//! * it takes locks, fixes the order of its joins, or reads no table;
//! * one of its expressions may not move, is large, or is read several times and is not small;
//! * null rows stand for it (right side of an outer join), and an item is not a plain column of its tables: `1` would not become NULL;
//! * a subquery reads an item that is not a plain column;
//! * the block is grouped or DISTINCT, and what ONLY_FULL_GROUP_BY knows of a column would be lost with an expression in its place.
//!
//! Inner queries are merged first, so that chains of derived tables collapse. A projection of a projection, as a set operation makes them to convert its
//! columns, becomes one.

use super::walk::{
    Substitution, for_each_inner_query, for_each_input, for_each_query, is_movable, may_move, size, substitute,
    substituted,
};
use crate::expr::{ColumnId, Expr, ExprKind};
use crate::logical::{Derived, JoinKind, Node, Query, Statement};
use rauk_node::transaction::Lock;
use rustc_hash::{FxHashMap, FxHashSet};

/// Nodes of an expression that may stand in several places.
const SMALL: usize = 16;
/// Nodes of an expression that may stand in another place.
const MEDIUM: usize = 64;
pub(super) use crate::logical::MAX_TABLES;

pub fn pass(statement: &mut Statement) {
    for_each_query(statement, &mut in_query);
}

fn in_query(query: &mut Query, statement: &mut Statement) {
    for_each_inner_query(&mut query.node, &mut |inner| crate::stack::grow(|| in_query(inner, statement)));
    collapse(&mut query.node);
    if !joins_of(&mut query.node).is_some_and(|joins| has_derived(joins)) {
        return;
    }
    let mut block = Block::of(query, statement);
    let joins = joins_of(&mut query.node).expect("it was found above");
    block.tables = leaves(joins);
    let mut lifted = Vec::new();
    let old = std::mem::replace(joins, Node::OneRow);
    let merged = block.merge(old, false, &mut lifted);
    *joins = if lifted.is_empty() {
        merged
    } else {
        Node::Filter { input: Box::new(merged), conditions: lifted, having: false }
    };
    if !block.items.is_empty() {
        substitute(query, statement, &block.items);
    }
}

/// Makes one of two projections when each item of the inner one is read once, and so is evaluated as often as before.
fn collapse(node: &mut Node) {
    match node {
        Node::Limit(limit) => collapse(&mut limit.input),
        Node::Sort { input, .. } | Node::Distinct { input, .. } => collapse(input),
        Node::Project { input, items } => {
            collapse(input);
            let Node::Project { input: below, items: inner } = &mut **input else { return };
            let mut reads: FxHashMap<ColumnId, usize> = inner.iter().map(|(id, _)| (*id, 0)).collect();
            let mut plain = true;
            for (_, item) in items.iter() {
                plain = plain && !item.has_subquery();
                item.for_each_reference(&mut |id, _| *reads.entry(id).or_default() += 1);
            }
            if !plain || inner.iter().any(|(id, _)| reads[id] != 1) {
                return;
            }
            let by: Substitution = std::mem::take(inner).into_iter().collect();
            for (_, item) in items {
                *item = substituted(std::mem::replace(item, Expr::null()), &by);
            }
            **input = std::mem::replace(below, Node::OneRow);
        }
        _ => {}
    }
}

/// The joins of a block that has a projection.
fn joins_of(node: &mut Node) -> Option<&mut Node> {
    match node {
        Node::Limit(limit) => joins_of(&mut limit.input),
        Node::Sort { input, .. } | Node::Distinct { input, .. } => joins_of(input),
        Node::Project { input, .. } => Some(below_project(input)),
        _ => None,
    }
}

fn below_project(node: &mut Node) -> &mut Node {
    match node {
        Node::Filter { input, .. } => below_project(input),
        Node::Aggregate(aggregate) => below_project(&mut aggregate.input),
        node => node,
    }
}

fn has_derived(node: &Node) -> bool {
    match node {
        Node::Derived(_) => true,
        Node::Join(join) => has_derived(&join.left) || crate::stack::grow(|| has_derived(&join.right)),
        _ => false,
    }
}

/// The tables of a block, or of a part of one.
pub fn leaves(node: &Node) -> usize {
    match node {
        Node::Join(join) => crate::stack::grow(|| leaves(&join.left) + leaves(&join.right)),
        Node::Limit(limit) => leaves(&limit.input),
        Node::Filter { input, .. }
        | Node::Project { input, .. }
        | Node::Sort { input, .. }
        | Node::Distinct { input, .. } => leaves(input),
        _ => 1,
    }
}

/// What is known of a block while its derived tables are merged.
struct Block {
    /// Places that read a column.
    reads: FxHashMap<ColumnId, usize>,
    /// Columns that conditions read.
    in_conditions: FxHashSet<ColumnId>,
    /// Columns that subqueries of the block read.
    in_subqueries: FxHashSet<ColumnId>,
    grouped: bool,
    /// DISTINCT, or HAVING without grouping: which look for expressions in the select list.
    compares_items: bool,
    tables: usize,
    /// derived_merge is off: what no hint speaks of stays a table.
    keeps: bool,
    /// Columns of merged tables, and what stands for them.
    items: Substitution,
}

impl Block {
    fn of(query: &Query, statement: &Statement) -> Block {
        let mut block = Block {
            reads: FxHashMap::default(),
            in_conditions: FxHashSet::default(),
            in_subqueries: statement.subqueries.iter().flat_map(|subquery| &subquery.outer).copied().collect(),
            grouped: false,
            compares_items: false,
            tables: 0,
            keeps: !statement.switches.derived_merge(),
            items: Substitution::default(),
        };
        let mut having = false;
        block.note(&query.node, &mut having);
        block.compares_items |= having && !block.grouped;
        block
    }

    fn note(&mut self, node: &Node, having: &mut bool) {
        let condition = matches!(node, Node::Filter { having: false, .. } | Node::Join(_));
        match node {
            Node::Aggregate(_) => self.grouped = true,
            Node::Distinct { .. } => self.compares_items = true,
            Node::Filter { having: true, .. } => *having = true,
            _ => {}
        }
        node.for_each_expr(&mut |expr| {
            expr.for_each_reference(&mut |id, _| {
                *self.reads.entry(id).or_default() += 1;
                if condition {
                    self.in_conditions.insert(id);
                }
            });
        });
        if !matches!(node, Node::Derived(_) | Node::SetOperation(_) | Node::Window(_)) {
            node.for_each_input(&mut |input| crate::stack::grow(|| self.note(input, having)));
        }
    }

    /// The joins with what they can take in of derived tables. `null_rows`: on the right side of an outer join. Conditions of merged tables
    /// are lifted to the next condition above them.
    fn merge(&mut self, node: Node, null_rows: bool, lifted: &mut Vec<Expr>) -> Node {
        crate::stack::grow(|| match node {
            Node::Join(mut join) => {
                let left = std::mem::replace(&mut join.left, Node::OneRow);
                let right = std::mem::replace(&mut join.right, Node::OneRow);
                let mut below = Vec::new();
                match join.kind {
                    JoinKind::Inner => {
                        join.left = self.merge(left, null_rows, &mut below);
                        join.right = self.merge(right, null_rows, &mut below);
                    }
                    JoinKind::Left | JoinKind::Semi | JoinKind::Anti => {
                        join.left = self.merge(left, null_rows, lifted);
                        join.right = self.merge(right, true, &mut below);
                    }
                }
                join.on.splice(0..0, below);
                Node::Join(join)
            }
            Node::Derived(derived) => self.merge_derived(*derived, null_rows, lifted),
            other => other,
        })
    }

    fn merge_derived(&mut self, mut derived: Derived, null_rows: bool, lifted: &mut Vec<Expr>) -> Node {
        let lock = derived.lock.take();
        let apart = derived.apart.unwrap_or(self.keeps);
        let tables = match plain(&derived.query) {
            Some(tables)
                if !apart && self.tables + tables - 1 <= MAX_TABLES && self.fits(&derived.query, null_rows) =>
            {
                tables
            }
            _ => {
                lock_tables(&mut derived.query.node, lock);
                return Node::Derived(Box::new(derived));
            }
        };
        self.tables += tables - 1;
        let Node::Project { input, items } = derived.query.node else { unreachable!("it is a plain block") };
        self.items.extend(items);
        let mut node = *input;
        let mut conditions = Vec::new();
        while let Node::Filter { input, conditions: list, .. } = node {
            conditions.splice(0..0, list);
            node = *input;
        }
        lifted.extend(conditions);
        lock_tables(&mut node, lock);
        node
    }

    /// Whether each item may stand wherever the block reads it.
    fn fits(&self, query: &Query, null_rows: bool) -> bool {
        let Node::Project { input, items } = &query.node else { return false };
        let mut own = Vec::new();
        input.columns(&mut own);
        items.iter().all(|(id, expr)| {
            if !is_movable(expr) {
                return false;
            }
            if matches!(expr.kind, ExprKind::Reference(column) if own.contains(&column)) {
                return true;
            }
            let reads = self.reads.get(id).copied().unwrap_or(0);
            let size = size(expr);
            let stays = null_rows
                || self.in_subqueries.contains(id)
                || self.compares_items
                || self.grouped && self.in_conditions.contains(id);
            !stays && (size <= SMALL || reads <= 1 && size <= MEDIUM)
        })
    }
}

/// Gives the lock that is asked of a view to the tables of its block, and of those of views that it reads.
fn lock_tables(node: &mut Node, lock: Lock) {
    match node {
        _ if lock.is_none() => {}
        Node::Scan(scan) => scan.lock = lock,
        Node::Derived(derived) if derived.view.is_none() => {}
        node => for_each_input(node, &mut |input| crate::stack::grow(|| lock_tables(input, lock))),
    }
}

/// The number of tables of a query that is Project over Filter and joins, and that may be part of another block.
fn plain(query: &Query) -> Option<usize> {
    fn joins(node: &Node) -> bool {
        match node {
            Node::Scan(scan) => scan.lock.is_none(),
            Node::CommonTable(_) | Node::Derived(_) | Node::Lateral(_) => true,
            Node::Join(join) => {
                !join.straight
                    && join.on.iter().all(may_move)
                    && crate::stack::grow(|| joins(&join.left) && joins(&join.right))
            }
            _ => false,
        }
    }
    let Node::Project { input, .. } = &query.node else { return None };
    let mut node = &**input;
    while let Node::Filter { input, conditions, having: false } = node {
        if !conditions.iter().all(may_move) {
            return None;
        }
        node = input;
    }
    joins(node).then(|| leaves(node))
}
