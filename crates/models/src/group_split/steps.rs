//! What may happen in a state of the model, and what it does.

use super::state::{Entry, NODES, PARTITIONS, STREAMS, State, Status, Stream, TRANSACTIONS};
use super::{Form, GroupSplit, Mutation};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    // A transaction.
    Lock {
        transaction: usize,
        row: usize,
    },
    /// Everything that it has written, as one entry of the only group.
    Append {
        transaction: usize,
    },
    /// The first transaction commits in two phases: its participants are fixed.
    StartCommit,
    Prepare {
        stream: usize,
    },
    /// A leader that is asked and has no record writes a refusal.
    Refuse {
        stream: usize,
    },
    /// Decides to commit; a participant elsewhere has a least time that is higher by so much.
    Commit {
        above: u8,
    },
    Abort,
    /// A group is told what was decided.
    Deliver {
        stream: usize,
    },
    Forget,
    /// A prepared group asks about a transaction that its coordinator has forgotten.
    AskForgotten {
        stream: usize,
    },
    Report {
        transaction: usize,
    },
    // The streams.
    Ship {
        stream: usize,
    },
    End {
        stream: usize,
    },
    /// The control plane puts the heirs in the place of the parents; the node leads the last heir.
    Replace {
        node: usize,
    },
    Remove {
        stream: usize,
    },
    /// The same, where the other node is down.
    RemoveDown {
        stream: usize,
    },
    Join {
        stream: usize,
    },
    Lead {
        stream: usize,
    },
    // Readers.
    Draw,
    Look {
        row: usize,
        stream: usize,
    },
    ReadNewest {
        row: usize,
        stream: usize,
    },
    // A fault.
    Crash {
        node: usize,
    },
}

pub fn candidates(model: &GroupSplit, steps: &mut Vec<Step>) {
    steps.extend([Step::StartCommit, Step::Commit { above: 0 }, Step::Abort, Step::Forget, Step::Draw]);
    if model.size.elsewhere {
        steps.push(Step::Commit { above: 1 });
    }
    for transaction in 0..TRANSACTIONS {
        steps.extend([Step::Append { transaction }, Step::Report { transaction }]);
        steps.extend((0..PARTITIONS).map(|row| Step::Lock { transaction, row }));
    }
    for stream in 0..STREAMS {
        steps.extend([Step::Prepare { stream }, Step::Refuse { stream }, Step::Deliver { stream }]);
        steps.extend([Step::AskForgotten { stream }, Step::Ship { stream }, Step::End { stream }]);
        steps.extend([
            Step::Remove { stream },
            Step::RemoveDown { stream },
            Step::Join { stream },
            Step::Lead { stream },
        ]);
        for row in 0..PARTITIONS {
            steps.extend([Step::Look { row, stream }, Step::ReadNewest { row, stream }]);
        }
    }
    for node in 0..NODES {
        steps.extend([Step::Replace { node }, Step::Crash { node }]);
    }
}

/// The state after `step`, or `None` where it is not possible or changes nothing.
pub fn apply(model: &GroupSplit, state: &State, step: &Step) -> Option<State> {
    let mut next = state.clone();
    match *step {
        Step::Lock { transaction, row } => lock(model, &mut next, transaction, row)?,
        Step::Append { transaction } => append(model, &mut next, transaction)?,
        Step::StartCommit => {
            let own = &mut next.transactions[0];
            if own.status != Status::Active || own.locks.contains(&None) {
                return None;
            }
            own.status = Status::Committing;
            let ended = |(stream, _): &(u8, u8)| state.heir_of((*stream).into()) != usize::from(*stream);
            if own.locks.iter().flatten().any(ended) && !model.is(Mutation::LocksOfTwoVersions) {
                own.status = Status::Aborted;
                return Some(next);
            }
            own.participants = own.locks.iter().flatten().fold(0, |all, (stream, _)| all | 1 << stream);
            if own.participants.count_ones() == 1 && !model.size.elsewhere {
                return None;
            }
        }
        Step::Prepare { stream } => prepare(model, &mut next, stream)?,
        Step::Refuse { stream } => {
            // A take-over may ask at any time, in the place of a coordinator that is dead.
            let asked = (0..STREAMS).any(|of| takes_part(state, of) && state.heir_of(of) == stream);
            if !asked || !accepts(model, state, stream) || state.streams[stream].has_record() {
                return None;
            }
            next.push(stream, Entry::Refuse);
        }
        Step::Commit { above } => {
            let mut participants = (0..STREAMS).filter(|stream| takes_part(state, *stream)).peekable();
            participants.peek()?;
            if !participants.all(|of| state.led(state.heir_of(of)).is_some_and(|own| own.is_prepared())) {
                return None;
            }
            let prepares = state.streams.iter().flat_map(|own| own.log()).filter_map(|entry| match entry {
                Entry::Prepare { least, .. } => Some(*least),
                _ => None,
            });
            let time = prepares.max()? + above;
            next.fate = Some(state.fate.unwrap_or(Some(time)));
        }
        Step::Abort => {
            let refused = |of: usize| {
                takes_part(state, of) && state.streams[of].has_refused()
                    || takes_part(state, of) && state.streams[state.heir_of(of)].has_refused()
            };
            if state.fate.is_some() || !(0..STREAMS).any(refused) {
                return None;
            }
            next.fate = Some(None);
        }
        Step::Deliver { stream } => {
            let time = state.fate?;
            // The coordinator knows the groups that have prepared, and who has come in their place.
            let told = (0..STREAMS).any(|of| takes_part(state, of) && state.heir_of(of) == stream);
            if !told || state.forgotten {
                return None;
            }
            decide(&mut next, stream, time)?;
        }
        Step::Forget => {
            let decided = |of: usize| {
                let own = &state.streams[state.heir_of(of)];
                (0..PARTITIONS).all(|row| state.owner(row) != state.heir_of(of) || own.prepared(row).is_none())
                    && own.end().is_none_or(|(place, _)| place < own.stable())
                    && own.stable() == own.log().len()
            };
            state.fate?;
            if !(0..STREAMS).all(|of| !takes_part(state, of) || decided(of)) {
                return None;
            }
            next.forgotten = true;
        }
        Step::AskForgotten { stream } => {
            if !state.forgotten {
                return None;
            }
            decide(&mut next, stream, None)?;
        }
        Step::Report { transaction } => report(model, &mut next, transaction)?,
        Step::Ship { stream } => {
            let own = state.led(stream)?;
            let other = 1 - usize::from(own.leader);
            if !own.both || !state.is_up(other) {
                return None;
            }
            let entry = *own.log().get(own.logs[other].len())?;
            next.streams[stream].logs[other].push(entry);
        }
        Step::End { stream } => {
            let own = state.led(stream)?;
            let prepared = (0..PARTITIONS).any(|row| own.prepared(row).is_some());
            if !state.is_parent(stream) || own.end().is_some() || prepared && !model.is(Mutation::EndsWhilePrepared) {
                return None;
            }
            next.push(stream, Entry::End { max_read: own.max_read });
        }
        Step::Replace { node } => replace(model, &mut next, node)?,
        Step::Remove { stream } => {
            let own = state.led(stream)?;
            if !own.both || !state.is_up(1 - usize::from(own.leader)) {
                return None;
            }
            next.removals_left = next.removals_left.checked_sub(1)?;
            next.streams[stream].both = false;
        }
        Step::RemoveDown { stream } => {
            let own = state.led(stream)?;
            if state.is_up(1 - usize::from(own.leader)) {
                return None;
            }
            next.streams[stream].both = false;
        }
        Step::Join { stream } => {
            let own = state.led(stream)?;
            let other = 1 - usize::from(own.leader);
            if own.both || !state.is_up(other) {
                return None;
            }
            next.streams[stream].logs[other] = own.log().to_vec();
            next.streams[stream].both = true;
        }
        Step::Lead { stream } => {
            let own = &state.streams[stream];
            let other = 1 - usize::from(own.leader);
            if own.view == 0 || state.is_up(own.leader.into()) || !own.both || !state.is_up(other) {
                return None;
            }
            next.clock += 1;
            let clock = next.clock;
            let own = &mut next.streams[stream];
            (own.view, own.leader, own.both, own.max_read) = (own.view + 1, other as u8, false, clock);
        }
        Step::Draw => {
            if !model.size.snapshot || state.snapshot != 0 {
                return None;
            }
            next.clock += 1;
            next.snapshot = next.clock;
        }
        Step::Look { row, stream } => look(model, &mut next, row, stream)?,
        Step::ReadNewest { row, stream } => read_newest(model, &mut next, row, stream)?,
        Step::Crash { node } => {
            next.crashes_left = next.crashes_left.checked_sub(1)?;
            next.up &= !(1 << node);
        }
    }
    (next != *state).then_some(next)
}

fn takes_part(state: &State, stream: usize) -> bool {
    state.transactions[0].participants & (1 << stream) != 0
}

/// Whether the leader takes locks and writes: a parent that has written its last entry does not.
fn accepts(model: &GroupSplit, state: &State, stream: usize) -> bool {
    let open = |own: &Stream| own.end().is_none() || !state.is_parent(stream);
    state.led(stream).is_some_and(|own| open(own) || model.is(Mutation::WritesPastTheEnd))
}

/// A leader that has not heard of the heirs still thinks that it has the partition.
fn has_partition(state: &State, stream: usize, row: usize) -> bool {
    match state.form {
        Form::Split => stream == 0 || stream == 1 + row,
        Form::Merge => stream == row || stream == 2,
    }
}

fn lock(model: &GroupSplit, state: &mut State, transaction: usize, row: usize) -> Option<()> {
    let stream = state.owner(row);
    let own = state.transactions[transaction];
    let free = (0..TRANSACTIONS).all(|other| other == transaction || !state.holds(other, row, stream));
    let prepared = state.led(stream)?.prepared(row).is_some();
    let wanted = transaction == 0 || row == 1;
    if own.status != Status::Active || own.locks[row].is_some() || !wanted {
        return None;
    }
    if !free || prepared || !accepts(model, state, stream) {
        return None;
    }
    let view = state.streams[stream].view;
    state.transactions[transaction].locks[row] = Some((stream as u8, view));
    Some(())
}

/// Above `max_read`, and at least the newest commit time in the group.
fn commit_time(model: &GroupSplit, state: &State, stream: usize) -> u8 {
    let own = &state.streams[stream];
    let first = if model.is(Mutation::FinishedNotInherited) { own.inherited.into() } else { 0 };
    (own.max_read + 1).max(own.finished(first))
}

fn append(model: &GroupSplit, state: &mut State, transaction: usize) -> Option<()> {
    let own = state.transactions[transaction];
    let rows: u8 = if transaction == 0 { 0b11 } else { 0b10 };
    let written = |row: &usize| rows & (1 << row) != 0;
    let (locked, view) = own.locks[1]?;
    let together = |row: usize| own.locks[row].is_some_and(|(stream, _)| stream == locked);
    let one_entry = (0..PARTITIONS).filter(written).all(together);
    if own.status != Status::Active || !one_entry || transaction == 0 && model.size.elsewhere {
        return None;
    }
    let mut stream = usize::from(locked);
    let mut stands = (0..PARTITIONS).filter(written).all(|row| state.holds(transaction, row, stream));
    if model.is(Mutation::LocksInherited) {
        stream = state.heir_of(stream);
    } else {
        stands &= state.heir_of(stream) == stream;
    }
    if !stands {
        state.transactions[transaction].status = Status::Aborted;
        return Some(());
    }
    if !accepts(model, state, stream) {
        return None;
    }
    let here = (0..PARTITIONS).filter(written).filter(|row| has_partition(state, stream, *row));
    let rows = here.fold(0, |all, row| all | 1 << row);
    let time = commit_time(model, state, stream);
    state.push(stream, Entry::Write { transaction: transaction as u8, rows, time });
    let own = &mut state.transactions[transaction];
    (own.status, own.locks, own.asks) = (Status::Committing, [None; PARTITIONS], Some((locked, view)));
    Some(())
}

/// A prepare is taken by the group and in the view that holds the locks.
fn prepare(model: &GroupSplit, state: &mut State, stream: usize) -> Option<()> {
    if !takes_part(state, stream) || !accepts(model, state, stream) || state.streams[stream].has_record() {
        return None;
    }
    let wanted = |row: &usize| state.transactions[0].locks[*row].is_some_and(|(of, _)| usize::from(of) == stream);
    let rows = (0..PARTITIONS).filter(wanted).fold(0, |all, row| all | 1 << row);
    if !(0..PARTITIONS).filter(wanted).all(|row| state.holds(0, row, stream)) {
        return None;
    }
    let least = commit_time(model, state, stream);
    state.push(stream, Entry::Prepare { rows, least });
    Some(())
}

/// What was decided becomes an entry, for the rows that are prepared here.
fn decide(state: &mut State, stream: usize, time: Option<u8>) -> Option<()> {
    let own = state.led(stream)?;
    if own.end().is_some() && state.is_parent(stream) {
        return None;
    }
    let here = |row: &usize| own.prepared(*row).is_some() && has_partition(state, stream, *row);
    let rows = (0..PARTITIONS).filter(here).fold(0, |all, row| all | 1 << row);
    if rows == 0 {
        return None;
    }
    state.push(stream, Entry::Decide { rows, time });
    Some(())
}

/// The client is told what became of a transaction.
fn report(model: &GroupSplit, state: &mut State, transaction: usize) -> Option<()> {
    let own = state.transactions[transaction];
    if own.reported.is_some() {
        return None;
    }
    let outcome = if own.participants != 0 {
        state.fate?.is_some()
    } else if own.status == Status::Aborted {
        false
    } else {
        // The leader, or the heir's, knows the entry, or that the view of the locks is over.
        let (stream, view) = own.asks?;
        let asked = state.heir_of(stream.into());
        let group = state.led(asked)?;
        let known = |place: &usize| *place >= group.inherited.into() || !model.is(Mutation::OutcomesNotInherited);
        match group.entry_of(transaction).filter(known) {
            Some(place) if place < group.stable() => true,
            None if asked != usize::from(stream) || group.view != view => false,
            _ => return None,
        }
    };
    state.transactions[transaction].reported = Some(outcome);
    Some(())
}

/// The heirs begin with everything that the parents' streams had up to their last entries.
fn replace(model: &GroupSplit, state: &mut State, node: usize) -> Option<()> {
    let parents = 1 + usize::from(state.form == Form::Merge);
    if state.replaced || !state.is_up(node) {
        return None;
    }
    let mut max_read = 0;
    for own in &state.streams[..parents] {
        let (place, read) = own.end()?;
        if place >= own.stable() && !model.is(Mutation::EndNotStable) {
            return None;
        }
        max_read = max_read.max(read);
    }
    let in_sync = |own: &Stream, node: usize| own.both || usize::from(own.leader) == node;
    let sets: Vec<[bool; NODES]> =
        state.streams[..parents].iter().map(|own| [in_sync(own, 0), in_sync(own, 1)]).collect();
    if sets.iter().any(|set| *set != sets[0]) && !model.is(Mutation::MergesUnequalSets) {
        return None;
    }
    let set = sets.iter().fold([false; NODES], |all, set| [all[0] || set[0], all[1] || set[1]]);
    let logs: [Vec<Entry>; NODES] = [0, 1].map(|of| {
        let before_end = |log: &Vec<Entry>| -> Vec<Entry> {
            log.iter().copied().take_while(|entry| !matches!(entry, Entry::End { .. })).collect()
        };
        state.streams[..parents].iter().flat_map(|own| before_end(&own.logs[of])).collect()
    });
    // The first heir is led where the parent was.
    let first = usize::from(state.streams[0].leader);
    let heirs = match state.form {
        Form::Split => vec![(1, first), (2, node)],
        Form::Merge => vec![(2, node)],
    };
    for (heir, leader) in heirs {
        if !set[leader] {
            return None;
        }
        let own = &mut state.streams[heir];
        (own.view, own.leader, own.both) = (1, leader as u8, set[1 - leader]);
        own.max_read = if model.is(Mutation::MaxReadNotHandedOn) { 0 } else { max_read };
        own.logs = logs.clone();
        own.inherited = own.log().len() as u8;
    }
    state.replaced = true;
    Some(())
}

fn look(model: &GroupSplit, state: &mut State, row: usize, stream: usize) -> Option<()> {
    let at = state.snapshot;
    let own = state.led(stream)?;
    if at == 0 || !has_partition(state, stream, row) {
        return None;
    }
    // Only an heir could keep later commits out of newer snapshots.
    let past = state.is_parent(stream) && own.end().is_some_and(|(_, max_read)| at > max_read);
    if past && !model.is(Mutation::ReadsPastTheEnd) || own.prepared(row).is_some_and(|least| least <= at) {
        return None;
    }
    let mut seen = 0;
    for transaction in 0..TRANSACTIONS {
        match own.committed(transaction, row) {
            Some((time, place)) if time <= at && place < own.stable() => seen |= 1 << transaction,
            Some((time, _)) if time <= at => return None,
            _ => {}
        }
    }
    state.streams[stream].max_read = state.streams[stream].max_read.max(at);
    state.unrepeatable |= state.seen[row].is_some_and(|before| before != seen);
    state.seen[row].get_or_insert(seen);
    state.shown[row] |= seen;
    Some(())
}

/// A read of the newest state at a leader.
fn read_newest(model: &GroupSplit, state: &mut State, row: usize, stream: usize) -> Option<()> {
    let own = state.led(stream)?;
    let ended = state.is_parent(stream) && own.end().is_some() && !model.is(Mutation::ReadsPastTheEnd);
    if !has_partition(state, stream, row) || ended || own.prepared(row).is_some() {
        return None;
    }
    // What is decided is certain before that is stable.
    let decided = |entry: &Entry| matches!(entry, Entry::Decide { rows, .. } if rows & (1 << row) != 0);
    if own.log()[own.stable()..].iter().any(decided) {
        return None;
    }
    let stable = |t: &usize| own.committed(*t, row).is_some_and(|(_, place)| place < own.stable());
    let seen = (0..TRANSACTIONS).filter(stable).fold(0, |all, t| all | 1 << t);
    state.stale |= state.promised(row) & !seen != 0;
    state.shown[row] |= seen;
    Some(())
}

impl State {
    /// What was reported as committed, or shown, of a row.
    pub fn promised(&self, row: usize) -> u8 {
        let wrote = |t: usize| t == 0 || row == 1;
        let reported = (0..TRANSACTIONS).filter(|t| self.transactions[*t].reported == Some(true) && wrote(*t));
        reported.fold(self.shown[row], |all, t| all | 1 << t)
    }
}
