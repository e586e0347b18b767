//! The workloads and their judges on one node that is alone: it keeps all promises, over power failures too; and one that acknowledges what is not on disk is found.
use super::*;
use crate::clock::SimClock;
use crate::cluster::check::{Verdict, acknowledged, answered, atomic, linearizable, recent};
use crate::disk::SimDisk;
use crate::executor::Stopped;
use crate::node::client::Counts;
use crate::node::tables::DATABASE;
use crate::runtime::SimRuntime;
use rand::rngs::SmallRng;
use rand::{Rng, RngCore, SeedableRng};
use rauk_node::{Config, Durability};
use rauk_types::Collation;

struct Alone {
    rng: SmallRng,
    clock: SimClock,
    disk: SimDisk,
    config: Config,
    shared: Shared,
    counts: Counts,
    runtime: SimRuntime,
}

impl Alone {
    fn new(seed: u64, durability: Durability) -> Alone {
        let mut rng = SmallRng::seed_from_u64(seed);
        let clock = SimClock::default();
        let disk = SimDisk::new(rng.next_u64(), clock.clone());
        let config = Config {
            partitions: 3,
            durability,
            memory_limit: 256 << 20,
            segment_bytes: 256 << 10,
            checkpoint_redo_bytes: 1 << 20,
            ..Config::default()
        };
        let runtime = SimRuntime::new(rng.next_u64(), clock.clone(), disk.clone());
        let shared = Shared::new(runtime.executor().clone(), &SimClock::default(), None);
        Alone { rng, clock, disk, config, shared, counts: Counts::default(), runtime }
    }

    fn finish<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> T {
        let slot = Arc::new(Mutex::new(None));
        let result = slot.clone();
        self.runtime.spawn("finish", async move {
            let value = future.await;
            *result.lock() = Some(value);
        });
        assert_eq!(self.runtime.run_until(|| slot.lock().is_some()), Stopped::Done);
        slot.lock().take().expect("it is done")
    }

    /// One life: everything is checked, then clients work until the power fails.
    fn life(&mut self) -> Verdict {
        self.runtime = SimRuntime::new(self.rng.next_u64(), self.clock.clone(), self.disk.clone());
        self.shared.executor = self.runtime.executor().clone();
        let db = Database::open(self.config.clone(), self.disk.mount(), self.runtime.handle(), &|_| {});
        let db = db.expect("it opens");
        let maker = db.clone();
        self.finish(async move {
            if maker.database_collation(DATABASE).is_none() {
                maker.create_database(DATABASE, Collation::DEFAULT).await.expect("made");
            }
            for schema in [bands::schema(), cells::schema()] {
                if maker.table(DATABASE, &schema.name).is_err() {
                    maker.create_table(schema).await.expect("made");
                }
            }
            bands::prepare(&maker).await.expect("filled");
            cells::prepare(&maker).await.expect("filled");
        });
        self.check(&db)?;
        *self.shared.until.lock() = self.clock.now() + Duration::from_secs(100);
        for kind in [Kind::Bands, Kind::Bands, Kind::Bands, Kind::Cells, Kind::Cells, Kind::Cells] {
            let rng = SmallRng::seed_from_u64(self.rng.next_u64());
            let client = Client { db: db.clone(), runtime: self.runtime.clone(), rng, counts: self.counts.clone() };
            self.runtime.spawn("client", run(kind, client, self.shared.clone()));
        }
        let end = self.clock.now() + Duration::from_millis(self.rng.random_range(50..1000));
        self.runtime.executor().at(end, || {});
        assert_eq!(self.runtime.run_until(|| self.clock.now() >= end), Stopped::Done);
        self.runtime.kill();
        self.disk.power_failure();
        Ok(())
    }

    fn check(&self, db: &Database) -> Verdict {
        let (bands_of, cells_of) = (db.clone(), db.clone());
        let read = self.finish(async move { bands::contents(&bands_of).await.expect("it can be read") });
        let last = read.seen.iter().map(|(band, slots)| (*band, slots[0])).collect();
        let mut record = self.shared.bands.lock();
        record.reads.push(read);
        atomic::check(&record)?;
        acknowledged::check(&record, &last)?;
        answered::check(&record, &last)?;
        recent::check(&record, &last)?;
        record.reads.pop();
        let found = self.finish(async move { cells::contents(&cells_of).await.expect("it can be read") });
        let mut record = self.shared.cells.lock();
        record.at_the_end(&found);
        linearizable::check(&record.ops())
    }
}

fn run_lives(seed: u64, durability: Durability) -> (Verdict, Counts) {
    let mut alone = Alone::new(seed, durability);
    let verdict = (0..4).try_for_each(|_| alone.life());
    (verdict, alone.counts)
}

#[test]
fn a_node_that_is_alone_keeps_all_promises() {
    for seed in 0..8 {
        let (verdict, counts) = run_lives(seed, Durability::Fsync);
        assert_eq!(verdict, Ok(()), "seed {seed}");
        for what in ["band written", "bands read", "cell written", "cells read"] {
            assert!(counts.all().get(what).is_some_and(|&count| count > 10), "{what}: {:?}", counts.all());
        }
    }
}

#[test]
fn one_that_acknowledges_early_is_found() {
    assert!((0..10).any(|seed| run_lives(seed, Durability::Relaxed).0.is_err()));
}
