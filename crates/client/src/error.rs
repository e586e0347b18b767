//! What can go wrong, and what may be done about it.
//!
//! Whatever a node, the transporter or this library finds wrong becomes an [`Error`] here and nowhere else. The [`ErrorKind`] says what it is; the
//! [`ErrorClass`] that follows from it says what a program may do:
//!
//! | class | the operation | what to do |
//! |---|---|---|
//! | temporary | has certainly not taken place | run it, or the whole transaction, again |
//! | permanent | has certainly not taken place | mend the program or the data |
//! | unknown outcome | may have taken place, or not | look |
//!
//! Codes are MySQL's where MySQL has one.

use rauk_transporter::TransportError;
use rauk_types::error::codes;
use rauk_types::{ErrorClass, MysqlError};
use rauk_wire::hello::Refusal;
use rauk_wire::{Failure, WireError};

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
    /// A row that must be there is not: an operation of [`crate::Transaction::execute_and_commit`] found none.
    NotFound,
    /// The condition of an operation of [`crate::Transaction::execute_and_commit`] was not true.
    ConditionFalse,
    /// The transaction has ended: committed, rolled back, or undone by an error.
    TransactionEnded,
    /// Anything else that the node refuses, with MySQL's code.
    Refused,
    /// Wrong secret, certificate, version, cluster, address; a directory that cannot be opened.
    Connection,
    // Temporary: the same may succeed when tried again.
    Deadlock,
    LockTimeout,
    /// The row changed after the transaction's snapshot (1020).
    Conflict,
    /// The table's definition has changed (open it again; done by itself outside of transactions).
    SchemaChanged,
    MemoryFull,
    DiskFull,
    /// The node has no room for more at the moment: connections, transactions, scans.
    Busy,
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

impl ErrorKind {
    pub fn class(self) -> ErrorClass {
        use ErrorKind::*;
        match self {
            Deadlock | LockTimeout | Conflict | SchemaChanged | MemoryFull | DiskFull | Busy | Disconnected
            | Timeout | Interrupted => ErrorClass::Temporary,
            ErrorKind::UnknownOutcome => ErrorClass::UnknownOutcome,
            UnknownTable | UnknownColumn | UnknownIndex | WrongType | InvalidValue | Duplicate | NotFound
            | ConditionFalse | TransactionEnded | Refused | Connection | Protocol => ErrorClass::Permanent,
        }
    }
}

impl Error {
    pub fn new(kind: ErrorKind, code: u16, message: impl Into<String>) -> Error {
        Error { kind, code, message: message.into() }
    }

    pub fn class(&self) -> ErrorClass {
        self.kind.class()
    }

    pub fn is_temporary(&self) -> bool {
        self.class() == ErrorClass::Temporary
    }

    pub fn is_unknown_outcome(&self) -> bool {
        self.class() == ErrorClass::UnknownOutcome
    }

    /// Says where it happened: `shop.users, operation 3: …`.
    pub(crate) fn at(mut self, place: &str) -> Error {
        self.message = format!("{place}: {}", self.message);
        self
    }

    pub(crate) fn ended(why: impl Into<String>) -> Error {
        Error::new(ErrorKind::TransactionEnded, codes::SP_DOES_NOT_EXIST, why)
    }

    pub(crate) fn protocol(what: impl std::fmt::Display) -> Error {
        Error::new(ErrorKind::Protocol, 0, format!("the node sent what makes no sense here: {what}"))
    }

    pub(crate) fn unknown_column(table: &str, column: &str) -> Error {
        Error::new(ErrorKind::UnknownColumn, codes::BAD_FIELD, format!("Unknown column '{column}' in '{table}'"))
    }

    pub(crate) fn unknown_index(table: &str, index: &str) -> Error {
        let message = format!("Key '{index}' doesn't exist in table '{table}'");
        Error::new(ErrorKind::UnknownIndex, codes::KEY_DOES_NOT_EXITS, message)
    }

    /// A request that may have been carried out lost its answer.
    pub(crate) fn outcome_unknown(why: impl std::fmt::Display) -> Error {
        let message = format!("Got error during COMMIT: the outcome is unknown ({why})");
        Error::new(ErrorKind::UnknownOutcome, codes::ERROR_DURING_COMMIT, message)
    }

    pub(crate) fn disconnected(why: impl std::fmt::Display) -> Error {
        Error::new(ErrorKind::Disconnected, 0, format!("the connection to the node was lost: {why}"))
    }
}

/// What MySQL's number means to a program; of those that are not listed the class decides.
fn kind_of(code: u16, class: ErrorClass) -> ErrorKind {
    match code {
        codes::NO_SUCH_TABLE | codes::BAD_DB | codes::BAD_TABLE => ErrorKind::UnknownTable,
        codes::BAD_FIELD => ErrorKind::UnknownColumn,
        codes::KEY_DOES_NOT_EXITS => ErrorKind::UnknownIndex,
        codes::TRUNCATED_WRONG_VALUE_FOR_FIELD => ErrorKind::WrongType,
        codes::WARN_DATA_OUT_OF_RANGE
        | codes::DATA_OUT_OF_RANGE
        | codes::DATA_TOO_LONG
        | codes::BAD_NULL
        | codes::TRUNCATED_WRONG_VALUE
        | codes::WARN_DATA_TRUNCATED
        | codes::NO_DEFAULT_FOR_FIELD => ErrorKind::InvalidValue,
        codes::DUP_ENTRY | codes::DUP_KEY | codes::DUP_ENTRY_WITH_KEY_NAME => ErrorKind::Duplicate,
        codes::SP_DOES_NOT_EXIST => ErrorKind::TransactionEnded,
        codes::LOCK_DEADLOCK => ErrorKind::Deadlock,
        codes::LOCK_WAIT_TIMEOUT | codes::LOCK_NOWAIT => ErrorKind::LockTimeout,
        codes::CHECKREAD => ErrorKind::Conflict,
        codes::TABLE_DEF_CHANGED => ErrorKind::SchemaChanged,
        // What is too large for one log entry has the same number, and never fits.
        codes::RECORD_FILE_FULL if class != ErrorClass::Permanent => ErrorKind::MemoryFull,
        codes::DISK_FULL => ErrorKind::DiskFull,
        codes::SERVER_SHUTDOWN => ErrorKind::Disconnected,
        codes::QUERY_TIMEOUT => ErrorKind::Timeout,
        codes::QUERY_INTERRUPTED => ErrorKind::Interrupted,
        codes::ERROR_DURING_COMMIT => ErrorKind::UnknownOutcome,
        _ => match class {
            ErrorClass::Temporary => ErrorKind::Busy,
            ErrorClass::UnknownOutcome => ErrorKind::UnknownOutcome,
            ErrorClass::Permanent | ErrorClass::Fatal => ErrorKind::Refused,
        },
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        Error::new(kind_of(failure.code, failure.class), failure.code, failure.message)
    }
}

impl From<MysqlError> for Error {
    fn from(error: MysqlError) -> Error {
        Error::new(kind_of(error.code, error.class()), error.code, error.message)
    }
}

impl From<WireError> for Error {
    fn from(error: WireError) -> Error {
        Error::protocol(error)
    }
}

impl From<TransportError> for Error {
    fn from(error: TransportError) -> Error {
        let code = match &error {
            TransportError::Denied { code, .. } => *code,
            _ => 0,
        };
        let kind = match &error {
            TransportError::Denied { .. } if error.class() == ErrorClass::Temporary => ErrorKind::Busy,
            TransportError::Refused { reason: Refusal::TooManyConnections, .. } => ErrorKind::Busy,
            TransportError::Refused { reason: Refusal::ShuttingDown, .. }
            | TransportError::Connect { .. }
            | TransportError::Closed(_) => ErrorKind::Disconnected,
            TransportError::Timeout { .. } => ErrorKind::Timeout,
            TransportError::Congested { .. } => ErrorKind::Busy,
            TransportError::Refused { .. }
            | TransportError::Denied { .. }
            | TransportError::Untrusted { .. }
            | TransportError::Certificate { .. }
            | TransportError::NoCertificate
            | TransportError::Configuration(_)
            | TransportError::Oneself { .. } => ErrorKind::Connection,
        };
        Error::new(kind, code, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_node_says_keeps_its_code_and_class() {
        for (code, class, kind) in [
            (1213, ErrorClass::Temporary, ErrorKind::Deadlock),
            (1205, ErrorClass::Temporary, ErrorKind::LockTimeout),
            (3572, ErrorClass::Temporary, ErrorKind::LockTimeout),
            (1020, ErrorClass::Temporary, ErrorKind::Conflict),
            (1412, ErrorClass::Temporary, ErrorKind::SchemaChanged),
            (1114, ErrorClass::Temporary, ErrorKind::MemoryFull),
            (1053, ErrorClass::Temporary, ErrorKind::Disconnected),
            (1180, ErrorClass::UnknownOutcome, ErrorKind::UnknownOutcome),
            (1062, ErrorClass::Permanent, ErrorKind::Duplicate),
            (1146, ErrorClass::Permanent, ErrorKind::UnknownTable),
            (1264, ErrorClass::Permanent, ErrorKind::InvalidValue),
            (1044, ErrorClass::Permanent, ErrorKind::Refused),
            (1040, ErrorClass::Temporary, ErrorKind::Busy),
        ] {
            let error = Error::from(Failure::new(code, class, "text"));
            assert_eq!((error.kind, error.class(), error.code), (kind, class, code));
            assert_eq!(error.to_string(), "text");
        }
    }

    #[test]
    fn a_wrong_secret_is_permanent_and_a_server_that_is_away_is_not() {
        let refused = |reason| Error::from(TransportError::Refused { reason, message: "no".into() });
        assert_eq!(refused(Refusal::Credentials).kind, ErrorKind::Connection);
        assert!(!refused(Refusal::Credentials).is_temporary());
        assert!(refused(Refusal::ShuttingDown).is_temporary());
        assert!(refused(Refusal::TooManyConnections).is_temporary());
        assert!(
            Error::from(TransportError::Connect { address: "a:1".into(), reason: "refused".into() }).is_temporary()
        );
    }
}
