//! A sample of a table's rows, for its statistics.
//!
//! All rows are visited, and one of so many is taken that about [`SAMPLE`] are: rows that were stored one after another
//! are alike, so the first ones would say little of the others. A table of a cluster, whose rows come over the network,
//! is visited only as far as [`MOST_REMOTE`] rows. Of each sampled row the values of the leading columns of each index are
//! hashed, as their collations compare them; of every so many of them, so that there are about [`COLUMN_SAMPLE`], the values of
//! the first [`MOST_COLUMNS`] columns that are not large.

use super::scan::{is_interrupted, yield_now};
use crate::expr::Context;
use crate::expr::value_key::append_key;
use crate::histogram::{Histogram, Made, position, shortened};
use crate::statistics::{ColumnStatistics, TableStatistics, bounds, estimate};
use rauk_node::{NodeError, ScanBatch, ScanCursor, ScanSpec, TableHandle, Transaction};
use rauk_types::{
    Column, ColumnId, DataType, IndexSchema, MysqlError, RowView, TableSchema, TypeKind, Value, ValueRef,
};
use rustc_hash::{FxHashMap, FxHasher};
use std::collections::BTreeMap;
use std::hash::Hasher;

/// Rows of a sample.
const SAMPLE: u64 = 32 << 10;
/// Rows of a sample whose single columns are looked at.
const COLUMN_SAMPLE: u64 = 4 << 10;
/// Columns that are looked at.
const MOST_COLUMNS: usize = 64;
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

/// What a sample gives.
pub(crate) struct Sampled {
    pub statistics: TableStatistics,
    /// The part of the rows that was looked at.
    pub rate: f64,
}

/// The values of one column, for its histogram.
pub(crate) struct Values {
    position: usize,
    column: ColumnId,
    ty: DataType,
    /// By their keys.
    counts: BTreeMap<Vec<u8>, (Value, u64)>,
    nulls: u64,
    key: Vec<u8>,
}

impl Values {
    pub fn new(schema: &TableSchema, position: usize) -> Values {
        let Column { id: column, ty, .. } = schema.columns[position];
        Values { position, column, ty, counts: BTreeMap::new(), nulls: 0, key: Vec::new() }
    }

    fn add(&mut self, value: ValueRef<'_>) {
        if value.is_null() {
            self.nulls += 1;
            return;
        }
        let value = shortened(value);
        self.key.clear();
        append_key(value, &self.ty, false, &mut self.key);
        match self.counts.get_mut(&self.key) {
            Some((_, count)) => *count += 1,
            None => _ = self.counts.insert(self.key.clone(), (value.to_owned(), 1)),
        }
    }

    pub fn histogram(self, made: Made) -> Histogram {
        Histogram::new(self.column, self.ty, self.counts.into_values().collect(), self.nulls, made)
    }
}

/// Reads a sample, and the values of some columns of it. The table is in use by the transaction. Errors: 1317, and those of scans.
pub(crate) async fn sample(
    table: &TableHandle,
    limits: Limits<'_>,
    values: &mut [Values],
    txn: &mut Transaction,
) -> Result<Sampled, MysqlError> {
    let schema = table.schema().clone();
    let step = (limits.rows / SAMPLE).max(1);
    let spec = ScanSpec::default();
    let mut cursor = ScanCursor::new(table, spec);
    let mut batch = ScanBatch::default();
    let mut counts = Counts::new(&schema, limits.rows / step);
    let mut visited = 0u64;
    let mut complete = false;
    let remote = limits.clustered;
    // At least one batch is read, however late it is.
    while !(remote && visited >= MOST_REMOTE || visited > 0 && (limits.is_over)()) {
        let mut filter = |view: &RowView<'_>| {
            if visited.is_multiple_of(step) {
                counts.add(&schema, view);
                values.iter_mut().for_each(|of| of.add(view.get(of.position)));
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
    let rate = counts.sampled as f64 / rows.max(counts.sampled).max(1) as f64;
    Ok(Sampled { statistics: counts.finish(&schema, rows), rate: if rows == 0 { 1.0 } else { rate } })
}

/// Hashes of values, with whether each came more than once.
#[derive(Default)]
struct Seen {
    hashes: FxHashMap<u64, bool>,
}

impl Seen {
    fn add(&mut self, key: &[u8]) {
        let mut hasher = FxHasher::default();
        hasher.write(key);
        self.hashes.entry(hasher.finish()).and_modify(|again| *again = true).or_insert(false);
    }

    /// Different values among all rows.
    fn distinct(&self, sampled: u64, rows: u64) -> f64 {
        let once = self.hashes.values().filter(|again| !**again).count() as u64;
        estimate(self.hashes.len() as u64, once, sampled, rows)
    }
}

/// What a column's sampled values are.
struct Single {
    position: usize,
    seen: Seen,
    nulls: u64,
    positions: Vec<f64>,
}

struct Counts {
    /// Of each index, of each number of its columns.
    seen: Vec<Vec<Seen>>,
    sampled: u64,
    columns: Vec<Single>,
    /// Of so many sampled rows one is looked at for its columns.
    column_step: u64,
    columns_sampled: u64,
    key: Vec<u8>,
}

impl Counts {
    /// `expected`: rows that will be sampled, about.
    fn new(schema: &TableSchema, expected: u64) -> Counts {
        // Texts and arrays that have several keys are none.
        let several = |index: &IndexSchema| index.is_full_text() || index.elements().is_some();
        let parts = |index: &IndexSchema| if several(index) { 0 } else { index.parts.len() };
        let of = |index: &IndexSchema| std::iter::repeat_with(Seen::default).take(parts(index)).collect();
        let seen = schema.indexes.iter().map(of).collect();
        let column = |position| Single { position, seen: Seen::default(), nulls: 0, positions: Vec::new() };
        let small = |position: &usize| {
            let ty = &schema.columns[*position].ty;
            !ty.is_lob() && ty.kind != TypeKind::Json
        };
        let columns = (0..schema.columns.len()).filter(small).take(MOST_COLUMNS).map(column).collect();
        let column_step = (expected / COLUMN_SAMPLE).max(1);
        Counts { seen, sampled: 0, columns, column_step, columns_sampled: 0, key: Vec::new() }
    }

    fn add(&mut self, schema: &TableSchema, view: &RowView<'_>) {
        if self.sampled.is_multiple_of(self.column_step) {
            self.add_columns(schema, view);
        }
        self.sampled += 1;
        for (index, seen) in schema.indexes.iter().zip(&mut self.seen) {
            self.key.clear();
            for (part, seen) in index.parts.iter().zip(seen) {
                append_key(view.get(part.column), &schema.columns[part.column].ty, false, &mut self.key);
                seen.add(&self.key);
            }
        }
    }

    fn add_columns(&mut self, schema: &TableSchema, view: &RowView<'_>) {
        self.columns_sampled += 1;
        for column in &mut self.columns {
            let value = view.get(column.position);
            self.key.clear();
            append_key(value, &schema.columns[column.position].ty, false, &mut self.key);
            column.seen.add(&self.key);
            column.nulls += u64::from(value.is_null());
            column.positions.extend(position(value, &schema.columns[column.position].ty));
        }
    }

    fn finish(self, schema: &TableSchema, rows: u64) -> TableStatistics {
        let sampled = self.sampled;
        let of = |seen: Vec<Seen>| seen.into_iter().map(|seen| seen.distinct(sampled, rows)).collect();
        let indexes = schema.indexes.iter().zip(self.seen).map(|(index, seen)| (index.id, of(seen))).collect();
        let sampled = self.columns_sampled;
        let of = |column: Single| ColumnStatistics {
            distinct: column.seen.distinct(sampled, rows),
            nulls: column.nulls as f64 / sampled.max(1) as f64,
            bounds: bounds(column.positions),
        };
        let columns = self.columns.into_iter().map(|column| (schema.columns[column.position].id, of(column))).collect();
        TableStatistics { rows, indexes, columns, histograms: vec![] }
    }
}
