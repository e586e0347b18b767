//! What is true of the group, and what each process believes.
use crate::cluster::network::{SimNetwork, Site};
use crate::runtime::SimRuntime;
use futures::channel::oneshot;
use rand::Rng;
use rand::rngs::SmallRng;
use rauk_manage::consensus::Watcher;
use rauk_manage::group::{Answer, Group, GroupCommand};
use rauk_types::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::Duration;

pub(super) struct Proposal {
    pub(super) site: Site,
    pub(super) process: u32,
    pub(super) command: GroupCommand,
    /// In simulated time.
    pub(super) deadline: Duration,
    pub(super) answer: oneshot::Sender<Answer>,
}

pub(super) struct Leader {
    pub(super) site: Site,
    process: u32,
}

/// What a process knows.
struct Peer {
    runtime: SimRuntime,
    /// Committed commands that it has heard of, and those it has applied.
    arrived: u64,
    applied: u64,
    watchers: Vec<Weak<dyn Watcher>>,
    waker: Option<Waker>,
    /// Its own proposals that are committed, by index.
    waiting: Vec<(u64, oneshot::Sender<Answer>)>,
    /// The term in which it believes to lead, and since when it has not been told that it does.
    leads: Option<u64>,
    doubtful_since: Option<Duration>,
    /// Who leads, as it has heard, and when it last did.
    follows: Option<(Site, Duration)>,
}

pub(super) struct Model {
    pub(super) rng: SmallRng,
    voters: Vec<Site>,
    /// What each command gave; the first has index 1.
    answers: Vec<Answer>,
    /// The state after each command; the first is that of before all.
    states: Vec<Arc<Group>>,
    pub(super) term: u64,
    pub(super) leader: Option<Leader>,
    /// Since when nobody leads who reaches a majority, and how long that is borne.
    headless: Option<(Duration, Duration)>,
    peers: BTreeMap<Site, Peer>,
    /// What the last process of a site had applied when it ended.
    kept: BTreeMap<Site, u64>,
    pub(super) proposals: BTreeMap<u64, Proposal>,
    next_proposal: u64,
    pub(super) restless: f64,
    pub(super) lost_answers: f64,
}

/// A state, and who is to be told of it.
type Told = (Arc<Group>, Vec<Weak<dyn Watcher>>);

impl Model {
    pub(super) fn new(rng: SmallRng, voters: Vec<Site>) -> Model {
        Model {
            rng,
            voters,
            answers: Vec::new(),
            states: vec![Arc::new(Group::new())],
            term: 0,
            leader: None,
            headless: None,
            peers: BTreeMap::new(),
            kept: BTreeMap::new(),
            proposals: BTreeMap::new(),
            next_proposal: 0,
            restless: 0.0,
            lost_answers: 0.0,
        }
    }

    pub(super) fn newest(&self) -> Arc<Group> {
        self.states[self.answers.len()].clone()
    }

    pub(super) fn states(&self) -> &[Arc<Group>] {
        &self.states
    }

    pub(super) fn answer(&self, index: u64) -> &Answer {
        &self.answers[index as usize - 1]
    }

    pub(super) fn sites(&self) -> Vec<Site> {
        self.peers.keys().copied().collect()
    }

    pub(super) fn process(&self, site: Site) -> Option<u32> {
        self.peers.get(&site).map(|peer| peer.runtime.number())
    }

    pub(super) fn commit(&mut self, command: GroupCommand) -> u64 {
        let index = self.answers.len() as u64 + 1;
        let mut group = Group::clone(&self.newest());
        self.answers.push(group.apply(index, &command));
        self.states.push(Arc::new(group));
        index
    }

    pub(super) fn join(&mut self, site: Site, runtime: SimRuntime) {
        let kept = self.kept.get(&site).copied().unwrap_or(0);
        // The state machine may be older than what was applied: the log has it, and the leader says how much of that is committed.
        let applied = if self.rng.random_bool(0.7) { kept } else { self.rng.random_range(0..=kept) };
        let peer = Peer {
            runtime,
            arrived: applied,
            applied,
            watchers: Vec::new(),
            waker: None,
            waiting: Vec::new(),
            leads: None,
            doubtful_since: None,
            follows: None,
        };
        self.peers.insert(site, peer);
    }

    pub(super) fn leave(&mut self, site: Site) {
        if let Some(peer) = self.peers.remove(&site) {
            self.kept.insert(site, peer.applied);
            self.proposals.retain(|_, proposal| proposal.site != site || proposal.process != peer.runtime.number());
        }
    }

    pub(super) fn forget(&mut self, site: Site) {
        self.kept.remove(&site);
    }

    fn runs(&self, site: Site) -> bool {
        self.peers.get(&site).is_some_and(|peer| peer.runtime.is_running())
    }

    /// Whether a process at `site` can talk to a majority of the voters, itself among them.
    fn has_majority(&self, site: Site, network: &SimNetwork) -> bool {
        let follows = |voter: &&Site| self.runs(**voter) && network.connected(site, **voter);
        self.runs(site) && self.voters.iter().filter(follows).count() * 2 > self.voters.len()
    }

    /// The true leader, if it runs and still is the process that was elected.
    fn present_leader(&self) -> Option<Site> {
        let leader = self.leader.as_ref()?;
        (self.process(leader.site) == Some(leader.process)).then_some(leader.site)
    }

    pub(super) fn leads_with_majority(&self, term: u64, network: &SimNetwork) -> bool {
        self.term == term && self.present_leader().is_some_and(|site| self.has_majority(site, network))
    }

    /// The term of the leader, if it can be reached from `site` and can do anything.
    pub(super) fn accepts(&self, site: Site, network: &SimNetwork) -> Option<u64> {
        let leader = self.present_leader()?;
        (self.runs(leader) && network.connected(site, leader)).then_some(self.term)
    }

    /// Some time has passed. Gives who is to be told (again) of what is committed.
    pub(super) fn tick(&mut self, now: Duration, network: &SimNetwork) -> Vec<(Site, u64)> {
        let led = self.present_leader().is_some_and(|site| self.has_majority(site, network));
        let restless = self.rng.random_bool((self.restless * super::TICK.as_secs_f64()).min(1.0));
        match self.headless {
            _ if led && !restless => self.headless = None,
            None => {
                let patience = Duration::from_millis(self.rng.random_range(200..600));
                self.headless = Some((now, patience));
            }
            Some((since, patience)) if now > since + patience => self.elect(now, network),
            Some(_) => {}
        }
        self.doubt(now, network);
        let Some(leader) = self.present_leader().filter(|site| self.runs(*site)) else { return Vec::new() };
        let committed = self.answers.len() as u64;
        let behind = |(site, peer): (&Site, &Peer)| {
            let told = peer.arrived < committed && network.connected(leader, *site);
            told.then_some((*site, committed))
        };
        self.peers.iter().filter_map(behind).collect()
    }

    fn elect(&mut self, now: Duration, network: &SimNetwork) {
        let candidates: Vec<Site> =
            self.voters.iter().copied().filter(|site| self.has_majority(*site, network)).collect();
        if candidates.is_empty() {
            return;
        }
        let site = candidates[self.rng.random_range(0..candidates.len())];
        self.term += 1;
        self.headless = None;
        let peer = self.peers.get_mut(&site).expect("it runs");
        peer.leads = Some(self.term);
        peer.doubtful_since = None;
        peer.follows = Some((site, now));
        self.leader = Some(Leader { site, process: peer.runtime.number() });
    }

    /// Who hears of the leader follows it; who believes to lead and does not finds out, or goes on for a time.
    fn doubt(&mut self, now: Duration, network: &SimNetwork) {
        let leader = self.present_leader().filter(|site| self.runs(*site));
        let (term, rng) = (self.term, &mut self.rng);
        for (site, peer) in self.peers.iter_mut().filter(|(_, peer)| peer.runtime.is_running()) {
            let hears = leader.is_some_and(|leader| network.connected(leader, *site));
            if hears && rng.random_bool(0.5) {
                peer.follows = leader.map(|leader| (leader, now));
                if peer.leads.is_some_and(|led| led < term) {
                    peer.leads = None;
                }
            }
            if peer.follows.is_some_and(|(_, heard)| now > heard + Duration::from_secs(1)) {
                peer.follows = None;
            }
            if peer.leads.is_none() || (leader == Some(*site) && peer.leads == Some(term)) {
                peer.doubtful_since = None;
                continue;
            }
            let since = *peer.doubtful_since.get_or_insert(now);
            if now > since + Duration::from_millis(300) && rng.random_bool(0.03) {
                peer.leads = None;
            }
        }
    }

    pub(super) fn arrived(&mut self, site: Site, index: u64, network: &SimNetwork) {
        let Some(leader) = self.present_leader() else { return };
        if !network.connected(leader, site) {
            return;
        }
        if let Some(peer) = self.peers.get_mut(&site)
            && peer.arrived < index
        {
            peer.arrived = index;
            if let Some(waker) = peer.waker.take() {
                waker.wake();
            }
        }
    }

    pub(super) fn wake_when_arrived(&mut self, site: Site, waker: Waker) {
        if let Some(peer) = self.peers.get_mut(&site) {
            peer.waker = Some(waker);
        }
    }

    /// Applies the next command at `site`, if it has arrived: the state, and who is to be told.
    pub(super) fn apply_next(&mut self, site: Site) -> Option<Told> {
        let peer = self.peers.get_mut(&site).filter(|peer| peer.applied < peer.arrived)?;
        peer.applied += 1;
        Some((self.states[peer.applied as usize].clone(), peer.watchers.clone()))
    }

    /// Answers to proposals of `site` that it has applied.
    pub(super) fn answers_due(&mut self, site: Site) -> Vec<(oneshot::Sender<Answer>, Answer)> {
        let Some(peer) = self.peers.get_mut(&site) else { return Vec::new() };
        let (due, waiting) = peer.waiting.drain(..).partition(|(index, _)| *index <= peer.applied);
        peer.waiting = waiting;
        let due: Vec<(u64, oneshot::Sender<Answer>)> = due;
        due.into_iter().map(|(index, answer)| (answer, self.answers[index as usize - 1].clone())).collect()
    }

    pub(super) fn propose(&mut self, proposal: Proposal) -> u64 {
        self.next_proposal += 1;
        self.proposals.insert(self.next_proposal, proposal);
        self.next_proposal
    }

    /// The proposer is answered when it has applied the command.
    pub(super) fn wait(&mut self, site: Site, process: u32, index: u64, answer: oneshot::Sender<Answer>) {
        if let Some(peer) = self.peers.get_mut(&site).filter(|peer| peer.runtime.number() == process) {
            peer.waiting.push((index, answer));
        }
    }

    pub(super) fn watch(&mut self, site: Site, process: u32, watcher: Weak<dyn Watcher>) {
        if let Some(peer) = self.peers.get_mut(&site).filter(|peer| peer.runtime.number() == process) {
            peer.watchers.push(watcher);
        }
    }

    pub(super) fn group_at(&self, site: Site) -> Arc<Group> {
        let applied = match self.peers.get(&site) {
            Some(peer) => peer.applied,
            None => self.kept.get(&site).copied().unwrap_or(0),
        };
        self.states[applied as usize].clone()
    }

    pub(super) fn believes(&self, site: Site, process: u32) -> Option<u64> {
        self.peers.get(&site).filter(|peer| peer.runtime.number() == process)?.leads
    }

    pub(super) fn leader_as_known(&self, site: Site) -> Option<NodeId> {
        let peer = self.peers.get(&site)?;
        let leader = if peer.leads.is_some() { site } else { peer.follows?.0 };
        let address = leader.address();
        self.group_at(site).nodes.iter().find(|(_, node)| node.address == address).map(|(node, _)| *node)
    }

    /// Nodes at the sites that vote, as a site knows them.
    pub(super) fn voters_as_known(&self, site: Site) -> BTreeSet<NodeId> {
        let group = self.group_at(site);
        let is_voter = |address: &str| self.voters.iter().any(|voter| voter.address() == address);
        group.nodes.iter().filter(|(_, node)| is_voter(&node.address)).map(|(id, _)| *id).collect()
    }

    /// `None`: no majority has answered yet.
    pub(super) fn confirm(&mut self, site: Site, process: u32, network: &SimNetwork) -> Option<Option<u64>> {
        let majority = self.has_majority(site, network);
        let truly = self.present_leader() == Some(site) && self.process(site) == Some(process);
        let term = self.term;
        let Some(peer) = self.peers.get_mut(&site).filter(|peer| peer.runtime.number() == process) else {
            return Some(None);
        };
        if !majority {
            return None;
        }
        if !truly || peer.leads != Some(term) {
            // The majority tells it of the newer term.
            peer.leads = None;
            return Some(None);
        }
        Some(Some(self.answers.len() as u64))
    }
}
