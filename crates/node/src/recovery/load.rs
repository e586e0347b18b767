//! Reading a checkpoint: one file a partition.

use super::{Shared, broken, for_each_partition};
use crate::error::NodeError;
use crate::runtime::Runtime;
use parking_lot::Mutex;
use rauk_log::{CheckpointReader, Disk, Manifest};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Rows a partition takes in one round.
const ROUND_ROWS: u64 = 500_000;

pub(super) fn checkpoint(
    disk: &Arc<dyn Disk>,
    manifest: &Manifest,
    runtime: &dyn Runtime,
    shared: &Arc<Shared>,
    progress: &dyn Fn(&str),
) -> Result<(), NodeError> {
    if manifest.checkpoint == 0 {
        return Ok(());
    }
    let mut readers = Vec::new();
    for partition in 0..manifest.partitions {
        let reader = CheckpointReader::open(disk, manifest, partition)?;
        readers.push(Mutex::new(Some(reader)));
    }
    let readers = Arc::new(readers);
    loop {
        let jobs = readers.clone();
        for_each_partition(runtime, shared, move |shared, partition| {
            let mut slot = jobs[partition].lock();
            let Some(reader) = slot.as_mut() else { return Ok(()) };
            if !load_some(reader, shared, partition)? {
                *slot = None;
            }
            Ok(())
        })?;
        shared.fitting.check_available()?;
        let (mut done, mut all, mut left) = (0, 0, false);
        for reader in readers.iter() {
            if let Some(reader) = &*reader.lock() {
                let (read, of) = reader.progress();
                done += read;
                all += of;
                left = true;
            }
        }
        if !left {
            return Ok(());
        }
        let rows = shared.rows.load(Ordering::Relaxed);
        progress(&format!("loading the checkpoint: {rows} rows, {} %", done * 100 / all.max(1)));
    }
}

/// `false` at the end of the file.
fn load_some(reader: &mut CheckpointReader, shared: &Shared, partition: usize) -> Result<bool, NodeError> {
    let mut target = shared.partitions[partition].lock();
    let mut rows = 0;
    let mut ended = false;
    let (mut counted_bytes, mut counted_rows) = (reader.progress().0, 0);
    while rows < ROUND_ROWS {
        let Some(row) = reader.next()? else {
            ended = true;
            break;
        };
        if shared.known.contains(&row.table) {
            target
                .restore_put(row.table, row.layout, row.row, row.time)
                .map_err(|stop| broken(&format!("{stop:?}")))?;
            rows += 1;
        }
        // A block more has been read.
        let bytes = reader.progress().0;
        if bytes > counted_bytes {
            shared.progress.checkpoint_read(bytes - counted_bytes, rows - counted_rows);
            (counted_bytes, counted_rows) = (bytes, rows);
        }
    }
    shared.progress.checkpoint_read(reader.progress().0 - counted_bytes, rows - counted_rows);
    shared.rows.fetch_add(rows, Ordering::Relaxed);
    Ok(!ended)
}
