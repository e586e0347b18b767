//! Queries in layers: a block whose windows MariaDB computes one at a time, behind its groups, and a set operation whose
//! sides are computed before it.
//!
//! MariaDB sorts the rows of several windows into one order and loses ends of partitions: MAX over a partition is
//! that of a part of it, LEAD gives the row itself. And it loses groups for which HAVING holds when windows read
//! them. So the innermost derived table has the columns, or the keys and aggregates, that the list names; each
//! further one adds a window; the block's own list names what they give.
//!
//! An aggregate that is compared with the rows of a subquery is named by the innermost layer too.
//!
//! Of a set operation in a set operation it forgets ALL, and takes the rows of `a EXCEPT (b EXCEPT ALL c)` for those of
//! `a EXCEPT b EXCEPT c`. So the inner one becomes a derived table.

use super::names::Names;
use super::words::{aliases, is_aggregate};
use super::{Kind, Test};
use crate::tree::visit::{self, NodeMut, walk_mut};
use crate::tree::{Body, Class, Expr, From, Item, OrderKey, Query, Select, Statement};

pub const KINDS: &[Kind] = &[Kind {
    name: "windows and set operations in layers",
    manual: "https://dev.mysql.com/doc/refman/8.0/en/window-functions-usage.html",
    test: Test::Words(&[in_layers]),
}];

pub(super) fn in_layers(statement: &mut Statement, _: &Names) -> bool {
    let (mut changed, mut number) = (false, 0);
    walk_mut(statement, &mut |node| {
        let NodeMut::Query(query) = node else { return };
        match &mut query.body {
            Body::Select(select) => {
                if let Some(whole) = of(select, &mut number) {
                    **select = whole;
                    query.lock = "";
                    changed = true;
                }
            }
            Body::Set { left, right, .. } => {
                for side in [left, right] {
                    if matches!(side.body, Body::Set { .. }) {
                        **side = around(side, &mut number);
                        changed = true;
                    }
                }
            }
            _ => {}
        }
    });
    changed
}

/// The rows of a query as a derived table.
pub(super) fn around(query: &Query, number: &mut u32) -> Query {
    let alias = next(number);
    let items = query.first_select().map(|select| select.items.as_slice()).unwrap_or_default();
    let item =
        |item: &Item| Item { expr: Expr::column(&alias, &item.alias, item.expr.class()), alias: item.alias.clone() };
    let mut select = Select::of(items.iter().map(item).collect());
    select.from = Some(From::Derived { query: Box::new(query.clone()), alias, lateral: false });
    Query::of(Body::Select(Box::new(select)))
}

/// The block in layers; `None` if it has no windows, or is one already.
fn of(select: &Select, number: &mut u32) -> Option<Select> {
    let own = select.from.as_ref().map(aliases).unwrap_or_default();
    let mut layers = Layers { keys: select.group.clone(), grouped: is_grouped(select), own, found: Vec::new() };
    let mut windows: Vec<Expr> = Vec::new();
    for item in &select.items {
        layers.collect(&item.expr, &mut windows);
    }
    let is_compared = |item: &Item| compares_aggregate(&item.expr);
    let has_layers = !windows.is_empty() || select.items.iter().any(is_compared);
    if !has_layers || select.rollup || select.items.iter().any(|item| item.alias.starts_with(COLUMN)) {
        return None;
    }
    let mut alias = next(number);
    let named = |at: usize| format!("{COLUMN}{at}");
    let mut inner = select.clone();
    (inner.distinct, inner.window, inner.hints) = (false, None, String::new());
    inner.items = layers.found.iter().enumerate().map(|(at, e)| Item { expr: e.clone(), alias: named(at) }).collect();
    if inner.items.is_empty() {
        inner.items.push(Item { expr: Expr::literal("1", Class::Integer), alias: named(0) });
        layers.found.push(Expr::literal("1", Class::Integer));
    }
    // By what stands for it: the columns first, then each window behind those before it.
    let mut known: Vec<Expr> = layers.found.clone();
    for window in &windows {
        let mut outer = Select::of(Vec::new());
        for (at, expr) in known.iter().enumerate() {
            outer.items.push(Item { expr: Expr::column(&alias, &named(at), expr.class()), alias: named(at) });
        }
        let mut own = window.clone();
        if let Expr::Window { function, partition, order, named, .. } = &mut own {
            *named = false;
            if let Expr::Form { arguments, .. } = &mut **function {
                arguments.iter_mut().for_each(|argument| put(argument, &known, &alias));
            }
            partition.iter_mut().for_each(|expr| put(expr, &known, &alias));
            order.iter_mut().for_each(|key: &mut OrderKey| put(&mut key.expr, &known, &alias));
        }
        outer.items.push(Item { expr: own, alias: named(known.len()) });
        known.push(window.clone());
        outer.from = Some(derived(inner, &alias));
        inner = outer;
        alias = next(number);
    }
    let mut whole = Select::of(select.items.clone());
    whole.distinct = select.distinct;
    whole.items.iter_mut().for_each(|item| put(&mut item.expr, &known, &alias));
    whole.from = Some(derived(inner, &alias));
    Some(whole)
}

/// An aggregate stands beside a subquery.
fn compares_aggregate(expr: &Expr) -> bool {
    fn has_aggregate(expr: &Expr) -> bool {
        match expr {
            Expr::Form { form, arguments, .. } => is_aggregate(form) || arguments.iter().any(has_aggregate),
            _ => false,
        }
    }
    match expr {
        Expr::Subquery { arguments, .. } => arguments.iter().any(has_aggregate),
        Expr::Form { form, arguments, .. } => !is_aggregate(form) && arguments.iter().any(compares_aggregate),
        _ => false,
    }
}

/// What the columns of the layers are called; the generator has no such names.
const COLUMN: &str = "layer_";

fn next(number: &mut u32) -> String {
    *number += 1;
    format!("layers_{number}")
}

fn derived(select: Select, alias: &str) -> From {
    let query = Query::of(Body::Select(Box::new(select)));
    From::Derived { query: Box::new(query), alias: alias.into(), lateral: false }
}

fn is_grouped(select: &Select) -> bool {
    !select.group.is_empty()
        || select.having.is_some()
        || select.items.iter().any(|item| compares_aggregate(&item.expr))
}

struct Layers {
    keys: Vec<Expr>,
    grouped: bool,
    /// What the block's tables are called; other columns are those of the blocks around it.
    own: Vec<String>,
    /// What the innermost layer gives.
    found: Vec<Expr>,
}

impl Layers {
    fn collect(&mut self, expr: &Expr, windows: &mut Vec<Expr>) {
        let is_leaf = match expr {
            Expr::Column { table, .. } if !self.own.contains(table) => return,
            Expr::Column { .. } => true,
            Expr::Form { form, .. } => self.grouped && is_aggregate(form),
            _ => false,
        };
        if is_leaf || self.keys.contains(expr) {
            if !self.found.contains(expr) {
                self.found.push(expr.clone());
            }
            return;
        }
        match expr {
            Expr::Form { arguments, .. } => arguments.iter().for_each(|e| self.collect(e, windows)),
            Expr::Window { function, partition, order, .. } => {
                if !windows.contains(expr) {
                    windows.push(expr.clone());
                }
                if let Expr::Form { arguments, .. } = &**function {
                    arguments.iter().for_each(|e| self.collect(e, windows));
                }
                partition.iter().for_each(|e| self.collect(e, windows));
                order.iter().for_each(|key| self.collect(&key.expr, windows));
            }
            // A subquery of the list stays there, and reads the layers' columns.
            Expr::Subquery { arguments, query, .. } => {
                arguments.iter().for_each(|e| self.collect(e, windows));
                visit::query(&mut query.clone(), &mut |node| {
                    if let NodeMut::Expr(column @ Expr::Column { .. }) = node {
                        self.collect(column, windows);
                    }
                });
            }
            Expr::Literal { .. } | Expr::Column { .. } => {}
        }
    }
}

/// Puts the columns of a layer in the place of what they stand for.
fn put(expr: &mut Expr, known: &[Expr], alias: &str) {
    if let Some(at) = known.iter().position(|one| one == expr) {
        *expr = Expr::column(alias, &format!("{COLUMN}{at}"), expr.class());
        return;
    }
    match expr {
        Expr::Form { arguments, .. } => arguments.iter_mut().for_each(|argument| put(argument, known, alias)),
        Expr::Subquery { arguments, query, .. } => {
            arguments.iter_mut().for_each(|argument| put(argument, known, alias));
            visit::query(query, &mut |node| {
                if let NodeMut::Expr(column @ Expr::Column { .. }) = node {
                    put(column, known, alias);
                }
            });
        }
        _ => {}
    }
}
