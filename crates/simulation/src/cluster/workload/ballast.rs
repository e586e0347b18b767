//! Workload: ballast. Rows that are there from the beginning and stay as they are, so that copies of partitions have many slices.
use crate::node::client::{collect, everything};
use crate::node::tables::{DATABASE, columns, integer, table};
use rauk_node::transaction::InsertOutcome;
use rauk_node::{Database, NodeError, TxnOptions};
use rauk_types::{DataType, TableSchema, Value};
use std::collections::BTreeSet;

pub const NAME: &str = "ballast";
const BATCH: i64 = 100;
const NOTE: usize = 100;

pub fn schema() -> TableSchema {
    let columns = columns(&[("id", DataType::BIGINT, false), ("note", DataType::varbinary(200), false)]);
    table(NAME, columns, Vec::new())
}

/// Fills the table with so many rows. May be called again when it has failed.
pub async fn prepare(db: &Database, rows: u32) -> Result<(), NodeError> {
    let table = db.table(DATABASE, NAME)?;
    let there = contents(db).await?;
    let missing: Vec<i64> = (0..i64::from(rows)).filter(|id| !there.contains(id)).collect();
    for ids in missing.chunks(BATCH as usize) {
        let mut txn = db.begin(TxnOptions::default());
        txn.begin_statement();
        txn.use_table(&table).await?;
        for id in ids {
            let note = vec![*id as u8; NOTE];
            assert_eq!(txn.insert(&table, &[Value::Int(*id), Value::Bytes(note)]).await?, InsertOutcome::Inserted);
        }
        txn.commit().await?;
    }
    Ok(())
}

/// The rows that are there.
pub async fn contents(db: &Database) -> Result<BTreeSet<i64>, NodeError> {
    let table = db.table(DATABASE, NAME)?;
    let mut txn = db.begin(TxnOptions::default());
    txn.begin_statement();
    txn.use_table(&table).await?;
    let rows = collect(&mut txn, &table, everything(None), 500).await?;
    txn.commit().await?;
    Ok(rows.iter().map(|row| integer(&row[0])).collect())
}
