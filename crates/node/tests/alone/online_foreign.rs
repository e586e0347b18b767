//! Statements go on while ADD FOREIGN KEY validates the rows: they are made between the batches, at its fault point. In
//! the end every row has its parent, or the DDL has failed; and a statement never does.

use crate::support::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rauk_log::fault;
use rauk_node::*;
use rauk_types::{ColumnId, ForeignKey, IndexId, IndexKind, MysqlError, ReferenceAction, TableSchema, Value};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

const POINT: &str = "node.ddl.validate";
const SHORT: Duration = Duration::from_millis(30);
/// Three batches.
const ROWS: i64 = 1_200;
const PARENTS: i64 = 40;

/// How parents are found.
#[derive(Clone, Copy, PartialEq, Debug)]
enum By {
    /// The primary key.
    Id,
    /// A unique index.
    Code,
    /// The first column of an ordered index.
    Value,
}

const ALL: [By; 3] = [By::Id, By::Code, By::Value];

fn code_of(error: NodeError) -> u16 {
    MysqlError::from(error).code
}

fn foreign_key(by: By, on_delete: ReferenceAction) -> ForeignKey {
    let (column, parent) = match by {
        By::Id => (1, "id"),
        By::Code => (2, "code"),
        By::Value => (1, "value"),
    };
    ForeignKey {
        name: "new_key".into(),
        columns: vec![ColumnId(column)],
        parent_database: "d".into(),
        parent_table: "p".into(),
        parent_columns: vec![parent.into()],
        on_delete,
        on_update: ReferenceAction::NoAction,
    }
}

/// Child rows may have any value and code.
fn children() -> TableSchema {
    let mut schema = accounts("t");
    schema.indexes[2] = index(2, "by_code", IndexKind::Ordered, &[2]);
    schema
}

fn child(id: i64, parent: i64) -> Vec<Value> {
    account(id, parent, Some(&format!("c{parent}")))
}

/// Found by each of its columns.
fn parent(id: i64) -> Vec<Value> {
    account(id, id, Some(&format!("c{id}")))
}

struct Tables {
    db: Database,
    p: TableHandle,
    t: TableHandle,
}

fn filled() -> Tables {
    let db = database();
    block_on(async {
        db.create_table(accounts("p")).await.unwrap();
        db.create_table(children()).await.unwrap();
        let (p, t) = (db.table("d", "p").unwrap(), db.table("d", "t").unwrap());
        insert_all(&db, &p, &(0..PARENTS).map(parent).collect::<Vec<_>>()).await;
        insert_all(&db, &t, &(0..ROWS).map(|id| child(id, id % PARENTS)).collect::<Vec<_>>()).await;
        Tables { db, p, t }
    })
}

impl Tables {
    fn add(&self, by: By) -> Result<(), NodeError> {
        let t = self.db.table("d", "t").unwrap();
        let mut new = (**t.schema()).clone();
        new.foreign_keys.push(foreign_key(by, ReferenceAction::NoAction));
        block_on(self.db.alter_table(&t, new, WAIT))
    }

    /// Adds the key, and calls `step` before each batch is looked at, with its number from 1.
    fn add_beside(&self, by: By, step: impl Fn(&Tables, u32) + 'static) -> Result<(), NodeError> {
        let hits = Cell::new(0);
        let own = Tables { db: self.db.clone(), p: self.p.clone(), t: self.t.clone() };
        let local = fault::Local::new(move |name| {
            if name == POINT {
                hits.set(hits.get() + 1);
                step(&own, hits.get());
            }
            Ok(())
        });
        let done = self.add(by);
        drop(local);
        done
    }

    async fn begin(&self) -> Transaction {
        let mut txn = begin_rr(&self.db, &self.t).await;
        txn.use_table(&self.p).await.unwrap();
        txn
    }

    /// Rows whose parent is not there.
    async fn orphans(&self, by: By) -> Vec<i64> {
        let (p, t) = (self.db.table("d", "p").unwrap(), self.db.table("d", "t").unwrap());
        let column = |row: &[Value], child: bool| match (by, child) {
            (By::Id, false) => row[0].clone(),
            (By::Code, _) => row[2].clone(),
            (By::Id, true) | (By::Value, _) => row[1].clone(),
        };
        let parents: Vec<Value> = contents(&self.db, &p).await.iter().map(|row| column(row, false)).collect();
        let children = contents(&self.db, &t).await;
        let orphans =
            children.iter().filter(|row| !column(row, true).is_null() && !parents.contains(&column(row, true)));
        first_column(&orphans.cloned().collect::<Vec<_>>())
    }

    fn has_key(&self) -> bool {
        !self.db.table("d", "t").unwrap().schema().foreign_keys.is_empty()
    }
}

async fn delete(txn: &mut Transaction, table: &TableHandle, id: i64) {
    let row = get_for_update(txn, table, id).await.unwrap().expect("the row is there");
    assert!(txn.delete(table, &row).await.unwrap());
}

async fn change(txn: &mut Transaction, table: &TableHandle, id: i64, new: Vec<Value>) {
    let row = get_for_update(txn, table, id).await.unwrap().expect("the row is there");
    assert_eq!(txn.update(table, &row, &new).await.unwrap(), UpdateOutcome::Updated);
}

#[test]
fn writers_who_keep_the_constraint_go_on() {
    for by in ALL {
        let tables = filled();
        let done = tables.add_beside(by, move |tables, hit| {
            let hit = i64::from(hit);
            block_on(async {
                // A parent comes with its children, and goes with them.
                let mut txn = tables.begin().await;
                txn.insert(&tables.t, &child(5000 + hit, 100 + hit)).await.unwrap();
                txn.insert(&tables.p, &parent(100 + hit)).await.unwrap();
                txn.commit().await.unwrap();
                let mut txn = tables.begin().await;
                delete(&mut txn, &tables.p, hit).await;
                for id in (0..ROWS).filter(|id| id % PARENTS == hit) {
                    match id % 3 {
                        0 => delete(&mut txn, &tables.t, id).await,
                        _ => change(&mut txn, &tables.t, id, child(id, 20 + hit)).await,
                    }
                }
                txn.commit().await.unwrap();
                // One without children goes; what is undone has not been; a NULL refers to nothing.
                insert_all(&tables.db, &tables.p, &[parent(300 + hit)]).await;
                let mut txn = tables.begin().await;
                delete(&mut txn, &tables.p, 300 + hit).await;
                txn.commit().await.unwrap();
                let mut txn = tables.begin().await;
                delete(&mut txn, &tables.p, 10 + hit).await;
                txn.insert(&tables.t, &child(7000 + hit, 999)).await.unwrap();
                txn.rollback();
                if by == By::Code {
                    insert_all(&tables.db, &tables.t, &[account(8000 + hit, 999, None)]).await;
                }
            });
        });
        assert_eq!(done, Ok(()), "{by:?}");
        block_on(async {
            assert!(tables.has_key());
            assert_eq!(tables.orphans(by).await, [0; 0], "{by:?}");
            // From here on it is kept by everybody.
            let (p, t) = (tables.db.table("d", "p").unwrap(), tables.db.table("d", "t").unwrap());
            let mut txn = begin_rr(&tables.db, &t).await;
            assert_eq!(code_of(txn.insert(&t, &child(9000, 999)).await.unwrap_err()), 1452);
            txn.use_table(&p).await.unwrap();
            let row = get_for_update(&mut txn, &p, 30).await.unwrap().unwrap();
            assert_eq!(code_of(txn.delete(&p, &row).await.unwrap_err()), 1451);
        });
    }
}

/// What breaks the constraint, by a statement that is right as long as nobody has it.
#[test]
fn writers_who_break_it_fail_the_ddl_and_not_themselves() {
    type Step = fn(&Tables, i64) -> std::pin::Pin<Box<dyn Future<Output = ()> + '_>>;
    let steps: [Step; 4] = [
        // A child without a parent.
        |tables, hit| Box::pin(async move { insert_all(&tables.db, &tables.t, &[child(5000 + hit, 999)]).await }),
        // A child that loses its parent by its own change.
        |tables, _| {
            Box::pin(async move {
                let mut txn = tables.begin().await;
                change(&mut txn, &tables.t, 7, child(7, 999)).await;
                txn.commit().await.unwrap();
            })
        },
        // A parent that goes.
        |tables, _| {
            Box::pin(async move {
                let mut txn = tables.begin().await;
                delete(&mut txn, &tables.p, 3).await;
                txn.commit().await.unwrap();
            })
        },
        // A parent that gets another key, in each of its columns.
        |tables, _| {
            Box::pin(async move {
                let mut txn = tables.begin().await;
                change(&mut txn, &tables.p, 3, parent(500)).await;
                txn.commit().await.unwrap();
            })
        },
    ];
    for by in ALL {
        for (number, step) in steps.into_iter().enumerate() {
            for at in 1..=3 {
                let tables = filled();
                let done = tables.add_beside(by, move |tables, hit| {
                    if hit == at {
                        block_on(step(tables, i64::from(hit)));
                    }
                });
                assert_eq!(code_of(done.expect_err("it is broken")), 1452, "{by:?}, step {number} at {at}");
                assert!(!tables.has_key());
                // Nothing is left of it: the same can be written again, and other DDL comes.
                block_on(async {
                    insert_all(&tables.db, &tables.t, &[child(6000, 998)]).await;
                    tables.db.truncate_table("d", "t", WAIT).await.unwrap();
                });
                assert_eq!(tables.add(by), Ok(()));
            }
        }
    }
}

/// Transactions that are under way when the rows are looked at, and end in every order.
#[test]
fn open_transactions_are_met_wherever_they_are() {
    for by in ALL {
        for (parent_ends_first, parent_commits, child_commits) in (0..8).map(|n| (n & 1 != 0, n & 2 != 0, n & 4 != 0)) {
            let tables = filled();
            block_on(insert_all(&tables.db, &tables.p, &[parent(100), parent(101)]));
            let open: Rc<RefCell<Option<(Transaction, Transaction)>>> = Rc::default();
            let done = tables.add_beside(by, move |tables, hit| {
                block_on(async {
                    match hit {
                        1 => {
                            // Each for itself keeps the constraint, by what it can see.
                            let (mut a, mut b) = (tables.begin().await, tables.begin().await);
                            delete(&mut a, &tables.p, 100).await;
                            b.insert(&tables.t, &child(5000, 101)).await.unwrap();
                            *open.borrow_mut() = Some((a, b));
                        }
                        2 => {
                            let (a, b) = open.borrow_mut().take().unwrap();
                            let end = async |txn: Transaction, commits: bool| {
                                if commits { txn.commit().await.unwrap() } else { txn.rollback() }
                            };
                            if parent_ends_first {
                                end(a, parent_commits).await;
                                end(b, child_commits).await;
                            } else {
                                end(b, child_commits).await;
                                end(a, parent_commits).await;
                            }
                            // Two sides of one key, one after the other.
                            let mut txn = tables.begin().await;
                            delete(&mut txn, &tables.p, 101).await;
                            txn.commit().await.unwrap();
                        }
                        _ => {}
                    }
                });
            });
            let orphans = block_on(tables.orphans(by));
            assert_eq!(done.is_err(), child_commits, "{by:?}: {done:?}");
            assert_eq!(orphans.is_empty(), !child_commits);
            assert_eq!(tables.has_key(), !child_commits);
        }
    }
}

/// Random transactions of both sides: whoever keeps the constraint never fails the DDL, and what is broken in the end
/// always does.
#[test]
fn random_histories_agree_with_a_look_at_all_rows() {
    let (mut kept, mut broken) = (0, 0);
    for seed in 0..60 {
        let by = ALL[seed as usize % 3];
        let tables = filled();
        let rng = RefCell::new(SmallRng::seed_from_u64(seed));
        let faithful = seed % 2 == 0;
        let done = tables.add_beside(by, move |tables, _| {
            let rng = &mut *rng.borrow_mut();
            for _ in 0..20 {
                block_on(some_writes(tables, rng, faithful));
            }
        });
        let orphans = block_on(tables.orphans(by));
        match done {
            Ok(()) => {
                assert_eq!(orphans, [0; 0], "seed {seed}");
                kept += 1;
            }
            Err(error) => {
                assert!(!faithful, "seed {seed}: {error:?}");
                assert_eq!(code_of(error), 1452);
                broken += 1;
            }
        }
        assert!(orphans.is_empty() || !faithful);
    }
    assert!(kept >= 30 && broken > 5, "{kept} {broken}");
}

/// One transaction; `faithful`: it leaves no row without a parent.
async fn some_writes(tables: &Tables, rng: &mut SmallRng, faithful: bool) {
    let mut txn = tables.begin().await;
    let id = rng.random_range(0..PARENTS + 4);
    let has = |row: Option<Vec<Value>>| row.is_some();
    let exists = has(get_for_update(&mut txn, &tables.p, id).await.unwrap());
    let child_id = rng.random_range(0..ROWS + 200);
    let has_child = has(get_for_update(&mut txn, &tables.t, child_id).await.unwrap());
    let careless = !faithful && rng.random_ratio(1, 20);
    match rng.random_range(0..4) {
        0 if !exists => {
            txn.insert(&tables.p, &parent(id)).await.unwrap();
        }
        1 if exists => {
            // With its children, unless it is careless.
            delete(&mut txn, &tables.p, id).await;
            let rows = scan(&mut txn, &tables.t, all(Some(1))).await;
            for row in rows.iter().filter(|row| row[1] == int(id) && !careless) {
                let Value::Int(own) = row[0] else { unreachable!("ids are integers") };
                delete(&mut txn, &tables.t, own).await;
            }
        }
        2 if exists || careless => match has_child {
            true => change(&mut txn, &tables.t, child_id, child(child_id, id)).await,
            false => {
                txn.insert(&tables.t, &child(child_id, id)).await.unwrap();
            }
        },
        _ if has_child => delete(&mut txn, &tables.t, child_id).await,
        _ => {}
    }
    match rng.random_ratio(1, 6) {
        true => txn.rollback(),
        false => txn.commit().await.unwrap(),
    }
}

/// A table that refers to itself, and one that gets the key's index by the same statement.
#[test]
fn a_table_may_be_its_own_parent_and_get_the_index_with_the_key() {
    let (db, t) = database_with(pairs("t"));
    block_on(insert_all(&db, &t, &(0..600).map(|id| vec![int(id), int(id / 2)]).collect::<Vec<_>>()));
    let with_key = |t: &TableHandle| {
        let mut new = (**t.schema()).clone();
        new.indexes.push(index(6, "by_value", IndexKind::Ordered, &[1]));
        let mut key = foreign_key(By::Id, ReferenceAction::Cascade);
        key.parent_table = "t".into();
        new.foreign_keys.push(key);
        new
    };
    let beside = |step: fn(&Database, &TableHandle)| {
        let (own_db, own_t) = (db.clone(), t.clone());
        let local = fault::Local::new(move |name| {
            if name == POINT {
                step(&own_db, &own_t);
            }
            Ok(())
        });
        let done = block_on(db.alter_table(&t, with_key(&t), WAIT));
        drop(local);
        done
    };
    let broken = beside(|db, t| {
        block_on(async {
            let mut txn = begin_rr(db, t).await;
            delete(&mut txn, t, 4).await;
            txn.commit().await.unwrap();
        })
    });
    assert_eq!(code_of(broken.unwrap_err()), 1452);
    block_on(insert_all(&db, &t, &[vec![int(4), int(2)]]));
    let kept = beside(|db, t| {
        block_on(async {
            let mut txn = begin_rr(db, t).await;
            txn.insert(t, &[int(2000), int(2000)]).await.unwrap();
            change(&mut txn, t, 599, vec![int(599), int(2000)]).await;
            txn.commit().await.unwrap();
            let mut txn = begin_rr(db, t).await;
            change(&mut txn, t, 599, vec![int(599), int(599)]).await;
            delete(&mut txn, t, 2000).await;
            txn.commit().await.unwrap();
        })
    });
    assert_eq!(kept, Ok(()));
    block_on(async {
        let t = db.table("d", "t").unwrap();
        let mut txn = begin_rr(&db, &t).await;
        assert_eq!(scan(&mut txn, &t, all(Some(6))).await.len(), 600);
        // Row 1 takes 2 and 3 along, these 4 to 7, and so on.
        delete(&mut txn, &t, 256).await;
        txn.commit().await.unwrap();
        assert_eq!(contents(&db, &t).await.len(), 600 - 1 - 2);
        assert_eq!(t.schema().index(IndexId(6)).unwrap().name, "by_value");
    });
}

#[test]
fn parents_are_reserved_with_their_child() {
    let tables = filled();
    let done = tables.add_beside(By::Id, |tables, hit| {
        if hit > 1 {
            return;
        }
        block_on(async {
            assert_eq!(tables.db.truncate_table("d", "p", SHORT).await, Err(NodeError::LockTimeout));
            let to = ("d".to_string(), "q".to_string());
            let renamed = tables.db.rename_tables(&[(("d".to_string(), "p".to_string()), to)], SHORT).await;
            assert_eq!(renamed, Err(NodeError::LockTimeout));
            let mut reader = tables.begin().await;
            assert_eq!(scan(&mut reader, &tables.t, all(None)).await.len(), ROWS as usize);
        });
    });
    assert_eq!(done, Ok(()));
}

/// A process that dies while it validates leaves no key and no table of notes; what was written is there.
#[test]
fn what_is_written_beside_is_recovered() {
    let disk = rauk_log::MemoryDisk::new();
    let db = open_on(disk.clone(), config());
    block_on(async {
        db.create_database("d", Default::default()).await.unwrap();
        db.create_table(accounts("p")).await.unwrap();
        db.create_table(children()).await.unwrap();
    });
    let tables = Tables { p: db.table("d", "p").unwrap(), t: db.table("d", "t").unwrap(), db };
    block_on(insert_all(&tables.db, &tables.p, &(0..PARENTS).map(parent).collect::<Vec<_>>()));
    block_on(insert_all(&tables.db, &tables.t, &(0..ROWS).map(|id| child(id, id % PARENTS)).collect::<Vec<_>>()));
    let image: Rc<RefCell<Option<std::sync::Arc<rauk_log::MemoryDisk>>>> = Rc::default();
    let (kept, source) = (image.clone(), disk.clone());
    let done = tables.add_beside(By::Id, move |tables, hit| {
        if hit == 2 {
            block_on(async {
                let mut txn = tables.begin().await;
                delete(&mut txn, &tables.p, 3).await;
                txn.commit().await.unwrap();
                insert_all(&tables.db, &tables.p, &[parent(3)]).await;
                tables.db.checkpoint().await.unwrap();
            });
            *kept.borrow_mut() = Some(source.copy());
        }
    });
    assert_eq!(done, Ok(()));
    drop(tables);
    for (disk, has_key) in [(disk, true), (image.borrow_mut().take().expect("it was taken"), false)] {
        let db = open_on(disk, config());
        let (p, t) = (db.table("d", "p").unwrap(), db.table("d", "t").unwrap());
        let tables = Tables { db, p, t };
        assert_eq!(tables.has_key(), has_key);
        block_on(async {
            assert_eq!(contents(&tables.db, &tables.p).await.len(), PARENTS as usize);
            assert_eq!(tables.orphans(By::Id).await, [0; 0]);
        });
        if !has_key {
            assert_eq!(tables.add(By::Id), Ok(()));
        }
    }
}
