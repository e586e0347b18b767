//! Lowering: from the logical tree to plans that run.
//!
//! ```text
//! block    one query block → the fused steps of a [`SelectPlan`]
//! write    INSERT, UPDATE, DELETE
//! window   windows → a query whose rows the block reads
//! places   columns by their ids → where they lie
//! ```
//! A chain of Limit, Sort, Distinct, Project, Filter, Aggregate over joins becomes one block, which keeps no row that it need not keep. What stands where a
//! block expects a table and is none becomes a query of its own, whose rows the block reads from memory.
//!
//! Columns of the queries around a subquery are parameters of it: they lie behind the statement's own, each subquery's in a place of its own.

mod block;
mod places;
mod window;
mod write;

use super::Plan;
use super::model::{CommonTablePlan, Parts, PlanKind, QueryPlan, RecursivePlan, SetPlan, SubqueryPlan};
use crate::expr::{BindContext, ColumnId, Switches};
use crate::logical::{self, Body, Columns, CommonTable, Node, Query, Statement};
use crate::lookup::Lookup;
use places::{Outer, Places};
use rauk_node::{Database, TableHandle};
use rauk_types::{DataType, MysqlError};
use std::sync::Arc;
use window::Selected;

/// Lowers a statement.
pub(super) fn lower(statement: Statement, lookup: &dyn Lookup, context: &BindContext) -> Result<Plan, MysqlError> {
    let Statement { columns, subqueries, tables, body, returned, hints, switches, parameters } = statement;
    let mut lowering = Lowering {
        columns: &columns,
        lookup,
        database: lookup.database(),
        context,
        switches,
        stored: vec![],
        selected: None,
    };
    let mut result = Vec::new();
    let kind = match body {
        Body::Query(query) => {
            result.extend(query.columns.iter().map(|&id| columns.get(id).result.clone()));
            match lowering.query(query, &Outer::default())? {
                QueryPlan::Select(block) => PlanKind::Select(block),
                query => PlanKind::Query(Box::new(query)),
            }
        }
        Body::Write(write) => {
            result = returned;
            lowering.write(write)?
        }
    };
    let parts = lowering.parts(subqueries, tables, parameters)?;
    Ok(Plan { columns: result, tables: lowering.stored, parts, kind, hints })
}

struct Lowering<'a> {
    lookup: &'a dyn Lookup,
    columns: &'a Columns,
    database: &'a Database,
    context: &'a BindContext,
    switches: Switches,
    stored: Vec<(TableHandle, bool)>,
    /// What the columns of the block below windows are in the select list; set where that block is lowered next.
    selected: Option<Vec<Selected>>,
}

impl Lowering<'_> {
    fn parts(
        &mut self,
        subqueries: Vec<logical::Subquery>,
        tables: Vec<CommonTable>,
        parameters: usize,
    ) -> Result<Option<Arc<Parts>>, MysqlError> {
        if subqueries.iter().all(logical::Subquery::is_gone) && tables.is_empty() {
            return Ok(None);
        }
        let mut next = parameters;
        let mut lowered = Vec::with_capacity(subqueries.len());
        for logical::Subquery { query, outer, .. } in subqueries {
            let (first_outer, count) = (next, outer.len());
            next += count;
            let types = self.types(&query.columns);
            let query = self.query(query, &Outer::new(&outer, first_outer))?;
            lowered.push(SubqueryPlan { query, first_outer, outer: count, types });
        }
        let tables = tables.into_iter().map(|table| self.common_table(table)).collect::<Result<_, _>>()?;
        let outer_columns = next - parameters;
        Ok(Some(Arc::new(Parts { subqueries: lowered, tables, parameters, outer_columns })))
    }

    fn common_table(&mut self, table: CommonTable) -> Result<CommonTablePlan, MysqlError> {
        let CommonTable { seed, recursive, names, types, .. } = table;
        let seed = self.query(seed, &Outer::default())?;
        let recursive = recursive
            .map(|recursive| {
                let query = self.query(recursive.query, &Outer::default())?;
                let (limit, offset) = (recursive.limit, recursive.offset);
                Ok::<_, MysqlError>(RecursivePlan { query, all: recursive.all, limit, offset })
            })
            .transpose()?;
        Ok(CommonTablePlan { names, seed, recursive, types })
    }

    fn types(&self, columns: &[ColumnId]) -> Vec<DataType> {
        columns.iter().map(|&id| self.columns.get(id).ty).collect()
    }

    /// A query with the outer columns that it may read.
    fn query(&mut self, query: Query, outer: &Outer) -> Result<QueryPlan, MysqlError> {
        crate::stack::grow(|| match query.node {
            Node::SetOperation(operation) if operation.columns == query.columns => {
                let types = self.types(&operation.columns);
                let left = self.query(operation.left, outer)?;
                let right = self.query(operation.right, outer)?;
                Ok(QueryPlan::Set(Box::new(SetPlan { op: operation.op, all: operation.all, left, right, types })))
            }
            Node::Window(window) => self.window(*window, outer),
            Node::Values { columns, rows } if columns == query.columns => {
                let places = Places::new(outer);
                let row = |row: Vec<_>| row.into_iter().map(|expr| places.place(expr)).collect::<Result<_, _>>();
                Ok(QueryPlan::Values(rows.into_iter().map(row).collect::<Result<_, _>>()?))
            }
            node => {
                let block = self.block(node, &query.columns, outer)?;
                Ok(QueryPlan::Select(Box::new(block)))
            }
        })
    }
}
