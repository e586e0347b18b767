//! What a partition takes for tables without rows, and for tables of one row: a user's partitioned table may have thousands of leaves.
//!
//! Bytes are counted as they are asked for from the allocator, so the bounds are exact and no other process changes them.

use rauk_kernel::{MemoryBudget, Partition};
use rauk_types::{
    Column, ColumnId, DataType, IndexId, IndexKind, IndexSchema, PartitionId, TableId, TableSchema, Timestamp, Value,
    row,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: all calls go to the system's allocator as they are; counting touches a thread-local cell that needs no allocation.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.set(LIVE.get() + layout.size() as isize);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.set(LIVE.get() - layout.size() as isize);
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const TABLES: u32 = 8192;

/// `id BIGINT PRIMARY KEY, k BIGINT, KEY (k)`
fn schemas() -> Vec<Arc<TableSchema>> {
    let columns = [0, 1].map(|id| Column::new(ColumnId(id), format!("c{id}"), DataType::BIGINT, false)).to_vec();
    let mut by_k = IndexSchema::primary(&[1]);
    (by_k.id, by_k.kind) = (IndexId(1), IndexKind::Ordered);
    let first = TableSchema::new(TableId(1), "d", "t", columns, vec![IndexSchema::primary(&[0]), by_k]);
    (1..=TABLES).map(|id| Arc::new(TableSchema { id: TableId(id), ..first.clone() })).collect()
}

#[test]
fn an_empty_table_takes_next_to_nothing_and_one_of_one_row_little() {
    let schemas = schemas();
    let budget = Arc::new(MemoryBudget::new(1 << 40));
    let mut p = Partition::new(PartitionId(0), budget.clone());
    let before = LIVE.get();
    schemas.iter().for_each(|schema| p.create_table(schema.clone()));
    p.finish_restore().unwrap();
    let empty = (LIVE.get() - before) / TABLES as isize;
    println!("an empty table takes {empty} bytes of a partition");
    assert!(empty <= 64, "an empty table takes {empty} bytes of a partition");

    for schema in &schemas {
        let mut bytes = Vec::new();
        row::encode_row(schema, &[Value::Int(1), Value::Int(2)], &mut bytes);
        p.restore_put(schema.id, 0, &bytes, Timestamp(1)).unwrap();
    }
    p.finish_restore().unwrap();
    let one = (LIVE.get() - before) / TABLES as isize;
    println!("a table of one row takes {one} bytes, of which {} are counted", budget.used() / u64::from(TABLES));
    assert!(one <= 2048, "a table of one row takes {one} bytes of a partition");
    assert!((512 * u64::from(TABLES)..one as u64 * u64::from(TABLES)).contains(&budget.used()));
}
