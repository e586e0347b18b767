//! Workload: transactions that read lists and append to them, at all isolation levels, over all partitions.
//!
//! A list is a row (key BIGINT, elements as bytes); appending is a locking read and an update, or an insert of a new row.
use super::client::{Client, collect, everything};
use super::history::{Element, Fate, History, Key, Op};
use super::tables::{self, columns, integer, key, table, values};
use parking_lot::Mutex;
use rand::Rng;
use rauk_kernel::{LockMode, WaitPolicy};
use rauk_node::transaction::{InsertOutcome, UpdateOutcome};
use rauk_node::{Isolation, Lock, NodeError, Savepoint, TableHandle, Transaction, TxnOptions};
use rauk_types::{DataType, TableSchema, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

pub const NAME: &str = "lists";
const KEYS: i64 = 12;

pub fn schema() -> TableSchema {
    let columns = columns(&[("id", DataType::BIGINT, false), ("elements", DataType::varbinary(60_000), false)]);
    table(NAME, columns, Vec::new())
}

fn elements(value: &Value) -> Vec<Element> {
    let Value::Bytes(bytes) = value else { panic!("a list is {value:?}") };
    bytes.as_chunks().0.iter().map(|chunk| Element::from_le_bytes(*chunk)).collect()
}

fn bytes(elements: &[Element]) -> Value {
    Value::Bytes(elements.iter().flat_map(|e| e.to_le_bytes()).collect())
}

const EXCLUSIVE: Lock = Some((LockMode::Exclusive, WaitPolicy::Wait));

/// One client: transactions until `count` have ended.
pub async fn run(mut client: Client, history: Arc<Mutex<History>>, count: u64) {
    for _ in 0..count {
        client.pause().await;
        let mut session = client.another();
        let options = session.options();
        let interrupt = options.interrupt.clone();
        client.session(interrupt, transaction(&mut session, &history, options)).await;
    }
}

async fn transaction(client: &mut Client, history: &Mutex<History>, mut options: TxnOptions) {
    options.snapshot_isolation = client.rng.random_bool(0.8);
    options.autocommit = client.rng.random_bool(0.15);
    let autocommit = options.autocommit;
    let log = history.lock().begin(options.isolation, options.snapshot_isolation);
    let mut txn = client.db.begin(options);
    let statements = if autocommit { 1 } else { client.rng.random_range(1..6) };
    let mut work = Work { client, history, log, savepoints: Vec::new() };
    for _ in 0..statements {
        txn.begin_statement();
        match work.statement(&mut txn).await {
            Ok(()) => {}
            Err(error) => {
                work.client.answer_error(&mut txn, &error).await;
                txn.rollback();
                return;
            }
        }
        work.client.pause().await;
    }
    if !autocommit && work.client.rng.random_bool(0.1) {
        txn.rollback();
        return;
    }
    work.history.lock().txns[log].fate = Fate::Unknown;
    let result = txn.commit().await;
    work.client.told().await;
    match result {
        Ok(()) => {
            let mut history = work.history.lock();
            history.answered(log);
            history.acknowledge(log);
            work.client.counts.add("list commit");
        }
        Err(error) => {
            work.client.note(&error);
            if work.client.is_undone(&error) {
                work.history.lock().txns[log].fate = Fate::Aborted;
            }
        }
    }
}

struct Work<'a> {
    client: &'a mut Client,
    history: &'a Mutex<History>,
    log: usize,
    /// Savepoints, and how many operations came before each.
    savepoints: Vec<(Savepoint, usize)>,
}

impl Work<'_> {
    async fn statement(&mut self, txn: &mut Transaction) -> Result<(), NodeError> {
        let table = self.client.table(NAME)?;
        txn.use_table(&table).await?;
        let key = self.client.rng.random_range(0..KEYS);
        match self.client.rng.random_range(0..12) {
            0..=3 => self.read(txn, &table, key).await,
            4 => self.read_all(txn, &table).await,
            5 => {
                let before = self.history.lock().txns[self.log].ops.len();
                self.savepoints.push((txn.savepoint(), before));
                Ok(())
            }
            6 => {
                if let Some((savepoint, before)) = self.savepoints.pop() {
                    txn.rollback_to(savepoint);
                    self.client.counts.add("list rollback to savepoint");
                    self.forget_appends(before);
                }
                Ok(())
            }
            7 => {
                // A statement that is undone as a whole after it did its work.
                let before = self.history.lock().txns[self.log].ops.len();
                self.append(txn, &table, key).await?;
                txn.rollback_statement();
                self.forget_appends(before);
                Ok(())
            }
            _ => self.append(txn, &table, key).await,
        }
    }

    /// Appends behind the first `before` operations were undone. Reads that saw them are dropped: they are not what the rest of the transaction is.
    fn forget_appends(&self, before: usize) {
        let ops = &mut self.history.lock().txns[self.log].ops;
        ops.truncate(before);
    }

    fn note(&self, op: Op) {
        self.history.lock().txns[self.log].ops.push(op);
    }

    async fn read(&mut self, txn: &mut Transaction, table: &TableHandle, id: Key) -> Result<(), NodeError> {
        let lock = match self.client.rng.random_range(0..6) {
            0 => Some((LockMode::Shared, WaitPolicy::Wait)),
            1 => EXCLUSIVE,
            _ => None,
        };
        let found =
            txn.get(table, &key(table, id), lock, |row| row.map(|row| elements(&row.get(1).to_owned()))).await?;
        if found.is_none() && lock.is_some() && txn.options().isolation != Isolation::Serializable {
            // The newest state has no such row; nothing was locked, so nothing is promised for later.
            return Ok(());
        }
        self.note_reads(txn, vec![(id, found.unwrap_or_default())]).await
    }

    async fn read_all(&mut self, txn: &mut Transaction, table: &TableHandle) -> Result<(), NodeError> {
        let lists = read_lists(txn, table, self.client.rng.random_range(1..20)).await?;
        let of = |id| (id, lists.get(&id).cloned().unwrap_or_default());
        self.note_reads(txn, (0..KEYS).map(of).collect()).await
    }

    async fn note_reads(&mut self, txn: &mut Transaction, reads: Vec<(Key, Vec<Element>)>) -> Result<(), NodeError> {
        for (key, list) in reads {
            self.note(Op::Read { key, list, answered: false });
        }
        // Sometimes the client is answered now, else with the commit.
        if self.client.rng.random_bool(0.5) {
            txn.wait_observed().await?;
            self.client.told().await;
            self.history.lock().answered(self.log);
        }
        Ok(())
    }

    async fn append(&mut self, txn: &mut Transaction, table: &TableHandle, id: Key) -> Result<(), NodeError> {
        let element = self.history.lock().element();
        loop {
            let found = txn.get(table, &key(table, id), EXCLUSIVE, |row| row.map(|row| values(table, &row))).await?;
            let done = match found {
                Some(old) => {
                    let mut list = elements(&old[1]);
                    list.push(element);
                    match txn.update(table, &old, &[Value::Int(id), bytes(&list)]).await? {
                        UpdateOutcome::Updated => true,
                        UpdateOutcome::Missing => panic!("a locked row went away"),
                        UpdateOutcome::Duplicate { .. } => panic!("a duplicate without a unique index"),
                    }
                }
                None => match txn.insert(table, &[Value::Int(id), bytes(&[element])]).await? {
                    InsertOutcome::Inserted => true,
                    // Somebody else began the list meanwhile.
                    InsertOutcome::Duplicate { .. } => false,
                },
            };
            if done {
                self.note(Op::Append(id, element));
                return Ok(());
            }
        }
    }
}

async fn read_lists(
    txn: &mut Transaction,
    table: &TableHandle,
    batch: usize,
) -> Result<BTreeMap<Key, Vec<Element>>, NodeError> {
    let rows = collect(txn, table, everything(None), batch).await?;
    Ok(rows.iter().map(|row| (integer(&row[0]), elements(&row[1]))).collect())
}

/// Reads all lists, durably: what the checker compares with.
pub async fn contents(db: &rauk_node::Database) -> Result<BTreeMap<Key, Vec<Element>>, NodeError> {
    let table = db.table(tables::DATABASE, NAME)?;
    let mut txn = db.begin(TxnOptions { isolation: Isolation::RepeatableRead, ..TxnOptions::default() });
    txn.begin_statement();
    txn.use_table(&table).await?;
    let lists = read_lists(&mut txn, &table, 7).await?;
    txn.commit().await?;
    Ok(lists)
}
