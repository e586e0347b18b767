//! Digests of the rows of two replicas, told at one entry of their group's stream.
//!
//! # What it stands for
//! A primary and a follower, which changes places with it a few times. The stream has commits of this group alone, one
//! transaction over several groups (a prepare, and its decision), openings of views, and entries that ask for a
//! comparison. Each replica applies what it knows, as the code does: a commit of this group alone when the replica knows it to be
//! stable, the other transaction when its decision comes. A new primary's stream cuts what differs; a decision that has
//! been applied stays. Nothing is ever damaged: so both must always tell the same of an entry.
//!
//! # What is left out
//! Rows and digests: a replica's rows are the set of transactions that it has applied, and that is what it tells.
//! Copies, tables, and what follows from a difference.
//!
//! # The rules, with the mutation that shows why
//! 1. What is told counts entries of this group alone that come before the one that asks, whether or not the replica knows
//!    that they are stable ([`Mutation::OnlyApplied`]).
//! 2. It is told when the entry that asks comes, and not when it is stable ([`Mutation::WhenStable`]: decisions behind
//!    it may have been applied by then).
//! 3. A replica that knows a commit whose decision was cut tells nothing ([`Mutation::WithoutDecision`]).
//! 4. What is told is of an entry, by view and position ([`Mutation::ByPosition`]).
//!
//! # Sizes that were exhausted
//! Streams of up to six entries, two changes of the primary.

use stateright::{Model, Property};

/// A safeguard that is switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    OnlyApplied,
    WhenStable,
    WithoutDecision,
    ByPosition,
}

#[derive(Debug, Clone)]
pub struct Comparison {
    /// Entries in a stream, at most.
    pub entries: usize,
    /// How often the follower becomes the primary, at most.
    pub views: u8,
    pub mutation: Option<Mutation>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    Opening,
    /// A commit of this group alone: one of two transactions.
    Alone(u8),
    Prepare,
    Decide,
    Ask,
}

const KINDS: [Kind; 5] = [Kind::Alone(0), Kind::Alone(1), Kind::Prepare, Kind::Decide, Kind::Ask];
/// The bit of the transaction over several groups, behind those of the others.
const SEVERAL: u8 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Entry {
    view: u8,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Replica {
    stream: Vec<Entry>,
    /// So many of them are known here to be stable.
    stable: usize,
    /// So many are known to be the primary's, in this view.
    verified: usize,
    /// The decision has been applied.
    decided: bool,
}

/// What a replica has told of an entry that asks: view, position, transactions.
type Told = (u8, usize, u8);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    replicas: [Replica; 2],
    view: u8,
    primary: usize,
    /// The other groups have prepared too, and somebody has decided.
    is_decided: bool,
    told: [Vec<Told>; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The primary writes an entry.
    Write(Kind),
    /// The follower gets its next entry.
    Receive,
    /// A replica hears that one entry more is stable.
    Stable(usize),
    /// The follower becomes the primary.
    Lead,
}

pub const EQUAL: &str = "replicas tell the same of an entry";

impl Replica {
    fn has(&self, kind: Kind) -> bool {
        self.stream.iter().any(|entry| entry.kind == kind)
    }

    /// The commits of this group alone among the first entries.
    fn alone(&self, entries: usize) -> u8 {
        let bit = |entry: &Entry| if let Kind::Alone(number) = entry.kind { 1 << number } else { 0 };
        self.stream[..entries].iter().map(bit).fold(0, |bits, bit| bits | bit)
    }

    fn several(&self) -> u8 {
        if self.decided { SEVERAL } else { 0 }
    }
}

impl Comparison {
    fn is_off(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    /// An entry is in the stream of a replica.
    fn push(&self, state: &mut State, at: usize, entry: Entry) {
        let replica = &mut state.replicas[at];
        replica.stream.push(entry);
        replica.decided |= entry.kind == Kind::Decide;
        let position = replica.stream.len();
        if entry.kind != Kind::Ask || self.is_off(Mutation::WhenStable) {
            return;
        }
        if replica.decided && !replica.has(Kind::Decide) && !self.is_off(Mutation::WithoutDecision) {
            return;
        }
        let counted = if self.is_off(Mutation::OnlyApplied) { replica.stable } else { position };
        let rows = replica.alone(counted) | replica.several();
        state.told[at].push((entry.view, position, rows));
    }

    fn write(&self, state: &mut State, kind: Kind) -> Option<()> {
        let at = state.primary;
        let replica = &state.replicas[at];
        let may = match kind {
            // A primary serves when its opening is stable.
            _ if replica.stable == 0 || replica.stream[replica.stable - 1].view < state.view => false,
            Kind::Decide => state.is_decided && replica.has(Kind::Prepare) && !replica.has(Kind::Decide),
            // It is refused for ever in a view that does not have it.
            Kind::Prepare => state.view == 1 && !replica.has(kind),
            Kind::Alone(_) => !replica.has(kind),
            Kind::Ask | Kind::Opening => true,
        };
        let entry = Entry { view: state.view, kind };
        (may && replica.stream.len() < self.entries).then(|| self.push(state, at, entry))
    }

    fn receive(&self, state: &mut State) -> Option<()> {
        let (from, to) = (state.primary, 1 - state.primary);
        let next = state.replicas[to].verified;
        let entry = *state.replicas[from].stream.get(next)?;
        let replica = &mut state.replicas[to];
        if replica.stream.get(next) != Some(&entry) {
            assert!(replica.stable <= next, "a stable entry is cut");
            replica.stream.truncate(next);
            self.push(state, to, entry);
        }
        state.replicas[to].verified += 1;
        Some(())
    }

    fn hear(&self, state: &mut State, at: usize) -> Option<()> {
        let (primary, other) = (&state.replicas[state.primary], &state.replicas[1 - state.primary]);
        let known = match at == state.primary {
            true => primary.stream.len().min(other.verified),
            false => primary.stable.min(other.verified),
        };
        let replica = &mut state.replicas[at];
        if replica.stable >= known {
            return None;
        }
        replica.stable += 1;
        let (position, entry) = (replica.stable, replica.stream[replica.stable - 1]);
        match entry.kind {
            Kind::Prepare => state.is_decided = true,
            Kind::Ask if self.is_off(Mutation::WhenStable) => {
                let rows = replica.alone(position) | replica.several();
                state.told[at].push((entry.view, position, rows));
            }
            _ => {}
        }
        Some(())
    }

    fn lead(&self, state: &mut State) -> Option<()> {
        let at = 1 - state.primary;
        if state.view > self.views || state.replicas[at].stream.len() >= self.entries {
            return None;
        }
        state.view += 1;
        state.primary = at;
        // What is stable both have; the rest is compared again.
        for replica in &mut state.replicas {
            replica.verified = replica.stable;
        }
        let entry = Entry { view: state.view, kind: Kind::Opening };
        self.push(state, at, entry);
        Some(())
    }

    fn are_equal(&self, state: &State) -> bool {
        state.told[0].iter().all(|(view, position, rows)| {
            let of_it = |told: &&Told| told.1 == *position && (told.0 == *view || self.is_off(Mutation::ByPosition));
            state.told[1].iter().filter(of_it).all(|(_, _, other)| other == rows)
        })
    }
}

impl Model for Comparison {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let opening = Entry { view: 1, kind: Kind::Opening };
        let replica = Replica { stream: vec![opening], stable: 1, verified: 1, decided: false };
        let replicas = [replica.clone(), replica];
        vec![State { replicas, view: 1, primary: 0, is_decided: false, told: [Vec::new(), Vec::new()] }]
    }

    fn actions(&self, _: &State, actions: &mut Vec<Step>) {
        actions.extend(KINDS.map(Step::Write));
        actions.extend([Step::Receive, Step::Stable(0), Step::Stable(1), Step::Lead]);
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        let mut next = state.clone();
        match step {
            Step::Write(kind) => self.write(&mut next, kind)?,
            Step::Receive => self.receive(&mut next)?,
            Step::Stable(at) => self.hear(&mut next, at)?,
            Step::Lead => self.lead(&mut next)?,
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(EQUAL, |model: &Comparison, s: &State| model.are_equal(s)),
            Property::sometimes("both tell of all transactions", |_, s: &State| {
                let all = |told: &&Told| told.2 & (SEVERAL | 1) == SEVERAL | 1;
                s.told[0].iter().filter(all).any(|told| s.told[1].contains(told))
            }),
            Property::sometimes("a replica knows a decision that was cut", |_, s: &State| {
                s.replicas.iter().any(|replica| replica.decided && !replica.has(Kind::Decide))
            }),
        ]
    }
}

/// The sizes that the tests exhaust, or larger ones: entries, changes of the primary.
pub fn sizes(large: bool) -> Vec<(usize, u8)> {
    if large { vec![(7, 2)] } else { vec![(5, 1), (6, 1), (5, 2)] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{exhaust, hunt};

    #[test]
    fn every_state_is_safe() {
        for (entries, views) in sizes(false) {
            let seen = exhaust(Comparison { entries, views, mutation: None }, 1);
            seen.assert_safe();
            assert!(seen.never.is_empty(), "{entries} {views}: {:?}", seen.never);
        }
    }

    #[test]
    fn every_mutation_is_found() {
        let all = [Mutation::OnlyApplied, Mutation::WhenStable, Mutation::WithoutDecision, Mutation::ByPosition];
        for mutation in all {
            let seen = hunt(Comparison { entries: 6, views: 1, mutation: Some(mutation) }, EQUAL);
            assert!(!seen.trace(EQUAL).is_empty(), "{mutation:?}");
        }
    }
}
