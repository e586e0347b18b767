//! The machines of a cluster, what runs on them, and what may be done to them.
//!
//! A *machine* is a site of the network with a disk that stays; a *life* is one process on it: the node, its clients, its side of the consensus. [`World::start`] begins a life, [`World::end`]
//! ends it; a supervisor starts what has ended by itself, as an operator's would. A life ends by itself when its node says so (`fatal`), its disk stops, or the cluster has given up on it.
mod damage;

use super::check::cut::Back;
use super::consensus::SimConsensus;
use super::network::{Endpoint, SimNetwork, Site};
use super::record::{Answers, Served};
use super::scenario::{Clients, Durability, Scenario};
use super::workload::cells::CellEvaluator;
use super::workload::{self, Kind, Shared};
use crate::clock::SimClock;
use crate::disk::SimDisk;
use crate::executor::{Drift, Executor};
use crate::meddling::Meddling;
use crate::node::client::{Client, Counts};
use crate::runtime::SimRuntime;
use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{Rng, RngCore, SeedableRng};
use rauk_manage::group::{
    self, ClusterConfig, ClusterDurability, DEFAULT_MEMORY_RETURN, DEFAULT_REPLACE_AFTER, GroupCommand,
    ReplicationGroup, RoleKind,
};
use rauk_node::member::hooks::{Hooks, Observer, Safeguards};
use rauk_node::member::{Identity, MemberOptions};
use rauk_node::runtime::Runtime;
use rauk_node::{Config, Database, FlushPolicy, NodeError};
use rauk_types::{ErrorClass, GroupId, Member, ProcessId, Timestamp, View};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// The slowest sync of a slow disk.
const SLOWEST: Duration = Duration::from_millis(60);

/// Counted when a log is opened that lacks entries of a partition's stream.
pub const HOLE: &str = "hole in a log";

/// The memory limit of each node.
pub const MEMORY: u64 = 256 << 20;

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Only the process: what it wrote is in the machine's cache.
    Kill,
    /// The machine: what was not synced is lost or torn.
    Power,
}

/// Clones are the same.
#[derive(Clone)]
pub struct World {
    pub executor: Executor,
    clock: SimClock,
    pub network: SimNetwork,
    pub consensus: SimConsensus,
    pub shared: Shared,
    pub counts: Counts,
    pub answers: Arc<Answers>,
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    rng: SmallRng,
    machines: BTreeMap<Site, Machine>,
    config: Config,
    safeguards: Safeguards,
    drift: i64,
    interrupted: f64,
    clients: Clients,
    /// Whether nodes that open get their clients.
    working: bool,
    /// Cuts as they were seen to be complete: when, and their times.
    cuts: Vec<(Duration, Timestamp)>,
    /// When processes were ended.
    ends: Vec<Duration>,
    backs: Vec<Back>,
    /// Clients that have not ended.
    busy: Arc<Mutex<i64>>,
}

struct Machine {
    roles: BTreeSet<RoleKind>,
    disk: SimDisk,
    directory: u64,
    life: Option<Life>,
    /// Not started again before this.
    rests_until: Duration,
    /// Its disk has been made to fail in this life: then the node may stop itself.
    disk_fails: bool,
    /// Processes that were started here, and which of them was the last to open.
    starts: u64,
    opened: u64,
    /// An older directory of it.
    copy: Option<damage::Copy>,
    /// What somebody has done to its directory, until a start has judged it.
    damaged: Option<Meddling>,
}

struct Life {
    runtime: SimRuntime,
    db: Option<Database>,
    /// It has lost its lease, and writes to its disk what it has in memory: when it is through.
    fenced: Option<Arc<Mutex<Option<Duration>>>>,
}

/// Notes a process's answers.
struct Watch {
    runtime: SimRuntime,
    process: Arc<Mutex<ProcessId>>,
    answers: Arc<Answers>,
    counts: Counts,
    interrupted: f64,
}

/// Sooner than in production, so that it happens within a run.
const ORPHANED_AFTER: Duration = Duration::from_millis(300);

impl Observer for Watch {
    fn leaves_actions(&self) -> bool {
        self.interrupted > 0.0 && (self.runtime.random() as f64 / u64::MAX as f64) < self.interrupted
    }

    fn hole(&self, _: GroupId) {
        self.counts.add(HOLE);
    }

    fn orphaned(&self, _: GroupId) {
        self.counts.add("orphaned rows dropped");
    }

    fn answered(&self, group: GroupId, view: View) {
        let (at, process) = (self.runtime.simulated_now(), *self.process.lock());
        self.answers.0.lock().push(Served { at, process, group, view });
    }
}

/// A client's presence: gone when its task ends or is dropped.
struct Busy(Arc<Mutex<i64>>);

impl Busy {
    fn new(count: &Arc<Mutex<i64>>) -> Busy {
        *count.lock() += 1;
        Busy(count.clone())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        *self.0.lock() -= 1;
    }
}

impl World {
    /// All machines of the scenario, nothing running; the cluster is made in the manage group.
    pub fn new(scenario: &Scenario, seed: u64, safeguards: Safeguards) -> World {
        let mut rng = SmallRng::seed_from_u64(seed);
        let clock = SimClock::default();
        let executor = Executor::new(rng.next_u64(), clock.clone());
        let network = SimNetwork::new(rng.next_u64(), executor.clone());
        let mut machines = BTreeMap::new();
        let mut voters = Vec::new();
        for nodes in &scenario.nodes {
            for _ in 0..nodes.count {
                let site = Site(machines.len() as u16 + 1);
                if nodes.kinds().contains(&RoleKind::Manage) {
                    voters.push(site);
                }
                let disk = SimDisk::new(rng.next_u64(), clock.clone());
                disk.set_slow_most(SLOWEST);
                let machine = Machine {
                    roles: nodes.kinds(),
                    disk,
                    directory: rng.next_u64(),
                    life: None,
                    rests_until: Duration::from_secs_f64(nodes.join_at.map_or(0.0, |_| f64::from(u32::MAX))),
                    disk_fails: false,
                    starts: 0,
                    opened: 0,
                    copy: None,
                    damaged: None,
                };
                machines.insert(site, machine);
            }
        }
        let consensus = SimConsensus::new(rng.next_u64(), executor.clone(), network.clone(), voters);
        let config = ClusterConfig {
            id: [7; 16],
            name: "simulated".to_string(),
            partitions: scenario.partitions,
            groups: Some(scenario.groups_under(seed)),
            replicas: scenario.replicas,
            durability: match scenario.durability {
                Durability::Fsync => ClusterDurability::Fsync,
                Durability::Replicated => ClusterDurability::Replicated,
            },
            replace_after: DEFAULT_REPLACE_AFTER,
            memory_return: if safeguards.silence { DEFAULT_MEMORY_RETURN } else { 0 },
        };
        consensus.commit(GroupCommand::Create { config, adopted: None });
        let config = Config {
            partitions: scenario.partitions,
            memory_limit: MEMORY,
            memory_available: u64::MAX,
            history_limit: 64 << 20,
            segment_bytes: [32 << 10, 256 << 10][rng.random_range(0..2)],
            checkpoint_redo_bytes: [60 << 10, 1 << 20][rng.random_range(0..2)],
            flush: [FlushPolicy::Adaptive, FlushPolicy::Committer, FlushPolicy::Thread][rng.random_range(0..3)],
            // Small enough that transactions of a few rows are large ones.
            chunk_bytes: [40, 250, 256 << 10][(seed % 3) as usize],
            end_slice: [1, 3, 128][(seed / 3 % 3) as usize],
            standing_chunk_bytes: [1 << 10, 512 << 20][(seed / 2 % 2) as usize],
            unstable_bytes: [1 << 10, 16 << 20][(seed / 4 % 2) as usize],
            compare_every: Duration::from_millis(300),
            scrub_rest: Duration::from_millis(300),
            parallel_ddl_rows: [0, 8, u64::MAX][(seed / 5 % 3) as usize],
            ..Config::default()
        };
        let config = if scenario.small_log {
            Config { segment_bytes: 16 << 10, checkpoint_redo_bytes: 64 << 20, ..config }
        } else {
            config
        };
        let inner = Inner {
            rng,
            machines,
            config,
            safeguards,
            drift: scenario.drift,
            interrupted: scenario.interrupted,
            clients: scenario.clients,
            working: false,
            cuts: vec![(Duration::ZERO, Timestamp::ZERO)],
            ends: Vec::new(),
            backs: Vec::new(),
            busy: Arc::default(),
        };
        World {
            shared: Shared::new(executor.clone(), &clock, Some(consensus.clone())),
            executor,
            clock,
            network,
            consensus,
            counts: Counts::default(),
            answers: Arc::default(),
            inner: Arc::new(Mutex::new(inner)),
        }
    }

    pub fn random(&self) -> u64 {
        self.inner.lock().rng.next_u64()
    }

    pub fn sites(&self) -> Vec<Site> {
        self.inner.lock().machines.keys().copied().collect()
    }

    /// Sites that have been started at least once, or may be at any time.
    pub fn members(&self) -> Vec<Site> {
        let never = Duration::from_secs(u32::MAX.into());
        let inner = self.inner.lock();
        inner.machines.iter().filter(|(_, machine)| machine.rests_until < never).map(|(site, _)| *site).collect()
    }

    pub fn is_manage(&self, site: Site) -> bool {
        self.inner.lock().machines[&site].roles.contains(&RoleKind::Manage)
    }

    pub fn disk(&self, site: Site) -> SimDisk {
        self.inner.lock().machines[&site].disk.clone()
    }

    pub fn runtime(&self, site: Site) -> Option<SimRuntime> {
        self.inner.lock().machines[&site].life.as_ref().map(|life| life.runtime.clone())
    }

    pub fn database(&self, site: Site) -> Option<Database> {
        self.inner.lock().machines[&site].life.as_ref()?.db.clone()
    }

    /// Open databases of sites that take clients.
    pub fn open_sql(&self) -> Vec<(Site, Database, SimRuntime)> {
        let inner = self.inner.lock();
        let open = inner.machines.iter().filter(|(_, machine)| machine.roles.contains(&RoleKind::Sql));
        let open = open.filter_map(|(site, machine)| {
            let life = machine.life.as_ref()?;
            Some((*site, life.db.clone()?, life.runtime.clone()))
        });
        open.collect()
    }

    pub fn sql_sites(&self) -> usize {
        let members = self.members();
        let inner = self.inner.lock();
        members.iter().filter(|site| inner.machines[site].roles.contains(&RoleKind::Sql)).count()
    }

    /// Sites to which rows are being copied.
    pub fn joiners(&self) -> Vec<Site> {
        let known = self.consensus.group();
        let is_joining = |site: &Site| {
            let (address, up) = (site.address(), |node: &group::NodeState| node.life == group::Life::Up);
            let node = known.nodes.iter().find(|(_, node)| node.address == address && up(node)).map(|(id, _)| *id);
            node.is_some_and(|node| {
                let lacks =
                    |p: &ReplicationGroup| p.placed.contains(&node) && !p.in_sync.iter().any(|m| m.node == node);
                known.replication_groups.iter().any(lacks)
            })
        };
        self.members().into_iter().filter(is_joining).collect()
    }

    /// Lowers the memory limit of the process at a site to a share of what it uses now; `None`: none is open there.
    pub fn limit_memory(&self, site: Site, share: f64) -> Option<Database> {
        let db = self.database(site)?;
        db.set_memory_limit((db.memory_used() as f64 * share) as u64);
        Some(db)
    }

    /// From now on (until it is told otherwise) every node has its clients.
    pub fn set_working(&self, working: bool) {
        self.inner.lock().working = working;
        if working {
            for (site, db, runtime) in self.open_sql() {
                self.spawn_clients(site, &db, &runtime);
            }
        }
    }

    pub fn busy_clients(&self) -> i64 {
        *self.inner.lock().busy.lock()
    }

    pub fn client(&self, db: &Database, runtime: &SimRuntime) -> Client {
        let rng = SmallRng::seed_from_u64(self.random());
        Client { db: db.clone(), runtime: runtime.clone(), rng, counts: self.counts.clone() }
    }

    /// A process begins at a site where none runs.
    pub fn start(&self, site: Site) {
        let (runtime, disk, options, watch) = {
            let mut inner = self.inner.lock();
            let inner = &mut *inner;
            let limit = inner.drift;
            let drift = Drift {
                offset: Duration::from_millis(if limit > 0 { inner.rng.random_range(0..100_000) } else { 0 }),
                parts_per_million: inner.rng.random_range(-limit..=limit),
            };
            let machine = inner.machines.get_mut(&site).expect("sites have machines");
            assert!(machine.life.is_none(), "{site:?} runs already");
            let runtime = self.executor.process(Some(machine.disk.clone()), drift);
            machine.life = Some(Life { runtime: runtime.clone(), db: None, fenced: None });
            machine.disk_fails = machine.disk.is_limited();
            machine.rests_until = Duration::ZERO;
            machine.starts += 1;
            let identity = Identity {
                directory: machine.directory,
                address: site.address(),
                sql_address: String::new(),
                native_address: String::new(),
                roles: machine.roles.clone(),
            };
            let process = Arc::new(Mutex::new(ProcessId::default()));
            let (answers, counts) = (self.answers.clone(), self.counts.clone());
            let interrupted = inner.interrupted;
            let watch = Watch { runtime: runtime.clone(), process: process.clone(), answers, counts, interrupted };
            let hooks = Hooks {
                safeguards: inner.safeguards,
                observer: Some(Arc::new(watch)),
                orphaned_after: Some(ORPHANED_AFTER),
            };
            let options = MemberOptions { config: inner.config.clone(), identity, hooks };
            (runtime, machine.disk.mount(), options, process)
        };
        runtime.stall_by_disk();
        self.counts.add("process started");
        self.executor.note(u64::from(site.0));
        let endpoint = self.network.attach(site, &runtime);
        let member = self.consensus.start(site, &runtime);
        let (world, handle) = (self.clone(), runtime.clone());
        runtime.spawn("open", async move {
            let network = endpoint.clone();
            let opened =
                Database::open_member(options, disk, handle.handle(), network, Arc::new(member), &|_| {}).await;
            match opened {
                Ok(db) => world.opened(site, &handle, &endpoint, db, &watch),
                Err(error) => world.not_opened(site, &handle, &error),
            }
        });
    }

    fn opened(&self, site: Site, runtime: &SimRuntime, endpoint: &Endpoint, db: Database, process: &Mutex<ProcessId>) {
        self.counts.add("node opened");
        self.opened_damaged(site);
        db.set_evaluator(Arc::new(CellEvaluator));
        *process.lock() = db.member().expect("it was opened as a member").me().process;
        let receiver = db.clone();
        endpoint.receive(Box::new(move |message| receiver.receive(message)));
        let (sql, working) = {
            let mut inner = self.inner.lock();
            let working = inner.working;
            let machine = inner.machines.get_mut(&site).expect("sites have machines");
            if let Some(life) = machine.life.as_mut().filter(|life| life.runtime.number() == runtime.number()) {
                life.db = Some(db.clone());
            }
            (machine.roles.contains(&RoleKind::Sql), working)
        };
        if sql && working {
            self.spawn_clients(site, &db, runtime);
        }
    }

    fn not_opened(&self, site: Site, runtime: &SimRuntime, error: &NodeError) {
        self.counts.add("node not opened");
        if self.refused_damaged(site, error) {
            return self.disk(site).stop();
        }
        let excused = self.inner.lock().machines[&site].disk_fails || runtime.crashed().is_some();
        let temporary = matches!(error.class(), ErrorClass::Temporary | ErrorClass::UnknownOutcome);
        assert!(excused || temporary, "{site:?} does not open: {error}");
        // The program ends; the supervisor sees that its disk has stopped.
        self.disk(site).stop();
    }

    fn spawn_clients(&self, site: Site, db: &Database, runtime: &SimRuntime) {
        let (clients, busy) = {
            let inner = self.inner.lock();
            (inner.clients, inner.busy.clone())
        };
        let Clients { bands, cells, keys, lists, bank, entries, families, definitions, divided, pairs } = clients;
        let kinds = [
            ("bands", Kind::Bands, bands),
            ("cells", Kind::Cells, cells),
            ("keys", Kind::Keys, keys),
            ("lists", Kind::Lists, lists),
            ("bank", Kind::Bank, bank),
            ("entries", Kind::Entries, entries),
            ("families", Kind::Families, families),
            ("definitions", Kind::Definitions, definitions),
            ("divided", Kind::Divided, divided),
            ("pairs", Kind::Pairs, pairs),
        ];
        self.executor.note(site.0.into());
        for (name, kind, count) in kinds {
            for _ in 0..count {
                let (client, shared, busy) = (self.client(db, runtime), self.shared.clone(), Busy::new(&busy));
                runtime.spawn(name, async move {
                    let _busy = busy;
                    workload::run(kind, client, shared).await;
                });
            }
        }
    }

    /// The process at a site ends, if one runs; none is started there for so long.
    pub fn end(&self, site: Site, how: End, rest: Duration) {
        let life = {
            let mut inner = self.inner.lock();
            let machine = inner.machines.get_mut(&site).expect("sites have machines");
            machine.rests_until = machine.rests_until.max(self.executor.now() + rest);
            machine.life.take()
        };
        let Some(life) = life else { return };
        self.inner.lock().ends.push(self.executor.now());
        // What it would have answered after waiting for its disk it has not.
        if let Some(member) = life.db.as_ref().and_then(|db| db.member()) {
            let (now, process) = (self.executor.now(), member.me().process);
            self.answers.0.lock().retain(|answer| answer.process != process || answer.at <= now);
        }
        life.runtime.kill();
        self.network.detach(site);
        self.consensus.stop(site);
        drop(life);
        let disk = self.disk(site);
        self.ended_damaged(site, &disk);
        match how {
            End::Kill => disk.kill(),
            End::Power => disk.power_failure(),
        }
        self.counts.add(if how == End::Kill { "killed" } else { "power lost" });
    }

    /// The machine is replaced by one with an empty disk and the same address; `false` (and nothing is done) if it had the only whole replica of something, or nobody can tell.
    pub fn wipe(&self, site: Site, rest: Duration) -> bool {
        let Some(mine) = self.database(site).and_then(|db| db.member().map(|member| member.me())) else { return false };
        let others: Vec<Member> = (self.sites().into_iter().filter(|other| *other != site))
            .filter_map(|other| self.database(other)?.member().map(|member| member.me()))
            .collect();
        let group = self.consensus.group();
        let safe = |state: &ReplicationGroup| {
            !state.in_sync.contains(&mine) || state.in_sync.iter().any(|member| others.contains(member))
        };
        let soon = self.clock.now() + Duration::from_millis(20);
        // All others must be well: who was silent before this may have been struck for it, and then this is the only one that has everything (rule 25).
        let well = self.members().into_iter().filter(|other| *other != site).all(|other| {
            // One that waits for its disk is silent too, and its lease may end for that.
            let answers = |runtime: &SimRuntime| runtime.is_running() && runtime.simulated_now() <= soon;
            self.runtime(other).is_some_and(|runtime| answers(&runtime)) && self.database(other).is_some()
        });
        if !well || !group.replication_groups.iter().all(safe) {
            return false;
        }
        self.end(site, End::Power, rest);
        self.consensus.forget(site);
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        let (disk, directory) = (SimDisk::new(inner.rng.next_u64(), self.clock.clone()), inner.rng.next_u64());
        disk.set_slow_most(SLOWEST);
        let machine = inner.machines.get_mut(&site).expect("sites have machines");
        machine.disk = disk;
        (machine.copy, machine.damaged) = (None, None);
        machine.directory = directory;
        true
    }

    /// Its disk is about to fail: the node may stop itself.
    pub fn excuse(&self, site: Site) {
        self.inner.lock().machines.get_mut(&site).expect("sites have machines").disk_fails = true;
    }

    /// A disk is gone for good, and the end of the log of the only other member was torn: the operator says so.
    fn accept_loss(&self) {
        let known = self.consensus.group();
        let is_gone = |member: &Member| known.nodes.get(&member.node).is_none_or(|n| n.life == group::Life::Absent);
        let waits_in_vain = |state: &ReplicationGroup| {
            let members = state.in_sync.iter().copied().chain(state.doubtful.iter().map(|d| d.member));
            let mut able = members.filter(|member| state.may_lead(*member));
            state.primary.is_none() && !state.doubtful.is_empty() && able.all(|member| is_gone(&member))
        };
        if known.replication_groups.iter().any(waits_in_vain) {
            self.counts.add("loss accepted");
            self.consensus.commit(GroupCommand::AcceptLoss);
        }
    }

    /// What the operator's supervisor does, now and then: notices what has ended by itself, starts what has rested.
    pub fn supervise(&self) {
        self.note_cuts();
        self.accept_loss();
        for site in self.sites() {
            if let Some(runtime) = self.runtime(site) {
                if let Some(reason) = runtime.fatal_reason() {
                    let excused = self.inner.lock().machines[&site].disk_fails;
                    assert!(excused, "{site:?} stopped itself: {reason}");
                }
                let crashed = runtime.crashed().is_some();
                let member = self.database(site).and_then(|db| db.member().cloned());
                let expelled = runtime.is_running() && member.is_some_and(|member| member.expelled());
                let fenced = expelled && self.fence(site, &runtime);
                if fenced {
                    self.counts.add("expelled");
                }
                if crashed || fenced {
                    let power = self.random().is_multiple_of(2);
                    let rest = Duration::from_millis(50 + self.random() % 300);
                    self.end(site, if power { End::Power } else { End::Kill }, rest);
                }
            } else {
                let rests_until = self.inner.lock().machines[&site].rests_until;
                if rests_until <= self.executor.now() {
                    self.start(site);
                }
            }
        }
    }

    /// What the program does before it executes itself: the process brings what it has in memory to its disk. Gives whether it has.
    fn fence(&self, site: Site, runtime: &SimRuntime) -> bool {
        let mut inner = self.inner.lock();
        let life = inner.machines.get_mut(&site).and_then(|machine| machine.life.as_mut());
        let Some((db, fenced)) = life.and_then(|life| Some((life.db.clone()?, &mut life.fenced))) else { return true };
        if let Some(fenced) = fenced {
            return fenced.lock().is_some_and(|at| at <= self.executor.now());
        }
        let done = fenced.insert(Arc::default()).clone();
        drop(inner);
        let own = runtime.clone();
        runtime.spawn("fence", async move {
            // If its disk fails, it comes back as after a crash.
            let _ = db.fence().await;
            // When its disk is through, which may be slow.
            *done.lock() = Some(own.simulated_now());
        });
        false
    }

    /// Cuts, and whether the cluster has gone back to one.
    fn note_cuts(&self) {
        let (now, group) = (self.executor.now(), self.consensus.group());
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        if inner.cuts.last().is_none_or(|(_, time)| *time < group.cut.time) {
            inner.cuts.push((now, group.cut.time));
            self.counts.add("cut completed");
        }
        if group.recovery.number > inner.backs.len() as u64 {
            let time = group.recovery.cut.time;
            let known = inner.cuts.iter().position(|(_, known)| *known >= time).unwrap_or(inner.cuts.len() - 1);
            // It may have been seen to be complete after the failure, but was drawn after the one before it was.
            let (before, complete) = (inner.cuts[known.saturating_sub(1)].0, inner.cuts[known].0);
            let failed = inner.ends.iter().copied().find(|end| *end >= before).unwrap_or(now);
            // Those in between two looks are one.
            inner.backs.resize(group.recovery.number as usize, Back { complete, failed, at: now });
            self.counts.add("went back");
        }
    }

    /// The times at which the cluster has gone back to a cut.
    pub fn backs(&self) -> Vec<Back> {
        self.note_cuts();
        self.inner.lock().backs.clone()
    }

    /// A machine that was not there yet may be started from now on.
    pub fn admit(&self, site: Site) {
        self.inner.lock().machines.get_mut(&site).expect("sites have machines").rests_until = Duration::ZERO;
    }

    /// Nobody has to rest any longer.
    pub fn wake_all(&self) {
        let never = Duration::from_secs(u32::MAX.into());
        let now = self.executor.now();
        for machine in self.inner.lock().machines.values_mut().filter(|machine| machine.rests_until < never) {
            machine.rests_until = machine.rests_until.min(now);
        }
    }

    /// Ends everything, so that nothing holds on to anything.
    pub fn clear(&self) {
        for site in self.sites() {
            self.end(site, End::Kill, Duration::ZERO);
        }
    }
}
