//! Nodes and their processes: who belongs to the cluster, who is up.
//!
//! A *node* is a data directory: it is known by a random number in it, gets its own number once, and keeps it whatever its address becomes. A
//! *process* is one start of a node. Its number is drawn here, is unique in the cluster and grows, and belongs to one start for ever: whatever an
//! older process still says (acknowledgements, leases, proposals) is told apart by it (rule 21).
//!
//! # Life of a process
//! It registers with a nonce (a random number of this start), and is up. It goes down by [`super::GroupCommand::Expire`] (the leader says that its lease
//! has ended) or [`super::GroupCommand::Down`] (it says itself that it has ended). *A process that is down never comes up again.* Its heartbeats are refused, and the node
//! must register again, which gives a new process, also when the operating system's process is still the same one.
//!
//! # A node that was cut off and comes back
//! Its lease ends on its own clock before it ends for the leader, so it has stopped answering by the time others take
//! its groups over. Of the entry that struck it it hears only when the network is back: from the consensus log that it
//! catches up with, and from its next heartbeat, which is refused. It then knows: every transaction that its process
//! coordinated without having prepared is void (locks die with the process), and what it had written as a primary and
//! is not stable may be cut by the views that came after. So it gives up its sessions' transactions (1213), drops all
//! volatile state of the streams (who leads, which acknowledgements), keeps its log, and registers with a new nonce and
//! all groups whose log is whole. It was removed from the in-sync sets in which somebody was up, so there it is a
//! joiner: the primaries bring it what it has missed, cut what it has too much, and it joins again. Where all in-sync
//! members ended with it it has kept its place, the new process stands in it, and can lead in a new view as soon as the
//! leader says so.
//!
//! With durability `replicated` what counts is memory, and the process that was cut off lives and has it. It writes all of it to its disk, notes there that it has done so, and is followed by a process that says
//! whom it follows ([`super::GroupCommand::Succeed`]). That one is registered as if the disk were what counts; every other has lost its memory (rules 26, 34).
//!
//! # Invariants
//! At most one process of a node is up: its newest. Process and node numbers are never used twice. A nonce that comes again (a proposal doubled on
//! the way) gives the process that it gave before, also when newer ones have registered since, and changes nothing.

use super::command::{Answer, Refused};
use super::doubt::End;
use super::{DirectoryState, Group, ReplicationGroup};
use rauk_types::{GroupId, Member, NodeId, ProcessId, TxnId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RoleKind {
    Manage,
    Data,
    Sql,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Life {
    /// Known, no process of it has registered since it was added; or another node has taken its address: it is not coming back there.
    Absent,
    Up,
    /// Its lease has ended.
    Down,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeState {
    /// `host:port` of its cluster port, as others reach it. Empty when another node has taken it.
    pub address: String,
    /// Where MySQL clients reach it, and the native port: for status; empty when it has none.
    pub sql_address: String,
    pub native_address: String,
    pub roles: BTreeSet<RoleKind>,
    /// Of its newest process; zero before the first.
    pub process: ProcessId,
    pub life: Life,
    /// Random number of its data directory: a node is recognised by it.
    pub directory: u64,
    /// Its last starts, by their nonces, the newest last: for registrations that come twice.
    pub starts: VecDeque<(u64, ProcessId)>,
    /// Nonce of the newest start that its directory has on disk: a directory that does not know it is an older copy.
    #[serde(default)]
    pub recorded: Option<u64>,
}

impl NodeState {
    pub fn has(&self, role: RoleKind) -> bool {
        self.roles.contains(&role)
    }
}

/// Starts of a node that are remembered. A registration is proposed again for seconds at most.
const STARTS: usize = 16;
/// Processes have numbers below, so that transactions can carry them.
const MOST_PROCESSES: u32 = 1 << (64 - TxnId::NUMBER_BITS);
const ADDRESS_BYTES: usize = 300;

impl Group {
    /// The newest process of a node, when it is up.
    pub fn member(&self, node: NodeId) -> Option<Member> {
        let state = self.nodes.get(&node)?;
        (state.life == Life::Up).then_some(Member { node, process: state.process })
    }

    pub fn is_up(&self, process: ProcessId) -> bool {
        self.nodes.values().any(|n| n.process == process && n.life == Life::Up)
    }

    /// Whether this is its node's newest process, and up.
    pub fn is_member(&self, member: Member) -> bool {
        self.member(member.node) == Some(member)
    }

    pub(super) fn add_node(
        &mut self,
        directory: u64,
        addresses: [&str; 3],
        roles: &BTreeSet<RoleKind>,
    ) -> Result<Answer, Answer> {
        let [address, sql_address, native_address] = addresses.map(str::to_owned);
        if roles.is_empty() {
            return Err(Answer::Refused(Refused::OutOfRange("a node needs at least one role".into())));
        }
        if addresses.iter().any(|a| a.len() > ADDRESS_BYTES) {
            let text = format!("a node's address is longer than {ADDRESS_BYTES} bytes");
            return Err(Answer::Refused(Refused::OutOfRange(text)));
        }
        let has_it = |n: &NodeState| n.directory != directory && !address.is_empty() && n.address == address;
        if let Some((node, _)) = self.nodes.iter().find(|(_, n)| has_it(n) && n.life == Life::Up) {
            return Err(Answer::Refused(Refused::AddressTaken { address, node: node.0 }));
        }
        let known = self.nodes.iter().find(|(_, n)| n.directory == directory).map(|(id, _)| *id);
        let node = match known {
            Some(node) => node,
            None => {
                let Some(next) = self.next_node.checked_add(1) else {
                    return Err(Answer::Refused(Refused::OutOfRange("all node numbers have been used".into())));
                };
                let node = NodeId(self.next_node);
                self.next_node = next;
                node
            }
        };
        for other in self.nodes.values_mut().filter(|n| has_it(n)) {
            other.address.clear();
            other.life = Life::Absent;
        }
        let state = self.nodes.entry(node).or_insert_with(|| NodeState {
            address: String::new(),
            sql_address: String::new(),
            native_address: String::new(),
            roles: BTreeSet::new(),
            process: ProcessId::default(),
            life: Life::Absent,
            directory,
            starts: VecDeque::new(),
            recorded: None,
        });
        state.address = address;
        state.sql_address = sql_address;
        state.native_address = native_address;
        state.roles.clone_from(roles);
        Ok(Answer::Node(node))
    }

    pub(super) fn register(
        &mut self,
        node: NodeId,
        nonce: u64,
        whole: &[GroupId],
        recovery: u64,
        directory: &DirectoryState,
        successor: Option<(ProcessId, &[GroupId])>,
    ) -> Result<Answer, Answer> {
        let is_replicated = self.is_replicated();
        let state = self.nodes.get(&node).ok_or(Answer::Refused(Refused::NoSuchNode(node.0)))?;
        if let Some((_, process)) = state.starts.iter().find(|(n, _)| *n == nonce) {
            return Ok(Answer::Process(*process));
        }
        self.check_directory(node, directory)?;
        if recovery != self.recovery.number {
            return Err(Answer::Void);
        }
        if self.next_process >= MOST_PROCESSES {
            return Err(Answer::Refused(Refused::OutOfRange("all process numbers have been used".into())));
        }
        let state = self.nodes.get_mut(&node).ok_or(Answer::Refused(Refused::NoSuchNode(node.0)))?;
        let before = state.process;
        let member = Member { node, process: ProcessId(self.next_process) };
        self.next_process += 1;
        state.process = member.process;
        state.life = Life::Up;
        state.starts.push_back((nonce, member.process));
        if directory.starts.is_some() {
            state.recorded = Some(nonce);
        }
        if state.starts.len() > STARTS {
            state.starts.pop_front();
        }
        self.forget_process(before);
        let whole: BTreeSet<GroupId> = whole.iter().copied().collect();
        // Where memory counts only a successor has kept it, and only that of the process before.
        let kept: BTreeSet<GroupId> = match successor.filter(|(predecessor, _)| *predecessor == before) {
            Some((_, kept)) => kept.iter().copied().collect(),
            None if is_replicated => BTreeSet::new(),
            None => whole.clone(),
        };
        // A successor's note names how far its log goes, and recovery has refused a shorter one: what is damaged is behind that.
        let end = |id| if is_replicated { End::default() } else { directory.cut_end(id) };
        for (number, group) in self.replication_groups.iter_mut().enumerate() {
            let id = GroupId(number as u16);
            if Group::is_recovering(group) {
                group.on_recovered(member, whole.contains(&id) && self.recovery.cut.is_holder(id, node));
            } else {
                group.on_registered(member, before, kept.contains(&id), end(id));
            }
        }
        Ok(Answer::Process(member.process))
    }

    pub(super) fn down(&mut self, member: Member) -> Result<Answer, Answer> {
        if !self.is_member(member) {
            return Err(Answer::Void);
        }
        if let Some(state) = self.nodes.get_mut(&member.node) {
            state.life = Life::Down;
        }
        self.forget_process(member.process);
        for group in &mut self.replication_groups {
            group.on_down(member);
        }
        Ok(Answer::Done)
    }

    pub(super) fn remove_node(&mut self, node: NodeId) -> Result<Answer, Answer> {
        let Some(state) = self.nodes.get(&node) else {
            // Its number was given: it has been removed before.
            let removed = (1..self.next_node).contains(&node.0);
            return if removed { Ok(Answer::Done) } else { Err(Answer::Refused(Refused::NoSuchNode(node.0))) };
        };
        let holds = |p: &ReplicationGroup| p.placed.contains(&node) || p.in_sync.iter().any(|m| m.node == node);
        if self.replication_groups.iter().any(holds) {
            return Err(Answer::Refused(Refused::NodeInUse(node.0)));
        }
        let process = state.process;
        self.nodes.remove(&node);
        self.forget_process(process);
        Ok(Answer::Done)
    }

    pub(super) fn forget_node(&mut self, node: NodeId) -> Result<Answer, Answer> {
        if self.nodes.get(&node).is_some_and(|n| n.life == Life::Up) {
            return Err(Answer::Refused(Refused::NodeUp(node.0)));
        }
        if let Some(group) = self.needs_holder(node) {
            return Err(Answer::Refused(Refused::OnlyHolder { node: node.0, group: group.0 }));
        }
        // Members that have ended together each have everything: without it there must be one that is up.
        let has = |p: &ReplicationGroup| p.is_doubtful(node) || p.in_sync.iter().any(|m| m.node == node);
        let only = |p: &ReplicationGroup| has(p) && !p.in_sync.iter().any(|m| m.node != node && self.is_member(*m));
        if let Some(group) = self.replication_groups.iter().position(only) {
            return Err(Answer::Refused(Refused::OnlyReplica { node: node.0, group: group as u16 }));
        }
        for group in &mut self.replication_groups {
            group.leave(node);
        }
        self.remove_node(node)
    }

    /// What a process had begun ends with it.
    pub(super) fn forget_process(&mut self, process: ProcessId) {
        self.end_intents(|_, intent| intent.owner == process);
        self.origins.remove(&process);
    }
}
