//! Commit of a transaction in a cluster, and take-over of what others left prepared.
//!
//! * Where a transaction only has locks, nothing is to be decided: before the first prepare its coordinator makes sure that they have been held until then (the view has not changed), and gives them back. From
//!   the moment of the first prepare on it needs them no more: all its locks were held at one time.
//! * It has written in one replication group, led here or elsewhere: one entry, whatever number of its partitions it is
//!   from, committed when that is stable ([`alone`]). If its only call goes to another process, the call goes with the
//!   question to commit it ([`run_call`]).
//! * Otherwise each written group prepares, and [`Closing`] (pure, in crate `cluster`) says what to ask and tell whom,
//!   until the outcome is known, then confirmed everywhere, then forgotten. The same for a participant that takes over.
//!   It runs as a task of its own: a client that goes away, or stops waiting, changes nothing.
//!
//! The coordinator is the process that runs the transaction.

use super::alone;
use super::signal::Signal;
use super::slot::Refused;
use super::written::{self, Written, by_group, numbers};
use super::{Cluster, Place};
use crate::error::NodeError;
use crate::executor::Class;
use crate::node::Node;
use crate::ops::wire::{Failure, OpAnswer, OpRequest};
use crate::runtime::BoxFuture;
use crate::transaction::call::name_of;
use crate::transaction::far::explain;
use futures::StreamExt;
use futures::channel::oneshot;
use futures::stream::FuturesUnordered;
use rauk_cluster::transactions::{Closing, Pace, Step, Undecided};
use rauk_cluster::{Outcome, Vote};
use rauk_kernel::TxnRef;
use rauk_types::{GroupId, Member, PartitionId, TableId, Timestamp, TxnId, View};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A participant that has not answered is asked again after this.
pub(super) const QUESTION: Duration = Duration::from_millis(200);
/// Between looks at what is to be sent again.
pub(super) const STEP: Duration = Duration::from_millis(20);
/// Longest wait of a client for its outcome.
pub(crate) const WAIT: Duration = Duration::from_secs(10);
/// A prepared transaction is taken over after this, although its coordinator is up; at once when that is gone.
const SILENT: Duration = Duration::from_secs(1);
/// A decided one that has not been forgotten for so long is asked about.
const LINGERING: Duration = Duration::from_secs(3);

/// A partition where a transaction has locks or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touched {
    pub partition: u16,
    /// Who led it when the transaction first touched it.
    pub place: Place,
    /// Whether it has ever written there (also if that was undone): where it only has locks it takes no part in the decision.
    pub wrote: bool,
    /// Writes with this number and above are to be undone before anything else (a savepoint's rollback that the primary has not been told).
    pub undo_to: Option<u32>,
}

/// What is to be committed.
pub struct Request {
    pub txn: TxnRef,
    pub touched: Vec<Touched>,
    /// The highest commit time that its session has seen.
    pub seen: Timestamp,
    /// A call to the only group where it has written, led elsewhere, that has not been sent yet. It waits for nobody:
    /// [`NodeError::LockTimeout`] if it would have to, and then the transaction goes on.
    pub last: Option<OpRequest>,
}

/// What has come of a transaction's only call, with which its commit was asked for.
pub enum Ended {
    Committed(Timestamp),
    /// Nothing was written: what the call gave. The transaction goes on, with the locks that the call has taken.
    Answered(Box<OpAnswer>),
    /// Nothing is left of the transaction, and nothing of it will ever be done.
    Refused,
}

/// Commits, wherever the partitions are led; gives the commit time (`None`: it had written nothing). When this returns nothing of the transaction is left that its caller must end, except on error
/// [`NodeError::UnknownOutcome`], when it is being decided without its caller. On every other error it is rolled back.
pub async fn run(node: &Arc<Node>, request: Request) -> Result<Option<Timestamp>, NodeError> {
    let cluster = node.cluster().expect("it is a member").clone();
    // A client that goes away before anything is in a stream leaves nothing behind.
    let mut unfinished = Unfinished { node, request: Some(&request) };
    let result = decide_all(node, &cluster, &request, &mut unfinished).await;
    unfinished.request = None;
    result
}

/// Sends the only call of a transaction, and commits with it if it writes. On every error but
/// [`NodeError::UnknownOutcome`] nothing is left of the transaction.
///
/// # Panics
/// If there is no call, or the transaction has touched more than one partition.
pub async fn run_call(node: &Arc<Node>, request: Request) -> Result<Ended, NodeError> {
    let cluster = node.cluster().expect("it is a member").clone();
    let mut touched = request.touched.clone();
    let groups = by_group(&cluster, &mut touched).unwrap_or_default();
    let ([_], [only], Some(_)) = (touched.as_slice(), groups.as_slice(), &request.last) else {
        panic!("transaction {} has more than one call", request.txn.id.0);
    };
    let (sender, receiver) = oneshot::channel();
    let (owner, deciding, only) = (node.clone(), cluster.clone(), only.clone());
    // It may be done from here on, whoever waits for that.
    cluster.tasks.spawn(async move { alone::commit_there(&owner, &deciding, &request, &only, sender).await });
    match cluster.timeout(WAIT, receiver).await {
        Some(Ok(Ending::Committed(time))) => Ok(Ended::Committed(time)),
        Some(Ok(Ending::Answered(answer))) => Ok(Ended::Answered(answer)),
        Some(Ok(Ending::Aborted | Ending::NothingWritten | Ending::Failed(_))) => Ok(Ended::Refused),
        Some(Err(_)) | None => Err(unknown()),
    }
}

struct Unfinished<'a> {
    node: &'a Arc<Node>,
    request: Option<&'a Request>,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let (Some(request), Some(cluster)) = (self.request, self.node.cluster()) {
            roll_back(self.node, cluster, request);
        }
    }
}

async fn decide_all(
    node: &Arc<Node>,
    cluster: &Arc<Cluster>,
    request: &Request,
    unfinished: &mut Unfinished<'_>,
) -> Result<Option<Timestamp>, NodeError> {
    let (mut writers, locked): (Vec<Touched>, Vec<Touched>) =
        request.touched.iter().copied().partition(|t: &Touched| t.wrote);
    for touched in &locked {
        if !still_locked(node, cluster, request.txn.id, touched).await {
            roll_back(node, cluster, request);
            return Err(NodeError::Deadlock);
        }
    }
    let Some(written) = by_group(cluster, &mut writers) else {
        roll_back(node, cluster, request);
        return Err(NodeError::Deadlock);
    };
    match written.as_slice() {
        [] => Ok(None),
        [only] if only.place.primary == cluster.me() => {
            let result = alone::commit_here(node, cluster, request, only).await;
            if matches!(result, Err(ref error) if !matches!(error, NodeError::UnknownOutcome(_))) {
                roll_back(node, cluster, request);
            }
            result
        }
        _ => {
            let (sender, receiver) = oneshot::channel();
            let last = request.last.clone();
            let table = last.as_ref().map(|last| last.table);
            let request = Request { txn: request.txn.clone(), touched: writers, seen: request.seen, last };
            let (owner, deciding) = (node.clone(), cluster.clone());
            // From here on it is the task's. Its locks must stay, whoever goes away: else a prepare that waits for its partition would find nothing there, and be taken without its writes.
            unfinished.request = None;
            let decided = async move {
                match written.as_slice() {
                    [only] => alone::commit_there(&owner, &deciding, &request, only, sender).await,
                    _ => coordinate(&owner, &deciding, &request, &written, sender).await,
                }
            };
            // What it has prepared here by the time that it waits is flushed by this thread.
            let ((), unflushed) = cluster.flushing.left_to_caller(|| cluster.tasks.spawn(decided));
            let ended = async {
                unflushed.flush(node, cluster).await;
                receiver.await
            };
            match cluster.timeout(WAIT, ended).await {
                Some(Ok(Ending::Committed(time))) => Ok(Some(time)),
                Some(Ok(Ending::NothingWritten)) => Ok(None),
                Some(Ok(Ending::Aborted | Ending::Answered(_))) => Err(NodeError::Deadlock),
                Some(Ok(Ending::Failed(failure))) => Err(failed(node, table, failure)),
                _ => Err(unknown()),
            }
        }
    }
}

/// What a client is told. No word at all: the outcome is not known.
pub(super) enum Ending {
    Committed(Timestamp),
    /// What it had written it has taken back.
    NothingWritten,
    Aborted,
    /// Its last write was not done.
    Failed(Failure),
    /// Its only call has written nothing.
    Answered(Box<OpAnswer>),
}

impl From<Outcome> for Ending {
    fn from(outcome: Outcome) -> Ending {
        match outcome {
            Outcome::Committed(time) => Ending::Committed(time),
            Outcome::Aborted => Ending::Aborted,
        }
    }
}

/// Why the last write was not done.
fn failed(node: &Node, table: Option<TableId>, failure: Failure) -> NodeError {
    // Nobody can interrupt a commit: its session there was ended.
    if failure == Failure::Interrupted {
        return NodeError::Deadlock;
    }
    let name = || table.and_then(|id| node.tables.by_id(id)).map(|table| name_of(&table)).unwrap_or_default();
    explain(failure, name).unwrap_or(NodeError::Deadlock)
}

pub(super) fn unknown() -> NodeError {
    NodeError::UnknownOutcome(
        "the replicas have not answered in time; the transaction is being decided without its client".into(),
    )
}

/// Whether the transaction has held its locks in a partition until now; they are given back.
async fn still_locked(node: &Arc<Node>, cluster: &Cluster, txn: TxnId, touched: &Touched) -> bool {
    let Touched { partition, place, .. } = *touched;
    if place.primary == cluster.me() {
        return matches!(on_verify(node, txn, partition, place.view).await, Signal::Done);
    }
    let question = Signal::Verify { txn, partition: PartitionId(partition), view: place.view };
    matches!(cluster.request(place.primary, question, QUESTION * 5).await, Ok(Signal::Done))
}

/// Ends a transaction that has not prepared anywhere, or is decided to be aborted.
pub(super) fn roll_back(node: &Arc<Node>, cluster: &Cluster, request: &Request) {
    let id = request.txn.id;
    let mut told = Vec::new();
    for touched in &request.touched {
        let primary = touched.place.primary;
        if primary == cluster.me() {
            cluster.abort_open(node, touched.partition, vec![id]);
        } else if !told.contains(&primary) {
            told.push(primary);
            cluster.tell(primary, Signal::End { txn: id });
        }
    }
}

/// Under the guard: this process serves the group in the view of the transaction's first touch, so its locks are
/// there. Under the stream's lock: what is appended now is (rule 45). No lease is needed: what becomes stable is a
/// fact, and what another primary has cut does not.
pub(super) fn holds(cluster: &Cluster, group: GroupId, view: View) -> bool {
    cluster.slot(group).serving().is_some_and(|now| now == view || !cluster.hooks.safeguards.view)
}

/// Why changes of so many bytes cannot be an entry.
pub(super) fn too_large(node: &Node, bytes: usize) -> Option<Failure> {
    let limit = node.commit_limit();
    (bytes > limit).then_some(Failure::TooLarge { bytes: bytes as u64, limit: limit as u64 })
}

/// Why a part was not prepared.
enum NotPrepared {
    Refused,
    /// It never will be.
    TooLarge(Failure),
}

impl From<Refused> for NotPrepared {
    fn from(Refused: Refused) -> NotPrepared {
        NotPrepared::Refused
    }
}

/// Why a participant will never prepare, if one has said so: the client is told that in the place of the abort that follows.
type Hindrance = Arc<OnceLock<Failure>>;

/// What comes back of something that was sent.
enum Back {
    Vote(GroupId, Option<Vote>),
    Confirmed(GroupId, bool),
    Time,
}

type Under = FuturesUnordered<BoxFuture<Back>>;

async fn coordinate(
    node: &Arc<Node>,
    cluster: &Arc<Cluster>,
    request: &Request,
    written: &[Written],
    client: oneshot::Sender<Ending>,
) {
    let id = request.txn.id;
    let participants: Vec<GroupId> = written.iter().map(|w| w.group).collect();
    let under: Under = FuturesUnordered::new();
    cluster.closing.lock().insert(id);
    let hindrance = Hindrance::default();
    for written in written {
        under.push(prepare(node, cluster, request, written.clone(), participants.clone(), hindrance.clone()));
    }
    let closing = Closing::coordinator(id, &participants, Pace::default(), cluster.runtime.now());
    let outcome = close(node, cluster, id, closing, under, Some((client, hindrance)), |outcome| {
        if outcome == Outcome::Aborted {
            // Sessions that never prepared hold locks still.
            roll_back(node, cluster, request);
        }
    })
    .await;
    tracing::trace!(txn = id.0, ?outcome, "closed");
    cluster.closing.lock().remove(&id);
}

/// Moves signals until the transaction is forgotten.
async fn close(
    node: &Arc<Node>,
    cluster: &Arc<Cluster>,
    txn: TxnId,
    mut closing: Closing,
    mut under: Under,
    mut client: Option<(oneshot::Sender<Ending>, Hindrance)>,
    on_outcome: impl FnOnce(Outcome),
) -> Option<Outcome> {
    let mut on_outcome = Some(on_outcome);
    let mut timer = false;
    loop {
        if cluster.is_closed() {
            return None;
        }
        for (group, step) in closing.on_tick(cluster.runtime.now()) {
            match step {
                Step::Ask => under.push(ask(node, cluster, txn, group)),
                Step::Decide(outcome) => under.push(decide(node, cluster, txn, group, outcome)),
                Step::Forget => cluster.forgets.lock().entry(group).or_default().push(txn),
            }
        }
        if let Some(outcome) = closing.outcome() {
            if let Some((client, hindrance)) = client.take() {
                let _ = client.send(match (outcome, hindrance.get()) {
                    (Outcome::Aborted, Some(failure)) => Ending::Failed(failure.clone()),
                    _ => outcome.into(),
                });
            }
            if let Some(on_outcome) = on_outcome.take() {
                on_outcome(outcome);
            }
        }
        if closing.is_done() {
            return closing.outcome();
        }
        if !timer {
            timer = true;
            let sleep = cluster.runtime.sleep(STEP);
            under.push(Box::pin(async move {
                sleep.await;
                Back::Time
            }));
        }
        match under.next().await.expect("the timer is under way") {
            Back::Time => timer = false,
            Back::Vote(group, Some(vote)) => {
                closing.on_vote(group, vote);
            }
            // Asked again in a while: by then there may be another primary.
            Back::Vote(_, None) => {}
            Back::Confirmed(group, true) => closing.on_confirmed(group),
            Back::Confirmed(_, false) => {}
        }
    }
}

fn prepare(
    node: &Arc<Node>,
    cluster: &Arc<Cluster>,
    request: &Request,
    written: Written,
    participants: Vec<GroupId>,
    hindrance: Hindrance,
) -> BoxFuture<Back> {
    let (node, cluster, txn, seen) = (node.clone(), cluster.clone(), request.txn.clone(), request.seen);
    Box::pin(async move {
        let Written { group, place, .. } = written;
        let vote = if place.primary == cluster.me() {
            match prepare_here(&node, &txn, &written, participants, seen).await {
                Ok(vote) => vote,
                Err(NotPrepared::Refused) => None,
                Err(NotPrepared::TooLarge(failure)) => {
                    let _ = hindrance.set(failure);
                    None
                }
            }
        } else {
            let (txn, view, parts) = (txn.id, place.view, written.parts.into_vec());
            let signal = Signal::Prepare { txn, group, view, parts, participants, seen };
            match cluster.request(place.primary, signal, WAIT).await {
                Ok(Signal::Voted { vote, .. }) => sound(&cluster, vote).await,
                Ok(Signal::OpDone(answer)) => {
                    if let Err(failure) = answer.outcome {
                        let _ = hindrance.set(failure);
                    }
                    None
                }
                _ => None,
            }
        };
        // Without a vote it is asked what it has, and then never prepares any more.
        Back::Vote(group, vote)
    })
}

async fn prepare_here(
    node: &Arc<Node>,
    txn: &TxnRef,
    written: &Written,
    participants: Vec<GroupId>,
    seen: Timestamp,
) -> Result<Option<Vote>, NotPrepared> {
    let cluster = node.cluster().ok_or(Refused)?;
    let Written { group, place: Place { view, .. }, ref parts } = *written;
    // Of a coordinator that is known to be dead nothing is taken any more: what was refused for it may be forgotten
    // already.
    let may_prepare = || holds(cluster, group, view) && cluster.may_return(txn.id.process());
    let begun = written::collect(node, txn.id, parts, may_prepare).await.map_err(NotPrepared::from);
    let begun = begun.and_then(|collected| {
        if let Some(failure) = too_large(node, collected.writes.len()) {
            return Err(NotPrepared::TooLarge(failure));
        }
        cluster.at_slot(node, group, |slot, s, cx| {
            // Since they were collected the view may have ended, and with it the locks (rule 45).
            if !may_prepare() {
                return Err(NotPrepared::Refused);
            }
            Ok(slot.prepare(s, cx, txn, participants, seen, collected)?)
        })
    });
    if begun.is_err() {
        // The end of its session has left this to the commit protocol.
        cluster.abort_parts(node, parts, txn.id);
    }
    Ok(begun?.await.ok())
}

fn ask(node: &Arc<Node>, cluster: &Arc<Cluster>, txn: TxnId, group: GroupId) -> BoxFuture<Back> {
    let (node, cluster) = (node.clone(), cluster.clone());
    Box::pin(async move {
        let Some(place) = cluster.place_of(group) else {
            return Back::Vote(group, None);
        };
        let answer = if place.primary == cluster.me() {
            cluster.timeout(QUESTION, on_ask(&node, txn, group)).await
        } else {
            cluster.request(place.primary, Signal::Ask { txn, group }, QUESTION).await.ok()
        };
        match answer {
            Some(Signal::Voted { vote, .. }) => Back::Vote(group, sound(&cluster, vote).await),
            _ => Back::Vote(group, None),
        }
    })
}

/// `None`: nobody can have voted so.
pub(super) async fn sound(cluster: &Cluster, vote: Vote) -> Option<Vote> {
    let (Vote::Prepared(time) | Vote::Decided(Outcome::Committed(time))) = vote else { return Some(vote) };
    cluster.knows_time(time).await.then_some(vote)
}

fn decide(node: &Arc<Node>, cluster: &Arc<Cluster>, txn: TxnId, group: GroupId, outcome: Outcome) -> BoxFuture<Back> {
    let (node, cluster) = (node.clone(), cluster.clone());
    Box::pin(async move {
        let Some(place) = cluster.place_of(group) else {
            return Back::Confirmed(group, false);
        };
        let answer = if place.primary == cluster.me() {
            cluster.timeout(QUESTION, on_decide(&node, txn, group, outcome)).await
        } else {
            let signal = Signal::Decide { txn, group, outcome };
            cluster.request(place.primary, signal, QUESTION).await.ok()
        };
        Back::Confirmed(group, matches!(answer, Some(Signal::Done)))
    })
}

/// Has what all participants have confirmed forgotten: one message and one entry a group for all that has come
/// together. Nobody waits for it; what a crash loses is found again ([`ask_coordinators`], [`take_over`]).
pub fn send_forgets(node: &Arc<Node>, cluster: &Arc<Cluster>) {
    let all = std::mem::take(&mut *cluster.forgets.lock());
    for (group, txns) in all {
        let Some(place) = cluster.place_of(group) else { continue };
        if place.primary != cluster.me() {
            cluster.tell(place.primary, Signal::Forget { group, txns });
            continue;
        }
        cluster.at_slot(node, group, |slot, s, cx| slot.forget(s, cx, txns));
    }
}

// What others ask.

/// The transaction has held its locks here in this view until now; it gives them back.
pub async fn on_verify(node: &Arc<Node>, txn: TxnId, partition: u16, view: View) -> Signal {
    let Some(cluster) = node.cluster() else { return Signal::NotHere };
    // What was noted in this view is there as long as the view lasts. It may be no lock at all: a locking read that has found nothing.
    let own = txn.process() == cluster.me().process;
    let noted = own || node.sessions.release(node, txn, PartitionId(partition), view);
    let held = node
        .on_partition(partition, Class::Prepare, |p| {
            cluster.rows[usize::from(partition)].abort_open(p, &[txn]);
            noted && holds(cluster, cluster.group_of(partition), view)
        })
        .await;
    match held && cluster.may_answer(partition, view) {
        true => Signal::Done,
        false => Signal::NotHere,
    }
}

pub async fn on_prepare(
    node: &Arc<Node>,
    txn: TxnId,
    written: Written,
    participants: Vec<GroupId>,
    seen: Timestamp,
) -> Signal {
    let Written { group, place, .. } = written;
    // Rule 5: only where the transaction's locks are.
    let parts = numbers(&written.parts);
    let Some(session) = node.sessions.prepare(txn, &parts, place.view) else { return Signal::NotHere };
    match prepare_here(node, &session, &written, participants, seen).await {
        Ok(Some(vote)) => Signal::Voted { group, vote },
        Ok(None) => Signal::NotHere,
        Err(why) => {
            node.sessions.finished(node, txn, parts);
            match why {
                NotPrepared::Refused => Signal::NotHere,
                NotPrepared::TooLarge(failure) => Signal::OpDone(Box::new(OpAnswer::failed(failure))),
            }
        }
    }
}

pub async fn on_ask(node: &Arc<Node>, txn: TxnId, group: GroupId) -> Signal {
    let Some(cluster) = node.cluster() else { return Signal::NotHere };
    let fence = cluster.hooks.safeguards.abort_fence;
    let asked = cluster.at_slot(node, group, |slot, s, cx| {
        let view = cluster.may_lead(group).ok_or(Refused)?;
        slot.ask(s, cx, txn, fence).map(|answer| (view, answer))
    });
    let Ok((view, answer)) = asked else { return Signal::NotHere };
    match answer.await {
        // Rule 9: a question is addressed to a view, and who answers has a lease.
        Ok(vote) if cluster.may_answer_for(group, view) => Signal::Voted { group, vote },
        _ => Signal::NotHere,
    }
}

pub async fn on_decide(node: &Arc<Node>, txn: TxnId, group: GroupId, outcome: Outcome) -> Signal {
    let Some(cluster) = node.cluster() else { return Signal::NotHere };
    let decided = cluster.at_slot(node, group, |slot, s, cx| {
        slot.serving().ok_or(Refused)?;
        slot.decide(s, cx, txn, outcome)
    });
    node.sessions.finished(node, txn, cluster.layout().partitions_of(group));
    let Ok(confirmed) = decided else { return Signal::NotHere };
    match confirmed.await {
        Ok(()) => Signal::Done,
        Err(_) => Signal::NotHere,
    }
}

/// Takes over what has stood prepared for too long in the groups that are led here, and clears up what dead
/// coordinators have left.
pub fn take_over(node: &Arc<Node>) {
    let Some(cluster) = node.cluster() else { return };
    let now = cluster.runtime.now();
    for group in cluster.layout().groups().map(GroupId) {
        if cluster.may_lead(group).is_none() {
            continue;
        }
        let (silent, orphans) = cluster.at_slot(node, group, |_, s, _| {
            let silent = s.table.undecided(now.saturating_sub(SILENT));
            (silent, s.table.orphans(|p| cluster.may_return(p)))
        });
        if !orphans.forget.is_empty() {
            cluster.at_slot(node, group, |slot, s, cx| slot.forget(s, cx, orphans.forget));
        }
        for found in silent.into_iter().chain(orphans.close) {
            let dead = !cluster.may_return(found.txn.process());
            begin_take_over(node, cluster, group, &found, dead);
        }
    }
}

fn begin_take_over(node: &Arc<Node>, cluster: &Arc<Cluster>, own: GroupId, found: &Undecided, dead: bool) {
    let txn = found.txn;
    // Of several participants here one is enough.
    if !cluster.closing.lock().insert(txn) {
        return;
    }
    tracing::info!(txn = txn.0, group = own.0, dead, "closes a transaction that its coordinator leaves open");
    let closing = Closing::take_over(found, own, dead, Pace::default());
    let (node, taking) = (node.clone(), cluster.clone());
    cluster.tasks.spawn_later(async move {
        close(&node, &taking, txn, closing, FuturesUnordered::new(), None, |_| ()).await;
        taking.closing.lock().remove(&txn);
    });
}

/// Decided transactions that nobody has had forgotten: their coordinators are asked, and where these are through with them the message was lost.
pub fn ask_coordinators(node: &Arc<Node>) {
    let Some(cluster) = node.cluster() else { return };
    let before = cluster.runtime.now().saturating_sub(LINGERING);
    for group in cluster.layout().groups().map(GroupId) {
        if cluster.may_lead(group).is_none() {
            continue;
        }
        let lingering = cluster.at_slot(node, group, |_, s, _| s.table.lingering(before));
        let mut by_coordinator: BTreeMap<Member, Vec<TxnId>> = BTreeMap::new();
        for txn in lingering {
            let process = txn.process();
            if let Some(coordinator) = cluster.node_of(process).map(|node| Member { node, process }) {
                by_coordinator.entry(coordinator).or_default().push(txn);
            }
        }
        for (coordinator, txns) in by_coordinator {
            let (node, asking) = (node.clone(), cluster.clone());
            cluster.tasks.spawn_later(async move {
                let open = match coordinator == asking.me() {
                    true => txns.iter().copied().filter(|t| asking.is_closing(*t) || node.registry.runs(*t)).collect(),
                    false => match asking.request(coordinator, Signal::Alive { txns: txns.clone() }, QUESTION).await {
                        Ok(Signal::Running { txns }) => txns,
                        _ => return,
                    },
                };
                let closed = txns.into_iter().filter(|txn| !open.contains(txn)).collect();
                asking.at_slot(&node, group, |slot, s, cx| slot.forget(s, cx, closed));
            });
        }
    }
}
