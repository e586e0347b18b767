//! Bound, typed plans.
use crate::expr::BindContext;
use crate::parse::Statement;
use rauk_node::{Database, TableHandle};
use rauk_types::result::ResultColumn;
use rauk_types::{MysqlError, TableSchema, Value};
use std::sync::Arc;

/// A table that is computed when read (information_schema, `rauk.*`).
pub trait VirtualTable: Send + Sync {
    /// Only names, types and nullability are used.
    fn schema(&self) -> &Arc<TableSchema>;
    /// All rows. `schema_hint`/`table_hint`: constants that WHERE compares TABLE_SCHEMA and TABLE_NAME with.
    fn rows(&self, schema_hint: Option<&str>, table_hint: Option<&str>) -> Result<Vec<Vec<Value>>, MysqlError>;
}

pub enum TableSource {
    Stored(TableHandle),
    Virtual(Arc<dyn VirtualTable>),
}

/// Finds tables and checks privileges: the session implements it.
pub trait Lookup {
    /// `privilege`: SELECT, INSERT, UPDATE, DELETE. Errors: 1046, 1146, 1142, 1109.
    fn table(&self, database: Option<&str>, name: &str, privilege: &str) -> Result<TableSource, MysqlError>;
    fn database(&self) -> &Database;
}

/// A plan for SELECT, INSERT, REPLACE, UPDATE or DELETE. Immutable and shared by the plan cache; parameters come with each execution.
pub struct Plan {
    /// Of a SELECT; empty otherwise.
    pub columns: Vec<ResultColumn>,
    /// Every stored table that it uses, with whether it is written: the executor calls `use_table` on each.
    pub tables: Vec<(TableHandle, bool)>,
}

#[allow(unused_variables)]
pub fn plan(statement: &Statement, lookup: &dyn Lookup, context: &BindContext) -> Result<Plan, MysqlError> {
    todo!()
}

#[allow(unused_variables)]
impl Plan {
    /// Rows of EXPLAIN (TRADITIONAL) in MySQL's twelve columns.
    pub fn explain(&self, context: &mut crate::expr::Context) -> Result<Vec<Vec<Value>>, MysqlError> {
        todo!()
    }
    pub fn is_read_only(&self) -> bool {
        todo!()
    }
}
