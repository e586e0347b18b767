//! What a partition costs: `cargo bench -p rauk-kernel`. Before the timings it prints bytes a row and the rate of recovery.
//!
//! A row is 100 bytes as stored: a BIGINT key, a BIGINT, and 81 bytes of VARBINARY. The partition holds a million of them, and keys are
//! met in random order, so that caches help no more than they do in use.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rauk_kernel::{
    Access, Found, Horizon, MANY, MemoryBudget, Partition, Prepared, Probe, ReadAt, ScanEnd, ScanPosition, ScanRequest,
    ScanRow, TxnRef, TxnState, Verb, Verdict,
};
use rauk_types::schema::ColumnDefault;
use rauk_types::{
    Collation, Column, ColumnId, Covering, DataType, IndexId, IndexKind, IndexPart, IndexSchema, PartitionId,
    RowLayout, TableId, TableSchema, Timestamp, TxnId, Value, key, row,
};
use std::hint::black_box;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Instant;

/// The server's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TABLE: TableId = TableId(1);
const BY_K: IndexId = IndexId(1);
const ROWS: i64 = 1_000_000;

fn schema(primary_ordered: bool, secondary: bool) -> Arc<TableSchema> {
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
    let index = |id, kind, column, hash_only| IndexSchema {
        id,
        name: String::new(),
        kind,
        parts: vec![IndexPart { column, prefix: None, descending: false }],
        hash_only,
        entry_table: None,
        comment: String::new(),
        invisible: false,
        global: false,
    };
    let mut indexes = vec![index(IndexId::PRIMARY, IndexKind::Primary, 0, !primary_ordered)];
    if secondary {
        indexes.push(index(BY_K, IndexKind::Ordered, 1, false));
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

struct Bench {
    p: Partition,
    schema: Arc<TableSchema>,
    time: u64,
    rng: SmallRng,
    key: Vec<u8>,
    row: Vec<u8>,
}

impl Bench {
    fn new(schema: Arc<TableSchema>) -> Self {
        let mut p = Partition::new(PartitionId(0), Arc::new(MemoryBudget::new(16 << 30)));
        p.create_table(schema.clone());
        Bench { p, schema, time: 1, rng: SmallRng::seed_from_u64(7), key: Vec::new(), row: Vec::new() }
    }

    fn encode(&mut self, id: i64, k: i64) {
        self.row.clear();
        row::encode_row(&self.schema, &[Value::Int(id), Value::Int(k), Value::Bytes(vec![b'x'; 81])], &mut self.row);
        assert_eq!(self.row.len(), 100);
        self.set_key(id);
    }

    fn set_key(&mut self, id: i64) {
        self.key.clear();
        self.key.extend_from_slice(&(id as u64 ^ 1 << 63).to_be_bytes());
    }

    fn filled(schema: Arc<TableSchema>) -> Self {
        let mut bench = Bench::new(schema);
        // In the order of a hash, as rows come to one of several partitions.
        for i in 0..ROWS {
            let id = (i * 7_368_787) % ROWS;
            bench.encode(id, id / 4);
            bench.p.restore_put(TABLE, 0, &bench.row, Timestamp(1)).unwrap();
        }
        bench.p.finish_restore().unwrap();
        bench
    }

    fn commit(&mut self, txn: &TxnRef) {
        self.time += 1;
        let time = Timestamp(self.time);
        txn.status.set(TxnState::Committed(time));
        self.p.commit(txn.id, time, Horizon { oldest_snapshot: time, durable: Timestamp(self.time - 1) });
    }

    fn scan(&mut self, index: IndexId, low: i64, rows: usize) {
        let read = self.scan_request(index, low, rows, None, &mut |row| row.row.size());
        assert_eq!(read, rows * 100);
    }

    /// The sum of what `read` finds in the rows.
    fn scan_request(
        &mut self,
        index: IndexId,
        low: i64,
        rows: usize,
        covering: Option<Arc<Covering>>,
        read: &mut dyn FnMut(&ScanRow<'_>) -> usize,
    ) -> usize {
        self.set_key(low);
        let request = ScanRequest {
            table: TABLE,
            index: Some(index),
            low: Bound::Included(self.key.clone()),
            high: Bound::Unbounded,
            reverse: false,
            lock: None,
            covering,
            also: Arc::default(),
        };
        let mut access = access(None, self.time);
        let mut sum = 0;
        self.p
            .scan(&request, &mut ScanPosition::Start, rows, &mut access, &mut |row| {
                sum += read(row);
                Verdict::Keep
            })
            .unwrap();
        sum
    }

    /// The column by which the secondary index is, from the rows or from its keys.
    fn scan_column(&mut self, low: i64, rows: usize, covering: Option<Arc<Covering>>) {
        let mut next = low * 4;
        let mut read = |row: &ScanRow<'_>| {
            let found = row.row.get(1).as_integer();
            next += 1;
            usize::from(found == Some(((next - 1) / 4).into()))
        };
        assert_eq!(self.scan_request(BY_K, low, rows, covering, &mut read), rows);
    }
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

fn key_reads(bencher: divan::Bencher, among: i64) {
    let mut b = Bench::filled(schema(false, false));
    bencher.bench_local(|| {
        let id = b.rng.random_range(0..among);
        b.set_key(id);
        let mut access = access(None, b.time);
        let hash = key::hash(&b.key);
        b.p.read(TABLE, &b.key, hash, &mut access, |row| black_box(row.unwrap().image().head[50])).unwrap()
    });
}

/// Any of a million rows: four or five reads of memory one after the other.
#[divan::bench(sample_count = 20, sample_size = 20_000)]
fn key_read(bencher: divan::Bencher) {
    key_reads(bencher, ROWS);
}

/// Of rows that the processor's caches hold: what the code itself costs.
#[divan::bench(sample_count = 20, sample_size = 20_000)]
fn key_read_of_hot_rows(bencher: divan::Bencher) {
    key_reads(bencher, 1000);
}

/// Any of a million rows, 64 at a time; an iteration is 64 reads.
#[divan::bench(sample_count = 20, sample_size = 400)]
fn key_reads_of_64(bencher: divan::Bencher) {
    many_key_reads(bencher, ROWS);
}

#[divan::bench(sample_count = 20, sample_size = 400)]
fn key_reads_of_64_hot_rows(bencher: divan::Bencher) {
    many_key_reads(bencher, 1000);
}

fn many_key_reads(bencher: divan::Bencher, among: i64) {
    let mut b = Bench::filled(schema(false, false));
    let mut keys = [[0u8; 8]; MANY];
    bencher.counter(divan::counter::ItemsCount::new(MANY)).bench_local(|| {
        for key in &mut keys {
            *key = (b.rng.random_range(0..among) as u64 ^ 1 << 63).to_be_bytes();
        }
        let mut probes = [Probe::default(); MANY];
        for (probe, key) in probes.iter_mut().zip(&keys) {
            *probe = Probe { key, hash: key::hash(key) };
        }
        let mut access = access(None, b.time);
        let mut sum = 0u64;
        b.p.read_many(TABLE, &probes, &mut access, &mut |_, row| sum += u64::from(row.unwrap().1.image().head[50]))
            .unwrap();
        black_box(sum)
    });
}

/// Updates of any of a million rows, 64 at a time, without transactions; an iteration is 64 updates. What a transaction each costs: `update_and_commit`.
#[divan::bench(sample_count = 20, sample_size = 200)]
fn updates_of_64(bencher: divan::Bencher) {
    let mut b = Bench::filled(schema(true, true));
    let mut keys = [[0u8; 8]; MANY];
    let mut prepared = Prepared::default();
    bencher.counter(divan::counter::ItemsCount::new(MANY)).bench_local(|| {
        for key in &mut keys {
            *key = (b.rng.random_range(0..ROWS) as u64 ^ 1 << 63).to_be_bytes();
        }
        let mut probes = [Probe::default(); MANY];
        for (probe, key) in probes.iter_mut().zip(&keys) {
            *probe = Probe { key, hash: key::hash(key) };
        }
        let mut access = access(None, b.time);
        let mut change = |_: usize, found: Found<'_>, row: &mut Vec<u8>| {
            row.extend_from_slice(found.unwrap().1.image().head);
            row[90] ^= 1;
            Verb::Put
        };
        b.p.prepare_many(TABLE, &probes, &mut access, &mut prepared, &mut change).unwrap();
        b.time += 1;
        let time = Timestamp(b.time);
        let horizon = Horizon { oldest_snapshot: time, durable: Timestamp(b.time - 1) };
        b.p.install_many(TABLE, &probes, &mut prepared, time, horizon);
        black_box(prepared.len())
    });
}

#[divan::bench(sample_count = 20, sample_size = 20_000)]
fn insert_and_commit(bencher: divan::Bencher) {
    let mut b = Bench::filled(schema(true, false));
    let mut id = ROWS;
    bencher.bench_local(|| {
        id += 1;
        b.encode(id, id);
        let txn = TxnRef::new(TxnId(id as u64));
        let mut access = access(Some(&txn), b.time);
        b.p.insert(TABLE, &b.key, key::hash(&b.key), &b.row, &mut access).unwrap();
        b.commit(&txn);
    });
}

#[divan::bench(sample_count = 20, sample_size = 20_000)]
fn update_and_commit(bencher: divan::Bencher) {
    let mut b = Bench::filled(schema(true, true));
    let mut number = 0;
    bencher.bench_local(|| {
        number += 1;
        let id = b.rng.random_range(0..ROWS);
        b.encode(id, id / 4);
        let txn = TxnRef::new(TxnId(number));
        let mut access = access(Some(&txn), b.time);
        assert!(b.p.update(TABLE, &b.key, key::hash(&b.key), &b.row, &mut access).unwrap());
        b.commit(&txn);
    });
}

#[divan::bench(sample_count = 20, sample_size = 20_000)]
fn update_of_an_indexed_column_and_commit(bencher: divan::Bencher) {
    let mut b = Bench::filled(schema(true, true));
    let mut number = 0;
    bencher.bench_local(|| {
        number += 1;
        let (id, k) = (b.rng.random_range(0..ROWS), b.rng.random_range(0..ROWS));
        b.encode(id, k);
        let txn = TxnRef::new(TxnId(number));
        let mut access = access(Some(&txn), b.time);
        assert!(b.p.update(TABLE, &b.key, key::hash(&b.key), &b.row, &mut access).unwrap());
        b.commit(&txn);
    });
}

#[divan::bench(sample_count = 20, sample_size = 500)]
fn scan_of_100_rows_by_primary_key(bencher: divan::Bencher) {
    let mut b = Bench::filled(schema(true, false));
    bencher.bench_local(|| {
        let low = b.rng.random_range(0..ROWS - 100);
        b.scan(IndexId::PRIMARY, low, 100);
    });
}

#[divan::bench(sample_count = 20, sample_size = 500)]
fn scan_of_100_rows_by_secondary_key(bencher: divan::Bencher) {
    let mut b = Bench::filled(schema(true, true));
    bencher.bench_local(|| {
        let low = b.rng.random_range(0..ROWS / 4 - 100);
        b.scan(BY_K, low, 100);
    });
}

/// One column of each row, which lies anywhere.
#[divan::bench(sample_count = 20, sample_size = 500)]
fn a_column_of_100_rows_by_secondary_key(bencher: divan::Bencher) {
    let mut b = Bench::filled(schema(false, true));
    bencher.bench_local(|| {
        let low = b.rng.random_range(0..ROWS / 4 - 25);
        b.scan_column(low, 100, None);
    });
}

/// The same from the keys alone.
#[divan::bench(sample_count = 20, sample_size = 500)]
fn a_column_of_100_keys_of_a_secondary_index(bencher: divan::Bencher) {
    let mut b = Bench::filled(schema(false, true));
    let def = b.schema.key_def(&b.schema.indexes[1]);
    let covering = Arc::new(Covering::new(&b.schema, &def, &[1]).unwrap());
    bencher.bench_local(|| {
        let low = b.rng.random_range(0..ROWS / 4 - 25);
        b.scan_column(low, 100, Some(covering.clone()));
    });
}

/// Of a million rows a thousand have one key, about a thousand another, and one both.
fn rows_in_common(bencher: divan::Bencher, intersect: bool) {
    const BY_V: IndexId = IndexId(2);
    let mut schema = (*schema(false, true)).clone();
    let parts = vec![IndexPart { column: 2, prefix: None, descending: false }];
    let by_v = IndexSchema { id: BY_V, parts, ..schema.indexes[1].clone() };
    schema.indexes.push(by_v);
    let mut b = Bench::new(Arc::new(schema));
    let v = |id: i64| format!("{:081}", id % 997).into_bytes();
    for i in 0..ROWS {
        let id = (i * 7_368_787) % ROWS;
        b.row.clear();
        row::encode_row(&b.schema, &[Value::Int(id), Value::Int(id % 1000), Value::Bytes(v(id))], &mut b.row);
        b.p.restore_put(TABLE, 0, &b.row, Timestamp(1)).unwrap();
    }
    b.p.finish_restore().unwrap();
    let defs: Vec<_> = b.schema.indexes.iter().map(|index| b.schema.key_def(index)).collect();
    let key_of = |def: usize, id: i64| {
        let mut key = Vec::new();
        defs[def].encode_values(&[Value::Int(id), Value::Int(id % 1000), Value::Bytes(v(id))], &mut key);
        key
    };
    bencher.bench_local(|| {
        let id = b.rng.random_range(0..ROWS);
        let key = Bound::Included(key_of(1, id));
        let also = if intersect { vec![(BY_V, key_of(2, id))] } else { vec![] };
        let request = ScanRequest {
            table: TABLE,
            index: Some(BY_K),
            low: key.clone(),
            high: key,
            reverse: false,
            lock: None,
            covering: None,
            also: also.into(),
        };
        let (mut position, mut found, wanted) = (ScanPosition::Start, 0, v(id));
        let mut access = access(None, b.time);
        let mut visit = |row: &ScanRow<'_>| {
            found += usize::from(row.row.get(2).as_bytes() == Some(&wanted));
            Verdict::Skip
        };
        while b.p.scan(&request, &mut position, 256, &mut access, &mut visit).unwrap() == ScanEnd::More {}
        assert!((1..=2).contains(&found), "{found}");
    });
}

#[divan::bench(sample_count = 20, sample_size = 50)]
fn two_conditions_by_rows_of_one_index(bencher: divan::Bencher) {
    rows_in_common(bencher, false);
}

#[divan::bench(sample_count = 20, sample_size = 50)]
fn two_conditions_by_entries_of_two_indexes(bencher: divan::Bencher) {
    rows_in_common(bencher, true);
}

fn main() {
    // Not when single benchmarks are asked for by name.
    if std::env::args().skip(1).all(|arg| arg.starts_with("--")) {
        print_sizes_and_recovery();
    }
    divan::main();
}

fn print_sizes_and_recovery() {
    for (name, ordered, goal) in [("hash index only", false, 140), ("hash and ordered index on the key", true, 170)] {
        let bench = Bench::filled(schema(ordered, false));
        let usage = bench.p.table_usage(TABLE).unwrap();
        let total = usage.row_bytes + usage.hash_bytes + usage.ordered_bytes;
        println!(
            "bytes a row, {name}: {:.1} (goal {goal}): rows {:.1}, hash {:.1}, ordered {:.1}",
            total as f64 / ROWS as f64,
            usage.row_bytes as f64 / ROWS as f64,
            usage.hash_bytes as f64 / ROWS as f64,
            usage.ordered_bytes as f64 / ROWS as f64
        );
    }
    for (name, ordered, secondary) in
        [("hash only", false, false), ("key's ordered index", true, false), ("and a secondary one", true, true)]
    {
        let mut bench = Bench::new(schema(ordered, secondary));
        let mut rows = Vec::new();
        for i in 0..ROWS {
            let id = (i * 7_368_787) % ROWS;
            bench.encode(id, id / 4);
            rows.push(bench.row.clone());
        }
        let start = Instant::now();
        for row in &rows {
            bench.p.restore_put(TABLE, 0, row, Timestamp(1)).unwrap();
        }
        let loaded = start.elapsed();
        bench.p.finish_restore().unwrap();
        let total = start.elapsed();
        println!(
            "recovery of 1 M rows, {name}: {:.2} M rows/s (load {loaded:.0?}, indexes {:.0?})",
            ROWS as f64 / 1e6 / total.as_secs_f64(),
            total - loaded
        );
    }
}
