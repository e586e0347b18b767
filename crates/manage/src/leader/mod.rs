//! What the control-plane leader does beside applying commands: leases, failures, placement, timestamps. Pure: time
//! comes in, commands go out.
//!
//! | file | what |
//! |---|---|
//! | this one | a term of leadership: grants leases, says who is down, names primaries |
//! | [`lease`] | the holder's side of a lease |
//! | [`placement`] | where groups are to be |
//! | `followed` | a leader without a majority takes nobody for gone |
//! | `timestamps` | numbers for snapshots |
//!
//! # A term
//! A [`Leader`] is made with each term of the consensus and knows nothing of its predecessor's grants. It first says [`GroupCommand::Term`], and until it sees
//! that applied it grants nothing and draws no timestamp. What leaders of older terms say of leases (`Expire`) is void from there on, wherever it was held up:
//! each `Expire` that counts stands in the log before the `Term` of every leader that could have granted something its author did not know. Other commands of a
//! late leader carry the version that they were made under, and are void, or still right. It takes nobody for gone, and relieves nobody, before one whole lease has passed since it
//! was elected (rule 17): by then everything that its predecessors granted has ended.
//!
//! # Leases
//! A heartbeat is granted only after a majority has followed this leader since its arrival; the caller sees to that
//! ([`crate::consensus::Consensus::confirm`]). A lease counts from the heartbeat's arrival. When it has ended the
//! leader proposes `Expire`, until the control plane shows it, and grants that process nothing more, ever: the command
//! may be under way for as long as it likes. A process that has registered in this term has [`FIRST`] to ask for the
//! first time.
//!
//! A process is not marked down while one that shares a group with it, and would go on without it, has been silent for
//! [`FRESH`]: that one may be dead too, and its lease not yet at its end. It is heard again, or both are marked down
//! with one command, and both keep their places (rule 25). The same holds for a primary that is to begin without
//! members that are down.
//!
//! The leader's own process is not taken for gone while no other with rows or clients is up: it lives, since the leader runs in it, and nobody could go on without it. On a machine that has no time for it its
//! lease ends, and it answers nothing; when it gets time again it is granted another and goes on in the same views, in which nothing has happened meanwhile. It is always right to
//! say late that a lease has ended: only what was said makes another serve.
//!
//! A leader that was not run itself for a while (a machine that stood still, [`Leader::on_tick`] not called for [`FRESH`]) has heard nobody, and what they have said waits to be read. Before it takes anybody for gone it listens for
//! as long as four heartbeats take: one more than somebody counts as heard of whom an old word was waiting. Who counts as heard lately, and whose lease holds, is not changed by that: nobody was heard. One that is called so late again and again does so for no longer than [`SLOW`], else it would never
//! take anybody for gone.
//!
//! Nor does a leader mark anybody down whom it could not have granted a lease, since no majority followed it
//! ([`followed`]).
//!
//! # Primaries
//! A group without a primary gets an in-sync member (or a doubtful one that may lead, [`ReplicationGroup::may_lead`])
//! whose lease holds: the preferred one, else one that is wanted there, else the one with the fewest primaries. If its
//! former primary may still believe to lead ([`ReplicationGroup::former`]), not before that one's lease has ended, or
//! it has said in a heartbeat that it has applied the command that relieved it ([`Leader::on_known`]): from then on its
//! lease tells it that it does not lead. A primary that is not where it is preferred is relieved when its group has no
//! joiners and the preferred member is in-sync with a lease: one after another ([`MOVE_PAUSE`]), since whoever has
//! locks there loses them; all at once as long as there are no tables, so that a new cluster is spread before anybody
//! works with it. A node that is down keeps its places for `replace_after` of the configuration, as far as this term
//! knows: a new leader begins to count again.
//!
//! # Followers that read
//! An in-sync follower answers reads as long as its lease holds (rule 33). One that was removed while it was up stays
//! counted ([`ReplicationGroup::leaving`]) until it has said in a heartbeat that it has heard of it, or one lease has
//! passed since this leader saw it: then [`GroupCommand::LetGo`].
//!
//! # Going back
//! With durability `replicated`, when the memory of a group is lost, the leader has the cluster go back to its last
//! complete cut (`go_back`), as soon as every group has a holder of it who is up. The end of a lease is not the end of
//! a process: a group whose last processes are silent, and whose nodes have not registered others, is waited for
//! (`memory_return` of the configuration). They may live, and come back with all they have (rule 35).
//!
//! # Timestamps
//! They must grow over all leaders: a time that a replaced leader gives out after its successor has given out others would be a snapshot without commits that were acknowledged before it was asked for. Two ways lead
//! there: a majority that has followed this leader since it was asked, for each time; or a lease of the leader's own. It is the second, since the first is a round of messages for each snapshot. Whenever a
//! majority has followed this leader ([`Leader::on_confirmed`], which every heartbeat brings), it draws for [`HOLDER_LEASE`] from the moment when that round began; and a new leader draws nothing before one whole
//! [`LEASE`] has passed since it was elected, which was after the last such moment of each before it: some member of that majority has elected it later. The first leader of all does not wait.
//!
//! # Proposals
//! [`Leader::on_tick`] gives what to propose. The same is not given again before `group` shows it, or [`AGAIN`] has
//! passed: proposals may be lost, and all of them may come twice. Call it every 10–20 ms, and at once when the control
//! plane has changed: after `Expire` the next call has the new primaries.

mod followed;
pub mod lease;
pub mod placement;
mod timestamps;

#[cfg(test)]
mod tests;

pub use lease::Lease;

use crate::group::{Group, GroupCommand, Leaving, Life, NodeState, ReplicationGroup, RoleKind};
use followed::Followed;
use placement::DataNodes;
use rauk_types::{GroupId, Member, NodeId, ProcessId, Timestamp, View};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use timestamps::Timestamps;

/// How often a process asks for its lease.
pub const HEARTBEAT: Duration = Duration::from_millis(50);
/// Counted by the leader from a request's arrival.
pub const LEASE: Duration = Duration::from_millis(300);
/// Counted by the holder from sending: 10 % less, for clocks that drift.
pub const HOLDER_LEASE: Duration = Duration::from_millis(270);
/// Of the consensus: there is no leader before it.
const FIRST_TERM: u64 = 1;
/// Who has been heard within this is taken to be alive: nobody is struck in favour of one who has not. Three heartbeats, and half a lease.
pub const FRESH: Duration = Duration::from_millis(150);
/// A process that has registered has so long to ask for its first lease.
pub const FIRST: Duration = Duration::from_secs(1);
/// What was proposed and does not show is proposed again after this.
pub const AGAIN: Duration = Duration::from_secs(1);
/// A leader whose calls come late one after another listens before it takes anybody for gone, but not for longer than this.
pub const SLOW: Duration = Duration::from_secs(1);
/// Between two primaries that are moved to where they are preferred, once there are tables.
pub const MOVE_PAUSE: Duration = Duration::from_millis(500);

/// What becomes of a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The lease is granted; the answer names the index of the leader's last committed command.
    Granted,
    /// This process has ended as far as the control plane is concerned, for ever: it must register again
    /// ([`Lease::on_refused`]).
    Refused,
    /// Nothing is said about it: this leader has not begun its term yet, is replaced, or knows less than the asking process. Ask again.
    NotNow,
}

/// A proposal that is under way. What names a version is settled by another version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Proposal {
    Term,
    Expire(ProcessId),
    Timestamps(u64),
    Lead(GroupId, u64),
    Relieve(GroupId, u64),
    Place(GroupId, u64),
    Recover(u64),
    LetGo(GroupId, u64),
}

/// A term of leadership. Made new for each term, and only one for each; nothing is carried over.
#[derive(Debug)]
pub struct Leader {
    term: u64,
    /// The process that it runs in.
    own: ProcessId,
    began: Duration,
    /// When the newest round began in which a majority has followed this leader.
    confirmed: Option<Duration>,
    followed: Followed,
    /// The last call of [`Leader::on_tick`].
    ticked: Duration,
    /// The first and the last of the late calls that have come one after another.
    late: Option<(Duration, Duration)>,
    /// Ends of the leases granted in this term, also those of processes that have been followed by newer ones.
    leases: BTreeMap<ProcessId, Duration>,
    /// What each process has applied, as far as it has said.
    known: BTreeMap<ProcessId, u64>,
    /// Until when a process is to have asked for its first lease in this term.
    first: BTreeMap<ProcessId, Duration>,
    /// Of whom `Expire` has been proposed: never granted anything again.
    expired: BTreeSet<ProcessId>,
    /// When a node was first seen down.
    down: BTreeMap<NodeId, Duration>,
    /// Replication groups without a primary: version, and index of the control plane at which they were first seen so.
    vacant: BTreeMap<GroupId, (u64, u64)>,
    /// Members that were struck while they were up: when they were first seen so, and the control plane's index then.
    leaving: BTreeMap<(GroupId, Leaving), (Duration, u64)>,
    proposed: BTreeMap<Proposal, Duration>,
    moved: Option<Duration>,
    /// Since when groups have no memory: the last process that had it may only be silent, and come back.
    gone: BTreeMap<GroupId, Duration>,
    /// Index of the control plane and nodes for which there was nothing to place.
    at_rest: Option<(u64, DataNodes)>,
    timestamps: Timestamps,
}

impl Leader {
    /// `now`: when leadership began. Nobody is struck before one whole lease has passed (rule 17). `term`: of the consensus, larger than that of every leader before. `own`: the process that it runs in.
    pub fn new(now: Duration, term: u64, own: ProcessId, group: &Group) -> Leader {
        let up = group.nodes.values().filter(|n| n.life == Life::Up);
        Leader {
            term,
            own,
            began: now,
            confirmed: None,
            followed: Followed::default(),
            ticked: now,
            late: None,
            leases: BTreeMap::new(),
            known: BTreeMap::new(),
            // Awaited for no longer than a lease that was granted before this term can last.
            first: up.map(|n| (n.process, now + LEASE)).collect(),
            expired: BTreeSet::new(),
            down: BTreeMap::new(),
            vacant: BTreeMap::new(),
            leaving: BTreeMap::new(),
            proposed: BTreeMap::new(),
            moved: None,
            gone: BTreeMap::new(),
            at_rest: None,
            timestamps: Timestamps::default(),
        }
    }

    /// A process asked for its lease at `arrived`, and a majority has followed this leader after that (rule 17: the caller has seen to it).
    pub fn on_heartbeat(&mut self, arrived: Duration, member: Member, group: &Group) -> Heard {
        if group.term != self.term {
            return Heard::NotNow;
        }
        match group.nodes.get(&member.node) {
            // Its number was given, so the node was there once.
            None if (1..group.next_node).contains(&member.node.0) => Heard::Refused,
            Some(n) if n.process > member.process => Heard::Refused,
            Some(n) if n.process == member.process && n.life != Life::Up => Heard::Refused,
            Some(n) if n.process == member.process && !self.expired.contains(&n.process) => {
                let end = self.leases.entry(member.process).or_default();
                *end = (*end).max(arrived + LEASE);
                Heard::Granted
            }
            // Its registration has not come here yet; or the control plane will say that it has ended, and has not yet.
            _ => Heard::NotNow,
        }
    }

    /// A process says (with its heartbeat) that it has applied the control plane's commands up to `index`. Only makes
    /// changes faster: gives whether a group that it led can have another primary by that, or one that it followed go
    /// on without it, so that a look is worthwhile at once.
    pub fn on_known(&mut self, member: Member, index: u64, group: &Group) -> bool {
        let known = self.known.entry(member.process).or_default();
        let news = index > *known;
        *known = (*known).max(index);
        news && group.replication_groups.iter().any(|p| p.former == Some(member) || p.is_leaving(member))
    }

    /// Commands to propose now: the ends of leases, new primaries, placement (missing replicas, moves in small numbers, primaries to where they are preferred), the timestamp bound. What was
    /// proposed and is under way is not proposed again before `group` shows it or a second has passed.
    pub fn on_tick(&mut self, now: Duration, group: &Group) -> Vec<GroupCommand> {
        let mut out = Vec::new();
        self.notice_pause(now);
        if let Some(confirmed) = self.confirmed {
            self.followed.look(now, confirmed);
        }
        if group.term > self.term {
            return out;
        }
        self.proposed.retain(|proposal, at| under_way(proposal, group) && now < at.saturating_add(AGAIN));
        if group.term < self.term {
            if self.may_propose(now, Proposal::Term) {
                out.push(GroupCommand::Term { number: self.term });
            }
            return out;
        }
        if group.config.is_none() {
            return out;
        }
        self.observe(now, group);
        self.end_leases(now, group, &mut out);
        if let Some(bound) = self.timestamps.wanted(group)
            && self.may_propose(now, Proposal::Timestamps(bound))
        {
            out.push(GroupCommand::Timestamps { bound });
        }
        self.go_back(now, group, &mut out);
        let nodes = self.data_nodes(now, group);
        self.name_primaries(now, group, &nodes, &mut out);
        self.let_go(now, group, &mut out);
        self.place(now, group, &nodes, &mut out);
        self.move_primary(now, group, &nodes, &mut out);
        out
    }

    /// A majority has followed this leader after `asked`, in this term.
    pub fn on_confirmed(&mut self, asked: Duration) {
        self.confirmed = self.confirmed.max(Some(asked));
    }

    /// A snapshot time above all that were given out, by this leader and those before. `None`: no majority has followed this leader lately ([`Leader::on_confirmed`]), those before it may still draw, the term has not
    /// begun or has ended, or the bound has not been raised yet (a command of `on_tick` does that). Many may share one (rule 14: the request came after the statement began).
    pub fn draw_timestamp(&mut self, now: Duration, group: &Group) -> Option<Timestamp> {
        let is_followed = self.confirmed.is_some_and(|asked| now < asked + HOLDER_LEASE);
        let is_alone = self.term == FIRST_TERM || self.settled(now);
        if group.term != self.term || !is_followed || !is_alone {
            return None;
        }
        self.timestamps.draw(group)
    }

    /// Whatever is drawn from now on is above this.
    pub fn drawn(&self) -> Timestamp {
        self.timestamps.drawn()
    }

    /// Marks it as proposed, unless it is under way.
    fn may_propose(&mut self, now: Duration, proposal: Proposal) -> bool {
        if self.proposed.contains_key(&proposal) {
            return false;
        }
        self.proposed.insert(proposal, now);
        true
    }

    fn has_lease(&self, now: Duration, process: ProcessId) -> bool {
        !self.expired.contains(&process) && self.leases.get(&process).is_some_and(|end| now < *end)
    }

    /// Whether everything that this leader's predecessors granted has ended.
    fn settled(&self, now: Duration) -> bool {
        now >= self.began + LEASE
    }

    /// Time in which this process was not run is not counted as others' silence.
    fn notice_pause(&mut self, now: Duration) {
        let gap = now.saturating_sub(self.ticked);
        let before = std::mem::replace(&mut self.ticked, now);
        if gap <= FRESH {
            return;
        }
        let first = self.late.filter(|(_, last)| before < *last + LEASE).map_or(now, |(first, _)| first);
        self.late = Some((first, now));
        if self.listens(now) {
            self.down.values_mut().chain(self.gone.values_mut()).for_each(|since| *since += gap);
        }
    }

    /// Whether what was sent while this process was not run may still have to be read.
    fn listens(&self, now: Duration) -> bool {
        self.late.is_some_and(|(first, last)| last < first + SLOW && now < last + FRESH + HEARTBEAT)
    }

    fn observe(&mut self, now: Duration, group: &Group) {
        let up: BTreeSet<ProcessId> = group.nodes.values().filter(|n| n.life == Life::Up).map(|n| n.process).collect();
        self.first.retain(|process, _| up.contains(process));
        for process in &up {
            self.first.entry(*process).or_insert(now + FIRST);
        }
        self.known.retain(|process, _| up.contains(process));
        self.expired.retain(|process| up.contains(process));
        self.leases.retain(|process, end| up.contains(process) || now < *end);
        let is_down = |node: &NodeId| group.nodes.get(node).is_some_and(|n| n.life == Life::Down);
        self.down.retain(|node, _| is_down(node));
        for node in group.nodes.keys().filter(|n| is_down(n)) {
            self.down.entry(*node).or_insert(now);
        }
        self.vacant.retain(|p, (version, _)| {
            group.replication_group(*p).is_some_and(|state| state.primary.is_none() && state.version == *version)
        });
        let leaves =
            |p: &GroupId, l: &Leaving| group.replication_group(*p).is_some_and(|state| state.leaving.contains(l));
        self.leaving.retain(|(id, leaving), _| leaves(id, leaving));
        for (number, state) in (0..).zip(&group.replication_groups) {
            for leaving in &state.leaving {
                self.leaving.entry((GroupId(number), *leaving)).or_insert((now, group.index));
            }
        }
        for (number, state) in (0..).zip(&group.replication_groups).filter(|(_, state)| state.primary.is_none()) {
            self.vacant.entry(GroupId(number)).or_insert((state.version, group.index));
        }
    }

    fn end_leases(&mut self, now: Duration, group: &Group, out: &mut Vec<GroupCommand>) {
        if !self.settled(now) || self.listens(now) || self.followed.waits(now) {
            return;
        }
        let has_ended = |member: &Member| {
            let first = || self.first.get(&member.process).copied().unwrap_or(Duration::MAX);
            let end = self.leases.get(&member.process).copied().unwrap_or_else(first);
            now >= end || self.expired.contains(&member.process)
        };
        // Of whom it was said already it is said again: a process that is granted nothing more must begin anew.
        let stays = |member: &Member| {
            member.process == self.own && !self.expired.contains(&member.process) && self.is_alone(group)
        };
        let up = group.nodes.keys().filter_map(|node| group.member(*node));
        let mut ended: BTreeSet<Member> = up.filter(|member| has_ended(member) && !stays(member)).collect();
        // Who shares a group with one that may be dead too waits for what becomes of that one; and so on.
        loop {
            let must_wait = |m: &Member| group.is_member(*m) && !ended.contains(m) && !self.is_fresh(now, m.process);
            let doubtful = group.replication_groups.iter().filter(|p| p.in_sync.iter().any(must_wait));
            let waiting: Vec<Member> =
                doubtful.flat_map(|p| &p.in_sync).filter(|m| ended.contains(m)).copied().collect();
            if waiting.is_empty() {
                break;
            }
            ended.retain(|m| !waiting.contains(m));
        }
        let due = ended.iter().filter(|m| self.may_propose(now, Proposal::Expire(m.process))).count();
        if due > 0 {
            // All that have ended, also those of whom it was said already: that may have been lost, and one must not go on as the last because of it.
            self.expired.extend(ended.iter().map(|m| m.process));
            out.push(GroupCommand::Expire { term: self.term, members: ended.into_iter().collect() });
        }
    }

    /// Whether no process with rows or clients is up but the one that this leader runs in.
    fn is_alone(&self, group: &Group) -> bool {
        let works = |n: &NodeState| n.life == Life::Up && (n.has(RoleKind::Data) || n.has(RoleKind::Sql));
        group.nodes.values().filter(|n| works(n)).all(|n| n.process == self.own)
    }

    /// Whether the process asked for its lease lately.
    fn is_fresh(&self, now: Duration, process: ProcessId) -> bool {
        self.leases.get(&process).is_some_and(|end| now + LEASE < *end + FRESH)
    }

    /// Durability `replicated`: where the memory of a group is gone, the cluster goes back to its last cut. As soon as
    /// every group has a holder of that cut who is up; nobody else can bring it back.
    fn go_back(&mut self, now: Duration, group: &Group, out: &mut Vec<GroupCommand>) {
        let without = |id: GroupId| group.replication_group(id).filter(|state| group.has_no_memory(state));
        self.gone.retain(|id, _| without(*id).is_some());
        let numbers = (0..group.replication_groups.len() as u16).map(GroupId);
        for id in numbers.filter(|id| without(*id).is_some()) {
            self.gone.entry(id).or_insert(now);
        }
        let patience = group.config.as_ref().map_or(0, |config| config.memory_return);
        let patience = Duration::from_secs(patience.into());
        let is_lost = |(id, since): (&GroupId, &Duration)| {
            now >= *since + patience || without(*id).is_some_and(|state| group.is_memory_lost(state))
        };
        if !self.gone.iter().any(is_lost) {
            return;
        }
        let is_up = |node: &NodeId| group.member(*node).is_some();
        let has_holder = |(number, state): (u16, &ReplicationGroup)| match group.cut.holders.get(usize::from(number)) {
            Some(holders) => holders.iter().any(is_up),
            None => state.placed.iter().any(is_up),
        };
        let number = group.recovery.number + 1;
        if (0..).zip(&group.replication_groups).all(has_holder) && self.may_propose(now, Proposal::Recover(number)) {
            out.push(GroupCommand::Recover { number });
        }
    }

    fn data_nodes(&self, now: Duration, group: &Group) -> DataNodes {
        let mut nodes = DataNodes::default();
        let replace_after =
            group.config.as_ref().map_or(Duration::MAX, |c| Duration::from_secs(c.replace_after.into()));
        for (node, state) in group.nodes.iter().filter(|(_, n)| n.has(RoleKind::Data)) {
            let grace = |since: &Duration| now < since.saturating_add(replace_after);
            let kept = match state.life {
                Life::Up => true,
                Life::Down => self.down.get(node).is_none_or(grace),
                Life::Absent => false,
            };
            if kept {
                nodes.kept.insert(*node);
            }
            if state.life == Life::Up && self.has_lease(now, state.process) {
                nodes.able.insert(*node);
            }
        }
        nodes
    }

    /// Whether nobody can believe any more to lead this group, which has no primary.
    fn is_free(&self, now: Duration, id: GroupId, state: &ReplicationGroup) -> bool {
        let Some(former) = state.former else { return true };
        let has_heard = || {
            let known = self.known.get(&former.process);
            known.zip(self.vacant.get(&id)).is_some_and(|(known, (_, index))| known >= index)
        };
        has_heard() || self.settled(now) && self.leases.get(&former.process).is_none_or(|end| now >= *end)
    }

    /// Members that were struck while they were up, and now know it, or hold no lease any more without knowing it: grants given before the strike were asked for before it was seen here, those given
    /// since count only for who knows of it (rule 16).
    fn let_go(&mut self, now: Duration, group: &Group, out: &mut Vec<GroupCommand>) {
        for (number, state) in (0..).zip(&group.replication_groups).filter(|(_, state)| !state.leaving.is_empty()) {
            let id = GroupId(number);
            let has_gone = |leaving: &&Leaving| {
                let (since, index) = self.leaving.get(&(id, **leaving)).copied().unwrap_or((now, group.index));
                self.known.get(&leaving.member.process).is_some_and(|known| *known >= index) || now >= since + LEASE
            };
            let members: Vec<Leaving> = state.leaving.iter().filter(has_gone).copied().collect();
            let version = state.version;
            // Where a change is under way already this one would only make that one void, or be made void.
            let busy = [Proposal::Lead(id, version), Proposal::Relieve(id, version), Proposal::Place(id, version)];
            if !members.is_empty()
                && busy.iter().all(|p| !self.proposed.contains_key(p))
                && self.may_propose(now, Proposal::LetGo(id, version))
            {
                out.push(GroupCommand::LetGo { group: id, version, members });
            }
        }
    }

    fn name_primaries(&mut self, now: Duration, group: &Group, nodes: &DataNodes, out: &mut Vec<GroupCommand>) {
        let mut led: BTreeMap<NodeId, usize> = BTreeMap::new();
        for primary in group.replication_groups.iter().filter_map(|p| p.primary) {
            *led.entry(primary.node).or_default() += 1;
        }
        for (number, state) in (0..).zip(&group.replication_groups).filter(|(_, p)| p.primary.is_none()) {
            let id = GroupId(number);
            if !self.is_free(now, id, state) {
                continue;
            }
            let members: Vec<Member> = match state.view == View::default() {
                true => state.placed.iter().filter_map(|node| group.member(*node)).collect(),
                false => {
                    let doubtful = state.doubtful.iter().map(|d| d.member);
                    let members = state.in_sync.iter().copied().chain(doubtful);
                    members.filter(|m| group.is_member(*m) && state.may_lead(*m)).collect()
                }
            };
            let wanted: Vec<NodeId> = placement::wanted(group, id, state, nodes).collect();
            let rank = |m: &Member| {
                let count = led.get(&m.node).copied().unwrap_or_default();
                (state.placed.first() != Some(&m.node), !wanted.contains(&m.node), count, m.node)
            };
            // Who begins without others is to be alive.
            let mut others = state.in_sync.iter().copied().chain(state.doubtful.iter().map(|d| d.member));
            let alone = others.any(|m| !group.is_member(m));
            let fit = |m: &Member| self.has_lease(now, m.process) && (!alone || self.is_fresh(now, m.process));
            let able = members.into_iter().filter(fit);
            let Some(member) = able.min_by_key(rank) else { continue };
            if self.may_propose(now, Proposal::Lead(id, state.version)) {
                *led.entry(member.node).or_default() += 1;
                out.push(GroupCommand::Lead { group: id, version: state.version, member });
            }
        }
    }

    fn place(&mut self, now: Duration, group: &Group, nodes: &DataNodes, out: &mut Vec<GroupCommand>) {
        // A plan rests on what the control plane shows: while one is under way, another would count the same things
        // twice.
        if self.proposed.keys().any(|proposal| matches!(proposal, Proposal::Place(..))) {
            return;
        }
        if self.at_rest.as_ref().is_some_and(|(index, at)| *index == group.index && at == nodes) {
            return;
        }
        let plan = placement::plan(group, nodes);
        self.at_rest = plan.is_empty().then(|| (group.index, nodes.clone()));
        for (id, placed) in plan {
            let Some(state) = group.replication_group(id) else { continue };
            let version = state.version;
            // Where a change is under way already this one would only make that one void, or be made void.
            let busy = [Proposal::Lead(id, version), Proposal::Relieve(id, version), Proposal::LetGo(id, version)];
            if busy.iter().all(|p| !self.proposed.contains_key(p))
                && self.may_propose(now, Proposal::Place(id, version))
            {
                out.push(GroupCommand::Place { group: id, version, nodes: placed });
            }
        }
    }

    fn move_primary(&mut self, now: Duration, group: &Group, nodes: &DataNodes, out: &mut Vec<GroupCommand>) {
        let all = group.holds_nothing();
        let rested = self.moved.is_none_or(|at| now >= at.saturating_add(MOVE_PAUSE));
        // One that is on its way is led again before the next goes.
        let on_its_way = || group.replication_groups.iter().any(|p| p.primary.is_none() && p.former.is_some());
        if !self.settled(now) || !all && (!rested || on_its_way()) {
            return;
        }
        for (number, state) in (0..).zip(&group.replication_groups) {
            let id = GroupId(number);
            let has_lease = |node| group.member(node).is_some_and(|m| self.has_lease(now, m.process));
            let better = placement::is_misled(group, id, state, nodes, has_lease);
            let placing = self.proposed.contains_key(&Proposal::Place(id, state.version));
            if better
                && !placing
                && state.leaving.is_empty()
                && group.assignment(id).joining.is_empty()
                && self.may_propose(now, Proposal::Relieve(id, state.version))
            {
                self.moved = Some(now);
                out.push(GroupCommand::Relieve { group: id, version: state.version });
                if !all {
                    return;
                }
            }
        }
    }
}

/// Whether the control plane does not show yet what became of a proposal.
fn under_way(proposal: &Proposal, group: &Group) -> bool {
    let at = |id: &GroupId, version: &u64| group.replication_group(*id).is_some_and(|p| p.version == *version);
    match proposal {
        Proposal::Term | Proposal::Expire(_) => true,
        Proposal::Recover(number) => group.recovery.number < *number,
        Proposal::Timestamps(bound) => group.timestamp_bound < *bound,
        Proposal::Lead(id, version)
        | Proposal::Relieve(id, version)
        | Proposal::LetGo(id, version)
        | Proposal::Place(id, version) => at(id, version),
    }
}
