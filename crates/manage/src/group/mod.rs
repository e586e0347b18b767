//! The control plane's state: nodes, processes, views and in-sync sets of groups, placement, the catalog, counters,
//! settings, the timestamp bound.
//!
//! A deterministic state machine fed by committed commands (out of Raft, or out of a simulated one). Every process of the cluster has a copy and hears of
//! each command in order; only the leader acts on it ([`crate::leader`]).
//!
//! | file | what |
//! |---|---|
//! | [`command`] | what can be said, and what is answered; why each command may come twice |
//! | [`config`] | what is settled when the cluster is made |
//! | [`adopted`] | what a cluster begins with that is made of a node alone |
//! | [`nodes`] | nodes and their processes: joining, registering, going down; what becomes of a node that was cut off |
//! | [`replication_groups`] | views, primaries, in-sync sets, placement |
//! | [`doubt`] | members whose log ended in damage; older copies of a directory |
//! | [`cuts`] | cuts over the whole cluster, and going back to one |
//! | [`counters`] | AUTO_INCREMENT, hidden keys, timestamps |
//! | [`intents`] | changes of the catalog, DDL statements that want tables alone |
//! | [`origins`] | answers to proposals that are made again |
//! | [`health`] | green, yellow, red, and why |
//! | [`risks`] | what one more failure would stop |
//!
//! # Invariants
//! A command either changes everything that it says or nothing: it is checked wholly first. The same commands give the same state, whatever they say and wherever they come from;
//! none makes it panic. Nothing that is given out (node, process, intent numbers, counters, timestamps, table ids) is given out twice. What the leader knows and the
//! state does not (leases) comes in with its term ([`GroupCommand::Term`]): what an older leader says of leases is void.
//!
//! # What it leaves out
//! Time: how long a node has been down, or a lease holds, only the leader knows. Rows: they never come near it. The consensus' own members.

pub mod adopted;
pub mod command;
pub mod config;
pub mod counters;
pub mod cuts;
pub mod doubt;
pub mod health;
pub mod intents;
pub mod nodes;
pub mod origins;
pub mod replication_groups;
mod risks;
#[cfg(test)]
pub(crate) mod tests;

pub use adopted::Adopted;
pub use command::{Answer, CatalogAnswer, GroupCommand, OnceCommand, Origin, Refused};
pub use config::{
    ClusterConfig, ClusterDurability, DEFAULT_MEMORY_RETURN, DEFAULT_REPLACE_AFTER, MOST_MEMORY_RETURN,
    MOST_REPLACE_AFTER,
};
pub use cuts::{Cut, Recovery};
pub use doubt::{DirectoryState, Doubtful};
pub use health::{Colour, GroupHealth, Health};
pub use intents::{Intent, Open};
pub use nodes::{Life, NodeState, RoleKind};
pub use origins::Remembered;
pub use replication_groups::{Leaving, ReplicationGroup};

use crate::catalog::Catalog;
use rauk_types::{NodeId, ProcessId, TableId};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Index of the last command applied.
    pub index: u64,
    pub config: Option<ClusterConfig>,
    pub nodes: BTreeMap<NodeId, NodeState>,
    /// `config.groups + 1` of them.
    #[serde(rename = "partitions")]
    pub replication_groups: Vec<ReplicationGroup>,
    #[serde(deserialize_with = "whole_catalog")]
    pub catalog: Catalog,
    /// Index at which the catalog last changed.
    pub catalog_index: u64,
    /// Numbers below may have been given out: AUTO_INCREMENT and hidden keys (`TableId` as in the redo log's counters).
    pub counters: BTreeMap<TableId, u64>,
    pub intents: BTreeMap<u64, Intent>,
    /// Timestamps below may have been given out.
    pub timestamp_bound: u64,
    pub next_process: u32,
    pub next_node: u16,
    pub next_intent: u64,
    /// The newest leader's.
    pub term: u64,
    pub origins: BTreeMap<ProcessId, Remembered>,
    /// The last that is complete.
    #[serde(default)]
    pub cut: Cut,
    /// The last.
    #[serde(default)]
    pub recovery: Recovery,
}

impl Default for Group {
    fn default() -> Self {
        Group::new()
    }
}

/// What is written leaves the catalog's index of names out.
fn whole_catalog<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Catalog, D::Error> {
    let mut catalog = Catalog::deserialize(deserializer)?;
    catalog.after_load();
    Ok(catalog)
}

impl Group {
    pub fn new() -> Group {
        Group {
            index: 0,
            config: None,
            nodes: BTreeMap::new(),
            replication_groups: Vec::new(),
            catalog: Catalog::default(),
            catalog_index: 0,
            counters: BTreeMap::new(),
            intents: BTreeMap::new(),
            timestamp_bound: 0,
            next_process: 1,
            next_node: 1,
            next_intent: 1,
            term: 0,
            origins: BTreeMap::new(),
            cut: Cut::default(),
            recovery: Recovery::default(),
        }
    }

    /// Carries out the command at `index`; commands at or below the last index are passed over by the caller. Deterministic; never panics, whatever the command says.
    pub fn apply(&mut self, index: u64, command: &GroupCommand) -> Answer {
        self.index = index;
        // An `Err` is an answer too: that of a command that has changed nothing.
        self.carry_out(command).unwrap_or_else(|refused| refused)
    }

    fn carry_out(&mut self, command: &GroupCommand) -> Result<Answer, Answer> {
        use GroupCommand::*;
        if self.config.is_none() && !matches!(command, Create { .. } | Term { .. }) {
            return Err(Answer::Refused(Refused::NotMade));
        }
        match command {
            Create { config, adopted } => self.create(config, adopted.as_deref()),
            AddNode { directory, address, sql_address, native_address, roles } => {
                self.add_node(*directory, [address, sql_address, native_address], roles)
            }
            Register { node, nonce, whole, recovery, directory } => {
                self.register(*node, *nonce, whole, *recovery, directory, None)
            }
            Succeed { node, nonce, whole, recovery, predecessor, kept, directory } => {
                self.register(*node, *nonce, whole, *recovery, directory, Some((*predecessor, kept)))
            }
            Down { member } => self.down(*member),
            Strike { group, version, member } => self.strike(*group, *version, *member),
            Withdraw { group, version, member } => self.withdraw(*group, *version, *member),
            Join { group, version, member } => self.join(*group, *version, *member),
            Lead { group, version, member } => self.lead(*group, *version, *member),
            Place { group, version, nodes } => self.place(*group, *version, nodes),
            RemoveNode { node } => self.remove_node(*node),
            ForgetNode { node } => self.forget_node(*node),
            Timestamps { bound } => self.timestamps(*bound),
            Catalog { command, intent } => self.change_catalog(command, *intent),
            Reserve { table, count } => self.reserve(*table, *count),
            Observe { table, value } => self.observe(*table, *value),
            Intend { intent } => self.intend(intent),
            Reopen { number, open } => self.reopen(*number, *open),
            EndIntent { number } => self.end_intent(*number),
            Configure { replicas, durability, replace_after, memory_return } => {
                self.configure(*replicas, *durability, *replace_after, *memory_return)
            }
            Term { number } => self.begin_term(*number),
            Expire { term, members } => self.expire(*term, members),
            Relieve { group, version } => self.relieve(*group, *version),
            Cut { time, versions, entries } => self.complete_cut(*time, *versions, entries),
            Recover { number } => self.recover(*number),
            Once { origin, command } => self.once(*origin, command),
            AcceptLoss => self.accept_loss(),
            LetGo { group, version, members } => self.let_go(*group, *version, members),
        }
    }

    /// Whether no table has ever been made, or none is left: then groups have nothing to copy, and nobody can have
    /// touched them.
    pub fn holds_nothing(&self) -> bool {
        self.catalog.tables().next().is_none() && self.catalog.jobs().next().is_none()
    }

    fn begin_term(&mut self, number: u64) -> Result<Answer, Answer> {
        if number < self.term {
            return Err(Answer::Void);
        }
        self.term = number;
        Ok(Answer::Done)
    }
}
