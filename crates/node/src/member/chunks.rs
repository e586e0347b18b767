//! Large transactions: what they write goes into the group's stream while they run (rules 63–65).
//!
//! Whoever leaves a partition in which a transaction has written [`CHUNK_BYTES`] since its last chunk makes one of it,
//! under the guard: so chunks are in the stream in the order in which they were made, and before anything that others
//! do to these rows. It goes to the log and to the replicas with what comes next; nobody waits for it. What was undone
//! of chunks is told in the same way, in the hold in which it was undone.
//!
//! The commit then has only what is in no chunk ([`super::written`]), and the replicas have nearly all of the
//! transaction beside their rows.
//!
//! *Bounds.* The chunks of a group that stand are [`STANDING_CHUNK_BYTES`] at most, and count in the node's memory limit
//! with those of which the stream does not know yet for sure that they are taken back
//! ([`TxnTable::kept_chunk_bytes`](rauk_cluster::TxnTable::kept_chunk_bytes)). Beyond that no more are made, and a
//! transaction whose rest does not fit into an entry is refused (error 1114). A call of a transaction that has chunks
//! begins when the replicas have followed so far ([`Cluster::await_followers`]).

use super::{Cluster, LONGEST_ENTRY, slot::State};
use crate::member::written::add;
use crate::node::Node;
use crate::transaction::Interrupt;
use bytes::Bytes;
use rauk_kernel::Partition;
use rauk_log::record::CommitBuilder;
use rauk_types::TxnId;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A transaction makes a chunk of what it has written when that is so much.
pub const CHUNK_BYTES: u64 = 256 << 10;
/// Bytes of chunks that stand in one group ([`Config::standing_chunk_bytes`](crate::Config::standing_chunk_bytes)).
pub const STANDING_CHUNK_BYTES: usize = 512 << 20;
/// Bytes of the stream that not all replicas have, before a large transaction goes on
/// ([`Config::unstable_bytes`](crate::Config::unstable_bytes)).
pub const UNSTABLE_BYTES: u64 = 16 << 20;
/// Between looks whether the replicas have followed.
const PAUSE: Duration = Duration::from_millis(1);

impl Cluster {
    /// In a hold of the partition, last.
    pub fn send_chunks(&self, node: &Node, partition: u16, p: &mut Partition) {
        let group = self.group_of(partition);
        let mut leaves = false;
        for back in p.take_taken_back() {
            let (_, has_actions) =
                self.enter_slot(node, group, |slot, s, cx| slot.take_back(s, cx, back.txn, partition, back.left));
            leaves |= has_actions;
        }
        for txn in p.take_full() {
            leaves |= self.send_chunk(node, partition, p, txn);
        }
        if leaves {
            // Messages do not leave under a guard.
            self.courier.fire();
        }
    }

    fn send_chunk(&self, node: &Node, partition: u16, p: &mut Partition, txn: TxnId) -> bool {
        let mut builder = CommitBuilder::default();
        let number = p.collect_chunk(txn, &mut |table, write| add(node, &mut builder, table, write));
        let Some(number) = number else { return false };
        if builder.is_empty() {
            // Rows that have come and gone.
            p.drop_chunk(txn);
            return false;
        }
        let writes = Bytes::copy_from_slice(builder.payload());
        let most = node.config.standing_chunk_bytes;
        let fits = |s: &State| writes.len() <= LONGEST_ENTRY && s.table.chunk_bytes() + writes.len() <= most;
        let (is_sent, has_actions) = self.enter_slot(node, self.group_of(partition), |slot, s, cx| {
            let is_sent = fits(s) && slot.send_chunk(s, cx, txn, (partition, number), writes.clone());
            if s.replica.unstable_bytes() > node.config.unstable_bytes {
                slot.is_behind.store(true, Ordering::Relaxed);
            }
            is_sent
        });
        if !is_sent {
            p.drop_chunk(txn);
        }
        has_actions
    }

    /// Whether a large transaction has found the replicas of this partition far behind.
    #[inline]
    pub fn is_behind(&self, partition: u16) -> bool {
        self.slot_of(partition).is_behind.load(Ordering::Relaxed)
    }

    /// Whether the replicas of a partition that is led here are not far behind any more.
    pub fn has_caught_up(&self, node: &Node, partition: u16) -> bool {
        let slot = self.slot_of(partition);
        let has = slot.state.lock().replica.unstable_bytes() <= node.config.unstable_bytes;
        if has {
            slot.is_behind.store(false, Ordering::Relaxed);
        }
        has
    }

    /// Waits until the replicas of a partition that is led here are not far behind any more, before a large transaction
    /// writes more there; as long as this process leads, and nobody interrupts the call.
    pub async fn await_followers(&self, node: &Node, partition: u16, interrupt: &Interrupt) {
        while self.may_serve(partition).is_some() && !interrupt.is_killed() && !self.has_caught_up(node, partition) {
            self.runtime.sleep(PAUSE).await;
        }
    }
}
