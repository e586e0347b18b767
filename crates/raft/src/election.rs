//! When this process stands for election.
//!
//! openraft's own clock for that is off: a voter that was stopped, starved or cut off for a while would stand as soon as it is back, and depose a leader whom all others follow, by the higher term alone. Here a voter
//! that has not heard of a leader for a lease, and a little more, *canvasses* first: it asks the other voters whether they would vote for it, which changes nothing. They would if
//! they have not heard of a leader for a lease either, and have no longer log. Only with a majority it stands.
//!
//! A process never goes on leading in a term that it led before a restart (`log_store` sees to that), so a term is led by one process.

use crate::following;
use crate::group::Core;
use crate::message::{Body, Reply};
use crate::types::LogId;
use openraft::ServerState;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const INTERVAL: Duration = Duration::from_millis(20);
/// For an answer of another voter.
const ANSWER: Duration = Duration::from_millis(100);

/// Runs for as long as the process takes part.
pub async fn stand(core: Arc<Core>) {
    let mut random = SmallRng::from_os_rng();
    let timing = core.timing();
    let mut draw = move || random.random_range(timing.spread / 4..timing.spread);
    let mut patience = draw();
    let mut not_before = Instant::now();
    loop {
        sleep(INTERVAL).await;
        let (Some(raft), Some(metrics)) = (core.raft(), core.metrics()) else { continue };
        let me = metrics.id;
        let voters = metrics.membership_config.membership().get_joint_config().clone();
        let votes = voters.iter().any(|set| set.contains(&me));
        if matches!(metrics.state, ServerState::Leader | ServerState::Shutdown) || !votes {
            continue;
        }
        let now = Instant::now();
        let alone = voters.iter().all(|set| set.len() == 1);
        let waited = alone || now >= core.heard_leader() + timing.lease + patience;
        if !waited || now < not_before {
            continue;
        }
        patience = draw();
        if alone || canvass(&core, &voters).await {
            // It fails only when Raft has ended.
            let _ = raft.trigger().elect().await;
            not_before = Instant::now() + timing.lease / 2 + patience;
        } else {
            not_before = Instant::now() + patience;
        }
    }
}

/// Whether a majority (of each set) would vote for this process.
async fn canvass(core: &Arc<Core>, voters: &[BTreeSet<u64>]) -> bool {
    let last_log = core.log.last();
    let ask = |node| {
        let network = core.network.clone();
        async move {
            let reply = network.call(node, Body::Canvass { last_log }, ANSWER).await;
            matches!(reply, Ok(Reply::Canvass { willing: true }))
        }
    };
    following::majority(core, voters, ANSWER, ask).await
}

/// Whether this process would vote for one whose log ends so.
pub fn willing(core: &Core, last_log: Option<LogId>) -> bool {
    let Some(metrics) = core.metrics() else { return false };
    let lease = core.timing().lease;
    let led = match metrics.state {
        ServerState::Leader => core.followed().elapsed() <= lease,
        _ => core.heard_leader().elapsed() <= lease,
    };
    !led && last_log >= core.log.last()
}
