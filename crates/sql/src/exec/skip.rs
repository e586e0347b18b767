//! Loose scans and skip scans: reads that jump from one value of an index's leading parts to the next.
//!
//! The first row behind the last value shows the next one, over all partitions in index order; what is read of that value is
//! one row, the rows at its ends, or the ranges that conditions on the next parts leave. All of these reads see one snapshot,
//! or at SERIALIZABLE rows and ranges that are locked.

use super::keys::{KeyRange, condition_ranges, successor};
use super::row::{Joined, Part};
use super::scan::Opened;
use super::select::Run;
use crate::expr::Context;
use crate::physical::model::{Access, Level, SkipAccess, Source, Take};
use rauk_node::{ScanBatch, ScanCursor, ScanSpec, TableHandle};
use rauk_types::{MysqlError, RowView};
use smallvec::smallvec;
use std::ops::Bound;

/// What a level jumps over in this execution.
pub(crate) struct Skip {
    /// Where the values of the leading parts lie.
    values: Vec<KeyRange>,
    /// Behind each value: the keys that conditions leave; `None`: all.
    rest: Option<Vec<KeyRange>>,
    /// Behind each value: the keys whose ends are read.
    ends: Vec<KeyRange>,
    /// A scan, but for its bounds.
    scan: ScanSpec,
}

/// Finds out what to read; `scan` has neither index nor bounds.
pub(super) fn open(
    access: &SkipAccess,
    source: &Source,
    scan: ScanSpec,
    row: &Joined<'_>,
    context: &mut Context,
) -> Result<Opened, MysqlError> {
    let parts = &access.access.key_def.parts;
    let values = condition_ranges(parts, &access.access.condition, row, context)?;
    let behind = &parts[access.prefix.parts.len()..];
    let rest = match &access.rest {
        Some(condition) => Some(condition_ranges(behind, condition, row, context)?),
        None => None,
    };
    if values.is_empty() || rest.as_ref().is_some_and(Vec::is_empty) {
        return Ok(Opened::Nothing);
    }
    let ends = match &access.take {
        Take::Ends { condition, .. } => condition_ranges(behind, condition, row, context)?,
        Take::One | Take::All => vec![],
    };
    let scan = ScanSpec { index: Some(source.schema().indexes[access.access.index].id), ..scan };
    Ok(Opened::Skip(Box::new(Skip { values, rest, ends, scan })))
}

impl Skip {
    /// A scan of a range of the keys that begin with `prefix`.
    fn scan(&self, prefix: &[u8], range: &KeyRange) -> ScanSpec {
        let low = [prefix, &range.low].concat();
        let high = match &range.high {
            Some(high) => Some([prefix, high].concat()),
            None => successor(prefix).filter(|_| !prefix.is_empty()),
        };
        ScanSpec {
            low: if low.is_empty() { Bound::Unbounded } else { Bound::Included(low) },
            high: high.map_or(Bound::Unbounded, Bound::Excluded),
            ..self.scan.clone()
        }
    }

    /// The same for the first row in the order of the index, or the last one.
    fn one(&self, prefix: &[u8], range: &KeyRange, last: bool) -> ScanSpec {
        ScanSpec { ordered: true, reverse: last, limit_hint: Some(1), ..self.scan(prefix, range) }
    }
}

impl Run<'_> {
    /// Reads what a level jumps to.
    pub(super) async fn skip(
        &mut self,
        at: usize,
        level: &Level,
        table: &TableHandle,
        skip: &Skip,
        row: &Joined<'_>,
    ) -> Result<(), MysqlError> {
        let Access::Skip(access) = &level.access else { unreachable!("it was opened for its access") };
        let mut batch = ScanBatch::default();
        if access.prefix.parts.is_empty() {
            return self.value(at, level, access, table, skip, &[], &mut batch, row).await;
        }
        for range in &skip.values {
            let mut rest = range.clone();
            loop {
                self.first(table, skip.one(&[], &rest, false), &mut batch).await?;
                if batch.is_empty() {
                    break;
                }
                let mut prefix = Vec::new();
                access.prefix.encode_row(&batch.row(table, 0), &mut prefix);
                self.value(at, level, access, table, skip, &prefix, &mut batch, row).await?;
                if self.is_done() {
                    return Ok(());
                }
                self.turn(1).await?;
                match successor(&prefix) {
                    Some(next) if rest.high.as_ref().is_none_or(|high| next < *high) => rest.low = next,
                    _ => break,
                }
            }
        }
        Ok(())
    }

    /// Reads one value of the leading parts; `batch` has its first row, if the value is not the empty one.
    #[expect(clippy::too_many_arguments, reason = "a level, what is read of it, and room for a row")]
    async fn value(
        &mut self,
        at: usize,
        level: &Level,
        access: &SkipAccess,
        table: &TableHandle,
        skip: &Skip,
        prefix: &[u8],
        batch: &mut ScanBatch,
        row: &Joined<'_>,
    ) -> Result<(), MysqlError> {
        let whole = [KeyRange { low: vec![], high: None }];
        let ranges = skip.rest.as_deref().unwrap_or(&whole);
        if let Take::All = access.take {
            let scans = ranges.iter().map(|range| skip.scan(prefix, range)).collect();
            return self.scans(at, level, table, scans, row).await;
        }
        // One row says that the value is there.
        let known = skip.rest.is_none() && !prefix.is_empty();
        let mut found = known;
        for range in ranges.iter().take_while(|_| !known) {
            self.first(table, skip.one(prefix, range, false), batch).await?;
            found = !batch.is_empty();
            if found {
                break;
            }
        }
        if !found {
            return Ok(());
        }
        self.hand_on(at, level, batch.row(table, 0), row).await?;
        if let Take::Ends { column, first, last, .. } = &access.take {
            let mut ends: smallvec::SmallVec<[bool; 2]> = smallvec![];
            if *first && batch.row(table, 0).get(*column).is_null() {
                ends.push(false);
            }
            if *last {
                ends.push(true);
            }
            for last in ends {
                for range in &skip.ends {
                    self.first(table, skip.one(prefix, range, last), batch).await?;
                    if !batch.is_empty() {
                        self.hand_on(at, level, batch.row(table, 0), row).await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads the first row of a scan.
    async fn first(&mut self, table: &TableHandle, scan: ScanSpec, batch: &mut ScanBatch) -> Result<(), MysqlError> {
        Ok(ScanCursor::new(table, scan).next_batch(self.txn, 1, &mut |_| true, batch).await?)
    }

    /// Goes on with a row that keys say all of.
    async fn hand_on(
        &mut self,
        at: usize,
        level: &Level,
        view: RowView<'_>,
        row: &Joined<'_>,
    ) -> Result<(), MysqlError> {
        assert!(level.filters.is_empty(), "keys say all of the conditions");
        let joined = row.with(level.table, Part::Stored(view));
        self.examined(at, 1);
        self.advance(at + 1, &joined).await?;
        self.back(at);
        Ok(())
    }
}
