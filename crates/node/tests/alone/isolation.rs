//! What sessions see of each other: the anomalies, level by level, and the ends of lock waits.

use crate::support::*;
use rauk_kernel::{LockMode, WaitPolicy};
use rauk_node::*;
use rauk_types::{IndexId, Value};
use std::future::Future;
use std::ops::Bound;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

const EXCLUSIVE: Lock = Some((LockMode::Exclusive, WaitPolicy::Wait));

fn two_rows() -> (Database, TableHandle) {
    let (db, t) = database_with(accounts("t"));
    block_on(insert_all(&db, &t, &[account(1, 10, Some("a")), account(2, 20, Some("b"))]));
    (db, t)
}

/// Sets a row's value as an UPDATE by key does.
async fn set(txn: &mut Transaction, t: &TableHandle, id: i64, value: i64) -> Result<(), NodeError> {
    txn.begin_statement();
    let old = get_for_update(txn, t, id).await?.expect("the row is there");
    let new = vec![old[0].clone(), int(value), old[2].clone()];
    assert_eq!(txn.update(t, &old, &new).await?, UpdateOutcome::Updated);
    Ok(())
}

async fn value(txn: &mut Transaction, t: &TableHandle, id: i64) -> Option<i64> {
    txn.begin_statement();
    get(txn, t, id).await.map(|row| match row[1] {
        Value::Int(v) => v,
        _ => unreachable!(),
    })
}

fn poll<T>(future: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Asserts that the future has to wait.
macro_rules! waits {
    ($future:expr) => {
        for _ in 0..3 {
            assert!(poll($future.as_mut()).is_pending(), "expected to wait");
        }
    };
}

const LEVELS: [Isolation; 3] = [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable];

/// G0: the second writer waits for the first.
#[test]
fn no_dirty_writes() {
    for level in LEVELS {
        let (db, t) = two_rows();
        block_on(async {
            let (mut a, mut b) = (begin(&db, &t, level).await, begin(&db, &t, level).await);
            set(&mut a, &t, 1, 11).await.unwrap();
            {
                let mut second = Box::pin(set(&mut b, &t, 1, 12));
                waits!(second);
                set(&mut a, &t, 2, 21).await.unwrap();
                a.commit().await.unwrap();
                second.await.unwrap();
            }
            set(&mut b, &t, 2, 22).await.unwrap();
            b.commit().await.unwrap();
            assert_eq!(contents(&db, &t).await, vec![account(1, 12, Some("a")), account(2, 22, Some("b"))]);
        });
    }
}

/// G1a, G1b: neither aborted nor intermediate values are read.
#[test]
fn no_dirty_reads() {
    for level in [Isolation::ReadCommitted, Isolation::RepeatableRead] {
        let (db, t) = two_rows();
        block_on(async {
            let (mut a, mut b) = (begin(&db, &t, level).await, begin(&db, &t, level).await);
            set(&mut a, &t, 1, 101).await.unwrap();
            assert_eq!(value(&mut b, &t, 1).await, Some(10));
            assert_eq!(read(&db, &t, 1).await, Some(account(1, 10, Some("a"))));
            set(&mut a, &t, 1, 11).await.unwrap();
            assert_eq!(value(&mut b, &t, 1).await, Some(10));
            a.rollback();
            assert_eq!(value(&mut b, &t, 1).await, Some(10));
        });
    }
}

/// G1c: circular flow of information. Each reads what the other has not committed.
#[test]
fn no_circular_reads() {
    for level in [Isolation::ReadCommitted, Isolation::RepeatableRead] {
        let (db, t) = two_rows();
        block_on(async {
            let (mut a, mut b) = (begin(&db, &t, level).await, begin(&db, &t, level).await);
            set(&mut a, &t, 1, 11).await.unwrap();
            set(&mut b, &t, 2, 22).await.unwrap();
            assert_eq!(value(&mut a, &t, 2).await, Some(20));
            assert_eq!(value(&mut b, &t, 1).await, Some(10));
            a.commit().await.unwrap();
            b.commit().await.unwrap();
        });
    }
}

#[test]
fn read_committed_sees_each_commit_and_repeatable_read_does_not() {
    let (db, t) = two_rows();
    block_on(async {
        let mut committed = begin(&db, &t, Isolation::ReadCommitted).await;
        let mut repeatable = begin_rr(&db, &t).await;
        assert_eq!(value(&mut committed, &t, 1).await, Some(10));
        assert_eq!(value(&mut repeatable, &t, 1).await, Some(10));
        let mut writer = begin_rr(&db, &t).await;
        set(&mut writer, &t, 1, 11).await.unwrap();
        set(&mut writer, &t, 2, 21).await.unwrap();
        writer.insert(&t, &account(3, 30, None)).await.unwrap();
        writer.commit().await.unwrap();
        assert_eq!(value(&mut committed, &t, 1).await, Some(11));
        // No read skew: both rows are as they were at the first read.
        assert_eq!(value(&mut repeatable, &t, 1).await, Some(10));
        assert_eq!(value(&mut repeatable, &t, 2).await, Some(20));
        assert_eq!(scan(&mut repeatable, &t, all(Some(1))).await.len(), 2);
        assert_eq!(scan(&mut repeatable, &t, all(None)).await.len(), 2);
        committed.begin_statement();
        assert_eq!(scan(&mut committed, &t, all(None)).await.len(), 3);
        // A locking read sees the newest all the same, where it is allowed to.
        assert_eq!(get_for_update(&mut committed, &t, 1).await.unwrap().unwrap()[1], int(11));
    });
}

/// P4: at REPEATABLE READ the second of two read-modify-writes gets 1020; with the variable off, and at READ COMMITTED, it goes through.
#[test]
fn lost_updates() {
    for (level, strict, refused) in [
        (Isolation::RepeatableRead, true, true),
        (Isolation::RepeatableRead, false, false),
        (Isolation::ReadCommitted, true, false),
    ] {
        let (db, t) = two_rows();
        block_on(async {
            let options = TxnOptions { isolation: level, snapshot_isolation: strict, ..TxnOptions::default() };
            let (mut a, mut b) = (db.begin(options.clone()), db.begin(options));
            a.use_table(&t).await.unwrap();
            b.use_table(&t).await.unwrap();
            assert_eq!(value(&mut a, &t, 1).await, Some(10));
            assert_eq!(value(&mut b, &t, 1).await, Some(10));
            set(&mut a, &t, 1, 11).await.unwrap();
            a.commit().await.unwrap();
            let second = set(&mut b, &t, 1, 12).await;
            match refused {
                true => assert_eq!(second, Err(NodeError::Changed { table: "t".into() })),
                false => assert_eq!(second, Ok(())),
            }
        });
    }
}

/// Without an earlier consistent read there is no snapshot that a write could be held against.
#[test]
fn a_write_without_a_read_before_meets_no_1020() {
    let (db, t) = two_rows();
    block_on(async {
        let mut b = begin_rr(&db, &t).await;
        let mut a = begin_rr(&db, &t).await;
        set(&mut a, &t, 1, 11).await.unwrap();
        a.commit().await.unwrap();
        set(&mut b, &t, 1, 12).await.unwrap();
        b.commit().await.unwrap();
    });
}

/// G2-item: both read both rows and each writes one: at SERIALIZABLE one of them dies.
#[test]
fn write_skew_is_a_deadlock_at_serializable() {
    let (db, t) = two_rows();
    block_on(async {
        let mut a = begin(&db, &t, Isolation::Serializable).await;
        let mut b = begin(&db, &t, Isolation::Serializable).await;
        for txn in [&mut a, &mut b] {
            assert_eq!(value(txn, &t, 1).await, Some(10));
            assert_eq!(value(txn, &t, 2).await, Some(20));
        }
        let mut first = Box::pin(set(&mut a, &t, 1, 11));
        waits!(first);
        assert_eq!(set(&mut b, &t, 2, 21).await, Err(NodeError::Deadlock));
        first.await.unwrap();
        a.commit().await.unwrap();
        // The victim was rolled back as a whole.
        assert_eq!(b.insert(&t, &account(9, 9, None)).await, Err(NodeError::Deadlock));
        assert_eq!(b.commit().await, Err(NodeError::Deadlock));
    });
}

/// G2: phantoms. Who scanned a range at SERIALIZABLE keeps it as it was; the same for a row that was not there.
#[test]
fn phantoms_wait_at_serializable() {
    let (db, t) = two_rows();
    block_on(async {
        let range = || ScanSpec { low: Bound::Included(key_of(&t, 5)), ..all(Some(0)) };
        let mut a = begin(&db, &t, Isolation::Serializable).await;
        assert_eq!(scan(&mut a, &t, range()).await.len(), 0);
        assert_eq!(value(&mut a, &t, 4).await, None);
        assert!(a.get_unique(&t, IndexId(2), &code_key(&t, "x"), None, |r| r.is_none()).await.unwrap());
        let mut b = begin_rr(&db, &t).await;
        for row in [account(7, 1, None), account(4, 1, None), account(3, 1, Some("X"))] {
            let mut insert = Box::pin(b.insert(&t, &row));
            waits!(insert);
            drop(insert);
            b.rollback_statement();
        }
        b.insert(&t, &account(3, 1, Some("y"))).await.unwrap();
        drop(b);
        let mut b = begin_rr(&db, &t).await;
        let row = account(7, 1, None);
        let mut insert = Box::pin(b.insert(&t, &row));
        waits!(insert);
        assert_eq!(scan(&mut a, &t, range()).await.len(), 0);
        a.commit().await.unwrap();
        assert_eq!(insert.await, Ok(InsertOutcome::Inserted));
        b.commit().await.unwrap();
    });
}

/// The same of rows that a scan read and dropped: changed into such as it would have taken, they would be phantoms. Below SERIALIZABLE they are free.
#[test]
fn rows_that_a_scan_drops_stay_locked_at_serializable() {
    let (db, t) = two_rows();
    block_on(async {
        for index in [None, Some(0)] {
            for (isolation, lock) in [
                (Isolation::Serializable, None),
                (Isolation::Serializable, Some((LockMode::Exclusive, WaitPolicy::Wait))),
                (Isolation::RepeatableRead, Some((LockMode::Exclusive, WaitPolicy::Wait))),
                (Isolation::ReadCommitted, Some((LockMode::Exclusive, WaitPolicy::Wait))),
            ] {
                let mut a = begin(&db, &t, isolation).await;
                let mut cursor = ScanCursor::new(&t, ScanSpec { lock, ..all(index) });
                let mut batch = ScanBatch::default();
                cursor.next_batch(&mut a, 10, &mut |_| false, &mut batch).await.unwrap();
                assert!(batch.is_empty());
                let mut b = begin_rr(&db, &t).await;
                let skip = Some((LockMode::Exclusive, WaitPolicy::SkipLocked));
                let free = scan(&mut b, &t, ScanSpec { lock: skip, ..all(None) }).await.len();
                assert_eq!(free, if isolation == Isolation::Serializable { 0 } else { 2 }, "{isolation:?} {index:?}");
                b.rollback();
                a.rollback();
            }
        }
    });
}

#[test]
fn deadlocks_end_within_a_tenth_of_a_second() {
    let (db, t) = two_rows();
    let (db, t) = (Arc::new(db), Arc::new(t));
    let start = Instant::now();
    let threads: Vec<_> = [(1, 2), (2, 1)]
        .into_iter()
        .map(|(first, second)| {
            let (db, t) = (db.clone(), t.clone());
            std::thread::spawn(move || {
                block_on(async {
                    let mut txn = begin_rr(&db, &t).await;
                    set(&mut txn, &t, first, 100 + first).await.unwrap();
                    std::thread::sleep(Duration::from_millis(50));
                    set(&mut txn, &t, second, 200 + second).await?;
                    txn.commit().await
                })
            })
        })
        .collect();
    let ends: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
    assert!(start.elapsed() < Duration::from_millis(150), "{:?}", start.elapsed());
    assert_eq!(ends.iter().filter(|e| **e == Err(NodeError::Deadlock)).count(), 1);
    assert_eq!(ends.iter().filter(|e| e.is_ok()).count(), 1);
    assert_eq!(db.counters().deadlocks, 1);
    assert!(db.locks().is_empty() && db.transactions().is_empty());
}

#[test]
fn a_wait_times_out_and_only_the_statement_fails() {
    let (db, t) = two_rows();
    block_on(async {
        let mut a = begin_rr(&db, &t).await;
        set(&mut a, &t, 1, 11).await.unwrap();
        let options = TxnOptions { lock_wait_timeout: Duration::from_millis(40), ..TxnOptions::default() };
        let mut b = db.begin(options);
        b.use_table(&t).await.unwrap();
        set(&mut b, &t, 2, 21).await.unwrap();
        let start = Instant::now();
        assert_eq!(set(&mut b, &t, 1, 12).await, Err(NodeError::LockTimeout));
        assert!(start.elapsed() >= Duration::from_millis(40));
        b.rollback_statement();
        b.commit().await.unwrap();
        a.commit().await.unwrap();
        assert_eq!(contents(&db, &t).await, vec![account(1, 11, Some("a")), account(2, 21, Some("b"))]);
        assert_eq!(db.counters().lock_timeouts, 1);
    });
}

#[test]
fn kill_ends_a_wait() {
    let (db, t) = two_rows();
    block_on(async {
        let mut a = begin_rr(&db, &t).await;
        set(&mut a, &t, 1, 11).await.unwrap();
        let interrupt = Arc::new(Interrupt::default());
        let mut b = db.begin(TxnOptions { interrupt: interrupt.clone(), ..TxnOptions::default() });
        b.use_table(&t).await.unwrap();
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            interrupt.kill();
        });
        assert_eq!(set(&mut b, &t, 1, 12).await, Err(NodeError::Interrupted));
        killer.join().unwrap();
        b.options().interrupt.clear();
        b.rollback_statement();
        set(&mut b, &t, 2, 21).await.unwrap();
        b.commit().await.unwrap();
        a.commit().await.unwrap();
    });
}

#[test]
fn nowait_and_skip_locked() {
    let (db, t) = two_rows();
    block_on(async {
        let mut a = begin_rr(&db, &t).await;
        get_for_update(&mut a, &t, 1).await.unwrap();
        let mut b = begin_rr(&db, &t).await;
        let key = key_of(&t, 1);
        let nowait = Some((LockMode::Shared, WaitPolicy::NoWait));
        assert_eq!(b.get(&t, &key, nowait, |_| ()).await, Err(NodeError::NoWait));
        let skip = Some((LockMode::Exclusive, WaitPolicy::SkipLocked));
        assert!(b.get(&t, &key, skip, |r| r.is_none()).await.unwrap());
        let rows = scan(&mut b, &t, ScanSpec { lock: skip, ..all(None) }).await;
        assert_eq!(rows, vec![account(2, 20, Some("b"))]);
        let spec = ScanSpec { lock: nowait, ..all(None) };
        assert_eq!(try_scan(&mut b, &t, spec).await, Err(NodeError::NoWait));
    });
}

#[test]
fn shared_locks_are_shared_and_exclusive_ones_not() {
    let (db, t) = two_rows();
    block_on(async {
        let shared = Some((LockMode::Shared, WaitPolicy::Wait));
        let mut a = begin_rr(&db, &t).await;
        let mut b = begin_rr(&db, &t).await;
        let key = key_of(&t, 1);
        assert!(a.get(&t, &key, shared, |r| r.is_some()).await.unwrap());
        assert!(b.get(&t, &key, shared, |r| r.is_some()).await.unwrap());
        let mut c = begin_rr(&db, &t).await;
        let mut waiting = Box::pin(c.get(&t, &key, EXCLUSIVE, |r| r.is_some()));
        waits!(waiting);
        assert_eq!(db.locks().len(), 2);
        assert_eq!(db.transactions().len(), 3);
        a.rollback();
        waits!(waiting);
        b.rollback();
        assert!(waiting.await.unwrap());
    });
}

/// A task that goes away while it waits leaves nothing behind.
#[test]
fn a_waiter_may_go_away() {
    let (db, t) = two_rows();
    block_on(async {
        let mut a = begin_rr(&db, &t).await;
        set(&mut a, &t, 1, 11).await.unwrap();
        let mut b = begin_rr(&db, &t).await;
        let mut waiting = Box::pin(set(&mut b, &t, 1, 12));
        waits!(waiting);
        drop(waiting);
        drop(b);
        assert!(db.locks().is_empty());
        a.commit().await.unwrap();
        let mut c = begin_rr(&db, &t).await;
        set(&mut c, &t, 1, 13).await.unwrap();
        c.commit().await.unwrap();
        assert_eq!(read(&db, &t, 1).await, Some(account(1, 13, Some("a"))));
    });
}

/// Two inserts of one unique key: the second waits, and is a duplicate or goes through as the first ends.
#[test]
fn unique_keys_of_running_transactions_are_waited_for() {
    for commits in [true, false] {
        let (db, t) = two_rows();
        block_on(async {
            let mut a = begin_rr(&db, &t).await;
            a.insert(&t, &account(5, 5, Some("new"))).await.unwrap();
            let mut b = begin_rr(&db, &t).await;
            let row = account(6, 6, Some("NEW"));
            let mut insert = Box::pin(b.insert(&t, &row));
            waits!(insert);
            if commits {
                a.commit().await.unwrap();
                let existing = key_of(&t, 5);
                assert_eq!(insert.await, Ok(InsertOutcome::Duplicate { index: IndexId(2), existing }));
                assert_eq!(value(&mut b, &t, 6).await, None);
            } else {
                a.rollback();
                assert_eq!(insert.await, Ok(InsertOutcome::Inserted));
            }
            b.commit().await.unwrap();
            assert_eq!(contents(&db, &t).await.len(), 3);
        });
    }
}

/// A plain scan reads one moment in all partitions while transfers go on.
#[test]
fn scans_see_one_moment() {
    let (db, t) = database_with(accounts("t"));
    block_on(insert_all(&db, &t, &(0..32).map(|i| account(i, 100, None)).collect::<Vec<_>>()));
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2i64 {
            let (db, t, stop) = (&db, &t, &stop);
            scope.spawn(move || {
                let mut n = thread as usize;
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    n += 1;
                    let (from, to) = ((n * 7 % 32) as i64, (n * 13 % 32) as i64);
                    if from == to {
                        continue;
                    }
                    let _ = block_on(async {
                        let mut txn = begin(db, t, Isolation::ReadCommitted).await;
                        for (id, amount) in [(from.min(to), 1), (from.max(to), -1)] {
                            let old = get_for_update(&mut txn, t, id).await?.unwrap();
                            let Value::Int(v) = old[1] else { panic!() };
                            txn.update(t, &old, &[old[0].clone(), int(v + amount), Value::Null]).await?;
                        }
                        txn.commit().await
                    });
                }
            });
        }
        for i in 0..200 {
            let sum: i64 = block_on(async {
                let mut txn = match i % 3 {
                    0 => begin_rr(&db, &t).await,
                    1 => begin(&db, &t, Isolation::ReadCommitted).await,
                    _ => {
                        let mut txn = db.begin(autocommit());
                        txn.use_table(&t).await.unwrap();
                        txn
                    }
                };
                let rows = scan(&mut txn, &t, if i % 2 == 0 { all(None) } else { all(Some(1)) }).await;
                assert_eq!(rows.len(), 32);
                rows.iter().map(|r| if let Value::Int(v) = r[1] { v } else { panic!() }).sum()
            });
            assert_eq!(sum, 3200);
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
