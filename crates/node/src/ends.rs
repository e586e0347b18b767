//! What is left to do when somebody leaves a partition.
//!
//! * Ends of large transactions are under way there, or statements of many rows are being undone
//!   (`rauk_kernel::partition::ends`): a task of the node does them, a slice in a hold, and all others pass in between.
//! * In a cluster, what a large transaction has written, or has taken back, goes into the stream in the same hold
//!   ([`crate::member::chunks`]).

use crate::commit::group::yield_once;
use crate::database::Database;
use crate::executor::Class;
use crate::member::events::Event;
use crate::node::Node;
use parking_lot::Mutex;
use rauk_kernel::Partition;
use rauk_types::TxnId;
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

/// Partitions where ends are under way. When it is dropped, so is who works on them.
#[derive(Default)]
pub struct Ends(Arc<State>);

#[derive(Default)]
struct State {
    partitions: Mutex<BTreeSet<u16>>,
    changed: Event,
}

impl Ends {
    fn want(&self, partition: u16) {
        if self.0.partitions.lock().insert(partition) {
            self.0.changed.fire();
        }
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.changed.fire();
    }
}

impl Node {
    /// Called last in a hold of a partition. Gives those who were granted a lock, to be woken outside of it.
    #[inline]
    pub fn leave(&self, partition: u16, p: &mut Partition) -> Vec<TxnId> {
        if p.has_ends() || p.wants_sending() {
            self.see_to(partition, p);
        }
        p.take_granted()
    }

    /// Completes what is under way in a partition now, in slices; not what begins meanwhile.
    pub async fn finish_ends(&self, partition: u16) {
        let mut newest = None;
        loop {
            let slice = |p: &mut Partition| {
                let newest = *newest.get_or_insert_with(|| p.newest_end());
                let is_left = p.has_ends_upto(newest);
                if is_left {
                    p.go_on(self.recent_horizon());
                }
                is_left
            };
            if !self.on_partition(partition, Class::Background, slice).await {
                return;
            }
            yield_once().await;
        }
    }

    #[cold]
    fn see_to(&self, partition: u16, p: &mut Partition) {
        if let Some(cluster) = self.cluster() {
            cluster.send_chunks(self, partition, p);
        }
        if p.has_ends() {
            self.ends.want(partition);
        }
    }
}

impl Database {
    /// Completes the ends of transactions that are under way: what is committed is in its place then, and counted.
    #[doc(hidden)]
    pub async fn finish_ends(&self) {
        for partition in 0..self.node.partition_count() {
            self.node.finish_ends(partition).await;
        }
    }
}

/// Works on the ends of large transactions as long as the node is there.
pub fn start(node: &Arc<Node>) {
    let (weak, state) = (Arc::downgrade(node), node.ends.0.clone());
    node.runtime.spawn("ends", Box::pin(run(weak, state)));
}

async fn run(weak: Weak<Node>, state: Arc<State>) {
    loop {
        let number = state.changed.number();
        let Some(node) = weak.upgrade().filter(|node| node.check_running().is_ok()) else { return };
        let partitions = std::mem::take(&mut *state.partitions.lock());
        for partition in &partitions {
            // Who leaves says so if there is more.
            let slice = |p: &mut Partition| p.go_on(node.recent_horizon());
            node.on_partition(*partition, Class::Background, slice).await;
        }
        drop(node);
        if partitions.is_empty() {
            state.changed.after(number).await;
        }
    }
}
