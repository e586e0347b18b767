//! Partitions of a user's partitioned table come, go, are emptied and change places with a table: what rows there are then, and crashes in the middle.

use crate::support::*;
use rauk_log::{Disk, MemoryDisk, fault};
use rauk_node::*;
use rauk_types::partitioning::*;
use rauk_types::{DataType, IndexKind, MysqlError, TableSchema, Value};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// Tables of this file are divided by a column.
struct Nothing;

impl Evaluator for Nothing {
    fn compute_generated(&self, _: &Arc<TableSchema>, _: &mut [Value]) -> Result<(), MysqlError> {
        Ok(())
    }

    fn partition_value(&self, _: &TableSchema, _: bool, _: &[Value]) -> Result<Option<i128>, MysqlError> {
        unreachable!("no table is divided by an expression")
    }

    fn prepare(&self, _: &[u8], _: &Arc<TableSchema>) -> Option<Box<dyn RowProgram>> {
        None
    }

    fn prepare_change(&self, _: &[u8], _: &Arc<TableSchema>) -> Option<Box<dyn RowChange>> {
        None
    }
}

/// `CREATE TABLE name (id BIGINT AUTO_INCREMENT PRIMARY KEY, value BIGINT, UNIQUE by_both (value, id), KEY by_value (value))`
fn numbered(name: &str) -> TableSchema {
    let columns = vec![column(0, "id", DataType::BIGINT, false), column(1, "value", DataType::BIGINT, false)];
    let indexes = vec![
        index(0, "PRIMARY", IndexKind::Primary, &[0]),
        index(1, "by_both", IndexKind::Unique, &[1, 0]),
        index(2, "by_value", IndexKind::Ordered, &[1]),
    ];
    TableSchema { auto_increment: Some(0), ..schema(name, columns, indexes) }
}

pub fn partition(name: &str, below: i64) -> UserPartition {
    UserPartition {
        name: name.to_string(),
        values: PartitionValues::LessThan(vec![PartitionBound::Value(int(below))]),
        options: PartitionOptions::default(),
        leaves: vec![Leaf::new(None)],
    }
}

/// `PARTITION BY RANGE COLUMNS` of the first column.
pub fn by_first_column(partitions: Vec<UserPartition>) -> Partitioning {
    let on = PartitionOn::Columns { columns: vec![0], implied: false };
    let by = PartitionBy { method: PartitionMethod::Range, on };
    Partitioning { by, sub: None, partitions, counted: false, counted_sub: false, interval: None, dead_entries: false }
}

/// The same `PARTITION BY RANGE COLUMNS (id)`: `a` below 100, `b` below 200, `c` below 300.
fn divided(name: &str) -> TableSchema {
    let partitioning = by_first_column(vec![partition("a", 100), partition("b", 200), partition("c", 300)]);
    TableSchema { partitioning: Some(Arc::new(partitioning)), ..numbered(name) }
}

pub fn reopened(disk: &Arc<dyn Disk>) -> Database {
    let db = open_on(disk.clone(), config());
    db.set_evaluator(Arc::new(Nothing));
    db
}

fn rows(ids: std::ops::Range<i64>) -> Vec<Vec<Value>> {
    ids.map(|id| vec![int(id), int(1000 - id)]).collect()
}

/// `p` has ten rows in each partition, `t` five that belong to `b`.
fn filled(disk: &Arc<dyn Disk>) -> Database {
    let db = reopened(disk);
    block_on(async {
        db.create_database("d", Default::default()).await.unwrap();
        db.create_table(divided("p")).await.unwrap();
        db.create_table(numbered("t")).await.unwrap();
        let (p, t) = (db.table("d", "p").unwrap(), db.table("d", "t").unwrap());
        for first in [0, 100, 200] {
            insert_all(&db, &p, &rows(first..first + 10)).await;
        }
        insert_all(&db, &t, &rows(150..155)).await;
        db.observe_auto_increment(p.schema().id, 209).unwrap();
        db.observe_auto_increment(t.schema().id, 154).unwrap();
    });
    db
}

fn ids(rows: &[Vec<Value>]) -> Vec<i64> {
    let mut ids = first_column(rows);
    ids.sort_unstable();
    ids
}

/// The ids in `p` and in `t`, found by a scan of the rows, by each key and by the ordered index alike.
fn state(db: &Database) -> State {
    let of = |name: &str| {
        let table = db.table("d", name).unwrap();
        block_on(async {
            let found = contents(db, &table).await;
            let mut txn = begin_rr(db, &table).await;
            assert_eq!(ids(&scan(&mut txn, &table, all(Some(2))).await), ids(&found), "by_value of {name}");
            for row in &found {
                let mut key = Vec::new();
                table.primary_key().encode_values(row, &mut key);
                assert!(txn.get(&table, &key, None, |found| found.is_some()).await.unwrap(), "{row:?} of {name}");
                let mut key = Vec::new();
                table.unique_key(rauk_types::IndexId(1)).unwrap().encode_values(row, &mut key);
                let unique = rauk_types::IndexId(1);
                let seen = txn.get_unique(&table, unique, &key, None, |found| found.is_some()).await.unwrap();
                assert!(seen, "{row:?} of {name} by its unique key");
            }
            ids(&found)
        })
    };
    (of("p"), of("t"))
}

/// The table with other partitions.
fn with(p: &TableHandle, change: impl FnOnce(&mut Vec<UserPartition>)) -> TableSchema {
    let mut new = (**p.schema()).clone();
    change(&mut Arc::make_mut(new.partitioning.as_mut().unwrap()).partitions);
    new
}

type Change = fn(&Database) -> Result<(), NodeError>;
/// The ids in `p` and in `t`.
type State = (Vec<i64>, Vec<i64>);

fn drop_and_add(db: &Database) -> Result<(), NodeError> {
    let p = db.table("d", "p")?;
    let new = with(&p, |partitions| {
        partitions.remove(0);
        partitions.push(partition("e", 500));
    });
    block_on(db.change_partitions(&p, new, WAIT))
}

fn truncate(db: &Database) -> Result<(), NodeError> {
    let p = db.table("d", "p")?;
    let new = with(&p, |partitions| partitions[1].leaves[0].tables.clear());
    block_on(db.change_partitions(&p, new, WAIT))
}

/// `a` and `b` become one below 105 and one below 200; `c` stays.
fn reorganize(db: &Database) -> Result<(), NodeError> {
    let p = db.table("d", "p")?;
    let new = with(&p, |partitions| {
        partitions.splice(0..2, [partition("f", 105), partition("g", 200)]);
    });
    let kept = new.partitioning.as_ref().unwrap().partitions[2].leaves[0].tables.clone();
    let rows = block_on(db.reorganize_leaves(&p, new, WAIT))?;
    let now = db.table("d", "p")?;
    let now = now.schema().partitioning.as_ref().unwrap();
    assert_eq!((rows, &now.partitions[2].leaves[0].tables), (20, &kept), "what stays is not copied");
    Ok(())
}

fn exchange(db: &Database) -> Result<(), NodeError> {
    let (p, t) = (db.table("d", "p")?, db.table("d", "t")?);
    block_on(db.exchange_leaf(&p, 1, &t, true, WAIT))
}

/// From each first id up to, and without, the second.
fn many(ranges: &[(i64, i64)]) -> Vec<i64> {
    ranges.iter().flat_map(|(from, to)| *from..*to).collect()
}

#[test]
fn changes_of_partitions_are_whole_or_not_at_all() {
    let before = (many(&[(0, 10), (100, 110), (200, 210)]), many(&[(150, 155)]));
    let changes: [(Change, State); 4] = [
        (reorganize, before.clone()),
        (drop_and_add, (many(&[(100, 110), (200, 210)]), many(&[(150, 155)]))),
        (truncate, (many(&[(0, 10), (200, 210)]), many(&[(150, 155)]))),
        (exchange, (many(&[(0, 10), (150, 155), (200, 210)]), many(&[(100, 110)]))),
    ];
    for (change, after) in changes {
        let mut stops = 0;
        for stop_at in 1..400 {
            let disk: Arc<dyn Disk> = MemoryDisk::new();
            let db = filled(&disk);
            let hits = Rc::new(Cell::new(0));
            let count = hits.clone();
            // From this point on everything fails for lack of room, as if the process had ended.
            let local = fault::Local::new(move |name| {
                if name.starts_with("node.ddl.")
                    || name.starts_with("journal.append.before_write")
                    || name == "redo.append"
                {
                    count.set(count.get() + 1);
                    if count.get() >= stop_at {
                        return Err(std::io::ErrorKind::StorageFull.into());
                    }
                }
                Ok(())
            });
            let result = change(&db);
            drop(local);
            let expected = if result.is_err() { &before } else { &after };
            assert_eq!(state(&db), *expected);
            drop(db);
            let db = reopened(&disk);
            assert_eq!(state(&db), *expected, "after a restart");
            if result.is_err() {
                change(&db).unwrap();
            }
            assert_eq!(state(&db), after);
            // Whatever was there is gone for good, with what it took.
            drop(db);
            let db = reopened(&disk);
            block_on(db.checkpoint()).unwrap();
            drop(db);
            assert_eq!(state(&reopened(&disk)), after);
            if hits.get() < stop_at {
                break;
            }
            stops += 1;
        }
        assert!(stops >= 3, "{stops} steps");
    }
}

#[test]
fn a_row_that_no_new_partition_takes_leaves_all_as_it_was() {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let db = filled(&disk);
    let before = state(&db);
    let used = db.memory_used();
    let p = db.table("d", "p").unwrap();
    let new = with(&p, |partitions| {
        partitions.splice(1..3, [partition("f", 205)]);
    });
    let error = MysqlError::from(block_on(db.reorganize_leaves(&p, new, WAIT)).unwrap_err());
    assert_eq!(error.code, 1526, "{}", error.message);
    assert!(!p.is_stale());
    assert_eq!(state(&db), before);
    assert!(db.memory_used() < used + 20_000, "{} after {used}", db.memory_used());
}

#[test]
fn both_tables_go_on_counting_above_either_after_an_exchange() {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let db = filled(&disk);
    exchange(&db).unwrap();
    drop(db);
    let db = reopened(&disk);
    for name in ["p", "t"] {
        let table = db.table("d", name).unwrap();
        assert!(db.peek_auto_increment(table.schema().id) > 209, "{name}");
    }
}

#[test]
fn rows_of_another_partition_are_not_exchanged_unless_that_is_wanted() {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let db = filled(&disk);
    let (p, t) = (db.table("d", "p").unwrap(), db.table("d", "t").unwrap());
    let code = |result: Result<(), NodeError>| MysqlError::from(result.unwrap_err()).code;
    assert_eq!(code(block_on(db.exchange_leaf(&p, 0, &t, true, WAIT))), 1737);
    assert!(!p.is_stale() && !t.is_stale());
    block_on(db.exchange_leaf(&p, 0, &t, false, WAIT)).unwrap();
    let p = db.table("d", "p").unwrap();
    let misplaced = |leaves: [bool; 3]| {
        let mut txn = db.begin(TxnOptions::default());
        block_on(db.leaf_with_others(&p, &leaves, &mut txn)).unwrap()
    };
    assert_eq!((misplaced([true; 3]), misplaced([false, true, true])), (Some(0), None));
    // What is in a wrong place is found by a scan, and not changed in silence.
    block_on(async {
        let mut txn = begin_rr(&db, &p).await;
        let row = [int(150), int(850)];
        assert_eq!(code(txn.delete(&p, &row).await.map(drop)), 1863);
    });
}

#[test]
fn tables_that_are_not_alike_are_not_exchanged() {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let db = filled(&disk);
    let p = db.table("d", "p").unwrap();
    let mut others: Vec<(TableSchema, u16)> = Vec::new();
    let mut other = |code: u16, change: fn(&mut TableSchema)| {
        let mut schema = numbered(&format!("other{}", others.len()));
        change(&mut schema);
        others.push((schema, code));
    };
    other(1736, |t| t.columns[1].nullable = true);
    other(1736, |t| t.columns[1].name = "w".into());
    other(1736, |t| t.columns[1].ty = DataType::new(rauk_types::TypeKind::Int));
    other(1736, |t| t.indexes.truncate(2));
    other(1736, |t| t.indexes[2].parts[0].column = 0);
    other(1736, |t| t.auto_increment = None);
    other(1731, |t| t.columns[1].id = rauk_types::ColumnId(7));
    other(1731, |t| t.indexes[2].id = rauk_types::IndexId(7));
    other(1731, |t| t.fully_replicated = true);
    for (schema, expected) in others {
        let name = schema.name.clone();
        block_on(db.create_table(schema)).unwrap();
        let t = db.table("d", &name).unwrap();
        let error = MysqlError::from(block_on(db.exchange_leaf(&p, 2, &t, true, WAIT)).unwrap_err());
        assert_eq!(error.code, expected, "{name}: {}", error.message);
    }
}
