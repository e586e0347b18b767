//! Workload and checker: registers written many at a time (`write_many`), each write an own transaction, beside ordinary transactions on the same rows.
//!
//! Every write has a number of its own and notes the number that it found, so the writes of a register form a chain. Some registers are everybody's: whatever
//! was acknowledged, and whatever an answered read has seen, must be in the chain of the number that is there after a crash, and a transaction's writes must
//! be there all or none; two writes on top of the same one would lose one of them. Others belong to one client, who also deletes them and knows exactly what must be there.
use super::client::{Client, collect, everything};
use super::tables::{columns, index, integer, key, table, values};
use futures::future::select;
use parking_lot::Mutex;
use rand::Rng;
use rauk_kernel::{LockMode, WaitPolicy};
use rauk_node::bulk::{Keys, Unwritten, Verb};
use rauk_node::runtime::Runtime;
use rauk_node::transaction::InsertOutcome;
use rauk_node::{Database, NodeError, TableHandle, TxnOptions};
use rauk_types::schema::IndexKind;
use rauk_types::{DataType, IndexId, TableSchema, Value, row};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

pub const NAME: &str = "registers";
/// Keys below are everybody's.
const SHARED: i64 = 30;
/// Bytes that lie beside the row.
const LARGE: usize = 9000;
/// Keys of one client.
const OWN: i64 = 20;

/// id, number (of the last write), color (indexed), filler: of every third register a large value that all its rows have.
pub fn schema() -> TableSchema {
    let columns = columns(&[
        ("id", DataType::BIGINT, false),
        ("number", DataType::BIGINT, false),
        ("color", DataType::BIGINT, true),
        ("filler", DataType::varbinary(20_000), false),
    ]);
    table(NAME, columns, vec![index(1, "color", IndexKind::Ordered, &[2])])
}

/// What one client's register may hold: the number of a write, or nothing.
#[derive(Debug, Default)]
struct Own {
    /// More than one while the fate of a write is unknown.
    now: Vec<Option<i64>>,
    /// With relaxed durability: what it has been since the last check.
    earlier: Vec<Option<i64>>,
}

impl Own {
    fn becomes(&mut self, states: Vec<Option<i64>>) {
        let before = std::mem::replace(&mut self.now, states);
        self.earlier.extend(before);
    }
}

#[derive(Debug, Default)]
pub struct Registers {
    next: i64,
    /// By shared key: each write that may have happened, and the number that it found (0: no row).
    found: BTreeMap<i64, BTreeMap<i64, i64>>,
    /// By shared key: writes that must have happened.
    certain: BTreeMap<i64, BTreeSet<i64>>,
    /// Writes of one transaction each: (key, number).
    together: Vec<Vec<(i64, i64)>>,
    own: BTreeMap<i64, Own>,
}

impl Registers {
    fn number(&mut self) -> i64 {
        self.next += 1;
        self.next
    }

    fn own(&mut self, id: i64) -> &mut Own {
        self.own.entry(id).or_insert_with(|| Own { now: vec![None], earlier: Vec::new() })
    }

    /// A client has met this in a register.
    fn met(&mut self, id: i64, number: Option<i64>) {
        if id >= SHARED {
            let now = &self.own(id).now;
            assert!(now.contains(&number), "register {id} has {number:?} and was left with {now:?}");
        } else if let Some(number) = number {
            let known = self.found.get(&id).is_some_and(|writes| writes.contains_key(&number));
            assert!(known, "register {id} has {number}, which nobody wrote there");
        }
    }

    /// A write is about to happen.
    fn try_write(&mut self, id: i64, found: Option<i64>, number: Option<i64>) {
        if id >= SHARED {
            // What it was before stays possible until this is acknowledged.
            self.own(id).now.push(number);
        } else {
            let number = number.expect("shared registers are not deleted");
            self.found.entry(id).or_default().insert(number, found.unwrap_or(0));
        }
    }

    fn has_happened(&mut self, id: i64, number: Option<i64>) {
        if id >= SHARED {
            self.own(id).becomes(vec![number]);
        } else if let Some(number) = number {
            self.certain.entry(id).or_default().insert(number);
        }
    }

    fn has_not_happened(&mut self, id: i64, number: Option<i64>) {
        if id >= SHARED {
            let now = &mut self.own(id).now;
            let at = now.iter().rposition(|state| *state == number).expect("it was tried");
            now.remove(at);
        } else if let Some(number) = number {
            self.found.entry(id).or_default().remove(&number);
        }
    }

    /// A crash that may take back acknowledged commits.
    pub fn doubt(&mut self) {
        self.certain.clear();
    }

    /// Acknowledged commits are certain: forget what was before them.
    pub fn settle(&mut self) {
        self.own.values_mut().for_each(|own| own.earlier.clear());
    }
}

pub async fn run(mut client: Client, owner: i64, registers: Arc<Mutex<Registers>>, count: u64) {
    for _ in 0..count {
        client.pause().await;
        let result = match client.rng.random_range(0..10) {
            0 if client.rng.random_bool(0.2) => {
                // The client goes away in the middle.
                client.counts.add("connection lost");
                let sleep = client.runtime.sleep(Duration::from_micros(client.rng.random_range(0..5000)));
                select(Box::pin(write_some(&mut client, owner, &registers)), sleep).await;
                return;
            }
            0..5 => write_some(&mut client, owner, &registers).await,
            5..7 => read_some(&mut client, owner, &registers).await,
            7..9 => transaction(&mut client, &registers).await,
            _ => compare_indexes(&mut client).await,
        };
        if let Err(error) = result {
            client.note(&error);
            if !matches!(error, NodeError::Deadlock | NodeError::LockTimeout | NodeError::Changed { .. })
                && !matches!(
                    error,
                    NodeError::SnapshotTooOld { .. } | NodeError::NewerThanSnapshot | NodeError::MemoryFull { .. }
                )
            {
                // A write of unknown fate may be among them, and the node is going down.
                return;
            }
        }
    }
}

fn pick(client: &mut Client, owner: i64, most: usize) -> Vec<i64> {
    let count = client.rng.random_range(1..most);
    let one = |client: &mut Client| match client.rng.random_bool(0.5) {
        true => client.rng.random_range(0..SHARED),
        false => 1000 + owner * OWN + client.rng.random_range(0..OWN),
    };
    (0..count).map(|_| one(client)).collect()
}

fn keys_of(table: &TableHandle, ids: &[i64]) -> Keys {
    let mut keys = Keys::default();
    ids.iter().for_each(|id| keys.push(&key(table, *id)));
    keys
}

fn new_row(client: &mut Client, id: i64, number: i64) -> Vec<Value> {
    let color = if client.rng.random_bool(0.8) { Value::Int(client.rng.random_range(0..4)) } else { Value::Null };
    let length = if client.rng.random_bool(0.05) { 1500 } else { 30 };
    let length = client.rng.random_range(0..length);
    let filler = vec![b'f'; if id % 3 == 0 { LARGE } else { length }];
    vec![Value::Int(id), Value::Int(number), color, Value::Bytes(filler)]
}

/// What a key of a call is to become, and what became of it.
struct Wanted {
    id: i64,
    what: What,
    found: Option<i64>,
}

enum What {
    Nothing,
    Delete,
    Put(Vec<Value>),
}

impl Wanted {
    /// What the register will hold.
    fn number(&self) -> Option<i64> {
        match &self.what {
            What::Put(row) => Some(integer(&row[1])),
            What::Nothing | What::Delete => None,
        }
    }
}

async fn write_some(client: &mut Client, owner: i64, registers: &Mutex<Registers>) -> Result<(), NodeError> {
    let table = client.table(NAME)?;
    let mut wanted = Vec::new();
    for id in pick(client, owner, 40) {
        let number = registers.lock().number();
        let what = match client.rng.random_range(0..10) {
            0 => What::Nothing,
            1..4 if id >= SHARED => What::Delete,
            _ => What::Put(new_row(client, id, number)),
        };
        wanted.push(Wanted { id, what, found: None });
    }
    let ids: Vec<i64> = wanted.iter().map(|w| w.id).collect();
    let keys = keys_of(&table, &ids);
    let mut done = vec![false; ids.len()];
    let mut unwritten = Unwritten::default();
    let schema = table.schema();
    let time = client
        .db
        .write_many(&table, &keys, &mut done, &mut unwritten, &mut |i, found, buffer| {
            let want = &mut wanted[i];
            want.found = found.map(|(_, row)| integer(&row.get(1).to_owned()));
            let mut registers = registers.lock();
            registers.met(want.id, want.found);
            match &want.what {
                What::Nothing => return Verb::Keep,
                What::Delete => {}
                What::Put(row) => row::encode_row(schema, row, buffer),
            }
            registers.try_write(want.id, want.found, want.number());
            if let What::Put(_) = want.what { Verb::Put } else { Verb::Delete }
        })
        .await?;
    for (i, error) in &unwritten.failed {
        client.note(error);
        let want = &wanted[*i];
        registers.lock().has_not_happened(want.id, want.number());
    }
    client.db.wait_durable(time).await?;
    client.counts.add("bulk write");
    let failed: BTreeSet<usize> = unwritten.failed.iter().map(|(i, _)| *i).collect();
    let left: BTreeSet<usize> = unwritten.left.iter().copied().collect();
    for (_, want) in wanted.iter().enumerate().filter(|(i, _)| !failed.contains(i) && !left.contains(i)) {
        match want.what {
            // Nothing was written, and what was seen is durable.
            What::Nothing if want.id < SHARED => registers.lock().has_happened(want.id, want.found),
            What::Nothing => {}
            _ => registers.lock().has_happened(want.id, want.number()),
        }
    }
    for i in left {
        client.counts.add("bulk left");
        if let What::Put(row) = &wanted[i].what
            && wanted[i].id < SHARED
        {
            alone(client, &table, registers, row).await?;
        }
    }
    Ok(())
}

/// One write in a transaction of its own.
async fn alone(
    client: &mut Client,
    table: &TableHandle,
    registers: &Mutex<Registers>,
    row: &[Value],
) -> Result<(), NodeError> {
    let options = client.options();
    let mut txn = client.db.begin(options);
    txn.begin_statement();
    let result = async {
        txn.use_table(table).await?;
        write_one(&mut txn, table, registers, row).await
    };
    if let Err(error) = result.await {
        registers.lock().has_not_happened(integer(&row[0]), Some(integer(&row[1])));
        client.answer_error(&mut txn, &error).await;
        txn.rollback();
        return Ok(());
    }
    end(client, txn, registers, vec![(integer(&row[0]), integer(&row[1]))]).await
}

async fn write_one(
    txn: &mut rauk_node::Transaction,
    table: &TableHandle,
    registers: &Mutex<Registers>,
    row: &[Value],
) -> Result<(), NodeError> {
    let lock = Some((LockMode::Exclusive, WaitPolicy::Wait));
    let id = integer(&row[0]);
    let old = txn.get(table, &key(table, id), lock, |row| row.map(|row| values(table, &row))).await?;
    match old {
        Some(old) => {
            registers.lock().try_write(id, Some(integer(&old[1])), Some(integer(&row[1])));
            txn.update(table, &old, row).await?;
        }
        None => {
            registers.lock().try_write(id, None, Some(integer(&row[1])));
            if let InsertOutcome::Duplicate { .. } = txn.insert(table, row).await? {
                // Somebody else has made it since: undone and tried no more.
                return Err(NodeError::Deadlock);
            }
        }
    }
    Ok(())
}

async fn end(
    client: &mut Client,
    txn: rauk_node::Transaction,
    registers: &Mutex<Registers>,
    writes: Vec<(i64, i64)>,
) -> Result<(), NodeError> {
    registers.lock().together.push(writes.clone());
    match txn.commit().await {
        Ok(()) => {
            client.counts.add("register transaction");
            let mut registers = registers.lock();
            writes.iter().for_each(|(id, number)| registers.has_happened(*id, Some(*number)));
            Ok(())
        }
        Err(error) => {
            if client.is_undone(&error) {
                let mut registers = registers.lock();
                registers.together.pop();
                writes.iter().for_each(|(id, number)| registers.has_not_happened(*id, Some(*number)));
            }
            Err(error)
        }
    }
}

/// Some shared registers in one transaction.
async fn transaction(client: &mut Client, registers: &Mutex<Registers>) -> Result<(), NodeError> {
    let table = client.table(NAME)?;
    let options = client.options();
    let mut txn = client.db.begin(options);
    let ids: BTreeSet<i64> = (0..client.rng.random_range(1..4)).map(|_| client.rng.random_range(0..SHARED)).collect();
    let mut writes = Vec::new();
    let mut failed = None;
    for id in ids {
        txn.begin_statement();
        let number = registers.lock().number();
        let row = new_row(client, id, number);
        writes.push((id, number));
        let result = async {
            txn.use_table(&table).await?;
            write_one(&mut txn, &table, registers, &row).await
        };
        if let Err(error) = result.await {
            failed = Some(error);
            break;
        }
        client.pause().await;
    }
    if failed.is_some() || client.rng.random_bool(0.1) {
        for (id, number) in writes {
            registers.lock().has_not_happened(id, Some(number));
        }
        if let Some(error) = failed {
            client.answer_error(&mut txn, &error).await;
        }
        txn.rollback();
        return Ok(());
    }
    end(client, txn, registers, writes).await
}

async fn read_some(client: &mut Client, owner: i64, registers: &Mutex<Registers>) -> Result<(), NodeError> {
    let table = client.table(NAME)?;
    let ids = pick(client, owner, 60);
    let keys = keys_of(&table, &ids);
    let mut done = vec![false; ids.len()];
    let mut seen = Vec::new();
    let time = client
        .db
        .read_many(&table, &keys, &mut done, &mut |i, found| {
            let number = found.map(|(_, row)| integer(&row.get(1).to_owned()));
            registers.lock().met(ids[i], number);
            seen.push((ids[i], number));
        })
        .await?;
    assert_eq!(seen.len(), ids.len());
    client.db.wait_durable(time).await?;
    client.counts.add("bulk read");
    let mut registers = registers.lock();
    for (id, number) in seen.into_iter().filter(|(id, _)| *id < SHARED) {
        registers.has_happened(id, number);
    }
    Ok(())
}

/// In one snapshot, every index has the same rows.
async fn compare_indexes(client: &mut Client) -> Result<(), NodeError> {
    let table = client.table(NAME)?;
    let mut txn = client.db.begin(TxnOptions::default());
    let result = async {
        txn.use_table(&table).await?;
        txn.begin_statement();
        let mut rows = collect(&mut txn, &table, everything(None), 17).await?;
        client.pause().await;
        txn.begin_statement();
        let by_key = collect(&mut txn, &table, everything(Some(IndexId::PRIMARY)), 9).await?;
        client.pause().await;
        txn.begin_statement();
        let mut by_color = collect(&mut txn, &table, everything(Some(IndexId(1))), 9).await?;
        rows.sort_by_key(|row| integer(&row[0]));
        by_color.sort_by_key(|row| integer(&row[0]));
        assert_eq!(rows, by_key, "one snapshot by row and by key");
        assert_eq!(rows, by_color, "one snapshot by row and by color");
        Ok(())
    };
    let result: Result<(), NodeError> = result.await;
    if let Err(error) = &result {
        client.answer_error(&mut txn, error).await;
        txn.rollback();
        return Ok(());
    }
    client.counts.add("registers compared");
    txn.commit().await
}

/// After a recovery, or at the end of a life.
pub async fn check(db: &Database, registers: &Mutex<Registers>) -> Result<Result<(), String>, NodeError> {
    let table = db.table(super::tables::DATABASE, NAME)?;
    let mut txn = db.begin(TxnOptions::default());
    txn.begin_statement();
    txn.use_table(&table).await?;
    let rows = collect(&mut txn, &table, everything(None), 50).await?;
    txn.commit().await?;
    let there: BTreeMap<i64, i64> = rows.iter().map(|row| (integer(&row[0]), integer(&row[1]))).collect();
    let mut registers = registers.lock();
    Ok(judge(&mut registers, &there))
}

fn judge(registers: &mut Registers, there: &BTreeMap<i64, i64>) -> Result<(), String> {
    let mut chains: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
    for id in 0..SHARED {
        let chain = chains.entry(id).or_default();
        let mut number = there.get(&id).copied().unwrap_or(0);
        while number != 0 {
            let before = registers.found.get(&id).and_then(|writes| writes.get(&number));
            let Some(before) = before else {
                return Err(format!("register {id}: write {number} is there and did not happen"));
            };
            chain.insert(number);
            number = *before;
        }
        let must = registers.certain.get(&id).into_iter().flatten();
        if let Some(lost) = must.into_iter().find(|number| !chain.contains(number)) {
            return Err(format!(
                "register {id}: write {lost} was acknowledged and is lost; there is {:?}",
                there.get(&id)
            ));
        }
        // What is not in the chain has not happened, and will not.
        if let Some(writes) = registers.found.get_mut(&id) {
            writes.retain(|number, _| chain.contains(number));
        }
    }
    for writes in &registers.together {
        let count = writes.iter().filter(|(id, number)| chains[id].contains(number)).count();
        if count != 0 && count != writes.len() {
            return Err(format!("half of a transaction: {writes:?}"));
        }
    }
    registers.together.clear();
    for (id, own) in &mut registers.own {
        let state = there.get(id).copied();
        if !own.now.contains(&state) && !own.earlier.contains(&state) {
            return Err(format!("register {id} has {state:?}, which is none of {own:?}"));
        }
        *own = Own { now: vec![state], earlier: Vec::new() };
    }
    match there.keys().find(|id| **id >= SHARED && !registers.own.contains_key(id)) {
        Some(id) => Err(format!("register {id} is there and nobody wrote it")),
        None => Ok(()),
    }
}
