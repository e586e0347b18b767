//! The superblocks: which files a data directory has, and how far they are synced, recorded apart from the files.
//!
//! A file that is missing, or an older copy of itself, often looks whole: a journal that is not there is that of a
//! new database, a redo log without its last segment ends earlier, a last entry that was damaged looks like one that
//! was never finished. So what must be there is *claimed* elsewhere, and a start refuses a directory that has less,
//! with the file, the place and the way out.
//!
//! `superblock.0` and `superblock.1` are written in turn, each as a whole and in place: the common file header (its
//! words: generation, length and checksum of what follows) and a JSON object of [`Claims`]. The valid one with the
//! higher generation counts.
//!
//! | claim | made | checked by |
//! |---|---|---|
//! | the manifest's generation | when a manifest has been stored | [`Manifest::load`](crate::Manifest::load) |
//! | sequence number of a journal's last entry | before an append returns | [`Journal::read`](crate::Journal::read) |
//! | the redo log's segments | before a segment is used | [`RedoReader::open`](crate::RedoReader::open) |
//! | the redo log's synced end | by [`RedoLog::claim`](crate::RedoLog::claim): every 40 ms while the log moves, and at a stop | [`RedoReader`](crate::RedoReader) |
//!
//! **Rules.**
//! 1. Only synced bytes are claimed. So a claim never fails on a healthy disk, whatever a crash took.
//! 2. The redo log's claim lags. An exact one would cost every commit a second sync. What lies beyond the claim is
//!    judged by the log itself: a bad tail there is cut, and [`DoubtfulEnd`](crate::DoubtfulEnd) says so.
//! 3. A segment is listed durably before it is used. It is removed or used again when *both* superblocks omit it: one
//!    that cannot be read leaves the other, which must still be true. Manifests and journals are replaced by newer
//!    ones, which satisfy older claims.
//! 4. Reading changes nothing. A start first reads and checks everything; whatever it writes first, it writes a
//!    superblock before ([`Superblocks::begin`]). So after a refused start the missing file can be put back.
//! 5. A doubtful end of the redo log is recorded in both superblocks before it is cut, and until somebody has seen to
//!    it ([`Superblocks::clear_doubt`]). So is that a process was found to lack what it had acknowledged
//!    ([`Superblocks::note_doubt`]).
//!
//! **One superblock cannot be read.** The other counts, with a warning. It is the one before, or says the same:
//! whatever it claims was synced. A torn write of the newer one loses nothing but the newest part of the claim; so
//! does damage of it, and then a second damage, beyond the older claim, would be judged as a torn tail. When the log
//! rests, and at a stop, both claim all of it.
//!
//! **Neither can be read.** A directory without files of a database is a new one. One whose files all have format
//! version 1 was made before there were superblocks: it gets them when it has been read. Any other is refused.
//!
//! Left out: an older copy of a *whole* directory is consistent in itself. A cluster knows better; a standalone node
//! cannot.
use crate::disk::{Disk, DiskFile};
use crate::error::LogError;
use crate::fault;
use crate::header::{DatabaseId, FileHeader, HEADER_BYTES, array, version_of};
use crate::redo::Lsn;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

const KIND: &[u8; 8] = b"RAUKSUPR";
/// The two files; generation *n* is written to the one with index *n* modulo 2.
pub const PATHS: [&str; 2] = ["superblock.0", "superblock.1"];
/// The first format version whose directories have superblocks.
const VERSION_WITH_SUPERBLOCKS: u32 = 2;
/// A reservation leaves room for this much growth, so that a claim about what has just been written does not meet a
/// full disk.
const RESERVE: u64 = 2 << 10;
const BLOCK: u64 = 4 << 10;
/// Largest superblock that a reader believes in.
const MAX_BYTES: u64 = 64 << 20;

/// A segment of the redo log, as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentClaim {
    pub path: String,
    pub number: u64,
    pub base: u64,
    pub size: u64,
}

/// What must be there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Claims {
    /// The manifest's generation; 0: there was none.
    pub manifest: u64,
    /// Sequence number of each journal's last entry, by path.
    pub journals: BTreeMap<String, u64>,
    /// Segments of the redo log that may hold records, in order.
    pub segments: Vec<SegmentClaim>,
    /// The redo log is synced up to here.
    pub redo: Lsn,
    /// Why records that this process once acknowledged may be missing.
    pub doubt: Option<String>,
}

/// The superblocks of an open directory. All that writes files which they list has a handle.
pub struct Superblocks {
    disk: Arc<dyn Disk>,
    ignored: bool,
    state: Mutex<State>,
}

struct State {
    database: Option<DatabaseId>,
    /// Of the newest superblock on disk; 0: there is none.
    generation: u64,
    claims: Claims,
    slots: [Slot; 2],
    begun: bool,
    failed: Option<String>,
}

#[derive(Default)]
struct Slot {
    file: Option<Arc<dyn DiskFile>>,
    /// Room that the file has for certain.
    room: u64,
    /// What it claims, if it can be read.
    claims: Option<Claims>,
}

struct Read {
    database: DatabaseId,
    generation: u64,
    claims: Claims,
}

impl Superblocks {
    /// Reads the directory's superblocks and changes nothing.
    pub fn load(disk: &Arc<dyn Disk>) -> Result<Superblocks, LogError> {
        let mut slots: [Slot; 2] = Default::default();
        let mut newest: Option<Read> = None;
        let mut problems = Vec::new();
        for (index, path) in PATHS.into_iter().enumerate() {
            match read(disk, path, index) {
                Ok(Some(read)) => {
                    slots[index].claims = Some(read.claims.clone());
                    if let Some(other) = newest.as_ref().filter(|other| other.database != read.database) {
                        let (file, found) = (path.to_string(), read.database.to_string());
                        return Err(LogError::Foreign { file, found, expected: other.database.to_string() });
                    }
                    if newest.as_ref().is_none_or(|other| other.generation < read.generation) {
                        newest = Some(read);
                    }
                }
                Ok(None) => problems.push(missing(path)),
                Err(error @ LogError::Damaged { .. }) => problems.push(error),
                Err(error) => return Err(error),
            }
        }
        match (&newest, problems.into_iter().next()) {
            (Some(newest), Some(problem)) => {
                let generation = newest.generation;
                tracing::warn!(generation, "one superblock cannot be read, the other one counts: {problem}");
            }
            (None, Some(problem)) if !is_new_or_older(disk)? => return Err(problem),
            _ => {}
        }
        let (database, generation, claims) = match newest {
            Some(read) => (Some(read.database), read.generation, read.claims),
            None => (None, 0, Claims::default()),
        };
        let state = State { database, generation, claims, slots, begun: false, failed: None };
        Ok(Superblocks { disk: disk.clone(), ignored: false, state: Mutex::new(state) })
    }

    /// For tests: nothing is expected to be there. What this safeguard is for shows when it is off.
    pub fn ignoring_claims(mut self) -> Superblocks {
        self.ignored = true;
        self
    }

    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// The database that the directory belongs to; `None`: it has no superblocks, being new or of an older version.
    pub fn database(&self) -> Option<DatabaseId> {
        self.state.lock().database
    }

    /// What must be there.
    pub fn claims(&self) -> Claims {
        if self.ignored { Claims::default() } else { self.known() }
    }

    /// The first write of a start: everything that is claimed has been found, from now on the directory may change.
    /// Later calls do nothing.
    pub(crate) fn begin(&self, database: DatabaseId) -> Result<(), LogError> {
        let mut state = self.state.lock();
        assert!(state.database.is_none_or(|known| known == database), "a directory belongs to one database");
        state.database = Some(database);
        if std::mem::replace(&mut state.begun, true) {
            return Ok(());
        }
        self.write(&mut state)
    }

    /// Why records that this process once acknowledged may be missing: the [`DoubtfulEnd`](crate::DoubtfulEnd) at
    /// which the redo log was cut, at this start or an earlier one, or what [`Superblocks::note_doubt`] was told, unless it has been seen to since.
    pub fn doubt(&self) -> Option<String> {
        self.known().doubt
    }

    /// Something else has shown that such records are missing. Durable in both superblocks when it returns; an earlier
    /// reason stays.
    pub fn note_doubt(&self, why: String) -> Result<(), LogError> {
        self.update_both(|claims| claims.doubt = claims.doubt.take().or(Some(why)))
    }

    /// Nothing is missing any more, or nobody can do anything about it. Durable in both superblocks when it returns.
    pub fn clear_doubt(&self) -> Result<(), LogError> {
        if self.doubt().is_none() { Ok(()) } else { self.update_both(|claims| claims.doubt = None) }
    }

    /// What is on disk, or has been found there.
    pub(crate) fn known(&self) -> Claims {
        self.state.lock().claims.clone()
    }

    /// Makes sure that the next claims need no more room on disk; to be called before something is written that must
    /// be claimed. After `DiskFull` nothing has happened.
    pub(crate) fn reserve(&self) -> Result<(), LogError> {
        let mut state = self.state.lock();
        let wanted = encode(&state).len() as u64 + RESERVE;
        (0..PATHS.len()).try_for_each(|index| self.make_room(&mut state.slots[index], index, wanted))
    }

    /// Changes what is claimed; durable in one superblock when it returns. After `DiskFull` nothing has changed,
    /// other errors are final.
    pub(crate) fn update(&self, change: impl FnOnce(&mut Claims)) -> Result<(), LogError> {
        let mut state = self.state.lock();
        let before = state.claims.clone();
        change(&mut state.claims);
        self.write(&mut state).inspect_err(|_| state.claims = before)
    }

    /// Durable in both superblocks when it returns: what is claimed no more is not needed any more, whichever of them
    /// can be read.
    pub(crate) fn update_both(&self, change: impl FnOnce(&mut Claims)) -> Result<(), LogError> {
        self.update(change)?;
        self.update(|_| {})
    }

    /// Claims what has been written just now, for which [`Superblocks::reserve`] has made room.
    pub(crate) fn claim_written(&self, change: impl FnOnce(&mut Claims)) -> Result<(), LogError> {
        self.update(change).map_err(|error| match error {
            LogError::DiskFull(why) => self.fail(&mut self.state.lock(), why),
            error => error,
        })
    }

    /// Claims that the redo log is synced up to `end`, unless both superblocks say so already.
    pub(crate) fn claim_redo(&self, end: Lsn) -> Result<(), LogError> {
        let up_to_date = {
            let state = self.state.lock();
            state.claims.redo >= end && state.slots.iter().all(|slot| slot.claims.as_ref() == Some(&state.claims))
        };
        if up_to_date { Ok(()) } else { self.update(|claims| claims.redo = claims.redo.max(end)) }
    }

    /// In memory only: what a start has found beyond the claim.
    pub(crate) fn note(&self, change: impl FnOnce(&mut Claims)) {
        let mut state = self.state.lock();
        assert!(!state.begun, "after the beginning a claim changes on disk");
        change(&mut state.claims);
    }

    fn make_room(&self, slot: &mut Slot, index: usize, wanted: u64) -> Result<(), LogError> {
        if slot.room >= wanted {
            return Ok(());
        }
        let room = wanted.next_multiple_of(BLOCK);
        let allocate = |slot: &mut Slot| -> io::Result<()> {
            fault::point("superblock.before_allocate")?;
            if slot.file.is_none() {
                slot.file = Some(self.disk.open(PATHS[index], true)?);
                self.disk.sync_dir("")?;
            }
            slot.file.as_ref().expect("just opened").allocate(room)
        };
        allocate(slot).map_err(|e| LogError::io(PATHS[index], "cannot write", e))?;
        slot.room = room;
        Ok(())
    }

    /// Writes the claims to the older superblock.
    fn write(&self, state: &mut State) -> Result<(), LogError> {
        assert!(state.begun, "nothing is written before everything has been checked");
        if let Some(why) = &state.failed {
            return Err(LogError::Failed(why.clone()));
        }
        state.generation += 1;
        let bytes = encode(state);
        let index = (state.generation % 2) as usize;
        let slot = &mut state.slots[index];
        if let Err(error) = self.make_room(slot, index, bytes.len() as u64) {
            state.generation -= 1;
            return Err(error);
        }
        slot.claims = None;
        let file = slot.file.clone().expect("it has room");
        let write = || {
            fault::point("superblock.before_write")?;
            file.write_all_at(&bytes, 0)?;
            fault::point("superblock.before_sync")?;
            file.sync_data()?;
            fault::point("superblock.after_sync")
        };
        // It has room: whatever fails now, even for want of it, leaves a superblock that nobody knows.
        write().map_err(|e| self.fail(state, format!("{}: {e}", PATHS[index])))?;
        state.slots[index].claims = Some(state.claims.clone());
        Ok(())
    }

    fn fail(&self, state: &mut State, why: String) -> LogError {
        LogError::Failed(state.failed.get_or_insert(why).clone())
    }
}

fn encode(state: &State) -> Vec<u8> {
    let body = serde_json::to_vec(&state.claims).expect("claims have a text form");
    let words = [state.generation, body.len() as u64, crc32c::crc32c(&body).into()];
    let database = state.database.expect("a superblock belongs to a database");
    let mut bytes = FileHeader { kind: KIND, database, words }.encode().to_vec();
    bytes.extend_from_slice(&body);
    bytes
}

fn missing(path: &str) -> LogError {
    LogError::missing(path, "every data directory has it")
}

/// `None`: there is no such file.
fn read(disk: &Arc<dyn Disk>, path: &str, index: usize) -> Result<Option<Read>, LogError> {
    let error = |e| LogError::io(path, "cannot read", e);
    if !disk.exists(path).map_err(error)? {
        return Ok(None);
    }
    let file = disk.open(path, false).map_err(error)?;
    let length = file.len().map_err(error)?;
    if length < HEADER_BYTES as u64 || length > MAX_BYTES {
        return Err(LogError::damaged(path, length, format!("a superblock does not have {length} bytes")));
    }
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, 0).map_err(error)?;
    let (head, body) = bytes.split_first_chunk::<HEADER_BYTES>().expect("its length was checked");
    let header = FileHeader::decode(path, head, KIND, None)?;
    let [generation, length, crc] = header.words;
    let body = usize::try_from(length).ok().and_then(|length| body.get(..length));
    let Some(body) = body.filter(|body| u64::from(crc32c::crc32c(body)) == crc) else {
        return Err(LogError::damaged(path, HEADER_BYTES as u64, "its checksum does not match"));
    };
    if generation % 2 != index as u64 {
        return Err(LogError::damaged(path, 32, format!("generation {generation} belongs into the other superblock")));
    }
    let claims = serde_json::from_slice(body)
        .map_err(|e| LogError::damaged(path, HEADER_BYTES as u64, format!("it cannot be understood: {e}")))?;
    Ok(Some(Read { database: header.database, generation, claims }))
}

/// Whether a directory without superblocks may be one: it has no file of a database, or files of a version that had
/// none.
fn is_new_or_older(disk: &Arc<dyn Disk>) -> Result<bool, LogError> {
    let mut files = Vec::new();
    for (directory, ending) in [("", ".journal"), (crate::redo::DIRECTORY, ".redo"), (crate::checkpoint::DIRECTORY, "")]
    {
        let error = |e| LogError::io(directory, "cannot list directory", e);
        if directory.is_empty() || disk.exists(directory).map_err(error)? {
            let names = disk.list(directory).map_err(error)?;
            let ours = names.into_iter().filter(|name| name.ends_with(ending) && !name.ends_with(".tmp"));
            files.extend(ours.map(|name| if directory.is_empty() { name } else { format!("{directory}/{name}") }));
        }
    }
    if !files.is_empty() && !files.iter().any(|path| path == crate::checkpoint::MANIFEST) {
        return Err(LogError::missing(crate::checkpoint::MANIFEST, format!("the directory has {}", files[0])));
    }
    for path in files {
        let error = |e| LogError::io(&path, "cannot read", e);
        let file = disk.open(&path, false).map_err(error)?;
        let mut head = [0; HEADER_BYTES];
        let length = file.len().map_err(error)?.min(HEADER_BYTES as u64) as usize;
        file.read_exact_at(&mut head[..length], 0).map_err(error)?;
        // Files that are damaged themselves are refused by their readers, with the place.
        if array::<4>(&head, 0) == *b"RAUK" && version_of(&head) >= VERSION_WITH_SUPERBLOCKS {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests;
