//! Runs a model to its end and says what was seen.
//!
//! `stateright` visits every reachable state breadth first and tests the `always` and `sometimes` properties in each.
//! Its `eventually` misses counterexamples where paths join or loop, so progress is tested here, over the same
//! [`Model`]: [`stuck`] builds the whole graph of states and looks only at *calm* steps, those that are no fault.
//!
//! From every reachable state, when faults stop, the system must come to rest in a *settled* state. That holds when
//! (1) every state without a calm step is settled, and (2) the calm steps have no circle. Both are tested exactly, so
//! the answer is about every run and every order of steps, not only about one lucky schedule. What is not said is how
//! long it takes.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Debug;
use std::hash::Hash;

use stateright::{Checker, CheckerBuilder, HasDiscoveries, Model, Path};

/// A model that can be asked about progress: which steps are faults, and where it may rest.
pub trait Settles: Model {
    /// True for a step that is a fault (a crash, a wrong suspicion): such steps need not happen, and stop at some time.
    fn is_fault(&self, action: &Self::Action) -> bool;
    /// True when nothing is left to do for anybody.
    fn is_settled(&self, state: &Self::State) -> bool;
}

/// What one exhaustive run saw.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Different states reached.
    pub states: usize,
    /// Steps taken, several of which may lead to one state.
    pub steps: usize,
    /// Length of the longest shortest path.
    pub depth: usize,
    /// Nothing was left out because there was too much.
    pub exhausted: bool,
    /// Broken `always` properties, each with the actions that lead there, shortest first found.
    pub broken: Vec<(&'static str, Vec<String>)>,
    /// `sometimes` properties that no state had: the model does not do what it was written for.
    pub never: Vec<&'static str>,
}

impl Seen {
    /// Panics with a trace unless everything was seen and nothing is broken.
    pub fn assert_safe(&self) {
        if let Some((name, trace)) = self.broken.first() {
            panic!("broken after {} steps: {name}\n  {}", trace.len(), trace.join("\n  "));
        }
        assert!(self.exhausted, "too large: {} states and not exhausted", self.states);
    }

    /// The trace that breaks `name`; panics when it was not broken.
    pub fn trace(&self, name: &str) -> &[String] {
        let found = self.broken.iter().find(|(broken, _)| *broken == name);
        let names: Vec<_> = self.broken.iter().map(|(broken, _)| *broken).collect();
        &found.unwrap_or_else(|| panic!("{name} was not broken; {names:?} were, in {} states", self.states)).1
    }
}

/// Visits every state, or stops soon after the first broken property.
pub fn exhaust<M>(model: M, threads: usize) -> Seen
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq + Send + Sync + 'static,
{
    run(model.checker().threads(threads).finish_when(HasDiscoveries::AnyFailures))
}

/// Visits states until `property` is broken, and goes on over others that are broken on the way.
pub fn hunt<M>(model: M, property: &'static str) -> Seen
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq + Send + Sync + 'static,
{
    run(model.checker().finish_when(HasDiscoveries::AnyOf([property].into())))
}

/// As [`hunt`], and then with ever less depth until the trace is one of the shortest.
pub fn shortest<M>(model: M, property: &'static str) -> Seen
where
    M: Model + Clone + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq + Send + Sync + 'static,
{
    let mut seen = hunt(model.clone(), property);
    loop {
        // A depth counts states, one more than steps, and what lies at the bound itself is not looked at.
        let bound = seen.trace(property).len() + 1;
        let wanted = HasDiscoveries::AnyOf([property].into());
        let shorter = run(model.clone().checker().finish_when(wanted).target_max_depth(bound));
        if !shorter.broken.iter().any(|(broken, _)| *broken == property) {
            return seen;
        }
        seen = shorter;
    }
}

fn run<M>(builder: CheckerBuilder<M>) -> Seen
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq + Send + Sync + 'static,
{
    let checker = builder.target_state_count(LIMIT).spawn_bfs().join();
    let properties = checker.model().properties();
    let discoveries = checker.discoveries();
    let mut broken = Vec::new();
    let mut never = Vec::new();
    for property in properties {
        let found = discoveries.get(property.name);
        match (property.expectation.discovery_is_failure(), found) {
            (true, Some(path)) => broken.push((property.name, steps_of(path))),
            (false, None) => never.push(property.name),
            _ => {}
        }
    }
    Seen {
        states: checker.unique_state_count(),
        steps: checker.state_count(),
        depth: checker.max_depth(),
        exhausted: checker.state_count() < LIMIT,
        broken,
        never,
    }
}

fn steps_of<S: Clone + PartialEq, A: Clone + Debug + PartialEq>(path: &Path<S, A>) -> Vec<String> {
    path.clone().into_actions().iter().map(|action| format!("{action:?}")).collect()
}

/// Why a system does not come to rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stuck {
    /// Nothing can happen any more, and the state is not settled.
    Blocked(Vec<String>),
    /// Calm steps go round for ever.
    Circle(Vec<String>),
}

/// More steps than this are not taken: a size that needs more was chosen wrongly.
const LIMIT: usize = 500_000_000;

/// Looks for a state from which calm steps alone do not lead to rest. `None`: there is none.
/// Returns the number of states beside it.
pub fn stuck<M>(model: &M) -> (usize, Option<Stuck>)
where
    M: Settles,
    M::State: Clone + Hash + Eq,
    M::Action: Clone + Debug,
{
    let mut index: HashMap<M::State, u32> = HashMap::new();
    let mut states = Vec::new();
    let mut parents: Vec<(u32, Option<M::Action>)> = Vec::new();
    let mut calm: Vec<Vec<u32>> = Vec::new();
    for state in model.init_states() {
        index.insert(state.clone(), states.len() as u32);
        states.push(state);
        parents.push((0, None));
    }
    let trace = |parents: &[(u32, Option<M::Action>)], mut at: u32| {
        let mut steps = Vec::new();
        while let (parent, Some(action)) = &parents[at as usize] {
            steps.push(format!("{action:?}"));
            at = *parent;
        }
        steps.reverse();
        steps
    };
    let mut at = 0;
    let mut actions = Vec::new();
    while at < states.len() {
        let state = states[at].clone();
        actions.clear();
        model.actions(&state, &mut actions);
        let mut next = Vec::new();
        for action in actions.drain(..) {
            let fault = model.is_fault(&action);
            let Some(reached) = model.next_state(&state, action.clone()) else { continue };
            let to = match index.entry(reached) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(free) => {
                    let to = states.len() as u32;
                    states.push(free.key().clone());
                    parents.push((at as u32, Some(action)));
                    free.insert(to);
                    to
                }
            };
            if !fault {
                next.push(to);
            }
        }
        if next.is_empty() && !model.is_settled(&state) {
            return (states.len(), Some(Stuck::Blocked(trace(&parents, at as u32))));
        }
        calm.push(next);
        at += 1;
    }
    (states.len(), circle(&calm).map(|on| Stuck::Circle(trace(&parents, on))))
}

/// A node on a circle of the graph, by taking away nodes without an incoming edge until none is left.
fn circle(edges: &[Vec<u32>]) -> Option<u32> {
    let mut incoming = vec![0u32; edges.len()];
    for to in edges.iter().flatten() {
        incoming[*to as usize] += 1;
    }
    let mut free: Vec<u32> = (0..edges.len() as u32).filter(|n| incoming[*n as usize] == 0).collect();
    while let Some(node) = free.pop() {
        for to in &edges[node as usize] {
            incoming[*to as usize] -= 1;
            if incoming[*to as usize] == 0 {
                free.push(*to);
            }
        }
    }
    incoming.iter().position(|n| *n > 0).map(|n| n as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts up to three by calm steps; a fault leads to where the test wants it.
    #[derive(Clone)]
    struct Steps(Vec<(u8, bool, u8)>);

    impl Model for Steps {
        type State = u8;
        type Action = (u8, bool, u8);
        fn init_states(&self) -> Vec<u8> {
            vec![0]
        }
        fn actions(&self, state: &u8, actions: &mut Vec<Self::Action>) {
            actions.extend(self.0.iter().filter(|(from, ..)| from == state));
        }
        fn next_state(&self, _: &u8, action: Self::Action) -> Option<u8> {
            Some(action.2)
        }
    }

    impl Settles for Steps {
        fn is_fault(&self, action: &Self::Action) -> bool {
            action.1
        }
        fn is_settled(&self, state: &u8) -> bool {
            *state == 3
        }
    }

    #[test]
    fn progress_is_told_from_blocked_states_and_circles() {
        let good = vec![(0, false, 1), (1, false, 3), (0, true, 2), (2, false, 1)];
        assert_eq!(stuck(&Steps(good.clone())), (4, None));
        let blocked = [good.clone(), vec![(1, true, 4)]].concat();
        assert!(matches!(stuck(&Steps(blocked)), (5, Some(Stuck::Blocked(steps))) if steps.len() == 2));
        let circle = [good.clone(), vec![(1, false, 2)]].concat();
        assert!(matches!(stuck(&Steps(circle)), (4, Some(Stuck::Circle(_)))));
        let circle_of_a_fault = [good, vec![(1, true, 2)]].concat();
        assert_eq!(stuck(&Steps(circle_of_a_fault)).1, None);
    }
}
