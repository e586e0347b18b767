//! A small world for the leader: processes, manage nodes, a log. Everything that can go wrong between them does, under a seed.
//!
//! The consensus itself is taken as given: commands are committed in one order, a new term's leader is told so, and
//! [`World::confirm`] knows who leads. All else is as it will be: messages are lost, late and doubled, also by seconds;
//! leaders that were replaced go on for a while and what they propose is committed late; copies of the control plane
//! lag behind; processes are killed, hang, are cut off and come back; clocks run at different speeds, by 10 % at most.
//! At every step it is checked that at most one process can believe to lead a group with a lease that holds, that
//! nobody has a lease who is down, and that timestamps grow, whoever draws them.

use super::super::*;
use super::NOBODY;
use crate::group::tests::random::{Random, check_invariants};
use crate::group::tests::{add_node, config, make_table};
use crate::group::{Answer, Colour};
use std::collections::VecDeque;

/// A safeguard that is switched off, to see that this world finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Off {
    /// A new leader takes processes for gone at once.
    NewLeaderWaits,
    /// Late `Expire`s of older terms count.
    TermChecked,
    /// Commands count under whatever version.
    VersionChecked,
    /// The holder counts from the grant's arrival.
    HolderCountsFromSending,
    /// The holder counts as long as the leader: nothing is left for clocks that drift.
    Margin,
    /// A leader that has been replaced grants leases.
    MajorityConfirmed,
    /// The leader takes a relieved primary for one that knows it.
    FormerAwaited,
    /// A leader draws timestamps although no majority has followed it lately.
    DrawsConfirmed,
    /// It counts from the end of the round in which a majority has followed it.
    DrawsCountFromAsking,
    /// A new leader draws timestamps at once.
    DrawsWait,
}

pub(super) const MANAGE: usize = 3;
pub(super) const DATA: usize = 4;
/// Milliseconds of true time a step.
const STEP: u64 = 5;

struct Clock {
    offset: u64,
    /// Microseconds for each true millisecond.
    rate: u64,
}

impl Clock {
    /// Any two differ by at most 10 %.
    fn new(random: &mut Random) -> Clock {
        Clock { offset: random.below(1_000_000), rate: 953 + random.below(95) }
    }

    fn at(&self, true_ms: u64) -> Duration {
        Duration::from_micros(self.offset + true_ms * self.rate)
    }
}

/// A copy of the control plane that follows the log.
struct Copy {
    group: Group,
    clock: Clock,
    /// Applies nothing, hears nothing and is not heard until then.
    cut_until: u64,
    /// Applies nothing until then.
    lags_until: u64,
}

struct Process {
    copy: Copy,
    member: Option<Member>,
    lease: Lease,
    /// Under way: `Register` with this nonce.
    nonce: u64,
    asked_register: u64,
    /// Killed until then.
    dead_until: Option<u64>,
    next_heartbeat: Duration,
}

enum Event {
    /// Reaches the log. A primary's request, with the view that it leads.
    Commit(GroupCommand, Option<(Member, View)>),
    Heartbeat {
        manage: usize,
        member: Member,
        sent: Duration,
        applied: u64,
    },
    /// A majority follows the leader, or does not.
    Followed {
        manage: usize,
        term: u64,
        arrived: Duration,
        member: Member,
        sent: Duration,
    },
    /// The round is over: it did.
    Confirmed {
        manage: usize,
        term: u64,
        arrived: Duration,
        member: Member,
        sent: Duration,
    },
    Answer {
        member: Member,
        sent: Duration,
        heard: Heard,
        index: u64,
    },
}

pub(super) struct World {
    pub(super) random: Random,
    pub(super) off: Option<Off>,
    pub(super) now: u64,
    log: Vec<GroupCommand>,
    /// Applies each command as it is committed.
    pub(super) truth: Group,
    manage: Vec<Copy>,
    leaders: Vec<Option<(u64, Leader)>>,
    /// Leaders that have been replaced hear of it then.
    hears: Vec<u64>,
    /// Manage node that leads in truth, and its term.
    elected: (usize, u64),
    processes: Vec<Process>,
    events: BTreeMap<(u64, u64), Event>,
    events_made: u64,
    pub(super) stormy: bool,
    last_draw: Timestamp,
    pub(super) draws: u64,
    /// What went wrong, first of all.
    pub(super) wrong: Option<String>,
    pub(super) views: u64,
}

impl World {
    pub(super) fn new(seed: u64, off: Option<Off>) -> World {
        let mut random = Random(seed);
        let copy =
            |random: &mut Random| Copy { group: Group::new(), clock: Clock::new(random), cut_until: 0, lags_until: 0 };
        let manage: Vec<Copy> = (0..MANAGE).map(|_| copy(&mut random)).collect();
        let processes = (0..DATA)
            .map(|_| Process {
                copy: copy(&mut random),
                member: None,
                lease: Lease::default(),
                nonce: random.next(),
                asked_register: 0,
                dead_until: None,
                next_heartbeat: Duration::ZERO,
            })
            .collect();
        let mut world = World {
            random,
            off,
            now: 0,
            log: Vec::new(),
            truth: Group::new(),
            manage,
            leaders: (0..MANAGE).map(|_| None).collect(),
            hears: vec![0; MANAGE],
            elected: (0, 0),
            processes,
            events: BTreeMap::new(),
            events_made: 0,
            stormy: true,
            last_draw: Timestamp::ZERO,
            draws: 0,
            wrong: None,
            views: 0,
        };
        world.commit(GroupCommand::Create { config: config(3, 2), adopted: None }, None);
        for node in 0..DATA as u64 {
            world.commit(add_node(node, &[RoleKind::Data]), None);
        }
        // Without a table all that can move moves at once.
        if seed % 2 == 1 {
            for command in make_table(1, "t") {
                world.commit(command, None);
            }
        }
        world.elect(0);
        world
    }

    fn is_off(&self, off: Off) -> bool {
        self.off == Some(off)
    }

    fn fail(&mut self, what: String) {
        self.wrong.get_or_insert(format!("at {} ms: {what}", self.now));
    }

    fn at(&mut self, delay: u64, event: Event) {
        self.events_made += 1;
        self.events.insert((self.now + delay, self.events_made), event);
    }

    /// Sends a message, or loses, delays or doubles it.
    fn send(&mut self, event: impl Fn() -> Event) {
        if !self.stormy {
            let delay = self.random.below(5);
            return self.at(delay, event());
        }
        let copies = match self.random.below(12) {
            0 | 1 => 0,
            2 => 2,
            _ => 1,
        };
        for _ in 0..copies {
            let delay = match self.random.below(20) {
                0 => self.random.below(3000),
                1 | 2 => self.random.below(250),
                _ => self.random.below(15),
            };
            self.at(delay, event());
        }
    }

    fn propose(&mut self, command: GroupCommand) {
        self.send(|| Event::Commit(command.clone(), None));
    }

    fn elect(&mut self, manage: usize) {
        let term = self.elected.1 + 1;
        for other in 0..MANAGE {
            if self.hears[other] == u64::MAX {
                self.hears[other] = self.now + if self.stormy { self.random.below(2500) } else { 20 };
            }
        }
        self.elected = (manage, term);
        let now = self.manage[manage].clock.at(self.now);
        let began = if self.is_off(Off::NewLeaderWaits) { now.saturating_sub(LEASE) } else { now };
        self.leaders[manage] = Some((term, Leader::new(began, term, NOBODY, &self.manage[manage].group)));
        self.hears[manage] = u64::MAX;
    }

    fn commit(&mut self, mut command: GroupCommand, asked: Option<(Member, View)>) {
        if self.is_off(Off::VersionChecked) {
            use_newest_version(&mut command, &self.truth);
        }
        if let (GroupCommand::Expire { term, .. }, true) = (&mut command, self.is_off(Off::TermChecked)) {
            *term = self.truth.term;
        }
        let index = self.log.len() as u64 + 1;
        let views = |group: &Group| group.replication_groups.iter().map(|p| p.view.0).sum::<u64>();
        let before = views(&self.truth);
        let leading =
            |group: &Group, id: GroupId| group.replication_group(id).and_then(|p| p.primary.map(|m| (m, p.view)));
        let led = match &command {
            GroupCommand::Join { group: id, .. } | GroupCommand::Strike { group: id, .. } => leading(&self.truth, *id),
            _ => None,
        };
        let answer = self.truth.apply(index, &command);
        self.views += views(&self.truth) - before;
        check_invariants(&self.truth);
        if let (GroupCommand::Expire { members, .. }, Answer::Done) = (&command, &answer) {
            members.iter().for_each(|member| self.check_expired(*member));
        }
        // What the leader asks for is right, or late.
        if let (GroupCommand::Place { .. } | GroupCommand::Timestamps { .. }, Answer::Refused(refused)) =
            (&command, &answer)
            && !self.is_off(Off::VersionChecked)
        {
            self.fail(format!("{command:?} was refused: {refused}"));
        }
        if let (Some(asked), Answer::Done) = (asked, &answer)
            && led != Some(asked)
        {
            self.fail(format!("{command:?} was asked for by {asked:?}, which does not lead any more"));
        }
        self.log.push(command);
    }

    /// Whoever is down has no lease by its own clock, whatever it has applied.
    fn check_expired(&mut self, member: Member) {
        let now = self.now;
        let holds = |p: &Process| p.member == Some(member) && p.lease.holds(p.copy.clock.at(now), u64::MAX);
        if self.processes.iter().any(|p| p.dead_until.is_none() && holds(p)) {
            self.fail(format!("{member:?} is down, and its lease holds"));
        }
    }

    pub(super) fn step(&mut self) {
        self.now += STEP;
        while let Some(entry) = self.events.first_entry().filter(|e| e.key().0 <= self.now) {
            let event = entry.remove();
            self.on_event(event);
        }
        if self.stormy {
            self.make_trouble();
        }
        self.follow_log();
        for manage in 0..MANAGE {
            self.lead(manage);
        }
        for process in 0..DATA {
            self.run_process(process);
        }
        self.check_primaries();
    }

    fn make_trouble(&mut self) {
        if self.random.one_in(300) {
            let next = self.random.below(MANAGE as u64) as usize;
            if next != self.elected.0 {
                self.elect(next);
            }
        }
        if self.random.one_in(150) {
            let process = self.random.below(DATA as u64) as usize;
            let until = self.now + self.random.below(1500);
            self.processes[process].copy.cut_until = until;
        }
        if self.random.one_in(150) {
            let process = self.random.below(DATA as u64) as usize;
            let until = self.now + self.random.below(1500);
            self.processes[process].copy.lags_until = until;
        }
        if self.random.one_in(400) {
            let process = self.random.below(DATA as u64) as usize;
            let until = self.now + self.random.below(2000);
            self.processes[process].dead_until = Some(until);
            // Some end in good order, and say so.
            if let Some(member) = self.processes[process].member.filter(|_| self.random.one_in(3)) {
                self.propose(GroupCommand::Down { member });
            }
        }
        if self.random.one_in(600) {
            let replicas = Some(1 + self.random.below(3) as u8);
            self.propose(GroupCommand::Configure {
                replicas,
                durability: None,
                replace_after: None,
                memory_return: None,
            });
        }
        if self.random.one_in(600) {
            let role = if self.random.one_in(2) { RoleKind::Sql } else { RoleKind::Data };
            let node = self.random.below(DATA as u64);
            self.propose(add_node(node, &[role]));
        }
        if self.random.one_in(150) {
            let manage = self.random.below(MANAGE as u64) as usize;
            let until = self.now + self.random.below(600);
            self.manage[manage].cut_until = until;
        }
    }

    fn follow_log(&mut self) {
        let now = self.now;
        let lagging = self.stormy;
        let random = &mut self.random;
        let copies = self.manage.iter_mut().chain(self.processes.iter_mut().map(|p| &mut p.copy));
        for copy in copies.filter(|c| now >= c.cut_until && now >= c.lags_until) {
            while (copy.group.index as usize) < self.log.len() && !(lagging && random.one_in(3)) {
                copy.group.apply(copy.group.index + 1, &self.log[copy.group.index as usize]);
            }
        }
    }

    fn lead(&mut self, manage: usize) {
        if self.now >= self.hears[manage] && self.elected.0 != manage {
            self.leaders[manage] = None;
        }
        let Some((_, leader)) = &mut self.leaders[manage] else { return };
        let copy = &self.manage[manage];
        let commands = leader.on_tick(copy.clock.at(self.now), &copy.group);
        for command in commands {
            self.propose(command);
        }
        self.draw(manage);
    }

    fn draw(&mut self, manage: usize) {
        let (off, now) = (self.off, self.manage[manage].clock.at(self.now));
        let Some((_, leader)) = &mut self.leaders[manage] else { return };
        match off {
            Some(Off::DrawsConfirmed) => leader.on_confirmed(now),
            Some(Off::DrawsWait) => leader.began = leader.began.min(now.saturating_sub(LEASE)),
            _ => {}
        }
        if let Some(time) = leader.draw_timestamp(now, &self.manage[manage].group) {
            if time <= self.last_draw {
                self.fail(format!("{time:?} was drawn after {:?}", self.last_draw));
            }
            self.last_draw = time;
            self.draws += 1;
        }
    }

    fn run_process(&mut self, index: usize) {
        let now = self.now;
        let process = &mut self.processes[index];
        if let Some(until) = process.dead_until {
            if now < until {
                return;
            }
            // A restart: what it knew has gone.
            process.dead_until = None;
            process.member = None;
            process.nonce = self.random.next();
            process.asked_register = 0;
            process.copy.group = Group::new();
        }
        if now < process.copy.cut_until {
            return;
        }
        let clock = process.copy.clock.at(now);
        let Some(member) = process.member else {
            self.register(index);
            return;
        };
        if clock >= process.next_heartbeat {
            process.next_heartbeat = clock + HEARTBEAT;
            let applied = process.copy.group.index;
            for manage in 0..MANAGE {
                if self.leaders[manage].is_some() {
                    self.send(|| Event::Heartbeat { manage, member, sent: clock, applied });
                }
            }
        }
        self.act_as_primary(index, member);
    }

    fn register(&mut self, index: usize) {
        let node = NodeId(index as u16 + 1);
        let process = &mut self.processes[index];
        let starts = process.copy.group.nodes.get(&node).map(|n| n.starts.clone()).unwrap_or_default();
        if let Some((_, number)) = starts.iter().find(|(nonce, _)| *nonce == process.nonce) {
            process.member = Some(Member { node, process: *number });
            process.lease = Lease::default();
            process.next_heartbeat = Duration::ZERO;
        } else if self.now >= process.asked_register {
            process.asked_register = self.now + 200;
            let nonce = process.nonce;
            let calm = !self.stormy;
            let whole = (0..4).filter(|_| calm || !self.random.one_in(6)).map(GroupId).collect();
            self.propose(GroupCommand::Register { node, nonce, whole, recovery: 0, directory: Default::default() });
        }
    }

    /// Takes joiners in and strikes followers, as the streams would have it.
    fn act_as_primary(&mut self, index: usize, me: Member) {
        for number in 0..self.truth.replication_groups.len() as u16 {
            let assignment = self.processes[index].copy.group.assignment(GroupId(number));
            if assignment.primary != Some(me) {
                continue;
            }
            let (id, version) = (assignment.group, assignment.version);
            let asked = Some((me, assignment.view));
            if let Some(member) = self.random.pick(&assignment.joining).filter(|_| self.random.one_in(10)) {
                self.send(|| Event::Commit(GroupCommand::Join { group: id, version, member }, asked));
            }
            if self.stormy && self.random.one_in(200) {
                let member = assignment.in_sync[self.random.below(assignment.in_sync.len() as u64) as usize];
                self.send(|| Event::Commit(GroupCommand::Strike { group: id, version, member }, asked));
            }
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Commit(command, asked) => self.commit(command, asked),
            Event::Heartbeat { manage, member, sent, applied } => {
                let Some((term, leader)) = &mut self.leaders[manage] else { return };
                if self.now < self.manage[manage].cut_until {
                    return;
                }
                let known = if self.off == Some(Off::FormerAwaited) { u64::MAX } else { applied };
                leader.on_known(member, known, &self.manage[manage].group);
                let term = *term;
                let arrived = self.manage[manage].clock.at(self.now);
                let delay = self.random.below(20);
                self.at(delay, Event::Followed { manage, term, arrived, member, sent });
            }
            Event::Followed { manage, term, arrived, member, sent } => {
                if self.elected == (manage, term) || self.is_off(Off::MajorityConfirmed) {
                    let delay = if self.stormy { self.random.below(300) } else { 5 };
                    self.at(delay, Event::Confirmed { manage, term, arrived, member, sent });
                }
            }
            Event::Confirmed { manage, term, arrived, member, sent } => {
                self.on_confirmed(manage, term, arrived, member, sent);
            }
            Event::Answer { member, sent, heard, index } => self.on_answer(member, sent, heard, index),
        }
    }

    fn on_confirmed(&mut self, manage: usize, term: u64, arrived: Duration, member: Member, sent: Duration) {
        let asked =
            if self.is_off(Off::DrawsCountFromAsking) { self.manage[manage].clock.at(self.now) } else { arrived };
        let index = self.log.len() as u64;
        let Some((own, leader)) = &mut self.leaders[manage] else { return };
        if *own != term {
            return;
        }
        leader.on_confirmed(asked);
        let heard = leader.on_heartbeat(arrived, member, &self.manage[manage].group);
        self.send(|| Event::Answer { member, sent, heard, index });
    }

    fn on_answer(&mut self, member: Member, sent: Duration, heard: Heard, index: u64) {
        let from_sending = !self.is_off(Off::HolderCountsFromSending);
        let more = if self.is_off(Off::Margin) { LEASE - HOLDER_LEASE } else { Duration::ZERO };
        let now = self.now;
        let process = &mut self.processes[usize::from(member.node.0) - 1];
        if process.member != Some(member) || process.dead_until.is_some() || now < process.copy.cut_until {
            return;
        }
        match heard {
            Heard::Granted => {
                let sent = if from_sending { sent } else { process.copy.clock.at(now) };
                process.lease.on_grant(sent + more, index);
            }
            Heard::Refused => {
                process.lease.on_refused();
                // In the same process of the operating system: a new one of the cluster.
                process.member = None;
                process.nonce = self.random.next();
                process.asked_register = 0;
            }
            Heard::NotNow => {}
        }
    }

    /// At most one process believes to lead a group with a lease that holds.
    fn check_primaries(&mut self) {
        let mut believers: BTreeMap<usize, Vec<Member>> = BTreeMap::new();
        for process in self.processes.iter().filter(|p| p.dead_until.is_none()) {
            let Some(me) = process.member else { continue };
            let group = &process.copy.group;
            if process.lease.holds(process.copy.clock.at(self.now), group.index) {
                for (number, _) in group.replication_groups.iter().enumerate().filter(|(_, p)| p.primary == Some(me)) {
                    believers.entry(number).or_default().push(me);
                }
            }
        }
        if let Some((number, both)) = believers.iter().find(|(_, who)| who.len() > 1) {
            self.fail(format!("{both:?} lead replication group {number}"));
        }
    }

    /// Faults stop; whatever is still under way may come.
    pub(super) fn calm_down(&mut self) {
        self.stormy = false;
        self.propose(GroupCommand::Configure {
            replicas: Some(2),
            durability: None,
            replace_after: None,
            memory_return: None,
        });
        (0..DATA as u64).for_each(|node| self.propose(add_node(node, &[RoleKind::Data])));
        for process in &mut self.processes {
            process.copy.cut_until = 0;
            process.copy.lags_until = 0;
            if process.dead_until.is_some() {
                process.dead_until = Some(self.now);
            }
        }
        for copy in &mut self.manage {
            copy.cut_until = 0;
        }
    }

    /// Everything as configured. A group whose only whole replica came back empty is lost for good, and not counted.
    pub(super) fn is_healthy(&self) -> bool {
        let lost =
            |p: &ReplicationGroup| p.primary.is_none() && p.in_sync.len() == 1 && !self.truth.is_member(p.in_sync[0]);
        let health = self.truth.health();
        let parts = self.truth.replication_groups.iter().zip(&health.groups);
        parts.into_iter().all(|(state, h)| lost(state) || h.colour == Colour::Green && h.joining == 0)
            && self.truth.nodes.values().all(|n| n.life == Life::Up)
    }

    pub(super) fn copies_agree(&self) -> bool {
        let mut replayed = Group::new();
        let mut queue: VecDeque<&GroupCommand> = self.log.iter().collect();
        while let Some(command) = queue.pop_front() {
            replayed.apply(replayed.index + 1, command);
        }
        let copies = self.manage.iter().chain(self.processes.iter().map(|p| &p.copy));
        replayed == self.truth && copies.into_iter().all(|c| c.group.index < self.truth.index || c.group == self.truth)
    }
}

fn use_newest_version(command: &mut GroupCommand, group: &Group) {
    match command {
        GroupCommand::Strike { group: id, version, .. }
        | GroupCommand::Join { group: id, version, .. }
        | GroupCommand::Lead { group: id, version, .. }
        | GroupCommand::Relieve { group: id, version }
        | GroupCommand::Place { group: id, version, .. } => {
            *version = group.replication_group(*id).map_or(0, |p| p.version);
        }
        _ => {}
    }
}
