//! Workload: cells. Single rows are read and written by clients of all nodes, in every way that there is, and every call and answer is noted for the checker of linearizable registers.
use super::Shared;
use crate::cluster::check::linearizable::{Kind, Op};
use crate::node::client::{Client, collect, everything};
use crate::node::tables::{DATABASE, columns, integer, key, table, values};
use rand::Rng;
use rauk_kernel::{LockMode, WaitPolicy};
use rauk_node::bulk::{Found, Keys};
use rauk_node::transaction::{InsertOutcome, UpdateOutcome};
use rauk_node::{
    ChangeOutcome, Database, Evaluator, NewRow, NodeError, RowChange, RowProgram, Transaction, TxnOptions,
};
use rauk_types::{DataType, MysqlError, RowView, TableSchema, Value as Sql};
use std::collections::BTreeMap;
use std::sync::Arc;

pub const NAME: &str = "cells";
const CELLS: i64 = 8;

/// What was written and read.
#[derive(Debug, Default)]
pub struct Cells {
    events: u64,
    next: u64,
    /// By value.
    writes: BTreeMap<u64, Op>,
    reads: Vec<Op>,
}

impl Cells {
    fn event(&mut self) -> u64 {
        self.events += 1;
        self.events
    }

    fn read(&mut self, register: i64, value: u64, called: u64) {
        let answered = Some(self.event());
        self.reads.push(Op { register, kind: Kind::Read, value, called, answered });
    }

    /// Takes in what was read when nothing went on any more.
    pub fn at_the_end(&mut self, contents: &BTreeMap<i64, u64>) {
        let called = self.event();
        contents.iter().for_each(|(register, value)| self.read(*register, *value, called));
    }

    pub fn ops(&self) -> Vec<Op> {
        self.writes.values().chain(&self.reads).copied().collect()
    }
}

/// id, value, a document that follows from the id, so that every write keeps it, and one that follows from the value. Both are large.
pub fn schema() -> TableSchema {
    let columns = columns(&[
        ("id", DataType::BIGINT, false),
        ("value", DataType::BIGINT, false),
        ("document", DataType::varbinary(20_000), false),
        ("attached", DataType::varbinary(20_000), false),
    ]);
    table(NAME, columns, Vec::new())
}

fn row(id: i64, value: u64) -> Vec<Sql> {
    let attached = vec![value as u8; 8190 + value as usize % 8];
    vec![Sql::Int(id), Sql::Int(value as i64), Sql::Bytes(vec![id as u8; 8500]), Sql::Bytes(attached)]
}

/// The id and the value of a cell, whose documents must be those.
fn checked(found: &[Sql]) -> (i64, u64) {
    let (id, value) = (integer(&found[0]), integer(&found[1]) as u64);
    assert!(found == row(id, value), "cell {id} with value {value} has other documents");
    (id, value)
}

pub async fn prepare(db: &Database) -> Result<(), NodeError> {
    let table = db.table(DATABASE, NAME)?;
    let mut txn = db.begin(TxnOptions::default());
    txn.begin_statement();
    txn.use_table(&table).await?;
    if collect(&mut txn, &table, everything(None), 100).await?.is_empty() {
        for id in 0..CELLS {
            assert_eq!(txn.insert(&table, &row(id, 0)).await?, InsertOutcome::Inserted);
        }
    }
    txn.commit().await
}

pub async fn run(mut client: Client, shared: &Shared, count: u64) {
    for _ in 0..count {
        client.pause().await;
        let mut session = client.another();
        let mut options = session.options();
        options.autocommit = client.rng.random_bool(0.6);
        let interrupt = options.interrupt.clone();
        if client.rng.random_bool(0.4) {
            client.session(interrupt, write(&mut session, shared, options)).await;
        } else {
            client.session(interrupt, read(&mut session, shared, options)).await;
        }
    }
}

async fn write(client: &mut Client, shared: &Shared, options: TxnOptions) {
    let register = client.rng.random_range(0..CELLS);
    let (called, value) = {
        let mut cells = shared.cells.lock();
        cells.next += 1;
        (cells.event(), cells.next)
    };
    let mut txn = client.db.begin(options);
    let op = Op { register, kind: Kind::Write, value, called, answered: None };
    shared.cells.lock().writes.insert(value, op);
    if let Err(error) = put(client, &mut txn, register, value).await {
        client.answer_error(&mut txn, &error).await;
        txn.rollback();
        // It may have been committed with its only call.
        if client.is_undone(&error) {
            shared.cells.lock().writes.remove(&value);
        }
        return;
    }
    let result = txn.commit().await;
    client.told().await;
    let mut cells = shared.cells.lock();
    match result {
        Ok(()) => {
            client.counts.add("cell written");
            let answered = cells.event();
            cells.writes.get_mut(&value).expect("it was noted").answered = Some(answered);
        }
        Err(error) => {
            client.note(&error);
            if client.is_undone(&error) {
                cells.writes.remove(&value);
            }
        }
    }
}

async fn put(client: &mut Client, txn: &mut Transaction, register: i64, value: u64) -> Result<(), NodeError> {
    let table = client.table(NAME)?;
    txn.begin_statement();
    txn.use_table(&table).await?;
    let row_key = key(&table, register);
    let read = |row: Option<RowView<'_>>| row.map(|row| values(&table, &row));
    let mut old = None;
    if client.rng.random_bool(0.6) && txn.changes_elsewhere(&table, &row_key) {
        txn.end_with_write(client.rng.random_bool(0.9));
        let changed = txn.change(&table, &row_key, &value.to_le_bytes(), false, read).await;
        txn.end_with_write(false);
        match changed? {
            ChangeOutcome::Changed => {
                client.counts.add("cell changed elsewhere");
                return Ok(());
            }
            ChangeOutcome::Read(row) => old = row,
            ChangeOutcome::Unknown => {}
        }
    }
    if old.is_none() {
        let lock = Some((LockMode::Exclusive, WaitPolicy::Wait));
        old = txn.get(&table, &row_key, lock, read).await?;
    }
    let old = old.expect("cells are never removed");
    match txn.update(&table, &old, &row(register, value)).await? {
        UpdateOutcome::Updated => Ok(()),
        other => panic!("a locked cell: {other:?}"),
    }
}

async fn read(client: &mut Client, shared: &Shared, options: TxnOptions) {
    let called = shared.cells.lock().event();
    let mut txn = client.db.begin(options);
    let found = look(client, &mut txn).await;
    let result = match found {
        Ok(found) => txn.commit().await.map(|()| found),
        Err(error) => {
            client.answer_error(&mut txn, &error).await;
            return txn.rollback();
        }
    };
    client.told().await;
    match result {
        Ok(found) => {
            client.counts.add("cells read");
            let mut cells = shared.cells.lock();
            found.into_iter().for_each(|(register, value)| cells.read(register, value, called));
        }
        Err(error) => client.note(&error),
    }
}

async fn look(client: &mut Client, txn: &mut Transaction) -> Result<BTreeMap<i64, u64>, NodeError> {
    let table = client.table(NAME)?;
    txn.begin_statement();
    txn.use_table(&table).await?;
    if client.rng.random_bool(0.15) {
        let rows = collect(txn, &table, everything(None), client.rng.random_range(1..10)).await?;
        return Ok(rows.iter().map(|row| checked(row)).collect());
    }
    let register = client.rng.random_range(0..CELLS);
    let lock = client.rng.random_bool(0.2).then_some((LockMode::Shared, WaitPolicy::Wait));
    let found = txn.get(&table, &key(&table, register), lock, |row| row.as_ref().map(value)).await?;
    Ok(found.into_iter().map(|value| (register, value)).collect())
}

/// Knows the programs of this workload: the value that a cell gets, in eight bytes.
pub struct CellEvaluator;

struct CellChange(u64);

impl Evaluator for CellEvaluator {
    fn compute_generated(&self, _: &Arc<TableSchema>, _: &mut [Sql]) -> Result<(), MysqlError> {
        Ok(())
    }

    fn partition_value(&self, _: &TableSchema, _: bool, _: &[Sql]) -> Result<Option<i128>, MysqlError> {
        unreachable!("no table is partitioned")
    }

    fn prepare(&self, _: &[u8], _: &Arc<TableSchema>) -> Option<Box<dyn RowProgram>> {
        None
    }

    fn prepare_change(&self, program: &[u8], table: &Arc<TableSchema>) -> Option<Box<dyn RowChange>> {
        let value = u64::from_le_bytes(program.try_into().ok()?);
        // Some are not known, so that the row is read and written.
        (table.name == NAME && !value.is_multiple_of(8)).then(|| Box::new(CellChange(value)) as Box<dyn RowChange>)
    }
}

impl RowChange for CellChange {
    fn change(&mut self, old: &RowView<'_>) -> NewRow {
        NewRow::Values(row(checked(&old.to_values()).0, self.0))
    }
}

fn value(row: &RowView<'_>) -> u64 {
    checked(&row.to_values()).1
}

/// Reads by key alone, each for itself: no snapshot, no lock, no transaction.
pub async fn run_keys(mut client: Client, shared: &Shared, count: u64) {
    for _ in 0..count {
        client.pause().await;
        let mut session = client.another();
        let mut options = session.options();
        options.autocommit = true;
        let interrupt = options.interrupt.clone();
        client.session(interrupt, read_keys(&mut session, shared, options)).await;
    }
}

async fn read_keys(client: &mut Client, shared: &Shared, options: TxnOptions) {
    let called = shared.cells.lock().event();
    let found = match client.rng.random_bool(0.6) {
        true => look_at_one(client, options).await,
        false => look_at_some(client).await,
    };
    client.told().await;
    match found {
        Ok(found) => {
            client.counts.add("cell read by key");
            let mut cells = shared.cells.lock();
            found.into_iter().for_each(|(register, value)| cells.read(register, value, called));
        }
        Err(error) => client.note(&error),
    }
}

async fn look_at_one(client: &mut Client, options: TxnOptions) -> Result<BTreeMap<i64, u64>, NodeError> {
    let table = client.table(NAME)?;
    let register = client.rng.random_range(0..CELLS);
    let mut txn = client.db.begin(options);
    txn.begin_statement();
    txn.use_table(&table).await?;
    let found = txn.get(&table, &key(&table, register), None, |row| row.as_ref().map(value)).await?;
    txn.commit().await?;
    Ok(BTreeMap::from([(register, found.expect("cells are never removed"))]))
}

/// As of a native client: many keys at once, each a register of its own.
async fn look_at_some(client: &mut Client) -> Result<BTreeMap<i64, u64>, NodeError> {
    let table = client.table(NAME)?;
    let wanted: Vec<i64> = (0..CELLS).filter(|_| client.rng.random_bool(0.5)).collect();
    let (mut keys, mut done) = (Keys::default(), vec![false; wanted.len()]);
    wanted.iter().for_each(|register| keys.push(&key(&table, *register)));
    let mut found = BTreeMap::new();
    let visit = &mut |i: usize, row: Found<'_>| {
        let (_, row) = row.expect("cells are never removed");
        found.insert(wanted[i], value(&row));
    };
    let time = client.db.read_many(&table, &keys, &mut done, visit).await?;
    client.db.wait_durable(time).await?;
    assert_eq!(found.len(), wanted.len());
    Ok(found)
}

/// What each cell has.
pub async fn contents(db: &Database) -> Result<BTreeMap<i64, u64>, NodeError> {
    let table = db.table(DATABASE, NAME)?;
    let mut txn = db.begin(TxnOptions::default());
    txn.begin_statement();
    txn.use_table(&table).await?;
    let rows = collect(&mut txn, &table, everything(None), 50).await?;
    txn.commit().await?;
    Ok(rows.iter().map(|row| checked(row)).collect())
}
