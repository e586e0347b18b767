//! What can go wrong, and what may be done about it.

use rauk_types::ErrorClass;

/// Kinds of errors; each is of one [`ErrorClass`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    // Permanent: wrong use.
    UnknownTable,
    UnknownColumn,
    UnknownIndex,
    /// The record's or value's type does not fit the column.
    WrongType,
    /// Out of the column's range, too long, NULL where none may be.
    InvalidValue,
    Duplicate,
    /// The transaction has ended: committed, rolled back, or undone by an error.
    TransactionEnded,
    /// Anything else that the node refuses, with MySQL's code.
    Refused,
    /// Wrong secret, certificate, version, cluster, address.
    Connection,
    // Temporary: the same may succeed when tried again.
    Deadlock,
    LockTimeout,
    /// The row changed after the transaction's snapshot (1020).
    Conflict,
    /// The table's definition has changed (open it again; done by itself outside of transactions).
    SchemaChanged,
    MemoryFull,
    Disconnected,
    Timeout,
    Interrupted,
    /// Nobody knows whether the commit took place: the node or the connection was lost while it was under way.
    UnknownOutcome,
    /// Bytes that no node sends.
    Protocol,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    pub kind: ErrorKind,
    /// MySQL's number; 0 where there is none.
    pub code: u16,
    pub message: String,
}

impl Error {
    pub fn class(&self) -> ErrorClass {
        todo!()
    }

    pub fn is_temporary(&self) -> bool {
        self.class() == ErrorClass::Temporary
    }

    pub fn is_unknown_outcome(&self) -> bool {
        self.class() == ErrorClass::UnknownOutcome
    }
}
