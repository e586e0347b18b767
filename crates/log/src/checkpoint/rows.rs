//! One partition's rows in a checkpoint.
//!
//! The common file header (its words: checkpoint number, partition), then blocks of about 256 KiB: a 24-byte block header and rows, each `table layout time length` as varints
//! and the row's bytes. A row larger than a block gets one of its own. The last block is empty and says how many rows there are, so a file that is cut off
//! is told from one that ends. Checksums are seeded with database, checkpoint, partition and the block's number: a block of another checkpoint or place never passes.
//!
//! ```text
//! block header    0 mark: u32    4 length: u32    8 rows, in the last block rows of the file: u64    16 crc32c of 0..16 and the rows: u32    20 zero: u32
//! ```
use super::{DIRECTORY, Manifest, rows_path};
use crate::disk::{Disk, DiskFile};
use crate::error::LogError;
use crate::fault;
use crate::header::{DatabaseId, FileHeader, HEADER_BYTES, array};
use crate::varint;
use rauk_types::{TableId, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a manifest says of a file: any other one with its name is not the one that was finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowsFile {
    pub bytes: u64,
    /// Of the checksums of its blocks, in order.
    pub checksum: u32,
}

const KIND: &[u8; 8] = b"RAUKROWS";
const BLOCK_BYTES: usize = 256 << 10;
const BLOCK_HEADER: usize = 24;
/// A block with rows, and the block that ends the file.
const ROWS: u32 = u32::from_le_bytes(*b"RKB1");
const END: u32 = u32::from_le_bytes(*b"RKE1");
/// Largest block that a reader believes in: one row of the largest size and its fields.
const MAX_BLOCK_BYTES: usize = 1 << 30;
/// Written bytes are synced this often, so that the sync at the end, or one of the log beside it, does not wait for all of them at once.
const SYNC_BYTES: u64 = 16 << 20;

fn block_seed(database: DatabaseId, number: u64, partition: u16, block: u64) -> u32 {
    let mut seed = crc32c::crc32c_append(database.seed(), &number.to_le_bytes());
    seed = crc32c::crc32c_append(seed, &partition.to_le_bytes());
    crc32c::crc32c_append(seed, &block.to_le_bytes())
}

/// Writes one partition's file. Dropped before `finish`, it leaves a file that nothing names.
pub struct CheckpointWriter {
    path: String,
    file: Arc<dyn DiskFile>,
    identity: (DatabaseId, u64, u16),
    /// Room for a block header, then rows.
    block: Vec<u8>,
    block_rows: u64,
    blocks: u64,
    rows: u64,
    /// Bytes in the file.
    at: u64,
    synced: u64,
    checksum: u32,
}

impl CheckpointWriter {
    /// Begins the file of partition `partition` in checkpoint `number`; what an unfinished attempt with this number left is overwritten.
    pub fn create(
        disk: &Arc<dyn Disk>,
        database: DatabaseId,
        number: u64,
        partition: u16,
    ) -> Result<CheckpointWriter, LogError> {
        let path = rows_path(number, partition);
        let header = FileHeader { kind: KIND, database, words: [number, partition.into(), 0] }.encode();
        let make = || {
            fault::point("checkpoint.before_create")?;
            disk.create_dir_all(DIRECTORY)?;
            let file = disk.open(&path, true)?;
            file.set_len(0)?;
            file.write_all_at(&header, 0)?;
            Ok(file)
        };
        let file = make().map_err(|e| LogError::io(&path, "cannot create", e))?;
        let mut block = Vec::with_capacity(BLOCK_BYTES + BLOCK_BYTES / 4);
        block.resize(BLOCK_HEADER, 0);
        let identity = (database, number, partition);
        let at = HEADER_BYTES as u64;
        Ok(CheckpointWriter {
            path,
            file,
            identity,
            block,
            block_rows: 0,
            blocks: 0,
            rows: 0,
            at,
            synced: at,
            checksum: 0,
        })
    }

    pub fn put(&mut self, table: TableId, layout: u16, time: Timestamp, row: &[u8]) -> Result<(), LogError> {
        if self.block_rows > 0 && self.block.len() + row.len() > BLOCK_BYTES {
            self.write_block(ROWS)?;
        }
        varint::put(&mut self.block, table.0.into());
        varint::put(&mut self.block, layout.into());
        varint::put(&mut self.block, time.0);
        varint::put(&mut self.block, row.len() as u64);
        self.block.extend_from_slice(row);
        self.block_rows += 1;
        self.rows += 1;
        Ok(())
    }

    /// Bytes of rows taken so far, written or not.
    pub fn bytes(&self) -> u64 {
        self.at + (self.block.len() - BLOCK_HEADER) as u64
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    fn write_block(&mut self, mark: u32) -> Result<(), LogError> {
        let error = |e| LogError::io(&self.path, "cannot write", e);
        let length = self.block.len() - BLOCK_HEADER;
        let rows = if mark == END { self.rows } else { self.block_rows };
        self.block[..4].copy_from_slice(&mark.to_le_bytes());
        self.block[4..8].copy_from_slice(&(length as u32).to_le_bytes());
        self.block[8..16].copy_from_slice(&rows.to_le_bytes());
        let (database, number, partition) = self.identity;
        let crc = block_crc(block_seed(database, number, partition, self.blocks), &self.block);
        self.block[16..20].copy_from_slice(&crc.to_le_bytes());
        self.checksum = crc32c::crc32c_append(self.checksum, &crc.to_le_bytes());
        fault::point("checkpoint.block").map_err(error)?;
        self.file.write_all_at(&self.block, self.at).map_err(error)?;
        self.at += self.block.len() as u64;
        self.blocks += 1;
        self.block_rows = 0;
        self.block.truncate(BLOCK_HEADER);
        if self.at - self.synced >= SYNC_BYTES {
            self.file.sync_data().map_err(error)?;
            self.synced = self.at;
        }
        Ok(())
    }

    /// Ends the file and syncs it. Its name becomes durable with the manifest, which names what this gives.
    pub fn finish(mut self) -> Result<RowsFile, LogError> {
        fault::point("checkpoint.before_finish").map_err(|e| LogError::io(&self.path, "cannot write", e))?;
        if self.block_rows > 0 {
            self.write_block(ROWS)?;
        }
        self.write_block(END)?;
        let error = |e| LogError::io(&self.path, "cannot sync", e);
        fault::point("checkpoint.before_sync").map_err(error)?;
        self.file.sync_data().map_err(error)?;
        Ok(RowsFile { bytes: self.at, checksum: self.checksum })
    }
}

fn block_crc(seed: u32, block: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(seed, &block[..16]), &block[BLOCK_HEADER..])
}

/// A row of a checkpoint, borrowed from its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointRow<'a> {
    pub table: TableId,
    pub layout: u16,
    pub time: Timestamp,
    pub row: &'a [u8],
}

/// Streams one partition's rows, block by block, each verified before its first row is given out.
pub struct CheckpointReader {
    path: String,
    file: Arc<dyn DiskFile>,
    identity: (DatabaseId, u64, u16),
    /// As the manifest has it, if that says so.
    expected: Option<RowsFile>,
    checksum: u32,
    length: u64,
    block: Vec<u8>,
    read: usize,
    blocks: u64,
    rows: u64,
    at: u64,
    ended: bool,
}

impl CheckpointReader {
    /// The file of one partition in the checkpoint that is in force.
    pub fn open(disk: &Arc<dyn Disk>, manifest: &Manifest, partition: u16) -> Result<CheckpointReader, LogError> {
        let (database, number) = (manifest.database, manifest.checkpoint);
        let path = rows_path(number, partition);
        let error = |e| LogError::io(&path, "cannot read", e);
        if !disk.exists(&path).map_err(error)? {
            return Err(LogError::missing(&path, format!("checkpoint {number} is in force and has it")));
        }
        let file = disk.open(&path, false).map_err(error)?;
        let length = file.len().map_err(error)?;
        if length < HEADER_BYTES as u64 {
            return Err(LogError::damaged(&path, length, "the file is shorter than its header"));
        }
        let mut bytes = [0; HEADER_BYTES];
        file.read_exact_at(&mut bytes, 0).map_err(error)?;
        let header = FileHeader::decode(&path, &bytes, KIND, Some(database))?;
        if header.words[..2] != [number, partition.into()] {
            let what = format!("it is checkpoint {}, partition {}", header.words[0], header.words[1]);
            return Err(LogError::damaged(&path, 32, what));
        }
        let expected = manifest.files.get(usize::from(partition)).copied();
        if let Some(expected) = expected.filter(|expected| expected.bytes != length) {
            let what = format!("the file has {length} bytes, and the manifest says {}", expected.bytes);
            return Err(LogError::damaged(&path, length.min(expected.bytes), what));
        }
        Ok(CheckpointReader {
            path,
            file,
            identity: (database, number, partition),
            expected,
            checksum: 0,
            length,
            block: Vec::new(),
            read: 0,
            blocks: 0,
            rows: 0,
            at: HEADER_BYTES as u64,
            ended: false,
        })
    }

    /// The next row; `None` at the end, when all rows that the file promised were there.
    #[allow(clippy::should_implement_trait)] // it lends
    pub fn next(&mut self) -> Result<Option<CheckpointRow<'_>>, LogError> {
        while self.read == self.block.len() {
            if self.ended {
                return Ok(None);
            }
            self.load_block()?;
        }
        self.rows += 1;
        let mut rest = &self.block[self.read..];
        let row = take_row(&mut rest);
        self.read = self.block.len() - rest.len();
        row.map(Some).ok_or_else(|| LogError::damaged(&self.path, self.at, "malformed row in the block before"))
    }

    /// Bytes read and bytes of the file.
    pub fn progress(&self) -> (u64, u64) {
        (self.at, self.length)
    }

    fn load_block(&mut self) -> Result<(), LogError> {
        let damaged = |what: &str| LogError::damaged(&self.path, self.at, what);
        let error = |e| LogError::io(&self.path, "cannot read", e);
        fault::point("checkpoint.read.block").map_err(error)?;
        let left = self.length - self.at;
        if left < BLOCK_HEADER as u64 {
            return Err(damaged("the file ends before its last block"));
        }
        self.block.resize(BLOCK_HEADER, 0);
        self.file.read_exact_at(&mut self.block, self.at).map_err(error)?;
        let mark = u32::from_le_bytes(array(&self.block, 0));
        let length = u32::from_le_bytes(array(&self.block, 4)) as usize;
        let rows = u64::from_le_bytes(array(&self.block, 8));
        if mark != ROWS && mark != END {
            return Err(damaged("no block begins here"));
        }
        if length > MAX_BLOCK_BYTES || length as u64 > left - BLOCK_HEADER as u64 {
            return Err(damaged("the block that begins here does not end within the file"));
        }
        self.block.resize(BLOCK_HEADER + length, 0);
        let content = self.at + BLOCK_HEADER as u64;
        self.file.read_exact_at(&mut self.block[BLOCK_HEADER..], content).map_err(error)?;
        let (database, number, partition) = self.identity;
        if u32::from_le_bytes(array(&self.block, 16))
            != block_crc(block_seed(database, number, partition, self.blocks), &self.block)
        {
            return Err(damaged("the checksum of the block that begins here does not match"));
        }
        self.checksum = crc32c::crc32c_append(self.checksum, &self.block[16..20]);
        if mark == END {
            if self.expected.is_some_and(|expected| expected.checksum != self.checksum) {
                return Err(LogError::outdated(&self.path, "its checksum is not the one that the manifest has"));
            }
            if rows != self.rows {
                return Err(damaged("the number of rows is not the one that the file promises"));
            }
            self.ended = true;
        }
        self.read = BLOCK_HEADER;
        self.at = content + length as u64;
        self.blocks += 1;
        Ok(())
    }
}

fn take_row<'a>(rest: &mut &'a [u8]) -> Option<CheckpointRow<'a>> {
    let table = TableId(u32::try_from(varint::take(rest)?).ok()?);
    let layout = u16::try_from(varint::take(rest)?).ok()?;
    let time = Timestamp(varint::take(rest)?);
    Some(CheckpointRow { table, layout, time, row: varint::take_slice(rest)? })
}
