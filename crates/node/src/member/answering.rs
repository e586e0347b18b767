//! What other processes of the cluster ask of this one, and tell it.
//!
//! A message that is not for this very process, or is from one that has ended, is dropped (rule 21). What may have to wait becomes a task; it is begun on the thread that received the message, and most end there.

use super::alone::Asked;
use super::signal::{Envelope, Exchange, Signal};
use super::slot::Happening;
use super::written::{Written, are_parts};
use super::{Cluster, FOLLOW, Place, alone, commit, replica_reads, report};
use crate::node::Node;
use crate::ops;
use rauk_cluster::Outcome;
use rauk_manage::group::Life;
use rauk_types::{GroupId, Member, PartitionId, Timestamp, TxnId};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long somebody who asks whether the group was followed is kept waiting.
const REACHED: Duration = Duration::from_millis(150);

/// A message has arrived.
pub fn on_message(node: &Arc<Node>, message: &[u8]) {
    let Some(envelope) = Envelope::decode(message) else {
        tracing::debug!("a message from another node cannot be read");
        return;
    };
    let Some(cluster) = node.cluster() else { return };
    // What is apart stays apart: with a beat this thread does nothing that belongs to other work.
    let tasks = if envelope.signal.is_beat() { &cluster.beats } else { &cluster.tasks };
    tasks.here(|| receive(node, envelope));
}

pub fn receive(node: &Arc<Node>, envelope: Envelope) {
    let Some(cluster) = node.cluster() else { return };
    if cluster.is_closed() || envelope.cluster != cluster.id || !is_for_us(cluster, &envelope) {
        return;
    }
    let Envelope { from, catalog, exchange, signal, .. } = envelope;
    match exchange {
        Exchange::Answer(number) => cluster.questions.answer(number, from, signal),
        Exchange::OneWay => on_signal(node, cluster, from, catalog, None, signal),
        Exchange::Request(number) => on_signal(node, cluster, from, catalog, Some(number), signal),
    }
}

fn is_for_us(cluster: &Cluster, envelope: &Envelope) -> bool {
    if !cluster.hooks.safeguards.incarnation {
        return envelope.to.node == cluster.me.node;
    }
    if envelope.to != cluster.me {
        return false;
    }
    // A process that is newer than what is known here is no stranger: this process lags behind.
    let group = cluster.group.read();
    group.nodes.get(&envelope.from.node).is_none_or(|known| {
        envelope.from.process > known.process || envelope.from.process == known.process && known.life == Life::Up
    })
}

fn on_signal(
    node: &Arc<Node>,
    cluster: &Arc<Cluster>,
    from: Member,
    catalog: u64,
    number: Option<u64>,
    signal: Signal,
) {
    match signal {
        Signal::Replica { group, message } => {
            // What it says about tables that are not known here yet is sent again.
            let known = cluster.followed_catalog.load(Ordering::Acquire) >= catalog;
            if known && is_group(cluster, group) {
                cluster.poke(group, Happening::Message { from, message });
            }
        }
        Signal::Locked { intent, process } => cluster.catalog.on_locked(intent, process),
        Signal::Filled { job, process, full } => cluster.catalog.on_filled(job, process, full),
        Signal::Full { limit } => cluster.rooms.on_full(cluster.runtime.now(), from.process, limit),
        Signal::Forget { group, txns } => {
            if is_group(cluster, group) {
                cluster.at_slot(node, group, |slot, s, cx| slot.forget(s, cx, txns));
            }
        }
        Signal::Digests { partition, entry, digests } => {
            if is_partition(cluster, partition) {
                cluster.on_digests(from, partition.0, entry, digests);
            }
        }
        Signal::Stopped { group, view, copy } => {
            if is_group(cluster, group) {
                cluster.on_stopped(node, from, group, view, copy);
            }
        }
        Signal::Damaged { partition, table } => {
            if is_partition(cluster, partition) {
                cluster.on_damaged(from, partition.0, table);
            }
        }
        signal @ (Signal::End { .. } | Signal::Interrupt { .. } | Signal::Waits { .. }) => {
            let node = node.clone();
            let tasks = cluster.tasks.clone();
            tasks.spawn(async move {
                ops::receive(&node, from, signal).await;
            });
        }
        question => {
            let Some(number) = number else { return };
            let node = node.clone();
            let tasks = if question.is_beat() { cluster.beats.clone() } else { cluster.tasks.clone() };
            tasks.spawn(async move {
                let Some(cluster) = node.cluster() else { return };
                let answer = answer(&node, cluster, from, question).await;
                cluster.post(from, Exchange::Answer(number), answer);
            });
        }
    }
}

async fn answer(node: &Arc<Node>, cluster: &Arc<Cluster>, from: Member, question: Signal) -> Signal {
    match question {
        Signal::Alive { mut txns } => {
            txns.retain(|txn| cluster.is_closing(*txn) || node.registry.runs(*txn));
            Signal::Running { txns }
        }
        Signal::Report { wanted } => Signal::Reported { report: Box::new(report::make(node, wanted)) },
        Signal::ListSessions { user } => node.list_sessions(user.as_deref()),
        Signal::KillSession { id, query_only, user } => node.kill_session(id, query_only, user.as_deref()),
        Signal::Heartbeat { index, oldest, wanted } => cluster.on_heartbeat(from, index, oldest, wanted).await,
        Signal::Cut { time, groups } if cluster.knows_time(time).await => cluster.on_cut(node, time, &groups).await,
        Signal::DrawTime => cluster.on_draw_time().await,
        Signal::Skip { counter, value } => {
            cluster.catalog.blocks.skip(counter, value);
            Signal::Done
        }
        Signal::Reached { index } => match cluster.wait_index(index, REACHED).await {
            true => Signal::Done,
            false => Signal::NotHere,
        },
        Signal::Follow { index } => match cluster.wait_index(index, FOLLOW).await {
            true => Signal::Done,
            false => Signal::NotHere,
        },
        Signal::Verify { txn, partition, view } if is_partition(cluster, partition) && is_own(from, txn) => {
            commit::on_verify(node, txn, partition.0, view).await
        }
        Signal::Prepare { txn, group, view, parts, participants, seen }
            if is_own(from, txn)
                && are_parts(cluster, group, &parts)
                && are_participants(cluster, &participants, group)
                && cluster.knows_time(seen).await =>
        {
            let written = Written { group, place: Place { primary: cluster.me, view }, parts: parts.into() };
            commit::on_prepare(node, txn, written, participants, seen).await
        }
        Signal::Commit { txn, group, view, parts, seen, last }
            if are_parts(cluster, group, &parts) && is_own(from, txn) && cluster.knows_time(seen).await =>
        {
            let asked = Asked { txn, group, view, parts: &parts, seen, last: last.as_deref() };
            alone::on_commit(node, from, asked).await
        }
        Signal::Ask { txn, group } if is_group(cluster, group) => commit::on_ask(node, txn, group).await,
        Signal::Decide { txn, group, outcome }
            if is_group(cluster, group) && cluster.knows_time(time_of(outcome)).await =>
        {
            commit::on_decide(node, txn, group, outcome).await
        }
        Signal::Confirm { groups, snapshot }
            if groups.iter().all(|group| is_group(cluster, *group)) && cluster.knows_time(snapshot).await =>
        {
            replica_reads::on_confirm(node, cluster, &groups, snapshot)
        }
        other => ops::receive(node, from, other).await.unwrap_or(Signal::NotHere),
    }
}

fn is_partition(cluster: &Cluster, partition: PartitionId) -> bool {
    cluster.layout().partitions().contains(&partition.0)
}

fn is_group(cluster: &Cluster, group: GroupId) -> bool {
    cluster.layout().groups().contains(&group.0)
}

/// A transaction is prepared, and its locks are given back, only for the process that runs it.
fn is_own(from: Member, txn: TxnId) -> bool {
    txn.process() == from.process
}

/// Whether a list of participants is one: sorted, of groups that there are, this one among them.
fn are_participants(cluster: &Cluster, participants: &[GroupId], group: GroupId) -> bool {
    participants.windows(2).all(|pair| pair[0] < pair[1])
        && participants.iter().all(|participant| is_group(cluster, *participant))
        && participants.contains(&group)
}

fn time_of(outcome: Outcome) -> Timestamp {
    match outcome {
        Outcome::Committed(time) => time,
        Outcome::Aborted => Timestamp::ZERO,
    }
}
