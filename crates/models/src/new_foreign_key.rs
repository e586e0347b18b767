//! A foreign key is validated while its tables are written: what writers note, and what the DDL looks at.
//!
//! # What it stands for
//! A parent row, a child row and the table of notes, each in a partition whose primary may be replaced a few times.
//! Nobody has the constraint yet. Writers insert the child row, take the parent row away, bring it back, take it away
//! again, and take both away together. The DDL looks at the rows that were there (*pass*), then at what was noted, round
//! by round, and at last at what is left when nobody writes; then it switches, or it has failed.
//!
//! A writer of the child row writes it first and looks for the parent then, which leaves a key-share lock; where there
//! is none it notes the child (*orphan*). A writer who takes the parent row away notes its key (*left*). A note that is
//! there is not written again; one that somebody is about to take away is waited for.
//!
//! # What is left out
//! How a commit gets from several partitions to one outcome ([`crate::foreign_keys`] has that, [`crate::commit_takeover`]
//! more): here it is one step, which fails if a partition that was written in has another primary by now. Metadata locks:
//! all writers know of the build.
//!
//! # The rules, with the mutation that shows why
//! 1. A parent that goes is noted by who takes it away, with that ([`Mutation::LeftIsNotNoted`]); a child without a parent
//!    by who writes it ([`Mutation::OrphanIsNotNoted`]).
//! 2. A child row is written first, and its parent is looked up then ([`Mutation::ChildLooksFirst`]: the lock of the look
//!    is lost with the parent's primary, the parent goes and is looked at, and then comes the child).
//! 3. The DDL waits for whoever is about to write the child rows of a key that went ([`Mutation::PassesPendingChild`]).
//! 4. A note is taken away before the DDL looks at what it says, in one transaction
//!    ([`Mutation::NoteIsTakenAfterwards`]: who takes the parent away once more finds the note there, which then goes).
//! 5. The last notes are looked at when nobody writes any more ([`Mutation::SwitchesBesideWriters`]).
//! 6. The DDL fails only if the locks by which it has seen a child without a parent have stood to the end of its look
//!    ([`Mutation::LocksMayBeLost`]: it fails although there was no such child at any moment).
//!
//! That the child's look waits for a parent that is about to go is not needed here: who takes it away notes it when the
//! child row is in place.
//!
//! # Sizes that were exhausted
//! Two replaced primaries in all, in any of the three partitions; with the child row there at the beginning and without.

use stateright::{Model, Property};

const PARENT: usize = 0;
const CHILD: usize = 1;
const NOTES: usize = 2;

/// A safeguard that is switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    LeftIsNotNoted,
    OrphanIsNotNoted,
    ChildLooksFirst,
    PassesPendingChild,
    NoteIsTakenAfterwards,
    SwitchesBesideWriters,
    LocksMayBeLost,
}

#[derive(Debug, Clone)]
pub struct NewForeignKey {
    /// Whether the child row is there at the beginning.
    pub has_child: bool,
    /// How many primaries are replaced, in all.
    pub failures: u8,
    pub mutation: Option<Mutation>,
}

/// Writers; each runs once, or never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Who {
    /// Inserts the child row.
    Inserter,
    /// Takes the parent row away.
    Deleter,
    /// Brings it back.
    Restorer,
    /// Takes it away again.
    SecondDeleter,
    /// Takes the child row away and then its parent.
    Mover,
    Ddl,
}

const WRITERS: [Who; 5] = [Who::Inserter, Who::Deleter, Who::Restorer, Who::SecondDeleter, Who::Mover];

/// A row or a note: whether it is there, and who is about to write it, and as what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Row {
    there: bool,
    pending: Option<(Who, bool)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Note {
    Orphan,
    Left,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Stage {
    NotBegun,
    /// It has written so many of its rows.
    Wrote(u8),
    /// It has looked, or noted what it had to: it may commit.
    Ready,
    Ended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Txn {
    stage: Stage,
    /// Views in which it has written, by partition.
    wrote: [Option<u8>; 3],
    /// The view in which its look left a key-share lock on the parent row.
    shares: Option<u8>,
    /// What an early look has found ([`Mutation::ChildLooksFirst`]).
    early: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Look {
    /// Nothing is looked at.
    None,
    /// A parent is looked for, of a note [`Note::Left`].
    Parent,
    /// The child row is locked.
    Child,
    /// The parent is looked for under the child's lock.
    ParentOfChild,
    /// The look ends; `true`: a child has no parent.
    End(bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Phase {
    /// The rows that were there; `Some`: what was read of the child row.
    Pass(Option<bool>),
    Rounds,
    /// Nobody writes any more.
    Last,
    Switched,
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Ddl {
    phase: Phase,
    look: Look,
    note: Option<Note>,
    /// The views in which it took the note away and locked the child row.
    took: Option<u8>,
    locked: Option<u8>,
    /// When it looked last, there was a child row without a parent.
    was_broken: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    views: [u8; 3],
    rows: [Row; 2],
    notes: [Row; 2],
    txns: [Txn; 5],
    ddl: Ddl,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The next thing that a writer does.
    Go(Who),
    Commit(Who),
    Abort(Who),
    /// The next thing that the DDL does; with a choice, about this note.
    Ddl,
    Take(usize),
    Fail(usize),
}

fn index(who: Who) -> usize {
    WRITERS.iter().position(|writer| *writer == who).expect("a writer")
}

impl State {
    fn txn(&mut self, who: Who) -> &mut Txn {
        &mut self.txns[index(who)]
    }

    /// Whether somebody other than `who` has a key-share lock on the parent row that stands.
    fn is_shared(&self, who: Who) -> bool {
        WRITERS
            .iter()
            .zip(&self.txns)
            .any(|(other, txn)| *other != who && txn.stage != Stage::Ended && txn.shares == Some(self.views[PARENT]))
    }

    /// Writes a row; `None`: it must wait. `Some(false)`: the row is so already.
    fn write(&mut self, who: Who, at: usize, there: bool) -> Option<bool> {
        let locked = at == CHILD && self.ddl.locked == Some(self.views[CHILD]);
        if self.rows[at].pending.is_some() || locked || at == PARENT && self.is_shared(who) {
            return None;
        }
        if self.rows[at].there == there {
            return Some(false);
        }
        self.rows[at].pending = Some((who, there));
        let view = self.views[at];
        self.txn(who).wrote[at] = Some(view);
        Some(true)
    }

    /// `None`: it must wait.
    fn note(&mut self, who: Who, note: Note) -> Option<()> {
        let row = &mut self.notes[note as usize];
        if row.pending.is_some() {
            return None;
        }
        if !row.there {
            row.pending = Some((who, true));
            let view = self.views[NOTES];
            self.txn(who).wrote[NOTES] = Some(view);
        }
        Some(())
    }

    /// What `who` has written is in place, or is gone.
    fn settle(&mut self, who: Who, commits: bool) {
        for row in self.rows.iter_mut().chain(&mut self.notes) {
            if let Some((_, there)) = row.pending.filter(|(owner, _)| *owner == who) {
                *row = Row { there: if commits { there } else { row.there }, pending: None };
            }
        }
    }

    fn end(&mut self, who: Who, commits: bool) {
        self.settle(who, commits);
        let txn = self.txn(who);
        *txn = Txn { stage: Stage::Ended, ..Txn::new() };
    }

    fn is_broken(&self) -> bool {
        self.rows[CHILD].there && !self.rows[PARENT].there
    }
}

impl Txn {
    fn new() -> Txn {
        Txn { stage: Stage::NotBegun, wrote: [None; 3], shares: None, early: None }
    }

    fn is_open(&self) -> bool {
        match self.stage {
            Stage::NotBegun => self.early.is_some(),
            stage => stage != Stage::Ended,
        }
    }
}

impl NewForeignKey {
    fn is(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    fn go(&self, state: &mut State, who: Who) -> Option<()> {
        let stage = state.txn(who).stage;
        let next = match (who, stage) {
            (Who::Inserter, Stage::NotBegun)
                if self.is(Mutation::ChildLooksFirst) && state.txn(who).early.is_none() =>
            {
                let found = self.look_for_parent(state, who)?;
                state.txn(who).early = Some(found);
                return Some(());
            }
            (Who::Inserter, Stage::NotBegun) => match state.write(who, CHILD, true)? {
                true => Stage::Wrote(1),
                false => Stage::Ended,
            },
            (Who::Inserter, Stage::Wrote(1)) => {
                let found = match state.txn(who).early {
                    Some(found) => found,
                    None => self.look_for_parent(state, who)?,
                };
                if !found && !self.is(Mutation::OrphanIsNotNoted) {
                    state.note(who, Note::Orphan)?;
                }
                Stage::Ready
            }
            (Who::Restorer, Stage::NotBegun) => match state.write(who, PARENT, true)? {
                true => Stage::Ready,
                false => Stage::Ended,
            },
            (Who::Mover, Stage::NotBegun) => match state.write(who, CHILD, false)? {
                true => Stage::Wrote(0),
                false => Stage::Ended,
            },
            (Who::Deleter | Who::SecondDeleter, Stage::NotBegun) | (Who::Mover, Stage::Wrote(0)) => {
                match state.write(who, PARENT, false)? {
                    true => Stage::Wrote(1),
                    false if who == Who::Mover => Stage::Ready,
                    false => Stage::Ended,
                }
            }
            (_, Stage::Wrote(1)) => {
                if !self.is(Mutation::LeftIsNotNoted) {
                    state.note(who, Note::Left)?;
                }
                Stage::Ready
            }
            _ => return None,
        };
        state.txn(who).stage = next;
        Some(())
    }

    fn look_for_parent(&self, state: &mut State, who: Who) -> Option<bool> {
        let row = state.rows[PARENT];
        if row.pending.is_some() {
            return None;
        }
        if row.there {
            let view = state.views[PARENT];
            state.txn(who).shares = Some(view);
        }
        Some(row.there)
    }

    /// The DDL goes on; `None`: it must wait, or has nothing to do.
    fn ddl(&self, state: &mut State) -> Option<()> {
        let ddl = state.ddl;
        match (ddl.phase, ddl.look) {
            // Without locks.
            (Phase::Pass(None), Look::None) => state.ddl.phase = Phase::Pass(Some(state.rows[CHILD].there)),
            (Phase::Pass(Some(true)), Look::None) if !state.rows[PARENT].there => state.ddl.look = Look::Child,
            (Phase::Pass(Some(_)), Look::None) => state.ddl.phase = Phase::Rounds,
            (Phase::Rounds, Look::None) => {
                if state.txns.iter().any(Txn::is_open) && !self.is(Mutation::SwitchesBesideWriters) {
                    return None;
                }
                state.ddl.phase = Phase::Last;
            }
            (Phase::Last, Look::None) if state.notes.iter().all(|note| !note.there) => {
                state.ddl.phase = Phase::Switched;
            }
            (_, Look::Parent | Look::ParentOfChild) => {
                if state.rows[PARENT].pending.is_some() {
                    return None;
                }
                let there = state.rows[PARENT].there;
                state.ddl.was_broken = state.is_broken();
                state.ddl.look = match ddl.look {
                    _ if there => Look::End(false),
                    Look::Parent => Look::Child,
                    _ => Look::End(true),
                };
            }
            (_, Look::Child) => {
                let row = state.rows[CHILD];
                let passes = self.is(Mutation::PassesPendingChild);
                if row.pending.is_some() && !passes {
                    return None;
                }
                state.ddl.look = if row.there { Look::ParentOfChild } else { Look::End(false) };
                state.ddl.locked = row.there.then_some(state.views[CHILD]);
            }
            (phase, Look::End(broken)) => {
                let stands = |at: usize, view: Option<u8>| view.is_none_or(|view| view == state.views[at]);
                let lost = !stands(NOTES, ddl.took) || !stands(CHILD, ddl.locked) && !self.is(Mutation::LocksMayBeLost);
                state.ddl = Ddl { look: Look::None, note: None, took: None, locked: None, ..ddl };
                if lost {
                    // Once more, from what is there.
                    state.settle(Who::Ddl, false);
                    return Some(());
                }
                if self.is(Mutation::NoteIsTakenAfterwards)
                    && let Some(note) = ddl.note
                {
                    state.notes[note as usize].there = false;
                }
                state.settle(Who::Ddl, true);
                state.ddl.phase = match phase {
                    _ if broken => Phase::Failed,
                    Phase::Pass(_) => Phase::Rounds,
                    phase => phase,
                };
            }
            _ => return None,
        }
        Some(())
    }

    fn take(&self, state: &mut State, note: Note) -> Option<()> {
        let ready = matches!(state.ddl.phase, Phase::Rounds | Phase::Last) && state.ddl.look == Look::None;
        let view = state.views[NOTES];
        let row = &mut state.notes[note as usize];
        if !ready || !row.there || row.pending.is_some() {
            return None;
        }
        if !self.is(Mutation::NoteIsTakenAfterwards) {
            row.pending = Some((Who::Ddl, false));
        }
        state.ddl.took = Some(view);
        state.ddl.note = Some(note);
        state.ddl.look = if note == Note::Left { Look::Parent } else { Look::Child };
        Some(())
    }
}

pub const REFERENCES: &str = "after the switch no child row is without its parent";
pub const TRUE_FAILURE: &str = "the DDL fails only over a child row that had no parent";

impl Model for NewForeignKey {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let row = |there| Row { there, pending: None };
        let parents: &[bool] = if self.has_child { &[true, false] } else { &[true] };
        let state = |&parent: &bool| State {
            views: [0; 3],
            rows: [row(parent), row(self.has_child)],
            notes: [row(false); 2],
            txns: [Txn::new(); 5],
            ddl: Ddl {
                phase: Phase::Pass(None),
                look: Look::None,
                note: None,
                took: None,
                locked: None,
                was_broken: false,
            },
        };
        parents.iter().map(state).collect()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Step>) {
        if matches!(state.ddl.phase, Phase::Switched | Phase::Failed) {
            // Who began before the switch may end: with a safeguard switched off there may be such.
            actions.extend(WRITERS.map(Step::Commit));
            return;
        }
        for (who, txn) in WRITERS.iter().zip(&state.txns) {
            // When nobody writes any more, nobody begins.
            if state.ddl.phase != Phase::Last || txn.is_open() {
                actions.push(Step::Go(*who));
            }
            actions.extend([Step::Commit(*who), Step::Abort(*who)]);
        }
        actions.extend([Step::Ddl, Step::Take(0), Step::Take(1)]);
        actions.extend((0..3).map(Step::Fail));
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        let mut next = state.clone();
        match step {
            Step::Go(who) => self.go(&mut next, who)?,
            Step::Commit(who) => {
                let txn = *next.txn(who);
                if txn.stage != Stage::Ready {
                    return None;
                }
                let stands = (0..3).all(|at| txn.wrote[at].is_none_or(|view| view == state.views[at]));
                next.end(who, stands);
            }
            Step::Abort(who) => {
                if !next.txn(who).is_open() {
                    return None;
                }
                next.end(who, false);
            }
            Step::Ddl => self.ddl(&mut next)?,
            Step::Take(note) => self.take(&mut next, [Note::Orphan, Note::Left][note])?,
            Step::Fail(at) => {
                if state.views.iter().sum::<u8>() >= self.failures {
                    return None;
                }
                next.views[at] += 1;
                match at {
                    NOTES => next.notes.iter_mut().for_each(|note| note.pending = None),
                    at => next.rows[at].pending = None,
                }
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(REFERENCES, |_, s: &State| s.ddl.phase != Phase::Switched || !s.is_broken()),
            Property::always(TRUE_FAILURE, |_, s: &State| s.ddl.phase != Phase::Failed || s.ddl.was_broken),
            Property::sometimes("the DDL switches", |_, s: &State| s.ddl.phase == Phase::Switched),
            Property::sometimes("the DDL fails", |_, s: &State| s.ddl.phase == Phase::Failed),
            Property::sometimes("it switches over a parent that went and came back", |_, s: &State| {
                let done = |who| s.txns[index(who)].stage == Stage::Ended;
                s.ddl.phase == Phase::Switched && s.rows[CHILD].there && done(Who::Deleter) && done(Who::Restorer)
            }),
        ]
    }
}

/// The sizes that the tests exhaust, or larger ones.
pub fn sizes(large: bool) -> Vec<(bool, u8)> {
    let failures: &[u8] = if large { &[3] } else { &[0, 1, 2] };
    [false, true].iter().flat_map(|has_child| failures.iter().map(|failures| (*has_child, *failures))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{exhaust, hunt};

    #[test]
    fn every_state_is_safe() {
        for (has_child, failures) in sizes(false) {
            let seen = exhaust(NewForeignKey { has_child, failures, mutation: None }, 1);
            seen.assert_safe();
            assert!(seen.never.is_empty(), "{has_child} {failures}: {:?}", seen.never);
        }
    }

    #[test]
    fn every_mutation_is_found() {
        let found = |mutation, has_child, failures, property| {
            let seen = hunt(NewForeignKey { has_child, failures, mutation: Some(mutation) }, property);
            assert!(!seen.trace(property).is_empty(), "{mutation:?}");
        };
        found(Mutation::LeftIsNotNoted, true, 0, REFERENCES);
        found(Mutation::OrphanIsNotNoted, false, 0, REFERENCES);
        found(Mutation::ChildLooksFirst, false, 1, REFERENCES);
        found(Mutation::PassesPendingChild, false, 1, REFERENCES);
        found(Mutation::NoteIsTakenAfterwards, true, 0, REFERENCES);
        found(Mutation::SwitchesBesideWriters, false, 0, REFERENCES);
        found(Mutation::LocksMayBeLost, true, 1, TRUE_FAILURE);
    }
}
