//! The redo log's durability: whoever has appended says so, one task flushes, and slots hear how far it is.
//!
//! Where nobody waits for the disk (durability `replicated`), the log is flushed for cuts at once and for everything
//! else now and then. What follows a decision over several partitions (the outcome, that it is forgotten) is flushed
//! with what comes next, or at the next tick: its client has its answer.
//!
//! While one flush runs, all that is appended gathers for the next: group commit over all partitions of the node.

use super::Cluster;
use super::events::Event;
use crate::node::Node;
use rauk_log::Lsn;
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[derive(Default)]
pub struct Flushing {
    wanted: AtomicU64,
    soon: AtomicU64,
    event: Event,
    closed: AtomicBool,
}

impl Flushing {
    pub fn want(&self, lsn: Lsn) {
        self.wanted.fetch_max(lsn.0, Ordering::SeqCst);
        self.event.fire();
    }

    /// Somebody wants it on disk, and does not wait: [`Flushing::now_and_then`] sees to it.
    pub fn want_soon(&self, lsn: Lsn) {
        self.soon.fetch_max(lsn.0, Ordering::SeqCst);
    }

    pub fn now_and_then(&self) {
        let soon = self.soon.load(Ordering::SeqCst);
        if soon > self.wanted.load(Ordering::SeqCst) {
            self.want(Lsn(soon));
        }
    }

    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.event.fire();
    }
}

impl Cluster {
    pub(super) async fn run_flushing(node: Weak<Node>) {
        loop {
            let Some(strong) = node.upgrade() else { return };
            let Some(cluster) = strong.cluster() else { return };
            let flushing = &cluster.flushing;
            if flushing.closed.load(Ordering::SeqCst) {
                return;
            }
            let number = flushing.event.number();
            let wanted = flushing.wanted.load(Ordering::SeqCst);
            if strong.log.durable_lsn().0 < wanted && strong.group.flush_all().await.is_err() {
                // The node stops: whoever waits for this waits for ever, and is never told what is not so.
                return;
            }
            // Also when nothing was to be flushed: a slot may have noted its record only after it was flushed together with another's.
            cluster.tasks.here(|| cluster.on_durable(strong.log.durable_lsn()));
            flushing.event.after(number).await;
        }
    }
}
