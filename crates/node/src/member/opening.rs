//! A process takes its place in the cluster.
//!
//! 1. It tells the manage group who it is (its directory, addresses, roles), which gives its node number. When that command has come back, this process has the group's state as of now.
//! 2. It recovers what its disk has: rows, streams, prepared transactions. If the cluster has gone back to a cut that this directory does not know of, it goes back too.
//! 3. It registers: a new process number, which groups' logs are whole (rule 21), and whether the damaged end of its
//!    log was cut (rule 37). From here on the process before it is over. A directory that does not know of its node's
//!    newest start is an older copy, and is refused before it is opened. Where memory counts the process says whether
//!    the one before was fenced and has left all its memory on this disk (rule 34). If the cluster has gone back to a
//!    cut since 1, it begins again there.
//! 4. Its slots begin as followers with what was recovered; what comes next the group decides.
//! 5. It has followed all that was decided before: whoever reads the catalog from here on, accounts first of all, finds what others have.

use super::catalog::{self, CatalogState};
use super::comparing::Comparing;
use super::cutting::Cuts;
use super::events::Event;
use super::flushing::Flushing;
use super::group_rows::Share;
use super::hooks::Hooks;
use super::leading::Leading;
use super::network::Network;
use super::orphaned::Orphaned;
use super::pacing::Pacing;
use super::peers::Questions;
use super::rows::RowQueue;
use super::slot::{Beginning, Happening, Slot, Standing};
use super::tasks::Tasks;
use super::times::Times;
use super::{Cluster, TICK, answering, commit};
use crate::checkpoint;
use crate::error::NodeError;
use crate::node::{Node, Parts};
use crate::ops;
use crate::recovery::{adopt, fitting, member};
use crate::{Config, Database, Durability, Runtime};
use parking_lot::{Mutex, RwLock};
use rauk_cluster::Replica;
use rauk_cluster::replica::{Contents, EntryId, Limits};
use rauk_kernel::TimeBounds;
use rauk_log::{DatabaseId, Disk, Manifest, Superblocks, fault};
use rauk_manage::consensus::{Consensus, Watcher};
use rauk_manage::group::{Answer, DirectoryState, Group, GroupCommand, Refused, ReplicationGroup, RoleKind};
use rauk_manage::{Catalog, CatalogStore};
use rauk_types::{GroupId, Member, NodeId};
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Between attempts to reach the manage group at the start.
const AGAIN: Duration = Duration::from_millis(200);
const PROPOSE: Duration = Duration::from_secs(5);
/// How often prepared transactions without an outcome are looked for.
const LOOK: Duration = Duration::from_millis(50);
/// How often participants are told what they may forget.
const FORGET: Duration = Duration::from_millis(50);
/// How often coordinators are asked about decided ones that nobody has had forgotten.
const LINGER: Duration = Duration::from_secs(1);
/// Starts that a directory remembers: the last that was registered, and attempts since.
const STARTS: usize = 64;

/// Who this node is, as its directory and its flags say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Random number of the data directory.
    pub directory: u64,
    /// `host:port` as other nodes reach it.
    pub address: String,
    pub sql_address: String,
    pub native_address: String,
    pub roles: BTreeSet<RoleKind>,
}

#[derive(Clone)]
pub struct MemberOptions {
    pub config: Config,
    pub identity: Identity,
    pub hooks: Hooks,
}

impl Database {
    /// Opens this node's part of a cluster. The consensus runs already; messages are brought with [`Database::receive`] as soon as this has returned (what comes before may be dropped).
    pub async fn open_member(
        options: MemberOptions,
        disk: Arc<dyn Disk>,
        runtime: Arc<dyn Runtime>,
        network: Arc<dyn Network>,
        consensus: Arc<dyn Consensus>,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<Database, NodeError> {
        loop {
            let (disk, runtime, network) = (disk.clone(), runtime.clone(), network.clone());
            let opened = open(&options, disk, runtime, network, consensus.clone(), progress).await?;
            if let Some(database) = opened {
                return Ok(database);
            }
            progress("the cluster has gone back to a cut meanwhile: this directory is opened once more");
        }
    }

    /// A message from another node has arrived ([`Network::send`] there). Whatever it is, it does no harm.
    pub fn receive(&self, message: &[u8]) {
        answering::on_message(&self.node, message);
    }

    /// What this node is in its cluster; `None`: it is alone.
    pub fn member(&self) -> Option<&Arc<Cluster>> {
        self.node.cluster()
    }
}

/// One attempt. `None`: the cluster has gone back to a cut while it was made, and what was opened is not what counts now.
async fn open(
    options: &MemberOptions,
    disk: Arc<dyn Disk>,
    runtime: Arc<dyn Runtime>,
    network: Arc<dyn Network>,
    consensus: Arc<dyn Consensus>,
    progress: &(dyn Fn(&str) + Send + Sync),
) -> Result<Option<Database>, NodeError> {
    let MemberOptions { config, identity, hooks } = options.clone();
    let number = introduce(&identity, &*runtime, &*consensus, progress).await?;
    let group = consensus.group();
    let Some(cluster) = group.config.clone() else {
        return Err(NodeError::Unavailable("the cluster has not been made yet".into()));
    };
    let replicated = group.is_replicated();
    let durability = if replicated { Durability::Replicated } else { Durability::Fsync };
    // SQL puts what SET PERSIST has stored in force when it begins; without the role sql nobody does.
    let memory_limit = match identity.roles.contains(&RoleKind::Sql) {
        true => fitting::in_force(&config, &group.catalog),
        false => config.memory_limit,
    };
    let config = Config { durability, memory_limit, ..config };
    // Those that a DDL job is building too: their rows are in the log as well.
    let tables = catalog::all_tables(&group.catalog);
    let back = member::Back { node: number, recovery: &group.recovery, keeps_later: !hooks.safeguards.cut_kept };
    adopt::convert(&config, &disk, &*runtime, cluster.layout(), &tables, &back, progress)?;
    let superblocks = Superblocks::load(&disk)?;
    let superblocks = Arc::new(if hooks.safeguards.claims { superblocks } else { superblocks.ignoring_claims() });
    if hooks.safeguards.starts {
        refuse_older_copy(number, &group, &superblocks)?;
    }
    let id = DatabaseId(cluster.id);
    let mut parts =
        member::open_member(&config, superblocks, &*runtime, id, cluster.layout(), &tables, back, progress)?;
    if let Some(table) = parts.passed_over.iter().find(|t| **t >= group.catalog.next_table_id()) {
        return Err(NodeError::Fatal(format!(
            "the redo log has rows of table {}, which the cluster has never made: this directory belongs to another state of the cluster; restore the manage nodes, or start this node with an empty directory",
            table.0
        )));
    }
    let holes = parts.groups.iter().zip(&group.replication_groups);
    let holes = holes.filter_map(|(g, state)| Some((g.group, g.hole.as_deref()?, state)));
    for (holed, hole, state) in holes {
        if let Some(observer) = &hooks.observer {
            observer.hole(holed);
        }
        may_give_up(number, hole, state, replicated)?;
        progress(&format!("{hole}: what is here of the group is given up, and copied from another node"));
    }
    let durable = hooks.safeguards.sync_before_acknowledge && !replicated;
    let limits = Limits { durable, ..Limits::default() };
    let whole = |g: &member::MemberGroup| {
        let begins_empty = group.recovery.cut.entry(g.group) == EntryId::default();
        let whole = match (replicated, &g.restored) {
            (true, _) => g.is_held(&group.recovery),
            // What this directory has never had it has not lost, unless the cluster was made of rows (rule 81).
            (false, None) => begins_empty,
            (false, Some(restored)) => restored.contents == Contents::Whole,
        };
        whole.then_some(g.group)
    };
    let whole: Vec<GroupId> = parts.groups.iter().filter_map(whole).collect();
    if !replicated && let Some(doubt) = parts.superblocks.doubt() {
        progress(&format!(
            "acknowledged commits may be missing here, so other replicas lead first, and this node gets from them what it lacks ({doubt})"
        ));
    }
    let nonce = runtime.random();
    remember_start(&mut parts.manifest, nonce);
    parts.manifest.store(&parts.superblocks)?;
    adopt::give_up_catalog(&parts.superblocks)?;
    let directory = DirectoryState {
        starts: hooks.safeguards.starts.then(|| parts.manifest.starts.clone()),
        cut: parts.superblocks.doubt().is_some() && hooks.safeguards.doubtful_end,
        ends: parts.groups.iter().map(member::MemberGroup::last).collect(),
    };
    let recovery = group.recovery.number;
    let predecessor = parts.manifest.fenced.filter(|_| replicated && hooks.safeguards.memory_kept);
    let command = match predecessor {
        None => GroupCommand::Register { node: number, nonce, whole, recovery, directory },
        Some(predecessor) => {
            let is_whole = |g: &&member::MemberGroup| {
                g.restored.as_ref().is_none_or(|restored| restored.contents == Contents::Whole)
            };
            let kept = parts.groups.iter().filter(is_whole).map(|g| g.group).collect();
            GroupCommand::Succeed { node: number, nonce, whole, recovery, predecessor, kept, directory }
        }
    };
    let Some(process) = register(command, &*runtime, &*consensus, progress).await? else {
        return Ok(None);
    };
    parts.manifest.starts = vec![nonce];
    parts.manifest.store(&parts.superblocks)?;
    parts.superblocks.clear_doubt()?;
    fault::point("member.open.registered").map_err(|e| NodeError::Fatal(e.to_string()))?;
    let me = Member { node: number, process };
    let layout = cluster.layout();
    let mut partitions = parts.partitions;
    let mut slots = Vec::new();
    let mut rows = Vec::new();
    for restored in parts.groups {
        let group = restored.group;
        let replica = Replica::new(group, me, limits, restored.restored);
        let whole = replica.contents() == Contents::Whole;
        let (table, refs) = (restored.table, restored.pending.into_iter().collect::<FxHashMap<_, Standing>>());
        let times = Arc::new(TimeBounds::default());
        for partition in layout.partitions_of(group) {
            partitions[usize::from(partition)].share_times(&times);
            partitions[usize::from(partition)].set_chunk_bytes(config.chunk_bytes);
            let standing = refs.iter().filter(|(_, standing)| standing.parts.contains(&partition));
            let standing = standing.map(|(id, standing)| (standing.txn.clone(), table.alone_time(*id)));
            rows.push(RowQueue::new(Share { layout, partition }, standing));
        }
        slots.push(Slot::new(group, Beginning { replica, table, refs, whole, times }));
    }
    let node = Node::new(Parts {
        config,
        id,
        superblocks: parts.superblocks,
        runtime: runtime.clone(),
        log: parts.log,
        catalog: CatalogStore::mirror(Catalog::default()),
        partitions,
        budget: parts.budget,
        manifest: parts.manifest,
    });
    let member = Arc::new_cyclic(|own| Cluster {
        own: own.clone(),
        me,
        id: cluster.id,
        node: Arc::downgrade(&node),
        runtime: runtime.clone(),
        network: network.clone(),
        consensus: consensus.clone(),
        hooks,
        layout,
        slots: slots.into(),
        rows: rows.into(),
        group: RwLock::new(Arc::new(Group::new())),
        followed: AtomicU64::new(0),
        followed_catalog: AtomicU64::new(0),
        placement: AtomicU32::new(0),
        catalog: Arc::new(CatalogState::default()),
        following: Mutex::new(VecDeque::new()),
        changed: Event::default(),
        questions: Questions::default(),
        leading: Leading::default(),
        times: Times::default(),
        flushing: Flushing::default(),
        cuts: Cuts::default(),
        pacing: Pacing::default(),
        replicated,
        statistics: Default::default(),
        comparing: Comparing::new(node.partitions.len()),
        rooms: Default::default(),
        forgets: Mutex::default(),
        tasks: Tasks::start(&*runtime, network.clone()),
        beats: Tasks::start(&*runtime, network.clone()),
        closing: Mutex::default(),
        proposals: AtomicU64::new(1),
        outgoing: Mutex::default(),
        courier: Event::default(),
        expelled: AtomicBool::new(false),
        is_lacking: AtomicBool::new(false),
        closed: AtomicBool::new(false),
    });
    node.join_cluster(member.clone());
    for (number, partition) in (0..).zip(&node.partitions) {
        let weak = Arc::downgrade(&node);
        partition.set_first(move |p| {
            if let Some(node) = weak.upgrade()
                && let Some(cluster) = node.cluster()
            {
                cluster.take_in(&node, number, p);
            }
        });
    }
    member.start(&node);
    ops::start(&node);
    let watcher: Arc<dyn Watcher> = member.clone();
    consensus.watch(Arc::downgrade(&watcher));
    member.on_group(&consensus.group());
    checkpoint::background::start(&node);
    member.catch_up(progress).await?;
    Ok(Some(Database { node }))
}

/// Whether what a log with a hole has of a partition can be given up: another node is in-sync, so it has all that this directory's process has acknowledged. With durability `replicated` the memory counts, which is lost anyway.
fn may_give_up(me: NodeId, hole: &str, state: &ReplicationGroup, replicated: bool) -> Result<(), NodeError> {
    if replicated || state.in_sync.iter().any(|member| member.node != me) {
        return Ok(());
    }
    Err(NodeError::Fatal(format!(
        "recovery failed: {hole}, and no other node has all of the group, so the missing entries are nowhere else: \
         restore this directory from a backup"
    )))
}

impl Watcher for Cluster {
    fn on_applied(&self, group: &Arc<Group>) {
        if let Some(node) = self.node.upgrade()
            && let Some(cluster) = node.cluster()
        {
            cluster.on_group(group);
        }
    }
}

async fn introduce(
    identity: &Identity,
    runtime: &dyn Runtime,
    consensus: &dyn Consensus,
    progress: &(dyn Fn(&str) + Send + Sync),
) -> Result<NodeId, NodeError> {
    let command = GroupCommand::AddNode {
        directory: identity.directory,
        address: identity.address.clone(),
        sql_address: identity.sql_address.clone(),
        native_address: identity.native_address.clone(),
        roles: identity.roles.clone(),
    };
    loop {
        match consensus.propose(command.clone(), PROPOSE).await {
            Ok(Answer::Node(node)) => return Ok(node),
            Ok(Answer::Refused(why)) => return Err(NodeError::Unavailable(why.to_string())),
            Ok(other) => return Err(NodeError::Unavailable(format!("the manage group answered {other:?}"))),
            Err(error) => progress(&format!("waiting for the manage group: {error}")),
        }
        runtime.sleep(AGAIN).await;
    }
}

/// A directory that does not know of its node's newest start is an older copy of it, or has lost its manifest: what it
/// has must not count as what the node had.
fn refuse_older_copy(node: NodeId, group: &Group, superblocks: &Superblocks) -> Result<(), NodeError> {
    let Some(newest) = group.nodes.get(&node).and_then(|state| state.recorded) else { return Ok(()) };
    let knows = Manifest::load(superblocks)?.is_some_and(|manifest| manifest.starts.contains(&newest));
    if knows { Ok(()) } else { Err(NodeError::Fatal(Refused::OlderDirectory(node.0).to_string())) }
}

/// The start that is about to be registered joins those of which it is not known what became of them, and the last that was registered, which is the first of them.
fn remember_start(manifest: &mut Manifest, nonce: u64) {
    manifest.starts.push(nonce);
    if manifest.starts.len() > STARTS {
        manifest.starts.remove(1);
    }
}

async fn register(
    command: GroupCommand,
    runtime: &dyn Runtime,
    consensus: &dyn Consensus,
    progress: &(dyn Fn(&str) + Send + Sync),
) -> Result<Option<rauk_types::ProcessId>, NodeError> {
    loop {
        match consensus.propose(command.clone(), PROPOSE).await {
            Ok(Answer::Process(process)) => return Ok(Some(process)),
            Ok(Answer::Void) => return Ok(None),
            Ok(Answer::Refused(why)) => return Err(NodeError::Unavailable(why.to_string())),
            Ok(other) => return Err(NodeError::Unavailable(format!("the manage group answered {other:?}"))),
            Err(error) => progress(&format!("waiting for the manage group: {error}")),
        }
        runtime.sleep(AGAIN).await;
    }
}

impl Cluster {
    /// Waits until this process has followed the group as far as it is known here, for as long as that takes.
    async fn catch_up(&self, progress: &(dyn Fn(&str) + Send + Sync)) -> Result<(), NodeError> {
        let index = self.group().index;
        while !self.wait_index(index, PROPOSE).await {
            if self.is_closed() {
                return Err(NodeError::Unavailable("the node was closed before it had the cluster's catalog".into()));
            }
            progress(&format!(
                "waiting until this node has the cluster's catalog: it has followed {} of {index} decisions",
                self.index()
            ));
        }
        Ok(())
    }

    fn start(self: &Arc<Self>, node: &Arc<Node>) {
        let weak = || Arc::downgrade(node);
        self.runtime.spawn("flush", Box::pin(Cluster::run_flushing(weak())));
        self.runtime.spawn("heartbeat", Box::pin(Cluster::run_heartbeats(weak())));
        self.runtime.spawn("cuts", Box::pin(Cluster::run_cuts(weak())));
        self.runtime.spawn("lead", Box::pin(Cluster::run_leading(weak())));
        self.runtime.spawn("follow", Box::pin(run_following(weak())));
        self.runtime.spawn("tick", Box::pin(run_ticks(weak())));
        self.runtime.spawn("courier", Box::pin(run_courier(weak())));
    }
}

/// Time passes for the slots; prepared transactions that nobody decides are taken over.
async fn run_ticks(weak: Weak<Node>) {
    let mut last_look = Duration::ZERO;
    let mut last_question = Duration::ZERO;
    let mut told_room = Duration::ZERO;
    let mut last_forget = Duration::ZERO;
    let mut orphaned = Orphaned::default();
    loop {
        let Some(node) = weak.upgrade() else { return };
        let Some(cluster) = node.cluster().cloned() else { return };
        if cluster.is_closed() {
            return;
        }
        for slot in &cluster.slots {
            cluster.poke(slot.group, Happening::Tick);
        }
        told_room = cluster.tell_room(&node, told_room);
        cluster.note_cut_age();
        let now = cluster.runtime.now();
        let looks = now.saturating_sub(last_look) >= LOOK;
        // Coordinators wait to hear that outcomes are on disk, to forget them; where memory counts, nobody does.
        if looks || !cluster.replicated {
            cluster.flushing.now_and_then();
        }
        if looks {
            last_look = now;
            commit::take_over(&node);
        }
        if now.saturating_sub(last_forget) >= FORGET {
            last_forget = now;
            cluster.tasks.here(|| commit::send_forgets(&node, &cluster));
        }
        if now.saturating_sub(last_question) >= LINGER {
            last_question = now;
            cluster.drop_orphaned(&mut orphaned);
            commit::ask_coordinators(&node);
        }
        let runtime = cluster.runtime.clone();
        drop(cluster);
        drop(node);
        runtime.sleep(TICK).await;
    }
}

/// Sends what was left by threads that do not look there themselves.
async fn run_courier(weak: Weak<Node>) {
    loop {
        let Some(node) = weak.upgrade() else { return };
        let Some(cluster) = node.cluster().cloned() else { return };
        if cluster.is_closed() {
            return;
        }
        drop(node);
        let number = cluster.courier.number();
        cluster.send_outgoing();
        cluster.courier.after(number).await;
    }
}

/// Brings tables and partitions to what the group has decided.
async fn run_following(weak: Weak<Node>) {
    loop {
        let Some(node) = weak.upgrade() else { return };
        let Some(cluster) = node.cluster().cloned() else { return };
        if cluster.is_closed() {
            return;
        }
        let number = cluster.changed.number();
        let newest = {
            let mut following = cluster.following.lock();
            // States in between need not be followed one by one.
            let newest = following.drain(..).max_by_key(|group| group.index);
            newest.filter(|group| group.index > cluster.index())
        };
        match newest {
            Some(group) => {
                // Nothing can fail here; a test makes it slow.
                let _ = fault::point("member.follow");
                cluster.catalog.follow(&node, &group).await;
                cluster.followed_catalog.store(group.catalog_index, Ordering::Release);
                cluster.followed.store(group.index, Ordering::Release);
                cluster.changed.fire();
            }
            None => {
                drop(node);
                cluster.changed.after(number).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rauk_types::{ProcessId, View};

    #[test]
    fn a_log_with_a_hole_is_given_up_only_where_another_node_has_everything() {
        let member = |node: u16| Member { node: NodeId(node), process: ProcessId(u32::from(node)) };
        let state = |in_sync: &[u16]| ReplicationGroup {
            version: 1,
            view: View(1),
            primary: None,
            in_sync: in_sync.iter().copied().map(member).collect(),
            placed: vec![NodeId(1), NodeId(2)],
            ..ReplicationGroup::default()
        };
        let check = |in_sync: &[u16], replicated| may_give_up(NodeId(1), "entry 9", &state(in_sync), replicated);
        assert_eq!(check(&[1, 2], false), Ok(()));
        assert_eq!(check(&[2], false), Ok(()));
        assert_eq!(check(&[1], true), Ok(()));
        for in_sync in [&[1][..], &[]] {
            let refused = check(in_sync, false).unwrap_err().to_string();
            assert!(refused.contains("entry 9") && refused.contains("no other node"), "{refused}");
        }
    }
}
