use super::segment::FIRST_FRAME;
use super::*;
use crate::disk::Disk;
use crate::fault;
use crate::header::FORMAT_VERSION;
use crate::memory_disk::MemoryDisk;
use crate::superblock::Superblocks;
use proptest::prelude::*;
use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) const ID: DatabaseId = DatabaseId([1; 16]);

fn options(segment_bytes: u64) -> RedoOptions {
    RedoOptions { segment_bytes, database: ID }
}

pub(super) type Records = Vec<(Option<u64>, Vec<u8>)>;

pub(super) fn read(
    disk: &Arc<dyn Disk>,
    segment_bytes: u64,
    from: Lsn,
    durable: Lsn,
) -> Result<(RedoReader, Records), LogError> {
    let superblocks = Arc::new(Superblocks::load(disk)?);
    let mut reader = RedoReader::open(&superblocks, options(segment_bytes), from, durable)?;
    let mut records = Vec::new();
    let mut end = from;
    while let Some(entry) = reader.next()? {
        assert!(entry.start >= end && entry.end > entry.start);
        end = entry.end;
        records.push((entry.time.map(|t| t.0), entry.payload.to_vec()));
    }
    Ok((reader, records))
}

pub(super) fn open(disk: &Arc<dyn Disk>, segment_bytes: u64) -> Result<(RedoLog, Records), LogError> {
    let (reader, records) = read(disk, segment_bytes, Lsn(0), Lsn(0))?;
    Ok((reader.into_log(Timestamp::ZERO)?, records))
}

pub(super) fn body(i: usize, length: usize) -> Vec<u8> {
    (0..length).map(|k| (i * 31 + k * 7) as u8).collect()
}

#[test]
fn records_of_all_sizes_come_back() {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let (log, records) = open(&disk, 8192).unwrap();
    assert!(records.is_empty());
    assert!(log.flush().unwrap());
    let mut expected = Vec::new();
    let mut time = 0;
    for (i, length) in [0, 1, 100, 3990, 4000, 4050, 4096, 9000, 100_000, 7, 8128, 8129, 3].into_iter().enumerate() {
        let payload = body(i, length);
        if i % 3 == 2 {
            let appended = log.append(&payload).unwrap();
            assert_eq!(appended.time, Timestamp(time));
            expected.push((None, payload));
        } else {
            time += 1;
            let decided = Cell::new(Timestamp::ZERO);
            let appended = log.append_commit(&payload, |t| decided.set(t)).unwrap();
            assert_eq!(
                (appended.time, decided.get(), log.last_time()),
                (Timestamp(time), Timestamp(time), Timestamp(time))
            );
            assert_eq!(appended.end, log.end_lsn());
            assert!(log.durable_lsn() < appended.end && log.durable_time() < appended.time);
            expected.push((Some(time), payload));
        }
        if i % 2 == 0 {
            assert!(log.flush().unwrap());
            assert_eq!((log.durable_lsn(), log.durable_time()), (log.end_lsn(), log.last_time()));
        }
    }
    drop(log);
    let (log, records) = open(&disk, 8192).unwrap();
    assert_eq!(records, expected);
    assert_eq!(log.last_time(), Timestamp(time));
    log.append_commit(b"again", |t| assert_eq!(t, Timestamp(time + 1))).unwrap();
    log.flush().unwrap();
    expected.push((Some(time + 1), b"again".to_vec()));
    assert_eq!(open(&disk, 8192).unwrap().1, expected);
}

#[test]
fn what_was_not_flushed_is_not_there() {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let (log, _) = open(&disk, 8192).unwrap();
    log.append_commit(b"one", |_| {}).unwrap();
    log.flush().unwrap();
    log.append_commit(b"two", |_| {}).unwrap();
    drop(log);
    assert_eq!(open(&disk, 8192).unwrap().1, [(Some(1), b"one".to_vec())]);
}

#[test]
fn released_segments_are_used_again_and_old_bytes_do_not_pass() {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let (mut log, _) = open(&disk, 8192).unwrap();
    let mut from = Lsn(0);
    let mut files = 0;
    for round in 0..60usize {
        let start = log.end_lsn();
        let mut expected = Vec::new();
        for i in 0..5 {
            let payload = body(round * 5 + i, 700 + 37 * round % 400);
            let time = log.append_commit(&payload, |_| {}).unwrap().time;
            expected.push((Some(time.0), payload));
            log.flush().unwrap();
        }
        let time = log.last_time();
        let durable = log.durable_lsn();
        log.release_before(start).unwrap();
        from = from.max(start);
        drop(log);
        let (reader, records) = read(&disk, 8192, from, durable).unwrap();
        assert_eq!(records, expected, "round {round}");
        assert_eq!(reader.end_lsn(), durable);
        log = reader.into_log(time).unwrap();
        let now = disk.list(DIRECTORY).unwrap().len();
        assert!(round < 10 || now == files, "{now} files after {files}");
        files = now;
    }
    assert!(files <= 6, "{files} files");
}

#[test]
fn a_full_disk_refuses_and_later_accepts() {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let (log, _) = open(&disk, 8192).unwrap();
    let full = Rc::new(Cell::new(false));
    let seen = full.clone();
    let _local = fault::Local::new(move |name| {
        let fails = seen.get() && name == "redo.segment.before_allocate";
        if fails { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    });
    full.set(true);
    let mut accepted = 0;
    let error = loop {
        match log.append_commit(&body(accepted, 500), |_| {}) {
            Ok(_) => accepted += 1,
            Err(error) => break error,
        }
        assert!(log.flush().unwrap());
    };
    assert!(matches!(error, LogError::DiskFull(_)), "{error}");
    assert_eq!(accepted, 7);
    let end = log.end_lsn();
    assert!(log.append_commit(&[0; 30_000], |_| panic!("refused")).is_err());
    assert_eq!(log.end_lsn(), end);
    // What still fits is accepted.
    log.append_commit(b"small", |_| {}).unwrap();
    full.set(false);
    log.append_commit(&[9; 30_000], |_| {}).unwrap();
    log.flush().unwrap();
    drop(log);
    let records = open(&disk, 8192).unwrap().1;
    assert_eq!(records.len(), 9);
    assert_eq!(records.last(), Some(&(Some(9), vec![9; 30_000])));
}

#[test]
fn a_failed_sync_is_final() {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let (log, _) = open(&disk, 8192).unwrap();
    log.append_commit(b"x", |_| {}).unwrap();
    let local =
        fault::Local::new(
            |name| {
                if name == "redo.flush.before_sync" { Err(io::ErrorKind::Other.into()) } else { Ok(()) }
            },
        );
    let before = log.durable_lsn();
    let message = log.flush().unwrap_err().to_string();
    assert!(message.contains("redo/0000.redo at byte 4096"), "{message}");
    drop(local);
    assert!(matches!(log.flush(), Err(LogError::Failed(_))));
    assert!(matches!(log.append(b"y"), Err(LogError::Failed(_))));
    assert_eq!(log.durable_lsn(), before);
}

#[test]
fn refuses_missing_segments_foreign_and_newer_files() {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let (log, _) = open(&disk, 8192).unwrap();
    for i in 0..30 {
        log.append_commit(&body(i, 900), |_| {}).unwrap();
        log.flush().unwrap();
    }
    let end = log.durable_lsn();
    drop(log);
    let message = |result: Result<(RedoReader, Records), LogError>| result.err().expect("refused").to_string();
    let later = Lsn(end.0 + 5000);
    assert!(message(read(&disk, 8192, Lsn(0), later)).contains("but the log was durable up to position"));
    let superblocks = Arc::new(Superblocks::load(&disk).unwrap());
    let foreign =
        RedoReader::open(&superblocks, RedoOptions { database: DatabaseId([2; 16]), ..options(8192) }, Lsn(0), Lsn(0));
    assert!(matches!(foreign, Err(LogError::Foreign { .. })));
    disk.rename("redo/0001.redo", "redo/kept").unwrap();
    assert!(message(read(&disk, 8192, Lsn(0), Lsn(0))).contains("redo/0001.redo is missing: it was segment 2"));
    let unlisted = || Arc::new(Superblocks::load(&disk).unwrap().ignoring_claims());
    let gap = RedoReader::open(&unlisted(), options(8192), Lsn(0), Lsn(0)).err().expect("refused").to_string();
    assert!(gap.contains("it is segment 3 of the log"), "{gap}");
    assert!(read(&disk, 8192, Lsn(2 * 8192), end).is_ok());
    disk.rename("redo/kept", "redo/0001.redo").unwrap();
    disk.rename("redo/0000.redo", "redo/kept").unwrap();
    assert!(message(read(&disk, 8192, Lsn(0), Lsn(0))).contains("redo/0000.redo is missing: it was segment 1"));
    let gap = RedoReader::open(&unlisted(), options(8192), Lsn(0), Lsn(0)).err().expect("refused").to_string();
    assert!(gap.contains("the log begins at position 8192"), "{gap}");
    disk.rename("redo/kept", "redo/0000.redo").unwrap();
    let file = disk.open("redo/0002.redo", false).unwrap();
    let end_now = read(&disk, 8192, Lsn(0), end).unwrap().0.end_lsn();
    file.write_all_at(&[0; 64], 0).unwrap();
    // One copy of the header is enough.
    assert_eq!(read(&disk, 8192, Lsn(0), end).unwrap().0.end_lsn(), end_now);
    file.write_all_at(&[0; 64], 512).unwrap();
    assert!(message(read(&disk, 8192, Lsn(0), end)).contains("redo/0002.redo is damaged at byte 0"));
    let mut header = [0; 64];
    disk.open("redo/0001.redo", false).unwrap().read_exact_at(&mut header, 0).unwrap();
    header[8] = FORMAT_VERSION as u8 + 1;
    file.write_all_at(&header, 0).unwrap();
    let newer = message(read(&disk, 8192, Lsn(0), Lsn(0)));
    let (found, known) =
        (format!("redo/0002.redo has format version {}", FORMAT_VERSION + 1), format!("up to {FORMAT_VERSION}"));
    assert!(newer.contains(&found) && newer.contains(&known), "{newer}");
}

#[test]
fn another_segment_size_takes_over() {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let (log, _) = open(&disk, 8192).unwrap();
    let mut expected = Vec::new();
    let mut log = Some(log);
    for (i, size) in [8192, 16384, 12_288, 8192].into_iter().enumerate() {
        let log = log.take().unwrap_or_else(|| {
            let (log, records) = open(&disk, size).unwrap();
            assert_eq!(records, expected);
            log
        });
        for k in 0..20 {
            let payload = body(i * 20 + k, 1000);
            expected.push((Some(log.append_commit(&payload, |_| {}).unwrap().time.0), payload));
        }
        log.flush().unwrap();
    }
    let (log, records) = open(&disk, 8192).unwrap();
    assert_eq!(records, expected);
    log.release_before(log.end_lsn()).unwrap();
}

#[test]
fn appenders_and_flushers_beside_each_other() {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let (log, _) = open(&disk, 64 << 10).unwrap();
    let stop = AtomicBool::new(false);
    let mut expected: Vec<(u64, Vec<u8>)> = std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    log.flush().unwrap();
                }
            });
        }
        let appenders: Vec<_> = (0..4usize)
            .map(|thread| {
                let log = &log;
                scope.spawn(move || {
                    let one = |i| {
                        let payload = body(thread * 1000 + i, (i * 13) % 700);
                        let appended = log.append_commit(&payload, |_| {}).unwrap();
                        while i % 50 == 0 && log.durable_lsn() < appended.end {
                            log.flush().unwrap();
                        }
                        (appended.time.0, payload)
                    };
                    (0..500).map(one).collect::<Vec<_>>()
                })
            })
            .collect();
        let all = appenders.into_iter().flat_map(|a| a.join().unwrap()).collect();
        stop.store(true, Ordering::Relaxed);
        all
    });
    log.flush().unwrap();
    assert_eq!(log.durable_lsn(), log.end_lsn());
    expected.sort();
    let read: Vec<_> = open(&disk, 64 << 10).unwrap().1.into_iter().map(|(t, p)| (t.unwrap(), p)).collect();
    assert!(read == expected);
}

/// Frames of one record each, in segments of 8 KiB; gives the positions at which frames begin.
pub(super) fn frames(disk: &Arc<dyn Disk>, lengths: &[usize]) -> Vec<u64> {
    let (log, _) = open(disk, 8192).unwrap();
    let mut starts = Vec::new();
    for (i, &length) in lengths.iter().enumerate() {
        starts.push(log.append_commit(&body(i, length), |_| {}).unwrap().start.0 - 40);
        log.flush().unwrap();
    }
    starts
}

/// A log of one frame a record on a disk of its own, where its frames begin, and where it ends.
fn log_of(lengths: &[usize]) -> (Arc<dyn Disk>, Vec<u64>, u64) {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let starts = frames(&disk, lengths);
    let end = open(&disk, 8192).unwrap().0.end_lsn().0;
    (disk, starts, end)
}

/// Flips a bit and reads the log: in the last frame that is taken for a torn write, before it is damage at the right place; records never come
/// back changed.
fn flip(disk: &Arc<dyn Disk>, lengths: &[usize], starts: &[u64], end: u64, position: u64, bit: u32) {
    let last = *starts.last().unwrap();
    // A record cut by the end of a segment has its last frame in the next one. A record may also end just where its segment does.
    let last_segment = (end - 1) / 8192;
    let last_frame = if last / 8192 < last_segment { last_segment * 8192 + FIRST_FRAME } else { last };
    let file = disk.open(&format!("redo/{:04}.redo", position / 8192), false).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, position % 8192).unwrap();
    file.write_all_at(&[byte[0] ^ (1u8 << bit)], position % 8192).unwrap();
    match read(disk, 8192, Lsn(0), Lsn(0)) {
        Ok((_, records)) => {
            // Padding between frames is not covered and means nothing.
            assert!(
                records.len() == lengths.len() || position >= last_frame,
                "the bit at {position} took records away"
            );
            for (i, record) in records.iter().enumerate() {
                assert_eq!(record.1, body(i, lengths[i]));
            }
            assert!(records.len() >= lengths.len() - 1);
        }
        Err(LogError::Damaged { file, offset, .. }) => {
            assert!(position < last_frame);
            assert_eq!(file, format!("redo/{:04}.redo", position / 8192));
            assert!(offset <= position % 8192);
            assert!(starts.contains(&(position / 8192 * 8192 + offset)) || offset == FIRST_FRAME);
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_flipped_bit_in_a_last_frame_that_fills_its_segment() {
    let lengths = [1732, 2251];
    let (_, starts, end) = log_of(&lengths);
    assert_eq!(end, 8192);
    for position in [starts[1] - 1, starts[1], starts[1] + 40, end - 1] {
        let (disk, ..) = log_of(&lengths);
        flip(&disk, &lengths, &starts, end, position, 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// One flipped bit anywhere in the frames.
    #[test]
    fn flipped_bits(lengths in proptest::collection::vec(0usize..3000, 1..12), hit in any::<proptest::sample::Index>(), bit in 0u32..8) {
        let (disk, starts, end) = log_of(&lengths);
        let position = FIRST_FRAME + hit.index((end - FIRST_FRAME) as usize) as u64;
        prop_assume!(position % 8192 >= FIRST_FRAME);
        flip(&disk, &lengths, &starts, end, position, bit);
    }

    /// The last frame is torn: any of its sectors may be old. The log goes on, and what the torn frame left never passes for a record.
    #[test]
    fn torn_frames(lengths in proptest::collection::vec(0usize..2000, 1..8), torn in 600usize..3000, lost in any::<u8>(), more in proptest::collection::vec(0usize..1500, 1..6)) {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        frames(&disk, &lengths);
        let (log, mut expected) = open(&disk, 1 << 16).unwrap();
        let before = log.end_lsn().0;
        let paths = disk.list(DIRECTORY).unwrap();
        let contents = |path: &str| {
            let file = disk.open(&format!("redo/{path}"), false).unwrap();
            let mut bytes = vec![0; file.len().unwrap() as usize];
            file.read_exact_at(&mut bytes, 0).unwrap();
            bytes
        };
        let old: Vec<_> = paths.iter().map(|p| contents(p)).collect();
        log.append_commit(&body(99, torn), |_| {}).unwrap();
        log.append_commit(&body(98, 300), |_| {}).unwrap();
        log.flush().unwrap();
        drop(log);
        let mut changed = 0;
        for (path, old) in paths.iter().zip(old) {
            let new = contents(path);
            let file = disk.open(&format!("redo/{path}"), false).unwrap();
            for (i, (old, new)) in old.chunks(512).zip(new.chunks(512)).enumerate() {
                if old != new {
                    if lost & (1 << (changed % 8)) != 0 {
                        file.write_all_at(old, i as u64 * 512).unwrap();
                    }
                    changed += 1;
                }
            }
        }
        // Segments were made before; a record over two of them has two frames and the first one was synced, so only take tears within one.
        let (reader, records) = match read(&disk, 8192, Lsn(0), Lsn(0)) {
            Ok(read) => read,
            Err(error) => {
                prop_assert!(before % 8192 + torn as u64 + 500 > 8192, "{}", error);
                return Ok(());
            }
        };
        prop_assert!(records.len() >= expected.len());
        prop_assert_eq!(&records[..expected.len()], &expected[..]);
        expected = records;
        let log = reader.into_log(Timestamp::ZERO).unwrap();
        for (i, &length) in more.iter().enumerate() {
            let payload = body(i + 50, length);
            expected.push((Some(log.append_commit(&payload, |_| {}).unwrap().time.0), payload));
            log.flush().unwrap();
            let (_, records) = read(&disk, 8192, Lsn(0), Lsn(0)).unwrap();
            prop_assert_eq!(&records, &expected);
        }
    }
}
