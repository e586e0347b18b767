//! Where tables come from: what binding asks of the session.

use crate::expr::BindContext;
use crate::parse::ast::{ColumnOption, ColumnType, TableName};
use crate::statistics::TableStatistics;
use rauk_node::runtime::BoxFuture;
use rauk_node::{Database, TableHandle};
use rauk_types::error::codes;
use rauk_types::{DataType, MysqlError, TableSchema, Value, ViewSchema};
use std::sync::Arc;

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
    View(Arc<ViewSchema>),
}

/// A table or view on some of whose columns privileges are granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardedTable {
    pub database: String,
    pub name: String,
}

/// Finds tables and checks privileges: the session implements it.
pub trait Lookup {
    /// `privilege`: SELECT, INSERT, UPDATE, DELETE. Errors: 1046, 1146, 1142, 1109.
    fn table(&self, database: Option<&str>, name: &str, privilege: &str) -> Result<TableSource, MysqlError>;
    /// The same for who can look at columns: `true` where the privilege is granted on some columns only, each of
    /// which is to be asked for.
    fn table_by_columns(
        &self,
        database: Option<&str>,
        name: &str,
        privilege: &str,
    ) -> Result<(TableSource, bool), MysqlError> {
        Ok((self.table(database, name, privilege)?, false))
    }
    /// Whether a table that the statement names may be used under LOCK TABLES. Errors: 1099, 1100.
    fn check_locked(&self, _: &TableName, _alias: Option<&str>, _privilege: &str) -> Result<(), MysqlError> {
        Ok(())
    }
    /// Whether a column may be read or written. Error: 1143.
    fn may_use_column(&self, _: &GuardedTable, _column: &str, _privilege: &str) -> Result<(), MysqlError> {
        Ok(())
    }
    /// Whether the rows of a table or view may be locked by FOR UPDATE, which takes more than SELECT. Error: 1142.
    fn may_lock_rows(&self, database: &str, name: &str) -> Result<(), MysqlError>;
    /// Finds what the query of a view names: in the view's database, with the privileges that its SQL SECURITY says. Errors: 1449, 1045.
    fn within(&self, view: &ViewSchema) -> Result<Box<dyn Lookup>, MysqlError>;
    fn database(&self) -> &Database;
    /// Whether a database of this name has tables of the system: `information_schema` and the like.
    fn is_system(&self, _database: &str) -> bool {
        false
    }
    /// The type that JSON_TABLE declares for a column. Errors: 1074, 1425, 1426, 1115, 1273, 1235 and others of declared types.
    fn column_type(
        &self,
        name: &str,
        declared: &ColumnType,
        options: &[ColumnOption],
        context: &BindContext,
    ) -> Result<DataType, MysqlError>;
    /// What is known of the values of a table's indexes.
    fn statistics(&self, _: &TableHandle) -> Option<Arc<TableStatistics>> {
        None
    }
}

/// Error 1235, in MySQL's words.
pub(crate) fn unsupported(feature: &str) -> MysqlError {
    MysqlError::new(codes::NOT_SUPPORTED_YET, format!("This version of MySQL doesn't yet support '{feature}'"))
}
