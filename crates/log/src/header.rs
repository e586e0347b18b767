//! The first 64 bytes of every file, and replacing a file atomically.
//!
//! ```text
//!  0  kind: 8 bytes of text            16  database id: 16 bytes
//!  8  format version: u32              32  three numbers whose meaning the kind gives: 3 × u64
//! 12  crc32c of all other bytes: u32   56  zero: 8 bytes
//! ```
//! Kind and version stay where they are in every future version; all numbers are little-endian.
use crate::disk::{Disk, parent};
use crate::error::LogError;
use crate::fault;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// What this program writes, and the newest that it reads. Version 2 has end marks in the redo log, version 3 sparse
/// rows, version 4 streams of groups with several partitions, version 5 partitioned tables.
pub const FORMAT_VERSION: u32 = 5;
pub(crate) const HEADER_BYTES: usize = 64;

/// A database's identity: random, given when it is created, in every file of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DatabaseId(pub [u8; 16]);

impl DatabaseId {
    /// Mixed into every checksum, so that blocks of another database never pass.
    pub(crate) fn seed(&self) -> u32 {
        crc32c::crc32c(&self.0)
    }
}

impl fmt::Display for DatabaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for DatabaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DatabaseId({self})")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub kind: &'static [u8; 8],
    pub database: DatabaseId,
    pub words: [u64; 3],
}

impl FileHeader {
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(self.kind);
        bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.database.0);
        for (i, word) in self.words.iter().enumerate() {
            bytes[32 + 8 * i..40 + 8 * i].copy_from_slice(&word.to_le_bytes());
        }
        let crc = checksum(&bytes);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// As a program of another format version writes it.
    #[cfg(test)]
    pub fn encode_as(&self, version: u32) -> [u8; HEADER_BYTES] {
        let mut bytes = self.encode();
        bytes[8..12].copy_from_slice(&version.to_le_bytes());
        let crc = checksum(&bytes);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// `file` is for messages; `database` is the expected one, if it is known.
    pub fn decode(
        file: &str,
        bytes: &[u8; HEADER_BYTES],
        kind: &'static [u8; 8],
        database: Option<DatabaseId>,
    ) -> Result<FileHeader, LogError> {
        if &bytes[..8] != kind {
            let name = String::from_utf8_lossy(kind);
            return Err(LogError::damaged(file, 0, format!("it does not begin as a file of kind {}", name.trim_end())));
        }
        let found = u32::from_le_bytes(array(bytes, 8));
        if found > FORMAT_VERSION {
            return Err(LogError::NewerVersion { file: file.to_string(), found, known: FORMAT_VERSION });
        }
        if u32::from_le_bytes(array(bytes, 12)) != checksum(bytes) {
            return Err(LogError::damaged(file, 0, "the checksum of its header does not match"));
        }
        let header = FileHeader {
            kind,
            database: DatabaseId(array(bytes, 16)),
            words: std::array::from_fn(|i| u64::from_le_bytes(array(bytes, 32 + 8 * i))),
        };
        match database {
            Some(expected) if expected != header.database => Err(LogError::Foreign {
                file: file.to_string(),
                found: header.database.to_string(),
                expected: expected.to_string(),
            }),
            _ => Ok(header),
        }
    }
}

/// The format version of a header that was decoded.
pub(crate) fn version_of(bytes: &[u8; HEADER_BYTES]) -> u32 {
    u32::from_le_bytes(array(bytes, 8))
}

/// Bytes `at..at + N`; the caller knows that they are there.
pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("a slice of N bytes")
}

fn checksum(bytes: &[u8; HEADER_BYTES]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &bytes[16..])
}

/// Gives `path` new contents so that after a crash it has the old or the new ones, and the new ones once this has returned.
pub(crate) fn replace_file(disk: &Arc<dyn Disk>, path: &str, contents: &[u8]) -> Result<(), LogError> {
    let temporary = format!("{path}.tmp");
    let error = |what| move |e| LogError::io(path, what, e);
    let write = || {
        fault::point("replace.before_write")?;
        let file = disk.open(&temporary, true)?;
        file.set_len(0)?;
        file.write_all_at(contents, 0)?;
        fault::point("replace.before_sync")?;
        file.sync_data()?;
        fault::point("replace.before_rename")?;
        disk.rename(&temporary, path)?;
        fault::point("replace.before_sync_dir")
    };
    write().map_err(error("cannot write"))?;
    disk.sync_dir(parent(path)).map_err(error("cannot sync the directory of"))?;
    fault::point("replace.after_sync_dir").map_err(error("cannot write"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: &[u8; 8] = b"RAUKTEST";

    #[test]
    fn refusals_name_their_reason() {
        let header = FileHeader { kind: KIND, database: DatabaseId([7; 16]), words: [1, 2, u64::MAX] };
        let bytes = header.encode();
        let decode = |bytes: &[u8; HEADER_BYTES]| FileHeader::decode("f", bytes, KIND, Some(DatabaseId([7; 16])));
        assert_eq!(decode(&bytes).unwrap(), header);
        for bit in 0..HEADER_BYTES * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            decode(&flipped).unwrap_err();
        }
        let mut newer = bytes;
        newer[8] = 9;
        let message = decode(&newer).unwrap_err().to_string();
        assert!(message.contains("version 9") && message.contains(&format!("up to {FORMAT_VERSION}")), "{message}");
        let foreign = FileHeader::decode("f", &bytes, KIND, Some(DatabaseId([8; 16]))).unwrap_err();
        assert!(matches!(foreign, LogError::Foreign { .. }));
        assert!(FileHeader::decode("f", &bytes, b"RAUKELSE", None).unwrap_err().to_string().contains("RAUKELSE"));
    }
}
