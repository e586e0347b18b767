//! What may happen in a state of the membership model, and what it does.

use super::state::{Ack, Entry, Log, NODES, Node, Renewal, State};
use super::{Crash, InSync, LEADER_TICKS, Mutation};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Everybody's clock goes on by one, except one that falls behind.
    Tick {
        slow: Option<usize>,
    },
    // Leases.
    Ask {
        node: usize,
    },
    Grant {
        node: usize,
    },
    TakeGrant {
        node: usize,
    },
    // A node that believes to be primary.
    Work {
        node: usize,
    },
    Answer {
        node: usize,
    },
    Write {
        node: usize,
    },
    Ship {
        from: usize,
    },
    TakeAck {
        node: usize,
    },
    TakeLateAck {
        node: usize,
    },
    Acknowledge {
        node: usize,
    },
    RequestJoin {
        node: usize,
    },
    // The manage group's entries, and who hears of them.
    CommitJoin,
    Strike,
    Promote {
        node: usize,
        strike_old: bool,
    },
    Register {
        node: usize,
    },
    Learn {
        node: usize,
    },
    // Faults.
    Crash {
        node: usize,
    },
    /// While its process is down the end of its log is damaged, and cut: a frame that had never been whole, or
    /// (`drops`) one that had been synced.
    Damage {
        node: usize,
        drops: bool,
    },
    /// While its process is down its directory is put back to an older copy, without the last entries of the log.
    Older {
        node: usize,
        lacks: u8,
    },
    Restart {
        node: usize,
    },
    /// It finds that its rows are damaged, and stops.
    Stop {
        node: usize,
    },
    /// The follower has heard that the primary has stopped.
    Remove {
        by: usize,
    },
    Elect,
}

pub fn candidates(model: &InSync, state: &State, steps: &mut Vec<Step>) {
    steps.push(Step::Tick { slow: None });
    for node in 0..NODES {
        if !state.nodes[node].up {
            steps.push(Step::Restart { node });
            if state.doubts_left > 0 {
                steps.extend([true, false].map(|drops| Step::Damage { node, drops }));
            }
            if state.olds_left > 0 {
                steps.extend((1..=state.nodes[node].log.len()).map(|lacks| Step::Older { node, lacks }));
            }
            continue;
        }
        steps.extend([Step::Grant { node }, Step::TakeGrant { node }]);
        steps.extend([Step::Learn { node }, Step::Register { node }]);
        if leads(&state.nodes[node], node) {
            if model.is(Mutation::LeaseNotCheckedBeforeAnswer) {
                steps.push(Step::Work { node });
            }
            steps.extend([Step::Ask { node }, Step::Answer { node }, Step::Write { node }, Step::Ship { from: node }]);
            steps.extend([Step::TakeAck { node }, Step::TakeLateAck { node }]);
            steps.extend([Step::Acknowledge { node }, Step::RequestJoin { node }]);
        }
        if state.entry.version < model.size.versions {
            steps.extend([true, false].map(|strike_old| Step::Promote { node, strike_old }));
        }
        if state.drifts_left > 0 {
            steps.push(Step::Tick { slow: Some(node) });
        }
        if state.crashes_left > 0 {
            steps.push(Step::Crash { node });
        }
        if state.stops_left > 0 {
            steps.push(Step::Stop { node });
        }
        if state.entry.version < model.size.versions && state.nodes[node].told.is_some() {
            steps.push(Step::Remove { by: node });
        }
    }
    if state.entry.version < model.size.versions {
        steps.extend([Step::CommitJoin, Step::Strike]);
    }
    if state.elections_left > 0 {
        steps.push(Step::Elect);
    }
}

/// Does this process believe that it leads?
pub fn leads(node: &Node, number: usize) -> bool {
    node.up && node.knows.is_some_and(|e| usize::from(e.primary) == number && e.leader_incarnation == node.incarnation)
}

/// The state after `step`, or `None` where it is not possible or changes nothing.
pub fn apply(model: &InSync, state: &State, step: &Step) -> Option<State> {
    let mut next = state.clone();
    match *step {
        Step::Tick { slow } => tick(&mut next, slow)?,
        Step::Ask { node } => {
            let left = model.holder_ticks();
            next.nodes[node].renewal = Renewal::Asked { left, before_election: false };
        }
        Step::Grant { node } => grant(model, &mut next, node)?,
        Step::TakeGrant { node } => {
            let own = &mut next.nodes[node];
            let Renewal::Granted { left, version } = own.renewal else { return None };
            // The lease counts only with everything that was committed before it was granted.
            let informed = own.knows.is_some_and(|entry| entry.version >= version);
            if !informed && !model.is(Mutation::LeaseWithoutEntry) {
                return None;
            }
            let left = if model.is(Mutation::HolderCountsFromGrant) { model.holder_ticks() } else { left };
            (own.lease, own.renewal) = (own.lease.max(left), Renewal::None);
        }
        Step::Work { node } if state.nodes[node].lease > 0 => next.nodes[node].worked = true,
        Step::Answer { node } => {
            // Work that was done under a lease, or (what comes to the same, as the lease is looked at again) any.
            if model.is(Mutation::LeaseNotCheckedBeforeAnswer) && !state.nodes[node].worked {
                return None;
            }
            show(model, &mut next, node)?;
            next.nodes[node].worked = false;
        }
        Step::Write { node } | Step::RequestJoin { node } if state.nodes[node].stopped => return None,
        Step::Write { node } if state.nodes[node].lease > 0 && state.nodes[node].log.len() < model.size.writes => {
            let own = &mut next.nodes[node];
            own.log.push(own.knows?.view)?;
        }
        Step::Ship { from } => ship(model, &mut next, from)?,
        Step::TakeAck { node } => {
            let ack = next.nodes[node].ack.take()?;
            take_ack(model, &mut next.nodes[node], node, ack);
        }
        Step::TakeLateAck { node } => {
            let ack = next.nodes[node].late_ack.take()?;
            take_ack(model, &mut next.nodes[node], node, ack);
        }
        Step::Acknowledge { node } => acknowledge(model, &mut next, node)?,
        Step::RequestJoin { node } => {
            let own = &mut next.nodes[node];
            let knows = own.knows?;
            let inherited = if model.is(Mutation::InheritedNotRequired) { 0 } else { own.inherited };
            let required = own.acknowledged.max(inherited);
            let caught_up = own.other_has >= required || model.is(Mutation::JoinedBeforeCaughtUp);
            if knows.in_sync & (1 << (1 - node)) != 0 || !caught_up {
                return None;
            }
            own.joining = true;
            next.join_request = Some(knows.version);
        }
        Step::CommitJoin => {
            let version = next.join_request.take()?;
            if version != state.entry.version && !model.is(Mutation::VersionNotChecked) {
                return None;
            }
            next.entry.in_sync |= 1 << (1 - state.entry.primary);
            next.entry.doubtful[usize::from(1 - state.entry.primary)] = None;
            next.entry.version += 1;
        }
        Step::Strike => strike(&mut next)?,
        Step::Promote { node, strike_old } => promote(model, &mut next, node, strike_old)?,
        Step::Register { node } => register(model, &mut next, node)?,
        Step::Learn { node } => learn(model, &mut next.nodes[node], node, state.entry)?,
        Step::Crash { node } => crash(model, &mut next, node)?,
        Step::Damage { node, drops } => damage(&mut next, node, drops)?,
        Step::Older { node, lacks } => go_back(&mut next, node, lacks)?,
        Step::Restart { node } => {
            let own = &mut next.nodes[node];
            (own.up, own.incarnation) = (true, own.incarnation + 1);
        }
        Step::Stop { node } => stop(model, &mut next, node)?,
        Step::Remove { by } => remove(model, &mut next, by)?,
        Step::Elect => {
            next.elections_left = next.elections_left.checked_sub(1)?;
            let wait = if model.is(Mutation::NewLeaderDoesNotWait) { 0 } else { LEADER_TICKS };
            next.granted = [wait; NODES];
            for node in &mut next.nodes {
                if let Renewal::Asked { before_election, .. } = &mut node.renewal {
                    *before_election = true;
                }
            }
        }
        _ => return None,
    }
    if next.join_request.is_some_and(|version| version != next.entry.version) && !model.is(Mutation::VersionNotChecked)
    {
        next.join_request = None;
    }
    for (number, node) in next.nodes.iter_mut().enumerate() {
        prune(model, node, number);
    }
    (next != *state).then_some(next)
}

/// What can have no effect any more is gone, so that equal situations are one state.
fn prune(model: &InSync, own: &mut Node, number: usize) {
    let late_counts = model.is(Mutation::HolderCountsFromGrant);
    match own.renewal {
        Renewal::Asked { left: 0, .. } | Renewal::Granted { left: 0, .. } if !late_counts => {
            own.renewal = Renewal::None
        }
        _ => {}
    }
    let useless = |ack: &Ack| {
        let mut after = *own;
        take_ack(model, &mut after, number, *ack);
        after == *own
    };
    let (ack, late_ack) = (own.ack.filter(|a| !useless(a)), own.late_ack.filter(|a| !useless(a)));
    (own.ack, own.late_ack) = (ack, late_ack);
}

fn tick(state: &mut State, slow: Option<usize>) -> Option<()> {
    state.drifts_left = state.drifts_left.checked_sub(u8::from(slow.is_some()))?;
    for node in 0..NODES {
        state.granted[node] = state.granted[node].saturating_sub(1);
        if slow == Some(node) {
            continue;
        }
        let own = &mut state.nodes[node];
        own.lease = own.lease.saturating_sub(1);
        if let Renewal::Asked { left, .. } | Renewal::Granted { left, .. } = &mut own.renewal {
            *left = left.saturating_sub(1);
        }
    }
    Some(())
}

/// The leader grants. One that has been replaced may still do so for a request from before the election, for then it
/// was the leader at a time after the request; for a later one it finds no majority that would still follow it.
fn grant(model: &InSync, state: &mut State, node: usize) -> Option<()> {
    let Renewal::Asked { left, before_election } = state.nodes[node].renewal else { return None };
    let by_the_old = before_election || model.is(Mutation::OldLeaderGrants) && state.elections_left == 0;
    if !by_the_old {
        state.granted[node] = LEADER_TICKS;
    }
    state.nodes[node].renewal = Renewal::Granted { left, version: state.entry.version };
    Some(())
}

/// What precedes every answer to a client: the lease is looked at again.
fn serve(model: &InSync, state: &mut State, node: usize) -> Option<()> {
    let own = &state.nodes[node];
    if own.stopped && !model.is(Mutation::StoppedServes) {
        return None;
    }
    if own.lease == 0 {
        if !model.is(Mutation::LeaseNotCheckedBeforeAnswer) {
            return None;
        }
        state.served_without_lease = true;
    }
    state.served_after_relief |= state.entry.view > own.knows?.view;
    Some(())
}

/// The primary's stream brings the other's log to its own, and cuts what that has beyond it.
fn ship(model: &InSync, state: &mut State, from: usize) -> Option<()> {
    let to = 1 - from;
    let (log, view) = (state.nodes[from].log, state.nodes[from].knows?.view);
    if state.nodes[from].stopped {
        return None;
    }
    let follower = &state.nodes[to];
    if follower.stopped && !is_brought(follower, to, view) {
        return None;
    }
    if !follower.up || follower.follows > view && !model.is(Mutation::OldStreamTaken) {
        return None;
    }
    if leads(follower, to) && follower.knows?.view > view {
        // Under the mutation as well: a primary follows nobody, it only answers what it should have refused.
        let length = log.len();
        state.nodes[from].ack = Some(Ack { view, incarnation: follower.incarnation, length });
        return Some(());
    }
    let told = if model.is(Mutation::UnstableTold) { follower.log.len() } else { follower.stable };
    let named = state.nodes[from].knows?.in_sync & (1 << to) != 0;
    if named && !log.begins_with(&follower.log.first(told)) {
        return refused(model, state, from);
    }
    let stable = stable(&state.nodes[from], from).min(log.len());
    let follower = &mut state.nodes[to];
    (follower.log, follower.follows, follower.older, follower.stopped) = (log, view, false, false);
    if model.size.olds > 0 {
        follower.stable = follower.stable.min(log.len()).max(stable);
    }
    let ack = Ack { view, incarnation: follower.incarnation, length: log.len() };
    state.nodes[from].ack = Some(ack);
    Some(())
}

/// What a primary knows to be on all that count.
fn stable(own: &Node, number: usize) -> u8 {
    let counts = own.joining || own.knows.is_some_and(|knows| knows.in_sync & (1 << (1 - number)) != 0);
    if counts { own.other_has } else { own.log.len() }
}

/// An in-sync member has told the primary of a stable entry that it lacks: the process ends, and says why on its disk.
fn refused(model: &InSync, state: &mut State, node: usize) -> Option<()> {
    if model.is(Mutation::LackingPrimaryGoesOn) {
        state.nodes[node].refused = true;
        return Some(());
    }
    state.ended_whole |= !state.nodes[node].older;
    end(model, state, node);
    state.nodes[node].doubtful = true;
    Some(())
}

fn take_ack(model: &InSync, own: &mut Node, number: usize, ack: Ack) {
    let Some(knows) = own.knows else { return };
    let present = knows.incarnations[1 - number] == ack.incarnation || model.is(Mutation::IncarnationNotChecked);
    if ack.view == knows.view && present {
        own.other_has = own.other_has.max(ack.length);
        own.opened |= model.size.olds > 0;
    }
}

/// The primary acknowledges all that it has written.
fn acknowledge(model: &InSync, state: &mut State, node: usize) -> Option<()> {
    let own = &state.nodes[node];
    let (log, length) = (own.log, own.log.len());
    let named = own.knows?.in_sync & (1 << (1 - node)) != 0 && !model.is(Mutation::AcknowledgedBeforeStrike);
    let joining = own.joining && !model.is(Mutation::JoinerNotCounted);
    if own.acknowledged >= length || (named || joining) && own.other_has < length {
        return None;
    }
    serve(model, state, node)?;
    state.nodes[node].acknowledged = length;
    if model.size.olds > 0 {
        state.nodes[node].stable = length;
    }
    promise(state, log);
    Some(())
}

/// The primary answers a read: it shows what it has acknowledged, and what it has inherited once that is on all
/// in-sync replicas.
fn show(model: &InSync, state: &mut State, node: usize) -> Option<()> {
    let own = &state.nodes[node];
    let shown = own.log.first(own.acknowledged.max(own.inherited));
    let named = own.knows?.in_sync & (1 << (1 - node)) != 0;
    let opened = own.other_has >= own.inherited && (own.opened || model.size.olds == 0);
    if named && !opened && !model.is(Mutation::InheritedShownEarly) {
        return None;
    }
    serve(model, state, node)?;
    promise(state, shown);
    Some(())
}

/// From here on nothing may take this away.
fn promise(state: &mut State, log: Log) {
    state.showed_less |= !log.begins_with(&state.promised);
    if !state.promised.begins_with(&log) {
        state.promised = log;
    }
}

/// The present primary has the other replica struck: at once, for nothing that a follower does rests on a lease.
fn strike(state: &mut State) -> Option<()> {
    let primary = usize::from(state.entry.primary);
    let other = 1 - primary;
    let asks = leads(&state.nodes[primary], primary) && state.nodes[primary].knows == Some(state.entry);
    let unheard = state.nodes[primary].older && !state.nodes[primary].refused;
    if !asks || unheard || state.entry.in_sync & (1 << other) == 0 {
        return None;
    }
    state.entry.in_sync &= !(1 << other);
    state.entry.version += 1;
    Some(())
}

/// A follower that stops takes nothing any more: its primary has it struck, as any that is silent. A primary tells the
/// other.
fn stop(model: &InSync, state: &mut State, node: usize) -> Option<()> {
    let own = &mut state.nodes[node];
    if own.stopped || own.doubtful || own.older {
        return None;
    }
    state.stops_left = state.stops_left.checked_sub(1)?;
    own.stopped = true;
    if model.is(Mutation::StoppedForgets) {
        own.log = Log::EMPTY;
    }
    if leads(own, node) {
        let view = own.knows?.view;
        state.nodes[1 - node].told = Some(view);
    }
    Some(())
}

/// The follower asks that the primary of whom it has heard be removed.
fn remove(model: &InSync, state: &mut State, by: usize) -> Option<()> {
    let (own, other) = (&state.nodes[by], 1 - by);
    let view = own.told?;
    let knows = own.knows.filter(|knows| *knows == state.entry)?;
    let both = knows.in_sync == (1 << NODES) - 1 && usize::from(knows.primary) == other;
    let registered = own.incarnation == knows.incarnations[by];
    let same = knows.view == view || model.is(Mutation::StaleStop);
    if !both || !registered || !same || own.stopped || own.older {
        return None;
    }
    state.entry.in_sync &= !(1 << other);
    state.entry.led = false;
    state.entry.version += 1;
    Some(())
}

/// Whether a process that has stopped takes everything from the primary of this view: nobody counts on what it has.
fn is_brought(own: &Node, number: usize, view: u8) -> bool {
    own.knows.is_some_and(|knows| knows.view == view && knows.in_sync & (1 << number) == 0)
}

/// A registered in-sync process becomes primary, when the old one's lease has ended or its process is gone.
fn promote(model: &InSync, state: &mut State, node: usize, strike_old: bool) -> Option<()> {
    let entry = state.entry;
    let old = usize::from(entry.primary);
    let in_sync = entry.in_sync & (1 << node) != 0
        || model.is(Mutation::OutOfSyncPromoted)
        || leads_in_doubt(model, &entry, node);
    let registered = state.nodes[node].incarnation == entry.incarnations[node];
    let over = match node == old {
        true => entry.incarnations[old] != entry.leader_incarnation,
        // Who has stopped, and was removed for that, serves no more whatever lease it has.
        false => state.granted[old] == 0 || !entry.led,
    };
    let unheard = state.nodes[node].older && strike_old && entry.in_sync & (1 << old) != 0;
    if !in_sync || !registered || !over || unheard || node == old && strike_old {
        return None;
    }
    let struck = if strike_old { 1 << old } else { 0 };
    state.entry.in_sync = entry.in_sync & !struck | 1 << node;
    state.entry.doubtful = [None; NODES];
    state.entry.primary = node as u8;
    state.entry.leader_incarnation = state.nodes[node].incarnation;
    state.entry.led = true;
    state.entry.view += 1;
    state.entry.version += 1;
    Some(())
}

/// Whether a member whose log ends in damage may lead: all in-sync members have registered so, and no other log
/// reaches further.
fn leads_in_doubt(model: &InSync, entry: &Entry, node: usize) -> bool {
    let Some(reach) = entry.doubtful[node] else { return false };
    let all = entry.in_sync == 0 || model.is(Mutation::DoubtfulLeadsEarly);
    let longest = entry.doubtful.iter().flatten().all(|other| *other <= reach);
    all && (longest || model.is(Mutation::ShorterLogLeads))
}

/// A new process makes itself known. It keeps its place in the in-sync set only with all that it has acknowledged.
fn register(model: &InSync, state: &mut State, node: usize) -> Option<()> {
    let incarnation = state.nodes[node].incarnation;
    if state.entry.incarnations[node] == incarnation {
        return None;
    }
    state.entry.incarnations[node] = incarnation;
    state.entry.version += 1;
    if model.size.crash == Crash::LosesLog && !model.is(Mutation::RestartedKeepsPlace) {
        state.entry.in_sync &= !(1 << node);
    }
    let own = &mut state.nodes[node];
    let place = 1 << node;
    let was_doubtful = state.entry.doubtful[node].is_some();
    let told = std::mem::take(&mut own.doubtful) && state.entry.in_sync & place != 0;
    if (told || was_doubtful) && !model.is(Mutation::DoubtfulKeepsPlace) {
        state.entry.in_sync &= !place;
        state.entry.doubtful[node] = Some((own.follows, own.log.len()));
    }
    Some(())
}

/// The frame that is lost holds the last write, or the opening of the view that the log follows. Frames that had been
/// synced are lost only while another in-sync member has them: what is damaged everywhere is lost whatever the rules.
fn damage(state: &mut State, node: usize, drops: bool) -> Option<()> {
    let lonely = state.entry.in_sync != (1 << NODES) - 1;
    if state.nodes[node].doubtful || drops && lonely {
        return None;
    }
    state.doubts_left = state.doubts_left.checked_sub(1)?;
    state.drops_left = state.drops_left.checked_sub(u8::from(drops))?;
    let own = &mut state.nodes[node];
    own.doubtful = true;
    if drops {
        let length = own.log.len();
        let last = length.checked_sub(1).map_or(0, |at| own.log.0[usize::from(at)]);
        if own.follows > last {
            own.follows = last;
        } else {
            own.log = own.log.first(length.checked_sub(1)?);
        }
        own.stable = own.stable.min(own.log.len());
    }
    Some(())
}

/// Only below what the other knows to be stable, while it is up and in-sync: else nobody can tell.
fn go_back(state: &mut State, node: usize, lacks: u8) -> Option<()> {
    let both = state.entry.in_sync == (1 << NODES) - 1;
    let (own, other) = (&state.nodes[node], &state.nodes[1 - node]);
    let log = own.log.first(own.log.len().checked_sub(lacks)?);
    let known = other.up && !other.older && !other.doubtful && other.stable > log.len();
    if own.doubtful || own.older || !both || !known {
        return None;
    }
    state.olds_left = state.olds_left.checked_sub(1)?;
    let own = &mut state.nodes[node];
    own.follows = log.len().checked_sub(1).map_or(1, |at| log.0[usize::from(at)]);
    (own.log, own.stable, own.older) = (log, own.stable.min(log.len()), true);
    Some(())
}

fn learn(model: &InSync, own: &mut Node, number: usize, entry: Entry) -> Option<()> {
    let known = own.knows;
    if known == Some(entry) {
        return None;
    }
    own.knows = Some(entry);
    let other = 1 - number;
    let other_is_new = known.is_none_or(|k| k.incarnations[other] != entry.incarnations[other]);
    if other_is_new && !model.is(Mutation::IncarnationNotChecked) {
        own.other_has = 0;
    }
    // A request that was made under an older entry is void; whoever is in-sync now counts by the entry.
    own.joining = false;
    if known.is_none_or(|k| k.view != entry.view) {
        (own.worked, own.acknowledged, own.other_has, own.inherited) = (false, 0, 0, 0);
        (own.opened, own.refused) = (false, false);
        (own.ack, own.late_ack) = (None, None);
        if leads(own, number) {
            (own.follows, own.inherited) = (entry.view, own.log.len());
        }
    }
    Some(())
}

fn crash(model: &InSync, state: &mut State, node: usize) -> Option<()> {
    state.crashes_left = state.crashes_left.checked_sub(1)?;
    let other = &state.nodes[1 - node];
    if other.older && !other.doubtful && state.entry.in_sync & (1 << (1 - node)) != 0 {
        return None;
    }
    end(model, state, node);
    Some(())
}

fn end(model: &InSync, state: &mut State, node: usize) {
    let own = &mut state.nodes[node];
    let kept = model.size.crash == Crash::KeepsLog;
    *own = Node {
        up: false,
        incarnation: own.incarnation,
        log: if kept { own.log } else { Log::EMPTY },
        follows: if kept { own.follows } else { 0 },
        doubtful: own.doubtful && !model.is(Mutation::DoubtForgotten),
        stable: if kept { own.stable } else { 0 },
        older: own.older,
        opened: false,
        refused: false,
        // What is on its disk is right.
        stopped: false,
        told: own.told,
        knows: None,
        lease: 0,
        renewal: Renewal::None,
        worked: false,
        acknowledged: 0,
        inherited: 0,
        other_has: 0,
        joining: false,
        ack: None,
        late_ack: None,
    };
    let other = &mut state.nodes[1 - node];
    if let Some(ack) = other.ack.take() {
        other.late_ack = Some(ack);
    }
}
