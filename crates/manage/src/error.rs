//! Why the catalog refused a command, with the error a MySQL client gets.

use crate::command::JobId;
use rauk_types::{ColumnId, MysqlError, TableId, error::codes};

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, thiserror::Error)]
pub enum CatalogError {
    #[error("Can't create database '{0}'; database exists")]
    DatabaseExists(String),
    #[error("Unknown database '{0}'")]
    UnknownDatabase(String),
    #[error("Table '{name}' already exists")]
    TableExists { database: String, name: String },
    #[error("Duplicate foreign key constraint name '{0}'")]
    ForeignKeyExists(String),
    #[error("Table '{database}.{name}' doesn't exist")]
    NoSuchTable { database: String, name: String },
    /// Not a user's mistake: the caller named an id that is not in the catalog.
    #[error("no table with id {}", .0.0)]
    NoSuchTableId(TableId),
    #[error("table id {} is in use or was used before", .0.0)]
    TableIdUsed(TableId),
    #[error("no DDL job {}", .0.0)]
    NoSuchJob(JobId),
    /// Not a user's mistake: the caller looks again.
    #[error("the tables of database '{0}' have changed meanwhile")]
    TablesChanged(String),
    /// Not a user's mistake: the caller looks again.
    #[error("Got temporary error: it was changed by somebody else meanwhile; try again")]
    SettingsChanged,
    /// Not a user's mistake: the column was dropped meanwhile.
    #[error("table {} has no column with id {}", .0.0, .1.0)]
    NoSuchColumnId(TableId, ColumnId),
    #[error(
        "All histograms together are larger than {} bytes; drop some, or ask for fewer buckets",
        crate::histograms::MOST_BYTES
    )]
    HistogramsTooLarge,
}

impl From<CatalogError> for MysqlError {
    fn from(error: CatalogError) -> Self {
        let code = match &error {
            CatalogError::DatabaseExists(_) => codes::DB_CREATE_EXISTS,
            CatalogError::UnknownDatabase(_) => codes::BAD_DB,
            CatalogError::TableExists { .. } => codes::TABLE_EXISTS,
            CatalogError::ForeignKeyExists(_) => codes::FK_DUP_NAME,
            CatalogError::NoSuchTable { .. } => codes::NO_SUCH_TABLE,
            CatalogError::SettingsChanged => codes::GET_TEMPORARY_ERRMSG,
            CatalogError::NoSuchTableId(_)
            | CatalogError::TableIdUsed(_)
            | CatalogError::NoSuchJob(_)
            | CatalogError::NoSuchColumnId(..)
            | CatalogError::HistogramsTooLarge
            | CatalogError::TablesChanged(_) => codes::UNKNOWN_ERROR,
        };
        MysqlError::new(code, error.to_string())
    }
}
