//! Workload: bands. A band is some rows that lie in different partitions and are always written together, with one value; readers look at all of them at once.
use super::Shared;
use crate::cluster::record::{Fate, Read, SLOTS, Value};
use crate::node::client::{Client, collect, everything};
use crate::node::tables::{DATABASE, columns, index, integer, key, table, values};
use rand::Rng;
use rauk_kernel::{LockMode, WaitPolicy};
use rauk_node::transaction::{InsertOutcome, UpdateOutcome};
use rauk_node::{Database, Isolation, Lock, NodeError, TableHandle, Transaction, TxnOptions};
use rauk_types::schema::IndexKind;
use rauk_types::{DataType, IndexId, TableSchema, Value as Sql};
use std::collections::BTreeMap;
use std::time::Duration;

pub const NAME: &str = "bands";
const BANDS: u32 = 5;
const EXCLUSIVE: Lock = Some((LockMode::Exclusive, WaitPolicy::Wait));

/// id, band (indexed), value (indexed).
pub fn schema() -> TableSchema {
    let columns = columns(&[
        ("id", DataType::BIGINT, false),
        ("band", DataType::BIGINT, false),
        ("value", DataType::BIGINT, false),
    ]);
    let indexes = vec![index(1, "band", IndexKind::Ordered, &[1]), index(2, "value", IndexKind::Ordered, &[2])];
    table(NAME, columns, indexes)
}

fn id(band: u32, slot: usize) -> i64 {
    i64::from(band) * SLOTS as i64 + slot as i64
}

/// All bands in one transaction.
pub async fn prepare(db: &Database) -> Result<(), NodeError> {
    let table = db.table(DATABASE, NAME)?;
    let mut txn = db.begin(TxnOptions::default());
    txn.begin_statement();
    txn.use_table(&table).await?;
    if !collect(&mut txn, &table, everything(None), 100).await?.is_empty() {
        return txn.commit().await;
    }
    for band in 0..BANDS {
        for slot in 0..SLOTS {
            let row = [Sql::Int(id(band, slot)), Sql::Int(band.into()), Sql::Int(Value::NONE.0 as i64)];
            assert_eq!(txn.insert(&table, &row).await?, InsertOutcome::Inserted);
        }
    }
    txn.commit().await
}

pub async fn run(mut client: Client, shared: &Shared, count: u64) {
    for _ in 0..count {
        client.pause().await;
        let mut session = client.another();
        let options = session.options();
        let interrupt = options.interrupt.clone();
        if client.rng.random_bool(0.5) {
            client.session(interrupt, write(&mut session, shared, options)).await;
        } else {
            client.session(interrupt, read(&mut session, shared, options)).await;
        }
    }
}

async fn write(client: &mut Client, shared: &Shared, options: TxnOptions) {
    let how = format!("a writer at {:?}, under locks", options.isolation);
    let began = shared.bands.lock().event();
    let mut txn = client.db.begin(options);
    let (value, seen) = match change(client, shared, &mut txn).await {
        Ok(changed) => changed,
        Err(error) => {
            client.answer_error(&mut txn, &error).await;
            return txn.rollback();
        }
    };
    if client.rng.random_bool(0.05) {
        client.counts.add("band rolled back");
        return txn.rollback();
    }
    shared.bands.lock().asked(value);
    let result = txn.commit().await;
    client.told().await;
    match result {
        Ok(()) => {
            client.counts.add("band written");
            let mut record = shared.bands.lock();
            record.ended(value, Fate::Committed);
            // Locks may have died with a primary; but then it has not committed.
            record.answered(began, seen, how);
        }
        Err(error) => {
            client.note(&error);
            if client.is_undone(&error) {
                shared.bands.lock().ended(value, Fate::Aborted);
            }
        }
    }
}

/// Writes a new value into all slots of some band; gives it, and what was there.
async fn change(client: &mut Client, shared: &Shared, txn: &mut Transaction) -> Result<(Value, Seen), NodeError> {
    let table = client.table(NAME)?;
    txn.use_table(&table).await?;
    let band = client.rng.random_range(0..BANDS);
    let mut rows = Vec::new();
    for slot in 0..SLOTS {
        txn.begin_statement();
        let key = key(&table, id(band, slot));
        let row = txn.get(&table, &key, EXCLUSIVE, |row| row.map(|row| values(&table, &row))).await?;
        rows.push(row.expect("bands are never removed"));
        client.pause().await;
    }
    let slots: Vec<Value> = rows.iter().map(|row| Value(integer(&row[2]) as u64)).collect();
    let value = shared.bands.lock().begin(band, slots[0], client.runtime.number());
    for old in &rows {
        txn.begin_statement();
        let new = [old[0].clone(), old[1].clone(), Sql::Int(value.0 as i64)];
        match txn.update(&table, old, &new).await? {
            UpdateOutcome::Updated => {}
            other => panic!("a locked band: {other:?}"),
        }
        client.pause().await;
    }
    Ok((value, BTreeMap::from([(band, slots)])))
}

/// Ways to look at bands in one snapshot.
async fn read(client: &mut Client, shared: &Shared, mut options: TxnOptions) {
    let by_keys = client.rng.random_bool(0.5);
    if options.isolation == Isolation::ReadCommitted || !by_keys {
        // One statement, one snapshot.
        options.autocommit = client.rng.random_bool(0.5) && !by_keys;
    }
    if options.isolation == Isolation::ReadCommitted && by_keys {
        options.isolation = Isolation::RepeatableRead;
    }
    let how = format!("a reader at {:?}, autocommit {}, by keys {by_keys}", options.isolation, options.autocommit);
    let began = shared.bands.lock().event();
    let mut txn = client.db.begin(options);
    let seen = if by_keys { read_keys(client, &mut txn).await } else { read_all(client, &mut txn).await };
    let result = match seen {
        Ok(seen) => txn.commit().await.map(|()| seen),
        Err(error) => {
            client.answer_error(&mut txn, &error).await;
            return txn.rollback();
        }
    };
    client.told().await;
    match result {
        Ok(seen) => {
            client.counts.add("bands read");
            shared.bands.lock().answered(began, seen, how);
        }
        Err(error) => client.note(&error),
    }
}

type Seen = BTreeMap<u32, Vec<Value>>;

async fn read_all(client: &mut Client, txn: &mut Transaction) -> Result<Seen, NodeError> {
    let table = client.table(NAME)?;
    txn.begin_statement();
    txn.use_table(&table).await?;
    let index = [None, Some(IndexId::PRIMARY), Some(IndexId(1)), Some(IndexId(2))][client.rng.random_range(0..4)];
    let batch = client.rng.random_range(1..20);
    scan(txn, &table, index, batch).await
}

async fn scan(
    txn: &mut Transaction,
    table: &TableHandle,
    index: Option<IndexId>,
    batch: usize,
) -> Result<Seen, NodeError> {
    let mut rows = collect(txn, table, everything(index), batch).await?;
    rows.sort_by_key(|row| integer(&row[0]));
    let mut seen = Seen::new();
    for row in rows {
        seen.entry(integer(&row[1]) as u32).or_default().push(Value(integer(&row[2]) as u64));
    }
    Ok(seen)
}

/// Some bands key by key, in statements of their own but one snapshot (or under locks).
async fn read_keys(client: &mut Client, txn: &mut Transaction) -> Result<Seen, NodeError> {
    let table = client.table(NAME)?;
    txn.use_table(&table).await?;
    let mut seen = Seen::new();
    for band in 0..BANDS {
        if client.rng.random_bool(0.5) {
            continue;
        }
        for slot in 0..SLOTS {
            txn.begin_statement();
            let value = |row: Option<rauk_types::RowView<'_>>| row.map(|row| integer(&row.get(2).to_owned()));
            let found = txn.get(&table, &key(&table, id(band, slot)), None, value).await?;
            seen.entry(band).or_default().extend(found.map(|value| Value(value as u64)));
            client.pause().await;
        }
    }
    Ok(seen)
}

/// What each band has, for the judges.
pub async fn contents(db: &Database) -> Result<Read, NodeError> {
    let table = db.table(DATABASE, NAME)?;
    let mut txn = db.begin(TxnOptions::default());
    txn.begin_statement();
    txn.use_table(&table).await?;
    let seen = scan(&mut txn, &table, None, 50).await?;
    txn.commit().await?;
    Ok(Read { began: u64::MAX - 1, answered: Some(u64::MAX), seen, how: "at the end".to_string() })
}

/// One write, for whoever wants to know whether transactions commit at all.
pub async fn write_once(client: &mut Client, shared: &Shared) -> bool {
    let written = |client: &Client| client.counts.all().get("band written").copied();
    let before = written(client);
    let options = TxnOptions { lock_wait_timeout: Duration::from_secs(2), ..TxnOptions::default() };
    write(client, shared, options).await;
    written(client) != before
}
