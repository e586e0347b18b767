//! Operations on partitioned tables: each goes to the leaf that a row, or a whole key, is in.
//!
//! A leaf is a table of its own ([`crate::table::parts`]); what concerns the whole table, its metadata lock, its right to be
//! written, its numbers, is seen to before. A row whose new values belong to another leaf is deleted there and inserted here, under one number, so that a duplicate undoes both; a hidden key is another one then.
//! Where a handle names only some leaves, reads find nothing in others, and a row that belongs to another one is refused (error 1748).
//!
//! Left out: rows that a cluster's node sends together go leaf by leaf; changes by key are read and then written.

use super::{InsertOutcome, Lock, Transaction, UpdateOutcome};
use crate::database::TableHandle;
use crate::error::NodeError;
use crate::node::Node;
use crate::table::TableInfo;
use crate::table::parts::Parts;
use futures::future::BoxFuture;
use rauk_types::error::codes;
use rauk_types::{IndexId, MysqlError, RowView, Value};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;

const ROW_IN_WRONG_PARTITION: u16 = 1863;

/// Leaves that one key may be in.
pub(super) type Few = SmallVec<[Arc<TableInfo>; 1]>;

/// Where a row with a whole key may be.
pub(super) enum Place {
    /// The table has no leaves.
    Table,
    Leaf(Arc<TableInfo>),
    Nowhere,
    /// The key does not tell: in one of several leaves.
    Unknown,
}

impl Node {
    /// The number of the leaf that a row belongs to.
    pub(crate) fn leaf_of(&self, table: &TableInfo, parts: &Parts, row: &[Value]) -> Result<usize, NodeError> {
        parts.leaf_of(&table.schema, row, self.partition_evaluator()?)
    }

    fn partition_evaluator(&self) -> Result<&dyn crate::scan::pushdown::Evaluator, NodeError> {
        let unknown = || MysqlError::new(codes::NOT_SUPPORTED_YET, "Nobody here computes partitioning expressions");
        self.evaluator.get().map(|evaluator| &**evaluator).ok_or_else(|| NodeError::Refused(unknown()))
    }

    /// Where a row with this whole key may be.
    pub(super) fn place_of_key(&self, table: &TableHandle, index: IndexId, key: &[u8]) -> Result<Place, NodeError> {
        let Some(parts) = table.parts() else { return Ok(Place::Table) };
        let mut leaves = self.leaves_of_key(table, parts, index, key)?;
        Ok(match leaves.len() {
            0 => Place::Nowhere,
            1 => Place::Leaf(leaves.remove(0)),
            _ => Place::Unknown,
        })
    }

    /// The leaves, of those that the handle names, that may have a row with this whole key.
    pub(super) fn leaves_of_key(
        &self,
        table: &TableHandle,
        parts: &Parts,
        index: IndexId,
        key: &[u8],
    ) -> Result<Few, NodeError> {
        let places = parts.leaves_of_key(table.schema(), index, key, self.partition_evaluator()?)?;
        Ok(places.filter(|place| table.has_leaf(*place)).map(|place| parts.leaves()[place].clone()).collect())
    }
}

/// The leaf of a row that is to be written.
fn leaf_to_write(node: &Node, table: &TableHandle, parts: &Parts, row: &[Value]) -> Result<Arc<TableInfo>, NodeError> {
    let place = node.leaf_of(table.info(), parts, row)?;
    match table.has_leaf(place) {
        true => Ok(parts.leaves()[place].clone()),
        false => {
            let text = "Found a row not matching the given partition set";
            Err(NodeError::Refused(MysqlError::new(codes::ROW_DOES_NOT_MATCH_GIVEN_PARTITION_SET, text)))
        }
    }
}

impl Transaction {
    /// [`Transaction::get`] and [`Transaction::get_unique`] where the key does not tell the leaf: a row with it is in at most one.
    /// `visit` is called once.
    pub(super) fn get_in_leaves<'a>(
        &'a mut self,
        table: &'a TableHandle,
        index: IndexId,
        key: &'a [u8],
        lock: Lock,
        visit: &'a mut (dyn FnMut(Option<RowView<'_>>) + Send),
    ) -> BoxFuture<'a, Result<(), NodeError>> {
        Box::pin(async move {
            let parts = table.parts().expect("a partitioned table");
            for leaf in self.node.leaves_of_key(table, parts, index, key)? {
                let leaf = TableHandle::new(leaf);
                let show = |row: Option<RowView<'_>>| {
                    let found = row.is_some();
                    if found {
                        visit(row);
                    }
                    found
                };
                let found = match index {
                    IndexId::PRIMARY => self.get(&leaf, key, lock, show).await?,
                    _ => self.get_unique(&leaf, index, key, lock, show).await?,
                };
                if found {
                    return Ok(());
                }
            }
            visit(None);
            Ok(())
        })
    }

    /// [`Transaction::insert`] of a partitioned table.
    pub(super) async fn insert_into_leaf(
        &mut self,
        table: &TableHandle,
        parts: &Parts,
        row: &[Value],
    ) -> Result<InsertOutcome, NodeError> {
        self.check_writable_table(table.info())?;
        let filled;
        let mut row = row;
        if table.schema().hidden_key && row.last().is_none_or(Value::is_null) {
            filled = self.with_hidden_key(table.info(), row).await?;
            row = &filled;
        }
        let leaf = leaf_to_write(&self.node, table, parts, row)?;
        self.insert_into(&leaf, row).await
    }

    /// [`Transaction::insert_many`] of a partitioned table: leaf by leaf, so that rows of one key are not passed by each other.
    pub(super) async fn insert_many_into_leaves(
        &mut self,
        table: &TableHandle,
        parts: &Parts,
        rows: &mut [Vec<Value>],
        done: &mut [bool],
    ) -> Result<(), NodeError> {
        self.check_writable_table(table.info())?;
        self.fill_hidden_keys(table.info(), rows).await?;
        let mut by_leaf: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (number, row) in rows.iter().enumerate() {
            // A row that no leaf takes is refused in its turn, row by row.
            let Ok(place) = self.node.leaf_of(table.info(), parts, row) else { break };
            if !table.has_leaf(place) {
                break;
            }
            by_leaf.entry(place).or_default().push(number);
        }
        for (place, numbers) in by_leaf {
            let leaf = TableHandle::new(parts.leaves()[place].clone());
            let mut some: Vec<Vec<Value>> = numbers.iter().map(|number| std::mem::take(&mut rows[*number])).collect();
            let mut entered = vec![false; some.len()];
            let result = self.insert_together(&leaf, &mut some, false, &mut entered).await;
            for ((number, row), entered) in numbers.iter().zip(some).zip(entered) {
                rows[*number] = row;
                done[*number] = entered;
            }
            result?;
        }
        Ok(())
    }

    /// [`Transaction::update`] of a partitioned table.
    pub(super) async fn update_in_leaves(
        &mut self,
        table: &TableHandle,
        parts: &Parts,
        old: &[Value],
        new: &[Value],
    ) -> Result<UpdateOutcome, NodeError> {
        self.check_writable_table(table.info())?;
        let to = leaf_to_write(&self.node, table, parts, new)?;
        let from = leaf_to_write(&self.node, table, parts, old)?;
        if Arc::ptr_eq(&from, &to) {
            let outcome = self.change_row(&to, old, new).await?;
            if matches!(outcome, UpdateOutcome::Missing) {
                self.check_is_nowhere(table, parts, old).await?;
            }
            return Ok(outcome);
        }
        self.write_number += 1;
        let number = self.write_number;
        if !self.remove_row(&from, old).await? {
            self.check_is_nowhere(table, parts, old).await?;
            return Ok(UpdateOutcome::Missing);
        }
        // A key stays in its leaf, hidden ones too: who looks in one leaf after the other misses no row, and meets none twice.
        let with_other_key;
        let mut new = new;
        if table.schema().hidden_key {
            with_other_key = self.with_hidden_key(table.info(), new).await?;
            new = &with_other_key;
        }
        Ok(match self.insert_into(&to, new).await? {
            InsertOutcome::Inserted => UpdateOutcome::Updated,
            InsertOutcome::Duplicate { index, existing } => {
                self.undo_to(number);
                UpdateOutcome::Duplicate { index, existing }
            }
        })
    }

    /// [`Transaction::delete`] of a partitioned table.
    pub(super) async fn delete_in_leaf(
        &mut self,
        table: &TableHandle,
        parts: &Parts,
        row: &[Value],
    ) -> Result<bool, NodeError> {
        self.check_writable_table(table.info())?;
        let leaf = leaf_to_write(&self.node, table, parts, row)?;
        let removed = self.remove_row(&leaf, row).await?;
        if !removed {
            self.check_is_nowhere(table, parts, row).await?;
        }
        Ok(removed)
    }

    /// Error 1863: a row that was found, and is not in the leaf that it belongs to, is in another one. EXCHANGE PARTITION … WITHOUT
    /// VALIDATION has put it there, and REPAIR PARTITION takes it out again.
    async fn check_is_nowhere(&mut self, table: &TableHandle, parts: &Parts, row: &[Value]) -> Result<(), NodeError> {
        // Tables with hidden keys are not exchanged.
        if table.schema().hidden_key {
            return Ok(());
        }
        let mut key = Vec::new();
        table.primary_key().encode_values(row, &mut key);
        for (number, leaf) in parts.leaves().iter().enumerate() {
            let leaf = TableHandle::new(leaf.clone());
            if self.get(&leaf, &key, None, |row| row.is_some()).await? {
                let partitioning = table.schema().partitioning.as_ref().expect("a partitioned table");
                let name = &partitioning.partitions[number / partitioning.leaves_each()].name;
                let text = format!("Found a row in wrong partition {name}");
                return Err(NodeError::Refused(MysqlError::new(ROW_IN_WRONG_PARTITION, text)));
            }
        }
        Ok(())
    }
}
