//! Cost of the node's calls in one process: `cargo bench -p rauk-node`.
//!
//! `key_read` is what `SELECT … WHERE id = ?` costs below SQL: begin, metadata lock, read, end.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use rauk_kernel::Verdict;
use rauk_log::{MemoryDisk, RealDisk};
use rauk_node::bulk::{Found, Keys, Unwritten, Verb};
use rauk_node::executor::{Class, Guarded};
use rauk_node::*;
use rauk_types::ValueRef;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};
use support::*;

#[path = "../tests/support/mod.rs"]
mod support;

const ROWS: i64 = 100_000;

fn main() {
    divan::main();
}

fn filled(durability: Durability) -> (Database, TableHandle) {
    let config = Config { durability, memory_limit: 8 << 30, segment_bytes: 64 << 20, ..config() };
    let db = open_on(MemoryDisk::new(), config);
    block_on(async {
        db.create_database("d", Default::default()).await.unwrap();
        db.create_table(pairs("t")).await.unwrap();
        let t = db.table("d", "t").unwrap();
        for batch in 0..ROWS / 1000 {
            let rows: Vec<_> = (batch * 1000..batch * 1000 + 1000).map(|i| vec![int(i), int(i)]).collect();
            insert_all(&db, &t, &rows).await;
        }
        (db, t)
    })
}

fn shared() -> &'static (Database, TableHandle) {
    static DB: OnceLock<(Database, TableHandle)> = OnceLock::new();
    DB.get_or_init(|| filled(Durability::Relaxed))
}

fn next_key() -> i64 {
    static NEXT: AtomicI64 = AtomicI64::new(0);
    thread_local! {
        static STATE: std::cell::Cell<i64> = std::cell::Cell::new(NEXT.fetch_add(7919, Ordering::Relaxed));
    }
    STATE.with(|s| {
        s.set((s.get() * 25_173 + 13_849) & 0x7FFF_FFFF);
        s.get() % ROWS
    })
}

#[divan::bench(threads = [1, 2])]
fn guard(bencher: Bencher) {
    let g = Guarded::new(0u64, || ());
    bencher.bench(|| g.try_with(|n| *n += 1).is_ok());
}

#[divan::bench(threads = [1, 2])]
fn mutex_for_comparison(bencher: Bencher) {
    let g = parking_lot::Mutex::new(0u64);
    bencher.bench(|| g.try_lock().map(|mut n| *n += 1).is_some());
}

/// The whole autocommit statement.
#[divan::bench(threads = [1, 2])]
fn key_read(bencher: Bencher) {
    let (db, t) = shared();
    let options = autocommit();
    bencher.bench(|| {
        block_on(async {
            let key = ((next_key() as u64) ^ (1 << 63)).to_be_bytes();
            let mut txn = db.begin(options.clone());
            txn.use_table(t).await.unwrap();
            let value = txn.get(t, &key, None, |row| row.map(|r| matches!(r.get(1), ValueRef::Int(_)))).await.unwrap();
            txn.wait_observed().await.unwrap();
            txn.commit().await.unwrap();
            black_box(value)
        })
    });
}

/// Only the read, within a transaction that has begun.
#[divan::bench]
fn key_read_in_transaction(bencher: Bencher) {
    let (db, t) = shared();
    let mut txn = block_on(begin_rr(db, t));
    bencher.bench_local(|| {
        block_on(async {
            let key = ((next_key() as u64) ^ (1 << 63)).to_be_bytes();
            txn.get(t, &key, None, |row| row.is_some()).await.unwrap()
        })
    });
}

async fn update_one(db: &Database, t: &TableHandle) {
    let mut txn = db.begin(autocommit());
    txn.use_table(t).await.unwrap();
    txn.begin_statement();
    let old = get_for_update(&mut txn, t, next_key()).await.unwrap().unwrap();
    let new = vec![old[0].clone(), int(next_key())];
    txn.update(t, &old, &new).await.unwrap();
    txn.commit().await.unwrap();
}

#[divan::bench(threads = [1, 2])]
fn update_commit_relaxed(bencher: Bencher) {
    let (db, t) = shared();
    bencher.bench(|| block_on(update_one(db, t)));
}

/// Durable, on a real disk in the temporary directory.
#[divan::bench(threads = [1, 8], sample_count = 20, sample_size = 5)]
fn update_commit_fsync(bencher: Bencher) {
    static DB: OnceLock<(Database, TableHandle)> = OnceLock::new();
    let (db, t) = DB.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap().keep();
        let db = open_on(Arc::new(RealDisk::open(dir).unwrap()), config());
        block_on(async {
            db.create_database("d", Default::default()).await.unwrap();
            db.create_table(pairs("t")).await.unwrap();
            let t = db.table("d", "t").unwrap();
            insert_all(&db, &t, &(0..ROWS).map(|i| vec![int(i), int(i)]).collect::<Vec<_>>()).await;
            (db, t)
        })
    });
    bencher.bench(|| block_on(update_one(db, t)));
}

#[divan::bench]
fn insert_commit_relaxed(bencher: Bencher) {
    static NEXT: AtomicI64 = AtomicI64::new(ROWS);
    let (db, t) = filled(Durability::Relaxed);
    bencher.bench(|| {
        block_on(async {
            let mut txn = db.begin(autocommit());
            txn.use_table(&t).await.unwrap();
            let id = NEXT.fetch_add(1, Ordering::Relaxed);
            txn.insert(&t, &[int(id), int(id)]).await.unwrap();
            txn.commit().await.unwrap();
        })
    });
}

#[divan::bench]
fn scan_aggregate(bencher: Bencher) {
    let (db, t) = shared();
    bencher.counter(ItemsCount::new(ROWS as u64)).bench(|| {
        block_on(async {
            let mut txn = begin_rr(db, t).await;
            let mut sum = 0i64;
            ScanCursor::new(t, all(None))
                .for_each(&mut txn, &mut |row| {
                    if let ValueRef::Int(v) = row.get(1) {
                        sum += v;
                    }
                    Verdict::Keep
                })
                .await
                .unwrap();
            sum
        })
    });
}

#[divan::bench]
fn scan_ordered_100_rows(bencher: Bencher) {
    let (db, t) = shared();
    bencher.counter(ItemsCount::new(100u64)).bench(|| {
        block_on(async {
            let mut txn = begin_rr(db, t).await;
            let low = std::ops::Bound::Included(key_of(t, next_key().min(ROWS - 200)));
            let mut cursor = ScanCursor::new(t, ScanSpec { low, limit_hint: Some(100), ..all(Some(0)) });
            let mut batch = ScanBatch::default();
            cursor.next_batch(&mut txn, 100, &mut |_| true, &mut batch).await.unwrap();
            batch.len()
        })
    });
}

/// Guards are entered by everything; this is one that waits in line once in a while.
#[divan::bench(threads = [2])]
fn guard_contended(bencher: Bencher) {
    let g = Guarded::new(0u64, || ());
    bencher.bench(|| block_on(g.with(Class::Point, |n| *n += 1)));
}

const MANY: i64 = 100;

/// A million rows of 100 bytes, in 8 partitions.
fn million() -> &'static (Database, TableHandle) {
    static DB: OnceLock<(Database, TableHandle)> = OnceLock::new();
    DB.get_or_init(|| {
        let config = Config { durability: Durability::Relaxed, memory_limit: 8 << 30, partitions: 8, ..config() };
        let db = open_on(MemoryDisk::new(), Config { segment_bytes: 64 << 20, ..config });
        block_on(async {
            db.create_database("d", Default::default()).await.unwrap();
            db.create_table(wide("t")).await.unwrap();
        });
        let t = db.table("d", "t").unwrap();
        for first in (0..MILLION).step_by(1000) {
            let ids: Vec<i64> = (first..first + 1000).collect();
            write_many(&db, &t, &keys_of(&ids), &mut |i, _, row| encode(&t, ids[i], 0, row));
        }
        (db, t)
    })
}

const MILLION: i64 = 1_000_000;

fn wide(name: &str) -> rauk_types::TableSchema {
    use rauk_types::{DataType, IndexKind};
    let columns = vec![
        column(0, "id", DataType::BIGINT, false),
        column(1, "k", DataType::BIGINT, false),
        column(2, "v", DataType::varbinary(200), false),
    ];
    let mut primary = index(0, "PRIMARY", IndexKind::Primary, &[0]);
    primary.hash_only = true;
    schema(name, columns, vec![primary])
}

fn encode(t: &TableHandle, id: i64, k: i64, row: &mut Vec<u8>) -> Verb {
    rauk_types::row::encode_row(t.schema(), &[int(id), int(k), rauk_types::Value::Bytes(vec![b'x'; 81])], row);
    Verb::Put
}

fn keys_of(ids: &[i64]) -> Keys {
    let mut keys = Keys::default();
    ids.iter().for_each(|&id| keys.push(&(id as u64 ^ 1 << 63).to_be_bytes()));
    keys
}

fn write_many(
    db: &Database,
    t: &TableHandle,
    keys: &Keys,
    change: &mut (dyn FnMut(usize, Found<'_>, &mut Vec<u8>) -> Verb + Send),
) {
    let mut done = vec![false; keys.len()];
    let mut unwritten = Unwritten::default();
    let time = block_on(db.write_many(t, keys, &mut done, &mut unwritten, change)).unwrap();
    assert!(unwritten.left.is_empty() && unwritten.failed.is_empty());
    black_box(time);
}

fn random_keys(keys: &mut Keys) {
    thread_local! {
        static STATE: std::cell::Cell<u64> = const { std::cell::Cell::new(88_172_645_463_325_252) };
    }
    keys.clear();
    STATE.with(|s| {
        for _ in 0..MANY {
            let mut x = s.get();
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            s.set(x);
            keys.push(&((x % MILLION as u64) ^ 1 << 63).to_be_bytes());
        }
    });
}

/// 100 of a million rows, copied out; an iteration is 100 reads.
#[divan::bench(sample_count = 20, sample_size = 200)]
fn read_many_100(bencher: Bencher) {
    let (db, t) = million();
    let mut keys = Keys::default();
    let mut out = Vec::new();
    bencher.counter(ItemsCount::new(MANY as u64)).bench_local(|| {
        random_keys(&mut keys);
        out.clear();
        let mut done = [false; MANY as usize];
        let copy = &mut |_: usize, row: Found<'_>| row.unwrap().1.append_to(&mut out);
        block_on(db.read_many(t, &keys, &mut done, copy)).unwrap();
        black_box(out.len())
    });
}

/// 100 of a million rows, one column changed; an iteration is 100 updates.
#[divan::bench(sample_count = 20, sample_size = 200)]
fn write_many_100(bencher: Bencher) {
    let (db, t) = million();
    let mut keys = Keys::default();
    bencher.counter(ItemsCount::new(MANY as u64)).bench_local(|| {
        random_keys(&mut keys);
        write_many(db, t, &keys, &mut |_, found, row| {
            found.unwrap().1.append_to(row);
            row[90] ^= 1;
            Verb::Put
        });
    });
}
