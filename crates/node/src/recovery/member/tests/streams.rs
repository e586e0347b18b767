//! A node's log, and for each of its groups a primary elsewhere that goes along: what the node logs is what such a
//! primary's follower logs. The first group has two partitions.

use super::super::{Back, MemberGroup, MemberParts, open_member};
use crate::database::Config;
use crate::error::NodeError;
use crate::member::group_rows::Share;
use crate::recovery::writes;
use crate::runtime::threads::Threads;
use bytes::Bytes;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rauk_cluster::replica::{Contents, Entry, EntryId, LogRecord};
use rauk_cluster::{Effect, Outcome, Record, TxnTable};
use rauk_kernel::{CopyCursor, Horizon, MemoryBudget, Partition, RowId, TxnRef, TxnState};
use rauk_log::record::CommitBuilder;
use rauk_log::{CheckpointWriter, DatabaseId, Disk, Lsn, Manifest, MemoryDisk, RedoLog, Superblocks};
use rauk_types::layout::EVERYWHERE;
use rauk_types::schema::BUCKETS;
use rauk_types::{
    Column, ColumnId, DataType, GroupId, IndexId, IndexKind, IndexPart, IndexSchema, Layout, PartitionId, Position,
    TableId, TableSchema, Timestamp, TxnId, Value, View, row,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The cluster has never gone back to a cut.
pub fn nowhere() -> Back<'static> {
    static NEVER: std::sync::LazyLock<rauk_manage::group::Recovery> = std::sync::LazyLock::new(Default::default);
    Back { node: rauk_types::NodeId(1), recovery: &NEVER, keeps_later: false }
}

pub const CLUSTER: DatabaseId = DatabaseId([7; 16]);
/// Partitions over which rows are spread, and those of the last group.
const SPREAD: u16 = 3;
pub const PARTITIONS: u16 = SPREAD + 1;
pub const GROUPS: u16 = 3;
/// The second table is dropped in some tests.
pub const TABLES: [TableId; 2] = [TableId(11), TableId(12)];
const KEYS: i64 = 12;
const NOW: Duration = Duration::ZERO;
const HORIZON: Horizon = Horizon { oldest_snapshot: Timestamp::MAX, durable: Timestamp::MAX };

pub fn layout() -> Layout {
    Layout::new(SPREAD, GROUPS - 1).unwrap()
}

/// Where a row of a group is.
pub fn partition_of(group: usize, id: i64) -> u16 {
    let all = layout().partitions_of(GroupId(group as u16));
    all.start + id as u16 % all.len() as u16
}

pub fn bucket_of(group: usize, id: i64) -> u16 {
    match partition_of(group, id) {
        SPREAD => EVERYWHERE,
        partition => partition * (BUCKETS / SPREAD),
    }
}

pub fn schema(id: TableId) -> Arc<TableSchema> {
    let columns = vec![
        Column::new(ColumnId(0), "id", DataType::BIGINT, false),
        Column::new(ColumnId(1), "value", DataType::BIGINT, false),
    ];
    let by_value = IndexSchema {
        id: IndexId(1),
        name: "by_value".into(),
        kind: IndexKind::Ordered,
        parts: vec![IndexPart { column: 1, prefix: None, descending: false }],
        ..IndexSchema::primary(&[0])
    };
    Arc::new(TableSchema::new(id, "d", format!("t{}", id.0), columns, vec![IndexSchema::primary(&[0]), by_value]))
}

pub fn row(table: TableId, id: i64, value: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    row::encode_row(&schema(table), &[Value::Int(id), Value::Int(value)], &mut bytes);
    bytes
}

pub fn key(table: TableId, id: i64) -> Vec<u8> {
    let (schema, mut bytes) = (schema(table), Vec::new());
    schema.key_def(schema.primary()).encode_values(&[Value::Int(id), Value::Int(0)], &mut bytes);
    bytes
}

pub fn config() -> Config {
    Config { segment_bytes: 1 << 20, ..Config::default() }
}

pub fn loaded(disk: &Arc<dyn Disk>) -> Arc<Superblocks> {
    Arc::new(Superblocks::load(disk).unwrap())
}

pub fn reopen(disk: &Arc<dyn Disk>, tables: &[TableId]) -> Result<MemberParts, NodeError> {
    let runtime = Threads::with_fatal(|reason| panic!("{reason}")).unwrap();
    let tables: Vec<_> = tables.iter().map(|t| schema(*t)).collect();
    open_member(&config(), loaded(disk), &*runtime, CLUSTER, layout(), &tables, nowhere(), &|_| {})
}

/// Committed rows of a table: bytes, with their times.
pub fn rows(partition: &Partition, table: TableId) -> BTreeMap<Vec<u8>, Timestamp> {
    let mut rows = BTreeMap::new();
    partition.checkpoint_slice(table, RowId(0), usize::MAX, &mut |_, time, row| {
        assert!(rows.insert(row.to_vec(), time).is_none());
    });
    rows
}

/// A copy that the node is getting.
struct Copy {
    /// The partition, and where to go on in it; `None`: it has everything.
    cursor: Option<(usize, CopyCursor)>,
    begun: Lsn,
}

/// A group at its primary, and what the node has logged of it.
pub struct Stream {
    number: u16,
    partitions: Vec<Partition>,
    table: TxnTable,
    txns: BTreeMap<TxnId, TxnRef>,
    /// Rows of transactions that are not decided.
    held: BTreeMap<TxnId, Vec<(TableId, i64)>>,
    /// The whole stream.
    entries: Vec<Entry>,
    view: u64,
    stable: u64,
    /// What the node's log says of it.
    logged: u64,
    whole: bool,
    copy: Option<Copy>,
    /// Where its last copy began: nothing before that can be cut.
    base: u64,
    /// The node has logged something.
    begun: bool,
}

impl Stream {
    fn new(number: u16) -> Stream {
        let times = Arc::default();
        let partition = |number| {
            let mut partition = Partition::new(PartitionId(number), Arc::new(MemoryBudget::new(1 << 40)));
            partition.share_times(&times);
            TABLES.iter().for_each(|t| partition.create_table(schema(*t)));
            partition
        };
        Stream {
            number,
            partitions: layout().partitions_of(GroupId(number)).map(partition).collect(),
            table: TxnTable::default(),
            txns: BTreeMap::new(),
            held: BTreeMap::new(),
            entries: Vec::new(),
            view: 1,
            stable: 0,
            logged: 0,
            whole: true,
            copy: None,
            base: 0,
            begun: false,
        }
    }

    fn last(&self) -> EntryId {
        self.entries.last().map(|e| e.id).unwrap_or_default()
    }

    /// What is not stable and can be cut lies behind this.
    fn floor(&self) -> u64 {
        self.stable.max(self.base)
    }

    /// The last positions of the views that have an entry at `from` or behind it.
    fn views(&self, from: u64) -> Vec<EntryId> {
        let mut views: Vec<EntryId> = Vec::new();
        for entry in &self.entries {
            match views.last_mut().filter(|id| id.view == entry.id.view) {
                Some(last) => *last = entry.id,
                None => views.push(entry.id),
            }
        }
        views.retain(|id| id.position.0 >= from);
        views
    }

    fn apply(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Adopt { txn, least, number, writes } => {
                    let adopted = TxnRef::new(txn);
                    adopted.status.set(TxnState::Prepared(least));
                    for partition in &mut self.partitions {
                        let share = Share { layout: layout(), partition: partition.id().0 };
                        writes::adopt(partition, &adopted, number, &writes, share, &mut |_| false).unwrap();
                    }
                    self.txns.insert(txn, adopted);
                }
                Effect::Commit { txn, time, .. } => {
                    self.txns.remove(&txn).unwrap().status.set(TxnState::Committed(time));
                    self.partitions.iter_mut().for_each(|p| p.commit(txn, time, HORIZON));
                    self.held.remove(&txn);
                }
                Effect::Abort { txn } => {
                    if let Some(adopted) = self.txns.remove(&txn) {
                        adopted.status.set(TxnState::Aborted);
                    }
                    self.partitions.iter_mut().for_each(|p| p.abort(txn));
                    self.held.remove(&txn);
                }
                Effect::Answer { .. } | Effect::Confirmed { .. } => {}
                chunk @ (Effect::Chunk { .. } | Effect::Back { .. } | Effect::Compare { .. }) => {
                    panic!("nobody writes {chunk:?}")
                }
                Effect::Wrong { what } => panic!("{what}"),
            }
        }
    }

    fn propose(&mut self, record: &Record) -> Entry {
        let position = Position(self.last().position.0 + 1);
        let entry = Entry { id: EntryId { view: View(self.view), position }, record: record.encode() };
        self.entries.push(entry.clone());
        let mut effects = Vec::new();
        self.table.on_entry(NOW, position, record, &mut effects);
        self.apply(effects);
        entry
    }

    fn stabilise(&mut self, upto: u64) {
        self.stable = upto;
        let mut effects = Vec::new();
        self.table.on_stable(Position(upto), &mut effects);
        self.apply(effects);
    }
}

/// A node's disk and log, and its groups' streams.
pub struct World {
    pub disk: Arc<dyn Disk>,
    superblocks: Arc<Superblocks>,
    pub log: RedoLog,
    pub streams: Vec<Stream>,
    pub rng: SmallRng,
    next_txn: u64,
    checkpoint: u64,
    /// How often: copies that came to their end, cuts, checkpoints, entries that were called stable late.
    pub seen: [u64; 4],
}

impl World {
    pub fn new(seed: u64) -> World {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        let MemberParts { superblocks, log, .. } = reopen(&disk, &TABLES).unwrap();
        let streams = (0..GROUPS).map(Stream::new).collect();
        let rng = SmallRng::seed_from_u64(seed);
        World { disk, superblocks, log, streams, rng, next_txn: 0, checkpoint: 0, seen: [0; 4] }
    }

    pub fn write(&mut self, number: usize, record: &LogRecord) {
        self.streams[number].begun = true;
        let mut builder = CommitBuilder::default();
        builder.stream(GroupId(number as u16), &postcard::to_stdvec(record).unwrap());
        self.log.append(builder.payload()).unwrap();
    }

    /// An entry that the node gets, if it has the partition or is getting it.
    pub fn entry(&mut self, number: usize, record: &Record) {
        let stream = &mut self.streams[number];
        let entry = stream.propose(record);
        if stream.whole || stream.copy.is_some() {
            let known = stream.stable.min(entry.id.position.0);
            let logged = self.rng.random_range(stream.logged.min(known)..=known);
            stream.logged = stream.logged.max(logged);
            let stable = Position(logged);
            let twice = self.rng.random_ratio(1, 20);
            for _ in 0..1 + u32::from(twice) {
                self.write(number, &LogRecord::Entry { entry: entry.clone(), stable });
            }
        }
    }

    /// An entry that only the node has, stable.
    pub fn write_unchecked(&mut self, number: usize, record: &Record) {
        let position = Position(self.streams[number].last().position.0 + 1);
        let entry = Entry { id: EntryId { view: View(1), position }, record: record.encode() };
        self.write(number, &LogRecord::Entry { entry, stable: position });
    }

    fn txn(&mut self) -> TxnId {
        self.next_txn += 1;
        TxnId(self.next_txn)
    }

    /// Writes of rows that nobody holds.
    fn writes(&mut self, number: usize, txn: TxnId) -> Bytes {
        let mut builder = CommitBuilder::default();
        let stream = &mut self.streams[number];
        let mut mine = Vec::new();
        for _ in 0..self.rng.random_range(0..4) {
            let at = (TABLES[self.rng.random_range(0..2)], self.rng.random_range(0..KEYS));
            if mine.contains(&at) || stream.held.values().any(|held| held.contains(&at)) {
                continue;
            }
            mine.push(at);
            match self.rng.random_range(0..4) {
                0 => builder.delete(bucket_of(number, at.1), at.0, &key(at.0, at.1)),
                _ => builder.put(bucket_of(number, at.1), at.0, 0, &row(at.0, at.1, self.rng.random_range(0..1000))),
            }
        }
        stream.held.insert(txn, mine);
        Bytes::copy_from_slice(builder.payload())
    }

    pub fn propose(&mut self, number: usize) {
        let txn = self.txn();
        let stream = &self.streams[number];
        let least = stream.partitions[0].times().least_time(Timestamp::ZERO);
        let undecided = stream.table.undecided(NOW);
        let record = match self.rng.random_range(0..20) {
            0 => Record::Opening,
            1 => Record::Fence { txn },
            2 => {
                let all: Vec<TxnId> = (1..self.next_txn).map(TxnId).collect();
                Record::Forget { txns: stream.table.forgettable(&all) }
            }
            3..8 if !undecided.is_empty() => {
                let one = &undecided[self.rng.random_range(0..undecided.len())];
                let time = Timestamp(one.least.0 + self.rng.random_range(0..3));
                let fresh = match self.rng.random_ratio(3, 4) {
                    true => Outcome::Committed(time),
                    false => Outcome::Aborted,
                };
                Record::Decide { txn: one.txn, outcome: stream.table.outcome(one.txn).unwrap_or(fresh) }
            }
            3..11 => {
                let writes = self.writes(number, txn);
                let other = GroupId(number as u16 + 1);
                Record::Prepare { txn, participants: vec![GroupId(number as u16), other], least, writes }
            }
            _ => Record::Commit { txn, time: least, writes: self.writes(number, txn) },
        };
        self.entry(number, &record);
    }

    pub fn stabilise(&mut self, number: usize) {
        let stream = &mut self.streams[number];
        let last = stream.last().position.0;
        let upto = self.rng.random_range(stream.stable..=last);
        stream.stabilise(upto);
        if self.rng.random_ratio(1, 6) && (stream.whole || stream.copy.is_some()) {
            stream.logged = upto;
            self.write(number, &LogRecord::Stable { stable: Position(upto) });
        }
    }

    /// Another primary, which lacks some of what is not stable.
    fn cut(&mut self, number: usize) {
        let stream = &mut self.streams[number];
        let last = stream.last().position.0;
        let after = self.rng.random_range(stream.floor()..=last);
        stream.view += 1;
        if after < last {
            self.seen[1] += 1;
            stream.entries.truncate(after as usize);
            let mut effects = Vec::new();
            stream.table.on_cut(Position(after), &mut effects);
            stream.apply(effects);
        }
        self.entry(number, &Record::Opening);
    }

    /// A step of a copy.
    fn copy(&mut self, number: usize) {
        let begun = self.log.end_lsn();
        let rows = self.rng.random_range(1..6);
        let stream = &mut self.streams[number];
        let record = match &mut stream.copy {
            None => {
                stream.copy = Some(Copy { cursor: Some((0, CopyCursor::default())), begun });
                stream.whole = false;
                stream.logged = stream.stable;
                stream.base = stream.last().position.0;
                let (from, stable) = (stream.last(), Position(stream.stable));
                LogRecord::Reset { from, stable, history: stream.views(0), state: stream.table.encode() }
            }
            Some(Copy { cursor: Some((number, at)), .. }) => {
                let (number, mut slice) = (*number, Vec::new());
                let next = stream.partitions[number].copy_slice(*at, rows, 1000, &mut slice);
                let following = number + 1 < stream.partitions.len();
                let next = next.map(|next| (number, next));
                let next = next.or(following.then(|| (number + 1, CopyCursor::default())));
                stream.copy.as_mut().unwrap().cursor = next;
                LogRecord::Rows { rows: slice.into() }
            }
            Some(Copy { cursor: None, .. }) => {
                (stream.whole, stream.copy) = (true, None);
                self.seen[0] += 1;
                LogRecord::Whole
            }
        };
        self.write(number, &record);
    }

    pub fn step(&mut self) {
        let number = self.rng.random_range(0..usize::from(GROUPS));
        let copying = !self.streams[number].whole;
        match self.rng.random_range(0..40) {
            0..18 if copying => self.copy(number),
            0..24 => self.propose(number),
            24..34 => self.stabilise(number),
            34 => self.cut(number),
            _ if self.rng.random_ratio(1, 10) => self.copy(number),
            _ => {}
        }
    }

    /// A checkpoint with other work in between.
    pub fn checkpoint(&mut self) {
        self.seen[2] += 1;
        let copies = self.streams.iter().filter_map(|s| s.copy.as_ref()).map(|c| c.begun);
        let redo_start = copies.min().map_or(self.log.end_lsn(), |begun| begun.min(self.log.end_lsn()));
        for number in 0..self.streams.len() {
            let stream = &self.streams[number];
            let anchor = match stream.whole || stream.copy.is_some() {
                true => {
                    let kept = stream.entries[stream.floor() as usize..].to_vec();
                    let before = stream.last().position.0 - kept.len() as u64;
                    LogRecord::Anchor {
                        last: stream.last(),
                        stable: Position(stream.stable),
                        history: stream.views(before),
                        kept,
                        contents: if stream.whole { Contents::Whole } else { Contents::Partial },
                        state: stream.table.encode(),
                    }
                }
                false => nothing_whole(),
            };
            self.write(number, &anchor);
            self.step();
        }
        self.checkpoint += 1;
        let mut files = Vec::new();
        for number in 0..self.streams.len() {
            (0..self.rng.random_range(0..6)).for_each(|_| self.step());
            let stream = &self.streams[number];
            for partition in &stream.partitions {
                let number = partition.id().0;
                let mut writer = CheckpointWriter::create(&self.disk, CLUSTER, self.checkpoint, number).unwrap();
                for table in TABLES.iter().filter(|_| stream.whole) {
                    for (row, time) in rows(partition, *table) {
                        writer.put(*table, 0, time, &row).unwrap();
                    }
                }
                files.push(writer.finish().unwrap());
            }
        }
        self.log.flush().unwrap();
        let mut manifest = Manifest {
            checkpoint: self.checkpoint,
            redo_start,
            redo_durable: self.log.durable_lsn(),
            files,
            ..Manifest::new(CLUSTER, PARTITIONS, "fsync")
        };
        manifest.store(&self.superblocks).unwrap();
        self.log.release_before(redo_start).unwrap();
    }

    /// What was opened is what the primaries have, once it hears what is stable.
    pub fn check(&mut self, parts: &mut MemberParts, tables: &[TableId]) {
        parts.partitions.iter().for_each(Partition::validate);
        for (stream, found) in self.streams.iter().zip(&mut parts.groups) {
            let all = layout().partitions_of(found.group);
            let partitions = &mut parts.partitions[usize::from(all.start)..usize::from(all.end)];
            match stream.whole {
                true => {
                    self.seen[3] += stream.compare(found, partitions, tables);
                }
                false => {
                    assert_eq!(found.restored.as_ref().map(|r| r.contents), Some(Contents::Partial));
                    let is_empty = |p: &Partition| tables.iter().all(|t| rows(p, *t).is_empty());
                    assert!(partitions.iter().all(is_empty) && found.pending.is_empty());
                }
            }
        }
    }

    /// The node starts again, on what it finds.
    pub fn restart(&mut self) {
        self.log.flush().unwrap();
        let mut parts = reopen(&self.disk, &TABLES).unwrap();
        self.check(&mut parts, &TABLES);
        assert!(parts.passed_over.is_empty());
        for stream in &mut self.streams {
            // What was not whole needs a new copy.
            stream.copy = None;
        }
        (self.superblocks, self.log) = (parts.superblocks, parts.log);
    }
}

impl Stream {
    /// Gives 1 if the node did not know all that is stable.
    fn compare(&self, found: &mut MemberGroup, partitions: &mut [Partition], tables: &[TableId]) -> u64 {
        let number = self.number;
        let Some(restored) = &found.restored else {
            assert!(!self.begun, "group {number} is forgotten");
            return 0;
        };
        assert_eq!(restored.contents, Contents::Whole, "group {number}");
        assert!(restored.stable.0 <= self.stable && restored.stable.0 >= self.logged, "group {number}");
        assert_eq!(restored.history.last().copied().unwrap_or_default(), self.last());
        assert!(self.entries.ends_with(&restored.kept), "group {number}: entries that are kept");
        let floor = restored.stable.0.max(self.base);
        assert!(restored.kept.len() as u64 >= self.last().position.0 - floor, "all that may be cut is kept");
        let listed: Vec<TxnId> = found.table.pending().iter().map(id_of).collect();
        assert!(listed.iter().all(|id| found.pending.contains_key(id)) && listed.len() == found.pending.len());
        for (id, standing) in &found.pending {
            let status = standing.txn.status.get();
            assert!(matches!(status, TxnState::Prepared(_)), "{id:?} is {status:?}");
            let stands = |p: &&Partition| p.has_transaction(*id);
            let parts: Vec<u16> = partitions.iter().filter(stands).map(|p| p.id().0).collect();
            assert!(parts.iter().all(|p| standing.parts.contains(p)), "{id:?} stands in {parts:?}");
        }
        // The primary tells what is stable.
        let mut effects = Vec::new();
        found.table.on_stable(Position(self.stable), &mut effects);
        for effect in effects {
            if let Effect::Commit { txn, time, .. } = effect {
                found.pending.remove(&txn).unwrap().txn.status.set(TxnState::Committed(time));
                partitions.iter_mut().for_each(|p| p.commit(txn, time, HORIZON));
            }
        }
        partitions.iter().for_each(Partition::validate);
        assert_eq!(found.table.pending(), self.table.pending(), "group {number}");
        assert_eq!(found.table.encode(), self.table.encode(), "group {number}");
        for (ours, theirs) in partitions.iter().zip(&self.partitions) {
            for table in tables {
                assert_eq!(rows(ours, *table), rows(theirs, *table), "group {number}, partition {}", ours.id().0);
            }
        }
        // What is pending can be committed.
        for (id, standing) in std::mem::take(&mut found.pending) {
            standing.txn.status.set(TxnState::Committed(Timestamp(1 << 40)));
            partitions.iter_mut().for_each(|p| p.commit(id, Timestamp(1 << 40), HORIZON));
        }
        partitions.iter().for_each(Partition::validate);
        u64::from(restored.stable.0 < self.stable)
    }
}

/// The anchor of a group whose copy did not come to its end.
pub fn nothing_whole() -> LogRecord {
    LogRecord::Anchor {
        last: EntryId::default(),
        stable: Position(0),
        history: Vec::new(),
        kept: Vec::new(),
        contents: Contents::Partial,
        state: TxnTable::default().encode(),
    }
}

fn id_of(effect: &Effect) -> TxnId {
    match effect {
        Effect::Adopt { txn, .. } => *txn,
        other => panic!("{other:?} is not pending"),
    }
}
