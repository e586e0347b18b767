//! Checkpoints: the rows as they are, partition by partition and slice by slice, while transactions go on.
//!
//! 1. `redo_start` is settled: the oldest commit that is in the log but not yet in all its partitions, or else the log's end.
//! 2. Each partition is walked in slices, a short hold each, and its newest committed rows go to a file. Some are newer than `redo_start`;
//!    replaying the log over them changes nothing, since every row carries its commit's time.
//! 3. The log is made durable to its end, so that nothing in the files is newer than the log on disk.
//! 4. The manifest names the new checkpoint: from here on recovery begins with it. Older files and segments may go.
//!
//! In a cluster a restart begins with each partition's *anchor*, which says what its stream and its transactions were; the anchors are written first, and
//! `redo_start` lies before them. A partition that is not whole has no rows in the checkpoint: while a copy is under way the log is kept from the copy's beginning.
//!
//! With durability `replicated` it is published only when a complete cut covers it: what it has may be newer than the last cut, and the versions before are in the log only.
//!
//! If anything fails before 4, the checkpoint before stays in force; the next one tries again.

pub mod background;

use crate::error::NodeError;
use crate::executor::Class;
use crate::member::event_log::Level;
use crate::node::Node;
use crate::table::counter::hidden_counter;
use rauk_kernel::RowId;
use rauk_log::checkpoint::{self as files, RowsFile};
use rauk_log::{CheckpointWriter, LogError, Lsn, Manifest, fault};
use rauk_types::{NodeId, ProcessId, TableId, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Rows copied in one hold of a partition.
pub(crate) const SLICE_ROWS: usize = 128;

/// A checkpoint waits so long for a cut that covers it, in a cluster that has cuts.
const COVERED: Duration = Duration::from_secs(60);

/// Whether a checkpoint is being written, and where the last one's redo begins.
pub struct State {
    running: AtomicBool,
    redo_start: AtomicU64,
}

impl State {
    pub fn new(redo_start: Lsn) -> State {
        State { running: AtomicBool::new(false), redo_start: AtomicU64::new(redo_start.0) }
    }

    /// Where the redo of the checkpoint in force begins.
    pub fn redo_start(&self) -> Lsn {
        Lsn(self.redo_start.load(Ordering::Relaxed))
    }
}

/// Writes a checkpoint; waits for one that is being written. A `clean` one is the last before the end: counters are stored exactly.
pub async fn run(node: &Arc<Node>, clean: bool) -> Result<(), NodeError> {
    let _running = begin(node).await;
    let result = write(node, clean).await;
    match &result {
        Ok(()) => node.registry.checkpoints.fetch_add(1, Ordering::Relaxed),
        Err(error) => {
            let me = node.cluster().map_or(NodeId(1), |c| c.me().node);
            node.event_log.note(me, Level::Error, format!("a checkpoint failed: {error}"));
            let kept = node.manifest.lock().checkpoint;
            // What an unfinished attempt left goes; if that fails too, the next success removes it.
            let _ = files::remove_others(&node.disk, kept);
            node.registry.checkpoint_failures.fetch_add(1, Ordering::Relaxed)
        }
    };
    result
}

/// Waits for the one that is being written; until the result is dropped there is no other.
async fn begin(node: &Node) -> Running<'_> {
    while node.checkpoint.running.swap(true, Ordering::Acquire) {
        node.runtime.sleep(Duration::from_millis(5)).await;
    }
    Running(node)
}

/// The last word of a fenced process, whose log is on disk to its end: the directory says so from here on ([`Manifest::fenced`]).
pub async fn note_fenced(node: &Node, process: ProcessId) -> Result<(), NodeError> {
    let _running = begin(node).await;
    let mut manifest = node.manifest.lock().clone();
    manifest.fenced = Some(process);
    manifest.redo_durable = node.log.durable_lsn();
    store(node, &mut manifest)?;
    *node.manifest.lock() = manifest;
    Ok(())
}

struct Running<'a>(&'a Node);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.checkpoint.running.store(false, Ordering::Release);
    }
}

async fn write(node: &Arc<Node>, clean: bool) -> Result<(), NodeError> {
    let fault_error = |e: std::io::Error| NodeError::DiskFull(e.to_string());
    fault::point("node.checkpoint.begin").map_err(fault_error)?;
    let number = node.manifest.lock().checkpoint + 1;
    let redo_start = match node.cluster() {
        None => node.inflight.redo_start(|| node.log.end_lsn()),
        Some(cluster) => cluster.write_anchors().await?,
    };
    // After `redo_start`: what is created later has all its rows behind it.
    let tables = node.tables.all();
    let mut counters = Vec::new();
    for table in tables.iter().filter(|table| table.schema.leaf_of.is_none()) {
        let shared = &table.shared;
        let auto_increment = if clean { shared.auto_increment.peek() } else { shared.auto_increment.bound() };
        counters.push((shared.id, auto_increment));
        counters.push((hidden_counter(shared.id), shared.hidden_keys.bound()));
    }
    counters.retain(|(_, bound)| *bound > 1);
    let ids: Vec<TableId> = tables.iter().map(|t| t.schema.id).collect();
    let mut written = Vec::new();
    for partition in 0..node.partition_count() {
        written.push(write_partition(node, number, partition, &ids).await?);
    }
    fault::point("node.checkpoint.after_rows").map_err(fault_error)?;
    if let Some(cluster) = node.cluster() {
        cluster.refuse_stopped()?;
    }
    let last_time = node.log.last_time();
    node.group.flush_all().await?;
    if let Some(cluster) = node.cluster().filter(|cluster| cluster.hooks.safeguards.cut_covers) {
        // Else it would be newer than what the cluster may go back to (rule 30).
        cluster.wait_cut(COVERED).await?;
    }
    let mut manifest = {
        let old = node.manifest.lock();
        Manifest {
            checkpoint: number,
            redo_start,
            redo_durable: node.log.durable_lsn(),
            last_time,
            counters,
            durability: durability_name(node).to_string(),
            recovery: old.recovery,
            starts: old.starts.clone(),
            files: written,
            ..Manifest::new(old.database, old.partitions, durability_name(node))
        }
    };
    store(node, &mut manifest)?;
    *node.manifest.lock() = manifest;
    node.checkpoint.redo_start.store(redo_start.0, Ordering::Relaxed);
    let _ = fault::point("node.checkpoint.after_manifest");
    // The checkpoint is in force. What follows only saves room.
    if let Err(error) = files::remove_others(&node.disk, number) {
        tracing::warn!(%error, "an old checkpoint could not be removed");
    }
    match node.log.release_before(redo_start) {
        Ok(()) => {}
        Err(LogError::DiskFull(what)) => tracing::warn!(what, "segments of the redo log could not be released"),
        Err(error) => {
            node.fatal(&error.to_string());
            return Err(error.into());
        }
    }
    match node.catalog.lock().compact() {
        Ok(()) => {}
        Err(LogError::DiskFull(what)) => tracing::warn!(what, "the catalog's journal could not be compacted"),
        Err(error) => {
            node.fatal(&error.to_string());
            return Err(error.into());
        }
    }
    Ok(())
}

fn durability_name(node: &Node) -> &'static str {
    node.config.durability.name()
}

fn store(node: &Node, manifest: &mut Manifest) -> Result<(), NodeError> {
    manifest.store(&node.superblocks).map_err(|error| match error {
        LogError::DiskFull(_) => error.into(),
        // Old or new, nobody knows: only a restart tells.
        other => {
            node.fatal(&other.to_string());
            other.into()
        }
    })
}

async fn write_partition(
    node: &Arc<Node>,
    number: u64,
    partition: u16,
    tables: &[TableId],
) -> Result<RowsFile, NodeError> {
    let mut writer = CheckpointWriter::create(&node.disk, node.id, number, partition)?;
    if node.cluster().is_some_and(|cluster| !cluster.is_whole(partition)) {
        return Ok(writer.finish()?);
    }
    // What was committed before `redo_start` is in no log that recovery reads.
    node.finish_ends(partition).await;
    let mut bytes = Vec::new();
    let mut rows: Vec<(u16, Timestamp, usize)> = Vec::new();
    for &table in tables {
        let mut next = Some(RowId(0));
        while let Some(from) = next {
            if node.cluster().is_some_and(|cluster| cluster.is_closed()) {
                return Err(NodeError::ShuttingDown);
            }
            bytes.clear();
            rows.clear();
            next = node
                .on_partition(partition, Class::Background, |p| {
                    p.checkpoint_slice(table, from, SLICE_ROWS, &mut |layout, time, row| {
                        bytes.extend_from_slice(row);
                        rows.push((layout, time, bytes.len()));
                    })
                })
                .await;
            let mut start = 0;
            for &(layout, time, end) in &rows {
                writer.put(table, layout, time, &bytes[start..end])?;
                start = end;
            }
        }
    }
    Ok(writer.finish()?)
}
