//! Reads and writes of many keys beside transactions.

use crate::support::*;
use proptest::prelude::*;
use rauk_kernel::{LockMode, WaitPolicy};
use rauk_log::{Disk, MemoryDisk};
use rauk_node::bulk::{Keys, Unwritten, Verb};
use rauk_node::*;
use rauk_types::{ColumnId, DataType, ForeignKey, ReferenceAction, TableSchema, Value, row};
use std::collections::BTreeMap;
use std::sync::Arc;

/// `pairs` with an ordered index on the value.
fn indexed() -> TableSchema {
    let mut schema = pairs("t");
    schema.indexes.push(index(1, "by_value", rauk_types::IndexKind::Ordered, &[1]));
    schema
}

fn keys(t: &TableHandle, ids: &[i64]) -> Keys {
    let mut keys = Keys::default();
    ids.iter().for_each(|id| keys.push(&key_of(t, *id)));
    keys
}

/// What each key reads, in the order of the keys.
fn read_many(db: &Database, t: &TableHandle, ids: &[i64]) -> Vec<Option<Vec<Value>>> {
    let columns = t.schema().columns.len();
    let mut found = vec![None; ids.len()];
    let mut visits = vec![0; ids.len()];
    let mut done = vec![false; ids.len()];
    let keys = keys(t, ids);
    let time = block_on(db.read_many(t, &keys, &mut done, &mut |i, row| {
        visits[i] += 1;
        found[i] = row.map(|(_, row)| values(&row, columns));
    }))
    .unwrap();
    block_on(db.wait_durable(time)).unwrap();
    assert!(db.is_durable(time));
    assert!(visits.iter().all(|v| *v == 1) && done.iter().all(|d| *d));
    found
}

#[derive(Clone, Debug)]
enum Write {
    Keep,
    Delete,
    Put(i64),
}

/// Writes, and gives what each key was before (`None`: not looked at), and what was not written.
fn write_many(db: &Database, t: &TableHandle, writes: &[(i64, Write)]) -> (Vec<Option<Option<Vec<Value>>>>, Unwritten) {
    let schema = t.schema();
    let columns = schema.columns.len();
    let ids: Vec<i64> = writes.iter().map(|w| w.0).collect();
    let mut met = vec![None; ids.len()];
    let mut done = vec![false; ids.len()];
    let mut unwritten = Unwritten::default();
    let keys = keys(t, &ids);
    let time = block_on(db.write_many(t, &keys, &mut done, &mut unwritten, &mut |i, found, buffer| {
        assert!(buffer.is_empty() && met[i].is_none());
        met[i] = Some(found.map(|(_, row)| values(&row, columns)));
        match writes[i].1 {
            Write::Keep => Verb::Keep,
            Write::Delete => Verb::Delete,
            Write::Put(value) => {
                let mut values = vec![int(writes[i].0), int(value)];
                values.extend((2..columns).map(|c| int(value + c as i64)));
                row::encode_row(schema, &values, buffer);
                Verb::Put
            }
        }
    }))
    .unwrap();
    block_on(db.wait_durable(time)).unwrap();
    assert!(done.iter().all(|d| *d));
    (met, unwritten)
}

fn put(id: i64, value: i64) -> (i64, Write) {
    (id, Write::Put(value))
}

#[test]
fn reads_rows_wherever_they_are_and_says_what_is_missing() {
    let (db, t) = database_with(pairs("t"));
    block_on(insert_all(&db, &t, &(0..500).map(|i| vec![int(i), int(i * 2)]).collect::<Vec<_>>()));
    let ids: Vec<i64> = (0..1000).map(|i| (i * 7919) % 600).collect();
    for (id, found) in ids.iter().zip(read_many(&db, &t, &ids)) {
        assert_eq!(found, (*id < 500).then(|| vec![int(*id), int(id * 2)]));
    }
    assert!(read_many(&db, &t, &[]).is_empty());
    // Only what is not marked is read.
    let mut done = [true, false, true];
    let mut met = Vec::new();
    let progress = db.try_read_many(&t, &keys(&t, &[1, 2, 3]), &mut done, &mut |i, _| met.push(i)).unwrap();
    assert!(progress.finished);
    assert_eq!((met, done), (vec![1], [true; 3]));
}

#[test]
fn writes_are_transactions_that_a_restart_finds() {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let db = open_on(disk.clone(), config());
    block_on(async {
        db.create_database("d", Default::default()).await.unwrap();
        db.create_table(indexed()).await.unwrap();
    });
    let t = db.table("d", "t").unwrap();
    let before = db.counters().commits;
    let (met, unwritten) = write_many(&db, &t, &(0..300).map(|i| put(i, i)).collect::<Vec<_>>());
    assert!(met.iter().all(|m| *m == Some(None)));
    assert!(unwritten.left.is_empty() && unwritten.failed.is_empty());
    assert_eq!(db.counters().commits - before, 300);
    let old = block_on(async {
        let mut txn = begin_rr(&db, &t).await;
        txn.take_snapshot().await.unwrap();
        txn
    });
    // One key several times: each write sees the one before.
    let writes =
        [put(5, 50), put(6, 60), (5, Write::Delete), put(5, 51), (7, Write::Delete), (5, Write::Keep), put(5, 52)];
    let (met, _) = write_many(&db, &t, &writes);
    let row = |id, value| Some(Some(vec![int(id), int(value)]));
    assert_eq!(met, [row(5, 5), row(6, 6), row(5, 50), Some(None), row(7, 7), row(5, 51), row(5, 51)]);
    let mut old = old;
    block_on(async {
        assert_eq!(scan(&mut old, &t, all(Some(1))).await.len(), 300);
        assert_eq!(get(&mut old, &t, 5).await, Some(vec![int(5), int(5)]));
        assert_eq!(get(&mut old, &t, 7).await, Some(vec![int(7), int(7)]));
    });
    drop(old);
    let expected: Vec<_> = read_many(&db, &t, &[5, 6, 7]);
    assert_eq!(expected, [Some(vec![int(5), int(52)]), Some(vec![int(6), int(60)]), None]);
    let rows = block_on(contents(&db, &t));
    drop((t, db));
    let db = open_on(disk, config());
    let t = db.table("d", "t").unwrap();
    assert_eq!(block_on(contents(&db, &t)), rows);
    assert_eq!(read_many(&db, &t, &[5, 6, 7]), expected);
}

#[test]
fn what_is_in_the_way_is_left_to_a_transaction() {
    let (db, t) = database_with(indexed());
    write_many(&db, &t, &(0..20).map(|i| put(i, i)).collect::<Vec<_>>());
    block_on(async {
        let mut txn = begin_rr(&db, &t).await;
        let lock = Some((LockMode::Shared, WaitPolicy::Wait));
        assert!(txn.get(&t, &key_of(&t, 3), lock, |row| row.is_some()).await.unwrap());
        assert_eq!(txn.insert(&t, &[int(100), int(1)]).await.unwrap(), InsertOutcome::Inserted);
        txn.begin_statement();
        let old = get_for_update(&mut txn, &t, 4).await.unwrap().unwrap();
        txn.update(&t, &old, &[int(4), int(44)]).await.unwrap();
        let (met, mut unwritten) = write_many(&db, &t, &[put(1, 1), put(3, 3), put(100, 3), put(4, 3), put(101, 1)]);
        unwritten.left.sort_unstable();
        assert_eq!(unwritten.left, [1, 2, 3]);
        assert_eq!(met.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, false, false, true]);
        // Reads see the committed versions.
        assert_eq!(read_many(&db, &t, &[3, 4, 100])[1..], [Some(vec![int(4), int(4)]), None]);
        txn.commit().await.unwrap();
        assert!(write_many(&db, &t, &[put(3, 3), put(100, 3), put(4, 3)]).1.left.is_empty());
        // Nobody gets between a serializable reader and what it found missing.
        let mut txn = begin(&db, &t, Isolation::Serializable).await;
        assert_eq!(get(&mut txn, &t, 555).await, None);
        assert_eq!(write_many(&db, &t, &[put(555, 1)]).1.left, [0]);
        txn.commit().await.unwrap();
        assert!(write_many(&db, &t, &[put(555, 1)]).1.left.is_empty());
    });
    assert!(db.transactions().is_empty());
}

#[test]
fn tables_with_unique_indexes_are_left() {
    let (db, t) = database_with(accounts("t"));
    let (met, unwritten) = write_many(&db, &t, &[put(1, 1), put(2, 2)]);
    assert_eq!((met, unwritten.left), (vec![None, None], vec![0, 1]));
}

/// Children of `parents`, whose `value` is the parent's id.
fn children() -> TableSchema {
    let mut schema = indexed();
    schema.name = "children".into();
    schema.foreign_keys = vec![ForeignKey {
        name: "f".into(),
        columns: vec![ColumnId(1)],
        parent_database: "d".into(),
        parent_table: "parents".into(),
        parent_columns: vec!["id".into()],
        on_delete: ReferenceAction::NoAction,
        on_update: ReferenceAction::NoAction,
    }];
    schema
}

#[test]
fn tables_with_foreign_keys_are_left_on_both_sides_and_after_a_restart() {
    let disk = MemoryDisk::new();
    let db = open_on(disk.clone(), config());
    block_on(db.create_database("d", rauk_types::Collation::DEFAULT)).unwrap();
    block_on(db.create_table(pairs("parents"))).unwrap();
    assert!(write_many(&db, &db.table("d", "parents").unwrap(), &[put(1, 1)]).1.left.is_empty());
    block_on(db.create_table(children())).unwrap();
    let refused = |db: &Database| {
        for (name, id) in [("parents", 2), ("children", 7)] {
            let table = db.table("d", name).unwrap();
            assert_eq!(write_many(db, &table, &[put(id, 1)]).1.left, [0], "{name}");
        }
        let (parents, children) = (db.table("d", "parents").unwrap(), db.table("d", "children").unwrap());
        let mut txn = db.begin(TxnOptions::default());
        txn.begin_statement();
        block_on(txn.use_table(&children)).unwrap();
        let orphan = block_on(txn.insert(&children, &[int(9), int(99)]));
        assert!(matches!(orphan, Err(NodeError::Refused(error)) if error.code == 1452));
        block_on(txn.insert(&children, &[int(8), int(1)])).unwrap();
        txn.begin_statement();
        block_on(txn.use_table(&parents)).unwrap();
        let needed = block_on(txn.delete(&parents, &[int(1), int(1)]));
        assert!(matches!(needed, Err(NodeError::Refused(error)) if error.code == 1451));
        // The row that was refused is not there, the other is.
        let mut found = |id| block_on(txn.get(&children, &key_of(&children, id), None, |row| row.is_some())).unwrap();
        assert_eq!((found(8), found(9)), (true, false));
    };
    refused(&db);
    block_on(db.shutdown()).unwrap();
    drop(db);
    let db = open_on(disk, config());
    refused(&db);
    block_on(db.drop_table("d", "children", WAIT)).unwrap();
    let parents = db.table("d", "parents").unwrap();
    assert!(write_many(&db, &parents, &[put(2, 1)]).1.left.is_empty());
}

#[test]
fn a_stale_definition_is_refused() {
    let (db, t) = database_with(pairs("t"));
    block_on(async {
        let mut new = (**t.schema()).clone();
        new.columns.push(column(7, "more", DataType::BIGINT, true));
        db.alter_table(&t, new, WAIT).await.unwrap();
        let keys = keys(&t, &[1]);
        let mut unwritten = Unwritten::default();
        let read = db.read_many(&t, &keys, &mut [false], &mut |_, _| panic!("visited")).await;
        let written = db.write_many(&t, &keys, &mut [false], &mut unwritten, &mut |_, _, _| panic!("called")).await;
        assert_eq!((read, written), (Err(NodeError::StaleSchema), Err(NodeError::StaleSchema)));
        // The lock is given back: DDL goes on.
        db.drop_table("d", "t", WAIT).await.unwrap();
    });
}

#[test]
fn at_the_memory_limit_keys_fail_one_by_one_and_deletes_work() {
    let (db, t) = database_with(indexed());
    write_many(&db, &t, &(0..1000).map(|i| put(i, i)).collect::<Vec<_>>());
    db.set_memory_limit(db.memory_used() + 40_000);
    let mut written = 1000;
    let failed = loop {
        let (met, unwritten) = write_many(&db, &t, &(written..written + 100).map(|i| put(i, i)).collect::<Vec<_>>());
        assert!(met.iter().all(|m| *m == Some(None)));
        if !unwritten.failed.is_empty() {
            break unwritten.failed;
        }
        written += 100;
        assert!(written < 100_000);
    };
    assert!(failed.iter().all(|(_, e)| matches!(e, NodeError::MemoryFull { table, .. } if table == "t")), "{failed:?}");
    let ids: Vec<i64> = failed.iter().map(|(i, _)| written + *i as i64).collect();
    assert!(read_many(&db, &t, &ids).iter().all(Option::is_none), "a failed write has left something");
    // What takes no more room is written all the same.
    let (_, unwritten) = write_many(&db, &t, &[put(5, 500), (6, Write::Delete)]);
    assert!(unwritten.failed.is_empty());
    assert_eq!(read_many(&db, &t, &[5, 6]), [Some(vec![int(5), int(500)]), None]);
    let deletes: Vec<_> = (0..written + 100).map(|i| (i, Write::Delete)).collect();
    assert!(write_many(&db, &t, &deletes).1.failed.is_empty());
    assert!(block_on(contents(&db, &t)).is_empty());
}

#[derive(Clone, Debug)]
enum Step {
    Many(Vec<(i64, Write)>),
    /// One transaction, committed or not.
    Transaction(Vec<(i64, Write)>, bool),
    Snapshot,
    EndSnapshot,
    AddColumn,
    Checkpoint,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let write = prop_oneof![
        1 => Just(Write::Keep),
        2 => Just(Write::Delete),
        6 => (0..50i64).prop_map(Write::Put),
    ];
    let writes = |n| proptest::collection::vec((0..40i64, write.clone()), 1..n);
    prop_oneof![
        10 => writes(60).prop_map(Step::Many),
        4 => (writes(6), any::<bool>()).prop_map(|(w, commit)| Step::Transaction(w, commit)),
        2 => Just(Step::Snapshot),
        2 => Just(Step::EndSnapshot),
        1 => Just(Step::AddColumn),
        1 => Just(Step::Checkpoint),
        1 => Just(Step::Reopen),
    ]
}

type Model = BTreeMap<i64, Vec<Value>>;

/// Columns beyond the second were added later: what a row written then has in them, and NULL in what came after.
fn model_row(id: i64, value: i64, columns: usize) -> Vec<Value> {
    let mut row = vec![int(id), int(value)];
    row.extend((2..columns).map(|c| int(value + c as i64)));
    row
}

fn widened(row: &[Value], columns: usize) -> Vec<Value> {
    let mut row = row.to_vec();
    row.resize(columns, Value::Null);
    row
}

async fn check(txn: &mut Transaction, t: &TableHandle, model: &Model) {
    let columns = t.schema().columns.len();
    let expected: Vec<_> = model.values().map(|row| widened(row, columns)).collect();
    let mut rows = scan(txn, t, all(Some(0))).await;
    assert_eq!(rows, expected, "by primary key");
    rows = scan(txn, t, all(Some(1))).await;
    rows.sort_by_key(|r| first_column(std::slice::from_ref(r))[0]);
    assert_eq!(rows, expected, "by value");
    for id in 0..40 {
        assert_eq!(get(txn, t, id).await, model.get(&id).map(|row| widened(row, columns)), "row {id}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Many keys and transactions in turn say the same as one map, snapshots see what was, and all is there after a restart.
    #[test]
    fn many_and_transactions_agree(steps in proptest::collection::vec(step(), 1..25), relaxed in any::<bool>()) {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        let durability = if relaxed { Durability::Relaxed } else { Durability::Fsync };
        let config = Config { durability, partitions: 3, ..config() };
        let mut db = open_on(disk.clone(), config.clone());
        block_on(async {
            db.create_database("d", Default::default()).await.unwrap();
            db.create_table(indexed()).await.unwrap();
        });
        let mut t = db.table("d", "t").unwrap();
        let mut model = Model::new();
        let mut snapshots: Vec<(Transaction, Model)> = Vec::new();
        for step in steps {
            let columns = t.schema().columns.len();
            match step {
                Step::Many(writes) => {
                    let ids: Vec<i64> = writes.iter().map(|w| w.0).collect();
                    let (met, unwritten) = write_many(&db, &t, &writes);
                    prop_assert!(unwritten.left.is_empty() && unwritten.failed.is_empty());
                    for ((id, write), met) in writes.iter().zip(met) {
                        let before = match write {
                            Write::Keep => model.get(id).cloned(),
                            Write::Delete => model.remove(id),
                            Write::Put(value) => model.insert(*id, model_row(*id, *value, columns)),
                        };
                        prop_assert_eq!(met, Some(before.map(|row| widened(&row, columns))));
                    }
                    let found = read_many(&db, &t, &ids);
                    for (id, found) in ids.iter().zip(found) {
                        prop_assert_eq!(found, model.get(id).map(|row| widened(row, columns)));
                    }
                }
                Step::Transaction(writes, commit) => {
                    let mut after = model.clone();
                    block_on(async {
                        let mut txn = begin(&db, &t, Isolation::ReadCommitted).await;
                        for (id, write) in writes {
                            txn.begin_statement();
                            let old = get_for_update(&mut txn, &t, id).await.unwrap();
                            match (write, old) {
                                (Write::Put(value), old) => {
                                    let new = model_row(id, value, columns);
                                    match old {
                                        Some(old) => drop(txn.update(&t, &old, &new).await.unwrap()),
                                        None => drop(txn.insert(&t, &new).await.unwrap()),
                                    }
                                    after.insert(id, new);
                                }
                                (Write::Delete, Some(old)) => {
                                    txn.delete(&t, &old).await.unwrap();
                                    after.remove(&id);
                                }
                                _ => {}
                            }
                        }
                        if commit {
                            txn.commit().await.unwrap();
                        }
                    });
                    if commit {
                        model = after;
                    }
                }
                Step::Snapshot => {
                    let mut txn = block_on(begin_rr(&db, &t));
                    block_on(txn.take_snapshot()).unwrap();
                    snapshots.push((txn, model.clone()));
                }
                Step::EndSnapshot => {
                    snapshots.pop();
                }
                Step::AddColumn => {
                    snapshots.clear();
                    let mut new = (**t.schema()).clone();
                    let id = new.columns.len() as u16;
                    new.columns.push(column(id, &format!("c{id}"), DataType::BIGINT, true));
                    block_on(db.alter_table(&t, new, WAIT)).unwrap();
                    t = db.table("d", "t").unwrap();
                }
                Step::Checkpoint => block_on(db.checkpoint()).unwrap(),
                Step::Reopen => {
                    snapshots.clear();
                    if relaxed {
                        block_on(db.shutdown()).unwrap();
                    }
                    drop((t, db));
                    db = open_on(disk.clone(), config.clone());
                    t = db.table("d", "t").unwrap();
                }
            }
            for (txn, then) in &mut snapshots {
                txn.begin_statement();
                block_on(check(txn, &t, then));
            }
            block_on(async { check(&mut begin_rr(&db, &t).await, &t, &model).await });
        }
    }
}
