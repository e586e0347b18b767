//! Where groups are to be: a pure function of the control plane's state.
//!
//! Data nodes fall in three classes. *Able*: up, with a lease; they can be given groups. *Kept*: these, and those that
//! went down less than `replace_after` of the configuration ago: they keep what they have, since a node that restarts
//! should not make others copy, and is back sooner than a copy is made. *All others* (down for longer, address taken by
//! another node, no data role) lose their places, which others get. With as many nodes as replicas there is nobody else
//! to get them; the group then has fewer until a node comes.
//!
//! # The plan is in the state
//! A group's `placed` list says where it is going: the first *wanted* ones (R, or as many as there are kept nodes; all
//! of them for the fully replicated group) are to hold it, and those behind are to give it up, once all wanted ones are
//! in-sync. So the plan outlives the leader that made it, and making it again from any state in between gives the same:
//! it converges.
//!
//! # Steps, on the wanted sets
//! 1. *Fill*: a group that has too few gets the able node that is in-sync there already, else the one with the fewest
//!    replicas, and among these the one that has the fewest groups in common with those that it is to hold this one
//!    with: when a node fails, what it led is spread over many.
//! 2. *Even out replicas*: while an able node has two more than another, one replica moves between them (of a group
//!    where all is calm).
//! 3. *Even out primaries*: while a node is preferred by two more groups than another that can be reached over groups
//!    they share (a path: from a to b by a group that a is preferred in and b holds), the preference moves along the
//!    path. Nothing is copied for that. If no path is left the numbers are as even as the sets allow.
//!
//! At most [`JOINING`] copies run to a node at once, without a bound as long as there are no tables. A group that
//! nobody has led yet has nothing to copy and counts for nothing here. Each step makes the sum of squares of the counts
//! smaller or fills a gap, so that the plan comes to an end; equal numbers are left alone, so it moves no more than it
//! must.

use crate::group::{Group, Life, ReplicationGroup, RoleKind};
use rauk_types::{GroupId, NodeId, View};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Replicas that are brought up on a node at once.
pub const JOINING: usize = 2;

/// The data nodes, as the leader sees them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataNodes {
    /// Can be given groups.
    pub able: BTreeSet<NodeId>,
    /// Keep those that they have: `able` and nodes that have gone down only now.
    pub kept: BTreeSet<NodeId>,
}

/// A group in the plan.
struct Part<'a> {
    state: &'a ReplicationGroup,
    wanted: Vec<NodeId>,
    want: usize,
    /// The fully replicated one.
    full: bool,
    /// Nobody has ever led it.
    fresh: bool,
    /// Nobody who is up has it, so nobody can bring a replica up: those that wait for that copy nothing.
    stuck: bool,
    /// Everything is where it is wanted, and somebody leads.
    calm: bool,
}

impl Part<'_> {
    fn in_sync(&self, node: NodeId) -> bool {
        self.state.in_sync.iter().any(|m| m.node == node)
    }

    /// Whether a node that is wanted has to be brought up.
    fn copies_to(&self, node: NodeId) -> bool {
        !self.fresh && !self.stuck && !self.in_sync(node)
    }

    /// The wanted, and behind them who is to give it up, as long as he is needed.
    fn placed(&self) -> Vec<NodeId> {
        // Without a primary nobody in-sync is dropped: any may be the one that comes back.
        let led = self.state.primary.is_some();
        let settled = led && !self.wanted.is_empty() && self.wanted.iter().all(|n| self.in_sync(*n));
        let leads = |node: NodeId| self.state.primary.is_some_and(|p| p.node == node);
        let has_it = |node: NodeId| self.in_sync(node) || !led && self.state.is_doubtful(node);
        let stays = |node: &NodeId| !self.wanted.contains(node) && has_it(*node) && (!settled || leads(*node));
        let leaving = self.state.placed.iter().copied().filter(stays);
        self.wanted.iter().copied().chain(leaving).collect()
    }
}

/// Nodes that are wanted for a group now, in their order.
pub fn wanted<'a>(
    group: &Group,
    id: GroupId,
    state: &'a ReplicationGroup,
    nodes: &'a DataNodes,
) -> impl Iterator<Item = NodeId> + use<'a> {
    let want = wanted_count(group, id, nodes);
    state.placed.iter().copied().filter(|n| nodes.kept.contains(n)).take(want)
}

fn wanted_count(group: &Group, id: GroupId, nodes: &DataNodes) -> usize {
    let Some(config) = &group.config else { return 0 };
    let most = if id.0 + 1 == config.layout().groups().end { usize::MAX } else { usize::from(config.replicas) };
    most.min(nodes.kept.len())
}

/// What to propose: the groups whose placement is to change, with their new lists.
pub fn plan(group: &Group, nodes: &DataNodes) -> Vec<(GroupId, Vec<NodeId>)> {
    if group.config.is_none() || nodes.able.is_empty() {
        return Vec::new();
    }
    let mut plan = Plan::new(group, nodes);
    plan.fill();
    plan.even_out_replicas();
    plan.even_out_primaries();
    let places = plan.parts.iter().enumerate().map(|(i, part)| (GroupId(i as u16), part.placed(), part.state));
    places
        .filter(|(_, placed, state)| !placed.is_empty() && *placed != state.placed)
        .map(|(id, placed, _)| (id, placed))
        .collect()
}

/// Where the primary is not who it is to be, and who is to be could take over now (`ready`).
pub fn is_misled(
    group: &Group,
    id: GroupId,
    state: &ReplicationGroup,
    nodes: &DataNodes,
    ready: impl Fn(NodeId) -> bool,
) -> bool {
    let Some(primary) = state.primary else { return false };
    let mut wanted = wanted(group, id, state, nodes);
    let Some(first) = wanted.next() else { return false };
    let ready = |node: NodeId| state.in_sync.iter().any(|m| m.node == node && group.is_member(*m)) && ready(node);
    match first == primary.node || wanted.any(|n| n == primary.node) {
        true => first != primary.node && ready(first),
        false => self::wanted(group, id, state, nodes).any(ready),
    }
}

/// Replication groups that are placed or led otherwise than they are to be, or still wait for who has left, as far as
/// the control plane's state tells.
pub fn unsettled(group: &Group) -> usize {
    let mut nodes = DataNodes::default();
    for (node, state) in group.nodes.iter().filter(|(_, n)| n.has(RoleKind::Data) && n.life != Life::Absent) {
        nodes.kept.insert(*node);
        if state.life == Life::Up {
            nodes.able.insert(*node);
        }
    }
    let mut moving: BTreeSet<GroupId> = plan(group, &nodes).into_iter().map(|(id, _)| id).collect();
    for (number, state) in (0..).zip(&group.replication_groups) {
        if !state.leaving.is_empty() || is_misled(group, GroupId(number), state, &nodes, |_| true) {
            moving.insert(GroupId(number));
        }
    }
    moving.len()
}

struct Plan<'a> {
    nodes: &'a DataNodes,
    /// Replicas that may be brought up on a node at once.
    at_once: usize,
    parts: Vec<Part<'a>>,
    /// Replicas of ordinary groups wanted on each able node.
    replicas: BTreeMap<NodeId, usize>,
    /// Replicas that are being brought up on each able node.
    joining: BTreeMap<NodeId, usize>,
    /// Ordinary groups whose first wanted node this is.
    preferred: BTreeMap<NodeId, usize>,
    /// Ordinary groups that two nodes have in common, the smaller first.
    common: BTreeMap<(NodeId, NodeId), usize>,
}

fn pair(a: NodeId, b: NodeId) -> (NodeId, NodeId) {
    (a.min(b), a.max(b))
}

impl<'a> Plan<'a> {
    fn new(group: &'a Group, nodes: &'a DataNodes) -> Plan<'a> {
        let fully = group.config.as_ref().map(|c| c.layout().groups().end - 1);
        let part = |(number, state): (u16, &'a ReplicationGroup)| {
            let id = GroupId(number);
            let want = wanted_count(group, id, nodes);
            let mut part = Part {
                state,
                wanted: wanted(group, id, state, nodes).collect(),
                want,
                full: Some(number) == fully,
                fresh: state.view == View::default(),
                stuck: state.primary.is_none() && !state.in_sync.iter().any(|m| group.is_member(*m)),
                calm: false,
            };
            let in_place = part.wanted.len() == want && part.wanted.iter().all(|n| part.in_sync(*n));
            part.calm = in_place && state.primary.is_some() && part.placed() == state.placed;
            part
        };
        let parts: Vec<Part<'a>> = (0..).zip(&group.replication_groups).map(part).collect();
        let zero: BTreeMap<NodeId, usize> = nodes.able.iter().map(|n| (*n, 0)).collect();
        let (replicas, joining) = (zero.clone(), zero.clone());
        let at_once = if group.holds_nothing() { usize::MAX } else { JOINING };
        let mut plan = Plan { nodes, at_once, parts, replicas, joining, preferred: zero, common: BTreeMap::new() };
        for part in &plan.parts {
            if let Some(count) = part.wanted.first().and_then(|n| plan.preferred.get_mut(n)) {
                *count += usize::from(!part.full);
            }
            for (i, node) in part.wanted.iter().enumerate() {
                for other in part.wanted[..i].iter().filter(|_| !part.full) {
                    *plan.common.entry(pair(*node, *other)).or_default() += 1;
                }
                if let Some(count) = plan.replicas.get_mut(node) {
                    *count += usize::from(!part.full);
                }
                if let Some(count) = plan.joining.get_mut(node) {
                    *count += usize::from(part.copies_to(*node));
                }
            }
        }
        plan
    }

    fn has_room(&self, node: NodeId) -> bool {
        self.joining.get(&node).is_some_and(|count| *count < self.at_once)
    }

    /// How much a node has in common already with the others that are to hold a group; for its first one, how many it
    /// is preferred in.
    fn closeness(&self, part: &Part<'_>, node: NodeId) -> usize {
        let others = part.wanted.iter().filter(|n| **n != node);
        match part.wanted.is_empty() {
            true => self.preferred[&node],
            false => others.filter_map(|n| self.common.get(&pair(node, *n))).sum(),
        }
    }

    /// Takes a node among a group's wanted ones, at the end.
    fn add(&mut self, index: usize, node: NodeId) {
        let part = &mut self.parts[index];
        for other in part.wanted.iter().filter(|_| !part.full) {
            *self.common.entry(pair(node, *other)).or_default() += 1;
        }
        if let Some(count) = self.preferred.get_mut(&node).filter(|_| part.wanted.is_empty()) {
            *count += usize::from(!part.full);
        }
        part.wanted.push(node);
        let copied = part.copies_to(node);
        if let Some(count) = self.replicas.get_mut(&node) {
            *count += usize::from(!part.full);
        }
        if let Some(count) = self.joining.get_mut(&node) {
            *count += usize::from(copied);
        }
    }

    fn fill(&mut self) {
        // Those with the fewest whole replicas first.
        let mut order: Vec<usize> = (0..self.parts.len()).collect();
        order.sort_by_key(|i| self.parts[*i].state.in_sync.len());
        for index in order {
            while self.parts[index].wanted.len() < self.parts[index].want {
                let part = &self.parts[index];
                let free = |node: NodeId| !part.copies_to(node) || self.has_room(node);
                let lacking = self.nodes.able.iter().copied().filter(|n| !part.wanted.contains(n));
                // The fully replicated one goes to all, in any order; another waits for its best node.
                let lacking = lacking.filter(|n| !part.full || free(*n));
                let best = lacking.min_by_key(|n| (!part.in_sync(*n), self.replicas[n], self.closeness(part, *n), *n));
                match best.filter(|n| free(*n)) {
                    Some(node) => self.add(index, node),
                    None => break,
                }
            }
        }
    }

    fn even_out_replicas(&mut self) {
        while let Some((index, from, to)) = self.next_move() {
            let part = &mut self.parts[index];
            let was_first = part.wanted.first() == Some(&from);
            part.wanted.retain(|n| *n != from);
            part.calm = false;
            if was_first {
                for (node, change) in [(Some(&from), -1), (part.wanted.first(), 1)] {
                    if let Some(count) = node.and_then(|n| self.preferred.get_mut(n)) {
                        *count = count.saturating_add_signed(change);
                    }
                }
            }
            for other in &part.wanted {
                if let Some(count) = self.common.get_mut(&pair(from, *other)) {
                    *count -= 1;
                }
            }
            if let Some(count) = self.replicas.get_mut(&from) {
                *count -= 1;
            }
            self.add(index, to);
        }
    }

    /// A group, the node that it leaves and the one that it goes to.
    fn next_move(&self) -> Option<(usize, NodeId, NodeId)> {
        let mut by_count: Vec<(usize, NodeId)> = self.replicas.iter().map(|(node, count)| (*count, *node)).collect();
        by_count.sort_unstable();
        for (most, from) in by_count.iter().rev() {
            for (_, to) in by_count.iter().take_while(|(least, _)| least + 2 <= *most) {
                let fits = |part: &Part<'_>| {
                    let movable = !part.full && (part.fresh || part.calm && self.has_room(*to));
                    movable && part.wanted.contains(from) && !part.wanted.contains(to)
                };
                let candidates = self.parts.iter().enumerate().filter(|(_, part)| fits(part));
                // One that is led from elsewhere moves without a new view.
                let led_there = |part: &Part<'_>| part.state.primary.is_some_and(|p| p.node == *from);
                if let Some((index, _)) =
                    candidates.min_by_key(|(i, part)| (led_there(part), self.closeness(part, *to), *i))
                {
                    return Some((index, *from, *to));
                }
            }
        }
        None
    }

    fn even_out_primaries(&mut self) {
        let mut preferred: BTreeMap<NodeId, usize> = self.nodes.able.iter().map(|n| (*n, 0)).collect();
        for part in &self.parts {
            if let Some(count) = part.wanted.first().and_then(|n| preferred.get_mut(n)) {
                *count += 1;
            }
        }
        while let Some(path) = self.shift(&preferred) {
            let (Some(first), Some((_, last))) = (path.first(), path.last()) else { return };
            if let Some(count) = self.parts[first.0].wanted.first().and_then(|n| preferred.get_mut(n)) {
                *count -= 1;
            }
            if let Some(count) = preferred.get_mut(last) {
                *count += 1;
            }
            for (index, next) in &path {
                let wanted = &mut self.parts[*index].wanted;
                if let Some(place) = wanted.iter().position(|n| n == next) {
                    wanted.swap(0, place);
                }
            }
        }
    }

    /// A path from a node that is preferred by two more groups than the one at its end: groups, each with the node that
    /// it is to prefer.
    fn shift(&self, preferred: &BTreeMap<NodeId, usize>) -> Option<Vec<(usize, NodeId)>> {
        let mut by_count: Vec<(usize, NodeId)> = preferred.iter().map(|(node, count)| (*count, *node)).collect();
        by_count.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        let least = by_count.last()?.0;
        let starts = by_count.iter().take_while(|(count, _)| least + 2 <= *count);
        starts.into_iter().find_map(|(count, start)| self.path(*start, *count, preferred))
    }

    fn path(&self, start: NodeId, count: usize, preferred: &BTreeMap<NodeId, usize>) -> Option<Vec<(usize, NodeId)>> {
        // How each node was reached: over which group, from where.
        let mut reached: BTreeMap<NodeId, (usize, NodeId)> = BTreeMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(from) = queue.pop_front() {
            for (index, part) in self.parts.iter().enumerate() {
                if part.wanted.first() != Some(&from) || !(part.calm || part.fresh) {
                    continue;
                }
                for to in &part.wanted[1..] {
                    let Some(there) = preferred.get(to) else { continue };
                    if *to == start || reached.contains_key(to) {
                        continue;
                    }
                    reached.insert(*to, (index, from));
                    if there + 2 <= count {
                        return Some(way_back(start, *to, &reached));
                    }
                    queue.push_back(*to);
                }
            }
        }
        None
    }
}

fn way_back(start: NodeId, end: NodeId, reached: &BTreeMap<NodeId, (usize, NodeId)>) -> Vec<(usize, NodeId)> {
    let mut path = Vec::new();
    let mut node = end;
    while node != start {
        let (index, from) = reached[&node];
        path.push((index, node));
        node = from;
    }
    path.reverse();
    path
}
