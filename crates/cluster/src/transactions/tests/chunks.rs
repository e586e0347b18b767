//! Chunks in the table: what names them, what voids them, and what a cut makes of that.

use super::*;

fn chunk(number: u64, in_series: u32, writes: &'static str) -> Record {
    Record::Chunk { txn: txn(number), series: 4, number: in_series, writes: Bytes::from_static(writes.as_bytes()) }
}

fn shows(number: u64, at: u32, writes: &'static str) -> Effect {
    Effect::Chunk { txn: txn(number), series: 4, number: at, writes: Bytes::from_static(writes.as_bytes()) }
}

fn count(shown: &Shown, number: u64) -> Record {
    shown.table.count(txn(number)).expect("it has chunks")
}

fn whole(number: u64, time: u64, chunks: &[&'static str]) -> Effect {
    let chunks = chunks.iter().map(|writes| Bytes::from_static(writes.as_bytes()));
    Effect::Commit { txn: txn(number), time: Timestamp(time), writes: chunks.chain([writes(number)]).collect() }
}

#[test]
fn a_commit_has_all_chunks_that_stand() {
    let mut shown = Shown::default();
    assert_eq!(shown.entry(chunk(1, 0, "a")), [shows(1, 0, "a")]);
    assert_eq!(shown.entry(chunk(1, 1, "b")), [shows(1, 1, "b")]);
    let back = Record::Back { txn: txn(1), series: 4, left: 1 };
    assert_eq!(shown.entry(back), [Effect::Back { txn: txn(1), series: 4, number: 1 }]);
    assert_eq!(shown.entry(chunk(1, 1, "c")), [shows(1, 1, "c")]);
    assert_eq!(shown.entry(count(&shown, 1)), []);
    let adopt = Effect::Adopt { txn: txn(1), least: Timestamp(5), number: 2, writes: writes(1) };
    assert_eq!(shown.entry(commit(1, 5)), std::slice::from_ref(&adopt));
    assert_eq!(shown.table.pending(), [shows(1, 0, "a"), shows(1, 1, "c"), adopt]);
    assert_eq!(shown.table.chunk_bytes(), 2);
    assert_eq!(shown.stable(6)[0], whole(1, 5, &["a", "c"]));
    assert_eq!((shown.table.pending(), shown.table.chunk_bytes()), (vec![], 0));
}

#[test]
fn a_decision_has_them_too_and_an_abort_drops_them() {
    let mut shown = Shown::default();
    for number in [1, 2] {
        shown.entry(chunk(number, 0, "a"));
        shown.entry(count(&shown, number));
        shown.entry(prepare(number, 5));
    }
    shown.stable(6);
    assert_eq!(shown.entry(decide(1, committed(7))), [whole(1, 7, &["a"])]);
    assert_eq!(shown.entry(decide(2, Outcome::Aborted)), [aborts(2)]);
    assert_eq!(shown.table.chunk_bytes(), 0);
}

/// A view that opens voids what nobody names; where the opening is cut it stands again, and may be named.
#[test]
fn an_opening_voids_chunks_and_its_cut_brings_them_back() {
    let mut shown = Shown::default();
    shown.entry(chunk(1, 0, "a"));
    shown.entry(chunk(2, 0, "b"));
    let counted = count(&shown, 2);
    shown.entry(counted.clone());
    shown.entry(prepare(2, 5));
    assert_eq!(shown.entry(Record::Opening), [aborts(1)]);
    assert!(!shown.table.has_open_chunks(txn(1)));
    assert_eq!(shown.cut(4), [aborts(1), shows(1, 0, "a")]);
    assert!(shown.table.has_open_chunks(txn(1)));
    // A cut of the naming entry leaves its chunks.
    assert_eq!(shown.cut(3), [aborts(2), shows(2, 0, "b")]);
    assert_eq!(shown.entry(counted), []);
    assert_eq!(shown.cut(1), [aborts(2)]);
    assert_eq!(shown.table.open_chunks(), [shows(1, 0, "a")]);
}

#[test]
fn who_is_refused_has_no_chunks() {
    let mut shown = Shown::default();
    shown.entry(chunk(1, 0, "a"));
    assert_eq!(shown.entry(fence(1)), [aborts(1)]);
    shown.entry(chunk(2, 0, "b"));
    assert_eq!(shown.entry(decide(2, Outcome::Aborted)), [aborts(2)]);
    assert_eq!((shown.table.open_chunks(), shown.table.chunk_bytes()), (vec![], 0));
    let [Effect::Wrong { what }] = &shown.entry(chunk(1, 0, "late"))[..] else { panic!("a chunk of a refused one") };
    assert!(what.contains("has ended"), "{what}");
}

#[test]
fn other_chunks_than_are_counted_are_found() {
    let mut shown = Shown::default();
    shown.entry(chunk(1, 0, "a"));
    let counted = count(&shown, 1);
    let mut lacks = Shown::default();
    let mut differs = Shown::default();
    differs.entry(chunk(1, 0, "b"));
    for other in [&mut lacks, &mut differs] {
        let [Effect::Wrong { what }] = &other.entry(counted.clone())[..] else { panic!("not found") };
        assert!(what.contains("chunks"), "{what}");
    }
    let [Effect::Wrong { what }] = &shown.entry(chunk(1, 2, "c"))[..] else { panic!("a chunk that is not the next") };
    assert!(what.contains("comes after 1"), "{what}");
}

#[test]
fn a_table_with_chunks_is_read_as_written() {
    let mut shown = Shown::default();
    shown.entry(chunk(1, 0, "a"));
    shown.entry(chunk(2, 0, "b"));
    shown.entry(count(&shown, 2));
    shown.entry(prepare(2, 5));
    shown.stable(2);
    shown.entry(Record::Opening);
    let read = TxnTable::decode(&shown.table.encode(), millis(0)).expect("a table");
    assert_eq!(read, shown.table);
    let mut read = Shown { table: read };
    assert_eq!(read.cut(4), [aborts(1), shows(1, 0, "a")]);
    assert_eq!(read.table.pending(), {
        shown.cut(4);
        shown.table.pending()
    });
}
