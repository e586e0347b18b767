//! Durability: the [`Disk`] trait, the redo log with its group commit, checkpoints, and the catalog's journal.
//!
//! The log knows nothing of rows' meaning; it stores records of bytes under log positions and commit times.
//!
//! | what | where | replaced how |
//! |---|---|---|
//! | redo log ([`redo`]) | `redo/NNNN.redo` | segments are overwritten in turn |
//! | checkpoints ([`checkpoint`]) | `checkpoint/NUMBER-pPARTITION.rows` | a new one beside the old one, then the manifest |
//! | manifest ([`checkpoint::Manifest`]) | `checkpoint/manifest` | atomically, by rename |
//! | journals ([`journal`]) | a file the caller names | appended; compacted by rename |
//! | superblocks ([`superblock`]) | `superblock.0`, `superblock.1` | in turn; they say what the others must have |
//!
//! Every file begins with the same 64-byte header (kind, format version, database id), so that a file of a newer version, of
//! another database or of another kind is refused before a byte of it is believed.

pub mod checkpoint;
pub mod disk;
pub mod error;
pub mod fault;
pub mod fuzz;
pub mod header;
pub mod journal;
pub mod memory_disk;
pub mod real_disk;
pub mod record;
pub mod redo;
pub mod superblock;
mod varint;

pub use checkpoint::{CheckpointReader, CheckpointWriter, Manifest};
pub use disk::{Disk, DiskFile};
pub use error::LogError;
pub use header::{DatabaseId, FORMAT_VERSION};
pub use journal::{Journal, JournalEntry};
pub use memory_disk::MemoryDisk;
pub use real_disk::RealDisk;
pub use redo::{Appended, DoubtfulEnd, Lsn, RedoLog, RedoOptions, RedoReader};
pub use superblock::Superblocks;
