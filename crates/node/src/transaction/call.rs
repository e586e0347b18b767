//! A call to a partition: on a node that is alone it is done here; in a cluster here or elsewhere (`super::far`).

use super::{Transaction, View};
use crate::commit::group::yield_once;
use crate::error::NodeError;
use crate::ops::drive::{Caller, Gate, Halt, Within, drive};
use crate::ops::operation::{Done, Op, Seen, run};
use crate::table::TableInfo;
use rauk_kernel::{Stop, TxnRef, Verdict};
use rauk_types::{TableId, Timestamp};

/// Units of work (`Class::weight`) after which a task gives way to others of its thread: some 200 µs.
const WORK: u32 = 160;

impl Transaction {
    /// Makes the transaction known: it is about to lock or write.
    pub(crate) fn ensure_txn(&mut self) {
        if self.txn.is_none() {
            let id = self.node.new_txn_id();
            self.txn = Some(TxnRef::new(id));
            self.record = Some(self.node.registry.enter(id, self.node.runtime.now(), &self.options));
        }
    }

    /// Notes that a partition is about to be locked or written in. In a cluster that is noted where it is done.
    pub(crate) fn touch(&mut self, table: &TableInfo, partition: u16) {
        if table.own.is_none() && !self.touched.contains(&partition) && self.node.cluster().is_none() {
            self.touched.push(partition);
        }
    }

    /// Does `op` on a partition: again at once while a commit in the way is being decided, again after the grant when it must wait for a lock. The transaction must be known
    /// (`ensure_txn`, `touch`) if it locks or writes. `visit` is shown what is read.
    pub(crate) async fn call(
        &mut self,
        table: &TableInfo,
        partition: u16,
        view: View,
        op: &mut Op<'_>,
        visit: &mut (impl FnMut(Seen<'_, '_>) -> Verdict + Send),
    ) -> Result<Done, NodeError> {
        self.call_within(table, partition, view, &mut None, op, visit).await
    }

    /// The same for a scan, which goes on only in what it began in, a view of the partition or a replica's contents: `within`, noted by its first call.
    pub(crate) async fn call_within(
        &mut self,
        table: &TableInfo,
        partition: u16,
        view: View,
        within: &mut Option<Within>,
        op: &mut Op<'_>,
        visit: &mut (impl FnMut(Seen<'_, '_>) -> Verdict + Send),
    ) -> Result<Done, NodeError> {
        self.worked(op.class().weight()).await;
        if let Some(rows) = &table.own {
            return self.call_own(table, rows, view, op, visit);
        }
        if self.node.cluster().is_some() {
            // In a box, so that the calls of a node that is alone are not the larger for it.
            let (done, found) = Box::pin(self.call_in_cluster(table, partition, view, *within, op, visit)).await?;
            *within = Some(found);
            return Ok(done);
        }
        let node = self.node.clone();
        let mut observed = Timestamp::ZERO;
        let id = table.schema.id;
        let caller = Caller { names: op.is_name(), shared: op.locks_shared(), ..self.caller(id, view, None) };
        let driven =
            drive(&node, partition, op.class(), &caller, &mut observed, |p, access| run(op, id, p, access, visit))
                .await;
        self.observed = self.observed.max(observed);
        driven.map(|(done, _)| done).map_err(|halt| self.halted(halt, table))
    }

    /// Counts work, and gives way to others of the thread now and then.
    #[inline]
    pub(crate) async fn worked(&mut self, weight: u32) {
        self.work += weight;
        if self.work >= WORK {
            self.work = 0;
            yield_once().await;
        }
    }

    pub(super) fn caller<'a>(&'a self, table: TableId, view: View, gate: Option<Gate<'a>>) -> Caller<'a> {
        Caller {
            txn: self.txn.as_ref(),
            table,
            own_before: view.own_before,
            statement: self.write_number,
            at: view.at,
            conflict_after: view.conflict_after,
            writes: self.weight(),
            patience: self.options.lock_wait_timeout,
            interrupt: &self.options.interrupt,
            shared: false,
            names: false,
            gate,
        }
    }

    /// The error of a call that cannot go on; a deadlock's victim is rolled back.
    pub(super) fn halted(&mut self, halt: Halt, table: &TableInfo) -> NodeError {
        match halt {
            Halt::Stop(stop) => explain(stop, table),
            Halt::Wait(error) => {
                if error == NodeError::Deadlock {
                    self.fail(error.clone());
                }
                error
            }
            Halt::NotHere | Halt::Lost | Halt::Unsettled => unreachable!("only behind a gate"),
        }
    }

    pub(crate) fn check_killed(&self) -> Result<(), NodeError> {
        match self.options.interrupt.is_killed() {
            true => Err(NodeError::Interrupted),
            false => Ok(()),
        }
    }
}

/// Errors of an index table name the table that the user knows.
pub(crate) fn name_of(table: &TableInfo) -> String {
    table.schema.name.split('\u{1}').next().unwrap_or_default().to_string()
}

/// The error that a client gets for a call that cannot go on.
pub fn explain(stop: Stop, table: &TableInfo) -> NodeError {
    match stop {
        Stop::WouldWait => NodeError::NoWait,
        Stop::Changed => NodeError::Changed { table: name_of(table) },
        Stop::SnapshotTooOld => NodeError::SnapshotTooOld { table: name_of(table) },
        Stop::MemoryFull { limit } => NodeError::MemoryFull { table: name_of(table), limit },
        Stop::ReadOnly => NodeError::ReadOnly { table: name_of(table) },
        Stop::StaleSchema => NodeError::StaleSchema,
        Stop::Committing | Stop::Prepared(_) | Stop::Wait(_) | Stop::Duplicate | Stop::NoRow => {
            unreachable!("handled by the caller")
        }
    }
}
