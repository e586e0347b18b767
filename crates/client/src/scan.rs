//! Scans: bounds, direction, limit, filter and projection, all evaluated where the rows are; rows come in pages, the next of which is on its way while one is read.

use crate::condition::Condition;
use crate::row::IntoKey;
use crate::{Error, Record, Records, Row};
use std::marker::PhantomData;
use std::ops::RangeBounds;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    #[default]
    Forward,
    Backward,
}

/// A scan as it is wanted; mistakes are noticed when it starts.
#[derive(Clone)]
pub struct Scan {
    _private: (),
}

impl Scan {
    /// Bounds on the index's columns, or on the first of them.
    pub fn range<K: IntoKey + Clone>(self, _range: impl RangeBounds<K>) -> Scan {
        todo!()
    }

    /// The rows whose first index columns have these values.
    pub fn prefix(self, _key: impl IntoKey) -> Scan {
        todo!()
    }

    pub fn direction(self, _direction: Direction) -> Scan {
        todo!()
    }

    pub fn limit(self, _rows: u64) -> Scan {
        todo!()
    }

    pub fn filter(self, _condition: Condition) -> Scan {
        todo!()
    }

    pub fn columns(self, _columns: &[&str]) -> Scan {
        todo!()
    }

    /// Locks the rows; only within a transaction.
    pub fn for_update(self) -> Scan {
        todo!()
    }

    /// Outside of transactions: one state of the table.
    pub fn rows(self) -> Rows<'static> {
        todo!()
    }

    pub async fn collect(self) -> Result<Vec<Row>, Error> {
        todo!()
    }

    pub async fn collect_records<R: Record>(self, _records: &Records<R>) -> Result<Vec<R>, Error> {
        todo!()
    }
}

/// Rows of a scan, one after the other. Dropping it ends the scan.
pub struct Rows<'t> {
    _transaction: PhantomData<&'t mut ()>,
}

impl Rows<'_> {
    /// `None` after the last.
    pub async fn next(&mut self) -> Result<Option<Row>, Error> {
        todo!()
    }
}
