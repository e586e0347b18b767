//! A table to test with, and short ways to call a partition.

use crate::budget::MemoryBudget;
use crate::partition::{
    Access, Horizon, LockMode, Partition, Probe, ReadAt, ScanEnd, ScanPosition, ScanRequest, Stop, Verdict, WaitPolicy,
    Write,
};
use crate::status::{TxnRef, TxnState};
use rauk_types::{
    Collation, Column, ColumnId, DataType, IndexId, IndexKind, IndexPart, IndexSchema, KeyDef, PartitionId, RowLayout,
    RowView, TableId, TableSchema, Timestamp, TxnId, TypeKind, Value, ValueRef, key, row,
};
use std::ops::Bound;
use std::sync::Arc;

pub const TABLE: TableId = TableId(7);
pub const BY_K: IndexId = IndexId(1);
pub const BY_V: IndexId = IndexId(2);
pub const BY_Y: IndexId = IndexId(3);

fn column(id: u16, name: &str, ty: DataType, nullable: bool) -> Column {
    Column::new(ColumnId(id), name, ty, nullable)
}

pub fn index(id: IndexId, parts: &[(usize, bool)]) -> IndexSchema {
    IndexSchema {
        id,
        name: format!("i{}", id.0),
        kind: if id == IndexId::PRIMARY { IndexKind::Primary } else { IndexKind::Ordered },
        parts: parts.iter().map(|&(column, descending)| IndexPart { column, prefix: None, descending }).collect(),
        hash_only: false,
        entry_table: None,
        comment: String::new(),
        invisible: false,
        global: false,
    }
}

/// `id BIGINT PRIMARY KEY, k BIGINT NULL, v VARBINARY(100), KEY (k), KEY (v, k DESC)`
pub fn schema(hash_only: bool, secondary: bool) -> Arc<TableSchema> {
    let columns = vec![
        column(0, "id", DataType::BIGINT, false),
        column(1, "k", DataType::BIGINT, true),
        column(2, "v", DataType::varbinary(100), false),
    ];
    let mut indexes = vec![IndexSchema { hash_only, ..index(IndexId::PRIMARY, &[(0, false)]) }];
    if secondary {
        indexes.push(index(BY_K, &[(1, false)]));
        indexes.push(index(BY_V, &[(2, false), (1, true)]));
    }
    let layouts = vec![Arc::new(RowLayout::for_columns(0, &columns))];
    Arc::new(TableSchema {
        id: TABLE,
        version: 1,
        database: "d".into(),
        name: "t".into(),
        columns: columns.into(),
        indexes: indexes.into(),
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

/// The same with two columns more, `x LONGBLOB NULL, y TEXT, KEY (y(3))`, whose values follow from those of the others (see [`all_values`]): most of them are large.
pub fn wide_schema(hash_only: bool) -> Arc<TableSchema> {
    let mut schema = (*schema(hash_only, true)).clone();
    schema.columns.push(column(3, "x", DataType::new(TypeKind::LongBlob), true));
    schema.columns.push(column(4, "y", DataType::new(TypeKind::Text), false));
    let mut by_y = index(BY_Y, &[(4, false)]);
    by_y.parts[0].prefix = Some(3);
    schema.indexes.push(by_y);
    schema.layouts = vec![Arc::new(RowLayout::for_columns(0, &schema.columns))];
    Arc::new(schema)
}

/// A value for each column of the table. `x` follows from `k`, `y` from the beginning of `v`, so that an update keeps both, one or none of them.
pub fn all_values(schema: &TableSchema, row: &Row) -> Vec<Value> {
    let mut all = values(row);
    if schema.columns.len() == 5 {
        all.push(match row.1 {
            None => Value::Null,
            Some(k) => Value::Bytes(vec![k as u8; 9000 + k as usize % 3]),
        });
        let begin = row.2.first().map_or(20, |b| 8190 + usize::from(*b % 4));
        all.push(Value::Str(format!("{}{}", row.2.first().map_or(9, |b| b % 3), "y".repeat(begin))));
    }
    all
}

pub type Row = (i64, Option<i64>, Vec<u8>);

/// A change as the log and the stream have it.
#[derive(Clone, Debug, PartialEq)]
pub enum Logged {
    Put(Vec<u8>),
    Sparse(Vec<u8>),
    /// By its key.
    Gone(Vec<u8>),
}

impl Logged {
    pub fn of(write: Write<'_>) -> Logged {
        match write {
            Write::Put { row, .. } => Logged::Put(row.to_vec()),
            Write::Sparse { row, .. } => Logged::Sparse(row.to_vec()),
            Write::Delete { key } => Logged::Gone(key.to_vec()),
        }
    }

    pub fn write(&self) -> Write<'_> {
        match self {
            Logged::Put(row) => Write::Put { layout: 0, row },
            Logged::Sparse(row) => Write::Sparse { layout: 0, row },
            Logged::Gone(key) => Write::Delete { key },
        }
    }

    /// In order.
    pub fn restore(&self, p: &mut Partition, time: u64) {
        let time = Timestamp(time);
        match self {
            Logged::Put(row) => p.restore_put(TABLE, 0, row, time).unwrap(),
            Logged::Sparse(row) => p.restore_sparse(TABLE, 0, row, time).unwrap(),
            Logged::Gone(key) => p.restore_delete(TABLE, key, time),
        }
    }
}

pub fn values(row: &Row) -> Vec<Value> {
    vec![Value::Int(row.0), row.1.map_or(Value::Null, Value::Int), Value::Bytes(row.2.clone())]
}

pub fn decode(view: &RowView<'_>) -> Row {
    let int = |v| match v {
        ValueRef::Int(i) => Some(i),
        ValueRef::Null => None,
        other => panic!("{other:?}"),
    };
    let ValueRef::Bytes(v) = view.get(2) else { panic!("{:?}", view.get(2)) };
    let row = (int(view.get(0)).unwrap(), int(view.get(1)), v.to_vec());
    if view.table().columns.len() == 5 {
        let all = all_values(view.table(), &row);
        assert!(view.get(3) == all[3].as_ref() && view.get(4) == all[4].as_ref(), "large values of {row:?}");
        assert_eq!(view.size() > 8192, view.to_whole().len() > 8192);
    }
    row
}

/// A partition with one table, and what its callers would keep.
pub struct World {
    pub p: Partition,
    pub schema: Arc<TableSchema>,
    pub budget: Arc<MemoryBudget>,
    pub now: u64,
    pub durable: u64,
    pub snapshots: Vec<u64>,
    /// What the last call observed.
    pub observed: u64,
    defs: Vec<KeyDef>,
    next_txn: u64,
}

/// A transaction as its session keeps it.
pub struct Txn {
    pub r: TxnRef,
    pub statement: u32,
    pub conflict_after: Option<u64>,
}

impl World {
    pub fn new(schema: Arc<TableSchema>) -> Self {
        World::limited(schema, u64::MAX / 4)
    }

    pub fn limited(schema: Arc<TableSchema>, limit: u64) -> Self {
        let budget = Arc::new(MemoryBudget::new(limit));
        let mut p = Partition::new(PartitionId(0), budget.clone());
        p.create_table(schema.clone());
        let defs = schema.indexes.iter().map(|i| schema.key_def(i)).collect();
        World { p, schema, budget, now: 0, durable: 0, snapshots: Vec::new(), observed: 0, defs, next_txn: 1 }
    }

    pub fn begin(&mut self) -> Txn {
        self.next_txn += 1;
        Txn { r: TxnRef::new(TxnId(self.next_txn)), statement: 1, conflict_after: None }
    }

    pub fn horizon(&self) -> Horizon {
        let oldest = self.snapshots.iter().copied().min().unwrap_or(self.now).min(self.now);
        Horizon { oldest_snapshot: Timestamp(oldest), durable: Timestamp(self.durable) }
    }

    pub fn snapshot(&mut self) -> u64 {
        self.snapshots.push(self.now);
        self.now
    }

    pub fn end_snapshot(&mut self, time: u64) {
        let i = self.snapshots.iter().position(|s| *s == time).expect("a snapshot in use");
        self.snapshots.swap_remove(i);
    }

    pub fn access<'a>(&self, txn: Option<&'a Txn>, at: ReadAt) -> Access<'a> {
        Access {
            txn: txn.map(|t| &t.r),
            own_before: txn.map_or(0, |t| t.statement),
            statement: txn.map_or(0, |t| t.statement),
            at,
            conflict_after: txn.and_then(|t| t.conflict_after).map(Timestamp),
            horizon: self.horizon(),
            observed: Timestamp::ZERO,
        }
    }

    pub fn key(&self, id: i64) -> Vec<u8> {
        let mut key = Vec::new();
        self.defs[0].encode_values(&values(&(id, None, Vec::new())), &mut key);
        key
    }

    /// The key of a row in the index at this position of the schema.
    pub fn index_key(&self, position: usize, row: &Row) -> Vec<u8> {
        let mut key = Vec::new();
        self.defs[position].encode_values(&values(row), &mut key);
        key
    }

    pub fn encode(&self, row: &Row) -> Vec<u8> {
        let mut bytes = Vec::new();
        row::encode_row(&self.schema, &all_values(&self.schema, row), &mut bytes);
        bytes
    }

    pub fn insert(&mut self, txn: &Txn, row: &Row) -> Result<(), Stop> {
        self.insert_into(TABLE, txn, row)
    }

    /// Into a table with the same columns.
    pub fn insert_into(&mut self, table: TableId, txn: &Txn, row: &Row) -> Result<(), Stop> {
        let (key, bytes) = (self.key(row.0), self.encode(row));
        let mut access = self.access(Some(txn), ReadAt::Newest);
        let result = self.p.insert(table, &key, key::hash(&key), &bytes, &mut access);
        self.observed = access.observed.0;
        result
    }

    /// Which of the rows were inserted.
    pub fn insert_many(&mut self, txn: &Txn, rows: &[Row]) -> Vec<bool> {
        let keys: Vec<Vec<u8>> = rows.iter().map(|row| self.key(row.0)).collect();
        let images: Vec<Vec<u8>> = rows.iter().map(|row| self.encode(row)).collect();
        let probes: Vec<Probe<'_>> = keys.iter().map(|key| Probe { key, hash: key::hash(key) }).collect();
        let images: Vec<&[u8]> = images.iter().map(Vec::as_slice).collect();
        let mut inserted = vec![false; rows.len()];
        let access = self.access(Some(txn), ReadAt::Newest);
        let done = self.p.insert_many(TABLE, &probes, &images, &access, &mut |i| inserted[i] = true);
        assert_eq!(done, Ok(()));
        self.observed = access.observed.0;
        inserted
    }

    pub fn update(&mut self, txn: &Txn, row: &Row) -> Result<bool, Stop> {
        let (key, bytes) = (self.key(row.0), self.encode(row));
        let mut access = self.access(Some(txn), ReadAt::Newest);
        let result = self.p.update(TABLE, &key, key::hash(&key), &bytes, &mut access);
        self.observed = access.observed.0;
        result
    }

    pub fn delete(&mut self, txn: &Txn, id: i64) -> Result<bool, Stop> {
        let key = self.key(id);
        let mut access = self.access(Some(txn), ReadAt::Newest);
        let result = self.p.delete(TABLE, &key, key::hash(&key), &mut access);
        self.observed = access.observed.0;
        result
    }

    pub fn read(&mut self, txn: Option<&Txn>, id: i64, at: ReadAt) -> Result<(Option<Row>, u64), Stop> {
        let key = self.key(id);
        let mut access = self.access(txn, at);
        let row = self.p.read(TABLE, &key, key::hash(&key), &mut access, |v| v.map(|v| decode(&v)))?;
        Ok((row, access.observed.0))
    }

    pub fn read_locked(&mut self, txn: &Txn, id: i64, mode: LockMode, wait: WaitPolicy) -> Result<Option<Row>, Stop> {
        let key = self.key(id);
        let mut access = self.access(Some(txn), ReadAt::Newest);
        self.p.read_locked(TABLE, &key, key::hash(&key), mode, wait, &mut access, |v| v.map(|v| decode(&v)))
    }

    pub fn commit(&mut self, txn: Txn) -> u64 {
        self.now += 1;
        txn.r.status.set(TxnState::Committed(Timestamp(self.now)));
        self.p.commit(txn.r.id, Timestamp(self.now), self.horizon());
        self.now
    }

    pub fn abort(&mut self, txn: Txn) {
        txn.r.status.set(TxnState::Aborted);
        self.p.abort(txn.r.id);
    }

    /// Aborts, and gives what it was for.
    pub fn abort_with(&mut self, txn: Txn, stop: Stop) -> Stop {
        self.abort(txn);
        stop
    }

    /// A whole scan in slices: (key, row) in the order they came.
    pub fn scan(
        &mut self,
        txn: Option<&Txn>,
        request: &ScanRequest,
        at: ReadAt,
        slice: usize,
    ) -> Result<Vec<(Vec<u8>, Row)>, Stop> {
        let mut found = Vec::new();
        let mut position = ScanPosition::Start;
        let mut access = self.access(txn, at);
        let mut visit = |row: &crate::partition::ScanRow<'_>| {
            found.push((row.key.to_vec(), decode(&row.row)));
            Verdict::Keep
        };
        while self.p.scan(request, &mut position, slice, &mut access, &mut visit)? == ScanEnd::More {}
        self.observed = access.observed.0;
        Ok(found)
    }

    pub fn all(&mut self, index: Option<IndexId>, at: ReadAt) -> Vec<Row> {
        self.scan(None, &whole(index), at, 3).expect("a plain scan").into_iter().map(|(_, row)| row).collect()
    }

    pub fn rows(&self) -> u64 {
        self.p.table_usage(TABLE).expect("the table is there").rows
    }

    /// A slice of the walk over the stored rows, where nothing is damaged.
    pub fn scrub(&mut self, rows: usize) {
        let scrubbed = self.p.scrub(rows);
        assert_eq!(scrubbed.damaged, None, "damage where is none");
        assert!(scrubbed.values.iter().all(|(_, value)| value.is_intact()));
    }

    /// Everything durable, nothing read any more: collect all.
    pub fn collect_all(&mut self) -> usize {
        self.durable = self.now;
        self.p.collect(self.horizon(), usize::MAX)
    }
}

pub fn whole(index: Option<IndexId>) -> ScanRequest {
    ScanRequest {
        table: TABLE,
        index,
        low: Bound::Unbounded,
        high: Bound::Unbounded,
        reverse: false,
        lock: None,
        covering: None,
        also: Arc::default(),
    }
}

pub fn r(id: i64, k: i64, v: &str) -> Row {
    (id, Some(k), v.as_bytes().to_vec())
}

/// More seeds for a long run: `RAUK_MODEL_ROUNDS=100 cargo test -p rauk-kernel model`.
pub fn rounds() -> u64 {
    std::env::var("RAUK_MODEL_ROUNDS").map_or(1, |n| n.parse().expect("RAUK_MODEL_ROUNDS is a number"))
}
