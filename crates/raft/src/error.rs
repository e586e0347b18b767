//! Why a process cannot start, make a cluster or join one: with the cause and the way out.

use rauk_log::LogError;
use serde::{Deserialize, Serialize};

#[derive(Debug, thiserror::Error)]
pub enum RaftError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("cannot start the manage group's thread: {0}")]
    Thread(std::io::Error),
    #[error("the manage group cannot start: {0}")]
    Raft(String),
    /// The directory belongs to a cluster already.
    #[error(
        "this data directory belongs to the cluster {name:?} already: start it as a member of that cluster, or with an empty directory"
    )]
    Member { name: String },
    #[error(
        "the cluster at {address} is named {found:?}, this node is to be of {expected:?}: correct the cluster's name, or the addresses to join"
    )]
    OtherCluster { address: String, expected: String, found: String },
    #[error("the node at {address} runs Rauk {theirs}, this is {ours}: all nodes of a cluster run the same version")]
    OtherVersion { address: String, theirs: String, ours: String },
    /// The cluster's reason: an address that is taken, for instance.
    #[error("the cluster refused this node: {0}")]
    Refused(String),
    /// A directory that was a member and has forgotten it.
    #[error(
        "this data directory is that of node {node}, but its part of the manage group is gone: start the node with an empty directory, and remove node {node} from the cluster"
    )]
    StateLost { node: u16 },
    /// The node was taken out of the cluster while it was away.
    #[error(
        "this data directory was node {node}, which has been removed from the cluster: start the node with an empty directory"
    )]
    Removed { node: u16 },
    /// Two processes with the same promises to Raft would break them.
    #[error(
        "node {node} of this cluster runs at {address}: this data directory is a copy of that one's; start the node with an empty directory"
    )]
    Running { node: u16, address: String },
    /// Nobody of those asked answered as a member of a cluster with a leader, in time.
    #[error("no cluster reached: {0}")]
    Unreachable(String),
    /// The cluster has taken this node in, but its leader does not come through to it.
    #[error(
        "the cluster has taken this node in as {node}, but nothing of it comes in here: can the other nodes reach this one at {address}?"
    )]
    NotHeard { node: u16, address: String },
    /// The leader has found that this directory lacks what its node acknowledged.
    #[error(
        "this data directory is an older copy of node {node}'s: its part of the control plane ends before entry {acknowledged}, which the node has acknowledged, so that it may also have forgotten a vote; put the newest directory back, or start with an empty one and remove node {node} from the cluster (ALTER CLUSTER FORGET NODE {node})"
    )]
    OlderCopy { node: u16, acknowledged: u64 },
    /// Raft has ended here, and why.
    #[error("{0}")]
    Ended(String),
    #[error("this process is in no cluster yet")]
    NoCluster,
    #[error("this process is shutting down")]
    Closed,
}

/// What a member says to a process that asks to join, when it does not take it in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JoinRefused {
    OtherCluster { name: String },
    Refused(String),
    StateLost { node: u16 },
}
