//! Clients that were let in, and ask for what makes no sense: a typed error each, and the connection goes on where what was sent could be read at all.

use super::messages;
use super::raw::{Answered, Operation, Raw, SOON, Server, key};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rauk_types::{ErrorClass, TableSchema, ValueRef};
use rauk_wire::batch::{BatchOptions, OpKind};
use rauk_wire::definition::{self, TableName};
use rauk_wire::scan::{self, Scan};
use rauk_wire::{CompareOp, Failure, Filter, Kind, LockWish, Wanted};
use std::ops::Bound;

/// The connection goes on after what was refused.
fn goes_on(raw: &mut Raw, table: &TableSchema) {
    assert!(matches!(raw.read_row(table, 5), Answered::Row(_)));
}

fn alone() -> BatchOptions {
    BatchOptions::default()
}

#[test]
fn names_and_numbers_that_are_not_there() {
    let server = Server::start();
    let mut raw = server.connect();
    let table = raw.open("shop", "orders");
    let mut open = |database: &str, name: &str| {
        let mut payload = Vec::new();
        definition::encode(&TableName { database: database.into(), table: name.into() }, &mut payload);
        raw.refused(Kind::OpenTable, 0, &payload)
    };
    assert_eq!(open("shop", "nothing").code, 1146);
    assert!(open("shop", "nothing").message.contains("shop.nothing"));
    assert!(matches!(open("nowhere", "orders").code, 1049 | 1146));
    assert_ne!(open("", "").code, 0);
    assert_ne!(open(&"x".repeat(10_000), "orders").code, 0);

    let fifth = key(&table, 5);
    let read = || Operation::new(&table, OpKind::Read, &fifth);
    let values = [ValueRef::Null];
    let cases: Vec<(&str, Operation<'_>)> = vec![
        ("no such table", Operation { table: 999_999, ..read() }),
        ("no such table", Operation { table: u32::MAX, ..read() }),
        ("another version", Operation { version: table.version + 1, ..read() }),
        ("no such index", Operation { index: 40, ..read() }),
        ("no such column wanted", Operation { wanted: Wanted::Columns(vec![0, 5]), ..read() }),
        (
            "no such column set",
            Operation { columns: vec![900], values: &values, ..Operation::new(&table, OpKind::Update, &fifth) },
        ),
        (
            "no such column given",
            Operation { columns: vec![1016], values: &values, ..Operation::new(&table, OpKind::Insert, &[]) },
        ),
        (
            "a column twice",
            Operation {
                columns: vec![1, 1],
                values: &[ValueRef::Null, ValueRef::Null],
                ..Operation::new(&table, OpKind::Update, &fifth)
            },
        ),
        ("an index that is not unique", Operation { index: 2, ..read() }),
    ];
    for (what, operation) in cases {
        let answered = raw.one(0, &alone(), &operation);
        assert!(answered.code() != 0, "{what}: {answered:?}");
        goes_on(&mut raw, &table);
    }
    server.assert_serves();
}

#[test]
fn keys_that_are_none() {
    let server = Server::start();
    let mut raw = server.connect();
    let table = raw.open("shop", "orders");
    let long = vec![7; 9216];
    for (index, bytes) in [
        (0, &b""[..]),
        (0, b"1234567"),
        (0, b"123456789"),
        (0, &long),
        (1, b""),
        (1, b"\x02\x00\x00"),
        (1, b"\x01\x1c"),
        (1, &long),
    ] {
        for kind in [OpKind::Read, OpKind::Delete] {
            let operation = Operation { index, ..Operation::new(&table, kind, bytes) };
            let answered = raw.one(0, &alone(), &operation);
            assert!(answered.code() != 0, "{kind:?} by {bytes:?} in index {index}: {answered:?}");
            goes_on(&mut raw, &table);
        }
    }
    server.assert_serves();
}

/// A node that is no member of a cluster has no placement: its answers say so, and it refuses a client that asks.
#[test]
fn the_placement_of_a_server_alone() {
    let server = Server::start();
    let mut raw = server.connect();
    let table = raw.open("shop", "orders");
    assert_eq!(raw.refused(Kind::AskPlacement, 0, b"").code, 1235);
    goes_on(&mut raw, &table);
    let request = raw.frame(Kind::Rollback, 77, 1, b"");
    raw.send(&request).expect("the server reads");
    let (header, _) = raw.next(SOON).expect("an answer");
    assert_eq!((header.request, header.placement), (77, 0));
    // Bytes that no client sends end the connection.
    assert_eq!(raw.refused(Kind::AskPlacement, 0, b"x").code, 1835);
    assert!(raw.is_closed_within(SOON));
    server.assert_serves();
}

#[test]
fn values_that_do_not_fit() {
    let server = Server::start();
    let mut raw = server.connect();
    let table = raw.open("shop", "orders");
    let fifth = key(&table, 5);
    let text = "x".repeat(20 << 20);
    let cases: Vec<(u16, ValueRef<'_>, u16, &str)> = vec![
        (0, ValueRef::Null, 1048, "'id' cannot be null"),
        (0, ValueRef::Int(-1), 1264, "column 'id'"),
        (0, ValueRef::Str("5"), 1366, "column 'id'"),
        (1, ValueRef::Str("longer than ten"), 1406, "column 'customer'"),
        (1, ValueRef::Int(5), 1366, "column 'customer'"),
        (2, ValueRef::Decimal("12345678901.5".parse().unwrap()), 1264, "column 'price'"),
        (2, ValueRef::Double(0.5), 1366, "column 'price'"),
        (2, ValueRef::Null, 1048, "'price' cannot be null"),
        (3, ValueRef::Str(&text), 1406, "column 'note'"),
        (3, ValueRef::Bytes(b"\xFF"), 1366, "column 'note'"),
        (4, ValueRef::Date(rauk_types::Date::from_parts(2023, 2, 31)), 1292, "column 'born'"),
        (4, ValueRef::Str("2024-01-01"), 1292, "column 'born'"),
    ];
    for (column, value, code, words) in cases {
        for kind in [OpKind::Insert, OpKind::Write, OpKind::Update] {
            if column == 0 && kind == OpKind::Update {
                continue;
            }
            let insert = [ValueRef::UInt(77), value];
            let operation = match (kind, column) {
                (OpKind::Update, _) => {
                    Operation { columns: vec![column], values: &insert[1..], ..Operation::new(&table, kind, &fifth) }
                }
                (_, 0) => Operation { columns: vec![0], values: &insert[1..], ..Operation::new(&table, kind, &[]) },
                _ => Operation { columns: vec![0, column], values: &insert, ..Operation::new(&table, kind, &[]) },
            };
            match raw.one(0, &alone(), &operation) {
                Answered::Failed(failure) => {
                    assert_eq!(
                        (failure.code, failure.class),
                        (code, ErrorClass::Permanent),
                        "{kind:?}: {}",
                        failure.message
                    );
                    assert!(failure.message.contains(words), "{kind:?}: {}", failure.message);
                }
                other => panic!("{kind:?} of column {column}: {other:?}"),
            }
        }
        goes_on(&mut raw, &table);
    }
    // Additions beyond the column's range, and to what is no number.
    for (column, by, code) in [
        (2u16, ValueRef::Decimal("9999999999.99".parse().unwrap()), 1264),
        (1, ValueRef::Int(1), 0),
        (4, ValueRef::Int(1), 0),
    ] {
        let values = [by];
        let operation =
            Operation { columns: vec![column], values: &values, ..Operation::new(&table, OpKind::Increment, &fifth) };
        let answered = raw.one(0, &alone(), &operation);
        assert!(answered.code() != 0 && (code == 0 || [code, 1690].contains(&answered.code())), "{answered:?}");
        goes_on(&mut raw, &table);
    }
    server.assert_serves();
}

fn plain(table: &TableSchema) -> Scan {
    Scan { table: table.id, version: table.version, ..messages::plain_scan() }
}

fn encoded(scan: &Scan) -> Vec<u8> {
    let mut payload = Vec::new();
    scan.encode(&mut payload);
    payload
}

#[test]
fn scans_that_make_no_sense() {
    let server = Server::start();
    let mut raw = server.connect();
    let table = raw.open("shop", "orders");
    let compare = |column, value| Some(Filter::Compare { column, op: CompareOp::Equal, value });
    let wrong = [
        Scan { table: rauk_types::TableId(999_999), ..plain(&table) },
        Scan { version: table.version + 7, ..plain(&table) },
        Scan { index: Some(rauk_types::IndexId(40)), ..plain(&table) },
        Scan { partition: Some(u16::MAX), ..plain(&table) },
        Scan { wanted: Wanted::Columns(vec![5]), ..plain(&table) },
        Scan { filter: compare(5, rauk_types::Value::Int(1)), ..plain(&table) },
        Scan { filter: compare(1, rauk_types::Value::Int(1)), ..plain(&table) },
    ];
    for scan in wrong {
        let failure = raw.refused(Kind::Scan, 0, &encoded(&scan));
        assert!(failure.code != 0, "{scan:?}");
        goes_on(&mut raw, &table);
    }
    let mut payload = Vec::new();
    scan::encode_number(123_456, &mut payload);
    assert_ne!(raw.refused(Kind::ScanNext, 0, &payload).code, 0, "a scan that is not open");
    assert!(matches!(raw.ask(Kind::ScanClose, 0, &payload), Ok((Kind::Done | Kind::Failed, _))));
    // Bounds that are no keys, or the wrong way round, find nothing, or are refused.
    for (low, high) in [(&b"\xFF\xFF"[..], &b"\x00"[..]), (b"", b""), (b"garbage\x00\x01", b"\xFFgarbage")] {
        let (low, high) = (Bound::Included(low.to_vec()), Bound::Excluded(high.to_vec()));
        let scan = Scan { index: Some(rauk_types::IndexId(1)), low, high, ordered: true, ..plain(&table) };
        assert!(matches!(raw.ask(Kind::Scan, 0, &encoded(&scan)), Ok((Kind::ScanPage | Kind::Failed, _))));
        goes_on(&mut raw, &table);
    }
    // Pages of nothing: at least a row comes each time, or the request is refused.
    let scan = Scan { page_rows: 0, page_bytes: 0, lock: LockWish::None, ..plain(&table) };
    assert!(matches!(raw.ask(Kind::Scan, 0, &encoded(&scan)), Ok((Kind::ScanPage | Kind::Failed, _))));
    // Only so many at a time.
    let scan = Scan { page_rows: 1, ..plain(&table) };
    let refused = (0..10_000).find_map(|_| match raw.ask(Kind::Scan, 0, &encoded(&scan)) {
        Ok((Kind::ScanPage, _)) => None,
        Ok((Kind::Failed, payload)) => Some(Failure::decode(&payload).unwrap()),
        other => panic!("{other:?}"),
    });
    assert!(refused.is_some(), "ten thousand open scans");
    goes_on(&mut raw, &table);
    server.assert_serves();
}

#[test]
fn a_transaction_used_after_its_end() {
    let server = Server::start();
    let mut raw = server.connect();
    let table = raw.open("shop", "orders");
    assert_eq!(raw.begin_and_update(&table, 9, 5, "new"), Answered::Done);
    let fifth = key(&table, 5);
    let read = Operation::new(&table, OpKind::Read, &fifth);
    assert!(matches!(raw.one(9, &BatchOptions { commit: true, ..alone() }, &read), Answered::Row(_)));
    for options in [alone(), BatchOptions { commit: true, ..alone() }] {
        match raw.one(9, &options, &read) {
            Answered::Failed(failure) => {
                assert_eq!(failure.class, ErrorClass::Permanent);
                assert!(failure.message.contains('9') && failure.message.contains("not open"), "{}", failure.message);
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(raw.ask(Kind::Rollback, 9, b""), Ok((Kind::Done | Kind::Failed, _))));
    // Begun twice, never begun, and a savepoint that there is not.
    assert_eq!(raw.begin_and_update(&table, 10, 5, "newer"), Answered::Done);
    assert_ne!(raw.begin_and_update(&table, 10, 5, "newer").code(), 0);
    assert_ne!(raw.one(11, &alone(), &read).code(), 0);
    goes_on(&mut raw, &table);
    // Of another connection it is not known.
    let mut other = server.connect();
    assert_ne!(other.one(10, &alone(), &read).code(), 0);
    // Only so many at a time.
    let refused =
        (100..20_000u64).find_map(|number| match raw.one(number, &BatchOptions { begin: true, ..alone() }, &read) {
            Answered::Row(_) => None,
            Answered::Failed(failure) => Some(failure),
            other => panic!("{other:?}"),
        });
    assert!(refused.is_some(), "twenty thousand open transactions");
    goes_on(&mut raw, &table);
    drop(raw);
    server.assert_serves();
}

/// Every signal with random and with damaged payloads, whose checksums are right. The server answers or hangs up, and serves others as before.
#[test]
fn garbage_in_every_signal() {
    let server = Server::start();
    let table = server.connect().open("shop", "orders");
    let mut rng = StdRng::seed_from_u64(4407);
    let mut messages = messages::all();
    // Aimed at the table that there is, so that more of them get further.
    for message in &mut messages {
        if matches!(message.kind, Kind::Scan) {
            message.payload[..4].copy_from_slice(&table.id.0.to_le_bytes());
            message.payload[4..8].copy_from_slice(&table.version.to_le_bytes());
        }
        if matches!(message.kind, Kind::Batch) {
            let at = 9;
            message.payload[at..at + 4].copy_from_slice(&table.id.0.to_le_bytes());
            message.payload[at + 4..at + 8].copy_from_slice(&table.version.to_le_bytes());
        }
    }
    let mut raw = server.connect();
    let (mut answers, mut ends) = (0, 0);
    for round in 0..3000 {
        let message = &messages[round % messages.len()];
        let mut payload = match rng.random_range(0..3) {
            0 => (0..rng.random_range(0..200)).map(|_| rng.random()).collect(),
            _ => message.payload.clone(),
        };
        for _ in 0..rng.random_range(0..4) {
            if !payload.is_empty() {
                let at = rng.random_range(0..payload.len());
                payload[at] = if rng.random() { 0xFF } else { rng.random() };
            }
        }
        let transaction = [0, 0, 5][rng.random_range(0..3)];
        let frame = raw.frame(message.kind, 1_000_000 + round as u64, transaction, &payload);
        let sent = raw.send(&frame);
        // What comes next is an answer to this, to the ping behind it, or the end.
        let alive = sent.is_ok() && matches!(raw.ask(Kind::Ping, 0, b"alive"), Ok((Kind::Pong, _)));
        if alive {
            answers += 1;
        } else {
            ends += 1;
            raw = server.connect();
        }
    }
    assert!(answers > 100 && ends > 100, "{answers} rounds went on, {ends} ended");
    let mut connection = server.rauk.connect();
    assert_eq!(crate::common::run(&mut connection, "SELECT 1"), ["1"]);
    // What was asked for in good form may have been done: rows changed, the table dropped; nothing else may be wrong.
    assert!(server.connect().ask(Kind::Ping, 0, b"").is_ok());
}
