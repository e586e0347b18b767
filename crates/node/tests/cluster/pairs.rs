//! Three nodes and a table of pairs, whose rows are written and read by statements of their own.

use super::support::*;
use super::world::{self, World};
use rauk_node::*;
use rauk_types::{Collation, Value};
use std::sync::Arc;

pub fn key(table: &TableHandle, id: i64) -> Vec<u8> {
    let mut key = Vec::new();
    table.primary_key().encode_values(&[Value::Int(id)], &mut key);
    key
}

/// `INSERT`, as a statement of its own.
pub async fn put(db: &Database, id: i64, value: i64) -> Result<(), NodeError> {
    let table = db.table("d", "t")?;
    let mut txn = db.begin(TxnOptions::default());
    txn.use_table(&table).await?;
    txn.insert(&table, &[Value::Int(id), Value::Int(value)]).await?;
    txn.commit().await
}

pub async fn get(db: &Database, id: i64) -> Result<Option<i64>, NodeError> {
    let table = db.table("d", "t")?;
    let mut txn = db.begin(TxnOptions { autocommit: true, ..TxnOptions::default() });
    txn.use_table(&table).await?;
    let read = |row: Option<rauk_types::RowView<'_>>| row.map(|row| value_of(&row));
    txn.get(&table, &key(&table, id), None, read).await
}

pub fn value_of(row: &rauk_types::RowView<'_>) -> i64 {
    match row.get(1) {
        rauk_types::ValueRef::Int(v) => v,
        other => panic!("{other:?}"),
    }
}

pub fn three(replicas: u8) -> (Arc<World>, Vec<world::Node>) {
    let world = World::new(3, 4, replicas);
    let nodes: Vec<_> = (0..3).map(|n| world.open(n)).collect();
    world.wait_settled();
    block_on(async {
        nodes[0].db.create_database("d", Collation::DEFAULT).await.unwrap();
        nodes[1].db.create_table(pairs("t")).await.unwrap();
    });
    (world, nodes)
}
