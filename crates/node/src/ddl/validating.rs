//! New foreign keys are validated while writers go on.
//!
//! From the short lock on, whoever writes a child row looks for its parent, and whoever takes a parent away notes that
//! ([`crate::transaction`], `new_references`). So what is left to be looked at is the rows that were there: all of them,
//! a batch at a time, and without locks. That is enough:
//!
//! - A row that is read has been there since before, or its writer has seen to it.
//! - A parent that is found and goes later is noted by whoever takes it away, with its transaction.
//! - Where no parent is found the row is looked at again under locks ([`check_row`]): its own, so that what it refers to
//!   is what it says, and then its parent's, whose writer is waited for. What has no parent then is an error (1452),
//!   whatever may happen to it later; so it is in MySQL.
//!
//! Notes of parents that went ([`check_left`]) are looked at in the same order: the child rows with such a key are
//! looked for by a locking scan, which waits for whoever is about to write one, and then the parent again.
//!
//! The definition of the build has the new foreign keys behind those of the table ([`super::online`]).

use super::build::{Patience, Reader, fault_point, parts_of};
use super::entering::{Told, beside_writers};
use super::foreign::{all_there, key_of, missing_parent};
use super::progress::RowWork;
use super::workers::{Keeps, Parts, Worker, Workers, is_worth_it};
use crate::commit::group::yield_once;
use crate::error::NodeError;
use crate::locks::metadata::DdlWait;
use crate::node::Node;
use crate::table::building::{Building, new_keys};
use crate::table::relations::{ParentIndex, Reference};
use crate::table::{TableInfo, UniqueIndex};
use crate::transaction::Transaction;
use rauk_types::{TableSchema, ValueRef};
use std::sync::Arc;

/// The tables that new foreign keys of a definition refer to; the table itself left out.
pub(crate) fn parents(node: &Node, definition: &TableSchema, old: &TableSchema) -> Vec<Arc<TableInfo>> {
    let others = new_keys(definition, old).filter(|(_, key)| !key.is_parent(old));
    let mut found: Vec<_> =
        others.filter_map(|(_, key)| node.tables.by_name(&key.parent_database, &key.parent_table)).collect();
    found.sort_by_key(|table| table.schema.id);
    found.dedup_by_key(|table| table.schema.id);
    found
}

/// Looks for the parents of all rows that are there; error 1452. Those of many rows are looked for by several threads.
pub(super) async fn validate_beside(
    node: &Arc<Node>,
    table: &Arc<TableInfo>,
    building: &Arc<Building>,
    patience: &mut Patience,
    wait: DdlWait<'_>,
    (workers, keeps): (&Workers, Keeps),
) -> Result<(), NodeError> {
    let rows = node.rows_of(table);
    wait.begins(RowWork::Validate, rows * building.references.len() as u64);
    for reference in &building.references {
        let key = &building.schema.foreign_keys[reference.number];
        let parent = match key.is_parent(&table.schema) {
            true => Some(table.clone()),
            false => node.tables.by_name(&key.parent_database, &key.parent_table),
        };
        let Some(parent) = parent else { return missing_parent(key, &building.schema) };
        let Some(index) = ParentIndex::of(key, &building.schema, &parent.schema) else {
            return missing_parent(key, &building.schema);
        };
        let looked_for = Arc::new(LookedFor {
            node: node.clone(),
            building: building.clone(),
            number: reference.number,
            columns: reference.columns.clone(),
            parent,
            index,
        });
        let parts = parts_of(node, std::slice::from_ref(table));
        if !is_worth_it(node, wait, rows, parts.len()) {
            let told = Told { tell: &|rows| wait.has_done(rows), is_to_end: &|| false, pace: &wait.pace() };
            looked_for.look(table, None, patience, told).await?;
            continue;
        }
        let most = parts.len();
        let (parts, pace) = (Parts::new(parts), wait.pace());
        let work = |worker: Worker| {
            let (looked_for, parts, mut patience) = (looked_for.clone(), parts.clone(), patience.another());
            let pace = pace.clone();
            async move {
                let (tell, is_to_end) = (|rows| worker.has_done(rows), || worker.is_to_end());
                let told = Told { tell: &tell, is_to_end: &is_to_end, pace: &pace };
                while let Some((table, partition)) = parts.next(&worker) {
                    looked_for.look(&table, Some(partition), &mut patience, told).await?;
                }
                Ok(())
            }
        };
        workers.run(node, wait, most, keeps.clone(), work).await?;
    }
    Ok(())
}

/// The parents that a new foreign key of a table asks for.
struct LookedFor {
    node: Arc<Node>,
    building: Arc<Building>,
    /// Of the foreign key in the build's definition.
    number: usize,
    /// Its columns.
    columns: Vec<usize>,
    parent: Arc<TableInfo>,
    index: ParentIndex,
}

impl LookedFor {
    /// Those of the rows of a table, or of its part in a partition, unless it `is_to_end`.
    async fn look(
        &self,
        table: &Arc<TableInfo>,
        partition: Option<u16>,
        patience: &mut Patience,
        told: Told<'_>,
    ) -> Result<(), NodeError> {
        let LookedFor { node, building, number, columns, parent, index } = self;
        let primary = building.schema.key_def(building.schema.primary());
        let mut reader = Reader::of(node, table, &building.schema, true, partition);
        while reader.next().await? && !(told.is_to_end)() {
            fault_point("node.ddl.validate", node).await?;
            let mut wanted: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
            told.has_done(node, reader.rows().count() as u64).await;
            for row in reader.rows() {
                let Some(key) = key_of(&row, columns, index, parent) else { continue };
                let mut base = Vec::new();
                primary.encode_row(&row, &mut base);
                wanted.push((key, base));
            }
            let keys = distinct(&wanted);
            if there(node, parent, index, &keys, patience).await? {
                patience.went_on();
                yield_once().await;
                continue;
            }
            for key in &keys {
                if there(node, parent, index, std::slice::from_ref(key), patience).await? {
                    continue;
                }
                for (_, base) in wanted.iter().filter(|(wanted, _)| wanted == key) {
                    look_again(node, table, building, *number, base, patience).await?;
                }
            }
        }
        Ok(())
    }
}

fn distinct(wanted: &[(Vec<u8>, Vec<u8>)]) -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = wanted.iter().map(|(key, _)| key.clone()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Whether a parent row has each of these keys; what stands in the way for a while is waited for.
async fn there(
    node: &Arc<Node>,
    parent: &Arc<TableInfo>,
    index: &ParentIndex,
    keys: &[Vec<u8>],
    patience: &mut Patience,
) -> Result<bool, NodeError> {
    loop {
        match all_there(node, parent, index, keys).await {
            Err(error) => patience.again(node, error).await?,
            found => return found,
        }
    }
}

async fn look_again(
    node: &Arc<Node>,
    table: &Arc<TableInfo>,
    building: &Building,
    number: usize,
    base: &[u8],
    patience: &mut Patience,
) -> Result<(), NodeError> {
    loop {
        let mut txn = beside_writers(node, table, building);
        let looked = async {
            let seen = check_row(&mut txn, table, building, number, base).await?;
            end(txn, building, seen).await
        };
        match looked.await {
            Ok(()) => return Ok(()),
            Err(error) => patience.again(node, error).await?,
        }
    }
}

/// What a look at a new foreign key under locks has shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    Kept,
    /// By this one, by its number, a row has no parent.
    Broken(usize),
}

/// Ends the transaction of a look: error 1452 for what is broken, if the locks by which that was seen have stood until
/// now.
pub(super) async fn end(txn: Transaction, building: &Building, seen: Seen) -> Result<(), NodeError> {
    txn.commit_without_waiting().await?;
    match seen {
        Seen::Kept => Ok(()),
        Seen::Broken(number) => missing_parent(&building.schema.foreign_keys[number], &building.schema),
    }
}

/// Whether a row, if it is there and refers to anything, has its parent; both are locked.
pub(super) async fn check_row(
    txn: &mut Transaction,
    table: &Arc<TableInfo>,
    building: &Building,
    number: usize,
    base: &[u8],
) -> Result<Seen, NodeError> {
    let reference = building.references.iter().find(|reference| reference.number == number);
    let reference = reference.expect("a note names one of the build's foreign keys");
    let Some(values) = txn.lock_new_reference(table, base, &reference.columns).await? else { return Ok(Seen::Kept) };
    let values: Vec<ValueRef<'_>> = values.iter().map(|value| value.as_ref()).collect();
    if values.iter().any(|value| value.is_null()) || txn.has_new_parent(building, number, &values).await? {
        return Ok(Seen::Kept);
    }
    Ok(Seen::Broken(number))
}

/// Whether child rows that refer to a key which a parent row had still have a parent. `children`: their key in the index
/// that finds them.
pub(super) async fn check_left(
    txn: &mut Transaction,
    table: &Arc<TableInfo>,
    building: &Building,
    number: usize,
    key: &[u8],
    children: &[u8],
) -> Result<Seen, NodeError> {
    if txn.has_new_parent_by_key(building, number, key).await? {
        return Ok(Seen::Kept);
    }
    let foreign = &building.schema.foreign_keys[number];
    let (index, _) = Reference::of(&building.schema, foreign).index.ok_or(NodeError::StaleSchema)?;
    let has_child = txn.lock_new_child(with_definition(table, building), index, children).await?;
    // It may have come meanwhile, with its child.
    if !has_child || txn.has_new_parent_by_key(building, number, key).await? {
        return Ok(Seen::Kept);
    }
    Ok(Seen::Broken(number))
}

/// The altered table with the definition of the build, whose indexes are in the partitions.
fn with_definition(table: &TableInfo, building: &Building) -> Arc<TableInfo> {
    TableInfo::new(building.schema.clone(), table.shared.clone(), |id| {
        let is_it = |unique: &&UniqueIndex| unique.entries.schema.id == id;
        let unique = table.uniques.iter().chain(&building.uniques).find(is_it);
        unique.expect("the definition has the table's unique indexes and those of the build").entries.clone()
    })
}
