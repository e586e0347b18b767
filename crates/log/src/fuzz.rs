//! The entry for fuzzing everything that reads bytes from a disk: called by the fuzz target, and by a bounded property test.
use crate::checkpoint::CheckpointReader;
use crate::disk::Disk;
use crate::header::{DatabaseId, FileHeader};
use crate::journal::Journal;
use crate::memory_disk::MemoryDisk;
use crate::redo::{Lsn, RedoOptions, RedoReader, take_piece};
use crate::superblock::Superblocks;
use crate::{Manifest, record};
use rauk_types::Timestamp;
use std::sync::Arc;

const ID: DatabaseId = DatabaseId([0; 16]);

/// Reads `data` as each kind of file, as whatever stands behind a good header, and as the contents that a checksum guards. Nothing may panic, hang or
/// take memory out of proportion; a log that could be read must go on and be readable again.
pub fn fuzz_read(data: &[u8]) {
    for change in record::changes(data) {
        let _ = change;
    }
    let mut at = 0;
    while let Some(piece) = take_piece(data, at) {
        at = piece.content.end;
    }
    for bare in [true, false] {
        redo(data, bare);
        let head =
            |kind, words| if bare { Vec::new() } else { FileHeader { kind, database: ID, words }.encode().to_vec() };
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        Superblocks::load(&disk).and_then(|s| s.begin(ID)).expect("a disk in memory");
        put(&disk, "checkpoint/0000000001-p0000.rows", &[&head(b"RAUKROWS", [1, 0, 0]), data]);
        let manifest = Manifest { checkpoint: 1, ..Manifest::new(ID, 1, "fsync") };
        if let Ok(mut reader) = CheckpointReader::open(&disk, &manifest, 0) {
            while let Ok(Some(_)) = reader.next() {}
        }
        let crc = crc32c::crc32c(data).into();
        put(&disk, "checkpoint/manifest", &[&head(b"RAUKMANI", [data.len() as u64, crc, 0]), data]);
        let superblocks: Arc<dyn Disk> = MemoryDisk::new();
        put(&superblocks, "superblock.0", &[&head(b"RAUKSUPR", [2, data.len() as u64, crc]), data]);
        let _ = Superblocks::load(&superblocks);
        if let Ok(superblocks) = Superblocks::load(&disk) {
            let _ = Manifest::load(&superblocks);
        }
        put(&disk, "journal", &[&head(b"RAUKJRNL", [0, 0, 0]), data]);
        if let Ok((mut journal, entries)) = Journal::open(&disk, "journal", ID) {
            journal.append(b"more").expect("an opened journal takes entries");
            drop(journal);
            let again = Journal::open(&disk, "journal", ID).expect("what was written is read").1;
            assert_eq!(again.len(), entries.len() + 1);
        }
    }
}

fn redo(data: &[u8], bare: bool) {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let superblocks = || Arc::new(Superblocks::load(&disk).expect("superblocks are read or not there"));
    // Begun before the segment is there: it lists nothing.
    superblocks().begin(ID).expect("a disk in memory");
    if bare {
        put(&disk, "redo/0000.redo", &[data]);
    } else {
        let size = (4096 + data.len() as u64).next_multiple_of(4096).max(8192);
        let header = FileHeader { kind: b"RAUKREDO", database: ID, words: [1, 0, size] }.encode();
        put(&disk, "redo/0000.redo", &[&header, &[0; 4096 - 64], data]);
        disk.open("redo/0000.redo", false).and_then(|f| f.allocate(size)).expect("a disk in memory");
    }
    let open = || RedoReader::open(&superblocks(), RedoOptions { segment_bytes: 8192, database: ID }, Lsn(0), Lsn(0));
    let count = |reader: &mut RedoReader| {
        let mut entries = 0;
        loop {
            match reader.next() {
                Ok(Some(_)) => entries += 1,
                Ok(None) => return Some(entries),
                Err(_) => return None,
            }
        }
    };
    let Ok(mut reader) = open() else { return };
    let Some(entries) = count(&mut reader) else { return };
    let log = reader.into_log(Timestamp::ZERO).expect("a log that was read goes on");
    log.append_commit(b"more", |_| {}).expect("it takes records");
    log.flush().expect("it writes them");
    drop(log);
    assert_eq!(open().ok().and_then(|mut r| count(&mut r)), Some(entries + 1));
}

fn put(disk: &Arc<dyn Disk>, path: &str, parts: &[&[u8]]) {
    let file = disk.open(path, true).expect("a disk in memory");
    file.set_len(0).and_then(|()| file.write_all_at(&parts.concat(), 0)).expect("a disk in memory");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn garbage(data in proptest::collection::vec(any::<u8>(), 0..2000)) {
            fuzz_read(&data);
        }

        /// Real frames, damaged in some places.
        #[test]
        fn nearly_right(
            records in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 0..200), any::<bool>()), 1..20),
            hits in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..4),
        ) {
            let disk: Arc<dyn Disk> = MemoryDisk::new();
            let superblocks = Arc::new(Superblocks::load(&disk).unwrap());
            let mut reader = RedoReader::open(&superblocks, RedoOptions { segment_bytes: 1 << 20, database: ID }, Lsn(0), Lsn(0)).unwrap();
            while reader.next().unwrap().is_some() {}
            let log = reader.into_log(Timestamp::ZERO).unwrap();
            for (payload, flush) in &records {
                log.append_commit(payload, |_| {}).unwrap();
                if *flush {
                    log.flush().unwrap();
                }
            }
            log.flush().unwrap();
            let mut data = vec![0; log.end_lsn().0 as usize - 4096];
            disk.open("redo/0000.redo", false).unwrap().read_exact_at(&mut data, 4096).unwrap();
            for (at, with) in hits {
                let at = at.index(data.len());
                data[at] ^= with;
            }
            fuzz_read(&data);
        }
    }
}
