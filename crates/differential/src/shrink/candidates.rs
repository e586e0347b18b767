//! The statements that are one step simpler than a statement.

use crate::tree::visit::{Node, NodeMut, walk, walk_mut};
use crate::tree::{Body, Expr, From, Query, Select, Source, Statement};

pub fn of(statement: &Statement) -> Vec<Statement> {
    let mut found = of_statement(statement);
    let mut count = 0;
    walk_mut(&mut statement.clone(), &mut |_| count += 1);
    for at in 0..count {
        // Ways to change the node there; each is made on a copy of its own.
        let mut ways = 0;
        loop {
            let mut copy = statement.clone();
            let mut n = 0;
            let mut is_changed = false;
            walk_mut(&mut copy, &mut |node| {
                if n == at {
                    is_changed = match node {
                        NodeMut::Expr(expr) => change_expr(expr, ways),
                        NodeMut::Query(query) => change_query(query, ways),
                        NodeMut::Select(select) => change_select(select, ways),
                        NodeMut::From(from) => change_from(from, ways),
                    };
                }
                n += 1;
            });
            if !is_changed {
                break;
            }
            if keeps_order(statement, &copy) && keys_are_values(&copy) {
                found.push(copy);
            }
            ways += 1;
        }
    }
    found
}

/// The rows of INSERT … SELECT still come in their order: it decides which of two that collide is first.
fn keeps_order(before: &Statement, after: &Statement) -> bool {
    let order = |statement: &Statement| match statement {
        Statement::Insert { source: Source::Query(query), .. } => query.order.len(),
        _ => 0,
    };
    order(before) == order(after)
}

/// A literal behind GROUP BY is the place of an item.
fn keys_are_values(statement: &Statement) -> bool {
    let mut are_values = true;
    walk(statement, &mut |node| {
        if let Node::Select(select) = node {
            are_values &= !select.group.iter().any(|key| matches!(key, Expr::Literal { .. }));
        }
    });
    are_values
}

/// Makes the `way`-th change; `false` if there is none of this number.
fn change_expr(expr: &mut Expr, way: usize) -> bool {
    let mut others: Vec<Expr> = Vec::new();
    let class = expr.class();
    match &*expr {
        Expr::Form { arguments, form, .. } => {
            others.extend(arguments.iter().cloned());
            if form.contains(" IN (") {
                others.push(Expr::form("({0} = {1})", class, arguments[..2].to_vec()));
            }
        }
        Expr::Subquery { arguments, .. } => others.extend(arguments.iter().cloned()),
        Expr::Window { function, partition, order, frame, .. } => {
            if let Expr::Form { arguments, .. } = function.as_ref() {
                others.extend(arguments.iter().cloned());
            }
            let window = |partition: &[Expr], frame: &str| Expr::Window {
                function: function.clone(),
                partition: partition.to_vec(),
                order: order.clone(),
                frame: frame.into(),
                named: false,
            };
            if !partition.is_empty() {
                others.push(window(&[], frame));
            }
            if !frame.is_empty() {
                others.push(window(partition, ""));
            }
        }
        Expr::Literal { .. } | Expr::Column { .. } => {}
    }
    others.push(Expr::literal(class.simplest(), class));
    others.push(Expr::literal("NULL", class));
    match others.into_iter().nth(way) {
        Some(other) => {
            *expr = other;
            true
        }
        None => false,
    }
}

fn change_query(query: &mut Query, way: usize) -> bool {
    let mut others: Vec<Query> = Vec::new();
    for i in 0..query.with.len() {
        let mut other = query.clone();
        other.with.remove(i);
        others.push(other);
    }
    if let Body::Set { left, right, .. } = &query.body {
        for side in [left, right] {
            let mut other = side.as_ref().clone();
            other.with.extend(query.with.iter().cloned());
            others.push(other);
        }
    }
    if !query.lock.is_empty() {
        others.push(Query { lock: "", ..query.clone() });
    }
    if query.limit.is_some() {
        others.push(Query { limit: None, ..query.clone() });
    } else if !query.order.is_empty() {
        others.push(Query { order: Vec::new(), ..query.clone() });
    }
    // A column of the result, and the keys of the order that name it.
    if let Body::Select(select) = &query.body
        && select.items.len() > 1
    {
        for i in 0..select.items.len() {
            let mut other = query.clone();
            let Body::Select(fewer) = &mut other.body else { unreachable!("a copy of a SELECT") };
            let alias = fewer.items.remove(i).alias;
            other.order.retain(|key| !key.to_string().split(|c: char| !c.is_alphanumeric()).any(|word| word == alias));
            others.push(other);
        }
    }
    if let Body::Values(rows) = &query.body
        && rows.len() > 1
    {
        for i in 0..rows.len() {
            let mut fewer = rows.clone();
            fewer.remove(i);
            others.push(Query { body: Body::Values(fewer), ..query.clone() });
        }
    }
    match others.into_iter().nth(way) {
        Some(other) => {
            *query = other;
            true
        }
        None => false,
    }
}

fn change_select(select: &mut Select, way: usize) -> bool {
    let mut others: Vec<Select> = Vec::new();
    let mut push = |is_there: bool, change: &dyn Fn(&mut Select)| {
        if is_there {
            let mut other = select.clone();
            change(&mut other);
            others.push(other);
        }
    };
    push(select.from.is_some(), &|s| {
        s.from = None;
        s.filter = None;
    });
    push(select.filter.is_some(), &|s| s.filter = None);
    push(select.having.is_some(), &|s| s.having = None);
    push(!select.hints.is_empty(), &|s| s.hints.clear());
    push(select.window.is_some(), &|s| s.window = None);
    push(select.distinct, &|s| s.distinct = false);
    push(select.rollup, &|s| s.rollup = false);
    push(!select.group.is_empty(), &|s| {
        s.group.clear();
        s.rollup = false;
    });
    for i in 0..select.group.len() {
        push(select.group.len() > 1, &|s| drop(s.group.remove(i)));
    }
    match others.into_iter().nth(way) {
        Some(other) => {
            *select = other;
            true
        }
        None => false,
    }
}

fn change_from(from: &mut From, way: usize) -> bool {
    let other = match (&*from, way) {
        (From::Join { left, .. }, 0) => left.as_ref().clone(),
        (From::Join { right, .. }, 1) => right.as_ref().clone(),
        (From::Join { kind, left, right, on }, 2) if *kind != "JOIN" && on.is_some() => {
            From::Join { kind: "JOIN", left: left.clone(), right: right.clone(), on: on.clone() }
        }
        (From::Table { name, alias, hint }, 0) if !hint.is_empty() => {
            From::Table { name: name.clone(), alias: alias.clone(), hint: String::new() }
        }
        _ => return false,
    };
    *from = other;
    true
}

/// Steps that concern the statement itself.
fn of_statement(statement: &Statement) -> Vec<Statement> {
    let mut found = Vec::new();
    let mut push = |change: &dyn Fn(&mut Statement)| {
        let mut copy = statement.clone();
        change(&mut copy);
        found.push(copy);
    };
    match statement {
        Statement::Query(_) => {}
        Statement::View { query, columns, twice } => {
            push(&|s| *s = Statement::Query(query.clone()));
            if !columns.is_empty() {
                push(&|s| *s = Statement::View { query: query.clone(), columns: Vec::new(), twice: *twice });
            }
        }
        Statement::ThroughView { table, columns, filter, check, change } => {
            let with = |filter: &Option<Expr>, check: &'static str, change: Statement| Statement::ThroughView {
                table: table.clone(),
                columns: columns.clone(),
                filter: filter.clone(),
                check,
                change: Box::new(change),
            };
            for inner in of_statement(change) {
                push(&|s| *s = with(filter, check, inner.clone()));
            }
            if filter.is_some() {
                push(&|s| *s = with(&None, check, change.as_ref().clone()));
            }
            if !check.is_empty() {
                push(&|s| *s = with(filter, "", change.as_ref().clone()));
            }
        }
        Statement::Insert { columns, source, on_duplicate, returning, .. } => {
            if let Source::Rows(rows) = source {
                for i in 0..rows.len() {
                    if rows.len() > 1 {
                        push(&|s| {
                            if let Statement::Insert { source: Source::Rows(rows), .. } = s {
                                rows.remove(i);
                            }
                        });
                    }
                }
                for i in 0..columns.len() {
                    if columns.len() > 1 {
                        push(&|s| {
                            if let Statement::Insert { columns, source: Source::Rows(rows), .. } = s {
                                columns.remove(i);
                                rows.iter_mut().for_each(|row| drop(row.remove(i)));
                            }
                        });
                    }
                }
            }
            if !on_duplicate.is_empty() {
                push(&|s| {
                    if let Statement::Insert { on_duplicate, .. } = s {
                        on_duplicate.clear();
                    }
                });
            }
            for i in 0..returning.len() {
                push(&|s| {
                    if let Statement::Insert { returning, .. } = s {
                        returning.remove(i);
                    }
                });
            }
        }
        Statement::Update { with, set, filter, order, ignore, .. } => {
            for i in 0..set.len() {
                if set.len() > 1 {
                    push(&|s| {
                        if let Statement::Update { set, .. } = s {
                            set.remove(i);
                        }
                    });
                }
            }
            push_rest(&mut push, with.len(), filter.is_some(), !order.is_empty());
            if *ignore {
                push(&|s| {
                    if let Statement::Update { ignore, .. } = s {
                        *ignore = false;
                    }
                });
            }
        }
        Statement::Delete { with, targets, filter, order, returning, .. } => {
            for i in 0..targets.len() {
                if targets.len() > 1 {
                    push(&|s| {
                        if let Statement::Delete { targets, .. } = s {
                            targets.remove(i);
                        }
                    });
                }
            }
            push_rest(&mut push, with.len(), filter.is_some(), !order.is_empty());
            for i in 0..returning.len() {
                push(&|s| {
                    if let Statement::Delete { returning, .. } = s {
                        returning.remove(i);
                    }
                });
            }
        }
    }
    found
}

/// A step on a copy of the statement.
type Change<'a> = &'a dyn Fn(&mut Statement);

/// WITH, WHERE, and ORDER BY together with LIMIT, of UPDATE and DELETE.
fn push_rest(push: &mut dyn FnMut(Change<'_>), with: usize, has_filter: bool, has_order: bool) {
    for i in 0..with {
        push(&|s| match s {
            Statement::Update { with, .. } | Statement::Delete { with, .. } => drop(with.remove(i)),
            _ => unreachable!("only these have one"),
        });
    }
    if has_filter {
        push(&|s| match s {
            Statement::Update { filter, .. } | Statement::Delete { filter, .. } => *filter = None,
            _ => unreachable!("only these have one"),
        });
    }
    if has_order {
        push(&|s| match s {
            Statement::Update { order, limit, .. } | Statement::Delete { order, limit, .. } => {
                order.clear();
                *limit = None;
            }
            _ => unreachable!("only these have one"),
        });
    }
}
