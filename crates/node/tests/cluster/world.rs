//! A cluster within one process: real nodes on threads, a network of channels that can be cut, disks in memory, and a consensus that is one state under a lock.
//!
//! What consensus, network and clocks do under faults is the simulator's matter; here the glue runs on real threads.

use super::support::config;
use parking_lot::{Mutex, RwLock};
use rauk_log::{Disk, MemoryDisk};
use rauk_manage::consensus::{BoxFuture, Consensus, ProposeError, Watcher};
use rauk_manage::group::{
    Answer, ClusterConfig, ClusterDurability, DEFAULT_MEMORY_RETURN, DEFAULT_REPLACE_AFTER, Group, GroupCommand,
    ReplicationGroup, RoleKind,
};
use rauk_node::member::hooks::Hooks;
use rauk_node::member::network::Network;
use rauk_node::member::{Identity, MemberOptions};
use rauk_node::recovery::adopt;
use rauk_node::{Config, Database, NodeError, Threads, block_on};
use rauk_types::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// What all nodes share.
pub struct World {
    group: Mutex<Arc<Group>>,
    watchers: Mutex<Vec<Weak<dyn Watcher>>>,
    /// The node that leads the manage group.
    leader: RwLock<Option<NodeId>>,
    inboxes: Mutex<BTreeMap<NodeId, Sender<Vec<u8>>>>,
    /// Pairs (from, to) that do not get through.
    cuts: RwLock<BTreeSet<(NodeId, NodeId)>>,
    disks: Vec<Arc<dyn Disk>>,
    /// Messages sent, by all nodes.
    pub sent: AtomicUsize,
    /// Bytes of a commit in one partition, for nodes that are opened from now on.
    pub commit_limit: AtomicUsize,
    /// Bytes of a chunk, for the same.
    pub chunk_bytes: AtomicUsize,
    /// What bounds large transactions, for the same.
    pub standing_chunk_bytes: AtomicUsize,
    pub unstable_bytes: AtomicUsize,
    pub memory_limit: AtomicUsize,
    /// Milliseconds from one comparison of replicas to the next, for the same.
    pub compare_every: AtomicU64,
    pub parallel_ddl_rows: AtomicU64,
    /// Commands that have been taken without an answer, while there is no majority.
    unanswered: Mutex<Option<Vec<GroupCommand>>>,
}

impl World {
    /// Each group has two partitions.
    pub fn new(nodes: usize, groups: u16, replicas: u8) -> Arc<World> {
        World::with(nodes, groups, replicas, ClusterDurability::Fsync)
    }

    pub fn with(nodes: usize, groups: u16, replicas: u8, durability: ClusterDurability) -> Arc<World> {
        let world = World::unmade((0..nodes).map(|_| MemoryDisk::new() as Arc<dyn Disk>).collect());
        world.make([7; 16], (2 * groups, groups), replicas, durability, None);
        world
    }

    /// Made of the directory of a node alone.
    pub fn adopting(
        alone: &Arc<dyn Disk>,
        disks: Vec<Arc<dyn Disk>>,
        replicas: u8,
        durability: ClusterDurability,
    ) -> Arc<World> {
        let runtime = Threads::start().unwrap();
        let surveyed = adopt::survey(&config(), alone, &*runtime, &|_| {}).unwrap().expect("a node was alone");
        let world = World::unmade(disks);
        let partitions = surveyed.partitions;
        let adopted = Some(surveyed.adopted.encode());
        world.make(surveyed.id.0, (partitions, partitions), replicas, durability, adopted);
        world
    }

    fn unmade(disks: Vec<Arc<dyn Disk>>) -> Arc<World> {
        Arc::new(World {
            group: Mutex::new(Arc::new(Group::default())),
            watchers: Mutex::default(),
            leader: RwLock::new(Some(NodeId(1))),
            inboxes: Mutex::default(),
            cuts: RwLock::default(),
            disks,
            sent: AtomicUsize::new(0),
            commit_limit: AtomicUsize::new(usize::MAX),
            chunk_bytes: AtomicUsize::new(256 << 10),
            standing_chunk_bytes: AtomicUsize::new(Config::default().standing_chunk_bytes),
            unstable_bytes: AtomicUsize::new(Config::default().unstable_bytes as usize),
            memory_limit: AtomicUsize::new(Config::default().memory_limit as usize),
            // Tests count entries.
            compare_every: AtomicU64::new(3_600_000),
            parallel_ddl_rows: AtomicU64::new(Config::default().parallel_ddl_rows),
            unanswered: Mutex::default(),
        })
    }

    fn make(
        &self,
        id: [u8; 16],
        (partitions, groups): (u16, u16),
        replicas: u8,
        durability: ClusterDurability,
        adopted: Option<Arc<str>>,
    ) {
        let config = ClusterConfig {
            id,
            name: "test".into(),
            partitions,
            groups: Some(groups),
            replicas,
            durability,
            replace_after: DEFAULT_REPLACE_AFTER,
            memory_return: DEFAULT_MEMORY_RETURN,
        };
        assert_eq!(self.propose(GroupCommand::Create { config, adopted }), Answer::Done);
    }

    pub fn propose(&self, command: GroupCommand) -> Answer {
        let mut group = self.group.lock();
        let mut next = (**group).clone();
        let answer = next.apply(group.index + 1, &command);
        *group = Arc::new(next);
        // Told under the lock, so that all hear of states in their order.
        for watcher in &*self.watchers.lock() {
            if let Some(watcher) = watcher.upgrade() {
                watcher.on_applied(&group);
            }
        }
        answer
    }

    pub fn group(&self) -> Arc<Group> {
        self.group.lock().clone()
    }

    /// From now on this node leads the control plane.
    pub fn lead(&self, node: NodeId) {
        *self.leader.write() = Some(node);
    }

    /// From now on commands are taken, and neither carried out nor answered.
    pub fn lose_majority(&self) {
        *self.unanswered.lock() = Some(Vec::new());
    }

    /// What has been taken meanwhile is carried out.
    pub fn regain_majority(&self) {
        let taken = self.unanswered.lock().take().expect("it was lost");
        taken.into_iter().for_each(|command| drop(self.propose(command)));
    }

    /// Opens node `number` (from 0), or opens it again.
    pub fn open(self: &Arc<World>, number: usize) -> Node {
        self.try_open(number).unwrap()
    }

    pub fn try_open(self: &Arc<World>, number: usize) -> Result<Node, NodeError> {
        let directory = 100 + number as u64;
        let roles = BTreeSet::from([RoleKind::Manage, RoleKind::Data, RoleKind::Sql]);
        let identity = Identity {
            directory,
            address: format!("node{number}:1"),
            sql_address: String::new(),
            native_address: String::new(),
            roles,
        };
        let config = Config {
            segment_bytes: 1 << 20,
            checkpoint_redo_bytes: 1 << 40,
            commit_limit: self.commit_limit.load(Ordering::Relaxed),
            chunk_bytes: self.chunk_bytes.load(Ordering::Relaxed) as u64,
            standing_chunk_bytes: self.standing_chunk_bytes.load(Ordering::Relaxed),
            unstable_bytes: self.unstable_bytes.load(Ordering::Relaxed) as u64,
            memory_limit: self.memory_limit.load(Ordering::Relaxed) as u64,
            compare_every: Duration::from_millis(self.compare_every.load(Ordering::Relaxed)),
            scrub_rest: Duration::from_millis(200),
            parallel_ddl_rows: self.parallel_ddl_rows.load(Ordering::Relaxed),
            ..Config::default()
        };
        let options = MemberOptions { config, identity, hooks: Hooks::default() };
        let runtime = Threads::with_fatal(|reason| panic!("fatal: {reason}")).unwrap();
        // Numbers are given in the order of opening.
        let me = Arc::new(RwLock::new(None));
        let network = Arc::new(Wire { world: self.clone(), me: me.clone() });
        let consensus = Arc::new(One { world: self.clone(), me: me.clone() });
        let opened = Database::open_member(options, self.disks[number].clone(), runtime, network, consensus, &|_| {});
        let db = block_on(opened)?;
        let id = db.member().unwrap().me().node;
        *me.write() = Some(id);
        let (sender, receiver) = channel::<Vec<u8>>();
        let receiving = db.clone();
        std::thread::spawn(move || {
            while let Ok(message) = receiver.recv() {
                if receiving.member().unwrap().is_closed() {
                    return;
                }
                receiving.receive(&message);
            }
        });
        self.inboxes.lock().insert(id, sender);
        Ok(Node { db, id, world: self.clone() })
    }

    pub fn cut(&self, from: NodeId, to: NodeId) {
        self.cuts.write().insert((from, to));
    }

    pub fn heal(&self) {
        self.cuts.write().clear();
    }

    /// Until `condition` holds, at most 20 s.
    pub fn wait(&self, what: &str, condition: impl Fn(&Group) -> bool) {
        let end = Instant::now() + Duration::from_secs(20);
        while !condition(&self.group()) {
            assert!(Instant::now() < end, "{what}: {:#?}", self.group().replication_groups);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Every group is led by its preferred node and has all its replicas, all nodes lead as many, and it stays so: a
    /// primary that moves takes the locks of transactions with it.
    pub fn wait_settled(&self) {
        self.wait("everything in its place", |group| {
            let groups = &group.replication_groups;
            let leads = |node: &NodeId| groups.iter().filter(|p| p.primary.is_some_and(|m| m.node == *node)).count();
            let led: Vec<usize> = group.nodes.keys().map(leads).collect();
            let even = led.iter().max().zip(led.iter().min()).is_some_and(|(most, least)| most - least <= 1);
            let placed = |p: &ReplicationGroup| p.primary.is_some_and(|m| m.node == p.placed[0]);
            even && groups.iter().all(|p| placed(p) && p.in_sync.len() == p.placed.len())
        });
        let mut before = self.group();
        loop {
            std::thread::sleep(Duration::from_millis(250));
            if Arc::ptr_eq(&before, &self.group()) {
                return;
            }
            before = self.group();
        }
    }

    /// Until every partition has so many in-sync replicas and a primary.
    pub fn wait_replicas(&self, replicas: usize) {
        self.wait("replicas", |group| {
            let groups = group.replication_groups.len() - 1;
            group.replication_groups[..groups].iter().all(|p| p.primary.is_some() && p.in_sync.len() == replicas)
        });
    }
}

pub struct Node {
    pub db: Database,
    pub id: NodeId,
    world: Arc<World>,
}

impl Node {
    /// As kill -9 does; what was on disk stays.
    pub fn kill(self) {
        self.world.inboxes.lock().remove(&self.id);
        self.db.member().unwrap().close();
        if *self.world.leader.read() == Some(self.id) {
            let group = self.world.group();
            *self.world.leader.write() = group.nodes.keys().copied().find(|n| *n != self.id);
        }
    }
}

struct Wire {
    world: Arc<World>,
    me: Arc<RwLock<Option<NodeId>>>,
}

impl Network for Wire {
    fn send(&self, to: NodeId, message: Vec<u8>) {
        let Some(me) = *self.me.read() else { return };
        self.world.sent.fetch_add(1, Ordering::Relaxed);
        if self.world.cuts.read().contains(&(me, to)) {
            return;
        }
        if let Some(inbox) = self.world.inboxes.lock().get(&to) {
            let _ = inbox.send(message);
        }
    }

    fn set_peers(&self, _: &BTreeMap<NodeId, String>) {}
}

struct One {
    world: Arc<World>,
    me: Arc<RwLock<Option<NodeId>>>,
}

impl Consensus for One {
    fn propose(&self, command: GroupCommand, _: Duration) -> BoxFuture<Result<Answer, ProposeError>> {
        let world = self.world.clone();
        Box::pin(async move {
            if let Some(taken) = &mut *world.unanswered.lock() {
                taken.push(command);
                return Err(ProposeError::Unknown("no majority".into()));
            }
            Ok(world.propose(command))
        })
    }

    fn watch(&self, watcher: Weak<dyn Watcher>) {
        self.world.watchers.lock().push(watcher);
    }

    fn group(&self) -> Arc<Group> {
        self.world.group()
    }

    fn leading(&self) -> Option<u64> {
        let me = *self.me.read();
        (me.is_some() && me == *self.world.leader.read()).then(|| u64::from(me.unwrap().0))
    }

    fn confirm(&self) -> BoxFuture<Option<u64>> {
        let index = self.leading().map(|_| self.world.group().index);
        Box::pin(async move { index })
    }

    fn leader(&self) -> Option<NodeId> {
        *self.world.leader.read()
    }

    fn voters(&self) -> BTreeSet<NodeId> {
        self.leader().into_iter().collect()
    }
}
