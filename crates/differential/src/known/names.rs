//! What the names of a statement stand for: the columns of the schema's tables that a value comes from.
//!
//! Aliases are unique in a generated statement, so that one map serves all of its blocks. A column of a derived table,
//! of a common table or of a view is followed to the expression that gives it.

use crate::dialect::IN_PLACE;
use crate::schema::{Column, Schema};
use crate::tree::print::VIEW;
use crate::tree::visit::{self, Node, NodeMut, walk};
use crate::tree::{Body, Class, Expr, From, Query, Statement};
use std::collections::HashMap;

/// Names that lead to names at most.
const DEPTH: u32 = 12;

pub struct Names<'a> {
    schema: &'a Schema,
    /// By alias: the table, or the common table, that it is.
    tables: HashMap<String, String>,
    derived: HashMap<String, Query>,
    /// By name: the names of its columns, if it gives them names, and its query.
    common: HashMap<String, (Vec<String>, Query)>,
    /// Columns of the common tables that are defined by themselves.
    recursive: Vec<String>,
    /// The table whose columns stand without an alias.
    target: Option<String>,
}

impl<'a> Names<'a> {
    pub fn of(statement: &Statement, schema: &'a Schema) -> Names<'a> {
        let mut names = Names {
            schema,
            tables: HashMap::new(),
            derived: HashMap::new(),
            common: HashMap::new(),
            recursive: Vec::new(),
            target: target(statement),
        };
        if let Some(table) = names.target.clone() {
            names.tables.insert(VIEW.into(), table);
        }
        walk(statement, &mut |node| match node {
            Node::From(From::Table { name, alias, .. }) if name != VIEW => {
                names.tables.insert(alias.clone(), name.clone());
            }
            Node::From(From::Derived { query, alias, .. }) => {
                names.derived.insert(alias.clone(), (**query).clone());
            }
            Node::Query(query) => {
                for cte in &query.with {
                    if cte.recursive {
                        names.recursive.extend(cte.columns.iter().cloned());
                    }
                    names.common.insert(cte.name.clone(), (cte.columns.clone(), cte.query.clone()));
                }
            }
            _ => {}
        });
        if let Statement::Update { with, .. } | Statement::Delete { with, .. } = statement {
            for cte in with {
                names.common.insert(cte.name.clone(), (cte.columns.clone(), cte.query.clone()));
            }
        }
        names
    }

    /// The table that a change of one table changes.
    pub fn target(&self) -> Option<&'a crate::schema::Table> {
        self.schema.table(self.target.as_deref()?)
    }

    /// Some table refers to another one.
    pub fn has_foreign_keys(&self) -> bool {
        self.schema.tables.iter().any(|table| !table.foreign.is_empty())
    }

    pub fn is_common_table(&self, name: &str) -> bool {
        self.common.contains_key(name)
    }

    /// A common table of a change stands where it is read.
    pub fn has_common_in_place(&self) -> bool {
        self.common.keys().any(|name| name.ends_with(IN_PLACE))
    }

    pub fn is_alias(&self, name: &str) -> bool {
        self.tables.contains_key(name) || self.derived.contains_key(name)
    }

    /// The column is one of a table that is defined by itself.
    pub fn is_recursive_column(&self, name: &str) -> bool {
        self.recursive.iter().any(|column| column == name)
    }

    /// The column of a table that the expression is, and nothing else.
    pub fn column(&self, expr: &Expr) -> Option<&'a Column> {
        match self.origin(expr, DEPTH)? {
            Origin::Column(column) => Some(column),
            Origin::Exprs(exprs) => match &exprs[..] {
                [one] => self.column(one),
                _ => None,
            },
        }
    }

    /// Whether a column that meets the condition is in what the expression is computed from.
    pub fn reads(&self, expr: &Expr, of: &dyn Fn(&Column) -> bool) -> bool {
        self.reads_within(expr, of, DEPTH)
    }

    fn reads_within(&self, expr: &Expr, of: &dyn Fn(&Column) -> bool, depth: u32) -> bool {
        let mut found = false;
        visit::expr(&mut expr.clone(), &mut |node| {
            let NodeMut::Expr(part) = node else { return };
            if found || depth == 0 {
                return;
            }
            found = match self.origin(part, depth) {
                Some(Origin::Column(column)) => of(column),
                Some(Origin::Exprs(exprs)) => exprs.iter().any(|expr| self.reads_within(expr, of, depth - 1)),
                None => false,
            };
        });
        found
    }

    /// Whether an expression of this kind is in what the expression is computed from.
    pub fn has(&self, expr: &Expr, of: &dyn Fn(&Expr) -> bool) -> bool {
        self.has_within(expr, of, DEPTH)
    }

    fn has_within(&self, expr: &Expr, of: &dyn Fn(&Expr) -> bool, depth: u32) -> bool {
        let mut found = false;
        visit::expr(&mut expr.clone(), &mut |node| {
            let NodeMut::Expr(part) = node else { return };
            if found || depth == 0 {
                return;
            }
            found = of(part)
                || match self.origin(part, depth) {
                    Some(Origin::Exprs(exprs)) => exprs.iter().any(|expr| self.has_within(expr, of, depth - 1)),
                    _ => false,
                };
        });
        found
    }

    /// A column of the table, or of the first one of a join.
    pub fn first_column(&self, from: &From) -> Option<Expr> {
        let (alias, name, class): (_, String, _) = match from {
            From::Join { left, .. } => return self.first_column(left),
            From::Derived { query, alias, .. } => (alias, query.names().first()?.to_string(), Class::Integer),
            From::Table { name, alias, .. } => match self.common.get(name) {
                Some((columns, _)) if !columns.is_empty() => (alias, columns[0].clone(), Class::Integer),
                Some((_, query)) => (alias, query.names().first()?.to_string(), Class::Integer),
                None => {
                    let column = self.schema.table(self.tables.get(alias)?)?.columns.first()?;
                    (alias, column.name.clone(), column.class())
                }
            },
        };
        Some(Expr::column(alias, &name, class))
    }

    fn origin(&self, expr: &Expr, depth: u32) -> Option<Origin<'a>> {
        let Expr::Column { table, name, .. } = expr else { return None };
        if depth == 0 {
            return None;
        }
        if table.is_empty() {
            let name = name.strip_prefix("VALUES(").and_then(|rest| rest.strip_suffix(')')).unwrap_or(name);
            return self.target()?.column(name).map(Origin::Column);
        }
        if let Some(query) = self.derived.get(table) {
            return place(query, &[], name).map(Origin::Exprs);
        }
        let named = self.tables.get(table)?;
        if let Some((columns, query)) = self.common.get(named) {
            return place(query, columns, name).map(Origin::Exprs);
        }
        self.schema.table(named)?.column(name).map(Origin::Column)
    }
}

enum Origin<'a> {
    Column(&'a Column),
    /// One for each part of a set operation.
    Exprs(Vec<Expr>),
}

/// What gives the column of this name.
fn place(query: &Query, columns: &[String], name: &str) -> Option<Vec<Expr>> {
    let at = match columns {
        [] => query.names().iter().position(|own| *own == name),
        columns => columns.iter().position(|own| own == name),
    }?;
    Some(items(query, at))
}

/// The expressions that stand at a place of the list, one for each part of a set operation.
pub fn items(query: &Query, at: usize) -> Vec<Expr> {
    match &query.body {
        Body::Select(select) => select.items.get(at).map(|item| item.expr.clone()).into_iter().collect(),
        Body::Set { left, right, .. } => [items(left, at), items(right, at)].concat(),
        Body::Values(rows) => rows.iter().filter_map(|row| row.get(at).cloned()).collect(),
        Body::Table(_) => Vec::new(),
    }
}

fn target(statement: &Statement) -> Option<String> {
    match statement {
        Statement::ThroughView { table, .. } | Statement::Insert { table, .. } => Some(table.clone()),
        Statement::Update { from: From::Table { name, .. }, .. }
        | Statement::Delete { from: From::Table { name, .. }, .. } => Some(name.clone()),
        _ => None,
    }
}
