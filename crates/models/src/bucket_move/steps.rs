//! What may happen in a state of the model, and what it does.

use super::state::{Entry, SOURCES, State, Status, TARGET, TRANSACTIONS};
use super::{BucketMove, First, Mutation};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    // Transactions.
    Lock {
        transaction: usize,
        at_target: bool,
    },
    Append {
        transaction: usize,
    },
    /// Commits the first transaction: the other participant has prepared with a least time that is so much above.
    Decide {
        above: u8,
    },
    Abort {
        transaction: usize,
    },
    Acknowledge {
        transaction: usize,
    },
    // The source's stream, and the move.
    Seal,
    Ship,
    Adopt,
    Settle,
    LearnStable,
    Copy,
    HandOver,
    TakeOver,
    // Reads.
    Draw,
    Confirm,
    Look {
        row: usize,
        node: usize,
    },
    ReadNewest {
        node: usize,
    },
    // Faults.
    Crash,
    Lead,
}

pub fn candidates(steps: &mut Vec<Step>) {
    for transaction in 0..TRANSACTIONS {
        steps.extend([
            Step::Lock { transaction, at_target: false },
            Step::Append { transaction },
            Step::Abort { transaction },
            Step::Acknowledge { transaction },
        ]);
    }
    steps.extend([
        Step::Lock { transaction: 1, at_target: true },
        Step::Decide { above: 0 },
        Step::Decide { above: 1 },
    ]);
    steps.extend([Step::Seal, Step::Ship, Step::Adopt, Step::Settle, Step::LearnStable]);
    steps.extend([Step::Copy, Step::HandOver, Step::TakeOver, Step::Draw, Step::Confirm, Step::Crash, Step::Lead]);
    for node in 0..=TARGET {
        steps.extend([Step::Look { row: 0, node }, Step::ReadNewest { node }]);
        if node < TARGET {
            steps.push(Step::Look { row: 1, node });
        }
    }
}

/// The state after `step`, or `None` where it is not possible or changes nothing.
pub fn apply(model: &BucketMove, state: &State, step: &Step) -> Option<State> {
    let mut next = state.clone();
    match *step {
        Step::Lock { transaction, at_target } => lock(model, &mut next, transaction, at_target)?,
        Step::Append { transaction } => append(model, &mut next, transaction)?,
        Step::Decide { above } => {
            let leader = next.led()?;
            // The prepare is stable.
            let least = leader.prepared(leader.len()).and(leader.prepared(leader.stable))?;
            if *next.above.get_or_insert(above) != above {
                return None;
            }
            let leader = next.led_mut()?;
            leader.log.push(Entry::Decide { time: least + above });
            leader.adopted = leader.len();
        }
        Step::Abort { transaction } => {
            let own = &mut next.transactions[transaction];
            if own.status != Status::Active {
                return None;
            }
            next.kills_left = next.kills_left.checked_sub(1)?;
            own.status = Status::Aborted;
        }
        Step::Acknowledge { transaction } => {
            let known = match state.transactions[transaction].at_target {
                true => state.target.has[transaction].is_some(),
                false => {
                    let leader = state.led()?;
                    leader.committed(transaction, leader.stable).is_some()
                }
            };
            if !known {
                return None;
            }
            next.transactions[transaction].acknowledged = true;
        }
        Step::Seal => seal(model, &mut next)?,
        Step::Ship => {
            let leader = next.led()?.clone();
            if state.leader == 1 || !state.both {
                return None;
            }
            let own = &mut next.nodes[1];
            let entry = *leader.log.get(own.log.len())?;
            own.log.push(entry);
            if !(model.is(Mutation::SealAcknowledgedBeforeAdopted) && matches!(entry, Entry::Seal { .. })) {
                own.adopted = own.len();
            }
        }
        Step::Adopt => next.nodes[1].adopted = next.nodes[1].len(),
        Step::Settle => {
            let counts = (0..SOURCES).filter(|node| *node == usize::from(state.leader) || state.both);
            let stable = counts.map(|node| state.nodes[node].len()).min()?;
            let leader = next.led_mut()?;
            leader.stable = leader.stable.max(stable.min(leader.len()));
        }
        Step::LearnStable => {
            let stable = state.led()?.stable;
            let own = &mut next.nodes[1];
            own.stable = own.stable.max(stable.min(own.len()));
        }
        Step::Copy => {
            let leader = state.led()?;
            let known = if model.is(Mutation::CopiesWhatIsNotStable) { leader.len() } else { leader.stable };
            if next.target.copied >= known || state.moved {
                return None;
            }
            next.target.copied += 1;
            for transaction in 0..TRANSACTIONS {
                if let Some((time, _)) = leader.committed(transaction, next.target.copied) {
                    next.target.has[transaction] = Some(time);
                }
            }
        }
        Step::HandOver => {
            let leader = state.led()?;
            let place = leader.log.iter().position(|entry| matches!(entry, Entry::Seal { .. }))? as u8;
            let stable = place < leader.stable || model.is(Mutation::SealNotStable);
            let whole = state.target.copied >= place || model.is(Mutation::CopyNotWhole);
            if !stable || !whole {
                return None;
            }
            next.moved = true;
        }
        Step::TakeOver => {
            if !state.moved || state.target.serves {
                return None;
            }
            let source = state.led()?;
            let (max_read, finished) = source.seal(source.len())?;
            let target = &mut next.target;
            target.serves = true;
            if !model.is(Mutation::MaxReadNotHandedOn) {
                target.max_read = target.max_read.max(max_read);
            }
            if !model.is(Mutation::FinishedNotHandedOn) {
                target.finished = target.finished.max(finished);
            }
        }
        Step::Draw => {
            if state.snapshot != 0 {
                return None;
            }
            next.clock += 1;
            next.snapshot = next.clock;
        }
        Step::Confirm => {
            let position = state.led()?.len();
            if state.snapshot == 0 || state.leader == 1 || !state.both || state.nodes[1].confirmed.0 != 0 {
                return None;
            }
            next.max_read = next.max_read.max(state.snapshot);
            next.nodes[1].confirmed = (state.snapshot, position);
        }
        Step::Look { row, node } => look(model, &mut next, row, node)?,
        Step::ReadNewest { node } => read_newest(model, &mut next, node)?,
        Step::Crash => {
            next.crashes_left = next.crashes_left.checked_sub(1)?;
            if state.lost || state.leader == 1 {
                return None;
            }
            next.lost = true;
        }
        Step::Lead => {
            if !state.lost {
                return None;
            }
            (next.lost, next.leader, next.both) = (false, 1, false);
            next.view += 1;
            next.clock += 1;
            next.max_read = next.clock;
            let own = &mut next.nodes[1];
            own.adopted = own.len();
            // Writes that are not in the log are lost.
            for transaction in 0..TRANSACTIONS {
                let logged = next.nodes[1].committed(transaction, u8::MAX).is_some()
                    || transaction == 0 && next.nodes[1].prepared(u8::MAX).is_some();
                let own = &mut next.transactions[transaction];
                if own.status == Status::Appended && !own.at_target && !logged {
                    own.status = Status::Aborted;
                }
            }
        }
    }
    (next != *state).then_some(next)
}

/// Takes the row's lock at the owner of the bucket, if it is free.
fn lock(model: &BucketMove, state: &mut State, transaction: usize, at_target: bool) -> Option<()> {
    if state.transactions[transaction].status != Status::Idle {
        return None;
    }
    // The lock of the first one is free when that is decided.
    let free = match at_target {
        true => state.target.serves,
        false => {
            let leader = state.led()?;
            leader.seal(leader.len()).is_none() && !state.is_locked() && leader.prepared(leader.len()).is_none()
        }
    };
    if !free || transaction == 1 && model.size.second_at_target && !at_target {
        return None;
    }
    let view = state.view;
    let own = &mut state.transactions[transaction];
    (own.status, own.at_target, own.view) = (Status::Active, at_target, view);
    Some(())
}

fn append(model: &BucketMove, state: &mut State, transaction: usize) -> Option<()> {
    let own = state.transactions[transaction];
    if own.status != Status::Active {
        return None;
    }
    if own.at_target {
        let target = &mut state.target;
        let time = (target.max_read + 1).max(target.finished);
        target.has[transaction] = Some(time);
    } else {
        let leader = state.led()?;
        if own.view != state.view {
            state.transactions[transaction].status = Status::Aborted;
            return Some(());
        }
        let time = (state.max_read + 1).max(leader.finished());
        let prepares = transaction == 0 && model.first == First::Prepares;
        let entry = match prepares {
            true => Entry::Prepare { least: time },
            false => Entry::Write { transaction: transaction as u8, time },
        };
        let leader = state.led_mut()?;
        leader.log.push(entry);
        leader.adopted = leader.len();
    }
    state.transactions[transaction].status = Status::Appended;
    Some(())
}

/// The last log entry about the bucket: no transaction is open there any more.
fn seal(model: &BucketMove, state: &mut State) -> Option<()> {
    let leader = state.led()?;
    if leader.seal(leader.len()).is_some() {
        return None;
    }
    if state.is_locked() && !model.is(Mutation::SealedWhileOpen) {
        return None;
    }
    if leader.prepared(leader.len()).is_some() && !model.is(Mutation::SealedBeforeDecided) {
        return None;
    }
    let entry = Entry::Seal { max_read: state.max_read, finished: leader.finished() };
    let leader = state.led_mut()?;
    leader.log.push(entry);
    leader.adopted = leader.len();
    Some(())
}

fn look(model: &BucketMove, state: &mut State, row: usize, node: usize) -> Option<()> {
    let at = state.snapshot;
    if at == 0 {
        return None;
    }
    let mut seen = 0;
    if node == TARGET {
        let target = &mut state.target;
        if !target.serves {
            return None;
        }
        // Copied rows have no history.
        if at < target.finished && !model.is(Mutation::OlderSnapshotsAtTarget) {
            return None;
        }
        target.max_read = target.max_read.max(at);
        for transaction in 0..TRANSACTIONS {
            let copied = !state.transactions[transaction].at_target && model.is(Mutation::OlderSnapshotsAtTarget);
            if state.target.has[transaction].is_some_and(|time| time <= at || copied) {
                seen |= 1 << transaction;
            }
        }
    } else {
        let leads = usize::from(state.leader) == node;
        let own = &state.nodes[node];
        let ready = match leads {
            true => !state.lost,
            false => node == 1 && own.confirmed.0 >= at && own.len() >= own.confirmed.1,
        };
        if !ready {
            return None;
        }
        // Only the target could keep later commits out of newer snapshots.
        let sealed = own.seal(own.adopted);
        let beyond = sealed.is_some_and(|(max_read, _)| at > max_read);
        if row == 0 && beyond && !model.is(Mutation::SnapshotsPastTheSeal) {
            return None;
        }
        if own.prepared(own.adopted).is_some_and(|least| least <= at) {
            return None;
        }
        for transaction in 0..TRANSACTIONS {
            let Some((time, place)) = own.committed(transaction, own.adopted) else { continue };
            if time > at || row == 1 && transaction == 1 {
                continue;
            }
            if place >= own.stable {
                return None;
            }
            seen |= 1 << transaction;
        }
        if leads {
            state.max_read = state.max_read.max(at);
        }
    }
    state.unrepeatable |= state.seen[row].is_some_and(|before| before != seen);
    state.seen[row].get_or_insert(seen);
    Some(())
}

/// A read of the newest state of the row in the bucket.
fn read_newest(model: &BucketMove, state: &mut State, node: usize) -> Option<()> {
    let mut seen = 0;
    if node == TARGET {
        if !state.target.serves {
            return None;
        }
        (0..TRANSACTIONS).filter(|t| state.target.has[*t].is_some()).for_each(|t| seen |= 1 << t);
    } else {
        let leads = usize::from(state.leader) == node;
        let own = &state.nodes[node];
        if leads && state.lost || !leads && (node == 0 || !state.both) {
            return None;
        }
        if own.seal(own.adopted).is_some() && !model.is(Mutation::SourceReadsOn) {
            return None;
        }
        if own.prepared(own.adopted).is_some() {
            return None;
        }
        for transaction in 0..TRANSACTIONS {
            match own.committed(transaction, own.adopted) {
                Some((_, place)) if place < own.stable => seen |= 1 << transaction,
                // Pending: a follower asks the leader, and a new leader waits.
                Some(_) if !leads || state.view > 1 => return None,
                _ => {}
            }
        }
    }
    let acknowledged = (0..TRANSACTIONS).filter(|t| state.transactions[*t].acknowledged).fold(0, |all, t| all | 1 << t);
    state.stale |= (acknowledged | state.shown) & !seen != 0;
    state.shown |= seen;
    Some(())
}
