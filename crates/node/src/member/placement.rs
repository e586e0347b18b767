//! What clients of the native API are told of the cluster: who leads which partitions, and where nodes take clients.
//!
//! A client that knows it sends a request to the node that leads the row's partition, which then needs no other node
//! for it ([`rauk_wire::placement`] has the signal). What is told is only a hint: every node answers every request,
//! and asks the leader itself where it must. So nothing here is exact, and nothing waits for it.
//!
//! *The version* is computed from the control plane's state and from nothing else, so that all nodes that have applied
//! the same state name the same version, and a newer state never has a lower one. It is the sum of the groups' view
//! numbers and the number of the next process: both only grow, a new leader has a new view, and a node whose address
//! has changed runs a new process. A node that goes down and led nothing changes nothing for clients; one that led has
//! its views ended. Every answer carries the version in its header: one load ([`Cluster::placement_version`]).
//!
//! It is read before the state that it is told with: a client that gets a state newer than its version asks once more,
//! one that got an older state than its version would keep that.
//!
//! Only nodes that are up, have the role sql and listen on a native port are listed. Roles and replicas are not told:
//! reads of the newest state by a follower cost it no message either, but all clients would have to agree on one.

use super::Cluster;
use rauk_manage::group::{Group, Life, ReplicationGroup, RoleKind};
use rauk_types::NodeId;
use rauk_wire::Placement;
use rauk_wire::placement::{MAX_ADDRESS, PlacedNode};
use std::sync::atomic::Ordering;

/// Never 0, which is the version of a server that is no member of a cluster.
pub(super) fn version(group: &Group) -> u32 {
    let views: u64 = group.replication_groups.iter().map(|state| state.view.0).fold(0, u64::wrapping_add);
    (views.wrapping_add(group.next_process.into()) as u32).max(1)
}

fn nodes(group: &Group) -> Vec<PlacedNode> {
    let takes_clients = |address: &str| !address.is_empty() && address.len() <= MAX_ADDRESS;
    let listed = group.nodes.iter().filter(|(_, state)| {
        state.life == Life::Up && state.has(RoleKind::Sql) && takes_clients(&state.native_address)
    });
    listed.map(|(node, state)| PlacedNode { node: *node, address: state.native_address.clone() }).collect()
}

fn leaders(group: &Group) -> Vec<NodeId> {
    let leader = |state: &ReplicationGroup| state.primary.map_or(NodeId(0), |member| member.node);
    group.replication_groups.iter().map(leader).collect()
}

impl Cluster {
    /// Of what [`Cluster::placement`] tells; grows with every change that matters to clients.
    #[inline]
    pub fn placement_version(&self) -> u32 {
        self.placement.load(Ordering::Acquire)
    }

    /// `None`: the control plane's state has not come here yet.
    pub fn placement(&self) -> Option<Placement> {
        let version = self.placement_version();
        let group = self.group();
        let layout = self.layout();
        let leaders = leaders(&group);
        let known = version != 0 && leaders.len() == layout.groups().len();
        // The last partition and the last group are those of the fully replicated tables.
        let (spread, groups) = (layout.partitions().end - 1, layout.groups().end - 1);
        let here = self.me().node;
        known.then(|| Placement { version, here, spread, groups, nodes: nodes(&group), leaders })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rauk_manage::group::{
        ClusterConfig, ClusterDurability, DEFAULT_MEMORY_RETURN, DEFAULT_REPLACE_AFTER, GroupCommand,
    };
    use rauk_types::Layout;
    use std::collections::BTreeSet;

    fn apply(group: &mut Group, command: &GroupCommand) {
        let index = group.index + 1;
        group.apply(index, command);
    }

    /// The state of a cluster that a node has founded, and its commands so far.
    fn founded() -> Group {
        let mut group = Group::new();
        let config = ClusterConfig {
            id: [7; 16],
            name: "test".into(),
            partitions: 4,
            groups: Some(2),
            replicas: 1,
            durability: ClusterDurability::Fsync,
            replace_after: DEFAULT_REPLACE_AFTER,
            memory_return: DEFAULT_MEMORY_RETURN,
        };
        apply(&mut group, &GroupCommand::Create { config, adopted: None });
        group
    }

    fn add(group: &mut Group, directory: u64, native: &str, roles: &[RoleKind]) {
        let command = GroupCommand::AddNode {
            directory,
            address: format!("10.0.0.{directory}:4410"),
            sql_address: String::new(),
            native_address: native.into(),
            roles: roles.iter().copied().collect::<BTreeSet<_>>(),
        };
        apply(group, &command);
    }

    #[test]
    fn layouts_go_over_the_wire_whole() {
        for (spread, groups) in [(1, 1), (4, 2), (256, 7)] {
            let layout = Layout::new(spread, groups).expect("it is one");
            assert_eq!((layout.partitions().end - 1, layout.groups().end - 1), (spread, groups));
        }
    }

    #[test]
    fn nodes_are_listed_while_they_are_up_and_take_clients() {
        let mut group = founded();
        add(&mut group, 1, "10.0.0.1:4407", &[RoleKind::Data, RoleKind::Sql]);
        add(&mut group, 2, "", &[RoleKind::Data, RoleKind::Sql]);
        add(&mut group, 3, "10.0.0.3:4407", &[RoleKind::Data]);
        assert_eq!(nodes(&group), [], "no process of them is up");
        for state in group.nodes.values_mut() {
            state.life = Life::Up;
        }
        let listed = [PlacedNode { node: NodeId(1), address: "10.0.0.1:4407".into() }];
        assert_eq!(nodes(&group), listed);
    }

    #[test]
    fn the_version_grows_with_leaders_and_processes() {
        let mut group = founded();
        let first = version(&group);
        assert_ne!(first, 0);
        assert_eq!(leaders(&group).len(), 3);
        group.replication_groups[1].view.0 += 1;
        let second = version(&group);
        assert!(rauk_wire::placement::is_newer(second, first));
        group.next_process += 1;
        assert!(rauk_wire::placement::is_newer(version(&group), second));
        group.timestamp_bound += 1000;
        group.index += 1000;
        assert_eq!(version(&group), second + 1, "nothing else counts");
        group.replication_groups[0].view.0 = u64::from(u32::MAX) - u64::from(second);
        assert_ne!(version(&group), 0);
    }
}
