//! Who votes. The leader looks ten times a second whether Raft's members are those of the group, and changes one thing at a time.
//!
//! Every node of the group is a member; those of role *manage* may vote. Wanted are one, three or five voters, the most that there are manage nodes for. Only nodes that answer, and have nearly
//! the whole log, become voters; a voter that has not answered for a second is replaced when another such node is there, and stays otherwise: fewer voters would not make the group any
//! safer. No change is made whose new voters have no majority that answers.

use crate::group::Core;
use crate::message::Body;
use openraft::{ChangeMembers, EmptyNode, ServerState};
use rauk_manage::group::{Group, RoleKind};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const INTERVAL: Duration = Duration::from_millis(100);
/// A node that has not answered for so long is not counted on.
const SILENT: Duration = Duration::from_secs(1);
/// A node that is further behind does not become a voter.
const CAUGHT_UP: u64 = 200;
/// For one change to be committed; it may go on being tried after that.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the leader sees.
pub struct Situation {
    pub leader: u64,
    /// Nodes of the group, and whether they may vote.
    pub nodes: BTreeMap<u64, bool>,
    /// Two sets while a change is under way.
    pub voters: Vec<BTreeSet<u64>>,
    /// All members, voters included.
    pub members: BTreeSet<u64>,
    /// Nodes that answer, the leader included.
    pub answering: BTreeSet<u64>,
    /// Nodes that have nearly the whole log.
    pub caught_up: BTreeSet<u64>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Change {
    Add(u64),
    Remove(BTreeSet<u64>),
    Voters(BTreeSet<u64>),
}

/// What to change next, if anything.
pub fn next_change(situation: &Situation) -> Option<Change> {
    let current: BTreeSet<u64> = situation.voters.last().cloned().unwrap_or_default();
    let wanted = wanted_voters(situation, &current);
    let safe = has_majority(&wanted, &situation.answering);
    // A change that is half done comes first: until it is ended there is no other.
    if situation.voters.len() > 1 {
        return safe.then_some(Change::Voters(wanted));
    }
    if let Some(node) = situation.nodes.keys().find(|node| !situation.members.contains(node)) {
        return Some(Change::Add(*node));
    }
    if wanted != current && safe {
        return Some(Change::Voters(wanted));
    }
    let gone = |node: &u64| !situation.nodes.contains_key(node) && !current.contains(node);
    let gone: BTreeSet<u64> = situation.members.iter().copied().filter(gone).collect();
    (!gone.is_empty()).then_some(Change::Remove(gone))
}

fn wanted_voters(situation: &Situation, current: &BTreeSet<u64>) -> BTreeSet<u64> {
    let may_vote: BTreeSet<u64> = situation.nodes.iter().filter(|(_, may)| **may).map(|(node, _)| *node).collect();
    let size = match may_vote.len() {
        0 => return current.clone(),
        1 | 2 => 1,
        3 | 4 => 3,
        _ => 5,
    };
    let answers = |node: &u64| situation.answering.contains(node);
    let ready = |node: &u64| answers(node) && situation.caught_up.contains(node);
    // The leader, voters that answer, nodes that could become voters, and silent voters last.
    let rank = |node: &u64| match (*node == situation.leader, current.contains(node), answers(node)) {
        (true, ..) => 0,
        (_, true, true) => 1,
        (_, false, _) => 2,
        (_, true, false) => 3,
    };
    let mut candidates: Vec<u64> = may_vote.iter().copied().filter(|n| current.contains(n) || ready(n)).collect();
    candidates.sort_by_key(|node| (rank(node), *node));
    // Not enough for the size: the next smaller odd number, but a voter is not given up only because others are away.
    let possible = candidates.len().min(size);
    let odd = if possible % 2 == 1 { possible } else { possible.saturating_sub(1) };
    candidates.truncate(odd);
    candidates.into_iter().collect()
}

fn has_majority(voters: &BTreeSet<u64>, answering: &BTreeSet<u64>) -> bool {
    voters.intersection(answering).count() > voters.len() / 2
}

/// Runs for as long as the process takes part.
pub async fn manage(core: Arc<Core>) {
    let mut leading_since: Option<(u64, Instant)> = None;
    loop {
        let changed = core.shared.changed.notified();
        let _ = tokio::time::timeout(INTERVAL, changed).await;
        let Some(term) = core.leading() else {
            leading_since = None;
            continue;
        };
        let since = match leading_since {
            Some((of, since)) if of == term => since,
            _ => {
                let now = Instant::now();
                leading_since = Some((term, now));
                now
            }
        };
        let Some(situation) = situation(&core, &core.shared.group(), since) else { continue };
        if let Some(change) = forget_forgetful(&core, &situation) {
            make(&core, change).await;
            continue;
        }
        if let Some(change) = next_change(&situation) {
            make(&core, change).await;
        }
    }
}

/// A node that has lost entries (its directory was restored from an old copy) is brought everything again: taken out here, it is taken in again next time. A voter that has lost entries
/// may have forgotten a vote too, and must not vote again: it is told, and ends.
fn forget_forgetful(core: &Core, situation: &Situation) -> Option<Change> {
    let forgetful = core.network.take_forgetful();
    let is_voter = |node: &u64| situation.voters.iter().any(|set| set.contains(node));
    for (node, acknowledged) in &forgetful {
        let (node, acknowledged) = (*node, *acknowledged);
        tracing::error!(
            "node {node} no longer has entries of the control plane's log that it had: its data directory is an older copy"
        );
        if is_voter(&node) {
            let network = core.network.clone();
            // Where it does not arrive it is said again: the next message to that node finds the same.
            tokio::spawn(async move { network.call(node, Body::Lost { acknowledged }, PATIENCE).await.map(drop) });
        }
    }
    let learners: BTreeSet<u64> =
        forgetful.into_keys().filter(|node| situation.members.contains(node) && !is_voter(node)).collect();
    (!learners.is_empty()).then_some(Change::Remove(learners))
}

fn situation(core: &Core, group: &Group, leading_since: Instant) -> Option<Situation> {
    let metrics = core.metrics()?;
    let leader = metrics.id;
    let replication = metrics.replication.as_ref().filter(|_| metrics.state == ServerState::Leader)?;
    let nodes: BTreeMap<u64, bool> =
        group.nodes.iter().map(|(node, state)| (u64::from(node.0), state.roles.contains(&RoleKind::Manage))).collect();
    // While the cluster is being made, nothing is known yet.
    if group.config.is_none() || nodes.is_empty() {
        return None;
    }
    let membership = metrics.membership_config.membership();
    let members: BTreeSet<u64> = membership.nodes().map(|(node, _)| *node).collect();
    let now = Instant::now();
    let recently = now.checked_sub(SILENT).unwrap_or(now);
    // A new leader gives everybody the time to answer before it takes them for silent.
    let patient = now.duration_since(leading_since) < SILENT;
    let voters = membership.get_joint_config().clone();
    let answers = |node: &u64| {
        *node == leader
            || core.network.heard_since(*node, recently)
            || (patient && voters.iter().any(|set| set.contains(node)))
    };
    let answering = members.iter().copied().filter(answers).collect();
    let last = metrics.last_log_index.unwrap_or(0);
    let near = |node: &u64| {
        let matched = replication.get(node).copied().flatten();
        *node == leader || matched.is_some_and(|id| id.index + CAUGHT_UP >= last)
    };
    let caught_up = members.iter().copied().filter(near).collect();
    Some(Situation { leader, nodes, voters, members, answering, caught_up })
}

async fn make(core: &Core, change: Change) {
    let Some(raft) = core.raft() else { return };
    let (members, what) = match &change {
        Change::Add(node) => (ChangeMembers::AddNodes([(*node, EmptyNode {})].into()), "takes in"),
        Change::Remove(nodes) => (ChangeMembers::RemoveNodes(nodes.clone()), "lets go"),
        Change::Voters(voters) => (ChangeMembers::ReplaceAllVoters(voters.clone()), "is voted for by"),
    };
    match tokio::time::timeout(PATIENCE, raft.change_membership(members, true)).await {
        Ok(Ok(_)) => tracing::info!("the manage group {what} {change:?}"),
        Ok(Err(error)) => tracing::debug!("the manage group's members are not changed ({change:?}): {error}"),
        Err(_) => tracing::warn!("the manage group's members: {change:?} takes long"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    fn set(nodes: &[u64]) -> BTreeSet<u64> {
        nodes.iter().copied().collect()
    }

    fn situation(manage: &[u64], voters: &[u64], answering: &[u64]) -> Situation {
        let nodes: BTreeMap<u64, bool> = manage.iter().map(|node| (*node, true)).collect();
        Situation {
            leader: answering[0],
            members: manage.iter().chain(voters).copied().collect(),
            voters: vec![set(voters)],
            answering: set(answering),
            caught_up: set(answering),
            nodes,
        }
    }

    #[test]
    fn one_three_five() {
        let next = |manage: &[u64], voters: &[u64], up: &[u64]| next_change(&situation(manage, voters, up));
        let to = |voters: &[u64]| Some(Change::Voters(set(voters)));
        assert_eq!(next(&[1], &[1], &[1]), None);
        assert_eq!(next(&[1, 2], &[1], &[1, 2]), None);
        assert_eq!(next(&[1, 2, 3], &[1], &[1, 2, 3]), to(&[1, 2, 3]));
        assert_eq!(next(&[1, 2, 3], &[1], &[1, 2]), None, "one is not there");
        assert_eq!(next(&[1, 2, 3, 4, 5], &[1, 2, 3], &[1, 2, 3, 4, 5]), to(&[1, 2, 3, 4, 5]));
        assert_eq!(next(&[1, 2, 3, 4, 5, 6], &[1, 2, 3, 4, 5], &[1, 2, 3, 4, 5, 6]), None);
        // A silent voter stays until somebody can take its place.
        assert_eq!(next(&[1, 2, 3], &[1, 2, 3], &[1, 2]), None);
        assert_eq!(next(&[1, 2, 3, 4], &[1, 2, 3], &[2, 1, 4]), to(&[1, 2, 4]));
        assert_eq!(next(&[1, 2, 3, 4], &[1, 2, 3], &[4, 2, 3]), to(&[2, 3, 4]), "the leader stays");
        // A node has been taken out of the group, or has no such role any more.
        assert_eq!(next(&[1, 2], &[1, 2, 3], &[2, 1, 3]), to(&[2]));
        assert_eq!(next(&[1, 2, 4], &[1, 2, 3], &[1, 2, 3, 4]), to(&[1, 2, 4]));
    }

    #[test]
    fn members_follow_the_group() {
        let mut now = situation(&[1, 2], &[1], &[1, 2]);
        now.nodes.insert(9, false);
        assert_eq!(next_change(&now), Some(Change::Add(9)));
        now.members.insert(9);
        assert_eq!(next_change(&now), None);
        now.nodes.remove(&9);
        assert_eq!(next_change(&now), Some(Change::Remove(set(&[9]))));
        // A change that a leader left half done is ended first.
        now.voters = vec![set(&[1]), set(&[1, 2, 9])];
        assert_eq!(next_change(&now), Some(Change::Voters(set(&[1]))));
        // Too far behind to vote.
        let mut behind = situation(&[1, 2, 3], &[1], &[1, 2, 3]);
        behind.caught_up.remove(&3);
        assert_eq!(next_change(&behind), None);
    }

    /// Whatever happens, a change keeps an odd number of voters, a majority that answers, and comes to rest.
    #[test]
    fn changes_are_safe_and_end() {
        for seed in 0..3_000 {
            let mut random = SmallRng::seed_from_u64(seed);
            let count = random.random_range(1..9);
            let nodes: BTreeMap<u64, bool> = (1..=count).map(|node| (node, random.random_bool(0.8))).collect();
            let mut voters: BTreeSet<u64> = (1..=count + 1).filter(|_| random.random_bool(0.4)).take(5).collect();
            voters.insert(1);
            let mut answering: BTreeSet<u64> = (1..=count).filter(|_| random.random_bool(0.7)).collect();
            answering.insert(1);
            let members: BTreeSet<u64> = nodes.keys().copied().chain(voters.iter().copied()).collect();
            let caught_up = answering.clone();
            let mut now = Situation { leader: 1, nodes, voters: vec![voters], members, answering, caught_up };
            for step in 0.. {
                assert!(step < 4, "seed {seed}");
                match next_change(&now) {
                    None => break,
                    Some(Change::Voters(voters)) => {
                        assert!(voters.len() % 2 == 1 && voters.len() <= 5, "seed {seed}: {voters:?}");
                        assert!(has_majority(&voters, &now.answering), "seed {seed}: {voters:?}");
                        assert!(voters.iter().all(|node| now.nodes.get(node) == Some(&true)));
                        now.voters = vec![voters];
                    }
                    Some(Change::Remove(gone)) => now.members.retain(|node| !gone.contains(node)),
                    Some(Change::Add(node)) => assert!(now.members.insert(node)),
                }
            }
        }
    }
}
