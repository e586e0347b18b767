//! ORDER BY without LIMIT orders nothing where another operator reads the rows.
//!
//! It stays where the order is visible: in a derived table that a block without grouping, DISTINCT or ORDER BY of its own reads alone (MySQL hands the
//! order on there), and where an expression with an effect may see in which order rows come.

use super::walk::{for_each_inner_query, for_each_query, is_movable, only_reads};
use crate::logical::{Node, Query, Statement};

pub fn pass(statement: &mut Statement) {
    for_each_query(statement, &mut |query, _| in_query(query));
}

fn in_query(query: &mut Query) {
    let kept = matches!(below_project(&query.node), Some(Node::Derived(_))) || has_effects(&query.node);
    in_node(&mut query.node, kept);
    for_each_inner_query(&mut query.node, &mut |inner| crate::stack::grow(|| in_query(inner)));
}

/// What a block without any other operator projects.
fn below_project(node: &Node) -> Option<&Node> {
    match node {
        Node::Limit(limit) => below_project(&limit.input),
        Node::Project { input, .. } => {
            let mut input = &**input;
            while let Node::Filter { input: below, having: false, .. } = input {
                input = below;
            }
            Some(input)
        }
        _ => None,
    }
}

/// Whether an expression of the block, the queries in its FROM left out, does more than to give a value.
fn has_effects(node: &Node) -> bool {
    let mut found = false;
    node.for_each_expr(&mut |expr| found = found || (!is_movable(expr) && !only_reads(expr)));
    if !matches!(node, Node::Derived(_) | Node::SetOperation(_) | Node::Window(_)) {
        node.for_each_input(&mut |input| found = found || crate::stack::grow(|| has_effects(input)));
    }
    found
}

/// `kept`: the order of a derived table is visible.
fn in_node(node: &mut Node, kept: bool) {
    match node {
        Node::Derived(derived) => {
            if !kept {
                drop_sort(&mut derived.query);
            }
        }
        Node::Window(_) => {}
        Node::SetOperation(operation) => {
            drop_sort(&mut operation.left);
            drop_sort(&mut operation.right);
        }
        node => super::walk::for_each_input(node, &mut |input| crate::stack::grow(|| in_node(input, kept))),
    }
}

fn drop_sort(query: &mut Query) {
    if let Node::Sort { input, .. } = &mut query.node
        && !has_effects(input)
    {
        query.node = std::mem::replace(input, Node::OneRow);
    }
}
