//! Statements go on while a table is copied into another form: they are made in the middle of the copy, at its fault
//! points, and in the end the new table has what they wrote.

use crate::online_ddl::{at_point, check_indexes, code, delete, t_now, update};
use crate::partitions;
use crate::support::*;
use rauk_log::{Disk, MemoryDisk, fault};
use rauk_node::*;
use rauk_types::partitioning::UserPartition;
use rauk_types::{IndexKind, MysqlError, TableSchema, Value};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

type Rows = BTreeMap<i64, Vec<Value>>;

/// Enough for several batches of the pass.
const ROWS: i64 = 1200;

fn row(id: i64, value: i64) -> Vec<Value> {
    account(id, value, Some(&format!("c{id}")))
}

/// The value as a text, by which rows have a unique key too.
fn in_unique_texts(t: &TableHandle) -> TableSchema {
    let mut new = in_texts(t);
    new.indexes.push(index(9, "by_text", IndexKind::Unique, &[1]));
    new
}

fn filled(db: &Database) -> (TableHandle, Rows) {
    block_on(async {
        db.create_database("d", Default::default()).await.unwrap();
        db.create_table(accounts("t")).await.unwrap();
    });
    let t = db.table("d", "t").unwrap();
    let rows: Rows = (0..ROWS).map(|id| (id, row(id, 10_000 + id))).collect();
    block_on(insert_all(db, &t, &rows.values().cloned().collect::<Vec<_>>()));
    (t, rows)
}

/// What is written, in the table and in the rows that are expected.
struct Writer<'a> {
    txn: Transaction,
    t: &'a TableHandle,
    rows: Rows,
}

impl<'a> Writer<'a> {
    async fn begin(db: &Database, t: &'a TableHandle, rows: &Rows) -> Writer<'a> {
        Writer { txn: begin_rr(db, t).await, t, rows: rows.clone() }
    }

    /// The row with this id becomes the one with that id and value.
    async fn update(&mut self, id: i64, to: i64, value: i64) {
        let old = self.rows.remove(&id).expect("the row is there");
        update(&mut self.txn, self.t, &old, &row(to, value)).await;
        self.rows.insert(to, row(to, value));
    }

    async fn insert(&mut self, id: i64, value: i64) {
        assert_eq!(self.txn.insert(self.t, &row(id, value)).await.unwrap(), InsertOutcome::Inserted);
        self.rows.insert(id, row(id, value));
    }

    async fn delete(&mut self, id: i64) {
        delete(&mut self.txn, self.t, id).await;
        self.rows.remove(&id);
    }

    async fn commit(self) -> Rows {
        self.txn.commit().await.unwrap();
        self.rows
    }
}

/// All sorts of changes, over rows that were copied and rows that were not.
async fn change(db: &Database, t: &TableHandle, rows: &RefCell<Rows>, turn: i64) {
    assert!(contents(db, t).await.len() as i64 > ROWS / 2, "readers go on");
    let before = rows.borrow().clone();
    let ids: Vec<i64> = before.keys().copied().collect();
    let pick = |n: i64| ids[((n * 131 + turn * 57) as usize) % ids.len()];
    let mut writer = Writer::begin(db, t, &before).await;
    let mut used = vec![];
    for n in 0..30 {
        let id = pick(n);
        if used.contains(&id) {
            continue;
        }
        used.push(id);
        let new = turn * 1000 + n;
        match n % 5 {
            0 => writer.update(id, id, 20_000 + new).await,
            1 => writer.delete(id).await,
            2 => writer.update(id, 50_000 + new, 30_000 + new).await,
            // It goes and comes back.
            3 => {
                writer.delete(id).await;
                writer.insert(id, 40_000 + new).await;
            }
            _ => writer.insert(100_000 + new, 60_000 + new).await,
        }
    }
    // Two rows exchange their unique values, and one gets the value of a row that goes.
    let left: Vec<i64> = ids.iter().copied().filter(|id| !used.contains(id)).collect();
    let value = |writer: &Writer<'_>, id: i64| match writer.rows[&id][1] {
        Value::Int(v) => v,
        _ => panic!("a value is a number"),
    };
    let at = |n: i64| left[((n * 211 + turn * 17) as usize) % left.len()];
    let (a, b, c, d) = (at(1), at(2), at(3), at(4));
    let (of_a, of_b, of_c) = (value(&writer, a), value(&writer, b), value(&writer, c));
    writer.update(a, a, of_b).await;
    writer.update(b, b, of_a).await;
    writer.delete(c).await;
    writer.update(d, d, of_c).await;
    *rows.borrow_mut() = writer.commit().await;
    // What is rolled back has changed nothing.
    let now = rows.borrow().clone();
    let mut gone = Writer::begin(db, t, &now).await;
    gone.delete(a).await;
    gone.update(b, b, 1).await;
    gone.insert(200_000 + turn, 2).await;
    gone.txn.rollback();
}

fn expected(rows: &Rows) -> Vec<Vec<Value>> {
    rows.values().map(|row| as_text(row).unwrap()).collect()
}

#[test]
fn rows_are_written_while_they_are_copied() {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let db = open_on(disk.clone(), config());
    let (t, rows) = filled(&db);
    let rows = Rc::new(RefCell::new(rows));
    let points = Rc::new(RefCell::new(BTreeMap::new()));
    let local = {
        let (db, t, rows, points) = (db.clone(), t.clone(), rows.clone(), points.clone());
        fault::Local::new(move |name| {
            if name == "node.ddl.copy" || name == "node.ddl.copy_again" {
                let turn = {
                    let mut points = points.borrow_mut();
                    *points.entry(name).or_insert(0) += 1;
                    points.values().sum::<i64>()
                };
                // Not for ever: rounds end when little is written.
                if turn < 12 {
                    block_on(change(&db, &t, &rows, turn));
                }
            }
            Ok(())
        })
    };
    let copied = block_on(db.rewrite_table(&t, in_unique_texts(&t), WAIT, &mut as_text)).unwrap();
    drop(local);
    assert!(points.borrow()["node.ddl.copy"] >= 3 && points.borrow()["node.ddl.copy_again"] >= 2, "{points:?}");
    assert_eq!(copied as usize, rows.borrow().len());
    block_on(async {
        let t = t_now(&db);
        assert_eq!(contents(&db, &t).await, expected(&rows.borrow()));
        check_indexes(&db, &t).await;
    });
    drop(db);
    let db = open_on(disk, config());
    let t = t_now(&db);
    block_on(async {
        assert_eq!(contents(&db, &t).await, expected(&rows.borrow()));
        check_indexes(&db, &t).await;
    });
}

#[test]
fn a_copy_that_is_cut_off_leaves_what_was_written_and_nothing_else() {
    for stop_at in [1, 2, 3, 4, 5, 7, 9] {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        let db = open_on(disk.clone(), config());
        let (t, rows) = filled(&db);
        let rows = Rc::new(RefCell::new(rows));
        let local = {
            let (db, t, rows) = (db.clone(), t.clone(), rows.clone());
            let turns = std::cell::Cell::new(0);
            fault::Local::new(move |name| {
                if name == "node.ddl.copy" || name == "node.ddl.copy_again" || name == "node.ddl.before_switch" {
                    turns.set(turns.get() + 1);
                    if turns.get() == stop_at {
                        return Err(std::io::ErrorKind::StorageFull.into());
                    }
                    if turns.get() < 6 && name != "node.ddl.before_switch" {
                        block_on(change(&db, &t, &rows, turns.get()));
                    }
                }
                Ok(())
            })
        };
        let done = block_on(db.rewrite_table(&t, in_unique_texts(&t), WAIT, &mut as_text));
        drop(local);
        let as_it_was: Vec<_> = rows.borrow().values().cloned().collect();
        let now = if done.is_ok() { expected(&rows.borrow()) } else { as_it_was };
        assert_eq!(block_on(contents(&db, &t_now(&db))), now, "stopped at {stop_at}");
        drop(db);
        let db = open_on(disk, config());
        assert_eq!(block_on(contents(&db, &t_now(&db))), now, "stopped at {stop_at}, after a restart");
        if done.is_err() {
            block_on(db.rewrite_table(&t_now(&db), in_unique_texts(&t_now(&db)), WAIT, &mut as_text)).unwrap();
        }
        assert_eq!(block_on(contents(&db, &t_now(&db))), expected(&rows.borrow()));
    }
}

/// Values that are one text in the new form.
fn halved(row: &[Value]) -> Result<Vec<Value>, MysqlError> {
    let Value::Int(v) = row[1] else { panic!("{row:?}") };
    Ok(vec![row[0].clone(), text(&format!("v{}", v / 2)), row[2].clone()])
}

#[test]
fn a_key_that_two_rows_have_in_the_new_form_is_refused() {
    let (db, t) = database_with(accounts("t"));
    let even: Vec<_> = (0..ROWS).map(|id| row(id, 2 * id)).collect();
    block_on(insert_all(&db, &t, &even));
    // There before the copy, and brought by a writer: in the middle of the pass, and behind it.
    for point in ["", "node.ddl.copy", "node.ddl.copy_again"] {
        let bring = {
            let (db, t) = (db.clone(), t.clone());
            move || block_on(insert_all(&db, &t, &[row(5000, 2 * 7 + 1)]))
        };
        if point.is_empty() {
            bring();
        }
        let local = {
            let (db, t) = (db.clone(), t.clone());
            let hits = RefCell::new(BTreeMap::new());
            fault::Local::new(move |name| {
                let mut hits = hits.borrow_mut();
                let hit: &mut u32 = hits.entry(name).or_default();
                *hit += 1;
                match *hit {
                    // Something is noted, so that there is a round.
                    1 if name == "node.ddl.copy" => block_on(insert_all(&db, &t, &[row(6000, 20_000)])),
                    2 if name == "node.ddl.copy" && name == point => bring(),
                    1 if name == "node.ddl.copy_again" && name == point => bring(),
                    _ => {}
                }
                Ok(())
            })
        };
        let done = block_on(db.rewrite_table(&t, in_unique_texts(&t), WAIT, &mut halved));
        drop(local);
        assert_eq!(code(done.unwrap_err()), 1062, "{point}");
        assert!(!t.is_stale());
        block_on(async {
            let mut txn = begin_rr(&db, &t).await;
            delete(&mut txn, &t, 5000).await;
            if get_for_update(&mut txn, &t, 6000).await.unwrap().is_some() {
                delete(&mut txn, &t, 6000).await;
            }
            txn.commit().await.unwrap();
            assert_eq!(contents(&db, &t).await, even);
        });
    }
    block_on(db.rewrite_table(&t, in_unique_texts(&t), WAIT, &mut halved)).unwrap();
}

#[test]
fn many_rows_with_one_key_are_refused_at_the_first() {
    let (db, t) = database_with(accounts("t"));
    block_on(insert_all(&db, &t, &(0..ROWS).map(|id| row(id, id)).collect::<Vec<_>>()));
    let conversions = AtomicU32::new(0);
    let mut same = |row: &[Value]| {
        conversions.fetch_add(1, Ordering::Relaxed);
        Ok(vec![row[0].clone(), text("same"), row[2].clone()])
    };
    let done = block_on(db.rewrite_table(&t, in_unique_texts(&t), WAIT, &mut same));
    assert_eq!(code(done.unwrap_err()), 1062);
    assert!(conversions.load(Ordering::Relaxed) < 600, "{conversions:?}: one batch, and both rows once more");
}

/// A writer that has not ended is passed by in the rounds, and waited for at the end.
#[test]
fn a_transaction_that_stays_open_is_waited_for() {
    let (db, t) = database_with(accounts("t"));
    block_on(insert_all(&db, &t, &(0..ROWS).map(|id| row(id, id)).collect::<Vec<_>>()));
    let open: Rc<RefCell<Option<Transaction>>> = Rc::default();
    let local = {
        let (db, t, open) = (db.clone(), t.clone(), open.clone());
        at_point("node.ddl.copy", move |hit| {
            block_on(async {
                if hit == 1 {
                    let mut txn = begin_rr(&db, &t).await;
                    update(&mut txn, &t, &row(3, 3), &row(3, 777_777)).await;
                    *open.borrow_mut() = Some(txn);
                }
            });
            Ok(())
        })
    };
    let short = Duration::from_millis(50);
    let done = block_on(db.rewrite_table(&t, in_unique_texts(&t), short, &mut as_text));
    assert_eq!(done, Err(NodeError::LockTimeout));
    drop(local);
    // It is undone when he has gone.
    let txn = open.borrow_mut().take().unwrap();
    block_on(txn.commit()).unwrap();
    block_on(async {
        let mut txn = begin_rr(&db, &t).await;
        update(&mut txn, &t, &row(4, 4), &row(4, 888_888)).await;
        txn.commit().await.unwrap();
        assert_eq!(contents(&db, &t).await.len() as i64, ROWS);
    });
    assert_eq!(block_on(db.rewrite_table(&t, in_unique_texts(&t), WAIT, &mut as_text)), Ok(ROWS as u64));
    let rows = block_on(contents(&db, &t_now(&db)));
    assert_eq!((&rows[3][1], &rows[4][1]), (&text("v777777"), &text("v888888")));
}

#[test]
fn a_table_is_partitioned_and_reorganized_while_it_is_written() {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let db = partitions::reopened(&disk);
    let (_, rows) = filled(&db);
    let rows = Rc::new(RefCell::new(rows));
    let run = |db: &Database, work: &dyn Fn(&Database, &TableHandle) -> Result<u64, NodeError>| {
        let t = t_now(db);
        let local = {
            let (db, t, rows) = (db.clone(), t.clone(), rows.clone());
            let turns = std::cell::Cell::new(0);
            fault::Local::new(move |name| {
                if name == "node.ddl.copy" || name == "node.ddl.copy_again" {
                    turns.set(turns.get() + 1);
                    if turns.get() < 6 {
                        let first = rows.borrow().len() as i64 * 10;
                        block_on(change(&db, &t, &rows, first + turns.get()));
                    }
                }
                Ok(())
            })
        };
        work(db, &t).unwrap();
        drop(local);
        let now: Vec<_> = rows.borrow().values().cloned().collect();
        assert_eq!(block_on(contents(db, &t_now(db))), now);
        block_on(check_indexes(db, &t_now(db)));
    };
    let same = |row: &[Value]| Ok(row.to_vec());
    let last = partitions::partition("rest", 1_000_000_000);
    let with_partitions = |t: &TableHandle, partitions: Vec<UserPartition>| {
        let partitioning = partitions::by_first_column(partitions);
        TableSchema { partitioning: Some(Arc::new(partitioning)), ..(**t.schema()).clone() }
    };
    run(&db, &|db, t| {
        let below = [("p0", 300), ("p1", 600)].map(|(name, bound)| partitions::partition(name, bound));
        let new = with_partitions(t, below.into_iter().chain([last.clone()]).collect());
        block_on(db.rewrite_table(t, new, WAIT, &mut { same }))
    });
    run(&db, &|db, t| {
        let mut new = (**t.schema()).clone();
        let partitions = &mut Arc::make_mut(new.partitioning.as_mut().unwrap()).partitions;
        let [a, b] = [("q0", 450), ("q1", 600)].map(|(name, bound)| partitions::partition(name, bound));
        partitions.splice(0..2, [a, b]);
        block_on(db.reorganize_leaves(t, new, WAIT))
    });
    run(&db, &|db, t| {
        let new = TableSchema { partitioning: None, ..(**t.schema()).clone() };
        block_on(db.rewrite_table(t, new, WAIT, &mut { same }))
    });
    drop(db);
    let db = partitions::reopened(&disk);
    let now: Vec<_> = rows.borrow().values().cloned().collect();
    assert_eq!(block_on(contents(&db, &t_now(&db))), now);
}
