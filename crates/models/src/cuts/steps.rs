//! What may happen in a state of the model of cuts, and what it does. Every step is one turn of a primary, of the
//! manage group, or of a process that opens its disk; everything between two steps may be late or never happen.

use super::back::{Goal, go_back};
use super::state::{
    Checkpoint, Cut, Entry, Life, Log, NODES, PARTITIONS, Partition, Record, Rows, State, Stream, TRANSACTIONS, Written,
};
use super::{CARRIED, Cuts, Mutation, WIDE};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    // Transactions.
    Prepare {
        partition: usize,
    },
    Outcome {
        partition: usize,
    },
    CommitCarried,
    Ship {
        partition: usize,
        node: usize,
    },
    /// A snapshot is drawn, and read in one partition.
    Read {
        partition: usize,
    },
    // Cuts.
    Draw,
    /// The primary is asked: it raises `max_read`.
    Ask {
        partition: usize,
    },
    WriteCut {
        partition: usize,
    },
    Flush {
        node: usize,
    },
    /// The group notes the newest cut, or the one drawn before it.
    Complete {
        before: bool,
    },
    BeginCheckpoint {
        node: usize,
    },
    PublishCheckpoint {
        node: usize,
    },
    // Membership.
    Lead {
        partition: usize,
        node: usize,
    },
    Join {
        partition: usize,
        node: usize,
        copy: bool,
    },
    // Going back.
    Recover,
    Open {
        node: usize,
    },
    Register {
        node: usize,
    },
    /// A process that was silent hears that its lease has ended: it writes to disk what it has, and a new process follows it.
    Fence {
        node: usize,
    },
    // Faults.
    /// A process gets no time, or hears nobody, until its lease has ended.
    Silence {
        node: usize,
    },
    /// By partition: so many records of its log are left.
    Crash {
        node: usize,
        left: [u8; PARTITIONS],
    },
    /// A living follower is struck.
    Strike {
        partition: usize,
        node: usize,
    },
}

impl Step {
    pub fn is_fault(&self) -> bool {
        matches!(self, Step::Crash { .. } | Step::Strike { .. } | Step::Silence { .. })
    }
}

/// All steps that may be possible in `state`; `apply` says which are.
pub fn candidates(model: &Cuts, state: &State, steps: &mut Vec<Step>) {
    for (partition, at) in state.partitions.iter().enumerate() {
        if at.primary.is_some() {
            steps.extend([Step::Prepare { partition }, Step::Outcome { partition }]);
            steps.extend([Step::Ask { partition }, Step::WriteCut { partition }, Step::Read { partition }]);
        }
        for node in (0..NODES).filter(|n| model.is_placed(partition, *n) && state.nodes[*n].life == Life::Up) {
            match at.primary {
                None => steps.push(Step::Lead { partition, node }),
                Some(primary) if usize::from(primary) == node => {}
                Some(_) if at.in_sync & (1 << node) != 0 => {
                    steps.extend([Step::Ship { partition, node }, Step::Strike { partition, node }]);
                }
                Some(_) => steps.extend([true, false].map(|copy| Step::Join { partition, node, copy })),
            }
        }
    }
    steps.extend([Step::CommitCarried, Step::Draw, Step::Recover]);
    steps.extend([true, false].map(|before| Step::Complete { before }));
    for (node, own) in state.nodes.iter().enumerate().filter(|(n, _)| model.is_used(*n)) {
        match own.life {
            Life::Down => {
                steps.push(Step::Open { node });
                // Its machine loses power.
                if own.fenced && own.logs.iter().any(|log| log.durable < log.len()) {
                    crashes(state, node, steps);
                }
            }
            Life::Silent => {
                steps.push(Step::Fence { node });
                crashes(state, node, steps);
            }
            Life::Opened { .. } => steps.push(Step::Register { node }),
            Life::Up => {
                steps.extend([Step::Flush { node }, Step::BeginCheckpoint { node }, Step::PublishCheckpoint { node }]);
                if state.silences_left > 0 {
                    steps.push(Step::Silence { node });
                }
                crashes(state, node, steps);
            }
        }
    }
}

/// One for each part of its logs that may be left.
fn crashes(state: &State, node: usize, steps: &mut Vec<Step>) {
    if state.crashes_left > 0 {
        let [first, second] = &state.nodes[node].logs;
        let lengths = |log: &Log| log.durable..=log.len();
        let all = lengths(first).flat_map(|a| lengths(second).map(move |b| [a, b]));
        steps.extend(all.map(|left| Step::Crash { node, left }));
    }
}

/// The state after `step`, or `None` where it is not possible or changes nothing.
pub fn apply(model: &Cuts, state: &State, step: &Step) -> Option<State> {
    let mut next = state.clone();
    match *step {
        Step::Prepare { partition } => {
            let rows = state.led(partition)?.rows();
            if model.size.transactions < 1 || rows.has(WIDE) || state.commits[WIDE] > 0 {
                return None;
            }
            let least = least(state, partition, &rows, 0);
            write(&mut next, partition, Entry::Prepare { transaction: WIDE as u8, least })?;
        }
        Step::Outcome { partition } => {
            let time = state.commits[WIDE];
            if time == 0 || state.led(partition)?.rows().prepared[WIDE] == 0 {
                return None;
            }
            write(&mut next, partition, Entry::Outcome { transaction: WIDE as u8, time })?;
        }
        Step::CommitCarried => {
            // Its session was told of the first one's commit.
            let saw = state.commits[WIDE];
            let rows = state.led(0)?.rows();
            if model.size.transactions < 2 || saw == 0 || rows.has(CARRIED) {
                return None;
            }
            let time = least(state, 0, &rows, saw);
            write(&mut next, 0, Entry::Commit { transaction: CARRIED as u8, time })?;
        }
        Step::Ship { partition, node } => {
            let stream = state.led(partition)?;
            bring_up(&mut next, partition, node, &stream)?;
        }
        Step::Read { partition } => {
            // Where no cut is under way it would only shift times.
            state.drawn?;
            next.reads_left = state.reads_left.checked_sub(1)?;
            next.clock += 1;
            next.partitions[partition].max_read = next.clock;
        }
        Step::Draw => {
            next.cuts_left = state.cuts_left.checked_sub(1)?;
            if state.partitions.iter().any(|p| p.primary.is_none()) {
                return None;
            }
            next.clock += 1;
            (next.drawn_before, next.drawn) = (state.drawn, Some(next.clock));
            next.partitions.iter_mut().for_each(|p| p.asked = false);
        }
        Step::Ask { partition } => {
            let time = state.drawn?;
            let own = &mut next.partitions[partition];
            own.asked = true;
            if !model.is(Mutation::MaxReadNotRaised) {
                own.max_read = own.max_read.max(time);
            }
        }
        Step::WriteCut { partition } => {
            let time = state.drawn?;
            let stream = state.led(partition)?;
            let open = stream.rows().is_open_before(time) && !model.is(Mutation::CutBeforeDecided);
            if !state.partitions[partition].asked || open || stream.position_of(Entry::Cut { time }).is_some() {
                return None;
            }
            write(&mut next, partition, Entry::Cut { time })?;
        }
        Step::Flush { node } => flush(&mut next, node)?,
        Step::Complete { before } => complete(model, &mut next, before)?,
        Step::BeginCheckpoint { node } => begin_checkpoint(model, &mut next, node)?,
        Step::PublishCheckpoint { node } => publish_checkpoint(model, &mut next, node)?,
        Step::Lead { partition, node } => {
            let own = &mut next.partitions[partition];
            if own.in_sync & (1 << node) == 0 {
                return None;
            }
            next.clock += 1;
            (own.primary, own.view, own.max_read) = (Some(node as u8), next.clock, next.clock);
            changed(model, &mut next);
        }
        Step::Join { partition, node, copy } => {
            let stream = state.led(partition)?;
            if copy {
                let log = &mut next.nodes[node].logs[partition];
                log.records.extend([Record::Reset, Record::Whole(stream.rows())]);
            } else {
                bring_up(&mut next, partition, node, &stream)?;
            }
            next.partitions[partition].in_sync |= 1 << node;
            changed(model, &mut next);
        }
        Step::Recover => recover(model, &mut next)?,
        Step::Open { node } => open(model, &mut next, node),
        Step::Register { node } => register(model, &mut next, node),
        Step::Fence { node } => fence(model, &mut next, node),
        Step::Silence { node } => silence(model, &mut next, node)?,
        Step::Crash { node, left } => crash(model, &mut next, node, left)?,
        Step::Strike { partition, node } => {
            next.strikes_left = state.strikes_left.checked_sub(1)?;
            next.partitions[partition].in_sync &= !(1 << node);
            changed(model, &mut next);
        }
    }
    note_commits(model, &mut next);
    (next != *state).then_some(next)
}

/// What a primary picks: above `max_read`, and at least what has committed here and what the session has seen.
fn least(state: &State, partition: usize, rows: &Rows, saw: u8) -> u8 {
    let finished = rows.committed.into_iter().max().unwrap_or_default();
    (state.partitions[partition].max_read + 1).max(finished).max(saw)
}

/// The primary writes an entry into its log, and has it in memory.
fn write(state: &mut State, partition: usize, entry: Entry) -> Option<()> {
    let Partition { primary, view, .. } = state.partitions[partition];
    state.nodes[usize::from(primary?)].logs[partition].records.push(Record::Entry(Written { view, entry }));
    Some(())
}

/// A replica gets the entries that it lacks, and cuts what is not of the primary's stream.
fn bring_up(state: &mut State, partition: usize, node: usize, from: &Stream) -> Option<()> {
    let log = &mut state.nodes[node].logs[partition];
    let own = log.stream()?;
    let common = own.common(from)?;
    if common < own.last() {
        log.records.push(Record::Rewind { position: common });
    }
    log.records.extend(from.behind(common).iter().map(|written| Record::Entry(*written)));
    let same = log.stream().is_some_and(|stream| stream.rows() == from.rows());
    state.wrong.strayed |= !same;
    Some(())
}

/// What has come into the memory of all in-sync replicas of a partition is said, and stays true until the cluster goes back, also when that memory is lost meanwhile (rule 1). A transaction
/// that is said to be prepared wherever it writes has committed; that nobody has decided it yet changes nothing.
fn note_commits(model: &Cuts, state: &mut State) {
    for transaction in 0..usize::from(model.size.transactions) {
        if state.commits[transaction] > 0 {
            continue;
        }
        for partition in (0..PARTITIONS).filter(|p| writes(transaction, *p)) {
            if state.said[partition][transaction] == 0 {
                state.said[partition][transaction] = stable_time(model, state, partition, transaction);
            }
        }
        let times = (0..PARTITIONS).filter(|p| writes(transaction, *p)).map(|p| state.said[p][transaction]);
        if times.clone().all(|time| time > 0) {
            state.commits[transaction] = times.max().unwrap_or_default();
            state.said.iter_mut().for_each(|said| said[transaction] = 0);
        }
    }
}

/// Least timestamp, or commit time, of a transaction that all in-sync replicas of a partition have; else 0.
fn stable_time(model: &Cuts, state: &State, partition: usize, transaction: usize) -> u8 {
    let Partition { primary, in_sync, .. } = state.partitions[partition];
    let counts = match primary.filter(|_| model.is(Mutation::OnPrimaryOnly)) {
        Some(primary) => 1 << primary,
        None => in_sync,
    };
    let times = (0..NODES).filter(|n| counts & (1 << n) != 0).map(|n| {
        let rows = state.nodes[n].logs[partition].stream().map(|stream| stream.rows()).unwrap_or_default();
        rows.committed[transaction].max(rows.prepared[transaction])
    });
    times.min().unwrap_or_default()
}

pub fn writes(transaction: usize, partition: usize) -> bool {
    transaction == WIDE || partition == 0
}

/// Only what a cut waits for: whatever else is flushed now may just as well be left by a crash.
fn flush(state: &mut State, node: usize) -> Option<()> {
    let cuts = [state.drawn, state.drawn_before].into_iter().flatten();
    let waits =
        |time: u8| state.nodes[node].logs.iter().any(|l| l.has_cut(time, l.len()) && !l.has_cut(time, l.durable));
    if !cuts.into_iter().any(waits) {
        return None;
    }
    state.nodes[node].logs.iter_mut().for_each(Log::flush);
    Some(())
}

/// The group notes a cut.
fn complete(model: &Cuts, state: &mut State, before: bool) -> Option<()> {
    let time = if before { state.drawn_before? } else { state.drawn? };
    let on_disk = |partition: usize, node: usize| {
        let log = &state.nodes[node].logs[partition];
        log.has_cut(time, if model.is(Mutation::CompleteBeforeFlushed) { log.len() } else { log.durable })
    };
    for (partition, own) in state.partitions.iter().enumerate() {
        own.primary?;
        if !(0..NODES).filter(|n| own.in_sync & (1 << n) != 0).all(|n| on_disk(partition, n)) {
            return None;
        }
    }
    if time < state.cut.time {
        if !model.is(Mutation::OlderCutNoted) {
            return None;
        }
        state.wrong.older_cut = true;
    }
    let position = |p: usize| state.led(p).and_then(|stream| stream.position_of(Entry::Cut { time }));
    let positions = [position(0)?, position(1)?];
    state.cut = Cut { time, positions, holders: state.partitions.map(|p| p.in_sync) };
    if before || !model.is(Mutation::OlderCutNoted) {
        state.drawn_before = None;
    }
    if !before {
        state.drawn = None;
        state.partitions.iter_mut().for_each(|p| p.asked = false);
    }
    Some(())
}

/// The versions of the partitions have grown: what was drawn before is void.
fn changed(model: &Cuts, state: &mut State) {
    let not_asked_yet = state.partitions.iter().all(|p| !p.asked);
    if model.is(Mutation::SumNotCompared) || model.is(Mutation::SumReadAfterDraw) && not_asked_yet {
        return;
    }
    (state.drawn, state.drawn_before) = (None, None);
    state.partitions.iter_mut().for_each(|p| p.asked = false);
}

/// The rows of all partitions as they are, when all of it is stable.
fn begin_checkpoint(model: &Cuts, state: &mut State, node: usize) -> Option<()> {
    state.checkpoints_left = state.checkpoints_left.checked_sub(1)?;
    let mut rows = [None; PARTITIONS];
    for (partition, rows) in rows.iter_mut().enumerate() {
        let led = state.led(partition)?;
        let stream = state.nodes[node].logs[partition].stream();
        let is_stable = |own: &Stream| own.last() <= state.stable(partition) && own.common(&led) == Some(own.last());
        if stream.as_ref().is_some_and(|own| !is_stable(own)) {
            return None;
        }
        *rows = stream.map(|s| s.rows());
    }
    state.clock += 1;
    let earlier = model.is(Mutation::CheckpointUnderEarlierDraw);
    let drawn = if earlier { state.cut.time + 1 } else { state.clock };
    let own = &mut state.nodes[node];
    let replaces = [0, 1].map(|p: usize| own.logs[p].len());
    own.checkpoint = Some(Checkpoint { rows, replaces, drawn });
    Some(())
}

fn publish_checkpoint(model: &Cuts, state: &mut State, node: usize) -> Option<()> {
    let own = &mut state.nodes[node];
    let Checkpoint { rows, replaces, drawn } = own.checkpoint.take()?;
    if state.cut.time < drawn && !model.is(Mutation::CheckpointNotCovered) {
        return None;
    }
    for (log, (rows, replaces)) in own.logs.iter_mut().zip(rows.into_iter().zip(replaces)) {
        log.base = rows;
        log.records.drain(..usize::from(replaces));
        log.durable = log.durable.saturating_sub(replaces);
    }
    Some(())
}

/// The group has the cluster go back.
fn recover(model: &Cuts, state: &mut State) -> Option<()> {
    let gone = state.partitions.iter().any(|p| p.gone);
    if !gone {
        let waits = (0..PARTITIONS).any(|p| state.waits_for_memory(p));
        if !waits || !model.size.bound && !model.is(Mutation::SilenceIsTheEnd) {
            return None;
        }
        state.ended |= model.size.bound;
    }
    state.wrong.lost |= !state.ended && state.commits.iter().any(|time| *time > state.cut.time);
    state.recovery = state.cut;
    let survives = |p: &Partition| model.is(Mutation::SurvivorsGoOn) && !p.gone;
    let surviving = state.partitions.iter().filter(|p| survives(p)).fold(0, |nodes, p| nodes | p.in_sync);
    for (number, node) in state.nodes.iter_mut().enumerate() {
        if surviving & (1 << number) != 0 || !model.is_used(number) {
            continue;
        }
        node.goes_back = true;
        node.checkpoint = None;
        node.life = match node.life {
            Life::Opened { holds, kept, .. } => Life::Opened { outdated: true, holds, kept },
            Life::Up | Life::Down => Life::Down,
            Life::Silent => Life::Silent,
        };
    }
    for partition in state.partitions.iter_mut().filter(|p| !survives(p)) {
        (partition.primary, partition.in_sync, partition.gone) = (None, 0, false);
        (partition.asked, partition.max_read) = (false, 0);
    }
    for time in state.commits.iter_mut().filter(|time| **time > state.cut.time) {
        *time = 0;
    }
    state.said = [[0; TRANSACTIONS]; PARTITIONS];
    changed(model, state);
    Some(())
}

/// A new process reads its disk, and makes what it has of the cut all that it has, if that is not done yet.
fn open(model: &Cuts, state: &mut State, node: usize) {
    let mut holds = 0;
    let fenced = state.nodes[node].fenced;
    if fenced && model.is(Mutation::OlderMemoryKept) {
        state.nodes[node].goes_back = false;
    }
    let kept = fenced && !state.nodes[node].goes_back;
    for partition in 0..PARTITIONS {
        let log = &state.nodes[node].logs[partition];
        let held = if state.nodes[node].goes_back {
            let Cut { time, positions, holders } = state.recovery;
            let holder = holders[partition] & (1 << node) != 0 || model.is(Mutation::HolderByLog);
            let back = go_back(model, log, Goal { time, position: positions[partition], holder });
            if let Some(rows) = &back.rows {
                for transaction in (0..TRANSACTIONS).filter(|t| writes(*t, partition)) {
                    let time = state.commits[transaction];
                    let wanted = if time <= state.recovery.time { time } else { 0 };
                    state.wrong.newer |= rows.committed[transaction] > 0 && wanted == 0;
                    state.wrong.missing |= wanted > 0 && rows.committed[transaction] != wanted;
                }
            }
            state.wrong.not_held |= holders[partition] & (1 << node) != 0 && back.rows.is_none();
            state.read_up_to_a_copy |= back.before_a_copy;
            state.nodes[node].logs[partition] = Log::of(back.rows);
            back.rows.is_some()
        } else {
            let is_cut = log.stream().is_some_and(|s| s.last() == state.recovery.positions[partition]);
            state.nodes[node].logs[partition].flush();
            is_cut
        };
        holds |= u8::from(held) << partition;
    }
    let own = &mut state.nodes[node];
    // What it had in memory is no more what the disk has.
    own.fenced &= kept;
    own.goes_back = false;
    own.life = Life::Opened { outdated: false, holds, kept };
}

/// The group takes a process in. Where nobody is in-sync, since the cluster has gone back, the first that holds the partition is.
fn register(model: &Cuts, state: &mut State, node: usize) {
    let Life::Opened { outdated, holds, kept } = state.nodes[node].life else { return };
    if outdated && !model.is(Mutation::OutdatedRegistered) {
        state.nodes[node].life = Life::Down;
        return;
    }
    state.nodes[node].life = Life::Up;
    // The claim is about the process that registered last, which it is not from here on.
    state.nodes[node].fenced &= model.is(Mutation::OldClaim);
    for (number, partition) in state.partitions.iter_mut().enumerate() {
        if partition.in_sync & (1 << node) != 0 {
            partition.gone = !kept;
            partition.in_sync = if kept { 1 << node } else { 0 };
        }
        state.successor_has_all |= kept && partition.in_sync & (1 << node) != 0;
        let recovering = partition.in_sync == 0 && !partition.gone;
        let holder = state.recovery.holders[number] & (1 << node) != 0 || model.is(Mutation::HolderByLog);
        if recovering && holder && holds & (1 << number) != 0 {
            partition.in_sync = 1 << node;
        }
    }
    changed(model, state);
}

/// The lease of a process ends, and the process does not. It leaves the sets in which somebody is up.
fn silence(model: &Cuts, state: &mut State, node: usize) -> Option<()> {
    state.silences_left = state.silences_left.checked_sub(1)?;
    let own = &mut state.nodes[node];
    (own.life, own.checkpoint) = (Life::Silent, None);
    for partition in state.partitions.iter_mut().filter(|p| p.in_sync & (1 << node) != 0) {
        leave(partition, node);
        if partition.primary == Some(node as u8) {
            (partition.primary, partition.asked, partition.max_read) = (None, false, 0);
        }
    }
    changed(model, state);
    Some(())
}

/// Others go on without a member; the last stays, since the group does not know what has become of its memory.
fn leave(partition: &mut Partition, node: usize) {
    if partition.in_sync != 1 << node {
        partition.in_sync &= !(1 << node);
    }
}

/// The process hears of it. What it has in memory goes to disk, which says so from then on, and the process ends.
fn fence(model: &Cuts, state: &mut State, node: usize) {
    let own = &mut state.nodes[node];
    if !model.is(Mutation::FencedBeforeFlushed) {
        own.logs.iter_mut().for_each(Log::flush);
    }
    own.fenced = !model.is(Mutation::FencedForgets);
    own.life = Life::Down;
}

/// A process ends. The group hears of it in the same step: it leaves the sets in which somebody is up.
fn crash(model: &Cuts, state: &mut State, node: usize, left: [u8; PARTITIONS]) -> Option<()> {
    state.crashes_left = state.crashes_left.checked_sub(1)?;
    let was_fenced = state.nodes[node].fenced && state.nodes[node].life == Life::Down;
    let own = &mut state.nodes[node];
    (own.life, own.checkpoint) = (Life::Down, None);
    for (log, left) in own.logs.iter_mut().zip(left) {
        log.records.truncate(usize::from(left));
    }
    if was_fenced {
        // The process had ended before, with all that it had on disk.
        return Some(());
    }
    state.ended = true;
    for partition in &mut state.partitions {
        if partition.in_sync & (1 << node) == 0 {
            continue;
        }
        leave(partition, node);
        partition.gone = partition.in_sync == 1 << node;
        if partition.primary == Some(node as u8) {
            (partition.primary, partition.asked, partition.max_read) = (None, false, 0);
        }
    }
    changed(model, state);
    Some(())
}
