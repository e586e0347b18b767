//! Calls to the rows of temporary tables ([`crate::table::own`]): never elsewhere, never waiting.
//!
//! Rows of such a table are committed when the rest of the transaction is, and rolled back with it. When the outcome of
//! the rest is not known they are rolled back.

use super::{Transaction, View};
use crate::error::NodeError;
use crate::ops::operation::{Done, Key, Op, Seen, run};
use crate::table::TableInfo;
use crate::table::own::{HORIZON, OwnRows};
use rauk_kernel::{Access, ReadAt, Verdict};
use rauk_types::Timestamp;

impl Transaction {
    /// [`Transaction::call`] for a temporary table.
    pub(super) fn call_own(
        &self,
        table: &TableInfo,
        rows: &OwnRows,
        view: View,
        op: &mut Op<'_>,
        visit: &mut (impl FnMut(Seen<'_, '_>) -> Verdict + ?Sized),
    ) -> Result<Done, NodeError> {
        self.check_killed()?;
        let mut access = Access {
            txn: self.txn.as_ref(),
            own_before: view.own_before,
            statement: self.write_number,
            at: ReadAt::Newest,
            conflict_after: None,
            horizon: HORIZON,
            observed: Timestamp::ZERO,
        };
        let id = table.schema.id;
        rows.with(|p| run(op, id, p, &mut access, visit)).map_err(|stop| rows.explain(stop, table))
    }

    /// Plain reads of many keys of a temporary table: those that `done` does not mark, until `visit` wants no more.
    pub(super) fn read_many_own<'k>(
        &self,
        table: &TableInfo,
        rows: &OwnRows,
        keys: impl Iterator<Item = (usize, &'k [u8])>,
        view: View,
        done: &mut [bool],
        visit: &mut super::many::VisitMany<'_>,
    ) -> Result<(), NodeError> {
        let mut wanted = true;
        for (number, key) in keys {
            if done[number] || !wanted {
                continue;
            }
            self.call_own(table, rows, view, &mut Op::Read { key: Key::of(key) }, &mut |seen| {
                wanted = visit(number, seen.row());
                Verdict::Keep
            })?;
            done[number] = true;
        }
        Ok(())
    }

    pub(super) fn end_own(&mut self, committed: bool) {
        let Some(txn) = &self.txn else { return };
        for rows in self.own_rows() {
            match committed {
                true => rows.commit(txn.id),
                false => rows.abort(txn.id),
            }
        }
    }
}
