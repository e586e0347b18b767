//! Workload and checker: parents and children under foreign keys of all kinds, written at all isolation levels.
//!
//! A child refers to its parent by the primary key (cascades), by a unique index (SET NULL, cascades on update) and by an index that is not unique
//! (RESTRICT). Clients insert, change and delete rows of both tables with keys from a small range, so that they meet. The promise: at every moment, in
//! every snapshot and after every crash, no child refers to a parent that is not there.
//!
//! Children of another table, the *wards*, have a foreign key only now and then: it is added while clients write, who do
//! not care for it as long as it is not there, and dropped again. The promise holds for whoever reads them under a
//! definition that has it.
use super::client::{Client, collect, everything};
use super::tables::{self, columns, index, key, table, values};
use rand::Rng;
use rauk_kernel::{LockMode, WaitPolicy};
use rauk_node::transaction::{InsertOutcome, UpdateOutcome};
use rauk_node::{Database, Isolation, NodeError, TableHandle, Transaction, TxnOptions};
use rauk_types::error::codes;
use rauk_types::schema::IndexKind;
use rauk_types::{ColumnId, DataType, ForeignKey, IndexId, ReferenceAction, TableSchema, Value};
use std::collections::BTreeSet;
use std::time::Duration;

pub const PARENTS: &str = "parents";
pub const CHILDREN: &str = "children";
pub const WARDS: &str = "wards";
/// The foreign key of the wards.
const GUARDIAN: &str = "by_guardian";
const DDL_WAIT: Duration = Duration::from_millis(500);
const IDS: i64 = 8;
const CHILD_IDS: i64 = 24;
const KINDS: i64 = 4;
/// So few that the key can often be added.
const WARD_IDS: i64 = 3;

/// id, code (unique), kind (indexed).
pub fn parents() -> TableSchema {
    let columns =
        columns(&[("id", DataType::BIGINT, false), ("code", DataType::BIGINT, true), ("kind", DataType::BIGINT, true)]);
    let indexes = vec![index(1, "code", IndexKind::Unique, &[1]), index(2, "kind", IndexKind::Ordered, &[2])];
    table(PARENTS, columns, indexes)
}

/// id, and what it refers to of its parents: id, code, kind.
pub fn children() -> TableSchema {
    let columns = columns(&[
        ("id", DataType::BIGINT, false),
        ("parent", DataType::BIGINT, true),
        ("code", DataType::BIGINT, true),
        ("kind", DataType::BIGINT, true),
    ]);
    let indexes = (1..4u16).map(|at| index(at, &format!("i{at}"), IndexKind::Ordered, &[usize::from(at)])).collect();
    let key = |column: u16, parent: &str, on_delete, on_update| ForeignKey {
        name: format!("by_{parent}"),
        columns: vec![ColumnId(column)],
        parent_database: tables::DATABASE.to_string(),
        parent_table: PARENTS.to_string(),
        parent_columns: vec![parent.to_string()],
        on_delete,
        on_update,
    };
    use ReferenceAction::*;
    let foreign_keys =
        vec![key(1, "id", Cascade, Cascade), key(2, "code", SetNull, Cascade), key(3, "kind", Restrict, NoAction)];
    TableSchema { foreign_keys, ..table(CHILDREN, columns, indexes) }
}

/// id, and the code of a parent.
fn wards() -> TableSchema {
    let columns = columns(&[("id", DataType::BIGINT, false), ("guardian", DataType::BIGINT, true)]);
    table(WARDS, columns, vec![index(1, "guardian", IndexKind::Ordered, &[1])])
}

/// Makes the tables, as far as they are not there.
pub async fn prepare(db: &Database) -> Result<(), NodeError> {
    for schema in [parents(), children(), wards()] {
        if db.table(tables::DATABASE, &schema.name).is_err() {
            db.create_table(schema).await?;
        }
    }
    Ok(())
}

pub async fn run(mut client: Client, count: u64) {
    for _ in 0..count {
        client.pause().await;
        let mut session = client.another();
        let options = session.options();
        let interrupt = options.interrupt.clone();
        if client.rng.random_bool(0.06) {
            redefine(&mut session).await;
        } else if client.rng.random_bool(0.8) {
            client.session(interrupt, change(&mut session, options)).await;
        } else {
            audit(&mut session, options).await;
        }
    }
}

async fn change(client: &mut Client, mut options: TxnOptions) {
    options.autocommit = client.rng.random_bool(0.3);
    let statements = if options.autocommit { 1 } else { client.rng.random_range(1..5) };
    let mut txn = client.db.begin(options);
    for _ in 0..statements {
        let savepoint = txn.savepoint();
        txn.begin_statement();
        match statement(client, &mut txn).await {
            Ok(()) => {}
            Err(error) if is_violation(&error) => client.counts.add("family refused"),
            Err(error) => {
                client.answer_error(&mut txn, &error).await;
                return txn.rollback();
            }
        }
        if client.rng.random_bool(0.1) {
            txn.rollback_to(savepoint);
        }
        client.pause().await;
    }
    if client.rng.random_bool(0.1) {
        return txn.rollback();
    }
    let result = txn.commit().await;
    client.told().await;
    match result {
        Ok(()) => client.counts.add("family commit"),
        Err(error) => client.note(&error),
    }
}

/// Adds the foreign key of the wards, or drops it; or their index with it.
async fn redefine(client: &mut Client) {
    let Ok(table) = client.table(WARDS) else { return };
    let mut new = (**table.schema()).clone();
    let adds = new.foreign_keys.is_empty();
    if adds {
        let actions = [ReferenceAction::Restrict, ReferenceAction::Cascade, ReferenceAction::SetNull];
        new.foreign_keys.push(ForeignKey {
            name: GUARDIAN.to_string(),
            columns: vec![ColumnId(1)],
            parent_database: tables::DATABASE.to_string(),
            parent_table: PARENTS.to_string(),
            parent_columns: vec!["code".to_string()],
            on_delete: actions[client.rng.random_range(0..3)],
            on_update: ReferenceAction::Cascade,
        });
        if new.indexes.len() == 1 {
            new.indexes.push(index(1, "guardian", IndexKind::Ordered, &[1]));
        }
    } else {
        new.foreign_keys.clear();
        if client.rng.random_bool(0.3) {
            new.indexes.truncate(1);
        }
    }
    match client.db.alter_table(&table, new, DDL_WAIT).await {
        Ok(()) if adds => client.counts.add("guardians checked"),
        Ok(()) => {}
        Err(error) if adds && is_violation(&error) => client.counts.add("ward without guardian"),
        Err(error) => client.note(&error),
    }
}

/// Writes a ward; without the foreign key, its guardian may be anybody.
async fn write_ward(client: &mut Client, txn: &mut Transaction) -> Result<(), NodeError> {
    let table = client.table(WARDS)?;
    txn.use_table(&table).await?;
    let id = client.rng.random_range(0..WARD_IDS);
    let code = if client.rng.random_bool(0.5) { Value::Null } else { Value::Int(client.rng.random_range(0..IDS)) };
    let row = vec![Value::Int(id), code];
    let lock = Some((LockMode::Exclusive, WaitPolicy::Wait));
    let found = txn.get(&table, &key(&table, id), lock, |row| row.map(|row| values(&table, &row))).await?;
    match found {
        None => txn.insert(&table, &row).await.map(|_| ()),
        Some(old) if client.rng.random_bool(0.5) => txn.delete(&table, &old).await.map(|_| ()),
        Some(old) => txn.update(&table, &old, &row).await.map(|_| ()),
    }
}

fn is_violation(error: &NodeError) -> bool {
    let codes = [codes::ROW_IS_REFERENCED_2, codes::NO_REFERENCED_ROW_2, codes::FOREIGN_DUPLICATE_KEY];
    matches!(error, NodeError::Refused(refused) if codes.contains(&refused.code))
}

async fn statement(client: &mut Client, txn: &mut Transaction) -> Result<(), NodeError> {
    if client.rng.random_bool(0.2) {
        return write_ward(client, txn).await;
    }
    let of_parents = client.rng.random_bool(0.5);
    let table = client.table(if of_parents { PARENTS } else { CHILDREN })?;
    txn.use_table(&table).await?;
    let id = client.rng.random_range(0..if of_parents { IDS } else { CHILD_IDS });
    let row = draw(client, of_parents, id);
    if client.rng.random_bool(0.45) {
        if txn.insert(&table, &row).await? == InsertOutcome::Inserted {
            client.counts.add(if of_parents { "parent inserted" } else { "child inserted" });
        }
        return Ok(());
    }
    let lock = Some((LockMode::Exclusive, WaitPolicy::Wait));
    let found = txn.get(&table, &key(&table, id), lock, |row| row.map(|row| values(&table, &row))).await?;
    let Some(old) = found else { return Ok(()) };
    client.pause().await;
    if client.rng.random_bool(0.5) {
        if txn.delete(&table, &old).await? {
            client.counts.add(if of_parents { "parent deleted" } else { "child deleted" });
        }
        return Ok(());
    }
    // Some columns only, so that keys stay as well as change.
    let mut new = old.clone();
    for at in 0..new.len() {
        if client.rng.random_bool(0.4) {
            new[at] = row[at].clone();
        }
    }
    if of_parents && client.rng.random_bool(0.3) {
        new[0] = Value::Int(client.rng.random_range(0..IDS));
    }
    if new != old && txn.update(&table, &old, &new).await? == UpdateOutcome::Updated {
        client.counts.add(if of_parents { "parent changed" } else { "child changed" });
    }
    Ok(())
}

fn draw(client: &mut Client, of_parents: bool, id: i64) -> Vec<Value> {
    let mut some = |below: i64| match client.rng.random_bool(0.25) {
        true => Value::Null,
        false => Value::Int(client.rng.random_range(0..below)),
    };
    match of_parents {
        true => vec![Value::Int(id), some(IDS), some(KINDS)],
        false => vec![Value::Int(id), some(IDS), some(IDS), some(KINDS)],
    }
}

/// Reads both tables in one snapshot, or under locks, in either order.
async fn audit(client: &mut Client, options: TxnOptions) {
    let isolation = match options.isolation {
        // Its two statements would have two snapshots.
        Isolation::ReadCommitted => Isolation::RepeatableRead,
        other => other,
    };
    let mut txn = client.db.begin(TxnOptions { isolation, ..options });
    let first = client.rng.random_bool(0.5);
    match read(client, &mut txn, first).await {
        Ok(rows) => {
            // What was read under locks that have died counts for nothing.
            if let Err(error) = txn.commit().await {
                return client.note(&error);
            }
            client.counts.add("family audit");
            rows.compare().unwrap_or_else(|what| panic!("an audit at {isolation:?}: {what}"));
        }
        Err(error) => {
            client.answer_error(&mut txn, &error).await;
            txn.rollback();
        }
    }
}

type Rows = Vec<Vec<Value>>;

/// What one transaction has read.
struct Families {
    parents: Rows,
    children: Rows,
    /// Read under a definition that has their foreign key.
    wards: Option<Rows>,
}

async fn read(client: &mut Client, txn: &mut Transaction, parents_first: bool) -> Result<Families, NodeError> {
    // The definition under which the wards are read is the transaction's from its first statement on.
    let table = client.table(WARDS)?;
    txn.begin_statement();
    txn.use_table(&table).await?;
    let wards = match table.schema().foreign_keys.is_empty() {
        true => None,
        false => Some(collect(txn, &table, everything(None), 10).await?),
    };
    let mut read = [Rows::new(), Rows::new()];
    for at in if parents_first { [0, 1] } else { [1, 0] } {
        let table = client.table([PARENTS, CHILDREN][at])?;
        let indexes = [None, Some(IndexId::PRIMARY), Some(IndexId(1)), Some(IndexId(2))];
        let index = indexes[client.rng.random_range(0..indexes.len())];
        let batch = client.rng.random_range(1..20);
        read[at] = all(txn, &table, index, batch).await?;
        client.rest().await;
    }
    let [parents, children] = read;
    Ok(Families { parents, children, wards })
}

async fn all(
    txn: &mut Transaction,
    table: &TableHandle,
    index: Option<IndexId>,
    batch: usize,
) -> Result<Rows, NodeError> {
    txn.begin_statement();
    txn.use_table(table).await?;
    collect(txn, table, everything(index), batch).await
}

impl Families {
    fn compare(&self) -> Result<(), String> {
        let wards = self.wards.iter().map(|wards| (wards, 1, 1));
        for (rows, column, of_parent) in
            [(&self.children, 1, 0), (&self.children, 2, 1), (&self.children, 3, 2)].into_iter().chain(wards)
        {
            let integer = |value: &Value| value.as_ref().as_integer();
            let there: BTreeSet<i128> = self.parents.iter().filter_map(|row| integer(&row[of_parent])).collect();
            let orphan = rows.iter().find(|row| integer(&row[column]).is_some_and(|value| !there.contains(&value)));
            if let Some(orphan) = orphan {
                let (parents, count) = (&self.parents, orphan.len());
                return Err(format!(
                    "the row {orphan:?} of {count} columns has no parent by column {column}; there are {parents:?}"
                ));
            }
        }
        Ok(())
    }
}

/// What is there.
pub async fn check(db: &Database) -> Result<Result<(), String>, NodeError> {
    let mut txn = db.begin(TxnOptions::default());
    let parents = all(&mut txn, &db.table(tables::DATABASE, PARENTS)?, None, 100).await?;
    let children = all(&mut txn, &db.table(tables::DATABASE, CHILDREN)?, None, 100).await?;
    let table = db.table(tables::DATABASE, WARDS)?;
    let wards = all(&mut txn, &table, None, 100).await?;
    txn.commit().await?;
    let wards = (!table.schema().foreign_keys.is_empty()).then_some(wards);
    Ok(Families { parents, children, wards }.compare())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orphans_are_found() {
        let int = |values: &[Option<i64>]| values.iter().map(|v| v.map_or(Value::Null, Value::Int)).collect::<Vec<_>>();
        let parents = [int(&[Some(1), Some(10), None]), int(&[Some(2), None, Some(3)])];
        let compared = |children: &[Vec<Value>], wards: Option<Rows>| {
            Families { parents: parents.to_vec(), children: children.to_vec(), wards }.compare()
        };
        let good = [int(&[Some(1), Some(1), None, Some(3)]), int(&[Some(2), None, Some(10), None])];
        assert_eq!(compared(&good, None), Ok(()));
        assert_eq!(compared(&good, Some(vec![int(&[Some(1), Some(10)]), int(&[Some(2), None])])), Ok(()));
        assert!(compared(&[int(&[Some(1), Some(3), None, None])], None).is_err());
        assert!(compared(&[int(&[Some(1), None, Some(2), None])], None).is_err());
        assert!(compared(&[int(&[Some(1), None, None, Some(1)])], None).is_err());
        assert!(compared(&good, Some(vec![int(&[Some(1), Some(11)])])).is_err());
    }
}
