//! Tables whose rows are records of one type.
//!
//! Where the record's fields are among the table's columns is found, and checked, when the table is opened, and again whenever its definition has changed.

use crate::convert::IntoKey;
use crate::definition::Opened;
use crate::record::columns_of;
use crate::row::RowRef;
use crate::table::{ONLY, drop_id};
use crate::{Batch, Error, ErrorKind, OpId, Record, Row, Table};
use parking_lot::RwLock;
use rauk_types::error::codes;
use rauk_types::{Value, ValueRef};
use rauk_wire::OpKind;
use std::marker::PhantomData;
use std::sync::Arc;

/// A table whose rows are records of type `R`; has everything that [`Table`] has, with records in place of rows.
pub struct Records<R> {
    table: Table,
    mapping: Arc<RwLock<Arc<Mapping>>>,
    record: PhantomData<fn() -> R>,
}

/// Where fields are in a definition.
pub(crate) struct Mapping {
    generation: u32,
    opened: Arc<Opened>,
    /// Column of each field.
    pub columns: Vec<u16>,
    /// The fields of the primary key, in its order.
    pub key: Vec<usize>,
    /// All other fields, and their columns.
    pub others: Vec<usize>,
    pub other_columns: Vec<u16>,
}

impl Mapping {
    fn new<R: Record>(opened: Arc<Opened>, generation: u32) -> Result<Mapping, Error> {
        let columns = columns_of::<R>(&opened.schema)?;
        let field_of = |column: usize| columns.iter().position(|c| usize::from(*c) == column);
        let primary = &opened.schema.primary().parts;
        let key: Vec<usize> = primary.iter().filter_map(|part| field_of(part.column)).collect();
        let others: Vec<usize> = (0..columns.len()).filter(|field| !key.contains(field)).collect();
        let other_columns = others.iter().map(|field| columns[*field]).collect();
        Ok(Mapping { generation, opened, columns, key, others, other_columns })
    }
}

impl<R> Clone for Records<R> {
    fn clone(&self) -> Self {
        Records { table: self.table.clone(), mapping: self.mapping.clone(), record: PhantomData }
    }
}

impl<R: Record> Records<R> {
    pub(crate) fn new(table: Table) -> Result<Records<R>, Error> {
        let generation = table.generation();
        let mapping = Mapping::new::<R>(table.current(), generation)?;
        Ok(Records { table, mapping: Arc::new(RwLock::new(Arc::new(mapping))), record: PhantomData })
    }

    pub fn table(&self) -> &Table {
        &self.table
    }

    /// For the table's newest definition.
    pub(crate) fn mapping(&self) -> Result<Arc<Mapping>, Error> {
        let generation = self.table.generation();
        let mapping = self.mapping.read().clone();
        if mapping.generation == generation {
            return Ok(mapping);
        }
        let mapping = Arc::new(Mapping::new::<R>(self.table.current(), generation)?);
        *self.mapping.write() = mapping.clone();
        Ok(mapping)
    }

    /// Adds an operation by key, if the record still fits the table's newest definition: else the key may have become another one.
    #[inline]
    pub(crate) fn keyed(&self, batch: &mut Batch, kind: OpKind, add: impl FnOnce(&mut Batch) -> OpId) {
        if self.mapping.read().generation != self.table.generation()
            && let Err(error) = self.mapping()
        {
            drop_id(batch.wrong(&self.table, kind, error));
            return;
        }
        drop_id(add(batch));
    }

    /// A record from a row that was read by this definition.
    pub(crate) fn decode(&self, opened: &Arc<Opened>, row: &RowRef<'_>) -> Result<R, Error> {
        let mapping = self.mapping.read();
        if Arc::ptr_eq(&mapping.opened, opened) {
            return from_columns(opened, &mapping.columns, row);
        }
        drop(mapping);
        from_columns(opened, &columns_of::<R>(&opened.schema)?, row)
    }

    /// A row of this table, however it was read, as a record.
    pub fn record_of(&self, row: &Row) -> Result<R, Error> {
        self.decode(row.opened(), &row.view())
    }

    pub async fn get(&self, key: impl IntoKey) -> Result<Option<R>, Error> {
        self.table
            .single(|batch| self.keyed(batch, OpKind::Read, |b| b.get(&self.table, &key)))
            .await?
            .record(self, ONLY)
    }

    pub async fn get_by(&self, index: &str, key: impl IntoKey) -> Result<Option<R>, Error> {
        self.table
            .single(|batch| self.keyed(batch, OpKind::Read, |b| b.get_by(&self.table, index, &key)))
            .await?
            .record(self, ONLY)
    }

    pub async fn insert(&self, record: &R) -> Result<Option<u64>, Error> {
        self.table.single(|batch| drop_id(batch.insert_record(self, record))).await?.inserted()
    }

    pub async fn write(&self, record: &R) -> Result<(), Error> {
        self.table.single(|batch| drop_id(batch.write_record(self, record))).await?.inserted().map(|_| ())
    }

    /// Sets all columns of the record but the key.
    pub async fn update(&self, record: &R) -> Result<bool, Error> {
        self.table.single(|batch| drop_id(batch.update_record(self, record))).await?.found()
    }

    pub async fn increment(&self, key: impl IntoKey, column: &str, by: impl Into<Value>) -> Result<Option<R>, Error> {
        let by = by.into();
        let add = |batch: &mut Batch| {
            self.keyed(batch, OpKind::Increment, |b| b.increment(&self.table, &key, column, by.clone()));
        };
        self.table.single(add).await?.record(self, ONLY)
    }

    pub async fn delete(&self, key: impl IntoKey) -> Result<bool, Error> {
        self.table.single(|batch| self.keyed(batch, OpKind::Delete, |b| b.delete(&self.table, &key))).await?.found()
    }

    /// All rows; see [`Table::scan`] and [`crate::Scan::collect_records`].
    pub fn scan(&self) -> crate::Scan {
        self.table.scan()
    }

    /// In the order of an index.
    pub fn scan_index(&self, index: &str) -> Result<crate::Scan, Error> {
        self.table.scan_index(index)
    }
}

fn from_columns<R: Record>(opened: &Opened, columns: &[u16], row: &RowRef<'_>) -> Result<R, Error> {
    let mut missing = None;
    let record = R::from_values(&mut |field| {
        row.at(usize::from(columns[field])).unwrap_or_else(|error| {
            missing.get_or_insert(error);
            ValueRef::Null
        })
    });
    if let Some(error) = missing {
        return Err(error);
    }
    record.map_err(|field| {
        let info = &R::fields()[field];
        let value = row.at(usize::from(columns[field])).unwrap_or_default();
        let message = format!(
            "{value:?} in column '{}' of '{}' does not fit a field of type {}",
            info.column, opened.name, info.rust
        );
        Error::new(ErrorKind::WrongType, codes::TRUNCATED_WRONG_VALUE_FOR_FIELD, message)
    })
}
