//! The event log: the last things that happened on a node and in its cluster, for the operator.
//!
//! It is a bounded ring of (time, node, level, text). Every process hears of the decisions of the control plane in the
//! same order, and notes them in the same words. Such an entry carries the index of the decision. So the event logs of
//! all nodes together show it once ([`merge`]), also when some nodes are down. The times are the system clock's, for
//! people only: nothing is decided by them, and each node has its own.

use parking_lot::Mutex;
use rauk_manage::group::{Group, Life, ReplicationGroup};
use rauk_types::{Member, NodeId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};
use std::time::{SystemTime, UNIX_EPOCH};

/// Entries that are remembered.
const MOST: usize = 2000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Level {
    Info,
    Warning,
    Error,
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Level::Info => "info",
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedEvent {
    /// Microseconds since 1970 UTC, by the clock of the node that noted it.
    pub time: u64,
    /// Whom it concerns.
    pub node: NodeId,
    pub level: Level,
    pub what: String,
    /// Index of the group's change that it is about, and which part of that change: the same on all nodes. `None`: this node alone knows of it.
    pub change: Option<(u64, u32)>,
}

#[derive(Default)]
pub struct EventLog {
    ring: Mutex<VecDeque<LoggedEvent>>,
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

impl EventLog {
    fn push(&self, event: LoggedEvent) {
        let mut ring = self.ring.lock();
        if ring.len() == MOST {
            ring.pop_front();
        }
        ring.push_back(event);
    }

    /// Something that this node alone knows of.
    pub fn note(&self, node: NodeId, level: Level, what: impl Into<String>) {
        self.push(LoggedEvent { time: now(), node, level, what: what.into(), change: None });
    }

    /// The group has changed.
    pub fn on_group(&self, before: &Group, after: &Group) {
        let time = now();
        for (part, (node, level, what)) in (0..).zip(changes(before, after)) {
            self.push(LoggedEvent { time, node, level, what, change: Some((after.index, part)) });
        }
    }

    pub fn list(&self) -> Vec<LoggedEvent> {
        self.ring.lock().iter().cloned().collect()
    }
}

/// The rings of several nodes as one, oldest first; what all of them noted stands there once, with the time at which the first noted it.
pub fn merge(rings: impl IntoIterator<Item = Vec<LoggedEvent>>) -> Vec<LoggedEvent> {
    let mut all: Vec<LoggedEvent> = rings.into_iter().flatten().collect();
    all.sort_by(|a, b| (a.time, a.node, &a.what).cmp(&(b.time, b.node, &b.what)));
    let mut seen = BTreeSet::new();
    all.retain(|event| event.change.is_none_or(|change| seen.insert((change, event.what.clone()))));
    all
}

fn of(member: Member) -> String {
    format!("node {}", member.node.0)
}

fn changes(before: &Group, after: &Group) -> Vec<(NodeId, Level, String)> {
    let mut out = Vec::new();
    for (node, state) in &after.nodes {
        let old = before.nodes.get(node);
        match old {
            None => out.push((*node, Level::Info, format!("node {} was added ({})", node.0, state.address))),
            Some(old) if old.address != state.address => {
                out.push((*node, Level::Info, format!("node {} is at {} now", node.0, state.address)));
            }
            Some(_) => {}
        }
        let process = state.process.0;
        match (old.map(|n| (n.life, n.process)), state.life) {
            (Some(same), _) if same == (state.life, state.process) => {}
            (_, Life::Up) => {
                out.push((*node, Level::Info, format!("node {} is up as process {process}", node.0)));
            }
            (_, Life::Down) => {
                out.push((*node, Level::Warning, format!("node {} is down (process {process})", node.0)));
            }
            (_, Life::Absent) => {}
        }
    }
    for node in before.nodes.keys().filter(|node| !after.nodes.contains_key(node)) {
        out.push((*node, Level::Info, format!("node {} was removed", node.0)));
    }
    for (number, state) in after.replication_groups.iter().enumerate() {
        let fresh = ReplicationGroup::default();
        replication_group(number, before.replication_groups.get(number).unwrap_or(&fresh), state, &mut out);
    }
    // A process that has heard of nothing yet has not seen it happen; a cluster that is made of a node's rows begins so.
    if before.config.is_some() && before.recovery.number != after.recovery.number {
        let gone = before.replication_groups.iter().position(|state| before.has_no_memory(state));
        let why = gone.map_or(String::new(), |number| format!(": no process had group {number} in memory any more"));
        let time = after.recovery.cut.time.0;
        out.push((NodeId(0), Level::Warning, format!("the cluster goes back to its last cut, at time {time}{why}")));
    }
    if before.term != after.term {
        out.push((NodeId(0), Level::Info, format!("the manage group has a new leader (term {})", after.term)));
    }
    out
}

fn replication_group(
    number: usize,
    old: &ReplicationGroup,
    new: &ReplicationGroup,
    out: &mut Vec<(NodeId, Level, String)>,
) {
    if old == new {
        return;
    }
    match (old.primary, new.primary) {
        (before, Some(primary)) if before != Some(primary) || old.view != new.view => {
            let text = format!("group {number} is led by {} in view {}", of(primary), new.view.0);
            out.push((primary.node, Level::Info, text));
        }
        (Some(before), None) => {
            out.push((before.node, Level::Warning, format!("group {number} has lost its primary, {}", of(before))));
        }
        _ => {}
    }
    let has = |state: &ReplicationGroup, node: NodeId| state.in_sync.iter().any(|m| m.node == node);
    // One that is not to be there any more leaves, which is told below.
    let stays = |node: NodeId| new.placed.contains(&node) && !new.is_doubtful(node);
    for gone in old.in_sync.iter().filter(|m| !has(new, m.node) && stays(m.node)) {
        let text = format!("{} was removed from the in-sync replicas of group {number}", of(*gone));
        out.push((gone.node, Level::Warning, text));
    }
    for doubtful in new.doubtful.iter().filter(|d| !old.is_doubtful(d.member.node)) {
        let text = format!(
            "the log of {} ended in a damaged entry, which was cut, or its directory was an older copy: it does not \
             count as a replica of group {number}",
            of(doubtful.member)
        );
        out.push((doubtful.member.node, Level::Warning, text));
    }
    for come in new.in_sync.iter().filter(|m| !has(old, m.node)) {
        let text = format!("{} has everything of group {number} and counts as its replica", of(*come));
        out.push((come.node, Level::Info, text));
    }
    for node in new.placed.iter().filter(|node| !old.placed.contains(node)) {
        out.push((*node, Level::Info, format!("group {number} is to have a replica on node {}", node.0)));
    }
    for node in old.placed.iter().filter(|node| !new.placed.contains(node)) {
        out.push((*node, Level::Info, format!("group {number} leaves node {}", node.0)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rauk_manage::group::{
        ClusterConfig, ClusterDurability, DEFAULT_MEMORY_RETURN, DEFAULT_REPLACE_AFTER, GroupCommand, RoleKind,
    };
    use rauk_types::{GroupId, ProcessId};

    fn group() -> Group {
        let mut group = Group::new();
        let config = ClusterConfig {
            id: [1; 16],
            name: "test".into(),
            partitions: 1,
            groups: None,
            replicas: 1,
            durability: ClusterDurability::Fsync,
            replace_after: DEFAULT_REPLACE_AFTER,
            memory_return: DEFAULT_MEMORY_RETURN,
        };
        group.apply(1, &GroupCommand::Create { config, adopted: None });
        let add = GroupCommand::AddNode {
            directory: 5,
            address: "a:1".into(),
            sql_address: String::new(),
            native_address: String::new(),
            roles: BTreeSet::from([RoleKind::Data]),
        };
        group.apply(2, &add);
        group
    }

    #[test]
    fn what_happened_is_told_in_words_and_once() {
        let (one, other) = (EventLog::default(), EventLog::default());
        let mut group = group();
        let member = Member { node: NodeId(1), process: ProcessId(1) };
        let placed = vec![NodeId(1)];
        let steps = [
            GroupCommand::Register {
                node: NodeId(1),
                nonce: 1,
                whole: vec![GroupId(0)],
                recovery: 0,
                directory: Default::default(),
            },
            GroupCommand::Place { group: GroupId(0), version: 1, nodes: placed },
            GroupCommand::Down { member },
        ];
        for (index, command) in (3..).zip(&steps) {
            let before = group.clone();
            if let GroupCommand::Place { group: id, nodes, .. } = command {
                let version = group.replication_groups[0].version;
                let now = GroupCommand::Place { group: *id, version, nodes: nodes.clone() };
                group.apply(index, &now);
            } else {
                group.apply(index, command);
            }
            one.on_group(&before, &group);
            other.on_group(&before, &group);
        }
        other.note(NodeId(2), Level::Error, "a checkpoint failed");
        let all = merge([one.list(), other.list()]);
        let words: Vec<&str> = all.iter().map(|h| h.what.as_str()).collect();
        for expected in ["node 1 is up as process 1", "group 0 is to have a replica on node 1"] {
            assert_eq!(words.iter().filter(|w| **w == expected).count(), 1, "{words:?}");
        }
        assert!(words.contains(&"node 1 is down (process 1)") && words.contains(&"a checkpoint failed"), "{words:?}");
    }

    #[test]
    fn the_ring_is_bounded() {
        let event_log = EventLog::default();
        for number in 0..MOST + 10 {
            event_log.note(NodeId(1), Level::Info, number.to_string());
        }
        let list = event_log.list();
        assert_eq!((list.len(), list[0].what.as_str()), (MOST, "10"));
    }
}
