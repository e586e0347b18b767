//! Ends and undoing in slices: what others find while they are under way.

use super::support::*;
use crate::partition::{LockMode, Partition, ReadAt, Stop, WaitPolicy, Write};
use crate::status::{TxnRef, TxnState};
use rauk_types::{TableId, Timestamp, TxnId};

const NEWEST: ReadAt = ReadAt::Newest;

/// Slices of two rows.
fn world() -> World {
    let mut w = World::new(schema(false, true));
    w.durable = u64::MAX;
    w.p.set_end_slice(2);
    w
}

fn insert_all(w: &mut World, txn: &Txn, ids: std::ops::Range<i64>) {
    ids.for_each(|i| w.insert(txn, &r(i, 1, "a")).unwrap());
}

/// Rows that are there, pending ones too.
fn stored(w: &World) -> u64 {
    w.p.fragments[&TABLE].rows.len() as u64
}

/// Calls as long as something is left, and counts the calls.
fn calls_until_done(p: &mut Partition, txn: TxnId) -> usize {
    let mut calls = 1;
    while !p.go_on_with(txn) {
        p.validate();
        calls += 1;
    }
    p.validate();
    calls
}

#[test]
fn a_statement_of_many_rows_is_undone_in_slices() {
    let mut w = world();
    let mut t = w.begin();
    insert_all(&mut w, &t, 0..3);
    t.statement = 2;
    insert_all(&mut w, &t, 3..10);
    assert_eq!(w.update(&t, &r(0, 5, "b")), Ok(true));
    w.p.rollback_to(t.r.id, 2);
    assert!(w.p.has_ends());
    w.p.validate();
    assert_eq!(stored(&w), 9, "a slice is the update and one row");
    // It goes on to its savepoint, however often that is asked for.
    w.p.rollback_to(t.r.id, 2);
    w.p.rollback_to(t.r.id, 3);
    assert_eq!(calls_until_done(&mut w.p, t.r.id), 3);
    assert!(!w.p.has_ends());
    assert_eq!(stored(&w), 3);
    t.statement = 3;
    assert_eq!(w.read(Some(&t), 0, NEWEST).unwrap().0, Some(r(0, 1, "a")));
    insert_all(&mut w, &t, 3..5);
    w.commit(t);
    w.p.finish_ends();
    assert_eq!(w.all(None, NEWEST).len(), 5);
    w.p.validate();
}

#[test]
fn a_savepoint_before_one_that_is_being_gone_back_to_undoes_more() {
    let mut w = world();
    let mut t = w.begin();
    for statement in 1..5 {
        t.statement = statement;
        insert_all(&mut w, &t, i64::from(statement) * 10..i64::from(statement) * 10 + 5);
    }
    w.p.rollback_to(t.r.id, 4);
    w.p.rollback_to(t.r.id, 2);
    calls_until_done(&mut w.p, t.r.id);
    assert_eq!(stored(&w), 5);
    w.abort(t);
    w.p.finish_ends();
    assert_eq!((stored(&w), w.p.open_transactions()), (0, vec![]));
    w.p.validate();
}

/// A kill or a lost view may come while a statement is being undone.
#[test]
fn an_abort_takes_the_place_of_a_rollback_that_is_under_way() {
    for rows in [4, 12] {
        let mut w = world();
        let mut t = w.begin();
        t.statement = 2;
        insert_all(&mut w, &t, 0..rows);
        w.p.rollback_to(t.r.id, 2);
        assert!(w.p.has_ends());
        w.abort(t);
        w.p.validate();
        w.p.finish_ends();
        assert_eq!((stored(&w), w.p.open_transactions()), (0, vec![]));
        w.p.validate();
    }
}

/// Rule 65: before a lock of what is undone is given back, whoever holds the partition learns that chunks are.
#[test]
fn what_was_sent_is_taken_back_with_the_first_slice() {
    let mut w = world();
    w.p.set_chunk_bytes(1);
    let mut t = w.begin();
    let mut chunks = 0;
    for id in 0..10 {
        t.statement = 1 + id as u32 / 5;
        w.insert(&t, &r(id, 1, "a")).unwrap();
        for txn in w.p.take_full() {
            assert_eq!(w.p.collect_chunk(txn, &mut |_, _| ()), Some(chunks));
            chunks += 1;
        }
    }
    w.p.rollback_to(t.r.id, 2);
    let taken: Vec<u32> = w.p.take_taken_back().iter().map(|back| back.left).collect();
    assert_eq!((stored(&w), taken), (8, vec![5]));
    calls_until_done(&mut w.p, t.r.id);
    assert_eq!(w.p.take_taken_back(), []);
    let mut left = 0;
    w.p.seal_chunks(t.r.id);
    w.p.collect_writes(t.r.id, &mut |_, _| left += 1);
    assert_eq!(left, 0, "all that is left is in chunks");
    w.abort(t);
}

/// A transaction may have written in a table that is dropped before it ends, such as a new form of a table that is given up.
/// What it writes then is counted from what stands of it.
#[test]
fn what_was_sent_of_a_dropped_table_is_taken_back_when_nothing_else_is_left() {
    for (rolls_back, has_lock) in [(false, false), (false, true), (true, true)] {
        let mut w = world();
        w.p.set_chunk_bytes(1);
        let other = TableId(TABLE.0 + 1);
        let mut second = (*schema(false, true)).clone();
        second.id = other;
        w.p.create_table(second.into());
        let t = w.begin();
        let mut numbers = Vec::new();
        for id in 0..2 {
            w.insert(&t, &r(id, 1, "a")).unwrap();
            numbers.extend(w.p.take_full().into_iter().filter_map(|txn| w.p.collect_chunk(txn, &mut |_, _| ())));
        }
        if has_lock {
            w.insert_into(other, &t, &r(5, 1, "b")).unwrap();
        }
        w.p.drop_table(TABLE);
        w.p.validate();
        if rolls_back {
            w.p.rollback_to(t.r.id, 0);
        }
        let taken: Vec<u32> = w.p.take_taken_back().iter().map(|back| back.left).collect();
        let standing = if has_lock && !rolls_back { 2 } else { 0 };
        assert_eq!((numbers, taken), (vec![0, 1], if standing == 2 { vec![] } else { vec![0] }));
        w.insert_into(other, &t, &r(6, 1, "c")).unwrap();
        w.p.take_full();
        assert_eq!(w.p.collect_chunk(t.r.id, &mut |_, _| ()), Some(standing));
        w.p.abort(t.r.id);
        let taken: Vec<u32> = w.p.take_taken_back().iter().map(|back| back.left).collect();
        assert_eq!(taken, [0], "nothing of it stands");
        w.p.validate();
    }
}

#[test]
fn who_waits_for_ends_does_not_wait_for_later_ones() {
    let mut w = world();
    let (a, b) = (w.begin(), w.begin());
    insert_all(&mut w, &a, 0..6);
    insert_all(&mut w, &b, 10..16);
    w.commit(a);
    let newest = w.p.newest_end();
    assert!(w.p.has_ends_upto(newest));
    w.commit(b);
    let mut slices = 0;
    while w.p.has_ends_upto(newest) {
        let horizon = w.horizon();
        w.p.go_on(horizon);
        slices += 1;
    }
    assert_eq!((slices, w.p.has_ends()), (2, true), "the first slice is the commit's");
    // What is committed later is not all in its place, and comes with the log or the stream.
    let mut seen = 0;
    w.p.checkpoint_slice(TABLE, crate::row_store::RowId(0), 100, &mut |_, _, _| seen += 1);
    assert!((6..12).contains(&seen), "{seen} rows");
    w.p.finish_ends();
}

/// What the stream brings may meet a row of an end that is under way: that row is settled, the rest waits for its turn.
#[test]
fn a_write_of_the_stream_settles_only_the_row_in_its_way() {
    for what in ["commit", "abort", "take back"] {
        let mut w = world();
        let before = w.begin();
        insert_all(&mut w, &before, 0..4);
        w.commit(before);
        w.p.finish_ends();
        let first = TxnRef::new(TxnId(500));
        let row = |w: &World, id| w.encode(&r(id, 2, "first"));
        for (number, id) in (0..12).enumerate() {
            let row = row(&w, id);
            w.p.adopt(&first, number as u32 / 4, TABLE, Write::Put { layout: 0, row: &row }).unwrap();
        }
        let horizon = w.horizon();
        match what {
            "commit" => {
                first.status.set(TxnState::Committed(Timestamp(900)));
                w.p.commit(first.id, Timestamp(900), horizon);
            }
            "abort" => w.p.abort(first.id),
            _ => w.p.take_back(first.id, 1),
        }
        let second = TxnRef::new(TxnId(501));
        second.status.set(TxnState::Prepared(Timestamp(901)));
        // The rows of the end that come last are 4 and, but for what stays, 0.
        for id in [4, 5] {
            let row = w.encode(&r(id, 3, "second"));
            w.p.adopt(&second, 0, TABLE, Write::Put { layout: 0, row: &row }).unwrap();
            w.p.validate();
        }
        assert!(w.p.has_ends(), "{what}: the rest is under way");
        let row = w.encode(&r(0, 3, "second"));
        let met = w.p.adopt(&second, 0, TABLE, Write::Put { layout: 0, row: &row });
        match what {
            "take back" => assert_eq!(met, Err(Stop::Wait(vec![first.id])), "it has the row still"),
            _ => assert_eq!(met, Ok(())),
        }
        w.p.validate();
        second.status.set(TxnState::Committed(Timestamp(950)));
        w.p.commit(second.id, Timestamp(950), horizon);
        w.p.finish_ends();
        w.p.validate();
        let probe = w.begin();
        let free = w.read_locked(&probe, 1, LockMode::Exclusive, WaitPolicy::NoWait);
        match what {
            "take back" => assert_eq!(free, Err(Stop::WouldWait)),
            _ => drop(free.unwrap()),
        }
        w.abort(probe);
        let expected = |id: i64| match (what, id) {
            (_, 4 | 5) => Some("second"),
            ("take back", 0) => Some("a"),
            (_, 0) => Some("second"),
            ("commit", 1..12) => Some("first"),
            (_, 1..4) => Some("a"),
            _ => None,
        };
        let found = w.all(None, ReadAt::Snapshot(Timestamp(960)));
        let named: Vec<_> = (0..13).filter_map(|id| expected(id).map(|v| (id, v.as_bytes().to_vec()))).collect();
        let found: Vec<_> = found.into_iter().map(|(id, _, v)| (id, v)).collect();
        assert_eq!(found, named, "{what}");
        w.p.validate();
    }
}
