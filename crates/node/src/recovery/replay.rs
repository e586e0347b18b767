//! Replaying the redo log: read and taken apart in order by one thread, installed by all, partition by partition.

use super::progress::RecoveryStep;
use super::{Shared, Streams, broken, for_each_partition};
use crate::error::NodeError;
use crate::runtime::Runtime;
use crate::table::route;
use rauk_log::RedoReader;
use rauk_log::record::{Change, changes};
use rauk_types::{TableId, Timestamp};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes of changes in one round.
const ROUND_BYTES: usize = 32 << 20;

/// A round's changes, by partition.
struct Round {
    bytes: Vec<u8>,
    changes: Vec<Vec<Item>>,
}

/// What the bytes of a change are.
#[derive(Clone, Copy)]
enum Form {
    Row {
        layout: u16,
    },
    Sparse {
        layout: u16,
    },
    /// The key of a row that goes.
    Key,
}

struct Item {
    table: TableId,
    time: Timestamp,
    form: Form,
    start: usize,
    end: usize,
}

pub(super) fn redo(
    reader: &mut RedoReader,
    runtime: &dyn Runtime,
    shared: &Arc<Shared>,
    streams: Streams,
    counters: &mut FxHashMap<TableId, u64>,
    progress: &dyn Fn(&str),
) -> Result<(), NodeError> {
    shared.progress.enter(RecoveryStep::RedoLog);
    loop {
        let (round, ended) = read_round(reader, shared, streams, counters)?;
        for_each_partition(runtime, shared, move |shared, partition| install(shared, partition, &round))?;
        shared.fitting.check_available()?;
        let (done, all) = reader.progress();
        let rows = shared.rows.load(Ordering::Relaxed);
        shared.progress.redo_replayed(done, rows);
        if ended {
            return Ok(());
        }
        progress(&format!("replaying the redo log: {rows} rows and changes, {} %", done * 100 / all.max(1)));
    }
}

fn read_round(
    reader: &mut RedoReader,
    shared: &Shared,
    streams: Streams,
    counters: &mut FxHashMap<TableId, u64>,
) -> Result<(Round, bool), NodeError> {
    let partitions = shared.partitions.len() as u16;
    let mut round = Round { bytes: Vec::new(), changes: (0..partitions).map(|_| Vec::new()).collect() };
    while round.bytes.len() < ROUND_BYTES {
        let Some(entry) = reader.next()? else { return Ok((round, true)) };
        for change in changes(entry.payload) {
            let change = change.map_err(|e| broken(&format!("redo record at position {}: {e}", entry.start.0)))?;
            let (bucket, table, form, bytes) = match change {
                Change::Put { bucket, table, layout, row } => (bucket, table, Form::Row { layout }, row),
                Change::Sparse { bucket, table, layout, row } => (bucket, table, Form::Sparse { layout }, row),
                Change::Delete { bucket, table, key } => (bucket, table, Form::Key, key),
                Change::Counter { table, bound } => {
                    let known = counters.entry(table).or_insert(bound);
                    *known = bound.max(*known);
                    continue;
                }
                Change::Stream { .. } if streams == Streams::PassedOver => continue,
                Change::Stream { group, .. } => {
                    let what = format!("group {} has a stream: this is the directory of a cluster's node", group.0);
                    return Err(broken(&what));
                }
            };
            if !shared.known.contains(&table) {
                continue;
            }
            let Some(time) = entry.time else {
                return Err(broken(&format!("redo record at position {} changes rows without a time", entry.start.0)));
            };
            let start = round.bytes.len();
            round.bytes.extend_from_slice(bytes);
            let item = Item { table, time, form, start, end: round.bytes.len() };
            let list = round.changes.get_mut(route::partition_of(bucket, partitions) as usize);
            list.ok_or_else(|| broken(&format!("bucket {bucket} in the redo log")))?.push(item);
        }
    }
    Ok((round, false))
}

fn install(shared: &Shared, partition: usize, round: &Round) -> Result<(), NodeError> {
    let mut target = shared.partitions[partition].lock();
    for item in &round.changes[partition] {
        let bytes = &round.bytes[item.start..item.end];
        let restored = match item.form {
            Form::Row { layout } => target.restore_put(item.table, layout, bytes, item.time),
            Form::Sparse { layout } => target.restore_sparse(item.table, layout, bytes, item.time),
            Form::Key => {
                target.restore_delete(item.table, bytes, item.time);
                Ok(())
            }
        };
        restored.map_err(|stop| broken(&format!("{stop:?}")))?;
    }
    shared.rows.fetch_add(round.changes[partition].len() as u64, Ordering::Relaxed);
    Ok(())
}
