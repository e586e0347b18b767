//! What a statement gives back, and where it goes: the seam between SQL and the protocols.

use crate::{Charset, Collation, DataType, MysqlError, ValueRef};
use std::future::Future;
use std::pin::Pin;

/// A column of a result set, with what a client's metadata shows.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultColumn {
    /// The alias, or the expression's text.
    pub name: String,
    pub org_name: String,
    pub table: String,
    pub org_table: String,
    pub database: String,
    pub ty: DataType,
    pub nullable: bool,
    pub primary_key: bool,
    pub unique_key: bool,
    pub multiple_key: bool,
    pub auto_increment: bool,
}

/// The end of a statement that succeeded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Completion {
    pub affected_rows: u64,
    pub last_insert_id: u64,
    pub warnings: u16,
    /// `Records: 3  Duplicates: 0  Warnings: 0` and the like.
    pub info: String,
    pub status: ServerStatus,
}

/// The flags that every OK and EOF packet carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerStatus {
    pub in_transaction: bool,
    pub autocommit: bool,
    pub in_transaction_readonly: bool,
    /// The statement was one of several and is not the last.
    pub more_results: bool,
    pub no_backslash_escapes: bool,
    pub charsets: Charsets,
}

/// The character sets of a connection's texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charsets {
    /// character_set_client: of statements and parameters.
    pub client: Charset,
    /// character_set_results: of rows, names and messages. `None`: each column's own.
    pub results: Option<Charset>,
    /// What columns of text say of it.
    pub results_collation: Collation,
}

impl Default for Charsets {
    fn default() -> Self {
        let utf8mb4 = Charset::UTF8MB4;
        Charsets { client: utf8mb4, results: Some(utf8mb4), results_collation: Collation::DEFAULT }
    }
}

impl Charsets {
    /// The set that a column's values are sent in.
    #[inline]
    pub fn of_column(&self, ty: &DataType) -> Charset {
        match self.results {
            Some(set) => set,
            // JSON is utf8mb4 always, and other types are ASCII.
            None if ty.is_text() || ty.has_members() => ty.collation.charset(),
            None => Charset::UTF8MB4,
        }
    }

    /// The set of names and messages.
    #[inline]
    pub fn of_names(&self) -> Charset {
        self.results.unwrap_or(Charset::UTF8MB4)
    }
}

/// A change of the session that clients may follow (CLIENT_SESSION_TRACK).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionChange {
    /// The default database.
    Schema(String),
    Variable {
        name: String,
        value: String,
    },
    /// Something that a connection elsewhere would not have.
    State,
    /// The statements that begin a transaction like the one that is open.
    TransactionCharacteristics(String),
    /// Eight letters, one for each thing that may be said of a transaction.
    TransactionState(String),
}

pub type FlushFuture<'a> = Pin<Box<dyn Future<Output = Result<(), MysqlError>> + Send + 'a>>;

/// `false`: the file has ended.
pub type FileFuture<'a> = Pin<Box<dyn Future<Output = Result<bool, MysqlError>> + Send + 'a>>;

/// Receives the results of statements. Rows are written into a buffer; nothing reaches the
/// client before `flush`, or before the statement's future has returned. A caller with a large result calls
/// `flush` when `buffered` is large, after it made sure that what it read is durable.
pub trait ResultSink: Send {
    /// Begins a result set.
    fn columns(&mut self, columns: &[ResultColumn]);
    /// One row: as many values as columns.
    fn row(&mut self, values: &[ValueRef<'_>]);
    /// Takes back a result set that has begun, since its statement begins anew. `false`: a part of it has been sent, so it cannot.
    fn withdraw(&mut self) -> bool;
    /// The statement changed something that clients may follow; goes with the next `complete`.
    fn changed(&mut self, change: SessionChange) {
        let _ = change;
    }
    /// Ends a result set (after `columns`), or a statement without one.
    fn complete(&mut self, completion: &Completion);
    /// Bytes that wait to be sent.
    fn buffered(&self) -> usize;
    /// Sends them, waiting for the client. A flush may be dropped: rows may be added, and the next one goes on where
    /// it was.
    fn flush(&mut self) -> FlushFuture<'_>;
    /// Asks for a file whose rows the statement stores (LOAD DATA); `false`: nobody gives files here.
    fn request_file(&mut self, name: &str) -> bool {
        let _ = name;
        false
    }
    /// Waits for the next piece of that file, and puts it behind what `into` has. After the end, and after an error, the file
    /// stays at its end. It may be dropped while it waits: the next call goes on.
    fn read_file<'a>(&'a mut self, into: &'a mut Vec<u8>) -> FileFuture<'a> {
        let _ = into;
        Box::pin(std::future::ready(Ok(false)))
    }
}
