//! DDL statements work on many rows with several threads: what becomes of the rows, of errors, and of a statement that
//! goes away while its threads work.

use crate::online_ddl::{check_indexes, code, t_now};
use crate::support::*;
use rauk_log::{Disk, MemoryDisk};
use rauk_node::*;
use rauk_types::{DataType, ErrorClass, IndexKind, MysqlError, TableSchema, Value};
use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

const ROWS: i64 = 3000;

/// However few rows there are.
fn parallel() -> Config {
    Config { parallel_ddl_rows: 0, ..config() }
}

/// How many threads work on a table of as many partitions.
fn threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(config().partitions.into())
}

fn filled(disk: Arc<dyn Disk>) -> (Database, TableHandle) {
    let db = open_on(disk, parallel());
    block_on(async {
        db.create_database("d", Default::default()).await.unwrap();
        db.create_table(accounts("t")).await.unwrap();
    });
    let t = db.table("d", "t").unwrap();
    let rows: Vec<_> = (0..ROWS).map(|id| account(id, id / 2, Some(&format!("c{id}")))).collect();
    block_on(insert_all(&db, &t, &rows));
    (db, t)
}

async fn rewrite(
    db: &Database,
    t: &TableHandle,
    new: TableSchema,
    wait: impl Into<DdlWait<'_>>,
    further: &Further<'_>,
) -> Result<u64, NodeError> {
    db.rewrite_seen_table(t, new, wait, None, &mut as_text, Some(further)).await
}

#[test]
fn rows_are_copied_by_a_thread_on_each_core() {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let (db, t) = filled(disk.clone());
    // Nobody goes on before all have begun.
    let (begun, seen) = (Arc::new(Barrier::new(threads())), Arc::new(Mutex::new(BTreeSet::<String>::new())));
    let converted = Arc::new(AtomicUsize::new(0));
    let further = || -> OwnConvert {
        let (begun, seen, converted) = (begun.clone(), seen.clone(), converted.clone());
        let mut is_first = true;
        Box::new(move |row| {
            if std::mem::take(&mut is_first) {
                seen.lock().unwrap().insert(format!("{:?}", thread::current().id()));
                begun.wait();
            }
            converted.fetch_add(1, Ordering::Relaxed);
            as_text(row)
        })
    };
    let progress = Progress::default();
    let wait = DdlWait { progress: Some(&progress), ..DdlWait::from(WAIT) };
    let is_parallel = threads() > 1;
    assert_eq!(block_on(rewrite(&db, &t, in_texts(&t), wait, &further)).unwrap(), ROWS as u64);
    if is_parallel {
        assert_eq!((seen.lock().unwrap().len(), converted.load(Ordering::Relaxed)), (threads(), ROWS as usize));
    }
    let expected: Vec<_> =
        (0..ROWS).map(|id| as_text(&account(id, id / 2, Some(&format!("c{id}")))).unwrap()).collect();
    block_on(async {
        assert_eq!(contents(&db, &t_now(&db)).await, expected);
        check_indexes(&db, &t_now(&db)).await;
    });
    drop(db);
    let db = open_on(disk, parallel());
    assert_eq!(block_on(contents(&db, &t_now(&db))), expected, "after a restart");
}

#[test]
fn indexes_are_filled_and_keys_entered_by_several_threads() {
    let (db, t) = filled(MemoryDisk::new());
    let mut new = (**t.schema()).clone();
    new.indexes.push(index(7, "by_value_id", IndexKind::Ordered, &[1, 0]));
    new.indexes.push(index(8, "unique_id_value", IndexKind::Unique, &[0, 1]));
    block_on(async {
        db.alter_table(&t, new, WAIT).await.unwrap();
        check_indexes(&db, &t_now(&db)).await;
    });
    // A key that two rows have is found, whichever threads have them.
    let t = t_now(&db);
    let mut new = (**t.schema()).clone();
    new.indexes.push(index(9, "unique_value", IndexKind::Unique, &[1]));
    assert_eq!(code(block_on(db.alter_table(&t, new, WAIT)).unwrap_err()), 1062);
    block_on(check_indexes(&db, &t_now(&db)));
}

#[test]
fn the_first_error_ends_all_threads_and_nothing_is_left() {
    let (db, t) = filled(MemoryDisk::new());
    let further = || -> OwnConvert {
        Box::new(|row| match row[0] {
            Value::Int(1500) => Err(MysqlError::new(1264, "Out of range value")),
            _ => as_text(row),
        })
    };
    assert_eq!(code(block_on(rewrite(&db, &t, in_texts(&t), WAIT, &further)).unwrap_err()), 1264);
    assert_eq!(block_on(contents(&db, &t)).len(), ROWS as usize);
    // And it is done when asked again.
    assert_eq!(block_on(rewrite(&db, &t_now(&db), in_texts(&t), WAIT, &|| Box::new(as_text))).unwrap(), ROWS as u64);
}

#[test]
fn a_thread_that_panics_is_an_error_of_the_statement() {
    if threads() == 1 {
        return;
    }
    let (db, t) = filled(MemoryDisk::new());
    let further = || -> OwnConvert {
        Box::new(|row| match row[0] {
            Value::Int(700) => panic!("a mistake of ours"),
            _ => as_text(row),
        })
    };
    let error = block_on(rewrite(&db, &t, in_texts(&t), WAIT, &further)).unwrap_err();
    assert!(matches!(&error, NodeError::Fatal(why) if why.contains("ended early")), "{error:?}");
    assert_eq!(error.class(), ErrorClass::Fatal);
    assert_eq!(block_on(contents(&db, &t)).len(), ROWS as usize);
}

/// Its client is gone, or it was killed: what its threads have made goes when they have ended, and not before.
#[test]
fn a_statement_that_goes_away_is_undone_when_its_threads_have_ended() {
    if threads() == 1 {
        return;
    }
    let (db, t) = filled(MemoryDisk::new());
    let held = HeldConversions::default();
    let further = || held.further();
    {
        // Nobody but the statement may use the table, so that whoever uses it sees when it is undone.
        let alone = DdlWait { meanwhile: Meanwhile::Nobody, ..DdlWait::from(WAIT) };
        let mut statement = pin!(rewrite(&db, &t, in_texts(&t), alone, &further));
        held.run_until_begun(statement.as_mut(), threads());
    }
    let is_free = || {
        let options = TxnOptions { lock_wait_timeout: Duration::from_millis(1), ..TxnOptions::default() };
        let mut txn = db.begin(options);
        block_on(txn.use_table(&t_now(&db))).is_ok()
    };
    assert!(!is_free(), "its threads work still");
    held.let_go();
    let end = std::time::Instant::now() + Duration::from_secs(30);
    while !is_free() {
        assert!(std::time::Instant::now() < end, "the table is never free again");
        thread::yield_now();
    }
    assert_eq!(block_on(contents(&db, &t_now(&db))).len(), ROWS as usize);
    assert_eq!(t_now(&db).schema().columns[1].ty, DataType::BIGINT);
    assert_eq!(block_on(rewrite(&db, &t_now(&db), in_texts(&t), WAIT, &|| Box::new(as_text))).unwrap(), ROWS as u64);
}
