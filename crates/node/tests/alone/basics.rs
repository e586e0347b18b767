//! Reads and writes of one session, indexes, scans, statements and savepoints.

use crate::support::*;
use rauk_kernel::{LockMode, Verdict, WaitPolicy};
use rauk_log::MemoryDisk;
use rauk_node::*;
use rauk_types::{Collation, IndexId, Value};
use std::ops::Bound;

#[test]
fn a_row_comes_and_goes() {
    let (db, t) = database_with(accounts("t"));
    block_on(async {
        insert_all(&db, &t, &[account(1, 10, Some("a")), account(2, 20, None)]).await;
        assert_eq!(read(&db, &t, 1).await, Some(account(1, 10, Some("a"))));
        assert_eq!(read(&db, &t, 3).await, None);

        let mut txn = begin_rr(&db, &t).await;
        let old = get_for_update(&mut txn, &t, 1).await.unwrap().unwrap();
        let new = account(1, 11, Some("b"));
        assert_eq!(txn.update(&t, &old, &new).await.unwrap(), UpdateOutcome::Updated);
        txn.begin_statement();
        assert_eq!(get(&mut txn, &t, 1).await, Some(new.clone()));
        txn.commit().await.unwrap();
        assert_eq!(read(&db, &t, 1).await, Some(new.clone()));

        let mut txn = begin_rr(&db, &t).await;
        assert!(txn.delete(&t, &new).await.unwrap());
        assert!(!txn.delete(&t, &account(9, 9, None)).await.unwrap());
        txn.rollback();
        assert_eq!(read(&db, &t, 1).await, Some(new.clone()));
        let mut txn = begin_rr(&db, &t).await;
        assert!(txn.delete(&t, &new).await.unwrap());
        txn.commit().await.unwrap();
        assert_eq!(contents(&db, &t).await, vec![account(2, 20, None)]);
    });
}

#[test]
fn duplicates_name_the_row_in_the_way_and_leave_nothing() {
    let (db, t) = database_with(accounts("t"));
    block_on(async {
        insert_all(&db, &t, &[account(1, 10, Some("a")), account(2, 20, Some("b"))]).await;
        let mut txn = begin_rr(&db, &t).await;
        let duplicate = |index, id| InsertOutcome::Duplicate { index: IndexId(index), existing: key_of(&t, id) };
        assert_eq!(txn.insert(&t, &account(1, 99, Some("b"))).await.unwrap(), duplicate(0, 1));
        // Equal under the collation.
        assert_eq!(txn.insert(&t, &account(3, 30, Some("B"))).await.unwrap(), duplicate(2, 2));
        assert_eq!(get(&mut txn, &t, 3).await, None);
        assert_eq!(txn.insert(&t, &account(3, 30, None)).await.unwrap(), InsertOutcome::Inserted);
        assert_eq!(txn.insert(&t, &account(4, 40, None)).await.unwrap(), InsertOutcome::Inserted);
        let old = account(2, 20, Some("b"));
        let taken = UpdateOutcome::Duplicate { index: IndexId(2), existing: key_of(&t, 1) };
        assert_eq!(txn.update(&t, &old, &account(2, 21, Some("A"))).await.unwrap(), taken);
        let taken = UpdateOutcome::Duplicate { index: IndexId(0), existing: key_of(&t, 1) };
        assert_eq!(txn.update(&t, &old, &account(1, 21, Some("b"))).await.unwrap(), taken);
        txn.commit().await.unwrap();
        let expected =
            vec![account(1, 10, Some("a")), account(2, 20, Some("b")), account(3, 30, None), account(4, 40, None)];
        assert_eq!(contents(&db, &t).await, expected);
    });
}

/// INSERT … ON DUPLICATE KEY UPDATE with the same key twice: the second meets the row of the first.
#[test]
fn a_duplicate_of_the_same_statement_can_be_read_and_changed() {
    let (db, t) = database_with(accounts("t"));
    block_on(async {
        let mut txn = begin_rr(&db, &t).await;
        txn.insert(&t, &account(1, 10, Some("a"))).await.unwrap();
        let InsertOutcome::Duplicate { existing, .. } = txn.insert(&t, &account(2, 5, Some("a"))).await.unwrap() else {
            panic!("expected a duplicate")
        };
        let lock = Some((LockMode::Exclusive, WaitPolicy::Wait));
        let old = txn.get(&t, &existing, lock, |r| r.map(|r| values(&r, 3))).await.unwrap().unwrap();
        assert_eq!(old, account(1, 10, Some("a")));
        txn.update(&t, &old, &account(1, 15, Some("a"))).await.unwrap();
        txn.commit().await.unwrap();
        assert_eq!(contents(&db, &t).await, vec![account(1, 15, Some("a"))]);
    });
}

#[test]
fn the_primary_key_may_change() {
    let (db, t) = database_with(accounts("t"));
    block_on(async {
        insert_all(&db, &t, &[account(1, 10, Some("a"))]).await;
        let mut txn = begin_rr(&db, &t).await;
        let updated = txn.update(&t, &account(1, 10, Some("a")), &account(7, 10, Some("a"))).await.unwrap();
        assert_eq!(updated, UpdateOutcome::Updated);
        assert_eq!(
            txn.update(&t, &account(1, 10, Some("a")), &account(8, 10, Some("a"))).await.unwrap(),
            UpdateOutcome::Missing
        );
        txn.commit().await.unwrap();
        assert_eq!(contents(&db, &t).await, vec![account(7, 10, Some("a"))]);
        // The unique index points to the new place.
        let mut txn = begin_rr(&db, &t).await;
        let row = txn.get_unique(&t, IndexId(2), &code_key(&t, "A"), None, |r| r.map(|r| values(&r, 3))).await.unwrap();
        assert_eq!(row, Some(account(7, 10, Some("a"))));
    });
}

#[test]
fn unique_keys_find_rows() {
    let (db, t) = database_with(accounts("t"));
    block_on(async {
        insert_all(&db, &t, &[account(1, 10, Some("a")), account(2, 20, Some("b"))]).await;
        for lock in [None, Some((LockMode::Exclusive, WaitPolicy::Wait))] {
            let mut txn = begin_rr(&db, &t).await;
            let found =
                txn.get_unique(&t, IndexId(2), &code_key(&t, "b"), lock, |r| r.map(|r| values(&r, 3))).await.unwrap();
            assert_eq!(found, Some(account(2, 20, Some("b"))));
            let none = txn.get_unique(&t, IndexId(2), &code_key(&t, "x"), lock, |r| r.is_none()).await.unwrap();
            assert!(none);
            txn.update(&t, &account(2, 20, Some("b")), &account(2, 20, Some("c"))).await.unwrap();
            // The statement's own write is hidden from it, and seen by the next.
            let hidden = txn.get_unique(&t, IndexId(2), &code_key(&t, "c"), lock, |r| r.is_none()).await.unwrap();
            assert!(hidden);
            txn.begin_statement();
            let seen = txn.get_unique(&t, IndexId(2), &code_key(&t, "c"), lock, |r| r.is_some()).await.unwrap();
            assert!(seen);
            txn.rollback();
        }
        // At autocommit no snapshot is drawn.
        let mut txn = db.begin(autocommit());
        txn.use_table(&t).await.unwrap();
        let found = txn.get_unique(&t, IndexId(2), &code_key(&t, "a"), None, |r| r.is_some()).await.unwrap();
        assert!(found);
    });
}

#[test]
fn scans_in_every_way() {
    let (db, t) = database_with(accounts("t"));
    block_on(async {
        let rows: Vec<_> = (0..500).map(|i| account(i, (i * 7) % 50, None)).collect();
        insert_all(&db, &t, &rows).await;
        let mut by_value = rows.clone();
        by_value.sort_by_key(|r| match (&r[1], &r[0]) {
            (Value::Int(v), Value::Int(id)) => (*v, *id),
            _ => unreachable!(),
        });
        let mut txn = begin_rr(&db, &t).await;
        let number = |r: &Vec<Value>| match r[1] {
            Value::Int(v) => v,
            _ => unreachable!(),
        };
        for lock in [None, Some((LockMode::Exclusive, WaitPolicy::Wait))] {
            let found = scan(&mut txn, &t, ScanSpec { lock, ..all(Some(1)) }).await;
            assert_eq!(found.iter().map(number).collect::<Vec<_>>(), by_value.iter().map(number).collect::<Vec<_>>());
            let found = scan(&mut txn, &t, ScanSpec { lock, reverse: true, limit_hint: Some(3), ..all(Some(0)) }).await;
            assert_eq!(first_column(&found), (0..500).rev().collect::<Vec<_>>());
            let range = ScanSpec {
                low: Bound::Included(key_of(&t, 100)),
                high: Bound::Excluded(key_of(&t, 110)),
                lock,
                ..all(Some(0))
            };
            assert_eq!(first_column(&scan(&mut txn, &t, range).await), (100..110).collect::<Vec<_>>());
            let one = ScanSpec { distribution: Some(key_of(&t, 5)), lock, ..all(None) };
            let found = scan(&mut txn, &t, one).await;
            assert!(found.len() < 500 && first_column(&found).contains(&5));
            let mut found = first_column(&scan(&mut txn, &t, ScanSpec { lock, ..all(None) }).await);
            found.sort();
            assert_eq!(found, (0..500).collect::<Vec<_>>());
        }
        txn.rollback();
        let mut txn = begin_rr(&db, &t).await;
        let mut sum = 0;
        ScanCursor::new(&t, all(None))
            .for_each(&mut txn, &mut |row| {
                if let rauk_types::ValueRef::Int(v) = row.get(0) {
                    sum += v;
                }
                Verdict::Keep
            })
            .await
            .unwrap();
        assert_eq!(sum, 499 * 500 / 2);
        let mut visited = 0;
        ScanCursor::new(&t, all(None))
            .for_each(&mut txn, &mut |_| {
                visited += 1;
                if visited == 9 { Verdict::KeepAndStop } else { Verdict::Keep }
            })
            .await
            .unwrap();
        assert_eq!(visited, 9);
    });
}

/// A locking scan in order over partitions locks only what it gives out, and not what the filter refuses.
#[test]
fn ordered_locking_scans_lock_what_they_give() {
    let (db, t) = database_with(pairs("t"));
    block_on(async {
        let rows: Vec<_> = (0..40).map(|i| vec![int(i), int(i)]).collect();
        insert_all(&db, &t, &rows).await;
        let lock = Some((LockMode::Exclusive, WaitPolicy::SkipLocked));
        let mut holders = Vec::new();
        for expected in [1, 3, 5] {
            let mut txn = begin_rr(&db, &t).await;
            let mut cursor = ScanCursor::new(&t, ScanSpec { lock, limit_hint: Some(1), ..all(Some(0)) });
            let mut batch = ScanBatch::default();
            let odd = &mut |r: &rauk_types::RowView<'_>| matches!(r.get(0), rauk_types::ValueRef::Int(v) if v % 2 == 1);
            cursor.next_batch(&mut txn, 1, odd, &mut batch).await.unwrap();
            assert_eq!(values(&batch.row(&t, 0), 1), vec![int(expected)]);
            holders.push(txn);
        }
        // Even rows were looked at and are free.
        let mut txn = begin_rr(&db, &t).await;
        let lock = Some((LockMode::Exclusive, WaitPolicy::NoWait));
        assert!(txn.get(&t, &key_of(&t, 2), lock, |r| r.is_some()).await.unwrap());
        assert_eq!(txn.get(&t, &key_of(&t, 3), lock, |_| ()).await, Err(NodeError::NoWait));
    });
}

#[test]
fn statements_and_savepoints_are_undone() {
    let (db, t) = database_with(accounts("t"));
    block_on(async {
        let mut txn = begin_rr(&db, &t).await;
        txn.insert(&t, &account(1, 1, Some("a"))).await.unwrap();
        let first = txn.savepoint();
        txn.begin_statement();
        txn.insert(&t, &account(2, 2, Some("b"))).await.unwrap();
        txn.insert(&t, &account(3, 3, Some("c"))).await.unwrap();
        txn.begin_statement();
        txn.update(&t, &account(1, 1, Some("a")), &account(1, 9, Some("z"))).await.unwrap();
        txn.insert(&t, &account(4, 4, Some("a"))).await.unwrap();
        txn.rollback_statement();
        txn.begin_statement();
        let rows = scan(&mut txn, &t, all(Some(0))).await;
        assert_eq!(rows, vec![account(1, 1, Some("a")), account(2, 2, Some("b")), account(3, 3, Some("c"))]);
        txn.rollback_to(first);
        txn.begin_statement();
        assert_eq!(scan(&mut txn, &t, all(Some(0))).await, vec![account(1, 1, Some("a"))]);
        // The undone keys are free again.
        txn.insert(&t, &account(5, 5, Some("b"))).await.unwrap();
        txn.commit().await.unwrap();
        assert_eq!(contents(&db, &t).await, vec![account(1, 1, Some("a")), account(5, 5, Some("b"))]);
    });
}

/// Of many rows a slice is undone at once: whatever the transaction does next, and however, comes behind the rest.
#[test]
fn what_follows_the_undoing_of_many_rows_finds_them_undone() {
    const ROWS: i64 = 300;
    for partitions in [1, 4] {
        let config = Config { partitions, end_slice: 2, ..config() };
        let db = open_on(MemoryDisk::new(), config);
        let t = block_on(async {
            db.create_database("d", Collation::DEFAULT).await.unwrap();
            db.create_table(pairs("t")).await.unwrap();
            db.table("d", "t").unwrap()
        });
        let pair = |id: i64, value: i64| vec![int(id), int(value)];
        for next in 0..7 {
            block_on(async {
                let mut txn = begin_rr(&db, &t).await;
                for id in 0..5 {
                    txn.insert(&t, &pair(id, 1)).await.unwrap();
                }
                txn.begin_statement();
                for id in 5..ROWS {
                    txn.insert(&t, &pair(id, 2)).await.unwrap();
                }
                txn.begin_statement();
                let savepoint = txn.savepoint();
                for id in 0..5 {
                    assert_eq!(txn.update(&t, &pair(id, 1), &pair(id, 3)).await.unwrap(), UpdateOutcome::Updated);
                }
                for id in ROWS..2 * ROWS {
                    txn.insert(&t, &pair(id, 3)).await.unwrap();
                }
                txn.begin_statement();
                txn.rollback_to(savepoint);
                let mut rows = ROWS;
                match next {
                    0 => assert_eq!(get(&mut txn, &t, 3).await, Some(pair(3, 1))),
                    1 => assert_eq!(get(&mut txn, &t, ROWS).await, None),
                    2 => {
                        let keys: Vec<_> = (0..2 * ROWS).map(|id| key_of(&t, id)).collect();
                        let found = get_many(&mut txn, &t, IndexId::PRIMARY, &keys).await.unwrap();
                        assert_eq!(found.iter().filter(|row| row.is_some()).count() as i64, ROWS);
                    }
                    3 => assert_eq!(scan(&mut txn, &t, all(None)).await.len() as i64, ROWS),
                    4 => {
                        assert_eq!(txn.insert(&t, &pair(ROWS, 4)).await.unwrap(), InsertOutcome::Inserted);
                        rows += 1;
                    }
                    5 => {
                        let mut again: Vec<_> = (ROWS..2 * ROWS).map(|id| pair(id, 4)).collect();
                        let mut done = vec![false; again.len()];
                        txn.insert_many(&t, &mut again, &mut done).await.unwrap();
                        for (row, _) in again.iter().zip(done).filter(|(_, done)| !done) {
                            assert_eq!(txn.insert(&t, row).await.unwrap(), InsertOutcome::Inserted);
                        }
                        rows += ROWS;
                    }
                    _ => {}
                }
                txn.commit().await.unwrap();
                let found = contents(&db, &t).await;
                assert_eq!((found.len() as i64, next), (rows, next));
                assert!(found[..5].iter().all(|row| row[1] == int(1)), "{:?} after {next}", &found[..5]);
                let mut txn = begin_rr(&db, &t).await;
                for row in found {
                    assert!(txn.delete(&t, &row).await.unwrap());
                }
                txn.commit().await.unwrap();
            });
        }
    }
}

#[test]
fn an_update_does_not_meet_what_it_made_itself() {
    let (db, t) = database_with(accounts("t"));
    block_on(async {
        insert_all(&db, &t, &(0..20).map(|i| account(i, i, None)).collect::<Vec<_>>()).await;
        let mut txn = begin_rr(&db, &t).await;
        let lock = Some((LockMode::Exclusive, WaitPolicy::Wait));
        let mut cursor = ScanCursor::new(&t, ScanSpec { lock, ..all(Some(1)) });
        let mut batch = ScanBatch::default();
        let mut changed = 0;
        loop {
            cursor.next_batch(&mut txn, 3, &mut |_| true, &mut batch).await.unwrap();
            if batch.is_empty() {
                break;
            }
            for i in 0..batch.len() {
                let old = values(&batch.row(&t, i), 3);
                let Value::Int(v) = old[1] else { panic!() };
                let new = vec![old[0].clone(), int(v + 5), Value::Null];
                txn.update(&t, &old, &new).await.unwrap();
                changed += 1;
            }
        }
        assert_eq!(changed, 20);
        txn.commit().await.unwrap();
        let rows = contents(&db, &t).await;
        assert!(rows.iter().all(|r| matches!((&r[0], &r[1]), (Value::Int(id), Value::Int(v)) if *v == id + 5)));
    });
}

#[test]
fn hidden_keys_are_filled() {
    let (db, t) = database_with(hidden("t"));
    block_on(async {
        insert_all(&db, &t, &(0..600).map(|i| vec![int(i), Value::Null]).collect::<Vec<_>>()).await;
        let rows = contents(&db, &t).await;
        assert_eq!(first_column(&rows), (0..600).collect::<Vec<_>>());
        let keys: std::collections::BTreeSet<_> = rows.iter().map(|r| format!("{:?}", r[1])).collect();
        assert_eq!(keys.len(), 600);
        db.finish_ends().await;
        assert_eq!(db.table_usage(t.schema().id).rows, 600);
        assert_eq!(db.estimate_rows(&t), 600);
    });
}

#[test]
fn read_only_transactions_do_not_write() {
    let (db, t) = database_with(pairs("t"));
    block_on(async {
        let mut txn = db.begin(TxnOptions { read_only: true, ..TxnOptions::default() });
        txn.use_table(&t).await.unwrap();
        let NodeError::Refused(error) = txn.insert(&t, &[int(1), int(1)]).await.unwrap_err() else { panic!() };
        assert_eq!(error.code, 1792);
    });
}

#[test]
fn auto_increment_counts() {
    let (db, t) = database_with(pairs("t"));
    let id = t.schema().id;
    assert_eq!(db.peek_auto_increment(id), 1);
    assert_eq!(db.next_auto_increment(id, 3).unwrap(), 1);
    assert_eq!(db.next_auto_increment(id, 1).unwrap(), 4);
    db.observe_auto_increment(id, 100).unwrap();
    db.observe_auto_increment(id, 50).unwrap();
    assert_eq!(db.next_auto_increment(id, 1).unwrap(), 101);
    db.observe_auto_increment(id, u64::MAX).unwrap();
    let NodeError::Refused(error) = db.next_auto_increment(id, 1).unwrap_err() else { panic!() };
    assert_eq!(error.code, 1467);
}

#[test]
fn many_keys_are_read_as_each_by_itself() {
    let (db, t) = database_with(accounts("t"));
    let code = |id: i64| format!("code {id:04}");
    block_on(async {
        let rows: Vec<_> = (0..900).map(|id| account(id, id * 2, Some(&code(id)))).collect();
        insert_all(&db, &t, &rows).await;
        let mut txn = begin_rr(&db, &t).await;
        assert_eq!(get(&mut txn, &t, 1).await, Some(rows[1].clone()));
        // What others do is not in the snapshot; what the transaction itself has done is.
        let mut other = begin_rr(&db, &t).await;
        for id in [3, 4, 5] {
            assert!(other.delete(&t, &rows[id]).await.unwrap());
        }
        let changed = account(6, 0, Some("moved"));
        assert_eq!(other.update(&t, &rows[6], &changed).await.unwrap(), UpdateOutcome::Updated);
        let pending = account(7, 1, Some("pending"));
        other.commit().await.unwrap();
        let mut writer = begin_rr(&db, &t).await;
        assert_eq!(writer.update(&t, &rows[7], &pending).await.unwrap(), UpdateOutcome::Updated);
        assert!(txn.delete(&t, &rows[10]).await.unwrap());
        let own = account(11, 5, Some("own"));
        assert_eq!(txn.update(&t, &rows[11], &own).await.unwrap(), UpdateOutcome::Updated);
        txn.begin_statement();
        // Present, missing, and the same one twice; more than a hold has.
        let ids: Vec<i64> = (0..1000).chain([5, 11, 999, 0]).collect();
        let keys: Vec<Vec<u8>> = ids.iter().map(|id| key_of(&t, *id)).collect();
        let found = get_many(&mut txn, &t, IndexId::PRIMARY, &keys).await.unwrap();
        for (id, found) in ids.iter().zip(found) {
            assert_eq!(found, get(&mut txn, &t, *id).await, "{id}");
        }
        let codes = (0..1000).map(code).chain(["own".into(), "moved".into(), "pending".into(), "CODE 0005".into()]);
        let keys: Vec<Vec<u8>> = codes.map(|code| code_key(&t, &code)).collect();
        let found = get_many(&mut txn, &t, IndexId(2), &keys).await.unwrap();
        let mut some = 0;
        for (key, found) in keys.iter().zip(found) {
            some += usize::from(found.is_some());
            let one = txn.get_unique(&t, IndexId(2), key, None, |row| row.map(|row| values(&row, 3))).await.unwrap();
            assert_eq!(found, one);
        }
        assert_eq!(some, 900 - 2 + 2);
        assert_eq!(get_many(&mut txn, &t, IndexId(2), &[]).await.unwrap(), vec![]);
        writer.rollback();
        // A visitor that has enough sees the rest another time.
        let (mut done, mut seen) = (vec![false; 600], vec![0; 600]);
        let mut all = rauk_node::bulk::Keys::default();
        (0..600).for_each(|id| all.push(&key_of(&t, id)));
        let mut calls = 0;
        while done.contains(&false) {
            calls += 1;
            let mut visit = |number: usize, _: Option<rauk_types::RowView<'_>>| {
                seen[number] += 1;
                false
            };
            txn.get_many(&t, IndexId::PRIMARY, &all, &mut done, &mut visit).await.unwrap();
        }
        assert!(calls > 1 && seen.iter().all(|seen| *seen == 1), "{calls} calls");
    });
}
