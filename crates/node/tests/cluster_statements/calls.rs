//! A statement in autocommit that makes one call to another node: the call goes with its commit. Changes that are made
//! where the row is.

use crate::pairs::*;
use crate::world::World;
use parking_lot::MutexGuard;
use rauk_node::*;
use rauk_types::{MysqlError, RowView, TableSchema, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Programs are eight bytes: a number to add to the value, zero to delete the row. A negative value is never certain.
struct Adds(AtomicU64);

struct Adding(i64);

impl Evaluator for Adds {
    fn compute_generated(&self, _: &Arc<TableSchema>, _: &mut [Value]) -> Result<(), MysqlError> {
        Ok(())
    }

    fn partition_value(&self, _: &TableSchema, _: bool, _: &[Value]) -> Result<Option<i128>, MysqlError> {
        unreachable!("no table is partitioned")
    }

    fn prepare(&self, _: &[u8], _: &Arc<TableSchema>) -> Option<Box<dyn RowProgram>> {
        None
    }

    fn prepare_change(&self, program: &[u8], _: &Arc<TableSchema>) -> Option<Box<dyn RowChange>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Some(Box::new(Adding(i64::from_le_bytes(program.try_into().ok()?))))
    }
}

impl RowChange for Adding {
    fn change(&mut self, row: &RowView<'_>) -> NewRow {
        match (value_of(row), self.0) {
            (..0, _) => NewRow::Unsure,
            (_, 0) => NewRow::Deleted,
            (value, add) => NewRow::Values(vec![row.get(0).to_owned(), Value::Int(value + add)]),
        }
    }
}

struct Cluster {
    nodes: Vec<crate::world::Node>,
    adds: Arc<Adds>,
    _world: Arc<World>,
    _turn: MutexGuard<'static, ()>,
}

/// Three nodes that know programs; every partition is where it stays.
fn founded() -> Cluster {
    let _turn = crate::turn();
    let (world, nodes) = three(2);
    let adds = Arc::new(Adds(AtomicU64::new(0)));
    nodes.iter().for_each(|node| node.db.set_evaluator(adds.clone()));
    Cluster { nodes, adds, _world: world, _turn }
}

async fn begin(db: &Database, autocommit: bool, lock_wait_timeout: Duration) -> (Transaction, TableHandle) {
    let table = db.table("d", "t").unwrap();
    let mut txn = db.begin(TxnOptions { autocommit, lock_wait_timeout, ..TxnOptions::default() });
    txn.use_table(&table).await.unwrap();
    txn.begin_statement();
    (txn, table)
}

/// Adds to a row if another node leads it; `None`: this one does.
async fn add(db: &Database, autocommit: bool, id: i64, number: i64) -> Option<Result<ChangeOutcome<i64>, NodeError>> {
    let (mut txn, table) = begin(db, autocommit, Duration::from_millis(200)).await;
    if !txn.changes_elsewhere(&table, &key(&table, id)) {
        return None;
    }
    txn.end_with_write(true);
    let read = |row: Option<RowView<'_>>| row.map_or(i64::MIN, |row| value_of(&row));
    let changed = txn.change(&table, &key(&table, id), &number.to_le_bytes(), number == 0, read).await;
    txn.end_with_write(false);
    let ended = match changed {
        Ok(outcome) => txn.commit().await.map(|()| outcome),
        Err(error) => {
            txn.rollback();
            Err(error)
        }
    };
    Some(ended)
}

#[test]
fn a_row_is_changed_where_it_is() {
    let Cluster { nodes, adds, _world, _turn } = founded();
    let (mut there, mut asked) = (0, 0);
    block_on(async {
        for id in 0..24 {
            put(&nodes[0].db, id, id).await.unwrap();
        }
        for (autocommit, id) in (0..24).flat_map(|id| [(true, id), (false, id)]) {
            let db = &nodes[id as usize % 3].db;
            let Some(first) = add(db, autocommit, id, 100).await else { continue };
            there += 1;
            let before = get(&nodes[1].db, id).await.unwrap().unwrap();
            assert_eq!(first, Ok(ChangeOutcome::Changed));
            // What is not certain is read, and the commit that follows gives its lock back.
            let below = get(&nodes[2].db, id).await.unwrap().unwrap();
            assert_eq!(below, before);
            assert_eq!(add(db, autocommit, id, -before - 1).await, Some(Ok(ChangeOutcome::Changed)));
            assert_eq!(add(db, autocommit, id, 5).await, Some(Ok(ChangeOutcome::Read(-1))));
            assert_eq!(add(db, autocommit, id, 0).await, Some(Ok(ChangeOutcome::Read(-1))));
            assert_eq!(
                add(db, autocommit, id + 1000, 1).await.unwrap_or(Ok(ChangeOutcome::Read(i64::MIN))),
                Ok(ChangeOutcome::Read(i64::MIN))
            );
            let (mut txn, table) = begin(&nodes[0].db, false, Duration::from_secs(5)).await;
            let old = [Value::Int(id), Value::Int(-1)];
            assert_eq!(
                txn.get(&table, &key(&table, id), EXCLUSIVE, |row| row.map(|row| value_of(&row))).await,
                Ok(Some(-1))
            );
            assert_eq!(
                txn.update(&table, &old, &[Value::Int(id), Value::Int(before)]).await,
                Ok(UpdateOutcome::Updated)
            );
            // Somebody has the row: it is waited for, and is left as it is.
            assert_eq!(add(db, autocommit, id, 1).await, Some(Err(NodeError::LockTimeout)));
            txn.commit().await.unwrap();
            assert_eq!(add(db, autocommit, id, 1).await, Some(Ok(ChangeOutcome::Changed)));
            assert_eq!(get(&nodes[2].db, id).await, Ok(Some(before + 1)));
            if !autocommit {
                assert_eq!(add(db, autocommit, id, 0).await, Some(Ok(ChangeOutcome::Changed)));
                assert_eq!(get(&nodes[2].db, id).await, Ok(None));
            }
            asked = adds.0.load(Ordering::SeqCst);
        }
    });
    assert!(there > 10 && asked > 5 * there, "{there} rows are led elsewhere, {asked} programs were read");
    nodes.into_iter().for_each(crate::world::Node::kill);
}

const EXCLUSIVE: Lock = Some((rauk_kernel::LockMode::Exclusive, rauk_kernel::WaitPolicy::Wait));

/// All of them are there once, whoever leads their partitions; a key that is taken is said, and its row is locked.
#[test]
fn an_insert_that_ends_its_statement_is_committed_with_it() {
    let Cluster { nodes, _world, _turn, .. } = founded();
    block_on(async {
        for id in 0..24 {
            let db = &nodes[id as usize % 3].db;
            let (mut txn, table) = begin(db, true, Duration::from_secs(5)).await;
            txn.end_with_write(true);
            let row = [Value::Int(id), Value::Int(id)];
            assert_eq!(txn.insert(&table, &row).await, Ok(InsertOutcome::Inserted));
            txn.commit().await.unwrap();
            assert_eq!(get(&nodes[(id as usize + 1) % 3].db, id).await, Ok(Some(id)));
            let (mut txn, table) = begin(db, true, Duration::from_secs(5)).await;
            txn.end_with_write(true);
            let taken = txn.insert(&table, &row).await.unwrap();
            assert_eq!(
                taken,
                InsertOutcome::Duplicate { index: rauk_types::IndexId::PRIMARY, existing: key(&table, id) }
            );
            let (mut other, table) = begin(&nodes[2].db, false, Duration::from_millis(50)).await;
            let locked = other.get(&table, &key(&table, id), EXCLUSIVE, |_| ()).await;
            assert_eq!(locked, Err(NodeError::LockTimeout));
            // The statement goes on with the row in the way.
            let new = [Value::Int(id), Value::Int(id + 50)];
            assert_eq!(txn.update(&table, &row, &new).await, Ok(UpdateOutcome::Updated));
            txn.commit().await.unwrap();
            assert_eq!(get(&nodes[0].db, id).await, Ok(Some(id + 50)));
        }
        // A transaction that is not its statement's ends with its own commit.
        let (mut txn, table) = begin(&nodes[0].db, false, Duration::from_secs(5)).await;
        txn.end_with_write(true);
        for id in 100..110 {
            assert_eq!(txn.insert(&table, &[Value::Int(id), Value::Int(id)]).await, Ok(InsertOutcome::Inserted));
        }
        txn.rollback();
        for id in 100..110 {
            assert_eq!(get(&nodes[1].db, id).await, Ok(None));
        }
    });
    nodes.into_iter().for_each(crate::world::Node::kill);
}
