//! Commit of a transaction that has written in one partition: one entry of its stream, written by whoever leads it, committed when that is stable.
//!
//! Nothing is to be decided: the entry is there, or it is not. If the partition is led elsewhere the coordinator asks its primary ([`Signal::Commit`], with the view in which the
//! transaction's locks were taken) until it hears what became of it, whoever leads the partition by then:
//!
//! * the entry is known: committed, said when it is stable;
//! * there is none, and the locks are held in that view: the entry is written now. Whatever asks again finds it, so it is written once;
//! * neither: it is refused, for ever. The locks of that view are gone, and with them everybody who could write the entry (rule 5); an older primary's own copy of it can have
//!   become stable only if this one, whose view was opened on all in-sync replicas, has it (rules 6, 7). So no fence is needed, nobody but the coordinator ever asks, and nothing is to be forgotten;
//! * neither, and so many others have committed since that it may have been one of them: the client is told that the outcome is unknown.
//!
//! The last write of a statement in autocommit is not sent by itself: it goes with the question ([`Last`]) and is done before the entry is written, once however often it is asked. If it fails nothing is committed, and the question is
//! answered by what was wrong with it. While it cannot be done for the moment nothing is written, and the question is asked again.
//!
//! Changes that do not fit into one entry are refused before anything is written (error 1114), and the transaction is rolled back.
//!
//! When the coordinator dies the entry is there or is not, and the locks go with its session: nobody takes anything over.

use super::commit::{
    Ending, QUESTION, Request, STEP, Touched, WAIT, collect, holds, roll_back, sound, too_large, unknown,
};
use super::signal::Signal;
use super::slot::{Refused, Slot, State};
use super::{Cluster, Place};
use crate::error::NodeError;
use crate::executor::Class;
use crate::node::Node;
use crate::ops::serve::serve;
use crate::ops::wire::{Answer, Failure, OpAnswer, OpRequest};
use futures::channel::oneshot;
use rauk_cluster::transactions::Known;
use rauk_cluster::{Outcome, Vote};
use rauk_kernel::TxnRef;
use rauk_types::{Member, PartitionId, Timestamp, TxnId, View};
use std::sync::Arc;
use std::time::Duration;

/// From one question to the next, when no answer comes: the entry may only be slow to become stable.
const FIRST_AGAIN: Duration = Duration::from_millis(500);
const LAST_AGAIN: Duration = Duration::from_secs(2);

/// In a partition that is led here.
pub async fn commit_here(
    node: &Arc<Node>,
    cluster: &Arc<Cluster>,
    request: &Request,
    touched: &Touched,
) -> Result<Option<Timestamp>, NodeError> {
    let txn = &request.txn;
    let (partition, view) = (touched.partition, touched.place.view);
    let collected = node
        .on_partition(partition, Class::Prepare, |p| {
            if !holds(cluster, partition, view) {
                return Err(NodeError::Deadlock);
            }
            if let Some(number) = touched.undo_to {
                p.rollback_to(txn.id, number);
            }
            let writes = collect(node, p, txn.id);
            if writes.is_empty() {
                p.abort(txn.id);
                return Ok(None);
            }
            node.check_commit_size(writes.len())?;
            Ok(Some(writes))
        })
        .await;
    let Some(writes) = collected? else { return Ok(None) };
    let begun = cluster.at_slot(node, partition, |slot, s, cx| {
        // Since they were collected the view may have ended, and with it the locks (rule 45).
        if !holds(cluster, partition, view) {
            return Err(Refused);
        }
        slot.commit_alone(s, cx, txn, request.seen, writes)
    });
    let Ok(outcome) = begun else { return Err(NodeError::Deadlock) };
    match cluster.timeout(WAIT, outcome).await {
        Some(Ok(Some(time))) => Ok(Some(time)),
        Some(Ok(None)) => Err(NodeError::Deadlock),
        _ => Err(unknown()),
    }
}

/// In a partition that another process leads. A task of its own: it ends when the outcome is known, whether the client waits for it or not.
pub async fn commit_there(
    node: &Arc<Node>,
    cluster: &Arc<Cluster>,
    request: &Request,
    touched: Touched,
    client: oneshot::Sender<Ending>,
) {
    let txn = request.txn.id;
    cluster.closing.lock().insert(txn);
    let ending = ask_until_known(node, cluster, request, touched).await;
    // One whose last write would have to wait goes on.
    if !matches!(ending, Some(Ending::Committed(_) | Ending::Failed(Failure::LockTimeout))) {
        roll_back(node, cluster, request);
    }
    if let Some(ending) = ending {
        let _ = client.send(ending);
    }
    cluster.closing.lock().remove(&txn);
}

async fn ask_until_known(
    node: &Arc<Node>,
    cluster: &Arc<Cluster>,
    request: &Request,
    touched: Touched,
) -> Option<Ending> {
    let (txn, seen) = (request.txn.id, request.seen);
    let last = || request.last.clone().map(Box::new);
    let Touched { partition, place: Place { view, .. }, undo_to, .. } = touched;
    let mut again = FIRST_AGAIN;
    while !cluster.is_closed() {
        let answer = match cluster.place(partition) {
            // It has come here meanwhile: there is nothing of it here but what the stream has.
            Some(place) if place.primary == cluster.me() => {
                let partition = PartitionId(partition);
                let asked = Asked { txn, partition, view, seen, undo_to, last: request.last.as_ref() };
                cluster.timeout(QUESTION, on_commit(node, cluster.me(), asked)).await
            }
            Some(place) => {
                let partition = PartitionId(partition);
                let question = Signal::Commit { txn, partition, view, seen, undo_to, last: last() };
                cluster.request(place.primary, question, again).await.ok()
            }
            None => None,
        };
        match answer {
            Some(Signal::Done) => return Some(Ending::NothingWritten),
            Some(Signal::OpDone(answer)) => match answer.outcome {
                Err(failure) => return Some(Ending::Failed(failure)),
                Ok(_) => return Some(Ending::Aborted),
            },
            Some(Signal::Voted { vote, .. }) => match sound(cluster, vote).await {
                Some(Vote::Decided(outcome)) => return Some(outcome.into()),
                Some(Vote::Refused) => return Some(Ending::Aborted),
                Some(Vote::Forgotten) => return None,
                // Nobody prepares it.
                Some(Vote::Prepared(_)) | None => {}
            },
            _ => {}
        }
        again = (again * 2).min(LAST_AGAIN);
        cluster.runtime.sleep(STEP).await;
    }
    None
}

/// What a question finds.
enum Found {
    Vote(Vote),
    /// The entry is not stable yet.
    Soon(oneshot::Receiver<Vote>),
    NothingWritten,
    /// There is no entry, and none can be written before the last write is done.
    Unfinished,
    /// There will never be one: its changes do not fit.
    TooLarge(Failure),
}

/// What a question names.
pub struct Asked<'a> {
    pub txn: TxnId,
    pub partition: PartitionId,
    pub view: View,
    pub seen: Timestamp,
    pub undo_to: Option<u32>,
    pub last: Option<&'a OpRequest>,
}

/// The coordinator asks for the commit, or what has become of it.
pub async fn on_commit(node: &Arc<Node>, from: Member, asked: Asked<'_>) -> Signal {
    let Some(cluster) = node.cluster() else { return Signal::NotHere };
    let Asked { txn, partition: id, view, last, .. } = asked;
    let partition = id.0;
    let mut done = true;
    if let Some(last) = last {
        if last.txn != Some(txn) || last.partition != id || !last.touched || last.view != Some(view) {
            return Signal::NotHere;
        }
        let answer = serve(node, from, last).await;
        done = match &answer.outcome {
            Ok(Answer::Is(true)) => true,
            // It may be committed already; if not, its locks are gone or will still be here when it is asked again.
            Err(Failure::NotHere | Failure::Behind | Failure::Lost | Failure::Late) => false,
            Ok(_) | Err(_) => return Signal::OpDone(Box::new(answer)),
        };
    }
    let known = cluster.at_slot(node, partition, |slot, s, _| {
        let serves = cluster.may_serve(partition).ok_or(Refused)?;
        Ok((serves, find(slot, s, txn)))
    });
    let mut taken = false;
    let found = match known {
        Err(Refused) => Err(Refused),
        Ok((serves, Some(found))) => Ok((serves, found)),
        Ok((serves, None)) if !done && has_locks(node, cluster, txn, partition, view) => {
            Ok((serves, Found::Unfinished))
        }
        Ok((serves, None)) => match take(node, cluster, txn, partition, view) {
            Some(session) => {
                taken = true;
                write(node, cluster, &session, &asked).await.map(|found| (serves, found))
            }
            None => Ok((serves, refuse(node, cluster, txn, partition).await)),
        },
    };
    let answer = match found {
        Ok((serves, Found::Vote(vote))) => Some((serves, Signal::Voted { partition: id, vote })),
        Ok((serves, Found::Soon(vote))) => vote.await.ok().map(|vote| (serves, Signal::Voted { partition: id, vote })),
        Ok((serves, Found::NothingWritten)) => Some((serves, Signal::Done)),
        Ok((serves, Found::TooLarge(failure))) => Some((serves, Signal::OpDone(Box::new(OpAnswer::failed(failure))))),
        Ok((_, Found::Unfinished)) | Err(Refused) => None,
    };
    if taken {
        node.sessions.finished(node, txn, id);
    }
    match answer {
        // What is stable is a fact, whoever says it.
        Some((_, answer @ Signal::Voted { vote: Vote::Decided(Outcome::Committed(_)), .. })) => answer,
        Some((serves, answer)) if cluster.may_answer(partition, serves) => answer,
        _ => Signal::NotHere,
    }
}

/// Under the stream's lock: what is known of the transaction.
fn find(slot: &Slot, s: &mut State, txn: TxnId) -> Option<Found> {
    Some(match s.table.look(txn)? {
        Known::Vote(vote) => Found::Vote(vote),
        _ => Found::Soon(slot.await_vote(s, txn)),
    })
}

/// Writes the entry of a transaction whose fate here is the commit protocol's. Of two questions at once the second
/// finds the entry of the first.
async fn write(
    node: &Arc<Node>,
    cluster: &Arc<Cluster>,
    session: &TxnRef,
    asked: &Asked<'_>,
) -> Result<Found, Refused> {
    let Asked { txn, partition: PartitionId(partition), view, seen, undo_to, .. } = *asked;
    let may_write = || holds(cluster, partition, view) && cluster.may_return(txn.process());
    let collected = node
        .on_partition(partition, Class::Prepare, |p| {
            if !may_write() {
                return Err(Refused);
            }
            if let Some(number) = undo_to {
                p.rollback_to(txn, number);
            }
            Ok(collect(node, p, txn))
        })
        .await;
    let found = collected.and_then(|writes| {
        cluster.at_slot(node, partition, |slot, s, cx| {
            if let Some(found) = find(slot, s, txn) {
                return Ok(found);
            }
            // Since they were collected the view may have ended, and with it the locks (rule 45).
            if !may_write() {
                return Err(Refused);
            }
            if writes.is_empty() {
                return Ok(Found::NothingWritten);
            }
            if let Some(failure) = too_large(node, writes.len()) {
                return Ok(Found::TooLarge(failure));
            }
            slot.commit_for(s, cx, session, seen, writes).map(Found::Soon)
        })
    });
    if matches!(found, Err(Refused) | Ok(Found::NothingWritten | Found::TooLarge(_))) {
        cluster.abort_open(node, partition, vec![txn]);
    }
    found
}

/// There is no entry, and nobody can write one any more: its locks are gone, or its coordinator is dead, which does not
/// change.
async fn refuse(node: &Arc<Node>, cluster: &Arc<Cluster>, txn: TxnId, partition: u16) -> Found {
    node.on_partition(partition, Class::Prepare, |p| cluster.rows[usize::from(partition)].abort_open(p, &[txn])).await;
    cluster.at_slot(node, partition, |slot, s, _| match s.table.look_alone(txn) {
        Some(Known::Vote(vote)) => Found::Vote(vote),
        Some(_) => Found::Soon(slot.await_vote(s, txn)),
        None => Found::Vote(Vote::Refused),
    })
}

/// Whether the transaction could still be written.
fn has_locks(node: &Node, cluster: &Cluster, txn: TxnId, partition: u16, view: View) -> bool {
    let noted = || node.sessions.get(txn).is_some_and(|session| session.touches.has(partition, view));
    holds(cluster, partition, view) && cluster.may_return(txn.process()) && noted()
}

/// The transaction of another process is the commit protocol's from here on, and the end of its session does not take
/// its locks away. `None`: it has none here in this view
/// (rule 5), or its coordinator is known to be dead.
fn take(node: &Node, cluster: &Cluster, txn: TxnId, partition: u16, view: View) -> Option<TxnRef> {
    if !holds(cluster, partition, view) || !cluster.may_return(txn.process()) {
        return None;
    }
    node.sessions.prepare(txn, PartitionId(partition), view)
}
