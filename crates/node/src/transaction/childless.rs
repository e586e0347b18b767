//! Children of many rows, looked for together after the rows were deleted.
//!
//! A statement that deletes many rows to which others may refer would look for the children of each in every partition
//! of each child's table; here the keys of all of them are one operation for a partition ([`Op::LookUp`], which locks
//! what it finds and waits for rows of others that are pending), so one question where another node leads it. The order
//! is that of a single row (`super::foreign`): the rows are deleted, so that who wants to refer to them waits, and then
//! children are looked for in the newest state.
//!
//! Where a child is found, what becomes of it is the business of its foreign key, row by row.

use super::Transaction;
use super::foreign::Found;
use super::lookup::ENTRIES;
use crate::error::NodeError;
use crate::ops::operation::{Done, LookUp, Op, Seen};
use crate::ops::serve::MOST_SPANS;
use crate::table::TableInfo;
use crate::table::relations::{ParentIndex, distribution_key};
use rauk_kernel::{LookupPosition, ScanEnd, Span, Verdict};
use rauk_types::key::prefix_successor;
use rauk_types::{IndexId, Value, ValueRef};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A range of a child's index: its low end, and its high end, empty if there is none.
type Range = (Vec<u8>, Vec<u8>);

impl Transaction {
    /// Whether no row of these children refers to a row that is gone.
    pub(super) async fn are_childless<'r>(
        &mut self,
        table: &TableInfo,
        children: &[Found],
        gone: impl Iterator<Item = &'r [Value]> + Clone + Send,
    ) -> Result<bool, NodeError> {
        for child in children {
            let info = &child.table;
            let key = &info.schema.foreign_keys[child.number];
            let reference = &info.references[child.number];
            let parent = ParentIndex::of(key, &info.schema, &table.schema);
            let Some(columns) = parent.map(|parent| parent.columns) else { continue };
            // DDL keeps an index for each foreign key.
            let (index, def) = reference.index.as_ref().ok_or(NodeError::StaleSchema)?;
            let all: Vec<u16> = self.node.partitions_of(info).collect();
            let mut ranges: BTreeMap<u16, Vec<Range>> = BTreeMap::new();
            for row in gone.clone() {
                let values: Vec<ValueRef<'_>> = columns.iter().map(|&at| row[at].as_ref()).collect();
                // MATCH SIMPLE: nothing refers to a NULL.
                if values.iter().any(|value| value.is_null()) {
                    continue;
                }
                let mut low = Vec::with_capacity(32);
                def.encode_prefix(&values, &mut low);
                let mut high = low.clone();
                if !prefix_successor(&mut high) {
                    high.clear();
                }
                let one = reference.distribution.as_ref().map(|known| {
                    let bucket = info.route.bucket_of_distribution(&distribution_key(known, &values));
                    [self.node.partition_of(bucket)]
                });
                for &partition in one.as_ref().map_or(&all[..], |one| &one[..]) {
                    ranges.entry(partition).or_default().push((low.clone(), high.clone()));
                }
            }
            for (partition, mut ranges) in ranges {
                ranges.sort();
                ranges.dedup();
                for ranges in ranges.chunks(MOST_SPANS) {
                    let step = self.begin_newest();
                    let found = self.has_any(info, partition, *index, ranges).await;
                    self.end_newest(step);
                    if found? {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    /// Whether a partition has a row in one of these ranges; it is locked then.
    async fn has_any(
        &mut self,
        info: &TableInfo,
        partition: u16,
        index: IndexId,
        ranges: &[Range],
    ) -> Result<bool, NodeError> {
        self.ensure_txn();
        self.touch(info, partition);
        let view = self.newest_view(self.statement);
        let spans: Vec<Span<'_>> = ranges.iter().map(span_of).collect();
        let (spans, position) = (Cow::Borrowed(spans.as_slice()), LookupPosition::default());
        let mut op = Op::LookUp(LookUp { index, spans, position, slice: ENTRIES, locks: true, covering: None });
        let (mut within, mut found) = (None, false);
        loop {
            self.check_killed()?;
            let mut show = |_: Seen<'_, '_>| {
                found = true;
                Verdict::KeepAndStop
            };
            match self.call_within(info, partition, view, &mut within, &mut op, &mut show).await? {
                _ if found => return Ok(true),
                Done::Scanned(ScanEnd::Finished) => return Ok(false),
                Done::Scanned(ScanEnd::More) => {}
                // Who does not know lookups is asked row by row.
                Done::Unknown => return Ok(true),
                done => unreachable!("a lookup is not {done:?}"),
            }
        }
    }
}

fn span_of((low, high): &Range) -> Span<'_> {
    Span { low, high: (!high.is_empty()).then_some(high.as_slice()) }
}
