//! Durability: the [`Disk`] trait, the redo log with its group commit, and checkpoints.
//!
//! The log knows nothing of rows' meaning; it stores records of bytes under log positions and commit times.

pub mod checkpoint;
pub mod disk;
pub mod fault;
pub mod record;
pub mod redo;

pub use disk::{Disk, DiskFile};
pub use redo::{Lsn, RedoLog, RedoReader};
