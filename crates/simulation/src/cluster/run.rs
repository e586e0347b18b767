//! One run of a scenario under a seed: the cluster is made, clients work while things go wrong, then nothing goes wrong any more, the cluster must become whole, and everything is checked.
use super::check::{self, Verdict, cut::Loss, indexes::Scanned};
use super::faults;
use super::network::{Site, Weather};
use super::record::Value;
use super::scenario::{Durability, FaultKind, Scenario};
use super::workload::{self, ballast, bands, cells, schemas};
use super::world::{End, HOLE, MEMORY, World};
use crate::executor::{Drift, Stopped};
use crate::node::client::{collect, everything};
use crate::node::tables::{DATABASE, values};
use crate::node::{bank, entries, families, lists};
use crate::runtime::SimRuntime;
use futures::FutureExt;
use parking_lot::Mutex;
use rauk_manage::group::{Group, ReplicationGroup};
use rauk_node::member::hooks::Safeguards;
use rauk_node::runtime::Runtime;
use rauk_node::{Database, Isolation, NodeError, ScanSpec, TxnOptions};
use rauk_types::{Collation, Member, Value as Sql};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// Simulated time that forming the cluster and making the tables may take.
const BEGINNING: Duration = Duration::from_secs(20);
/// Clients that have work under way when the faults stop end within this.
const WINDING_UP: Duration = Duration::from_secs(60);
/// Nothing goes on any more after so long without clients.
const QUIET: Duration = Duration::from_millis(1500);
/// Longest time until nothing is held of transactions whose end could not be told.
const RELEASED: Duration = Duration::from_secs(5);

/// What happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub counts: BTreeMap<&'static str, u64>,
    pub trace: u64,
    pub messages: u64,
    pub answers: u64,
    pub commands: u64,
    /// Simulated time that becoming whole took after the faults.
    pub healing: Duration,
}

pub struct ClusterRun {
    scenario: Scenario,
    world: World,
    /// The simulator's own process.
    own: SimRuntime,
}

impl ClusterRun {
    pub fn new(scenario: &Scenario, seed: u64) -> ClusterRun {
        ClusterRun::without(scenario, seed, Safeguards::default())
    }

    /// With some safeguards switched off.
    pub fn without(scenario: &Scenario, seed: u64, safeguards: Safeguards) -> ClusterRun {
        // Where the simulator damages nothing, a replica that cannot go on is a mistake of ours.
        let stops_alone = scenario.faults.iter().any(|fault| fault.kind == FaultKind::Damage);
        let world = World::new(scenario, seed, Safeguards { stops_alone, ..safeguards });
        let own = world.executor.process(None, Drift::default());
        ClusterRun { scenario: scenario.clone(), world, own }
    }

    /// Panics with what is wrong.
    pub fn run(self) -> Summary {
        let summary = self.all();
        self.world.clear();
        self.own.kill();
        summary
    }

    fn all(&self) -> Summary {
        self.supervise();
        self.begin();
        self.work();
        let healing = self.heal("after the faults");
        self.check("after the faults");
        if self.scenario.blackout {
            let world = &self.world;
            world.members().into_iter().for_each(|site| world.end(site, End::Power, Duration::ZERO));
            self.heal("after the blackout");
            self.check("after the blackout");
        }
        Summary {
            counts: self.world.counts.all(),
            trace: self.world.executor.trace(),
            messages: self.world.network.traffic().sent,
            answers: self.world.answers.0.lock().len() as u64,
            commands: self.world.consensus.group().index,
            healing,
        }
    }

    fn supervise(&self) {
        let (world, runtime) = (self.world.clone(), self.own.clone());
        self.own.spawn("supervisor", async move {
            loop {
                world.supervise();
                runtime.sleep(Duration::from_millis(20)).await;
            }
        });
    }

    /// Runs until `done` holds, for at most so long; gives whether it does.
    fn run_until(&self, within: Duration, mut done: impl FnMut() -> bool) -> bool {
        let executor = &self.world.executor;
        let end = executor.now() + within;
        executor.at(end, || {});
        let mut holds = false;
        let stopped = executor.run_until(|| {
            holds = done();
            holds || executor.now() >= end
        });
        assert_eq!(stopped, Stopped::Done);
        holds
    }

    /// As `run_until`, for what is not worth asking between any two polls.
    fn run_until_verdict(&self, within: Duration, mut verdict: impl FnMut() -> Verdict) -> Verdict {
        let executor = self.world.executor.clone();
        let (mut next, mut last) = (executor.now(), Ok(()));
        self.run_until(within, || {
            if executor.now() < next {
                return false;
            }
            next = executor.now() + Duration::from_millis(10);
            last = verdict();
            last.is_ok()
        });
        last
    }

    /// For people: what the control plane has decided about groups that nobody leads in the end, the newest last.
    fn history_of_vacant_groups(&self) -> String {
        const SHOWN: usize = 12;
        let states = self.world.consensus.states();
        let newest = states.last().expect("there is a first");
        let vacant = newest.replication_groups.iter().enumerate().filter(|(_, state)| state.primary.is_none());
        let history = vacant.map(|(number, _)| {
            let state_in = |group: &Arc<Group>| (group.index, group.replication_groups.get(number).cloned());
            let mut changes: Vec<_> = states.iter().map(state_in).collect();
            // Of a change that nobody there sees only the version tells.
            let seen = |state: &Option<ReplicationGroup>| {
                state.as_ref().map(|state| (state.view, state.primary, state.in_sync.clone(), state.placed.clone()))
            };
            changes.dedup_by(|later, earlier| seen(&later.1) == seen(&earlier.1));
            let shown = &changes[changes.len().saturating_sub(SHOWN)..];
            let lines = shown.iter().map(|(index, state)| format!("  at {index}: {state:?}")).collect::<Vec<_>>();
            format!("group {number}:\n{}", lines.join("\n"))
        });
        history.collect::<Vec<_>>().join("\n")
    }

    fn healthy(&self) -> Verdict {
        let world = &self.world;
        let members = world.members();
        check::healthy::check(&world.consensus.group(), members.len())?;
        let closed = members.iter().find(|site| world.database(**site).is_none());
        closed.map_or(Ok(()), |site| Err(format!("{site:?} is not open")))
    }

    /// Runs one future on a node to its end.
    fn on_node<T: Send + 'static>(
        &self,
        what: &'static str,
        runtime: &SimRuntime,
        future: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let slot = Arc::new(Mutex::new(None));
        let result = slot.clone();
        runtime.spawn(what, async move {
            let value = future.await;
            *result.lock() = Some(value);
        });
        let done = self.run_until(Duration::from_secs(30), || slot.lock().is_some() || !runtime.is_alive());
        let value = slot.lock().take();
        value.unwrap_or_else(|| panic!("{what}: {}", if done { "the node died without a fault" } else { "it hangs" }))
    }

    /// As `on_node`, for what may fail for a while.
    fn patiently<T: Send + 'static, F: Future<Output = Result<T, NodeError>> + Send + 'static>(
        &self,
        what: &'static str,
        runtime: &SimRuntime,
        make: impl Fn() -> F,
    ) -> T {
        for _ in 0..50 {
            match self.on_node(what, runtime, make()) {
                Ok(value) => return value,
                Err(error) => {
                    self.world.counts.add("tried again without faults");
                    let permanent = error.class() == rauk_types::ErrorClass::Permanent;
                    assert!(!permanent, "{what}: {error}");
                    self.run_until(Duration::from_millis(100), || false);
                }
            }
        }
        panic!("{what}: it fails again and again without faults");
    }

    fn begin(&self) {
        let whole = self.run_until_verdict(BEGINNING, || self.healthy());
        whole.unwrap_or_else(|what| panic!("the cluster does not come up: {what}"));
        let (_, db, runtime) = self.world.open_sql().remove(0);
        let (rows, has_families) = (self.scenario.ballast, self.scenario.clients.families > 0);
        self.patiently("prepare", &runtime, || {
            let db = db.clone();
            async move {
                if db.database_collation(DATABASE).is_none() {
                    db.create_database(DATABASE, Collation::DEFAULT).await?;
                }
                for schema in workload::tables() {
                    if db.table(DATABASE, &schema.name).is_err() {
                        db.create_table(schema).await?;
                    }
                }
                if has_families {
                    families::prepare(&db).await?;
                }
                workload::prepare(&db, rows).await
            }
        });
        if self.scenario.durability == Durability::Replicated {
            // What all clients take for given must not be lost with the last moment.
            self.patiently("cover", &runtime, || {
                let db = db.clone();
                async move { db.member().expect("it is a member").wait_cut(BEGINNING).await }
            });
        }
    }

    fn work(&self) {
        let world = &self.world;
        let until = world.executor.now() + self.scenario.duration();
        *world.shared.until.lock() = until;
        world.network.set_weather(self.scenario.weather);
        world.executor.set_sluggish(self.scenario.sluggish);
        world.consensus.set_restless(self.scenario.restless);
        world.consensus.set_lost_answers(self.scenario.lost_answers);
        world.set_working(true);
        for fault in self.scenario.faults.clone() {
            let strikes = faults::run(fault, world.clone(), self.own.clone(), world.random(), until);
            self.own.spawn("faults", strikes);
        }
        let mut first = 1;
        for nodes in &self.scenario.nodes {
            for site in first..first + nodes.count {
                if let Some(at) = nodes.join_at {
                    let world = world.clone();
                    self.world.executor.after(Duration::from_secs_f64(at), move || world.admit(Site(site)));
                }
            }
            first += nodes.count;
        }
        self.run_until(self.scenario.duration(), || false);
    }

    /// Nothing goes wrong any more: the cluster becomes whole, and transactions commit on every node.
    fn heal(&self, when: &str) -> Duration {
        let world = &self.world;
        let begin = world.executor.now();
        world.set_working(false);
        world.network.mend_all();
        world.network.set_weather(Weather::default());
        world.executor.set_sluggish(0.0);
        world.consensus.set_restless(0.0);
        world.consensus.set_lost_answers(0.0);
        for site in world.sites() {
            let disk = world.disk(site);
            disk.set_limit(None);
            disk.set_slow(0.0);
            disk.stop_at(None);
            disk.fail_write_at(None);
            disk.fail_sync_at(None);
            if let Some(process) = world.runtime(site) {
                process.resume();
            }
            if let Some(db) = world.database(site) {
                db.set_memory_limit(MEMORY);
            }
        }
        world.wake_all();
        let within = Duration::from_secs_f64(self.scenario.healthy_within);
        let whole = self.run_until_verdict(within, || self.healthy());
        whole.unwrap_or_else(|what| {
            panic!("{when}, the cluster does not become whole: {what}\n{}", self.history_of_vacant_groups())
        });
        let healing = world.executor.now() - begin;
        let idle = self.run_until(WINDING_UP, || world.busy_clients() == 0);
        assert!(idle, "{when}: {} clients hang; {}", world.busy_clients(), self.waits());
        for (site, db, runtime) in world.open_sql() {
            let committed = (0..20).any(|_| {
                let (mut client, shared) = (world.client(&db, &runtime), world.shared.clone());
                let write = async move { bands::write_once(&mut client, &shared).await };
                let written = self.on_node("write once", &runtime, write);
                if !written {
                    // What others have said of their memory is believed for a while.
                    self.run_until(Duration::from_millis(50), || false);
                }
                written
            });
            assert!(
                committed,
                "{when}: no transaction commits on {site:?}: {:?}; {}",
                world.counts.all(),
                self.waits()
            );
        }
        self.run_until(QUIET, || false);
        let whole = self.run_until_verdict(within, || self.healthy());
        whole.unwrap_or_else(|what| panic!("{when}, the cluster was whole and is not any more: {what}"));
        healing
    }

    /// Transactions and waits for locks, for people who look for what hangs.
    fn waits(&self) -> String {
        let mut text = String::new();
        let tasks = self.world.executor.tasks();
        for (site, db, runtime) in self.world.open_sql() {
            let (transactions, locks) = (db.transactions(), db.locks());
            let mine: Vec<&str> = tasks.iter().filter(|task| task.0 == runtime.number()).map(|task| task.1).collect();
            text += &format!("\n{site:?}: transactions {transactions:?}, waits {locks:?}, tasks {mine:?}");
        }
        text
    }

    fn check(&self, when: &str) {
        let judge = |what: &str, verdict: Verdict| {
            if let Err(wrong) = verdict {
                panic!("{when}: {what}: {wrong}");
            }
        };
        let holes = self.world.counts.all().get(HOLE).copied().unwrap_or_default();
        judge("holes", if holes == 0 { Ok(()) } else { Err(format!("{holes} logs lacked entries of a stream")) });
        judge("damage", self.undamaged());
        self.check_contents(&judge);
        self.check_definitions(&judge);
        self.check_indexes(&judge);
        self.check_copies(&judge);
        // What nobody could be told of is asked about after a while.
        judge("released", self.run_until_verdict(RELEASED, || self.released()).map(drop));
        self.check_views(&judge);
    }

    /// Replicas were compared, and were equal, and nobody's memory was damaged, but by the simulator.
    fn undamaged(&self) -> Verdict {
        let damaged = self.scenario.faults.iter().any(|fault| fault.kind == FaultKind::Damage);
        for (site, db, _) in self.world.open_sql() {
            let counters = db.counters();
            let (differ, stored) = (counters.digest_mismatches, counters.damaged_tables);
            if !damaged && differ + stored > 0 {
                return Err(format!("{site:?} has found {differ} replicas that differ, and {stored} damaged tables"));
            }
            let Some(cluster) = db.member() else { continue };
            for partition in cluster.layout().partitions() {
                if cluster.compared(partition).is_some() {
                    self.world.counts.add("partition compared");
                }
                if let Some(why) = cluster.divided(partition) {
                    return Err(format!("{site:?}: {why}"));
                }
            }
        }
        Ok(())
    }

    /// What clients were told, against what is there, as each node reads it.
    fn check_contents(&self, judge: &dyn Fn(&str, Verdict)) {
        let shared = &self.world.shared;
        let within = self.scenario.may_lose.map(Duration::from_secs_f64);
        let loss = Loss { backs: self.world.backs(), within };
        let went_back = !loss.backs.is_empty();
        if self.scenario.keeps_all && went_back {
            judge("kept", Err(format!("no process has ended, and the cluster went back: {:?}", loss.backs)));
        }
        if went_back {
            shared.transfers.lock().doubt();
        } else {
            entries::certain(&shared.owners);
        }
        let mut all_lists = BTreeMap::new();
        for (site, db, runtime) in self.world.open_sql() {
            let read = self.patiently("read bands", &runtime, || {
                let db = db.clone();
                async move { bands::contents(&db).await }
            });
            let last: BTreeMap<u32, Value> = read.seen.iter().map(|(band, slots)| (*band, slots[0])).collect();
            {
                let mut record = shared.bands.lock();
                record.reads.push(read);
                judge("atomic", check::atomic::check(&record));
                if went_back {
                    judge("cut", check::cut::check_bands(&record, &last, &loss));
                    judge("paced", check::paced::check(&record, &last));
                } else {
                    judge("acknowledged", check::acknowledged::check(&record, &last));
                    judge("answered", check::answered::check(&record, &last));
                }
                judge("recent", check::recent::check(&record, &last));
                record.reads.pop();
            }
            let found = self.patiently("read cells", &runtime, || {
                let db = db.clone();
                async move { cells::contents(&db).await }
            });
            let mut record = shared.cells.lock();
            record.at_the_end(&found);
            // A register that goes back is none.
            if !went_back {
                judge("linearizable", check::linearizable::check(&record.ops()));
            }
            drop(record);
            let lists = self.patiently("read lists", &runtime, || {
                let db = db.clone();
                async move { lists::contents(&db).await }
            });
            all_lists.insert(site, lists);
            let transfers = &shared.transfers;
            judge(
                "bank",
                self.patiently("read bank", &runtime, || {
                    let (db, transfers) = (db.clone(), transfers.clone());
                    async move { bank::check(&db, &transfers).await }
                }),
            );
            if self.scenario.clients.families > 0 {
                judge(
                    "families",
                    self.patiently("read families", &runtime, || {
                        let db = db.clone();
                        async move { families::check(&db).await }
                    }),
                );
            }
            let owners = &shared.owners;
            judge(
                "entries",
                self.patiently("read entries", &runtime, || {
                    let (db, owners) = (db.clone(), owners.clone());
                    async move { entries::check(&db, &owners).await }
                }),
            );
        }
        let (_, db, runtime) = self.world.open_sql().remove(0);
        let rows = self.patiently("read ballast", &runtime, || {
            let db = db.clone();
            async move { ballast::contents(&db).await }
        });
        assert_eq!(rows.len(), self.scenario.ballast as usize, "rows that nobody changes are gone");
        let mut history = shared.history.lock();
        if went_back {
            let lists = all_lists.values().next().cloned().unwrap_or_default();
            judge("cut", check::cut::check_lists(&history, &lists, &loss));
            history.doubt();
        }
        judge("lists", check::lists::check(&mut history, &all_lists));
    }

    /// What became of definitions, and of rows in tables that were changed.
    fn check_definitions(&self, judge: &dyn Fn(&str, Verdict)) {
        let world = &self.world;
        let changes = check::definitions::changes(&world.consensus.states());
        let changes = changes.unwrap_or_else(|wrong| panic!("definitions: {wrong}"));
        judge("definitions", check::definitions::check(&world.shared.schemas.lock().statements, &changes));
        for (_, db, runtime) in world.open_sql() {
            let contents = self.patiently("read tables", &runtime, || {
                let db = db.clone();
                async move { schemas::contents(&db).await }
            });
            judge("lineage", check::lineage::check(&world.shared.schemas.lock(), &changes, &contents));
        }
        let group = world.consensus.group();
        let mut placed = BTreeMap::new();
        for site in world.members() {
            let db = world.database(site).expect("all are open");
            for partition in group.config.as_ref().expect("it is made").layout().partitions() {
                placed.insert((site, partition), db.placed_tables(partition));
            }
        }
        judge("remains", check::remains::check(&group, &placed));
    }

    /// Every index of every table, as one node reads them.
    fn check_indexes(&self, judge: &dyn Fn(&str, Verdict)) {
        let open = self.world.open_sql();
        let (_, db, runtime) = &open[self.world.random() as usize % open.len()];
        let verdicts = self.patiently("read indexes", runtime, || read_indexes(db.clone()).boxed());
        for (what, verdict) in verdicts {
            judge(what, verdict);
        }
    }

    /// Replicas and catalogs against each other.
    fn check_copies(&self, judge: &dyn Fn(&str, Verdict)) {
        let world = &self.world;
        let mut catalogs = BTreeMap::new();
        let mut by_node: BTreeMap<Member, Database> = BTreeMap::new();
        for site in world.members() {
            let db = world.database(site).expect("all are open");
            let member = db.member().expect("it is a member");
            catalogs.insert(site, (member.group(), db.tables(DATABASE).unwrap_or_default()));
            by_node.insert(member.me(), db.clone());
        }
        judge("catalog", check::catalog::check(&catalogs));
        let group = world.consensus.group();
        let layout = group.config.as_ref().expect("it is made").layout();
        for partition in layout.partitions() {
            let state = group.replication_group(layout.group_of(partition)).expect("all are there");
            let dump = |member: &Member| {
                let db = by_node.get(member).unwrap_or_else(|| panic!("nobody is {member:?}"));
                (*member, db.dump_partition(partition))
            };
            judge("replicas", check::replicas::check(partition, &state.in_sync.iter().map(dump).collect()));
        }
    }

    /// Whether an in-sync replica holds anything of transactions that have ended.
    fn released(&self) -> Verdict {
        let world = &self.world;
        let group = world.consensus.group();
        let mut open = BTreeMap::new();
        for site in world.members() {
            let db = world.database(site).expect("all are open");
            let me = db.member().expect("it is a member").me();
            let layout = group.config.as_ref().expect("it is made").layout();
            let is_held = |partition: &u16| {
                let state = group.replication_group(layout.group_of(*partition));
                state.is_some_and(|state| state.in_sync.contains(&me))
            };
            let held = layout.partitions().filter(is_held);
            open.extend(held.map(|partition| ((site, partition), db.open_in_partition(partition))));
        }
        check::released::check(&open)
    }

    /// Who was primary, and who answered.
    fn check_views(&self, judge: &dyn Fn(&str, Verdict)) {
        let states = self.world.consensus.states();
        let mut named = check::primaries::Named::default();
        for pair in states.windows(2) {
            judge("primaries", named.add(&pair[0], &pair[1]));
            for (before, after) in pair[0].replication_groups.iter().zip(&pair[1].replication_groups) {
                let went = |member: &&Member| !after.in_sync.contains(member) && pair[1].is_up(member.process);
                before.in_sync.iter().filter(went).for_each(|_| self.world.counts.add("replica struck"));
            }
        }
        let mut answers = self.world.answers.0.lock();
        answers.sort_by_key(|answer| answer.at);
        judge("primaries", named.check(&answers));
        judge("leases", check::leases::check(&answers));
    }

    /// Of the whole cluster, for tests.
    pub fn group(&self) -> Arc<Group> {
        self.world.consensus.group()
    }
}

/// The verdicts on all tables' indexes and unique keys.
async fn read_indexes(db: Database) -> Result<Vec<(&'static str, Verdict)>, NodeError> {
    let mut verdicts = Vec::new();
    for schema in db.tables(DATABASE)? {
        let table = db.table(DATABASE, &schema.name)?;
        let mut txn = db.begin(TxnOptions { isolation: Isolation::RepeatableRead, ..TxnOptions::default() });
        txn.begin_statement();
        txn.use_table(&table).await?;
        let rows = collect(&mut txn, &table, everything(None), 64).await?;
        verdicts.push(("unique", check::unique::check(&schema, &rows)));
        for index in &schema.indexes {
            let forward = collect(&mut txn, &table, everything(Some(index.id)), 7).await?;
            let spec = ScanSpec { reverse: true, ..everything(Some(index.id)) };
            let backward = collect(&mut txn, &table, spec, 7).await?;
            let found = if !index.is_unique() {
                None
            } else {
                let def = schema.key_def(index);
                let mut found: Vec<Option<Vec<Sql>>> = Vec::new();
                for row in &rows {
                    if index.parts.iter().any(|part| row[part.column].is_null()) {
                        found.push(None);
                        continue;
                    }
                    let mut key = Vec::new();
                    def.encode_values(row, &mut key);
                    let get = txn.get_unique(&table, index.id, &key, None, |row| row.map(|row| values(&table, &row)));
                    found.push(get.await?);
                }
                Some(found)
            };
            let scanned = Scanned { forward, backward, found };
            verdicts.push(("indexes", check::indexes::check(&schema, &rows, index, &scanned)));
        }
        txn.commit().await?;
    }
    Ok(verdicts)
}
