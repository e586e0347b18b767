//! Records and tables as bytes: what was written is read, and nothing else is.

use super::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

fn records() -> Vec<Record> {
    let large = Record::Commit { txn: txn(1 << 39), time: Timestamp(u64::MAX), writes: vec![7; 100_000].into() };
    let empty = Record::Commit { txn: txn(9), time: Timestamp(3), writes: Bytes::new() };
    let outcomes = [decide(1, committed(1 << 50)), decide(3, Outcome::Aborted)];
    let mut records = vec![Record::Opening, commit(2, 3), prepare(1, 5), fence(4), forget(&[1, 3]), forget(&[])];
    records.extend(outcomes);
    records.extend([large, empty]);
    let counts = vec![Counted { series: 3, chunks: 2, digest: 77 }];
    records.push(Record::Chunk { txn: txn(9), series: 3, number: 2, writes: vec![8; 1000].into() });
    records.extend([
        Record::Back { txn: txn(9), series: 3, left: 1 },
        Record::Count { txn: txn(9), counts },
        Record::Compare,
    ]);
    records
}

#[test]
fn records_are_read_as_written_and_share_memory() {
    for record in records() {
        let bytes = record.encode();
        assert_eq!(Record::decode(&bytes), Some(record));
        if let Some(Record::Commit { writes, .. } | Record::Prepare { writes, .. } | Record::Chunk { writes, .. }) =
            Record::decode(&bytes)
        {
            assert!(writes.is_empty() || bytes.as_ptr_range().contains(&writes.as_ptr()), "copied");
        }
    }
}

#[test]
fn the_kind_of_a_record_is_told_by_its_first_bytes() {
    let cut = Record::Cut { time: Timestamp(3), view: rauk_types::View(1) };
    for record in records().into_iter().chain([cut]) {
        let bytes = record.encode();
        assert_eq!(Record::is_cut(&bytes), matches!(record, Record::Cut { .. }), "{record:?}");
        let nobody_waits = matches!(
            record,
            Record::Decide { .. }
                | Record::Forget { .. }
                | Record::Chunk { .. }
                | Record::Back { .. }
                | Record::Compare
        );
        assert_eq!(Record::is_waited_for(&bytes), !nobody_waits, "{record:?}");
    }
    assert!(!Record::is_cut(&[]) && Record::is_waited_for(&[]));
}

#[test]
fn bytes_that_are_no_record_are_refused() {
    for record in records() {
        let bytes = record.encode();
        for end in (0..bytes.len()).take(200) {
            assert_eq!(Record::decode(&bytes.slice(..end)), None, "{end} bytes of {record:?}");
        }
        let mut longer = bytes.to_vec();
        longer.push(0);
        assert_eq!(Record::decode(&longer.into()), None);
        let mut newer = bytes.to_vec();
        newer[0] += 1;
        assert_eq!(Record::decode(&newer.into()), None);
    }
    let unsorted = Record::Prepare { txn: txn(1), participants: vec![B, A], least: Timestamp(1), writes: Bytes::new() };
    assert_eq!(Record::decode(&unsorted.encode()), None);
}

/// A table with one of everything, `stable` up to some of it.
fn everything(stable: u64) -> TxnTable {
    let mut shown = Shown::default();
    let records = [
        prepare(1, 5),
        prepare(2, 5),
        prepare(3, 5),
        fence(4),
        decide(2, committed(6)),
        decide(3, Outcome::Aborted),
        decide(5, Outcome::Aborted),
        commit(6, 7),
        forget(&[2, 3]),
        decide(4, Outcome::Aborted),
        commit(7, 9),
        prepare(8, 9),
        decide(8, Outcome::Aborted),
    ];
    for record in records {
        shown.entry(record);
    }
    // A fact whose entry was cut.
    shown.cut(12);
    shown.stable(stable);
    shown.table
}

#[test]
fn tables_are_read_as_written_and_go_on_alike() {
    for stable in 0..=12 {
        let mut table = everything(stable);
        let bytes = table.encode();
        let mut read = TxnTable::decode(&bytes, millis(77)).expect("a table");
        assert_eq!((read.encode(), read.bytes(), read.pending()), (bytes, table.bytes(), table.pending()));
        assert!(read.undecided(millis(76)).is_empty(), "clocks begin anew");
        let mut effects = [Vec::new(), Vec::new()];
        for (table, effects) in [&mut table, &mut read].into_iter().zip(&mut effects) {
            table.on_cut(Position(stable.max(10)), effects);
            table.on_stable(Position(12), effects);
            table.on_entry(millis(80), Position(14), &prepare(20, 30), effects);
        }
        assert_eq!(effects[0], effects[1]);
        assert!(table == read && table != TxnTable::default());
    }
}

#[test]
fn bytes_that_are_no_table_are_refused_and_harmless() {
    let mut random = SmallRng::seed_from_u64(4);
    for stable in 0..=12 {
        let bytes = everything(stable).encode();
        for end in 0..bytes.len() {
            assert!(TxnTable::decode(&bytes[..end], millis(0)).is_none());
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(TxnTable::decode(&longer, millis(0)).is_none());
        for _ in 0..3_000 {
            let mut damaged = bytes.to_vec();
            for _ in 0..random.random_range(1..4) {
                let at = random.random_range(0..damaged.len());
                damaged[at] = random.random();
            }
            // What is taken for a table is one: everything can be done with it.
            if let Some(mut table) = TxnTable::decode(&damaged, millis(0)) {
                let last = table.last;
                table.pending();
                table.undecided(millis(1));
                assert!(TxnTable::decode(&table.encode(), millis(0)).is_some_and(|again| again == table));
                table.on_stable(last, &mut Vec::new());
                table.on_cut(last, &mut Vec::new());
            }
        }
    }
}
