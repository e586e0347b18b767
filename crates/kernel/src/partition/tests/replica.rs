//! Replicas of one partition: a primary, a follower that adopts what the primary prepares, and joiners that are filled by slices while all that goes on.
//!
//! The stream is simply the order in which things happen here; the joiner's slices come late. After every few steps replicas are compared
//! by every kind of read, at new and old snapshots. Transactions make chunks while they run, go back to statements before
//! these, and end in slices, on each replica at its own pace.
//!
//! The digests of all replicas are compared at moments when some transactions are about to commit; before each commit
//! they say what the digests will be after it.

use super::support::*;
use crate::partition::{CopyCursor, Horizon, LockMode, Partition, ReadAt, SliceError, Stop, WaitPolicy, Write};
use crate::status::{TxnRef, TxnState};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rauk_types::{IndexId, PartitionId, TableId, Timestamp, TxnId};
use std::collections::{BTreeMap, BTreeSet};

const IDS: i64 = 20;

/// What a stream says of rows.
type Writes = Vec<Logged>;

struct Prepared {
    txn: Txn,
    least: u64,
    writes: Writes,
}

/// A replica that is not the primary.
struct Replica {
    w: World,
    adopted: BTreeMap<TxnId, TxnRef>,
    copy: Option<Copy>,
}

struct Copy {
    cursor: Option<CopyCursor>,
    /// Slices on their way.
    slices: Vec<Vec<u8>>,
    /// Ends from before it began.
    ends: u64,
}

impl Replica {
    fn new(w: World) -> Replica {
        Replica { w, adopted: BTreeMap::new(), copy: None }
    }

    fn adopt(&mut self, id: TxnId, least: u64, writes: &Writes) {
        let txn = TxnRef::new(id);
        txn.status.set(TxnState::Prepared(Timestamp(least)));
        for write in writes {
            self.w.p.adopt(&txn, 0, TABLE, write.write()).expect("nothing is in the way");
        }
        self.adopted.insert(id, txn);
    }

    /// A chunk, or with `least` what is in none.
    fn adopt_piece(&mut self, id: TxnId, number: u32, writes: &Writes, least: Option<u64>) {
        let txn = self.adopted.entry(id).or_insert_with(|| TxnRef::new(id)).clone();
        for write in writes {
            self.w.p.adopt(&txn, number, TABLE, write.write()).expect("nothing is in the way");
        }
        if let Some(least) = least {
            txn.status.set(TxnState::Prepared(Timestamp(least)));
        }
    }

    fn take_back(&mut self, id: TxnId, left: u32) {
        match left {
            0 => {
                self.w.p.abort(id);
                self.adopted.remove(&id);
            }
            left => self.w.p.take_back(id, left),
        }
    }

    fn decide(&mut self, id: TxnId, time: Option<u64>, writes: &Writes, horizon: Horizon) {
        let time = time.map(Timestamp);
        if self.copy.is_some() {
            let Some(time) = time else { return };
            writes.iter().for_each(|write| write.restore(&mut self.w.p, time.0));
            return;
        }
        let txn = self.adopted.remove(&id).expect("it was adopted");
        match time {
            Some(time) => {
                txn.status.set(TxnState::Committed(time));
                self.w.p.commit(id, time, horizon);
            }
            None => {
                txn.status.set(TxnState::Aborted);
                self.w.p.abort(id);
            }
        }
    }
}

struct Group {
    primary: World,
    replicas: Vec<Replica>,
    prepared: Vec<Prepared>,
    rng: SmallRng,
    copies: u64,
    too_old: u64,
    sparse: u64,
    chunks: u64,
    taken_back: u64,
    digests: u64,
    /// Rows that a transaction on the primary may have locked and not written: it went back. By transaction.
    locked_only: BTreeMap<TxnId, BTreeSet<i64>>,
}

impl Group {
    fn new(seed: u64, wide: bool) -> Group {
        let hash_only = seed.is_multiple_of(3);
        let world = || World::new(if wide { wide_schema(hash_only) } else { schema(hash_only, true) });
        let mut primary = world();
        primary.durable = u64::MAX;
        let mut replicas = vec![Replica::new(world()), Replica::new(world())];
        primary.p.set_chunk_bytes([1, 20, u64::MAX][seed as usize % 3]);
        for p in replicas.iter_mut().map(|r| &mut r.w.p).chain([&mut primary.p]) {
            p.set_end_slice([1, 2, 128][seed as usize / 3 % 3]);
        }
        let rng = SmallRng::seed_from_u64(seed);
        Group {
            primary,
            replicas,
            prepared: Vec::new(),
            rng,
            copies: 0,
            too_old: 0,
            sparse: 0,
            chunks: 0,
            taken_back: 0,
            digests: 0,
            locked_only: BTreeMap::new(),
        }
    }

    fn followers(&mut self) -> impl Iterator<Item = &mut Replica> {
        self.replicas.iter_mut().filter(|r| r.copy.is_none())
    }

    /// What whoever leaves the primary sends.
    fn send(&mut self, id: TxnId, chunks: &mut Vec<Writes>) {
        for back in self.primary.p.take_taken_back() {
            assert_eq!(back.txn, id);
            assert!((back.left as usize) < chunks.len());
            chunks.truncate(back.left as usize);
            self.taken_back += 1;
            self.followers().for_each(|r| r.take_back(id, back.left));
        }
        for txn in self.primary.p.take_full() {
            assert_eq!(txn, id);
            let mut writes = Writes::new();
            let number = self.primary.p.collect_chunk(id, &mut |_, write| writes.push(Logged::of(write)));
            let Some(number) = number else { continue };
            assert_eq!(number as usize, chunks.len());
            self.followers().for_each(|r| r.adopt_piece(id, number, &writes, None));
            self.chunks += 1;
            chunks.push(writes);
        }
    }

    fn horizon(&mut self) -> Horizon {
        let oldest = self.rng.random_range(self.primary.now.saturating_sub(4)..=self.primary.now);
        Horizon { oldest_snapshot: Timestamp(oldest), durable: Timestamp::MAX }
    }

    fn row(&mut self) -> Row {
        let k = if self.rng.random_ratio(1, 6) { None } else { Some(self.rng.random_range(0..6)) };
        let v = (0..self.rng.random_range(0..6)).map(|_| self.rng.random_range(0..3u8)).collect();
        (self.rng.random_range(0..IDS), k, v)
    }

    /// A transaction runs on the primary and prepares.
    fn prepare(&mut self) {
        let mut txn = self.primary.begin();
        let id = txn.r.id;
        let mut chunks = Vec::new();
        let mut asked = BTreeSet::new();
        for _ in 0..self.rng.random_range(0..8) {
            if self.rng.random_ratio(1, 3) {
                txn.statement += 1;
            }
            if self.rng.random_ratio(1, 8) {
                let to = self.rng.random_range(1..=txn.statement);
                self.primary.p.rollback_to(id, to);
                self.locked_only.entry(id).or_default().extend(&asked);
                self.send(id, &mut chunks);
                if self.rng.random_ratio(1, 2) {
                    self.compare();
                }
                while !self.primary.p.go_on_with(id) {
                    self.send(id, &mut chunks);
                    self.go_on();
                    self.primary.p.validate();
                }
            }
            let row = self.row();
            asked.insert(row.0);
            let result = match self.rng.random_range(0..5) {
                0..2 => self.primary.insert(&txn, &row).map(|()| true),
                2..4 => self.primary.update(&txn, &row),
                _ => self.primary.delete(&txn, row.0),
            };
            match result {
                Ok(_) | Err(Stop::Duplicate) => {}
                Err(Stop::Wait(_)) => {
                    self.locked_only.remove(&id);
                    self.primary.abort(txn);
                    return self.send(id, &mut chunks);
                }
                Err(other) => panic!("{other:?}"),
            }
            self.send(id, &mut chunks);
            if self.rng.random_ratio(1, 4) {
                // What is not sent yet is locked on the primary only.
                let before = self.locked_only.insert(id, asked.clone());
                self.compare();
                match before {
                    Some(rows) => self.locked_only.insert(id, rows),
                    None => self.locked_only.remove(&id),
                };
            }
        }
        self.primary.p.seal_chunks(id);
        let mut writes = Writes::new();
        self.primary.p.collect_writes(txn.r.id, &mut |_, write| {
            writes.push(Logged::of(write));
        });
        self.sparse += writes.iter().filter(|write| matches!(write, Logged::Sparse(_))).count() as u64;
        let least = self.primary.p.times().least_time(Timestamp::ZERO);
        txn.r.status.set(TxnState::Prepared(least));
        let number = chunks.len() as u32;
        self.followers().for_each(|r| r.adopt_piece(id, number, &writes, Some(least.0)));
        let writes = chunks.into_iter().flatten().chain(writes).collect();
        self.prepared.push(Prepared { txn, least: least.0, writes });
    }

    /// All replicas have the same rows, and will have when some of what is prepared has committed.
    fn compare_digests(&mut self) {
        let ratio = self.rng.random_range(0..=3);
        let rng = &mut self.rng;
        let some = self.prepared.iter().map(|prepared| prepared.txn.r.id).filter(|_| rng.random_ratio(ratio, 3));
        let some: Vec<TxnId> = some.collect();
        let Some(here) = self.primary.p.digests_with(&some, usize::MAX) else { return };
        for replica in self.replicas.iter().filter(|replica| replica.copy.is_none()) {
            if let Some(there) = replica.w.p.digests_with(&some, usize::MAX) {
                assert_eq!(there, here, "digests");
                self.digests += 1;
            }
        }
    }

    /// Walks over stored rows, also while some are copied.
    fn scrub(&mut self) {
        let rows = self.rng.random_range(1..IDS as usize);
        self.replicas.iter_mut().map(|r| &mut r.w).chain([&mut self.primary]).for_each(|w| w.scrub(rows));
    }

    fn decide(&mut self, at: usize) {
        let Prepared { txn, least, writes } = self.prepared.remove(at);
        let time = self.rng.random_ratio(4, 5).then(|| least + self.rng.random_range(0..3));
        let horizon = self.horizon();
        let id = txn.r.id;
        self.locked_only.remove(&id);
        match time {
            Some(time) => {
                self.primary.now = self.primary.now.max(time);
                txn.r.status.set(TxnState::Committed(Timestamp(time)));
                let expected = self.primary.p.digests_with(&[id], usize::MAX);
                self.primary.p.commit(id, Timestamp(time), horizon);
                let found = self.primary.p.digests_with(&[], 0);
                assert!(found.is_none() || expected.is_none() || found == expected, "{expected:?} and then {found:?}");
            }
            None => self.primary.abort(txn),
        }
        for replica in &mut self.replicas {
            replica.decide(id, time, &writes, horizon);
        }
        self.primary.p.take_granted();
        self.primary.p.take_taken_back();
    }

    /// Somebody has time for the ends that are under way.
    fn go_on(&mut self) {
        let (horizon, which) = (self.horizon(), self.rng.random_range(0..=self.replicas.len()));
        let p = self.replicas.get_mut(which).map_or(&mut self.primary.p, |r| &mut r.w.p);
        p.go_on(horizon);
    }

    fn copy(&mut self, at: usize) {
        let (rows, bytes) = (self.rng.random_range(1..5), self.rng.random_range(0..200));
        let deliver = self.rng.random_ratio(1, 2);
        let twice = self.rng.random_ratio(1, 4);
        let replica = &mut self.replicas[at];
        let Some(copy) = &mut replica.copy else {
            replica.w.p.clear();
            replica.w.p.validate();
            assert_eq!((replica.w.rows(), replica.w.p.finished()), (0, Timestamp::ZERO));
            replica.adopted.clear();
            let ends = self.primary.p.newest_end();
            replica.copy = Some(Copy { cursor: Some(CopyCursor::default()), slices: Vec::new(), ends });
            return;
        };
        if self.primary.p.has_ends_upto(copy.ends) {
            // What was committed before the copy began comes in no other way.
            let horizon = self.horizon();
            return self.primary.p.go_on(horizon);
        }
        if let (Some(cursor), true) = (copy.cursor, copy.slices.is_empty() || !deliver) {
            let mut slice = Vec::new();
            let next = self.primary.p.copy_slice(cursor, rows, bytes, &mut slice);
            assert!(next.is_none_or(|n| n > cursor));
            copy.cursor = next.map(|n| CopyCursor::decode(&n.encode()).unwrap());
            copy.slices.push(slice);
            return;
        }
        if !copy.slices.is_empty() {
            let slice = copy.slices.remove(0);
            for _ in 0..1 + u64::from(twice) {
                replica.w.p.restore_slice(&slice, &mut |_| false).unwrap();
            }
            return;
        }
        replica.copy = None;
        replica.w.p.finish_restore().unwrap();
        for prepared in &self.prepared {
            replica.adopt(prepared.txn.r.id, prepared.least, &prepared.writes);
        }
        self.copies += 1;
    }

    fn compare(&mut self) {
        let newest = self.rng.random_ratio(1, 2);
        let time = self.rng.random_range(0..=self.primary.now);
        let at = if newest { ReadAt::Newest } else { ReadAt::Snapshot(Timestamp(time)) };
        if !newest {
            // The primary confirms the snapshot.
            self.primary.p.raise_max_read(Timestamp(time));
        }
        let id = self.rng.random_range(0..IDS);
        let index = [None, Some(BY_K), Some(BY_V)][self.rng.random_range(0..3)];
        let key_share = newest.then(|| self.locked(None, id));
        let point = self.primary.read(None, id, at).map(|(row, _)| row);
        let scan = sorted(self.primary.scan(None, &whole(index), at, 4));
        for i in 0..self.replicas.len() {
            if self.replicas[i].copy.is_some() {
                continue;
            }
            if let Some(expected) = &key_share {
                // A row that came and went within a transaction is locked where that ran.
                let here = self.locked(Some(i), id);
                let went_back = self.locked_only.values().any(|rows| rows.contains(&id));
                let gone = (&here, expected) == (&Ok(None), &Err(Stop::WouldWait))
                    || went_back && here.is_ok() && *expected == Err(Stop::WouldWait)
                    || [&here, expected].contains(&&Err(Stop::Committing));
                assert!(here == *expected || gone, "locks of row {id}: {here:?} and not {expected:?}");
            }
            let w = &mut self.replicas[i].w;
            let here = w.read(None, id, at).map(|(row, _)| row);
            // A copy has no history, and says so.
            let too_old = [&here, &point].contains(&&Err(Stop::SnapshotTooOld));
            self.too_old += u64::from(too_old);
            let gone = matches!((&here, &point), (Ok(None), Err(Stop::Prepared(_))));
            assert!(here == point || gone || too_old && !newest, "row {id} at {at:?}: {here:?} and not {point:?}");
            let here = sorted(w.scan(None, &whole(index), at, 4));
            let too_old = [&here, &scan].contains(&&Err(Stop::SnapshotTooOld));
            let stopped = matches!(&scan, Err(Stop::Prepared(_)));
            assert!(here == scan || stopped || too_old && !newest, "{index:?} at {at:?}: {here:?} and not {scan:?}");
        }
    }

    /// What a lock that waits for nobody finds: rows of prepared transactions are locked on every replica.
    fn locked(&mut self, replica: Option<usize>, id: i64) -> Result<Option<Row>, Stop> {
        let w = replica.map_or(&mut self.primary, |i| &mut self.replicas[i].w);
        let probe = Txn { r: TxnRef::new(TxnId(u64::MAX)), statement: 1, conflict_after: None };
        let result = w.read_locked(&probe, id, LockMode::Shared, WaitPolicy::NoWait);
        w.abort(probe);
        result
    }

    fn step(&mut self) {
        match self.rng.random_range(0..20) {
            0..6 => self.prepare(),
            6..11 if !self.prepared.is_empty() => {
                let at = self.rng.random_range(0..self.prepared.len());
                self.decide(at);
            }
            11..14 if self.replicas[1].copy.is_some() || self.rng.random_ratio(1, 8) => self.copy(1),
            14 => {
                let (horizon, limit) = (self.horizon(), self.rng.random_range(1..10));
                self.primary.p.collect(horizon, limit);
                self.replicas.iter_mut().filter(|r| r.copy.is_none()).for_each(|r| {
                    r.w.p.collect(horizon, limit);
                });
            }
            15 => self.primary.now += self.rng.random_range(0..3),
            16..18 => self.go_on(),
            18 if self.rng.random_ratio(1, 2) => self.compare_digests(),
            18 => self.scrub(),
            _ => self.compare(),
        }
    }

    fn validate(&self) {
        self.primary.p.validate();
        self.replicas.iter().filter(|r| r.copy.is_none()).for_each(|r| r.w.p.validate());
    }

    fn finish(mut self) -> [u64; 6] {
        while self.replicas[1].copy.is_some() {
            self.copy(1);
        }
        while !self.prepared.is_empty() {
            self.decide(0);
        }
        self.validate();
        for p in self.replicas.iter_mut().map(|r| &mut r.w.p).chain([&mut self.primary.p]) {
            p.finish_ends();
        }
        for index in [None, Some(BY_K), Some(BY_V)] {
            let expected = sorted(self.primary.scan(None, &whole(index), ReadAt::Newest, 9));
            for r in &mut self.replicas {
                assert_eq!(sorted(r.w.scan(None, &whole(index), ReadAt::Newest, 9)), expected);
                assert_eq!(r.w.rows(), expected.as_ref().unwrap().len() as u64);
            }
        }
        for r in &self.replicas {
            assert_eq!(r.w.p.digest(), self.primary.p.digest());
        }
        self.validate();
        for r in self.replicas {
            let budget = r.w.budget.clone();
            drop(r.w);
            assert_eq!(budget.used(), 0, "bytes stay counted");
        }
        [self.copies, self.too_old, self.sparse, self.chunks, self.taken_back, self.digests]
    }
}

fn sorted(found: Result<Vec<(Vec<u8>, Row)>, Stop>) -> Result<Vec<(Vec<u8>, Row)>, Stop> {
    found.map(|mut found| {
        found.sort();
        found
    })
}

fn run(seed: u64, wide: bool, steps: usize) -> [u64; 6] {
    let mut group = Group::new(seed, wide);
    for step in 0..steps {
        group.step();
        if step % 16 == 0 {
            group.validate();
        }
    }
    group.finish()
}

#[test]
fn replicas_are_equal_where_rows_have_large_values() {
    let (mut copies, mut sparse) = (0, 0);
    for seed in 1000..1020 {
        let seen = run(seed, true, 800);
        copies += seen[0];
        sparse += seen[2];
    }
    assert!(copies > 10 && sparse > 40, "{copies} copies, {sparse} sparse rows");
}

#[test]
fn replicas_are_equal_whatever_happens_while_one_is_copied() {
    let (mut copies, mut too_old, mut chunks, mut taken_back, mut digests) = (0, 0, 0, 0, 0);
    for seed in 0..30 {
        let seen = run(seed, false, 1200);
        copies += seen[0];
        too_old += seen[1];
        chunks += seen[3];
        taken_back += seen[4];
        digests += seen[5];
    }
    assert!(digests > 200, "{digests} digests compared");
    assert!(copies > 60 && too_old > 0, "{copies} copies, {too_old} reads of what a copy does not have");
    assert!(chunks > 1000 && taken_back > 100, "{chunks} chunks, {taken_back} times taken back");
}

fn committed(rows: &[Row]) -> World {
    let mut w = World::new(schema(false, true));
    let t = w.begin();
    rows.iter().for_each(|row| w.insert(&t, row).unwrap());
    w.commit(t);
    w
}

fn prepared(id: u64, least: u64) -> TxnRef {
    let txn = TxnRef::new(TxnId(id));
    txn.status.set(TxnState::Prepared(Timestamp(least)));
    txn
}

#[test]
fn a_prepared_row_is_passed_by_below_its_least_time_and_awaited_from_there() {
    let mut w = committed(&[r(1, 1, "old"), r(2, 2, "x")]);
    let at = |t| ReadAt::Snapshot(Timestamp(t));
    assert_eq!(w.read(None, 1, at(6)).unwrap().0, Some(r(1, 1, "old")));
    assert_eq!((w.p.max_read(), w.p.finished()), (Timestamp(6), Timestamp(1)));
    let t = w.begin();
    w.update(&t, &r(1, 5, "new")).unwrap();
    let least = w.p.times().least_time(Timestamp::ZERO);
    assert_eq!((least, w.p.times().least_time(Timestamp(20))), (Timestamp(7), Timestamp(20)));
    t.r.status.set(TxnState::Prepared(least));
    let stop = Err(Stop::Prepared(t.r.id));
    assert_eq!(w.read(None, 1, at(6)).unwrap().0, Some(r(1, 1, "old")));
    assert_eq!(w.read(None, 1, at(7)), stop);
    assert_eq!(w.read(None, 1, ReadAt::Newest), stop);
    assert_eq!(w.read(None, 2, ReadAt::Newest).unwrap().0, Some(r(2, 2, "x")));
    assert_eq!(w.scan(None, &whole(None), at(8), 5), Err(Stop::Prepared(t.r.id)));
    assert_eq!(w.scan(None, &whole(Some(BY_K)), at(6), 5).unwrap().len(), 2);
    let other = w.begin();
    let policy = |w: &mut World, mode, wait| w.read_locked(&other, 1, mode, wait);
    assert_eq!(policy(&mut w, LockMode::Shared, WaitPolicy::NoWait), Err(Stop::WouldWait));
    assert_eq!(policy(&mut w, LockMode::KeyShare, WaitPolicy::NoWait), Err(Stop::WouldWait));
    assert_eq!(policy(&mut w, LockMode::Exclusive, WaitPolicy::SkipLocked), Ok(None));
    assert_eq!(policy(&mut w, LockMode::KeyShare, WaitPolicy::SkipLocked), Ok(None));
    assert_eq!(policy(&mut w, LockMode::KeyShare, WaitPolicy::Wait), Err(Stop::Prepared(t.r.id)));
    assert_eq!(w.update(&other, &r(1, 9, "other")), Err(Stop::Wait(vec![t.r.id])), "writers queue");
    t.r.status.set(TxnState::Committed(Timestamp(9)));
    let horizon = w.horizon();
    w.p.commit(t.r.id, Timestamp(9), horizon);
    assert_eq!(w.p.take_granted(), [other.r.id]);
    assert_eq!(w.update(&other, &r(1, 9, "other")), Ok(true));
    assert_eq!(w.p.finished(), Timestamp(9));
    w.abort(other);
    assert_eq!(w.read(None, 1, at(9)).unwrap().0, Some(r(1, 5, "new")));
    w.p.validate();
}

#[test]
fn adopting_meets_locks_unknown_tables_and_bytes_that_are_no_row() {
    let mut w = committed(&[r(1, 1, "a")]);
    let txn = prepared(100, 5);
    let row = w.encode(&r(1, 2, "b"));
    let holder = w.begin();
    let waiter = w.begin();
    w.update(&holder, &r(1, 7, "void")).unwrap();
    assert_eq!(w.update(&waiter, &r(1, 8, "void")), Err(Stop::Wait(vec![holder.r.id])));
    assert_eq!(w.p.adopt(&txn, 0, TABLE, Write::Put { layout: 0, row: &row }), Err(Stop::Wait(vec![holder.r.id])));
    w.abort(holder);
    assert_eq!(w.p.adopt(&txn, 0, TABLE, Write::Delete { key: &w.key(1) }), Err(Stop::Wait(vec![waiter.r.id])));
    w.abort(waiter);
    w.p.take_granted();
    let stale = Err(Stop::StaleSchema);
    assert_eq!(w.p.adopt(&txn, 0, TABLE, Write::Put { layout: 1, row: &row }), stale);
    assert_eq!(w.p.adopt(&txn, 0, TableId(99), Write::Put { layout: 0, row: &row }), stale);
    assert_eq!(w.p.adopt(&txn, 0, TableId(99), Write::Delete { key: &[] }), stale);
    assert_eq!(w.p.adopt(&txn, 0, TABLE, Write::Put { layout: 0, row: &row[..row.len() - 1] }), Err(Stop::NoRow));
    assert_eq!(w.p.adopt(&txn, 0, TABLE, Write::Delete { key: &w.key(2) }), Ok(()), "a missing row");
    assert_eq!(w.p.adopt(&txn, 0, TABLE, Write::Delete { key: &[1, 2, 3] }), Ok(()), "a key of no row");
    w.p.validate();
    // The same row twice, and one that comes and goes.
    let again = w.encode(&r(1, 3, "c"));
    let fresh = w.encode(&r(5, 5, "e"));
    for write in [
        Write::Put { layout: 0, row: &row },
        Write::Put { layout: 0, row: &again },
        Write::Put { layout: 0, row: &fresh },
        Write::Delete { key: &w.key(5) },
    ] {
        w.p.adopt(&txn, 0, TABLE, write).unwrap();
        w.p.validate();
    }
    txn.status.set(TxnState::Committed(Timestamp(6)));
    let horizon = w.horizon();
    w.p.commit(txn.id, Timestamp(6), horizon);
    w.p.validate();
    assert_eq!(w.all(None, ReadAt::Newest), [r(1, 3, "c")]);
    let deleted = prepared(101, 6);
    w.p.adopt(&deleted, 0, TABLE, Write::Delete { key: &w.key(1) }).unwrap();
    assert_eq!(
        w.p.adopt(&prepared(102, 6), 0, TABLE, Write::Put { layout: 0, row: &row }),
        Err(Stop::Wait(vec![deleted.id]))
    );
    w.p.abort(deleted.id);
    w.p.validate();
}

#[test]
fn equal_times_in_order_and_out_of_order() {
    let mut w = World::new(schema(false, true));
    let (a, b, key) = (w.encode(&r(1, 1, "a")), w.encode(&r(1, 2, "b")), w.key(1));
    let five = Timestamp(5);
    let now = |w: &World| {
        let mut rows = Vec::new();
        w.p.checkpoint_slice(TABLE, crate::row_store::RowId(0), 9, &mut |_, time, row| rows.push((time, row.to_vec())));
        rows
    };
    w.p.restore_put(TABLE, 0, &a, five).unwrap();
    w.p.restore_put(TABLE, 0, &b, five).unwrap();
    assert_eq!(now(&w), [(five, b.clone())], "in order, the later");
    w.p.restore_copied(TABLE, 0, &a, five).unwrap();
    assert_eq!(now(&w), [(five, b.clone())], "a copy brings only what is newer");
    w.p.restore_delete(TABLE, &key, five);
    w.p.restore_copied(TABLE, 0, &a, five).unwrap();
    assert_eq!(now(&w), [], "a deletion counts");
    w.p.restore_put(TABLE, 0, &a, five).unwrap();
    assert_eq!(now(&w), [(five, a.clone())]);
    // The same where the deletion came first.
    w.p.clear();
    w.p.restore_delete(TABLE, &key, five);
    w.p.restore_copied(TABLE, 0, &a, five).unwrap();
    assert_eq!(now(&w), []);
    w.p.restore_put(TABLE, 0, &b, five).unwrap();
    assert_eq!(now(&w), [(five, b.clone())], "inserted again at the time of its deletion");
    w.p.restore_copied(TABLE, 0, &a, Timestamp(6)).unwrap();
    assert_eq!(now(&w), [(Timestamp(6), a.clone())]);
    w.p.finish_restore().unwrap();
    w.p.validate();
    assert_eq!(w.p.finished(), Timestamp(6));
}

#[test]
fn versions_that_were_replaced_at_their_own_time_are_not_kept() {
    let mut w = committed(&[r(1, 1, "a")]);
    let held = Horizon { oldest_snapshot: Timestamp(1), durable: Timestamp::MAX };
    for n in 0..100 {
        let t = w.begin();
        w.update(&t, &r(1, n, &format!("{n}"))).unwrap();
        let time = w.p.times().least_time(Timestamp(2));
        assert_eq!(time, Timestamp(2));
        t.r.status.set(TxnState::Committed(time));
        w.p.commit(t.r.id, time, held);
    }
    w.p.validate();
    let first = w.encode(&r(1, 1, "a")).len() as u64;
    assert_eq!(w.p.table_usage(TABLE).unwrap().history_bytes, first, "what snapshot 1 sees, and no more");
    assert_eq!(w.all(Some(BY_K), ReadAt::Snapshot(Timestamp(1))), [r(1, 1, "a")]);
    assert_eq!(w.all(Some(BY_V), ReadAt::Snapshot(Timestamp(2))), [r(1, 99, "99")]);
}

#[test]
fn a_cleared_partition_keeps_its_tables_and_wakes_who_waits() {
    let mut w = committed(&[r(1, 1, "a"), r(2, 2, "b")]);
    w.read(None, 1, ReadAt::Snapshot(Timestamp(4))).unwrap();
    let (a, b) = (w.begin(), w.begin());
    w.update(&a, &r(1, 3, "c")).unwrap();
    assert!(matches!(w.update(&b, &r(1, 4, "d")), Err(Stop::Wait(_))));
    w.p.clear();
    w.p.validate();
    assert_eq!(w.p.take_granted(), [b.r.id]);
    assert_eq!((w.rows(), w.p.max_read(), w.p.finished()), (0, Timestamp(4), Timestamp::ZERO));
    assert_eq!(w.update(&b, &r(1, 4, "d")), Ok(false));
    w.abort(a);
    w.abort(b);
    w.insert(&Txn { r: TxnRef::new(TxnId(9)), statement: 1, conflict_after: None }, &r(1, 1, "again")).unwrap();
    w.p.validate();
}

#[test]
fn slices_go_over_all_tables_and_refuse_what_is_not_known() {
    let mut w = committed(&[]);
    let second = TableId(3);
    let mut other = (*schema(false, false)).clone();
    other.id = second;
    w.p.create_table(other.clone().into());
    let mut expected = Vec::new();
    for id in 0..10 {
        let row = w.encode(&r(id, id, "x"));
        w.p.restore_put(second, 0, &row, Timestamp(7)).unwrap();
        expected.push(row);
    }
    let key = w.key(0);
    w.p.restore_delete(second, &key, Timestamp(8));
    let (mut cursor, mut slices, mut slice) = (Some(CopyCursor::default()), Vec::new(), Vec::new());
    while let Some(from) = cursor {
        cursor = w.p.copy_slice(from, 4, 1 << 20, &mut slice);
        slices.push(slice.clone());
    }
    let rows = slices.iter().flat_map(|s| crate::partition::slice_rows(s).map(|r| r.unwrap().row.to_vec()));
    assert!(rows.eq(expected[1..].iter().cloned()));
    assert_eq!(slices.len(), 3);
    // Limits: a slice ends with the row that reaches the bytes.
    assert!(w.p.copy_slice(CopyCursor::default(), 100, 0, &mut slice).is_some());
    assert_eq!(w.p.copy_slice(CopyCursor::decode(&[0xff; 8]).unwrap(), 1, 1, &mut slice), None);
    assert_eq!(CopyCursor::decode(&[1, 2, 3]), None);
    let mut empty = Partition::new(PartitionId(1), w.budget.clone());
    let unknown = SliceError::StaleSchema { table: second, layout: 0 };
    assert_eq!(empty.restore_slice(&slices[1], &mut |_| false), Err(unknown));
    assert_eq!(empty.restore_slice(&slices[1], &mut |table| table == second), Ok(4));
    empty.create_table(other.into());
    let mut bad = slices[1].clone();
    bad.truncate(bad.len() - 1);
    assert!(matches!(empty.restore_slice(&bad, &mut |_| false), Err(SliceError::Malformed { .. })));
    let mut bad = slices[1].clone();
    *bad.last_mut().unwrap() = 0;
    bad[21 + 10] ^= 0xff;
    assert!(matches!(empty.restore_slice(&bad, &mut |_| false), Ok(4) | Err(SliceError::NoRow { .. })));
    assert_eq!(empty.restore_slice(&[9], &mut |_| false), Err(SliceError::Version(9)));
    assert!(empty.restore_slice(&[], &mut |_| false).is_err());
    for slice in &slices {
        empty.restore_slice(slice, &mut |_| false).unwrap();
    }
    empty.finish_restore().unwrap();
    empty.validate();
    assert_eq!(empty.table_usage(second).unwrap().rows, 9);
    assert!(empty.table_usage(second).unwrap().ordered_bytes > 0 && IndexId::PRIMARY == IndexId(0));
}
