//! Replaying the streams: the log's records, group by group, into transaction tables, and what these say into rows.
//!
//! A round has two parts. First each group's stream is worked off, all groups at once ([`StreamReplay`]): that comes to
//! steps for its partitions. Then these take them, all partitions at once ([`RowReplay`]).
//!
//! *What is known to be stable.* A follower writes an entry into its log before it may know more than that the entries before the last message are stable, so that
//! the end of a log may have entries that are stable and are not called so. For most of them that does not matter: they stand as pending until
//! the primary says. But two of them may write one row, and only one transaction can hold it. The second proves the first: a primary gives a row's lock to
//! the next transaction only when the entry before is stable, or decided by a later entry of the stream. So what is written over is committed here.
//!
//! *A hole.* Earlier builds could log an entry although the one before it had found no room. The log then has the
//! stream up to the hole only, and the process may have acknowledged what is behind it. So nothing of the group counts,
//! up to the beginning of a later copy; the caller says whether another node has all of it ([`Ended::hole`]).

use super::super::progress::RecoveryStep;
use super::super::writes::{self, WritesError};
use super::super::{Shared, broken, for_each, for_each_partition};
use super::back::Goal;
use super::rows::{RowReplay, RowWork};
use crate::error::NodeError;
use crate::member::group_rows::{Parts, copied, written};
use crate::runtime::Runtime;
use bytes::Bytes;
use parking_lot::Mutex;
use rauk_cluster::replica::{Contents, Entry, Limits, LogRecord, Replay, ReplayError, Restored, Step};
use rauk_cluster::{Effect, Record, TxnTable};
use rauk_kernel::{TxnRef, TxnState, Write};
use rauk_log::RedoReader;
use rauk_log::record::{Change, changes};
use rauk_types::row::sparse::read_sparse;
use rauk_types::{GroupId, KeyDef, Layout, Position, RowView, TableId, TableSchema, TxnId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Bytes of records in one round.
const ROUND_BYTES: usize = 32 << 20;

/// What is wrong, in words: the caller says in which partition.
type Wrong = String;

/// A round's records, by group.
struct Round {
    bytes: Vec<u8>,
    records: Vec<Vec<Range<usize>>>,
}

/// What a replay works on: the streams by group, the rows by partition.
pub(super) struct Replaying {
    pub layout: Layout,
    pub streams: Vec<Mutex<StreamReplay>>,
    pub rows: Vec<Mutex<RowReplay>>,
}

impl Replaying {
    pub fn new(layout: Layout, now: Duration, goal: impl Fn(GroupId) -> Option<Goal>) -> Replaying {
        let stream = |group| Mutex::new(StreamReplay::new(layout, group, now, goal(group)));
        let rows = |partition| Mutex::new(RowReplay::new(layout, partition));
        Replaying {
            layout,
            streams: layout.groups().map(GroupId).map(stream).collect(),
            rows: layout.partitions().map(rows).collect(),
        }
    }

    /// Gives the partitions of a group what its stream has come to.
    fn hand_out(&self, work: Vec<(u16, RowWork)>) {
        for (partition, work) in work {
            self.rows[usize::from(partition)].lock().push(work);
        }
    }
}

pub(super) fn redo(
    reader: &mut RedoReader,
    runtime: &dyn Runtime,
    shared: &Arc<Shared>,
    replaying: &Arc<Replaying>,
    progress: &dyn Fn(&str),
) -> Result<(), NodeError> {
    shared.progress.enter(RecoveryStep::RedoLog);
    loop {
        let (round, ended) = read_round(reader, replaying.streams.len())?;
        let streams = replaying.clone();
        for_each(streams.streams.len(), runtime, shared, move |shared, group| {
            let mut stream = streams.streams[group].lock();
            for range in &round.records[group] {
                let done = stream.record(&round.bytes[range.clone()]);
                done.map_err(|what| broken(&format!("group {group}: {what}")))?;
            }
            shared.rows.fetch_add(round.records[group].len() as u64, Ordering::Relaxed);
            streams.hand_out(stream.take_work());
            Ok(())
        })?;
        take_in(runtime, shared, replaying)?;
        shared.fitting.check_available()?;
        let (done, all) = reader.progress();
        let rows = shared.rows.load(Ordering::Relaxed);
        shared.progress.redo_replayed(done, rows);
        if ended {
            return Ok(());
        }
        progress(&format!("replaying the redo log: {rows} rows and records, {} %", done * 100 / all.max(1)));
    }
}

/// The partitions take in what the streams have come to.
fn take_in(runtime: &dyn Runtime, shared: &Arc<Shared>, replaying: &Arc<Replaying>) -> Result<(), NodeError> {
    let rows = replaying.clone();
    for_each_partition(runtime, shared, move |shared, number| {
        let mut partition = shared.partitions[number].lock();
        let done = rows.rows[number].lock().take_in(&mut partition, &shared.known);
        done.map_err(|what| broken(&format!("partition {number}: {what}")))
    })
}

/// All records were there: completes the streams, then the rows, and puts beside these what is not decided.
pub(super) fn finish(
    runtime: &dyn Runtime,
    shared: &Arc<Shared>,
    replaying: &Arc<Replaying>,
    tables: &[Arc<TableSchema>],
) -> Result<Vec<Ended>, NodeError> {
    let ended: Arc<Vec<Mutex<Option<Ended>>>> = Arc::new(replaying.streams.iter().map(|_| Mutex::default()).collect());
    let (streams, tables, results) = (replaying.clone(), Arc::new(tables.to_vec()), ended.clone());
    for_each(streams.streams.len(), runtime, shared, move |_, group| {
        let end = streams.streams[group].lock().finish(&tables);
        let end = end.map_err(|what| broken(&format!("group {group}: {what}")))?;
        streams.hand_out(streams.streams[group].lock().take_work());
        *results[group].lock() = Some(end);
        Ok(())
    })?;
    take_in(runtime, shared, replaying)?;
    shared.progress.enter(RecoveryStep::Indexes);
    let (rows, results) = (replaying.clone(), ended.clone());
    for_each_partition(runtime, shared, move |shared, number| {
        let group = usize::from(rows.layout.group_of(number as u16).0);
        let (is_empty, pending) = match &*results[group].lock() {
            Some(end) => (end.is_empty(), end.pending.clone()),
            None => return Err(broken("a recovery job is still running")),
        };
        let mut partition = shared.partitions[number].lock();
        let done = rows.rows[number].lock().finish(&mut partition, &shared.known, is_empty, &pending);
        shared.progress.partition_filled();
        done.map_err(|what| broken(&format!("partition {number}: {what}")))
    })?;
    let still_running = || broken("a recovery job is still running");
    ended.iter().map(|end| end.lock().take().ok_or_else(still_running)).collect()
}

fn read_round(reader: &mut RedoReader, groups: usize) -> Result<(Round, bool), NodeError> {
    let mut round = Round { bytes: Vec::new(), records: (0..groups).map(|_| Vec::new()).collect() };
    while round.bytes.len() < ROUND_BYTES {
        let Some(entry) = reader.next()? else { return Ok((round, true)) };
        for change in changes(entry.payload) {
            let at = entry.start.0;
            match change.map_err(|e| broken(&format!("redo record at position {at}: {e}")))? {
                Change::Stream { group, bytes } => {
                    let list = round.records.get_mut(usize::from(group.0));
                    let list = list.ok_or_else(|| broken(&format!("group {} in the redo log", group.0)))?;
                    let start = round.bytes.len();
                    round.bytes.extend_from_slice(bytes);
                    list.push(start..round.bytes.len());
                }
                // Counters are the control plane's.
                Change::Counter { .. } => {}
                Change::Put { .. } | Change::Sparse { .. } | Change::Delete { .. } => {
                    let what = format!("redo record at position {at} changes rows outside of any group's stream");
                    return Err(broken(&what));
                }
            }
        }
    }
    Ok((round, false))
}

/// One group's stream so far.
pub(super) struct StreamReplay {
    layout: Layout,
    group: GroupId,
    replay: Replay,
    table: TxnTable,
    now: Duration,
    /// The log begins in the middle of a copy: its first slices are nowhere.
    headless: bool,
    /// Where the newest copy was whole; `None`: there was none in the log. The maximum: it is not whole.
    copied_at: Option<Position>,
    /// It goes back to a cut.
    goal: Option<Goal>,
    /// It has that cut, and a copy took its place later: nothing counts from there on.
    replaced: bool,
    /// Entries are missing in the log: what was found.
    hole: Option<Wrong>,
    /// What it has come to for the rows of its partitions.
    work: Vec<(u16, RowWork)>,
    // Buffers that are used again.
    steps: Vec<Step>,
    effects: Vec<Effect>,
}

/// What a transaction has written that is not decided: one of its chunks, or what its naming entry has.
#[derive(Clone)]
pub(super) struct Undecided {
    pub txn: TxnRef,
    pub number: u32,
    pub writes: Bytes,
    /// Where it has these writes.
    pub parts: Parts,
    /// No entry names the transaction.
    pub is_open: bool,
}

/// What a group's stream has come to.
pub(super) struct Ended {
    pub table: TxnTable,
    pub restored: Option<Restored>,
    /// The log lacks entries of the stream, so that nothing of the group is here.
    pub hole: Option<Wrong>,
    /// In the order in which they stand beside the rows.
    pub pending: Vec<Undecided>,
}

impl Ended {
    /// Whether nothing of the rows counts: the next copy begins with nothing.
    fn is_empty(&self) -> bool {
        self.restored.as_ref().is_some_and(|restored| restored.contents == Contents::Partial)
    }
}

impl StreamReplay {
    fn new(layout: Layout, group: GroupId, now: Duration, goal: Option<Goal>) -> StreamReplay {
        StreamReplay {
            layout,
            group,
            replay: Replay::new(Limits::default().kept_bytes),
            table: TxnTable::default(),
            now,
            headless: false,
            copied_at: None,
            goal,
            replaced: false,
            hole: None,
            work: Vec::new(),
            steps: Vec::new(),
            effects: Vec::new(),
        }
    }

    fn take_work(&mut self) -> Vec<(u16, RowWork)> {
        std::mem::take(&mut self.work)
    }

    fn record(&mut self, bytes: &[u8]) -> Result<(), Wrong> {
        let record: LogRecord =
            postcard::from_bytes(bytes).map_err(|e| format!("a record of its stream is none: {e}"))?;
        let (is_reset, is_whole) = (matches!(record, LogRecord::Reset { .. }), matches!(record, LogRecord::Whole));
        self.replaced |= is_reset && self.holds_goal();
        if is_reset {
            self.hole = None;
        }
        if self.replaced || self.hole.is_some() {
            return Ok(());
        }
        let begins_in_a_copy = matches!(&record, LogRecord::Anchor { contents: Contents::Partial, .. });
        let mut steps = std::mem::take(&mut self.steps);
        let pushed = self.replay.push(record, &mut steps);
        for step in steps.drain(..) {
            if let Step::State { .. } = step {
                self.headless = begins_in_a_copy;
            }
            self.step(step)?;
        }
        self.steps = steps;
        match pushed {
            Ok(()) => {}
            Err(gap @ ReplayError::Gap { .. }) => return self.on_gap(gap.to_string()),
            Err(other) => return Err(other.to_string()),
        }
        if is_reset {
            self.copied_at = Some(Position(u64::MAX));
        } else if is_whole {
            self.copied_at = Some(self.replay.last().position);
        }
        Ok(())
    }

    fn on_gap(&mut self, what: Wrong) -> Result<(), Wrong> {
        match self.goal {
            // Nothing counts behind the cut.
            Some(_) if self.holds_goal() => self.replaced = true,
            // This may be the only disk with the cut.
            Some(goal) if goal.holds => {
                return Err(format!(
                    "{what}, so the cut that the cluster has gone back to cannot be read here; if another node has it on disk, start this one with an empty directory"
                ));
            }
            _ => self.hole = Some(what),
        }
        Ok(())
    }

    fn step(&mut self, step: Step) -> Result<(), Wrong> {
        match step {
            Step::State { state } => self.take_state(&state)?,
            Step::Reset { state } => {
                self.work.extend(self.layout.partitions_of(self.group).map(|partition| (partition, RowWork::Clear)));
                self.headless = false;
                self.take_state(&state)?;
            }
            Step::Entry { entry } => {
                let record = decode(&entry)?;
                self.table.on_entry(self.now, entry.id.position, &record, &mut self.effects);
            }
            Step::Cut { after } => self.table.on_cut(after, &mut self.effects),
            Step::Stable { upto } => self.table.on_stable(upto, &mut self.effects),
            Step::Install { rows } => {
                let partition = copied(self.layout, self.group, &rows)?;
                self.work.push((partition, RowWork::Install { rows }));
            }
        }
        self.commit()
    }

    fn take_state(&mut self, state: &Bytes) -> Result<(), Wrong> {
        self.table = TxnTable::decode(state, self.now).ok_or("the state of its transactions is none")?;
        Ok(())
    }

    /// Puts in what has been committed. What is prepared waits for the end.
    fn commit(&mut self) -> Result<(), Wrong> {
        for effect in self.effects.drain(..) {
            if let Effect::Commit { txn, time, writes } = effect {
                if self.goal.is_some_and(|goal| time > goal.newest) {
                    continue;
                }
                for writes in writes {
                    let parts = written(self.layout, self.group, &writes);
                    for partition in parts.map_err(|what| format!("transaction {}: {what}", txn.0))? {
                        self.work.push((partition, RowWork::Restore { txn, time, writes: writes.clone() }));
                    }
                }
            }
        }
        Ok(())
    }

    /// All records were there.
    fn finish(&mut self, tables: &[Arc<TableSchema>]) -> Result<Ended, Wrong> {
        if let Some(goal) = self.goal {
            return self.go_back(goal);
        }
        let replay = std::mem::replace(&mut self.replay, Replay::new(0));
        let last = replay.last().position;
        let mut restored = replay.finish();
        if let Some(restored) = restored.as_mut().filter(|_| self.headless || self.hole.is_some()) {
            restored.contents = Contents::Partial;
        }
        let mut pending = Vec::new();
        if restored.as_ref().is_none_or(|restored| restored.contents == Contents::Whole) {
            let stable = restored.as_ref().map_or(Position(0), |r| r.stable);
            self.commit_what_is_written_over(stable, last, tables)?;
            let mut txns: FxHashMap<TxnId, TxnRef> = FxHashMap::default();
            for effect in self.table.pending() {
                let (txn, number, writes, least) = match effect {
                    Effect::Adopt { txn, least, number, writes } => (txn, number, writes, Some(least)),
                    Effect::Chunk { txn, number, writes, .. } => (txn, number, writes, None),
                    _ => continue,
                };
                let parts = written(self.layout, self.group, &writes);
                let parts = parts.map_err(|what| format!("transaction {}, which is not decided: {what}", txn.0))?;
                let adopted = txns.entry(txn).or_insert_with(|| TxnRef::new(txn)).clone();
                if let Some(least) = least {
                    adopted.status.set(TxnState::Prepared(least));
                }
                let is_open = self.table.has_open_chunks(txn);
                pending.push(Undecided { txn: adopted, number, writes, parts, is_open });
            }
        }
        let (table, hole) = (std::mem::take(&mut self.table), self.hole.take());
        Ok(Ended { table, restored, hole, pending })
    }

    /// Whether what the log has said so far is all that the cut has, with nothing that came to rows past the log.
    fn holds_goal(&self) -> bool {
        let Some(Goal { time, entry, holds, .. }) = self.goal else { return false };
        let whole = self.replay.is_whole() && !self.headless;
        let copied_before = self.copied_at.is_none_or(|at| at <= entry.position);
        holds && whole && copied_before && self.table.has_cut(time, entry.view)
    }

    /// All records were there, and of them only what the cut has counts.
    fn go_back(&mut self, goal: Goal) -> Result<Ended, Wrong> {
        let Goal { time, entry, .. } = goal;
        let held = self.holds_goal();
        let table = if held {
            self.table.on_stable(entry.position, &mut self.effects);
            self.commit()?;
            TxnTable::at_cut(entry.position, time, entry.view)
        } else {
            TxnTable::default()
        };
        let restored = goal.restored(held);
        Ok(Ended { table, restored, hole: None, pending: Vec::new() })
    }

    /// Takes for stable what lies behind `stable`, until nothing is pending that another pending transaction writes over.
    fn commit_what_is_written_over(
        &mut self,
        stable: Position,
        last: Position,
        tables: &[Arc<TableSchema>],
    ) -> Result<(), Wrong> {
        let mut proven = self.written_over(tables)?;
        let mut at = stable.0;
        while let Some(txn) = proven.iter().next() {
            at += 1;
            if at > last.0 {
                return Err(format!("transaction {}, which is prepared, is written over", txn.0));
            }
            self.table.on_stable(Position(at), &mut self.effects);
            for effect in &self.effects {
                if let Effect::Commit { txn, .. } = effect {
                    proven.remove(txn);
                }
            }
            self.commit()?;
        }
        Ok(())
    }

    /// Pending transactions that a later one writes over.
    fn written_over(&self, tables: &[Arc<TableSchema>]) -> Result<FxHashSet<TxnId>, Wrong> {
        let pending = self.table.pending();
        let mut proven = FxHashSet::default();
        if pending.len() < 2 {
            return Ok(proven);
        }
        let mut keys: FxHashMap<TableId, (&TableSchema, KeyDef)> = FxHashMap::default();
        for table in tables {
            keys.insert(table.id, (table, table.key_def(table.primary())));
        }
        let mut writers: FxHashMap<(TableId, Vec<u8>), TxnId> = FxHashMap::default();
        for effect in &pending {
            let (Effect::Adopt { txn, writes, .. } | Effect::Chunk { txn, writes, .. }) = effect else { continue };
            let visited = writes::visit(writes, None, &mut |table| !keys.contains_key(&table), &mut |table, write| {
                let (schema, primary) = &keys[&table];
                let key = match write {
                    Write::Delete { key } => key.to_vec(),
                    Write::Sparse { row, .. } => {
                        let row = read_sparse(row).ok_or(WritesError::NoRow { table })?;
                        row.key.to_vec()
                    }
                    Write::Put { layout, row } => {
                        let known = schema.layouts.get(usize::from(layout));
                        let known = known.ok_or(WritesError::StaleSchema { table, layout })?;
                        if !known.holds(row) {
                            return Err(WritesError::NoRow { table });
                        }
                        let mut key = Vec::new();
                        primary.encode_row(&RowView::new(schema, layout, row), &mut key);
                        key
                    }
                };
                proven.extend(writers.insert((table, key), *txn).filter(|before| before != txn));
                Ok(())
            });
            visited.map_err(|e: WritesError| format!("transaction {}, which is prepared: {e}", txn.0))?;
        }
        Ok(proven)
    }
}

fn decode(entry: &Entry) -> Result<Record, Wrong> {
    Record::decode(&entry.record).ok_or_else(|| format!("entry {} of its stream is none", entry.id.position.0))
}
