//! Errors as they travel: MySQL's code and text, the class, and whether the transaction has ended with it.

use crate::NodeError;
use rauk_types::error::codes;
use rauk_types::{ErrorClass, MysqlError};
use rauk_wire::{Failure, WireError};

/// Whether nothing of the transaction is left after this error: a deadlock's victim, a snapshot that cannot be kept, a node that stops.
pub fn ends_transaction(error: &NodeError) -> bool {
    matches!(
        error,
        NodeError::Deadlock
            | NodeError::Moved { .. }
            | NodeError::Changed { .. }
            | NodeError::SnapshotTooOld { .. }
            | NodeError::NewerThanSnapshot
            | NodeError::ShuttingDown
            | NodeError::UnknownOutcome(_)
            | NodeError::Fatal(_)
    )
}

pub fn of_node(error: NodeError) -> Failure {
    let ended = ends_transaction(&error);
    let class = match &error {
        NodeError::Refused(refused) => refused.class(),
        other => other.class(),
    };
    Failure { ended, ..Failure::from_mysql(&error.into(), class) }
}

pub fn of_mysql(error: &MysqlError) -> Failure {
    Failure::from_mysql(error, error.class())
}

pub fn refused(code: u16, message: impl Into<String>) -> Failure {
    Failure::new(code, ErrorClass::Permanent, message)
}

/// Bytes that no client of ours sends: the connection they came by ends.
pub fn malformed(error: WireError) -> Failure {
    refused(codes::MALFORMED_PACKET, format!("Malformed communication packet: {error}"))
}

/// What a client knew of a table is no longer so.
pub fn stale() -> Failure {
    of_node(NodeError::StaleSchema)
}

pub fn not_open(transaction: u64) -> Failure {
    let text = format!("transaction {transaction} is not open: it has ended or the server was restarted");
    Failure { ended: true, ..refused(codes::SP_DOES_NOT_EXIST, text) }
}

/// A limit of what one session may have open.
pub fn too_many(what: &str, limit: usize) -> Failure {
    let text = format!("A session has exceeded the '{what}' resource (current value: {limit}); close some first");
    refused(codes::USER_LIMIT_REACHED, text)
}

/// Of an answer that does not fit into a frame.
pub fn too_large() -> Failure {
    let text = format!(
        "The answer is longer than a frame may be ({} bytes): ask for fewer rows or columns at a time",
        rauk_wire::MAX_PAYLOAD
    );
    refused(codes::NET_PACKET_TOO_LARGE, text)
}

pub fn timed_out() -> Failure {
    let text = "Query execution was interrupted, maximum statement execution time exceeded";
    Failure::new(codes::QUERY_TIMEOUT, ErrorClass::Temporary, text)
}
