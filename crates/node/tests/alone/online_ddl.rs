//! Statements go on while a DDL builds: they are made in the middle of the build, at its fault points, and in the end
//! indexes and rows agree.

use crate::support::*;
use rauk_log::{Disk, MemoryDisk, fault};
use rauk_node::*;
use rauk_types::{IndexId, IndexKind, MysqlError, TableSchema, Value};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(30);

pub fn code(error: NodeError) -> u16 {
    MysqlError::from(error).code
}

fn row(id: i64, value: i64) -> Vec<Value> {
    account(id, value, Some(&format!("c{id}")))
}

fn with_index(t: &TableHandle, id: u16, kind: IndexKind, columns: &[usize]) -> TableSchema {
    let mut new = (**t.schema()).clone();
    new.indexes.push(index(id, &format!("i{id}"), kind, columns));
    new
}

pub async fn update(txn: &mut Transaction, t: &TableHandle, old: &[Value], new: &[Value]) {
    assert_eq!(get_for_update(txn, t, integer(&old[0])).await.unwrap().as_deref(), Some(old));
    assert_eq!(txn.update(t, old, new).await.unwrap(), UpdateOutcome::Updated);
}

pub async fn delete(txn: &mut Transaction, t: &TableHandle, id: i64) {
    let row = get_for_update(txn, t, id).await.unwrap().expect("the row is there");
    assert!(txn.delete(t, &row).await.unwrap());
}

fn integer(value: &Value) -> i64 {
    match value {
        Value::Int(v) => *v,
        other => panic!("{other:?}"),
    }
}

/// A database with 60 rows over its partitions.
fn filled() -> (Database, TableHandle, Vec<Vec<Value>>) {
    let (db, t) = database_with(accounts("t"));
    let rows: Vec<_> = (0..60).map(|id| row(id, id % 7)).collect();
    block_on(insert_all(&db, &t, &rows));
    (db, t, rows)
}

/// The same on a disk that is opened again.
fn filled_on(disk: &Arc<dyn Disk>, value: impl Fn(i64) -> i64) -> (Database, TableHandle) {
    let db = open_on(disk.clone(), config());
    block_on(async {
        db.create_database("d", Default::default()).await.unwrap();
        db.create_table(accounts("t")).await.unwrap();
    });
    let t = db.table("d", "t").unwrap();
    block_on(insert_all(&db, &t, &(0..60).map(|id| row(id, value(id))).collect::<Vec<_>>()));
    (db, t)
}

/// Calls `step` each time that this thread meets a fault point, with how often it has, from 1.
pub fn at_point(point: &'static str, step: impl Fn(u32) -> std::io::Result<()> + 'static) -> fault::Local {
    let hits = std::cell::Cell::new(0);
    fault::Local::new(move |name| {
        if name != point {
            return Ok(());
        }
        hits.set(hits.get() + 1);
        step(hits.get())
    })
}

/// Every index of a table gives its rows.
pub async fn check_indexes(db: &Database, t: &TableHandle) {
    let rows = contents(db, t).await;
    let mut txn = begin_rr(db, t).await;
    for index in &t.schema().indexes {
        let mut found = scan(&mut txn, t, all(Some(index.id.0))).await;
        found.sort_by_key(|row| integer(&row[0]));
        assert_eq!(found, rows, "index {}", index.name);
    }
    txn.commit().await.unwrap();
}

#[test]
fn rows_are_read_and_written_while_an_index_is_built() {
    let (db, t, rows) = filled();
    let mut old = db.begin(TxnOptions::default());
    block_on(old.take_snapshot()).unwrap();
    // One is left open from the first partition to the last, one is rolled back.
    let open: Rc<RefCell<Option<Transaction>>> = Rc::default();
    let local = {
        let (db, t, open) = (db.clone(), t.clone(), open.clone());
        at_point("node.ddl.index", move |hit| {
            block_on(async {
                let hit = i64::from(hit);
                assert!(contents(&db, &t).await.len() >= 60, "readers go on");
                let mut txn = begin_rr(&db, &t).await;
                // Rows of all partitions, filled and not.
                for id in (10 * hit..10 * hit + 8).filter(|id| *id < 60) {
                    update(&mut txn, &t, &row(id, id % 7), &row(id, 100 + id)).await;
                }
                delete(&mut txn, &t, 10 * (hit - 1) + 9).await;
                assert_eq!(txn.insert(&t, &row(1000 + hit, hit)).await.unwrap(), InsertOutcome::Inserted);
                match hit {
                    1 => *open.borrow_mut() = Some(txn),
                    2 => txn.rollback(),
                    _ => txn.commit().await.unwrap(),
                }
                if hit == 4 {
                    let first = open.borrow_mut().take();
                    first.unwrap().commit().await.unwrap();
                }
                let mut txn = begin_rr(&db, &t).await;
                assert_eq!(txn.insert(&t, &row(2000 + hit, hit)).await.unwrap(), InsertOutcome::Inserted);
                txn.begin_statement();
                delete(&mut txn, &t, 2000 + hit).await;
                txn.insert(&t, &row(3000 + hit, hit)).await.unwrap();
                txn.commit().await.unwrap();
            });
            Ok(())
        })
    };
    block_on(db.alter_table(&t, with_index(&t, 6, IndexKind::Ordered, &[1, 2]), WAIT)).unwrap();
    drop(local);
    let t = db.table("d", "t").unwrap();
    block_on(async {
        assert_eq!(t.schema().indexes.len(), 4);
        check_indexes(&db, &t).await;
        assert_eq!(contents(&db, &t).await.len(), 60 - 3 + 3 + 4);
        // A snapshot from before the index sees through it what it saw.
        old.use_table(&t).await.unwrap();
        old.begin_statement();
        let mut found = scan(&mut old, &t, all(Some(6))).await;
        found.sort_by_key(|row| integer(&row[0]));
        assert_eq!(found, rows);
    });
}

#[test]
fn other_ddl_waits_for_a_build_and_holds_up_nobody() {
    let (db, t, _) = filled();
    let local = {
        let (db, t) = (db.clone(), t.clone());
        at_point("node.ddl.index", move |hit| {
            if hit == 2 {
                block_on(async {
                    assert_eq!(db.drop_table("d", "t", SHORT).await, Err(NodeError::LockTimeout));
                    let more = with_index(&t, 7, IndexKind::Ordered, &[2]);
                    assert_eq!(db.alter_table(&t, more, SHORT).await, Err(NodeError::LockTimeout));
                    let options = TxnOptions { lock_wait_timeout: Duration::ZERO, ..TxnOptions::default() };
                    let mut txn = db.begin(options);
                    txn.use_table(&t).await.unwrap();
                });
            }
            Ok(())
        })
    };
    block_on(db.alter_table(&t, with_index(&t, 6, IndexKind::Ordered, &[1, 2]), WAIT)).unwrap();
    drop(local);
    let t = db.table("d", "t").unwrap();
    block_on(check_indexes(&db, &t));
    block_on(db.drop_table("d", "t", WAIT)).unwrap();
}

/// A transaction that stays open from before the switch holds it up, until the statement gives up, and then nothing of
/// the index is left.
#[test]
fn a_build_that_does_not_get_its_table_again_is_undone() {
    let (db, t, _) = filled();
    let open: Rc<RefCell<Option<Transaction>>> = Rc::default();
    let local = {
        let (db, t, open) = (db.clone(), t.clone(), open.clone());
        at_point("node.ddl.index", move |hit| {
            if hit == 1 {
                *open.borrow_mut() = Some(block_on(begin_rr(&db, &t)));
            }
            Ok(())
        })
    };
    let new = with_index(&t, 6, IndexKind::Ordered, &[1, 2]);
    assert_eq!(block_on(db.alter_table(&t, new.clone(), SHORT)), Err(NodeError::LockTimeout));
    drop(local);
    assert!(!t.is_stale());
    block_on(async {
        // Its transaction has heard nothing of it.
        let mut txn = open.borrow_mut().take().unwrap();
        update(&mut txn, &t, &row(3, 3), &row(3, 33)).await;
        txn.commit().await.unwrap();
        db.alter_table(&t, new, WAIT).await.unwrap();
        let t = db.table("d", "t").unwrap();
        check_indexes(&db, &t).await;
    });
}

#[test]
fn a_build_that_fails_or_is_killed_in_the_middle_leaves_rows_and_nothing_else() {
    for kill in [false, true] {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        let (db, t) = filled_on(&disk, |id| id % 7);
        let interrupt = Arc::new(Interrupt::default());
        let local = {
            let (db, t, interrupt) = (db.clone(), t.clone(), interrupt.clone());
            at_point("node.ddl.index", move |hit| {
                let fresh = row(100 + i64::from(hit), 1);
                block_on(insert_all(&db, &t, &[fresh]));
                match (hit, kill) {
                    (3, true) => interrupt.kill(),
                    (3, false) => return Err(std::io::ErrorKind::StorageFull.into()),
                    _ => {}
                }
                Ok(())
            })
        };
        let wait = DdlWait { interrupt: Some(&interrupt), ..DdlWait::from(WAIT) };
        let error = block_on(db.alter_table(&t, with_index(&t, 6, IndexKind::Ordered, &[1]), wait)).unwrap_err();
        drop(local);
        assert_eq!(code(error), if kill { 1317 } else { 1021 });
        assert!(!t.is_stale());
        block_on(check_indexes(&db, &t));
        let rows = block_on(contents(&db, &t));
        assert!(rows.len() > 60);
        drop((t, db));
        let db = open_on(disk, config());
        let t = db.table("d", "t").unwrap();
        assert_eq!(t.schema().indexes.len(), 3);
        assert_eq!(block_on(contents(&db, &t)), rows);
        block_on(db.alter_table(&t, with_index(&t, 6, IndexKind::Ordered, &[1]), WAIT)).unwrap();
        let t = db.table("d", "t").unwrap();
        block_on(check_indexes(&db, &t));
    }
}

/// What was written while the index was built is there after a crash, with and without a checkpoint in the middle, and
/// the index gives it.
#[test]
fn what_is_written_during_a_build_is_recovered() {
    for checkpoint in [false, true] {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        let (db, t) = filled_on(&disk, |id| id % 7);
        let local = {
            let (db, t) = (db.clone(), t.clone());
            at_point("node.ddl.index", move |hit| {
                block_on(async {
                    let mut txn = begin_rr(&db, &t).await;
                    update(&mut txn, &t, &row(i64::from(hit), i64::from(hit)), &row(i64::from(hit), 500)).await;
                    txn.commit().await.unwrap();
                    if checkpoint {
                        db.checkpoint().await.unwrap();
                    }
                });
                Ok(())
            })
        };
        block_on(db.alter_table(&t, with_index(&t, 6, IndexKind::Ordered, &[1]), WAIT)).unwrap();
        drop(local);
        let rows = block_on(contents(&db, &t_now(&db)));
        assert_eq!(rows.iter().filter(|row| row[1] == int(500)).count(), 4);
        drop((t, db));
        let db = open_on(disk, config());
        let t = t_now(&db);
        assert_eq!(t.schema().indexes.len(), 4);
        assert_eq!(block_on(contents(&db, &t)), rows);
        block_on(check_indexes(&db, &t));
    }
}

fn with_unique(t: &TableHandle, columns: &[usize]) -> TableSchema {
    with_index(t, 6, IndexKind::Unique, columns)
}

/// What the unique index says of each row.
async fn check_unique(db: &Database, t: &TableHandle) {
    check_indexes(db, t).await;
    let rows = contents(db, t).await;
    let def = t.schema().key_def(t.schema().index(IndexId(6)).unwrap());
    let mut txn = begin_rr(db, t).await;
    for row in rows {
        let mut key = Vec::new();
        def.encode_values(&row, &mut key);
        let found = txn.get_unique(t, IndexId(6), &key, None, |found| found.map(|found| values(&found, 3))).await;
        assert_eq!(found, Ok(Some(row)));
    }
    txn.commit().await.unwrap();
}

/// At the first step of the fill (the point is before each partition of its ordered half), and once behind it.
fn built_beside(
    columns: &[usize],
    step: impl Fn(&Database, &TableHandle, u32) + 'static,
) -> (Database, TableHandle, Result<(), NodeError>) {
    let (db, t) = database_with(accounts("t"));
    block_on(insert_all(&db, &t, &(0..60).map(|id| row(id, 1000 + id)).collect::<Vec<_>>()));
    let local = {
        let (db, t) = (db.clone(), t.clone());
        at_point("node.ddl.index", move |hit| {
            step(&db, &t, hit);
            Ok(())
        })
    };
    let done = block_on(db.alter_table(&t, with_unique(&t, columns), WAIT));
    drop(local);
    let t = t_now(&db);
    (db, t, done)
}

#[test]
fn writers_go_on_while_a_unique_index_is_built() {
    let (db, t, done) = built_beside(&[1], |db, t, hit| {
        let hit = i64::from(hit);
        block_on(async {
            let mut txn = begin_rr(db, t).await;
            for id in 10 * hit..10 * hit + 5 {
                update(&mut txn, t, &row(id, 1000 + id), &row(id, 5000 + id)).await;
            }
            // A key is given up by one row and taken by another, in one transaction and in two.
            update(&mut txn, t, &row(hit, 1000 + hit), &row(hit, 7000 + hit)).await;
            txn.insert(t, &row(200 + hit, 1000 + hit)).await.unwrap();
            delete(&mut txn, t, 50 + hit).await;
            txn.commit().await.unwrap();
            insert_all(db, t, &[row(300 + hit, 1050 + hit)]).await;
            let mut gone = begin_rr(db, t).await;
            gone.insert(t, &row(400 + hit, 1)).await.unwrap();
            delete(&mut gone, t, 10 * hit + 6).await;
            gone.rollback();
        });
    });
    assert_eq!(done, Ok(()));
    block_on(async {
        assert_eq!(contents(&db, &t).await.len(), 60 + 4);
        check_unique(&db, &t).await;
        let mut txn = begin_rr(&db, &t).await;
        let taken = txn.insert(&t, &row(900, 7002)).await.unwrap();
        assert_eq!(taken, InsertOutcome::Duplicate { index: IndexId(6), existing: key_of(&t, 2) });
    });
}

/// The writer's statement is right by the definition that there is; the DDL finds that its index cannot be.
#[test]
fn a_duplicate_that_a_writer_brings_fails_the_build_and_not_the_writer() {
    let (db, t, done) = built_beside(&[1], |db, t, hit| {
        if hit == 2 {
            block_on(insert_all(db, t, &[row(200, 1030), row(201, 5), row(202, 5)]));
        }
    });
    assert_eq!(code(done.unwrap_err()), 1062);
    assert_eq!(t.schema().indexes.len(), 3);
    block_on(async {
        assert_eq!(contents(&db, &t).await.len(), 63);
        check_indexes(&db, &t).await;
        insert_all(&db, &t, &[row(203, 5)]).await;
    });
}

/// Keys that were there twice for a moment only: in a transaction that was rolled back, and before a later statement.
#[test]
fn a_duplicate_that_does_not_stay_does_not_fail_the_build() {
    let (db, t, done) = built_beside(&[1], |db, t, hit| {
        let hit = i64::from(hit);
        block_on(async {
            insert_all(db, t, &[row(200 + hit, 8000 + hit)]).await;
            let mut undone = begin_rr(db, t).await;
            undone.insert(t, &row(300 + hit, 8000 + hit)).await.unwrap();
            undone.rollback();
            let mut shifted = begin_rr(db, t).await;
            for id in 40..43 {
                let by = hit - 1;
                update(&mut shifted, t, &row(id, 1000 + id + by), &row(id, 1000 + id + by + 1)).await;
            }
            if hit == 1 {
                delete(&mut shifted, t, 43).await;
                delete(&mut shifted, t, 44).await;
                delete(&mut shifted, t, 45).await;
                delete(&mut shifted, t, 46).await;
            }
            shifted.commit().await.unwrap();
            insert_all(db, t, &[row(400 + hit, 8000 + hit)]).await;
            let mut after = begin_rr(db, t).await;
            delete(&mut after, t, 200 + hit).await;
            after.commit().await.unwrap();
        });
    });
    assert_eq!(done, Ok(()));
    block_on(check_unique(&db, &t));
}

/// A transaction that is at the table when its build is given up goes on as if there had been none.
#[test]
fn a_unique_index_that_is_given_up_leaves_its_writers_alone() {
    let (db, t) = database_with(accounts("t"));
    block_on(insert_all(&db, &t, &(0..60).map(|id| row(id, 1000 + id)).collect::<Vec<_>>()));
    let open: Rc<RefCell<Option<Transaction>>> = Rc::default();
    let local = {
        let (db, t, open) = (db.clone(), t.clone(), open.clone());
        at_point("node.ddl.index", move |hit| match hit {
            1 => {
                let mut txn = block_on(begin_rr(&db, &t));
                block_on(update(&mut txn, &t, &row(3, 1003), &row(3, 33)));
                *open.borrow_mut() = Some(txn);
                Ok(())
            }
            _ => Err(std::io::ErrorKind::StorageFull.into()),
        })
    };
    assert_eq!(code(block_on(db.alter_table(&t, with_unique(&t, &[1]), WAIT)).unwrap_err()), 1021);
    drop(local);
    block_on(async {
        let mut txn = open.borrow_mut().take().unwrap();
        txn.begin_statement();
        update(&mut txn, &t, &row(4, 1004), &row(4, 33)).await;
        insert_all(&db, &t, &[row(70, 33)]).await;
        // Other DDL comes when the writers have gone and the build is undone.
        assert_eq!(db.truncate_table("d", "t", SHORT).await, Err(NodeError::LockTimeout));
        txn.commit().await.unwrap();
        assert_eq!(code(db.alter_table(&t, with_unique(&t, &[1]), WAIT).await.unwrap_err()), 1062);
        db.alter_table(&t, with_unique(&t, &[1, 0]), WAIT).await.unwrap();
        check_unique(&db, &t_now(&db)).await;
    });
}

#[test]
fn a_unique_index_that_was_built_beside_writers_is_recovered() {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let (db, t) = filled_on(&disk, |id| 1000 + id);
    let local = {
        let (db, t) = (db.clone(), t.clone());
        at_point("node.ddl.index", move |hit| {
            let id = i64::from(hit);
            block_on(async {
                let mut txn = begin_rr(&db, &t).await;
                update(&mut txn, &t, &row(id, 1000 + id), &row(id, id)).await;
                txn.commit().await.unwrap();
                db.checkpoint().await.unwrap();
            });
            Ok(())
        })
    };
    block_on(db.alter_table(&t, with_unique(&t, &[1]), WAIT)).unwrap();
    drop(local);
    drop((t, db));
    for _ in 0..2 {
        let db = open_on(disk.clone(), config());
        block_on(check_unique(&db, &t_now(&db)));
        block_on(db.checkpoint()).unwrap();
    }
}

pub fn t_now(db: &Database) -> TableHandle {
    db.table("d", "t").unwrap()
}

/// Who reads a table that was filled after his snapshot is told, and does not get an empty one.
#[test]
fn a_snapshot_from_before_a_table_was_filled_is_refused() {
    let (db, t, _) = filled();
    let old_snapshot = || {
        let mut old = db.begin(TxnOptions::default());
        block_on(old.take_snapshot()).unwrap();
        old
    };
    let mut old = old_snapshot();
    block_on(db.alter_table(&t, with_index(&t, 6, IndexKind::Unique, &[0, 1]), WAIT)).unwrap();
    let t = t_now(&db);
    block_on(async {
        old.use_table(&t).await.unwrap();
        old.begin_statement();
        assert_eq!(scan(&mut old, &t, all(None)).await.len(), 60);
        let mut key = Vec::new();
        let wanted = [rauk_types::ValueRef::Int(3), rauk_types::ValueRef::Int(3)];
        t.unique_key(IndexId(6)).unwrap().encode_prefix(&wanted, &mut key);
        let found = old.get_unique(&t, IndexId(6), &key, None, |row| row.map(|row| values(&row, 1))).await;
        assert!(matches!(found, Err(NodeError::SnapshotTooOld { .. })), "{found:?}");
        drop(old);
        let mut now = begin_rr(&db, &t).await;
        let found = now.get_unique(&t, IndexId(6), &key, None, |row| row.map(|row| values(&row, 1))).await;
        assert_eq!(found, Ok(Some(vec![int(3)])));
    });
    let mut old = old_snapshot();
    block_on(db.rewrite_table(&t, (**t.schema()).clone(), WAIT, &mut |row| Ok(row.to_vec()))).unwrap();
    let t = t_now(&db);
    block_on(async {
        old.use_table(&t).await.unwrap();
        old.begin_statement();
        let found = try_scan(&mut old, &t, all(None)).await;
        assert!(matches!(found, Err(NodeError::NewerThanSnapshot)), "{found:?}");
        assert_eq!(contents(&db, &t).await.len(), 60);
    });
}
