//! How transactions end.
//!
//! Commit collects what was written in every partition into one record, sets the status word to *committing*, appends the record, and
//! the log, under its lock, calls back with the time: that store makes the transaction committed everywhere at once. Then the partitions
//! install it and give the locks back, before the record is on disk; the caller's answer waits for the disk, as do all that saw the result.
//!
//! With one partition, collecting, appending and installing is one hold of it. With several, nothing is awaited between the append and
//! the installation: a client that goes away in the middle finds the transaction either whole or not at all.
//!
//! In a cluster all this is the commit protocol's (`crate::member::commit`), for transactions of one partition too: this file hands it what was touched, and tells those who have
//! heard of the transaction and have no part in its commit that it is over.

use super::{Sending, Transaction, Used};
use crate::commit::group::{Target, yield_once};
use crate::error::NodeError;
use crate::executor::Class;
use crate::locks::metadata::LOOK;
use crate::member::commit;
use crate::node::Node;
use rauk_kernel::{Partition, TxnRef, TxnState, Write};
use rauk_log::record::CommitBuilder;
use rauk_log::{Appended, LogError, Lsn, fault};
use rauk_types::row::sparse::read_sparse;
use rauk_types::{RowView, Timestamp, TxnId, key};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

thread_local! {
    /// The record being built and a scratch buffer, kept from commit to commit.
    static BUILDER: RefCell<(CommitBuilder, Vec<u8>)> = RefCell::default();
}

impl Transaction {
    /// Commits; at `fsync` returns when the commit, and all that it read, is on disk.
    pub async fn commit(mut self) -> Result<(), NodeError> {
        match self.append().await {
            Ok(End::Nothing) => self.node.wait_durable(self.observed).await,
            Ok(End::Cluster(_)) => Ok(()),
            Ok(End::Log(_)) if !self.node.is_fsync() => Ok(()),
            // All that it read was appended before it.
            Ok(End::Log(end)) => self.node.group.wait(Target::Position(end)).await,
            // An error is an answer too.
            Err(error) => self.node.wait_durable(self.observed).await.and(Err(error)),
        }
    }

    /// Commits; the caller sees to it that the log is made durable.
    pub(crate) async fn commit_without_waiting(self) -> Result<(), NodeError> {
        self.commit_in_memory().await.1
    }

    /// Commits, and gives the newest commit time that its outcome tells of, its own included: the caller waits until that is durable.
    pub(crate) async fn commit_in_memory(mut self) -> (Timestamp, Result<(), NodeError>) {
        let result = self.append().await;
        let own = match (&result, self.txn.as_ref().map(|txn| txn.status.get())) {
            (Ok(End::Cluster(time)), _) => *time,
            (_, Some(TxnState::Committed(time))) => time,
            _ => Timestamp::ZERO,
        };
        (self.observed.max(own), result.map(|_| ()))
    }

    /// Puts the commit into the log and installs it, or has the cluster do so. Nothing is held afterwards.
    async fn append(&mut self) -> Result<End, NodeError> {
        if self.sending != Sending::Ended {
            self.check_running()?;
        }
        let result = self.append_stored().await;
        self.end_own(result.is_ok());
        self.release();
        result
    }

    /// The part of [`Transaction::append`] that is about stored tables.
    async fn append_stored(&mut self) -> Result<End, NodeError> {
        if self.node.cluster().is_some() {
            let committed = Box::pin(self.commit_in_cluster()).await;
            if committed.is_err() {
                // What the commit protocol has not been given (a last write was refused before) is still here and elsewhere; of the rest nothing is noted any more.
                self.abort_in_cluster();
            }
            return committed;
        }
        let appended = match self.touched.as_slice() {
            [] => Ok(None),
            [partition] => self.commit_single(*partition).await,
            _ => self.commit_several().await,
        };
        let appended = appended.map_err(|error| failed_append(&self.node, error));
        appended.map(|end| end.map_or(End::Nothing, End::Log))
    }

    async fn commit_in_cluster(&mut self) -> Result<End, NodeError> {
        if self.sending == Sending::Ended {
            return match self.txn.as_ref().map(|txn| txn.status.get()) {
                Some(TxnState::Committed(time)) => Ok(End::Cluster(time)),
                state => panic!("a transaction that was committed is {state:?}"),
            };
        }
        let (Some(cluster), Some(txn), Some(record)) =
            (self.node.cluster().cloned(), self.txn.clone(), self.record.clone())
        else {
            return Ok(End::Nothing);
        };
        if self.has_writes() {
            let patience = self.options.lock_wait_timeout.min(commit::WAIT);
            cluster.await_pace(patience).await?;
        }
        let here = record.touches.list().is_empty();
        let last = self.far.as_mut().filter(|_| here).and_then(|far| far.take_last());
        self.send_deferred().await?;
        // From here on it is the commit protocol's, also if nobody waits for its answer any more.
        let mut far = self.far.take().unwrap_or_default();
        far.add_strays(&record.touches.hand_over(), cluster.me());
        let id = txn.id;
        if far.is_empty() {
            far.tell_end(&cluster, id, true);
            return Ok(End::Nothing);
        }
        let mut touched = far.places();
        if self.locks_ranges() && touched.iter().any(|t| t.wrote) {
            // SERIALIZABLE: what it has only read takes part as well. Whoever writes over that gets the lock when this transaction's time is known, and commits at that time or later; else a snapshot could show
            // the later of the two without the earlier.
            touched.iter_mut().for_each(|t| t.wrote = true);
        }
        let seen = self.observed.max(cluster.times.seen());
        let request = commit::Request { txn: txn.clone(), touched: touched.clone(), seen, last: last.clone() };
        let mut result = commit::run(&self.node, request).await;
        if let (Err(NodeError::LockTimeout), Some(last)) = (&result, last) {
            // Its last write must wait for others: as it would have if it had been sent by itself.
            far.put_last(last, self.patience());
            self.far = Some(far);
            self.send_deferred().await?;
            far = self.far.take().unwrap_or_default();
            result = commit::run(&self.node, commit::Request { txn, touched, seen, last: None }).await;
        }
        if !matches!(result, Err(NodeError::UnknownOutcome(_))) {
            far.tell_end(&cluster, id, result.is_err());
        }
        if let Ok(Some(time)) = result {
            cluster.times.saw(time);
            cluster.await_cover(time, commit::WAIT).await?;
        }
        Ok(result?.map_or(End::Nothing, End::Cluster))
    }

    pub fn rollback(self) {
        drop(self);
    }

    async fn commit_single(&mut self, partition: u16) -> Result<Option<Lsn>, LogError> {
        let txn = self.txn.as_ref().expect("it touched a partition");
        let (node, tables) = (&*self.node, &self.tables[..]);
        let appended = loop {
            let commit = |p: &mut Partition| {
                if p.has_ends() && !p.go_on_with(txn.id) {
                    return None;
                }
                Some(commit_in(node, p, txn, tables))
            };
            match node.on_partition(partition, Class::Prepare, commit).await {
                Some(appended) => break appended,
                None => yield_once().await,
            }
        };
        // Whatever came of it, nothing is left in the partition.
        self.touched.clear();
        appended
    }

    async fn commit_several(&mut self) -> Result<Option<Lsn>, LogError> {
        let txn = self.txn.as_ref().expect("it touched a partition").clone();
        let node = &self.node;
        let id = txn.id;
        let mut builder = CommitBuilder::default();
        let mut scratch = Vec::new();
        for &partition in &self.touched {
            let (builder, scratch, tables) = (&mut builder, &mut scratch, &self.tables[..]);
            let mut collect = |p: &mut Partition| {
                let is_whole = !p.has_ends() || p.go_on_with(id);
                if is_whole {
                    collect(p, id, tables, builder, scratch);
                }
                is_whole
            };
            while !node.on_partition(partition, Class::Prepare, &mut collect).await {
                yield_once().await;
            }
        }
        // From here to the end nothing is awaited.
        let touched = std::mem::take(&mut self.touched);
        if builder.is_empty() {
            txn.status.set(TxnState::Aborted);
            abort_in(node, &touched, txn.id);
            return Ok(None);
        }
        let inflight = node.inflight.enter(|| node.log.end_lsn());
        match append(node, &txn, &builder) {
            Ok(appended) => {
                let left = Arc::new(AtomicUsize::new(touched.len()));
                let horizon = node.fresh_horizon();
                for &partition in &touched {
                    let (left, node) = (left.clone(), node.clone());
                    self.node.detach(partition, move |p| {
                        p.commit(txn.id, appended.time, horizon);
                        if left.fetch_sub(1, Ordering::AcqRel) == 1 {
                            node.inflight.leave(inflight);
                        }
                    });
                }
                Ok(Some(appended.end))
            }
            Err(error) => {
                node.inflight.leave(inflight);
                abort_in(node, &touched, txn.id);
                Err(error)
            }
        }
    }

    /// Rolls the whole transaction back; every further call gets `error`.
    pub(super) fn fail(&mut self, error: NodeError) {
        self.abort();
        self.failed = Some(error);
    }

    fn abort(&mut self) {
        self.end_own(false);
        let touched = std::mem::take(&mut self.touched);
        if let Some(txn) = &self.txn
            && !touched.is_empty()
        {
            // A job of `commit_single` may have run to its end although its future was dropped.
            if matches!(txn.status.get(), TxnState::Committed(_)) {
                return;
            }
            txn.status.set(TxnState::Aborted);
            abort_in(&self.node, &touched, txn.id);
            self.node.registry.rollbacks.fetch_add(1, Ordering::Relaxed);
        }
        self.abort_in_cluster();
    }

    fn abort_in_cluster(&mut self) {
        let (Some(cluster), Some(txn), Some(record)) = (self.node.cluster(), &self.txn, &self.record) else { return };
        // Only what is noted: where a view has changed it is gone, and the partition is not for this node to change.
        let here = record.touches.end();
        let far = self.far.take().unwrap_or_default();
        if !here.is_empty() || !far.is_empty() {
            self.node.registry.rollbacks.fetch_add(1, Ordering::Relaxed);
        }
        abort_in(&self.node, &here, txn.id);
        far.tell_end(cluster, txn.id, true);
    }

    /// A transaction of one statement that has read all its rows, and only sends them from here on, gives back its
    /// snapshot and its tables' metadata locks: a client that does not read its result keeps no DDL waiting. One that
    /// has locked or written keeps them until its end.
    pub fn end_reading(&mut self) {
        if self.options.autocommit && self.txn.is_none() {
            self.release_snapshot();
            self.release_tables();
        }
    }

    /// For a statement that waits for its client: resolves when a DDL waits for a table that this transaction would
    /// give back once it has read it ([`Transaction::end_reading`]), or never. Error 1317 when the statement is killed.
    pub async fn is_wanted_back(&self) -> Result<(), NodeError> {
        let only_reads = self.options.autocommit && self.txn.is_none();
        let wanted = async {
            loop {
                self.node.runtime.sleep(LOOK).await;
                if only_reads && self.tables.iter().any(|t| t.shared && t.info.shared.lock.is_awaited()) {
                    return Ok(());
                }
            }
        };
        self.options.interrupt.unless_killed(wanted).await
    }

    /// Waits for `time`, or until the statement is killed: 1317.
    pub async fn pause(&self, time: Duration) -> Result<(), NodeError> {
        let paused = async {
            self.node.runtime.sleep(time).await;
            Ok(())
        };
        self.options.interrupt.unless_killed(paused).await
    }

    fn release_tables(&mut self) {
        for table in self.tables.drain(..) {
            if table.shared {
                if table.writes {
                    table.info.shared.lock.end_write();
                }
                table.info.shared.lock.unshare();
            }
        }
    }

    /// Gives back what is not in partitions.
    fn release(&mut self) {
        self.release_snapshot();
        if let Some(cluster) = self.node.cluster() {
            cluster.times.saw(self.observed);
        }
        self.release_tables();
        if self.record.take().is_some()
            && let Some(txn) = &self.txn
        {
            self.node.registry.leave(txn.id);
        }
    }
}

/// What a commit has come to.
enum End {
    /// There was nothing to commit.
    Nothing,
    /// Where the record ends.
    Log(Lsn),
    Cluster(Timestamp),
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.abort();
        self.release();
    }
}

/// In the only partition where it has something: collects, appends, installs.
fn commit_in(node: &Node, p: &mut Partition, txn: &TxnRef, tables: &[Used]) -> Result<Option<Lsn>, LogError> {
    BUILDER.with_borrow_mut(|(builder, scratch)| {
        builder.clear();
        collect(p, txn.id, tables, builder, scratch);
        if builder.is_empty() {
            txn.status.set(TxnState::Aborted);
            p.abort(txn.id);
            return Ok(None);
        }
        match append(node, txn, builder) {
            Ok(appended) => {
                p.commit(txn.id, appended.time, node.fresh_horizon());
                Ok(Some(appended.end))
            }
            Err(error) => {
                p.abort(txn.id);
                Err(error)
            }
        }
    })
}

fn abort_in(node: &Arc<Node>, partitions: &[u16], id: TxnId) {
    for &partition in partitions {
        node.detach(partition, move |p| p.abort(id));
    }
}

/// Appends the record; the transaction is committed, or aborted, when this returns.
fn append(node: &Node, txn: &TxnRef, builder: &CommitBuilder) -> Result<Appended, LogError> {
    txn.status.set(TxnState::Committing);
    let appended = append_record(node, 1, builder, |time| txn.status.set(TxnState::Committed(time)));
    if appended.is_err() {
        txn.status.set(TxnState::Aborted);
    }
    appended
}

/// Appends the record of so many commits; `decided` is called with their time before anybody can draw a snapshot that has them.
pub(crate) fn append_record(
    node: &Node,
    commits: u64,
    builder: &CommitBuilder,
    decided: impl FnOnce(Timestamp),
) -> Result<Appended, LogError> {
    fault::point("node.commit.before_append").map_err(|e| LogError::DiskFull(e.to_string()))?;
    let (bytes, limit) = (builder.payload().len(), node.commit_limit());
    if bytes > limit {
        return Err(LogError::RecordTooLarge { bytes, limit });
    }
    let appended = node.log.append_commit(builder.payload(), decided)?;
    // Committed: only a crash can still happen here.
    let _ = fault::point("node.commit.after_append");
    node.registry.commits.fetch_add(commits, Ordering::Relaxed);
    node.registry.commit_bytes.fetch_add(builder.payload().len() as u64, Ordering::Relaxed);
    Ok(appended)
}

/// Adds what the transaction wrote in a partition.
fn collect(partition: &Partition, id: TxnId, tables: &[Used], builder: &mut CommitBuilder, scratch: &mut Vec<u8>) {
    partition.collect_writes(id, &mut |table, write| {
        let info = tables.iter().find_map(|t| t.info.find(table)).expect("a table is used under its metadata lock");
        match write {
            Write::Put { layout, row } => {
                let view = RowView::new(&info.schema, layout, row);
                builder.put(info.route.bucket_of_row(&view, scratch), table, layout, row);
            }
            Write::Sparse { layout, row } => {
                let key = read_sparse(row).expect("the partition has just written it").key;
                builder.put_sparse(info.route.bucket_of_key(key, key::hash(key)), table, layout, row);
            }
            Write::Delete { key } => builder.delete(info.route.bucket_of_key(key, key::hash(key)), table, key),
        }
    });
}

/// A full disk, or a record that is too large, fails the transaction only; anything else means that the log is lost.
pub(crate) fn failed_append(node: &Node, error: LogError) -> NodeError {
    if !matches!(error, LogError::DiskFull(_) | LogError::RecordTooLarge { .. }) {
        node.fatal(&error.to_string());
    }
    error.into()
}
