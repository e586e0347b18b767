//! Operations of transactions on partitions that other nodes lead: the same calls as on partitions here, as messages.
//!
//! A transaction runs on the node of its session. What it asks of a partition is an [`operation::Op`]. If the partition is led here, the operation is run at once
//! ([`drive`]); else it goes to the partition's node ([`wire`]), which runs it for the transaction's session there ([`serve`], [`sessions`]) and answers with rows and typed errors.
//! The calling side (where a partition is, what the transaction has touched, repetitions) is `crate::transaction::far`.
//!
//! | file | what |
//! |---|---|
//! | [`operation`] | operations, and how one is run on a partition |
//! | [`change`] | changes of a row that are made where it is |
//! | [`drive`] | running until it ends: waits, views, leases |
//! | [`wire`] | operations and answers as bytes, and the checks of what comes |
//! | [`serve`], [`sessions`], [`touches`] | transactions of other nodes here |
//! | [`deadlock`] | cycles through several nodes |
//!
//! Left out: a row that was sent and that the visitor then skips keeps its lock until the transaction ends, also at READ COMMITTED. To give
//! it back the partition would have to tell a lock that this scan has taken from one that the transaction had there before. Rows that the scan's program drops
//! ([`crate::scan::pushdown`]) are not sent and keep no lock.

pub mod change;
pub mod deadlock;
pub mod drive;
pub mod operation;
pub mod serve;
pub mod sessions;
#[cfg(test)]
pub(crate) mod tests;
pub mod touches;
pub mod wire;

pub use wire::{OpAnswer, OpRequest};

use crate::member::signal::Signal;
use crate::node::Node;
use rauk_types::{Member, TxnId};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Between looks for transactions of which nothing was heard for long.
const SWEEP: Duration = Duration::from_millis(500);

/// A wait over nodes, for the search for deadlocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    pub waiting: TxnId,
    pub blocking: TxnId,
    /// What the waiting one has written: the victim is who has written least.
    pub writes: u64,
}

fn wire_edges(waits: Vec<(TxnId, Vec<TxnId>, u64)>) -> Vec<Edge> {
    let edges = waits.into_iter().flat_map(|(waiting, blockers, writes)| {
        blockers.into_iter().map(move |blocking| Edge { waiting, blocking, writes })
    });
    edges.take(deadlock::MOST).collect()
}

/// Does what another process asks for or tells, and gives the answer to a question. Signals that are not of this module are passed over. May wait for locks: run as a task of its own.
pub async fn receive(node: &Arc<Node>, from: Member, signal: Signal) -> Option<Signal> {
    let own = |txn: TxnId| txn.process() == from.process;
    match signal {
        Signal::Op(request) => Some(Signal::OpDone(Box::new(serve::serve(node, from, &request).await))),
        Signal::End { txn } if own(txn) => {
            node.sessions.end(node, txn);
            None
        }
        Signal::Interrupt { txn, sequence } if own(txn) => {
            if let Some(session) = node.sessions.get(txn) {
                session.kill(sequence);
            }
            None
        }
        Signal::Alive { mut txns } => {
            txns.retain(|txn| node.registry.runs(*txn));
            Some(Signal::Running { txns })
        }
        Signal::Waits { edges } => {
            node.search.heard(from.process, edges, node.runtime.now());
            None
        }
        _ => None,
    }
}

/// Begins the work that goes on while the node is a member: the search for deadlocks, and the questions about transactions that have fallen silent. It ends with the node.
pub fn start(node: &Arc<Node>) {
    let weak = Arc::downgrade(node);
    node.runtime.spawn("deadlocks", Box::pin(search(weak.clone())));
    node.runtime.spawn("sessions", Box::pin(sweep(weak)));
    crate::names::start(node);
}

async fn search(node: Weak<Node>) {
    let mut told = false;
    while let Some(node) = pause(&node, deadlock::ROUND).await {
        deadlock::step(&node, &mut told);
    }
}

async fn sweep(node: Weak<Node>) {
    while let Some(node) = pause(&node, SWEEP).await {
        ask_about_idle(&node).await;
    }
}

/// `None`: the node has ended.
async fn pause(node: &Weak<Node>, time: Duration) -> Option<Arc<Node>> {
    let sleep = node.upgrade()?.runtime.sleep(time);
    sleep.await;
    node.upgrade().filter(|node| node.check_running().is_ok())
}

/// Asks coordinators about sessions of which nothing was heard for long; those that they do not know are over.
async fn ask_about_idle(node: &Arc<Node>) {
    let Some(cluster) = node.cluster() else { return };
    let ask = |(coordinator, txns): (Member, Vec<TxnId>)| async move {
        if !cluster.may_return(coordinator.process) {
            // Its last call began while this process heard that it has ended.
            txns.into_iter().for_each(|txn| node.sessions.end(node, txn));
            return;
        }
        let question = Signal::Alive { txns: txns.clone() };
        let Ok(Signal::Running { txns: running }) =
            cluster.request(coordinator, question, Duration::from_secs(1)).await
        else {
            return;
        };
        node.sessions.used(&running, node.runtime.now());
        for txn in txns.into_iter().filter(|txn| !running.contains(txn)) {
            node.sessions.end(node, txn);
        }
    };
    // One that does not answer keeps nobody else waiting.
    futures::future::join_all(node.sessions.idle(node.runtime.now()).into_iter().map(ask)).await;
}
