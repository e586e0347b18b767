//! One partition: a fragment of every table, the locks on its rows, and the versions that readers need.
//!
//! The newest committed version of a row stands inline in the row store; a pending one beside it in a side table, with the
//! transaction's status word; older ones in a side table only while a snapshot needs them.
//!
//! This file has the types that callers meet and the struct; the methods stand by subject:
//!
//! | file | subject |
//! |---|---|
//! | [`tables`] | create, alter, drop, index builds, usage |
//! | [`read`] | point reads, with and without locks |
//! | [`many`] | reads of many keys at once |
//! | [`write`] | insert, update, delete |
//! | [`write_many`] | writes of many keys at once, each a transaction of its own |
//! | [`scan`] | scans in slices, range locks |
//! | [`lookup`] | lookups of many ranges of an index at once |
//! | [`names`] | locks on names that are no rows |
//! | [`finish`] | commit, rollback, abort, ends of waits |
//! | [`ends`] | ends of transactions with many rows, and undoing many, in slices |
//! | [`chunks`] | what a large transaction writes, in pieces while it runs |
//! | [`collect`] | throwing away old versions; the history limit |
//! | [`restore`] | checkpoints and recovery |
//! | [`copy`] | rows in slices for another replica, and taking them in |
//! | [`digest`] | digests of the committed rows, and the walk that compares them with the stored bytes |
//! | [`adopt`] | writes of transactions that another replica leads |
//! | [`validate`] | the check of all invariants |
//! | [`large`] | values that lie beside their rows |
//! | [`fresh`] | inserts that nobody has touched since |
//! | [`held`] | lists of locks, for people |
//! | [`fragments`], [`fragment`], [`versions`], [`locks`], [`ranges`], [`transactions`], [`side`] | the structures |
//!
//! *Time.* A transaction's commit time is not below what [`TimeBounds::least_time`] said when it prepared: above every snapshot that has
//! been read here (`max_read`, raised before each such read looks), and not below the newest commit (`finished`). So what a snapshot has seen stays
//! what it sees, and the versions of one row never go back in time. On a node that is alone the log draws commit times, and nobody asks.
//!
//! *Old snapshots.* Whatever is thrown away raises a floor of its fragment: a read at a snapshot below it that would have to know what is gone fails
//! with [`Stop::SnapshotTooOld`], whatever its caller believed of the oldest snapshot in use. What restoring brings has no history, and sets the floors to its newest time.
//!
//! Memory: rows, images and indexes count themselves; side tables are counted by [`Partition::settle`] at the end of every
//! call that may change them.

mod adopt;
mod chunks;
mod collect;
mod common;
mod copy;
mod digest;
mod ends;
mod finish;
mod fragment;
mod fragments;
mod fresh;
mod held;
mod large;
mod locks;
mod lookup;
mod many;
mod names;
mod ranges;
mod read;
mod restore;
mod scan;
mod side;
mod tables;
#[cfg(test)]
mod tests;
mod transactions;
mod validate;
mod versions;
mod write;
mod write_many;

use crate::budget::{MemoryBudget, MemoryFull};
use crate::row_store::RowId;
use crate::status::TxnRef;
use crate::times::TimeBounds;
pub use chunks::TakenBack;
use collect::Garbage;
pub use copy::{CopyCursor, SliceError, SliceRow, slice_partition, slice_rows};
pub use digest::{Scrubbed, TableDigest};
pub use ends::END_SLICE;
use ends::UnderWay;
use fragment::KeyList;
use fragments::Fragments;
pub use held::{HeldLock, HeldMode, HeldOn};
use locks::LockTable;
pub use lookup::{Lookup, LookupPosition, Span};
pub use many::{Found, MANY, ManyRead, Probe};
pub use names::NAMES;
use names::NameTable;
use ranges::RangeTable;
use rauk_types::{Covering, IndexId, PartitionId, RowView, TableId, Timestamp, TxnId};
use restore::{Buried, Waiting};
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;
use transactions::TxnTable;
use versions::VersionTable;
pub use write_many::{Prepared, Refusal, Verb};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockMode {
    /// Foreign-key checks: conflicts with Exclusive only when the key changes or the row goes.
    KeyShare,
    Shared,
    Exclusive,
    /// Exclusive, and keeps out KeyShare too: the columns that foreign keys refer to are about to change.
    KeyChange,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitPolicy {
    Wait,
    /// Fail with [`Stop::WouldWait`].
    NoWait,
    /// Point reads answer as if the row were missing; scans leave the row out.
    SkipLocked,
}

/// What a read sees of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadAt {
    /// The newest committed version.
    Newest,
    /// The newest version committed at or before this time.
    Snapshot(Timestamp),
}

/// Times that decide what may be thrown away.
#[derive(Clone, Copy, Debug)]
pub struct Horizon {
    /// No snapshot older than this is or will be in use.
    pub oldest_snapshot: Timestamp,
    /// Everything committed at or before this is on disk.
    pub durable: Timestamp,
}

/// Who calls, what it may see, and what it learned.
pub struct Access<'a> {
    /// The transaction; `None` for a plain read outside of one.
    pub txn: Option<&'a TxnRef>,
    /// Own writes with a statement number below this are visible; others are not (so that an UPDATE
    /// does not meet the rows that it made itself).
    pub own_before: u32,
    /// The number of the statement that writes.
    pub statement: u32,
    pub at: ReadAt,
    /// The transaction's snapshot: locking reads and writes fail with [`Stop::Changed`] on rows that changed after this
    /// time.
    pub conflict_after: Option<Timestamp>,
    pub horizon: Horizon,
    /// Out: raised to the newest commit time that the answer depends on, absences and failures included.
    pub observed: Timestamp,
}

/// Why a call did not finish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A row in the way belongs to a transaction whose commit time is being decided: call again at once.
    Committing,
    /// A row in the way belongs to a transaction that is prepared and may commit at a time that this read must see: call again when it is decided.
    Prepared(TxnId),
    /// Queued behind these transactions: call again when granted, or call [`Partition::cancel_wait`].
    Wait(Vec<TxnId>),
    /// NOWAIT met a lock.
    WouldWait,
    /// A row with this key exists (and this call has locked nothing).
    Duplicate,
    /// The row changed after the transaction's snapshot (error 1020).
    Changed,
    /// The versions that the snapshot needs were given up (history cap), or thrown away when no snapshot so old was known, or never were here (a copy, a restart).
    SnapshotTooOld,
    MemoryFull {
        limit: u64,
    },
    /// Nothing may be written here ([`Partition::set_read_only`]).
    ReadOnly,
    /// No such table here, or a definition that is no longer served.
    StaleSchema,
    /// Bytes from another node, or of the log, are no row of this table; or a row keeps values of a version that is not here.
    NoRow,
}

/// A change that a commit record must carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write<'a> {
    /// The row's new image, insert or update.
    Put { layout: u16, row: &'a [u8] },
    /// An update of a row with large values, without those that the version before has (`rauk_types::row::sparse`).
    Sparse { layout: u16, row: &'a [u8] },
    /// The encoded primary key of a row that goes.
    Delete { key: &'a [u8] },
}

#[derive(Clone, Debug)]
pub struct ScanRequest {
    pub table: TableId,
    /// `None`: all rows in row-id order.
    pub index: Option<IndexId>,
    pub low: Bound<Vec<u8>>,
    pub high: Bound<Vec<u8>>,
    pub reverse: bool,
    pub lock: Option<(LockMode, WaitPolicy)>,
    /// Without a lock: no other columns are wanted than these, which the keys of the index say; without an index none.
    /// Rows may then be made of keys.
    pub covering: Option<Arc<Covering>>,
    /// By one whole key of an index, upward, without a lock: rows that have none of their entries at one of these keys are not looked at.
    pub also: Arc<[(IndexId, Vec<u8>)]>,
}

/// Where a scan goes on in its next slice. Survives changes of the index in between.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ScanPosition {
    #[default]
    Start,
    AfterEntry(Vec<u8>, RowId),
    /// The row of this entry is waited for.
    BeforeEntry(Vec<u8>, RowId),
    AfterRow(RowId),
}

/// A row that a scan found.
pub struct ScanRow<'a> {
    /// The index key; empty in scans without an index.
    pub key: &'a [u8],
    pub layout: u16,
    /// Of a covering scan only with the columns that were wanted.
    pub row: RowView<'a>,
    /// In a locking scan: the row has changed after the transaction's snapshot. The visitor decides by the condition
    /// alone; if it keeps the row, the scan fails with [`Stop::Changed`].
    pub changed: bool,
}

/// What the visitor wants done with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Keep it (and its lock); go on.
    Keep,
    /// It does not match: give back a lock that this scan took on it; go on.
    Skip,
    /// Keep it and stop here; the position is behind it.
    KeepAndStop,
    /// Give back its lock and stop here; the position is behind it.
    SkipAndStop,
}

impl Verdict {
    pub fn keeps(self) -> bool {
        matches!(self, Verdict::Keep | Verdict::KeepAndStop)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanEnd {
    /// Nothing is left.
    Finished,
    /// The slice's budget is used up or the visitor stopped; call again with the same position.
    More,
}

pub struct Partition {
    id: PartitionId,
    budget: Arc<MemoryBudget>,
    /// The limit of another replica that has no room.
    full_elsewhere: Option<u64>,
    is_read_only: bool,
    /// The table that the walk over the stored rows is in.
    scrubbing: TableId,
    fragments: Fragments,
    versions: VersionTable,
    locks: LockTable,
    txns: TxnTable,
    /// What is under way for transactions, oldest first.
    ends: VecDeque<UnderWay>,
    /// How many there have been.
    ends_begun: u64,
    ranges: RangeTable,
    names: NameTable,
    garbage: VecDeque<Garbage>,
    history_bytes: u64,
    history_limit: u64,
    buried: Buried,
    buried_bytes: usize,
    waiting: Waiting,
    /// The highest commit time installed here.
    finished: Timestamp,
    times: Arc<TimeBounds>,
    /// Bytes of side tables that the budget has.
    counted: u64,
    // Buffers that calls use again.
    keys: KeyList,
    lost: KeyList,
    scratch: Vec<u8>,
    entry: Vec<u8>,
    image: Vec<u8>,
}

impl Partition {
    pub fn new(id: PartitionId, budget: Arc<MemoryBudget>) -> Self {
        Partition {
            id,
            scrubbing: TableId(0),
            fragments: Fragments::new(budget.clone()),
            versions: VersionTable::new(budget.clone()),
            locks: LockTable::new(),
            txns: TxnTable::new(),
            ends: VecDeque::new(),
            ends_begun: 0,
            ranges: RangeTable::default(),
            names: NameTable::default(),
            garbage: VecDeque::new(),
            history_bytes: 0,
            history_limit: u64::MAX,
            buried: Buried::default(),
            buried_bytes: 0,
            waiting: Waiting::default(),
            finished: Timestamp::ZERO,
            times: Arc::default(),
            counted: 0,
            keys: KeyList::default(),
            lost: KeyList::default(),
            scratch: Vec::new(),
            entry: Vec::new(),
            image: Vec::new(),
            full_elsewhere: None,
            is_read_only: false,
            budget,
        }
    }

    pub fn id(&self) -> PartitionId {
        self.id
    }

    /// The highest snapshot that has been read here.
    pub fn max_read(&self) -> Timestamp {
        self.times.max_read()
    }

    /// What commit times here are above, for whoever picks them.
    pub fn times(&self) -> &Arc<TimeBounds> {
        &self.times
    }

    /// From here on these bounds are this partition's, raised to what its own were: those of a group, whose commits
    /// have one time in all of its partitions.
    pub fn share_times(&mut self, times: &Arc<TimeBounds>) {
        times.raise_max_read(self.times.max_read());
        times.raise_finished(self.times.finished());
        self.times = times.clone();
    }

    /// What commits from now on is above `time`: before a read at that snapshot looks, wherever it looks.
    pub fn raise_max_read(&mut self, time: Timestamp) {
        self.times.raise_max_read(time);
    }

    /// The highest commit time installed here.
    pub fn finished(&self) -> Timestamp {
        self.finished
    }

    fn raise_finished(&mut self, time: Timestamp) {
        self.finished = self.finished.max(time);
        self.times.raise_finished(time);
    }

    /// A locking read or a write is about to compare what is here with the transaction's snapshot.
    #[inline]
    fn about_to_compare(&mut self, access: &Access<'_>) {
        if let Some(time) = access.conflict_after {
            self.raise_max_read(time);
        }
    }

    /// A plain read at a snapshot is about to look.
    #[inline]
    fn about_to_look(&mut self, at: ReadAt) {
        if let ReadAt::Snapshot(time) = at {
            self.raise_max_read(time);
        }
    }

    /// Forgets all rows, versions, locks and transactions, for a copy that begins; the tables' definitions stay, empty. Who waited here is woken,
    /// and finds nothing. What was read here was read: `max_read` stays.
    pub fn clear(&mut self) {
        let mut schemas: Vec<_> = self.fragments.schemas().cloned().collect();
        schemas.sort_unstable_by_key(|s| s.id);
        let mut woken = std::mem::take(&mut self.locks.granted);
        woken.extend(self.txns.waiting());
        woken.sort_unstable();
        woken.dedup();
        let mut empty = Partition::new(self.id, self.budget.clone());
        empty.locks.granted = woken;
        empty.history_limit = self.history_limit;
        empty.times = self.times.clone();
        empty.full_elsewhere = self.full_elsewhere;
        empty.txns.chunk_bytes = self.txns.chunk_bytes;
        empty.txns.slice = self.txns.slice;
        empty.ends_begun = self.ends_begun;
        for schema in schemas {
            empty.create_table(schema);
        }
        empty.settle();
        *self = empty;
    }

    /// Another replica of this partition has no room (its limit): whatever needs some is refused here, too.
    pub fn set_full_elsewhere(&mut self, limit: Option<u64>) {
        self.full_elsewhere = limit;
    }

    pub fn full_elsewhere(&self) -> Option<u64> {
        self.full_elsewhere
    }

    /// Transactions that have not written yet can write nothing: it is not known what the rows should be. What is written
    /// already may be committed, and what the stream brings is taken in.
    pub fn set_read_only(&mut self, is_read_only: bool) {
        self.is_read_only = is_read_only;
    }

    fn may_write(&self) -> Result<(), Stop> {
        if self.is_read_only { Err(Stop::ReadOnly) } else { Ok(()) }
    }

    fn has_room_elsewhere(&self) -> Result<(), MemoryFull> {
        self.full_elsewhere.map_or(Ok(()), |limit| Err(MemoryFull { limit }))
    }

    fn side_bytes(&self) -> u64 {
        let garbage = self.garbage.capacity() * size_of::<Garbage>();
        let buried = self.buried.allocation_size() + self.buried_bytes + self.waiting.bytes();
        let rows = self.versions.side_bytes() + self.locks.bytes();
        let ends = self.ends.capacity() * size_of::<UnderWay>();
        let locks = self.txns.bytes() + ends + self.ranges.bytes() + self.names.bytes();
        (rows + locks + garbage + buried) as u64
    }

    /// Tells the budget what side tables have grown or shrunk by.
    fn settle(&mut self) {
        let now = self.side_bytes();
        if now > self.counted {
            self.budget.add(now - self.counted);
        } else if now < self.counted {
            self.budget.subtract(self.counted - now);
        }
        self.counted = now;
    }
}

impl Drop for Partition {
    fn drop(&mut self) {
        self.budget.subtract(self.counted);
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableUsage {
    pub rows: u64,
    pub row_bytes: u64,
    pub hash_bytes: u64,
    pub ordered_bytes: u64,
    pub history_bytes: u64,
}
