//! Definitions that SQL changes while native clients are connected and at work: they go on by the new one, or are told; they never see or write wrong data.

use super::{names, start};
use rauk_client::{Error, ErrorKind, Record, Table, Value, blocking::wait};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

#[derive(Record, Clone, Debug, PartialEq)]
#[rauk(database = "d", table = "t")]
struct Line {
    #[rauk(key)]
    id: i32,
    a: i32,
    #[rauk(length = 10)]
    b: Option<String>,
}

fn line(id: i32) -> Line {
    Line { id, a: id * 7, b: Some(format!("b{id}")) }
}

fn with_rows() -> super::Both {
    let mut both = start();
    both.run("CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL, b VARCHAR(10))");
    both.run("INSERT INTO t VALUES (1, 7, 'b1'), (2, 14, 'b2'), (3, 21, 'b3')");
    both
}

#[test]
fn single_operations_go_on() {
    let mut both = with_rows();
    wait(async {
        let table = both.table("t").await;
        let lines = both.client.open::<Line>().await.expect("opened");
        assert_eq!(lines.get(1).await, Ok(Some(line(1))));
        both.run("ALTER TABLE t ADD COLUMN c INT NOT NULL DEFAULT 5");
        assert_eq!(lines.get(1).await, Ok(Some(line(1))));
        let row = table.get(1).await.expect("read").expect("there");
        assert_eq!((names(&row), row.get("c")), (["id", "a", "b", "c"].map(String::from).to_vec(), Ok(5)));
        lines.insert(&line(4)).await.expect("inserted");
        assert_eq!(table.update(4, &[("c", Value::from(6))]).await, Ok(true));
        both.run("ALTER TABLE t ADD COLUMN first INT FIRST, DROP COLUMN c");
        assert_eq!(lines.get(4).await, Ok(Some(line(4))));
        assert_eq!(lines.update(&Line { a: 1, ..line(4) }).await, Ok(true));
        assert_eq!(both.one("SELECT first, id, a, b FROM t WHERE id = 4"), "NULL | 4 | 1 | b4");
        assert_eq!(table.update(4, &[("c", Value::from(6))]).await.unwrap_err().kind, ErrorKind::UnknownColumn);
        both.run("ALTER TABLE t MODIFY first BIGINT DEFAULT 9, MODIFY b VARCHAR(30)");
        let row = table.get(4).await.expect("read").expect("there");
        assert_eq!(row.get::<Option<i64>>("first"), Ok(None));
        lines.write(&Line { b: Some("x".repeat(30)), ..line(5) }).await.expect("the column is longer now");
        assert_eq!(both.one("SELECT first, a FROM t WHERE id = 5"), "9 | 35");
        both.run("ALTER TABLE t ADD INDEX by_a (a), ADD UNIQUE INDEX by_b (b)");
        assert_eq!(table.get(5).await.map(|row| row.is_some()), Ok(true));
        let rows = table.scan_index("by_a").expect("there").range(21..).collect().await.expect("scanned");
        assert_eq!(rows.iter().map(|row| row.get("id").expect("id")).collect::<Vec<i32>>(), [3, 5]);
        assert_eq!(table.get_by("by_b", "B2").await.expect("read").map(|row| row.get("id")), Some(Ok(2)));
        assert_eq!(lines.insert(&Line { id: 6, ..line(2) }).await.unwrap_err().kind, ErrorKind::Duplicate);
        both.run("ALTER TABLE t DROP INDEX by_a");
        let told = match table.scan_index("by_a") {
            Ok(scan) => scan.collect().await.map(|_| ()),
            Err(error) => Err(error),
        };
        assert_eq!(told.unwrap_err().kind, ErrorKind::UnknownIndex);
        both.run("TRUNCATE TABLE t");
        assert_eq!(lines.get(1).await, Ok(None));
        lines.insert(&line(1)).await.expect("inserted");
        assert_eq!(both.one("SELECT id, a, b FROM t"), "1 | 7 | b1");
        both.run("RENAME TABLE t TO other");
        assert_eq!(lines.get(1).await.unwrap_err().kind, ErrorKind::UnknownTable);
        assert_eq!(table.delete(1).await.unwrap_err().kind, ErrorKind::UnknownTable);
        both.run("RENAME TABLE other TO t");
        assert_eq!(lines.get(1).await, Ok(Some(line(1))));
        both.run("DROP TABLE t");
        assert_eq!(lines.get(1).await.unwrap_err().kind, ErrorKind::UnknownTable);
        both.run("CREATE TABLE t (b VARCHAR(10), a INT NOT NULL, id INT PRIMARY KEY)");
        assert_eq!(lines.get(1).await, Ok(None));
        lines.insert(&line(1)).await.expect("inserted");
        assert_eq!(both.one("SELECT id, a, b FROM t"), "1 | 7 | b1");
    });
}

#[test]
fn records_are_told_when_they_no_longer_fit() {
    let mut both = with_rows();
    wait(async {
        let lines = both.client.open::<Line>().await.expect("opened");
        let told = async |kinds: &[ErrorKind]| {
            for _ in 0..2 {
                for error in [
                    lines.get(1).await.unwrap_err(),
                    lines.update(&line(1)).await.unwrap_err(),
                    lines.insert(&line(9)).await.unwrap_err(),
                ] {
                    assert!(kinds.contains(&error.kind), "{error:?}");
                    assert!(!error.is_temporary(), "{error:?}");
                }
            }
        };
        lines.get(1).await.expect("read");
        both.run("ALTER TABLE t RENAME COLUMN a TO renamed");
        told(&[ErrorKind::UnknownColumn]).await;
        both.run("ALTER TABLE t RENAME COLUMN renamed TO a");
        assert_eq!(lines.get(1).await, Ok(Some(line(1))));
        both.run("ALTER TABLE t MODIFY a BIGINT NOT NULL");
        told(&[ErrorKind::WrongType]).await;
        both.run("ALTER TABLE t MODIFY a INT NULL");
        told(&[ErrorKind::WrongType]).await;
        both.run("ALTER TABLE t MODIFY a INT NOT NULL");
        assert_eq!(lines.get(1).await, Ok(Some(line(1))));
        both.run("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (a)");
        told(&[ErrorKind::WrongType]).await;
        both.run("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id)");
        assert_eq!(lines.get(1).await, Ok(Some(line(1))));
        both.run("ALTER TABLE t DROP COLUMN b");
        told(&[ErrorKind::UnknownColumn]).await;
    });
    assert_eq!(both.run("SELECT id, a FROM t ORDER BY id"), ["1 | 7", "2 | 14", "3 | 21"]);
}

/// Two columns that change places or names: values must not land in the other.
#[test]
fn columns_that_swap_are_not_mistaken() {
    let mut both = start();
    both.run("CREATE TABLE t (id INT PRIMARY KEY, x INT NOT NULL, y INT NOT NULL)");
    both.run("INSERT INTO t VALUES (1, 10, 20)");
    wait(async {
        let table = both.table("t").await;
        let set_x = |n: i32| [("x", Value::from(n))];
        assert_eq!(table.update(1, &set_x(11)).await, Ok(true));
        both.run("ALTER TABLE t MODIFY y INT NOT NULL AFTER id");
        assert_eq!(table.update(1, &set_x(12)).await, Ok(true));
        assert_eq!(both.one("SELECT x, y FROM t"), "12 | 20");
        // A batch that was built before.
        let mut batch = both.client.batch();
        batch.update(&table, 1, &set_x(13));
        let read = batch.get(&table, 1);
        both.run("ALTER TABLE t RENAME COLUMN x TO z, RENAME COLUMN y TO x");
        match both.client.execute(batch).await {
            // By its new meaning, or not at all; never into the column that has another name now.
            Ok(result) => {
                let row = result.row(read).expect("read").expect("there");
                assert_eq!((row.get("x"), row.get("z")), (Ok(13), Ok(12)));
            }
            Err(error) => {
                assert!(matches!(error.kind, ErrorKind::SchemaChanged | ErrorKind::UnknownColumn), "{error}");
                assert_eq!(both.one("SELECT x, z FROM t"), "20 | 12");
            }
        }
        assert_eq!(table.update(1, &set_x(14)).await, Ok(true));
        assert_eq!(both.one("SELECT x, z FROM t"), "14 | 12");
    });
}

#[test]
fn a_transaction_is_told_and_holds_changes_off() {
    let mut both = with_rows();
    wait(async {
        let lines = both.client.open::<Line>().await.expect("opened");
        both.run("SET lock_wait_timeout = 1");
        let mut transaction = both.client.begin();
        transaction.insert(&lines, &line(4)).await.expect("inserted");
        // What is used in a transaction keeps its definition until the end.
        assert_eq!(both.fails("ALTER TABLE t ADD COLUMN c INT"), 1205);
        assert_eq!(both.fails("DROP TABLE t"), 1205);
        transaction.commit().await.expect("committed");
        // A transaction that has not used the table yet is told of a change.
        let mut transaction = both.client.begin();
        both.run("ALTER TABLE t ADD COLUMN c INT");
        match transaction.get(&lines, 4).await {
            Ok(found) => assert_eq!(found, Some(line(4))),
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::SchemaChanged);
                assert!(error.is_temporary());
            }
        }
        drop(transaction);
        both.run("ALTER TABLE t DROP COLUMN c");
        let tries = AtomicUsize::new(0);
        let work = async |transaction: &mut rauk_client::Transaction| {
            tries.fetch_add(1, Ordering::Relaxed);
            transaction.insert(&lines, &line(5)).await?;
            transaction.get(&lines, 5).await
        };
        assert_eq!(both.client.transact(work).await, Ok(Some(line(5))));
        assert!(tries.into_inner() <= 2);
        // A scan that is under way.
        let mut rows = lines.table().scan_index("PRIMARY").expect("there").rows();
        assert_eq!(rows.next().await.expect("scanned").map(|row| row.get("id")), Some(Ok(1)));
        let altered = crate::common::run(&mut both.sql, "ALTER TABLE t ADD COLUMN d INT");
        let mut ids = vec![1];
        let ended: Result<(), Error> = async {
            while let Some(row) = rows.next().await? {
                ids.push(row.get("id")?);
            }
            Ok(())
        }
        .await;
        match ended {
            Ok(()) => assert_eq!(ids, [1, 2, 3, 4, 5]),
            Err(error) => assert!(altered == ["ok 0"] && error.is_temporary(), "{altered:?} {error}"),
        }
    });
}

/// Readers and writers at full speed while a table is changed back and forth: every row that is read is whole, every row that was acknowledged is there.
#[test]
fn at_work_while_it_is_changed() {
    let mut both = with_rows();
    let (stop, worked) = (AtomicBool::new(false), AtomicUsize::new(0));
    let fine = |error: &Error| {
        let changed = matches!(error.kind, ErrorKind::SchemaChanged | ErrorKind::LockTimeout | ErrorKind::Deadlock);
        assert!(changed && error.is_temporary(), "{error:?}");
    };
    let inserted = std::thread::scope(|threads| {
        let mut writers = Vec::new();
        for thread in 0..2 {
            let (client, stop, worked) = (both.another_client(), &stop, &worked);
            writers.push(threads.spawn(move || {
                wait(async {
                    let lines = client.open::<Line>().await.expect("opened");
                    let mut inserted = 0;
                    for i in 0.. {
                        if stop.load(Ordering::Relaxed) || i > 20_000 {
                            break;
                        }
                        let row = line(1_000 + thread * 100_000 + i);
                        let done = match i % 3 {
                            0 => lines.insert(&row).await.map(|_| ()),
                            1 => {
                                let mut batch = client.batch();
                                let op = batch.insert_record(&lines, &row);
                                match client.execute(batch).await {
                                    Ok(result) => result.outcome(op).map(|_| ()),
                                    Err(error) => Err(error),
                                }
                            }
                            _ => client.transact(async |t| t.insert(&lines, &row).await.map(|_| ())).await,
                        };
                        match done {
                            Ok(()) => inserted += 1,
                            Err(error) => fine(&error),
                        }
                        worked.fetch_add(1, Ordering::Relaxed);
                    }
                    inserted
                })
            }));
        }
        let (client, stop_reading, worked_too) = (both.another_client(), &stop, &worked);
        let reader = threads.spawn(move || {
            wait(async {
                let table: Table = client.table("d", "t").await.expect("opened");
                let whole = |row: &rauk_client::Row| {
                    let id = row.get::<i32>("id").expect("id");
                    assert_eq!(row.get::<i64>("a"), Ok(i64::from(id) * 7), "{row:?}");
                    assert_eq!(row.get::<String>("b"), Ok(format!("b{id}")), "{row:?}");
                };
                while !stop_reading.load(Ordering::Relaxed) {
                    match table.get(2).await {
                        Ok(row) => whole(&row.expect("nobody deletes rows")),
                        Err(error) => fine(&error),
                    }
                    match table.scan().limit(50).collect().await {
                        Ok(rows) => rows.iter().for_each(whole),
                        Err(error) => fine(&error),
                    }
                    worked_too.fetch_add(1, Ordering::Relaxed);
                }
            });
        });
        for round in 0..6 {
            for change in [
                "ADD COLUMN extra INT NOT NULL DEFAULT 3",
                "ADD INDEX by_a (a)",
                "DROP COLUMN extra",
                "ADD COLUMN front VARCHAR(5) DEFAULT 'f' FIRST",
                "DROP INDEX by_a",
                "MODIFY b VARCHAR(20)",
                "DROP COLUMN front",
                "MODIFY b VARCHAR(10)",
            ] {
                let before = worked.load(Ordering::Relaxed);
                let done = crate::common::run(&mut both.sql, &format!("ALTER TABLE t {change}"));
                assert!(done[0].starts_with("ok"), "round {round}, {change}: {done:?}");
                let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
                while worked.load(Ordering::Relaxed) < before + 5 {
                    assert!(std::time::Instant::now() < deadline, "nobody works after {change}");
                    assert!(!reader.is_finished(), "the reader has failed after {change}");
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
        writers.into_iter().map(|writer| writer.join().expect("no panic")).sum::<usize>()
    });
    assert_eq!(both.one("SELECT COUNT(*) FROM t WHERE a = id * 7 AND b = CONCAT('b', id)"), (inserted + 3).to_string());
    assert_eq!(both.one("SELECT COUNT(*) FROM t"), (inserted + 3).to_string());
}
