//! What may happen in a state of the model, and what it does.

use super::state::{Entry, NODES, Outcome, ROWS, State, Status, needed, outcome};
use super::{LargeChunks, Mutation};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    // The large transaction.
    Write {
        row: usize,
    },
    /// The leader appends a row that was written as a chunk.
    Chunk {
        row: usize,
    },
    /// The transaction goes back to a savepoint before its last row.
    GoBack,
    /// The entry that was owed for that.
    AppendBack,
    Name,
    Decide {
        commit: bool,
    },
    Report,
    // The small transaction.
    Small,
    ReportSmall,
    // The stream.
    Ship,
    Adopt,
    Settle,
    LearnStable,
    /// A node checkpoints what is stable, and releases its log up to there.
    Release {
        node: usize,
    },
    Join,
    ReadNewest {
        row: usize,
        node: usize,
    },
    /// A node leads the next view.
    Lead {
        node: usize,
    },
    // Faults.
    Kill,
    Remove,
    /// The process ends; the next one begins with checkpoint and log.
    Crash {
        node: usize,
    },
}

pub fn candidates(steps: &mut Vec<Step>) {
    steps.extend([Step::GoBack, Step::AppendBack, Step::Name, Step::Report, Step::Small, Step::ReportSmall]);
    steps.extend([Step::Decide { commit: true }, Step::Decide { commit: false }]);
    steps.extend([Step::Ship, Step::Adopt, Step::Settle, Step::LearnStable, Step::Join, Step::Kill, Step::Remove]);
    for row in 0..ROWS {
        steps.extend([Step::Write { row }, Step::Chunk { row }]);
        steps.extend((0..NODES).map(|node| Step::ReadNewest { row, node }));
    }
    for node in 0..NODES {
        steps.extend([Step::Release { node }, Step::Lead { node }, Step::Crash { node }]);
    }
}

/// The state after `step`, or `None` where it is not possible or changes nothing.
pub fn apply(model: &LargeChunks, state: &State, step: &Step) -> Option<State> {
    let mut next = state.clone();
    let other = 1 - usize::from(state.leader);
    let void = model.views_void();
    match *step {
        Step::Write { row } => {
            let free = row + 1 < ROWS || state.led()?.place(|entry| *entry == Entry::Small).is_none();
            let begun = state.of_view == 0 || state.of_view == state.view;
            state.led()?;
            // Rows are written in their order; chunks are appended in any.
            let in_order = state.written == (1 << row) - 1;
            if state.status != Status::Active || !begun || !free || !in_order || state.went_back {
                return None;
            }
            next.of_view = state.view;
            next.written |= 1 << row;
        }
        Step::Chunk { row } => {
            let bit = 1 << row;
            state.led()?;
            if !open(state) || state.written & bit == 0 || state.chunked & bit != 0 {
                return None;
            }
            next.chunked |= bit;
            next.push(Entry::Chunk { row: row as u8 });
        }
        Step::GoBack => {
            let last = 1 << (ROWS - 1);
            state.led()?;
            if !open(state) || state.written & last == 0 || !model.size.savepoint {
                return None;
            }
            take_back(model, &mut next, last);
            next.went_back = true;
        }
        Step::AppendBack => {
            state.led()?;
            if state.owed == 0 {
                return None;
            }
            next.push(Entry::Back { rows: state.owed });
            next.owed = 0;
        }
        Step::Name => {
            state.led()?;
            if !open(state) || state.written == 0 {
                return None;
            }
            // The commit comes with counts: a chunk of it may not be in the stream yet.
            let whole = state.chunked == state.written;
            if !whole && !model.is(Mutation::CountNotChecked) {
                return None;
            }
            next.meant = state.written;
            next.status = Status::Named;
            next.push(Entry::Name { rows: state.chunked, prepares: model.size.prepares });
        }
        Step::Decide { commit } => {
            let own = state.led()?;
            let place = own.place(|entry| matches!(entry, Entry::Name { prepares: true, .. }))?;
            let decided = own.place(|entry| matches!(entry, Entry::Decide { .. })).is_some();
            if decided || place >= own.stable || state.reported == Some(!commit) {
                return None;
            }
            next.push(Entry::Decide { commit });
            next.reported = Some(commit);
        }
        Step::Report => {
            let own = state.led()?;
            if state.reported.is_some() {
                return None;
            }
            let named = own.place(|entry| matches!(entry, Entry::Name { .. }));
            let lost_locks = state.of_view != 0 && state.of_view != state.view;
            next.reported = match named {
                Some(place) if place < own.stable && !model.size.prepares => Some(true),
                Some(_) => return None,
                None if state.status == Status::Aborted || lost_locks => Some(false),
                None => return None,
            };
        }
        Step::Small => {
            let own = state.led()?;
            let last = 1 << (ROWS - 1);
            let locked = state.status == Status::Active && state.of_view == state.view && state.written & last != 0;
            let undecided = matches!(outcome(&own.log, void), Outcome::Prepared(rows) if rows & last != 0);
            if locked || undecided || own.place(|entry| *entry == Entry::Small).is_some() {
                return None;
            }
            next.push(Entry::Small);
        }
        Step::ReportSmall => {
            let own = state.led()?;
            if own.place(|entry| *entry == Entry::Small)? >= own.stable {
                return None;
            }
            next.small_reported = true;
        }
        Step::Ship => {
            let leader = state.led()?;
            if !state.both {
                return None;
            }
            let own = &mut next.nodes[other];
            let common = own.log.iter().zip(&leader.log).take_while(|(own, theirs)| own == theirs).count();
            if common < own.log.len() {
                own.log.truncate(common);
                own.adopted = own.adopted.min(common as u8);
                return Some(next);
            }
            let entry = *leader.log.get(common)?;
            own.log.push(entry);
            if !(model.is(Mutation::NamedBeforePending) && matches!(entry, Entry::Name { .. })) {
                own.adopted = own.len();
            }
        }
        Step::Adopt => next.nodes[other].adopted = next.nodes[other].len(),
        Step::Settle => {
            let everywhere = match state.both {
                true => {
                    let pairs = state.nodes[0].log.iter().zip(&state.nodes[1].log);
                    pairs.take_while(|(one, two)| one == two).count() as u8
                }
                false => state.led()?.len(),
            };
            state.led()?;
            let own = &mut next.nodes[usize::from(state.leader)];
            own.stable = own.stable.max(everywhere);
        }
        Step::LearnStable => {
            let stable = state.led()?.stable;
            if !state.both {
                return None;
            }
            let own = &mut next.nodes[other];
            own.stable = own.stable.max(stable.min(own.len()));
        }
        Step::Release { node } => {
            let own = &mut next.nodes[node];
            let until = own.stable;
            let bound = match own.place(|entry| matches!(entry, Entry::Name { .. })) {
                _ if model.is(Mutation::ReleasedWhileOpen) => until,
                Some(place) if place < until && model.is(Mutation::ReleasedOnceNamed) => until,
                _ => own.oldest_needed(until, void),
            };
            own.from = own.from.max(bound);
        }
        Step::Join => {
            let leader = state.led()?.clone();
            if state.both {
                return None;
            }
            // Rows by a copy of what is stable, open chunks, and the stream behind them.
            let own = &mut next.nodes[other];
            let open = needed(&leader.log, void);
            own.from = leader.oldest_needed(leader.stable, void);
            own.missing = if model.is(Mutation::JoinsWithoutChunks) { open } else { leader.missing };
            (own.log, own.adopted, own.stable) = (leader.log.clone(), leader.len(), 0);
            next.both = true;
        }
        Step::ReadNewest { row, node } => read(model, &mut next, row, node)?,
        Step::Lead { node } => {
            if !state.lost || !state.is_in_sync(node) {
                return None;
            }
            next.both = state.both && usize::from(state.leader) == node;
            (next.lost, next.leader, next.view) = (false, node as u8, state.view + 1);
            (next.chunked, next.owed) = (0, 0);
            next.nodes[node].stable = next.nodes[node].stable.min(next.nodes[node].len());
            next.push(Entry::Open);
        }
        Step::Kill => {
            state.led()?;
            if !open(state) || state.written == 0 {
                return None;
            }
            next.kills_left = state.kills_left.checked_sub(1)?;
            take_back(model, &mut next, state.written);
            next.status = Status::Aborted;
        }
        Step::Remove => {
            state.led()?;
            if !state.both {
                return None;
            }
            next.removals_left = state.removals_left.checked_sub(1)?;
            next.both = false;
        }
        Step::Crash { node } => {
            next.crashes_left = state.crashes_left.checked_sub(1)?;
            if state.lost {
                return None;
            }
            let own = &mut next.nodes[node];
            // Checkpoint and log: of chunks that were needed at the place up to which the log was released, nothing.
            let before = own.from.into();
            let kept = own.log[before..].iter().filter_map(|entry| match entry {
                Entry::Chunk { row } => Some(1 << row),
                _ => None,
            });
            let kept: u8 = kept.fold(0, |all, bit| all | bit);
            own.missing |= needed(&own.log[..before], void) & !kept;
            (own.adopted, own.stable) = (own.len(), own.from);
            next.lost = usize::from(state.leader) == node;
        }
    }
    (next != *state).then_some(next)
}

/// The large transaction runs, and the leader holds its locks.
fn open(state: &State) -> bool {
    state.status == Status::Active && state.of_view == state.view
}

/// The leader undoes rows and releases their locks, once the stream says that their chunks are taken back.
fn take_back(model: &LargeChunks, state: &mut State, rows: u8) {
    let back = state.chunked & rows;
    if back != 0 {
        match model.is(Mutation::BackAfterRelease) {
            true => state.owed |= back,
            false => state.push(Entry::Back { rows: back }),
        }
    }
    state.written &= !rows;
    state.chunked &= !rows;
}

/// A read of the newest state of a row, at the leader or by a follower itself.
fn read(model: &LargeChunks, state: &mut State, row: usize, node: usize) -> Option<()> {
    let own = &state.nodes[node];
    let leads = usize::from(state.leader) == node;
    let bit = 1 << row;
    // A view is served once everything that it inherited is stable.
    let opening = own.log.iter().rposition(|entry| *entry == Entry::Open);
    if state.lost || !state.is_in_sync(node) || opening.is_some_and(|place| place >= own.stable.into()) {
        return None;
    }
    let adopted = &own.log[..own.adopted.into()];
    let stable = &own.log[..own.stable.min(own.adopted).into()];
    let void = model.views_void();
    let mut seen = false;
    match outcome(stable, void) {
        Outcome::Committed(rows) => seen = rows & bit != 0,
        Outcome::Open(rows) if model.is(Mutation::ShowsOpenChunks) && rows & bit != 0 => {
            state.dirty = true;
            return Some(());
        }
        _ => {}
    }
    let small = |entries: &[Entry]| row + 1 == ROWS && entries.contains(&Entry::Small);
    let small_seen = small(stable);
    // Pending: the leader shows the version before it, unless it is prepared; a follower asks the leader.
    let pending = match outcome(adopted, void) {
        Outcome::Prepared(rows) => rows & bit != 0,
        Outcome::Committed(rows) => rows & bit != 0 && !seen && (!leads || model.size.prepares),
        _ => false,
    };
    if pending || !leads && small(adopted) && !small_seen {
        return None;
    }
    let promised = state.reported == Some(true) && state.meant & bit != 0 || state.shown & bit != 0;
    let small_promised = (state.small_reported || state.small_shown) && row + 1 == ROWS;
    state.stale |= promised && !seen || small_promised && !small_seen;
    if seen {
        state.shown |= bit;
    }
    state.small_shown |= small_seen;
    Some(())
}
