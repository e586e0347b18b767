//! How openraft is configured for Rauk, and short names for its types.

use crate::group::Description;
use crate::machine::{Outcome, Proposal};
use rauk_manage::group::ClusterConfig;
use serde::{Deserialize, Serialize};
use std::io::Cursor;
use std::sync::Arc;

openraft::declare_raft_types!(
    pub Types:
        D = Proposal,
        R = Outcome,
        NodeId = u64,
        Node = openraft::EmptyNode,
        SnapshotData = Cursor<Vec<u8>>,
);

pub type Raft = openraft::Raft<Types>;
pub type Entry = openraft::Entry<Types>;
pub type LogId = openraft::LogId<u64>;
pub type Vote = openraft::Vote<u64>;
pub type SnapshotMeta = openraft::SnapshotMeta<u64, openraft::EmptyNode>;
pub type StoredMembership = openraft::StoredMembership<u64, openraft::EmptyNode>;
pub type StorageError = openraft::StorageError<u64>;
pub type Metrics = openraft::RaftMetrics<u64, openraft::EmptyNode>;

/// Who this directory is: written before it takes part in anything.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    pub node: u64,
    pub cluster: [u8; 16],
    /// The cluster's name.
    pub name: String,
    /// Where its last process was.
    #[serde(default)]
    pub address: String,
    /// Of the node that made the cluster: what is to be in it, should it not be yet.
    #[serde(default)]
    pub founding: Option<Box<Founding>>,
}

/// The first two commands of a cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Founding {
    pub config: ClusterConfig,
    #[serde(default)]
    pub adopted: Option<Arc<str>>,
    pub own: Description,
}
