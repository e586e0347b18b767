//! Errors: of the wire itself ([`WireError`]), and those that travel on it ([`Failure`]).

use crate::read::{Reader, put_prefixed};
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

    /// `code` u16, class u8, ended u8, the text behind its length.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.code.to_le_bytes());
        out.push(match self.class {
            ErrorClass::Temporary => 1,
            ErrorClass::Permanent => 2,
            ErrorClass::UnknownOutcome => 3,
            ErrorClass::Fatal => 4,
        });
        out.push(self.ended.into());
        put_prefixed(self.message.as_bytes(), out);
    }

    pub fn decode(payload: &[u8]) -> Result<Failure, WireError> {
        let mut reader = Reader::new(payload, "failure");
        let failure = Failure::read(&mut reader)?;
        reader.end()?;
        Ok(failure)
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Failure, WireError> {
        let code = reader.u16()?;
        let class = match reader.u8()? {
            1 => ErrorClass::Temporary,
            2 => ErrorClass::Permanent,
            3 => ErrorClass::UnknownOutcome,
            4 => ErrorClass::Fatal,
            _ => return Err(reader.malformed()),
        };
        Ok(Failure { code, class, ended: reader.flag()?, message: reader.text()?.to_owned() })
    }
}
