//! A disk that fills while entries come: whatever finds room, the log has a beginning of the stream and no hole, and nothing is acknowledged that it has not.

use super::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rauk_cluster::replica::{Replay, ReplayError};
use rauk_log::record::{Change, changes};
use rauk_log::{Disk, DiskFile};
use std::io;
use std::sync::atomic::AtomicBool;

/// A disk on which no file can be made while it is full.
#[derive(Default)]
struct FullDisk {
    inner: Arc<MemoryDisk>,
    full: AtomicBool,
}

impl Disk for FullDisk {
    fn create_dir_all(&self, path: &str) -> io::Result<()> {
        self.inner.create_dir_all(path)
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        self.inner.list(path)
    }

    fn exists(&self, path: &str) -> io::Result<bool> {
        self.inner.exists(path)
    }

    fn open(&self, path: &str, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        if create && self.full.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.inner.open(path, create)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.inner.remove(path)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn sync_dir(&self, path: &str) -> io::Result<()> {
        self.inner.sync_dir(path)
    }
}

/// What has left the slot until now.
#[derive(Default)]
struct Left {
    acknowledged: u64,
    fatal: Option<String>,
}

fn happens(world: &mut World, left: &mut Left, happening: Happening) {
    world.slot.queue.lock().push_back(happening);
    let (_, actions) = world.enter_with_actions(|_, _, _| ());
    for action in actions {
        match action {
            Action::Send { message: Message::Acknowledge { durable, .. }, .. } => {
                left.acknowledged = left.acknowledged.max(durable.0);
            }
            Action::Fatal(reason) => {
                left.fatal.get_or_insert(reason);
            }
            _ => {}
        }
    }
}

/// Opens what is on disk: how far the stream goes.
fn replayed(disk: Arc<dyn Disk>) -> Result<u64, ReplayError> {
    let mut reader = RedoReader::open(&Arc::new(Superblocks::load(&disk).unwrap()), options(), Lsn(0), Lsn(0)).unwrap();
    let mut replay = Replay::new(1 << 20);
    while let Some(found) = reader.next().unwrap() {
        for change in changes(found.payload) {
            let Change::Stream { bytes, .. } = change.unwrap() else { continue };
            replay.push(postcard::from_bytes(bytes).unwrap(), &mut Vec::new())?;
        }
    }
    Ok(replay.last().position.0)
}

fn options() -> RedoOptions {
    RedoOptions { segment_bytes: 8 << 10, ..RedoOptions::new(DatabaseId([1; 16])) }
}

#[test]
fn a_full_disk_leaves_no_hole_in_the_log() {
    let mut failed = 0;
    for seed in 0..200 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let disk = Arc::new(FullDisk::default());
        let (mut world, mut left) = (World::on(disk.clone(), options()), Left::default());
        happens(&mut world, &mut left, assignment(1, 2, &[1, 2]));
        let mut last = 0;
        // A process that must stop goes on for a moment: its other threads do not know yet.
        let mut after = 10;
        while after > 0 && last < 200 {
            match rng.random_range(0..10) {
                0 => disk.full.store(rng.random_bool(0.7), Ordering::Relaxed),
                1..4 => {
                    world.log.flush().unwrap();
                    let durable = world.log.durable_lsn();
                    happens(&mut world, &mut left, Happening::Durable(durable));
                }
                _ => {
                    let first = last + 1;
                    last += rng.random_range(1..6);
                    let mut record = || {
                        let txns = (0..rng.random_range(0..200)).map(|n| TxnId(1000 + n)).collect();
                        Record::Forget { txns }
                    };
                    let entries = (first..=last).map(|at| entry(1, at, &record())).collect();
                    let previous = if first == 1 { (0, 0) } else { (1, first - 1) };
                    happens(&mut world, &mut left, append(2, 1, previous, entries, first - 1));
                }
            }
            after -= u32::from(left.fatal.is_some());
        }
        if let Some(reason) = &left.fatal {
            failed += 1;
            assert!(reason.contains("the disk is full"), "{reason}");
        }
        world.log.flush().unwrap();
        let stored = replayed(disk.clone()).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(stored >= left.acknowledged, "seed {seed}: {} acknowledged, {stored} stored", left.acknowledged);
        disk.full.store(false, Ordering::Relaxed);
        let (anchor, _) = world.enter_with_actions(|slot, s, cx| slot.write_anchor(s, cx));
        let why = "a checkpoint that begins now would rest on what is not in the log";
        assert_eq!(anchor.is_err(), left.fatal.is_some(), "seed {seed}: {why}");
    }
    assert!(failed > 50, "{failed} of 200 disks were full");
}

/// A primary whose entry cannot be logged commits nothing more, and what it has shown is in the log.
#[test]
fn a_primary_without_room_ends_its_service() {
    let disk = Arc::new(FullDisk::default());
    let mut world = World::leading_on(World::on(disk.clone(), options()));
    disk.full.store(true, Ordering::Relaxed);
    let mut number = 0;
    let fatal = loop {
        number += 1;
        let txn = TxnRef::new(TxnId::of_process(ProcessId(1), number));
        let (begun, actions) =
            world.enter_with_actions(|slot, s, cx| slot.commit_alone(s, cx, &txn, Timestamp::ZERO, nothing()));
        drop(begun.unwrap());
        if let Some(Action::Fatal(reason)) = actions.into_iter().find(|action| matches!(action, Action::Fatal(_))) {
            break reason;
        }
        assert!(number < 10_000);
    };
    assert!(fatal.contains("the disk is full"), "{fatal}");
    assert_eq!(world.slot.serving(), None);
    disk.full.store(false, Ordering::Relaxed);
    let txn = TxnRef::new(TxnId::of_process(ProcessId(1), number + 1));
    let (begun, _) = world.enter_with_actions(|slot, s, cx| slot.commit_alone(s, cx, &txn, Timestamp::ZERO, nothing()));
    assert!(begun.is_err());
    world.log.flush().unwrap();
    drop(world);
    assert!(replayed(disk).unwrap() > 10);
}
