//! Locks: who waits for whom, in which order, and who is woken.

use super::support::*;
use crate::partition::{LockMode, ReadAt, ScanEnd, ScanPosition, ScanRequest, Stop, Verdict, WaitPolicy};
use rauk_types::{IndexId, TxnId};
use std::ops::Bound;

use LockMode::{Exclusive, KeyShare, Shared};

fn world() -> World {
    let mut w = World::new(schema(false, true));
    let t = w.begin();
    for id in 0..10 {
        w.insert(&t, &r(id, id, "x")).unwrap();
    }
    w.commit(t);
    w.collect_all();
    w
}

fn lock(w: &mut World, t: &Txn, id: i64, mode: LockMode) -> Result<bool, Stop> {
    w.read_locked(t, id, mode, WaitPolicy::Wait).map(|row| row.is_some())
}

fn waits_for(txns: &[&Txn]) -> Result<bool, Stop> {
    let mut ids: Vec<TxnId> = txns.iter().map(|t| t.r.id).collect();
    ids.sort_unstable();
    Err(Stop::Wait(ids))
}

fn woken(w: &mut World, txns: &[&Txn]) {
    w.p.validate();
    let ids: Vec<TxnId> = txns.iter().map(|t| t.r.id).collect();
    assert_eq!(w.p.take_granted(), ids);
}

#[test]
fn a_queue_is_first_in_first_out_and_nobody_passes() {
    let mut w = world();
    let (a, b, c, d) = (w.begin(), w.begin(), w.begin(), w.begin());
    assert_eq!(lock(&mut w, &a, 1, Shared), Ok(true));
    assert_eq!(lock(&mut w, &b, 1, Exclusive), waits_for(&[&a]));
    assert_eq!(lock(&mut w, &c, 1, Shared), waits_for(&[&b]), "a new shared lock does not pass a queued exclusive one");
    assert_eq!(lock(&mut w, &d, 1, Shared), waits_for(&[&b]));
    assert_eq!(lock(&mut w, &b, 1, Exclusive), waits_for(&[&a]), "asking again keeps the place");
    woken(&mut w, &[]);
    w.abort(a);
    woken(&mut w, &[&b]);
    assert_eq!(lock(&mut w, &c, 1, Shared), waits_for(&[&b]));
    assert_eq!(lock(&mut w, &b, 1, Exclusive), Ok(true));
    w.abort(b);
    woken(&mut w, &[&c, &d]);
    assert_eq!(lock(&mut w, &c, 1, Shared), Ok(true));
    assert_eq!(lock(&mut w, &d, 1, Shared), Ok(true));
    w.commit(c);
    w.commit(d);
    assert!(!w.p.locks.is_used(super::super::side::RowKey::new(TABLE, crate::row_store::RowId(1))));
    w.p.validate();
}

#[test]
fn an_upgrade_goes_first_and_two_upgrades_wait_for_each_other() {
    let mut w = world();
    let (a, b, c) = (w.begin(), w.begin(), w.begin());
    assert_eq!(lock(&mut w, &a, 1, Shared), Ok(true));
    assert_eq!(lock(&mut w, &b, 1, Shared), Ok(true));
    assert_eq!(lock(&mut w, &c, 1, Exclusive), waits_for(&[&a, &b]));
    assert_eq!(w.update(&a, &r(1, 5, "a")), waits_for(&[&b]));
    assert_eq!(w.update(&b, &r(1, 5, "b")), waits_for(&[&a]), "a deadlock that the wait-for graph shows");
    w.abort(b);
    woken(&mut w, &[&a]);
    assert_eq!(w.update(&a, &r(1, 5, "a")), Ok(true));
    w.commit(a);
    woken(&mut w, &[&c]);
    assert_eq!(
        w.read_locked(&c, 1, Exclusive, WaitPolicy::Wait),
        Ok(Some(r(1, 5, "a"))),
        "looked at again after the wait"
    );
    w.abort(c);
    w.p.validate();
}

#[test]
fn key_share_lets_updates_pass_and_not_deletes() {
    let mut w = world();
    let (child, parent) = (w.begin(), w.begin());
    assert_eq!(lock(&mut w, &child, 1, KeyShare), Ok(true));
    assert_eq!(w.update(&parent, &r(1, 50, "y")), Ok(true));
    let mut parent = parent;
    parent.statement = 2;
    assert_eq!(w.delete(&parent, 1), waits_for(&[&child]));
    w.abort(child);
    woken(&mut w, &[&parent]);
    assert_eq!(w.delete(&parent, 1), Ok(true));
    let late = w.begin();
    assert_eq!(lock(&mut w, &late, 1, KeyShare), waits_for(&[&parent]));
    w.commit(parent);
    woken(&mut w, &[&late]);
    assert_eq!(lock(&mut w, &late, 1, KeyShare), Ok(false));
    assert!(w.p.txns.get(late.r.id).is_none(), "a missing row is not locked");
    w.abort(late);
    w.p.validate();
}

#[test]
fn a_foreign_key_check_waits_for_a_parent_that_is_being_inserted() {
    let mut w = world();
    let (parent, child) = (w.begin(), w.begin());
    w.insert(&parent, &r(30, 1, "x")).unwrap();
    assert_eq!(lock(&mut w, &child, 30, KeyShare), waits_for(&[&parent]));
    w.commit(parent);
    woken(&mut w, &[&child]);
    assert_eq!(lock(&mut w, &child, 30, KeyShare), Ok(true));
    w.delete(&child, 30).unwrap();
    w.commit(child);
    // The same over the tombstone.
    let (parent, child) = (w.begin(), w.begin());
    w.insert(&parent, &r(30, 2, "y")).unwrap();
    assert_eq!(lock(&mut w, &child, 30, KeyShare), waits_for(&[&parent]));
    w.abort(parent);
    woken(&mut w, &[&child]);
    assert_eq!(lock(&mut w, &child, 30, KeyShare), Ok(false));
    w.abort(child);
    w.p.validate();
}

#[test]
fn nowait_fails_and_skip_locked_leaves_out() {
    let mut w = world();
    let (a, b) = (w.begin(), w.begin());
    assert_eq!(lock(&mut w, &a, 3, Exclusive), Ok(true));
    w.insert(&a, &r(20, 20, "new")).unwrap();
    assert_eq!(w.read_locked(&b, 3, Shared, WaitPolicy::NoWait), Err(Stop::WouldWait));
    assert_eq!(w.read_locked(&b, 3, Shared, WaitPolicy::SkipLocked), Ok(None));
    let request = ScanRequest { lock: Some((Exclusive, WaitPolicy::SkipLocked)), ..whole(Some(BY_K)) };
    let found = w.scan(Some(&b), &request, ReadAt::Newest, 4).unwrap();
    let ids: Vec<i64> = found.iter().map(|(_, row)| row.0).collect();
    assert_eq!(ids, [0, 1, 2, 4, 5, 6, 7, 8, 9]);
    let request = ScanRequest { lock: Some((Exclusive, WaitPolicy::NoWait)), ..whole(None) };
    assert_eq!(w.scan(Some(&b), &request, ReadAt::Newest, 4), Err(Stop::WouldWait));
    w.abort(a);
    woken(&mut w, &[]);
    w.abort(b);
    w.p.validate();
}

#[test]
fn a_cancelled_wait_lets_those_behind_go_on() {
    let mut w = world();
    let (a, b, c) = (w.begin(), w.begin(), w.begin());
    assert_eq!(lock(&mut w, &a, 1, Shared), Ok(true));
    assert_eq!(lock(&mut w, &b, 1, Exclusive), waits_for(&[&a]));
    assert_eq!(lock(&mut w, &c, 1, Shared), waits_for(&[&b]));
    w.p.cancel_wait(b.r.id);
    woken(&mut w, &[&c]);
    // Granted while it waited, and given up before it called again.
    w.p.cancel_wait(c.r.id);
    w.abort(a);
    assert_eq!(lock(&mut w, &b, 1, Exclusive), Ok(true));
    w.abort(b);
    w.abort(c);
    assert_eq!(w.p.txns.iter().count(), 0);
    w.p.validate();
}

#[test]
fn who_waits_for_an_insert_goes_on_when_it_is_undone() {
    let mut w = world();
    let (a, b, c) = (w.begin(), w.begin(), w.begin());
    w.insert(&a, &r(50, 1, "a")).unwrap();
    assert_eq!(w.insert(&b, &r(50, 2, "b")), Err(Stop::Wait(vec![a.r.id])));
    assert_eq!(lock(&mut w, &c, 50, Shared), waits_for(&[&a, &b]));
    assert_eq!(w.read(None, 50, ReadAt::Newest), Ok((None, 0)));
    w.p.rollback_to(a.r.id, 1);
    woken(&mut w, &[&b, &c]);
    assert_eq!(lock(&mut w, &c, 50, Shared), Ok(false));
    assert_eq!(w.insert(&b, &r(50, 2, "b")), Ok(()));
    assert_eq!(w.insert(&a, &r(50, 1, "a")), Err(Stop::Wait(vec![b.r.id])));
    w.commit(b);
    woken(&mut w, &[&a]);
    assert_eq!(w.insert(&a, &r(50, 1, "a")), Err(Stop::Duplicate));
    assert!(w.p.txns.get(a.r.id).is_none(), "a duplicate has locked nothing");
    w.abort(a);
    w.abort(c);
    w.p.validate();
}

#[test]
fn a_lock_on_a_deleted_row_holds_up_its_collection_only_until_it_is_claimed() {
    let mut w = world();
    let (a, b) = (w.begin(), w.begin());
    w.delete(&a, 1).unwrap();
    assert_eq!(w.update(&b, &r(1, 1, "b")), waits_for(&[&a]));
    w.commit(a);
    woken(&mut w, &[&b]);
    w.collect_all();
    w.p.validate();
    assert_eq!(w.p.fragments[&TABLE].rows.len(), 10, "the row is still in use");
    assert_eq!(w.update(&b, &r(1, 1, "b")), Ok(false));
    w.abort(b);
    assert!(w.collect_all() > 0);
    assert_eq!(w.p.fragments[&TABLE].rows.len(), 9);
    w.p.validate();
}

#[test]
fn a_waiter_learns_of_a_blocker_that_went_before_it() {
    let mut w = world();
    let (holder, small, waiter) = (w.begin(), w.begin(), w.begin());
    assert_eq!(lock(&mut w, &holder, 1, Exclusive), Ok(true));
    assert_eq!(lock(&mut w, &small, 1, KeyShare), Ok(true));
    assert_eq!(lock(&mut w, &waiter, 1, Shared), waits_for(&[&holder]));
    assert_eq!(lock(&mut w, &small, 1, Exclusive), waits_for(&[&holder]));
    woken(&mut w, &[&waiter]);
    assert_eq!(lock(&mut w, &waiter, 1, Shared), waits_for(&[&holder, &small]));
    w.abort(holder);
    woken(&mut w, &[&small]);
    w.abort(small);
    woken(&mut w, &[&waiter]);
    w.abort(waiter);
    w.p.validate();
}

#[test]
fn a_scan_waits_before_the_row_and_keeps_only_what_is_wanted() {
    let mut w = world();
    for reverse in [false, true] {
        let (a, b) = (w.begin(), w.begin());
        let blocked = if reverse { 0 } else { 4 };
        assert_eq!(w.update(&a, &r(blocked, 40, "x")), Ok(true));
        let lock = Some((Exclusive, WaitPolicy::Wait));
        let high = Bound::Included(w.index_key(1, &r(0, 7, "")));
        let request = ScanRequest { reverse, lock, high, ..whole(Some(BY_K)) };
        let (mut position, mut seen) = (ScanPosition::Start, Vec::new());
        let mut go = |w: &mut World| {
            let mut access = w.access(Some(&b), ReadAt::Newest);
            w.p.scan(&request, &mut position, 100, &mut access, &mut |row| {
                let id = decode(&row.row).0;
                seen.push(id);
                if id % 2 == 0 { Verdict::Keep } else { Verdict::Skip }
            })
        };
        assert_eq!(go(&mut w), Err(Stop::Wait(vec![a.r.id])));
        assert_eq!(go(&mut w), Err(Stop::Wait(vec![a.r.id])), "asked again at the same place");
        w.abort(a);
        assert_eq!(w.p.take_granted(), [b.r.id]);
        assert_eq!(go(&mut w), Ok(ScanEnd::Finished));
        let expected: Vec<i64> = if reverse { (0..8).rev().collect() } else { (0..8).collect() };
        assert_eq!(seen, expected);
        w.p.validate();
        let c = w.begin();
        for id in 0..8 {
            let held = w.read_locked(&c, id, Exclusive, WaitPolicy::NoWait);
            assert_eq!(held.is_err(), id % 2 == 0, "row {id}");
        }
        w.abort(b);
        w.abort(c);
    }
}

#[test]
fn a_skipped_row_keeps_the_lock_it_had_before() {
    let mut w = world();
    let (a, b) = (w.begin(), w.begin());
    assert_eq!(lock(&mut w, &a, 2, Shared), Ok(true));
    let request = ScanRequest { lock: Some((Exclusive, WaitPolicy::Wait)), ..whole(Some(IndexId::PRIMARY)) };
    let mut access = w.access(Some(&a), ReadAt::Newest);
    let end = w.p.scan(&request, &mut ScanPosition::Start, 100, &mut access, &mut |_| Verdict::Skip);
    assert_eq!(end, Ok(ScanEnd::Finished));
    assert_eq!(lock(&mut w, &b, 2, Shared), Ok(true), "shared as before");
    assert_eq!(w.read_locked(&b, 2, Exclusive, WaitPolicy::NoWait), Err(Stop::WouldWait));
    assert_eq!(lock(&mut w, &b, 3, Exclusive), Ok(true));
    w.abort(a);
    w.abort(b);
    w.p.validate();
}

#[test]
fn ranges_hold_up_inserts_deletes_and_moved_keys_of_others() {
    let mut w = world();
    let (a, b) = (w.begin(), w.begin());
    let (low, high) = (w.index_key(1, &r(0, 100, "")), w.index_key(1, &r(0, 200, "")));
    let bound = (Bound::Included(low.as_slice()), Bound::Excluded(high.as_slice()));
    w.p.lock_range(&a.r, TABLE, BY_K, bound.0, bound.1).unwrap();
    w.p.lock_range(&b.r, TABLE, BY_K, bound.0, bound.1).unwrap();
    assert_eq!(w.insert(&a, &r(50, 150, "")), Err(Stop::Wait(vec![b.r.id])));
    w.p.validate();
    w.abort(b);
    woken(&mut w, &[&a]);
    assert_eq!(w.insert(&a, &r(50, 150, "")), Ok(()));
    let c = w.begin();
    assert_eq!(w.insert(&c, &r(60, 99, "")), Ok(()));
    assert_eq!(w.insert(&c, &r(61, 200, "")), Ok(()));
    assert_eq!(w.insert(&c, &r(62, 100, "")), Err(Stop::Wait(vec![a.r.id])));
    assert_eq!(w.update(&c, &r(1, 5, "moved elsewhere")), Ok(true));
    assert_eq!(w.update(&c, &r(2, 120, "moved in")), Err(Stop::Wait(vec![a.r.id])));
    w.p.cancel_wait(c.r.id);
    assert_eq!(w.update(&c, &r(60, 101, "moved in")), Err(Stop::Wait(vec![a.r.id])));
    w.commit(a);
    woken(&mut w, &[&c]);
    let d = w.begin();
    w.p.lock_range(&d.r, TABLE, BY_K, bound.0, bound.1).unwrap();
    assert_eq!(w.delete(&c, 50), Err(Stop::Wait(vec![d.r.id])));
    assert_eq!(w.update(&c, &r(50, 250, "moved out")), Err(Stop::Wait(vec![d.r.id])));
    assert_eq!(w.update(&c, &r(50, 150, "same key")), Ok(true));
    w.commit(d);
    let e = w.begin();
    w.p.lock_range(&e.r, TABLE, IndexId::PRIMARY, Bound::Unbounded, Bound::Unbounded).unwrap();
    assert_eq!(w.update(&c, &r(4, 77, "only other keys move")), Ok(true));
    assert_eq!(w.delete(&c, 4), Err(Stop::Wait(vec![e.r.id])));
    w.commit(e);
    w.commit(c);
    w.p.validate();
}

#[test]
fn hash_only_keys_have_ranges_too() {
    let mut w = World::new(schema(true, false));
    let (a, b) = (w.begin(), w.begin());
    let key = w.key(5);
    let one = Bound::Included(key.as_slice());
    assert_eq!(w.read_locked(&a, 5, Shared, WaitPolicy::Wait), Ok(None));
    w.p.lock_range(&a.r, TABLE, IndexId::PRIMARY, one, one).unwrap();
    assert_eq!(w.insert(&b, &r(4, 1, "")), Ok(()));
    assert_eq!(w.insert(&b, &r(5, 1, "")), Err(Stop::Wait(vec![a.r.id])));
    assert_eq!(w.p.lock_range(&a.r, TABLE, BY_K, one, one), Err(Stop::StaleSchema));
    w.abort(a);
    woken(&mut w, &[&b]);
    assert_eq!(w.insert(&b, &r(5, 1, "")), Ok(()));
    w.commit(b);
    w.p.validate();
}
