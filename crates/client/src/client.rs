//! A client: a connection that mends itself, tables by name, transactions.

use crate::{Error, Record, Records, Table, Transaction, TransactionOptions};
use std::path::PathBuf;
use std::time::Duration;

/// How often, and for how long, what failed for a while is tried again.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryPolicy {
    pub attempts: u32,
    pub first_pause: Duration,
    pub longest_pause: Duration,
}

#[derive(Clone, Debug)]
pub struct Options {
    pub secret: Option<Vec<u8>>,
    pub secret_file: Option<PathBuf>,
    pub tls: Option<rauk_transporter::security::TlsFiles>,
    pub name: String,
    pub connect_timeout: Duration,
    /// Of each request; zero: none.
    pub request_timeout: Duration,
    /// Of single operations outside of transactions that failed temporarily and have certainly not taken place, and of [`Client::transact`].
    pub retry: RetryPolicy,
    /// Longest wait of adaptive send; zero sends at once.
    pub longest_wait: Duration,
    pub longest_spin: Duration,
    /// Every frame is sent at once.
    pub force_send: bool,
    /// Sockets to the server; operations are spread over them by transaction.
    pub connections: usize,
}

impl Options {
    pub fn secret(_secret: impl Into<Vec<u8>>) -> Options {
        todo!()
    }

    pub fn secret_file(_path: impl Into<PathBuf>) -> Options {
        todo!()
    }
}

/// Cheap to clone; all clones share the connection.
#[derive(Clone)]
pub struct Client {
    _private: (),
}

impl Client {
    /// `address` is `host:port`.
    pub async fn connect(_address: &str, _options: Options) -> Result<Client, Error> {
        todo!()
    }

    /// A table as it is; rows by column name.
    pub async fn table(&self, _database: &str, _table: &str) -> Result<Table, Error> {
        todo!()
    }

    /// A table for records of one type, whose columns are checked against it now.
    pub async fn open<R: Record>(&self) -> Result<Records<R>, Error> {
        todo!()
    }

    /// The same; makes the database and the table when they are not there.
    pub async fn open_or_create<R: Record>(&self) -> Result<Records<R>, Error> {
        todo!()
    }

    pub async fn drop_table(&self, _database: &str, _table: &str) -> Result<(), Error> {
        todo!()
    }

    /// A batch outside of transactions: each operation for itself.
    pub fn batch(&self) -> crate::Batch {
        todo!()
    }

    pub async fn execute(&self, _batch: crate::Batch) -> Result<crate::BatchResult, Error> {
        todo!()
    }

    pub fn begin(&self) -> Transaction {
        self.begin_with(TransactionOptions::default())
    }

    /// Nothing is sent before the first operation.
    pub fn begin_with(&self, _options: TransactionOptions) -> Transaction {
        todo!()
    }

    /// Runs `work` in a transaction and commits; again from the beginning, as often as the retry policy says, when it fails with a temporary error. An unknown outcome is not tried again.
    pub async fn transact<T>(&self, _work: impl AsyncFnMut(&mut Transaction) -> Result<T, Error>) -> Result<T, Error> {
        todo!()
    }
}
