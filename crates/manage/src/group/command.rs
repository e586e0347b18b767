//! What can be said to the control plane, and what it answers.
//!
//! A command travels: from the process that proposes it to the leader of the consensus, through the log, to every process. On the way it may be lost,
//! late, or doubled (its proposer had no answer and tried again). Each kind of command is therefore made so that saying it twice does no harm:
//!
//! | commands | why twice is as good as once |
//! |---|---|
//! | `AddNode`, `Register`, `Succeed` | known by the directory, by the nonce: the same answer again |
//! | `Strike`, `Withdraw`, `LetGo`, `Join`, `Lead`, `Relieve`, `Place` | name the version that they were made under (rule 18): void the second time |
//! | `Down`, `Expire`, `Term`, `EndIntent`, `RemoveNode`, `ForgetNode`, `AcceptLoss`, `Create` | what is so already is not made so again |
//! | `Cut`, `Recover` | name the versions that they were made under, the number that they are to be: void the second time |
//! | `Timestamps`, `Observe`, `Configure` | only raise, or set |
//! | `Catalog`, `Reserve`, `Intend`, `Reopen` | are not so by themselves: in a [`GroupCommand::Once`] the control plane remembers the answer by the [`Origin`] |

use super::config::{ClusterConfig, ClusterDurability};
use super::doubt::DirectoryState;
use super::intents::{Intent, Open};
use super::nodes::RoleKind;
use super::replication_groups::Leaving;
use crate::catalog::Applied;
use crate::command::Command;
use crate::error::CatalogError;
use rauk_cluster::EntryId;
use rauk_types::{GroupId, Member, NodeId, ProcessId, TableId, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Who proposes, and which of its proposals this is: the same pair is the same proposal. `number` is from a counter of the process and never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Origin {
    pub process: ProcessId,
    pub number: u64,
}

/// A command that is done once, however often it comes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum OnceCommand {
    /// As [`GroupCommand::Catalog`].
    Catalog { command: Command, intent: Option<u64> },
    /// As [`GroupCommand::Reserve`].
    Reserve { table: TableId, count: u64 },
    /// As [`GroupCommand::Intend`].
    Intend { intent: Intent },
    /// As [`GroupCommand::Reopen`].
    Reopen { number: u64, open: Open },
}

/// Written to the log: variants and fields are added at the end, never reused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum GroupCommand {
    /// The first command of a cluster. Refused in one that is made (but for a repetition: the same `config.id`).
    /// `adopted`: what the first node's directory had when it was that of a node alone (rule 81), as
    /// [`Adopted::encode`](super::Adopted::encode) has it.
    Create {
        config: ClusterConfig,
        #[serde(default)]
        adopted: Option<Arc<str>>,
    },
    /// A node, known by its directory: gives its number (the same again for a directory that is known), and takes addresses and roles as they are now. Refused: an address of another node that is up.
    /// A node that is not up and has the address loses it: whoever is there now, that node is not.
    AddNode {
        directory: u64,
        address: String,
        sql_address: String,
        native_address: String,
        roles: BTreeSet<RoleKind>,
    },
    /// A process of the node begins: gives its number. `whole`: groups whose log it has wholly (rule 21): it keeps its
    /// place there, and loses it elsewhere. Where its predecessor led, nobody leads until the leader names one. A group
    /// of which the directory has never had anything is whole too: as long as it is the same directory, nothing was
    /// lost. With durability `replicated` memory counts, which is lost: the process keeps no place. `whole` then names
    /// the groups that it has exactly as the cut of this `recovery` has them. Void if the cluster has gone back to a
    /// cut since the process opened its directory. `directory`: refused if it is an older copy; if its log's damaged
    /// end was cut, the process keeps no place, and is doubtful where it was in-sync (rule 37).
    Register {
        node: NodeId,
        nonce: u64,
        whole: Vec<GroupId>,
        #[serde(default)]
        recovery: u64,
        #[serde(default)]
        directory: DirectoryState,
    },
    /// The process says that it has ended, and serves no more: it leads nothing. In-sync it stays until somebody goes on without it: the primary strikes it, or the next one does.
    /// Void if it is not its node's newest process, or down already.
    Down {
        member: Member,
    },
    /// The primary goes on without a member. Void unless `version` is the group's.
    Strike {
        #[serde(rename = "partition")]
        group: GroupId,
        version: u64,
        member: Member,
    },
    /// A member has everything: it is in-sync. Void unless `version` is the group's and the member is its node's
    /// process, up, and placed here.
    Join {
        #[serde(rename = "partition")]
        group: GroupId,
        version: u64,
        member: Member,
    },
    /// A new view, led by an in-sync member that is up, without those that are not; in a group that nobody has ever
    /// led, by any that is placed here. Void while another leads ([`GroupCommand::Relieve`] comes first).
    Lead {
        #[serde(rename = "partition")]
        group: GroupId,
        version: u64,
        member: Member,
    },
    /// Where a group is to be; the first is the preferred primary. Who is not named is not in-sync any more. Refused if
    /// that would be the primary, or anybody who is in-sync while there is none.
    Place {
        #[serde(rename = "partition")]
        group: GroupId,
        version: u64,
        nodes: Vec<NodeId>,
    },
    /// Takes a node that is not placed anywhere out of the cluster.
    RemoveNode {
        node: NodeId,
    },
    /// Timestamps below the bound may be given out.
    Timestamps {
        bound: u64,
    },
    /// A change of the catalog; `intent` is the one that it ends, if any. Void if that has ended already; a change that the catalog refuses does not end it. A build goes on under its intent, and needs one.
    Catalog {
        command: Command,
        intent: Option<u64>,
    },
    /// Gives `count` numbers of a counter: the first. Counters begin at 1.
    Reserve {
        table: TableId,
        count: u64,
    },
    /// The counter goes above `value`.
    Observe {
        table: TableId,
        value: u64,
    },
    /// Gives the intent's number. Refused (try again) while another intent has one of the tables; void if the owner is not up.
    Intend {
        intent: Intent,
    },
    EndIntent {
        number: u64,
    },
    Configure {
        replicas: Option<u8>,
        durability: Option<ClusterDurability>,
        #[serde(default)]
        replace_after: Option<u32>,
        #[serde(default)]
        memory_return: Option<u32>,
    },
    /// The first that a leader says: what leaders of older terms say of leases is void from here on, and only from here on does this one grant leases and draw timestamps.
    Term {
        number: u64,
    },
    /// The leader of the term says that the leases of these processes have ended: they are down, and out of the in-sync sets in which somebody is up. Where all end together all stay: nothing
    /// was acknowledged without any of them (rule 25). Void in another term: a leader that has been replaced does not know what its successor granted.
    Expire {
        term: u64,
        members: Vec<Member>,
    },
    /// The primary is to lead no more, so that another can: nobody leads until [`GroupCommand::Lead`], which waits until the lease of the former one has ended, or it has heard of this.
    Relieve {
        #[serde(rename = "partition")]
        group: GroupId,
        version: u64,
    },
    /// The cut at this time is on the disks of all in-sync replicas; `entries`: its places, by group. Void unless
    /// `versions` is [`super::Group::versions`].
    Cut {
        time: Timestamp,
        versions: u64,
        entries: Vec<EntryId>,
    },
    /// The cluster goes back to the last complete cut. Void unless a group is gone, and this is the next recovery.
    Recover {
        number: u64,
    },
    /// Done once, however often it comes: a repetition gets the same answer. Void if the proposing process is not up (any more): nothing of a dead process takes effect late.
    Once {
        origin: Origin,
        command: OnceCommand,
    },
    /// The operator says that a node which is down does not come back: it loses its places at once and is taken out. Refused while it is up, where it has the whole of something that nobody who is up has, and
    /// where it holds the last cut of something that no other holder who is up does.
    ForgetNode {
        node: NodeId,
    },
    /// Those that were struck while they were up have heard of it, or no lease is left that they could hold without having heard: nobody counts them any more (rule 33).
    LetGo {
        #[serde(rename = "partition")]
        group: GroupId,
        version: u64,
        members: Vec<Leaving>,
    },
    /// The operator accepts that commits may be missing: groups that wait for a member whose log was not damaged, or
    /// reaches further, go on with the doubtful member whose log reaches furthest of those that are up. Refused where
    /// no group waits so.
    AcceptLoss,
    /// As [`GroupCommand::Register`], where memory counts (durability `replicated`), by a process that follows a fenced
    /// one of its node: what `predecessor` had in memory is on the node's disk, wholly for the groups in `kept`. It
    /// keeps its predecessor's places there, if no other process of the node has registered since; else it is
    /// registered as one that has lost its memory.
    Succeed {
        node: NodeId,
        nonce: u64,
        /// As in `Register`: those that it has exactly as the cut of this `recovery` has them.
        whole: Vec<GroupId>,
        recovery: u64,
        predecessor: ProcessId,
        kept: Vec<GroupId>,
        directory: DirectoryState,
    },
    /// Opens an intent, whose tables users may have from then on, or closes it again; gives the number that it has
    /// instead. Refused (try again) while another intent is in the way; void if it has ended.
    Reopen {
        number: u64,
        open: Open,
    },
    /// The primary has stopped in this view, since its rows are damaged: another is to lead, and it is not in-sync any
    /// more. Said by an in-sync follower that has heard so (rule 80). Void unless `version` is the group's, the member
    /// leads, and another is in-sync and up.
    Withdraw {
        group: GroupId,
        version: u64,
        member: Member,
    },
}

impl GroupCommand {
    /// The command in a form that may be proposed again after a lost answer, with the same `origin`. Those that may be anyway stay as they are.
    pub fn once(self, origin: Origin) -> GroupCommand {
        let command = match self {
            GroupCommand::Catalog { command, intent } => OnceCommand::Catalog { command, intent },
            GroupCommand::Reserve { table, count } => OnceCommand::Reserve { table, count },
            GroupCommand::Intend { intent } => OnceCommand::Intend { intent },
            GroupCommand::Reopen { number, open } => OnceCommand::Reopen { number, open },
            other => return other,
        };
        GroupCommand::Once { origin, command }
    }
}

/// What a command gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    Done,
    /// It named an old version, or came too late: nothing has changed.
    Void,
    Node(NodeId),
    Process(ProcessId),
    /// The first of the numbers reserved.
    Numbers(u64),
    Intent(u64),
    Catalog(CatalogAnswer),
    Refused(Refused),
}

/// [`Applied`] as it goes over the network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum CatalogAnswer {
    Applied(Applied),
    Refused(CatalogError),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refused {
    #[error("the cluster is made already")]
    Made,
    #[error("the address {address} is that of node {node}, which is up")]
    AddressTaken { address: String, node: u16 },
    #[error("there is no node {0}")]
    NoSuchNode(u16),
    #[error("node {0} still holds replication groups")]
    NodeInUse(u16),
    #[error("node {0} is up; stop it before it is forgotten")]
    NodeUp(u16),
    #[error(
        "no node that is up has the whole of replication group {group}, and node {node} has: start it, else these \
         rows are lost"
    )]
    OnlyReplica { node: u16, group: u16 },
    #[error("another DDL statement ({0}) has the table")]
    Intended(String),
    #[error("{0}")]
    OutOfRange(String),
    #[error("the cluster is not made yet")]
    NotMade,
    #[error("node {node} is the primary of replication group {group}, or the last that has all of it")]
    Needed { node: u16, group: u16 },
    #[error(
        "the command came long after it was proposed: it may have been carried out, and what it gave is not remembered"
    )]
    Forgotten,
    #[error(
        "node {node} has replication group {group} as of the last cut over the whole cluster, and no other node \
         that is up has: without it the cluster could not go back there; start it, or another that has that cut, or \
         wait until a later cut is complete"
    )]
    OnlyHolder { node: u16, group: u16 },
    #[error(
        "this data directory is an older copy of node {0}'s, or has lost its files: the node has registered since, and the directory does not know of that; start the node with the newest directory, or with an empty one, which gets its rows from the other nodes (then forget node {0})"
    )]
    OlderDirectory(u16),
    #[error(
        "there is nothing to accept: no replication group waits because the log of a member was damaged or its \
         directory was an older copy"
    )]
    NothingDoubtful,
}
