//! EXCHANGE PARTITION: a leaf of a partitioned table and a table change places.
//!
//! No row is copied: rows stay under the id of the physical table that they are in, and it is the ids that change hands. The leaf gets the table's id and those of its
//! index tables; the table gets the leaf's, so under its name it is another table from then on. It is one change of the catalog
//! ([`Command::ExchangeLeaf`]) under the metadata locks of both. Before it, the rows of the table are looked at, unless that
//! was not wanted (error 1737), and numbers (AUTO_INCREMENT) go above those of the other one.
//!
//! So that rows can be read under the other definition, both have the same columns, layouts and indexes, down to the numbers that these
//! have ([`check_alike`], errors 1731 and 1736). Left out, with error 1235: tables without a primary key, whose hidden keys are
//! unique in one table only.
//!
//! A transaction with an older snapshot reads neither of them any more (error 1412).

use super::Exclusive;
use super::alter::{next_version, redefined};
use super::build::{BATCH, Reader, fault_error};
use super::cluster::{self, Place};
use crate::commit::group::yield_once;
use crate::database::{Database, TableHandle};
use crate::error::NodeError;
use crate::locks::metadata::DdlWait;
use crate::node::Node;
use crate::scan::{ScanBatch, ScanCursor, ScanSpec};
use crate::table::parts::physical;
use crate::table::{TableInfo, entries};
use crate::transaction::Transaction;
use rauk_log::fault;
use rauk_manage::Command;
use rauk_types::error::codes;
use rauk_types::{Column, IndexSchema, MysqlError, RowLayout, RowView, TableId, TableSchema, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

const DIFFERENT_OPTION: u16 = 1731;
const DIFFERENT_DEFINITIONS: u16 = 1736;
const ROW_DOES_NOT_MATCH: u16 = 1737;
const HAS_FOREIGN_KEYS: u16 = 1740;

impl Database {
    /// Exchanges the leaf with this number and a table. `validate`: a row of the table that does not belong to the leaf is error 1737.
    pub async fn exchange_leaf(
        &self,
        partitioned: &TableHandle,
        leaf: usize,
        other: &TableHandle,
        validate: bool,
        wait: impl Into<DdlWait<'_>>,
    ) -> Result<(), NodeError> {
        let wait = wait.into();
        let node = &self.node;
        check_alike(partitioned.info(), leaf, other.info())?;
        if let Some(cluster) = node.cluster() {
            let place = Place { node, cluster };
            return cluster::exchange_leaf(place, partitioned.info(), leaf, other.info(), validate, wait).await;
        }
        let (partitioned, other) = (partitioned.info(), other.info());
        let _held = Exclusive::lock(node, vec![partitioned.clone(), other.clone()], wait).await?;
        // A foreign key may have come to refer to it.
        check_alike(partitioned, leaf, other)?;
        if validate {
            wait.unless_killed(look_for_others(node, partitioned, leaf, other)).await?;
        }
        let Exchange { partitioned: new, tables } = Exchange::of(partitioned, leaf, other);
        let changed = node.info_of_new(tables[0].clone(), &tables[1..]);
        if new.auto_increment.is_some() {
            let next = partitioned.shared.auto_increment.peek().max(other.shared.auto_increment.peek());
            partitioned.shared.auto_increment.observe(next - 1, &node.log)?;
            changed.shared.auto_increment.observe(next - 1, &node.log)?;
            // The numbers are on disk before the tables that go on with them.
            node.group.flush_all().await?;
        }
        let with = other.schema.id;
        fault::point("node.ddl.before_switch").map_err(fault_error)?;
        node.change_catalog(&Command::ExchangeLeaf { partitioned: new.clone(), with, tables: tables.clone() })?;
        // Done and durable: only a crash can still happen here.
        let _ = fault::point("node.ddl.after_switch");
        let moved: BTreeSet<TableId> = other.family().chain(&tables).map(|table| table.id).collect();
        physical(&new)
            .iter()
            .chain(&tables)
            .filter(|t| moved.contains(&t.id))
            .for_each(|t| node.alter_in_partitions(t));
        let now = redefined(partitioned, new);
        wait.replaces(with, &changed);
        node.tables.exchange(&now, other, &changed);
        now.shared.set_version(now.schema.version);
        other.shared.set_dropped();
        wait.forgets(std::iter::once(with));
        Ok(())
    }
}

impl Database {
    /// The first of some leaves, one mark for each, that has a row of another one: EXCHANGE PARTITION … WITHOUT VALIDATION may have put it there.
    pub async fn leaf_with_others(
        &self,
        table: &TableHandle,
        leaves: &[bool],
        txn: &mut Transaction,
    ) -> Result<Option<usize>, NodeError> {
        let Some(parts) = table.parts() else { return Ok(None) };
        txn.begin_statement();
        txn.use_table(table).await?;
        let (mut batch, mut values) = (ScanBatch::default(), Vec::new());
        for (number, leaf) in parts.leaves().iter().enumerate().filter(|(number, _)| leaves[*number]) {
            let mut cursor = ScanCursor::over(leaf.clone(), ScanSpec::default());
            loop {
                cursor.next_batch(txn, BATCH, &mut |_| true, &mut batch).await?;
                if batch.is_empty() {
                    break;
                }
                for at in 0..batch.len() {
                    let (layout, bytes) = batch.raw(at);
                    let row = RowView::new(&leaf.schema, layout, bytes);
                    if !belongs(&self.node, table.info(), number, &row, &mut values)? {
                        return Ok(Some(number));
                    }
                }
                txn.check_killed()?;
                yield_once().await;
            }
        }
        Ok(None)
    }
}

/// What both tables are afterwards.
pub(super) struct Exchange {
    pub partitioned: Arc<TableSchema>,
    /// The table and its index tables, under the leaf's ids.
    pub tables: Vec<Arc<TableSchema>>,
}

impl Exchange {
    pub fn of(partitioned: &TableInfo, leaf: usize, other: &TableInfo) -> Exchange {
        let mut new = next_version(&partitioned.schema, (*partitioned.schema).clone());
        let partitioning = Arc::make_mut(new.partitioning.as_mut().expect("a partitioned table"));
        let place = partitioning.leaves_mut().nth(leaf).expect("a leaf of the table");
        let guarded = other.schema.indexes.iter().filter_map(|index| index.entry_table);
        let ids = std::iter::once(other.schema.id).chain(guarded).collect();
        let mut ids: std::vec::IntoIter<TableId> = std::mem::replace(&mut place.tables, ids).into_iter();
        let mut take = || ids.next().expect("a leaf has a table for each unique index");
        let mut base = (*other.schema).clone();
        base.id = take();
        base.version += 1;
        for index in base.indexes.iter_mut().filter(|index| index.is_guarded()) {
            index.entry_table = Some(take());
        }
        assert!(ids.next().is_none(), "a table has an index table for each unique index");
        let of_index = |index: &IndexSchema| Some(Arc::new(entries::schema(&base, index, index.entry_table?)));
        let of_indexes: Vec<_> = base.indexes.iter().filter_map(of_index).collect();
        let tables = std::iter::once(Arc::new(base)).chain(of_indexes).collect();
        Exchange { partitioned: Arc::new(new), tables }
    }

    pub fn command(self, with: TableId) -> Command {
        Command::ExchangeLeaf { partitioned: self.partitioned, with, tables: self.tables }
    }
}

/// Error 1737: the table has a row that belongs to another leaf, or to none.
pub(super) async fn look_for_others(
    node: &Arc<Node>,
    partitioned: &Arc<TableInfo>,
    leaf: usize,
    table: &Arc<TableInfo>,
) -> Result<(), NodeError> {
    let mut reader = Reader::new(node, table, &table.schema);
    let mut values = Vec::new();
    while reader.next().await? {
        for row in reader.rows() {
            if !belongs(node, partitioned, leaf, &row, &mut values)? {
                return Err(refused(ROW_DOES_NOT_MATCH, "Found a row that does not match the partition"));
            }
        }
        yield_once().await;
    }
    Ok(())
}

/// Whether a row belongs to a leaf.
fn belongs(
    node: &Node,
    partitioned: &TableInfo,
    leaf: usize,
    row: &RowView<'_>,
    values: &mut Vec<Value>,
) -> Result<bool, NodeError> {
    let parts = partitioned.parts.as_deref().expect("a partitioned table");
    values.clear();
    values.extend((0..partitioned.schema.columns.len()).map(|column| row.get(column).to_owned()));
    match node.leaf_of(partitioned, parts, values) {
        Ok(place) => Ok(place == leaf),
        Err(NodeError::Refused(error)) if error.code == codes::NO_PARTITION_FOR_GIVEN_VALUE => Ok(false),
        Err(error) => Err(error),
    }
}

fn refused(code: u16, text: impl Into<String>) -> NodeError {
    NodeError::Refused(MysqlError::new(code, text))
}

/// Errors 1235, 1731, 1736, 1740: rows of one of them could not be read as rows of the other, or something holds on to the table.
pub(super) fn check_alike(partitioned: &TableInfo, leaf: usize, other: &TableInfo) -> Result<(), NodeError> {
    let (one, two) = (&partitioned.schema, &other.schema);
    let leaves = one.partitioning.as_ref().map_or(0, |partitioning| partitioning.leaves().count());
    assert!(leaf < leaves && two.partitioning.is_none(), "leaf {leaf} of {leaves}, and a table without leaves");
    if !two.foreign_keys.is_empty() || other.shared.children.any() {
        let text = format!("Table to exchange with partition has foreign key references: '{}'", two.name);
        return Err(refused(HAS_FOREIGN_KEYS, text));
    }
    if one.indexes.iter().any(|index| index.global) {
        let text = "EXCHANGE PARTITION of a table with a GLOBAL unique key is not supported by Rauk";
        return Err(refused(codes::NOT_SUPPORTED_YET, text));
    }
    if !has_same_columns(one, two) || !has_same_indexes(one, two) || !has_same_checks(one, two) {
        return Err(refused(DIFFERENT_DEFINITIONS, "Tables have different definitions"));
    }
    if one.hidden_key {
        let text = "This version of MySQL doesn't yet support 'EXCHANGE PARTITION of tables without a primary key'";
        return Err(refused(codes::NOT_SUPPORTED_YET, text));
    }
    match difference_inside(one, two) {
        None => Ok(()),
        Some(what) => {
            let text = format!("Non matching attribute '{what}' between partition and table");
            Err(refused(DIFFERENT_OPTION, text))
        }
    }
}

fn has_same_columns(one: &TableSchema, two: &TableSchema) -> bool {
    one.columns.len() == two.columns.len()
        && one.hidden_key == two.hidden_key
        && one.auto_increment == two.auto_increment
        && one.columns.iter().zip(&two.columns).all(|(a, b)| {
            a.name.eq_ignore_ascii_case(&b.name)
                && a.ty == b.ty
                && a.nullable == b.nullable
                && a.generated == b.generated
        })
}

fn has_same_indexes(one: &TableSchema, two: &TableSchema) -> bool {
    let has = |a: &IndexSchema| {
        let mut same = two.indexes.iter().filter(|b| a.name.eq_ignore_ascii_case(&b.name));
        same.next().is_some_and(|b| a.kind == b.kind && a.parts == b.parts && a.hash_only == b.hash_only)
    };
    one.indexes.len() == two.indexes.len() && one.indexes.iter().all(has)
}

fn has_same_checks(one: &TableSchema, two: &TableSchema) -> bool {
    let sorted = |table: &TableSchema| {
        let mut all: Vec<_> = table.checks.iter().map(|check| (check.expression.clone(), check.enforced)).collect();
        all.sort_unstable();
        all
    };
    sorted(one) == sorted(two)
}

/// What differs that no statement shows: how rows are written, which numbers columns and indexes have, where rows are.
fn difference_inside(one: &TableSchema, two: &TableSchema) -> Option<&'static str> {
    // What rows of older layouts have in columns that came later.
    let columns = |table: &TableSchema| -> Vec<_> {
        let initial = |column: &Column| (table.layouts.len() > 1).then(|| column.initial.clone());
        table.columns.iter().map(|column| (column.id, initial(column))).collect()
    };
    let layouts = |table: &TableSchema| -> Vec<_> {
        table.layouts.iter().map(|layout: &Arc<RowLayout>| layout.columns.clone()).collect()
    };
    let indexes = |table: &TableSchema| -> Vec<_> { table.indexes.iter().map(|index| index.id).collect() };
    if columns(one) != columns(two) || layouts(one) != layouts(two) {
        return Some("INSTANT COLUMN(s)");
    }
    if indexes(one) != indexes(two) {
        return Some("INDEX ORDER");
    }
    if one.distribution != two.distribution || one.fully_replicated != two.fully_replicated {
        return Some("DISTRIBUTION");
    }
    None
}
