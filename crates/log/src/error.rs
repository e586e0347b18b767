//! What can go wrong with what is on disk.
use std::io;

/// What an operator can do about a directory that a start refuses. A refused start changes nothing, so a file that is put back is as good as before.
const WAY_OUT: &str = "put the file back from a copy, or start with an empty directory and restore a backup there \
    (in a cluster an empty one gets its rows from the other nodes)";

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Nothing was done; the same call works again when there is room.
    #[error("no room on disk: {0}")]
    DiskFull(String),
    #[error("record of {0} bytes is larger than the redo log takes ({max} bytes)", max = crate::redo::MAX_RECORD_BYTES)]
    RecordTooLarge(usize),
    /// A write or sync failed; nothing more is accepted and the node must stop.
    #[error("redo log failed: {0}")]
    Failed(String),
    /// What is there is not what was written, and it is not just the torn end of the last write.
    #[error("{file} is damaged at byte {offset}: {what}; {WAY_OUT}")]
    Damaged { file: String, offset: u64, what: String },
    #[error("{file} is missing: {what}; {WAY_OUT}")]
    Missing { file: String, what: String },
    /// Whole, but not as new as it was.
    #[error("{file} is an older copy: {what}; {WAY_OUT}")]
    Outdated { file: String, what: String },
    #[error(
        "{file} has format version {found}, and this program knows versions up to {known}: start it with the program that wrote it, or a newer one"
    )]
    NewerVersion { file: String, found: u32, known: u32 },
    #[error("{file} belongs to another database ({found}, expected {expected})")]
    Foreign { file: String, found: String, expected: String },
    #[error("{what} {file}: {error}")]
    Io { file: String, what: &'static str, error: io::Error },
}

/// Whether an error only says that there is no space left.
pub fn is_disk_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

impl LogError {
    /// Names the file and what was tried; a full disk gets its own variant.
    pub(crate) fn io(file: &str, what: &'static str, error: io::Error) -> LogError {
        if is_disk_full(&error) {
            LogError::DiskFull(format!("{what} {file}: {error}"))
        } else {
            LogError::Io { file: file.to_string(), what, error }
        }
    }

    pub(crate) fn damaged(file: &str, offset: u64, what: impl Into<String>) -> LogError {
        LogError::Damaged { file: file.to_string(), offset, what: what.into() }
    }

    pub(crate) fn missing(file: &str, what: impl Into<String>) -> LogError {
        LogError::Missing { file: file.to_string(), what: what.into() }
    }

    pub(crate) fn outdated(file: &str, what: impl Into<String>) -> LogError {
        LogError::Outdated { file: file.to_string(), what: what.into() }
    }
}
