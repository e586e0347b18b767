//! What one more failure would stop, said before it happens.
//!
//! Everything works, and an operator who restarts or loses one node finds that nothing does. Two situations lead there:
//!
//! - *Voters.* The control plane needs a majority of its voters. Where exactly a majority is up, each of them is one too
//!   many to lose. With fewer than three nodes of the role manage there is one voter, by layout; with a voter down it is
//!   a matter of time.
//! - *Replicas.* A replication group has one in-sync replica left of several that are wanted.
//!
//! Invariant: a risk names the node, what stops with it, and the way out. A cluster of one node has none, and neither has
//! a group that is to have one replica: who asked for that knows. Left out: losing several nodes at once, hosts and racks.

use super::{Colour, Group, Life, RoleKind, health};
use rauk_types::NodeId;
use std::collections::{BTreeMap, BTreeSet};

impl Group {
    /// Sentences, the worst first. `voters`: those of the control plane; empty where they are not known.
    pub fn risks(&self, voters: &BTreeSet<NodeId>) -> Vec<String> {
        let present = self.nodes.values().filter(|node| node.life != Life::Absent).count();
        if present < 2 {
            return Vec::new();
        }
        self.voter_risk(voters).into_iter().chain(self.replica_risks()).collect()
    }

    fn is_up_node(&self, node: &NodeId) -> bool {
        self.nodes.get(node).is_some_and(|state| state.life == Life::Up)
    }

    fn voter_risk(&self, voters: &BTreeSet<NodeId>) -> Option<String> {
        let up: Vec<NodeId> = voters.iter().copied().filter(|node| self.is_up_node(node)).collect();
        let needed = voters.len() / 2 + 1;
        // Fewer: the control plane has stopped already, which is red.
        if up.len() != needed {
            return None;
        }
        let named = health::names(up.iter().copied(), " or ");
        if let [only] = voters.iter().collect::<Vec<_>>()[..] {
            let able =
                self.nodes.values().filter(|node| node.has(RoleKind::Manage) && node.life != Life::Absent).count();
            let why = match able < 3 {
                true => "since fewer than three nodes have the role manage: add nodes with it",
                false => "until other nodes with the role manage have become voters",
            };
            return Some(format!(
                "losing node {} stops the cluster: it is the only voter of the control plane, {why}",
                only.0
            ));
        }
        let down: Vec<NodeId> = voters.iter().copied().filter(|node| !self.is_up_node(node)).collect();
        Some(format!(
            "losing {named} stops the cluster: {} of the {} voters of the control plane are up, and {needed} must be; start {}",
            up.len(),
            voters.len(),
            health::names(down.into_iter(), " or ")
        ))
    }

    /// One sentence for each node that has the last replica of groups.
    fn replica_risks(&self) -> Vec<String> {
        let groups = self.health().groups;
        let mut last: BTreeMap<NodeId, usize> = BTreeMap::new();
        for group in groups.iter().filter(|group| group.colour == Colour::Yellow && group.in_sync == 1) {
            if let Some(primary) = group.primary {
                *last.entry(primary.node).or_default() += 1;
            }
        }
        let risk = |(node, count): (NodeId, usize)| {
            format!(
                "losing node {} stops {count} of {} replication groups: it has their only in-sync replica; start the nodes \
                 that are down, or add one, and wait until replicas are in sync",
                node.0,
                groups.len()
            )
        };
        last.into_iter().map(risk).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{cluster, run};
    use super::*;
    use crate::group::GroupCommand;

    fn voters(nodes: &[u16]) -> BTreeSet<NodeId> {
        nodes.iter().map(|node| NodeId(*node)).collect()
    }

    #[test]
    fn a_bare_majority_of_voters_is_told() {
        let (mut group, members) = cluster(3);
        let told = |group: &Group, of: &[u16]| group.voter_risk(&voters(of));
        assert_eq!(told(&group, &[1, 2, 3]), None);
        assert_eq!(told(&group, &[]), None, "they are not known");
        let only = told(&group, &[1]).unwrap();
        assert!(only.starts_with("losing node 1 stops the cluster: it is the only voter"), "{only}");
        assert!(only.ends_with("until other nodes with the role manage have become voters"), "{only}");
        run(&mut group, GroupCommand::Down { member: members[2] });
        assert_eq!(
            told(&group, &[1, 2, 3]).unwrap(),
            "losing node 1 or node 2 stops the cluster: 2 of the 3 voters of the control plane are up, and 2 must be; start node 3"
        );
        run(&mut group, GroupCommand::Down { member: members[1] });
        assert_eq!(told(&group, &[1, 2, 3]), None, "it has stopped");

        let (two, _) = cluster(2);
        let layout = told(&two, &[1]).unwrap();
        assert!(layout.contains("since fewer than three nodes have the role manage"), "{layout}");
        let (one, _) = cluster(1);
        assert_eq!(one.risks(&voters(&[1])), [""; 0], "one node is all there is");
    }

    #[test]
    fn the_last_replica_of_several_is_told() {
        let (mut group, members) = cluster(2);
        // Its groups 1 and 2 are placed, and led by node 2 alone.
        for number in 1..3 {
            let id = rauk_types::GroupId(number);
            run(&mut group, GroupCommand::Place { group: id, version: 0, nodes: vec![NodeId(2), NodeId(1)] });
            run(&mut group, GroupCommand::Lead { group: id, version: 1, member: members[1] });
        }
        let risks = group.replica_risks();
        assert_eq!(risks.len(), 1, "{risks:?}");
        assert!(risks[0].starts_with("losing node 2 stops 2 of 3 replication groups: it has their only"), "{risks:?}");
        for number in 1..3 {
            run(&mut group, GroupCommand::Join { group: rauk_types::GroupId(number), version: 2, member: members[0] });
        }
        assert_eq!(group.replica_risks(), [""; 0]);
    }
}
