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
use super::model::{
    CommonTablePlan, JsonTablePlan, Parts, PlanKind, QueryPlan, RecursivePlan, SearchPlan, SetPlan, SubqueryPlan,
};
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
    let Statement {
        columns,
        subqueries,
        tables,
        searches,
        body,
        returned,
        hints,
        switches,
        parameters,
        waits,
        by_values,
    } = statement;
    let mut lowering = Lowering {
        columns: &columns,
        lookup,
        database: lookup.database(),
        context,
        switches,
        stored: vec![],
        selected: None,
        by_values,
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
    let parts = lowering.parts(subqueries, tables, parameters, waits)?;
    let by_values = lowering.by_values;
    let search = |search: logical::Search| {
        let (table, _) = lowering.stored.iter().find(|(table, _)| table.schema().id == search.table)?;
        let logical::Search { index, against, mode, .. } = search;
        Some(SearchPlan { database: lowering.database.clone(), table: table.clone(), index, against, mode })
    };
    let searches = searches.into_iter().map(search).collect();
    Ok(Plan { columns: result, tables: lowering.stored, searches, parts, kind, hints, by_values })
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
    /// A join of it should be planned with the values of parameters.
    by_values: bool,
}

impl Lowering<'_> {
    fn parts(
        &mut self,
        subqueries: Vec<logical::Subquery>,
        tables: Vec<CommonTable>,
        parameters: usize,
        waits: bool,
    ) -> Result<Option<Arc<Parts>>, MysqlError> {
        if !waits && subqueries.iter().all(logical::Subquery::is_gone) && tables.is_empty() {
            return Ok(None);
        }
        let mut next = parameters;
        let mut lowered = Vec::with_capacity(subqueries.len());
        let mut outers = Vec::with_capacity(subqueries.len());
        for logical::Subquery { query, outer, .. } in subqueries {
            let (first_outer, count) = (next, outer.len());
            next += count;
            let types = self.types(&query.columns);
            let outer = Outer::new(&outer, first_outer);
            let query = self.query(query, &outer)?;
            lowered.push(SubqueryPlan { query, first_outer, outer: count, types });
            outers.push(outer);
        }
        let none = Outer::default();
        let mut lowered_tables = Vec::with_capacity(tables.len());
        for table in tables {
            let outer = table.within.map_or(&none, |id| &outers[id.0 as usize]);
            lowered_tables.push(self.common_table(table, outer)?);
        }
        let tables = lowered_tables;
        let outer_columns = next - parameters;
        Ok(Some(Arc::new(Parts { subqueries: lowered, tables, parameters, outer_columns })))
    }

    /// `outer`: the columns that it may read of the queries around its WITH.
    fn common_table(&mut self, table: CommonTable, outer: &Outer) -> Result<CommonTablePlan, MysqlError> {
        let CommonTable { seed, recursive, names, types, outer: reads, .. } = table;
        let reads = reads.into_iter().map(|id| outer.parameter(id)).collect();
        let seed = self.query(seed, outer)?;
        let recursive = recursive
            .map(|recursive| {
                let query = self.query(recursive.query, outer)?;
                let (limit, offset) = (recursive.limit, recursive.offset);
                Ok::<_, MysqlError>(RecursivePlan { query, all: recursive.all, limit, offset })
            })
            .transpose()?;
        Ok(CommonTablePlan { names, seed, recursive, types, reads })
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
            Node::TableFunction(function) if function.columns == query.columns => {
                let document = Places::new(outer).place(function.document)?;
                Ok(QueryPlan::JsonTable(Box::new(JsonTablePlan { document, table: function.table })))
            }
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
