//! The redo log: preallocated segments, overwritten in turn.
//!
//! **Positions.** An [`Lsn`] counts the bytes of one endless log. A segment is a file that holds the positions `base..base + size`; its first
//! 4 096 bytes are its header, so position and place in a file are the same thing ([`segment`]).
//!
//! **Frames.** What one flush writes is a *frame*: a header, and a stream of records ([`frame`]). Appending copies a record into the frame that is
//! being filled; [`RedoLog::flush`] takes it, writes it and syncs it while the next one fills. A frame ends where its segment ends; a record that does not fit
//! goes on in the next segment's first frame and counts only when its last piece is there, so records may be larger than segments.
//!
//! **Torn or damaged.** Frames are written one at a time, each after the sync of the one before. So a valid frame header *proves* that everything before
//! it was durable, and there is never more than one frame on disk that was not synced. Recovery reads frames until one does not pass its checksums. If a valid frame header follows anywhere
//! behind it, what it could not read was durable: the log is damaged, and it refuses with file and offset. If none follows, it was the last write, never acknowledged, torn by the
//! crash: it is cut off, whichever of its sectors reached the disk. Its remains hold no frame header but the one the next frame overwrites, so they never pass for
//! anything later.
//!
//! **End marks.** Cutting is right for a frame that was never synced, and wrong for one that was acknowledged and damaged later; both look the same. So each
//! flush writes an end mark where the next frame will begin, in the same write as its frame, and the next frame overwrites it. A log that ends at a valid end mark ends cleanly:
//! no frame was ever synced there, whatever a torn one may have left of an older mark. A log that ends without one has a [`DoubtfulEnd`]: the last write was torn by a
//! power failure, or an acknowledged frame was damaged. A killed process leaves a clean end, since its writes stay in the page cache (one killed *within* a large write
//! may leave a doubtful one, of records that were not acknowledged). Segments of format version 1 have no end marks; their ends are taken for clean.
//!
//! **What must be there.** The superblocks ([`crate::superblock`]) list the segments and claim, a little late, how far the log is synced. A log without a segment that is listed, or that ends before
//! the claim, is refused; so only a bad tail beyond the claim is cut.
//!
//! **Earlier lives of a segment.** Checksums are seeded with the database's id and cover the frame's own position, and a reused segment has new positions: old bytes never pass.
//!
//! **Time.** Commit records carry a time, above that of all records before; it is drawn under the log's lock, so time order is log order.
mod frame;
mod reader;
mod segment;
mod writer;

pub use reader::{DoubtfulEnd, Entry, RedoReader};
pub use writer::RedoLog;

pub use crate::error::LogError;
pub(crate) use frame::take_piece;

use crate::header::DatabaseId;
use rauk_types::Timestamp;
use serde::{Deserialize, Serialize};

/// Directory of the segments.
pub const DIRECTORY: &str = "redo";
/// Size of a segment file unless configured otherwise.
pub const DEFAULT_SEGMENT_BYTES: u64 = 64 << 20;
pub const MIN_SEGMENT_BYTES: u64 = 8 << 10;
pub const MAX_SEGMENT_BYTES: u64 = 2 << 30;
/// Largest record.
pub const MAX_RECORD_BYTES: usize = 1 << 30;

/// A position in the endless log, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Lsn(pub u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    pub start: Lsn,
    /// Durable when `durable_lsn() >= end`.
    pub end: Lsn,
    /// The commit's time; for a record without one, the time of the newest commit before it.
    pub time: Timestamp,
}

#[derive(Clone, Copy, Debug)]
pub struct RedoOptions {
    /// Size of new segments; rounded up to 4 KiB, and kept between [`MIN_SEGMENT_BYTES`] and [`MAX_SEGMENT_BYTES`].
    pub segment_bytes: u64,
    pub database: DatabaseId,
}

impl RedoOptions {
    pub fn new(database: DatabaseId) -> RedoOptions {
        RedoOptions { segment_bytes: DEFAULT_SEGMENT_BYTES, database }
    }

    fn segment_bytes(&self) -> u64 {
        self.segment_bytes.clamp(MIN_SEGMENT_BYTES, MAX_SEGMENT_BYTES).next_multiple_of(segment::FIRST_FRAME)
    }
}

#[cfg(test)]
mod end_tests;
#[cfg(test)]
mod tests;
