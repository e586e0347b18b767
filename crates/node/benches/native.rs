//! Cost of the native service in one process, without a network: `cargo bench -p rauk-node --bench native`.
//!
//! Batches of 100 operations on a million rows of 100 bytes. `read_many_100` of `benches/node.rs` is what of it is the partitions' own.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use rauk_log::MemoryDisk;
use rauk_node::native::{Limits, Request, Service, Session};
use rauk_node::*;
use rauk_types::{DataType, IndexId, IndexKind, TypeKind, Value, ValueRef};
use rauk_wire::*;
use std::sync::{Arc, OnceLock};
use support::*;

#[path = "../tests/support/mod.rs"]
mod support;

const ROWS: i64 = 1_000_000;
const BATCH: usize = 100;

fn main() {
    divan::main();
}

struct Open {
    session: Arc<Session>,
    table: TableHandle,
}

fn request(payload: Vec<u8>) -> Request {
    let (number, transaction, timestamp) = (1, 0, 0);
    Request { kind: Kind::Batch, number, transaction, timestamp, deadline: None, payload: payload.into() }
}

fn shape(table: &TableHandle, kind: OpKind, columns: &[u16]) -> Shape {
    Shape {
        table: table.schema().id,
        version: table.schema().version,
        kind,
        index: IndexId::PRIMARY,
        lock: LockWish::None,
        conditional: false,
        columns: columns.to_vec(),
        wanted: if kind == OpKind::Read { Wanted::Row } else { Wanted::Nothing },
    }
}

fn open() -> &'static Open {
    static OPEN: OnceLock<Open> = OnceLock::new();
    OPEN.get_or_init(|| {
        let config =
            Config { durability: Durability::Relaxed, memory_limit: 8 << 30, segment_bytes: 64 << 20, ..config() };
        let db = open_on(MemoryDisk::new(), config);
        let text = DataType { length: 80, ..DataType::new(TypeKind::VarBinary) };
        let columns = vec![
            column(0, "id", DataType::BIGINT, false),
            column(1, "value", DataType::BIGINT, false),
            column(2, "data", text, false),
        ];
        let mut schema = schema("t", columns, vec![index(0, "PRIMARY", IndexKind::Primary, &[0])]);
        schema.indexes[0].hash_only = true;
        block_on(async {
            db.create_database("d", Default::default()).await.unwrap();
            db.create_table(schema).await.unwrap();
        });
        let table = db.table("d", "t").unwrap();
        let session = Service::new(db, Limits::default()).session();
        let data = Value::Bytes(vec![7; 80]);
        for first in (0..ROWS).step_by(10_000) {
            let insert = shape(&table, OpKind::Insert, &[0, 1, 2]);
            let mut batch = BatchBuilder::new(Vec::new(), &BatchOptions::default(), &[insert]);
            for id in first..first + 10_000 {
                batch.values(0, [ValueRef::Int(id), ValueRef::Int(0), data.as_ref()]);
            }
            block_on(session.call(request(batch.finish()), Vec::new()));
        }
        Open { session, table }
    })
}

/// Batches over random keys.
fn batches(open: &Open, kind: OpKind, count: usize) -> Vec<Request> {
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as i64 % ROWS
    };
    let columns: &[u16] = if kind == OpKind::Read { &[] } else { &[1] };
    (0..count)
        .map(|_| {
            let shape = shape(&open.table, kind, columns);
            let mut batch = BatchBuilder::new(Vec::new(), &BatchOptions::default(), &[shape]);
            for _ in 0..BATCH {
                let key = key_of(&open.table, random());
                match kind {
                    OpKind::Read => batch.key(0, &key, None),
                    _ => batch.key_and_values(0, &key, [ValueRef::Int(random())], None),
                };
            }
            request(batch.finish())
        })
        .collect()
}

#[divan::bench(sample_count = 20, sample_size = 200)]
fn read_100(bencher: Bencher) {
    let open = open();
    let requests = batches(open, OpKind::Read, 4096);
    let (mut next, mut frame) = (0, Vec::with_capacity(64 << 10));
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        next += 1;
        frame.clear();
        let buffer = std::mem::take(&mut frame);
        frame = open.session.try_call(&requests[next % requests.len()], buffer).expect("nobody else is here").frame;
        black_box(frame.len())
    });
}

/// The long way that reads go when they cannot be answered at once.
#[divan::bench(sample_count = 20, sample_size = 200)]
fn read_100_waiting(bencher: Bencher) {
    let open = open();
    let requests = batches(open, OpKind::Read, 4096);
    let (mut next, mut frame) = (0, Vec::with_capacity(64 << 10));
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        next += 1;
        frame.clear();
        let buffer = std::mem::take(&mut frame);
        frame = block_on(open.session.call(requests[next % requests.len()].clone(), buffer)).frame;
        black_box(frame.len())
    });
}

fn write(bencher: Bencher, kind: OpKind) {
    let open = open();
    let requests = batches(open, kind, 4096);
    let (mut next, mut frame) = (0, Vec::with_capacity(64 << 10));
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        next += 1;
        frame.clear();
        let buffer = std::mem::take(&mut frame);
        frame = block_on(open.session.call(requests[next % requests.len()].clone(), buffer)).frame;
        black_box(frame.len())
    });
}

#[divan::bench(sample_count = 20, sample_size = 200)]
fn update_100(bencher: Bencher) {
    write(bencher, OpKind::Update);
}

#[divan::bench(sample_count = 20, sample_size = 200)]
fn increment_100(bencher: Bencher) {
    write(bencher, OpKind::Increment);
}
