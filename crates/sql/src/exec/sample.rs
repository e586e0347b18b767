//! A sample of a table's rows, for its statistics.
//!
//! All rows are visited, and one of so many is taken that about [`SAMPLE`] are: rows that were stored one after another
//! are alike, so the first ones would say little of the others. A table of a cluster, whose rows come over the network,
//! is visited only as far as [`MOST_REMOTE`] rows. Of each sampled row the values of the leading columns of each index are
//! hashed, as their collations compare them.

use super::scan::{is_interrupted, yield_now};
use super::sort::append_key;
use crate::expr::Context;
use crate::statistics::{TableStatistics, estimate};
use rauk_node::{NodeError, ScanBatch, ScanCursor, ScanSpec, TableHandle, Transaction};
use rauk_types::{MysqlError, RowView, TableSchema};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::Hasher;
use std::ops::Bound;

/// Rows of a sample.
const SAMPLE: u64 = 32 << 10;
/// Rows of a table of a cluster that are visited.
const MOST_REMOTE: u64 = 128 << 10;
/// Rows between two turns of others.
const TURN: u64 = 4096;

/// What limits a sample, and how others get their turn.
pub(crate) struct Limits<'a> {
    /// Rows of the table, by the estimate.
    pub rows: u64,
    pub clustered: bool,
    /// Asked every few thousand rows: whether to stop with what is there.
    pub is_over: &'a (dyn Fn() -> bool + Sync),
    /// Of a statement; the server's own work has none.
    pub context: Option<&'a Context>,
}

/// Reads a sample. The table is in use by the transaction. Errors: 1317, and those of scans.
pub(crate) async fn sample(
    table: &TableHandle,
    limits: Limits<'_>,
    txn: &mut Transaction,
) -> Result<TableStatistics, MysqlError> {
    let schema = table.schema().clone();
    let step = (limits.rows / SAMPLE).max(1);
    let spec = ScanSpec {
        index: None,
        low: Bound::Unbounded,
        high: Bound::Unbounded,
        reverse: false,
        ordered: false,
        ordered_if_small: false,
        lock: None,
        distribution: None,
        partition: None,
        limit_hint: None,
    };
    let mut cursor = ScanCursor::new(table, spec);
    let mut batch = ScanBatch::default();
    let mut counts = Counts::new(&schema);
    let mut visited = 0u64;
    let mut complete = false;
    let remote = limits.clustered;
    // At least one batch is read, however late it is.
    while !(remote && visited >= MOST_REMOTE || visited > 0 && (limits.is_over)()) {
        let mut filter = |view: &RowView<'_>| {
            if visited.is_multiple_of(step) {
                counts.add(&schema, view);
            }
            visited += 1;
            visited.is_multiple_of(TURN)
        };
        cursor.next_batch(txn, 1, &mut filter, &mut batch).await?;
        if batch.is_empty() {
            complete = true;
            break;
        }
        if is_interrupted(txn) {
            return Err(NodeError::Interrupted.into());
        }
        if let Some(context) = limits.context {
            yield_now(context).await;
        }
    }
    let rows = if complete { visited } else { visited.max(limits.rows) };
    Ok(counts.finish(&schema, rows))
}

/// Hashes of values, with whether each came more than once.
#[derive(Default)]
struct Seen {
    hashes: FxHashMap<u64, bool>,
}

struct Counts {
    /// Of each index, of each number of its columns.
    seen: Vec<Vec<Seen>>,
    sampled: u64,
    key: Vec<u8>,
}

impl Counts {
    fn new(schema: &TableSchema) -> Counts {
        let seen = schema.indexes.iter().map(|index| index.parts.iter().map(|_| Seen::default()).collect()).collect();
        Counts { seen, sampled: 0, key: Vec::new() }
    }

    fn add(&mut self, schema: &TableSchema, view: &RowView<'_>) {
        self.sampled += 1;
        for (index, seen) in schema.indexes.iter().zip(&mut self.seen) {
            self.key.clear();
            for (part, seen) in index.parts.iter().zip(seen) {
                append_key(view.get(part.column), &schema.columns[part.column].ty, false, &mut self.key);
                let mut hasher = FxHasher::default();
                hasher.write(&self.key);
                seen.hashes.entry(hasher.finish()).and_modify(|again| *again = true).or_insert(false);
            }
        }
    }

    fn finish(self, schema: &TableSchema, rows: u64) -> TableStatistics {
        let of = |seen: Vec<Seen>| {
            seen.into_iter()
                .map(|seen| {
                    let once = seen.hashes.values().filter(|again| !**again).count() as u64;
                    estimate(seen.hashes.len() as u64, once, self.sampled, rows)
                })
                .collect()
        };
        let indexes = schema.indexes.iter().zip(self.seen).map(|(index, seen)| (index.id, of(seen))).collect();
        TableStatistics { rows, indexes }
    }
}
