//! What may happen in a state of the model of reads on followers, and what it does.

use super::state::{Entry, Log, NODES, Node, Reading, State};
use super::{FollowerReads, Mutation};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    // Leases, and who hears of the group's commands.
    Grant {
        node: usize,
    },
    EndLease {
        node: usize,
    },
    Learn {
        node: usize,
    },
    /// Its stream has a command that its reads do not know of.
    Name {
        node: usize,
    },
    // The manage group's commands.
    Strike {
        node: usize,
    },
    Relieve,
    Expire {
        node: usize,
    },
    Lead {
        node: usize,
    },
    CommitJoin,
    /// The cluster goes back to a cut, in which nothing was written yet.
    GoBack,
    /// A new process of a node that this has ended.
    Register {
        node: usize,
    },
    // A node that believes to be primary.
    Write {
        node: usize,
    },
    Ship {
        from: usize,
        to: usize,
        length: u8,
    },
    TellStable {
        from: usize,
        to: usize,
    },
    Advance {
        node: usize,
    },
    Serve {
        node: usize,
    },
    RequestJoin {
        node: usize,
        joiner: usize,
    },
    BeginCopy {
        from: usize,
        to: usize,
    },
    EndCopy {
        from: usize,
        to: usize,
    },
    // A read on a follower.
    Check {
        node: usize,
    },
    Look {
        node: usize,
    },
    Answer {
        node: usize,
    },
    Crash {
        node: usize,
    },
}

pub fn candidates(model: &FollowerReads, state: &State, steps: &mut Vec<Step>) {
    for node in 0..model.size.nodes {
        steps.push(Step::EndLease { node });
        if state.index() < model.size.commands {
            steps.extend([Step::Strike { node }, Step::Expire { node }, Step::Lead { node }]);
            if model.size.goes_back {
                steps.extend([Step::GoBack, Step::Register { node }]);
            }
        }
        if !state.nodes[node].up {
            continue;
        }
        steps.extend([Step::Grant { node }, Step::Learn { node }, Step::Look { node }, Step::Answer { node }]);
        if model.is(Mutation::NamedBeforeStopped) {
            steps.push(Step::Name { node });
        }
        if model.is(Mutation::CheckedBeforeLook) {
            steps.push(Step::Check { node });
        }
        if state.crashes_left > 0 {
            steps.push(Step::Crash { node });
        }
        if !leads(state, node) {
            continue;
        }
        steps.extend([Step::Write { node }, Step::Advance { node }, Step::Serve { node }]);
        for to in (0..model.size.nodes).filter(|to| *to != node && state.nodes[*to].up) {
            steps.extend((0..=state.nodes[node].log.len()).map(|length| Step::Ship { from: node, to, length }));
            steps.extend([Step::TellStable { from: node, to }, Step::RequestJoin { node, joiner: to }]);
            steps.extend([Step::BeginCopy { from: node, to }, Step::EndCopy { from: node, to }]);
        }
    }
    if state.index() < model.size.commands {
        steps.extend([Step::Relieve, Step::CommitJoin]);
    }
}

/// Does this process believe that it leads?
pub fn leads(state: &State, node: usize) -> bool {
    let (own, known) = (&state.nodes[node], state.known(node));
    own.up && known.primary == Some(node as u8) && own.follows == known.view
}

/// Whether the process holds a lease that counts: with everything known that was committed before the grant.
pub fn holds_lease(node: &Node) -> bool {
    node.grants & bits_below(node.knows + 1) != 0
}

/// Grants that were given before command `number` was committed.
fn bits_below(number: u8) -> u8 {
    (1 << (number - 1)) - 1
}

/// The state after `step`, or `None` where it is not possible or changes nothing.
pub fn apply(model: &FollowerReads, state: &State, step: &Step) -> Option<State> {
    let mut next = state.clone();
    match *step {
        Step::Grant { node } => {
            if state.newest().is_over(node) {
                return None;
            }
            next.nodes[node].grants |= 1 << (state.index() - 1);
        }
        // What was granted first ends first.
        Step::EndLease { node } => next.nodes[node].grants &= state.nodes[node].grants.checked_sub(1)?,
        Step::Learn { node } => learn(&mut next, node)?,
        Step::Name { node } if state.nodes[node].names < state.index() => next.nodes[node].names += 1,
        Step::Strike { .. } | Step::Relieve | Step::Lead { .. } | Step::CommitJoin => {
            say(&mut next, command(model, state, step)?);
        }
        Step::Expire { node } => {
            say(&mut next, command(model, state, step)?);
            if !model.is(Mutation::OverBeforeLeaseEnds) {
                next.nodes[node].grants = 0;
            }
        }
        Step::GoBack => {
            say(&mut next, command(model, state, step)?);
            (next.undone, next.promised) = (true, Log::EMPTY);
        }
        Step::Register { node } => {
            say(&mut next, command(model, state, step)?);
            next.nodes[node] = Node { follows: 0, ..Node::new(next.index()) };
        }
        Step::Write { node } if state.nodes[node].log.len() < model.size.writes => {
            let view = state.known(node).view;
            next.nodes[node].log.push(view);
        }
        Step::Ship { from, to, length } => ship(&mut next, from, to, length)?,
        Step::TellStable { from, to } => {
            let stable = state.nodes[from].stable;
            let to = &mut next.nodes[to];
            if to.follows != state.known(from).view || !to.whole || to.stable >= stable {
                return None;
            }
            to.stable = stable.min(to.log.len());
        }
        Step::Advance { node } => advance(model, &mut next, node)?,
        Step::Serve { node } => serve(model, &mut next, node)?,
        Step::RequestJoin { node, joiner } => request_join(&mut next, node, joiner)?,
        Step::BeginCopy { from, to } => {
            let (primary, view) = (&state.nodes[from], state.known(from).view);
            let wanted = primary.opened && primary.joining & (1 << to) == 0 && !state.known(from).has(to);
            let follower = &mut next.nodes[to];
            if !wanted || follower.follows > view || !follower.whole || !listens(state, from, to) {
                return None;
            }
            next.copies_left = state.copies_left.checked_sub(1)?;
            (follower.follows, follower.whole) = (view, false);
            (follower.log, follower.stable) = (Log::EMPTY, 0);
        }
        Step::EndCopy { from, to } => {
            let primary = &state.nodes[from];
            let follower = &mut next.nodes[to];
            if follower.whole || follower.follows != state.known(from).view {
                return None;
            }
            (follower.whole, follower.log, follower.stable) = (true, primary.log, primary.stable);
        }
        Step::Check { node } if may_answer(model, state, node, state.nodes[node].knows) => {
            next.nodes[node].checked = true;
        }
        Step::Look { node } => look(model, &mut next, node)?,
        Step::Answer { node } => answer(model, &mut next, node)?,
        Step::Crash { node } => {
            next.crashes_left -= 1;
            next.nodes[node].up = false;
        }
        _ => return None,
    }
    (0..NODES).for_each(|node| prune(model, &mut next, node));
    (next != *state).then_some(next)
}

fn say(state: &mut State, entry: Entry) {
    state.history.push(entry);
    state.request = None;
}

/// What can have no effect any more is gone, so that equal situations are one state.
fn prune(model: &FollowerReads, state: &mut State, node: usize) {
    let leads = leads(state, node);
    let void = state.nodes[node].reading.is_some_and(|reading| {
        let useless = !reading.stale && state.promised.begins_with(&reading.shown);
        useless || !model.is(Mutation::InSyncAtAnswerOnly) && !was_in_sync(model, state, node, reading.knew)
    });
    let (index, over) = (state.index(), state.newest().is_over(node));
    let own = &mut state.nodes[node];
    if void || !own.up {
        own.reading = None;
    }
    own.grants = match (own.up, own.knows == index && !over) {
        (false, _) => 0,
        // It may be granted a lease at any time, which keeps nobody waiting.
        (true, true) => 1 << (index - 1),
        // Of several that count the oldest only keep others waiting, and may end at any time.
        (true, false) => {
            let count = own.grants & bits_below(own.knows + 1);
            own.grants & !count | count.checked_ilog2().map_or(0, |newest| 1 << newest)
        }
    };
    if !leads {
        (own.opened, own.inherited, own.joining, own.waited) = (false, 0, 0, 0);
    }
    if !own.up {
        own.checked = false;
    }
}

/// What the group's state is after the command, if that is not void.
fn command(model: &FollowerReads, state: &State, step: &Step) -> Option<Entry> {
    let mut entry = *state.newest();
    let number = state.index() + 1;
    match *step {
        // By the primary, at the follower's own wish, or since the partition is placed elsewhere.
        Step::Strike { node } => {
            let follows = entry.primary.is_some_and(|primary| usize::from(primary) != node) && entry.has(node);
            if !follows {
                return None;
            }
            entry.in_sync &= !(1 << node);
            if !entry.is_over(node) {
                entry.struck[node] = number;
            }
        }
        Step::Relieve => entry.primary = entry.primary.map(|_| None)?,
        Step::Expire { node } => {
            if entry.is_over(node) {
                return None;
            }
            entry.over |= 1 << node;
            entry.struck[node] = 0;
            if entry.primary == Some(node as u8) {
                entry.primary = None;
            }
            // Somebody goes on without it, if anybody is up.
            if entry.in_sync & !entry.over != 0 {
                entry.in_sync &= !(1 << node);
            }
        }
        Step::Lead { node } => {
            let able = entry.primary.is_none() && entry.has(node) && !entry.is_over(node);
            if !able || !former_has_stopped(state) {
                return None;
            }
            entry.in_sync &= !entry.over;
            entry.primary = Some(node as u8);
            entry.view += 1;
            if model.is(Mutation::StruckForgotten) {
                entry.struck = [0; NODES];
            }
        }
        Step::CommitJoin => {
            let joiner = usize::from(state.request?);
            if entry.is_over(joiner) {
                return None;
            }
            entry.in_sync |= 1 << joiner;
            entry.struck[joiner] = 0;
        }
        // All are over, and none has heard of it.
        Step::GoBack => {
            if state.has_gone_back(state.index()) {
                return None;
            }
            for node in 0..NODES {
                if entry.has(node) && !entry.is_over(node) && !model.is(Mutation::SurvivorsForgotten) {
                    entry.struck[node] = number;
                }
            }
            entry.over = 0b111;
            (entry.in_sync, entry.primary) = (0, None);
        }
        // The one before has ended: a directory is open in one process.
        Step::Register { node } => {
            if !state.has_gone_back(state.index()) || !entry.is_over(node) {
                return None;
            }
            entry.over &= !(1 << node);
            entry.struck[node] = 0;
            if state.undone && entry.primary.is_none() {
                entry.in_sync |= 1 << node;
            }
        }
        _ => return None,
    }
    Some(entry)
}

/// Whoever was relieved serves no more: what was granted before has ended, or it has said that it knows.
fn former_has_stopped(state: &State) -> bool {
    let Some(led) = state.history.iter().rposition(|entry| entry.primary.is_some()) else { return true };
    let Some(former) = state.history[led].primary.map(usize::from) else { return true };
    let relieved = led as u8 + 2;
    let own = &state.nodes[former];
    own.grants & bits_below(relieved) == 0 || own.knows >= relieved
}

fn learn(state: &mut State, node: usize) -> Option<()> {
    if state.nodes[node].knows == state.index() {
        return None;
    }
    let before = *state.known(node);
    state.nodes[node].knows += 1;
    let entry = *state.known(node);
    let own = &mut state.nodes[node];
    own.names = own.names.max(own.knows);
    // A request that was made under an older version is void.
    own.joining = 0;
    if entry.primary == Some(node as u8) && before.view != entry.view && own.follows < entry.view {
        (own.follows, own.inherited, own.opened) = (entry.view, own.log.len(), false);
    }
    Some(())
}

/// The stream brings the follower's log to the primary's, up to `length`; in a new view at least to its opening, behind which nothing of an older one stays.
fn ship(state: &mut State, from: usize, to: usize, length: u8) -> Option<()> {
    let (primary, view, listens) = (state.nodes[from], state.known(from).view, listens(state, from, to));
    let follower = &mut state.nodes[to];
    let least = if follower.follows < view { primary.inherited } else { follower.log.len() + 1 };
    if follower.follows > view || !follower.whole || length < least || !listens {
        return None;
    }
    (follower.follows, follower.log) = (view, primary.log.first(length));
    Some(())
}

/// A process that has followed nobody yet listens to whom the group names.
fn listens(state: &State, from: usize, to: usize) -> bool {
    state.nodes[to].follows > 0 || state.known(to).primary == Some(from as u8)
}

/// What the primary may count on that a replica has, whenever it has said so: a log that follows a view only grows while it does.
fn has(state: &State, view: u8, node: usize) -> Option<u8> {
    let own = &state.nodes[node];
    (own.follows == view && own.whole).then(|| own.log.len())
}

/// More is stable: all have it that count, and whoever was struck answers no reads any more.
fn advance(model: &FollowerReads, state: &mut State, node: usize) -> Option<()> {
    let (own, known) = (state.nodes[node], *state.known(node));
    let counts = |other: &usize| known.has(*other) || own.joining & (1 << other) != 0;
    let mut stable = own.log.len();
    for other in (0..NODES).filter(|other| *other != node).filter(counts) {
        stable = stable.min(has(state, known.view, other)?);
    }
    if stable < own.inherited || own.opened && stable <= own.stable {
        return None;
    }
    if !model.is(Mutation::StableBeforeWait) && !waits_are_over(model, state, node) {
        return None;
    }
    if state.undone && state.has_gone_back(own.knows) {
        // What was shown up to now may be undone.
        state.undone = false;
        state.nodes.iter_mut().for_each(|node| node.reading = None);
    }
    let own = &mut state.nodes[node];
    (own.stable, own.opened) = (own.stable.max(stable), true);
    if model.is(Mutation::WaitsOnceForEach) {
        own.waited |= (0..NODES).filter(|other| known.struck[*other] > 0).fold(0, |bits, other| bits | 1 << other);
    }
    Some(())
}

/// Each member that was struck, as far as this primary knows, has named the strike or a later command in an acknowledgement, or all grants have ended
/// that were given before it. Both stay so, and it does not matter when the primary hears of it.
fn waits_are_over(model: &FollowerReads, state: &State, node: usize) -> bool {
    let known = state.known(node);
    (0..NODES).all(|other| {
        let (strike, struck) = (known.struck[other], &state.nodes[other]);
        let named =
            struck.names >= strike || model.is(Mutation::AnyAcknowledgementCounts) && struck.follows == known.view;
        let waited = model.is(Mutation::WaitsOnceForEach) && state.nodes[node].waited & (1 << other) != 0;
        strike == 0 || named || waited || struck.grants & bits_below(strike) == 0 || model.is(Mutation::NotWaited)
    })
}

/// The primary acknowledges and answers reads: all that is stable is shown.
fn serve(model: &FollowerReads, state: &mut State, node: usize) -> Option<()> {
    let own = &state.nodes[node];
    let waits = model.is(Mutation::StableBeforeWait) && !waits_are_over(model, state, node);
    if !own.opened || !holds_lease(own) || waits {
        return None;
    }
    let shown = own.log.first(own.stable);
    promise(state, shown, !shown.begins_with(&state.promised));
    Some(())
}

fn request_join(state: &mut State, node: usize, joiner: usize) -> Option<()> {
    let (own, known) = (&state.nodes[node], state.known(node));
    let has_all = has(state, known.view, joiner).is_some_and(|has| has >= own.stable);
    if !own.opened || own.knows < state.index() || known.has(joiner) || known.is_over(joiner) || !has_all {
        return None;
    }
    state.nodes[node].joining |= 1 << joiner;
    state.request = Some(joiner as u8);
    Some(())
}

/// A follower looks at the row.
fn look(model: &FollowerReads, state: &mut State, node: usize) -> Option<()> {
    let own = &state.nodes[node];
    if own.reading.is_some() || leads(state, node) || model.is(Mutation::CheckedBeforeLook) && !own.checked {
        return None;
    }
    let whole = own.whole || model.is(Mutation::WholeNotChecked) || model.is(Mutation::WholeAtAnswerOnly);
    let passed = [Mutation::PendingPassedOver, Mutation::PendingAtAnswerOnly, Mutation::UnstableShown];
    if !whole || own.log.len() > own.stable && !passed.iter().any(|mutation| model.is(*mutation)) {
        return None;
    }
    let shown = if model.is(Mutation::UnstableShown) { own.log } else { own.log.first(own.stable) };
    let stale = !shown.begins_with(&state.promised);
    let knew = own.knows;
    let own = &mut state.nodes[node];
    own.reading = Some(Reading { shown, stale, knew });
    own.checked = false;
    Some(())
}

/// Was the node in-sync by all that it has heard of since it knew of `knew` commands?
fn was_in_sync(model: &FollowerReads, state: &State, node: usize, knew: u8) -> bool {
    let knows = state.nodes[node].knows;
    let first = if model.is(Mutation::InSyncAtAnswerOnly) { knows } else { knew };
    let last = if model.is(Mutation::InSyncAtLookOnly) { knew } else { knows };
    model.is(Mutation::InSyncNotChecked) || (first..=last).all(|n| state.history[usize::from(n) - 1].has(node))
}

/// What is looked at between the look at the row and the answer.
fn may_answer(model: &FollowerReads, state: &State, node: usize, knew: u8) -> bool {
    let own = &state.nodes[node];
    let leased = match model.mutation {
        Some(Mutation::LeaseNotChecked) => true,
        Some(Mutation::LeaseWithoutEntries) => own.grants != 0,
        _ => holds_lease(own),
    };
    let whole = own.whole || !model.is(Mutation::WholeAtAnswerOnly);
    let settled = own.log.len() == own.stable || !model.is(Mutation::PendingAtAnswerOnly);
    leased && whole && settled && was_in_sync(model, state, node, knew)
}

/// A follower answers, or else asks its primary.
fn answer(model: &FollowerReads, state: &mut State, node: usize) -> Option<()> {
    let reading = state.nodes[node].reading?;
    if !model.is(Mutation::CheckedBeforeLook) && !may_answer(model, state, node, reading.knew) {
        return None;
    }
    state.nodes[node].reading = None;
    promise(state, reading.shown, reading.stale);
    Some(())
}

/// From here on nobody may be shown less.
fn promise(state: &mut State, shown: Log, stale: bool) {
    if state.undone {
        return;
    }
    if shown.begins_with(&state.promised) {
        state.promised = shown;
    }
    // The other way to go back: two that do not fit together were shown.
    state.went_back |= stale || !state.promised.begins_with(&shown);
}
