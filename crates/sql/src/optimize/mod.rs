//! Passes over the logical tree, between binding and lowering.
//!
//! ```text
//! common   a common table that one query reads once stands in place of its reference; one that nothing reads goes
//! sorts    ORDER BY without LIMIT in a derived table, or in a side of a set operation, goes
//! merge    a derived table that only renames, computes, filters and joins becomes part of the block around it
//! semi     IN, EXISTS, ANY and ALL in conditions become semi and anti joins
//! grouped  correlated subqueries with an aggregate become joins with a grouped table
//! push     conditions on a derived table move into it
//! computed an expression that a key of its table has is that column of the key
//! walk     what passes share: queries, nodes and expressions of a statement, to change them
//! ```
//! A pass changes the tree and keeps what the statement means; [`Statement::validate`] checks it after each. Statements without derived tables,
//! common tables, set operations and subqueries have nothing to gain of the passes before `computed`: for them the look at their nodes is all that is paid.
//!
//! No pass moves an expression whose value changes from row to row (RAND, UUID, assignments of variables), and none copies a subquery.

mod common;
mod computed;
mod elements;
mod grouped;
mod merge;
mod push;
mod semi;
mod sorts;
mod walk;

use crate::logical::{Node, Query, Statement};
use rauk_types::MysqlError;

type Pass = fn(&mut Statement);

/// Of statements with several queries, in the order in which they run.
const PASSES: [(&str, Pass); 6] = [
    ("common", common::pass),
    ("sorts", sorts::pass),
    ("merge", merge::pass),
    ("semi", semi::pass),
    ("grouped", grouped::pass),
    ("push", push::pass),
];

/// Runs all passes. Errors: 1815, a pass has made a tree that cannot be.
pub(crate) fn optimize(statement: &mut Statement) -> Result<(), MysqlError> {
    watched(statement, &mut |_, _| {})
}

/// Runs all passes, and gives the statement to `watch` after each.
pub(crate) fn watched(statement: &mut Statement, watch: &mut dyn FnMut(&str, &Statement)) -> Result<(), MysqlError> {
    if has_queries(statement) {
        for (name, pass) in PASSES {
            pass(statement);
            statement.validate()?;
            watch(name, statement);
        }
    }
    if computed::pass(statement) {
        statement.validate()?;
        watch("computed", statement);
    }
    Ok(())
}

/// Whether the statement has more than one query.
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
    !statement.subqueries.is_empty() || !statement.tables.is_empty() || statement.main_query().is_some_and(query)
}
