//! Snapshot reads on a replica of this node, without its primary answering each (rule 11).
//!
//! Before the first read at a snapshot the primary *confirms* it: nothing commits there at or below it any more but what is in the stream already. Once that much of the stream is here, this replica answers every
//! snapshot up to that one by itself, for as long as its process lives and its contents are not replaced by a copy; waiting only for rows that are prepared at or below the snapshot. It needs no lease.

use super::Cluster;
use super::signal::Signal;
use crate::node::Node;
use rauk_cluster::Role;
use rauk_types::{PartitionId, Timestamp};
use std::time::Duration;

const QUESTION: Duration = Duration::from_millis(100);
/// The stream is waited for so long; then the primary is read.
const STREAM: Duration = Duration::from_millis(100);

impl Cluster {
    /// Whether a plain read at `snapshot` may be made on this node's own replica of the partition. `false`: ask the primary.
    pub async fn may_read_here(&self, node: &Node, partition: u16, snapshot: Timestamp) -> bool {
        match self.confirmed_here(partition, snapshot) {
            Here::Yes => return true,
            Here::No => return false,
            Here::Unconfirmed => {}
        }
        let Some(place) = self.place(partition) else { return false };
        let question = Signal::Confirm { partition: PartitionId(partition), snapshot };
        let Ok(Signal::Confirmed { view, position }) = self.request(place.primary, question, QUESTION).await else {
            return false;
        };
        let end = self.runtime.now() + STREAM;
        loop {
            let number = self.slot(partition).decided.number();
            let reached = self
                .with_slot(node, partition, |_, s, p, _| {
                    if s.is_restoring() || s.replica.view() != view || s.replica.role() != Role::Follower {
                        return None;
                    }
                    // Entries of an older view at these positions may be others.
                    let last = s.replica.last();
                    if last.view != view || last.position < position {
                        return Some(false);
                    }
                    s.confirmed = s.confirmed.max(snapshot);
                    p.raise_max_read(snapshot);
                    Some(true)
                })
                .await;
            match reached {
                Some(false) if self.runtime.now() < end => {
                    self.timeout(Duration::from_millis(2), self.slot(partition).decided.after(number)).await;
                }
                other => return other == Some(true),
            }
        }
    }

    /// The same without asking anybody; asked under the partition's guard, it is so for the time of the hold. Gives how often the contents have been replaced.
    pub fn reads_here(&self, partition: u16, snapshot: Timestamp) -> Option<u64> {
        match self.confirmed_here(partition, snapshot) {
            Here::Yes => Some(self.slot(partition).state.lock().copies),
            Here::No | Here::Unconfirmed => None,
        }
    }

    fn confirmed_here(&self, partition: u16, snapshot: Timestamp) -> Here {
        let state = self.slot(partition).state.lock();
        match state.replica.role() {
            Role::Follower if state.is_restoring() => Here::No,
            Role::Follower if snapshot <= state.confirmed => Here::Yes,
            Role::Follower if state.is_fresh() => Here::Unconfirmed,
            _ => Here::No,
        }
    }
}

enum Here {
    Yes,
    Unconfirmed,
    No,
}
