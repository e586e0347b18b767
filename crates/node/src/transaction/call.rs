//! A call to a partition, made again until it ends; and waiting for row locks.

use super::{Transaction, View};
use crate::commit::group::yield_once;
use crate::error::NodeError;
use crate::executor::Class;
use crate::locks::waits::Outcome;
use crate::table::TableInfo;
use rauk_kernel::{Access, Partition, Stop, TxnRef};
use rauk_types::{PartitionId, Timestamp, TxnId};
use std::future::poll_fn;
use std::sync::atomic::Ordering;
use std::task::Poll;

/// Units of work ([`Class::weight`]) after which a task gives way to others of its thread: some 200 µs.
const WORK: u32 = 160;

/// How a lock wait ended.
enum Waited {
    Lock(Outcome),
    TimedOut,
    Killed,
}

impl Transaction {
    /// Makes the transaction known: it is about to lock or write.
    pub(crate) fn ensure_txn(&mut self) {
        if self.txn.is_none() {
            let id = self.node.new_txn_id();
            self.txn = Some(TxnRef::new(id));
            self.record = Some(self.node.registry.enter(id, self.node.runtime.now()));
        }
    }

    pub(crate) fn touch(&mut self, partition: u16) {
        if !self.touched.contains(&partition) {
            self.touched.push(partition);
        }
    }

    /// Calls `f` on a partition until it ends: again at once while a commit in the way is being decided, again after the grant when it must wait for
    /// a lock. The transaction must be known (`ensure_txn`, `touch`) if `f` locks or writes.
    pub(crate) async fn call<R: Send>(
        &mut self,
        table: &TableInfo,
        partition: u16,
        class: Class,
        view: View,
        mut f: impl FnMut(&mut Partition, &mut Access<'_>) -> Result<R, Stop> + Send,
    ) -> Result<R, NodeError> {
        self.work += class.weight();
        if self.work >= WORK {
            self.work = 0;
            yield_once().await;
        }
        loop {
            let node = &*self.node;
            let (txn, statement, writes) = (self.txn.as_ref(), self.write_number, self.writes);
            let (result, observed, granted) = node.partitions[partition as usize]
                .with(class, |p| {
                    let mut access = Access {
                        txn,
                        own_before: view.own_before,
                        statement,
                        at: view.at,
                        conflict_after: view.conflict_after,
                        horizon: node.recent_horizon(),
                        observed: Timestamp::ZERO,
                    };
                    let mut result = f(p, &mut access);
                    if let Err(Stop::Wait(blockers)) = &mut result {
                        let txn = txn.expect("only a known transaction can wait");
                        node.waits.enter(txn.id, PartitionId(partition), std::mem::take(blockers), writes);
                    }
                    (result, access.observed, p.take_granted())
                })
                .await;
            node.waits.grant(&granted);
            self.observed = self.observed.max(observed);
            match result {
                Ok(r) => return Ok(r),
                Err(Stop::Committing) => yield_once().await,
                Err(Stop::Wait(_)) => self.wait_for_lock(partition).await?,
                Err(stop) => return Err(explain(stop, table)),
            }
        }
    }

    /// Waits for the lock that this transaction has just been queued for.
    async fn wait_for_lock(&mut self, partition: u16) -> Result<(), NodeError> {
        let node = self.node.clone();
        let id = self.txn.as_ref().expect("only a known transaction can wait").id;
        let entered = LeaveOnDrop(&node, id);
        node.waits.detect(id);
        let mut timeout = None;
        let interrupt = self.options.interrupt.clone();
        let waited = poll_fn(|cx| {
            if let Some(outcome) = node.waits.poll(id, cx.waker()) {
                return Poll::Ready(Waited::Lock(outcome));
            }
            if interrupt.poll(cx.waker()) {
                return Poll::Ready(Waited::Killed);
            }
            let timeout = timeout.get_or_insert_with(|| node.runtime.sleep(self.options.lock_wait_timeout));
            timeout.as_mut().poll(cx).map(|()| Waited::TimedOut)
        })
        .await;
        drop(entered);
        let error = match waited {
            Waited::Lock(Outcome::Granted) => return Ok(()),
            Waited::Lock(Outcome::Deadlock) => NodeError::Deadlock,
            Waited::Killed => NodeError::Interrupted,
            Waited::TimedOut => {
                node.registry.lock_timeouts.fetch_add(1, Ordering::Relaxed);
                NodeError::LockTimeout
            }
        };
        node.on_partition(partition, Class::Resolve, |p| p.cancel_wait(id)).await;
        if error == NodeError::Deadlock {
            self.fail(error.clone());
        }
        Err(error)
    }

    pub(crate) fn check_killed(&self) -> Result<(), NodeError> {
        match self.options.interrupt.is_killed() {
            true => Err(NodeError::Interrupted),
            false => Ok(()),
        }
    }
}

struct LeaveOnDrop<'a>(&'a crate::node::Node, TxnId);

impl Drop for LeaveOnDrop<'_> {
    fn drop(&mut self) {
        self.0.waits.leave(self.1);
    }
}

/// The error that a client gets for a call that cannot go on.
pub fn explain(stop: Stop, table: &TableInfo) -> NodeError {
    // Errors of an index table name the table that the user knows.
    let name = || table.schema.name.split('\u{1}').next().unwrap_or_default().to_string();
    match stop {
        Stop::WouldWait => NodeError::NoWait,
        Stop::Changed => NodeError::Changed { table: name() },
        Stop::SnapshotTooOld => NodeError::SnapshotTooOld { table: name() },
        Stop::MemoryFull { limit } => NodeError::MemoryFull { table: name(), limit },
        Stop::StaleSchema => NodeError::StaleSchema,
        Stop::Committing | Stop::Wait(_) | Stop::Duplicate => unreachable!("handled by the caller"),
    }
}
