//! What a node takes for the leaves of a partitioned table, in all its partitions together: without rows, and with one row each.
//!
//! Bytes are counted as they are asked for from the allocator, by all threads; files are on a disk, so that they are not among them.
mod support;

use rauk_log::RealDisk;
use rauk_node::*;
use rauk_types::partitioning::{
    Leaf, PartitionBound, PartitionBy, PartitionMethod, PartitionOn, PartitionOptions, PartitionValues, Partitioning,
    UserPartition,
};
use rauk_types::{IndexKind, MysqlError, TableSchema, Value};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use support::*;

struct Counting;

static LIVE: AtomicI64 = AtomicI64::new(0);

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const LEAVES: i64 = 8192;

/// Partitions are by columns, so nothing is computed.
struct Nothing;

impl Evaluator for Nothing {
    fn compute_generated(&self, _: &Arc<TableSchema>, _: &mut [Value]) -> Result<(), MysqlError> {
        unreachable!("no column is generated")
    }

    fn partition_value(&self, _: &TableSchema, _: bool, _: &[Value]) -> Result<Option<i128>, MysqlError> {
        unreachable!("no expression is looked at")
    }

    fn prepare(&self, _: &[u8], _: &Arc<TableSchema>) -> Option<Box<dyn RowProgram>> {
        None
    }

    fn prepare_change(&self, _: &[u8], _: &Arc<TableSchema>) -> Option<Box<dyn RowChange>> {
        None
    }
}

/// `PARTITION BY RANGE COLUMNS (id)`: a leaf for each number.
fn partitioned(mut schema: TableSchema) -> TableSchema {
    let partition = |number: i64| UserPartition {
        name: format!("p{number}"),
        values: PartitionValues::LessThan(vec![PartitionBound::Value(int(number + 1))]),
        options: PartitionOptions::default(),
        leaves: vec![Leaf::new(None)],
    };
    schema.partitioning = Some(Arc::new(Partitioning {
        by: PartitionBy {
            method: PartitionMethod::Range,
            on: PartitionOn::Columns { columns: vec![0], implied: false },
        },
        sub: None,
        partitions: (0..LEAVES).map(partition).collect(),
        counted: false,
        counted_sub: false,
        interval: None,
        dead_entries: false,
    }));
    schema
}

/// Bytes of a leaf without rows, and with one.
fn bytes_of_leaf(schema: TableSchema, partitions: u16) -> (i64, i64) {
    let dir = tempfile::tempdir().unwrap();
    let db = open_on(Arc::new(RealDisk::open(dir.path()).unwrap()), Config { partitions, ..config() });
    db.set_evaluator(Arc::new(Nothing));
    block_on(db.create_database("d", rauk_types::Collation::DEFAULT)).unwrap();
    let before = LIVE.load(Ordering::Relaxed);
    let each = || (LIVE.load(Ordering::Relaxed) - before) / LEAVES;
    block_on(db.create_table(partitioned(schema))).unwrap();
    let table = db.table("d", "t").unwrap();
    assert_eq!(db.table_usage(table.schema().id).rows, 0);
    let empty = each();
    let rows: Vec<_> = (0..LEAVES).map(|id| vec![int(id), int(id)]).collect();
    block_on(async {
        for rows in rows.chunks(256) {
            insert_all(&db, &table, rows).await;
        }
    });
    assert_eq!(db.table_usage(table.schema().id).rows, LEAVES as u64);
    drop(rows);
    let with_row = each();
    block_on(db.shutdown()).unwrap();
    // What it takes must not be given back while the next one is measured.
    std::mem::forget((db, table));
    (empty, with_row)
}

#[test]
fn leaves_take_little_before_they_have_rows() {
    let mut unique = pairs("t");
    unique.indexes.push(index(1, "by_value", IndexKind::Unique, &[0, 1]));
    let measured = [1, 4, 8].map(|partitions| {
        let (plain, unique) = (bytes_of_leaf(pairs("t"), partitions), bytes_of_leaf(unique.clone(), partitions));
        println!(
            "{partitions} partitions: bytes of a leaf (empty, with a row) {plain:?}, with a unique index {unique:?}"
        );
        (plain, unique)
    });
    for ((empty, one), (empty_unique, one_unique)) in measured {
        assert!(empty <= 2048 && one <= 2048 + 2048, "{empty} and {one} bytes");
        assert!(empty_unique <= 2 * 2048 && one_unique <= 2 * (2048 + 2048), "{empty_unique} and {one_unique} bytes");
    }
}
