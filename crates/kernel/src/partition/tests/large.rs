//! Values that lie beside their rows: what versions share, what writes carry, and rows whose kept values have not come.

use super::support::*;
use crate::partition::{Partition, ReadAt, Stop, Write};
use crate::status::{TxnRef, TxnState};
use rauk_types::row::sparse::{SparseValue, read_sparse};
use rauk_types::{PartitionId, Timestamp, TxnId};

const NEWEST: ReadAt = ReadAt::Newest;
/// Both large values of a row, and more than what is beside them.
const BOTH: u64 = 9000 + 8190;
const SMALL: u64 = 2000;

fn written(w: &World, txn: &Txn) -> Vec<Logged> {
    let mut writes = Vec::new();
    w.p.collect_writes(txn.r.id, &mut |_, write| writes.push(Logged::of(write)));
    writes
}

/// How many values a sparse write brings, and keeps.
fn values_of(write: &Logged) -> (usize, usize) {
    let Logged::Sparse(bytes) = write else { panic!("{write:?} is not sparse") };
    let row = read_sparse(bytes).unwrap();
    let new = row.values.iter().filter(|value| matches!(value, SparseValue::New(_))).count();
    (new, row.values.len() - new)
}

/// A committed row with two large values; the next one of each follows from `k` and the first byte of `v`.
fn filled() -> World {
    let mut w = World::new(wide_schema(false));
    let t = w.begin();
    w.insert(&t, &r(1, 3, "\u{3}first")).unwrap();
    let writes = written(&w, &t);
    assert!(matches!(&writes[..], [Logged::Put(row)] if row.len() as u64 > BOTH), "an insert is whole");
    w.commit(t);
    // Pages that stay.
    let t = w.begin();
    w.update(&t, &r(1, 3, "\u{3}first")).unwrap();
    w.commit(t);
    w.collect_all();
    w
}

#[test]
fn versions_share_what_they_have_in_common() {
    let mut w = filled();
    let before = w.budget.used();
    let old = w.snapshot();
    for n in 0..20 {
        let t = w.begin();
        w.update(&t, &r(1, 3, &format!("\u{3}{n}"))).unwrap();
        assert_eq!(values_of(&written(&w, &t)[0]), (0, 2));
        w.commit(t);
        w.p.validate();
    }
    assert!(w.budget.used() - before < 20 * SMALL, "{} bytes for versions", w.budget.used() - before);
    assert!(w.p.table_usage(TABLE).unwrap().history_bytes < 20 * SMALL);
    // One value changes.
    let t = w.begin();
    w.update(&t, &r(1, 4, "\u{3}one")).unwrap();
    assert_eq!(values_of(&written(&w, &t)[0]), (1, 1));
    let with_one = w.budget.used();
    assert!((9000..9000 + 21 * SMALL).contains(&(with_one - before)));
    w.commit(t);
    assert!(w.p.table_usage(TABLE).unwrap().history_bytes > 9000, "what history alone has counts");
    assert_eq!(w.read(None, 1, ReadAt::Snapshot(Timestamp(old))).unwrap().0, Some(r(1, 3, "\u{3}first")));
    assert_eq!(w.read(None, 1, NEWEST).unwrap().0, Some(r(1, 4, "\u{3}one")));
    w.end_snapshot(old);
    w.collect_all();
    w.p.validate();
    assert_eq!(w.p.table_usage(TABLE).unwrap().history_bytes, 0);
    assert!(w.budget.used() < before + SMALL, "{} of {before} bytes", w.budget.used());
    let usage = w.p.table_usage(TABLE).unwrap();
    assert!(usage.row_bytes > BOTH, "{} bytes of rows", usage.row_bytes);
    let t = w.begin();
    w.delete(&t, 1).unwrap();
    w.commit(t);
    w.collect_all();
    assert!(w.budget.used() < before - BOTH, "{} of {before} bytes", w.budget.used());
}

#[test]
fn what_is_undone_is_freed() {
    let mut w = filled();
    let before = w.budget.used();
    let mut t = w.begin();
    w.update(&t, &r(1, 4, "\u{3}x")).unwrap();
    t.statement = 2;
    // Once more in the same statement: the first one's value goes.
    w.update(&t, &r(1, 5, "\u{3}x")).unwrap();
    w.update(&t, &r(1, 6, "\u{7}x")).unwrap();
    w.p.validate();
    assert_eq!(w.read(Some(&t), 1, NEWEST).unwrap().0, Some(r(1, 4, "\u{3}x")));
    assert!(matches!(written(&w, &t)[0], Logged::Put(_)), "both values are new");
    w.p.rollback_to(t.r.id, 2);
    assert!((9000..9000 + SMALL).contains(&(w.budget.used() - before)), "{} bytes", w.budget.used() - before);
    assert_eq!(values_of(&written(&w, &t)[0]), (1, 1));
    // Back to what is committed: that is another value with the same bytes, and is written.
    t.statement = 3;
    w.update(&t, &r(1, 3, "\u{3}y")).unwrap();
    assert_eq!(values_of(&written(&w, &t)[0]), (1, 1));
    w.abort(t);
    w.p.validate();
    assert!(w.budget.used() < before + SMALL);
    assert_eq!(w.read(None, 1, NEWEST).unwrap().0, Some(r(1, 3, "\u{3}first")));
    // A row that comes in the place of a deleted one keeps nothing of it.
    let t = w.begin();
    w.delete(&t, 1).unwrap();
    w.insert(&t, &r(1, 3, "\u{3}again")).unwrap();
    assert!(matches!(written(&w, &t)[0], Logged::Put(_)));
    w.abort(t);
}

#[test]
fn a_full_budget_refuses_a_large_value_and_nothing_has_changed() {
    let mut w = World::limited(wide_schema(false), 200_000);
    let mut id = 0;
    let error = loop {
        id += 1;
        let t = w.begin();
        match w.insert(&t, &r(id, 3, "\u{3}")) {
            Ok(()) => w.commit(t),
            Err(error) => break w.abort_with(t, error),
        };
    };
    assert!(matches!(error, Stop::MemoryFull { .. }), "{error:?}");
    w.p.validate();
    let used = w.budget.used();
    let t = w.begin();
    assert!(matches!(w.update(&t, &r(1, 4, "\u{3}")), Err(Stop::MemoryFull { .. })));
    w.p.validate();
    assert!(w.budget.used() < used + SMALL);
    // Deletions are not refused, and make room.
    for id in 2..6 {
        assert!(w.delete(&t, id).unwrap());
    }
    w.commit(t);
    w.collect_all();
    let t = w.begin();
    w.update(&t, &r(1, 4, "\u{3}")).unwrap();
    w.commit(t);
    w.p.validate();
}

fn prepared(id: u64) -> TxnRef {
    let txn = TxnRef::new(TxnId(id));
    txn.status.set(TxnState::Prepared(Timestamp(1)));
    txn
}

#[test]
fn sparse_rows_without_what_they_keep_are_refused() {
    let mut w = filled();
    let t = w.begin();
    w.update(&t, &r(1, 4, "\u{3}one")).unwrap();
    let write = written(&w, &t).remove(0);
    let Logged::Sparse(row) = &write else { panic!() };
    let row = row.clone();
    w.abort(t);
    let other = |w: &mut World, row: &Row| {
        w.p.clear();
        let bytes = w.encode(row);
        w.p.restore_put(TABLE, 0, &bytes, Timestamp(5)).unwrap();
        w.p.finish_restore().unwrap();
    };
    let adopt = |w: &mut World, row: &[u8]| {
        let txn = prepared(100);
        let adopted = w.p.adopt(&txn, 0, TABLE, Write::Sparse { layout: 0, row });
        w.p.abort(txn.id);
        w.p.validate();
        adopted
    };
    assert_eq!(adopt(&mut w, &row), Ok(()));
    // Other values, no row at all, not a sparse row, cut off, of a layout that nobody knows.
    other(&mut w, &r(1, 9, "\u{2}other"));
    assert_eq!(adopt(&mut w, &row), Err(Stop::NoRow));
    assert_eq!(w.p.restore_sparse(TABLE, 0, &row, Timestamp(6)), Err(Stop::NoRow));
    other(&mut w, &r(2, 3, "\u{3}other"));
    assert_eq!(adopt(&mut w, &row), Err(Stop::NoRow));
    assert_eq!(adopt(&mut w, b"nothing"), Err(Stop::NoRow));
    assert_eq!(adopt(&mut w, &row[..row.len() - 1]), Err(Stop::NoRow));
    assert_eq!(w.p.restore_sparse(TABLE, 9, &row, Timestamp(6)), Err(Stop::StaleSchema));
    let head = read_sparse(&row).unwrap().head.len();
    let at = 8 + read_sparse(&row).unwrap().key.len();
    other(&mut w, &r(1, 3, "\u{3}other"));
    for byte in at..at + head {
        let mut wrong = row.clone();
        wrong[byte] ^= 0x84;
        // Refused, or a row.
        let _ = adopt(&mut w, &wrong);
        w.p.validate();
    }
}

#[test]
fn a_version_waits_for_what_it_keeps() {
    let mut w = filled();
    let mut writes = Vec::new();
    for row in [r(1, 4, "\u{3}two"), r(1, 4, "\u{7}three"), r(1, 5, "\u{7}four")] {
        let t = w.begin();
        w.update(&t, &row).unwrap();
        writes.append(&mut written(&w, &t));
        w.commit(t);
    }
    assert!(writes.iter().all(|write| values_of(write).1 > 0), "each keeps something");
    let first = w.encode(&r(1, 3, "\u{3}first"));
    let key = w.key(1);
    let mut second = World::new(w.schema.clone());
    // They come before the row that the first of them is a version of, which has what is missing.
    let restore = |p: &mut Partition, n: usize| writes[n].restore(p, 10 + n as u64);
    restore(&mut second.p, 0);
    assert_eq!(second.rows(), 0);
    assert_eq!(second.p.finish_restore(), Err(Stop::NoRow), "a value is missing");
    restore(&mut second.p, 1);
    second.p.restore_copied(TABLE, 0, &first, Timestamp(9)).unwrap();
    restore(&mut second.p, 2);
    second.p.finish_restore().unwrap();
    second.p.validate();
    assert_eq!(second.all(None, NEWEST), [r(1, 5, "\u{7}four")]);
    // A deletion, a later row, or a newer slice end the waiting.
    for end in 0..3 {
        let mut w = World::new(w.schema.clone());
        restore(&mut w.p, 0);
        match end {
            0 => w.p.restore_delete(TABLE, &key, Timestamp(12)),
            1 => w.p.restore_put(TABLE, 0, &first, Timestamp(10)).unwrap(),
            _ => w.p.restore_copied(TABLE, 0, &first, Timestamp(11)).unwrap(),
        }
        w.p.finish_restore().unwrap();
        w.p.validate();
        assert_eq!(w.rows(), u64::from(end != 0));
        let budget = w.budget.clone();
        w.p = Partition::new(PartitionId(1), budget.clone());
        assert_eq!(budget.used(), 0, "bytes stay counted");
    }
    // What is there is as old as what comes, and later: its own record comes.
    let mut third = World::new(w.schema.clone());
    let last = w.encode(&r(1, 9, "\u{2}last"));
    third.p.restore_put(TABLE, 0, &last, Timestamp(10)).unwrap();
    restore(&mut third.p, 0);
    third.p.restore_put(TABLE, 0, &last, Timestamp(10)).unwrap();
    third.p.finish_restore().unwrap();
    assert_eq!(third.all(None, NEWEST), [r(1, 9, "\u{2}last")]);
}
