//! Raft's log, vote and identity on disk: one [`Journal`], and a copy of the log in memory.
//!
//! A journal entry is some lines of JSON, each a [`Record`], durable together. Nothing is acknowledged, voted or read by openraft before the journal has it. Truncations and purges are
//! records like others, so the file only grows; when it has grown much over what is needed it is written anew ([`Journal::compact`]).
//!
//! The committed position goes along with the entries that follow it and is never written for its own sake: after a restart the state is at least what the snapshot and these
//! say, and the leader tells the rest.
//!
//! The newest entry is on disk twice, and how far the file goes is known apart from it ([`crate::claim`]): an entry that was acknowledged and damaged since is never taken for one that was torn.
//!
//! A failed write ends this process' part in Raft: openraft stops at a storage error, also at a full disk, and what was not written was not acknowledged.

use crate::claim::{Claim, Claims};
use crate::state_machine;
use crate::types::{Entry, Identity, LogId, StorageError, Types, Vote};
use openraft::storage::{LogFlushed, LogState, RaftLogStorage};
use openraft::{AnyError, ErrorSubject, ErrorVerb, RaftLogReader, StorageIOError};
use parking_lot::{Mutex, RwLock};
use rauk_log::{DatabaseId, Disk, Journal, LogError};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt::Debug;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use tokio::time::Instant;

pub const PATH: &str = "manage/raft.journal";
/// Journals below this are not worth compacting.
const COMPACT_BYTES: u64 = 1 << 20;
/// What one message to a follower holds, as JSON on disk counts it; one entry at least.
const MESSAGE_BYTES: usize = 1 << 20;

/// Variants are added at the end, never reused.
#[derive(Serialize, Deserialize)]
pub(crate) enum Record {
    Identity(Identity),
    Vote(Vote),
    Entry(Entry),
    Committed(LogId),
    /// Entries from this index on are gone: another leader's take their place.
    Truncate(u64),
    /// Entries up to this one are gone: a snapshot has them.
    Purge(LogId),
}

#[derive(Default)]
struct Memory {
    identity: Option<Identity>,
    vote: Option<Vote>,
    committed: Option<LogId>,
    purged: Option<LogId>,
    /// Consecutive; each with its size on disk.
    entries: VecDeque<(Entry, usize)>,
}

#[derive(Clone)]
pub struct LogStore {
    shared: Arc<Store>,
}

struct Store {
    journal: Mutex<Writer>,
    memory: RwLock<Memory>,
    /// Since when openraft waits for a write. It has one under way at most.
    writing: Mutex<Option<Instant>>,
}

struct Writer {
    journal: Journal,
    claims: Arc<Mutex<Claims>>,
    /// A file below this is not made smaller: [`COMPACT_BYTES`]; less in the simulator.
    least_bytes: u64,
    /// Its size after the last compaction.
    compacted_bytes: u64,
    /// The committed position was written up to here.
    committed: Option<LogId>,
}

fn line(out: &mut Vec<u8>, record: &Record) {
    serde_json::to_writer(&mut *out, record).expect("a record can always be written as JSON");
    out.push(b'\n');
}

impl Memory {
    fn first_index(&self) -> u64 {
        self.purged.map_or(0, |id| id.index + 1)
    }

    fn next_index(&self) -> u64 {
        self.first_index() + self.entries.len() as u64
    }

    fn take(&mut self, record: Record, bytes: usize) -> Result<(), String> {
        match record {
            Record::Identity(identity) => self.identity = Some(identity),
            Record::Vote(vote) => self.vote = Some(vote),
            Record::Committed(id) => self.committed = Some(id),
            Record::Entry(entry) => {
                if entry.log_id.index != self.next_index() {
                    return Err(format!("entry {} where {} is due", entry.log_id.index, self.next_index()));
                }
                self.entries.push_back((entry, bytes));
            }
            Record::Truncate(index) => {
                let keep = index.saturating_sub(self.first_index());
                self.entries.truncate(usize::try_from(keep).unwrap_or(usize::MAX));
            }
            Record::Purge(id) => {
                while self.entries.front().is_some_and(|(entry, _)| entry.log_id.index <= id.index) {
                    self.entries.pop_front();
                }
                if self.purged.is_none_or(|purged| purged.index < id.index) {
                    self.purged = Some(id);
                }
            }
        }
        Ok(())
    }

    fn last(&self) -> Option<LogId> {
        self.entries.back().map(|(entry, _)| entry.log_id).or(self.purged)
    }

    /// Everything that counts, for a new file.
    fn contents(&self) -> Vec<Vec<u8>> {
        let mut head = Vec::new();
        if let Some(identity) = &self.identity {
            line(&mut head, &Record::Identity(identity.clone()));
        }
        if let Some(vote) = self.vote {
            line(&mut head, &Record::Vote(vote));
        }
        if let Some(purged) = self.purged {
            line(&mut head, &Record::Purge(purged));
        }
        if let Some(committed) = self.committed {
            line(&mut head, &Record::Committed(committed));
        }
        let mut contents = vec![head];
        for (entry, _) in &self.entries {
            if contents.last().is_some_and(|c| c.len() > MESSAGE_BYTES) {
                contents.push(Vec::new());
            }
            line(contents.last_mut().expect("there is one"), &Record::Entry(entry.clone()));
        }
        contents
    }
}

impl LogStore {
    pub fn open(disk: &Arc<dyn Disk>, database: DatabaseId) -> Result<LogStore, LogError> {
        let claims = Claims::open(disk, database, &[PATH, state_machine::PATH])?;
        LogStore::open_with(claims, COMPACT_BYTES)
    }

    /// `least_bytes`: a file below is not made smaller.
    pub(crate) fn open_with(mut claims: Claims, least_bytes: u64) -> Result<LogStore, LogError> {
        state_machine::check(&claims)?;
        claims.begin()?;
        let (journal, entries) = claims.open_log(PATH)?;
        let claims = Arc::new(Mutex::new(claims));
        let mut memory = Memory::default();
        for entry in entries {
            for text in entry.content.split(|byte| *byte == b'\n').filter(|text| !text.is_empty()) {
                let damaged = |what: String| LogError::Damaged {
                    file: PATH.to_string(),
                    offset: 0,
                    what: format!("entry {}: {what}", entry.sequence),
                };
                let record = serde_json::from_slice(text).map_err(|e| damaged(e.to_string()))?;
                memory.take(record, text.len()).map_err(damaged)?;
            }
        }
        let committed = memory.committed;
        let compacted_bytes = journal.bytes().min(least_bytes);
        let mut writer = Writer { journal, claims, least_bytes, compacted_bytes, committed };
        // The last entry may be whole without having been claimed: it counts from now on.
        writer.claim()?;
        Ok(LogStore {
            shared: Arc::new(Store {
                journal: Mutex::new(writer),
                memory: RwLock::new(memory),
                writing: Mutex::default(),
            }),
        })
    }

    /// How far the files are synced, for the snapshot's.
    pub fn claims(&self) -> Arc<Mutex<Claims>> {
        self.shared.journal.lock().claims.clone()
    }

    pub fn identity(&self) -> Option<Identity> {
        self.shared.memory.read().identity.clone()
    }

    /// The last entry, which may be in a snapshot only.
    pub fn last(&self) -> Option<LogId> {
        self.shared.memory.read().last()
    }

    pub(crate) fn vote(&self) -> Option<Vote> {
        self.shared.memory.read().vote
    }

    /// Up to where the log is committed, as far as openraft has said here.
    pub(crate) fn committed(&self) -> Option<LogId> {
        self.shared.memory.read().committed
    }

    /// Since when openraft waits for a write, if it does.
    pub(crate) fn writing_since(&self) -> Option<Instant> {
        *self.shared.writing.lock()
    }

    pub(crate) fn purged(&self) -> Option<LogId> {
        self.shared.memory.read().purged
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.shared.memory.read().entries.iter().map(|(entry, _)| entry.clone()).collect()
    }

    /// Durable when it returns, on this thread.
    pub(crate) fn write_here(&self, records: Vec<Record>) -> Result<(), LogError> {
        self.shared.write(records)
    }

    /// Durable when it returns.
    pub async fn save_identity(&self, identity: Identity) -> Result<(), LogError> {
        self.write(vec![Record::Identity(identity)]).await
    }

    /// Writes the records in one piece; they count in memory once they are durable. On a thread of its own, so that heartbeats and answers go on meanwhile.
    async fn write(&self, records: Vec<Record>) -> Result<(), LogError> {
        let shared = self.shared.clone();
        *self.shared.writing.lock() = Some(Instant::now());
        let done = tokio::task::spawn_blocking(move || shared.write(records)).await;
        *self.shared.writing.lock() = None;
        done.unwrap_or_else(|e| Err(LogError::Failed(format!("{PATH}: {e}"))))
    }
}

impl Writer {
    /// Everything in the journal is synced.
    fn claim(&mut self) -> Result<(), LogError> {
        let mut claims = self.claims.lock();
        let claim = Claim { log: self.journal.sequence(), ..claims.get() };
        claims.set(claim)
    }
}

impl Store {
    fn write(&self, records: Vec<Record>) -> Result<(), LogError> {
        let mut writer = self.journal.lock();
        let mut content = Vec::new();
        let mut sized = Vec::with_capacity(records.len());
        let committed = self.memory.read().committed;
        let mut purges = false;
        if let Some(id) = committed.filter(|_| committed > writer.committed) {
            line(&mut content, &Record::Committed(id));
        }
        for record in records {
            purges |= matches!(record, Record::Purge(_));
            let before = content.len();
            line(&mut content, &record);
            sized.push((record, content.len() - before));
        }
        let Writer { journal, claims, .. } = &mut *writer;
        claims.lock().append(journal, &content)?;
        writer.committed = committed;
        let mut memory = self.memory.write();
        for (record, bytes) in sized {
            memory.take(record, bytes).map_err(|what| LogError::Failed(format!("{PATH}: {what}")))?;
        }
        drop(memory);
        if purges && writer.journal.bytes() > writer.least_bytes.max(writer.compacted_bytes * 4) {
            let contents = self.memory.read().contents();
            match writer.journal.compact(&contents) {
                Ok(()) => {
                    writer.compacted_bytes = writer.journal.bytes();
                    writer.claim()?;
                }
                // The old file is as good.
                Err(LogError::DiskFull(why)) => tracing::warn!("the manage group's log is not made smaller: {why}"),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn storage_error(subject: ErrorSubject<u64>, error: &LogError) -> StorageError {
    StorageIOError::new(subject, ErrorVerb::Write, AnyError::error(error)).into()
}

impl RaftLogReader<Types> for LogStore {
    async fn try_get_log_entries<R: RangeBounds<u64> + Clone + Debug + Send>(
        &mut self,
        range: R,
    ) -> Result<Vec<Entry>, StorageError> {
        let memory = self.shared.memory.read();
        let (first, next) = (memory.first_index(), memory.next_index());
        let start = match range.start_bound() {
            Bound::Included(start) => *start,
            Bound::Excluded(start) => start + 1,
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(end) => end + 1,
            Bound::Excluded(end) => *end,
            Bound::Unbounded => u64::MAX,
        };
        let (start, end) = (start.max(first), end.min(next));
        let wanted = (start..end).map(|index| memory.entries[(index - first) as usize].0.clone());
        Ok(wanted.collect())
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> Result<Vec<Entry>, StorageError> {
        let limited = {
            let memory = self.shared.memory.read();
            let skipped = start.saturating_sub(memory.first_index()) as usize;
            let mut bytes = 0;
            let fit = memory.entries.iter().skip(skipped).take_while(|(_, size)| {
                bytes += size;
                bytes <= MESSAGE_BYTES
            });
            end.min(start + fit.count().max(1) as u64)
        };
        self.try_get_log_entries(start..limited).await
    }
}

impl RaftLogStorage<Types> for LogStore {
    type LogReader = LogStore;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, StorageError> {
        let memory = self.shared.memory.read();
        Ok(LogState { last_purged_log_id: memory.purged, last_log_id: memory.last() })
    }

    async fn get_log_reader(&mut self) -> LogStore {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), StorageError> {
        self.write(vec![Record::Vote(*vote)]).await.map_err(|e| storage_error(ErrorSubject::Vote, &e))
    }

    /// Read once, when Raft starts. A leader does not go on after a restart: its vote counts as a candidate's, and it has to be elected again, in another term.
    async fn read_vote(&mut self) -> Result<Option<Vote>, StorageError> {
        let memory = self.shared.memory.read();
        let own = |vote: &Vote| memory.identity.as_ref().is_some_and(|own| own.node == vote.leader_id.node_id);
        Ok(memory.vote.map(|vote| Vote { committed: vote.committed && !own(&vote), ..vote }))
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), StorageError> {
        self.shared.memory.write().committed = committed;
        Ok(())
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, StorageError> {
        let memory = self.shared.memory.read();
        // What was committed is in the log or in the snapshot; a position beyond the log is of no use here.
        Ok(memory.committed.min(memory.last()))
    }

    async fn append<I>(&mut self, entries: I, callback: LogFlushed<Types>) -> Result<(), StorageError>
    where
        I: IntoIterator<Item = Entry> + Send,
        I::IntoIter: Send,
    {
        let records: Vec<Record> = entries.into_iter().map(Record::Entry).collect();
        match self.write(records).await {
            Ok(()) => callback.log_io_completed(Ok(())),
            Err(error) => return Err(storage_error(ErrorSubject::Logs, &error)),
        }
        Ok(())
    }

    async fn truncate(&mut self, log_id: LogId) -> Result<(), StorageError> {
        let written = self.write(vec![Record::Truncate(log_id.index)]).await;
        written.map_err(|e| storage_error(ErrorSubject::Logs, &e))
    }

    async fn purge(&mut self, log_id: LogId) -> Result<(), StorageError> {
        self.write(vec![Record::Purge(log_id)]).await.map_err(|e| storage_error(ErrorSubject::Logs, &e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Proposal;
    use openraft::{CommittedLeaderId, EntryPayload};
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};
    use rauk_log::MemoryDisk;

    const ID: DatabaseId = DatabaseId([3; 16]);

    fn id(term: u64, index: u64) -> LogId {
        LogId::new(CommittedLeaderId::new(term, 1), index)
    }

    fn entry(term: u64, index: u64) -> Record {
        Record::Entry(Entry { log_id: id(term, index), payload: EntryPayload::Normal(Proposal::OpenSession) })
    }

    fn ids(store: &LogStore) -> Vec<LogId> {
        store.shared.memory.read().entries.iter().map(|(entry, _)| entry.log_id).collect()
    }

    /// Random appends, truncations, purges and votes against a plain list, opened again in between: the file says the same, and stays small.
    #[test]
    fn what_was_written_is_there_again() {
        for seed in 0..40 {
            let mut random = SmallRng::seed_from_u64(seed);
            let disk: Arc<dyn Disk> = MemoryDisk::new();
            let mut store = LogStore::open(&disk, ID).unwrap();
            let (mut log, mut purged, mut term) = (Vec::<LogId>::new(), None::<LogId>, 1);
            for _ in 0..60 {
                let next = log.last().or(purged.as_ref()).map_or(0, |id| id.index + 1);
                match random.random_range(0..10) {
                    0..=4 => {
                        let count = random.random_range(1..20);
                        store.shared.write((next..next + count).map(|i| entry(term, i)).collect()).unwrap();
                        log.extend((next..next + count).map(|i| id(term, i)));
                    }
                    5 if !log.is_empty() => {
                        let at = random.random_range(0..log.len());
                        store.shared.write(vec![Record::Truncate(log[at].index)]).unwrap();
                        log.truncate(at);
                        term += 1;
                    }
                    6 if !log.is_empty() => {
                        let at = random.random_range(0..log.len());
                        store.shared.write(vec![Record::Purge(log[at])]).unwrap();
                        purged = Some(log[at]);
                        log.drain(..=at);
                    }
                    // A snapshot from the leader, beyond all that is here.
                    7 => {
                        let jump = id(term, next + random.random_range(0..5));
                        store.shared.write(vec![Record::Purge(jump)]).unwrap();
                        purged = Some(jump);
                        log.clear();
                    }
                    8 => store.shared.write(vec![Record::Vote(Vote::new(term, 2))]).unwrap(),
                    _ => store = LogStore::open(&disk, ID).unwrap(),
                }
                assert_eq!(ids(&store), log, "seed {seed}");
                assert_eq!(store.shared.memory.read().purged, purged);
            }
            assert_eq!(ids(&LogStore::open(&disk, ID).unwrap()), log);
        }
    }

    #[test]
    fn the_file_stays_small() {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        let store = LogStore::open(&disk, ID).unwrap();
        let identity =
            Identity { node: 4, cluster: [1; 16], name: "shop".into(), address: "a:1".into(), founding: None };
        store.shared.write(vec![Record::Identity(identity.clone()), Record::Vote(Vote::new(7, 4))]).unwrap();
        for round in 0..100 {
            store.shared.write((round * 400..(round + 1) * 400).map(|i| entry(1, i)).collect()).unwrap();
            store.shared.memory.write().committed = Some(id(1, round * 400 + 300));
            store.shared.write(vec![Record::Purge(id(1, round * 400 + 350))]).unwrap();
            assert!(store.shared.journal.lock().journal.bytes() < 2 * COMPACT_BYTES);
        }
        let store = LogStore::open(&disk, ID).unwrap();
        assert_eq!(store.identity(), Some(identity));
        let memory = store.shared.memory.read();
        assert_eq!(memory.vote, Some(Vote::new(7, 4)));
        assert_eq!((memory.first_index(), memory.next_index()), (39_951, 40_000));
        assert_eq!(memory.committed.unwrap().index, 39_900);
    }

    #[test]
    fn entries_out_of_place_are_damage() {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        let store = LogStore::open(&disk, ID).unwrap();
        store.shared.write(vec![entry(1, 0), entry(1, 1)]).unwrap();
        assert!(store.shared.write(vec![entry(1, 3)]).is_err());
        let error = LogStore::open(&disk, ID).err().expect("damaged").to_string();
        assert!(error.contains("entry 3 where 2 is due"), "{error}");
    }
}
