//! What may happen in a state of the commit model, and what it does. Every step is one atomic turn of one block, or
//! one entry of the manage group; everything between two turns may be late, doubled or never happen.

use super::state::{Coordinator, POSITIONS, Participant, Record, Shipped, State, Told, VIEWS, View};
use super::{CommitTakeover, Mutation};

/// `participant`, `replica` and `view` are indexes; views count from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    // The coordinator.
    SendPrepare {
        participant: usize,
    },
    DecideCommit,
    DecideAbort,
    /// It hears the outcome from a participant that took over.
    HearOutcome,
    SendOutcome,
    CrashCoordinator,
    // A primary, or a replica that believes to be one.
    TakePrepare {
        participant: usize,
        replica: usize,
    },
    SayPrepared {
        participant: usize,
        replica: usize,
    },
    SayAborted {
        participant: usize,
        replica: usize,
    },
    Confirm {
        participant: usize,
        replica: usize,
    },
    AskOthers {
        participant: usize,
        replica: usize,
    },
    TakeQuestion {
        participant: usize,
        replica: usize,
    },
    TakeOver {
        participant: usize,
        replica: usize,
    },
    TakeOutcome {
        participant: usize,
        replica: usize,
    },
    Forget {
        participant: usize,
        replica: usize,
    },
    DropLocks {
        participant: usize,
        replica: usize,
    },
    // The stream and the manage group.
    TakeShip {
        participant: usize,
        replica: usize,
        view: u8,
        position: u8,
    },
    LearnView {
        participant: usize,
        replica: usize,
    },
    Promote {
        participant: usize,
        replica: usize,
        strike_old: bool,
        suspicion: bool,
    },
    Strike {
        participant: usize,
        replica: usize,
        suspicion: bool,
    },
    Rejoin {
        participant: usize,
        replica: usize,
    },
    /// `keep`: what was written and not synced is on disk all the same.
    Crash {
        participant: usize,
        replica: usize,
        keep: bool,
    },
    Restart {
        participant: usize,
        replica: usize,
    },
}

impl Step {
    pub fn is_fault(&self) -> bool {
        matches!(
            self,
            Step::CrashCoordinator
                | Step::Crash { .. }
                | Step::Promote { suspicion: true, .. }
                | Step::Strike { suspicion: true, .. }
        )
    }
}

/// All steps that may be possible in `state`; `apply` says which are.
pub fn candidates(state: &State, steps: &mut Vec<Step>) {
    if state.coordinator != Coordinator::Crashed {
        steps.extend([Step::DecideCommit, Step::DecideAbort, Step::HearOutcome, Step::SendOutcome]);
        steps.push(Step::CrashCoordinator);
    }
    for (participant, partition) in state.participants.iter().enumerate() {
        if state.coordinator == Coordinator::Working {
            steps.push(Step::SendPrepare { participant });
        }
        for (replica, own) in partition.replicas().iter().enumerate() {
            for view in (1..=partition.last_view).filter(|v| usize::from(partition.view(*v).primary) != replica) {
                let stream = &partition.stream[usize::from(view) - 1];
                let positions = (0..POSITIONS as u8).filter(|p| stream[usize::from(*p)].is_some());
                steps.extend(positions.map(|position| Step::TakeShip { participant, replica, view, position }));
            }
            if !own.up {
                steps.push(Step::Restart { participant, replica });
                steps.push(Step::Strike { participant, replica, suspicion: false });
                continue;
            }
            if own.leads {
                steps.extend([
                    Step::TakePrepare { participant, replica },
                    Step::SayPrepared { participant, replica },
                    Step::SayAborted { participant, replica },
                    Step::Confirm { participant, replica },
                    Step::AskOthers { participant, replica },
                    Step::TakeQuestion { participant, replica },
                    Step::TakeOver { participant, replica },
                    Step::TakeOutcome { participant, replica },
                    Step::Forget { participant, replica },
                    Step::DropLocks { participant, replica },
                ]);
            }
            steps.push(Step::LearnView { participant, replica });
            steps.push(Step::Rejoin { participant, replica });
            if state.crashes_left > 0 {
                steps.push(Step::Crash { participant, replica, keep: false });
                if own.record != own.durable {
                    steps.push(Step::Crash { participant, replica, keep: true });
                }
            }
            for strike_old in [true, false] {
                for suspicion in [true, false] {
                    if suspicion && state.suspicions_left == 0 {
                        continue;
                    }
                    steps.push(Step::Promote { participant, replica, strike_old, suspicion });
                }
            }
            if state.suspicions_left > 0 {
                steps.push(Step::Strike { participant, replica, suspicion: true });
            }
        }
    }
}

/// The state after `step`, or `None` where it is not possible or changes nothing.
pub fn apply(model: &CommitTakeover, state: &State, step: &Step) -> Option<State> {
    let mut next = state.clone();
    match step {
        Step::TakePrepare { participant, replica }
        | Step::SayPrepared { participant, replica }
        | Step::SayAborted { participant, replica }
        | Step::Confirm { participant, replica }
        | Step::AskOthers { participant, replica }
        | Step::TakeQuestion { participant, replica }
        | Step::TakeOver { participant, replica }
        | Step::TakeOutcome { participant, replica }
        | Step::Forget { participant, replica }
        | Step::DropLocks { participant, replica } => primary(model, &mut next, step, *participant, *replica)?,
        Step::TakeShip { participant, replica, view, position } => {
            take_ship(model, &mut next.participants[*participant], *replica, *view, *position)?;
        }
        Step::LearnView { participant, replica } => learn_view(&mut next.participants[*participant], *replica)?,
        Step::Rejoin { participant, replica } => rejoin(&mut next.participants[*participant], *replica)?,
        Step::Promote { participant, replica, strike_old, suspicion } => {
            next.suspicions_left = next.suspicions_left.checked_sub(u8::from(*suspicion))?;
            promote(&mut next.participants[*participant], *replica, *strike_old, *suspicion)?;
        }
        Step::Strike { participant, replica, suspicion } => {
            next.suspicions_left = next.suspicions_left.checked_sub(u8::from(*suspicion))?;
            let partition = &mut next.participants[*participant];
            let View { primary, in_sync } = partition.truth();
            if usize::from(primary) == *replica || in_sync & (1 << replica) == 0 {
                return None;
            }
            open(partition, View { primary, in_sync: in_sync & !(1 << replica) });
        }
        Step::Crash { participant, replica, keep } => {
            next.crashes_left = next.crashes_left.checked_sub(1)?;
            let partition = &mut next.participants[*participant];
            let own = &mut partition.replicas[*replica];
            (own.up, own.leads, own.locks, own.finished) = (false, false, false, false);
            if *keep {
                own.durable = own.record;
            }
            own.record = own.durable;
            partition.primary_lost |= usize::from(partition.truth().primary) == *replica;
        }
        Step::Restart { participant, replica } => next.participants[*participant].replicas[*replica].up = true,
        _ => coordinator(model, &mut next, step)?,
    }
    for partition in &mut next.participants {
        prune(model, partition);
    }
    (next != *state).then_some(next)
}

fn coordinator(model: &CommitTakeover, state: &mut State, step: &Step) -> Option<()> {
    let working = state.coordinator == Coordinator::Working;
    match step {
        Step::SendPrepare { participant } if working => state.prepare_sent |= 1 << participant,
        Step::DecideCommit if working && state.participants.iter().all(|p| p.said_prepared) => {
            (state.coordinator, state.told) = (Coordinator::Commit, Told::Committed);
        }
        Step::DecideAbort if working => {
            let refused = state.abort_is_known() || state.participants.iter().any(|p| p.said_view_over);
            let early = state.prepare_sent == 0 || model.is(Mutation::AbortWithoutRefusal);
            if !refused && !early {
                return None;
            }
            (state.coordinator, state.told) = (Coordinator::Abort, Told::Aborted);
        }
        Step::HearOutcome if working && state.commit_is_known() => {
            (state.coordinator, state.told) = (Coordinator::Commit, Told::Committed);
        }
        Step::SendOutcome => match state.coordinator {
            Coordinator::Commit => state.sent_commit = true,
            Coordinator::Abort => state.sent_abort = true,
            _ => return None,
        },
        Step::CrashCoordinator => state.coordinator = Coordinator::Crashed,
        _ => return None,
    }
    Some(())
}

/// Steps of a process that believes to lead its partition.
fn primary(model: &CommitTakeover, state: &mut State, step: &Step, at: usize, replica: usize) -> Option<()> {
    let (commit_known, abort_known) = (state.commit_is_known(), state.abort_is_known());
    let others_prepared = state.participants.iter().enumerate().all(|(p, other)| p == at || other.said_prepared);
    let others_confirmed = state.participants.iter().enumerate().all(|(p, other)| p == at || other.confirmed);
    let coordinator_knows = !matches!(state.coordinator, Coordinator::Working);
    let coordinator_gone = state.coordinator == Coordinator::Crashed;
    let prepare_sent = state.prepare_sent & (1 << at) != 0;

    let full = state.participants[at].is_full(replica) || model.is(Mutation::PrimaryOnly);
    let first_to_abort = !state.sent_abort && !state.participants[1 - at].said_aborted;
    let partition = &mut state.participants[at];
    let relieved = usize::from(partition.truth().primary) != replica;
    let view = partition.replicas[replica].view;
    let own = &mut partition.replicas[replica];
    match step {
        Step::TakePrepare { .. } if prepare_sent && own.record == Record::None && !own.finished => {
            if own.locks || model.is(Mutation::OldPrepareTaken) {
                partition.prepared_without_locks |= !own.locks;
                write(partition, replica, Record::Prepared)?;
            } else if full || model.is(Mutation::RefusedBeforeOpened) {
                own.durable = own.record;
                // First touched in an older view, or let go meanwhile. Nothing is on record, and nothing need be:
                // the opening of this view is on all in-sync replicas, so that no older prepare comes to life again.
                partition.said_view_over = true;
            }
        }
        Step::SayPrepared { .. } if own.record == Record::Prepared && full => {
            own.durable = own.record;
            partition.broke_fence |= partition.said_aborted && first_to_abort;
            partition.said_prepared = true;
        }
        Step::SayAborted { .. } if own.record == Record::Aborted => {
            if !full && !model.is(Mutation::FenceOnPrimaryOnly) {
                return None;
            }
            own.durable = own.record;
            partition.said_aborted = true;
        }
        Step::Confirm { .. } if matches!(own.record, Record::Committed | Record::Aborted) => {
            if !full && !model.is(Mutation::ConfirmedBeforeReplicated) {
                return None;
            }
            own.durable = own.record;
            partition.confirmed = true;
        }
        Step::AskOthers { .. } if own.record == Record::Prepared => {
            // Its lease ends before the manage group names another, and without a lease nobody asks.
            if relieved && !model.is(Mutation::AsksWithoutLease) {
                return None;
            }
            let other = &mut state.participants[1 - at];
            other.asked |= 1 << other.last_view;
        }
        Step::TakeQuestion { .. } if partition.asked & (1 << view) != 0 && own.record == Record::None => {
            if own.finished && !model.is(Mutation::NoTombstone) {
                return None;
            }
            if model.is(Mutation::NoFence) {
                partition.said_aborted = true;
            } else {
                write(partition, replica, Record::Aborted)?;
            }
        }
        Step::TakeOver { .. } if own.record == Record::Prepared => {
            let own_part = full || model.is(Mutation::OwnPrepareNotReplicated);
            if !own_part || !others_prepared {
                return None;
            }
            own.durable = own.record;
            partition.decided_commit = true;
            write(partition, replica, Record::Committed)?;
        }
        Step::TakeOutcome { .. } => match own.record {
            Record::Prepared if commit_known => {
                partition.decided_commit = true;
                write(partition, replica, Record::Committed)?;
            }
            Record::Prepared if abort_known => write(partition, replica, Record::Aborted)?,
            // It may never have heard of the transaction, or only its first touch: the same record as a fence.
            Record::None if abort_known && !own.finished => write(partition, replica, Record::Aborted)?,
            _ => return None,
        },
        Step::Forget { .. } if matches!(own.record, Record::Committed | Record::Aborted) && full => {
            let confirmed = others_confirmed || model.is(Mutation::ForgottenUnconfirmed);
            let coordinator = coordinator_knows || model.is(Mutation::CoordinatorNotAsked);
            if !partition.confirmed || !confirmed || !coordinator {
                return None;
            }
            own.durable = own.record;
            own.finished = true;
            write(partition, replica, Record::None)?;
        }
        Step::DropLocks { .. } if coordinator_gone && own.record == Record::None => own.locks = false,
        _ => return None,
    }
    Some(())
}

/// The primary writes a record to its log (not yet synced) and ships it to the other in-sync replica.
fn write(partition: &mut Participant, replica: usize, record: Record) -> Option<()> {
    let own = &mut partition.replicas[replica];
    own.record = record;
    own.row_written |= record == Record::Committed;
    own.position += 1;
    own.locks &= record == Record::Prepared;
    ship(partition, replica)
}

fn ship(partition: &mut Participant, from: usize) -> Option<()> {
    let own = &partition.replicas[from];
    if partition.view(own.view).in_sync & !(1 << from) != 0 {
        let shipped = Shipped { record: own.record, row_written: own.row_written, finished: own.finished };
        *partition.stream[usize::from(own.view) - 1].get_mut(usize::from(own.position))? = Some(shipped);
    }
    Some(())
}

/// What would be refused for ever by whoever may still get it is gone, so that equal situations are one state.
fn prune(model: &CommitTakeover, partition: &mut Participant) {
    for view in 1..=partition.last_view {
        let to = &partition.replicas[1 - usize::from(partition.view(view).primary)];
        let stream = &mut partition.stream[usize::from(view) - 1];
        if view < to.view && !model.is(Mutation::OldStreamTaken) {
            *stream = [None; POSITIONS];
        }
        if view == to.view {
            stream[..=usize::from(to.position)].fill(None);
        }
        let led = partition.replicas.iter().any(|r| r.leads && r.view == view);
        if view < partition.last_view && !led {
            partition.asked &= !(1 << view);
        }
    }
}

fn take_ship(
    model: &CommitTakeover,
    partition: &mut Participant,
    replica: usize,
    view: u8,
    position: u8,
) -> Option<()> {
    let shipped = partition.stream[usize::from(view) - 1][usize::from(position)]?;
    let to = &mut partition.replicas[replica];
    if view < to.view {
        // It is acknowledged, and taken where it meets nothing.
        if !model.is(Mutation::OldStreamTaken) {
            return None;
        }
        if to.record == Record::None {
            (to.record, to.durable) = (shipped.record, shipped.record);
        }
    } else {
        // The stream of a newer view begins with its opening, which carries everything: what this log has beyond it
        // is cut. Within one view the order is the stream's.
        let opens = view > to.view && position == 0;
        let follows = view == to.view && position == to.position + 1;
        if !opens && !follows {
            return None;
        }
        (to.view, to.position, to.record, to.durable) = (view, position, shipped.record, shipped.record);
        to.row_written = shipped.row_written;
        to.finished |= shipped.finished && !model.is(Mutation::TombstoneNotFollowed);
        (to.leads, to.locks) = (false, false);
    }
    let acknowledged = &mut partition.acknowledged[usize::from(view) - 1];
    *acknowledged = (*acknowledged).max(position + 1);
    Some(())
}

/// A primary hears of the newest view. Locks go on only in one process that leads without a break.
fn learn_view(partition: &mut Participant, replica: usize) -> Option<()> {
    let last = partition.last_view;
    let own = &partition.replicas[replica];
    if usize::from(partition.truth().primary) != replica || partition.primary_lost || own.leads && own.view == last {
        return None;
    }
    let unbroken = own.leads && (own.view..=last).all(|v| usize::from(partition.view(v).primary) == replica);
    let own = &mut partition.replicas[replica];
    own.locks &= unbroken;
    (own.leads, own.view, own.position) = (true, last, 0);
    ship(partition, replica)
}

/// The manage group commits the next view.
fn open(partition: &mut Participant, view: View) {
    assert!(usize::from(partition.last_view) < VIEWS, "more faults than the model has room for");
    partition.views[usize::from(partition.last_view)] = view;
    partition.last_view += 1;
}

fn promote(partition: &mut Participant, replica: usize, strike_old: bool, suspicion: bool) -> Option<()> {
    let View { primary, in_sync } = partition.truth();
    let same = usize::from(primary) == replica;
    if in_sync & (1 << replica) == 0 || partition.primary_lost == suspicion || same && (suspicion || strike_old) {
        return None;
    }
    let in_sync = if strike_old { in_sync & !(1 << primary) } else { in_sync };
    open(partition, View { primary: replica as u8, in_sync });
    partition.primary_lost = false;
    Some(())
}

/// A struck replica takes the primary's state and becomes in-sync by an entry that opens a view; the primary of the
/// newest view asks for it. (The two-step catch-up is the subject of the `in_sync` model.)
fn rejoin(partition: &mut Participant, replica: usize) -> Option<()> {
    let View { primary, in_sync } = partition.truth();
    let leader = &partition.replicas[usize::from(primary)];
    if in_sync & (1 << replica) != 0 || !leader.up || !leader.leads || leader.view != partition.last_view {
        return None;
    }
    let (record, row_written, finished) = (leader.record, leader.row_written, leader.finished);
    open(partition, View { primary, in_sync: in_sync | 1 << replica });
    let last = partition.last_view;
    let leader = &mut partition.replicas[usize::from(primary)];
    (leader.view, leader.position, leader.durable) = (last, 0, record);
    let own = &mut partition.replicas[replica];
    (own.view, own.position, own.record, own.durable) = (last, 0, record, record);
    (own.row_written, own.leads, own.locks) = (row_written, false, false);
    own.finished |= finished;
    partition.acknowledged[usize::from(last) - 1] = 1;
    Some(())
}

/// Where everything may rest: no process has anything left to do about the transaction.
pub fn is_settled(state: &State) -> bool {
    let coordinator = match state.coordinator {
        Coordinator::Working => state.prepare_sent == 0,
        _ => true,
    };
    coordinator
        && state.participants.iter().all(|p| {
            p.replicas().iter().all(|r| r.up && r.record == Record::None && !r.locks)
                && p.truth().in_sync.count_ones() == u32::from(p.count)
                && p.replicas[usize::from(p.truth().primary)].leads
        })
}
