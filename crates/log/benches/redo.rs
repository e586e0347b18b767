//! Appending to the redo log (memory only), flushing it to a real disk, reading it, and a fault point that is off.
use divan::{Bencher, black_box, counter::BytesCount, counter::ItemsCount};
use rauk_log::record::{CommitBuilder, changes};
use rauk_log::{DatabaseId, Disk, Lsn, MemoryDisk, RealDisk, RedoLog, RedoOptions, RedoReader, Superblocks, fault};
use rauk_types::{TableId, Timestamp};
use std::sync::Arc;

fn main() {
    divan::main();
}

fn options() -> RedoOptions {
    RedoOptions::new(DatabaseId([7; 16]))
}

fn superblocks(disk: &Arc<dyn Disk>) -> Arc<Superblocks> {
    Arc::new(Superblocks::load(disk).unwrap())
}

fn open(disk: &Arc<dyn Disk>) -> RedoLog {
    let mut reader = RedoReader::open(&superblocks(disk), options(), Lsn(0), Lsn(0)).unwrap();
    while reader.next().unwrap().is_some() {}
    reader.into_log(Timestamp::ZERO).unwrap()
}

/// A directory beside the build's output: what lies under /tmp may be memory.
fn real_disk() -> (tempfile::TempDir, Arc<dyn Disk>) {
    let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let disk = RealDisk::open(dir.path()).unwrap();
    (dir, Arc::new(disk))
}

/// Appends alone; every 64 000th flushes into memory, so that buffers stay small.
#[divan::bench(args = [100, 1000])]
fn append(bencher: Bencher, bytes: usize) {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let log = open(&disk);
    let payload = vec![1; bytes];
    let mut n = 0;
    bencher.counter(ItemsCount::new(1usize)).bench_local(|| {
        n += 1;
        if n % 1000 == 0 {
            log.flush().unwrap();
            log.release_before(log.durable_lsn()).unwrap();
        }
        log.append_commit(black_box(&payload), |_| {}).unwrap()
    });
}

/// One commit and its flush: what a lone committer waits for.
#[divan::bench(args = [256, 1024, 4096, 65536], sample_count = 1000, sample_size = 1)]
fn append_and_flush(bencher: Bencher, bytes: usize) {
    let (_dir, disk) = real_disk();
    let log = open(&disk);
    let payload = vec![1; bytes];
    bencher.counter(BytesCount::new(bytes)).bench_local(|| {
        log.append_commit(&payload, |_| {}).unwrap();
        log.flush().unwrap();
        log.release_before(log.durable_lsn()).unwrap();
    });
}

/// Recovery's reading side: 100 000 commits of one row of 100 bytes each.
#[divan::bench(sample_count = 10, sample_size = 1)]
fn read(bencher: Bencher) {
    const ROWS: usize = 100_000;
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let log = open(&disk);
    let mut builder = CommitBuilder::default();
    for i in 0..ROWS {
        builder.clear();
        builder.put(i as u16 % 3840, TableId(7), 1, &[i as u8; 100]);
        log.append_commit(builder.payload(), |_| {}).unwrap();
        if i % 100 == 0 {
            log.flush().unwrap();
        }
    }
    log.flush().unwrap();
    bencher.counter(ItemsCount::new(ROWS)).bench_local(|| {
        let mut reader = RedoReader::open(&superblocks(&disk), options(), Lsn(0), Lsn(0)).unwrap();
        let mut rows = 0;
        while let Some(entry) = reader.next().unwrap() {
            rows += changes(entry.payload).filter(|c| black_box(c).is_ok()).count();
        }
        assert_eq!(rows, ROWS);
    });
}

#[divan::bench]
fn fault_point_off() {
    fault::point(black_box("redo.append")).unwrap();
}
