//! Locks, isolation and visibility between SQL and native transactions.

use super::{refused, start};
use rauk_client::{ErrorKind, Isolation, TransactionOptions, Value, blocking::wait};
use std::time::Duration;

fn options(isolation: Isolation) -> TransactionOptions {
    TransactionOptions { isolation, lock_wait: Duration::from_millis(100), ..Default::default() }
}

fn with_rows() -> super::Both {
    let mut both = start();
    both.run("CREATE TABLE t (id INT PRIMARY KEY, n INT NOT NULL)");
    both.run("INSERT INTO t VALUES (1, 100), (2, 100), (3, 100)");
    both
}

async fn n(table: &rauk_client::Table, id: i32) -> Option<i32> {
    table.get(id).await.expect("read").map(|row| row.get("n").expect("a number"))
}

#[test]
fn each_sees_what_the_other_committed_and_nothing_else() {
    let mut both = with_rows();
    wait(async {
        let table = both.table("t").await;
        for i in 0..50 {
            both.run(&format!("UPDATE t SET n = {i} WHERE id = 1"));
            assert_eq!(n(&table, 1).await, Some(i));
            assert_eq!(table.update(2, &[("n", Value::from(i))]).await, Ok(true));
            assert_eq!(both.one("SELECT n FROM t WHERE id = 2"), i.to_string());
        }
        both.run("BEGIN");
        both.run("UPDATE t SET n = 1000 WHERE id = 1");
        both.run("DELETE FROM t WHERE id = 2");
        both.run("INSERT INTO t VALUES (4, 4)");
        assert_eq!((n(&table, 1).await, n(&table, 2).await, n(&table, 4).await), (Some(49), Some(49), None));
        both.run("COMMIT");
        assert_eq!((n(&table, 1).await, n(&table, 2).await, n(&table, 4).await), (Some(1000), None, Some(4)));
        let mut transaction = both.client.begin();
        let mut batch = transaction.batch();
        batch.delete(&table, 4);
        batch.insert(&table, &[("id", Value::from(5)), ("n", Value::from(5))]);
        transaction.execute(batch).await.expect("executed").all_succeeded().expect("all");
        assert_eq!(both.run("SELECT id FROM t ORDER BY id"), ["1", "3", "4"]);
        transaction.commit().await.expect("committed");
        assert_eq!(both.run("SELECT id FROM t ORDER BY id"), ["1", "3", "5"]);
    });
}

#[test]
fn a_lock_holds_against_the_other() {
    let mut both = with_rows();
    wait(async {
        let table = both.table("t").await;
        both.run("BEGIN");
        both.run("SELECT n FROM t WHERE id = 1 FOR UPDATE");
        let mut transaction = both.client.begin_with(options(Isolation::ReadCommitted));
        let change = async |transaction: &mut rauk_client::Transaction, id: i32| {
            let mut batch = transaction.batch();
            let op = batch.increment(&table, id, "n", 1);
            transaction.execute(batch).await?.row(op)
        };
        refused(change(&mut transaction, 1).await, ErrorKind::LockTimeout, 1205);
        assert!(change(&mut transaction, 2).await.expect("changed").is_some());
        assert_eq!(both.fails("SELECT n FROM t WHERE id = 2 FOR UPDATE NOWAIT"), 3572);
        assert_eq!(both.run("SELECT id FROM t ORDER BY id FOR UPDATE SKIP LOCKED"), ["1", "3"]);
        both.run("SET innodb_lock_wait_timeout = 1");
        assert_eq!(both.fails("UPDATE t SET n = 0 WHERE id = 2"), 1205);
        both.run("COMMIT");
        assert!(change(&mut transaction, 1).await.expect("the lock is free").is_some());
        transaction.commit().await.expect("committed");
        assert_eq!(both.run("SELECT n FROM t ORDER BY id"), ["101", "101", "100"]);
    });
}

#[test]
fn a_deadlock_between_them_is_found() {
    let mut both = with_rows();
    let mut other = both.another_sql();
    wait(async {
        let table = both.table("t").await;
        both.run("BEGIN");
        both.run("UPDATE t SET n = n + 1 WHERE id = 1");
        let mut transaction = both.client.begin();
        let mut batch = transaction.batch();
        batch.increment(&table, 2, "n", 1);
        transaction.execute(batch).await.expect("executed").all_succeeded().expect("all");
        let mut sql = std::mem::replace(&mut both.sql, other);
        let waits = std::thread::spawn(move || {
            let changed = crate::common::run(&mut sql, "UPDATE t SET n = n + 1 WHERE id = 2");
            (changed, crate::common::run(&mut sql, "COMMIT"))
        });
        let mut batch = transaction.batch();
        batch.increment(&table, 1, "n", 1);
        let native = match transaction.execute(batch).await {
            Ok(_) => transaction.commit().await,
            Err(error) => Err(error),
        };
        let (changed, _) = waits.join().expect("no panic");
        match native {
            Ok(()) => assert_eq!(changed, ["error 1213"]),
            Err(error) => {
                assert_eq!((error.kind, error.code), (ErrorKind::Deadlock, 1213));
                assert_eq!(changed, ["ok 1"]);
            }
        }
        assert_eq!(both.run("SELECT n FROM t ORDER BY id"), ["101", "101", "100"]);
    });
    other = both.another_sql();
    drop(other);
}

#[test]
fn a_snapshot_is_kept_against_the_other() {
    let mut both = with_rows();
    wait(async {
        let table = both.table("t").await;
        let mut transaction = both.client.begin_with(options(Isolation::RepeatableRead));
        let read = async |transaction: &mut rauk_client::Transaction, id: i32| {
            let mut batch = transaction.batch();
            let op = batch.get(&table, id);
            let row = transaction.execute(batch).await.expect("executed").row(op).expect("read").expect("there");
            row.get::<i32>("n").expect("a number")
        };
        assert_eq!(read(&mut transaction, 1).await, 100);
        both.run("UPDATE t SET n = n + 1");
        assert_eq!((read(&mut transaction, 1).await, read(&mut transaction, 2).await), (100, 100));
        let mut batch = transaction.batch();
        batch.update(&table, 1, &[("n", Value::from(0))]);
        let error = transaction.execute(batch).await.map(|_| ()).unwrap_err();
        assert_eq!((error.kind, error.code), (ErrorKind::Conflict, 1020));
        drop(transaction);
        // And the other way round.
        both.run("BEGIN");
        assert_eq!(both.one("SELECT n FROM t WHERE id = 1"), "101");
        table.increment(1, "n", 1).await.expect("changed");
        assert_eq!(both.one("SELECT n FROM t WHERE id = 1"), "101");
        assert_eq!(both.fails("UPDATE t SET n = 0 WHERE id = 1"), 1020);
        both.run("ROLLBACK");
        assert_eq!(both.one("SELECT n FROM t WHERE id = 1"), "102");
    });
}

#[test]
fn sums_stay_with_both_at_work() {
    let mut both = with_rows();
    let native = both.another_client();
    let mut sql = both.another_sql();
    std::thread::scope(|threads| {
        threads.spawn(move || {
            for i in 0..100 {
                let (from, to) = (1 + i % 3, 1 + (i + 1) % 3);
                loop {
                    let moved = [
                        "BEGIN".to_string(),
                        format!("UPDATE t SET n = n - 1 WHERE id = {from}"),
                        format!("UPDATE t SET n = n + 1 WHERE id = {to}"),
                        "COMMIT".to_string(),
                    ]
                    .iter()
                    .all(|statement| !crate::common::run(&mut sql, statement)[0].starts_with("error"));
                    if moved {
                        break;
                    }
                    crate::common::run(&mut sql, "ROLLBACK");
                }
            }
        });
        threads.spawn(move || {
            wait(async {
                let table = native.table("d", "t").await.expect("opened");
                for i in 0..100 {
                    let (from, to) = (1 + (i + 1) % 3, 1 + i % 3);
                    let work = async |transaction: &mut rauk_client::Transaction| {
                        let mut batch = transaction.batch();
                        batch.increment(&table, from, "n", -1);
                        batch.increment(&table, to, "n", 1);
                        transaction.execute(batch).await.map(|_| ())
                    };
                    loop {
                        match native.transact(work).await {
                            Ok(()) => break,
                            Err(error) => assert!(error.is_temporary(), "{error}"),
                        }
                    }
                }
            });
        });
        wait(async {
            let table = both.table("t").await;
            for _ in 0..30 {
                let rows = table.scan().collect().await.expect("scanned");
                assert_eq!(rows.iter().map(|row| row.get::<i32>("n").expect("n")).sum::<i32>(), 300);
                assert_eq!(both.one("SELECT SUM(n) FROM t"), "300");
            }
        });
    });
    assert_eq!(both.one("SELECT SUM(n) FROM t"), "300");
}
