//! Random histories against a plain multi-version model, every answer checked.
//!
//! The model keeps all versions of all rows in a BTreeMap and each transaction's writes in a list; it knows nothing of
//! slabs, side tables, entries or collection. Locks are checked from both sides: nobody gets what conflicts with what another has,
//! and nobody waits unless another transaction has been at the same row or range.
//!
//! Commit times are strictly increasing, as a node that is alone draws them, or those of a cluster: as low as the partition allows, so that many commits share
//! one, and behind a prepare at a least time, which other transactions and readers meet.

mod building;
mod covering;
mod many;

use super::support::*;
use crate::partition::{LockMode, Partition, ReadAt, ScanEnd, ScanPosition, ScanRequest, Stop, Verdict, WaitPolicy};
use crate::row_store::RowId;
use crate::status::TxnState;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rauk_types::row::{self, sparse::read_sparse};
use rauk_types::{IndexId, PartitionId, RowView, TableSchema, Timestamp, TxnId, key};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

const IDS: i64 = 24;

#[derive(Clone, Debug)]
enum Op {
    Insert(Row),
    Update(Row),
    Delete(i64),
    Lock(i64, LockMode),
    ScanLock { index: Option<IndexId>, low: i64, high: i64, mode: LockMode, keep: i64 },
}

struct Actor {
    txn: Txn,
    /// (statement, id, state after)
    writes: Vec<(u32, i64, Option<Row>)>,
    /// Rows asked for, ever.
    touched: BTreeSet<i64>,
    /// Strongest lock known to be held: 0 key share, 1 shared, 2 exclusive, 3 gone.
    held: BTreeMap<i64, u8>,
    ranges: Vec<(i64, i64)>,
    snapshot: Option<u64>,
    waiting: Option<(Op, Vec<TxnId>)>,
    /// Its least time, when it is prepared.
    prepared: Option<u64>,
}

/// The writes of a commit record.
type Writes = Vec<Logged>;

struct Model {
    w: World,
    rng: SmallRng,
    committed: BTreeMap<i64, Vec<(u64, Option<Row>)>>,
    actors: Vec<Actor>,
    log: Vec<(u64, Writes)>,
    limited: bool,
    cluster: bool,
    /// The highest snapshot that was read.
    read_at: u64,
    old_reads_refused: u64,
    stale_reads_refused: u64,
    met_prepared: u64,
    equal_times: u64,
    /// Locking scans that met a row that had changed after their snapshot, and changed rows that they rightly passed
    /// over.
    changed_met: u64,
    changed_passed: u64,
    /// Rows of covering scans that were made of keys.
    made_of_keys: u64,
    /// Rows that were found by entries of two indexes.
    in_common: u64,
    /// Writes of records that keep large values.
    sparse: u64,
}

fn conflicts(a: u8, b: u8) -> bool {
    match (a.min(b), a.max(b)) {
        (0, h) => h == 3,
        (1, h) => h >= 2,
        _ => true,
    }
}

fn in_range(request: &ScanRequest, key: &[u8]) -> bool {
    let above = match &request.low {
        Bound::Included(low) => key >= low.as_slice(),
        _ => true,
    };
    above
        && match &request.high {
            Bound::Excluded(high) => key < high.as_slice(),
            _ => true,
        }
}

fn strength(mode: LockMode) -> u8 {
    match mode {
        LockMode::KeyShare => 0,
        LockMode::Shared => 1,
        LockMode::Exclusive => 2,
        LockMode::KeyChange => 3,
    }
}

impl Model {
    fn new(seed: u64, schema: Arc<TableSchema>, limited: bool, cluster: bool) -> Self {
        let mut w = World::new(schema);
        if limited {
            w.p.set_history_limit(400);
        }
        let rng = SmallRng::seed_from_u64(seed);
        let (committed, actors, log) = (BTreeMap::new(), Vec::new(), Vec::new());
        Model {
            w,
            rng,
            committed,
            actors,
            log,
            limited,
            cluster,
            read_at: 0,
            old_reads_refused: 0,
            stale_reads_refused: 0,
            met_prepared: 0,
            equal_times: 0,
            changed_met: 0,
            changed_passed: 0,
            made_of_keys: 0,
            in_common: 0,
            sparse: 0,
        }
    }

    /// The time of a commit, not below `least`.
    fn draw_time(&mut self, least: u64) -> u64 {
        let time = match self.cluster && self.rng.random_ratio(4, 5) {
            // What is durable was committed before.
            true => self.w.p.times().least_time(Timestamp(least.max(self.w.durable + 1))).0,
            false => self.w.now + 1,
        };
        assert!(time > self.read_at, "a commit at {time}, and snapshot {} has been read", self.read_at);
        self.equal_times += u64::from(Timestamp(time) == self.w.p.finished());
        self.w.now = self.w.now.max(time);
        time
    }

    /// Another transaction that is prepared, has written the row, and may commit at or below `upto`.
    fn prepared_on(&self, actor: Option<usize>, id: i64, upto: u64) -> Option<TxnId> {
        let mut others = self.actors.iter().enumerate().filter(|(i, _)| Some(*i) != actor).map(|(_, a)| a);
        let found = others.find(|a| a.prepared.is_some_and(|l| l <= upto) && a.writes.iter().any(|w| w.1 == id))?;
        Some(found.txn.r.id)
    }

    fn check_prepared(&mut self, actor: Option<usize>, upto: u64, txn: TxnId) {
        self.met_prepared += 1;
        assert!(actor.is_none_or(|i| self.actors[i].txn.r.id != txn), "stopped by itself");
        let least = self.by_id(txn).and_then(|a| a.prepared);
        assert!(least.is_some_and(|l| l <= upto), "stopped at {upto} by {txn:?}, prepared at {least:?}");
    }

    /// No row in the range, as it is or as it may become, is another's that may commit at or below `upto`.
    fn check_passed_by(&self, actor: Option<usize>, request: &ScanRequest, upto: u64) {
        for id in 0..IDS {
            let Some(txn) = self.prepared_on(actor, id, upto) else { continue };
            let (_, now) = self.at_time(id, upto);
            let last =
                self.by_id(txn).and_then(|a| a.writes.iter().rev().find(|w| w.1 == id)).and_then(|w| w.2.clone());
            for row in [now, last].into_iter().flatten() {
                let met = in_range(request, &self.index_key(request.index, &row));
                assert!(!met, "row {id} is {txn:?}'s, and was passed by at {upto}: {request:?}");
            }
        }
    }

    fn at_time(&self, id: i64, upto: u64) -> (u64, Option<Row>) {
        let mut versions = self.committed.get(&id).into_iter().flatten();
        versions.rfind(|v| v.0 <= upto).cloned().unwrap_or((0, None))
    }

    fn own(&self, actor: usize, id: i64, own_before: u32) -> Option<Option<Row>> {
        let writes = &self.actors[actor].writes;
        writes.iter().rev().find(|w| w.1 == id && w.0 < own_before).map(|w| w.2.clone())
    }

    /// What the actor (or nobody) sees of a row, and the time of the committed version it depends on.
    fn sees(&self, actor: Option<usize>, id: i64, upto: u64) -> (Option<Row>, u64) {
        if let Some(i) = actor
            && let Some(own) = self.own(i, id, self.actors[i].txn.statement)
        {
            return (own, 0);
        }
        let (time, row) = self.at_time(id, upto);
        (row, time)
    }

    fn row(&mut self, id: i64) -> Row {
        let k = if self.rng.random_ratio(1, 6) { None } else { Some(self.rng.random_range(0..8)) };
        let n = self.rng.random_range(0..12);
        let v = (0..n).map(|_| self.rng.random_range(0..3u8)).collect();
        (id, k, v)
    }

    fn id(&mut self) -> i64 {
        self.rng.random_range(0..IDS)
    }

    fn others(&self, actor: usize) -> impl Iterator<Item = &Actor> {
        self.actors.iter().enumerate().filter(move |(i, _)| *i != actor).map(|(_, a)| a)
    }

    fn by_id(&self, txn: TxnId) -> Option<&Actor> {
        self.actors.iter().find(|a| a.txn.r.id == txn)
    }

    fn got_lock(&mut self, actor: usize, id: i64, mode: u8) {
        for other in self.others(actor) {
            if let Some(&held) = other.held.get(&id) {
                assert!(!conflicts(held, mode), "row {id} locked by two: {held} beside {mode}");
            }
            assert!(mode == 0 || other.writes.iter().all(|w| w.1 != id), "row {id} has another's pending write");
        }
        let held = self.actors[actor].held.entry(id).or_insert(mode);
        *held = (*held).max(mode);
    }

    fn in_ranges_of_others(&self, actor: usize, row: &Row) -> bool {
        row.1.is_some_and(|k| self.others(actor).any(|o| o.ranges.iter().any(|r| r.0 <= k && k < r.1)))
    }

    fn is_changed(&self, actor: usize, id: i64) -> bool {
        let after = self.actors[actor].txn.conflict_after;
        after.is_some_and(|a| self.at_time(id, u64::MAX).0 > a)
    }

    /// Of a row that others have changed after the actor's snapshot: the newest version, and the snapshot's.
    fn changed_versions(&self, actor: usize, id: i64) -> Option<(Option<Row>, Option<Row>)> {
        let after = self.actors[actor].txn.conflict_after?;
        let changed = self.own(actor, id, u32::MAX).is_none() && self.is_changed(actor, id);
        changed.then(|| (self.at_time(id, u64::MAX).1, self.at_time(id, after).1))
    }

    fn check_wait(&self, actor: usize, ids: &[i64], blockers: &[TxnId]) {
        assert!(!blockers.is_empty());
        for b in blockers {
            assert_ne!(*b, self.actors[actor].txn.r.id);
            let other = self.by_id(*b).unwrap_or_else(|| panic!("waits for {b:?}, which has ended"));
            assert!(
                !other.ranges.is_empty() || ids.iter().any(|id| other.touched.contains(id)),
                "{ids:?} waits for {b:?}, which has not been there"
            );
        }
    }

    fn run(&mut self, actor: usize, op: Op) {
        let statement = self.actors[actor].txn.statement;
        match op.clone() {
            Op::Insert(row) => {
                let id = row.0;
                self.actors[actor].touched.insert(id);
                let newest = self.own(actor, id, u32::MAX).unwrap_or_else(|| self.at_time(id, u64::MAX).1);
                let with_others = self.rng.random_ratio(1, 3);
                let txn = &self.actors[actor].txn;
                let done = with_others && self.w.insert_many(txn, std::slice::from_ref(&row)) == [true];
                match if done { Ok(()) } else { self.w.insert(txn, &row) } {
                    Ok(()) => {
                        assert_eq!(newest, None, "insert over a row");
                        self.check_observed(actor, id);
                        assert!(!self.in_ranges_of_others(actor, &row), "insert into a locked range");
                        self.got_lock(actor, id, 3);
                        self.actors[actor].writes.push((statement, id, Some(row)));
                    }
                    Err(Stop::Duplicate) => {
                        assert!(newest.is_some(), "duplicate of nothing");
                        self.check_observed(actor, id);
                    }
                    Err(Stop::Changed) => assert!(self.is_changed(actor, id)),
                    Err(Stop::Wait(blockers)) => return self.wait(actor, op, &[id], blockers),
                    Err(other) => panic!("{other:?}"),
                }
            }
            Op::Update(row) => {
                let id = row.0;
                self.actors[actor].touched.insert(id);
                let newest = self.own(actor, id, u32::MAX).unwrap_or_else(|| self.at_time(id, u64::MAX).1);
                match self.w.update(&self.actors[actor].txn, &row) {
                    Ok(done) => {
                        assert_eq!(done, newest.is_some(), "update of {id}");
                        self.check_observed(actor, id);
                        if let Some(old) = newest {
                            if old.1 != row.1 {
                                let moved =
                                    self.in_ranges_of_others(actor, &old) || self.in_ranges_of_others(actor, &row);
                                assert!(!moved, "key moved in a locked range");
                            }
                            self.got_lock(actor, id, 2);
                            self.actors[actor].writes.push((statement, id, Some(row)));
                        }
                    }
                    Err(Stop::Changed) => assert!(self.is_changed(actor, id)),
                    Err(Stop::SnapshotTooOld) if self.limited => self.old_reads_refused += 1,
                    Err(Stop::Wait(blockers)) => return self.wait(actor, op, &[id], blockers),
                    Err(other) => panic!("{other:?}"),
                }
            }
            Op::Delete(id) => {
                self.actors[actor].touched.insert(id);
                let newest = self.own(actor, id, u32::MAX).unwrap_or_else(|| self.at_time(id, u64::MAX).1);
                match self.w.delete(&self.actors[actor].txn, id) {
                    Ok(done) => {
                        assert_eq!(done, newest.is_some(), "delete of {id}");
                        self.check_observed(actor, id);
                        if let Some(old) = newest {
                            assert!(!self.in_ranges_of_others(actor, &old), "delete in a locked range");
                            self.got_lock(actor, id, 3);
                            self.actors[actor].writes.push((statement, id, None));
                        }
                    }
                    Err(Stop::Changed) => assert!(self.is_changed(actor, id)),
                    Err(Stop::SnapshotTooOld) if self.limited => self.old_reads_refused += 1,
                    Err(Stop::Wait(blockers)) => return self.wait(actor, op, &[id], blockers),
                    Err(other) => panic!("{other:?}"),
                }
            }
            Op::Lock(id, mode) => {
                self.actors[actor].touched.insert(id);
                let (expected, _) = self.sees(Some(actor), id, u64::MAX);
                let policy = [WaitPolicy::Wait, WaitPolicy::NoWait, WaitPolicy::SkipLocked][id as usize % 3];
                match self.w.read_locked(&self.actors[actor].txn, id, mode, policy) {
                    Ok(None) if expected.is_some() => {
                        assert_eq!(policy, WaitPolicy::SkipLocked);
                        assert!(self.others(actor).any(|o| o.touched.contains(&id)), "skipped for nobody");
                    }
                    Ok(found) => {
                        assert_eq!(found, expected);
                        if found.is_some() {
                            self.got_lock(actor, id, strength(mode));
                        }
                    }
                    Err(Stop::Changed) => assert!(self.is_changed(actor, id)),
                    Err(Stop::SnapshotTooOld) if self.limited => self.old_reads_refused += 1,
                    Err(Stop::WouldWait) => assert_eq!(policy, WaitPolicy::NoWait),
                    Err(Stop::Prepared(txn)) => {
                        assert_eq!((mode, policy), (LockMode::KeyShare, WaitPolicy::Wait), "others queue");
                        assert_eq!(self.prepared_on(Some(actor), id, u64::MAX), Some(txn));
                    }
                    Err(Stop::Wait(blockers)) => {
                        assert_eq!(policy, WaitPolicy::Wait);
                        return self.wait(actor, op, &[id], blockers);
                    }
                    Err(other) => panic!("{other:?}"),
                }
            }
            Op::ScanLock { .. } => return self.scan_lock(actor, op),
        }
        self.actors[actor].txn.statement += u32::from(self.rng.random_ratio(3, 4));
    }

    fn wait(&mut self, actor: usize, op: Op, ids: &[i64], blockers: Vec<TxnId>) {
        self.check_wait(actor, ids, &blockers);
        if self.rng.random_ratio(1, 3) {
            self.w.p.cancel_wait(self.actors[actor].txn.r.id);
        } else {
            self.actors[actor].waiting = Some((op, blockers));
        }
    }

    fn bounds(&self, index: Option<IndexId>, low: i64, high: i64) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        let of = |x: i64| match index {
            Some(IndexId::PRIMARY) => self.w.key(x),
            Some(BY_K) => self.w.index_key(1, &(0, Some(x), Vec::new())),
            _ => self.w.index_key(2, &(0, Some(0), vec![x as u8 % 3, x as u8 / 3 % 3])),
        };
        match index {
            None => (Bound::Unbounded, Bound::Unbounded),
            Some(_) => (Bound::Included(of(low)), Bound::Excluded(of(high))),
        }
    }

    fn index_key(&self, index: Option<IndexId>, row: &Row) -> Vec<u8> {
        index.map_or(Vec::new(), |i| self.w.index_key(i.0 as usize, row))
    }

    /// A write's outcome depends on the newest committed version, deletions included.
    fn check_observed(&self, actor: usize, id: i64) {
        if self.own(actor, id, u32::MAX).is_none() {
            let time = self.at_time(id, u64::MAX).0;
            assert!(time <= self.w.durable || self.w.observed >= time, "row {id}: {} and not {time}", self.w.observed);
        }
    }

    /// A scan's answer depends on every version in its range, and on every change that took one out of it.
    fn check_scan_observed(&self, actor: Option<usize>, request: &ScanRequest, upto: u64) {
        for (id, versions) in &self.committed {
            let visible: Vec<_> = versions.iter().filter(|v| v.0 <= upto).collect();
            let Some((time, _)) = visible.last() else { continue };
            let own = actor.is_some_and(|a| self.own(a, *id, self.actors[a].txn.statement).is_some());
            // Older ones that were superseded durably are nobody's concern.
            let first = visible.iter().rposition(|v| v.0 <= self.w.durable).unwrap_or(0);
            let mut met = visible[first..].iter().filter_map(|v| v.1.as_ref());
            if !own && *time > self.w.durable && met.any(|row| in_range(request, &self.index_key(request.index, row))) {
                let observed = self.w.observed;
                assert!(observed >= *time, "row {id} changed at {time}, observed {observed}: {request:?}");
            }
        }
    }

    fn expected_scan(&self, actor: Option<usize>, request: &ScanRequest, upto: u64) -> Vec<(Vec<u8>, Row)> {
        let ids = 0..IDS;
        let rows = ids.filter_map(|id| self.sees(actor, id, upto).0);
        let mut found: Vec<_> = rows.map(|row| (self.index_key(request.index, &row), row)).collect();
        found.retain(|(key, _)| in_range(request, key));
        found.sort();
        found
    }

    fn check_scan(&self, request: &ScanRequest, found: Vec<(Vec<u8>, Row)>, expected: &[(Vec<u8>, Row)]) {
        if request.index.is_some() {
            let keys: Vec<_> = found.iter().map(|f| &f.0).collect();
            let in_order = if request.reverse { keys.is_sorted_by(|a, b| a >= b) } else { keys.is_sorted() };
            assert!(in_order, "scan out of order: {request:?}");
        }
        let mut found = found;
        found.sort();
        assert_eq!(found, expected, "{request:?}");
    }

    fn scan_lock(&mut self, actor: usize, op: Op) {
        let Op::ScanLock { index, low, high, mode, keep } = op else { unreachable!("called for scans") };
        let (low, high) = self.bounds(index, low, high);
        let policy = if keep % 2 == 0 { WaitPolicy::Wait } else { WaitPolicy::SkipLocked };
        let request = ScanRequest {
            table: TABLE,
            index,
            low,
            high,
            reverse: keep % 3 == 0,
            lock: Some((mode, policy)),
            covering: None,
            also: Arc::default(),
        };
        let expected = self.expected_scan(Some(actor), &request, u64::MAX);
        // A condition that a change of the row may make true or false.
        let wanted = |row: &Row| (row.1.unwrap_or(0) + row.2.len() as i64) % 3 != keep % 3;
        let mut found = Vec::new();
        let mut access = self.w.access(Some(&self.actors[actor].txn), ReadAt::Newest);
        let mut position = ScanPosition::Start;
        let end = loop {
            let mut visit = |row: &crate::partition::ScanRow<'_>| {
                let decoded = decode(&row.row);
                if !wanted(&decoded) {
                    return Verdict::Skip;
                }
                found.push((row.key.to_vec(), decoded));
                if found.len() == 3 { Verdict::KeepAndStop } else { Verdict::Keep }
            };
            match self.w.p.scan(&request, &mut position, 4, &mut access, &mut visit) {
                Ok(ScanEnd::More) => {}
                Ok(ScanEnd::Finished) => break Ok(()),
                Err(stop) => break Err(stop),
            }
        };
        self.actors[actor].touched.extend(0..IDS);
        let matches = |row: &Option<Row>| {
            row.as_ref().is_some_and(|row| wanted(row) && in_range(&request, &self.index_key(index, row)))
        };
        if end == Err(Stop::Changed) {
            // The visitor wanted the newest version or the snapshot's, and that was the conflict.
            let (_, row) = found.pop().expect("a conflict with a version that was not shown");
            let (newest, before) =
                self.changed_versions(actor, row.0).expect("a conflict with a row that has not changed");
            assert!(
                newest.as_ref() == Some(&row) || before.as_ref() == Some(&row),
                "{row:?} is neither {newest:?} nor {before:?}"
            );
            assert!(matches(&Some(row)));
        } else if end.is_ok() {
            let mut passed = 0;
            for id in 0..IDS {
                let Some((newest, before)) = self.changed_versions(actor, id) else { continue };
                // A row that another has locked is left out.
                let left_out = policy == WaitPolicy::SkipLocked && self.others(actor).any(|o| o.touched.contains(&id));
                assert!(
                    left_out || !matches(&newest) && !matches(&before),
                    "row {id} was {before:?} and is {newest:?}"
                );
                passed += 1;
            }
            self.changed_passed += passed;
        }
        for (_, row) in &found {
            self.got_lock(actor, row.0, strength(mode));
        }
        match end {
            Ok(()) => {
                let mut expected: Vec<_> = expected.into_iter().filter(|e| wanted(&e.1)).collect();
                if policy == WaitPolicy::SkipLocked {
                    let missing = expected.iter().filter(|e| !found.contains(e)).cloned().collect::<Vec<_>>();
                    for (_, row) in &missing {
                        assert!(self.others(actor).any(|o| o.touched.contains(&row.0)), "left out: {row:?}");
                    }
                    expected.retain(|e| !missing.contains(e));
                }
                self.check_scan(&request, found, &expected);
            }
            Err(Stop::Changed) => self.changed_met += 1,
            Err(Stop::SnapshotTooOld) if self.limited => self.old_reads_refused += 1,
            Err(Stop::Prepared(txn)) => {
                assert_eq!((mode, policy), (LockMode::KeyShare, WaitPolicy::Wait), "others queue");
                self.check_prepared(Some(actor), u64::MAX, txn);
            }
            Err(Stop::Wait(blockers)) => {
                let all: Vec<i64> = (0..IDS).collect();
                return self.wait(actor, op, &all, blockers);
            }
            Err(other) => panic!("{other:?}"),
        }
        self.actors[actor].txn.statement += 1;
    }

    /// Plain reads by key and by every index, of the newest state or a snapshot.
    fn look(&mut self) {
        let actor = if self.actors.is_empty() || self.rng.random_ratio(1, 3) {
            None
        } else {
            Some(self.rng.random_range(0..self.actors.len()))
        };
        // A snapshot that nobody has registered: what it needs may be gone, and then it hears of it.
        let stale = self.rng.random_ratio(1, 6);
        let (at, upto) = if stale {
            let time = self.rng.random_range(0..=self.w.now);
            (ReadAt::Snapshot(Timestamp(time)), time)
        } else if self.w.snapshots.is_empty() || self.rng.random_ratio(1, 3) {
            (ReadAt::Newest, u64::MAX)
        } else {
            let time = self.w.snapshots[self.rng.random_range(0..self.w.snapshots.len())];
            (ReadAt::Snapshot(Timestamp(time)), time)
        };
        let id = self.id();
        if let ReadAt::Snapshot(time) = at {
            self.read_at = self.read_at.max(time.0);
            if self.rng.random() {
                // Only the scan looks, or the read of many.
                return self.look_by_scan(actor, at, upto, stale);
            }
        }
        let txn = actor.map(|i| &self.actors[i].txn);
        match self.w.read(txn, id, at) {
            Err(Stop::Prepared(txn)) => {
                assert_eq!(self.prepared_on(actor, id, upto), Some(txn));
                self.check_prepared(actor, upto, txn);
            }
            Ok((row, observed)) => {
                assert_eq!(self.prepared_on(actor, id, upto), None, "passed by at {at:?}");
                let (expected, time) = self.sees(actor, id, upto);
                assert_eq!(row, expected, "row {id} at {at:?}");
                assert!(observed <= upto);
                if row.is_some() || time > self.w.durable && !stale {
                    assert!(observed >= time, "row {id} at {at:?}: observed {observed}, not {time}");
                }
            }
            Err(Stop::SnapshotTooOld) if stale => self.stale_reads_refused += 1,
            Err(Stop::SnapshotTooOld) if self.limited && upto != u64::MAX => self.old_reads_refused += 1,
            Err(other) => panic!("{other:?}"),
        }
        self.look_by_scan(actor, at, upto, stale);
    }

    fn look_by_scan(&mut self, actor: Option<usize>, at: ReadAt, upto: u64, stale: bool) {
        let index = match self.rng.random_range(0..4) {
            0 => None,
            1 if self.w.schema.primary().is_ordered() => Some(IndexId::PRIMARY),
            2 => Some(BY_K),
            _ => Some(BY_V),
        };
        let (a, b) = (self.rng.random_range(0..IDS), self.rng.random_range(0..IDS));
        let (low, high) =
            if self.rng.random() { self.bounds(index, a, b) } else { (Bound::Unbounded, Bound::Unbounded) };
        let request = ScanRequest {
            table: TABLE,
            index,
            low,
            high,
            reverse: self.rng.random(),
            lock: None,
            covering: None,
            also: Arc::default(),
        };
        let slice = self.rng.random_range(1..9);
        let txn = actor.map(|i| &self.actors[i].txn);
        match self.w.scan(txn, &request, at, slice) {
            Err(Stop::Prepared(txn)) => self.check_prepared(actor, upto, txn),
            Ok(found) => {
                self.check_passed_by(actor, &request, upto);
                let expected = self.expected_scan(actor, &request, upto);
                self.check_scan(&request, found.clone(), &expected);
                if !stale {
                    self.check_scan_observed(actor, &request, upto);
                }
                self.look_covering(actor, &request, at, slice, &found);
                self.look_spans(actor, &request, at, slice, &found);
                if !stale {
                    self.check_scan_observed(actor, &request, upto);
                    self.look_common(actor, at, slice, &found);
                }
            }
            Err(Stop::SnapshotTooOld) if stale => self.stale_reads_refused += 1,
            Err(Stop::SnapshotTooOld) if self.limited && upto != u64::MAX => self.old_reads_refused += 1,
            Err(other) => panic!("{other:?}"),
        }
    }

    fn check_collected_writes(&mut self, actor: usize) -> Writes {
        let mut expected: Vec<(i64, Option<Row>)> = Vec::new();
        for (_, id, row) in &self.actors[actor].writes {
            match expected.iter_mut().find(|e| e.0 == *id) {
                Some(e) => e.1 = row.clone(),
                None => expected.push((*id, row.clone())),
            }
        }
        expected.retain(|(id, row)| row.is_some() || self.at_time(*id, u64::MAX).1.is_some());
        let mut writes = Writes::new();
        self.w.p.collect_writes(self.actors[actor].txn.r.id, &mut |table, write| {
            assert_eq!(table, TABLE);
            writes.push(Logged::of(write));
        });
        let found: Vec<_> = writes.iter().map(|write| self.shown(write)).collect();
        assert_eq!(found, expected, "writes of the commit record");
        self.sparse += writes.iter().filter(|write| matches!(write, Logged::Sparse(_))).count() as u64;
        writes
    }

    /// The row that a write makes of the newest committed one.
    fn shown(&self, write: &Logged) -> (i64, Option<Row>) {
        let id_of = |key: &[u8]| (0..IDS).find(|id| self.w.key(*id) == key).expect("a key that was used");
        match write {
            Logged::Put(row) => {
                let decoded = decode(&RowView::new(&self.w.schema, 0, row));
                (decoded.0, Some(decoded))
            }
            Logged::Sparse(row) => {
                let id = id_of(read_sparse(row).expect("a sparse row").key);
                let (time, before) = self.at_time(id, u64::MAX);
                let before = self.w.encode(&before.expect("a row that values are kept from"));
                let mut second = World::new(self.w.schema.clone());
                second.p.restore_put(TABLE, 0, &before, Timestamp(time)).unwrap();
                write.restore(&mut second.p, time + 1);
                second.p.finish_restore().unwrap();
                (id, second.read(None, id, ReadAt::Newest).unwrap().0)
            }
            Logged::Gone(key) => (id_of(key), None),
        }
    }

    fn prepare(&mut self, actor: usize) {
        let least = self.w.p.times().least_time(Timestamp(self.w.durable + 1));
        assert!(least > self.w.p.max_read() && least >= self.w.p.finished());
        self.actors[actor].prepared = Some(least.0);
        self.actors[actor].txn.r.status.set(TxnState::Prepared(least));
    }

    fn commit(&mut self, actor: usize) {
        let writes = self.check_collected_writes(actor);
        let a = &self.actors[actor];
        let status = a.txn.r.status.clone();
        let time = match a.prepared {
            None => {
                status.set(TxnState::Committing);
                if let Some((_, id, _)) = a.writes.first() {
                    let id = *id;
                    assert_eq!(self.w.read(None, id, ReadAt::Newest), Err(Stop::Committing));
                    self.check_left_out(id);
                }
                self.draw_time(0)
            }
            // Another partition has the highest least time, or this one.
            Some(least) if self.rng.random() => {
                let time = least.max(self.w.durable + 1);
                self.equal_times += u64::from(Timestamp(time) == self.w.p.finished());
                self.w.now = self.w.now.max(time);
                time
            }
            Some(least) => self.draw_time(least),
        };
        status.set(TxnState::Committed(Timestamp(time)));
        let mut last: BTreeMap<i64, Option<Row>> = BTreeMap::new();
        for (_, id, row) in &self.actors[actor].writes {
            last.insert(*id, row.clone());
        }
        for (id, row) in last {
            if row.is_some() || self.at_time(id, u64::MAX).1.is_some() {
                self.committed.entry(id).or_default().push((time, row));
            }
        }
        self.log.push((time, writes));
        if self.rng.random_ratio(1, 3) {
            // Committed everywhere, but this partition has not heard: all answers are the same already. (The actor itself is done.)
            let before = self.rng.clone();
            let stash = self.actors.remove(actor);
            self.look();
            self.look();
            self.look_many();
            self.actors.insert(actor, stash);
            self.rng = before;
        }
        let a = self.actors.remove(actor);
        if let Some(snapshot) = a.snapshot {
            self.w.end_snapshot(snapshot);
        }
        let horizon = self.w.horizon();
        self.w.p.commit(a.txn.r.id, Timestamp(time), horizon);
        assert!(self.w.p.finished().0 >= time);
    }

    fn abort(&mut self, actor: usize) {
        let a = self.actors.remove(actor);
        if let Some(snapshot) = a.snapshot {
            self.w.end_snapshot(snapshot);
        }
        self.w.abort(a.txn);
    }

    fn rollback(&mut self, actor: usize) {
        let a = &mut self.actors[actor];
        let to = self.rng.random_range(1..=a.txn.statement);
        self.w.p.rollback_to(a.txn.r.id, to);
        for (_, id, _) in a.writes.extract_if(.., |w| w.0 >= to) {
            a.held.remove(&id);
        }
    }

    /// Whoever was woken tries again; nobody sleeps whose blockers have all gone.
    fn wake(&mut self) {
        loop {
            let granted = self.w.p.take_granted();
            if granted.is_empty() {
                break;
            }
            for txn in granted {
                let Some(i) = self.actors.iter().position(|a| a.txn.r.id == txn) else { continue };
                if let Some((op, _)) = self.actors[i].waiting.take() {
                    self.run(i, op);
                }
            }
        }
        for a in &self.actors {
            if let Some((op, blockers)) = &a.waiting {
                let alive = blockers.iter().any(|b| self.by_id(*b).is_some());
                assert!(alive, "{op:?} of {:?} sleeps and all its blockers have ended", a.txn.r.id);
            }
        }
    }

    fn step(&mut self) {
        if self.actors.len() < 5 && self.rng.random_ratio(1, 3) {
            let mut txn = self.w.begin();
            let snapshot = self.rng.random_ratio(1, 3).then(|| self.w.snapshot());
            txn.conflict_after = snapshot;
            self.actors.push(Actor {
                txn,
                writes: Vec::new(),
                touched: BTreeSet::new(),
                held: BTreeMap::new(),
                ranges: Vec::new(),
                snapshot,
                waiting: None,
                prepared: None,
            });
        }
        if self.w.snapshots.len() < 8 && self.rng.random_ratio(1, 10) {
            self.w.snapshot();
        }
        if self.rng.random_ratio(1, 10) {
            let kept: Vec<u64> = self.actors.iter().filter_map(|a| a.snapshot).collect();
            let spare = self.w.snapshots.iter().copied().find(|s| !kept.contains(s));
            if let Some(time) = spare {
                self.w.end_snapshot(time);
            }
        }
        if self.rng.random_ratio(1, 4) {
            self.w.durable = self.rng.random_range(self.w.durable..=self.w.now);
        }
        if self.rng.random_ratio(1, 6) {
            let (horizon, limit) = (self.w.horizon(), self.rng.random_range(1..10));
            self.w.p.collect(horizon, limit);
        }
        let rows = self.rng.random_range(0..IDS as usize);
        self.w.scrub(rows);
        self.look();
        match self.rng.random_range(0..10) {
            0..3 => self.look_many(),
            3..5 => self.write_many(),
            _ => {}
        }
        let awake: Vec<usize> = (0..self.actors.len()).filter(|i| self.actors[*i].waiting.is_none()).collect();
        if awake.is_empty() {
            // All wait for each other: one is the victim.
            if !self.actors.is_empty() {
                let victim = self.rng.random_range(0..self.actors.len());
                self.abort(victim);
                self.wake();
            }
            return;
        }
        let actor = awake[self.rng.random_range(0..awake.len())];
        if self.actors[actor].prepared.is_some() {
            match self.rng.random_range(0..10) {
                0..6 => {}
                6..9 => self.commit(actor),
                _ => self.abort(actor),
            }
            return self.wake();
        }
        if self.cluster && self.rng.random_ratio(1, 8) {
            return self.prepare(actor);
        }
        let id = self.id();
        let mode = [LockMode::KeyShare, LockMode::Shared, LockMode::Exclusive][self.rng.random_range(0..3)];
        match self.rng.random_range(0..100) {
            0..25 => {
                let row = self.row(id);
                self.run(actor, Op::Insert(row));
            }
            25..50 => {
                let row = self.row(id);
                self.run(actor, Op::Update(row));
            }
            50..62 => self.run(actor, Op::Delete(id)),
            62..70 => self.run(actor, Op::Lock(id, mode)),
            70..75 => {
                let index = [None, Some(BY_K), Some(BY_V)][self.rng.random_range(0..3)];
                let low = self.rng.random_range(0..8);
                let (high, keep) = (low + self.rng.random_range(0..5), self.rng.random_range(0..6));
                self.run(actor, Op::ScanLock { index, low, high, mode, keep });
            }
            75..77 => {
                let low = self.rng.random_range(0..8);
                let high = low + self.rng.random_range(0..3);
                let (l, h) = self.bounds(Some(BY_K), low, high);
                let (l, h) = (l.as_ref().map(Vec::as_slice), h.as_ref().map(Vec::as_slice));
                let txn = self.actors[actor].txn.r.clone();
                self.w.p.lock_range(&txn, TABLE, BY_K, l, h).unwrap();
                self.actors[actor].ranges.push((low, high));
            }
            77..84 => self.rollback(actor),
            84..95 => self.commit(actor),
            _ => self.abort(actor),
        }
        self.wake();
    }

    /// A second partition from a checkpoint and the log in any order has the same rows.
    fn check_restore(&mut self) {
        let mut puts: Vec<(u64, u16, Vec<u8>)> = Vec::new();
        let mut from = Some(RowId(0));
        while let Some(at) = from {
            let rows = self.rng.random_range(1..6);
            from = self.w.p.checkpoint_slice(TABLE, at, rows, &mut |layout, time, row| {
                puts.push((time.0, layout, row.to_vec()));
            });
        }
        let mut changes: Vec<(u64, Logged)> = puts.into_iter().map(|(t, _, r)| (t, Logged::Put(r))).collect();
        for (time, writes) in &self.log {
            changes.extend(writes.iter().map(|write| (*time, write.clone())));
        }
        // Where times are equal the order counts, and where values are kept; the rows of the checkpoint come first.
        if !self.cluster && self.sparse == 0 {
            for i in (1..changes.len()).rev() {
                changes.swap(i, self.rng.random_range(0..=i));
            }
        }
        let mut second = World::new(self.w.schema.clone());
        changes.iter().for_each(|(time, write)| write.restore(&mut second.p, *time));
        second.p.finish_restore().unwrap();
        second.p.validate();
        for index in [None, Some(BY_K), Some(BY_V)] {
            let request = whole(index);
            let found = second.scan(None, &request, ReadAt::Newest, 5).unwrap();
            let expected = self.expected_scan(None, &request, u64::MAX);
            self.check_scan(&request, found, &expected);
        }
        assert_eq!(second.rows(), self.w.rows());
        assert_eq!(second.p.digest(), self.w.p.digest());
        for id in 0..IDS {
            let key = self.w.key(id);
            let mut access = second.access(None, ReadAt::Newest);
            let row = second.p.read(TABLE, &key, key::hash(&key), &mut access, |v| v.map(|v| decode(&v))).unwrap();
            assert_eq!(row, self.at_time(id, u64::MAX).1);
        }
    }

    fn finish(mut self) {
        while !self.actors.is_empty() {
            self.abort(0);
        }
        self.w.p.take_granted();
        self.w.snapshots.clear();
        self.w.collect_all();
        self.w.p.validate();
        let live = (0..IDS).filter(|id| self.at_time(*id, u64::MAX).1.is_some()).count() as u64;
        assert_eq!(self.w.rows(), live);
        assert_eq!(self.w.p.table_usage(TABLE).unwrap().history_bytes, 0, "history that nobody needs stays");
        assert_eq!(self.w.p.versions.len(), 0, "side entries stay");
        let budget = self.w.budget.clone();
        self.w.p.drop_table(TABLE);
        self.w.p = Partition::new(PartitionId(1), budget.clone());
        assert_eq!(budget.used(), 0, "bytes stay counted");
    }
}

/// How often the rare things happened.
#[derive(Default)]
struct Seen {
    refused: u64,
    stale_refused: u64,
    met_prepared: u64,
    equal_times: u64,
    changed_met: u64,
    changed_passed: u64,
    made_of_keys: u64,
    in_common: u64,
    sparse: u64,
}

fn histories(seeds: std::ops::Range<u64>, steps: usize, hash_only: bool, limited: bool, cluster: bool) -> Seen {
    histories_of(&schema(hash_only, true), seeds, steps, limited, cluster)
}

fn histories_of(
    schema: &Arc<TableSchema>,
    seeds: std::ops::Range<u64>,
    steps: usize,
    limited: bool,
    cluster: bool,
) -> Seen {
    let mut seen = Seen::default();
    for seed in seeds {
        let mut model = Model::new(seed, schema.clone(), limited, cluster);
        for step in 0..steps {
            model.step();
            if step % 7 == 0 {
                model.w.p.validate();
            }
            if step % 400 == 399 {
                model.check_restore();
            }
        }
        seen.refused += model.old_reads_refused;
        seen.stale_refused += model.stale_reads_refused;
        seen.met_prepared += model.met_prepared;
        seen.equal_times += model.equal_times;
        seen.changed_met += model.changed_met;
        seen.changed_passed += model.changed_passed;
        seen.made_of_keys += model.made_of_keys;
        seen.in_common += model.in_common;
        seen.sparse += model.sparse;
        model.finish();
    }
    seen
}

#[test]
fn random_histories() {
    let seen = histories(0..8 * rounds(), 1500, false, false, false);
    assert!(seen.changed_met > 20 && seen.changed_passed > 100, "{} and {}", seen.changed_met, seen.changed_passed);
    assert!(seen.made_of_keys > 100 && seen.in_common > 1000, "{} and {}", seen.made_of_keys, seen.in_common);
}

#[test]
fn random_histories_of_rows_with_large_values() {
    let mut seen = histories_of(&wide_schema(false), 500_000..500_000 + 2 * rounds(), 900, false, false);
    seen.sparse += histories_of(&wide_schema(true), 600_000..600_000 + rounds(), 900, true, true).sparse;
    seen.sparse += histories_of(&wide_schema(false), 700_000..700_000 + rounds(), 900, false, true).sparse;
    assert!(seen.sparse > 50, "{}", seen.sparse);
}

#[test]
fn random_histories_with_a_hash_only_key() {
    histories(100_000..100_000 + 3 * rounds(), 1500, true, false, false);
}

#[test]
fn random_histories_at_the_history_limit() {
    let seen = histories(200_000..200_000 + 4 * rounds(), 1500, false, true, false);
    assert!(seen.refused > 0, "no read met the limit");
}

#[test]
fn random_histories_with_the_times_of_a_cluster() {
    let mut seen = histories(300_000..300_000 + 8 * rounds(), 1500, false, false, true);
    seen.refused += histories(400_000..400_000 + 4 * rounds(), 1500, true, true, true).refused;
    assert!(seen.made_of_keys > 100, "{}", seen.made_of_keys);
    assert!(seen.stale_refused > 100 && seen.met_prepared > 100 && seen.equal_times > 100 && seen.refused > 0);
}
