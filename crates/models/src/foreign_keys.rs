//! Foreign keys: the insert of a child row against the delete of its parent, and the failure of a primary between their steps.
//!
//! # What it stands for
//! A parent row in one partition, a child row in another, each partition with a primary that may be replaced a few times. One transaction
//! (*child*) inserts the child row, another (*parent*) deletes the parent row, or gives it another key, which is the same to the child. Each
//! writes its row as a pending version, and looks for the other's row in the newest state of the other partition: a row that somebody else
//! is changing is waited for. Then it prepares in the partition where it has written, and is decided. When a primary is replaced, locks and
//! unprepared writes of its partition are gone, and a transaction that has written there in the older view cannot prepare; what is prepared stays. In
//! the third form ([`Form::Cascade`]) the parent's transaction deletes the child row that it finds, and prepares in both partitions.
//!
//! # What is left out
//! Replicas, leases, logs and take-over of the decision ([`crate::in_sync`], [`crate::commit_takeover`]): here a partition has one state, and whoever
//! leads has it. Snapshots: both looks are at the newest state. Metadata: that both transactions know of the constraint is the DDL's affair.
//!
//! # The rules, with the mutation that shows why
//! 1. Both write first and look then. One at least meets what the other has written: if neither did, each would have looked before the other
//!    wrote. [`Mutation::ParentLooksFirst`] leaves a child without parent with no failure at all; [`Mutation::ChildLooksFirst`] does so when the parent's partition
//!    changes its primary between the child's look and its write, since the lock that the look left behind is gone. (Making sure before
//!    the commit that the locks still stand, [`Form::Validated`], mends that; it is done as well, but the rule does not rest on it.)
//! 2. A look waits for a row that another transaction is changing, on both sides ([`Mutation::ChildPassesPending`], [`Mutation::ParentPassesPending`]).
//!    For the child this needs the lock of a change of the referenced key to keep out key-share locks.
//! 3. A transaction commits only if what it has written is still there: the view of its write is the view of its prepare ([`Mutation::LostWrite`]).
//!
//! The key-share lock that the child's look leaves behind is not needed for safety. It makes the parent's transaction wait at the parent row,
//! where it holds nothing yet, so that deadlocks are rare.
//!
//! # Sizes that were exhausted
//! Failures of the parent's and the child's primary, up to three each; some hundreds to thousands of states.

use stateright::{Model, Property};

/// The partition of the parent row, and of the child row.
const PARENT: usize = 0;
const CHILD: usize = 1;

/// What the transactions do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The parent's transaction fails when it finds a child row.
    Restrict,
    /// It deletes the child row.
    Cascade,
    /// As Restrict; the child's transaction looks first, and makes sure before its commit that the lock of its look stands.
    Validated,
}

/// A safeguard that is switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    ChildLooksFirst,
    ParentLooksFirst,
    ChildPassesPending,
    ParentPassesPending,
    LostWrite,
}

#[derive(Debug, Clone)]
pub struct ForeignKeys {
    pub form: Form,
    /// How often each partition may get another primary.
    pub failures: u8,
    pub mutation: Option<Mutation>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Who {
    Parent,
    Child,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Pending {
    Unprepared,
    Prepared,
}

/// A row and who is changing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Row {
    committed: bool,
    pending: Option<(Who, Pending)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum End {
    Open,
    Committed,
    Aborted,
}

/// Where a transaction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Txn {
    end: End,
    /// The view in which it wrote, by partition.
    wrote: [Option<u8>; 2],
    looked: bool,
    /// The view in which its key-share lock was taken.
    shares: Option<u8>,
    prepared: [bool; 2],
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    views: [u8; 2],
    rows: [Row; 2],
    parent: Txn,
    child: Txn,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Write(Who),
    Look(Who),
    Prepare(Who, usize),
    Decide(Who),
    /// It has failed, or its client gives up.
    Abort(Who),
    Fail(usize),
}

impl ForeignKeys {
    fn is(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    fn looks_first(&self, who: Who) -> bool {
        match who {
            Who::Parent => self.is(Mutation::ParentLooksFirst),
            Who::Child => self.is(Mutation::ChildLooksFirst) || self.form == Form::Validated,
        }
    }
}

impl State {
    fn txn(&self, who: Who) -> &Txn {
        match who {
            Who::Parent => &self.parent,
            Who::Child => &self.child,
        }
    }

    fn txn_mut(&mut self, who: Who) -> &mut Txn {
        match who {
            Who::Parent => &mut self.parent,
            Who::Child => &mut self.child,
        }
    }

    /// Whether the child's key-share lock stands on the parent row.
    fn is_shared(&self) -> bool {
        self.child.end == End::Open && self.child.shares == Some(self.views[PARENT])
    }

    fn abort(&mut self, who: Who) {
        self.txn_mut(who).end = End::Aborted;
        for row in &mut self.rows {
            row.pending = row.pending.filter(|(owner, _)| *owner != who);
        }
    }
}

fn home(who: Who) -> usize {
    match who {
        Who::Parent => PARENT,
        Who::Child => CHILD,
    }
}

fn other(who: Who) -> Who {
    match who {
        Who::Parent => Who::Child,
        Who::Child => Who::Parent,
    }
}

pub const REFERENCES: &str = "no child row without its parent";

impl Model for ForeignKeys {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let txn = Txn { end: End::Open, wrote: [None; 2], looked: false, shares: None, prepared: [false; 2] };
        let row = |committed| Row { committed, pending: None };
        vec![State { views: [0; 2], rows: [row(true), row(false)], parent: txn, child: txn }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Step>) {
        for who in [Who::Parent, Who::Child] {
            if state.txn(who).end == End::Open {
                actions.extend([Step::Write(who), Step::Look(who), Step::Decide(who), Step::Abort(who)]);
                actions.extend([Step::Prepare(who, PARENT), Step::Prepare(who, CHILD)]);
            }
        }
        actions.extend([Step::Fail(PARENT), Step::Fail(CHILD)]);
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        let mut next = state.clone();
        match step {
            Step::Write(who) => {
                let txn = state.txn(who);
                let at = home(who);
                let early = self.looks_first(who) && !txn.looked;
                // A write of the parent row waits for key-share locks.
                if early || txn.wrote[at].is_some() || at == PARENT && state.is_shared() {
                    return None;
                }
                next.rows[at].pending = Some((who, Pending::Unprepared));
                next.txn_mut(who).wrote[at] = Some(state.views[at]);
            }
            Step::Look(who) => {
                let txn = state.txn(who);
                let early = !self.looks_first(who) && txn.wrote[home(who)].is_none();
                if early || txn.looked {
                    return None;
                }
                let at = home(other(who));
                let row = state.rows[at];
                let passes = match who {
                    Who::Parent => self.is(Mutation::ParentPassesPending),
                    Who::Child => self.is(Mutation::ChildPassesPending),
                };
                if row.pending.is_some() && !passes {
                    return None;
                }
                next.txn_mut(who).looked = true;
                match (who, row.committed) {
                    (Who::Child, true) => next.child.shares = Some(state.views[PARENT]),
                    (Who::Child, false) => next.abort(Who::Child),
                    (Who::Parent, false) => {}
                    (Who::Parent, true) if self.form == Form::Cascade => {
                        next.rows[CHILD].pending = Some((Who::Parent, Pending::Unprepared));
                        next.parent.wrote[CHILD] = Some(state.views[CHILD]);
                    }
                    (Who::Parent, true) => next.abort(Who::Parent),
                }
            }
            Step::Prepare(who, at) => {
                let txn = state.txn(who);
                let ready = txn.looked && txn.wrote[home(who)].is_some();
                let view = txn.wrote[at]?;
                if !ready || txn.prepared[at] {
                    return None;
                }
                // Before the first prepare its locks are looked at, and given back.
                let first = txn.prepared == [false; 2];
                if first && self.form == Form::Validated && who == Who::Child && !state.is_shared() {
                    next.abort(who);
                    return Some(next);
                }
                if view != state.views[at] && !self.is(Mutation::LostWrite) {
                    next.abort(who);
                    return Some(next);
                }
                next.rows[at].pending = Some((who, Pending::Prepared));
                next.txn_mut(who).prepared[at] = true;
                next.txn_mut(who).shares = None;
            }
            Step::Decide(who) => {
                let txn = state.txn(who);
                let all = (0..2).all(|at| txn.wrote[at].is_none() || txn.prepared[at]);
                if !txn.looked || txn.wrote[home(who)].is_none() || !all {
                    return None;
                }
                for at in 0..2 {
                    if next.rows[at].pending.is_some_and(|(owner, _)| owner == who) {
                        next.rows[at] = Row { committed: who == Who::Child, pending: None };
                    }
                }
                next.txn_mut(who).end = End::Committed;
            }
            Step::Abort(who) => {
                // What is prepared waits for its decision.
                if state.txn(who).prepared != [false; 2] {
                    return None;
                }
                next.abort(who);
            }
            Step::Fail(at) => {
                if state.views[at] >= self.failures {
                    return None;
                }
                next.views[at] += 1;
                next.rows[at].pending = state.rows[at].pending.filter(|(_, pending)| *pending == Pending::Prepared);
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(REFERENCES, |_, s: &State| s.rows[PARENT].committed || !s.rows[CHILD].committed),
            Property::sometimes("the child row is inserted", |_, s: &State| s.child.end == End::Committed),
            Property::sometimes("the parent row is deleted", |_, s: &State| s.parent.end == End::Committed),
            Property::sometimes("both fail", |_, s: &State| {
                s.parent.end == End::Aborted && s.child.end == End::Aborted
            }),
        ]
    }
}

/// The sizes that the tests exhaust, or larger ones.
pub fn sizes(large: bool) -> Vec<(Form, u8)> {
    let forms = [Form::Restrict, Form::Cascade, Form::Validated];
    let failures: &[u8] = if large { &[3] } else { &[0, 1, 2] };
    forms.iter().flat_map(|form| failures.iter().map(|failures| (*form, *failures))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{exhaust, hunt};

    #[test]
    fn every_state_is_safe() {
        for (form, failures) in sizes(false) {
            let seen = exhaust(ForeignKeys { form, failures, mutation: None }, 1);
            seen.assert_safe();
            assert!(seen.never.is_empty(), "{form:?} {failures}: {:?}", seen.never);
        }
    }

    #[test]
    fn every_mutation_is_found() {
        let found = |form, mutation, failures| {
            let seen = hunt(ForeignKeys { form, failures, mutation: Some(mutation) }, REFERENCES);
            assert!(!seen.trace(REFERENCES).is_empty(), "{mutation:?}");
        };
        found(Form::Restrict, Mutation::ParentLooksFirst, 0);
        found(Form::Restrict, Mutation::ChildPassesPending, 0);
        found(Form::Restrict, Mutation::ParentPassesPending, 1);
        found(Form::Restrict, Mutation::LostWrite, 1);
        found(Form::Restrict, Mutation::ChildLooksFirst, 1);
        found(Form::Cascade, Mutation::ChildLooksFirst, 1);
    }

    /// Where nothing fails, the lock of the look holds.
    #[test]
    fn a_child_that_looks_first_needs_its_lock() {
        let model = ForeignKeys { form: Form::Restrict, failures: 0, mutation: Some(Mutation::ChildLooksFirst) };
        exhaust(model, 1).assert_safe();
    }
}
