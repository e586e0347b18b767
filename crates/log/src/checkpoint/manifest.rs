//! The manifest: which checkpoint is in force, and where the redo log goes on from it.
//!
//! `checkpoint/manifest` is the common file header (its words: length and checksum of what follows) and a JSON object, so that fields can be added and a person can read it.
use super::{DIRECTORY, RowsFile};
use crate::error::LogError;
use crate::fault;
use crate::header::{DatabaseId, FileHeader, HEADER_BYTES, replace_file};
use crate::redo::Lsn;
use crate::superblock::Superblocks;
use rauk_types::{ProcessId, TableId, Timestamp};
use serde::{Deserialize, Serialize};

const KIND: &[u8; 8] = b"RAUKMANI";
pub const PATH: &str = "checkpoint/manifest";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub database: DatabaseId,
    /// Number of the checkpoint in force; 0 when there is none yet.
    pub checkpoint: u64,
    /// Partitions that it has, each with a file, and that the database is spread over.
    pub partitions: u16,
    /// Replay begins here.
    pub redo_start: Lsn,
    /// The log was durable up to here.
    pub redo_durable: Lsn,
    /// No commit before `redo_start` is newer.
    pub last_time: Timestamp,
    /// Counters at `redo_start`: numbers below the bound may have been given out.
    pub counters: Vec<(TableId, u64)>,
    /// The durability mode that the database runs under.
    pub durability: String,
    /// The program's version that wrote this.
    pub program: String,
    /// Of a cluster's node: the recovery to a cut that it has carried out last.
    #[serde(default)]
    pub recovery: u64,
    /// Of a cluster's node: nonces of starts that were registered, or may have been; the cluster tells an older copy of the directory by them.
    #[serde(default)]
    pub starts: Vec<u64>,
    /// Counts the manifests of the database; given when one is stored. 0 in those of format version 1.
    #[serde(default)]
    pub generation: u64,
    /// The checkpoint's files, by partition. Not there in manifests of format version 1.
    #[serde(default)]
    pub files: Vec<RowsFile>,
    /// Of a cluster's node, where memory counts: this process was fenced, and all that it had in memory is in the log, up to `redo_durable`. True of that process alone: the next to register as this node ends it.
    #[serde(default)]
    pub fenced: Option<ProcessId>,
}

impl Manifest {
    /// A new database: no checkpoint, an empty log.
    pub fn new(database: DatabaseId, partitions: u16, durability: &str) -> Manifest {
        Manifest {
            database,
            checkpoint: 0,
            partitions,
            redo_start: Lsn(0),
            redo_durable: Lsn(0),
            last_time: Timestamp::ZERO,
            counters: Vec::new(),
            durability: durability.to_string(),
            program: env!("CARGO_PKG_VERSION").to_string(),
            recovery: 0,
            starts: Vec::new(),
            generation: 0,
            files: Vec::new(),
            fenced: None,
        }
    }

    /// The manifest in force; `None` when the directory has none and never had: a database was never made here.
    pub fn load(superblocks: &Superblocks) -> Result<Option<Manifest>, LogError> {
        let disk = superblocks.disk();
        let error = |e| LogError::io(PATH, "cannot read", e);
        let claimed = superblocks.claims().manifest;
        if !disk.exists(PATH).map_err(error)? {
            if claimed > 0 {
                return Err(LogError::missing(PATH, format!("it was there, with generation {claimed}")));
            }
            return Ok(None);
        }
        // A process killed between renaming and syncing: from now on this one counts, so the one before must not come back.
        disk.sync_dir("").and_then(|()| disk.sync_dir(DIRECTORY)).map_err(error)?;
        let file = disk.open(PATH, false).map_err(error)?;
        let mut bytes = vec![0; file.len().map_err(error)? as usize];
        file.read_exact_at(&mut bytes, 0).map_err(error)?;
        let Some((head, body)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Err(LogError::damaged(PATH, bytes.len() as u64, "the file is shorter than its header"));
        };
        let header = FileHeader::decode(PATH, head, KIND, None)?;
        let [length, crc, _] = header.words;
        if length != body.len() as u64 || crc != u64::from(crc32c::crc32c(body)) {
            return Err(LogError::damaged(PATH, HEADER_BYTES as u64, "its checksum does not match"));
        }
        let manifest: Manifest = serde_json::from_slice(body)
            .map_err(|e| LogError::damaged(PATH, HEADER_BYTES as u64, format!("it cannot be understood: {e}")))?;
        if manifest.database != header.database {
            return Err(LogError::damaged(PATH, 16, "its header names another database than its text"));
        }
        if let Some(expected) = superblocks.database().filter(|expected| *expected != manifest.database) {
            let (file, found) = (PATH.to_string(), manifest.database.to_string());
            return Err(LogError::Foreign { file, found, expected: expected.to_string() });
        }
        if manifest.generation < claimed {
            let what =
                format!("it has generation {}, and there was one with generation {claimed}", manifest.generation);
            return Err(LogError::outdated(PATH, what));
        }
        superblocks.note(|claims| claims.manifest = manifest.generation);
        Ok(Some(manifest))
    }

    /// Puts this manifest in force: when it returns, recovery begins with it, after a crash within it with this or the one before. Files of its checkpoint
    /// are finished before. Gives it the next generation.
    pub fn store(&mut self, superblocks: &Superblocks) -> Result<(), LogError> {
        let disk = superblocks.disk();
        superblocks.begin(self.database)?;
        superblocks.reserve()?;
        self.generation = superblocks.known().manifest + 1;
        let error = |e| LogError::io(PATH, "cannot write", e);
        fault::point("checkpoint.before_publish").map_err(error)?;
        disk.create_dir_all(DIRECTORY).map_err(error)?;
        // The directory's own entry, which the first manifest needs, and then the files' entries.
        disk.sync_dir("").map_err(error)?;
        disk.sync_dir(DIRECTORY).map_err(error)?;
        let body = serde_json::to_vec(self).expect("a manifest has a text form");
        let words = [body.len() as u64, crc32c::crc32c(&body).into(), 0];
        let mut bytes = FileHeader { kind: KIND, database: self.database, words }.encode().to_vec();
        bytes.extend_from_slice(&body);
        replace_file(disk, PATH, &bytes)?;
        superblocks.claim_written(|claims| claims.manifest = self.generation)
    }
}
