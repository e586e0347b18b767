//! Workload and checker: one client makes, fills, changes, renames, empties and drops tables of its own.
//!
//! Every statement is wholly there or not at all after a crash, and there for good once it was acknowledged.
use super::client::{Client, collect, everything};
use super::tables::{DATABASE, columns, index, integer, table};
use parking_lot::Mutex;
use rand::Rng;
use rauk_node::transaction::InsertOutcome;
use rauk_node::{Database, NodeError, TxnOptions};
use rauk_types::schema::IndexKind;
use rauk_types::{DataType, TableSchema, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const NAMES: u32 = 4;
const PREFIX: &str = "made ";
const WAIT: Duration = Duration::from_millis(300);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    rows: BTreeMap<i64, i64>,
    indexed: Option<bool>,
}

type Tables = BTreeMap<String, Table>;

/// What must be there, and what may be there instead.
#[derive(Debug, Default)]
pub struct Made {
    tables: Tables,
    maybe: Option<Tables>,
    /// The newest rows of each table may be gone: relaxed durability. Definitions are durable even so.
    doubt: bool,
}

impl Made {
    /// A crash may have taken back the newest rows.
    pub fn doubt(&mut self) {
        self.doubt = true;
    }

    fn allows(&self, found: &Tables) -> bool {
        let rows = |found: &Table, wanted: &Table| match self.doubt {
            false => found.rows == wanted.rows,
            // Rows were inserted in the order of their keys.
            true => found.rows.iter().zip(&wanted.rows).all(|(a, b)| a == b) && found.rows.len() <= wanted.rows.len(),
        };
        let same = |wanted: &Tables| {
            let alike = |name: &String, table: &Table| {
                wanted.get(name).is_some_and(|w| w.indexed == table.indexed && rows(table, w))
            };
            found.len() == wanted.len() && found.iter().all(|(name, table)| alike(name, table))
        };
        same(&self.tables) || self.maybe.as_ref().is_some_and(same)
    }
}

fn schema(name: &str) -> TableSchema {
    table(name, columns(&[("id", DataType::BIGINT, false), ("value", DataType::BIGINT, true)]), Vec::new())
}

pub async fn run(mut client: Client, made: Arc<Mutex<Made>>, count: u64) {
    for _ in 0..count {
        client.rest().await;
        let mut after = made.lock().tables.clone();
        let name = format!("{PREFIX}{}", client.rng.random_range(0..NAMES));
        let step = plan(&mut client, &mut after, &name);
        made.lock().maybe = Some(after.clone());
        let result = carry_out(&mut client, step, &name).await;
        let mut made = made.lock();
        match result {
            Ok(()) => {
                client.counts.add("ddl");
                made.tables = after;
            }
            Err(error) => {
                client.note(&error);
                if client.runtime.crashed().is_some() || matches!(error, NodeError::UnknownOutcome(_)) {
                    return;
                }
            }
        }
        made.maybe = None;
    }
}

enum Step {
    Create,
    Drop,
    Truncate,
    Rename(String),
    Index(bool),
    DropIndex,
    Insert(i64, i64),
}

/// Chooses a step that must succeed, and changes the model as it will.
fn plan(client: &mut Client, tables: &mut Tables, name: &str) -> Step {
    let rng = &mut client.rng;
    let free = (0..NAMES).map(|n| format!("{PREFIX}{n}")).find(|n| !tables.contains_key(n));
    let Some(table) = tables.get_mut(name) else {
        tables.insert(name.to_string(), Table::default());
        return Step::Create;
    };
    match rng.random_range(0..10) {
        0 => {
            tables.remove(name);
            Step::Drop
        }
        1 => {
            table.rows.clear();
            Step::Truncate
        }
        2 if free.is_some() => {
            let to = free.expect("just seen");
            let table = tables.remove(name).expect("just seen");
            tables.insert(to.clone(), table);
            Step::Rename(to)
        }
        3 | 4 if table.indexed.is_some() => {
            table.indexed = None;
            Step::DropIndex
        }
        3 | 4 => {
            // Values are all different, so a unique index can be built.
            let unique = rng.random_bool(0.5);
            table.indexed = Some(unique);
            Step::Index(unique)
        }
        _ => {
            let id = table.rows.last_key_value().map_or(1, |(id, _)| id + 1);
            let value = id * 1000 + rng.random_range(0..1000);
            table.rows.insert(id, value);
            Step::Insert(id, value)
        }
    }
}

async fn carry_out(client: &mut Client, step: Step, name: &str) -> Result<(), NodeError> {
    let db = &client.db;
    match step {
        Step::Create => db.create_table(schema(name)).await,
        Step::Drop => db.drop_table(DATABASE, name, WAIT).await,
        Step::Truncate => db.truncate_table(DATABASE, name, WAIT).await,
        Step::Rename(to) => {
            let pair = |name: &str| (DATABASE.to_string(), name.to_string());
            db.rename_tables(&[(pair(name), pair(&to))], WAIT).await
        }
        Step::Index(unique) => {
            let table = db.table(DATABASE, name)?;
            let mut new = (**table.schema()).clone();
            let kind = if unique { IndexKind::Unique } else { IndexKind::Ordered };
            new.indexes.push(index(1, "value", kind, &[1]));
            db.alter_table(&table, new, WAIT).await
        }
        Step::DropIndex => {
            let table = db.table(DATABASE, name)?;
            let mut new = (**table.schema()).clone();
            new.indexes.truncate(1);
            db.alter_table(&table, new, WAIT).await
        }
        Step::Insert(id, value) => {
            let table = db.table(DATABASE, name)?;
            let mut txn = db.begin(TxnOptions::default());
            txn.begin_statement();
            txn.use_table(&table).await?;
            let outcome = txn.insert(&table, &[Value::Int(id), Value::Int(value)]).await?;
            assert_eq!(outcome, InsertOutcome::Inserted);
            txn.commit().await
        }
    }
}

/// After a recovery.
pub async fn check(db: &Database, made: &Mutex<Made>) -> Result<Result<(), String>, NodeError> {
    let mut found = Tables::new();
    for schema in db.tables(DATABASE)? {
        if !schema.name.starts_with(PREFIX) {
            continue;
        }
        let table = db.table(DATABASE, &schema.name)?;
        let mut txn = db.begin(TxnOptions::default());
        txn.begin_statement();
        txn.use_table(&table).await?;
        let rows = collect(&mut txn, &table, everything(None), 30).await?;
        txn.commit().await?;
        let rows = rows.iter().map(|row| (integer(&row[0]), integer(&row[1]))).collect();
        let indexed = schema.indexes.get(1).map(|i| i.kind == IndexKind::Unique);
        found.insert(schema.name.clone(), Table { rows, indexed });
    }
    let mut made = made.lock();
    if !made.allows(&found) {
        let Made { tables, maybe, .. } = &*made;
        return Ok(Err(format!("there are {found:?}\nand there were {tables:?}\nor {maybe:?}")));
    }
    *made = Made { tables: found, maybe: None, doubt: false };
    Ok(Ok(()))
}
