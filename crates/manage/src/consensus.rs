//! What the rest needs of the manage group's consensus: openraft in production (crate `raft`), a simulated one in the simulator.

use crate::group::{Answer, Group, GroupCommand};
use rauk_types::NodeId;
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProposeError {
    /// Nothing has happened, and nothing will: nobody who could carry the command out has got it.
    #[error("the manage group has no leader, or it cannot be reached ({0})")]
    Unavailable(String),
    /// The command was handed over and no answer came: it was carried out, or will be, or never. Commands are made so that trying again is safe.
    #[error("the manage group has not answered, and may carry it out yet ({0})")]
    Unknown(String),
    /// Nothing has happened: an entry of the manage group's log takes fewer bytes.
    #[error("a command of {bytes} bytes to the manage group is too large (the limit is {limit} bytes)")]
    TooLarge { bytes: u64, limit: u64 },
    #[error("this process is shutting down")]
    Closed,
}

/// Told of every change on each process, in order, after the command was applied to the local [`Group`]. Calls must not block.
pub trait Watcher: Send + Sync {
    fn on_applied(&self, group: &Arc<Group>);
}

pub trait Consensus: Send + Sync {
    /// Proposes a command, wherever the leader is; resolves when it has been applied *on this process* too. Gives up after `timeout`: the error says whether it can still be carried out then.
    fn propose(&self, command: GroupCommand, timeout: Duration) -> BoxFuture<Result<Answer, ProposeError>>;

    /// Has `watcher` told of every later state, as long as it lives.
    fn watch(&self, watcher: std::sync::Weak<dyn Watcher>);

    /// The state as applied here.
    fn group(&self) -> Arc<Group>;

    /// The term in which this process leads, as far as it knows.
    fn leading(&self) -> Option<u64>;

    /// Resolves when a majority has followed this leader after the call: the index of the last committed command. `None`: it does not lead.
    fn confirm(&self) -> BoxFuture<Option<u64>>;

    /// Who leads, as far as is known here.
    fn leader(&self) -> Option<NodeId>;

    /// The nodes of which a majority must run, as far as is known here; of a change that is under way, those of both
    /// sides. Empty: not known.
    fn voters(&self) -> BTreeSet<NodeId>;
}
