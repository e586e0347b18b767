//! Transactions.
//!
//! May be handed between threads and tasks. Operations take place in their order; those of one [`Batch`] go in one round trip, and the commit with
//! the last of them ([`Transaction::execute_and_commit`]). Dropping a transaction rolls it back.

use crate::row::IntoKey;
use crate::{Batch, BatchResult, Error, Record, Records, Scan};
use rauk_types::Value;
use std::time::Duration;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    ReadCommitted,
    #[default]
    RepeatableRead,
    Serializable,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TransactionOptions {
    pub isolation: Isolation,
    pub read_only: bool,
    /// Zero: the node's default.
    pub lock_wait: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Savepoint(pub(crate) u32);

pub struct Transaction {
    _private: (),
}

impl Transaction {
    pub fn batch(&self) -> Batch {
        todo!()
    }

    /// In one round trip, in their order; the first failure ends the batch and undoes it, the transaction goes on.
    pub async fn execute(&mut self, _batch: Batch) -> Result<BatchResult, Error> {
        todo!()
    }

    /// The same, each operation with an outcome of its own.
    pub async fn execute_each(&mut self, _batch: Batch) -> Result<BatchResult, Error> {
        todo!()
    }

    /// Commit with the last batch: one round trip for both. When an operation fails, nothing is committed and the transaction is rolled back.
    pub async fn execute_and_commit(self, _batch: Batch) -> Result<BatchResult, Error> {
        todo!()
    }

    pub async fn get<R: Record>(&mut self, _records: &Records<R>, _key: impl IntoKey) -> Result<Option<R>, Error> {
        todo!()
    }

    pub async fn get_for_update<R: Record>(
        &mut self,
        _records: &Records<R>,
        _key: impl IntoKey,
    ) -> Result<Option<R>, Error> {
        todo!()
    }

    pub async fn insert<R: Record>(&mut self, _records: &Records<R>, _record: &R) -> Result<Option<u64>, Error> {
        todo!()
    }

    pub async fn write<R: Record>(&mut self, _records: &Records<R>, _record: &R) -> Result<(), Error> {
        todo!()
    }

    pub async fn update<R: Record>(&mut self, _records: &Records<R>, _record: &R) -> Result<bool, Error> {
        todo!()
    }

    pub async fn increment<R: Record>(
        &mut self,
        _records: &Records<R>,
        _key: impl IntoKey,
        _column: &str,
        _by: impl Into<Value>,
    ) -> Result<Option<R>, Error> {
        todo!()
    }

    pub async fn delete<R: Record>(&mut self, _records: &Records<R>, _key: impl IntoKey) -> Result<bool, Error> {
        todo!()
    }

    /// A scan that sees this transaction's state.
    pub fn scan<'t>(&'t mut self, _scan: Scan) -> crate::scan::Rows<'t> {
        todo!()
    }

    pub async fn savepoint(&mut self) -> Result<Savepoint, Error> {
        todo!()
    }

    pub async fn rollback_to(&mut self, _savepoint: Savepoint) -> Result<(), Error> {
        todo!()
    }

    /// Durable when it returns (as the server's `durability` says).
    pub async fn commit(self) -> Result<(), Error> {
        todo!()
    }

    pub async fn rollback(self) -> Result<(), Error> {
        todo!()
    }
}
