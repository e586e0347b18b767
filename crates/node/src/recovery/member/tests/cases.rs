//! Single cases: whose directory it is, and logs that cannot be.

use super::super::{Back, open_member};
use super::streams::*;
use crate::error::NodeError;
use crate::runtime::threads::Threads;
use bytes::Bytes;
use rauk_cluster::replica::{Contents, Entry, EntryId, LogRecord};
use rauk_cluster::{Record, TxnTable};
use rauk_log::record::CommitBuilder;
use rauk_log::{DatabaseId, Disk, MemoryDisk};
use rauk_manage::group::{Cut, Recovery};
use rauk_types::{GroupId, Layout, NodeId, Position, TableId, Timestamp, TxnId, View};
use std::sync::Arc;
use std::time::Duration;

fn text(result: Result<super::super::MemberParts, NodeError>) -> String {
    match result {
        Ok(_) => panic!("it was opened"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_directory_belongs_to_one_cluster() {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    drop(reopen(&disk, &TABLES).unwrap());
    drop(reopen(&disk, &TABLES).unwrap());
    let runtime = Threads::with_fatal(|reason| panic!("{reason}")).unwrap();
    let open = |cluster, layout| {
        text(open_member(&config(), loaded(&disk), &*runtime, cluster, layout, &[], nowhere(), &|_| {}))
    };
    let other = open(DatabaseId([9; 16]), layout());
    assert!(other.contains(&"07".repeat(16)) && other.contains(&"09".repeat(16)), "{other}");
    let size = open(CLUSTER, Layout::new(PARTITIONS, 1).unwrap());
    assert!(size.contains("4 partitions") && size.contains("has 5"), "{size}");
}

#[test]
fn a_log_that_contradicts_itself_is_refused() {
    let refused = |write: &dyn Fn(&mut World)| {
        let mut world = World::new(1);
        write(&mut world);
        world.log.flush().unwrap();
        text(reopen(&world.disk, &TABLES))
    };
    let append = |builder: &CommitBuilder| {
        let payload = builder.payload().to_vec();
        refused(&move |world| {
            world.log.append(&payload).unwrap();
        })
    };
    let mut builder = CommitBuilder::default();
    builder.put(1, TABLES[0], 0, &row(TABLES[0], 1, 1));
    assert!(append(&builder).contains("outside of any group"));
    builder.clear();
    builder.stream(GroupId(GROUPS), b"x");
    assert!(append(&builder).contains("group 3 in the redo log"));
    builder.clear();
    builder.stream(GroupId(1), &[99, 1, 2]);
    assert!(append(&builder).contains("group 1: a record of its stream is none"));

    let slice = refused(&|world| {
        let reset = LogRecord::Reset {
            from: Default::default(),
            stable: Position(0),
            history: Vec::new(),
            state: TxnTable::default().encode(),
        };
        world.write(2, &reset);
        world.write(2, &LogRecord::Rows { rows: vec![77].into() });
    });
    // A slice that does not say of which partition it is is of the first of its group.
    assert!(slice.contains("partition 3") && slice.contains("format 77"), "{slice}");
    let row_of = |layout: u16, bytes: Vec<u8>| {
        refused(&move |world| {
            let mut builder = CommitBuilder::default();
            builder.put(bucket_of(0, 1), TABLES[0], layout, &bytes);
            let writes = builder.payload().to_vec().into();
            world.entry(0, &Record::Opening);
            world.write_unchecked(0, &Record::Commit { txn: TxnId(5), time: Timestamp(3), writes });
        })
    };
    let newer = row_of(4, row(TABLES[0], 1, 1));
    assert!(newer.contains("transaction 5") && newer.contains("layout 4"), "{newer}");
    let none = row_of(0, vec![1, 2, 3]);
    assert!(none.contains("table 11") && none.contains("none"), "{none}");
}

fn put(group: usize, table: TableId, id: i64, value: i64) -> Bytes {
    let mut builder = CommitBuilder::default();
    builder.put(bucket_of(group, id), table, 0, &row(table, id, value));
    Bytes::copy_from_slice(builder.payload())
}

fn entry(position: u64, record: &Record) -> LogRecord {
    let id = EntryId { view: View(1), position: Position(position) };
    LogRecord::Entry { entry: Entry { id, record: record.encode() }, stable: Position(0) }
}

/// The second transaction on a row proves that the first is stable, wherever the log has that from; a prepared one would have been decided.
#[test]
fn what_is_written_over_is_committed() {
    let commit = |group, txn, value| {
        let writes = put(group, TABLES[0], 1, value);
        Record::Commit { txn: TxnId(txn), time: Timestamp(3), writes }
    };
    let mut world = World::new(1);
    world.write(0, &entry(1, &commit(0, 1, 10)));
    world.write(0, &entry(2, &commit(0, 2, 20)));
    // The first is in the state that a copy begins with.
    let mut state = TxnTable::default();
    state.on_entry(Duration::ZERO, Position(1), &commit(1, 1, 10), &mut Vec::new());
    let from = EntryId { view: View(1), position: Position(1) };
    let reset = LogRecord::Reset { from, stable: Position(0), history: vec![from], state: state.encode() };
    world.write(1, &reset);
    world.write(1, &entry(2, &commit(1, 2, 20)));
    world.write(1, &LogRecord::Whole);
    world.log.flush().unwrap();
    let parts = reopen(&world.disk, &TABLES).unwrap();
    for (group, found) in parts.groups[..2].iter().enumerate() {
        let partition = &parts.partitions[usize::from(partition_of(group, 1))];
        partition.validate();
        assert!(rows(partition, TABLES[0]).into_iter().eq([(row(TABLES[0], 1, 10), Timestamp(3))]));
        assert!(found.pending.keys().eq(&[TxnId(2)]));
    }

    let mut world = World::new(1);
    let participants = vec![GroupId(0), GroupId(1)];
    let writes = put(0, TABLES[0], 1, 10);
    let prepare = Record::Prepare { txn: TxnId(1), participants, least: Timestamp(3), writes };
    world.write(0, &entry(1, &prepare));
    world.write(0, &entry(2, &commit(0, 2, 20)));
    world.log.flush().unwrap();
    let refused = text(reopen(&world.disk, &TABLES));
    assert!(refused.contains("transaction 1") && refused.contains("written over"), "{refused}");
}

/// An anchor within a copy, although the log was not kept from the copy's beginning: the copy does not count.
#[test]
fn a_copy_without_its_beginning_is_none() {
    let mut world = World::new(1);
    world.write(0, &nothing_whole());
    world.write(0, &LogRecord::Whole);
    world.log.flush().unwrap();
    let parts = reopen(&world.disk, &TABLES).unwrap();
    assert_eq!(parts.groups[0].restored.as_ref().unwrap().contents, Contents::Partial);
    assert_eq!(parts.groups[1].restored, None);
}

/// The only node that has a cut on its disk has got a copy since: the cut is in the log before the copy, and counts.
#[test]
fn a_copy_does_not_take_the_cut_away() {
    let at = |position| EntryId { view: View(1), position: Position(position) };
    let commit = |txn, time, id, value| Record::Commit {
        txn: TxnId(txn),
        time: Timestamp(time),
        writes: put(0, TABLES[0], id, value),
    };
    let write = |copied: &dyn Fn(&mut World)| {
        let mut world = World::new(1);
        world.write(0, &entry(1, &commit(1, 3, 1, 10)));
        // A session has brought a newer time.
        world.write(0, &entry(2, &commit(2, 9, 2, 20)));
        world.write(0, &entry(3, &Record::Cut { time: Timestamp(5), view: View(1) }));
        world.write(0, &entry(4, &commit(3, 6, 1, 30)));
        copied(&mut world);
        world.log.flush().unwrap();
        world
    };
    let copy = |world: &mut World| {
        let state = TxnTable::at_cut(Position(6), Timestamp(5), View(2));
        let from = EntryId { view: View(2), position: Position(6) };
        let reset = LogRecord::Reset { from, stable: Position(6), history: vec![from], state: state.encode() };
        world.write(0, &reset);
    };
    let whole = |world: &mut World| {
        copy(world);
        world.write(0, &LogRecord::Whole);
        let id = EntryId { view: View(2), position: Position(7) };
        let entry = Entry { id, record: commit(4, 8, 3, 50).encode() };
        world.write(0, &LogRecord::Entry { entry, stable: Position(7) });
    };
    let entries = vec![at(3), EntryId::default(), EntryId::default()];
    let cut = Cut { time: Timestamp(5), entries, holders: vec![vec![NodeId(1)]; 3] };
    let recovery = Recovery { number: 1, cut };
    let (runtime, tables) = (Threads::with_fatal(|reason| panic!("{reason}")).unwrap(), TABLES.map(schema));
    let cases: [&dyn Fn(&mut World); 3] = [&|_| {}, &copy, &whole];
    for copied in cases {
        let world = write(copied);
        // The second time it opens what the first one has left.
        for _ in 0..2 {
            let back = Back { node: NodeId(1), recovery: &recovery, keeps_later: false };
            let (found, config) = (loaded(&world.disk), config());
            let parts = open_member(&config, found, &*runtime, CLUSTER, layout(), &tables, back, &|_| {}).unwrap();
            let found = &parts.groups[0];
            assert!(found.is_held(&recovery), "{:?}", found.restored);
            parts.partitions.iter().for_each(rauk_kernel::Partition::validate);
            let [even, odd] = [0, 1].map(|id| rows(&parts.partitions[usize::from(partition_of(0, id))], TABLES[0]));
            assert!(even.is_empty() && odd.into_iter().eq([(row(TABLES[0], 1, 10), Timestamp(3))]));
        }
    }
}

/// An earlier build has logged entries behind one that found no room. Nothing of the group counts then, until a copy
/// takes its place; the other groups are as they were.
#[test]
fn a_log_with_a_hole_has_nothing_of_the_group() {
    let commit = |group, txn, id| {
        let writes = put(group, TABLES[0], id, 10);
        Record::Commit { txn: TxnId(txn), time: Timestamp(txn), writes }
    };
    let mut world = World::new(1);
    for at in [1, 2, 4, 5] {
        world.write(0, &entry(at, &commit(0, at, at as i64)));
    }
    world.write(0, &LogRecord::Stable { stable: Position(5) });
    world.write(1, &entry(1, &commit(1, 1, 1)));
    world.write(1, &LogRecord::Stable { stable: Position(1) });
    world.log.flush().unwrap();
    let parts = reopen(&world.disk, &TABLES).unwrap();
    let [holed, sound, unused] = &parts.groups[..] else { panic!() };
    let hole = holed.hole.as_ref().unwrap();
    assert!(hole.contains("group 0: entry 4 of the stream follows on entry 2"), "{hole}");
    assert_eq!(holed.restored.as_ref().unwrap().contents, Contents::Partial);
    assert!(parts.partitions[..2].iter().all(|p| rows(p, TABLES[0]).is_empty()) && holed.pending.is_empty());
    assert!((&sound.hole, &unused.hole) == (&None, &None));
    assert_eq!(rows(&parts.partitions[2], TABLES[0]).len(), 1);

    // It goes on from there: what it gets is a copy, and the hole is void.
    world.log = parts.log;
    let from = EntryId { view: View(2), position: Position(6) };
    let state = TxnTable::default().encode();
    world.write(0, &LogRecord::Reset { from, stable: Position(6), history: vec![from], state });
    world.write(0, &LogRecord::Whole);
    let id = EntryId { view: View(2), position: Position(7) };
    world.write(0, &LogRecord::Entry { entry: Entry { id, record: commit(0, 7, 7).encode() }, stable: Position(7) });
    world.log.flush().unwrap();
    let parts = reopen(&world.disk, &TABLES).unwrap();
    assert_eq!(parts.groups[0].hole, None);
    assert_eq!(parts.groups[0].restored.as_ref().unwrap().contents, Contents::Whole);
    assert_eq!(rows(&parts.partitions[usize::from(partition_of(0, 7))], TABLES[0]).len(), 1);
}
