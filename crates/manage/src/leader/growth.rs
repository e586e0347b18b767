//! Which replication group is to be split: a pure function of the control plane's state.
//!
//! A cluster that grows ([`ClusterConfig::grows`](crate::group::ClusterConfig::grows)) begins with few groups, since a
//! transaction within one group is one log entry. Each data node is to lead two at least ([`A_NODE`]), so that all
//! nodes work, and what a failed one led is spread over others. And no group is twice as large as another, for placement
//! counts groups ([`super::placement`]). So groups split when nodes come, as long as they have partitions to give. Groups
//! do not merge when nodes go: their number costs little, and the node may come back.
//!
//! The group with the most partitions is split in the middle, when it is at rest: led, with all its replicas in-sync
//! and up. One at a time: splits take some 10 ms of service from a group.

use super::placement::DataNodes;
use crate::group::{Group, ReplicationGroup};
use rauk_types::{GroupId, NodeId};
use std::cmp::Reverse;

/// Groups that a data node is to lead.
pub const A_NODE: usize = 2;

/// The group to split next, and the first partition of its heir. `None`: there are enough, or all that could be split
/// is on its way.
pub fn next(group: &Group, nodes: &DataNodes) -> Option<(GroupId, u16)> {
    let config = group.config.as_ref().filter(|config| config.grows)?;
    let everywhere = config.layout().group_everywhere();
    let groups = group.groups()?;
    let sizes = || groups.all().filter(|id| *id != everywhere).map(|id| groups.partitions_of(id).len());
    let are_alike = sizes().max() < sizes().min().map(|least| 2 * least);
    let are_enough = group.replication_groups.len() > A_NODE * nodes.able.len();
    if under_way(group).next().is_some() || are_enough && are_alike {
        return None;
    }
    let at_rest = |(id, state): &(GroupId, &ReplicationGroup)| {
        let is_up = |node: &NodeId| group.member(*node).is_some_and(|member| state.in_sync.contains(&member));
        *id != everywhere
            && groups.partitions_of(*id).len() > 1
            && state.primary.is_some()
            && state.leaving.is_empty()
            && state.doubtful.is_empty()
            && state.in_sync.len() == state.placed.len()
            && state.placed.iter().all(is_up)
    };
    let able = groups.all().zip(&group.replication_groups).filter(at_rest);
    let (id, _) = able.max_by_key(|(id, _)| (groups.partitions_of(*id).len(), Reverse(*id)))?;
    let partitions = groups.partitions_of(id);
    Some((id, partitions.start + (partitions.len() as u16).div_ceil(2)))
}

/// Groups that are to be split and have not been yet.
pub fn under_way(group: &Group) -> impl Iterator<Item = GroupId> + use<'_> {
    (0..).map(GroupId).zip(&group.replication_groups).filter(|(_, state)| state.dividing.is_some()).map(|(id, _)| id)
}
