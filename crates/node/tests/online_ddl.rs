//! Statements go on while a DDL builds: they are made in the middle of the build, at its fault points, and in the end indexes and rows agree.
mod support;

use rauk_log::{Disk, MemoryDisk, fault};
use rauk_node::*;
use rauk_types::{IndexId, IndexKind, MysqlError, TableSchema, Value};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use support::*;

const SHORT: Duration = Duration::from_millis(30);

fn code(error: NodeError) -> u16 {
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

async fn update(txn: &mut Transaction, t: &TableHandle, old: &[Value], new: &[Value]) {
    assert_eq!(get_for_update(txn, t, integer(&old[0])).await.unwrap().as_deref(), Some(old));
    assert_eq!(txn.update(t, old, new).await.unwrap(), UpdateOutcome::Updated);
}

async fn delete(txn: &mut Transaction, t: &TableHandle, id: i64) {
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

/// Calls `step` each time that this thread meets a fault point, with how often it has, from 1.
fn at_point(point: &'static str, step: impl Fn(u32) -> std::io::Result<()> + 'static) -> fault::Local {
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
async fn check_indexes(db: &Database, t: &TableHandle) {
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
                    open.borrow_mut().take().unwrap().commit().await.unwrap();
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

/// A transaction that stays open from before the switch holds it up, until the statement gives up, and then nothing of the index is left.
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
        let db = open_on(disk.clone(), config());
        block_on(async {
            db.create_database("d", Default::default()).await.unwrap();
            db.create_table(accounts("t")).await.unwrap();
        });
        let t = db.table("d", "t").unwrap();
        block_on(insert_all(&db, &t, &(0..60).map(|id| row(id, id % 7)).collect::<Vec<_>>()));
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

/// What was written while the index was built is there after a crash, with and without a checkpoint in the middle, and the index gives it.
#[test]
fn what_is_written_during_a_build_is_recovered() {
    for checkpoint in [false, true] {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        let db = open_on(disk.clone(), config());
        block_on(async {
            db.create_database("d", Default::default()).await.unwrap();
            db.create_table(accounts("t")).await.unwrap();
        });
        let t = db.table("d", "t").unwrap();
        block_on(insert_all(&db, &t, &(0..60).map(|id| row(id, id % 7)).collect::<Vec<_>>()));
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

fn t_now(db: &Database) -> TableHandle {
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
        assert!(matches!(found, Err(NodeError::SnapshotTooOld { .. })), "{found:?}");
        assert_eq!(contents(&db, &t).await.len(), 60);
    });
}
