//! A whole node under a seed: clients of several kinds work on one database that is made, crashes in all sorts of ways, and is opened again.
//!
//! | file | workload | what must hold |
//! |---|---|---|
//! | `lists` | list-append transactions | isolation, by `list_check`; nothing acknowledged or answered is taken back |
//! | `bank` | transfers with a ledger, audits | sums in every snapshot; ledger and balances together |
//! | `entries` | rows come and go under a contended unique index, while `alter_table` changes the table | exact contents; duplicates; no code twice |
//! | `families` | parents and children under foreign keys | no child without its parent, in every snapshot and after every crash |
//! | `registers` | writes and reads of many keys at once, beside transactions | chains of writes without a gap; exact contents; transactions wholly or not at all |
//! | `ddl` | tables made, renamed, indexed, emptied, dropped | each statement wholly or not at all |
//! | `indexes` | | every index of every table says what the rows say |
//!
//! A *life*: open the database (checking what recovery gave), let the clients work until they are done or the plan strikes, check again if the node still lives, and end: by
//! shutdown, kill or power failure.
pub mod bank;
pub mod client;
pub mod ddl;
pub mod entries;
pub mod families;
pub mod history;
pub mod indexes;
pub mod list_check;
pub mod lists;
pub mod registers;
pub mod tables;

use crate::clock::SimClock;
use crate::crash::{Plan, arm};
use crate::disk::SimDisk;
use crate::runtime::{SimRuntime, Stopped};
use crate::trace::Trace;
use bank::Transfers;
use client::{Client, Counts};
use ddl::Made;
use entries::Owners;
use history::History;
use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{Rng, RngCore, SeedableRng};
use rauk_node::{Config, Database, Durability, FlushPolicy, NodeError};
use rauk_types::Collation;
use registers::Registers;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// A life ends here at the latest, in simulated time.
const LIFE: Duration = Duration::from_secs(600);
/// Disk operations and fault points that a life may see before a plan strikes.
const STRIKES_WITHIN: u64 = 800;

/// What happened, over all lives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub lives: u64,
    pub crashes: u64,
    pub counts: BTreeMap<&'static str, u64>,
    pub trace: u64,
}

pub struct NodeRun {
    rng: SmallRng,
    clock: SimClock,
    disk: SimDisk,
    config: Config,
    history: Arc<Mutex<History>>,
    transfers: Arc<Mutex<Transfers>>,
    owners: Owners,
    registers: Arc<Mutex<Registers>>,
    made: Arc<Mutex<Made>>,
    counts: Counts,
    trace: Trace,
    lives: u64,
    crashes: u64,
    /// Every life that comes to its end ends by a shutdown.
    shuts_down: bool,
}

/// The life ended before what was asked for was done.
struct Ended;

impl NodeRun {
    pub fn new(seed: u64) -> NodeRun {
        let mut rng = SmallRng::seed_from_u64(seed);
        let clock = SimClock::default();
        let disk = SimDisk::new(rng.next_u64(), clock.clone());
        let config = Config {
            partitions: [1, 2, 4, 7][rng.random_range(0..4)],
            durability: if rng.random_bool(0.85) { Durability::Fsync } else { Durability::Relaxed },
            memory_limit: 256 << 20,
            memory_available: u64::MAX,
            history_limit: [20 << 10, 64 << 20][rng.random_range(0..2)],
            segment_bytes: [8 << 10, 32 << 10, 256 << 10][rng.random_range(0..3)],
            checkpoint_redo_bytes: [4 << 10, 30 << 10, 1 << 20][rng.random_range(0..3)],
            flush: [FlushPolicy::Adaptive, FlushPolicy::Committer, FlushPolicy::Thread][rng.random_range(0..3)],
            commit_limit: usize::MAX,
            chunk_bytes: u64::MAX,
            standing_chunk_bytes: 0,
            unstable_bytes: 0,
            end_slice: [1, 3, 128][(seed % 3) as usize],
            compare_every: Duration::from_secs(1),
            scrub_rest: Duration::from_millis(300),
            parallel_ddl_rows: [0, 8, u64::MAX][(seed / 3 % 3) as usize],
            recovery: Arc::default(),
        };
        NodeRun {
            rng,
            clock,
            disk,
            config,
            history: Arc::default(),
            transfers: Arc::default(),
            registers: Arc::default(),
            owners: Arc::default(),
            made: Arc::default(),
            counts: Counts::default(),
            trace: Trace::default(),
            lives: 0,
            crashes: 0,
            shuts_down: false,
        }
    }

    /// Runs so many lives with random ends, then a calm one.
    pub fn run(mut self, lives: u64) -> Summary {
        for _ in 0..lives {
            let plan = Plan::draw(&mut self.rng, STRIKES_WITHIN);
            let slow = if self.rng.random_bool(0.2) { 0.3 } else { 0.0 };
            self.disk.set_slow(slow);
            let limit = self.rng.random_bool(0.1).then(|| self.disk.used() + self.rng.random_range(0..200_000));
            self.disk.set_limit(limit);
            let transactions = self.rng.random_range(1..25);
            self.life(plan, transactions);
        }
        self.disk.set_limit(None);
        self.disk.set_slow(0.0);
        self.life(Plan::Calm, 5);
        self.summary()
    }

    pub fn summary(&self) -> Summary {
        let (counts, trace) = (self.counts.all(), self.trace.value());
        Summary { lives: self.lives, crashes: self.crashes, counts, trace }
    }

    /// One life; each client makes so many transactions. Gives whether the plan ended it.
    pub fn life(&mut self, plan: Plan, transactions: u64) -> bool {
        self.lives += 1;
        let runtime = SimRuntime::new(self.rng.next_u64(), self.clock.clone(), self.disk.clone());
        let armed = arm(plan, &self.disk);
        let result = self.live(&runtime, transactions);
        self.trace.add(runtime.trace());
        let ended = result.is_err();
        if let Some(reason) = runtime.fatal_reason() {
            let expected = self.disk.is_stopped() && !matches!(plan, Plan::Calm);
            assert!(expected, "the node stopped itself: {reason}");
        }
        drop(armed);
        runtime.kill();
        if ended {
            self.crashes += 1;
        }
        // What relaxed durability had not flushed goes with the process already.
        match self.config.durability {
            Durability::Relaxed => self.doubt(),
            Durability::Fsync | Durability::Replicated => self.certain(),
        }
        if self.rng.random_bool(0.7) {
            self.disk.power_failure()
        } else {
            self.disk.kill()
        }
        ended
    }

    fn certain(&self) {
        entries::certain(&self.owners);
        self.registers.lock().settle();
    }

    fn doubt(&self) {
        self.registers.lock().doubt();
        self.history.lock().doubt();
        self.transfers.lock().doubt();
        self.made.lock().doubt();
    }

    fn live(&mut self, runtime: &SimRuntime, transactions: u64) -> Result<(), Ended> {
        let db = self.open(runtime)?;
        self.prepare(runtime, &db)?;
        self.check(runtime, &db, "after recovery")?;
        let memory_limit = db.memory_limit();
        if self.rng.random_bool(0.15) {
            db.set_memory_limit(db.memory_used() + self.rng.random_range(0..300_000));
        }
        self.work(runtime, &db, transactions)?;
        db.set_memory_limit(memory_limit);
        if self.config.durability == Durability::Relaxed {
            // What the check has seen must not be lost by a crash after it.
            let end = db.clone();
            self.finish(runtime, "checkpoint", async move { end.checkpoint().await })?;
        }
        self.certain();
        self.check(runtime, &db, "at the end")?;
        if self.rng.random_bool(0.3) || self.shuts_down {
            let end = db.clone();
            self.finish(runtime, "shutdown", async move { end.shutdown().await })?;
        }
        Ok(())
    }

    fn open(&mut self, runtime: &SimRuntime) -> Result<Database, Ended> {
        match Database::open(self.config.clone(), self.disk.mount(), runtime.handle(), &|_| {}) {
            Ok(db) => Ok(db),
            Err(error) => {
                let full = matches!(error, NodeError::DiskFull(_));
                assert!(
                    full || runtime.crashed().is_some() || is_planned(&error),
                    "the database does not open: {error}"
                );
                Err(Ended)
            }
        }
    }

    /// Runs one future to its end. An error of the node's is in order if it crashed, or the disk is full.
    fn finish<T: Send + 'static>(
        &self,
        runtime: &SimRuntime,
        name: &'static str,
        future: impl Future<Output = Result<T, NodeError>> + Send + 'static,
    ) -> Result<T, Ended> {
        let slot = Arc::new(Mutex::new(None));
        let result = slot.clone();
        runtime.spawn(name, async move {
            let value = future.await;
            *result.lock() = Some(value);
        });
        let stopped = runtime.run_until(|| slot.lock().is_some());
        let result = slot.lock().take();
        match (result, stopped) {
            (Some(Ok(value)), _) if runtime.crashed().is_none() => Ok(value),
            (_, Stopped::Crashed(_)) => Err(Ended),
            (Some(Err(NodeError::DiskFull(_))), _) => Err(Ended),
            (Some(Err(_)), _) if runtime.crashed().is_some() => Err(Ended),
            (Some(Err(error)), _) if is_planned(&error) => Err(Ended),
            (Some(Err(error)), _) => panic!("{name}: {error}"),
            (_, stopped) => panic!("{name}: {stopped:?}"),
        }
    }

    /// Makes the database and its tables as far as they are not there.
    fn prepare(&self, runtime: &SimRuntime, db: &Database) -> Result<(), Ended> {
        let db = db.clone();
        self.finish(runtime, "prepare", async move {
            if db.database_collation(tables::DATABASE).is_none() {
                db.create_database(tables::DATABASE, Collation::DEFAULT).await?;
            }
            for schema in [lists::schema(), bank::accounts(), bank::ledger(), entries::schema(), registers::schema()] {
                if db.table(tables::DATABASE, &schema.name).is_err() {
                    db.create_table(schema).await?;
                }
            }
            families::prepare(&db).await?;
            bank::prepare(&db).await
        })
    }

    fn check(&self, runtime: &SimRuntime, db: &Database, when: &str) -> Result<(), Ended> {
        let judge = |verdict: Result<(), String>| {
            if let Err(what) = verdict {
                panic!("{when}: {what}");
            }
        };
        let (reader, history) = (db.clone(), self.history.clone());
        let lists = self.finish(runtime, "check lists", async move { lists::contents(&reader).await })?;
        judge(list_check::check(&mut history.lock(), &lists));
        let (reader, transfers) = (db.clone(), self.transfers.clone());
        judge(self.finish(runtime, "check bank", async move { bank::check(&reader, &transfers).await })?);
        let (reader, owners) = (db.clone(), self.owners.clone());
        judge(self.finish(runtime, "check entries", async move { entries::check(&reader, &owners).await })?);
        let (reader, registers) = (db.clone(), self.registers.clone());
        judge(self.finish(runtime, "check registers", async move { registers::check(&reader, &registers).await })?);
        let reader = db.clone();
        judge(self.finish(runtime, "check families", async move { families::check(&reader).await })?);
        let (reader, made) = (db.clone(), self.made.clone());
        judge(self.finish(runtime, "check ddl", async move { ddl::check(&reader, &made).await })?);
        let reader = db.clone();
        judge(self.finish(runtime, "check indexes", async move { indexes::check(&reader).await })?);
        Ok(())
    }

    fn work(&mut self, runtime: &SimRuntime, db: &Database, transactions: u64) -> Result<(), Ended> {
        let running = Arc::new(Mutex::new(0u32));
        let spawn = |name, task: std::pin::Pin<Box<dyn Future<Output = ()> + Send>>| {
            *running.lock() += 1;
            let running = running.clone();
            runtime.spawn(name, async move {
                task.await;
                *running.lock() -= 1;
            });
        };
        let mut clients = Vec::new();
        for _ in 0..20 {
            clients.push(Client {
                db: db.clone(),
                runtime: runtime.clone(),
                rng: SmallRng::seed_from_u64(self.rng.next_u64()),
                counts: self.counts.clone(),
            });
        }
        let mut next = || clients.pop().expect("enough clients");
        for _ in 0..self.rng.random_range(1..6) {
            spawn("lists", Box::pin(lists::run(next(), self.history.clone(), transactions)));
        }
        for _ in 0..self.rng.random_range(1..4) {
            spawn("bank", Box::pin(bank::run(next(), self.transfers.clone(), transactions)));
        }
        for owner in 0..self.rng.random_range(1..5) {
            spawn("entries", Box::pin(entries::run(next(), owner, self.owners.clone(), transactions)));
        }
        for owner in 0..self.rng.random_range(1..4) {
            spawn("registers", Box::pin(registers::run(next(), owner, self.registers.clone(), transactions)));
        }
        if self.rng.random_bool(0.5) {
            spawn("ddl", Box::pin(ddl::run(next(), self.made.clone(), transactions)));
        }
        if self.rng.random_bool(0.5) {
            spawn("alter", Box::pin(entries::change_definition(next(), transactions / 4)));
        }
        for _ in 0..self.rng.random_range(1..4) {
            spawn("families", Box::pin(families::run(next(), transactions)));
        }
        drop(clients);
        let end = self.clock.now() + LIFE;
        match runtime.run_until(|| *running.lock() == 0 || self.clock.now() > end) {
            Stopped::Crashed(_) => Err(Ended),
            Stopped::Stuck(tasks) => panic!("nothing goes on any more; tasks: {tasks:?}"),
            Stopped::Done => {
                assert_eq!(*running.lock(), 0, "clients hang");
                Ok(())
            }
        }
    }
}

/// A write or sync failed because the plan says so.
fn is_planned(error: &NodeError) -> bool {
    let text = error.to_string();
    text.contains("simulated disk: write failed") || text.contains("simulated disk: sync failed")
}

#[cfg(test)]
mod tests;
