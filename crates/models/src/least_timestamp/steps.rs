//! What may happen in a state of the timestamp model, and what it does.

use super::state::{Known, Outcome, PARTITIONS, Partition, ROWS, SNAPSHOTS, State, TRANSACTIONS};
use super::{LeastTimestamp, Mutation, Rule, Second, partition_of};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    // Transactions.
    Prepare {
        transaction: usize,
        partition: usize,
    },
    /// A replica takes the prepare that its primary ships, or refuses its least timestamp.
    TakePrepare {
        transaction: usize,
        partition: usize,
        replica: usize,
    },
    /// The primary tells the coordinator: prepared on all in-sync replicas.
    Report {
        transaction: usize,
        partition: usize,
    },
    Decide {
        transaction: usize,
    },
    Commit {
        transaction: usize,
        partition: usize,
    },
    TakeCommit {
        transaction: usize,
        partition: usize,
        replica: usize,
    },
    // Snapshots.
    Prefetch,
    Draw {
        snapshot: usize,
    },
    /// A replica asks the primary and gets its answer (rule `Confirm`).
    Confirm {
        snapshot: usize,
        partition: usize,
        replica: usize,
    },
    Raise {
        snapshot: usize,
        row: usize,
        replica: usize,
    },
    Look {
        snapshot: usize,
        row: usize,
        replica: usize,
    },
    // Faults, and what the manage group does about them.
    Crash {
        partition: usize,
        replica: usize,
    },
    Restart {
        partition: usize,
        replica: usize,
    },
    Strike {
        partition: usize,
        replica: usize,
    },
    Promote {
        partition: usize,
        replica: usize,
    },
    Rejoin {
        partition: usize,
        replica: usize,
    },
}

pub fn candidates(model: &LeastTimestamp, state: &State, steps: &mut Vec<Step>) {
    for transaction in 0..TRANSACTIONS {
        steps.push(Step::Decide { transaction });
        for partition in (0..PARTITIONS).filter(|p| model.takes_part(transaction, *p)) {
            steps.push(Step::Prepare { transaction, partition });
            steps.push(Step::Report { transaction, partition });
            steps.push(Step::Commit { transaction, partition });
            for replica in 0..usize::from(state.partitions[partition].count) {
                steps.push(Step::TakePrepare { transaction, partition, replica });
                steps.push(Step::TakeCommit { transaction, partition, replica });
            }
        }
    }
    if model.is(Mutation::Prefetched) && state.prefetched == 0 {
        steps.push(Step::Prefetch);
    }
    for snapshot in 0..SNAPSHOTS.min(model.size.snapshots) {
        if state.snapshots[snapshot].at == 0 {
            steps.push(Step::Draw { snapshot });
            continue;
        }
        for row in (0..ROWS).filter(|row| model.writers(*row) != 0) {
            let partition = partition_of(row);
            for replica in 0..usize::from(state.partitions[partition].count) {
                if row < 2 && model.rule == Rule::Confirm {
                    steps.push(Step::Confirm { snapshot, partition, replica });
                }
                steps.push(Step::Raise { snapshot, row, replica });
                steps.push(Step::Look { snapshot, row, replica });
            }
        }
    }
    for (partition, own) in state.partitions.iter().enumerate() {
        for replica in 0..usize::from(own.count) {
            if !own.replicas[replica].up {
                steps.push(Step::Restart { partition, replica });
                steps.push(Step::Strike { partition, replica });
                continue;
            }
            if state.crashes_left > 0 {
                steps.push(Step::Crash { partition, replica });
            }
            if state.suspicions_left > 0 {
                steps.push(Step::Strike { partition, replica });
            }
            steps.push(Step::Promote { partition, replica });
            steps.push(Step::Rejoin { partition, replica });
        }
    }
}

/// The state after `step`, or `None` where it is not possible or changes nothing.
pub fn apply(model: &LeastTimestamp, state: &State, step: &Step) -> Option<State> {
    let mut next = state.clone();
    match *step {
        Step::Prepare { transaction, partition } => prepare(model, &mut next, transaction, partition)?,
        Step::TakePrepare { transaction, partition, replica } => {
            take_prepare(model, &mut next.partitions[partition], transaction, replica)?;
        }
        Step::Report { transaction, partition } => report(&mut next, transaction, partition)?,
        Step::Decide { transaction } => decide(model, &mut next, transaction)?,
        Step::Commit { transaction, partition } => {
            let Outcome::Committed(time) = state.outcomes[transaction] else { return None };
            let own = &mut next.partitions[partition];
            let leader = led(own)?;
            if !matches!(leader.known[transaction], Known::Prepared(_)) {
                return None;
            }
            leader.known[transaction] = Known::Committed(time);
        }
        Step::TakeCommit { transaction, partition, replica } => {
            let own = &mut next.partitions[partition];
            let known = led(own)?.known[transaction];
            if !own.serves(replica) || !matches!(known, Known::Committed(_)) {
                return None;
            }
            own.replicas[replica].known[transaction] = known;
        }
        Step::Prefetch => {
            next.clock += 1;
            next.prefetched = next.clock;
        }
        Step::Draw { snapshot } => {
            let at = if model.is(Mutation::Prefetched) && state.prefetched > 0 {
                state.prefetched
            } else {
                next.clock += 1;
                next.clock
            };
            next.snapshots[snapshot].at = at;
            next.drawn_below |= (0..TRANSACTIONS).any(|t| state.commit_time(t).is_some_and(|time| time > at));
        }
        Step::Confirm { snapshot, partition, replica } => {
            let at = state.snapshots[snapshot].at;
            confirm(model, &mut next.partitions[partition], replica, at)?;
        }
        Step::Raise { snapshot, row, replica } => raise(model, &mut next, snapshot, row, replica)?,
        Step::Look { snapshot, row, replica } => look(model, &mut next, snapshot, row, replica)?,
        Step::Crash { partition, replica } => {
            next.crashes_left = next.crashes_left.checked_sub(1)?;
            let own = &mut next.partitions[partition];
            own.primary_lost |= usize::from(own.primary) == replica;
            let lost = &mut own.replicas[replica];
            (lost.up, lost.max_read, lost.confirmed) = (false, 0, 0);
            for snapshot in &mut next.snapshots {
                let there = |(row, on): (u8, u8)| partition_of(row.into()) == partition && usize::from(on) == replica;
                snapshot.halfway = snapshot.halfway.filter(|at| !there(*at));
            }
        }
        Step::Restart { partition, replica } => {
            let own = &mut next.partitions[partition].replicas[replica];
            own.up = true;
            if model.rule != Rule::Confirm {
                next.clock += 1;
                own.max_read = next.clock;
            }
        }
        Step::Strike { partition, replica } => strike(model, &mut next, partition, replica)?,
        Step::Promote { partition, replica } => promote(model, &mut next, partition, replica)?,
        Step::Rejoin { partition, replica } => rejoin(model, &mut next, partition, replica)?,
    }
    (next != *state).then_some(next)
}

/// The primary, when it is there.
fn led(partition: &mut Partition) -> Option<&mut super::state::Replica> {
    (!partition.primary_lost).then(|| partition.leader_mut())
}

/// The primary picks the least timestamp and marks its rows: from here on its own snapshot reads wait.
fn prepare(model: &LeastTimestamp, state: &mut State, transaction: usize, at: usize) -> Option<()> {
    let mut saw = 0;
    if state.outcomes[transaction] != Outcome::Open {
        return None;
    }
    if transaction == 1 {
        match model.second {
            Second::Overwriting | Second::Later => {
                // The first one holds the locks until its commit is applied here.
                if !matches!(led(&mut state.partitions[at])?.known[0], Known::Committed(_)) {
                    return None;
                }
            }
            Second::Dependent => saw = state.commit_time(0)?,
        }
    }
    let partition = &mut state.partitions[at];
    let primary = partition.primary;
    let leader = led(partition)?;
    if leader.known[transaction] != Known::Nothing {
        return None;
    }
    let mut least = 1;
    if !model.is(Mutation::NoMaxRead) {
        least = least.max(leader.max_read + 1);
    }
    if !model.is(Mutation::IgnoresFinishedCommits) {
        let finished = leader.known.iter().map(|known| if let Known::Committed(time) = known { *time } else { 0 });
        least = least.max(finished.max().unwrap_or(0));
    }
    if !model.is(Mutation::IgnoresSession) {
        least = least.max(saw);
    }
    leader.known[transaction] = Known::Prepared(least);
    partition.accepted[transaction] = 1 << primary;
    Some(())
}

fn take_prepare(model: &LeastTimestamp, partition: &mut Partition, transaction: usize, replica: usize) -> Option<()> {
    let Known::Prepared(least) = led(partition)?.known[transaction] else { return None };
    if !partition.serves(replica) || partition.accepted[transaction] & (1 << replica) != 0 {
        return None;
    }
    let refuses = model.rule != Rule::Confirm && !model.is(Mutation::ReplicaOnItsOwn);
    let own = &mut partition.replicas[replica];
    let has_it =
        matches!(own.known[transaction], Known::Committed(_)) || own.known[transaction] == Known::Prepared(least);
    if has_it {
        partition.accepted[transaction] |= 1 << replica;
    } else if refuses && own.max_read >= least {
        let named = own.max_read + 1;
        ship_again(partition, transaction, named);
    } else {
        own.known[transaction] = Known::Prepared(least);
        partition.accepted[transaction] |= 1 << replica;
    }
    Some(())
}

/// The primary raises a least timestamp that was refused, and all must take it anew.
fn ship_again(partition: &mut Partition, transaction: usize, least: u8) {
    partition.leader_mut().known[transaction] = Known::Prepared(least);
    partition.accepted[transaction] = 1 << partition.primary;
}

fn report(state: &mut State, transaction: usize, at: usize) -> Option<()> {
    let partition = &mut state.partitions[at];
    let Known::Prepared(least) = led(partition)?.known[transaction] else { return None };
    if partition.in_sync & !partition.accepted[transaction] != 0 {
        return None;
    }
    state.two_times |= partition.reported[transaction].is_some_and(|before| before != least);
    partition.reported[transaction].get_or_insert(least);
    Some(())
}

/// The coordinator, or whoever takes over: reports are facts, so that all decide alike.
fn decide(model: &LeastTimestamp, state: &mut State, transaction: usize) -> Option<()> {
    if state.outcomes[transaction] != Outcome::Open {
        return None;
    }
    let mut time = 0;
    for at in (0..PARTITIONS).filter(|p| model.takes_part(transaction, *p)) {
        time = time.max(state.partitions[at].reported[transaction]?);
    }
    state.outcomes[transaction] = Outcome::Committed(time);
    Some(())
}

/// The primary raises `max_read` for a snapshot and answers; what it sent before comes before the answer.
fn confirm(model: &LeastTimestamp, partition: &mut Partition, replica: usize, at: u8) -> Option<()> {
    if usize::from(partition.primary) == replica || !partition.serves(replica) {
        return None;
    }
    let leader = led(partition)?;
    leader.max_read = leader.max_read.max(at);
    let known = leader.known;
    if !model.is(Mutation::StreamNotAwaited) {
        for (transaction, known) in known.iter().enumerate() {
            let own = &mut partition.replicas[replica].known[transaction];
            if !matches!(own, Known::Committed(_)) {
                *own = *known;
            }
            if matches!(known, Known::Prepared(_)) {
                partition.accepted[transaction] |= 1 << replica;
            }
        }
    }
    let own = &mut partition.replicas[replica];
    own.confirmed = own.confirmed.max(at);
    Some(())
}

fn raise(model: &LeastTimestamp, state: &mut State, snapshot: usize, row: usize, replica: usize) -> Option<()> {
    let late = model.is(Mutation::LookThenRaise);
    let reader = &mut state.snapshots[snapshot];
    let here = Some((row as u8, replica as u8));
    let partition = &mut state.partitions[partition_of(row)];
    if !reads(model, partition, replica, reader.at) || reader.halfway != if late { here } else { None } {
        return None;
    }
    let is_primary = usize::from(partition.primary) == replica;
    if is_primary && partition.primary_lost {
        return None;
    }
    let own = &mut partition.replicas[replica];
    if model.rule == Rule::Confirm && !is_primary {
        // Its own `max_read` is of no use to anybody: the primary's counts.
        if own.confirmed < reader.at && !model.is(Mutation::ReplicaOnItsOwn) {
            return None;
        }
    } else {
        own.max_read = own.max_read.max(reader.at);
    }
    reader.halfway = if late { None } else { here };
    Some(())
}

fn look(model: &LeastTimestamp, state: &mut State, snapshot: usize, row: usize, replica: usize) -> Option<()> {
    let late = model.is(Mutation::LookThenRaise);
    let reader = &mut state.snapshots[snapshot];
    let here = Some((row as u8, replica as u8));
    let partition = &state.partitions[partition_of(row)];
    if !reads(model, partition, replica, reader.at) || reader.halfway != if late { None } else { here } {
        return None;
    }
    let mut seen = 0;
    for transaction in (0..TRANSACTIONS).filter(|t| model.writers(row) & (1 << t) != 0) {
        match partition.replicas[replica].known[transaction] {
            Known::Prepared(least) if waits(model, least, reader.at) => return None,
            Known::Committed(time) if time <= reader.at => seen |= 1 << transaction,
            _ => {}
        }
    }
    reader.unrepeatable |= reader.seen[row].is_some_and(|before| before != seen);
    reader.seen[row].get_or_insert(seen);
    reader.halfway = if late { here } else { None };
    Some(())
}

/// May a replica read for a snapshot? One that was struck goes on with what has been confirmed to it.
fn reads(model: &LeastTimestamp, partition: &Partition, replica: usize, at: u8) -> bool {
    let own = &partition.replicas[replica];
    partition.serves(replica) || model.rule == Rule::Confirm && own.up && own.confirmed >= at
}

/// Does a snapshot wait for a row that is prepared with this least timestamp?
fn waits(model: &LeastTimestamp, least: u8, at: u8) -> bool {
    let below = least < at || least == at && !model.is(Mutation::WaitsStrictlyBelow);
    below && !model.is(Mutation::ReadsBelowPrepared)
}

/// A replica leaves the in-sync set: one that is down, or (a suspicion) one that lives and does not hear of it.
fn strike(model: &LeastTimestamp, state: &mut State, at: usize, replica: usize) -> Option<()> {
    let partition = &mut state.partitions[at];
    if usize::from(partition.primary) == replica || partition.in_sync & (1 << replica) == 0 || partition.primary_lost {
        return None;
    }
    let lives = partition.replicas[replica].up;
    partition.in_sync &= !(1 << replica);
    state.suspicions_left = state.suspicions_left.checked_sub(u8::from(lives))?;
    if model.rule == Rule::RefusalAndFreshAfterStrike {
        state.clock += 1;
        let fresh = state.clock;
        partition.leader_mut().max_read = fresh;
        for transaction in 0..TRANSACTIONS {
            // What the struck replica had not taken has not been reported, and it may have read above it.
            let taken =
                (partition.accepted[transaction] & (1 << replica) | partition.inherited & (1 << transaction)) != 0;
            if matches!(partition.leader().known[transaction], Known::Prepared(_)) && !taken {
                ship_again(partition, transaction, fresh + 1);
            }
        }
    }
    Some(())
}

/// An in-sync replica becomes primary after the old one's lease has ended, and draws a fresh `max_read`.
fn promote(model: &LeastTimestamp, state: &mut State, at: usize, replica: usize) -> Option<()> {
    let partition = &mut state.partitions[at];
    if !partition.primary_lost || !partition.serves(replica) {
        return None;
    }
    let old = usize::from(partition.primary);
    if !partition.replicas[old].up {
        partition.in_sync &= !(1 << old) | 1 << replica;
    }
    (partition.primary, partition.primary_lost) = (replica as u8, false);
    if !model.is(Mutation::OldMaxReadAfterPromotion) {
        state.clock += 1;
        partition.leader_mut().max_read = state.clock;
    }
    for transaction in 0..TRANSACTIONS {
        let partition = &mut state.partitions[at];
        match partition.leader().known[transaction] {
            Known::Prepared(_) if model.is(Mutation::LeastChangedAfterPromotion) => {
                let least = partition.leader().max_read + 1;
                ship_again(partition, transaction, least);
            }
            // It may have been reported, and the commit time told: it stays.
            Known::Prepared(least) => {
                ship_again(partition, transaction, least);
                if model.rule != Rule::Confirm {
                    partition.inherited |= 1 << transaction;
                }
            }
            // The prepare died with the old primary: it is refused (1213), and the others cut it from their logs.
            Known::Nothing if partition.replicas.iter().any(|r| r.known[transaction] != Known::Nothing) => {
                abort(state, transaction);
            }
            Known::Nothing | Known::Committed(_) => {}
        }
    }
    Some(())
}

/// The transaction ends without a commit; all participants let go of it.
fn abort(state: &mut State, transaction: usize) {
    assert_eq!(state.commit_time(transaction), None, "a decided transaction is on every in-sync replica");
    state.outcomes[transaction] = Outcome::Aborted;
    for partition in &mut state.partitions {
        for replica in &mut partition.replicas {
            replica.known[transaction] = Known::Nothing;
        }
        partition.accepted[transaction] = 0;
    }
}

/// A struck replica takes over everything the primary has, then counts again.
fn rejoin(model: &LeastTimestamp, state: &mut State, at: usize, replica: usize) -> Option<()> {
    let partition = &mut state.partitions[at];
    let known = led(partition)?.known;
    if partition.in_sync & (1 << replica) != 0 {
        return None;
    }
    partition.in_sync |= 1 << replica;
    let own = &mut partition.replicas[replica];
    (own.known, own.confirmed) = (known, 0);
    for (transaction, known) in known.iter().enumerate() {
        if matches!(known, Known::Prepared(_)) {
            partition.accepted[transaction] |= 1 << replica;
        }
    }
    if model.rule != Rule::Confirm {
        state.clock += 1;
        state.partitions[at].replicas[replica].max_read = state.clock;
    }
    Some(())
}
