//! How the cluster is, for its operator: one colour, and why in words.
//!
//! *Red*: something cannot be read or written now. *Yellow*: everything works, and less can be lost than was asked for,
//! or groups are still being spread over the nodes. *Green*: all is as configured. It is told from the control plane's
//! state alone, so it is the same on every node; what is being copied, and how far, only primaries know.

use super::{Cut, Group, Life, ReplicationGroup, RoleKind};
use crate::leader::placement;
use rauk_types::{GroupId, Member, NodeId};
use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Colour {
    Green,
    Yellow,
    Red,
}

impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Colour::Green => "green",
            Colour::Yellow => "yellow",
            Colour::Red => "red",
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupHealth {
    pub group: GroupId,
    /// Replicas that the configuration asks for, as far as there are data nodes (nodes that are down included).
    pub wanted: usize,
    /// Replicas that have everything and are up.
    pub in_sync: usize,
    /// Replicas that are being brought up.
    pub joining: usize,
    pub primary: Option<Member>,
    pub colour: Colour,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    pub colour: Colour,
    /// Sentences, the worst first; empty when all is well.
    pub reasons: Vec<String>,
    pub groups: Vec<GroupHealth>,
}

impl Group {
    pub fn health(&self) -> Health {
        let Some(config) = &self.config else {
            let reasons = vec!["the cluster is not made yet".to_owned()];
            return Health { colour: Colour::Red, reasons, groups: Vec::new() };
        };
        // A node whose address another has taken is gone for good.
        let data_nodes = self.nodes.values().filter(|n| n.has(RoleKind::Data) && n.life != Life::Absent).count();
        let replicas = usize::from(config.replicas);
        let all = config.layout().groups();
        let groups: Vec<GroupHealth> = all
            .clone()
            .zip(&self.replication_groups)
            .map(|(number, state)| {
                let full = number + 1 == all.end;
                let wanted = if full { data_nodes } else { replicas.min(data_nodes) };
                self.group_health(GroupId(number), state, wanted)
            })
            .collect();
        let mut reasons = Vec::new();
        self.explain_red(&groups, &mut reasons);
        let red = !reasons.is_empty();
        let thin: Vec<&GroupHealth> = groups.iter().filter(|p| p.colour == Colour::Yellow).collect();
        if let Some(thinnest) = thin.iter().min_by_key(|p| p.in_sync) {
            let (count, number, has, wanted) = (thin.len(), thinnest.group.0, thinnest.in_sync, thinnest.wanted);
            reasons.push(format!(
                "{count} of {} replication groups have fewer replicas than wanted (replication group {number}: \
                 {has} of {wanted})",
                groups.len()
            ));
        }
        for (node, state) in self.nodes.iter().filter(|(_, n)| n.life == Life::Down) {
            let address = &state.address;
            let replaced = match state.has(RoleKind::Data) {
                true => format!("; others get its replicas when it stays away for {} s", config.replace_after),
                false => String::new(),
            };
            reasons.push(format!("node {} ({address}) is down{replaced}", node.0));
        }
        if data_nodes < replicas {
            reasons.push(format!("{replicas} replicas are wanted, and there are {data_nodes} data nodes to hold them"));
        }
        let moving = placement::unsettled(self);
        if reasons.is_empty() && moving > 0 {
            reasons.push(format!(
                "{moving} of {} replication groups are on their way to where they are to be",
                groups.len()
            ));
        }
        let colour = match (red, reasons.is_empty()) {
            (true, _) => Colour::Red,
            (false, true) => Colour::Green,
            (false, false) => Colour::Yellow,
        };
        Health { colour, reasons, groups }
    }

    /// Whether every group is led, and everything is where it is to be.
    pub fn is_settled(&self) -> bool {
        let whole = |p: &ReplicationGroup| {
            let has = |node: &NodeId| p.in_sync.iter().any(|m| m.node == *node);
            p.primary.is_some() && p.placed.iter().all(has)
        };
        !self.replication_groups.is_empty()
            && self.replication_groups.iter().all(whole)
            && placement::unsettled(self) == 0
    }

    fn group_health(&self, group: GroupId, state: &ReplicationGroup, wanted: usize) -> GroupHealth {
        let in_sync = state.in_sync.iter().filter(|m| self.is_member(**m)).count();
        let colour = match state.primary {
            None => Colour::Red,
            Some(_) if in_sync < wanted => Colour::Yellow,
            Some(_) => Colour::Green,
        };
        let joining = self.assignment(group).joining.len();
        GroupHealth { group, wanted, in_sync, joining, primary: state.primary, colour }
    }

    fn explain_red(&self, groups: &[GroupHealth], reasons: &mut Vec<String>) {
        for health in groups.iter().filter(|p| p.colour == Colour::Red) {
            let number = health.group.0;
            let Some(state) = self.replication_group(health.group) else { continue };
            let holders = |cut: &Cut| match cut.holders.get(usize::from(number)) {
                Some(holders) => names(holders.iter().copied(), " or "),
                None => "any data node".to_owned(),
            };
            if Group::is_recovering(state) {
                let holders = holders(&self.recovery.cut);
                reasons.push(format!(
                    "replication group {number} goes back to the last cut and waits for {holders}: start it"
                ));
                continue;
            }
            let (ended, holders) = (nodes(&state.in_sync, " and "), holders(&self.cut));
            if self.has_no_memory(state) && !self.is_memory_lost(state) {
                let patience = self.config.as_ref().map_or(0, |config| config.memory_return);
                reasons.push(format!(
                    "replication group {number} waits for the memory of {ended}, silent or down: when it has not \
                     come back after {patience} s (rauk_memory_return_timeout), or comes back without what it had, \
                     the cluster goes back to its last cut, which needs {holders}"
                ));
                continue;
            }
            if self.has_no_memory(state) {
                reasons.push(format!(
                    "the last process that had replication group {number} in memory has ended ({ended}): the \
                     cluster goes back to its last cut, which needs {holders}"
                ));
                continue;
            }
            if let Some(reason) = self.explain_doubt(number, state) {
                reasons.push(reason);
                continue;
            }
            let able: Vec<Member> = state.in_sync.iter().copied().filter(|m| !self.is_gone(m)).collect();
            reasons.push(match able.as_slice() {
                [] if state.placed.is_empty() => format!("replication group {number} has no data node yet"),
                [] if state.in_sync.is_empty() => format!(
                    "replication group {number} is about to get its first \
                     primary"
                ),
                [] => format!(
                    "the contents of replication group {number} are lost: only {} had all of it, and what was on \
                     disk there is gone; the way out is a new cluster, loaded from a dump",
                    nodes(&state.in_sync, " and ")
                ),
                able if able.iter().any(|m| self.is_member(*m)) => {
                    format!("replication group {number} is about to get a new primary")
                }
                [only] => {
                    format!(
                        "replication group {number} waits for node {}, which has the only whole replica: start \
                         it",
                        only.node.0
                    )
                }
                able => {
                    let nodes = nodes(able, " or ");
                    format!(
                        "replication group {number} waits for {nodes}, each of which has a whole replica: start \
                         one"
                    )
                }
            });
        }
    }
}

fn nodes(members: &[Member], between: &str) -> String {
    names(members.iter().map(|m| m.node), between)
}

pub(super) fn names(nodes: impl Iterator<Item = NodeId>, between: &str) -> String {
    let names: Vec<String> = nodes.map(|node| format!("node {}", node.0)).collect();
    names.join(between)
}
