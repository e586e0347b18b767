//! Errors: of the wire itself ([`WireError`]), and those that travel on it ([`Failure`]).

use rauk_types::{ErrorClass, MysqlError};

/// Bytes that are not what they should be. The connection they came by is not to be trusted any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    #[error("not a frame of Rauk's native protocol")]
    Magic,
    #[error("protocol version {0} is not known here")]
    Version(u16),
    #[error("signal {0} is not known here")]
    Kind(u16),
    #[error("a frame of {0} bytes is longer than allowed")]
    TooLong(u64),
    #[error("checksum mismatch: the frame was damaged on its way")]
    Checksum,
    /// The payload ends early, or has something that cannot be there.
    #[error("malformed {0}")]
    Malformed(&'static str),
}

/// An error that travels: MySQL's code and text, and what may be done about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// MySQL's number.
    pub code: u16,
    pub class: ErrorClass,
    /// Whether the transaction of the request has ended with it.
    pub ended: bool,
    pub message: String,
}

impl Failure {
    pub fn new(code: u16, class: ErrorClass, message: impl Into<String>) -> Failure {
        Failure { code, class, ended: false, message: message.into() }
    }

    pub fn from_mysql(error: &MysqlError, class: ErrorClass) -> Failure {
        Failure::new(error.code, class, error.message.clone())
    }

    pub fn encode(&self, _out: &mut Vec<u8>) {
        todo!()
    }

    pub fn decode(_payload: &[u8]) -> Result<Failure, WireError> {
        todo!()
    }
}
