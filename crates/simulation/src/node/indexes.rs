//! The checker of indexes: what each index says of a table is what its rows say.
use super::client::{collect, everything};
use super::tables::{DATABASE, values};
use rauk_node::{Database, Isolation, NodeError, ScanSpec, TxnOptions};
use rauk_types::Value;
use rauk_types::schema::TableSchema;
use std::sync::Arc;

/// All tables of the simulation, all their indexes, forwards and backwards. `Ok(Err(_))` says what differs.
pub async fn check(db: &Database) -> Result<Result<(), String>, NodeError> {
    for schema in db.tables(DATABASE)? {
        if let Err(what) = check_table(db, &schema).await? {
            return Ok(Err(format!("table {}: {what}", schema.name)));
        }
    }
    Ok(Ok(()))
}

async fn check_table(db: &Database, schema: &Arc<TableSchema>) -> Result<Result<(), String>, NodeError> {
    let table = db.table(DATABASE, &schema.name)?;
    let mut txn = db.begin(TxnOptions { isolation: Isolation::RepeatableRead, ..TxnOptions::default() });
    txn.begin_statement();
    txn.use_table(&table).await?;
    let rows = collect(&mut txn, &table, everything(None), 64).await?;
    for index in &schema.indexes {
        let def = schema.key_def(index);
        let key_of = |row: &Vec<Value>| {
            let mut key = Vec::new();
            def.encode_values(row, &mut key);
            key
        };
        for reverse in [false, true] {
            let spec = ScanSpec { reverse, ..everything(Some(index.id)) };
            let scanned = collect(&mut txn, &table, spec, 5).await?;
            let keys: Vec<_> = scanned.iter().map(key_of).collect();
            let in_order = keys.windows(2).all(|pair| if reverse { pair[0] >= pair[1] } else { pair[0] <= pair[1] });
            if !in_order {
                return Ok(Err(format!("index {} is not in order (reverse: {reverse})", index.name)));
            }
            if sorted(&scanned) != sorted(&rows) {
                return Ok(Err(format!(
                    "index {} has {} rows, the table has {} (reverse: {reverse})",
                    index.name,
                    scanned.len(),
                    rows.len()
                )));
            }
        }
        if index.is_unique() {
            for row in &rows {
                let nulls = index.parts.iter().any(|part| row[part.column].is_null());
                if nulls {
                    continue;
                }
                let found = txn
                    .get_unique(&table, index.id, &key_of(row), None, |row| row.map(|row| values(&table, &row)))
                    .await?;
                if found.as_ref() != Some(row) {
                    return Ok(Err(format!("index {} leads from {row:?} to {found:?}", index.name)));
                }
            }
        }
    }
    db.finish_ends().await;
    let usage = db.table_usage(schema.id).rows;
    txn.commit().await?;
    if usage != rows.len() as u64 {
        return Ok(Err(format!("it is said to have {usage} rows and has {}", rows.len())));
    }
    Ok(Ok(()))
}

/// Rows as text, in one order whatever order they came in.
fn sorted(rows: &[Vec<Value>]) -> Vec<String> {
    let mut rows: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
    rows.sort();
    rows
}
