//! What must hold of every tree, checked after binding and after each pass.
//!
//! * A column is made by one node only.
//! * An expression reads columns that its node's input gives, or, in a subquery, columns of the queries around it that the subquery lists. What
//!   stands at the right of a semi or anti join, and a lateral table at the right of any join, reads columns of the left side too.
//! * A subquery in an expression lists as many outer columns as the query reads, and there is such a query.
//! * A common table that reads outer columns lists them, and they are outer columns of the subquery that its WITH belongs to.
//! * No expression says yet where a column lies.
//!
//! A failure is our own mistake: the statement ends with an internal error, and nothing is run.

use super::{Body, Node, Query, Statement};
use crate::expr::{ColumnId, Expr, ExprKind};
use rauk_types::MysqlError;
use rustc_hash::FxHashSet;

/// Error 1815: which rule is broken.
fn broken(rule: impl Into<String>) -> MysqlError {
    MysqlError::new(1815, format!("Internal error: {}", rule.into()))
}

impl Statement {
    pub fn validate(&self) -> Result<(), MysqlError> {
        let mut made = FxHashSet::default();
        if let Some(query) = self.main_query() {
            self.query_made(query, &mut made)?;
        }
        for subquery in &self.subqueries {
            self.query_made(&subquery.query, &mut made)?;
        }
        for table in &self.tables {
            self.query_made(&table.seed, &mut made)?;
            if let Some(recursive) = &table.recursive {
                self.query_made(&recursive.query, &mut made)?;
            }
        }
        if let Some(query) = self.main_query() {
            self.query(query, &[])?;
        }
        if let Body::Write(write) = &self.body {
            let reach = write.columns().into_iter().collect();
            let mut result = Ok(());
            write.for_each_expr(&mut |expr| {
                if result.is_ok() {
                    result = self.expr(expr, &reach);
                }
            });
            result?;
        }
        for subquery in &self.subqueries {
            self.query(&subquery.query, &subquery.outer)?;
        }
        for table in &self.tables {
            let within = table.within.and_then(|id| self.subqueries.get(id.0 as usize));
            if table.outer.iter().any(|id| within.is_none_or(|within| !within.outer.contains(id))) {
                return Err(broken(format!("the common table {} reads columns that nothing gives", table.name)));
            }
            self.query(&table.seed, &table.outer)?;
            if let Some(recursive) = &table.recursive {
                self.query(&recursive.query, &table.outer)?;
            }
        }
        Ok(())
    }

    /// The query that is the statement, that gives the rows of an INSERT, or those that are changed.
    pub fn main_query(&self) -> Option<&Query> {
        match &self.body {
            Body::Query(query) => Some(query),
            Body::Write(write) => write.query(),
        }
    }

    fn query_made(&self, query: &Query, made: &mut FxHashSet<ColumnId>) -> Result<(), MysqlError> {
        fn node(at: &Node, made: &mut FxHashSet<ColumnId>, result: &mut Result<(), MysqlError>) {
            let mut own: Vec<ColumnId> = Vec::new();
            match at {
                Node::Scan(scan) => own.extend(&scan.columns),
                Node::Values { columns, .. } => own.extend(columns),
                Node::TableFunction(function) => own.extend(&function.columns),
                Node::CommonTable(table) => own.extend(&table.columns),
                Node::Project { items, .. } => own.extend(items.iter().map(|(id, _)| *id)),
                Node::Aggregate(aggregate) => own.extend(aggregate.own_columns()),
                Node::Window(window) => own.extend(window.own_columns()),
                Node::SetOperation(operation) => own.extend(&operation.columns),
                _ => {}
            }
            for id in own {
                if !made.insert(id) && result.is_ok() {
                    *result = Err(broken(format!("column {} is made twice", id.0)));
                }
            }
            at.for_each_input(&mut |input| node(input, made, result));
        }
        let mut result = Ok(());
        node(&query.node, made, &mut result);
        result
    }

    fn query(&self, query: &Query, outer: &[ColumnId]) -> Result<(), MysqlError> {
        self.node(&query.node, outer, &[])?;
        let mut given = Vec::new();
        query.node.columns(&mut given);
        match query.columns.iter().find(|id| !given.contains(id)) {
            None => Ok(()),
            Some(id) => Err(broken(format!("a query gives column {}, which its tree does not", id.0))),
        }
    }

    /// `beside`: the columns of the tables before this part of FROM.
    fn node(&self, node: &Node, outer: &[ColumnId], beside: &[ColumnId]) -> Result<(), MysqlError> {
        let mut reach: FxHashSet<ColumnId> = outer.iter().copied().collect();
        let mut inputs = Vec::new();
        // The conditions of semi and anti joins see the right side too.
        node.for_each_input(&mut |input| input.columns(&mut inputs));
        match node {
            Node::Join(join) => {
                self.node(&join.left, outer, beside)?;
                let mut left = beside.to_vec();
                join.left.columns(&mut left);
                if join.kind.only_tests() {
                    let outer = [outer, &left].concat();
                    self.node(&join.right, &outer, &left)?;
                } else {
                    self.node(&join.right, outer, &left)?;
                }
            }
            Node::Lateral(lateral) => {
                reach.extend(beside);
                let query = self.subqueries.get(lateral.subquery.0 as usize);
                if query.is_none_or(|query| {
                    query.outer.len() != lateral.outer.len() || query.query.columns != lateral.columns
                }) {
                    return Err(broken(format!("there is no query of the lateral table {}", lateral.alias)));
                }
            }
            node => {
                let mut result = Ok(());
                node.for_each_input(&mut |input| {
                    if result.is_ok() {
                        result = self.node(input, outer, &[]);
                    }
                });
                result?;
            }
        }
        reach.extend(inputs);
        let mut result = Ok(());
        node.for_each_expr(&mut |expr| {
            if result.is_ok() {
                result = self.expr(expr, &reach);
            }
        });
        result
    }

    fn expr(&self, expr: &Expr, reach: &FxHashSet<ColumnId>) -> Result<(), MysqlError> {
        match &expr.kind {
            ExprKind::Reference(id) if !reach.contains(id) => {
                return Err(broken(format!("column {} is out of reach", id.0)));
            }
            ExprKind::Column { .. } | ExprKind::GroupValue(_) => {
                return Err(broken("a place of a column stands in the logical tree"));
            }
            ExprKind::Subquery(subquery) => match self.subqueries.get(subquery.id.0 as usize) {
                None => return Err(broken(format!("there is no subquery {}", subquery.id.0))),
                Some(query) if query.is_gone() => {
                    return Err(broken(format!("subquery {} is part of another block", subquery.id.0)));
                }
                Some(query) if query.outer.len() != subquery.outer.len() => {
                    return Err(broken(format!("subquery {} has other outer columns", subquery.id.0)));
                }
                Some(_) => {}
            },
            _ => {}
        }
        let mut result = Ok(());
        expr.for_each_child(&mut |child| {
            if result.is_ok() {
                result = self.expr(child, reach);
            }
        });
        result
    }
}
