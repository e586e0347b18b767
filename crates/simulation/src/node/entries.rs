//! Workload and checker: rows come, change and go under a unique index that all clients fight over, and two ordered ones.
//!
//! Every client has primary keys of its own, so it knows exactly what must be there; the unique codes come from a small common pool. Checked: what a client reads of its rows
//! is what it left there; a duplicate that is reported is one; after a crash its rows are those of the last acknowledged transaction, or of the one whose fate
//! is unknown, never a mixture; and no code is there twice.
use super::client::{Client, collect, everything};
use super::tables::{add_column, columns, index, integer, key, table, values};
use parking_lot::Mutex;
use rand::Rng;
use rauk_kernel::{LockMode, WaitPolicy};
use rauk_node::transaction::{InsertOutcome, UpdateOutcome};
use rauk_node::{Database, Isolation, NodeError, TableHandle, Transaction, TxnOptions};
use rauk_types::schema::IndexKind;
use rauk_types::{Collation, DataType, IndexId, TableSchema, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

pub const NAME: &str = "entries";
/// Keys of one client.
const KEYS: i64 = 20;
const CODES: u32 = 25;
const CODE: IndexId = IndexId(1);
/// The index that comes and goes.
const EXTRA: &str = "extra";

/// id, code (unique, nullable), color (indexed), note.
pub fn schema() -> TableSchema {
    let text = |chars| DataType::varchar(chars, Collation::Utf8mb4GeneralCi);
    let columns = columns(&[
        ("id", DataType::BIGINT, false),
        ("code", text(20), true),
        ("color", text(20), true),
        ("note", DataType::varbinary(2000), false),
    ]);
    let indexes = vec![index(1, "code", IndexKind::Unique, &[1]), index(2, "color", IndexKind::Ordered, &[2])];
    table(NAME, columns, indexes)
}

/// The first four columns of a row; a column that DDL adds is not looked at.
type Row = Vec<Value>;
type Rows = BTreeMap<i64, Row>;

/// What one client's rows must be.
#[derive(Clone, Debug, Default)]
pub struct Owned {
    pub rows: Rows,
    /// What they are instead if the commit whose fate is unknown took effect.
    pub maybe: Option<Rows>,
    /// With relaxed durability: every state since the last check, any of which a crash may bring back.
    pub earlier: Vec<Rows>,
}

pub type Owners = Arc<Mutex<BTreeMap<i64, Owned>>>;

pub async fn run(mut client: Client, owner: i64, owners: Owners, count: u64) {
    for _ in 0..count {
        client.pause().await;
        if !transaction(&mut client, owner, &owners).await {
            // Its fate is unknown, so the node is going down.
            return;
        }
    }
}

/// `false` when it is unknown whether it committed.
async fn transaction(client: &mut Client, owner: i64, owners: &Owners) -> bool {
    let before = owners.lock().entry(owner).or_default().rows.clone();
    let mut rows = before.clone();
    let options = client.options();
    let mut txn = client.db.begin(options);
    for _ in 0..client.rng.random_range(1..5) {
        txn.begin_statement();
        let undo = rows.clone();
        match statement(client, &mut txn, owner, &mut rows).await {
            Ok(()) => {}
            // The client may go on after these: only the statement is undone.
            Err(error @ (NodeError::LockTimeout | NodeError::NoWait | NodeError::DiskFull(_))) => {
                txn.rollback_statement();
                client.answer_error(&mut txn, &error).await;
                rows = undo;
            }
            Err(error) => {
                client.answer_error(&mut txn, &error).await;
                txn.rollback();
                return true;
            }
        }
        client.pause().await;
    }
    if client.rng.random_bool(0.1) {
        txn.rollback();
        return true;
    }
    owners.lock().entry(owner).or_default().maybe = Some(rows.clone());
    let result = txn.commit().await;
    client.told().await;
    match result {
        Ok(()) => {
            client.counts.add("entries commit");
            let mut owners = owners.lock();
            let owned = owners.entry(owner).or_default();
            let left = std::mem::replace(&mut owned.rows, rows);
            owned.earlier.push(left);
            owned.maybe = None;
            true
        }
        Err(error) => {
            client.note(&error);
            if client.is_undone(&error) {
                owners.lock().entry(owner).or_default().maybe = None;
                return true;
            }
            false
        }
    }
}

async fn statement(client: &mut Client, txn: &mut Transaction, owner: i64, rows: &mut Rows) -> Result<(), NodeError> {
    let table = client.table(NAME)?;
    txn.use_table(&table).await?;
    let id = owner * 1000 + client.rng.random_range(0..KEYS);
    let wait = if client.rng.random_bool(0.1) { WaitPolicy::NoWait } else { WaitPolicy::Wait };
    let lock = Some((LockMode::Exclusive, wait));
    let found = txn.get(&table, &key(&table, id), lock, |row| row.map(|row| values(&table, &row))).await?;
    assert_eq!(found.as_ref().map(|row| &row[..4]), rows.get(&id).map(|row| &row[..]), "row {id} is not what was left");
    let Some(old) = found else {
        let new = new_row(client, &table, id);
        let outcome = txn.insert(&table, &new).await?;
        match outcome {
            InsertOutcome::Inserted => {
                rows.insert(id, new[..4].to_vec());
            }
            InsertOutcome::Duplicate { index, existing } => {
                client.counts.add("duplicate");
                check_duplicate(txn, &table, index, &existing, &new).await?;
            }
        }
        return Ok(());
    };
    if client.rng.random_bool(0.4) {
        assert!(txn.delete(&table, &old).await?, "a locked row went away");
        rows.remove(&id);
        return Ok(());
    }
    let mut new = new_row(client, &table, id);
    // Sometimes under another of its own keys.
    let other = owner * 1000 + client.rng.random_range(0..KEYS);
    if client.rng.random_bool(0.2) && !rows.contains_key(&other) {
        new[0] = Value::Int(other);
    }
    if client.rng.random_bool(0.3) {
        new[1] = old[1].clone();
    }
    match txn.update(&table, &old, &new).await? {
        UpdateOutcome::Updated => {
            rows.remove(&id);
            rows.insert(integer(&new[0]), new[..4].to_vec());
        }
        UpdateOutcome::Missing => panic!("a locked row went away"),
        UpdateOutcome::Duplicate { index, existing } => {
            client.counts.add("duplicate on update");
            check_duplicate(txn, &table, index, &existing, &new).await?;
            // As SQL does: the statement is undone.
            txn.rollback_statement();
        }
    }
    Ok(())
}

fn new_row(client: &mut Client, table: &TableHandle, id: i64) -> Row {
    let rng = &mut client.rng;
    let code = rng.random_bool(0.8).then(|| Value::Str(format!("Code {}", rng.random_range(0..CODES))));
    let color = rng.random_bool(0.9).then(|| Value::Str(["red", "Green", "blue"][rng.random_range(0..3)].to_string()));
    let length = if rng.random_bool(0.05) { 1500 } else { 20 };
    let note = Value::Bytes((0..rng.random_range(0..length)).map(|_| rng.random()).collect());
    let mut row = vec![Value::Int(id), code.unwrap_or_default(), color.unwrap_or_default(), note];
    row.resize(table.schema().columns.len(), Value::Null);
    row
}

/// The row in the way is locked for us, so it must be there and have the code.
async fn check_duplicate(
    txn: &mut Transaction,
    table: &TableHandle,
    index: IndexId,
    existing: &[u8],
    new: &Row,
) -> Result<(), NodeError> {
    assert_eq!(index, CODE, "keys are our own, so only codes collide");
    let lock = Some((LockMode::Exclusive, WaitPolicy::Wait));
    let found = txn.get(table, existing, lock, |row| row.map(|row| values(table, &row))).await?;
    let found = found.expect("the row in the way");
    assert_eq!(found[1], new[1], "the row in the way has the code");
    Ok(())
}

/// A client that adds and drops an index, and columns, and copies the table, while the others work.
pub async fn change_definition(mut client: Client, count: u64) {
    for round in 0..count {
        client.rest().await;
        let Ok(table) = client.table(NAME) else { return };
        let mut new = (**table.schema()).clone();
        let what = client.rng.random_range(0..4);
        if what == 3 {
            let mut same = |row: &[Value]| Ok(row.to_vec());
            match client.db.rewrite_table(&table, new, Duration::from_millis(500), &mut same).await {
                Ok(_) => client.counts.add("copy"),
                Err(error) => client.note(&error),
            }
            continue;
        }
        if let Some(at) = new.indexes.iter().position(|i| i.name == EXTRA) {
            new.indexes.remove(at);
        } else if what == 0 && new.columns.len() < 10 {
            add_column(&mut new.columns, &format!("added {round}"), DataType::BIGINT, true);
        } else if new.columns.len() > 4 && what == 1 {
            new.columns.pop();
        } else {
            let id = new.indexes.iter().map(|i| i.id.0).max().unwrap_or(0) + 1;
            // One that the rows always allow, one that they may not, and one that is not unique.
            let (kind, parts): (_, &[usize]) = match client.rng.random_range(0..4) {
                0 => (IndexKind::Unique, &[3, 0]),
                1 => (IndexKind::Unique, &[1, 3]),
                _ => (IndexKind::Ordered, &[3, 2]),
            };
            new.indexes.push(index(id, EXTRA, kind, parts));
        }
        match client.db.alter_table(&table, new, Duration::from_millis(500)).await {
            Ok(()) => client.counts.add("alter"),
            Err(error) => client.note(&error),
        }
    }
}

/// After a recovery: rows against owners, codes against each other.
pub async fn check(db: &Database, owners: &Owners) -> Result<Result<(), String>, NodeError> {
    let table = db.table(super::tables::DATABASE, NAME)?;
    let mut txn = db.begin(TxnOptions { isolation: Isolation::RepeatableRead, ..TxnOptions::default() });
    txn.begin_statement();
    txn.use_table(&table).await?;
    let all = collect(&mut txn, &table, everything(None), 50).await?;
    txn.commit().await?;
    let mut codes = BTreeSet::new();
    let mut found: BTreeMap<i64, Rows> = BTreeMap::new();
    for row in all {
        if let Value::Str(code) = &row[1]
            && !codes.insert(code.clone())
        {
            return Ok(Err(format!("two rows have the unique code {code}")));
        }
        let id = integer(&row[0]);
        found.entry(id / 1000).or_default().insert(id, row[..4].to_vec());
    }
    let mut owners = owners.lock();
    for owner in found.keys() {
        owners.entry(*owner).or_default();
    }
    for (owner, owned) in owners.iter_mut() {
        let rows = found.remove(owner).unwrap_or_default();
        let known = rows == owned.rows || owned.maybe.as_ref() == Some(&rows) || owned.earlier.contains(&rows);
        if !known {
            let Owned { rows: wanted, maybe, .. } = owned;
            return Ok(Err(format!("client {owner} has {rows:?}\nand left {wanted:?}\nor {maybe:?}")));
        }
        *owned = Owned { rows, maybe: None, earlier: Vec::new() };
    }
    Ok(Ok(()))
}

/// Acknowledged commits are certain: forget what was before them.
pub fn certain(owners: &Owners) {
    owners.lock().values_mut().for_each(|owned| owned.earlier.clear());
}
