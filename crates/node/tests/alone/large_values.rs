//! Rows with large values: what a change of one of them costs, and that it survives everything.

use crate::support::*;
use rauk_log::{Disk, MemoryDisk};
use rauk_node::*;
use rauk_types::{DataType, IndexKind, TableSchema, TypeKind, Value};
use std::sync::Arc;

const VALUES: usize = 10;

/// `CREATE TABLE name (id BIGINT PRIMARY KEY, number BIGINT, v0 LONGBLOB NULL, … v9 LONGBLOB NULL)`
fn documents(name: &str) -> TableSchema {
    let mut columns = vec![column(0, "id", DataType::BIGINT, false), column(1, "number", DataType::BIGINT, false)];
    let blob = DataType::new(TypeKind::LongBlob);
    columns.extend((0..VALUES).map(|i| column(2 + i as u16, &format!("v{i}"), blob, true)));
    schema(name, columns, vec![index(0, "PRIMARY", IndexKind::Primary, &[0])])
}

fn document(fill: u8, length: usize) -> Value {
    Value::Bytes(vec![fill; length])
}

fn row(id: i64) -> Vec<Value> {
    [vec![int(id), int(0)], vec![Value::Null; VALUES]].concat()
}

/// An autocommit update of a row that is read with a lock.
async fn update(
    db: &Database,
    t: &TableHandle,
    id: i64,
    change: impl FnOnce(&mut Vec<Value>),
) -> Result<(), NodeError> {
    let mut txn = begin_rr(db, t).await;
    let old = get_for_update(&mut txn, t, id).await?.expect("it is there");
    let mut new = old.clone();
    change(&mut new);
    assert_eq!(txn.update(t, &old, &new).await?, UpdateOutcome::Updated);
    txn.commit().await
}

fn costs(db: &Database) -> (u64, u64) {
    (db.memory_used(), db.counters().commit_bytes)
}

async fn created(db: &Database) -> TableHandle {
    db.create_database("d", Default::default()).await.unwrap();
    db.create_table(documents("t")).await.unwrap();
    db.table("d", "t").unwrap()
}

/// A row of 160 MiB is made and changed by commits of which each takes at most 20 MiB in the log.
#[test]
fn updating_one_of_ten_values_of_16_mib_writes_one() {
    const MIB: u64 = 1 << 20;
    let config = Config { commit_limit: 20 * MIB as usize, segment_bytes: 64 << 20, ..config() };
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let db = open_on(disk.clone(), config.clone());
    block_on(async {
        let t = created(&db).await;
        insert_all(&db, &t, &[row(1)]).await;
        for i in 0..VALUES {
            update(&db, &t, 1, |row| row[2 + i] = document(i as u8, 16 << 20)).await.unwrap();
        }
        let (memory, log) = costs(&db);
        assert!((160 * MIB..162 * MIB).contains(&memory), "{memory} bytes for ten values");
        assert!((160 * MIB..161 * MIB).contains(&log), "{log} bytes of commits");
        // A snapshot needs the version before: that costs the one value that it does not share.
        let mut reader = begin_rr(&db, &t).await;
        assert_eq!(get(&mut reader, &t, 1).await.unwrap()[2], document(0, 16 << 20));
        update(&db, &t, 1, |row| row[2] = document(77, 16 << 20)).await.unwrap();
        let (with_snapshot, log_now) = costs(&db);
        assert!((16 * MIB..17 * MIB).contains(&(with_snapshot - memory)), "{} bytes", with_snapshot - memory);
        assert!((16 * MIB..17 * MIB).contains(&(log_now - log)), "{} bytes of commits", log_now - log);
        assert_eq!(get(&mut reader, &t, 1).await.unwrap()[2], document(0, 16 << 20));
        reader.commit().await.unwrap();
        // What changes no large value writes none.
        let (_, log) = costs(&db);
        for n in 0..5 {
            update(&db, &t, 1, |row| row[1] = int(n)).await.unwrap();
        }
        let (memory_now, log_now) = costs(&db);
        assert!(log_now - log < 10_000, "{} bytes of commits", log_now - log);
        assert!(memory_now < 162 * MIB, "{memory_now} bytes, and only one version is wanted");
        // Two values are too many for one entry of the log: refused, and nothing has changed.
        let two = update(&db, &t, 1, |row| (row[3], row[4]) = (document(1, 11 << 20), document(2, 11 << 20))).await;
        assert!(matches!(two, Err(NodeError::TooLarge { .. })), "{two:?}");
        assert_eq!(read(&db, &t, 1).await.unwrap()[1..4], [int(4), document(77, 16 << 20), document(1, 16 << 20)]);
    });
    let t = db.table("d", "t").unwrap();
    let before = block_on(read(&db, &t, 1));
    drop(db);
    let db = open_on(disk, config);
    let t = db.table("d", "t").unwrap();
    assert!(block_on(read(&db, &t, 1)) == before, "after a restart it is another row");
}

/// Changes, deletions and checkpoints in turn, each followed by a restart that must find what was committed.
#[test]
fn restarts_find_what_was_kept() {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let mut db = open_on(disk.clone(), config());
    let mut t = block_on(created(&db));
    let mut expected: Vec<Vec<Value>> = (0..6).map(row).collect();
    block_on(insert_all(&db, &t, &expected));
    for step in 0..60usize {
        let id = step % 6;
        block_on(async {
            match step % 10 {
                // Deleted and inserted again, so that the log has changes of a row that a checkpoint has not.
                7 => {
                    let mut txn = begin_rr(&db, &t).await;
                    let old = get_for_update(&mut txn, &t, id as i64).await.unwrap().unwrap();
                    assert!(txn.delete(&t, &old).await.unwrap());
                    txn.commit().await.unwrap();
                    insert_all(&db, &t, &[expected[id].clone()]).await;
                }
                4 => db.checkpoint().await.unwrap(),
                // Undone.
                8 => {
                    let mut txn = begin_rr(&db, &t).await;
                    let old = get_for_update(&mut txn, &t, id as i64).await.unwrap().unwrap();
                    let mut new = old.clone();
                    new[2] = document(99, 50_000);
                    assert_eq!(txn.update(&t, &old, &new).await.unwrap(), UpdateOutcome::Updated);
                    txn.rollback();
                }
                _ => {
                    let change = |row: &mut Vec<Value>| {
                        row[1] = int(step as i64);
                        row[2 + step * 7 % VALUES] = document(step as u8, 8100 + step * 10);
                        row.swap(2 + step % VALUES, 2 + step * 3 % VALUES);
                    };
                    change(&mut expected[id]);
                    update(&db, &t, id as i64, change).await.unwrap();
                }
            }
        });
        if step % 3 == 2 {
            drop((db, t));
            db = open_on(disk.clone(), config());
            t = db.table("d", "t").unwrap();
        }
        assert!(block_on(contents(&db, &t)) == expected, "after step {step}");
    }
    // What is deleted is freed: as often as rows of 1.2 MB come and go, no more memory is used.
    let mut used = Vec::new();
    block_on(async {
        delete_all(&db, &t).await;
        for _ in 0..6 {
            let mut rows: Vec<Vec<Value>> = (0..6).map(row).collect();
            rows.iter_mut().for_each(|row| (row[2], row[3]) = (document(1, 100_000), document(2, 100_000)));
            insert_all(&db, &t, &rows).await;
            delete_all(&db, &t).await;
            for _ in 0..3 {
                update_nothing(&db, &t).await;
            }
            used.push(db.memory_used());
        }
    });
    assert!(used[5] < used[1] + 400_000, "{used:?}");
}

async fn delete_all(db: &Database, t: &TableHandle) {
    for id in 0..6 {
        let mut txn = begin_rr(db, t).await;
        let old = get_for_update(&mut txn, t, id).await.unwrap().unwrap();
        assert!(txn.delete(t, &old).await.unwrap());
        txn.commit().await.unwrap();
    }
}

/// A commit in every partition, so that it collects what nobody needs.
async fn update_nothing(db: &Database, t: &TableHandle) {
    let rows: Vec<Vec<Value>> = (100..140).map(row).collect();
    insert_all(db, t, &rows).await;
    let mut txn = begin_rr(db, t).await;
    for row in &rows {
        assert!(txn.delete(t, row).await.unwrap());
    }
    txn.commit().await.unwrap();
}
