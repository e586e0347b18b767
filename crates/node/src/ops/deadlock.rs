//! Deadlocks through several nodes.
//!
//! A cycle within a node is found when it closes (`locks::waits`). One that goes through several is in no node's books: so while there are waits that have lasted for [`OLD`], each
//! process tells all others of its own every [`ROUND`], and each looks for cycles in what it knows of all. The answer is the same everywhere: in each cycle the transaction with the fewest
//! writes falls, on a tie the one with the highest id. Only the node at which the victim waits does something about it.
//!
//! What is known of others is up to a round old, and an edge that has gone meanwhile may close a cycle that never was: a cycle counts when all its edges have been there in two rounds in
//! a row. So a deadlock ends within [`OLD`] + 2 [`ROUND`]s and the way of a message: some 150 ms. What a process has told is forgotten after [`FORGET`].

use super::wire_edges;
use crate::member::signal::Signal;
use crate::node::Node;
use parking_lot::Mutex;
use rauk_types::{ProcessId, TxnId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

pub use super::Edge;

/// Waits that are younger are not told: most end before.
pub const OLD: Duration = Duration::from_millis(30);
pub const ROUND: Duration = Duration::from_millis(40);
const FORGET: Duration = Duration::from_millis(150);
/// Edges that are taken from a process, at most.
pub(super) const MOST: usize = 100_000;

/// What is known of waits in the cluster.
#[derive(Default)]
pub struct Search(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// What other processes told last, and when.
    others: BTreeMap<ProcessId, (Duration, Vec<Edge>)>,
    /// The edges of the last round.
    last: BTreeSet<(TxnId, TxnId)>,
}

impl Search {
    /// Another process has told its waits.
    pub fn heard(&self, from: ProcessId, mut edges: Vec<Edge>, now: Duration) {
        edges.truncate(MOST);
        let mut known = self.0.lock();
        match edges.is_empty() {
            true => known.others.remove(&from),
            false => known.others.insert(from, (now, edges)),
        };
    }

    /// Every [`ROUND`], with this process's own edges: those who are to fall, wherever they wait.
    pub fn round(&self, own: &[Edge], now: Duration) -> BTreeSet<TxnId> {
        let mut known = self.0.lock();
        known.others.retain(|_, (since, _)| *since + FORGET >= now);
        if own.is_empty() && known.others.is_empty() {
            known.last.clear();
            return BTreeSet::new();
        }
        let all: Vec<&Edge> = own.iter().chain(known.others.values().flat_map(|(_, edges)| edges)).collect();
        let present: BTreeSet<(TxnId, TxnId)> = all.iter().map(|e| (e.waiting, e.blocking)).collect();
        let lasting = all.iter().filter(|e| known.last.contains(&(e.waiting, e.blocking))).map(|e| (*e).clone());
        let fallen = victims(&lasting.collect::<Vec<_>>());
        known.last = present;
        fallen
    }
}

/// Transactions whose end leaves no cycle: in each the one with the fewest writes, on a tie the one with the highest id. The order of the edges means nothing.
pub fn victims(edges: &[Edge]) -> BTreeSet<TxnId> {
    let mut graph: BTreeMap<TxnId, (u64, BTreeSet<TxnId>)> = BTreeMap::new();
    for edge in edges {
        let (writes, blockers) = graph.entry(edge.waiting).or_default();
        // Told twice with different counts, by a session and after it: the larger is the newer.
        *writes = edge.writes.max(*writes);
        blockers.insert(edge.blocking);
    }
    let mut fallen = BTreeSet::new();
    loop {
        trim(&mut graph);
        let Some(cycle) = cycle(&graph) else { return fallen };
        let victim = cycle.into_iter().min_by_key(|txn| (graph[txn].0, std::cmp::Reverse(*txn)));
        let Some(victim) = victim else { return fallen };
        graph.remove(&victim);
        fallen.insert(victim);
    }
}

/// Takes away who waits for nobody that waits, again and again: what is left has cycles, or leads to them.
fn trim(graph: &mut BTreeMap<TxnId, (u64, BTreeSet<TxnId>)>) {
    loop {
        let waiting: BTreeSet<TxnId> = graph.keys().copied().collect();
        let before = graph.len();
        for (_, blockers) in graph.values_mut() {
            blockers.retain(|txn| waiting.contains(txn));
        }
        graph.retain(|_, (_, blockers)| !blockers.is_empty());
        if graph.len() == before {
            return;
        }
    }
}

/// A cycle: everybody waits for somebody that waits, so following the first of each leads into one.
fn cycle(graph: &BTreeMap<TxnId, (u64, BTreeSet<TxnId>)>) -> Option<Vec<TxnId>> {
    let mut path: Vec<TxnId> = Vec::new();
    let mut places: BTreeMap<TxnId, usize> = BTreeMap::new();
    let mut at = *graph.keys().next()?;
    loop {
        if let Some(&start) = places.get(&at) {
            return Some(path.split_off(start));
        }
        places.insert(at, path.len());
        path.push(at);
        at = *graph.get(&at)?.1.first()?;
    }
}

/// One round: tells the others, and ends the waits of victims here. `told`: whether the last round told something.
pub fn step(node: &Arc<Node>, told: &mut bool) {
    let Some(cluster) = node.cluster() else { return };
    let now = node.runtime.now();
    let own = wire_edges(node.waits.lasting(now.saturating_sub(OLD)));
    // An empty list once, so that the others forget the last at once.
    if !own.is_empty() || *told {
        let me = cluster.me();
        for process in cluster.processes().into_iter().filter(|p| *p != me) {
            cluster.tell(process, Signal::Waits { edges: own.clone() });
        }
    }
    *told = !own.is_empty();
    for victim in node.search.round(&own, now) {
        node.waits.end_as_victim(victim);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(waiting: u64, blocking: u64, writes: u64) -> Edge {
        Edge { waiting: TxnId(waiting), blocking: TxnId(blocking), writes }
    }

    fn set(txns: &[u64]) -> BTreeSet<TxnId> {
        txns.iter().map(|t| TxnId(*t)).collect()
    }

    #[test]
    fn the_one_with_fewest_writes_falls_and_on_a_tie_the_youngest() {
        assert_eq!(victims(&[edge(1, 2, 5), edge(2, 3, 1), edge(3, 1, 9)]), set(&[2]));
        assert_eq!(victims(&[edge(1, 2, 0), edge(2, 1, 0)]), set(&[2]));
        assert_eq!(victims(&[edge(1, 2, 0), edge(2, 3, 0), edge(4, 1, 0)]), set(&[]));
    }

    /// Whatever the edges are and in whatever order they come: the same victims, and no cycle without them; nobody falls who is in no cycle.
    #[test]
    fn victims_break_all_cycles_and_do_not_depend_on_the_order() {
        let mut state = 7_u64;
        let mut random = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..500 {
            let transactions = 2 + random(8);
            let mut edges: Vec<Edge> = (0..random(16))
                .map(|_| edge(random(transactions), random(transactions), 0))
                .filter(|e| e.waiting != e.blocking)
                .collect();
            edges.iter_mut().for_each(|e| e.writes = e.waiting.0 % 3);
            let fallen = victims(&edges);
            edges.reverse();
            assert_eq!(victims(&edges), fallen);
            let left: Vec<Edge> = edges.iter().filter(|e| !fallen.contains(&e.waiting)).cloned().collect();
            assert_eq!(victims(&left), set(&[]));
            for victim in &fallen {
                assert!(reaches(&edges, *victim, *victim), "{victim:?} is in no cycle of {edges:?}");
            }
        }
    }

    fn reaches(edges: &[Edge], from: TxnId, to: TxnId) -> bool {
        let mut seen = BTreeSet::new();
        let mut next = vec![from];
        while let Some(at) = next.pop() {
            for edge in edges.iter().filter(|e| e.waiting == at) {
                if edge.blocking == to {
                    return true;
                }
                if seen.insert(edge.blocking) {
                    next.push(edge.blocking);
                }
            }
        }
        false
    }

    /// Two nodes, one edge each: the victim falls in the second round on both, and not when an edge has gone in between.
    #[test]
    fn a_cycle_must_be_seen_twice() {
        let (a, b) = (Search::default(), Search::default());
        let (mine, theirs) = ([edge(1, 2, 3)], [edge(2, 1, 4)]);
        let at = |round: u32| ROUND * round;
        a.heard(ProcessId(2), theirs.to_vec(), at(0));
        assert_eq!(a.round(&mine, at(0)), set(&[]));
        a.heard(ProcessId(2), theirs.to_vec(), at(1));
        b.heard(ProcessId(1), mine.to_vec(), at(1));
        assert_eq!(a.round(&mine, at(1)), set(&[1]));
        assert_eq!(b.round(&theirs, at(1)), set(&[]));
        assert_eq!(b.round(&theirs, at(2)), set(&[1]));
        let c = Search::default();
        c.heard(ProcessId(2), theirs.to_vec(), at(0));
        assert_eq!(c.round(&mine, at(0)), set(&[]));
        c.heard(ProcessId(2), Vec::new(), at(1));
        assert_eq!(c.round(&mine, at(1)), set(&[]));
        c.heard(ProcessId(2), theirs.to_vec(), at(2));
        assert_eq!(c.round(&mine, at(2)), set(&[]), "it has not been there in a row");
        // Nothing more is heard of the other.
        assert_eq!(c.round(&mine, at(2) + FORGET + ROUND), set(&[]));
    }
}
