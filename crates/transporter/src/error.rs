//! What can go wrong with a link.

use rauk_types::ErrorClass;
use rauk_wire::WireError;
use rauk_wire::hello::Refusal;

/// Why a link could not be made or used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    #[error("cannot connect to {address}: {reason}")]
    Connect { address: String, reason: String },
    /// The peer refused us, with its words.
    #[error("{message}")]
    Refused { reason: Refusal, message: String },
    /// The peer does not let this account in, with MySQL's code and text.
    #[error("{message}")]
    Denied { code: u16, message: String },
    /// The peer could not prove what we asked of it.
    #[error("the server at {address} could not prove that it knows the secret; it is not the one that was meant")]
    Untrusted { address: String },
    #[error("no answer from {address} within {millis} ms")]
    Timeout { address: String, millis: u64 },
    #[error("the connection was closed: {0}")]
    Closed(CloseReason),
    /// More is waiting to be sent than `send_limit` allows.
    #[error("the peer does not read what it is sent: {bytes} bytes wait")]
    Congested { bytes: usize },
    /// Files, keys, certificates that cannot be used.
    #[error("{0}")]
    Configuration(String),
    /// The peer's certificate, or ours, was not taken.
    #[error("{address} is not linked: {reason}")]
    Certificate { address: String, reason: String, permanent: bool },
    /// This node waits for the authority to sign its certificate.
    #[error("this node has no certificate yet")]
    NoCertificate,
    /// Another name of this process.
    #[error("the node at {address} is this node itself")]
    Oneself { address: String },
}

/// Too many connections (1040, 1203), wrong passwords before (1129), or all that an account may have in an hour (1226).
const FOR_A_WHILE: [u16; 4] = [1040, 1129, 1203, 1226];

impl TransportError {
    pub fn class(&self) -> ErrorClass {
        match self {
            TransportError::Refused { reason: Refusal::TooManyConnections | Refusal::ShuttingDown, .. }
            | TransportError::Connect { .. }
            | TransportError::Timeout { .. }
            | TransportError::Closed(_)
            | TransportError::Congested { .. }
            | TransportError::NoCertificate
            | TransportError::Certificate { permanent: false, .. } => ErrorClass::Temporary,
            TransportError::Denied { code, .. } if FOR_A_WHILE.contains(code) => ErrorClass::Temporary,
            _ => ErrorClass::Permanent,
        }
    }
}

/// Why a link ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloseReason {
    #[error("the peer closed it")]
    Peer,
    #[error("it was closed here")]
    Here,
    /// Garbage, damage, or a peer that does not keep to the protocol.
    #[error("{0}")]
    Wire(#[from] WireError),
    #[error("{0}")]
    Protocol(String),
    #[error("the peer did not read for {0} s")]
    NotReading(u64),
    #[error("{0}")]
    Io(String),
}
