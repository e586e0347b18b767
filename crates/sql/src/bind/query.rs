//! Queries around their bodies: WITH, set operations, VALUES, TABLE, and ORDER BY and LIMIT of what is not one block.
//!
//! A locking clause around a set operation locks the rows of the tables of all its sides.

use super::Binder;
use super::frame::{Frame, Visible};
use super::names::Clause;
use super::select::{Clauses, bare_name, bind_limit, ordered, position, unknown_position};
use crate::expr::{ColumnId, Expr, ExprKind};
use crate::logical::{Node, Query, SetOp, SetOperation, SortKey};
use crate::lookup::unsupported;
use crate::parse::ast;
use crate::parse::print::Reader;
use crate::{expr, stack};
use rauk_types::MysqlError;
use rauk_types::error::codes;

impl Binder<'_> {
    pub fn query(&mut self, query: &ast::Query) -> Result<Query, MysqlError> {
        self.query_locked(query, &[])
    }

    /// `locks`: locking clauses around the query.
    fn query_locked(&mut self, query: &ast::Query, locks: &[ast::LockClause]) -> Result<Query, MysqlError> {
        if query.into.is_some() {
            return Err(unsupported("SELECT ... INTO"));
        }
        let known = self.common.len();
        self.with(Reader::Query(query))?;
        let locks = [&query.locks, locks].concat();
        let clauses = Clauses { order_by: &query.order_by, limit: query.limit.as_ref(), locks: &locks };
        let bound = stack::grow(|| self.body(&query.body, clauses));
        self.common.truncate(known);
        bound
    }

    pub(super) fn body(&mut self, body: &ast::QueryBody, clauses: Clauses<'_>) -> Result<Query, MysqlError> {
        match body {
            ast::QueryBody::Select(select) => self.select(select, clauses),
            ast::QueryBody::Query(inner) => {
                // `(SELECT …) ORDER BY … LIMIT …`: the outer clauses stand where the inner query has none.
                let plain = inner.order_by.is_empty() && inner.limit.is_none() && inner.with.is_none();
                if plain && inner.locks.is_empty() && inner.into.is_none() {
                    return stack::grow(|| self.body(&inner.body, clauses));
                }
                let bound = self.query_locked(inner, clauses.locks)?;
                if clauses.order_by.is_empty() && clauses.limit.is_none() {
                    return Ok(bound);
                }
                self.around(bound, clauses, false)
            }
            ast::QueryBody::SetOperation { op, all, left, right } => {
                check_locked_names(clauses.locks, body)?;
                let (of_left, of_right) = (locks_of(clauses.locks, left), locks_of(clauses.locks, right));
                let side = |locks| Clauses { order_by: &[], limit: None, locks };
                let left = stack::grow(|| self.body(left, side(&of_left)))?;
                let right = stack::grow(|| self.body(right, side(&of_right)))?;
                let op = match op {
                    ast::SetOp::Union => SetOp::Union,
                    ast::SetOp::Except => SetOp::Except,
                    ast::SetOp::Intersect => SetOp::Intersect,
                };
                let bound = self.set_operation(op, *all, left, right)?;
                self.around(bound, clauses, calculates_found_rows(body))
            }
            ast::QueryBody::Values(rows) => {
                let bound = self.values(rows)?;
                self.around(bound, clauses, false)
            }
            ast::QueryBody::Table(name) => {
                let factor = ast::TableFactor { name: name.clone(), alias: None, partitions: vec![], hints: vec![] };
                let select = ast::Select {
                    hints: ast::Hints::default(),
                    distinct: false,
                    straight_join: false,
                    calc_found_rows: false,
                    items: vec![ast::SelectItem::Wildcard],
                    from: vec![ast::TableReference::Table(factor)],
                    filter: None,
                    group_by: vec![],
                    rollup: false,
                    having: None,
                    windows: vec![],
                };
                let bound = self.select(&select, clauses);
                self.note_whole_table(name, &select);
                bound
            }
        }
    }

    /// A set operation whose columns have the types that both sides agree on. Error 1222.
    pub(super) fn set_operation(
        &mut self,
        op: SetOp,
        all: bool,
        left: Query,
        right: Query,
    ) -> Result<Query, MysqlError> {
        if left.columns.len() != right.columns.len() {
            return Err(MysqlError::new(
                codes::WRONG_NUMBER_OF_COLUMNS_IN_SELECT,
                "The used SELECT statements have a different number of columns",
            ));
        }
        let name = match op {
            SetOp::Union => "UNION",
            SetOp::Except => "EXCEPT",
            SetOp::Intersect => "INTERSECT",
        };
        let mut types = Vec::new();
        let mut columns = Vec::new();
        for (&l, &r) in left.columns.iter().zip(&right.columns) {
            let sides = [self.reference(l, false), self.reference(r, false)];
            let (ty, coercibility) = expr::unified_type(&sides, name, self.context)?;
            let nullable = match op {
                SetOp::Union => sides[0].nullable || sides[1].nullable,
                SetOp::Except | SetOp::Intersect => sides[0].nullable,
            };
            let name = self.columns.get(l).result.name.clone();
            types.push(ty);
            let column = self.add_column(ty, nullable, name);
            self.columns.get_mut(column).coercibility = coercibility;
            columns.push(column);
        }
        let left = self.converted(left, &types);
        let right = self.converted(right, &types);
        let node = Node::SetOperation(Box::new(SetOperation { op, all, left, right, columns: columns.clone() }));
        Ok(Query { node, columns })
    }

    /// A query in an expression: an ENUM or SET that it gives is its text.
    pub(super) fn texts(&mut self, query: Query, wanted: &[bool]) -> Query {
        let types: Vec<_> = query
            .columns
            .iter()
            .zip(wanted)
            .map(|(id, wanted)| match self.reference(*id, false) {
                column if *wanted => expr::text_of_members(column).ty,
                column => column.ty,
            })
            .collect();
        self.converted(query, &types)
    }

    /// A query whose columns have these types.
    pub(super) fn converted(&mut self, query: Query, types: &[rauk_types::DataType]) -> Query {
        let same = query.columns.iter().zip(types).all(|(&id, ty)| self.columns.get(id).ty == *ty);
        if same {
            return query;
        }
        let mut items = Vec::new();
        for (&id, ty) in query.columns.iter().zip(types) {
            let expr = expr::converted_to(self.reference(id, false), ty);
            let name = self.columns.get(id).result.name.clone();
            items.push((self.add_item(&expr, name), expr));
        }
        let columns = items.iter().map(|(id, _)| *id).collect();
        Query { node: Node::Project { input: Box::new(query.node), items }, columns }
    }

    /// ORDER BY and LIMIT around something that is not one block: names and positions mean the columns of the result.
    fn around(&mut self, query: Query, clauses: Clauses<'_>, calc_found_rows: bool) -> Result<Query, MysqlError> {
        let limit = bind_limit(clauses.limit, self.context)?;
        if clauses.order_by.is_empty() {
            return Ok(Query { node: ordered(query.node, vec![], limit, calc_found_rows), columns: query.columns });
        }
        let mut frame = Frame::new();
        frame.visible =
            query.columns.iter().map(|&id| Visible { name: self.columns.get(id).result.name.clone(), id }).collect();
        self.frames.push(frame);
        let keys = self.result_keys(clauses.order_by, &query.columns);
        self.frames.pop();
        let mut keys = keys?;
        // Keys that are not columns are computed beside them.
        let mut node = query.node;
        if keys.iter().any(|key| !matches!(key.expr.kind, ExprKind::Reference(_))) {
            let mut items: Vec<(ColumnId, Expr)> = Vec::new();
            let mut renamed = Vec::new();
            for &id in &query.columns {
                let expr = self.reference(id, false);
                let name = self.columns.get(id).result.name.clone();
                let new = self.add_item(&expr, name);
                items.push((new, expr));
                renamed.push(new);
            }
            for key in &mut keys {
                let id = self.add_item(&key.expr, String::new());
                let reference = Expr::reference(id, key.expr.ty, key.expr.nullable);
                items.push((id, std::mem::replace(&mut key.expr, reference)));
            }
            node = Node::Project { input: Box::new(node), items };
            return Ok(Query { node: ordered(node, keys, limit, calc_found_rows), columns: renamed });
        }
        Ok(Query { node: ordered(node, keys, limit, calc_found_rows), columns: query.columns })
    }

    fn result_keys(&mut self, order_by: &[ast::OrderItem], columns: &[ColumnId]) -> Result<Vec<SortKey>, MysqlError> {
        let mut keys = Vec::new();
        for key in order_by {
            let expr = match position(&key.expr) {
                Some(number) => match number.checked_sub(1).and_then(|n| columns.get(n)) {
                    Some(&id) => self.reference(id, false),
                    None => return Err(unknown_position(number, Clause::OrderBy)),
                },
                None if let ast::Expr::Column(ast::ColumnName { table: Some(table), .. }) = &key.expr => {
                    let message =
                        format!("Table '{table}' from one of the SELECTs cannot be used in global ORDER clause");
                    return Err(MysqlError::new(codes::TABLENAME_NOT_ALLOWED_HERE, message));
                }
                None => match bare_name(&key.expr).and_then(|name| self.result_named(name, columns)) {
                    Some(id) => self.reference(id, false),
                    None => self.bind_in(&key.expr, Clause::OrderBy)?,
                },
            };
            keys.push(SortKey { expr, descending: key.descending });
        }
        Ok(keys)
    }

    /// The first column of a result that has this name.
    fn result_named(&self, name: &str, columns: &[ColumnId]) -> Option<ColumnId> {
        columns.iter().copied().find(|&id| self.columns.get(id).result.name.eq_ignore_ascii_case(name))
    }

    /// VALUES ROW(…), ROW(…): columns `column_0`, `column_1`, … of the types that all rows agree on. Error 1136.
    fn values(&mut self, rows: &[Vec<ast::Expr>]) -> Result<Query, MysqlError> {
        self.frames.push(Frame::new());
        let bound: Result<Vec<Vec<Expr>>, MysqlError> =
            rows.iter().map(|row| row.iter().map(|expr| self.bind_in(expr, Clause::FieldList)).collect()).collect();
        self.frames.pop();
        let mut bound = bound?;
        let width = bound.first().map_or(0, Vec::len);
        if let Some(at) = bound.iter().position(|row| row.len() != width) {
            return Err(MysqlError::new(
                codes::WRONG_VALUE_COUNT_ON_ROW,
                format!("Column count doesn't match value count at row {}", at + 1),
            ));
        }
        let mut columns = Vec::new();
        for at in 0..width {
            let parts: Vec<Expr> = bound.iter().map(|row| row[at].clone()).collect();
            let (ty, coercibility) = expr::unified_type(&parts, "VALUES", self.context)?;
            let nullable = parts.iter().any(|expr| expr.nullable);
            for row in &mut bound {
                let value = std::mem::replace(&mut row[at], Expr::null());
                row[at] = expr::converted_to(value, &ty);
            }
            let column = self.add_column(ty, nullable, format!("column_{at}"));
            self.columns.get_mut(column).coercibility = coercibility;
            columns.push(column);
        }
        Ok(Query { node: Node::Values { columns: columns.clone(), rows: bound }, columns })
    }
}

/// Calls `visit` on the names by which the tables of a query may be locked.
fn for_each_locked(body: &ast::QueryBody, visit: &mut dyn FnMut(&str)) {
    fn tables(at: &ast::TableReference, visit: &mut dyn FnMut(&str)) {
        match at {
            ast::TableReference::Table(table) => visit(table.alias.as_ref().unwrap_or(&table.name.name)),
            ast::TableReference::Derived { alias, .. } => visit(alias),
            ast::TableReference::JsonTable(table) => visit(&table.alias),
            ast::TableReference::Join(join) => stack::grow(|| {
                tables(&join.left, visit);
                tables(&join.right, visit);
            }),
        }
    }
    stack::grow(|| match body {
        ast::QueryBody::Select(select) => select.from.iter().for_each(|table| tables(table, visit)),
        ast::QueryBody::Query(query) => for_each_locked(&query.body, visit),
        ast::QueryBody::SetOperation { left, right, .. } => {
            for_each_locked(left, visit);
            for_each_locked(right, visit);
        }
        ast::QueryBody::Values(_) => {}
        ast::QueryBody::Table(table) => visit(&table.name),
    });
}

fn locks_table(body: &ast::QueryBody, name: &str) -> bool {
    let mut found = false;
    for_each_locked(body, &mut |table| found |= table == name);
    found
}

/// What locking clauses around a set operation ask of one of its sides: OF names tables of either.
fn locks_of(locks: &[ast::LockClause], side: &ast::QueryBody) -> Vec<ast::LockClause> {
    let of_side = |clause: &ast::LockClause| {
        let of: Vec<_> = clause.of.iter().filter(|name| locks_table(side, &name.name)).cloned().collect();
        let concerns = clause.of.is_empty() || !of.is_empty();
        concerns.then(|| ast::LockClause { of, ..clause.clone() })
    };
    locks.iter().filter_map(of_side).collect()
}

/// Error 3568.
fn check_locked_names(locks: &[ast::LockClause], body: &ast::QueryBody) -> Result<(), MysqlError> {
    match locks.iter().flat_map(|clause| &clause.of).find(|name| !locks_table(body, &name.name)) {
        None => Ok(()),
        Some(name) => {
            let message = format!("Unresolved table name `{}` in locking clause.", name.name);
            Err(MysqlError::new(3568, message))
        }
    }
}

/// Whether the first block of a set operation says SQL_CALC_FOUND_ROWS, which counts the rows of the whole.
fn calculates_found_rows(mut body: &ast::QueryBody) -> bool {
    loop {
        match body {
            ast::QueryBody::SetOperation { left, .. } => body = left,
            ast::QueryBody::Query(query) => body = &query.body,
            ast::QueryBody::Select(select) => return select.calc_found_rows,
            ast::QueryBody::Values(_) | ast::QueryBody::Table(_) => return false,
        }
    }
}
