//! Whether a majority follows this leader, asked beside Raft's own messages.
//!
//! Leases of data nodes are granted only after a majority has followed the leader since they were asked for
//! ([`Consensus::confirm`](rauk_manage::consensus::Consensus::confirm)). openraft can answer that, but its one task
//! writes entries and votes to disk and handles no message meanwhile. A sync that takes 300 ms, as disks have them now
//! and then, would end every lease of the cluster at one moment. So the leader asks the other voters by [`Body::Follow`],
//! and each answers from the vote that its log store has, without openraft.
//!
//! # Why that is enough
//! A voter says that it follows while the newest vote on its disk is that of the asking leader. openraft stores a vote
//! before it gives it. So whoever is elected by that voter is elected after the answer, and the answer comes after the
//! question. Any majority that elects another leader has a voter in common with the one that has answered; the leader's own
//! vote counts like the others', and is looked at when the answers are there. Voters are those of the newest membership
//! that openraft has told of: an older one than it uses is not missed, since a set of voters is in force beside the one
//! before it until both have agreed, and openraft tells of that before it goes on to the next.
//!
//! A grant names everything that was committed before it. openraft stores the position of what is committed before
//! it applies that, and in the same turn in which it tells followers; all of it runs on one thread. So what is
//! committed by the end of the round is waited for until it is applied here.
//!
//! # What ends it
//! Who is asked has heard of its leader, and elects nobody. A leader whose disk does not come back must not stay for that: after
//! [`STALLED`] it asks nobody any more, and the others elect one who can write. So must one that hears no answers
//! ([`Network::is_mute`](crate::network::Network::is_mute)).

use crate::group::Core;
use crate::message::{Body, Reply};
use crate::types::Vote;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

/// A leader whose disk has taken so long for one write gives way. Disks that are busy, shared or in a cloud take a
/// second at times; beyond that nobody knows whether they come back, and nothing can be committed meanwhile.
const STALLED: Duration = Duration::from_secs(2);

/// Whether a majority of each set says yes, this process among them. All others are asked at once, and waited for no
/// longer than `limit`.
pub async fn majority<A>(core: &Core, voters: &[BTreeSet<u64>], limit: Duration, ask: impl Fn(u64) -> A) -> bool
where
    A: Future<Output = bool> + Send + 'static,
{
    let end = Instant::now() + limit;
    let me = core.me();
    let mut agreed = BTreeSet::from([me]);
    let (answers, mut answered) = mpsc::unbounded_channel();
    for node in voters.iter().flatten().copied().filter(|node| *node != me).collect::<BTreeSet<u64>>() {
        let (asked, answers) = (ask(node), answers.clone());
        tokio::spawn(async move {
            if asked.await {
                // It may be decided already.
                let _ = answers.send(node);
            }
        });
    }
    drop(answers);
    let is_majority =
        |agreed: &BTreeSet<u64>| voters.iter().all(|set| set.intersection(agreed).count() > set.len() / 2);
    while !is_majority(&agreed) {
        match timeout_at(end, answered.recv()).await {
            Ok(Some(node)) => agreed.insert(node),
            Ok(None) | Err(_) => return false,
        };
    }
    true
}

/// The index of the last command, with everything applied that was committed, if a majority has followed this
/// leader after the call.
pub async fn confirm(core: &Arc<Core>) -> Option<u64> {
    let own = own_vote(core)?;
    if core.log.writing_since().is_some_and(|since| since.elapsed() > STALLED) {
        return None;
    }
    let voters = core.metrics()?.membership_config.membership().get_joint_config().clone();
    let limit = core.timing().lease;
    let ask = |node| {
        let network = core.network.clone();
        async move {
            !network.is_mute(node, limit).await
                && matches!(
                    network.call(node, Body::Follow { vote: own }, limit).await,
                    Ok(Reply::Follow { follows: true })
                )
        }
    };
    if !majority(core, &voters, limit, ask).await {
        return None;
    }
    if own_vote(core) != Some(own) {
        return None;
    }
    core.shared.applied(core.log.committed(), limit).await.then(|| core.shared.group().index)
}

/// This process's vote, if it is for itself, and it leads by it.
fn own_vote(core: &Core) -> Option<Vote> {
    let term = core.leading()?;
    let mine = |vote: &Vote| vote.committed && vote.leader_id.node_id == core.me() && vote.leader_id.term == term;
    core.log.vote().filter(mine)
}

/// Whether this process follows the leader whose vote that is; if so, it has heard of it.
pub fn follows(core: &Core, vote: Vote) -> bool {
    let follows = core.log.vote() == Some(vote);
    if follows {
        core.hear_leader();
    }
    follows
}
