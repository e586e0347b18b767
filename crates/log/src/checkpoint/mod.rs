//! Checkpoints: a manifest that is replaced atomically, and one file of rows a partition.
//!
//! A checkpoint with number *n* is written like this: take `redo_start = log.end_lsn()` *before* the first slice of rows is read and `last_time` after it; write one file a partition
//! with a [`CheckpointWriter`] while transactions go on; flush the log, so that everything that the files hold is durable in it too; store a [`Manifest`] that names *n*, `redo_start` and
//! `redo_durable = log.durable_lsn()`. From then on recovery begins with it, so [`remove_others`] takes older files away and `log.release_before(redo_start)` frees their log. A crash before the manifest is
//! there leaves the old checkpoint in force and some files that nothing names; `remove_others` takes those away too.
//!
//! The manifest names each file's length and checksum, so a file of an unfinished attempt with the same number does not pass for the one that was finished.
//!
//! Rows in the files may be newer than `redo_start`: replay is idempotent by commit time.
mod manifest;
mod rows;

pub use manifest::{Manifest, PATH as MANIFEST};
pub use rows::{CheckpointReader, CheckpointRow, CheckpointWriter, RowsFile};

use crate::disk::Disk;
use crate::error::LogError;
use crate::fault;
use std::sync::Arc;

pub const DIRECTORY: &str = "checkpoint";

fn rows_path(number: u64, partition: u16) -> String {
    format!("{DIRECTORY}/{number:010}-p{partition:04}.rows")
}

/// Removes the files of all checkpoints but this one. Gives how many went.
pub fn remove_others(disk: &Arc<dyn Disk>, keep: u64) -> Result<usize, LogError> {
    let error = |e| LogError::io(DIRECTORY, "cannot remove an old checkpoint in", e);
    if !disk.exists(DIRECTORY).map_err(error)? {
        return Ok(0);
    }
    let mut removed = 0;
    for name in disk.list(DIRECTORY).map_err(error)? {
        let number = name.strip_suffix(".rows").and_then(|n| n.split_once("-p")?.0.parse::<u64>().ok());
        if number.is_some_and(|number| number != keep) {
            fault::point("checkpoint.before_remove").map_err(error)?;
            disk.remove(&format!("{DIRECTORY}/{name}")).map_err(error)?;
            removed += 1;
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests;
