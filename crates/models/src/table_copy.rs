//! A table is copied into a new form while it is written: what writers note, and what the DDL copies again.
//!
//! # What it stands for
//! One row of the old table, its copy in the new one, and the note about it, each in a partition whose primary may be
//! replaced a few times. Writers insert the row, change it, take it away and bring it back. The DDL reads the row and
//! copies what it read (*pass*), then copies again what was noted, round by round, and at last when nobody writes; then
//! it switches to the new table.
//!
//! A writer writes the row first and notes that then, in one transaction. A note that is there is not written again; one
//! that somebody is about to take away is waited for. The DDL takes a note away, locks its row, and writes the copy as the
//! row is now, in one transaction. A row that is not there cannot be locked.
//!
//! # What is left out
//! How a commit gets from several partitions to one outcome ([`crate::commit_takeover`]): here it is one step, which fails
//! if a partition that was written in, or in which a row was locked, has another primary by now. Rows that take the unique
//! key of one another: the code copies such a row again later, and takes all noted rows away before it brings the first
//! back when nobody writes. Metadata locks: all writers know of the copy.
//!
//! # The rules, with the mutation that shows why
//! 1. Whoever changes a row notes that, with the change ([`Mutation::ChangeIsNotNoted`]).
//! 2. What is noted is copied again only when the pass has copied what it read ([`Mutation::RoundsBesideThePass`]: the pass
//!    copies what was there before the change, over it).
//! 3. The DDL waits for whoever is about to write a noted row ([`Mutation::PassesPendingRow`]: his note was there before).
//! 4. A note is taken away in the transaction that copies the row ([`Mutation::NoteIsTakenAfterwards`]: who changes the row
//!    once more finds the note there, which then goes).
//! 5. The note is taken away before the row is looked at ([`Mutation::RowIsReadBeforeNote`]: a row that is not there is
//!    brought back, and whoever does finds the note there, which then goes). So a lock on the row that is lost with its
//!    primary does no harm: whoever writes the row then waits at the note.
//! 6. The last notes are looked at when nobody writes any more ([`Mutation::SwitchesBesideWriters`]).
//!
//! # Sizes that were exhausted
//! Two replaced primaries in all, in any of the three partitions; with the row there at the beginning and without.

use stateright::{Model, Property};

const ROW: usize = 0;
const COPY: usize = 1;
const NOTE: usize = 2;

/// A safeguard that is switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    ChangeIsNotNoted,
    RoundsBesideThePass,
    PassesPendingRow,
    NoteIsTakenAfterwards,
    RowIsReadBeforeNote,
    SwitchesBesideWriters,
}

#[derive(Debug, Clone)]
pub struct TableCopy {
    /// Whether the row is there at the beginning.
    pub has_row: bool,
    /// How many primaries are replaced, in all.
    pub failures: u8,
    pub mutation: Option<Mutation>,
}

/// What a row is; `None`: it is not there.
type Content = Option<u8>;

/// What each writer makes of the row; each runs once, or never.
const WRITERS: [Content; 4] = [Some(1), None, Some(2), None];
const FIRST: Content = Some(0);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Stage {
    NotBegun,
    /// It has written the row.
    Wrote,
    /// It has noted that: it may commit.
    Ready,
    Ended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Txn {
    stage: Stage,
    /// Views in which it has written, by partition.
    wrote: [Option<u8>; 3],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Phase {
    /// `Some`: what was read of the row.
    Pass(Option<Content>),
    Rounds,
    /// Nobody writes any more.
    Last,
    Switched,
}

/// The DDL's transaction about a noted row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Look {
    None,
    /// It has taken the note away.
    Noted,
    /// In this view it has looked at the row, which was so, and locked it if it was there.
    Locked(u8, Content),
    /// It has written the copy.
    Written(u8, Content),
    /// Only with [`Mutation::NoteIsTakenAfterwards`]: the copy is in place, and the note is still there.
    Afterwards,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Ddl {
    phase: Phase,
    look: Look,
    /// Views in which it has written.
    wrote: [Option<u8>; 3],
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    views: [u8; 3],
    row: Content,
    /// Which writer is about to write the row.
    writes_row: Option<usize>,
    copy: Content,
    /// What the DDL is about to make of the copy.
    writes_copy: Option<Content>,
    note: bool,
    /// Which writer is about to leave the note.
    leaves_note: Option<usize>,
    /// The DDL is about to take it away.
    takes_note: bool,
    txns: [Txn; 4],
    ddl: Ddl,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The next thing that a writer does.
    Go(usize),
    Commit(usize),
    Abort(usize),
    /// The next thing that the DDL does.
    Ddl,
    /// It begins to look at the note.
    Look,
    Fail(usize),
}

impl Txn {
    fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Wrote | Stage::Ready)
    }
}

impl State {
    fn stands(&self, wrote: &[Option<u8>; 3]) -> bool {
        wrote.iter().zip(self.views).all(|(wrote, view)| wrote.is_none_or(|wrote| wrote == view))
    }

    /// The DDL's lock on the row, if its primary still has it.
    fn is_locked(&self) -> bool {
        match self.ddl.look {
            Look::Locked(view, content) | Look::Written(view, content) => content.is_some() && view == self.views[ROW],
            Look::None | Look::Noted | Look::Afterwards => false,
        }
    }

    fn end(&mut self, who: usize, commits: bool) {
        if self.writes_row == Some(who) {
            self.writes_row = None;
            self.row = if commits { WRITERS[who] } else { self.row };
        }
        if self.leaves_note == Some(who) {
            self.leaves_note = None;
            self.note |= commits;
        }
        self.txns[who] = Txn { stage: Stage::Ended, wrote: [None; 3] };
    }

    fn end_ddl(&mut self, commits: bool) {
        if let Some(copy) = self.writes_copy.take()
            && commits
        {
            self.copy = copy;
        }
        if std::mem::take(&mut self.takes_note) && commits {
            self.note = false;
        }
        self.ddl.wrote = [None; 3];
    }
}

impl TableCopy {
    fn is(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    /// A writer goes on; `None`: it must wait, or has nothing to do.
    fn go(&self, state: &mut State, who: usize) -> Option<()> {
        match state.txns[who].stage {
            Stage::NotBegun => {
                if state.writes_row.is_some() || state.is_locked() || state.row == WRITERS[who] {
                    return None;
                }
                state.writes_row = Some(who);
                state.txns[who] = Txn { stage: Stage::Wrote, wrote: [Some(state.views[ROW]), None, None] };
            }
            Stage::Wrote => {
                if state.takes_note || state.leaves_note.is_some() {
                    return None;
                }
                if !state.note && !self.is(Mutation::ChangeIsNotNoted) {
                    state.leaves_note = Some(who);
                    state.txns[who].wrote[NOTE] = Some(state.views[NOTE]);
                }
                state.txns[who].stage = Stage::Ready;
            }
            Stage::Ready | Stage::Ended => return None,
        }
        Some(())
    }

    fn may_look(&self, phase: Phase) -> bool {
        match phase {
            Phase::Pass(_) => self.is(Mutation::RoundsBesideThePass),
            Phase::Rounds | Phase::Last => true,
            Phase::Switched => false,
        }
    }

    fn look(&self, state: &mut State) -> Option<()> {
        if !self.may_look(state.ddl.phase) || state.ddl.look != Look::None || !state.note || state.writes_copy.is_some()
        {
            return None;
        }
        if !self.is(Mutation::RowIsReadBeforeNote) {
            self.take_note(state)?;
            state.ddl.look = Look::Noted;
            return Some(());
        }
        if state.writes_row.is_some() {
            return None;
        }
        state.ddl.look = Look::Locked(state.views[ROW], state.row);
        Some(())
    }

    /// `None`: somebody writes it.
    fn take_note(&self, state: &mut State) -> Option<()> {
        if state.leaves_note.is_some() {
            return None;
        }
        if !self.is(Mutation::NoteIsTakenAfterwards) {
            state.takes_note = true;
            state.ddl.wrote[NOTE] = Some(state.views[NOTE]);
        }
        Some(())
    }

    fn ddl(&self, state: &mut State) -> Option<()> {
        match (state.ddl.phase, state.ddl.look) {
            // Whoever writes the row has it locked: another time.
            (_, Look::Noted) if state.writes_row.is_some() && !self.is(Mutation::PassesPendingRow) => {
                state.end_ddl(false);
                state.ddl.look = Look::None;
            }
            (_, Look::Noted) => state.ddl.look = Look::Locked(state.views[ROW], state.row),
            (_, Look::Locked(view, content)) => {
                if self.is(Mutation::RowIsReadBeforeNote) {
                    self.take_note(state)?;
                }
                state.writes_copy = Some(content);
                state.ddl.wrote[COPY] = Some(state.views[COPY]);
                state.ddl.look = Look::Written(view, content);
            }
            (_, Look::Written(..)) => {
                let commits = state.stands(&state.ddl.wrote);
                state.end_ddl(commits);
                let afterwards = commits && self.is(Mutation::NoteIsTakenAfterwards);
                state.ddl.look = if afterwards { Look::Afterwards } else { Look::None };
            }
            (_, Look::Afterwards) => {
                state.note = false;
                state.ddl.look = Look::None;
            }
            // Without locks.
            (Phase::Pass(None), Look::None) => state.ddl.phase = Phase::Pass(Some(state.row)),
            (Phase::Pass(Some(content)), Look::None) => match state.writes_copy {
                None => {
                    state.writes_copy = Some(content);
                    state.ddl.wrote[COPY] = Some(state.views[COPY]);
                }
                Some(_) => {
                    let commits = state.stands(&state.ddl.wrote);
                    state.end_ddl(commits);
                    if commits {
                        state.ddl.phase = Phase::Rounds;
                    }
                }
            },
            (Phase::Rounds, Look::None) => {
                if state.txns.iter().any(Txn::is_open) && !self.is(Mutation::SwitchesBesideWriters) {
                    return None;
                }
                state.ddl.phase = Phase::Last;
            }
            (Phase::Last, Look::None) if !state.note => state.ddl.phase = Phase::Switched,
            (Phase::Last | Phase::Switched, Look::None) => return None,
        }
        Some(())
    }
}

pub const SAME: &str = "after the switch the copy is what the row was";

impl Model for TableCopy {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            views: [0; 3],
            row: if self.has_row { FIRST } else { None },
            writes_row: None,
            copy: None,
            writes_copy: None,
            note: false,
            leaves_note: None,
            takes_note: false,
            txns: [Txn { stage: Stage::NotBegun, wrote: [None; 3] }; 4],
            ddl: Ddl { phase: Phase::Pass(None), look: Look::None, wrote: [None; 3] },
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Step>) {
        let writers = 0..WRITERS.len();
        if state.ddl.phase == Phase::Switched {
            // With a safeguard switched off there may be some who began before.
            actions.extend(writers.map(Step::Commit));
            return;
        }
        for who in writers {
            // When nobody writes any more, nobody begins.
            if state.ddl.phase != Phase::Last || state.txns[who].is_open() {
                actions.push(Step::Go(who));
            }
            actions.extend([Step::Commit(who), Step::Abort(who)]);
        }
        actions.extend([Step::Ddl, Step::Look]);
        actions.extend((0..3).map(Step::Fail));
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        let mut next = state.clone();
        match step {
            Step::Go(who) => self.go(&mut next, who)?,
            Step::Commit(who) => {
                if next.txns[who].stage != Stage::Ready {
                    return None;
                }
                let stands = next.stands(&next.txns[who].wrote);
                next.end(who, stands);
            }
            Step::Abort(who) => {
                if !next.txns[who].is_open() {
                    return None;
                }
                next.end(who, false);
            }
            Step::Ddl => self.ddl(&mut next)?,
            Step::Look => self.look(&mut next)?,
            Step::Fail(at) => {
                if state.views.iter().sum::<u8>() >= self.failures {
                    return None;
                }
                next.views[at] += 1;
                match at {
                    ROW => next.writes_row = None,
                    COPY => next.writes_copy = None,
                    _ => (next.leaves_note, next.takes_note) = (None, false),
                }
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(SAME, |_, s: &State| s.ddl.phase != Phase::Switched || s.copy == s.row),
            Property::sometimes("it switches over a row that was changed", |_, s: &State| {
                s.ddl.phase == Phase::Switched && s.copy == Some(2)
            }),
            Property::sometimes("it switches over a row that went", |_, s: &State| {
                s.ddl.phase == Phase::Switched && s.copy.is_none() && s.txns[1].stage == Stage::Ended
            }),
        ]
    }
}

/// The sizes that the tests exhaust, or larger ones.
pub fn sizes(large: bool) -> Vec<(bool, u8)> {
    let failures: &[u8] = if large { &[3] } else { &[0, 1, 2] };
    [false, true].iter().flat_map(|has_row| failures.iter().map(|failures| (*has_row, *failures))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{exhaust, hunt};

    #[test]
    fn every_state_is_safe() {
        for (has_row, failures) in sizes(false) {
            let seen = exhaust(TableCopy { has_row, failures, mutation: None }, 1);
            seen.assert_safe();
            assert!(seen.never.is_empty(), "{has_row} {failures}: {:?}", seen.never);
        }
    }

    #[test]
    fn every_mutation_is_found() {
        let found = |mutation, failures| {
            let seen = hunt(TableCopy { has_row: true, failures, mutation: Some(mutation) }, SAME);
            assert!(!seen.trace(SAME).is_empty(), "{mutation:?}");
        };
        found(Mutation::ChangeIsNotNoted, 0);
        found(Mutation::RoundsBesideThePass, 0);
        found(Mutation::PassesPendingRow, 0);
        found(Mutation::NoteIsTakenAfterwards, 0);
        found(Mutation::RowIsReadBeforeNote, 0);
        found(Mutation::SwitchesBesideWriters, 0);
    }
}
