//! Walks over a statement.
//!
//! [`walk`] visits every node, outermost first, in the order in which they are printed; [`walk_mut`] does the same and
//! lets the visitor put another node in the place of each. What is visited after a replacement are the children of what
//! was put there. So the n-th node of a statement is well defined, and the shrinker names the place of a change by that
//! number.
//!
//! Keys of an ORDER BY are not visited: they make a LIMIT and a window's rows unambiguous, and no change may take that
//! away.

use super::{Body, Cte, Expr, From, Item, Query, Select, Source, Statement};

pub enum Node<'a> {
    Expr(&'a Expr),
    Query(&'a Query),
    Select(&'a Select),
    From(&'a From),
}

pub enum NodeMut<'a> {
    Expr(&'a mut Expr),
    Query(&'a mut Query),
    Select(&'a mut Select),
    From(&'a mut From),
}

/// Visits all nodes of a statement.
pub fn walk(statement: &Statement, visit: &mut dyn FnMut(Node<'_>)) {
    // One walk is written down; the copy is small beside the round trip of a statement.
    let mut copy = statement.clone();
    walk_mut(&mut copy, &mut |node| match node {
        NodeMut::Expr(expr) => visit(Node::Expr(expr)),
        NodeMut::Query(query) => visit(Node::Query(query)),
        NodeMut::Select(select) => visit(Node::Select(select)),
        NodeMut::From(from) => visit(Node::From(from)),
    });
}

type Visit<'a> = &'a mut dyn FnMut(NodeMut<'_>);

pub fn walk_mut(statement: &mut Statement, visit: Visit<'_>) {
    match statement {
        Statement::Query(q) | Statement::View { query: q, .. } => query(q, visit),
        Statement::ThroughView { filter, change, .. } => {
            filter.iter_mut().for_each(|e| expr(e, visit));
            walk_mut(change, visit);
        }
        Statement::Insert { source, on_duplicate, returning, .. } => {
            match source {
                Source::Rows(rows) => rows.iter_mut().flatten().for_each(|e| expr(e, visit)),
                Source::Query(q) => query(q, visit),
            }
            on_duplicate.iter_mut().for_each(|(_, value)| expr(value, visit));
            items(returning, visit);
        }
        Statement::Update { with, from: tables, set, filter, .. } => {
            ctes(with, visit);
            from(tables, visit);
            set.iter_mut().for_each(|(_, value)| expr(value, visit));
            filter.iter_mut().for_each(|e| expr(e, visit));
        }
        Statement::Delete { with, from: tables, filter, returning, .. } => {
            ctes(with, visit);
            from(tables, visit);
            filter.iter_mut().for_each(|e| expr(e, visit));
            items(returning, visit);
        }
    }
}

fn ctes(ctes: &mut [Cte], visit: Visit<'_>) {
    ctes.iter_mut().for_each(|cte| query(&mut cte.query, visit));
}

fn items(items: &mut [Item], visit: Visit<'_>) {
    items.iter_mut().for_each(|item| expr(&mut item.expr, visit));
}

pub fn expr(e: &mut Expr, visit: Visit<'_>) {
    visit(NodeMut::Expr(e));
    match e {
        Expr::Literal { .. } | Expr::Column { .. } => {}
        Expr::Form { arguments, .. } => arguments.iter_mut().for_each(|a| expr(a, visit)),
        Expr::Subquery { arguments, query: q, .. } => {
            arguments.iter_mut().for_each(|a| expr(a, visit));
            query(q, visit);
        }
        Expr::Window { function, partition, .. } => {
            expr(function, visit);
            partition.iter_mut().for_each(|p| expr(p, visit));
        }
    }
}

pub fn query(q: &mut Query, visit: Visit<'_>) {
    visit(NodeMut::Query(q));
    ctes(&mut q.with, visit);
    match &mut q.body {
        Body::Select(s) => select(s, visit),
        Body::Set { left, right, .. } => {
            query(left, visit);
            query(right, visit);
        }
        Body::Values(rows) => rows.iter_mut().flatten().for_each(|e| expr(e, visit)),
        Body::Table(_) => {}
    }
}

fn select(s: &mut Select, visit: Visit<'_>) {
    visit(NodeMut::Select(s));
    items(&mut s.items, visit);
    s.from.iter_mut().for_each(|f| from(f, visit));
    s.filter.iter_mut().for_each(|e| expr(e, visit));
    s.group.iter_mut().for_each(|e| expr(e, visit));
    s.having.iter_mut().for_each(|e| expr(e, visit));
}

fn from(f: &mut From, visit: Visit<'_>) {
    visit(NodeMut::From(f));
    match f {
        From::Table { .. } => {}
        From::Derived { query: q, .. } => query(q, visit),
        From::Join { left, right, on, .. } => {
            from(left, visit);
            from(right, visit);
            on.iter_mut().for_each(|e| expr(e, visit));
        }
    }
}
