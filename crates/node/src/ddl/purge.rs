//! Dead entries of global unique indexes are taken away ([`crate::transaction`], `global`).
//!
//! DROP PARTITION and TRUNCATE PARTITION leave them, and say so in the table's definition
//! ([`rauk_types::partitioning::Partitioning::dead_entries`]), so that no crash makes anybody forget it. Somebody calls
//! [`Database::purge_entries`] then, beside readers and writers: it goes through all entries, asks for the rows of a batch
//! together, and locks only entries whose rows were not found. When none is left, [`Database::has_no_dead_entries`] makes
//! the definition say so.

use super::build::{Reader, passes};
use crate::bulk::Keys;
use crate::commit::group::yield_once;
use crate::database::{Database, TableHandle};
use crate::error::NodeError;
use crate::locks::metadata::DdlWait;
use crate::node::Node;
use crate::table::{UniqueIndex, entries};
use crate::transaction::{Isolation, Transaction, TxnOptions};
use rauk_types::{IndexId, RowView, TableId, TableSchema, ValueRef};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Entries that one transaction takes away.
const TOGETHER: usize = 64;
/// The longest wait for an entry that a writer has locked; it is left for the next time then.
const PATIENCE: Duration = Duration::from_millis(50);
/// A cut that covers what was taken away is waited for so long.
const COVERED: Duration = Duration::from_secs(30);

/// The definition that a table gets: it says that entries may be dead if they may be already, or if leaves go with their
/// rows (`rows_go`; else these are in others).
pub(super) fn noting_dead_entries(old: &TableSchema, mut new: TableSchema, rows_go: bool) -> TableSchema {
    let has_global = new.indexes.iter().any(|index| index.global);
    let (Some(before), Some(after)) = (&old.partitioning, &mut new.partitioning) else { return new };
    let stay: BTreeSet<TableId> = after.leaves().filter_map(|leaf| leaf.tables.first().copied()).collect();
    let go = rows_go && before.leaves().any(|leaf| !stay.contains(&leaf.rows()));
    if has_global && (before.dead_entries || go) {
        Arc::make_mut(after).dead_entries = true;
    }
    new
}

/// What became of dead entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    pub gone: u64,
    /// Others had locked them.
    pub left: u64,
}

/// An entry: its key, and the primary key that it names.
type Named = (Vec<u8>, Vec<u8>);

impl Database {
    /// Takes away the dead entries of a table's global unique indexes. `StaleSchema`: the table has been changed meanwhile.
    pub async fn purge_entries(&self, table: &TableHandle) -> Result<Purged, NodeError> {
        let node = &self.node;
        let mut purged = Purged::default();
        for unique in &table.info().uniques {
            let schema = &unique.entries.schema;
            let mut reader = Reader::beside_writers(node, &unique.entries, schema);
            while reader.next().await? {
                let named: Vec<Named> = reader
                    .rows()
                    .map(|row| match row.get(0) {
                        ValueRef::Bytes(key) => (key.to_vec(), entries::base_key(&row)),
                        other => unreachable!("index tables hold bytes, not {other:?}"),
                    })
                    .collect();
                let dead = without_rows(node, table, unique, &named).await?;
                for some in dead.chunks(TOGETHER) {
                    let some = take_away(node, table, unique, some).await?;
                    purged.gone += some.gone;
                    purged.left += some.left;
                    yield_once().await;
                }
            }
        }
        Ok(purged)
    }

    /// Nothing is left of what [`Database::purge_entries`] takes away, in this version of the table.
    pub async fn has_no_dead_entries(
        &self,
        table: &TableHandle,
        wait: impl Into<DdlWait<'_>>,
    ) -> Result<(), NodeError> {
        // The catalog never goes back; what was taken away must not either.
        if let Some(cluster) = self.node.cluster() {
            cluster.wait_cut(COVERED).await?;
        }
        let mut new = (**table.schema()).clone();
        if let Some(partitioning) = &mut new.partitioning {
            Arc::make_mut(partitioning).dead_entries = false;
        }
        self.change_leaves(table, new, wait.into()).await
    }
}

async fn begin(node: &Arc<Node>, table: &TableHandle) -> Result<Transaction, NodeError> {
    let options = TxnOptions {
        isolation: Isolation::ReadCommitted,
        snapshot_isolation: false,
        lock_wait_timeout: PATIENCE,
        ..TxnOptions::default()
    };
    let mut txn = Transaction::new(node.clone(), options);
    txn.give_way();
    txn.begin_statement();
    txn.use_table_to_write(table).await?;
    Ok(txn)
}

/// The entries whose rows are not found.
async fn without_rows(
    node: &Arc<Node>,
    table: &TableHandle,
    unique: &UniqueIndex,
    named: &[Named],
) -> Result<Vec<Named>, NodeError> {
    let mut txn = begin(node, table).await?;
    let mut keys = Keys::default();
    named.iter().for_each(|(_, base)| keys.push(base));
    let (mut alive, mut done) = (vec![false; named.len()], vec![false; named.len()]);
    let mut see = |number: usize, row: Option<RowView<'_>>| {
        alive[number] = row.is_some_and(|row| unique.keys.matches(&row, &named[number].0));
        true
    };
    txn.get_many(table, IndexId::PRIMARY, &keys, &mut done, &mut see).await?;
    txn.rollback();
    Ok(named.iter().zip(alive).filter(|(_, alive)| !alive).map(|(named, _)| named.clone()).collect())
}

async fn take_away(
    node: &Arc<Node>,
    table: &TableHandle,
    unique: &UniqueIndex,
    dead: &[Named],
) -> Result<Purged, NodeError> {
    match take_away_together(node, table, unique, dead).await {
        Ok(gone) => return Ok(Purged { gone, left: 0 }),
        Err(error) if passes(&error) => {}
        Err(error) => return Err(error),
    }
    let mut purged = Purged::default();
    for one in dead {
        match take_away_together(node, table, unique, std::slice::from_ref(one)).await {
            Ok(one) => purged.gone += one,
            Err(error) if passes(&error) => purged.left += 1,
            Err(error) => return Err(error),
        }
    }
    Ok(purged)
}

/// One transaction; gives how many were dead.
async fn take_away_together(
    node: &Arc<Node>,
    table: &TableHandle,
    unique: &UniqueIndex,
    dead: &[Named],
) -> Result<u64, NodeError> {
    let mut txn = begin(node, table).await?;
    let mut taken = 0;
    for (key, base) in dead {
        taken += u64::from(txn.take_dead_entry(table, unique, key, base).await?);
    }
    txn.commit().await?;
    Ok(taken)
}
