//! The native service on sessions in this process: what holds here holds over the network, which runs the same code.

mod client;
mod model;

use crate::support::*;
use client::*;
use rauk_node::native::{Limits, Service};
use rauk_node::*;
use rauk_types::schema::ColumnDefault;
use rauk_types::{CheckConstraint, Collation, DataType, ErrorClass, IndexId, IndexKind, TypeKind, Value, ValueRef};
use rauk_wire::batch::Isolation as WireIsolation;
use rauk_wire::definition::{CreateDatabase, CreateTable, Definition, DropTable, TableName};
use rauk_wire::{BatchOptions, CompareOp, Kind, LockWish, Wanted};
use std::ops::Bound;
use std::time::Duration;

fn accounts_client() -> (Database, Client) {
    let (db, _) = database_with(accounts("t"));
    let client = Client::new(&db, "t");
    (db, client)
}

#[test]
fn operations_without_a_transaction_have_outcomes_of_their_own() {
    let (db, c) = accounts_client();
    let t = db.table("d", "t").unwrap();
    let mut b = c.batch();
    b.insert(&[0, 1, 2], &[int(1), int(10), text("a")]);
    b.insert(&[0, 1], &[int(2), int(20)]);
    b.insert(&[0, 1, 2], &[int(1), int(11), text("z")]);
    b.insert(&[0, 1, 2], &[int(3), int(30), text("A")]);
    b.insert(&[0], &[int(4)]);
    b.read(2);
    b.read(9);
    b.update(2, &[1], &[int(21)]);
    b.update(9, &[1], &[int(21)]);
    b.update(2, &[2], &[text("a")]);
    b.delete(9);
    b.increment(1, &[1], &[int(5)]);
    b.write(&[0, 1], &[int(2), int(22)]);
    b.write(&[0, 1], &[int(5), int(50)]);
    let out = b.run();
    assert_eq!(out[0], Out::Done(None));
    assert_eq!(out[1], Out::Done(None));
    assert_eq!(out[2], Out::Duplicate(0));
    assert_eq!(out[3], Out::Duplicate(2), "equal under the collation");
    assert!(out[4].failed_with(1364), "value has no default: {:?}", out[4]);
    assert_eq!(out[5], Out::Row(account(2, 20, None)));
    assert_eq!(out[6], Out::Missing);
    assert_eq!(out[7], Out::Done(None));
    assert_eq!(out[8], Out::Missing);
    assert_eq!(out[9], Out::Duplicate(2));
    assert_eq!(out[10], Out::Missing);
    assert_eq!(out[11], Out::Done(None));
    assert_eq!(out[12], Out::Done(None));
    assert_eq!(out[13], Out::Done(None));
    let expected = vec![account(1, 15, Some("a")), account(2, 22, None), account(5, 50, None)];
    assert_eq!(block_on(contents(&db, &t)), expected);
    // By a unique key, with conditions, and with rows wanted.
    let mut b = c.batch();
    b.wanted(Wanted::Row);
    b.read_by(2, &code_key(&t, "A"));
    b.read_by(2, &code_key(&t, "b"));
    b.update_if(1, &[1], &[int(100)], compare(1, CompareOp::Equal, int(15)));
    b.update_if(1, &[1], &[int(101)], compare(1, CompareOp::Equal, int(15)));
    b.delete_if(5, compare(1, CompareOp::Less, int(50)));
    b.delete_if(5, compare(1, CompareOp::Equal, int(50)));
    b.wanted(Wanted::Columns(vec![1, 0]));
    b.increment(2, &[1], &[int(-2)]);
    b.read(1);
    let out = b.run();
    assert_eq!(out[0], Out::Row(account(1, 15, Some("a"))));
    assert_eq!(out[1], Out::Missing);
    assert_eq!(out[2], Out::Row(account(1, 100, Some("a"))));
    assert_eq!(out[3], Out::ConditionFalse);
    assert_eq!(out[4], Out::ConditionFalse);
    assert_eq!(out[5], Out::Row(account(5, 50, None)), "deletes answer the row as it was");
    assert_eq!(out[6], Out::Columns(vec![int(20), int(2)]));
    assert_eq!(out[7], Out::Columns(vec![int(100), int(1)]));
}

/// In a table without unique indexes all of these go through the bulk calls; operations on one key keep their order.
#[test]
fn operations_on_one_key_keep_their_order() {
    let (db, _) = database_with(pairs("t"));
    let c = Client::new(&db, "t");
    let mut b = c.batch();
    b.read(1);
    b.insert(&[0, 1], &[int(1), int(1)]);
    b.read(1);
    for _ in 0..50 {
        b.increment(1, &[1], &[int(1)]);
    }
    b.read(1);
    b.delete(1);
    b.read(1);
    b.write(&[0, 1], &[int(1), int(7)]);
    b.update(1, &[0], &[int(2)]);
    b.read(1);
    b.read(2);
    let out = b.run();
    assert_eq!((&out[0], &out[2]), (&Out::Missing, &Out::Row(vec![int(1), int(1)])));
    assert_eq!(out[53], Out::Row(vec![int(1), int(51)]));
    assert_eq!(out[55], Out::Missing);
    assert_eq!((&out[57], &out[58], &out[59]), (&Out::Done(None), &Out::Missing, &Out::Row(vec![int(2), int(7)])));
}

#[test]
fn a_locked_row_is_left_to_a_transaction_that_waits() {
    let (db, t) = database_with(pairs("t"));
    let c = Client::new(&db, "t");
    block_on(async { insert_all(&db, &t, &[vec![int(1), int(0)], vec![int(2), int(0)]]).await });
    let mut holder = block_on(begin_rr(&db, &t));
    block_on(get_for_update(&mut holder, &t, 1)).unwrap();
    let other = std::thread::spawn({
        let c = c.clone();
        move || {
            let mut b = c.batch();
            b.increment(1, &[1], &[int(1)]);
            b.increment(2, &[1], &[int(1)]);
            b.increment(1, &[1], &[int(1)]);
            b.wanted(Wanted::Row);
            b.increment(1, &[1], &[int(1)]);
            b.run()
        }
    });
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(c.read(2), Some(vec![int(2), int(1)]), "the others did not wait");
    holder.rollback();
    let out = other.join().unwrap();
    assert_eq!(out[3], Out::Row(vec![int(1), int(3)]));
}

#[test]
fn values_that_do_not_fit_are_refused_one_by_one() {
    let columns = vec![
        column(0, "id", DataType::BIGINT, false),
        column(1, "small", DataType::new(TypeKind::TinyInt), true),
        column(2, "name", DataType::varchar(3, Collation::DEFAULT), false),
        column(3, "amount", DataType::decimal(5, 2), true),
        column(4, "ratio", DataType::DOUBLE, true),
    ];
    let (db, _) = database_with(schema("t", columns, vec![index(0, "PRIMARY", IndexKind::Primary, &[0])]));
    let c = Client::new(&db, "t");
    let good = [int(1), int(127), text("abc"), Value::Decimal("1.25".parse().unwrap()), Value::Double(0.5)];
    let mut b = c.batch();
    b.insert(&[0, 1, 2, 3, 4], &good);
    b.insert(&[0, 1, 2], &[int(2), int(128), text("x")]);
    b.insert(&[0, 2], &[int(2), text("long")]);
    b.insert(&[0, 2], &[int(2), Value::Null]);
    b.insert(&[0, 2], &[int(2), int(5)]);
    b.insert(&[0, 2], &[text("2"), text("x")]);
    b.increment(1, &[1], &[int(1)]);
    b.increment(1, &[3], &[Value::Decimal("998.74".parse().unwrap())]);
    b.increment(1, &[3], &[Value::Decimal("998.75".parse().unwrap())]);
    b.increment(1, &[4], &[Value::Double(f64::MAX)]);
    b.increment(1, &[4], &[Value::Double(f64::INFINITY)]);
    b.increment(1, &[1], &[text("1")]);
    b.update(1, &[1], &[Value::Null]);
    b.increment(1, &[1], &[int(1)]);
    b.raw_read(&[1, 2, 3]);
    b.read(1);
    let out = b.run();
    assert_eq!(out[0], Out::Done(None));
    for (operation, code) in [(1, 1264), (2, 1406), (3, 1048), (4, 1366), (5, 1366), (6, 1264), (8, 1264)] {
        assert!(out[operation].failed_with(code), "{operation}: {:?}", out[operation]);
    }
    assert_eq!(out[7], Out::Done(None));
    assert_eq!(out[9], Out::Done(None), "0.5 + f64::MAX is a number");
    assert!(out[10].failed_with(1366) && out[11].failed_with(1366));
    assert_eq!((&out[12], &out[13]), (&Out::Done(None), &Out::Done(None)));
    assert!(out[14].failed_with(1210), "{:?}", out[14]);
    let Out::Row(row) = &out[15] else { panic!("{:?}", out[15]) };
    assert_eq!(row[1], Value::Null, "NULL stays NULL");
    assert_eq!(row[3], Value::Decimal("999.99".parse().unwrap()));
}

/// Only SQL evaluates the expressions of a table: nothing is written past them.
#[test]
fn a_table_with_expressions_is_not_written_to() {
    let mut made = accounts("t");
    made.checks = vec![CheckConstraint { name: "c".into(), expression: "(`balance` > 0)".into(), enforced: true }];
    let (db, _) = database_with(made);
    let c = Client::new(&db, "t");
    let write = |fill: &dyn Fn(&mut Ops)| {
        let mut b = c.batch();
        fill(&mut b);
        b.run_whole().map(drop).map_err(|failure| failure.code)
    };
    assert_eq!(write(&|b| b.insert(&[0, 1], &[int(1), int(-1)])), Err(1235));
    assert_eq!(write(&|b| b.write(&[0, 1], &[int(1), int(-1)])), Err(1235));
    assert_eq!(write(&|b| b.update(1, &[1], &[int(-1)])), Err(1235));
    assert_eq!(write(&|b| b.increment(1, &[1], &[int(-1)])), Err(1235));
    assert_eq!(write(&|b| b.read(1)), Ok(()));
    assert_eq!(write(&|b| b.delete(1)), Ok(()));
}

#[test]
fn defaults_numbers_and_times() {
    let now = 1_700_000_000_123_456;
    let timestamp = DataType { scale: 3, ..DataType::new(TypeKind::Timestamp) };
    let mut columns = vec![
        column(0, "id", DataType { unsigned: true, ..DataType::new(TypeKind::TinyInt) }, false),
        column(1, "colour", DataType::varchar(10, Collation::DEFAULT), false),
        column(2, "made", DataType::new(TypeKind::DateTime), false),
        column(3, "changed", timestamp, true),
    ];
    columns[1].default = ColumnDefault::Value(text("blue"));
    columns[2].default = ColumnDefault::Now;
    columns[3].on_update_now = true;
    let mut made = schema("t", columns, vec![index(0, "PRIMARY", IndexKind::Primary, &[0])]);
    made.auto_increment = Some(0);
    let (db, t) = database_with(made);
    let clock = std::sync::Arc::new(move || now);
    let c = Client::with(Service::with_clock(db.clone(), Limits::default(), clock), &db, "t");
    let mut b = c.batch();
    b.insert(&[], &[]);
    b.insert(&[0, 1], &[Value::Null, text("red")]);
    b.insert(&[0], &[int(0)]);
    b.insert(&[0], &[int(100)]);
    b.insert(&[], &[]);
    b.write(&[1], &[text("green")]);
    b.insert(&[0], &[int(100)]);
    let out = b.run();
    let generated: Vec<_> =
        out.iter().filter_map(|o| if let Out::Done(Some(n)) = o { Some(*n) } else { None }).collect();
    assert_eq!(out[3], Out::Done(None));
    assert_eq!(out[6], Out::Duplicate(0));
    assert_eq!(generated, [1, 2, 3, 101, 102], "an explicit number raises the counter");
    let Some(row) = c.read_key(&[ValueRef::UInt(1)]) else { panic!("no row") };
    assert_eq!(row[1], text("blue"));
    let Value::DateTime(time) = row[2] else { panic!("{:?}", row[2]) };
    assert_eq!(time.to_unix_micros_utc(), Some(1_700_000_000_000_000));
    assert_eq!(row[3], Value::Null);
    let mut b = c.batch();
    b.update_key(&[ValueRef::UInt(1)], &[1], &[text("blue")]);
    b.wanted(Wanted::Row);
    b.update_key(&[ValueRef::UInt(2)], &[1], &[text("pink")]);
    let out = b.run();
    let Out::Row(row) = &out[1] else { panic!("{:?}", out[1]) };
    assert_eq!(row[3], Value::Timestamp(1_700_000_000_123_000));
    assert_eq!(c.read_key(&[ValueRef::UInt(1)]).unwrap()[3], Value::Null, "nothing was changed");
    let mut b = c.batch();
    (0..200).for_each(|_| b.insert(&[], &[]));
    let out = b.run();
    assert!(out.last().unwrap().failed_with(1467), "{:?}", out.last());
    assert_eq!(block_on(contents(&db, &t)).len(), 5 + 1 + 153);
}

#[test]
fn a_table_with_a_hidden_key() {
    let (db, t) = database_with(hidden("t"));
    let c = Client::new(&db, "t");
    let mut b = c.batch();
    b.insert(&[0], &[int(7)]);
    b.insert(&[0], &[int(7)]);
    b.write(&[0], &[int(8)]);
    b.insert(&[1], &[Value::UInt(1)]);
    let failure = b.run_whole().unwrap_err();
    assert_eq!(failure.code, 1054, "the hidden key is nobody's");
    let mut b = c.batch();
    b.insert(&[0], &[int(7)]);
    b.insert(&[0], &[int(7)]);
    b.write(&[0], &[int(8)]);
    assert!(b.run().iter().all(|o| *o == Out::Done(None)));
    assert_eq!(block_on(contents(&db, &t)).len(), 3);
    assert_eq!(c.scan_all().len(), 3);
}

#[test]
fn a_transaction_from_batch_to_batch() {
    let (db, c) = accounts_client();
    let t = db.table("d", "t").unwrap();
    let mut b = c.batch();
    b.insert(&[0, 1, 2], &[int(1), int(10), text("a")]);
    b.read(1);
    let (out, answer) = b.within(5, BEGIN).unwrap();
    assert_eq!(out[1], Out::Row(account(1, 10, Some("a"))), "its own write");
    assert!(!answer.committed && !answer.ended);
    assert_eq!(c.read(1), None, "nobody else's");
    // Savepoints.
    let mut b = c.batch();
    b.savepoint();
    let (out, _) = b.within(5, GO_ON).unwrap();
    let Out::Savepoint(number) = out[0] else { panic!("{:?}", out[0]) };
    let mut b = c.batch();
    b.update(1, &[1], &[int(11)]);
    b.insert(&[0, 1], &[int(2), int(20)]);
    b.read(1);
    b.rollback_to(number);
    b.rollback_to(number + 1000);
    b.read(1);
    b.read(2);
    let (out, _) = b.within(5, GO_ON).unwrap();
    assert_eq!(out[2], Out::Row(account(1, 11, Some("a"))));
    assert_eq!(out[3], Out::Done(None));
    assert!(out[4].failed_with(1305));
    assert_eq!((&out[5], &out[6]), (&Out::Row(account(1, 10, Some("a"))), &Out::Missing));
    // A statement that stops at its first failure leaves nothing of itself.
    let mut b = c.batch();
    b.insert(&[0, 1], &[int(3), int(30)]);
    b.insert(&[0, 1, 2], &[int(4), int(40), text("A")]);
    b.insert(&[0, 1], &[int(5), int(50)]);
    let (out, answer) = b.within(5, BatchOptions { stop_at_failure: true, ..GO_ON }).unwrap();
    assert_eq!(out, [Out::NotExecuted, Out::Duplicate(2), Out::NotExecuted]);
    assert!(!answer.ended);
    // And one that does not, keeps the rest.
    let mut b = c.batch();
    b.insert(&[0, 1], &[int(3), int(30)]);
    b.insert(&[0, 1, 2], &[int(4), int(40), text("A")]);
    b.insert(&[0, 1], &[int(5), int(50)]);
    let (out, _) = b.within(5, GO_ON).unwrap();
    assert_eq!(out, [Out::Done(None), Out::Duplicate(2), Out::Done(None)]);
    let mut b = c.batch();
    b.delete(5);
    let (_, answer) = b.within(5, COMMIT).unwrap();
    assert!(answer.committed && answer.ended);
    assert_eq!(block_on(contents(&db, &t)), [account(1, 10, Some("a")), account(3, 30, None)]);
    // After its end.
    let mut b = c.batch();
    b.read(1);
    let failure = b.within(5, GO_ON).unwrap_err();
    assert_eq!((failure.code, failure.class, failure.ended), (1305, ErrorClass::Permanent, true));
    // An empty batch commits; one that fails with its commit leaves nothing.
    let mut b = c.batch();
    b.insert(&[0, 1], &[int(6), int(60)]);
    b.within(6, BEGIN).unwrap();
    assert!(c.batch().within(6, COMMIT).unwrap().1.committed);
    let mut b = c.batch();
    b.insert(&[0, 1], &[int(7), int(70)]);
    b.insert(&[0, 1], &[int(6), int(60)]);
    let options = BatchOptions { stop_at_failure: true, commit: true, ..BEGIN };
    let (out, answer) = b.within(7, options).unwrap();
    assert_eq!(out, [Out::NotExecuted, Out::Duplicate(0)]);
    assert!(!answer.committed && answer.ended);
    assert_eq!(c.read(7), None);
    let mut b = c.batch();
    b.insert(&[0, 1], &[int(7), int(70)]);
    b.within(8, BEGIN).unwrap();
    c.rollback(8);
    c.rollback(8);
    assert_eq!((c.read(6).is_some(), c.read(7)), (true, None));
    assert_eq!(c.session().open(), (0, 0));
    assert_eq!(db.counters().transactions, 0);
}

#[test]
fn an_atomic_batch_without_a_number() {
    let (_, c) = accounts_client();
    let mut b = c.batch();
    b.insert(&[0, 1], &[int(1), int(10)]);
    b.update(1, &[1], &[int(11)]);
    let (out, answer) = b.within(0, BatchOptions { commit: true, stop_at_failure: true, ..BEGIN }).unwrap();
    assert_eq!(out, [Out::Done(None), Out::Done(None)]);
    assert!(answer.committed);
    assert_eq!(c.read(1), Some(account(1, 11, None)));
    let mut b = c.batch();
    b.update(1, &[1], &[int(12)]);
    assert_eq!(b.within(0, BatchOptions { stop_at_failure: true, ..GO_ON }).unwrap_err().code, 1221);
}

#[test]
fn requests_of_one_transaction_go_in_the_order_of_arrival() {
    let (db, t) = database_with(pairs("t"));
    let c = Client::new(&db, "t");
    block_on(async { insert_all(&db, &t, &[vec![int(1), int(0)]]).await });
    // The first waits for a lock: the others queue behind it, one of another transaction does not.
    let mut holder = block_on(begin_rr(&db, &t));
    block_on(get_for_update(&mut holder, &t, 1)).unwrap();
    let mut tasks: Vec<Task> = Vec::new();
    for i in 0..5 {
        let mut b = c.batch();
        b.wanted(Wanted::Row);
        b.increment(1, &[1], &[int(10)]);
        let options = if i == 0 {
            BEGIN
        } else if i == 4 {
            COMMIT
        } else {
            GO_ON
        };
        tasks.push(b.start(9, options));
    }
    let mut b = c.batch();
    b.insert(&[0, 1], &[int(2), int(5)]);
    let mut other = b.start(10, BatchOptions { commit: true, ..BEGIN });
    assert!(other.wait().unwrap().1.committed, "another transaction goes on beside it");
    assert!(tasks.iter_mut().all(|t| t.poll().is_none()));
    holder.rollback();
    let rows: Vec<Out> = tasks.iter_mut().map(|t| t.wait().unwrap().0.remove(0)).collect();
    let expected: Vec<Out> = (1..=5).map(|i| Out::Row(vec![int(1), int(i * 10)])).collect();
    assert_eq!(rows, expected);
    assert_eq!(c.read(1), Some(vec![int(1), int(50)]));
}

#[test]
fn locks_that_are_not_waited_for() {
    let (db, t) = database_with(pairs("t"));
    let c = Client::new(&db, "t");
    block_on(async { insert_all(&db, &t, &[vec![int(1), int(0)], vec![int(2), int(0)]]).await });
    let mut b = c.batch();
    b.lock(LockWish::Exclusive);
    b.read(1);
    b.within(1, BEGIN).unwrap();
    let mut b = c.batch();
    b.lock(LockWish::ExclusiveNoWait);
    b.read(1);
    b.lock(LockWish::ExclusiveSkipLocked);
    b.read(1);
    b.update(1, &[1], &[int(9)]);
    b.read(2);
    let (out, _) = b.within(2, BEGIN).unwrap();
    assert!(out[0].failed_with(3572), "{:?}", out[0]);
    assert_eq!((&out[1], &out[2]), (&Out::Missing, &Out::Missing));
    assert_eq!(out[3], Out::Row(vec![int(2), int(0)]));
    // 1205 undoes what waited only.
    let mut b = c.batch();
    b.insert(&[0, 1], &[int(3), int(0)]);
    b.update(1, &[1], &[int(9)]);
    let (out, answer) = b.within(3, BatchOptions { lock_wait_ms: 30, ..BEGIN }).unwrap();
    assert_eq!(out[0], Out::Done(None));
    assert!(out[1].failed_with(1205) && !answer.ended);
    assert!(c.batch().within(3, COMMIT).unwrap().1.committed);
    assert!(c.read(3).is_some());
}

/// 1213 ends the transaction; single operations try again.
#[test]
fn deadlocks_end_their_transaction() {
    let (db, t) = database_with(pairs("t"));
    let c = Client::new(&db, "t");
    block_on(async { insert_all(&db, &t, &[vec![int(1), int(0)], vec![int(2), int(0)]]).await });
    let increment = |transaction, key, options| {
        let mut b = c.batch();
        b.increment(key, &[1], &[int(1)]);
        b.start(transaction, options)
    };
    increment(1, 1, BEGIN).wait().unwrap();
    increment(2, 2, BEGIN).wait().unwrap();
    let mut first = increment(1, 2, GO_ON);
    assert!(first.poll().is_none());
    let (out, answer) = increment(2, 1, GO_ON).wait().unwrap();
    assert!(out[0].failed_with(1213) && answer.ended, "{out:?}");
    assert_eq!(first.wait().unwrap().0, [Out::Done(None)]);
    assert!(c.batch().within(1, COMMIT).unwrap().1.committed);
    assert_eq!(c.batch().within(2, COMMIT).unwrap_err().code, 1305);
    assert_eq!(c.read(2), Some(vec![int(2), int(1)]));
}

#[test]
fn snapshots_and_isolation() {
    let (db, t) = database_with(pairs("t"));
    let c = Client::new(&db, "t");
    block_on(async { insert_all(&db, &t, &[vec![int(1), int(0)]]).await });
    let read = |transaction, options| {
        let mut b = c.batch();
        b.read(1);
        b.within(transaction, options).map(|(mut out, _)| out.remove(0))
    };
    let committed = BatchOptions { isolation: WireIsolation::ReadCommitted, ..BEGIN };
    let row = |v| Out::Row(vec![int(1), int(v)]);
    assert_eq!(read(1, BEGIN).unwrap(), row(0));
    assert_eq!(read(2, committed).unwrap(), row(0));
    let mut b = c.batch();
    b.increment(1, &[1], &[int(5)]);
    b.run();
    assert_eq!(read(1, GO_ON).unwrap(), row(0));
    assert_eq!(read(2, GO_ON).unwrap(), row(5));
    let mut b = c.batch();
    b.increment(1, &[1], &[int(1)]);
    let (out, answer) = b.within(1, GO_ON).unwrap();
    assert!(out[0].failed_with(1020) && answer.ended, "the row changed after the snapshot");
    let mut b = c.batch();
    b.increment(1, &[1], &[int(1)]);
    assert_eq!(b.within(2, COMMIT).unwrap().0, [Out::Done(None)]);
    let mut b = c.batch();
    b.increment(1, &[1], &[int(1)]);
    let (out, _) = b.within(3, BatchOptions { read_only: true, ..BEGIN }).unwrap();
    assert!(out[0].failed_with(1792), "{out:?}");
}

#[test]
fn scans_in_pages() {
    let (db, t) = database_with(accounts("t"));
    let c = Client::new(&db, "t");
    let rows: Vec<_> = (0..1000).map(|i| account(i, i % 10, None)).collect();
    block_on(insert_all(&db, &t, &rows));
    assert_eq!(c.scan_all().len(), 1000);
    // In order, with bounds, filter, projection and limit.
    let mut scan = c.scan_of(Some(0));
    scan.ordered = true;
    scan.low = Bound::Included(key_of(&t, 100));
    scan.high = Bound::Excluded(key_of(&t, 200));
    scan.filter = Some(compare(1, CompareOp::Equal, int(3)));
    scan.wanted = Wanted::Columns(vec![0]);
    scan.page_rows = 3;
    let found = c.scan(0, &scan).unwrap();
    assert_eq!(found, (0..10).map(|i| vec![int(103 + 10 * i)]).collect::<Vec<_>>());
    scan.reverse = true;
    scan.limit = 4;
    let found = c.scan(0, &scan).unwrap();
    assert_eq!(found, (0..4).map(|i| vec![int(193 - 10 * i)]).collect::<Vec<_>>());
    // Pages bounded by bytes have at least a row.
    let mut scan = c.scan_of(None);
    scan.page_bytes = 1;
    scan.limit = 20;
    let (page, mut number) = c.first_page(0, &scan).unwrap();
    assert_eq!(page.len(), 1);
    let mut count = 1;
    while number != 0 {
        let (page, next) = c.next_page(0, number).unwrap();
        assert_eq!(page.len(), 1);
        (count, number) = (count + 1, next);
    }
    assert_eq!(count, 20);
    // One state, whatever happens meanwhile.
    let mut scan = c.scan_of(None);
    scan.page_rows = 100;
    let (first, number) = c.first_page(0, &scan).unwrap();
    let mut b = c.batch();
    (0..1000).for_each(|i| b.delete(i));
    b.run();
    let mut all = first;
    let mut number = number;
    while number != 0 {
        let (page, next) = c.next_page(0, number).unwrap();
        all.extend(page);
        number = next;
    }
    assert_eq!(all.len(), 1000);
    assert_eq!((c.session().open(), db.counters().snapshots), ((0, 0), 0));
}

/// Scans of all partitions of one read-only transaction: beside each other, on one snapshot, gone with it.
#[test]
fn scans_in_parallel_see_one_state() {
    let (db, t) = database_with(pairs("t"));
    let c = Client::new(&db, "t");
    block_on(insert_all(&db, &t, &(0..1000).map(|i| vec![int(i), int(0)]).collect::<Vec<_>>()));
    let scan_of = |partition| {
        let mut scan = c.scan_of(None);
        (scan.partition, scan.begin, scan.page_rows) = (Some(partition), true, 10);
        scan
    };
    let mut open: Vec<u64> = Vec::new();
    let mut count = 0;
    for partition in 0..db.partition_count() {
        let (page, number) = c.first_page(77, &scan_of(partition)).unwrap();
        count += page.len();
        open.push(number);
        let mut b = c.batch();
        (0..100).for_each(|i| b.delete(i64::from(partition) * 100 + i));
        b.run();
    }
    assert_eq!(c.session().open(), (1, open.len()));
    for number in &mut open {
        while *number != 0 {
            let (page, next) = c.next_page(77, *number).unwrap();
            count += page.len();
            *number = next;
        }
    }
    assert_eq!(count, 1000);
    c.rollback(77);
    assert_eq!((c.session().open(), db.counters().snapshots), ((0, 0), 0));
    // An end in the middle.
    let (_, number) = c.first_page(78, &scan_of(0)).unwrap();
    c.rollback(78);
    assert_eq!(c.next_page(78, number).unwrap_err().code, 1421);
    assert_eq!(db.counters().snapshots, 0);
    assert_eq!(c.first_page(0, &scan_of(9999)).unwrap_err().code, 1210);
}

/// In a transaction that writes, scans see what it has written, and lock when asked.
#[test]
fn scans_of_a_writing_transaction() {
    let (db, t) = database_with(pairs("t"));
    let c = Client::new(&db, "t");
    block_on(insert_all(&db, &t, &(0..20).map(|i| vec![int(i), int(0)]).collect::<Vec<_>>()));
    let mut b = c.batch();
    b.insert(&[0, 1], &[int(100), int(0)]);
    b.delete(0);
    b.within(1, BEGIN).unwrap();
    let mut scan = c.scan_of(Some(0));
    (scan.ordered, scan.page_rows, scan.lock) = (true, 7, LockWish::Exclusive);
    let rows = c.scan(1, &scan).unwrap();
    assert_eq!(first_column(&rows), (1..20).chain([100]).collect::<Vec<_>>());
    let mut b = c.batch();
    b.lock(LockWish::ExclusiveNoWait);
    b.read(5);
    assert!(b.run()[0].failed_with(3572));
    scan.lock = LockWish::Exclusive;
    assert_eq!(c.first_page(0, &scan).unwrap_err().code, 1221, "locks need a transaction");
    let (_, number) = c.first_page(1, &scan).unwrap();
    assert_eq!(c.close_scan(1, number).kind, Kind::Done);
    assert_eq!(c.next_page(1, number).unwrap_err().code, 1421);
    assert!(c.batch().within(1, COMMIT).unwrap().1.committed);
    assert_eq!(c.session().open(), (0, 0));
}

#[test]
fn definitions() {
    let db = database();
    let c = Client::bare(&db);
    let mut made = accounts("users");
    made.columns[0].default = ColumnDefault::None;
    made.columns[1].default = ColumnDefault::None;
    let create = |schema: &rauk_types::TableSchema, if_not_exists| {
        c.define::<_, Definition>(Kind::CreateTable, &CreateTable { schema: schema.clone(), if_not_exists })
    };
    let definition = create(&made, false).unwrap();
    assert_eq!((definition.schema.name.as_str(), definition.partitions), ("users", db.partition_count()));
    assert_eq!(create(&made, false).unwrap_err().code, 1050);
    assert_eq!(create(&made, true).unwrap().schema, definition.schema);
    let mut other = made.clone();
    other.columns[1].nullable = true;
    assert_eq!(create(&other, true).unwrap_err().code, 1050);
    let open = |database: &str, table: &str| {
        let name = TableName { database: database.into(), table: table.into() };
        c.define::<_, Definition>(Kind::OpenTable, &name)
    };
    assert_eq!(open("d", "users").unwrap().schema, definition.schema);
    assert_eq!(open("d", "nothing").unwrap_err().code, 1146);
    assert_eq!(open("nowhere", "users").unwrap_err().code, 1049);
    // What SQL refuses is refused.
    let refusal = |change: &dyn Fn(&mut rauk_types::TableSchema)| {
        let mut schema = accounts("bad");
        change(&mut schema);
        create(&schema, false).map_or_else(|failure| failure.code, |_| 0)
    };
    assert_eq!(refusal(&|s| s.database = "nowhere".into()), 1049);
    assert_eq!(refusal(&|s| s.database = "mysql".into()), 1044);
    assert_eq!(refusal(&|s| s.database = "INFORMATION_SCHEMA".into()), 1044);
    assert_eq!(refusal(&|s| s.name = "x".repeat(65)), 1059);
    assert_eq!(refusal(&|s| s.name = String::new()), 1103);
    assert_eq!(refusal(&|s| s.columns.clear()), 1113);
    assert_eq!(refusal(&|s| s.columns[1].name = "ID".into()), 1060);
    assert_eq!(refusal(&|s| s.indexes[1].parts.clear()), 1072);
    assert_eq!(refusal(&|s| s.auto_increment = Some(9)), 1054);
    assert_eq!(refusal(&|s| s.columns[2].ty.length = 20_000), 1074);
    assert_eq!(refusal(&|s| s.columns[2].ty.length = 1000), 1071);
    assert_eq!(refusal(&|s| s.columns[1].ty = DataType::decimal(66, 2)), 1426);
    assert_eq!(refusal(&|s| s.columns[1].default = ColumnDefault::Value(text("x"))), 1067);
    assert_eq!(refusal(&|s| s.columns[2].ty = DataType::new(TypeKind::Text)), 1170);
    assert_eq!(refusal(&|s| s.columns[0].nullable = true), 1171);
    assert_eq!(refusal(&|s| s.indexes[1].parts[0].column = 99), 1072);
    assert_eq!(refusal(&|s| s.indexes[1].name = "by_code".into()), 1061);
    assert_eq!(refusal(&|s| s.indexes[1].kind = IndexKind::Primary), 1068);
    assert_eq!(refusal(&|s| s.auto_increment = Some(1)), 0);
    assert_eq!(refusal(&|s| s.auto_increment = Some(2)), 1063);
    // A schema out of nowhere becomes one of ours.
    let mut wild = accounts("wild");
    wild.id = rauk_types::TableId(1);
    wild.entry_of = Some((rauk_types::TableId(1), IndexId(1)));
    wild.indexes[2].id = IndexId(1);
    wild.distribution = vec![2];
    wild.indexes.swap(0, 2);
    let wild = create(&wild, false).unwrap().schema;
    assert_eq!(wild.indexes.iter().map(|i| i.name.as_str()).collect::<Vec<_>>(), ["PRIMARY", "by_code", "by_value"]);
    assert_eq!((wild.distribution.as_slice(), wild.entry_of), (&[0][..], None));
    let mut keyless = accounts("without_keys");
    keyless.indexes.clear();
    keyless.distribution.clear();
    assert!(create(&keyless, false).unwrap().schema.hidden_key);
    let keyless = create(&hidden("keyless"), false).unwrap().schema;
    assert!(keyless.hidden_key && keyless.columns.len() == 2 && keyless.primary().hash_only);
    // Databases, dropping.
    let database = |name: &str, if_not_exists| {
        let wanted = CreateDatabase { name: name.into(), collation: Collation::DEFAULT, if_not_exists };
        c.define_nothing(Kind::CreateDatabase, &wanted)
    };
    database("e", false).unwrap();
    database("e", true).unwrap();
    assert_eq!(database("e", false).unwrap_err().code, 1007);
    assert_eq!(database("rauk", true).unwrap_err().code, 1007);
    let drop = |table: &str, if_exists| {
        let name = TableName { database: "d".into(), table: table.into() };
        c.define_nothing(Kind::DropTable, &DropTable { name, if_exists })
    };
    drop("users", false).unwrap();
    assert_eq!(drop("users", false).unwrap_err().code, 1051);
    drop("users", true).unwrap();
}

#[test]
fn a_changed_definition_is_noticed_before_anything_is_done() {
    let (db, c) = accounts_client();
    let mut b = c.batch();
    b.insert(&[0, 1], &[int(1), int(10)]);
    b.within(1, BEGIN).unwrap();
    c.rollback(1);
    let mut changed = (**db.table("d", "t").unwrap().schema()).clone();
    changed.comment = "changed".into();
    block_on(db.alter_table(&db.table("d", "t").unwrap(), changed, WAIT)).unwrap();
    let mut b = c.batch();
    b.insert(&[0, 1], &[int(1), int(10)]);
    let failure = b.run_whole().unwrap_err();
    assert_eq!((failure.code, failure.class), (1412, ErrorClass::Temporary));
    let mut b = c.batch();
    b.read(1);
    assert_eq!(b.run_whole().unwrap_err().code, 1412);
    let mut b = c.batch();
    b.insert(&[0, 1], &[int(1), int(10)]);
    let failure = b.within(2, BEGIN).unwrap_err();
    assert!(failure.code == 1412 && failure.ended, "it has not begun");
    assert_eq!(c.scan(0, &c.scan_of(None)).unwrap_err().code, 1412);
    let again = Client::on(c.session().clone(), &db, "t");
    assert_eq!(again.scan_all().len(), 0);
    block_on(db.drop_table("d", "t", WAIT)).unwrap();
    assert_eq!(again.scan(0, &again.scan_of(None)).unwrap_err().code, 1412);
}

#[test]
fn deadlines_cancels_and_ends() {
    let (db, t) = database_with(pairs("t"));
    let c = Client::new(&db, "t");
    block_on(async { insert_all(&db, &t, &[vec![int(1), int(0)]]).await });
    let mut holder = block_on(begin_rr(&db, &t));
    block_on(get_for_update(&mut holder, &t, 1)).unwrap();
    let increment = || {
        let mut b = c.batch();
        b.increment(1, &[1], &[int(1)]);
        b
    };
    // A deadline, outside and inside of a transaction.
    let out = increment().with_deadline(Duration::from_millis(20)).run();
    assert!(out[0].failed_with(3024), "{out:?}");
    c.batch().within(1, BEGIN).unwrap();
    let failure = increment().with_deadline(Duration::from_millis(20)).within(1, GO_ON).unwrap_err();
    assert_eq!((failure.code, failure.class, failure.ended), (3024, ErrorClass::Temporary, false));
    // Cancelled, at work and in the queue.
    let mut first = increment().start(1, GO_ON);
    let mut second = increment().start(1, GO_ON);
    assert!(first.poll().is_none() && second.poll().is_none());
    c.session().cancel(second.number());
    assert_eq!(second.wait().unwrap_err().code, 1317);
    assert!(first.poll().is_none());
    c.session().cancel(first.number());
    assert_eq!(first.wait().unwrap_err().code, 1317);
    // The transaction goes on; a request that is dropped ends it.
    assert!(!c.batch().within(1, GO_ON).unwrap().1.ended);
    let mut dropped = increment().start(1, GO_ON);
    assert!(dropped.poll().is_none());
    drop(dropped);
    assert_eq!(c.batch().within(1, GO_ON).unwrap_err().code, 1305);
    assert_eq!(c.session().open(), (0, 0));
    // Closing rolls all back, what is at work included.
    let mut b = c.batch();
    b.insert(&[0, 1], &[int(2), int(0)]);
    b.within(2, BEGIN).unwrap();
    let mut working = increment().start(3, BEGIN);
    assert!(working.poll().is_none());
    c.first_page(0, &{
        let mut s = c.scan_of(None);
        s.page_rows = 1;
        s
    })
    .unwrap();
    c.session().close();
    assert!(working.wait().is_err());
    assert!(increment().within(0, GO_ON).is_err());
    holder.rollback();
    assert_eq!((db.counters().transactions, db.counters().snapshots), (0, 0));
    assert_eq!(block_on(contents(&db, &t)), [vec![int(1), int(0)]]);
}

/// A DDL that waits keeps others out for a while, but only as long as they want to wait.
#[test]
fn deadlines_hold_behind_a_waiting_ddl() {
    let (db, t) = database_with(pairs("t"));
    let c = Client::new(&db, "t");
    let user = block_on(begin_rr(&db, &t));
    let drop = std::thread::spawn({
        let db = db.clone();
        move || block_on(db.drop_table("d", "t", WAIT))
    });
    let reads = || {
        let mut b = c.batch();
        b.read(1);
        b.increment(1, &[1], &[int(1)]);
        b.wanted(Wanted::Nothing);
        b
    };
    // Until the DDL has one of its windows, in which others wait; between them they pass.
    let begin = std::time::Instant::now();
    let mut tries = std::iter::repeat(()).take_while(|()| begin.elapsed() < Duration::from_secs(60));
    let failed = tries.any(|()| {
        let out = reads().with_deadline(Duration::from_millis(5)).run();
        // A window may begin between the two.
        assert!(out.iter().all(|o| *o == Out::Missing || o.failed_with(3024)), "{out:?}");
        out.iter().any(|o| o.failed_with(3024))
    });
    assert!(failed, "the DDL keeps nobody out");
    let begin = std::time::Instant::now();
    let mut tries = std::iter::repeat(()).take_while(|()| begin.elapsed() < Duration::from_secs(60));
    let mut task = tries
        .find_map(|()| {
            let mut task = reads().start(0, GO_ON);
            task.poll().is_none().then_some(task)
        })
        .expect("the DDL keeps nobody out");
    user.rollback();
    drop.join().unwrap().unwrap();
    let out = task.wait().unwrap().0;
    // It may have passed after a window.
    assert!(out.iter().all(|o| *o == Out::Missing || o.failed_with(1412)), "{out:?}");
    assert_eq!(reads().run_whole().unwrap_err().code, 1412, "the table is gone");
}

/// Rows that do not fit into one answer fail by themselves; the others are there.
#[test]
fn an_answer_is_never_longer_than_a_frame() {
    let blob = DataType::new(TypeKind::MediumBlob);
    let columns = vec![column(0, "id", DataType::BIGINT, false), column(1, "data", blob, true)];
    let (db, _) = database_with(schema("t", columns, vec![index(0, "PRIMARY", IndexKind::Primary, &[0])]));
    let c = Client::new(&db, "t");
    let mut b = c.batch();
    b.insert(&[0, 1], &[int(1), Value::Bytes(vec![7; 400_000])]);
    b.insert(&[0, 1], &[int(2), Value::Bytes(vec![7; 400_000])]);
    assert_eq!(b.run(), [Out::Done(None), Out::Done(None)]);
    let mut b = c.batch();
    (0..200).for_each(|_| b.read(1));
    let reply = c.try_send(b.payload(GO_ON)).unwrap();
    assert!(reply.frame.len() <= rauk_wire::MAX_PAYLOAD);
    let (out, _) = c.outcomes(&reply).unwrap();
    let whole = out.iter().filter(|o| matches!(o, Out::Row(row) if row[1] == Value::Bytes(vec![7; 400_000]))).count();
    let failed = out.iter().filter(|o| o.failed_with(1153)).count();
    assert!(whole > 100 && failed > 10 && whole + failed == 200, "{whole} and {failed}");
    // Scans just have more pages.
    let mut scan = c.scan_of(None);
    scan.page_bytes = u32::MAX;
    assert_eq!(c.scan(0, &scan).unwrap().len(), 2);
}

/// Many sessions at once: money goes from account to account, alone and in transactions, and none is made or lost.
#[test]
fn sessions_beside_each_other() {
    use rand::{Rng, SeedableRng};
    let (db, t) = database_with(pairs("t"));
    block_on(insert_all(&db, &t, &(0..10).map(|i| vec![int(i), int(1000)]).collect::<Vec<_>>()));
    let c = Client::new(&db, "t");
    let added: i64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4u64)
            .map(|thread| {
                let c = Client::on(c.service().session(), &db, "t");
                scope.spawn(move || {
                    let mut random = rand::rngs::StdRng::seed_from_u64(thread);
                    let mut added = 0;
                    for round in 0..150 {
                        let (from, to) = (random.random_range(0..10), random.random_range(0..10));
                        let mut b = c.batch();
                        b.increment(from, &[1], &[int(-5)]);
                        b.increment(to, &[1], &[int(5)]);
                        if round % 3 == 0 {
                            // Each for itself: both take place.
                            b.increment(to, &[1], &[int(1)]);
                            assert!(b.run().iter().all(|o| *o == Out::Done(None)));
                            added += 1;
                            continue;
                        }
                        // One may be a deadlock's victim, and is wholly undone then.
                        let options = BatchOptions { commit: round % 3 == 1, stop_at_failure: true, ..BEGIN };
                        let number = 1 + round as u64;
                        let (_, answer) = b.within(number, options).unwrap();
                        if !answer.ended {
                            assert!(c.batch().within(number, COMMIT).unwrap().1.committed);
                        }
                    }
                    added
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).sum()
    });
    let rows = block_on(contents(&db, &t));
    let sum: i128 = rows.iter().map(|r| r[1].as_ref().as_integer().unwrap()).sum();
    assert_eq!(sum, i128::from(10_000 + added));
    assert_eq!((db.counters().transactions, c.service().open().0), (0, 0));
}

#[test]
fn what_is_idle_is_rolled_back_and_limits_hold() {
    let (db, _) = database_with(pairs("t"));
    let limits = Limits { transactions: 3, scans: 2, idle: Duration::from_millis(40), ..Limits::default() };
    let c = Client::with(Service::new(db.clone(), limits), &db, "t");
    let mut b = c.batch();
    (0..50).for_each(|i| b.insert(&[0, 1], &[int(i), int(0)]));
    b.run();
    let mut scan = c.scan_of(None);
    scan.page_rows = 1;
    for _ in 0..2 {
        c.first_page(0, &scan).unwrap();
    }
    assert_eq!(c.first_page(0, &scan).unwrap_err().code, 1226);
    for number in 1..=3 {
        let mut b = c.batch();
        b.delete(number as i64);
        b.within(number, BEGIN).unwrap();
    }
    assert_eq!(c.batch().within(4, BEGIN).unwrap_err().code, 1226);
    assert_eq!(c.batch().within(3, BEGIN).unwrap_err().code, 1568, "open already");
    let start = std::time::Instant::now();
    while c.session().open() != (0, 0) {
        assert!(start.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!((db.counters().transactions, db.counters().snapshots), (0, 0));
    assert_eq!(c.batch().within(1, GO_ON).unwrap_err().code, 1305);
    assert_eq!(c.scan_all().len(), 50);
}

/// Bytes that no client sends: a typed error, nothing done, the link is to be closed. Never a panic.
#[test]
fn garbage() {
    use rand::{Rng, SeedableRng};
    let (db, t) = database_with(accounts("t"));
    let c = Client::new(&db, "t");
    let mut random = rand::rngs::StdRng::seed_from_u64(7);
    let mut b = c.batch();
    b.insert(&[0, 1, 2], &[int(1), int(10), text("a")]);
    b.read(1);
    b.update_if(1, &[1], &[int(3)], compare(1, CompareOp::Less, int(100)));
    b.read_by(2, &code_key(&t, "A"));
    b.delete(1);
    let good = b.payload(GO_ON);
    let mut scan = Vec::new();
    let mut wanted = c.scan_of(Some(0));
    wanted.filter = Some(compare(1, CompareOp::Less, int(100)));
    wanted.encode(&mut scan);
    let kinds = [
        Kind::Batch,
        Kind::Scan,
        Kind::ScanNext,
        Kind::ScanClose,
        Kind::OpenTable,
        Kind::CreateTable,
        Kind::DropTable,
        Kind::CreateDatabase,
        Kind::Rollback,
        Kind::AskPlacement,
        Kind::Hello,
        Kind::Done,
    ];
    for round in 0..4000 {
        let (kind, mut payload) = match round % 4 {
            0 => (
                kinds[random.random_range(0..kinds.len())],
                (0..random.random_range(0..60)).map(|_| random.random()).collect(),
            ),
            1 => (Kind::Scan, scan.clone()),
            _ => (Kind::Batch, good.clone()),
        };
        if round % 4 != 0 {
            for _ in 0..random.random_range(1..4) {
                let at = random.random_range(0..payload.len());
                payload[at] = random.random();
            }
            if random.random_range(0..4) == 0 {
                payload.truncate(random.random_range(0..payload.len()));
            }
        }
        let reply = c.send(kind, 0, payload, None);
        assert!(!reply.fatal || reply.kind == Kind::Failed);
        if reply.kind == Kind::ScanPage {
            let (_, number) = c.page_of(&reply, &wanted.wanted).unwrap_or_default();
            c.close_scan(0, number);
        }
    }
    let reply = c.send(Kind::Batch, 0, vec![1, 2, 3], None);
    assert!(reply.fatal && failure_of(&reply).code == 1835);
    assert_eq!(c.session().open(), (0, 0));
    // Shapes that name what is not there.
    let mut b = c.batch();
    b.update(1, &[9], &[int(1)]);
    assert_eq!(b.run_whole().unwrap_err().code, 1054);
    let mut b = c.batch();
    b.read_by(7, &[0; 8]);
    assert_eq!(b.run_whole().unwrap_err().code, 1176);
    let mut b = c.batch();
    b.wanted(Wanted::Columns(vec![3]));
    b.read(1);
    assert_eq!(b.run_whole().unwrap_err().code, 1054);
    let mut b = c.batch();
    b.delete_if(1, compare(0, CompareOp::Equal, text("x")));
    assert!(b.run()[0].failed_with(1210));
}

/// Reads that need not wait are answered at once, and the same as the long way answers.
#[test]
fn plain_reads_are_answered_at_once() {
    let (db, t) = database_with(accounts("t"));
    let c = Client::new(&db, "t");
    block_on(insert_all(&db, &t, &(0..100).map(|i| account(i, i, None)).collect::<Vec<_>>()));
    let mut b = c.batch();
    (0..120).for_each(|i| b.read(i));
    b.wanted(Wanted::Columns(vec![1]));
    (0..120).for_each(|i| b.read(i));
    let payload = b.payload(GO_ON);
    let fast = c.try_send(payload.clone()).expect("nobody is at the partitions");
    let slow = c.send_slowly(payload);
    let sorted = |reply| {
        let mut out = c.outcomes(&reply).unwrap().0;
        assert_eq!(out.len(), 240);
        out.truncate(240);
        out
    };
    assert!(fast.timestamp > 0);
    assert_eq!(sorted(fast), sorted(slow));
    assert_eq!(c.service().counts().batches_at_once.load(std::sync::atomic::Ordering::Relaxed), 1);
    let mut b = c.batch();
    b.delete(1);
    assert!(c.try_send(b.payload(GO_ON)).is_none(), "not a read");
}

#[test]
fn a_random_run_is_as_the_model_says() {
    for seed in 0..12 {
        model::run(seed, accounts("t"));
        model::run(seed + 100, pairs("t"));
    }
}
