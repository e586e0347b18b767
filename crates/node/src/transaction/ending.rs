//! The only call of a transaction, sent with the question to commit it.
//!
//! A statement in autocommit that writes one row which another process leads needs one call there and a commit. Sent one
//! after the other they cost two questions and two answers; here the call goes with the question to commit
//! ([`commit::run_call`]). Who runs the statement says that nothing follows the write ([`Transaction::end_with_write`]).
//!
//! The call does not wait for locks there, since a commit that waits could not be ended. If it would have to, or if it
//! has written nothing, the transaction goes on as if it had made an ordinary call.
//!
//! A transaction that was refused there has not been committed and never will be: it goes on under another name.

use super::far::{FIRST_CALL, not_shown, show};
use super::{Sending, Transaction, View};
use crate::error::NodeError;
use crate::member::Place;
use crate::member::commit::{self, Ended, Touched};
use crate::ops::operation::{Done, Op, Seen};
use crate::ops::wire::{Failure, OpAnswer, OpRequest};
use crate::table::TableInfo;
use rauk_kernel::{TxnState, Verdict};
use std::sync::atomic::Ordering;

type Visitor<'v> = dyn FnMut(Seen<'_, '_>) -> Verdict + Send + 'v;

impl Transaction {
    /// Whether the write that comes next is all that is left of the statement. In autocommit the transaction may be
    /// committed with it, and nothing but its commit may be asked of it then.
    pub fn end_with_write(&mut self, ends: bool) {
        // What has ended stays so.
        if self.sending != Sending::Ended {
            let ends = ends && self.options.autocommit;
            self.sending = if ends { Sending::Ending } else { Sending::AtOnce };
        }
    }

    /// Makes a call and commits with it. `None`: nothing was done, and the call is to be made as any other.
    pub(super) async fn call_ending(
        &mut self,
        table: &TableInfo,
        partition: u16,
        view: View,
        op: &mut Op<'_>,
        visit: &mut Visitor<'_>,
    ) -> Result<Option<Done>, NodeError> {
        let node = self.node.clone();
        let Some(cluster) = node.cluster() else { return Ok(None) };
        let has_touched = || self.record.as_ref().is_some_and(|record| !record.touches.list().is_empty());
        if self.sending != Sending::Ending
            || self.locks_ranges()
            || self.far.is_some()
            || has_touched()
            || self.own_rows().next().is_some()
        {
            return Ok(None);
        }
        let elsewhere = |place: &Place| place.primary != cluster.me();
        let Some(place) = cluster.place(partition).filter(elsewhere) else { return Ok(None) };
        cluster.await_pace(self.options.lock_wait_timeout.min(commit::WAIT)).await?;
        self.check_killed()?;
        self.ensure_txn();
        let Some(txn) = self.txn.clone() else { unreachable!("it is known from here on") };
        let call = self.request(partition, Some(place.view), table, view, op);
        let call = OpRequest { txn: Some(txn.id), sequence: FIRST_CALL, patience: 0, ..call };
        let touched = vec![Touched { partition, place, wrote: true, undo_to: None }];
        let seen = self.observed.max(cluster.times.seen());
        node.registry.remote_operations.fetch_add(1, Ordering::Relaxed);
        let request = commit::Request { txn: txn.clone(), touched, seen, last: Some(call) };
        match commit::run_call(&node, request).await {
            Ok(Ended::Committed(time)) => {
                txn.status.set(TxnState::Committed(time));
                self.sending = Sending::Ended;
                cluster.times.saw(time);
                cluster.await_cover(time, commit::WAIT).await?;
                Ok(Some(Done::Is(true)))
            }
            Ok(Ended::Refused) => {
                self.begin_again();
                Ok(None)
            }
            Ok(Ended::Answered(answer)) => self.go_on(*answer, place, table, partition, op, visit).await,
            Err(error) => {
                self.fail(error.clone());
                Err(error)
            }
        }
    }

    /// The call has written nothing; what it has locked it has.
    async fn go_on(
        &mut self,
        answer: OpAnswer,
        place: Place,
        table: &TableInfo,
        partition: u16,
        op: &mut Op<'_>,
        visit: &mut Visitor<'_>,
    ) -> Result<Option<Done>, NodeError> {
        let OpAnswer { observed, outcome, .. } = answer;
        let far = self.far_mut();
        far.touch(partition, place, true);
        far.called(place.primary);
        let node = self.node.clone();
        let Some(cluster) = node.cluster() else { unreachable!("only in a cluster") };
        if !cluster.knows_time(observed).await {
            return Err(self.moved(partition));
        }
        self.observed = self.observed.max(observed);
        match outcome {
            // It waits in a call of its own.
            Err(Failure::LockTimeout) => Ok(None),
            Err(failure) => Err(self.failure(failure, table, partition)),
            Ok(answer) => show(answer, op, table, visit).map(Some).map_err(|shown| not_shown(shown, table)),
        }
    }

    /// What it was called is over, and has left nothing: it goes on under another name.
    fn begin_again(&mut self) {
        if let (Some(_), Some(txn)) = (self.record.take(), self.txn.take()) {
            self.node.registry.leave(txn.id);
        }
        self.ensure_txn();
    }
}
