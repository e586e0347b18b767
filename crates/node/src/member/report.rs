//! What a node tells of itself to whoever asks, and what all nodes tell: for system tables, metrics and status.
//!
//! A report is made from what is there at the moment; nothing waits for it. The nodes of a cluster are asked at the same time and have [`PATIENCE`] to answer: one that does not is left out, and
//! that is noted in the event log. A node that is alone gives a report of itself in the same form, as node 1.

use super::comparing::ComparedReport;
use super::event_log::{Level, LoggedEvent};
use super::signal::Signal;
use crate::Database;
use crate::node::Node;
use crate::status::{Counters, TransactionState};
use rauk_cluster::Role;
use rauk_cluster::replica::Contents;
use rauk_manage::group::{Life, RoleKind};
use rauk_types::{Member, NodeId, PartitionId, ProcessId, TableId, TxnId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// How long a node has to answer.
pub const PATIENCE: Duration = Duration::from_millis(200);
/// The most transactions, waits and tables in one report.
const MOST: usize = 10_000;

/// What is asked for; the node itself is always told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wanted {
    Node,
    Partitions,
    Transactions,
    Locks,
    Memory,
    Events,
    /// Tables as [`Wanted::Memory`], in the partitions that the node leads.
    Led,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    pub member: Member,
    pub version: String,
    /// Since the process was opened.
    pub uptime: Duration,
    /// Whether its lease holds; on a node that is alone it does.
    pub lease: bool,
    pub memory_used: u64,
    pub memory_limit: u64,
    pub commits: u64,
    pub rollbacks: u64,
    pub redo_live_bytes: u64,
    /// Index of the last change of the group that it has followed.
    pub index: u64,
    pub partitions: Vec<PartitionReport>,
    pub transactions: Vec<TransactionReport>,
    pub locks: Vec<LockReport>,
    pub tables: Vec<TableReport>,
    pub events: Vec<LoggedEvent>,
}

/// A partition as one replica sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionReport {
    pub partition: PartitionId,
    pub role: PartitionRole,
    pub view: u64,
    /// Positions of the stream: the last entry here, and up to where all have it that count.
    pub last: u64,
    pub stable: u64,
    pub unstable_bytes: u64,
    /// It has all rows; else a copy is under way or due.
    pub whole: bool,
    /// As primary, it takes work.
    pub serves: bool,
    /// As primary: the newest comparison of its rows with those of the others that found all equal, and why it takes no
    /// writes if so.
    pub compared: Option<ComparedReport>,
    pub divided: Option<String>,
    /// As primary: the others.
    pub followers: Vec<FollowerReport>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartitionRole {
    Primary,
    Opening,
    Follower,
    None,
}

impl PartitionRole {
    pub fn name(self) -> &'static str {
        match self {
            PartitionRole::Primary => "primary",
            PartitionRole::Opening => "opening",
            PartitionRole::Follower => "follower",
            PartitionRole::None => "none",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowerReport {
    pub member: Member,
    pub acknowledged: u64,
    pub in_sync: bool,
    /// It is brought a copy of the rows.
    pub copies: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionReport {
    pub id: TxnId,
    pub waits: bool,
    pub age: Duration,
    pub rows_changed: u64,
    pub waiting_for: Vec<TxnId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockReport {
    pub waiting: TxnId,
    pub blocking: TxnId,
    pub partition: PartitionId,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableReport {
    pub table: TableId,
    pub rows: u64,
    pub row_bytes: u64,
    pub hash_bytes: u64,
    pub ordered_bytes: u64,
    pub history_bytes: u64,
}

/// A node as the group and the node itself tell of it.
#[derive(Clone, Debug)]
pub struct Told {
    pub node: NodeId,
    pub process: ProcessId,
    pub address: String,
    pub sql_address: String,
    pub native_address: String,
    pub roles: Vec<RoleKind>,
    pub life: Life,
    /// It leads the manage group, as far as is known here.
    pub leads: bool,
    /// `None`: it is not up, or did not answer in time.
    pub report: Option<Report>,
}

/// Makes this node's report.
pub fn make(node: &Arc<Node>, wanted: Wanted) -> Report {
    let counters: Counters = node.counters();
    let cluster = node.cluster();
    let me = cluster.map_or(Member { node: NodeId(1), process: ProcessId(1) }, |c| c.me());
    let mut report = Report {
        member: me,
        version: env!("CARGO_PKG_VERSION").into(),
        uptime: node.runtime.now().saturating_sub(node.opened),
        lease: cluster.is_none_or(|c| c.has_lease()),
        memory_used: counters.memory_used,
        memory_limit: counters.memory_limit,
        commits: counters.commits,
        rollbacks: counters.rollbacks,
        redo_live_bytes: counters.redo_live_bytes,
        index: cluster.map_or(0, |c| c.index()),
        partitions: Vec::new(),
        transactions: Vec::new(),
        locks: Vec::new(),
        tables: Vec::new(),
        events: Vec::new(),
    };
    match wanted {
        Wanted::Node => {}
        Wanted::Partitions => report.partitions = partitions(node),
        Wanted::Transactions => {
            let all = node.transaction_infos().into_iter().take(MOST);
            report.transactions = all
                .map(|t| TransactionReport {
                    id: t.id,
                    waits: t.state == TransactionState::Waiting,
                    age: t.age,
                    rows_changed: t.rows_changed,
                    waiting_for: t.waiting_for,
                })
                .collect();
        }
        Wanted::Locks => {
            let all = node.lock_wait_infos().into_iter().take(MOST);
            report.locks = all
                .map(|w| LockReport { waiting: w.waiting, blocking: w.blocking, partition: w.wanted.partition })
                .collect();
        }
        Wanted::Memory | Wanted::Led => {
            let tables: Vec<TableId> = node.catalog.lock().catalog().tables().map(|t| t.id).collect();
            for table in tables.into_iter().take(MOST).filter_map(|id| node.tables.by_id(id)) {
                let usage = match cluster {
                    Some(cluster) if wanted == Wanted::Led => cluster.usage_led(node, &table),
                    _ => node.usage(&table),
                };
                report.tables.push(TableReport {
                    table: table.schema.id,
                    rows: usage.rows,
                    row_bytes: usage.row_bytes,
                    hash_bytes: usage.hash_bytes,
                    ordered_bytes: usage.ordered_bytes,
                    history_bytes: usage.history_bytes,
                });
            }
        }
        Wanted::Events => report.events = node.event_log.list(),
    }
    report
}

/// Partitions as they are here.
fn partitions(node: &Arc<Node>) -> Vec<PartitionReport> {
    let Some(cluster) = node.cluster() else {
        let alone = |partition| PartitionReport {
            partition: PartitionId(partition),
            role: PartitionRole::Primary,
            view: 1,
            last: 0,
            stable: 0,
            unstable_bytes: 0,
            whole: true,
            serves: true,
            compared: None,
            divided: None,
            followers: Vec::new(),
        };
        return (0..node.partition_count()).map(alone).collect();
    };
    let one = |partition: u16| {
        let slot = cluster.slot_of(partition);
        let state = slot.state.lock();
        let replica = &state.replica;
        let role = match replica.role() {
            Role::Primary => PartitionRole::Primary,
            Role::Opening => PartitionRole::Opening,
            Role::Follower => PartitionRole::Follower,
            Role::None => PartitionRole::None,
        };
        PartitionReport {
            partition: PartitionId(partition),
            role,
            view: replica.view().0,
            last: replica.last().position.0,
            stable: replica.stable().0,
            unstable_bytes: replica.unstable_bytes(),
            whole: replica.contents() == Contents::Whole,
            serves: slot.serving().is_some(),
            compared: cluster.compared_report(partition),
            divided: cluster.divided(partition),
            followers: replica
                .followers()
                .map(|f| FollowerReport {
                    member: f.member,
                    acknowledged: f.acknowledged.0,
                    in_sync: f.in_sync,
                    copies: f.copies,
                })
                .collect(),
        }
    };
    (0..node.partition_count()).map(one).collect()
}

impl Database {
    /// This node's own report.
    pub fn report(&self, wanted: Wanted) -> Report {
        make(&self.node, wanted)
    }

    /// All nodes of the cluster, by number, with what those that are up have told of themselves. Takes no longer than [`PATIENCE`].
    pub async fn reports(&self, wanted: Wanted) -> Vec<Told> {
        let Some(cluster) = self.node.cluster() else {
            let report = self.report(wanted);
            return vec![Told {
                node: report.member.node,
                process: report.member.process,
                address: String::new(),
                sql_address: String::new(),
                native_address: String::new(),
                roles: vec![RoleKind::Manage, RoleKind::Data, RoleKind::Sql],
                life: Life::Up,
                leads: true,
                report: Some(report),
            }];
        };
        let group = cluster.group();
        let leader = cluster.manage_leader().map(|m| m.node);
        let ask = |id: NodeId| {
            let member = group.member(id);
            let me = cluster.me();
            async move {
                let member = member?;
                if member == me {
                    return Some(make(&self.node, wanted));
                }
                match cluster.request(member, Signal::Report { wanted }, PATIENCE).await {
                    Ok(Signal::Reported { report }) => Some(*report),
                    _ => None,
                }
            }
        };
        let answers = futures::future::join_all(group.nodes.keys().map(|id| ask(*id))).await;
        let told = group.nodes.iter().zip(answers).map(|((id, state), report)| {
            if report.is_none() && state.life == Life::Up {
                let text = format!("node {} did not answer within {} ms", id.0, PATIENCE.as_millis());
                self.node.event_log.note(*id, Level::Warning, text);
            }
            Told {
                node: *id,
                process: state.process,
                address: state.address.clone(),
                sql_address: state.sql_address.clone(),
                native_address: state.native_address.clone(),
                roles: state.roles.iter().copied().collect(),
                life: state.life,
                leads: leader == Some(*id),
                report,
            }
        });
        told.collect()
    }

    /// Something for the cluster's log.
    pub fn note(&self, level: Level, what: impl Into<String>) {
        let node = self.node.cluster().map_or(NodeId(1), |c| c.me().node);
        self.node.event_log.note(node, level, what);
    }
}
