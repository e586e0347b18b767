//! Bound, typed plans.
//!
//! ```text
//! model      what a plan is made of
//! names      what a name means in each clause; errors 1052, 1054
//! from       FROM: tables, aliases, join structure, USING and NATURAL
//! condition  conjuncts, and what an index can use of them
//! access     the access path of one table: candidates and their cost
//! join       the order of tables and the steps of nested loops
//! select     SELECT: list, grouping, ordering, limit
//! grouping   ONLY_FULL_GROUP_BY
//! insert     INSERT and REPLACE
//! change     UPDATE and DELETE
//! explain    rows of EXPLAIN
//! ```
//! Planning is synchronous and does no I/O. Nothing is left to resolve at run time except the values of parameters: a plan is immutable and shared by
//! the plan cache, and every execution brings its parameters in the [`Context`](crate::expr::Context).
//!
//! What this version leaves out, each with error 1235: derived tables, subqueries, UNION, common table expressions, window functions, WITH ROLLUP,
//! UPDATE and DELETE of several tables.

mod access;
mod change;
mod condition;
mod explain;
mod from;
mod grouping;
mod insert;
mod join;
pub(crate) mod model;
mod names;
mod select;

use crate::expr::BindContext;
use crate::parse::Statement;
use rauk_node::runtime::BoxFuture;
use rauk_node::{Database, TableHandle};
use rauk_types::error::codes;
use rauk_types::result::ResultColumn;
use rauk_types::{MysqlError, TableSchema, Value};
use std::sync::Arc;

pub(crate) use condition::key_class;
pub(crate) use model::PlanKind;

/// A table that is computed when read (information_schema, `rauk.*`).
pub trait VirtualTable: Send + Sync {
    /// Only names, types and nullability are used.
    fn schema(&self) -> &Arc<TableSchema>;
    /// All rows. `schema_hint`/`table_hint`: constants that WHERE compares TABLE_SCHEMA and TABLE_NAME with.
    fn rows(&self, schema_hint: Option<&str>, table_hint: Option<&str>) -> Result<Vec<Vec<Value>>, MysqlError>;
    /// The same for who can wait: tables that ask other nodes do so without holding a thread.
    fn gather(
        &self,
        schema_hint: Option<&str>,
        table_hint: Option<&str>,
    ) -> BoxFuture<Result<Vec<Vec<Value>>, MysqlError>> {
        let rows = self.rows(schema_hint, table_hint);
        Box::pin(async move { rows })
    }
}

pub enum TableSource {
    Stored(TableHandle),
    Virtual(Arc<dyn VirtualTable>),
}

/// Finds tables and checks privileges: the session implements it.
pub trait Lookup {
    /// `privilege`: SELECT, INSERT, UPDATE, DELETE. Errors: 1046, 1146, 1142, 1109.
    fn table(&self, database: Option<&str>, name: &str, privilege: &str) -> Result<TableSource, MysqlError>;
    /// Whether the rows of a table may be locked by FOR UPDATE, which takes more than SELECT. Error: 1142.
    fn may_lock_rows(&self, table: &TableHandle) -> Result<(), MysqlError>;
    fn database(&self) -> &Database;
}

/// A plan for SELECT, INSERT, REPLACE, UPDATE or DELETE. Immutable and shared by the plan cache; parameters come with each execution.
pub struct Plan {
    /// Of a SELECT; empty otherwise.
    pub columns: Vec<ResultColumn>,
    /// Every stored table that it uses, with whether it is written: the executor calls `use_table` on each.
    pub tables: Vec<(TableHandle, bool)>,
    /// Its other queries; `None` for most statements.
    pub(crate) parts: Option<Arc<model::Parts>>,
    pub(crate) kind: PlanKind,
}

/// Binds a statement. Everything but SELECT, INSERT, REPLACE, UPDATE and DELETE is the session's, and a mistake of the caller here (1235).
pub fn plan(statement: &Statement, lookup: &dyn Lookup, context: &BindContext) -> Result<Plan, MysqlError> {
    match statement {
        Statement::Query(query) => select::plan_query(query, lookup, context),
        Statement::Insert(insert) => insert::plan_insert(insert, lookup, context),
        Statement::Update(update) => change::plan_update(update, lookup, context),
        Statement::Delete(delete) => change::plan_delete(delete, lookup, context),
        _ => Err(unsupported("this statement in a query plan")),
    }
}

impl Plan {
    /// Rows of EXPLAIN (TRADITIONAL) in MySQL's twelve columns.
    pub fn explain(&self, context: &mut crate::expr::Context) -> Result<Vec<Vec<Value>>, MysqlError> {
        explain::rows(self, context)
    }

    /// Calls `visit` on every block of the statement.
    pub(crate) fn for_each_block<'a>(&'a self, visit: &mut dyn FnMut(&'a model::SelectPlan)) {
        match &self.kind {
            PlanKind::Select(select) => select.for_each_block(visit),
            PlanKind::Query(query) => query.for_each_block(visit),
            PlanKind::Insert(insert) => {
                if let model::InsertSource::Query(query, _) = &insert.source {
                    query.for_each_block(visit);
                }
            }
            PlanKind::Update(_) | PlanKind::Delete(_) => {}
        }
        if let Some(parts) = &self.parts {
            for table in &parts.tables {
                table.seed.for_each_block(visit);
                if let Some(recursive) = &table.recursive {
                    recursive.query.for_each_block(visit);
                }
            }
            parts.subqueries.iter().for_each(|subquery| subquery.query.for_each_block(visit));
        }
    }

    /// Whether it changes nothing and takes no locks of its own: a SELECT without FOR UPDATE or FOR SHARE.
    pub fn is_read_only(&self) -> bool {
        match &self.kind {
            PlanKind::Select(select) if self.parts.is_none() => select.lock.is_none(),
            PlanKind::Select(_) | PlanKind::Query(_) => {
                let mut locks = false;
                self.for_each_block(&mut |block| {
                    locks |= block.steps.iter().any(|s| matches!(s, model::Step::Scan(level) if level.lock.is_some()));
                });
                !locks
            }
            _ => false,
        }
    }
}

/// Error 1235, in MySQL's words.
pub(crate) fn unsupported(feature: &str) -> MysqlError {
    MysqlError::new(codes::NOT_SUPPORTED_YET, format!("This version of MySQL doesn't yet support '{feature}'"))
}
