//! Workload and checker: transfers between accounts, each with a line in a ledger, audits, and searches for accounts by
//! a condition that no index serves.
//!
//! At every moment, for every snapshot: the balances add up to what was there in the beginning, and each account's balance is its beginning plus what the ledger says.
//! After a crash, the ledger has every transfer that was acknowledged and none that was rolled back. A search at REPEATABLE READ that locks and changes what it
//! finds finds what its snapshot shows, or fails with 1020.
use super::client::{Client, collect, everything};
use super::tables::{columns, index, integer, key, table, values};
use parking_lot::Mutex;
use rand::Rng;
use rauk_kernel::{LockMode, WaitPolicy};
use rauk_node::transaction::{InsertOutcome, UpdateOutcome};
use rauk_node::{
    Database, Isolation, NodeError, ScanBatch, ScanCursor, ScanSpec, TableHandle, Transaction, TxnOptions,
};
use rauk_types::schema::IndexKind;
use rauk_types::{Collation, DataType, IndexId, TableSchema, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub const ACCOUNTS: &str = "accounts";
pub const LEDGER: &str = "ledger";
const COUNT: i64 = 16;
const BALANCE: i64 = 1000;

/// id, owner (unique), branch (indexed), balance (indexed).
pub fn accounts() -> TableSchema {
    let columns = columns(&[
        ("id", DataType::BIGINT, false),
        ("owner", DataType::varchar(40, Collation::Utf8mb4Bin), false),
        ("branch", DataType::BIGINT, true),
        ("balance", DataType::BIGINT, false),
    ]);
    let indexes = vec![
        index(1, "owner", IndexKind::Unique, &[1]),
        index(2, "branch", IndexKind::Ordered, &[2]),
        index(3, "balance", IndexKind::Ordered, &[3]),
    ];
    table(ACCOUNTS, columns, indexes)
}

/// id (counted up), transfer (a number of the simulation's), source, target, amount.
pub fn ledger() -> TableSchema {
    let columns = columns(&[
        ("id", DataType::BIGINT, false),
        ("transfer", DataType::BIGINT, false),
        ("source", DataType::BIGINT, false),
        ("target", DataType::BIGINT, false),
        ("amount", DataType::BIGINT, false),
    ]);
    let indexes = vec![index(1, "source", IndexKind::Ordered, &[2, 3])];
    TableSchema { auto_increment: Some(0), ..table(LEDGER, columns, indexes) }
}

/// What became of transfers.
#[derive(Debug, Default)]
pub struct Transfers {
    next: i64,
    acknowledged: BTreeSet<i64>,
    unknown: BTreeSet<i64>,
    /// In the ledger when it was last read.
    settled: BTreeSet<i64>,
}

impl Transfers {
    /// A crash that may take back acknowledged commits.
    pub fn doubt(&mut self) {
        self.unknown.append(&mut self.acknowledged);
        self.unknown.append(&mut self.settled);
    }
}

/// Opens the accounts, if there are none.
pub async fn prepare(db: &Database) -> Result<(), NodeError> {
    let table = db.table(super::tables::DATABASE, ACCOUNTS)?;
    let mut txn = db.begin(TxnOptions::default());
    txn.begin_statement();
    txn.use_table(&table).await?;
    if collect(&mut txn, &table, everything(None), 100).await?.is_empty() {
        for id in 0..COUNT {
            let branch = if id % 5 == 0 { Value::Null } else { Value::Int(id % 3) };
            let row = [Value::Int(id), Value::Str(format!("owner {id}")), branch, Value::Int(BALANCE)];
            let outcome = txn.insert(&table, &row).await?;
            assert_eq!(outcome, InsertOutcome::Inserted);
        }
    }
    txn.commit().await
}

pub async fn run(mut client: Client, transfers: Arc<Mutex<Transfers>>, count: u64) {
    for _ in 0..count {
        client.pause().await;
        if client.rng.random_bool(0.8) {
            let mut session = client.another();
            let options = session.options();
            let interrupt = options.interrupt.clone();
            client.session(interrupt, transfer(&mut session, &transfers, options)).await;
        } else if client.rng.random_bool(0.5) {
            audit(&mut client).await;
        } else {
            search(&mut client).await;
        }
    }
}

async fn transfer(client: &mut Client, transfers: &Mutex<Transfers>, options: TxnOptions) {
    let mut txn = client.db.begin(options);
    let number = {
        let mut transfers = transfers.lock();
        transfers.next += 1;
        transfers.next
    };
    if let Err(error) = move_money(client, &mut txn, number).await {
        client.answer_error(&mut txn, &error).await;
        return txn.rollback();
    }
    if client.rng.random_bool(0.05) {
        return txn.rollback();
    }
    transfers.lock().unknown.insert(number);
    let result = txn.commit().await;
    client.told().await;
    let mut transfers = transfers.lock();
    match result {
        Ok(()) => {
            client.counts.add("transfer");
            transfers.unknown.remove(&number);
            transfers.acknowledged.insert(number);
        }
        Err(error) => {
            client.note(&error);
            if client.is_undone(&error) {
                transfers.unknown.remove(&number);
            }
        }
    }
}

async fn move_money(client: &mut Client, txn: &mut Transaction, number: i64) -> Result<(), NodeError> {
    let (accounts, ledger) = (client.table(ACCOUNTS)?, client.table(LEDGER)?);
    txn.use_table(&accounts).await?;
    txn.use_table(&ledger).await?;
    let source = client.rng.random_range(0..COUNT);
    let mut target = (source + client.rng.random_range(1..COUNT)) % COUNT;
    let amount = client.rng.random_range(1..50);
    txn.begin_statement();
    change(client, txn, &accounts, source, -amount).await?;
    client.pause().await;
    txn.begin_statement();
    if client.rng.random_bool(0.3) {
        // To the wrong one first, taken back.
        let savepoint = txn.savepoint();
        change(client, txn, &accounts, target, amount).await?;
        client.pause().await;
        txn.rollback_to(savepoint);
        target = (target + 1) % COUNT;
        if target == source {
            target = (target + 1) % COUNT;
        }
        txn.begin_statement();
    }
    change(client, txn, &accounts, target, amount).await?;
    client.pause().await;
    txn.begin_statement();
    let id = client.db.take_auto_increment(&ledger, 1).await? as i64;
    let line = [id, number, source, target, amount].map(Value::Int);
    match txn.insert(&ledger, &line).await? {
        InsertOutcome::Inserted => Ok(()),
        InsertOutcome::Duplicate { .. } => panic!("AUTO_INCREMENT gave {id} twice"),
    }
}

/// Adds to a balance, finding the account by id or by its owner's name.
async fn change(
    client: &mut Client,
    txn: &mut Transaction,
    accounts: &TableHandle,
    id: i64,
    by: i64,
) -> Result<(), NodeError> {
    let lock = Some((LockMode::Exclusive, WaitPolicy::Wait));
    let copy = |row: Option<rauk_types::RowView<'_>>| row.map(|row| values(accounts, &row));
    let row = if client.rng.random_bool(0.7) {
        txn.get(accounts, &key(accounts, id), lock, copy).await?
    } else {
        let owner = IndexId(1);
        let mut key = Vec::new();
        let name = format!("owner {id}");
        let index = accounts.schema().index(owner).expect("accounts have it");
        accounts.schema().key_def(index).encode_prefix(&[rauk_types::ValueRef::Str(&name)], &mut key);
        txn.get_unique(accounts, owner, &key, lock, copy).await?
    };
    let old = row.expect("accounts are never closed");
    let mut new = old.clone();
    new[3] = Value::Int(integer(&old[3]) + by);
    match txn.update(accounts, &old, &new).await? {
        UpdateOutcome::Updated => Ok(()),
        other => panic!("a locked account: {other:?}"),
    }
}

/// UPDATE … WHERE a condition on the balance, after a plain read of the same.
async fn search(client: &mut Client) {
    let options = TxnOptions { isolation: Isolation::RepeatableRead, ..client.options() };
    let mut txn = client.db.begin(options);
    match reassign(client, &mut txn).await {
        Ok((shown, found, how)) => {
            if let Err(error) = txn.commit().await {
                return client.note(&error);
            }
            client.counts.add("search");
            assert_eq!(shown, found, "accounts that a snapshot shows, and those that an UPDATE found {how}");
        }
        Err(error) => {
            client.answer_error(&mut txn, &error).await;
            txn.rollback();
        }
    }
}

/// Moves the accounts with some balances to a branch. Gives which ones the snapshot showed, which the locking scan
/// found, and how.
async fn reassign(client: &mut Client, txn: &mut Transaction) -> Result<(Vec<i64>, Vec<i64>, String), NodeError> {
    let accounts = client.table(ACCOUNTS)?;
    txn.use_table(&accounts).await?;
    let (rest, branch) = (client.rng.random_range(0..4), client.rng.random_range(0..3));
    let any_index = |client: &mut Client| {
        let indexes = [None, Some(IndexId(2)), Some(IndexId(3)), Some(IndexId::PRIMARY)];
        indexes[client.rng.random_range(0..indexes.len())]
    };
    txn.begin_statement();
    let rows = collect(txn, &accounts, everything(any_index(client)), client.rng.random_range(1..40)).await?;
    let wanted = |balance: &Value| integer(balance) % 4 == rest;
    let mut shown: Vec<i64> = rows.iter().filter(|row| wanted(&row[3])).map(|row| integer(&row[0])).collect();
    client.rest().await;
    txn.begin_statement();
    let index = any_index(client);
    let ordered = index.is_some() && client.rng.random_bool(0.5);
    let how = format!("by index {:?}, ordered {ordered}", index.map(|index| index.0));
    let lock = Some((LockMode::Exclusive, WaitPolicy::Wait));
    let mut cursor = ScanCursor::new(&accounts, ScanSpec { lock, ordered, ..everything(index) });
    let (mut batch, rows) = (ScanBatch::default(), client.rng.random_range(1..10));
    let mut found = Vec::new();
    loop {
        cursor.next_batch(txn, rows, &mut |row| wanted(&row.get(3).to_owned()), &mut batch).await?;
        if batch.is_empty() {
            break;
        }
        for i in 0..batch.len() {
            let old = values(&accounts, &batch.row(&accounts, i));
            let mut new = old.clone();
            new[2] = Value::Int(branch);
            found.push(integer(&old[0]));
            match txn.update(&accounts, &old, &new).await? {
                UpdateOutcome::Updated => {}
                other => panic!("a locked account: {other:?}"),
            }
        }
        client.pause().await;
    }
    shown.sort_unstable();
    found.sort_unstable();
    Ok((shown, found, how))
}

/// Reads everything in one snapshot (or under locks) and compares.
async fn audit(client: &mut Client) {
    let mut options = client.options();
    if options.isolation == Isolation::ReadCommitted {
        // Its two statements would have two snapshots: balances alone must still add up.
        options.autocommit = true;
    }
    let with_ledger = !options.autocommit;
    let how = format!("{:?}, autocommit {}", options.isolation, options.autocommit);
    let mut txn = client.db.begin(options);
    let batch = client.rng.random_range(1..40);
    let index = [None, Some(IndexId(2)), Some(IndexId(3)), Some(IndexId::PRIMARY)][client.rng.random_range(0..4)];
    match read(client, &mut txn, index, batch, with_ledger).await {
        Ok((balances, lines)) => {
            if let Err(error) = txn.commit().await {
                return client.note(&error);
            }
            client.counts.add("audit");
            let by = index.map(|index| index.0);
            compare(&balances, lines.as_deref())
                .unwrap_or_else(|what| panic!("an audit ({how}, by index {by:?}, {batch} rows at a time): {what}"));
        }
        Err(error) => {
            client.answer_error(&mut txn, &error).await;
            txn.rollback();
        }
    }
}

type Lines = Vec<Vec<Value>>;

async fn read(
    client: &mut Client,
    txn: &mut Transaction,
    index: Option<IndexId>,
    batch: usize,
    with_ledger: bool,
) -> Result<(BTreeMap<i64, i64>, Option<Lines>), NodeError> {
    let (accounts, ledger) = (client.table(ACCOUNTS)?, client.table(LEDGER)?);
    txn.begin_statement();
    txn.use_table(&accounts).await?;
    let rows = collect(txn, &accounts, everything(index), batch).await?;
    let balances = rows.iter().map(|row| (integer(&row[0]), integer(&row[3]))).collect();
    if !with_ledger {
        return Ok((balances, None));
    }
    client.pause().await;
    txn.begin_statement();
    txn.use_table(&ledger).await?;
    Ok((balances, Some(collect(txn, &ledger, everything(None), batch).await?)))
}

fn compare(balances: &BTreeMap<i64, i64>, lines: Option<&[Vec<Value>]>) -> Result<(), String> {
    let sum: i64 = balances.values().sum();
    if balances.len() as i64 != COUNT || sum != COUNT * BALANCE {
        return Err(format!("{} accounts with {sum} in all: {balances:?}", balances.len()));
    }
    let Some(lines) = lines else { return Ok(()) };
    let mut expected: BTreeMap<i64, i64> = (0..COUNT).map(|id| (id, BALANCE)).collect();
    for line in lines {
        let [source, target, amount] = [2, 3, 4].map(|i| integer(&line[i]));
        *expected.entry(source).or_default() -= amount;
        *expected.entry(target).or_default() += amount;
    }
    if &expected == balances { Ok(()) } else { Err(format!("by the ledger {expected:?}, and it is {balances:?}")) }
}

/// After a recovery.
pub async fn check(db: &Database, transfers: &Mutex<Transfers>) -> Result<Result<(), String>, NodeError> {
    let (accounts, ledger) = (db.table(super::tables::DATABASE, ACCOUNTS)?, db.table(super::tables::DATABASE, LEDGER)?);
    let mut txn = db.begin(TxnOptions::default());
    txn.begin_statement();
    txn.use_table(&accounts).await?;
    txn.use_table(&ledger).await?;
    let rows = collect(&mut txn, &accounts, everything(None), 100).await?;
    let lines = collect(&mut txn, &ledger, everything(Some(IndexId(1))), 100).await?;
    txn.commit().await?;
    if rows.is_empty() && lines.is_empty() {
        // The bank was not opened yet.
        return Ok(settle(&mut transfers.lock(), &[]));
    }
    let balances = rows.iter().map(|row| (integer(&row[0]), integer(&row[3]))).collect();
    if let Err(what) = compare(&balances, Some(&lines)) {
        return Ok(Err(what));
    }
    Ok(settle(&mut transfers.lock(), &lines))
}

fn settle(transfers: &mut Transfers, lines: &[Vec<Value>]) -> Result<(), String> {
    let there: BTreeSet<i64> = lines.iter().map(|line| integer(&line[1])).collect();
    if there.len() != lines.len() {
        return Err("a transfer is in the ledger twice".to_string());
    }
    let must: BTreeSet<i64> = transfers.acknowledged.union(&transfers.settled).copied().collect();
    if let Some(lost) = must.difference(&there).next() {
        return Err(format!("transfer {lost} was acknowledged and is lost"));
    }
    if let Some(extra) = there.iter().find(|t| !must.contains(t) && !transfers.unknown.contains(t)) {
        return Err(format!("transfer {extra} was rolled back and is there"));
    }
    transfers.settled = there;
    transfers.acknowledged.clear();
    transfers.unknown.clear();
    Ok(())
}
