//! Passes over the logical tree, between binding and lowering.
//!
//! ```text
//! common   a common table that one query reads once stands in place of its reference; one that nothing reads goes
//! sorts    ORDER BY without LIMIT in a derived table, or in a side of a set operation, goes
//! merge    a derived table that only renames, computes, filters and joins becomes part of the block around it
//! push     conditions on a derived table move into it
//! walk     what passes share: queries, nodes and expressions of a statement, to change them
//! ```
//! A pass changes the tree and keeps what the statement means; [`Statement::validate`] checks it after each. Statements without derived tables,
//! common tables and set operations have nothing to gain: for them the look at their nodes is all that is paid.
//!
//! No pass moves an expression whose value changes from row to row (RAND, UUID, assignments of variables), and none moves or copies a subquery.

mod common;
mod merge;
mod push;
mod sorts;
mod walk;

use crate::logical::{Node, Query, Statement};
use rauk_types::MysqlError;

type Pass = fn(&mut Statement);

/// In the order in which they run.
const PASSES: [(&str, Pass); 4] =
    [("common", common::pass), ("sorts", sorts::pass), ("merge", merge::pass), ("push", push::pass)];

/// Runs all passes. Errors: 1815, a pass has made a tree that cannot be.
pub(crate) fn optimize(statement: &mut Statement) -> Result<(), MysqlError> {
    watched(statement, &mut |_, _| {})
}

/// Runs all passes, and gives the statement to `watch` after each.
pub(crate) fn watched(statement: &mut Statement, watch: &mut dyn FnMut(&str, &Statement)) -> Result<(), MysqlError> {
    if !has_queries(statement) {
        return Ok(());
    }
    for (name, pass) in PASSES {
        pass(statement);
        statement.validate()?;
        watch(name, statement);
    }
    Ok(())
}

/// Whether a query of the statement reads another in FROM.
fn has_queries(statement: &Statement) -> bool {
    fn inside(node: &Node) -> bool {
        if matches!(node, Node::Derived(_) | Node::CommonTable(_) | Node::SetOperation(_)) {
            return true;
        }
        let mut found = false;
        node.for_each_input(&mut |input| found = found || crate::stack::grow(|| inside(input)));
        found
    }
    let query = |query: &Query| inside(&query.node);
    statement.main_query().is_some_and(query)
        || !statement.tables.is_empty()
        || statement.subqueries.iter().any(|subquery| query(&subquery.query))
}
