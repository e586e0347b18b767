//! The state on this process: applies what is committed, tells the watchers, answers those who wait here, and keeps one snapshot on disk.
//!
//! The snapshot file is a [`Journal`], replaced as a whole and never torn, so that one that cannot be read is refused
//! ([`crate::claim`]): a line of JSON with Raft's description of it, then the [`Machine`] as JSON. The text is cut into
//! entries of at most [`PART_BYTES`], since a journal bounds its entries and nothing bounds the state. Entries that are
//! missing at the end leave JSON that does not parse, so a part of a snapshot is never taken for one.

use crate::claim::{Claim, Claims};
use crate::machine::{Machine, Outcome};
use crate::types::{Entry, LogId, SnapshotMeta, StorageError, StoredMembership, Types};
use openraft::storage::{RaftStateMachine, Snapshot};
use openraft::{AnyError, EntryPayload, RaftSnapshotBuilder, StorageIOError};
use parking_lot::{Mutex, RwLock};
use rauk_log::{Journal, JournalEntry, LogError};
use rauk_manage::consensus::Watcher;
use rauk_manage::group::{Answer, Group};
use std::collections::BTreeMap;
use std::io::Cursor;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{Notify, oneshot, watch};

pub const PATH: &str = "manage/raft.snapshot";
/// What one entry of the snapshot file holds.
const PART_BYTES: usize = 64 << 20;

/// The state as the rest of the process sees it.
pub struct Shared {
    group: RwLock<Arc<Group>>,
    /// Those from the start are held, later ones only as long as they live.
    watchers: Mutex<Vec<Weak<dyn Watcher>>>,
    _held: Vec<Arc<dyn Watcher>>,
    waiting: Mutex<Waiting>,
    /// Something was applied.
    pub changed: Notify,
    /// What is applied here. openraft tells of it too, but not while it writes.
    applied: watch::Sender<Option<LogId>>,
}

/// Proposals of this process that wait for being applied here.
#[derive(Default)]
struct Waiting {
    session: u64,
    answers: BTreeMap<u64, oneshot::Sender<Outcome>>,
}

impl Shared {
    pub fn new(watchers: Vec<Arc<dyn Watcher>>) -> Shared {
        let group = RwLock::new(Arc::new(Group::new()));
        let applied = watch::Sender::new(None);
        let weak = Mutex::new(watchers.iter().map(Arc::downgrade).collect());
        Shared { group, watchers: weak, _held: watchers, waiting: Mutex::default(), changed: Notify::new(), applied }
    }

    pub fn watch(&self, watcher: Weak<dyn Watcher>) {
        let mut watchers = self.watchers.lock();
        watchers.retain(|watcher| watcher.strong_count() > 0);
        watchers.push(watcher);
    }

    pub fn group(&self) -> Arc<Group> {
        self.group.read().clone()
    }

    /// Waits until the log is applied here up to `committed`, for `limit` at most.
    pub async fn applied(&self, committed: Option<LogId>, limit: Duration) -> bool {
        let mut applied = self.applied.subscribe();
        let reached = applied.wait_for(|applied| *applied >= committed);
        matches!(tokio::time::timeout(limit, reached).await, Ok(Ok(_)))
    }

    /// What the session's proposal gives when it has been applied here. Waiters of an earlier session are let go.
    pub fn wait_for(&self, session: u64, number: u64) -> oneshot::Receiver<Outcome> {
        let (sender, receiver) = oneshot::channel();
        let mut waiting = self.waiting.lock();
        if waiting.session != session {
            *waiting = Waiting { session, answers: BTreeMap::new() };
        }
        waiting.answers.insert(number, sender);
        receiver
    }

    pub fn forget(&self, session: u64, number: u64) {
        let mut waiting = self.waiting.lock();
        if waiting.session == session {
            waiting.answers.remove(&number);
        }
    }

    fn publish(&self, group: &Arc<Group>) {
        *self.group.write() = group.clone();
        // A watcher may add another one.
        let watchers = self.watchers.lock().clone();
        for watcher in watchers.iter().filter_map(Weak::upgrade) {
            watcher.on_applied(group);
        }
        self.changed.notify_one();
    }

    fn resolve(&self, session: u64, number: u64, outcome: &Outcome) {
        let mut waiting = self.waiting.lock();
        if waiting.session == session
            && let Some(sender) = waiting.answers.remove(&number)
        {
            // Nobody may be waiting any more.
            let _ = sender.send(outcome.clone());
        }
    }

    /// After a snapshot was put in: entries that somebody waits for may be a part of it.
    fn resolve_from(&self, machine: &Machine, applied: Option<LogId>) {
        let mut waiting = self.waiting.lock();
        let session = waiting.session;
        // A session is numbered by the entry that opened it, which may come after the snapshot.
        let open = machine.knows_session(session) || applied.is_none_or(|id| id.index < session);
        let answered: Vec<(u64, Option<Answer>)> =
            waiting.answers.keys().map(|number| (*number, machine.answer(session, *number).cloned())).collect();
        for (number, answer) in answered {
            let outcome = match answer {
                Some(answer) => Outcome::Applied(answer),
                None if open => continue,
                None => Outcome::Expired,
            };
            if let Some(sender) = waiting.answers.remove(&number) {
                let _ = sender.send(outcome);
            }
        }
    }
}

fn damaged(what: String) -> LogError {
    LogError::Damaged { file: PATH.to_string(), offset: 0, what }
}

/// Raft's description and the state as text, from the entries of the file. `None`: there is no snapshot yet.
fn parse(entries: Vec<JournalEntry>) -> Result<Option<(SnapshotMeta, Vec<u8>)>, LogError> {
    if entries.is_empty() {
        return Ok(None);
    }
    let content = entries.into_iter().map(|entry| entry.content).collect::<Vec<_>>().concat();
    let at = content.iter().position(|byte| *byte == b'\n');
    let at = at.ok_or_else(|| damaged("the description is not there".into()))?;
    let meta = serde_json::from_slice(&content[..at]).map_err(|e| damaged(e.to_string()))?;
    Ok(Some((meta, content[at + 1..].to_vec())))
}

/// Whether the file can be read. Changes nothing: a start asks before it changes the log, so that one that is refused has changed nothing.
pub fn check(claims: &Claims) -> Result<(), LogError> {
    match parse(claims.read_snapshot(PATH)?)? {
        Some((_, state)) => Machine::from_bytes(&state).map(drop).map_err(damaged),
        None => Ok(()),
    }
}

/// The snapshot on disk, and a copy in memory for sending.
pub struct SnapshotFile {
    journal: Mutex<Journal>,
    claims: Arc<Mutex<Claims>>,
    current: RwLock<Option<(SnapshotMeta, Arc<Vec<u8>>)>>,
    /// [`PART_BYTES`]; less in tests and in the simulator.
    part_bytes: usize,
}

impl SnapshotFile {
    /// What it says, and the state.
    pub(crate) fn machine(&self) -> Result<Option<(SnapshotMeta, Machine)>, LogError> {
        let Some((meta, bytes)) = &*self.current.read() else { return Ok(None) };
        Ok(Some((meta.clone(), Machine::from_bytes(bytes).map_err(damaged)?)))
    }

    pub(crate) fn open(claims: Arc<Mutex<Claims>>, part_bytes: usize) -> Result<SnapshotFile, LogError> {
        let (journal, entries) = {
            let mut claims = claims.lock();
            let (journal, entries) = claims.open_snapshot(PATH)?;
            // It may have been replaced without having been claimed. What is here counts from now on: the log is cut behind it.
            let claim = Claim { snapshot: journal.sequence(), ..claims.get() };
            claims.set(claim)?;
            (journal, entries)
        };
        let current = parse(entries)?.map(|(meta, state)| (meta, Arc::new(state)));
        let (journal, current) = (Mutex::new(journal), RwLock::new(current));
        Ok(SnapshotFile { journal, claims, current, part_bytes })
    }

    /// Durable when it returns. An older one than what is there is passed over.
    pub(crate) fn replace(&self, meta: &SnapshotMeta, bytes: Arc<Vec<u8>>) -> Result<(), LogError> {
        let mut journal = self.journal.lock();
        let present = self.current.read().as_ref().and_then(|(meta, _)| meta.last_log_id);
        if present > meta.last_log_id {
            return Ok(());
        }
        let mut content = serde_json::to_vec(meta).expect("a description can always be written as JSON");
        content.push(b'\n');
        content.extend_from_slice(&bytes);
        let parts: Vec<Vec<u8>> = content.chunks(self.part_bytes).map(<[u8]>::to_vec).collect();
        drop(content);
        journal.compact(&parts)?;
        let mut claims = self.claims.lock();
        let claim = Claim { snapshot: journal.sequence(), ..claims.get() };
        claims.set(claim)?;
        *self.current.write() = Some((meta.clone(), bytes));
        Ok(())
    }
}

async fn replace(file: &Arc<SnapshotFile>, meta: SnapshotMeta, bytes: Arc<Vec<u8>>) -> Result<(), StorageError> {
    let file = file.clone();
    let signature = Some(meta.signature());
    let done = tokio::task::spawn_blocking(move || file.replace(&meta, bytes)).await;
    let done = done.unwrap_or_else(|e| Err(LogError::Failed(format!("{PATH}: {e}"))));
    done.map_err(|e| StorageIOError::write_snapshot(signature, AnyError::error(e)).into())
}

pub struct StateMachine {
    node: u64,
    shared: Arc<Shared>,
    machine: Machine,
    applied: Option<LogId>,
    membership: StoredMembership,
    file: Arc<SnapshotFile>,
}

impl StateMachine {
    /// The state of the snapshot on disk; openraft applies what follows it.
    pub fn open(claims: Arc<Mutex<Claims>>, node: u64, shared: Arc<Shared>) -> Result<StateMachine, LogError> {
        let file = Arc::new(SnapshotFile::open(claims, PART_BYTES)?);
        let (mut machine, mut applied, mut membership) = (Machine::new(), None, StoredMembership::default());
        if let Some((meta, state)) = file.machine()? {
            (machine, applied, membership) = (state, meta.last_log_id, meta.last_membership);
            shared.publish(machine.group());
            shared.applied.send_replace(applied);
        }
        Ok(StateMachine { node, shared, machine, applied, membership, file })
    }

    fn apply_entry(&mut self, entry: Entry) -> Outcome {
        self.applied = Some(entry.log_id);
        let proposal = match entry.payload {
            EntryPayload::Blank => return Outcome::Nothing,
            EntryPayload::Membership(membership) => {
                self.membership = StoredMembership::new(Some(entry.log_id), membership);
                self.shared.changed.notify_one();
                return Outcome::Nothing;
            }
            EntryPayload::Normal(proposal) => proposal,
        };
        let (outcome, changed) = self.machine.apply(entry.log_id.index, &proposal);
        if changed {
            self.shared.publish(self.machine.group());
        }
        if let crate::machine::Proposal::Command(numbered) = &proposal {
            self.shared.resolve(numbered.session, numbered.number, &outcome);
        }
        outcome
    }
}

impl RaftStateMachine<Types> for StateMachine {
    type SnapshotBuilder = Builder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), StorageError> {
        Ok((self.applied, self.membership.clone()))
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<Outcome>, StorageError>
    where
        I: IntoIterator<Item = Entry> + Send,
        I::IntoIter: Send,
    {
        let outcomes = entries.into_iter().map(|entry| self.apply_entry(entry)).collect();
        // The group that is shown has them all.
        self.shared.applied.send_replace(self.applied);
        Ok(outcomes)
    }

    async fn get_snapshot_builder(&mut self) -> Builder {
        Builder {
            node: self.node,
            machine: self.machine.clone(),
            applied: self.applied,
            membership: self.membership.clone(),
            file: self.file.clone(),
        }
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<Cursor<Vec<u8>>>, StorageError> {
        Ok(Box::new(Cursor::new(Vec::new())))
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta,
        snapshot: Box<Cursor<Vec<u8>>>,
    ) -> Result<(), StorageError> {
        let bytes = Arc::new(snapshot.into_inner());
        let unreadable = |what: String| {
            let what = AnyError::error(format!("the leader's snapshot cannot be read: {what}"));
            StorageError::from(StorageIOError::read_snapshot(Some(meta.signature()), what))
        };
        let machine = Machine::from_bytes(&bytes).map_err(unreadable)?;
        replace(&self.file, meta.clone(), bytes).await?;
        self.machine = machine;
        (self.applied, self.membership) = (meta.last_log_id, meta.last_membership.clone());
        self.shared.publish(self.machine.group());
        self.shared.applied.send_replace(self.applied);
        self.shared.resolve_from(&self.machine, self.applied);
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot<Types>>, StorageError> {
        let current = self.file.current.read().clone();
        Ok(current.map(|(meta, bytes)| Snapshot { meta, snapshot: Box::new(Cursor::new(bytes.to_vec())) }))
    }
}

/// The state at one moment, to be written.
pub struct Builder {
    node: u64,
    machine: Machine,
    applied: Option<LogId>,
    membership: StoredMembership,
    file: Arc<SnapshotFile>,
}

impl RaftSnapshotBuilder<Types> for Builder {
    async fn build_snapshot(&mut self) -> Result<Snapshot<Types>, StorageError> {
        let at = self.applied.map_or_else(|| "0".to_string(), |id| format!("{}-{}", id.leader_id.term, id.index));
        let written = self.file.journal.lock().sequence();
        let meta = SnapshotMeta {
            last_log_id: self.applied,
            last_membership: self.membership.clone(),
            snapshot_id: format!("{}-{at}-{written}", self.node),
        };
        let machine = self.machine.clone();
        let bytes = tokio::task::spawn_blocking(move || machine.to_bytes()).await;
        let bytes = bytes.map_err(|e| {
            StorageError::from(StorageIOError::write_snapshot(Some(meta.signature()), AnyError::error(e)))
        })?;
        let bytes = Arc::new(bytes);
        replace(&self.file, meta.clone(), bytes.clone()).await?;
        Ok(Snapshot { meta, snapshot: Box::new(Cursor::new(bytes.to_vec())) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Numbered, Proposal};
    use openraft::CommittedLeaderId;
    use rauk_log::{DatabaseId, Disk, MemoryDisk};
    use rauk_manage::group::GroupCommand;

    const ID: DatabaseId = DatabaseId([3; 16]);

    fn entry(index: u64, payload: EntryPayload<Types>) -> Entry {
        Entry { log_id: LogId::new(CommittedLeaderId::new(1, 1), index), payload }
    }

    fn command(session: u64, number: u64) -> EntryPayload<Types> {
        let command = GroupCommand::Term { number };
        EntryPayload::Normal(Proposal::Command(Arc::new(Numbered { session, number, floor: 0, command })))
    }

    fn open(disk: &Arc<dyn Disk>) -> StateMachine {
        let mut claims = Claims::open(disk, ID, &[PATH]).unwrap();
        claims.begin().unwrap();
        let claims = Arc::new(Mutex::new(claims));
        StateMachine::open(claims, 1, Arc::new(Shared::new(vec![]))).unwrap()
    }

    fn run<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
    }

    /// A snapshot answers those whose proposal it has, leaves those waiting whose session comes after it, and tells those whose session is forgotten.
    #[test]
    fn a_snapshot_answers_who_waits() {
        run(async {
            let mut first = open(&(MemoryDisk::new() as Arc<dyn Disk>));
            let entries = vec![
                entry(0, EntryPayload::Blank),
                entry(1, EntryPayload::Normal(Proposal::OpenSession)),
                entry(2, command(1, 0)),
            ];
            first.apply(entries).await.unwrap();
            let snapshot = first.get_snapshot_builder().await.build_snapshot().await.unwrap();
            for (session, number, expected) in [(1, 0, "Applied"), (1, 1, "waits"), (9, 0, "waits"), (2, 0, "Expired")]
            {
                let mut second = open(&(MemoryDisk::new() as Arc<dyn Disk>));
                let mut outcome = second.shared.wait_for(session, number);
                second.install_snapshot(&snapshot.meta, snapshot.snapshot.clone()).await.unwrap();
                let found = outcome.try_recv().map_or_else(|_| "waits".to_string(), |outcome| format!("{outcome:?}"));
                assert!(found.starts_with(expected), "session {session}, number {number}: {found}");
                assert_eq!(second.shared.group().term, 0);
                assert_eq!(second.shared.group().index, 2);
            }
        });
    }

    /// A snapshot of more bytes than an entry takes is stored in parts, read again whole, and refused when a part is
    /// gone.
    #[test]
    fn a_snapshot_is_larger_than_an_entry_of_its_file() {
        run(async {
            let disk: Arc<dyn Disk> = MemoryDisk::new();
            let mut machine = open(&disk);
            Arc::get_mut(&mut machine.file).unwrap().part_bytes = 50;
            machine.apply(vec![entry(0, EntryPayload::Normal(Proposal::OpenSession))]).await.unwrap();
            machine.apply(vec![entry(1, command(0, 7))]).await.unwrap();
            let newest = machine.get_snapshot_builder().await.build_snapshot().await.unwrap();
            let parts = machine.file.journal.lock().sequence();
            assert!(parts > 3, "{parts} parts");
            drop(machine);
            let mut again = open(&disk);
            let found = again.get_current_snapshot().await.unwrap().unwrap();
            assert_eq!((found.meta, found.snapshot), (newest.meta, newest.snapshot));
            assert_eq!(again.shared.group().term, 7);
            // The next one takes its place whole.
            again.apply(vec![entry(2, command(0, 8))]).await.unwrap();
            again.get_snapshot_builder().await.build_snapshot().await.unwrap();
            assert_eq!(open(&disk).shared.group().term, 8);
            // Without its last part it is not taken for whole, claimed or not.
            let mut claims = Claims::open(&disk, ID, &[PATH]).unwrap();
            claims.begin().unwrap();
            let (mut journal, entries) = claims.open_snapshot(PATH).unwrap();
            let mut contents: Vec<Vec<u8>> = entries.into_iter().map(|entry| entry.content).collect();
            let last = contents.pop().unwrap();
            contents.extend([last[..last.len() / 2].to_vec()]);
            journal.compact(&contents).unwrap();
            let refused = StateMachine::open(Arc::new(Mutex::new(claims)), 1, Arc::new(Shared::new(vec![])));
            assert!(refused.err().expect("a part is gone").to_string().contains(PATH));
        });
    }

    #[test]
    fn the_newest_snapshot_stays_and_is_read_again() {
        run(async {
            let disk: Arc<dyn Disk> = MemoryDisk::new();
            let mut machine = open(&disk);
            machine.apply(vec![entry(0, EntryPayload::Normal(Proposal::OpenSession))]).await.unwrap();
            let mut old = machine.get_snapshot_builder().await;
            machine.apply(vec![entry(1, command(0, 7))]).await.unwrap();
            let newest = machine.get_snapshot_builder().await.build_snapshot().await.unwrap();
            old.build_snapshot().await.unwrap();
            let mut again = open(&disk);
            assert_eq!(again.get_current_snapshot().await.unwrap().unwrap().meta, newest.meta);
            assert_eq!(again.applied_state().await.unwrap().0, newest.meta.last_log_id);
            assert_eq!(again.shared.group().term, 7);
            assert!(again.machine.answer(0, 7).is_some());
            let garbage = Box::new(Cursor::new(b"{}".to_vec()));
            assert!(again.install_snapshot(&newest.meta, garbage).await.is_err());
            assert_eq!(again.shared.group().term, 7);
        });
    }
}
