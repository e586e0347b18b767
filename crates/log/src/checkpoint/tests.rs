use super::*;
use crate::header::{DatabaseId, FORMAT_VERSION};
use crate::memory_disk::MemoryDisk;
use crate::superblock::Superblocks;
use rauk_types::{TableId, Timestamp};

type Row = (u32, u16, u64, Vec<u8>);

const ID: DatabaseId = DatabaseId([3; 16]);

fn write(disk: &Arc<dyn Disk>, number: u64, partition: u16, rows: &[Row]) -> RowsFile {
    let mut writer = CheckpointWriter::create(disk, ID, number, partition).unwrap();
    for (table, layout, time, row) in rows {
        writer.put(TableId(*table), *layout, Timestamp(*time), row).unwrap();
    }
    assert_eq!(writer.rows(), rows.len() as u64);
    writer.finish().unwrap()
}

fn read(disk: &Arc<dyn Disk>, number: u64, partition: u16) -> Result<Vec<Row>, LogError> {
    let manifest = Manifest { checkpoint: number, ..Manifest::new(ID, 4, "fsync") };
    read_as(disk, &manifest, partition)
}

fn read_as(disk: &Arc<dyn Disk>, manifest: &Manifest, partition: u16) -> Result<Vec<Row>, LogError> {
    let mut reader = CheckpointReader::open(disk, manifest, partition)?;
    let mut rows = Vec::new();
    while let Some(row) = reader.next()? {
        rows.push((row.table.0, row.layout, row.time.0, row.row.to_vec()));
    }
    assert_eq!(reader.progress().0, reader.progress().1);
    Ok(rows)
}

fn sample(n: u32) -> Vec<Row> {
    (0..n).map(|i| (i % 7, (i % 3) as u16, u64::from(i) << 20, vec![i as u8; (i * 37 % 900) as usize])).collect()
}

#[test]
fn rows_come_back() {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let mut rows = sample(3000);
    rows.insert(1000, (9, 1, 5, vec![1; 3 << 20]));
    let bytes = write(&disk, 4, 2, &rows).bytes;
    assert_eq!(bytes, disk.open(&rows_path(4, 2), false).unwrap().len().unwrap());
    assert_eq!(read(&disk, 4, 2).unwrap(), rows);
    write(&disk, 4, 3, &[]);
    assert_eq!(read(&disk, 4, 3).unwrap(), []);
}

#[test]
fn every_flipped_bit_and_every_cut_is_found() {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let rows = sample(12);
    let bytes = write(&disk, 1, 0, &rows).bytes;
    let file = disk.open(&rows_path(1, 0), false).unwrap();
    for at in 0..bytes {
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        for bit in 0..8 {
            file.write_all_at(&[byte[0] ^ (1u8 << bit)], at).unwrap();
            // Four bytes of a block's header are unused and not covered.
            if let Ok(found) = read(&disk, 1, 0) {
                assert_eq!(found, rows, "bit {bit} of byte {at}");
            }
        }
        file.write_all_at(&byte, at).unwrap();
    }
    for cut in 0..bytes {
        let mut start = vec![0; cut as usize];
        file.read_exact_at(&mut start, 0).unwrap();
        let part = disk.open(&rows_path(2, 0), true).unwrap();
        part.set_len(0).unwrap();
        part.write_all_at(&start, 0).unwrap();
        let message = read(&disk, 2, 0).unwrap_err().to_string();
        assert!(message.contains("0000000002-p0000.rows"), "{message}");
    }
}

#[test]
fn a_block_of_another_checkpoint_does_not_pass() {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    write(&disk, 1, 0, &sample(10));
    write(&disk, 2, 0, &sample(10));
    let (one, two) = (disk.open(&rows_path(1, 0), false).unwrap(), disk.open(&rows_path(2, 0), false).unwrap());
    let mut bytes = vec![0; one.len().unwrap() as usize - 64];
    one.read_exact_at(&mut bytes, 64).unwrap();
    two.write_all_at(&bytes, 64).unwrap();
    assert!(matches!(read(&disk, 2, 0).unwrap_err(), LogError::Damaged { offset: 64, .. }));
}

#[test]
fn a_file_of_an_unfinished_attempt_does_not_pass() {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let rows = |byte| vec![(1, 1, 5, vec![byte; 100])];
    write(&disk, 1, 0, &rows(1));
    let file = disk.open(&rows_path(1, 0), false).unwrap();
    let mut older = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut older, 0).unwrap();
    let files = vec![write(&disk, 1, 0, &rows(2))];
    let manifest = Manifest { checkpoint: 1, files, ..Manifest::new(ID, 1, "fsync") };
    assert_eq!(read_as(&disk, &manifest, 0).unwrap(), rows(2));
    file.write_all_at(&older, 0).unwrap();
    assert!(matches!(read_as(&disk, &manifest, 0).unwrap_err(), LogError::Outdated { .. }));
    file.write_all_at(&[0], older.len() as u64).unwrap();
    assert!(matches!(read_as(&disk, &manifest, 0).unwrap_err(), LogError::Damaged { .. }));
    disk.remove(&rows_path(1, 0)).unwrap();
    assert!(matches!(read_as(&disk, &manifest, 0).unwrap_err(), LogError::Missing { .. }));
    // One of format version 1 names no files.
    write(&disk, 1, 0, &rows(3));
    assert_eq!(read_as(&disk, &Manifest { files: Vec::new(), ..manifest }, 0).unwrap(), rows(3));
}

#[test]
fn manifest_and_removal() {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let opened = || Superblocks::load(&disk).unwrap();
    let superblocks = opened();
    assert_eq!(Manifest::load(&superblocks).unwrap(), None);
    superblocks.begin(ID).unwrap();
    assert_eq!(remove_others(&disk, 0).unwrap(), 0);
    let mut manifest = Manifest::new(ID, 4, "fsync");
    manifest.store(&superblocks).unwrap();
    for number in 1..=3 {
        write(&disk, number, 0, &sample(3));
        write(&disk, number, 1, &sample(3));
    }
    manifest.checkpoint = 2;
    manifest.counters = vec![(TableId(5), 1000)];
    manifest.redo_start = crate::Lsn(u64::MAX / 3);
    manifest.store(&superblocks).unwrap();
    assert_eq!((Manifest::load(&opened()).unwrap(), manifest.generation), (Some(manifest.clone()), 2));
    assert_eq!(remove_others(&disk, 2).unwrap(), 4);
    assert_eq!(disk.list(DIRECTORY).unwrap(), ["0000000002-p0000.rows", "0000000002-p0001.rows", "manifest"]);
    let file = disk.open("checkpoint/manifest", false).unwrap();
    for at in 0..file.len().unwrap() {
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 4], at).unwrap();
        Manifest::load(&opened()).unwrap_err();
        file.write_all_at(&byte, at).unwrap();
    }
    let newer = FORMAT_VERSION + 1;
    file.write_all_at(&newer.to_le_bytes(), 8).unwrap();
    let refused = Manifest::load(&opened()).unwrap_err();
    assert!(matches!(refused, LogError::NewerVersion { found, known: FORMAT_VERSION, .. } if found == newer));
}
