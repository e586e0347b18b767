//! The side of the node that leads the partition: one request, done once, answered with typed errors.
//!
//! A scan or a lookup gives rows until it has [`MOST_BYTES`] of them, as many as the asker's visitor may want, or has looked at [`MOST_SLICES`] slices. It may carry a program that drops rows here
//! ([`crate::scan::pushdown`]): those give their lock back. The visitor runs at the asker's, so a locking scan keeps the lock on every row that it has sent,
//! also on those that the visitor then skips (as InnoDB does): it sends no more of them than the visitor may want. A row that has changed after the transaction's snapshot is
//! sent with a mark, its newest version and the snapshot's (see `rauk_kernel::partition::scan`); it is a conflict (1020) only if the visitor keeps one of them, and is not locked.

use super::change::Change;
use super::drive::{AsPrimary, Caller, Gate, Halt, Within, drive};
use super::operation::{Done, Op, Seen, run};
use super::sessions::{Session, Turn};
use super::wire::{self, Answer, Failure, Gatherer, OpAnswer, OpRequest};
use crate::error::NodeError;
use crate::executor::Class;
use crate::member::Cluster;
use crate::node::Node;
use crate::scan::pushdown::{Fate, RowProgram};
use crate::table::TableInfo;
use crate::transaction::Interrupt;
use rauk_kernel::{Access, NAMES, Partition, ReadAt, ScanEnd, Stop, Verdict};
use rauk_types::{Member, Timestamp, View};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of rows after which a slice ends.
const MOST_BYTES: usize = 256 << 10;
/// Entries visited in one hold, keys read in one request.
const MOST_ENTRIES: u32 = 256;
pub const MOST_KEYS: usize = 256;
/// Rows that are inserted in one request, in one hold.
pub const MOST_ROWS: usize = 128;
/// Ranges looked up in one request.
pub const MOST_SPANS: usize = 1024;
/// Slices of a scan in one request: its answer has to come before the asker takes the request for lost.
const MOST_SLICES: usize = 64;
/// And so long: it is asked again after 250 ms.
const MOST_TIME: Duration = Duration::from_millis(50);
/// How long a request waits for the group state that its sender has.
const CATCH_UP: Duration = Duration::from_millis(200);

/// An operation of a transaction that `from` runs.
pub async fn serve(node: &Arc<Node>, from: Member, request: &OpRequest) -> OpAnswer {
    let refused = |failure| OpAnswer { view: View::default(), observed: Timestamp::ZERO, outcome: Err(failure) };
    let Some(cluster) = node.cluster() else { return refused(Failure::NotHere) };
    if cluster.index() < request.index && !cluster.wait_index(request.index, CATCH_UP).await {
        return refused(Failure::Behind);
    }
    let partition = request.partition.0;
    if partition >= node.partition_count() {
        return refused(Failure::Malformed);
    }
    let newest = request.snapshot.max(request.conflict_after).unwrap_or_default();
    if !cluster.knows_time(newest).await {
        return refused(Failure::Behind);
    }
    if cluster.may_serve(partition).is_none() {
        return refused(Failure::NotHere);
    }
    let Some(txn) = request.txn else {
        return perform(node, cluster, request, None).await;
    };
    if txn.process() != from.process {
        return refused(Failure::Malformed);
    }
    if !cluster.is_up(from.process) {
        return refused(Failure::NotHere);
    }
    let Some(session) = node.sessions.enter(txn, from, !request.touched, node.runtime.now()) else {
        return refused(Failure::Lost);
    };
    match session.turn(request.sequence, cluster.hooks().safeguards.dedupe).await {
        Turn::Late => return refused(Failure::Late),
        Turn::Kept(answer) => {
            // It was made under a lease that may have ended since.
            let still = answer.outcome.is_err() || cluster.may_answer(partition, answer.view);
            return if still { *answer } else { refused(Failure::NotHere) };
        }
        Turn::Go => {}
    }
    let running = Running { session: &session, node };
    if !session.is_next_statement(request.statement) {
        return refused(Failure::Malformed);
    }
    if let Some(number) = request.undo_to {
        node.sessions.undo(node, &session, number).await;
    }
    if !request.touched && cluster.hooks().safeguards.dedupe && is_stray(&session, partition) {
        // An earlier call has left something here of which the asker never heard: it took the call as not done, and makes it again.
        session.touches.finish([partition]);
        node.on_partition(partition, Class::Resolve, |p| p.abort(txn)).await;
    }
    let answer = perform(node, cluster, request, Some(&session)).await;
    running.end(answer.clone());
    if answer.outcome == Err(Failure::Deadlock) {
        // The whole transaction falls: what it has here goes at once.
        node.sessions.end(node, txn);
    }
    answer
}

/// A call that has its turn. When it is dropped half done, the next gets the turn, and a repetition gets no answer.
struct Running<'a> {
    session: &'a Session,
    node: &'a Node,
}

impl Running<'_> {
    fn end(self, answer: OpAnswer) {
        self.session.done(Some(answer), self.node.runtime.now());
        std::mem::forget(self);
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.session.done(None, self.node.runtime.now());
    }
}

/// Whether the transaction has something in the partition that is not the commit protocol's. What is prepared is not for a call to undo, however late it comes.
fn is_stray(session: &Session, partition: u16) -> bool {
    session.touches.list().iter().any(|t| t.partition == partition && !t.prepared)
}

async fn perform(node: &Arc<Node>, cluster: &Cluster, request: &OpRequest, session: Option<&Session>) -> OpAnswer {
    let mut observed = Timestamp::ZERO;
    let mut view = View::default();
    let outcome = attempt(node, cluster, request, session, &mut observed, &mut view).await;
    if matches!(outcome, Err(Failure::NotHere | Failure::Lost))
        && let Some(session) = session
        && !request.touched
        && is_stray(session, request.partition.0)
    {
        // It may have been done, or begun, before the lease was found to have ended or the view to have changed: the asker takes it as not done.
        let (partition, id) = (request.partition.0, session.txn.id);
        session.touches.finish([partition]);
        node.detach(partition, move |p| p.abort(id));
    }
    OpAnswer { view, observed, outcome }
}

async fn attempt(
    node: &Arc<Node>,
    cluster: &Cluster,
    request: &OpRequest,
    session: Option<&Session>,
    observed: &mut Timestamp,
    view: &mut View,
) -> Result<Answer, Failure> {
    let partition = request.partition.0;
    let table = match request.table {
        NAMES => Some(node.names.table().clone()),
        id => node.tables.by_id(id),
    };
    let table = table.filter(|t| t.schema.version == request.version);
    let info = &table.ok_or(Failure::StaleSchema)?;
    let table = &**info;
    let mut op = wire::decode(&request.op, table, |bucket| node.partition_of(bucket) == partition)
        .filter(|op| session.is_some() || !op.touches())
        .ok_or(Failure::Malformed)?;
    let mut most = usize::MAX;
    match &mut op {
        Op::Scan(scan) | Op::ScanKeys(scan) => {
            scan.slice = scan.slice.min(MOST_ENTRIES);
            most = scan.most.max(1) as usize;
        }
        Op::ReadMany { keys, .. } | Op::LockMany { keys, .. } | Op::TakeMany { keys, .. } if keys.len() > MOST_KEYS => {
            return Err(Failure::Malformed);
        }
        Op::InsertMany { rows, .. } | Op::UpdateMany { rows, .. } if rows.len() > MOST_ROWS => {
            return Err(Failure::Malformed);
        }
        Op::DeleteMany { keys, .. } if keys.len() > MOST_ROWS => return Err(Failure::Malformed),
        Op::LookUp(lookup) if lookup.spans.len() > MOST_SPANS => return Err(Failure::Malformed),
        Op::LookUp(lookup) => {
            lookup.slice = lookup.slice.min(MOST_ENTRIES);
            if lookup.locks {
                most = 1;
            }
        }
        Op::Change { program, change, .. } => *change = Change::read(node, program, info),
        _ => {}
    }
    let mut program = match &op {
        Op::Scan(scan) => node.program(scan.program, &table.schema),
        _ => None,
    };
    let notes = session.filter(|_| op.touches() || request.touched);
    let alone = Interrupt::default();
    let mut caller = Caller {
        txn: session.map(|s| &s.txn),
        table: table.schema.id,
        own_before: request.own_before,
        statement: request.statement,
        at: request.snapshot.map_or(ReadAt::Newest, ReadAt::Snapshot),
        conflict_after: request.conflict_after,
        writes: request.writes,
        patience: Duration::from_millis(request.patience.into()),
        interrupt: session.map_or(&alone, |s| &s.interrupt),
        shared: op.locks_shared(),
        names: op.is_name(),
        gate: Some(Gate::Primary(AsPrimary {
            cluster,
            view: request.view,
            touches: notes.map(|s| &s.touches),
            touched: request.touched,
        })),
    };
    let mut rows = Gatherer::default();
    let mut slices = 0;
    let begun = node.runtime.now();
    loop {
        slices += 1;
        let class = op.class();
        let work = |p: &mut Partition, access: &mut Access<'_>| {
            gather(&mut op, table, p, access, &mut program, &mut rows, most)
        };
        let driven = drive(node, partition, class, &caller, observed, work).await;
        let (done, within) = driven.map_err(explain)?;
        let Within::View(now) = within else { return Err(Failure::NotHere) };
        *view = now;
        let in_time = || slices < MOST_SLICES && node.runtime.now().saturating_sub(begun) < MOST_TIME;
        if done == Done::Scanned(ScanEnd::More) && !is_full(&rows, most) && in_time() {
            if caller.interrupt.is_killed() {
                return Err(Failure::Interrupted);
            }
            // The slices of a request belong together.
            if let Some(Gate::Primary(gate)) = &mut caller.gate {
                gate.view = Some(now);
                gate.touched |= gate.touches.is_some();
            }
            continue;
        }
        let rows = rows.finish();
        return Ok(match (done, op, program) {
            (Done::Scanned(end), Op::Scan(scan), Some(program)) => Answer::Sifted {
                rows,
                position: scan.position,
                finished: end == ScanEnd::Finished,
                result: program.finish().into(),
            },
            (done, op, _) => Answer::new(done, rows, op),
        });
    }
}

fn is_full(rows: &Gatherer, most: usize) -> bool {
    rows.count() >= most || rows.size() >= MOST_BYTES
}

/// Does the operation and copies what its visitor would see, of a scan what its program sends.
pub(super) fn gather(
    op: &mut Op<'_>,
    table: &TableInfo,
    p: &mut Partition,
    access: &mut Access<'_>,
    program: &mut Option<Box<dyn RowProgram>>,
    rows: &mut Gatherer,
    most: usize,
) -> Result<Done, Stop> {
    run(op, table.schema.id, p, access, &mut |seen: Seen<'_, '_>| {
        if let (Seen::Scanned(row), Some(program)) = (&seen, &mut *program)
            && program.visit(&row.row) == Fate::Drop
        {
            return Verdict::Skip;
        }
        let changed = matches!(seen, Seen::Scanned(row) if row.changed);
        rows.push(seen);
        match (changed, is_full(rows, most)) {
            (false, false) => Verdict::Keep,
            (false, true) => Verdict::KeepAndStop,
            // The asker's visitor decides whether that is a conflict.
            (true, false) => Verdict::Skip,
            (true, true) => Verdict::SkipAndStop,
        }
    })
}

fn explain(halt: Halt) -> Failure {
    match halt {
        Halt::NotHere => Failure::NotHere,
        Halt::Lost => Failure::Lost,
        Halt::Unsettled => Failure::Behind,
        Halt::Wait(NodeError::Deadlock) => Failure::Deadlock,
        Halt::Wait(NodeError::NameDeadlock) => Failure::NameDeadlock,
        Halt::Wait(NodeError::Interrupted) => Failure::Interrupted,
        Halt::Wait(_) => Failure::LockTimeout,
        Halt::Stop(stop) => match stop {
            Stop::WouldWait => Failure::NoWait,
            Stop::Changed => Failure::Changed,
            Stop::SnapshotTooOld => Failure::SnapshotTooOld,
            Stop::MemoryFull { limit } => Failure::MemoryFull { limit },
            Stop::ReadOnly => Failure::ReadOnly,
            Stop::StaleSchema => Failure::StaleSchema,
            Stop::Committing | Stop::Prepared(_) | Stop::Wait(_) | Stop::Duplicate | Stop::NoRow => {
                unreachable!("handled before")
            }
        },
    }
}
