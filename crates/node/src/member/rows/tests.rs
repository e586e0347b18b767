//! Steps carried out one by one: what stands, what is written over, what is taken away.

use super::*;
use rauk_kernel::{MemoryBudget, RowId};
use rauk_log::record::CommitBuilder;
use rauk_types::{Layout, PartitionId, ProcessId, RowView, TableSchema, Value, ValueRef, row};
use std::sync::Arc;

const HORIZON: Horizon = Horizon { oldest_snapshot: Timestamp::ZERO, durable: Timestamp::MAX };

/// The only partition that rows are spread over.
fn share() -> Share {
    Share { layout: Layout::new(1, 1).expect("a layout"), partition: 0 }
}

struct World {
    p: Partition,
    rows: RowQueue,
    schema: Arc<TableSchema>,
}

fn txn(number: u64) -> TxnRef {
    let txn = TxnRef::new(TxnId::of_process(ProcessId(7), number));
    txn.status.set(TxnState::Prepared(Timestamp(number)));
    txn
}

impl World {
    fn new() -> World {
        let mut p = Partition::new(PartitionId(0), Arc::new(MemoryBudget::new(1 << 30)));
        let schema = crate::ops::tests::table().schema.clone();
        p.create_table(schema.clone());
        World { p, rows: RowQueue::new(share(), []), schema }
    }

    /// The writes of an entry: the row with this id.
    fn writes(&self, id: i64, name: &str) -> Bytes {
        let mut bytes = Vec::new();
        row::encode_row(&self.schema, &[Value::Int(id), Value::from(name)], &mut bytes);
        let mut builder = CommitBuilder::default();
        builder.put(0, self.schema.id, 0, &bytes);
        Bytes::copy_from_slice(builder.payload())
    }

    fn adopt(&self, txn: &TxnRef, time: Option<u64>, id: i64, name: &str) {
        let writes = self.writes(id, name);
        self.rows.push(RowStep::Adopt { txn: txn.clone(), time: time.map(Timestamp), number: 0, writes });
    }

    fn commit(&self, txn: &TxnRef, time: u64) {
        self.rows.push(RowStep::Commit { txn: txn.id, time: Timestamp(time) });
    }

    fn carry_out(&mut self) -> Option<String> {
        self.rows.carry_out(&mut self.p, HORIZON).failed
    }

    /// The committed rows: when, and their names.
    fn committed(&mut self) -> Vec<(u64, String)> {
        let (schema, mut found) = (self.schema.clone(), Vec::new());
        self.p.checkpoint_slice(schema.id, RowId(0), 1000, &mut |layout, time, bytes| {
            let ValueRef::Str(name) = RowView::new(&schema, layout, bytes).get(1) else { panic!("a name") };
            found.push((time.0, name.to_string()));
        });
        found
    }
}

#[test]
fn a_write_is_beside_the_rows_until_it_is_decided() {
    let mut world = World::new();
    let (one, two) = (txn(1), txn(2));
    world.adopt(&one, Some(5), 1, "a");
    world.adopt(&two, None, 2, "b");
    assert!(!world.rows.is_empty());
    assert_eq!(world.carry_out(), None);
    assert!(world.rows.is_empty() && world.committed().is_empty());
    world.commit(&one, 5);
    world.rows.push(RowStep::Abort { txn: two.id });
    assert_eq!(world.carry_out(), None);
    assert_eq!(world.committed(), [(5, "a".to_string())]);
    assert_eq!(world.p.open_transactions(), []);
}

/// The primary had seen the first be stable when it wrote the second: this replica hears so later.
#[test]
fn what_is_written_over_was_stable() {
    let mut world = World::new();
    let (one, two) = (txn(1), txn(2));
    world.adopt(&one, Some(5), 1, "a");
    world.adopt(&two, Some(6), 1, "b");
    assert_eq!(world.carry_out(), None);
    assert_eq!(world.committed(), [(5, "a".to_string())]);
    assert_eq!(one.status.get(), TxnState::Committed(Timestamp(5)));
    // Its view ends in between: what is decided stays so, what stands is put there again.
    for (txn, time, name) in [(&one, 5, "a"), (&two, 6, "b")] {
        let writes = world.writes(1, name);
        world.rows.push(RowStep::DropOpen);
        world.rows.push(RowStep::Readopt { txn: txn.clone(), time: Some(Timestamp(time)), pieces: vec![(0, writes)] });
    }
    world.commit(&one, 5);
    world.commit(&two, 6);
    assert_eq!(world.carry_out(), None);
    assert_eq!(world.committed(), [(6, "b".to_string())]);
}

/// What others still decide is not proven by anything: the stream is broken, and nothing more is done here.
#[test]
fn an_undecided_write_is_not_written_over() {
    let mut world = World::new();
    let (one, two) = (txn(1), txn(2));
    world.adopt(&one, None, 1, "a");
    world.adopt(&two, Some(6), 1, "b");
    let failed = world.carry_out().expect("it is refused");
    assert!(failed.contains("writes over undecided"), "{failed}");
    world.commit(&one, 7);
    assert_eq!(world.carry_out(), None);
    assert_eq!(world.committed(), [], "it has failed once for all");
}

#[test]
fn what_was_written_over_is_not_aborted_and_what_is_not_there_does_not_commit() {
    let mut world = World::new();
    let (one, two) = (txn(1), txn(2));
    world.adopt(&one, Some(5), 1, "a");
    world.adopt(&two, Some(6), 1, "b");
    world.rows.push(RowStep::Abort { txn: one.id });
    let failed = world.carry_out().expect("it is refused");
    assert!(failed.contains("was written over"), "{failed}");
    let mut world = World::new();
    world.commit(&one, 5);
    let failed = world.carry_out().expect("it is refused");
    assert!(failed.contains("is not beside the rows"), "{failed}");
}

/// Locks go with their view, and with who ends them; what stands in the stream goes by the stream alone.
#[test]
fn only_what_does_not_stand_is_taken_away() {
    let mut world = World::new();
    let (one, two) = (txn(1), txn(2));
    world.adopt(&one, Some(5), 1, "a");
    assert_eq!(world.carry_out(), None);
    for by_view in [false, true] {
        let writes = world.writes(2, "b");
        world.p.adopt_writes(&two, 0, &writes, share()).map_err(|_| ()).expect("nobody has the row");
        assert_eq!(world.p.open_transactions(), [one.id, two.id]);
        match by_view {
            true => world.rows.push(RowStep::DropOpen),
            false => world.rows.abort_open(&mut world.p, &[one.id, two.id]),
        }
        assert_eq!(world.carry_out(), None);
        assert_eq!(world.p.open_transactions(), [one.id]);
    }
}

#[test]
fn a_queue_that_is_full_says_so_until_it_is_worked_off() {
    let mut world = World::new();
    let rows = Bytes::from(vec![0; MOST_BYTES / 2]);
    world.rows.push(RowStep::Clear);
    world.rows.push(RowStep::Install { rows: rows.clone() });
    assert!(!world.rows.is_full());
    world.rows.push(RowStep::Install { rows: rows.clone() });
    world.rows.push(RowStep::Install { rows });
    assert!(world.rows.is_full());
    assert!(world.carry_out().is_some(), "that is no slice");
    assert!(!world.rows.is_full());
}

/// Chunks stand one by one, are taken back from the last on, and are committed with what names them.
#[test]
fn chunks_stand_until_they_are_taken_back_or_committed() {
    let mut world = World::new();
    let (one, two) = (TxnRef::new(txn(1).id), txn(2));
    let chunk = |world: &World, number, id, name| {
        let writes = world.writes(id, name);
        world.rows.push(RowStep::Chunk { txn: one.clone(), number, writes });
    };
    chunk(&world, 0, 1, "a");
    chunk(&world, 1, 1, "b");
    chunk(&world, 2, 2, "c");
    world.rows.push(RowStep::Back { txn: one.id, number: 1 });
    chunk(&world, 1, 3, "d");
    assert_eq!(world.carry_out(), None);
    assert_eq!(world.committed(), []);
    // The view that has ended took none of it.
    world.rows.push(RowStep::DropOpen);
    assert_eq!(world.carry_out(), None);
    assert_eq!(world.p.open_transactions(), [one.id]);
    // Another has the row that was taken back.
    world.adopt(&two, Some(4), 2, "e");
    world.commit(&two, 4);
    let writes = world.writes(4, "f");
    one.status.set(TxnState::Prepared(Timestamp(5)));
    world.rows.push(RowStep::Adopt { txn: one.clone(), time: Some(Timestamp(5)), number: 2, writes });
    world.commit(&one, 5);
    assert_eq!(world.carry_out(), None);
    let names = ["a", "e", "d", "f"].map(str::to_string);
    let mut found: Vec<String> = world.committed().into_iter().map(|(_, name)| name).collect();
    found.sort_by_key(|name| names.iter().position(|known| known == name));
    assert_eq!(found, names);
    assert_eq!(world.p.open_transactions(), []);
}

/// Of a transaction whose chunks are all taken back nothing stands.
#[test]
fn without_chunks_nothing_stands() {
    let mut world = World::new();
    let one = TxnRef::new(txn(1).id);
    let writes = world.writes(1, "a");
    world.rows.push(RowStep::Chunk { txn: one.clone(), number: 0, writes });
    world.rows.push(RowStep::Back { txn: one.id, number: 0 });
    assert_eq!(world.carry_out(), None);
    assert_eq!(world.p.open_transactions(), []);
}
