//! A second copy of the newest entry of Raft's log, and how far its files are synced: `manage/raft.claim.0` and `.1`.
//!
//! The last entry of a journal that cannot be read looks the same whether it was torn before it was synced or damaged after it was acknowledged. For Raft the difference counts: a voter that has
//! lost an entry or a vote without knowing it can help to commit something else in its place. So the newest entry is written twice, to the journal and to one of two slots in turn, and
//! both are synced, at the same time, before anybody hears of it. A slot says the sequence numbers that the files have reached: its *claim*.
//!
//! | found at the start | done |
//! |---|---|
//! | the journal ends one entry before the claim | the entry is taken from the slot, with a warning: it was torn or damaged in the journal |
//! | the journal ends earlier, is damaged before its end, or is missing | refused: the file, the place, the way out; nothing is changed, so that the file can be put back |
//! | the journal goes on behind the claim | a whole entry counts; a bad one was never acknowledged, and is cut with a warning |
//!
//! A snapshot is replaced as a whole and claimed afterwards; it is never torn, so one that cannot be read is refused.
//!
//! The valid slot with the higher generation counts. If one cannot be read the other is one entry older; what that lacks is noticed by the journal itself, unless both are damaged.
//! Directories of older versions (whose files have format version 1) have no slots; they get them when they are opened.

use rauk_log::{DatabaseId, Disk, DiskFile, Journal, JournalEntry, LogError, MemoryDisk};
use std::io;
use std::sync::Arc;

pub const PATHS: [&str; 2] = ["manage/raft.claim.0", "manage/raft.claim.1"];
const KIND: &[u8; 8] = b"RAUKCLM1";
const HEADER_BYTES: usize = 48;
/// Where a file's header has its format version, and the first version whose directories have a claim.
const VERSION_AT: u64 = 8;
const WITH_CLAIM: u32 = 2;

/// Sequence numbers of the last entries that are known to be synced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    pub log: u64,
    pub snapshot: u64,
}

pub struct Claims {
    disk: Arc<dyn Disk>,
    database: DatabaseId,
    generation: u64,
    claim: Claim,
    /// The entry of the log that the claim names, if the slot has it.
    entry: Option<Vec<u8>>,
    /// Empty: [`Claims::begin`] makes them.
    files: Vec<Arc<dyn DiskFile>>,
}

/// A slot: kind, generation, the claim, the entry's length plus one (0: none), checksum; the entry.
fn encode(database: DatabaseId, generation: u64, claim: Claim, entry: Option<&[u8]>) -> Vec<u8> {
    let mut bytes = KIND.to_vec();
    let length = entry.map_or(0, |entry| entry.len() as u64 + 1);
    for word in [generation, claim.log, claim.snapshot, length] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    let entry = entry.unwrap_or_default();
    let checksum = crc32c::crc32c_append(crc32c::crc32c_append(crc32c::crc32c(&database.0), &bytes), entry);
    bytes.extend_from_slice(&u64::from(checksum).to_le_bytes());
    bytes.extend_from_slice(entry);
    bytes
}

type Slot = (u64, Claim, Option<Vec<u8>>);

fn decode(database: DatabaseId, bytes: &[u8]) -> Option<Slot> {
    let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().expect("eight bytes")));
    let claim = Claim { log: word(16)?, snapshot: word(24)? };
    let entry = match word(32)? {
        0 => None,
        length => {
            let end = HEADER_BYTES.checked_add(usize::try_from(length - 1).ok()?)?;
            Some(bytes.get(HEADER_BYTES..end)?)
        }
    };
    let generation = word(8)?;
    bytes
        .starts_with(&encode(database, generation, claim, entry))
        .then(|| (generation, claim, entry.map(<[u8]>::to_vec)))
}

/// What helps when a node's files are not what they were.
fn refusal(file: &str, offset: u64, what: &str) -> LogError {
    let what = format!(
        "{what}; it holds this node's part of the control plane, and must not be used so: put the newest copy of the whole data directory back, or start with an empty directory and remove this node from the cluster (ALTER CLUSTER FORGET NODE)"
    );
    LogError::Damaged { file: file.to_string(), offset, what }
}

fn failed(error: io::Error) -> LogError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            LogError::DiskFull(format!("cannot write {}: {error}", PATHS[0]))
        }
        _ => LogError::Failed(format!("{}: {error}", PATHS[0])),
    }
}

fn read(disk: &Arc<dyn Disk>, path: &str) -> Result<Option<Vec<u8>>, LogError> {
    let error = |e| LogError::Io { file: path.into(), what: "cannot read", error: e };
    if !disk.exists(path).map_err(error)? {
        return Ok(None);
    }
    let file = disk.open(path, false).map_err(error)?;
    let mut bytes = vec![0; file.len().map_err(error)? as usize];
    file.read_exact_at(&mut bytes, 0).map_err(error)?;
    Ok(Some(bytes))
}

impl Claims {
    /// Reads the slots, and changes nothing. `journals`: the files that they are about.
    pub fn open(disk: &Arc<dyn Disk>, database: DatabaseId, journals: &[&str]) -> Result<Claims, LogError> {
        let slots = [read(disk, PATHS[0])?, read(disk, PATHS[1])?];
        let none = slots.iter().all(Option::is_none);
        let newest = slots.iter().flatten().filter_map(|bytes| decode(database, bytes)).max_by_key(|slot| slot.0);
        let (generation, claim, entry) = match newest {
            Some(slot) => slot,
            None => {
                for path in journals {
                    let version = read(disk, path)?.and_then(|bytes| Some(*bytes.get(VERSION_AT as usize)?));
                    if version.is_some_and(|version| u32::from(version) >= WITH_CLAIM) {
                        let what = if none { "it is missing" } else { "neither it nor its other copy can be read" };
                        return Err(refusal(PATHS[0], 0, &format!("{what}, and {path} is there")));
                    }
                }
                Default::default()
            }
        };
        Ok(Claims { disk: disk.clone(), database, generation, claim, entry, files: Vec::new() })
    }

    /// Makes what is not there: before the files that it is about, which must not be without it.
    pub fn begin(&mut self) -> Result<(), LogError> {
        let open = || {
            // A machine that loses power must not lose the directory with all that was acknowledged in it.
            self.disk.create_dir_all("manage")?;
            self.disk.sync_dir("")?;
            let files: io::Result<Vec<_>> = PATHS.iter().map(|path| self.disk.open(path, true)).collect();
            self.disk.sync_dir("manage")?;
            files
        };
        self.files = open().map_err(failed)?;
        if self.generation > 0 {
            // What was read may never have been synced: its process ended before, or the sync failed. The other slot stays until this one is.
            let bytes = encode(self.database, self.generation, self.claim, self.entry.as_deref());
            let file = &self.files[(self.generation % 2) as usize];
            file.write_all_at(&bytes, 0).and_then(|()| file.sync_data()).map_err(failed)?;
        }
        // Both parts, so that each is there.
        while self.generation < 2 {
            self.write(self.claim, None)?;
        }
        Ok(())
    }

    pub fn get(&self) -> Claim {
        self.claim
    }

    /// The files are synced so far. On disk when it returns.
    pub fn set(&mut self, claim: Claim) -> Result<(), LogError> {
        if claim == self.claim { Ok(()) } else { self.write(claim, None) }
    }

    fn write(&mut self, claim: Claim, entry: Option<&[u8]>) -> Result<(), LogError> {
        let bytes = encode(self.database, self.generation + 1, claim, entry);
        let file = &self.files[((self.generation + 1) % 2) as usize];
        let write = || {
            // Room first: then the write itself does not fail for lack of it.
            file.allocate(bytes.len() as u64)?;
            file.write_all_at(&bytes, 0)?;
            file.sync_data()
        };
        write().map_err(failed)?;
        (self.generation, self.claim, self.entry) = (self.generation + 1, claim, None);
        Ok(())
    }

    /// Appends to the log, and keeps a second copy of the entry; both are on disk when it returns.
    pub fn append(&mut self, journal: &mut Journal, content: &[u8]) -> Result<(), LogError> {
        let claim = Claim { log: journal.sequence() + 1, ..self.claim };
        let (mut appended, mut copied) = (Ok(0), Ok(()));
        let disk = self.disk.clone();
        disk.together(
            Box::new(|| appended = journal.append(content)),
            Box::new(|| copied = self.write(claim, Some(content))),
        );
        appended?;
        copied
    }

    /// As if nothing were claimed and there were no copy: what the simulator must find.
    pub fn ignore(&mut self) {
        (self.claim, self.entry) = (Claim::default(), None);
    }

    /// Opens the log as far as it is claimed.
    pub fn open_log(&self, path: &str) -> Result<(Journal, Vec<JournalEntry>), LogError> {
        self.open_journal(path, self.claim.log, false)
    }

    pub fn open_snapshot(&self, path: &str) -> Result<(Journal, Vec<JournalEntry>), LogError> {
        self.open_journal(path, self.claim.snapshot, true)
    }

    /// What a start finds in the snapshot's file. Changes nothing.
    pub fn read_snapshot(&self, path: &str) -> Result<Vec<JournalEntry>, LogError> {
        let read = self.read_journal(path, self.claim.snapshot, true)?;
        Ok(read.map_or_else(Vec::new, |read| read.entries))
    }

    /// Reads a journal and compares it with its claim. `None`: it is not there, and need not be.
    fn read_journal(&self, path: &str, claimed: u64, is_snapshot: bool) -> Result<Option<Read<'_>>, LogError> {
        let copy: Arc<dyn Disk> = MemoryDisk::new();
        let Some(bytes) = read(&self.disk, path)? else {
            // Nobody has heard of the first entry before the file was synced.
            if claimed > 0 {
                return Err(refusal(path, 0, &format!("the file is missing, and had entries up to {claimed}")));
            }
            return Ok(None);
        };
        // Opening cuts a bad end, so it is tried with a copy first.
        let error = |e| LogError::Io { file: path.into(), what: "cannot read", error: e };
        let place = copy.create_dir_all("manage").and_then(|()| copy.open(path, true));
        place.and_then(|file| file.write_all_at(&bytes, 0)).map_err(error)?;
        let (journal, entries) = Journal::open(&copy, path, self.database).map_err(|error| match error {
            LogError::Damaged { file, offset, what } => refusal(&file, offset, &what),
            other => other,
        })?;
        let (sequence, end) = (journal.sequence(), journal.bytes());
        let lacks_all = is_snapshot && entries.is_empty() && sequence > 0;
        let claimed = if lacks_all { claimed.max(sequence + 1) } else { claimed };
        let copied = self.entry.as_ref().filter(|_| !is_snapshot && sequence + 1 == claimed);
        if sequence < claimed && copied.is_none() {
            let what = format!(
                "entry {} cannot be read or is missing, and this node has acknowledged entries up to {claimed}",
                sequence + 1
            );
            return Err(refusal(path, end, &what));
        }
        Ok(Some(Read { entries, end, length: bytes.len() as u64, copied }))
    }

    fn open_journal(
        &self,
        path: &str,
        claimed: u64,
        is_snapshot: bool,
    ) -> Result<(Journal, Vec<JournalEntry>), LogError> {
        let read = self.read_journal(path, claimed, is_snapshot)?;
        let (mut journal, mut entries) = Journal::open(&self.disk, path, self.database)?;
        match read {
            Some(Read { copied: Some(content), end, .. }) => {
                tracing::warn!(
                    "{path}: its last entry (byte {end}) was torn or damaged, and is restored from its copy"
                );
                let sequence = journal.append(content)?;
                entries.push(JournalEntry { sequence, content: content.clone() });
            }
            Some(Read { end, length, .. }) if end < length => {
                tracing::warn!("{path} is cut at byte {end}: what begins there was torn before it was acknowledged");
            }
            _ => {}
        }
        Ok((journal, entries))
    }
}

/// A journal that was read and not changed.
struct Read<'a> {
    entries: Vec<JournalEntry>,
    /// Bytes of whole entries and what comes before.
    end: u64,
    length: u64,
    /// The claimed entry that it lacks, from its copy.
    copied: Option<&'a Vec<u8>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: DatabaseId = DatabaseId([9; 16]);
    const LOG: &str = "manage/raft.journal";

    fn open(disk: &Arc<dyn Disk>) -> Result<Claims, LogError> {
        let mut claims = Claims::open(disk, ID, &[LOG])?;
        claims.begin()?;
        Ok(claims)
    }

    fn content(number: u64) -> Vec<u8> {
        vec![number as u8; 30]
    }

    /// A journal of so many entries; where the last one begins.
    fn written(disk: &Arc<dyn Disk>, entries: u64) -> usize {
        let mut claims = open(disk).unwrap();
        let (mut journal, _) = claims.open_log(LOG).unwrap();
        let mut last = 0;
        for number in 1..=entries {
            last = journal.bytes() as usize;
            claims.append(&mut journal, &content(number)).unwrap();
        }
        last
    }

    fn bytes(disk: &Arc<dyn Disk>, path: &str) -> Vec<u8> {
        read(disk, path).unwrap().unwrap()
    }

    fn put(disk: &Arc<dyn Disk>, path: &str, bytes: &[u8]) {
        let file = disk.open(path, true).unwrap();
        file.set_len(bytes.len() as u64).unwrap();
        file.write_all_at(bytes, 0).unwrap();
    }

    /// What is there, on a copy of the disk's files.
    fn again(disk: &Arc<dyn Disk>, journal: Option<&[u8]>) -> Result<Vec<Vec<u8>>, String> {
        let copy: Arc<dyn Disk> = MemoryDisk::new();
        for path in PATHS {
            put(&copy, path, &bytes(disk, path));
        }
        if let Some(bytes) = journal {
            put(&copy, LOG, bytes);
        }
        let claims = open(&copy).map_err(|e| e.to_string())?;
        let opened = claims.open_log(LOG).map_err(|e| e.to_string());
        match &opened {
            Err(_) => assert_eq!(read(&copy, LOG).unwrap().as_deref(), journal, "nothing is changed"),
            Ok((_, entries)) => {
                let next = open(&copy).unwrap().open_log(LOG).unwrap().1;
                assert_eq!(&next, entries, "the same the next time");
            }
        }
        Ok(opened?.1.into_iter().map(|entry| entry.content).collect())
    }

    /// Whatever is cut off or flipped: all entries are there, or the start is refused with the place.
    #[test]
    fn what_was_acknowledged_is_there_or_refused() {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        let last = written(&disk, 3);
        let whole = bytes(&disk, LOG);
        let all: Vec<Vec<u8>> = (1..=3).map(content).collect();
        assert_eq!(again(&disk, Some(&whole)), Ok(all.clone()));
        let check = |changed: &[u8], healed: bool, what: &str| match again(&disk, Some(changed)) {
            Ok(entries) => assert!(healed && entries == all, "{what}"),
            Err(why) => assert!(!healed && why.contains(LOG), "{what}: {why}"),
        };
        for cut in 0..whole.len() {
            check(&whole[..cut], cut >= last, &format!("cut at {cut}"));
        }
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 8;
            check(&flipped, at >= last, &format!("byte {at}"));
        }
        let why = again(&disk, None).unwrap_err();
        assert!(why.contains("missing"), "{why}");
    }

    #[test]
    fn what_nobody_has_heard_of_is_cut() {
        let (disk, other): (Arc<dyn Disk>, Arc<dyn Disk>) = (MemoryDisk::new(), MemoryDisk::new());
        written(&disk, 2);
        written(&other, 3);
        let longer = bytes(&other, LOG);
        for cut in bytes(&disk, LOG).len()..longer.len() {
            assert_eq!(again(&disk, Some(&longer[..cut])), Ok(vec![content(1), content(2)]), "cut at {cut}");
        }
        assert_eq!(again(&disk, Some(&longer)).unwrap().len(), 3, "whole, though nobody has heard of it");
    }

    /// One slot that cannot be read leaves the other; without both nothing is known.
    #[test]
    fn the_slots_themselves() {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        written(&disk, 5);
        let journal = bytes(&disk, LOG);
        for path in PATHS {
            let whole = bytes(&disk, path);
            for at in 0..whole.len() {
                let mut damaged = whole.clone();
                damaged[at] ^= 1;
                put(&disk, path, &damaged);
                assert_eq!(again(&disk, Some(&journal)).map(|entries| entries.len()), Ok(5), "{path}, byte {at}");
            }
            put(&disk, path, &whole);
        }
        for path in PATHS {
            put(&disk, path, &[]);
        }
        assert!(again(&disk, Some(&journal)).unwrap_err().contains(PATHS[0]));
        // A journal of an older version has none.
        let mut old = journal;
        old[VERSION_AT as usize] = 1;
        put(&disk, LOG, &old);
        assert!(Claims::open(&disk, ID, &[LOG]).is_ok());
    }

    /// A file that is only ever replaced is never torn.
    #[test]
    fn a_snapshot_that_cannot_be_read_is_refused() {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        let claims = open(&disk).unwrap();
        let (mut journal, _) = claims.open_snapshot(LOG).unwrap();
        journal.compact(&[content(1)]).unwrap();
        journal.compact(&[content(2)]).unwrap();
        drop(journal);
        assert!(claims.open_snapshot(LOG).is_ok());
        let whole = bytes(&disk, LOG);
        put(&disk, LOG, &whole[..whole.len() - 1]);
        assert!(claims.open_snapshot(LOG).is_err(), "although it was not claimed");
        // As a log too: a file that was made smaller says how much it has.
        assert!(claims.open_log(LOG).is_err());
        put(&disk, LOG, &whole);
        assert!(claims.open_log(LOG).is_ok());
    }
}
