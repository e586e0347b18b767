//! What the streams of a log have come to, taken in by the rows of one partition.
//!
//! A partition takes its share of each entry ([`Share`]). Rows of tables that the catalog does not have any more are
//! passed over, and the tables are noted.

use super::super::writes;
use super::replay::Undecided;
use crate::member::group_rows::Share;
use bytes::Bytes;
use rauk_kernel::Partition;
use rauk_types::{Layout, TableId, Timestamp, TxnId};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// One step, in the order of the stream.
pub(super) enum RowWork {
    /// All that was here is void, what the checkpoint had too.
    Clear,
    /// Rows of a copy: each goes in where nothing as new is.
    Install { rows: Bytes },
    /// What a transaction has committed.
    Restore { txn: TxnId, time: Timestamp, writes: Bytes },
}

/// The steps that wait for one partition.
pub(super) struct RowReplay {
    share: Share,
    work: Vec<RowWork>,
    /// Tables that the catalog does not have.
    pub passed_over: BTreeSet<TableId>,
}

impl RowReplay {
    pub fn new(layout: Layout, partition: u16) -> RowReplay {
        RowReplay { share: Share { layout, partition }, work: Vec::new(), passed_over: BTreeSet::new() }
    }

    pub fn push(&mut self, work: RowWork) {
        self.work.push(work);
    }

    pub fn take_in(&mut self, partition: &mut Partition, known: &FxHashSet<TableId>) -> Result<(), String> {
        let RowReplay { share, work, passed_over } = self;
        for work in work.drain(..) {
            match work {
                RowWork::Clear => partition.clear(),
                RowWork::Install { rows } => {
                    let taken = partition.restore_slice(&rows, &mut |table| pass(known, passed_over, table));
                    taken.map_err(|error| error.to_string())?;
                }
                RowWork::Restore { txn, time, writes } => {
                    let pass = &mut |table| pass(known, passed_over, table);
                    writes::restore(partition, &writes, time, *share, pass)
                        .map_err(|error| format!("transaction {}: {error}", txn.0))?;
                }
            }
        }
        Ok(())
    }

    /// All is taken in: completes the rows and puts beside them what is not decided. `is_empty`: nothing of them
    /// counts.
    pub fn finish(
        &mut self,
        partition: &mut Partition,
        known: &FxHashSet<TableId>,
        is_empty: bool,
        pending: &[Undecided],
    ) -> Result<(), String> {
        if is_empty {
            partition.clear();
            return Ok(());
        }
        partition.finish_restore().map_err(|stop| format!("{stop:?}"))?;
        for Undecided { txn, number, writes, parts, .. } in pending {
            if !parts.contains(&self.share.partition) {
                continue;
            }
            let passed_over = &mut self.passed_over;
            writes::adopt(partition, txn, *number, writes, self.share, &mut |table| pass(known, passed_over, table))
                .map_err(|error| format!("transaction {}, which is prepared: {error}", txn.id.0))?;
        }
        Ok(())
    }
}

/// Whether a table is not in the catalog.
fn pass(known: &FxHashSet<TableId>, passed_over: &mut BTreeSet<TableId>, table: TableId) -> bool {
    let unknown = !known.contains(&table);
    if unknown {
        passed_over.insert(table);
    }
    unknown
}
