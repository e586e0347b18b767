//! Plain reads of many ranges of an index in one call, for joins that gather rows before a table that a secondary index
//! reaches.
//!
//! Rows with a key of a secondary index may be in any partition, so each partition is asked for all ranges together, and
//! not each range of all partitions: with one operation ([`Op::LookUp`]) for up to [`MOST_SPANS`] ranges, which is one
//! message where another node leads the partition. The same snapshot is read as by a scan.
//!
//! Left out: conditions do not go along, so another node sends rows that the caller drops; and its rows are whole.

use super::{Transaction, View};
use crate::bulk::Keys;
use crate::database::TableHandle;
use crate::error::NodeError;
use crate::ops::operation::{Done, LookUp, Op, Seen};
use crate::ops::serve::MOST_SPANS;
use crate::table::TableInfo;
use rauk_kernel::{Access, LookupPosition, ScanEnd, Span, Verdict};
use rauk_types::{Covering, IndexId, RowView, Timestamp};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// Entries that are visited in one hold: as of a scan.
pub(super) const ENTRIES: u32 = 256;

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
        self.node.are_small(table.tables())
    }

    /// Reads the rows in the ranges of these numbers. Those of one range come in the order in which a scan of it that
    /// keeps no order over partitions shows them; `visit` runs while a partition is held. `false`: a node of an older
    /// build leads a partition, and whatever has been shown does not count.
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
        let view = self.read_view(table.info(), false).await?;
        for info in table.tables() {
            match self.look_up_in(info, view, index, covering, spans, numbers.clone(), visit).await? {
                Some(true) => {}
                // The caller has seen enough.
                Some(false) => return Ok(true),
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// In one table that has rows. `Some(false)`: the visitor has stopped; `None`: as `false` of [`Transaction::look_up`].
    #[allow(clippy::too_many_arguments)] // the parts of one call
    async fn look_up_in(
        &mut self,
        info: &Arc<TableInfo>,
        view: View,
        index: IndexId,
        covering: Option<&Covering>,
        spans: &Spans,
        numbers: Range<usize>,
        visit: &mut VisitSpans<'_>,
    ) -> Result<Option<bool>, NodeError> {
        let (mut first, mut stopped) = (numbers.start, false);
        while first < numbers.end {
            let last = numbers.end.min(first + MOST_SPANS);
            let list: Vec<Span<'_>> = (first..last).map(|number| spans.get(number)).collect();
            for partition in self.node.partitions_of(info) {
                let (spans, position) = (Cow::Borrowed(list.as_slice()), LookupPosition::default());
                let mut op = Op::LookUp(LookUp { index, spans, position, slice: ENTRIES, locks: false, covering });
                let mut within = None;
                loop {
                    self.check_killed()?;
                    let mut shown = 0;
                    let mut show = |seen: Seen<'_, '_>| {
                        let Seen::Found(number, row) = seen else { unreachable!("a lookup finds rows of ranges") };
                        shown += 1;
                        stopped = !visit(first + number, row);
                        if stopped { Verdict::KeepAndStop } else { Verdict::Keep }
                    };
                    let done = self.call_within(info, partition, view, &mut within, &mut op, &mut show).await;
                    self.count_reads(info, Some(index), shown);
                    let done = done?;
                    if stopped {
                        return Ok(Some(false));
                    }
                    match done {
                        Done::Scanned(ScanEnd::Finished) => break,
                        Done::Scanned(ScanEnd::More) => {}
                        Done::Unknown => return Ok(None),
                        done => unreachable!("a lookup is not {done:?}"),
                    }
                }
            }
            first = last;
        }
        Ok(Some(true))
    }
}
