//! Nodes, network, control plane, and what is checked all the time.
//!
//! *Truth* is the list of entries that some primary has called stable. Checked whenever something happens: the same position is never called stable with another entry; no
//! log record cuts an entry of the truth; who becomes primary has all of the truth, and its contents are those that follow from it; so has who is taken in, and who comes back
//! as in-sync member out of a crash; memory stays within limits; a view has one primary.

use super::super::*;
use super::node::{GROUP, Medium, Node};
use super::table::{Change, Content, KEYS, Table};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rauk_types::{Member, NodeId, ProcessId};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How bad things are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Of a hundred messages.
    pub lost: u32,
    pub doubled: u32,
}

pub struct Group {
    version: u64,
    view: View,
    pub primary: Option<Member>,
    pub in_sync: Vec<Member>,
    pub placed: BTreeSet<NodeId>,
    pub up: BTreeMap<NodeId, ProcessId>,
    next_process: u32,
}

impl Group {
    fn assignment(&self) -> Assignment {
        let members = self.placed.iter().filter_map(|node| Some(Member { node: *node, process: *self.up.get(node)? }));
        Assignment {
            group: GROUP,
            version: self.version,
            view: self.view,
            primary: self.primary,
            in_sync: self.in_sync.clone(),
            joining: members.filter(|member| !self.in_sync.contains(member)).collect(),
        }
    }

    pub fn is_up(&self, member: Member) -> bool {
        self.up.get(&member.node) == Some(&member.process)
    }
}

/// How often things happened: so that schedules in which nothing happens are noticed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub stable: usize,
    pub views: usize,
    pub joins: usize,
    pub strikes: usize,
    pub copies: usize,
    pub resets: usize,
    pub cuts: usize,
    pub crashes: usize,
    pub discards: usize,
    pub stops: usize,
    pub begun_again: usize,
}

pub struct World {
    pub rng: StdRng,
    pub now: Duration,
    pub limits: Limits,
    pub faults: Faults,
    pub nodes: Vec<Node>,
    pub group: Group,
    pub wires: Vec<(Member, Member, Message)>,
    /// Second copies of messages, that come at any time.
    pub late: Vec<(Member, Member, Message)>,
    pub requests: Vec<Output>,
    /// One-way.
    pub cut_links: BTreeSet<(NodeId, NodeId)>,
    pub truth: Vec<Entry>,
    pub counts: Counts,
    leaders: BTreeMap<View, Member>,
    next_value: u64,
}

impl World {
    pub fn new(seed: u64, nodes: u16, placed: u16, limits: Limits, faults: Faults) -> World {
        let nodes: Vec<Node> =
            (1..=nodes).map(|id| Node { id: NodeId(id), medium: Medium::default(), process: None }).collect();
        let group = Group {
            version: 1,
            view: View(0),
            primary: None,
            in_sync: Vec::new(),
            placed: (1..=placed).map(NodeId).collect(),
            up: BTreeMap::new(),
            next_process: 1,
        };
        let mut world = World {
            rng: StdRng::seed_from_u64(seed),
            now: Duration::from_secs(1),
            limits,
            faults,
            nodes,
            group,
            wires: Vec::new(),
            late: Vec::new(),
            requests: Vec::new(),
            cut_links: BTreeSet::new(),
            truth: Vec::new(),
            counts: Counts::default(),
            leaders: BTreeMap::new(),
            next_value: 0,
        };
        for at in 0..world.nodes.len() {
            world.start(at);
        }
        // The group names the first members of an empty partition.
        let first: Vec<NodeId> = world.group.placed.iter().copied().take(world.rng.random_range(1..=2)).collect();
        world.group.in_sync = first.iter().map(|node| Member { node: *node, process: world.group.up[node] }).collect();
        world.group_lead();
        world
    }

    // ---- the control plane

    fn publish(&mut self) {
        let assignment = self.group.assignment();
        for process in self.nodes.iter_mut().filter_map(|node| node.process.as_mut()) {
            process.news.push_back(assignment.clone());
        }
    }

    pub fn group_lead(&mut self) {
        let able: Vec<Member> = self.group.in_sync.iter().copied().filter(|m| self.group.is_up(*m)).collect();
        if able.is_empty() {
            return;
        }
        let primary = able[self.rng.random_range(0..able.len())];
        self.group.version += 1;
        self.group.view.0 += 1;
        self.group.primary = Some(primary);
        self.counts.views += 1;
        self.publish();
    }

    pub fn group_down(&mut self, node: NodeId) {
        let Some(process) = self.group.up.remove(&node) else { return };
        let member = Member { node, process };
        if self.group.in_sync.contains(&member) || self.group.primary == Some(member) {
            self.group.version += 1;
        }
        if self.group.in_sync.len() > 1 {
            self.group.in_sync.retain(|other| *other != member);
        }
        if self.group.primary == Some(member) {
            self.group.primary = None;
        }
        self.publish();
    }

    /// A primary that has stopped gives way.
    pub fn group_withdraw(&mut self, member: Member) {
        self.group.version += 1;
        self.group.in_sync.retain(|other| *other != member);
        self.group.primary = None;
        self.publish();
    }

    /// Another set of nodes is to hold the partition.
    pub fn group_place(&mut self, count: usize) {
        let mut placed: BTreeSet<NodeId> = self.group.primary.iter().map(|primary| primary.node).collect();
        while placed.len() < count {
            placed.insert(NodeId(self.rng.random_range(1..=self.nodes.len() as u16)));
        }
        let stays = |member: &Member| placed.contains(&member.node);
        if self.group.in_sync.iter().any(stays) {
            self.group.in_sync.retain(stays);
            self.group.version += 1;
            self.group.placed = placed;
            self.publish();
        }
    }

    /// One of the requests arrives.
    pub fn group_request(&mut self) {
        if self.requests.is_empty() {
            return;
        }
        let at = self.rng.random_range(0..self.requests.len());
        let request =
            if self.rng.random_ratio(1, 8) { self.requests[at].clone() } else { self.requests.swap_remove(at) };
        match request {
            Output::RequestJoin { version, member } => {
                let new = !self.group.in_sync.contains(&member);
                if version == self.group.version
                    && self.group.is_up(member)
                    && self.group.placed.contains(&member.node)
                    && new
                {
                    self.group.version += 1;
                    self.group.in_sync.push(member);
                    self.counts.joins += 1;
                    self.check_has_truth(member.node, "was taken in");
                    self.check_disk(member.node);
                    self.publish();
                }
            }
            Output::RequestStrike { version, member } => {
                let there = self.group.in_sync.contains(&member) && self.group.primary != Some(member);
                if version == self.group.version && there && self.group.in_sync.len() > 1 {
                    self.group.version += 1;
                    self.group.in_sync.retain(|other| *other != member);
                    self.counts.strikes += 1;
                    self.publish();
                }
            }
            other => panic!("not a request: {other:?}"),
        }
    }

    // ---- nodes

    pub fn start(&mut self, at: usize) {
        let process = ProcessId(self.group.next_process);
        self.group.next_process += 1;
        let id = self.nodes[at].id;
        let whole = self.nodes[at].start(process, self.limits);
        let me = Member { node: id, process };
        let old = self.group.in_sync.iter().position(|member| member.node == id);
        self.group.up.insert(id, process);
        if self.group.primary.is_some_and(|primary| primary.node == id) {
            self.group.primary = None;
            self.group.version += 1;
        }
        if let Some(old) = old {
            self.group.version += 1;
            if whole {
                self.group.in_sync[old] = me;
            } else {
                self.group.in_sync.remove(old);
                assert!(!self.group.in_sync.is_empty(), "the last in-sync member {id:?} has lost its contents");
            }
        }
        if self.group.in_sync.contains(&me) {
            self.check_has_truth(id, "came back in-sync");
        }
        self.publish();
    }

    pub fn crash(&mut self, at: usize) {
        let World { nodes, rng, counts, .. } = self;
        if nodes[at].process.is_some() {
            counts.crashes += 1;
            if !self.limits.durable {
                nodes[at].medium.synced = nodes[at].medium.log.len(); // it is stopped in good order
            }
            nodes[at].crash(rng);
        }
    }

    /// Does something with the block of a node, and carries out what it wants.
    pub fn act(&mut self, at: usize, action: impl FnOnce(&mut Replica, Duration, &mut Outbox)) {
        let mut out = Outbox::new();
        let Some(process) = self.nodes[at].process.as_mut() else { return };
        action(&mut process.replica, self.now, &mut out);
        let me = process.me;
        let kept = process.replica.kept_bytes();
        let most = self.limits.kept_bytes as u64 + process.replica.unstable_bytes();
        assert!(kept <= most, "{me:?} keeps {kept} bytes of at most {most}");
        for output in out {
            self.output(at, me, output);
        }
    }

    fn output(&mut self, at: usize, me: Member, output: Output) {
        let process = self.nodes[at].process.as_mut().unwrap();
        match output {
            Output::Send { to, message } => {
                assert!(to != me, "a message to itself");
                if let Message::Append { entries, .. } = &message {
                    let bytes: usize = entries.iter().map(|entry| entry.record.len() + 96).sum();
                    assert!(bytes < self.limits.append_bytes + 200, "an append of {bytes} bytes");
                }
                if self.rng.random_ratio(self.faults.doubled, 100) {
                    self.late.push((me, to, message.clone()));
                }
                if !self.rng.random_ratio(self.faults.lost, 100) && !self.cut_links.contains(&(me.node, to.node)) {
                    self.wires.push((me, to, message));
                }
            }
            Output::Log { record, number } => {
                if let LogRecord::Entry { entry, .. } = &record {
                    let from = (entry.id.position.0 - process.shadow_base - 1) as usize;
                    for void in process.shadow.get(from..).unwrap_or_default() {
                        let truth = self.truth.get(void.id.position.0 as usize - 1);
                        assert!(truth != Some(void), "{me:?} cuts the stable entry {:?}", void.id);
                        self.counts.cuts += 1;
                    }
                }
                self.nodes[at].log(record, number);
            }
            Output::Received { entry } => process.content.entry(entry.id.position, &entry.record),
            Output::Cut { after } => process.content.cut(after),
            Output::Stable { upto } => {
                let (base, old) = (process.shadow_base, process.content.table.stable);
                let leads = matches!(process.replica.role(), Role::Opening | Role::Primary);
                for position in old.max(base) + 1..=upto.0 {
                    let entry = &process.shadow[(position - base - 1) as usize];
                    if position as usize == self.truth.len() + 1 {
                        assert!(leads, "{me:?} knows before all primaries that {:?} is stable", entry.id);
                        self.truth.push(entry.clone());
                        self.counts.stable += 1;
                    }
                    let truth = self.truth.get(position as usize - 1);
                    assert_eq!(truth, Some(entry), "{me:?} has another stable entry");
                }
                assert!(upto.0 as usize <= self.truth.len());
                process.content.stable(upto);
            }
            Output::Reset { state } => {
                process.content.reset(&state);
                self.counts.resets += 1;
                assert!(!self.group.in_sync.contains(&me), "an in-sync member is emptied");
            }
            Output::Install { rows } => process.content.install(&rows),
            Output::Finish => self.counts.copies += 1,
            Output::ReadSlice { .. } | Output::ReadState { .. } => process.reads.push(output),
            Output::Damaged => {
                assert!(!self.group.in_sync.contains(&me), "an in-sync member is emptied");
                let mut out = Outbox::new();
                let last = process.replica.last().position.0;
                let state =
                    Content { table: Table { last, stable: last, ..Table::default() }, ..Content::default() }.state();
                assert!(process.replica.discard(self.now, state.clone(), &mut out));
                process.content.reset(&state);
                self.counts.discards += usize::from(!process.stopped);
                self.counts.begun_again += usize::from(std::mem::take(&mut process.stopped));
                out.into_iter().for_each(|output| self.output(at, me, output));
            }
            Output::RequestJoin { member, .. } => {
                // Of one that has stopped since it may be repeated: nobody knows whether it was heard.
                let excluded = process.replica.is_excluded(member);
                let stopped = self.is_stopped(usize::from(member.node.0) - 1);
                assert!(!excluded || stopped, "{member:?} is damaged and is to be taken in");
                self.requests.push(output);
            }
            Output::RequestStrike { .. } => self.requests.push(output),
            Output::Role { role: Role::Primary, view } => {
                assert_eq!(*self.leaders.entry(view).or_insert(me), me, "{view:?} has two primaries");
                // One that does not know that it was replaced may get here late, and has no entries of newer views.
                if self.truth.last().is_none_or(|entry| entry.id.view <= view) {
                    let id = self.nodes[at].id;
                    self.check_has_truth(id, "became primary");
                }
            }
            Output::Lacking { .. } | Output::Discards { .. } => {
                panic!("{me:?} is said to lack what is stable, and no disk has gone back: {output:?}")
            }
            Output::Role { .. } | Output::Progress { .. } => {}
        }
    }

    /// Proposes at whoever believes to be primary there.
    pub fn propose(&mut self, at: usize) {
        let value = self.rng.random_ratio(4, 5).then_some(self.next_value);
        self.next_value += 1;
        let (key, padding) = (self.rng.random_range(0..KEYS), self.rng.random_range(0..60));
        let record = Change { key, value }.encode(padding);
        let Some(process) = self.nodes[at].process.as_mut().filter(|p| !p.content.is_locked(key)) else { return };
        let mut out = Outbox::new();
        let Some(id) = process.replica.propose(self.now, record.clone(), &mut out) else {
            assert!(out.is_empty());
            return;
        };
        process.content.entry(id.position, &record);
        self.act(at, |_, _, outbox| *outbox = out);
    }

    /// One message arrives somewhere.
    pub fn deliver(&mut self, which: usize) {
        let (from, to, message) = self.wires.remove(which);
        let at = to.node.0 as usize - 1;
        if self.nodes[at].process.as_ref().is_some_and(|process| process.me == to) {
            // What goes over the wire can be written and read.
            let bytes = postcard::to_stdvec(&message).unwrap();
            let message = postcard::from_bytes(&bytes).unwrap();
            self.act(at, |replica, now, out| replica.on_message(now, from, message, out));
        }
    }

    /// A message arrives that has been under way for long.
    pub fn deliver_late(&mut self) {
        if !self.late.is_empty() {
            let which = self.rng.random_range(0..self.late.len());
            let message = self.late.swap_remove(which);
            self.wires.push(message);
            self.deliver(self.wires.len() - 1);
        }
    }

    pub fn sync(&mut self, at: usize, all: bool) {
        let medium = &self.nodes[at].medium;
        let upto = if all { medium.log.len() } else { self.rng.random_range(medium.synced..=medium.log.len()) };
        if let Some(number) = self.nodes[at].sync(upto) {
            self.act(at, |replica, now, out| replica.on_durable(now, number, out));
        }
    }

    pub fn hear(&mut self, at: usize) {
        let Some(news) = self.nodes[at].process.as_mut().and_then(|process| process.news.pop_front()) else { return };
        self.act(at, |replica, now, out| replica.on_assignment(now, &news, out));
    }

    /// Reads a slice or a state that was asked for.
    pub fn read(&mut self, at: usize) {
        let count = self.rng.random_range(1..4);
        let Some(process) = self.nodes[at].process.as_mut() else { return };
        if process.reads.is_empty() {
            return;
        }
        match process.reads.remove(0) {
            Output::ReadState { to } => {
                let state = process.content.state();
                self.act(at, |replica, now, out| replica.on_copy_state(now, to, state, out));
            }
            Output::ReadSlice { to, copy, cursor } => {
                let (rows, next) = process.content.slice(&cursor, count);
                let last = process.replica.last().position;
                self.act(at, |replica, now, out| replica.on_slice(now, to, copy, last, rows, next, out));
            }
            other => panic!("not a read: {other:?}"),
        }
    }

    // ---- checks

    /// The contents that follow from the truth.
    pub fn model(&self) -> Content {
        let mut content = Content::default();
        for entry in &self.truth {
            content.entry(entry.id.position, &entry.record);
            content.stable(entry.id.position);
        }
        content
    }

    pub fn check_has_truth(&self, node: NodeId, what: &str) {
        let Some(process) = &self.nodes[node.0 as usize - 1].process else { return };
        let last = process.replica.last().position.0 as usize;
        let all = self.truth.len();
        assert!(last >= all, "{node:?} {what} and has {last} entries; {all} are stable");
        for truth in &self.truth[(process.shadow_base as usize).min(all)..] {
            let entry = &process.shadow[(truth.id.position.0 - process.shadow_base - 1) as usize];
            assert_eq!(entry, truth, "{node:?} {what} with another entry");
        }
        let mut content = process.content.clone();
        content.stable(Position(all as u64));
        assert_eq!(content.visible(), self.model().visible(), "{node:?} {what} with wrong rows");
    }

    /// What is stable is on the disk of every in-sync member, whichever process it is and whatever it knows: a crash at this moment would lose nothing.
    pub fn check_disks(&self) {
        for member in &self.group.in_sync {
            self.check_disk(member.node);
        }
    }

    fn check_disk(&self, node: NodeId) {
        if !self.limits.durable {
            return;
        }
        let medium = &self.nodes[node.0 as usize - 1].medium;
        let mut replay = Replay::new(self.limits.kept_bytes);
        let mut steps = Vec::new();
        for record in &medium.log[medium.start..medium.synced] {
            replay.push(record.clone(), &mut steps).unwrap();
        }
        let last = replay.last().position.0 as usize;
        let Some(restored) = replay.finish() else { return assert!(self.truth.is_empty()) };
        let all = self.truth.len();
        assert!(
            restored.contents == Contents::Whole,
            "on the disk of {node:?}, which is in-sync, the contents are partial"
        );
        assert!(last >= all, "on the disk of {node:?}, which is in-sync, are {last} entries; {all} are stable");
        for entry in &restored.kept {
            let truth = self.truth.get(entry.id.position.0 as usize - 1);
            assert!(
                truth.is_none_or(|truth| truth == entry),
                "the disk of {node:?}, which is in-sync, has another entry"
            );
        }
    }

    /// What is missing until all is well; empty: nothing.
    pub fn unwell(&self) -> String {
        for node in &self.nodes {
            if !self.group.placed.contains(&node.id) {
                continue;
            }
            let Some(process) = &node.process else { return format!("{:?} is down", node.id) };
            let replica = &process.replica;
            if process.stopped {
                return format!("{:?} has stopped", process.me);
            }
            let all = Position(self.truth.len() as u64);
            if !self.group.in_sync.contains(&process.me) {
                return format!("{:?} is not in-sync", process.me);
            }
            if replica.stable() != all || replica.last().position != all || replica.contents() != Contents::Whole {
                return format!("{:?} has {:?}, stable {:?} of {all:?}", process.me, replica.last(), replica.stable());
            }
            if process.content.visible() != self.model().visible() || !process.content.table.pending.is_empty() {
                return format!("{:?} has other rows", process.me);
            }
        }
        String::new()
    }
}
