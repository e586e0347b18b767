//! In a cluster: where partitions are led, what the transaction has touched there, and its calls to other processes.
//!
//! With its first lock or write in a partition a transaction notes who leads it in which view. From then on only that will do: when the partition is led by another process, in another view, or by nobody that
//! may answer, what the transaction had there is gone, and it is rolled back (1213). Before that first touch a call looks for who leads the partition, and waits for somebody
//! to do so for as long as for a lock, but [`LONGEST`] at most. A scan that has begun is bound to its view as well: its position means nothing elsewhere.
//!
//! Plain reads at a snapshot, of partitions that it has not touched, are answered by a replica of this process where it may (rule 11).
//!
//! Calls of a transaction to one process are numbered. When no answer comes, the same call is sent again, under its number, for as long as the process leads the partition: it is done once, and
//! the answer is kept there for whoever asks again. To undo a statement nobody waits: what is to be undone goes with the next call to the process, or with the commit, and is done before it.
//!
//! An UPDATE or DELETE in autocommit has locked its row: that the change is made there is sure, but for errors that end the statement. So its last change is not sent by itself, but with the commit.
//!
//! To every process that was sent a call with the transaction's name the end of the transaction is told, unless the commit protocol ends it there.

use super::call::name_of;
use super::{Sending, Transaction, View};
use crate::error::NodeError;
use crate::member::commit::Touched;
use crate::member::network::PeerError;
use crate::member::signal::Signal;
use crate::member::{Cluster, Place};
use crate::node::Node;
use crate::ops::drive::{AsPrimary, AsReplica, Caller, Gate, Halt, Within, drive};
use crate::ops::operation::{Done, NameAct, Op, Scan, Seen, run};
use crate::ops::touches::Touch;
use crate::ops::wire::{self, Answer, Failure, OpAnswer, OpRequest, Reader, Shown};
use crate::table::TableInfo;
use crate::transaction::Interrupt;
use rauk_kernel::partition::TableUsage;
use rauk_kernel::{ReadAt, ScanEnd, Stop, Verdict};
use rauk_types::{GroupId, Member, PartitionId, Timestamp, TxnId};
use smallvec::SmallVec;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

/// The longest wait for somebody to lead a partition.
const LONGEST: Duration = Duration::from_secs(10);
/// Between looks at who leads a partition, if nothing is heard.
const LOOK: Duration = Duration::from_millis(20);
/// A call is sent again after this time, then after twice as long, up to [`LAST_REPEAT`].
const FIRST_REPEAT: Duration = Duration::from_millis(250);
const LAST_REPEAT: Duration = Duration::from_secs(2);
/// A process without a lease asks no longer than this.
const CUT_OFF: Duration = Duration::from_secs(2);
/// Number of a transaction's first call to a process.
pub(super) const FIRST_CALL: u32 = 1;
/// What a call may take beside its waits for locks.
const SLACK: Duration = Duration::from_secs(2);

type Visitor<'v> = dyn FnMut(Seen<'_, '_>) -> Verdict + Send + 'v;

#[derive(Default)]
pub struct Far {
    /// Where it has locks or writes, or may have: who led the partition then.
    places: SmallVec<[Touched; 4]>,
    /// Processes that have heard of it.
    peers: SmallVec<[Peer; 2]>,
    /// A write that is still to be sent.
    deferred: Option<Deferred>,
}

/// A write of a row that the transaction has locked: what comes of it is known, so nobody has to wait for it. It goes with the commit, if nothing else comes before that, and saves a round trip.
struct Deferred {
    place: Place,
    request: OpRequest,
}

struct Peer {
    member: Member,
    /// Of the last call.
    sequence: u32,
    /// What the next call undoes first.
    undo_to: Option<u32>,
}

/// Where a call goes.
struct At<'a> {
    cluster: &'a Arc<Cluster>,
    place: Place,
    partition: u16,
    /// Whether the transaction has locks or writes there.
    touched: bool,
    /// The view in which the scan began that this belongs to.
    within: Option<rauk_types::View>,
}

/// Why a call was not done.
enum Refusal {
    /// Whoever was asked does not lead the partition, or cannot answer now; nothing is left of the try.
    NotHere,
    /// What the transaction had there, or the scan's view, is gone.
    Lost,
    /// Rows have been shown already, so it cannot be tried again.
    Spent,
    /// Whoever was asked is to be asked again in a moment.
    Behind,
    Error(NodeError),
}

impl Far {
    fn place(&self, partition: u16) -> Option<Place> {
        self.places.iter().find(|t| t.partition == partition).map(|t| t.place)
    }

    pub(super) fn touch(&mut self, partition: u16, place: Place, writes: bool) {
        match self.places.iter_mut().find(|t| t.partition == partition) {
            Some(touched) => {
                touched.place = place;
                touched.wrote |= writes;
            }
            None => self.places.push(Touched { partition, place, wrote: writes, undo_to: None }),
        }
    }

    fn untouch(&mut self, partition: u16) {
        self.places.retain(|t| t.partition != partition);
    }

    /// It has made its first call there.
    pub(super) fn called(&mut self, member: Member) {
        self.peer(member).sequence = FIRST_CALL;
    }

    fn peer(&mut self, member: Member) -> &mut Peer {
        let at = self.peers.iter().position(|p| p.member == member).unwrap_or_else(|| {
            self.peers.push(Peer { member, sequence: 0, undo_to: None });
            self.peers.len() - 1
        });
        &mut self.peers[at]
    }

    /// Undoes writes with this number and above at other processes, before the next call there.
    pub fn undo_to(&mut self, number: u32) {
        self.deferred.take_if(|deferred| deferred.request.statement >= number);
        for peer in &mut self.peers {
            peer.undo_to = Some(peer.undo_to.map_or(number, |before| before.min(number)));
        }
    }

    /// Where it has something, and in which views.
    pub fn views(&self) -> impl Iterator<Item = (u16, rauk_types::View)> {
        self.places.iter().map(|t| (t.partition, t.place.view))
    }

    /// For the commit.
    pub fn places(&self) -> Vec<Touched> {
        let undo = |member: Member| self.peers.iter().find(|p| p.member == member).and_then(|p| p.undo_to);
        self.places.iter().map(|t| Touched { undo_to: undo(t.place.primary), ..*t }).collect()
    }

    /// What is noted of partitions led here: a call that was dropped halfway may have left something that only that note knows of.
    pub fn add_strays(&mut self, noted: &[Touch], me: Member) {
        for touch in noted {
            if self.place(touch.partition).is_none() {
                self.touch(touch.partition, Place { primary: me, view: touch.view }, true);
            }
        }
    }

    /// The write that is still to be sent, if the transaction has touched no other partition.
    pub fn take_last(&mut self) -> Option<OpRequest> {
        let alone = self.places.len() == 1;
        self.deferred.take_if(|_| alone).map(|deferred| OpRequest { patience: 0, ..deferred.request })
    }

    /// It would have to wait: back to where it was.
    pub fn put_last(&mut self, last: OpRequest, patience: u32) {
        if let Some(touched) = self.places.iter().find(|t| t.partition == last.partition.0) {
            // A call of its own, since the first has been made.
            let place = touched.place;
            let peer = self.peer(place.primary);
            peer.sequence += 1;
            let request = OpRequest { sequence: peer.sequence, patience, ..last };
            self.deferred = Some(Deferred { place, request });
        }
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Tells the processes that have heard of the transaction that it is over: all, or only those where the commit protocol does not end it.
    pub fn tell_end(&self, cluster: &Cluster, id: TxnId, all: bool) {
        for peer in &self.peers {
            if all || !self.places.iter().any(|t| t.place.primary == peer.member) {
                cluster.tell(peer.member, Signal::End { txn: id });
            }
        }
    }
}

impl Transaction {
    /// Does `op` on a partition wherever it is led; tells in what it was done.
    pub(super) async fn call_in_cluster(
        &mut self,
        table: &TableInfo,
        partition: u16,
        view: View,
        within: Option<Within>,
        op: &mut Op<'_>,
        visit: &mut Visitor<'_>,
    ) -> Result<(Done, Within), NodeError> {
        let node = self.node.clone();
        let Some(cluster) = node.cluster() else { unreachable!("only in a cluster") };
        let checked = cluster.hooks().safeguards.view;
        let deadline = node.runtime.now() + self.options.lock_wait_timeout.min(LONGEST);
        self.send_deferred().await?;
        let scan_view = match within {
            Some(Within::View(view)) => Some(view),
            _ => None,
        };
        if let Some(done) = self.call_on_replica(cluster, table, partition, view, within, op, visit).await? {
            return Ok(done);
        }
        loop {
            if within.is_none() {
                // Whoever tried before has shown nothing, but may have passed over rows that are others here.
                op.rewind();
            }
            let touched = self.far.as_ref().and_then(|far| far.place(partition));
            let meant = touched.map(|place| place.view).or(scan_view);
            let place = cluster.place(partition);
            let result = match place {
                Some(place) if checked && meant.is_some_and(|meant| meant != place.view) => Err(Refusal::Lost),
                None if meant.is_some() => Err(Refusal::Lost),
                None => Err(Refusal::NotHere),
                Some(place) => {
                    let at = At { cluster, place, partition, touched: touched.is_some(), within: scan_view };
                    match place.primary == cluster.me() {
                        true => self.call_here(at, table, view, op, visit).await,
                        false => self.call_there(at, table, view, op, visit).await,
                    }
                }
            };
            match result {
                Ok((done, view)) => return Ok((done, Within::View(view))),
                Err(Refusal::Error(error)) => return Err(error),
                Err(Refusal::NotHere | Refusal::Spent | Refusal::Lost) if meant.is_some() => {
                    return Err(self.moved(partition));
                }
                Err(Refusal::Spent) => return Err(NodeError::NoPrimary { partition }),
                Err(Refusal::NotHere | Refusal::Lost | Refusal::Behind) => {
                    self.check_killed()?;
                    // Nobody hears of a primary here any more.
                    if cluster.is_closed() {
                        return Err(NodeError::ShuttingDown);
                    }
                    let left = deadline.saturating_sub(node.runtime.now());
                    if left.is_zero() {
                        return Err(NodeError::NoPrimary { partition });
                    }
                    cluster.wait_index(cluster.index() + 1, left.min(LOOK)).await;
                }
            }
        }
    }

    /// Returns when the snapshot is confirmed by the primaries of all groups: no commit that begins later is in it.
    pub(super) async fn confirm_snapshot(&mut self, snapshot: Timestamp) -> Result<(), NodeError> {
        let node = self.node.clone();
        let Some(cluster) = node.cluster() else { return Ok(()) };
        let mut left: Vec<GroupId> = cluster.layout().groups().map(GroupId).collect();
        let deadline = node.runtime.now() + LONGEST;
        loop {
            let index = cluster.index();
            cluster.confirm(&node, snapshot, &mut left).await;
            let Some(group) = left.first() else { return Ok(()) };
            self.check_killed()?;
            if cluster.is_closed() {
                return Err(NodeError::ShuttingDown);
            }
            if node.runtime.now() >= deadline {
                return Err(NodeError::NoPrimary { partition: cluster.layout().partitions_of(*group).start });
            }
            cluster.wait_index(index + 1, LOOK).await;
        }
    }

    /// What it had there, or the scan's place, is gone.
    pub(super) fn moved(&mut self, partition: u16) -> NodeError {
        let error = NodeError::Moved { partition };
        self.fail(error.clone());
        error
    }

    /// A plain read at a snapshot on this process's own replica of a partition that is led elsewhere (rule 11). `None`: the primary is to be asked. Scans ask for the replica's
    /// leave, which takes a message; a read of one row would not be the cheaper for it, so the first of a transaction takes what is there, and a later one asks for all that are to come.
    #[allow(clippy::too_many_arguments)] // the parts of one call
    async fn call_on_replica(
        &mut self,
        cluster: &Arc<Cluster>,
        table: &TableInfo,
        partition: u16,
        view: View,
        within: Option<Within>,
        op: &mut Op<'_>,
        visit: &mut Visitor<'_>,
    ) -> Result<Option<(Done, Within)>, NodeError> {
        let ReadAt::Snapshot(snapshot) = view.at else { return Ok(None) };
        let begun = match within {
            None => None,
            Some(Within::Replica(contents)) => Some(contents),
            Some(_) => return Ok(None),
        };
        let touched = self.far.as_ref().is_some_and(|far| far.place(partition).is_some());
        if begun.is_none() {
            let led = cluster.place(partition).is_some_and(|place| place.primary == cluster.me());
            let may = match op {
                Op::Scan(Scan { request, .. }) if request.lock.is_some() => false,
                Op::Scan(_) | Op::LookUp(_) if !touched && !led => {
                    cluster.may_read_here(&self.node, partition, snapshot).await
                }
                Op::Read { .. } | Op::ReadMany { .. } if !touched && !led => {
                    let again = std::mem::replace(&mut self.read_far, true);
                    cluster.reads_here(partition, snapshot).is_some()
                        || again && cluster.may_read_here(&self.node, partition, snapshot).await
                }
                _ => false,
            };
            if !may {
                return Ok(None);
            }
        }
        let node = self.node.clone();
        let gate = Gate::Replica(AsReplica { cluster, snapshot, contents: begun });
        // It has nothing of its own there.
        let caller = Caller { txn: None, ..self.caller(table.schema.id, view, Some(gate)) };
        let Ran { driven, observed, shown } = run_here(&node, partition, table, &caller, op, visit).await;
        self.observed = self.observed.max(observed);
        match driven {
            Ok(done) => Ok(Some(done)),
            // The primary may still have what the snapshot needs.
            Err(Halt::NotHere | Halt::Lost | Halt::Stop(Stop::SnapshotTooOld)) if begun.is_none() && !shown => Ok(None),
            Err(Halt::NotHere | Halt::Lost) => Err(self.moved(partition)),
            Err(halt) => Err(self.halted(halt, table)),
        }
    }

    async fn call_here(
        &mut self,
        at: At<'_>,
        table: &TableInfo,
        view: View,
        op: &mut Op<'_>,
        visit: &mut Visitor<'_>,
    ) -> Result<(Done, rauk_types::View), Refusal> {
        let At { cluster, place, partition, touched, within } = at;
        let node = self.node.clone();
        let record = self.record.clone().filter(|_| touched || op.touches());
        let gate = Gate::Primary(AsPrimary {
            cluster,
            view: if touched { Some(place.view) } else { within },
            touches: record.as_ref().map(|record| &record.touches),
            touched,
        });
        let caller =
            Caller { names: op.is_name(), shared: op.locks_shared(), ..self.caller(table.schema.id, view, Some(gate)) };
        let Ran { driven, observed, shown } = run_here(&node, partition, table, &caller, op, visit).await;
        self.observed = self.observed.max(observed);
        if touched && op.writes() {
            self.far_mut().touch(partition, place, true);
        } else if let Some(record) = &record
            && !touched
        {
            let noted = record.touches.list().into_iter().find(|t| t.partition == partition);
            match (noted, &driven, &self.txn) {
                (Some(_), Err(Halt::NotHere | Halt::Lost), Some(txn)) => {
                    // Whatever was done is not seen as done: nothing of it may stay.
                    let txn = txn.id;
                    record.touches.finish([partition]);
                    node.detach(partition, move |p| p.abort(txn));
                }
                (Some(touch), ..) => {
                    self.far_mut().touch(partition, Place { view: touch.view, ..place }, op.writes());
                }
                (None, ..) => {}
            }
        }
        let driven = driven.map(|(done, within)| match within {
            Within::View(view) => (done, view),
            within => unreachable!("a primary works in a view, not in {within:?}"),
        });
        driven.map_err(|halt| match halt {
            Halt::NotHere | Halt::Lost if shown => Refusal::Spent,
            Halt::NotHere => Refusal::NotHere,
            Halt::Lost => Refusal::Lost,
            halt => Refusal::Error(self.halted(halt, table)),
        })
    }

    async fn call_there(
        &mut self,
        at: At<'_>,
        table: &TableInfo,
        view: View,
        op: &mut Op<'_>,
        visit: &mut Visitor<'_>,
    ) -> Result<(Done, rauk_types::View), Refusal> {
        let At { cluster, place, partition, touched, within } = at;
        let named = touched || op.touches();
        let txn = self.txn.as_ref().filter(|_| named).map(|txn| txn.id);
        let (mut sequence, mut undo_to) = (0, None);
        if named {
            let far = self.far_mut();
            if op.touches() {
                // Whether it was done or not, from now on it may have been.
                far.touch(partition, place, op.writes());
            }
            let peer = far.peer(place.primary);
            peer.sequence += 1;
            (sequence, undo_to) = (peer.sequence, peer.undo_to);
        }
        let meant = if touched { Some(place.view) } else { within };
        let request = OpRequest { txn, sequence, touched, undo_to, ..self.request(partition, meant, table, view, op) };
        if touched
            && self.sending == Sending::Deferred
            && undo_to.is_none()
            && matches!(op, Op::Update { .. } | Op::Delete { .. })
        {
            self.far_mut().deferred = Some(Deferred { place, request });
            return Ok((Done::Is(true), place.view));
        }
        let answer = match self.ask(cluster, place, partition, request).await {
            Ok(answer) => answer,
            Err(refusal) => {
                if !touched && matches!(refusal, Refusal::NotHere | Refusal::Lost) {
                    self.far_mut().untouch(partition);
                }
                return Err(refusal);
            }
        };
        if !cluster.knows_time(answer.observed).await {
            // This process is cut off from the group and knows less of time than who answered. Whether what was done there still stands it cannot tell.
            return Err(if named { Refusal::Error(self.moved(partition)) } else { Refusal::Behind });
        }
        self.observed = self.observed.max(answer.observed);
        if named {
            let done = match &answer.outcome {
                Err(Failure::NotHere | Failure::Behind | Failure::Lost | Failure::Late | Failure::Malformed) => false,
                Ok(_) | Err(_) => true,
            };
            let far = self.far_mut();
            if done {
                far.peer(place.primary).undo_to = None;
            }
            match &answer.outcome {
                Ok(_) if !touched => far.touch(partition, Place { view: answer.view, ..place }, op.writes()),
                Err(_) if !touched && !done => far.untouch(partition),
                _ => {}
            }
        }
        if let (Err(Failure::Malformed), Op::Scan(scan)) = (&answer.outcome, &mut *op)
            && scan.pushdown.take().is_some()
        {
            // A build that knows no programs: the same again without.
            return Err(Refusal::Behind);
        }
        if let (Err(Failure::Malformed), Op::LookUp(_) | Op::Change { .. }) = (&answer.outcome, &*op) {
            // A build that knows no lookups, or no changes.
            return Ok((Done::Unknown, answer.view));
        }
        if let (Op::Scan(_), Ok(Answer::Scanned { rows, .. } | Answer::Sifted { rows, .. }))
        | (Op::LookUp(_), Ok(Answer::LookedUp { rows, .. })) = (&*op, &answer.outcome)
        {
            self.node.registry.note_remote_scan(rows);
        }
        let outcome = answer.outcome.map_err(|failure| self.refused(failure, table))?;
        let done = show(outcome, op, table, visit).map_err(|shown| Refusal::Error(not_shown(shown, table)))?;
        Ok((done, answer.view))
    }

    /// A call that belongs to the view `meant`, without what says which of the transaction's it is.
    pub(super) fn request(
        &self,
        partition: u16,
        meant: Option<rauk_types::View>,
        table: &TableInfo,
        view: View,
        op: &Op<'_>,
    ) -> OpRequest {
        OpRequest {
            partition: PartitionId(partition),
            txn: None,
            sequence: 0,
            view: meant,
            touched: false,
            index: self.node.cluster().map_or(0, |cluster| cluster.index()),
            table: table.schema.id,
            version: table.schema.version,
            own_before: view.own_before,
            statement: self.write_number,
            snapshot: match view.at {
                ReadAt::Newest => None,
                ReadAt::Snapshot(time) => Some(time),
            },
            conflict_after: view.conflict_after,
            writes: self.weight(),
            undo_to: None,
            patience: self.patience(),
            op: wire::encode(op),
        }
    }

    /// How long a call may wait for locks, in milliseconds.
    pub(super) fn patience(&self) -> u32 {
        u32::try_from(self.options.lock_wait_timeout.as_millis()).unwrap_or(u32::MAX)
    }

    /// Sends the write that is still to be sent, and waits until it is done.
    pub(super) async fn send_deferred(&mut self) -> Result<(), NodeError> {
        let Some(Deferred { place, request }) = self.far.as_mut().and_then(|far| far.deferred.take()) else {
            return Ok(());
        };
        let node = self.node.clone();
        let Some(cluster) = node.cluster() else { unreachable!("only in a cluster") };
        let (partition, table) = (request.partition.0, request.table);
        let answer = match self.ask(cluster, place, partition, request).await {
            Ok(answer) => answer,
            Err(Refusal::Error(error)) => return Err(error),
            Err(_) => return Err(self.moved(partition)),
        };
        let Some(table) = node.tables.by_id(table) else { return Err(NodeError::StaleSchema) };
        match answer.outcome.map_err(|failure| self.refused(failure, &table)) {
            Ok(Answer::Is(true)) => Ok(()),
            Err(Refusal::Error(error)) => Err(error),
            // Its locks were there, so it can only be that they are gone.
            Ok(_) | Err(_) => Err(self.moved(partition)),
        }
    }

    /// The error that a failure elsewhere is; that what it had there is gone ends the transaction.
    pub(super) fn failure(&mut self, failure: Failure, table: &TableInfo, partition: u16) -> NodeError {
        match self.refused(failure, table) {
            Refusal::Error(error) => error,
            _ => self.moved(partition),
        }
    }

    /// What a failure elsewhere means to the transaction.
    fn refused(&mut self, failure: Failure, table: &TableInfo) -> Refusal {
        match failure {
            Failure::NotHere => return Refusal::NotHere,
            Failure::Behind => return Refusal::Behind,
            // By nobody here: whoever was asked takes this process for gone, and has ended all that the transaction had there.
            Failure::Interrupted if !self.options.interrupt.is_killed() => return Refusal::Lost,
            Failure::Deadlock => self.fail(NodeError::Deadlock),
            _ => {}
        }
        explain(failure, || name_of(table)).map_or(Refusal::Lost, Refusal::Error)
    }

    /// Sends a call until its answer has come, or the process is known to lead the partition no more.
    async fn ask(
        &self,
        cluster: &Arc<Cluster>,
        place: Place,
        partition: u16,
        request: OpRequest,
    ) -> Result<OpAnswer, Refusal> {
        let (to, txn, sequence) = (place.primary, request.txn, request.sequence);
        let interrupt = &*self.options.interrupt;
        let begun = self.node.runtime.now();
        let deadline = begun + self.options.lock_wait_timeout.saturating_add(SLACK);
        let signal = Signal::Op(Box::new(request));
        self.node.registry.remote_operations.fetch_add(1, Ordering::Relaxed);
        let mut repeat = FIRST_REPEAT;
        loop {
            let asked = cluster.request(to, signal.clone(), repeat);
            match until_killed(asked, interrupt).await {
                None => {
                    if let Some(txn) = txn {
                        cluster.tell(to, Signal::Interrupt { txn, sequence });
                    }
                    return Err(Refusal::Error(NodeError::Interrupted));
                }
                Some(Ok(Signal::OpDone(answer))) => return Ok(*answer),
                Some(Ok(_)) | Some(Err(PeerError::Gone(_))) => return Err(Refusal::NotHere),
                Some(Err(PeerError::TooLong { bytes, limit })) => {
                    return Err(Refusal::Error(NodeError::TooLarge { bytes, limit }));
                }
                // It may have been done, and died with the view.
                Some(Err(PeerError::TimedOut(_))) if cluster.place(partition) != Some(place) => {
                    return Err(Refusal::NotHere);
                }
                // Nobody else answers this process either: it is cut off, and what it knows of primaries is old.
                Some(Err(PeerError::TimedOut(_)))
                    if !cluster.has_lease() && self.node.runtime.now() >= begun + CUT_OFF =>
                {
                    return Err(Refusal::NotHere);
                }
                Some(Err(PeerError::TimedOut(_))) if self.node.runtime.now() >= deadline => {
                    return Err(Refusal::Error(NodeError::NoPrimary { partition }));
                }
                Some(Err(PeerError::TimedOut(_))) => repeat = (repeat * 2).min(LAST_REPEAT),
            }
        }
    }

    pub(super) fn far_mut(&mut self) -> &mut Far {
        self.far.get_or_insert_default()
    }
}

/// What came of an operation on a partition of this process.
struct Ran {
    driven: Result<(Done, Within), Halt>,
    /// The newest commit that it has learnt of.
    observed: Timestamp,
    /// Whether the visitor has seen anything.
    shown: bool,
}

async fn run_here(
    node: &Node,
    partition: u16,
    table: &TableInfo,
    caller: &Caller<'_>,
    op: &mut Op<'_>,
    visit: &mut Visitor<'_>,
) -> Ran {
    let (mut observed, mut shown) = (Timestamp::ZERO, false);
    let id = table.schema.id;
    let driven = drive(node, partition, op.class(), caller, &mut observed, |p, access| {
        run(op, id, p, access, &mut |seen: Seen<'_, '_>| {
            shown = true;
            visit(seen)
        })
    })
    .await;
    Ran { driven, observed, shown }
}

/// What a failure elsewhere is called here; `None`: what the transaction had there is gone.
pub fn explain(failure: Failure, name: impl Fn() -> String) -> Option<NodeError> {
    Some(match failure {
        Failure::NotHere | Failure::Behind | Failure::Lost | Failure::Late => return None,
        Failure::Deadlock => NodeError::Deadlock,
        Failure::NameDeadlock => NodeError::NameDeadlock,
        Failure::LockTimeout => NodeError::LockTimeout,
        Failure::NoWait => NodeError::NoWait,
        Failure::Changed => NodeError::Changed { table: name() },
        Failure::SnapshotTooOld => NodeError::SnapshotTooOld { table: name() },
        Failure::MemoryFull { limit } => NodeError::MemoryFull { table: name(), limit },
        Failure::Interrupted => NodeError::Interrupted,
        Failure::ReadOnly => NodeError::ReadOnly { table: name() },
        Failure::StaleSchema => NodeError::StaleSchema,
        Failure::Malformed => malformed(),
        Failure::TooLarge { bytes, limit } => NodeError::TooLarge { bytes, limit },
    })
}

fn malformed() -> NodeError {
    NodeError::Fatal("nodes of the cluster do not understand each other: are their versions the same?".to_string())
}

/// Why rows that have come were not shown to the end.
pub fn not_shown(shown: Shown, table: &TableInfo) -> NodeError {
    match shown {
        Shown::Changed => NodeError::Changed { table: name_of(table) },
        Shown::Malformed => malformed(),
        Shown::All | Shown::Stopped => unreachable!("these are no failures"),
    }
}

/// `None`: killed before.
async fn until_killed<T>(mut future: crate::runtime::BoxFuture<T>, interrupt: &Interrupt) -> Option<T> {
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending if interrupt.poll(cx.waker()) => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    })
    .await
}

/// Shows what has come to the visitor.
pub(super) fn show(answer: Answer, op: &mut Op<'_>, table: &TableInfo, visit: &mut Visitor<'_>) -> Result<Done, Shown> {
    let all = |shown: Shown| if shown == Shown::All { Ok(Done::Seen) } else { Err(shown) };
    match (answer, op) {
        (Answer::Seen(rows), Op::Read { .. } | Op::ReadLocked { .. } | Op::Change { .. }) if rows.count() == 1 => {
            all(Reader::new(rows).show_points(table, visit))
        }
        (Answer::Is(true), Op::Change { .. }) => Ok(Done::Is(true)),
        (Answer::Seen(rows), Op::ReadMany { keys, .. } | Op::TakeMany { keys, .. })
            if (1..=keys.len()).contains(&rows.count()) =>
        {
            all(Reader::new(rows).show_points(table, visit))
        }
        (Answer::Seen(rows), Op::LockMany { keys, .. }) if rows.count() <= keys.len() => {
            all(Reader::new(rows).show_keys(visit))
        }
        (Answer::Seen(rows), Op::LockRange { .. }) if rows.count() == 0 => Ok(Done::Seen),
        (Answer::Is(yes), Op::LockAbsence { .. } | Op::Insert { .. } | Op::Update { .. } | Op::Delete { .. }) => {
            Ok(Done::Is(yes))
        }
        (Answer::Count(done), Op::InsertMany { rows, .. } | Op::UpdateMany { rows, .. })
            if done as usize <= rows.len() =>
        {
            Ok(Done::Count(done))
        }
        (Answer::Count(done), Op::DeleteMany { keys, .. }) if done as usize <= keys.len() => Ok(Done::Count(done)),
        (Answer::Scanned { rows, position, finished }, Op::ScanKeys(scan)) => {
            scan.position = position;
            all(Reader::new(rows).show_keys(visit))?;
            Ok(Done::Scanned(if finished { ScanEnd::Finished } else { ScanEnd::More }))
        }
        (Answer::Scanned { rows, position, finished }, Op::Scan(scan)) => {
            scan.position = position;
            scan.ahead = Reader::new(rows);
            scan.finished = finished;
            scan.show_ahead(table, visit).map(Done::Scanned)
        }
        (Answer::Sifted { rows, position, finished, result }, Op::Scan(scan)) => {
            if !scan.pushdown.is_some_and(|pushdown| pushdown.take(&result)) {
                return Err(Shown::Malformed);
            }
            scan.position = position;
            scan.ahead = Reader::new(rows);
            scan.finished = finished;
            scan.show_ahead(table, visit).map(Done::Scanned)
        }
        (Answer::LookedUp { rows, position, finished }, Op::LookUp(lookup)) => {
            lookup.position = position;
            match Reader::new(rows).show_found(lookup.spans.len(), table, visit) {
                Shown::All if finished => Ok(Done::Scanned(ScanEnd::Finished)),
                Shown::All | Shown::Stopped => Ok(Done::Scanned(ScanEnd::More)),
                shown => Err(shown),
            }
        }
        (Answer::Usage { rows, row_bytes, hash_bytes, ordered_bytes, history_bytes }, Op::Usage) => {
            Ok(Done::Usage(TableUsage { rows, row_bytes, hash_bytes, ordered_bytes, history_bytes }))
        }
        (Answer::Is(true), Op::Name { .. }) => Ok(Done::Is(true)),
        (Answer::Owner(owner), Op::Name { act: NameAct::Look, .. }) => Ok(Done::Owner(owner)),
        _ => Err(Shown::Malformed),
    }
}
