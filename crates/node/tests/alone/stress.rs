//! Many threads at once: money is conserved, unique keys are unique, nothing is lost, nobody waits for ever.

use crate::support::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rauk_log::{Disk, MemoryDisk};
use rauk_node::bulk::{Keys, Unwritten, Verb};
use rauk_node::*;
use rauk_types::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

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

const COUNTERS: i64 = 200;

fn counters() -> rauk_types::TableSchema {
    let mut schema = pairs("c");
    schema.indexes.push(index(1, "by_value", rauk_types::IndexKind::Ordered, &[1]));
    schema
}

fn some_keys(t: &TableHandle, rng: &mut SmallRng) -> (Vec<i64>, Keys) {
    let ids: Vec<i64> = (0..rng.random_range(1..150)).map(|_| rng.random_range(0..COUNTERS)).collect();
    let mut keys = Keys::default();
    ids.iter().for_each(|id| keys.push(&key_of(t, *id)));
    (ids, keys)
}

fn value_of(row: &rauk_types::RowView<'_>) -> i64 {
    match row.get(1) {
        rauk_types::ValueRef::Int(value) => value,
        other => panic!("{other:?}"),
    }
}

/// Adds one to many counters at once; what somebody has locked, in transactions. Gives how often it added.
async fn count_many(db: &Database, t: &TableHandle, rng: &mut SmallRng) -> Result<u64, NodeError> {
    let (ids, keys) = some_keys(t, rng);
    let mut done = vec![false; ids.len()];
    let mut unwritten = Unwritten::default();
    let time = db
        .write_many(t, &keys, &mut done, &mut unwritten, &mut |i, found, buffer| {
            let value = found.map_or(0, |(_, row)| value_of(&row));
            rauk_types::row::encode_row(t.schema(), &[int(ids[i]), int(value + 1)], buffer);
            Verb::Put
        })
        .await?;
    assert!(unwritten.failed.is_empty());
    db.wait_durable(time).await?;
    let mut counted = (ids.len() - unwritten.left.len()) as u64;
    for i in unwritten.left {
        let mut txn = begin(db, t, Isolation::ReadCommitted).await;
        match count_one(&mut txn, t, ids[i]).await {
            Ok(()) => txn.commit().await?,
            Err(NodeError::Deadlock) => continue,
            Err(other) => return Err(other),
        }
        counted += 1;
    }
    Ok(counted)
}

async fn count_one(txn: &mut Transaction, t: &TableHandle, id: i64) -> Result<(), NodeError> {
    txn.begin_statement();
    match get_for_update(txn, t, id).await? {
        Some(old) => {
            let Value::Int(value) = old[1] else { panic!() };
            assert_eq!(txn.update(t, &old, &[int(id), int(value + 1)]).await?, UpdateOutcome::Updated);
        }
        None => {
            if let InsertOutcome::Duplicate { .. } = txn.insert(t, &[int(id), int(1)]).await? {
                return Err(NodeError::Deadlock);
            }
        }
    }
    Ok(())
}

/// Several counters in one transaction, over partitions.
async fn count_together(
    db: &Database,
    t: &TableHandle,
    rng: &mut SmallRng,
    level: Isolation,
) -> Result<u64, NodeError> {
    let mut txn = begin(db, t, level).await;
    let ids: BTreeSet<i64> = (0..4).map(|_| rng.random_range(0..COUNTERS)).collect();
    for id in &ids {
        count_one(&mut txn, t, *id).await?;
    }
    txn.commit().await?;
    Ok(ids.len() as u64)
}

/// Counters that are added to many at a time and in transactions, and read many at a time: no addition is lost, no reader sees one go back.
#[test]
fn many_keys_beside_transactions() {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let config = Config { checkpoint_redo_bytes: 200_000, segment_bytes: 100_000, ..config() };
    let mut db = open_on(disk.clone(), config.clone());
    block_on(async {
        db.create_database("d", Default::default()).await.unwrap();
        db.create_table(counters()).await.unwrap();
    });
    let added = AtomicU64::new(0);
    for round in 0..2 {
        let t = db.table("d", "c").unwrap();
        let end = Instant::now() + Duration::from_millis(700);
        let (bulk, together) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..6u64 {
                let (db, t, added, bulk, together) = (&db, &t, &added, &bulk, &together);
                scope.spawn(move || {
                    let mut rng = SmallRng::seed_from_u64(round * 100 + thread);
                    let level = [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable]
                        [thread as usize % 3];
                    while Instant::now() < end {
                        let (counted, kind) = match thread % 2 {
                            0 => (block_on(count_many(db, t, &mut rng)), bulk),
                            _ => (block_on(count_together(db, t, &mut rng, level)), together),
                        };
                        match counted {
                            Ok(counted) => {
                                added.fetch_add(counted, Ordering::Relaxed);
                                kind.fetch_add(1, Ordering::Relaxed);
                            }
                            Err(NodeError::Deadlock | NodeError::Changed { .. }) => {}
                            Err(other) => panic!("{other}"),
                        }
                    }
                });
            }
            let (db, t) = (&db, &t);
            scope.spawn(move || {
                let mut rng = SmallRng::seed_from_u64(round);
                let mut seen = vec![0; COUNTERS as usize];
                while Instant::now() < end {
                    let (ids, keys) = some_keys(t, &mut rng);
                    let mut done = vec![false; ids.len()];
                    let mut visited = 0;
                    let time = block_on(db.read_many(t, &keys, &mut done, &mut |i, found| {
                        visited += 1;
                        let value = found.map_or(0, |(_, row)| value_of(&row));
                        let seen = &mut seen[ids[i] as usize];
                        assert!(value >= *seen, "counter {} went back from {seen} to {value}", ids[i]);
                        *seen = value;
                    }));
                    assert_eq!(visited, ids.len());
                    block_on(db.wait_durable(time.unwrap())).unwrap();
                }
            });
            scope.spawn(move || {
                while Instant::now() < end {
                    block_on(async {
                        // One snapshot, by row and by index.
                        let mut txn = begin_rr(db, t).await;
                        let by_row = total(&scan(&mut txn, t, all(None)).await);
                        assert_eq!(total(&scan(&mut txn, t, all(Some(1))).await), by_row);
                    });
                }
            });
        });
        assert!(bulk.load(Ordering::Relaxed) > 20 && together.load(Ordering::Relaxed) > 20, "{bulk:?} {together:?}");
        assert!(db.locks().is_empty() && db.transactions().is_empty());
        let sum = added.load(Ordering::Relaxed) as i64;
        assert_eq!(total(&block_on(contents(&db, &t))), sum);
        drop((t, db));
        db = open_on(disk.clone(), config.clone());
        let t = db.table("d", "c").unwrap();
        let rows = block_on(contents(&db, &t));
        assert_eq!((total(&rows), db.table_usage(t.schema().id).rows), (sum, rows.len() as u64));
    }
}
