//! Commit of a transaction that has written in one replication group: one entry of its stream, written by whoever leads
//! it, committed when that is stable. It may have written in several partitions of the group.
//!
//! Nothing is to be decided: the entry is there, or it is not. If the group is led elsewhere the coordinator asks its
//! primary ([`Signal::Commit`], with the view in which the transaction's locks were taken) until it hears what became
//! of it, whoever leads the group by then:
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
//! *The only call.* A statement in autocommit may need nothing but one call to another process. Then that call goes with
//! the question, and begins the transaction there ([`super::commit::run_call`]). If it writes, it is committed; else its
//! answer comes back and the transaction goes on. The call must not be done twice, also when the question comes again,
//! late or from a network that has doubled it (rule 73):
//!
//! * it is done in the view that it names, and there by a session that remembers it by its number;
//! * the session of a transaction that was refused, or is over, is remembered as ended. Of a transaction that is not
//!   newer than one that was forgotten, nothing is done ([`crate::ops::sessions::Sessions::may_have_ended`]).
//!
//! So a refusal is final: the coordinator may do the same again as another transaction.
//!
//! When the coordinator dies the entry is there or is not, and the locks go with its session: nobody takes anything over.

use super::commit::{Ending, QUESTION, Request, STEP, WAIT, holds, roll_back, sound, too_large, unknown};
use super::signal::{Part, Signal};
use super::slot::{Refused, Slot, State};
use super::written::{Written, collect, numbers};
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
use rauk_types::{GroupId, Member, Timestamp, TxnId, View};
use std::sync::Arc;
use std::time::Duration;

/// From one question to the next, when no answer comes: the entry may only be slow to become stable.
const FIRST_AGAIN: Duration = Duration::from_millis(500);
const LAST_AGAIN: Duration = Duration::from_secs(2);

/// In a group that is led here.
pub async fn commit_here(
    node: &Arc<Node>,
    cluster: &Arc<Cluster>,
    request: &Request,
    written: &Written,
) -> Result<Option<Timestamp>, NodeError> {
    let txn = &request.txn;
    let Written { group, place: Place { view, .. }, ref parts } = *written;
    let collected = collect(node, txn.id, parts, || holds(cluster, group, view)).await;
    let Ok(collected) = collected else { return Err(NodeError::Deadlock) };
    if collected.is_nothing() {
        cluster.abort_parts(node, parts, txn.id);
        return Ok(None);
    }
    node.check_commit_size(collected.writes.len())?;
    let (begun, unflushed) = cluster.flushing.left_to_caller(|| {
        cluster.at_slot(node, group, |slot, s, cx| {
            // Since they were collected the view may have ended, and with it the locks (rule 45).
            if !holds(cluster, group, view) {
                return Err(Refused);
            }
            slot.commit_alone(s, cx, txn, request.seen, collected)
        })
    });
    let Ok(outcome) = begun else { return Err(NodeError::Deadlock) };
    let committed = async {
        unflushed.flush(node, cluster).await;
        outcome.await
    };
    match cluster.timeout(WAIT, committed).await {
        Some(Ok(Some(time))) => Ok(Some(time)),
        Some(Ok(None)) => Err(NodeError::Deadlock),
        _ => Err(unknown()),
    }
}

/// In a group that another process leads. A task of its own: it ends when the outcome is known, whether the client
/// waits for it or not.
pub async fn commit_there(
    node: &Arc<Node>,
    cluster: &Arc<Cluster>,
    request: &Request,
    written: &Written,
    client: oneshot::Sender<Ending>,
) {
    let txn = request.txn.id;
    cluster.closing.lock().insert(txn);
    let ending = ask_until_known(node, cluster, request, written).await;
    // One whose last write would have to wait goes on, and so does one whose only call has written nothing.
    let goes_on = matches!(ending, Some(Ending::Failed(Failure::LockTimeout) | Ending::Answered(_)));
    if !goes_on && !matches!(ending, Some(Ending::Committed(_))) {
        roll_back(node, cluster, request);
    }
    let told = ending.is_some_and(|ending| client.send(ending).is_ok());
    if goes_on && !told {
        // Nobody is there who would go on.
        roll_back(node, cluster, request);
    }
    cluster.closing.lock().remove(&txn);
}

async fn ask_until_known(
    node: &Arc<Node>,
    cluster: &Arc<Cluster>,
    request: &Request,
    written: &Written,
) -> Option<Ending> {
    let (txn, seen) = (request.txn.id, request.seen);
    let last = || request.last.clone().map(Box::new);
    let only_call = request.last.as_ref().is_some_and(|last| !last.touched);
    let Written { group, place: Place { view, .. }, ref parts } = *written;
    let mut again = FIRST_AGAIN;
    while !cluster.is_closed() {
        let answer = match cluster.place_of(group) {
            // It has come here meanwhile: there is nothing of it here but what the stream has.
            Some(place) if place.primary == cluster.me() => {
                let asked = Asked { txn, group, view, parts, seen, last: request.last.as_ref() };
                cluster.timeout(QUESTION, on_commit(node, cluster.me(), asked)).await
            }
            Some(place) => {
                let question = Signal::Commit { txn, group, view, parts: parts.to_vec(), seen, last: last() };
                cluster.request(place.primary, question, again).await.ok()
            }
            None => None,
        };
        match answer {
            Some(Signal::Done) => return Some(Ending::NothingWritten),
            Some(Signal::OpDone(answer)) if only_call => return Some(Ending::Answered(answer)),
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
    pub group: GroupId,
    pub view: View,
    pub parts: &'a [Part],
    pub seen: Timestamp,
    pub last: Option<&'a OpRequest>,
}

/// The coordinator asks for the commit, or what has become of it.
pub async fn on_commit(node: &Arc<Node>, from: Member, asked: Asked<'_>) -> Signal {
    let Some(cluster) = node.cluster() else { return Signal::NotHere };
    let Asked { txn, group, view, parts, last, .. } = asked;
    let mut done = true;
    let only_call = last.is_some_and(|last| !last.touched);
    if only_call && node.sessions.may_have_ended(txn) {
        done = false;
    } else if let Some(last) = last {
        let is_part = parts.iter().any(|part| part.partition == last.partition);
        if last.txn != Some(txn) || !is_part || last.view != Some(view) || only_call && parts.len() > 1 {
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
    let known = cluster.at_slot(node, group, |slot, s, _| {
        let serves = cluster.may_lead(group).ok_or(Refused)?;
        Ok((serves, find(slot, s, txn)))
    });
    let mut taken = false;
    let found = match known {
        Err(Refused) => Err(Refused),
        Ok((serves, Some(found))) => Ok((serves, found)),
        Ok((serves, None)) if !done && has_locks(node, cluster, &asked) => Ok((serves, Found::Unfinished)),
        Ok((serves, None)) => match take(node, cluster, &asked) {
            Some(session) => {
                taken = true;
                write(node, cluster, &session, &asked).await.map(|found| (serves, found))
            }
            None => {
                if only_call {
                    // It is not done later, either: the question may be on its way once more.
                    node.sessions.end(node, txn);
                }
                Ok((serves, refuse(node, cluster, &asked).await))
            }
        },
    };
    let answer = match found {
        Ok((serves, Found::Vote(vote))) => Some((serves, Signal::Voted { group, vote })),
        Ok((serves, Found::Soon(vote))) => vote.await.ok().map(|vote| (serves, Signal::Voted { group, vote })),
        Ok((serves, Found::NothingWritten)) => Some((serves, Signal::Done)),
        Ok((serves, Found::TooLarge(failure))) => Some((serves, Signal::OpDone(Box::new(OpAnswer::failed(failure))))),
        Ok((_, Found::Unfinished)) | Err(Refused) => None,
    };
    if taken {
        node.sessions.finished(node, txn, numbers(parts));
    }
    match answer {
        // What is stable is a fact, whoever says it.
        Some((_, answer @ Signal::Voted { vote: Vote::Decided(Outcome::Committed(_)), .. })) => answer,
        Some((serves, answer)) if cluster.may_answer_for(group, serves) => answer,
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
    let Asked { txn, group, view, parts, seen, .. } = *asked;
    let may_write = || holds(cluster, group, view) && cluster.may_return(txn.process());
    let collected = collect(node, txn, parts, may_write).await;
    let found = collected.and_then(|collected| {
        cluster.at_slot(node, group, |slot, s, cx| {
            if let Some(found) = find(slot, s, txn) {
                return Ok(found);
            }
            // Since they were collected the view may have ended, and with it the locks (rule 45).
            if !may_write() {
                return Err(Refused);
            }
            if collected.is_nothing() {
                return Ok(Found::NothingWritten);
            }
            if let Some(failure) = too_large(node, collected.writes.len()) {
                return Ok(Found::TooLarge(failure));
            }
            slot.commit_for(s, cx, session, seen, collected).map(Found::Soon)
        })
    });
    if matches!(found, Err(Refused) | Ok(Found::NothingWritten | Found::TooLarge(_))) {
        cluster.abort_parts(node, parts, txn);
    }
    found
}

/// There is no entry, and nobody can write one any more: its locks are gone, or its coordinator is dead, which does not
/// change.
async fn refuse(node: &Arc<Node>, cluster: &Arc<Cluster>, asked: &Asked<'_>) -> Found {
    let Asked { txn, group, parts, .. } = *asked;
    for Part { partition, .. } in parts {
        let rows = &cluster.rows[usize::from(partition.0)];
        node.on_partition(partition.0, Class::Prepare, |p| rows.abort_open(p, &[txn])).await;
    }
    cluster.at_slot(node, group, |slot, s, _| match s.table.look_alone(txn) {
        Some(Known::Vote(vote)) => Found::Vote(vote),
        Some(_) => Found::Soon(slot.await_vote(s, txn)),
        None => Found::Vote(Vote::Refused),
    })
}

/// Whether the transaction could still be written.
fn has_locks(node: &Node, cluster: &Cluster, asked: &Asked<'_>) -> bool {
    let Asked { txn, group, view, parts, .. } = *asked;
    let noted = || {
        let session = node.sessions.get(txn);
        session.is_some_and(|session| parts.iter().all(|part| session.touches.has(part.partition.0, view)))
    };
    holds(cluster, group, view) && cluster.may_return(txn.process()) && noted()
}

/// The transaction of another process is the commit protocol's from here on, and the end of its session does not take
/// its locks away. `None`: it has none here in this view
/// (rule 5), or its coordinator is known to be dead.
fn take(node: &Node, cluster: &Cluster, asked: &Asked<'_>) -> Option<TxnRef> {
    let Asked { txn, group, view, parts, .. } = *asked;
    if !holds(cluster, group, view) || !cluster.may_return(txn.process()) {
        return None;
    }
    node.sessions.prepare(txn, &numbers(parts), view)
}
