//! The manage group's consensus, simulated at its interface: what Raft promises and no more, under a seed.
//!
//! There is one list of committed commands ([`model`]); every process applies them late, in order, in a task of its own. What a real Raft may do to its users happens here: elections
//! take 0.2–0.6 s, a leader that was replaced goes on believing to lead until it asks a majority or some time has passed, proposals time out and are committed or not, now or later,
//! a process that starts again knows less than it did. Messages are not simulated: whether sites can talk is asked of the network when they would. (openraft itself is tested in crate `raft`, its files by [`crate::raft_run`].)
mod model;

#[cfg(test)]
mod tests;

use super::network::{SimNetwork, Site};
use crate::executor::Executor;
use crate::runtime::SimRuntime;
use futures::channel::oneshot;
use futures::future::{Either, select};
use model::{Model, Proposal};
use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rauk_manage::consensus::{BoxFuture, Consensus, ProposeError, Watcher};
use rauk_manage::group::{Answer, Group, GroupCommand};
use rauk_node::runtime::Runtime;
use rauk_types::NodeId;
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

/// How often the model looks at who can talk to whom.
const TICK: Duration = Duration::from_millis(15);

/// The group of all sites. Clones are the same.
#[derive(Clone)]
pub struct SimConsensus {
    shared: Arc<Shared>,
}

struct Shared {
    executor: Executor,
    network: SimNetwork,
    model: Mutex<Model>,
}

/// One process's side of it.
#[derive(Clone)]
pub struct SimMember {
    consensus: SimConsensus,
    site: Site,
    runtime: SimRuntime,
}

impl SimConsensus {
    /// `voters`: the sites whose majority decides.
    pub fn new(seed: u64, executor: Executor, network: SimNetwork, voters: Vec<Site>) -> SimConsensus {
        let model = Model::new(SmallRng::seed_from_u64(seed), voters);
        let consensus = SimConsensus { shared: Arc::new(Shared { executor, network, model: Mutex::new(model) }) };
        consensus.tick();
        consensus
    }

    /// A process starts at `site`. What it has applied from before is what its predecessor had, or less.
    pub fn start(&self, site: Site, runtime: &SimRuntime) -> SimMember {
        self.shared.model.lock().join(site, runtime.clone());
        let member = SimMember { consensus: self.clone(), site, runtime: runtime.clone() };
        let applier = member.clone();
        runtime.spawn("consensus", async move { applier.apply_all().await });
        member
    }

    /// The process at `site` has ended.
    pub fn stop(&self, site: Site) {
        self.shared.model.lock().leave(site);
    }

    /// What the site knew is lost with its disk.
    pub fn forget(&self, site: Site) {
        self.shared.model.lock().forget(site);
    }

    /// Elections that nobody needed: the chance of one in each second.
    pub fn set_restless(&self, chance: f64) {
        self.shared.model.lock().restless = chance;
    }

    /// The chance that the answer to a command is lost, though it was committed.
    pub fn set_lost_answers(&self, chance: f64) {
        self.shared.model.lock().lost_answers = chance;
    }

    /// Commits a command before anything runs.
    pub fn commit(&self, command: GroupCommand) -> Answer {
        let mut model = self.shared.model.lock();
        let index = model.commit(command);
        model.answer(index).clone()
    }

    /// The state with everything committed.
    pub fn group(&self) -> Arc<Group> {
        self.shared.model.lock().newest()
    }

    /// All states that the group has had, the first that of before all.
    pub fn states(&self) -> Vec<Arc<Group>> {
        self.shared.model.lock().states().to_vec()
    }

    /// What a site has applied: it runs, or would begin with that.
    pub fn applied_at(&self, site: Site) -> Arc<Group> {
        self.shared.model.lock().group_at(site)
    }

    /// Who leads in truth, whoever believes what.
    pub fn leader(&self) -> Option<(Site, u64)> {
        let model = self.shared.model.lock();
        model.leader.as_ref().map(|leader| (leader.site, model.term))
    }

    fn delay(&self) -> Duration {
        self.shared.network.delay()
    }

    fn tick(&self) {
        let due = {
            let mut model = self.shared.model.lock();
            model.tick(self.shared.executor.now(), &self.shared.network)
        };
        for (site, index) in due {
            self.send_committed(site, index);
        }
        let consensus = Arc::downgrade(&self.shared);
        self.shared.executor.after(TICK, move || {
            if let Some(shared) = consensus.upgrade() {
                SimConsensus { shared }.tick();
            }
        });
    }

    /// Tells the process at `site`, after a while, that everything up to `index` is committed.
    fn send_committed(&self, site: Site, index: u64) {
        let consensus = self.clone();
        let process = self.shared.model.lock().process(site);
        self.shared.executor.after(self.delay(), move || {
            let mut model = consensus.shared.model.lock();
            if model.process(site) == process {
                model.arrived(site, index, &consensus.shared.network);
            }
        });
    }

    /// A proposal is on its way to the leader.
    fn attempt(&self, id: u64) {
        let consensus = self.clone();
        self.shared.executor.after(self.delay(), move || {
            let SimConsensus { shared } = &consensus;
            let term = {
                let mut model = shared.model.lock();
                let Some(proposal) = model.proposals.get(&id) else { return };
                if proposal.deadline < shared.executor.now() {
                    model.proposals.remove(&id);
                    return;
                }
                let from = proposal.site;
                model.accepts(from, &shared.network)
            };
            match term {
                Some(term) => {
                    // To a majority and back.
                    let there_and_back = consensus.delay() + consensus.delay();
                    let replicating = consensus.clone();
                    shared.executor.after(there_and_back, move || replicating.replicated(id, term));
                }
                None => {
                    let pause = Duration::from_millis(shared.model.lock().rng.random_range(20..80));
                    let again = consensus.clone();
                    shared.executor.after(pause, move || again.attempt(id));
                }
            }
        });
    }

    /// The leader of `term` has sent a command to all voters.
    fn replicated(&self, id: u64, term: u64) {
        let mut model = self.shared.model.lock();
        if model.leads_with_majority(term, &self.shared.network) {
            let Some(proposal) = model.proposals.remove(&id) else { return };
            let lost = model.lost_answers;
            let lost = model.rng.random_bool(lost);
            let index = model.commit(proposal.command);
            if !lost {
                model.wait(proposal.site, proposal.process, index, proposal.answer);
            }
            let sites = model.sites();
            drop(model);
            sites.into_iter().for_each(|site| self.send_committed(site, index));
            return;
        }
        // It is in the log of a leader that was cut off: gone, or committed later, when its proposer has given up or tried again.
        let fate = model.rng.random_range(0..4);
        let later = Duration::from_millis(model.rng.random_range(0..2000));
        drop(model);
        let consensus = self.clone();
        match fate {
            0 => self.shared.executor.after(later, move || {
                let mut model = consensus.shared.model.lock();
                if model.leader.is_some()
                    && let Some(proposal) = model.proposals.remove(&id)
                {
                    model.commit(proposal.command);
                }
            }),
            1 => {
                self.shared.model.lock().proposals.remove(&id);
            }
            _ => self.shared.executor.after(Duration::from_millis(20), move || consensus.attempt(id)),
        }
    }
}

impl SimMember {
    async fn apply_all(self) {
        loop {
            let (site, process) = (self.site, self.runtime.number());
            let next = std::future::poll_fn(|context| {
                let mut model = self.consensus.shared.model.lock();
                if model.process(site) != Some(process) {
                    return Poll::Ready(None);
                }
                match model.apply_next(site) {
                    Some(applied) => Poll::Ready(Some(applied)),
                    None => {
                        model.wake_when_arrived(site, context.waker().clone());
                        Poll::Pending
                    }
                }
            });
            let Some((group, watchers)) = next.await else { return };
            watchers.iter().filter_map(Weak::upgrade).for_each(|watcher| watcher.on_applied(&group));
            for (answer, result) in self.consensus.shared.model.lock().answers_due(site) {
                let _ = answer.send(result);
            }
            crate::node::client::yield_now().await;
        }
    }

    /// One try of `confirm`: the answer, or none yet.
    fn try_confirm(&self) -> Option<Option<u64>> {
        let mut model = self.consensus.shared.model.lock();
        model.confirm(self.site, self.runtime.number(), &self.consensus.shared.network)
    }
}

impl Consensus for SimMember {
    fn propose(&self, command: GroupCommand, timeout: Duration) -> BoxFuture<Result<Answer, ProposeError>> {
        if !self.runtime.is_alive() {
            return Box::pin(async { Err(ProposeError::Closed) });
        }
        let (sender, receiver) = oneshot::channel();
        let consensus = &self.consensus;
        let deadline = consensus.shared.executor.now() + timeout;
        let (site, process) = (self.site, self.runtime.number());
        let proposal = Proposal { site, process, command, deadline, answer: sender };
        let id = consensus.shared.model.lock().propose(proposal);
        // A process that waits for its disk asks after that; if it ends before, the proposal ends with it.
        let proposing = consensus.clone();
        consensus.shared.executor.at(self.runtime.simulated_now(), move || proposing.attempt(id));
        let sleep = self.runtime.sleep(timeout);
        Box::pin(async move {
            let timed_out = || Err(ProposeError::Unknown("no answer in time".to_string()));
            match select(receiver, sleep).await {
                Either::Left((Ok(answer), _)) => Ok(answer),
                // The answer was lost: that shows when the time is over.
                Either::Left((Err(_), sleep)) => {
                    sleep.await;
                    timed_out()
                }
                Either::Right(_) => timed_out(),
            }
        })
    }

    fn watch(&self, watcher: Weak<dyn Watcher>) {
        self.consensus.shared.model.lock().watch(self.site, self.runtime.number(), watcher);
    }

    fn group(&self) -> Arc<Group> {
        self.consensus.shared.model.lock().group_at(self.site)
    }

    fn leading(&self) -> Option<u64> {
        self.consensus.shared.model.lock().believes(self.site, self.runtime.number())
    }

    fn confirm(&self) -> BoxFuture<Option<u64>> {
        let member = self.clone();
        Box::pin(async move {
            for _ in 0..20 {
                member.leading()?;
                let there_and_back = member.consensus.delay() + member.consensus.delay();
                member.runtime.sleep(there_and_back).await;
                if let Some(answer) = member.try_confirm() {
                    return answer;
                }
                member.runtime.sleep(Duration::from_millis(25)).await;
            }
            None
        })
    }

    fn leader(&self) -> Option<NodeId> {
        self.consensus.shared.model.lock().leader_as_known(self.site)
    }

    fn voters(&self) -> BTreeSet<NodeId> {
        self.consensus.shared.model.lock().voters_as_known(self.site)
    }
}
