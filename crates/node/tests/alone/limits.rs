//! Memory, history, placement.

use crate::support::*;
use rauk_kernel::{LockMode, WaitPolicy};
use rauk_log::MemoryDisk;
use rauk_node::*;
use rauk_types::schema::IndexPart;
use rauk_types::{Collation, DataType, IndexKind, Value};

#[test]
fn a_full_memory_refuses_writes_and_allows_deletes() {
    let db = open_on(MemoryDisk::new(), Config { memory_limit: 3 << 20, partitions: 2, ..config() });
    block_on(async {
        db.create_database("d", Default::default()).await.unwrap();
        db.create_table(accounts("t")).await.unwrap();
        let t = db.table("d", "t").unwrap();
        let mut stored = 0;
        let error = loop {
            let mut txn = begin_rr(&db, &t).await;
            match txn.insert(&t, &account(stored, stored, Some(&format!("some code {stored}")))).await {
                Ok(_) => txn.commit().await.unwrap(),
                Err(error) => break error,
            }
            stored += 1;
        };
        assert_eq!(error, NodeError::MemoryFull { table: "t".into(), limit: 3 << 20 });
        assert!(stored > 5_000, "{stored} rows");
        assert_eq!(contents(&db, &t).await.len() as i64, stored);
        for id in 0..stored / 2 {
            let mut txn = begin_rr(&db, &t).await;
            let old = account(id, id, Some(&format!("some code {id}")));
            assert!(txn.delete(&t, &old).await.unwrap());
            txn.commit().await.unwrap();
        }
        // Room for as many again, once what was deleted has been collected.
        let mut again = 0;
        let start = std::time::Instant::now();
        while again < stored / 4 {
            assert!(start.elapsed().as_secs() < 20, "only {again} of {stored} went in again");
            let mut txn = begin_rr(&db, &t).await;
            match txn.insert(&t, &account(100_000 + again, 0, Some(&format!("code {again}")))).await {
                Ok(_) => {
                    txn.commit().await.unwrap();
                    again += 1;
                }
                Err(NodeError::MemoryFull { .. }) => std::thread::sleep(std::time::Duration::from_millis(20)),
                Err(other) => panic!("{other}"),
            }
        }
        db.set_memory_limit(64 << 20);
        assert_eq!(db.memory_limit(), 64 << 20);
        insert_all(&db, &t, &(200_000..201_000).map(|i| account(i, 0, None)).collect::<Vec<_>>()).await;
    });
}

/// The limit that it was full with is enough to open it again; a lower one is refused, and changes nothing.
#[test]
fn a_limit_below_what_is_stored_is_refused() {
    let disk = MemoryDisk::new();
    let with = |memory_limit, memory_available| Config { memory_limit, memory_available, partitions: 2, ..config() };
    let db = open_on(disk.clone(), with(3 << 20, u64::MAX));
    let mut stored = 0;
    block_on(async {
        db.create_database("d", Default::default()).await.unwrap();
        db.create_table(accounts("t")).await.unwrap();
        let t = db.table("d", "t").unwrap();
        loop {
            let mut txn = begin_rr(&db, &t).await;
            // Scattered keys leave the ordered indexes less full than rising ones.
            let id = stored * 7919 % 1_000_003;
            if txn.insert(&t, &account(id, id, Some(&format!("some code {id}")))).await.is_err() {
                break;
            }
            txn.commit().await.unwrap();
            stored += 1;
        }
    });
    drop(db);
    let opened = |config| Database::open(config, disk.clone(), Threads::start().unwrap(), &|_| {});
    for checkpoint in [false, true] {
        let db = opened(with(3 << 20, u64::MAX)).unwrap();
        let used = db.memory_used();
        let t = db.table("d", "t").unwrap();
        assert_eq!(block_on(contents(&db, &t)).len() as i64, stored);
        if checkpoint {
            block_on(db.checkpoint()).unwrap();
        }
        drop(db);
        let error = opened(with(2 << 20, u64::MAX)).err().unwrap();
        let text = error.to_string();
        assert!(matches!(error, NodeError::TooSmall(_)), "{text}");
        assert!(text.contains("of rows and indexes, and the memory limit is 2MiB; give --memory-limit 4MiB"), "{text}");
        let error = opened(with(1 << 30, used / 2)).err().unwrap();
        assert!(matches!(error, NodeError::TooSmall(_)), "{error}");
    }
    // What SET PERSIST has stored counts, where there is so much memory.
    let db = opened(with(3 << 20, u64::MAX)).unwrap();
    let persisted = (rauk_node::recovery::fitting::PERSISTED_LIMIT.to_string(), Some((8 << 20).to_string()));
    block_on(db.set_settings(&[persisted])).unwrap();
    drop(db);
    assert!(opened(with(2 << 20, 8 << 20)).is_ok());
    assert!(opened(with(2 << 20, 7 << 20)).is_err());
}

/// One record takes so much, whether it is of one partition or several, of a transaction or of a write of many keys.
#[test]
fn a_transaction_that_is_too_large_is_refused_and_the_next_one_is_done() {
    for partitions in [1, 4] {
        let disk = MemoryDisk::new();
        let config = Config { commit_limit: 2_000, partitions, ..config() };
        let db = open_on(disk.clone(), config.clone());
        block_on(async {
            db.create_database("d", Default::default()).await.unwrap();
            db.create_table(accounts("t")).await.unwrap();
            let t = db.table("d", "t").unwrap();
            let rows: Vec<_> = (0..200).map(|id| account(id, id, None)).collect();
            let mut txn = begin_rr(&db, &t).await;
            for row in &rows {
                txn.insert(&t, row).await.unwrap();
            }
            let refused = txn.commit().await.unwrap_err();
            assert!(matches!(refused, NodeError::TooLarge { bytes: 2_001.., limit: 2_000 }), "{refused}");
            assert_eq!(contents(&db, &t).await, Vec::<Vec<Value>>::new());
            insert_all(&db, &t, &rows[..20]).await;
            assert_eq!(contents(&db, &t).await, rows[..20]);
            // What a definition copies goes in parts that fit.
            insert_all(&db, &t, &rows[20..40]).await;
            insert_all(&db, &t, &rows[40..60]).await;
            let same = (**t.schema()).clone();
            let copied = db.rewrite_table(&t, same, WAIT, &mut |row| Ok(row.to_vec())).await;
            assert_eq!(copied, Ok(60));
            assert_eq!(contents(&db, &db.table("d", "t").unwrap()).await, rows[..60]);
        });
        drop(db);
        let db = open_on(disk, config);
        block_on(async { assert_eq!(contents(&db, &db.table("d", "t").unwrap()).await.len(), 60) });
    }
}

#[test]
fn at_the_history_limit_the_oldest_snapshot_fails() {
    let db = open_on(MemoryDisk::new(), Config { history_limit: 20_000, partitions: 1, ..config() });
    block_on(async {
        db.create_database("d", Default::default()).await.unwrap();
        db.create_table(accounts("t")).await.unwrap();
        let t = db.table("d", "t").unwrap();
        insert_all(&db, &t, &[account(1, 0, None), account(2, 0, None)]).await;
        let mut old = begin_rr(&db, &t).await;
        assert!(get(&mut old, &t, 1).await.is_some());
        for i in 0..3_000 {
            let mut txn = begin_rr(&db, &t).await;
            txn.update(&t, &account(1, i, None), &account(1, i + 1, None)).await.unwrap();
            txn.commit().await.unwrap();
        }
        let result = old.get(&t, &key_of(&t, 1), None, |r| r.is_some()).await;
        assert_eq!(result, Err(NodeError::SnapshotTooOld { table: "t".into() }));
        // Others go on.
        assert_eq!(read(&db, &t, 1).await, Some(account(1, 3_000, None)));
    });
}

/// `PARTITION BY KEY (part of the primary key)`: all rows of one value lie in one partition and are found there, whatever the types and directions.
#[test]
fn rows_are_placed_by_their_distribution_columns() {
    let text = DataType::varchar(30, Collation::Utf8mb4Bin);
    let bytes = DataType::varbinary(30);
    let decimal = DataType::decimal(20, 4);
    for (ty, make) in [
        (text, (|i| Value::Str(format!("a\u{0}{i}"))) as fn(i64) -> Value),
        (bytes, |i| Value::Bytes(vec![0, i as u8, 0, 255])),
        (decimal, |i| Value::Decimal(rauk_types::Decimal::new(i128::from(i) * 100, 4))),
        (DataType::BIGINT, Value::Int),
    ] {
        for (distribution, descending) in [(vec![0], false), (vec![1], true), (vec![1, 0], false), (vec![0, 1], true)] {
            let columns = vec![
                column(0, "a", ty, false),
                column(1, "b", ty, false),
                column(2, "c", DataType::BIGINT, false),
                column(3, "v", DataType::BIGINT, true),
            ];
            let mut primary = index(0, "PRIMARY", IndexKind::Primary, &[0, 1, 2]);
            primary.parts[1] = IndexPart { column: 1, prefix: None, descending };
            let mut schema = schema("t", columns, vec![primary]);
            schema.distribution = distribution.clone();
            let (db, t) = database_with(schema);
            block_on(async {
                let mut rows = Vec::new();
                for a in 0..4 {
                    for b in 0..4 {
                        rows.extend((0..4).map(|c| vec![make(a), make(b), int(c), int(a * 100 + b * 10 + c)]));
                    }
                }
                insert_all(&db, &t, &rows).await;
                let definition = t.schema().distribution_def();
                let mut txn = begin_rr(&db, &t).await;
                for row in &rows {
                    let mut key = Vec::new();
                    t.primary_key().encode_values(row, &mut key);
                    for lock in [None, Some((LockMode::Shared, WaitPolicy::Wait))] {
                        let found = txn.get(&t, &key, lock, |r| r.map(|r| r.get(3).to_owned())).await.unwrap();
                        assert_eq!(found.as_ref(), Some(&row[3]));
                    }
                    // The pruned scan of the row's distribution key meets all rows that share it.
                    let mut placed = Vec::new();
                    definition.encode_values(row, &mut placed);
                    let found = scan(&mut txn, &t, ScanSpec { distribution: Some(placed), ..all(None) }).await;
                    let shares = |r: &Vec<Value>| distribution.iter().all(|&d| r[d] == row[d]);
                    let expected = rows.iter().filter(|r| shares(r)).count();
                    assert_eq!(found.iter().filter(|r| shares(r)).count(), expected);
                }
                txn.rollback();
                let mut txn = begin_rr(&db, &t).await;
                assert!(txn.delete(&t, &rows[5]).await.unwrap());
                txn.commit().await.unwrap();
                let mut txn = begin_rr(&db, &t).await;
                assert_eq!(scan(&mut txn, &t, all(Some(0))).await.len(), rows.len() - 1);
            });
        }
    }
}

#[test]
fn damaged_memory_is_found_and_said_on_a_node_that_is_alone() {
    let scrub_rest = std::time::Duration::from_millis(50);
    let db = open_on(MemoryDisk::new(), Config { scrub_rest, partitions: 1, ..config() });
    block_on(async {
        db.create_database("d", Default::default()).await.unwrap();
        db.create_table(accounts("t")).await.unwrap();
        let t = db.table("d", "t").unwrap();
        insert_all(&db, &t, &(0..100).map(|i| account(i, i, None)).collect::<Vec<_>>()).await;
        let wait = |what: &str, holds: &dyn Fn() -> bool| {
            let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
            while !holds() {
                assert!(std::time::Instant::now() < end, "{what}: {:?}", db.counters());
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        };
        let rounds = db.counters().scrub_rounds;
        wait("rounds", &|| db.counters().scrub_rounds > rounds + 2);
        assert_eq!((db.counters().damaged_tables, db.health().1), (0, vec![]));
        assert!(db.flip_bit(0, t.schema().id, 5, 80, false).await);
        wait("it is found", &|| db.counters().damaged_tables > 0);
        let (colour, reasons) = db.health();
        assert!(colour > rauk_manage::group::Colour::Green && reasons[0].contains("memory"), "{reasons:?}");
    });
}
