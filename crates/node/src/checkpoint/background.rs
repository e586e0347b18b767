//! What goes on beside statements: flushing each epoch, looking how full memory is, claiming in the superblocks how far the log is synced, collecting old versions, and beginning checkpoints.
//!
//! The tasks hold the node weakly: when the last user of a database is gone, so are they.

use crate::error::NodeError;
use crate::executor::Class;
use crate::node::Node;
use crate::pressure;
use crate::runtime::Runtime;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Epoch of relaxed durability, and the pace of collection.
const EPOCH: Duration = Duration::from_millis(50);
/// The superblocks' claim of the redo log lags by this and one write.
const CLAIM: Duration = Duration::from_millis(40);
/// Versions thrown away in one hold of a partition.
const COLLECT: usize = 128;
/// Holds of one partition for collection in one epoch.
const COLLECT_ROUNDS: usize = 64;
/// After a checkpoint that failed.
const RETRY: Duration = Duration::from_secs(2);

pub fn start(node: &Arc<Node>) {
    let runtime = node.runtime.clone();
    let (weak, r) = (Arc::downgrade(node), runtime.clone());
    runtime.spawn("epoch", Box::pin(async move { run_epochs(&weak, &*r).await }));
    let (weak, r) = (Arc::downgrade(node), runtime.clone());
    runtime.spawn("superblock", Box::pin(async move { run_claims(&weak, &*r).await }));
    let (weak, r) = (Arc::downgrade(node), runtime.clone());
    runtime.spawn("checkpoint", Box::pin(async move { run_checkpoints(&weak, &*r).await }));
    crate::ends::start(node);
    crate::scrub::start(node);
}

fn running(node: &Weak<Node>) -> Option<Arc<Node>> {
    node.upgrade().filter(|n| !n.stopping.load(Ordering::Relaxed))
}

async fn run_epochs(weak: &Weak<Node>, runtime: &dyn Runtime) {
    loop {
        runtime.sleep(EPOCH).await;
        let Some(node) = running(weak) else { return };
        if !node.is_fsync() && node.log.durable_lsn() < node.log.end_lsn() && node.group.flush_all().await.is_err() {
            return;
        }
        collect(&node).await;
        pressure::look(&node);
    }
}

/// Writes nothing while the log rests.
async fn run_claims(weak: &Weak<Node>, runtime: &dyn Runtime) {
    loop {
        runtime.sleep(CLAIM).await;
        let Some(node) = running(weak) else { return };
        if let Err(error) = node.log.claim() {
            node.fatal(&error.to_string());
            return;
        }
    }
}

async fn collect(node: &Arc<Node>) {
    for partition in 0..node.partition_count() {
        for _ in 0..COLLECT_ROUNDS {
            let horizon = node.fresh_horizon();
            let collected = node.on_partition(partition, Class::Background, |p| p.collect(horizon, COLLECT)).await;
            if collected < COLLECT {
                break;
            }
        }
    }
}

async fn run_checkpoints(weak: &Weak<Node>, runtime: &dyn Runtime) {
    let mut pause = EPOCH;
    loop {
        runtime.sleep(pause).await;
        pause = EPOCH;
        let Some(node) = running(weak) else { return };
        let grown = node.log.end_lsn().0.saturating_sub(node.checkpoint.redo_start().0);
        if grown < node.config.checkpoint_redo_bytes {
            continue;
        }
        match super::run(&node, false).await {
            Ok(()) => {}
            Err(error @ (NodeError::Fatal(_) | NodeError::UnknownOutcome(_))) => {
                tracing::error!(%error, "checkpoint failed");
                return;
            }
            Err(error) => {
                tracing::warn!(%error, "checkpoint failed; the one before stays in force, and it is tried again");
                pause = RETRY;
            }
        }
    }
}
