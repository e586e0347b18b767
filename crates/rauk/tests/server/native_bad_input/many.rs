//! Much of what is bad: a client that never reads its answers, and ten thousand bad connections. Memory and descriptors stay as they were.

use super::raw::{Answered, End, Operation, Raw, SOON, Server, hello, key};
use rauk_types::{IndexId, ValueRef};
use rauk_wire::batch::{BatchOptions, OpKind};
use rauk_wire::hello::Hello;
use rauk_wire::{BatchBuilder, Kind, Shape};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Requests whose answers are 100 rows of 2 000 bytes: twenty gigabytes in all.
#[test]
fn a_client_that_never_reads_its_answers() {
    never_reads(1, 100, 0, 50);
}

/// By a unique key each read is a transaction of its own and the request a task; the answers are 20 MiB each.
#[test]
fn a_client_that_never_reads_its_large_answers() {
    never_reads(2, 10_000, 1, 0);
}

/// Clients that never read, one after the other: what is kept for one is given back when it has gone, so memory grows by one of them.
/// The memory itself may stay with the allocator, which is why the size of the process after the last is no measure.
const CLIENTS: usize = 4;

/// `reads` in each request, by the index with this number; `least` requests are taken before the server stops reading.
fn never_reads(seed: u64, reads: u64, index: u16, least: usize) {
    let server = Server::start();
    let table = server.connect().open("shop", "orders");
    server.assert_serves();
    let shape = Shape { index: IndexId(index), ..Operation::new(&table, OpKind::Read, &[]).shape() };
    let mut builder = BatchBuilder::new(Vec::new(), &BatchOptions::default(), &[shape]);
    for id in 0..reads {
        let id = (id * seed) % 10;
        match index {
            0 => builder.key(0, &key(&table, id), None),
            _ => builder.key(0, &customer_key(&table, &format!("c{id}")), None),
        };
    }
    let payload = builder.finish();
    let (before, descriptors) = (server.memory_kib(), server.descriptors());
    for client in 1..=CLIENTS {
        let (sent, peak) = one_never_reads(&server, &table, &payload);
        let grown = peak.saturating_sub(before) >> 10;
        assert!(grown < 160, "{grown} MiB more after {client} clients that do not read, the last with {sent} requests");
        assert!(sent >= least, "{sent} requests were taken before the server stopped reading");
        settles("connections", Duration::from_secs(20), || server.descriptors() <= descriptors);
    }
    server.assert_serves();
}

/// One client sends requests and never reads; another is served meanwhile. Returns the requests taken and the process's largest size in KiB.
fn one_never_reads(server: &Server, table: &rauk_types::TableSchema, payload: &[u8]) -> (usize, u64) {
    let mut deaf = server.connect();
    deaf.open("shop", "orders");
    let (stop, sent) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (mut slowest, mut served, mut peak) = (Duration::ZERO, 0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Gives up when the server does not take more for a while: it need not.
            deaf.stream.set_write_timeout(Some(Duration::from_millis(500))).expect("a socket");
            for request in 1..=100_000 {
                let frame = deaf.frame(Kind::Batch, request, 0, payload);
                if stop.load(Ordering::Relaxed) || deaf.send(&frame).is_err() {
                    break;
                }
                sent.fetch_add(1, Ordering::Relaxed);
            }
        });
        let mut other = server.connect();
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(3) {
            let asked = Instant::now();
            assert!(matches!(other.read_row(table, 5), Answered::Row(_)), "others are served meanwhile");
            slowest = slowest.max(asked.elapsed());
            served += 1;
            peak = peak.max(server.memory_kib());
            std::thread::sleep(Duration::from_millis(2));
        }
        stop.store(true, Ordering::Relaxed);
    });
    let sent = sent.into_inner();
    eprintln!("{sent} requests taken, {} MiB at most; {served} others served, the slowest in {slowest:?}", peak >> 10);
    assert!(
        slowest < Duration::from_secs(2) && served > 100,
        "{served} requests of another client, the slowest {slowest:?}"
    );
    (sent, peak)
}

fn customer_key(table: &rauk_types::TableSchema, customer: &str) -> Vec<u8> {
    let mut key = Vec::new();
    let def = table.key_def(table.index_by_name("by_customer").expect("it has one"));
    def.encode_prefix(&[ValueRef::Str(customer)], &mut key);
    key
}

fn settles(what: &str, limit: Duration, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < limit, "{what} is not as before after {limit:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// One bad connection, of one of many kinds.
fn bad(server: &Server, table: &rauk_types::TableSchema, number: usize) {
    let mut raw = server.dial();
    let say_hello = |raw: &mut Raw, hello: Hello, secret: &[u8]| raw.handshake(hello, Some(secret)).is_ok();
    match number % 12 {
        0 => {}
        1 => drop(raw.send(b"GET / HTTP/1.1\r\n\r\n")),
        2 => drop(raw.send(&[0x16, 3, 1, 0, 200, 1, 0, 0, 196])),
        3 => {
            let mut payload = Vec::new();
            hello().encode(&mut payload);
            let frame = raw.frame(Kind::Hello, 0, 0, &payload);
            let _ = raw.send(&frame[..frame.len() - 1 - number % frame.len() / 2]);
        }
        4 => assert!(!say_hello(&mut raw, hello(), b"not the secret at all")),
        5 => assert!(!say_hello(&mut raw, Hello { oldest: 5, newest: 6, ..hello() }, &server.secret)),
        6 => assert!(!say_hello(&mut raw, Hello { cluster: [1; 16], ..hello() }, &server.secret)),
        // Let in, and gone.
        7 => assert!(say_hello(&mut raw, hello(), &server.secret)),
        8 => {
            // A damaged frame.
            assert!(say_hello(&mut raw, hello(), &server.secret));
            let mut frame = raw.frame(Kind::Batch, 1, 0, &number.to_le_bytes());
            frame[20] ^= 1;
            let _ = raw.send(&frame);
        }
        9 => {
            // A right frame with nothing right in it.
            assert!(say_hello(&mut raw, hello(), &server.secret));
            let _ = raw.ask(Kind::Batch, 0, &[number as u8; 50]);
        }
        10 => {
            // Gone within a transaction that has locked a row.
            assert!(say_hello(&mut raw, hello(), &server.secret));
            let answered = raw.begin_and_update(table, 1, number as u64 % 10, "gone");
            assert!(!matches!(answered, Answered::End(End::Silent)), "locks of the dead are given back: {answered:?}");
        }
        _ => {
            // Gone before its answers, in the middle of the next request.
            assert!(say_hello(&mut raw, hello(), &server.secret));
            let fifth = key(table, 5);
            let payload = Operation::new(table, OpKind::Read, &fifth).batch(&BatchOptions::default());
            for request in 1..5 {
                let frame = raw.frame(Kind::Batch, request, 0, &payload);
                let _ = raw.send(&frame);
            }
            let frame = raw.frame(Kind::Batch, 9, 0, &payload);
            let _ = raw.send(&frame[..100]);
        }
    }
}

#[test]
fn ten_thousand_bad_connections() {
    const THREADS: usize = 4;
    let server = Server::start();
    let table = server.connect().open("shop", "orders");
    let soak = |connections: usize| {
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (server, table) = (&server, &table);
                scope.spawn(move || {
                    (thread..connections).step_by(THREADS).for_each(|number| bad(server, table, number))
                });
            }
        });
    };
    let descriptors = server.descriptors();
    soak(1200);
    server.assert_serves();
    // Those that were cut off in the handshake are closed by the server as soon as it sees the end.
    settles("descriptors", SOON, || server.descriptors() <= descriptors);
    let memory = server.memory_kib();
    let start = Instant::now();
    soak(10_000);
    let took = start.elapsed();
    server.assert_serves();
    settles("descriptors", SOON, || server.descriptors() <= descriptors);
    let grown = server.memory_kib().saturating_sub(memory);
    assert!(grown < 16 << 10, "{grown} KiB more after ten thousand bad connections");
    let threads = std::fs::read_dir(format!("/proc/{}/task", server.rauk.pid())).expect("the server lives").count();
    assert!(threads < 60, "{threads} threads");
    eprintln!("10 000 bad connections in {took:?}, {grown} KiB more, {descriptors} descriptors");
    // Nothing was kept of all the transactions: every row can be written at once.
    let mut raw = server.connect();
    for id in 0..10 {
        let answered = raw.begin_and_update(&table, 100 + id, id, &format!("c{id}"));
        assert_eq!(answered, Answered::Done);
    }
}

/// More connections that say nothing than may be in a handshake at a time do not keep anybody else out: the oldest of them make room.
#[test]
fn silent_connections_do_not_lock_others_out() {
    let server = Server::start();
    let silent: Vec<Raw> = (0..1500).map(|_| server.dial()).collect();
    let start = Instant::now();
    for _ in 0..20 {
        server.assert_serves();
    }
    assert!(start.elapsed() < Duration::from_secs(8), "twenty clients came in after {:?}", start.elapsed());
    drop(silent);
    settles("descriptors", SOON, || server.descriptors() < 100);
    server.assert_serves();
}
