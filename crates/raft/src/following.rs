//! Whether a majority follows this leader, asked beside Raft's own messages.
//!
//! The control-plane leader grants a lease only after a majority has followed it since the request for the lease arrived
//! ([`Consensus::confirm`](rauk_manage::consensus::Consensus::confirm)). openraft can answer that question, but its one
//! task handles no message while it writes entries and votes to disk. Disks take 300 ms for a sync now and then; then all
//! leases of the cluster would expire at one moment. So the leader sends [`Body::Follow`] to the other voters, and each
//! answers from the vote that its log store has, without openraft.
//!
//! # Why that is enough
//! A voter answers yes while the newest vote on its disk is that of the asking leader. openraft stores a vote before it
//! sends it. So a candidate that this voter elects is elected after the answer, and the answer comes after the question.
//! A majority that elects another leader shares a voter with the majority that answered yes. The leader is one of the
//! voters: it looks at its own vote when the answers are there.
//!
//! The voters are those of the newest membership that openraft has reported. openraft may have appended a newer one. That
//! is safe: a new set of voters is first in force together with the set before it, and openraft reports that step before
//! it goes on to the next.
//!
//! A grant names everything that was committed before it. openraft stores the position of the last committed entry before
//! it applies that entry, and in the same turn in which it tells followers; all of that runs on one thread. So the leader
//! waits at the end of a round until everything up to that position is applied.
//!
//! # What ends it
//! A voter that is asked has heard of its leader, and does not stand for election. A leader must not stay in office by that
//! when its disk does not come back: after [`STALLED`] it asks no more, and the others elect one that can write. The same
//! holds for a leader that hears no answers ([`Network::is_mute`](crate::network::Network::is_mute)).

use crate::group::Core;
use crate::message::{Body, Reply};
use crate::types::Vote;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};

/// A leader whose disk has taken so long for one write gives way. Busy, shared and rented disks take a second at times. A
/// disk that takes longer may not come back, and nothing can be committed meanwhile.
const STALLED: Duration = Duration::from_secs(2);

/// A leader that has not asked for so long asks, so that the others hear of it.
const QUIET: Duration = Duration::from_millis(50);
/// How often it looks.
const LOOK: Duration = Duration::from_millis(25);

/// Runs for as long as the process takes part: a leader is heard, also where nobody asks for a lease.
pub async fn be_heard(core: Arc<Core>) {
    loop {
        sleep(LOOK).await;
        let has_others = core.voters().len() > 1;
        if has_others && core.leading().is_some() && core.asked().elapsed() >= QUIET {
            // Rounds do not wait for each other: one that is not answered must not keep the next.
            let core = core.clone();
            tokio::spawn(async move { confirm(&core).await });
        }
    }
}

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
    let asked = core.ask();
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
    core.be_followed(asked);
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
