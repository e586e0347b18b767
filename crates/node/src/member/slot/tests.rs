//! A slot with what comes to it one by one, in orders that are rare with real nodes.

mod full_disk;
mod memory;

use super::super::group_rows::Share;
use super::super::rows::{Carried, RowQueue};
use super::*;
use bytes::Bytes;
use rauk_cluster::replica::{Contents, Entry, EntryId, Limits};
use rauk_kernel::{Horizon, Partition, RowId};
use rauk_log::{DatabaseId, Disk, MemoryDisk, RedoOptions, RedoReader, Superblocks};
use rauk_types::{IndexId, Layout, NodeId, PartitionId, Position, ProcessId, RowView, Value};
use std::ops::Bound;
use std::sync::Arc;

const GROUP: GroupId = GroupId(0);

struct World {
    layout: Layout,
    slot: Slot,
    rows: Vec<RowQueue>,
    /// Of the group.
    partitions: Vec<Partition>,
    log: RedoLog,
    now: Duration,
    budget: Arc<MemoryBudget>,
    rooms: Rooms,
}

/// An entry without writes.
fn nothing() -> Collected {
    Collected { writes: Bytes::new(), parts: Parts::from_slice(&[0]), has_chunks: false }
}

fn member(number: u16) -> Member {
    Member { node: NodeId(number), process: ProcessId(u32::from(number)) }
}

fn assignment(view: u64, primary: u16, in_sync: &[u16]) -> Happening {
    Happening::Assigned(Assignment {
        group: GROUP,
        version: view,
        view: View(view),
        primary: Some(member(primary)),
        in_sync: in_sync.iter().copied().map(member).collect(),
        joining: Vec::new(),
    })
}

fn entry(view: u64, position: u64, record: &Record) -> Entry {
    Entry { id: EntryId { view: View(view), position: Position(position) }, record: record.encode() }
}

fn append(from: u16, view: u64, previous: (u64, u64), entries: Vec<Entry>, stable: u64) -> Happening {
    let previous = EntryId { view: View(previous.0), position: Position(previous.1) };
    let message = Message::Append { view: View(view), version: view, previous, entries, stable: Position(stable) };
    Happening::Message { from: member(from), message }
}

fn acknowledge(from: u16, view: u64, received: u64) -> Happening {
    let position = Position(received);
    let contents = Contents::Whole;
    let message = Message::Acknowledge { view: View(view), received: position, durable: position, copy: 0, contents };
    Happening::Message { from: member(from), message }
}

impl World {
    fn new() -> World {
        let options = RedoOptions { segment_bytes: 1 << 20, ..RedoOptions::new(DatabaseId([1; 16])) };
        World::on(MemoryDisk::new(), options)
    }

    fn on(disk: Arc<dyn Disk>, options: RedoOptions) -> World {
        World::of(1, disk, options)
    }

    /// A group of so many partitions.
    fn of(partitions: u16, disk: Arc<dyn Disk>, options: RedoOptions) -> World {
        let layout = Layout::new(partitions, 1).expect("a layout");
        let superblocks = Arc::new(Superblocks::load(&disk).unwrap());
        let mut reader = RedoReader::open(&superblocks, options, Lsn(0), Lsn(0)).unwrap();
        while reader.next().unwrap().is_some() {}
        let replica = Replica::new(GROUP, member(1), Limits::default(), None);
        let budget = Arc::new(MemoryBudget::new(1 << 30));
        let times = Arc::new(TimeBounds::default());
        let partition = |number| {
            let mut partition = Partition::new(PartitionId(number), budget.clone());
            partition.share_times(&times);
            partition
        };
        let partitions: Vec<Partition> = layout.partitions_of(GROUP).map(partition).collect();
        let rows =
            layout.partitions_of(GROUP).map(|partition| RowQueue::new(Share { layout, partition }, [])).collect();
        let (table, refs) = (TxnTable::default(), FxHashMap::default());
        World {
            slot: Slot::new(GROUP, Beginning { replica, table, refs, whole: true, times }),
            layout,
            rows,
            partitions,
            budget,
            rooms: Rooms::default(),
            log: reader.into_log(Timestamp::ZERO).unwrap(),
            now: Duration::from_secs(1),
        }
    }

    fn enter<R>(&mut self, f: impl FnOnce(&Slot, &mut State, &mut Context<'_>) -> R) -> R {
        let (r, actions) = self.enter_with_actions(f);
        assert!(!actions.iter().any(|action| matches!(action, Action::Fatal(_))), "{actions:?}");
        r
    }

    fn enter_with_actions<R>(&mut self, f: impl FnOnce(&Slot, &mut State, &mut Context<'_>) -> R) -> (R, Vec<Action>) {
        let mut actions = Vec::new();
        let r = self.enter_slot(&mut actions, f);
        (0..self.layout.partitions_of(GROUP).len() as u16).for_each(|partition| self.take_in(partition, &mut actions));
        (r, actions)
    }

    fn enter_slot<R>(
        &mut self,
        actions: &mut Vec<Action>,
        f: impl FnOnce(&Slot, &mut State, &mut Context<'_>) -> R,
    ) -> R {
        let mut cx = Context {
            replicated: false,
            now: self.now,
            rows: &GroupRows { layout: self.layout, group: GROUP, queues: &self.rows, announce: &|_| () },
            log: &self.log,
            actions,
            safeguards: Safeguards::default(),
            budget: &self.budget,
            rooms: &self.rooms,
            compare_every: Duration::from_secs(5),
            longest_state: usize::MAX,
        };
        self.slot.enter(&mut cx, f)
    }

    /// Whoever enters the partition brings to the rows what the stream has said.
    fn take_in(&mut self, partition: u16, actions: &mut Vec<Action>) {
        let horizon = Horizon { oldest_snapshot: Timestamp::ZERO, durable: Timestamp::MAX };
        let Carried { slices, digests, serves, failed } =
            self.rows[usize::from(partition)].carry_out(&mut self.partitions[usize::from(partition)], horizon);
        self.enter_slot(actions, |slot, s, cx| {
            slices.into_iter().for_each(|slice| slot.on_slice(s, cx, partition, slice));
            for (entry, digests) in digests {
                slot.on_digests(s, cx, partition, entry, digests);
            }
            if let Some(view) = serves {
                slot.begin_service(s, cx, partition, view);
            }
            if let Some(what) = failed {
                slot.fail(s, cx, &what);
            }
        });
    }

    fn happens(&mut self, happening: Happening) {
        self.slot.queue.lock().push_back(happening);
        self.enter(|_, _, _| ());
    }

    fn durable(&mut self) {
        let end = self.log.end_lsn();
        self.happens(Happening::Durable(end));
    }

    /// Leads view 1 with two others, who have the opening.
    fn leading() -> World {
        World::leading_on(World::new())
    }

    fn leading_on(mut world: World) -> World {
        world.happens(assignment(1, 1, &[1, 2, 3]));
        world.durable();
        world.happens(acknowledge(2, 1, 1));
        world.happens(acknowledge(3, 1, 1));
        world.happens(Happening::Drawn { view: View(1), time: Timestamp(10) });
        assert_eq!(world.slot.serving(), Some(View(1)));
        world
    }

    fn commit(&mut self, txn: TxnId) -> oneshot::Receiver<Option<Timestamp>> {
        let txn = TxnRef::new(txn);
        self.enter(|slot, s, cx| slot.commit_alone(s, cx, &txn, Timestamp::ZERO, nothing())).unwrap()
    }
}

/// Rule 6: "aborted" is a promise, and an entry that one primary has cut may be in the stream of the next.
#[test]
fn the_client_of_a_commit_that_was_cut_is_told_when_the_stream_without_it_is_stable() {
    let txn = TxnId::of_process(ProcessId(1), 5);
    for comes_back in [false, true] {
        let mut world = World::leading();
        let mut client = world.commit(txn);
        world.happens(assignment(2, 2, &[1, 2, 3]));
        world.happens(append(2, 2, (1, 1), vec![entry(2, 2, &Record::Opening)], 1));
        assert_eq!(client.try_recv(), Ok(None), "its primary may be the only one that has cut it");
        if comes_back {
            // That one has died; the third had the commit and not the second's opening.
            world.happens(assignment(3, 3, &[1, 3]));
            let record = Record::Commit { txn, time: Timestamp(11), writes: Bytes::new() };
            let entries = vec![entry(1, 2, &record), entry(3, 3, &Record::Opening)];
            world.happens(append(3, 3, (1, 1), entries, 1));
            assert_eq!(client.try_recv(), Ok(None));
            world.happens(append(3, 3, (3, 3), Vec::new(), 3));
            assert_eq!(client.try_recv(), Ok(Some(Some(Timestamp(11)))));
        } else {
            world.happens(append(2, 2, (2, 2), Vec::new(), 2));
            assert_eq!(client.try_recv(), Ok(Some(None)));
        }
    }
}

/// The second of two that were written the wrong way round was never taken as durable: nothing became stable any more.
#[test]
fn the_records_of_one_tick_are_logged_in_their_order() {
    let mut world = World::leading();
    world.happens(Happening::Tick);
    let _client = world.commit(TxnId::of_process(ProcessId(1), 5));
    world.durable();
    [2, 3].into_iter().for_each(|from| world.happens(acknowledge(from, 1, 2)));
    // What is stable is to be logged, and the replicas are to be compared.
    world.now += Duration::from_secs(6);
    world.happens(Happening::Tick);
    let (last, numbers) = world.enter(|_, s, _| {
        let numbers: Vec<u64> = s.logged.iter().map(|(_, number)| *number).collect();
        (s.replica.last().position, numbers)
    });
    assert_eq!((last, numbers.len()), (Position(3), 2));
    assert!(numbers.is_sorted(), "{numbers:?}");
    world.durable();
    [2, 3].into_iter().for_each(|from| world.happens(acknowledge(from, 1, 3)));
    assert_eq!(world.enter(|_, s, _| s.replica.stable()), Position(3));
}

/// A decision that was cut is in the stream again before a new primary takes work: what writes over those rows comes behind it.
#[test]
fn a_new_primary_says_first_what_it_knows_to_be_decided() {
    let mut world = World::new();
    let txn = TxnId::of_process(ProcessId(9), 1);
    let participants = vec![GROUP, GroupId(1)];
    let prepare = Record::Prepare { txn, participants, least: Timestamp(3), writes: Bytes::new() };
    let decide = Record::Decide { txn, outcome: Outcome::Committed(Timestamp(4)) };
    world.happens(assignment(1, 2, &[1, 2, 3]));
    let entries = vec![entry(1, 1, &Record::Opening), entry(1, 2, &prepare), entry(1, 3, &decide)];
    world.happens(append(2, 1, (0, 0), entries, 2));
    world.happens(assignment(2, 3, &[1, 3]));
    world.happens(append(3, 2, (1, 2), vec![entry(2, 3, &Record::Opening)], 3));
    assert_eq!(world.enter(|_, s, _| s.table.undecided(Duration::MAX)).len(), 1, "its entry is cut");
    world.happens(assignment(3, 1, &[1]));
    world.durable();
    world.happens(Happening::Drawn { view: View(3), time: Timestamp(10) });
    assert_eq!(world.slot.serving(), Some(View(3)));
    assert_eq!(world.enter(|_, s, _| s.table.undecided(Duration::MAX)), []);
    assert_eq!(world.enter(|_, s, _| s.replica.last().position), Position(5));
}

/// What the group says counts at once, whatever the slot has not worked off yet.
/// A transaction has one status word for all partitions of a process: where its entry is cut it may still be decided to commit, and readers in the other partitions must wait for that.
#[test]
fn what_is_cut_in_one_partition_is_prepared_in_another() {
    let txn = TxnRef::new(TxnId::of_process(ProcessId(1), 5));
    let mut worlds = [World::leading(), World::leading()];
    let participants = vec![GROUP, GroupId(1)];
    for world in &mut worlds {
        let participants = participants.clone();
        let vote = world.enter(|slot, s, cx| slot.prepare(s, cx, &txn, participants, Timestamp::ZERO, nothing()));
        assert!(vote.is_ok());
    }
    let [cut, _] = &mut worlds;
    cut.happens(assignment(2, 2, &[1, 2, 3]));
    cut.happens(append(2, 2, (1, 1), vec![entry(2, 2, &Record::Opening)], 1));
    assert!(matches!(txn.status.get(), TxnState::Prepared(_)), "{:?}", txn.status.get());
}

/// "Aborted" also where the transaction had not been prepared: its locks go.
#[test]
fn an_abort_takes_the_locks_of_who_has_not_prepared() {
    let txn = TxnRef::new(TxnId::of_process(ProcessId(2), 5));
    let mut world = World::leading();
    let schema = crate::ops::tests::table().schema.clone();
    world.partitions[0].create_table(schema.clone());
    world.partitions[0].lock_range(&txn, schema.id, IndexId::PRIMARY, Bound::Unbounded, Bound::Unbounded).unwrap();
    assert!(world.partitions[0].has_transaction(txn.id));
    let confirmed = world.enter(|slot, s, cx| slot.decide(s, cx, txn.id, Outcome::Aborted));
    assert!(confirmed.is_ok());
    assert!(!world.partitions[0].has_transaction(txn.id));
}

/// A group of two partitions, on a node that has the only replica or follows.
fn two_partitions() -> World {
    let options = RedoOptions { segment_bytes: 1 << 20, ..RedoOptions::new(DatabaseId([1; 16])) };
    World::of(2, MemoryDisk::new(), options)
}

#[test]
fn a_group_is_served_when_the_rows_of_all_its_partitions_have_come_to_the_view() {
    let mut world = two_partitions();
    world.happens(assignment(1, 1, &[1]));
    world.durable();
    let drawn = Happening::Drawn { view: View(1), time: Timestamp(10) };
    world.slot.queue.lock().push_back(drawn);
    let mut actions = Vec::new();
    world.enter_slot(&mut actions, |_, _, _| ());
    let rows = |action: &Action| match action {
        Action::Rows { partition } => Some(*partition),
        _ => None,
    };
    assert_eq!(actions.iter().filter_map(rows).collect::<Vec<_>>(), [0, 1]);
    world.take_in(1, &mut actions);
    assert_eq!(world.slot.serving(), None, "the first partition may lack what the stream had before");
    world.take_in(0, &mut actions);
    assert_eq!(world.slot.serving(), Some(View(1)));
}

/// One entry: each partition has its share of the writes, and it commits in both.
#[test]
fn an_entry_is_beside_the_rows_of_all_its_partitions() {
    let mut world = two_partitions();
    let schema = crate::ops::tests::table().schema.clone();
    world.partitions.iter_mut().for_each(|p| p.create_table(schema.clone()));
    let mut builder = CommitBuilder::default();
    for (id, bucket) in [(1, 0), (2, rauk_types::schema::BUCKETS / 2), (3, 1)] {
        let mut row = Vec::new();
        rauk_types::row::encode_row(&schema, &[Value::Int(id), Value::from("a name")], &mut row);
        builder.put(bucket, schema.id, 0, &row);
    }
    let (txn, writes) = (TxnId::of_process(ProcessId(2), 5), Bytes::copy_from_slice(builder.payload()));
    let commit = Record::Commit { txn, time: Timestamp(11), writes };
    world.happens(assignment(1, 2, &[1, 2]));
    let entries = vec![entry(1, 1, &Record::Opening), entry(1, 2, &commit)];
    world.happens(append(2, 1, (0, 0), entries, 1));
    assert!(world.partitions.iter().all(|p| p.has_transaction(txn)), "it is pending in both");
    world.happens(append(2, 1, (1, 2), Vec::new(), 2));
    let committed = |p: &Partition| {
        let mut ids = Vec::new();
        p.checkpoint_slice(schema.id, RowId(0), 100, &mut |layout, time, row| {
            assert_eq!(time, Timestamp(11));
            ids.push(RowView::new(&schema, layout, row).get(0).to_owned());
        });
        ids
    };
    let shares: Vec<_> = world.partitions.iter().map(committed).collect();
    assert_eq!(shares, [vec![Value::Int(1), Value::Int(3)], vec![Value::Int(2)]]);
}

#[test]
fn a_time_for_a_view_that_has_ended_begins_no_service() {
    let world = World::leading();
    world.slot.name(Some(View(1)));
    assert!(world.slot.is_named(View(1)) && world.slot.serving() == Some(View(1)));
    world.slot.name(None);
    assert!(!world.slot.is_named(View(1)) && world.slot.serving().is_none());
}

impl World {
    /// What follows from so much memory in use, of a limit of 1 GiB.
    fn use_memory(&mut self, percent: u64) -> Vec<Action> {
        let limit = self.budget.used() * 100 / percent.max(1);
        self.budget.set_limit(limit);
        self.now += Duration::from_secs(1);
        self.slot.queue.lock().push_back(Happening::Tick);
        self.enter_with_actions(|_, _, _| ()).1
    }

    fn last(&mut self) -> Position {
        self.enter(|_, s, _| s.replica.last().position)
    }
}

fn strikes(actions: &[Action]) -> Vec<Member> {
    let strike = |action: &Action| match action {
        Action::Strike { member, .. } => Some(*member),
        _ => None,
    };
    actions.iter().filter_map(strike).collect()
}

fn joining(view: u64, primary: u16, in_sync: &[u16], joining: &[u16]) -> Happening {
    let Happening::Assigned(mut assignment) = assignment(view, primary, in_sync) else { unreachable!() };
    assignment.version += 1;
    assignment.joining = joining.iter().copied().map(member).collect();
    Happening::Assigned(assignment)
}

/// An in-sync replica takes every entry, whatever its memory; beyond its limit it asks to be struck, and only then listens no more.
#[test]
fn a_replica_without_memory_goes_by_its_own_wish_and_comes_back() {
    let mut world = World::new();
    // Something must be in use for a limit to be passed.
    world.budget.add(1 << 20);
    world.happens(assignment(1, 2, &[1, 2]));
    world.happens(append(2, 1, (0, 0), vec![entry(1, 1, &Record::Opening)], 0));
    assert_eq!(strikes(&world.use_memory(99)), []);
    assert_eq!(strikes(&world.use_memory(101)), [member(1)]);
    let forget = Record::Forget { txns: Vec::new() };
    world.happens(append(2, 1, (1, 1), vec![entry(1, 2, &forget)], 1));
    assert_eq!(world.last(), Position(2), "in-sync, it listens");
    world.happens(joining(1, 2, &[2], &[1]));
    assert_eq!(strikes(&world.use_memory(101)), []);
    world.happens(append(2, 1, (1, 2), vec![entry(1, 3, &forget)], 2));
    assert_eq!(world.last(), Position(2), "struck, it does not");
    world.use_memory(97);
    world.happens(append(2, 1, (1, 2), vec![entry(1, 3, &forget)], 2));
    assert_eq!(world.last(), Position(2), "and not at once again");
    world.use_memory(90);
    world.happens(append(2, 1, (1, 2), vec![entry(1, 3, &forget)], 2));
    assert_eq!(world.last(), Position(3), "there is room again");
}

/// A copy begins where there is room, and is given up where there is none left.
#[test]
fn a_copy_that_finds_no_room_is_given_up_and_tried_again() {
    let begin = |copy: u64| {
        let from = EntryId { view: View(1), position: Position(5) };
        let (stable, history) = (Position(5), vec![from]);
        let message =
            Message::CopyBegin { view: View(1), copy, from, stable, history, state: TxnTable::default().encode() };
        Happening::Message { from: member(2), message }
    };
    let copies = |world: &mut World| world.enter(|_, s, _| s.replica.copies_in());
    let mut world = World::new();
    world.budget.add(1 << 20);
    world.happens(joining(1, 2, &[2], &[1]));
    world.use_memory(85);
    world.happens(begin(1));
    assert!(!copies(&mut world), "there is too little room");
    world.use_memory(50);
    world.happens(begin(1));
    assert!(copies(&mut world));
    world.use_memory(97);
    assert!(!copies(&mut world), "it has gone on for too long");
    world.use_memory(50);
    world.happens(begin(2));
    assert!(!copies(&mut world), "it is too soon");
    world.use_memory(50);
    world.use_memory(50);
    world.happens(begin(2));
    assert!(copies(&mut world));
}

/// A primary refuses what needs room for as long as an in-sync replica says that it has none.
#[test]
fn a_primary_refuses_what_another_replica_has_no_room_for() {
    let mut world = World::leading();
    world.budget.add(1 << 20);
    world.use_memory(50);
    assert_eq!(world.partitions[0].full_elsewhere(), None);
    world.rooms.on_full(world.now + Duration::from_secs(1), ProcessId(3), 77);
    world.use_memory(50);
    assert_eq!(world.partitions[0].full_elsewhere(), Some(77));
    world.use_memory(50);
    assert_eq!(world.partitions[0].full_elsewhere(), None, "it is said again and again, or not true any more");
    world.rooms.on_full(world.now + Duration::from_secs(1), ProcessId(4), 77);
    world.use_memory(50);
    assert_eq!(world.partitions[0].full_elsewhere(), None, "it has no replica");
}
