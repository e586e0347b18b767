//! Many threads at once: money is conserved, unique keys are unique, nothing is lost, nobody waits for ever.
mod support;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rauk_log::{Disk, MemoryDisk};
use rauk_node::*;
use rauk_types::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::*;

const ACCOUNTS: i64 = 40;

async fn transfer(db: &Database, t: &TableHandle, rng: &mut SmallRng, level: Isolation) -> Result<(), NodeError> {
    let mut txn = begin(db, t, level).await;
    let (from, to) = (rng.random_range(0..ACCOUNTS), rng.random_range(0..ACCOUNTS));
    let amount = rng.random_range(1..10);
    for (id, change) in [(from, -amount), (to, amount)] {
        txn.begin_statement();
        let old = get_for_update(&mut txn, t, id).await?.expect("accounts are never deleted");
        let Value::Int(v) = old[1] else { panic!() };
        // The code moves with each change: unique entries come and go.
        let code = format!("c{id}-{}", rng.random_range(0..1000));
        let new = account(id, v + change, Some(&code));
        assert_eq!(txn.update(t, &old, &new).await?, UpdateOutcome::Updated);
    }
    if rng.random_ratio(1, 10) {
        txn.rollback();
        return Ok(());
    }
    txn.commit().await
}

fn total(rows: &[Vec<Value>]) -> i64 {
    rows.iter().map(|r| if let Value::Int(v) = r[1] { v } else { panic!() }).sum()
}

/// Random transfers by many threads, with checkpoints in between, cut off and opened again: the sum stays.
#[test]
fn money_is_conserved() {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let config = Config { checkpoint_redo_bytes: 20_000, segment_bytes: 50_000, ..config() };
    let mut db = open_on(disk.clone(), config.clone());
    block_on(async {
        db.create_database("d", Default::default()).await.unwrap();
        db.create_table(accounts("t")).await.unwrap();
        let t = db.table("d", "t").unwrap();
        insert_all(&db, &t, &(0..ACCOUNTS).map(|i| account(i, 1000, Some(&format!("c{i}")))).collect::<Vec<_>>()).await;
    });
    for round in 0..3 {
        let (done, failed) = (AtomicU64::new(0), AtomicU64::new(0));
        let t = db.table("d", "t").unwrap();
        let end = Instant::now() + Duration::from_millis(700);
        std::thread::scope(|scope| {
            for thread in 0..6 {
                let (db, t, done, failed) = (&db, &t, &done, &failed);
                scope.spawn(move || {
                    let mut rng = SmallRng::seed_from_u64(round * 100 + thread);
                    let level = [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable]
                        [thread as usize % 3];
                    while Instant::now() < end {
                        match block_on(transfer(db, t, &mut rng, level)) {
                            Ok(()) => done.fetch_add(1, Ordering::Relaxed),
                            Err(NodeError::Deadlock | NodeError::Changed { .. }) => {
                                failed.fetch_add(1, Ordering::Relaxed)
                            }
                            Err(other) => panic!("{other}"),
                        };
                    }
                });
            }
            let (db, t) = (&db, &t);
            scope.spawn(move || {
                while Instant::now() < end {
                    let rows = block_on(contents(db, t));
                    assert_eq!((rows.len() as i64, total(&rows)), (ACCOUNTS, ACCOUNTS * 1000));
                }
            });
        });
        assert!(done.load(Ordering::Relaxed) > 100, "{done:?} {failed:?}");
        assert!(db.locks().is_empty());
        assert!(db.transactions().is_empty());
        assert!(db.counters().checkpoints > 0, "{done:?} {:?}", db.counters());
        drop((t, db));
        db = open_on(disk.clone(), config.clone());
        let t = db.table("d", "t").unwrap();
        let rows = block_on(contents(&db, &t));
        assert_eq!((rows.len() as i64, total(&rows)), (ACCOUNTS, ACCOUNTS * 1000));
        let codes: BTreeSet<_> = rows.iter().map(|r| format!("{:?}", r[2])).collect();
        assert_eq!(codes.len() as i64, ACCOUNTS);
        // Each index table's entry leads to its row, and there are as many as rows.
        for row in &rows {
            let Value::Str(code) = &row[2] else { panic!() };
            let found = block_on(async {
                let mut txn = begin_rr(&db, &t).await;
                let key = code_key(&t, code);
                txn.get_unique(&t, rauk_types::IndexId(2), &key, None, |r| r.map(|r| values(&r, 3))).await.unwrap()
            });
            assert_eq!(found.as_ref(), Some(row));
        }
        let entries = t.schema().indexes[2].entry_table.unwrap();
        assert_eq!(db.table_usage(entries).rows as i64, ACCOUNTS);
    }
}

/// All threads insert the same keys: each key goes to one of them.
#[test]
fn unique_keys_are_unique() {
    let (db, t) = database_with(accounts("t"));
    let won = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..6i64 {
            let (db, t, won) = (&db, &t, &won);
            scope.spawn(move || {
                let mut rng = SmallRng::seed_from_u64(thread as u64);
                for i in 0..300 {
                    let code = format!("k{}", rng.random_range(0..100));
                    let outcome = block_on(async {
                        let mut txn = begin(db, t, Isolation::ReadCommitted).await;
                        let outcome = txn.insert(t, &account(thread * 1000 + i, 0, Some(&code))).await?;
                        txn.commit().await?;
                        Ok::<_, NodeError>(outcome)
                    });
                    match outcome {
                        Ok(InsertOutcome::Inserted) => drop(won.fetch_add(1, Ordering::Relaxed)),
                        Ok(InsertOutcome::Duplicate { .. }) | Err(NodeError::Deadlock) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
            });
        }
    });
    let rows = block_on(contents(&db, &t));
    assert_eq!(rows.len() as u64, won.load(Ordering::Relaxed));
    let codes: BTreeSet<_> = rows.iter().map(|r| format!("{:?}", r[2])).collect();
    assert_eq!(codes.len(), rows.len());
    assert!(rows.len() <= 100);
}

/// DDL beside statements: nobody sees anything but a retry, and every acknowledged row is in the table that is there.
#[test]
fn statements_and_ddl_side_by_side() {
    let (db, t) = database_with(accounts("t"));
    drop(t);
    let stop = AtomicBool::new(false);
    let inserted = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..3i64 {
            let (db, stop, inserted) = (&db, &stop, &inserted);
            scope.spawn(move || {
                let mut i = 0;
                while !stop.load(Ordering::Relaxed) {
                    i += 1;
                    let ended = block_on(async {
                        let t = db.table("d", "t")?;
                        let mut txn = db.begin(TxnOptions { autocommit: true, ..TxnOptions::default() });
                        txn.use_table(&t).await?;
                        let mut row = account(thread * 1_000_000 + i, i, Some(&format!("{thread}-{i}")));
                        row.extend(t.schema().columns[3..].iter().map(|_| Value::Null));
                        txn.insert(&t, &row).await?;
                        txn.commit().await
                    });
                    match ended {
                        Ok(()) => drop(inserted.fetch_add(1, Ordering::Relaxed)),
                        Err(NodeError::StaleSchema) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
            });
        }
        for round in 0..12u16 {
            std::thread::sleep(Duration::from_millis(40));
            block_on(async {
                let t = db.table("d", "t").unwrap();
                let mut new = (**t.schema()).clone();
                match round % 3 {
                    0 => {
                        new.columns.push(column(100 + round, &format!("x{round}"), rauk_types::DataType::BIGINT, true))
                    }
                    1 => {
                        new.indexes.push(index(10 + round, &format!("i{round}"), rauk_types::IndexKind::Ordered, &[2]))
                    }
                    _ => new.indexes.push(index(
                        10 + round,
                        &format!("u{round}"),
                        rauk_types::IndexKind::Unique,
                        &[0, 1],
                    )),
                }
                db.alter_table(&t, new, Duration::from_secs(10)).await.unwrap();
            });
        }
        stop.store(true, Ordering::Relaxed);
    });
    let t = db.table("d", "t").unwrap();
    let rows = block_on(contents(&db, &t)).len() as u64;
    assert_eq!(rows, inserted.load(Ordering::Relaxed));
    block_on(async {
        let mut txn = begin_rr(&db, &t).await;
        for index in t.schema().indexes.iter().map(|i| i.id.0) {
            assert_eq!(scan(&mut txn, &t, all(Some(index))).await.len() as u64, rows);
        }
    });
    for index in t.schema().indexes.iter().filter_map(|i| i.entry_table) {
        assert_eq!(db.table_usage(index).rows, rows);
    }
}
