//! A journal: a small append-only file of commands, each durable when its append returns. The catalog lives in one.
//!
//! The common file header, then entries: `length: u32, crc32c: u32, sequence: u64` and the content, seeded with the database and covering the entry's offset. One entry at
//! most was written without being synced, so as in the redo log a valid entry behind an invalid one proves damage, and an invalid one at the end is a torn append that is cut off.
//! Compacting writes a new file with other contents and renames it over the old one; its header says how many entries it was made with, since such a file is never torn.
//!
//! **Claims.** A journal whose directory has superblocks ([`Journal::read`]) claims the sequence number of its last entry there before an append returns. Appends are rare, so the second
//! sync is no matter, and damage of an entry that was acknowledged is never taken for a torn append: what is claimed must be there. So must the file itself, once it has been made.
use crate::disk::{Disk, DiskFile, parent};
use crate::error::{LogError, is_disk_full};
use crate::fault;
use crate::header::{DatabaseId, FileHeader, HEADER_BYTES, array, replace_file};
use crate::superblock::Superblocks;
use std::ops::Range;
use std::sync::Arc;

const KIND: &[u8; 8] = b"RAUKJRNL";
const ENTRY_HEADER: usize = 16;
pub const MAX_ENTRY_BYTES: usize = 256 << 20;

pub struct Journal {
    disk: Arc<dyn Disk>,
    path: String,
    database: DatabaseId,
    /// Where its last entry is claimed, if anywhere.
    superblocks: Option<Arc<Superblocks>>,
    /// `None`: it is not there yet.
    file: Option<Arc<dyn DiskFile>>,
    /// Bytes of whole entries and what comes before.
    end: u64,
    /// Sequence number of the last entry.
    sequence: u64,
    /// What [`Journal::settle`] has to do before it takes entries.
    unsettled: Option<Unsettled>,
    /// A write or sync failed: what is on disk is unknown until the next opening.
    failed: Option<String>,
}

/// A journal that was read and not changed.
#[derive(Default)]
struct Unsettled {
    /// The last entry and where it lies: it may be whole without ever having been synced (see `redo/reader.rs`).
    last: Option<(Range<usize>, Vec<u8>)>,
    /// Bytes of a torn append behind it.
    torn: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalEntry {
    /// Grows by one from entry to entry, and goes on growing after `compact`.
    pub sequence: u64,
    pub content: Vec<u8>,
}

fn encode(out: &mut Vec<u8>, seed: u32, offset: u64, sequence: u64, content: &[u8]) {
    let crc = checksum(seed, offset, sequence, content);
    out.extend_from_slice(&(content.len() as u32).to_le_bytes());
    out.extend_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(&sequence.to_le_bytes());
    out.extend_from_slice(content);
}

fn checksum(seed: u32, offset: u64, sequence: u64, content: &[u8]) -> u32 {
    let seed = crc32c::crc32c_append(seed, &offset.to_le_bytes());
    let seed = crc32c::crc32c_append(seed, &(content.len() as u32).to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c_append(seed, &sequence.to_le_bytes()), content)
}

/// The entry at `at`, if these bytes are one: its sequence number and where its content ends.
fn decode(bytes: &[u8], seed: u32, at: usize) -> Option<(u64, usize)> {
    let header = bytes.get(at..at.checked_add(ENTRY_HEADER)?)?;
    let end = (at + ENTRY_HEADER).checked_add(u32::from_le_bytes(array(header, 0)) as usize)?;
    let content = bytes.get(at + ENTRY_HEADER..end)?;
    let sequence = u64::from_le_bytes(array(header, 8));
    (u32::from_le_bytes(array(header, 4)) == checksum(seed, at as u64, sequence, content)).then_some((sequence, end))
}

impl Journal {
    /// Opens a journal that claims nothing, making it when it is not there, and gives all its entries.
    pub fn open(
        disk: &Arc<dyn Disk>,
        path: &str,
        database: DatabaseId,
    ) -> Result<(Journal, Vec<JournalEntry>), LogError> {
        let (mut journal, entries) = Journal::load(disk, path, database, None)?;
        journal.settle()?;
        Ok((journal, entries))
    }

    /// Gives all entries of a journal that claims what it has, and changes nothing. It takes entries after [`Journal::settle`].
    pub fn read(
        superblocks: &Arc<Superblocks>,
        path: &str,
        database: DatabaseId,
    ) -> Result<(Journal, Vec<JournalEntry>), LogError> {
        Journal::load(superblocks.disk(), path, database, Some(superblocks))
    }

    fn load(
        disk: &Arc<dyn Disk>,
        path: &str,
        database: DatabaseId,
        superblocks: Option<&Arc<Superblocks>>,
    ) -> Result<(Journal, Vec<JournalEntry>), LogError> {
        let error = |e| LogError::io(path, "cannot open", e);
        let claimed = superblocks.and_then(|superblocks| superblocks.claims().journals.get(path).copied());
        let mut journal = Journal {
            disk: disk.clone(),
            path: path.to_string(),
            database,
            superblocks: superblocks.cloned(),
            file: None,
            end: 0,
            sequence: 0,
            unsettled: Some(Unsettled::default()),
            failed: None,
        };
        if !disk.exists(path).map_err(error)? {
            return match claimed {
                Some(claimed) => Err(LogError::missing(path, format!("it was there, with entries up to {claimed}"))),
                None => Ok((journal, Vec::new())),
            };
        }
        // The file may have replaced another without its directory having been synced.
        disk.sync_dir(parent(path)).map_err(error)?;
        let file = disk.open(path, false).map_err(error)?;
        let mut bytes = vec![0; file.len().map_err(error)? as usize];
        file.read_exact_at(&mut bytes, 0).map_err(error)?;
        let Some(head) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(LogError::damaged(path, bytes.len() as u64, "the file is shorter than its header"));
        };
        let [mut sequence, compacted, _] = FileHeader::decode(path, head, KIND, Some(database))?.words;
        let seed = database.seed();
        let mut entries = Vec::new();
        let mut at = HEADER_BYTES;
        let mut last = None;
        while let Some((found, end)) = decode(&bytes, seed, at) {
            if found != sequence + 1 {
                let what = format!("entry {found} follows entry {sequence}");
                return Err(LogError::damaged(path, at as u64, what));
            }
            sequence = found;
            entries.push(JournalEntry { sequence, content: bytes[at + ENTRY_HEADER..end].to_vec() });
            last = Some(at..end);
            at = end;
        }
        if let Some(later) = (at + 1..bytes.len()).find(|&later| plausible(&bytes, seed, later, sequence)) {
            let what = format!("the entry that begins here is invalid, but the journal goes on at byte {later}");
            return Err(LogError::damaged(path, at as u64, what));
        }
        if sequence < compacted {
            // A file that replaces another one is never torn: these are not claimed yet if the process ended before.
            let what =
                format!("its last whole entry has number {sequence}, and it was made with entries up to {compacted}");
            return Err(LogError::damaged(path, at as u64, what));
        }
        if let Some(claimed) = claimed.filter(|claimed| sequence < *claimed) {
            let what = format!("its last whole entry has number {sequence}, and it had entries up to {claimed}");
            return Err(match at < bytes.len() {
                true => LogError::damaged(path, at as u64, what),
                false => LogError::outdated(path, what),
            });
        }
        let last = last.map(|range: Range<usize>| (range.clone(), bytes[range].to_vec()));
        journal.unsettled = Some(Unsettled { last, torn: (bytes.len() - at) as u64 });
        (journal.file, journal.end, journal.sequence) = (Some(file), at as u64, sequence);
        Ok((journal, entries))
    }

    /// Takes a journal out of the directory, durably. Does nothing where there is none.
    pub fn remove(superblocks: &Superblocks, path: &str) -> Result<(), LogError> {
        let error = |e| LogError::io(path, "cannot remove", e);
        if superblocks.known().journals.contains_key(path) {
            superblocks.update_both(|claims| {
                claims.journals.remove(path);
            })?;
        }
        let disk = superblocks.disk();
        if disk.exists(path).map_err(error)? {
            disk.remove(path).and_then(|()| disk.sync_dir(parent(path))).map_err(error)?;
        }
        Ok(())
    }

    /// Makes the journal if it is not there, else cuts a torn append and makes the last entry durable. To be called once, before it takes entries.
    pub fn settle(&mut self) -> Result<(), LogError> {
        let Unsettled { last, torn } = self.unsettled.take().expect("a journal is settled once");
        let Journal { disk, path, .. } = self;
        let error = |e| LogError::io(path, "cannot open", e);
        if let Some(superblocks) = &self.superblocks {
            superblocks.begin(self.database)?;
            superblocks.reserve()?;
        }
        match &self.file {
            None => {
                replace_file(disk, path, &file_header(self.database, 0, 0))?;
                self.file = Some(disk.open(path, false).map_err(error)?);
                self.end = HEADER_BYTES as u64;
            }
            Some(file) => {
                let repair = || {
                    fault::point("journal.open.before_cut")?;
                    if torn > 0 {
                        tracing::warn!(
                            file = path,
                            offset = self.end,
                            bytes = torn,
                            "journal cut: its last entry is torn and was never acknowledged"
                        );
                        file.set_len(self.end)?;
                    }
                    if let Some((range, bytes)) = last {
                        file.write_all_at(&bytes, range.start as u64)?;
                        file.sync_data()?;
                    }
                    Ok(())
                };
                repair().map_err(error)?;
            }
        }
        self.claim()
    }

    /// Everything in the journal is synced.
    fn claim(&mut self) -> Result<(), LogError> {
        let Some(superblocks) = &self.superblocks else { return Ok(()) };
        let claimed = superblocks.claim_written(|claims| {
            claims.journals.insert(self.path.clone(), self.sequence);
        });
        claimed.inspect_err(|error| self.failed = Some(error.to_string()))
    }

    /// Sequence number of the last entry.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    pub fn bytes(&self) -> u64 {
        self.end
    }

    /// Adds an entry; it is durable when this returns, with its sequence number. After `DiskFull` nothing was added and the journal can be used further; any other error is final:
    /// whether the entry is there is decided when the journal is opened again.
    pub fn append(&mut self, content: &[u8]) -> Result<u64, LogError> {
        let file = self.usable()?;
        if content.len() > MAX_ENTRY_BYTES {
            return Err(LogError::RecordTooLarge { bytes: content.len(), limit: MAX_ENTRY_BYTES });
        }
        let sequence = self.sequence + 1;
        let mut bytes = Vec::with_capacity(ENTRY_HEADER + content.len());
        encode(&mut bytes, self.database.seed(), self.end, sequence, content);
        let end = self.end + bytes.len() as u64;
        self.superblocks.as_ref().map_or(Ok(()), |superblocks| superblocks.reserve())?;
        let write = || {
            fault::point("journal.append.before_write")?;
            // Room first: then the write itself does not fail for lack of it, half done.
            file.allocate(end)?;
            file.write_all_at(&bytes, self.end)
        };
        if let Err(e) = write() {
            if is_disk_full(&e) {
                return Err(LogError::DiskFull(format!("cannot append to {}: {e}", self.path)));
            }
            return Err(self.fail(e));
        }
        let sync = || {
            fault::point("journal.append.before_sync")?;
            file.sync_data()?;
            fault::point("journal.append.after_sync")
        };
        sync().map_err(|e| self.fail(e))?;
        self.end = end;
        self.sequence = sequence;
        self.claim()?;
        Ok(sequence)
    }

    /// Replaces all entries by these, atomically. Sequence numbers go on. An entry that is too large changes nothing.
    pub fn compact(&mut self, contents: &[Vec<u8>]) -> Result<(), LogError> {
        self.usable()?;
        if let Some(content) = contents.iter().find(|content| content.len() > MAX_ENTRY_BYTES) {
            return Err(LogError::RecordTooLarge { bytes: content.len(), limit: MAX_ENTRY_BYTES });
        }
        let mut sequence = self.sequence;
        let mut bytes = file_header(self.database, sequence, sequence + contents.len() as u64).to_vec();
        for content in contents {
            sequence += 1;
            let offset = bytes.len() as u64;
            encode(&mut bytes, self.database.seed(), offset, sequence, content);
        }
        let before = |e| LogError::io(&self.path, "cannot compact", e);
        fault::point("journal.compact.before").map_err(before)?;
        self.superblocks.as_ref().map_or(Ok(()), |superblocks| superblocks.reserve())?;
        match replace_file(&self.disk, &self.path, &bytes) {
            Ok(()) => {}
            // The old file may or may not have been replaced; only a full disk says that it was not.
            Err(LogError::DiskFull(why)) => return Err(LogError::DiskFull(why)),
            Err(error) => {
                self.failed = Some(error.to_string());
                return Err(error);
            }
        }
        self.file = Some(self.disk.open(&self.path, false).map_err(|e| self.fail(e))?);
        self.end = bytes.len() as u64;
        self.sequence = sequence;
        self.claim()
    }

    fn usable(&self) -> Result<Arc<dyn DiskFile>, LogError> {
        match &self.failed {
            Some(why) => Err(LogError::Failed(why.clone())),
            None => Ok(self.file.clone().expect("a journal is settled before it takes entries")),
        }
    }

    fn fail(&mut self, error: std::io::Error) -> LogError {
        let why = format!("{}: {error}", self.path);
        self.failed = Some(why.clone());
        LogError::Failed(why)
    }
}

/// The entries behind have numbers above `sequence`; the file is made with those up to `last`.
fn file_header(database: DatabaseId, sequence: u64, last: u64) -> [u8; HEADER_BYTES] {
    FileHeader { kind: KIND, database, words: [sequence, last, 0] }.encode()
}

/// Whether a later entry begins at `at`. Looks at the sequence number first: checksums over every tail of the file would take forever.
fn plausible(bytes: &[u8], seed: u32, at: usize, last: u64) -> bool {
    let Some(header) = bytes.get(at..at + ENTRY_HEADER) else { return false };
    let sequence = u64::from_le_bytes(array(header, 8));
    let most = (bytes.len() / ENTRY_HEADER) as u64;
    sequence > last && sequence <= last + most && decode(bytes, seed, at).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_disk::MemoryDisk;
    use proptest::prelude::*;

    const ID: DatabaseId = DatabaseId([5; 16]);

    fn open(disk: &Arc<dyn Disk>) -> Result<(Journal, Vec<Vec<u8>>), LogError> {
        let (journal, entries) = Journal::open(disk, "catalog.journal", ID)?;
        Ok((journal, entries.into_iter().map(|e| e.content).collect()))
    }

    #[test]
    fn entries_survive_and_compact() {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        let (mut journal, entries) = open(&disk).unwrap();
        assert!(entries.is_empty());
        for i in 1..=5u8 {
            assert_eq!(journal.append(&[i; 20]).unwrap(), u64::from(i));
        }
        let (mut journal, entries) = open(&disk).unwrap();
        assert_eq!(entries, (1..=5).map(|i| vec![i; 20]).collect::<Vec<_>>());
        journal.compact(&[b"all".to_vec()]).unwrap();
        assert_eq!(journal.append(b"more").unwrap(), 7);
        let (mut journal, entries) = open(&disk).unwrap();
        assert_eq!(entries, [b"all".to_vec(), b"more".to_vec()]);
        journal.compact(&[]).unwrap();
        drop(journal);
        let (mut journal, entries) = open(&disk).unwrap();
        assert!(entries.is_empty());
        assert_eq!(journal.append(b"").unwrap(), 8);
        assert_eq!(open(&disk).unwrap().1, [b"".to_vec()]);
    }

    #[test]
    fn full_disk_leaves_it_usable_and_other_errors_do_not() {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        let (mut journal, _) = open(&disk).unwrap();
        journal.append(b"one").unwrap();
        let fail = |point: &'static str, kind| {
            fault::Local::new(move |name| if name == point { Err(std::io::Error::from(kind)) } else { Ok(()) })
        };
        let full = fail("journal.append.before_write", std::io::ErrorKind::StorageFull);
        assert!(matches!(journal.append(b"two"), Err(LogError::DiskFull(_))));
        drop(full);
        journal.append(b"two").unwrap();
        let broken = fail("journal.append.before_sync", std::io::ErrorKind::Other);
        assert!(matches!(journal.append(b"three"), Err(LogError::Failed(_))));
        drop(broken);
        assert!(matches!(journal.append(b"four"), Err(LogError::Failed(_))));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        /// Garbage in the last entry is a torn append; anywhere before, damage.
        #[test]
        fn torn_or_damaged(
            contents in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 1..8),
            hit in any::<proptest::sample::Index>(), bit in 0..8, cut in any::<bool>(),
        ) {
            let disk: Arc<dyn Disk> = MemoryDisk::new();
            let (mut journal, _) = open(&disk).unwrap();
            let mut last = 64;
            for content in &contents {
                last = journal.bytes();
                journal.append(content).unwrap();
            }
            let file = disk.open("catalog.journal", false).unwrap();
            let length = file.len().unwrap();
            if cut {
                let cut = last + hit.index((length - last) as usize) as u64;
                file.set_len(cut).unwrap();
                let (mut journal, entries) = open(&disk).unwrap();
                prop_assert_eq!(&entries, &contents[..contents.len() - 1]);
                journal.append(b"next").unwrap();
                prop_assert_eq!(open(&disk).unwrap().1.len(), contents.len());
            } else {
                let at = 64 + hit.index((length - 64) as usize) as u64;
                let mut byte = [0];
                file.read_exact_at(&mut byte, at).unwrap();
                file.write_all_at(&[byte[0] ^ (1u8 << bit)], at).unwrap();
                match open(&disk) {
                    Ok((_, entries)) => {
                        prop_assert!(at >= last);
                        prop_assert_eq!(&entries, &contents[..contents.len() - 1]);
                    }
                    Err(LogError::Damaged { offset, .. }) => prop_assert!(at < last && offset <= at),
                    Err(other) => prop_assert!(false, "{}", other),
                }
            }
        }
    }
}
