//! Workload: schemas. Clients of all nodes create, change, rename, empty and drop the same few tables, while others write and read rows in them.
//!
//! Each definition that a statement gives has a comment of its own, so that in the history of the group's catalog it can be told whose work a change is. Rows come in pairs that lie in different
//! partitions, are always written together, and belong to the client that made them; it looks for them in whatever table it finds, and the judge knows which of these came out of which.
mod divided;
pub mod record;

use super::Shared;
use crate::cluster::record::Fate;
use crate::node::client::{Client, collect, everything};
use crate::node::tables::{DATABASE, add_column, columns, index, integer, key, table, values};
use futures::future::{Either, select};
use rand::Rng;
use rand::seq::IndexedRandom;
use rauk_kernel::{LockMode, WaitPolicy};
use rauk_node::runtime::Runtime;
use rauk_node::transaction::{InsertOutcome, UpdateOutcome};
use rauk_node::{Database, Isolation, NodeError, TableHandle, Transaction, TxnOptions};
use rauk_types::schema::IndexKind;
use rauk_types::{Collation, DataType, MysqlError, TableId, TableSchema, Value};
use record::{Effect, Look, Shape};
use std::collections::BTreeMap;
use std::time::Duration;

/// What the names of its tables begin with.
pub const PREFIX: &str = "shape ";
const NAMES: u32 = 4;
/// Pairs of a large write.
const MANY: usize = 120;
/// The columns that are always there: id, value (a number or text), code.
const FIXED: usize = 3;
/// As many others come and go.
const EXTRA: usize = 3;
const EXCLUSIVE: rauk_node::Lock = Some((LockMode::Exclusive, WaitPolicy::Wait));

fn name(client: &mut Client) -> String {
    format!("{PREFIX}{}", client.rng.random_range(0..NAMES))
}

fn new_schema(name: &str) -> TableSchema {
    let columns = columns(&[
        ("id", DataType::BIGINT, false),
        ("value", DataType::BIGINT, false),
        ("code", DataType::BIGINT, true),
    ]);
    table(name, columns, Vec::new())
}

// Definitions

/// A client that changes definitions; `divided`: those of partitioned tables ([`divided`]).
pub async fn change(mut client: Client, shared: &Shared, count: u64, divided: bool) {
    for _ in 0..count {
        client.rest().await;
        let work = if divided { divided::plan(&mut client) } else { plan(&mut client) };
        statement(&mut client, shared, work).await;
    }
}

enum Work {
    Create(TableSchema),
    Alter(TableHandle, TableSchema),
    /// Leaves come, go or are emptied that have no rows.
    Leaves(TableHandle, TableSchema),
    /// Rows go from leaves to others.
    Reorganize(TableHandle, TableSchema),
    Rewrite(TableHandle, TableSchema),
    Rename(String, String),
    Truncate(String),
    Drop(String),
}

async fn statement(client: &mut Client, shared: &Shared, work: Work) {
    let (effect, schema) = match &work {
        Work::Create(new) => (Effect::Create { name: new.name.clone() }, Some(new)),
        Work::Alter(_, new) | Work::Leaves(_, new) | Work::Reorganize(_, new) => {
            (Effect::Alter { name: new.name.clone() }, Some(new))
        }
        Work::Rewrite(_, new) => (Effect::Rewrite { name: new.name.clone() }, Some(new)),
        Work::Rename(from, to) => (Effect::Rename { from: from.clone(), to: to.clone() }, None),
        Work::Truncate(name) => (Effect::Truncate { name: name.clone() }, None),
        Work::Drop(name) => (Effect::Drop { name: name.clone() }, None),
    };
    let done_to_leaves = match &work {
        Work::Leaves(..) => Some("leaves changed"),
        Work::Reorganize(..) => Some("leaves divided otherwise"),
        _ => None,
    };
    let wait = Duration::from_millis(client.rng.random_range(100..1500));
    let shape = schema.map(Shape::of);
    let called = shared.group_index();
    let number = shared.schemas.lock().call(effect, shape, called, wait);
    let began = shared.executor.now();
    let done = Box::pin(carry_out(client.db.clone(), work, wait));
    let result = if client.rng.random_bool(0.06) {
        // Its connection is lost in the middle.
        let after = Duration::from_micros(client.rng.random_range(0..200_000));
        match select(done, client.runtime.sleep(after)).await {
            Either::Left((result, _)) => result,
            Either::Right(_) => return client.counts.add("definition left"),
        }
    } else {
        done.await
    };
    client.told().await;
    let (now, lasted) = (shared.group_index(), shared.executor.now().saturating_sub(began));
    let undone = result.as_ref().is_err_and(|error| client.is_undone(error));
    match &result {
        Ok(()) => {
            client.counts.add("definition changed");
            done_to_leaves.into_iter().for_each(|what| client.counts.add(what));
        }
        Err(NodeError::Refused(why)) => {
            assert!(may_refuse(why), "a statement was refused: {why}");
            client.counts.add("definition refused");
        }
        Err(error) => client.note(error),
    }
    let mut record = shared.schemas.lock();
    let statement = &mut record.statements[number];
    statement.lasted = Some(lasted);
    statement.answer = format!("{result:?}");
    match result {
        Ok(()) => (statement.fate, statement.answered) = (Fate::Committed, Some(now)),
        Err(_) if undone => (statement.fate, statement.answered) = (Fate::Aborted, Some(now)),
        Err(_) => {}
    }
}

/// The name is taken or not there, or a value is there twice.
fn may_refuse(why: &MysqlError) -> bool {
    [1050, 1051, 1062, 1146].contains(&why.code)
}

fn plan(client: &mut Client) -> Work {
    let name = name(client);
    let token = format!("{:x}", client.rng.random::<u64>());
    let Ok(table) = client.table(&name) else {
        let mut schema = new_schema(&name);
        schema.comment = token;
        return Work::Create(schema);
    };
    let rng = &mut client.rng;
    let mut new = (**table.schema()).clone();
    new.comment = token.clone();
    let next_index = new.indexes.iter().map(|i| i.id.0).max().unwrap_or(0) + 1;
    let kind = match rng.random_range(0..16) {
        0 => return Work::Drop(name),
        1 => return Work::Truncate(name),
        2 | 3 => {
            let to = format!("{PREFIX}{}", rng.random_range(0..NAMES));
            return Work::Rename(name, to);
        }
        4 => {
            let mut schema = new_schema(&name);
            schema.comment = token;
            return Work::Create(schema);
        }
        5..=7 => {
            let ty = &mut new.columns[1].ty;
            *ty = match ty == &DataType::BIGINT {
                true => DataType::varchar(30, Collation::Utf8mb4GeneralCi),
                false => DataType::BIGINT,
            };
            return Work::Rewrite(table, new);
        }
        8 | 9 if new.columns.len() < FIXED + EXTRA => {
            add_column(&mut new.columns, &format!("x {token}"), DataType::BIGINT, true);
            return Work::Alter(table, new);
        }
        8..=10 if new.columns.len() > FIXED => {
            let dropped = rng.random_range(FIXED..new.columns.len());
            new.columns.remove(dropped);
            return Work::Alter(table, new);
        }
        11 | 12 => IndexKind::Unique,
        _ => IndexKind::Ordered,
    };
    if new.indexes.len() > 3 || new.indexes.len() > 1 && rng.random_bool(0.3) {
        let dropped = rng.random_range(1..new.indexes.len());
        new.indexes.remove(dropped);
        return Work::Alter(table, new);
    }
    let parts: &[usize] = match (kind, rng.random_bool(0.5)) {
        (IndexKind::Unique, false) => &[2],
        (IndexKind::Unique, true) => &[2, 0],
        (_, false) => &[1],
        (_, true) => &[2, 1],
    };
    new.indexes.push(index(next_index, &format!("i {token}"), kind, parts));
    Work::Alter(table, new)
}

async fn carry_out(db: Database, work: Work, wait: Duration) -> Result<(), NodeError> {
    match work {
        Work::Create(schema) => db.create_table(schema).await,
        Work::Alter(table, new) => db.alter_table(&table, new, wait).await,
        Work::Leaves(table, new) => db.change_partitions(&table, new, wait).await,
        Work::Reorganize(table, new) => db.reorganize_leaves(&table, new, wait).await.map(drop),
        Work::Rewrite(table, new) => {
            let ty = new.columns[1].ty;
            let mut convert = |row: &[Value]| {
                let mut row = row.to_vec();
                row[1] = stored(number(&row[1]), &ty);
                Ok(row)
            };
            db.rewrite_table(&table, new, wait, &mut convert).await.map(|_| ())
        }
        Work::Rename(from, to) => {
            let full = |name: String| (DATABASE.to_string(), name);
            db.rename_tables(&[(full(from), full(to))], wait).await
        }
        Work::Truncate(name) => db.truncate_table(DATABASE, &name, wait).await,
        Work::Drop(name) => db.drop_table(DATABASE, &name, wait).await,
    }
}

/// A pair's value as a column of this type has it.
fn stored(value: i64, ty: &DataType) -> Value {
    match ty == &DataType::BIGINT {
        true => Value::Int(value),
        false => Value::Str(value.to_string()),
    }
}

fn number(value: &Value) -> i64 {
    match value {
        Value::Str(text) => text.parse().expect("numbers were written"),
        value => integer(value),
    }
}

// Rows

/// A client that writes pairs and looks at them.
pub async fn rows(mut client: Client, shared: &Shared, count: u64) {
    let mut own: Vec<i64> = Vec::new();
    for _ in 0..count {
        client.rest().await;
        let mut session = client.another();
        let options = TxnOptions { autocommit: false, ..session.options() };
        match client.rng.random_range(0..10) {
            0..=6 => write(&mut session, shared, options, &mut own).await,
            7 | 8 => look(&mut session, shared, options, &own).await,
            _ => compare(&mut session, options).await,
        }
    }
}

/// What a write has done if it commits.
struct Written {
    pair: i64,
    value: Option<i64>,
    look: Option<Look>,
}

async fn write(client: &mut Client, shared: &Shared, options: TxnOptions, own: &mut Vec<i64>) {
    let mut txn = client.db.begin(options);
    let written = match put(client, shared, &mut txn, own).await {
        Ok(written) if written.is_empty() => return txn.rollback(),
        Ok(written) => written,
        Err(error) => {
            client.answer_error(&mut txn, &error).await;
            return txn.rollback();
        }
    };
    for Written { pair, value, .. } in &written {
        shared.schemas.lock().pairs.get_mut(pair).expect("it was noted").maybe = Some(*value);
    }
    let result = txn.commit().await;
    client.told().await;
    let mut record = shared.schemas.lock();
    let undone = result.as_ref().is_err_and(|error| client.is_undone(error));
    match &result {
        Ok(()) => client.counts.add("pair written"),
        Err(error) => client.note(error),
    }
    for Written { pair: number, value, look } in written {
        let pair = record.pairs.get_mut(&number).expect("it was noted");
        match result {
            Ok(()) => {
                (pair.value, pair.maybe) = (value, None);
                if look.is_none() {
                    own.push(number);
                }
                record.looks.extend(look);
            }
            Err(_) if undone => pair.maybe = None,
            // Nobody knows what it is: it stays as it is.
            Err(_) => own.retain(|own| *own != number),
        }
    }
}

/// The rows of a pair.
fn ids(pair: i64) -> [i64; 2] {
    [pair * 2, pair * 2 + 1]
}

async fn put(
    client: &mut Client,
    shared: &Shared,
    txn: &mut Transaction,
    own: &[i64],
) -> Result<Vec<Written>, NodeError> {
    let name = name(client);
    let table = client.table(&name)?;
    txn.begin_statement();
    txn.use_table(&table).await?;
    let value = client.rng.random_range(0..1_000_000);
    let old = own.choose(&mut client.rng).copied().filter(|_| client.rng.random_bool(0.5));
    let Some(pair) = old else {
        // Now and then many, so that tables are more than one batch for whoever copies them.
        let count = if client.rng.random_bool(0.06) { MANY } else { 1 };
        let mut written = Vec::new();
        for _ in 0..count {
            let pair = shared.schemas.lock().pair(table.schema().id);
            for id in ids(pair) {
                txn.begin_statement();
                let row = new_row(client, &table, id, value, count == 1);
                if txn.insert(&table, &row).await? != InsertOutcome::Inserted {
                    client.counts.add("duplicate");
                    return Ok(Vec::new());
                }
            }
            client.pause().await;
            written.push(Written { pair, value: Some(value), look: None });
        }
        return Ok(written);
    };
    let mut rows = Vec::new();
    for id in ids(pair) {
        txn.begin_statement();
        let row = txn.get(&table, &key(&table, id), EXCLUSIVE, |row| row.map(|row| values(&table, &row))).await?;
        rows.push(row);
        client.pause().await;
    }
    let found = |at: usize| rows[at].as_ref().map(|row: &Vec<Value>| number(&row[1]));
    let look = look_of(shared, pair, table.schema().id, [found(0), found(1)]);
    let (Some(first), Some(second)) = (&rows[0], &rows[1]) else {
        // It is in another table; or it is not, and the judge will say so.
        return Ok(vec![Written { pair, value: look.expected, look: Some(look) }]);
    };
    let goes = client.rng.random_bool(0.3);
    for old in [first, second] {
        txn.begin_statement();
        if goes {
            assert!(txn.delete(&table, old).await?, "a locked row went away");
        } else {
            let mut new = new_row(client, &table, integer(&old[0]), value, false);
            new[2] = old[2].clone();
            match txn.update(&table, old, &new).await? {
                UpdateOutcome::Updated => {}
                other => panic!("a locked row: {other:?}"),
            }
        }
        client.pause().await;
    }
    Ok(vec![Written { pair, value: (!goes).then_some(value), look: Some(look) }])
}

fn look_of(shared: &Shared, pair: i64, table: TableId, found: [Option<i64>; 2]) -> Look {
    Look { pair, table, found, expected: shared.schemas.lock().pairs[&pair].value }
}

fn new_row(client: &mut Client, table: &TableHandle, id: i64, value: i64, coded: bool) -> Vec<Value> {
    let code = (coded && client.rng.random_bool(0.7)).then(|| Value::Int(client.rng.random_range(0..400)));
    let mut row = vec![Value::Int(id), stored(value, &table.schema().columns[1].ty), code.unwrap_or_default()];
    row.resize_with(table.schema().columns.len(), || Value::Int(client.rng.random_range(0..9)));
    row
}

/// A plain read of a pair.
async fn look(client: &mut Client, shared: &Shared, options: TxnOptions, own: &[i64]) {
    let Some(pair) = own.choose(&mut client.rng).copied() else { return };
    let name = name(client);
    let Ok(table) = client.table(&name) else { return };
    let mut txn = client.db.begin(options);
    let found = async {
        txn.use_table(&table).await?;
        let mut found = [None; 2];
        for (at, id) in ids(pair).into_iter().enumerate() {
            txn.begin_statement();
            let value = |row: Option<rauk_types::RowView<'_>>| row.map(|row| number(&row.get(1).to_owned()));
            found[at] = txn.get(&table, &key(&table, id), None, value).await?;
        }
        Ok(found)
    };
    match found.await {
        Ok(found) => {
            let look = look_of(shared, pair, table.schema().id, found);
            if txn.commit().await.is_ok() {
                client.told().await;
                client.counts.add("pair read");
                shared.schemas.lock().looks.push(look);
            }
        }
        Err(error) => {
            client.answer_error(&mut txn, &error).await;
            txn.rollback();
        }
    }
}

/// In one snapshot, every index has the rows that the table has.
async fn compare(client: &mut Client, options: TxnOptions) {
    let name = name(client);
    let Ok(table) = client.table(&name) else { return };
    let mut txn = client.db.begin(TxnOptions { isolation: Isolation::RepeatableRead, ..options });
    let batch = client.rng.random_range(1..30);
    let compared = async {
        txn.use_table(&table).await?;
        let mut found = Vec::new();
        for index in std::iter::once(None).chain(table.schema().indexes.iter().map(|index| Some(index.id))) {
            txn.begin_statement();
            let mut rows = collect(&mut txn, &table, everything(index), batch).await?;
            rows.sort_by_key(|row| integer(&row[0]));
            found.push(rows);
        }
        Ok(found)
    };
    match compared.await {
        Ok(found) => {
            if txn.commit().await.is_ok() {
                client.counts.add("indexes compared");
                let differs = found.iter().position(|rows| *rows != found[0]);
                assert_eq!(differs.map(|at| (&found[at], &found[0])), None, "an index of {name} differs from its rows");
            }
        }
        Err(error) => {
            client.answer_error(&mut txn, &error).await;
            txn.rollback();
        }
    }
}

/// What is in each of its tables: ids and values.
pub async fn contents(db: &Database) -> Result<BTreeMap<TableId, BTreeMap<i64, i64>>, NodeError> {
    let mut all = BTreeMap::new();
    for schema in db.tables(DATABASE)? {
        if !schema.name.starts_with(PREFIX) {
            continue;
        }
        let table = db.table(DATABASE, &schema.name)?;
        let mut txn = db.begin(TxnOptions::default());
        txn.begin_statement();
        txn.use_table(&table).await?;
        let rows = collect(&mut txn, &table, everything(None), 50).await?;
        txn.commit().await?;
        all.insert(schema.id, rows.iter().map(|row| (integer(&row[0]), number(&row[1]))).collect());
    }
    Ok(all)
}
