//! What a node needs of whatever carries its messages: the transporter in production, a seeded network in the simulator.

use rauk_types::NodeId;
use std::collections::BTreeMap;

pub trait Network: Send + Sync {
    /// Hands a message over. It may be lost, late, doubled or reordered; nothing is told. Does not block.
    fn send(&self, to: NodeId, message: Vec<u8>);

    /// The same for what must not wait behind other messages, or for what the receiver does with them; it may overtake them.
    fn send_urgent(&self, to: NodeId, message: Vec<u8>) {
        self.send(to, message);
    }

    /// Does `work`, and may keep what that sends until it ends, to send it with fewer system calls. `work` does not block.
    fn together(&self, work: &mut dyn FnMut()) {
        work();
    }

    /// Addresses (`host:port`) of all nodes, whenever they change.
    fn set_peers(&self, addresses: &BTreeMap<NodeId, String>);
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// No answer: what was asked for may have been done.
    #[error("no answer from node {0} in time")]
    TimedOut(u16),
    /// The process has ended or was taken out of the cluster: what was asked for may have been done, and died with it.
    #[error("node {0} has gone")]
    Gone(u16),
    /// The question does not fit into a message: it was not asked.
    #[error("a message of {bytes} bytes to another node is too long (the limit is {limit} bytes)")]
    TooLong { bytes: u64, limit: u64 },
}
