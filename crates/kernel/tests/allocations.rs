//! The hot path allocates nothing: reads and updates by key, with and without a change of an indexed column.

use rauk_kernel::{Access, Horizon, MemoryBudget, Partition, ReadAt, TxnRef, TxnState};
use rauk_types::schema::ColumnDefault;
use rauk_types::{
    Collation, Column, ColumnId, DataType, IndexId, IndexKind, IndexPart, IndexSchema, PartitionId, RowLayout, TableId,
    TableSchema, Timestamp, TxnId, Value, key, row,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: all calls go to the system's allocator as they are; counting touches a thread-local cell that needs no allocation.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const TABLE: TableId = TableId(1);
const ROWS: i64 = 5_000;

/// `id BIGINT PRIMARY KEY, k BIGINT, v VARBINARY(200), KEY (k)`
fn schema() -> Arc<TableSchema> {
    let column = |id: u16, ty| Column {
        id: ColumnId(id),
        name: format!("c{id}"),
        ty,
        nullable: false,
        default: ColumnDefault::None,
        on_update_now: false,
        comment: String::new(),
        initial: Value::Null,
        generated: None,
        invisible: false,
    };
    let columns = vec![column(0, DataType::BIGINT), column(1, DataType::BIGINT), column(2, DataType::varbinary(200))];
    let index = |id, kind, column| IndexSchema {
        id,
        name: String::new(),
        kind,
        parts: vec![IndexPart { column, prefix: None, descending: false }],
        hash_only: false,
        entry_table: None,
        comment: String::new(),
        invisible: false,
        global: false,
    };
    let layouts = vec![Arc::new(RowLayout::for_columns(0, &columns))];
    Arc::new(TableSchema {
        id: TABLE,
        version: 1,
        database: "d".into(),
        name: "t".into(),
        columns: columns.into(),
        indexes: vec![index(IndexId::PRIMARY, IndexKind::Primary, 0), index(IndexId(1), IndexKind::Ordered, 1)].into(),
        distribution: vec![0],
        hidden_key: false,
        auto_increment: None,
        collation: Collation::Binary,
        comment: String::new(),
        explicit_partitioning: false,
        fully_replicated: false,
        checks: Vec::new(),
        entry_of: None,
        foreign_keys: Vec::new(),
        storage: Default::default(),
        partitioning: None,
        leaf_of: None,
        leaf_tables: Default::default(),
        layouts,
    })
}

fn access(txn: Option<&TxnRef>, time: u64) -> Access<'_> {
    Access {
        txn,
        own_before: 1,
        statement: 1,
        at: ReadAt::Newest,
        conflict_after: None,
        horizon: Horizon { oldest_snapshot: Timestamp(time), durable: Timestamp(time) },
        observed: Timestamp::ZERO,
    }
}

struct Table {
    p: Partition,
    schema: Arc<TableSchema>,
    time: u64,
}

impl Table {
    fn new() -> Self {
        let schema = schema();
        let mut p = Partition::new(PartitionId(0), Arc::new(MemoryBudget::new(1 << 30)));
        p.create_table(schema.clone());
        let mut table = Table { p, schema, time: 1 };
        for id in 0..ROWS {
            let row = table.row(id, id);
            table.p.restore_put(TABLE, 0, &row, Timestamp(1)).unwrap();
        }
        table.p.finish_restore().unwrap();
        table
    }

    fn row(&self, id: i64, k: i64) -> Vec<u8> {
        let mut row = Vec::new();
        row::encode_row(&self.schema, &[Value::Int(id), Value::Int(k), Value::Bytes(vec![7; 80])], &mut row);
        row
    }

    fn key(&self, id: i64) -> Vec<u8> {
        (id as u64 ^ 1 << 63).to_be_bytes().to_vec()
    }

    /// Allocations of `rounds` updates with their commits, one row each.
    fn updates(&mut self, rounds: i64, k: impl Fn(i64) -> i64) -> u64 {
        let mut allocations = 0;
        for round in 0..rounds {
            let id = round * 7 % ROWS;
            let (row, key) = (self.row(id, k(id)), self.key(id));
            let txn = TxnRef::new(TxnId(self.time));
            self.time += 1;
            let time = Timestamp(self.time);
            let before = ALLOCATIONS.get();
            let mut access = access(Some(&txn), self.time - 1);
            assert!(self.p.update(TABLE, &key, key::hash(&key), &row, &mut access).unwrap());
            txn.status.set(TxnState::Committed(time));
            self.p.commit(
                txn.id,
                time,
                Horizon { oldest_snapshot: time, durable: Timestamp(self.time.saturating_sub(3)) },
            );
            allocations += ALLOCATIONS.get() - before;
        }
        allocations
    }
}

#[test]
fn reads_do_not_allocate() {
    let mut table = Table::new();
    for id in 0..2000 {
        let key = table.key(id * 3 % (ROWS + 100));
        let before = ALLOCATIONS.get();
        let mut access = access(None, table.time);
        table.p.read(TABLE, &key, key::hash(&key), &mut access, |row| row.map(|r| r.size())).unwrap();
        assert_eq!(ALLOCATIONS.get(), before);
    }
}

#[test]
fn updates_do_not_allocate_once_warm() {
    let mut table = Table::new();
    table.updates(3000, |id| id);
    assert_eq!(table.updates(2000, |id| id), 0);
}

#[test]
fn moves_in_an_index_allocate_only_when_leaves_split() {
    let mut table = Table::new();
    table.updates(3000, |id| id + 1);
    let allocations = table.updates(2000, |id| id + 2);
    assert!(allocations < 100, "{allocations} allocations in 2000 updates");
}
