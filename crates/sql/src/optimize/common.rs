//! Common tables that are read once, in place of their references.
//!
//! A table that a query reads once need not be kept: it becomes a derived table there, and the other passes see through it. It stays a common table
//! where its query would then run more often: in a subquery with outer columns, or in the recursive part of another table. So
//! does one that reads outer columns. A table that nothing
//! reads goes.

use super::walk::{Substitution, empty, for_each_input, for_each_query, substitute};
use crate::expr::Expr;
use crate::logical::{CommonTableScan, Derived, Node, Query, Statement};

/// Where the references to a common table are.
#[derive(Default)]
struct References {
    count: usize,
    /// One of them is in a query that may run several times.
    repeated: bool,
}

pub fn pass(statement: &mut Statement) {
    // A table reads those before it, so that the last one goes first to where it is read.
    for number in (0..statement.tables.len()).rev() {
        if statement.tables[number].recursive.is_some() || !statement.tables[number].outer.is_empty() {
            continue;
        }
        let references = references(statement, number);
        if references.count == 1 && !references.repeated {
            put_in_place(statement, number);
        }
    }
    drop_unread(statement);
}

fn references(statement: &Statement, number: usize) -> References {
    fn inside(node: &Node, number: usize, count: &mut usize) {
        if let Node::CommonTable(scan) = node {
            *count += usize::from(scan.table == number);
        }
        node.for_each_input(&mut |input| crate::stack::grow(|| inside(input, number, count)));
    }
    let mut result = References::default();
    let mut add = |query: &Query, repeated: bool| {
        let before = result.count;
        inside(&query.node, number, &mut result.count);
        result.repeated |= repeated && result.count > before;
    };
    statement.main_query().into_iter().for_each(|query| add(query, false));
    statement.subqueries.iter().for_each(|subquery| add(&subquery.query, !subquery.outer.is_empty()));
    for table in &statement.tables {
        add(&table.seed, !table.outer.is_empty());
        table.recursive.iter().for_each(|recursive| add(&recursive.query, true));
    }
    result
}

fn put_in_place(statement: &mut Statement, number: usize) {
    let mut seed = Some(std::mem::replace(&mut statement.tables[number].seed, empty()));
    for_each_query(statement, &mut |query, statement| {
        if seed.is_some() {
            in_query(query, statement, number, &mut seed);
        }
    });
    assert!(seed.is_none(), "a common table that is counted once is found once");
}

/// Puts the query of the table into the block that reads it.
fn in_query(query: &mut Query, statement: &mut Statement, number: usize, seed: &mut Option<Query>) {
    let mut renamed = Substitution::default();
    replace(&mut query.node, statement, number, seed, &mut renamed);
    if !renamed.is_empty() {
        substitute(query, statement, &renamed);
    }
}

fn replace(
    node: &mut Node,
    statement: &mut Statement,
    number: usize,
    seed: &mut Option<Query>,
    renamed: &mut Substitution,
) {
    if seed.is_none() {
        return;
    }
    match node {
        Node::CommonTable(scan) if scan.table == number => {
            let seed = seed.take().expect("it was there above");
            let CommonTableScan { alias, columns, apart, pushdown, .. } = &**scan;
            for (&old, &new) in columns.iter().zip(&seed.columns) {
                let column = statement.columns.get(new);
                renamed.insert(old, Expr::reference(new, column.ty, column.nullable));
                statement.columns.get_mut(new).result.table.clone_from(alias);
            }
            let (alias, apart, pushdown) = (alias.clone(), *apart, *pushdown);
            let derived = Derived { alias, query: seed, view: None, lock: None, apart, pushdown };
            *node = Node::Derived(Box::new(derived));
        }
        Node::Derived(derived) => {
            crate::stack::grow(|| in_query(&mut derived.query, statement, number, seed));
        }
        Node::Window(window) => {
            crate::stack::grow(|| in_query(&mut window.input, statement, number, seed));
        }
        Node::SetOperation(operation) => crate::stack::grow(|| {
            in_query(&mut operation.left, statement, number, seed);
            in_query(&mut operation.right, statement, number, seed);
        }),
        node => for_each_input(node, &mut |input| {
            crate::stack::grow(|| replace(input, statement, number, seed, renamed));
        }),
    }
}

/// Drops tables that nothing reads, and numbers the others.
fn drop_unread(statement: &mut Statement) {
    for number in (0..statement.tables.len()).rev() {
        let mut count = references(statement, number).count;
        // Its own recursive part does not count.
        if statement.tables[number].recursive.is_some() {
            let own = statement.tables[number].recursive.take();
            count = references(statement, number).count;
            statement.tables[number].recursive = own;
        }
        if count > 0 {
            continue;
        }
        statement.tables.remove(number);
        for_each_query(statement, &mut |query, _| renumber(&mut query.node, number));
    }
}

fn renumber(node: &mut Node, removed: usize) {
    if let Node::CommonTable(scan) = node
        && scan.table > removed
    {
        scan.table -= 1;
    }
    for_each_input(node, &mut |input| crate::stack::grow(|| renumber(input, removed)));
}
