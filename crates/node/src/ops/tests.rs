//! Operations as messages do what they do beside the partition; what comes damaged is refused; sessions keep their promises.

use super::operation::{Done, Key, KeyedRow, LookUp, Op, Scan, Seen, run};
use super::serve::gather;
use super::sessions::{IDLE, MOST_REMEMBERED, Session, Turn};
use super::wire::{self, Answer, Failure, Gatherer, OpAnswer, Reader, Rows, Shown};
use crate::locks::waits::Wanted;
use crate::runtime::threads::{Threads, block_on};
use crate::table::TableInfo;
use crate::{Config, Database};
use futures::future::join;
use proptest::prelude::*;
use rauk_kernel::{
    Access, Horizon, LockMode, LookupPosition, MemoryBudget, Partition, ReadAt, ScanEnd, ScanPosition, ScanRequest,
    Span, Stop, TxnRef, TxnState, Verdict, WaitPolicy,
};
use rauk_log::MemoryDisk;
use rauk_types::schema::{Column, ColumnDefault, IndexPart, IndexSchema};
use rauk_types::{
    Collation, ColumnId, DataType, IndexId, IndexKind, Member, NodeId, PartitionId, ProcessId, RowLayout, RowView,
    TableId, TableSchema, Timestamp, TxnId, Value, ValueRef, View, row,
};
use std::borrow::Cow;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

/// `(id BIGINT PRIMARY KEY, name VARCHAR(20) NULL)`
pub(crate) fn table() -> Arc<TableInfo> {
    let column = |id: u16, name: &str, ty: DataType, nullable: bool| Column {
        id: ColumnId(id),
        name: name.into(),
        ty,
        nullable,
        default: ColumnDefault::None,
        on_update_now: false,
        comment: String::new(),
        initial: Value::Null,
        generated: None,
        invisible: false,
    };
    let columns = vec![
        column(0, "id", DataType::BIGINT, false),
        column(1, "name", DataType::varchar(20, Collation::Binary), true),
    ];
    let primary = IndexSchema {
        id: IndexId::PRIMARY,
        name: "PRIMARY".into(),
        kind: IndexKind::Primary,
        parts: vec![IndexPart { column: 0, prefix: None, descending: false }],
        hash_only: false,
        entry_table: None,
        comment: String::new(),
        invisible: false,
        global: false,
    };
    let schema = TableSchema {
        id: TableId(7),
        version: 1,
        database: "d".into(),
        name: "t".into(),
        layouts: vec![Arc::new(RowLayout::for_columns(0, &columns))],
        columns: columns.into(),
        indexes: vec![primary].into(),
        distribution: vec![0],
        hidden_key: false,
        auto_increment: None,
        collation: Collation::DEFAULT,
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
    };
    let shared = crate::table::TableShared::new(&schema, 1, 1);
    TableInfo::new(Arc::new(schema), shared, |_| unreachable!("it has no unique index"))
}

fn key_of(table: &TableInfo, id: i64) -> Vec<u8> {
    let mut key = Vec::new();
    table.primary.encode_values(&[Value::Int(id), Value::Null], &mut key);
    key
}

fn row_of(table: &TableInfo, id: i64, name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    row::encode_row(&table.schema, &[Value::Int(id), Value::from(name)], &mut bytes);
    bytes
}

const HORIZON: Horizon = Horizon { oldest_snapshot: Timestamp::ZERO, durable: Timestamp::MAX };

fn access(txn: Option<&TxnRef>, conflict_after: Option<Timestamp>) -> Access<'_> {
    Access {
        txn,
        own_before: u32::MAX,
        statement: 1,
        at: ReadAt::Newest,
        conflict_after,
        horizon: HORIZON,
        observed: Timestamp::ZERO,
    }
}

fn partition(table: &TableInfo) -> Partition {
    let mut p = Partition::new(PartitionId(0), Arc::new(MemoryBudget::new(1 << 30)));
    p.create_table(table.schema.clone());
    p
}

fn commit(p: &mut Partition, txn: &TxnRef, time: u64) {
    txn.status.set(TxnState::Committed(Timestamp(time)));
    p.commit(txn.id, Timestamp(time), HORIZON);
}

/// Sends an operation over a wire that is only bytes and does it there, as `serve` does.
fn far(
    p: &mut Partition,
    table: &TableInfo,
    access: &mut Access<'_>,
    op: &Op<'_>,
    most: usize,
) -> Result<(Done, Rows, ScanPosition), Stop> {
    let bytes = wire::encode(op);
    let mut op = wire::decode(&bytes, table, |_| true).expect("it was encoded so");
    let mut rows = Gatherer::default();
    let done = gather(&mut op, table, p, access, &mut None, &mut rows, most)?;
    let answer = Answer::new(done, rows.finish(), op);
    // The answer travels too.
    let answer = OpAnswer { view: View(3), observed: access.observed, outcome: Ok(answer) };
    let back: OpAnswer = postcard::from_bytes(&postcard::to_stdvec(&answer).unwrap()).unwrap();
    assert_eq!(back, answer);
    match back.outcome.unwrap() {
        Answer::Scanned { rows, position, finished } => {
            Ok((Done::Scanned(if finished { ScanEnd::Finished } else { ScanEnd::More }), rows, position))
        }
        Answer::Seen(rows) => Ok((Done::Seen, rows, ScanPosition::Start)),
        Answer::Is(yes) => Ok((Done::Is(yes), Rows::default(), ScanPosition::Start)),
        Answer::Count(rows) => Ok((Done::Count(rows), Rows::default(), ScanPosition::Start)),
        Answer::Usage { .. } | Answer::Sifted { .. } | Answer::LookedUp { .. } | Answer::Owner(_) => {
            panic!("nobody asked")
        }
    }
}

fn names(rows: Rows, table: &TableInfo) -> Vec<Option<(i64, String)>> {
    let mut names = Vec::new();
    let shown = Reader::new(rows).show_points(table, &mut |seen| {
        names.push(seen.row().map(|row| pair(&row)));
        Verdict::Keep
    });
    assert_eq!(shown, Shown::All);
    names
}

fn pair(row: &RowView<'_>) -> (i64, String) {
    match (row.get(0), row.get(1)) {
        (ValueRef::Int(id), ValueRef::Str(name)) => (id, name.to_string()),
        other => panic!("{other:?}"),
    }
}

fn scan(request: &ScanRequest, position: ScanPosition, slice: u32) -> Op<'_> {
    let request = Cow::Borrowed(request);
    Op::Scan(Scan {
        request,
        position,
        slice,
        most: 100,
        ahead: Reader::default(),
        finished: false,
        program: &[],
        pushdown: None,
    })
}

fn lookup<'a>(spans: &'a [Span<'a>], position: LookupPosition, slice: u32) -> Op<'a> {
    let (spans, locks) = (Cow::Borrowed(spans), false);
    Op::LookUp(LookUp { index: IndexId::PRIMARY, spans, position, slice, locks, covering: None })
}

fn all_rows(lock: Option<(LockMode, WaitPolicy)>, index: Option<IndexId>) -> ScanRequest {
    ScanRequest {
        table: TableId(7),
        index,
        low: Bound::Unbounded,
        high: Bound::Unbounded,
        reverse: false,
        lock,
        covering: None,
        also: Arc::default(),
    }
}

/// Rows go in up to the first whose key is there; one with a key that is not its own is no operation.
#[test]
fn many_rows_go_in_up_to_the_first_that_is_taken() {
    let table = table();
    let mut p = partition(&table);
    let txn = TxnRef::new(TxnId(1));
    let (keys, rows): (Vec<_>, Vec<_>) = (0..6).map(|id| (key_of(&table, id), row_of(&table, id, "many"))).unzip();
    let many = |numbers: &[usize]| {
        let row = |&at: &usize| KeyedRow { key: Key::of(&keys[at]), row: &rows[at] };
        Op::InsertMany { rows: numbers.iter().map(row).collect(), done: 0 }
    };
    let mut inserted = |op: &Op<'_>| far(&mut p, &table, &mut access(Some(&txn), None), op, 9).unwrap().0;
    assert_eq!(inserted(&many(&[0, 1, 2])), Done::Count(3));
    assert_eq!(inserted(&many(&[3, 1, 4])), Done::Count(1));
    assert_eq!(inserted(&many(&[2, 5])), Done::Count(0));
    assert_eq!(inserted(&many(&[])), Done::Count(0));
    commit(&mut p, &txn, 5);
    let read = Op::ReadMany { keys: keys.iter().map(|key| Key::of(key)).collect(), done: 0 };
    let (_, seen, _) = far(&mut p, &table, &mut access(None, None), &read, 9).unwrap();
    let there: Vec<bool> = names(seen, &table).iter().map(Option::is_some).collect();
    assert_eq!(there, [true, true, true, true, false, false]);
    let wrong = Op::InsertMany { rows: vec![KeyedRow { key: Key::of(&keys[4]), row: &rows[5] }], done: 0 };
    assert!(wire::decode(&wire::encode(&wrong), &table, |_| true).is_none());
    let begun = Op::InsertMany { rows: vec![KeyedRow { key: Key::of(&keys[4]), row: &rows[4] }], done: 1 };
    assert!(wire::decode(&wire::encode(&begun), &table, |_| true).is_none());
    assert!(wire::decode(&wire::encode(&many(&[4])), &table, |_| false).is_none());
}

/// Changes of many rows end before the first that is not there, and can go on behind it.
#[test]
fn many_rows_are_changed_up_to_the_first_that_is_missing() {
    let table = table();
    let mut p = partition(&table);
    let txn = TxnRef::new(TxnId(1));
    let (keys, rows): (Vec<_>, Vec<_>) = (0..6).map(|id| (key_of(&table, id), row_of(&table, id, "old"))).unzip();
    for at in [0, 1, 3, 4] {
        let insert = Op::Insert { key: Key::of(&keys[at]), row: &rows[at] };
        assert!(far(&mut p, &table, &mut access(Some(&txn), None), &insert, 9).unwrap().0.is());
    }
    commit(&mut p, &txn, 5);
    let txn = TxnRef::new(TxnId(2));
    let changed: Vec<_> = (0..6).map(|id| row_of(&table, id, "new")).collect();
    let mut done = |op: &Op<'_>| far(&mut p, &table, &mut access(Some(&txn), None), op, 9).unwrap().0;
    let update = |numbers: &[usize]| {
        let row = |&at: &usize| KeyedRow { key: Key::of(&keys[at]), row: &changed[at] };
        Op::UpdateMany { rows: numbers.iter().map(row).collect(), done: 0 }
    };
    let delete =
        |numbers: &[usize]| Op::DeleteMany { keys: numbers.iter().map(|&at| Key::of(&keys[at])).collect(), done: 0 };
    assert_eq!(done(&update(&[0, 1, 2, 3])), Done::Count(2));
    assert_eq!(done(&update(&[3])), Done::Count(1));
    assert_eq!(done(&delete(&[4, 4, 1])), Done::Count(1));
    assert_eq!(done(&delete(&[5])), Done::Count(0));
    assert_eq!(done(&delete(&[1])), Done::Count(1));
    commit(&mut p, &txn, 6);
    let read = Op::ReadMany { keys: keys.iter().map(|key| Key::of(key)).collect(), done: 0 };
    let (_, seen, _) = far(&mut p, &table, &mut access(None, None), &read, 9).unwrap();
    let new = |id: i64| Some((id, "new".to_string()));
    assert_eq!(names(seen, &table), [new(0), None, None, new(3), None, None]);
    let wrong = Op::UpdateMany { rows: vec![KeyedRow { key: Key::of(&keys[4]), row: &rows[5] }], done: 0 };
    assert!(wire::decode(&wire::encode(&wrong), &table, |_| true).is_none());
    assert!(wire::decode(&wire::encode(&delete(&[4])), &table, |_| false).is_none());
}

/// Rows are taken in order, each is shown or said to be missing, and somebody else's lock is waited for where it is met.
#[test]
fn many_rows_are_taken_and_shown() {
    let table = table();
    let mut p = partition(&table);
    let (owner, other) = (TxnRef::new(TxnId(1)), TxnRef::new(TxnId(2)));
    let keys: Vec<_> = (0..6).map(|id| key_of(&table, id)).collect();
    for id in [0, 1, 3, 4] {
        let (key, row) = (&keys[id as usize], row_of(&table, id, "there"));
        let insert = Op::Insert { key: Key::of(key), row: &row };
        assert!(far(&mut p, &table, &mut access(Some(&owner), None), &insert, 9).unwrap().0.is());
    }
    commit(&mut p, &owner, 5);
    let owner = TxnRef::new(TxnId(3));
    let take =
        |numbers: &[usize]| Op::TakeMany { keys: numbers.iter().map(|&at| Key::of(&keys[at])).collect(), done: 0 };
    let there = |id: i64| Some((id, "there".to_string()));
    let (done, seen, _) = far(&mut p, &table, &mut access(Some(&owner), None), &take(&[0, 2, 3]), 9).unwrap();
    assert_eq!((done, names(seen, &table)), (Done::Seen, vec![there(0), None, there(3)]));
    // As many as fit into an answer.
    let (_, seen, _) = far(&mut p, &table, &mut access(Some(&owner), None), &take(&[0, 1, 2, 3]), 2).unwrap();
    assert_eq!(names(seen, &table), [there(0), there(1)]);
    let (_, seen, _) = far(&mut p, &table, &mut access(Some(&other), None), &take(&[4, 5]), 9).unwrap();
    assert_eq!(names(seen, &table), [there(4), None]);
    let waits = far(&mut p, &table, &mut access(Some(&other), None), &take(&[4, 3]), 9);
    assert!(matches!(waits, Err(Stop::Wait(_))));
    // One that is newer than the snapshot is a conflict.
    let old = Some(Timestamp(4));
    let changed = far(&mut p, &table, &mut access(Some(&owner), old), &take(&[1]), 9);
    assert!(matches!(changed, Err(Stop::Changed)));
    assert!(wire::decode(&wire::encode(&take(&[4])), &table, |_| false).is_none());
    let begun = Op::TakeMany { keys: vec![Key::of(&keys[4])], done: 1 };
    assert!(wire::decode(&wire::encode(&begun), &table, |_| true).is_none());
}

#[test]
fn writes_and_reads_from_afar_are_those_beside_the_partition() {
    let table = table();
    let mut p = partition(&table);
    let txn = TxnRef::new(TxnId(1));
    let (keys, rows): (Vec<_>, Vec<_>) =
        (0..5).map(|id| (key_of(&table, id), row_of(&table, id, &format!("row {id}")))).unzip();
    for (key, row) in keys.iter().zip(&rows) {
        let insert = Op::Insert { key: Key::of(key), row };
        let mut access = access(Some(&txn), None);
        assert!(far(&mut p, &table, &mut access, &insert, 9).unwrap().0.is());
        assert!(!far(&mut p, &table, &mut access, &insert, 9).unwrap().0.is(), "the key is taken");
    }
    let changed = row_of(&table, 2, "changed");
    let update = Op::Update { key: Key::of(&keys[2]), row: &changed };
    assert!(far(&mut p, &table, &mut access(Some(&txn), None), &update, 9).unwrap().0.is());
    let delete = Op::Delete { key: Key::of(&keys[4]) };
    assert!(far(&mut p, &table, &mut access(Some(&txn), None), &delete, 9).unwrap().0.is());
    commit(&mut p, &txn, 5);
    let read = Op::ReadMany { keys: keys.iter().map(|k| Key::of(k)).collect(), done: 0 };
    let mut reader = access(None, None);
    let (done, seen, _) = far(&mut p, &table, &mut reader, &read, 9).unwrap();
    assert_eq!((done, reader.observed), (Done::Seen, Timestamp(5)));
    let row = |id: i64, name: &str| Some((id, name.to_string()));
    let all = [row(0, "row 0"), row(1, "row 1"), row(2, "changed"), row(3, "row 3"), None];
    assert_eq!(names(seen, &table), all);
    // As many as are wanted.
    let (_, seen, _) = far(&mut p, &table, &mut reader, &read, 2).unwrap();
    assert_eq!(names(seen, &table), all[..2]);
}

/// Slices of a scan, each stopped where the visitor would want no more, give each row once; what was sent and not shown comes next.
#[test]
fn scans_go_on_where_they_stopped() {
    let table = table();
    let mut p = partition(&table);
    let txn = TxnRef::new(TxnId(1));
    for id in 0..50 {
        let (key, row) = (key_of(&table, id), row_of(&table, id, "x"));
        let mut insert = Op::Insert { key: Key::of(&key), row: &row };
        run(&mut insert, TableId(7), &mut p, &mut access(Some(&txn), None), &mut |_| Verdict::Keep).unwrap();
    }
    commit(&mut p, &txn, 5);
    for index in [None, Some(IndexId::PRIMARY)] {
        let request = all_rows(None, index);
        let (mut found, mut position) = (Vec::new(), ScanPosition::Start);
        loop {
            let op = scan(&request, position, 7);
            let (done, rows, at) = far(&mut p, &table, &mut access(None, None), &op, 5).unwrap();
            assert!(rows.count() <= 5);
            let mut reader = Reader::new(rows);
            while !reader.is_empty() {
                // The visitor stops at each row.
                let shown = reader.show(&table, &mut |seen| match seen {
                    Seen::Scanned(row) => {
                        found.push(pair(&row.row).0);
                        Verdict::KeepAndStop
                    }
                    _ => panic!("a scan shows what it has scanned"),
                });
                assert_eq!(shown, Shown::Stopped);
            }
            position = at;
            if done == Done::Scanned(ScanEnd::Finished) {
                break;
            }
        }
        assert_eq!(found, (0..50).collect::<Vec<_>>());
    }
}

/// Slices of a lookup of several ranges give each row of them once, with the number of its range, however few fit into an answer.
/// A lookup that locks meets a row that somebody else has not committed yet, and what it was waiting for is seen then.
#[test]
fn lookups_that_lock_wait_for_pending_rows() {
    let table = table();
    let mut p = partition(&table);
    let (owner, other) = (TxnRef::new(TxnId(1)), TxnRef::new(TxnId(2)));
    let keys: Vec<_> = (0..10).map(|id| key_of(&table, id)).collect();
    let (key, row) = (&keys[6], row_of(&table, 6, "pending"));
    let insert = Op::Insert { key: Key::of(key), row: &row };
    assert!(far(&mut p, &table, &mut access(Some(&owner), None), &insert, 9).unwrap().0.is());
    let spans: Vec<Span<'_>> =
        [(1, 3), (5, 7)].iter().map(|(low, high)| Span { low: &keys[*low], high: Some(&keys[*high]) }).collect();
    let locking = |spans| {
        let (spans, position) = (Cow::Borrowed(spans), LookupPosition::default());
        Op::LookUp(LookUp { index: IndexId::PRIMARY, spans, position, slice: 256, locks: true, covering: None })
    };
    assert!(locking(&spans[..]).touches());
    let bytes = wire::encode(&locking(&spans[..]));
    let mut op = wire::decode(&bytes, &table, |_| true).expect("it was encoded so");
    let mut found = Vec::new();
    let mut look = |p: &mut Partition| {
        run(&mut op, TableId(7), p, &mut access(Some(&other), None), &mut |seen| {
            let Seen::Found(number, row) = seen else { panic!("a lookup shows what it has found") };
            found.push((number, pair(&row)));
            Verdict::Keep
        })
    };
    assert!(matches!(look(&mut p), Err(Stop::Wait(_))));
    commit(&mut p, &owner, 5);
    assert_eq!(look(&mut p), Ok(Done::Scanned(ScanEnd::Finished)));
    assert_eq!(found, [(1, (6, "pending".to_string()))]);
    // It is locked now.
    let owner = TxnRef::new(TxnId(3));
    let delete = Op::Delete { key: Key::of(&keys[6]) };
    assert!(matches!(far(&mut p, &table, &mut access(Some(&owner), None), &delete, 9), Err(Stop::Wait(_))));
}

#[test]
fn lookups_go_on_where_they_stopped() {
    let table = table();
    let mut p = partition(&table);
    let txn = TxnRef::new(TxnId(1));
    for id in 0..50 {
        let (key, row) = (key_of(&table, id), row_of(&table, id, "x"));
        let mut insert = Op::Insert { key: Key::of(&key), row: &row };
        run(&mut insert, TableId(7), &mut p, &mut access(Some(&txn), None), &mut |_| Verdict::Keep).unwrap();
    }
    commit(&mut p, &txn, 5);
    let ends = [(30, Some(42)), (7, Some(7)), (3, Some(4)), (48, None), (9, Some(2)), (31, Some(33))];
    let keys = ends.map(|(low, high)| (key_of(&table, low), high.map(|high: i64| key_of(&table, high))));
    let spans: Vec<Span<'_>> = keys.iter().map(|(low, high)| Span { low, high: high.as_deref() }).collect();
    let expected: Vec<(usize, i64)> = (ends.iter().enumerate())
        .flat_map(|(number, (low, high))| (*low..high.unwrap_or(50)).map(move |id| (number, id)))
        .collect();
    for (slice, most) in [(256, 100), (3, 100), (256, 1), (4, 3)] {
        let (mut found, mut position) = (Vec::new(), LookupPosition::default());
        loop {
            let op = lookup(&spans, position, slice);
            let bytes = wire::encode(&op);
            let mut op = wire::decode(&bytes, &table, |_| true).expect("it was encoded so");
            let mut rows = Gatherer::default();
            let done = gather(&mut op, &table, &mut p, &mut access(None, None), &mut None, &mut rows, most).unwrap();
            let answer = Answer::new(done, rows.finish(), op);
            let back: Answer = postcard::from_bytes(&postcard::to_stdvec(&answer).unwrap()).unwrap();
            assert_eq!(back, answer);
            let Answer::LookedUp { rows, position: at, finished } = back else { panic!("{back:?}") };
            assert!(rows.count() <= most);
            assert_eq!(
                Reader::new(rows.clone()).show_found(0, &table, &mut |_| Verdict::Keep) == Shown::Malformed,
                rows.count() > 0
            );
            let shown = Reader::new(rows).show_found(spans.len(), &table, &mut |seen| match seen {
                Seen::Found(number, row) => {
                    found.push((number, pair(&row).0));
                    Verdict::Keep
                }
                _ => panic!("a lookup shows what it has found"),
            });
            assert_eq!(shown, Shown::All);
            position = at;
            if finished {
                break;
            }
        }
        assert_eq!(found, expected, "slices of {slice}, {most} at a time");
    }
}

/// However the visitor's batches fall on what comes from afar, also with the last row of all as the last of a batch, the scan gives each row once and ends.
#[test]
fn a_batch_that_ends_with_the_last_row_ends_the_scan() {
    const ROWS: i64 = 12;
    let table = table();
    let mut p = partition(&table);
    let txn = TxnRef::new(TxnId(1));
    for id in 0..ROWS {
        let (key, row) = (key_of(&table, id), row_of(&table, id, "x"));
        let mut insert = Op::Insert { key: Key::of(&key), row: &row };
        run(&mut insert, TableId(7), &mut p, &mut access(Some(&txn), None), &mut |_| Verdict::Keep).unwrap();
    }
    commit(&mut p, &txn, 5);
    for (index, reverse) in [(None, false), (Some(IndexId::PRIMARY), false), (Some(IndexId::PRIMARY), true)] {
        let request = ScanRequest { reverse, ..all_rows(None, index) };
        for (batch, most) in (1..=13).flat_map(|batch| [3, 4, 100].map(|most| (batch, most))) {
            let (mut found, mut calls) = (Vec::new(), 0);
            let mut op = scan(&request, ScanPosition::Start, 5);
            loop {
                let Op::Scan(asked) = &mut op else { unreachable!("it is a scan") };
                if asked.ahead.is_empty() {
                    let ask = scan(&request, asked.position.clone(), 5);
                    let (done, rows, at) = far(&mut p, &table, &mut access(None, None), &ask, most).unwrap();
                    asked.position = at;
                    asked.ahead = Reader::new(rows);
                    asked.finished = done == Done::Scanned(ScanEnd::Finished);
                    calls += 1;
                    assert!(calls <= 2 * ROWS, "batches of {batch}, {most} at a time, {index:?}: it does not end");
                }
                let mut kept = 0;
                let shown = asked.show_ahead(&table, &mut |seen| match seen {
                    Seen::Scanned(row) => {
                        found.push(pair(&row.row).0);
                        kept += 1;
                        if kept == batch { Verdict::KeepAndStop } else { Verdict::Keep }
                    }
                    _ => panic!("a scan shows what it has scanned"),
                });
                if shown.unwrap() == ScanEnd::Finished {
                    break;
                }
            }
            if reverse {
                found.reverse();
            }
            assert_eq!(found, (0..ROWS).collect::<Vec<_>>(), "batches of {batch}, {most} at a time, {index:?}");
        }
    }
}

/// A row that has changed after the snapshot is a conflict when the visitor keeps it, and none when it skips it: as beside the partition.
#[test]
fn a_changed_row_is_a_conflict_only_for_who_wants_it() {
    let table = table();
    let mut p = partition(&table);
    for (number, id, time) in [(1, 1, 5), (2, 2, 9), (3, 3, 5)] {
        let txn = TxnRef::new(TxnId(number));
        let (key, row) = (key_of(&table, id), row_of(&table, id, "x"));
        let insert = Op::Insert { key: Key::of(&key), row: &row };
        far(&mut p, &table, &mut access(Some(&txn), None), &insert, 9).unwrap();
        commit(&mut p, &txn, time);
    }
    for index in [None, Some(IndexId::PRIMARY)] {
        let request = all_rows(Some((LockMode::Exclusive, WaitPolicy::Wait)), index);
        for wanted in [2, 3] {
            let txn = TxnRef::new(TxnId(10 + wanted as u64));
            let (mut kept, mut position, mut ended) = (Vec::new(), ScanPosition::Start, None);
            while ended.is_none() {
                let op = scan(&request, position.clone(), 100);
                let mut access = access(Some(&txn), Some(Timestamp(6)));
                let (done, rows, at) = far(&mut p, &table, &mut access, &op, 100).unwrap();
                position = at;
                let shown = Reader::new(rows).show(&table, &mut |seen| match seen {
                    Seen::Scanned(row) if pair(&row.row).0 == wanted => {
                        kept.push(wanted);
                        Verdict::Keep
                    }
                    _ => Verdict::Skip,
                });
                if shown == Shown::Changed || done == Done::Scanned(ScanEnd::Finished) {
                    ended = Some(shown);
                }
            }
            assert_eq!(kept, [wanted]);
            assert_eq!(ended, Some(if wanted == 2 { Shown::Changed } else { Shown::All }));
            p.abort(txn.id);
        }
        // One that has gone is a conflict for who wants what the snapshot has, and for nobody else.
        let gone = TxnRef::new(TxnId(20));
        let key = key_of(&table, 3);
        let delete = Op::Delete { key: Key::of(&key) };
        far(&mut p, &table, &mut access(Some(&gone), None), &delete, 9).unwrap();
        let txn = TxnRef::new(TxnId(21));
        if index.is_some() {
            commit(&mut p, &gone, 12);
            let op = scan(&request, ScanPosition::Start, 100);
            let mut late = access(Some(&txn), Some(Timestamp(10)));
            let (done, rows, _) = far(&mut p, &table, &mut late, &op, 100).unwrap();
            assert_eq!(done, Done::Scanned(ScanEnd::Finished));
            for wanted in [3, 4] {
                let shown = Reader::new(rows.clone()).show(&table, &mut |seen| match seen {
                    Seen::Scanned(row) if pair(&row.row).0 == wanted => Verdict::Keep,
                    _ => Verdict::Skip,
                });
                assert_eq!(shown, if wanted == 3 { Shown::Changed } else { Shown::All });
            }
            p.abort(txn.id);
        } else {
            p.abort(gone.id);
        }
    }
}

/// A scan waits for a transaction that is prepared, and the partition goes to another node meanwhile: rows have other numbers there, and what the scan has passed over here it has not passed over there.
#[test]
fn a_scan_that_has_shown_nothing_begins_anew_elsewhere() {
    let table = table();
    let (mut here, mut there) = (partition(&table), partition(&table));
    let (made, gone, open) = (TxnRef::new(TxnId(1)), TxnRef::new(TxnId(2)), TxnRef::new(TxnId(3)));
    let change = |p: &mut Partition, txn: &TxnRef, id: i64, delete: bool| {
        let (key, row) = (key_of(&table, id), row_of(&table, id, "x"));
        let key = Key::of(&key);
        let mut op = if delete { Op::Delete { key } } else { Op::Insert { key, row: &row } };
        assert!(run(&mut op, TableId(7), p, &mut access(Some(txn), None), &mut |_| Verdict::Keep).unwrap().is());
    };
    (0..4).for_each(|id| change(&mut here, &made, id, false));
    commit(&mut here, &made, 5);
    (0..4).for_each(|id| change(&mut here, &gone, id, true));
    commit(&mut here, &gone, 6);
    change(&mut here, &open, 9, false);
    open.status.set(TxnState::Prepared(Timestamp(7)));
    change(&mut there, &made, 9, false);
    commit(&mut there, &made, 7);
    for index in [None, Some(IndexId::PRIMARY)] {
        let request = all_rows(None, index);
        let mut op = scan(&request, ScanPosition::Start, 100);
        let mut found = Vec::new();
        let mut go_on = |op: &mut Op<'_>, p: &mut Partition| {
            let mut access = Access { at: ReadAt::Snapshot(Timestamp(8)), ..access(None, None) };
            run(op, TableId(7), p, &mut access, &mut |seen| match seen {
                Seen::Scanned(row) => {
                    found.push(pair(&row.row).0);
                    Verdict::Keep
                }
                _ => panic!("a scan shows what it has scanned"),
            })
        };
        assert_eq!(go_on(&mut op, &mut here), Err(Stop::Prepared(open.id)));
        op.rewind();
        assert_eq!(go_on(&mut op, &mut there), Ok(Done::Scanned(ScanEnd::Finished)));
        assert_eq!(found, [9]);
    }
}

#[test]
fn what_does_not_belong_is_refused() {
    let table = table();
    let (key, other, row) = (key_of(&table, 1), key_of(&table, 2), row_of(&table, 1, "x"));
    let encoded = |op: &Op<'_>| wire::encode(op);
    let accepted = |bytes: &[u8]| wire::decode(bytes, &table, |_| true).is_some();
    assert!(accepted(&encoded(&Op::Insert { key: Key::of(&key), row: &row })));
    assert!(!accepted(&encoded(&Op::Insert { key: Key::of(&other), row: &row })), "another row's key");
    assert!(!accepted(&encoded(&Op::Insert { key: Key::of(&key), row: &row[1..] })), "half a row");
    assert!(!accepted(&encoded(&Op::Delete { key: Key::of(&key[1..]) })), "half a key");
    assert!(wire::decode(&encoded(&Op::Delete { key: Key::of(&key) }), &table, |_| false).is_none(), "elsewhere");
    let request = ScanRequest { table: TableId(8), ..all_rows(None, None) };
    assert!(!accepted(&encoded(&scan(&request, ScanPosition::Start, 5))), "another table");
    let mut long = encoded(&Op::Usage).to_vec();
    long.push(0);
    assert!(!accepted(&long), "more than an operation");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Damaged operations are refused or are others that do no harm; damaged rows are refused or can be read.
    #[test]
    fn damage_does_no_harm(which in 0..7_usize, damage in proptest::collection::vec((any::<u16>(), any::<u8>()), 1..4)) {
        let table = table();
        let mut p = partition(&table);
        let txn = TxnRef::new(TxnId(1));
        let (key, row) = (key_of(&table, 1), row_of(&table, 1, "abc"));
        let request = all_rows(Some((LockMode::Shared, WaitPolicy::NoWait)), Some(IndexId::PRIMARY));
        let low = Bound::Included(&key[..]);
        let spans = [Span { low: &key, high: None }; 2];
        let after = LookupPosition { span: 1, within: ScanPosition::AfterEntry(key.clone(), rauk_kernel::RowId(3)) };
        let op = match which {
            0 => Op::Insert { key: Key::of(&key), row: &row },
            1 => Op::ReadLocked { key: Key::of(&key), mode: LockMode::Shared, wait: WaitPolicy::Wait, ranges: true },
            2 => scan(&request, ScanPosition::AfterEntry(key.clone(), rauk_kernel::RowId(3)), 9),
            3 => Op::LockRange { index: IndexId::PRIMARY, low, high: Bound::Unbounded },
            6 => lookup(&spans, after, 9),
            4 => Op::ReadMany { keys: vec![Key::of(&key), Key::of(&key)], done: 0 },
            _ => Op::Update { key: Key::of(&key), row: &row },
        };
        let mut bytes = wire::encode(&op).to_vec();
        for (at, byte) in damage {
            let at = usize::from(at) % bytes.len();
            bytes[at] = byte;
        }
        if let Some(mut op) = wire::decode(&bytes, &table, |_| true) {
            let mut rows = Gatherer::default();
            let _ = gather(&mut op, &table, &mut p, &mut access(Some(&txn), None), &mut None, &mut rows, 10);
        }
        p.abort(txn.id);
        p.validate();
        if let Ok(rows) = postcard::from_bytes::<Rows>(&bytes) {
            let read = &mut |seen: Seen<'_, '_>| {
                if let Some(row) = seen.row() {
                    row.to_values();
                }
                Verdict::Keep
            };
            Reader::new(rows.clone()).show(&table, read);
            Reader::new(rows.clone()).show_found(2, &table, read);
            Reader::new(rows).show_points(&table, read);
        }
    }
}

// Sessions

fn database() -> Database {
    Database::open(Config::default(), MemoryDisk::new(), Threads::start().unwrap(), &|_| {}).unwrap()
}

const COORDINATOR: Member = Member { node: NodeId(2), process: ProcessId(9) };

fn txn(number: u64) -> TxnId {
    TxnId::of_process(COORDINATOR.process, number)
}

fn begin(db: &Database, number: u64) -> Arc<Session> {
    db.node.sessions.enter(txn(number), COORDINATOR, true, Duration::ZERO).expect("it has not ended")
}

fn answer(view: u64) -> OpAnswer {
    OpAnswer { view: View(view), observed: Timestamp(4), outcome: Err(Failure::NoWait) }
}

#[test]
fn a_call_is_made_once_however_often_it_comes() {
    let db = database();
    let session = begin(&db, 1);
    block_on(async {
        assert_eq!(session.turn(1, true).await, Turn::Go);
        // While it is made, a repetition waits for its answer.
        let again = async {
            assert_eq!(session.turn(1, true).await, Turn::Kept(Box::new(answer(1))));
        };
        let ends = async { session.done(Some(answer(1)), Duration::ZERO) };
        join(again, ends).await;
        assert_eq!(session.turn(1, true).await, Turn::Kept(Box::new(answer(1))));
        assert_eq!(session.turn(4, true).await, Turn::Go, "those between have never come");
        session.done(Some(answer(2)), Duration::ZERO);
        assert_eq!(session.turn(3, true).await, Turn::Late);
        assert_eq!(session.turn(4, false).await, Turn::Go, "switched off, it is made again");
    });
}

#[test]
fn a_successor_ends_the_call_before_it() {
    let db = database();
    let session = begin(&db, 1);
    block_on(async {
        assert_eq!(session.turn(1, true).await, Turn::Go);
        session.kill(2);
        assert!(!session.interrupt.is_killed(), "that was meant for another call");
        let next = async { assert_eq!(session.turn(2, true).await, Turn::Go) };
        let waits = async {
            assert!(session.interrupt.is_killed());
            session.done(None, Duration::ZERO);
        };
        join(next, waits).await;
        assert!(!session.interrupt.is_killed());
        session.kill(2);
        assert!(session.interrupt.is_killed());
    });
}

#[test]
fn what_has_ended_does_not_begin_again_and_what_is_prepared_stays() {
    let db = database();
    let (node, sessions) = (&db.node, &db.node.sessions);
    let session = begin(&db, 1);
    assert!(session.touches.enter(0, View(1), false) && session.touches.enter(1, View(1), false));
    assert!(sessions.prepare(txn(1), &[0], View(2)).is_none(), "in another view");
    assert!(sessions.prepare(txn(1), &[0], View(1)).is_some());
    sessions.end(node, txn(1));
    assert!(sessions.prepare(txn(1), &[1], View(1)).is_none(), "its locks there have gone");
    assert_eq!(sessions.count(), 1);
    sessions.on_view(node, PartitionId(0), View(2));
    assert_eq!(sessions.count(), 0, "the stream has it, or has cut it");
    sessions.finished(node, txn(1), [0]);
    assert!(sessions.enter(txn(1), COORDINATOR, true, Duration::ZERO).is_none(), "a late doubled first call");

    let session = begin(&db, 2);
    assert!(session.touches.enter(3, View(1), false));
    assert!(!sessions.release(node, txn(2), PartitionId(3), View(2)));
    assert!(sessions.release(node, txn(2), PartitionId(3), View(1)));
    assert!(!sessions.release(node, txn(2), PartitionId(3), View(1)), "they have been given back");
    assert_eq!(sessions.count(), 0);
}

/// What is done once and for all is done for no transaction that may have ended before, however long ago.
#[test]
fn what_has_ended_is_known_when_it_is_forgotten() {
    let db = database();
    let (node, sessions) = (&db.node, &db.node.sessions);
    begin(&db, 2);
    assert!(!sessions.may_have_ended(txn(1)) && !sessions.may_have_ended(txn(2)));
    sessions.end(node, txn(2));
    assert!(sessions.may_have_ended(txn(2)) && !sessions.may_have_ended(txn(1)), "it is remembered");
    let last = MOST_REMEMBERED as u64 + 10;
    (3..=last).for_each(|number| sessions.end(node, txn(number)));
    assert!(sessions.enter(txn(2), COORDINATOR, true, Duration::ZERO).is_some(), "it is forgotten");
    sessions.end(node, txn(2));
    let newest = last - MOST_REMEMBERED as u64;
    for number in [1, 2, newest, newest + 1, last] {
        assert!(sessions.may_have_ended(txn(number)), "{number}");
    }
    assert!(!sessions.may_have_ended(txn(last + 1)));
    let other = TxnId::of_process(ProcessId(COORDINATOR.process.0 + 1), 1);
    assert!(!sessions.may_have_ended(other), "another process counts for itself");
}

#[test]
fn silent_sessions_are_asked_about() {
    let db = database();
    let sessions = &db.node.sessions;
    begin(&db, 1);
    let busy = begin(&db, 2);
    block_on(async { assert_eq!(busy.turn(1, true).await, Turn::Go) });
    let prepared = begin(&db, 3);
    assert!(prepared.touches.enter(0, View(1), false) && prepared.touches.prepare(&[0], View(1)));
    assert!(sessions.idle(IDLE).is_empty());
    let later = IDLE + Duration::from_millis(1);
    assert_eq!(sessions.idle(later).get(&COORDINATOR), Some(&vec![txn(1)]));
    sessions.used(&[txn(1)], later);
    assert!(sessions.idle(later + IDLE).is_empty());
}

/// Locks of a foreign transaction die with the view: who waits for them goes on.
#[test]
fn a_new_view_frees_what_was_locked_in_the_old() {
    let db = database();
    let node = &db.node;
    let table = table();
    let key = key_of(&table, 1);
    let row = row_of(&table, 1, "x");
    let session = begin(&db, 1);
    let own = TxnRef::new(TxnId(77));
    block_on(async {
        node.on_partition(0, crate::executor::Class::Point, |p| {
            p.create_table(table.schema.clone());
            assert!(session.touches.enter(0, View(1), false));
            let mut insert = Op::Insert { key: Key::of(&key), row: &row };
            run(&mut insert, TableId(7), p, &mut access(Some(&session.txn), None), &mut |_| Verdict::Keep).unwrap();
            let waits = run(&mut insert, TableId(7), p, &mut access(Some(&own), None), &mut |_| Verdict::Keep);
            assert_eq!(waits, Err(Stop::Wait(vec![session.txn.id])));
            node.waits.enter(
                own.id,
                Wanted { partition: PartitionId(0), table: TableId(7), shared: false },
                vec![session.txn.id],
                0,
                Duration::ZERO,
            );
        })
        .await;
        let outcome = || node.waits.poll(own.id, std::task::Waker::noop());
        assert_eq!(outcome(), None);
        node.sessions.on_view(node, PartitionId(0), View(1));
        assert_eq!(outcome(), None, "the view has not changed");
        node.sessions.on_view(node, PartitionId(0), View(2));
        assert_eq!(outcome(), Some(crate::locks::waits::Outcome::Granted));
        assert!(session.touches.list().is_empty());
        node.on_partition(0, crate::executor::Class::Point, |p| assert!(!p.has_transaction(session.txn.id))).await;
    });
}
