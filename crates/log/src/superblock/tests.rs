use super::*;
use crate::memory_disk::MemoryDisk;
use crate::redo::{RedoLog, RedoOptions, RedoReader};
use crate::{Journal, Manifest};
use rauk_types::Timestamp;
use std::cell::Cell;
use std::rc::Rc;

const ID: DatabaseId = DatabaseId([6; 16]);
const JOURNAL: &str = "catalog.journal";

fn load(disk: &Arc<dyn Disk>) -> Result<Arc<Superblocks>, LogError> {
    Superblocks::load(disk).map(Arc::new)
}

/// All files of a directory, with their contents.
fn image(disk: &Arc<dyn Disk>) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for directory in ["", "redo", "checkpoint"] {
        for name in disk.list(directory).unwrap() {
            let path = if directory.is_empty() { name } else { format!("{directory}/{name}") };
            let file = disk.open(&path, false).unwrap();
            let mut bytes = vec![0; file.len().unwrap() as usize];
            file.read_exact_at(&mut bytes, 0).unwrap();
            files.insert(path, bytes);
        }
    }
    files
}

fn put(disk: &Arc<dyn Disk>, path: &str, bytes: &[u8]) {
    let file = disk.open(path, true).unwrap();
    file.set_len(0).unwrap();
    file.write_all_at(bytes, 0).unwrap();
}

fn flip(disk: &Arc<dyn Disk>, path: &str, at: u64) {
    let file = disk.open(path, false).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
}

struct Opened {
    superblocks: Arc<Superblocks>,
    manifest: Manifest,
    journal: Journal,
    log: RedoLog,
    entries: usize,
    records: usize,
}

/// As a standalone node opens its directory: everything is read before anything is written.
fn open_with(superblocks: Arc<Superblocks>) -> Result<Opened, LogError> {
    let manifest = match Manifest::load(&superblocks)? {
        Some(manifest) => manifest,
        None => {
            let mut manifest = Manifest::new(ID, 1, "fsync");
            manifest.store(&superblocks)?;
            manifest
        }
    };
    let (mut journal, entries) = Journal::read(&superblocks, JOURNAL, ID)?;
    let options = RedoOptions { segment_bytes: 8192, database: ID };
    let mut reader = RedoReader::open(&superblocks, options, manifest.redo_start, manifest.redo_durable)?;
    let mut records = 0;
    while reader.next()?.is_some() {
        records += 1;
    }
    let log = reader.into_log(Timestamp::ZERO)?;
    journal.settle()?;
    Ok(Opened { superblocks, manifest, journal, log, entries: entries.len(), records })
}

fn open(disk: &Arc<dyn Disk>) -> Result<Opened, LogError> {
    open_with(load(disk)?)
}

/// A directory with three journal entries and twelve records in three segments, stopped in order.
fn filled() -> Arc<dyn Disk> {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let mut opened = open(&disk).unwrap();
    for i in 0..3u8 {
        opened.journal.append(&[i; 30]).unwrap();
    }
    for i in 0..12u8 {
        opened.log.append_commit(&[i; 700], |_| {}).unwrap();
        opened.log.flush().unwrap();
    }
    opened.log.claim_all().unwrap();
    disk
}

/// The start is refused with this text and changes nothing; with the file put back it is as if nothing had happened.
fn refused(disk: &Arc<dyn Disk>, good: &BTreeMap<String, Vec<u8>>, path: &str, text: &str) {
    let before = image(disk);
    for _ in 0..2 {
        let error = open(disk).err().unwrap_or_else(|| panic!("{path} is not noticed")).to_string();
        assert!(error.contains(text) && error.contains(path), "expected {text}: {error}");
        assert!(error.contains("put the file back from a copy, or start with an empty directory"), "{error}");
        assert_eq!(image(disk), before, "{path}: a refused start changes nothing");
    }
    put(disk, path, &good[path]);
    let opened = open(disk).unwrap();
    assert_eq!((opened.entries, opened.records), (3, 12), "{path} was put back");
}

#[test]
fn a_missing_file_is_refused_until_it_is_put_back() {
    for path in [JOURNAL, "checkpoint/manifest", "redo/0000.redo", "redo/0001.redo", "redo/0002.redo"] {
        let disk = filled();
        let good = image(&disk);
        disk.remove(path).unwrap();
        refused(&disk, &good, path, "is missing");
    }
}

#[test]
fn damage_of_the_last_journal_entry_and_record_is_refused() {
    let disk = filled();
    let good = image(&disk);
    let length = good[JOURNAL].len() as u64;
    flip(&disk, JOURNAL, length - 1);
    refused(&disk, &good, JOURNAL, &format!("is damaged at byte {}", length - 46));
    disk.open(JOURNAL, false).unwrap().set_len(length - 7).unwrap();
    refused(&disk, &good, JOURNAL, &format!("is damaged at byte {}", length - 46));
    disk.open(JOURNAL, false).unwrap().set_len(length - 46).unwrap();
    refused(&disk, &good, JOURNAL, "is an older copy");
    let end = load(&disk).unwrap().claims().redo.0;
    let last = "redo/0002.redo";
    assert_eq!(end / 8192, 2, "the log ends in the third segment");
    flip(&disk, last, end % 8192 - 20);
    refused(&disk, &good, last, "but the log was durable up to position");
    let length = good[last].len() as u64;
    disk.open(last, false).unwrap().set_len(length - 512).unwrap();
    refused(&disk, &good, last, "is damaged at byte");
}

#[test]
fn older_copies_are_refused() {
    let disk = filled();
    let older = image(&disk);
    let mut opened = open(&disk).unwrap();
    opened.journal.append(b"more").unwrap();
    opened.journal.compact(&[vec![1; 60], b"more".to_vec(), b"all".to_vec()]).unwrap();
    let start = opened.log.end_lsn();
    for i in 0..12u8 {
        opened.log.append_commit(&[i; 700], |_| {}).unwrap();
        opened.log.flush().unwrap();
    }
    opened.manifest.checkpoint = 1;
    opened.manifest.redo_start = start;
    opened.manifest.store(&opened.superblocks).unwrap();
    opened.log.release_before(start).unwrap();
    // Segments 1 and 2 are used again.
    for i in 0..12u8 {
        opened.log.append_commit(&[i; 700], |_| {}).unwrap();
        opened.log.flush().unwrap();
    }
    opened.log.claim_all().unwrap();
    let newer = image(&disk);
    for (path, old) in older.iter().filter(|(path, _)| !path.starts_with("superblock")) {
        put(&disk, path, old);
        let error = open(&disk).err().unwrap_or_else(|| panic!("{path} is not noticed")).to_string();
        assert!(error.contains(path.as_str()), "{error}");
        put(&disk, path, &newer[path]);
    }
    // One older superblock: the other one counts. Two: they claim less, and nothing that is needed and not there.
    put(&disk, PATHS[0], &older[PATHS[0]]);
    assert_eq!(open(&disk).unwrap().records, 24);
    for path in PATHS {
        put(&disk, path, &older[path]);
    }
    assert_eq!(open(&disk).unwrap().records, 24);
}

/// Beyond the claim the log judges itself: the tail is cut, and the doubt is kept over restarts.
#[test]
fn a_bad_tail_beyond_the_claim_is_cut_and_remembered() {
    let disk = filled();
    let log = open(&disk).unwrap().log;
    let start = log.append_commit(b"beyond the claim", |_| {}).unwrap().start.0;
    log.flush().unwrap();
    drop(log);
    flip(&disk, &format!("redo/{:04}.redo", start / 8192), start % 8192);
    for _ in 0..3 {
        let opened = open(&disk).unwrap();
        assert_eq!(opened.records, 12);
        assert!(opened.superblocks.doubt().unwrap().contains("redo/0002.redo at byte"));
        // It does not go away because the log goes on.
        opened.log.append(b"").unwrap();
    }
    let opened = open(&disk).unwrap();
    opened.superblocks.clear_doubt().unwrap();
    put(&disk, PATHS[0], b"");
    assert_eq!(open(&disk).unwrap().superblocks.doubt(), None);
}

#[test]
fn one_superblock_that_cannot_be_read_leaves_the_other() {
    for (index, path) in PATHS.into_iter().enumerate() {
        let good = image(&filled());
        for change in 0..4 {
            let disk = filled();
            match change {
                0 => disk.remove(path).unwrap(),
                1 => put(&disk, path, &good[path][..40]),
                2 => flip(&disk, path, 30),
                _ => put(&disk, path, &good[PATHS[1 - index]]),
            }
            // After a stop both claim everything.
            let before = image(&disk);
            disk.remove("redo/0002.redo").unwrap();
            open(&disk).err().expect("noticed");
            put(&disk, "redo/0002.redo", &before["redo/0002.redo"]);
            let opened = open(&disk).unwrap();
            assert_eq!((opened.entries, opened.records), (3, 12), "change {change} of {path}");
            drop(opened);
            // The start has written both.
            assert!(Superblocks::load(&disk).unwrap().state.lock().slots.iter().all(|slot| slot.claims.is_some()));
        }
    }
}

#[test]
fn a_directory_without_superblocks_is_new_or_older_or_refused() {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    assert_eq!(load(&disk).unwrap().database(), None);
    // The very first write was torn.
    put(&disk, PATHS[1], b"RAUKSUPR");
    assert_eq!(load(&disk).unwrap().database(), None);

    let disk = filled();
    let good = image(&disk);
    let message = || load(&disk).err().expect("refused").to_string();
    PATHS.iter().for_each(|path| disk.remove(path).unwrap());
    assert!(message().contains("superblock.0 is missing"), "{}", message());
    PATHS.iter().for_each(|path| put(&disk, path, b"nonsense"));
    assert!(message().contains("superblock.0 is damaged at byte 8"), "{}", message());
    PATHS.iter().for_each(|path| disk.remove(path).unwrap());

    // Made by version 1: the same headers with that version.
    for (path, bytes) in good.iter().filter(|(path, _)| !path.starts_with("superblock")) {
        let mut older = bytes.clone();
        let copies: &[usize] = if path.ends_with(".redo") { &[0, 512] } else { &[0] };
        for &at in copies {
            let kind: &'static [u8; 8] = match path.as_str() {
                JOURNAL => b"RAUKJRNL",
                "checkpoint/manifest" => b"RAUKMANI",
                _ => b"RAUKREDO",
            };
            let head = bytes[at..].first_chunk().unwrap();
            let header = FileHeader::decode(path, head, kind, Some(ID)).unwrap();
            older[at..at + HEADER_BYTES].copy_from_slice(&header.encode_as(1));
        }
        put(&disk, path, &older);
    }
    let older = image(&disk);
    disk.remove("checkpoint/manifest").unwrap();
    assert!(message().contains("checkpoint/manifest is missing: the directory has catalog.journal"), "{}", message());
    put(&disk, "checkpoint/manifest", &older["checkpoint/manifest"]);
    let opened = open(&disk).unwrap();
    assert_eq!((opened.entries, opened.records, opened.superblocks.database()), (3, 12, Some(ID)));
    drop(opened);
    // It has superblocks now, and needs them.
    let good = image(&disk);
    disk.remove(JOURNAL).unwrap();
    refused(&disk, &good, JOURNAL, "is missing");
    PATHS.iter().for_each(|path| disk.remove(path).unwrap());
    assert!(message().contains("superblock.0 is missing"), "{}", message());
}

#[test]
fn superblocks_of_two_databases_are_refused() {
    let (disk, other): (Arc<dyn Disk>, Arc<dyn Disk>) = (filled(), MemoryDisk::new());
    let superblocks = load(&other).unwrap();
    superblocks.begin(DatabaseId([7; 16])).unwrap();
    put(&disk, PATHS[1], &image(&other)[PATHS[1]]);
    assert!(matches!(load(&disk), Err(LogError::Foreign { .. })));
}

#[test]
fn a_full_disk_changes_no_claim_and_a_failed_sync_is_final() {
    let disk = filled();
    let mut opened = open(&disk).unwrap();
    let before = opened.superblocks.claims();
    let failing = Rc::new(Cell::new(("", io::ErrorKind::Other)));
    let seen = failing.clone();
    let _local = fault::Local::new(move |name| match seen.get() {
        (point, kind) if point == name => Err(kind.into()),
        _ => Ok(()),
    });
    failing.set(("superblock.before_allocate", io::ErrorKind::StorageFull));
    let many = || (0..2000).map(|i| (format!("journal {i}"), i)).collect();
    let full = opened.superblocks.update(|claims| claims.journals = many());
    assert!(matches!(full, Err(LogError::DiskFull(_))), "{full:?}");
    assert_eq!(opened.superblocks.claims(), before);
    // Room for small claims is kept: what was written can be claimed.
    assert_eq!(opened.journal.append(b"small").unwrap(), 4);
    failing.set(("superblock.before_sync", io::ErrorKind::Other));
    assert!(matches!(opened.journal.append(b"large"), Err(LogError::Failed(_))));
    failing.set(("", io::ErrorKind::Other));
    assert!(matches!(opened.journal.append(b"later"), Err(LogError::Failed(_))));
    opened.log.append_commit(b"record", |_| {}).unwrap();
    opened.log.flush().unwrap();
    assert!(matches!(opened.log.claim(), Err(LogError::Failed(_))));
    assert!(matches!(opened.log.append(b"record"), Err(LogError::Failed(_))));
}

#[test]
fn a_log_that_rests_claims_nothing_more() {
    let disk = filled();
    let opened = open(&disk).unwrap();
    let generation = || opened.superblocks.state.lock().generation;
    opened.log.append_commit(b"record", |_| {}).unwrap();
    opened.log.flush().unwrap();
    let before = generation();
    let moved: Vec<u64> = (0..4).map(|_| opened.log.claim().map(|()| generation() - before).unwrap()).collect();
    assert_eq!(moved, [1, 2, 2, 2]);
    assert_eq!(opened.superblocks.claims().redo, opened.log.durable_lsn());
}

/// What the safeguard is for: with the claims ignored, acknowledged entries and records are gone without a word.
#[test]
fn without_claims_it_would_be_lost_silently() {
    let disk = filled();
    flip(&disk, JOURNAL, image(&disk)[JOURNAL].len() as u64 - 1);
    // The third segment, and the one that was made ahead.
    disk.remove("redo/0002.redo").and_then(|()| disk.remove("redo/0003.redo")).unwrap();
    let superblocks = Arc::new(Superblocks::load(&disk).unwrap().ignoring_claims());
    let opened = open_with(superblocks).unwrap();
    assert_eq!((opened.entries, opened.records), (2, 10));
}
