//! Plain reads of many ranges of an index in one call, for joins that gather rows before a table that a secondary index
//! reaches.
//!
//! Rows with a key of a secondary index may be in any partition, so each partition is asked for all ranges, up to
//! [`rauk_kernel::MANY`] of them a hold, and not each range of all partitions. The same snapshot is read as by a scan.
//!
//! In a cluster that is done where this process leads all partitions of the table, and the transaction has nothing in
//! any of them; else the caller scans for each row by itself ([`crate::ScanCursor`]), which finds out where each
//! partition is and sends conditions along.

use super::call::explain;
use super::{Transaction, View};
use crate::bulk::Keys;
use crate::database::TableHandle;
use crate::error::NodeError;
use crate::executor::Class;
use crate::ops::drive::drive;
use crate::scan::SMALL_TABLE;
use rauk_kernel::{Access, Lookup, LookupPosition, MANY, Partition, ScanEnd, ScanRow, Span, Stop, Verdict};
use rauk_types::{Covering, IndexId, RowView, Timestamp};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Entries that are visited in one hold: as of a scan.
const ENTRIES: usize = 256;

/// Is shown the number of a range and a row in it. `false`: no more are wanted.
pub type VisitSpans<'v> = dyn FnMut(usize, RowView<'_>) -> bool + Send + 'v;

/// Ranges of keys: low end included, high end excluded.
#[derive(Clone, Debug, Default)]
pub struct Spans {
    /// Low and high end of each; an empty high end is none.
    ends: Keys,
}

impl Spans {
    pub fn clear(&mut self) {
        self.ends.clear();
    }

    pub fn push(&mut self, low: &[u8], high: Option<&[u8]>) {
        self.ends.push(low);
        self.ends.push(high.unwrap_or_default());
    }

    pub fn len(&self) -> usize {
        self.ends.len() / 2
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    fn get(&self, number: usize) -> Span<'_> {
        let high = self.ends.get(2 * number + 1);
        Span { low: self.ends.get(2 * number), high: (!high.is_empty()).then_some(high) }
    }
}

/// How a hold ended, and whether the visitor ended it.
type Found = (ScanEnd, bool);

impl Transaction {
    /// What a partition is told of the caller.
    pub(crate) fn access(&self, view: View) -> Access<'_> {
        Access {
            txn: self.txn.as_ref(),
            own_before: view.own_before,
            statement: self.write_number,
            at: view.at,
            conflict_after: view.conflict_after,
            horizon: self.node.recent_horizon(),
            observed: Timestamp::ZERO,
        }
    }

    /// Whether the table has so few rows that bringing them into an order costs nothing that matters.
    pub fn is_small(&self, table: &TableHandle) -> bool {
        self.node.rows_of(table.info()) <= SMALL_TABLE
    }

    /// Reads the rows in the ranges of these numbers. Those of one range come in the order in which a scan of it that
    /// keeps no order over partitions shows them; `visit` runs while a partition is held. `false`: not here, and
    /// whatever has been shown does not count.
    pub async fn look_up(
        &mut self,
        table: &TableHandle,
        index: IndexId,
        covering: Option<&Covering>,
        spans: &Spans,
        numbers: Range<usize>,
        visit: &mut VisitSpans<'_>,
    ) -> Result<bool, NodeError> {
        assert!(self.effective_lock(None).is_none(), "locking reads keep their order");
        self.check_running()?;
        let info = table.info();
        // The rows of a temporary table are looked up by the other way.
        if self.far.is_some() || info.own.is_some() {
            return Ok(false);
        }
        let view = self.read_view(info, false).await?;
        let rows = AtomicU64::new(0);
        for partition in self.node.partitions_of(info) {
            let mut first = numbers.start;
            while first < numbers.end {
                self.check_killed()?;
                let last = numbers.end.min(first + MANY);
                let list: SmallVec<[Span<'_>; MANY]> = (first..last).map(|number| spans.get(number)).collect();
                let lookup = Lookup { table: info.schema.id, index, spans: &list, covering };
                let mut position = LookupPosition::default();
                let mut slice = |p: &mut Partition, access: &mut Access<'_>| {
                    let (mut stopped, mut shown) = (false, 0);
                    let end = p.look_up(&lookup, &mut position, ENTRIES, access, &mut |span, row: &ScanRow<'_>| {
                        shown += 1;
                        stopped = !visit(first + span, row.row);
                        if stopped { Verdict::KeepAndStop } else { Verdict::Keep }
                    });
                    rows.fetch_add(shown, Relaxed);
                    Ok((end?, stopped))
                };
                let mut within = None;
                loop {
                    let (end, stopped) = match self.node.cluster().is_some() {
                        true => match self.look_up_led(partition, &mut within, view, &mut slice) {
                            Some(found) => found.map_err(|stop| explain(stop, info))?,
                            None => return Ok(false),
                        },
                        false => {
                            let node = self.node.clone();
                            let caller = self.caller(info.schema.id, view, None);
                            let mut observed = Timestamp::ZERO;
                            let driven = drive(&node, partition, Class::Scan, &caller, &mut observed, &mut slice).await;
                            self.observed = self.observed.max(observed);
                            driven.map_err(|halt| self.halted(halt, info))?.0
                        }
                    };
                    self.count_reads(info, Some(index), rows.swap(0, Relaxed));
                    self.worked(Class::Scan.weight()).await;
                    if stopped {
                        return Ok(true);
                    }
                    if end == ScanEnd::Finished {
                        break;
                    }
                }
                first = last;
            }
        }
        Ok(true)
    }

    /// In a cluster: one hold of a partition that is idle and led here, in the view in which it began. `None`: it
    /// cannot be looked up now.
    fn look_up_led(
        &mut self,
        partition: u16,
        within: &mut Option<rauk_types::View>,
        view: View,
        slice: &mut (impl FnMut(&mut Partition, &mut Access<'_>) -> Result<Found, Stop> + Send),
    ) -> Option<Result<Found, Stop>> {
        let node = self.node.clone();
        let cluster = node.cluster()?;
        let mut access = self.access(view);
        let look = |p: &mut Partition| {
            let led = cluster.may_serve(partition)?;
            (*within.get_or_insert(led) == led).then(|| (led, slice(p, &mut access)))
        };
        let (led, found) = node.partitions[usize::from(partition)].try_with(look).ok().flatten()?;
        let observed = access.observed;
        self.observed = self.observed.max(observed);
        match found {
            Err(Stop::Committing | Stop::Prepared(_)) => None,
            // What gave the right to look gives it still.
            found => cluster.may_answer(partition, led).then_some(found),
        }
    }
}
