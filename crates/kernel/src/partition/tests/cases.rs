//! Single cases: visibility, index entries, memory, history, definition changes.

use super::support::*;
use crate::budget::Purpose;
use crate::partition::{LockMode, ReadAt, ScanEnd, ScanPosition, ScanRequest, Stop, Verdict, WaitPolicy, Write};
use crate::row_store::RowId;
use crate::status::TxnState;
use rauk_types::{IndexId, TableId, TableSchema, Timestamp, key};
use std::ops::Bound;
use std::sync::Arc;

const NEWEST: ReadAt = ReadAt::Newest;

fn world() -> World {
    World::new(schema(false, true))
}

fn at(time: u64) -> ReadAt {
    ReadAt::Snapshot(Timestamp(time))
}

/// Commits one row in a transaction of its own.
fn put(w: &mut World, row: Row) -> u64 {
    let t = w.begin();
    match w.insert(&t, &row) {
        Ok(()) => {}
        Err(Stop::Duplicate) => assert_eq!(w.update(&t, &row), Ok(true)),
        Err(other) => panic!("{other:?}"),
    }
    w.commit(t)
}

fn remove(w: &mut World, id: i64) -> u64 {
    let t = w.begin();
    assert_eq!(w.delete(&t, id), Ok(true));
    w.commit(t)
}

#[test]
fn writes_are_seen_by_their_owner_and_by_others_after_commit() {
    let mut w = world();
    let mut t = w.begin();
    w.insert(&t, &r(1, 10, "a")).unwrap();
    assert_eq!(w.read(None, 1, NEWEST), Ok((None, 0)));
    assert_eq!(w.read(Some(&t), 1, NEWEST), Ok((None, 0)), "not by the statement that wrote it");
    t.statement = 2;
    assert_eq!(w.read(Some(&t), 1, NEWEST), Ok((Some(r(1, 10, "a")), 0)));
    assert_eq!(w.rows(), 0);
    let time = w.commit(t);
    assert_eq!(w.read(None, 1, NEWEST), Ok((Some(r(1, 10, "a")), time)));
    assert_eq!(w.read(None, 1, at(time - 1)), Ok((None, 0)));
    assert_eq!(w.rows(), 1);
    w.p.validate();
}

#[test]
fn of_many_inserts_those_are_left_whose_keys_are_there() {
    let mut w = world();
    put(&mut w, r(1, 10, "a"));
    put(&mut w, r(2, 20, "b"));
    remove(&mut w, 2);
    let other = w.begin();
    w.insert(&other, &r(3, 30, "c")).unwrap();
    let t = w.begin();
    let rows = [r(4, 40, "d"), r(1, 11, "x"), r(2, 21, "x"), r(3, 31, "x"), r(5, 50, "e"), r(4, 41, "x")];
    assert_eq!(w.insert_many(&t, &rows), [true, false, false, false, true, false]);
    w.p.validate();
    assert_eq!(w.insert(&t, &r(3, 31, "x")), Err(Stop::Wait(vec![other.r.id])), "the owner's lock is found");
    w.p.validate();
    w.abort(other);
    w.commit(t);
    assert_eq!(w.all(Some(BY_K), NEWEST), [r(1, 10, "a"), r(4, 40, "d"), r(5, 50, "e")]);
    w.p.validate();
}

#[test]
fn many_inserts_are_left_where_a_range_is_locked_or_memory_is_full() {
    let mut w = world();
    let reader = w.begin();
    w.p.lock_range(&reader.r, TABLE, BY_K, Bound::Unbounded, Bound::Unbounded).unwrap();
    let t = w.begin();
    assert_eq!(w.insert_many(&t, &[r(1, 10, "a")]), [false]);
    w.abort(reader);
    w.p.set_full_elsewhere(Some(1));
    assert_eq!(w.insert_many(&t, &[r(1, 10, "a")]), [false]);
    w.p.set_full_elsewhere(None);
    w.budget.set_limit(w.budget.used());
    assert_eq!(w.insert_many(&t, &[r(1, 10, "a"), r(2, 20, "b")]), [false, false]);
    assert!(!w.p.has_transaction(t.r.id), "nothing is left of it");
    w.p.validate();
}

#[test]
fn a_fresh_row_that_is_changed_again_is_an_ordinary_pending_one() {
    let mut w = world();
    let mut t = w.begin();
    w.insert(&t, &r(1, 10, "a")).unwrap();
    assert_eq!(w.update(&t, &r(1, 11, "aa")), Ok(true), "in the same statement");
    w.p.validate();
    t.statement = 2;
    assert_eq!(w.update(&t, &r(1, 12, "aaa")), Ok(true));
    w.insert(&t, &r(2, 20, "b")).unwrap();
    t.statement = 3;
    assert_eq!(w.delete(&t, 2), Ok(true));
    w.p.validate();
    t.statement = 4;
    assert_eq!(w.read(Some(&t), 1, NEWEST), Ok((Some(r(1, 12, "aaa")), 0)));
    w.p.rollback_to(t.r.id, 2);
    w.p.validate();
    assert_eq!(w.read(Some(&t), 1, NEWEST), Ok((Some(r(1, 11, "aa")), 0)));
    w.commit(t);
    assert_eq!(w.all(Some(BY_K), NEWEST), [r(1, 11, "aa")]);
    w.p.validate();
}

#[test]
fn a_snapshot_sees_what_was_and_collection_takes_it_away_after() {
    let mut w = world();
    let first = put(&mut w, r(1, 10, "a"));
    let snapshot = w.snapshot();
    put(&mut w, r(1, 20, "b"));
    let deleted = remove(&mut w, 1);
    w.durable = w.now;
    assert_eq!(w.read(None, 1, at(snapshot)), Ok((Some(r(1, 10, "a")), first)));
    assert_eq!(w.read(None, 1, at(deleted - 1)), Ok((Some(r(1, 20, "b")), deleted - 1)));
    assert_eq!(w.read(None, 1, NEWEST), Ok((None, deleted)), "the absence depends on the delete");
    assert_eq!(w.all(Some(BY_K), at(snapshot)), [r(1, 10, "a")]);
    assert_eq!(w.all(Some(BY_V), at(deleted - 1)), [r(1, 20, "b")]);
    assert_eq!(w.all(Some(BY_K), NEWEST), []);
    let horizon = w.horizon();
    assert_eq!(w.p.collect(horizon, 100), 0, "the snapshot needs it all");
    assert!(w.p.table_usage(TABLE).unwrap().history_bytes > 0);
    w.end_snapshot(snapshot);
    assert!(w.collect_all() > 0);
    w.p.validate();
    assert_eq!(w.p.table_usage(TABLE).unwrap().history_bytes, 0);
    assert_eq!(w.read(None, 1, NEWEST), Ok((None, 0)));
    assert!(w.p.fragments[&TABLE].rows.is_empty());
}

/// A transaction of many rows is in the way of their tombstones: a commit of one row looks at some of them, not at all.
#[test]
fn collecting_looks_at_few_rows_that_cannot_go_yet() {
    let mut w = world();
    let ids = 0..100;
    for id in ids.clone() {
        put(&mut w, r(id, 10, "a"));
    }
    for id in ids.clone() {
        remove(&mut w, id);
    }
    let writer = w.begin();
    ids.for_each(|id| w.insert(&writer, &r(id, 20, "b")).unwrap());
    w.durable = w.now;
    let horizon = w.horizon();
    w.p.collect(horizon, usize::MAX);
    let waiting = |w: &World| w.p.garbage.iter().map(|garbage| garbage.key).collect::<Vec<_>>();
    let before = waiting(&w);
    assert_eq!(before.len(), 100);
    assert_eq!(w.p.collect(horizon, 4), 0);
    let after = waiting(&w);
    assert_eq!((&after[..96], &after[96..]), (&before[4..], &before[..4]), "four went to the end");
    w.commit(writer);
    w.durable = w.now;
    w.collect_all();
    w.p.validate();
    assert_eq!(w.p.table_usage(TABLE).unwrap().history_bytes, 0);
    assert!(w.p.garbage.is_empty());
}

#[test]
fn what_is_not_durable_is_not_forgotten() {
    let mut w = world();
    put(&mut w, r(1, 10, "a"));
    put(&mut w, r(2, 10, "a"));
    w.collect_all();
    let request = ScanRequest { high: Bound::Excluded(w.index_key(1, &r(0, 11, ""))), ..whole(Some(BY_K)) };
    // Nobody has a snapshot, but a crash could take the changes back: a scan of the old keys must learn of them.
    let deleted = remove(&mut w, 2);
    let expect = |w: &mut World, observed: u64| {
        let horizon = w.horizon();
        w.p.collect(horizon, 100);
        let found: Vec<i64> = w.scan(None, &request, NEWEST, 9).unwrap().iter().map(|(_, row)| row.0).collect();
        assert_eq!((w.observed, found.contains(&2)), (observed, false));
        found.len()
    };
    assert_eq!(expect(&mut w, deleted), 1);
    let moved = put(&mut w, r(1, 50, "a"));
    assert_eq!(expect(&mut w, moved), 0);
    w.durable = deleted;
    assert_eq!(expect(&mut w, moved), 0);
    w.collect_all();
    assert_eq!(expect(&mut w, 0), 0);
    // Deleted and inserted again with another key.
    put(&mut w, r(3, 10, "a"));
    w.collect_all();
    remove(&mut w, 3);
    let again = put(&mut w, r(3, 50, "a"));
    assert_eq!(expect(&mut w, again), 0);
    w.collect_all();
    assert_eq!(expect(&mut w, 0), 0);
    w.p.validate();
}

#[test]
fn rollback_to_a_statement_undoes_what_came_after() {
    let mut w = world();
    put(&mut w, r(1, 1, "one"));
    put(&mut w, r(2, 2, "two"));
    let mut t = w.begin();
    w.update(&t, &r(1, 11, "one")).unwrap();
    t.statement = 2;
    w.update(&t, &r(1, 12, "other")).unwrap();
    w.insert(&t, &r(3, 3, "three")).unwrap();
    w.delete(&t, 2).unwrap();
    w.insert(&t, &r(2, 22, "again")).unwrap();
    w.update(&t, &r(2, 23, "and again")).unwrap();
    t.statement = 3;
    w.delete(&t, 3).unwrap();
    assert_eq!(w.all(Some(BY_K), NEWEST), [r(1, 1, "one"), r(2, 2, "two")]);
    w.p.validate();
    w.p.rollback_to(t.r.id, 3);
    t.statement = 4;
    assert_eq!(w.read(Some(&t), 3, NEWEST).unwrap().0, Some(r(3, 3, "three")));
    assert_eq!(w.read(Some(&t), 2, NEWEST).unwrap().0, Some(r(2, 23, "and again")));
    w.p.validate();
    w.p.rollback_to(t.r.id, 2);
    w.p.validate();
    assert_eq!(w.read(Some(&t), 3, NEWEST).unwrap().0, None);
    assert_eq!(w.read(Some(&t), 2, NEWEST).unwrap().0, Some(r(2, 2, "two")));
    let other = w.begin();
    assert!(matches!(w.update(&other, &r(2, 0, "")), Err(Stop::Wait(_))), "locks stay");
    w.abort(other);
    w.commit(t);
    assert_eq!(w.all(Some(BY_K), NEWEST), [r(2, 2, "two"), r(1, 11, "one")]);
    w.collect_all();
    w.p.validate();
}

#[test]
fn the_commit_record_has_the_net_effect_in_the_order_of_first_change() {
    let mut w = world();
    put(&mut w, r(1, 1, "one"));
    put(&mut w, r(2, 2, "two"));
    let mut t = w.begin();
    w.insert(&t, &r(9, 9, "gone")).unwrap();
    w.delete(&t, 2).unwrap();
    w.update(&t, &r(1, 5, "x")).unwrap();
    w.insert(&t, &r(3, 3, "three")).unwrap();
    t.statement = 2;
    w.delete(&t, 9).unwrap();
    w.insert(&t, &r(2, 7, "back")).unwrap();
    w.delete(&t, 1).unwrap();
    let mut writes = Vec::new();
    w.p.collect_writes(t.r.id, &mut |_, write| {
        writes.push(match write {
            Write::Put { row, .. } | Write::Sparse { row, .. } => row.to_vec(),
            Write::Delete { key } => key.to_vec(),
        });
    });
    assert_eq!(writes, [w.encode(&r(2, 7, "back")), w.key(1), w.encode(&r(3, 3, "three"))]);
    w.commit(t);
    assert_eq!(w.all(None, NEWEST).len(), 2);
    w.p.validate();
}

#[test]
fn a_committing_writer_makes_readers_retry_and_a_committed_one_is_read_before_its_commit_call() {
    let mut w = world();
    put(&mut w, r(1, 1, "old"));
    let t = w.begin();
    w.update(&t, &r(1, 2, "new")).unwrap();
    t.r.status.set(TxnState::Committing);
    assert_eq!(w.read(None, 1, NEWEST), Err(Stop::Committing));
    assert_eq!(w.read(None, 1, at(w.now)), Err(Stop::Committing));
    assert_eq!(w.scan(None, &whole(Some(BY_K)), NEWEST, 10), Err(Stop::Committing));
    let other = w.begin();
    let nowait = w.read_locked(&other, 1, LockMode::Shared, WaitPolicy::NoWait);
    assert_eq!(nowait, Err(Stop::Committing), "it will be free in a moment");
    w.now += 1;
    let time = w.now;
    t.r.status.set(TxnState::Committed(Timestamp(time)));
    assert_eq!(w.read(None, 1, NEWEST), Ok((Some(r(1, 2, "new")), time)));
    assert_eq!(w.read(None, 1, at(time - 1)).unwrap().0, Some(r(1, 1, "old")));
    assert_eq!(w.all(Some(BY_K), at(time)), [r(1, 2, "new")]);
    assert_eq!(w.insert(&other, &r(1, 5, "")), Err(Stop::Duplicate));
    let horizon = w.horizon();
    w.p.commit(t.r.id, Timestamp(time), horizon);
    assert_eq!(w.read(None, 1, NEWEST), Ok((Some(r(1, 2, "new")), time)));
    w.abort(other);
    w.p.validate();
}

#[test]
fn rows_changed_after_the_snapshot_are_not_overwritten() {
    let mut w = world();
    for id in 1..=5 {
        put(&mut w, r(id, id * 10, "x"));
    }
    let mut t = w.begin();
    t.conflict_after = Some(w.snapshot());
    put(&mut w, r(1, 11, "y"));
    remove(&mut w, 2);
    put(&mut w, r(3, 99, "moved"));
    put(&mut w, r(6, 25, "new"));
    assert_eq!(w.update(&t, &r(1, 0, "")), Err(Stop::Changed));
    assert_eq!(w.delete(&t, 1), Err(Stop::Changed));
    assert_eq!(w.read_locked(&t, 1, LockMode::Shared, WaitPolicy::Wait), Err(Stop::Changed));
    assert_eq!(w.insert(&t, &r(1, 0, "")), Err(Stop::Duplicate));
    assert_eq!(w.insert(&t, &r(2, 0, "")), Err(Stop::Changed));
    assert_eq!(w.read_locked(&t, 2, LockMode::Shared, WaitPolicy::Wait), Err(Stop::Changed));
    assert!(w.p.txns.get(t.r.id).is_none(), "no lock is left");
    let mut scan = |low: i64, high: i64, keep: &dyn Fn(&Row) -> bool| {
        let (low, high) = (w.index_key(1, &r(0, low, "")), w.index_key(1, &r(0, high, "")));
        let request = ScanRequest {
            low: Bound::Included(low),
            high: Bound::Excluded(high),
            lock: Some((LockMode::Exclusive, WaitPolicy::Wait)),
            ..whole(Some(BY_K))
        };
        let mut access = w.access(Some(&t), NEWEST);
        let mut seen = Vec::new();
        let mut visit = |row: &crate::partition::ScanRow<'_>| {
            let row = decode(&row.row);
            if !keep(&row) {
                return Verdict::Skip;
            }
            seen.push(row.0);
            Verdict::Keep
        };
        w.p.scan(&request, &mut ScanPosition::Start, 100, &mut access, &mut visit).map(|_| seen)
    };
    assert_eq!(scan(40, 60, &|_| true), Ok(vec![4, 5]));
    assert_eq!(scan(11, 12, &|_| true), Err(Stop::Changed));
    assert_eq!(scan(11, 12, &|_| false), Ok(vec![]), "a changed row that is not wanted is no conflict");
    for (at, what) in [(30, "the snapshot has row 3 there"), (20, "the snapshot has row 2 there")] {
        assert_eq!(scan(at, at + 1, &|_| true), Err(Stop::Changed), "{what}");
        assert_eq!(scan(at, at + 1, &|_| false), Ok(vec![]), "{what}, and nobody wants it");
    }
    assert_eq!(scan(25, 26, &|_| true), Err(Stop::Changed), "row 6 is newer than the snapshot");
    w.abort(t);
    w.p.validate();
}

/// Whether a condition is true before or after the change, or both: without an index as with one.
#[test]
fn a_locking_scan_does_not_pass_over_rows_that_its_snapshot_has() {
    for index in [None, Some(IndexId::PRIMARY), Some(BY_K), Some(BY_V)] {
        let mut w = world();
        for id in 1..=4 {
            put(&mut w, r(id, 20, "v"));
        }
        let mut t = w.begin();
        t.conflict_after = Some(w.snapshot());
        put(&mut w, r(1, 18, "v"));
        put(&mut w, r(2, 20, "moved"));
        remove(&mut w, 3);
        put(&mut w, r(5, 20, "new"));
        let mut scan = |keep: &dyn Fn(&Row) -> bool| {
            let request = ScanRequest { lock: Some((LockMode::Exclusive, WaitPolicy::Wait)), ..whole(index) };
            let mut access = w.access(Some(&t), NEWEST);
            let mut seen = Vec::new();
            let mut visit = |row: &crate::partition::ScanRow<'_>| {
                let row = decode(&row.row);
                if !keep(&row) {
                    return Verdict::Skip;
                }
                seen.push(row.0);
                Verdict::Keep
            };
            w.p.scan(&request, &mut ScanPosition::Start, 100, &mut access, &mut visit).map(|_| seen)
        };
        assert_eq!(scan(&|row| row.0 == 1 && row.1 == Some(20)), Err(Stop::Changed), "updated, {index:?}");
        assert_eq!(scan(&|row| row.0 == 1 && row.1 == Some(18)), Err(Stop::Changed), "became so, {index:?}");
        assert_eq!(scan(&|row| row.0 == 1 && row.1 == Some(19)), Ok(vec![]), "never was so, {index:?}");
        assert_eq!(scan(&|row| row.0 == 2 && row.2 == b"v"), Err(Stop::Changed), "moved, {index:?}");
        assert_eq!(scan(&|row| row.0 == 3), Err(Stop::Changed), "deleted, {index:?}");
        assert_eq!(scan(&|row| row.0 == 3 && row.1 == Some(1)), Ok(vec![]), "deleted and not wanted, {index:?}");
        assert_eq!(scan(&|row| row.0 == 5), Err(Stop::Changed), "inserted, {index:?}");
        assert_eq!(scan(&|row| row.0 == 4), Ok(vec![4]), "unchanged, {index:?}");
        w.abort(t);
        w.p.validate();
    }
}

/// What a snapshot needs may have been given up: then a locking scan or read cannot tell, and says so.
#[test]
fn a_locking_scan_below_the_floors_is_refused() {
    let mut w = world();
    w.p.set_history_limit(1);
    put(&mut w, r(1, 1, "a long enough row"));
    let mut t = w.begin();
    t.conflict_after = Some(w.snapshot());
    remove(&mut w, 1);
    put(&mut w, r(2, 2, "b"));
    put(&mut w, r(2, 3, "c"));
    w.durable = w.now;
    put(&mut w, r(2, 4, "d"));
    for index in [None, Some(BY_K)] {
        let request = ScanRequest { lock: Some((LockMode::Shared, WaitPolicy::Wait)), ..whole(index) };
        let mut access = w.access(Some(&t), NEWEST);
        let scanned = w.p.scan(&request, &mut ScanPosition::Start, 9, &mut access, &mut |_| Verdict::Skip);
        assert_eq!(scanned, Err(Stop::SnapshotTooOld), "{index:?}");
        if index.is_some() {
            let keys = w.p.scan_keys(&request, &mut ScanPosition::Start, 9, &access, &mut |_| {});
            assert_eq!(keys, Err(Stop::SnapshotTooOld));
        }
    }
    assert_eq!(w.read_locked(&t, 1, LockMode::Shared, WaitPolicy::Wait), Err(Stop::SnapshotTooOld));
    assert_eq!(w.delete(&t, 1), Err(Stop::SnapshotTooOld));
    w.abort(t);
    w.p.validate();
}

#[test]
fn at_the_memory_limit_writes_fail_whole_deletes_work_and_memory_comes_back() {
    let mut w = World::limited(schema(false, true), 2 << 20);
    let long = "x".repeat(90);
    let mut id = 0;
    let (full, t) = loop {
        let t = w.begin();
        match w.insert(&t, &r(id, id % 10, &long)) {
            Ok(()) => drop(w.commit(t)),
            Err(stop) => break (stop, t),
        }
        id += 1;
    };
    assert_eq!(full, Stop::MemoryFull { limit: 2 << 20 });
    assert!(id > 3000, "only {id} rows fit");
    w.p.validate();
    assert_eq!(w.rows(), id as u64);
    assert_eq!(w.read(None, id, NEWEST).unwrap().0, None);
    for i in 0..id {
        assert_eq!(w.delete(&t, i), Ok(true), "row {i}");
    }
    w.commit(t);
    w.p.finish_ends();
    w.collect_all();
    assert_eq!(w.rows(), 0);
    w.p.validate();
    assert!(w.budget.used() < 400 << 10, "{} bytes stay", w.budget.used());
    for i in 0..1000 {
        put(&mut w, r(i, 0, &long));
    }
    let t = w.begin();
    w.budget.set_limit(1 << 10);
    let grown: Vec<_> = (0..1000).map(|i| w.update(&t, &r(i, 0, &long))).collect();
    assert!(grown.contains(&Err(Stop::MemoryFull { limit: 1 << 10 })));
    let refused = grown.iter().position(|g| g.is_err()).unwrap();
    let other = w.begin();
    assert!(w.delete(&other, refused as i64).is_ok(), "the refused update keeps no lock");
    w.abort(other);
    w.abort(t);
    w.p.validate();
}

#[test]
fn at_the_history_limit_the_old_snapshot_fails_and_new_ones_do_not() {
    let mut w = world();
    w.p.set_history_limit(200);
    put(&mut w, r(1, 1, "a"));
    put(&mut w, r(2, 2, "b"));
    put(&mut w, r(3, 3, "c"));
    let old = w.snapshot();
    for i in 0..20 {
        w.durable = w.now;
        put(&mut w, r(1, 100 + i, "filling up the history"));
    }
    w.durable = w.now;
    remove(&mut w, 3);
    let late = w.snapshot();
    w.durable = w.now;
    put(&mut w, r(2, 200, "b"));
    w.p.validate();
    assert_eq!(w.read(None, 1, at(old)), Err(Stop::SnapshotTooOld));
    assert_eq!(w.read(None, 2, at(old)).unwrap().0, Some(r(2, 2, "b")), "its version is still there");
    assert_eq!(w.scan(None, &whole(Some(BY_K)), at(old), 9), Err(Stop::SnapshotTooOld));
    let mut rows = w.all(Some(BY_K), at(late));
    rows.sort();
    assert_eq!(rows, [r(1, 119, "filling up the history"), r(2, 2, "b")]);
    // Deleted rows go as well; a read that finds nothing must not say that there was nothing.
    w.p.set_history_limit(0);
    w.durable = w.now;
    put(&mut w, r(9, 9, "x"));
    w.durable = w.now;
    put(&mut w, r(9, 10, "x"));
    assert_eq!(w.read(None, 3, at(old)), Err(Stop::SnapshotTooOld));
    assert_eq!(w.scan(None, &whole(None), at(old), 9), Err(Stop::SnapshotTooOld));
    assert_eq!(w.read(None, 3, at(w.now)).unwrap().0, None);
    w.p.validate();
}

#[test]
fn scans_find_their_place_again_whatever_happened_in_between() {
    let mut w = world();
    for id in 0..10 {
        put(&mut w, r(id, id / 2, "x"));
    }
    for reverse in [false, true] {
        let request = ScanRequest { reverse, ..whole(Some(BY_K)) };
        let (mut position, mut seen) = (ScanPosition::Start, Vec::new());
        let mut slice = |w: &mut World, n| {
            let mut access = w.access(None, NEWEST);
            w.p.scan(&request, &mut position, n, &mut access, &mut |row| {
                seen.push(decode(&row.row).0);
                Verdict::Keep
            })
        };
        assert_eq!(slice(&mut w, 4), Ok(ScanEnd::More));
        let (here, next) = if reverse { (6, 5) } else { (3, 4) };
        remove(&mut w, here);
        remove(&mut w, next);
        w.collect_all();
        while slice(&mut w, 2) == Ok(ScanEnd::More) {}
        let expected: Vec<i64> = if reverse { (0..10).rev().collect() } else { (0..10).collect() };
        let expected: Vec<i64> = expected.into_iter().filter(|id| *id != next).collect();
        assert_eq!(seen, expected);
        put(&mut w, r(here, here / 2, "x"));
        put(&mut w, r(next, next / 2, "x"));
    }
    w.p.validate();
}

#[test]
fn the_keys_of_a_range_include_pending_and_old_ones() {
    let mut w = world();
    for id in 0..6 {
        put(&mut w, r(id, id, "x"));
    }
    w.collect_all();
    let t = w.begin();
    w.update(&t, &r(2, 40, "x")).unwrap();
    w.insert(&t, &r(7, 4, "x")).unwrap();
    w.delete(&t, 5).unwrap();
    let access = w.access(None, NEWEST);
    for reverse in [false, true] {
        let request = ScanRequest { reverse, ..whole(Some(BY_K)) };
        let (mut position, mut keys) = (ScanPosition::Start, Vec::new());
        let mut more = Ok(ScanEnd::More);
        while more == Ok(ScanEnd::More) {
            more = w.p.scan_keys(&request, &mut position, 3, &access, &mut |key| keys.push(key.to_vec()));
        }
        if reverse {
            keys.reverse();
        }
        let expected: Vec<Vec<u8>> = [0, 1, 2, 3, 4, 4, 5, 40].iter().map(|k| w.index_key(1, &r(0, *k, ""))).collect();
        assert_eq!(keys, expected);
    }
    let none = w.p.scan_keys(&whole(None), &mut ScanPosition::Start, 3, &access, &mut |_| {});
    assert_eq!(none, Err(Stop::StaleSchema), "keys of no index");
    w.abort(t);
    w.p.validate();
}

#[test]
fn a_visitor_that_stops_continues_behind_its_row() {
    let mut w = world();
    for id in 0..6 {
        put(&mut w, r(id, 1, "x"));
    }
    for index in [None, Some(IndexId::PRIMARY)] {
        let mut position = ScanPosition::Start;
        for round in 0..6 {
            let mut access = w.access(None, NEWEST);
            let mut seen = Vec::new();
            let end = w.p.scan(&whole(index), &mut position, 100, &mut access, &mut |row| {
                seen.push(decode(&row.row).0);
                Verdict::KeepAndStop
            });
            assert_eq!((end, seen), (Ok(ScanEnd::More), vec![round]));
        }
    }
}

#[test]
fn an_index_is_built_over_rows_with_history() {
    let mut w = World::new(schema(false, false));
    for id in 0..20 {
        put(&mut w, r(id, id, "x"));
    }
    w.durable = w.now;
    let snapshot = w.snapshot();
    put(&mut w, r(3, 300, "y"));
    remove(&mut w, 4);
    let wider: TableSchema = TableSchema { version: 2, ..(*schema(false, true)).clone() };
    w.p.alter_table(Arc::new(wider));
    for index in [BY_K, BY_V] {
        let mut from = Some(RowId(0));
        while let Some(at) = from {
            from = w.p.build_index(TABLE, index, at, 3, Purpose::Write).unwrap();
        }
    }
    w.p.validate();
    let expected: Vec<Row> = (0..20).map(|id| r(id, id, "x")).collect();
    assert_eq!(w.all(Some(BY_K), at(snapshot)), expected);
    assert_eq!(w.all(Some(BY_K), NEWEST).len(), 19);
    assert_eq!(w.all(Some(BY_K), NEWEST).last(), Some(&r(3, 300, "y")));
    let estimate = w.p.estimate(TABLE, Some(BY_K), Bound::Unbounded, Bound::Unbounded).unwrap();
    assert!((15..30).contains(&estimate), "{estimate}");
    assert_eq!(w.p.estimate(TABLE, None, Bound::Unbounded, Bound::Unbounded), Some(19));
    w.p.alter_table(schema(false, false));
    assert_eq!(w.scan(None, &whole(Some(BY_K)), NEWEST, 5), Err(Stop::StaleSchema));
    w.p.validate();
}

#[test]
fn a_snapshot_whose_versions_went_before_the_index_came_is_refused() {
    let mut w = World::new(schema(false, false));
    put(&mut w, r(1, 10, "a"));
    let old = w.now;
    // Nobody has the snapshot: the old version goes, and no index key tells of it.
    put(&mut w, r(1, 20, "a"));
    w.durable = w.now;
    w.collect_all();
    w.p.alter_table(schema(false, true));
    assert_eq!(w.p.build_index(TABLE, BY_K, RowId(0), 10, Purpose::Write), Ok(None));
    assert_eq!(w.scan(None, &whole(Some(BY_K)), at(old), 5), Err(Stop::SnapshotTooOld));
    assert_eq!(w.scan(None, &whole(Some(IndexId::PRIMARY)), at(old), 5), Err(Stop::SnapshotTooOld));
    assert_eq!(w.all(Some(BY_K), NEWEST), [r(1, 20, "a")]);
}

#[test]
fn a_snapshot_from_before_a_built_table_was_shown_is_refused() {
    let mut w = world();
    let before = w.snapshot();
    put(&mut w, r(1, 10, "a"));
    assert_eq!(w.read(None, 1, at(before)), Ok((None, 0)), "a row that came later");
    w.p.show_table(TABLE);
    assert_eq!(w.read(None, 1, at(before)), Err(Stop::SnapshotTooOld));
    assert_eq!(w.read(None, 2, at(before)), Err(Stop::SnapshotTooOld));
    assert_eq!(w.scan(None, &whole(None), at(before), 5), Err(Stop::SnapshotTooOld));
    let after = w.snapshot();
    assert_eq!(w.read(None, 1, at(after)).unwrap().0, Some(r(1, 10, "a")));
}

#[test]
fn an_index_that_is_built_while_rows_are_restored_is_right_in_the_end() {
    let mut w = World::new(schema(false, false));
    let (old, new) = (w.encode(&r(1, 10, "a")), w.encode(&r(1, 20, "b")));
    w.p.restore_put(TABLE, 0, &old, Timestamp(5)).unwrap();
    let wider: TableSchema = TableSchema { version: 2, ..(*schema(false, true)).clone() };
    w.p.alter_table(Arc::new(wider));
    assert_eq!(w.p.build_index(TABLE, BY_K, RowId(0), 10, Purpose::Relief), Ok(None));
    w.p.restore_put(TABLE, 0, &new, Timestamp(6)).unwrap();
    w.p.finish_restore().unwrap();
    w.p.validate();
    assert_eq!(w.all(Some(BY_K), NEWEST), [r(1, 20, "b")]);
}

#[test]
fn a_dropped_table_takes_pending_versions_along() {
    let mut w = world();
    put(&mut w, r(1, 10, "a"));
    let (t, u) = (w.begin(), w.begin());
    w.insert(&t, &r(2, 20, "b")).unwrap();
    assert_eq!(w.update(&t, &r(1, 11, "c")), Ok(true));
    assert!(matches!(w.update(&u, &r(1, 12, "d")), Err(Stop::Wait(_))));
    w.p.drop_table(TABLE);
    w.p.validate();
    // Their ends find nothing.
    w.commit(t);
    w.abort(u);
    w.p.validate();
    assert_eq!(w.p.tables(), []);
}

#[test]
fn a_dropped_table_gives_back_everything() {
    let mut w = world();
    w.snapshot();
    for round in 0..3 {
        for id in 0..200 {
            put(&mut w, r(id, id + round, "some text"));
        }
    }
    assert!(w.budget.used() > 40 << 10);
    w.p.drop_table(TABLE);
    w.p.drop_table(TABLE);
    w.p.validate();
    assert_eq!(w.read(None, 1, NEWEST), Err(Stop::StaleSchema));
    assert_eq!(w.p.table_usage(TABLE), None);
    assert!(!w.p.has_table(TABLE));
    w.p.create_table(schema(true, true));
    assert_eq!(w.rows(), 0);
    let t = w.begin();
    assert_eq!(w.insert(&t, &r(1, 1, "x")), Ok(()));
    w.abort(t);
    assert_eq!(w.p.restore_put(TableId(99), 0, &[], Timestamp(1)), Err(Stop::StaleSchema));
}

#[test]
fn recovery_takes_the_latest_of_each_row_in_any_order() {
    let mut w = world();
    let rows = [r(1, 1, "old"), r(1, 2, "new"), r(2, 1, "x")];
    let bytes: Vec<Vec<u8>> = rows.iter().map(|row| w.encode(row)).collect();
    let (one, two, three) = (w.key(1), w.key(2), w.key(3));
    w.p.restore_put(TABLE, 0, &bytes[1], Timestamp(20)).unwrap();
    w.p.restore_put(TABLE, 0, &bytes[0], Timestamp(10)).unwrap();
    w.p.restore_delete(TABLE, &one, Timestamp(15));
    w.p.restore_delete(TABLE, &two, Timestamp(30));
    w.p.restore_delete(TABLE, &two, Timestamp(5));
    w.p.restore_put(TABLE, 0, &bytes[2], Timestamp(25)).unwrap();
    w.p.restore_delete(TABLE, &three, Timestamp(7));
    w.p.restore_put(TABLE, 0, &w.encode(&r(3, 3, "y")), Timestamp(8)).unwrap();
    w.p.restore_put(TABLE, 0, &w.encode(&r(4, 4, "z")), Timestamp(9)).unwrap();
    w.p.restore_delete(TABLE, &w.key(4), Timestamp(11));
    w.p.finish_restore().unwrap();
    w.p.validate();
    assert_eq!(w.all(Some(BY_K), NEWEST), [r(1, 2, "new"), r(3, 3, "y")]);
    assert_eq!(w.read(None, 1, at(19)), Err(Stop::SnapshotTooOld), "what was before the newest row is not known");
    assert_eq!(w.rows(), 2);
    assert_eq!(key::hash(&one), key::hash(&w.key(1)));
}

#[test]
fn a_row_of_100_bytes_takes_what_the_budget_says() {
    for (hash_only, goal) in [(true, 140.0), (false, 170.0)] {
        let mut w = World::new(schema(hash_only, false));
        let rows = 60_000;
        for id in 0..rows {
            let row = w.encode(&(id, Some(id), vec![7; 81]));
            assert_eq!(row.len(), 100);
            w.p.restore_put(TABLE, 0, &row, Timestamp(1)).unwrap();
        }
        w.p.finish_restore().unwrap();
        let each = w.budget.used() as f64 / rows as f64;
        assert!(each <= goal, "{each:.1} bytes a row, hash only: {hash_only}");
        let usage = w.p.table_usage(TABLE).unwrap();
        let sum = usage.row_bytes + usage.hash_bytes + usage.ordered_bytes;
        assert!(w.budget.used() - sum < 100_000, "{} bytes of {sum} are elsewhere", w.budget.used());
    }
}

#[test]
fn what_another_replica_has_no_room_for_is_refused_and_deletes_are_not() {
    let mut w = world();
    put(&mut w, r(1, 1, "a"));
    w.p.set_full_elsewhere(Some(77));
    let t = w.begin();
    let full = Stop::MemoryFull { limit: 77 };
    assert_eq!(w.insert(&t, &r(2, 2, "b")), Err(full.clone()));
    assert_eq!(w.update(&t, &r(1, 2, "b")), Err(full));
    let other = w.begin();
    assert_eq!(w.delete(&other, 1), Ok(true), "the refused update keeps no lock");
    w.commit(other);
    w.p.set_full_elsewhere(None);
    assert_eq!(w.insert(&t, &r(2, 2, "b")), Ok(()));
    w.commit(t);
    w.p.validate();
}

#[test]
fn rows_in_common_are_found_in_slices_of_any_size() {
    let mut w = world();
    for id in 0..3000i64 {
        // Sparse and dense, in runs and one by one.
        let row =
            w.encode(&(id, Some(id / 500 % 2), if id % 7 == 0 || id > 2900 { b"x".to_vec() } else { b"y".to_vec() }));
        w.p.restore_put(TABLE, 0, &row, Timestamp(1)).unwrap();
    }
    w.p.finish_restore().unwrap();
    let (k, x) = (w.index_key(1, &r(0, 1, "x")), w.index_key(2, &r(0, 1, "x")));
    let (nobody, none) = (w.index_key(1, &r(0, 9, "")), w.index_key(2, &r(0, 9, "z")));
    let expected: Vec<i64> = (0..3000).filter(|id| id / 500 % 2 == 1 && (id % 7 == 0 || *id > 2900)).collect();
    let request = |index, key: &[u8], also: &[(IndexId, &Vec<u8>)]| {
        let key = Bound::Included(key.to_vec());
        let also = also.iter().map(|(index, key)| (*index, (*key).clone())).collect();
        ScanRequest { low: key.clone(), high: key, also, ..whole(Some(index)) }
    };
    for slice in [1, 2, 5, 64, 256, 5000] {
        for request in [
            request(BY_K, &k, &[(BY_V, &x)]),
            request(BY_V, &x, &[(BY_K, &k)]),
            request(BY_V, &x, &[(BY_K, &k), (BY_V, &x), (BY_K, &k)]),
        ] {
            let found = w.scan(None, &request, NEWEST, slice).unwrap();
            let ids: Vec<i64> = found.into_iter().map(|(_, row)| row.0).collect();
            assert_eq!(ids, expected, "slices of {slice}: {request:?}");
        }
        for request in [request(BY_K, &k, &[(BY_V, &none)]), request(BY_K, &nobody, &[(BY_V, &x)])] {
            assert_eq!(w.scan(None, &request, NEWEST, slice).unwrap(), []);
        }
    }
    // A visitor that stops goes on behind the row.
    let request = request(BY_K, &k, &[(BY_V, &x)]);
    let (mut position, mut seen) = (ScanPosition::Start, Vec::new());
    loop {
        let mut access = w.access(None, NEWEST);
        let mut visit = |row: &crate::partition::ScanRow<'_>| {
            seen.push(decode(&row.row).0);
            Verdict::KeepAndStop
        };
        if w.p.scan(&request, &mut position, 256, &mut access, &mut visit).unwrap() == ScanEnd::Finished {
            break;
        }
    }
    assert_eq!(seen, expected);
    // Rows that are locked are all looked at.
    let t = w.begin();
    let locking = ScanRequest { lock: Some((LockMode::Shared, WaitPolicy::Wait)), ..request };
    assert_eq!(w.scan(Some(&t), &locking, NEWEST, 256).unwrap().len(), 1500);
    w.abort(t);
}

/// Of a transaction that has made chunks, whose rows go with their table.
#[test]
fn a_table_goes_while_the_end_of_a_large_transaction_is_under_way() {
    for commits in [true, false] {
        let mut w = world();
        w.p.set_end_slice(1);
        w.p.set_chunk_bytes(1);
        let t = w.begin();
        (0..5).for_each(|i| w.insert(&t, &r(i, 1, "a")).unwrap());
        for txn in w.p.take_full() {
            assert_eq!(w.p.collect_chunk(txn, &mut |_, _| ()), Some(0));
        }
        if commits {
            w.commit(t);
        } else {
            w.abort(t);
        }
        assert!(w.p.has_ends());
        w.p.validate();
        w.p.drop_table(TABLE);
        w.p.finish_ends();
        assert!(!w.p.has_ends());
        assert_eq!(w.p.open_transactions(), []);
    }
}
