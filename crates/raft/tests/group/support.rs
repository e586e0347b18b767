//! A network in memory, nodes on it, and how tests wait.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rauk_log::{Disk, MemoryDisk};
use rauk_manage::command::Command;
use rauk_manage::consensus::{BoxFuture, Consensus, ProposeError, Watcher};
use rauk_manage::group::{
    Answer, CatalogAnswer, ClusterConfig, ClusterDurability, DEFAULT_MEMORY_RETURN, DEFAULT_REPLACE_AFTER, Group,
    GroupCommand, RoleKind,
};
use rauk_raft::{Description, Options, RaftError, RaftGroup, Timing, Transport};
use rauk_types::{NodeId, TableId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

pub const SOON: Duration = Duration::from_secs(10);

/// Polls a future on this thread.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// Waits until something holds; panics with `what` after ten seconds.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) -> Duration {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < SOON, "{what}: not within ten seconds");
        std::thread::sleep(Duration::from_millis(5));
    }
    begun.elapsed()
}

#[derive(Default)]
pub struct Net {
    state: Mutex<NetState>,
}

#[derive(Default)]
struct NetState {
    nodes: BTreeMap<String, Weak<RaftGroup>>,
    /// From, to: what is sent there is lost.
    cut: BTreeSet<(String, String)>,
    /// Loses an answer, or does a request twice, this often.
    unreliable: Option<(SmallRng, f64)>,
}

impl Net {
    /// With `RAFT_LOG` set, what openraft says is shown.
    pub fn new() -> Arc<Net> {
        if std::env::var("RAFT_LOG").is_ok() {
            let _ = tracing_subscriber::fmt().with_env_filter("info").with_ansi(false).try_init();
        }
        Arc::default()
    }

    pub fn cut(&self, from: &str, to: &str) {
        self.state.lock().unwrap().cut.insert((from.into(), to.into()));
    }

    /// Cuts every link between nodes of different sides, both ways.
    pub fn part(&self, sides: &[&[&str]]) {
        for (i, side) in sides.iter().enumerate() {
            for other in sides.iter().skip(i + 1) {
                for (a, b) in side.iter().flat_map(|a| other.iter().map(move |b| (a, b))) {
                    self.cut(a, b);
                    self.cut(b, a);
                }
            }
        }
    }

    pub fn heal(&self) {
        self.state.lock().unwrap().cut.clear();
    }

    pub fn unreliable(&self, chance: Option<(u64, f64)>) {
        self.state.lock().unwrap().unreliable = chance.map(|(seed, p)| (SmallRng::seed_from_u64(seed), p));
    }

    pub fn put(&self, address: &str, group: &Arc<RaftGroup>) {
        self.state.lock().unwrap().nodes.insert(address.into(), Arc::downgrade(group));
    }

    fn is_cut(&self, from: &str, to: &str) -> bool {
        self.state.lock().unwrap().cut.contains(&(from.to_string(), to.to_string()))
    }

    fn fate(&self) -> (bool, bool) {
        let mut state = self.state.lock().unwrap();
        let Some((random, chance)) = &mut state.unreliable else { return (false, false) };
        let chance = *chance;
        (random.random_bool(chance), random.random_bool(chance))
    }
}

pub struct Wire {
    pub net: Arc<Net>,
    pub from: String,
}

impl Transport for Wire {
    fn call(&self, _to: NodeId, address: &str, request: Vec<u8>) -> BoxFuture<Result<Vec<u8>, String>> {
        let (net, from, address) = (self.net.clone(), self.from.clone(), address.to_string());
        Box::pin(async move {
            if net.is_cut(&from, &address) {
                return std::future::pending().await;
            }
            let group = net.state.lock().unwrap().nodes.get(&address).and_then(Weak::upgrade);
            let group = group.ok_or("connection refused")?;
            let (twice, lost) = net.fate();
            let again = twice.then(|| group.serve(&request));
            let answer = group.serve(&request);
            drop(group);
            let answer = answer.await;
            if let Some(again) = again {
                again.await;
            }
            if lost || net.is_cut(&address, &from) {
                return std::future::pending().await;
            }
            Ok(answer)
        })
    }
}

/// Sees that a process hears of everything in order.
#[derive(Default)]
pub struct Recorder {
    pub heard: Mutex<Vec<u64>>,
}

impl Watcher for Recorder {
    fn on_applied(&self, group: &Arc<Group>) {
        let mut heard = self.heard.lock().unwrap();
        assert!(heard.last().is_none_or(|last| *last < group.index), "{:?} then {}", heard.last(), group.index);
        heard.push(group.index);
    }
}

/// A node: its disk stays when its process ends.
pub struct Node {
    pub name: String,
    pub net: Arc<Net>,
    pub disk: Arc<dyn Disk>,
    pub options: Options,
    pub roles: BTreeSet<RoleKind>,
    /// Of the process that runs, or ran last.
    recorder: Mutex<Arc<Recorder>>,
    group: Mutex<Option<Arc<RaftGroup>>>,
}

impl Node {
    pub fn new(net: &Arc<Net>, name: &str, roles: &[RoleKind]) -> Node {
        Node::on(net, name, roles, MemoryDisk::new())
    }

    pub fn on(net: &Arc<Net>, name: &str, roles: &[RoleKind], disk: Arc<dyn Disk>) -> Node {
        Node::timed(net, name, roles, disk, Timing::default())
    }

    /// For tests in which no election must be held, however busy the machine is.
    pub fn patient(net: &Arc<Net>, name: &str, disk: Arc<dyn Disk>) -> Node {
        Node::timed(net, name, ALL, disk, Timing { lease: Duration::from_millis(1_000), ..Timing::default() })
    }

    fn timed(net: &Arc<Net>, name: &str, roles: &[RoleKind], disk: Arc<dyn Disk>, timing: Timing) -> Node {
        let directory = name.bytes().fold(7, |sum: u64, byte| sum * 257 + u64::from(byte));
        let mut options = Options::new(directory);
        options.snapshot_after = 50;
        options.keep_entries = 10;
        options.timing = timing;
        let roles = roles.iter().copied().collect();
        let (recorder, group) = Default::default();
        let node = Node { name: name.into(), net: net.clone(), disk, options, roles, recorder, group };
        node.start();
        node
    }

    pub fn start(&self) {
        let recorder = Arc::<Recorder>::default();
        let wire = Arc::new(Wire { net: self.net.clone(), from: self.name.clone() });
        let group = RaftGroup::start(self.options.clone(), self.disk.clone(), wire, vec![recorder.clone()]).unwrap();
        self.net.put(&self.name, &group);
        *self.recorder.lock().unwrap() = recorder;
        *self.group.lock().unwrap() = Some(group);
    }

    /// What is on its disk now, on another one.
    pub fn copy_disk(&self) -> Arc<dyn Disk> {
        let copy: Arc<dyn Disk> = MemoryDisk::new();
        for name in self.disk.list("manage").unwrap() {
            let path = format!("manage/{name}");
            let file = self.disk.open(&path, false).unwrap();
            let mut bytes = vec![0; file.len().unwrap() as usize];
            file.read_exact_at(&mut bytes, 0).unwrap();
            copy.open(&path, true).unwrap().write_all_at(&bytes, 0).unwrap();
        }
        copy
    }

    /// Ends the process. What it was doing ends with it; its disk has what was synced.
    pub fn stop(&self) {
        let group = self.group.lock().unwrap().take();
        if let Some(group) = group {
            group.shutdown();
        }
    }

    pub fn running(&self) -> Option<Arc<RaftGroup>> {
        self.group.lock().unwrap().clone()
    }

    pub fn group(&self) -> Arc<RaftGroup> {
        self.running().expect("the node runs")
    }

    /// What the watchers of its process heard.
    pub fn heard(&self) -> Vec<u64> {
        self.recorder.lock().unwrap().heard.lock().unwrap().clone()
    }

    pub fn description(&self) -> Description {
        Description {
            address: self.name.clone(),
            sql_address: String::new(),
            native_address: String::new(),
            roles: self.roles.clone(),
        }
    }

    pub fn bootstrap(&self) {
        wait(self.group().bootstrap(config("shop"), None, self.description())).unwrap();
    }

    pub fn join(&self, seed: &str) -> Result<NodeId, RaftError> {
        wait(self.group().join("shop", &[seed.to_string()], self.description(), SOON))
    }

    pub fn propose(&self, command: GroupCommand) -> Result<Answer, ProposeError> {
        wait(self.group().propose(command, SOON))
    }

    /// [`begin`], done: how often by now, as this process sees it.
    pub fn begin(&self, table: u32) -> usize {
        assert_done(&self.propose(begin(table)).unwrap());
        times(&self.group().group(), table)
    }

    pub fn leads(&self) -> bool {
        self.running().is_some_and(|group| group.leading().is_some())
    }

    /// None while they are being changed.
    pub fn voters(&self) -> Vec<u16> {
        let status = self.group().status();
        if status.changing { Vec::new() } else { status.voters.iter().map(|node| node.0).collect() }
    }
}

pub fn config(name: &str) -> ClusterConfig {
    let mut id = [1; 16];
    id[..name.len()].copy_from_slice(name.as_bytes());
    ClusterConfig {
        id,
        name: name.into(),
        partitions: 4,
        groups: None,
        replicas: 2,
        durability: ClusterDurability::Fsync,
        replace_after: DEFAULT_REPLACE_AFTER,
        memory_return: DEFAULT_MEMORY_RETURN,
    }
}

pub const ALL: &[RoleKind] = &[RoleKind::Manage, RoleKind::Data, RoleKind::Sql];
pub const SQL: &[RoleKind] = &[RoleKind::Sql];

/// A command that shows each time that it is done: a DDL job begins.
pub fn begin(table: u32) -> GroupCommand {
    let command = Command::StartJob { what: "a test".into(), table: TableId(table), builds: 0 };
    GroupCommand::Catalog { command, intent: None }
}

/// How often [`begin`] was done.
pub fn times(group: &Group, table: u32) -> usize {
    group.catalog.jobs().filter(|job| job.table == TableId(table)).count()
}

pub fn assert_done(answer: &Answer) {
    assert!(matches!(answer, Answer::Catalog(CatalogAnswer::Applied(_))), "{answer:?}");
}

/// A cluster of all-in-one nodes `n1`, `n2` …, all that may vote voting.
pub fn cluster(net: &Arc<Net>, count: usize) -> Vec<Node> {
    form((1..=count).map(|i| Node::new(net, &format!("n{i}"), ALL)).collect())
}

/// The first node makes a cluster, and the others join it.
pub fn form(nodes: Vec<Node>) -> Vec<Node> {
    let count = nodes.len();
    nodes[0].bootstrap();
    for node in &nodes[1..] {
        node.join("n1").unwrap();
    }
    let voters = if count < 3 { 1 } else { 3 + 2 * usize::from(count >= 5) };
    until("all vote", || nodes.iter().all(|node| node.voters().len() == voters));
    nodes
}

pub fn leader(nodes: &[Node]) -> usize {
    let mut found = None;
    until("somebody leads", || {
        found = nodes.iter().position(|node| node.leads() && wait(node.group().confirm()).is_some());
        found.is_some()
    });
    found.expect("found")
}

/// Waits until all have the same state, with every command up to now.
pub fn agree(nodes: &[Node]) {
    let groups = || -> Vec<Arc<Group>> { nodes.iter().filter_map(Node::running).map(|group| group.group()).collect() };
    let index = groups().iter().map(|group| group.index).max().unwrap();
    until("all have the same state", || {
        let groups = groups();
        groups.iter().all(|group| group.index >= index && **group == *groups[0])
    });
}
