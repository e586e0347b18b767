//! Batches: many operations in one round trip.

use crate::condition::Condition;
use crate::row::IntoKey;
use crate::{Error, Record, Records, Row, Table};
use rauk_types::Value;

/// An operation's number in its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OpId(pub u16);

/// Operations to be sent together. Mistakes (a column that does not exist, a value that does not fit) are noticed when it is executed, and name the operation.
#[derive(Clone)]
pub struct Batch {
    _private: (),
}

impl Batch {
    pub fn get(&mut self, _table: &Table, _key: impl IntoKey) -> OpId {
        todo!()
    }

    pub fn get_columns(&mut self, _table: &Table, _key: impl IntoKey, _columns: &[&str]) -> OpId {
        todo!()
    }

    pub fn get_for_update(&mut self, _table: &Table, _key: impl IntoKey) -> OpId {
        todo!()
    }

    pub fn get_by(&mut self, _table: &Table, _index: &str, _key: impl IntoKey) -> OpId {
        todo!()
    }

    pub fn insert(&mut self, _table: &Table, _values: &[(&str, Value)]) -> OpId {
        todo!()
    }

    pub fn write(&mut self, _table: &Table, _values: &[(&str, Value)]) -> OpId {
        todo!()
    }

    pub fn update(&mut self, _table: &Table, _key: impl IntoKey, _values: &[(&str, Value)]) -> OpId {
        todo!()
    }

    pub fn update_if(
        &mut self,
        _table: &Table,
        _key: impl IntoKey,
        _values: &[(&str, Value)],
        _condition: Condition,
    ) -> OpId {
        todo!()
    }

    pub fn increment(&mut self, _table: &Table, _key: impl IntoKey, _column: &str, _by: impl Into<Value>) -> OpId {
        todo!()
    }

    pub fn delete(&mut self, _table: &Table, _key: impl IntoKey) -> OpId {
        todo!()
    }

    pub fn delete_if(&mut self, _table: &Table, _key: impl IntoKey, _condition: Condition) -> OpId {
        todo!()
    }

    pub fn insert_record<R: Record>(&mut self, _records: &Records<R>, _record: &R) -> OpId {
        todo!()
    }

    pub fn write_record<R: Record>(&mut self, _records: &Records<R>, _record: &R) -> OpId {
        todo!()
    }

    pub fn update_record<R: Record>(&mut self, _records: &Records<R>, _record: &R) -> OpId {
        todo!()
    }

    pub fn len(&self) -> usize {
        todo!()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What became of an operation.
#[derive(Debug)]
pub enum Done {
    /// A write took place; the AUTO_INCREMENT number, if one was made.
    Done(Option<u64>),
    Row(Row),
    /// There is no such row.
    Missing,
    Duplicate {
        index: String,
    },
    ConditionFalse,
    /// An earlier operation of the batch had failed.
    NotExecuted,
}

impl std::fmt::Debug for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.columns()).finish()
    }
}

/// Outcomes by operation.
pub struct BatchResult {
    _private: (),
}

impl BatchResult {
    /// Of a `get…`.
    pub fn row(&self, _op: OpId) -> Result<Option<Row>, Error> {
        todo!()
    }

    pub fn record<R: Record>(&self, _records: &Records<R>, _op: OpId) -> Result<Option<R>, Error> {
        todo!()
    }

    pub fn outcome(&self, _op: OpId) -> Result<Done, Error> {
        todo!()
    }

    /// How many operations there were, and how many of them found or changed a row; cheap.
    pub fn len(&self) -> usize {
        todo!()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn succeeded(&self) -> usize {
        todo!()
    }
}
