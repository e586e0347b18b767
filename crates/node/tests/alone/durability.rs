//! What is there after the database was closed, or cut off.

use crate::support::*;
use rauk_log::{Disk, MemoryDisk, RealDisk, fault};
use rauk_node::*;
use rauk_types::{IndexId, Value};
use std::sync::Arc;

fn reopen(db: Database, disk: &Arc<dyn Disk>) -> (Database, TableHandle) {
    drop(db);
    let db = open_on(disk.clone(), config());
    let t = db.table("d", "t").unwrap();
    (db, t)
}

async fn fill(db: &Database, t: &TableHandle, ids: std::ops::Range<i64>) {
    let rows: Vec<_> = ids.map(|i| account(i, i * 10, Some(&format!("c{i}")))).collect();
    insert_all(db, t, &rows).await;
}

async fn create(disk: &Arc<dyn Disk>) -> (Database, TableHandle) {
    let db = open_on(disk.clone(), config());
    db.create_database("d", Default::default()).await.unwrap();
    db.create_table(accounts("t")).await.unwrap();
    let t = db.table("d", "t").unwrap();
    (db, t)
}

/// A database that was dropped without an end is as if the process had been killed.
fn crash_and_reopen(disk: Arc<dyn Disk>) {
    block_on(async {
        let (db, t) = create(&disk).await;
        fill(&db, &t, 0..50).await;
        let (db, t) = reopen(db, &disk);
        assert_eq!(contents(&db, &t).await.len(), 50);
        let mut txn = begin_rr(&db, &t).await;
        txn.update(&t, &account(1, 10, Some("c1")), &account(1, 11, Some("new"))).await.unwrap();
        txn.delete(&t, &account(2, 20, Some("c2"))).await.unwrap();
        txn.update(&t, &account(3, 30, Some("c3")), &account(333, 30, Some("c3"))).await.unwrap();
        txn.commit().await.unwrap();
        db.checkpoint().await.unwrap();
        fill(&db, &t, 100..120).await;
        let mut txn = begin_rr(&db, &t).await;
        txn.delete(&t, &account(4, 40, Some("c4"))).await.unwrap();
        txn.commit().await.unwrap();
        // Open, written, never committed.
        let mut lost = begin_rr(&db, &t).await;
        lost.insert(&t, &account(999, 0, None)).await.unwrap();
        std::mem::forget(lost);
        let expected = contents(&db, &t).await;
        for _ in 0..2 {
            let again = open_on(disk.clone(), config());
            let t = again.table("d", "t").unwrap();
            assert_eq!(contents(&again, &t).await, expected);
            let by_code = |code: &'static str| (code, code_key(&t, code));
            for (code, key) in
                [by_code("new"), by_code("c3"), by_code("c110"), by_code("c1"), by_code("c2"), by_code("c4")]
            {
                let mut txn = begin_rr(&again, &t).await;
                let found = txn.get_unique(&t, IndexId(2), &key, None, |r| r.is_some()).await.unwrap();
                assert_eq!(found, !["c1", "c2", "c4"].contains(&code), "{code}");
            }
            let mut txn = begin_rr(&again, &t).await;
            let by_value = scan(&mut txn, &t, all(Some(1))).await;
            assert_eq!(by_value.len(), expected.len());
        }
    });
}

#[test]
fn a_crash_loses_nothing_in_memory() {
    crash_and_reopen(MemoryDisk::new());
}

#[test]
fn a_crash_loses_nothing_on_a_real_disk() {
    let dir = tempfile::tempdir().unwrap();
    // The directory is locked by whoever has it open; here the same process goes on with it.
    crash_and_reopen(Arc::new(RealDisk::open(dir.path()).unwrap()));
}

#[test]
fn a_clean_end_keeps_rows_and_exact_counters() {
    block_on(async {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        let (db, t) = create(&disk).await;
        fill(&db, &t, 0..10).await;
        assert_eq!(db.next_auto_increment(t.schema().id, 5).unwrap(), 1);
        db.shutdown().await.unwrap();
        assert_eq!(db.set_settings(&[]).await, Err(NodeError::ShuttingDown));
        let mut txn = db.begin(TxnOptions::default());
        assert_eq!(txn.use_table(&t).await, Err(NodeError::ShuttingDown));
        drop(txn);
        let (db, t) = reopen(db, &disk);
        assert_eq!(contents(&db, &t).await.len(), 10);
        assert_eq!(db.peek_auto_increment(t.schema().id), 6);
    });
}

#[test]
fn numbers_are_never_given_out_twice() {
    block_on(async {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        let (mut db, mut t) = create(&disk).await;
        let mut last = 0;
        for round in 0..8 {
            for _ in 0..20 {
                let n = db.next_auto_increment(t.schema().id, 1).unwrap();
                assert!(n > last, "{n} after {last} in round {round}");
                last = n;
                // The number is used: its row makes the log durable.
                insert_all(&db, &t, &[account(n as i64, 0, None)]).await;
            }
            if round % 3 == 1 {
                db.checkpoint().await.unwrap();
            }
            (db, t) = reopen(db, &disk);
        }
        assert!(last < 160 + 8 * 1024);
    });
}

#[test]
fn hidden_keys_go_on_after_a_crash() {
    block_on(async {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        let db = open_on(disk.clone(), config());
        db.create_database("d", Default::default()).await.unwrap();
        db.create_table(hidden("t")).await.unwrap();
        let mut db = db;
        for round in 1..=4 {
            let t = db.table("d", "t").unwrap();
            insert_all(&db, &t, &(0..10).map(|i| vec![int(i), Value::Null]).collect::<Vec<_>>()).await;
            assert_eq!(contents(&db, &t).await.len(), round * 10);
            if round == 2 {
                db.checkpoint().await.unwrap();
            }
            db = reopen(db, &disk).0;
        }
    });
}

#[test]
fn views_are_there_again() {
    block_on(async {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        let (db, t) = create(&disk).await;
        fill(&db, &t, 0..10).await;
        let name = |n: &str| ("d".to_string(), n.to_string());
        db.create_view(view("v", "select 1"), false).await.unwrap();
        db.create_view(view("w", "select 2"), false).await.unwrap();
        db.create_view(view("v", "select 3"), true).await.unwrap();
        // A table and a view exchange their names.
        let before = db.catalog_version();
        let pairs = [(name("t"), name("tmp")), (name("v"), name("t")), (name("tmp"), name("v"))];
        db.rename_tables(&pairs, WAIT).await.unwrap();
        assert_ne!(db.catalog_version(), before, "plans that know the old names are made again");
        let mut db = db;
        for _ in 0..2 {
            assert_eq!(db.view("d", "t").unwrap().query, "select 3");
            assert_eq!(db.views("d").iter().map(|v| &*v.name).collect::<Vec<_>>(), ["t", "w"]);
            assert!(db.view("d", "v").is_none() && db.table("d", "t").is_err());
            assert_eq!(contents(&db, &db.table("d", "v").unwrap()).await.len(), 10);
            db = {
                drop(db);
                open_on(disk.clone(), config())
            };
        }
        db.drop_views(vec![name("t")]).await.unwrap();
        assert!(db.drop_views(vec![name("w"), name("t")]).await.is_err());
        let db = {
            drop(db);
            open_on(disk.clone(), config())
        };
        assert_eq!(db.views("d").len(), 1);
        assert_eq!(db.drop_database("d", WAIT).await.unwrap(), 2);
        let db = {
            drop(db);
            open_on(disk.clone(), config())
        };
        assert!(db.views("d").is_empty());
    });
}

#[test]
fn definitions_and_settings_are_there_again() {
    block_on(async {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        let (db, t) = create(&disk).await;
        fill(&db, &t, 0..10).await;
        db.set_settings(&[("user/root".into(), Some("x".into())), ("user/a".into(), Some("y".into()))]).await.unwrap();
        db.rename_tables(&[(("d".into(), "t".into()), ("d".into(), "u".into()))], WAIT).await.unwrap();
        db.create_table(pairs("t")).await.unwrap();
        db.truncate_table("d", "t", WAIT).await.unwrap();
        let (db, t) = reopen(db, &disk);
        assert_eq!(contents(&db, &t).await.len(), 0);
        let u = db.table("d", "u").unwrap();
        assert_eq!(contents(&db, &u).await.len(), 10);
        assert_eq!(db.setting("user/root").as_deref(), Some("x"));
        assert_eq!(db.settings_with_prefix("user/").len(), 2);
        db.drop_table("d", "u", WAIT).await.unwrap();
        let db = reopen(db, &disk).0;
        assert_eq!(db.tables("d").unwrap().len(), 1);
        assert_eq!(db.drop_database("d", WAIT).await.unwrap(), 1);
        drop(db);
        let db = open_on(disk, config());
        assert!(db.databases().is_empty());
    });
}

#[test]
fn a_full_disk_fails_commits_and_nothing_else() {
    block_on(async {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        let (db, t) = create(&disk).await;
        fill(&db, &t, 0..10).await;
        let local = fault::Local::new(|name| match name {
            "redo.append" => Err(std::io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        });
        for several in [false, true] {
            let mut txn = begin_rr(&db, &t).await;
            txn.insert(&t, &account(77, 1, several.then_some("seventy"))).await.unwrap();
            assert!(matches!(txn.commit().await, Err(NodeError::DiskFull(_))));
        }
        assert_eq!(contents(&db, &t).await.len(), 10);
        drop(local);
        fill(&db, &t, 10..20).await;
        assert_eq!(contents(&db, &t).await.len(), 20);
        assert!(db.transactions().is_empty());
    });
}

#[test]
fn a_checkpoint_that_fails_leaves_the_old_one() {
    block_on(async {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        let (db, t) = create(&disk).await;
        fill(&db, &t, 0..10).await;
        db.checkpoint().await.unwrap();
        fill(&db, &t, 10..20).await;
        for point in
            ["checkpoint.before_create", "checkpoint.block", "checkpoint.before_finish", "replace.before_write"]
        {
            let local = fault::Local::new(move |name| match name == point {
                true => Err(std::io::ErrorKind::StorageFull.into()),
                false => Ok(()),
            });
            assert!(matches!(db.checkpoint().await, Err(NodeError::DiskFull(_))), "{point}");
            drop(local);
        }
        assert_eq!(db.counters().checkpoint_failures, 4);
        fill(&db, &t, 20..30).await;
        let (db, t) = reopen(db, &disk);
        assert_eq!(contents(&db, &t).await.len(), 30);
        db.checkpoint().await.unwrap();
        let (db, t) = reopen(db, &disk);
        assert_eq!(contents(&db, &t).await.len(), 30);
    });
}

#[test]
fn relaxed_durability_loses_at_most_what_was_not_flushed() {
    block_on(async {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        let config = Config { durability: Durability::Relaxed, ..config() };
        let db = open_on(disk.clone(), config.clone());
        db.create_database("d", Default::default()).await.unwrap();
        db.create_table(accounts("t")).await.unwrap();
        let t = db.table("d", "t").unwrap();
        fill(&db, &t, 0..100).await;
        let flushed = std::time::Instant::now();
        while db.counters().flushes == 0 {
            assert!(flushed.elapsed().as_secs() < 5);
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        drop(db);
        let db = open_on(disk, config);
        let t = db.table("d", "t").unwrap();
        assert_eq!(contents(&db, &t).await.len(), 100);
    });
}

#[test]
fn every_flush_policy_makes_commits_durable() {
    for flush in [FlushPolicy::Adaptive, FlushPolicy::Committer, FlushPolicy::Thread] {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        let db = open_on(disk.clone(), Config { flush, ..config() });
        block_on(db.create_database("d", Default::default())).unwrap();
        block_on(db.create_table(accounts("t"))).unwrap();
        let t = db.table("d", "t").unwrap();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (db, t) = (&db, &t);
                scope.spawn(move || {
                    for i in 0..50 {
                        block_on(fill(db, t, thread * 50 + i..thread * 50 + i + 1));
                    }
                });
            }
        });
        drop(db);
        let db = open_on(disk, config());
        let t = db.table("d", "t").unwrap();
        assert_eq!(block_on(contents(&db, &t)).len(), 400);
    }
}

#[test]
fn damage_is_refused_with_its_place() {
    block_on(async {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        let (db, t) = create(&disk).await;
        fill(&db, &t, 0..10).await;
        db.checkpoint().await.unwrap();
        drop(db);
        let name = disk.list("checkpoint").unwrap().into_iter().find(|n| n.ends_with("p0001.rows")).unwrap();
        let path = format!("checkpoint/{name}");
        let file = disk.open(&path, false).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, 100).unwrap();
        file.write_all_at(&[byte[0] ^ 1], 100).unwrap();
        let runtime = Threads::start().unwrap();
        let refused = Database::open(config(), disk.clone(), runtime, &|_| {});
        let Err(NodeError::Fatal(why)) = refused else { panic!("it was opened") };
        assert!(why.contains(&path), "{why}");
    });
}

/// A change becomes visible before it is on disk, but nobody is told of it (of a value, an absence, a duplicate) until it is.
#[test]
fn no_answer_shows_what_a_crash_could_take_back() {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};
    type Look = fn(&Database, &TableHandle) -> Option<Transaction>;
    let value: Look = |db, t| {
        block_on(async {
            let mut txn = db.begin(autocommit());
            txn.use_table(t).await.unwrap();
            (get(&mut txn, t, 1).await.unwrap()[1] == int(11)).then_some(txn)
        })
    };
    let absence: Look = |db, t| {
        block_on(async {
            let mut txn = begin_rr(db, t).await;
            get(&mut txn, t, 2).await.is_none().then_some(txn)
        })
    };
    let scanned: Look = |db, t| {
        block_on(async {
            let mut txn = begin_rr(db, t).await;
            (scan(&mut txn, t, all(Some(1))).await.len() == 2).then_some(txn)
        })
    };
    let duplicate: Look = |db, t| {
        block_on(async {
            let mut txn = begin_rr(db, t).await;
            let outcome = txn.insert(t, &account(9, 0, Some("NEW"))).await.unwrap();
            matches!(outcome, InsertOutcome::Duplicate { .. }).then_some(txn)
        })
    };
    let slow = |name: &str| {
        if name == "redo.flush.before_sync" {
            std::thread::sleep(Duration::from_millis(300));
        }
        Ok(())
    };
    for (what, look) in [("value", value), ("absence", absence), ("scanned", scanned), ("duplicate", duplicate)] {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        drop(block_on(create(&disk)));
        // Whoever waits for the disk flushes, on his own thread.
        let db = open_on(disk, Config { flush: FlushPolicy::Committer, ..config() });
        let t = db.table("d", "t").unwrap();
        block_on(insert_all(&db, &t, &[account(1, 10, Some("a")), account(2, 20, None), account(3, 30, Some("c"))]));
        let durable = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _slow = fault::Local::new(slow);
                block_on(async {
                    let mut txn = begin_rr(&db, &t).await;
                    txn.update(&t, &account(1, 10, Some("a")), &account(1, 11, Some("new"))).await.unwrap();
                    txn.delete(&t, &account(2, 20, None)).await.unwrap();
                    txn.commit().await.unwrap();
                });
                durable.store(true, Ordering::SeqCst);
            });
            // Who waits may find the log idle and flush it himself: that is as slow.
            let _slow = fault::Local::new(slow);
            let start = Instant::now();
            let mut txn = loop {
                assert!(start.elapsed().as_secs() < 10);
                if let Some(txn) = look(&db, &t) {
                    break txn;
                }
            };
            let was_durable = durable.load(Ordering::SeqCst);
            let began = Instant::now();
            block_on(txn.wait_observed()).unwrap();
            // Seen within the first milliseconds of a sync of 300.
            assert!(
                was_durable || began.elapsed() > Duration::from_millis(10),
                "{what}: {:?} after {:?}",
                began.elapsed(),
                start.elapsed()
            );
            assert!(!was_durable, "the change was seen too late for this test to say anything");
        });
    }
}
