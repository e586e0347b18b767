//! The cluster put together for its operator: what the group has decided, with what nodes have told of themselves.

use super::Cluster;
use super::comparing::ComparedReport;
use super::report::{PartitionReport, Told};
use crate::Database;
use crate::error::NodeError;
use rauk_manage::group::{
    Answer, Colour, DEFAULT_MEMORY_RETURN, DEFAULT_REPLACE_AFTER, GroupCommand, Life, ReplicationGroup, RoleKind,
};
use rauk_types::error::codes;
use rauk_types::{GroupId, MysqlError, NodeId};
use std::sync::Arc;
use std::time::Duration;

/// One partition, over all nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionOverview {
    pub partition: u16,
    /// The replication group that it is in: what follows is the same for all partitions of the group, but for `lag` and
    /// `serves`, which the primary's replica tells.
    pub group: u16,
    pub view: u64,
    pub primary: Option<NodeId>,
    /// Replicas that have everything and are up, the primary first.
    pub in_sync: Vec<NodeId>,
    pub placed: Vec<NodeId>,
    /// Replicas that are asked for, as far as there are nodes.
    pub wanted: usize,
    /// Replicas that are brought up, and how far they are, in words.
    pub joining: Vec<(NodeId, String)>,
    /// Entries that the slowest replica that counts has not acknowledged; `None`: the primary has not told.
    pub lag: Option<u64>,
    /// The primary takes work.
    pub serves: bool,
    /// It has the tables that are on every data node.
    pub fully_replicated: bool,
    pub health: String,
    /// The newest comparison that found the rows of all in-sync replicas equal.
    pub compared: Option<ComparedReport>,
}

impl Told {
    pub fn role_names(&self) -> String {
        let name = |role: &RoleKind| match role {
            RoleKind::Manage => "manage",
            RoleKind::Data => "data",
            RoleKind::Sql => "sql",
        };
        self.roles.iter().map(name).collect::<Vec<_>>().join(",")
    }

    /// `up`, `down`, `absent`; `silent`: the group takes it for up, and it did not answer.
    pub fn status(&self) -> &'static str {
        match (self.life, &self.report) {
            (Life::Up, Some(_)) => "up",
            (Life::Up, None) => "silent",
            (Life::Down, _) => "down",
            (Life::Absent, _) => "absent",
        }
    }
}

impl Database {
    /// Health of the whole, and why, the worst first. A node that is alone is green, if its memory is neither damaged nor nearly full. A member without a lease cannot serve anything, and what it knows of the others is of before that: it is red, whatever it knows.
    pub fn health(&self) -> (Colour, Vec<String>) {
        let (mut colour, mut reasons) = self.health_of_data();
        // Each node's own: the others tell of theirs.
        if let Some((pressure, reason)) = self.pressure_reason() {
            let at = if pressure > colour { 0 } else { reasons.len() };
            reasons.insert(at, reason);
            colour = colour.max(pressure);
        }
        (colour, reasons)
    }

    fn health_of_data(&self) -> (Colour, Vec<String>) {
        let Some(cluster) = self.node.cluster() else { return self.health_alone() };
        let mut health = cluster.group().health();
        let risks = self.risks();
        if !risks.is_empty() {
            health.colour = health.colour.max(Colour::Yellow);
            health.reasons.extend(risks);
        }
        let rooms = self.rooms();
        if !rooms.is_empty() {
            health.colour = health.colour.max(Colour::Yellow);
            health.reasons.extend(rooms);
        }
        if let Some(age) = cluster.late_cut() {
            health.colour = health.colour.max(Colour::Yellow);
            health.reasons.push(format!(
                "commits wait for a cut over the whole cluster: what was committed {:.1} s ago is in memory only, since a partition has no primary or a replica's disk is slow",
                age.as_secs_f64()
            ));
        }
        let mut wrong = cluster.all_stopped();
        wrong.extend(cluster.all_divided());
        if !wrong.is_empty() {
            health.colour = Colour::Red;
            health.reasons.splice(0..0, wrong);
        }
        if !cluster.has_lease() {
            health.colour = Colour::Red;
            health.reasons.insert(0, self.without_lease(cluster));
        }
        (health.colour, health.reasons)
    }

    /// What one more failure would stop, of a cluster of several nodes.
    pub fn risks(&self) -> Vec<String> {
        let Some(cluster) = self.node.cluster() else { return Vec::new() };
        cluster.group().risks(&cluster.voters())
    }

    fn health_alone(&self) -> (Colour, Vec<String>) {
        if self.counters().damaged_tables == 0 {
            return (Colour::Green, Vec::new());
        }
        let what = "rows in memory are damaged: stored bytes are not what was written (rauk.events names the tables); \
                    check this machine's memory, and restart this node: it reads the rows from its disk";
        (Colour::Red, vec![what.to_owned()])
    }

    /// Why no client can be served here at the moment, if so.
    pub fn trouble(&self) -> Option<String> {
        self.node.cluster().filter(|cluster| !cluster.has_lease()).map(|cluster| self.without_lease(cluster))
    }

    fn without_lease(&self, cluster: &Cluster) -> String {
        let group = cluster.group();
        let (me, here) = (cluster.me(), "this node can serve nothing: it has no lease");
        if !group.is_up(me.process) {
            return format!("{here}, since the others have taken it for gone; it begins anew");
        }
        let voters: Vec<String> = group
            .nodes
            .iter()
            .filter(|(_, n)| n.roles.contains(&RoleKind::Manage) && n.life != Life::Absent)
            .map(|(id, _)| id.0.to_string())
            .collect();
        let most = voters.len() / 2 + 1;
        format!(
            "{here}, since it does not reach a manage leader with a majority: {most} of the manage nodes {} must run and reach each other. What is said of other nodes may be old",
            voters.join(", ")
        )
    }

    /// All partitions, with what `told` says of them (reports with [`super::report::Wanted::Partitions`]).
    pub fn partition_overviews(&self, told: &[Told]) -> Vec<PartitionOverview> {
        let reported = |node: NodeId, partition: u16| -> Option<&PartitionReport> {
            let report = told.iter().find(|t| t.node == node)?.report.as_ref()?;
            report.partitions.get(usize::from(partition))
        };
        let Some(cluster) = self.node.cluster() else {
            let one = |partition| PartitionOverview {
                partition,
                group: 0,
                view: 1,
                primary: Some(NodeId(1)),
                in_sync: vec![NodeId(1)],
                placed: vec![NodeId(1)],
                wanted: 1,
                joining: Vec::new(),
                lag: Some(0),
                serves: true,
                fully_replicated: false,
                health: Colour::Green.to_string(),
                compared: None,
            };
            return (0..self.node.partition_count()).map(one).collect();
        };
        let group = cluster.group();
        let health = group.health();
        let full = cluster.full_nodes();
        let layout = cluster.layout();
        let one = |number: u16| {
            let id = cluster.group_of(number);
            let (state, health) = (group.replication_group(id)?, health.groups.get(usize::from(id.0))?);
            let primary = state.primary.map(|m| m.node);
            let own = primary.and_then(|node| reported(node, number)).filter(|p| p.view == state.view.0);
            let joining = group.assignment(id).joining.into_iter().map(|member| {
                let follower = own.and_then(|p| p.followers.iter().find(|f| f.member == member));
                let how = match (own, follower) {
                    (Some(_), Some(f)) if f.copies => "gets a copy of the rows".to_string(),
                    (Some(p), Some(f)) => format!("has {} of {} entries", f.acknowledged, p.last),
                    _ => "waits".to_string(),
                };
                let how = match full.iter().any(|(node, _)| *node == member) {
                    true => format!("{how}; memory is nearly used up there"),
                    false => how,
                };
                (member.node, how)
            });
            Some(PartitionOverview {
                partition: number,
                group: id.0,
                view: state.view.0,
                primary,
                in_sync: state.in_sync.iter().filter(|m| group.is_member(**m)).map(|m| m.node).collect(),
                placed: state.placed.clone(),
                wanted: health.wanted,
                joining: joining.collect(),
                lag: own.map(|p| p.last.saturating_sub(p.stable)),
                serves: own.is_some_and(|p| p.serves),
                fully_replicated: number == layout.everywhere().0,
                health: own.and_then(|p| p.divided.as_ref()).map_or(health.colour, |_| Colour::Red).to_string(),
                compared: own.and_then(|p| p.compared),
            })
        };
        layout.partitions().filter_map(one).collect()
    }

    /// Replicas that the cluster wants of each partition; 1 on a node that is alone.
    pub fn replicas(&self) -> u8 {
        self.node.cluster().and_then(|cluster| cluster.group().config.as_ref().map(|c| c.replicas)).unwrap_or(1)
    }

    /// Changes that; when this returns it is decided, and copies are made, or taken away, from now on.
    pub async fn set_replicas(&self, replicas: u64) -> Result<(), NodeError> {
        // What does not fit is out of the range in any case, which the group tells.
        let replicas = Some(u8::try_from(replicas).unwrap_or(u8::MAX));
        self.change_group(GroupCommand::Configure {
            replicas,
            durability: None,
            replace_after: None,
            memory_return: None,
        })
        .await
    }

    /// Whether this process does what one is enough for: a node that is alone, or the one with the lowest number among those
    /// that are up and serve clients. Two may answer yes while one of them has not heard that it is down.
    pub fn does_what_one_node_does(&self) -> bool {
        let Some(cluster) = self.node.cluster() else { return true };
        let group = cluster.group();
        let first = group.nodes.iter().find(|(_, state)| state.life == Life::Up && state.has(RoleKind::Sql));
        cluster.has_lease() && first.is_some_and(|(node, _)| *node == cluster.me().node)
    }

    /// Nodes that hold rows, or would if they were up.
    pub fn data_nodes(&self) -> usize {
        let Some(cluster) = self.node.cluster() else { return 1 };
        let group = cluster.group();
        group.nodes.values().filter(|n| n.roles.contains(&RoleKind::Data) && n.life != Life::Absent).count()
    }

    /// Others get the replicas of a node that is down for so long.
    pub fn replace_after(&self) -> Duration {
        let seconds = |cluster: &Arc<Cluster>| cluster.group().config.as_ref().map(|config| config.replace_after);
        Duration::from_secs(self.node.cluster().and_then(seconds).unwrap_or(DEFAULT_REPLACE_AFTER).into())
    }

    /// Changes that for the whole cluster; what is out of range is refused.
    pub async fn set_replace_after(&self, seconds: u64) -> Result<(), NodeError> {
        let replace_after = Some(u32::try_from(seconds).unwrap_or(u32::MAX));
        self.change_group(GroupCommand::Configure {
            replicas: None,
            durability: None,
            replace_after,
            memory_return: None,
        })
        .await
    }

    /// Durability `replicated`: the last memory of a partition is waited for so long when it is silent, before the cluster goes back to a cut.
    pub fn memory_return(&self) -> Duration {
        let seconds = |cluster: &Arc<Cluster>| cluster.group().config.as_ref().map(|config| config.memory_return);
        Duration::from_secs(self.node.cluster().and_then(seconds).unwrap_or(DEFAULT_MEMORY_RETURN).into())
    }

    /// Changes that for the whole cluster; what is out of range is refused.
    pub async fn set_memory_return(&self, seconds: u64) -> Result<(), NodeError> {
        let memory_return = Some(u32::try_from(seconds).unwrap_or(u32::MAX));
        self.change_group(GroupCommand::Configure {
            replicas: None,
            durability: None,
            replace_after: None,
            memory_return,
        })
        .await
    }

    /// A node that is down does not come back: others get its replicas at once, and it is no longer shown.
    pub async fn forget_node(&self, node: NodeId) -> Result<(), NodeError> {
        self.change_group(GroupCommand::ForgetNode { node }).await
    }

    /// Partitions that wait for a member whose log was not damaged, or reaches further, go on with what is there.
    pub async fn accept_loss(&self) -> Result<(), NodeError> {
        self.change_group(GroupCommand::AcceptLoss).await
    }

    async fn change_group(&self, command: GroupCommand) -> Result<(), NodeError> {
        self.node.check_running()?;
        let refused = |text: String| NodeError::Refused(MysqlError::new(codes::UNKNOWN_ERROR, text));
        let cluster =
            self.node.cluster().ok_or_else(|| refused("this node is alone, not a member of a cluster".into()))?;
        match cluster.propose(command).await? {
            Answer::Done => Ok(()),
            Answer::Refused(why) => Err(refused(why.to_string())),
            other => Err(NodeError::Unavailable(format!("the manage group answered {other:?}"))),
        }
    }

    /// Partitions that a node leads, and of which it has a replica that counts.
    pub fn load_of(&self, node: NodeId) -> (usize, usize) {
        let Some(cluster) = self.node.cluster() else {
            let all = usize::from(self.node.partition_count());
            return (all, all);
        };
        let group = cluster.group();
        let count = |is: &dyn Fn(&ReplicationGroup) -> bool| {
            let groups = (0..).zip(&group.replication_groups).filter(|(_, state)| is(state));
            groups.map(|(number, _)| cluster.layout().partitions_of(GroupId(number)).len()).sum()
        };
        (
            count(&|state| state.primary.is_some_and(|m| m.node == node)),
            count(&|state| state.in_sync.iter().any(|m| m.node == node)),
        )
    }
}
