//! How the end of the log is judged: clean, doubtful, or that of an older version.
use super::segment::FIRST_FRAME;
use super::tests::{ID, body, frames, open, read};
use super::*;
use crate::disk::Disk;
use crate::header::{FORMAT_VERSION, FileHeader, HEADER_BYTES, version_of};
use crate::memory_disk::MemoryDisk;
use proptest::prelude::*;
use std::sync::Arc;

fn doubt(disk: &Arc<dyn Disk>) -> Option<DoubtfulEnd> {
    let (reader, _) = read(disk, 8192, Lsn(0), Lsn(0)).unwrap();
    reader.doubtful_end().cloned()
}

fn contents(disk: &Arc<dyn Disk>, name: &str) -> Vec<u8> {
    let file = disk.open(&format!("{DIRECTORY}/{name}"), false).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

#[test]
fn a_log_that_was_not_damaged_ends_cleanly() {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let (mut log, _) = open(&disk, 8192).unwrap();
    for i in 0..400usize {
        assert_eq!(doubt(&disk), None, "after {i} records");
        // Ends at every place in a segment, near its end too, and records over several.
        let length = if i % 50 == 49 { 20_000 } else { i * 37 % 500 };
        log.append_commit(&body(i, length), |_| {}).unwrap();
        log.flush().unwrap();
        if i % 7 == 6 {
            // Appended and not flushed: a killed process.
            log.append_commit(b"lost", |_| {}).unwrap();
            log = open(&disk, 8192).unwrap().0;
        }
    }
}

#[test]
fn segments_that_are_used_again_end_cleanly() {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let (log, _) = open(&disk, 8192).unwrap();
    for i in 0..200usize {
        let start = log.end_lsn();
        log.append_commit(&body(i, 1800), |_| {}).unwrap();
        log.flush().unwrap();
        log.release_before(start).unwrap();
        let (reader, records) = read(&disk, 8192, start, log.durable_lsn()).unwrap();
        assert_eq!((reader.doubtful_end(), records.len()), (None, 1), "after {i} records");
    }
}

#[test]
fn a_doubtful_end_has_its_place_and_is_cut() {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let starts = frames(&disk, &[100, 200, 300]);
    let file = disk.open("redo/0000.redo", false).unwrap();
    file.write_all_at(&[0xff], starts[2] + 90).unwrap();
    let (reader, records) = read(&disk, 8192, Lsn(0), Lsn(0)).unwrap();
    assert_eq!(records.len(), 2);
    let end = reader.doubtful_end().unwrap();
    assert_eq!((&*end.path, end.offset, end.position), ("redo/0000.redo", starts[2], Lsn(starts[2])));
    assert_eq!(
        end.to_string(),
        format!(
            "redo/0000.redo at byte {}: the checksum of the frame that begins here does not match, and no end mark",
            starts[2]
        )
    );
    // Looking does not change it; going on does.
    assert!(doubt(&disk).is_some());
    drop(reader.into_log(Timestamp::ZERO).unwrap());
    assert_eq!(doubt(&disk), None);
    assert_eq!(open(&disk, 8192).unwrap().1, records);
}

/// Gives a segment the header of another version; gives its base and size.
fn write_header_of(disk: &Arc<dyn Disk>, name: &str, version: u32) -> (u64, u64) {
    let file = disk.open(&format!("{DIRECTORY}/{name}"), false).unwrap();
    let bytes = contents(disk, name);
    let head: &[u8; HEADER_BYTES] = bytes.first_chunk().unwrap();
    let header = FileHeader::decode(name, head, b"RAUKREDO", Some(ID)).unwrap();
    for at in [0, 512] {
        file.write_all_at(&header.encode_as(version), at).unwrap();
    }
    let [_, base, size] = header.words;
    (base, size)
}

/// Makes of the log what format version 1 wrote: its headers, and zeros in place of end marks.
fn downgrade(disk: &Arc<dyn Disk>) {
    let (reader, _) = read(disk, 8192, Lsn(0), Lsn(0)).unwrap();
    let end = reader.end_lsn().0.next_multiple_of(8);
    for name in disk.list(DIRECTORY).unwrap() {
        let file = disk.open(&format!("{DIRECTORY}/{name}"), false).unwrap();
        let (base, size) = write_header_of(disk, &name, 1);
        if base > end {
            file.write_all_at(&[0; 16], FIRST_FRAME).unwrap();
        } else if end + 16 <= base + size {
            file.write_all_at(&[0; 16], end - base).unwrap();
        }
    }
}

#[test]
fn segments_of_earlier_versions_become_those_of_this_one() {
    for (count, earlier) in [0, 1, 23].into_iter().flat_map(|count| [(count, 2), (count, 3)]) {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        frames(&disk, &vec![400; count]);
        for name in disk.list(DIRECTORY).unwrap() {
            write_header_of(&disk, &name, earlier);
        }
        let (log, records) = open(&disk, 8192).unwrap();
        assert_eq!(records.len(), count);
        drop(log);
        let names = disk.list(DIRECTORY).unwrap();
        let version = version_of(contents(&disk, names.last().unwrap()).first_chunk().unwrap());
        assert_eq!(version, FORMAT_VERSION, "an earlier program must not read what this one writes");
    }
}

#[test]
fn segments_of_version_1_are_read_and_become_those_of_this_one() {
    for count in 0..24 {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        let lengths: Vec<usize> = (0..count).map(|i| 400 + i * 53 % 300).collect();
        frames(&disk, &lengths);
        downgrade(&disk);
        // Nothing says whether this end is a clean one.
        assert_eq!(doubt(&disk), None);
        let (log, records) = open(&disk, 8192).unwrap();
        assert_eq!(records.len(), count);
        assert_eq!(doubt(&disk), None);
        drop(log);
        let names = disk.list(DIRECTORY).unwrap();
        let version = |name: &String| version_of(contents(&disk, name).first_chunk().unwrap());
        assert_eq!(version(names.last().unwrap()), FORMAT_VERSION, "{count} records");
        // From now on a damaged last frame is told from an end.
        let (log, _) = open(&disk, 8192).unwrap();
        let start = log.append_commit(b"more", |_| {}).unwrap().start;
        log.flush().unwrap();
        assert_eq!(doubt(&disk), None);
        let (reader, _) = read(&disk, 8192, Lsn(0), Lsn(0)).unwrap();
        assert!(reader.end_lsn() > start);
        let name = format!("redo/{:04}.redo", start.0 / 8192);
        disk.open(&name, false).unwrap().write_all_at(b"?", start.0 % 8192).unwrap();
        assert_eq!(doubt(&disk).unwrap().path, name, "{count} records");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// One flipped bit in the last frame or in the end mark is always noticed.
    #[test]
    fn damage_at_the_end_is_doubtful(
        lengths in proptest::collection::vec(0usize..3000, 1..12),
        hit in any::<proptest::sample::Index>(), bit in 0..8,
    ) {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        let last = *frames(&disk, &lengths).last().unwrap();
        let end = read(&disk, 8192, Lsn(0), Lsn(0)).unwrap().0.end_lsn().0;
        let full = end.is_multiple_of(8192) || 8192 - end % 8192 < 64;
        let first = if last / 8192 < (end - 1) / 8192 { (end - 1) / 8192 * 8192 + FIRST_FRAME } else { last };
        let behind = if full { end } else { end.next_multiple_of(8) + 16 };
        let position = first + hit.index((behind - first) as usize) as u64;
        // Padding between the frame and the end mark means nothing.
        prop_assume!(!(end..end.next_multiple_of(8)).contains(&position));
        let name = format!("redo/{:04}.redo", position / 8192);
        let file = disk.open(&name, false).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, position % 8192).unwrap();
        file.write_all_at(&[byte[0] ^ (1u8 << bit)], position % 8192).unwrap();
        let (reader, records) = read(&disk, 8192, Lsn(0), Lsn(0)).unwrap();
        let found = reader.doubtful_end().expect("noticed");
        prop_assert_eq!(&found.path, &name);
        prop_assert_eq!(records.len() == lengths.len(), position >= end);
        prop_assert_eq!(found.position.0, if position >= end { end.next_multiple_of(8) } else { first });
        drop(reader.into_log(Timestamp::ZERO).unwrap());
        prop_assert_eq!(doubt(&disk), None);
    }

    /// A torn last frame is doubtful if any of its header was written; else the older end mark stands, and it is right.
    #[test]
    fn torn_frames_are_doubtful(before in proptest::collection::vec(0usize..600, 1..4), torn in 0usize..2000, lost in any::<u8>()) {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        frames(&disk, &before);
        let old = contents(&disk, "0000.redo");
        let (log, expected) = open(&disk, 8192).unwrap();
        let start = log.end_lsn().0.next_multiple_of(8);
        log.append_commit(&body(99, torn), |_| {}).unwrap();
        log.flush().unwrap();
        drop(log);
        let new = contents(&disk, "0000.redo");
        let file = disk.open("redo/0000.redo", false).unwrap();
        let changed: Vec<usize> = (8..8192 / 512).filter(|i| old[i * 512..][..512] != new[i * 512..][..512]).collect();
        for (k, i) in changed.iter().enumerate() {
            if lost & (1 << (k % 8)) != 0 {
                file.write_all_at(&old[i * 512..][..512], *i as u64 * 512).unwrap();
            }
        }
        let (reader, records) = read(&disk, 8192, Lsn(0), Lsn(0)).unwrap();
        let header = start as usize..start as usize + 16;
        let untouched = contents(&disk, "0000.redo")[header.clone()] == old[header];
        let whole = records.len() == expected.len() + 1;
        prop_assert!(whole || records == expected);
        if !whole {
            prop_assert_eq!(reader.doubtful_end().is_none(), untouched);
        }
        drop(reader.into_log(Timestamp::ZERO).unwrap());
        prop_assert_eq!(doubt(&disk), None);
        prop_assert_eq!(open(&disk, 8192).unwrap().1, records);
    }
}
