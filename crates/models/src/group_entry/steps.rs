//! What may happen in a state of the model, and what it does.

use super::state::{Entry, Node, PARTITIONS, State, Status, TRANSACTIONS};
use super::{GroupEntry, Mutation, Second};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    // A transaction.
    Lock {
        transaction: usize,
        partition: usize,
    },
    StartCommit {
        transaction: usize,
    },
    Collect {
        transaction: usize,
        partition: usize,
    },
    /// The commit time is chosen, and nothing else (only if that is switched off).
    Choose {
        transaction: usize,
    },
    Append {
        transaction: usize,
    },
    CommitElsewhere {
        transaction: usize,
    },
    /// A partition's turn in which the rows get their commit time and the locks are released.
    Install {
        transaction: usize,
        partition: usize,
    },
    Kill {
        transaction: usize,
    },
    Undo {
        transaction: usize,
        partition: usize,
    },
    /// The coordinator asks for the outcome, and reports it to the client.
    Report {
        transaction: usize,
    },
    Forget {
        transaction: usize,
    },
    // The stream.
    Ship {
        node: usize,
    },
    Adopt {
        node: usize,
        partition: usize,
    },
    Settle,
    LearnStable {
        node: usize,
    },
    // Reads.
    Draw,
    NotePosition {
        node: usize,
    },
    Confirm {
        node: usize,
    },
    Raise {
        row: usize,
    },
    Look {
        row: usize,
        node: usize,
    },
    ReadNewest {
        row: usize,
        node: usize,
    },
    // Faults, and commands of the control plane.
    Crash {
        node: usize,
    },
    Restart {
        node: usize,
    },
    Remove {
        node: usize,
    },
    Lead {
        node: usize,
    },
    Enter {
        partition: usize,
    },
    Join {
        node: usize,
    },
}

pub fn candidates(model: &GroupEntry, steps: &mut Vec<Step>) {
    for transaction in 0..TRANSACTIONS {
        if model.writes(transaction) == 0 {
            continue;
        }
        steps.extend([
            Step::StartCommit { transaction },
            Step::Choose { transaction },
            Step::Append { transaction },
            Step::CommitElsewhere { transaction },
            Step::Kill { transaction },
            Step::Report { transaction },
            Step::Forget { transaction },
        ]);
        for partition in (0..PARTITIONS).filter(|p| model.writes(transaction) & (1 << p) != 0) {
            steps.extend([
                Step::Lock { transaction, partition },
                Step::Collect { transaction, partition },
                Step::Install { transaction, partition },
                Step::Undo { transaction, partition },
            ]);
        }
    }
    steps.extend([Step::Settle, Step::Draw]);
    for row in 0..PARTITIONS {
        steps.push(Step::Raise { row });
        steps.push(Step::Enter { partition: row });
        steps.extend((0..model.size.nodes).map(|node| Step::Look { row, node }));
    }
    for node in 0..model.size.nodes {
        steps.extend([
            Step::Ship { node },
            Step::LearnStable { node },
            Step::NotePosition { node },
            Step::Confirm { node },
            Step::Crash { node },
            Step::Restart { node },
            Step::Remove { node },
            Step::Lead { node },
            Step::Join { node },
        ]);
        for partition in 0..PARTITIONS {
            steps.push(Step::Adopt { node, partition });
            steps.push(Step::ReadNewest { row: partition, node });
        }
    }
}

/// The state after `step`, or `None` where it is not possible or changes nothing.
pub fn apply(model: &GroupEntry, state: &State, step: &Step) -> Option<State> {
    let mut next = state.clone();
    match *step {
        Step::Lock { transaction, partition } => lock(model, &mut next, transaction, partition)?,
        Step::StartCommit { transaction } => start_commit(model, &mut next, transaction)?,
        Step::Collect { transaction, partition } => collect(model, &mut next, transaction, partition)?,
        Step::Choose { transaction } => {
            if !model.is(Mutation::TimeBeforeAppend) || !is_collected(model, &next, transaction) {
                return None;
            }
            let time = commit_time(&next)?;
            let chosen = &mut next.transactions[transaction].chosen;
            if *chosen != 0 {
                return None;
            }
            *chosen = time;
        }
        Step::Append { transaction } => append(model, &mut next, transaction)?,
        Step::CommitElsewhere { transaction } => commit_elsewhere(model, &mut next, transaction)?,
        Step::Install { transaction, partition } => {
            let leader = next.led()?;
            let known = if model.size.locks_pass_early { leader.len() } else { leader.stable };
            if next.place(transaction).is_none_or(|at| at >= known) {
                return None;
            }
            next.transactions[transaction].held &= !(1 << partition);
        }
        Step::Kill { transaction } => {
            let own = &mut next.transactions[transaction];
            if !may_abort(model, own.status) || own.view == 0 {
                return None;
            }
            next.kills_left = next.kills_left.checked_sub(1)?;
            own.status = Status::Aborted;
        }
        Step::Undo { transaction, partition } => {
            next.led()?;
            let own = &mut next.transactions[transaction];
            if own.status != Status::Aborted {
                return None;
            }
            own.held &= !(1 << partition);
        }
        Step::Report { transaction } => report(&mut next, transaction)?,
        Step::Forget { transaction } => {
            let reported = next.transactions[transaction].reported.is_some();
            if !next.is_stable(transaction) || !reported && !model.is(Mutation::ForgottenByNumber) {
                return None;
            }
            next.transactions[transaction].forgotten = true;
        }
        Step::Ship { node } => ship(model, &mut next, node)?,
        Step::Adopt { node, partition } => {
            let own = &mut next.nodes[node];
            let (length, adopted) = (own.len(), &mut own.adopted[partition]);
            if !own.up || *adopted >= length {
                return None;
            }
            *adopted += 1;
        }
        Step::Settle => {
            let leader = next.led()?;
            let follows = |node: &Node| if node.follows == next.view { node.common(leader) } else { 0 };
            let members = (0..model.size.nodes).filter(|node| next.is_in_sync(*node));
            let stable = members.map(|node| follows(&next.nodes[node])).min().unwrap_or(0);
            let leader = next.led_mut()?;
            leader.stable = leader.stable.max(stable);
        }
        Step::LearnStable { node } => {
            let stable = next.led()?.stable;
            let view = next.view;
            let own = &mut next.nodes[node];
            if !own.up || own.follows != view {
                return None;
            }
            own.stable = own.stable.max(stable.min(own.len()));
        }
        Step::Draw => {
            if state.snapshot.at != 0 || !model.size.snapshot {
                return None;
            }
            next.clock += 1;
            next.snapshot.at = next.clock;
            let reported = |entry: &Entry| state.transactions[usize::from(entry.transaction)].reported == Some(true);
            let log = &state.nodes[usize::from(state.leader)].log;
            next.drawn_below = log.iter().any(|entry| reported(entry) && entry.time > next.clock);
        }
        Step::NotePosition { node } => {
            let position = next.led()?.len();
            let own = &mut next.nodes[node];
            if !model.is(Mutation::PositionBeforeRaise) || !own.up || own.position.is_some() {
                return None;
            }
            own.position = Some(position);
        }
        Step::Confirm { node } => confirm(model, &mut next, node)?,
        Step::Raise { row } => raise(model, &mut next, row)?,
        Step::Look { row, node } => look(model, &mut next, row, node)?,
        Step::ReadNewest { row, node } => read_newest(model, &mut next, row, node)?,
        Step::Crash { node } => {
            next.crashes_left = next.crashes_left.checked_sub(1)?;
            let own = &mut next.nodes[node];
            if !own.up {
                return None;
            }
            own.up = false;
            (own.confirmed, own.position, own.stable) = ((0, 0), None, 0);
            if usize::from(next.leader) == node {
                next.lost = true;
                next.snapshot.halfway = None;
            }
        }
        Step::Restart { node } => {
            let own = &mut next.nodes[node];
            own.up = true;
            own.adopted = [own.len(); PARTITIONS];
            own.follows = 0;
        }
        Step::Remove { node } => {
            if next.nodes[node].up || usize::from(next.leader) == node || !next.is_in_sync(node) {
                return None;
            }
            next.in_sync &= !(1 << node);
        }
        Step::Lead { node } => lead(&mut next, node)?,
        Step::Enter { partition } => enter(&mut next, partition)?,
        Step::Join { node } => join(model, &mut next, node)?,
    }
    (next != *state).then_some(next)
}

fn serves(model: &GroupEntry, state: &State, partition: usize) -> bool {
    state.serves(partition, model.is(Mutation::ServesUnopened))
}

fn may_abort(model: &GroupEntry, status: Status) -> bool {
    status == Status::Active || model.is(Mutation::AbortsCommitting) && status == Status::Committing
}

/// A write with its lock, if the partition serves the view and no other transaction holds the lock.
fn lock(model: &GroupEntry, state: &mut State, transaction: usize, partition: usize) -> Option<()> {
    let others = (0..TRANSACTIONS).filter(|other| *other != transaction);
    let taken = others.clone().any(|other| state.transactions[other].held & (1 << partition) != 0);
    if taken || !serves(model, state, partition) {
        return None;
    }
    let unstable = |other: usize| state.place(other).is_some() && !state.is_stable(other);
    let observed = others.clone().any(unstable);
    let view = state.view;
    let own = &mut state.transactions[transaction];
    // Locks of an older view are lost.
    if own.status != Status::Active || own.view != 0 && own.view != view {
        return None;
    }
    own.view = view;
    own.held |= 1 << partition;
    own.observed |= observed;
    Some(())
}

fn start_commit(model: &GroupEntry, state: &mut State, transaction: usize) -> Option<()> {
    let own = &mut state.transactions[transaction];
    if own.status != Status::Active || own.held != model.writes(transaction) {
        return None;
    }
    own.status = Status::Committing;
    Some(())
}

fn collect(model: &GroupEntry, state: &mut State, transaction: usize, partition: usize) -> Option<()> {
    state.led()?;
    let own = &mut state.transactions[transaction];
    let bit = 1 << partition;
    let begun = own.status == Status::Committing
        // The abort of a committing transaction does not stop its commit.
        || model.is(Mutation::AbortsCommitting) && own.status == Status::Aborted && own.visited != 0;
    if !begun || own.visited & bit != 0 {
        return None;
    }
    own.visited |= bit;
    own.collected |= own.held & bit;
    Some(())
}

fn is_collected(model: &GroupEntry, state: &State, transaction: usize) -> bool {
    let own = &state.transactions[transaction];
    let committing =
        own.status == Status::Committing || model.is(Mutation::AbortsCommitting) && own.status == Status::Aborted;
    committing && own.visited == model.writes(transaction)
}

/// The time that the leaf lock gives: above `max_read`, and at least the newest commit time.
fn commit_time(state: &State) -> Option<u8> {
    let finished = state.led()?.log.iter().map(|entry| entry.time).max().unwrap_or(0);
    Some((state.max_read + 1).max(finished))
}

/// Commit time, position and status word together.
fn append(model: &GroupEntry, state: &mut State, transaction: usize) -> Option<()> {
    if !is_collected(model, state, transaction) || model.second == Second::Elsewhere && transaction == 1 {
        return None;
    }
    let own = state.transactions[transaction];
    let time = match (model.is(Mutation::TimeBeforeAppend), own.chosen) {
        (true, 0) => return None,
        (true, chosen) => chosen,
        (false, _) => commit_time(state)?,
    };
    if own.view != state.view && !model.is(Mutation::ViewNotChecked) {
        state.transactions[transaction].status = Status::Aborted;
        return Some(());
    }
    state.unlocked |= own.view != state.view && own.held != model.writes(transaction);
    let leader = state.led_mut()?;
    leader.log.push(Entry { transaction: transaction as u8, time, writes: own.collected });
    leader.adopted = [leader.len(); PARTITIONS];
    state.transactions[transaction].status = Status::Appended;
    Some(())
}

/// The second transaction prepares and commits in another group, which is stable at once.
fn commit_elsewhere(model: &GroupEntry, state: &mut State, transaction: usize) -> Option<()> {
    if model.second != Second::Elsewhere || transaction != 1 || !is_collected(model, state, transaction) {
        return None;
    }
    let own = state.transactions[transaction];
    // A participant without writes confirms before the first prepare that its view has not changed.
    if own.view != state.view {
        state.transactions[transaction].status = Status::Aborted;
        return Some(());
    }
    if own.observed && !model.is(Mutation::ObservedNotAwaited) && !state.is_stable(0) {
        return None;
    }
    let own = &mut state.transactions[transaction];
    (own.elsewhere, own.status, own.held) = (true, Status::Appended, 0);
    Some(())
}

/// Committed when the log entry is stable; aborted when the locks are lost and there is no log entry.
fn report(state: &mut State, transaction: usize) -> Option<()> {
    state.led()?;
    let own = state.transactions[transaction];
    if own.reported.is_some() || own.view == 0 || own.status == Status::Active {
        return None;
    }
    let committed = if own.elsewhere || state.is_stable(transaction) && !own.forgotten {
        true
    } else if state.place(transaction).is_some() && !own.forgotten {
        return None;
    } else if own.view != state.view || own.status == Status::Aborted || own.forgotten {
        false
    } else {
        return None;
    };
    state.transactions[transaction].reported = Some(committed);
    Some(())
}

/// A follower takes the next entry on its disk, and has every partition of the entry adopt it.
fn ship(model: &GroupEntry, state: &mut State, node: usize) -> Option<()> {
    let (view, leader) = (state.view, state.led()?.clone());
    if usize::from(state.leader) == node || !state.nodes[node].up || !state.is_in_sync(node) {
        return None;
    }
    let own = &mut state.nodes[node];
    if own.follows != view {
        // The opening of the view cuts what lies beyond it.
        own.cut(own.common(&leader));
        own.follows = view;
        return Some(());
    }
    let entry = leader.log.get(own.log.len())?;
    own.log.push(*entry);
    if !model.is(Mutation::AcknowledgedBeforeAdopted) {
        own.adopted = [own.len(); PARTITIONS];
    }
    Some(())
}

/// The leader raises `max_read` and reads the position of its stream, under one lock.
fn confirm(model: &GroupEntry, state: &mut State, node: usize) -> Option<()> {
    let (at, position) = (state.snapshot.at, state.led()?.len());
    if at == 0 || usize::from(state.leader) == node || !state.nodes[node].up || state.nodes[node].follows != state.view
    {
        return None;
    }
    let named = match model.is(Mutation::PositionBeforeRaise) {
        true => state.nodes[node].position?,
        false => position,
    };
    if state.nodes[node].confirmed.0 >= at {
        return None;
    }
    state.max_read = state.max_read.max(at);
    state.nodes[node].confirmed = (at, named);
    Some(())
}

fn raise(model: &GroupEntry, state: &mut State, row: usize) -> Option<()> {
    let late = model.is(Mutation::LookThenRaise);
    let here = Some(row as u8);
    if state.snapshot.at == 0 || !serves(model, state, row) || state.snapshot.halfway != if late { here } else { None }
    {
        return None;
    }
    state.max_read = state.max_read.max(state.snapshot.at);
    state.snapshot.halfway = if late { None } else { here };
    Some(())
}

fn look(model: &GroupEntry, state: &mut State, row: usize, node: usize) -> Option<()> {
    let at = state.snapshot.at;
    let own = &state.nodes[node];
    if at == 0 || !own.up {
        return None;
    }
    let leads = usize::from(state.leader) == node;
    let late = model.is(Mutation::LookThenRaise);
    let (before, after) = if late { (None, Some(row as u8)) } else { (Some(row as u8), None) };
    if leads {
        if !serves(model, state, row) || state.snapshot.halfway != before {
            return None;
        }
    } else if own.confirmed.0 < at || own.len() < own.confirmed.1 {
        return None;
    }
    let visible = own.log.iter().take(own.adopted[row].into()).enumerate();
    let mut seen = 0;
    for (place, entry) in visible.filter(|(_, entry)| entry.time <= at && entry.writes & (1 << row) != 0) {
        let stable = place < usize::from(own.stable) || model.is(Mutation::ShownAtAppend) && leads;
        if !stable {
            // The read waits.
            return None;
        }
        seen |= 1 << entry.transaction;
    }
    if leads {
        state.snapshot.halfway = after;
    }
    state.snapshot.unrepeatable |= state.snapshot.seen[row].is_some_and(|before| before != seen);
    state.snapshot.seen[row].get_or_insert(seen);
    state.shown |= seen;
    Some(())
}

/// An in-sync replica answers by itself where nothing is pending at the row.
fn read_newest(model: &GroupEntry, state: &mut State, row: usize, node: usize) -> Option<()> {
    let own = &state.nodes[node];
    let leads = usize::from(state.leader) == node;
    if !own.up || !state.is_in_sync(node) || own.follows != state.view || leads && !serves(model, state, row) {
        return None;
    }
    let of_row = |entry: &Entry| entry.writes & (1 << row) != 0;
    let adopted = own.log.iter().take(own.adopted[row].into()).enumerate();
    let mut seen = 0;
    for (place, entry) in adopted.filter(|(_, entry)| of_row(entry)) {
        let stable = place < usize::from(own.stable) || model.is(Mutation::ShownAtAppend) && leads;
        match (stable, leads) {
            (true, _) => seen |= 1 << entry.transaction,
            // The leader shows the version before it; a follower asks the leader.
            (false, true) => {}
            (false, false) => return None,
        }
    }
    let promised = state.promised();
    let missed = (0..TRANSACTIONS).any(|t| {
        promised & (1 << t) != 0
            && seen & (1 << t) == 0
            && model.writes(t) & (1 << row) != 0
            && !(model.second == Second::Elsewhere && t == 1)
    });
    state.stale |= missed;
    state.shown |= seen;
    Some(())
}

/// A node leads a new view: another one after a crash, or the same again, whose memory is as it was.
fn lead(state: &mut State, node: usize) -> Option<()> {
    if !state.nodes[node].up || !state.is_in_sync(node) {
        return None;
    }
    let same = usize::from(state.leader) == node && !state.lost;
    if !state.lost && !same {
        return None;
    }
    state.views_left = state.views_left.checked_sub(1)?;
    state.view += 1;
    state.clock += 1;
    state.max_read = state.clock;
    state.lost = false;
    state.snapshot.halfway = None;
    let view = state.view;
    if !same {
        state.leader = node as u8;
        // State in the old leader's memory is lost.
        for own in &mut state.transactions {
            own.held = 0;
        }
        state.entered = [view; PARTITIONS];
    }
    let own = &mut state.nodes[node];
    own.follows = view;
    own.stable = 0;
    own.adopted = [own.len(); PARTITIONS];
    own.confirmed = (0, 0);
    state.inherited = own.len();
    Some(())
}

/// A partition's own step into the view: it drops locks and writes of older views that are in no log entry.
fn enter(state: &mut State, partition: usize) -> Option<()> {
    state.led()?;
    if state.entered[partition] == state.view {
        return None;
    }
    state.entered[partition] = state.view;
    for transaction in 0..TRANSACTIONS {
        if state.place(transaction).is_none() {
            let view = state.view;
            let own = &mut state.transactions[transaction];
            if own.view < view {
                own.held &= !(1 << partition);
                if own.status == Status::Active && own.view != 0 {
                    own.status = Status::Aborted;
                }
            }
        }
    }
    Some(())
}

/// A node that was removed from the in-sync set gets the stream and is added again.
fn join(model: &GroupEntry, state: &mut State, node: usize) -> Option<()> {
    let (view, leader) = (state.view, state.led()?.clone());
    if !state.nodes[node].up || state.is_in_sync(node) {
        return None;
    }
    let own = &mut state.nodes[node];
    own.log = leader.log;
    if model.is(Mutation::JoinsWithoutTheNewest) {
        own.log.pop();
    }
    own.adopted = [own.len(); PARTITIONS];
    (own.follows, own.stable, own.confirmed) = (view, 0, (0, 0));
    state.in_sync |= 1 << node;
    Some(())
}
