//! Definitions change: what is kept, what is refused, who waits for whom, and crashes in the middle.

use crate::support::*;
use rauk_log::{Disk, MemoryDisk, fault};
use rauk_node::*;
use rauk_types::{DataType, IndexId, IndexKind, MysqlError, TableSchema, TypeKind, Value};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

fn code(result: Result<(), NodeError>) -> (u16, String) {
    let error: MysqlError = result.unwrap_err().into();
    (error.code, error.message)
}

fn pending<T>(future: Pin<&mut impl Future<Output = T>>) -> bool {
    future.poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

fn some_rows(db: &Database, t: &TableHandle, n: i64) {
    let rows: Vec<_> = (0..n).map(|i| account(i, i % 10, Some(&format!("c{i}")))).collect();
    block_on(insert_all(db, t, &rows));
}

#[test]
fn refusals_have_mysqls_codes() {
    let (db, _t) = database_with(accounts("t"));
    block_on(async {
        assert_eq!(code(db.create_database("d", Default::default()).await).0, 1007);
        assert_eq!(code(db.create_table(accounts("t")).await), (1050, "Table 't' already exists".into()));
        let elsewhere = TableSchema { database: "x".into(), ..accounts("t") };
        assert_eq!(code(db.create_table(elsewhere).await), (1049, "Unknown database 'x'".into()));
        assert_eq!(code(db.drop_table("d", "u", WAIT).await), (1051, "Unknown table 'd.u'".into()));
        assert_eq!(code(db.truncate_table("d", "u", WAIT).await), (1146, "Table 'd.u' doesn't exist".into()));
        assert_eq!(code(db.drop_database("x", WAIT).await.map(|_| ())).0, 1049);
        assert_eq!(db.tables("x").unwrap_err().to_string(), "ERROR 1049 (42000): Unknown database 'x'");
        let name = |n: &str| ("d".to_string(), n.to_string());
        assert_eq!(code(db.rename_tables(&[(name("u"), name("v"))], WAIT).await).0, 1146);
        db.create_table(pairs("u")).await.unwrap();
        assert_eq!(code(db.rename_tables(&[(name("u"), name("t"))], WAIT).await).0, 1050);
        let away = ("x".to_string(), "u".to_string());
        assert_eq!(code(db.rename_tables(&[(name("u"), away)], WAIT).await).0, 1049);
    });
}

/// A transaction that stays open holds up the DDL, and nobody else for long.
#[test]
fn new_statements_pass_a_ddl_that_waits_for_an_old_one() {
    let (db, t) = database_with(accounts("t"));
    some_rows(&db, &t, 5);
    let old = block_on(begin_rr(&db, &t));
    let ddl = {
        let db = db.clone();
        std::thread::spawn(move || block_on(db.drop_table("d", "t", Duration::from_secs(60))))
    };
    let mut passed = 0;
    let mut held_up = false;
    // Until the DDL has been seen to wait, and some times afterwards.
    while passed < 30 || !held_up {
        assert!(!ddl.is_finished(), "the DDL did not wait");
        // With no patience at all, it fails while the DDL has its window.
        let mut new = db.begin(TxnOptions { lock_wait_timeout: Duration::ZERO, ..autocommit() });
        held_up |= block_on(new.use_table(&t)).is_err();
        drop(new);
        let mut new = db.begin(TxnOptions { lock_wait_timeout: Duration::from_secs(20), ..autocommit() });
        block_on(async {
            new.use_table(&t).await.unwrap();
            assert!(get(&mut new, &t, 1).await.is_some());
            new.commit().await.unwrap();
        });
        passed += 1;
        std::thread::sleep(Duration::from_millis(5));
    }
    old.rollback();
    ddl.join().unwrap().unwrap();
    assert!(t.is_stale());
}

/// Transactions that overlap without end, each of them short, do not keep a DDL waiting.
#[test]
fn a_ddl_is_not_starved_by_short_transactions() {
    let (db, t) = database_with(accounts("t"));
    some_rows(&db, &t, 5);
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for worker in 0..3 {
            let (db, stop) = (&db, &stop);
            scope.spawn(move || {
                std::thread::sleep(Duration::from_millis(5 * worker));
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let t = db.table("d", "t").unwrap();
                    let mut txn =
                        db.begin(TxnOptions { lock_wait_timeout: Duration::from_secs(60), ..TxnOptions::default() });
                    if block_on(txn.use_table(&t)).is_ok() {
                        std::thread::sleep(Duration::from_millis(15));
                    }
                    txn.rollback();
                }
            });
        }
        let done = block_on(db.truncate_table("d", "t", Duration::from_secs(60)));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        done.unwrap();
    });
}

/// A statement that has read its rows keeps no table while it sends them; one that has locked rows does.
#[test]
fn a_statement_that_only_sends_its_rows_keeps_no_table() {
    let (db, t) = database_with(accounts("t"));
    some_rows(&db, &t, 5);
    block_on(async {
        let mut sending = db.begin(autocommit());
        sending.begin_statement();
        sending.use_table(&t).await.unwrap();
        assert_eq!(scan(&mut sending, &t, all(None)).await.len(), 5);
        assert_eq!(code(db.truncate_table("d", "t", Duration::ZERO).await).0, 1205);
        sending.end_reading();
        db.truncate_table("d", "t", Duration::ZERO).await.unwrap();
        sending.commit().await.unwrap();
        // Within a transaction it keeps it, as it does with locks.
        let t = db.table("d", "t").unwrap();
        insert_all(&db, &t, &[account(1, 1, None)]).await;
        for options in [TxnOptions::default(), autocommit()] {
            let mut txn = db.begin(options);
            txn.begin_statement();
            txn.use_table(&t).await.unwrap();
            get_for_update(&mut txn, &t, 1).await.unwrap();
            txn.end_reading();
            assert_eq!(code(db.truncate_table("d", "t", Duration::ZERO).await).0, 1205);
            txn.rollback();
        }
    });
}

#[test]
fn tables_swap_names() {
    let (db, t) = database_with(accounts("t"));
    some_rows(&db, &t, 5);
    block_on(async {
        db.create_table(pairs("u")).await.unwrap();
        let name = |n: &str| ("d".to_string(), n.to_string());
        let pairs = [(name("t"), name("tmp")), (name("u"), name("t")), (name("tmp"), name("u"))];
        db.rename_tables(&pairs, WAIT).await.unwrap();
        assert!(t.is_stale());
        let mut txn = db.begin(TxnOptions::default());
        assert_eq!(txn.use_table(&t).await, Err(NodeError::StaleSchema));
        drop(txn);
        let u = db.table("d", "u").unwrap();
        assert_eq!(contents(&db, &u).await.len(), 5);
        assert_eq!(contents(&db, &db.table("d", "t").unwrap()).await.len(), 0);
        insert_all(&db, &u, &[account(100, 1, Some("x"))]).await;
        let names: Vec<_> = db.tables("d").unwrap().iter().map(|t| t.name.clone()).collect();
        assert_eq!(names, ["t", "u"]);
    });
}

#[test]
fn ddl_waits_for_transactions_and_new_ones_for_it() {
    let (db, t) = database_with(accounts("t"));
    some_rows(&db, &t, 5);
    block_on(async {
        let mut open = begin_rr(&db, &t).await;
        open.insert(&t, &account(50, 0, None)).await.unwrap();
        assert_eq!(db.truncate_table("d", "t", Duration::from_millis(30)).await, Err(NodeError::LockTimeout));
        let mut ddl = Box::pin(db.truncate_table("d", "t", WAIT));
        assert!(pending(ddl.as_mut()));
        let mut next = db.begin(TxnOptions::default());
        let mut waiting = Box::pin(next.use_table(&t));
        assert!(pending(waiting.as_mut()));
        // The open one goes on undisturbed.
        open.insert(&t, &account(51, 0, None)).await.unwrap();
        assert!(pending(ddl.as_mut()) && pending(waiting.as_mut()));
        open.commit().await.unwrap();
        ddl.await.unwrap();
        assert_eq!(waiting.await, Err(NodeError::StaleSchema));
        let t = db.table("d", "t").unwrap();
        assert!(contents(&db, &t).await.is_empty());
    });
}

#[test]
fn dropped_tables_give_their_memory_back() {
    let (db, t) = database_with(accounts("t"));
    for batch in 0..50 {
        let row = |i| account(i, i % 10, Some(&format!("c{i}")));
        block_on(insert_all(&db, &t, &(batch * 100..batch * 100 + 100).map(row).collect::<Vec<_>>()));
    }
    let full = db.memory_used();
    assert!(full > 500_000);
    let usage = db.table_usage(t.schema().id);
    assert!(usage.rows == 5_000 && usage.row_bytes > 0 && usage.ordered_bytes > 0);
    block_on(db.drop_table("d", "t", WAIT)).unwrap();
    // What is left are empty side tables that keep their room.
    assert!(db.memory_used() < full / 4, "{} of {full}", db.memory_used());
    assert!(db.table("d", "t").is_err());
    assert!(db.table_by_id(t.schema().id).is_none());
}

#[test]
fn columns_come_and_go_without_copying() {
    let (db, t) = database_with(accounts("t"));
    some_rows(&db, &t, 100);
    block_on(async {
        let mut new = (**t.schema()).clone();
        let mut added = column(7, "extra", DataType::BIGINT, false);
        added.initial = int(5);
        new.columns.push(added);
        new.columns.remove(1);
        // by_value goes with its column; the unique index stays, its column has moved.
        new.indexes.remove(1);
        new.indexes[1].parts[0].column = 1;
        db.alter_table(&t, new, WAIT).await.unwrap();
        let t = db.table("d", "t").unwrap();
        assert_eq!(t.schema().layouts.len(), 2);
        assert_eq!(read(&db, &t, 3).await, Some(vec![int(3), text("c3"), int(5)]));
        insert_all(&db, &t, &[vec![int(200), text("new"), int(9)]]).await;
        let mut txn = begin_rr(&db, &t).await;
        let found = txn.get_unique(&t, IndexId(2), &code_key(&t, "C7"), None, |r| r.map(|r| values(&r, 3))).await;
        assert_eq!(found.unwrap(), Some(vec![int(7), text("c7"), int(5)]));
        let duplicate = txn.insert(&t, &[int(201), text("c9"), int(0)]).await.unwrap();
        assert!(matches!(duplicate, InsertOutcome::Duplicate { index: IndexId(2), .. }));
    });
}

fn with_unique_on_value(t: &TableHandle) -> TableSchema {
    let mut new = (**t.schema()).clone();
    new.indexes.push(index(5, "u_value", IndexKind::Unique, &[1]));
    new.indexes.push(index(6, "by_code_value", IndexKind::Ordered, &[2, 1]));
    new
}

#[test]
fn indexes_are_built_over_rows_that_are_there() {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let db = open_on(disk.clone(), config());
    block_on(async {
        db.create_database("d", Default::default()).await.unwrap();
        db.create_table(accounts("t")).await.unwrap();
        let t = db.table("d", "t").unwrap();
        let rows: Vec<_> = (0..1500).map(|i| account(i, 10_000 - i, None)).collect();
        insert_all(&db, &t, &rows).await;
        db.alter_table(&t, with_unique_on_value(&t), WAIT).await.unwrap();
        drop(db);
        // The index table's rows are in the log and, after it, in the checkpoint.
        for _ in 0..2 {
            let db = open_on(disk.clone(), config());
            let t = db.table("d", "t").unwrap();
            let mut txn = begin_rr(&db, &t).await;
            let mut key = Vec::new();
            t.unique_key(IndexId(5)).unwrap().encode_prefix(&[rauk_types::ValueRef::Int(9_000)], &mut key);
            let row = txn.get_unique(&t, IndexId(5), &key, None, |r| r.map(|r| values(&r, 1))).await.unwrap();
            assert_eq!(row, Some(vec![int(1000)]));
            assert_eq!(scan(&mut txn, &t, all(Some(6))).await.len(), 1500);
            assert_eq!(first_column(&scan(&mut txn, &t, all(Some(5))).await)[..3], [1499, 1498, 1497]);
            let taken = txn.insert(&t, &account(5000, 9_000, None)).await.unwrap();
            assert_eq!(taken, InsertOutcome::Duplicate { index: IndexId(5), existing: key_of(&t, 1000) });
            drop(txn);
            db.checkpoint().await.unwrap();
        }
        let db = open_on(disk, config());
        let t = db.table("d", "t").unwrap();
        let mut less = (**t.schema()).clone();
        less.indexes.retain(|i| i.id.0 < 2);
        db.alter_table(&t, less, WAIT).await.unwrap();
        let t = db.table("d", "t").unwrap();
        insert_all(&db, &t, &[account(5000, 9_000, None)]).await;
    });
}

#[test]
fn a_unique_index_over_duplicates_is_refused_and_leaves_nothing() {
    let (db, t) = database_with(accounts("t"));
    some_rows(&db, &t, 700);
    block_on(async {
        let used = db.memory_used();
        let (number, message) = code(db.alter_table(&t, with_unique_on_value(&t), WAIT).await);
        assert_eq!(number, 1062);
        assert!(message.starts_with("Duplicate entry '") && message.ends_with("' for key 't.u_value'"), "{message}");
        assert!(!t.is_stale());
        insert_all(&db, &t, &[account(9_999, 3, Some("more"))]).await;
        assert_eq!(contents(&db, &t).await.len(), 701);
        assert!(db.memory_used() < used + 20_000, "{} after {used}", db.memory_used());
    });
}

fn wider(t: &TableHandle) -> TableSchema {
    let mut new = (**t.schema()).clone();
    new.columns[1].ty = DataType::varchar(30, Default::default());
    // Another primary key.
    new.indexes[0].parts[0].column = 1;
    new.distribution = vec![1];
    new
}

#[test]
fn a_table_is_rewritten() {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let db = open_on(disk.clone(), config());
    block_on(async {
        db.create_database("d", Default::default()).await.unwrap();
        db.create_table(accounts("t")).await.unwrap();
        let t = db.table("d", "t").unwrap();
        let rows: Vec<_> = (0..1200).map(|i| account(i, i + 5000, Some(&format!("c{i}")))).collect();
        insert_all(&db, &t, &rows).await;
        db.observe_auto_increment(t.schema().id, 1200).unwrap();
        let fails = &mut |_: &[Value]| Err(MysqlError::new(1264, "Out of range value for column 'value' at row 1"));
        assert_eq!(code(db.rewrite_table(&t, wider(&t), WAIT, fails).await.map(|_| ())).0, 1264);
        let same = &mut |row: &[Value]| Ok(vec![row[0].clone(), text("same"), row[2].clone()]);
        let (number, message) = code(db.rewrite_table(&t, wider(&t), WAIT, same).await.map(|_| ()));
        assert_eq!((number, &message[..]), (1062, "Duplicate entry 'same' for key 't.PRIMARY'"));
        assert!(!t.is_stale());
        assert_eq!(contents(&db, &t).await, rows);
        assert_eq!(db.rewrite_table(&t, wider(&t), WAIT, &mut as_text).await.unwrap(), 1200);
        assert!(t.is_stale());
        drop(db);
        let db = open_on(disk, config());
        let t = db.table("d", "t").unwrap();
        let expected: Vec<_> = rows.iter().map(|r| as_text(r).unwrap()).collect();
        assert_eq!(contents(&db, &t).await, expected);
        assert!(db.peek_auto_increment(t.schema().id) > 1200);
    });
}

/// DDL that a crash cuts off at any write or step is wholly there or not at all, and can be done again.
#[test]
fn ddl_is_whole_or_not_at_all() {
    let build = |disk: &Arc<dyn Disk>| {
        let db = open_on(disk.clone(), config());
        block_on(async {
            db.create_database("d", Default::default()).await.unwrap();
            db.create_table(accounts("t")).await.unwrap();
            let t = db.table("d", "t").unwrap();
            insert_all(&db, &t, &(0..20).map(|i| account(i, 100 + i, None)).collect::<Vec<_>>()).await;
            (db, t)
        })
    };
    type Change = fn(&Database, &TableHandle) -> Result<(), NodeError>;
    let changes: [Change; 5] = [
        |db, t| block_on(db.alter_table(t, with_unique_on_value(t), WAIT)),
        |db, t| block_on(db.rewrite_table(t, wider(t), WAIT, &mut as_text)).map(|_| ()),
        |db, t| block_on(db.rewrite_table(t, in_texts(t), WAIT, &mut as_text)).map(|_| ()),
        |db, _| block_on(db.truncate_table("d", "t", WAIT)),
        |db, _| block_on(db.rename_tables(&[(("d".into(), "t".into()), ("d".into(), "u".into()))], WAIT)),
    ];
    for change in changes {
        for stop_at in 1..200 {
            let disk: Arc<dyn Disk> = MemoryDisk::new();
            let (db, t) = build(&disk);
            let hits = std::rc::Rc::new(std::cell::Cell::new(0));
            let count = hits.clone();
            // From this point on everything fails for lack of room, as if the process had ended.
            let local = fault::Local::new(move |name| {
                if name.starts_with("node.ddl.")
                    || name.starts_with("journal.append.before_write")
                    || name == "redo.append"
                {
                    count.set(count.get() + 1);
                    if count.get() >= stop_at {
                        return Err(std::io::ErrorKind::StorageFull.into());
                    }
                }
                Ok(())
            });
            let result = change(&db, &t);
            drop(local);
            let names = || db.tables("d").unwrap().iter().map(|t| t.name.clone()).collect::<Vec<_>>();
            let (before, failed) = (names(), result.is_err());
            if failed {
                assert_eq!(before, ["t"], "failed DDL is not there in memory either");
                assert!(!t.is_stale());
                assert_eq!(block_on(contents(&db, &t)).len(), 20);
            }
            drop(db);
            let db = open_on(disk, config());
            let names: Vec<_> = db.tables("d").unwrap().iter().map(|t| t.name.clone()).collect();
            assert_eq!(names, before);
            if failed {
                let t = db.table("d", "t").unwrap();
                assert_eq!(block_on(contents(&db, &t)).len(), 20);
                change(&db, &t).unwrap();
            } else {
                break;
            }
            assert!(stop_at < 199, "it never succeeded");
        }
    }
}

#[test]
fn databases_go_with_their_tables() {
    let (db, t) = database_with(accounts("t"));
    some_rows(&db, &t, 10);
    block_on(async {
        db.create_table(pairs("u")).await.unwrap();
        let open = begin_rr(&db, &t).await;
        assert_eq!(db.drop_database("d", Duration::from_millis(20)).await, Err(NodeError::LockTimeout));
        drop(open);
        assert_eq!(db.drop_database("d", WAIT).await.unwrap(), 2);
        assert!(db.databases().is_empty());
        db.create_database("d", Default::default()).await.unwrap();
        db.create_table(accounts("t")).await.unwrap();
        assert!(db.table("d", "t").unwrap().schema().id > t.schema().id);
    });
}

#[test]
fn tables_without_a_key_keep_their_hidden_keys() {
    let (db, t) = database_with(hidden("t"));
    block_on(async {
        insert_all(&db, &t, &(0..50).map(|i| vec![int(i), Value::Null]).collect::<Vec<_>>()).await;
        let before = contents(&db, &t).await;
        let mut new = (**t.schema()).clone();
        new.columns[0].ty = DataType::new(TypeKind::Int);
        assert_eq!(db.rewrite_table(&t, new, WAIT, &mut |row| Ok(row.to_vec())).await.unwrap(), 50);
        let t = db.table("d", "t").unwrap();
        assert_eq!(contents(&db, &t).await, before);
        insert_all(&db, &t, &(50..90).map(|i| vec![int(i), Value::Null]).collect::<Vec<_>>()).await;
        assert_eq!(contents(&db, &t).await.len(), 90);
    });
}
