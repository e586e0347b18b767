//! Raft's files without Raft: log, vote, identity and snapshot as plain numbers, written on the calling thread.
//!
//! The simulator drives them so: it ends their process within any operation, damages and takes away files, and compares
//! what is there afterwards. In production openraft writes the same files by the same code ([`crate::log_store`],
//! [`crate::state_machine`]) on threads of its own; what it writes, and when, is not shown here.

use crate::claim::Claims;
use crate::log_store::{LogStore, PATH as LOG, Record};
use crate::machine::{Machine, Numbered, Proposal};
use crate::state_machine::{PATH as SNAPSHOT, SnapshotFile};
use crate::types::{Entry, Identity, LogId, SnapshotMeta, StoredMembership, Vote};
use openraft::{CommittedLeaderId, EntryPayload};
use parking_lot::Mutex;
use rauk_log::{DatabaseId, Disk, LogError};
use rauk_manage::group::GroupCommand;
use std::sync::Arc;

const ID: DatabaseId = DatabaseId([6; 16]);
/// Small, so that files are made smaller and snapshots have several parts.
const LEAST_BYTES: u64 = 8 << 10;
const PART_BYTES: usize = 1000;

/// An entry of the log; `tag` is what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    pub term: u64,
    pub index: u64,
    pub tag: u64,
}

/// Everything that counts in the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    pub node: Option<u64>,
    /// Term, and who was voted for.
    pub vote: Option<(u64, u64)>,
    /// Entries up to this index are gone: a snapshot has them.
    pub purged: Option<u64>,
    pub entries: Vec<Item>,
    /// Its last entry, and what the state says.
    pub snapshot: Option<(u64, u64)>,
}

pub struct Files {
    log: LogStore,
    snapshot: SnapshotFile,
    /// As it was read, or written last.
    state: Mutex<Option<(u64, u64)>>,
}

fn id(term: u64, index: u64) -> LogId {
    LogId::new(CommittedLeaderId::new(term, 1), index)
}

impl Files {
    /// As a process does it when it starts. `ignores_claims`: with that safeguard switched off.
    pub fn open(disk: &Arc<dyn Disk>, ignores_claims: bool) -> Result<Files, LogError> {
        let mut claims = Claims::open(disk, ID, if ignores_claims { &[] } else { &[LOG, SNAPSHOT] })?;
        if ignores_claims {
            claims.ignore();
        }
        let log = LogStore::open_with(claims, LEAST_BYTES)?;
        let snapshot = SnapshotFile::open(log.claims(), PART_BYTES)?;
        let last = |meta: SnapshotMeta| meta.last_log_id.expect("each has its last entry").index;
        let state = snapshot.machine()?.map(|(meta, machine)| (last(meta), machine.group().term));
        Ok(Files { log, snapshot, state: Mutex::new(state) })
    }

    pub fn contents(&self) -> Contents {
        let item = |entry: &Entry| {
            let tag = match &entry.payload {
                EntryPayload::Normal(Proposal::Command(numbered)) => numbered.session,
                other => panic!("{other:?} was not written"),
            };
            Item { term: entry.log_id.leader_id.term, index: entry.log_id.index, tag }
        };
        Contents {
            node: self.log.identity().map(|identity| identity.node),
            vote: self.log.vote().map(|vote| (vote.leader_id.term, vote.leader_id.node_id)),
            purged: self.log.purged().map(|id| id.index),
            entries: self.log.entries().iter().map(item).collect(),
            snapshot: *self.state.lock(),
        }
    }

    pub fn save_identity(&self, node: u64) -> Result<(), LogError> {
        let identity = Identity { node, cluster: [1; 16], name: "shop".into(), address: "a:1".into(), founding: None };
        self.log.write_here(vec![Record::Identity(identity)])
    }

    pub fn vote(&self, term: u64, node: u64) -> Result<(), LogError> {
        self.log.write_here(vec![Record::Vote(Vote::new(term, node))])
    }

    pub fn append(&self, items: &[Item]) -> Result<(), LogError> {
        let record = |item: &Item| {
            let command = GroupCommand::Term { number: item.term };
            let numbered = Numbered { session: item.tag, number: 0, floor: 0, command };
            let payload = EntryPayload::Normal(Proposal::Command(Arc::new(numbered)));
            Record::Entry(Entry { log_id: id(item.term, item.index), payload })
        };
        self.log.write_here(items.iter().map(record).collect())
    }

    pub fn truncate(&self, index: u64) -> Result<(), LogError> {
        self.log.write_here(vec![Record::Truncate(index)])
    }

    pub fn purge(&self, term: u64, index: u64) -> Result<(), LogError> {
        self.log.write_here(vec![Record::Purge(id(term, index))])
    }

    /// `sessions`: as many are in the state, which grows by them.
    pub fn replace_snapshot(&self, term: u64, index: u64, tag: u64, sessions: u64) -> Result<(), LogError> {
        let mut machine = Machine::new();
        for session in 0..=sessions {
            machine.apply(session, &Proposal::OpenSession);
        }
        let command = GroupCommand::Term { number: tag };
        machine
            .apply(sessions + 1, &Proposal::Command(Arc::new(Numbered { session: 0, number: 0, floor: 0, command })));
        let meta = SnapshotMeta {
            last_log_id: Some(id(term, index)),
            last_membership: StoredMembership::default(),
            snapshot_id: format!("{term}-{index}"),
        };
        self.snapshot.replace(&meta, Arc::new(machine.to_bytes()))?;
        *self.state.lock() = Some((index, tag));
        Ok(())
    }
}
