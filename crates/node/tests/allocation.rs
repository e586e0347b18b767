//! A plain read by key allocates nothing, from begin to end; nor do reads of many keys, and writes of many need no more than the log's buffer.
mod support;

use rauk_node::bulk::{Found, Keys, Unwritten, Verb};
use rauk_node::*;
use rauk_types::ValueRef;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use support::*;

struct Counting;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|c| c.set(c.get() + 1));
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_key_read_allocates_nothing() {
    let (db, t) = database_with(pairs("t"));
    let options = autocommit();
    block_on(async {
        insert_all(&db, &t, &(0..100).map(|i| vec![int(i), int(i * 2)]).collect::<Vec<_>>()).await;
        let keys: Vec<_> = (0..100).map(|i| key_of(&t, i)).collect();
        for round in 0..3 {
            let before = COUNT.get();
            for (i, key) in keys.iter().enumerate() {
                let mut txn = db.begin(options.clone());
                txn.use_table(&t).await.unwrap();
                let value = txn.get(&t, key, None, |row| row.map(|r| r.get(1) == ValueRef::Int(i as i64 * 2))).await;
                assert_eq!(value, Ok(Some(true)));
                txn.wait_observed().await.unwrap();
                txn.commit().await.unwrap();
            }
            let allocated = COUNT.get() - before;
            // The first round may fill caches.
            assert!(round == 0 || allocated == 0, "{allocated} allocations in 100 reads");
        }
    });
}

#[test]
fn many_keys_allocate_next_to_nothing() {
    let (db, t) = database_with(pairs("t"));
    block_on(insert_all(&db, &t, &(0..100).map(|i| vec![int(i), int(i)]).collect::<Vec<_>>()));
    let mut keys = Keys::default();
    (0..100).for_each(|i| keys.push(&key_of(&t, i)));
    let mut unwritten = Unwritten::default();
    for round in 0..4 {
        let before = COUNT.get();
        let mut done = [false; 100];
        let progress = db.try_read_many(&t, &keys, &mut done, &mut |_, found| assert!(found.is_some())).unwrap();
        assert!(progress.finished);
        let read = COUNT.get() - before;
        let mut done = [false; 100];
        let put = &mut |_: usize, found: Found<'_>, buffer: &mut Vec<u8>| {
            buffer.extend_from_slice(found.unwrap().1.image().head);
            Verb::Put
        };
        let progress = db.try_write_many(&t, &keys, &mut done, &mut unwritten, put).unwrap();
        assert!(progress.finished && unwritten.left.is_empty());
        let written = COUNT.get() - before - read;
        // The log takes a buffer after each flush.
        assert!(round < 2 || (read == 0 && written <= 1), "{read} and {written} allocations");
        block_on(db.wait_durable(progress.time)).unwrap();
    }
}

/// Parsing makes the list of shapes; all else is kept from batch to batch, and the answer's buffer is the caller's.
#[test]
fn a_native_batch_of_reads_allocates_its_shapes() {
    use rauk_node::native::{Limits, Request, Service};
    use rauk_wire::*;
    let (db, t) = database_with(pairs("t"));
    block_on(insert_all(&db, &t, &(0..100).map(|i| vec![int(i), int(i * 2)]).collect::<Vec<_>>()));
    let session = Service::new(db, Limits::default()).session();
    let shape = Shape {
        table: t.schema().id,
        version: t.schema().version,
        kind: OpKind::Read,
        index: rauk_types::IndexId::PRIMARY,
        lock: LockWish::None,
        conditional: false,
        columns: Vec::new(),
        wanted: Wanted::Row,
    };
    let mut batch = BatchBuilder::new(Vec::new(), &BatchOptions::default(), &[shape]);
    (0..100).for_each(|i| {
        batch.key(0, &key_of(&t, i), None);
    });
    let payload = bytes::Bytes::from(batch.finish());
    let (number, transaction, timestamp) = (1, 0, 0);
    let request = Request { kind: Kind::Batch, number, transaction, timestamp, deadline: None, payload };
    let mut frame = Vec::with_capacity(64 << 10);
    for round in 0..5 {
        let before = COUNT.get();
        let reply = session.try_call(&request, frame).expect("nobody is at the partitions");
        let allocated = COUNT.get() - before;
        assert!(round == 0 || allocated <= 1, "{allocated} allocations in a batch of 100 reads");
        assert_eq!(AnswerReader::parse(&reply.frame).unwrap().answer.entries, 100);
        frame = reply.frame;
        frame.clear();
    }
}
