//! Work on a partition that is led here, made again until it ends: for the transactions of this node and for those of others alike.
//!
//! In a cluster each try asks, under the partition's guard, whether this process leads it in the view that the caller means, and notes there that the transaction has touched it: so what a
//! change of the view finds noted is all that has been done in the old one. Before an answer is given it is asked again (rule 15). All tries are made in the view (or contents) of the first:
//! a scan that has waited goes on where it was, and what it had locked before belongs to that view.

use super::touches::Touches;
use crate::commit::group::yield_once;
use crate::error::NodeError;
use crate::executor::Class;
use crate::locks::waits::{Outcome, Wanted};
use crate::member::Cluster;
use crate::node::Node;
use crate::transaction::Interrupt;
use rauk_kernel::{Access, Partition, ReadAt, Stop, TxnRef};
use rauk_types::{PartitionId, TableId, Timestamp, TxnId, View};
use std::future::{Future, poll_fn};
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

/// Looks at a commit in the way before it pauses.
const TURNS: u32 = 64;
const PAUSE: Duration = Duration::from_millis(1);
/// Between looks whether a view has settled.
const SETTLE: Duration = Duration::from_millis(20);

/// Who calls, what it sees, and how long it waits.
pub struct Caller<'a> {
    /// `None`: a plain read of one that has not touched the partition.
    pub txn: Option<&'a TxnRef>,
    pub table: TableId,
    pub own_before: u32,
    pub statement: u32,
    pub at: ReadAt,
    pub conflict_after: Option<Timestamp>,
    /// Rows that it has written.
    pub writes: u64,
    /// For each wait.
    pub patience: Duration,
    pub interrupt: &'a Interrupt,
    /// The locks that it asks for are shared ones.
    pub shared: bool,
    /// The work is about a lock on a name: it waits until the view has settled, and a deadlock ends it alone.
    pub names: bool,
    /// In a cluster.
    pub gate: Option<Gate<'a>>,
}

/// Whether the work may be done here.
pub enum Gate<'a> {
    Primary(AsPrimary<'a>),
    Replica(AsReplica<'a>),
}

pub struct AsPrimary<'a> {
    pub cluster: &'a Cluster,
    /// The only view in which it makes sense; `None`: any.
    pub view: Option<View>,
    /// Where it is noted that the transaction touches the partition.
    pub touches: Option<&'a Touches>,
    /// Whether it has touched it before: then that must be noted.
    pub touched: bool,
}

/// A plain read at a snapshot on a replica that may answer it by itself (rule 11).
pub struct AsReplica<'a> {
    pub cluster: &'a Cluster,
    pub snapshot: Timestamp,
    /// Of a scan that has begun: the contents that it began in.
    pub contents: Option<u64>,
}

/// In what the work was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within {
    /// On a node that is alone.
    Here,
    /// By the primary of this view.
    View(View),
    /// On this process's replica, in these of its contents.
    Replica(u64),
}

/// Why the work was not done.
#[derive(Debug, PartialEq, Eq)]
pub enum Halt {
    Stop(Stop),
    /// A wait ended badly: deadlock, timeout, KILL.
    Wait(NodeError),
    /// This process does not lead the partition, or may not answer for it at the moment.
    NotHere,
    /// The view has changed: what the transaction had here is gone.
    Lost,
    /// The view is too young for names.
    Unsettled,
}

impl Gate<'_> {
    /// Under the partition's guard.
    fn enter(&self, partition: u16) -> Result<Within, Halt> {
        match self {
            Gate::Primary(gate) => {
                let view = gate.cluster.may_serve(partition).ok_or(Halt::NotHere)?;
                let checked = gate.cluster.hooks().safeguards.view;
                let meant = gate.view.is_none_or(|meant| meant == view);
                match gate.touches {
                    _ if checked && !meant => Err(Halt::Lost),
                    Some(touches) if !touches.enter(partition, view, checked && gate.touched) => Err(Halt::Lost),
                    _ => Ok(Within::View(view)),
                }
            }
            Gate::Replica(gate) => match gate.cluster.reads_here(partition, gate.snapshot) {
                Some(contents) if gate.contents.is_none_or(|begun| begun == contents) => Ok(Within::Replica(contents)),
                Some(_) => Err(Halt::Lost),
                None => Err(Halt::NotHere),
            },
        }
    }

    /// Before the answer.
    fn leave(&self, partition: u16, within: Within) -> Result<(), Halt> {
        match (self, within) {
            (Gate::Primary(gate), Within::View(view)) => match gate.cluster.may_answer(partition, view) {
                true => Ok(()),
                false => Err(gate.cluster.may_serve(partition).map_or(Halt::NotHere, |_| Halt::Lost)),
            },
            (Gate::Replica(gate), _) => {
                gate.cluster.answers_snapshot(partition, gate.snapshot);
                Ok(())
            }
            (Gate::Primary(_), _) => unreachable!("a primary works in a view"),
        }
    }
}

/// Does `work` on the partition, again at once while a commit in the way is being decided, again after the grant when it must wait for a lock. Tells in what it was
/// done. `observed` is raised by whatever it learned.
pub async fn drive<R: Send>(
    node: &Node,
    partition: u16,
    class: Class,
    caller: &Caller<'_>,
    observed: &mut Timestamp,
    mut work: impl FnMut(&mut Partition, &mut Access<'_>) -> Result<R, Stop> + Send,
) -> Result<(R, Within), Halt> {
    let mut first = None;
    let mut turns = 0;
    loop {
        if caller.txn.is_some() && node.cluster().is_some_and(|cluster| cluster.is_behind(partition)) {
            Box::pin(await_followers(node, partition, class, caller)).await;
            if caller.interrupt.is_killed() {
                return Err(Halt::Wait(NodeError::Interrupted));
            }
        }
        let (result, seen, granted) = node.partitions[partition as usize]
            .with(class, |p| {
                let entered = match &caller.gate {
                    None => Ok(Within::Here),
                    Some(gate) => gate.enter(partition),
                };
                if let (true, Ok(Within::View(view))) = (caller.names, &entered)
                    && !node.names.is_settled(partition, *view, node.runtime.now())
                {
                    return (Err(Halt::Unsettled), Timestamp::ZERO, Vec::new());
                }
                let within = match entered {
                    Ok(within) if *first.get_or_insert(within) == within => within,
                    Ok(_) => return (Err(Halt::Lost), Timestamp::ZERO, Vec::new()),
                    Err(halt) => return (Err(halt), Timestamp::ZERO, Vec::new()),
                };
                let mut access = Access {
                    txn: caller.txn,
                    own_before: caller.own_before,
                    statement: caller.statement,
                    at: caller.at,
                    conflict_after: caller.conflict_after,
                    horizon: node.recent_horizon(),
                    observed: Timestamp::ZERO,
                };
                if let Some(txn) = caller.txn
                    && p.has_ends()
                    && !p.go_on_with(txn.id)
                {
                    // What it undoes here is undone before it goes on.
                    return (Err(Halt::Stop(Stop::Committing)), access.observed, node.leave(partition, p));
                }
                let mut result = work(p, &mut access);
                if let Err(Stop::Wait(blockers)) = &mut result {
                    let txn = caller.txn.expect("only a known transaction can wait");
                    let (blockers, now) = (std::mem::take(blockers), node.runtime.now());
                    let wanted =
                        Wanted { partition: PartitionId(partition), table: caller.table, shared: caller.shared };
                    node.waits.enter(txn.id, wanted, blockers, caller.writes, now);
                }
                (result.map(|r| (r, within)).map_err(Halt::Stop), access.observed, node.leave(partition, p))
            })
            .await;
        node.waits.grant(&granted);
        *observed = seen.max(*observed);
        match result {
            Ok((r, within)) => {
                return match &caller.gate {
                    Some(gate) => gate.leave(partition, within).map(|()| (r, within)),
                    None => Ok((r, within)),
                };
            }
            Err(Halt::Stop(Stop::Committing)) => {
                turns += 1;
                if caller.interrupt.is_killed() {
                    return Err(Halt::Wait(NodeError::Interrupted));
                }
                // Decided elsewhere, and about to be known here: at once, or after a message that was lost.
                match turns % TURNS {
                    0 => node.runtime.sleep(PAUSE).await,
                    _ => yield_once().await,
                }
            }
            Err(Halt::Stop(Stop::Prepared(txn))) => {
                wait_decided(node, partition, txn, caller).await.map_err(Halt::Wait)?
            }
            Err(Halt::Stop(Stop::Wait(_))) => {
                let id = caller.txn.expect("only a known transaction can wait").id;
                Box::pin(wait_for_lock(node, partition, id, caller)).await.map_err(Halt::Wait)?;
            }
            Err(Halt::Unsettled) => {
                if caller.interrupt.is_killed() {
                    return Err(Halt::Wait(NodeError::Interrupted));
                }
                node.runtime.sleep(SETTLE).await;
            }
            Err(halt) => return Err(halt),
        }
    }
}

/// Before a call of a large transaction: waits as long as the replicas of the partition are far behind.
async fn await_followers(node: &Node, partition: u16, class: Class, caller: &Caller<'_>) {
    let (Some(cluster), Some(txn)) = (node.cluster(), caller.txn) else { return };
    if !cluster.has_caught_up(node, partition)
        && node.partitions[partition as usize].with(class, |p| p.has_chunks(txn.id)).await
    {
        cluster.await_followers(node, partition, caller.interrupt).await;
    }
}

/// Waits until a transaction that is prepared in the partition is decided.
async fn wait_decided(node: &Node, partition: u16, txn: TxnId, caller: &Caller<'_>) -> Result<(), NodeError> {
    let mut decided = Box::pin(node.wait_decided(partition, txn));
    let mut timeout = None;
    poll_fn(|cx| {
        if decided.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        if caller.interrupt.poll(cx.waker()) {
            return Poll::Ready(Err(NodeError::Interrupted));
        }
        let timeout = timeout.get_or_insert_with(|| node.runtime.sleep(caller.patience));
        timeout.as_mut().poll(cx).map(|()| Err(NodeError::LockTimeout))
    })
    .await
}

/// How a lock wait ended.
enum Waited {
    Lock(Outcome),
    TimedOut,
    Killed,
}

/// Waits for the lock that the transaction has just been queued for.
async fn wait_for_lock(node: &Node, partition: u16, id: TxnId, caller: &Caller<'_>) -> Result<(), NodeError> {
    let entered = LeaveOnDrop(node, id);
    let begun = node.runtime.now();
    node.waits.detect(id);
    let mut timeout = None;
    let waited = poll_fn(|cx| {
        if let Some(outcome) = node.waits.poll(id, cx.waker()) {
            return Poll::Ready(Waited::Lock(outcome));
        }
        if caller.interrupt.poll(cx.waker()) {
            return Poll::Ready(Waited::Killed);
        }
        let timeout = timeout.get_or_insert_with(|| node.runtime.sleep(caller.patience));
        timeout.as_mut().poll(cx).map(|()| Waited::TimedOut)
    })
    .await;
    drop(entered);
    caller.interrupt.note_wait(node.runtime.now().saturating_sub(begun));
    let error = match waited {
        Waited::Lock(Outcome::Granted) => return Ok(()),
        Waited::Lock(Outcome::Deadlock) if caller.names => NodeError::NameDeadlock,
        Waited::Lock(Outcome::Deadlock) => NodeError::Deadlock,
        Waited::Killed => NodeError::Interrupted,
        Waited::TimedOut => {
            node.registry.lock_timeouts.fetch_add(1, Ordering::Relaxed);
            NodeError::LockTimeout
        }
    };
    node.on_partition(partition, Class::Resolve, |p| p.cancel_wait(id)).await;
    Err(error)
}

struct LeaveOnDrop<'a>(&'a Node, TxnId);

impl Drop for LeaveOnDrop<'_> {
    fn drop(&mut self) {
        self.0.waits.leave(self.1, self.0.runtime.now());
    }
}
