//! Promise: *without faults the cluster becomes whole by itself*: every node is up, every group is led and has all its
//! replicas, on as many nodes as were asked for.
use super::Verdict;
use rauk_manage::group::{Colour, Group, Life, RoleKind};
use rauk_types::NodeId;
use std::collections::BTreeSet;

/// `nodes`: how many there should be.
pub fn check(group: &Group, nodes: usize) -> Verdict {
    // A node is absent for ever when another has come in its place, with an empty disk.
    let present: Vec<_> = group.nodes.iter().filter(|(_, state)| state.life != Life::Absent).collect();
    if present.len() != nodes {
        return Err(format!("there are {} nodes and not {nodes}", present.len()));
    }
    if let Some((node, state)) = present.iter().find(|(_, state)| state.life != Life::Up) {
        return Err(format!("node {} is {:?}", node.0, state.life));
    }
    let config = group.config.as_ref().ok_or("there is no cluster yet")?;
    let data: BTreeSet<NodeId> =
        present.iter().filter(|(_, state)| state.roles.contains(&RoleKind::Data)).map(|(node, _)| **node).collect();
    if group.replication_groups.len() != config.layout().groups().len() {
        return Err(format!("there are {} groups", group.replication_groups.len()));
    }
    for (number, state) in group.replication_groups.iter().enumerate() {
        let everywhere = number + 1 == group.replication_groups.len();
        let wanted = if everywhere { data.len() } else { data.len().min(config.replicas.into()) };
        let placed: BTreeSet<NodeId> = state.placed.iter().copied().collect();
        let in_sync: BTreeSet<NodeId> = state.in_sync.iter().map(|member| member.node).collect();
        if state.primary.is_none() {
            return Err(format!("group {number} has no primary: {state:?}"));
        }
        if placed.len() != wanted || placed != in_sync {
            return Err(format!("group {number} wants {wanted} replicas: {state:?}"));
        }
        if let Some(member) = state.in_sync.iter().find(|member| !group.is_up(member.process)) {
            return Err(format!("group {number} counts on {member:?}, which is no more: {state:?}"));
        }
    }
    let health = group.health();
    match health.colour {
        Colour::Green => Ok(()),
        colour => Err(format!("the cluster calls itself {colour}: {:?}", health.reasons)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rauk_manage::group::{
        ClusterConfig, ClusterDurability, DEFAULT_MEMORY_RETURN, DEFAULT_REPLACE_AFTER, GroupCommand, ReplicationGroup,
    };
    use rauk_types::{GroupId, Member, ProcessId, View};

    /// Two data nodes that hold everything.
    fn whole() -> Group {
        let mut group = Group::new();
        let config = ClusterConfig {
            id: [1; 16],
            name: "sim".to_string(),
            partitions: 1,
            groups: None,
            replicas: 2,
            durability: ClusterDurability::Fsync,
            replace_after: DEFAULT_REPLACE_AFTER,
            memory_return: DEFAULT_MEMORY_RETURN,
        };
        let mut commands = vec![GroupCommand::Create { config, adopted: None }];
        for node in 1..=2 {
            commands.push(GroupCommand::AddNode {
                directory: node,
                address: format!("n{node}:1"),
                sql_address: String::new(),
                native_address: String::new(),
                roles: BTreeSet::from([RoleKind::Data]),
            });
            commands.push(GroupCommand::Register {
                node: NodeId(node as u16),
                nonce: node,
                whole: Vec::new(),
                recovery: 0,
                directory: Default::default(),
            });
        }
        for (index, command) in commands.iter().enumerate() {
            group.apply(index as u64 + 1, command);
        }
        let members: Vec<Member> =
            group.nodes.iter().map(|(node, state)| Member { node: *node, process: state.process }).collect();
        for (at, state) in group.replication_groups.iter_mut().enumerate() {
            let mut members = members.clone();
            members.rotate_left(at);
            *state = ReplicationGroup {
                version: 1,
                view: View(1),
                primary: Some(members[0]),
                in_sync: members.clone(),
                placed: members.iter().map(|member| member.node).collect(),
                former: None,
                leaving: Vec::new(),
                doubtful: Vec::new(),
            };
        }
        group
    }

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(check(&whole(), 2), Ok(()));
        assert!(check(&whole(), 3).unwrap_err().contains("2 nodes"));
        let mut group = whole();
        group.replication_groups[0].primary = None;
        assert!(check(&group, 2).unwrap_err().contains("no primary"));
        let mut group = whole();
        group.replication_groups[1].in_sync.pop();
        assert!(check(&group, 2).unwrap_err().contains("group 1 wants 2 replicas"));
        let mut group = whole();
        group.replication_groups[0].in_sync[1].process = ProcessId(77);
        assert!(check(&group, 2).unwrap_err().contains("no more"));
        let mut group = whole();
        group.nodes.values_mut().for_each(|node| node.life = Life::Down);
        assert!(check(&group, 2).unwrap_err().contains("Down"));
        assert_eq!(group.assignment(GroupId(0)).view, View(1));
    }
}
