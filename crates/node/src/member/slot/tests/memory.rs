//! Chunks count in the memory of the node that keeps them, primary or not.

use super::*;
use rauk_log::record::CommitBuilder;
use rauk_types::TableId;

/// What a transaction has written to a table that is not here, in the first partition.
fn chunk(bytes: usize) -> Bytes {
    let mut builder = CommitBuilder::default();
    builder.put(0, TableId(77), 0, &vec![0; bytes]);
    Bytes::copy_from_slice(builder.payload())
}

#[test]
fn a_primary_counts_chunks_until_they_cannot_stand_again() {
    let mut world = World::leading();
    let txn = TxnRef::new(TxnId::of_process(ProcessId(1), 5));
    let before = world.budget.used();
    let writes = chunk(1000);
    let size = writes.len() as u64;
    for number in 0..3 {
        let writes = writes.clone();
        assert!(world.enter(|slot, s, cx| slot.send_chunk(s, cx, txn.id, (0, number), writes)));
    }
    assert_eq!(world.budget.used(), before + 3 * size);
    world.enter(|slot, s, cx| slot.take_back(s, cx, txn.id, 0, 1));
    assert_eq!(world.budget.used(), before + 3 * size, "a cut may bring them back");
    world.durable();
    world.happens(acknowledge(2, 1, 5));
    world.happens(acknowledge(3, 1, 5));
    assert_eq!(world.budget.used(), before + size);
    let collected = Collected { has_chunks: true, ..nothing() };
    let _client = world.enter(|slot, s, cx| slot.commit_alone(s, cx, &txn, Timestamp::ZERO, collected)).unwrap();
    assert_eq!(world.budget.used(), before + size, "it is not decided");
    world.durable();
    world.happens(acknowledge(2, 1, 7));
    world.happens(acknowledge(3, 1, 7));
    assert_eq!(world.budget.used(), before);
}

/// It takes them whatever its limit says.
#[test]
fn a_replica_counts_the_chunks_that_it_has_to_take() {
    let mut world = World::new();
    let txn = TxnId::of_process(ProcessId(2), 5);
    world.happens(assignment(1, 2, &[1, 2, 3]));
    world.happens(append(2, 1, (0, 0), vec![entry(1, 1, &Record::Opening)], 1));
    let before = world.budget.used();
    world.budget.set_limit(before + 1);
    let writes = chunk(5000);
    let size = writes.len() as u64;
    let entries = vec![entry(1, 2, &Record::Chunk { txn, series: 0, number: 0, writes })];
    world.happens(append(2, 1, (1, 1), entries, 1));
    assert_eq!(world.budget.used(), before + size);
    world.happens(append(2, 1, (1, 2), vec![entry(1, 3, &Record::Back { txn, series: 0, left: 0 })], 3));
    assert_eq!(world.budget.used(), before);
}

/// A large transaction would be taken off and put there again in one hold.
#[test]
fn what_ran_elsewhere_stays_beside_the_rows_when_the_view_changes() {
    let mut world = World::new();
    let txn = TxnId::of_process(ProcessId(9), 1);
    let prepare =
        Record::Prepare { txn, participants: vec![GROUP, GroupId(1)], least: Timestamp(3), writes: chunk(5000) };
    world.happens(assignment(1, 2, &[1, 2, 3]));
    world.happens(append(2, 1, (0, 0), vec![entry(1, 1, &Record::Opening), entry(1, 2, &prepare)], 2));
    world.slot.queue.lock().push_back(assignment(2, 3, &[1, 3]));
    world.enter_slot(&mut Vec::new(), |_, _, _| ());
    assert_eq!(world.rows[0].waiting_bytes(), 0);
    // Where it ran it may have locks that nobody else knows of.
    let mut world = World::leading();
    let txn = TxnRef::new(TxnId::of_process(ProcessId(1), 5));
    let collected = Collected { writes: chunk(5000), ..nothing() };
    let participants = vec![GROUP, GroupId(1)];
    let vote = world.enter(|slot, s, cx| slot.prepare(s, cx, &txn, participants, Timestamp::ZERO, collected));
    assert!(vote.is_ok());
    for (view, again) in [(2, true), (3, false)] {
        world.slot.queue.lock().push_back(assignment(view, view as u16, &[1, 2, 3]));
        world.enter_slot(&mut Vec::new(), |_, _, _| ());
        assert_eq!(world.rows[0].waiting_bytes() > 5000, again, "view {view}");
        world.enter(|_, _, _| ());
    }
}
