//! Index merge: several scans of one table, whose rows come once each.
//!
//! A row belongs to the first scan whose ranges its key lies in: of a row that another scan finds, its keys in the indexes
//! before are made and looked for in their ranges. All scans see one snapshot, or at SERIALIZABLE ranges that are locked, so
//! nothing is missed between them, and nothing is remembered.
//!
//! Scans that lock see the newest rows, and a row may move into the ranges of an earlier scan before a later one comes to
//! it. So these remember the primary keys of the rows that they gave. A row that was given before keeps the lock that it has.
//!
//! Where the rows of a small table are to come in the order of its primary key, up to 1 000 rows are kept and sorted.

use super::keys::{self, KeyRange};
use super::row::{Joined, Part};
use super::scan::{BATCH, Opened, give_way, passes};
use super::search;
use super::select::Run;
use crate::expr::Context;
use crate::memory::Memory;
use crate::physical::model::{Level, MergeAccess, Source};
use crate::physical::place::{Distribution, distribution};
use rauk_node::{SMALL_TABLE, ScanBatch, ScanCursor, ScanSpec, TableHandle};
use rauk_types::{KeyDef, MysqlError, RowView, TableSchema};
use rustc_hash::FxHashSet;
use std::ops::Bound;

/// What a level merges in this execution.
pub(crate) struct Merge {
    /// Each with the number of its part.
    pub scans: Vec<(usize, ScanSpec)>,
    parts: Parts,
    /// Of scans that lock, and of words and elements that may be in a row several times.
    pub met: Option<Met>,
    /// Room for a key.
    key: Vec<u8>,
}

/// What is read.
pub(super) enum Parts {
    /// The indexes, and what is read of each.
    Ranges(Vec<(KeyDef, Vec<KeyRange>)>),
    /// Words, a scan each: the cover of the search of this number, of an index of these columns.
    Words { search: usize, columns: Vec<usize> },
}

/// The rows that scans have given.
pub(crate) struct Met {
    primary: KeyDef,
    keys: FxHashSet<Box<[u8]>>,
    held: Held,
}

/// Memory that is given back.
struct Held {
    memory: Memory,
    bytes: usize,
}

impl Held {
    fn take(&mut self, bytes: usize) -> Result<(), MysqlError> {
        self.memory.take(bytes)?;
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.memory.give(self.bytes);
    }
}

/// Bytes of a kept key or row beside its own.
const OVERHEAD: usize = 48;

fn primary_key(schema: &TableSchema) -> KeyDef {
    schema.key_def(&schema.indexes[0])
}

impl Met {
    fn new(schema: &TableSchema, context: &Context) -> Met {
        let held = Held { memory: context.budget.memory.clone(), bytes: 0 };
        Met { primary: primary_key(schema), keys: FxHashSet::default(), held }
    }

    /// Whether the row is met for the first time.
    pub fn is_new(&mut self, view: &RowView<'_>) -> Result<bool, MysqlError> {
        let mut key = Vec::new();
        self.primary.encode_row(view, &mut key);
        if self.keys.contains(key.as_slice()) {
            return Ok(false);
        }
        self.held.take(key.len() + OVERHEAD)?;
        self.keys.insert(key.into_boxed_slice());
        Ok(true)
    }
}

/// Finds out what to read; `scan` has neither index nor bounds.
pub(super) fn open(
    access: &MergeAccess,
    source: &Source,
    scan: ScanSpec,
    row: &Joined<'_>,
    context: &mut Context,
) -> Result<Opened, MysqlError> {
    let schema = source.schema();
    let first = access.parts.first().expect("a merge has parts");
    let distribution = match distribution(first.distribution.as_ref(), row, row.zone, context)? {
        Distribution::Nothing => return Ok(Opened::Nothing),
        Distribution::Key(key) => Some(key),
        Distribution::Unknown => None,
    };
    let mut scans = Vec::new();
    let mut ranges = Vec::with_capacity(access.parts.len());
    for (number, part) in access.parts.iter().enumerate() {
        let of_part = keys::ranges(part, row, context)?;
        scans.extend(of_part.iter().map(|range| {
            let spec = ScanSpec {
                index: Some(schema.indexes[part.index].id),
                low: if range.low.is_empty() { Bound::Unbounded } else { Bound::Included(range.low.clone()) },
                high: range.high.clone().map_or(Bound::Unbounded, Bound::Excluded),
                distribution: distribution.clone(),
                ordered_if_small: false,
                ..scan.clone()
            };
            (number, spec)
        }));
        ranges.push((part.key_def.clone(), of_part));
    }
    if scans.is_empty() {
        return Ok(Opened::Nothing);
    }
    // A row has several keys in an index of elements.
    let several = access.parts.iter().any(|part| schema.indexes[part.index].elements().is_some());
    let met = (scan.lock.is_some() || several).then(|| Met::new(schema, context));
    Ok(Opened::Merge(Box::new(Merge { scans, parts: Parts::Ranges(ranges), met, key: Vec::new() })))
}

impl Merge {
    /// Of words. `repeats`: one of the scans may give a row more than once.
    pub(super) fn of_words(
        scans: Vec<(usize, ScanSpec)>,
        parts: Parts,
        repeats: bool,
        schema: &TableSchema,
        context: &Context,
    ) -> Merge {
        let locks = scans.first().is_some_and(|(_, scan)| scan.lock.is_some());
        let met = (locks || repeats).then(|| Met::new(schema, context));
        Merge { scans, parts, met, key: Vec::new() }
    }

    /// Whether no scan has given the row that a scan of index `number` finds.
    fn is_new(&mut self, number: usize, view: &RowView<'_>, context: &mut Context) -> Result<bool, MysqlError> {
        if let Some(met) = &mut self.met {
            return met.is_new(view);
        }
        let Merge { parts, key, .. } = self;
        let ranges = match parts {
            Parts::Ranges(ranges) => ranges,
            Parts::Words { search, columns } => {
                // One word has a row once.
                return Ok(number == 0 || {
                    let texts = search::texts(view, columns);
                    context.searches.first_of_cover(*search, &texts).is_none_or(|first| first == number)
                });
            }
        };
        let found = ranges[..number].iter().any(|(index, ranges)| {
            key.clear();
            index.encode_row(view, key);
            let behind = ranges.partition_point(|range| range.low <= *key);
            behind > 0 && ranges[behind - 1].high.as_ref().is_none_or(|high| *key < *high)
        });
        Ok(!found)
    }
}

/// Rows that wait for others, to be sorted by their primary keys.
struct Waiting {
    primary: KeyDef,
    /// Key, layout, bytes.
    rows: Vec<(Vec<u8>, u16, Vec<u8>)>,
    held: Held,
}

impl Run<'_> {
    /// Reads what a level merges.
    pub(super) async fn merge(
        &mut self,
        at: usize,
        level: &Level,
        table: &TableHandle,
        merge: &mut Merge,
        row: &Joined<'_>,
    ) -> Result<(), MysqlError> {
        let mut waiting = level.key_order.then(|| Waiting {
            primary: primary_key(table.schema()),
            rows: vec![],
            held: Held { memory: self.context.budget.memory.clone(), bytes: 0 },
        });
        let mut batch = ScanBatch::default();
        for (number, mut spec) in std::mem::take(&mut merge.scans) {
            let work = self.work(at, level, table, &mut spec, row, false);
            let mut cursor = ScanCursor::new(table, spec);
            loop {
                let (mut failed, mut examined) = (None, 0);
                let context = &mut *self.context;
                let mut filter = |view: &RowView<'_>| {
                    if let Some(work) = &work {
                        work.before_row(context);
                    }
                    examined += 1;
                    let joined = row.with(level.table, Part::Stored(*view));
                    let wanted = match passes(&level.filters, &joined, context) {
                        Ok(true) => merge.is_new(number, view, context),
                        other => other,
                    };
                    wanted.unwrap_or_else(|error| {
                        failed.get_or_insert(error);
                        true
                    })
                };
                cursor.next_batch(self.txn, BATCH, &mut filter, &mut batch).await?;
                self.examined(at, examined);
                if let Some(error) = failed {
                    return Err(error);
                }
                if batch.is_empty() {
                    if let Some(work) = work {
                        work.end(false, self.context);
                    }
                    break;
                }
                for i in 0..batch.len() {
                    match &mut waiting {
                        Some(waiting) => {
                            let (layout, bytes) = batch.raw(i);
                            let mut key = Vec::new();
                            waiting.primary.encode_row(&batch.row(table, i), &mut key);
                            waiting.held.take(key.len() + bytes.len() + OVERHEAD)?;
                            waiting.rows.push((key, layout, bytes.to_vec()));
                        }
                        None => self.merged(at, level, batch.row(table, i), row).await?,
                    }
                    if self.is_done() {
                        if let Some(work) = work {
                            work.end(true, self.context);
                        }
                        return Ok(());
                    }
                }
                if waiting.as_ref().is_some_and(|waiting| waiting.rows.len() as u64 > SMALL_TABLE) {
                    self.waited(at, level, table, waiting.take(), row).await?;
                }
                self.turn(batch.len()).await?;
            }
        }
        if let Some(waiting) = &mut waiting {
            waiting.rows.sort_unstable();
        }
        self.waited(at, level, table, waiting, row).await
    }

    /// Goes on with the rows that waited.
    async fn waited(
        &mut self,
        at: usize,
        level: &Level,
        table: &TableHandle,
        waiting: Option<Waiting>,
        row: &Joined<'_>,
    ) -> Result<(), MysqlError> {
        for (_, layout, bytes) in waiting.iter().flat_map(|waiting| &waiting.rows) {
            if self.is_done() {
                break;
            }
            self.merged(at, level, RowView::new(table.schema(), *layout, bytes), row).await?;
        }
        Ok(())
    }

    /// Goes on with a row.
    async fn merged(
        &mut self,
        at: usize,
        level: &Level,
        view: RowView<'_>,
        row: &Joined<'_>,
    ) -> Result<(), MysqlError> {
        let joined = row.with(level.table, Part::Stored(view));
        if self.passes(&level.late_filters, &joined).await? {
            self.advance(at + 1, &joined).await?;
            self.back(at);
        }
        give_way(self.txn, self.context).await
    }
}
