//! What DDL statements left behind in the group is ended: their client went away in the middle, or their process died.
//!
//! An intent or job of this process for which no statement stands any more is ended by this process; one of a process that is not up, by the process with the
//! smallest number among those that are up, so that one does it and not all. All these commands may come late or twice: what is gone is not ended again.

use super::intents::State;
use crate::member::Cluster;
use crate::runtime::BoxFuture;
use rauk_manage::Command;
use rauk_manage::group::{Group, GroupCommand};
use rauk_types::ProcessId;
use std::sync::Arc;

/// What the search needs to know of the cluster.
pub(super) struct Surroundings {
    group: Arc<Group>,
    me: ProcessId,
    /// Whether this process ends what dead ones have left.
    smallest: bool,
}

impl Surroundings {
    pub fn of(cluster: &Cluster) -> Surroundings {
        let me = cluster.me().process;
        let smallest = cluster.processes().iter().map(|m| m.process).min() == Some(me);
        Surroundings { group: cluster.group(), me, smallest }
    }

    #[cfg(test)]
    pub fn made_up(group: Arc<Group>, me: ProcessId, smallest: bool) -> Surroundings {
        Surroundings { group, me, smallest }
    }

    fn is_left(&self, owner: Option<ProcessId>, own: bool) -> bool {
        match owner {
            Some(owner) if owner == self.me => !own,
            Some(owner) => self.smallest && !self.group.is_up(owner),
            None => self.smallest,
        }
    }

    /// The next thing to end.
    pub fn next(&self, state: &State) -> Option<GroupCommand> {
        let intent = self.group.intents.iter().find(|(n, i)| self.is_left(Some(i.owner), state.is_own(**n)));
        if let Some((&number, _)) = intent {
            return Some(GroupCommand::EndIntent { number });
        }
        let job = self.group.catalog.jobs().find(|j| self.is_left(j.owner, state.is_own_job(j.id)))?;
        tracing::warn!(what = job.what, "undoing a DDL statement that was cut off");
        Some(GroupCommand::Catalog { command: Command::AbortJob { job: job.id }, intent: None })
    }
}

/// Proposes it; what fails is tried again when the caller looks again.
pub(super) fn propose(cluster: &Arc<Cluster>, command: GroupCommand) -> BoxFuture<()> {
    let proposed = cluster.propose(command);
    Box::pin(async move {
        if let Err(error) = proposed.await {
            tracing::debug!(%error, "the manage group could not be reached to end what a DDL statement left behind");
        }
    })
}
