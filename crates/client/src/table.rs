//! Tables as opened.
//!
//! A table that was opened keeps its definition. When the node says that it has changed, single operations open it again and are repeated; in a transaction
//! the error is [`crate::ErrorKind::SchemaChanged`], and the table's next use has the new definition.

use crate::row::IntoKey;
use crate::{Error, Record, Row, Scan};
use rauk_types::{TableSchema, Value};
use std::marker::PhantomData;
use std::sync::Arc;

/// Rows by column name. Cheap to clone.
#[derive(Clone)]
pub struct Table {
    _private: (),
}

impl Table {
    /// The newest definition that this client knows.
    pub fn schema(&self) -> Arc<TableSchema> {
        todo!()
    }

    pub async fn get(&self, _key: impl IntoKey) -> Result<Option<Row>, Error> {
        todo!()
    }

    /// By the columns of a unique index.
    pub async fn get_by(&self, _index: &str, _key: impl IntoKey) -> Result<Option<Row>, Error> {
        todo!()
    }

    /// Columns by name; those not named get their defaults. Gives the AUTO_INCREMENT number, if one was made.
    pub async fn insert(&self, _values: &[(&str, Value)]) -> Result<Option<u64>, Error> {
        todo!()
    }

    /// Inserts, or sets these columns of the row with the same primary key.
    pub async fn write(&self, _values: &[(&str, Value)]) -> Result<(), Error> {
        todo!()
    }

    /// `false`: there is no such row.
    pub async fn update(&self, _key: impl IntoKey, _values: &[(&str, Value)]) -> Result<bool, Error> {
        todo!()
    }

    /// Adds to a number and gives the row afterwards.
    pub async fn increment(
        &self,
        _key: impl IntoKey,
        _column: &str,
        _by: impl Into<Value>,
    ) -> Result<Option<Row>, Error> {
        todo!()
    }

    pub async fn delete(&self, _key: impl IntoKey) -> Result<bool, Error> {
        todo!()
    }

    /// All rows, over all partitions at once unless an order is asked for.
    pub fn scan(&self) -> Scan {
        todo!()
    }

    /// In the order of an index.
    pub fn scan_index(&self, _index: &str) -> Result<Scan, Error> {
        todo!()
    }
}

/// A table whose rows are records of type `R`; has everything that [`Table`] has, with records in place of rows.
pub struct Records<R> {
    table: Table,
    _record: PhantomData<fn() -> R>,
}

impl<R> Clone for Records<R> {
    fn clone(&self) -> Self {
        Records { table: self.table.clone(), _record: PhantomData }
    }
}

impl<R: Record> Records<R> {
    pub fn table(&self) -> &Table {
        &self.table
    }

    pub async fn get(&self, _key: impl IntoKey) -> Result<Option<R>, Error> {
        todo!()
    }

    pub async fn get_by(&self, _index: &str, _key: impl IntoKey) -> Result<Option<R>, Error> {
        todo!()
    }

    pub async fn insert(&self, _record: &R) -> Result<Option<u64>, Error> {
        todo!()
    }

    pub async fn write(&self, _record: &R) -> Result<(), Error> {
        todo!()
    }

    /// Sets all columns of the record but the key.
    pub async fn update(&self, _record: &R) -> Result<bool, Error> {
        todo!()
    }

    pub async fn increment(
        &self,
        _key: impl IntoKey,
        _column: &str,
        _by: impl Into<Value>,
    ) -> Result<Option<R>, Error> {
        todo!()
    }

    pub async fn delete(&self, _key: impl IntoKey) -> Result<bool, Error> {
        todo!()
    }
}
